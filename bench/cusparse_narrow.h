/*
  Products with dense blocks in fp16 by cuSPARSE: the yardstick of 16-bit kernels. Sums in single precision, B and C row-major in fp16, nothing is converted.
*/
#pragma once
#include "matrix.h"

typedef struct cusparse_narrow cusparse_narrow;

/* A on the host, with block > 0 as BSR with blocks of that size, else as CSR. NULL: not supported or no memory, `why` [128] says it */
cusparse_narrow *cusparse_narrow_create(const tc_matrix *A, int32_t block, int32_t n, char *why);
void             cusparse_narrow_destroy(cusparse_narrow **narrow);

/* Enqueues a product; is there an error? */
int cusparse_narrow_multiply(const cusparse_narrow *narrow);
