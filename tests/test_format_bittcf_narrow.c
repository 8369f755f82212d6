/*
  The BitTCF format in narrow precisions on the host: rounding against rint(), every value in its place with its row's scale, products within the bound of docs/formats.md.
*/
#include "test_util.h"
#include "../kernels/tc_bittcf.h"
#include "../kernels/tc_narrow.h"
#include "../src/format/bittcf_host.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tc_precision narrow[]     = {TC_PRECISION_F32, TC_PRECISION_TF32, TC_PRECISION_BF16, TC_PRECISION_F16};
static const int32_t      num_columns[] = {1, 8, 9, 17};
enum { NUM_NARROW = sizeof narrow / sizeof narrow[0], NUM_WIDTHS = sizeof num_columns / sizeof num_columns[0] };

/* The number that bits stand for */
static double widen(tc_precision precision, uint32_t bits)
{
  float value;

  if (precision == TC_PRECISION_F16) {
    const int    exponent = (int)(bits >> 10 & 0x1f);
    const double size     = exponent == 0x1f ? (bits & 0x3ff ? NAN : INFINITY) : exponent == 0 ? ldexp(bits & 0x3ff, -24) : ldexp((bits & 0x3ff) | 0x400, exponent - 25);

    return bits & 0x8000 ? -size : size;
  }
  if (precision == TC_PRECISION_BF16) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static int same_number(double a, double b)
{
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void rounding_is_to_nearest_even(void **state)
{
  enum { NUM = 20000 };
  static const double special[] = {0.0, -0.0, 1.0, -1.0, 1.0 + 0x1p-11, 1.0 + 0x3p-11, 1.0 + 0x1p-11 + 0x1p-52, 1.0 + 0x1p-8, 1.0 + 0x3p-8, 1.0 + 0x1p-8 - 0x1p-53, 2.0 - 0x1p-12, 2.0 - 0x1p-9, -2.0 + 0x1p-25, 1.0 + 0x1p-24, 1.0 + 0x3p-24, 0x1p-126, 0x1.fffffffffffffp-127, 0x1p-130, 0x1p-1074, 0x1p-14, 0x1.8p-24, 0x1p-25, 0x1.0000000000001p-25, 0x1.8p-25, INFINITY, -INFINITY, NAN};
  double             *x = test_random(NUM, 3);

  (void)state;
  for (int p = 0; p < NUM_NARROW; ++p) {
    for (int i = 0; i < NUM; ++i) {
      double value = i < (int)(sizeof special / sizeof special[0]) ? special[i] : ldexp(x[i], i % 50 - 40);

      if (i % 3 == 1 && i > 100) value = ldexp(rint(ldexp(value, 12 + i % 14)), -12 - i % 14); // ties
      const double is = widen(narrow[p], tc_narrow_bits(narrow[p], value));

      if (!same_number(is, test_rounded(narrow[p], value))) fail_msg("precision %d: %a becomes %a, expected %a", narrow[p], value, is, test_rounded(narrow[p], value));
    }
  }
  test_guarded_free(x);
}

/* Values of many magnitudes, the rows of A and columns of B far apart */
static void spread_values(const tc_matrix *A)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) A->val[e] = ldexp(A->val[e], 37 * i % 301 - 150 + (int)(e % 7) * 3);
  }
}

static double *spread_columns(int32_t rows, int32_t n, int64_t ldb)
{
  static const int columns[] = {0, 3, -66, 64, 200, -300, 20, -1, 500, -64, 65};
  double          *b         = test_random(n * ldb, 5);

  for (int32_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < ldb; ++i) b[i + j * ldb] = i < rows ? ldexp(b[i + j * ldb], columns[j % 11] - (int)(i % 5)) : NAN;
  }
  return b;
}

static void pack(const tc_matrix *A, tc_precision precision, tc_bittcf *T)
{
  tc_csr pattern = tc_matrix_pattern(A);

  pattern.precision = precision;
  test_pack_pattern(&tc_format_bittcf, &pattern, A->val, T);
}

static void check_values(const test_case *C)
{
  spread_values(&C->A);
  for (int p = 0; p < NUM_NARROW; ++p) {
    tc_bittcf T;
    int64_t   place = 0;

    pack(&C->A, narrow[p], &T);
    ASSERT_CASE(T.precision == narrow[p], C, "precision %d", T.precision);
    for (int32_t w = 0; w < T.num_windows; ++w) {
      const uint32_t *mask                  = (const uint32_t *)((const char *)T.tiles + 16 * (size_t)T.window[w].tiles);
      int32_t         taken[TC_BITTCF_ROWS] = {0};
      double          largest[TC_BITTCF_ROWS] = {0};

      for (int32_t bit = 0; bit < 32 * T.window[w].num_groups; ++bit) {
        const int64_t row = TC_BITTCF_ROWS * (int64_t)w + bit % 32 / 4;

        if (!(mask[bit / 32] >> bit % 32 & 1)) continue;
        const uint32_t bits  = tc_value_bytes(narrow[p]) == 2 ? ((const uint16_t *)T.val)[place] : ((const uint32_t *)T.val)[place];
        const double   value = ldexp(C->A.val[T.csr_first[row] + taken[bit % 32 / 4]++], -T.exponent[row]);

        ++place;
        largest[bit % 32 / 4] = fmax(largest[bit % 32 / 4], fabs(value));
        ASSERT_CASE(same_number(widen(narrow[p], bits), test_rounded(narrow[p], value)), C, "precision %d, window %d: %a, expected %a", narrow[p], w, widen(narrow[p], bits), test_rounded(narrow[p], value));
      }
      for (int i = 0; i < TC_BITTCF_ROWS; ++i) {
        const double top = narrow[p] == TC_PRECISION_F16 ? 0x1p14 : 1;

        ASSERT_CASE(largest[i] == 0 || (largest[i] >= top && largest[i] < 2 * top), C, "precision %d, window %d: row %d has %g as its largest value", narrow[p], w, i, largest[i]);
      }
    }
    ASSERT_CASE(place == C->A.nnz, C, "%lld of %lld entries", (long long)place, (long long)C->A.nnz);
    tc_format_destroy(&tc_format_bittcf, &T);
  }
}

static void every_value_in_its_place(void **state)
{
  (void)state;
  test_all_cases(check_values);
}

static void check_one_product(const test_case *C, const tc_bittcf *T, int32_t n, int add)
{
  const int64_t m = C->A.num_rows, ldb = C->A.num_cols + 3, ldc = m + 1;
  double       *b = spread_columns(C->A.num_cols, n, ldb), *c = test_guarded(n * ldc), *scratch = malloc(tc_spmm_bittcf_host_scratch(T, &(tc_spmm_args){.n = n}) + 1);
  long double  *ref = malloc(((size_t)m + 1) * sizeof *ref), *bound = malloc(((size_t)m + 1) * sizeof *bound);
  tc_spmm_args  args = {n, b, ldb, c, ldc, add, scratch, 0, 0, 0};

  for (int64_t i = 0; add && i < n * ldc; ++i) c[i] = i % ldc < m ? 0.0 : NAN; // so that adding rounds nothing
  ASSERT_OK(tc_spmm_bittcf_host(T, &args, NULL));
  for (int32_t j = 0; j < n; ++j) {
    tc_oracle_narrow_spmm(&C->A, b + j * ldb, T->precision, TC_SPMM_SEGMENT, ref, bound);
    ASSERT_CASE(tc_error_over_bound(m, c + j * ldc, ref, bound) <= 1, C, "precision %d, column %d of %d: %g times the bound", T->precision, j, n, tc_error_over_bound(m, c + j * ldc, ref, bound));
    ASSERT_CASE(isnan(c[m + j * ldc]), C, "written outside");
  }
  ASSERT_CASE(test_guards_hold(c, n * ldc), C, "written outside");
  test_guarded_free(b);
  test_guarded_free(c);
  free(scratch);
  free(ref);
  free(bound);
}

static void check_products(const test_case *C)
{
  spread_values(&C->A);
  for (int p = 0; p < NUM_NARROW; ++p) {
    tc_bittcf T;

    pack(&C->A, narrow[p], &T);
    for (int i = 0; i < NUM_WIDTHS; ++i) check_one_product(C, &T, num_columns[i], i % 2);
    tc_format_destroy(&tc_format_bittcf, &T);
  }
}

static void products_are_within_the_bound(void **state)
{
  (void)state;
  test_all_cases(check_products);
}

/* 3 x 3: what is not finite in A or B reaches its row or column, and the scale of the rest is not disturbed */
static void nonfinite_values_pass(void **state)
{
  static const int64_t row_ptr[4] = {0, 2, 3, 5};
  static const int32_t col[5]     = {0, 2, 1, 0, 1};
  static const double  val[5]     = {INFINITY, 0x1p100, 3, -0x1p-100, NAN}, b[6] = {1, 2, 0x1p80, INFINITY, 0x1p-80, 1};
  tc_matrix            A;

  (void)state;
  ASSERT_OK(tc_matrix_create(3, 3, 5, &A));
  memcpy(A.row_ptr, row_ptr, sizeof row_ptr);
  memcpy(A.col, col, sizeof col);
  memcpy(A.val, val, sizeof val);
  for (int p = 0; p < NUM_NARROW; ++p) {
    tc_bittcf    T;
    double       c[6], scratch[64];
    tc_spmm_args args = {2, b, 3, c, 3, 0, scratch, 0, 0, 0};

    pack(&A, narrow[p], &T);
    assert_true(tc_spmm_bittcf_host_scratch(&T, &(tc_spmm_args){.n = 2}) <= sizeof scratch);
    ASSERT_OK(tc_spmm_bittcf_host(&T, &args, NULL));
    assert_true(!isfinite(c[0]) && c[3] == INFINITY && isnan(c[2]) && isnan(c[5]));
    if (narrow[p] == TC_PRECISION_F16) assert_true(c[1] == 0 && c[4] == 0); // 2^80 times smaller than the largest of their columns
    else assert_true(c[0] == INFINITY && c[1] == 6 && c[4] == 0x3p-80);
    tc_format_destroy(&tc_format_bittcf, &T);
  }
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rounding_is_to_nearest_even),
    cmocka_unit_test(every_value_in_its_place),
    cmocka_unit_test(products_are_within_the_bound),
    cmocka_unit_test(nonfinite_values_pass),
  };

  return cmocka_run_group_tests_name("the BitTCF format in narrow precisions", tests, NULL, NULL);
}
