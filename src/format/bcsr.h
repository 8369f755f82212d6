/*
  The BCSR format beyond what every format has: packing without 2:4 tiles, to compare with, and a tc_bcsr in host memory.
*/
#pragma once
#include "../../kernels/tc_bcsr.h"
#include "format.h"

typedef enum { TC_BCSR_DENSE_ONLY, TC_BCSR_BOTH_KINDS } tc_bcsr_kinds;

/* tc_format.build() with tiles of those kinds; the format's own takes both. Errors: those of tc_csr_check(), TC_ERR_MEMORY, TC_ERR_UNSUPPORTED for a precision of more than 16 bits */
tc_status tc_bcsr_build(const tc_csr *A, tc_bcsr_kinds kinds, void *view);

/* Takes the values csr_val [num_nonzeros], in the order of CSR; val and row_exponent are allocated. Always TC_OK */
tc_status tc_bcsr_refill_host(const void *view, const double *csr_val);

/* Column of place k of a 2:4 tile that stored column k / 2 of row i is: 4 * group + choice */
int32_t tc_bcsr_chosen_place(const uint32_t choice[TC_BCSR_WORDS], int32_t i, int32_t k);

/*
  For tc_spmm_kernel tables, over the packed arrays, with both factors rounded as the device rounds them and sums in single precision, by fmaf in the order of the tiles and
  of their stored columns. Structural zeros are multiplied, as on the device. The tensor core adds in an order and with a rounding of its own: the results agree within
  the bound of docs/formats.md, not bit by bit.
*/
size_t    tc_spmm_bcsr_host_scratch(const void *view, const tc_spmm_args *args);
tc_status tc_spmm_bcsr_host(const void *view, const tc_spmm_args *args, void *stream);
