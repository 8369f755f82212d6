/*
  The dense block of the benchmark's products, and what they must be: computed once per matrix, for a few columns, since column j of B is the same in every block that has
  one.
*/
#pragma once
#include "bench_spmm_report.h"
#include "matrix.h"

enum { SPMM_CHECKED = 3 }; // columns of each product

typedef struct {
  PetscInt     column;
  long double *ref, *bound, *size; // size: |A| |B|
  double      *bits, *alone;       // NULL in narrow precisions; alone: of a block that has no other column and is multiplied as a vector
} SpmmColumn;

typedef struct {
  tc_precision precision;
  int32_t      segment; // entries of a row that narrow products add in single precision, at most
  int          num;
  SpmmColumn   column[SPMM_CHECKED * SPMM_MAX_COLUMNS];
} SpmmExpected;

/* The columns of products that are checked: the first, the last and one between */
void SpmmCheckedColumns(PetscInt n, PetscInt column[SPMM_CHECKED]);

/* Numbers for B [k, n], or with A B^T for its transpose */
PetscErrorCode SpmmFillB(SpmmMode, PetscInt k, PetscInt n, Mat B);

/* What the checked columns of the product of these rows with B must be, where an earlier number of columns has not asked for them */
PetscErrorCode SpmmExpect(SpmmExpected *, SpmmMode, const tc_matrix *rows, PetscInt n, Mat B);
PetscErrorCode SpmmExpectedDestroy(SpmmExpected *);

/* Adds what a checked column of a product of n, c [m], shows */
void SpmmCompare(const SpmmExpected *, SpmmMode, PetscInt n, PetscInt column, PetscInt m, const double *c, SpmmAccuracy *);
