/*
  When packing for products with dense blocks pays: products straight from CSR until then, by the prices of src/plan/spmm_rules.c.
*/
#include "spmm_test.h"
#include "../src/plan/spmm_rules.h"
#include "../src/plan/survey.h"
#include <math.h>
#include <string.h>

/* `view` says whether it does */
static int suits(const void *view, int32_t n)
{
  (void)n;
  return *(const int *)view;
}

/* A backend that has a device's kernels as far as the choice is concerned */
static const tc_spmm_kernel *device_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
    {"csr",    "csr",    TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL, NULL, NULL, 1, 0},
    {"hybrid", "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL, NULL, NULL, 0, 0},
    {"bittcf", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, NULL, NULL, NULL, 0, 0},
    {"cluster", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, suits, NULL, NULL, 0, 0},
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static const char *generator = "elasticity"; // of the matrix that is looked at
static int32_t     size      = 8;

static tc_spmm *spmm_of(const tc_spmm_options *options, int64_t pattern, tc_spmm *S)
{
  static tc_backend backend;
  const tc_key      key = {.id = 1, .pattern = pattern, .nnz = 1};
  tc_matrix         A;
  tc_csr_view       view;
  int32_t          *row_ptr;

  ASSERT_OK(tc_generate(tc_generator_find(generator), size, 1, &A));
  row_ptr = malloc(((size_t)A.num_rows + 1) * sizeof *row_ptr);
  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= A.num_rows; ++i) row_ptr[i] = (int32_t)A.row_ptr[i];
  view    = (tc_csr_view){.num_rows = A.num_rows, .num_cols = A.num_cols, .nnz = A.nnz, .row_ptr = row_ptr, .col = A.col};
  backend = *tc_backend_host();
  backend.probe        = device_probe;
  backend.spmm_kernels = device_kernels;
  if (S == NULL) ASSERT_OK(tc_spmm_create(&backend, options, &S));
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  free(row_ptr);
  tc_matrix_free(&A);
  return S;
}

static const tc_spmm_options by_default = {NULL};

/* Products of n columns, straight from CSR, until the format pays; at most `most` */
static int products_before(tc_spmm *S, const char *format, int32_t n, int most)
{
  const tc_spmm_kernel *kernel;
  int                   products = 0;

  for (; products < most; ++products) {
    ASSERT_OK(tc_spmm_choose(S, n, 0, &kernel));
    assert_string_equal(kernel->format, format);
    if (tc_spmm_pays(S, kernel, n, 0)) break;
    assert_non_null(strstr(tc_spmm_why(S), "made up for"));
  }
  return products;
}

/* As many as the prices say for this matrix, which the test takes from the same table */
static int products_expected(int conversion, int32_t n)
{
  tc_matrix      A;
  tc_csr_view    rows;
  tc_survey      survey;
  tc_spmm_traits traits;
  double         missed = 0;
  int            products = 0;

  ASSERT_OK(tc_generate(tc_generator_find(generator), size, 1, &A));
  rows = view_of(&A);
  ASSERT_OK(tc_survey_host(&rows, &survey));
  traits = tc_spmm_traits_of(&rows, &survey);
  while ((missed += tc_spmm_gain_ms(conversion, &traits, n)) < tc_spmm_conversion_ms(conversion, &traits)) ++products;
  free(survey.list);
  free((void *)rows.row_ptr);
  tc_matrix_free(&A);
  return products;
}

/* So many; anew after that, and for another pattern */
static void after_so_many(void **state)
{
  tc_spmm              *S        = spmm_of(&by_default, 1, NULL);
  const int             expected = products_expected(tc_spmm_conversion_find("bittcf", NULL), 32);
  const tc_spmm_kernel *kernel;

  (void)state;
  assert_in_range(expected, 2, 10000);
  assert_int_equal(products_before(S, "bittcf", 32, INT32_MAX), expected);
  assert_non_null(strstr(tc_spmm_why(S), "before that paid"));
  ASSERT_OK(tc_spmm_choose(S, 32, 0, &kernel));
  assert_true(tc_spmm_pays(S, kernel, 32, 1)); // packed: from then on it is used
  assert_int_equal(products_before(S, "bittcf", 32, INT32_MAX), expected);
  assert_int_equal(products_before(S, "bittcf", 32, expected / 2), expected / 2);
  spmm_of(&by_default, 2, S);
  assert_int_equal(products_before(S, "bittcf", 32, INT32_MAX), expected);
  tc_spmm_destroy(&S);
}

/* Where CSR would be chosen but for the hope of clusters, these are what a product gains by */
static void clusters_over_csr(void **state)
{
  tc_spmm  *S     = spmm_of(&by_default, 1, NULL);
  const int tiles = products_expected(tc_spmm_conversion_find("bittcf", NULL), 12), clusters = products_expected(tc_spmm_conversion_find("bittcf", "csr"), 12);

  (void)state;
  assert_in_range(clusters, 2, tiles - 1);
  assert_int_equal(products_before(S, "bittcf", 12, INT32_MAX), clusters);
  tc_spmm_destroy(&S);
}

/* Twice the columns make up for it in half the products; each format has an account of its own; what is there is used at once */
static void accounts(void **state)
{
  const tc_spmm_kernel *kernel;
  tc_spmm              *S;
  int                   at_64, at_128, hybrid;

  (void)state;
  generator = "stencil27";
  size      = 44;
  S         = spmm_of(&by_default, 1, NULL);
  at_64     = products_before(S, "bittcf", 64, INT32_MAX);
  at_128    = products_before(S, "bittcf", 128, INT32_MAX);
  assert_in_range(at_128, at_64 / 2 - 1, at_64 / 2 + 1);
  hybrid = products_before(S, "hybrid", 1, INT32_MAX);
  assert_in_range(hybrid, 2, INT32_MAX);
  assert_int_equal(products_before(S, "bittcf", 64, at_64 / 2), at_64 / 2);
  assert_int_equal(products_before(S, "hybrid", 1, hybrid / 2), hybrid / 2);
  assert_int_equal(products_before(S, "bittcf", 64, INT32_MAX), at_64 - at_64 / 2);
  assert_int_equal(products_before(S, "hybrid", 1, INT32_MAX), hybrid - hybrid / 2);
  ASSERT_OK(tc_spmm_choose(S, 1, 0, &kernel));
  assert_true(tc_spmm_pays(S, kernel, 1, 1));
  tc_spmm_destroy(&S);
  generator = "elasticity";
  size      = 8;
}

/* Nothing is awaited that was asked for, nor on the host */
static void without(void **state)
{
  static const tc_spmm_options tiles = {.format = "bittcf"};
  tc_spmm                     *S     = spmm_of(&tiles, 1, NULL);

  (void)state;
  assert_int_equal(products_before(S, "bittcf", 8, 1), 0);
  tc_spmm_destroy(&S);
}

/* A product that gains as much as packing takes packs at once */
static void at_once(void **state)
{
  const tc_spmm_traits large = {.entries = 61731000, .rows = 786432, .per_tile = 21};

  (void)state;
  for (int c = 0; c < TC_SPMM_CONVERSIONS; ++c) {
    if (c == tc_spmm_conversion_find("bittcf", "hybrid")) continue; // gains little over another packed format
    assert_true(tc_spmm_gain_ms(c, &large, 128) >= tc_spmm_conversion_ms(c, &large));
    assert_true(tc_spmm_gain_ms(c, &large, 8) < tc_spmm_conversion_ms(c, &large));
    assert_true(tc_spmm_gain_ms(c, &large, 2) == tc_spmm_gain_ms(c, &large, 8)); // or about so
  }
  assert_int_equal(tc_spmm_conversion_find("csr", NULL), -1);
}

/* Products that packing pays for, with few columns, too, and with tiles of scattered columns */
static void tiles_of_few_entries(void **state)
{
  static const struct {
    const char    *name;
    tc_spmm_traits traits;
    int32_t        n;
    int            products;
  } cases[] = {
    {"elasticity:64", {.entries = 61731000, .rows = 786432, .per_tile = 21.00}, 8,  10 },
    {"elasticity:28", {.entries = 4962312, .rows = 65856, .per_tile = 17.92},   8,  25 },
    {"qcd:11",        {.entries = 1712997, .rows = 43923, .per_tile = 12.15},   8,  56 },
    {"qcd:11",        {.entries = 1712997, .rows = 43923, .per_tile = 12.15},   32, 14 },
    {"like_cop20k_A", {.entries = 2635238, .rows = 121192, .per_tile = 4.12},   32, 41 },
  };
  const int bittcf = tc_spmm_conversion_find("bittcf", NULL);

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const int products = (int)ceil(tc_spmm_conversion_ms(bittcf, &cases[i].traits) / tc_spmm_gain_ms(bittcf, &cases[i].traits, cases[i].n));

    if (products != cases[i].products) fail_msg("%s, %d columns: %d products, expected %d", cases[i].name, cases[i].n, products, cases[i].products);
  }
}

/* Products of 16 columns in the hybrid format, until tiles that may have clusters pay */
static int products_in_slices(tc_spmm *S)
{
  const tc_spmm_kernel *kernel;
  int                   products = 0;

  for (;; ++products) {
    ASSERT_OK(tc_spmm_choose(S, 16, 0, &kernel));
    assert_string_equal(kernel->format, "bittcf");
    if (tc_spmm_pays(S, kernel, 16, 0)) {
      assert_non_null(strstr(tc_spmm_why(S), "in another format"));
      assert_null(strstr(tc_spmm_why(S), "straight from CSR"));
      return products;
    }
    assert_non_null(strstr(tc_spmm_why(S), "bittcf when"));
    kernel = tc_spmm_instead(S);
    assert_string_equal(kernel->format, "hybrid");
    assert_true(tc_spmm_pays(S, kernel, 16, 1));
  }
}

/* Where clusters would be ahead of slices, tiles are packed once that pays; without clusters they are not chosen again, but for another pattern */
static void tiles_for_their_clusters(void **state)
{
  const int             has_clusters = 1, has_none = 0;
  const tc_spmm_kernel *kernel;
  tc_spmm              *S;
  int                   products;

  (void)state;
  generator = "stencil27";
  size      = 36;
  S         = spmm_of(&by_default, 1, NULL);
  products  = products_in_slices(S);
  assert_in_range(products, 10, 10000);
  ASSERT_OK(tc_spmm_choose(S, 16, 0, &kernel));
  assert_string_equal(tc_spmm_refine(S, kernel, &has_clusters, 16, 0)->name, "cluster");
  ASSERT_OK(tc_spmm_choose(S, 16, 0, &kernel));
  assert_string_equal(kernel->format, "bittcf");
  assert_ptr_equal(tc_spmm_refine(S, kernel, &has_none, 16, 0), kernel);
  ASSERT_OK(tc_spmm_choose(S, 16, 0, &kernel));
  assert_string_equal(kernel->format, "hybrid");
  ASSERT_OK(tc_spmm_choose(S, 64, 0, &kernel)); // tiles are better here anyway
  assert_string_equal(kernel->format, "bittcf");
  assert_ptr_equal(tc_spmm_instead(S), tc_spmm_find(S, "csr"));
  spmm_of(&by_default, 2, S);
  assert_int_equal(products_in_slices(S), products);
  tc_spmm_destroy(&S);
  generator = "elasticity";
  size      = 8;
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_for_their_clusters), cmocka_unit_test(after_so_many), cmocka_unit_test(clusters_over_csr), cmocka_unit_test(accounts), cmocka_unit_test(without), cmocka_unit_test(at_once), cmocka_unit_test(tiles_of_few_entries)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
