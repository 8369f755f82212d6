/*
  The kernels that build the BitTCF format, byte for byte as src/format/bittcf.c does, once the order of its rows is known. Included by build_bittcf.cu alone.
*/
#pragma once
#include "build_bittcf_order.cuh"
#include "tc_build.cuh"

/*
  tc_build_bittcf_flags_kernel - which rows are long

  Work:   a row per thread, and one more
  Lanes:  consecutive rows
  Arrays: row_ptr, flag [num_rows + 1]; device
  Writes: flag: 1 for long rows, 0 for others and behind the last
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_flags_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, int32_t *__restrict__ flag)
{
  const int64_t i = (int64_t)blockIdx.x * tc_build_threads + threadIdx.x;

  if (i <= num_rows) flag[i] = i < num_rows && row_ptr[i + 1] - row_ptr[i] >= TC_BITTCF_LONG_ROW;
}

/*
  tc_build_bittcf_long_kernel - the list of long rows

  Work:   a row per thread
  Lanes:  consecutive rows
  Arrays: row_ptr [num_rows + 1]; before [num_rows + 1], the long rows before each row; long_row, long_segments [num_long]; news; all device
  Writes: long_row and long_segments once each, news->num_segments, which was 0
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_long_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ before, int32_t *__restrict__ long_row, int32_t *__restrict__ long_segments, tc_build_news *__restrict__ news)
{
  const int64_t i = (int64_t)blockIdx.x * tc_build_threads + threadIdx.x;

  if (i >= num_rows || before[i] == before[i + 1]) return;
  const int32_t segments = (row_ptr[i + 1] - row_ptr[i] - 1) / TC_SPMM_SEGMENT + 1;

  long_row[before[i]]      = static_cast<int32_t>(i);
  long_segments[before[i]] = segments;
  atomicAdd(&news->num_segments, segments);
}

/*
  tc_build_bittcf_blocks_kernel - windows that a block of long rows takes: the segments of its longest row

  Work:   a block of long rows per thread, and one more
  Lanes:  consecutive blocks
  Arrays: long_segments [num_long] of the view, whose long_windows is set; windows [blocks + 1]; all device
  Writes: windows once each, 0 behind the last
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_blocks_kernel(const __grid_constant__ tc_bittcf T, int32_t *__restrict__ windows)
{
  const int32_t b = blockIdx.x * tc_build_threads + threadIdx.x, rows = tc_bittcf_long_rows(&T);
  int32_t       longest = 0;

  if (b > tc_bittcf_long_blocks(&T)) return;
  for (int32_t r = rows * b; r < min(rows * (b + 1), T.num_long); ++r) longest = max(longest, T.long_segments[r]);
  windows[b] = T.long_windows * longest;
}

/* What a packed row is, where it begins in CSR and how many entries it has */
struct tc_packed_row {
  int32_t id, first, entries;
};

__device__ __forceinline__ tc_packed_row tc_packed_row_at(const tc_bittcf &T, const int32_t *row_ptr, const int32_t *row_order, int32_t w, int32_t i)
{
  constexpr int32_t rows = TC_BITTCF_ROWS;

  if (w < T.num_row_windows) {
    const int32_t row     = tc_bittcf_row_at(row_order, tc_bittcf_row(&T.order, T.num_rows, w, i));
    const int32_t first   = row < 0 ? 0 : row_ptr[row];
    const int32_t entries = row < 0 ? 0 : row_ptr[row + 1] - first;

    if (row < 0 || entries >= TC_BITTCF_LONG_ROW) return {TC_BITTCF_NO_ROW, 0, 0};
    return {row, entries > 0 ? first : 0, entries};
  }
  const int32_t v   = w - T.num_row_windows;
  int32_t       low = 0, high = tc_bittcf_long_blocks(&T) - 1; // the block of long rows: the last that begins at v or before

  while (low < high) {
    const int32_t middle = high - (high - low) / 2;

    if (T.long_first[middle] <= v) low = middle;
    else high = middle - 1;
  }
  const int32_t in_block = v - T.long_first[low], s = in_block / T.long_windows, r = rows * (T.long_windows * low + in_block % T.long_windows) + i;

  if (r >= T.num_long || s >= T.long_segments[r]) return {TC_BITTCF_NO_ROW, 0, 0};
  const int32_t row = T.long_row[r], first = row_ptr[row] + TC_SPMM_SEGMENT * s;

  return {~(rows * v + i), first, min(row_ptr[row + 1] - first, static_cast<int32_t>(TC_SPMM_SEGMENT))};
}

constexpr int tc_window_threads = 128, tc_window_warps = tc_window_threads / tc_warp_size;

/*
  tc_build_bittcf_measure_kernel - packed rows; windows but for where they begin, and their sizes

  Work:   a warp per window, and one more, whose size is 0: the scan over the sizes then ends with their sum
  Lanes:  a packed row each; four for a row
  Arrays: the view up to long_first; row_ptr, col, row_order as above; length [8 * num_windows]; size [num_windows + 1]; all device
  Writes: row_id, csr_first, length, window (val and tiles as 0) and size once each; the first of long_first if there are no long rows
  Launch: tc_window_threads per block, 32 KB of shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_window_threads) tc_build_bittcf_measure_kernel(const __grid_constant__ tc_bittcf T, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const int32_t *__restrict__ row_order, uint16_t *__restrict__ length, tc_window_size *__restrict__ size)
{
  __shared__ uint4 bits[tc_window_warps][tc_set_fours];
  const int        lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t    w    = blockIdx.x * tc_window_warps + warp;
  const bool       used = w < T.num_windows && lane < TC_BITTCF_ROWS;

  if (w > T.num_windows) return;
  const tc_packed_row   R = used ? tc_packed_row_at(T, row_ptr, row_order, w, lane) : tc_packed_row{TC_BITTCF_NO_ROW, 0, 0};
  const tc_column_range range(col, R.first, R.entries);
  tc_column_set         columns = {bits[warp], nullptr};
  int32_t               all = R.entries, groups = 0;

  if (used) {
    const int64_t packed = (int64_t)TC_BITTCF_ROWS * w + lane;

    T.row_id[packed]    = R.id;
    T.csr_first[packed] = R.first;
    length[packed]      = static_cast<uint16_t>(R.entries);
  }
  if (range.fits()) {
    const int32_t last = range.largest - range.smallest;

    columns.clear(last, lane, tc_warp_size);
    __syncwarp();
    tc_each_entry(col, __shfl_sync(tc_full_warp, R.first, lane / 4), __shfl_sync(tc_full_warp, R.entries, lane / 4), lane, [&](int32_t column) { columns.put(column - range.smallest); });
    __syncwarp();
    groups = (columns.size(last, lane) + TC_BITTCF_GROUP - 1) / TC_BITTCF_GROUP;
  } else tc_walk_groups(col, R.first, R.entries, lane, [&](int, int, uint32_t, int32_t) { ++groups; });
  for (int half = tc_warp_size / 2; half > 0; half /= 2) all += __shfl_xor_sync(tc_full_warp, all, half);
  if (lane > 0) return;
  const int32_t base = groups > 0 ? range.smallest : 0;
  const int     wide = tc_bittcf_is_wide(base, groups > 0 ? range.largest : 0);

  size[w] = {static_cast<int64_t>(tc_bittcf_units(groups, wide)), groups, all, tc_bittcf_place_blocks(groups), groups, range.fits() ? range.largest - range.smallest : 0};
  if (w == 0 && T.num_long == 0) T.long_first[0] = 0;
  if (w < T.num_windows) T.window[w] = {0, 0, base, static_cast<uint16_t>(groups), static_cast<uint8_t>(wide), 0};
}

/* What a warp needs to fill a window of the view */
struct tc_window_room {
  int32_t fours, groups;

  __host__ __device__ __forceinline__ tc_window_room(const tc_window_size &all) : fours(all.furthest / 128 + 1), groups(all.most_groups) { }
  __host__ __device__ __forceinline__ int bytes() const { return 16 * fours + (2 * fours + 15) / 16 * 16 + (4 * groups + 15) / 16 * 16; }
  __device__ __forceinline__ tc_column_set set(char *memory) const { return {reinterpret_cast<uint4 *>(memory), reinterpret_cast<uint16_t *>(memory + 16 * fours)}; }
  __device__ __forceinline__ uint32_t     *masks(char *memory) const { return reinterpret_cast<uint32_t *>(memory + 16 * fours + (2 * fours + 15) / 16 * 16); }
};

/* Masks, and columns of 16 bits, of a window whose columns lie close together; `masks` has room for the former in shared memory */
__device__ __forceinline__ void tc_fill_narrow(const tc_window &W, const int32_t *col, int32_t first, int32_t entries, int lane, tc_column_set set, uint32_t *masks, uint32_t *mask, uint16_t *columns)
{
  const tc_column_range range(col, first, entries);
  const int32_t         last   = range.largest - range.smallest;
  const int32_t         begin  = __shfl_sync(tc_full_warp, first, lane / 4), num = __shfl_sync(tc_full_warp, entries, lane / 4);
  const int             groups = W.num_groups();

  set.clear(last, lane, tc_warp_size);
#pragma unroll 1
  for (int i = lane; i < groups; i += tc_warp_size) masks[i] = 0;
  __syncwarp();
  tc_each_entry(col, begin, num, lane, [&](int32_t column) { set.put(column - range.smallest); });
  __syncwarp();
  const int all = set.count(last, lane);

  __syncwarp();
  tc_each_entry(col, begin, num, lane, [&](int32_t column) {
    const int rank = set.rank(column - range.smallest);

    atomicOr(&masks[rank / TC_BITTCF_GROUP], 1u << (TC_BITTCF_GROUP * (lane / 4) + rank % TC_BITTCF_GROUP));
  });
  set.each(last, lane, tc_warp_size, [&](int rank, int32_t column) { columns[rank] = static_cast<uint16_t>(column); });
  if (all + lane < TC_BITTCF_GROUP * groups) columns[all + lane] = static_cast<uint16_t>(last);
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < groups; i += tc_warp_size) mask[i] = masks[i];
}

/*
  tc_build_bittcf_fill_kernel - where windows begin, their masks and columns

  Work:   a warp per window
  Lanes:  a packed row each; four for a row
  Arrays: the view up to tiles; length as above; col [nnz]; before [num_windows], the sizes of the windows before each; all device
  Writes: tiles, and val and tiles of the windows, once each
  Launch: tc_window_threads per block, room.bytes() of shared memory for each warp, 11 KB at most.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_window_threads) tc_build_bittcf_fill_kernel(const __grid_constant__ tc_bittcf T, const tc_window_room room, const uint16_t *__restrict__ length, const int32_t *__restrict__ col, const tc_window_size *__restrict__ before)
{
  extern __shared__ uint4 memory[];
  const int               lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t           w = blockIdx.x * tc_window_warps + warp;
  const int64_t           packed = (int64_t)TC_BITTCF_ROWS * w + lane;
  char                   *own = reinterpret_cast<char *>(memory) + warp * room.bytes();

  if (w >= T.num_windows) return;
  const tc_window W       = tc_load_window(T, w);
  const int64_t   units   = tc_bittcf_units(W.num_groups(), W.wide());
  uint32_t       *mask    = reinterpret_cast<uint32_t *>(static_cast<char *>(T.tiles) + 16 * before[w].units);
  uint32_t       *columns = mask + W.num_groups(), *end = columns + (W.wide() ? 4 : 2) * W.num_groups();
  const int32_t   first = lane < TC_BITTCF_ROWS ? T.csr_first[packed] : 0, entries = lane < TC_BITTCF_ROWS ? length[packed] : 0;

  if (W.wide()) {
    tc_walk_groups(col, first, entries, lane, [&](int i, int, uint32_t part, int32_t column) {
      uint32_t bits = part << TC_BITTCF_GROUP * (lane % TC_BITTCF_ROWS);

#pragma unroll
      for (int apart = 1; apart < TC_BITTCF_ROWS; apart *= 2) bits |= __shfl_xor_sync(tc_full_warp, bits, apart);
      if (lane == 0) mask[i] = bits;
      if (lane < TC_BITTCF_GROUP) reinterpret_cast<int32_t *>(columns)[TC_BITTCF_GROUP * i + lane] = column;
    });
  } else if (W.num_groups() > 0) tc_fill_narrow(W, col, first, entries, lane, room.set(own), room.masks(own), mask, reinterpret_cast<uint16_t *>(columns));
  if (lane < mask + 4 * units - end) end[lane] = 0;
  if (lane == 0) {
    T.window[w].val   = static_cast<uint32_t>(before[w].entries);
    T.window[w].tiles = static_cast<uint32_t>(before[w].units);
  }
}

/* Arrays of the view that are made before the memory in which they stay: see tc_settle() */
using tc_bittcf_moves = tc_build_moves<7>;

/*
  tc_build_bittcf_move_kernel - arrays to where they stay

  Work:   16 bytes per thread and round
  Lanes:  consecutive 16 bytes
  Arrays: those of `moves`; device
  Writes: what `moves` names once each
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_70.  Source: a copy
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_move_kernel(const __grid_constant__ tc_bittcf_moves moves)
{
  tc_move(moves);
}

/* The columns of the window that lane `lane` has in the merge of a cluster */
struct tc_window_list {
  tc_window       W;
  const uint32_t *masks;

  __device__ __forceinline__ tc_window_list(const tc_bittcf &T, int32_t cluster, int lane) : W(), masks(nullptr)
  {
    const int32_t w = cluster * T.cluster_windows + lane;

    if (lane >= T.cluster_windows || w >= T.num_windows) return;
    W     = tc_load_window(T, w);
    masks = tc_tiles_at(T, W.tiles);
  }
  /* That of another lane, for all */
  __device__ __forceinline__ tc_window_list of_lane(int lane) const
  {
    tc_window_list other = *this;

    other.W.val   = 0; // of no interest
    other.W.tiles = __shfl_sync(tc_full_warp, W.tiles, lane);
    other.W.base  = __shfl_sync(tc_full_warp, W.base, lane);
    other.W.size  = __shfl_sync(tc_full_warp, W.size, lane);
    other.masks   = reinterpret_cast<const uint32_t *>(__shfl_sync(tc_full_warp, reinterpret_cast<unsigned long long>(masks), lane));
    return other;
  }
  __device__ __forceinline__ int32_t length() const { return TC_BITTCF_GROUP * W.num_groups(); }
  __device__ __forceinline__ int32_t operator()(int32_t at) const { return W.column_base() + tc_column_entry(W, masks, at); }
};

/* The first place of the list whose column is `column` or larger */
__device__ __forceinline__ int32_t tc_first_from(const tc_window_list &list, int32_t column)
{
  int32_t low = 0, high = list.length();

  while (low < high) {
    const int32_t middle = (low + high) / 2;

    if (list(middle) < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The column that piece p of the merge of a cluster begins with, a multiple of `of`: the mean of the lists' quantiles, so that pieces have about as many columns */
__device__ __forceinline__ int32_t tc_piece_begin(const tc_window_list &list, int32_t of, int p)
{
  const int32_t length = list.length(), used = __popc(__ballot_sync(tc_full_warp, length > 0));
  int64_t       sum    = length > 0 ? list((int32_t)((int64_t)p * (length - 1) / tc_build_warps)) : 0;

  for (int half = tc_warp_size / 2; half > 0; half /= 2) sum += __shfl_xor_sync(tc_full_warp, sum, half);
  return used > 0 ? static_cast<int32_t>(sum / used) / of * of : 0;
}

/*
  Calls put(number, entry) for the entries of piece p of the list of a cluster, each of which stands for `of` columns; returns how many. A warp has a piece; first[p] is where the
  lists of its windows begin.
*/
template <typename Put>
__device__ __forceinline__ int32_t tc_walk_cluster(const tc_window_list &columns, int32_t of, int p, int lane, int32_t (&first)[tc_build_warps][tc_warp_size], const Put &put)
{
  int32_t num = 0, last = -1;

  first[p][lane] = p > 0 ? tc_first_from(columns, tc_piece_begin(columns, of, p)) : 0;
  __syncthreads();
  tc_merge merge(first[p][lane], (p < tc_build_warps - 1 ? first[p + 1][lane] : columns.length()) - first[p][lane], columns);

  for (;;) {
    bool          held;
    const int32_t column = merge.step(columns, held);

    if (column == tc_no_column) return num;
    if (column / of == last) continue;
    last = column / of;
    put(num++, last);
  }
}

/* The same cluster as a set, if its entries lie close together: entries counted from the smallest one. All threads of a block; returns how many, -1 if they are too far apart. */
__device__ __forceinline__ int32_t tc_collect_cluster(const tc_bittcf &T, const tc_window_list &columns, int32_t of, int p, int lane, tc_column_set set, int32_t *all, tc_column_range &range)
{
  const int32_t length = columns.length();

  range.smallest = tc_smallest_of_warp(length > 0 ? columns(0) / of : tc_no_column);
  range.largest  = -1 - tc_smallest_of_warp(length > 0 ? -1 - columns(length - 1) / of : 0);
  if (!range.fits()) return -1;
  const int32_t last = range.largest - range.smallest;

  set.clear(last, threadIdx.x, tc_build_threads);
  __syncthreads();
  for (int w = p; w < T.cluster_windows; w += tc_build_warps) {
    const tc_window_list own = columns.of_lane(w);

    for (int32_t at = lane; at < own.length(); at += tc_warp_size) set.put(own(at) / of - range.smallest);
  }
  __syncthreads();
  if (p == 0) {
    const int num = set.count(last, lane);

    if (lane == 0) *all = num;
  }
  __syncthreads();
  return *all;
}

/*
  tc_build_bittcf_clusters_kernel - the lists of the clusters, each where it has room for its most, and how many entries they have

  Work:   a thread block per cluster, and one more, whose list is empty; where columns lie far apart a warp per piece of a merge, whose steps wait for each other
  Lanes:  columns of a window; a window each where columns lie far apart
  Arrays: the view up to tiles; size [clusters + 1]; list [clusters, tc_bittcf_most_listed()]; all device
  Writes: size once each; of list what there is, where there is no more than fits
  Launch: tc_build_threads per block, 4 bytes of shared memory for each of tc_build_warps * tc_bittcf_most_listed() entries, and 11 KB.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_clusters_kernel(const __grid_constant__ tc_bittcf T, tc_list_size *__restrict__ size, int32_t *__restrict__ list)
{
  extern __shared__ int32_t merged[]; // [tc_build_warps, most]
  __shared__ tc_set_memory  memory;
  __shared__ int32_t        first[tc_build_warps][tc_warp_size], num_merged[tc_build_warps], num_collected;
  const int                 lane = threadIdx.x % tc_warp_size, p = threadIdx.x / tc_warp_size;
  const int32_t             c = blockIdx.x, of = tc_bittcf_listed(&T), most = tc_bittcf_most_listed(&T);
  const tc_window_list      columns(T, c, lane);
  const tc_column_set       set = memory.set();
  tc_column_range           range;
  int32_t                  *mine = merged + most * p, *to = list + (int64_t)most * c, before = 0, all = tc_collect_cluster(T, columns, of, p, lane, set, &num_collected, range);

  if (all >= 0) {
    if (all <= most) set.each(range.largest - range.smallest, threadIdx.x, tc_build_threads, [&](int rank, int32_t entry) { to[rank] = range.smallest + entry; });
    if (threadIdx.x == 0) size[c] = {static_cast<uint32_t>(all), all};
    return;
  }
  const int32_t num = tc_walk_cluster(columns, of, p, lane, first, [&](int32_t i, int32_t entry) {
    if (lane == 0 && i < most) mine[i] = entry;
  });

  if (lane == 0) num_merged[p] = num;
  __syncthreads();
  all = 0;
  for (int q = 0; q < tc_build_warps; ++q) {
    before += q < p ? num_merged[q] : 0;
    all += num_merged[q];
  }
  if (threadIdx.x == 0) size[c] = {static_cast<uint32_t>(all), all};
  if (all > most) return;
  for (int32_t i = lane; i < num; i += tc_warp_size) to[before + i] = mine[i];
}

/*
  tc_build_bittcf_places_kernel - the lists of the clusters one behind the other, and where the columns of their windows are among them

  Work:   a thread block per cluster; then a warp per window
  Lanes:  consecutive entries; then places of windows
  Arrays: the whole view; before [num_windows], sizes as above, and lists [clusters + 1], both scanned; list as above; all device
  Writes: cluster_first, cluster_list, place_first, place once each
  Launch: tc_build_threads per block, 7 KB of shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_places_kernel(const __grid_constant__ tc_bittcf T, const tc_window_size *__restrict__ before, const tc_list_size *__restrict__ lists, const int32_t *__restrict__ list)
{
  __shared__ int32_t listed[TC_BITTCF_MOST_LISTED], rows[TC_BITTCF_MOST_LISTED]; // of which four are referred to, a bit each
  const int          lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t      c = blockIdx.x, of = tc_bittcf_listed(&T);
  const uint32_t     first = lists[c].entries, end = lists[c + 1].entries;
  const int32_t      num = static_cast<int32_t>(end - first);

  if (threadIdx.x == 0) T.cluster_first[c] = first;
  if (threadIdx.x == 0 && c == T.num_clusters - 1) T.cluster_first[c + 1] = end;
  for (int32_t i = threadIdx.x; i < num; i += tc_build_threads) {
    listed[i] = list[(int64_t)tc_bittcf_most_listed(&T) * c + i];
    rows[i]   = 0;
  }
  __syncthreads();
  for (int32_t w = c * T.cluster_windows + warp; w < min((c + 1) * T.cluster_windows, T.num_windows); w += tc_build_warps) {
    const tc_window W     = tc_load_window(T, w);
    const uint32_t *masks = tc_tiles_at(T, W.tiles);
    const int32_t   side  = TC_BITTCF_PLACES * tc_bittcf_place_blocks(W.num_groups()); // places of the columns of one number
    uint16_t       *place = T.place + TC_BITTCF_BLOCK * static_cast<int64_t>(before[w].place_blocks);

    if (lane == 0) T.place_first[w] = static_cast<uint32_t>(before[w].place_blocks);
    for (int32_t at = lane; at < TC_BITTCF_GROUP * side; at += tc_warp_size) {
      const int32_t column = W.column_base() + tc_column_entry(W, masks, TC_BITTCF_GROUP * min(at % side, W.num_groups() - 1) + at / side);
      int32_t       low = 0, high = num - 1;

      while (low < high) {
        const int32_t middle = (low + high) / 2;

        if (listed[middle] < column / of) low = middle + 1;
        else high = middle;
      }
      place[at] = static_cast<uint16_t>(of * low + column % of);
      if (of > 1) atomicOr(&rows[low], 1 << column % of);
    }
  }
  __syncthreads();
  for (int32_t i = threadIdx.x; i < num; i += tc_build_threads) T.cluster_list[first + i] = of > 1 ? listed[i] << TC_BITTCF_GROUP | rows[i] : listed[i];
}
