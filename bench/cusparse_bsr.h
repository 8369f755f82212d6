/*
  Products with dense blocks in fp16 by cuSPARSE from its format of blocks. Sums in single precision, B and C row-major in fp16, nothing is converted.
*/
#pragma once
#include "matrix.h"

typedef struct cusparse_bsr cusparse_bsr;

/* A on the host, in blocks of that size. NULL: not supported or no memory, `why` [128] says it */
cusparse_bsr *cusparse_bsr_create(const tc_matrix *A, int32_t block, int32_t n, char *why);
void          cusparse_bsr_destroy(cusparse_bsr **bsr);

/* Enqueues a product on the legacy default stream; 0 on success */
int cusparse_bsr_multiply(const cusparse_bsr *bsr);
