#include "sweep_block.cuh"

constexpr int tc_block_nodes_ahead = 8; // entries that are looked for at once

/*
  tc_sweep_block_nodes_kernel - one sweep with a block of vectors over rows that share their columns, as many at a time as a node has, or over long ones, see tc_sweep.h

  Work:   a warp, which is a thread block, per node and 32 columns, which waits for the elements that its rows read of nodes in front of it in the order, and goes through its own block by itself. Thread blocks begin in
          their order, so who is waited for has begun
  Lanes:  consecutive columns; entries one after the other. Forward each is subtracted from the sums of all rows once it is there, those next to the diagonal last. Backward these come first, so elements are kept, the
          furthest from the diagonal first, as many as there is room for, and subtracted when all are there
  Arrays: as tc_sweep_block_kernel; rows of a node follow each other in the order, backwards in that of backward sweeps
  Writes: n columns of x, all bits before, once each, an element whole
  Shared: node rows of `room` values; backward 32 elements for each of `kept` entries
  Launch: a warp per block.  Needs: sm_70.
  Source: tc_sweep_nodes_kernel's
*/
template <typename T, tc_sweep_division division, bool backward>
static __global__ void __launch_bounds__(tc_warp_size) tc_sweep_block_nodes_kernel(tc_sweep_block_arrays<T> S)
{
  extern __shared__ double tc_sweep_block_memory[];
  const int     lane = threadIdx.x, node = S.node;
  const int32_t place = static_cast<int32_t>(blockIdx.x / S.pieces) * node, j = static_cast<int32_t>(blockIdx.x % S.pieces) * tc_warp_size + lane;
  const int32_t any = S.order[place], base = any - any % node, first = S.row_ptr[base], length = S.row_ptr[base + 1] - first, own = S.diagonal[base] - first;
  const int32_t from = backward ? own : 0, inside = backward ? 0 : own, outside = backward ? node : 0, count = backward ? length - own - node : own; // where values begin, and among them those of the own block and the others
  T *const      value = reinterpret_cast<T *>(tc_sweep_block_memory), *const kept = value + node * S.room + lane;
  const int32_t *const col = S.col + first + from + outside;
  T             sum[TC_SWEEP_LARGEST_NODE], x[TC_SWEEP_LARGEST_NODE];

#pragma unroll
  for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) sum[r] = r < node && j < S.n ? S.b[S.at(base + r, j)] : T(0);
  for (int r = 0; r < node; ++r) {
    for (int32_t t = lane; t < count + node; t += tc_warp_size) value[r * S.room + t] = S.val[first + r * length + from + t];
  }
  __syncwarp();
  if (division == TC_SWEEP_DIVIDES_FIRST) {
#pragma unroll
    for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) sum[r] = r < node ? tc_times(sum[r], tc_over(T(1), value[r * S.room + inside + r])) : sum[r];
  }
  tc_block_elements<T, tc_block_nodes_ahead> now, next;

  if (!backward) {
    for (int32_t at = 0; at < count; at += tc_warp_size) {
      const int32_t some = min(tc_warp_size, count - at), column = lane < some ? col[at + lane] : 0;

      next.look(S, column, 0, some, j);
      for (int32_t t = 0; t < some; t += tc_block_nodes_ahead) {
        now = next;
        if (t + tc_block_nodes_ahead < some) next.look(S, column, t + tc_block_nodes_ahead, some, j);
        now.await(S, column, t, j);
#pragma unroll
        for (int u = 0; u < tc_block_nodes_ahead; ++u) {
          if (t + u < some) {
#pragma unroll
            for (int r = 0; r < TC_SWEEP_LARGEST_NODE; ++r) sum[r] = r < node ? tc_plus(sum[r], -tc_times(value[r * S.room + at + t + u], now.x[u])) : sum[r];
          }
        }
      }
    }
  }
  const int32_t rounds = backward ? (count + S.kept - 1) / S.kept : 0;
  int32_t       there  = -1; // the round whose elements are kept

#pragma unroll
  for (int step = 0; step < TC_SWEEP_LARGEST_NODE; ++step) {
    const int q = backward ? TC_SWEEP_LARGEST_NODE - 1 - step : step;

    if (q >= node) continue; // all lanes
    if (backward) {
#pragma unroll
      for (int r = q + 1; r < TC_SWEEP_LARGEST_NODE; ++r) sum[q] = r < node ? tc_plus(sum[q], -tc_times(value[q * S.room + inside + r], x[r])) : sum[q];
    } else {
#pragma unroll
      for (int r = 0; r < q; ++r) sum[q] = tc_plus(sum[q], -tc_times(value[q * S.room + inside + r], x[r]));
    }
    for (int32_t round = 0; round < rounds; ++round) {
      const int32_t begin = round * S.kept, num = min(S.kept, count - begin);

      if (round != there) {
        for (int32_t at = (num - 1) / tc_warp_size * tc_warp_size; at >= 0; at -= tc_warp_size) {
          const int32_t some = min(tc_warp_size, num - at), column = lane < some ? col[begin + at + lane] : 0;
          int32_t       t    = (some - 1) / tc_block_nodes_ahead * tc_block_nodes_ahead;

          next.look(S, column, t, some, j);
          for (; t >= 0; t -= tc_block_nodes_ahead) {
            now = next;
            if (t > 0) next.look(S, column, t - tc_block_nodes_ahead, some, j);
            now.await(S, column, t, j);
#pragma unroll
            for (int u = 0; u < tc_block_nodes_ahead; ++u) {
              if (t + u < some) kept[(at + t + u) * tc_warp_size] = now.x[u];
            }
          }
        }
        there = round;
      }
      const T *const mine = value + q * S.room + outside + begin;

#pragma unroll 8
      for (int32_t t = 0; t < num; ++t) sum[q] = tc_plus(sum[q], -tc_times(mine[t], kept[t * tc_warp_size]));
    }
    x[q] = division == TC_SWEEP_DIVIDES_LAST ? tc_times(sum[q], tc_over(T(1), value[q * S.room + inside + q])) : sum[q];
    if (j < S.n) tc_hand_over(S.x + S.at(base + q, j), x[q]);
  }
}

/* Elements that a warp keeps: those of a row of a regular mesh, so that most rows are done in one round */
static int32_t kept_of(const tc_csr_local *A, const tc_sweep_block *sweep)
{
  const int64_t in_triangle = (A->nnz - A->num_rows) / 2 / A->num_rows, room = in_triangle + in_triangle / 4 + 8;
  const int32_t most = 160, longest = sweep->pattern->longest;

  return room < longest && room < most ? (int32_t)room : longest < most ? longest : most;
}

template <typename T, tc_sweep_division division>
static tc_status sweep_block(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  const tc_sweep_block_arrays<T> S      = tc_sweep_block_arrays_of<T>(A, sweep, kept_of(A, sweep));
  const int                      shared = (S.node * S.room + (sweep->backward ? S.kept * tc_warp_size : 0)) * (int)sizeof(T);

  TC_CALL(tc_sweep_block_clear<T>("tc_sweep_block", A, sweep, stream));
  return tc_launch_line("tc_sweep_block", sweep->backward ? tc_sweep_block_nodes_kernel<T, division, true> : tc_sweep_block_nodes_kernel<T, division, false>, false, (int64_t)A->num_rows / S.node * S.pieces, tc_warp_size, shared, stream, S);
}

template <typename T>
static tc_status sweep_of(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  switch (sweep->division) {
  case TC_SWEEP_DIVIDES_FIRST:
    return sweep_block<T, TC_SWEEP_DIVIDES_FIRST>(A, sweep, stream);
  case TC_SWEEP_DIVIDES_LAST:
    return sweep_block<T, TC_SWEEP_DIVIDES_LAST>(A, sweep, stream);
  default:
    return sweep_block<T, TC_SWEEP_DIVIDES_NEVER>(A, sweep, stream);
  }
}

tc_status tc_sweep_block_nodes(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  return (sweep->scalar == TC_SCALAR_F32 ? sweep_of<float> : sweep_of<double>)(A, sweep, stream);
}
