/*
  Plans on the host backend: what is done when, what is counted, and what a failure at any point leaves behind.
*/
#include "test_util.h"
#include "../kernels/tc_hybrid.h"
#include "../src/plan/choose.h"
#include "../src/plan/plan.h"
#include <stdlib.h>
#include <string.h>

static const tc_plan_options by_default = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};

/* Calls `check` with the options that ask for each of the formats for products with vectors */
static void for_each_format(void (*check)(const tc_plan_options *options))
{
  int num;

  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_plan_options options = {tc_formats(&num)[f]->name, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};

    if (tc_formats(&num)[f]->spmv_host != NULL) check(&options);
  }
}

static void expect_counters(const tc_plan *plan, int hits, int refills, int rebuilds)
{
  tc_counters counters;

  tc_plan_counters(plan, &counters);
  assert_int_equal(counters.hits, hits);
  assert_int_equal(counters.refills, refills);
  assert_int_equal(counters.rebuilds, rebuilds);
}

static tc_key key_of(const tc_matrix *A, int64_t pattern, int64_t state)
{
  return (tc_key){.id = 1, .pattern = pattern, .state = state, .nnz = A->nnz, .values = A->val};
}

/* What the glue does before a product */
static tc_status bring_up_to_date(tc_plan *plan, const tc_matrix *A, const tc_key *key)
{
  const tc_csr     pattern = tc_matrix_pattern(A);
  const tc_verdict verdict = tc_plan_check(plan, key);

  if (verdict == TC_CACHE_HIT) tc_plan_hit(plan);
  if (verdict == TC_CACHE_REBUILD) {
    TC_CALL(tc_plan_build(plan, &pattern));
    TC_CALL(tc_plan_upload(plan, NULL));
  }
  if (verdict != TC_CACHE_HIT) TC_CALL(tc_plan_refill(plan, A->val, key, verdict, NULL));
  return TC_OK;
}

/* z = A x, and in place z = z - A x */
static void expect_product(tc_plan *plan, const tc_matrix *A)
{
  double *x = test_random(A->num_cols, 3), *y = test_random(A->num_rows, 4), *z = test_guarded(A->num_rows), *expected = test_guarded(A->num_rows);

  tc_canonical_spmv(A, x, NULL, expected);
  ASSERT_OK(tc_plan_spmv(plan, x, NULL, z, 1, NULL));
  assert_int_equal(tc_first_different(A->num_rows, z, expected), A->num_rows);
  for (int32_t i = 0; i < A->num_rows; ++i) {
    z[i]        = y[i];
    expected[i] = y[i] - expected[i];
  }
  ASSERT_OK(tc_plan_spmv(plan, x, z, z, -1, NULL));
  assert_int_equal(tc_first_different(A->num_rows, z, expected), A->num_rows);
  assert_true(test_guards_hold(z, A->num_rows));
  test_guarded_free(x);
  test_guarded_free(y);
  test_guarded_free(z);
  test_guarded_free(expected);
}

static tc_matrix matrix_of(const char *name, int32_t size)
{
  tc_matrix A;

  ASSERT_OK(tc_generate(tc_generator_find(name), size, 1, &A));
  return A;
}

static void check_follows(const tc_plan_options *options)
{
  tc_matrix A = matrix_of("ragged", 331), B = matrix_of("ragged", 1009);
  tc_key    key = key_of(&A, 5, 50);
  tc_plan  *plan;
  tc_stats  stats;
  tc_detail detail;

  ASSERT_OK(tc_plan_create(tc_backend_host(), options, &plan));
  expect_counters(plan, 0, 0, 0);
  assert_null(tc_plan_kernel(plan));
  tc_plan_stats(plan, &stats);
  assert_int_equal(stats.num_slots, 0);
  ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
  assert_string_equal(detail.kinds, "");

  ASSERT_OK(bring_up_to_date(plan, &A, &key)); // first use
  expect_counters(plan, 0, 0, 1);
  expect_product(plan, &A);
  tc_plan_stats(plan, &stats);
  assert_int_equal(stats.num_nonzeros, A.nnz);
  assert_string_equal(tc_plan_kernel(plan)->format, options->format);
  assert_int_equal(tc_plan_kernel(plan)->arithmetic, TC_ARITHMETIC_HOST);
  assert_ptr_equal(tc_plan_backend(plan), tc_backend_host());

  ASSERT_OK(bring_up_to_date(plan, &A, &key)); // nothing changed
  expect_counters(plan, 1, 0, 1);

  tc_random_normal(A.nnz, 99, A.val); // new values
  key.state = 51;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_counters(plan, 1, 1, 1);
  expect_product(plan, &A);

  key = key_of(&B, 6, 52); // a larger pattern
  ASSERT_OK(bring_up_to_date(plan, &B, &key));
  expect_counters(plan, 1, 1, 2);
  expect_product(plan, &B);

  key = key_of(&A, 7, 53); // and a smaller one
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_counters(plan, 1, 1, 3);
  expect_product(plan, &A);

  tc_plan_unpack(plan, NULL); // nothing is left but the counts, and the next product packs anew
  expect_counters(plan, 1, 1, 3);
  assert_null(tc_plan_kernel(plan));
  tc_plan_stats(plan, &stats);
  assert_int_equal(stats.num_slots, 0);
  ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
  assert_int_equal(detail.value_bytes, 0);
  assert_int_equal(tc_plan_spmv(plan, A.val, NULL, A.val, 1, NULL), TC_ERR_ARG);
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_counters(plan, 1, 1, 4);
  expect_product(plan, &A);
  tc_plan_destroy(&plan);
  assert_null(plan);
  tc_plan_destroy(&plan); // destroying nothing is fine
  tc_matrix_free(&A);
  tc_matrix_free(&B);
}

static void follows_its_source(void **state)
{
  (void)state;
  for_each_format(check_follows);
}

static void check_case(const test_case *C)
{
  const tc_key key = key_of(&C->A, 1, 1);
  int          num;

  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_plan_options options = {tc_formats(&num)[f]->name, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
    tc_plan              *plan;

    if (tc_formats(&num)[f]->spmv_host == NULL) continue;
    ASSERT_OK(tc_plan_create(tc_backend_host(), &options, &plan));
    ASSERT_OK(bring_up_to_date(plan, &C->A, &key));
    expect_product(plan, &C->A);
    tc_plan_destroy(&plan);
  }
}

static void serves_every_shape(void **state)
{
  (void)state;
  test_all_cases(check_case);
}

/* Each allocation and upload of a rebuild, and each launch, fails in turn; every failure is reported, none counts, the next try works */
static void check_failed_builds(const tc_plan_options *options)
{
  static const struct {
    tc_fault_point point;
    tc_status      status;
  } faults[] = {
    {TC_FAULT_ALLOC, TC_ERR_MEMORY},
    {TC_FAULT_UPLOAD, TC_ERR_DEVICE},
    {TC_FAULT_LAUNCH, TC_ERR_DEVICE},
  };
  tc_matrix    A   = matrix_of("limits", 65);
  const tc_key key = key_of(&A, 1, 1);

  for (size_t f = 0; f < sizeof faults / sizeof faults[0]; ++f) {
    int       failures = 0;
    tc_plan  *plan;
    tc_status status;

    ASSERT_OK(tc_plan_create(tc_backend_host(), options, &plan));
    for (;; ++failures) {
      tc_backend_host()->fault_arm(faults[f].point, failures + 1);
      status = bring_up_to_date(plan, &A, &key);
      tc_backend_host()->fault_arm(faults[f].point, 0);
      if (status == TC_OK) break;
      assert_int_equal(status, faults[f].status);
      assert_string_not_equal(tc_last_error(), "");
      expect_counters(plan, 0, 0, 0);
      assert_int_not_equal(tc_plan_check(plan, &key), TC_CACHE_HIT);
    }
    assert_in_range(failures, 1, 100);
    expect_counters(plan, 0, 0, 1);
    expect_product(plan, &A);
    tc_plan_destroy(&plan);
  }
  tc_matrix_free(&A);
}

static void failed_builds(void **state)
{
  (void)state;
  for_each_format(check_failed_builds);
}

static void check_failed_refill(const tc_plan_options *options)
{
  tc_matrix A   = matrix_of("stencil7", 6);
  tc_key    key = key_of(&A, 1, 1);
  tc_plan  *plan;
  double   *x = test_random(A.num_cols, 1), *z = test_guarded(A.num_rows);

  ASSERT_OK(tc_plan_create(tc_backend_host(), options, &plan));
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  key.state = 2;
  tc_backend_host()->fault_arm(TC_FAULT_LAUNCH, 1);
  assert_int_equal(bring_up_to_date(plan, &A, &key), TC_ERR_DEVICE);
  assert_int_equal(tc_plan_check(plan, &key), TC_CACHE_REFILL);
  assert_int_equal(tc_plan_spmv(plan, x, NULL, z, 1, NULL), TC_ERR_ARG); // half-written values are not multiplied
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_counters(plan, 0, 1, 1);
  expect_product(plan, &A);

  tc_backend_host()->fault_arm(TC_FAULT_LAUNCH, 1);
  assert_int_equal(tc_plan_spmv(plan, x, NULL, z, 1, NULL), TC_ERR_DEVICE);
  expect_product(plan, &A); // a failed launch does not spoil the plan
  tc_plan_destroy(&plan);
  test_guarded_free(x);
  test_guarded_free(z);
  tc_matrix_free(&A);
}

static void failed_refill(void **state)
{
  (void)state;
  for_each_format(check_failed_refill);
}

/* Values that begin to repeat when none had before are found by the last of so many refills, and multiplied before */
static void repeats_are_found(void **state)
{
  const tc_plan_options hybrid = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix             A      = matrix_of("stencil7", 12);
  tc_key                key    = key_of(&A, 1, 1);
  tc_plan              *plan;
  tc_detail             detail;

  (void)state;
  tc_random_normal(A.nnz, 99, A.val);
  ASSERT_OK(tc_plan_create(tc_backend_host(), &hybrid, &plan));
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  for (int refill = 1; refill <= TC_HYBRID_LOOK_EVERY; ++refill) {
    for (int64_t e = 0; e < A.nnz; ++e) A.val[e] = 1.0 / (double)(e % 3 + 3 * refill);
    ++key.state;
    ASSERT_OK(bring_up_to_date(plan, &A, &key));
    expect_product(plan, &A);
    ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
    assert_non_null(strstr(detail.kinds, refill < TC_HYBRID_LOOK_EVERY ? "values d8 0%, f32 0%, f64 100%" : "values d8 100%, f32 0%, f64 0%"));
  }
  ++key.pattern; // and at once by a build
  tc_random_normal(A.nnz, 98, A.val);
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  for (int64_t e = 0; e < A.nnz; ++e) A.val[e] = (double)(e % 3);
  ++key.pattern;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
  assert_non_null(strstr(detail.kinds, "values d8 100%, f32 0%, f64 0%"));
  tc_plan_destroy(&plan);
  tc_matrix_free(&A);
}

/* The kinds of values follow the values */
static void detail_follows_the_values(void **state)
{
  const tc_plan_options hybrid = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix             A      = matrix_of("stencil7", 12);
  tc_key                key    = key_of(&A, 1, 1);
  tc_plan              *plan;
  tc_detail             narrow, wide;

  (void)state;
  for (int64_t e = 0; e < A.nnz; ++e) A.val[e] = (double)(e % 3);
  ASSERT_OK(tc_plan_create(tc_backend_host(), &hybrid, &plan));
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  ASSERT_OK(tc_plan_detail(plan, &narrow, NULL));
  assert_non_null(strstr(narrow.kinds, "values d8 100%, f32 0%, f64 0%"));
  tc_random_normal(A.nnz, 99, A.val);
  key.state = 2;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  ASSERT_OK(tc_plan_detail(plan, &wide, NULL));
  assert_non_null(strstr(wide.kinds, "values d8 0%, f32 0%, f64 100%"));
  assert_true(wide.value_bytes > 4 * narrow.value_bytes);
  tc_backend_host()->fault_arm(TC_FAULT_UPLOAD, 2);
  assert_int_equal(tc_plan_detail(plan, &wide, NULL), TC_ERR_DEVICE);
  expect_product(plan, &A);
  tc_plan_destroy(&plan);
  tc_matrix_free(&A);
}

static int       told_early;
static tc_status product_status;

static tc_status watched_product(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  (void)view, (void)x, (void)y, (void)z, (void)sign, (void)stream;
  told_early = early;
  return product_status;
}

static const tc_kernel *watched_kernels(int *num)
{
  static const tc_kernel kernel = {"watched", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_HOST, TC_PRECISION_F64, 0, watched_product, TC_SCALAR_F64};

  *num = 1;
  return &kernel;
}

/* Is the next product on that stream told that it may begin early? */
static int next_is_early(tc_plan *plan, int stream)
{
  static char streams[2];
  double      number = 0;

  told_early = -1;
  assert_int_equal(tc_plan_spmv(plan, &number, NULL, &number, 1, &streams[stream]), product_status);
  return told_early;
}

/* Only what follows a product on its stream may, and not the first one after the arrays have been written */
static void products_begin_early(void **state)
{
  const tc_plan_options hybrid  = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_backend            backend = *tc_backend_host();
  tc_matrix             A       = matrix_of("stencil7", 5);
  tc_key                key     = key_of(&A, 1, 1);
  tc_plan              *plan;

  (void)state;
  backend.kernels = watched_kernels;
  product_status  = TC_OK;
  ASSERT_OK(tc_plan_create(&backend, &hybrid, &plan));
  for (int pattern = 1; pattern <= 2; ++pattern) {
    for (int values = 1; values <= 2; ++values) {
      key.pattern = pattern;
      ++key.state;
      ASSERT_OK(bring_up_to_date(plan, &A, &key));
      assert_int_equal(next_is_early(plan, 0), 0);
      assert_int_equal(next_is_early(plan, 0), 1);
    }
  }
  assert_int_equal(next_is_early(plan, 1), 0); // nothing is known of what is in front of it there
  assert_int_equal(next_is_early(plan, 1), 1);
  assert_int_equal(next_is_early(plan, 0), 0);
  ++key.state;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  product_status = TC_ERR_DEVICE; // nothing was enqueued
  assert_int_equal(next_is_early(plan, 0), 0);
  product_status = TC_OK;
  assert_int_equal(next_is_early(plan, 0), 0);
  assert_int_equal(next_is_early(plan, 0), 1);
  tc_plan_destroy(&plan);
  tc_matrix_free(&A);
}

static void misuse_is_refused(void **state)
{
  const tc_plan_options unknown = {"no such format", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64}, rounded = {"dasp", TC_ARITHMETIC_AUTO, TC_PRECISION_F32, TC_SCALAR_F64};
  const int64_t         bad_row_ptr[2] = {0, -1};
  const tc_csr          bad            = {.num_rows = 1, .num_cols = 1, .row_ptr = bad_row_ptr};
  const tc_key          key            = {0};
  double                number         = 0;
  tc_plan              *plan;

  (void)state;
  assert_int_equal(tc_plan_create(tc_backend_host(), &unknown, &plan), TC_ERR_ARG);
  assert_null(plan);
  assert_int_equal(tc_plan_create(tc_backend_host(), &rounded, &plan), TC_ERR_UNSUPPORTED);
  assert_null(plan);
  ASSERT_OK(tc_plan_create(tc_backend_host(), &by_default, &plan));
  assert_int_equal(tc_plan_spmv(plan, &number, NULL, &number, 1, NULL), TC_ERR_ARG);
  assert_int_equal(tc_plan_refill(plan, &number, &key, TC_CACHE_REFILL, NULL), TC_ERR_ARG);
  assert_int_equal(tc_plan_upload(plan, NULL), TC_ERR_ARG); // nothing was built
  assert_int_equal(tc_plan_build(plan, &bad), TC_ERR_ARG);
  assert_int_equal(tc_plan_check(plan, &key), TC_CACHE_REBUILD);
  tc_plan_destroy(&plan);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(follows_its_source), cmocka_unit_test(serves_every_shape), cmocka_unit_test(failed_builds), cmocka_unit_test(failed_refill), cmocka_unit_test(detail_follows_the_values), cmocka_unit_test(repeats_are_found), cmocka_unit_test(products_begin_early), cmocka_unit_test(misuse_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
