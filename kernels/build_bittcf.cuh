/*
  The kernels that build the BitTCF format, byte for byte as src/format/bittcf.c does. A warp merges the rows of a window, a lane each: step by step the smallest column
  that any of them has not passed yet. Included by build_bittcf.cu alone.
*/
#pragma once
#include "bittcf.cuh"
#include "merge_rows.cuh"
#include "tc_bittcf_order.h"

constexpr int tc_build_threads = 256, tc_build_warps = tc_build_threads / tc_warp_size;

/* Sums over windows */
struct alignas(16) tc_window_size {
  int64_t units, entries, groups, place_blocks;
};

struct tc_sizes_together {
  __host__ __device__ tc_window_size operator()(const tc_window_size &a, const tc_window_size &b) const { return {a.units + b.units, a.entries + b.entries, a.groups + b.groups, a.place_blocks + b.place_blocks}; }
};

/* What the host wants to know, in one piece */
struct tc_build_news {
  int32_t            probe_length[TC_BITTCF_PROBES];
  int32_t            probe_col[TC_BITTCF_PROBES][TC_BITTCF_LONG_ROW];
  unsigned long long sample[TC_BITTCF_MAX_ORDERS][3]; // entries, groups, masks
  int32_t            num_long, num_segments, long_windows;
  int32_t            widest_window, widest_cluster;
};

struct tc_build_orders {
  tc_bittcf_order of[TC_BITTCF_MAX_ORDERS];
  int32_t         num;
};

/* How many windows of 8 rows have an element in a group: bit l of `holders` for lane l, a row each */
__device__ __forceinline__ int tc_windows_held(uint32_t holders)
{
  return ((holders & 0xffu) != 0) + ((holders & 0xff00u) != 0) + ((holders & 0xff0000u) != 0) + ((holders & 0xff000000u) != 0);
}

/* Goes through the groups of a window: group(i, columns of the group, the lane's part of it: bit k for column k; the column in place k of lane k) */
template <typename At, typename Group>
__device__ __forceinline__ void tc_walk_groups(tc_merge &merge, const At &at, int lane, const Group &group)
{
  uint32_t part = 0;
  int32_t  mine = 0, last = 0;
  int      place = 0, i = 0;

  for (;;) {
    bool          held;
    const int32_t column = merge.step(at, held);

    if (place == TC_BITTCF_GROUP || (column == tc_no_column && place > 0)) {
      group(i++, place, part, lane < place ? mine : last);
      part  = 0;
      place = 0;
    }
    if (column == tc_no_column) return;
    part |= static_cast<uint32_t>(held) << place;
    mine = lane == place ? column : mine;
    last = column;
    ++place;
  }
}

/*
  tc_build_bittcf_rows_kernel - which rows are long, and the rows that choosing an order looks at

  Work:   a row per thread, and one more; the first threads of the first block copy the probed rows
  Lanes:  consecutive rows
  Arrays: row_ptr [num_rows + 1]; col; flag [num_rows + 1]; news; all device
  Writes: flag: 1 for long rows, 0 for others and behind the last; probe_length and probe_col of news
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_rows_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, int3 probed, int32_t *__restrict__ flag, tc_build_news *__restrict__ news)
{
  const int64_t i = (int64_t)blockIdx.x * tc_build_threads + threadIdx.x;

  if (i <= num_rows) flag[i] = i < num_rows && row_ptr[i + 1] - row_ptr[i] >= TC_BITTCF_LONG_ROW;
  if (blockIdx.x > 0) return;
  for (int p = 0; p < TC_BITTCF_PROBES; ++p) {
    const int32_t row   = p == 0 ? probed.x : p == 1 ? probed.y : probed.z;
    const int32_t begin = row < num_rows ? row_ptr[row] : 0, length = row < num_rows ? row_ptr[row + 1] - begin : 0;

    if (threadIdx.x == 0) news->probe_length[p] = length < TC_BITTCF_LONG_ROW ? length : 0;
    if (length < TC_BITTCF_LONG_ROW && static_cast<int32_t>(threadIdx.x) < length) news->probe_col[p][threadIdx.x] = col[begin + threadIdx.x];
  }
}

/*
  tc_build_bittcf_long_kernel - the list of long rows

  Work:   a row per thread
  Lanes:  consecutive rows
  Arrays: row_ptr [num_rows + 1]; before [num_rows + 1], the long rows before each row; long_row, long_segments [num_long]; news; all device
  Writes: long_row and long_segments once each, news->num_segments, which was 0
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
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
  Arrays: long_segments [num_long]; windows [blocks + 1]; all device
  Writes: windows once each, 0 behind the last
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_blocks_kernel(int32_t num_long, const int32_t *__restrict__ long_segments, int32_t *__restrict__ windows)
{
  constexpr int32_t rows = TC_BITTCF_ROWS;
  const int32_t     b    = blockIdx.x * tc_build_threads + threadIdx.x, blocks = (num_long + rows - 1) / rows;
  int32_t           longest = 0;

  if (b > blocks) return;
  for (int32_t r = rows * b; r < min(rows * (b + 1), num_long); ++r) longest = max(longest, long_segments[r]);
  windows[b] = longest;
}

/*
  tc_build_bittcf_sample_kernel - what the neighbourhoods of the samples of all orders hold

  Work:   a warp per neighbourhood of a sample; blockIdx.y is the order
  Lanes:  a row each
  Arrays: row_ptr, col, row_order of the matrix, the last may be NULL; news; all device
  Writes: adds to news->sample, which were 0
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf_order.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_sample_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const int32_t *__restrict__ row_order, const __grid_constant__ tc_build_orders orders, tc_build_news *__restrict__ news)
{
  static_assert(TC_BITTCF_NEIGHBOURS * TC_BITTCF_ROWS == tc_warp_size, "a row of a neighbourhood per lane");
  const tc_bittcf_order &O    = orders.of[blockIdx.y];
  const int              lane = threadIdx.x % tc_warp_size;
  const int32_t          i = blockIdx.x * tc_build_warps + threadIdx.x / tc_warp_size, num = tc_bittcf_sample_size(&O);

  if (i >= num) return;
  const int32_t row   = tc_bittcf_row_at(row_order, tc_bittcf_sampled_row(&O, num_rows, i, num, lane));
  const int32_t begin = row < 0 ? 0 : row_ptr[row], length = row < 0 ? 0 : min(row_ptr[row + 1] - begin, static_cast<int32_t>(TC_SPMM_SEGMENT));
  const auto    at     = [=](int32_t e) { return __ldg(col + e); };
  tc_merge      merge(begin, length, at);
  int           groups = 0, masks = 0;

  tc_walk_groups(merge, at, lane, [&](int, int, uint32_t part, int32_t) {
    ++groups;
    masks += tc_windows_held(__ballot_sync(tc_full_warp, part != 0));
  });
  if (length > 0) atomicAdd(&news->sample[blockIdx.y][0], static_cast<unsigned long long>(length));
  if (lane == 0) {
    atomicAdd(&news->sample[blockIdx.y][1], static_cast<unsigned long long>(groups));
    atomicAdd(&news->sample[blockIdx.y][2], static_cast<unsigned long long>(masks));
  }
}

/*
  tc_build_bittcf_place_kernel - row_id, csr_first, and the entries of packed rows

  Work:   a packed row per thread
  Lanes:  consecutive packed rows
  Arrays: the view up to long_first; row_ptr [num_rows + 1]; row_order [num_rows] or NULL; length [8 * num_windows]; all device
  Writes: row_id, csr_first, length once each
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_place_kernel(const __grid_constant__ tc_bittcf T, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ row_order, uint16_t *__restrict__ length)
{
  constexpr int32_t rows   = TC_BITTCF_ROWS;
  const int64_t     packed = (int64_t)blockIdx.x * tc_build_threads + threadIdx.x, slot = packed - (int64_t)rows * T.num_row_windows;
  int32_t           id = TC_BITTCF_NO_ROW, first = 0, entries = 0;

  if (packed >= (int64_t)rows * T.num_windows) return;
  if (slot < 0) {
    const int32_t row = tc_bittcf_row_at(row_order, tc_bittcf_row(&T.order, T.num_rows, static_cast<int32_t>(packed / rows), static_cast<int32_t>(packed % rows)));

    if (row >= 0 && row_ptr[row + 1] - row_ptr[row] < TC_BITTCF_LONG_ROW) {
      id      = row;
      entries = row_ptr[row + 1] - row_ptr[row];
      first   = entries > 0 ? row_ptr[row] : 0;
    }
  } else {
    const int32_t w   = static_cast<int32_t>(slot / rows);
    int32_t       low = 0, high = tc_bittcf_long_blocks(&T) - 1; // the block of long rows: the last that begins at w or before

    while (low < high) {
      const int32_t middle = high - (high - low) / 2;

      if (T.long_first[middle] <= w) low = middle;
      else high = middle - 1;
    }
    const int32_t r = rows * low + static_cast<int32_t>(slot % rows), s = w - T.long_first[low];

    if (r < T.num_long && s < T.long_segments[r]) {
      const int32_t row = T.long_row[r];

      id      = ~static_cast<int32_t>(slot);
      first   = row_ptr[row] + TC_SPMM_SEGMENT * s;
      entries = min(row_ptr[row + 1] - first, static_cast<int32_t>(TC_SPMM_SEGMENT));
    }
  }
  T.row_id[packed]    = id;
  T.csr_first[packed] = first;
  length[packed]      = static_cast<uint16_t>(entries);
}

/*
  tc_build_bittcf_measure_kernel - windows but for where they begin, and their sizes

  Work:   a warp per window, and one more, whose size is 0: the scan over the sizes then ends with their sum
  Lanes:  a packed row each
  Arrays: the view up to csr_first; length as above; col [nnz]; size [num_windows + 1]; news; all device
  Writes: window (val and tiles as 0) and size once each; news->widest_window, which was 0
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_measure_kernel(const __grid_constant__ tc_bittcf T, const uint16_t *__restrict__ length, const int32_t *__restrict__ col, tc_window_size *__restrict__ size, tc_build_news *__restrict__ news)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w = blockIdx.x * tc_build_warps + threadIdx.x / tc_warp_size;
  const int64_t packed = (int64_t)TC_BITTCF_ROWS * w + lane;

  if (w > T.num_windows) return;
  const bool    used    = w < T.num_windows && lane < TC_BITTCF_ROWS;
  const int32_t entries = used ? length[packed] : 0;
  const auto    at      = [=](int32_t e) { return __ldg(col + e); };
  tc_merge      merge(used ? T.csr_first[packed] : 0, entries, at);
  const int32_t smallest = tc_smallest_of_warp(merge.head);
  int32_t       largest = 0, all = entries, groups = 0;

  tc_walk_groups(merge, at, lane, [&](int, int, uint32_t, int32_t column) {
    ++groups;
    largest = column; // of lane 31: the last
  });
  largest = __shfl_sync(tc_full_warp, largest, tc_warp_size - 1);
  for (int half = tc_warp_size / 2; half > 0; half /= 2) all += __shfl_xor_sync(tc_full_warp, all, half);
  if (lane > 0) return;
  const int32_t base = groups > 0 ? smallest : 0;
  const int     wide = tc_bittcf_is_wide(base, groups > 0 ? largest : 0);

  size[w] = {static_cast<int64_t>(tc_bittcf_units(groups, wide)), all, groups, tc_bittcf_place_blocks(groups)};
  if (w == T.num_windows) return;
  T.window[w] = {0, 0, base, static_cast<uint16_t>(groups), static_cast<uint8_t>(wide), 0};
  atomicMax(&news->widest_window, groups);
}

/*
  tc_build_bittcf_fill_kernel - where windows begin, their masks and columns

  Work:   a warp per window
  Lanes:  a packed row each
  Arrays: the view up to tiles; length as above; col [nnz]; before [num_windows], the sizes of the windows before each; all device
  Writes: tiles, and val and tiles of the windows, once each
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_fill_kernel(const __grid_constant__ tc_bittcf T, const uint16_t *__restrict__ length, const int32_t *__restrict__ col, const tc_window_size *__restrict__ before)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w = blockIdx.x * tc_build_warps + threadIdx.x / tc_warp_size;
  const int64_t packed = (int64_t)TC_BITTCF_ROWS * w + lane;

  if (w >= T.num_windows) return;
  const tc_window W       = tc_load_window(T, w);
  const int64_t   units   = tc_bittcf_units(W.num_groups(), W.wide());
  uint32_t       *mask    = reinterpret_cast<uint32_t *>(static_cast<char *>(T.tiles) + 16 * before[w].units);
  uint32_t       *columns = mask + W.num_groups(), *end = columns + (W.wide() ? 4 : 2) * W.num_groups();
  const auto      at      = [=](int32_t e) { return __ldg(col + e); };
  tc_merge        merge(lane < TC_BITTCF_ROWS ? T.csr_first[packed] : 0, lane < TC_BITTCF_ROWS ? length[packed] : 0, at);

  tc_walk_groups(merge, at, lane, [&](int i, int, uint32_t part, int32_t column) {
    uint32_t bits = part << TC_BITTCF_GROUP * (lane % TC_BITTCF_ROWS);

#pragma unroll
    for (int apart = 1; apart < TC_BITTCF_ROWS; apart *= 2) bits |= __shfl_xor_sync(tc_full_warp, bits, apart);
    if (lane == 0) mask[i] = bits;
    if (lane < TC_BITTCF_GROUP && W.wide()) reinterpret_cast<int32_t *>(columns)[TC_BITTCF_GROUP * i + lane] = column;
    if (lane < TC_BITTCF_GROUP && !W.wide()) reinterpret_cast<uint16_t *>(columns)[TC_BITTCF_GROUP * i + lane] = static_cast<uint16_t>(column - W.base);
  });
  if (lane < mask + 4 * units - end) end[lane] = 0;
  if (lane == 0) {
    T.window[w].val   = static_cast<uint32_t>(before[w].entries);
    T.window[w].tiles = static_cast<uint32_t>(before[w].units);
  }
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

/* Calls put(number, entry) for the entries of piece p of the list of a cluster, each of which stands for `of` columns; returns how many. A warp has a piece. */
template <typename Put>
__device__ __forceinline__ int32_t tc_walk_cluster(const tc_window_list &list, int32_t of, int p, const Put &put)
{
  const int32_t from = p > 0 ? tc_piece_begin(list, of, p) : 0, to = p < tc_build_warps - 1 ? tc_piece_begin(list, of, p + 1) : tc_no_column;
  const int32_t begin = tc_first_from(list, from);
  tc_merge      merge(begin, tc_first_from(list, to) - begin, list);
  int32_t       num = 0, last = -1;

  for (;;) {
    bool          held;
    const int32_t column = merge.step(list, held);

    if (column == tc_no_column) return num;
    if (column / of == last) continue;
    last = column / of;
    put(num++, last);
  }
}

/*
  tc_build_bittcf_clusters_kernel - how many entries the lists of the clusters have

  Work:   a thread block per cluster, and one more; a warp per piece of the merge, whose steps wait for each other
  Lanes:  a window each
  Arrays: the view up to tiles; num_listed [clusters + 1]; num_in_piece [clusters, tc_build_warps]; news; all device
  Writes: num_in_piece; num_listed once each, 0 behind the last; news->widest_cluster
  Launch: tc_build_threads per block, 4 bytes of shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_clusters_kernel(const __grid_constant__ tc_bittcf T, int32_t clusters, uint32_t *__restrict__ num_listed, int32_t *__restrict__ num_in_piece, tc_build_news *__restrict__ news)
{
  __shared__ int32_t all;
  const int          lane = threadIdx.x % tc_warp_size, piece = threadIdx.x / tc_warp_size;
  const int32_t      c    = blockIdx.x;

  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  const int32_t num = tc_walk_cluster(tc_window_list(T, c, lane), tc_bittcf_listed(&T), piece, [](int32_t, int32_t) {});

  if (lane == 0 && c < clusters) num_in_piece[(int64_t)tc_build_warps * c + piece] = num;
  if (lane == 0) atomicAdd(&all, num);
  __syncthreads();
  if (threadIdx.x > 0) return;
  num_listed[c] = static_cast<uint32_t>(all);
  atomicMax(&news->widest_cluster, all);
}

/*
  tc_build_bittcf_places_kernel - the lists of the clusters, and where the columns of their windows are among them

  Work:   a thread block per cluster, a warp per piece of the merge; then a warp per window
  Lanes:  a window each; then places of windows
  Arrays: the whole view; before [num_windows], sizes as above; num_in_piece as above; all device
  Writes: cluster_list, place_first, place once each
  Launch: tc_build_threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_places_kernel(const __grid_constant__ tc_bittcf T, const tc_window_size *__restrict__ before, const int32_t *__restrict__ num_in_piece)
{
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t c = blockIdx.x, of = tc_bittcf_listed(&T), num = static_cast<int32_t>(T.cluster_first[c + 1] - T.cluster_first[c]);
  int32_t      *list = T.cluster_list + T.cluster_first[c], *mine = list;

  for (int p = 0; p < warp; ++p) mine += num_in_piece[(int64_t)tc_build_warps * c + p];
  tc_walk_cluster(tc_window_list(T, c, lane), of, warp, [&](int32_t i, int32_t entry) {
    if (lane == 0) mine[i] = entry;
  });
  __syncthreads();
  for (int32_t w = c * T.cluster_windows + warp; w < min((c + 1) * T.cluster_windows, T.num_windows); w += tc_build_warps) {
    const tc_window W     = tc_load_window(T, w);
    const uint32_t *masks = tc_tiles_at(T, W.tiles);
    const int32_t   side  = TC_BITTCF_PLACES * tc_bittcf_place_blocks(W.num_groups()); // places of the columns of one number
    uint16_t       *place = T.place + TC_BITTCF_BLOCK * before[w].place_blocks;

    if (lane == 0) T.place_first[w] = static_cast<uint32_t>(before[w].place_blocks);
    for (int32_t at = lane; at < TC_BITTCF_GROUP * side; at += tc_warp_size) {
      const int32_t column = W.column_base() + tc_column_entry(W, masks, TC_BITTCF_GROUP * min(at % side, W.num_groups() - 1) + at / side);
      int32_t       low = 0, high = num - 1;

      while (low < high) {
        const int32_t middle = (low + high) / 2;

        if (list[middle] < column / of) low = middle + 1;
        else high = middle;
      }
      place[at] = static_cast<uint16_t>(of * low + column % of);
    }
  }
}
