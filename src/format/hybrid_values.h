/*
  Takes the values csr_val [num_nonzeros], in the order of CSR, into a tc_hybrid in host memory whose VALUE arrays are allocated: sets val and the value kinds
  of all slices and segments, and the dictionary if it searches for repeated values (tc_hybrid_searches()). Always TC_OK.
*/
#pragma once
#include "../../kernels/tc_base.h"

tc_status tc_hybrid_refill_host(const void *view, const double *csr_val);

/* The order of bits as unsigned integers, for qsort() */
int tc_compare_bits(const void *a, const void *b);

/* Writes the slices that were left as F64 as codes of 16 bits, if that can be (tc_hybrid_collects()). Errors: TC_ERR_MEMORY */
tc_status tc_hybrid_collect_host(const void *view);
