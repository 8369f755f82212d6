#include "row_major.cuh"
#include "spmm_csr.cuh"

static int32_t tc_csr_width(int32_t n)
{
  return n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : 128;
}

extern "C" size_t tc_spmm_csr_scratch(const void *view, int32_t n)
{
  const tc_csr_view *A = static_cast<const tc_csr_view *>(view);

  return sizeof(double) * static_cast<size_t>(tc_csr_width(n)) * (static_cast<size_t>(A->num_cols) + A->num_segments);
}

/* Can the kernel read the transpose of B as it is? */
static bool tc_csr_in_place(const tc_spmm_args *args)
{
  return args->b_transposed && !args->b_f32 && reinterpret_cast<uintptr_t>(args->b) % sizeof(double2) == 0 && args->ldb % 2 == 0 && args->ldb <= INT32_MAX / (int32_t)sizeof(double);
}

/* The products once the rows of B are there. With short rows beside long ones more than 64 columns are 64 and the rest: streams gain more than reading A once (docs/performance-sectors.md). */
static tc_status tc_csr_product(const tc_csr_view *A, const tc_spmm_args *args, const tc_csr_rows &B, double *partial, cudaStream_t stream, bool early)
{
  constexpr int  most = 64;
  constexpr auto name = "tc_spmm_csr_f64";
  tc_spmm_args   first = *args, rest = *args;

  switch (tc_csr_width(args->n)) {
  case 8: return tc_launch_csr<TC_PRECISION_F64, 8>(name, A, args, B, partial, nullptr, stream, early);
  case 16: return tc_launch_csr<TC_PRECISION_F64, 16>(name, A, args, B, partial, nullptr, stream, early);
  case 32: return tc_launch_csr<TC_PRECISION_F64, 32>(name, A, args, B, partial, nullptr, stream, early);
  case most: return tc_launch_csr<TC_PRECISION_F64, most>(name, A, args, B, partial, nullptr, stream, early);
  default: break;
  }
  if (A->num_long == 0 || !tc_csr_in_streams<most>(A)) return tc_launch_csr<TC_PRECISION_F64, 128>(name, A, args, B, partial, nullptr, stream, early);
  first.n = most;
  rest.n -= most;
  rest.c += most * args->ldc;
  TC_CALL(tc_csr_product(A, &first, B, partial, stream, early));
  return tc_csr_product(A, &rest, {B.first + sizeof(double) * most, B.stride}, partial, stream, false);
}

template <int width>
static tc_status tc_spmm_csr_width(const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  const bool  in_place = tc_csr_in_place(args);
  tc_csr_rows B        = {reinterpret_cast<const char *>(args->scratch), sizeof(double) * width};

  if (in_place) B = {reinterpret_cast<const char *>(args->b), static_cast<uint32_t>(sizeof(double) * args->ldb)};
  else TC_CALL(tc_row_major<width>("tc_spmm_csr_f64", A->num_cols, args, stream));
  return tc_csr_product(A, args, B, args->scratch + static_cast<size_t>(width) * A->num_cols, stream, !in_place);
}

extern "C" tc_status tc_spmm_csr_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_csr_view *A = static_cast<const tc_csr_view *>(view);
  const cudaStream_t s = static_cast<cudaStream_t>(stream);

  switch (tc_csr_width(args->n)) {
  case 8: return tc_spmm_csr_width<8>(A, args, s);
  case 16: return tc_spmm_csr_width<16>(A, args, s);
  case 32: return tc_spmm_csr_width<32>(A, args, s);
  case 64: return tc_spmm_csr_width<64>(A, args, s);
  default: return tc_spmm_csr_width<128>(A, args, s);
  }
}
