/*
  Reading a tc_hybrid on the device: index blocks and values of every kind. tc_hybrid.h defines the bytes.
*/
#pragma once
#include "tc_hybrid.h"
#include "tc_mma.cuh"
#include "tc_narrow.h"
#include <cuda_fp16.h>
#include <type_traits>

/* Slices and segments are read in one piece */
template <typename T>
__device__ __forceinline__ T tc_load_descriptor(const T *p)
{
  static_assert(sizeof(T) == sizeof(int4), "a descriptor is 16 bytes");
  const int4 raw = __ldg(reinterpret_cast<const int4 *>(p));
  T          descriptor;

  memcpy(&descriptor, &raw, sizeof raw);
  return descriptor;
}

/* What is packed, read once by a product: past the caches, which are for x, or, where the whole matrix fits the L2 cache, for the next product to find there */
template <bool stays, typename T>
__device__ __forceinline__ T tc_load_packed(const T *p)
{
  return stays ? __ldg(p) : __ldcs(p);
}

__device__ __forceinline__ const char *tc_index_block(const tc_hybrid &H, uint32_t unit)
{
  return static_cast<const char *>(H.index) + 16 * (size_t)unit;
}

__device__ __forceinline__ const char *tc_value_base(const tc_hybrid &H, uint32_t unit)
{
  return static_cast<const char *>(H.val) + (size_t)(TC_HYBRID_SLICE_ROWS * sizeof(double)) * unit;
}

template <tc_hybrid_index_kind kind>
constexpr int tc_entry_bytes = kind == TC_HYBRID_SHIFT ? 0 : kind == TC_HYBRID_U8 ? 1 : kind == TC_HYBRID_U16 ? 2 : 4;

/* Bytes of the bases before the entries, and of a whole block of four places */
template <tc_hybrid_index_kind kind>
constexpr int tc_bases_bytes = kind == TC_HYBRID_I32 ? 0 : 16;
template <tc_hybrid_index_kind kind>
constexpr int tc_block_bytes = tc_bases_bytes<kind> + TC_HYBRID_BLOCK * tc_entry_bytes<kind>;

/* The column that an entry stands for. Padding is not recognised: readers keep to the lengths of rows. */
template <tc_hybrid_index_kind kind>
__device__ __forceinline__ int32_t tc_decode_column(uint32_t entry, int32_t base, int32_t origin)
{
  if constexpr (kind == TC_HYBRID_I32) return static_cast<int32_t>(entry);
  else return origin + base + static_cast<int32_t>(entry);
}

/* One column: place `place` of lane `lane` of a block with `places` places */
template <tc_hybrid_index_kind kind>
__device__ __forceinline__ int32_t tc_column(const char *block, int lane, int place, int places, int32_t origin)
{
  const char   *entry = block + tc_bases_bytes<kind> + (lane * places + place) * tc_entry_bytes<kind>;
  const int32_t base  = kind == TC_HYBRID_I32 ? 0 : __ldg(reinterpret_cast<const int32_t *>(block) + place);
  uint32_t      raw   = 0;

  if constexpr (kind == TC_HYBRID_U8) raw = __ldg(reinterpret_cast<const uint8_t *>(entry));
  else if constexpr (kind == TC_HYBRID_U16) raw = __ldg(reinterpret_cast<const uint16_t *>(entry));
  else if constexpr (kind == TC_HYBRID_I32) raw = __ldg(reinterpret_cast<const uint32_t *>(entry));
  return tc_decode_column<kind>(raw, base, origin);
}

/* One column of block after block of four places: that place of that lane */
template <tc_hybrid_index_kind kind>
struct tc_columns_of_place {
  using stored = std::conditional_t<kind == TC_HYBRID_U8, uint8_t, std::conditional_t<kind == TC_HYBRID_U16, uint16_t, int32_t>>;
  const char *entry, *base;

  __device__ __forceinline__ tc_columns_of_place(const char *block, int lane, int place) : entry(block + tc_bases_bytes<kind> + (4 * lane + place) * tc_entry_bytes<kind>), base(block + place * static_cast<int>(sizeof(int32_t)))
  {
    if (kind != TC_HYBRID_SHIFT) tc_keep(entry); // else both would be computed again from `block` at every step, in more registers
    if (kind != TC_HYBRID_I32) tc_keep(base);
  }

  __device__ __forceinline__ int32_t column(int block, int32_t origin) const
  {
    const int at = block * tc_block_bytes<kind>;

    return tc_decode_column<kind>(kind == TC_HYBRID_SHIFT ? 0 : __ldg(reinterpret_cast<const stored *>(entry + at)), kind == TC_HYBRID_I32 ? 0 : __ldg(reinterpret_cast<const int32_t *>(base + at)), origin);
  }

  __device__ __forceinline__ void advance(int blocks)
  {
    entry += blocks * tc_block_bytes<kind>;
    base += blocks * tc_block_bytes<kind>;
  }
};

/* The four columns of a lane */
template <tc_hybrid_index_kind kind>
struct tc_columns4 {
  uint32_t raw[kind == TC_HYBRID_I32 ? 4 : kind == TC_HYBRID_U16 ? 2 : 1];
  int4     base;

  template <bool stays = false>
  __device__ __forceinline__ void load(const char *block, int lane)
  {
    const char *entries = block + tc_bases_bytes<kind> + 4 * lane * tc_entry_bytes<kind>;

    if constexpr (kind != TC_HYBRID_I32) base = __ldg(reinterpret_cast<const int4 *>(block));
    if constexpr (kind == TC_HYBRID_U8) raw[0] = tc_load_packed<stays>(reinterpret_cast<const uint32_t *>(entries));
    else if constexpr (kind == TC_HYBRID_U16) {
      const uint2 two = tc_load_packed<stays>(reinterpret_cast<const uint2 *>(entries));

      raw[0] = two.x, raw[1] = two.y;
    } else if constexpr (kind == TC_HYBRID_I32) {
      const uint4 four = tc_load_packed<stays>(reinterpret_cast<const uint4 *>(entries));

      raw[0] = four.x, raw[1] = four.y, raw[2] = four.z, raw[3] = four.w;
    }
  }

  __device__ __forceinline__ int32_t column(int place, int32_t origin) const
  {
    const int32_t b = place == 0 ? base.x : place == 1 ? base.y : place == 2 ? base.z : base.w;

    if constexpr (kind == TC_HYBRID_U8) return tc_decode_column<kind>(raw[0] >> 8 * place & 0xffu, b, origin);
    else if constexpr (kind == TC_HYBRID_U16) return tc_decode_column<kind>(raw[place / 2] >> 16 * (place % 2) & 0xffffu, b, origin);
    else if constexpr (kind == TC_HYBRID_I32) return tc_decode_column<kind>(raw[place], 0, origin);
    else return tc_decode_column<kind>(0, b, origin);
  }
};

template <tc_hybrid_value_kind kind>
constexpr bool tc_is_16_bits = kind == TC_HYBRID_BF16 || kind == TC_HYBRID_F16;

/* Exactly, F16: as it is stored */
template <tc_hybrid_value_kind kind>
__device__ __forceinline__ float tc_widen16(uint32_t bits)
{
  if constexpr (kind == TC_HYBRID_BF16) return __uint_as_float(bits << 16);
  else return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

/* A sum of values of that kind without their scale; `i` is a segment, or num_segments + a sliced row */
template <tc_hybrid_value_kind kind>
__device__ __forceinline__ double tc_unscaled(const tc_hybrid &H, int32_t i, double sum)
{
  if constexpr (kind == TC_HYBRID_F16) return __dmul_rn(sum, tc_power_of_two(__ldg(H.exponent + i)));
  else return sum;
}

/* Codes, which stand for values of a dictionary, and what one is stored as */
template <tc_hybrid_value_kind kind>
constexpr bool tc_is_code = kind == TC_HYBRID_D8 || kind == TC_HYBRID_D16;
template <tc_hybrid_value_kind kind>
using tc_code = std::conditional_t<kind == TC_HYBRID_D8, uint8_t, uint16_t>;

template <tc_hybrid_value_kind kind>
__device__ __forceinline__ double tc_decode_value(const tc_hybrid &H, uint32_t code)
{
  return __ldg((kind == TC_HYBRID_D16 ? H.large : H.dictionary) + code);
}

/* What a value is stored as, a code: what it stands for; and the value, which loading does not wait for */
template <tc_hybrid_value_kind kind>
using tc_stored = std::conditional_t<kind == TC_HYBRID_F32, float, std::conditional_t<tc_is_16_bits<kind>, uint16_t, double>>;

template <tc_hybrid_value_kind kind>
__device__ __forceinline__ double tc_widened(tc_stored<kind> stored)
{
  if constexpr (tc_is_16_bits<kind>) return tc_widen16<kind>(stored);
  else return stored;
}

/* A value that is stored there, not as a code */
template <tc_hybrid_value_kind kind, bool stays>
__device__ __forceinline__ tc_stored<kind> tc_load_stored(const void *at)
{
  return tc_load_packed<stays>(static_cast<const tc_stored<kind> *>(at));
}

template <tc_hybrid_value_kind kind>
constexpr int tc_bytes_of_value = kind == TC_HYBRID_F64 ? 8 : kind == TC_HYBRID_F32 ? 4 : kind == TC_HYBRID_D8 ? 1 : 2;

/* One value as it is stored, not by rows: slot k + place of a lane; and widened */
template <tc_hybrid_value_kind kind, bool stays = false>
__device__ __forceinline__ tc_stored<kind> tc_load_value(const tc_hybrid &H, const char *val, int k, int place, int lane, int places)
{
  if constexpr (tc_is_code<kind>) return tc_decode_value<kind>(H, __ldg(reinterpret_cast<const tc_code<kind> *>(val) + TC_HYBRID_SLICE_ROWS * k + lane * places + place));
  else return tc_load_stored<kind, stays>(reinterpret_cast<const tc_stored<kind> *>(val) + (tc_is_16_bits<kind> ? TC_HYBRID_SLICE_ROWS * k + lane * places + place : TC_HYBRID_SLICE_ROWS * (k + place) + lane));
}

template <tc_hybrid_value_kind kind, bool stays = false>
__device__ __forceinline__ double tc_value(const tc_hybrid &H, const char *val, int k, int place, int lane, int places)
{
  return tc_widened<kind>(tc_load_value<kind, stays>(H, val, k, place, lane, places));
}

template <tc_hybrid_value_kind kind>
struct alignas(2 * sizeof(tc_stored<kind>)) tc_stored_pair {
  tc_stored<kind> first, second;
};

/* The values of that slot and of the next lane's, `lane` even, of a block of four places, as they are stored; padding is 0 */
template <tc_hybrid_value_kind kind, bool stays>
__device__ __forceinline__ tc_stored_pair<kind> tc_load_pair(const tc_hybrid &H, const char *val, int k, int place, int lane, bool used, bool both)
{
  const int slot = TC_HYBRID_SLICE_ROWS * (k + place) + lane;

  if constexpr (kind == TC_HYBRID_F64) {
    const double2 two = used ? tc_load_packed<stays>(reinterpret_cast<const double2 *>(reinterpret_cast<const double *>(val) + slot)) : double2{0.0, 0.0};

    return {two.x, two.y};
  } else if constexpr (kind == TC_HYBRID_F32) {
    const float2 two = used ? tc_load_packed<stays>(reinterpret_cast<const float2 *>(reinterpret_cast<const float *>(val) + slot)) : float2{0.0f, 0.0f};

    return {two.x, two.y};
  } else return {used ? tc_load_value<kind, stays>(H, val, k, place, lane, 4) : tc_stored<kind>(0), both ? tc_load_value<kind, stays>(H, val, k, place, lane + 1, 4) : tc_stored<kind>(0)};
}

/* The four values k .. k + 3 of a lane, as they are stored, not by rows; those from `length` on are 0 (one or two bytes: whatever) */
template <tc_hybrid_value_kind kind>
struct tc_values4 {
  using stored = std::conditional_t<kind == TC_HYBRID_F64, double, std::conditional_t<kind == TC_HYBRID_F32, float, uint32_t>>;
  stored raw[tc_bytes_of_value<kind> <= 2 ? tc_bytes_of_value<kind> : 4]; // D8: four codes in one word; 16 bits: two values or codes in each of two

  template <bool stays = false>
  __device__ __forceinline__ void load(const char *val, int k, int length, int lane)
  {
    if constexpr (kind == TC_HYBRID_D8) {
      raw[0] = tc_load_packed<stays>(reinterpret_cast<const uint32_t *>(val + TC_HYBRID_SLICE_ROWS * k) + lane);
    } else if constexpr (tc_bytes_of_value<kind> == 2) {
      const uint2 two = tc_load_packed<stays>(reinterpret_cast<const uint2 *>(val + 2 * TC_HYBRID_SLICE_ROWS * k) + lane);

      raw[0] = two.x, raw[1] = two.y;
    } else {
#pragma unroll
      for (int p = 0; p < 4; ++p) raw[p] = k + p < length ? tc_load_packed<stays>(reinterpret_cast<const stored *>(val) + TC_HYBRID_SLICE_ROWS * (k + p) + lane) : 0;
    }
  }

  /* The same where they are by rows, in a slice of that width, F64 and F32 only; all of a block whatever the row's length */
  __device__ __forceinline__ void load_by_rows(const char *val, int k, int width, int lane)
  {
    struct alignas(16) unit {
      stored of[16 / sizeof(stored)];
    };
    const stored *block = reinterpret_cast<const stored *>(val) + TC_HYBRID_SLICE_ROWS * k;
    const int     left  = width - k;

    if (left >= 4) {
      const unit *own = reinterpret_cast<const unit *>(block + 4 * lane);

#pragma unroll
      for (int p = 0; p < 4; ++p) raw[p] = own[p * sizeof(stored) / 16].of[p % (16 / sizeof(stored))];
    } else {
#pragma unroll
      for (int p = 0; p < 4; ++p) raw[p] = p < left ? block[left * lane + p] : 0;
    }
  }

  __device__ __forceinline__ double value(const tc_hybrid &H, int place) const
  {
    if constexpr (kind == TC_HYBRID_D8) return tc_decode_value<kind>(H, raw[0] >> 8 * place & 0xffu);
    else if constexpr (kind == TC_HYBRID_D16) return tc_decode_value<kind>(H, raw[place / 2] >> 16 * (place % 2) & 0xffffu);
    else if constexpr (tc_is_16_bits<kind>) return tc_widen16<kind>(raw[place / 2] >> 16 * (place % 2) & 0xffffu);
    else return raw[place];
  }
};

/* Kinds of values that there may be beside D8, F32 and F64: codes of 16 bits, which are made of slices in precision F64; values that are rounded to 16 bits */
enum class tc_more_kinds { NONE, CODES, ROUNDED };

/* Calls f(index kind, value kind), both as compile-time constants */
template <tc_more_kinds more, typename F>
__device__ __forceinline__ void tc_with_kinds(int index_kind, int value_kind, F f)
{
  auto with_index = [&](auto value) {
    switch (index_kind) {
    case TC_HYBRID_SHIFT: f(std::integral_constant<tc_hybrid_index_kind, TC_HYBRID_SHIFT>(), value); break;
    case TC_HYBRID_U8: f(std::integral_constant<tc_hybrid_index_kind, TC_HYBRID_U8>(), value); break;
    case TC_HYBRID_U16: f(std::integral_constant<tc_hybrid_index_kind, TC_HYBRID_U16>(), value); break;
    default: f(std::integral_constant<tc_hybrid_index_kind, TC_HYBRID_I32>(), value);
    }
  };

  if constexpr (more == tc_more_kinds::ROUNDED) {
    if (value_kind == TC_HYBRID_BF16) return with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_BF16>());
    if (value_kind == TC_HYBRID_F16) return with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_F16>());
  }
  if constexpr (more == tc_more_kinds::CODES) {
    if (value_kind == TC_HYBRID_D16) return with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_D16>());
  }
  switch (value_kind) {
  case TC_HYBRID_D8: with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_D8>()); break;
  case TC_HYBRID_F32: with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_F32>()); break;
  default: with_index(std::integral_constant<tc_hybrid_value_kind, TC_HYBRID_F64>());
  }
}
