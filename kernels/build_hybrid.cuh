/*
  The kernels that build the hybrid format, byte for byte as src/format/hybrid.c does: rows are ordered, pieces (segments, then slices) are measured, and what they
  hold is written once its place is known. Included by build_hybrid.cu alone.
*/
#pragma once
#include "hybrid_walk.cuh"
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

constexpr int tc_order_threads = 256, tc_order_rows = TC_HYBRID_WINDOW / tc_order_threads;
constexpr int tc_piece_threads = 256;

/* Of one row or more: rows of slices, tall ones among them, long rows, segments, and entries of the longest sliced row */
struct alignas(32) tc_row_counts {
  int32_t sliced, tall, longs, segments, longest;
};

/* In units of 32 value slots and of 16 bytes of columns */
struct alignas(16) tc_piece_size {
  int64_t val, index;
};

/* What two ranges of rows or of pieces make together */
struct tc_together {
  __host__ __device__ tc_row_counts operator()(const tc_row_counts &a, const tc_row_counts &b) const { return {a.sliced + b.sliced, a.tall + b.tall, a.longs + b.longs, a.segments + b.segments, a.longest > b.longest ? a.longest : b.longest}; }
  __host__ __device__ tc_piece_size operator()(const tc_piece_size &a, const tc_piece_size &b) const { return {a.val + b.val, a.index + b.index}; }
};

__device__ __forceinline__ int32_t tc_num_segments(int32_t length)
{
  return (length - 1) / TC_HYBRID_SEGMENT + 1;
}

/*
  tc_build_hybrid_order_kernel - the order of the rows of each window: sliced rows by length, descending, then long rows, then empty ones; and how many there are

  Work:   one block per window of TC_HYBRID_WINDOW rows, and one more after the last row, which counts nothing: the scan over the counts then ends with their sum
  Lanes:  four neighbouring rows per thread
  Arrays: row_ptr [num_rows + 1]; tall, what tc_hybrid_tall() gives; order [windows * TC_HYBRID_WINDOW], the place of a row in its window; counts [windows + 1]; all device
  Writes: order of full windows, whatever follows the last row included; counts once each
  Launch: tc_order_threads per block, shared memory of CUB.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_build_hybrid_order_kernel(int32_t num_rows, int32_t tall, const int32_t *__restrict__ row_ptr, uint16_t *__restrict__ order, tc_row_counts *__restrict__ counts)
{
  enum { LONG = TC_HYBRID_LONG_ROW - 1, EMPTY, NO_ROW, KEY_BITS = 9 }; // keys after those of the sliced rows, which begin with 0 for the longest
  using sort   = cub::BlockRadixSort<uint16_t, tc_order_threads, tc_order_rows, uint16_t, (KEY_BITS + 1) / 2>;
  using reduce = cub::BlockReduce<tc_row_counts, tc_order_threads>;
  __shared__ typename sort::TempStorage   sort_storage;
  __shared__ typename reduce::TempStorage reduce_storage;
  const int32_t first = TC_HYBRID_WINDOW * blockIdx.x;
  uint16_t      key[tc_order_rows], row[tc_order_rows];
  tc_row_counts counted = {};

#pragma unroll
  for (int j = 0; j < tc_order_rows; ++j) {
    const int     i      = tc_order_rows * threadIdx.x + j;
    const int32_t length = first + i < num_rows ? row_ptr[first + i + 1] - row_ptr[first + i] : -1;

    row[j] = i;
    key[j] = length < 0 ? NO_ROW : length == 0 ? EMPTY : length < TC_HYBRID_LONG_ROW ? TC_HYBRID_LONG_ROW - 1 - length : LONG;
    if (key[j] < LONG) counted = tc_together()(counted, {1, length > tall, 0, 0, length});
    else if (key[j] == LONG) counted = tc_together()(counted, {0, 0, 1, tc_num_segments(length), 0});
  }
  counted = reduce(reduce_storage).Reduce(counted, tc_together());
  if (threadIdx.x == 0) counts[blockIdx.x] = counted;
  if (first >= num_rows) return;
  sort(sort_storage).Sort(key, row, 0, KEY_BITS);
#pragma unroll
  for (int j = 0; j < tc_order_rows; ++j) order[first + tc_order_rows * threadIdx.x + j] = row[j];
}

/*
  tc_build_hybrid_place_kernel - row_id, csr_first, length and long_first, but for tall rows, which are only listed, window by window

  Work:   one block per window as above; the one after the last row ends long_first
  Lanes:  neighbours in the order of the window
  Arrays: the view's arrays up to `length`; row_ptr, order as above; before [windows + 1], what the rows before each window make together; all device
  Writes: row_id, csr_first, length, long_first, tall_key [num_tall], 0 for the longest, and tall_row [num_tall] once each
  Launch: tc_order_threads per block, shared memory of CUB.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_build_hybrid_place_kernel(const __grid_constant__ tc_hybrid H, const int32_t *__restrict__ row_ptr, const uint16_t *__restrict__ order, const tc_row_counts *__restrict__ before,
                                                                                        uint8_t *__restrict__ tall_key, int32_t *__restrict__ tall_row)
{
  using scan = cub::BlockScan<int32_t, tc_order_threads>;
  __shared__ typename scan::TempStorage scan_storage;
  const int32_t first = TC_HYBRID_WINDOW * blockIdx.x;

  if (first >= H.num_rows) {
    if (threadIdx.x == 0) H.long_first[H.num_long] = H.num_segments;
    return;
  }
  const tc_row_counts begin = before[blockIdx.x], end = before[blockIdx.x + 1];
  const int32_t       tall = end.tall - begin.tall, sliced = end.sliced - begin.sliced, longs = end.longs - begin.longs, first_empty = H.num_long + H.num_sliced + first - begin.sliced - begin.longs;
  int32_t             segment = begin.segments;

  for (int i = threadIdx.x; i < TC_HYBRID_WINDOW; i += tc_order_threads) {
    const bool    used = i < H.num_rows - first, is_long = i >= sliced && i < sliced + longs;
    const int32_t row = used ? first + order[first + i] : 0, csr = used ? row_ptr[row] : 0, length = used ? row_ptr[row + 1] - csr : 0;
    const int32_t place = i < sliced ? H.num_long + H.num_tall + begin.sliced - begin.tall + i - tall : is_long ? begin.longs + i - sliced : first_empty + i - sliced - longs;

    if (i < tall) {
      tall_key[begin.tall + i] = TC_HYBRID_LONG_ROW - 1 - length;
      tall_row[begin.tall + i] = row;
    } else {
      if (used) H.row_id[place] = row;
      if (length > 0) H.csr_first[place] = csr;
      if (i < sliced) H.length[place - H.num_long] = length;
    }
    if (longs > 0) {
      int32_t mine, all;

      scan(scan_storage).ExclusiveSum(is_long ? tc_num_segments(length) : 0, mine, all);
      if (is_long) H.long_first[place] = segment + mine;
      segment += all;
      __syncthreads();
    }
  }
}

/*
  tc_build_hybrid_tall_kernel - csr_first and length of tall rows, whose row_id is sorted

  Work:   one row per thread
  Lanes:  neighbours in the packed order
  Arrays: the view's arrays up to `length`; row_ptr [num_rows + 1]; all device
  Writes: csr_first and length of tall rows once each
  Launch: tc_order_threads per block, no shared memory.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_build_hybrid_tall_kernel(const __grid_constant__ tc_hybrid H, const int32_t *__restrict__ row_ptr)
{
  const int32_t i = blockIdx.x * tc_order_threads + threadIdx.x;

  if (i >= H.num_tall) return;
  const int32_t row = H.row_id[H.num_long + i], csr = row_ptr[row];

  H.csr_first[H.num_long + i] = csr;
  H.length[i]                 = row_ptr[row + 1] - csr;
}

/* The long row that a segment belongs to */
__device__ __forceinline__ int32_t tc_long_row_of(const tc_hybrid &H, int32_t segment)
{
  int32_t low = 0, high = H.num_long - 1;

  while (low < high) {
    const int32_t middle = high - (high - low) / 2;

    if (H.long_first[middle] <= segment) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* What the columns of a lane of a slice are relative to */
__device__ __forceinline__ int32_t tc_slice_origin(const tc_hybrid &H, int32_t slice, int lane)
{
  const int32_t packed = TC_HYBRID_SLICE_ROWS * slice + lane, row = packed < H.num_sliced ? H.row_id[H.num_long + packed] : 0;

  return H.row_group > 1 ? row - row % H.row_group : row;
}

/* What the columns of a thread's elements are relative to */
template <int places>
struct tc_origins {
  int32_t of[places] = {};

  __device__ __forceinline__ tc_origins() { }
  __device__ __forceinline__ tc_origins(const tc_hybrid &H, int32_t slice, int thread)
  {
#pragma unroll
    for (int i = 0; i < places; ++i) of[i] = tc_slice_origin(H, slice, tc_hybrid_walk<places>::lane(i, thread));
  }
};

/* The distances of a block's columns from their origins, and the range they have at this thread's place: empty (lowest > highest) if that is beyond the width */
template <int places>
struct tc_distances {
  int32_t of[places], lowest = INT32_MAX, highest = INT32_MIN;

  __device__ __forceinline__ tc_distances(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, const int32_t *col, int block)
  {
#pragma unroll
    for (int i = 0; i < places; ++i) of[i] = W.load(col, block, i, 0) - origins.of[i];
#pragma unroll
    for (int i = 0; i < places; ++i) {
      lowest  = W.has(block, i) ? min(lowest, of[i]) : lowest;
      highest = W.has(block, i) ? max(highest, of[i]) : highest;
    }
#pragma unroll
    for (int apart = places; apart < tc_warp_size; apart *= 2) {
      lowest  = min(lowest, __shfl_xor_sync(tc_full_warp, lowest, apart));
      highest = max(highest, __shfl_xor_sync(tc_full_warp, highest, apart));
    }
  }
};

/* The first kind that fits; every thread of the warp gets it. SHIFT only where `aligned`. */
template <int places>
__device__ __forceinline__ tc_hybrid_index_kind tc_choose_index_kind(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, const int32_t *col, bool aligned)
{
  uint32_t widest = 0;

  for (int b = 0; b < W.num_blocks(); ++b) {
    const tc_distances<places> D(W, origins, col, b);

    if (D.lowest <= D.highest) widest = max(widest, static_cast<uint32_t>(D.highest) - static_cast<uint32_t>(D.lowest));
  }
  if (__any_sync(tc_full_warp, widest > 0xfffe)) return TC_HYBRID_I32;
  if (__any_sync(tc_full_warp, widest > 0xfe)) return TC_HYBRID_U16;
  return aligned && !__any_sync(tc_full_warp, widest > 0) ? TC_HYBRID_SHIFT : TC_HYBRID_U8;
}

template <int places>
__device__ __forceinline__ tc_piece_size tc_size_of(const tc_hybrid_walk<places> &W, tc_hybrid_index_kind kind)
{
  return {W.width, static_cast<int64_t>(W.num_blocks()) * tc_hybrid_block_units(kind, places)};
}

/*
  tc_build_hybrid_measure_kernel - segments and slices but for where they begin, and their sizes

  Work:   one warp per piece, segments first, then slices; one more has size 0: the scan over the sizes then ends with their sum
  Lanes:  see tc_hybrid_walk
  Arrays: the view's arrays up to `length`; row_ptr [num_rows + 1], col [nnz]; size [pieces + 1]; all device
  Writes: segment, slice (val and index as 0) and size once each
  Launch: tc_piece_threads per block, no shared memory.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_piece_threads) tc_build_hybrid_measure_kernel(const __grid_constant__ tc_hybrid H, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, tc_piece_size *__restrict__ size)
{
  const int32_t        piece = blockIdx.x * (tc_piece_threads / tc_warp_size) + threadIdx.x / tc_warp_size, slice = piece - H.num_segments;
  const int            thread = threadIdx.x % tc_warp_size;
  tc_hybrid_index_kind kind;
  tc_piece_size        measured = {};

  if (slice > H.num_slices) return;
  if (slice < 0) {
    const int32_t r = tc_long_row_of(H, piece), row = H.row_id[r], left = row_ptr[row + 1] - row_ptr[row] - TC_HYBRID_SEGMENT * (piece - H.long_first[r]);
    const int     entries = min(left, static_cast<int32_t>(TC_HYBRID_SEGMENT));
    const auto    W       = tc_walk_segment(H, piece, r, entries, thread);

    kind     = tc_choose_index_kind(W, tc_origins<tc_max_places>(), col, false);
    measured = tc_size_of(W, kind);
    if (thread == 0) H.segment[piece] = {0, 0, r, static_cast<uint16_t>(entries), static_cast<uint8_t>(kind), TC_HYBRID_F64};
  } else if (slice < H.num_slices) {
    const int32_t packed = TC_HYBRID_SLICE_ROWS * slice, *row = H.row_id + H.num_long + packed;
    const int     rows = min(H.num_sliced - packed, static_cast<int32_t>(TC_HYBRID_SLICE_ROWS)), length = thread < rows ? H.length[packed + thread] : 0, width = tc_warp_max(length);
    const bool    aligned = __all_sync(tc_full_warp, length == width), in_a_row = __all_sync(tc_full_warp, thread < rows && row[thread] == row[0] + thread);

    tc_walk_slice(H, slice, width, thread, [&](const auto &W) {
      kind     = tc_choose_index_kind(W, {H, slice, thread}, col, aligned);
      measured = tc_size_of(W, kind);
    });
    if (thread == 0) H.slice[slice] = {0, 0, in_a_row ? row[0] : -1, static_cast<uint8_t>(width), static_cast<uint8_t>(kind), TC_HYBRID_F64, static_cast<uint8_t>(rows), aligned};
  }
  if (thread == 0) size[piece] = measured;
}

/* The index blocks of a piece of that kind, U8, U16 or I32 */
template <tc_hybrid_index_kind kind, typename stored, int places>
__device__ __forceinline__ void tc_put_columns_as(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, const int32_t *col, char *block, int thread)
{
  for (int b = 0; b < W.num_blocks(); ++b, block += 16 * tc_hybrid_block_units(kind, places)) {
    if constexpr (kind == TC_HYBRID_I32) {
#pragma unroll
      for (int i = 0; i < places; ++i) reinterpret_cast<stored *>(block)[tc_warp_size * i + thread] = W.load(col, b, i, static_cast<int32_t>(TC_HYBRID_PAD));
    } else {
      const tc_distances<places> D(W, origins, col, b);
      int32_t                   *base  = reinterpret_cast<int32_t *>(block);
      stored                    *entry = reinterpret_cast<stored *>(base + tc_max_places);

      if (thread < tc_max_places) base[thread] = thread < places && D.lowest <= D.highest ? D.lowest : 0;
#pragma unroll
      for (int i = 0; i < places; ++i) entry[tc_warp_size * i + thread] = W.has(b, i) ? D.of[i] - D.lowest : -1;
    }
  }
}

template <int places>
__device__ __forceinline__ void tc_put_columns(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, int kind, const int32_t *col, char *block, int thread)
{
  if (kind == TC_HYBRID_U8) tc_put_columns_as<TC_HYBRID_U8, uint8_t>(W, origins, col, block, thread);
  else if (kind == TC_HYBRID_U16) tc_put_columns_as<TC_HYBRID_U16, uint16_t>(W, origins, col, block, thread);
  else tc_put_columns_as<TC_HYBRID_I32, int32_t>(W, origins, col, block, thread);
}

/* SHIFT: all lanes have the distances of the first, so there is nothing but bases */
__device__ __forceinline__ void tc_put_shifts(const tc_hybrid &H, int32_t slice, int width, const int32_t *col, char *block, int thread)
{
  const int32_t *first = col + H.csr_first[H.num_long + TC_HYBRID_SLICE_ROWS * slice], origin = tc_slice_origin(H, slice, 0);

  for (int k = thread; k < (width + tc_max_places - 1) / tc_max_places * tc_max_places; k += tc_warp_size) reinterpret_cast<int32_t *>(block)[k] = k < width ? first[k] - origin : 0;
}

/*
  tc_build_hybrid_fill_kernel - where the pieces begin, and their index blocks

  Work:   one warp per piece, segments first, then slices
  Lanes:  see tc_hybrid_walk
  Arrays: the whole view; col [nnz]; before [pieces], the sizes of all pieces before each; all device
  Writes: index, and val and index of the segments and slices, once each
  Launch: tc_piece_threads per block, no shared memory.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_piece_threads, 5) tc_build_hybrid_fill_kernel(const __grid_constant__ tc_hybrid H, const int32_t *__restrict__ col, const tc_piece_size *__restrict__ before)
{
  const int32_t piece = blockIdx.x * (tc_piece_threads / tc_warp_size) + threadIdx.x / tc_warp_size, slice = piece - H.num_segments;
  const int     thread = threadIdx.x % tc_warp_size;

  if (slice >= H.num_slices) return;
  const tc_piece_size begin = before[piece];
  char               *block = static_cast<char *>(H.index) + 16 * begin.index;

  if (slice < 0) {
    tc_hybrid_segment &S = H.segment[piece];

    tc_put_columns(tc_walk_segment(H, piece, S.long_row, S.entries, thread), {}, S.index_kind, col, block, thread);
    if (thread == 0) S.val = begin.val, S.index = begin.index;
  } else {
    tc_hybrid_slice &S = H.slice[slice];

    if (S.index_kind == TC_HYBRID_SHIFT) tc_put_shifts(H, slice, S.width, col, block, thread);
    else tc_walk_slice(H, slice, S.width, thread, [&](const auto &W) { tc_put_columns(W, {H, slice, thread}, S.index_kind, col, block, thread); });
    if (thread == 0) S.val = begin.val, S.index = begin.index;
  }
}
