/*
  When packing pays for products with vectors: straight from CSR until then, by the prices of src/plan/straight.c, and what is remembered of the values before. On a backend that has a device's prices. And when cuSPARSE, called in place of these products, prepares itself.
*/
#include "plan_util.h"
#include "test_util.h"
#include "../src/plan/straight.h"
#include "../src/plan/survey.h"
#include <stdlib.h>

static int long_rows; // has the matrix any?

static size_t no_scratch(int32_t num_rows, int64_t nnz)
{
  (void)num_rows, (void)nnz;
  return 0;
}

/* Tells of long rows, and multiplies nothing */
static tc_status tell(const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  (void)A, (void)x, (void)y, (void)z, (void)sign, (void)stream;
  memory->told[1] = long_rows;
  memory->told[0] = tc_told(memory->pattern, 1 + long_rows);
  return TC_OK;
}

static const tc_backend *device(void)
{
  static tc_backend backend;

  backend                  = *tc_backend_host();
  backend.spmv_csr_scratch = no_scratch;
  backend.spmv_csr         = tell;
  return &backend;
}

enum { MOST = 1000 };

/* Products straight from CSR before packing pays for these values of a matrix of that many rows and entries */
static int straight_products(tc_straight *S, const tc_backend *backend, tc_key *key, tc_verdict verdict, int64_t hits, int32_t rows)
{
  const tc_csr_matrix A = {.rows = &(tc_csr_local){.num_rows = rows}, .scalar = TC_SCALAR_F64};
  int                 products = 0;

  while (products < MOST && !tc_straight_pays(S, backend, key, verdict, hits, rows, TC_STRAIGHT_FORWARD)) {
    ASSERT_OK(tc_straight_multiply(S, backend, key, &A, NULL, NULL, NULL, 1, NULL));
    ++products;
  }
  return products;
}

/* elasticity:28 and one of 3000 rows: few products, and more where the matrix is small; new values take fewer than a new pattern */
static void break_even(void **state)
{
  int products[2][2];

  (void)state;
  long_rows = 0;
  for (int size = 0; size < 2; ++size) {
    for (int verdict = 0; verdict < 2; ++verdict) {
      tc_straight S   = {0};
      tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = size ? 4962312 : 184000};

      products[size][verdict] = straight_products(&S, device(), &key, verdict ? TC_CACHE_REBUILD : TC_CACHE_REFILL, 0, size ? 65856 : 3000);
      tc_straight_reset(&S);
      assert_int_equal(S.count, products[size][verdict]);
    }
  }
  assert_in_range(products[1][0], 1, 2);
  assert_in_range(products[1][1], 2, 6);
  assert_in_range(products[0][0], 3, 10);
  assert_in_range(products[0][1], 15, 40);
}

/* Values with many products are followed by such, values with one by such */
static void history(void **state)
{
  tc_straight S   = {0};
  tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = 184000};
  int64_t     hits = 0;

  (void)state;
  long_rows = 0;
  straight_products(&S, device(), &key, TC_CACHE_REBUILD, hits, 3000);
  hits += 100;
  key.state = 2;
  assert_int_equal(straight_products(&S, device(), &key, TC_CACHE_REFILL, hits, 3000), 0); // after 100
  key.state = 3;
  assert_int_equal(tc_straight_pays(&S, device(), &key, TC_CACHE_REFILL, hits, 3000, TC_STRAIGHT_FORWARD), 0); // after one
  for (key.state = 4; key.state < 50; ++key.state) assert_int_equal(tc_straight_pays(&S, device(), &key, TC_CACHE_REFILL, hits, 3000, TC_STRAIGHT_FORWARD), 0);
  assert_true(S.seldom > 40);
  assert_true(straight_products(&S, device(), &key, TC_CACHE_REFILL, hits, 3000) > 0);
  hits += 100;
  key.state   = 51;
  key.pattern = 2;
  assert_int_equal(straight_products(&S, device(), &key, TC_CACHE_REBUILD, hits, 3000), 0);
  tc_straight_reset(&S);
}

/* Ten products with each values: too few for a new pattern, not for new values, so the pattern pays after some of them, for as long as they are so; one product with each never */
static void values_again_and_again(void **state)
{
  (void)state;
  long_rows = 0;
  for (int each = 1; each <= 10; each += 9) {
    tc_straight S       = {0};
    tc_key      key     = {.id = 1, .pattern = 1, .state = 1, .nnz = 184000};
    tc_verdict  verdict = TC_CACHE_REBUILD;
    int64_t     hits    = 0;
    int         packed_at[3] = {0}, num = 0;

    for (; key.state < 20; ++key.state) {
      int packed = 0;

      for (int i = 0; i < each; ++i) {
        if (packed) ++hits;
        else if (tc_straight_pays(&S, device(), &key, verdict, hits, 3000, TC_STRAIGHT_FORWARD)) {
          if (num < 3) packed_at[num++] = (int)key.state;
          packed  = 1;
          verdict = TC_CACHE_REFILL;
        }
      }
    }
    assert_int_equal(num, each == 1 ? 0 : 3);
    if (each == 1) continue;
    assert_in_range(packed_at[0], 3, 12);
    assert_int_equal(packed_at[1], packed_at[0] + 1);
    assert_int_equal(packed_at[2], packed_at[0] + 2);
  }
}

/* Known after the first product of a pattern; packed sooner */
static void uneven_rows(void **state)
{
  int products[2][2];

  (void)state;
  for (long_rows = 0; long_rows < 2; ++long_rows) {
    tc_straight S   = {0};
    tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = 230000};

    assert_false(tc_straight_is_uneven(&S, device(), &key));
    products[long_rows][0] = straight_products(&S, device(), &key, TC_CACHE_REBUILD, 0, 16384);
    assert_int_equal(tc_straight_is_uneven(&S, device(), &key), long_rows);
    for (key.state = 2; key.state < 4; ++key.state) tc_straight_pays(&S, device(), &key, TC_CACHE_REFILL, 0, 16384, TC_STRAIGHT_FORWARD); // the first as those before
    products[long_rows][1] = straight_products(&S, device(), &key, TC_CACHE_REFILL, 0, 16384);
    key.pattern = 2;
    assert_false(tc_straight_is_uneven(&S, device(), &key));
    tc_straight_reset(&S);
  }
  for (int verdict = 0; verdict < 2; ++verdict) assert_true(1 < products[1][verdict] && products[1][verdict] < products[0][verdict]);
}

/* Of a transpose new values alone, after two that had few products */
static void transposes(void **state)
{
  tc_straight         S   = {0};
  tc_key              key = {.id = 1, .pattern = 1, .state = 1, .nnz = 184000};
  const tc_csr_matrix A   = {.rows = &(tc_csr_local){.num_rows = 3000}, .scalar = TC_SCALAR_F64};

  (void)state;
  long_rows = 1;
  assert_true(tc_straight_pays(&S, device(), &key, TC_CACHE_REBUILD, 0, 3000, TC_STRAIGHT_PERMUTED));
  for (key.state = 2; key.state < 5; ++key.state) {
    assert_int_equal(tc_straight_pays(&S, device(), &key, TC_CACHE_REFILL, 0, 3000, TC_STRAIGHT_PERMUTED), key.state == 2);
    if (key.state > 2) ASSERT_OK(tc_straight_multiply(&S, device(), &key, &A, NULL, NULL, NULL, 1, NULL));
  }
  assert_true(tc_straight_pays(&S, device(), &key, TC_CACHE_REBUILD, 0, 3000, TC_STRAIGHT_PERMUTED));
  tc_straight_reset(&S);
}

/* With many entries what has been timed decides, once all of it is known, for that pattern */
static void times(void **state)
{
  (void)state;
  for (int many = 0; many < 2; ++many) {
    for (int gains = 0; gains < 2; ++gains) {
      tc_straight S       = {0};
      tc_key      key     = {.id = 1, .pattern = 1, .state = 1, .nnz = many ? 2000000 : 400000};
      int         asked = 0;

      tc_straight_pays(&S, tc_backend_host(), &key, TC_CACHE_REBUILD, 0, 100000, TC_STRAIGHT_FORWARD);
      tc_straight_timed(&S, TC_STRAIGHT_PRODUCT, 3);
      tc_straight_timed(&S, TC_STRAIGHT_PRODUCT, gains ? 2.5 : 1.0); /* the least */
      tc_straight_timed(&S, TC_STRAIGHT_PRODUCT, 4);
      tc_straight_timed(&S, TC_STRAIGHT_PACKED, 1);
      tc_straight_timed(&S, TC_STRAIGHT_REFILL, 4);
      key.state = 2;
      while (asked < 1000 && !tc_straight_pays(&S, tc_backend_host(), &key, TC_CACHE_REFILL, 0, 100000, TC_STRAIGHT_FORWARD)) ++asked;
      if (many) assert_int_equal(asked, gains ? 2 : 1000); /* 4 of 1.5 */
      else assert_in_range(asked, 1, 20);
      key.pattern = 2;
      tc_straight_pays(&S, tc_backend_host(), &key, TC_CACHE_REBUILD, 0, 100000, TC_STRAIGHT_FORWARD);
      for (int work = 0; work < TC_STRAIGHT_NUM_TIMED; ++work) assert_true(S.timed[work].times == 0);
      tc_straight_reset(&S);
    }
  }
}

/* What is packed is passed over once the least time of enough products says so: with many entries, on the host, for that pattern */
static void passed_over(void **state)
{
  (void)state;
  for (int faster = 0; faster < 2; ++faster) {
    tc_straight S   = {0};
    tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = 600000}, other = key;
    int         products = 0;

    tc_straight_pays(&S, tc_backend_host(), &key, TC_CACHE_REBUILD, 0, 100000, TC_STRAIGHT_FORWARD);
    for (int i = 0; i < 100; ++i) tc_straight_timed(&S, TC_STRAIGHT_PRODUCT, faster ? 0.9 : 1.1);
    while (products < 100 && !tc_straight_is_faster(&S, tc_backend_host(), &key)) tc_straight_timed(&S, TC_STRAIGHT_PACKED, products++ == 3 ? 1.0 : 5.0); /* the others were disturbed */
    assert_int_equal(products, faster ? 16 : 100);
    other.state = 2;
    assert_int_equal(tc_straight_is_faster(&S, tc_backend_host(), &other), faster);
    assert_false(tc_straight_is_faster(&S, device(), &key));
    other.pattern = 2;
    assert_false(tc_straight_is_faster(&S, tc_backend_host(), &other));
    S.key.nnz = key.nnz = 400000;
    assert_false(tc_straight_is_faster(&S, tc_backend_host(), &key));
    tc_straight_reset(&S);
  }
}

/* Groups of rows that share their columns, by the mean of two */
static void nodes(void **state)
{
  tc_straight S   = {0};
  tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = 100}, other = key;
  int32_t    *first;

  (void)state;
  assert_int_equal(tc_straight_multiplies(&S, &key), TC_STRAIGHT_UNKNOWN);
  for (int32_t num = 0; num <= 6; num += 2) {
    ASSERT_OK(tc_straight_keep_nodes(&S, &key, 9, 1, num, &first));
    assert_int_equal(first != NULL, num == 2 || num == 4);
    for (int32_t i = 0; first && i <= num; ++i) first[i] = i;
    assert_int_equal(tc_straight_multiplies(&S, &key), first ? TC_STRAIGHT_NODES : TC_STRAIGHT_FORWARD);
  }
  other.state = 2;
  assert_int_equal(tc_straight_multiplies(&S, &other), TC_STRAIGHT_FORWARD);
  other.pattern = 2;
  assert_int_equal(tc_straight_multiplies(&S, &other), TC_STRAIGHT_UNKNOWN);
  key.nnz = 71;
  ASSERT_OK(tc_straight_keep_nodes(&S, &key, 9, 1, 3, &first));
  assert_null(first); // short rows
  key.nnz = 72;
  ASSERT_OK(tc_straight_keep_nodes(&S, &key, 9, 1, 3, &first));
  assert_non_null(first);
  key.nnz = 3000001;
  ASSERT_OK(tc_straight_keep_nodes(&S, &key, 9, 1, 3, &first));
  assert_null(first); // memory
  key.nnz = 72;
  ASSERT_OK(tc_straight_keep_nodes(&S, &key, 9, 1, 3, &first));
  tc_straight_reset(&S);
  assert_int_equal(tc_straight_multiplies(&S, &key), TC_STRAIGHT_UNKNOWN);
}

/* Lengths of rows, in offsets of 32 and of 64 bits */
static double repeated(int32_t num_rows, int32_t (*length)(int32_t))
{
  static int32_t narrow[4001];
  static int64_t wide[4001];
  double         share;

  for (int32_t i = 0; i < num_rows; ++i) wide[i + 1] = narrow[i + 1] = narrow[i] + length(i);
  share = tc_repeated_lengths(narrow, 0, num_rows);
  assert_true(share == tc_repeated_lengths(wide, 1, num_rows));
  return share;
}

static int32_t by_fours(int32_t row)
{
  return row / 4 % 2;
}

static int32_t by_twos(int32_t row)
{
  return row % 2;
}

static int32_t ascending(int32_t row)
{
  return row;
}

/* Short rows on the host, whose packed products gain the more the less a processor can foretell where they end */
static void lengths(void **state)
{
  static const double shares[] = {1, 0.76, 0.75, 0.51, 0.5, 0};
  static const tc_straight_way ways[] = {TC_STRAIGHT_FORWARD, TC_STRAIGHT_FORWARD, TC_STRAIGHT_MIXED, TC_STRAIGHT_MIXED, TC_STRAIGHT_IRREGULAR, TC_STRAIGHT_IRREGULAR};
  int products[6];

  (void)state;
  assert_true(repeated(100, by_twos) == 1 && repeated(100, ascending) == 0 && repeated(2, ascending) == 1 && repeated(0, ascending) == 1);
  assert_in_range(1000 * repeated(100, by_fours), 745, 765);
  assert_in_range(1000 * repeated(4000, by_fours), 740, 760);
  for (int i = 0; i < 6; ++i) {
    tc_straight S   = {0};
    tc_key      key = {.id = 1, .pattern = 1, .state = 1, .nnz = 60000};
    int32_t    *first;

    ASSERT_OK(tc_straight_keep_nodes(&S, &key, 10000, shares[i], 0, &first));
    assert_int_equal(tc_straight_multiplies(&S, &key), ways[i]);
    for (products[i] = 0; products[i] < MOST && !tc_straight_pays(&S, tc_backend_host(), &key, TC_CACHE_REBUILD, 0, 10000, ways[i]); ++products[i]);
    tc_straight_reset(&S);
  }
  assert_in_range(products[0], 400, 600);
  assert_in_range(products[2], 30, 50);
  assert_in_range(products[4], 9, 13);
  for (int i = 0; i < 6; i += 2) assert_int_equal(products[i], products[i + 1]);
}

/* The host multiplies floats over packed formats alone */
static void scalars(void **state)
{
  (void)state;
  assert_true(tc_straight_serves(tc_backend_host(), TC_SCALAR_F64) && !tc_straight_serves(tc_backend_host(), TC_SCALAR_F32) && tc_straight_serves(device(), TC_SCALAR_F32));
}

static int       prepared, released, captured;
static tc_status prepare_status;

static tc_status prepare_for_cusparse(const tc_csr_matrix *A, const void *x, void *z, void **kept, tc_stream stream)
{
  (void)A, (void)x, (void)z, (void)stream;
  *kept = prepare_status == TC_OK ? &prepared : NULL;
  if (prepare_status == TC_OK) ++prepared;
  return prepare_status;
}

static tc_status multiply_by_cusparse(void *kept, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  (void)x, (void)y, (void)z, (void)sign, (void)stream;
  return kept == &prepared ? TC_OK : TC_ERR_ARG;
}

static void release_cusparse(void *kept)
{
  (void)kept;
  ++released;
}

static int is_captured(tc_stream stream)
{
  (void)stream;
  return captured;
}

/* cuSPARSE prepares itself once for a pattern and its arrays, never while a stream is captured, and has one matrix at a time; the host has none */
static void cusparse(void **state)
{
  static const int32_t ids[2];
  static const double  values[2];
  tc_csr_local         rows    = {.num_rows = 1, .row_ptr = ids, .col = ids};
  tc_csr_matrix        A       = {.rows = &rows, .scalar = TC_SCALAR_F64, .val = values};
  tc_key               key     = {.id = 1, .pattern = 1, .state = 1, .nnz = 1};
  tc_straight          S       = {0};
  tc_backend           backend = *device();

  (void)state;
  assert_int_equal(tc_straight_multiply_cusparse(&S, tc_backend_host(), &key, &A, NULL, NULL, NULL, 1, NULL), TC_ERR_UNSUPPORTED);
  backend.cusparse_prepare  = prepare_for_cusparse;
  backend.cusparse_multiply = multiply_by_cusparse;
  backend.cusparse_release  = release_cusparse;
  backend.capturing         = is_captured;
  prepared = released = captured = 0;
  prepare_status                 = TC_OK;
  for (int change = 0; change < 6; ++change) { // nothing, new values where the old ones were, another pattern, row offsets, columns, values elsewhere
    if (change == 1) ++key.state;
    if (change == 2) ++key.pattern;
    if (change == 3) rows.row_ptr = ids + 1;
    if (change == 4) rows.col = ids + 1;
    if (change == 5) A.val = values + 1;
    captured = 1;
    assert_int_equal(tc_straight_multiply_cusparse(&S, &backend, &key, &A, NULL, NULL, NULL, 1, NULL), change == 1 ? TC_OK : TC_ERR_UNSUPPORTED);
    captured = 0;
    for (int again = 0; again < 3; ++again) ASSERT_OK(tc_straight_multiply_cusparse(&S, &backend, &key, &A, NULL, NULL, NULL, 1, NULL));
    assert_int_equal(prepared, change < 2 ? 1 : change);
    assert_int_equal(released, prepared - 1);
  }
  ++key.pattern;
  prepare_status = TC_ERR_MEMORY;
  for (int again = 0; again < 2; ++again) assert_int_equal(tc_straight_multiply_cusparse(&S, &backend, &key, &A, NULL, NULL, NULL, 1, NULL), TC_ERR_MEMORY);
  assert_int_equal(released, prepared); // that of the pattern before is gone, and nothing is given back twice
  prepare_status = TC_OK;
  ASSERT_OK(tc_straight_multiply_cusparse(&S, &backend, &key, &A, NULL, NULL, NULL, 1, NULL));
  for (int again = 0; again < 2; ++again) {
    tc_straight_release_cusparse(&S);
    assert_int_equal(released, prepared);
  }
  ASSERT_OK(tc_straight_multiply_cusparse(&S, &backend, &key, &A, NULL, NULL, NULL, 1, NULL));
  for (int again = 0; again < 2; ++again) {
    tc_straight_reset(&S);
    assert_int_equal(released, prepared);
  }
  assert_int_equal(S.count, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(break_even), cmocka_unit_test(history), cmocka_unit_test(values_again_and_again), cmocka_unit_test(uneven_rows), cmocka_unit_test(transposes), cmocka_unit_test(times), cmocka_unit_test(passed_over), cmocka_unit_test(nodes), cmocka_unit_test(lengths), cmocka_unit_test(scalars), cmocka_unit_test(cusparse)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
