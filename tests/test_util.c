#include "test_util.h"
#include "../kernels/tc_narrow.h"
#include "../src/format/bcsr.h"
#include "../src/format/bittcf_host.h"
#include "../src/format/hybrid_unpack.h"
#include "../src/format/hybrid_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_WORDS = 8 };
static const uint64_t guard_word = UINT64_C(0xfff8dead0badcafe); // a NaN that no computation makes

void test_all_cases(void (*check)(const test_case *C))
{
  int                 num;
  const tc_generator *generators = tc_generators(&num);

  for (int i = 0; i < num; ++i) {
    for (int seed = 1; seed <= TEST_SEEDS; ++seed) {
      test_case C = {generators[i].name, seed, {0}};

      ASSERT_OK(tc_generate(&generators[i], generators[i].tiny, (uint64_t)seed, &C.A));
      check(&C);
      tc_matrix_free(&C.A);
    }
  }
}

double *test_guarded(int64_t n)
{
  double *block = malloc(((size_t)n + 2 * GUARD_WORDS) * sizeof *block);

  assert_non_null(block);
  for (int i = 0; i < GUARD_WORDS; ++i) {
    memcpy(block + i, &guard_word, sizeof guard_word);
    memcpy(block + GUARD_WORDS + n + i, &guard_word, sizeof guard_word);
  }
  for (int64_t i = 0; i < n; ++i) block[GUARD_WORDS + i] = NAN;
  return block + GUARD_WORDS;
}

int test_guards_hold(const double *array, int64_t n)
{
  for (int i = 0; i < GUARD_WORDS; ++i) {
    if (memcmp(array - GUARD_WORDS + i, &guard_word, sizeof guard_word) != 0 || memcmp(array + n + i, &guard_word, sizeof guard_word) != 0) return 0;
  }
  return 1;
}

void test_guarded_free(double *array)
{
  free(array - GUARD_WORDS);
}

double *test_random(int64_t n, uint64_t seed)
{
  double *x = test_guarded(n);

  tc_random_normal(n, seed, x);
  return x;
}

void *test_array(const tc_format *format, void *view, tc_role role, size_t *count)
{
  tc_array  arrays[TC_MAX_ARRAYS];
  const int num = format->arrays(view, arrays);

  for (int i = 0; i < num; ++i) {
    void *pointer;

    if (arrays[i].role != role) continue;
    *count = arrays[i].count;
    memcpy(&pointer, (char *)view + arrays[i].offset, sizeof pointer);
    return pointer;
  }
  return NULL;
}

void test_pack_pattern(const tc_format *format, const tc_csr *pattern, const double *csr_val, void *view)
{
  tc_array arrays[TC_MAX_ARRAYS];
  int      num;

  ASSERT_OK(format->build(pattern, view));
  num = format->arrays(view, arrays);
  for (int i = 0; i < num; ++i) {
    const size_t bytes = arrays[i].count * arrays[i].item_size;
    void        *array;

    if (arrays[i].role != TC_ROLE_VALUE) continue;
    array = malloc(bytes + 1);
    assert_non_null(array);
    memset(array, TEST_UNWRITTEN, bytes);
    memcpy((char *)view + arrays[i].offset, &array, sizeof array);
  }
  if (format == &tc_format_hybrid) ASSERT_OK(tc_hybrid_refill_host(view, csr_val));
  else if (format == &tc_format_bittcf) ASSERT_OK(tc_bittcf_refill_host(view, csr_val));
  else if (format == &tc_format_bcsr) ASSERT_OK(tc_bcsr_refill_host(view, csr_val));
  else {
    size_t   num_slots = 0;
    int32_t *map       = test_array(format, view, TC_ROLE_MAP, &num_slots);
    double  *val       = test_array(format, view, TC_ROLE_VALUE, &num_slots);

    for (size_t s = 0; s < num_slots; ++s) val[s] = map[s] >= 0 ? csr_val[map[s]] : 0.0;
  }
}

void test_pack(const tc_format *format, const tc_matrix *A, void *view)
{
  tc_csr pattern = tc_matrix_pattern(A);

  pattern.precision = format->widest;
  test_pack_pattern(format, &pattern, A->val, view);
}

void test_stored_values(const void *hybrid, double *val)
{
  const tc_hybrid *H = hybrid;

  for (int64_t piece = 0; piece < (int64_t)H->num_segments + H->num_slices; ++piece) {
    tc_hybrid_lanes L;

    tc_hybrid_lanes_of(H, piece, &L);
    for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
      for (int32_t k = 0; k < L.count[lane]; ++k) {
        double *to = &val[L.first[lane] + L.stride * k];

        *to = tc_unpack_value(H, (const double *)H->val + TC_HYBRID_SLICE_ROWS * (size_t)*L.val, *L.value_kind, L.places, lane, k);
        if (*L.value_kind == TC_HYBRID_F16) *to *= tc_power_of_two(L.exponent[lane < L.num_exponents ? lane : 0]);
      }
    }
  }
}

void test_values(test_values_kind kind, int64_t n, uint64_t seed, double *val)
{
  tc_random_normal(n, seed, val);
  for (int64_t i = 0; i < n && kind == TEST_FLOATS; ++i) val[i] = (float)val[i];
  for (int64_t i = 0; i < n && kind == TEST_INTEGERS; ++i) val[i] = round(val[i]);
}

double test_rounded(tc_precision precision, double x)
{
  static const int fraction[] = {[TC_PRECISION_F32] = 23, [TC_PRECISION_TF32] = 10, [TC_PRECISION_BF16] = 7, [TC_PRECISION_F16] = 10};

  int              exponent;
  const int        lowest = precision == TC_PRECISION_F16 ? -14 : -126;

  if (x == 0 || !isfinite(x)) return x;
  frexp(x, &exponent);
  --exponent;
  if (exponent < lowest && precision != TC_PRECISION_F16) {
    const double up = ldexp(rint(ldexp(x, fraction[precision] - exponent)), exponent - fraction[precision]);

    return precision != TC_PRECISION_F32 && fabs(up) >= 0x1p-126 ? up : copysign(0.0, x);
  }
  if (exponent < lowest) exponent = lowest;
  return ldexp(rint(ldexp(x, fraction[precision] - exponent)), exponent - fraction[precision]);
}
