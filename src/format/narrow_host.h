/*
  Narrow numbers on the host, for products with dense blocks: kernels/tc_narrow.h as floats.
*/
#pragma once
#include "../../kernels/tc_narrow.h"
#include "hybrid_unpack.h"
#include <math.h>

enum { TC_NARROW_COLUMNS = 8 }; // of B at a time

/* A narrow number as a float, exactly */
TC_INLINE float tc_widen(tc_precision precision, uint32_t bits)
{
  float value;

  if (precision == TC_PRECISION_F16 && (bits & 0x7c00) == 0x7c00) return bits & 0x3ff ? NAN : bits & 0x8000 ? -INFINITY : INFINITY;
  if (precision >= TC_PRECISION_BF16) return tc_widen16(bits, precision == TC_PRECISION_BF16 ? TC_HYBRID_BF16 : TC_HYBRID_F16);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* n <= TC_NARROW_COLUMNS columns of B, scaled and rounded, as floats, narrow [rows, TC_NARROW_COLUMNS] row by row, and their scales */
void tc_narrow_columns(tc_precision precision, int32_t rows, int32_t n, const double *b, int64_t ldb, float *narrow, int exponent[TC_NARROW_COLUMNS]);
