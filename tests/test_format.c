/*
  The packed formats on the host: hand-checked layouts, every entry exactly once, products with exactly the bits that docs/formats.md defines.
*/
#include "test_util.h"
#include "../kernels/tc_dasp.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  _Alignas(16) char bytes[TC_MAX_VIEW];
} view_space;

/* 8x8, rows of 5, 0, 2, 1, 2, 3, 4 and 8 entries; entry e has value e + 1 */
static const int64_t hand_row_ptr[9] = {0, 5, 5, 7, 8, 10, 13, 17, 25};
static const int32_t hand_col[25]    = {0, 2, 3, 5, 7, 1, 6, 3, 0, 7, 2, 4, 6, 1, 2, 5, 7, 0, 1, 2, 3, 4, 5, 6, 7};

static void hand_matrix(tc_matrix *A)
{
  ASSERT_OK(tc_matrix_create(8, 8, 25, A));
  memcpy(A->row_ptr, hand_row_ptr, sizeof hand_row_ptr);
  memcpy(A->col, hand_col, sizeof hand_col);
  for (int e = 0; e < 25; ++e) A->val[e] = e + 1;
}

static void expect_slots(const tc_dasp *D, int64_t slot, int64_t stride, int32_t first_entry, int32_t num)
{
  for (int32_t k = 0; k < num; ++k) {
    assert_int_equal(D->map[slot + stride * k], first_entry + k);
    assert_int_equal(D->col[slot + stride * k], hand_col[first_entry + k]);
  }
}

static void dasp_layout_by_hand(void **state)
{
  static const int32_t row_id[8] = {7, 0, 5, 6, 2, 4, 3, 1}; // medium 7 0 | four 5 6 | pair22 2, 4 | one 3 | empty 1
  tc_matrix            A;
  tc_dasp              D;
  tc_csr               pattern;

  (void)state;
  hand_matrix(&A);
  pattern = tc_matrix_pattern(&A);

  ASSERT_OK(tc_format_dasp.build(&pattern, &D));

  assert_int_equal(D.num_long, 0);
  assert_int_equal(D.num_medium, 2);
  assert_int_equal(D.num_blocks, 1);
  assert_int_equal(D.num_pair13, 0);
  assert_int_equal(D.num_four, 2);
  assert_int_equal(D.num_pair22, 1);
  assert_int_equal(D.num_one, 1);
  assert_int_equal(D.num_empty, 1);
  assert_memory_equal(D.row_id, row_id, sizeof row_id);
  assert_int_equal(D.block_ptr[0], 0); // 8 of 32 slots used: no regular tile
  assert_int_equal(D.block_ptr[1], 0);
  assert_int_equal(D.slot_four, 0);
  assert_int_equal(D.slot_pair22, 32);
  assert_int_equal(D.slot_one, 64);
  assert_int_equal(D.slot_tail, 65);
  assert_int_equal(D.num_slots, 78);
  expect_slots(&D, 0, 8, 10, 3);   // row 5, tile row 0
  expect_slots(&D, 1, 8, 13, 4);   // row 6, tile row 1
  expect_slots(&D, 32, 8, 5, 2);   // row 2, entries 0 and 1 of the tile row
  expect_slots(&D, 48, 8, 8, 2);   // row 4, entries 2 and 3
  expect_slots(&D, 64, 1, 7, 1);   // row 3
  expect_slots(&D, 65, 1, 17, 8);  // tail of row 7
  expect_slots(&D, 73, 1, 0, 5);   // tail of row 0
  assert_int_equal(D.tail_ptr[0], 65);
  assert_int_equal(D.tail_ptr[1], 78);
  assert_int_equal(D.tail_end[0], 8);
  for (int g = 1; g < 8; ++g) assert_int_equal(D.tail_end[g], 13);
  assert_int_equal(D.col[24], TC_DASP_PAD); // row 5 has three entries
  assert_int_equal(D.map[24], TC_DASP_PAD);
  tc_format_destroy(&tc_format_dasp, &D);
  tc_matrix_free(&A);
}

static void dasp_regular_tiles_by_hand(void **state)
{
  int64_t row_ptr[9];
  int32_t col[64];
  tc_csr  full = {8, 8, row_ptr, col, 1, TC_PRECISION_F64, NULL};
  tc_dasp D;

  (void)state;
  for (int i = 0; i <= 8; ++i) row_ptr[i] = 8 * i;
  for (int e = 0; e < 64; ++e) col[e] = e % 8;

  ASSERT_OK(tc_format_dasp.build(&full, &D));

  assert_int_equal(D.num_medium, 8);
  assert_int_equal(D.block_ptr[1], 64);
  assert_int_equal(D.num_slots, 64);
  for (int g = 0; g < 8; ++g) {
    for (int e = 0; e < 8; ++e) assert_int_equal(D.map[e / 4 * 32 + e % 4 * 8 + g], 8 * g + e);
  }
  tc_format_destroy(&tc_format_dasp, &D);
}

static void dasp_long_row_by_hand(void **state)
{
  enum { LENGTH = TC_DASP_SEGMENT + 2 }; // a full segment and one of 2 entries
  static int32_t col[LENGTH];
  const int64_t  row_ptr[2] = {0, LENGTH};
  const tc_csr   row        = {1, LENGTH, row_ptr, col, 1, TC_PRECISION_F64, NULL};
  tc_dasp        D;

  (void)state;
  for (int e = 0; e < LENGTH; ++e) col[e] = e;

  ASSERT_OK(tc_format_dasp.build(&row, &D));

  assert_int_equal(D.num_long, 1);
  assert_int_equal(D.num_segments, 2);
  assert_int_equal(D.long_ptr[1], 2);
  assert_int_equal(D.segment_ptr[1], TC_DASP_SEGMENT);
  assert_int_equal(D.segment_ptr[2], TC_DASP_SEGMENT + TC_DASP_TILE_SLOTS);
  for (int e = 0; e < LENGTH; ++e) assert_int_equal(D.map[e / 32 * 32 + e % 4 * 8 + e % 32 / 4], e); // row (e / 4) % 8 of tile e / 32
  tc_format_destroy(&tc_format_dasp, &D);
}

static void product_by_hand(void **state)
{
  const double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, expected[8] = {1 + 6 + 12 + 24 + 40, 0, 12 + 49, 32, 9 + 80, 33 + 60 + 91, 28 + 45 + 96 + 136, 18 + 38 + 60 + 84 + 110 + 138 + 168 + 200};
  int          num;
  tc_matrix    A;

  (void)state;
  hand_matrix(&A);
  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_format *format = tc_formats(&num)[f];
    view_space       view;
    double           z[8];

    if (format->spmv_host == NULL) continue;
    test_pack(format, &A, &view);

    ASSERT_OK(format->spmv_host(&view, x, NULL, z, 1));
    assert_memory_equal(z, expected, sizeof z);
    ASSERT_OK(format->spmv_host(&view, x, z, z, 1));
    for (int i = 0; i < 8; ++i) assert_true(z[i] == 2 * expected[i]);
    tc_format_destroy(format, &view);
  }
  tc_matrix_free(&A);
}

/* Every entry in exactly one slot, with its column; padding marked as such in both arrays */
static void check_map(const test_case *C)
{
  int num;

  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_format *format = tc_formats(&num)[f];
    unsigned char   *seen   = calloc((size_t)C->A.nnz + 1, 1);
    size_t           num_slots;
    int64_t          mapped = 0;
    view_space       view;
    int32_t         *map;
    tc_stats         stats;

    test_pack(format, &C->A, &view);
    map = test_array(format, &view, TC_ROLE_MAP, &num_slots);
    if (map == NULL) num_slots = 0; // the entries of a format without a map are looked for in its own test
    for (size_t s = 0; s < num_slots; ++s) {
      if (map[s] < 0) continue;
      ASSERT_CASE(map[s] < C->A.nnz && !seen[map[s]], C, "slot %zu maps to entry %d, which is out of range or taken", s, map[s]);
      seen[map[s]] = 1;
      ++mapped;
    }
    ASSERT_CASE(map == NULL || mapped == C->A.nnz, C, "%lld of %lld entries packed", (long long)mapped, (long long)C->A.nnz);
    tc_format_stats(format, &view, &stats);
    ASSERT_CASE(stats.num_nonzeros == C->A.nnz && (map == NULL || stats.num_slots == (int64_t)num_slots), C, "statistics say %lld of %lld", (long long)stats.num_nonzeros, (long long)stats.num_slots);
    if (strcmp(format->name, "dasp") == 0) ASSERT_CASE(stats.column_bytes == (int64_t)sizeof(int32_t) * stats.num_slots, C, "columns of %lld bytes", (long long)stats.column_bytes);
    tc_format_destroy(format, &view);
    free(seen);
  }
}

static void every_entry_once(void **state)
{
  (void)state;
  test_all_cases(check_map);
}

static void check_dasp(const test_case *C)
{
  tc_dasp        D;
  unsigned char *seen = calloc((size_t)C->A.num_rows + 1, 1);

  test_pack(&tc_format_dasp, &C->A, &D);
  for (int64_t s = 0; s < D.num_slots; ++s) {
    if (D.map[s] < 0) ASSERT_CASE(D.map[s] == TC_DASP_PAD && D.col[s] == TC_DASP_PAD, C, "padding slot %lld: map %d, column %d", (long long)s, D.map[s], D.col[s]);
    else ASSERT_CASE(D.col[s] == C->A.col[D.map[s]], C, "slot %lld: column %d, expected %d", (long long)s, D.col[s], C->A.col[D.map[s]]);
  }
  for (int32_t i = 0; i < D.num_rows; ++i) {
    ASSERT_CASE(D.row_id[i] >= 0 && D.row_id[i] < D.num_rows && !seen[D.row_id[i]], C, "row_id[%d] = %d is no permutation", i, D.row_id[i]);
    seen[D.row_id[i]] = 1;
  }
  ASSERT_CASE(D.num_long + D.num_medium + 2 * D.num_pair13 + D.num_four + 2 * D.num_pair22 + D.num_one + D.num_empty == D.num_rows, C, "row classes do not add up");
  for (int32_t b = 0; b < D.num_blocks; ++b) ASSERT_CASE((D.block_ptr[b + 1] - D.block_ptr[b]) % TC_DASP_TILE_SLOTS == 0, C, "block %d is no whole number of tiles", b);
  tc_format_destroy(&tc_format_dasp, &D);
  free(seen);
}

static void dasp_consistent(void **state)
{
  (void)state;
  test_all_cases(check_dasp);
}

/* One product: bits, bound, guard words. `add`: 0 z = Ax, 1 z = y + Ax, 2 the same in place */
static void check_one_product(const test_case *C, const tc_format *format, const void *view, const double *x, int add)
{
  const int32_t m = C->A.num_rows;
  double       *y = test_random(m, (uint64_t)C->seed + 77), *z = add == 2 ? y : test_guarded(m), *expected = test_guarded(m);
  long double  *ref = malloc(((size_t)m + 1) * sizeof *ref), *bound = malloc(((size_t)m + 1) * sizeof *bound);
  int64_t       row;
  double        worst;

  tc_canonical_spmv(&C->A, x, add ? y : NULL, expected);
  tc_oracle_spmv(&C->A, x, add ? y : NULL, add != 0, ref, bound);

  ASSERT_OK(format->spmv_host(view, x, add ? y : NULL, z, 1));

  row = tc_first_different(m, z, expected);
  ASSERT_CASE(row == m, C, "%s, add %d: row %lld is %a, expected %a", format->name, add, (long long)row, z[row], expected[row]);
  worst = tc_error_over_bound(m, z, ref, bound);
  ASSERT_CASE(worst <= 1, C, "%s, add %d: error %g times the bound", format->name, add, worst);
  ASSERT_CASE(test_guards_hold(z, m) && test_guards_hold(y, m) && test_guards_hold(x, C->A.num_cols), C, "%s, add %d: written outside", format->name, add);
  if (z != y) test_guarded_free(z);
  test_guarded_free(y);
  test_guarded_free(expected);
  free(ref);
  free(bound);
}

static void check_products(const test_case *C)
{
  double *x = test_random(C->A.num_cols, (uint64_t)C->seed + 55);
  int     num;

  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    view_space view;

    if (tc_formats(&num)[f]->spmv_host == NULL) continue;
    test_pack(tc_formats(&num)[f], &C->A, &view);
    for (int add = 0; add < 3; ++add) check_one_product(C, tc_formats(&num)[f], &view, x, add);
    tc_format_destroy(tc_formats(&num)[f], &view);
  }
  test_guarded_free(x);
}

static void products_have_the_defined_bits(void **state)
{
  (void)state;
  test_all_cases(check_products);
}

/* A NaN or an infinity in x shows in the rows that refer to it and in no other */
static void check_nonfinite(const test_case *C)
{
  static const double poison[] = {NAN, INFINITY, -INFINITY};
  const int32_t       m = C->A.num_rows, n = C->A.num_cols;
  double             *x = test_random(n, (uint64_t)C->seed), *z = test_guarded(m), *expected = test_guarded(m);
  int                 num;

  for (int p = 0; p < 3 && n > 0; ++p) {
    x[(p * 31 + C->seed) % n] = poison[p];
    x[0]                      = poison[p]; // the column that padding would most likely name
    tc_plain_spmv(&C->A, x, NULL, expected);
    for (int f = 0; f < (tc_formats(&num), num); ++f) {
      view_space view;
      int64_t    row;

      if (tc_formats(&num)[f]->spmv_host == NULL) continue;
      test_pack(tc_formats(&num)[f], &C->A, &view);
      ASSERT_OK(tc_formats(&num)[f]->spmv_host(&view, x, NULL, z, 1));
      row = tc_first_other_class(m, z, expected);
      ASSERT_CASE(row == m, C, "%s: row %lld is %g, expected %g", tc_formats(&num)[f]->name, (long long)row, z[row], expected[row]);
      tc_format_destroy(tc_formats(&num)[f], &view);
    }
  }
  test_guarded_free(x);
  test_guarded_free(z);
  test_guarded_free(expected);
}

static void nonfinite_values_stay_in_their_rows(void **state)
{
  (void)state;
  test_all_cases(check_nonfinite);
}

/* Rows whose sum is -0 give +0; y = -0 stays -0 only where the row is empty */
static void signed_zeros(void **state)
{
  const int64_t row_ptr[5] = {0, 0, 1, 3, 8};
  const int32_t col[8]     = {0, 0, 1, 0, 1, 2, 3, 4};
  const double  x[5]       = {0, 0, 0, 0, 0};
  double        z[4], y[4] = {-0.0, -0.0, -0.0, -0.0};
  tc_matrix     A;
  int           num;

  (void)state;
  ASSERT_OK(tc_matrix_create(4, 5, 8, &A));
  memcpy(A.row_ptr, row_ptr, sizeof row_ptr);
  memcpy(A.col, col, sizeof col);
  for (int e = 0; e < 8; ++e) A.val[e] = -1;
  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    view_space view;

    if (tc_formats(&num)[f]->spmv_host == NULL) continue;
    test_pack(tc_formats(&num)[f], &A, &view);

    ASSERT_OK(tc_formats(&num)[f]->spmv_host(&view, x, NULL, z, 1));
    for (int i = 0; i < 4; ++i) assert_false(signbit(z[i]));
    ASSERT_OK(tc_formats(&num)[f]->spmv_host(&view, x, y, z, 1));
    for (int i = 0; i < 4; ++i) assert_int_equal(!!signbit(z[i]), i == 0);
    tc_format_destroy(tc_formats(&num)[f], &view);
  }
  tc_matrix_free(&A);
}

static void bad_patterns_are_refused(void **state)
{
  static const struct {
    int32_t     num_rows, num_cols;
    int64_t     row_ptr[4];
    int32_t     col[3];
    const char *text;
  } bad[] = {
    {-1, 3, {0, 0, 0, 0}, {0, 0, 0}, "negative dimension"},
    {3, -1, {0, 0, 0, 0}, {0, 0, 0}, "negative dimension"},
    {3, 3, {1, 1, 2, 3}, {0, 1, 2}, "starts at 1"},
    {3, 3, {0, 2, 1, 3}, {0, 1, 2}, "decreases at row 1"},
    {3, 3, {0, 1, 2, 3}, {0, 3, 2}, "column 3 in row 1"},
    {3, 3, {0, 1, 2, 3}, {0, 1, -1}, "column -1 in row 2"},
  };
  int num;

  (void)state;
  for (size_t b = 0; b < sizeof bad / sizeof bad[0]; ++b) {
    const tc_csr A = {bad[b].num_rows, bad[b].num_cols, bad[b].row_ptr, bad[b].col, 1, TC_PRECISION_F64, NULL};

    for (int f = 0; f < (tc_formats(&num), num); ++f) {
      view_space view;

      assert_int_equal(tc_formats(&num)[f]->build(&A, &view), TC_ERR_ARG);
      if (!strstr(tc_last_error(), bad[b].text)) fail_msg("\"%s\" does not say \"%s\"", tc_last_error(), bad[b].text);
    }
  }
}

/* Whatever allocation fails, the build says so and leaves an empty view (leaks show under the address sanitizer) */
static void failed_allocations(void **state)
{
  static const view_space empty;
  tc_matrix               A;
  tc_csr                  pattern;
  int                     num;

  (void)state;
  hand_matrix(&A);
  pattern = tc_matrix_pattern(&A);
  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    const tc_format *format = tc_formats(&num)[f];
    view_space       view;
    tc_status        status;
    int              failures = 0;

    pattern.precision = format->widest;
    for (;; ++failures) {
      tc_fault_arm(TC_FAULT_ALLOC, failures + 1);
      status = format->build(&pattern, &view);
      tc_fault_arm(TC_FAULT_ALLOC, 0);
      if (status == TC_OK) break;
      assert_int_equal(status, TC_ERR_MEMORY);
      assert_memory_equal(&view, &empty, format->view_size);
    }
    assert_in_range(failures, 1, 100);
    tc_format_destroy(format, &view);
  }
  tc_matrix_free(&A);
}

static void formats_are_found_by_name(void **state)
{
  int num;

  (void)state;
  for (int f = 0; f < (tc_formats(&num), num); ++f) {
    assert_ptr_equal(tc_format_find(tc_formats(&num)[f]->name), tc_formats(&num)[f]);
    assert_in_range(tc_formats(&num)[f]->view_size, 1, TC_MAX_VIEW);
  }
  assert_null(tc_format_find("no such format"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(dasp_layout_by_hand),
    cmocka_unit_test(dasp_regular_tiles_by_hand),
    cmocka_unit_test(dasp_long_row_by_hand),
    cmocka_unit_test(product_by_hand),
    cmocka_unit_test(every_entry_once),
    cmocka_unit_test(dasp_consistent),
    cmocka_unit_test(products_have_the_defined_bits),
    cmocka_unit_test(nonfinite_values_stay_in_their_rows),
    cmocka_unit_test(signed_zeros),
    cmocka_unit_test(bad_patterns_are_refused),
    cmocka_unit_test(failed_allocations),
    cmocka_unit_test(formats_are_found_by_name),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
