/*
  Products straight from CSR on a device, without PETSc: test_straight [-small|-few] [-bench generator:size,...] libaijtccusparse_cuda.so
  On every test matrix, in doubles and floats, the bits must be those that products with vectors have, again and again with the same memory between; and cuSPARSE's products of integers must be right. -small and -few leave out what a checker of
  memory has no time for, -few what one of shared memory has none for, too, a matrix of ten million entries, and cuSPARSE, of whose kernels that one complains (CUDA 13.0). -bench times them beside what is packed. Exit code 77: no usable device.
*/
#include "device_cases.h"
#include "device_util.h"
#include "../src/plan/straight.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed, small_only, few;

static void fact(int so, tc_scalar scalar, const char *name, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so || !small_only) printf("%s %s, %s: %s\n", so ? "ok  " : "FAIL", name, scalar == TC_SCALAR_F64 ? "doubles" : "floats", what);
}

static void *new_memory(size_t bytes)
{
  void *memory = calloc(1, bytes + 1);

  if (memory == NULL) device_die("memory", "no host memory");
  return memory;
}

/* n numbers of that scalar in the memory of a device array, which is as large as for doubles; the rest NaN */
static device_array new_vector(const tc_backend *backend, tc_scalar scalar, int64_t n, const double *host)
{
  double *image = new_memory((size_t)n * sizeof *image);

  for (int64_t i = 0; i < n && scalar == TC_SCALAR_F64; ++i) image[i] = host ? host[i] : NAN;
  for (int64_t i = 0; i < 2 * n && scalar == TC_SCALAR_F32; ++i) ((float *)image)[i] = host && i < n ? (float)host[i] : NAN;
  device_array D = device_new(backend, n, 0, image);

  free(image);
  return D;
}

static int get_vector(const device_array *D, tc_scalar scalar, double *host)
{
  int whole = device_get(D, host);

  if (scalar == TC_SCALAR_F32) {
    float *floats = new_memory(2 * (size_t)D->n * sizeof *floats);

    memcpy(floats, host, 2 * (size_t)D->n * sizeof *floats);
    for (int64_t i = 0; i < D->n; ++i) {
      host[i] = floats[i];
      whole   = whole && isnan(floats[D->n + i]);
    }
    free(floats);
  }
  return whole;
}

/* CSR on the device */
typedef struct {
  tc_csr_local A;
  void        *row_ptr, *col;
} device_rows;

static device_rows new_rows(const tc_backend *backend, const tc_matrix *A)
{
  const size_t offsets = ((size_t)A->num_rows + 1) * sizeof(int32_t), ids = (size_t)A->nnz * sizeof(int32_t);
  int32_t     *narrow  = new_memory(offsets);
  device_rows  R;

  for (int32_t i = 0; i <= A->num_rows; ++i) narrow[i] = (int32_t)A->row_ptr[i];
  device_check(backend, backend->alloc(offsets, &R.row_ptr), "alloc");
  device_check(backend, backend->alloc(ids, &R.col), "alloc");
  device_check(backend, backend->upload(R.row_ptr, narrow, offsets, NULL), "upload");
  if (ids > 0) device_check(backend, backend->upload(R.col, A->col, ids, NULL), "upload");
  device_check(backend, backend->synchronize(NULL), "synchronize");
  free(narrow);
  R.A = (tc_csr_local){.num_rows = A->num_rows, .num_cols = A->num_cols, .nnz = A->nnz, .row_ptr = R.row_ptr, .col = R.col, .row_group = 1};
  return R;
}

static void free_rows(const tc_backend *backend, device_rows *R)
{
  backend->release(R->row_ptr);
  backend->release(R->col);
}

/* z = A x, z = y + A x, the latter in place, and z = y - A x; the values are rounded to the scalar already */
static void check_products(const tc_backend *backend, tc_scalar scalar, const char *name, const tc_matrix *A, int repeats)
{
  static const char *const what[] = {"z = Ax", "z = y + Ax", "y += Ax", "z = y - Ax, values from the end to the beginning"};
  const int32_t            m = A->num_rows, n = A->num_cols;
  double                  *x = new_memory(((size_t)n + 1) * sizeof *x), *y = new_memory(((size_t)m + 1) * sizeof *y), *z = new_memory(((size_t)m + 1) * sizeof *z), *expected = new_memory(((size_t)m + 1) * sizeof *expected);
  const tc_key             key = {.id = 1, .pattern = 1, .nnz = A->nnz};
  device_rows              R = new_rows(backend, A);
  tc_straight              straight = {0};
  device_array             dx, val = new_vector(backend, scalar, A->nnz, A->val), turned_val;
  double                  *turned = new_memory(((size_t)A->nnz + 1) * sizeof *turned);
  int32_t                 *ids = new_memory(((size_t)A->nnz + 1) * sizeof *ids);
  void                    *perm;

  for (int64_t e = 0; e < A->nnz; ++e) {
    ids[e]    = (int32_t)(A->nnz - 1 - e);
    turned[e] = A->val[ids[e]];
  }
  turned_val = new_vector(backend, scalar, A->nnz, turned);
  device_check(backend, backend->alloc(((size_t)A->nnz + 1) * sizeof *ids, &perm), "alloc");
  device_check(backend, backend->upload(perm, ids, ((size_t)A->nnz + 1) * sizeof *ids, NULL), "upload");
  tc_random_normal(n, 3, x);
  tc_random_normal(m, 5, y);
  for (int32_t i = 0; i < m; i += 3) y[i] = -0.0;
  for (int32_t i = 0; scalar == TC_SCALAR_F32 && i < n; ++i) x[i] = (float)x[i];
  for (int32_t i = 0; scalar == TC_SCALAR_F32 && i < m; ++i) y[i] = (float)y[i];
  dx = new_vector(backend, scalar, n, x);
  for (int add = 0; add < 4; ++add) {
    int same = 1, whole = 1;

    if (add == 3) tc_straight_reset(&straight); /* so that its first product is that of a new pattern, too */
    tc_canonical_spmv(A, x, NULL, expected);
    for (int32_t i = 0; i < m && add > 0; ++i) expected[i] = A->row_ptr[i] == A->row_ptr[i + 1] ? y[i] : add == 3 ? y[i] - expected[i] : y[i] + expected[i];
    for (int32_t i = 0; i < m && scalar == TC_SCALAR_F32; ++i) expected[i] = (float)expected[i];
    for (int r = 0; r < repeats && same && whole; ++r) {
      device_array dy = new_vector(backend, scalar, m, y), dz = new_vector(backend, scalar, m, NULL);

      const tc_csr_matrix matrix = {.rows = &R.A, .scalar = scalar, .val = add == 3 ? turned_val.local : val.local, .perm = add == 3 ? perm : NULL};

      for (int again = 0; again < (add == 2 ? 1 : 2); ++again) // at once, before the first one has told anything
        device_check(backend, tc_straight_multiply(&straight, backend, &key, &matrix, dx.local, add ? dy.local : NULL, add == 2 ? dy.local : dz.local, add == 3 ? -1 : 1, NULL), "straight");
      device_check(backend, backend->synchronize(NULL), "synchronize");
      whole = get_vector(add == 2 ? &dy : &dz, scalar, z);
      same  = tc_first_different(m, z, expected) == m;
      device_free(&dy);
      device_free(&dz);
    }
    fact(same && whole, scalar, name, what[add]);
  }
  tc_straight_reset(&straight);
  backend->release(perm);
  device_free(&dx);
  device_free(&val);
  device_free(&turned_val);
  free_rows(backend, &R);
  free(ids);
  free(turned);
  free(x);
  free(y);
  free(z);
  free(expected);
}

/* Small integers, whose sums are exact in any order */
static void make_whole(int64_t n, double *numbers)
{
  for (int64_t i = 0; i < n; ++i) numbers[i] = round(3 * numbers[i]);
}

/* The same by cuSPARSE, prepared once and again for another pattern and other arrays, as its order of additions is its own of integers; they are left in A */
static void check_cusparse(const tc_backend *backend, tc_scalar scalar, const char *name, tc_matrix *A)
{
  static const char *const what[] = {"z = Ax by cuSPARSE", "z = y + Ax by cuSPARSE", "y += Ax by cuSPARSE", "z = y - Ax by cuSPARSE", "y -= Ax by cuSPARSE"};
  const int32_t            m = A->num_rows, n = A->num_cols;
  double                  *x = new_memory(((size_t)n + 1) * sizeof *x), *y = new_memory(((size_t)m + 1) * sizeof *y), *z = new_memory(((size_t)m + 1) * sizeof *z), *expected = new_memory(((size_t)m + 1) * sizeof *expected);
  tc_key                   key = {.id = 1, .pattern = 1, .nnz = A->nnz};
  device_rows              R = new_rows(backend, A);
  tc_straight              straight = {0};
  device_array             dx, val[2];

  make_whole(A->nnz, A->val);
  for (int v = 0; v < 2; ++v) val[v] = new_vector(backend, scalar, A->nnz, A->val);
  tc_random_normal(n, 3, x);
  tc_random_normal(m, 5, y);
  make_whole(n, x);
  make_whole(m, y);
  dx = new_vector(backend, scalar, n, x);
  for (int add = 0; add < 5; ++add) {
    const int     sign = add < 3 ? 1 : -1, in_place = add == 2 || add == 4;
    device_array  dy = new_vector(backend, scalar, m, y), dz = new_vector(backend, scalar, m, NULL);
    tc_csr_matrix matrix = {.rows = &R.A, .scalar = scalar, .val = val[add == 1].local};

    if (add == 3) ++key.pattern;
    tc_canonical_spmv(A, x, NULL, expected);
    for (int32_t i = 0; i < m && add > 0; ++i) expected[i] = y[i] + sign * expected[i];
    device_check(backend, tc_straight_multiply_cusparse(&straight, backend, &key, &matrix, dx.local, add ? dy.local : NULL, in_place ? dy.local : dz.local, sign, NULL), "cuSPARSE");
    device_check(backend, backend->synchronize(NULL), "synchronize");
    int so = get_vector(in_place ? &dy : &dz, scalar, z);

    for (int32_t i = 0; i < m; ++i) so = so && z[i] == expected[i];
    fact(so, scalar, name, what[add]);
    device_free(&dy);
    device_free(&dz);
  }
  tc_straight_reset(&straight);
  device_free(&dx);
  for (int v = 0; v < 2; ++v) device_free(&val[v]);
  free_rows(backend, &R);
  free(x);
  free(y);
  free(z);
  free(expected);
}

static void check_matrix(const tc_backend *backend, const char *name, tc_matrix *A, int repeats)
{
  check_products(backend, TC_SCALAR_F64, name, A, repeats);
  for (int64_t e = 0; e < A->nnz; ++e) A->val[e] = (float)A->val[e];
  check_products(backend, TC_SCALAR_F32, name, A, repeats);
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32 && A->nnz > 0 && !few; ++scalar) check_cusparse(backend, scalar, name, A);
}

/* Long rows between short and empty ones, of one segment and several, so that a thread block has some of each */
static int32_t any_length(int32_t row)
{
  static const int32_t lengths[] = {0, 3, 255, 256, 1, 2048, 0, 2049, 300, 7, 5000, 4096, 0, 6145, 2};
  const int32_t        num = (int32_t)(sizeof lengths / sizeof *lengths);

  return lengths[row * 7 % num];
}

/* None long, but some thread blocks have many times the entries of the mean: all rows together, some, or empty ones between */
static int32_t uneven_length(int32_t row)
{
  const int32_t part = row / 150;

  return part == 1 ? 250 : part == 3 ? 20 + row % 30 : part == 5 && row % 3 == 0 ? 255 : row % 2;
}

/* Short rows in the mean, and in places so many entries together that they are more than a tile, or thousands of rows without any */
static int32_t crowded_length(int32_t row)
{
  return row / 1500 % 4 == 2 ? 0 : row / 32 % 40 == 7 ? 60 + row * 37 % 190 : row % 3;
}

static int32_t fifteen(int32_t row)
{
  (void)row;
  return 15;
}

/* Rows that are summed by chains but are no segments of their own, in a tile alone or several, across the ends of tiles, between short and empty ones */
static int32_t one_segment_length(int32_t row)
{
  const int32_t part = row / 16, at = row % 16;

  if (part % 3 == 0) return at < 8 ? 256 + (part % 4 == 0 ? 0 : row % 5) : 0;
  if (part % 3 == 1) return at == 3 ? 1000 + row % 1049 : row % 9;
  return row % 3;
}

static void check_lengths(const tc_backend *backend, const char *name, int32_t rows, int32_t (*length_of)(int32_t))
{
  const int32_t cols = 7000;
  tc_matrix     A;
  int64_t       nnz = 0;

  for (int32_t i = 0; i < rows; ++i) nnz += length_of(i);
  device_check(backend, tc_matrix_create(rows, cols, nnz, &A), "tc_matrix_create");
  for (int32_t i = 0; i < rows; ++i) {
    const int32_t length = length_of(i);

    A.row_ptr[i + 1] = A.row_ptr[i] + length;
    for (int32_t k = 0; k < length; ++k) A.col[A.row_ptr[i] + k] = (int32_t)((int64_t)k * cols / length);
  }
  tc_random_normal(nnz, 7, A.val);
  check_matrix(backend, name, &A, 3);
  tc_matrix_free(&A);
}

static double timed(const tc_backend *backend, tc_plan *plan, tc_straight *straight, const tc_key *key, const tc_csr_local *rows, const double *val, const double *x, double *z)
{
  enum { GROUPS = 9, PRODUCTS = 50 };
  const tc_csr_matrix matrix = {.rows = rows, .scalar = TC_SCALAR_F64, .val = val};
  double              best   = INFINITY;

  for (int g = 0; g < GROUPS; ++g) {
    void  *stopwatch;
    double ms;

    device_check(backend, plan ? tc_plan_spmv(plan, x, NULL, z, 1, NULL) : tc_straight_multiply(straight, backend, key, &matrix, x, NULL, z, 1, NULL), "product");
    device_check(backend, backend->time_begin(NULL, &stopwatch), "time_begin");
    for (int i = 0; i < PRODUCTS; ++i) device_check(backend, plan ? tc_plan_spmv(plan, x, NULL, z, 1, NULL) : tc_straight_multiply(straight, backend, key, &matrix, x, NULL, z, 1, NULL), "product");
    device_check(backend, backend->time_end(NULL, stopwatch, &ms), "time_end");
    if (ms / PRODUCTS < best) best = ms / PRODUCTS;
  }
  return best;
}

/* Products, packed and straight from CSR, a refill and a conversion, ms */
static void bench(const tc_backend *backend, const char *name, const tc_matrix *A)
{
  enum { REPEATS = 9 };
  const tc_plan_options options  = {"hybrid", TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  const tc_key          key      = {.id = 1, .pattern = 1, .state = 1, .nnz = A->nnz};
  device_rows           R        = new_rows(backend, A);
  device_array          val      = new_vector(backend, TC_SCALAR_F64, A->nnz, A->val), x = new_vector(backend, TC_SCALAR_F64, A->num_cols, NULL), z = new_vector(backend, TC_SCALAR_F64, A->num_rows, NULL);
  tc_straight           straight = {0};
  double                build = INFINITY, refill = INFINITY, packed, from_rows;
  tc_plan              *plan;

  device_check(backend, tc_plan_create(backend, &options, &plan), "tc_plan_create");
  for (int r = 0; r < REPEATS; ++r) {
    double begin = device_seconds();

    device_check(backend, tc_plan_build_local(plan, &R.A, NULL), "build");
    device_check(backend, tc_plan_refill(plan, val.local, &key, TC_CACHE_REBUILD, NULL), "refill");
    device_check(backend, backend->synchronize(NULL), "synchronize");
    build = fmin(build, device_seconds() - begin);
    for (int i = 0; i < 3; ++i) {
      begin = device_seconds();
      for (int k = 0; k < 20; ++k) device_check(backend, tc_plan_refill(plan, val.local, &key, TC_CACHE_REFILL, NULL), "refill");
      device_check(backend, backend->synchronize(NULL), "synchronize");
      refill = fmin(refill, (device_seconds() - begin) / 20);
    }
  }
  packed    = timed(backend, plan, NULL, NULL, NULL, NULL, x.local, z.local);
  from_rows = timed(backend, NULL, &straight, &key, &R.A, val.local, x.local, z.local);
  printf("%-24s %9d rows %10lld entries  packed %.4f  straight %.4f  refill %.4f  conversion %.4f  gain %.4f\n", name, A->num_rows, (long long)A->nnz, packed, from_rows, 1e3 * refill, 1e3 * build, from_rows - packed);
  tc_plan_destroy(&plan);
  tc_straight_reset(&straight);
  device_free(&val);
  device_free(&x);
  device_free(&z);
  free_rows(backend, &R);
}

static void bench_all(const tc_backend *backend, char *cases)
{
  for (char *name = strtok(cases, ","); name != NULL; name = strtok(NULL, ",")) {
    tc_matrix A;

    device_check(tc_backend_host(), tc_generate_named(name, 1, &A), name);
    bench(backend, name, &A);
    tc_matrix_free(&A);
  }
}

int main(int argc, char **args)
{
  const char       *path = NULL;
  char             *cases = NULL;
  const tc_backend *backend;
  int               sm;
  device_case       C;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) small_only = 1;
    else if (strcmp(args[i], "-few") == 0) small_only = few = 1;
    else if (strcmp(args[i], "-bench") == 0 && i + 1 < argc) cases = args[++i];
    else path = args[i];
  }
  if (path == NULL) device_die("usage", "test_straight [-small|-few] [-bench generator:size,...] libaijtccusparse_cuda.so");
  backend = device_open("test_straight", path, &sm);
  if (backend == NULL) return DEVICE_SKIPPED;
  if (cases != NULL) {
    bench_all(backend, cases);
    return 0;
  }
  for (int i = 0; device_case_at(small_only, i, &C); ++i) {
    for (uint64_t seed = 1; seed <= (small_only ? 1 : 3); ++seed) {
      tc_matrix A;

      device_check(tc_backend_host(), tc_generate(C.generator, C.size, seed, &A), C.generator->name);
      check_matrix(backend, C.generator->name, &A, small_only ? 1 : 3);
      tc_matrix_free(&A);
    }
  }
  check_lengths(backend, "long rows", small_only ? 40 : 3000, any_length); // segments go round
  check_lengths(backend, "rows of one segment", small_only ? 1000 : 30000, one_segment_length);
  check_lengths(backend, "uneven rows", small_only ? 1000 : 30000, uneven_length);
  check_lengths(backend, "crowded rows", small_only ? 6000 : 30000, crowded_length);
  if (!few) check_lengths(backend, "many entries", 700000, fifteen); // which another kernel is for
  for (int i = 0; !small_only && device_case_full(i, &C); ++i) {
    tc_matrix A;

    device_check(tc_backend_host(), tc_generate(C.generator, C.size, 1, &A), C.generator->name);
    check_matrix(backend, C.generator->name, &A, 1);
    tc_matrix_free(&A);
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
