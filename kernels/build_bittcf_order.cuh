/*
  The first kernels that build the BitTCF format: in which order rows meet, as src/format/bittcf.c chooses it. Included by build_bittcf.cuh alone.
*/
#pragma once
#include "bittcf.cuh"
#include "column_set.cuh"
#include "merge_rows.cuh"
#include "tc_bittcf_order.h"
#include <cub/block/block_reduce.cuh>

constexpr int tc_build_threads = 256, tc_build_warps = tc_build_threads / tc_warp_size;
constexpr int tc_sample_threads = 128, tc_sample_warps = tc_sample_threads / tc_warp_size;

/* Sums over windows; the most groups of one, and how far apart the columns of one are, if they are of 16 bits */
struct alignas(16) tc_window_size {
  int64_t units, groups;
  int32_t entries, place_blocks, most_groups, furthest;
};

struct tc_windows_together {
  __host__ __device__ tc_window_size operator()(const tc_window_size &a, const tc_window_size &b) const
  {
    return {a.units + b.units, a.groups + b.groups, a.entries + b.entries, a.place_blocks + b.place_blocks, a.most_groups > b.most_groups ? a.most_groups : b.most_groups, a.furthest > b.furthest ? a.furthest : b.furthest};
  }
};

/* Entries of the lists of clusters, and the most of one */
struct alignas(8) tc_list_size {
  uint32_t entries;
  int32_t  most;
};

struct tc_lists_together {
  __host__ __device__ tc_list_size operator()(const tc_list_size &a, const tc_list_size &b) const { return {a.entries + b.entries, a.most > b.most ? a.most : b.most}; }
};

/* What thread blocks add up, zeros at first */
struct tc_build_news {
  uint32_t           sampled;   // thread blocks that are done with the samples
  int32_t            disorder;  // entries whose column is not above the one in front of them, less those of them with which a row begins
  int32_t            num_long, num_segments, num_orders;
  tc_bittcf_order    order[TC_BITTCF_MAX_ORDERS];
  unsigned long long sample[TC_BITTCF_MAX_ORDERS][3]; // entries, groups, masks
  unsigned long long most_masks[TC_BITTCF_MAX_ORDERS];
};

/* What the host gets to know */
struct tc_build_answer {
  int32_t          num_long, num_segments, long_windows, disorder;
  tc_bittcf_order  order;
  tc_bittcf_sample sample;
  tc_window_size   windows;
  tc_list_size     lists;
};

/* How many windows of 8 rows have an element in a group: bit l of `holders` for lane l, a row each */
__device__ __forceinline__ int tc_windows_held(uint32_t holders)
{
  return ((holders & 0xffu) != 0) + ((holders & 0xff00u) != 0) + ((holders & 0xff0000u) != 0) + ((holders & 0xff000000u) != 0);
}

/*
  Goes through the groups of a window, or of several together: group(i, columns of the group, the lane's part of it: bit k for column k; the column in place k of lane k). Step by step
  by the smallest column that no row has passed yet: for columns that are too far apart for a tc_column_set.
*/
template <typename Group>
__device__ __forceinline__ void tc_walk_groups(const int32_t *col, int32_t first, int32_t entries, int lane, const Group &group)
{
  const auto at = [=](int32_t e) { return __ldg(col + e); };
  tc_merge   merge(first, entries, at);
  uint32_t   part = 0;
  int32_t    mine = 0, last = 0;
  int        place = 0, i = 0;

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

/* The smallest and the largest column of a warp's rows, one in each lane; tc_no_column and -1 without any */
struct tc_column_range {
  int32_t smallest, largest;

  __device__ __forceinline__ tc_column_range() { }
  __device__ __forceinline__ tc_column_range(const int32_t *col, int32_t first, int32_t entries)
  {
    smallest = tc_smallest_of_warp(entries > 0 ? __ldg(col + first) : tc_no_column);
    largest  = -1 - tc_smallest_of_warp(entries > 0 ? -1 - __ldg(col + first + entries - 1) : 0);
  }
  __device__ __forceinline__ bool fits() const { return largest >= 0 && largest - smallest < tc_set_span; }
};

using tc_block_sum = cub::BlockReduce<int, tc_build_threads>;

/*
  A thread's part of the entries whose column is not above the one in front of them, less those with which a row begins: the sum over all threads is 0 where each row's columns ascend, and
  more where those of one do not. Kernels that pack count on that order, with columns as places in shared memory.
*/
__device__ __forceinline__ int tc_disorder(int32_t num_rows, int32_t nnz, const int32_t *row_ptr, const int32_t *col, int64_t thread, int64_t threads)
{
  const auto descends = [=](int64_t e) { return __ldg(col + e) <= __ldg(col + e - 1); };
  int        sum      = 0;

#pragma unroll 4
  for (int64_t e = thread + 1; e < nnz; e += threads) sum += descends(e);
  if (thread < num_rows) {
    const int32_t begin = row_ptr[thread];

    if (begin > 0 && begin < row_ptr[thread + 1]) sum -= descends(begin);
  }
  return sum;
}

/*
  tc_build_bittcf_rows_kernel - how many rows are long, whether all are in order, and the orders to choose from

  Work:   a row per thread, entries in turns; of the first block a warp per probed row, too
  Lanes:  consecutive rows, consecutive entries, entries of a probed row
  Arrays: row_ptr [num_rows + 1]; col; news; all device
  Writes: adds to num_long and disorder of news, which were 0; num_orders and order of news
  Launch: tc_build_threads per block, a thread for each row at least; 9 KB of shared memory.  Needs: sm_70.  Source: tc_bittcf_order.h
*/
static __global__ void __launch_bounds__(tc_build_threads) tc_build_bittcf_rows_kernel(int32_t num_rows, int32_t nnz, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, bool ordered, tc_build_news *__restrict__ news)
{
  __shared__ int32_t           of_row[TC_BITTCF_PROBES][TC_BITTCF_LONG_ROW];
  __shared__ int64_t           away[TC_BITTCF_PROBES][TC_BITTCF_LONG_ROW];
  __shared__ tc_bittcf_strides strides[TC_BITTCF_PROBES];
  __shared__ tc_bittcf_order   order[TC_BITTCF_MAX_ORDERS];
  __shared__ tc_block_sum::TempStorage memory;
  const int64_t                i    = (int64_t)blockIdx.x * tc_build_threads + threadIdx.x;
  const int                    lane = threadIdx.x % tc_warp_size, p = threadIdx.x / tc_warp_size;
  const int                    num_long = __syncthreads_count(i < num_rows && row_ptr[i + 1] - row_ptr[i] >= TC_BITTCF_LONG_ROW);
  const int                    disorder = tc_block_sum(memory).Sum(tc_disorder(num_rows, nnz, row_ptr, col, i, (int64_t)gridDim.x * tc_build_threads));

  if (threadIdx.x == 0 && num_long > 0) atomicAdd(&news->num_long, num_long);
  if (threadIdx.x == 0 && disorder != 0) atomicAdd(&news->disorder, disorder);
  if (blockIdx.x > 0) return;
  if (p < TC_BITTCF_PROBES) {
    const int32_t row = tc_bittcf_probed_row(num_rows, p), begin = row < num_rows && !ordered ? row_ptr[row] : 0, all = row < num_rows && !ordered ? row_ptr[row + 1] - begin : 0;
    const int32_t length = all < TC_BITTCF_LONG_ROW ? all : 0;

    for (int32_t e = lane; e < length; e += tc_warp_size) of_row[p][e] = col[begin + e];
    __syncwarp();
    if (lane == 0) strides[p] = tc_bittcf_probe(num_rows, p, of_row[p], length, away[p]);
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  const int num = tc_bittcf_orders(num_rows, strides, order);

  news->num_orders = num;
  for (int o = 0; o < num; ++o) news->order[o] = order[o];
}

/* What a warp needs for a neighbourhood */
struct tc_neighbourhood {
  tc_set_memory columns;
  uint32_t      held[TC_BITTCF_NEIGHBOURS * TC_BITTCF_ROWS * TC_SPMM_SEGMENT / TC_BITTCF_GROUP / 8]; // four bits for each group, the windows that have a column of it
};

/* What a neighbourhood of a sample of an order holds, for a warp: entries, groups, masks. The lane's row is `entries` long. */
__device__ __forceinline__ void tc_sample_neighbourhood(const int32_t *col, int32_t first, int32_t entries, int lane, tc_neighbourhood &S, int (&sample)[3])
{
  static_assert(TC_BITTCF_NEIGHBOURS * TC_BITTCF_ROWS == tc_warp_size && TC_BITTCF_NEIGHBOURS == 4, "a row of a neighbourhood per lane, four bits for its windows");
  const tc_column_range range(col, first, entries);
  const auto            each_entry = [&](const auto &put) {
#pragma unroll 1
    for (int w = 0; w < TC_BITTCF_NEIGHBOURS; ++w) {
      const int row = TC_BITTCF_ROWS * w + lane / 4;

      tc_each_entry(col, __shfl_sync(tc_full_warp, first, row), __shfl_sync(tc_full_warp, entries, row), lane, [&](int32_t column) { put(w, column - range.smallest); });
    }
  };

  sample[0] = entries;
  for (int half = tc_warp_size / 2; half > 0; half /= 2) sample[0] += __shfl_xor_sync(tc_full_warp, sample[0], half);
  if (!range.fits()) {
    tc_walk_groups(col, first, entries, lane, [&](int, int, uint32_t part, int32_t) {
      ++sample[1];
      sample[2] += tc_windows_held(__ballot_sync(tc_full_warp, part != 0));
    });
    return;
  }
  const int32_t last    = range.largest - range.smallest;
  tc_column_set columns = S.columns.set();

  columns.clear(last, lane, tc_warp_size);
  __syncwarp();
  each_entry([&](int, int32_t column) { columns.put(column); });
  __syncwarp();
  const int num = columns.count(last, lane);

  sample[1] = (num + TC_BITTCF_GROUP - 1) / TC_BITTCF_GROUP;
#pragma unroll 1
  for (int i = lane; 8 * i < sample[1]; i += tc_warp_size) S.held[i] = 0;
  __syncwarp();
  each_entry([&](int w, int32_t column) {
    const int group = columns.rank(column) / TC_BITTCF_GROUP;

    atomicOr(&S.held[group / 8], 1u << (4 * (group % 8) + w));
  });
  __syncwarp();
#pragma unroll 1
  for (int i = lane; 8 * i < sample[1]; i += tc_warp_size) sample[2] += __popc(S.held[i]);
  for (int half = tc_warp_size / 2; half > 0; half /= 2) sample[2] += __shfl_xor_sync(tc_full_warp, sample[2], half);
}

/*
  tc_build_bittcf_sample_kernel - the order that is the best by its sample

  Work:   a warp per neighbourhood of a sample; blockIdx.y is the order. The last thread block compares
  Lanes:  a row each; four for a row of eight
  Arrays: row_ptr, col, row_order of the matrix, the last may be NULL; news; all device; answer: the host's, pinned
  Writes: adds to sampled, sample and most_masks of news, which were 0; num_long, order and sample of answer
  Launch: tc_sample_threads per block, TC_BITTCF_MAX_ORDERS rows of them, after tc_build_bittcf_rows_kernel, may begin early; 41 KB of shared memory.  Needs: sm_70.
  Source: tc_bittcf_order.h
*/
static __global__ void __launch_bounds__(tc_sample_threads) tc_build_bittcf_sample_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const int32_t *__restrict__ row_order, tc_build_news *news, tc_build_answer *answer)
{
  __shared__ tc_neighbourhood of_warp[tc_sample_warps];
  __shared__ int              held[tc_sample_warps][3];
  __shared__ tc_bittcf_sample sample[TC_BITTCF_MAX_ORDERS];
  const int                   o = blockIdx.y, lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size, i = blockIdx.x * tc_sample_warps + warp;
  int                         own[3] = {0, 0, 0};

  tc_wait_for_kernel_before();
  const int  num     = news->num_orders;
  const bool ordered = news->disorder == 0;

  if (o < num && ordered) {
    const tc_bittcf_order O       = news->order[o];
    const int32_t         sampled = tc_bittcf_sample_size(&O), row = i < sampled ? tc_bittcf_row_at(row_order, tc_bittcf_sampled_row(&O, num_rows, i, sampled, lane)) : -1;
    const int32_t         first   = row < 0 ? 0 : row_ptr[row];

    tc_sample_neighbourhood(col, first, row < 0 ? 0 : min(row_ptr[row + 1] - first, static_cast<int32_t>(TC_SPMM_SEGMENT)), lane, of_warp[warp], own);
  }
  for (int k = 0; k < 3 && lane == 0; ++k) held[warp][k] = own[k];
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int k = 0; k < 3 && o < num; ++k) {
    int all = 0;

    for (int w = 0; w < tc_sample_warps; ++w) all += held[w][k];
    atomicAdd(&news->sample[o][k], static_cast<unsigned long long>(all));
  }
  if (o < num) {
    int most = 0;

    for (int w = 0; w < tc_sample_warps; ++w) most = max(most, held[w][2]);
    atomicMax(&news->most_masks[o], static_cast<unsigned long long>(most));
  }
  __threadfence();
  if (atomicAdd(&news->sampled, 1) < gridDim.x * gridDim.y - 1) return;
  __threadfence();
#pragma unroll 1
  for (int k = 0; k < num; ++k) sample[k] = {(int64_t)__ldcg(&news->sample[k][0]), (int64_t)__ldcg(&news->sample[k][1]), (int64_t)__ldcg(&news->sample[k][2]), (int64_t)__ldcg(&news->most_masks[k])};
  const int best = tc_bittcf_best_order(num, sample);

  answer->num_long = news->num_long;
  answer->disorder = news->disorder;
  answer->order    = news->order[best];
  answer->sample   = sample[best];
}
