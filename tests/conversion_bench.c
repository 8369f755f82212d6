#include "conversion_bench.h"
#include "../bench/matrix_binary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 15, FEW = 20, PRODUCTS = 50 }; // FEW: and no more, so that a plan does not yet collect

/* A matrix on the device, a plan for it and what it multiplies */
typedef struct {
  const tc_backend *backend;
  tc_plan          *plan;
  tc_csr_local      pattern;
  tc_key            key;
  device_array      row_ptr, col, val, x, z; // the ids take half of their arrays
} bench_matrix;

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* 32-bit ids in an array of doubles */
static device_array new_ids(const tc_backend *backend, const int32_t *ids, int64_t n)
{
  double      *image = calloc((size_t)n / 2 + 1, sizeof *image);
  device_array array;

  if (image == NULL) device_die("calloc", "no host memory");
  memcpy(image, ids, (size_t)n * sizeof *ids);
  array = device_new(backend, n / 2 + 1, 0, image);
  free(image);
  return array;
}

/* What was packed goes first: its release waits for the device */
static void new_plan(bench_matrix *M)
{
  const tc_plan_options options = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64};

  tc_plan_destroy(&M->plan);
  if (tc_plan_create(M->backend, &options, &M->plan) != TC_OK) device_die("tc_plan_create", tc_last_error());
}

static bench_matrix new_matrix(const tc_backend *backend, const tc_matrix *A, int32_t row_group)
{
  bench_matrix M       = {.backend = backend, .key = {.id = 1, .pattern = 1, .state = 1, .nnz = A->nnz}};
  int32_t     *row_ptr = calloc((size_t)A->num_rows + 1, sizeof *row_ptr);
  double      *x       = calloc((size_t)A->num_cols + 1, sizeof *x);

  if (row_ptr == NULL || x == NULL) device_die("calloc", "no host memory");
  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  tc_random_uniform(A->num_cols, 3, x);
  M.row_ptr = new_ids(backend, row_ptr, (int64_t)A->num_rows + 1);
  M.col     = new_ids(backend, A->col, A->nnz);
  M.val     = device_new(backend, A->nnz, 0, A->val);
  M.x       = device_new(backend, A->num_cols, 0, x);
  M.z       = device_new(backend, A->num_rows, 0, NULL);
  M.pattern = (tc_csr_local){A->num_rows, A->num_cols, A->nnz, (int32_t *)(void *)M.row_ptr.local, (int32_t *)(void *)M.col.local, row_group, TC_PRECISION_F64, NULL};
  free(row_ptr);
  free(x);
  return M;
}

static void free_matrix(bench_matrix *M)
{
  tc_plan_destroy(&M->plan);
  device_free(&M->row_ptr);
  device_free(&M->col);
  device_free(&M->val);
  device_free(&M->x);
  device_free(&M->z);
}

enum { PRODUCT, REFILL, COLLECT, BUILD }; // each with what has to follow it; what is collected has been refilled

/* Milliseconds from idle to idle */
static double time_once(bench_matrix *M, int what, int products)
{
  double begin;

  if (what == BUILD) new_plan(M);
  device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
  begin = device_seconds();
  if (what == BUILD && tc_plan_build_local(M->plan, &M->pattern, NULL) != TC_OK) device_die("build", tc_last_error());
  if (what >= REFILL && tc_plan_refill(M->plan, M->val.local, &M->key, TC_CACHE_REFILL, NULL) != TC_OK) device_die("refill", tc_last_error());
  if (what == COLLECT && tc_plan_collect(M->plan, NULL) != TC_OK) device_die("collect", tc_last_error());
  for (int i = 0; i < products; ++i) {
    if (tc_plan_spmv(M->plan, M->x.local, NULL, M->z.local, 1, NULL) != TC_OK) device_die("product", tc_last_error());
  }
  device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
  return 1e3 * (device_seconds() - begin);
}

static double median_of(bench_matrix *M, int what, int products)
{
  double ms[TIMES];

  for (int i = 0; i < TIMES; ++i) ms[i] = time_once(M, what, products);
  qsort(ms, TIMES, sizeof *ms, by_size);
  return ms[TIMES / 2];
}

static void time_case(const tc_backend *backend, const char *name, const tc_matrix *A, int32_t row_group)
{
  bench_matrix M = new_matrix(backend, A, row_group);
  double       first, once, product, refill, build, collect, collected;
  tc_detail    detail;

  first   = time_once(&M, BUILD, 1);
  build   = median_of(&M, BUILD, 1);
  refill  = median_of(&M, REFILL, 1);
  once    = median_of(&M, PRODUCT, 1);
  product = (median_of(&M, REFILL, 1 + FEW) - refill) / FEW;
  collect = time_once(&M, COLLECT, 1); // the first one loads kernels
  collect = median_of(&M, COLLECT, 1) - refill;
  collected = median_of(&M, PRODUCT, PRODUCTS) / PRODUCTS;
  build -= refill;
  refill -= once;
  if (tc_plan_detail(M.plan, &detail, NULL) != TC_OK) device_die("detail", tc_last_error());
  printf("%-24s %10lld %8.4f %8.4f %8.4f %8.4f %7.1f %7.1f %7.1f %8.4f %8.4f   %s\n", name, (long long)A->nnz, product, build, refill, first, build / product, refill / product, (build + refill) / product, collect, collected, detail.kinds);
  fflush(stdout);
  free_matrix(&M);
}

/* generator:size or the name of a file */
static void run_case(const tc_backend *backend, char *text)
{
  char               *size      = strchr(text, ':');
  const tc_generator *generator = NULL;
  const char         *slash     = strrchr(text, '/');
  tc_matrix           A;
  tc_status           status;

  if (size) *size = '\0';
  if (size) generator = tc_generator_find(text);
  if (size && generator == NULL) device_die(text, "no such generator");
  status = generator ? tc_generate(generator, atoi(size + 1), 1, &A) : tc_matrix_file_read(text, &A);
  if (status != TC_OK) device_die(text, tc_last_error());
  if (size) *size = ':';
  time_case(backend, slash ? slash + 1 : text, &A, generator && generator->block > 1 && A.num_rows % generator->block == 0 ? generator->block : 1);
  tc_matrix_free(&A);
}

int conversion_bench(const tc_backend *backend, const char *cases)
{
  char *list = calloc(strlen(cases) + 1, 1), *rest = list, *text;

  if (list == NULL) device_die("calloc", "no host memory");
  memcpy(list, cases, strlen(cases));
  printf("%-24s %10s %8s %8s %8s %8s %7s %7s %7s %8s %8s\n", "case", "nonzeros", "product", "build", "refill", "first", "b/prod", "r/prod", "both", "collect", "product");
  while ((text = strtok_r(rest, ",", &rest)) != NULL) run_case(backend, text);
  free(list);
  return 0;
}
