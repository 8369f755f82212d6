/*
  Products with a vector straight from CSR on the host: z = A x (y == NULL) or z = y + sign A x, sign 1 or -1; y may be z. The bits are those of products with vectors over packed formats, with fused
  multiply-add where the processor has it and without.
*/
#pragma once
#include "../../kernels/tc_backend.h"

void tc_spmv_csr_host(const tc_csr_matrix *A, const double *x, const double *y, double *z, int sign);

/* Fills kind [num_cols] of a tc_csr_matrix for products with the transpose of these rows; false if a column has so many entries that there are none. Errors: TC_ERR_MEMORY */
tc_status tc_spmv_csr_columns(const tc_csr_local *rows, uint8_t *kind, int *serves);
