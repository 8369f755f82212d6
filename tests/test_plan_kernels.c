/*
  Plans on a backend that is the host's but for its kernels: which one a plan takes, and what that is told.
*/
#include "plan_util.h"
#include "../kernels/tc_hybrid.h"
#include <string.h>

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

static int       searches;
static int32_t   found; // bytes of a value
static tc_status search_status;

static tc_status sm_80(int *sm)
{
  *sm = 80;
  return TC_OK;
}

static tc_status host_product(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  (void)early, (void)stream;
  return tc_format_hybrid.spmv_host(view, x, y, z, sign);
}

static const tc_kernel *two_kernels(int *num)
{
  static const tc_kernel kernels[] = {
    {"mma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, host_product, TC_SCALAR_F64},
    {"fma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 70, host_product, TC_SCALAR_F64},
  };

  *num = 2;
  return kernels;
}

static tc_status search(const void *view, const double *csr_val, tc_stream stream)
{
  (void)csr_val, (void)stream;
  ++searches;
  ((const tc_hybrid *)view)->repeats->bytes = found;
  return search_status;
}

static const tc_converter *searching_converters(int *num)
{
  static tc_converter converters[8];

  memcpy(converters, tc_backend_host()->converters(num), 4 * sizeof *converters);
  for (int c = 0; c < *num; ++c) converters[c].search = strcmp(converters[c].format, "hybrid") == 0 ? search : NULL;
  return converters;
}

/* Narrow values that make a matrix fit the cache are another kernel's case, and their order is that kernel's: looked for behind a build, if that may be, then what refills have told */
static void kernel_follows_the_values(void **state)
{
  const tc_plan_options automatic = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64}, forced = {"hybrid", TC_ARITHMETIC_MMA, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_backend            backend = *tc_backend_host();
  tc_matrix             A = matrix_of("elasticity", 25), small = matrix_of("elasticity", 5);
  tc_key                key = key_of(&A, 1, 1), small_key = key_of(&small, 1, 1);
  tc_plan              *plan;
  const struct {
    int         pattern, repeat; // a new one; values that repeat
    int32_t     found;
    int         searches;
    const char *kernel;
  } step[] = {{1, 0, 8, 1, "mma"}, {1, 1, 2, 2, "fma"}, {0, 0, 0, 2, "fma"}, {0, 0, 0, 2, "mma"}}; // the third tells that its values do not, the fourth heeds it

  (void)state;
  backend.probe      = sm_80;
  backend.kernels    = two_kernels;
  backend.converters = searching_converters;
  search_status      = TC_OK;
  searches           = 0;
  ASSERT_OK(tc_plan_create(&backend, &automatic, &plan));
  for (size_t s = 0; s < sizeof step / sizeof step[0]; ++s) {
    key.pattern += step[s].pattern;
    ++key.state;
    found = step[s].found;
    for (int64_t e = 0; e < A.nnz; ++e) A.val[e] = step[s].repeat ? (double)(e % 7) : 1 / (double)(e + 1);
    ASSERT_OK(bring_up_to_date(plan, &A, &key));
    assert_string_equal(tc_plan_kernel(plan)->name, step[s].kernel);
    assert_int_equal(((const tc_hybrid *)tc_plan_view(plan))->num_by_rows > 0, strcmp(step[s].kernel, "mma") == 0);
    assert_int_equal(searches, step[s].searches);
    if (tc_plan_kernel(plan)->arithmetic == TC_ARITHMETIC_FMA) expect_product(plan, &A); // the host reads no values by rows
  }
  ++key.pattern;
  search_status = TC_ERR_DEVICE;
  assert_int_equal(bring_up_to_date(plan, &A, &key), TC_ERR_DEVICE);
  search_status = TC_OK;
  ASSERT_OK(bring_up_to_date(plan, &small, &small_key)); // fits as it is
  assert_int_equal(searches, 3);
  tc_plan_destroy(&plan);
  ASSERT_OK(tc_plan_create(&backend, &forced, &plan));
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  assert_int_equal(searches, 3);
  tc_plan_destroy(&plan);
  tc_matrix_free(&A);
  tc_matrix_free(&small);
}

static int       collections, being_captured;
static tc_status collection_status;

static tc_status collect(const void *view, tc_stream stream)
{
  (void)view, (void)stream;
  ++collections;
  return collection_status;
}

static const tc_converter *collecting_converters(int *num)
{
  static tc_converter converters[8];

  memcpy(converters, tc_backend_host()->converters(num), 4 * sizeof *converters);
  for (int c = 0; c < *num; ++c) converters[c].collect = collect;
  return converters;
}

static int capturing(tc_stream stream)
{
  (void)stream;
  return being_captured;
}

/* The next `products` of a plan collect so often, the last of them, which does not begin before its arrays are written */
static void expect_collections(tc_plan *plan, int products, int expected)
{
  collections = 0;
  for (int i = 1; i <= products; ++i) {
    const int early = next_is_early(plan, 0);

    assert_int_equal(collections, i < products ? 0 : expected);
    if (i == products && product_status == TC_OK && expected > 0) assert_int_equal(early, 0);
  }
}

/*
  Once for each set of values, behind the 63rd product of a large matrix, never of a small one; not while the stream is captured. Without memory for it the product is as it was. Values that go
  when they have just been collected make those after them wait twice as long, but for those of a new pattern.
*/
static void values_are_collected_once(void **state)
{
  const tc_plan_options hybrid  = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_backend            backend = *tc_backend_host();
  tc_matrix             A = matrix_of("stencil7", 106), small = matrix_of("stencil7", 20);
  tc_key                key = key_of(&A, 1, 1), small_key = key_of(&small, 1, 1);
  double                number = 0;
  tc_plan              *plan;

  (void)state;
  assert_true(A.nnz > 8000000);
  backend.kernels    = watched_kernels;
  backend.converters = collecting_converters;
  backend.capturing  = capturing;
  product_status = collection_status = TC_OK;
  ASSERT_OK(tc_plan_create(&backend, &hybrid, &plan));
  assert_int_equal(tc_plan_collect(plan, NULL), TC_ERR_ARG);
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_collections(plan, 64, 1);
  expect_collections(plan, 100, 0);
  ++key.state;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_collections(plan, 63, 0);
  being_captured = 1;
  expect_collections(plan, 10, 0);
  being_captured    = 0;
  collection_status = TC_ERR_MEMORY;
  expect_collections(plan, 1, 1);
  collection_status = TC_OK;
  expect_collections(plan, 63, 0);
  for (int times = 2; times <= 4; times *= 2) { // values that go after 63 products more, one too few, then at once
    ++key.state;
    ASSERT_OK(bring_up_to_date(plan, &A, &key));
    expect_collections(plan, 64 * times, 1);
  }
  expect_collections(plan, 64, 0); // enough
  ++key.state;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_collections(plan, 256, 1);
  ++key.pattern;
  ASSERT_OK(bring_up_to_date(plan, &A, &key));
  expect_collections(plan, 63, 0);
  collection_status = TC_ERR_DEVICE;
  assert_int_equal(tc_plan_spmv(plan, &number, NULL, &number, 1, NULL), TC_ERR_DEVICE);
  collection_status = TC_OK;
  ASSERT_OK(bring_up_to_date(plan, &small, &small_key));
  expect_collections(plan, 100, 0);
  tc_plan_destroy(&plan);
  tc_matrix_free(&A);
  tc_matrix_free(&small);
}

/* Products of what has been collected, as the host does it, and where there was no memory for that */
static void products_of_codes(void **state)
{
  static const char *const formats[] = {"hybrid", "dasp"};
  tc_matrix                A         = matrix_of("elasticity", 7);
  tc_key                   key       = key_of(&A, 1, 1);

  (void)state;
  for (int64_t e = 0; e < A.nnz; ++e) A.val[e] = 1 / (double)(e % 3000 + 3);
  for (int f = 0; f < 2; ++f) {
    const tc_plan_options options = {formats[f], TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
    tc_detail             detail;
    tc_plan              *plan;

    ASSERT_OK(tc_plan_create(tc_backend_host(), &options, &plan));
    ASSERT_OK(bring_up_to_date(plan, &A, &key));
    tc_backend_host()->fault_arm(TC_FAULT_ALLOC, 1);
    assert_int_equal(tc_plan_collect(plan, NULL), f == 0 ? TC_ERR_MEMORY : TC_OK);
    tc_backend_host()->fault_arm(TC_FAULT_ALLOC, 0);
    ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
    assert_null(strstr(detail.kinds, "d16"));
    expect_product(plan, &A);
    ASSERT_OK(tc_plan_collect(plan, NULL));
    ASSERT_OK(tc_plan_detail(plan, &detail, NULL));
    assert_int_equal(strstr(detail.kinds, "d16 100%") != NULL, f == 0);
    expect_product(plan, &A);
    tc_plan_destroy(&plan);
  }
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_begin_early), cmocka_unit_test(kernel_follows_the_values), cmocka_unit_test(values_are_collected_once), cmocka_unit_test(products_of_codes)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
