#include "bittcf.cuh"
#include "row_major.cuh"

/*
  A row-major copy of B for tc_spmm_bittcf_kernel, whose lanes read one part of four rows at a time: those parts are moved within 128 bytes, by a place that depends on
  the row modulo 4, so that four neighbouring rows use different banks. A part is what a lane reads of a row: `vectors` columns. Eight of them are rotated together.
*/
template <int vectors>
struct tc_rotated {
  /* Where part `g` of row j is within its eight */
  static __device__ __forceinline__ int place(int32_t j, int g)
  {
    if constexpr (vectors == 2) return (g + 2 * j) & 7;
    else return g ^ (j & 2) << 1;
  }
  static __device__ __forceinline__ int place_of_pair(int32_t j, int pair)
  {
    if constexpr (vectors == 2) return (pair & ~7) | place(j, pair & 7);
    else return place(j, 2 * pair) / 2;
  }
};

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
  Launch: 4 warps per block, no shared memory.  Needs: sm_80, better sm_90.  Source: Zhao et al., "Acc-SpMM", PPoPP'25, sections 3 and 4 (BitTCF, swapped
          operands), in double precision
*/
/* Warps of a block, and blocks that an SM holds: what registers allow. A block waits for its widest window: more warps to a block lose more by that than they share in L1. */
constexpr int tc_tile_warps = 4;
template <int groups, int sets, int vectors>
constexpr int tc_tile_blocks = groups * sets * vectors <= 4 ? 6 : sets <= 2 ? 5 : groups == 1 ? 5 : 4;

struct tc_tile_grid {
  int32_t chunks, whole; // pieces of B; those of `sets` sets, which come before those of sets - 1
};

template <int groups, int sets, int vectors>
__device__ __forceinline__ void tc_multiply_window(const tc_bittcf &T, int32_t w, const tc_window &W, const tc_rotated_rows<vectors> &dense, const tc_dense_output &out, int lane)
{
  tc_dense_sums<vectors> sums[sets] = {};

  tc_window_product<groups, sets, vectors>(T, W, dense, lane, sums);
  tc_put_window<sets, vectors>(tc_rows_of_sums(T, w, lane), dense.first_column(), 1, 8 * vectors, out, sums);
}

template <int groups, int sets, int vectors>
static __global__ void __launch_bounds__(tc_tile_warps *tc_warp_size, tc_tile_blocks<groups, sets, vectors>) tc_spmm_bittcf_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ copy, int32_t width, const __grid_constant__ tc_tile_grid grid, const __grid_constant__ tc_dense_output out)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w = blockIdx.x / grid.chunks * tc_tile_warps + threadIdx.x / tc_warp_size, chunk = blockIdx.x % grid.chunks;
  const int32_t first = 8 * vectors * (sets * chunk - max(chunk - grid.whole, 0));

  if (w >= T.num_windows) return;
  const tc_window W = tc_load_window(T, w);

  if (chunk == 0) tc_prefetch_window<sizeof(double)>(T, w, W, lane);
  tc_wait_for_kernel_before(); // the next kernel begins when these blocks end: beside them, a turn of B is 2 to 10% of a product with few columns
  const tc_rotated_rows<vectors> dense = {reinterpret_cast<const char *>(copy + first), static_cast<uint32_t>(sizeof(double) * width), tc_mma_lane(lane).row, first};

  if (sets == 1 || chunk < grid.whole) tc_multiply_window<groups, sets, vectors>(T, w, W, dense, out, lane);
  else tc_multiply_window<groups, (sets > 1 ? sets - 1 : 1), vectors>(T, w, W, dense, out, lane);
}

/* Fewer warps than these leave a device idle (an H200's 132 multiprocessors; docs/performance-chains.md); then they take fewer columns each */
constexpr int64_t tc_few_warps[] = {0, 2048, 1500, 4000, 4000}; // by sets of 16 columns

/* How many of `total` sets of 16 columns a warp takes at most: what fits into registers, and leaves enough warps. Two and then one gain nothing. */
static int32_t tc_most_sets(const tc_bittcf *T, int32_t total)
{
  int32_t most = 4;

  while (most > 1 && (T->num_windows * (int64_t)((total + most - 1) / most) < tc_few_warps[most] || (most == 2 && total == 3))) --most;
  return most;
}

static int32_t tc_padded_columns(int32_t n)
{
  return n <= 8 ? 8 : (n + 15) / 16 * 16;
}

extern "C" size_t tc_spmm_bittcf_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_bittcf *T = static_cast<const tc_bittcf *>(view);

  return sizeof(double) * (static_cast<size_t>(T->num_cols) * tc_padded_columns(args->n) + static_cast<size_t>(tc_bittcf_num_slots(T)) * args->n);
}

/* All of a multiprocessor's memory to the L1 cache, which up to 16 columns gain by (docs/performance-waits.md, "Chains"); else the driver keeps 32 KB of it for a shared memory that is not used */
template <auto kernel>
static tc_status tc_prefer_cache(const char *name)
{
  static tc_once once;

  return once.on_present_device([&]() -> tc_status {
    TC_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1) == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "%s: no preference for the cache", name);
    return TC_OK;
  });
}

template <int groups, int sets, int vectors>
static tc_status tc_launch_tiles(const tc_bittcf *T, const double *copy, int32_t width, int32_t chunks, int32_t whole, const tc_dense_output &out, cudaStream_t stream)
{
  const int64_t  blocks = ((int64_t)T->num_windows + tc_tile_warps - 1) / tc_tile_warps * chunks;
  constexpr auto kernel = tc_spmm_bittcf_kernel<groups, sets, vectors>;

  if constexpr (sets == 1) TC_CALL(tc_prefer_cache<kernel>("tc_spmm_bittcf_f64"));
  return tc_launch_early("tc_spmm_bittcf_f64", kernel, blocks, tc_tile_warps * tc_warp_size, 0, stream, *T, copy, width, tc_tile_grid{chunks, whole}, out);
}

/* Windows of few groups end within their first steps. In others two groups are worth more than the warps whose registers they take, and four where tiles hold much or a device has room (docs/performance-chains.md). */
constexpr int tc_few_groups = 8, tc_full_group = 10;

template <int sets>
static tc_status tc_launch_sets(const tc_bittcf *T, const double *copy, int32_t width, int32_t chunks, int32_t whole, const tc_dense_output &out, cudaStream_t stream)
{
  if (T->num_groups < (int64_t)tc_few_groups * T->num_windows) return tc_launch_tiles<1, sets, 2>(T, copy, width, chunks, whole, out, stream);
  if constexpr (sets == 1) {
    if (T->num_windows * (int64_t)chunks < tc_few_warps[sets] || T->num_nonzeros >= (int64_t)tc_full_group * T->num_groups) return tc_launch_tiles<4, 1, 2>(T, copy, width, chunks, whole, out, stream);
  }
  return tc_launch_tiles<2, sets, 2>(T, copy, width, chunks, whole, out, stream);
}

static tc_status tc_launch_windows(const tc_bittcf *T, const double *copy, int32_t width, const tc_dense_output &out, cudaStream_t stream)
{
  const int32_t total = width / 16, most = tc_most_sets(T, total), chunks = (total + most - 1) / most, sets = width == 8 ? 0 : (total + chunks - 1) / chunks;
  const int32_t whole = total - chunks * (sets - 1);

  switch (sets) {
  case 0: return tc_launch_tiles<4, 1, 1>(T, copy, width, 1, 1, out, stream);
  case 1: return tc_launch_sets<1>(T, copy, width, chunks, whole, out, stream);
  case 2: return tc_launch_sets<2>(T, copy, width, chunks, whole, out, stream);
  case 3: return tc_launch_sets<3>(T, copy, width, chunks, whole, out, stream);
  default: return tc_launch_sets<4>(T, copy, width, chunks, whole, out, stream);
  }
}

/* B into the scratch */
static tc_status tc_turn(const tc_bittcf *T, const tc_spmm_args *args, int32_t width, cudaStream_t stream)
{
  constexpr const char *name = "tc_spmm_bittcf_f64";

  if (args->b_transposed) return (width == 8 ? tc_copy_rows<tc_rotated<1>> : tc_copy_rows<tc_rotated<2>>)(name, T->num_cols, width, args, stream);
  if (width == 8) return tc_turn_block<8, tc_rotated<1>>(name, T->num_cols, width, args, stream);
  if (width % 32 > 0) return tc_turn_block<16, tc_rotated<2>>(name, T->num_cols, width, args, stream);
  return tc_turn_block<32, tc_rotated<2>>(name, T->num_cols, width, args, stream);
}

extern "C" tc_status tc_spmm_bittcf_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf      *T     = static_cast<const tc_bittcf *>(view);
  const cudaStream_t    on    = static_cast<cudaStream_t>(stream);
  const int32_t         width = tc_padded_columns(args->n);
  const tc_dense_output out   = tc_output_of(T, args, args->scratch + static_cast<size_t>(T->num_cols) * width);

  TC_CALL(tc_turn(T, args, width, on));
  TC_CALL(tc_launch_windows(T, args->scratch, width, out, on));
  return tc_add_long_rows("tc_spmm_bittcf_f64", T, out, on);
}
