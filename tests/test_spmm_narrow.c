/*
  Products straight from CSR on the host with B in a narrow precision, in every instruction set that this processor has: the bits, the bound, and what is not finite.
*/
#include "test_util.h"
#include "spmm_host_of_this_test.h"
#include "../kernels/tc_backend.h"
#include <math.h>
#include <stdlib.h>

static const tc_precision narrow[]  = {TC_PRECISION_F32, TC_PRECISION_BF16, TC_PRECISION_F16};
static const double       unit[]    = {0x1p-24, 0x1p-8, 0x1p-11}, smallest[] = {0x1p-61, 0x1p-61, 0x1p-39}; // of rounding; what may be lost of the largest of a column
static const int32_t      columns[] = {1, 8, 9, 19};
enum { NUM_NARROW = sizeof narrow / sizeof narrow[0], NUM_WIDTHS = sizeof columns / sizeof columns[0] };

static void (*product_under_test)(const tc_csr_view *A, const tc_spmm_args *args, tc_precision precision);

/* Rows of A far apart, entries of a row less so */
static void spread_values(const tc_matrix *A)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) A->val[e] = ldexp(A->val[e], 37 * i % 301 - 150 + (int)(e % 7) * 3);
  }
}

/* Columns far apart; NaN in the gaps */
static double *spread_columns(int32_t rows, int32_t n, int64_t ldb)
{
  static const int powers[] = {0, 3, -66, 64, 200, -300, 20, -1, 500, -64, 65};
  double          *b        = test_random(n * ldb, 5);

  for (int64_t i = 0; i < n * ldb; ++i) b[i] = i % ldb < rows ? ldexp(b[i], powers[i / ldb % 11] - (int)(i % ldb % 5)) : NAN;
  return b;
}

/* The exponent of what a column is divided by */
static int scale_of(tc_precision precision, int32_t rows, const double *column)
{
  double largest = 0;
  int    exponent;

  for (int32_t k = 0; k < rows; ++k) largest = isfinite(column[k]) ? fmax(largest, fabs(column[k])) : largest;
  if (largest == 0) return 0;
  frexp(largest, &exponent);
  --exponent;
  if (precision == TC_PRECISION_F16) return exponent - 14;
  return abs(exponent) <= 64 ? 0 : exponent;
}

/* Element (row, column): segments of 256 entries, each scaled back, added in ascending order */
static double defined_element(const tc_matrix *A, int32_t row, const double *rounded, int scale)
{
  double sum = 0;

  for (int64_t first = A->row_ptr[row], end = A->row_ptr[row + 1]; first < end; first += 256) {
    double segment = 0;

    for (int64_t e = first; e < end && e < first + 256; ++e) segment = fma(A->val[e], rounded[A->col[e]], segment);
    sum += ldexp(segment, scale);
  }
  return sum + 0.0;
}

static void check_column(const test_case *C, int p, const double *b, const double *before, const double *c)
{
  const tc_matrix *A       = &C->A;
  const int        scale   = scale_of(narrow[p], A->num_cols, b);
  double          *rounded = test_guarded(A->num_cols), largest = 0;
  long double     *ref = malloc(2 * ((size_t)A->num_rows + 1) * sizeof *ref), *bound = ref + A->num_rows + 1;

  assert_non_null(ref);
  tc_oracle_spmv(A, b, NULL, 2, ref, bound);
  for (int32_t k = 0; k < A->num_cols; ++k) {
    rounded[k] = test_rounded(narrow[p], ldexp(b[k], -scale));
    largest    = fmax(largest, fabs(b[k]));
  }
  for (int32_t i = 0; i < A->num_rows; ++i) {
    const double sum = defined_element(A, i, rounded, scale), expected = before ? before[i] + sum : sum;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) bound[i] += fabsl((long double)A->val[e]) * (unit[p] * fabsl((long double)b[A->col[e]]) + smallest[p] * largest) * (1 + 0x1p-40L);
    ASSERT_CASE(fabsl(sum - ref[i]) <= bound[i], C, "precision %d: the defined bits of row %d are out of bounds", narrow[p], i);
    ASSERT_CASE(tc_first_different(1, &c[i], &expected) == 1, C, "precision %d: row %d is %a, expected %a", narrow[p], i, c[i], expected);
  }
  test_guarded_free(rounded);
  free(ref);
}

static void multiply(const test_case *C, int p, const tc_csr_view *A, int32_t n, const double *b, int64_t ldb, double *c, int64_t ldc, int add)
{
  tc_spmm_args  args    = {.n = n, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .add = add};
  const int64_t scratch = (int64_t)(tc_spmm_csr_narrow_host_scratch_of_this_test(A, &args) / sizeof(double));
  double       *room    = args.scratch = test_guarded(scratch);

  product_under_test(A, &args, narrow[p]);
  ASSERT_CASE(test_guards_hold(room, scratch) && test_guards_hold(c, n * ldc), C, "written outside");
  test_guarded_free(room);
}

static void check_product(const test_case *C, const tc_csr_view *A, int p, int32_t n, int add)
{
  const int64_t m = A->num_rows, ldb = A->num_cols + n % 3, ldc = m + n % 5;
  double       *b = spread_columns(A->num_cols, n, ldb), *before = test_random(n * ldc, 6), *c = test_guarded(n * ldc);

  for (int64_t i = 0; add && i < n * ldc; ++i) c[i] = i % ldc < m ? before[i] : NAN;
  multiply(C, p, A, n, b, ldb, c, ldc, add);
  for (int32_t j = 0; j < n; ++j) {
    check_column(C, p, b + j * ldb, add ? before + j * ldc : NULL, c + j * ldc);
    for (int64_t i = m; i < ldc; ++i) ASSERT_CASE(isnan(c[i + j * ldc]), C, "written between columns");
  }
  test_guarded_free(b);
  test_guarded_free(before);
  test_guarded_free(c);
}

/* A row of B that is not finite reaches the rows that have an entry for it, and leaves the others and the scales as they are */
static void check_nonfinite(const test_case *C, const tc_csr_view *A, int p, double value)
{
  const int32_t n = 3, at = A->num_cols / 2;
  const int64_t m = A->num_rows, ldb = A->num_cols;
  double       *b = spread_columns(A->num_cols, n, ldb), *c = test_guarded(n * m), *without = test_guarded(n * m);

  for (int32_t j = 0; j < n && at < A->num_cols; ++j) b[at + j * ldb] = 0;
  multiply(C, p, A, n, b, ldb, without, m, 0);
  for (int32_t j = 0; j < n && at < A->num_cols; ++j) b[at + j * ldb] = value;
  multiply(C, p, A, n, b, ldb, c, m, 0);
  for (int64_t i = 0; i < m; ++i) {
    int reached = 0;

    for (int32_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) reached = reached || A->col[e] == at;
    for (int32_t j = 0; j < n; ++j) {
      if (reached) ASSERT_CASE(!isfinite(c[i + j * m]), C, "precision %d: %a where a factor is %a", narrow[p], c[i + j * m], value);
      else ASSERT_CASE(tc_first_different(1, &c[i + j * m], &without[i + j * m]) == 1, C, "precision %d: %a changes row %lld", narrow[p], value, (long long)i);
    }
  }
  test_guarded_free(b);
  test_guarded_free(c);
  test_guarded_free(without);
}

static void check_case(const test_case *C)
{
  int32_t          *row_ptr = malloc(((size_t)C->A.num_rows + 1) * sizeof *row_ptr);
  const tc_csr_view A       = {.num_rows = C->A.num_rows, .num_cols = C->A.num_cols, .nnz = C->A.nnz, .row_ptr = row_ptr, .col = C->A.col, .val = C->A.val};

  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= A.num_rows; ++i) row_ptr[i] = (int32_t)C->A.row_ptr[i];
  spread_values(&C->A);
  for (int p = 0; p < NUM_NARROW; ++p) {
    for (int i = 0; i < (C->seed > 1 ? 1 : NUM_WIDTHS); ++i) {
      for (int add = 0; add < 2; ++add) check_product(C, &A, p, columns[i], add);
    }
    check_nonfinite(C, &A, p, C->seed % 2 ? INFINITY : NAN);
  }
  free(row_ptr);
}

#define USE(set) product_under_test = narrow_product_##set
#define CHECK    check_case
#include "each_instruction_set.h"

/* Each row of the table multiplies in its precision */
static void by_table(void **state)
{
  enum { N = 2 };
  static const int32_t row_ptr[] = {0, 2, 3}, col[] = {0, 1, 1};
  static const double  val[] = {3, 5, 0x1p40 + 1}, b[N * N] = {1 + 0x1p-9, 1 + 0x1p-12, 2 + 0x1p-20, 1};
  const tc_csr_view    A = {.num_rows = N, .num_cols = N, .nnz = 3, .row_ptr = row_ptr, .col = col, .val = val};
  int                  num, seen = 0;
  const tc_spmm_kernel *kernels = tc_backend_host()->spmm_kernels(&num);

  (void)state;
  for (int k = 0; k < num; ++k) {
    const tc_precision precision = kernels[k].precision == TC_PRECISION_TF32 ? TC_PRECISION_F32 : kernels[k].precision;
    double             c[N * N], scratch[64];

    if (precision == TC_PRECISION_F64 || strcmp(kernels[k].format, "csr") != 0) continue;
    ++seen;
    assert_true(kernels[k].scratch(&A, &(tc_spmm_args){.n = N}) <= sizeof scratch);
    ASSERT_OK(kernels[k].multiply(&A, &(tc_spmm_args){.n = N, .b = b, .ldb = N, .c = c, .ldc = N, .scratch = scratch}, NULL));
    for (int j = 0; j < N; ++j) {
      const double first = test_rounded(precision, b[N * j]), second = test_rounded(precision, b[N * j + 1]);

      assert_true(c[N * j] == 3 * first + 5 * second && c[N * j + 1] == (0x1p40 + 1) * second);
    }
  }
  assert_int_equal(seen, 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(portable),
    cmocka_unit_test(avx2),
    cmocka_unit_test(avx512),
    cmocka_unit_test(by_table),
  };

  return cmocka_run_group_tests_name("products from CSR in narrow precisions", tests, NULL, NULL);
}
