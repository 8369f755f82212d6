/*
  The host products over the hybrid format: one version for each instruction set, of which tc_hybrid_spmv_host() takes the best. Every version that this processor
  can run must give the bits that docs/formats.md defines.
*/
#include "test_util.h"
#include "../src/format/hybrid_values.h"
#define tc_hybrid_spmv_host tc_hybrid_spmv_host_of_this_test
#include "../src/format/hybrid_host.c"

/* In the order of what they need of the processor */
static const struct {
  const char *name;
  void (*product)(const tc_hybrid *H, const double *x, const double *y, double *z, int sign);
} versions[] = {
  {"portable", spmv_portable},
#if TC_HOST_X86
  {"AVX2",     spmv_avx2    },
  {"AVX-512",  spmv_avx512  },
#endif
};

static int num_versions(void)
{
#if TC_HOST_X86
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? 3 : 2;
#else
  return 1;
#endif
}

typedef enum { PLAIN, ADD, ADD_IN_PLACE, SUBTRACT, SUBTRACT_IN_PLACE, NUM_USES } use;

/* What z must be */
static void expect(const tc_matrix *A, const double *x, const double *y, use how, double *z)
{
  tc_canonical_spmv(A, x, how == ADD || how == ADD_IN_PLACE ? y : NULL, z);
  for (int32_t i = 0; i < A->num_rows && how >= SUBTRACT; ++i) z[i] = A->row_ptr[i] == A->row_ptr[i + 1] ? y[i] : y[i] - z[i];
}

/* The first `uses` of the uses; what is expected is the product with the values that are packed, which the test of the format has compared with those of the matrix */
static void check_products(const test_case *C, const tc_matrix *A, const tc_hybrid *H, const double *x, use uses)
{
  const int32_t m = A->num_rows;
  tc_matrix     stored = *A;
  double       *y = test_random(m, 6), *expected = test_guarded(m);

  stored.val = malloc(((size_t)A->nnz + 1) * sizeof *stored.val);
  assert_non_null(stored.val);
  test_stored_values(H, stored.val);
  for (int64_t e = 0; e < A->nnz && H->precision == TC_PRECISION_F64; ++e) assert_true(stored.val[e] == A->val[e] || (isnan(stored.val[e]) && isnan(A->val[e])));
  for (int32_t i = 0; i < m; i += 5) y[i] = -0.0;
  for (use how = 0; how < uses; ++how) {
    expect(&stored, x, y, how, expected);
    for (int v = 0; v < num_versions(); ++v) {
      double *z        = test_guarded(m);
      int     in_place = how == ADD_IN_PLACE || how == SUBTRACT_IN_PLACE;
      int64_t row;

      if (in_place) memcpy(z, y, (size_t)m * sizeof *z);
      versions[v].product(H, x, how == PLAIN ? NULL : in_place ? z : y, z, how >= SUBTRACT ? -1 : 1);
      row = tc_first_different(m, z, expected);
      ASSERT_CASE(row == m, C, "%s, use %d, groups of %d: row %lld is %a, expected %a", versions[v].name, how, H->row_group, (long long)row, z[row], expected[row]);
      ASSERT_CASE(test_guards_hold(z, m) && test_guards_hold(y, m) && test_guards_hold(x, A->num_cols), C, "%s, use %d: written outside", versions[v].name, how);
      test_guarded_free(z);
    }
  }
  free(stored.val);
  test_guarded_free(y);
  test_guarded_free(expected);
}

/* Every third element, or all that no row refers to and one more, are not finite: that must show in the rows that refer to them and nowhere else */
static void poison(const tc_matrix *A, int all, double *x)
{
  static const double bad[] = {NAN, INFINITY, -INFINITY};

  for (int32_t j = 0; j < A->num_cols && !all; j += 3) x[j] = bad[j % 9 / 3];
  if (all) {
    unsigned char *used = calloc((size_t)A->num_cols + 1, 1);

    assert_non_null(used);
    for (int64_t e = 0; e < A->nnz; ++e) used[A->col[e]] = 1;
    for (int32_t j = 0; j < A->num_cols; ++j) {
      if (!used[j] || j == A->num_cols / 2) x[j] = bad[j % 3];
    }
    free(used);
  }
}

static void check_case(const test_case *C)
{
  tc_matrix A       = C->A;
  tc_csr    pattern = tc_matrix_pattern(&A);

  A.val = malloc(((size_t)A.nnz + 1) * sizeof *A.val);
  assert_non_null(A.val);
  for (test_values_kind values = 0; values < TEST_NUM_VALUES; ++values) {
    test_values(values, A.nnz, (uint64_t)C->seed, A.val);
    for (int i = 1; i <= 3 + 4; ++i) { // every row group, then every precision
      tc_hybrid H;

      pattern.row_group = i <= 3 ? i : 1;
      pattern.precision = i <= 3 ? TC_PRECISION_F64 : TC_PRECISION_F32 + i - 4;
      test_pack_pattern(&tc_format_hybrid, &pattern, A.val, &H);
      for (int poisoned = 0; poisoned < 3; ++poisoned) {
        double *x = test_random(A.num_cols, 5);

        if (poisoned) poison(&A, poisoned == 2, x);
        check_products(C, &A, &H, x, poisoned ? PLAIN + 1 : NUM_USES);
        if (poisoned == 2) { // and with codes of 16 bits
          ASSERT_OK(tc_hybrid_collect_host(&H));
          check_products(C, &A, &H, x, NUM_USES);
        }
        test_guarded_free(x);
      }
      tc_format_destroy(&tc_format_hybrid, &H);
    }
  }
  free(A.val);
}

/* In every precision up to `last` */
static void check_packed(const test_case *C, int32_t row_group, tc_precision last)
{
  tc_csr    pattern = tc_matrix_pattern(&C->A);
  double   *x       = test_random(C->A.num_cols, 5);
  tc_hybrid H;

  pattern.row_group = row_group;
  for (pattern.precision = TC_PRECISION_F64; pattern.precision <= last; ++pattern.precision) {
    test_pack_pattern(&tc_format_hybrid, &pattern, C->A.val, &H);
    check_products(C, &C->A, &H, x, NUM_USES);
    ASSERT_OK(tc_hybrid_collect_host(&H));
    check_products(C, &C->A, &H, x, NUM_USES);
    tc_format_destroy(&tc_format_hybrid, &H);
  }
  test_guarded_free(x);
}

/* An empty row, then `num` rows of `length` columns, `apart` apart, row i beginning at column shift * (i / group) */
static void check_band(int32_t num, int32_t length, int32_t apart, int32_t shift, int32_t group, tc_precision last)
{
  test_case C = {"band", length, {0}};

  ASSERT_OK(tc_matrix_create(num + 1, shift * (num / group) + apart * (length - 1) + 1, (int64_t)num * length, &C.A));
  for (int32_t i = 1; i <= num; ++i) {
    C.A.row_ptr[i + 1] = C.A.row_ptr[i] + length;
    for (int32_t k = 0; k < length; ++k) C.A.col[C.A.row_ptr[i] + k] = shift * (i / group) + apart * k;
  }
  tc_random_normal(C.A.nnz, 7, C.A.val);
  check_packed(&C, group, last);
  tc_matrix_free(&C.A);
}

/* Columns of every width, near and far apart, with rows that agree and rows that do not */
static void bands(void **state)
{
  static const int32_t lengths[] = {1, 2, 3, 4, 5, 8, 27, 40, 41, 255, 256, 257, 2047, 2048, 2049, 5000};

  (void)state;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    static const int32_t groups[] = {1, 2, 3, 9, 15, 16, 17};

    for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
      const int32_t num = lengths[i] > 255 ? 3 : 41, group = groups[g];

      check_band(num, lengths[i], 1, group, group, TC_PRECISION_F16);
      check_band(num, lengths[i], 1, 300, group, TC_PRECISION_F64);
      check_band(num, lengths[i], 7, 60000, group, TC_PRECISION_F64);
      check_band(num, lengths[i], 3000, group, group, TC_PRECISION_F64);
    }
  }
}

/* Rows i, i + apart, i + 2 apart and so on meet in slices, being of the same length, and agree on their columns */
static void rows_apart(void **state)
{
  (void)state;
  for (int32_t apart = 1; apart <= 5; ++apart) {
    enum { ROWS = 300 };
    test_case C = {"rows apart", apart, {0}};

    ASSERT_OK(tc_matrix_create(ROWS, ROWS + 2 + apart, ROWS * (int64_t)(3 + apart), &C.A));
    for (int32_t i = 0; i < ROWS; ++i) {
      C.A.row_ptr[i + 1] = C.A.row_ptr[i] + 3 + i % apart;
      for (int32_t k = 0; k < 3 + i % apart; ++k) C.A.col[C.A.row_ptr[i] + k] = i + k;
    }
    C.A.nnz = C.A.row_ptr[ROWS];
    tc_random_normal(C.A.nnz, 7, C.A.val);
    check_packed(&C, 1, TC_PRECISION_F16);
    tc_matrix_free(&C.A);
  }
}

/* Sums that underflow to -0.0, which must not show: neither in the result nor in y + sum */
static void negative_zeros(void **state)
{
  static const char *const names[] = {"mixed", "limits", "short"};

  (void)state;
  for (int i = 0; i < 3; ++i) {
    const tc_generator *generator = tc_generator_find(names[i]);
    test_case           C         = {names[i], 0, {0}};
    double             *x, *z;
    tc_hybrid           H;

    ASSERT_OK(tc_generate(generator, generator->tiny, 1, &C.A));
    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = -1e-200;
    test_pack(&tc_format_hybrid, &C.A, &H);
    x = test_random(C.A.num_cols, 1);
    z = test_guarded(C.A.num_rows);
    for (int32_t j = 0; j < C.A.num_cols; ++j) x[j] = 1e-200;
    tc_hybrid_spmv_host_of_this_test(&H, x, NULL, z, 1);
    for (int32_t r = 0; r < C.A.num_rows; ++r) ASSERT_CASE(z[r] == 0 && !signbit(z[r]), &C, "row %d is %g", r, z[r]);
    check_products(&C, &C.A, &H, x, NUM_USES);
    tc_format_destroy(&tc_format_hybrid, &H);
    test_guarded_free(x);
    test_guarded_free(z);
    tc_matrix_free(&C.A);
  }
}

/* Padding of D8 names the dictionary's first value, here an infinity; infinities and NaNs among the values themselves */
static void values_that_are_not_finite(void **state)
{
  const tc_generator *mixed = tc_generator_find("mixed"), *limits = tc_generator_find("limits");

  (void)state;
  for (int i = 0; i < 6; ++i) {
    test_case C = {"not finite", i, {0}};
    tc_hybrid H;

    ASSERT_OK(tc_generate(i % 2 ? mixed : limits, i % 2 ? mixed->tiny : limits->tiny, 1, &C.A));
    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = e % 97 == 0 ? (i < 2 ? INFINITY : i < 4 ? NAN : -INFINITY) : -1.0;
    test_pack(&tc_format_hybrid, &C.A, &H);
    for (int32_t s = 0; s < H.num_slices; ++s) assert_int_equal(H.slice[s].value_kind, TC_HYBRID_D8);
    assert_true(i >= 4 || !isfinite(H.dictionary[0]));
    tc_format_destroy(&tc_format_hybrid, &H);
    check_packed(&C, 1, TC_PRECISION_F16);
    tc_matrix_free(&C.A);
  }
}

/* Small dictionaries may be looked up in other ways than large ones */
static void dictionaries_of_every_size(void **state)
{
  static const int    sizes[] = {1, 2, 8, 9, 16, 17, 32, 33, 256};
  const tc_generator *mixed   = tc_generator_find("mixed");
  test_case           C       = {"dictionary", 0, {0}};

  (void)state;
  ASSERT_OK(tc_generate(mixed, mixed->tiny, 1, &C.A));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    C.seed = sizes[i];
    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = (double)(e % sizes[i]) / 7 - 1;
    check_packed(&C, 1, TC_PRECISION_F16);
  }
  tc_matrix_free(&C.A);
}

/* What is by rows is for fragments: the host says so and writes nothing; arranged for scalar arithmetic again, it multiplies */
static void values_by_rows(void **state)
{
  const tc_generator *limits = tc_generator_find("limits");
  test_case           C      = {"by rows", 0, {0}};
  double             *x, *z;
  tc_hybrid           H;

  (void)state;
  ASSERT_OK(tc_generate(limits, limits->tiny, 1, &C.A));
  test_pack(&tc_format_hybrid, &C.A, &H);
  x = test_random(C.A.num_cols, 1);
  z = test_guarded(C.A.num_rows);
  for (int32_t r = 0; r < C.A.num_rows; ++r) z[r] = 7;
  tc_format_hybrid.arrange(&H, TC_ARITHMETIC_MMA);
  assert_true(H.num_by_rows > 0);
  assert_int_equal(tc_hybrid_spmv_host_of_this_test(&H, x, NULL, z, 1), TC_ERR_UNSUPPORTED);
  for (int32_t r = 0; r < C.A.num_rows; ++r) assert_true(z[r] == 7);
  tc_format_hybrid.arrange(&H, TC_ARITHMETIC_HOST);
  check_products(&C, &C.A, &H, x, NUM_USES);
  tc_format_destroy(&tc_format_hybrid, &H);
  test_guarded_free(x);
  test_guarded_free(z);
  tc_matrix_free(&C.A);
}

static void all_generators(void **state)
{
  (void)state;
  test_all_cases(check_case);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_generators),
    cmocka_unit_test(bands),
    cmocka_unit_test(rows_apart),
    cmocka_unit_test(negative_zeros),
    cmocka_unit_test(values_that_are_not_finite),
    cmocka_unit_test(dictionaries_of_every_size),
    cmocka_unit_test(values_by_rows),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
