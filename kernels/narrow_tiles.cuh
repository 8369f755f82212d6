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
