/*
  Clusters of a tc_bittcf: what their kernels do in the same way in every precision. A warp holds the tiles of a window, a thread block the rows of B that its windows share.
*/
#pragma once
#include "bittcf.cuh"
#include <type_traits>

constexpr int tc_most_stages = 3; // buffers for rows of B, two at least

/* Blocks of a multiprocessor, by how many groups a warp can hold */
template <int most>
constexpr int tc_held_blocks = most <= 12 ? 2 : 1;

/* Where the rows of B for up to `most` groups of a window are in shared memory, for a lane: two to a register */
template <int most>
struct tc_held_places {
  uint32_t place[(most + 7) / 8 * 4];

  __device__ __forceinline__ void load(const tc_bittcf &T, int num, uint32_t place_first, int lane)
  {
    const uint4 *named = reinterpret_cast<const uint4 *>(T.place + TC_BITTCF_BLOCK * (size_t)place_first + tc_bittcf_place_of(num, 0, tc_mma_lane(lane).k));

#pragma unroll
    for (int i = 0; i < most; i += TC_BITTCF_PLACES) {
      if (i >= num) break;
      const uint4 four = __ldg(named + i / TC_BITTCF_PLACES);

      place[i / 2]     = four.x;
      place[i / 2 + 1] = four.y;
      place[i / 2 + 2] = four.z;
      place[i / 2 + 3] = four.w;
    }
  }
};

/* Groups that a window of up to `most` is listed with */
template <int most>
constexpr int tc_listed_groups = (most + TC_BITTCF_PLACES - 1) / TC_BITTCF_PLACES * TC_BITTCF_PLACES;

template <int most>
constexpr int tc_listed_bytes = static_cast<int>(sizeof(uint2)) * tc_listed_groups<most>;

/* The masks of up to `most` groups of a window and the numbers of their first values, those of group 32 p + lane in part p; the whole warp asks for those of one */
template <int most>
struct tc_held_masks {
  static constexpr int parts = (most + tc_warp_size - 1) / tc_warp_size;
  uint32_t             mask[parts], first[parts];

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_window &W, int lane)
  {
    const int       num   = W.num_groups();
    const uint32_t *masks = tc_tiles_at(T, W.tiles);

#pragma unroll
    for (int p = 0; p < parts; ++p) mask[p] = tc_warp_size * p + lane < num ? __ldg(masks + tc_warp_size * p + lane) : 0;
  }

  /* Apart from load(), so that other loads can be on their way */
  __device__ __forceinline__ void count(const tc_window &W, int lane)
  {
    uint32_t before = W.val;

#pragma unroll
    for (int p = 0; p < parts; ++p) {
      const uint32_t own = __popc(mask[p]);
      uint32_t       sum = own;

#pragma unroll
      for (int apart = 1; apart < tc_warp_size; apart *= 2) {
        const uint32_t lower = __shfl_up_sync(tc_full_warp, sum, apart);

        if (lane >= apart) sum += lower;
      }
      first[p] = before + sum - own;
      before += __shfl_sync(tc_full_warp, sum, tc_warp_size - 1);
    }
  }

  /* Into shared memory, 8 bytes for each group, for the warp alone, which meets before it reads them */
  __device__ __forceinline__ void put(uint2 *to, int lane) const
  {
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      if (tc_warp_size * p + lane < tc_listed_groups<most>) to[tc_warp_size * p + lane] = make_uint2(mask[p], first[p]);
    }
  }

  __device__ __forceinline__ uint32_t mask_of(int i) const { return __shfl_sync(tc_full_warp, mask[i / tc_warp_size], i % tc_warp_size); }
  __device__ __forceinline__ uint32_t first_of(int i) const { return __shfl_sync(tc_full_warp, first[i / tc_warp_size], i % tc_warp_size); }
};

/*
  The warp's window of a cluster; none has no groups. Its base is not needed here, and not loaded: a register that nobody reads gets another use, which then waits for the load.
*/
struct tc_cluster_window {
  tc_window W;
  uint32_t  place_first;
  int32_t   w;

  __device__ __forceinline__ tc_cluster_window(const tc_bittcf &T, int32_t cluster) : W(), place_first(0), w(-1)
  {
    const int64_t window = (int64_t)cluster * T.cluster_windows + threadIdx.x / tc_warp_size;

    if (cluster >= T.num_clusters || window >= T.num_windows) return;
    const uint32_t *words = reinterpret_cast<const uint32_t *>(T.window + window);

    w           = static_cast<int32_t>(window);
    W.val       = __ldg(words);
    W.tiles     = __ldg(words + 1);
    W.size      = __ldg(words + 3);
    place_first = __ldg(T.place_first + w);
  }
};

/* The list of a cluster into the L2 cache, by so many threads */
__device__ __forceinline__ void tc_prefetch_list(const tc_bittcf &T, int32_t cluster, int thread, int threads)
{
  constexpr uint32_t line = 128 / sizeof(int32_t);

  for (uint32_t e = T.cluster_first[cluster] + line * thread; e < T.cluster_first[cluster + 1]; e += line * threads) tc_prefetch(T.cluster_list + e);
}

/* A window of a cluster into the L2 cache, by a warp. `prefetch_window` does that for tiles, values and what belongs to rows. */
template <typename Window>
__device__ __forceinline__ void tc_prefetch_held_window(const tc_bittcf &T, int32_t w, int lane, Window prefetch_window)
{
  constexpr int   line = 128 / sizeof(uint16_t);
  const tc_window W    = tc_load_window(T, w);

  prefetch_window(w, W);
  if (line * lane < TC_BITTCF_BLOCK * tc_bittcf_place_blocks(W.num_groups())) tc_prefetch(T.place + TC_BITTCF_BLOCK * (size_t)T.place_first[w] + line * lane);
}

/* What a later block with a warp for each window will read of the matrix, into the L2 cache: all that it waits for is one latency after the other otherwise */
template <typename Window>
__device__ __forceinline__ void tc_prefetch_cluster(const tc_bittcf &T, int32_t cluster, int lane, Window prefetch_window)
{
  const int32_t w = cluster * T.cluster_windows + threadIdx.x / tc_warp_size;

  if (cluster >= T.num_clusters) return;
  tc_prefetch_list(T, cluster, threadIdx.x, blockDim.x);
  if (w < T.num_windows) tc_prefetch_held_window(T, w, lane, prefetch_window);
}

/* How clusters are launched */
struct tc_cluster_launch {
  int32_t stages;   // buffers
  int32_t resident; // blocks that run at the same time: as many clusters later the next one begins
  int     bytes;    // of dynamic shared memory

  /* No more buffers than `most` */
  void limit(int32_t most)
  {
    if (stages <= most) return;
    bytes  = bytes / stages * most;
    stages = most;
  }
};

/* As many buffers of `size` bytes as `blocks` thread blocks of a multiprocessor have room for, besides `fixed` bytes each */
static inline tc_status tc_fit_clusters(const char *name, int blocks, int size, int fixed, tc_cluster_launch *launch)
{
  const tc_device_size *device;

  TC_CALL(tc_size_of_device(name, &device));
  launch->stages = tc_most_stages;
  while (launch->stages > 2 && launch->stages * size + fixed > device->block_bytes / blocks) --launch->stages;
  launch->resident = device->num_sms * blocks;
  launch->bytes    = launch->stages * size;
  TC_CHECK(launch->bytes + fixed <= device->block_bytes, TC_ERR_UNSUPPORTED, "%s: clusters need %d bytes of shared memory, a thread block has %d", name, launch->bytes, device->block_bytes);
  return TC_OK;
}

static inline tc_status tc_check_clusters(const char *name, const tc_bittcf *T)
{
  TC_CHECK(T->num_clusters > 0, TC_ERR_UNSUPPORTED, "%s: the rows of this matrix share too few columns for clusters, or have too many", name);
  return TC_OK;
}
