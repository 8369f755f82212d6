#include "tc_backend.h"
#include "tc_device.cuh"

constexpr int tc_graph_threads = 128, tc_graph_warp = 32;

/*
  tc_collapse_kernel - of each block of bs x bs the sum of its absolute values, row by row

  Work:   a warp per bs rows, which looks whether they consist of blocks: all with the same columns, bs after a multiple of bs each
  Lanes:  consecutive blocks; each sums up its own, so that neighbours read what lies side by side
  Arrays: row_ptr [num_rows + 1]; col, val [nnz]; sums [nnz / bs^2]; irregular [1]; all device
  Writes: sums once if there are no other rows, else some of them more than once; irregular, one, by whoever finds such rows
  Launch: tc_graph_threads per block, no shared memory.  Needs: sm_70.  Source: what PETSc's MatCreateGraph() sums, in its order
*/
template <typename T>
static __global__ void __launch_bounds__(tc_graph_threads) tc_collapse_kernel(int32_t block_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ val, T *__restrict__ sums, int32_t *__restrict__ irregular)
{
  const int64_t at   = (blockIdx.x * (int64_t)tc_graph_threads + threadIdx.x) / tc_graph_warp;
  const int     lane = threadIdx.x % tc_graph_warp;

  if (at >= block_rows) return;
  const int64_t row   = at * bs;
  const int32_t first = row_ptr[row], length = row_ptr[row + 1] - first;
  bool          regular = length % bs == 0;

  for (int32_t r = 1; r < bs; ++r) regular = regular && row_ptr[row + r + 1] - row_ptr[row + r] == length;
  for (int32_t b = lane; regular && b < length / bs; b += tc_graph_warp) {
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

/* What a warp has of the graph: a row, whose columns are every bs-th of the first of bs rows of A */
struct tc_graph_row {
  const int32_t *col;
  int64_t        first; // entry of the graph
  int32_t        length, bs;

  __device__ tc_graph_row(int64_t row, int32_t bs, const int32_t *row_ptr, const int32_t *col) : bs(bs)
  {
    const int32_t begin = row_ptr[row * bs];

    this->col = col + begin;
    first     = begin / (bs * bs);
    length    = (row_ptr[row * bs + 1] - begin) / bs;
  }
  __device__ int32_t column(int32_t b) const { return col[b * bs] / bs; }
  /* Where that column is, or where it would be */
  __device__ int32_t find(int32_t column) const
  {
    int32_t low = 0, high = length;

    while (low < high) {
      const int32_t middle = (low + high) / 2;

      if (this->column(middle) < column) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

/*
  tc_mirror_kernel - to[k] = sums[k] + sums[k'], where k' is the entry of the graph that is k's in its transpose

  Work:   a warp per row of the graph
  Lanes:  consecutive entries, each of which looks for the other one in the row of its column, by halves
  Arrays: row_ptr [num_rows + 1], col [nnz] of A; sums, to [nnz / bs^2]; lone [1]; all device
  Writes: to, once, but where there is no other entry; lone, one, by whoever finds none
  Launch: tc_graph_threads per block, no shared memory.  Needs: sm_70, columns that ascend, else nothing is found that is not there.  Source: what PETSc's MatCreateGraph() makes of a transpose and a sum
*/
template <typename T>
static __global__ void __launch_bounds__(tc_graph_threads) tc_mirror_kernel(int32_t block_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ sums, T *__restrict__ to, int32_t *__restrict__ lone)
{
  const int64_t at   = (blockIdx.x * (int64_t)tc_graph_threads + threadIdx.x) / tc_graph_warp;
  const int     lane = threadIdx.x % tc_graph_warp;

  if (at >= block_rows) return;
  const tc_graph_row row(at, bs, row_ptr, col);

  for (int32_t b = lane; b < row.length; b += tc_graph_warp) {
    const int32_t column = row.column(b);
    int64_t       other  = -1;

    if (column < block_rows) {
      const tc_graph_row mirrored(column, bs, row_ptr, col);
      const int32_t      found = mirrored.find(static_cast<int32_t>(at));

      if (found < mirrored.length && mirrored.column(found) == at) other = mirrored.first + found;
    }
    if (other >= 0) to[row.first + b] = sums[row.first + b] + sums[other];
    else *lone = 1;
  }
}

/*
  tc_scale_factors_kernel - factors[i] = sqrt(|1 / d|) for the entry d of the graph on the diagonal, 0 where it is zero or missing

  Work:   a warp per row of the graph
  Lanes:  consecutive entries, of which one is on the diagonal
  Arrays: row_ptr [num_rows + 1], col [nnz] of A; sums [nnz / bs^2]; factors [num_rows / bs]; all device
  Writes: factors once
  Launch: tc_graph_threads per block, no shared memory.  Needs: sm_70.  Source: PETSc's MatCreateGraph()
*/
template <typename T>
static __global__ void __launch_bounds__(tc_graph_threads) tc_scale_factors_kernel(int32_t block_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ sums, T *__restrict__ factors)
{
  const int64_t at   = (blockIdx.x * (int64_t)tc_graph_threads + threadIdx.x) / tc_graph_warp;
  const int     lane = threadIdx.x % tc_graph_warp;

  if (at >= block_rows) return;
  const tc_graph_row row(at, bs, row_ptr, col);
  bool               has = false;

  for (int32_t b = lane; b < row.length; b += tc_graph_warp) {
    if (row.column(b) != at || sums[row.first + b] == T(0)) continue;
    factors[at] = sqrt(fabs(T(1) / sums[row.first + b]));
    has         = true;
  }
  if (__ballot_sync(~0u, has) == 0 && lane == 0) factors[at] = T(0);
}

/*
  tc_scale_graph_kernel - sums = (sums * the row's factor) * the column's, in this order

  Work:   a warp per row of the graph
  Lanes:  consecutive entries
  Arrays: row_ptr [num_rows + 1], col [nnz] of A; factors [num_rows / bs]; sums [nnz / bs^2]; all device
  Writes: sums once
  Launch: tc_graph_threads per block, no shared memory.  Needs: sm_70, a square A.  Source: PETSc's MatDiagonalScale()
*/
template <typename T>
static __global__ void __launch_bounds__(tc_graph_threads) tc_scale_graph_kernel(int32_t block_rows, int32_t bs, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const T *__restrict__ factors, T *__restrict__ sums)
{
  const int64_t at   = (blockIdx.x * (int64_t)tc_graph_threads + threadIdx.x) / tc_graph_warp;
  const int     lane = threadIdx.x % tc_graph_warp;

  if (at >= block_rows) return;
  const tc_graph_row row(at, bs, row_ptr, col);

  for (int32_t b = lane; b < row.length; b += tc_graph_warp) sums[row.first + b] = sums[row.first + b] * factors[at] * factors[row.column(b)];
}

/* A kernel that has a warp for each row of the graph */
template <typename... Parameters, typename... Arguments>
static tc_status each_row(const char *name, void (*kernel)(int32_t, int32_t, const int32_t *, const int32_t *, Parameters...), const tc_csr_local *A, int32_t bs, tc_stream stream, Arguments... arguments)
{
  const int32_t rows   = A->num_rows / bs;
  const int64_t blocks = ((int64_t)rows * tc_graph_warp + tc_graph_threads - 1) / tc_graph_threads;

  return tc_launch(name, kernel, blocks, tc_graph_threads, static_cast<cudaStream_t>(stream), rows, bs, A->row_ptr, A->col, arguments...);
}

template <typename T>
static tc_status collapse(const tc_csr_local *A, int32_t bs, const void *val, void *sums, int32_t *irregular, tc_stream stream)
{
  return each_row("tc_collapse", tc_collapse_kernel<T>, A, bs, stream, static_cast<const T *>(val), static_cast<T *>(sums), irregular);
}

extern "C" tc_status tc_collapse_cuda(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *val, void *sums, int32_t *irregular, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? collapse<float> : collapse<double>)(A, bs, val, sums, irregular, stream);
}

template <typename T>
static tc_status mirror(const tc_csr_local *A, int32_t bs, const void *sums, void *to, int32_t *lone, tc_stream stream)
{
  return each_row("tc_mirror", tc_mirror_kernel<T>, A, bs, stream, static_cast<const T *>(sums), static_cast<T *>(to), lone);
}

extern "C" tc_status tc_mirror_cuda(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *sums, void *to, int32_t *lone, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? mirror<float> : mirror<double>)(A, bs, sums, to, lone, stream);
}

template <typename T>
static tc_status scale_graph(const tc_csr_local *A, int32_t bs, void *sums, void *factors, tc_stream stream)
{
  TC_CALL(each_row("tc_scale_factors", tc_scale_factors_kernel<T>, A, bs, stream, static_cast<const T *>(sums), static_cast<T *>(factors)));
  return each_row("tc_scale_graph", tc_scale_graph_kernel<T>, A, bs, stream, static_cast<const T *>(factors), static_cast<T *>(sums));
}

extern "C" tc_status tc_scale_graph_cuda(const tc_csr_local *A, int32_t bs, tc_scalar scalar, void *sums, void *factors, tc_stream stream)
{
  return (scalar == TC_SCALAR_F32 ? scale_graph<float> : scale_graph<double>)(A, bs, sums, factors, stream);
}
