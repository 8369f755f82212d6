/*
  The packed transpose on the host backend: the bits of its products, how it follows the values of the matrix, and what a failure at any point leaves behind.
*/
#include "test_util.h"
#include "../src/plan/transpose.h"
#include <stdlib.h>
#include <string.h>

/* A matrix as a backend keeps it; free row_ptr */
static tc_csr_local local_pattern(const tc_matrix *A)
{
  int32_t     *row_ptr = malloc(((size_t)A->num_rows + 1) * sizeof *row_ptr);
  tc_csr_local pattern = {A->num_rows, A->num_cols, A->nnz, row_ptr, A->col, 1, TC_PRECISION_F64, NULL};

  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  return pattern;
}

static tc_key key_of(const tc_matrix *A, int64_t state)
{
  return (tc_key){.id = 1, .pattern = 1, .state = state, .nnz = A->nnz, .values = A->val};
}

static tc_status bring_up_to_date(tc_transpose *T, const tc_matrix *A, const tc_key *key, int keep_rows)
{
  const tc_verdict verdict = tc_plan_check(tc_transpose_plan(T), key);
  tc_csr_local     pattern;
  tc_status        status = TC_OK;

  if (verdict == TC_CACHE_REBUILD) {
    pattern = local_pattern(A);
    status  = tc_transpose_build(T, &pattern, 1, keep_rows, NULL);
    free((void *)(uintptr_t)pattern.row_ptr);
  }
  if (status == TC_OK && verdict != TC_CACHE_HIT) status = tc_transpose_refill(T, A->val, key, verdict, NULL);
  return status;
}

/* z = A^T x in the bits that the rows of A^T define */
static void expect_product(tc_transpose *T, const tc_matrix *A)
{
  double   *x = test_random(A->num_rows, 3), *z = test_guarded(A->num_cols), *expected = test_guarded(A->num_cols);
  tc_matrix R;

  ASSERT_OK(tc_matrix_transpose(A, &R));
  tc_canonical_spmv(&R, x, NULL, expected);
  ASSERT_OK(tc_plan_spmv(tc_transpose_plan(T), x, NULL, z, 1, NULL));
  assert_int_equal(tc_first_different(A->num_cols, z, expected), A->num_cols);
  assert_true(test_guards_hold(z, A->num_cols));
  tc_matrix_free(&R);
  test_guarded_free(x);
  test_guarded_free(z);
  test_guarded_free(expected);
}

static void check_case(const test_case *C)
{
  int num;

  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_plan_options options = {tc_formats(&num)[f]->name, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
    const tc_key          key     = key_of(&C->A, 1);
    tc_transpose         *T;

    if (tc_formats(&num)[f]->spmv_host == NULL) continue; // for dense blocks only
    ASSERT_OK(tc_transpose_create(tc_backend_host(), &options, &T));
    ASSERT_OK(bring_up_to_date(T, &C->A, &key, 0));
    expect_product(T, &C->A);
    tc_transpose_destroy(&T);
    assert_null(T);
    tc_transpose_destroy(&T); // destroying nothing is fine
  }
}

static void serves_every_shape(void **state)
{
  (void)state;
  test_all_cases(check_case);
}

static void by_hand(void **state)
{
  static const int32_t row_ptr[] = {0, 2, 2, 5}, col[] = {1, 3, 0, 1, 3};
  const tc_csr_local   A = {3, 4, 5, row_ptr, col, 1, TC_PRECISION_F64, NULL};
  int32_t              t_row_ptr[5], t_col[5], perm[5];
  const int32_t        expected_row_ptr[] = {0, 1, 3, 3, 5}, expected_col[] = {2, 0, 2, 0, 2}, expected_perm[] = {2, 0, 3, 1, 4};
  const double         from[] = {10, 11, 12, 13, 14}, expected[] = {12, 10, 13, 11, 14};
  double               to[5];

  (void)state;
  ASSERT_OK(tc_backend_host()->transpose(&A, t_row_ptr, t_col, perm, NULL));
  assert_memory_equal(t_row_ptr, expected_row_ptr, sizeof t_row_ptr);
  assert_memory_equal(t_col, expected_col, sizeof t_col);
  assert_memory_equal(perm, expected_perm, sizeof perm);
  ASSERT_OK(tc_backend_host()->gather(5, perm, TC_SCALAR_F64, from, to, NULL));
  assert_memory_equal(to, expected, sizeof to);
}

static void follows_the_values(void **state)
{
  const tc_plan_options by_default = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix             A;
  tc_key                key;
  tc_transpose         *T;
  tc_counters           counters;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("ragged"), 331, 1, &A));
  key = key_of(&A, 1);
  ASSERT_OK(tc_transpose_create(tc_backend_host(), &by_default, &T));
  ASSERT_OK(bring_up_to_date(T, &A, &key, 0));
  ASSERT_OK(bring_up_to_date(T, &A, &key, 0));
  tc_random_normal(A.nnz, 99, A.val);
  key = key_of(&A, 2);
  assert_int_equal(tc_plan_check(tc_transpose_plan(T), &key), TC_CACHE_REFILL);
  ASSERT_OK(bring_up_to_date(T, &A, &key, 0));
  expect_product(T, &A);
  tc_plan_counters(tc_transpose_plan(T), &counters);
  assert_int_equal(counters.rebuilds, 1);
  assert_int_equal(counters.refills, 1);
  tc_transpose_destroy(&T);
  tc_matrix_free(&A);
}

/* The rows of A^T are those of the transposed matrix, with the values of the last refill, also where there are no entries at all; made once, by the build if it is to keep them */
static void check_rows_of(const test_case *C, int keep)
{
  const tc_plan_options by_default = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  const tc_csr_local    pattern    = local_pattern(&C->A);
  tc_matrix             A          = C->A, R;
  tc_key                key        = key_of(&A, 1);
  tc_csr_view           view, again;
  tc_transpose         *T;

  ASSERT_OK(tc_transpose_create(tc_backend_host(), &by_default, &T));
  assert_int_equal(tc_transpose_rows(T, &pattern, &view, NULL), TC_ERR_ARG); // not built
  ASSERT_OK(bring_up_to_date(T, &A, &key, keep));
  tc_fault_arm(TC_FAULT_ALLOC, 1);
  assert_int_equal(tc_transpose_rows(T, &pattern, &view, NULL), keep ? TC_OK : TC_ERR_MEMORY);
  assert_int_equal(tc_fault_arm(TC_FAULT_ALLOC, 0), keep); // needs no memory if they are kept
  ASSERT_OK(tc_transpose_rows(T, &pattern, &view, NULL));
  A.val = test_random(A.nnz, 99);
  key   = key_of(&A, 2);
  ASSERT_OK(bring_up_to_date(T, &A, &key, keep));
  ASSERT_OK(tc_transpose_rows(T, &pattern, &again, NULL));
  assert_ptr_equal(view.row_ptr, again.row_ptr);
  ASSERT_OK(tc_matrix_transpose(&A, &R));
  ASSERT_CASE(again.num_rows == R.num_rows && again.num_cols == R.num_cols && again.nnz == R.nnz, C, "%d rows, %d columns, %lld entries", again.num_rows, again.num_cols, (long long)again.nnz);
  for (int32_t i = 0; i <= R.num_rows; ++i) ASSERT_CASE(again.row_ptr[i] == R.row_ptr[i], C, "row %d begins at %d", i, again.row_ptr[i]);
  for (int64_t e = 0; e < R.nnz; ++e) ASSERT_CASE(again.col[e] == R.col[e] && again.val[e] == R.val[e], C, "entry %lld", (long long)e);
  expect_product(T, &A); // the permutation is what it was
  tc_transpose_destroy(&T);
  free((void *)(uintptr_t)pattern.row_ptr);
  test_guarded_free(A.val);
  tc_matrix_free(&R);
}

static void check_rows(const test_case *C)
{
  for (int keep = 0; keep < 2; ++keep) check_rows_of(C, keep);
}

static void rows(void **state)
{
  (void)state;
  test_all_cases(check_rows);
}

/* The arrays of tiles of R, filled with its values, against those of `view` */
static void expect_tiles(const tc_matrix *R, const void *view)
{
  const tc_plan_options tiles  = {"bittcf", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  const tc_format      *format = tc_format_find(tiles.format);
  const tc_csr          rows   = {R->num_rows, R->num_cols, R->row_ptr, R->col, 1, TC_PRECISION_F64, NULL};
  const tc_key          key    = key_of(R, 1);
  tc_array              arrays[TC_MAX_ARRAYS], expected[TC_MAX_ARRAYS];
  tc_plan              *plan;

  ASSERT_OK(tc_plan_create(tc_backend_host(), &tiles, &plan));
  ASSERT_OK(tc_plan_build(plan, &rows));
  ASSERT_OK(tc_plan_upload(plan, NULL));
  ASSERT_OK(tc_plan_refill(plan, R->val, &key, TC_CACHE_REBUILD, NULL));
  const int num = format->arrays(tc_plan_view(plan), expected);

  assert_int_equal(format->arrays(view, arrays), num);
  for (int i = 0; i < num; ++i) {
    const void  *of_view, *of_plan;
    const size_t used = arrays[i].count > (size_t)R->nnz && arrays[i].role == TC_ROLE_VALUE ? (size_t)R->nnz : arrays[i].count; // one value is of no entry

    memcpy(&of_view, (const char *)view + arrays[i].offset, sizeof of_view);
    memcpy(&of_plan, (const char *)tc_plan_view(plan) + arrays[i].offset, sizeof of_plan);
    assert_int_equal(arrays[i].count, expected[i].count);
    assert_memory_equal(of_view, of_plan, used * arrays[i].item_size);
  }
  tc_plan_destroy(&plan);
}

/* The second format holds A^T with the values of the last refill: packed once for a pattern, refilled when asked for after a refill, packed anew after a build */
static void second_format(void **state)
{
  const tc_plan_options by_default = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix             A, R;
  tc_transpose         *T;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("ragged"), 331, 1, &A));
  ASSERT_OK(tc_transpose_create(tc_backend_host(), &by_default, &T));
  for (int round = 0; round < 4; ++round) { // new; new values twice; a new pattern
    const tc_csr_local pattern = local_pattern(&A);
    tc_key             key     = key_of(&A, round + 1);
    const void        *view;

    key.pattern += round / 3;
    tc_random_normal(A.nnz, (uint64_t)(90 + round), A.val);
    ASSERT_OK(bring_up_to_date(T, &A, &key, 0));
    assert_int_equal(tc_transpose_has_second(T), round % 3 > 0);
    if (round == 0) {
      tc_fault_arm(TC_FAULT_ALLOC, 2); // that of its rows is the first
      assert_int_equal(tc_transpose_second(T, &pattern, "bittcf", NULL, &view), TC_ERR_MEMORY);
      assert_false(tc_transpose_has_second(T));
    }
    assert_int_equal(tc_transpose_lacks_second(T), round == 0);
    assert_int_equal(tc_transpose_has_rows(T), round != 3);
    for (int again = 0; again < 2; ++again) {
      ASSERT_OK(tc_transpose_second(T, &pattern, "bittcf", NULL, &view));
      assert_true(tc_transpose_has_second(T));
      assert_false(tc_transpose_lacks_second(T));
    }
    ASSERT_OK(tc_matrix_transpose(&A, &R));
    expect_tiles(&R, view);
    tc_matrix_free(&R);
    free((void *)(uintptr_t)pattern.row_ptr);
  }
  tc_transpose_destroy(&T);
  tc_matrix_free(&A);
}

/* Each allocation, copy and launch fails in turn; every failure is reported, none counts, the next try works */
static void failures(void **state)
{
  const tc_plan_options by_default = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix             A;
  tc_key                key;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("limits"), 65, 1, &A));
  key = key_of(&A, 1);
  for (int way = 0; way < 2 * TC_FAULT_COUNT; ++way) {
    const tc_fault_point point = (tc_fault_point)(way / 2);
    int                  num = 0;
    tc_transpose        *T;
    tc_status            status;

    ASSERT_OK(tc_transpose_create(tc_backend_host(), &by_default, &T));
    for (;; ++num) {
      tc_backend_host()->fault_arm(point, num + 1);
      status = bring_up_to_date(T, &A, &key, way % 2);
      assert_int_equal(tc_backend_host()->fault_arm(point, 0) == 0, status != TC_OK); // no fault goes unnoticed
      if (status == TC_OK) break;
      assert_int_not_equal(tc_plan_check(tc_transpose_plan(T), &key), TC_CACHE_HIT);
    }
    assert_in_range(num, 2, 100);
    expect_product(T, &A);
    tc_transpose_destroy(&T);
  }
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(by_hand), cmocka_unit_test(serves_every_shape), cmocka_unit_test(follows_the_values), cmocka_unit_test(rows), cmocka_unit_test(second_format), cmocka_unit_test(failures),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
