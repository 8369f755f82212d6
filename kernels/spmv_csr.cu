#include "long_rows.cuh"
#include "tc_backend.h"

/*
  tc_spmv_csr_kernel - z = A x or z = y + A x or z = y - A x straight from CSR, for a matrix that nobody has packed or looked at

  Work:   a thread block takes up to 128 rows in a row, so many that they have some 960 entries in the mean; it brings their entries a tile at a time. Rows of 256 entries and more
          go into a queue, by segments, for the kernel behind
  Lanes:  entries, values and x, are loaded by all threads into shared memory, neighbours together; then a thread adds up what of its own row is there, in the order
          of CSR
  Arrays: row_ptr [num_rows + 1], col, val [nnz] in the scalar of the vectors, perm [nnz] or NULL, where in val an entry's value is; x [num_cols]; y (may be NULL, may be z), z [num_rows]; all device
  Writes: z once for each short row, but not that of a row without entries where y is z; the queue, which is empty before. Two products with one queue must not overlap.
  Launch: 128 threads per block, 17 KB of shared memory.  Needs: sm_70.  Source: the order of additions is that of docs/formats.md
*/
constexpr int     tc_straight_threads = 128;
constexpr int     tc_straight_tile    = 1024; // entries in shared memory
constexpr int     tc_straight_ahead   = tc_straight_tile / tc_straight_threads; // loads that a thread has in flight
constexpr int     tc_straight_batch   = 4;    // entries of a row that come out of shared memory together
constexpr int     tc_straight_entries = 960;  // of a thread block, in the mean: mostly one tile
constexpr int     tc_straight_waves   = 2;    // thread blocks that each multiprocessor should have at least
constexpr int     tc_straight_segment_waves = 8; // thread blocks for segments, at most
constexpr int32_t tc_straight_least   = 4;    // rows
constexpr int     tc_straight_long    = 256;  // entries of a row from which on it is summed by segments
constexpr int     tc_straight_segment = 2048;
constexpr int     tc_straight_chain   = 4;    // entries in a row that belong to one chain

static_assert(tc_straight_threads == tc_team * tc_warp_size, "a thread for every chain of a segment");

/*
  Segments of long rows, in any order but for those of a row, which lie behind each other. `counts`: how many segments there are, and how many thread blocks are done with them; both, and `arrived`,
  zero before and after.
*/
struct tc_straight_queue {
  int32_t *counts;      // [2]
  int32_t *row, *first; // [segments], the row and its first segment
  int32_t *arrived;     // [segments], used at the first of a row
  double  *partial;     // [segments]
};

/* The most segments that there can be */
static int64_t tc_straight_most(int64_t nnz)
{
  return nnz / tc_straight_long;
}

static tc_straight_queue tc_straight_queue_of(void *scratch, int64_t nnz)
{
  const int64_t most = tc_straight_most(nnz);
  int32_t      *ids  = reinterpret_cast<int32_t *>(static_cast<double *>(scratch) + most);

  return {ids + 3 * most, ids, ids + most, ids + 2 * most, static_cast<double *>(scratch)};
}

/* Where an entry of the tile is; a gap behind every 32 keeps rows of even length out of each other's banks */
static __device__ __forceinline__ int tc_straight_place(int e)
{
  return e + e / tc_warp_size;
}

/* The segments of a row of `length` entries into the queue; the threads of a warp come here together */
static __device__ __forceinline__ void tc_straight_put(int32_t row, int32_t length, int lane, const tc_straight_queue &Q)
{
  const int32_t num   = (length - 1) / tc_straight_segment + 1;
  int32_t       first = 0;

  if (lane == 0) first = atomicAdd(Q.counts, num);
  first = __shfl_sync(tc_full_warp, first, 0);
  for (int32_t i = lane; i < num; i += tc_warp_size) {
    Q.row[first + i]   = row;
    Q.first[first + i] = first;
  }
}

/* Values in the order of CSR, or where a permutation says: those of the matrix in a product with its transpose */
template <typename V, bool permuted>
struct tc_straight_values {
  const V       *val;
  const int32_t *perm;

  __device__ __forceinline__ V operator[](int64_t e) const
  {
    if constexpr (permuted) return __ldg(val + tc_load_stream(perm + e));
    return tc_load_stream(val + e);
  }
};

/* A chain of a segment of `num` entries, which begins with entry `begin` */
template <typename V, bool permuted>
static __device__ __forceinline__ double tc_straight_sum_chain(int32_t num, int32_t begin, const tc_straight_values<V, permuted> &val, const int32_t *col, const V *x)
{
  double chain = 0.0;

#pragma unroll 2
  for (int32_t e = tc_straight_chain * static_cast<int32_t>(threadIdx.x); e < num; e += tc_straight_chain * tc_straight_threads) {
    int32_t c[tc_straight_chain];
    double  v[tc_straight_chain], element[tc_straight_chain];

#pragma unroll
    for (int k = 0; k < tc_straight_chain; ++k) {
      c[k] = e + k < num ? tc_load_stream(col + begin + e + k) : -1;
      v[k] = e + k < num ? static_cast<double>(val[begin + e + k]) : 0.0;
    }
#pragma unroll
    for (int k = 0; k < tc_straight_chain; ++k) element[k] = tc_gather(x, c[k]);
#pragma unroll
    for (int k = 0; k < tc_straight_chain; ++k) chain = e + k < num ? fma(v[k], element[k], chain) : chain;
  }
  return chain;
}

/* What a thread adds up of its row, entries own_from .. own_to - 1, with those of all rows from entry `from` to entry `to`, none of them long */
template <typename V, bool permuted>
static __device__ __forceinline__ double tc_straight_add(double sum, int32_t from, int32_t to, int32_t own_from, int32_t own_to, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x)
{
  constexpr int     places = tc_straight_tile + tc_straight_tile / tc_warp_size;
  __shared__ double factor[places], element[places];
  const int         t = threadIdx.x;

  for (int32_t tile = from; tile < to; tile += tc_straight_tile) {
    const int32_t num = min(tc_straight_tile, to - tile);
    V             v[tc_straight_ahead];
    int32_t       c[tc_straight_ahead];

#pragma unroll
    for (int k = 0; k < tc_straight_ahead; ++k) {
      const int32_t e = t + k * tc_straight_threads;

      c[k] = e < num ? tc_load_stream(col + tile + e) : -1;
      v[k] = e < num ? val[tile + e] : V(0);
    }
#pragma unroll
    for (int k = 0; k < tc_straight_ahead; ++k) {
      const int place = tc_straight_place(t + k * tc_straight_threads);

      factor[place]  = static_cast<double>(v[k]);
      element[place] = tc_gather(x, c[k]);
    }
    __syncthreads();
    const int32_t last = min(own_to - tile, num);
    int32_t       e    = max(own_from - tile, 0);

    for (; e + tc_straight_batch <= last; e += tc_straight_batch) {
      double a[tc_straight_batch], b[tc_straight_batch];

#pragma unroll
      for (int k = 0; k < tc_straight_batch; ++k) {
        a[k] = factor[tc_straight_place(e + k)];
        b[k] = element[tc_straight_place(e + k)];
      }
#pragma unroll
      for (int k = 0; k < tc_straight_batch; ++k) sum = fma(a[k], b[k], sum);
    }
    for (; e < last; ++e) sum = fma(factor[tc_straight_place(e)], element[tc_straight_place(e)], sum);
    __syncthreads();
  }
  return sum;
}

template <typename V, bool permuted>
static __global__ void __launch_bounds__(tc_straight_threads) tc_spmv_csr_kernel(int32_t num_rows, int32_t rows, const int32_t *row_ptr, const int32_t *col, const __grid_constant__ tc_straight_values<V, permuted> val, const V *x, const __grid_constant__ tc_output<V> out, const __grid_constant__ tc_straight_queue Q)
{
  constexpr int       warps = tc_straight_threads / tc_warp_size;
  __shared__ int32_t  begin[tc_straight_threads + 1];
  __shared__ unsigned long_rows[warps];
  const int           t = threadIdx.x, lane = t % tc_warp_size, warp = t / tc_warp_size;
  const int32_t       first = static_cast<int32_t>(blockIdx.x) * rows, here = min(rows, num_rows - first);
  double              sum = 0.0;

  for (int i = t; i <= here; i += tc_straight_threads) begin[i] = row_ptr[first + i];
  __syncthreads();
  const int32_t  own_from = begin[min(t, here)], own_to = begin[min(t + 1, here)];
  const bool     is_long = own_to - own_from >= tc_straight_long;
  const unsigned of_warp = __ballot_sync(tc_full_warp, is_long);

  if (lane == 0) long_rows[warp] = of_warp;
  for (unsigned left = of_warp; left != 0; left &= left - 1) {
    const int row = warp * tc_warp_size + __ffs(static_cast<int>(left)) - 1;

    tc_straight_put(first + row, begin[row + 1] - begin[row], lane, Q);
  }
  const bool any_long = __syncthreads_or(is_long);

  for (int from = 0, to; from < here; from = to + 1) { // rows from .. to - 1, none of which is long
    to = here;
    for (int w = from / tc_warp_size; any_long && w < warps; ++w) {
      const unsigned next = long_rows[w] & (w == from / tc_warp_size ? tc_full_warp << from % tc_warp_size : tc_full_warp);

      if (next != 0) {
        to = w * tc_warp_size + __ffs(static_cast<int>(next)) - 1;
        break;
      }
    }
    const bool mine = from <= t && t < to;

    sum = tc_straight_add(sum, begin[from], begin[to], mine ? own_from : 0, mine ? own_to : 0, col, val, x);
  }
  if (t < here && !is_long) {
    if (own_from < own_to) tc_finish_row(sum, first + t, out);
    else if (out.y != out.z) __stcs(out.z + first + t, out.y ? out.y[first + t] : V(0));
  }
}

/*
  tc_spmv_csr_segments_kernel - the rows that tc_spmv_csr_kernel has put into a queue

  Work:   a thread block per segment of 2048 entries, and then the next one as many further as there are thread blocks
  Lanes:  a thread per chain
  Arrays: as above; the queue
  Writes: z once for each row of the queue: the last of its segments to arrive adds up the sums of all of them, always in their order. The last thread block empties the queue. If there was nothing
          in it, `seen`, in the memory of the host, gets the number of the pattern.
  Launch: 128 threads per block, a few words of shared memory; begins early.  Needs: sm_70.  Source: as above
*/
template <typename V, bool permuted>
static __global__ void __launch_bounds__(tc_straight_threads) tc_spmv_csr_segments_kernel(const int32_t *row_ptr, const int32_t *col, const __grid_constant__ tc_straight_values<V, permuted> val, const V *x, const __grid_constant__ tc_output<V> out, const __grid_constant__ tc_straight_queue Q, int32_t *seen, int32_t pattern)
{
  __shared__ int32_t ends[2], row_id;

  tc_wait_for_kernel_before();
  const int32_t num = __ldcg(Q.counts);

  for (int32_t s = blockIdx.x; s < num; s += gridDim.x) {
    const int32_t row = __ldcg(Q.row + s), first = __ldcg(Q.first + s), begin = row_ptr[row], length = row_ptr[row + 1] - begin, at = (s - first) * tc_straight_segment;

    if (threadIdx.x == 0) {
      ends[0] = first;
      ends[1] = first + (length - 1) / tc_straight_segment + 1;
      row_id  = row;
    }
    const double chain = tc_straight_sum_chain(min(tc_straight_segment, length - at), begin + at, val, col, x);

    __syncthreads();
    tc_finish_segment<tc_straight_threads>(chain, true, s, 0, tc_long_rows{ends, &row_id, Q.partial, Q.arrived + first}, out);
    __syncthreads();
  }
  if (threadIdx.x == 0 && tc_arrive(Q.counts + 1, 1, static_cast<int32_t>(gridDim.x))) {
    Q.counts[0] = Q.counts[1] = 0;
    if (num == 0) *static_cast<volatile int32_t *>(seen) = pattern;
  }
}

/* So many rows for a thread block that there are enough of those, too */
static int32_t tc_straight_rows(const tc_csr_local *A, const tc_device_size *size)
{
  const int64_t few = A->num_rows / (tc_straight_waves * static_cast<int64_t>(size->num_sms)), by_entries = A->nnz > 0 ? tc_straight_entries * static_cast<int64_t>(A->num_rows) / A->nnz : tc_straight_threads;
  const int64_t rows = few < by_entries ? few : by_entries;

  return rows < tc_straight_least ? tc_straight_least : rows > tc_straight_threads ? tc_straight_threads : static_cast<int32_t>(rows);
}

template <typename V, bool permuted>
static tc_status straight(const char *name, const tc_csr_local *A, const void *val, const int32_t *perm, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const tc_output<V>      out = {static_cast<const V *>(y), static_cast<V *>(z), static_cast<double>(sign)};
  const tc_straight_values<V, permuted> values = {static_cast<const V *>(val), perm};
  const V                *vector = static_cast<const V *>(x);
  const tc_straight_queue Q    = tc_straight_queue_of(memory->scratch, A->nnz);
  const int64_t           most = A->num_cols >= tc_straight_long && *static_cast<volatile int32_t *>(memory->seen) != memory->pattern ? tc_straight_most(A->nnz) : 0;
  const cudaStream_t      s    = static_cast<cudaStream_t>(stream);
  const tc_device_size   *size;
  int32_t                 rows, blocks;

  TC_CALL(tc_size_of_device(name, &size));
  rows   = tc_straight_rows(A, size);
  blocks = tc_straight_segment_waves * size->num_sms;
  TC_CALL(tc_launch(name, tc_spmv_csr_kernel<V, permuted>, (A->num_rows + static_cast<int64_t>(rows) - 1) / rows, tc_straight_threads, s, A->num_rows, rows, A->row_ptr, A->col, values, vector, out, Q));
  return most > 0 ? tc_launch_early(name, tc_spmv_csr_segments_kernel<V, permuted>, most < blocks ? most : blocks, tc_straight_threads, 0, s, A->row_ptr, A->col, values, vector, out, Q, memory->seen, memory->pattern) : TC_OK;
}

extern "C" size_t tc_spmv_csr_scratch_cuda(int64_t nnz)
{
  return (sizeof(double) + 3 * sizeof(int32_t)) * static_cast<size_t>(tc_straight_most(nnz)) + 2 * sizeof(int32_t);
}

extern "C" tc_status tc_spmv_csr_cuda(const tc_csr_local *A, tc_scalar scalar, const void *val, const int32_t *perm, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const auto multiply = scalar == TC_SCALAR_F64 ? perm ? straight<double, true> : straight<double, false> : perm ? straight<float, true> : straight<float, false>;

  return multiply("tc_spmv_csr", A, val, perm, x, y, z, sign, memory, stream);
}
