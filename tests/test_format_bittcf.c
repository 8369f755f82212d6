/*
  The BitTCF format on the host: every entry in its place, products with exactly the bits that kernels/tc_spmm.h defines. Hand-checked windows are in test_format_bittcf_by_hand.c.
*/
#include "bittcf_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int32_t num_columns[] = {1, 3, 8, 9, 17};
enum { NUM_WIDTHS = sizeof num_columns / sizeof num_columns[0] };

static int          shuffled; // are rows packed in a random order?
static tc_precision precision; // values are there in F64 only

static void pack(const tc_matrix *A, tc_bittcf *T)
{
  bittcf_pack(A, precision, shuffled, T);
}

/* The first seed of that generator, packed */
static void pack_generated(const char *generator, int32_t size, tc_matrix *A, tc_bittcf *T)
{
  ASSERT_OK(tc_generate(tc_generator_find(generator), size, 1, A));
  pack(A, T);
}

static void unpack(tc_bittcf *T)
{
  tc_format_destroy(&tc_format_bittcf, T);
}

/* With rows in natural order, or that of a grid, and with rows shuffled */
static void in_both_orders(void (*check)(const test_case *C))
{
  for (shuffled = 0; shuffled < 2; ++shuffled) test_all_cases(check);
  shuffled = 0;
}

/* The rows of the matrix come out of the masks and columns again, each packed row once; values from the packed array */
static void check_entries(const test_case *C)
{
  tc_bittcf      T;
  const double  *val;
  unsigned char *seen    = calloc((size_t)C->A.nnz + 1, 1);
  int64_t        entries = 0, next_val = 0, groups = 0;

  pack(&C->A, &T);
  val = T.val;
  for (int32_t w = 0; w < T.num_windows; ++w) {
    const tc_bittcf_window *W     = &T.window[w];
    const int32_t           rows        = TC_BITTCF_ROWS;
    int32_t                 taken[TC_BITTCF_ROWS] = {0}, last = -1;

    ASSERT_CASE(W->val == next_val, C, "window %d begins at value %u, expected %lld", w, W->val, (long long)next_val);
    groups += W->num_groups;
    ASSERT_CASE(W->num_groups <= T.widest_window, C, "window %d has %d groups, the widest %d", w, W->num_groups, T.widest_window);
    for (int32_t i = 0; i < W->num_groups; ++i) {
      const uint32_t used = masks_of(&T, w)[i];

      for (int bit = 0; bit < 32; ++bit) {
        if (!(used >> bit & 1)) continue;
        const int64_t entry = T.csr_first[(int64_t)rows * w + bit / 4] + taken[bit / 4]++;

        ASSERT_CASE(entry < C->A.nnz && !seen[entry], C, "window %d: entry %lld out of range or taken", w, (long long)entry);
        seen[entry] = 1;
        ++entries;
        ASSERT_CASE(C->A.col[entry] == column_of(&T, w, 4 * i + bit % 4), C, "window %d: column %d, expected %d", w, column_of(&T, w, 4 * i + bit % 4), C->A.col[entry]);
        ASSERT_CASE(memcmp(&val[next_val], &C->A.val[entry], sizeof(double)) == 0, C, "window %d: value %g, expected %g", w, val[next_val], C->A.val[entry]);
        ++next_val;
      }
      ASSERT_CASE(used != 0, C, "window %d: group %d is empty", w, i);
      for (int k = 0; k < 4; ++k) {
        const int32_t column = column_of(&T, w, 4 * i + k);

        ASSERT_CASE(column >= 0 && column < T.num_cols && (column > last || (column == last && !(used & 0x11111111u << k))), C, "window %d: columns do not ascend", w);
        last = column;
      }
    }
    for (int32_t i = 0; i < rows; ++i) {
      const int32_t id = T.row_id[(int64_t)rows * w + i];

      if (id >= 0) ASSERT_CASE(T.csr_first[(int64_t)rows * w + i] == (taken[i] ? C->A.row_ptr[id] : 0) && taken[i] == C->A.row_ptr[id + 1] - C->A.row_ptr[id], C, "row %d is not whole", id);
      else if (id == TC_BITTCF_NO_ROW) ASSERT_CASE(taken[i] == 0, C, "window %d: entries of no row", w);
      else ASSERT_CASE(taken[i] > 0 && taken[i] <= TC_SPMM_SEGMENT && ~id == rows * (w - T.num_row_windows) + i, C, "window %d: slot %d has %d entries", w, ~id, taken[i]);
    }
  }
  ASSERT_CASE(entries == C->A.nnz && groups == T.num_groups, C, "%lld of %lld entries, %lld of %lld groups", (long long)entries, (long long)C->A.nnz, (long long)groups, (long long)T.num_groups);
  unpack(&T);
  free(seen);
}

static void every_entry_once(void **state)
{
  (void)state;
  in_both_orders(check_entries);
}

static int joined; // matrices that have windows of rows beside windows of long rows that lie together

static void check_rows(const test_case *C)
{
  tc_bittcf      T;
  unsigned char *seen = calloc((size_t)C->A.num_rows + 1, 1);

  pack(&C->A, &T);
  joined += T.num_row_windows > 0 && T.long_windows > 1;
  for (int32_t r = 0; r < T.num_long; ++r) seen[T.long_row[r]] = 1;
  for (int64_t i = 0; i < (int64_t)TC_BITTCF_ROWS * T.num_windows; ++i) {
    if (T.row_id[i] < 0) continue;
    ASSERT_CASE(T.row_id[i] < T.num_rows && !seen[T.row_id[i]], C, "row %d twice", T.row_id[i]);
    seen[T.row_id[i]] = 1;
  }
  for (int32_t i = 0; i < C->A.num_rows; ++i) ASSERT_CASE(seen[i], C, "row %d is missing", i);
  unpack(&T);
  free(seen);
}

static void every_row_once(void **state)
{
  (void)state;
  in_both_orders(check_rows);
  assert_true(joined > 0);
}

static int empty_clusters; // beside windows that the kernel of small ones does not take, as `island` has them for the tests of kernels

/* What an entry of the list of a cluster stands for */
static int32_t listed(const tc_bittcf *T, int32_t entry)
{
  return tc_bittcf_listed(T) > 1 ? tc_bittcf_listed_four(entry) : entry;
}

static void check_clusters(const test_case *C)
{
  tc_bittcf T;
  int64_t   widest = 0, places = 0;
  int32_t   of;

  pack(&C->A, &T);
  of = tc_bittcf_listed(&T);
  for (int32_t c = 0; c < T.num_clusters; ++c) {
    const int32_t *list = T.cluster_list + T.cluster_first[c];
    const int64_t  num  = T.cluster_first[c + 1] - T.cluster_first[c];
    unsigned char *used = calloc((size_t)num + 1, 1);

    if (num > widest) widest = num;
    empty_clusters += num == 0 && T.widest_window > TC_BITTCF_FEW_GROUPS;
    for (int64_t i = 1; i < num; ++i) ASSERT_CASE(listed(&T, list[i - 1]) < listed(&T, list[i]), C, "cluster %d does not ascend", c);
    for (int32_t w = c * T.cluster_windows; w < T.num_windows && w < (c + 1) * T.cluster_windows; ++w) {
      const int32_t   groups = T.window[w].num_groups, side = TC_BITTCF_PLACES * tc_bittcf_place_blocks(groups);
      const uint16_t *place = T.place + TC_BITTCF_BLOCK * (size_t)T.place_first[w];

      ASSERT_CASE(TC_BITTCF_BLOCK * (int64_t)T.place_first[w] == places, C, "window %d: places begin at block %u", w, T.place_first[w]);
      for (int32_t at = 0; at < 4 * side; ++at) {
        const int32_t group = at % side < groups ? at % side : groups - 1, column = column_of(&T, w, 4 * group + at / side);

        ASSERT_CASE(tc_bittcf_place_of(groups, at % side, at / side) == at, C, "window %d: place %d", w, at);
        ASSERT_CASE(place[at] / of < num && of * listed(&T, list[place[at] / of]) + place[at] % of == column, C, "window %d: place %d of %lld is not column %d", w, place[at], (long long)num, column);
        used[place[at] / of] |= 1 << place[at] % of;
      }
      places += 4 * side;
    }
    for (int64_t i = 0; i < num; ++i) ASSERT_CASE(used[i] == (of > 1 ? tc_bittcf_listed_rows(list[i]) : 1), C, "cluster %d: columns %x of entry %lld are referred to", c, used[i], (long long)i);
    free(used);
  }
  ASSERT_CASE(T.num_clusters == 0 || (widest == T.widest_cluster && places == T.num_places && T.num_long == 0), C, "widest cluster %lld, expected %d; %lld places", (long long)widest, T.widest_cluster, (long long)places);
  unpack(&T);
}

static void clusters_name_their_columns(void **state)
{
  (void)state;
  for (precision = TC_PRECISION_F64; precision <= TC_PRECISION_TF32; ++precision) in_both_orders(check_clusters);
  precision = TC_PRECISION_F64;
  assert_true(empty_clusters > 0);
}

/* Clusters name columns up to a limit; a matrix with more has none, in double precision */
static void clusters_of_very_many_columns(void **state)
{
  const tc_generator *lattice = tc_generator_find("qcd");

  (void)state;
  for (int beyond = 0; beyond < 2; ++beyond) {
    test_case C = {"very many columns", 0, {0}};
    tc_bittcf T;

    ASSERT_OK(tc_generate(lattice, 6, 1, &C.A));
    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.col[e] += TC_BITTCF_MOST_COLUMNS + beyond - C.A.num_cols;
    C.A.num_cols = TC_BITTCF_MOST_COLUMNS + beyond;
    pack(&C.A, &T);
    assert_int_equal(T.num_clusters > 0, !beyond);
    unpack(&T);
    check_clusters(&C);
    tc_matrix_free(&C.A);
  }
}

static void check_one_product(const test_case *C, const tc_bittcf *T, int32_t n, int add)
{
  const int64_t ldb = C->A.num_cols + 3, ldc = C->A.num_rows + 1;
  double       *b = test_random(n * ldb, 5), *c = test_random(n * ldc, 6), *expected = test_random(n * ldc, 6);
  double       *scratch = malloc(tc_spmm_bittcf_host_scratch(T, &(tc_spmm_args){.n = n}) + 1);
  tc_spmm_args  args    = {n, b, ldb, c, ldc, add, scratch, 0, 0, 0};

  for (int32_t j = 0; j < n; ++j) { // what nobody refers to may be anything
    for (int64_t i = C->A.num_cols; i < ldb; ++i) b[i + j * ldb] = NAN;
  }
  tc_canonical_spmm(&C->A, n, b, ldb, add, expected, ldc);

  ASSERT_OK(tc_spmm_bittcf_host(T, &args, NULL));

  ASSERT_CASE(tc_first_different(n * ldc, c, expected) == n * ldc, C, "n %d, add %d: element %lld", n, add, (long long)tc_first_different(n * ldc, c, expected));
  ASSERT_CASE(test_guards_hold(c, n * ldc), C, "written outside");
  test_guarded_free(b);
  test_guarded_free(c);
  test_guarded_free(expected);
  free(scratch);
}

static void check_products(const test_case *C)
{
  tc_bittcf T;

  pack(&C->A, &T);
  for (int i = 0; i < NUM_WIDTHS; ++i) check_one_product(C, &T, num_columns[i], i % 2);
  for (int64_t e = 0; e < C->A.nnz; ++e) C->A.val[e] = 1.0 / (double)(e + 2); // other values, same pattern
  ASSERT_OK(tc_bittcf_refill_host(&T, C->A.val));
  check_one_product(C, &T, 5, 1);
  unpack(&T);
}

static void products_have_the_defined_bits(void **state)
{
  (void)state;
  in_both_orders(check_products);
}

/* Rows of B that no entry refers to do not matter, nor does what is not finite elsewhere */
static void check_nonfinite(const test_case *C)
{
  const int64_t  n = C->A.num_cols, m = C->A.num_rows;
  unsigned char *used = calloc((size_t)n + 1, 1);
  double        *b = test_random(n, 5), *c = test_guarded(m), *expected = test_guarded(m), *scratch;
  tc_bittcf      T;
  tc_spmm_args   args;

  pack(&C->A, &T);
  scratch = malloc(tc_spmm_bittcf_host_scratch(&T, &(tc_spmm_args){.n = 1}) + 1);
  args    = (tc_spmm_args){1, b, n, c, m, 0, scratch, 0, 0, 0};
  for (int64_t e = 0; e < C->A.nnz; ++e) used[C->A.col[e]] = 1;
  for (int64_t k = 0; k < n; ++k) {
    if (!used[k]) b[k] = NAN;
    else if (k % 37 == 5) b[k] = k % 2 ? INFINITY : NAN;
  }
  tc_canonical_spmm(&C->A, 1, b, n, 0, expected, m);

  ASSERT_OK(tc_spmm_bittcf_host(&T, &args, NULL));

  ASSERT_CASE(tc_first_different(m, c, expected) == m, C, "row %lld", (long long)tc_first_different(m, c, expected));
  unpack(&T);
  test_guarded_free(b);
  test_guarded_free(c);
  test_guarded_free(expected);
  free(scratch);
  free(used);
}

static void nonfinite_values_stay_in_their_rows(void **state)
{
  (void)state;
  test_all_cases(check_nonfinite);
}

/*
  Grids are recognised, and clusters take neighbouring lines together; in how many windows depends on how many groups they have, also where lines end within windows and bricks, and of 12 in how
  many along a line on how long that is
*/
static void grids_are_found(void **state)
{
  static const struct {
    const char *generator;
    int32_t     size, line, lines, windows, along;
  } grids[] = {{"stencil27", 40, 40, 40, 16, 1}, {"stencil7", 32, 32, 32, 16, 1}, {"elasticity", 16, 48, 16, 12, 3}, {"elasticity", 20, 60, 20, 12, 2}, {"elasticity", 17, 51, 17, 12, 2}, {"elasticity", 21, 63, 21, 12, 2}, {"ex56", 24, 75, 25, 12, 2}, {"convection", 24, 24, 24, 16, 1}};

  (void)state;
  for (size_t g = 0; g < sizeof grids / sizeof grids[0]; ++g) {
    tc_matrix A;
    tc_bittcf T;

    pack_generated(grids[g].generator, grids[g].size, &A, &T);
    if (T.order.n[0] != grids[g].line || T.order.n[1] != grids[g].lines) fail_msg("%s: lines of %d, planes of %d lines", grids[g].generator, T.order.n[0], T.order.n[1]);
    if (T.cluster_windows != grids[g].windows || T.num_clusters == 0 || T.order.brick[0] != grids[g].along || T.order.brick[0] * T.order.brick[1] * T.order.brick[2] != T.cluster_windows) fail_msg("%s: %d clusters of %d windows, bricks of %d x %d x %d", grids[g].generator, T.num_clusters, T.cluster_windows, T.order.brick[0], T.order.brick[1], T.order.brick[2]);
    unpack(&T);
    shuffled = 1;
    pack(&A, &T); // rows that come in an order stay in it
    shuffled = 0;
    assert_int_equal(T.order.n[0], A.num_rows);
    unpack(&T);
    tc_matrix_free(&A);
  }
}

/* Where bricks have no clusters, or their lines are short, natural order is tried, and kept if it has clusters, or better ones */
static void natural_order_may_have_clusters(void **state)
{
  static const struct {
    const char *generator;
    int32_t     size, natural, clusters;
  } cases[] = {{"lattice", 5, 1, 1}, {"qcd", 10, 1, 1}, {"four", 40, 1, 1}, {"ladder", 40, 0, 1}, {"lines", 40, 0, 0}};

  (void)state;
  for (size_t g = 0; g < sizeof cases / sizeof cases[0]; ++g) {
    tc_matrix A;
    tc_bittcf T;

    pack_generated(cases[g].generator, cases[g].size, &A, &T);
    if ((T.order.brick[1] == 1) != cases[g].natural || (T.num_clusters > 0) != cases[g].clusters || !tc_bittcf_may_cluster(&T)) fail_msg("%s: %d clusters, bricks of %d x %d x %d", cases[g].generator, T.num_clusters, T.order.brick[0], T.order.brick[1], T.order.brick[2]);
    unpack(&T);
    tc_matrix_free(&A);
  }
}

/* Whatever allocation fails, the build says so and leaves an empty view (leaks show under the address sanitizer) */
static void check_failed_allocations(const char *generator, int32_t size, int fewest, int most)
{
  static const tc_bittcf empty;
  tc_matrix              A;
  tc_csr                 pattern;
  tc_bittcf              T;
  int                    failures = 0;

  ASSERT_OK(tc_generate(tc_generator_find(generator), size, 1, &A));
  pattern = tc_matrix_pattern(&A);
  for (;; ++failures) {
    tc_status status;

    tc_fault_arm(TC_FAULT_ALLOC, failures + 1);
    status = tc_format_bittcf.build(&pattern, &T);
    tc_fault_arm(TC_FAULT_ALLOC, 0);
    if (status == TC_OK) break;
    assert_int_equal(status, TC_ERR_MEMORY);
    assert_memory_equal(&T, &empty, sizeof T);
  }
  assert_in_range(failures, fewest, most);
  tc_format_destroy(&tc_format_bittcf, &T);
  tc_matrix_free(&A);
}

static void failed_allocations(void **state)
{
  (void)state;
  check_failed_allocations("limits", 65, 10, 20);
  check_failed_allocations("lines", 40, 30, 40); // packed three times
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_entry_once),
    cmocka_unit_test(every_row_once),
    cmocka_unit_test(clusters_name_their_columns),
    cmocka_unit_test(clusters_of_very_many_columns),
    cmocka_unit_test(products_have_the_defined_bits),
    cmocka_unit_test(nonfinite_values_stay_in_their_rows),
    cmocka_unit_test(grids_are_found),
    cmocka_unit_test(natural_order_may_have_clusters),
    cmocka_unit_test(failed_allocations),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
