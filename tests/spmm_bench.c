#include "spmm_bench.h"
#include "../bench/cusparse_spmm.h"
#include "../bench/matrix_binary.h"
#include "../bench/row_order.h"
#include "../src/plan/spmm.h"
#include "../src/plan/spmm_rules.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 5, MAX_WIDTHS = 16, SLOW = 4 };

static const char *const usual_cases = "elasticity:64,stencil27:100,stencil7:110,stencil27_window:100,qcd:11,qcd:12,webbase:1000000,rmat:18,elasticity:28,long1153:20000";
static const double      group_seconds = 0.02;

typedef struct {
  const char *only; // part of the names of the kernels
  int         num_widths, num_row_major, reorder;
  int32_t     widths[MAX_WIDTHS], row_major[MAX_WIDTHS];
} bench_settings;

/* One case on the device */
typedef struct {
  const tc_backend *backend;
  char              name[64];
  tc_matrix         A;
  device_array      b, c;
  void             *row_b, *row_c; // blocks of floats, row-major
  int32_t          *row_order;     // in which rows are packed, or NULL
  void             *scratch;
  size_t            scratch_bytes;
  double           *columns[MAX_WIDTHS]; // the first and the last one of C of the first kernel that ran, for each number of columns
} bench_case;

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* What is timed: one of our kernels, or cuSPARSE */
typedef struct {
  const device_matrix  *M;
  const tc_spmm_kernel *kernel;
  const tc_spmm_args   *args;
  const cusparse_spmm  *cusparse; // NULL: the kernel
} bench_product;

static tc_status multiply(const bench_case *K, const bench_product *P, int times)
{
  for (int i = 0; i < times; ++i) {
    const tc_status status = P->cusparse == NULL ? P->kernel->multiply(P->M->view.bytes, P->args, NULL) : cusparse_spmm_multiply(P->cusparse) == 0 ? TC_OK : TC_ERR_DEVICE;

    if (status != TC_OK) return status;
  }
  return K->backend->synchronize(NULL);
}

/* Milliseconds per product, the median of several groups; of one product if that takes SLOW times `hopeless` and more. Negative if the kernel does not support the matrix. */
static double measure(const bench_case *K, const bench_product *P, double hopeless, double *spread)
{
  const char *name = P->cusparse == NULL ? P->kernel->name : "cuSPARSE";
  double      group[GROUPS], begin, one;
  tc_status   status = multiply(K, P, 1);
  int         times;

  *spread = 0;
  if (status == TC_ERR_UNSUPPORTED || (P->cusparse != NULL && status != TC_OK)) return -1;
  device_check(K->backend, status, name);
  begin = device_seconds();
  device_check(K->backend, multiply(K, P, 1), name);
  one = device_seconds() - begin;
  if (1e3 * one > SLOW * hopeless) return 1e3 * one;
  begin = device_seconds();
  device_check(K->backend, multiply(K, P, 3), name);
  times = 1 + (int)(group_seconds / ((device_seconds() - begin) / 3));
  for (int g = 0; g < GROUPS; ++g) {
    begin = device_seconds();
    device_check(K->backend, multiply(K, P, times), name);
    group[g] = 1e3 * (device_seconds() - begin) / times;
  }
  qsort(group, GROUPS, sizeof *group, by_size);
  *spread = group[GROUPS - 1] - group[0];
  return group[GROUPS / 2];
}

/* The largest difference, of the largest element of `right` */
static double farthest(int64_t n, const double *x, const double *right)
{
  double difference = 0, largest = 0;

  for (int64_t i = 0; i < n; ++i) {
    difference = fmax(difference, isnan(x[i]) ? INFINITY : fabs(x[i] - right[i]));
    largest    = fmax(largest, fabs(right[i]));
  }
  return difference / largest;
}

/* The first and the last column of C: the bits of the first kernel that ran, or how far off they are in narrow precisions, of their largest element */
static const char *compare(bench_case *K, tc_precision precision, int w, int32_t n)
{
  static char   text[32];
  const int32_t m      = K->A.num_rows;
  const size_t  bytes  = (size_t)m * sizeof(double);
  double       *column = malloc(2 * bytes + 1), *right = K->columns[w];
  int           same   = 1;

  if (column == NULL) device_die("compare", "no host memory");
  device_check(K->backend, K->backend->download(column, K->c.local, bytes, NULL), "download");
  device_check(K->backend, K->backend->download(column + m, K->c.local + (int64_t)(n - 1) * m, bytes, NULL), "download");
  device_check(K->backend, K->backend->synchronize(NULL), "synchronize");
  if (precision != TC_PRECISION_F64) snprintf(text, sizeof text, "  error %.1e", right ? fmax(farthest(m, column, right), farthest(m, column + m, right + m)) : NAN);
  else if (right) same = tc_first_different(2 * (int64_t)m, column, right) == 2 * (int64_t)m;
  else {
    K->columns[w] = column;
    return "";
  }
  free(column);
  return precision != TC_PRECISION_F64 ? text : same ? "" : "  DIFFERENT BITS";
}

/* With the transpose of a block the numbers are others: no bits to compare */
static void bench_kernel(bench_case *K, const device_matrix *M, const tc_spmm_kernel *kernel, int w, int32_t n, int b_transposed)
{
  tc_spmm_args args  = {n, K->b.local, b_transposed ? n : K->A.num_cols, K->c.local, K->A.num_rows, 0, NULL, b_transposed, 0};
  const size_t bytes = kernel->scratch ? kernel->scratch(M->view.bytes, &args) : 0;
  const double floor = 12.0 * (double)K->A.nnz + 4.0 * K->A.num_rows + 8.0 * n * ((double)K->A.num_rows + K->A.num_cols);
  double       spread, ms;

  if (bytes > K->scratch_bytes) {
    K->backend->release(K->scratch);
    device_check(K->backend, K->backend->alloc(bytes, &K->scratch), "scratch");
    K->scratch_bytes = bytes;
  }
  args.scratch = K->scratch;
  ms = measure(K, &(bench_product){.M = M, .kernel = kernel, .args = &args}, INFINITY, &spread);
  if (ms < 0) printf("  %-32s n %3d  not supported\n", kernel->name, n);
  else printf("  %-32s n %3d  %9.4f ms  +- %.4f  %6.0f GB/s of CSR, B, C once%s\n", kernel->name, n, ms, spread, 1e-6 * floor / ms, b_transposed ? ", B transposed" : compare(K, kernel->precision, w, n));
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
    if (status == TC_OK) status = tc_spmm_choose(S, n, 0, &kernel);
    if (status == TC_OK) tc_spmm_list_rows(S, &view);
    if (status == TC_OK) status = tc_spmm_multiply(S, kernel, &view, &P, NULL);
    if (status != TC_OK) device_die("first product", tc_last_error());
    device_check(K->backend, K->backend->synchronize(NULL), "first product");
    if (repeat == 0 || device_seconds() - begin < fastest) fastest = device_seconds() - begin;
    tc_spmm_destroy(&S);
  }
  printf("  %-32s n %3d  %9.4f ms\n", "first product from CSR", n, 1e3 * fastest);
}

/* `size` 0: `name` is that of a file */
static void open_case(bench_case *K, const tc_backend *backend, const char *name, int32_t size, int32_t widest)
{
  const tc_generator *generator = size > 0 ? tc_generator_find(name) : NULL;
  double             *b;

  memset(K, 0, sizeof *K);
  K->backend = backend;
  if (size > 0 && generator == NULL) device_die(name, "no such generator");
  if ((generator ? tc_generate(generator, size, 1, &K->A) : tc_matrix_file_read(name, &K->A)) != TC_OK) device_die(name, tc_last_error());
  b = malloc(((size_t)K->A.num_cols * (size_t)widest + 1) * sizeof *b);
  if (b == NULL) device_die(name, "no host memory");
  tc_random_normal((int64_t)K->A.num_cols, 3, b);
  for (int64_t i = K->A.num_cols; i < (int64_t)K->A.num_cols * widest; ++i) b[i] = b[i - K->A.num_cols] * 1.25 - 0.5; // any numbers do
  K->b = device_new(backend, (int64_t)K->A.num_cols * widest, 0, b);
  K->c = device_new(backend, (int64_t)K->A.num_rows * widest, 0, NULL);
  free(b);
}

static void close_case(bench_case *K)
{
  device_free(&K->b);
  device_free(&K->c);
  free(K->row_order);
  K->backend->release(K->row_b);
  K->backend->release(K->row_c);
  K->backend->release(K->scratch);
  for (int w = 0; w < MAX_WIDTHS; ++w) free(K->columns[w]);
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

/* Blocks of floats, row-major, for up to n columns */
static void make_row_major(bench_case *K, int32_t n)
{
  enum { PIECE = 1 << 20 };
  const int64_t size = (int64_t)K->A.num_cols * n;
  float        *piece = malloc(PIECE * sizeof *piece);

  if (piece == NULL) device_die("make_row_major", "no host memory");
  for (int i = 0; i < PIECE; ++i) piece[i] = (float)(i % 1999 - 999) / 1024;
  device_check(K->backend, K->backend->alloc((size_t)size * sizeof(float), &K->row_b), "b");
  device_check(K->backend, K->backend->alloc((size_t)K->A.num_rows * (size_t)n * sizeof(float), &K->row_c), "c");
  for (int64_t at = 0; at < size; at += PIECE) device_check(K->backend, K->backend->upload((float *)K->row_b + at, piece, sizeof(float) * (size_t)(size - at < PIECE ? size - at : PIECE), NULL), "upload");
  device_check(K->backend, K->backend->synchronize(NULL), "upload");
  free(piece);
}

static void print_row_major(const bench_case *K, const char *name, int32_t n, double ms, double spread)
{
  if (ms < 0) printf("  %-32s n %3d  row-major floats: not supported\n", name, n);
  else printf("  %-32s n %3d  %9.4f ms  +- %.4f  %6.0f Gflop/s, row-major floats\n", name, n, ms, spread, 2e-6 * (double)K->A.nnz * n / ms);
  fflush(stdout);
}

/* In place, n columns */
static void bench_row_major(bench_case *K, const device_matrix *M, const tc_spmm_kernel *kernel, int32_t n)
{
  const int64_t slots = device_num_slots(M, kernel->format);
  void         *scratch;
  double        spread, ms;

  device_check(K->backend, K->backend->alloc((size_t)(slots * n) * sizeof(double), &scratch), "scratch");
  const tc_spmm_args args = {.n = n, .b = K->row_b, .ldb = n, .c = K->row_c, .ldc = n, .scratch = scratch, .row_major_f32 = 1};

  ms = measure(K, &(bench_product){.M = M, .kernel = kernel, .args = &args}, INFINITY, &spread);
  print_row_major(K, kernel->name, n, ms, spread);
  K->backend->release(scratch);
}

/* What the rules say, and cuSPARSE's algorithms in single precision beside our kernels, B and C by rows; one that was far behind is not tried with more columns */
static void bench_around(bench_case *K, const bench_settings *S)
{
  static const int algorithms[] = {2, 3, 1};
  device_matrix    M = device_pack(K->backend, "csr", TC_PRECISION_F64, &K->A, 1);
  int              slow[] = {0, 0, 0};
  tc_survey        survey;

  device_check(K->backend, tc_survey_now(K->backend, &M.view.csr, &survey, NULL), "survey");
  const tc_spmm_traits traits = tc_spmm_traits_of(&M.view.csr, &survey);

  K->backend->release(survey.list);

  for (int w = 0; w < S->num_row_major; ++w) {
    double best = INFINITY, spread = 0;
    int    rule = 0;

    printf("  rules for blocks by rows: n %3d  %s\n", S->row_major[w], tc_spmm_next_rule(TC_SPMM_RULES_BY_ROWS, &traits, S->row_major[w], &rule));
    for (int a = 0; a < 3; ++a) {
      if (slow[a]) continue;
      const cusparse_spmm_settings settings = {.algorithm = algorithms[a], .row_major = 1, .precision = TC_PRECISION_F32, .n = S->row_major[w]};
      const tc_csr_local           local    = {.num_rows = K->A.num_rows, .num_cols = K->A.num_cols, .nnz = K->A.nnz, .row_ptr = M.view.csr.row_ptr, .col = M.view.csr.col};
      char                         name[32], why[128];
      cusparse_spmm               *spmm = cusparse_spmm_create(&local, &settings, why);

      snprintf(name, sizeof name, "cuSPARSE fp32 alg%d", algorithms[a]);
      const double ms = spmm != NULL ? measure(K, &(bench_product){.cusparse = spmm}, best, &spread) : -1;

      print_row_major(K, name, S->row_major[w], ms, spread);
      if (ms > 0 && ms < best) best = ms;
      slow[a] = ms > SLOW * best;
      if (spmm != NULL) cusparse_spmm_destroy(&spmm);
    }
  }
  device_unpack(&M);
}

/* All kernels of a format and a precision on one case */
static void bench_format(bench_case *K, const char *format, tc_precision precision, int sm, const bench_settings *S)
{
  int                   num, packed = 0;
  const tc_spmm_kernel *kernels = K->backend->spmm_kernels(&num);
  device_matrix         M;

  for (int k = 0; k < num; ++k) {
    if (strcmp(kernels[k].format, format) != 0 || kernels[k].precision != precision || kernels[k].min_sm > sm || strstr(kernels[k].name, S->only) == NULL) continue;
    if (!packed) {
      M      = K->row_order ? device_pack_in_order(K->backend, format, precision, &K->A, K->row_order) : device_pack(K->backend, format, precision, &K->A, 1);
      packed = 1;
      print_format(format, &M);
    }
    for (int w = 0; w < S->num_widths; ++w) {
      for (int b_transposed = 0; b_transposed <= kernels[k].b_transposed; ++b_transposed) bench_kernel(K, &M, &kernels[k], w, S->widths[w], b_transposed);
    }
    for (int w = 0; precision == TC_PRECISION_TF32 && w < S->num_row_major; ++w) bench_row_major(K, &M, &kernels[k], S->row_major[w]);
  }
  for (int w = 0; packed && strcmp(format, "csr") == 0 && precision == TC_PRECISION_F64 && w < S->num_widths; ++w) bench_first(K, &M, S->widths[w]);
  if (packed) device_unpack(&M);
}

/* Products by rows once more, with rows packed in an order */
static void bench_reordered(bench_case *K, int sm, const bench_settings *S)
{
  const double   begin   = device_seconds();
  bench_settings by_rows = *S;

  by_rows.num_widths = 0;
  K->row_order       = malloc(((size_t)K->A.num_rows + 1) * sizeof *K->row_order);
  if (K->row_order == NULL) device_die("bench_reordered", "no host memory");
  if (tc_row_order_by_halves(&K->A, K->row_order) != TC_OK) device_die("bench_reordered", tc_last_error());
  printf("  rows reordered on the host, %.2f s\n", device_seconds() - begin);
  bench_format(K, "bittcf", TC_PRECISION_TF32, sm, &by_rows);
}

static int read_widths(const char *list, int32_t limit, int32_t widths[MAX_WIDTHS])
{
  int num = 0;

  for (const char *at = list; *at && num < MAX_WIDTHS; at += strcspn(at, ","), at += *at == ',') {
    widths[num] = atoi(at);
    if (widths[num] < 1 || widths[num] > limit) device_die(list, "number of columns out of range");
    ++num;
  }
  return num;
}

int spmm_bench(const tc_backend *backend, int sm, const char *only, const char *widths, const char *row_major, int reorder, const char *case_list)
{
  bench_settings S      = {.only = only, .reorder = reorder};
  int32_t        widest = 1, widest_row_major = 0;
  const char    *list   = case_list ? case_list : usual_cases;

  S.num_widths    = read_widths(widths, TC_SPMM_COLUMNS, S.widths);
  S.num_row_major = row_major ? read_widths(row_major, 1024, S.row_major) : 0;
  for (int w = 0; w < S.num_widths; ++w) widest = S.widths[w] > widest ? S.widths[w] : widest;
  for (int w = 0; w < S.num_row_major; ++w) widest_row_major = S.row_major[w] > widest_row_major ? S.row_major[w] : widest_row_major;
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
    char       name[256] = "";
    int        size     = 0;
    bench_case K;

    if (sscanf(at, "%255[^:,]:%d", name, &size) < 1) device_die(at, "expected generator:size or a file");
    open_case(&K, backend, name, size, widest);
    printf("%s %d: %d x %d, %lld entries\n", name, size, K.A.num_rows, K.A.num_cols, (long long)K.A.nnz);
    if (widest_row_major > 0) make_row_major(&K, widest_row_major);
    if (widest_row_major > 0) bench_around(&K, &S);
    bench_format(&K, "csr", TC_PRECISION_F64, sm, &S);
    bench_format(&K, "hybrid", TC_PRECISION_F64, sm, &S);
    for (tc_precision precision = TC_PRECISION_F32; precision <= TC_PRECISION_F16; ++precision) bench_format(&K, "csr", precision, sm, &S);
    for (tc_precision precision = TC_PRECISION_F64; precision <= TC_PRECISION_F16; ++precision) bench_format(&K, "bittcf", precision, sm, &S);
    for (tc_precision precision = TC_PRECISION_BF16; precision <= TC_PRECISION_F16; ++precision) bench_format(&K, "bcsr", precision, sm, &S);
    if (S.reorder) bench_reordered(&K, sm, &S);
    close_case(&K);
  }
  return 0;
}
