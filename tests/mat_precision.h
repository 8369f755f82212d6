/*
  The parts of mat_precision.
*/
#pragma once
#include "mat_util.h"

/* mat_precision_dense.c */
PetscErrorCode TestPrecisionOfDense(void);
