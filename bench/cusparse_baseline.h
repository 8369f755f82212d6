/*
  cuSPARSE's sparse matrix times vector itself, without PETSc around it, with its preprocessing: what the benchmark compares with. Compiled with or without CUDA.
*/
#pragma once
#include "../kernels/tc_base.h"

typedef struct cusparse_baseline cusparse_baseline;

typedef struct {
  int algorithm;     // of the CSR format, 1 or 2
  int transpose;     // with the transpose
  int add, subtract; // y += or y -= instead of y =
  const double *val; // [nnz], on the device
  const double *x;
  double       *y;
} cusparse_baseline_settings;

/* NULL without CUDA, or where cuSPARSE cannot do it; `why` [128] says so. Keeps the pointers, which are to be device memory; destroy with the function below */
cusparse_baseline *cusparse_baseline_create(const tc_csr_local *A, const cusparse_baseline_settings *settings, char *why);
void               cusparse_baseline_destroy(cusparse_baseline **baseline);

/* Enqueues one product on the legacy default stream; 0 on success */
int cusparse_baseline_multiply(const cusparse_baseline *baseline);
