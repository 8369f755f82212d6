/*
  Rows of dense blocks taken out, and such rows added, and changes of diagonals, on the device, against loops on the host, bit for bit, in both scalars, with guard words:
  test_ghost_rows [-small|-few] libaijtccusparse_cuda.so. The sizes are the same for all. Exit code 77: no usable device.
*/
#include "device_util.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, MOST_SLOTS = 3 }; // bytes; slots of a row

static int                passed, failed;
static const tc_backend  *backend;
static unsigned long long random_state = 1;

static int64_t random_below(int64_t n)
{
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (int64_t)((random_state >> 33) % (unsigned long long)n);
}

static void *bytes_new(size_t bytes)
{
  void *pointer = malloc(bytes + 1);

  if (pointer == NULL) device_die("malloc", "no host memory");
  return pointer;
}

/* Bytes on the device between guard words */
typedef struct {
  char  *block, *local;
  size_t bytes;
} device_bytes;

static device_bytes device_bytes_new(size_t bytes, const void *host)
{
  device_bytes D     = {NULL, NULL, bytes};
  char        *image = bytes_new(bytes + 2 * GUARD);
  void        *local;

  memset(image, 0xa5, bytes + 2 * GUARD);
  if (host != NULL && bytes > 0) memcpy(image + GUARD, host, bytes);
  device_check(backend, backend->alloc(bytes + 2 * GUARD, &local), "alloc");
  device_check(backend, backend->upload(local, image, bytes + 2 * GUARD, NULL), "upload");
  D.block = local;
  D.local = D.block + GUARD;
  free(image);
  return D;
}

/* Is it what is expected, with its guard words? Frees it */
static int device_bytes_are(device_bytes *D, const void *expected)
{
  char *image = bytes_new(D->bytes + 2 * GUARD);
  int   same;

  device_check(backend, backend->synchronize(NULL), "synchronize");
  device_check(backend, backend->download(image, D->block, D->bytes + 2 * GUARD, NULL), "download");
  same = D->bytes == 0 || memcmp(image + GUARD, expected, D->bytes) == 0;
  for (size_t i = 0; i < GUARD; ++i) same = same && (unsigned char)image[i] == 0xa5 && (unsigned char)image[GUARD + D->bytes + i] == 0xa5;
  free(image);
  backend->release(D->block);
  return same;
}

static void fact(int so, const char *what, tc_scalar scalar, int64_t num, int64_t n, const char *text)
{
  if (so) ++passed;
  else {
    ++failed;
    printf("FAIL %s, %lld rows, %lld columns, %s: %s\n", what, (long long)num, (long long)n, scalar == TC_SCALAR_F64 ? "double" : "float", text);
  }
}

static double number_at(tc_scalar scalar, const void *array, int64_t i)
{
  return scalar == TC_SCALAR_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void set_number(tc_scalar scalar, void *array, int64_t i, double number)
{
  if (scalar == TC_SCALAR_F64) ((double *)array)[i] = number;
  else ((float *)array)[i] = (float)number;
}

/* Numbers whose sums are rounded */
static void *numbers_new(tc_scalar scalar, int64_t n)
{
  void *array = bytes_new((size_t)n * sizeof(double));

  for (int64_t i = 0; i < n; ++i) set_number(scalar, array, i, (double)(random_below(2000001) - 1000000) / 7.0);
  return array;
}

static size_t bytes_of(tc_scalar scalar, int64_t n)
{
  return (size_t)n * (scalar == TC_SCALAR_F64 ? sizeof(double) : sizeof(float));
}

/* `num` of `rows` rows, ascending: runs and gaps */
static int64_t *rows_new(int64_t num, int64_t rows)
{
  int64_t *row = bytes_new((size_t)num * sizeof *row), next = 0;

  for (int64_t i = 0; i < num; ++i) {
    if (random_below(4) == 0) next += random_below(rows - num - (next - i) + 1);
    row[i] = next++;
  }
  return row;
}

static void check_pick(tc_scalar scalar, int64_t num, int64_t n, int listed)
{
  const int64_t rows = listed ? 2 * num + 5 : num, ld = rows + num % 3;
  void         *from = numbers_new(scalar, ld * n), *expected = bytes_new((size_t)(num * n) * sizeof(double));
  int64_t      *row = rows_new(num, rows);
  device_bytes  F = device_bytes_new(bytes_of(scalar, ld * n), from), R = device_bytes_new((size_t)num * sizeof *row, row), T = device_bytes_new(bytes_of(scalar, num * n), NULL);

  for (int64_t i = 0; i < num && listed; i += 5) row[i] = row[num - 1 - i]; // a row for several processes, in no order
  device_check(backend, backend->upload(R.local, row, (size_t)num * sizeof *row, NULL), "upload");
  for (int64_t i = 0; i < num; ++i) {
    for (int64_t j = 0; j < n; ++j) set_number(scalar, expected, j + i * n, number_at(scalar, from, (listed ? row[i] : i) + j * ld));
  }
  device_check(backend, backend->pick_rows(num, listed ? (const int64_t *)(void *)R.local : NULL, n, scalar, F.local, ld, T.local, NULL), "pick_rows");
  fact(device_bytes_are(&T, expected), listed ? "pick_rows" : "pick_rows without a list", scalar, num, n, "rows of the block");
  fact(device_bytes_are(&F, from) && device_bytes_are(&R, row), "pick_rows", scalar, num, n, "what is read stays");
  free(from);
  free(expected);
  free(row);
}

static void check_add(tc_scalar scalar, int64_t num, int64_t n)
{
  const int64_t rows = 2 * num + 5, ld = rows + num % 3;
  int64_t      *row = rows_new(num, rows), *first = bytes_new((size_t)(num + 1) * sizeof *first), *slot = bytes_new((size_t)(MOST_SLOTS * num) * sizeof *slot), slots;
  void         *from, *to = numbers_new(scalar, ld * n);
  device_bytes  F, T = device_bytes_new(bytes_of(scalar, ld * n), to), R, first_slot, of_row;

  first[0] = 0;
  for (int64_t i = 0; i < num; ++i) first[i + 1] = first[i] + 1 + random_below(MOST_SLOTS);
  slots = first[num];
  for (int64_t s = 0; s < slots; ++s) slot[s] = slots - 1 - s;
  from       = numbers_new(scalar, slots * n);
  F          = device_bytes_new(bytes_of(scalar, slots * n), from);
  R          = device_bytes_new((size_t)num * sizeof *row, row);
  first_slot = device_bytes_new((size_t)(num + 1) * sizeof *first, first);
  of_row     = device_bytes_new((size_t)slots * sizeof *slot, slot);
  for (int64_t i = 0; i < num; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = number_at(scalar, from, j + slot[first[i]] * n);

      for (int64_t s = first[i] + 1; s < first[i + 1]; ++s) {
        sum += number_at(scalar, from, j + slot[s] * n);
        if (scalar == TC_SCALAR_F32) sum = (float)sum;
      }
      set_number(scalar, to, row[i] + j * ld, number_at(scalar, to, row[i] + j * ld) + sum);
    }
  }
  device_check(backend, backend->add_rows(num, (const int64_t *)(void *)R.local, (const int64_t *)(void *)first_slot.local, (const int64_t *)(void *)of_row.local, n, scalar, F.local, T.local, ld, NULL), "add_rows");
  fact(device_bytes_are(&T, to), "add_rows", scalar, num, n, "sums of slots are added, other rows stay");
  fact(device_bytes_are(&F, from) && device_bytes_are(&R, row) && device_bytes_are(&first_slot, first) && device_bytes_are(&of_row, slot), "add_rows", scalar, num, n, "what is read stays");
  free(row);
  free(first);
  free(slot);
  free(from);
  free(to);
}

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

int main(int argc, char **args)
{
  static const int64_t nums[] = {1, 31, 32, 33, 64, 1000}, columns[] = {1, 2, 8, 31, 32, 33, 65, 128};
  int                  sm;

  for (int i = 1; i < argc; ++i) {
    if (args[i][0] != '-') backend = device_open("test_ghost_rows", args[i], &sm);
  }
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) {
      for (size_t j = 0; j < sizeof columns / sizeof *columns; ++j) {
        check_pick(scalar, nums[i], columns[j], 1);
        check_pick(scalar, nums[i], columns[j], 0);
        check_add(scalar, nums[i], columns[j]);
        for (int way = 0; way < 4; ++way) check_diagonal(scalar, (int32_t)nums[i], (int32_t)columns[j], way % 2, way / 2);
      }
    }
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
