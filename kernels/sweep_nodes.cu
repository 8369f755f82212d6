#include "sweep.cuh"

/* What has been multiplied with the values of a node's rows, and its own block */
template <typename T>
struct tc_sweep_node {
  T inside[TC_SWEEP_LARGEST_NODE], x[TC_SWEEP_LARGEST_NODE]; // values of this lane's row in the columns of the node; the new elements of the node

  __device__ void load(const T *__restrict__ val, int32_t at, int32_t node, bool is_row)
  {
#pragma unroll
    for (int q = 0; q < TC_SWEEP_LARGEST_NODE; ++q) inside[q] = is_row && q < node ? val[at + q] : T(0);
  }
};

/*
  tc_sweep_nodes_kernel - one sweep over rows that share their columns, as many at a time as a node has, see tc_sweep.h

  Work:   a warp per node, which waits for the elements that its rows read of nodes in front of it in the order, and goes through its own block by itself. Thread blocks begin in their order, so who is waited for has begun
  Lanes:  consecutive columns, each of which multiplies the element with the values of all rows as soon as that is there; a lane per row subtracts the products in their order, forward as far as they are there without a
          gap, backward all at once: there those of the node itself, and of the rows that are done last, come before them, so what is furthest from the diagonal is waited for first
  Arrays: as tc_sweep_kernel; rows of a node follow each other in the order, backwards in that of backward sweeps
  Writes: scratch, all bits before, once each, an element whole; x and saved once
  Shared: per warp the products: node rows of `room`
  Launch: tc_sweep_threads per block.  Needs: sm_70.
  Source: tc_sweep_kernel's; the order of operations is MatSOR_SeqAIJ()'s of PETSc
*/
template <typename T, tc_sweep_kind kind, bool backward>
static __global__ void __launch_bounds__(tc_sweep_threads) tc_sweep_nodes_kernel(tc_sweep_arrays<T> S, int32_t room)
{
  extern __shared__ double tc_sweep_memory[];
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size, node = S.node;
  const int64_t place = (blockIdx.x * (int64_t)(tc_sweep_threads / tc_warp_size) + warp) * node;
  T *const      product = reinterpret_cast<T *>(tc_sweep_memory) + warp * node * room, *const mine = product + min(lane, node - 1) * room;

  if (place >= S.num_rows) return;
  const bool    is_row = lane < node;
  const int32_t any = S.order[place], base = any - any % node, row = base + (is_row ? lane : 0);
  const int32_t first = S.row_ptr[base], length = S.row_ptr[base + 1] - first, own = S.diagonal[base] - first; // columns of the node itself, one after the other
  const int32_t begin = backward ? own + node : 0, end = backward ? length : own, at_row = first + (is_row ? lane : 0) * length;
  const T       d = S.val[at_row + own + (is_row ? lane : 0)], e = S.inverse(d), old = kind == TC_SWEEP_FROM_ZERO || tc_is_unit(kind) ? T(0) : S.before[row], b = S.b[row];
  T             sum = b;

  tc_sweep_node<T> own_block;
  own_block.load(S.val, at_row + own, node, is_row);
  if (kind == TC_SWEEP_EISENSTAT) sum = tc_plus(sum, -tc_times(tc_times(S.scale, d), old));

  for (int32_t passed = 0; passed < end - begin; passed += tc_warp_size) {
    const int32_t at = backward ? begin + (end - begin - 1 - passed) / tc_warp_size * tc_warp_size : begin + passed, k = at + lane, count = min(tc_warp_size, end - at);
    bool          waits = k < end;
    const int32_t where = waits ? S.place[first + k] : 0;
    T             value[TC_SWEEP_LARGEST_NODE];

#pragma unroll
    for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) value[r] = waits && r < node ? S.val[first + r * length + k] : T(0);
    for (int32_t there = 0; there < count;) {
      const bool waited = waits;
      T          x = T(0);

      if (waits) {
        x     = tc_look_at(S.scratch + where);
        waits = tc_is_missing(x);
      }
      if (waited && !waits) {
#pragma unroll
        for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) {
          if (r < node) product[r * room + k - begin] = tc_times(value[r], x);
        }
      }
      const unsigned missing = __ballot_sync(tc_full_warp, waits); // and what others have written is there behind it
      const int32_t  now = missing ? __ffs(missing) - 1 : count;

      __syncwarp();
      if (now > there) {
        if (!backward && is_row) {
#pragma unroll 4
          for (int32_t u = at + there; u < at + now; ++u) sum = tc_plus(sum, -mine[u - begin]);
        }
        there = now;
      } else __nanosleep(tc_nap);
    }
  }
#pragma unroll
  for (int step = 0; step < TC_SWEEP_LARGEST_NODE; ++step) {
    const int q = backward ? TC_SWEEP_LARGEST_NODE - 1 - step : step;

    if (q < node) { // all lanes
      if (backward && lane == q) {
#pragma unroll
        for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) sum = r > q && r < node ? tc_plus(sum, -tc_times(own_block.inside[r], own_block.x[r])) : sum;
#pragma unroll 8
        for (int32_t u = 0; u < end - begin; ++u) sum = tc_plus(sum, -mine[u]);
      }
      T result = tc_is_unit(kind) ? sum : tc_times(sum, e);

      if (kind == TC_SWEEP_SECOND) result = S.relax(old, result);
      if (lane == q) {
        tc_hand_over(S.scratch + place + (backward ? node - 1 - q : q), result);
        if (!backward && S.saved) S.saved[row] = sum;
        S.x[row] = kind == TC_SWEEP_EISENSTAT ? tc_plus(old, result) : kind == TC_SWEEP_UNIT_OVER ? tc_times(result, e) : result;
      }
      own_block.x[q] = __shfl_sync(tc_full_warp, result, q);
      if (!backward && is_row && lane > q) sum = tc_plus(sum, -tc_times(own_block.inside[q], own_block.x[q]));
    }
  }
}

template <typename T, tc_sweep_kind kind, bool backward>
static tc_status launch(const tc_csr_local *A, const tc_sweep *sweep, cudaStream_t stream)
{
  const int                warps = tc_sweep_threads / tc_warp_size, room = sweep->pattern->longest;
  const int64_t            blocks = ((int64_t)A->num_rows / sweep->pattern->node + warps - 1) / warps;
  const tc_sweep_arrays<T> S = tc_sweep_arrays_of<T>(A, sweep, sweep->before, tc_warp_size);

  static_assert(TC_SWEEP_NODE_ROOM * sizeof(double) * (tc_sweep_threads / tc_warp_size) <= tc_kept_away, "the products of all nodes of a thread block are in its shared memory");
  TC_CALL(tc_sweep_clear("tc_sweep_nodes", sweep->scratch, (size_t)A->num_rows * sizeof(T), stream));
  return tc_launch_line("tc_sweep_nodes", tc_sweep_nodes_kernel<T, kind, backward>, false, blocks, tc_sweep_threads, tc_kept_away, stream, S, room);
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
    return tc_fail(TC_ERR_UNSUPPORTED, "tc_sweep_nodes: kind %d reads old elements, too", (int)sweep->kind);
  }
}

tc_status tc_sweep_nodes(const tc_csr_local *A, const tc_sweep *sweep, cudaStream_t stream)
{
  TC_CHECK(sweep->pattern->node <= TC_SWEEP_LARGEST_NODE && sweep->pattern->node * sweep->pattern->longest <= TC_SWEEP_NODE_ROOM, TC_ERR_LIMIT, "tc_sweep_nodes: nodes of %d rows of up to %d entries, more than %d entries", sweep->pattern->node, sweep->pattern->longest, (int)TC_SWEEP_NODE_ROOM);
  return (sweep->scalar == TC_SCALAR_F32 ? sweep_of<float> : sweep_of<double>)(A, sweep, stream);
}
