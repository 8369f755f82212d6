/*
  Programs in single precision: plans, transposes and products with dense blocks over arrays of floats must give what the same numbers give in double precision, rounded
  once, bit for bit, in every precision that products have: test_scalar [-small|-few] [-half 0|1] [libaijtccusparse_cuda.so], on the host without the library. -small leaves out what takes a memory
  checker too long, -few what takes a checker of shared memory too long, too: matrices that fill a device. -half takes every other matrix only, so that two processes share the work.
*/
#include "device_cases.h"
#include "device_util.h"
#include "../src/plan/spmm.h"
#include "../src/plan/transpose.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, MOST_COLUMNS = 131, MANY_COLUMNS = 10000 };

static int passed, failed, small_only, few; // few: the size for racecheck

static void fact(int so, const char *what, const char *name, const char *text)
{
  if (so) ++passed;
  else {
    ++failed;
    printf("FAIL %s, %s: %s\n", what, name, text);
  }
}

/* --- arrays of floats on the backend, between guard words */

typedef struct {
  const tc_backend *backend;
  float            *block, *local;
  int64_t           n;
} floats;

static void *host_bytes(size_t bytes)
{
  void *pointer = calloc(bytes + 1, 1);

  if (pointer == NULL) device_die("calloc", "no host memory");
  return pointer;
}

/* `host` NULL: all NaN; it holds numbers that are exactly floats */
static floats floats_new(const tc_backend *backend, int64_t n, const double *host)
{
  floats       F     = {backend, NULL, NULL, n};
  const size_t all   = (size_t)n + 2 * GUARD;
  float       *image = host_bytes(all * sizeof *image);
  void        *local;

  for (size_t i = 0; i < all; ++i) image[i] = NAN;
  for (int64_t i = 0; host && i < n; ++i) image[GUARD + i] = (float)host[i];
  device_check(backend, backend->alloc(all * sizeof *image, &local), "alloc");
  device_check(backend, backend->upload(local, image, all * sizeof *image, NULL), "upload");
  device_check(backend, backend->synchronize(NULL), "synchronize");
  F.block = local;
  F.local = F.block + GUARD;
  free(image);
  return F;
}

/* Are the numbers those of `expected`, rounded, NaN where that is NaN, and the guard words still NaN? */
static int floats_are(const floats *F, const double *expected)
{
  const size_t all   = (size_t)F->n + 2 * GUARD;
  float       *image = host_bytes(all * sizeof *image);
  int          same  = 1;

  device_check(F->backend, F->backend->download(image, F->block, all * sizeof *image, NULL), "download");
  device_check(F->backend, F->backend->synchronize(NULL), "synchronize");
  for (int i = 0; i < GUARD; ++i) same = same && isnan(image[i]) && isnan(image[all - 1 - (size_t)i]);
  for (int64_t i = 0; i < F->n; ++i) {
    const float rounded = (float)expected[i];

    same = same && (memcmp(&image[GUARD + i], &rounded, sizeof rounded) == 0 || (isnan(rounded) && isnan(image[GUARD + i])));
  }
  free(image);
  return same;
}

static void floats_free(floats *F)
{
  F->backend->release(F->block);
}

/* n random numbers that are exactly floats */
static double *random_floats(int64_t n, uint64_t seed)
{
  double *numbers = host_bytes((size_t)n * sizeof *numbers);

  tc_random_normal(n, seed, numbers);
  for (int64_t i = 0; i < n; ++i) numbers[i] = (float)numbers[i];
  return numbers;
}

/* --- products with vectors */

/* z = A x, z = y + A x, the latter in place, and z = y - A x, with what `plan` holds of `A` */
static void check_products(tc_plan *plan, const char *name, const tc_matrix *A)
{
  static const char *const what[] = {"z = Ax", "z = y + Ax", "y += Ax", "z = y - Ax"};
  const tc_backend        *backend = tc_plan_backend(plan);
  const int32_t            m = A->num_rows;
  double                  *x = random_floats(A->num_cols, 3), *y = random_floats(m, 5), *expected = host_bytes((size_t)m * sizeof *expected);
  floats                   dx = floats_new(backend, A->num_cols, x);

  for (int add = 0; add < 4; add += small_only ? 2 : 1) {
    floats dy = floats_new(backend, m, y), dz = floats_new(backend, m, NULL);

    tc_canonical_spmv(A, x, add > 0 && add < 3 ? y : NULL, expected);
    for (int32_t i = 0; add == 3 && i < m; ++i) expected[i] = y[i] - expected[i];
    device_check(backend, tc_plan_spmv(plan, dx.local, add ? dy.local : NULL, add == 2 ? dy.local : dz.local, add == 3 ? -1 : 1, NULL), "spmv");
    fact(floats_are(add == 2 ? &dy : &dz, expected), tc_plan_kernel(plan)->name, name, what[add]);
    floats_free(&dy);
    floats_free(&dz);
  }
  floats_free(&dx);
  free(x);
  free(y);
  free(expected);
}

/* Does an earlier row have that format and arithmetic? A plan chooses among these */
static int is_repeated(const tc_kernel *kernels, int k)
{
  for (int i = 0; i < k; ++i) {
    if (strcmp(kernels[i].format, kernels[k].format) == 0 && kernels[i].arithmetic == kernels[k].arithmetic) return 1;
  }
  return 0;
}

/* Every kernel of the backend that a plan for floats may take, twice: with new values, too */
static void check_plans(const tc_backend *backend, int sm, const char *name, tc_matrix *A)
{
  const tc_csr     pattern = tc_matrix_pattern(A);
  int              num;
  const tc_kernel *kernels = backend->kernels(&num);

  for (int k = 0; k < num; ++k) {
    const tc_plan_options options = {kernels[k].format, kernels[k].arithmetic == TC_ARITHMETIC_HOST ? TC_ARITHMETIC_AUTO : kernels[k].arithmetic, TC_PRECISION_F64, TC_SCALAR_F32};
    tc_plan              *plan;

    if (kernels[k].min_sm > sm || is_repeated(kernels, k)) continue;
    device_check(backend, tc_plan_create(backend, &options, &plan), "tc_plan_create");
    device_check(backend, tc_plan_build(plan, &pattern), "tc_plan_build");
    device_check(backend, tc_plan_upload(plan, NULL), "tc_plan_upload");
    for (int state = 1; state <= (small_only ? 1 : 2); ++state) {
      const tc_key key = {.id = 1, .pattern = 1, .state = state, .nnz = A->nnz};
      floats       val;

      for (int64_t e = 0; e < A->nnz; ++e) A->val[e] = (float)(state == 1 ? A->val[e] : 1.1 * A->val[e]);
      val = floats_new(backend, A->nnz, A->val);
      device_check(backend, tc_plan_refill(plan, val.local, &key, state == 1 ? TC_CACHE_REBUILD : TC_CACHE_REFILL, NULL), "refill");
      check_products(plan, name, A);
      floats_free(&val);
    }
    tc_plan_destroy(&plan);
  }
}

/* The matrix as a backend keeps it; give the memory back with release() */
static tc_csr_local local_pattern(const tc_backend *backend, const tc_matrix *A, void **memory)
{
  int32_t *rows = host_bytes(((size_t)A->num_rows + 1 + (size_t)A->nnz) * sizeof *rows);

  for (int32_t i = 0; i <= A->num_rows; ++i) rows[i] = (int32_t)A->row_ptr[i];
  memcpy(rows + A->num_rows + 1, A->col, (size_t)A->nnz * sizeof *A->col);
  device_check(backend, backend->alloc(((size_t)A->num_rows + 1 + (size_t)A->nnz) * sizeof *rows, memory), "alloc");
  device_check(backend, backend->upload(*memory, rows, ((size_t)A->num_rows + 1 + (size_t)A->nnz) * sizeof *rows, NULL), "upload");
  device_check(backend, backend->synchronize(NULL), "synchronize");
  free(rows);
  return (tc_csr_local){A->num_rows, A->num_cols, A->nnz, *memory, (int32_t *)*memory + A->num_rows + 1, 1, TC_PRECISION_F64, NULL};
}

/* The transpose of a matrix in the backend's memory */
static tc_transpose *transpose_of(const tc_backend *backend, tc_scalar scalar, const tc_csr_local *local, const void *val)
{
  const tc_plan_options options = {.scalar = scalar};
  const tc_key          key     = {.id = 1, .pattern = 1, .state = 1, .nnz = local->nnz};
  tc_transpose         *T;

  device_check(backend, tc_transpose_create(backend, &options, &T), "tc_transpose_create");
  device_check(backend, tc_transpose_build(T, local, 1, 0, NULL), "tc_transpose_build");
  device_check(backend, tc_transpose_refill(T, val, &key, TC_CACHE_REBUILD, NULL), "tc_transpose_refill");
  return T;
}

/* Of doubles, whose values are brought into order by a kernel of their own; R is the transpose of A */
static void check_wide_transpose(const tc_backend *backend, const char *name, const tc_matrix *A, const tc_matrix *R, const tc_csr_local *local)
{
  double       *x = random_floats(R->num_cols, 3), *z = host_bytes(((size_t)R->num_rows + 1) * sizeof *z), *expected = host_bytes(((size_t)R->num_rows + 1) * sizeof *expected);
  device_array  val = device_new(backend, A->nnz, 0, A->val), dx = device_new(backend, R->num_cols, 0, x), dz = device_new(backend, R->num_rows, 0, NULL);
  tc_transpose *T   = transpose_of(backend, TC_SCALAR_F64, local, val.local);

  tc_canonical_spmv(R, x, NULL, expected);
  device_check(backend, tc_plan_spmv(tc_transpose_plan(T), dx.local, NULL, dz.local, 1, NULL), "spmv");
  const int whole = device_get(&dz, z);

  fact(whole && tc_first_different(R->num_rows, z, expected) == R->num_rows, tc_plan_kernel(tc_transpose_plan(T))->name, name, "z = A^T x of doubles");
  tc_transpose_destroy(&T);
  device_free(&val);
  device_free(&dx);
  device_free(&dz);
  free(x);
  free(z);
  free(expected);
}

static void check_transpose(const tc_backend *backend, const char *name, const tc_matrix *A)
{
  floats             val = floats_new(backend, A->nnz, A->val);
  void              *memory;
  const tc_csr_local local = local_pattern(backend, A, &memory);
  tc_transpose      *T;
  tc_matrix          R;

  if (tc_matrix_transpose(A, &R) != TC_OK) device_die("transpose", tc_last_error());
  T = transpose_of(backend, TC_SCALAR_F32, &local, val.local);
  check_products(tc_transpose_plan(T), name, &R);
  tc_transpose_destroy(&T);
  check_wide_transpose(backend, name, A, &R, &local);
  backend->release(memory);
  floats_free(&val);
  tc_matrix_free(&R);
}

/* --- products with dense blocks */

/* The same product with blocks of doubles, of the same numbers, by the same kernel */
static void multiply_wide(const tc_backend *backend, const tc_spmm_kernel *kernel, const void *view, tc_spmm_product P, int64_t size_b, const double *b, int64_t size_c, double *c)
{
  const tc_spmm_options options = {.scalar = TC_SCALAR_F64};
  device_array          B = device_new(backend, size_b, 0, b), C = device_new(backend, size_c, 0, c);
  tc_spmm              *S;

  P.b = B.local;
  P.c = C.local;
  P.b_far = P.c_far = 0;
  device_check(backend, tc_spmm_create(backend, &options, &S), "tc_spmm_create");
  device_check(backend, tc_spmm_multiply(S, kernel, view, &P, NULL), "tc_spmm_multiply");
  device_get(&C, c);
  tc_spmm_destroy(&S);
  device_free(&B);
  device_free(&C);
}

/* C = A B or C += A B of n columns; B and C in columns of `gap` more than their rows, in the backend's memory or, far, in that of the host; B turned or not */
typedef struct {
  int32_t n;
  int     gap, add, is_far, turned;
} block_case;

static void check_block(const tc_backend *backend, tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, const char *name, const tc_matrix *A, block_case K)
{
  const int32_t     n      = K.n;
  const int         turned = K.turned, add = K.add, is_far = K.is_far;
  const tc_backend *where = is_far ? tc_backend_host() : backend;
  const int64_t     ldb = (turned ? n : A->num_cols) + K.gap, ldc = A->num_rows + K.gap, size_b = ldb * (turned ? A->num_cols : n), size_c = ldc * n;
  double           *b = random_floats(size_b, 7), *c = random_floats(size_c, 8), *column = host_bytes(((size_t)A->num_cols + (size_t)A->num_rows) * sizeof *column), *sum = column + A->num_cols;
  floats            B = floats_new(where, size_b, b), C = floats_new(where, size_c, c);
  tc_spmm_product   P = {A->num_cols, A->num_rows, n, B.local, ldb, C.local, ldc, add, turned, is_far, is_far};

  device_check(backend, tc_spmm_multiply(S, kernel, view, &P, NULL), "tc_spmm_multiply");
  device_check(backend, backend->synchronize(NULL), "synchronize");
  if (kernel->precision != TC_PRECISION_F64) multiply_wide(backend, kernel, view, P, size_b, b, size_c, c);
  for (int32_t j = 0; j < n && kernel->precision == TC_PRECISION_F64; ++j) {
    for (int32_t k = 0; k < A->num_cols; ++k) column[k] = turned ? b[j + k * ldb] : b[k + j * ldb];
    tc_canonical_spmm(A, 1, column, A->num_cols, 0, sum, A->num_rows);
    for (int32_t i = 0; i < A->num_rows; ++i) c[i + j * ldc] = add ? c[i + j * ldc] + sum[i] : sum[i];
  }
  fact(floats_are(&C, c), kernel->name, name, turned ? "C = A B, B transposed" : is_far ? "C = A B, from the host" : add ? "C += A B" : "C = A B");
  floats_free(&B);
  floats_free(&C);
  free(b);
  free(c);
  free(column);
}

/* All numbers of columns, or one, in turn from matrix to matrix and from kernel to kernel: `turn` is the matrix's number; with -few also one road to the product and back */
static void check_blocks(const tc_backend *backend, int sm, const char *name, const tc_matrix *A, int turn)
{
  enum { NUM = 5 };
  static const int32_t  columns[NUM] = {1, 9, 32, 50, MOST_COLUMNS};
  const tc_spmm_options options   = {.scalar = TC_SCALAR_F32};
  int                   num;
  const tc_spmm_kernel *kernels = backend->spmm_kernels(&num);
  tc_spmm              *S;

  device_check(backend, tc_spmm_create(backend, &options, &S), "tc_spmm_create");
  for (int k = 0; k < num; ++k) {
    const int     narrow = kernels[k].precision != TC_PRECISION_F64; // what is special about those happens behind the blocks: two numbers of columns have to do, one where blocks are widened
    device_matrix M;

    if (kernels[k].min_sm > sm || strcmp(kernels[k].format, "csr_transposed") == 0) continue;
    M = device_pack(backend, kernels[k].format, kernels[k].precision, A, 0);
    for (int i = 0; i < NUM; ++i) {
      if (small_only && !narrow && (turn + k) % NUM != i) continue;
      if ((kernels[k].suits && !kernels[k].suits(&M.view, columns[i])) || (narrow && columns[i] != 9 && (columns[i] != MOST_COLUMNS || !kernels[k].b_f32))) continue;
      for (int road = few ? (turn + k) % 4 : 0; road < 4; road += few ? 4 : 1) check_block(backend, S, &kernels[k], &M.view, name, A, (block_case){columns[i], road, road % 2, road / 2, 0});
      if (narrow) continue; // products with the transpose of B are in double precision
      for (int is_far = 0; is_far < 2; ++is_far) check_block(backend, S, &kernels[k], &M.view, name, A, (block_case){columns[i], i % 2, 0, is_far, 1});
    }
    if (!narrow && strcmp(kernels[k].format, "csr") == 0) check_block(backend, S, &kernels[k], &M.view, name, A, (block_case){7, turn % 4, turn % 2, turn / 2 % 2, 0}); // between 4 and 9: of 8
    device_unpack(&M);
  }
  tc_spmm_destroy(&S);
}

/* Large and small numbers, halves of the last bit of a float, and what is not finite */
static void check_rounding(const tc_backend *backend)
{
  static const double wide[] = {1, 1 + 0x1p-24, 1 + 0x1.8p-23, 1 + 0x1p-24 + 0x1p-50, 0x1p-149, 0x1p-150, 0x1.8p-150, -0x1p-126, 0x1.fffffefp127, 0x1.ffffffp127, -INFINITY, NAN, -0.0};
  enum { NUM = sizeof wide / sizeof *wide };
  floats       F = floats_new(backend, NUM, NULL), again = floats_new(backend, NUM, NULL);
  device_array D = device_new(backend, NUM, 0, wide), back = device_new(backend, NUM, 0, NULL);

  device_check(backend, backend->round(NUM, 1, D.local, NUM, F.local, NUM, NULL), "round");
  fact(floats_are(&F, wide), "round", "numbers", "as (float) does");
  device_check(backend, backend->widen(NUM, 1, F.local, NUM, back.local, NUM, NULL), "widen");
  device_check(backend, backend->round(NUM, 1, back.local, NUM, again.local, NUM, NULL), "round");
  fact(floats_are(&again, wide), "widen", "numbers", "loses nothing");
  floats_free(&F);
  floats_free(&again);
  device_free(&D);
  device_free(&back);
}

/* Ids in 32 bits, between others that stay as they are, for more of them than thread blocks have in hand at once */
static void check_narrow(const tc_backend *backend)
{
  static const int32_t nums[] = {0, 1, 1023, 1024, 1025, 70000};

  for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) {
    const int64_t n  = nums[i];
    int64_t      *wide     = host_bytes((size_t)(n + 1) * sizeof *wide);
    int32_t      *expected = host_bytes((size_t)(n + 2) * sizeof *expected), *result = host_bytes((size_t)(n + 2) * sizeof *result);
    void         *from, *to;
    char          name[40];

    for (int64_t k = 0; k < n; ++k) wide[k] = k % 2 ? INT32_MAX - k : k;
    for (int64_t k = 0; k < n; ++k) expected[k + 1] = (int32_t)wide[k];
    expected[0] = expected[n + 1] = -77;
    for (int64_t k = 0; k < n + 2; ++k) result[k] = -77;
    device_check(backend, backend->alloc((size_t)(n + 1) * sizeof *wide, &from), "alloc");
    device_check(backend, backend->alloc((size_t)(n + 2) * sizeof *result, &to), "alloc");
    device_check(backend, backend->upload(from, wide, (size_t)n * sizeof *wide, NULL), "upload");
    device_check(backend, backend->upload(to, result, (size_t)(n + 2) * sizeof *result, NULL), "upload");
    device_check(backend, backend->narrow(n, from, (int32_t *)to + 1, NULL), "narrow");
    device_check(backend, backend->synchronize(NULL), "synchronize");
    device_check(backend, backend->download(result, to, (size_t)(n + 2) * sizeof *result, NULL), "download");
    snprintf(name, sizeof name, "%d ids", nums[i]);
    fact(memcmp(result, expected, (size_t)(n + 2) * sizeof *result) == 0, "narrow", name, "the same in 32 bits");
    backend->release(from);
    backend->release(to);
    free(wide);
    free(expected);
    free(result);
  }
}

/* A block out of its transpose, over what was not a number */
static void check_turn(const tc_backend *backend)
{
  static const int32_t columns[] = {1, 2, 7, 8, 9, 16, 17, 32, 33, 100, 128}, rows[] = {1, 7, TC_TURNED_ROWS - 1, TC_TURNED_ROWS, TC_TURNED_ROWS + 1, 1000};
  enum { COLUMNS = sizeof columns / sizeof *columns, ROWS = sizeof rows / sizeof *rows };

  for (int i = 0; i < COLUMNS * ROWS; ++i) {
    const int32_t n = columns[i / ROWS], m = rows[i % ROWS];
    const int64_t ld = (m + TC_TURNED_ROWS - 1) / TC_TURNED_ROWS * TC_TURNED_ROWS, ld_from = n + i % 3;
    double       *from = host_bytes((size_t)(ld_from * m) * sizeof *from), *turned = host_bytes((size_t)(ld * n) * sizeof *turned), *result = host_bytes((size_t)(ld * n) * sizeof *result);
    device_array  F, T = device_new(backend, ld * n, 0, NULL);
    char          name[40];

    for (int64_t e = 0; e < ld_from * m; ++e) from[e] = (double)(e + 1);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < m; ++k) turned[k + j * ld] = from[j + k * ld_from];
    }
    F = device_new(backend, ld_from * m, 1, from);
    device_check(backend, backend->turn(m, n, F.local, ld_from, T.local, ld, NULL), "turn");
    snprintf(name, sizeof name, "%d rows, %d columns", m, n);
    fact(device_get(&T, result) && memcmp(result, turned, (size_t)(ld * n) * sizeof *turned) == 0, "turn", name, "out of its transpose");
    device_free(&F);
    device_free(&T);
    free(from);
    free(turned);
    free(result);
  }
}

int main(int argc, char **args)
{
  const tc_backend   *backend = tc_backend_host();
  device_case         C;
  int                 sm = 0, first = 0, step = 1;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) small_only = 1;
    else if (strcmp(args[i], "-few") == 0) small_only = few = 1;
    else if (strcmp(args[i], "-half") == 0 && i + 1 < argc) {
      first = atoi(args[++i]) != 0;
      step  = 2;
    } else backend = device_open("test_scalar", args[i], &sm);
  }
  if (backend == NULL) return DEVICE_SKIPPED;
  if (small_only) device_repeats = 1;
  if (first == 0) {
    check_rounding(backend);
    check_narrow(backend);
    check_turn(backend);
  }
  for (int i = first; device_case_at(small_only, i, &C); i += step) {
    for (int seed = 1; seed <= (small_only ? 1 : 2); ++seed) {
      tc_matrix A;

      if (tc_generate(C.generator, C.size, (uint64_t)seed, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
      check_plans(backend, sm, C.generator->name, &A);
      check_transpose(backend, C.generator->name, &A);
      if (seed == 1 && (!small_only || A.num_cols < MANY_COLUMNS)) check_blocks(backend, sm, C.generator->name, &A, i);
      tc_matrix_free(&A);
    }
  }
  for (int i = first; sm > 0 && !few && device_case_full(i, &C); i += step) {
    tc_matrix A;

    if (tc_generate(C.generator, C.size, 1, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
    check_plans(backend, sm, C.generator->name, &A);
    tc_matrix_free(&A);
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
