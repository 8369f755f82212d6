/*
  Which kernel is chosen on which device, and what a trial decides.
*/
#include "test_util.h"
#include "../src/plan/choose.h"
#include <math.h>
#include <string.h>

static tc_status no_product(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  (void)view, (void)x, (void)y, (void)z, (void)sign, (void)early, (void)stream;
  return TC_OK;
}

/* A table like that of the CUDA backend */
static const tc_kernel *device_kernels(int *num)
{
  static const tc_kernel kernels[] = {
    {"dasp_mma",   TC_OP_SPMV, "dasp",   TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, no_product, TC_SCALAR_F64},
    {"dasp_fma",   TC_OP_SPMV, "dasp",   TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, no_product, TC_SCALAR_F64},
    {"hybrid_mma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, no_product, TC_SCALAR_F64},
    {"hybrid_fma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, no_product, TC_SCALAR_F64},
    {"narrow_fma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F32, 60, no_product, TC_SCALAR_F64},
    {"single_fma", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, no_product, TC_SCALAR_F32},
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static void kernels_by_policy(void **state)
{
  static const struct {
    const char   *format;
    int           sm;
    tc_arithmetic asked;
    tc_stats      stats;
    const char   *expected; // NULL: there is none
    tc_precision  precision;
    tc_scalar     scalar;
  } cases[] = {
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 7000000, .num_nonempty_rows = 1000000, .longest_tile_row = 7},                 "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 80, TC_ARITHMETIC_AUTO, {.num_nonzeros = 7000000, .num_nonempty_rows = 1000000, .longest_tile_row = 7},                 "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 7000000, .num_nonempty_rows = 1000000, .longest_tile_row = 255},               "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 30000, .num_nonempty_rows = 1000, .longest_tile_row = 60},                     "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_MMA,  {.num_nonzeros = 7000000, .num_nonempty_rows = 1000000, .longest_tile_row = 7},                 "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    /* stencil27:36, :46, and what that would be from memory; qcd:12, with and without as long a row as it has; the same from the smaller cache */
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 1191016, .num_nonempty_rows = 46656, .longest_tile_row = 27, .product_bytes = 10709000, .slot_bytes = 8}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2515456, .num_nonempty_rows = 97336, .longest_tile_row = 27, .product_bytes = 22411000, .slot_bytes = 8}, "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2515456, .num_nonempty_rows = 97336, .longest_tile_row = 27, .product_bytes = 47185921, .slot_bytes = 8}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2426112, .num_nonempty_rows = 62208, .longest_tile_row = 39, .product_bytes = 24600000, .slot_bytes = 8}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2426112, .num_nonempty_rows = 62208, .longest_tile_row = 32, .product_bytes = 47185920, .slot_bytes = 8}, "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 80, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2426112, .num_nonempty_rows = 62208, .longest_tile_row = 60, .product_bytes = 31457280, .slot_bytes = 8}, "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 80, TC_ARITHMETIC_AUTO, {.num_nonzeros = 2426112, .num_nonempty_rows = 62208, .longest_tile_row = 60, .product_bytes = 31457281, .slot_bytes = 8}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    /* ex56:35, ex56:30 and elasticity:28 with such values, and the first one with columns of two bytes */
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 10719144, .num_nonempty_rows = 139968, .longest_tile_row = 81, .num_slots = 10800000, .column_bytes = 10900000, .product_bytes = 34700000, .slot_bytes = 2}, "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 10719144, .num_nonempty_rows = 139968, .longest_tile_row = 81, .num_slots = 10800000, .column_bytes = 10900000, .product_bytes = 99500000, .slot_bytes = 8}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 10719144, .num_nonempty_rows = 139968, .longest_tile_row = 81, .num_slots = 10800000, .column_bytes = 21700000, .product_bytes = 34700000, .slot_bytes = 2}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 6782139, .num_nonempty_rows = 89373, .longest_tile_row = 81, .num_slots = 6800000, .column_bytes = 6900000, .product_bytes = 22000000, .slot_bytes = 2}, "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_AUTO, {.num_nonzeros = 4962312, .num_nonempty_rows = 65856, .longest_tile_row = 81, .num_slots = 5000000, .column_bytes = 5100000, .product_bytes = 26600000, .slot_bytes = 4}, "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 89, TC_ARITHMETIC_AUTO, {.num_nonzeros = 30000, .num_nonempty_rows = 1000, .longest_tile_row = 200},                    "hybrid_fma", TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 70, TC_ARITHMETIC_MMA,  {.num_nonzeros = 10},                                                                           NULL        , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_AUTO, {.num_tile_rows = 0},                                                                           "dasp_mma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_AUTO, {.num_tile_rows = 1000, .longest_tile_row = 40, .mean_tile_row = 8},                            "dasp_fma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_AUTO, {.num_tile_rows = 1000, .longest_tile_row = 41, .mean_tile_row = 8},                            "dasp_mma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_AUTO, {.num_tile_rows = 400000, .longest_tile_row = 40, .mean_tile_row = 9, .scattered = 0.5},        "dasp_fma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_AUTO, {.num_tile_rows = 399999, .longest_tile_row = 40, .mean_tile_row = 9, .scattered = 0.5},        "dasp_mma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_FMA,  {.num_tile_rows = 1000, .longest_tile_row = 41},                                                "dasp_fma"  , TC_PRECISION_F64, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_FMA,  {.num_nonzeros = 10},                                                                           "narrow_fma", TC_PRECISION_F32, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_MMA,  {.num_nonzeros = 10},                                                                           NULL        , TC_PRECISION_F32, TC_SCALAR_F64},
    {"dasp",   90, TC_ARITHMETIC_FMA,  {.num_nonzeros = 10},                                                                           NULL        , TC_PRECISION_F32, TC_SCALAR_F64},
    {"hybrid", 90, TC_ARITHMETIC_FMA,  {.num_nonzeros = 10},                                                                           "single_fma", TC_PRECISION_F64, TC_SCALAR_F32},
    {"hybrid", 90, TC_ARITHMETIC_FMA,  {.num_nonzeros = 10},                                                                           "narrow_fma", TC_PRECISION_F32, TC_SCALAR_F32},
    {"hybrid", 90, TC_ARITHMETIC_MMA,  {.num_nonzeros = 10},                                                                           "hybrid_mma", TC_PRECISION_F64, TC_SCALAR_F32},
    {"dasp",   90, TC_ARITHMETIC_FMA,  {.num_nonzeros = 10},                                                                           "dasp_fma"  , TC_PRECISION_F64, TC_SCALAR_F32},
  };
  const tc_backend device = {.name = "device", .kernels = device_kernels};

  (void)state;
  assert_string_equal(tc_choose_format(0, TC_PRECISION_F64), "dasp");
  assert_string_equal(tc_choose_format(90, TC_PRECISION_F64), "hybrid");
  assert_string_equal(tc_choose_format(0, TC_PRECISION_F32), "hybrid");
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    const tc_kernel *kernel;
    char             why[TC_MAX_WHY];
    const tc_status  status = tc_choose_kernel(&device, cases[c].sm, cases[c].format, cases[c].asked, cases[c].precision, cases[c].scalar, &cases[c].stats, &kernel, why);

    if (cases[c].expected == NULL) {
      assert_int_equal(status, TC_ERR_UNSUPPORTED);
      assert_null(kernel);
      continue;
    }
    assert_int_equal(status, TC_OK);
    assert_string_equal(kernel->name, cases[c].expected);
    assert_string_not_equal(why, "");
  }
}

static void choice_by_time(void **state)
{
  static const struct {
    int    rounds;
    double ours[TC_TRIAL_ROUNDS], theirs[TC_TRIAL_ROUNDS], conversion, ours_least, theirs_least;
    int    chosen, settled;
    double break_even, noise;
  } cases[] = {
    {3, {4, 2, 9},         {3, 3, 7},                 10, 2, 3,         0, 1, 10, 0.02     },
    {3, {9, 4, 4.25},      {5, 9, 4.25},              10, 4, 4.25,      0, 0, 40, 0.04     },
    {3, {3, 9, 2},         {1.99, 1.985, 2.5},        10, 2, 1.985,     0, 0, 0,  0.02     }, // less than 1% faster, and it varies
    {3, {3, 9, 2},         {1.99, 1.975, 2.5},        10, 2, 1.975,     1, 0, 0,  0.02     },
    {3, {2, 2, 9},         {1.9921875, 1.9921875, 9}, 10, 2, 1.9921875, 1, 0, 0,  0        }, // it does not
    {3, {2, 2, 9},         {1.9921875, 2, 9},         10, 2, 1.9921875, 0, 0, 0,  0.0078125}, // as much as it varies
    {3, {2.0078125, 2, 9}, {1.984375, 1.984375, 9},   10, 2, 1.984375,  1, 0, 0,  0.0078125}, // more
    {3, {2, 2.5, 9},       {9, 1.95, 1.96},           10, 2, 1.95,      1, 0, 0,  0.02     },
    {2, {3, 2, 1},         {2.5, 2.25, 1},            10, 2, 2.25,      0, 1, 40, 0.02     }, // the third is not there yet
    {1, {2, 0, 0},         {2.125, 0, 0},             10, 2, 2.125,     0, 0, 80, 0        },
    {1, {2, 2, 2},         {2, 2, 2},                 10, 2, 2,         0, 0, 0,  0        },
    {1, {0, 0, 0},         {0, 0, 0},                 0,  0, 0,         0, 0, 0,  0        },
  };

  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    tc_trial trial;

    tc_choose_by_time(cases[c].rounds, cases[c].ours, cases[c].theirs, cases[c].conversion, &trial);
    assert_true(trial.ours_ms == cases[c].ours_least && trial.theirs_ms == cases[c].theirs_least);
    assert_int_equal(trial.theirs, cases[c].chosen);
    assert_int_equal(trial.settled, cases[c].settled);
    assert_true(trial.break_even == cases[c].break_even);
    assert_true(trial.noise_ms == cases[c].noise);
    assert_int_equal(trial.bound, 0);
  }
}

/* Two bytes of columns per entry and less are regular enough, or two and a half of all that says where entries are */
static void doubt_by_bytes_of_columns(void **state)
{
  (void)state;
  assert_false(tc_choose_in_doubt(&(tc_stats){.num_nonzeros = 1000, .column_bytes = 2001, .index_bytes = 2500}));
  assert_false(tc_choose_in_doubt(&(tc_stats){.num_nonzeros = 1000, .column_bytes = 2000, .index_bytes = 5000}));
  assert_true(tc_choose_in_doubt(&(tc_stats){.num_nonzeros = 1000, .column_bytes = 2001, .index_bytes = 2501}));
  assert_false(tc_choose_in_doubt(&(tc_stats){.num_nonzeros = 0}));
}

/* Where 8 bytes each are too many for the cache, and 2 are not, and rows are neither so long nor so short that it makes no difference */
static void depends_on_values(void **state)
{
  tc_stats S = {.num_nonzeros = 10719144, .num_nonempty_rows = 139968, .longest_tile_row = 81, .num_slots = 10800000, .column_bytes = 10900000, .product_bytes = 47185920, .slot_bytes = 8};

  (void)state;
  assert_false(tc_choose_depends_on_values(90, &S));
  ++S.product_bytes;
  assert_true(tc_choose_depends_on_values(90, &S));
  assert_false(tc_choose_depends_on_values(0, &S));
  assert_false(tc_choose_depends_on_values(75, &S));
  S.product_bytes = 47185920 + 6 * S.num_slots;
  assert_true(tc_choose_depends_on_values(90, &S));
  ++S.product_bytes;
  assert_false(tc_choose_depends_on_values(90, &S));
  for (S.product_bytes = 99500000, S.longest_tile_row = 27; S.longest_tile_row <= 243; S.longest_tile_row *= 3) assert_int_equal(tc_choose_depends_on_values(90, &S), S.longest_tile_row == 81);
}

/* By hand: 1 us for 4.3 MB, cuSPARSE three quarters of that */
static void times_by_a_model(void **state)
{
  const tc_stats S = {.num_nonzeros = 2600000, .num_nonempty_rows = 52500, .num_slots = 3000000, .product_bytes = 24000000 + 1300000, .slot_bytes = 8};
  tc_modelled    model;

  (void)state;
  assert_int_equal(tc_choose_by_model(90, TC_SCALAR_F64, &S, 3000000, &model), 1);
  assert_int_equal(lround(1e5 * model.ours_ms), 475);
  assert_int_equal(lround(1e5 * model.theirs_ms), 1850);
  assert_int_equal(lround(1e5 * model.conversion_ms), 18990);
  assert_int_equal(lround(100 * model.break_even), 1381);
  assert_int_equal(tc_choose_by_model(90, TC_SCALAR_F64, &S, 300000000, &model), 1);
  assert_true(model.break_even == 0);
  assert_int_equal(tc_choose_by_model(0, TC_SCALAR_F64, &S, 3000000, &model), 0);
  assert_int_equal(tc_choose_by_model(75, TC_SCALAR_F64, &S, 3000000, &model), 0);
  assert_int_equal(tc_choose_by_model(90, TC_SCALAR_F64, &(tc_stats){.num_nonzeros = 7}, 56, &model), 0); // another format
}

/* As many products as 0.2 ms hold, one at least and twenty at most */
static void size_of_timed_groups(void **state)
{
  static const struct {
    double ms;
    int    products;
  } cases[] = {
    {0, 20}, {0.005, 20}, {0.01, 20}, {0.0101, 20}, {0.011, 19}, {0.04, 5}, {0.0401, 5}, {0.051, 4}, {0.09, 3}, {0.11, 2}, {0.2, 1}, {7, 1},
  };

  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) assert_int_equal(tc_choose_timed_products(cases[c].ms), cases[c].products);
}

/* Matrices that would not stay in the L2 cache as F64 */
static void large_matrices_are_collected(void **state)
{
  tc_stats stats = {.num_slots = 8000000};

  (void)state;
  assert_int_equal(tc_choose_collect_after(&stats), 0);
  ++stats.num_slots;
  assert_int_equal(tc_choose_collect_after(&stats), TC_COLLECT_AFTER);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_by_policy), cmocka_unit_test(choice_by_time), cmocka_unit_test(size_of_timed_groups), cmocka_unit_test(doubt_by_bytes_of_columns), cmocka_unit_test(depends_on_values), cmocka_unit_test(times_by_a_model), cmocka_unit_test(large_matrices_are_collected),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
