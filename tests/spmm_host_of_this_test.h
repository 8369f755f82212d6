/*
  src/plan/spmm_host.c inside of a test, for the loops of every instruction set. Its public names differ from those of the library.
*/
#pragma once
#define tc_spmm_csr_host tc_spmm_csr_host_of_this_test
#define tc_spmm_csr_host_scratch tc_spmm_csr_host_scratch_of_this_test
#define tc_spmm_csr_transposed_host tc_spmm_csr_transposed_host_of_this_test
#define tc_spmm_csr_transposed_host_scratch tc_spmm_csr_transposed_host_scratch_of_this_test
#define tc_spmm_csr_narrow_host_scratch tc_spmm_csr_narrow_host_scratch_of_this_test
#define tc_spmm_csr_f32_host tc_spmm_csr_f32_host_of_this_test
#define tc_spmm_csr_bf16_host tc_spmm_csr_bf16_host_of_this_test
#define tc_spmm_csr_f16_host tc_spmm_csr_f16_host_of_this_test
#include "../src/plan/spmm_host.c"
