/*
  The BCSR format on the host: hand-checked tiles, every entry in its place with its rounded value, both kinds of tiles, products within the a-priori bound.
*/
#include "test_util.h"
#include "../src/format/bcsr.h"
#include "../src/format/narrow_host.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tc_precision precisions[] = {TC_PRECISION_BF16, TC_PRECISION_F16};
static const int32_t      num_columns[] = {1, 3, 8, 9, 17};
enum { NUM_PRECISIONS = 2, NUM_WIDTHS = sizeof num_columns / sizeof num_columns[0] };

static void pack(const tc_matrix *A, tc_precision precision, tc_bcsr_kinds kinds, tc_bcsr *T)
{
  tc_csr pattern = tc_matrix_pattern(A);

  pattern.precision = precision;
  ASSERT_OK(tc_bcsr_build(&pattern, kinds, T));
  T->val          = malloc(TC_BCSR_SLOTS * (size_t)T->num_tiles * sizeof *T->val + 1);
  T->row_exponent = malloc(TC_BCSR_ROWS * (size_t)T->num_windows * sizeof *T->row_exponent + 1);
  assert_non_null(T->val);
  assert_non_null(T->row_exponent);
  memset(T->val, TEST_UNWRITTEN, TC_BCSR_SLOTS * (size_t)T->num_tiles * sizeof *T->val);
  ASSERT_OK(tc_bcsr_refill_host(T, A->val));
}

static void unpack(tc_bcsr *T)
{
  tc_format_destroy(&tc_format_bcsr, T);
}

/* Rows that have `num` entries each, at columns[num * row + k] */
static void small_matrix(int32_t rows, int32_t cols, int num, const int32_t *columns, tc_matrix *A)
{
  ASSERT_OK(tc_matrix_create(rows, cols, num * rows, A));
  memcpy(A->col, columns, (size_t)(num * rows) * sizeof *columns);
  for (int e = 0; e < num * rows; ++e) A->val[e] = e % 7 + 1;
  for (int i = 0; i <= rows; ++i) A->row_ptr[i] = num * i;
}

/* Two places of group q in row i: not the same in rows 8 apart, nor in groups 4 apart */
static const int *hand_pair(int i, int q)
{
  static const int pairs[4][2] = {{0, 3}, {1, 3}, {0, 2}, {2, 3}};

  return pairs[(i + i / 8 + q / 4) % 4];
}

static uint32_t hand_choice(int i, int h)
{
  return (uint32_t)(hand_pair(i, 4 * h)[0] | hand_pair(i, 4 * h)[1] << 2) * 0x1111u; // four groups
}

/* One full 2:4 tile */
static void sparse_tile_by_hand(void **state)
{
  int32_t   col[16 * 16];
  tc_matrix A;
  tc_bcsr   T;

  (void)state;
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) col[16 * i + k] = 4 * (k / 2) + hand_pair(i, k / 2)[k % 2];
  }
  small_matrix(16, 32, 16, col, &A);

  pack(&A, TC_PRECISION_F16, TC_BCSR_BOTH_KINDS, &T);

  assert_int_equal(T.num_tiles, 1);
  assert_int_equal(T.num_sparse, 1);
  assert_int_equal(T.num_pieces, 1);
  assert_int_equal(T.piece[0].num_sparse, 1);
  assert_int_equal(T.piece[0].num_dense, 0);
  for (int g = 0; g < 8; ++g) {
    for (int h = 0; h < 2; ++h) assert_int_equal(T.choice[2 * g + h], hand_choice(g, h) | hand_choice(g + 8, h) << 16);
  }
  for (int t = 0; t < 4; ++t) { // lane t: places 2 t, 2 t + 1, and 8, 16, 24 further on
    for (int i = 0; i < 8; ++i) assert_int_equal(T.column[8 * t + i], 2 * t + i % 2 + 8 * (i / 2));
  }
  for (int lane = 0; lane < 32; ++lane) { // the 16 values of a row, 2 t and 2 t + 1 of rows g and g + 8, then 8 further on
    for (int i = 0; i < 8; ++i) assert_int_equal(T.map[8 * lane + i], 16 * (lane / 4 + i / 2 % 2 * 8) + 2 * (lane % 4) + i % 2 + i / 4 * 8);
  }
  assert_int_equal(T.row_exponent[0], 2 - TC_F16_TOP); // the largest of a row is 7
  for (int i = 0; i < 8; ++i) assert_true(ldexp(tc_widen(TC_PRECISION_F16, T.val[i]), T.row_exponent[0]) == A.val[T.map[i]]);
  unpack(&T);

  pack(&A, TC_PRECISION_F16, TC_BCSR_DENSE_ONLY, &T);

  assert_int_equal(T.num_tiles, 2);
  assert_int_equal(T.num_sparse, 0);
  unpack(&T);
  tc_matrix_free(&A);
}

/* Three entries of a row in four neighbouring columns, at places 0, 1, 3 and 0, 2, 3: these columns must not make a group */
static void three_in_four(void **state)
{
  static const int three[2][3] = {{0, 1, 3}, {0, 2, 3}};
  int32_t          col[16 * 12];
  tc_matrix        A;
  tc_bcsr          T;

  (void)state;
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 12; ++k) col[12 * i + k] = 8 * (k / 3) + (k / 3 + i) % 2 * 4 + three[i % 2][k % 3]; // one group of two, in turn
  }
  small_matrix(16, 32, 12, col, &A);

  pack(&A, TC_PRECISION_BF16, TC_BCSR_BOTH_KINDS, &T);

  assert_true(T.num_sparse > 0);
  for (int s = 0; s < T.num_sparse; ++s) {
    for (int q = 0; q < TC_BCSR_GROUPS; ++q) {
      int32_t column[4];
      int     natural = 1;

      for (int p = 0; p < 4; ++p) column[p] = T.column[32 * s + tc_bcsr_place(TC_BCSR_SPARSE, 4 * q + p)];
      for (int p = 0; p < 4; ++p) natural = natural && column[p] == 4 * (column[0] / 4) + p;
      assert_false(natural);
    }
  }
  unpack(&T);
  tc_matrix_free(&A);
}

/* 24 columns of one four-by-four pattern make 6 groups; 4 more, full ones, find room in the same tile, in pairs: cheaper than a dense tile of their own */
static void full_columns_fill_up(void **state)
{
  tc_matrix A;
  tc_bcsr   T;
  int32_t   col[16 * 16];

  (void)state;
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 12; ++k) col[16 * i + k] = 4 * (k / 2) + 2 * (i % 2) + k % 2;
    for (int k = 12; k < 16; ++k) col[16 * i + k] = 12 + k;
  }
  small_matrix(16, 30, 16, col, &A);

  pack(&A, TC_PRECISION_F16, TC_BCSR_BOTH_KINDS, &T);

  assert_int_equal(T.num_sparse, 1);
  assert_int_equal(T.num_tiles, 1);
  unpack(&T);
  tc_matrix_free(&A);
}

/* --- every matrix */

/* `largest` magnitude of the row */
static void check_value(const test_case *C, const tc_bcsr *T, int64_t slot, int32_t row, double largest)
{
  const double exact = C->A.val[T->map[slot]], stored = ldexp(tc_widen(T->precision, T->val[slot]), T->row_exponent[row]);

  if (T->precision == TC_PRECISION_F16) ASSERT_CASE(fabs(stored - exact) <= fmax(0x1p-11 * fabs(exact), 0x1p-39 * largest), C, "slot %lld holds %a for %a", (long long)slot, stored, exact);
  else ASSERT_CASE(fabs(stored - exact) <= fmax(0x1p-8 * fabs(exact), 0x1p-126 * largest), C, "slot %lld holds %a for %a", (long long)slot, stored, exact);
}

static void check_tile(const test_case *C, const tc_bcsr *T, int32_t window, int64_t tile, int64_t sparse, int is_sparse, const double *largest, unsigned char *seen)
{
  const int32_t *column = T->column + tc_bcsr_columns_at(tile, sparse);

  for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
    const int32_t row = TC_BCSR_ROWS * window + i;

    for (int32_t k = 0; k < 16; ++k) {
      const int64_t slot  = TC_BCSR_SLOTS * tile + tc_bcsr_slot(i, k);
      const int32_t place = is_sparse ? tc_bcsr_chosen_place(T->choice + TC_BCSR_WORDS * sparse, i, k) : k, entry = T->map[slot];
      const int32_t c     = column[tc_bcsr_place(is_sparse ? TC_BCSR_SPARSE : TC_BCSR_DENSE, place)];

      ASSERT_CASE(c >= 0 && c < C->A.num_cols, C, "column %d", c);
      if (is_sparse && k % 2 == 1) ASSERT_CASE(place > tc_bcsr_chosen_place(T->choice + TC_BCSR_WORDS * sparse, i, k - 1), C, "places of a group do not ascend");
      if (entry < 0) {
        ASSERT_CASE(entry == TC_BCSR_PAD && T->val[slot] == 0, C, "padding slot %lld: map %d, value %x", (long long)slot, entry, T->val[slot]);
        continue;
      }
      ASSERT_CASE(row < C->A.num_rows && entry >= C->A.row_ptr[row] && entry < C->A.row_ptr[row + 1] && C->A.col[entry] == c, C, "slot %lld is row %d, column %d, but entry %d", (long long)slot, row, c, entry);
      ASSERT_CASE(!seen[entry], C, "entry %d is packed twice", entry);
      seen[entry] = 1;
      check_value(C, T, slot, row, largest[row]);
    }
  }
}

static void check_pieces(const test_case *C, const tc_bcsr *T)
{
  unsigned char *seen   = calloc((size_t)C->A.nnz + 1, 1);
  int32_t       *pieces = calloc((size_t)T->num_windows + 1, sizeof *pieces);
  double        *largest = calloc((size_t)C->A.num_rows + 1, sizeof *largest);
  int64_t        packed = 0, tiles = 0, sparse = 0;

  for (int32_t i = 0; i < C->A.num_rows; ++i) {
    for (int64_t e = C->A.row_ptr[i]; e < C->A.row_ptr[i + 1]; ++e) largest[i] = fmax(largest[i], fabs(C->A.val[e]));
  }
  for (int32_t p = 0; p < T->num_pieces; ++p) {
    const tc_bcsr_piece *P = &T->piece[p];

    ASSERT_CASE(P->window >= 0 && P->window < T->num_windows && P->num_sparse + P->num_dense <= TC_BCSR_PIECE, C, "piece %d", p);
    ++pieces[P->window];
    tiles += P->num_sparse + P->num_dense;
    sparse += P->num_sparse;
    for (int32_t s = 0; s < P->num_sparse + P->num_dense; ++s) check_tile(C, T, P->window, (int64_t)P->tile + s, (int64_t)P->sparse + (s < P->num_sparse ? s : P->num_sparse), s < P->num_sparse, largest, seen);
  }
  for (int64_t e = 0; e < C->A.nnz; ++e) packed += seen[e];
  ASSERT_CASE(packed == C->A.nnz, C, "%lld of %lld entries packed", (long long)packed, (long long)C->A.nnz);
  ASSERT_CASE(tiles == T->num_tiles && sparse == T->num_sparse, C, "%lld tiles in pieces", (long long)tiles);
  for (int32_t s = 0; s < T->num_split; ++s) {
    ASSERT_CASE(pieces[T->split_window[s]] == T->split_first[s + 1] - T->split_first[s] && pieces[T->split_window[s]] > 1, C, "split window %d", s);
    for (int32_t p = T->split_first[s]; p < T->split_first[s + 1]; ++p) ASSERT_CASE(T->piece[p].window == T->split_window[s], C, "piece %d of another window", p);
    pieces[T->split_window[s]] = 1;
  }
  for (int32_t w = 0; w < T->num_windows; ++w) ASSERT_CASE(pieces[w] == 1, C, "window %d has %d pieces", w, pieces[w]);
  free(largest);
  free(pieces);
  free(seen);
}

static void check_packing(const test_case *C)
{
  for (int k = TC_BCSR_DENSE_ONLY; k <= TC_BCSR_BOTH_KINDS; ++k) {
    for (int p = 0; p < NUM_PRECISIONS; ++p) {
      tc_bcsr T;

      pack(&C->A, precisions[p], (tc_bcsr_kinds)k, &T);
      check_pieces(C, &T);
      if (k == TC_BCSR_DENSE_ONLY) ASSERT_CASE(T.num_sparse == 0, C, "%lld 2:4 tiles", (long long)T.num_sparse);
      unpack(&T);
    }
  }
}

static void every_entry_once(void **state)
{
  (void)state;
  test_all_cases(check_packing);
}

/* The tiles that matrices of 2:4 or of dense blocks are made of */
static void kinds_of_blocks(void **state)
{
  tc_matrix A;
  tc_bcsr   T;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("0d100s"), 320, 1, &A));
  pack(&A, TC_PRECISION_F16, TC_BCSR_BOTH_KINDS, &T);
  assert_int_equal(T.num_tiles, 20 * 10);
  assert_int_equal(T.num_sparse, T.num_tiles);
  unpack(&T);
  tc_matrix_free(&A);
  ASSERT_OK(tc_generate(tc_generator_find("50d0s"), 320, 1, &A));
  pack(&A, TC_PRECISION_F16, TC_BCSR_BOTH_KINDS, &T);
  assert_int_equal(T.num_sparse, 0);
  unpack(&T);
  tc_matrix_free(&A);
}

/* --- products */

static void check_one_product(const test_case *C, const tc_bcsr *T, int32_t n, int add)
{
  const int64_t ldb = (int64_t)C->A.num_cols + 1, ldc = (int64_t)C->A.num_rows + 3;
  double       *b = test_random(n * ldb, 3), *c = test_random(n * ldc, 5), *before = test_random(n * ldc, 5);
  double       *scratch = test_guarded((int64_t)((tc_spmm_bcsr_host_scratch(T, &(tc_spmm_args){.n = n}) + sizeof(double) - 1) / sizeof(double)));
  long double  *ref = calloc((size_t)C->A.num_rows + 1, sizeof *ref), *bound = calloc((size_t)C->A.num_rows + 1, sizeof *bound);
  tc_spmm_args  args = {.n = n, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .add = add, .scratch = scratch};

  for (int64_t i = 0; i < n * ldc && !add; ++i) c[i] = NAN;
  ASSERT_OK(tc_spmm_bcsr_host(T, &args, NULL));
  for (int32_t j = 0; j < n; ++j) {
    double worst;

    tc_oracle_narrow_spmm(&C->A, b + j * ldb, T->precision, TC_BCSR_PIECE * TC_BCSR_DENSE, ref, bound);
    for (int32_t i = 0; i < C->A.num_rows && add; ++i) {
      bound[i] += 0x1p-53L * (fabsl(ref[i]) + bound[i] + fabsl((long double)before[i + j * ldc]));
      ref[i] += before[i + j * ldc];
    }
    worst = tc_error_over_bound(C->A.num_rows, c + j * ldc, ref, bound);
    ASSERT_CASE(worst <= 1, C, "column %d of %d, add %d, is %g times as far off as the bound", j, n, add, worst);
    for (int64_t i = C->A.num_rows; i < ldc; ++i) ASSERT_CASE(add ? c[i + j * ldc] == before[i + j * ldc] : isnan(c[i + j * ldc]), C, "written below column %d", j);
  }
  ASSERT_CASE(test_guards_hold(c, n * ldc), C, "written outside of C");
  test_guarded_free(b);
  test_guarded_free(c);
  test_guarded_free(before);
  test_guarded_free(scratch);
  free(ref);
  free(bound);
}

static void check_products(const test_case *C)
{
  if (C->A.nnz > 100000 && C->seed > 1) return; // one seed of the large ones
  for (int p = 0; p < NUM_PRECISIONS; ++p) {
    tc_bcsr T;

    pack(&C->A, precisions[p], TC_BCSR_BOTH_KINDS, &T);
    for (int i = 0; i < NUM_WIDTHS; ++i) check_one_product(C, &T, num_columns[i], (i + C->seed) % 2);
    unpack(&T);
  }
}

static void products_within_bound(void **state)
{
  (void)state;
  test_all_cases(check_products);
}

/* Entries of any magnitude, also beyond the exponents of floats, and what is not finite, in A and in B */
static void extreme_values(void **state)
{
  static const int32_t col[6]    = {0, 1, 0, 1, 0, 1};
  static const double  val[6]    = {0x1.8p1000, 0x1p1000, 0x1p-1050, 0x1p-1060, INFINITY, 1};
  static const double  b[4]      = {0x1p-1000, 0x1p-999, NAN, 1};
  tc_matrix            A;

  (void)state;
  small_matrix(3, 2, 2, col, &A);
  memcpy(A.val, val, sizeof val);
  for (int p = 0; p < NUM_PRECISIONS; ++p) {
    double       c[6], scratch[64];
    tc_bcsr      T;
    tc_spmm_args args = {.n = 2, .b = b, .ldb = 2, .c = c, .ldc = 3, .scratch = scratch};

    pack(&A, precisions[p], TC_BCSR_BOTH_KINDS, &T);
    assert_true(tc_spmm_bcsr_host_scratch(&T, &(tc_spmm_args){.n = 2}) <= sizeof scratch);

    ASSERT_OK(tc_spmm_bcsr_host(&T, &args, NULL));

    assert_true(c[0] == 3.5);
    assert_true(c[1] == 0);
    assert_true(isinf(c[2]));
    for (int i = 0; i < 3; ++i) assert_true(isnan(c[3 + i]));
    unpack(&T);
  }
  tc_matrix_free(&A);
}

static void refuses(void **state)
{
  tc_matrix A;
  tc_csr    pattern;
  tc_bcsr   T;
  int       failures = 0;

  (void)state;
  ASSERT_OK(tc_generate(tc_generator_find("limits"), 40, 1, &A));
  pattern = tc_matrix_pattern(&A);
  for (int precision = TC_PRECISION_F64; precision <= TC_PRECISION_F32; ++precision) {
    pattern.precision = (tc_precision)precision;
    assert_int_equal(tc_format_bcsr.build(&pattern, &T), TC_ERR_UNSUPPORTED);
  }
  pattern.precision = TC_PRECISION_F16;
  for (;; ++failures) { // every allocation fails once
    tc_status status;

    tc_fault_arm(TC_FAULT_ALLOC, failures + 1);
    status = tc_format_bcsr.build(&pattern, &T);
    if (tc_fault_arm(TC_FAULT_ALLOC, 0) > 0) break;
    assert_int_equal(status, TC_ERR_MEMORY);
    assert_null(T.map);
  }
  assert_true(failures >= 8);
  tc_format_destroy(&tc_format_bcsr, &T);
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sparse_tile_by_hand), cmocka_unit_test(three_in_four),  cmocka_unit_test(full_columns_fill_up),  cmocka_unit_test(every_entry_once),
    cmocka_unit_test(kinds_of_blocks),     cmocka_unit_test(extreme_values), cmocka_unit_test(products_within_bound), cmocka_unit_test(refuses),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
