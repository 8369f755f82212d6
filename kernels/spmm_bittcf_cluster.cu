#include "bittcf_cluster_f64.cuh"
#include "bittcf_ring.cuh"

/*
  tc_spmm_bittcf_cluster_kernel - C = A B or C += A B over the clusters of a tc_bittcf with 16 small windows each. Each warp holds the tiles of a window in registers for all
  columns of B; the rows of B that the windows of a cluster share come into shared memory, 16 columns at a time, straight from column-major B and ahead of their use. Structural
  zeros are multiplied, see tc_spmm_bittcf_kernel.

  Work:   a thread block per cluster, a warp per window
  Lanes:  pairs of rows of B when copying; then lane 4 g + k has columns c and c + 2 of B, c by tc_staged_column<2>(g), row k of a group, and element (k, g) of its tile
  Arrays: the view; B, C column-major; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster; args.stages buffers of shared memory.  Needs: sm_80, better sm_90.  Source: tc_bittcf.h; the condensed tiles of Zhao et
          al., "Acc-SpMM", PPoPP'25; the asynchronous pipeline of dense products
*/
constexpr int tc_cluster_threads = 16 * tc_warp_size;
static_assert(2 * TC_BITTCF_MOST_FOURS <= tc_cluster_threads, "a thread brings a pair of rows of B");

template <bool aligned>
static __global__ void __launch_bounds__(tc_cluster_threads, tc_held_blocks<TC_BITTCF_FEW_GROUPS>) tc_spmm_bittcf_cluster_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_cluster_args args, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ __align__(16) uint2          listed[tc_cluster_threads / tc_warp_size][tc_listed_groups<TC_BITTCF_FEW_GROUPS>];
  const int            lane = threadIdx.x % tc_warp_size, own = tc_staged_column<2>(tc_mma_lane(lane).row);
  const int32_t        cluster = blockIdx.x, w = cluster * T.cluster_windows + threadIdx.x / tc_warp_size, v = min(w, T.num_windows - 1);
  const tc_window      W           = tc_load_window(T, v);
  const uint32_t       place_first = __ldg(T.place_first + v);
  const int2           rows = w == v ? tc_rows_of_sums(T, v, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
  const int32_t        num_groups = w == v ? W.num_groups() : 0;
  const uint32_t       size = args.size, bottom = static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), top = bottom + args.stages * size;
  const double        *b = args.b;
  tc_pieces<1>         pieces;
  uint32_t             staged = bottom, unused = top - size;
  tc_held_window<TC_BITTCF_FEW_GROUPS, 0> tiles;
  tc_held_masks<TC_BITTCF_FEW_GROUPS>     masks;

  pieces.find(T, cluster, threadIdx.x, tc_cluster_threads, aligned);
  pieces.between_kernels();
  const auto stage = [&](uint32_t buffer, int32_t columns) {
    if (pieces.row[0] >= 0) tc_stage_piece<aligned>(args, pieces.get(T, 0), b + pieces.row[0], buffer + args.begin + 16 * threadIdx.x, columns);
    tc_copies_end();
    b += tc_stage_columns * args.ldb;
  };
#pragma unroll 1
  for (int32_t s = 0; s < args.stages - 1; ++s) stage(bottom + s * size, out.n - tc_stage_columns * s);
  if (num_groups > 0) {
    masks.load(T, W, lane);
    tiles.load_places(T, W, place_first, lane);
    masks.count(W, lane);
    masks.put(listed[threadIdx.x / tc_warp_size], lane);
    __syncwarp();
    tiles.load_values(T, num_groups, static_cast<uint32_t>(__cvta_generic_to_shared(listed[threadIdx.x / tc_warp_size])), lane);
  }
  tc_prefetch_cluster(T, cluster + args.resident, lane, [&](int32_t later, const tc_window &L) { tc_prefetch_window<sizeof(double)>(T, later, L, lane); });
  const tc_put_kind kind = tc_put_kind_of<aligned>(out, rows, lane);
  double           *to   = out.c + rows.x + own * out.ldc;

#pragma unroll 1
  for (int32_t first = 0; first < out.n; first += tc_stage_columns, to += tc_stage_columns * out.ldc) {
    tc_mma_tall_accumulator sums[1] = {};

    tc_copies_done_but(args.stages - 2);
    __syncthreads();
    stage(unused, out.n - first - tc_stage_columns * (args.stages - 1));
    if (num_groups > 0) tiles.multiply(num_groups, staged + tc_staged_at(args, own), args.pitch, sums[0]);
    tc_put_stage<aligned, 2>(rows, first, kind, to, out, sums);
    unused = staged;
    staged = staged + size == top ? bottom : staged + size;
  }
}

template <bool aligned>
static tc_status tc_launch_clusters(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr auto    kernel = tc_spmm_bittcf_cluster_kernel<aligned>;
  tc_cluster_args   fitted = tc_cluster_args_of<2>(T, args);
  tc_cluster_launch launch;

  TC_CALL(tc_allow_shared<kernel>(name));
  TC_CALL(tc_fit_clusters(name, tc_held_blocks<TC_BITTCF_FEW_GROUPS>, static_cast<int>(fitted.size), tc_cluster_threads / tc_warp_size * tc_listed_bytes<TC_BITTCF_FEW_GROUPS>, &launch));
  fitted.take(launch);
  return tc_launch_line(name, kernel, true, T->num_clusters, tc_cluster_threads, launch.bytes, stream, *T, fitted, tc_output_of(T, args, nullptr));
}

/* Can two thread blocks of a multiprocessor hold a cluster each? */
static bool tc_windows_are_small(const tc_bittcf *T)
{
  return T->cluster_windows == 16 && T->widest_window <= TC_BITTCF_FEW_GROUPS;
}

/* Shared memory of two buffers for that many columns and of what goes with them, whatever B is */
static inline int tc_cluster_most_bytes(const tc_bittcf *T, int columns)
{
  constexpr int sector = 32, more = sector - static_cast<int>(sizeof(double));
  constexpr int of_warps = 16 * tc_listed_bytes<TC_BITTCF_FEWER_GROUPS>;

  static_assert(of_warps >= 12 * tc_listed_bytes<TC_BITTCF_MOST_GROUPS> && of_warps >= TC_BITTCF_FEWEST_WINDOWS * tc_listed_bytes<TC_BITTCF_MORE_GROUPS>, "as much as any number of warps has");
  return 2 * (more + columns * (sector * (T->widest_cluster | 1) + more) + columns / 4 * sector + sector) + tc_ring_bytes + of_warps;
}

/*
  Clusters save what their windows share of B, and the copy of B; a warp of tc_spmm_bittcf_kernel has less to wait for. That decides with up to 32 columns where windows are as soon done as the
  5 groups of interpolation:40 (docs/performance-sectors.md, "Producers and consumers"; docs/performance-waits.md), unless all clusters are multiplied at the same time. Not where a device has too
  little shared memory for two buffers.
*/
constexpr int32_t tc_soon_done = 8, tc_few_clusters = 64;

extern "C" int tc_spmm_bittcf_cluster_suits(const void *view, int32_t n)
{
  const tc_bittcf      *T = static_cast<const tc_bittcf *>(view);
  const tc_device_size *size;

  if (T->num_clusters == 0 || T->precision != TC_PRECISION_F64) return 0;
  if (tc_size_of_device("tc_spmm_bittcf_cluster_suits", &size) != TC_OK || tc_cluster_most_bytes(T, n <= 8 && !tc_windows_are_small(T) ? 8 : 16) > size->block_bytes) return 0;
  return !tc_windows_are_small(T) || T->widest_window > tc_soon_done || T->num_clusters <= tc_few_clusters || n > 32;
}

extern "C" size_t tc_spmm_bittcf_cluster_scratch(const void *, int32_t)
{
  return 0;
}

extern "C" tc_status tc_spmm_bittcf_cluster_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  constexpr const char *name = "tc_spmm_bittcf_cluster_f64";
  const tc_bittcf      *T    = static_cast<const tc_bittcf *>(view);

  if (T->num_windows == 0) return TC_OK;
  TC_CHECK(T->precision == TC_PRECISION_F64, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CALL(tc_check_clusters(name, T));
  if (tc_windows_are_small(T)) return (tc_pairs_are_aligned(args) ? tc_launch_clusters<true> : tc_launch_clusters<false>)(name, T, args, static_cast<cudaStream_t>(stream));
  return (args->n <= 8 ? tc_spmm_bittcf_cluster_few : tc_spmm_bittcf_cluster_specialized)(name, T, args, static_cast<cudaStream_t>(stream));
}
