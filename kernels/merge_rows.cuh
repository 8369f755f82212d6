/*
  Lists of ascending columns merged by a warp, a list for each lane: what the builders of tiles do with the rows of a window.
*/
#pragma once
#include "tc_device.cuh"

constexpr int32_t tc_no_column = INT32_MAX;

__device__ __forceinline__ int32_t tc_smallest_of_warp(int32_t v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(tc_full_warp, v);
#else
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v = min(v, __shfl_xor_sync(tc_full_warp, v, half));
  return v;
#endif
}

/* A lane's list on its way through the merge; `at` gives the column at a place. The column behind the head is loaded while others pass. */
struct tc_merge {
  int32_t head, ahead, place, end; // the first column not passed, the one after it, the place of the former, and where the list ends

  template <typename At>
  __device__ __forceinline__ tc_merge(int32_t first, int32_t length, const At &at) : place(first), end(first + length)
  {
    head  = length > 0 ? at(first) : tc_no_column;
    ahead = length > 1 ? at(first + 1) : tc_no_column;
  }
  /* The next column of the merge, tc_no_column at the end, and whether this lane's list holds it: in place - 1 then */
  template <typename At>
  __device__ __forceinline__ int32_t step(const At &at, bool &held)
  {
    const int32_t column = tc_smallest_of_warp(head);

    held = head == column && column != tc_no_column;
    if (held) {
      head  = ahead;
      ahead = end - ++place > 1 ? at(place + 1) : tc_no_column;
    }
    return column;
  }
};
