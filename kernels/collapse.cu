#include "tc_backend.h"
#include "tc_device.cuh"

constexpr int tc_collapse_threads = 128, tc_collapse_warp = 32;

/*
  tc_collapse_kernel - of each block of bs x bs the sum of its absolute values, row by row

  Work:   a warp per bs rows, which looks whether they consist of blocks: all with the same columns, bs after a multiple of bs each
  Lanes:  consecutive blocks; each sums up its own, so that neighbours read what lies side by side
  Arrays: row_ptr [num_rows + 1]; col, val [nnz]; sums [nnz / bs^2]; irregular [1]; all device
  Writes: sums once if there are no other rows, else some of them more than once; irregular, one, by whoever finds such rows
  Launch: tc_collapse_threads per block, no shared memory.  Needs: sm_70.  Source: what PETSc's MatCreateGraph() sums, in its order
*/
template <typename T>
static __global__ void __launch_bounds__(tc_collapse_threads) tc_collapse_kernel(int32_t block_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ val, T *__restrict__ sums, int32_t *__restrict__ irregular)
{
  const int64_t at   = (blockIdx.x * (int64_t)tc_collapse_threads + threadIdx.x) / tc_collapse_warp;
  const int     lane = threadIdx.x % tc_collapse_warp;

  if (at >= block_rows) return;
  const int64_t row   = at * bs;
  const int32_t first = row_ptr[row], length = row_ptr[row + 1] - first;
  bool          regular = length % bs == 0;

  for (int32_t r = 1; r < bs; ++r) regular = regular && row_ptr[row + r + 1] - row_ptr[row + r] == length;
  for (int32_t b = lane; regular && b < length / bs; b += tc_collapse_warp) {
    const int32_t column = col[first + b * bs];
    T             sum    = 0;

    regular = column % bs == 0;
    for (int32_t r = 0; r < bs; ++r) {
      const int64_t from = (int64_t)first + (int64_t)r * length + (int64_t)b * bs;

      for (int32_t c = 0; c < bs; ++c) {
        regular = regular && col[from + c] == column + c;
        sum += fabs(val[from + c]);
      }
    }
    sums[first / (bs * bs) + b] = sum;
  }
  if (!regular) *irregular = 1;
}

template <typename T>
static tc_status collapse(const tc_csr_local *A, int32_t bs, const void *val, void *sums, int32_t *irregular, tc_stream stream)
{
  const int32_t rows   = A->num_rows / bs;
  const int64_t blocks = ((int64_t)rows * tc_collapse_warp + tc_collapse_threads - 1) / tc_collapse_threads;

  return tc_launch("tc_collapse", tc_collapse_kernel<T>, blocks, tc_collapse_threads, static_cast<cudaStream_t>(stream), rows, bs, A->row_ptr, A->col, static_cast<const T *>(val), static_cast<T *>(sums), irregular);
}

extern "C" tc_status tc_collapse_cuda(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *val, void *sums, int32_t *irregular, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? collapse<float> : collapse<double>)(A, bs, val, sums, irregular, stream);
}
