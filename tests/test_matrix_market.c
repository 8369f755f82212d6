/*
  Reading Matrix Market files: every field and symmetry, and every way in which a file can be wrong.
*/
#include "test_util.h"
#include "../bench/matrix_market.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char file_name[] = "matrix_market_test_XXXXXX";

/* Writes `text` to the test's file, compressed if asked, without its last `cut` bytes, and reads it back */
static tc_status read_text(const char *text, int compressed, long cut, tc_matrix *A)
{
  if (compressed) {
    gzFile file = gzopen(file_name, "wb");

    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
    if (cut > 0) {
      FILE *size = fopen(file_name, "rb");

      fseek(size, 0, SEEK_END);
      assert_int_equal(truncate(file_name, ftell(size) - cut), 0);
      fclose(size);
    }
  } else {
    FILE *file = fopen(file_name, "wb");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
  }
  return tc_matrix_market_read(file_name, A);
}

static void expect_matrix(const char *text, int32_t num_rows, int32_t num_cols, const int64_t *row_ptr, const int32_t *col, const double *val)
{
  for (int compressed = 0; compressed < 2; ++compressed) {
    tc_matrix A;

    ASSERT_OK(read_text(text, compressed, 0, &A));
    assert_int_equal(A.num_rows, num_rows);
    assert_int_equal(A.num_cols, num_cols);
    assert_int_equal(A.nnz, row_ptr[num_rows]);
    assert_memory_equal(A.row_ptr, row_ptr, ((size_t)num_rows + 1) * sizeof *row_ptr);
    assert_memory_equal(A.col, col, (size_t)A.nnz * sizeof *col);
    assert_memory_equal(A.val, val, (size_t)A.nnz * sizeof *val);
    tc_matrix_free(&A);
  }
}

static void general_real(void **state)
{
  const int64_t row_ptr[] = {0, 2, 2, 4};
  const int32_t col[]     = {0, 3, 1, 2};
  const double  val[]     = {1.5, -2e10, 0.25, 4};

  (void)state;
  expect_matrix("%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 5\n3 3 4\n1 4 -2e10\n3 2 0.125\n1 1 1.5\n3 2 0.125\n", 3, 4, row_ptr, col, val); // any order, one entry twice
}

static void symmetric_integer(void **state)
{
  const int64_t row_ptr[] = {0, 2, 3};
  const int32_t col[]     = {0, 1, 0};
  const double  val[]     = {7, -3, -3};

  (void)state;
  expect_matrix("%%MATRIXMARKET MATRIX Coordinate Integer Symmetric\r\n2 2 2\r\n1 1 7\r\n2 1 -3\r\n", 2, 2, row_ptr, col, val);
}

static void skew_symmetric_real(void **state)
{
  const int64_t row_ptr[] = {0, 1, 2};
  const int32_t col[]     = {1, 0};
  const double  val[]     = {-5, 5};

  (void)state;
  expect_matrix("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n", 2, 2, row_ptr, col, val);
}

static void pattern(void **state)
{
  const int64_t row_ptr[] = {0, 1, 2};
  const int32_t col[]     = {2, 0};
  const double  val[]     = {1, 1};

  (void)state;
  expect_matrix("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 1\n1 3\n", 2, 3, row_ptr, col, val); // no newline is needed at the end
  expect_matrix("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 1\n1 3", 2, 3, row_ptr, col, val);
}

static void no_entries(void **state)
{
  const int64_t row_ptr[] = {0, 0, 0};

  (void)state;
  expect_matrix("%%MatrixMarket matrix coordinate real general\n2 3 0\n", 2, 3, row_ptr, NULL, NULL);
  expect_matrix("%%MatrixMarket matrix coordinate real general\n0 0 0\n", 0, 0, row_ptr, NULL, NULL);
}

static void wrong_files(void **state)
{
  static const struct {
    const char *text, *reason;
    tc_status   status;
  } wrong[] = {
    {"", "no Matrix Market banner", TC_ERR_ARG},
    {"hello\n", "no Matrix Market banner", TC_ERR_ARG},
    {"%%MatrixMarket vector coordinate real general\n", "object not supported", TC_ERR_UNSUPPORTED},
    {"%%MatrixMarket matrix array real general\n", "layout not supported", TC_ERR_UNSUPPORTED},
    {"%%MatrixMarket matrix coordinate complex general\n", "field not supported, expected real, integer or pattern: complex", TC_ERR_UNSUPPORTED},
    {"%%MatrixMarket matrix coordinate real diagonal\n", "symmetry not supported", TC_ERR_UNSUPPORTED},
    {"%%MatrixMarket matrix coordinate real general\n% only comments\n", "ends before the line of sizes", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2\n", "expected an integer", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n-2 2 0\n", "negative size", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n3000000000 2 0\n", "too large", TC_ERR_LIMIT},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", "must be square", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "truncated: 1 of 2", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n2 2 1\n", "more entries", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", ":3: an index out of range, expected 1 to 2 and 1 to 2: 3 1 1", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", "an index out of range", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 99999999999999999999 1\n", "expected an integer", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n", "expected a value", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", "expected a value", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1 1\n", "unexpected text", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", "expected an integer", TC_ERR_ARG},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "a diagonal entry", TC_ERR_ARG},
  };

  (void)state;
  for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; ++w) {
    tc_matrix       A;
    const tc_status status = read_text(wrong[w].text, 0, 0, &A);

    if (status != wrong[w].status || !strstr(tc_last_error(), wrong[w].reason)) fail_msg("case %zu: status %d, \"%s\", expected \"%s\"", w, status, tc_last_error(), wrong[w].reason);
    assert_non_null(strstr(tc_last_error(), file_name));
    assert_null(A.row_ptr);
  }
}

static void unreadable_files(void **state)
{
  tc_matrix A;

  (void)state;
  assert_int_equal(tc_matrix_market_read("no/such/file.mtx", &A), TC_ERR_ARG);
  assert_non_null(strstr(tc_last_error(), "no/such/file.mtx"));
  for (long cut = 1; cut < 60; cut += 8) {
    assert_int_equal(read_text("%%MatrixMarket matrix coordinate real general\n3 4 5\n3 3 4\n1 4 -2e10\n3 2 0.125\n1 1 1.5\n3 2 0.1257243\n", 1, cut, &A), TC_ERR_ARG);
    assert_null(A.row_ptr);
  }
}

static int make_file(void **state)
{
  const int fd = mkstemp(file_name);

  (void)state;
  return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state)
{
  (void)state;
  return unlink(file_name);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(general_real), cmocka_unit_test(symmetric_integer), cmocka_unit_test(skew_symmetric_real), cmocka_unit_test(pattern),
    cmocka_unit_test(no_entries),   cmocka_unit_test(wrong_files),       cmocka_unit_test(unreadable_files),
  };

  return cmocka_run_group_tests(tests, make_file, remove_file);
}
