/*
  Products with a vector straight from CSR on the host: z = A x (y == NULL) or z = y + sign A x, sign 1 or -1, the value of entry e val[e], or val[perm[e]] unless that is NULL; y may be z. The bits are
  those of products with vectors over packed formats, with fused multiply-add where the processor has it and without.
*/
#pragma once
#include "../../kernels/tc_base.h"

void tc_spmv_csr_host(const tc_csr_local *A, const double *val, const int32_t *perm, const double *x, const double *y, double *z, int sign);
