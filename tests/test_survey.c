/*
  The survey of a pattern: the lists of long and heavy rows that products with dense blocks straight from CSR begin with on a device, and what a kernel is chosen by.
*/
#include "test_util.h"
#include "../src/plan/survey.h"
#include <stdlib.h>

static int32_t heavy_seen, long_seen;

/* Long rows in their order with their segments; heavy rows, all of them, the longest first */
static void check_lists(const test_case *C)
{
  int32_t    *row_ptr = malloc(((size_t)C->A.num_rows + 1) * sizeof *row_ptr), found = 0, heavy = 0;
  tc_csr_view view    = {.num_rows = C->A.num_rows, .num_cols = C->A.num_cols, .nnz = C->A.nnz, .row_ptr = row_ptr, .col = C->A.col};
  tc_survey   S;

  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= C->A.num_rows; ++i) row_ptr[i] = (int32_t)C->A.row_ptr[i];
  ASSERT_OK(tc_survey_host(&view, &S));
  tc_survey_put(&S, S.list, &view);
  ASSERT_CASE(view.heavy_from >= 32 && view.heavy_from <= TC_SPMM_SEGMENT, C, "rows are heavy from %d entries", view.heavy_from);
  for (int32_t i = 0; i < C->A.num_rows; ++i) {
    const int32_t length = row_ptr[i + 1] - row_ptr[i];

    heavy += length >= view.heavy_from && length < TC_SPMM_SEGMENT;
    if (length < TC_SPMM_SEGMENT) continue;
    ASSERT_CASE(found < view.num_long && view.long_row[found] == i, C, "long row %d is missing", i);
    ASSERT_CASE(view.long_first[found + 1] - view.long_first[found] == (length + 255) / 256, C, "segments of row %d", i);
    ++found;
  }
  ASSERT_CASE(found == view.num_long && view.num_segments == (found > 0 ? view.long_first[found] : 0), C, "%d long rows, expected %d", view.num_long, found);
  ASSERT_CASE(heavy == view.num_heavy, C, "%d heavy rows, expected %d", view.num_heavy, heavy);
  for (int32_t h = 0, before = TC_SPMM_SEGMENT, last = -1; h < heavy; ++h) {
    const int32_t i = view.heavy_row[h], length = row_ptr[i + 1] - row_ptr[i];

    ASSERT_CASE(length >= view.heavy_from && (length < before || (length == before && i > last)), C, "heavy row %d with %d entries after row %d with %d", i, length, last, before);
    before = length;
    last   = i;
  }
  heavy_seen += heavy;
  long_seen += found;
  free(S.list);
  free(row_ptr);
}

static void lists(void **state)
{
  (void)state;
  test_all_cases(check_lists);
  assert_in_range(heavy_seen, 1, INT32_MAX);
  assert_in_range(long_seen, 1, INT32_MAX);
}

/* Ten rows by hand: two windows would be 16, so that one is sampled, rows 0 to 7; of each row but the first all entries are compared */
static void counts(void **state)
{
  static const int32_t row_ptr[] = {0, 2, 4, 6, 8, 8, 9, 10, 11, 14, 15};
  static const int32_t col[]     = {0, 1, 0, 1, 0, 17, 0, 18, 40, 40, 57, 57, 58, 59, 73};
  const tc_csr_view    view      = {.num_rows = 10, .num_cols = 80, .nnz = 15, .row_ptr = row_ptr, .col = col};
  tc_survey            S;

  (void)state;
  ASSERT_OK(tc_survey_host(&view, &S));
  assert_int_equal(S.longest_row, 3);
  assert_int_equal(S.heavy_from, 32);
  assert_null(S.list);
  assert_int_equal(S.sampled, 13);
  assert_int_equal(S.far, 0 + 0 + 0 + 0 + 1 + 0 + 1 + 2 + 0); // none above 40, 57 is 17 away, two of row 8 have none above, 73 is 16 away
  assert_int_equal(S.in_windows, 11);
  assert_int_equal(S.columns, 6);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(counts)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
