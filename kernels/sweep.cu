#include "sweep.cuh"

constexpr int tc_most_lanes = 16; // of a row

/* What a lane has of its row: the entry that is its one of the next ones */
template <typename T>
struct tc_sweep_lane {
  int32_t at, end; // of the row, from the next entries on to the last of the triangle
  bool    is_new;  // do they read what is new?
  bool    waits;
  int32_t place;
  T       val, x;

  __device__ void load(const tc_sweep_arrays<T> &S, int lane)
  {
    const int32_t k     = at + lane;
    const bool    there = k < end;

    waits = there && is_new;
    val   = there ? S.val[k] : T(0);
    place = waits ? S.place[k] : 0;
    x     = there && !is_new ? S.before[S.col[k]] : T(0);
  }
  /* Goes on behind what has been subtracted from the sum; has the row all then? */
  __device__ bool next(const tc_sweep_arrays<T> &S, int lane, bool backward, tc_sweep_kind kind, int32_t diagonal, int32_t last, int32_t row, T sum)
  {
    at += S.lanes;
    if (at >= end && is_new && !backward && S.saved && lane == 0) S.saved[row] = sum;
    if (at >= end && kind == TC_SWEEP_AGAIN && is_new != backward) { // the other triangle comes behind this one
      is_new = backward;
      at     = diagonal + 1;
      end    = last;
    }
    if (at < end) load(S, lane);
    return at >= end;
  }
  __device__ void look(T *scratch)
  {
    if (!waits) return;
    x     = tc_look_at(scratch + place);
    waits = tc_is_missing(x);
  }
};

/*
  tc_sweep_kernel - one sweep over all rows, see tc_sweep.h

  Work:   some lanes per row, which wait for the elements that it reads of rows in front of it in the order. Thread blocks begin in their order, so who is waited for has begun, and nobody waits for later ones
  Lanes:  consecutive entries of the row, as many at a time, which are subtracted one after the other once all are there; rows of a warp that wait for each other go round together, and who has what it needs writes
          before the next round
  Arrays: row_ptr [num_rows + 1]; col, val, place [nnz], ascending in a row; order, diagonal, b, before, x, scratch, saved [num_rows], scratch in places of the order; all device
  Writes: scratch, all bits before, once each, an element whole; x and saved once
  Launch: tc_sweep_threads per block, no shared memory.  Needs: sm_70.
  Source: Liu, Li, Hogg, Duff, Vinter, A synchronization-free algorithm for parallel sparse triangular solves (2016); the order of operations is MatSOR_SeqAIJ()'s of PETSc
*/
template <typename T, tc_sweep_kind kind, bool backward>
static __global__ void __launch_bounds__(tc_sweep_threads) tc_sweep_kernel(tc_sweep_arrays<T> S)
{
  const int     lane = threadIdx.x % S.lanes, in_warp = threadIdx.x % tc_warp_size, first_lane = in_warp - lane;
  const int64_t place = (blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x) / S.lanes;
  bool          goes  = place < S.num_rows;
  const int32_t row   = goes ? S.order[place] : 0;
  const int32_t first = S.row_ptr[row], diagonal = S.diagonal[row], last = S.row_ptr[row + 1];
  const unsigned group = (S.lanes == tc_warp_size ? tc_full_warp : (1u << S.lanes) - 1) << first_lane;
  const T       d = S.val[diagonal], e = S.inverse(d), old = kind == TC_SWEEP_FROM_ZERO || tc_is_unit(kind) ? T(0) : S.before[row];
  T             sum = S.b[row];

  if (kind == TC_SWEEP_EISENSTAT) sum = tc_plus(sum, -tc_times(tc_times(S.scale, d), old));

  tc_sweep_lane<T> mine = {first, diagonal, true};
  if (backward) mine = {diagonal + 1, last, true};
  if (backward && kind == TC_SWEEP_AGAIN) mine = {first, diagonal + 1, false};
  mine.load(S, lane);
  while (__any_sync(tc_full_warp, goes)) {
    mine.look(S.scratch);
    const unsigned waiting = __ballot_sync(tc_full_warp, mine.waits); // by all lanes, whatever they have
    const bool     ready   = goes && !(waiting & group);

    if (__any_sync(tc_full_warp, ready)) {
      const T product = tc_times(mine.val, mine.x);

#pragma unroll 4
      for (int u = 0; u < S.lanes; ++u) {
        const T next = __shfl_sync(tc_full_warp, product, first_lane + u);

        sum = ready && mine.at + u < mine.end ? tc_plus(sum, -next) : sum;
      }
      if (ready && mine.next(S, lane, backward, kind, diagonal, last, row, sum)) {
        T result;

        if (kind == TC_SWEEP_AGAIN && backward) sum = tc_plus(sum, tc_times(d, old));
        result = tc_is_unit(kind) ? sum : tc_times(sum, e);
        if (kind == TC_SWEEP_SECOND || kind == TC_SWEEP_AGAIN) result = S.relax(old, result);
        if (lane == 0) {
          tc_hand_over(S.scratch + place, result);
          S.x[row] = kind == TC_SWEEP_EISENSTAT ? tc_plus(old, result) : kind == TC_SWEEP_UNIT_OVER ? tc_times(result, e) : result;
        }
        goes = false;
      }
    } else __nanosleep(tc_nap);
    __syncwarp();
  }
}

/*
  tc_sweep_facts_kernel - what can be said of a pattern

  Work:   a warp per row
  Lanes:  consecutive entries
  Arrays: row_ptr [num_rows + 1]; col, mirror [nnz], the former ascending in a row; facts [1]; all device
  Writes: mirror, if it is wanted, once; facts
  Launch: tc_sweep_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
static __global__ void __launch_bounds__(tc_sweep_threads) tc_sweep_facts_kernel(int32_t num_rows, int32_t node, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, int32_t *__restrict__ mirror, tc_sweep_facts *facts)
{
  const int64_t row = (blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x) / tc_warp_size;
  const int     lane = threadIdx.x % tc_warp_size;

  if (row >= num_rows) return;
  const int32_t first = row_ptr[row], length = row_ptr[row + 1] - first;
  const bool    follows = node > 1 && row % node != 0;

  if (lane == 0 && length > facts->longest) atomicMax(&facts->longest, length);
  if (follows && first - row_ptr[row - 1] != length) facts->irregular = 1;
  else if (follows) {
    for (int32_t k = first + lane; k < first + length; k += tc_warp_size) {
      if (col[k] != col[k - length]) facts->irregular = 1;
    }
  }
  if (!mirror) return;
  for (int32_t k = first + lane; k < first + length; k += tc_warp_size) {
    const int32_t column = col[k], there = tc_find_column(col, row_ptr[column], row_ptr[column + 1], static_cast<int32_t>(row));

    mirror[k] = there;
    if (there < 0) facts->lone = 1;
  }
}

/*
  tc_invert_kernel - the place of each row in an order

  Work:   a thread per place
  Lanes:  consecutive places
  Arrays: order, place [n], device
  Writes: place, once
  Launch: tc_sweep_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
static __global__ void __launch_bounds__(tc_sweep_threads) tc_invert_kernel(int32_t n, const int32_t *__restrict__ order, int32_t *__restrict__ place)
{
  const int64_t i = blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x;

  if (i < n) place[order[i]] = (int32_t)i;
}

/*
  tc_sweep_pattern_kernel - what sweeps need to know of a pattern

  Work:   a warp per row
  Lanes:  consecutive entries
  Arrays: row_ptr [num_rows + 1]; col [nnz], ascending in a row, which has an entry on the diagonal; forward, backward [num_rows], the place of each row in both orders; diagonal [num_rows]; place [nnz]; all device
  Writes: diagonal and place, but for those of the diagonal, once
  Launch: tc_sweep_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
static __global__ void __launch_bounds__(tc_sweep_threads) tc_sweep_pattern_kernel(int32_t num_rows, const int32_t *__restrict__ row_ptr, const int32_t *__restrict__ col, const int32_t *__restrict__ forward, const int32_t *__restrict__ backward, int32_t *__restrict__ diagonal, int32_t *__restrict__ place)
{
  const int64_t row = (blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x) / tc_warp_size;

  if (row >= num_rows) return;
  for (int32_t k = row_ptr[row] + (int32_t)(threadIdx.x % tc_warp_size); k < row_ptr[row + 1]; k += tc_warp_size) {
    const int32_t column = col[k];

    if (column == row) diagonal[row] = k;
    else place[k] = (column < row ? forward : backward)[column];
  }
}

/*
  tc_find_zero_kernel - is a value on the diagonal zero?

  Work:   a thread per row
  Lanes:  consecutive rows
  Arrays: diagonal [num_rows]; val [nnz]; zero [1]; all device
  Writes: zero, one, by whoever finds one
  Launch: tc_sweep_threads per block, no shared memory.  Needs: sm_70.  Source: -
*/
template <typename T>
static __global__ void __launch_bounds__(tc_sweep_threads) tc_find_zero_kernel(int32_t num_rows, const int32_t *__restrict__ diagonal, const T *__restrict__ val, int32_t *__restrict__ zero)
{
  const int64_t row = blockIdx.x * (int64_t)tc_sweep_threads + threadIdx.x;

  if (row < num_rows && val[diagonal[row]] == T(0)) *zero = 1;
}

static int64_t blocks_for(int64_t threads)
{
  return (threads + tc_sweep_threads - 1) / tc_sweep_threads;
}

extern "C" tc_status tc_sweep_facts_cuda(const tc_csr_local *A, int32_t *mirror, tc_sweep_facts *facts, tc_stream stream)
{
  return tc_launch("tc_sweep_facts", tc_sweep_facts_kernel, blocks_for((int64_t)A->num_rows * tc_warp_size), tc_sweep_threads, static_cast<cudaStream_t>(stream), A->num_rows, A->row_group, A->row_ptr, A->col, mirror, facts);
}

extern "C" tc_status tc_sweep_pattern_cuda(const tc_csr_local *A, const tc_sweep_pattern *pattern, int32_t *scratch, tc_stream stream)
{
  int32_t *const places[] = {scratch, scratch + A->num_rows};

  for (int t = 0; t < 2; ++t) TC_CALL(tc_launch("tc_sweep_pattern", tc_invert_kernel, blocks_for(A->num_rows), tc_sweep_threads, static_cast<cudaStream_t>(stream), A->num_rows, pattern->order[t], places[t]));
  return tc_launch("tc_sweep_pattern", tc_sweep_pattern_kernel, blocks_for((int64_t)A->num_rows * tc_warp_size), tc_sweep_threads, static_cast<cudaStream_t>(stream), A->num_rows, A->row_ptr, A->col, places[0], places[1], pattern->diagonal, pattern->place);
}

extern "C" tc_status tc_find_zero_cuda(int32_t num_rows, const int32_t *diagonal, tc_scalar scalar, const void *val, int32_t *zero, tc_stream stream)
{
  const int64_t      blocks = blocks_for(num_rows);
  const cudaStream_t on     = static_cast<cudaStream_t>(stream);

  if (scalar == TC_SCALAR_F32) return tc_launch("tc_find_zero", tc_find_zero_kernel<float>, blocks, tc_sweep_threads, on, num_rows, diagonal, static_cast<const float *>(val), zero);
  return tc_launch("tc_find_zero", tc_find_zero_kernel<double>, blocks, tc_sweep_threads, on, num_rows, diagonal, static_cast<const double *>(val), zero);
}

/* As many as a triangle has entries in a row */
static int lanes_for(const tc_csr_local *A)
{
  int lanes = 4;

  while (lanes < tc_most_lanes && 2 * (int64_t)lanes * A->num_rows < A->nnz - A->num_rows) lanes *= 2;
  return lanes;
}

/*
  More warps than are close to their turn ask for what is not there yet, in the way of those whose turn it is; where a row has 4 lanes, waves of blocks are the greater loss (docs/performance-solves.md, "Sweeps")
*/
template <typename T, tc_sweep_kind kind, bool backward>
static tc_status launch(const tc_csr_local *A, const tc_sweep *sweep, cudaStream_t stream)
{
  const size_t             bytes  = (size_t)A->num_rows * sizeof(T);
  const int                lanes  = lanes_for(A);
  const bool               spares = kind == TC_SWEEP_AGAIN && sweep->x == sweep->before; // other rows read it
  const tc_sweep_arrays<T> S      = tc_sweep_arrays_of<T>(A, sweep, spares ? sweep->spare : sweep->before, lanes);

  TC_CHECK(!spares || cudaMemcpyAsync(sweep->spare, sweep->before, bytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "tc_sweep: %zu bytes could not be copied", bytes);
  TC_CALL(tc_sweep_clear("tc_sweep", sweep->scratch, bytes, stream));
  return tc_launch_grid("tc_sweep", tc_sweep_kernel<T, kind, backward>, false, dim3((unsigned)blocks_for((int64_t)A->num_rows * lanes)), tc_sweep_threads, lanes == 4 ? 0 : tc_kept_away, stream, S);
}

template <typename T>
static tc_status sweep_of(const tc_csr_local *A, const tc_sweep *sweep, cudaStream_t stream)
{
  switch (sweep->kind) {
  case TC_SWEEP_FROM_ZERO:
    return (sweep->backward ? launch<T, TC_SWEEP_FROM_ZERO, true> : launch<T, TC_SWEEP_FROM_ZERO, false>)(A, sweep, stream);
  case TC_SWEEP_SECOND:
    return launch<T, TC_SWEEP_SECOND, true>(A, sweep, stream);
  case TC_SWEEP_EISENSTAT:
    return launch<T, TC_SWEEP_EISENSTAT, false>(A, sweep, stream);
  case TC_SWEEP_UNIT:
    return (sweep->backward ? launch<T, TC_SWEEP_UNIT, true> : launch<T, TC_SWEEP_UNIT, false>)(A, sweep, stream);
  case TC_SWEEP_UNIT_OVER:
    return launch<T, TC_SWEEP_UNIT_OVER, false>(A, sweep, stream);
  default:
    return (sweep->backward ? launch<T, TC_SWEEP_AGAIN, true> : launch<T, TC_SWEEP_AGAIN, false>)(A, sweep, stream);
  }
}

/* Nodes, or single rows with so many entries in a triangle that it pays to subtract what is there before all is (docs/performance-solves.md, "Sweeps") */
static bool by_nodes(const tc_csr_local *A, const tc_sweep *sweep)
{
  if (sweep->kind == TC_SWEEP_AGAIN) return false;
  return sweep->pattern->node > 1 || (A->nnz - A->num_rows > 2 * (int64_t)TC_SWEEP_SINGLE_ROWS * A->num_rows && sweep->pattern->longest <= TC_SWEEP_NODE_ROOM);
}

extern "C" tc_status tc_sweep_cuda(const tc_csr_local *A, const tc_sweep *sweep, tc_stream stream)
{
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  if (by_nodes(A, sweep)) return tc_sweep_nodes(A, sweep, on);
  return (sweep->scalar == TC_SCALAR_F32 ? sweep_of<float> : sweep_of<double>)(A, sweep, on);
}
