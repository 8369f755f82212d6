/*
  The hybrid format as it is built and refilled: all generators, and the limits of its kinds. The products are in test_format_hybrid_product.c.
*/
#include "hybrid_checker.h"
#include "../src/format/hybrid_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t index_kinds[TC_HYBRID_NUM_INDEX_KINDS], value_kinds[TC_HYBRID_NUM_VALUE_KINDS];

static void check_case(const test_case *C)
{
  test_case D = *C;

  for (test_values_kind values = 0; values < TEST_NUM_VALUES; ++values) {
    D.A.val = malloc(((size_t)C->A.nnz + 1) * sizeof *D.A.val);
    test_values(values, C->A.nnz, (uint64_t)C->seed, D.A.val);
    for (int i = 0; i < 4 + 4; ++i) { // every row group, then every precision
      const hybrid_checker K = hybrid_check_packed(&D, i < 4 ? i : 1, i < 4 ? TC_PRECISION_F64 : TC_PRECISION_F32 + i - 4);

      for (int kind = 0; kind < TC_HYBRID_NUM_INDEX_KINDS; ++kind) index_kinds[kind] += K.index_kinds[kind];
      for (int kind = 0; kind < TC_HYBRID_NUM_VALUE_KINDS; ++kind) value_kinds[kind] += K.value_kinds[kind];
    }
    free(D.A.val);
  }
}

static void every_byte_of_every_case(void **state)
{
  (void)state;
  test_all_cases(check_case);
  for (int kind = 0; kind < TC_HYBRID_NUM_VALUE_KINDS; ++kind) assert_true(value_kinds[kind] > 0);
  for (int kind = 0; kind < TC_HYBRID_I32; ++kind) assert_true(index_kinds[kind] > 0); // I32 needs more columns: see below
}

/* Rows of these lengths, evenly spread over the columns and moved along with the rows */
static void spread_rows(int32_t num, const int32_t *length, int32_t num_cols, tc_matrix *A)
{
  int64_t nnz = 0;

  for (int32_t i = 0; i < num; ++i) nnz += length[i];
  ASSERT_OK(tc_matrix_create(num, num_cols, nnz, A));
  for (int32_t i = 0; i < num; ++i) {
    A->row_ptr[i + 1] = A->row_ptr[i] + length[i];
    for (int32_t k = 0; k < length[i]; ++k) A->col[A->row_ptr[i] + k] = (int32_t)((int64_t)num_cols * k / length[i] + i % (num_cols / length[i]));
  }
  tc_random_normal(nnz, 1, A->val);
}

static void lengths_where_classes_change(void **state)
{
  static const int32_t length[] = {40, 255, 256, 0, 257, 41, 2048, 2049, 1, 5000, 2, 3, 4, 5, 40, 41, 128, 4096, 4097, 255};
  test_case            C        = {"lengths", 0, {0}};
  hybrid_checker       K;

  (void)state;
  for (int32_t num_cols = 5000; num_cols <= 50000000; num_cols *= 100) {
    spread_rows(sizeof length / sizeof *length, length, num_cols, &C.A);
    K = hybrid_check_packed(&C, 1, TC_PRECISION_F64);
    assert_true(num_cols == 5000 || K.index_kinds[TC_HYBRID_I32] > 0);
    tc_matrix_free(&C.A);
  }
}

/* 7.5 entries in the mean of all rows, the empty one among them, and one entry more: rows of 17 are tall, or those of 41 */
static void few_entries_make_rows_tall(void **state)
{
  int32_t   length[] = {2, 16, 2, 2, 17, 2, 3, 40, 2, 0, 41, 2, 2, 2, 3, 3, 2, 3, 3, 3};
  test_case C        = {"mean", 0, {0}};

  (void)state;
  for (int32_t more = 0; more < 2; ++more) {
    tc_csr    pattern;
    tc_hybrid H;

    length[0] = 2 + more;
    spread_rows(sizeof length / sizeof *length, length, 100, &C.A);
    assert_int_equal(C.A.nnz, 150 + more);
    hybrid_check_packed(&C, 1, TC_PRECISION_F64);
    pattern = tc_matrix_pattern(&C.A);
    ASSERT_OK(tc_format_hybrid.build(&pattern, &H));
    assert_int_equal(H.num_tall, more ? 1 : 3);
    tc_format_destroy(&tc_format_hybrid, &H);
    tc_matrix_free(&C.A);
  }
}

/* Distances of 0, 0xfe, 0xff, 0xfffe and 0xffff within a place; columns as far to the right as there are */
static void widest_of_each_kind(void **state)
{
  static const int32_t span[] = {0, 0xfe, 0xff, 0xfffe, 0xffff}, expected[] = {TC_HYBRID_SHIFT, TC_HYBRID_U8, TC_HYBRID_U16, TC_HYBRID_U16, TC_HYBRID_I32};
  test_case            C = {"spans", 0, {0}};

  (void)state;
  for (int i = 0; i < 5; ++i) {
    for (int32_t num_cols = 200000; num_cols > 0; num_cols = num_cols == INT32_MAX ? 0 : INT32_MAX) {
      hybrid_checker K;

      ASSERT_OK(tc_matrix_create(32, num_cols, 2 * 32, &C.A));
      for (int32_t e = 0; e < 2 * 32; ++e) {
        C.A.row_ptr[e / 2 + 1] = e / 2 * 2 + 2;
        C.A.col[e]             = e % 2 == 0 ? e / 2 : num_cols - 1 - 32 + e / 2 - (e == 1 ? span[i] : 0);
        C.A.val[e]             = 1;
      }
      K = hybrid_check_packed(&C, 1, TC_PRECISION_F64);
      assert_int_equal(K.index_kinds[expected[i]], 1);
      tc_matrix_free(&C.A);
    }
  }
}

/* 3 x 5: row 0 has columns 0 and 3, row 1 none, row 2 columns 1, 2 and 4; values 1 to 5 */
static void layout_by_hand(void **state)
{
  const int64_t row_ptr[4] = {0, 2, 2, 5};
  const int32_t col[5]     = {0, 3, 1, 2, 4};
  const double  val[5]     = {1, 2, 3, 4, 5};
  /* the slice is rows 2 and 0; distances -1 0 2 and 0 3 */
  static const int32_t row_id[3] = {2, 0, 1}, base[4] = {-1, 0, 2, 0};
  static const uint8_t entry[128] = {0, 0, 0, 0xff, 1, 3, 0xff, 0xff}, code[128] = {2, 3, 4, 0, 0, 1, 0, 0};
  const tc_csr         A          = {3, 5, row_ptr, col, 0, TC_PRECISION_F64, NULL};
  tc_hybrid            H;

  (void)state;
  test_pack_pattern(&tc_format_hybrid, &A, val, &H);
  assert_int_equal(H.num_slices, 1);
  assert_int_equal(H.num_slots, 96);
  assert_int_equal(H.index_units, 9);
  assert_memory_equal(H.row_id, row_id, sizeof row_id);
  assert_int_equal(H.slice[0].width, 3);
  assert_int_equal(H.slice[0].num_rows, 2);
  assert_int_equal(H.slice[0].index_kind, TC_HYBRID_U8);
  assert_int_equal(H.slice[0].value_kind, TC_HYBRID_D8);
  assert_memory_equal(H.index, base, sizeof base);
  assert_memory_equal((char *)H.index + 16, entry, 8);
  for (int i = 24; i < 144; ++i) assert_int_equal(((uint8_t *)H.index)[i], 0xff);
  assert_int_equal(*H.dictionary_size, 5);
  assert_memory_equal(H.dictionary, val, sizeof val);
  assert_memory_equal(H.val, code, sizeof code);
  tc_format_destroy(&tc_format_hybrid, &H);
}

/* The same pattern without a dictionary, whose values are collected: -0.0 is the last by its bits */
static void codes_by_hand(void **state)
{
  const int64_t         row_ptr[4] = {0, 2, 2, 5};
  const int32_t         col[5]     = {0, 3, 1, 2, 4};
  const double          val[5]     = {0.1, 0.2, 0.3, -0.0, 0.1}, large[6] = {0.0, 0.1, 0.2, 0.3, -0.0, 0.0};
  static const uint16_t code[128]  = {3, 4, 1, 0, 1, 2, 0, 0};
  const tc_csr          A          = {3, 5, row_ptr, col, 0, TC_PRECISION_F64, NULL};
  tc_hybrid_repeats     repeats;
  tc_hybrid             H;

  (void)state;
  test_pack_pattern(&tc_format_hybrid, &A, val, &H);
  tc_format_hybrid.remember(&H, &repeats);
  repeats.distinct     = 0; // a refill that does not search
  H.dictionary_size[0] = 0;
  ASSERT_OK(tc_hybrid_refill_host(&H, val));
  assert_int_equal(H.slice[0].value_kind, TC_HYBRID_F64);
  ASSERT_OK(tc_hybrid_collect_host(&H));
  assert_int_equal(H.slice[0].value_kind, TC_HYBRID_D16);
  assert_int_equal(*H.large_size, 5);
  assert_int_equal(repeats.large, 5);
  assert_memory_equal(H.large, large, sizeof large);
  assert_memory_equal(H.val, code, sizeof code);
  tc_format_destroy(&tc_format_hybrid, &H);
}

/* One value that does not fit, where the sample does not look, widens its own piece; without it the next refill narrows it again */
static void one_value_widens_one_piece(void **state)
{
  static const struct {
    test_values_kind     values;
    double               bad;
    tc_hybrid_value_kind narrow, wide;
    tc_precision         precision;
  } changes[] = {
    {TEST_INTEGERS, 1e10,                   TC_HYBRID_D8,   TC_HYBRID_F32,  TC_PRECISION_F64 },
    {TEST_INTEGERS, -0.0,                   TC_HYBRID_D8,   TC_HYBRID_F32,  TC_PRECISION_F64 },
    {TEST_INTEGERS, 0.1,                    TC_HYBRID_D8,   TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_INTEGERS, NAN,                    TC_HYBRID_D8,   TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_FLOATS,   0.1,                    TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_FLOATS,   1e300,                  TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_FLOATS,   1e-320,                 TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_FLOATS,   NAN,                    TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F64 },
    {TEST_FLOATS,   INFINITY,               TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F64 },
    {TEST_INTEGERS, 0.1,                    TC_HYBRID_D8,   TC_HYBRID_F32,  TC_PRECISION_F32 },
    {TEST_NORMAL,   0.1,                    TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F32 },
    {TEST_NORMAL,   NAN,                    TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F32 },
    {TEST_NORMAL,   INFINITY,               TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F32 },
    {TEST_NORMAL,   1e300,                  TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F32 }, // would become infinite
    {TEST_NORMAL,   0x1.fffffefffffffp127,  TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F32 }, // the last that does not
    {TEST_NORMAL,   0x1.ffffffp127,         TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F32 },
    {TEST_NORMAL,   1e-40,                  TC_HYBRID_F32,  TC_HYBRID_F64,  TC_PRECISION_F32 }, // would lose bits
    {TEST_NORMAL,   0x1p-149,               TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F32 },
    {TEST_NORMAL,   0x1.ffffffp-127,        TC_HYBRID_F32,  TC_HYBRID_F32,  TC_PRECISION_F32 }, // rounded to the first normal number
    {TEST_INTEGERS, 0.1,                    TC_HYBRID_D8,   TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   0.1,                    TC_HYBRID_BF16, TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   -0.0,                   TC_HYBRID_BF16, TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   NAN,                    TC_HYBRID_BF16, TC_HYBRID_F64,  TC_PRECISION_BF16},
    {TEST_NORMAL,   -INFINITY,              TC_HYBRID_BF16, TC_HYBRID_F32,  TC_PRECISION_BF16},
    {TEST_NORMAL,   0x1.fefffffffffffp127,  TC_HYBRID_BF16, TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   0x1.ffp127,             TC_HYBRID_BF16, TC_HYBRID_F32,  TC_PRECISION_BF16},
    {TEST_NORMAL,   0x1p-126,               TC_HYBRID_BF16, TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   0x1.ffp-127,            TC_HYBRID_BF16, TC_HYBRID_BF16, TC_PRECISION_BF16},
    {TEST_NORMAL,   0x1.fep-127,            TC_HYBRID_BF16, TC_HYBRID_F32,  TC_PRECISION_BF16},
    {TEST_NORMAL,   1e300,                  TC_HYBRID_BF16, TC_HYBRID_F64,  TC_PRECISION_BF16},
    {TEST_INTEGERS, 0.1,                    TC_HYBRID_D8,   TC_HYBRID_F16,  TC_PRECISION_F16 },
    {TEST_NORMAL,   1e10,                   TC_HYBRID_F16,  TC_HYBRID_F16,  TC_PRECISION_F16 }, // all others of its row become subnormal or zero
    {TEST_NORMAL,   -1e300,                 TC_HYBRID_F16,  TC_HYBRID_F16,  TC_PRECISION_F16 },
    {TEST_NORMAL,   1e-320,                 TC_HYBRID_F16,  TC_HYBRID_F16,  TC_PRECISION_F16 },
    {TEST_NORMAL,   -0.0,                   TC_HYBRID_F16,  TC_HYBRID_F16,  TC_PRECISION_F16 },
    {TEST_NORMAL,   0x1.fffffffffffffp1014, TC_HYBRID_F16,  TC_HYBRID_F16,  TC_PRECISION_F16 },
    {TEST_NORMAL,   0x1p1015,               TC_HYBRID_F16,  TC_HYBRID_F64,  TC_PRECISION_F16 }, // no power of two for that
    {TEST_NORMAL,   INFINITY,               TC_HYBRID_F16,  TC_HYBRID_F32,  TC_PRECISION_F16 },
    {TEST_NORMAL,   NAN,                    TC_HYBRID_F16,  TC_HYBRID_F64,  TC_PRECISION_F16 },
  };
  static const int32_t length[70] = {2500, 300, 300, 300}; // the others: see below
  int32_t              lengths[70];
  test_case            C = {"one value", 0, {0}};
  tc_csr               pattern;
  tc_hybrid            H;
  hybrid_checker       K = {.C = &C, .A = &C.A, .H = &H, .row_group = 1};

  (void)state;
  for (int i = 0; i < 70; ++i) lengths[i] = length[i] > 0 ? length[i] : 100;
  spread_rows(70, lengths, 5000, &C.A);
  assert_true(C.A.nnz / 4096 == 2); // the sample takes every other value
  pattern = tc_matrix_pattern(&C.A);
  for (size_t c = 0; c < sizeof changes / sizeof *changes; ++c) {
    pattern.precision = changes[c].precision;
    test_pack_pattern(&tc_format_hybrid, &pattern, C.A.val, &H);
    test_values(changes[c].values, C.A.nnz, 3, C.A.val);
    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = C.A.val[e] == 0 ? 0.0 : C.A.val[e]; // no -0.0
    for (int64_t entry = 1; entry < C.A.nnz; entry += 2222) { // in segments and slices
      const double good = C.A.val[entry];

      for (int bad = 1; bad >= 0; --bad) {
        C.A.val[entry] = bad ? changes[c].bad : good;
        memset(H.val, TEST_UNWRITTEN, (size_t)H.num_slots * 8);
        memset(K.value_kinds, 0, sizeof K.value_kinds);
        ASSERT_OK(tc_hybrid_refill_host(&H, C.A.val));
        hybrid_check_view(&K);
        assert_int_equal(K.value_kinds[changes[c].narrow], H.num_segments + H.num_slices - (bad && changes[c].narrow != changes[c].wide));
        assert_int_equal(K.value_kinds[changes[c].wide], changes[c].narrow == changes[c].wide ? H.num_segments + H.num_slices : bad);
      }
    }
    tc_format_destroy(&tc_format_hybrid, &H);
  }
  tc_matrix_free(&C.A);
}

/*
  Values half-way between two numbers of the precision, and just beside that, in the normal and the subnormal range; the largest of each row is a power of two, which
  another one scales
*/
static void halves_go_to_even(void **state)
{
  static const int     bits[] = {[TC_PRECISION_F32] = 24, [TC_PRECISION_TF32] = 24, [TC_PRECISION_BF16] = 8, [TC_PRECISION_F16] = 11};
  static const int     powers[] = {0, -1, -14, -28, -29, -30, -35, -38, -39, -40}; // F16: of 2^14
  static const int32_t length[10] = {250, 250, 250, 250, 250, 250, 250, 250, 250, 2100};
  test_case            C          = {"halves", 0, {0}};

  (void)state;
  spread_rows(10, length, 5000, &C.A);
  for (tc_precision precision = TC_PRECISION_F32; precision <= TC_PRECISION_F16; ++precision) {
    for (int row = 0; row < 10; ++row) {
      for (int64_t e = C.A.row_ptr[row]; e < C.A.row_ptr[row + 1]; ++e) {
        const int64_t k    = e - C.A.row_ptr[row];
        const double  half = ldexp(1 + ldexp((double)(2 * (k / 3) + 1), -bits[precision]), powers[row]), beside = k % 3 == 0 ? 0 : k % 3 == 1 ? 0x1p-52 : -0x1p-52;

        C.A.val[e] = k == 0 ? ldexp(1, 3 * row) : ldexp(half * (1 + beside) * (k % 2 ? 1 : -1), 3 * row);
      }
    }
    hybrid_check_packed(&C, 1, precision);
  }
  tc_matrix_free(&C.A);
}

/* 256 values are a dictionary, 257 are not; what the sample does not see does not count */
static void dictionary_of_256(void **state)
{
  static const int32_t length[3] = {5000, 5, 1000};
  test_case            C         = {"dictionary", 0, {0}};

  (void)state;
  spread_rows(3, length, 5000, &C.A);
  for (int distinct = 256; distinct <= 257; ++distinct) {
    hybrid_checker K;

    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = (double)(e % distinct - 100) / 3;
    K = hybrid_check_packed(&C, 1, TC_PRECISION_F64);
    assert_int_equal(K.value_kinds[TC_HYBRID_D8], distinct == 256 ? 5 : 0);
  }
  tc_matrix_free(&C.A);
}

/* 4095 values beside +0.0 are a large dictionary, 4096 are not; -0.0 and NaNs are values by their bits; what is in segments does not count. After one that came to nothing seven refills leave it out. */
static void large_dictionary_of_4096(void **state)
{
  static const double special[] = {0.0, -0.0, NAN, -NAN, INFINITY, 0x1p-1074, -0x1p-1074};
  enum { ROWS = 64, LENGTH = 200, LONG = 300 };
  test_case         C = {"large dictionary", 0, {0}};
  int32_t           length[ROWS + 1];
  const uint64_t    all_ones = UINT64_MAX;
  tc_hybrid_repeats repeats;
  tc_hybrid         H;

  (void)state;
  for (int32_t i = 0; i <= ROWS; ++i) length[i] = i < ROWS ? LENGTH : LONG;
  spread_rows(ROWS + 1, length, 5000, &C.A);
  for (int distinct = 4094; distinct <= 4096; ++distinct) {
    hybrid_checker K;

    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = e < ROWS * LENGTH ? (double)(e % (distinct - 7) + 1) / 3 : 1 / (double)(e + 1);
    memcpy(C.A.val + 5000, special, sizeof special);
    memcpy(C.A.val + 10000, &all_ones, sizeof all_ones);
    K = hybrid_check_packed(&C, 1, TC_PRECISION_F64);
    assert_int_equal(K.value_kinds[TC_HYBRID_F64], 3);
    assert_int_equal(K.value_kinds[TC_HYBRID_D16], distinct < 4096 ? 2 : 0);
  }
  test_pack(&tc_format_hybrid, &C.A, &H);
  H.precision = TC_PRECISION_F64;
  tc_format_hybrid.remember(&H, &repeats);
  for (int refill = 0; refill < 18; ++refill) {
    const int few = refill != 0 && refill != 16, coded = refill >= 8 && refill < 16;

    for (int64_t e = 0; e < C.A.nnz; ++e) C.A.val[e] = 1 / (double)((few ? e % 300 : e) + 3);
    ASSERT_OK(tc_hybrid_refill_host(&H, C.A.val));
    assert_int_equal(repeats.bytes, 8);
    ASSERT_OK(tc_hybrid_collect_host(&H));
    assert_int_equal(H.slice[0].value_kind == TC_HYBRID_D16, coded);
    assert_int_equal(repeats.bytes, coded ? 2 : 8);
    assert_int_equal(repeats.large, coded ? 301 : 0);
  }
  tc_format_destroy(&tc_format_hybrid, &H);
  tc_matrix_free(&C.A);
}

/* One entry of each of 4096 equal parts, and of rows that are alike every place, however long a part is beside a row */
static void sample_is_not_in_step_with_rows(void **state)
{
  static const int64_t nnz[] = {1, 4095, 4096, 8191, 4096 * 27, 4096 * 81 + 5, 4096 * 162, 4096 * 2616, 4096 * 2617, INT32_MAX};

  (void)state;
  for (size_t n = 0; n < sizeof nnz / sizeof *nnz; ++n) {
    const int64_t part = nnz[n] < 4096 ? 1 : nnz[n] / 4096;
    int           third[3] = {0}, place[81] = {0};

    for (int32_t i = 0; i < 4096 && i < nnz[n]; ++i) {
      const int64_t entry = tc_hybrid_sampled(nnz[n], i);

      assert_in_range(entry, part * i, part * (i + 1) - 1);
      ++third[3 * (entry - part * i) / part];
      ++place[entry % 81];
    }
    for (int t = 0; t < 3 && part >= 27; ++t) assert_in_range(third[t], 4096 / 3 - 150, 4096 / 3 + 150); // five standard deviations
    for (int k = 0; k < 81 && part >= 27; ++k) assert_in_range(place[k], 15, 86);                       // likewise
  }
}

/* Whatever allocation fails, the build says so and leaves an empty view (leaks show under the address sanitizer); what it leaves to refills it says to be F64 */
static void builds_and_failed_allocations(void **state)
{
  static const int32_t   length[3] = {300, 5, 0};
  static const tc_hybrid empty;
  tc_matrix              A;
  tc_csr                 pattern;
  tc_hybrid              H;

  (void)state;
  spread_rows(3, length, 1000, &A);
  pattern = tc_matrix_pattern(&A);
  for (int failure = 1; failure <= 7; ++failure) { // seven arrays
    tc_fault_arm(TC_FAULT_ALLOC, failure);
    assert_int_equal(tc_format_hybrid.build(&pattern, &H), TC_ERR_MEMORY);
    tc_fault_arm(TC_FAULT_ALLOC, 0);
    assert_memory_equal(&H, &empty, sizeof H);
  }
  ASSERT_OK(tc_format_hybrid.build(&pattern, &H));
  assert_int_equal(H.segment[0].value_kind, TC_HYBRID_F64);
  assert_int_equal(H.slice[0].value_kind, TC_HYBRID_F64);
  assert_true(!H.val && !H.dictionary && !H.dictionary_size && !H.exponent && !H.partial && !H.arrived);
  tc_format_destroy(&tc_format_hybrid, &H);
  tc_matrix_free(&A);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(layout_by_hand),
    cmocka_unit_test(codes_by_hand),
    cmocka_unit_test(every_byte_of_every_case),
    cmocka_unit_test(lengths_where_classes_change),
    cmocka_unit_test(few_entries_make_rows_tall),
    cmocka_unit_test(widest_of_each_kind),
    cmocka_unit_test(one_value_widens_one_piece),
    cmocka_unit_test(halves_go_to_even),
    cmocka_unit_test(dictionary_of_256),
    cmocka_unit_test(large_dictionary_of_4096),
    cmocka_unit_test(sample_is_not_in_step_with_rows),
    cmocka_unit_test(builds_and_failed_allocations),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
