/*
  The host product has one version for each instruction set; the one that a processor chooses is tested by test_format. Here every version that this processor
  can run must give the defined bits, in both ways to read x.
*/
#include "test_util.h"
#define tc_dasp_spmv_host tc_dasp_spmv_host_of_this_test
#include "../src/format/dasp_host.c"

typedef void (*product)(const tc_dasp *D, const double *x, const double *y, double *z, int sign);

static product product_under_test;

static void check(const test_case *C)
{
  const int32_t m = C->A.num_rows;
  double       *x = test_random(C->A.num_cols, 5), *y = test_random(m, 6), *z = test_guarded(m), *expected = test_guarded(m);
  tc_dasp       D;

  test_pack(&tc_format_dasp, &C->A, &D);
  for (int near = 0; near <= 1; ++near) { // both ways to read x, whatever the matrix would choose
    D.scattered = near ? 0 : 1;
    D.num_cols  = near ? C->A.num_cols : INT32_MAX;
    for (int sign = -1; sign <= 1; ++sign) { // 0: without y
      int64_t row;

      tc_canonical_spmv(&C->A, x, sign > 0 ? y : NULL, expected);
      for (int32_t i = 0; i < m && sign < 0; ++i) expected[i] = y[i] - expected[i];
      product_under_test(&D, x, sign != 0 ? y : NULL, z, sign);
      row = tc_first_different(m, z, expected);
      ASSERT_CASE(row == m, C, "near %d: row %lld is %a, expected %a", near, (long long)row, z[row], expected[row]);
      ASSERT_CASE(test_guards_hold(z, m), C, "written outside");
    }
  }
  tc_format_destroy(&tc_format_dasp, &D);
  test_guarded_free(x);
  test_guarded_free(y);
  test_guarded_free(z);
  test_guarded_free(expected);
}

#define USE(set) product_under_test = spmv_##set
#define CHECK    check
#include "each_instruction_set.h"

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(portable), cmocka_unit_test(avx2), cmocka_unit_test(avx512)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
