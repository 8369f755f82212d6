#include "sweep.cuh"

constexpr int tc_factor_warps = tc_sweep_threads / tc_warp_size;

template <typename T>
struct tc_factor_arrays {
  int32_t        num_rows, longest;
  const int32_t *row_ptr, *col, *order, *diagonal, *mirror, *from;
  const T       *val;
  T             *factor;
  int32_t       *trouble;
  tc_pivot_rule  rule;
  T              zero, shift;

  __device__ static T await(T *from)
  {
    T x = tc_look_at(from);

    while (tc_is_missing(x)) {
      __nanosleep(tc_nap);
      x = tc_look_at(from);
    }
    return x;
  }
  __device__ T begins_as(int32_t k) const
  {
    const int32_t at = from ? from[k] : k;

    return at >= 0 ? val[at] : T(0);
  }
  /* The pivot as it is to be; others is what else is in the row, in absolute terms */
  __device__ T check(T pivot, T others, bool tells) const
  {
    const bool relative = rule == TC_PIVOT_SHIFTS_ALL || rule == TC_PIVOT_SHIFTS_SIGNED;
    const T    least = relative ? tc_times(zero, others) : zero, size = rule == TC_PIVOT_SHIFTS_SIGNED ? pivot : fabs(pivot);

    if (!(size <= least)) return pivot;
    if (rule == TC_PIVOT_SHIFTS) return tc_plus(pivot, shift);
    if (tells) *trouble = 1;
    return pivot;
  }
};

template <typename T>
static __device__ __forceinline__ T tc_warp_total(T x)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) x = tc_plus(x, __shfl_xor_sync(tc_full_warp, x, half));
  return x;
}

/*
  tc_factor_kernel - L U, or L D L^T if it is symmetric, of A in a pattern, its own or a larger one

  Work:   a warp per row, which subtracts multiples of the rows that its columns in front of the diagonal are, one after the other, as soon as these are there. Thread blocks begin in the order of the rows, so who
          is waited for has begun, and nobody waits for later ones
  Lanes:  consecutive entries of the row that is subtracted, each of which finds its place among the columns of the warp's own
  Arrays: row_ptr [num_rows + 1]; col, mirror, from, factor [nnz], columns ascending in a row, from may be NULL; val, which `from` points into, else [nnz]; order, diagonal [num_rows]; all device
  Writes: factor, all bits before, once each, an element whole; trouble
  Shared: per warp S.longest numbers and as many columns: the row under way
  Launch: tc_sweep_threads per block.  Needs: sm_70.
  Source: the order of operations of L U is MatLUFactorNumeric_SeqAIJ()'s of PETSc; waiting as Liu, Li, Hogg, Duff, Vinter, A synchronization-free algorithm for parallel sparse triangular solves (2016)
*/
template <typename T, bool symmetric>
static __global__ void __launch_bounds__(tc_sweep_threads) tc_factor_kernel(tc_factor_arrays<T> S)
{
  extern __shared__ double tc_factor_memory[];
  const int     warp = threadIdx.x / tc_warp_size, lane = threadIdx.x % tc_warp_size;
  const int64_t place = blockIdx.x * (int64_t)tc_factor_warps + warp;
  T *const       number = reinterpret_cast<T *>(tc_factor_memory) + warp * S.longest;
  int32_t *const column = reinterpret_cast<int32_t *>(reinterpret_cast<T *>(tc_factor_memory) + tc_factor_warps * S.longest) + warp * S.longest;

  if (place >= S.num_rows) return;
  const int32_t row = S.order[place], first = S.row_ptr[row], own = S.diagonal[row] - first, length = (symmetric ? own + 1 : S.row_ptr[row + 1] - first);
  T             others = T(0);

  for (int32_t t = lane; t < length; t += tc_warp_size) {
    number[t] = S.begins_as(symmetric && t < own ? S.mirror[first + t] : first + t);
    column[t] = S.col[first + t];
  }
  __syncwarp();
  for (int32_t t = 0; t < own; ++t) {
    const int32_t r = column[t], begin = S.diagonal[r], stop = S.row_ptr[r + 1];
    const T       value = number[t];
    T             multiple = value;

    if (value != T(0)) {
      bool has_pivot = false;

      for (int32_t k = begin + 1 + lane; k - lane < stop || !has_pivot; k += tc_warp_size) {
        const int32_t j = k < stop ? S.col[k] : INT32_MAX, at = j <= column[length - 1] && !(symmetric && j == row) ? tc_find_column(column, t + 1, length, j) : -1;

        if (!has_pivot) multiple = tc_times(value, tc_over(T(1), S.await(S.factor + begin)));
        has_pivot = true;
        if (at >= 0) number[at] = tc_plus(number[at], -tc_times(symmetric ? value : multiple, S.await(S.factor + k)));
      }
      __syncwarp();
      if (lane == 0) number[t] = multiple;
      if (symmetric && lane == 0) number[own] = tc_plus(number[own], -tc_times(value, multiple));
    }
    if (symmetric) {
      others = tc_plus(others, fabs(value));
      if (lane == 0) {
        tc_hand_over(S.factor + first + t, multiple);
        tc_hand_over(S.factor + S.mirror[first + t], multiple);
      }
    }
    __syncwarp();
  }
  if (!symmetric) {
    for (int32_t t = lane; t < length; t += tc_warp_size) others = t == own ? others : tc_plus(others, fabs(number[t]));
    others = tc_warp_total(others);
  }
  const T pivot = S.check(number[own], others, lane == 0);

  if (symmetric) {
    if (lane == 0) tc_hand_over(S.factor + first + own, pivot);
  } else {
    for (int32_t t = lane; t < length; t += tc_warp_size) tc_hand_over(S.factor + first + t, t == own ? pivot : number[t]);
  }
}

template <typename T>
static tc_status factor_of(const tc_csr_local *A, const tc_factor *F, cudaStream_t stream)
{
  const tc_sweep_pattern   *P = F->pattern;
  const tc_factor_arrays<T> S = {A->num_rows, P->longest, A->row_ptr, A->col, P->order[0], P->diagonal, F->mirror, F->from, static_cast<const T *>(F->val), static_cast<T *>(F->factor), F->trouble, F->rule, static_cast<T>(F->zero), static_cast<T>(F->shift)};
  const int64_t             blocks = ((int64_t)A->num_rows + tc_factor_warps - 1) / tc_factor_warps;
  const int                 shared = tc_factor_warps * P->longest * (int)(sizeof(T) + sizeof(int32_t));

  TC_CHECK(P->longest <= TC_FACTOR_LONGEST_ROW, TC_ERR_LIMIT, "tc_factor: a row has %d entries, more than %d", P->longest, TC_FACTOR_LONGEST_ROW);
  TC_CALL(tc_sweep_clear("tc_factor", F->factor, (size_t)A->nnz * sizeof(T), stream));
  return tc_launch_line("tc_factor", F->mirror ? tc_factor_kernel<T, true> : tc_factor_kernel<T, false>, false, blocks, tc_sweep_threads, shared, stream, S);
}

extern "C" tc_status tc_factor_cuda(const tc_csr_local *A, const tc_factor *F, tc_stream stream)
{
  return (F->scalar == TC_SCALAR_F32 ? factor_of<float> : factor_of<double>)(A, F, static_cast<cudaStream_t>(stream));
}
