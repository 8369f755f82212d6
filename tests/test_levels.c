/*
  Levels of rows: in the order each row comes behind those that it refers to, by level and in natural order within one, and no level is more than it has to be.
*/
#include "test_util.h"
#include "../src/plan/levels.h"
#include <stdlib.h>

static int64_t levels_seen;

/* The level of row i by its definition, with those of the rows that it refers to */
static int32_t level_of(const tc_matrix *A, int upper, int32_t i, const int32_t *level)
{
  int32_t last = 0;

  for (int64_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) {
    const int32_t j = A->col[k];

    if ((upper ? j > i : j < i) && level[j] > last) last = level[j];
  }
  return last + 1;
}

static void check_order(const test_case *C)
{
  const int32_t n   = C->A.num_rows;
  const tc_csr  csr = tc_matrix_pattern(&C->A);
  int32_t      *order, *level, num;

  if (C->A.num_rows != C->A.num_cols) return;
  order = malloc(((size_t)n + 1) * sizeof *order);
  level = calloc((size_t)n + 1, sizeof *level);
  assert_true(order && level);
  for (int upper = 0; upper < 2; ++upper) {
    int32_t most = 0;

    ASSERT_OK(tc_levels_order(&csr, upper, order, &num));
    for (int32_t i = 0; i < n; ++i) level[i] = 0;
    for (int32_t p = 0; p < n; ++p) {
      const int32_t i = order[p];

      ASSERT_CASE(i >= 0 && i < n && level[i] == 0, C, "row %d in place %d, a second time or none", i, p);
      for (int64_t k = C->A.row_ptr[i]; k < C->A.row_ptr[i + 1]; ++k) {
        const int32_t j = C->A.col[k];

        ASSERT_CASE(!(upper ? j > i : j < i) || level[j] > 0, C, "row %d comes before row %d, which it refers to", i, j);
      }
      level[i] = level_of(&C->A, upper, i, level);
      ASSERT_CASE(p == 0 || level[order[p - 1]] < level[i] || (level[order[p - 1]] == level[i] && order[p - 1] < i), C, "row %d of level %d behind row %d of level %d", i, level[i], order[p - 1], level[order[p - 1]]);
      if (level[i] > most) most = level[i];
    }
    ASSERT_CASE(num == most, C, "%d levels, expected %d", num, most);
    levels_seen += num;
  }
  free(order);
  free(level);
}

static void orders(void **state)
{
  (void)state;
  test_all_cases(check_order);
  assert_in_range(levels_seen, 100, INT32_MAX);
}

/* Four rows by hand; and none */
static void by_hand(void **state)
{
  static const int64_t row_ptr[] = {0, 2, 4, 5, 8}, none[] = {0};
  static const int32_t col[]     = {0, 3, 1, 2, 2, 0, 1, 3};
  const tc_csr         A         = {.num_rows = 4, .num_cols = 4, .row_ptr = row_ptr, .col = col}, empty = {.row_ptr = none};
  int32_t              order[4], num;

  (void)state;
  ASSERT_OK(tc_levels_order(&A, 0, order, &num));
  assert_int_equal(num, 2);
  for (int32_t i = 0; i < 4; ++i) assert_int_equal(order[i], i);
  ASSERT_OK(tc_levels_order(&A, 1, order, &num));
  assert_int_equal(num, 2);
  assert_int_equal(order[0], 2);
  assert_int_equal(order[1], 3);
  assert_int_equal(order[2], 0);
  assert_int_equal(order[3], 1);
  ASSERT_OK(tc_levels_order(&empty, 0, order, &num));
  assert_int_equal(num, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(by_hand)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
