#include "bittcf_cluster.cuh"

/*
  tc_spmm_bittcf_cluster_kernel - C = A B or C += A B over the clusters of a tc_bittcf. Each warp holds the tiles of a window in registers for all columns of B; the rows
  of B that the windows of a cluster share come into shared memory, 16 columns at a time, straight from column-major B and ahead of their use. Structural zeros are
  multiplied, see tc_spmm_bittcf_kernel.

  Work:   a thread block per cluster, a warp per window
  Lanes:  pairs of rows of B when copying; then lane 4 g + k has columns g and g + 8 of B, row k of a group, and element (k, g) of its tile
  Arrays: the view; B, C column-major; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster; args.stages buffers of shared memory.  Needs: sm_80, better sm_90.  Source: tc_bittcf.h; the condensed tiles of Zhao et
          al., "Acc-SpMM", PPoPP'25; the asynchronous pipeline of dense products
*/
constexpr int tc_stage_columns = 16;

struct tc_cluster_args {
  const double *b;
  int64_t       ldb;
  uint32_t      pitch;    // bytes from one column of B to the next in shared memory: four neighbouring rows of eight columns are in different banks
  int32_t       stages;   // buffers
  int32_t       resident; // blocks that run at the same time: as many clusters later the next one begins
};

/* The tiles of a window: the lane's elements, and where its rows of B are in shared memory, in units of 8 bytes */
template <int most>
struct tc_held_window {
  double               value[most];
  tc_held_places<most> at;

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_window &W, uint32_t place_first, int lane)
  {
    const int           num = W.num_groups();
    const tc_mask_lane  element(lane);
    tc_held_masks<most> masks;

    masks.load(T, W, lane);
    at.load(T, num, place_first, lane);
    masks.count(W, lane);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      const uint32_t mask = masks.mask_of(i), next = masks.first_of(i);

      value[i] = __ldcs(static_cast<const double *>(T.val) + (next + element.before(mask))); // without an element: the next one, which there is
    }
#pragma unroll
    for (int i = 0; i < most; ++i) { // not before all of them are on their way
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      if (!element.is_set(masks.mask_of(i))) value[i] = 0.0;
    }
  }

  /* Adds the product with 16 columns of B; `staged` is where the lane's first column begins */
  __device__ __forceinline__ void multiply(int num, uint32_t staged, uint32_t pitch, tc_mma_tall_accumulator &sums) const
  {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i % TC_BITTCF_GROUP == 0 && i >= num) break;
      const uint32_t b = tc_place_in<8>(at.place[i / 2], i % 2, staged);

      tc_mma_m16n8k4(sums, tc_load_shared(b), tc_load_shared(b + 8 * pitch), value[i]);
    }
  }
};

/* The pairs of rows of B that a thread brings, two of four rows that are listed; -1: none */
constexpr int tc_pairs_of_thread = 2;
static_assert(2 * TC_BITTCF_MOST_FOURS <= tc_pairs_of_thread * 12 * tc_warp_size, "the threads of 12 warps bring all");

__device__ __forceinline__ void tc_find_pairs(const tc_bittcf &T, int32_t cluster, int32_t (&pairs)[tc_pairs_of_thread])
{
  const uint32_t first = __ldg(T.cluster_first + cluster);
  const int32_t  num   = 2 * static_cast<int32_t>(__ldg(T.cluster_first + cluster + 1) - first);

#pragma unroll
  for (int r = 0; r < tc_pairs_of_thread; ++r) {
    const int32_t i = threadIdx.x + r * blockDim.x, pair = i < num ? 2 * __ldg(T.cluster_list + first + i / 2) + i % 2 : -1;

    pairs[r] = 2 * pair < T.num_cols ? pair : -1; // the last four need not be there all
  }
}

/* `left` columns of B, 16 at most, on their way into a buffer. `aligned`: pairs are 16 aligned bytes. `last`: the pair of which B has one row only. */
template <bool aligned>
__device__ __forceinline__ void tc_stage_pairs(uint32_t buffer, const tc_cluster_args &args, const double *b, const int32_t (&pairs)[tc_pairs_of_thread], int32_t last, int32_t left)
{
#pragma unroll
  for (int r = 0; r < tc_pairs_of_thread; ++r) {
    const double *from = b + 2 * (int64_t)pairs[r];
    uint32_t      to   = buffer + 16 * (threadIdx.x + r * blockDim.x);

    if (pairs[r] < 0) continue;
    if (aligned && left >= tc_stage_columns && pairs[r] != last) {
#pragma unroll
      for (int j = 0; j < tc_stage_columns; ++j, from += args.ldb, to += args.pitch) tc_copy_ahead_16(to, from);
    } else {
#pragma unroll 1
      for (int j = 0; j < min(left, tc_stage_columns); ++j, from += args.ldb, to += args.pitch) {
        tc_copy_ahead_8(to, from);
        if (pairs[r] != last) tc_copy_ahead_8(to + 8, from + 1);
      }
    }
  }
}

template <int most, bool aligned>
static __global__ void __launch_bounds__((tc_held_warps<most> * tc_warp_size), tc_held_blocks<most>) tc_spmm_bittcf_cluster_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_cluster_args args, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  const int            lane = threadIdx.x % tc_warp_size, g = tc_mma_lane(lane).row;
  const int32_t        cluster = blockIdx.x, w = cluster * T.cluster_windows + threadIdx.x / tc_warp_size, v = min(w, T.num_windows - 1);
  const tc_window      W           = tc_load_window(T, v);
  const uint32_t       place_first = __ldg(T.place_first + v);
  const int2           rows = w == v ? tc_rows_of_sums(T, v, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
  const int32_t        num_groups = w == v ? W.num_groups() : 0;
  const int32_t        last = T.num_cols % 2 ? T.num_cols / 2 : -1;
  const uint32_t       size = tc_stage_columns * args.pitch, bottom = static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), top = bottom + args.stages * size;
  const double        *b = args.b;
  int32_t              pairs[tc_pairs_of_thread];
  uint32_t             staged = bottom, unused = top - size;
  tc_held_window<most> tiles;

  tc_between_kernels();
  tc_find_pairs(T, cluster, pairs);
#pragma unroll 1
  for (int32_t s = 0; s < args.stages - 1; ++s, b += tc_stage_columns * args.ldb) {
    tc_stage_pairs<aligned>(bottom + s * size, args, b, pairs, last, out.n - tc_stage_columns * s);
    tc_copies_end();
  }
  if (num_groups > 0) tiles.load(T, W, place_first, lane);
  tc_prefetch_cluster(T, cluster + args.resident, lane, [&](int32_t later, const tc_window &L) { tc_prefetch_window<sizeof(double)>(T, later, L, lane); });
  const bool whole = __all_sync(tc_full_warp, tc_is_pair(out, rows));
  double    *to    = out.c + rows.x + g * out.ldc;

#pragma unroll 1
  for (int32_t first = 0; first < out.n; first += tc_stage_columns, to += tc_stage_columns * out.ldc, b += tc_stage_columns * args.ldb) {
    tc_mma_tall_accumulator sums[1] = {};

    tc_copies_done_but(args.stages - 2);
    __syncthreads();
    tc_stage_pairs<aligned>(unused, args, b, pairs, last, out.n - first - tc_stage_columns * (args.stages - 1));
    tc_copies_end();
    tiles.multiply(num_groups, staged + g * args.pitch, args.pitch, sums[0]);
    if (whole && first + tc_stage_columns <= out.n) {
      tc_put_pair(to, sums[0].c[0], sums[0].c[1]);
      tc_put_pair(to + 8 * out.ldc, sums[0].c[2], sums[0].c[3]);
    } else tc_put_window<1, 2>(rows, first + g, 8, tc_stage_columns, out, sums);
    unused = staged;
    staged = staged + size == top ? bottom : staged + size;
  }
}

template <int most>
static tc_status tc_launch_clusters(const tc_bittcf *T, const tc_spmm_args *args, const tc_dense_output &out, cudaStream_t stream)
{
  constexpr const char *name    = "tc_spmm_bittcf_cluster_f64";
  const bool            aligned = args->ldb % 2 == 0 && reinterpret_cast<uintptr_t>(args->b) % 16 == 0;
  const auto            kernel  = aligned ? tc_spmm_bittcf_cluster_kernel<most, true> : tc_spmm_bittcf_cluster_kernel<most, false>;
  const uint32_t        pitch   = sizeof(double) * ((TC_BITTCF_GROUP * T->widest_cluster + 11) / 16 * 16 + 4);
  tc_cluster_launch     launch;

  TC_CALL(tc_fit_clusters(name, kernel, tc_held_blocks<most>, tc_stage_columns * static_cast<int>(pitch), 0, &launch));
  return tc_launch_grid(name, kernel, true, dim3((unsigned)T->num_clusters), T->cluster_windows * tc_warp_size, launch.bytes, stream, *T, tc_cluster_args{args->b, args->ldb, pitch, launch.stages, launch.resident}, out);
}

/*
  Clusters save what their windows share of B, and the copy of B; a warp of tc_spmm_bittcf_kernel has less to wait for. That decides up to 32 columns, and with more where windows
  share little, as in qcd:11 with pairs as many as groups, but not where windows are as soon done as the 5 groups of interpolation:40 (docs/performance.md).
*/
extern "C" int tc_spmm_bittcf_cluster_suits(const void *view, int32_t n)
{
  const tc_bittcf *T          = static_cast<const tc_bittcf *>(view);
  const bool       share_much = 20 * T->num_listed <= 9 * T->num_groups, soon_done = T->widest_window <= 12;

  return T->num_clusters > 0 && T->precision == TC_PRECISION_F64 && n > 32 && (share_much || soon_done);
}

extern "C" size_t tc_spmm_bittcf_cluster_scratch(const void *, int32_t)
{
  return 0;
}

extern "C" tc_status tc_spmm_bittcf_cluster_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf      *T   = static_cast<const tc_bittcf *>(view);
  const cudaStream_t    on  = static_cast<cudaStream_t>(stream);
  const tc_dense_output out = tc_output_of(T, args, nullptr);

  if (T->num_windows == 0) return TC_OK;
  TC_CHECK(T->precision == TC_PRECISION_F64, TC_ERR_ARG, "tc_spmm_bittcf_cluster_f64: the values are in precision %d", T->precision);
  TC_CALL(tc_check_clusters("tc_spmm_bittcf_cluster_f64", T));
  return tc_by_held_groups(T, [&](auto most) { return tc_launch_clusters<most>(T, args, out, on); });
}
