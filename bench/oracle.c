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

void tc_oracle_add_rounding(const tc_matrix *A, const double *x, tc_precision precision, long double *bound)
{
  static const long double units[]  = {[TC_PRECISION_F64] = 0, [TC_PRECISION_F32] = 0x1p-24L, [TC_PRECISION_BF16] = 0x1p-8L, [TC_PRECISION_F16] = 0x1p-11L};
  const long double        unit     = units[precision], small = precision == TC_PRECISION_F16 ? 0x1p-39L : 0; // of the largest entry of the row

  for (int32_t i = 0; i < A->num_rows; ++i) {
    long double largest = 0, sum = 0;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) largest = fmaxl(largest, fabsl((long double)A->val[e]));
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) sum += fmaxl(unit * fabsl((long double)A->val[e]), small * largest) * fabsl((long double)x[A->col[e]]);
    bound[i] = bound[i] + sum + gamma_factor(A->row_ptr[i + 1] - A->row_ptr[i] + 2) * sum; // rounded entries may be larger than they were
  }
}

static long double largest_of(int64_t n, const double *x)
{
  long double largest = 0;

  for (int64_t i = 0; i < n; ++i) {
    if (isfinite(x[i])) largest = fmaxl(largest, fabsl((long double)x[i]));
  }
  return largest;
}

void tc_oracle_narrow(const tc_matrix *A, const double *x, const double *y, tc_precision precision, long double *ref, long double *bound)
{
  const int         is_f16 = precision == TC_PRECISION_F16;
  const long double unit = is_f16 ? 0x1p-11L : 0x1p-8L, small = is_f16 ? 0x1p-39L : 0x1p-126L, per_addition = 0x1p-22L; // small: of the largest entry of the row, or of x
  const long double largest_x = largest_of(A->num_cols, x);

  tc_oracle_spmv(A, x, y, 4, ref, bound);
  for (int32_t i = 0; i < A->num_rows; ++i) {
    const int64_t     entries = A->row_ptr[i + 1] - A->row_ptr[i];
    const long double largest = largest_of(entries, A->val + A->row_ptr[i]);

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const long double a = fabsl((long double)A->val[e]), b = fabsl((long double)x[A->col[e]]), off_a = fmaxl(unit * a, small * largest), off_b = fmaxl(unit * b, small * largest_x);

      bound[i] += off_a * b + a * off_b + off_a * off_b + (is_f16 ? 0 : small * largest * largest_x) + (long double)entries * per_addition * (a + off_a) * (b + off_b);
    }
  }
}

double tc_error_over_bound(int64_t n, const double *z, const long double *ref, const long double *bound)
{
  double worst = 0;

  for (int64_t i = 0; i < n; ++i) {
    const long double error = fabsl(z[i] - ref[i]);

    if (!isfinite(z[i])) return INFINITY;
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

void tc_canonical_spmm(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc)
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

static int number_class(double a)
{
  return isnan(a) ? 3 : isinf(a) ? (a > 0 ? 2 : 1) : 0;
}

int64_t tc_first_other_class(int64_t n, const double *a, const double *b)
{
  for (int64_t i = 0; i < n; ++i) {
    if (number_class(a[i]) != number_class(b[i])) return i;
  }
  return n;
}
