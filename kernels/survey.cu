#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cub/block/block_scan.cuh>
#include <mutex>
#include <new>

constexpr int     tc_survey_threads = 256, tc_survey_warps = tc_survey_threads / tc_warp_size;
constexpr int     tc_survey_table = 2 * TC_SURVEY_WINDOW * TC_SPMM_SEGMENT; // places for distinct columns
constexpr int     tc_survey_chunks = 256; // of neighbouring rows, at most
constexpr int     tc_list_threads = 1024, tc_list_warps = tc_list_threads / tc_warp_size;

static_assert(TC_SURVEY_WINDOW == tc_survey_warps, "a warp has one row of a window");

using tc_count = unsigned long long;

/* What is counted of a chunk of rows: heavy rows by their length, long rows and their segments */
enum { TC_BIN_LONG = TC_SPMM_SEGMENT, TC_BIN_SEGMENTS, TC_BINS };

/* What the thread blocks add up: what the host gets, and heavy rows by their length */
struct tc_survey_sums {
  int32_t  longest_row, num_long, num_segments, num_heavy;
  tc_count sampled, far, in_windows, columns;
};
struct tc_survey_counts {
  tc_survey_sums sums;
  int32_t        heavy[TC_SPMM_SEGMENT];
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

__host__ __device__ __forceinline__ int32_t tc_survey_per_chunk(int32_t num_rows)
{
  return num_rows <= tc_survey_chunks * tc_survey_threads ? tc_survey_threads : (num_rows - 1) / tc_survey_chunks + 1;
}

/* Where a row of so many entries is counted; -1: nowhere */
__device__ __forceinline__ int tc_survey_bin(const tc_csr_view &A, int length)
{
  return length >= TC_SPMM_SEGMENT ? TC_BIN_LONG : length >= A.heavy_from ? length : -1;
}

__device__ __forceinline__ int tc_survey_segments(int length)
{
  return length >= TC_SPMM_SEGMENT ? (length + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT : 0;
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

/* A chunk of rows: the longest, how many are long, and how many heavy of each length */
__device__ __forceinline__ void tc_survey_lengths(const tc_csr_view &A, int32_t chunk, int32_t (&bins)[tc_survey_table], tc_survey_counts *counts, int32_t *bins_of)
{
  const int32_t per = tc_survey_per_chunk(A.num_rows), begin = per * chunk, end = begin < A.num_rows - per ? begin + per : A.num_rows;
  int           longest = 0, heavy = 0;

  for (int b = threadIdx.x; b < TC_BINS; b += tc_survey_threads) bins[b] = 0;
  __syncthreads();
#pragma unroll 4
  for (int32_t i = begin + threadIdx.x; i < end; i += tc_survey_threads) {
    const int length = tc_survey_length(A, i), bin = tc_survey_bin(A, length);

    longest = max(longest, length);
    if (bin >= 0) atomicAdd(&bins[bin], 1);
    if (bin == TC_BIN_LONG) atomicAdd(&bins[TC_BIN_SEGMENTS], tc_survey_segments(length));
  }
  longest = tc_warp_max(longest);
  if (threadIdx.x % tc_warp_size == 0) atomicMax(&counts->sums.longest_row, longest);
  __syncthreads();
  for (int b = threadIdx.x; b < TC_BINS; b += tc_survey_threads) {
    bins_of[(int64_t)TC_BINS * chunk + b] = bins[b];
    if (b < TC_SPMM_SEGMENT && bins[b] > 0) {
      heavy += bins[b];
      atomicAdd(&counts->heavy[b], bins[b]);
    }
  }
  heavy = tc_warp_count(heavy);
  if (threadIdx.x % tc_warp_size == 0 && heavy > 0) atomicAdd(&counts->sums.num_heavy, heavy);
  if (threadIdx.x == 0 && bins[TC_BIN_LONG] > 0) {
    atomicAdd(&counts->sums.num_long, bins[TC_BIN_LONG]);
    atomicAdd(&counts->sums.num_segments, bins[TC_BIN_SEGMENTS]);
  }
}

/*
  tc_survey_kernel - the counts of a survey

  Work:   thread blocks are dealt out to the windows of the sample first, then, a warp each, to its rows, then to chunks of all rows
  Lanes:  neighbours take neighbouring entries, or rows
  Arrays: the view without values and lists, its heavy_from; counts, zeros before; bins_of [chunks, TC_BINS]; all device
  Writes: counts, by integer atomics; bins_of
  Launch: tc_survey_threads per block, 16 KiB of shared memory.  Needs: sm_70.  Source: tc_survey.h
*/
static __global__ void __launch_bounds__(tc_survey_threads) tc_survey_kernel(const __grid_constant__ tc_csr_view A, int32_t window_blocks, int32_t sample_blocks, tc_survey_counts *counts, int32_t *bins_of)
{
  __shared__ int32_t table[tc_survey_table];
  const int32_t      block = blockIdx.x, sampled = block - window_blocks, other = sampled - sample_blocks;

  if (sampled < 0) tc_survey_columns(A, block, table, &counts->sums);
  else if (other < 0) tc_survey_scattered(A, sampled * tc_survey_warps + threadIdx.x / tc_warp_size, &counts->sums);
  else tc_survey_lengths(A, other, table, counts, bins_of);
}

/* How many rows of each bin, and segments, the chunks before this one have */
__device__ __forceinline__ void tc_list_before(const int32_t *__restrict__ bins_of, int32_t chunk, int32_t (&before)[TC_BINS])
{
  constexpr int groups = (TC_BINS + tc_warp_size - 1) / tc_warp_size, parts = tc_list_warps / groups;
  const int     warp = threadIdx.x / tc_warp_size, bin = warp % groups * tc_warp_size + threadIdx.x % tc_warp_size, part = warp / groups;
  int           sum = 0;

  for (int b = threadIdx.x; b < TC_BINS; b += tc_list_threads) before[b] = 0;
  __syncthreads();
  if (bin < TC_BINS && part < parts) {
#pragma unroll 8
    for (int32_t c = part; c < chunk; c += parts) sum += __ldg(bins_of + (int64_t)TC_BINS * c + bin);
    atomicAdd(&before[bin], sum);
  }
  __syncthreads();
}

/*
  tc_survey_list_kernel - the lists of long and heavy rows

  Work:   a thread block per chunk of rows, a warp per part of it: counts its rows bin by bin, sees where those of its bins go, and lists them. Heavy rows of the same length
          stay in their order, and so the lists are those that the host makes
  Lanes:  consecutive rows
  Arrays: the view without values, its heavy_from; counts and bins_of of the survey; list as in tc_survey; all device
  Writes: list, its zeros by the first block
  Launch: tc_list_threads per block, 33 KiB of shared memory.  Needs: sm_70.  Source: a stable counting sort
*/
static __global__ void __launch_bounds__(tc_list_threads) tc_survey_list_kernel(const __grid_constant__ tc_csr_view A, const tc_survey_counts *__restrict__ counts, const int32_t *__restrict__ bins_of, int32_t *list)
{
  using scan = cub::BlockScan<int32_t, tc_list_threads>;
  __shared__ int32_t                    before[TC_BINS], place[tc_list_warps][TC_BINS];
  __shared__ typename scan::TempStorage scratch;
  const int32_t chunk = blockIdx.x, per = tc_survey_per_chunk(A.num_rows), steps = (per + tc_list_threads - 1) / tc_list_threads;
  const int     warp = threadIdx.x / tc_warp_size, lane = threadIdx.x % tc_warp_size, length_of_thread = TC_SPMM_SEGMENT - 1 - (int)threadIdx.x;
  const int64_t begin = (int64_t)per * chunk + (int64_t)steps * tc_warp_size * warp, end = min(min((int64_t)per * (chunk + 1), (int64_t)A.num_rows), begin + steps * tc_warp_size);
  const int32_t num_long = counts->sums.num_long;
  int32_t      *first = list + num_long, *heavy = first + num_long + 1, longer;

  if (chunk == 0 && threadIdx.x == 0) first[num_long] = counts->sums.num_segments;
  for (int64_t i = threadIdx.x; chunk == 0 && i < (int64_t)TC_SPMM_CHUNKS * num_long; i += tc_list_threads) heavy[counts->sums.num_heavy + i] = 0;
  if (!__syncthreads_or(threadIdx.x < TC_BIN_SEGMENTS && bins_of[(int64_t)TC_BINS * chunk + threadIdx.x] > 0)) return;
  for (int b = threadIdx.x; b < tc_list_warps * TC_BINS; b += tc_list_threads) place[b / TC_BINS][b % TC_BINS] = 0;
  tc_list_before(bins_of, chunk, before);
  scan(scratch).ExclusiveSum(length_of_thread >= 0 ? counts->heavy[length_of_thread] : 0, longer);
  if (length_of_thread >= 0) before[length_of_thread] += longer;
  for (int64_t i = begin + lane; i < end; i += tc_warp_size) {
    const int length = tc_survey_length(A, (int32_t)i), bin = tc_survey_bin(A, length);

    if (bin >= 0) atomicAdd(&place[warp][bin], 1);
    if (bin == TC_BIN_LONG) atomicAdd(&place[warp][TC_BIN_SEGMENTS], tc_survey_segments(length));
  }
  __syncthreads();
  for (int b = threadIdx.x, next = b < TC_BINS ? before[b] : 0, w = 0; b < TC_BINS && w < tc_list_warps; ++w) {
    const int own = place[w][b];

    place[w][b] = next;
    next += own;
  }
  __syncthreads();
  for (int64_t i0 = begin; i0 < end; i0 += tc_warp_size) {
    const int32_t  row    = (int32_t)(i0 + lane);
    const int      length = i0 + lane < end ? tc_survey_length(A, row) : 0, bin = tc_survey_bin(A, length);
    const unsigned same   = __match_any_sync(tc_full_warp, bin), below = same & ((1u << lane) - 1);
    int            segments = tc_survey_segments(length), to;

    if (!__any_sync(tc_full_warp, bin >= 0)) continue;
    to = bin >= 0 ? place[warp][bin] + __popc(below) : 0;
#pragma unroll
    for (int apart = 1; apart < tc_warp_size; apart *= 2) {
      const int up = __shfl_up_sync(tc_full_warp, segments, apart);

      segments += lane >= apart ? up : 0;
    }
    if (bin == TC_BIN_LONG) {
      list[to]  = row;
      first[to] = place[warp][TC_BIN_SEGMENTS] + segments - tc_survey_segments(length);
    } else if (bin >= 0) heavy[to] = row;
    __syncwarp();
    if (bin >= 0 && below == 0) place[warp][bin] += __popc(same);
    if (lane == tc_warp_size - 1) place[warp][TC_BIN_SEGMENTS] += segments;
    __syncwarp();
  }
}

/* Where the host gets the counts: pinned, so that nobody waits for the copy, and kept for the next survey */
struct tc_survey_result {
  tc_survey_sums   *sums;
  cudaEvent_t       there;
  int               device;
  tc_survey_result *next;
};

static std::mutex        tc_results_mutex;
static tc_survey_result *tc_results; // that nobody uses

static void tc_result_give(tc_survey_result *result)
{
  const std::lock_guard<std::mutex> lock(tc_results_mutex);

  result->next = tc_results;
  tc_results   = result;
}

static tc_status tc_result_create(int device, tc_survey_result **result)
{
  void *sums;

  *result = new (std::nothrow) tc_survey_result{nullptr, nullptr, device, nullptr};
  TC_CHECK(*result, TC_ERR_MEMORY, "tc_survey: no host memory");
  tc_status status = tc_cuda("tc_survey: pinned memory", cudaHostAlloc(&sums, sizeof(tc_survey_sums), cudaHostAllocPortable));

  if (status == TC_OK) {
    (*result)->sums = static_cast<tc_survey_sums *>(sums);
    status          = tc_cuda("tc_survey: event", cudaEventCreateWithFlags(&(*result)->there, cudaEventDisableTiming));
    if (status != TC_OK) cudaFreeHost(sums);
  }
  if (status != TC_OK) delete *result;
  return status;
}

/* One of the current device */
static tc_status tc_result_take(tc_survey_result **result)
{
  int device;

  TC_CALL(tc_cuda("current device", cudaGetDevice(&device)));
  {
    const std::lock_guard<std::mutex> lock(tc_results_mutex);

    for (tc_survey_result **at = &tc_results; *at; at = &(*at)->next) {
      if ((*at)->device != device) continue;
      *result = *at;
      *at     = (*at)->next;
      return TC_OK;
    }
  }
  return tc_result_create(device, result);
}

/* A survey that was begun: what the two kernels share, in one piece of memory, and the result */
struct tc_survey_begun {
  void             *piece;
  tc_survey_counts *counts;
  int32_t          *bins_of;
  tc_survey_result *result;
};

static int32_t tc_survey_num_chunks(int32_t num_rows)
{
  return (num_rows - 1) / tc_survey_per_chunk(num_rows) + 1;
}

static void tc_cut_piece(tc_cutter &C, int32_t num_rows, tc_survey_begun *begun)
{
  C.cut(begun->counts, 1);
  C.cut(begun->bins_of, (int64_t)TC_BINS * tc_survey_num_chunks(num_rows));
}

static tc_csr_view tc_survey_view(const tc_csr_view *rows)
{
  tc_csr_view A = *rows;

  A.heavy_from = tc_survey_heavy_from(A.num_rows, A.nnz);
  return A;
}

static tc_status tc_survey_enqueue(const tc_csr_view &A, tc_survey_begun *begun, cudaStream_t stream)
{
  const int64_t windows = tc_survey_num_windows(A.num_rows), samples = (tc_survey_num_sampled(A.num_rows) + tc_survey_warps - 1) / tc_survey_warps;
  tc_cutter     counted = {}, real = {};

  tc_cut_piece(counted, A.num_rows, begun);
  TC_CALL(tc_memory_take(counted.bytes, &begun->piece, stream));
  real.memory = static_cast<char *>(begun->piece);
  tc_cut_piece(real, A.num_rows, begun);
  TC_CALL(tc_cuda("tc_survey: zeroing", cudaMemsetAsync(begun->counts, 0, sizeof *begun->counts, stream)));
  TC_CALL(tc_launch("tc_survey", tc_survey_kernel, windows + samples + tc_survey_num_chunks(A.num_rows), tc_survey_threads, stream, A, static_cast<int32_t>(windows), static_cast<int32_t>(samples), begun->counts, begun->bins_of));
  TC_CALL(tc_cuda("tc_survey: download", cudaMemcpyAsync(begun->result->sums, &begun->counts->sums, sizeof *begun->result->sums, cudaMemcpyDeviceToHost, stream)));
  return tc_cuda("tc_survey: download", cudaEventRecord(begun->result->there, stream));
}

extern "C" tc_status tc_survey_begin_cuda(const tc_csr_view *rows, void **begun, tc_stream stream)
{
  const cudaStream_t on     = static_cast<cudaStream_t>(stream);
  tc_survey_begun   *survey = new (std::nothrow) tc_survey_begun{};

  *begun = nullptr;
  TC_CHECK(survey, TC_ERR_MEMORY, "tc_survey: no host memory");
  tc_status status = tc_result_take(&survey->result);

  if (status == TC_OK && rows->num_rows > 0) status = tc_survey_enqueue(tc_survey_view(rows), survey, on);
  if (status == TC_OK) *begun = survey;
  else {
    if (survey->piece) tc_memory_give(survey->piece, on);
    if (survey->result) tc_result_give(survey->result);
    delete survey;
  }
  return status;
}

/* The lists, by what is enqueued */
static tc_status tc_survey_lists(const tc_csr_view &A, const tc_survey_begun *begun, tc_survey *S, cudaStream_t stream)
{
  void *list;

  if (S->num_long + S->num_heavy == 0) return TC_OK;
  TC_CALL(tc_memory_alloc(tc_survey_list_bytes(S->num_long, S->num_heavy), &list));
  S->list = static_cast<int32_t *>(list);
  return tc_launch("tc_survey_list", tc_survey_list_kernel, tc_survey_num_chunks(A.num_rows), tc_list_threads, stream, A, begun->counts, begun->bins_of, S->list);
}

/* Waits for the counts */
static tc_status tc_survey_finish(const tc_csr_view *rows, const tc_survey_begun *begun, tc_survey *survey, cudaStream_t stream)
{
  const tc_csr_view A = tc_survey_view(rows);

  *survey            = {};
  survey->heavy_from = A.heavy_from;
  if (A.num_rows == 0) return TC_OK;
  TC_CALL(tc_cuda("tc_survey: download", cudaEventSynchronize(begun->result->there)));
  const tc_survey_sums sums = *begun->result->sums;

  survey->longest_row  = sums.longest_row;
  survey->num_long     = sums.num_long;
  survey->num_segments = sums.num_segments;
  survey->num_heavy    = sums.num_heavy;
  survey->sampled      = (int64_t)sums.sampled;
  survey->far          = (int64_t)sums.far;
  survey->in_windows   = (int64_t)sums.in_windows;
  survey->columns      = (int64_t)sums.columns;
  return tc_survey_lists(A, begun, survey, stream);
}

extern "C" tc_status tc_survey_end_cuda(void *begun, const tc_csr_view *rows, tc_survey *survey, tc_stream stream)
{
  const cudaStream_t on     = static_cast<cudaStream_t>(stream);
  tc_survey_begun   *B      = static_cast<tc_survey_begun *>(begun);
  tc_status          status = TC_OK;

  if (rows) status = tc_survey_finish(rows, B, survey, on);
  else if (B->piece) status = tc_cuda("tc_survey", cudaEventSynchronize(B->result->there)); // nobody may write to the result any more
  const tc_status given = tc_memory_give(B->piece, on);

  tc_result_give(B->result);
  delete B;
  if (status == TC_OK) status = given;
  if (status != TC_OK && rows) {
    tc_memory_release(survey->list);
    survey->list = nullptr;
  }
  return status;
}
