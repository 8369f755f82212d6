#include "tc_backend.h"
#include "tc_device.cuh"

/* A tile of 32 x 32 elements is turned in shared memory by 256 threads */
constexpr int tc_rows_tile = 32, tc_rows_threads = 256, tc_rows_step = tc_rows_threads / tc_rows_tile;

/*
  tc_pick_rows_kernel - to[j + i * n] = from[row[i] + j * ld], or of row i

  Work:   a thread block per 32 rows and all columns, 32 at a time
  Lanes:  consecutive rows when reading, which mostly follow each other in the block, too; consecutive columns when writing
  Arrays: row [num] or NULL; from column-major, leading dimension ld; to [num, n] by rows; all device
  Writes: every element of `to` once
  Launch: tc_rows_threads per block, 8 KiB of shared memory.  Needs: sm_70.  Source: the transposition everybody writes
*/
template <typename T>
static __global__ void __launch_bounds__(tc_rows_threads) tc_pick_rows_kernel(int64_t num, const int64_t *__restrict__ row, int64_t n, const T *__restrict__ from, int64_t ld, T *__restrict__ to)
{
  __shared__ T  tile[tc_rows_tile][tc_rows_tile + 1];
  const int     x = threadIdx.x % tc_rows_tile, y = threadIdx.x / tc_rows_tile;
  const int64_t first = (int64_t)blockIdx.x * tc_rows_tile, i = first + x, r = i >= num ? -1 : row ? row[i] : i;

  for (int64_t j = 0; j < n; j += tc_rows_tile) {
#pragma unroll
    for (int k = y; k < tc_rows_tile; k += tc_rows_step) tile[k][x] = r >= 0 && j + k < n ? from[r + (j + k) * ld] : T(0);
    __syncthreads();
#pragma unroll
    for (int k = y; k < tc_rows_tile; k += tc_rows_step) {
      if (first + k < num && j + x < n) to[j + x + (first + k) * n] = tile[x][k];
    }
    __syncthreads();
  }
}

/*
  tc_add_rows_kernel - to[row[i] + j * ld] += from[j + s * n] summed over the slots s = slot[first_slot[i]], ... of row i, in their order

  Work:   a thread block per 32 rows and all columns, 32 at a time
  Lanes:  consecutive columns when slots are read, consecutive rows when they are added
  Arrays: row [num]; first_slot [num + 1]; slot; from by rows of n; to column-major, leading dimension ld; all device
  Writes: the elements of the rows, which differ, once
  Launch: tc_rows_threads per block, 8 KiB of shared memory.  Needs: sm_70.  Source: as above
*/
template <typename T>
static __global__ void __launch_bounds__(tc_rows_threads) tc_add_rows_kernel(int64_t num, const int64_t *__restrict__ row, const int64_t *__restrict__ first_slot, const int64_t *__restrict__ slot, int64_t n, const T *__restrict__ from, T *__restrict__ to, int64_t ld)
{
  __shared__ T  tile[tc_rows_tile][tc_rows_tile + 1];
  const int     x = threadIdx.x % tc_rows_tile, y = threadIdx.x / tc_rows_tile;
  const int64_t first = (int64_t)blockIdx.x * tc_rows_tile, i = first + x, r = i < num ? row[i] : -1;

  for (int64_t j = 0; j < n; j += tc_rows_tile) {
    for (int k = y; k < tc_rows_tile && first + k < num; k += tc_rows_step) {
      const int64_t begin = first_slot[first + k], end = first_slot[first + k + 1];

      if (j + x >= n) continue;
      T sum = from[j + x + slot[begin] * n];

      for (int64_t s = begin + 1; s < end; ++s) sum += from[j + x + slot[s] * n];
      tile[x][k] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = y; k < tc_rows_tile; k += tc_rows_step) {
      if (r >= 0 && j + k < n) to[r + (j + k) * ld] += tile[k][x];
    }
    __syncthreads();
  }
}

static int64_t blocks_for(int64_t num)
{
  return (num + tc_rows_tile - 1) / tc_rows_tile;
}

template <typename T>
static tc_status pick_rows(int64_t num, const int64_t *row, int64_t n, const void *from, int64_t ld, void *to, tc_stream stream)
{
  return tc_launch("tc_pick_rows", tc_pick_rows_kernel<T>, blocks_for(num), tc_rows_threads, static_cast<cudaStream_t>(stream), num, row, n, static_cast<const T *>(from), ld, static_cast<T *>(to));
}

extern "C" tc_status tc_pick_rows_cuda(int64_t num, const int64_t *row, int64_t n, tc_scalar scalar, const void *from, int64_t ld, void *to, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? pick_rows<float> : pick_rows<double>)(num, row, n, from, ld, to, stream);
}

template <typename T>
static tc_status add_rows(int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, int64_t n, const void *from, void *to, int64_t ld, tc_stream stream)
{
  return tc_launch("tc_add_rows", tc_add_rows_kernel<T>, blocks_for(num), tc_rows_threads, static_cast<cudaStream_t>(stream), num, row, first_slot, slot, n, static_cast<const T *>(from), static_cast<T *>(to), ld);
}

extern "C" tc_status tc_add_rows_cuda(int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, int64_t n, tc_scalar scalar, const void *from, void *to, int64_t ld, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? add_rows<float> : add_rows<double>)(num, row, first_slot, slot, n, from, to, ld, stream);
}
