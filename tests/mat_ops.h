#pragma once
#include "mat_util.h"

/* What the options choose, what the view says about it, and the choice by time on a GPU */
PetscErrorCode CheckChoices(void);

/* The same matrix of this type and of MATAIJ */
PetscErrorCode CreatePair(const char[], PetscInt, Mat *, Mat *);

/* Products of one matrix on streams that do not wait for each other */
PetscErrorCode CheckStreams(void);

/* mat_ops_graph.c: MatCreateGraph() */
PetscErrorCode CheckGraphs(void);

/* mat_ops_sparse.c: products of sparse matrices */
PetscErrorCode CheckSparseProducts(void);

/* mat_ops_refused.c: arguments that no product can have, settings that there are not; and the operations that are logged */
PetscErrorCode CheckRefused(void);
