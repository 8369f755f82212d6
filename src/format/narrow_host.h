/*
  Numbers of blocks in narrow precisions on the host: rounded by kernels/tc_narrow.h, and what they stand for.
*/
#pragma once
#include "../../kernels/tc_narrow.h"
#include "hybrid_unpack.h"
#include <math.h>

enum { TC_NARROW_COLUMNS = 8 }; // of B at a time

/* The number in that precision that tc_narrow_bits() gives */
static inline float tc_widen(tc_precision precision, uint32_t bits)
{
  float value;

  if (precision == TC_PRECISION_F16 && (bits & 0x7c00) == 0x7c00) return bits & 0x3ff ? NAN : bits & 0x8000 ? -INFINITY : INFINITY;
  if (precision >= TC_PRECISION_BF16) return tc_widen16(bits, precision == TC_PRECISION_BF16 ? TC_HYBRID_BF16 : TC_HYBRID_F16);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The exponent of the power of two that a column of B is divided by */
static inline int tc_scale_of_column(tc_precision precision, int32_t rows, const double *column)
{
  uint64_t largest = 0;

  for (int32_t k = 0; k < rows; ++k) {
    const uint64_t magnitude = tc_finite_magnitude(column[k]);

    if (magnitude > largest) largest = magnitude;
  }
  return tc_column_scale(precision, (int32_t)(largest >> 52));
}

/* An element of a column with that exponent */
static inline float tc_narrow_element(tc_precision precision, double value, int exponent)
{
  return tc_widen(precision, tc_narrow_bits(precision, value * tc_power_of_two(-exponent)));
}

/* n <= TC_NARROW_COLUMNS columns of B, scaled and rounded, narrow [rows, TC_NARROW_COLUMNS] row by row, and the exponents */
void tc_narrow_columns(tc_precision precision, int32_t rows, int32_t n, const double *b, int64_t ldb, float *narrow, int exponent[TC_NARROW_COLUMNS]);
