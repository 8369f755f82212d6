/*
  What ends a row in every product of the host with a vector: docs/formats.md, "The order of the additions".
*/
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Into callers for whom parameters are constants; a line of memory is asked for, which beyond the end of an array is nothing */
#if defined(__GNUC__)
  #define TC_INLINE __attribute__((always_inline)) static inline
  #define TC_FETCH(pointer) __builtin_prefetch(pointer)
#else
  #define TC_INLINE static inline
  #define TC_FETCH(pointer) (void)(pointer)
#endif

enum { TC_LANES = 32 };

/* The last step of every row. Adding +0.0 turns -0.0 into +0.0, so that the result does not tell how many padding slots were added up. */
TC_INLINE void tc_finish_row(double sum, int32_t row, const double *y, double *z, int sign)
{
  sum += 0.0;
  z[row] = y == NULL ? sum : sign > 0 ? y[row] + sum : y[row] - sum;
}

/* The lanes' sums added pairwise, which leaves other sums in them */
TC_INLINE double tc_add_lanes(double lane[TC_LANES])
{
  for (int half = TC_LANES / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}
