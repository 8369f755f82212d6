#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cub/device/device_radix_sort.cuh>

/*
  The transpose of a pattern: its entries are sorted by column, stably, so that the rows of A^T keep the order of the rows of A, and gathers of values through the
  permutation that comes out.
*/
constexpr int tc_transpose_threads = 256;

static int64_t blocks_for(int64_t n)
{
  return (n + tc_transpose_threads - 1) / tc_transpose_threads;
}

/*
  tc_transpose_number_kernel - entry[i] = i

  Work:   one entry per thread
  Lanes:  consecutive entries
  Arrays: entry [n]; device
  Writes: every element once
  Launch: tc_transpose_threads per block, no shared memory.  Needs: sm_70.  Source: transposition by a stable sort of the columns, as everybody writes it
*/
static __global__ void __launch_bounds__(tc_transpose_threads) tc_transpose_number_kernel(int64_t n, int32_t *__restrict__ entry)
{
  const int64_t i = (int64_t)blockIdx.x * tc_transpose_threads + threadIdx.x;

  if (i < n) entry[i] = static_cast<int32_t>(i);
}

/*
  tc_transpose_rows_kernel - the row of each entry

  Work:   one row per warp
  Lanes:  consecutive entries of the row
  Arrays: row_ptr [num_rows + 1]; row [nnz]; all device
  Writes: every element of row once
  Launch: tc_transpose_threads per block, no shared memory.  Needs: sm_70.  Source: transposition by a stable sort of the columns, as everybody writes it
*/
static __global__ void __launch_bounds__(tc_transpose_threads) tc_transpose_rows_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, int32_t *__restrict__ row)
{
  const int64_t i = ((int64_t)blockIdx.x * tc_transpose_threads + threadIdx.x) / tc_warp_size;

  if (i >= num_rows) return;
  const int64_t end = row_ptr[i + 1];

  for (int64_t e = (int64_t)row_ptr[i] + threadIdx.x % tc_warp_size; e < end; e += tc_warp_size) row[e] = static_cast<int32_t>(i);
}

/*
  tc_transpose_row_ptr_kernel - where the rows of A^T begin: the first place whose column is not below theirs

  Work:   one row of A^T per thread, and one more for the end
  Lanes:  consecutive rows
  Arrays: sorted [nnz], the columns of A in ascending order; t_row_ptr [num_cols + 1]; all device
  Writes: every element of t_row_ptr once
  Launch: tc_transpose_threads per block, no shared memory.  Needs: sm_70.  Source: transposition by a stable sort of the columns, as everybody writes it
*/
static __global__ void __launch_bounds__(tc_transpose_threads) tc_transpose_row_ptr_kernel(int32_t num_cols, int64_t nnz, const int32_t *__restrict__ sorted, int32_t *__restrict__ t_row_ptr)
{
  const int64_t j   = (int64_t)blockIdx.x * tc_transpose_threads + threadIdx.x;
  int64_t       low = 0, high = nnz;

  if (j > num_cols) return;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;

    if (sorted[middle] < j) low = middle + 1;
    else high = middle;
  }
  t_row_ptr[j] = static_cast<int32_t>(low);
}

/*
  tc_gather_kernel - to[i] = from[perm[i]]

  Work:   one element per thread
  Lanes:  consecutive elements, so perm and `to` coalesce
  Arrays: perm, to [n]; from; all device
  Writes: every element of `to` once
  Launch: tc_transpose_threads per block, no shared memory.  Needs: sm_70.  Source: transposition by a stable sort of the columns, as everybody writes it
*/
template <typename T>
static __global__ void __launch_bounds__(tc_transpose_threads) tc_gather_kernel(int64_t n, const int32_t *__restrict__ perm, const T *__restrict__ from, T *__restrict__ to)
{
  const int64_t i = (int64_t)blockIdx.x * tc_transpose_threads + threadIdx.x;

  if (i < n) to[i] = __ldg(from + tc_load_stream(perm + i));
}

/* Bits that tell columns 0 .. num_cols - 1 apart, at least 1 */
static int bits_of_columns(int32_t num_cols)
{
  int bits = 1;

  while (bits < 31 && (num_cols - 1) >> bits > 0) ++bits;
  return bits;
}

/* See tc_build.cuh */
tc_status tc_order_by_keys(const char *name, const int32_t *keys, int64_t num, int32_t most, int32_t *sorted, int32_t *numbers, int32_t *order, void *cub, size_t *bytes, cudaStream_t stream)
{
  if (cub) TC_CALL(tc_launch(name, tc_transpose_number_kernel, blocks_for(num), tc_transpose_threads, stream, num, numbers));
  return tc_cuda(name, cub::DeviceRadixSort::SortPairs(cub, *bytes, keys, sorted, numbers, order, static_cast<int>(num), 0, bits_of_columns(most), stream));
}

/* `sorted` and `entry` [nnz] are scratch, and so are the `bytes` at `cub` */
static tc_status transpose(const tc_csr_local *A, int32_t *t_row_ptr, int32_t *t_col, int32_t *perm, int32_t *sorted, int32_t *entry, void *cub, size_t bytes, cudaStream_t stream)
{
  constexpr int rows_per_block = tc_transpose_threads / tc_warp_size;

  TC_CALL(tc_order_by_keys("tc_transpose: sort", A->col, A->nnz, A->num_cols, sorted, entry, perm, cub, &bytes, stream));
  TC_CALL(tc_launch("tc_transpose_row_ptr", tc_transpose_row_ptr_kernel, blocks_for((int64_t)A->num_cols + 1), tc_transpose_threads, stream, A->num_cols, A->nnz, sorted, t_row_ptr));
  TC_CALL(tc_launch("tc_transpose_rows", tc_transpose_rows_kernel, ((int64_t)A->num_rows + rows_per_block - 1) / rows_per_block, tc_transpose_threads, stream, A->num_rows, A->row_ptr, entry));
  return tc_launch("tc_transpose_gather", tc_gather_kernel<int32_t>, blocks_for(A->nnz), tc_transpose_threads, stream, A->nnz, perm, entry, t_col);
}

extern "C" tc_status tc_transpose_cuda(const tc_csr_local *A, int32_t *t_row_ptr, int32_t *t_col, int32_t *perm, tc_stream stream)
{
  const cudaStream_t on      = static_cast<cudaStream_t>(stream);
  const size_t       entries = (A->nnz * sizeof(int32_t) + 255) / 256 * 256;
  size_t             bytes   = 0;
  void              *memory;
  tc_status          status;

  if (A->nnz == 0) return tc_cuda("tc_transpose: zeroing", cudaMemsetAsync(t_row_ptr, 0, ((size_t)A->num_cols + 1) * sizeof *t_row_ptr, on));
  TC_CALL(tc_order_by_keys("tc_transpose: size of scratch", A->col, A->nnz, A->num_cols, t_col, perm, perm, nullptr, &bytes, on));
  TC_CALL(tc_memory_take(2 * entries + bytes, &memory, on));
  char *scratch       = static_cast<char *>(memory);
  status              = transpose(A, t_row_ptr, t_col, perm, reinterpret_cast<int32_t *>(scratch), reinterpret_cast<int32_t *>(scratch + entries), scratch + 2 * entries, bytes, on);
  const tc_status end = tc_memory_give(memory, on);

  return status == TC_OK ? end : status;
}

template <typename T>
static tc_status gather(int64_t n, const int32_t *perm, const void *from, void *to, tc_stream stream)
{
  return tc_launch("tc_gather", tc_gather_kernel<T>, blocks_for(n), tc_transpose_threads, static_cast<cudaStream_t>(stream), n, perm, static_cast<const T *>(from), static_cast<T *>(to));
}

extern "C" tc_status tc_gather_cuda(int64_t n, const int32_t *perm, tc_scalar scalar, const void *from, void *to, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? gather<float> : gather<double>)(n, perm, from, to, stream);
}

/* CUB has kernels for few entries and for many: two patterns of one row without entries, whose columns are all 0, go through all of them */
extern "C" tc_status tc_load_transpose(tc_scalar scalar)
{
  constexpr int64_t  most   = 1 << 15;
  const cudaStream_t stream = cudaStreamPerThread;
  void              *memory;
  tc_status          status = tc_load("tc_gather", scalar == TC_SCALAR_F32 ? reinterpret_cast<const void *>(tc_gather_kernel<float>) : reinterpret_cast<const void *>(tc_gather_kernel<double>));

  TC_CALL(status);
  TC_CALL(tc_memory_take((3 * most + 4) * sizeof(int32_t), &memory, stream));
  int32_t *zero = static_cast<int32_t *>(memory), *written = zero + most + 2;

  status = tc_cuda("tc_transpose: zeroing", cudaMemsetAsync(zero, 0, (most + 2) * sizeof *zero, stream));
  for (const int64_t entries : {int64_t(1), most}) {
    const tc_csr_local A = {1, 1, entries, zero, zero + 2, 0, TC_PRECISION_F64, nullptr};

    if (status == TC_OK) status = tc_transpose_cuda(&A, written, written + 2, written + 2 + most, stream);
  }
  const tc_status given = tc_memory_give(memory, stream);

  TC_CALL(status);
  TC_CALL(given);
  return tc_cuda("tc_transpose: warming up", cudaStreamSynchronize(stream));
}
