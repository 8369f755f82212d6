#include "long_rows.cuh"
#include "tc_backend.h"

/*
  tc_spmv_csr_kernel - z = A x or z = y + A x or z = y - A x straight from CSR, for a matrix that nobody has packed or looked at

  Work:   a thread block takes up to 128 rows in a row, so many that they have some 960 entries in the mean, and brings their entries a tile at a time. What else it meets, rows of 256 entries and
          more, by segments, and where there are more than two tiles what lies beyond the first run of rows, are parts for others: with the first products of a pattern they go into a list, for the
          kernel behind; later there is a thread block for each of them
  Lanes:  entries, values and x, are loaded by all threads into shared memory, neighbours together; then a thread adds up what of its own row is there, in the order
          of CSR. Of a segment a thread has a chain
  Arrays: row_ptr [num_rows + 1], col, val [nnz] in the scalar of the vectors, perm [nnz] or NULL, where in val an entry's value is; x [num_cols]; y (may be NULL, may be z), z [num_rows]; the list; all device
  Writes: z once for each row, but not that of a row without entries where y is z; the last segment of a row to arrive adds up the sums of all of them, always in their order; the list. Two products with one list must
          not overlap.
  Launch: 128 threads per block, 18 KB of shared memory.  Needs: sm_70.  Source: the order of additions is that of docs/formats.md
*/
constexpr int     tc_straight_threads = 128;
constexpr int     tc_straight_tile    = 1024; // entries in shared memory
constexpr int     tc_straight_ahead   = tc_straight_tile / tc_straight_threads; // loads that a thread has in flight
constexpr int     tc_straight_batch   = 4;    // entries of a row that come out of shared memory together
constexpr int     tc_straight_entries = 960;  // of a thread block, in the mean: mostly one tile
constexpr int     tc_straight_waves   = 2;    // thread blocks that each multiprocessor should have at least
constexpr int     tc_straight_part_waves = 8; // thread blocks for the parts of a list, at most
constexpr int     tc_straight_resident = 9;   // thread blocks of a multiprocessor: 8 are too few, for 10 a thread has too few registers
constexpr int32_t tc_straight_least   = 4;    // rows
constexpr int     tc_straight_long    = 256;  // entries of a row from which on it is summed by segments
constexpr int     tc_straight_segment = 2048;
constexpr int     tc_straight_many    = 2 * tc_straight_tile; // entries of a thread block from which on others take a part of them
constexpr int     tc_straight_run     = tc_straight_tile - tc_straight_long; // entries in such a part, until the next row begins
constexpr int     tc_straight_chain   = 4;    // entries in a row that belong to one chain

static_assert(tc_straight_threads == tc_team * tc_warp_size, "a thread for every chain of a segment");
static_assert(tc_straight_ahead % tc_straight_chain == 0, "what a tile has of a chain is whole");

/*
  Parts, in any order but for the segments of a row, which lie behind each other. `counts`: how many parts there are, and how many thread blocks are done with them; both, and `arrived`,
  zero before and after.
*/
struct tc_straight_list {
  int32_t *counts;  // [2]
  int32_t *row;     // [parts], the row, or the first of them
  int32_t *first;   // [parts], for a segment the first one of its row, for rows less than zero: their number
  int32_t *arrived; // [parts], used at the first of a row
  double  *partial; // [parts]
};

/* The most parts that there can be: segments of long rows, what follows such a row, and what begins behind another `run` entries */
static int64_t tc_straight_most(int64_t nnz)
{
  return 2 * (nnz / tc_straight_long) + nnz / tc_straight_run;
}

static tc_straight_list tc_straight_list_of(void *scratch, int64_t nnz)
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

/* The segments of a row of `length` entries into the list; the threads of a warp come here together */
static __device__ __forceinline__ void tc_straight_put(int32_t row, int32_t length, int lane, const tc_straight_list &L)
{
  const int32_t num   = (length - 1) / tc_straight_segment + 1;
  int32_t       first = 0;

  if (lane == 0) first = atomicAdd(L.counts, num);
  first = __shfl_sync(tc_full_warp, first, 0);
  for (int32_t i = lane; i < num; i += tc_warp_size) {
    L.row[first + i]   = row;
    L.first[first + i] = first;
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

/* A tile of entries, as all threads of a block share it */
struct tc_straight_shared {
  double factor[tc_straight_tile + tc_straight_tile / tc_warp_size], element[tc_straight_tile + tc_straight_tile / tc_warp_size];
};

/* Entries begin .. begin + num - 1, `num` not above a tile, into shared memory, for all threads of the block, which come here together and wait for each other before the next */
template <typename V, bool permuted>
static __device__ __forceinline__ void tc_straight_bring(int32_t num, int32_t begin, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, tc_straight_shared *E)
{
  const int t = threadIdx.x;
  V         v[tc_straight_ahead];
  int32_t   c[tc_straight_ahead];

#pragma unroll
  for (int k = 0; k < tc_straight_ahead; ++k) {
    const int32_t e = t + k * tc_straight_threads;

    c[k] = e < num ? tc_load_stream(col + begin + e) : -1;
    v[k] = e < num ? val[begin + e] : V(0);
  }
#pragma unroll
  for (int k = 0; k < tc_straight_ahead; ++k) {
    const int place = tc_straight_place(t + k * tc_straight_threads);

    E->factor[place]  = static_cast<double>(v[k]);
    E->element[place] = tc_gather(x, c[k]);
  }
  __syncthreads();
}

/* A thread's chain of a segment of `num` entries, which begins with entry `begin` */
template <typename V, bool permuted>
static __device__ __forceinline__ double tc_straight_sum_chain(int32_t num, int32_t begin, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, tc_straight_shared *E)
{
  double chain = 0.0;

  for (int32_t tile = 0; tile < num; tile += tc_straight_tile) {
    const int32_t here = min(tc_straight_tile, num - tile);

    tc_straight_bring(here, begin + tile, col, val, x, E);
#pragma unroll
    for (int turn = 0; turn < tc_straight_ahead / tc_straight_chain; ++turn) {
#pragma unroll
      for (int k = 0; k < tc_straight_chain; ++k) {
        const int e = tc_straight_chain * (turn * tc_straight_threads + static_cast<int>(threadIdx.x)) + k, place = tc_straight_place(e);

        chain = e < here ? fma(E->factor[place], E->element[place], chain) : chain;
      }
    }
    __syncthreads();
  }
  return chain;
}

/* What a thread adds up of its row, entries own_from .. own_to - 1, with those of all rows from entry `from` to entry `to`, none of them long */
template <typename V, bool permuted>
static __device__ __forceinline__ double tc_straight_add(int32_t from, int32_t to, int32_t own_from, int32_t own_to, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, tc_straight_shared *E)
{
  double sum = 0.0;

  for (int32_t tile = from; tile < to; tile += tc_straight_tile) {
    const int32_t num = min(tc_straight_tile, to - tile), last = min(own_to - tile, num);
    int32_t       e = max(own_from - tile, 0);

    tc_straight_bring(num, tile, col, val, x, E);
    for (; e + tc_straight_batch <= last; e += tc_straight_batch) {
      double a[tc_straight_batch], b[tc_straight_batch];

#pragma unroll
      for (int k = 0; k < tc_straight_batch; ++k) {
        a[k] = E->factor[tc_straight_place(e + k)];
        b[k] = E->element[tc_straight_place(e + k)];
      }
#pragma unroll
      for (int k = 0; k < tc_straight_batch; ++k) sum = fma(a[k], b[k], sum);
    }
    for (; e < last; ++e) sum = fma(E->factor[tc_straight_place(e)], E->element[tc_straight_place(e)], sum);
    __syncthreads();
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

/* Part `s` of the list */
template <typename V, bool permuted>
static __device__ __forceinline__ void tc_straight_part(int32_t s, const int32_t *row_ptr, const int32_t *col, const tc_straight_values<V, permuted> &val, const V *x, const tc_output<V> &out, const tc_straight_list &L, tc_straight_shared *E)
{
  __shared__ int32_t ends[2], row_id;
  const int32_t      row = __ldcg(L.row + s), first = __ldcg(L.first + s), begin = row_ptr[row];
  const int          t = threadIdx.x;

  if (first < 0) {
    const int     own = min(t, -first);
    const int32_t own_from = row_ptr[row + own], own_to = row_ptr[row + min(own + 1, -first)];
    const double  sum = tc_straight_add(begin, row_ptr[row - first], own_from, own_to, col, val, x, E);

    if (own < -first) tc_straight_finish(sum, row + own, own_from < own_to, out);
    return;
  }
  const int32_t length = row_ptr[row + 1] - begin, at = (s - first) * tc_straight_segment;

  if (t == 0) {
    ends[0] = first;
    ends[1] = first + (length - 1) / tc_straight_segment + 1;
    row_id  = row;
  }
  const double chain = tc_straight_sum_chain(min(tc_straight_segment, length - at), begin + at, col, val, x, E);

  __syncthreads();
  tc_finish_segment<tc_straight_threads>(chain, true, s, 0, tc_long_rows{ends, &row_id, L.partial, L.arrived + first}, out);
  __syncthreads();
}

/* The first row from `row` on, of `here` ones, where a part begins */
static __device__ __forceinline__ int tc_straight_next(const unsigned *begins, int row, int here)
{
  for (int w = row / tc_warp_size; w * tc_warp_size < here; ++w) {
    const unsigned next = begins[w] & (w == row / tc_warp_size ? tc_full_warp << row % tc_warp_size : tc_full_warp);

    if (next != 0) return w * tc_warp_size + __ffs(static_cast<int>(next)) - 1;
  }
  return here;
}

/* `parts`: of the list that the products before have made, none less than zero; less than zero: a list is to be made */
template <typename V, bool permuted>
static __global__ void __launch_bounds__(tc_straight_threads, tc_straight_resident) tc_spmv_csr_kernel(int32_t num_rows, int32_t rows, const int32_t *row_ptr, const int32_t *col, const __grid_constant__ tc_straight_values<V, permuted> val, const V *x, const __grid_constant__ tc_output<V> out, const __grid_constant__ tc_straight_list L, int32_t parts)
{
  constexpr int       warps = tc_straight_threads / tc_warp_size;
  __shared__ tc_straight_shared E;
  __shared__ int32_t  begin[tc_straight_threads + 1];
  __shared__ unsigned begins[warps];
  const int           t = threadIdx.x, lane = t % tc_warp_size, warp = t / tc_warp_size;
  const int32_t       block = static_cast<int32_t>(blockIdx.x) - max(parts, 0), first = block * rows, here = min(rows, num_rows - first);

  if (block < 0) {
    tc_straight_part(static_cast<int32_t>(blockIdx.x), row_ptr, col, val, x, out, L, &E);
    return;
  }
  for (int i = t; i <= here; i += tc_straight_threads) begin[i] = row_ptr[first + i];
  __syncthreads();
  const int     own = min(t, here);
  const int32_t own_from = begin[own], own_to = begin[min(t + 1, here)], before = begin[max(own - 1, 0)];
  const bool    is_long = own_to - own_from >= tc_straight_long, many = begin[here] - begin[0] > tc_straight_many;
  int           to = here;

  if (__syncthreads_or(is_long || many)) {
    const bool     begins_run = many && (own_from - begin[0]) / tc_straight_run != (before - begin[0]) / tc_straight_run;
    const bool     begins_part = t < here && (is_long || own_from - before >= tc_straight_long || begins_run);
    const unsigned of_warp = __ballot_sync(tc_full_warp, begins_part);
    unsigned       left = __ballot_sync(tc_full_warp, is_long && parts < 0);

    if (lane == 0) begins[warp] = of_warp;
    for (; left != 0; left &= left - 1) {
      const int row = warp * tc_warp_size + __ffs(static_cast<int>(left)) - 1;

      tc_straight_put(first + row, begin[row + 1] - begin[row], lane, L);
    }
    __syncthreads();
    to = tc_straight_next(begins, 0, here);
    if (begins_part && !is_long && parts < 0) {
      const int32_t at = atomicAdd(L.counts, 1);

      L.row[at]   = first + t;
      L.first[at] = t - tc_straight_next(begins, t + 1, here);
    }
  }
  const bool   mine = t < to;
  const double sum = tc_straight_add(begin[0], begin[to], mine ? own_from : 0, mine ? own_to : 0, col, val, x, &E);

  if (mine) tc_straight_finish(sum, first + t, own_from < own_to, out);
}

/*
  tc_spmv_csr_parts_kernel - the parts that tc_spmv_csr_kernel has put into a list

  Work:   a thread block per part, and then the next one as many further as there are thread blocks
  Lanes:  as above
  Arrays: as above
  Writes: z, for the rows of the list. The last thread block sets the counts back, and tells the host how many parts there are: `told`, of its memory, `none` if there are none
  Launch: 128 threads per block, 18 KB of shared memory; begins early.  Needs: sm_70.  Source: as above
*/
template <typename V, bool permuted>
static __global__ void __launch_bounds__(tc_straight_threads, tc_straight_resident) tc_spmv_csr_parts_kernel(const int32_t *row_ptr, const int32_t *col, const __grid_constant__ tc_straight_values<V, permuted> val, const V *x, const __grid_constant__ tc_output<V> out, const __grid_constant__ tc_straight_list L, int64_t *told, int64_t none)
{
  __shared__ tc_straight_shared E;

  tc_wait_for_kernel_before();
  const int32_t num = __ldcg(L.counts);

  for (int32_t s = blockIdx.x; s < num; s += gridDim.x) tc_straight_part(s, row_ptr, col, val, x, out, L, &E);
  if (threadIdx.x == 0 && tc_arrive(L.counts + 1, 1, static_cast<int32_t>(gridDim.x))) {
    L.counts[0] = L.counts[1] = 0;
    *static_cast<volatile int64_t *>(told) = none + num;
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
static tc_status straight(const char *name, const tc_csr_matrix *matrix, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const tc_output<V>      out = {static_cast<const V *>(y), static_cast<V *>(z), static_cast<double>(sign)};
  const tc_straight_values<V, permuted> values = {static_cast<const V *>(matrix->val), matrix->perm};
  const tc_csr_local     *A      = matrix->rows;
  const V                *vector = static_cast<const V *>(x);
  const tc_straight_list L = tc_straight_list_of(memory->scratch, A->nnz);
  const int64_t           most = tc_straight_most(A->nnz);
  const int32_t           parts = most > 0 ? tc_parts_told(memory) : 0;
  const cudaStream_t      s    = static_cast<cudaStream_t>(stream);
  const tc_device_size   *size;
  int32_t                 rows, blocks;

  TC_CALL(tc_size_of_device(name, &size));
  rows   = tc_straight_rows(A, size);
  blocks = tc_straight_part_waves * size->num_sms;
  TC_CALL(tc_launch(name, tc_spmv_csr_kernel<V, permuted>, (A->num_rows + static_cast<int64_t>(rows) - 1) / rows + (parts > 0 ? parts : 0), tc_straight_threads, s, A->num_rows, rows, A->row_ptr, A->col, values, vector, out, L, parts));
  return parts < 0 ? tc_launch_early(name, tc_spmv_csr_parts_kernel<V, permuted>, most < blocks ? most : blocks, tc_straight_threads, 0, s, A->row_ptr, A->col, values, vector, out, L, memory->told, tc_told(memory->pattern, 0)) : TC_OK;
}

extern "C" size_t tc_spmv_csr_scratch_cuda(int64_t nnz)
{
  return (sizeof(double) + 3 * sizeof(int32_t)) * static_cast<size_t>(tc_straight_most(nnz)) + 2 * sizeof(int32_t);
}

extern "C" tc_status tc_spmv_csr_cuda(const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  const auto multiply = A->scalar == TC_SCALAR_F64 ? A->perm ? straight<double, true> : straight<double, false> : A->perm ? straight<float, true> : straight<float, false>;

  return multiply("tc_spmv_csr", A, x, y, z, sign, memory, stream);
}
