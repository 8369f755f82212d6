#include "oracle.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { LONG_ROW = 256, SEGMENT = 2048, LANES = 32, GROUPS = 4, SPMM_SEGMENT = 256 }; // the definition of the bits: docs/formats.md, "The order of the additions"

static long double gamma_factor(int64_t k)
{
  const long double ku = (long double)k * 0x1p-53L;

  return ku / (1 - ku) + (long double)(k + 2) * LDBL_EPSILON;
}

void tc_oracle_spmv(const tc_matrix *A, const double *x, const double *y, int extra, long double *ref, long double *bound)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    long double sum = y ? y[i] : 0, size = fabsl(sum);

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const long double term = (long double)A->val[e] * x[A->col[e]];

      sum += term;
      size += fabsl(term);
    }
    ref[i]   = sum;
    bound[i] = gamma_factor(A->row_ptr[i + 1] - A->row_ptr[i] + extra) * size;
  }
}

/* As fmaxl(), in line */
static long double larger(long double a, long double b)
{
  return b > a ? b : a;
}

void tc_oracle_add_rounding(const tc_matrix *A, const double *x, tc_precision precision, long double *bound)
{
  static const long double units[]  = {[TC_PRECISION_F64] = 0, [TC_PRECISION_F32] = 0x1p-24L, [TC_PRECISION_TF32] = 0x1p-24L, [TC_PRECISION_BF16] = 0x1p-8L, [TC_PRECISION_F16] = 0x1p-11L};
  const long double        unit     = units[precision], small = precision == TC_PRECISION_F16 ? 0x1p-39L : 0; // of the largest entry of the row

  for (int32_t i = 0; i < A->num_rows; ++i) {
    long double largest = 0, sum = 0;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) largest = larger(largest, fabsl((long double)A->val[e]));
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) sum += larger(unit * fabsl((long double)A->val[e]), small * largest) * fabsl((long double)x[A->col[e]]);
    bound[i] = bound[i] + sum + gamma_factor(A->row_ptr[i + 1] - A->row_ptr[i] + 2) * sum; // rounded entries may be larger than they were
  }
}

void tc_oracle_narrow_spmm(const tc_matrix *A, const double *b, tc_precision precision, int32_t segment, long double *ref, long double *bound)
{
  static const long double units[]  = {[TC_PRECISION_F64] = 0, [TC_PRECISION_F32] = 0x1p-24L, [TC_PRECISION_TF32] = 0x1p-11L, [TC_PRECISION_BF16] = 0x1p-8L, [TC_PRECISION_F16] = 0x1p-11L};
  const int                split    = precision == TC_PRECISION_F32; // three products of two parts each
  const long double        unit     = 2 * units[precision] + units[precision] * units[precision] + (split ? 0x3.01p-22L : 0);
  const long double        small_a  = precision == TC_PRECISION_F16 ? 0x1p-39L : 0x1p-126L, small_b = precision == TC_PRECISION_F16 ? 0x1p-39L : 0x1p-61L; // of the largest of a row, a column
  long double              largest_b = 0;

  tc_oracle_spmv(A, b, NULL, 2, ref, bound);
  for (int32_t k = 0; k < A->num_cols; ++k) largest_b = larger(largest_b, fabsl((long double)b[k]));
  for (int32_t i = 0; i < A->num_rows; ++i) {
    const int64_t     n = A->row_ptr[i + 1] - A->row_ptr[i], chain = (split ? 9 : 3) * (n < segment ? n : segment);
    const long double sums = (long double)chain * 0x1p-23L / (1 - (long double)chain * 0x1p-23L);
    long double       size = 0, sum_a = 0, sum_b = 0, largest_a = 0;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const long double value = fabsl((long double)A->val[e]), from = fabsl((long double)b[A->col[e]]);

      size += value * from;
      sum_a += value;
      sum_b += from;
      largest_a = larger(largest_a, value);
    }
    const long double rounded = unit * size + small_a * largest_a * sum_b + small_b * largest_b * sum_a + 2 * small_b * largest_a * largest_b * (long double)n;

    bound[i] += (rounded + sums * (size + rounded)) * (1 + 0x1p-40L);
  }
}

static int number_class(double a)
{
  return isnan(a) ? 3 : isinf(a) ? (a > 0 ? 2 : 1) : 0;
}

double tc_error_over_bound(int64_t n, const double *z, const long double *ref, const long double *bound)
{
  double worst = 0;

  for (int64_t i = 0; i < n; ++i) {
    const long double error = fabsl(z[i] - ref[i]);

    if (number_class(z[i]) != number_class((double)ref[i])) return INFINITY;
    if (!isfinite(z[i])) continue;
    if (error > 0 && (double)(error / bound[i]) > worst) worst = (double)(error / bound[i]);
  }
  return worst;
}

static double butterfly(double lane[LANES])
{
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

/* Entries first .. first + length - 1 of A, at most a segment of them */
static double segment_sum(const tc_matrix *A, int64_t first, int64_t length, const double *x)
{
  double chain[GROUPS][LANES] = {{0}};

  for (int64_t e = 0; e < length; ++e) {
    double *sum = &chain[e / 4 / LANES % GROUPS][e / 4 % LANES];

    *sum = fma(A->val[first + e], x[A->col[first + e]], *sum);
  }
  return (butterfly(chain[0]) + butterfly(chain[1])) + (butterfly(chain[2]) + butterfly(chain[3]));
}

static double row_sum(const tc_matrix *A, int32_t row, const double *x)
{
  const int64_t first = A->row_ptr[row], length = A->row_ptr[row + 1] - first;
  double        sum = 0, lane[LANES] = {0};

  if (length < LONG_ROW) {
    for (int64_t e = first; e < first + length; ++e) sum = fma(A->val[e], x[A->col[e]], sum);
    return sum;
  }
  if (length <= SEGMENT) return segment_sum(A, first, length, x);
  for (int64_t s = 0; s * SEGMENT < length; ++s) lane[s % LANES] += segment_sum(A, first + s * SEGMENT, length - s * SEGMENT < SEGMENT ? length - s * SEGMENT : SEGMENT, x);
  return butterfly(lane);
}

void tc_canonical_spmv(const tc_matrix *A, const double *x, const double *y, double *z)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    if (A->row_ptr[i] == A->row_ptr[i + 1]) z[i] = y ? y[i] : 0.0; // y + nothing is y, even -0
    else {
      const double sum = row_sum(A, i, x) + 0.0;

      z[i] = y ? y[i] + sum : sum;
    }
  }
}

static inline __attribute__((always_inline)) void canonical_spmm(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc)
{
  for (int32_t j = 0; j < n; ++j) {
    for (int32_t i = 0; i < A->num_rows; ++i) {
      double sum = 0;

      for (int64_t first = A->row_ptr[i], end = A->row_ptr[i + 1]; first < end; first += SPMM_SEGMENT) {
        double segment = 0;

        for (int64_t e = first; e < end && e < first + SPMM_SEGMENT; ++e) segment = fma(A->val[e], b[A->col[e] + j * ldb], segment);
        sum += segment;
      }
      c[i + j * ldc] = add ? c[i + j * ldc] + sum : sum;
    }
  }
}

/* Where fma() is an instruction, and not a call of the library for each term */
#ifdef __x86_64__
__attribute__((target("fma"))) static void canonical_spmm_fma(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc)
{
  canonical_spmm(A, n, b, ldb, add, c, ldc);
}
#endif

void tc_canonical_spmm(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc)
{
#ifdef __x86_64__
  if (__builtin_cpu_supports("fma")) {
    canonical_spmm_fma(A, n, b, ldb, add, c, ldc);
    return;
  }
#endif
  canonical_spmm(A, n, b, ldb, add, c, ldc);
}

void tc_plain_spmv(const tc_matrix *A, const double *x, const double *y, double *z)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    double sum = y ? y[i] : 0.0;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) sum += A->val[e] * x[A->col[e]];
    z[i] = sum;
  }
}

int64_t tc_first_different(int64_t n, const double *a, const double *b)
{
  for (int64_t i = 0; i < n; ++i) {
    if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) return i;
  }
  return n;
}

int64_t tc_first_other_class(int64_t n, const double *a, const double *b)
{
  for (int64_t i = 0; i < n; ++i) {
    if (number_class(a[i]) != number_class(b[i])) return i;
  }
  return n;
}
