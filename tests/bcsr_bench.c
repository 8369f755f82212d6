#include "bcsr_bench.h"
#include "../bench/cusparse_bsr.h"
#include "../bench/cusparse_spmm.h"
#include "../src/format/bcsr.h"
#include "../src/plan/spmm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 5, MAX_WIDTHS = 16, BLOCK = 16 };

/* Matrices, the fuller ones of a part of the size */
static const struct {
  const char *name;
  int         part;
} cases[] = {{"10d0s", 1}, {"0d10s", 1}, {"5d5s", 1}, {"50d0s", 2}, {"0d50s", 2}, {"25d25s", 2}, {"0d100s", 2}};

static const double      group_seconds = 0.01;

/* What is timed: one of ours, or cuSPARSE */
typedef struct {
  const tc_backend     *backend;
  tc_spmm              *products;
  const tc_spmm_kernel *kernel;
  const void           *view;
  tc_spmm_product       product;
  const cusparse_spmm  *csr;
  const cusparse_bsr   *bsr;
} candidate;

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static void run(const candidate *K, int times)
{
  for (int i = 0; i < times; ++i) {
    if (K->products) device_check(K->backend, tc_spmm_multiply(K->products, K->kernel, K->view, &K->product, NULL), K->kernel->name);
    else if (K->csr ? cusparse_spmm_multiply(K->csr) : cusparse_bsr_multiply(K->bsr)) device_die("cuSPARSE", "a product failed");
  }
  device_check(K->backend, K->backend->synchronize(NULL), "synchronize");
}

/* Median of milliseconds per product */
static double measure(const candidate *K)
{
  double group[GROUPS], begin;
  int    times;

  run(K, 2);
  begin = device_seconds();
  run(K, 3);
  times = 1 + (int)(group_seconds / ((device_seconds() - begin) / 3));
  for (int g = 0; g < GROUPS; ++g) {
    begin = device_seconds();
    run(K, times);
    group[g] = 1e3 * (device_seconds() - begin) / times;
  }
  qsort(group, GROUPS, sizeof *group, by_size);
  return group[GROUPS / 2];
}

static device_matrix pack(const tc_backend *backend, const tc_matrix *A, tc_precision precision, tc_bcsr_kinds kinds, tc_stats *stats, double *build_ms)
{
  tc_csr        pattern = tc_matrix_pattern(A);
  tc_bcsr       T;
  device_matrix M;

  pattern.precision = precision;
  *build_ms         = device_seconds();
  if (tc_bcsr_build(&pattern, kinds, &T) != TC_OK) device_die("bcsr", tc_last_error());
  *build_ms = 1e3 * (device_seconds() - *build_ms);
  tc_format_stats(&tc_format_bcsr, &T, stats);
  M = device_pack_view(backend, &tc_format_bcsr, &T, A);
  tc_format_destroy(&tc_format_bcsr, &T);
  return M;
}

/* The faster of the two algorithms for rows of B; infinite if neither does it */
static double measure_csr(const tc_backend *backend, const tc_csr_view *V, int32_t n)
{
  const tc_csr_local A       = {.num_rows = V->num_rows, .num_cols = V->num_cols, .nnz = V->nnz, .row_ptr = V->row_ptr, .col = V->col};
  double             fastest = INFINITY;

  for (int algorithm = 2; algorithm <= 3; ++algorithm) {
    const cusparse_spmm_settings settings = {.algorithm = algorithm, .row_major = 1, .precision = TC_PRECISION_F16, .n = n};
    char                         why[128];
    cusparse_spmm               *csr = cusparse_spmm_create(&A, &settings, why);

    if (csr) fastest = fmin(fastest, measure(&(candidate){.backend = backend, .csr = csr}));
    else fprintf(stderr, "# cuSPARSE CSR, algorithm %d, %d columns: %s\n", algorithm, n, why);
    cusparse_spmm_destroy(&csr);
  }
  return fastest;
}

static double measure_bsr(const tc_backend *backend, const tc_matrix *A, int32_t n)
{
  char          why[128];
  cusparse_bsr *bsr = cusparse_bsr_create(A, BLOCK, n, why);
  const double  ms  = bsr ? measure(&(candidate){.backend = backend, .bsr = bsr}) : INFINITY;

  if (bsr == NULL) fprintf(stderr, "# cuSPARSE BSR, %d columns: %s\n", n, why);
  cusparse_bsr_destroy(&bsr);
  return ms;
}

static const tc_spmm_kernel *kernel_of(const tc_backend *backend, int sm, const char *format, tc_precision precision)
{
  int                   num;
  const tc_spmm_kernel *kernels = backend->spmm_kernels(&num);

  for (int k = 0; k < num; ++k) {
    if (strcmp(kernels[k].format, format) == 0 && kernels[k].precision == precision && kernels[k].min_sm <= sm) return &kernels[k];
  }
  device_die(format, "no kernel");
}

static void bench_case(const tc_backend *backend, int sm, const char *name, int32_t size, int num_widths, const int32_t *widths, int32_t widest)
{
  enum { FP16, FP16_DENSE, BF16, FP16_BITTCF, FP64_CSR, NUM_PACKED };
  static const tc_spmm_options none = {.format = NULL};
  tc_matrix                    A;
  tc_spmm                     *products;
  tc_stats                     stats, stats_dense, stats_bf16;
  device_array                 b, c;
  double                      *numbers, build_ms, unused;

  if (tc_generate(tc_generator_find(name), size, 1, &A) != TC_OK) device_die(name, tc_last_error());
  device_check(backend, tc_spmm_create(backend, &none, &products), "tc_spmm_create");
  numbers = malloc((size_t)size * (size_t)widest * sizeof *numbers);
  if (numbers == NULL) device_die(name, "no host memory");
  tc_random_uniform((int64_t)size * widest, 3, numbers);
  b = device_new(backend, (int64_t)size * widest, 0, numbers);
  c = device_new(backend, (int64_t)size * widest, 0, NULL);
  device_matrix M[NUM_PACKED] = {pack(backend, &A, TC_PRECISION_F16, TC_BCSR_BOTH_KINDS, &stats, &build_ms), pack(backend, &A, TC_PRECISION_F16, TC_BCSR_DENSE_ONLY, &stats_dense, &unused), pack(backend, &A, TC_PRECISION_BF16, TC_BCSR_BOTH_KINDS, &stats_bf16, &unused),
                                 device_pack(backend, "bittcf", TC_PRECISION_F16, &A, 1), device_pack(backend, "csr", TC_PRECISION_F64, &A, 1)};
  const tc_spmm_kernel *const kernels[NUM_PACKED] = {kernel_of(backend, sm, "bcsr", TC_PRECISION_F16), kernel_of(backend, sm, "bcsr", TC_PRECISION_F16), kernel_of(backend, sm, "bcsr", TC_PRECISION_BF16), kernel_of(backend, sm, "bittcf", TC_PRECISION_F16),
                                                     kernel_of(backend, sm, "csr", TC_PRECISION_F64)};

  printf("# %s %d: %lld entries; %s; without 2:4: %s; build %.0f ms on the host, refill %.3f ms\n", name, size, (long long)A.nnz, stats.classes, stats_dense.classes, build_ms, M[FP16].refill_ms);
  for (int w = 0; w < num_widths; ++w) {
    const int32_t n = widths[w];

    printf("%-7s %5d %8lld %5d", name, size, (long long)A.nnz, n);
    for (int k = 0; k < NUM_PACKED; ++k) {
      const candidate K = {.backend = backend, .products = products, .kernel = kernels[k], .view = M[k].view.bytes, .product = {.rows_b = size, .rows_c = size, .n = n, .b = b.local, .ldb = size, .c = c.local, .ldc = size}};

      printf(" %8.4f", measure(&K));
    }
    printf(" %8.4f %8.4f\n", measure_csr(backend, &M[FP64_CSR].view.csr, n), measure_bsr(backend, &A, n));
    fflush(stdout);
  }
  for (int k = 0; k < NUM_PACKED; ++k) device_unpack(&M[k]);
  device_free(&b);
  device_free(&c);
  tc_spmm_destroy(&products);
  free(numbers);
  tc_matrix_free(&A);
}

int bcsr_bench(const tc_backend *backend, int sm, const char *width_list, const char *only, int32_t size)
{
  int32_t widths[MAX_WIDTHS], widest = 0;
  int     num_widths = 0;

  for (const char *at = width_list; *at && num_widths < MAX_WIDTHS; at += strcspn(at, ","), at += *at == ',') {
    widths[num_widths] = atoi(at);
    if (widths[num_widths] < 1) device_die(width_list, "expected numbers of columns");
    if (widths[num_widths] > widest) widest = widths[num_widths];
    ++num_widths;
  }
  printf("# milliseconds per product; ours from and to doubles, column-major; cuSPARSE from and to fp16, row-major\n# matrix size entries n sparse24_fp16 dense_tiles_fp16 sparse24_bf16 bittcf_fp16 csr_fp64 cusparse_csr_fp16 cusparse_bsr_fp16\n");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (strstr(cases[i].name, only)) bench_case(backend, sm, cases[i].name, size / cases[i].part, num_widths, widths, widest);
  }
  return 0;
}
