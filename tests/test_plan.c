/*
  Plans on the host backend: what is done when, what is counted, and what a failure at any point leaves behind.
*/
#include "plan_util.h"
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

/* As the host, but with memory of its own, into which what is packed has to go: on the host it stays where it is */
static const tc_backend *elsewhere(void)
{
  static tc_backend backend;

  backend = *tc_backend_host();
  return &backend;
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

    ASSERT_OK(tc_plan_create(faults[f].point == TC_FAULT_UPLOAD ? elsewhere() : tc_backend_host(), options, &plan));
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
    cmocka_unit_test(follows_its_source), cmocka_unit_test(serves_every_shape), cmocka_unit_test(failed_builds), cmocka_unit_test(failed_refill), cmocka_unit_test(detail_follows_the_values), cmocka_unit_test(repeats_are_found), cmocka_unit_test(misuse_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
