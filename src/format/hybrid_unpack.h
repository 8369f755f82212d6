/*
  Reading the packed columns and values of the hybrid format on the host: whole blocks in the order of slots, and single entries. Plain C that compilers make vectors
  of, for the instruction set of the function that it is inlined into.
*/
#pragma once
#include "hybrid_lanes.h"
#include <string.h>

/* By how much to shift four things of `bits` bits, read as one word, to have thing p lowest */
TC_INLINE int tc_shift_of(int p, int bits)
{
  const uint16_t one = 1;
  uint8_t        first;

  memcpy(&first, &one, sizeof first);
  return bits * (first ? p : 3 - p);
}

/*
  These set to[32 p + lane] = origin[lane] + base[p] + entry[places * lane + p], unsigned since padding may give anything. Four places of a lane are read as one word.
*/
TC_INLINE void tc_unpack8(const uint8_t *restrict entry, int places, const int32_t *restrict base, const int32_t *restrict origin, int32_t *restrict to)
{
  for (int p = 0; p < places; ++p) {
    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
      uint32_t word = entry[places * lane + p];

      if (places == 4) {
        memcpy(&word, entry + 4 * lane, sizeof word);
        word = word >> tc_shift_of(p, 8) & 0xff;
      }
      to[TC_HYBRID_SLICE_ROWS * p + lane] = (int32_t)((uint32_t)origin[lane] + (uint32_t)base[p] + word);
    }
  }
}

TC_INLINE void tc_unpack16(const uint16_t *restrict entry, int places, const int32_t *restrict base, const int32_t *restrict origin, int32_t *restrict to)
{
  for (int p = 0; p < places; ++p) {
    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
      uint64_t word = entry[places * lane + p];

      if (places == 4) {
        memcpy(&word, entry + 4 * lane, sizeof word);
        word = word >> tc_shift_of(p, 16) & 0xffff;
      }
      to[TC_HYBRID_SLICE_ROWS * p + lane] = (int32_t)((uint32_t)origin[lane] + (uint32_t)base[p] + (uint32_t)word);
    }
  }
}

TC_INLINE void tc_unpack32(const int32_t *restrict entry, int places, int32_t *restrict to)
{
  for (int p = 0; p < places; ++p) {
    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) to[TC_HYBRID_SLICE_ROWS * p + lane] = entry[places * lane + p];
  }
}

/* All columns of an index block, not of SHIFT */
TC_INLINE void tc_unpack_columns(const int32_t *block, tc_hybrid_index_kind kind, int places, const int32_t *origin, int32_t col[TC_HYBRID_BLOCK])
{
  if (kind == TC_HYBRID_U8) tc_unpack8((const uint8_t *)(block + 4), places, block, origin, col);
  else if (kind == TC_HYBRID_U16) tc_unpack16((const uint16_t *)(block + 4), places, block, origin, col);
  else tc_unpack32(block, places, col);
}

/* The column of place p in a lane of an index block, not of SHIFT; `entry` is places * lane + p */
TC_INLINE int32_t tc_unpack_column(const int32_t *block, tc_hybrid_index_kind kind, int32_t origin, int p, int entry)
{
  if (kind == TC_HYBRID_I32) return block[entry];
  return origin + block[p] + (kind == TC_HYBRID_U8 ? ((const uint8_t *)(block + 4))[entry] : ((const uint16_t *)(block + 4))[entry]);
}

/* Where in the dictionary all values of a block of D8 are */
TC_INLINE void tc_unpack_codes(const uint8_t *block, int places, int32_t code[TC_HYBRID_BLOCK])
{
  static const int32_t zero[TC_HYBRID_SLICE_ROWS];

  tc_unpack8(block, places, zero, zero, code);
}

/* The same of D16, in the large one */
TC_INLINE void tc_unpack_large_codes(const uint16_t *block, int places, int32_t code[TC_HYBRID_BLOCK])
{
  static const int32_t zero[TC_HYBRID_SLICE_ROWS];

  tc_unpack16(block, places, zero, zero, code);
}

/* BF16 or F16, exactly: no step has subnormal floats, which a program may have switched off */
TC_INLINE float tc_widen16(uint32_t bits, tc_hybrid_value_kind kind)
{
  const uint32_t magnitude = bits & 0x7fff, normal = (magnitude << 13) + ((127 - 15) << 23), is_normal = -(uint32_t)(magnitude >= 0x400);
  const float    subnormal = (float)(int32_t)magnitude * 0x1p-24f;
  uint32_t       word;
  float          value;

  memcpy(&word, &subnormal, sizeof word);
  word = kind == TC_HYBRID_BF16 ? bits << 16 : (normal & is_normal) | (word & ~is_normal) | (bits & 0x8000) << 16; // masks: compilers make branches of a choice
  memcpy(&value, &word, sizeof value);
  return value;
}

/* All values of a block of BF16 or F16 */
TC_INLINE void tc_unpack_floats(const uint16_t *block, tc_hybrid_value_kind kind, int places, float value[TC_HYBRID_BLOCK])
{
  static const int32_t zero[TC_HYBRID_SLICE_ROWS];
  int32_t              bits[TC_HYBRID_BLOCK];

  tc_unpack16(block, places, zero, zero, bits);
  for (int i = 0; i < places * TC_HYBRID_SLICE_ROWS; ++i) value[i] = tc_widen16((uint32_t)bits[i], kind);
}

/* Entry k of a lane, F16: as it is stored */
TC_INLINE double tc_unpack_value(const tc_hybrid *H, const void *slots, tc_hybrid_value_kind kind, int places, int lane, int32_t k)
{
  const int32_t in_blocks = TC_HYBRID_SLICE_ROWS * (k / places * places) + places * lane + k % places;

  if (kind == TC_HYBRID_D8) return H->dictionary[((const uint8_t *)slots)[in_blocks]];
  if (kind == TC_HYBRID_D16) return H->large[((const uint16_t *)slots)[in_blocks]];
  if (kind == TC_HYBRID_BF16 || kind == TC_HYBRID_F16) return tc_widen16(((const uint16_t *)slots)[in_blocks], kind);
  return kind == TC_HYBRID_F64 ? ((const double *)slots)[TC_HYBRID_SLICE_ROWS * k + lane] : ((const float *)slots)[TC_HYBRID_SLICE_ROWS * k + lane];
}
