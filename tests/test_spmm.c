/*
  Products with dense blocks on the host: the kernels, in every instruction set that this processor has, against the defined order of the additions; the object that
  cuts blocks into launches and keeps memory; what a failure leaves behind.
*/
#include "test_util.h"
#include "spmm_host_of_this_test.h"
#include "spmm_test.h"
#include <math.h>
#include <stdlib.h>

static const int32_t some_columns[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33};

/* A block with room between its columns */
typedef struct {
  int32_t rows, n;
  int64_t ld, size;
  double *array;
} block;

static block block_of(int32_t rows, int32_t n, int32_t gap, uint64_t seed)
{
  block B = {rows, n, rows + gap, ((int64_t)rows + gap) * n, NULL};

  B.array = seed ? test_random(B.size, seed) : test_guarded(B.size);
  return B;
}

/* Is C = A B, bit for bit, or before + A B, within the a-priori bounds, and nothing else written? `before` has the layout of C. */
static void expect_product(const test_case *C, const tc_matrix *A, const block *B, const block *result, const block *before, int add)
{
  const int32_t m     = A->num_rows;
  double       *sum   = malloc(((size_t)m + 1) * sizeof *sum);
  long double  *ref   = malloc(2 * ((size_t)m + 1) * sizeof *ref), *bound = ref + m + 1;

  assert_non_null(sum);
  assert_non_null(ref);
  for (int32_t j = 0; j < result->n; ++j) {
    const double *was = before->array + j * before->ld, *is = result->array + j * result->ld, *b = B->array + j * B->ld;

    tc_canonical_spmm(A, 1, b, B->ld, 0, sum, m);
    if (j == 0) {
      tc_oracle_spmv(A, b, NULL, 0, ref, bound);
      ASSERT_CASE(tc_error_over_bound(m, sum, ref, bound) <= 1, C, "the defined bits are out of bounds");
    }
    for (int64_t i = 0; i < result->ld; ++i) {
      const double expected = i >= m ? was[i] : add ? was[i] + sum[i] : sum[i];

      ASSERT_CASE(tc_first_different(1, &is[i], &expected) == 1, C, "element (%lld, %d) of %d columns is %a, expected %a", (long long)i, j, result->n, is[i], expected);
    }
  }
  ASSERT_CASE(test_guards_hold(result->array, result->size) && test_guards_hold(B->array, B->size), C, "written outside");
  free(sum);
  free(ref);
}

static const tc_spmm_options by_default = {NULL};

/* The object over a matrix that has been looked at */
static tc_spmm *spmm_of(const tc_matrix *A, const tc_csr_view *view)
{
  const tc_key key = key_of(A, 1);
  tc_spmm     *S;

  ASSERT_OK(tc_spmm_create(tc_backend_host(), &by_default, &S));
  assert_false(tc_spmm_has_seen(S, &key));
  ASSERT_OK(tc_spmm_look(S, &key, view, NULL));
  assert_true(tc_spmm_has_seen(S, &key));
  return S;
}

static void (*product_under_test)(const tc_csr_view *A, const tc_spmm_args *args);
static void (*transposed_under_test)(const tc_csr_transposed_view *A, const tc_spmm_args *args);

/* The same block by rows */
static block turned_block(const block *B, int32_t gap)
{
  block T = block_of(B->n, (int32_t)B->rows, gap, 0);

  for (int32_t j = 0; j < B->n; ++j) {
    for (int64_t k = 0; k < B->rows; ++k) T.array[j + k * T.ld] = B->array[k + j * B->ld];
  }
  return T;
}

/* One product, of A and B, A and the transpose of B, or if there is a T, the transpose of A and B; `oracle` is the matrix whose rows it multiplies: that of A, or its transpose */
static void check_kernel(const test_case *C, const tc_csr_view *A, const tc_csr_transposed_view *T, const tc_matrix *oracle, int32_t n, int add, int turned)
{
  block        B = block_of(oracle->num_cols, n, n % 3, 5), Bt = turned_block(&B, n % 3), before = block_of(oracle->num_rows, n, n % 5, add ? 6 : 0), result = block_of(oracle->num_rows, n, n % 5, add ? 6 : 0);
  tc_spmm_args args = {n, turned ? Bt.array : B.array, turned ? Bt.ld : B.ld, result.array, result.ld, add, NULL, turned, 0, 0};
  const size_t scratch = T ? tc_spmm_csr_transposed_host_scratch_of_this_test(T, &args) : tc_spmm_csr_host_scratch_of_this_test(A, &args);
  double      *room    = test_guarded((int64_t)(scratch / sizeof *room));

  args.scratch = room;
  if (T) transposed_under_test(T, &args);
  else product_under_test(A, &args);
  expect_product(C, oracle, &B, &result, &before, add);
  ASSERT_CASE(test_guards_hold(room, (int64_t)(scratch / sizeof *room)), C, "written outside the scratch");
  test_guarded_free(B.array);
  test_guarded_free(Bt.array);
  test_guarded_free(before.array);
  test_guarded_free(result.array);
  test_guarded_free(room);
}

static void check_kernels(const test_case *C)
{
  const tc_csr_view      A    = view_of(&C->A);
  tc_csr_transposed_view view = {.csr = A};
  tc_spmm               *S    = spmm_of(&C->A, &A);
  tc_matrix              T;

  ASSERT_OK(tc_matrix_transpose(&C->A, &T));
  ASSERT_OK(tc_spmm_list_ends(S, &view));
  for (size_t i = 0; i < sizeof some_columns / sizeof some_columns[0]; ++i) {
    const int32_t n = some_columns[i];

    if (C->seed > 1 && n != 9) continue;
    for (int add = 0; add < 2; ++add) {
      check_kernel(C, &A, NULL, &C->A, n, add, 0);
      check_kernel(C, &A, NULL, &C->A, n, add, 1);
      check_kernel(C, &A, &view, &T, n, add, 0);
    }
  }
  tc_spmm_destroy(&S);
  tc_matrix_free(&T);
  free((void *)A.row_ptr);
}

#define USE(set) (product_under_test = product_##set, transposed_under_test = transposed_product_##set)
#define CHECK    check_kernels
#include "each_instruction_set.h"

/* One product through the object: adding or not, B and C near or far, B as it is or turned */
static void check_road(const test_case *C, tc_spmm *S, const char *format, const tc_csr_view *A, int32_t n, int32_t gap, int add, int b_far, int c_far, int turned)
{
  block                 B = block_of(C->A.num_cols, n, gap, 5), Bt = turned_block(&B, gap);
  block                 before = block_of(C->A.num_rows, n, gap, add ? 6 : 0), result = block_of(C->A.num_rows, n, gap, add ? 6 : 0);
  const tc_spmm_product P = {C->A.num_cols, C->A.num_rows, n, turned ? Bt.array : B.array, turned ? Bt.ld : B.ld, result.array, result.ld, add, turned, b_far, c_far};
  const tc_spmm_kernel *kernel;

  ASSERT_OK(tc_spmm_choose(S, n, turned, &kernel));
  ASSERT_CASE(kernel == tc_spmm_find(S, format), C, "kernel %s", kernel->name);
  ASSERT_OK(tc_spmm_multiply(S, kernel, A, &P, NULL));
  expect_product(C, &C->A, &B, &result, &before, add);
  test_guarded_free(B.array);
  test_guarded_free(Bt.array);
  test_guarded_free(before.array);
  test_guarded_free(result.array);
}

static void check_roads(const test_case *C)
{
  static const int32_t columns[] = {1, 9, TC_SPMM_COLUMNS - 1, TC_SPMM_COLUMNS, TC_SPMM_COLUMNS + 1, 300};
  const tc_csr_view    A         = view_of(&C->A);
  tc_spmm             *S         = spmm_of(&C->A, &A);
  const int            num       = C->seed == 1 && C->A.nnz < 5000 ? 6 : 2;

  for (int i = 0; i < num; ++i) {
    for (int road = 0; road < 8; ++road) check_road(C, S, "csr", &A, columns[i], i % 2 ? 3 : 0, road & 1, road & 2, road & 4, 0);
    check_road(C, S, "csr", &A, columns[i], i % 2 ? 3 : 0, 0, 0, 0, 1);
  }
  assert_int_equal(tc_spmm_count(S), 9 * num);
  tc_spmm_destroy(&S);
  free((void *)A.row_ptr);
}

static void roads(void **state)
{
  (void)state;
  test_all_cases(check_roads);
}

/* C = A B of n columns, C poisoned before */
static tc_status multiply(tc_spmm *S, const tc_matrix *A, const tc_csr_view *view, int32_t n, int b_far, block *result)
{
  block                 B = block_of(A->num_cols, n, 0, 5);
  const tc_spmm_product P = {A->num_cols, A->num_rows, n, B.array, B.ld, result->array, result->ld, 0, 0, b_far, 0};
  const tc_spmm_kernel *kernel;
  tc_status             status = tc_spmm_choose(S, n, 0, &kernel);

  if (status == TC_OK) status = tc_spmm_multiply(S, kernel, view, &P, NULL);
  test_guarded_free(B.array);
  return status;
}

/* Memory is allocated once for the largest product so far, and no more than a launch needs */
static void memory(void **state)
{
  tc_matrix         A    = matrix_of("stencil27", 8);
  const tc_csr_view view = view_of(&A);
  block             C    = block_of(A.num_rows, 1000, 0, 0);
  tc_spmm          *S    = spmm_of(&A, &view);
  size_t            bytes;

  (void)state;
  assert_int_equal(tc_spmm_bytes(S), 0);
  ASSERT_OK(multiply(S, &A, &view, 1, 0, &C));
  assert_int_equal(tc_spmm_bytes(S), 0);
  ASSERT_OK(multiply(S, &A, &view, 8, 0, &C));
  bytes = 8 * sizeof(double) * (size_t)A.num_cols; // one panel
  assert_int_equal(tc_spmm_bytes(S), bytes);
  ASSERT_OK(multiply(S, &A, &view, 1000, 1, &C));
  bytes += TC_SPMM_COLUMNS * sizeof(double) * (size_t)A.num_cols; // and one launch's columns of B
  assert_int_equal(tc_spmm_bytes(S), bytes);
  ASSERT_OK(multiply(S, &A, &view, 1, 1, &C));
  assert_int_equal(tc_spmm_bytes(S), bytes);
  tc_spmm_destroy(&S);
  test_guarded_free(C.array);
  free((void *)view.row_ptr);
  tc_matrix_free(&A);
}

/* A failure is reported, and the next product is right */
static void failures(void **state)
{
  tc_matrix         A     = matrix_of("long487", 20);
  const tc_csr_view view  = view_of(&A);
  const tc_key      other = key_of(&A, 2);
  const test_case   C     = {"long487", 1, A};
  block             B = block_of(A.num_cols, 9, 0, 5), result = block_of(A.num_rows, 9, 0, 0);
  tc_backend        backend = *tc_backend_host();
  tc_spmm          *device;

  (void)state;
  for (int point = 0; point < TC_FAULT_COUNT; ++point) {
    tc_spmm *S = spmm_of(&A, &view);

    tc_fault_arm((tc_fault_point)point, 1);
    assert_int_not_equal(multiply(S, &A, &view, 9, 1, &result), TC_OK);
    assert_int_equal(tc_spmm_count(S), 0);
    ASSERT_OK(multiply(S, &A, &view, 9, 1, &result));
    expect_product(&C, &A, &B, &result, &result, 0);
    tc_fault_arm((tc_fault_point)point, 0);
    ASSERT_OK(tc_spmm_look(S, &other, &view, NULL));
    ASSERT_OK(multiply(S, &A, &view, 9, 1, &result));
    tc_spmm_destroy(&S);
  }
  backend.probe = device_probe;
  ASSERT_OK(tc_spmm_create(&backend, &by_default, &device));
  tc_fault_arm(TC_FAULT_ALLOC, 1); // the survey that a device needs
  assert_int_not_equal(tc_spmm_look(device, &other, &view, NULL), TC_OK);
  assert_false(tc_spmm_has_seen(device, &other));
  ASSERT_OK(tc_spmm_look(device, &other, &view, NULL));
  assert_true(tc_spmm_has_seen(device, &other));
  tc_spmm_destroy(&device);
  test_guarded_free(B.array);
  test_guarded_free(result.array);
  free((void *)view.row_ptr);
  tc_matrix_free(&A);
}

static int32_t widest_seen;

static size_t transposed_scratch(const void *view, const tc_spmm_args *args)
{
  return sizeof(double) * (size_t)args->n * (size_t)((const tc_csr_view *)view)->num_cols + tc_spmm_csr_host_scratch_of_this_test(view, args);
}

static tc_status transposed_multiply(const void *view, const tc_spmm_args *args, void *stream)
{
  const int32_t rows = ((const tc_csr_view *)view)->num_cols;
  tc_spmm_args  turned = *args;

  (void)stream;
  assert_true(args->b_transposed && args->ldb >= args->n);
  for (int32_t j = 0; j < args->n; ++j) {
    for (int64_t k = 0; k < rows; ++k) args->scratch[k + (int64_t)j * rows] = args->b[j + k * args->ldb];
  }
  turned.b            = args->scratch;
  turned.ldb          = rows;
  turned.b_transposed = 0;
  turned.scratch      = args->scratch + (int64_t)args->n * rows;
  if (args->n > widest_seen) widest_seen = args->n;
  product_portable(view, &turned);
  return TC_OK;
}

/* Reads B column by column; the view is that of CSR, as for the other */
static tc_status straight_multiply(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  assert_true(!args->b_transposed && args->ldb >= ((const tc_csr_view *)view)->num_cols);
  product_portable(view, args);
  return TC_OK;
}

/* A backend that has a device's kernels as far as the choice is concerned, and one of them that takes the transpose of a block */
static const tc_spmm_kernel *device_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
    {"hybrid", "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL, tc_spmm_csr_host_scratch_of_this_test, straight_multiply,   0, 0},
    {"csr",    "csr",    TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL, transposed_scratch, transposed_multiply, 1, 0},
    {"bittcf", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, NULL, NULL,               NULL,                0, 0},
  };

  *num = 3;
  return kernels;
}

/* Blocks that are transposed are for every format, from either side of the bus: turned for a kernel that does not take them. What is asked for in another precision does not concern them */
static void transposed_blocks(void **state)
{
  static const int32_t columns[] = {1, 8, 9, TC_SPMM_COLUMNS, TC_SPMM_COLUMNS + 1, 300};
  static const char   *formats[] = {"csr", "hybrid"};
  tc_spmm_options      options   = {.exact_nonfinite = 1}; // no tiles, whose kernel multiplies nothing here
  tc_matrix            A         = matrix_of("skewed", tc_generator_find("skewed")->tiny);
  const tc_csr_view    view      = view_of(&A);
  const tc_key         key       = key_of(&A, 1);
  const test_case      C         = {"skewed", 1, A};
  tc_backend           backend   = *tc_backend_host();
  const tc_spmm_kernel *kernel;
  tc_spmm             *S;

  (void)state;
  backend.probe        = device_probe;
  backend.spmm_kernels = device_kernels;
  for (int f = 0; f < 2; ++f) {
    options.format = formats[f];
    widest_seen    = 0;
    ASSERT_OK(tc_spmm_create(&backend, &options, &S));
    ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; ++i) {
      for (int road = 0; road < 4; ++road) check_road(&C, S, formats[f], &view, columns[i], road ? 3 : 0, road & 1, road & 2, road & 1, 1);
    }
    assert_int_equal(widest_seen, f == 0 ? TC_SPMM_COLUMNS : 0);
    tc_spmm_destroy(&S);
  }
  options = (tc_spmm_options){.format = "bittcf", .kernel = "none of this name", .precision = TC_PRECISION_BF16};
  ASSERT_OK(tc_spmm_create(&backend, &options, &S));
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  assert_int_equal(tc_spmm_choose(S, 8, 0, &kernel), TC_ERR_UNSUPPORTED);
  ASSERT_OK(tc_spmm_choose(S, 8, 1, &kernel));
  assert_int_equal(kernel->precision, TC_PRECISION_F64);
  assert_non_null(strstr(tc_spmm_why(S), "B transposed"));
  tc_spmm_destroy(&S);
  free((void *)view.row_ptr);
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(portable), cmocka_unit_test(avx2),     cmocka_unit_test(avx512),  cmocka_unit_test(roads),
                                     cmocka_unit_test(memory),   cmocka_unit_test(failures), cmocka_unit_test(transposed_blocks)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
