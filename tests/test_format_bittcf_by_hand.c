/*
  Hand-checked windows of the BitTCF format.
*/
#include "bittcf_test.h"
#include "../kernels/tc_bittcf_order.h"
#include <stdlib.h>
#include <string.h>

/* 11 rows: 0 and 2 share columns 1 and 70000, row 8 is alone in the second window, row 10 has columns that 16 bits hold */
static void layout_by_hand(void **state)
{
  static const int64_t row_ptr[12] = {0, 2, 2, 5, 5, 5, 5, 5, 6, 7, 7, 13};
  static const int32_t col[13]     = {1, 70000, 1, 2, 70000, 3, 5, 4, 5, 6, 7, 8, 9};
  tc_matrix            A;
  tc_bittcf            T;

  (void)state;
  ASSERT_OK(tc_matrix_create(11, 80000, 13, &A));
  memcpy(A.row_ptr, row_ptr, sizeof row_ptr);
  memcpy(A.col, col, sizeof col);
  for (int e = 0; e < 13; ++e) A.val[e] = e + 1;

  bittcf_pack(&A, TC_PRECISION_F64, 0, &T);

  assert_int_equal(T.num_windows, 2);
  assert_int_equal(T.num_groups, 1 + 2);
  assert_int_equal(T.widest_window, 2);
  assert_int_equal(T.window[0].wide, 1);
  assert_int_equal(T.window[0].num_groups, 1); // 1, 2, 3, 70000
  assert_int_equal(T.window[0].base, 1);
  for (int at = 0; at < 4; ++at) assert_int_equal(column_of(&T, 0, at), ((const int32_t[]){1, 2, 3, 70000})[at]);
  assert_int_equal(masks_of(&T, 0)[0], 0x9 | 0xb << 8 | 0x4 << 28);
  assert_int_equal(T.window[1].wide, 0);
  assert_int_equal(T.window[1].base, 4);
  assert_int_equal(T.window[1].num_groups, 2); // 4, 5, 6, 7 | 8, 9, 9, 9
  for (int at = 0; at < 8; ++at) assert_int_equal(column_of(&T, 1, at), ((const int32_t[]){4, 5, 6, 7, 8, 9, 9, 9})[at]);
  assert_int_equal(masks_of(&T, 1)[0], 0x2 | 0xf << 8);
  assert_int_equal(masks_of(&T, 1)[1], 0x3 << 8);
  assert_int_equal(T.window[0].tiles, 0);
  assert_int_equal(T.window[1].tiles, 2); // 4 + 16 bytes, rounded up
  assert_int_equal(T.window[1].val, 6);
  for (int e = 0; e < 13; ++e) assert_true(((const double *)T.val)[e] == ((const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})[e]);
  for (int i = 0; i < 16; ++i) assert_int_equal(T.row_id[i], i < 11 ? i : TC_BITTCF_NO_ROW);
  assert_int_equal(T.csr_first[10], 7);
  tc_format_destroy(&tc_format_bittcf, &T);
  tc_matrix_free(&A);
}

/* Three long rows of 256, 513 and 700 entries around a short one */
static void long_rows_by_hand(void **state)
{
  static const int length[4] = {256, 3, 513, 700};
  tc_matrix        A;
  tc_bittcf        T;
  int64_t          e = 0;

  (void)state;
  ASSERT_OK(tc_matrix_create(4, 1000, 256 + 3 + 513 + 700, &A));
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < length[i]; ++k, ++e) {
      A.col[e] = k + i;
      A.val[e] = (double)e;
    }
    A.row_ptr[i + 1] = e;
  }

  bittcf_pack(&A, TC_PRECISION_F64, 0, &T);

  assert_int_equal(T.num_long, 3);
  assert_int_equal(T.num_segments, 1 + 3 + 3);
  assert_int_equal(T.num_windows - T.num_row_windows, 3);
  assert_int_equal(T.long_first[0], 0);
  assert_int_equal(T.long_windows, 1); // of four windows for each segment more than a third would be empty
  assert_int_equal(T.long_first[1], 3);
  for (int r = 0; r < 3; ++r) assert_int_equal(T.long_row[r], r == 0 ? 0 : r + 1);
  for (int i = 0; i < 4; ++i) assert_int_equal(T.row_id[i], i == 1 ? 1 : TC_BITTCF_NO_ROW);
  for (int s = 0; s < 3; ++s) {
    for (int r = 0; r < 3; ++r) {
      const int slot = TC_BITTCF_ROWS * s + r, used = s < T.long_segments[r];

      assert_int_equal(T.row_id[TC_BITTCF_ROWS * T.num_row_windows + slot], used ? ~slot : TC_BITTCF_NO_ROW);
      if (used) assert_int_equal(T.csr_first[TC_BITTCF_ROWS * T.num_row_windows + slot], A.row_ptr[T.long_row[r]] + 256 * s);
    }
  }
  tc_format_destroy(&tc_format_bittcf, &T);
  tc_matrix_free(&A);
}

/* 64 long rows of two segments: the first ones of 32 rows are four windows, then come the second ones, then the other 32 rows; all rows being long, there are no windows of rows */
static void long_rows_together_by_hand(void **state)
{
  enum { ROWS = 64, LENGTH = 300 };
  tc_matrix A;
  tc_bittcf T;

  (void)state;
  ASSERT_OK(tc_matrix_create(ROWS, ROWS + LENGTH, ROWS * LENGTH, &A));
  for (int r = 0; r < ROWS; ++r) {
    for (int k = 0; k < LENGTH; ++k) {
      A.col[LENGTH * r + k] = r + k;
      A.val[LENGTH * r + k] = 1;
    }
    A.row_ptr[r + 1] = LENGTH * (r + 1);
  }

  bittcf_pack(&A, TC_PRECISION_F64, 0, &T);

  assert_int_equal(T.long_windows, 4);
  assert_int_equal(T.num_row_windows, 0);
  assert_int_equal(T.num_windows, 16);
  for (int b = 0; b < 3; ++b) assert_int_equal(T.long_first[b], 8 * b);
  for (int r = 0; r < ROWS; ++r) {
    for (int s = 0; s < 2; ++s) {
      const int window = r / 32 * 8 + 4 * s + r % 32 / 8, slot = 8 * window + r % 8;

      assert_int_equal(T.row_id[slot], ~slot);
      assert_int_equal(T.csr_first[slot], LENGTH * r + 256 * s);
    }
  }
  assert_int_equal(T.window[0].base, 0);
  assert_int_equal(T.window[1].base, 8);
  assert_int_equal(T.window[4].base, 256);
  assert_int_equal(T.window[8].base, 32);
  assert_int_equal(T.window[8].num_groups, (256 + 7 + 3) / 4);
  tc_format_destroy(&tc_format_bittcf, &T);
  tc_matrix_free(&A);
}

/* 10 rows of which 1 is long: each window has the rows of 8 places, the long one leaves its place empty; and what is no permutation is refused */
static void order_by_hand(void **state)
{
  int32_t   order[10] = {9, 3, 1, 7, 0, 8, 2, 4, 6, 5};
  tc_matrix A;
  tc_csr    pattern;
  tc_bittcf T;

  (void)state;
  ASSERT_OK(tc_matrix_create(10, 300, 9 + 256, &A));
  for (int32_t i = 0; i < 10; ++i) {
    const int32_t length = i == 1 ? 256 : 1;

    A.row_ptr[i + 1] = A.row_ptr[i] + length;
    for (int32_t k = 0; k < length; ++k) A.col[A.row_ptr[i] + k] = k + 10 * i;
  }
  pattern           = tc_matrix_pattern(&A);
  pattern.row_order = order;

  ASSERT_OK(tc_format_bittcf.build(&pattern, &T));

  assert_int_equal(T.num_row_windows, 2);
  for (int32_t i = 0; i < 16; ++i) assert_int_equal(T.row_id[i], i < 10 && order[i] != 1 ? order[i] : TC_BITTCF_NO_ROW);
  assert_int_equal(T.csr_first[0], 8 + 256);
  assert_int_equal(T.window[0].num_groups, 2); // columns 0, 20, 30, 40 of rows 0, 2, 3, 4 | 70, 80, 90, 90 of rows 7, 8, 9
  for (int at = 0; at < 8; ++at) assert_int_equal(column_of(&T, 0, at), ((const int32_t[]){0, 20, 30, 40, 70, 80, 90, 90})[at]);
  assert_int_equal(masks_of(&T, 0)[0], 1 << 16 | 2 << 24 | 4 << 4 | 8u << 28);
  assert_int_equal(masks_of(&T, 0)[1], 1 << 12 | 2 << 20 | 4);
  assert_int_equal(T.window[1].num_groups, 1);
  tc_format_destroy(&tc_format_bittcf, &T);
  for (int i = 0; i < 3; ++i) {
    order[5] = i == 0 ? order[6] : i == 1 ? -1 : A.num_rows;
    assert_int_equal(tc_format_bittcf.build(&pattern, &T), TC_ERR_ARG);
  }
  pattern.row_order = NULL;
  for (int i = 0; i < 2; ++i) { // twice, and out of order, in the long row
    A.col[A.row_ptr[1] + 100] = A.col[A.row_ptr[1] + 99] - i;
    assert_int_equal(tc_format_bittcf.build(&pattern, &T), TC_ERR_UNSUPPORTED);
  }
  tc_matrix_free(&A);
}

/* 7-point stencils on 32 x 32 x 32 points: lines of 4 windows, bricks of 4 x 4 lines, 8 x 8 of them, in stacks of 5 x 5 and, at both ends, of 3 */
static void stacks_by_hand(void **state)
{
  static const struct {
    int32_t brick, y, z; // where its first line is
  } at[] = {{0, 0, 0}, {4, 4, 0}, {20, 0, 4}, {99, 16, 16}, {100, 20, 0}, {112, 20, 4}, {160, 0, 20}, {180, 0, 24}, {220, 20, 20}, {255, 28, 28}};
  tc_matrix A;
  tc_bittcf T;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("stencil7"), 32, 1, &A));

  bittcf_pack(&A, TC_PRECISION_F64, 0, &T);

  assert_int_equal(T.cluster_windows, 16);
  assert_int_equal(T.order.brick[1], 4);
  assert_int_equal(T.order.stack, 5);
  assert_int_equal(T.num_row_windows, 16 * 256);
  for (size_t i = 0; i < sizeof at / sizeof at[0]; ++i) {
    const int32_t *row = T.row_id + 8 * 16 * at[i].brick, first = 32 * (at[i].y + 32 * at[i].z) + at[i].brick % 4 * 8;

    for (int32_t line = 0; line < 16; ++line) assert_int_equal(row[8 * line], first + 32 * (line % 4 + 32 * (line / 4)));
  }
  tc_format_destroy(&tc_format_bittcf, &T);
  tc_matrix_free(&A);
}

/*
  Lines of 20 points, 3 windows, 6 of them in a plane and 5 planes, bundles of 4 x 4 lines, one bundle to a stack: at the end of a plane two lines are left, so bricks of 2 x 4 lines and
  two windows, the second of which is half empty, and on top a plane of four lines and two
*/
static void bundles_by_hand(void **state)
{
  static const struct {
    int32_t window, x, y, z; // the window's first point; x -1: it is empty
  } at[] = {{0, 0, 0, 0}, {3, 0, 3, 0}, {4, 0, 0, 1}, {15, 0, 3, 3}, {16, 8, 0, 0}, {47, 16, 3, 3}, {48, 0, 4, 0}, {49, 0, 5, 0}, {50, 0, 4, 1}, {56, 8, 4, 0}, {71, 16, 5, 3}, {72, -1, 0, 0}, {79, -1, 0, 0}, {80, 0, 0, 4}, {83, 0, 3, 4},
            {84, 8, 0, 4}, {91, 16, 3, 4}, {92, -1, 0, 0}, {96, 0, 4, 4}, {101, 16, 5, 4}, {102, -1, 0, 0}, {111, -1, 0, 0}};
  const int32_t         num_rows = 20 * 6 * 5;
  const tc_bittcf_order O        = tc_bittcf_grid(num_rows, 20, 6, 1, 4, 4);

  (void)state;
  assert_int_equal(tc_bittcf_num_row_windows(&O), 48 + 32 + 16 + 16);
  for (size_t i = 0; i < sizeof at / sizeof at[0]; ++i) {
    for (int32_t p = 0; p < TC_BITTCF_ROWS; ++p) {
      const int used = at[i].x >= 0 && at[i].x + p < 20;

      assert_int_equal(tc_bittcf_row(&O, num_rows, at[i].window, p), used ? 20 * (6 * at[i].z + at[i].y) + at[i].x + p : -1);
    }
  }
  assert_int_equal(tc_bittcf_row(&O, num_rows, 112, 0), -1);
}

/* Grids of all shapes: each row has one place, and all windows are whole bricks */
static void every_row_has_one_place(void **state)
{
  static const int bricks[][3] = {{1, 1, 1}, {1, 4, 4}, {2, 8, 1}, {3, 2, 2}, {2, 3, 2}, {3, 4, 1}, {2, 6, 1}};

  (void)state;
  for (int32_t i = 0; i < 7 * 5 * 9 * 3 * 2; ++i) {
    const int      *brick = bricks[i % 7], part = i / 945; // part: is the last plane whole?
    const int32_t   n0 = 1 + 13 * (i / 7 % 5), n1 = 1 + i / 35 % 9, n2 = 1 + 4 * (i / 315 % 3), num_rows = n0 * n1 * n2 - (part ? n0 * n1 / 3 : 0);
    tc_bittcf_order O = tc_bittcf_grid(num_rows, n0, n1, brick[0], brick[1], brick[2]);

    for (O.stack = 1; O.stack < 4; ++O.stack) {
      const int32_t windows = tc_bittcf_num_row_windows(&O);
      char         *seen    = calloc((size_t)num_rows, 1);
      int32_t       placed  = 0;

      assert_non_null(seen);
      assert_int_equal(windows % (brick[0] * brick[1] * brick[2]), 0);
      for (int32_t at = 0; at < TC_BITTCF_ROWS * windows; ++at) {
        const int32_t row = tc_bittcf_row(&O, num_rows, at / TC_BITTCF_ROWS, at % TC_BITTCF_ROWS);

        assert_in_range(row + 1, 0, num_rows);
        if (row < 0) continue;
        assert_false(seen[row]);
        seen[row] = 1;
        ++placed;
      }
      assert_int_equal(placed, num_rows);
      free(seen);
    }
  }
}

/* Lines and planes that are longer than the matrix is tall make no candidate, which would have windows without rows by the thousand; nor do grids of fewer than four lines, or planes */
static void orders_have_rows(void **state)
{
  static const struct {
    int32_t num_rows, line, plane, num;
  } cases[] = {{10000, 100, 2500, 4}, {10000, 100, 10000, 2}, {10000, 5000000, 0, 1}, {10000, 5000000, 20000000, 1}, {100, 100, 0, 1}, {300, 100, 0, 1}, {301, 100, 0, 2}, {301, 24, 100, 4}, {301, 24, 101, 2}, {8, INT32_MAX, 0, 1}};

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    tc_bittcf_strides probe[TC_BITTCF_PROBES] = {{cases[i].line, cases[i].plane}};
    tc_bittcf_order   order[TC_BITTCF_MAX_ORDERS];
    const int         num = tc_bittcf_orders(cases[i].num_rows, probe, order);

    assert_int_equal(num, cases[i].num);
    for (int o = 0; o < num; ++o) assert_true(tc_bittcf_num_row_windows(&order[o]) <= 2 * tc_bittcf_num_row_windows(&order[0]) + 1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(layout_by_hand), cmocka_unit_test(long_rows_by_hand), cmocka_unit_test(long_rows_together_by_hand), cmocka_unit_test(order_by_hand), cmocka_unit_test(stacks_by_hand),
                                     cmocka_unit_test(bundles_by_hand), cmocka_unit_test(every_row_has_one_place), cmocka_unit_test(orders_have_rows)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
