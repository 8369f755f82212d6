#include "bittcf_ring.cuh"

constexpr int tc_few_stages = 2; // buffers, each of all that a cluster needs

/* A buffer has the rows of B of a cluster and behind them as many of its values as there is room for */
struct tc_few_args {
  tc_cluster_args dense;
  uint32_t        capacity; // bytes for values, a multiple of 32

  __device__ __forceinline__ uint32_t kept() const { return capacity / sizeof(double); }
};

/* The number of the first value of a window or, behind the last window, of all values */
__device__ __forceinline__ uint32_t tc_values_before(const tc_bittcf &T, int64_t w)
{
  return w < T.num_windows ? __ldg(&T.window[w].val) : static_cast<uint32_t>(T.num_nonzeros);
}

/* The values of a cluster. Its buffer begins with an even one: pairs are 16 aligned bytes. */
struct tc_values_range {
  uint32_t first, end;

  __device__ __forceinline__ tc_values_range(const tc_bittcf &T, int32_t cluster) :
    first(tc_values_before(T, (int64_t)cluster * T.cluster_windows)), end(tc_values_before(T, ((int64_t)cluster + 1) * T.cluster_windows))
  {
  }
  __device__ __forceinline__ uint32_t base() const { return first & ~1u; }
};

/* A cluster's values from `base` to `end`, as many as a buffer keeps, on their way; `to` is where the pair of this thread, of tc_producers, begins */
__device__ __forceinline__ void tc_copy_values(const tc_bittcf &T, uint32_t base, uint32_t end, uint32_t to, int thread)
{
  const double *val = static_cast<const double *>(T.val) + base + 2 * thread;

#pragma unroll 4
  for (uint32_t e = base + 2 * thread; e < end; e += 2 * tc_producers, to += 16 * tc_producers, val += 2 * tc_producers) tc_copy_ahead_16(to, val);
}

/* What the clusters of a block need into the buffers, as these become empty; `thread` of tc_producers. What is needed to know that is on its way a cluster ahead. */
template <int meeting, bool aligned>
__device__ __forceinline__ void tc_produce_few(const tc_bittcf &T, const tc_few_args &args, int32_t n, tc_ring ring, int thread)
{
  tc_listed_pieces<tc_most_pieces> listed;
  tc_pieces<tc_most_pieces>        pieces;
  tc_values_range                  values(T, blockIdx.x);

  listed.load(T, tc_list_range(T, blockIdx.x), thread, tc_producers, aligned);
  tc_list_range next(T, blockIdx.x + gridDim.x);
#pragma unroll 1
  for (int32_t cluster = blockIdx.x; cluster < T.num_clusters; cluster += gridDim.x) {
    const uint32_t buffer = ring.buffer();

    pieces.find(T, listed, thread);
    pieces.between_kernels(); // for the first cluster
    listed.load(T, next, thread, tc_producers, aligned);
    next = tc_list_range(T, cluster + 2 * gridDim.x);
    const tc_values_range later(T, cluster + gridDim.x);

    tc_named_wait(ring.empty(thread / tc_warp_size), meeting);
#pragma unroll
    for (int r = 0; r < tc_most_pieces; ++r) {
      if (pieces.row[r] >= 0) tc_stage_piece<aligned, 8>(args.dense, pieces.get(T, r), args.dense.b + pieces.row[r], buffer + args.dense.begin + 16 * (thread + tc_producers * r), n);
    }
    tc_copy_values(T, values.base(), min(values.end, values.base() + args.kept()), buffer + args.dense.size + 16 * thread, thread);
    tc_barrier_arrive_with_copies(ring.full());
    ring.leave();
    values = later;
  }
  ring.close<meeting>(thread / tc_warp_size);
}

/* The warp's window of a cluster, and where its values are: from number `base` on in the buffer, if those up to `end` have room there */
struct tc_few_window : tc_cluster_window {
  uint32_t before, end;

  __device__ __forceinline__ tc_few_window(const tc_bittcf &T, int32_t cluster) : tc_cluster_window(T, cluster), before(0), end(0)
  {
    if (w < 0) return;
    before = tc_values_before(T, (int64_t)cluster * T.cluster_windows);
    end    = tc_values_before(T, w + 1);
  }
  __device__ __forceinline__ uint32_t base() const { return before & ~1u; }
};

/* The tiles of a window: where their rows of B are in shared memory */
template <int most>
struct tc_passing_window {
  tc_held_places<most> at;

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_few_window &window, int lane)
  {
    at = tc_held_places<most>(); // some place, for groups that there are not
    at.load(T, window.W.num_groups(), window.place_first, lane);
  }

  /*
    Adds the product of the first `num` groups with 8 columns of B, `num` more than 0; `staged` is where the lane's column begins, `listed` the masks by tc_held_masks::put(), an address in shared
    memory, get_value(first, mask) gets the lane's element of a tile whose first value is number `first`. What a product needs is asked for some groups before, whether there is such a group or not.
  */
  template <typename Value>
  __device__ __forceinline__ void multiply(int num, uint32_t listed, Value get_value, uint32_t staged, tc_mma_accumulator &sums) const
  {
    constexpr int together = 2, ahead_b = 1, ahead = 2, pairs_ahead = 2; // groups that are multiplied before it is asked whether there are more; the others beyond those before
    double        b[ahead_b + 1], value[ahead];
    uint4         two[pairs_ahead]; // masks, and the numbers of their first values, of two groups
    const auto    fetch_row   = [&](int i) { b[i % (ahead_b + 1)] = tc_load_shared(tc_place_in<8>(at.place[i / 2], i % 2, staged)); };
    const auto    fetch_value = [&](int i) {
      uint4 &own = two[i / 2 % pairs_ahead];

      value[i % ahead] = i % 2 ? get_value(own.w, own.z) : get_value(own.y, own.x);
      if (i % 2 && i + 2 * pairs_ahead <= most) own = tc_load_shared_16_in_order(listed + 8 * (i - 1 + 2 * pairs_ahead));
    };

#pragma unroll
    for (int i = 0; i < 2 * pairs_ahead; i += 2) two[i / 2] = tc_load_shared_16_in_order(listed + 8 * i);
#pragma unroll
    for (int i = 0; i < ahead; ++i) fetch_value(i);
#pragma unroll
    for (int i = 0; i < ahead_b; ++i) fetch_row(i);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i > 0 && i % together == 0 && i >= num) break;
      if (i + ahead_b < most) fetch_row(i + ahead_b);
      tc_mma_m8n8k4(sums, b[i % (ahead_b + 1)], value[i % ahead]);
      if (i + ahead < most) fetch_value(i + ahead);
    }
  }
};

/* The products with the warp's windows of the clusters of a block, out of the buffers as these become full. What is needed of the matrix besides values is on its way a cluster ahead. */
template <int meeting, int most, bool aligned>
__device__ __forceinline__ void tc_consume_few(const tc_bittcf &T, const tc_few_args &args, const tc_dense_output &out, tc_ring ring, uint2 *listed, int lane)
{
  const int               own    = tc_staged_column<1>(tc_mma_lane(lane).row);
  const uint32_t          staged = tc_staged_at(args.dense, own), masks_at = static_cast<uint32_t>(__cvta_generic_to_shared(listed));
  const tc_mask_lane      element(lane);
  tc_few_window           now(T, blockIdx.x), next(T, blockIdx.x + gridDim.x);
  tc_passing_window<most> tiles;
  tc_held_masks<most>     masks;

  ring.open<meeting>();
  tc_keep(ring.barriers); // not to be made again, from a register whose number comes as late as a load
  tc_keep(ring.bottom);
  tiles.load(T, now, lane);
  masks.load(T, now.W, lane);
  masks.count(now.W, lane);
  masks.put(listed, lane);
  __syncwarp();
  tc_between_kernels();
#pragma unroll 1
  for (int32_t cluster = blockIdx.x; cluster < T.num_clusters; cluster += gridDim.x) {
    const int2              rows = now.w >= 0 ? tc_rows_of_sums(T, now.w, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
    const int32_t           num  = now.W.num_groups();
    const tc_few_window     after(T, cluster + 2 * gridDim.x);
    tc_dense_sums<1>        sums[1] = {};
    tc_passing_window<most> later;

    later.load(T, next, lane);
    masks.load(T, next.W, lane);
    tc_barrier_wait(ring.full(), ring.turns);
    if (num > 0) {
      const uint32_t from = ring.buffer() + args.dense.size - sizeof(double) * now.base();

      if (now.end + 1 - now.base() <= args.kept()) {
        tiles.multiply(num, masks_at, [&](uint32_t first, uint32_t mask) { return tc_load_shared_if(element.is_set(mask), from + sizeof(double) * (first + element.before(mask))); }, ring.buffer() + staged, sums[0]);
      } else {
        tiles.multiply(num, masks_at, [&](uint32_t first, uint32_t mask) { return element.is_set(mask) ? __ldcs(static_cast<const double *>(T.val) + (first + element.before(mask))) : 0.0; }, ring.buffer() + staged, sums[0]);
      }
    }
    ring.arrive<meeting>();
    ring.leave();
    tc_put_stage<aligned, 1>(rows, 0, tc_put_kind_of<aligned>(out, rows, lane), out.c + rows.x + own * out.ldc, out, sums);
    masks.count(next.W, lane);
    masks.put(listed, lane);
    __syncwarp();
    tiles = later;
    now   = next;
    next  = after;
  }
}

/*
  tc_spmm_bittcf_cluster_few_kernel - the same as tc_spmm_bittcf_cluster_specialized_kernel, for up to 8 columns: every value is needed once, so it comes into shared memory together with
  the rows of B, all that a cluster needs at once, while the cluster before is multiplied

  Work:   clusters blockIdx.x, blockIdx.x + gridDim.x, ...; a warp per window, and four more
  Lanes:  a producer brings pairs of rows of B, and of values; lane 4 g + k of a consumer has column tc_staged_column<1>(g) of B, row k of a group, and element (k, g) of its tile
  Arrays: the view; B, C column-major; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster and 128 more, a block per multiprocessor; two buffers of shared memory.  Needs: sm_80.  Source: tc_spmm_bittcf_cluster_specialized_kernel
*/
template <int warps, int most, bool aligned>
static __global__ void __launch_bounds__(warps *tc_warp_size + tc_producers, 1) tc_spmm_bittcf_cluster_few_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_few_args args, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ __align__(8) uint64_t     barriers[tc_few_stages];
  __shared__ __align__(16) uint2       listed[warps][tc_listed_groups<most>];
  constexpr int meeting = (warps + 1) * tc_warp_size; // consumers and a warp of producers
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const tc_ring ring = {static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), args.dense.size + args.capacity, static_cast<uint32_t>(__cvta_generic_to_shared(barriers)), tc_few_stages};

  if (threadIdx.x < tc_few_stages) tc_barrier_begin(ring.barriers + tc_barrier_bytes * threadIdx.x, tc_producers);
  __syncthreads();
  if (warp < warps) tc_consume_few<meeting, most, aligned>(T, args, out, ring, listed[warp], lane);
  else tc_produce_few<meeting, aligned>(T, args, out.n, ring, threadIdx.x - warps * tc_warp_size);
}

template <int warps, int most, bool aligned>
static tc_status tc_launch_few(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr auto        kernel = tc_spmm_bittcf_cluster_few_kernel<warps, most, aligned>;
  tc_cluster_args       dense  = tc_cluster_args_of<1>(T, args);
  const int             most_values = static_cast<int>(sizeof(double)) * TC_BITTCF_ROWS * TC_BITTCF_GROUP * T->cluster_windows * T->widest_window;
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  const int fixed = tc_ring_bytes + warps * tc_listed_bytes<most>, room = (size->block_bytes - fixed) / tc_few_stages - static_cast<int>(dense.size);

  TC_CHECK(room >= 0, TC_ERR_UNSUPPORTED, "%s: clusters need %d bytes of shared memory, a thread block has %d", name, tc_few_stages * static_cast<int>(dense.size) + fixed, size->block_bytes);
  const int capacity = std::min(room, most_values) / 32 * 32, bytes = tc_few_stages * (static_cast<int>(dense.size) + capacity);

  dense.stages = tc_few_stages;
  TC_CALL(tc_allow_shared<kernel>(name));
  return tc_launch_line(name, kernel, true, std::min(T->num_clusters, size->num_sms), warps * tc_warp_size + tc_producers, bytes, stream, *T, tc_few_args{dense, static_cast<uint32_t>(capacity)}, tc_output_of(T, args, nullptr));
}

template <int warps, int most>
static tc_status tc_launch_few(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  return (tc_pairs_are_aligned(args) ? tc_launch_few<warps, most, true> : tc_launch_few<warps, most, false>)(name, T, args, stream);
}

tc_status tc_spmm_bittcf_cluster_few(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  if (T->cluster_windows == TC_BITTCF_FEWEST_WINDOWS) return tc_launch_few<TC_BITTCF_FEWEST_WINDOWS, TC_BITTCF_MORE_GROUPS>(name, T, args, stream);
  if (T->cluster_windows == 12) return tc_launch_few<12, TC_BITTCF_MOST_GROUPS>(name, T, args, stream);
  if (T->widest_window <= 24) return tc_launch_few<16, 24>(name, T, args, stream);
  return tc_launch_few<16, TC_BITTCF_FEWER_GROUPS>(name, T, args, stream);
}
