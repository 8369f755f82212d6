#include "tc_backend.h"
#include "row_major.cuh"

constexpr int tc_convert_threads = 256;
constexpr int tc_convert_ahead   = 4; // loads that a thread has in flight

/*
  tc_convert_kernel - to[i + j * ld_to] = from[i + j * ld_from], widened, rounded or narrowed

  Work:   a thread block per 1024 rows and column; one column after the other if the grid has fewer
  Lanes:  consecutive rows
  Arrays: from, to column-major [rows, n]; device
  Writes: every element of `to` once
  Launch: tc_convert_threads per block, no shared memory.  Needs: sm_70.  Source: a copy
*/
template <typename From, typename To>
static __global__ void __launch_bounds__(tc_convert_threads) tc_convert_kernel(int64_t rows, int64_t n, const From *__restrict__ from, int64_t ld_from, To *__restrict__ to, int64_t ld_to)
{
  const int64_t row = (int64_t)blockIdx.x * (tc_convert_threads * tc_convert_ahead) + threadIdx.x;

  for (int64_t j = blockIdx.y; j < n; j += gridDim.y) {
    From value[tc_convert_ahead];

#pragma unroll
    for (int a = 0; a < tc_convert_ahead; ++a) value[a] = row + tc_convert_threads * a < rows ? __ldcs(from + row + tc_convert_threads * a + j * ld_from) : From(0);
#pragma unroll
    for (int a = 0; a < tc_convert_ahead; ++a) {
      if (row + tc_convert_threads * a < rows) to[row + tc_convert_threads * a + j * ld_to] = static_cast<To>(value[a]);
    }
  }
}

template <typename From, typename To>
static tc_status convert(const char *name, int64_t rows, int64_t n, const From *from, int64_t ld_from, To *to, int64_t ld_to, tc_stream stream)
{
  constexpr int     per_block = tc_convert_threads * tc_convert_ahead;
  constexpr int64_t most      = 65535; // a grid's second dimension
  const int64_t     blocks    = (rows + per_block - 1) / per_block;

  TC_CHECK(blocks <= INT32_MAX, TC_ERR_LIMIT, "%s: %lld rows", name, (long long)rows);
  return tc_launch_grid(name, tc_convert_kernel<From, To>, false, dim3((unsigned)blocks, (unsigned)(n < most ? n : most)), tc_convert_threads, 0, static_cast<cudaStream_t>(stream), rows, n, from, ld_from, to, ld_to);
}

extern "C" tc_status tc_widen_cuda(int64_t rows, int64_t n, const float *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream)
{
  return convert("tc_widen", rows, n, from, ld_from, to, ld_to, stream);
}

extern "C" tc_status tc_round_cuda(int64_t rows, int64_t n, const double *from, int64_t ld_from, float *to, int64_t ld_to, tc_stream stream)
{
  return convert("tc_round", rows, n, from, ld_from, to, ld_to, stream);
}

extern "C" tc_status tc_narrow_cuda(int64_t n, const int64_t *from, int32_t *to, tc_stream stream)
{
  return n > 0 ? convert("tc_narrow", n, 1, from, n, to, n, stream) : TC_OK;
}

/* The transpose has n rows: the fewer they are, the longer the pieces of them that a thread block turns */
extern "C" tc_status tc_turn_cuda(int32_t rows, int32_t n, const double *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream)
{
  constexpr const char *name  = "tc_turn";
  const cudaStream_t    on    = static_cast<cudaStream_t>(stream);
  const int32_t         width = static_cast<int32_t>(ld_to);

  TC_CHECK(ld_to <= INT32_MAX, TC_ERR_LIMIT, "%s: columns of %lld elements", name, (long long)ld_to);
  if (n <= 8) return tc_turn_array<256, tc_pairs_in_order>(name, n, rows, from, ld_from, width, to, on);
  if (n <= 16) return tc_turn_array<128, tc_pairs_in_order>(name, n, rows, from, ld_from, width, to, on);
  if (n <= 32) return tc_turn_array<64, tc_pairs_in_order>(name, n, rows, from, ld_from, width, to, on);
  return tc_turn_array<32, tc_pairs_in_order>(name, n, rows, from, ld_from, width, to, on);
}
