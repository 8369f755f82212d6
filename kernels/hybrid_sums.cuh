/*
  Sums of rows of a tc_hybrid times a vector, by a lane, by a warp with fragments, and by a warp of a segment's team, for tc_spmv_hybrid_kernel. Slices load their first
  columns, wait for the kernel before, and only then x. `early`: they let the next kernel begin at once when that has ended.
*/
#pragma once
#include "hybrid.cuh"
#include "long_rows.cuh"

/* The columns of a lane's row are relative to this */
__device__ __forceinline__ int32_t tc_origin(const tc_hybrid &H, int32_t row)
{
  return H.row_group > 1 ? row - row % H.row_group : row;
}

/* The sum of the row that this lane owns, places being 4 */
template <bool stays, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind, typename V>
__device__ __forceinline__ double tc_row_sum(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int32_t origin, int lane, bool early, const V *x)
{
  const char *block = tc_index_block(H, S.index);
  const char *val   = tc_value_base(H, S.val);
  double      sum   = 0.0;

  tc_columns4<index_kind> columns;
  tc_values4<value_kind>  values;

  auto load = [&](int k) {
    columns.template load<stays>(block, lane);
    values.template load<stays>(val, k, length, lane);
    block += tc_block_bytes<index_kind>;
  };
  auto add = [&](int k) {
    double gathered[4];

#pragma unroll
    for (int p = 0; p < 4; ++p) gathered[p] = k + p < length ? tc_load_vector(x + columns.column(p, origin)) : 0.0;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (k + p < length) sum = fma(values.value(H, p), gathered[p], sum);
    }
  };

  if constexpr (stays) {
    load(0);
    tc_between_kernels(early);
    add(0);
  } else tc_between_kernels(early); // which waits for loads as well: values from memory are better under way together with x
#pragma unroll 1
  for (int k = stays ? 4 : 0; k < length; k += 4) {
    load(k);
    add(k);
  }
  return sum;
}

/*
  The same for slices of codes whose columns are bases alone: 32 rows of one length, as constant coefficients on grids give them. The warp asks for all codes at once, a line for
  each lane, and for bases: codes are so short that a row's next four begin a line of their own, and each step would wait for memory with little else under way. A
  barrier of the warp keeps the loads of x together, which the compiler would mix with sums.
*/
template <bool stays, typename V>
__device__ __forceinline__ double tc_equal_row_sum(const tc_hybrid &H, const tc_hybrid_slice &S, int32_t origin, int lane, bool early, const V *x)
{
  constexpr int line  = 4 * TC_HYBRID_SLICE_ROWS; // codes of four places
  const int4   *block = reinterpret_cast<const int4 *>(tc_index_block(H, S.index));
  const char   *val   = tc_value_base(H, S.val);
  const char   *code  = val + 4 * lane;
  int           left  = S.width;
  double        sum   = 0.0;

  if (lane == tc_warp_size - 1) tc_prefetch_near(block);
  else if (line * lane < TC_HYBRID_SLICE_ROWS * left) tc_prefetch_near(val + line * lane);
  tc_between_kernels(early);
  auto add = [&](auto rest) {
    const int      entries = rest.value ? left : 4;
    const int4     base    = __ldg(block);
    const uint32_t four    = tc_load_packed<stays>(reinterpret_cast<const uint32_t *>(code));
    double         gathered[4];

#pragma unroll
    for (int p = 0; p < 4; ++p) gathered[p] = p < entries ? tc_load_vector(x + (origin + (p == 0 ? base.x : p == 1 ? base.y : p == 2 ? base.z : base.w))) : 0.0;
    __syncwarp();
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (p < entries) sum = fma(__ldg(H.dictionary + __byte_perm(four, 0, 0x4440 + p)), gathered[p], sum);
    }
  };
#pragma unroll 1
  for (; left >= 4; left -= 4, ++block, code += line) add(std::false_type());
  if (left > 0) add(std::true_type());
  return sum;
}

/* The same for slices of one or two entries */
template <bool stays, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind, typename V>
__device__ __forceinline__ double tc_short_row_sum(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int32_t origin, int lane, bool early, const V *x)
{
  const char *block = tc_index_block(H, S.index);
  const char *val   = tc_value_base(H, S.val);
  int32_t     column[2];
  double      value[2], gathered[2], sum = 0.0;

#pragma unroll
  for (int k = 0; k < 2; ++k) {
    column[k] = k < length ? tc_column<index_kind>(block, lane, k, S.width, origin) : 0;
    value[k]  = k < length ? tc_value<value_kind, stays>(H, val, 0, k, lane, S.width) : 0.0;
  }
  tc_between_kernels(early);
#pragma unroll
  for (int k = 0; k < 2; ++k) gathered[k] = k < length ? tc_load_vector(x + column[k]) : 0.0;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (k < length) sum = fma(value[k], gathered[k], sum);
  }
  return sum;
}

/*
  Rows 8 * quarter .. 8 * quarter + 7 of a wide slice, whose values are by rows, by one warp; the lane's row `row` of the slice has `length` entries, the longest of
  the eight `longest`. The next columns, and codes of values, travel together with the present values and their x: one latency for 4 * batch entries of a row instead of two.
*/
template <int most, bool stays, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind, typename V>
__device__ __forceinline__ void tc_quarter_sums(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int longest, int32_t origin, int row, int place, bool early, const V *x, tc_mma_accumulator &acc)
{
  constexpr bool fewer = tc_is_code<value_kind> || (value_kind != TC_HYBRID_F64 && index_kind == TC_HYBRID_I32);
  constexpr int  batch = most == 3 && value_kind == TC_HYBRID_F64 ? 2 : fewer && most > 4 ? 4 : most; // more lose there (docs/performance-spmv.md, steps 23 and 24)
  constexpr int  bytes = tc_bytes_of_value<value_kind>;
  const char    *own   = tc_value_base(H, S.val) + bytes * (4 * row + place); // this lane's value in the present block of four places
  int32_t        column[batch];
  uint32_t       code[batch];

  tc_columns_of_place<index_kind> columns(tc_index_block(H, S.index), row, place);

  auto load_columns = [&](int k) {
#pragma unroll
    for (int i = 0; i < batch; ++i) column[i] = k + 4 * i + place < length ? columns.column(i, origin) : TC_HYBRID_PAD;
    columns.advance(batch);
    if constexpr (tc_is_code<value_kind>) {
#pragma unroll
      for (int i = 0; i < batch; ++i) code[i] = k + 4 * i + place < length ? __ldg(reinterpret_cast<const tc_code<value_kind> *>(own) + TC_HYBRID_BLOCK * i) : 0;
      own += bytes * TC_HYBRID_BLOCK * batch;
    }
  };
  auto add = [&](int k, auto rest) {
    tc_stored<value_kind> value[batch]; // widened when the next columns are asked for
    double                gathered[batch];

#pragma unroll
    for (int i = 0; i < batch; ++i) gathered[i] = tc_gather(x, column[i]);
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int missing = rest.value && bytes > 2 ? max(4 - (S.width - k - 4 * i), 0) : 0; // places of a last block by rows

      if (k + 4 * i + place >= length) value[i] = 0;
      else if constexpr (tc_is_code<value_kind>) value[i] = tc_decode_value<value_kind>(H, code[i]);
      else value[i] = tc_load_stored<value_kind, stays>(own + bytes * (TC_HYBRID_BLOCK * i - missing * row));
    }
    if (!tc_is_code<value_kind>) own += bytes * TC_HYBRID_BLOCK * batch;
    if (!rest.value) load_columns(k + 4 * batch);
#pragma unroll
    for (int i = 0; i < batch; ++i) tc_mma_m8n8k4(acc, tc_widened<value_kind>(value[i]), gathered[i]);
  };
  const int end = min(longest, S.width / 4 * 4 - 4 * batch + 1);
  int       k   = 0;

  load_columns(0);
  tc_between_kernels(early);
#pragma unroll 1
  for (; k < end; k += 4 * batch) add(k, std::false_type());
  add(k, std::true_type()); // the last block may be narrower, which the loop is faster for not asking
}

/*
  A warp of a team adds up its 32 of the 128 chains of a segment: chain 32 * warp + lane in lane `lane`. Scalar in both kernels: with fragments, four accumulators and
  their registers made long rows slower (0.232 against 0.196 ms on 60000 rows of 1153, H200).
*/
template <bool stays, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind, typename V>
__device__ __forceinline__ double tc_segment_sum(const tc_hybrid &H, const tc_hybrid_segment &S, int warp, int lane, const V *x)
{
  const char *block = tc_index_block(H, S.index) + warp * tc_block_bytes<index_kind>;
  const char *val   = tc_value_base(H, S.val);
  const int   place = lane / 8, first = 4 * (lane % 8); // entries 4 * lane .. 4 * lane + 3 of a block are this place of lanes first .. first + 3
  double      chain = 0.0;

#pragma unroll 1
  for (int e = TC_HYBRID_BLOCK * warp; e < S.entries; e += TC_HYBRID_BLOCK * tc_team, block += tc_team * tc_block_bytes<index_kind>) {
#pragma unroll
    for (int q = 0; q < 4; q += 2) { // two at a time: 32 registers; their values in one piece: a lane's are neighbours
      const bool used  = e + 4 * lane + q < S.entries, both = e + 4 * lane + q + 1 < S.entries;
      const auto value = tc_load_pair<value_kind, stays>(H, val, e / tc_warp_size, place, first + q, used, both); // widened when x is asked for
      double     gathered[2];

      gathered[0] = used ? tc_load_vector(x + tc_column<index_kind>(block, first + q, place, 4, 0)) : 0.0;
      gathered[1] = both ? tc_load_vector(x + tc_column<index_kind>(block, first + q + 1, place, 4, 0)) : 0.0;
      chain       = fma(tc_widened<value_kind>(value.second), gathered[1], fma(tc_widened<value_kind>(value.first), gathered[0], chain));
    }
  }
  return chain;
}
