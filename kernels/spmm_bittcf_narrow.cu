#include "bittcf.cuh"
#include "narrow_rows.cuh"

/*
  tc_spmm_bittcf_narrow_kernel - C = A B or C += A B over the windows of a tc_bittcf in a narrow precision. Structural zeros of a tile are multiplied: what is not finite
  in B may reach the other rows of a window that refers to it.

  Work:   a warp per window and 8 * elements * loads columns of B; the warps of a block own neighbouring windows, neighbouring blocks the same windows and other columns
  Lanes:  a row and a column of each tile; `elements` neighbouring columns of a row of B at a time, eight lanes side by side: which columns are the rows of which
          mma.m16n8k8 or m16n8k16 is free, and chosen so that nothing has to change lanes
  Arrays: the view; the copy of B, or B, row-major; C; partial column-major; all device
  Writes: C once for each row that is not long, partial once for each segment
  Launch: 8 warps per block, no shared memory.  Needs: sm_80.  Source: Zhao et al., "Acc-SpMM", PPoPP'25, sections 3 and 4 (BitTCF, swapped operands, prefetching);
          Fan et al., "DTC-SpMM", ASPLOS'24 (which column is which)
*/
/* Warps of a block, and blocks that an SM holds: what registers allow, 80 or 128 to a thread */
constexpr int tc_narrow_warps = 8;
template <int columns_of_lane>
constexpr int tc_narrow_blocks = columns_of_lane <= 4 ? 3 : 2;

/* What a kernel of that precision multiplies at a time: a group for each half of k of m16n8k8, two for each of m16n8k16 */
template <tc_precision precision>
struct tc_narrow_kind {
  static constexpr int bytes  = precision >= TC_PRECISION_BF16 ? 2 : 4;
  static constexpr int groups = 8 / bytes;
};

/* Column-major C in double precision, from columns of B with scales */
struct tc_scaled_output {
  static constexpr bool in_place = false;
  tc_dense_output       to;
  const int32_t        *top;
};

/* Row-major C in single precision, from B in place */
struct tc_row_major_output {
  static constexpr bool in_place = true;
  float                *c;
  double               *partial;
  int64_t               ldc, slots;
  int32_t               n;
};

__device__ __forceinline__ void tc_put_row(const tc_row_major_output &out, int32_t row, int32_t column, double sum)
{
  out.c[row * out.ldc + column] = static_cast<float>(sum);
}

/* A float as two numbers in TF32; their sum is off by 2^-22 of it at most */
struct tc_tf32_parts {
  uint32_t large, small;

  __device__ __forceinline__ explicit tc_tf32_parts(uint32_t x)
  {
    large = tc_round_to_tf32(__uint_as_float(x));
    small = tc_round_to_tf32(__fsub_rn(__uint_as_float(x), __uint_as_float(large)));
  }
};

/* What a few groups need of A and B: it is loaded while others are multiplied, so there are two, which take turns and are never copied */
template <tc_precision precision, int elements, int loads, bool in_place>
struct tc_narrow_step {
  static constexpr int groups = tc_narrow_kind<precision>::groups, words = elements * tc_narrow_kind<precision>::bytes / 4;
  uint32_t             value[groups], b[groups][loads][words];

  static __device__ __forceinline__ void load_words(uint32_t (&to)[words], const char *from)
  {
    if constexpr (words == 4) {
      const uint4 four = __ldg(reinterpret_cast<const uint4 *>(from));

      to[0] = four.x;
      to[1] = four.y;
      to[2] = four.z;
      to[3] = four.w;
    } else if constexpr (words == 2) {
      const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from));

      to[0] = two.x;
      to[1] = two.y;
    } else to[0] = __ldg(reinterpret_cast<const uint32_t *>(from));
  }

  /* Groups i, ... of a batch, their values from number `next` on, which is moved behind them; `rows` is where the lane's columns of row 0 of B are */
  __device__ __forceinline__ void load(const tc_group_batch &batch, int i, int32_t base, const void *val, uint32_t &next, const char *rows, uint32_t row_bytes, int k, const tc_mask_lane &at)
  {
#pragma unroll
    for (int q = 0; q < groups; ++q) {
      const char *row = rows + static_cast<uint64_t>(static_cast<uint32_t>(base + batch.entry_of(i + q, k))) * row_bytes;

#pragma unroll
      for (int l = 0; l < loads; ++l) load_words(b[q][l], row + 32 * words * l);
    }
#pragma unroll
    for (int q = 0; q < groups; ++q) {
      const uint32_t mask = batch.mask_of(i + q), place = next + at.before(mask);

      value[q] = 0;
      if (at.is_set(mask)) {
        if constexpr (groups == 4) value[q] = __ldcs(static_cast<const uint16_t *>(val) + place);
        else value[q] = __ldcs(static_cast<const uint32_t *>(val) + place);
      }
      next += __popc(mask);
    }
  }

  /* Sum number elements / 2 * l + i: columns 2 * i and 2 * i + 1 of load l are its dense rows `row` and row + 8 */
  __device__ __forceinline__ void multiply(tc_mma_single_accumulator (&sums)[loads * elements / 2]) const
  {
    if constexpr (groups == 4) {
      const uint32_t low = value[0] | value[1] << 16, high = value[2] | value[3] << 16;

#pragma unroll
      for (int l = 0; l < loads; ++l) {
#pragma unroll
        for (int i = 0; i < words; ++i) {
          const uint32_t even_low = __byte_perm(b[0][l][i], b[1][l][i], 0x5410), odd_low = __byte_perm(b[0][l][i], b[1][l][i], 0x7632);
          const uint32_t even_high = __byte_perm(b[2][l][i], b[3][l][i], 0x5410), odd_high = __byte_perm(b[2][l][i], b[3][l][i], 0x7632);

          tc_mma_m16n8k16<precision>(sums[words * l + i], even_low, odd_low, even_high, odd_high, low, high);
        }
      }
    } else if constexpr (precision == TC_PRECISION_F32) {
      const tc_tf32_parts low(value[0]), high(value[1]);

#pragma unroll
      for (int l = 0; l < loads; ++l) {
#pragma unroll
        for (int i = 0; i < words; i += 2) {
          const tc_tf32_parts     a0(b[0][l][i]), a1(b[0][l][i + 1]), a2(b[1][l][i]), a3(b[1][l][i + 1]);
          tc_mma_single_accumulator &sum = sums[(words * l + i) / 2];

          tc_mma_m16n8k8_tf32(sum, a0.small, a1.small, a2.small, a3.small, low.large, high.large);
          tc_mma_m16n8k8_tf32(sum, a0.large, a1.large, a2.large, a3.large, low.small, high.small);
          tc_mma_m16n8k8_tf32(sum, a0.large, a1.large, a2.large, a3.large, low.large, high.large);
        }
      }
    } else {
      const auto rounded = [](uint32_t x) { return in_place ? tc_round_to_tf32(__uint_as_float(x)) : x; };

#pragma unroll
      for (int l = 0; l < loads; ++l) {
#pragma unroll
        for (int i = 0; i < words; i += 2) tc_mma_m16n8k8_tf32(sums[(words * l + i) / 2], rounded(b[0][l][i]), rounded(b[0][l][i + 1]), rounded(b[1][l][i]), rounded(b[1][l][i + 1]), value[0], value[1]);
      }
    }
  }
};

/* A batch of groups; what is beyond the window has no entries, and the last column, so that nothing else is read */
__device__ __forceinline__ void tc_load_batch(tc_group_batch &batch, const tc_bittcf &T, const tc_window &W, int first, int lane)
{
  const uint32_t *masks = batch.load_masks(T, W, first, lane);

  batch.entry = tc_column_entry(W, masks, min(TC_BITTCF_GROUP * first + lane, TC_BITTCF_GROUP * W.num_groups() - 1));
}

/* Adds the product of a window and the lane's columns of B to sums, of the window's rows 2 * k and 2 * k + 1. Masks and columns are loaded a batch ahead, values and rows of B a step ahead. */
template <tc_precision precision, int elements, int loads, bool in_place>
__device__ __forceinline__ void tc_narrow_window_product(const tc_bittcf &T, const tc_window &W, const char *rows, uint32_t row_bytes, int lane, tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
  constexpr int                                          groups = tc_narrow_kind<precision>::groups;
  const int                                              num = W.num_groups(), k = tc_mma_lane(lane).k;
  const int32_t                                          base = W.column_base();
  const tc_mask_lane                                     at(lane);
  uint32_t                                               next = W.val;
  tc_group_batch                                         batch, next_batch;
  tc_narrow_step<precision, elements, loads, in_place> even, odd;

  if (num == 0) return;
  tc_load_batch(batch, T, W, 0, lane);
  tc_load_batch(next_batch, T, W, tc_batch, lane);
  even.load(batch, 0, base, T.val, next, rows, row_bytes, k, at);
#pragma unroll 1
  for (int first = 0;; first += tc_batch) {
    const int left = num - first; // of this batch and what follows

#pragma unroll
    for (int i = 0; i < tc_batch; i += 2 * groups) {
      if (i + groups < left) odd.load(batch, i + groups, base, T.val, next, rows, row_bytes, k, at);
      even.multiply(sums);
      if (i + groups >= left) return;
      if (i + 2 * groups == tc_batch) {
        batch = next_batch;
        tc_load_batch(next_batch, T, W, first + 2 * tc_batch, lane);
      }
      if (i + 2 * groups < left) even.load(batch, (i + 2 * groups) % tc_batch, base, T.val, next, rows, row_bytes, k, at);
      odd.multiply(sums);
      if (i + 2 * groups >= left) return;
    }
  }
}

/* The sums of a window; those of load l are of columns first + 8 * elements * l on */
template <tc_precision precision, int elements, int loads>
__device__ __forceinline__ void tc_put_narrow_window(int2 rows, int2 scales, int32_t first, const tc_scaled_output &out, const tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
  const bool pair = tc_is_pair(out.to, rows);

#pragma unroll
  for (int l = 0; l < loads; ++l) {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int32_t column = first + 8 * elements * l + i;
      const int     scale  = tc_column_scale(precision, __ldg(out.top + column));
      const auto   &sum    = sums[(elements * l + i) / 2];
      const double  upper = tc_unscale(sum.c[2 * (i % 2)], scales.x + scale), lower = tc_unscale(sum.c[2 * (i % 2) + 1], scales.y + scale);

      if (pair) {
        if (column < out.to.n) tc_put_pair(out.to.c + rows.x + column * out.to.ldc, upper, lower);
      } else {
        tc_put_element(out.to, rows.x, column, upper);
        tc_put_element(out.to, rows.y, column, lower);
      }
    }
  }
}

template <tc_precision precision, int elements, int loads>
__device__ __forceinline__ void tc_put_narrow_window(int2 rows, int2 scales, int32_t first, const tc_row_major_output &out, const tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
  static_assert(elements == 4, "16 bytes of a row of C");
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int32_t id = r ? rows.y : rows.x;
    const int     scale = r ? scales.y : scales.x;

#pragma unroll
    for (int l = 0; l < loads; ++l) {
      const int32_t column = first + 8 * elements * l;
      const double  value[elements] = {tc_unscale(sums[2 * l].c[r], scale), tc_unscale(sums[2 * l].c[2 + r], scale), tc_unscale(sums[2 * l + 1].c[r], scale), tc_unscale(sums[2 * l + 1].c[2 + r], scale)};

      if (id >= 0) __stcs(reinterpret_cast<float4 *>(out.c + id * out.ldc + column), make_float4(static_cast<float>(value[0]), static_cast<float>(value[1]), static_cast<float>(value[2]), static_cast<float>(value[3])));
#pragma unroll
      for (int i = 0; i < elements; ++i) {
        if (id < 0 && id != TC_BITTCF_NO_ROW) out.partial[~id + (column + i) * out.slots] = value[i];
      }
    }
  }
}

template <tc_precision precision, int elements, int loads, typename Output>
static __global__ void __launch_bounds__(tc_narrow_warps *tc_warp_size, tc_narrow_blocks<elements * loads>) tc_spmm_bittcf_narrow_kernel(const __grid_constant__ tc_bittcf T, const char *__restrict__ rows, uint32_t row_bytes, int32_t chunks, const __grid_constant__ Output out)
{
  constexpr int             words = elements * tc_narrow_kind<precision>::bytes / 4;
  const int                 lane = threadIdx.x % tc_warp_size, g = tc_mma_lane(lane).row;
  const int32_t             w = blockIdx.x / chunks * tc_narrow_warps + threadIdx.x / tc_warp_size, chunk = blockIdx.x % chunks;
  tc_mma_single_accumulator sums[loads * elements / 2] = {};

  if (w >= T.num_windows) return;
  tc_narrow_window_product<precision, elements, loads, Output::in_place>(T, tc_load_window(T, w), rows + 32 * words * loads * chunk + 4 * words * g, row_bytes, lane, sums);
  const short2 scales = __ldg(reinterpret_cast<const short2 *>(T.exponent + TC_BITTCF_ROWS * (int64_t)w) + tc_mma_lane(lane).k);

  tc_put_narrow_window<precision, elements, loads>(tc_rows_of_sums(T, w, lane), make_int2(scales.x, scales.y), 8 * elements * loads * chunk + elements * g, out, sums);
}

/* Fewer warps than this leave a device idle (unmeasured: 16 for each of 128 multiprocessors); then they take fewer columns each */
constexpr int64_t tc_few_narrow_warps = 2048;

/* The pieces of the scratch: the copy of B, the tops of its columns, the sums of segments */
struct tc_narrow_scratch {
  size_t top, partial, bytes; // where they begin

  tc_narrow_scratch(const tc_bittcf *T, int32_t n)
  {
    const size_t width = tc_narrow_width(n);

    top     = tc_value_bytes(T->precision) * T->num_cols * width;
    partial = top + sizeof(int32_t) * width;
    bytes   = partial + sizeof(double) * tc_bittcf_num_slots(T) * n;
  }
};

extern "C" size_t tc_spmm_bittcf_narrow_scratch(const void *view, int32_t n)
{
  return tc_narrow_scratch(static_cast<const tc_bittcf *>(view), n).bytes;
}

template <tc_precision precision, int elements, int loads, typename Output>
static tc_status tc_launch_narrow(const char *name, const tc_bittcf *T, const void *rows, int32_t width, uint32_t row_bytes, const Output &out, cudaStream_t stream)
{
  const int32_t chunks = width / (8 * elements * loads);
  const int64_t blocks = ((int64_t)T->num_windows + tc_narrow_warps - 1) / tc_narrow_warps * chunks;

  return tc_launch(name, tc_spmm_bittcf_narrow_kernel<precision, elements, loads, Output>, blocks, tc_narrow_warps * tc_warp_size, stream, *T, static_cast<const char *>(rows), row_bytes, chunks, out);
}

template <tc_precision precision>
static tc_status tc_multiply_narrow(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int           bytes     = tc_narrow_kind<precision>::bytes;
  const int32_t           width     = tc_narrow_width(args->n);
  const uint32_t          row_bytes = (uint32_t)(bytes * width);
  const tc_narrow_scratch at(T, args->n);
  char                   *scratch = reinterpret_cast<char *>(args->scratch);
  int32_t                *top     = reinterpret_cast<int32_t *>(scratch + at.top);
  const tc_scaled_output  out     = {tc_output_of(T, args, reinterpret_cast<double *>(scratch + at.partial)), top};

  TC_CHECK(T->precision == precision, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CALL(tc_narrow_rows<precision>(name, T->num_cols, args, width, top, scratch, stream));
  if (width == 16) TC_CALL((tc_launch_narrow<precision, 2, 1>(name, T, scratch, width, row_bytes, out, stream)));
  else if (width == 32 || T->num_windows * (int64_t)(width / 64) < tc_few_narrow_warps) TC_CALL((tc_launch_narrow<precision, 4, 1>(name, T, scratch, width, row_bytes, out, stream)));
  else TC_CALL((tc_launch_narrow<precision, 16 / bytes, bytes / 2>(name, T, scratch, width, row_bytes, out, stream)));
  return tc_add_long_rows(name, T, out.to, stream);
}

static tc_status tc_multiply_row_major(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  const tc_row_major_output out = {reinterpret_cast<float *>(args->c), args->scratch, args->ldc, tc_bittcf_num_slots(T), args->n};

  TC_CHECK(T->precision == TC_PRECISION_TF32, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CHECK(args->n % 64 == 0 && args->ldb % 4 == 0 && args->ldc % 4 == 0 && !args->add && reinterpret_cast<uintptr_t>(args->b) % 16 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0, TC_ERR_UNSUPPORTED, "%s: %d columns of floats, row-major, of rows %lld and %lld apart", name, args->n, (long long)args->ldb, (long long)args->ldc);
  TC_CALL((tc_launch_narrow<TC_PRECISION_TF32, 4, 2>(name, T, args->b, args->n, (uint32_t)(sizeof(float) * args->ldb), out, stream)));
  return tc_add_long_rows(name, T, out, stream);
}

/* Three products of parts in TF32 for one of floats */
extern "C" tc_status tc_spmm_bittcf_f32(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_F32>("tc_spmm_bittcf_f32", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_spmm_bittcf_tf32(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf   *T  = static_cast<const tc_bittcf *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  return args->row_major_f32 ? tc_multiply_row_major("tc_spmm_bittcf_tf32", T, args, on) : tc_multiply_narrow<TC_PRECISION_TF32>("tc_spmm_bittcf_tf32", T, args, on);
}

extern "C" tc_status tc_spmm_bittcf_bf16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_BF16>("tc_spmm_bittcf_bf16", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_spmm_bittcf_f16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_F16>("tc_spmm_bittcf_f16", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}
