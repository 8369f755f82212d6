/*
  Doubles as narrower numbers, rounded to the nearest, ties to even: one definition for host and device, whose conversions need not agree, nearly all of it in integer
  arithmetic.
    TF32  8 bits of exponent, 10 of fraction: a float whose lower 13 bits are zero
    BF16  8 bits of exponent, 7 of fraction: the upper half of a float
    F16   5 bits of exponent, 10 of fraction, numbers below 2^-14 with fewer bits: binary16 of IEEE 754
*/
#pragma once
#include "tc_base.h"
#include <string.h>

#ifdef __CUDACC__
  #define TC_BOTH __host__ __device__ static inline
#else
  #define TC_BOTH static inline
#endif

/* F16 holds values divided by a power of two that brings the largest magnitude of a row into [2^14, 2^15), where that is one of 2^-1000 to 2^1000 */
enum { TC_F16_TOP = 14, TC_F16_MOST = 1000 };

TC_BOTH uint64_t tc_bits_of(double value)
{
  uint64_t bits;

  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* |exponent| <= 1022 */
TC_BOTH double tc_power_of_two(int exponent)
{
  const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
  double         power;

  memcpy(&power, &bits, sizeof power);
  return power;
}

/* Magnitude bits of a double without the lowest `drop`, rounded; may carry into the exponent, as it should */
TC_BOTH uint64_t tc_round_bits(uint64_t magnitude, int drop)
{
  return (magnitude + (((uint64_t)1 << (drop - 1)) - 1) + (magnitude >> drop & 1)) >> drop;
}

/*
  The value with `fraction`, 18 at most, bits of fraction, as a float whose lower bits are zero. Is it zero, or rounded to a normal number? The lower word of the value
  only tells whether there is anything below the upper one.
*/
TC_BOTH int tc_to_upper_float(double value, int fraction, uint32_t *word)
{
  const uint64_t bits = tc_bits_of(value);
  const uint32_t high = (uint32_t)(bits >> 32), magnitude = high & 0x7fffffff, below = (uint32_t)bits != 0, sign = high & UINT32_C(0x80000000);
  const int      drop = 20 - fraction, zero = magnitude == 0 && !below;
  const uint32_t rounded = (magnitude + ((UINT32_C(1) << (drop - 1)) - 1) + ((magnitude >> drop & 1) | below)) & ~((UINT32_C(1) << drop) - 1); // may carry into the exponent, as it should

  *word = zero ? sign : sign | ((rounded - ((uint32_t)(1023 - 127) << 20)) << 3);
  return zero || rounded - ((uint32_t)(1023 - 126) << 20) < (UINT32_C(254) << 20);
}

/* Does BF16 hold the value: zero, or rounded to a normal number? */
TC_BOTH int tc_to_bf16(double value, uint16_t *narrow)
{
  uint32_t  word;
  const int held = tc_to_upper_float(value, 7, &word);

  *narrow = (uint16_t)(word >> 16);
  return held;
}

/* The value, of magnitude below 2^15, as F16 */
TC_BOTH uint16_t tc_to_f16(double value)
{
  const uint64_t bits = tc_bits_of(value), magnitude = bits & ~((uint64_t)1 << 63), sign = bits >> 63 << 15;
  const int      exponent = (int)(magnitude >> 52) - 1023;

  if (exponent >= -14) return (uint16_t)(sign | (tc_round_bits(magnitude, 42) - ((uint64_t)(1023 - 15) << 10)));
  if (exponent < -25) return (uint16_t)sign; // below half of the smallest number, 2^-24
  return (uint16_t)(sign | tc_round_bits(((uint64_t)1 << 52) | (magnitude & (((uint64_t)1 << 52) - 1)), 28 - exponent));
}

/* The exponent of that power, from the bits of the largest magnitude; is it one of those? Never if a value is not finite. */
TC_BOTH int tc_f16_scale(uint64_t largest, int *exponent)
{
  *exponent = largest == 0 ? 0 : (int)(largest >> 52) - 1023 - TC_F16_TOP;
  return *exponent >= -TC_F16_MOST && *exponent <= TC_F16_MOST;
}

/* --- values of products with dense blocks: every value has a narrow number */

enum {
  TC_SCALE_MOST    = 1022, // exponents of scales: both powers are normal numbers
  TC_UNSCALED_MOST = 64    // columns of B whose largest magnitude is of an exponent in between are not scaled, but in F16
};

TC_BOTH size_t tc_value_bytes(tc_precision precision)
{
  return precision == TC_PRECISION_F64 ? 8 : precision >= TC_PRECISION_BF16 ? 2 : 4;
}

/* Columns of a row-major copy of n columns: kernels read 16, 32 or 64 of them at a time */
TC_BOTH int32_t tc_narrow_width(int32_t n)
{
  return n <= 16 ? 16 : n <= 32 ? 32 : (n + 63) / 64 * 64;
}

TC_BOTH int tc_clamp_scale(int exponent)
{
  return exponent < -TC_SCALE_MOST ? -TC_SCALE_MOST : exponent > TC_SCALE_MOST ? TC_SCALE_MOST : exponent;
}

/* The bits of |value|; 0 if that is not finite, so that the largest of them is that of the finite values */
TC_BOTH uint64_t tc_finite_magnitude(double value)
{
  const uint64_t magnitude = tc_bits_of(value) & ~((uint64_t)1 << 63);

  return magnitude < (uint64_t)0x7ff << 52 ? magnitude : 0;
}

/* A row of A is divided by the power of two of this exponent; `largest`: its largest finite magnitude */
TC_BOTH int tc_row_scale(tc_precision precision, uint64_t largest)
{
  return largest == 0 ? 0 : tc_clamp_scale((int)(largest >> 52) - 1023 - (precision == TC_PRECISION_F16 ? TC_F16_TOP : 0));
}

/* The same for a column of B, from the upper 12 bits of its largest finite magnitude. Columns that fit as they are need not be read twice. */
TC_BOTH int tc_column_scale(tc_precision precision, int32_t top)
{
  const int exponent = top - 1023;

  if (top == 0) return 0;
  if (precision == TC_PRECISION_F16) return tc_clamp_scale(exponent - TC_F16_TOP);
  return exponent >= -TC_UNSCALED_MOST && exponent <= TC_UNSCALED_MOST ? 0 : tc_clamp_scale(exponent);
}

/* The same as tc_narrow_bits() below if it returns 1, as for zero and nearly all other values: rounded to a normal number, or to infinity in F32 */
TC_BOTH int tc_usual_bits(tc_precision precision, double value, uint32_t *bits)
{
  const uint32_t magnitude = (uint32_t)(tc_bits_of(value) >> 32) & 0x7fffffff;
  int            usual;

  if (precision == TC_PRECISION_F32) {
    const float rounded = (float)value;

    memcpy(bits, &rounded, sizeof *bits);
    return value == 0.0 || magnitude - ((uint32_t)(1023 - 126) << 20) < (UINT32_C(0x7ff) - (1023 - 126)) << 20;
  }
  usual = tc_to_upper_float(value, precision == TC_PRECISION_BF16 ? 7 : 10, bits);
  if (precision == TC_PRECISION_BF16) *bits >>= 16;
  if (precision == TC_PRECISION_F16) {
    const uint32_t sign = *bits >> 16 & 0x8000, rounded = *bits << 1 >> 14; // with the exponent of a float

    *bits = rounded == 0 ? sign : sign | (rounded - ((127 - 15) << 10));
    usual = usual && (rounded == 0 || magnitude >= (uint32_t)(1023 - 14) << 20);
  }
  return usual;
}

/*
  A scaled value in F32 or TF32, a float, or in BF16 or F16, 16 bits. What is too small for a normal number (F16: for a subnormal one) becomes zero, what is too large
  infinite, a NaN that of the precision. In F16 finite values must be below 2^15.
*/
TC_BOTH uint32_t tc_narrow_bits(tc_precision precision, double value)
{
  const uint64_t magnitude = tc_bits_of(value) & ~((uint64_t)1 << 63), infinite = (uint64_t)0x7ff << 52;
  const uint32_t sign = (uint32_t)(tc_bits_of(value) >> 63);
  uint32_t       bits;

  if (tc_usual_bits(precision, value, &bits)) return bits;
  if (precision == TC_PRECISION_F16) return magnitude < infinite ? tc_to_f16(value) : sign << 15 | 0x7c00 | (magnitude > infinite ? 0x200 : 0);
  bits = sign << 31;
  if (magnitude > (uint64_t)1023 << 52) bits |= UINT32_C(0x7f800000);
  if (magnitude > infinite) bits |= UINT32_C(0x00400000);
  return precision == TC_PRECISION_BF16 ? bits >> 16 : bits;
}

/* sum 2^exponent, exponent as large as two scales; rounded once at most, if it is normal */
TC_BOTH double tc_unscale(double sum, int exponent)
{
  const int half = exponent / 2;

  return sum * tc_power_of_two(half) * tc_power_of_two(exponent - half);
}
