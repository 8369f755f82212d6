/*
  C = A B or C += A B, and the same with A^T, straight from CSR on the host, for tc_spmm_kernel tables. B and C column-major, any number of columns. One binary
  serves every processor: AVX-512 or AVX2 with fused multiply-add where the processor has them, portable C elsewhere; all give the same bits, those of tc_spmm.h.
*/
#pragma once
#include "../../kernels/tc_spmm.h"

/* Format "csr": the view is a tc_csr_view */
size_t    tc_spmm_csr_host_scratch(const void *view, const tc_spmm_args *args);
tc_status tc_spmm_csr_host(const void *view, const tc_spmm_args *args, void *stream);

/*
  The same with B rounded, its columns scaled by powers of two where that is necessary (kernels/tc_narrow.h), and A and all sums in double precision: the bits of the kernels
  of the same names for a device. TF32 is served by F32.
*/
size_t    tc_spmm_csr_narrow_host_scratch(const void *view, const tc_spmm_args *args);
tc_status tc_spmm_csr_f32_host(const void *view, const tc_spmm_args *args, void *stream);
tc_status tc_spmm_csr_bf16_host(const void *view, const tc_spmm_args *args, void *stream);
tc_status tc_spmm_csr_f16_host(const void *view, const tc_spmm_args *args, void *stream);

/* Format "csr_transposed": CSR of A, and where segments of its long columns end, those of TC_SPMM_SEGMENT entries and more, in the order of the rows */
typedef struct {
  tc_csr_view    csr;
  int32_t        num_long, num_ends;
  const int32_t *long_column;      // [num_long]
  const int32_t *end_row, *end_of; // [num_ends] row of the last entry; which of the long columns
} tc_csr_transposed_view;

/* B [num_rows of A, n], C [num_cols of A, n]; the bits are those of a product with the CSR of A^T */
size_t    tc_spmm_csr_transposed_host_scratch(const void *view, const tc_spmm_args *args);
tc_status tc_spmm_csr_transposed_host(const void *view, const tc_spmm_args *args, void *stream);
