#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

constexpr int     tc_survey_threads = 256, tc_survey_warps = tc_survey_threads / tc_warp_size;
constexpr int     tc_survey_table = 2 * TC_SURVEY_WINDOW * TC_SPMM_SEGMENT; // places for distinct columns
constexpr int64_t tc_survey_blocks = 1024; // at most, for the lengths of rows

static_assert(TC_SURVEY_WINDOW == tc_survey_warps, "a warp has one row of a window");

using tc_count = unsigned long long;

/* What the thread blocks add up */
struct tc_survey_sums {
  int32_t  longest_row, num_long, num_segments, num_heavy;
  tc_count sampled, far, in_windows, columns;
};

__device__ __forceinline__ int tc_warp_count(int v)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v += __shfl_xor_sync(tc_full_warp, v, half);
  return v;
}

__device__ __forceinline__ int tc_survey_length(const tc_csr_view &A, int32_t i)
{
  return A.row_ptr[i + 1] - A.row_ptr[i];
}

/* A window of the sample: how many of its columns are distinct */
__device__ __forceinline__ void tc_survey_columns(const tc_csr_view &A, int32_t s, int32_t (&table)[tc_survey_table], tc_survey_sums *sums)
{
  const int32_t row = tc_survey_window(A.num_rows, s) + threadIdx.x / tc_warp_size, lane = threadIdx.x % tc_warp_size;
  const int32_t taken = min(tc_survey_length(A, row), TC_SPMM_SEGMENT);
  int           distinct = 0;

  for (int i = threadIdx.x; i < tc_survey_table; i += tc_survey_threads) table[i] = -1;
  __syncthreads();
  for (int32_t k = lane; k < taken; k += tc_warp_size) {
    const int32_t column = A.col[A.row_ptr[row] + k];
    int32_t       found;

    for (uint32_t at = static_cast<uint32_t>(column) * 2654435761u >> 16;; ++at) {
      found = atomicCAS(&table[at % tc_survey_table], -1, column);
      if (found == -1 || found == column) break;
    }
    distinct += found == -1;
  }
  distinct = tc_warp_count(distinct);
  if (lane == 0) {
    atomicAdd(&sums->in_windows, static_cast<tc_count>(taken));
    atomicAdd(&sums->columns, static_cast<tc_count>(distinct));
  }
}

/* A row of the sample and the one above it */
__device__ __forceinline__ void tc_survey_scattered(const tc_csr_view &A, int32_t s, tc_survey_sums *sums)
{
  const int32_t i = s < tc_survey_num_sampled(A.num_rows) ? tc_survey_row(A.num_rows, s) : 0, lane = threadIdx.x % tc_warp_size;
  int           far = 0;

  if (i < 1 || i >= A.num_rows) return;
  for (int32_t k = lane; k < tc_survey_length(A, i); k += tc_warp_size) far += tc_survey_is_far(A.row_ptr, A.col, i, k);
  far = tc_warp_count(far);
  if (lane == 0) {
    atomicAdd(&sums->sampled, static_cast<tc_count>(tc_survey_length(A, i)));
    atomicAdd(&sums->far, static_cast<tc_count>(far));
  }
}

/* All rows: the longest, and how many are long or heavy */
__device__ __forceinline__ void tc_survey_lengths(const tc_csr_view &A, int32_t first, int32_t step, tc_survey_sums *sums)
{
  int longest = 0, num_long = 0, num_segments = 0, num_heavy = 0;

  for (int64_t i = first; i < A.num_rows; i += step) {
    const int length = tc_survey_length(A, i);

    longest = max(longest, length);
    num_long += length >= TC_SPMM_SEGMENT;
    num_segments += length >= TC_SPMM_SEGMENT ? (length + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT : 0;
    num_heavy += length >= A.heavy_from && length < TC_SPMM_SEGMENT;
  }
  longest      = tc_warp_max(longest);
  num_long     = tc_warp_count(num_long);
  num_segments = tc_warp_count(num_segments);
  num_heavy    = tc_warp_count(num_heavy);
  if (threadIdx.x % tc_warp_size > 0) return;
  atomicMax(&sums->longest_row, longest);
  if (num_long > 0) atomicAdd(&sums->num_long, num_long);
  if (num_segments > 0) atomicAdd(&sums->num_segments, num_segments);
  if (num_heavy > 0) atomicAdd(&sums->num_heavy, num_heavy);
}

/*
  tc_survey_kernel - the counts of a survey

  Work:   thread blocks are dealt out to the windows of the sample first, then, a warp each, to its rows, then to all rows
  Lanes:  neighbours take neighbouring entries, or rows
  Arrays: the view without values and lists, its heavy_from; sums, zeros before; all device
  Writes: sums, by integer atomics
  Launch: tc_survey_threads per block, 16 KiB of shared memory.  Needs: sm_60.  Source: tc_survey.h
*/
static __global__ void __launch_bounds__(tc_survey_threads) tc_survey_kernel(const __grid_constant__ tc_csr_view A, int32_t window_blocks, int32_t sample_blocks, tc_survey_sums *sums)
{
  __shared__ int32_t table[tc_survey_table];
  const int32_t      block = blockIdx.x, sampled = block - window_blocks, other = sampled - sample_blocks;

  if (sampled < 0) tc_survey_columns(A, block, table, sums);
  else if (other < 0) tc_survey_scattered(A, sampled * tc_survey_warps + threadIdx.x / tc_warp_size, sums);
  else tc_survey_lengths(A, other * tc_survey_threads + threadIdx.x, (gridDim.x - window_blocks - sample_blocks) * tc_survey_threads, sums);
}

/*
  tc_survey_key_kernel - what heavy rows are sorted by

  Work:   one row per thread
  Lanes:  consecutive rows of the list
  Arrays: row_ptr; row, key [num]; all device
  Writes: key, smaller for longer rows
  Launch: tc_survey_threads per block, no shared memory.  Needs: sm_60
*/
static __global__ void __launch_bounds__(tc_survey_threads) tc_survey_key_kernel(int32_t num, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ row, uint8_t *__restrict__ key)
{
  const int32_t i = blockIdx.x * tc_survey_threads + threadIdx.x;

  if (i < num) key[i] = TC_SPMM_SEGMENT - 1 - (row_ptr[row[i] + 1] - row_ptr[row[i]]);
}

struct tc_length_between {
  const int32_t *row_ptr;
  int32_t        least, below;

  __device__ bool operator()(int32_t i) const
  {
    const int32_t length = row_ptr[i + 1] - row_ptr[i];

    return length >= least && length < below;
  }
};

/* Segments of the r-th long row; none behind the last */
struct tc_segments_of {
  const int32_t *row_ptr, *long_row;
  int32_t        num_long;

  __device__ int32_t operator()(int32_t r) const
  {
    return r < num_long ? (row_ptr[long_row[r] + 1] - row_ptr[long_row[r]] + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT : 0;
  }
};

/* A call of CUB with scratch of its own */
template <typename Call>
static tc_status tc_survey_cub(const char *what, cudaStream_t stream, const Call &call)
{
  size_t bytes = 0;
  void  *scratch;

  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "%s: a fault was asked for", what);
  TC_CALL(tc_cuda(what, call(nullptr, bytes)));
  TC_CALL(tc_memory_take(bytes, &scratch, stream));
  const tc_status status = tc_cuda(what, call(scratch, bytes)), given = tc_memory_give(scratch, stream);

  return status == TC_OK ? given : status;
}

/* What the lists need besides themselves */
struct tc_survey_scratch {
  int32_t *found, *unsorted;
  uint8_t *key, *sorted_key;
};

static void tc_cut_scratch(tc_cutter &C, const tc_survey *S, tc_survey_scratch &scratch)
{
  C.cut(scratch.found, 1);
  C.cut(scratch.unsorted, S->num_heavy);
  C.cut(scratch.key, S->num_heavy);
  C.cut(scratch.sorted_key, S->num_heavy);
}

static tc_status tc_list_long(const tc_csr_view *A, const tc_survey *S, const tc_survey_scratch &scratch, cudaStream_t stream)
{
  const thrust::counting_iterator<int32_t> rows(0);
  int32_t *const                           first    = S->list + S->num_long;
  const auto                               segments = thrust::make_transform_iterator(rows, tc_segments_of{A->row_ptr, S->list, S->num_long});
  const tc_length_between                  is_long  = {A->row_ptr, TC_SPMM_SEGMENT, INT32_MAX};

  if (S->num_long > 0) TC_CALL(tc_survey_cub("tc_survey: list of long rows", stream, [&](void *memory, size_t &bytes) { return cub::DeviceSelect::If(memory, bytes, rows, S->list, scratch.found, A->num_rows, is_long, stream); }));
  return tc_survey_cub("tc_survey: segments of long rows", stream, [&](void *memory, size_t &bytes) { return cub::DeviceScan::ExclusiveSum(memory, bytes, segments, first, S->num_long + 1, stream); });
}

/* The sort is stable, and what is sorted ascends */
static tc_status tc_list_heavy(const tc_csr_view *A, const tc_survey *S, const tc_survey_scratch &scratch, cudaStream_t stream)
{
  const thrust::counting_iterator<int32_t> rows(0);
  int32_t *const                           heavy    = S->list + 2 * (int64_t)S->num_long + 1;
  const tc_length_between                  is_heavy = {A->row_ptr, S->heavy_from, TC_SPMM_SEGMENT};

  if (S->num_heavy == 0) return TC_OK;
  TC_CALL(tc_survey_cub("tc_survey: list of heavy rows", stream, [&](void *memory, size_t &bytes) { return cub::DeviceSelect::If(memory, bytes, rows, scratch.unsorted, scratch.found, A->num_rows, is_heavy, stream); }));
  TC_CALL(tc_launch("tc_survey_key", tc_survey_key_kernel, (S->num_heavy + tc_survey_threads - 1) / tc_survey_threads, tc_survey_threads, stream, S->num_heavy, A->row_ptr, scratch.unsorted, scratch.key));
  return tc_survey_cub("tc_survey: sort of heavy rows", stream, [&](void *memory, size_t &bytes) { return cub::DeviceRadixSort::SortPairs(memory, bytes, scratch.key, scratch.sorted_key, scratch.unsorted, heavy, S->num_heavy, 0, 8, stream); });
}

static tc_status tc_list_rows(const tc_csr_view *A, tc_survey *S, cudaStream_t stream)
{
  tc_survey_scratch scratch = {};
  tc_cutter         counted = {}, real = {};
  void             *memory, *list;

  if (S->num_long + S->num_heavy == 0) return TC_OK;
  TC_CALL(tc_memory_alloc((2 * (size_t)S->num_long + 1 + (size_t)S->num_heavy) * sizeof *S->list, &list));
  S->list = static_cast<int32_t *>(list);
  tc_cut_scratch(counted, S, scratch);
  TC_CALL(tc_memory_take(counted.bytes, &memory, stream));
  real.memory = static_cast<char *>(memory);
  tc_cut_scratch(real, S, scratch);
  tc_status status = tc_list_long(A, S, scratch, stream);
  if (status == TC_OK) status = tc_list_heavy(A, S, scratch, stream);
  const tc_status given = tc_memory_give(memory, stream);

  return status == TC_OK ? given : status;
}

/* The counts; waits for the device */
static tc_status tc_survey_rows(const tc_csr_view *A, tc_survey_sums *sums, cudaStream_t stream)
{
  const int64_t windows = tc_survey_num_windows(A->num_rows), samples = (tc_survey_num_sampled(A->num_rows) + tc_survey_warps - 1) / tc_survey_warps, lengths = (A->num_rows + (int64_t)tc_survey_threads - 1) / tc_survey_threads;
  void         *memory;
  tc_status     status;

  TC_CALL(tc_memory_take(sizeof *sums, &memory, stream));
  status = tc_cuda("tc_survey: zeroing", cudaMemsetAsync(memory, 0, sizeof *sums, stream));
  if (status == TC_OK) status = tc_launch("tc_survey", tc_survey_kernel, windows + samples + (lengths < tc_survey_blocks ? lengths : tc_survey_blocks), tc_survey_threads, stream, *A, static_cast<int32_t>(windows), static_cast<int32_t>(samples), static_cast<tc_survey_sums *>(memory));
  if (status == TC_OK) status = tc_cuda("tc_survey: download", cudaMemcpyAsync(sums, memory, sizeof *sums, cudaMemcpyDeviceToHost, stream));
  const tc_status given = tc_memory_give(memory, stream);

  if (status == TC_OK) status = tc_cuda("tc_survey: download", cudaStreamSynchronize(stream));
  return status == TC_OK ? given : status;
}

extern "C" tc_status tc_survey_cuda(const tc_csr_view *rows, tc_survey *survey, tc_stream stream)
{
  const cudaStream_t on   = static_cast<cudaStream_t>(stream);
  tc_csr_view        A    = *rows;
  tc_survey_sums     sums = {};

  *survey      = {};
  A.heavy_from = tc_survey_heavy_from(A.num_rows, A.nnz);
  if (A.num_rows > 0) TC_CALL(tc_survey_rows(&A, &sums, on));
  survey->longest_row  = sums.longest_row;
  survey->num_long     = sums.num_long;
  survey->num_segments = sums.num_segments;
  survey->num_heavy    = sums.num_heavy;
  survey->heavy_from   = A.heavy_from;
  survey->sampled      = (int64_t)sums.sampled;
  survey->far          = (int64_t)sums.far;
  survey->in_windows   = (int64_t)sums.in_windows;
  survey->columns      = (int64_t)sums.columns;
  const tc_status status = tc_list_rows(&A, survey, on);

  if (status != TC_OK) {
    tc_memory_release(survey->list);
    survey->list = nullptr;
  }
  return status;
}
