/*
  What makes graphs: sums of blocks, the transpose's added, and scaled, on the device, against loops on the host, bit for bit, in both scalars, with guard words:
  test_graph [-small|-few] libaijtccusparse_cuda.so. The sizes are the same for all. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <math.h>
#include <stdlib.h>

static const tc_backend *backend;

/* Up to `most` blocks of bs x bs in a row of blocks; not so if a row has one column elsewhere, `spoil` 1, or an entry less, `spoil` 2 */
static void check_collapse(tc_scalar scalar, int32_t block_rows, int32_t most, int32_t bs, int spoil)
{
  const int32_t rows = block_rows * bs, zero = 0, spoilt = (int32_t)random_below(rows);
  int32_t      *row_ptr = bytes_new((size_t)(rows + 1) * sizeof *row_ptr), *col = bytes_new((size_t)rows * (size_t)(most * bs) * sizeof *col), *length = bytes_new((size_t)block_rows * sizeof *length), irregular;
  double       *expected;
  void         *val, *sums;
  tc_csr_local  A = {.num_rows = rows, .num_cols = rows + 2 * most * bs};
  device_bytes  R, C, V, S, I;
  int64_t       num = 0;

  row_ptr[0] = 0;
  for (int32_t i = 0; i < block_rows; ++i) length[i] = spoil && i == spoilt / bs ? 1 : (int32_t)random_below(most + 1);
  for (int32_t i = 0; i < rows; ++i) {
    const int32_t n = length[i / bs] * bs - (spoil == 2 && i == spoilt);

    row_ptr[i + 1] = row_ptr[i] + n;
    for (int32_t k = 0; k < n; ++k) col[row_ptr[i] + k] = (i / bs + k / bs * 2) * bs + k % bs + (spoil == 1 && i == spoilt && k == bs - 1);
  }
  A.nnz    = row_ptr[rows];
  val      = numbers_new(scalar, A.nnz);
  expected = bytes_new((size_t)A.nnz * sizeof *expected);
  sums     = expected;
  for (int32_t i = 0; i < block_rows && !spoil; ++i) {
    for (int32_t b = 0; b < length[i]; ++b, ++num) {
      double sum = 0.0;

      for (int32_t e = 0; e < bs * bs; ++e) {
        sum += fabs(number_at(scalar, val, row_ptr[i * bs + e / bs] + b * bs + e % bs));
        if (scalar == TC_SCALAR_F32) sum = (float)sum;
      }
      set_number(scalar, sums, num, sum);
    }
  }
  R         = device_bytes_new((size_t)(rows + 1) * sizeof *row_ptr, row_ptr);
  C         = device_bytes_new((size_t)A.nnz * sizeof *col, col);
  V         = device_bytes_new(bytes_of(scalar, A.nnz), val);
  S         = device_bytes_new(bytes_of(scalar, A.nnz / (bs * bs)), NULL);
  I         = device_bytes_new(sizeof zero, &zero);
  A.row_ptr = (const int32_t *)(void *)R.local;
  A.col     = (const int32_t *)(void *)C.local;
  device_check(backend, backend->collapse(&A, bs, scalar, V.local, S.local, (int32_t *)(void *)I.local, NULL), "collapse");
  device_check(backend, backend->download(&irregular, I.local, sizeof irregular, NULL), "download");
  if (spoil) { // anything, within its bounds
    device_check(backend, backend->download(sums, S.local, S.bytes, NULL), "download");
    fact(irregular != 0, "collapse", scalar, rows, bs, spoil == 1 ? "a column elsewhere is noticed" : "a row that is shorter is noticed");
  } else fact(irregular == 0, "collapse", scalar, rows, bs, "blocks are blocks");
  fact(device_bytes_are(&S, sums), "collapse", scalar, rows, bs, "the sums of blocks");
  fact(device_bytes_are(&I, &irregular) && device_bytes_are(&R, row_ptr) && device_bytes_are(&C, col) && device_bytes_are(&V, val), "collapse", scalar, rows, bs, "what is read stays");
  free(row_ptr);
  free(col);
  free(length);
  free(val);
  free(expected);
}

/* As the scalar has it */
static double rounded(tc_scalar scalar, double number)
{
  return scalar == TC_SCALAR_F32 ? (float)number : number;
}

/* The entry of the graph in that row and column, -1: there is none */
static int64_t entry_at(const int32_t *begin, const int32_t *col, int32_t row, int32_t column)
{
  for (int32_t k = begin[row]; k < begin[row + 1]; ++k) {
    if (col[k] == column) return k;
  }
  return -1;
}

/* A graph of `rows` whose entries, some on the diagonal, have others in its transpose, but for one if that is asked for, where `most` is less than `rows`; the matrix has bs x bs blocks there. begin [rows + 1], col; entries are returned */
static int32_t graph_new(int32_t rows, int32_t most, int lone, int32_t **begin, int32_t **col)
{
  const int32_t reach = most < rows ? most : rows;
  char         *has = bytes_new((size_t)rows * (size_t)(2 * reach + 1)); /* by how far to the right of the diagonal, from -reach on */
  int32_t       num = 0;

  for (int64_t k = 0; k < (int64_t)rows * (2 * reach + 1); ++k) has[k] = 0;
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t d = 0; d <= reach && i + d < rows; ++d) {
      const char there = random_below(3) != 0;

      has[(int64_t)i * (2 * reach + 1) + reach + d]       = there;
      has[(int64_t)(i + d) * (2 * reach + 1) + reach - d] = there;
    }
  }
  has[reach] = 1; /* one there is */
  if (lone) {
    has[2 * reach]                        = 0; /* the first row, `reach` to the right */
    has[(int64_t)reach * (2 * reach + 1)] = 1;
  }
  *begin      = bytes_new((size_t)(rows + 1) * sizeof **begin);
  *col        = bytes_new((size_t)rows * (size_t)(2 * reach + 1) * sizeof **col);
  (*begin)[0] = 0;
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t d = -reach; d <= reach; ++d) {
      if (has[(int64_t)i * (2 * reach + 1) + reach + d]) (*col)[num++] = i + d;
    }
    (*begin)[i + 1] = num;
  }
  free(has);
  return num;
}

/* With entries up to `most` away from the diagonal */
static void check_mirror(tc_scalar scalar, int32_t rows, int32_t most, int32_t bs, int lone)
{
  const int32_t zero = 0;
  int32_t      *begin, *graph_col, num = graph_new(rows, most, lone, &begin, &graph_col), word;
  int32_t      *row_ptr = bytes_new((size_t)(rows * bs + 1) * sizeof *row_ptr), *col = bytes_new((size_t)num * (size_t)(bs * bs) * sizeof *col);
  void         *sums = numbers_new(scalar, num), *both = numbers_new(scalar, num), *factors = numbers_new(scalar, rows);
  tc_csr_local  A = {.num_rows = rows * bs, .num_cols = rows * bs, .nnz = (int64_t)num * bs * bs};
  device_bytes  R, C, S, B, F, L;

  row_ptr[0] = 0;
  for (int32_t i = 0; i < rows * bs; ++i) {
    const int32_t of = i / bs, n = (begin[of + 1] - begin[of]) * bs;

    row_ptr[i + 1] = row_ptr[i] + n;
    for (int32_t k = 0; k < n; ++k) col[row_ptr[i] + k] = graph_col[begin[of] + k / bs] * bs + k % bs;
  }
  for (int32_t i = 0; i < rows; i += 3) { /* zeros on the diagonal are left alone */
    const int64_t k = entry_at(begin, graph_col, i, i);

    if (k >= 0) set_number(scalar, sums, k, 0.0);
  }
  R         = device_bytes_new((size_t)(rows * bs + 1) * sizeof *row_ptr, row_ptr);
  C         = device_bytes_new((size_t)A.nnz * sizeof *col, col);
  S         = device_bytes_new(bytes_of(scalar, num), sums);
  B         = device_bytes_new(bytes_of(scalar, num), NULL);
  F         = device_bytes_new(bytes_of(scalar, rows), NULL);
  L         = device_bytes_new(sizeof zero, &zero);
  A.row_ptr = (const int32_t *)(void *)R.local;
  A.col     = (const int32_t *)(void *)C.local;
  device_check(backend, backend->mirror(&A, bs, scalar, S.local, B.local, (int32_t *)(void *)L.local, NULL), "mirror");
  device_check(backend, backend->download(&word, L.local, sizeof word, NULL), "download");
  fact((word != 0) == lone, "mirror", scalar, rows, bs, lone ? "an entry without another is noticed" : "all entries have another");
  if (!lone) {
    for (int32_t i = 0; i < rows; ++i) {
      for (int32_t k = begin[i]; k < begin[i + 1]; ++k) set_number(scalar, both, k, rounded(scalar, number_at(scalar, sums, k) + number_at(scalar, sums, entry_at(begin, graph_col, graph_col[k], i))));
    }
    fact(device_bytes_are(&B, both), "mirror", scalar, rows, bs, "the transpose is added");
  }
  device_check(backend, backend->scale_graph(&A, bs, scalar, S.local, F.local, NULL), "scale_graph");
  for (int32_t i = 0; i < rows; ++i) {
    const int64_t k = entry_at(begin, graph_col, i, i);
    const double  d = k < 0 ? 0.0 : number_at(scalar, sums, k);

    set_number(scalar, factors, i, d == 0.0 ? 0.0 : rounded(scalar, sqrt(fabs(rounded(scalar, 1.0 / d)))));
  }
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t k = begin[i]; k < begin[i + 1]; ++k) set_number(scalar, sums, k, rounded(scalar, rounded(scalar, number_at(scalar, sums, k) * number_at(scalar, factors, i)) * number_at(scalar, factors, graph_col[k])));
  }
  fact(device_bytes_are(&F, factors), "scale_graph", scalar, rows, bs, "what makes ones of the diagonal");
  fact(device_bytes_are(&S, sums), "scale_graph", scalar, rows, bs, "the scaled entries");
  fact(device_bytes_are(&R, row_ptr) && device_bytes_are(&C, col), "graph", scalar, rows, bs, "what is read stays");
  free(begin);
  free(graph_col);
  free(row_ptr);
  free(col);
  free(sums);
  free(both);
  free(factors);
}

int main(int argc, char **args)
{
  static const int32_t nums[] = {1, 31, 32, 33, 64, 1000}, lengths[] = {1, 2, 8, 31, 32, 33, 65}, reaches[] = {1, 3, 20, 40};

  backend = device_bytes_open("test_graph", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) {
      for (size_t j = 0; j < sizeof lengths / sizeof *lengths; ++j) {
        for (int32_t bs = 2; bs < 7; ++bs) {
          for (int spoil = 0; spoil < 3; ++spoil) check_collapse(scalar, nums[i], lengths[j], bs, spoil);
        }
      }
      for (size_t j = 0; j < sizeof reaches / sizeof *reaches; ++j) {
        for (int32_t bs = 1; bs < 5; ++bs) {
          for (int lone = 0; lone <= (reaches[j] < nums[i]); ++lone) check_mirror(scalar, nums[i], reaches[j], bs, lone);
        }
      }
    }
  }
  return facts_end();
}
