/*
  Changes of diagonals, and blocks on them, on the device, against loops on the host, bit for bit, in both scalars, with guard words:
  test_diagonal [-small|-few] libaijtccusparse_cuda.so. The sizes are the same for all. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <math.h>
#include <stdlib.h>

static const tc_backend *backend;

/* Rows of 1 to `most` entries; every fifth has none on the diagonal, and stays as it is */
static void check_diagonal(tc_scalar scalar, int32_t rows, int32_t most, int add, int by_vector)
{
  const double  all = 2.75;
  int32_t      *row_ptr = bytes_new((size_t)(rows + 1) * sizeof *row_ptr), *col = bytes_new((size_t)rows * (size_t)most * sizeof *col);
  void         *by = numbers_new(scalar, rows), *val;
  tc_csr_local  A = {.num_rows = rows, .num_cols = rows + most};
  device_bytes  R, C, B, V;

  row_ptr[0] = 0;
  for (int32_t i = 0; i < rows; ++i) {
    const int32_t length = 1 + (int32_t)random_below(most), before = (int32_t)random_below((i < length ? i : length - 1) + 1), gap = i % 5 == 4;

    row_ptr[i + 1] = row_ptr[i] + length;
    for (int32_t k = 0; k < length; ++k) col[row_ptr[i] + k] = i - before + k + (gap && k >= before);
  }
  A.nnz     = row_ptr[rows];
  val       = numbers_new(scalar, A.nnz);
  R         = device_bytes_new((size_t)(rows + 1) * sizeof *row_ptr, row_ptr);
  C         = device_bytes_new((size_t)A.nnz * sizeof *col, col);
  B         = device_bytes_new(bytes_of(scalar, rows), by);
  V         = device_bytes_new(bytes_of(scalar, A.nnz), val);
  A.row_ptr = (const int32_t *)(void *)R.local;
  A.col     = (const int32_t *)(void *)C.local;
  device_check(backend, backend->set_diagonal(&A, scalar, by_vector ? B.local : NULL, all, add, V.local, NULL), "set_diagonal");
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t k = row_ptr[i]; k < row_ptr[i + 1]; ++k) {
      if (col[k] == i) set_number(scalar, val, k, (add ? number_at(scalar, val, k) : 0.0) + (by_vector ? number_at(scalar, by, i) : all));
    }
  }
  fact(device_bytes_are(&V, val), add ? "set_diagonal, added" : "set_diagonal", scalar, rows, most, "the values on the diagonal, and no others");
  fact(device_bytes_are(&R, row_ptr) && device_bytes_are(&C, col) && device_bytes_are(&B, by), "set_diagonal", scalar, rows, most, "what is read stays");
  free(row_ptr);
  free(col);
  free(by);
  free(val);
}

/* Rows of up to `most` entries around the diagonal, some of the block there and some not */
static void check_blocks(tc_scalar scalar, int32_t block_rows, int32_t most, int32_t bs)
{
  const int32_t rows = block_rows * bs;
  int32_t      *row_ptr = bytes_new((size_t)(rows + 1) * sizeof *row_ptr), *col = bytes_new((size_t)rows * (size_t)most * sizeof *col);
  void         *val, *expected;
  tc_csr_local  A = {.num_rows = rows, .num_cols = rows};
  device_bytes  R, C, V, B;

  row_ptr[0] = 0;
  for (int32_t i = 0; i < rows; ++i) {
    row_ptr[i + 1] = row_ptr[i];
    for (int32_t j = i > most ? i - most : 0; j < rows && j <= i + most && row_ptr[i + 1] - row_ptr[i] < most; ++j) {
      if (random_below(3)) col[row_ptr[i + 1]++] = j;
    }
  }
  A.nnz    = row_ptr[rows];
  val      = numbers_new(scalar, A.nnz);
  expected = bytes_new(bytes_of(scalar, (int64_t)rows * bs));
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t k = 0; k < bs; ++k) set_number(scalar, expected, (int64_t)i * bs + k, 0.0);
    for (int32_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) {
      if (col[e] / bs == i / bs) set_number(scalar, expected, (int64_t)i * bs + col[e] % bs, number_at(scalar, val, e));
    }
  }
  R         = device_bytes_new((size_t)(rows + 1) * sizeof *row_ptr, row_ptr);
  C         = device_bytes_new((size_t)A.nnz * sizeof *col, col);
  V         = device_bytes_new(bytes_of(scalar, A.nnz), val);
  B         = device_bytes_new(bytes_of(scalar, (int64_t)rows * bs), NULL);
  A.row_ptr = (const int32_t *)(void *)R.local;
  A.col     = (const int32_t *)(void *)C.local;
  device_check(backend, backend->get_blocks(&A, bs, scalar, V.local, B.local, NULL), "get_blocks");
  fact(device_bytes_are(&B, expected), "get_blocks", scalar, rows, bs, "the blocks on the diagonal");
  fact(device_bytes_are(&R, row_ptr) && device_bytes_are(&C, col) && device_bytes_are(&V, val), "get_blocks", scalar, rows, bs, "what is read stays");
  free(row_ptr);
  free(col);
  free(val);
  free(expected);
}

int main(int argc, char **args)
{
  static const int32_t nums[] = {1, 31, 32, 33, 64, 1000}, lengths[] = {1, 2, 8, 31, 32, 33, 65};

  backend = device_bytes_open("test_diagonal", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) {
      for (size_t j = 0; j < sizeof lengths / sizeof *lengths; ++j) {
        for (int way = 0; way < 4; ++way) check_diagonal(scalar, nums[i], lengths[j], way % 2, way / 2);
        for (int32_t bs = 1; bs < 8; ++bs) check_blocks(scalar, nums[i], lengths[j], bs);
      }
    }
  }
  return facts_end();
}
