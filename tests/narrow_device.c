#include "narrow_device.h"
#include "device_cases.h"
#include "narrow_check.h"
#include "../bench/row_order.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_row(tc_matrix *A, int32_t row, int num, const double *val)
{
  const int64_t first = A->row_ptr[row];

  for (int k = 0; k < num; ++k) {
    A->col[first + k] = k;
    A->val[first + k] = val[k];
  }
  A->row_ptr[row + 1] = first + num;
}

/* c = A 1; 0 if the kernel does not support the matrix */
static int multiply_ones(const narrow_checks *K, const tc_matrix *A, double *c)
{
  device_matrix M    = device_pack(K->backend, K->kernel->format, K->kernel->precision, A, 0);
  double       *ones = malloc((size_t)A->num_cols * sizeof *ones);
  tc_spmm_args  args = {.n = 1, .ldb = A->num_cols, .ldc = A->num_rows};
  device_array  b, d, scratch;
  tc_status     status;

  if (ones == NULL) device_die("multiply_ones", "no host memory");
  for (int32_t k = 0; k < A->num_cols; ++k) ones[k] = 1;
  b = device_new(K->backend, A->num_cols, 0, ones);
  d = device_new(K->backend, A->num_rows, 0, NULL);
  args.b  = b.local;
  args.c  = d.local;
  scratch = device_scratch(&M, K->kernel, &args);
  status = K->kernel->multiply(M.view.bytes, &args, NULL);
  if (status != TC_ERR_UNSUPPORTED) device_check(K->backend, status, K->kernel->name);
  device_get(&d, c);
  device_free(&b);
  device_free(&d);
  device_free(&scratch);
  device_unpack(&M);
  free(ones);
  return status == TC_OK;
}

void narrow_check_accumulator(const narrow_checks *K)
{
  enum { FIRST = 24, MOST = 8, ROWS = MOST + 3, WIDEST = 3 };
  tc_matrix A;
  double    c[ROWS];
  int       kept = FIRST - 1, within = 1;

  if (tc_matrix_create(ROWS, 8, WIDEST * ROWS, &A) != TC_OK) device_die("accumulator", tc_last_error());
  for (int k = 0; k < MOST; ++k) add_row(&A, k, 2, (const double[]){1, -ldexp(1, -FIRST - k)});
  add_row(&A, MOST, 2, (const double[]){1, 0x1.8p-23});
  add_row(&A, MOST + 1, 2, (const double[]){-1, -0x1.8p-23});
  add_row(&A, MOST + 2, 3, (const double[]){1, 0x1p-24, 0x1p-24});
  A.nnz = A.row_ptr[ROWS];
  if (!multiply_ones(K, &A, c)) {
    tc_matrix_free(&A);
    return;
  }
  for (int32_t i = 0; i < ROWS; ++i) {
    double sum = 0;

    for (int64_t e = A.row_ptr[i]; e < A.row_ptr[i + 1]; ++e) sum += A.val[e];
    within = within && fabs(c[i] - sum) <= (double)(A.row_ptr[i + 1] - A.row_ptr[i]) * 0x1p-23;
  }
  while (kept - FIRST + 1 < MOST && c[kept - FIRST + 1] < 1) ++kept;
  printf("     %s: sums keep what is 2^-%d of their largest term; 1 + 1.5 * 2^-23 is 1 + %.1f * 2^-23, its negative -1 - %.1f * 2^-23, 1 + 2^-24 + 2^-24 is 1 + %.1f * 2^-23\n", K->kernel->name, kept, ldexp(c[MOST] - 1, 23), ldexp(-c[MOST + 1] - 1, 23), ldexp(c[MOST + 2] - 1, 23));
  K->fact(within, K->kernel->name, "accumulator", 1, "a sum is off by 2^-23 for each term at most");
  tc_matrix_free(&A);
}

/* Rows of `columns` floats, `stride` apart, on the device, NaN between them; a column-major block in double precision on the host, leading dimension `ld` */
static device_array floats_to_device(const tc_backend *backend, int32_t rows, int32_t columns, int64_t stride, const double *b, int64_t ld)
{
  double      *image = calloc((size_t)rows * (size_t)stride / 2 + 1, sizeof *image);
  device_array D;

  if (image == NULL) device_die("floats_to_device", "no host memory");
  for (int64_t i = 0; i < rows * stride; ++i) {
    const float value = i % stride < columns ? (float)b[i / stride + i % stride * ld] : NAN;

    memcpy((char *)image + sizeof value * (size_t)i, &value, sizeof value);
  }
  D = device_new(backend, rows * stride / 2, 0, image);
  free(image);
  return D;
}

/* Back, and whether nothing was written outside */
static int floats_from_device(const device_array *D, int32_t rows, int32_t columns, int64_t stride, double *c, int64_t ld)
{
  double *image = calloc((size_t)rows * (size_t)stride / 2 + 1, sizeof *image);
  int     whole;

  if (image == NULL) device_die("floats_from_device", "no host memory");
  whole = device_get(D, image);
  for (int64_t i = 0; i < rows * stride; ++i) {
    float value;

    memcpy(&value, (const char *)image + sizeof value * (size_t)i, sizeof value);
    if (i % stride < columns) c[i / stride + i % stride * ld] = value;
    else whole = whole && isnan(value);
  }
  free(image);
  return whole;
}

/* Row `row` of A times a column of floats as kernels/tc_spmm.h defines it for row-major blocks */
static float defined_element(const tc_matrix *A, int32_t row, const double *b)
{
  double sum = 0;

  for (int64_t first = A->row_ptr[row]; first < A->row_ptr[row + 1]; first += TC_SPMM_SEGMENT) {
    float segment = 0;

    for (int64_t e = first; e < first + TC_SPMM_SEGMENT && e < A->row_ptr[row + 1]; ++e) segment = fmaf((float)A->val[e], (float)b[A->col[e]], segment);
    sum += segment;
  }
  return (float)(sum + 0.0);
}

/* Is c [num_rows of A, n] A B to the bit? b is made of floats. */
static int is_defined_product(const tc_matrix *A, int32_t n, const double *b, const double *c)
{
  for (int64_t i = 0; i < (int64_t)A->num_rows * n; ++i) {
    const double defined = defined_element(A, (int32_t)(i % A->num_rows), b + i / A->num_rows * A->num_cols);

    if (memcmp(c + i, &defined, sizeof defined) != 0 && !(isnan(c[i]) && isnan(defined))) return 0;
  }
  return 1;
}

static void check_row_major(const narrow_checks *K, const char *name, const tc_matrix *A, int32_t n, int gap, const int32_t *row_order)
{
  const int64_t   ldb = n + gap, ldc = n + 2 * gap, m = A->num_rows;
  narrow_expected E = narrow_expect(A, K->kernel->precision, narrow_segment(K->kernel->format), n, n > 64 ? 7 : 1, 1);
  device_matrix   M = row_order ? device_pack_in_order(K->backend, K->kernel->format, K->kernel->precision, A, row_order) : device_pack(K->backend, K->kernel->format, K->kernel->precision, A, 1);
  const int64_t   slots = device_num_slots(&M, K->kernel->format);
  double         *b = narrow_input(&E, n, A->num_cols), *c = malloc(((size_t)m * (size_t)n + 1) * sizeof *c), *left = malloc(((size_t)slots * (size_t)n + 1) * sizeof *left);
  device_array    db = floats_to_device(K->backend, A->num_cols, n, ldb, b, A->num_cols), dc = floats_to_device(K->backend, A->num_rows, 0, ldc, NULL, 0); // half of a NaN in double precision is a zero
  device_array    scratch = device_new(K->backend, slots * n, 0, NULL);
  tc_status       status;
  int             whole;

  if (c == NULL || left == NULL) device_die("check_row_major", "no host memory");
  for (int time = 0; time < 2; ++time) { // the first product leaves what the second needs, and nothing of it is left in C
    if (time > 0) device_free(&dc);
    if (time > 0) dc = floats_to_device(K->backend, A->num_rows, 0, ldc, NULL, 0);
    status = K->kernel->multiply(M.view.bytes, &(tc_spmm_args){.n = n, .b = db.local, .ldb = ldb, .c = dc.local, .ldc = ldc, .scratch = scratch.local, .row_major_f32 = 1}, NULL);
    if (status != TC_ERR_UNSUPPORTED) device_check(K->backend, status, K->kernel->name);
  }
  whole = floats_from_device(&dc, A->num_rows, n, ldc, c, m);
  if (status == TC_OK) K->fact(narrow_is_right(&E, n, NULL, c, m, 0x1p-24), K->kernel->name, name, n, "row-major floats");
  if (status == TC_OK && strcmp(K->kernel->format, "csr") == 0) K->fact(is_defined_product(A, n, b, c), K->kernel->name, name, n, "row-major floats, the defined sums");
  K->fact(whole && device_get(&scratch, left), K->kernel->name, name, n, "row-major floats, nothing written outside");
  device_free(&db);
  device_free(&dc);
  device_free(&scratch);
  device_unpack(&M);
  narrow_forget(&E);
  free(b);
  free(c);
  free(left);
}

/* Tiles of matrices with more clusters than a device has thread blocks for, and of rows in an order of their own */
static void check_many_clusters(const narrow_checks *K)
{
  static const struct {
    const char *generator;
    int32_t     size;
    int         reordered;
  } cases[] = {{"stencil7", 48, 0}, {"stencil27", 32, 0}, {"elasticity", 20, 0}, {"p2", 16, 0}, {"p2", 16, 1}, {"stencil27_window", 28, 1}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    int32_t  *order = NULL;
    tc_matrix A;

    if (tc_generate(tc_generator_find(cases[i].generator), cases[i].size, 1, &A) != TC_OK) device_die(cases[i].generator, tc_last_error());
    if (cases[i].reordered) {
      order = malloc((size_t)A.num_rows * sizeof *order);
      if (order == NULL || tc_row_order_by_halves(&A, order) != TC_OK) device_die(cases[i].generator, "no order");
    }
    check_row_major(K, cases[i].generator, &A, 192, 0, order);
    free(order);
    tc_matrix_free(&A);
  }
}

void narrow_check_row_major(const narrow_checks *K, int small)
{
  /*
    Thread blocks enough for 132 multiprocessors to have kernels take 128 columns at a time: rows that end together or not, and where many entries are in segments. Then long
    rows that are added up by the last of their segments to arrive: lists, all columns or a panel of them for all rows; row by row, and more panels than are counted apart.
  */
  static const struct {
    const char *generator;
    int32_t     size, n;
  } wide[] = {{"webbase", 40009, 1024}, {"four", 200, 1024}, {"like_dc2", 26009, 1024}, {"lp", 2000, 128}, {"rmat", 12, 256}, {"like_dc2", 9001, 512}, {"like_dc2", 9001, 576}, {"ragged", 331, 512}};
  const int   csr = strcmp(K->kernel->format, "csr") == 0;
  device_case C;

  for (size_t i = 0; csr && i < sizeof wide / sizeof wide[0]; ++i) {
    tc_matrix A;

    if (tc_generate(tc_generator_find(wide[i].generator), wide[i].size, 1, &A) != TC_OK) device_die(wide[i].generator, tc_last_error());
    check_row_major(K, wide[i].generator, &A, wide[i].n, 4, NULL);
    tc_matrix_free(&A);
  }
  if (!small && strcmp(K->kernel->format, "bittcf") == 0) check_many_clusters(K);
  for (int i = 0; device_case_at(small, i, &C); ++i) {
    tc_matrix A;

    if (tc_generate(C.generator, C.size, 1, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
    check_row_major(K, C.generator->name, &A, 64, i % 2 * 4, NULL);
    if (i % 5 == 0) check_row_major(K, C.generator->name, &A, 192, 0, NULL);
    if (csr) check_row_major(K, C.generator->name, &A, i % 5 == 0 ? 256 : 128, i % 2 * 4, NULL);
    tc_matrix_free(&A);
  }
}
