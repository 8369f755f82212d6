/*
  Generated matrices: well formed, the same for the same seed, and what their table rows say they are; the benchmark's table.
*/
#include "test_util.h"
#include "../bench/bench_table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tc_matrix generate(const char *name, int32_t size, uint64_t seed)
{
  const tc_generator *generator = tc_generator_find(name);
  tc_matrix           A;

  if (generator == NULL) fail_msg("no generator %s", name);
  ASSERT_OK(tc_generate(generator, size, seed, &A));
  return A;
}

static int64_t row_length(const tc_matrix *A, int32_t i)
{
  return A->row_ptr[i + 1] - A->row_ptr[i];
}

static int same_pattern(const tc_matrix *A, const tc_matrix *B)
{
  return A->num_rows == B->num_rows && A->num_cols == B->num_cols && A->nnz == B->nnz && memcmp(A->row_ptr, B->row_ptr, ((size_t)A->num_rows + 1) * sizeof *A->row_ptr) == 0 && memcmp(A->col, B->col, (size_t)A->nnz * sizeof *A->col) == 0;
}

static int same_matrix(const tc_matrix *A, const tc_matrix *B)
{
  return same_pattern(A, B) && memcmp(A->val, B->val, (size_t)A->nnz * sizeof *A->val) == 0;
}

/* Is the transpose of A the same matrix, or has it the same pattern? */
static int is_symmetric(const tc_matrix *A, int values)
{
  tc_matrix T;
  int       same;

  ASSERT_OK(tc_matrix_transpose(A, &T));
  same = values ? same_matrix(A, &T) : same_pattern(A, &T);
  tc_matrix_free(&T);
  return same;
}

static double row_sum(const tc_matrix *A, int32_t i)
{
  double sum = 0;

  for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) sum += A->val[e];
  return sum;
}

static void well_formed(const test_case *C)
{
  const tc_generator *generator = tc_generator_find(C->name);
  const tc_matrix    *A         = &C->A;
  tc_matrix           again;
  int64_t             single = 0;

  ASSERT_CASE(generator != NULL && strcmp(generator->name, C->name) == 0 && generator->block >= 1, C, "not found by its name");
  ASSERT_CASE(A->row_ptr[0] == 0 && A->row_ptr[A->num_rows] == A->nnz, C, "wrong ends");
  for (int32_t i = 0; i < A->num_rows; ++i) {
    ASSERT_CASE(row_length(A, i) >= 0, C, "row %d ends before it begins", i);
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      ASSERT_CASE(A->col[e] >= 0 && A->col[e] < A->num_cols, C, "row %d, column %d of %d", i, A->col[e], A->num_cols);
      ASSERT_CASE(e == A->row_ptr[i] || A->col[e - 1] < A->col[e], C, "row %d, column %d after %d", i, A->col[e], A->col[e - 1]);
      ASSERT_CASE(isfinite(A->val[e]), C, "row %d, column %d is not finite", i, A->col[e]);
      single += A->val[e] == (double)(float)A->val[e];
    }
  }
  ASSERT_CASE(!generator->random_values || single == 0, C, "%lld random values are exact in single precision", (long long)single);
  again = generate(C->name, generator->tiny, (uint64_t)C->seed);
  ASSERT_CASE(same_matrix(A, &again), C, "not the same the second time");
  tc_matrix_free(&again);
}

static void every_generator(void **state)
{
  (void)state;
  test_all_cases(well_formed);
}

static void wrong_sizes(void **state)
{
  tc_matrix A;

  (void)state;
  assert_null(tc_generator_find("no such generator"));
  assert_int_equal(tc_generate(tc_generator_find("stencil27"), -1, 1, &A), TC_ERR_ARG);
  assert_int_equal(tc_generate(tc_generator_find("stencil27"), 2000, 1, &A), TC_ERR_ARG);
  assert_null(A.row_ptr);
}

static void constant_values(void **state)
{
  static const char *const names[] = {"laplace7", "laplace27"};

  (void)state;
  for (int n = 0; n < 2; ++n) {
    tc_matrix     A      = generate(names[n], 5, 1);
    const int32_t inside = (2 * 5 + 2) * 5 + 2;

    assert_true(is_symmetric(&A, 1));
    assert_int_equal(row_length(&A, inside), n ? 27 : 7);
    assert_true(row_sum(&A, inside) == 0);
    for (int64_t e = 0; e < A.nnz; ++e) assert_true(A.val[e] == -1 || A.val[e] == (n ? 26 : 6));
    tc_matrix_free(&A);
  }
}

static void single_precision_values(void **state)
{
  tc_matrix A = generate("elasticity_f32", 3, 1), B = generate("elasticity", 3, 1);

  (void)state;
  assert_true(same_pattern(&A, &B));
  for (int64_t e = 0; e < A.nnz; ++e) assert_true(A.val[e] == (double)(float)A.val[e]);
  tc_matrix_free(&A);
  tc_matrix_free(&B);
}

/* A row has the points of all tetrahedra around its point: one where there is least, two with a common face at one kind of corner, 24 at an inner vertex */
static void elements(void **state)
{
  static const struct {
    const char *name;
    int32_t     degree, shortest, corner, vertex;
  } cases[] = {
    {"p2", 2, 10, 14, 65 },
    {"p3", 3, 20, 30, 175},
  };

  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    tc_matrix     A = generate(cases[c].name, 3, 1);
    const int32_t n = 3 * cases[c].degree + 1, vertex = cases[c].degree * (1 + n + n * n), last = n - 1;
    int64_t       shortest = INT64_MAX;

    for (int32_t i = 0; i < A.num_rows; ++i) shortest = row_length(&A, i) < shortest ? row_length(&A, i) : shortest;
    assert_int_equal(A.num_rows, n * n * n);
    assert_true(is_symmetric(&A, 0));
    assert_int_equal(row_length(&A, vertex), cases[c].vertex);
    assert_int_equal(tc_matrix_longest_row(&A), cases[c].vertex);
    assert_int_equal(row_length(&A, last), cases[c].corner);
    assert_int_equal(shortest, cases[c].shortest);
    tc_matrix_free(&A);
  }
}

/* Symmetric; a rigid translation causes no force but where the body is clamped */
static void ex56(void **state)
{
  tc_matrix     A = generate("ex56", 6, 1);
  const int32_t n = 7;

  (void)state;
  assert_true(is_symmetric(&A, 0));
  for (int32_t i = 0; i < A.num_rows; ++i) {
    double force[3] = {0}, size = 0;

    if (i / 3 / n / n < 2) continue;
    for (int64_t e = A.row_ptr[i]; e < A.row_ptr[i + 1]; ++e) {
      force[A.col[e] % 3] += A.val[e];
      size += fabs(A.val[e]);
      if (A.col[e] == i) assert_true(A.val[e] > 0);
    }
    for (int d = 0; d < 3; ++d) assert_true(fabs(force[d]) <= 1e-14 * size);
  }
  tc_matrix_free(&A);
}

static void ex45(void **state)
{
  tc_matrix     A = generate("ex45", 5, 1);
  const int32_t inside = (2 * 5 + 2) * 5 + 2;

  (void)state;
  assert_int_equal(row_length(&A, 0), 1);
  assert_int_equal(row_length(&A, inside), 7);
  assert_true(fabs(row_sum(&A, inside)) < 1e-14);
  tc_matrix_free(&A);
}

/* Differences do not see a constant; the wind comes from one side */
static void convection(void **state)
{
  tc_matrix A = generate("convection", 8, 1);
  int32_t   whole = 0;

  (void)state;
  for (int32_t i = 0; i < A.num_rows; ++i) {
    double size = 0;

    if (row_length(&A, i) < 10) continue;
    for (int64_t e = A.row_ptr[i]; e < A.row_ptr[i + 1]; ++e) size += fabs(A.val[e]);
    assert_true(fabs(row_sum(&A, i)) <= 1e-14 * size);
    ++whole;
  }
  assert_true(whole > 50);
  assert_false(is_symmetric(&A, 0));
  tc_matrix_free(&A);
}

static void stokes(void **state)
{
  tc_matrix     A          = generate("stokes", 4, 1);
  const int32_t velocities = 3 * 64;

  (void)state;
  assert_int_equal(A.num_rows, velocities + 64);
  assert_true(is_symmetric(&A, 0));
  assert_int_equal(tc_matrix_longest_row(&A), 108);
  for (int32_t i = velocities; i < A.num_rows; ++i) assert_true(row_length(&A, i) > 0 && A.col[A.row_ptr[i + 1] - 1] < velocities);
  tc_matrix_free(&A);
}

static void transfers(void **state)
{
  tc_matrix P = generate("interpolation", 4, 1), R = generate("restriction", 4, 2), T;

  (void)state;
  ASSERT_OK(tc_matrix_transpose(&P, &T));
  assert_int_equal(P.num_rows, 8 * P.num_cols);
  assert_true(same_matrix(&R, &T));
  for (int32_t i = 0; i < P.num_rows; ++i) {
    const int64_t length = row_length(&P, i);

    assert_true(length == 1 || length == 2 || length == 4 || length == 8);
    if (i % 8 < 7 && i / 8 % 8 < 7 && i / 64 < 7) assert_true(row_sum(&P, i) == 1);
  }
  tc_matrix_free(&P);
  tc_matrix_free(&R);
  tc_matrix_free(&T);
}

static void rectangles(void **state)
{
  tc_matrix A     = generate("lp", 800, 1), B = generate("offdiagonal", 20000, 1);
  int32_t   dense = 0, empty = 0;

  (void)state;
  assert_int_equal(A.num_cols, 10 * A.num_rows);
  for (int32_t i = 0; i < A.num_rows; ++i) dense += row_length(&A, i) == A.num_cols / 8;
  assert_int_equal(dense, 8);
  for (int32_t i = 0; i < B.num_rows; ++i) empty += row_length(&B, i) == 0;
  assert_true(abs(empty - 18000) < 500);
  assert_int_equal(tc_matrix_longest_row(&B), 4);
  tc_matrix_free(&A);
  tc_matrix_free(&B);
}

/* Rows and nonzeros as the paper's table gives them; a part of the rows must have the same mean */
static void surrogates(void **state)
{
  static const struct {
    const char *name;
    double      rows, nnz;
  } table[] = {
    {"pwtk",            217e3,  11.5e6}, {"FullChip",    2.9e6,  26.6e6}, {"mip1",        66e3,   10.4e6}, {"mc2depi",        525e3, 2.1e6 }, {"webbase-1M", 1e6,    3.1e6 }, {"circuit5M", 5.5e6,  59e6  }, {"Si41Ge41H72", 185e3, 15e6  },
    {"Ga41As41H72",     268e3,  18.4e6}, {"in-2004",     1.4e6,  16.9e6}, {"eu-2005",     862e3,  19e6  }, {"shipsec1",       140e3, 7.8e6 }, {"mac_econ_fwd500", 206e3, 1.27e6}, {"scircuit", 170e3, 959e3 }, {"pdb1HYS", 36e3, 4.3e6 },
    {"consph",          83e3,   6e6   }, {"cant",        62e3,   4e6   }, {"cop20k_A",    121e3,  2.6e6 }, {"dc2",            116e3, 766e3 }, {"rma10",      46.8e3, 2.37e6}, {"conf5_4-8x8-10", 49e3, 1.9e6}, {"ASIC_680k", 682e3, 3.8e6},
  };

  (void)state;
  for (size_t t = 0; t < sizeof table / sizeof table[0]; ++t) {
    char      name[64];
    double    mean;
    tc_matrix A;

    snprintf(name, sizeof name, "like_%s", table[t].name);
    A    = generate(name, 30000, 1);
    mean = (double)A.nnz / A.num_rows;
    if (fabs(mean / (table[t].nnz / table[t].rows) - 1) > 0.12) fail_msg("%s: %g entries per row, expected %g", name, mean, table[t].nnz / table[t].rows);
    tc_matrix_free(&A);
  }
}

static void the_table(void **state)
{
  int                  num;
  const tc_bench_case *cases = tc_bench_cases(&num);

  (void)state;
  assert_true(num >= 30);
  for (int i = 0; i < num; ++i) {
    const tc_generator *generator = tc_generator_find(cases[i].generator);

    if (generator == NULL) fail_msg("%s: no generator %s", cases[i].name, cases[i].generator);
    assert_true(cases[i].size > 0 && cases[i].host_size > 0 && cases[i].host_size <= cases[i].size);
    for (int k = 0; k < i; ++k) assert_string_not_equal(cases[i].name, cases[k].name);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_generator), cmocka_unit_test(wrong_sizes), cmocka_unit_test(constant_values), cmocka_unit_test(single_precision_values), cmocka_unit_test(elements),   cmocka_unit_test(ex56),      cmocka_unit_test(ex45),
    cmocka_unit_test(convection),      cmocka_unit_test(stokes),      cmocka_unit_test(transfers),       cmocka_unit_test(rectangles),              cmocka_unit_test(surrogates), cmocka_unit_test(the_table),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
