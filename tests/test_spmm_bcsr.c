/*
  What test_spmm_kernels does not see of the BCSR format: test_spmm_bcsr [-small|-few] [-matrix part-of-its-name] [-bench N,N,... [-size N]] libaijtccusparse_cuda.so
  On every test matrix, in both precisions, with and without 2:4 tiles: what the device packs are the host's bytes. Without 2:4 tiles products are within the bound, too. What
  is not finite stays in its row. -small leaves out what takes a memory checker too long. -bench times the kernels on synthetic matrices instead. Exit code 77: no usable device.
*/
#include "bcsr_bench.h"
#include "device_cases.h"
#include "narrow_check.h"
#include "../src/format/bcsr.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t widths[] = {1, 9, 32, 70, 128};
enum { NUM_WIDTHS = sizeof widths / sizeof widths[0], NUM_SMALL_WIDTHS = 2, MAX_FAILURES = 20, LARGE = 100000 };

static int passed, failed, small_only;

/* One matrix, packed one way */
typedef struct {
  const tc_spmm_kernel *kernel;
  const char           *name;
  const tc_matrix      *A;
  tc_bcsr_kinds         kinds;
  device_matrix         M;
} bcsr_case;

static void fact(int so, const bcsr_case *K, int32_t n, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so) printf("FAIL %s, %s, %s, %d columns: %s\n", K->name, K->kernel->name, K->kinds == TC_BCSR_BOTH_KINDS ? "2:4 and dense tiles" : "dense tiles", n, what);
}

static double *numbers(int64_t n)
{
  double *x = malloc(((size_t)n + 1) * sizeof *x);

  if (x == NULL) device_die("numbers", "no host memory");
  for (int64_t i = 0; i < n; ++i) x[i] = NAN;
  return x;
}

/* C = A B for n columns, over a scratch of NaN; returns C, column-major */
static double *multiply(const bcsr_case *K, int32_t n, const double *b)
{
  device_array  db = device_new(K->M.backend, (int64_t)n * K->A->num_cols, 0, b), dc = device_new(K->M.backend, (int64_t)n * K->A->num_rows, 0, NULL);
  tc_spmm_args  args    = {.n = n, .b = db.local, .ldb = K->A->num_cols, .c = dc.local, .ldc = K->A->num_rows};
  device_array  scratch = device_scratch(&K->M, K->kernel, &args);
  double       *c = numbers((int64_t)n * K->A->num_rows), *left = numbers(scratch.n);

  device_check(K->M.backend, K->kernel->multiply(K->M.view.bytes, &args, NULL), K->kernel->name);
  fact(device_get(&dc, c) && device_get(&scratch, left), K, n, "nothing written outside");
  device_free(&db);
  device_free(&dc);
  device_free(&scratch);
  free(left);
  return c;
}

/* Bytes that the device has made of the values */
static int same_array(const tc_backend *backend, const void *local, const void *host, size_t bytes)
{
  void *copy = malloc(bytes + 1);
  int   same;

  if (copy == NULL) device_die("same_array", "no host memory");
  device_check(backend, backend->download(copy, local, bytes, NULL), "download");
  same = memcmp(copy, host, bytes) == 0;
  free(copy);
  return same;
}

/* Packs on the host, refills on both sides */
static void open_case(bcsr_case *K, const tc_backend *backend)
{
  tc_csr         pattern = tc_matrix_pattern(K->A);
  tc_bcsr        T;
  const tc_bcsr *local = (const tc_bcsr *)K->M.view.bytes;

  pattern.precision = K->kernel->precision;
  if (tc_bcsr_build(&pattern, K->kinds, &T) != TC_OK) device_die(K->name, tc_last_error());
  T.val          = malloc(TC_BCSR_SLOTS * (size_t)T.num_tiles * sizeof *T.val + 1);
  T.row_exponent = malloc(TC_BCSR_ROWS * (size_t)T.num_windows * sizeof *T.row_exponent + 1);
  if (T.val == NULL || T.row_exponent == NULL) device_die(K->name, "no host memory");
  tc_bcsr_refill_host(&T, K->A->val);
  K->M = device_pack_view(backend, &tc_format_bcsr, &T, K->A);
  fact(same_array(backend, local->val, T.val, TC_BCSR_SLOTS * (size_t)T.num_tiles * sizeof *T.val), K, 0, "the values are the host's");
  fact(same_array(backend, local->row_exponent, T.row_exponent, TC_BCSR_ROWS * (size_t)T.num_windows * sizeof *T.row_exponent), K, 0, "the exponents are the host's");
  tc_format_destroy(&tc_format_bcsr, &T);
}

static void check_matrix(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *name, const tc_matrix *A)
{
  const int num = small_only ? NUM_SMALL_WIDTHS : NUM_WIDTHS;

  for (int kinds = TC_BCSR_DENSE_ONLY; kinds <= TC_BCSR_BOTH_KINDS; ++kinds) {
    bcsr_case       K = {.kernel = kernel, .name = name, .A = A, .kinds = (tc_bcsr_kinds)kinds};
    narrow_expected E = narrow_expect(A, kernel->precision, narrow_segment("bcsr"), widths[num - 1], A->nnz > LARGE ? 7 : 1, 0);

    open_case(&K, backend);
    for (int i = 0; i < num && K.kinds == TC_BCSR_DENSE_ONLY && failed < MAX_FAILURES; ++i) {
      double *b = narrow_input(&E, widths[i], A->num_cols), *c = multiply(&K, widths[i], b);

      fact(narrow_is_right(&E, widths[i], NULL, c, A->num_rows, 0x1p-53), &K, widths[i], "C = A B within the bound");
      free(b);
      free(c);
    }
    device_unpack(&K.M);
    narrow_forget(&E);
  }
}

/* Rows other than the one of infinities are finite */
static void check_nonfinite(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  tc_matrix A;
  bcsr_case K = {.kernel = kernel, .name = "mixed, not finite", .A = &A, .kinds = TC_BCSR_BOTH_KINDS};
  double   *b, *c;
  int       so = 1;

  if (tc_generate(tc_generator_find("mixed"), 64, 1, &A) != TC_OK) device_die("mixed", tc_last_error());
  for (int64_t e = A.row_ptr[20]; e < A.row_ptr[21]; ++e) A.val[e] = INFINITY;
  b = numbers(A.num_cols);
  tc_random_normal(A.num_cols, 3, b);
  open_case(&K, backend);
  c = multiply(&K, 1, b);
  for (int32_t i = 0; i < A.num_rows; ++i) so = so && (i == 20 && A.row_ptr[20] < A.row_ptr[21] ? !isfinite(c[i]) : isfinite(c[i]));
  fact(so, &K, 1, "a row of infinities, and no other, is not finite");
  device_unpack(&K.M);
  free(b);
  free(c);
  tc_matrix_free(&A);
}

static void check_all(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *only)
{
  device_case C;

  for (int i = 0; device_case_at(small_only, i, &C) && failed < MAX_FAILURES; ++i) {
    for (int seed = 1; seed <= (small_only ? 1 : 2) && strstr(C.generator->name, only); ++seed) {
      tc_matrix A;

      if (tc_generate(C.generator, C.size, (uint64_t)seed, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
      check_matrix(backend, kernel, C.generator->name, &A);
      tc_matrix_free(&A);
    }
  }
  check_nonfinite(backend, kernel);
}

int main(int argc, char **args)
{
  const char           *path = NULL, *bench = NULL, *only = "";
  const tc_backend     *backend;
  const tc_spmm_kernel *kernels;
  int                   sm, num, checked = 0, size = 8192;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0 || strcmp(args[i], "-few") == 0) small_only = 1;
    else if (strcmp(args[i], "-matrix") == 0 && i + 1 < argc) only = args[++i];
    else if (strcmp(args[i], "-bench") == 0 && i + 1 < argc) bench = args[++i];
    else if (strcmp(args[i], "-size") == 0 && i + 1 < argc) size = atoi(args[++i]);
    else path = args[i];
  }
  if (path == NULL) device_die("usage", "test_spmm_bcsr [-small|-few] [-matrix part-of-its-name] [-bench N,N,... [-size N]] libaijtccusparse_cuda.so");
  backend = device_open("test_spmm_bcsr", path, &sm);
  if (backend == NULL) return DEVICE_SKIPPED;
  if (small_only) device_repeats = 1;
  if (bench) return bcsr_bench(backend, sm, bench, only, size);
  kernels = backend->spmm_kernels(&num);
  for (int k = 0; k < num; ++k) {
    if (strcmp(kernels[k].format, "bcsr") != 0 || kernels[k].min_sm > sm) continue;
    check_all(backend, &kernels[k], only);
    ++checked;
  }
  printf("%d passed, %d failed, %d skipped\n", passed, failed, checked == 0);
  return checked == 0 ? DEVICE_SKIPPED : failed > 0;
}
