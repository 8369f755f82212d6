/*
  What the kernels over a tc_bittcf share: reading windows, multiplying them, writing what comes out, adding the segments of long rows up. tc_bittcf.h defines the bytes.
*/
#pragma once
#include "long_rows_spmm.cuh"
#include "tc_bittcf.h"
#include "tc_mma.cuh"

static_assert(sizeof(tc_bittcf_window) == sizeof(int4), "windows are read in one piece");
static_assert(TC_BITTCF_ROWS * TC_BITTCF_GROUP == tc_warp_size, "bit l of a mask is the element of B's fragment that lane l holds");

/* A tc_bittcf_window in as few registers as it has words */
struct tc_window {
  uint32_t val, tiles;
  int32_t  base;
  uint32_t size; // num_groups, wide

  __device__ __forceinline__ int  num_groups() const { return size & 0xffff; }
  __device__ __forceinline__ bool wide() const { return size >> 16 & 0xff; }
  __device__ __forceinline__ int32_t column_base() const { return wide() ? 0 : base; }
};

__device__ __forceinline__ tc_window tc_load_window(const tc_bittcf &T, int32_t w)
{
  const int4 raw = __ldg(reinterpret_cast<const int4 *>(T.window) + w);

  return {static_cast<uint32_t>(raw.x), static_cast<uint32_t>(raw.y), raw.z, static_cast<uint32_t>(raw.w)};
}

__device__ __forceinline__ const uint32_t *tc_tiles_at(const tc_bittcf &T, uint32_t unit)
{
  return reinterpret_cast<const uint32_t *>(static_cast<const char *>(T.tiles) + 16 * (size_t)unit);
}

/* What a warp will read of window w besides its columns, into the L2 cache: values of `bytes` bytes, masks, rows */
template <int bytes>
__device__ __forceinline__ void tc_prefetch_window(const tc_bittcf &T, int32_t w, const tc_window &W, int lane)
{
  constexpr int  line = 128;
  const uint32_t end  = w + 1 < T.num_windows ? T.window[w + 1].val : static_cast<uint32_t>(T.num_nonzeros);

  for (uint32_t e = W.val + line / bytes * lane; e < end; e += line / bytes * tc_warp_size) tc_prefetch(static_cast<const char *>(T.val) + static_cast<size_t>(bytes) * e);
  if (line / 16 * lane < static_cast<int>(tc_bittcf_units(W.num_groups(), W.wide()))) tc_prefetch(tc_tiles_at(T, W.tiles + line / 16 * lane));
  if (lane == 0) tc_prefetch(T.row_id + TC_BITTCF_ROWS * (int64_t)w);
}

/* Entry `at` of the columns of a window, which begin behind its masks; base() of the window is to be added */
__device__ __forceinline__ int32_t tc_column_entry(const tc_window &W, const uint32_t *masks, int at)
{
  const uint32_t *entries = masks + W.num_groups();

  return W.wide() ? __ldg(reinterpret_cast<const int32_t *>(entries) + at) : __ldg(reinterpret_cast<const uint16_t *>(entries) + at);
}

constexpr int tc_batch = 8; // groups

/* The masks and columns of a batch of groups, spread over the lanes: two loads of neighbouring words, and shuffles later. What is beyond the window is 0. */
struct tc_group_batch {
  uint32_t mask;  // lane i: of group i
  int32_t  entry; // lane 4 * i + k: of column k of group i; nothing is done with it before it is needed

  __device__ __forceinline__ const uint32_t *load_masks(const tc_bittcf &T, const tc_window &W, int first, int lane)
  {
    const uint32_t *masks = tc_tiles_at(T, W.tiles);

    mask = lane < tc_batch && first + lane < W.num_groups() ? __ldg(masks + first + lane) : 0;
    return masks;
  }
  __device__ __forceinline__ void load(const tc_bittcf &T, tc_window W, int first, int lane)
  {
    tc_keep(W.tiles); // what follows from these two is made anew for each batch: that costs less than the registers it would stay in
    tc_keep(W.size);
    const uint32_t *masks = load_masks(T, W, first, lane);

    entry = TC_BITTCF_GROUP * first + lane < TC_BITTCF_GROUP * W.num_groups() ? tc_column_entry(W, masks, TC_BITTCF_GROUP * first + lane) : 0;
  }
  __device__ __forceinline__ uint32_t mask_of(int group) const { return __shfl_sync(tc_full_warp, mask, group % tc_batch); }
  __device__ __forceinline__ int32_t  entry_of(int group, int k) const { return __shfl_sync(tc_full_warp, entry, TC_BITTCF_GROUP * (group % tc_batch) + k); }
};

/* Columns of B and C go through the multiplication 8 * vectors at a time, `vectors` of them in a lane; which, is the kernel's business */
template <int vectors>
struct tc_dense_fragment {
  double x[vectors];
};

template <int vectors>
using tc_dense_sums = std::conditional_t<vectors == 2, tc_mma_tall_accumulator, tc_mma_accumulator>;

__device__ __forceinline__ void tc_multiply(tc_mma_accumulator &sums, const tc_dense_fragment<1> &b, double value)
{
  tc_mma_m8n8k4(sums, b.x[0], value);
}

__device__ __forceinline__ void tc_multiply(tc_mma_tall_accumulator &sums, const tc_dense_fragment<2> &b, double value)
{
  tc_mma_m16n8k4(sums, b.x[0], b.x[1], value);
}

/* What lane l needs of a mask. The compiler would rather compute these anew than keep them. */
struct tc_mask_lane {
  uint32_t bit, above; // 1 << l; 32 - l

  __device__ __forceinline__ explicit tc_mask_lane(int lane) : bit(1u << lane), above(tc_warp_size - lane)
  {
    tc_keep(bit);
    tc_keep(above);
  }
  __device__ __forceinline__ bool     is_set(uint32_t mask) const { return mask & bit; }
  __device__ __forceinline__ uint32_t before(uint32_t mask) const { return __popc(__funnelshift_lc(0, mask, above)); } // elements in lower lanes
};

/* What `groups` groups need of A and B: it is loaded while as many others are multiplied, so there are two, which take turns and are never copied */
template <int groups, int sets, int vectors>
struct tc_step {
  double                     value[groups]; // the lane's elements of the tiles
  tc_dense_fragment<vectors> b[groups][sets];

  /*
    Groups i, i + 1, .. of a batch, their values from number `next` on, which is moved behind them. Groups beyond the window have no elements; the window's first column, or the
    matrix's, is read for them, since loads without conditions leave together.
  */
  template <typename Dense>
  __device__ __forceinline__ void load(const tc_group_batch &batch, int i, int32_t base, const double *val, uint32_t &next, const Dense &dense, int k, const tc_mask_lane &at)
  {
#pragma unroll
    for (int q = 0; q < groups; ++q) {
      const int32_t  column = base + batch.entry_of(i + q, k);
      const uint32_t mask   = batch.mask_of(i + q);

#pragma unroll
      for (int s = 0; s < sets; ++s) dense.fetch(b[q][s], column, s);
      value[q] = at.is_set(mask) ? __ldcs(val + (next + at.before(mask))) : 0.0;
      next += __popc(mask);
    }
  }

  /* `num` of them are in the window, or more */
  __device__ __forceinline__ void multiply(tc_dense_sums<vectors> (&sums)[sets], int num) const
  {
#pragma unroll
    for (int q = 0; q < groups; ++q) {
      if (q > 0 && q >= num) return;
#pragma unroll
      for (int s = 0; s < sets; ++s) tc_multiply(sums[s], b[q][s], value[q]);
    }
  }
};

/*
  Adds the product of a window and `sets` times 8 * vectors columns of B to sums. B is the 8- or 16-row operand, the tile the 8-column one: the lane's sums are of the
  rows 2 * k and 2 * k + 1. dense.fetch(b, column, set) gets the lane's part of the rows of B that a group needs. Masks and columns are loaded a batch ahead, values
  and rows of B a step of so many groups ahead.
*/
template <int groups, int sets, int vectors, typename Dense>
__device__ __forceinline__ void tc_window_product(const tc_bittcf &T, const tc_window &W, const Dense &dense, int lane, tc_dense_sums<vectors> (&sums)[sets])
{
  const int                      num = tc_uniform(W.num_groups()), k = tc_mma_lane(lane).k;
  const int32_t                  base = W.column_base();
  const double                  *val = static_cast<const double *>(T.val);
  const tc_mask_lane             at(lane);
  uint32_t                       next = W.val;
  tc_group_batch                 batch, next_batch;
  tc_step<groups, sets, vectors> even, odd;

  if (num == 0) return;
  batch.load(T, W, 0, lane);
  next_batch.load(T, W, tc_batch, lane);
  even.load(batch, 0, base, val, next, dense, k, at);
#pragma unroll 1
  for (int first = 0;; first += tc_batch) {
    const int left = num - first; // of this batch and what follows

#pragma unroll
    for (int i = 0; i < tc_batch; i += 2 * groups) {
      if (i + groups < left) odd.load(batch, i + groups, base, val, next, dense, k, at);
      even.multiply(sums, left - i);
      if (i + groups >= left) return;
      if (i + 2 * groups == tc_batch) {
        batch = next_batch;
        next_batch.load(T, W, first + 2 * tc_batch, lane);
      }
      if (i + 2 * groups < left) even.load(batch, (i + 2 * groups) % tc_batch, base, val, next, dense, k, at);
      odd.multiply(sums, left - i - groups);
      if (i + 2 * groups >= left) return;
    }
  }
}

/* Where sums go: C, or the sums of segments, column-major too */
struct tc_dense_output {
  double *c, *partial;
  int64_t ldc, slots;
  int32_t n;
  bool    add, pairs; // pairs: rows 2 i and 2 i + 1 of any column are 16 aligned bytes
};

static inline tc_dense_output tc_output_of(const tc_bittcf *T, const tc_spmm_args *args, double *partial)
{
  return {args->c, partial, args->ldc, tc_bittcf_num_slots(T), args->n, args->add != 0, args->ldc % 2 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0};
}

__device__ __forceinline__ void tc_put_element(const tc_dense_output &out, int32_t id, int32_t column, double sum)
{
  if (column >= out.n) return;
  if (id >= 0) tc_finish_element(sum, out.c + id + column * out.ldc, out.add);
  else if (id != TC_BITTCF_NO_ROW) out.partial[~id + column * out.slots] = sum;
}

/* The rows of C that a lane's sums of a window are of */
__device__ __forceinline__ int2 tc_rows_of_sums(const tc_bittcf &T, int32_t w, int lane)
{
  return __ldg(reinterpret_cast<const int2 *>(T.row_id + TC_BITTCF_ROWS * (int64_t)w) + tc_mma_lane(lane).k);
}

/* Are they 16 aligned bytes of any column of C? */
__device__ __forceinline__ bool tc_is_pair(const tc_dense_output &out, int2 rows)
{
  return out.pairs && !out.add && rows.x >= 0 && rows.x % 2 == 0 && rows.y == rows.x + 1;
}

__device__ __forceinline__ void tc_put_pair(double *to, double first, double second)
{
  __stcs(reinterpret_cast<double2 *>(to), make_double2(__dadd_rn(first, 0.0), __dadd_rn(second, 0.0)));
}

/* The sums of a window; element v of the lane's fragments of set s is column first + s * set_step + v * step */
template <int sets, int vectors>
__device__ __forceinline__ void tc_put_window(int2 rows, int32_t first, int step, int set_step, const tc_dense_output &out, const tc_dense_sums<vectors> (&sums)[sets])
{
  const bool pair = tc_is_pair(out, rows); // most of them

#pragma unroll
  for (int s = 0; s < sets; ++s) {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const int32_t column = first + s * set_step + v * step;

      if (pair) {
        if (column < out.n) tc_put_pair(out.c + rows.x + column * out.ldc, sums[s].c[2 * v], sums[s].c[2 * v + 1]);
      } else {
        tc_put_element(out, rows.x, column, sums[s].c[2 * v]);
        tc_put_element(out, rows.y, column, sums[s].c[2 * v + 1]);
      }
    }
  }
}

__device__ __forceinline__ void tc_put_row(const tc_dense_output &out, int32_t row, int32_t column, double sum)
{
  tc_finish_element(sum, out.c + row + column * out.ldc, out.add);
}

/*
  tc_spmm_bittcf_long_kernel - C of long rows: the sums of their segments, added in ascending order

  Work:   an element of C per thread
  Lanes:  consecutive long rows, whose segments' sums are neighbours
  Arrays: the view; partial column-major [slots, n]; C column-major; all device
  Writes: the long rows of C, through tc_put_row() of the output
  Launch: 128 threads per block, no shared memory.  Needs: sm_70.  Source: tc_spmm.h, the order of the additions
*/
template <typename Output>
static __global__ void __launch_bounds__(tc_add_threads, 8) tc_spmm_bittcf_long_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ Output out)
{
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int32_t r = (int32_t)(i % T.num_long), column = (int32_t)(i / T.num_long);

  tc_wait_for_kernel_before();
  if (column >= out.n) return;
  tc_put_row(out, T.long_row[r], column, tc_sum_of_segments(out.partial + tc_bittcf_slot(&T, r) + column * out.slots, T.long_segments[r], tc_bittcf_long_rows(&T)));
}

template <typename Output>
static inline tc_status tc_add_long_rows(const char *name, const tc_bittcf *T, const Output &out, cudaStream_t stream)
{
  return tc_launch_early(name, tc_spmm_bittcf_long_kernel<Output>, ((int64_t)T->num_long * out.n + tc_add_threads - 1) / tc_add_threads, tc_add_threads, 0, stream, *T, out);
}
