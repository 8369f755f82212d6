#include "bittcf_cluster_f64.cuh"

constexpr int      tc_producer_warps = 4, tc_producers = tc_producer_warps * tc_warp_size;
constexpr int      tc_pairs_of_producer = (2 * TC_BITTCF_MOST_FOURS + tc_producers - 1) / tc_producers;
constexpr uint32_t tc_barrier_bytes = 8, tc_register_file = 65536;

/* Buffers in a ring, and two barriers for each: copies that have arrived, warps that are done with it */
struct tc_ring {
  uint32_t bottom, size, barriers, stages;
  uint32_t at = 0, turns = 0; // a buffer, and how often it was left, modulo 2

  __device__ __forceinline__ uint32_t buffer() const { return bottom + at * size; }
  __device__ __forceinline__ uint32_t full() const { return barriers + 2 * tc_barrier_bytes * at; }
  __device__ __forceinline__ uint32_t empty() const { return full() + tc_barrier_bytes; }
  __device__ __forceinline__ void     leave()
  {
    if (++at < stages) return;
    at = 0;
    turns ^= 1;
  }
};

/* What the matrix has for the next cluster of the block, into the L2 cache */
__device__ __forceinline__ void tc_prefetch_next(const tc_bittcf &T, int32_t cluster, int thread)
{
  const int lane = thread % tc_warp_size;

  if (cluster >= T.num_clusters) return;
  tc_prefetch_list(T, cluster, thread, tc_producers);
#pragma unroll 1
  for (int32_t w = cluster * T.cluster_windows + thread / tc_warp_size; w < min((cluster + 1) * T.cluster_windows, T.num_windows); w += tc_producer_warps) {
    tc_prefetch_held_window(T, w, lane, [&](int32_t later, const tc_window &W) { tc_prefetch_window<sizeof(double)>(T, later, W, lane); });
  }
}

/* The rows of B of the clusters of a block into the buffers, as these become empty; `thread` of tc_producers */
template <bool aligned>
__device__ __forceinline__ void tc_produce(const tc_bittcf &T, const tc_cluster_args &args, int32_t n, tc_ring ring, int thread)
{
#pragma unroll 1
  for (int32_t cluster = blockIdx.x; cluster < T.num_clusters; cluster += gridDim.x) {
    const double *b = args.b;
    int32_t       pairs[tc_pairs_of_producer];

    tc_find_pairs(T, cluster, thread, tc_producers, pairs);
#pragma unroll 1
    for (int32_t left = n; left > 0; left -= tc_stage_columns, b += tc_stage_columns * args.ldb) {
      tc_barrier_wait(ring.empty(), ring.turns ^ 1); // of the turn before; there is none before the first
#pragma unroll
      for (int r = 0; r < tc_pairs_of_producer; ++r) {
        if (pairs[r] >= 0) tc_stage_pair<aligned>(args, b + 2 * (int64_t)pairs[r], ring.buffer() + 16 * (thread + r * tc_producers), 2 * pairs[r] + 1 == T.num_cols, left);
      }
      tc_barrier_arrive_with_copies(ring.full());
      ring.leave();
      if (left == n) tc_prefetch_next(T, cluster + gridDim.x, thread);
    }
  }
}

/* The products with the warp's windows of the clusters of a block, out of the buffers as these become full */
template <int most>
__device__ __forceinline__ void tc_consume(const tc_bittcf &T, const tc_cluster_args &args, const tc_dense_output &out, tc_ring ring, int lane)
{
  const int         g = tc_mma_lane(lane).row;
  tc_cluster_window now(T, blockIdx.x);

#pragma unroll 1
  for (int32_t cluster = blockIdx.x; cluster < T.num_clusters; cluster += gridDim.x) {
    const int2                 rows       = now.w >= 0 ? tc_rows_of_sums(T, now.w, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
    const int32_t              num_groups = now.W.num_groups();
    tc_held_window<most, true> tiles;

    if (num_groups > 0) tiles.load(T, now.W, now.place_first, lane);
    const tc_cluster_window next(T, cluster + gridDim.x);
    const bool              whole = __all_sync(tc_full_warp, tc_is_pair(out, rows));
    double                 *to    = out.c + rows.x + g * out.ldc;

#pragma unroll 1
    for (int32_t first = 0; first < out.n; first += tc_stage_columns, to += tc_stage_columns * out.ldc) {
      tc_mma_tall_accumulator sums[1] = {};

      tc_barrier_wait(ring.full(), ring.turns);
      if (num_groups > 0) tiles.multiply(num_groups, ring.buffer() + g * args.pitch, args.pitch, sums[0]);
      __syncwarp();
      if (lane == 0) tc_barrier_arrive(ring.empty());
      ring.leave();
      tc_put_stage(rows, first, whole, to, out, sums);
    }
    now = next;
  }
}

/*
  tc_spmm_bittcf_cluster_specialized_kernel - the same as tc_spmm_bittcf_cluster_kernel, for clusters of 12 windows or larger ones, by warps of two kinds: four bring rows of B, the others
  multiply, and neither waits for more than a buffer. So warps that load their next tiles do not keep the tensor cores from those of another warp, nor copies from coming.

  Work:   clusters blockIdx.x, blockIdx.x + gridDim.x, ...; a warp per window, and four more
  Lanes:  a producer brings pairs of rows of B; lane 4 g + k of a consumer has columns g and g + 8 of B, row k of a group, and element (k, g) of its tile
  Arrays: the view; B, C column-major; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster and 128 more, a block per multiprocessor; args.stages buffers of shared memory.  Needs: sm_80; on sm_90a, which all of sm_90 are,
          consumers have the registers of the producers, elsewhere spills.  Source: tc_spmm_bittcf_cluster_kernel; the warp specialization of dense products on sm_90
*/
template <int warps, int most, bool aligned>
static __global__ void __launch_bounds__(warps *tc_warp_size + tc_producers, 1) tc_spmm_bittcf_cluster_specialized_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_cluster_args args, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ __align__(8) uint64_t     barriers[2 * tc_most_stages];
  constexpr int registers = tc_register_file / (warps * tc_warp_size + tc_producers) / 8 * 8; // of each thread when the block begins; ptxas takes all that the launch bounds allow
  constexpr int few = 32, many = (registers * (warps + tc_producer_warps) - few * tc_producer_warps) / warps / 8 * 8;
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const tc_ring ring = {static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), tc_stage_columns * args.pitch, static_cast<uint32_t>(__cvta_generic_to_shared(barriers)), static_cast<uint32_t>(args.stages)};

  static_assert(sizeof *barriers == tc_barrier_bytes, "one behind the other");
  if (threadIdx.x < args.stages) {
    tc_barrier_begin(ring.barriers + 2 * tc_barrier_bytes * threadIdx.x, tc_producers);
    tc_barrier_begin(ring.barriers + 2 * tc_barrier_bytes * threadIdx.x + tc_barrier_bytes, warps);
  }
  __syncthreads();
  tc_between_kernels();
  if (warp < warps) {
    tc_take_registers<many>();
    tc_consume<most>(T, args, out, ring, lane);
  } else {
    tc_give_registers<few>();
    tc_produce<aligned>(T, args, out.n, ring, threadIdx.x - warps * tc_warp_size);
  }
}

template <int warps, int most>
static tc_status tc_launch_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  const auto        kernel = tc_pairs_are_aligned(args) ? tc_spmm_bittcf_cluster_specialized_kernel<warps, most, true> : tc_spmm_bittcf_cluster_specialized_kernel<warps, most, false>;
  const uint32_t    pitch  = tc_cluster_pitch(T);
  tc_cluster_launch launch;

  TC_CALL(tc_fit_clusters(name, kernel, 1, tc_stage_columns * static_cast<int>(pitch), 2 * tc_barrier_bytes * tc_most_stages, &launch));
  return tc_launch_line(name, kernel, true, std::min(T->num_clusters, launch.resident), warps * tc_warp_size + tc_producers, launch.bytes, stream, *T, tc_cluster_args{args->b, args->ldb, pitch, launch.stages, launch.resident}, tc_output_of(T, args, nullptr));
}

tc_status tc_spmm_bittcf_cluster_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  if (T->cluster_windows == TC_BITTCF_FEWEST_WINDOWS) return tc_launch_specialized<TC_BITTCF_FEWEST_WINDOWS, TC_BITTCF_MORE_GROUPS>(name, T, args, stream);
  if (T->cluster_windows == 12) return tc_launch_specialized<12, TC_BITTCF_MOST_GROUPS>(name, T, args, stream);
  if (T->widest_window <= 24) return tc_launch_specialized<16, 24>(name, T, args, stream);
  return tc_launch_specialized<16, TC_BITTCF_FEWER_GROUPS>(name, T, args, stream);
}
