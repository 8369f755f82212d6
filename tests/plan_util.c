#include "plan_util.h"

tc_key key_of(const tc_matrix *A, int64_t pattern, int64_t state)
{
  return (tc_key){.id = 1, .pattern = pattern, .state = state, .nnz = A->nnz, .values = A->val};
}

tc_status bring_up_to_date(tc_plan *plan, const tc_matrix *A, const tc_key *key)
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

void expect_product(tc_plan *plan, const tc_matrix *A)
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

tc_matrix matrix_of(const char *name, int32_t size)
{
  tc_matrix A;

  ASSERT_OK(tc_generate(tc_generator_find(name), size, 1, &A));
  return A;
}
