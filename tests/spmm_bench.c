#include "spmm_bench.h"
#include "../src/plan/spmm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 5, MAX_WIDTHS = 16 };

static const char *const usual_cases = "elasticity:64,stencil27:100,stencil7:110,stencil27_window:100,qcd:11,qcd:12,webbase:1000000,rmat:18,elasticity:28,long1153:20000";
static const double      group_seconds = 0.02;

/* One case on the device */
typedef struct {
  const tc_backend *backend;
  char              name[64];
  tc_matrix         A;
  device_array      b, c;
  void             *scratch;
  size_t            scratch_bytes;
  double           *first, *last; // columns of C of the first kernel that ran
  int               have_columns;
} bench_case;

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static tc_status multiply(const bench_case *K, const device_matrix *M, const tc_spmm_kernel *kernel, int32_t n, int b_transposed, int times)
{
  const tc_spmm_args args = {n, K->b.local, b_transposed ? n : K->A.num_cols, K->c.local, K->A.num_rows, 0, K->scratch, b_transposed};

  for (int i = 0; i < times; ++i) {
    const tc_status status = kernel->multiply(M->view.bytes, &args, NULL);

    if (status != TC_OK) return status;
  }
  return K->backend->synchronize(NULL);
}

/* Median of milliseconds per product; negative if the kernel does not support the matrix */
static double measure(const bench_case *K, const device_matrix *M, const tc_spmm_kernel *kernel, int32_t n, int b_transposed, double *spread)
{
  double    group[GROUPS], begin;
  tc_status status = multiply(K, M, kernel, n, b_transposed, 2);
  int       times  = 1;

  if (status == TC_ERR_UNSUPPORTED) return -1;
  device_check(K->backend, status, kernel->name);
  begin = device_seconds();
  device_check(K->backend, multiply(K, M, kernel, n, b_transposed, 3), kernel->name);
  times = 1 + (int)(group_seconds / ((device_seconds() - begin) / 3));
  for (int g = 0; g < GROUPS; ++g) {
    begin = device_seconds();
    device_check(K->backend, multiply(K, M, kernel, n, b_transposed, times), kernel->name);
    group[g] = 1e3 * (device_seconds() - begin) / times;
  }
  qsort(group, GROUPS, sizeof *group, by_size);
  *spread = group[GROUPS - 1] - group[0];
  return group[GROUPS / 2];
}

static const char *compare(bench_case *K, int32_t n)
{
  const int32_t m      = K->A.num_rows;
  const size_t  bytes  = (size_t)m * sizeof(double);
  double       *column = malloc(2 * bytes + 1);
  int           same   = 1;

  if (column == NULL) device_die("compare", "no host memory");
  device_check(K->backend, K->backend->download(column, K->c.local, bytes, NULL), "download");
  device_check(K->backend, K->backend->download(column + m, K->c.local + (int64_t)(n - 1) * m, bytes, NULL), "download");
  device_check(K->backend, K->backend->synchronize(NULL), "synchronize");
  if (K->have_columns) same = tc_first_different(m, column, K->first) == m && tc_first_different(m, column + m, K->last) == m;
  else {
    memcpy(K->first, column, bytes);
    memcpy(K->last, column + m, bytes);
    K->have_columns = 1;
  }
  free(column);
  return same ? "" : "  DIFFERENT BITS";
}

/* With the transpose of a block the numbers are others: no bits to compare */
static void bench_kernel(bench_case *K, const device_matrix *M, const tc_spmm_kernel *kernel, int32_t n, int b_transposed)
{
  const size_t bytes = kernel->scratch ? kernel->scratch(M->view.bytes, n) : 0;
  const double floor = 12.0 * (double)K->A.nnz + 4.0 * K->A.num_rows + 8.0 * n * ((double)K->A.num_rows + K->A.num_cols);
  double       spread, ms;

  if (bytes > K->scratch_bytes) {
    K->backend->release(K->scratch);
    device_check(K->backend, K->backend->alloc(bytes, &K->scratch), "scratch");
    K->scratch_bytes = bytes;
  }
  ms = measure(K, M, kernel, n, b_transposed, &spread);
  if (ms < 0) printf("  %-32s n %3d  not supported\n", kernel->name, n);
  else printf("  %-32s n %3d  %9.4f ms  +- %.4f  %6.0f GB/s of CSR, B, C once%s\n", kernel->name, n, ms, spread, 1e-6 * floor / ms, b_transposed ? ", B transposed" : compare(K, n));
  fflush(stdout);
}

/* The first product of all with a pattern, straight from CSR: survey, scratch and launches; of several objects the fastest */
static void bench_first(const bench_case *K, const device_matrix *M, int32_t n)
{
  const tc_spmm_options options = {.format = "csr"};
  const tc_key          key     = {.id = 1, .nnz = K->A.nnz};
  const tc_spmm_product P       = {.rows_b = K->A.num_cols, .rows_c = K->A.num_rows, .n = n, .b = K->b.local, .ldb = K->A.num_cols, .c = K->c.local, .ldc = K->A.num_rows};
  double                fastest = 0;

  for (int repeat = 0; repeat < GROUPS; ++repeat) {
    tc_csr_view           view = M->view.csr;
    const tc_spmm_kernel *kernel;
    const double          begin = device_seconds();
    tc_spmm              *S;
    tc_status             status = tc_spmm_create(K->backend, &options, &S);

    if (status == TC_OK) status = tc_spmm_look(S, &key, &view, NULL);
    if (status == TC_OK) status = tc_spmm_choose(S, n, &kernel);
    if (status == TC_OK) tc_spmm_list_rows(S, &view);
    if (status == TC_OK) status = tc_spmm_multiply(S, kernel, &view, &P, NULL);
    if (status != TC_OK) device_die("first product", tc_last_error());
    device_check(K->backend, K->backend->synchronize(NULL), "first product");
    if (repeat == 0 || device_seconds() - begin < fastest) fastest = device_seconds() - begin;
    tc_spmm_destroy(&S);
  }
  printf("  %-32s n %3d  %9.4f ms\n", "first product from CSR", n, 1e3 * fastest);
}

static void open_case(bench_case *K, const tc_backend *backend, const char *name, int32_t size, int32_t widest)
{
  double *b;

  memset(K, 0, sizeof *K);
  K->backend = backend;
  if (tc_generator_find(name) == NULL) device_die(name, "no such generator");
  if (tc_generate(tc_generator_find(name), size, 1, &K->A) != TC_OK) device_die(name, tc_last_error());
  b = malloc(((size_t)K->A.num_cols * (size_t)widest + 1) * sizeof *b);
  if (b == NULL) device_die(name, "no host memory");
  tc_random_normal((int64_t)K->A.num_cols, 3, b);
  for (int64_t i = K->A.num_cols; i < (int64_t)K->A.num_cols * widest; ++i) b[i] = b[i - K->A.num_cols] * 1.25 - 0.5; // any numbers do
  K->b     = device_new(backend, (int64_t)K->A.num_cols * widest, 0, b);
  K->c     = device_new(backend, (int64_t)K->A.num_rows * widest, 0, NULL);
  K->first = malloc(((size_t)K->A.num_rows + 1) * sizeof *K->first);
  K->last  = malloc(((size_t)K->A.num_rows + 1) * sizeof *K->last);
  if (K->first == NULL || K->last == NULL) device_die(name, "no host memory");
  free(b);
}

static void close_case(bench_case *K)
{
  device_free(&K->b);
  device_free(&K->c);
  K->backend->release(K->scratch);
  free(K->first);
  free(K->last);
  tc_matrix_free(&K->A);
}

static void print_format(const char *format, const device_matrix *M)
{
  const tc_format *F = tc_format_find(format);
  tc_stats         stats;

  if (F == NULL) {
    printf("  %s: survey %.3f ms, %d long and %d heavy rows\n", format, M->build_ms, M->view.csr.num_long, M->view.csr.num_heavy);
    return;
  }
  tc_format_stats(F, M->view.bytes, &stats);
  printf("  %s: build %.3f ms%s, refill %.3f ms, %.2f B per entry besides the value; %s\n", format, M->build_ms, M->build_ms > 0 ? "" : " (on the host)", M->refill_ms, (double)stats.index_bytes / (double)stats.num_nonzeros, stats.classes);
}

/* All kernels of a format on one case */
static void bench_format(bench_case *K, const char *format, int sm, const char *only, int num_widths, const int32_t *widths)
{
  int                   num, packed = 0;
  const tc_spmm_kernel *kernels = K->backend->spmm_kernels(&num);
  device_matrix         M;

  for (int w = 0; w < num_widths; ++w) {
    for (int k = 0; k < num; ++k) {
      if (strcmp(kernels[k].format, format) != 0 || kernels[k].min_sm > sm || strstr(kernels[k].name, only) == NULL) continue;
      if (!packed) {
        M      = device_pack(K->backend, format, &K->A, 1);
        packed = 1;
        print_format(format, &M);
      }
      for (int b_transposed = 0; b_transposed <= kernels[k].b_transposed; ++b_transposed) bench_kernel(K, &M, &kernels[k], widths[w], b_transposed);
    }
    if (packed && strcmp(format, "csr") == 0) bench_first(K, &M, widths[w]);
    K->have_columns = K->have_columns && num_widths == 1;
  }
  if (packed) device_unpack(&M);
}

int spmm_bench(const tc_backend *backend, int sm, const char *only, const char *width_list, const char *case_list)
{
  int32_t     widths[MAX_WIDTHS], widest = 0;
  int         num_widths = 0, num_kernels;
  const char *list       = case_list ? case_list : usual_cases;

  for (const char *at = width_list; *at && num_widths < MAX_WIDTHS; at += strcspn(at, ","), at += *at == ',') {
    widths[num_widths] = atoi(at);
    if (widths[num_widths] < 1 || widths[num_widths] > TC_SPMM_COLUMNS) device_die(width_list, "numbers of columns must be 1 to 128");
    if (widths[num_widths] > widest) widest = widths[num_widths];
    ++num_widths;
  }
  backend->spmm_kernels(&num_kernels);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
    char       name[48] = "";
    int        size     = 0;
    bench_case K;

    if (sscanf(at, "%47[^:]:%d", name, &size) != 2) device_die(at, "expected generator:size");
    open_case(&K, backend, name, size, widest);
    printf("%s %d: %d x %d, %lld entries\n", name, size, K.A.num_rows, K.A.num_cols, (long long)K.A.nnz);
    bench_format(&K, "csr", sm, only, num_widths, widths);
    bench_format(&K, "hybrid", sm, only, num_widths, widths);
    bench_format(&K, "bittcf", sm, only, num_widths, widths);
    close_case(&K);
  }
  return 0;
}
