/*
  What kernels of sweeps with blocks of vectors have in common, see tc_sweep.h.
*/
#pragma once
#include "sweep.cuh"

template <typename T>
struct tc_sweep_block_arrays {
  int32_t        num_rows, n, width, pieces; // pieces: of a row of the block, as many columns as a warp has lanes
  int32_t        node, room, kept;           // room: entries of the longest row; kept: elements that a warp keeps
  const int32_t *row_ptr, *col, *order, *diagonal;
  const T       *val, *b;
  T             *x;

  __device__ int64_t at(int32_t row, int32_t j) const { return (int64_t)row * width + j; }
};

/* Elements of a lane's column in some rows, where they are there */
template <typename T, int num>
struct tc_block_elements {
  T x[num];

  /* `column`: of the warp's entries, a lane each; those from `first` on, of `count`, if the lane has a column */
  __device__ void look(const tc_sweep_block_arrays<T> &S, int32_t column, int first, int32_t count, int32_t j)
  {
#pragma unroll
    for (int u = 0; u < num; ++u) {
      const int32_t row = __shfl_sync(tc_full_warp, column, first + u);

      x[u] = first + u < count && j < S.n ? tc_look_at(S.x + S.at(row, j)) : T(0);
    }
  }
  /* Until all lanes have all of them */
  __device__ void await(const tc_sweep_block_arrays<T> &S, int32_t column, int first, int32_t j)
  {
    while (true) {
      bool miss = false;

#pragma unroll
      for (int u = 0; u < num; ++u) miss = miss || tc_is_missing(x[u]);
      if (!__any_sync(tc_full_warp, miss)) return;
      __nanosleep(tc_nap);
#pragma unroll
      for (int u = 0; u < num; ++u) {
        const int32_t row = __shfl_sync(tc_full_warp, column, first + u);

        if (tc_is_missing(x[u])) x[u] = tc_look_at(S.x + S.at(row, j));
      }
    }
  }
};

/* One sweep with the rows of a node, or a row with many entries, at a time */
tc_status tc_sweep_block_nodes(const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream);

template <typename T>
static tc_sweep_block_arrays<T> tc_sweep_block_arrays_of(const tc_csr_local *A, const tc_sweep_block *sweep, int32_t kept)
{
  const tc_sweep_pattern *P = sweep->pattern;

  return {A->num_rows, sweep->n, sweep->width, (sweep->n + tc_warp_size - 1) / tc_warp_size, P->node, P->longest, kept, A->row_ptr, A->col, P->order[sweep->backward ? 1 : 0], P->diagonal, static_cast<const T *>(sweep->val), static_cast<const T *>(sweep->b), static_cast<T *>(sweep->x)};
}

template <typename T>
static tc_status tc_sweep_block_clear(const char *name, const tc_csr_local *A, const tc_sweep_block *sweep, cudaStream_t stream)
{
  return tc_sweep_clear(name, sweep->x, (size_t)A->num_rows * (size_t)sweep->width * sizeof(T), stream);
}
