/*
  The end of long rows in products with dense blocks: the sums of their segments, added in ascending order.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_spmm.h"
#include <type_traits>

/* The last step of an element of C. Adding +0.0 turns -0.0 into +0.0, so that the result does not tell how many structural zeros were multiplied. */
__device__ __forceinline__ void tc_finish_element(double sum, double *c, bool add)
{
  sum = __dadd_rn(sum, 0.0);
  *c  = add ? __dadd_rn(*c, sum) : sum;
}

/* The same for C in single precision, which nothing is added to */
__device__ __forceinline__ void tc_finish_element(double sum, float *c)
{
  *c = static_cast<float>(__dadd_rn(sum, 0.0));
}

/* Sums of segments of long rows, and what becomes of them: C[row[r], j] is the sum of sum[s * width + j] over segments s = per * first[r] .. per * first[r + 1] - 1 */
template <typename number>
struct tc_segment_sums {
  int32_t        num_rows, per;
  const int32_t *row, *first; // [num_rows], [num_rows + 1]
  const double  *sum;         // row-major [segments, width]
  int32_t        width, n;
  number        *c; // column-major; row-major if it is in single precision
  int64_t        ldc;
  bool           add; // in double precision

  __device__ __forceinline__ int32_t num(int32_t r) const { return per * (first[r + 1] - first[r]); }
  __device__ __forceinline__ const double *of(int32_t r) const { return sum + (int64_t)per * first[r] * width; }
  __device__ __forceinline__ void put(int32_t r, int32_t j, double total) const
  {
    if constexpr (std::is_same_v<number, float>) tc_finish_element(total, c + row[r] * ldc + j);
    else tc_finish_element(total, c + row[r] + j * ldc, add);
  }
};

/*
  `sum` and then the first `num` of `sums`, `stride` doubles apart, no more than `ahead`, all in flight: loads without conditions leave together, so beyond the last one that is loaded again. An addition that is left out
  takes no time, one that is made and not taken is two selections in the chain.
*/
template <int ahead>
__device__ __forceinline__ double tc_add_sums(double sum, const double *sums, int32_t num, int64_t stride)
{
  double next[ahead];

#pragma unroll
  for (int i = 0; i < ahead; ++i) next[i] = __ldcg(sums + min(i, num - 1) * stride);
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i < num) sum = __dadd_rn(sum, next[i]);
  }
  return sum;
}

/* The sum of `num` sums, `stride` doubles apart, that this kernel or one before has written */
__device__ __forceinline__ double tc_sum_of_segments(const double *sums, int32_t num, int64_t stride)
{
  constexpr int few = 8, many = 16;
  double        sum = 0.0;

  if (num <= few) return tc_add_sums<few>(sum, sums, num, stride);
#pragma unroll 1
  for (int32_t s = 0; s < num; s += many) sum = tc_add_sums<many>(sum, sums + s * stride, num - s, stride);
  return sum;
}

/* Element j of long row r */
template <typename number>
__device__ __forceinline__ void tc_add_segments_of(const tc_segment_sums<number> &S, int32_t r, int32_t j)
{
  S.put(r, j, tc_sum_of_segments(S.of(r) + j, S.num(r), S.width));
}

constexpr int tc_add_threads = 128;

/*
  tc_add_segments_kernel - the long rows of C from the sums of their segments

  Work:   an element of C per thread
  Lanes:  consecutive columns, so the sums coalesce
  Arrays: see tc_segment_sums; all device
  Writes: the long rows of C
  Launch: 128 threads per block, no shared memory.  Needs: sm_70.  Source: tc_spmm.h, the order of the additions
*/
template <typename number>
static __global__ void __launch_bounds__(tc_add_threads, 8) tc_add_segments_kernel(const __grid_constant__ tc_segment_sums<number> S)
{
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int32_t r = (int32_t)(element / S.width), j = (int32_t)(element % S.width);

  tc_wait_for_kernel_before();
  if (r >= S.num_rows || j >= S.n) return;
  tc_add_segments_of(S, r, j);
}

/*
  tc_add_many_segments_kernel - the same where rows have many segments: hundreds of sums one after the other should not wait for memory

  Work:   a thread block per long row and 8 columns: all threads bring 128 sums for each column to shared memory, while the 8 threads of the columns add up those before
  Lanes:  8 consecutive columns, then consecutive segments
  Arrays: see tc_segment_sums; all device
  Writes: the long rows of C
  Launch: 128 threads per block, 16 KB of shared memory.  Needs: sm_70.  Source: tc_spmm.h, the order of the additions
*/
constexpr int tc_add_columns = 8, tc_add_piece = 128; // segments

template <typename number>
static __global__ void __launch_bounds__(tc_add_threads) tc_add_many_segments_kernel(const __grid_constant__ tc_segment_sums<number> S)
{
  constexpr int     apart = tc_add_threads / tc_add_columns, own = tc_add_piece / apart;
  __shared__ double piece[2][tc_add_piece][tc_add_columns];
  const int         column = threadIdx.x % tc_add_columns, segment = threadIdx.x / tc_add_columns;
  const int32_t     r = blockIdx.x, j = tc_add_columns * blockIdx.y + column, num = S.num(r);
  const double     *mine = S.of(r) + min(j, S.width - 1);
  double            sum  = 0.0, next[own];

#pragma unroll
  for (int i = 0; i < own; ++i) next[i] = mine[(int64_t)min(segment + apart * i, num - 1) * S.width];
  for (int32_t s = 0, turn = 0; s < num; s += tc_add_piece, turn ^= 1) {
#pragma unroll
    for (int i = 0; i < own; ++i) piece[turn][segment + apart * i][column] = next[i];
    __syncthreads(); // also: what is overwritten in the next turn has been added up
#pragma unroll
    for (int i = 0; i < own; ++i) next[i] = mine[(int64_t)min(s + tc_add_piece + segment + apart * i, num - 1) * S.width];
    if (threadIdx.x < tc_add_columns) {
      const int end = min(num - s, tc_add_piece);

#pragma unroll 16
      for (int i = 0; i < end; ++i) sum = __dadd_rn(sum, piece[turn][i][column]);
    }
  }
  if (threadIdx.x < tc_add_columns && j < S.n) S.put(r, j, sum);
}

/* By the mean number of segments; `num_segments` counts those of all rows. The kernel for few of them starts early: behind the one that sums the segments */
template <typename number>
static inline tc_status tc_add_segments(const char *name, const tc_segment_sums<number> &S, int64_t num_segments, cudaStream_t stream)
{
  constexpr int many = 48;

  if (S.num_rows > 0 && num_segments >= (int64_t)many * S.num_rows) return tc_launch_grid(name, tc_add_many_segments_kernel<number>, false, dim3((unsigned)S.num_rows, (unsigned)((S.n + tc_add_columns - 1) / tc_add_columns)), tc_add_threads, 0, stream, S);
  return tc_launch_early(name, tc_add_segments_kernel<number>, ((int64_t)S.num_rows * S.width + tc_add_threads - 1) / tc_add_threads, tc_add_threads, 0, stream, S);
}
