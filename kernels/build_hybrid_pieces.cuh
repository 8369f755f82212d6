/*
  The second half of the kernels that build the hybrid format: pieces (segments, then slices) are measured, and what they hold is written once its place is known.
  Included by build_hybrid.cu alone.
*/
#pragma once
#include "build_hybrid_rows.cuh"
#include "hybrid_walk.cuh"
#include "tc_build.cuh"

constexpr int tc_piece_threads = 256, tc_piece_warps = tc_piece_threads / tc_warp_size;
constexpr int tc_tiles_items   = 4;

/* In units of 32 value slots and of 16 bytes of columns */
struct alignas(16) tc_piece_size {
  int64_t val, index;
};

/* The same where they are few: of a tile, which is what a thread block measures at a time, or what a piece names */
struct alignas(8) tc_tile_size {
  uint32_t val, index;
};

/* All that the host has to know before there can be memory for the format */
struct tc_build_counts {
  tc_row_counts rows;
  tc_piece_size size;
};

/* What two ranges of pieces make together */
struct tc_sizes_together {
  __device__ tc_piece_size operator()(const tc_piece_size &a, const tc_piece_size &b) const { return {a.val + b.val, a.index + b.index}; }
};

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

/* Whose part of a piece a warp of a team has, and what all of the team see */
template <int team>
struct tc_piece_team {
  static __device__ __forceinline__ int warp() { return threadIdx.x / tc_warp_size % team; }
  static __device__ __forceinline__ bool leads() { return threadIdx.x % (tc_warp_size * team) == 0; }

  static __device__ __forceinline__ bool any(bool so)
  {
    if constexpr (team == 1) return __any_sync(tc_full_warp, so);
    else return __syncthreads_or(so);
  }
};

/* The first kind that fits; every thread of the team gets it. SHIFT only where `aligned`. */
template <int team, int places>
__device__ __forceinline__ tc_hybrid_index_kind tc_choose_index_kind(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, const int32_t *col, bool aligned)
{
  uint32_t widest = 0;

  for (int b = tc_piece_team<team>::warp(); b < W.num_blocks(); b += team) {
    const tc_distances<places> D(W, origins, col, b);

    if (D.lowest <= D.highest) widest = max(widest, static_cast<uint32_t>(D.highest) - static_cast<uint32_t>(D.lowest));
  }
  if (tc_piece_team<team>::any(widest > 0xfffe)) return TC_HYBRID_I32;
  if (tc_piece_team<team>::any(widest > 0xfe)) return TC_HYBRID_U16;
  return aligned && !tc_piece_team<team>::any(widest > 0) ? TC_HYBRID_SHIFT : TC_HYBRID_U8;
}

template <int places>
__device__ __forceinline__ tc_tile_size tc_size_of(const tc_hybrid_walk<places> &W, tc_hybrid_index_kind kind)
{
  return {static_cast<uint32_t>(W.width), W.num_blocks() * tc_hybrid_block_units(kind, places)};
}

/* Pieces, and tiles of them, one for each team of a block, segments first */
__host__ __device__ __forceinline__ int32_t tc_num_pieces(const tc_hybrid &H)
{
  return H.num_segments + H.num_slices;
}

__host__ __device__ __forceinline__ int32_t tc_num_tiles(int32_t pieces, int team)
{
  return (pieces + tc_piece_warps / team - 1) / (tc_piece_warps / team);
}

template <int team>
__device__ __forceinline__ tc_hybrid_segment tc_measure_segment(const tc_hybrid &H, int32_t segment, const int32_t *row_ptr, const int32_t *col, int thread, tc_tile_size *size)
{
  const int32_t r = tc_long_row_of(H, segment), row = H.row_id[r], left = row_ptr[row + 1] - row_ptr[row] - TC_HYBRID_SEGMENT * (segment - H.long_first[r]);
  const int     entries = min(left, static_cast<int32_t>(TC_HYBRID_SEGMENT));
  const auto    W       = tc_walk_segment(H, segment, r, entries, thread);
  const auto    kind    = tc_choose_index_kind<team>(W, tc_origins<tc_max_places>(), col, false);

  *size = tc_size_of(W, kind);
  return {0, 0, r, static_cast<uint16_t>(entries), static_cast<uint8_t>(kind), TC_HYBRID_F64};
}

template <int team>
__device__ __forceinline__ tc_hybrid_slice tc_measure_slice(const tc_hybrid &H, int32_t slice, const int32_t *col, int thread, tc_tile_size *size)
{
  const int32_t        packed = TC_HYBRID_SLICE_ROWS * slice, *row = H.row_id + H.num_long + packed;
  const int            rows = min(H.num_sliced - packed, static_cast<int32_t>(TC_HYBRID_SLICE_ROWS)), length = thread < rows ? H.length[packed + thread] : 0, width = tc_warp_max(length);
  const bool           aligned = __all_sync(tc_full_warp, length == width), in_a_row = __all_sync(tc_full_warp, thread < rows && row[thread] == row[0] + thread);
  tc_hybrid_index_kind kind;

  tc_walk_slice(H, slice, width, thread, [&](const auto &W) {
    kind  = tc_choose_index_kind<team>(W, {H, slice, thread}, col, aligned);
    *size = tc_size_of(W, kind);
  });
  return {0, 0, in_a_row ? row[0] : -1, static_cast<uint8_t>(width), static_cast<uint8_t>(kind), TC_HYBRID_F64, static_cast<uint8_t>(rows), aligned};
}

/* val and index count from the beginning of the piece's tile */
template <typename piece>
__device__ __forceinline__ piece tc_begin_at(piece P, const tc_tile_size &begin)
{
  P.val += begin.val;
  P.index += begin.index;
  return P;
}

/*
  tc_build_hybrid_measure_kernel - segments and slices, where they begin in their tile, and the sizes of the tiles

  Work:   a team of warps per piece, a tile per block and round
  Lanes:  see tc_hybrid_walk; the warps of a team share its blocks
  Arrays: the view's arrays up to `length`; row_ptr [num_rows + 1], col [nnz]; rows, what all rows make together; tile [tiles]; all device
  Writes: segment, slice and tile once each
  Launch: tc_piece_threads per block, a few words of shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
template <int team>
static __global__ void __launch_bounds__(tc_piece_threads) tc_build_hybrid_measure_kernel(const __grid_constant__ tc_hybrid view, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const tc_row_counts *__restrict__ rows,
                                                                                        tc_tile_size *__restrict__ tile_size)
{
  constexpr int           teams = tc_piece_warps / team;
  const int               mine = threadIdx.x / tc_warp_size / team, thread = threadIdx.x % tc_warp_size;
  __shared__ tc_tile_size sizes[teams];

  tc_begin_next_kernel();
  tc_wait_for_kernel_before();
  const tc_hybrid H      = tc_counted(view, *rows);
  const int32_t   pieces = tc_num_pieces(H), tiles = tc_num_tiles(pieces, team);

  for (int32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int32_t     piece = tile * teams + mine, slice = piece - H.num_segments;
    tc_tile_size      size = {}, begin = {};
    tc_hybrid_segment segment;
    tc_hybrid_slice   rows_of_slice;

    if (slice < 0) segment = tc_measure_segment<team>(H, piece, row_ptr, col, thread, &size);
    else if (piece < pieces) rows_of_slice = tc_measure_slice<team>(H, slice, col, thread, &size);
    if (tc_piece_team<team>::leads()) sizes[mine] = size;
    __syncthreads();
    for (int i = 0; i < mine; ++i) begin = {begin.val + sizes[i].val, begin.index + sizes[i].index};
    if (tc_piece_team<team>::leads()) {
      if (slice < 0) H.segment[piece] = tc_begin_at(segment, begin);
      else if (piece < pieces) H.slice[slice] = tc_begin_at(rows_of_slice, begin);
      if (mine == teams - 1) tile_size[tile] = {begin.val + size.val, begin.index + size.index};
    }
    __syncthreads();
  }
}

/*
  tc_build_hybrid_tiles_kernel - where each tile begins, and what the host has to know

  Work:   one block, tc_scan_threads * tc_tiles_items tiles at a time
  Lanes:  neighbouring tiles
  Arrays: rows as above; tile [tiles]; device; counts, on the host
  Writes: tile in place, counts
  Launch: tc_scan_threads, shared memory of CUB.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_scan_threads) tc_build_hybrid_tiles_kernel(const __grid_constant__ tc_hybrid view, int team, const tc_row_counts *__restrict__ rows, tc_tile_size *tile, tc_build_counts *counts)
{
  using scan = cub::BlockScan<tc_piece_size, tc_scan_threads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename scan::TempStorage scan_storage;
  tc_piece_size so_far = {};

  tc_wait_for_kernel_before();
  const int32_t tiles = tc_num_tiles(tc_num_pieces(tc_counted(view, *rows)), team);

  for (int32_t first = 0; first < tiles; first += tc_scan_threads * tc_tiles_items) {
    tc_piece_size size[tc_tiles_items], all;

#pragma unroll
    for (int j = 0; j < tc_tiles_items; ++j) {
      const int32_t      i    = first + tc_tiles_items * threadIdx.x + j;
      const tc_tile_size here = i < tiles ? tile[i] : tc_tile_size();

      size[j] = {here.val, here.index};
    }
    scan(scan_storage).ExclusiveScan(size, size, tc_piece_size(), tc_sizes_together(), all);
#pragma unroll
    for (int j = 0; j < tc_tiles_items; ++j) {
      const int32_t       i     = first + tc_tiles_items * threadIdx.x + j;
      const tc_piece_size begin = tc_sizes_together()(so_far, size[j]);

      if (i < tiles) tile[i] = {static_cast<uint32_t>(begin.val), static_cast<uint32_t>(begin.index)};
    }
    so_far = tc_sizes_together()(so_far, all);
    __syncthreads();
  }
  if (threadIdx.x == 0) *counts = {*rows, so_far};
}

/* The index blocks of a piece of that kind, U8, U16 or I32 */
template <int team, tc_hybrid_index_kind kind, typename stored, int places>
__device__ __forceinline__ void tc_put_columns_as(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, const int32_t *col, char *blocks, int thread)
{
  for (int b = tc_piece_team<team>::warp(); b < W.num_blocks(); b += team) {
    char *block = blocks + 16 * static_cast<int64_t>(b) * tc_hybrid_block_units(kind, places);

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

template <int team, int places>
__device__ __forceinline__ void tc_put_columns(const tc_hybrid_walk<places> &W, const tc_origins<places> &origins, int kind, const int32_t *col, char *block, int thread)
{
  if (kind == TC_HYBRID_U8) tc_put_columns_as<team, TC_HYBRID_U8, uint8_t>(W, origins, col, block, thread);
  else if (kind == TC_HYBRID_U16) tc_put_columns_as<team, TC_HYBRID_U16, uint16_t>(W, origins, col, block, thread);
  else tc_put_columns_as<team, TC_HYBRID_I32, int32_t>(W, origins, col, block, thread);
}

/* SHIFT: all lanes have the distances of the first, so there is nothing but bases, at most 256 of them */
template <int team>
__device__ __forceinline__ void tc_put_shifts(const tc_hybrid &H, int32_t slice, int width, const int32_t *col, char *block)
{
  const int32_t *first = col + H.csr_first[H.num_long + TC_HYBRID_SLICE_ROWS * slice], origin = tc_slice_origin(H, slice, 0);

  for (int k = threadIdx.x % (tc_warp_size * team); k < (width + tc_max_places - 1) / tc_max_places * tc_max_places; k += tc_warp_size * team) reinterpret_cast<int32_t *>(block)[k] = k < width ? first[k] - origin : 0;
}

/* What is taken over as it is, and what is zero in the beginning, in units of 16 bytes */
struct tc_hybrid_moves {
  tc_build_moves<4> arrays;
  uint4            *zero;
  int64_t           num_zero;
};

/*
  tc_build_hybrid_fill_kernel - the final arrays: pieces that know where they begin, their index blocks, and the rows; what a product or a refill finds zero

  Work:   a team of warps per piece, a tile per block and round; then all blocks move what is left
  Lanes:  see tc_hybrid_walk; the warps of a team share its blocks
  Arrays: the whole view; S, a view of what the kernels before made; col [nnz]; tile [tiles], scanned; all device
  Writes: index, slice, segment and what `moves` names once each
  Launch: tc_piece_threads per block, no shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
template <int team>
static __global__ void __launch_bounds__(tc_piece_threads, 5) tc_build_hybrid_fill_kernel(const __grid_constant__ tc_hybrid H, const __grid_constant__ tc_hybrid S, const __grid_constant__ tc_hybrid_moves moves, const int32_t *__restrict__ col,
                                                                                          const tc_tile_size *__restrict__ tile_begin)
{
  constexpr int teams = tc_piece_warps / team;
  const int     thread = threadIdx.x % tc_warp_size;
  const int32_t pieces = tc_num_pieces(H), tiles = tc_num_tiles(pieces, team);

  for (int32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int32_t piece = tile * teams + threadIdx.x / tc_warp_size / team, slice = piece - H.num_segments;

    if (slice < 0) {
      const tc_hybrid_segment P = tc_begin_at(S.segment[piece], tile_begin[tile]);

      tc_put_columns<team>(tc_walk_segment(S, piece, P.long_row, P.entries, thread), {}, P.index_kind, col, static_cast<char *>(H.index) + 16 * static_cast<int64_t>(P.index), thread);
      if (tc_piece_team<team>::leads()) H.segment[piece] = P;
    } else if (piece < pieces) {
      const tc_hybrid_slice P     = tc_begin_at(S.slice[slice], tile_begin[tile]);
      char                 *block = static_cast<char *>(H.index) + 16 * static_cast<int64_t>(P.index);

      if (P.index_kind == TC_HYBRID_SHIFT) tc_put_shifts<team>(S, slice, P.width, col, block);
      else tc_walk_slice(S, slice, P.width, thread, [&](const auto &W) { tc_put_columns<team>(W, {S, slice, thread}, P.index_kind, col, block, thread); });
      if (tc_piece_team<team>::leads()) H.slice[slice] = P;
    }
  }
  const int64_t begin = blockIdx.x * static_cast<int64_t>(tc_piece_threads) + threadIdx.x, step = gridDim.x * static_cast<int64_t>(tc_piece_threads);

  tc_move(moves.arrays);
  for (int64_t i = begin; i < moves.num_zero; i += step) moves.zero[i] = make_uint4(0, 0, 0, 0);
}
