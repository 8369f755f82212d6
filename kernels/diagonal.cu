#include "tc_backend.h"
#include "tc_device.cuh"

constexpr int tc_diagonal_threads = 256;

/* Where the first column of a row from that one on is, or would be */
static __device__ int32_t tc_first_from(const int32_t *__restrict__ col, int32_t first, int32_t end, int32_t from)
{
  while (first < end) {
    const int32_t middle = first + (end - first) / 2;

    if (col[middle] < from) first = middle + 1;
    else end = middle;
  }
  return first;
}

/*
  tc_diagonal_kernel - the entry in column i of row i becomes diag[i], or what is given for all, or that is added to it

  Work:   a thread per row, which looks for the entry by bisection
  Lanes:  consecutive rows
  Arrays: row_ptr [num_rows + 1]; col [nnz], ascending in a row; diag [num_rows] or NULL; val [nnz]; all device
  Writes: val of the entries on the diagonal, once; nothing in a row that has none
  Launch: tc_diagonal_threads per block, no shared memory.  Needs: sm_70.  Source: bisection
*/
template <typename T>
static __global__ void __launch_bounds__(tc_diagonal_threads) tc_diagonal_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ diag, T all, bool add, T *__restrict__ val)
{
  const int32_t row = (int32_t)(blockIdx.x * (int64_t)tc_diagonal_threads + threadIdx.x);

  if (row >= num_rows) return;
  const int32_t end = row_ptr[row + 1], at = tc_first_from(col, row_ptr[row], end, row);

  if (at == end || col[at] != row) return;
  const T by = diag ? diag[row] : all;

  val[at] = add ? val[at] + by : by;
}

/*
  tc_blocks_kernel - the blocks on the diagonal, bs x bs, by rows

  Work:   a thread per row, which looks for the first entry of its block by bisection
  Lanes:  consecutive rows
  Arrays: row_ptr [num_rows + 1]; col [nnz], ascending in a row; val [nnz]; blocks [num_rows * bs]; all device
  Writes: blocks, all of it, 0 where there is no entry
  Launch: tc_diagonal_threads per block, no shared memory.  Needs: sm_70.  Source: bisection
*/
template <typename T>
static __global__ void __launch_bounds__(tc_diagonal_threads) tc_blocks_kernel(int32_t num_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ val, T *__restrict__ blocks)
{
  const int32_t row = (int32_t)(blockIdx.x * (int64_t)tc_diagonal_threads + threadIdx.x);

  if (row >= num_rows) return;
  const int32_t first = row / bs * bs, end = row_ptr[row + 1];
  int32_t       at = tc_first_from(col, row_ptr[row], end, first);

  for (int32_t k = 0; k < bs; ++k) {
    const bool there = at < end && col[at] == first + k;

    blocks[(int64_t)row * bs + k] = there ? val[at] : T(0);
    at += there;
  }
}

static int64_t blocks_for(int32_t num_rows)
{
  return ((int64_t)num_rows + tc_diagonal_threads - 1) / tc_diagonal_threads;
}

template <typename T>
static tc_status set_diagonal(const tc_csr_local *A, const void *diag, double all, int add, void *val, tc_stream stream)
{
  return tc_launch("tc_set_diagonal", tc_diagonal_kernel<T>, blocks_for(A->num_rows), tc_diagonal_threads, static_cast<cudaStream_t>(stream), A->num_rows, A->row_ptr, A->col, static_cast<const T *>(diag), static_cast<T>(all), add != 0, static_cast<T *>(val));
}

extern "C" tc_status tc_set_diagonal_cuda(const tc_csr_local *A, tc_scalar scalar, const void *diag, double all, int add, void *val, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? set_diagonal<float> : set_diagonal<double>)(A, diag, all, add, val, stream);
}

template <typename T>
static tc_status get_blocks(const tc_csr_local *A, int32_t bs, const void *val, void *blocks, tc_stream stream)
{
  return tc_launch("tc_get_blocks", tc_blocks_kernel<T>, blocks_for(A->num_rows), tc_diagonal_threads, static_cast<cudaStream_t>(stream), A->num_rows, bs, A->row_ptr, A->col, static_cast<const T *>(val), static_cast<T *>(blocks));
}

extern "C" tc_status tc_get_blocks_cuda(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *val, void *blocks, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? get_blocks<float> : get_blocks<double>)(A, bs, val, blocks, stream);
}
