#include "sweep.cuh"

constexpr int tc_block_ahead = 8; // entries of a row that are looked for at once

template <typename T>
struct tc_sweep_block_arrays {
  int32_t        num_rows, n, width, pieces; // pieces: of a row of the block, as many columns as a warp has lanes
  const int32_t *row_ptr, *col, *order, *diagonal;
  const T       *val, *b;
  T             *x;
};

/* Elements of a lane's column in some rows, where they are there */
template <typename T>
struct tc_block_elements {
  T x[tc_block_ahead];

  /* Those that were not there before; `column`: of the warp's entries, a lane each */
  __device__ void look_again(const tc_sweep_block_arrays<T> &S, int32_t column, int first, int32_t j)
  {
#pragma unroll
    for (int u = 0; u < tc_block_ahead; ++u) {
      const int32_t row = __shfl_sync(tc_full_warp, column, first + u);

      if (tc_is_missing(x[u])) x[u] = tc_look_at(S.x + (int64_t)row * S.width + j);
    }
  }
  __device__ void look(const tc_sweep_block_arrays<T> &S, int32_t column, int first, int32_t count, int32_t j)
  {
#pragma unroll
    for (int u = 0; u < tc_block_ahead; ++u) {
      const int32_t row = __shfl_sync(tc_full_warp, column, first + u);

      x[u] = first + u < count && j < S.n ? tc_look_at(S.x + (int64_t)row * S.width + j) : T(0);
    }
  }
  __device__ bool miss() const
  {
    bool some = false;

#pragma unroll
    for (int u = 0; u < tc_block_ahead; ++u) some = some || tc_is_missing(x[u]);
    return some;
  }
};

/*
  tc_sweep_block_kernel - one sweep over all rows with a block of vectors, see tc_sweep.h

  Work:   a warp per row and 32 columns, which waits for the elements that it reads of rows in front of it in the order. Thread blocks begin in their order, so who is waited for has begun, and nobody waits for later ones
  Lanes:  consecutive columns; entries of the row, a lane each at first, come one after the other, eight looked for at a time, and the next eight while these are waited for
  Arrays: row_ptr [num_rows + 1]; col, val [nnz], ascending in a row; order, diagonal [num_rows]; b, x [num_rows, width] by rows, of which n columns count; all device
  Writes: n columns of x, all bits before, once each, an element whole
  Launch: tc_sweep_threads per block.  Needs: sm_70.
  Source: tc_sweep_kernel's; the order of operations is MatSolve_SeqAIJ()'s of PETSc
*/
template <typename T, tc_sweep_division division, bool backward>
static __global__ void __launch_bounds__(tc_sweep_threads) tc_sweep_block_kernel(tc_sweep_block_arrays<T> S)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int64_t item = (blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x) / tc_warp_size, place = item / S.pieces;

  if (place >= S.num_rows) return;
  const int32_t row = S.order[place], j = static_cast<int32_t>(item % S.pieces) * tc_warp_size + lane;
  const int32_t diagonal = S.diagonal[row], begin = backward ? diagonal + 1 : S.row_ptr[row], end = backward ? S.row_ptr[row + 1] : diagonal;
  const T       e = division == TC_SWEEP_DIVIDES_NEVER ? T(1) : tc_over(T(1), S.val[diagonal]);
  T             sum = j < S.n ? S.b[(int64_t)row * S.width + j] : T(0);

  if (division == TC_SWEEP_DIVIDES_FIRST) sum = tc_times(sum, e);
  for (int32_t at = begin; at < end; at += tc_warp_size) {
    const int32_t        k = at + lane, count = min(tc_warp_size, end - at), column = k < end ? S.col[k] : 0;
    const T              value = k < end ? S.val[k] : T(0);
    tc_block_elements<T> now, next;

    next.look(S, column, 0, count, j);
    for (int first = 0; first < count; first += tc_block_ahead) {
      now = next;
      if (first + tc_block_ahead < count) next.look(S, column, first + tc_block_ahead, count, j);
      while (__any_sync(tc_full_warp, now.miss())) {
        __nanosleep(tc_nap);
        now.look_again(S, column, first, j);
      }
#pragma unroll
      for (int u = 0; u < tc_block_ahead; ++u) {
        const T of_entry = __shfl_sync(tc_full_warp, value, first + u);

        sum = first + u < count ? tc_plus(sum, -tc_times(of_entry, now.x[u])) : sum;
      }
    }
  }
  if (division == TC_SWEEP_DIVIDES_LAST) sum = tc_times(sum, e);
  if (j < S.n) tc_hand_over(S.x + (int64_t)row * S.width + j, sum);
}

template <typename T, tc_sweep_division division>
static tc_status sweep_block(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  const tc_sweep_pattern        *P      = sweep->pattern;
  const int32_t                  pieces = (sweep->n + tc_warp_size - 1) / tc_warp_size;
  const tc_sweep_block_arrays<T> S      = {A->num_rows, sweep->n, sweep->width, pieces, A->row_ptr, A->col, P->order[sweep->backward ? 1 : 0], P->diagonal, static_cast<const T *>(sweep->val), static_cast<const T *>(sweep->b), static_cast<T *>(sweep->x)};
  const int64_t                  warps  = tc_sweep_threads / tc_warp_size, blocks = ((int64_t)A->num_rows * pieces + warps - 1) / warps;

  TC_CALL(tc_sweep_clear("tc_sweep_block", sweep->x, (size_t)A->num_rows * (size_t)sweep->width * sizeof(T), stream));
  return tc_launch_line("tc_sweep_block", sweep->backward ? tc_sweep_block_kernel<T, division, true> : tc_sweep_block_kernel<T, division, false>, false, blocks, tc_sweep_threads, 0, stream, S);
}

template <typename T>
static tc_status sweep_of(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  switch (sweep->division) {
  case TC_SWEEP_DIVIDES_FIRST:
    return sweep_block<T, TC_SWEEP_DIVIDES_FIRST>(A, sweep, stream);
  case TC_SWEEP_DIVIDES_LAST:
    return sweep_block<T, TC_SWEEP_DIVIDES_LAST>(A, sweep, stream);
  default:
    return sweep_block<T, TC_SWEEP_DIVIDES_NEVER>(A, sweep, stream);
  }
}

extern "C" tc_status tc_sweep_block_cuda(const tc_csr_local *A, const tc_sweep_block *sweep, tc_stream stream)
{
  return (sweep->scalar == TC_SCALAR_F32 ? sweep_of<float> : sweep_of<double>)(A, sweep, static_cast<cudaStream_t>(stream));
}

/* A tile of 32 x 32 elements is turned in shared memory by 256 threads */
constexpr int tc_block_tile = 32, tc_block_threads = 256, tc_block_step = tc_block_threads / tc_block_tile;

/*
  tc_block_rows_kernel - rows[j + row[i] * width] = block[i + j * ld], or of row i, or, if it `takes`, the other way round

  Work:   a thread block per 32 rows and 32 columns
  Lanes:  consecutive rows of the block, consecutive columns of its rows
  Arrays: row [num], all different, or NULL; block column-major [num, n], leading dimension ld; rows [num, width], of which n columns count; all device
  Writes: every element once
  Launch: tc_block_threads per block, 8 KiB of shared memory.  Needs: sm_70.  Source: the transposition everybody writes
*/
template <typename T, bool takes>
static __global__ void __launch_bounds__(tc_block_threads) tc_block_rows_kernel(int32_t num, const int32_t *__restrict__ row, int32_t n, T *__restrict__ block, int64_t ld, T *__restrict__ rows, int32_t width)
{
  __shared__ T  tile[tc_block_tile][tc_block_tile + 1]; // [column][row]
  const int     x = threadIdx.x % tc_block_tile, y = threadIdx.x / tc_block_tile;
  const int32_t first = blockIdx.x * tc_block_tile, j0 = blockIdx.y * tc_block_tile;

#pragma unroll
  for (int k = y; k < tc_block_tile; k += tc_block_step) {
    const int32_t i = first + (takes ? k : x), j = j0 + (takes ? x : k);

    if (i >= num || j >= n) continue;
    if (takes) tile[x][k] = rows[j + (int64_t)(row ? row[i] : i) * width];
    else tile[k][x] = block[i + j * ld];
  }
  __syncthreads();
#pragma unroll
  for (int k = y; k < tc_block_tile; k += tc_block_step) {
    const int32_t i = first + (takes ? x : k), j = j0 + (takes ? k : x);

    if (i >= num || j >= n) continue;
    if (takes) block[i + j * ld] = tile[k][x];
    else rows[j + (int64_t)(row ? row[i] : i) * width] = tile[x][k];
  }
}

template <typename T, bool takes>
static tc_status block_rows(const tc_block_rows *R, void *block, void *rows, cudaStream_t stream)
{
  const dim3 grid((unsigned)((R->num + (int64_t)tc_block_tile - 1) / tc_block_tile), (unsigned)((R->n + tc_block_tile - 1) / tc_block_tile));

  return tc_launch_grid("tc_block_rows", tc_block_rows_kernel<T, takes>, false, grid, tc_block_threads, 0, stream, R->num, R->row, R->n, static_cast<T *>(block), R->ld, static_cast<T *>(rows), R->width);
}

extern "C" tc_status tc_put_block_cuda(const tc_block_rows *R, const void *block, void *rows, tc_stream stream)
{
  void *const from = const_cast<void *>(block); // the kernel of the other direction writes it

  return (R->scalar == TC_SCALAR_F32 ? block_rows<float, false> : block_rows<double, false>)(R, from, rows, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_take_block_cuda(const tc_block_rows *R, void *block, const void *rows, tc_stream stream)
{
  void *const from = const_cast<void *>(rows);

  return (R->scalar == TC_SCALAR_F32 ? block_rows<float, true> : block_rows<double, true>)(R, block, from, static_cast<cudaStream_t>(stream));
}
