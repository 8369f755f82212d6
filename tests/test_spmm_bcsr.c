/*
  The 16-bit kernel of the BCSR format without PETSc: test_spmm_bcsr [-small] [-matrix part-of-its-name] [-bench N,N,... [-size N]] libaijtccusparse_cuda.so
  On every test matrix, both precisions, with and without 2:4 tiles: what the device packs are the host's bytes; products are within the a-priori bound of the exact
  ones, for every number of columns, leading dimension and alignment, the same bits again and again, with guard words around C. -small leaves out what takes a memory
  checker too long. -bench times the kernel on synthetic matrices instead. Exit code 77: no usable device.
*/
#include "bcsr_bench.h"
#include "../src/format/bcsr.h"
#include "../src/plan/spmm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t widths[]       = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 128, 256, 1000};
static const int32_t small_widths[] = {1, 9, 33, 70};
enum { NUM_WIDTHS = sizeof widths / sizeof widths[0], NUM_SMALL_WIDTHS = sizeof small_widths / sizeof small_widths[0], MAX_FAILURES = 20, LARGE = 100000 };

static int    passed, failed, small_only;
static double worst_error[TC_PRECISION_F16 + 1];

/* One matrix, packed one way */
typedef struct {
  const tc_spmm_kernel *kernel;
  const char           *name;
  const tc_matrix      *A;
  tc_precision          precision;
  tc_bcsr_kinds         kinds;
  device_matrix         M;
} bcsr_case;

static void fact(int so, const bcsr_case *K, int32_t n, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so) printf("FAIL %s, %s, %s, %d columns: %s\n", K->name, K->precision == TC_PRECISION_F16 ? "fp16" : "bf16", K->kinds == TC_BCSR_BOTH_KINDS ? "2:4 and dense tiles" : "dense tiles", n, what);
}

static double *numbers(int64_t n, uint64_t seed)
{
  double *x = malloc(((size_t)n + 1) * sizeof *x);

  if (x == NULL) device_die("numbers", "no host memory");
  tc_random_normal(n, seed, x);
  return x;
}

/* B [ldb, n]: rows that no entry of A refers to may be anything; columns differ in magnitude */
static double *dense_input(const tc_matrix *A, int32_t n, int64_t ldb)
{
  double        *b    = numbers(n * ldb, 3);
  unsigned char *used = calloc((size_t)ldb + 1, 1);

  if (used == NULL) device_die("dense_input", "no host memory");
  for (int64_t e = 0; e < A->nnz; ++e) used[A->col[e]] = 1;
  for (int64_t i = 0; i < n * ldb; ++i) b[i] = used[i % ldb] ? ldexp(b[i], (int)(i / ldb % 5) * 300 - 600) : NAN;
  free(used);
  return b;
}

/* Blocks of TC_SPMM_COLUMNS columns, as the plan cuts them, over scratch that holds NaN */
static void multiply(const bcsr_case *K, int32_t n, const device_array *b, int64_t ldb, const device_array *c, int64_t ldc, int add)
{
  for (int32_t first = 0; first < n; first += TC_SPMM_COLUMNS) {
    const int32_t      now     = n - first < TC_SPMM_COLUMNS ? n - first : TC_SPMM_COLUMNS;
    const int64_t      room    = (int64_t)((K->kernel->scratch(K->M.view.bytes, now) + sizeof(double) - 1) / sizeof(double));
    device_array       scratch = device_new(K->M.backend, room, 0, NULL);
    double            *left    = numbers(room, 9);
    const tc_spmm_args args    = {.n = now, .b = b->local + first * ldb, .ldb = ldb, .c = c->local + first * ldc, .ldc = ldc, .add = add, .scratch = scratch.local};

    device_check(K->M.backend, K->kernel->multiply(K->M.view.bytes, &args, NULL), K->kernel->name);
    fact(device_get(&scratch, left), K, n, "nothing written outside of the scratch");
    device_free(&scratch);
    free(left);
  }
}

static void check_columns(const bcsr_case *K, int32_t n, const double *b, int64_t ldb, const double *before, const double *result, int64_t ldc, int add)
{
  const int64_t m     = K->A->num_rows;
  long double  *ref   = calloc((size_t)m + 1, sizeof *ref), *bound = calloc((size_t)m + 1, sizeof *bound);
  double        worst = 0;
  int           whole = 1;

  if (ref == NULL || bound == NULL) device_die("check_columns", "no host memory");
  for (int32_t j = 0; j < n; j += n > 128 || K->A->nnz > LARGE ? 7 : 1) {
    tc_oracle_narrow(K->A, b + j * ldb, add ? before + j * ldc : NULL, K->precision, ref, bound);
    worst = fmax(worst, tc_error_over_bound(m, result + j * ldc, ref, bound));
  }
  for (int32_t j = 0; j < n; ++j) {
    for (int64_t i = m; i < ldc; ++i) whole = whole && isnan(result[i + j * ldc]);
  }
  if (worst > worst_error[K->precision]) worst_error[K->precision] = worst;
  if (worst > 1) printf("%g times the bound; add %d, ldb %lld, ldc %lld\n", worst, add, (long long)ldb, (long long)ldc);
  fact(worst <= 1, K, n, add ? "C += A B within the bound" : "C = A B within the bound");
  fact(whole, K, n, "nothing written between columns");
  free(ref);
  free(bound);
}

static void check_product(const bcsr_case *K, int32_t n, int variant, int repeats)
{
  static const int gaps[4][4] = {{0, 0, 0, 0}, {1, 1, 0, 0}, {0, 2, 1, 1}, {3, 0, 0, 1}}; // of ldb, of ldc; shifts of B, of C
  const int       *gap = gaps[variant % 4], add = variant / 2 % 2;
  const int64_t    ldb = (int64_t)K->A->num_cols + gap[0], ldc = (int64_t)K->A->num_rows + gap[1];
  double          *b = dense_input(K->A, n, ldb), *before = numbers(n * ldc, 5), *result = numbers(n * ldc, 7), *again = numbers(n * ldc, 7);
  device_array     db, dc;
  int              same = 1;

  for (int64_t i = 0; i < n * ldc; ++i) before[i] = add && i % ldc < K->A->num_rows ? ldexp(before[i], (int)(i / ldc % 5) * 300 - 600) : NAN;
  db = device_new(K->M.backend, n * ldb, gap[2], b);
  dc = device_new(K->M.backend, n * ldc, gap[3], before);
  multiply(K, n, &db, ldb, &dc, ldc, add);
  fact(device_get(&dc, result), K, n, "nothing written outside of C");
  check_columns(K, n, b, ldb, before, result, ldc, add);
  for (int r = 1; r < repeats; ++r) {
    device_set(&dc, before);
    multiply(K, n, &db, ldb, &dc, ldc, add);
    device_get(&dc, again);
    same = same && tc_first_different(n * ldc, again, result) == n * ldc;
  }
  fact(same, K, n, "the same bits again");
  device_free(&db);
  device_free(&dc);
  free(b);
  free(before);
  free(result);
  free(again);
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

  pattern.precision = K->precision;
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

/* A larger matrix sees every number of columns, but not in every packing */
static void check_matrix(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *name, const tc_matrix *A, int seed)
{
  const int share = small_only || A->nnz <= LARGE / 50 ? 1 : A->nnz <= LARGE ? 3 : 9;

  for (int variant = 0; variant < 4; ++variant) {
    bcsr_case K = {.kernel = kernel, .name = name, .A = A, .precision = variant % 2 ? TC_PRECISION_F16 : TC_PRECISION_BF16, .kinds = variant / 2 ? TC_BCSR_DENSE_ONLY : TC_BCSR_BOTH_KINDS};

    open_case(&K, backend);
    for (int i = 0; i < (small_only ? NUM_SMALL_WIDTHS : NUM_WIDTHS) && failed < MAX_FAILURES; ++i) {
      const int32_t n = small_only ? small_widths[i] : widths[i];

      if (n > 128 && (A->nnz > LARGE / 10 || variant > 1)) continue;
      if ((i + variant + seed) % share != 0) continue;
      check_product(&K, n, i + seed + variant, n == 9 || n == 64 ? 5 : 1);
    }
    device_unpack(&K.M);
  }
}

/* What is not finite reaches the rows that refer to it, and the exponents of all others stay */
static void check_nonfinite(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  tc_matrix A;

  if (tc_generate(tc_generator_find("mixed"), 64, 1, &A) != TC_OK) device_die("mixed", tc_last_error());
  for (int64_t e = A.row_ptr[20]; e < A.row_ptr[21]; ++e) A.val[e] = INFINITY;
  for (int p = 0; p < 2; ++p) {
    bcsr_case    K = {.kernel = kernel, .name = "mixed, not finite", .A = &A, .precision = p ? TC_PRECISION_F16 : TC_PRECISION_BF16, .kinds = TC_BCSR_BOTH_KINDS};
    double      *b = numbers(A.num_cols, 3), *c = numbers(A.num_rows, 4);
    device_array db = device_new(backend, A.num_cols, 0, b), dc = device_new(backend, A.num_rows, 0, NULL);
    int          so = 1;

    open_case(&K, backend);
    multiply(&K, 1, &db, A.num_cols, &dc, A.num_rows, 0);
    device_get(&dc, c);
    for (int32_t i = 0; i < A.num_rows; ++i) so = so && (i == 20 && A.row_ptr[20] < A.row_ptr[21] ? !isfinite(c[i]) : isfinite(c[i]));
    fact(so, &K, 1, "a row of infinities, and no other, is not finite");
    device_unpack(&K.M);
    device_free(&db);
    device_free(&dc);
    free(b);
    free(c);
  }
  tc_matrix_free(&A);
}

/* A launch that fails is reported, and the next one works */
static void check_faults(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  tc_matrix    A;
  bcsr_case    K = {.kernel = kernel, .name = "limits", .A = &A, .precision = TC_PRECISION_F16, .kinds = TC_BCSR_BOTH_KINDS};
  device_array b, c, scratch;
  int          failures = 0;

  if (tc_generate(tc_generator_find("limits"), 65, 1, &A) != TC_OK) device_die("limits", tc_last_error());
  open_case(&K, backend);
  b       = device_new(backend, 9 * (int64_t)A.num_cols, 0, NULL);
  c       = device_new(backend, 9 * (int64_t)A.num_rows, 0, NULL);
  scratch = device_new(backend, (int64_t)(kernel->scratch(K.M.view.bytes, 9) / sizeof(double)) + 1, 0, NULL);
  for (;; ++failures) {
    const tc_spmm_args args = {.n = 9, .b = b.local, .ldb = A.num_cols, .c = c.local, .ldc = A.num_rows, .scratch = scratch.local};
    tc_status          status;

    backend->fault_arm(TC_FAULT_LAUNCH, failures + 1);
    status = kernel->multiply(K.M.view.bytes, &args, NULL);
    backend->fault_arm(TC_FAULT_LAUNCH, 0);
    if (status != TC_ERR_DEVICE || failures == MAX_FAILURES) break;
  }
  device_check(backend, backend->synchronize(NULL), "synchronize");
  fact(failures == 4, &K, 9, "each of four failing launches is reported");
  device_free(&b);
  device_free(&c);
  device_free(&scratch);
  device_unpack(&K.M);
  tc_matrix_free(&A);
}

static void check_all(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *only)
{
  int num;

  tc_generators(&num);
  for (int g = 0; g < num && failed < MAX_FAILURES; ++g) {
    const tc_generator *generator = &tc_generators(&num)[g];

    for (int seed = 1; seed <= (small_only ? 1 : 2) && strstr(generator->name, only); ++seed) {
      tc_matrix A;

      if (tc_generate(generator, generator->tiny, (uint64_t)seed, &A) != TC_OK) device_die(generator->name, tc_last_error());
      check_matrix(backend, kernel, generator->name, &A, seed);
      tc_matrix_free(&A);
    }
  }
  check_nonfinite(backend, kernel);
  check_faults(backend, kernel);
}

int main(int argc, char **args)
{
  const char           *path = NULL, *bench = NULL, *only = "";
  const tc_backend     *backend;
  const tc_spmm_kernel *kernels, *kernel = NULL;
  int                   sm, num, size = 8192;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) small_only = 1;
    else if (strcmp(args[i], "-matrix") == 0 && i + 1 < argc) only = args[++i];
    else if (strcmp(args[i], "-bench") == 0 && i + 1 < argc) bench = args[++i];
    else if (strcmp(args[i], "-size") == 0 && i + 1 < argc) size = atoi(args[++i]);
    else path = args[i];
  }
  if (path == NULL) device_die("usage", "test_spmm_bcsr [-small] [-matrix part-of-its-name] [-bench N,N,... [-size N]] libaijtccusparse_cuda.so");
  backend = device_open("test_spmm_bcsr", path, &sm);
  if (backend == NULL) return DEVICE_SKIPPED;
  kernels = backend->spmm_kernels(&num);
  for (int k = 0; k < num; ++k) {
    if (strcmp(kernels[k].format, "bcsr") == 0 && kernels[k].min_sm <= sm) kernel = &kernels[k];
  }
  if (kernel == NULL) {
    printf("skip no kernel for sm_%d\n0 passed, 0 failed, 1 skipped\n", sm);
    return DEVICE_SKIPPED;
  }
  if (bench) return bcsr_bench(backend, kernel, bench, only, size);
  check_all(backend, kernel, only);
  printf("largest error over the bound: bf16 %.3f, fp16 %.3f\n", worst_error[TC_PRECISION_BF16], worst_error[TC_PRECISION_F16]);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
