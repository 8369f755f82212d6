/*
  Rows in an order that brings those with common columns together: it is a permutation, and tiles and clusters gain by it where rows are numbered badly.
*/
#include "test_util.h"
#include "../bench/row_order.h"
#include "../kernels/tc_bittcf.h"
#include <stdlib.h>

/* Fails for what is no permutation */
static void pack(const tc_matrix *A, const int32_t *order, tc_bittcf *T)
{
  tc_csr pattern = tc_matrix_pattern(A);

  pattern.row_order = order;
  pattern.precision = TC_PRECISION_TF32;
  ASSERT_OK(tc_format_bittcf.build(&pattern, T));
}

static int32_t *order_of(const tc_matrix *A)
{
  int32_t *order = malloc(((size_t)A->num_rows + 1) * sizeof *order);

  assert_non_null(order);
  ASSERT_OK(tc_row_order_by_halves(A, order));
  return order;
}

static void check_permutation(const test_case *C)
{
  int32_t  *order = order_of(&C->A);
  tc_bittcf T;

  pack(&C->A, order, &T);
  tc_format_destroy(&tc_format_bittcf, &T);
  free(order);
}

static void every_row_once(void **state)
{
  (void)state;
  test_all_cases(check_permutation);
}

/* A stencil on renumbered points: fewer groups, and clusters where there were none, of 16 windows, as many as the smallest part has */
static void rows_come_together(void **state)
{
  tc_matrix A;
  tc_bittcf natural, T;
  int32_t  *order;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("stencil27_window"), 30, 1, &A));
  order = order_of(&A);
  pack(&A, NULL, &natural);
  pack(&A, order, &T);

  assert_int_equal(natural.num_clusters, 0);
  assert_true(T.num_clusters > 0);
  assert_int_equal(T.cluster_windows, 16);
  assert_true(10 * T.num_groups < 6 * natural.num_groups);

  tc_format_destroy(&tc_format_bittcf, &natural);
  tc_format_destroy(&tc_format_bittcf, &T);
  free(order);
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_once),
    cmocka_unit_test(rows_come_together),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
