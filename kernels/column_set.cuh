/*
  Sets of neighbouring columns as bits in shared memory: what the builders of tiles do with the rows of a window and the windows of a cluster whose columns lie close together.
  Adding a column takes an atomic operation on bits, which give the same whatever the order. A warp comes here a few times only, so loops stay loops, and the code short.
*/
#pragma once
#include "tc_device.cuh"

constexpr int32_t tc_set_span  = 1 << 16;           // columns
constexpr int     tc_set_fours = tc_set_span / 128; // times four words, read in one piece

__device__ __forceinline__ int tc_popcount(uint4 four)
{
  return __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
}

/*
  Columns counted from the smallest one; the largest that is used, counted so, is `last` in all functions. Between clear(), put(), count() and the rest threads wait for each other.
  Memory for `last`: last / 128 + 1 of both arrays.
*/
struct tc_column_set {
  uint4    *bits;
  uint16_t *before; // columns before each four words, after count()

  __device__ __forceinline__ void clear(int32_t last, int thread, int threads)
  {
#pragma unroll 1
    for (int i = thread; i <= last / 128; i += threads) bits[i] = make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void put(int32_t column) { atomicOr(reinterpret_cast<uint32_t *>(bits) + column / 32, 1u << column % 32); }
  /* By a warp: how many columns there are, all and before each four words */
  __device__ __forceinline__ int count(int32_t last, int lane)
  {
    int all = 0;

#pragma unroll 1
    for (int i = lane; i - lane <= last / 128; i += tc_warp_size) {
      const uint4 four = i <= last / 128 ? bits[i] : make_uint4(0, 0, 0, 0);
      const int   num  = tc_popcount(four);
      int         sum = num;

#pragma unroll
      for (int apart = 1; apart < tc_warp_size; apart *= 2) {
        const int other = __shfl_up_sync(tc_full_warp, sum, apart);

        sum += lane >= apart ? other : 0;
      }
      if (i <= last / 128) before[i] = static_cast<uint16_t>(all + sum - num);
      all += __shfl_sync(tc_full_warp, sum, tc_warp_size - 1);
    }
    return all;
  }
  /* By a warp: how many columns there are; `before` need not be there */
  __device__ __forceinline__ int size(int32_t last, int lane) const
  {
    int num = 0;

#pragma unroll 1
    for (int i = lane; i <= last / 128; i += tc_warp_size) num += tc_popcount(bits[i]);
#pragma unroll
    for (int half = tc_warp_size / 2; half > 0; half /= 2) num += __shfl_xor_sync(tc_full_warp, num, half);
    return num;
  }
  /* Columns of the set that are smaller, after count() */
  __device__ __forceinline__ int rank(int32_t column) const
  {
    const uint4    four  = bits[column / 128];
    const int      word  = column / 32 % 4;
    const uint32_t own   = word == 0 ? four.x : word == 1 ? four.y : word == 2 ? four.z : four.w;
    const int      whole = (word > 0 ? __popc(four.x) : 0) + (word > 1 ? __popc(four.y) : 0) + (word > 2 ? __popc(four.z) : 0);

    return before[column / 128] + whole + __popc(own & ((1u << column % 32) - 1));
  }
  /* put(rank, column) for each column of the set, whichever thread has it, after count() */
  template <typename Put>
  __device__ __forceinline__ void each(int32_t last, int thread, int threads, const Put &put) const
  {
#pragma unroll 1
    for (int i = thread; i <= last / 128; i += threads) {
      const uint4    four    = bits[i];
      const uint32_t words[] = {four.x, four.y, four.z, four.w};
      int            rank    = before[i];

#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll 1
        for (uint32_t left = words[k]; left != 0; left &= left - 1) put(rank++, 128 * i + 32 * k + __ffs(left) - 1);
      }
    }
  }
};

/* Memory for any set */
struct tc_set_memory {
  uint4    bits[tc_set_fours];
  uint16_t before[tc_set_fours];

  __device__ __forceinline__ tc_column_set set() { return {bits, before}; }
};

/* put(column) for the entries of eight rows, four lanes each: `first` and `entries` are those of a lane's row, `lane` of the warp. Loads are under way four at a time. */
template <typename Put>
__device__ __forceinline__ void tc_each_entry(const int32_t *col, int32_t first, int32_t entries, int lane, const Put &put)
{
  constexpr int lanes = 4, many = 4;

#pragma unroll 1
  for (int32_t e = lane % lanes; e < entries; e += lanes * many) {
    int32_t column[many];

#pragma unroll
    for (int k = 0; k < many; ++k) column[k] = e + lanes * k < entries ? __ldg(col + first + e + lanes * k) : -1;
#pragma unroll
    for (int k = 0; k < many; ++k) {
      if (column[k] >= 0) put(column[k]);
    }
  }
}
