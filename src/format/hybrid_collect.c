/*
  Codes of 16 bits on the host: kernels/tc_hybrid.h says which slices get them.
*/
#include "hybrid_values.h"
#include "../../kernels/tc_narrow.h"
#include "hybrid_lanes.h"
#include <stdlib.h>
#include <string.h>

enum { HASH_BITS = 13, HASH = 1 << HASH_BITS, MOST = TC_HYBRID_LARGE - 1 }; // values but +0.0
_Static_assert(HASH == 2 * TC_HYBRID_LARGE, "half of the table stays free");

/* All values but +0.0, whose bits mark what is free: a table with open addressing */
typedef struct {
  uint64_t bits[HASH];
  uint16_t code[HASH];
} collected;

/* The slot of these bits, or the free slot where they belong */
static int find(const collected *T, uint64_t bits)
{
  int slot = (int)(bits * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS));

  while (T->bits[slot] != 0 && T->bits[slot] != bits) slot = (slot + 1) % HASH;
  return slot;
}

static double *values_of(const tc_hybrid *H, const tc_hybrid_slice *S)
{
  return (double *)H->val + TC_HYBRID_SLICE_ROWS * (size_t)S->val;
}

/* The distinct values of slices of F64, room for MOST; 0 if they are more */
static int collect_values(const tc_hybrid *H, collected *T, uint64_t values[])
{
  int num = 0;

  for (int32_t s = 0; s < H->num_slices; ++s) {
    const tc_hybrid_slice *S   = &H->slice[s];
    const double          *val = values_of(H, S);

    for (int32_t i = 0; i < TC_HYBRID_SLICE_ROWS * S->width && S->value_kind == TC_HYBRID_F64; ++i) {
      const uint64_t value = tc_bits_of(val[i]);
      const int      slot  = find(T, value);

      if (value == 0 || T->bits[slot] == value) continue;
      if (num == MOST) return 0;
      values[num++] = T->bits[slot] = value;
    }
  }
  return num;
}

static void make_large(const tc_hybrid *H, collected *T, uint64_t values[], int num)
{
  qsort(values, (size_t)num, sizeof *values, tc_compare_bits);
  for (int i = 0; i < num; ++i) T->code[find(T, values[i])] = (uint16_t)(1 + i);
  memset(H->large, 0, TC_HYBRID_LARGE * sizeof *H->large);
  memcpy(H->large + 1, values, (size_t)num * sizeof *values);
  *H->large_size = num > 0 ? num + 1 : 0;
  if (H->repeats == NULL) return;
  if (num > 0 && H->dictionary_size[1] == sizeof(double)) H->repeats->bytes = TC_HYBRID_CODE_BYTES;
  H->repeats->large = *H->large_size;
}

/* Block after block: the codes of one lie where values of those before it were, or its own */
static void encode_slice(const tc_hybrid *H, const collected *T, int32_t s)
{
  tc_hybrid_slice *S       = &H->slice[s];
  const int        places  = tc_hybrid_places(S->width), by_rows = tc_hybrid_by_rows(H, s, S->width);
  const double    *from    = values_of(H, S);
  uint16_t        *to      = (uint16_t *)values_of(H, S);

  for (int32_t k = 0; k < S->width; k += places, to += TC_HYBRID_SLICE_ROWS * places) {
    uint16_t code[TC_HYBRID_BLOCK] = {0};

    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
      for (int p = 0; p < places && k + p < S->width; ++p) {
        const uint64_t value = tc_bits_of(from[tc_hybrid_slot(by_rows, S->width, lane, k + p)]);

        code[places * lane + p] = value == 0 ? 0 : T->code[find(T, value)];
      }
    }
    memcpy(to, code, (size_t)places * TC_HYBRID_SLICE_ROWS * sizeof *to);
  }
  S->value_kind = TC_HYBRID_D16;
}

tc_status tc_hybrid_collect_host(const void *view)
{
  const tc_hybrid *H = view;
  collected       *T;
  uint64_t        *values;
  int              num;

  if (H->num_slices == 0 || !tc_hybrid_collects(H)) return TC_OK;
  T      = calloc(1, sizeof *T);
  values = malloc(MOST * sizeof *values);
  if (T != NULL && values != NULL) {
    num = collect_values(H, T, values);
    make_large(H, T, values, num);
    for (int32_t s = 0; s < H->num_slices && num > 0; ++s) {
      if (H->slice[s].value_kind == TC_HYBRID_F64) encode_slice(H, T, s);
    }
  }
  free(values);
  free(T);
  TC_CHECK(T != NULL && values != NULL, TC_ERR_MEMORY, "no host memory to collect values");
  return TC_OK;
}
