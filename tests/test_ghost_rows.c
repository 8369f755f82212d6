/*
  Rows of dense blocks taken out, and such rows added, on the device, against loops on the host, bit for bit, in both scalars, with guard words:
  test_ghost_rows [-small|-few] libaijtccusparse_cuda.so. The sizes are the same for all. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <stdlib.h>

enum { MOST_SLOTS = 3 }; // of a row

static const tc_backend *backend;

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

int main(int argc, char **args)
{
  static const int64_t nums[] = {1, 31, 32, 33, 64, 1000}, columns[] = {1, 2, 8, 31, 32, 33, 65, 128};

  backend = device_bytes_open("test_ghost_rows", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) {
      for (size_t j = 0; j < sizeof columns / sizeof *columns; ++j) {
        check_pick(scalar, nums[i], columns[j], 1);
        check_pick(scalar, nums[i], columns[j], 0);
        check_add(scalar, nums[i], columns[j]);
      }
    }
  }
  return facts_end();
}
