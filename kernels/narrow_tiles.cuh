/*
  Tiles of a tc_bittcf in a narrow precision and rows of B: multiplying them, writing what comes out. What the kernels over windows and over clusters share.
*/
#pragma once
#include "bittcf.cuh"
#include "tc_narrow.h"

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

static inline tc_status tc_row_major_output_of(const char *name, const tc_bittcf *T, const tc_spmm_args *args, tc_row_major_output *out)
{
  TC_CHECK(T->precision == TC_PRECISION_TF32, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CHECK(args->n % 64 == 0 && args->ldb % 4 == 0 && args->ldc % 4 == 0 && !args->add && reinterpret_cast<uintptr_t>(args->b) % 16 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0, TC_ERR_UNSUPPORTED, "%s: %d columns of floats, row-major, of rows %lld and %lld apart", name, args->n, (long long)args->ldb, (long long)args->ldc);
  *out = {reinterpret_cast<float *>(args->c), args->scratch, args->ldc, tc_bittcf_num_slots(T), args->n};
  return TC_OK;
}

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

/*
  Where a lane's columns of B are. Eight lanes read neighbouring parts of a row, four times as many those of four rows at once, which should be in different banks: a copy
  has its rows turned by `turn` bytes for each, within 128. In place, lanes of odd k read the second of two loads first, and of that lane g has part g ^ 2.
*/
template <int elements, int loads, bool in_place>
struct tc_narrow_rows_of_lane {
  static_assert(!in_place || (elements == 4 && loads <= 2), "16 bytes of a row at a time, 256 at most");
  const char *rows; // of the warp's columns
  uint32_t    row_bytes, own, turn;

  /* `bytes`: of an element; `first`: of the warp's columns */
  __device__ __forceinline__ tc_narrow_rows_of_lane(const void *all, uint32_t row_size, uint32_t turned, int bytes, int32_t first, int lane) : row_bytes(row_size), turn(turned)
  {
    const tc_mma_lane at(lane);
    const uint32_t    mine = bytes * (first + elements * at.row);

    if constexpr (in_place) {
      rows = static_cast<const char *>(all) + bytes * first;
      own  = loads == 1 || at.k % 2 == 0 ? 16 * at.row : 128 + 16 * (at.row ^ 2);
    } else {
      rows = static_cast<const char *>(all) + (mine & ~127u);
      own  = mine & 127;
    }
  }

  __device__ __forceinline__ const char *at(uint32_t j, int load) const
  {
    const char *row = rows + static_cast<uint64_t>(j) * row_bytes;

    if constexpr (in_place) return row + (own ^ 160 * load);
    else return row + (own + j * turn & 127) + 128 * load;
  }
};

/* What a few groups need of A and B. `loads` parts of 8 * elements columns each */
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

  /* The lane's columns of the rows of B of groups i, ... of a batch */
  __device__ __forceinline__ void load_rows(const tc_group_batch &batch, int i, int32_t base, const tc_narrow_rows_of_lane<elements, loads, in_place> &rows, int k)
  {
#pragma unroll
    for (int q = 0; q < groups; ++q) {
      const uint32_t j = static_cast<uint32_t>(base + batch.entry_of(i + q, k));

#pragma unroll
      for (int l = 0; l < loads; ++l) load_words(b[q][l], rows.at(j, l));
    }
  }

  /* Parts are where they belong, not where tc_narrow_rows_of_lane has them loaded */
  __device__ __forceinline__ void put_in_order(int k)
  {
    if constexpr (in_place && loads == 2) {
#pragma unroll
      for (int q = 0; q < groups; ++q) {
#pragma unroll
        for (int i = 0; i < words; ++i) {
          const uint32_t first = b[q][0][i], second = b[q][1][i];

          b[q][0][i] = k % 2 ? second : first;
          b[q][1][i] = k % 2 ? first : second;
        }
      }
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

/* The lane's elements of groups i, ... of a batch, their values from number `next` on, which is moved behind them */
template <int groups>
__device__ __forceinline__ void tc_load_narrow_values(uint32_t (&value)[groups], const tc_group_batch &batch, int i, const void *val, uint32_t &next, const tc_mask_lane &at)
{
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

/* The exponent of the power of two that a row or a column was divided by, if sums of floats may be multiplied by two such powers one after the other and are rounded once */
__device__ __forceinline__ bool tc_is_moderate(int scale)
{
  return abs(scale) <= TC_SCALE_MOST / 2;
}

/* tc_unscale(sum, row + column) in fewer steps where both are moderate */
__device__ __forceinline__ double tc_unscale_sum(float sum, int row, int column, bool moderate)
{
  return moderate ? sum * tc_power_of_two(row) * tc_power_of_two(column) : tc_unscale(sum, row + column);
}

/* The same for a row alone, as a float: products with powers of two that are normal floats are rounded once, too */
__device__ __forceinline__ float tc_unscale_single(float sum, int row)
{
  return abs(row) <= 126 ? __fmul_rn(sum, __int_as_float((127 + row) << 23)) : static_cast<float>(tc_unscale(sum, row));
}

/* The sums of a window and of the columns of a warp; a lane's of load l are of `elements` of them from 8 * elements * l + elements * g on */
template <tc_precision precision, int elements, int loads>
__device__ __forceinline__ void tc_put_narrow_window(int2 rows, int2 scales, int32_t first, int g, const tc_scaled_output &out, const tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
  const bool pair = tc_is_pair(out.to, rows), moderate = tc_is_moderate(scales.x) && tc_is_moderate(scales.y);

#pragma unroll
  for (int l = 0; l < loads; ++l) {
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const int32_t column = first + 8 * elements * l + elements * g + i;
      const int     scale  = tc_column_scale(precision, __ldg(out.top + column));
      const bool    both   = moderate && tc_is_moderate(scale);
      const auto   &sum    = sums[(elements * l + i) / 2];
      const double  upper = tc_unscale_sum(sum.c[2 * (i % 2)], scales.x, scale, both), lower = tc_unscale_sum(sum.c[2 * (i % 2) + 1], scales.y, scale, both);

      if (pair) {
        if (column < out.to.n) tc_put_pair(out.to.c + rows.x + column * out.to.ldc, upper, lower);
      } else {
        tc_put_element(out.to, rows.x, column, upper);
        tc_put_element(out.to, rows.y, column, lower);
      }
    }
  }
}

/* In place; of the second of two loads, a lane has the columns that tc_narrow_rows_of_lane says */
template <tc_precision precision, int elements, int loads>
__device__ __forceinline__ void tc_put_narrow_window(int2 rows, int2 scales, int32_t first, int g, const tc_row_major_output &out, const tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int32_t id = r ? rows.y : rows.x;
    const int     scale = r ? scales.y : scales.x;

#pragma unroll
    for (int l = 0; l < loads; ++l) {
      const int32_t column         = first + 8 * elements * l + elements * (g ^ 2 * l);
      const float   value[elements] = {sums[2 * l].c[r], sums[2 * l].c[2 + r], sums[2 * l + 1].c[r], sums[2 * l + 1].c[2 + r]};

      if (id >= 0) __stcs(reinterpret_cast<float4 *>(out.c + id * out.ldc + column), make_float4(tc_unscale_single(value[0], scale), tc_unscale_single(value[1], scale), tc_unscale_single(value[2], scale), tc_unscale_single(value[3], scale)));
#pragma unroll
      for (int i = 0; i < elements; ++i) {
        if (id < 0 && id != TC_BITTCF_NO_ROW) out.partial[~id + (column + i) * out.slots] = tc_unscale(value[i], scale);
      }
    }
  }
}

/* What a warp will read of the matrix for a window, into the L2 cache; the columns of clusters not included */
template <tc_precision precision>
__device__ __forceinline__ void tc_prefetch_narrow_window(const tc_bittcf &T, int32_t w, const tc_window &W, int lane)
{
  tc_prefetch_window<tc_narrow_kind<precision>::bytes>(T, w, W, lane);
  if (lane == 1) tc_prefetch(T.exponent + TC_BITTCF_ROWS * (int64_t)w);
}
