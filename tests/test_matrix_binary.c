/*
  Reading PETSc's binary matrix files: what MatView() writes, every way in which a file can be wrong, and telling the formats apart.
*/
#include "test_util.h"
#include "../bench/matrix_binary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char file_name[] = "matrix_binary_test_XXXXXX";

/* A file in the making: big endian numbers one after the other */
typedef struct {
  unsigned char bytes[4096];
  size_t        size;
} file_text;

static void put(file_text *F, uint64_t number, int size)
{
  for (int b = size - 1; b >= 0; --b) F->bytes[F->size++] = (unsigned char)(number >> (8 * b));
}

static void put_double(file_text *F, double number)
{
  uint64_t bits;

  memcpy(&bits, &number, sizeof bits);
  put(F, bits, 8);
}

/* Class id, rows, columns, nonzeros, lengths of rows, columns, values */
static file_text matrix_file(int size, const int64_t head[4], const int64_t *index, int num_indices, const double *val, int num_values)
{
  file_text F = {.size = 0};

  for (int h = 0; h < 4; ++h) put(&F, (uint64_t)head[h], size);
  for (int i = 0; i < num_indices; ++i) put(&F, (uint64_t)index[i], size);
  for (int v = 0; v < num_values; ++v) put_double(&F, val[v]);
  return F;
}

/* Writes the file, compressed if asked, without its last `cut` bytes, and reads it back */
static tc_status read_back(const file_text *F, int compressed, size_t cut, tc_matrix *A)
{
  FILE *file;

  if (compressed) {
    gzFile gz = gzopen(file_name, "wb");

    assert_non_null(gz);
    assert_int_equal(gzwrite(gz, F->bytes, (unsigned)F->size), F->size);
    assert_int_equal(gzclose(gz), Z_OK);
    file = fopen(file_name, "rb");
    fseek(file, 0, SEEK_END);
    assert_int_equal(truncate(file_name, ftell(file) - (long)cut), 0);
  } else {
    file = fopen(file_name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(F->bytes, 1, F->size - cut, file), F->size - cut);
  }
  fclose(file);
  return tc_matrix_binary_read(file_name, A);
}

/*
  [ 1.5  0  0  -2e10 ]
  [  0   0  0    0   ]
  [  0  .25 4    0   ]
*/
static const int64_t head[] = {1211216, 3, 4, 4}, indices[] = {2, 0, 2, 0, 3, 1, 2}, unsorted[] = {2, 0, 2, 3, 0, 1, 1};
static const double  values[] = {1.5, -2e10, 0.25, 4}, values_unsorted[] = {-2e10, 1.5, 0.125, 0.125};

static void expect_matrix(const file_text *F)
{
  static const int64_t row_ptr[] = {0, 2, 2, 4};
  static const int32_t col[]     = {0, 3, 1, 2};

  for (int compressed = 0; compressed < 2; ++compressed) {
    tc_matrix A;

    ASSERT_OK(read_back(F, compressed, 0, &A));
    assert_int_equal(A.num_rows, 3);
    assert_int_equal(A.num_cols, 4);
    assert_int_equal(A.nnz, 4);
    assert_memory_equal(A.row_ptr, row_ptr, sizeof row_ptr);
    assert_memory_equal(A.col, col, sizeof col);
    assert_memory_equal(A.val, values, sizeof values);
    tc_matrix_free(&A);
  }
}

static void good_files(void **state)
{
  file_text F = matrix_file(4, head, indices, 7, values, 4);

  (void)state;
  expect_matrix(&F);
  put(&F, 1211214, 4); // a vector may follow, as in PETSc's own data files
  put(&F, 1, 4);
  put_double(&F, 7);
  expect_matrix(&F);
  F = matrix_file(8, head, indices, 7, values, 4);
  expect_matrix(&F);
}

static void unsorted_columns(void **state)
{
  const file_text F = matrix_file(4, head, unsorted, 7, values_unsorted, 4);
  tc_matrix       A;

  (void)state;
  ASSERT_OK(read_back(&F, 0, 0, &A));
  assert_int_equal(A.nnz, 3);
  assert_true(A.col[0] == 0 && A.val[0] == 1.5 && A.col[1] == 3 && A.col[2] == 1 && A.val[2] == 0.25);
  tc_matrix_free(&A);
}

static void no_entries(void **state)
{
  const int64_t   empty[] = {1211216, 2, 3, 0}, nothing[] = {1211216, 0, 0, 0}, lengths[] = {0, 0};
  const file_text F = matrix_file(4, empty, lengths, 2, NULL, 0), G = matrix_file(4, nothing, NULL, 0, NULL, 0);
  tc_matrix       A;

  (void)state;
  ASSERT_OK(read_back(&F, 0, 0, &A));
  assert_true(A.num_rows == 2 && A.num_cols == 3 && A.nnz == 0);
  tc_matrix_free(&A);
  ASSERT_OK(read_back(&G, 0, 0, &A));
  assert_true(A.num_rows == 0 && A.num_cols == 0 && A.nnz == 0);
  tc_matrix_free(&A);
}

static void expect_error(const file_text *F, int compressed, size_t cut, tc_status expected, const char *reason)
{
  tc_matrix       A;
  const tc_status status = read_back(F, compressed, cut, &A);

  if (status != expected || !strstr(tc_last_error(), reason)) fail_msg("status %d, \"%s\", expected \"%s\"", status, tc_last_error(), reason);
  assert_non_null(strstr(tc_last_error(), file_name));
  assert_null(A.row_ptr);
}

static void truncated_files(void **state)
{
  const file_text F = matrix_file(4, head, indices, 7, values, 4);

  (void)state;
  for (size_t cut = 1; cut <= F.size; ++cut) expect_error(&F, 0, cut, cut == 16 ? TC_ERR_UNSUPPORTED : TC_ERR_ARG, cut == 16 ? "single precision" : "truncated");
  for (size_t cut = 1; cut < 40; cut += 4) expect_error(&F, 1, cut, TC_ERR_ARG, "");
}

static void wrong_files(void **state)
{
  static const struct {
    int64_t     head[4], indices[7];
    const char *reason;
    tc_status   status;
  } wrong[] = {
    {{1211214, 3, 4, 4},          {2, 0, 2, 0, 3, 1, 2}, "a vector",               TC_ERR_ARG        },
    {{1211217, 3, 4, 4},          {2, 0, 2, 0, 3, 1, 2}, "no matrix",              TC_ERR_ARG        },
    {{0x48656c6c, 3, 4, 4},       {2, 0, 2, 0, 3, 1, 2}, "no matrix",              TC_ERR_ARG        },
    {{1211216, 3, 4, -1},         {2, 0, 2, 0, 3, 1, 2}, "a dense matrix",         TC_ERR_UNSUPPORTED},
    {{1211216, -3, 4, 4},         {2, 0, 2, 0, 3, 1, 2}, "a negative size",        TC_ERR_ARG        },
    {{1211216, 3, 4, 5},          {2, 0, 2, 0, 3, 1, 2}, "do not add up",          TC_ERR_ARG        },
    {{1211216, 2147483647, 4, 4}, {2, 0, 2, 0, 3, 1, 2}, "the file is truncated",  TC_ERR_ARG        },
    {{1211216, 3, 4, 4},          {5, 0, 2, 0, 3, 1, 2}, "longer than there are",  TC_ERR_ARG        },
    {{1211216, 3, 4, 4},          {-1, 3, 2, 0, 3, 1, 2}, "longer than there are", TC_ERR_ARG        },
    {{1211216, 3, 4, 4},          {2, 0, 2, 0, 4, 1, 2}, "a column out of range",  TC_ERR_ARG        },
    {{1211216, 3, 4, 4},          {2, 0, 2, 0, -1, 1, 2}, "a column out of range", TC_ERR_ARG        },
  };
  const int64_t wide[] = {1211216, INT64_C(1) << 40, 4, 4};
  const double  twice[8] = {1.5, 0, -2e10, 0, 0.25, 0, 4, 0};
  file_text     F;
  tc_matrix     A;

  (void)state;
  for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; ++w) {
    F = matrix_file(4, wrong[w].head, wrong[w].indices, 7, values, 4);
    expect_error(&F, 0, 0, wrong[w].status, wrong[w].reason);
  }
  F = matrix_file(8, wide, indices, 7, values, 4);
  expect_error(&F, 0, 0, TC_ERR_LIMIT, "too large");
  F = matrix_file(4, head, indices, 7, twice, 8);
  expect_error(&F, 0, 0, TC_ERR_UNSUPPORTED, "complex");
  F = matrix_file(4, head, indices, 7, twice, 6);
  expect_error(&F, 1, 0, TC_ERR_ARG, "unexpected data");
  assert_int_equal(tc_matrix_binary_read("no/such/file.petsc", &A), TC_ERR_ARG);
  assert_non_null(strstr(tc_last_error(), "no/such/file.petsc"));
}

static void either_format(void **state)
{
  const file_text F = matrix_file(4, head, indices, 7, values, 4);
  FILE           *file;
  tc_matrix       A;

  (void)state;
  for (int compressed = 0; compressed < 2; ++compressed) {
    ASSERT_OK(read_back(&F, compressed, 0, &A));
    tc_matrix_free(&A);
    ASSERT_OK(tc_matrix_file_read(file_name, &A));
    assert_int_equal(A.num_cols, 4);
    tc_matrix_free(&A);
  }
  file = fopen(file_name, "wb");
  fputs("%%MatrixMarket matrix coordinate real general\n2 5 1\n1 1 1\n", file);
  fclose(file);
  ASSERT_OK(tc_matrix_file_read(file_name, &A));
  assert_int_equal(A.num_cols, 5);
  tc_matrix_free(&A);
  assert_int_equal(tc_matrix_file_read("no/such/file", &A), TC_ERR_ARG);
  assert_non_null(strstr(tc_last_error(), "no/such/file"));
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
    cmocka_unit_test(good_files), cmocka_unit_test(unsorted_columns), cmocka_unit_test(no_entries), cmocka_unit_test(truncated_files), cmocka_unit_test(wrong_files), cmocka_unit_test(either_format),
  };

  return cmocka_run_group_tests(tests, make_file, remove_file);
}
