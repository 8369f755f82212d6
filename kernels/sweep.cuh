/*
  What kernels of sweeps have in common, see tc_sweep.h.
*/
#pragma once
#include "tc_backend.h"
#include "tc_waiting.cuh"

constexpr int      tc_sweep_threads = 128, tc_kept_away = 48 * 1024 /* bytes of shared memory, so that four blocks share a multiprocessor */;
constexpr unsigned tc_nap = 20; // nanoseconds

/* Do rows read the new elements of one triangle alone, which has ones on its diagonal? */
static __device__ __forceinline__ constexpr bool tc_is_unit(tc_sweep_kind kind)
{
  return kind == TC_SWEEP_UNIT || kind == TC_SWEEP_UNIT_OVER;
}

template <typename T>
struct tc_sweep_arrays {
  int32_t        num_rows;
  const int32_t *row_ptr, *col, *order, *diagonal, *place;
  const T       *val, *b, *before;
  T             *x, *scratch, *saved;
  double         omega;
  T              shift, scale;
  bool           plain, in_double; // e = 1 / d
  int            lanes;            // of a row, a divisor of a warp's
  int32_t        node;

  __device__ T inverse(T d) const { return plain ? tc_over(T(1), d) : tc_over(static_cast<T>(omega), tc_plus(shift, d)); }
  /* (1 - omega) x + step */
  __device__ T relax(T old, T step) const
  {
    if (in_double) return static_cast<T>(tc_plus(tc_times(1.0 - omega, static_cast<double>(old)), static_cast<double>(step)));
    return tc_plus(tc_times(T(1) - static_cast<T>(omega), old), step);
  }
};

/* Where in ascending columns, of [first, last), is that one? -1: nowhere */
static __device__ __forceinline__ int32_t tc_find_column(const int32_t *col, int32_t first, int32_t last, int32_t wanted)
{
  while (first < last) {
    const int32_t middle = first + (last - first) / 2, there = col[middle];

    if (there == wanted) return middle;
    if (there < wanted) first = middle + 1;
    else last = middle;
  }
  return -1;
}

/* A launch's arrays; `before` as the kernel may read it */
template <typename T>
static tc_sweep_arrays<T> tc_sweep_arrays_of(const tc_csr_local *A, const tc_sweep *sweep, const void *before, int lanes)
{
  const tc_sweep_pattern *P = sweep->pattern;

  return {A->num_rows, A->row_ptr, A->col, P->order[sweep->backward ? 1 : 0], P->diagonal, P->place, static_cast<const T *>(sweep->val), static_cast<const T *>(sweep->b), static_cast<const T *>(before), static_cast<T *>(sweep->x),
          static_cast<T *>(sweep->scratch), static_cast<T *>(sweep->saved), sweep->omega, static_cast<T>(sweep->shift), static_cast<T>(2.0 / sweep->omega - 1.0), sweep->omega == 1.0 && sweep->shift <= 0.0, sweep->in_double != 0, lanes, P->node};
}

/* Nothing has been computed */
static inline tc_status tc_sweep_clear(const char *name, void *elements, size_t bytes, cudaStream_t stream)
{
  TC_CHECK(cudaMemsetAsync(elements, 0xff, bytes, stream) == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "%s: %zu bytes could not be set", name, bytes);
  return TC_OK;
}

/* One sweep over the nodes of a pattern that has such, of any kind but TC_SWEEP_AGAIN */
tc_status tc_sweep_nodes(const tc_csr_local *A, const tc_sweep *sweep, cudaStream_t stream);
