/*
  Products with dense blocks in narrow precisions: which kernel is chosen where a device has some of them, and that nothing is awaited.
*/
#include "test_util.h"
#include "../src/plan/spmm.h"
#include <stdlib.h>
#include <string.h>

static tc_status device_probe(int *sm)
{
  *sm = 90;
  return TC_OK;
}

static int always(const void *view, int32_t n)
{
  (void)view, (void)n;
  return 1;
}

/* A backend that has a device's kernels as far as the choice is concerned; tiles in F32 are not among them */
static const tc_spmm_kernel *device_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
    {"csr_bf16",    "csr",    TC_ARITHMETIC_FMA, TC_PRECISION_BF16, 60, NULL,   NULL, NULL, 1, 0}, // no rule asks for it
    {"csr",         "csr",    TC_ARITHMETIC_FMA, TC_PRECISION_F64,  60, NULL,   NULL, NULL, 1, 0},
    {"hybrid",      "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64,  60, NULL,   NULL, NULL, 0, 0},
    {"bittcf",      "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64,  80, NULL,   NULL, NULL, 0, 0},
    {"cluster",     "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64,  80, always, NULL, NULL, 0, 0},
    {"bittcf_tf32", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_TF32, 80, NULL,   NULL, NULL, 0, 0},
    {"bittcf_bf16", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_BF16, 80, NULL,   NULL, NULL, 0, 0},
    {"bittcf_f16",  "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F16,  80, NULL,   NULL, NULL, 0, 0},
    {"bcsr_f16",    "bcsr",   TC_ARITHMETIC_MMA, TC_PRECISION_F16,  80, NULL,   NULL, NULL, 0, 0}, // nor for this one
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static tc_spmm *spmm_of(const tc_backend *backend, const tc_spmm_options *options)
{
  const tc_key key = {.id = 1, .pattern = 1, .nnz = 1};
  tc_matrix    A;
  tc_csr_view  view;
  int32_t     *row_ptr;
  tc_spmm     *S;

  ASSERT_OK(tc_generate(tc_generator_find("elasticity"), 8, 1, &A));
  row_ptr = malloc(((size_t)A.num_rows + 1) * sizeof *row_ptr);
  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= A.num_rows; ++i) row_ptr[i] = (int32_t)A.row_ptr[i];
  view = (tc_csr_view){.num_rows = A.num_rows, .num_cols = A.num_cols, .nnz = A.nnz, .row_ptr = row_ptr, .col = A.col};
  ASSERT_OK(tc_spmm_create(backend, options, &S));
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  free(row_ptr);
  tc_matrix_free(&A);
  return S;
}

static tc_backend device_of(void)
{
  tc_backend backend = *tc_backend_host();

  backend.probe        = device_probe;
  backend.spmm_kernels = device_kernels;
  return backend;
}

/* `name` of the kernel for 32 columns, or of what is missing; `why`: part of the reason, or of the error */
static void expect_choice(tc_spmm_options options, int found, const char *name, const char *why)
{
  const tc_backend      backend = device_of();
  tc_spmm              *S       = spmm_of(&backend, &options);
  const tc_spmm_kernel *kernel;

  if (found) {
    ASSERT_OK(tc_spmm_choose(S, 32, 0, &kernel));
    assert_string_equal(kernel->name, name);
    if (kernel->precision != TC_PRECISION_F64) { // is used at once, and no kernel in F64 takes its place
      assert_true(tc_spmm_pays(S, kernel, 32, 0));
      assert_ptr_equal(tc_spmm_refine(S, kernel, NULL, 32, 0), kernel);
    }
    assert_non_null(strstr(tc_spmm_why(S), why));
  } else {
    assert_int_equal(tc_spmm_choose(S, 32, 0, &kernel), TC_ERR_UNSUPPORTED);
    assert_non_null(strstr(tc_last_error(), name));
    assert_non_null(strstr(tc_last_error(), why));
  }
  ASSERT_OK(tc_spmm_choose(S, 32, 1, &kernel)); // B transposed: always in F64, whatever is asked for
  assert_int_equal(kernel->precision, TC_PRECISION_F64);
  if (options.exact_nonfinite) assert_string_not_equal(kernel->format, "bittcf");
  else assert_string_equal(kernel->format, options.format && strcmp(options.format, "bcsr") != 0 ? options.format : "bittcf");
  tc_spmm_destroy(&S);
}

static void choices(void **state)
{
  (void)state;
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F64}, 1, "bittcf", "32 columns");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_TF32}, 1, "bittcf_tf32", "32 columns");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F16}, 1, "bittcf_f16", "32 columns");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F32}, 1, "bittcf", "; no kernel in fp32");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .exact_nonfinite = 1}, 1, "csr_bf16", "32 columns");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .format = "bittcf"}, 1, "bittcf_bf16", "asked for");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .format = "bittcf", .kernel = "cluster"}, 0, "cluster", "bf16");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .format = "bittcf", .exact_nonfinite = 1}, 0, "bittcf", "structural zeros");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .format = "hybrid"}, 0, "hybrid", "bf16");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_BF16, .format = "csr"}, 1, "csr_bf16", "asked for");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F16, .format = "bcsr"}, 1, "bcsr_f16", "asked for");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F64, .format = "bcsr"}, 0, "bcsr", "fp64");
  expect_choice((tc_spmm_options){.precision = TC_PRECISION_F16, .format = "bcsr", .exact_nonfinite = 1}, 0, "bcsr", "structural zeros");
}

/* `format` of the kernel on the host for 8 columns in that precision, `asked` being asked for */
static void expect_host(tc_precision precision, const char *asked, int exact_nonfinite, const char *format)
{
  const tc_spmm_options options = {.precision = precision, .format = asked, .exact_nonfinite = exact_nonfinite};
  tc_spmm              *S       = spmm_of(tc_backend_host(), &options);
  const tc_spmm_kernel *kernel;

  ASSERT_OK(tc_spmm_choose(S, 8, 0, &kernel));
  assert_string_equal(kernel->format, format);
  assert_int_equal(kernel->precision, precision);
  ASSERT_OK(tc_spmm_choose(S, 8, 1, &kernel));
  assert_true(strcmp(kernel->format, "csr") == 0 && kernel->precision == TC_PRECISION_F64);
  tc_spmm_destroy(&S);
}

/* The host packs for those who ask for it only, turns blocks for products in F64, and does without what it has no kernel for */
static void on_the_host(void **state)
{
  (void)state;
  for (tc_precision precision = TC_PRECISION_F64; precision <= TC_PRECISION_F16; ++precision) {
    expect_host(precision, NULL, 0, "csr");
    expect_host(precision, "hybrid", 0, "csr");
    expect_host(precision, "bittcf", 0, precision == TC_PRECISION_F64 ? "csr" : "bittcf");
    expect_host(precision, "bcsr", 0, precision >= TC_PRECISION_BF16 ? "bcsr" : "csr");
    expect_host(precision, "bcsr", 1, "csr");
  }
}

typedef struct {
  int32_t rows, columns;
} ones; // a matrix of nothing but ones

static size_t no_scratch(const void *view, const tc_spmm_args *args)
{
  (void)view, (void)args;
  return 0;
}

/* A kernel that reads floats */
static tc_status multiply_ones(const void *view, const tc_spmm_args *args, void *stream)
{
  const ones *A = view;

  (void)stream;
  assert_true(args->b_f32);
  for (int32_t j = 0; j < args->n; ++j) {
    double sum = 0;

    for (int32_t k = 0; k < A->columns; ++k) sum += tc_floats_of(args)[k + j * args->ldb];
    for (int32_t i = 0; i < A->rows; ++i) args->c[i + j * args->ldc] = (args->add ? args->c[i + j * args->ldc] : 0) + sum;
  }
  return TC_OK;
}

/* Blocks of floats that are far: what is brought of C must not go where B is, whichever is larger */
static void expect_far(ones A, int add)
{
  enum { N = 5 };
  static const tc_spmm_kernel kernel  = {"ones", "csr", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL, no_scratch, multiply_ones, 0, 1};
  const tc_backend            backend = device_of();
  const tc_spmm_options       options = {.scalar = TC_SCALAR_F32};
  float                      *b = malloc((size_t)A.columns * N * sizeof *b), *c = malloc((size_t)A.rows * N * sizeof *c);
  const tc_spmm_product       P = {A.columns, A.rows, N, b, A.columns, c, A.rows, add, 0, 1, 1};
  tc_spmm                    *S;

  assert_true(b != NULL && c != NULL);
  for (int32_t i = 0; i < N * A.columns; ++i) b[i] = (float)(i % 13);
  for (int32_t i = 0; i < N * A.rows; ++i) c[i] = (float)(i % 100);
  ASSERT_OK(tc_spmm_create(&backend, &options, &S));
  ASSERT_OK(tc_spmm_multiply(S, &kernel, &A, &P, NULL));
  for (int32_t j = 0; j < N; ++j) {
    int32_t sum = 0;

    for (int32_t k = j * A.columns; k < (j + 1) * A.columns; ++k) sum += k % 13;
    for (int32_t i = j * A.rows; i < (j + 1) * A.rows; ++i) assert_int_equal((int)c[i], sum + (add ? i % 100 : 0));
  }
  tc_spmm_destroy(&S);
  free(b);
  free(c);
}

static void far_floats(void **state)
{
  (void)state;
  for (int add = 0; add < 2; ++add) {
    expect_far((ones){2000, 7}, add);
    expect_far((ones){7, 2000}, add);
    expect_far((ones){50, 50}, add);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(on_the_host), cmocka_unit_test(far_floats)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
