/*
  How a warp goes through a piece of the hybrid format, a segment or a slice, next to its entries in CSR: the way of everything that packs. As on the host
  (src/format/hybrid_lanes.h) a piece is 32 lanes of up to `width` entries, in blocks of `places` entries of every lane; entry k of a lane is CSR entry
  first + stride * k.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_hybrid.h"

constexpr int tc_max_places = TC_HYBRID_BLOCK / TC_HYBRID_SLICE_ROWS;

/*
  Thread t of the warp has elements 32 i + t, i < places, of each block: place t % places of lane (32 i + t) / places. That is their order in the block, so a warp
  writes neighbouring bytes; it reads `places` neighbouring entries of several rows at a time.
*/
template <int num_places>
struct tc_hybrid_walk {
  static constexpr int places = num_places;

  int32_t first[places], count[places]; // of element i: its CSR entry in block 0; it exists in block b if places * b < count
  int     width, stride;

  __device__ __forceinline__ static int place(int thread) { return thread % places; }
  __device__ __forceinline__ static int lane(int i, int thread) { return (tc_warp_size * i + thread) / places; }
  __device__ __forceinline__ int num_blocks() const { return (width + places - 1) / places; }
  __device__ __forceinline__ bool has(int block, int i) const { return places * block < count[i]; }

  /* Element i of that block from an array in the order of CSR */
  template <typename T>
  __device__ __forceinline__ T load(const T *csr, int block, int i, T otherwise) const
  {
    return has(block, i) ? __ldg(csr + first[i] + stride * places * block) : otherwise;
  }
};

__device__ __forceinline__ tc_hybrid_walk<tc_max_places> tc_walk_segment(const tc_hybrid &H, int32_t segment, int32_t long_row, int entries, int thread)
{
  const int32_t                 begin = H.csr_first[long_row] + TC_HYBRID_SEGMENT * (segment - H.long_first[long_row]);
  tc_hybrid_walk<tc_max_places> W;

  W.width  = (entries + tc_warp_size - 1) / tc_warp_size;
  W.stride = tc_warp_size;
#pragma unroll
  for (int i = 0; i < W.places; ++i) {
    const int e = W.lane(i, thread) + tc_warp_size * W.place(thread);

    W.first[i] = begin + e;
    W.count[i] = (entries - e + tc_warp_size - 1) / tc_warp_size; // 0 or negative: not there
  }
  return W;
}

template <int places>
__device__ __forceinline__ tc_hybrid_walk<places> tc_walk_slice_by(const tc_hybrid &H, int32_t slice, int width, int thread)
{
  tc_hybrid_walk<places> W;

  W.width  = width;
  W.stride = 1;
#pragma unroll
  for (int i = 0; i < places; ++i) {
    const int32_t packed = TC_HYBRID_SLICE_ROWS * slice + W.lane(i, thread);
    const bool    used   = packed < H.num_sliced;

    W.first[i] = used ? H.csr_first[H.num_long + packed] + W.place(thread) : 0;
    W.count[i] = used ? H.length[packed] - W.place(thread) : 0;
  }
  return W;
}

/* Calls f(walk) with the walk of a slice of that width */
template <typename F>
__device__ __forceinline__ void tc_walk_slice(const tc_hybrid &H, int32_t slice, int width, int thread, F f)
{
  switch (tc_hybrid_places(width)) {
  case 1: f(tc_walk_slice_by<1>(H, slice, width, thread)); break;
  case 2: f(tc_walk_slice_by<2>(H, slice, width, thread)); break;
  default: f(tc_walk_slice_by<tc_max_places>(H, slice, width, thread));
  }
}
