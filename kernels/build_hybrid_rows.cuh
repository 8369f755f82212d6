/*
  The first half of the kernels that build the hybrid format, byte for byte as src/format/hybrid.c does: the order of the rows. These, and those of the second half
  (build_hybrid_pieces.cuh) but the last, run without the host: each finds on the device how many rows and pieces there are, and begins while the one before it ends.
  Included by build_hybrid.cu alone.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_hybrid.h"
#include <cub/block/block_scan.cuh>

constexpr int tc_order_threads = 256, tc_order_warps = tc_order_threads / tc_warp_size, tc_order_rounds = TC_HYBRID_WINDOW / tc_order_threads;
constexpr int tc_scan_threads = 1024;
constexpr int tc_tall_keys = TC_HYBRID_LONG_ROW, tc_scan_keys = 8, tc_scan_parts = tc_scan_threads / tc_scan_keys;

/* The place of a length among those of sliced rows, 0 for the longest; then come long rows and empty ones, and what follows the last row */
enum { TC_KEY_LONG = TC_HYBRID_LONG_ROW - 1, TC_KEY_EMPTY, TC_KEY_NO_ROW, TC_NUM_KEYS };

/* Of one row or more: rows of slices, tall ones among them, long rows, segments, and entries of the longest sliced row */
struct alignas(32) tc_row_counts {
  int32_t sliced, tall, longs, segments, longest;
};

/* What two ranges of rows make together */
struct tc_rows_together {
  __device__ tc_row_counts operator()(const tc_row_counts &a, const tc_row_counts &b) const { return {a.sliced + b.sliced, a.tall + b.tall, a.longs + b.longs, a.segments + b.segments, max(a.longest, b.longest)}; }
};

/* The view with its numbers of rows and pieces */
__host__ __device__ __forceinline__ tc_hybrid tc_counted(tc_hybrid H, const tc_row_counts &rows)
{
  H.num_long       = rows.longs;
  H.num_segments   = rows.segments;
  H.num_sliced     = rows.sliced;
  H.num_slices     = (rows.sliced + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
  H.num_empty      = H.num_rows - rows.longs - rows.sliced;
  H.num_tall       = rows.tall;
  H.longest_sliced = rows.longest;
  return H;
}

__device__ __forceinline__ int32_t tc_num_segments(int32_t length)
{
  return (length - 1) / TC_HYBRID_SEGMENT + 1;
}

/*
  tc_build_hybrid_order_kernel - the order of the rows of each window: sliced rows by length, descending, then long rows, then empty ones; and how many there are

  Work:   one block per window of TC_HYBRID_WINDOW rows, and one more after the last row, which counts nothing: scans over the counts then end with their sums. A
          counting sort: each warp ranks its rows among themselves, 32 neighbours at a time
  Lanes:  32 neighbouring rows per warp and round
  Arrays: row_ptr [num_rows + 1]; tall, what tc_hybrid_tall() gives; order [windows * TC_HYBRID_WINDOW], the row of the window in each place; counts [windows + 1];
          tall_rows [windows + 1][tc_tall_keys], tall rows by length; all device
  Writes: order of full windows, whatever follows the last row included; counts and tall_rows once each
  Launch: tc_order_threads per block, 10 KiB of shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_build_hybrid_order_kernel(int32_t num_rows, int32_t tall, const int32_t *__restrict__ row_ptr, uint16_t *__restrict__ order, tc_row_counts *__restrict__ counts,
                                                                                        int32_t *__restrict__ tall_rows)
{
  using scan = cub::BlockScan<int, tc_order_threads>;
  __shared__ typename scan::TempStorage scan_storage;
  __shared__ int           before[tc_order_warps][TC_NUM_KEYS]; // rows of a key, in the end how many rows come before the warp's first of it
  __shared__ tc_row_counts counted;
  const int     thread = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size, mine = threadIdx.x; // key
  const int32_t first = TC_HYBRID_WINDOW * blockIdx.x;
  int           key[tc_order_rounds], place[tc_order_rounds], segments = 0, rows = 0, earlier, filled;

  tc_begin_next_kernel();
  for (int i = threadIdx.x; i < tc_order_warps * TC_NUM_KEYS; i += tc_order_threads) (&before[0][0])[i] = 0;
  if (threadIdx.x == 0) counted = {};
#pragma unroll
  for (int j = 0; j < tc_order_rounds; ++j) {
    const int     i      = tc_warp_size * (tc_order_rounds * warp + j) + thread;
    const int32_t length = first + i < num_rows ? row_ptr[first + i + 1] - row_ptr[first + i] : -1;

    key[j] = length < 0 ? TC_KEY_NO_ROW : length == 0 ? TC_KEY_EMPTY : length < TC_HYBRID_LONG_ROW ? TC_HYBRID_LONG_ROW - 1 - length : TC_KEY_LONG;
    if (key[j] == TC_KEY_LONG) segments += tc_num_segments(length);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < tc_order_rounds; ++j) {
    const unsigned same = __match_any_sync(tc_full_warp, key[j]), below = same & ((1u << thread) - 1);

    place[j] = before[warp][key[j]] + __popc(below);
    __syncwarp();
    if (below == 0) before[warp][key[j]] += __popc(same);
    __syncwarp();
  }
  if (segments > 0) atomicAdd(&counted.segments, segments);
  __syncthreads();
  for (int w = 0; w < tc_order_warps; ++w) {
    const int there = before[w][mine];

    before[w][mine] = rows;
    rows += there;
  }
  scan(scan_storage).ExclusiveSum(rows, earlier, filled);
  for (int w = 0; w < tc_order_warps; ++w) before[w][mine] += earlier;
  if (threadIdx.x == 0) {
    for (int w = 0; w < tc_order_warps; ++w) {
      const int there = before[w][TC_KEY_EMPTY];

      before[w][TC_KEY_EMPTY] = filled;
      filled += there;
    }
  }
  tall_rows[tc_tall_keys * static_cast<int64_t>(blockIdx.x) + mine] = mine < TC_KEY_LONG - tall ? rows : 0;
  if (mine == TC_KEY_LONG) counted.sliced = earlier, counted.longs = rows;
  if (mine == TC_KEY_LONG - tall) counted.tall = earlier;
  if (mine < TC_KEY_LONG && rows > 0 && earlier == 0) counted.longest = TC_KEY_LONG - mine;
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = counted;
  if (first >= num_rows) return;
#pragma unroll
  for (int j = 0; j < tc_order_rounds; ++j) {
    const int i = tc_warp_size * (tc_order_rounds * warp + j) + thread;

    order[first + (key[j] == TC_KEY_NO_ROW ? i : before[warp][key[j]] + place[j])] = i;
  }
}

/*
  tc_build_hybrid_scan_kernel - what the rows before each window make together, and how many tall rows of each length there are before it

  Work:   the first block has the counts, 1024 windows at a time, each other one tc_scan_keys lengths, of which a thread has a part of the windows
  Lanes:  neighbouring windows; neighbouring lengths
  Arrays: counts [num], tall_rows [num][tc_tall_keys]; all device
  Writes: both in place
  Launch: tc_scan_threads per block, one and a block for every tc_scan_keys lengths of tall rows, shared memory of CUB.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_scan_threads) tc_build_hybrid_scan_kernel(int32_t num, tc_row_counts *counts, int32_t *tall_rows)
{
  using scan = cub::BlockScan<tc_row_counts, tc_scan_threads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ union {
    typename scan::TempStorage of_counts;
    int32_t                    rows[tc_scan_parts][tc_scan_keys];
  } shared;

  tc_begin_next_kernel();
  tc_wait_for_kernel_before();
  if (blockIdx.x == 0) {
    tc_row_counts so_far = {};

    for (int32_t first = 0; first < num; first += tc_scan_threads) {
      const int32_t i = first + threadIdx.x;
      tc_row_counts before, all;

      scan(shared.of_counts).ExclusiveScan(i < num ? counts[i] : tc_row_counts(), before, tc_row_counts(), tc_rows_together(), all);
      if (i < num) counts[i] = tc_rows_together()(so_far, before);
      so_far = tc_rows_together()(so_far, all);
      __syncthreads();
    }
    return;
  }
  const int     key = threadIdx.x % tc_scan_keys, part = threadIdx.x / tc_scan_keys;
  const int32_t each = (num + tc_scan_parts - 1) / tc_scan_parts, begin = min(num, part * each), end = min(num, begin + each);
  int32_t      *of_key = tall_rows + tc_scan_keys * (blockIdx.x - 1) + key, rows = 0;

#pragma unroll 4
  for (int32_t w = begin; w < end; ++w) rows += of_key[tc_tall_keys * static_cast<int64_t>(w)];
  shared.rows[part][key] = rows;
  for (int apart = 1; apart < tc_scan_parts; apart *= 2) {
    __syncthreads();
    const int32_t more = part >= apart ? shared.rows[part - apart][key] : 0;

    __syncthreads();
    shared.rows[part][key] += more;
  }
  int32_t before = shared.rows[part][key] - rows;

#pragma unroll 4
  for (int32_t w = begin; w < end; ++w) {
    int32_t *to = of_key + tc_tall_keys * static_cast<int64_t>(w);

    rows = *to;
    *to  = before;
    before += rows;
  }
}

/*
  tc_build_hybrid_place_kernel - row_id, csr_first, length and long_first

  Work:   one block per window as above; the one after the last row ends long_first. Tall rows go to where their length begins in the whole matrix, behind those of
          the windows before
  Lanes:  neighbours in the order of the window
  Arrays: the view's arrays up to `length`; row_ptr, order as above; before [windows + 1] and tall_rows [windows + 1][tc_tall_keys], scanned; all device
  Writes: row_id, csr_first, length and long_first once each
  Launch: tc_order_threads per block, shared memory of CUB.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_build_hybrid_place_kernel(const __grid_constant__ tc_hybrid view, const int32_t *__restrict__ row_ptr, const uint16_t *__restrict__ order, const tc_row_counts *__restrict__ before,
                                                                                        const int32_t *__restrict__ tall_rows)
{
  using scan = cub::BlockScan<int64_t, tc_order_threads>;
  __shared__ typename scan::TempStorage scan_storage;
  __shared__ int32_t tall_place[tc_tall_keys]; // of a tall row, less its place in the window
  const int32_t first = TC_HYBRID_WINDOW * blockIdx.x;

  tc_begin_next_kernel();
  tc_wait_for_kernel_before();
  const tc_hybrid     H     = tc_counted(view, before[gridDim.x - 1]);
  const tc_row_counts begin = before[blockIdx.x];

  if (first >= H.num_rows) {
    if (threadIdx.x == 0) H.long_first[H.num_long] = H.num_segments;
    return;
  }
  const tc_row_counts end  = before[blockIdx.x + 1];
  const int32_t       tall = end.tall - begin.tall, sliced = end.sliced - begin.sliced, longs = end.longs - begin.longs, first_empty = H.num_long + H.num_sliced + first - begin.sliced - begin.longs;
  int64_t             segment = begin.segments, mine, all;

  if (tall > 0) {
    const int32_t *rows = tall_rows + tc_tall_keys * static_cast<int64_t>(blockIdx.x) + threadIdx.x;
    const int64_t  here = rows[tc_tall_keys] - rows[0], matrix = tall_rows[tc_tall_keys * static_cast<int64_t>(gridDim.x - 1) + threadIdx.x];

    scan(scan_storage).ExclusiveSum(matrix << 32 | here, mine, all);
    tall_place[threadIdx.x] = H.num_long + static_cast<int32_t>(mine >> 32) + rows[0] - static_cast<int32_t>(mine);
    __syncthreads();
  }
  for (int i = threadIdx.x; i < TC_HYBRID_WINDOW; i += tc_order_threads) {
    const bool    used = i < H.num_rows - first, is_long = i >= sliced && i < sliced + longs;
    const int32_t row = used ? first + order[first + i] : 0, csr = used ? row_ptr[row] : 0, length = used ? row_ptr[row + 1] - csr : 0;
    int32_t       place;

    if (i < tall) place = tall_place[TC_HYBRID_LONG_ROW - 1 - length] + i;
    else if (i < sliced) place = H.num_long + H.num_tall + begin.sliced - begin.tall + i - tall;
    else place = is_long ? begin.longs + i - sliced : first_empty + i - sliced - longs;
    if (used) H.row_id[place] = row;
    if (length > 0) H.csr_first[place] = csr;
    if (i < sliced) H.length[place - H.num_long] = length;
    if (longs > 0) {
      scan(scan_storage).ExclusiveSum(is_long ? tc_num_segments(length) : 0, mine, all);
      if (is_long) H.long_first[place] = static_cast<int32_t>(segment + mine);
      segment += all;
      __syncthreads();
    }
  }
}
