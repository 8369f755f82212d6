#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cuda/atomic>

/*
  In which order the rows of a triangle can be solved for, many at a time: a row's level is one more than the highest of those that it refers to, the rows of a level refer to none of each other.
*/
constexpr int tc_level_threads = 128, tc_level_lanes = 4, tc_level_patience = 64 /* rounds of waiting between looks at whether all have stopped */, tc_level_unknown = -1;

/* What the rows tell, zeros before */
struct tc_level_news {
  int32_t highest, stopped; // so far; are there more than asked for, so that nobody goes on?
};

/* What a lane has of its row: every tc_level_lanes-th of the entries of the triangle, from the end of the row on that is farther from the diagonal */
template <bool upper>
struct tc_level_lane {
  int32_t at, first, last, row;
  int32_t column; // tc_level_unknown: no more

  __device__ void load(const int32_t *__restrict__ col)
  {
    column = at >= first && at < last ? col[at] : tc_level_unknown;
    if (upper ? column <= row : column >= row) column = tc_level_unknown;
  }
  __device__ void next(const int32_t *__restrict__ col)
  {
    at += upper ? -tc_level_lanes : tc_level_lanes;
    load(col);
  }
};

static __device__ __forceinline__ cuda::atomic_ref<int32_t, cuda::thread_scope_device> tc_shared_word(int32_t &word)
{
  return cuda::atomic_ref<int32_t, cuda::thread_scope_device>(word);
}

/*
  tc_level_kernel - the level of each row, from 1 on

  Work:   tc_level_lanes lanes per row, forward or, of the upper triangle, backward, which wait for the levels of rows in front of it. Thread blocks begin in their order, so who is waited for has begun
  Lanes:  every tc_level_lanes-th entry; rows of a warp that wait for each other go round together, and who has what it needs writes before the next round
  Arrays: row_ptr [num_rows + 1]; col [nnz], ascending in a row; level [num_rows]; all device
  Writes: level, tc_level_unknown before, once each unless there are more than `most`, in which case some stay unknown; news
  Launch: tc_level_threads per block, no shared memory.  Needs: sm_70.
  Source: Liu, Li, Hogg, Duff, Vinter, A synchronization-free algorithm for parallel sparse triangular solves (2016)
*/
template <bool upper>
static __global__ void __launch_bounds__(tc_level_threads) tc_level_kernel(int32_t num_rows, int32_t most, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, int32_t *level, tc_level_news *news)
{
  const int      lane = threadIdx.x % tc_level_lanes, first_lane = threadIdx.x % tc_warp_size - lane;
  const int64_t  place = (blockIdx.x * (int64_t)tc_level_threads + threadIdx.x) / tc_level_lanes;
  const unsigned group = ((1u << tc_level_lanes) - 1) << first_lane;
  bool           goes  = place < num_rows;
  const int32_t  row   = !goes ? 0 : upper ? num_rows - 1 - static_cast<int32_t>(place) : static_cast<int32_t>(place);
  int32_t        highest = 0, mine_last = 0; // of the columns so far; of the row
  int            rounds = 0;

  tc_level_lane<upper> mine = {0, row_ptr[row], row_ptr[row + 1], row, tc_level_unknown};

  mine.at = upper ? mine.last - 1 - lane : mine.first + lane;
  mine.load(col);
  while (__any_sync(tc_full_warp, goes)) {
    const int32_t there = goes && mine.column != tc_level_unknown ? tc_shared_word(level[mine.column]).load(cuda::memory_order_relaxed) : tc_level_unknown;

    if (there != tc_level_unknown) {
      highest = max(highest, there);
      mine.next(col);
    }
    const unsigned waiting = __ballot_sync(tc_full_warp, mine.column != tc_level_unknown); // by all lanes, whatever they have
    const bool     ready   = goes && !(waiting & group);

    if (__any_sync(tc_full_warp, ready)) {
      int32_t all = highest;

#pragma unroll
      for (int half = tc_level_lanes / 2; half > 0; half /= 2) all = max(all, __shfl_xor_sync(tc_full_warp, all, half));
      if (ready) {
        mine_last = all + 1;
        if (lane == 0) tc_shared_word(level[row]).store(mine_last, cuda::memory_order_relaxed);
        if (lane == 0 && mine_last > most) tc_shared_word(news->stopped).store(1, cuda::memory_order_relaxed);
        goes = false;
      }
    } else if (++rounds % tc_level_patience == 0 && tc_shared_word(news->stopped).load(cuda::memory_order_relaxed)) goes = false;
    __syncwarp();
  }
  mine_last = tc_warp_max(mine_last);
  if (threadIdx.x % tc_warp_size == 0 && mine_last > tc_shared_word(news->highest).load(cuda::memory_order_relaxed)) atomicMax(&news->highest, mine_last);
}

/*
  tc_lead_kernel - what sorts the rows of a node is the level of its first row in the direction, before which the last of any other that it refers to comes

  Work:   a thread per row
  Lanes:  consecutive rows
  Arrays: level [num_rows], device
  Writes: level, of all rows but those first ones, which others read
  Launch: tc_level_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
static __global__ void __launch_bounds__(tc_level_threads) tc_lead_kernel(int32_t num_rows, int32_t node, int32_t lead, int32_t *level)
{
  const int64_t row = blockIdx.x * (int64_t)tc_level_threads + threadIdx.x;

  if (row < num_rows && row % node != lead) level[row] = level[row - row % node + lead];
}

/*
  tc_reverse_nodes_kernel - the rows of each node the other way round, where they follow each other

  Work:   a thread per node
  Lanes:  consecutive nodes
  Arrays: order [num_nodes node], device
  Writes: order, in place
  Launch: tc_level_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
static __global__ void __launch_bounds__(tc_level_threads) tc_reverse_nodes_kernel(int32_t num_nodes, int32_t node, int32_t *order)
{
  const int64_t i = blockIdx.x * (int64_t)tc_level_threads + threadIdx.x;

  if (i >= num_nodes) return;
  for (int32_t r = 0; r < node / 2; ++r) {
    const int32_t row = order[i * node + r];

    order[i * node + r]            = order[i * node + node - 1 - r];
    order[i * node + node - 1 - r] = row;
  }
}

/* All of it is scratch but the order */
struct tc_level_arrays {
  int32_t       *level, *sorted, *numbers;
  tc_level_news *news;
  char          *cub;
  size_t         cub_bytes;

  size_t cut(void *memory, int32_t num_rows)
  {
    tc_cutter cutter = {static_cast<char *>(memory), 0};

    cutter.cut(level, num_rows);
    cutter.cut(sorted, num_rows);
    cutter.cut(numbers, num_rows);
    cutter.cut(news, 1);
    cutter.cut(cub, static_cast<int64_t>(cub_bytes));
    return cutter.bytes;
  }
};

static tc_status order_rows(const tc_csr_local *A, int upper, int32_t most, tc_level_arrays *L, int32_t *order, int32_t *num_levels, cudaStream_t stream)
{
  const int64_t blocks = ((int64_t)A->num_rows * tc_level_lanes + tc_level_threads - 1) / tc_level_threads;
  const int32_t node   = A->row_group > 1 ? A->row_group : 1;
  tc_level_news news;

  TC_CALL(tc_cuda("tc_order_rows: no levels", cudaMemsetAsync(L->level, 0xff, (size_t)A->num_rows * sizeof *L->level, stream)));
  TC_CALL(tc_cuda("tc_order_rows: no news", cudaMemsetAsync(L->news, 0, sizeof *L->news, stream)));
  TC_CALL(tc_launch("tc_order_rows", upper ? tc_level_kernel<true> : tc_level_kernel<false>, blocks, tc_level_threads, stream, A->num_rows, most, A->row_ptr, A->col, L->level, L->news));
  TC_CALL(tc_cuda("tc_order_rows: the number of levels", cudaMemcpyAsync(&news, L->news, sizeof news, cudaMemcpyDeviceToHost, stream)));
  TC_CALL(tc_cuda("tc_order_rows: waiting", cudaStreamSynchronize(stream)));
  *num_levels = news.highest;
  if (news.stopped) return TC_OK;
  if (node > 1) TC_CALL(tc_launch("tc_order_rows", tc_lead_kernel, ((int64_t)A->num_rows + tc_level_threads - 1) / tc_level_threads, tc_level_threads, stream, A->num_rows, node, upper ? node - 1 : 0, L->level));
  TC_CALL(tc_order_by_keys("tc_order_rows: sort", L->level, A->num_rows, news.highest + 1, L->sorted, L->numbers, order, L->cub, &L->cub_bytes, stream));
  if (node == 1 || !upper) return TC_OK;
  return tc_launch("tc_order_rows", tc_reverse_nodes_kernel, ((int64_t)A->num_rows / node + tc_level_threads - 1) / tc_level_threads, tc_level_threads, stream, A->num_rows / node, node, order);
}

extern "C" tc_status tc_order_rows_cuda(const tc_csr_local *A, int upper, int32_t most, int32_t *order, int32_t *num_levels, tc_stream stream)
{
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  tc_level_arrays    L  = {};
  void              *memory;

  *num_levels = 0;
  if (A->num_rows == 0) return TC_OK;
  TC_CALL(tc_order_by_keys("tc_order_rows: size of scratch", L.level, A->num_rows, A->num_rows + 1, L.sorted, L.numbers, order, nullptr, &L.cub_bytes, on));
  TC_CALL(tc_memory_take(L.cut(nullptr, A->num_rows), &memory, on));
  L.cut(memory, A->num_rows);
  const tc_status status = order_rows(A, upper, most, &L, order, num_levels, on), given = tc_memory_give(memory, on);

  return status == TC_OK ? given : status;
}
