#include "tc_backend.h"
#include "tc_device.cuh"

constexpr int tc_diagonal_threads = 256;

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
  const int32_t end   = row_ptr[row + 1];
  int32_t       first = row_ptr[row], last = end; // where the first column from `row` on may be

  while (first < last) {
    const int32_t middle = first + (last - first) / 2;

    if (col[middle] < row) first = middle + 1;
    else last = middle;
  }
  if (first == end || col[first] != row) return;
  const T by = diag ? diag[row] : all;

  val[first] = add ? val[first] + by : by;
}

template <typename T>
static tc_status set_diagonal(const tc_csr_local *A, const void *diag, double all, int add, void *val, tc_stream stream)
{
  const int64_t blocks = ((int64_t)A->num_rows + tc_diagonal_threads - 1) / tc_diagonal_threads;

  return tc_launch("tc_set_diagonal", tc_diagonal_kernel<T>, blocks, tc_diagonal_threads, static_cast<cudaStream_t>(stream), A->num_rows, A->row_ptr, A->col, static_cast<const T *>(diag), static_cast<T>(all), add != 0, static_cast<T *>(val));
}

extern "C" tc_status tc_set_diagonal_cuda(const tc_csr_local *A, tc_scalar scalar, const void *diag, double all, int add, void *val, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? set_diagonal<float> : set_diagonal<double>)(A, diag, all, add, val, stream);
}
