#include "narrow_host.h"

void tc_narrow_columns(tc_precision precision, int32_t rows, int32_t n, const double *b, int64_t ldb, float *narrow, int exponent[TC_NARROW_COLUMNS])
{
  for (int32_t j = 0; j < n; ++j) {
    exponent[j] = tc_scale_of_column(precision, rows, b + j * ldb);
    for (int32_t k = 0; k < rows; ++k) narrow[TC_NARROW_COLUMNS * (int64_t)k + j] = tc_narrow_element(precision, b[k + j * ldb], exponent[j]);
  }
}
