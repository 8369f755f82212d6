#include "narrow_check.h"
#include "../kernels/tc_bcsr.h"
#include "../bench/generators.h"
#include "../bench/oracle.h"
#include "device_util.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *new_numbers(int64_t n, size_t size)
{
  void *pointer = calloc((size_t)n + 1, size);

  if (pointer == NULL) device_die("narrow_check", "no host memory");
  return pointer;
}

void narrow_spread_values(tc_matrix *A)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) A->val[e] = ldexp(A->val[e], 37 * i % 301 - 150 + (int)(e % 7) * 3);
  }
}

int32_t narrow_segment(const char *format)
{
  return strcmp(format, "bcsr") == 0 ? TC_BCSR_PIECE * TC_BCSR_DENSE : TC_SPMM_SEGMENT;
}

narrow_expected narrow_expect(const tc_matrix *A, tc_precision precision, int32_t segment, int32_t n, int32_t step, int floats)
{
  static const int powers[] = {0, 3, -66, 64, 200, -300, 20, -1, 500, -64, 65}; // those of a column
  narrow_expected  E        = {A, precision, n, step, new_numbers((int64_t)n * A->num_cols, sizeof(double)), new_numbers((int64_t)n * A->num_rows, sizeof(long double)), new_numbers((int64_t)n * A->num_rows, sizeof(long double))};

  tc_random_normal((int64_t)n * A->num_cols, 3, E.b);
  for (int32_t j = 0; j < n; ++j) {
    double *column = E.b + (int64_t)j * A->num_cols;

    for (int32_t k = 0; k < A->num_cols; ++k) column[k] = floats ? (float)column[k] : ldexp(column[k], powers[j % 11] - k % 5);
    if (j % step == 0) tc_oracle_narrow_spmm(A, column, precision, segment, E.ref + (int64_t)j * A->num_rows, E.bound + (int64_t)j * A->num_rows);
  }
  return E;
}

void narrow_forget(narrow_expected *E)
{
  free(E->b);
  free(E->ref);
  free(E->bound);
}

void narrow_defined_product(const narrow_expected *E, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc)
{
  const tc_matrix      *A = E->A;
  int                   num, k = 0;
  const tc_spmm_kernel *kernels = tc_backend_host()->spmm_kernels(&num);
  int32_t              *row_ptr = new_numbers(A->num_rows + 1, sizeof *row_ptr);
  const tc_csr_view     view    = {.num_rows = A->num_rows, .num_cols = A->num_cols, .nnz = A->nnz, .row_ptr = row_ptr, .col = A->col, .val = A->val};
  tc_spmm_args          args    = {.n = n, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .add = add};

  while (k < num && (strcmp(kernels[k].format, "csr") != 0 || kernels[k].precision != E->precision)) ++k;
  if (k == num) device_die("narrow_defined_product", "the host has no such kernel");
  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  args.scratch = new_numbers((int64_t)(kernels[k].scratch(&view, &args) / sizeof(double)), sizeof(double));
  if (kernels[k].multiply(&view, &args, NULL) != TC_OK) device_die("narrow_defined_product", tc_last_error());
  free(args.scratch);
  free(row_ptr);
}

double *narrow_input(const narrow_expected *E, int32_t n, int64_t ldb)
{
  double        *b    = new_numbers(n * ldb, sizeof *b);
  unsigned char *used = new_numbers(ldb, 1);

  for (int64_t e = 0; e < E->A->nnz; ++e) used[E->A->col[e]] = 1;
  for (int64_t i = 0; i < n * ldb; ++i) b[i] = used[i % ldb] ? E->b[i / ldb * E->A->num_cols + i % ldb] : NAN;
  free(used);
  return b;
}

int narrow_is_right(const narrow_expected *E, int32_t n, const double *before, const double *c, int64_t ldc, double unit)
{
  const int32_t m = E->A->num_rows;

  for (int64_t i = 0; i < n * ldc; ++i) {
    const int64_t     row = i % ldc, j = i / ldc, at = j * m + row;
    const long double added = before && row < m ? before[i] : 0;

    if (row >= m && isnan(c[i])) continue;
    if (row < m && j % E->step != 0 && isfinite(c[i])) continue;
    const long double error = row < m ? fabsl(c[i] - added - E->ref[at]) : NAN, bound = row < m ? E->bound[at] + unit * (fabsl(added) + fabsl(E->ref[at]) + E->bound[at]) : 0;

    if (error <= bound) continue;
    printf("element (%lld, %lld) is %a, expected %La to within %La\n", (long long)row, (long long)j, c[i], row < m ? added + E->ref[at] : NAN, bound);
    return 0;
  }
  return 1;
}
