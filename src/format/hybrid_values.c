/*
  The values of the hybrid format on the host: kernels/tc_hybrid.h defines the kinds and the dictionary.
*/
#include "hybrid_values.h"
#include "../../kernels/tc_narrow.h"
#include "hybrid_lanes.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where values stand in the dictionary: a table with open addressing */
enum { HASH_BITS = 10, HASH = 1 << HASH_BITS };
typedef struct {
  uint64_t bits[HASH];
  int16_t  place[HASH]; // -1: free
} lookup;

/* The slot of these bits, or the free slot where they belong */
static int find(const lookup *T, uint64_t bits)
{
  int slot = (int)(bits * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS));

  while (T->place[slot] >= 0 && T->bits[slot] != bits) slot = (slot + 1) % HASH;
  return slot;
}

int tc_compare_bits(const void *a, const void *b)
{
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

  return (left > right) - (left < right);
}

/* No NaN is one */
static int sample_of_floats(const tc_hybrid *H, const double *csr_val, int32_t samples)
{
  for (int32_t i = 0; i < samples; i += TC_HYBRID_FLOAT_EVERY) {
    const double value = csr_val[tc_hybrid_sampled(H->num_nonzeros, i)];

    if ((double)(float)value != value) return 0;
  }
  return 1;
}

static void make_dictionary(const tc_hybrid *H, const double *csr_val)
{
  const int32_t samples = H->num_nonzeros < TC_HYBRID_SAMPLE ? (int32_t)H->num_nonzeros : TC_HYBRID_SAMPLE;
  uint64_t      distinct[TC_HYBRID_DICTIONARY];
  int           num = 0;
  lookup        T;

  memset(T.place, -1, sizeof T.place);
  for (int32_t i = 0; i < samples; ++i) {
    const uint64_t bits = tc_bits_of(csr_val[tc_hybrid_sampled(H->num_nonzeros, i)]);
    const int      slot = find(&T, bits);

    if (T.place[slot] >= 0) continue;
    if (num == TC_HYBRID_DICTIONARY) {
      num = 0;
      break;
    }
    T.bits[slot]    = bits;
    T.place[slot]   = 0;
    distinct[num++] = bits;
  }
  qsort(distinct, (size_t)num, sizeof *distinct, tc_compare_bits);
  memset(H->dictionary, 0, TC_HYBRID_DICTIONARY * sizeof *H->dictionary);
  memcpy(H->dictionary, distinct, (size_t)num * sizeof *distinct);
  H->dictionary_size[0] = num;
  H->dictionary_size[1] = num > 0 ? TC_HYBRID_CODE_BYTES : sample_of_floats(H, csr_val, samples) ? 4 : 8;
  if (H->repeats == NULL) return;
  H->repeats->bytes    = H->dictionary_size[1];
  H->repeats->distinct = num;
}

static void look_up(const tc_hybrid *H, lookup *T)
{
  memset(T->place, -1, sizeof T->place);
  for (int i = 0; i < *H->dictionary_size; ++i) {
    const uint64_t bits = tc_bits_of(H->dictionary[i]);
    const int      slot = find(T, bits);

    T->bits[slot]  = bits;
    T->place[slot] = (int16_t)i;
  }
}

/* These return 0 when they meet a value that their kind cannot hold. A narrower kind's bytes are all overwritten by the next. */
TC_INLINE int put_d8(const tc_hybrid_lanes *L, int32_t stride, const lookup *T, const double *csr_val, uint8_t *to)
{
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const double *from  = csr_val + L->first[lane];
    uint8_t      *place = to + L->places * lane;

    for (int32_t k = 0; k < L->width; place += TC_HYBRID_SLICE_ROWS * L->places) {
      for (int32_t p = 0; p < L->places; ++p, ++k) {
        const int slot = k < L->count[lane] ? find(T, tc_bits_of(from[stride * k])) : -1;

        if (slot >= 0 && T->place[slot] < 0) return 0;
        place[p] = slot >= 0 ? (uint8_t)T->place[slot] : 0;
      }
    }
  }
  return 1;
}

/* Can the float stand for the value: exactly, or, if values may be rounded, as a normal number? Never for a NaN, whose bits processors convert differently. */
TC_INLINE int stands_for(float narrow, double value, int rounded)
{
  return (double)narrow == value || (rounded && fabsf(narrow) >= FLT_MIN && fabsf(narrow) <= FLT_MAX);
}

TC_INLINE int put_f32(const tc_hybrid_lanes *L, int32_t stride, int by_rows, int rounded, const double *csr_val, float *to)
{
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const double *from = csr_val + L->first[lane];

    for (int32_t k = 0; k < L->count[lane]; ++k) {
      const float value = (float)from[stride * k];

      if (!stands_for(value, from[stride * k], rounded)) return 0;
      to[tc_hybrid_slot(by_rows, L->width, lane, k)] = value;
    }
    for (int32_t k = L->count[lane]; k < L->width; ++k) to[tc_hybrid_slot(by_rows, L->width, lane, k)] = 0;
  }
  return 1;
}

TC_INLINE void put_f64(const tc_hybrid_lanes *L, int32_t stride, int by_rows, const double *csr_val, double *to)
{
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const double *from = csr_val + L->first[lane];

    for (int32_t k = 0; k < L->count[lane]; ++k) to[tc_hybrid_slot(by_rows, L->width, lane, k)] = from[stride * k];
    for (int32_t k = L->count[lane]; k < L->width; ++k) to[tc_hybrid_slot(by_rows, L->width, lane, k)] = 0;
  }
}

TC_INLINE int put_bf16(const tc_hybrid_lanes *L, int32_t stride, const double *csr_val, uint16_t *to)
{
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const double *from  = csr_val + L->first[lane];
    uint16_t     *place = to + L->places * lane;

    for (int32_t k = 0; k < L->width; place += TC_HYBRID_SLICE_ROWS * L->places) {
      for (int32_t p = 0; p < L->places; ++p, ++k) {
        if (k >= L->count[lane]) place[p] = 0;
        else if (!tc_to_bf16(from[stride * k], &place[p])) return 0;
      }
    }
  }
  return 1;
}

/* Sets the exponents, all 0 if one of them cannot be */
TC_INLINE int scale_f16(const tc_hybrid_lanes *L, int32_t stride, const double *csr_val)
{
  uint64_t largest[TC_HYBRID_SLICE_ROWS] = {0};
  int      fits                          = 1;

  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    uint64_t *of = &largest[lane < L->num_exponents ? lane : 0]; // a slice's missing lanes have no entries

    for (int32_t k = 0; k < L->count[lane]; ++k) {
      const uint64_t magnitude = tc_bits_of(fabs(csr_val[L->first[lane] + stride * k]));

      if (magnitude > *of) *of = magnitude;
    }
  }
  for (int32_t i = 0; i < L->num_exponents; ++i) {
    int exponent;

    fits           = tc_f16_scale(largest[i], &exponent) && fits;
    L->exponent[i] = (int16_t)exponent;
  }
  if (!fits) memset(L->exponent, 0, (size_t)L->num_exponents * sizeof *L->exponent);
  return fits;
}

TC_INLINE void put_f16(const tc_hybrid_lanes *L, int32_t stride, const double *csr_val, uint16_t *to)
{
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const double *from  = csr_val + L->first[lane];
    const double  scale = tc_power_of_two(-L->exponent[lane < L->num_exponents ? lane : 0]);
    uint16_t     *place = to + L->places * lane;

    for (int32_t k = 0; k < L->width; place += TC_HYBRID_SLICE_ROWS * L->places) {
      for (int32_t p = 0; p < L->places; ++p, ++k) place[p] = k < L->count[lane] ? tc_to_f16(from[stride * k] * scale) : 0;
    }
  }
}

/* The kinds of 16 bits; F64 if the values do not fit */
TC_INLINE tc_hybrid_value_kind put_16_bits(const tc_hybrid_lanes *L, int32_t stride, tc_precision precision, const double *csr_val, void *to)
{
  if (precision == TC_PRECISION_BF16 && put_bf16(L, stride, csr_val, to)) return TC_HYBRID_BF16;
  if (precision != TC_PRECISION_F16 || !scale_f16(L, stride, csr_val)) return TC_HYBRID_F64;
  put_f16(L, stride, csr_val, to);
  return TC_HYBRID_F16;
}

TC_INLINE tc_hybrid_value_kind put_values(const tc_hybrid_lanes *L, int32_t stride, int by_rows, tc_precision precision, int dictionary_size, const lookup *T, const double *csr_val, void *to)
{
  if (L->exponent) memset(L->exponent, 0, (size_t)L->num_exponents * sizeof *L->exponent);
  if (dictionary_size > 0 && put_d8(L, stride, T, csr_val, to)) return TC_HYBRID_D8;
  if (precision >= TC_PRECISION_BF16) {
    const tc_hybrid_value_kind kind = put_16_bits(L, stride, precision, csr_val, to);

    if (kind != TC_HYBRID_F64) return kind;
  }
  if (put_f32(L, stride, by_rows, precision != TC_PRECISION_F64, csr_val, to)) return TC_HYBRID_F32;
  put_f64(L, stride, by_rows, csr_val, to);
  return TC_HYBRID_F64;
}

tc_status tc_hybrid_refill_host(const void *view, const double *csr_val)
{
  const tc_hybrid *H = view;
  lookup           T;

  if (tc_hybrid_searches(H)) make_dictionary(H, csr_val);
  else H->repeats->bytes = H->dictionary_size[1]; // which a collection may have changed
  look_up(H, &T);
  for (int64_t piece = 0; piece < (int64_t)H->num_segments + H->num_slices; ++piece) {
    tc_hybrid_lanes L;
    void           *to;

    tc_hybrid_lanes_of(H, piece, &L);
    to = (double *)H->val + TC_HYBRID_SLICE_ROWS * (size_t)*L.val;
    if (L.by_rows) *L.value_kind = (uint8_t)put_values(&L, 1, 1, H->precision, *H->dictionary_size, &T, csr_val, to);
    else if (L.stride == 1) *L.value_kind = (uint8_t)put_values(&L, 1, 0, H->precision, *H->dictionary_size, &T, csr_val, to);
    else *L.value_kind = (uint8_t)put_values(&L, TC_HYBRID_SLICE_ROWS, 0, H->precision, *H->dictionary_size, &T, csr_val, to);
  }
  return TC_OK;
}
