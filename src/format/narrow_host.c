#include "narrow_host.h"

void tc_narrow_columns(tc_precision precision, int32_t rows, int32_t n, const double *b, int64_t ldb, float *narrow, int exponent[TC_NARROW_COLUMNS])
{
  for (int32_t j = 0; j < n; ++j) {
    uint64_t largest = 0;

    for (int32_t k = 0; k < rows; ++k) {
      const uint64_t magnitude = tc_finite_magnitude(b[k + j * ldb]);

      if (magnitude > largest) largest = magnitude;
    }
    exponent[j] = tc_column_scale(precision, (int32_t)(largest >> 52));
    for (int32_t k = 0; k < rows; ++k) narrow[TC_NARROW_COLUMNS * (int64_t)k + j] = tc_widen(precision, tc_narrow_bits(precision, b[k + j * ldb] * tc_power_of_two(-exponent[j])));
  }
}
