/*
  cuSPARSE's sparse matrix times dense block itself, without PETSc around it, with its preprocessing. Compiled with or without CUDA.
*/
#pragma once
#include "../kernels/tc_base.h"

typedef struct cusparse_spmm cusparse_spmm;

typedef struct {
  int           algorithm; // of the CSR format, 1 to 3
  int           row_major; // B and C of its own, row by row, filled with some numbers; `b` and `c` are not used
  tc_precision  precision; // of A, B and C; but in F64 all values are its own numbers, `val`, `b` and `c` are not used, and sums are in single precision
  int           transpose; // with A^T
  int           transpose_b; // `b` is [n, num_cols]; row by row that is B as it is
  const double *val;       // [nnz], on the device, as all that follows
  int32_t       n;
  const double *b;         // column-major without gaps
  double       *c;
} cusparse_spmm_settings;

/* NULL without CUDA, or where cuSPARSE cannot do it; `why` [128] says so. Keeps the pointers; destroy with the function below */
cusparse_spmm *cusparse_spmm_create(const tc_csr_local *A, const cusparse_spmm_settings *settings, char *why);
void           cusparse_spmm_destroy(cusparse_spmm **spmm);

/* Enqueues one product on the legacy default stream; 0 on success */
int cusparse_spmm_multiply(const cusparse_spmm *spmm);
