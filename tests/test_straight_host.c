/*
  Products with a vector straight from CSR on the host: every version of the loops that this processor can run must give the defined bits, with values in their order and by a permutation, from rows
  that share their columns, from few among empty ones, and with the transpose from the rows of the matrix.
*/
#include "test_util.h"
#define tc_spmv_csr_host    tc_spmv_csr_host_of_this_test
#define tc_spmv_csr_columns tc_spmv_csr_columns_of_this_test
#include "../src/plan/spmv_host.c"
#include <stdlib.h>

typedef void (*multiply)(const product *P);

static multiply under_test;
static int      num_turned; /* products with a transpose, of cases that serve */

static void *new_array(int64_t n, size_t size)
{
  void *array = calloc((size_t)n + 1, size);

  assert_non_null(array);
  return array;
}

static int32_t *narrow_offsets(const tc_matrix *M)
{
  int32_t *row_ptr = new_array(M->num_rows, sizeof *row_ptr);

  for (int32_t i = 0; i <= M->num_rows; ++i) row_ptr[i] = (int32_t)M->row_ptr[i];
  return row_ptr;
}

/* z = A x, y + A x, y - A x, the last in place, A what has the rows of M; P has all but the vectors */
static void check_products(const test_case *C, const char *way, const tc_matrix *M, product P)
{
  const int32_t m = M->num_rows;
  double       *x = test_random(M->num_cols, 5), *y = test_random(m, 6), *z = test_guarded(m), *expected = test_guarded(m);

  for (int32_t i = 0; i < m; i += 3) y[i] = -0.0; // which a row without entries leaves
  for (int how = 0; how < 4; ++how) {
    int64_t row;

    P.sign = how >= 2 ? -1 : 1;
    P.x    = x;
    P.y    = how == 0 ? NULL : how == 3 ? z : y;
    P.z    = z;
    tc_canonical_spmv(M, x, NULL, expected);
    for (int32_t i = 0; i < m && how > 0; ++i) expected[i] = M->row_ptr[i] == M->row_ptr[i + 1] ? y[i] : y[i] + P.sign * expected[i];
    for (int32_t i = 0; i < m; ++i) z[i] = how == 3 ? y[i] : NAN;
    under_test(&P);
    row = tc_first_different(m, z, expected);
    ASSERT_CASE(row == m, C, "%s, %d: row %lld is %a, expected %a", way, how, (long long)row, z[row], expected[row]);
    ASSERT_CASE(test_guards_hold(z, m), C, "written outside");
  }
  test_guarded_free(x);
  test_guarded_free(y);
  test_guarded_free(z);
  test_guarded_free(expected);
}

static void check_permuted(const test_case *C, const tc_csr_local *A)
{
  double  *turned = new_array(A->nnz, sizeof *turned);
  int32_t *perm   = new_array(A->nnz, sizeof *perm);

  for (int64_t e = 0; e < A->nnz; ++e) {
    perm[e]         = (int32_t)(A->nnz - 1 - e);
    turned[perm[e]] = C->A.val[e];
  }
  check_products(C, "permuted", &C->A, (product){.A = A, .val = turned, .perm = perm});
  free(turned);
  free(perm);
}

static void check_columns(const test_case *C, const char *name, const tc_matrix *M, const tc_csr_local *A)
{
  uint8_t  *kind = new_array(A->num_cols, sizeof *kind);
  double   *sums = new_array(A->num_cols, sizeof *sums);
  int       serves, expected = 1;
  tc_matrix T;

  ASSERT_OK(tc_matrix_transpose(M, &T));
  ASSERT_OK(tc_spmv_csr_columns(A, kind, &serves));
  for (int32_t j = 0; j < T.num_rows; ++j) {
    expected = expected && T.row_ptr[j + 1] - T.row_ptr[j] < LONG;
    ASSERT_CASE(kind[j] == (T.row_ptr[j + 1] > T.row_ptr[j]), C, "column %d is of kind %d", j, kind[j]);
  }
  ASSERT_CASE(serves == expected, C, "serves: %d, expected %d", serves, expected);
  if (serves) check_products(C, name, &T, (product){.A = A, .val = M->val, .kind = kind, .sums = sums});
  num_turned += serves;
  tc_matrix_free(&T);
  free(kind);
  free(sums);
}

/* Every row 1 to 5 times, with values of its own, as nodes of so many rows, of sizes that alternate and that do not: three in the mean */
static void check_nodes(const test_case *C)
{
  const tc_matrix *M    = &C->A;
  int32_t         *node = new_array(M->num_rows, sizeof *node), *row_ptr;
  int64_t          nnz = 0, e = 0;
  tc_matrix        N;

  for (int32_t i = 0; i < M->num_rows; ++i) {
    const int32_t size = MOST_ROWS - (i % 2 ? i : i / 11) % MOST_ROWS;

    node[i + 1] = node[i] + size;
    nnz += size * (M->row_ptr[i + 1] - M->row_ptr[i]);
  }
  ASSERT_OK(tc_matrix_create(node[M->num_rows], M->num_cols, nnz, &N));
  for (int32_t i = 0; i < M->num_rows; ++i) {
    for (int32_t row = node[i]; row < node[i + 1]; ++row) {
      for (int64_t k = M->row_ptr[i]; k < M->row_ptr[i + 1]; ++k) N.col[e++] = M->col[k];
      N.row_ptr[row + 1] = e;
    }
  }
  tc_random_normal(nnz, 9, N.val);
  row_ptr = narrow_offsets(&N);
  const tc_csr_local A = {.num_rows = N.num_rows, .num_cols = N.num_cols, .nnz = nnz, .row_ptr = row_ptr, .col = N.col};

  check_products(C, "nodes", &N, (product){.A = &A, .val = N.val, .node = node, .num_nodes = M->num_rows});
  tc_matrix_free(&N);
  free(row_ptr);
  free(node);
}

/* The rows five at a time among so many empty ones, before, between and behind them, that in place these are passed over, and with the transpose */
static void check_few(const test_case *C)
{
  enum { TOGETHER_HERE = 5 };
  const tc_matrix *M    = &C->A;
  const int64_t    want = (FEW * M->nnz > M->num_rows ? FEW * M->nnz : M->num_rows) + 4 * SKIPPED, spread = want - 2 * SKIPPED;
  int32_t         *row_ptr;
  tc_matrix        N;

  ASSERT_OK(tc_matrix_create((int32_t)want, M->num_cols, M->nnz, &N));
  for (int32_t i = 0; i < M->num_rows; ++i) {
    const int64_t row = 2 * SKIPPED + i % TOGETHER_HERE + i / TOGETHER_HERE * TOGETHER_HERE * spread / M->num_rows;

    ASSERT_CASE(row < want && (row == 0 || N.row_ptr[row + 1] == 0), C, "row %d goes where another one is, or nowhere", i);
    N.row_ptr[row + 1] = M->row_ptr[i + 1];
  }
  for (int64_t i = 0; i < want; ++i) N.row_ptr[i + 1] = N.row_ptr[i + 1] > N.row_ptr[i] ? N.row_ptr[i + 1] : N.row_ptr[i];
  for (int64_t e = 0; e < M->nnz; ++e) {
    N.col[e] = M->col[e];
    N.val[e] = M->val[e];
  }
  row_ptr = narrow_offsets(&N);
  const tc_csr_local A = {.num_rows = N.num_rows, .num_cols = N.num_cols, .nnz = N.nnz, .row_ptr = row_ptr, .col = N.col};

  check_products(C, "few rows", &N, (product){.A = &A, .val = N.val});
  check_columns(C, "columns of few rows", &N, &A);
  tc_matrix_free(&N);
  free(row_ptr);
}

static void check(const test_case *C)
{
  int32_t           *row_ptr = narrow_offsets(&C->A);
  const tc_csr_local A       = {.num_rows = C->A.num_rows, .num_cols = C->A.num_cols, .nnz = C->A.nnz, .row_ptr = row_ptr, .col = C->A.col};

  for (int far = 0; far < 2; ++far) check_products(C, far ? "far" : "plain", &C->A, (product){.A = &A, .val = C->A.val, .far = far});
  check_permuted(C, &A);
  check_columns(C, "columns", &C->A, &A);
  check_nodes(C);
  check_few(C);
  free(row_ptr);
}

static void all(multiply loops)
{
  under_test = loops;
  num_turned = 0;
  test_all_cases(check);
  assert_true(num_turned > 20);
}

static void portable(void **state)
{
  (void)state;
  all(multiply_portable);
}

static void fused(void **state)
{
  (void)state;
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  all(multiply_fma);
#else
  skip();
#endif
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(portable), cmocka_unit_test(fused)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
