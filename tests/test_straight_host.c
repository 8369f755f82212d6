/*
  Products with a vector straight from CSR on the host: every version of the loops that this processor can run must give the defined bits, with values in their order and by a permutation.
*/
#include "test_util.h"
#define tc_spmv_csr_host tc_spmv_csr_host_of_this_test
#include "../src/plan/spmv_host.c"
#include <stdlib.h>

typedef void (*multiply)(const product *P);

static multiply under_test;

static void check(const test_case *C)
{
  const tc_matrix *M       = &C->A;
  const int32_t    m       = M->num_rows;
  double          *x = test_random(M->num_cols, 5), *y = test_random(m, 6), *z = test_guarded(m), *expected = test_guarded(m), *turned = malloc(((size_t)M->nnz + 1) * sizeof *turned);
  int32_t         *row_ptr = malloc(((size_t)m + 1) * sizeof *row_ptr), *perm = malloc(((size_t)M->nnz + 1) * sizeof *perm);

  assert_true(turned != NULL && row_ptr != NULL && perm != NULL);
  for (int32_t i = 0; i <= m; ++i) row_ptr[i] = (int32_t)M->row_ptr[i];
  for (int32_t i = 0; i < m; i += 3) y[i] = -0.0; // which a row without entries leaves
  for (int64_t e = 0; e < M->nnz; ++e) {
    perm[e]         = (int32_t)(M->nnz - 1 - e);
    turned[perm[e]] = M->val[e];
  }
  for (int mode = 0; mode < 8; ++mode) { // by a permutation; z = A x, y + A x, y - A x, the last in place
    const tc_csr_local A = {.num_rows = m, .num_cols = M->num_cols, .nnz = M->nnz, .row_ptr = row_ptr, .col = M->col};
    const int          by_perm = mode % 2, how = mode / 2, sign = how >= 2 ? -1 : 1;
    const product      P = {&A, by_perm ? turned : M->val, by_perm ? perm : NULL, x, how == 0 ? NULL : how == 3 ? z : y, z, sign};
    int64_t            row;

    tc_canonical_spmv(M, x, NULL, expected);
    for (int32_t i = 0; i < m && how > 0; ++i) expected[i] = row_ptr[i] == row_ptr[i + 1] ? y[i] : y[i] + sign * expected[i];
    for (int32_t i = 0; i < m; ++i) z[i] = how == 3 ? y[i] : NAN;
    under_test(&P);
    row = tc_first_different(m, z, expected);
    ASSERT_CASE(row == m, C, "mode %d: row %lld is %a, expected %a", mode, (long long)row, z[row], expected[row]);
    ASSERT_CASE(test_guards_hold(z, m), C, "written outside");
  }
  test_guarded_free(x);
  test_guarded_free(y);
  test_guarded_free(z);
  test_guarded_free(expected);
  free(turned);
  free(row_ptr);
  free(perm);
}

static void portable(void **state)
{
  (void)state;
  under_test = multiply_portable;
  test_all_cases(check);
}

static void fused(void **state)
{
  (void)state;
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  under_test = multiply_fma;
  test_all_cases(check);
#else
  skip();
#endif
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(portable), cmocka_unit_test(fused)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
