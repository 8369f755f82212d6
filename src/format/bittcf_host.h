/*
  A tc_bittcf in host memory: its values, and products over the packed arrays, the oracle of the device kernels. Products skip structural zeros, so what is not finite
  in B reaches the rows that refer to it and no other. In narrow precisions they are not the bits of the device, but within the same bound: docs/formats.md.
*/
#pragma once
#include "../../kernels/tc_bittcf.h"

/* Takes the values csr_val [num_nonzeros], in the order of CSR; val and exponent are allocated. Always TC_OK */
tc_status tc_bittcf_refill_host(const void *view, const double *csr_val);

/* For tc_spmm_kernel tables */
size_t    tc_spmm_bittcf_host_scratch(const void *view, const tc_spmm_args *args);
tc_status tc_spmm_bittcf_host(const void *view, const tc_spmm_args *args, void *stream);
