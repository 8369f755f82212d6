/*
  Doubles as 16-bit numbers, rounded to the nearest, ties to even: one definition in integer arithmetic for host and device, whose conversions need not agree.
    BF16  8 bits of exponent, 7 of fraction: the upper half of a float
    F16   5 bits of exponent, 10 of fraction, numbers below 2^-14 with fewer bits: binary16 of IEEE 754
*/
#pragma once
#include <stdint.h>
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

/* Does BF16 hold the value: zero, or rounded to a normal number? */
TC_BOTH int tc_to_bf16(double value, uint16_t *narrow)
{
  const uint64_t bits = tc_bits_of(value), magnitude = bits & ~((uint64_t)1 << 63), sign = bits >> 63 << 15, bias = (uint64_t)(1023 - 127) << 7;
  const uint64_t rounded = tc_round_bits(magnitude, 45);

  *narrow = (uint16_t)(magnitude == 0 ? sign : sign | (rounded - bias));
  return magnitude == 0 || (rounded >= bias + (1 << 7) && rounded < bias + (0xff << 7));
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
