/*
  Values that formats keep in every kind they have.
*/
#pragma once
#include <math.h>
#include <stdint.h>

enum { NORMAL, INTEGERS, TRIPLES, SIGNED_ZEROS, FEW_OTHERS, FLOATS, EXACTLY_FULL, HALF_OF_THEM, ONE_TOO_MANY, SPECIAL, WIDE, EXTREME, NUM_VALUES };
static const char *const values_names[] = {"random values", "small integers", "three times those", "those with zeros of both signs", "few other values", "floats", "256 values", "half of those", "257 values", "special values", "values of many magnitudes", "values of all magnitudes"};

static double value_of(int kind, int64_t i, double normal)
{
  static const double special[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY, 0x1p-1074, 0x1p-149, 0x1p-150, 0x1.fffffep127, 0x1.ffffffp127, 1.0 + 0x1p-23, 1.0 + 0x1p-24};

  switch (kind) {
  case INTEGERS: return (double)(7 * i % 5 - 2);
  case TRIPLES: return 3.0 * (double)(7 * i % 5 - 2);
  case SIGNED_ZEROS: return i % 3 == 0 && 7 * i % 5 == 2 ? -0.0 : (double)(7 * i % 5 - 2);
  case FEW_OTHERS: return i % 97 == 5 ? i % 2 ? normal : (float)normal : (double)(i % 3);
  case FLOATS: return (float)normal;
  case EXACTLY_FULL: return 1.0 / (double)(i % 256 + 3);
  case HALF_OF_THEM: return 1.0 / (double)(i % 128 + 3);
  case ONE_TOO_MANY: return 1.0 / (double)(i % 257 + 3);
  case SPECIAL: return i % 64 < 4 ? special[i / 64 % (int64_t)(sizeof special / sizeof special[0])] : (float)normal;
  case WIDE: return ldexp(normal, (int)(i % 59) - 29);
  case EXTREME: return i % 499 == 0 ? ldexp(normal, (int)(i % 2300) - 1200) : normal;
  default: return normal;
  }
}
