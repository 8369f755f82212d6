#include "sweep_block.cuh"

constexpr int tc_block_ahead = 4, tc_block_resident = 12; // entries of a row that are looked for at once; thread blocks of a multiprocessor
constexpr int tc_block_short = 8; // entries in a triangle, on average

/*
  tc_sweep_block_kernel - one sweep over all rows with a block of vectors, see tc_sweep.h

  Work:   a warp per row and 32 columns, which waits for the elements that it reads of rows in front of it in the order. Thread blocks begin in their order, so who is waited for has begun, and nobody waits for later ones
  Lanes:  consecutive columns; entries of the row, a lane each at first, come one after the other, four looked for at a time
  Arrays: row_ptr [num_rows + 1]; col, val [nnz], ascending in a row; order, diagonal [num_rows]; b, x [num_rows, width] by rows, of which n columns count; all device
  Writes: n columns of x, all bits before, once each, an element whole
  Launch: tc_sweep_threads per block.  Needs: sm_70.
  Source: tc_sweep_kernel's; the order of operations is MatSolve_SeqAIJ()'s of PETSc
*/
template <typename T, tc_sweep_division division, bool backward>
static __global__ void __launch_bounds__(tc_sweep_threads, tc_block_resident) tc_sweep_block_kernel(tc_sweep_block_arrays<T> S)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int64_t item = (blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x) / tc_warp_size, place = item / S.pieces;

  if (place >= S.num_rows) return;
  const int32_t row = S.order[place], j = static_cast<int32_t>(item % S.pieces) * tc_warp_size + lane;
  const int32_t diagonal = S.diagonal[row], begin = backward ? diagonal + 1 : S.row_ptr[row], end = backward ? S.row_ptr[row + 1] : diagonal;
  const T       e = division == TC_SWEEP_DIVIDES_NEVER ? T(1) : tc_over(T(1), S.val[diagonal]);
  T             sum = j < S.n ? S.b[S.at(row, j)] : T(0);

  if (division == TC_SWEEP_DIVIDES_FIRST) sum = tc_times(sum, e);
  for (int32_t at = begin; at < end; at += tc_warp_size) {
    const int32_t k = at + lane, count = min(tc_warp_size, end - at), column = k < end ? S.col[k] : 0;
    const T       value = k < end ? S.val[k] : T(0);

    tc_block_elements<T, tc_block_ahead> now;

    for (int first = 0; first < count; first += tc_block_ahead) {
      now.look(S, column, first, count, j);
      now.await(S, column, first, j);
#pragma unroll
      for (int u = 0; u < tc_block_ahead; ++u) {
        const T of_entry = __shfl_sync(tc_full_warp, value, first + u);

        sum = first + u < count ? tc_plus(sum, -tc_times(of_entry, now.x[u])) : sum;
      }
    }
  }
  if (division == TC_SWEEP_DIVIDES_LAST) sum = tc_times(sum, e);
  if (j < S.n) tc_hand_over(S.x + S.at(row, j), sum);
}

template <typename T, tc_sweep_division division>
static tc_status sweep_block(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  const tc_sweep_block_arrays<T> S     = tc_sweep_block_arrays_of<T>(A, sweep, 0);
  const int64_t                  warps = tc_sweep_threads / tc_warp_size, blocks = ((int64_t)A->num_rows * S.pieces + warps - 1) / warps;

  TC_CALL(tc_sweep_block_clear<T>("tc_sweep_block", A, sweep, stream));
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

/* So many entries in a triangle that it pays to keep elements, or nodes */
static bool by_nodes(const tc_csr_local *A, const tc_sweep_block *sweep)
{
  return (sweep->pattern->node > 1 || A->nnz - A->num_rows > 2 * (int64_t)tc_block_short * A->num_rows) && sweep->pattern->node * sweep->pattern->longest <= TC_SWEEP_NODE_ROOM;
}

extern "C" tc_status tc_sweep_block_cuda(const tc_csr_local *A, const tc_sweep_block *sweep, tc_stream stream)
{
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  if (by_nodes(A, sweep)) return tc_sweep_block_nodes(A, sweep, on);
  return (sweep->scalar == TC_SCALAR_F32 ? sweep_of<float> : sweep_of<double>)(A, sweep, on);
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
