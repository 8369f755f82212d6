/*
  Device kernels without PETSc: test_kernels [-small|-few] [-kernel part-of-its-name] libaijtccusparse_cuda.so
  Every kernel of the backend's table on every test matrix, through a plan: the bits must be those that the format defines, again and again, with guard words
  around the output. -small leaves out what takes a memory checker too long, -few what takes a checker of shared memory too long, too: matrices that fill a device. Exit code 77: no
  usable device.
*/
#include "device_cases.h"
#include "../bench/oracle.h"
#include "../src/plan/plan.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, SKIPPED = 77 };

static int     passed, failed, small_only, few;
static int32_t row_group = 1; // of every pattern: rows of a node

static tc_csr pattern_of(const tc_matrix *A)
{
  tc_csr pattern = tc_matrix_pattern(A);

  pattern.row_group = row_group;
  return pattern;
}

static void die(const char *what, const char *text)
{
  fprintf(stderr, "test_kernels: %s: %s\n", what, text);
  exit(1);
}

static void check(tc_status status, const char *what)
{
  if (status != TC_OK) die(what, tc_last_error());
}

static void fact(int so, const char *kernel, const char *name, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so || !small_only) printf("%s %s on %s: %s\n", so ? "ok  " : "FAIL", kernel, name, what);
}

/* n numbers on the device between guard words; `host` (NULL: NaN) is copied in */
typedef struct {
  const tc_backend *backend;
  double           *block, *local;
  int64_t           n;
} device_array;

static device_array device_new(const tc_backend *backend, int64_t n, const double *host)
{
  device_array  D = {backend, NULL, NULL, n};
  const size_t  bytes = ((size_t)n + 2 * GUARD) * sizeof(double);
  double       *image = malloc(bytes);
  void         *local;

  if (image == NULL) die("device_new", "no host memory");
  for (int64_t i = 0; i < n + 2 * GUARD; ++i) image[i] = NAN;
  if (host) memcpy(image + GUARD, host, (size_t)n * sizeof *host);
  check(backend->alloc(bytes, &local), "alloc");
  D.block = local;
  D.local = D.block + GUARD;
  check(backend->upload(D.block, image, bytes, NULL), "upload");
  check(backend->synchronize(NULL), "synchronize");
  free(image);
  return D;
}

/* Copies the numbers back; are the guard words still NaN? */
static int device_get(const device_array *D, double *host)
{
  const size_t bytes = ((size_t)D->n + 2 * GUARD) * sizeof(double);
  double      *image = malloc(bytes);
  int          whole = 1;

  if (image == NULL) die("device_get", "no host memory");
  check(D->backend->download(image, D->block, bytes, NULL), "download");
  check(D->backend->synchronize(NULL), "synchronize");
  for (int i = 0; i < GUARD; ++i) whole = whole && isnan(image[i]) && isnan(image[D->n + GUARD + i]);
  memcpy(host, image + GUARD, (size_t)D->n * sizeof *host);
  free(image);
  return whole;
}

static void device_free(device_array *D)
{
  D->backend->release(D->block);
}

/* z = A x or z = y + A x by the host, which other tests compare with the values that are packed */
static void host_product(const tc_plan_options *options, const tc_matrix *A, const double *x, const double *y, double *z)
{
  const tc_plan_options on_host = {options->format, TC_ARITHMETIC_AUTO, options->precision, TC_SCALAR_F64};
  const tc_csr          pattern = pattern_of(A);
  const tc_key          key     = {.id = 1, .pattern = 1, .state = 1, .nnz = A->nnz};
  tc_plan              *plan;

  check(tc_plan_create(tc_backend_host(), &on_host, &plan), "tc_plan_create");
  check(tc_plan_build(plan, &pattern), "tc_plan_build");
  check(tc_plan_upload(plan, NULL), "tc_plan_upload");
  check(tc_plan_refill(plan, A->val, &key, TC_CACHE_REBUILD, NULL), "refill");
  check(tc_plan_spmv(plan, x, y, z, 1, NULL), "spmv");
  tc_plan_destroy(&plan);
}

static void expect(const tc_plan_options *options, const tc_matrix *A, const double *x, const double *y, double *z)
{
  if (options->precision == TC_PRECISION_F64) tc_canonical_spmv(A, x, y, z);
  else host_product(options, A, x, y, z);
}

/* z = A x, z = y + A x, the latter in place, and z = y - A x */
static void check_products(tc_plan *plan, const tc_plan_options *options, const tc_kernel *kernel, const char *name, const tc_matrix *A, const double *x, int repeats)
{
  static const char *const what[] = {"z = Ax", "z = y + Ax", "y += Ax", "z = y - Ax"};
  const int32_t            m      = A->num_rows;
  double                  *y = malloc(((size_t)m + 1) * sizeof *y), *z = malloc(((size_t)m + 1) * sizeof *z), *expected = malloc(((size_t)m + 1) * sizeof *expected);
  device_array             dx = device_new(tc_plan_backend(plan), A->num_cols, x);

  tc_random_normal(m, 5, y);
  for (int add = 0; add < 4; add += small_only ? 2 : 1) {
    int same = 1, whole = 1;

    expect(options, A, x, add > 0 && add < 3 ? y : NULL, expected);
    for (int32_t i = 0; add == 3 && i < m; ++i) expected[i] = y[i] - expected[i];
    for (int r = 0; r < repeats && same && whole; ++r) {
      device_array dy = device_new(tc_plan_backend(plan), m, y), dz = device_new(tc_plan_backend(plan), m, NULL);

      check(tc_plan_spmv(plan, dx.local, add ? dy.local : NULL, add == 2 ? dy.local : dz.local, add == 3 ? -1 : 1, NULL), "spmv");
      whole = device_get(add == 2 ? &dy : &dz, z);
      same  = tc_first_different(m, z, expected) == m;
      device_free(&dy);
      device_free(&dz);
    }
    fact(same, kernel->name, name, what[add]);
    fact(whole, kernel->name, name, "nothing written outside");
  }
  device_free(&dx);
  free(y);
  free(z);
  free(expected);
}

/* Fills the plan through the device: values up, gathered there */
static void fill(tc_plan *plan, const tc_matrix *A, int64_t state, tc_verdict verdict)
{
  const tc_key key = {.id = 1, .pattern = 1, .state = state, .nnz = A->nnz};
  device_array val = device_new(tc_plan_backend(plan), A->nnz, A->val);

  check(tc_plan_refill(plan, val.local, &key, verdict, NULL), "refill");
  check(tc_plan_backend(plan)->synchronize(NULL), "synchronize");
  device_free(&val);
}

/*
  Products that follow each other without a wait of the host, each of the result of the one before, every third in place, and other values before every second, random ones and
  the matrix's own in turns, so that their kinds change, too, with codes of 16 bits behind every third: kernels that begin early must not see what was there before
*/
static void check_chain(tc_plan *plan, const tc_plan_options *options, const tc_kernel *kernel, const char *name, tc_matrix *A, const double *x)
{
  enum { STEPS = 7 };
  const size_t n   = (size_t)A->num_rows;
  double      *sum = malloc((n + 1) * sizeof *sum), *host[2] = {malloc((n + 1) * sizeof *sum), malloc((n + 1) * sizeof *sum)}, *values = malloc(((size_t)A->nnz + 1) * sizeof *values);
  device_array local[2], val[2];

  if (A->num_rows != A->num_cols) goto done;
  if (sum == NULL || host[0] == NULL || host[1] == NULL || values == NULL) die("check_chain", "no host memory");
  tc_random_normal(A->nnz, 23, values);
  memcpy(host[0], x, n * sizeof *x);
  tc_random_normal(A->num_rows, 29, host[1]);
  for (int i = 0; i < 2; ++i) {
    local[i] = device_new(tc_plan_backend(plan), A->num_rows, host[i]);
    val[i]   = device_new(tc_plan_backend(plan), A->nnz, i ? A->val : values);
  }
  for (int s = 0; s < STEPS; ++s) {
    const tc_key key  = {.id = 1, .pattern = 1, .state = 3 + s, .nnz = A->nnz};
    double      *from = local[s % 2].local, *to = local[(s + 1) % 2].local;

    if (s % 2) check(tc_plan_refill(plan, val[s / 2 % 2].local, &key, TC_CACHE_REFILL, NULL), "refill");
    if (s % 3 == 2) check(tc_plan_collect(plan, NULL), "collect");
    check(tc_plan_spmv(plan, from, s % 3 == 2 ? to : NULL, to, 1, NULL), "spmv");
  }
  for (int s = 0; s < STEPS; ++s) {
    double *to = host[(s + 1) % 2];

    for (int64_t j = 0; s % 2 && j < A->nnz; ++j) {
      const double other = values[j];

      values[j] = A->val[j];
      A->val[j] = other;
    }
    expect(options, A, host[s % 2], s % 3 == 2 ? to : NULL, sum);
    memcpy(to, sum, n * sizeof *sum);
  }
  for (int i = 0; i < 2; ++i) {
    fact(device_get(&local[i], sum) && tc_first_different(A->num_rows, sum, host[i]) == A->num_rows, kernel->name, name, i ? "products in a row, the last" : "products in a row, the last but one");
    device_free(&local[i]);
    device_free(&val[i]);
  }
done:
  free(sum);
  free(host[0]);
  free(host[1]);
  free(values);
}

static void check_kernel(const tc_backend *backend, const tc_kernel *kernel, tc_precision precision, const char *name, tc_matrix *A, int repeats)
{
  const tc_plan_options options = {kernel->format, kernel->arithmetic, precision, TC_SCALAR_F64};
  const tc_csr          pattern = pattern_of(A);
  double               *x = malloc(((size_t)A->num_cols + 1) * sizeof *x);
  tc_plan              *plan;

  if (x == NULL) die("check_kernel", "no host memory");
  tc_random_normal(A->num_cols, 3, x);
  check(tc_plan_create(backend, &options, &plan), "tc_plan_create");
  check(tc_plan_build(plan, &pattern), "tc_plan_build");
  check(tc_plan_upload(plan, NULL), "tc_plan_upload");
  fact(strcmp(tc_plan_kernel(plan)->name, kernel->name) == 0, kernel->name, name, "chosen when asked for");
  fill(plan, A, 1, TC_CACHE_REBUILD);
  check_products(plan, &options, kernel, name, A, x, repeats);
  check(tc_plan_collect(plan, NULL), "collect"); // codes of 16 bits
  check_products(plan, &options, kernel, name, A, x, 1);
  if (!small_only) {
    tc_random_normal(A->nnz, 17, A->val); // new values
    fill(plan, A, 2, TC_CACHE_REFILL);
    check_products(plan, &options, kernel, name, A, x, 1);
  }
  check_chain(plan, &options, kernel, name, A, x);
  if (A->num_cols > 0 && !small_only) { // what is not finite stays in the rows that refer to it
    x[0]               = NAN;
    x[A->num_cols / 2] = INFINITY;
    check_products(plan, &options, kernel, name, A, x, 1);
  }
  tc_plan_destroy(&plan);
  free(x);
}

static void check_full(const tc_backend *backend, const tc_kernel *kernel)
{
  device_case C;

  for (int i = 0; device_case_full(i, &C); ++i) {
    tc_matrix A;

    check(tc_generate(C.generator, C.size, 1, &A), C.generator->name);
    check_kernel(backend, kernel, kernel->precision, C.generator->name, &A, 1);
    tc_matrix_free(&A);
  }
}

/* Scattered columns of 16 bits, of rows that fill 147 multiprocessors four times: the largest blocks of scalar lanes (scalar_threads()) */
static void check_large_blocks(const tc_backend *backend, const tc_kernel *kernel)
{
  tc_matrix A;

  check(tc_generate(tc_generator_find("stencil27_window"), 107, 1, &A), "stencil27_window");
  check_kernel(backend, kernel, kernel->precision, "stencil27_window, 107^3", &A, 1);
  tc_matrix_free(&A);
}

/*
  Coefficients that are constant along diagonals, in rows by themselves and in nodes of three: slices whose columns are bases alone and whose values are codes, of every length modulo a
  block's places and with more than a warp's lines; and long rows of codes, which end with one of a pair, or begin a second segment so
*/
static void check_bands(const tc_backend *backend, const tc_kernel *kernel)
{
  static const int32_t lengths[] = {8, 3, 130, 4, 5, 6, 7, 27, 124, 128, 255, 1, 2, 257, 2049};
  const int            num       = few ? 3 : (int)(sizeof lengths / sizeof *lengths);
  const int32_t        rows      = 70; // two whole slices, and one that is not

  for (int i = 0; i < 2 * num; ++i) {
    const int32_t length = lengths[i / 2];
    tc_matrix     A;

    row_group = i % 2 ? 3 : 1;
    check(tc_matrix_create(rows, rows + length - 1, (int64_t)rows * length, &A), "tc_matrix_create");
    for (int32_t e = 0; e < rows * length; ++e) {
      const int32_t row = e / length, k = e % length;

      A.row_ptr[row + 1] = (int64_t)(row + 1) * length;
      A.col[e]           = row / row_group * row_group + k;
      A.val[e]           = 1.0 / (k % 9 - 9.5);
    }
    check_kernel(backend, kernel, kernel->precision, row_group > 1 ? "band of nodes" : "band", &A, 2);
    tc_matrix_free(&A);
  }
  row_group = 1;
}

/* A failing launch is reported and does not spoil the plan */
static void check_faults(const tc_backend *backend)
{
  static const tc_fault_point points[] = {TC_FAULT_ALLOC, TC_FAULT_UPLOAD, TC_FAULT_LAUNCH};
  const tc_plan_options       options  = {NULL, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix                   A;
  tc_csr                      pattern;

  check(tc_generate(tc_generator_find("limits"), 65, 1, &A), "tc_generate");
  pattern = tc_matrix_pattern(&A);
  for (int p = 0; p < 3; ++p) {
    const tc_key key = {.id = 1, .pattern = 1, .state = 1, .nnz = A.nnz};
    device_array val = device_new(backend, A.nnz, A.val);
    int          failures = 0;
    tc_plan     *plan;

    check(tc_plan_create(backend, &options, &plan), "tc_plan_create");
    for (;; ++failures) {
      tc_status status;

      backend->fault_arm(points[p], failures + 1);
      status = tc_plan_build(plan, &pattern);
      if (status == TC_OK) status = tc_plan_upload(plan, NULL);
      if (status == TC_OK) status = tc_plan_refill(plan, val.local, &key, TC_CACHE_REBUILD, NULL);
      backend->fault_arm(points[p], 0);
      if (status == TC_OK || failures > 100) break;
    }
    fact(failures > 0 && failures <= 100 && tc_plan_check(plan, &key) == TC_CACHE_HIT, "plan", "limits", "usable after every failure");
    tc_plan_destroy(&plan);
    device_free(&val);
  }
  tc_matrix_free(&A);
}

/* A device without memory cannot be made ready, which is reported and not tried again; one with memory can, again and again; either way all kernels are right afterwards */
static void check_warm_up(const tc_backend *backend)
{
  tc_status first, second, other, again;

  backend->fault_arm(TC_FAULT_ALLOC, 1);
  first = backend->warm_up(TC_SCALAR_F32);
  backend->fault_arm(TC_FAULT_ALLOC, 0);
  second = backend->warm_up(TC_SCALAR_F32);
  other  = backend->warm_up(TC_SCALAR_F64);
  backend->fault_arm(TC_FAULT_ALLOC, 1);
  again = backend->warm_up(TC_SCALAR_F64);
  fact(first == TC_ERR_MEMORY && second == TC_OK, "warm_up", "no memory", "reported once");
  fact(other == TC_OK && again == TC_OK && backend->fault_arm(TC_FAULT_ALLOC, 0) == 1, "warm_up", "a device", "done once");
}

/* The first precision that no earlier row for the same format and arithmetic reads */
static tc_precision first_precision(const tc_kernel *kernels, int k)
{
  tc_precision first = TC_PRECISION_F64;

  for (int i = 0; i < k; ++i) {
    if (strcmp(kernels[i].format, kernels[k].format) == 0 && kernels[i].arithmetic == kernels[k].arithmetic) first = kernels[i].precision + 1;
  }
  return first;
}

int main(int argc, char **args)
{
  const char        *path = NULL, *only = "";
  void              *library;
  tc_backend_cuda_fn get;
  const tc_backend  *backend;
  const tc_kernel   *kernels;
  int                sm, num_kernels;
  device_case        C;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) small_only = 1;
    else if (strcmp(args[i], "-few") == 0) small_only = few = 1;
    else if (strcmp(args[i], "-kernel") == 0 && i + 1 < argc) only = args[++i];
    else path = args[i];
  }
  if (path == NULL) die("usage", "test_kernels [-small|-few] [-kernel part-of-its-name] libaijtccusparse_cuda.so");
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) die("dlopen", dlerror());
  *(void **)&get = dlsym(library, "tc_backend_cuda");
  if (get == NULL) die(path, "no symbol tc_backend_cuda");
  backend = get();
  if (backend->probe(&sm) != TC_OK) {
    printf("skip no usable device: %s\n0 passed, 0 failed, 1 skipped\n", backend->last_error());
    return SKIPPED;
  }
  check_warm_up(backend);
  kernels = backend->kernels(&num_kernels);
  for (int k = 0; k < num_kernels; ++k) {
    if (kernels[k].min_sm > sm || kernels[k].scalar != TC_SCALAR_F64 || strstr(kernels[k].name, only) == NULL) continue; // those for vectors of floats: test_scalar
    for (int i = 0; device_case_at(small_only, i, &C); ++i) {
      const int repeats = small_only ? 1 : strcmp(C.generator->name, "limits") == 0 || strcmp(C.generator->name, "short") == 0 ? 1000 : 3;

      for (int seed = 1; seed <= (small_only ? 1 : 3); ++seed) {
        for (tc_precision precision = first_precision(kernels, k); precision <= kernels[k].precision; ++precision) {
          tc_matrix A; // whose values the check changes

          check(tc_generate(C.generator, C.size, (uint64_t)seed, &A), C.generator->name);
          check_kernel(backend, &kernels[k], precision, C.generator->name, &A, seed == 1 && precision == first_precision(kernels, k) ? repeats : 1);
          tc_matrix_free(&A);
        }
      }
    }
    check_bands(backend, &kernels[k]);
    if (!few && (!small_only || strcmp(kernels[k].format, "hybrid") == 0)) check_full(backend, &kernels[k]);
    if (!small_only && strcmp(kernels[k].format, "hybrid") == 0 && kernels[k].arithmetic == TC_ARITHMETIC_FMA) check_large_blocks(backend, &kernels[k]);
    if (small_only) printf("ok   %s: %d facts so far\n", kernels[k].name, passed);
  }
  if (strstr("faults", only)) check_faults(backend);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
