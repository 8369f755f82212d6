/*
  Kernels that build a tc_bcsr on the device: what src/format/bcsr.c does for a window, a warp does here, and so every choice is the same.
*/
#pragma once
#include "merge_rows.cuh"
#include "tc_bcsr.h"

constexpr int tc_bcsr_build_threads = 128, tc_bcsr_build_warps = tc_bcsr_build_threads / tc_warp_size;

/* What was found about windows. Those of window w begin at its first entry, row_ptr[16 w]: no window has more columns, or groups, than entries. */
struct tc_bcsr_windows {
  int32_t  *column;      // [nnz] distinct, ascending
  uint16_t *rows;        // [nnz] which rows of the window have an entry
  int32_t  *first;       // [nnz] its first entry in `entry`, which has them by row
  int32_t  *entry;       // [nnz] in CSR
  int4     *member;      // [nnz] columns of a group
  uint8_t  *size;        // [nnz] how many
  int32_t  *order;       // [nnz] groups in 2:4 tiles, those of most columns first
  uint8_t  *is_dense;    // [nnz] is the column in no 2:4 tile?
  int32_t  *num_columns; // [num_windows]
  int32_t  *in_sparse;   // [num_windows] groups in 2:4 tiles
};

/* Two counts of a window, and of those before it */
struct tc_two {
  int64_t first, second;

  __host__ __device__ tc_two operator+(const tc_two &other) const { return {first + other.first, second + other.second}; }
};

/* The groups of a window that are open, in the order of their beginning: lane l has places l and 32 + l */
struct tc_open_groups {
  uint32_t once[2], twice[2]; // rows with an entry, with two
  int32_t  group[2], num[2];  // its number, its columns
  int      open;

  /* Takes place o out */
  __device__ __forceinline__ void close(int o, int lane)
  {
    shift(once, o, lane);
    shift(twice, o, lane);
    shift(group, o, lane);
    shift(num, o, lane);
    --open;
  }

  template <typename T>
  static __device__ __forceinline__ void shift(T (&of)[2], int o, int lane)
  {
    const T low = __shfl_down_sync(tc_full_warp, of[0], 1), high = __shfl_down_sync(tc_full_warp, of[1], 1), next = __shfl_sync(tc_full_warp, of[1], 0);

    if (lane >= o) of[0] = lane < tc_warp_size - 1 ? low : next;
    if (lane + tc_warp_size >= o) of[1] = high;
  }

  /* The place of the first group that has room for those rows, `open` if there is none */
  __device__ __forceinline__ int find(uint32_t rows, int lane) const
  {
    const uint32_t low = __ballot_sync(tc_full_warp, lane < open && (twice[0] & rows) == 0), high = __ballot_sync(tc_full_warp, lane + tc_warp_size < open && (twice[1] & rows) == 0);

    return low ? __ffs(low) - 1 : high ? tc_warp_size + __ffs(high) - 1 : open;
  }

  /* Column c, of those rows, goes into a group; lists are those of the window */
  __device__ __forceinline__ void put(int32_t c, uint32_t rows, int lane, int32_t &num_groups, int4 *member, uint8_t *size)
  {
    int o = find(rows, lane);

    if (o == open) {
      if (open == TC_BCSR_OPEN) close(0, lane);
      o = open++;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (lane + half * tc_warp_size != o) continue;
        once[half] = twice[half] = 0;
        group[half]              = num_groups;
        num[half]                = 0;
      }
      ++num_groups;
    }
    bool full = false;

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (lane + half * tc_warp_size != o) continue;
      twice[half] |= once[half] & rows;
      once[half] |= rows;
      reinterpret_cast<int32_t *>(member + group[half])[num[half]] = c;
      size[group[half]] = static_cast<uint8_t>(++num[half]);
      full              = num[half] == TC_BCSR_GROUP || twice[half] == 0xffff;
    }
    if (__any_sync(tc_full_warp, full)) close(o, lane);
  }
};

/* How many columns the first k groups have where num[s] have s and more of the largest come first */
__device__ __forceinline__ int64_t tc_columns_of_groups(int64_t k, const int32_t (&num)[TC_BCSR_GROUP + 1])
{
  int64_t columns = 0;

#pragma unroll
  for (int size = TC_BCSR_GROUP; size > 0; --size) {
    const int64_t taken = min(k, static_cast<int64_t>(num[size]));

    columns += size * taken;
    k -= taken;
  }
  return columns;
}

/* The fewest groups that make the tiles cheapest, in 2:4 tiles */
__device__ __forceinline__ int32_t tc_cheapest_groups(int32_t num_columns, int32_t num_groups, const int32_t (&num)[TC_BCSR_GROUP + 1], int lane)
{
  int64_t best = INT64_MAX, best_k = 0;

  for (int64_t k = lane; k <= num_groups; k += tc_warp_size) {
    const int64_t cost = tc_bcsr_cost(k, num_columns - tc_columns_of_groups(k, num));

    if (cost >= best) continue;
    best   = cost;
    best_k = k;
  }
#pragma unroll
  for (int apart = tc_warp_size / 2; apart > 0; apart /= 2) {
    const int64_t other = __shfl_xor_sync(tc_full_warp, best, apart), other_k = __shfl_xor_sync(tc_full_warp, best_k, apart);

    if (other > best || (other == best && other_k > best_k)) continue;
    best   = other;
    best_k = other_k;
  }
  return static_cast<int32_t>(best_k);
}

/* The groups of a window in order, those in 2:4 tiles, whose columns are marked; num[s] groups have s columns */
__device__ __forceinline__ void tc_order_groups(const tc_bcsr_windows &W, int64_t base, int32_t num_groups, int32_t in_sparse, const int32_t (&num)[TC_BCSR_GROUP + 1], int lane)
{
  int32_t next[TC_BCSR_GROUP + 1], before = 0;

#pragma unroll
  for (int size = TC_BCSR_GROUP; size > 0; --size) {
    next[size] = before;
    before += num[size];
  }
  for (int32_t first = 0; first < num_groups; first += tc_warp_size) {
    const int32_t g    = first + lane;
    const int     mine = g < num_groups ? W.size[base + g] : 0;
    int32_t       at   = in_sparse;

#pragma unroll
    for (int size = TC_BCSR_GROUP; size > 0; --size) {
      const uint32_t same = __ballot_sync(tc_full_warp, mine == size);

      if (mine == size) at = next[size] + __popc(same & ((1u << lane) - 1));
      next[size] += __popc(same);
    }
    if (at >= in_sparse) continue;
    const int4    columns = W.member[base + g];
    const int32_t of[]    = {columns.x, columns.y, columns.z, columns.w};

    W.order[base + at] = g;
#pragma unroll
    for (int p = 0; p < TC_BCSR_GROUP; ++p) {
      if (p < mine) W.is_dense[base + of[p]] = 0;
    }
  }
}

/*
  tc_build_bcsr_windows_kernel - the columns of each window, in groups, and how many go into 2:4 tiles

  Work:   a warp per window
  Lanes:  a row each while rows are merged, two open groups each while columns are put into groups, then consecutive groups
  Arrays: row_ptr [num_rows + 1], col of CSR; W; tiles [num_windows + 1]; all device
  Writes: W; tiles: all and 2:4 ones of each window, 0 after the last
  Launch: tc_bcsr_build_threads per block, no shared memory.  Needs: sm_80.  Source: src/format/bcsr.c
*/
static __global__ void __launch_bounds__(tc_bcsr_build_threads) tc_build_bcsr_windows_kernel(int32_t num_rows, int32_t num_windows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const __grid_constant__ tc_bcsr_windows W, tc_two *__restrict__ tiles)
{
  const int      lane = threadIdx.x % tc_warp_size;
  const int32_t  w    = blockIdx.x * tc_bcsr_build_warps + threadIdx.x / tc_warp_size, row = w * TC_BCSR_ROWS + lane;
  const bool     has_row = lane < TC_BCSR_ROWS && row < num_rows;
  int32_t        num_columns = 0, num_groups = 0, entries = 0, num[TC_BCSR_GROUP + 1] = {};
  tc_open_groups groups = {};

  if (w == num_windows && lane == 0) tiles[w] = {0, 0};
  if (w >= num_windows) return;
  const int64_t base  = row_ptr[w * TC_BCSR_ROWS];
  const int32_t begin = has_row ? row_ptr[row] : 0;
  const auto    at    = [=](int32_t e) { return __ldg(col + e); };
  tc_merge      merge(begin, has_row ? row_ptr[row + 1] - begin : 0, at);

  for (;; ++num_columns) {
    bool          mine;
    const int32_t column = merge.step(at, mine);

    if (column == tc_no_column) break;
    const uint32_t rows = __ballot_sync(tc_full_warp, mine);

    if (mine) W.entry[base + entries + __popc(rows & ((1u << lane) - 1))] = merge.place - 1;
    if (lane == 0) {
      W.column[base + num_columns]   = column;
      W.rows[base + num_columns]     = static_cast<uint16_t>(rows);
      W.first[base + num_columns]    = entries;
      W.is_dense[base + num_columns] = 1;
    }
    entries += __popc(rows);
    groups.put(num_columns, rows, lane, num_groups, W.member + base, W.size + base);
  }
  __syncwarp();
  for (int32_t g = lane; g < num_groups; g += tc_warp_size) {
#pragma unroll
    for (int size = 1; size <= TC_BCSR_GROUP; ++size) num[size] += W.size[base + g] == size;
  }
#pragma unroll
  for (int size = 1; size <= TC_BCSR_GROUP; ++size) num[size] = tc_warp_total(num[size]);
  const int32_t in_sparse = tc_cheapest_groups(num_columns, num_groups, num, lane);

  tc_order_groups(W, base, num_groups, in_sparse, num, lane);
  if (lane > 0) return;
  const int64_t sparse = tc_bcsr_tiles_of(in_sparse, TC_BCSR_GROUPS);

  W.num_columns[w] = num_columns;
  W.in_sparse[w]   = in_sparse;
  tiles[w]         = {sparse + tc_bcsr_tiles_of(num_columns - tc_columns_of_groups(in_sparse, num), TC_BCSR_DENSE), sparse};
}

/*
  tc_build_bcsr_count_kernel - the pieces of windows that have several

  Work:   a thread per window, and one more
  Lanes:  consecutive windows
  Arrays: tiles [num_windows + 1], of all windows before; pieces [num_windows + 1]; all device
  Writes: pieces: how many if there are several, and 1 then
  Launch: tc_bcsr_build_threads per block, no shared memory.  Needs: sm_70.  Source: src/format/bcsr.c
*/
static __global__ void __launch_bounds__(tc_bcsr_build_threads) tc_build_bcsr_count_kernel(int32_t num_windows, int32_t most, const tc_two *__restrict__ tiles, tc_two *__restrict__ pieces)
{
  const int32_t w = blockIdx.x * tc_bcsr_build_threads + threadIdx.x;

  if (w > num_windows) return;
  const int64_t num = w < num_windows ? tc_bcsr_pieces_of(tiles[w + 1].first - tiles[w].first, most) : 0;

  pieces[w] = num > 1 ? tc_two{num, 1} : tc_two{0, 0};
}

/*
  tc_build_bcsr_pieces_kernel - all pieces, and which windows have several

  Work:   a thread per window, and one more
  Lanes:  consecutive windows
  Arrays: tiles, pieces [num_windows + 1], of all windows before; the view; all device
  Writes: piece, split_window, split_first
  Launch: tc_bcsr_build_threads per block, no shared memory.  Needs: sm_70.  Source: src/format/bcsr.c
*/
static __global__ void __launch_bounds__(tc_bcsr_build_threads) tc_build_bcsr_pieces_kernel(const __grid_constant__ tc_bcsr T, int32_t most, const tc_two *__restrict__ tiles, const tc_two *__restrict__ pieces)
{
  const int32_t w = blockIdx.x * tc_bcsr_build_threads + threadIdx.x;

  if (w > T.num_windows) return;
  if (w == T.num_windows) {
    T.split_first[T.num_split] = T.num_slots;
    return;
  }
  const tc_two  before = tiles[w], slot = pieces[w];
  const int64_t num = tiles[w + 1].first - before.first, several = tc_bcsr_pieces_of(num, most), length = tc_bcsr_tiles_of(num, several);
  const bool    split = several > 1;
  int64_t       at = split ? slot.first : T.num_slots + w - slot.second, left = tiles[w + 1].second - before.second, tile = before.first, sparse = before.second;

  if (split) {
    T.split_window[slot.second] = w;
    T.split_first[slot.second]  = static_cast<int32_t>(slot.first);
  }
  for (int64_t i = 0; i < several; ++i) {
    const int64_t own = i < several - 1 ? length : num - length * i, own_sparse = min(left, own);

    T.piece[at++] = {static_cast<uint32_t>(tile), static_cast<uint32_t>(sparse), w, static_cast<uint8_t>(own_sparse), static_cast<uint8_t>(own - own_sparse), 0};
    tile += own;
    sparse += own_sparse;
    left -= own_sparse;
  }
}

/* Group q = lane % 8 of a 2:4 tile, of which a warp has four at a time; `used`: it is there. What is put where: put_group() in src/format/bcsr.c */
__device__ __forceinline__ void tc_put_bcsr_group(const tc_bcsr &T, const tc_bcsr_windows &W, int64_t base, int32_t num_columns, int32_t k, bool is_group, bool is_tile, int64_t tile, int64_t sparse, int lane)
{
  constexpr int last = TC_BCSR_GROUP - 1;
  const int32_t q = lane % TC_BCSR_GROUPS, g = is_group ? W.order[base + k] : 0, num = is_group ? W.size[base + g] : 0;
  const int4    members = is_group ? W.member[base + g] : int4{};
  const int32_t of[]    = {members.x, members.y, members.z, members.w};
  int32_t      *map = T.map + TC_BCSR_SLOTS * tile, c = num_columns - 1;
  uint32_t      met = 0, first[TC_BCSR_GROUP], second[TC_BCSR_GROUP];

#pragma unroll
  for (int p = 0; p < TC_BCSR_GROUP; ++p) {
    if (p < num) c = of[p];
    const uint32_t rows = p < num ? W.rows[base + c] : 0;

    first[p]  = rows & ~met;
    second[p] = rows & met;
    met |= rows;
    if (is_tile) T.column[tc_bcsr_columns_at(tile, sparse) + tc_bcsr_place(TC_BCSR_SPARSE, TC_BCSR_GROUP * q + p)] = W.column[base + c];
    int64_t at = base + W.first[base + c];

    for (uint32_t left = rows, upper = p == last ? rows : second[p]; left; left &= left - 1) {
      const int32_t i = __ffs(left) - 1;

      map[tc_bcsr_slot(i, 2 * q + static_cast<int32_t>(upper >> i & 1))] = W.entry[at++];
    }
  }
  const uint32_t several = second[1] | second[2] | second[last], one = met & ~several;
  const uint32_t bits[] = {first[1], first[2] | first[last], second[1] | second[last] | one | ~met, second[2] | second[last] | one};

#pragma unroll
  for (int i = 0; i < TC_BCSR_ROWS / 2; ++i) {
    uint32_t word = 0;

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = i + TC_BCSR_ROWS / 2 * half;

#pragma unroll
      for (int b = 0; b < 4; ++b) word |= (bits[b] >> row & 1) << (tc_bcsr_choice_bit(row, q) + b);
    }
    word |= __shfl_xor_sync(tc_full_warp, word, 1);
    word |= __shfl_xor_sync(tc_full_warp, word, 2);
    if (is_tile && q % 4 == 0) T.choice[TC_BCSR_WORDS * sparse + tc_bcsr_choice_word(i, q)] = word;
  }
}

/*
  tc_build_bcsr_tiles_kernel - the tiles of each window

  Work:   a warp per window
  Lanes:  a group of one of four 2:4 tiles each, then consecutive columns
  Arrays: row_ptr [num_rows + 1] of CSR; W; tiles [num_windows + 1], of all windows before; the view; all device
  Writes: column, choice, map
  Launch: tc_bcsr_build_threads per block, no shared memory.  Needs: sm_70.  Source: src/format/bcsr.c
*/
static __global__ void __launch_bounds__(tc_bcsr_build_threads) tc_build_bcsr_tiles_kernel(const __grid_constant__ tc_bcsr T, const int32_t *__restrict__ row_ptr, const __grid_constant__ tc_bcsr_windows W, const tc_two *__restrict__ tiles)
{
  constexpr int at_once = tc_warp_size / TC_BCSR_GROUPS;
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w    = blockIdx.x * tc_bcsr_build_warps + threadIdx.x / tc_warp_size;

  if (w >= T.num_windows) return;
  const tc_two  begin = tiles[w], end = tiles[w + 1];
  const int64_t base = row_ptr[w * TC_BCSR_ROWS], num_sparse = end.second - begin.second, first_dense = begin.first + num_sparse;
  const int32_t num_columns = W.num_columns[w], in_sparse = W.in_sparse[w];
  int4         *padding = reinterpret_cast<int4 *>(T.map + TC_BCSR_SLOTS * begin.first);
  int32_t       dense = 0;

  for (int64_t i = lane; i < TC_BCSR_SLOTS / 4 * (end.first - begin.first); i += tc_warp_size) padding[i] = {TC_BCSR_PAD, TC_BCSR_PAD, TC_BCSR_PAD, TC_BCSR_PAD};
  __syncwarp();
  for (int64_t s = 0; s < num_sparse; s += at_once) {
    const int64_t mine = s + lane / TC_BCSR_GROUPS;
    const int32_t k    = static_cast<int32_t>(TC_BCSR_GROUPS * mine + lane % TC_BCSR_GROUPS);

    tc_put_bcsr_group(T, W, base, num_columns, k, k < in_sparse, mine < num_sparse, begin.first + mine, begin.second + mine, lane);
  }
  for (int32_t first = 0; first < num_columns; first += tc_warp_size) {
    const int32_t  c     = first + lane;
    const bool     mine  = c < num_columns && W.is_dense[base + c];
    const uint32_t found = __ballot_sync(tc_full_warp, mine);
    const int32_t  rank = dense + __popc(found & ((1u << lane) - 1)), k = rank % TC_BCSR_DENSE;

    dense += __popc(found);
    if (!mine) continue;
    const int64_t tile   = first_dense + rank / TC_BCSR_DENSE;
    int32_t      *column = T.column + tc_bcsr_columns_at(tile, end.second);
    int64_t       at     = base + W.first[base + c];

    column[tc_bcsr_place(TC_BCSR_DENSE, k)] = W.column[base + c];
    for (uint32_t rows = W.rows[base + c]; rows; rows &= rows - 1) T.map[TC_BCSR_SLOTS * tile + tc_bcsr_slot(__ffs(rows) - 1, k)] = W.entry[at++];
  }
  /* Places beyond the last column repeat it */
  if (dense % TC_BCSR_DENSE == 0) return;
  int32_t *column = T.column + tc_bcsr_columns_at(end.first - 1, end.second);

  __syncwarp();
  if (lane >= dense % TC_BCSR_DENSE && lane < TC_BCSR_DENSE) column[tc_bcsr_place(TC_BCSR_DENSE, lane)] = column[tc_bcsr_place(TC_BCSR_DENSE, dense % TC_BCSR_DENSE - 1)];
}
