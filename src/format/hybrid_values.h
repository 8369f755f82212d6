/*
  Takes the values csr_val [num_nonzeros], in the order of CSR, into a tc_hybrid in host memory whose VALUE arrays are allocated: sets val and the value kinds
  of all slices and segments, and the dictionary if it searches for repeated values (tc_hybrid_searches()). Always TC_OK.
*/
#pragma once
#include "../../kernels/tc_base.h"

tc_status tc_hybrid_refill_host(const void *view, const double *csr_val);
