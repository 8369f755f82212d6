#include "bittcf.cuh"

/*
  tc_rotated_rows_kernel - a row-major copy of B for tc_spmm_bittcf_kernel, whose lanes read one part of four rows at a time: those parts are moved within 128 bytes, by
  a place that depends on the row modulo 4, so that four neighbouring rows use different banks

  Work:   a thread block per 64 rows and 32 columns
  Lanes:  consecutive rows when reading, parts of a row when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb, doubles or floats; copy [rows, width], element (j, c) at the place that tc_rotated gives; all device
  Writes: every element of copy once, 0 for columns from n on
  Launch: 256 threads per block, 16.3 KB of shared memory.  Needs: sm_60.  Source: docs/performance.md, bank conflicts
*/
constexpr int tc_turn_threads = 256;
constexpr int tc_turn_rows    = 64, tc_turn_columns = 32;

/* A part is what a lane reads of a row: `vectors` columns. Eight of them are rotated together. */
template <int vectors>
struct tc_rotated {
  static constexpr int parts = 8;

  /* Where part `g` of row j is within its eight */
  static __device__ __forceinline__ int place(int32_t j, int g)
  {
    if constexpr (vectors == 2) return (g + 2 * j) & 7;
    else return g ^ (j & 2) << 1;
  }
  /* Which part is at a place */
  static __device__ __forceinline__ int part(int32_t j, int place)
  {
    if constexpr (vectors == 2) return (place - 2 * j) & 7;
    else return place ^ (j & 2) << 1;
  }
};

template <int vectors, typename number>
static __global__ void __launch_bounds__(tc_turn_threads) tc_rotated_rows_kernel(int32_t rows, int32_t n, const number *__restrict__ b, int64_t ldb, int32_t width, double *__restrict__ copy)
{
  constexpr int     warps = tc_turn_threads / tc_warp_size, columns = 8 * vectors;
  __shared__ double tile[tc_turn_columns][tc_turn_rows + 1];
  const int         lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t     row0 = tc_turn_rows * blockIdx.x, column0 = tc_turn_columns * blockIdx.y;

#pragma unroll
  for (int c = warp; c < tc_turn_columns; c += warps) {
#pragma unroll
    for (int r = lane; r < tc_turn_rows; r += tc_warp_size) tile[c][r] = row0 + r < rows && column0 + c < n ? __ldcs(b + row0 + r + (column0 + c) * ldb) : 0.0;
  }
  __syncthreads();
  for (int set = 0; set < tc_turn_columns / columns && column0 + columns * set < width; ++set) {
    for (int i = threadIdx.x; i < tc_turn_rows * tc_rotated<vectors>::parts; i += tc_turn_threads) {
      const int place = i % tc_rotated<vectors>::parts, r = i / tc_rotated<vectors>::parts, c = columns * set + vectors * tc_rotated<vectors>::part(r, place);
      double   *to    = copy + (int64_t)(row0 + r) * width + column0 + columns * set + vectors * place;

      if (row0 + r >= rows) continue;
      if constexpr (vectors == 2) *reinterpret_cast<double2 *>(to) = make_double2(tile[c][r], tile[c + 1][r]);
      else *to = tile[c][r];
    }
  }
}

/* The copy as tc_window_product() reads it: sets of 8 * vectors columns from column `first` on */
template <int vectors>
struct tc_rotated_rows {
  const char *rows; // of the first set
  uint32_t    row_bytes;
  int         g;
  int32_t     first;

  __device__ __forceinline__ void fetch(tc_dense_fragment<vectors> &b, int32_t column, int set) const
  {
    const char *part = rows + (uint64_t)static_cast<uint32_t>(column) * row_bytes + 64 * vectors * set + 8 * vectors * tc_rotated<vectors>::place(column, g);

    if constexpr (vectors == 2) {
      const double2 two = __ldg(reinterpret_cast<const double2 *>(part));

      b.x[0] = two.x;
      b.x[1] = two.y;
    } else b.x[0] = __ldg(reinterpret_cast<const double *>(part));
  }
  __device__ __forceinline__ int32_t first_column() const { return first + vectors * g; }
};

/*
  tc_spmm_bittcf_kernel - C = A B or C += A B over the windows of a tc_bittcf. Structural zeros of a tile are multiplied: what is not finite in B may reach the other
  rows of a window that refers to it.

  Work:   a warp per window and `sets` or sets - 1 times 8 * vectors columns; the warps of a block own neighbouring windows, neighbouring blocks the same windows and
          other columns
  Lanes:  see tc_window_product
  Arrays: the view; the rotated copy of B [num_cols, width]; C column-major; partial column-major; all device
  Writes: C once for each row that is not long, partial once for each segment
  Launch: 8 warps per block, no shared memory.  Needs: sm_80, better sm_90.  Source: Zhao et al., "Acc-SpMM", PPoPP'25, sections 3 and 4 (BitTCF, swapped
          operands), in double precision
*/
/* Warps of a block, and blocks that an SM holds: what registers allow, 80 or 128 to a thread */
constexpr int tc_tile_warps = 8;
template <int sets>
constexpr int tc_tile_blocks = sets <= 2 ? 3 : 2;

struct tc_tile_grid {
  int32_t chunks, whole; // pieces of B; those of `sets` sets, which come before those of sets - 1
};

template <int sets, int vectors>
__device__ __forceinline__ void tc_multiply_window(const tc_bittcf &T, int32_t w, const tc_rotated_rows<vectors> &dense, const tc_dense_output &out, int lane)
{
  tc_dense_sums<vectors> sums[sets] = {};

  tc_window_product<sets, vectors>(T, tc_load_window(T, w), dense, lane, sums);
  tc_put_window<sets, vectors>(tc_rows_of_sums(T, w, lane), dense.first_column(), 1, 8 * vectors, out, sums);
}

template <int sets, int vectors>
static __global__ void __launch_bounds__(tc_tile_warps *tc_warp_size, tc_tile_blocks<sets>) tc_spmm_bittcf_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ copy, int32_t width, const __grid_constant__ tc_tile_grid grid, const __grid_constant__ tc_dense_output out)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w = blockIdx.x / grid.chunks * tc_tile_warps + threadIdx.x / tc_warp_size, chunk = blockIdx.x % grid.chunks;
  const int32_t first = 8 * vectors * (sets * chunk - max(chunk - grid.whole, 0));

  if (w >= T.num_windows) return;
  const tc_rotated_rows<vectors> dense = {reinterpret_cast<const char *>(copy + first), static_cast<uint32_t>(sizeof(double) * width), tc_mma_lane(lane).row, first};

  if (sets == 1 || chunk < grid.whole) tc_multiply_window<sets, vectors>(T, w, dense, out, lane);
  else tc_multiply_window<(sets > 1 ? sets - 1 : 1), vectors>(T, w, dense, out, lane);
}

/* Fewer warps than this leave a device idle (unmeasured: 16 for each of 128 multiprocessors); then they take fewer columns each */
constexpr int64_t tc_few_warps = 2048;

/* How many of `total` sets of 16 columns a warp takes at most: what fits into registers, and leaves enough warps */
static int32_t tc_most_sets(const tc_bittcf *T, int32_t total)
{
  int32_t most = 4;

  while (most > 1 && T->num_windows * (int64_t)((total + most - 1) / most) < tc_few_warps) --most;
  return most;
}

static int32_t tc_padded_columns(int32_t n)
{
  return n <= 8 ? 8 : (n + 15) / 16 * 16;
}

extern "C" size_t tc_spmm_bittcf_scratch(const void *view, int32_t n)
{
  const tc_bittcf *T = static_cast<const tc_bittcf *>(view);

  return sizeof(double) * (static_cast<size_t>(T->num_cols) * tc_padded_columns(n) + static_cast<size_t>(tc_bittcf_num_slots(T)) * n);
}

template <int sets, int vectors>
static tc_status tc_launch_tiles(const tc_bittcf *T, const double *copy, int32_t width, int32_t chunks, int32_t whole, const tc_dense_output &out, cudaStream_t stream)
{
  const int64_t blocks = ((int64_t)T->num_windows + tc_tile_warps - 1) / tc_tile_warps * chunks;

  return tc_launch("tc_spmm_bittcf_f64", tc_spmm_bittcf_kernel<sets, vectors>, blocks, tc_tile_warps * tc_warp_size, stream, *T, copy, width, tc_tile_grid{chunks, whole}, out);
}

static tc_status tc_launch_windows(const tc_bittcf *T, const double *copy, int32_t width, const tc_dense_output &out, cudaStream_t stream)
{
  const int32_t total = width / 16, most = tc_most_sets(T, total), chunks = (total + most - 1) / most, sets = width == 8 ? 0 : (total + chunks - 1) / chunks;
  const int32_t whole = total - chunks * (sets - 1);

  switch (sets) {
  case 0: return tc_launch_tiles<1, 1>(T, copy, width, 1, 1, out, stream);
  case 1: return tc_launch_tiles<1, 2>(T, copy, width, chunks, whole, out, stream);
  case 2: return tc_launch_tiles<2, 2>(T, copy, width, chunks, whole, out, stream);
  case 3: return tc_launch_tiles<3, 2>(T, copy, width, chunks, whole, out, stream);
  default: return tc_launch_tiles<4, 2>(T, copy, width, chunks, whole, out, stream);
  }
}

template <int vectors, typename number>
static tc_status tc_turn(const tc_bittcf *T, const number *b, const tc_spmm_args *args, int32_t width, cudaStream_t stream)
{
  return tc_launch_grid("tc_spmm_bittcf_f64", tc_rotated_rows_kernel<vectors, number>, dim3((unsigned)((T->num_cols + tc_turn_rows - 1) / tc_turn_rows), (unsigned)((width + tc_turn_columns - 1) / tc_turn_columns)), tc_turn_threads, 0, stream, T->num_cols, args->n, b, args->ldb, width, args->scratch);
}

extern "C" tc_status tc_spmm_bittcf_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf      *T     = static_cast<const tc_bittcf *>(view);
  const cudaStream_t    on    = static_cast<cudaStream_t>(stream);
  const int32_t         width = tc_padded_columns(args->n);
  const tc_dense_output out   = tc_output_of(T, args, args->scratch + static_cast<size_t>(T->num_cols) * width);

  if (args->b_f32) TC_CALL((width == 8 ? tc_turn<1, float> : tc_turn<2, float>)(T, tc_floats_of(args), args, width, on));
  else TC_CALL((width == 8 ? tc_turn<1, double> : tc_turn<2, double>)(T, args->b, args, width, on));
  TC_CALL(tc_launch_windows(T, args->scratch, width, out, on));
  return tc_add_long_rows("tc_spmm_bittcf_f64", T, out, on);
}
