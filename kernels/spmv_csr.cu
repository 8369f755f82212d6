#include "long_rows.cuh"
#include "straight_parts.cuh"
#include "tc_backend.h"

constexpr int     tc_straight_threads = 128;
constexpr int     tc_straight_batch   = 4;  // entries of a row that come out of shared memory together
constexpr int     tc_straight_gap     = 64; // entries of a tile between two gaps
constexpr int     tc_straight_chain   = 4;  // entries in a row that belong to one chain
constexpr int     tc_straight_rounds  = 8;  // thread blocks of a multiprocessor while the number of parts is not known
constexpr int     tc_straight_short   = 16; // mean entries of a row below which tiles are small, ...
constexpr int     tc_straight_far     = 24; // ... or below which they are, and thread blocks many, where memory is to be waited for:
constexpr int64_t tc_straight_many    = 10000000; // entries, two thirds more than the L2 cache of an H200 has room for

/* A thread block and its tile of entries in shared memory: loads that a thread has in flight, thread blocks of a multiprocessor, as many as registers allow */
template <int loads, int blocks>
struct tc_straight_shape {
  static constexpr int ahead = loads, resident = blocks;
  static constexpr int tile    = loads * tc_straight_threads;
  static constexpr int entries = tile / 16 * 15; // of a part, in the mean

  using loop = tc_straight_shape<loads, loads < 8 ? 9 : 6>; // what a loop over parts has registers for
};

using tc_straight_small = tc_straight_shape<4, 12>;
using tc_straight_dense = tc_straight_shape<4, 16>;
using tc_straight_large = tc_straight_shape<8, 9>;

static_assert(tc_straight_threads == tc_team * tc_warp_size, "a thread for every chain of a segment");
static_assert(tc_straight_small::ahead % tc_straight_chain == 0 && tc_straight_large::ahead % tc_straight_chain == 0, "what a tile has of a chain is whole");
static_assert(tc_straight_small::tile >= tc_straight_least_tile && tc_straight_small::entries >= tc_straight_least_window, "as many parts as there is room for");

/*
  Where an entry of the tile is, so that few of the eight lanes that shared memory serves at once meet in a bank: rows begin anywhere, and a gap now and then keeps those of even length
  apart; chains are four entries in a row of every thread.
*/
enum class tc_straight_order { rows, chains };

template <tc_straight_order order>
static __device__ __forceinline__ int tc_straight_place(int e)
{
  return order == tc_straight_order::rows ? e + e / tc_straight_gap : e ^ (e / 8 % 8);
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

/* A tile of entries, each a value and the x that it is multiplied by, as all threads of a block share it */
template <typename shape>
struct tc_straight_shared {
  double2 entry[shape::tile + shape::tile / tc_straight_gap];
};

/* Entries begin .. begin + num - 1, `num` not above a tile, into shared memory, for all threads of the block, which come here together and wait for each other before the next */
template <typename shape, tc_straight_order order, typename V, bool permuted>
static __device__ __forceinline__ void tc_straight_bring(int32_t num, int32_t begin, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, tc_straight_shared<shape> *E)
{
  const int t = threadIdx.x;
  V         v[shape::ahead];
  int32_t   c[shape::ahead];

#pragma unroll
  for (int k = 0; k < shape::ahead; ++k) {
    const int32_t e = t + k * tc_straight_threads;

    c[k] = e < num ? tc_load_stream(col + begin + e) : -1;
    v[k] = e < num ? val[begin + e] : V(0);
  }
#pragma unroll
  for (int k = 0; k < shape::ahead; ++k) E->entry[tc_straight_place<order>(t + k * tc_straight_threads)] = make_double2(static_cast<double>(v[k]), tc_gather(x, c[k]));
  __syncthreads();
}

/* A thread's chain of a segment of `num` entries, which begins with entry `begin` */
template <typename shape, typename V, bool permuted>
static __device__ __forceinline__ double tc_straight_sum_chain(int32_t num, int32_t begin, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, tc_straight_shared<shape> *E)
{
  double chain = 0.0;

  for (int32_t tile = 0; tile < num; tile += shape::tile) {
    const int32_t here = min(shape::tile, num - tile);

    tc_straight_bring<shape, tc_straight_order::chains>(here, begin + tile, col, val, x, E);
#pragma unroll
    for (int turn = 0; turn < shape::ahead / tc_straight_chain; ++turn) {
#pragma unroll
      for (int k = 0; k < tc_straight_chain; ++k) {
        const int     e     = tc_straight_chain * (turn * tc_straight_threads + static_cast<int>(threadIdx.x)) + k;
        const double2 entry = E->entry[tc_straight_place<tc_straight_order::chains>(e)];

        chain = e < here ? fma(entry.x, entry.y, chain) : chain;
      }
    }
    __syncthreads();
  }
  return chain;
}

/* Adds up entries e .. last - 1 of the tile, a row's */
template <typename shape>
static __device__ __forceinline__ double tc_straight_sum_row(int32_t e, int32_t last, const tc_straight_shared<shape> *E)
{
  constexpr auto order = tc_straight_order::rows;
  double         sum   = 0.0;

#pragma unroll 1
  for (; e + tc_straight_batch <= last; e += tc_straight_batch) {
    double2 entry[tc_straight_batch];

#pragma unroll
    for (int k = 0; k < tc_straight_batch; ++k) entry[k] = E->entry[tc_straight_place<order>(e + k)];
#pragma unroll
    for (int k = 0; k < tc_straight_batch; ++k) sum = fma(entry[k].x, entry[k].y, sum);
  }
#pragma unroll 1
  for (; e < last; ++e) {
    const double2 entry = E->entry[tc_straight_place<order>(e)];

    sum = fma(entry.x, entry.y, sum);
  }
  return sum;
}

/* The row of a thread is written, unless it has no entries and y is z */
template <typename V>
static __device__ __forceinline__ void tc_straight_finish(double sum, int32_t row, bool any, const tc_output<V> &out)
{
  if (any) tc_finish_row(sum, row, out);
  else if (out.y != out.z) __stcs(out.z + row, out.y ? out.y[row] : V(0));
}

static __device__ __forceinline__ tc_straight_part tc_straight_look_up(const tc_straight_part *part)
{
  const int4 words = __ldcg(reinterpret_cast<const int4 *>(part));

  return {words.x, words.y, words.z, words.w};
}

/* Part `s`, of `segments` and then runs, by all threads of the block, which leave the tile together */
template <typename shape, typename V, bool permuted>
static __device__ __forceinline__ void tc_straight_do(int32_t s, int32_t segments, const int32_t *row_ptr, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, const tc_output<V> &out, const tc_straight_list &L, tc_straight_shared<shape> *E)
{
  __shared__ int32_t     ends[2], row_id;
  const tc_straight_part part = tc_straight_look_up(s < segments ? L.segment + s : L.run + (s - segments));
  const int              t    = threadIdx.x;

  if (s >= segments) {
    const int own = min(t, part.num - 1);
    int32_t   from = row_ptr[part.row + own], to = row_ptr[part.row + own + 1];

    tc_straight_bring<shape, tc_straight_order::rows>(part.length, part.begin, col, val, x, E);
#pragma unroll 1
    for (int r = t; r < part.num; r += tc_straight_threads) {
      if (r != t) {
        from = row_ptr[part.row + r];
        to   = row_ptr[part.row + r + 1];
      }
      tc_straight_finish(tc_straight_sum_row(from - part.begin, to - part.begin, E), part.row + r, from < to, out);
    }
    __syncthreads();
    return;
  }
  const int32_t at = (s - part.num) * tc_straight_segment;

  if (t == 0) {
    ends[0] = part.num;
    ends[1] = part.num + (part.length - 1) / tc_straight_segment + 1;
    row_id  = part.row;
  }
  const double chain = tc_straight_sum_chain(min(tc_straight_segment, part.length - at), part.begin + at, col, val, x, E);

  tc_finish_segment<tc_straight_threads>(chain, true, s, 0, tc_long_rows{ends, &row_id, L.partial, L.arrived + part.num}, out);
  __syncthreads();
}

/*
  tc_spmv_csr_kernel - z = A x or z = y + A x or z = y - A x straight from CSR, by parts

  Work:   a thread block per part; while their number is not known, the next one as many further as there are thread blocks
  Lanes:  entries of a tile, values and x, are loaded by all threads into shared memory, neighbours together; then a thread adds up what is there of its own rows, in the order of CSR. Of a segment a
          thread has a chain
  Arrays: row_ptr [num_rows + 1], col, val [nnz] in the scalar of the vectors, perm [nnz] or NULL, where in val an entry's value is; x [num_cols]; y (may be NULL, may be z), z [num_rows]; the list; all device
  Writes: z once for each row, but not that of a row without entries where y is z; the last segment of a row to arrive adds up the sums of all of them, always in their order. Two products with one list must not
          overlap. While the number of parts is not known, the last thread block sets the counts back and tells the host: `told`, of its memory
  Launch: 128 threads per block, 9 or 17 KB of shared memory; begins early while the number of parts is not known.  Needs: sm_70.  Source: the order of additions is that of docs/formats.md
*/
template <typename shape, bool known, typename V, bool permuted>
static __global__ void __launch_bounds__(tc_straight_threads, shape::resident) tc_spmv_csr_kernel(const int32_t *row_ptr, const int32_t *col, const __grid_constant__ tc_straight_values<V, permuted> val, const V *x, const __grid_constant__ tc_output<V> out, const __grid_constant__ tc_straight_list L, int32_t known_segments, int64_t *told, int64_t none)
{
  __shared__ tc_straight_shared<shape> E;

  if constexpr (known) tc_straight_do(static_cast<int32_t>(blockIdx.x), known_segments, row_ptr, col, val, x, out, L, &E);
  else {
    tc_wait_for_kernel_before();
    const int32_t segments = __ldcg(L.counts), num = segments + __ldcg(L.counts + 1);

#pragma unroll 1
    for (int32_t s = blockIdx.x; s < num; s += gridDim.x) tc_straight_do(s, segments, row_ptr, col, val, x, out, L, &E);
    if (threadIdx.x == 0 && tc_arrive(L.counts + 2, 1, static_cast<int32_t>(gridDim.x))) {
      volatile int64_t *words = told;

      L.counts[0] = L.counts[1] = L.counts[2] = 0;
      words[1] = segments;
      __threadfence_system();
      words[0] = none + num;
    }
  }
}

template <typename shape, typename V, bool permuted>
static tc_status straight_in(const char *name, const tc_csr_matrix *matrix, const V *x, const tc_output<V> &out, const tc_spmv_csr_memory *memory, const tc_device_size *size, cudaStream_t stream)
{
  const tc_straight_values<V, permuted> values = {static_cast<const V *>(matrix->val), matrix->perm};
  const tc_csr_local    *A     = matrix->rows;
  const int64_t          segments = tc_straight_most_segments(A->nnz), runs = tc_straight_most_runs(A->num_rows, A->nnz), none = tc_told(memory->pattern, 0);
  const tc_straight_list L     = tc_straight_list_of(memory->scratch, segments, runs);
  const int32_t          parts = tc_parts_told(memory), rounds = tc_straight_rounds * size->num_sms;

  if (parts >= 0) return tc_launch(name, tc_spmv_csr_kernel<shape, true, V, permuted>, parts, tc_straight_threads, stream, A->row_ptr, A->col, values, x, out, L, tc_segments_told(memory), memory->told, none);
  TC_CALL(tc_launch(name, tc_spmv_csr_parts_kernel, (A->num_rows + static_cast<int64_t>(tc_straight_chunk) - 1) / tc_straight_chunk, tc_straight_makers, stream, A->num_rows, tc_straight_window(A->num_rows, A->nnz, shape::entries, size), shape::tile, A->row_ptr, L));
  return tc_launch_early(name, tc_spmv_csr_kernel<typename shape::loop, false, V, permuted>, segments + runs < rounds ? segments + runs : rounds, tc_straight_threads, 0, stream, A->row_ptr, A->col, values, x, out, L, 0, memory->told, none);
}

template <typename V, bool permuted>
static tc_status straight(const char *name, const tc_csr_matrix *matrix, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const tc_output<V>    out = {static_cast<const V *>(y), static_cast<V *>(z), static_cast<double>(sign)};
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  const int64_t      nnz = matrix->rows->nnz, rows = matrix->rows->num_rows;
  const V           *vector = static_cast<const V *>(x);
  const cudaStream_t s      = static_cast<cudaStream_t>(stream);

  if constexpr (!permuted) {
    if (nnz >= tc_straight_many && nnz < tc_straight_far * rows) return straight_in<tc_straight_dense, V, permuted>(name, matrix, vector, out, memory, size, s);
  }
  if (nnz < tc_straight_short * rows) return straight_in<tc_straight_small, V, permuted>(name, matrix, vector, out, memory, size, s);
  return straight_in<tc_straight_large, V, permuted>(name, matrix, vector, out, memory, size, s);
}

extern "C" size_t tc_spmv_csr_scratch_cuda(int32_t num_rows, int64_t nnz)
{
  const size_t segments = static_cast<size_t>(tc_straight_most_segments(nnz)), runs = static_cast<size_t>(tc_straight_most_runs(num_rows, nnz));

  return sizeof(tc_straight_part) * (segments + runs) + (sizeof(double) + sizeof(int32_t)) * segments + 3 * sizeof(int32_t);
}

extern "C" tc_status tc_spmv_csr_cuda(const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const auto multiply = A->scalar == TC_SCALAR_F64 ? A->perm ? straight<double, true> : straight<double, false> : A->perm ? straight<float, true> : straight<float, false>;

  return multiply("tc_spmv_csr", A, x, y, z, sign, memory, stream);
}
