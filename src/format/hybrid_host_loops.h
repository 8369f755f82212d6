/*
  The loops of the host product, compiled once for each instruction set: hybrid_host.c defines TARGET, NAME, EIGHT and its operations, and includes this file.
  The order of the additions is that of the device kernels: docs/formats.md, "The order of the additions".
*/

TARGET static void NAME(unpack_columns)(const int32_t *block, tc_hybrid_index_kind kind, int places, const int32_t *origin, int32_t col[TC_HYBRID_BLOCK])
{
  if (places == 4) tc_unpack_columns(block, kind, 4, origin, col);
  else if (places == 2) tc_unpack_columns(block, kind, 2, origin, col);
  else tc_unpack_columns(block, kind, 1, origin, col);
}

TARGET static void NAME(unpack_codes)(const uint8_t *block, int places, int32_t code[TC_HYBRID_BLOCK])
{
  if (places == 4) tc_unpack_codes(block, 4, code);
  else if (places == 2) tc_unpack_codes(block, 2, code);
  else tc_unpack_codes(block, 1, code);
}

TARGET static void NAME(unpack_large_codes)(const uint16_t *block, int places, int32_t code[TC_HYBRID_BLOCK])
{
  if (places == 4) tc_unpack_large_codes(block, 4, code);
  else tc_unpack_large_codes(block, places, code);
}

TARGET static void NAME(unpack_floats)(const uint16_t *block, tc_hybrid_value_kind kind, int places, float value[TC_HYBRID_BLOCK])
{
  if (kind == TC_HYBRID_BF16 && places == 4) tc_unpack_floats(block, TC_HYBRID_BF16, 4, value);
  else if (places == 4) tc_unpack_floats(block, TC_HYBRID_F16, 4, value);
  else tc_unpack_floats(block, kind, places, value);
}

/* The values of entries first .. first + num - 1 of a segment, where they are or unpacked into `room` */
TARGET TC_INLINE const double *NAME(segment_values)(const tc_hybrid *H, const tc_hybrid_segment *S, int32_t first, int32_t num, double room[TC_HYBRID_BLOCK])
{
  const double *slots = (const double *)H->val + TC_HYBRID_SLICE_ROWS * (size_t)S->val;
  int32_t       code[TC_HYBRID_BLOCK];
  float         value[TC_HYBRID_BLOCK];

  if (S->value_kind == TC_HYBRID_F64) return slots + first;
  if (S->value_kind == TC_HYBRID_F32) {
    for (int32_t e = 0; e < num; ++e) room[e] = ((const float *)slots)[first + e];
  } else if (S->value_kind != TC_HYBRID_D8) {
    NAME(unpack_floats)((const uint16_t *)slots + first, S->value_kind, 4, value);
    for (int32_t e = 0; e < num; ++e) room[e] = value[e];
  } else {
    NAME(unpack_codes)((const uint8_t *)slots + first, 4, code);
    for (int32_t e = 0; e < num; ++e) room[e] = H->dictionary[code[e]];
  }
  return room;
}

TARGET static double NAME(segment_sum)(const tc_hybrid *H, const tc_hybrid_segment *S, const double *x)
{
  enum { CHAINS = TC_HYBRID_BLOCK / 4 }; // a block holds four entries of each chain of one of four groups
  static const int32_t origin[TC_HYBRID_SLICE_ROWS];
  const int32_t       *block            = (const int32_t *)H->index + 4 * (size_t)S->index;
  double               chain[4][CHAINS] = {{0}};

  for (int32_t first = 0; first < S->entries; first += TC_HYBRID_BLOCK, block += 4 * tc_hybrid_block_units(S->index_kind, 4)) {
    const int32_t num = S->entries - first < TC_HYBRID_BLOCK ? S->entries - first : TC_HYBRID_BLOCK;
    double       *sum = chain[first / TC_HYBRID_BLOCK % 4], room[TC_HYBRID_BLOCK];
    const double *val = NAME(segment_values)(H, S, first, num, room);
    int32_t       col[TC_HYBRID_BLOCK], e = 0;

    NAME(unpack_columns)(block, S->index_kind, 4, origin, col);
    for (; e + 4 <= num; e += 4) {
      for (int i = 0; i < 4; ++i) sum[e / 4] = fma(val[e + i], x[col[e + i]], sum[e / 4]);
    }
    for (; e < num; ++e) sum[e / 4] = fma(val[e], x[col[e]], sum[e / 4]);
  }
  if (S->value_kind == TC_HYBRID_F16) {
    const double scale = tc_power_of_two(H->exponent[S - H->segment]);

    for (int i = 0; i < TC_HYBRID_BLOCK; ++i) chain[i / CHAINS][i % CHAINS] *= scale;
  }
  return (tc_add_lanes(chain[0]) + tc_add_lanes(chain[1])) + (tc_add_lanes(chain[2]) + tc_add_lanes(chain[3]));
}

TARGET static void NAME(long_rows)(const tc_hybrid *H, const double *x, const double *y, double *z, int sign)
{
  for (int32_t r = 0; r < H->num_long; ++r) {
    const int32_t first = H->long_first[r], end = H->long_first[r + 1];

    if (end - first == 1) tc_finish_row(NAME(segment_sum)(H, &H->segment[first], x), H->row_id[r], y, z, sign);
    else {
      double lane[32] = {0};

      for (int32_t s = first; s < end; ++s) lane[(s - first) % 32] += NAME(segment_sum)(H, &H->segment[s], x);
      tc_finish_row(tc_add_lanes(lane), H->row_id[r], y, z, sign);
    }
  }
}

/* Eight values from `slot` on; D8, D16: `code` says where in their dictionary; BF16, F16: they are in `wide` */
TARGET TC_INLINE EIGHT NAME(values)(const tc_hybrid *H, const slice *A, tc_hybrid_value_kind kind, int32_t slot, const int32_t *code, const float *wide)
{
  if (kind == TC_HYBRID_BF16 || kind == TC_HYBRID_F16) return WIDEN(wide);
  if (kind == TC_HYBRID_D16) return PICK(H->large, code);
  return kind == TC_HYBRID_F64 ? LOAD(A->slots + slot) : kind == TC_HYBRID_F32 ? WIDEN((const float *)A->slots + slot) : LOOK_UP(H->dictionary, *H->dictionary_size, code);
}

#define ADD_GROUP(q) \
  do { \
    if (k + p < A->whole[q]) \
      sum##q = FMA(NAME(values)(H, A, kind, slot + 8 * q, code + 8 * q, wide + 8 * q), !shift ? PICK(x, col + 8 * q) : near[q].fits ? READ_NEAR(from + A->origin[8 * q], near[q]) : PICK(from, A->origin + 8 * q), sum##q); \
  } while (0)

/* The entries that all rows of a group have */
TARGET TC_INLINE void NAME(whole_groups)(const tc_hybrid *H, const slice *A, int shift, tc_hybrid_value_kind kind, const double *x, double row_sum[TC_HYBRID_SLICE_ROWS])
{
  const int32_t *block = A->index;
  EIGHT          sum0 = ZERO(), sum1 = ZERO(), sum2 = ZERO(), sum3 = ZERO();
  int32_t        cols[TC_HYBRID_BLOCK], codes[TC_HYBRID_BLOCK], width = 0;
  float          floats[TC_HYBRID_BLOCK];
  NEAR           near[GROUPS];

  for (int q = 0; q < GROUPS; ++q) {
    if (A->whole[q] > width) width = A->whole[q];
    if (shift) near[q] = MAKE_NEAR(A->origin + 8 * q);
  }
  for (int32_t k = 0; k < width; k += A->places, block += A->block_ints) {
    if (kind != TC_HYBRID_F64) fetch_next(A, k);
    if (!shift) NAME(unpack_columns)(block, A->index_kind, A->places, A->origin, cols);
    if (kind == TC_HYBRID_D8) NAME(unpack_codes)((const uint8_t *)A->slots + TC_HYBRID_SLICE_ROWS * k, A->places, codes);
    if (kind == TC_HYBRID_D16) NAME(unpack_large_codes)((const uint16_t *)A->slots + TC_HYBRID_SLICE_ROWS * k, A->places, codes);
    if (kind == TC_HYBRID_BF16 || kind == TC_HYBRID_F16) NAME(unpack_floats)((const uint16_t *)A->slots + TC_HYBRID_SLICE_ROWS * k, kind, A->places, floats);
    for (int32_t p = 0; p < A->places && k + p < width; ++p) {
      const double  *from = shift ? x + (A->first + block[p]) : x; // lane 0's
      const float   *wide = floats + TC_HYBRID_SLICE_ROWS * p;
      const int32_t *col = cols + TC_HYBRID_SLICE_ROWS * p, *code = codes + TC_HYBRID_SLICE_ROWS * p, slot = TC_HYBRID_SLICE_ROWS * (k + p);

      ADD_GROUP(0);
      ADD_GROUP(1);
      ADD_GROUP(2);
      ADD_GROUP(3);
    }
  }
  STORE(row_sum, sum0);
  STORE(row_sum + 8, sum1);
  STORE(row_sum + 16, sum2);
  STORE(row_sum + 24, sum3);
}

/* The other entries of a group, one by one: few in most matrices, since the rows are sorted */
TARGET static void NAME(rest_of_group)(const tc_hybrid *H, const slice *A, int q, const double *x, double row_sum[TC_HYBRID_SLICE_ROWS])
{
  int32_t        k     = A->whole[q] / A->places * A->places;
  const int32_t *block = A->index + A->block_ints * (uint32_t)(k / A->places);

  for (; k < A->longest[q]; k += A->places, block += A->block_ints) {
    for (int lane = 8 * q; lane < 8 * q + 8; ++lane) {
      const int32_t end = A->length[lane] - k < A->places ? A->length[lane] - k : A->places;

      for (int32_t p = k < A->whole[q] ? A->whole[q] - k : 0; p < end; ++p) {
        const double val = tc_unpack_value(H, A->slots, A->value_kind, A->places, lane, k + p);

        row_sum[lane] = fma(val, x[tc_unpack_column(block, A->index_kind, A->origin[lane], p, A->places * lane + p)], row_sum[lane]);
      }
    }
  }
}

#define ADD_WHOLE_GROUPS(kind) \
  do { \
    if (A.index_kind == TC_HYBRID_SHIFT) NAME(whole_groups)(H, &A, 1, kind, x, row_sum); \
    else NAME(whole_groups)(H, &A, 0, kind, x, row_sum); \
  } while (0)

TARGET static void NAME(slices)(const tc_hybrid *H, const double *x, const double *y, double *z, int sign)
{
  for (int32_t s = 0; s < H->num_slices; ++s) {
    double row_sum[TC_HYBRID_SLICE_ROWS];
    slice  A;

    open_slice(H, s, &A);
    if (A.value_kind == TC_HYBRID_F64) ADD_WHOLE_GROUPS(TC_HYBRID_F64);
    else if (A.value_kind == TC_HYBRID_F32) ADD_WHOLE_GROUPS(TC_HYBRID_F32);
    else if (A.value_kind == TC_HYBRID_D8) ADD_WHOLE_GROUPS(TC_HYBRID_D8);
    else if (A.value_kind == TC_HYBRID_D16) ADD_WHOLE_GROUPS(TC_HYBRID_D16);
    else if (A.value_kind == TC_HYBRID_BF16) ADD_WHOLE_GROUPS(TC_HYBRID_BF16);
    else ADD_WHOLE_GROUPS(TC_HYBRID_F16);
    for (int q = 0; q < GROUPS; ++q) {
      if (A.whole[q] < A.longest[q]) NAME(rest_of_group)(H, &A, q, x, row_sum);
    }
    for (int lane = 0; lane < A.num_rows && A.value_kind == TC_HYBRID_F16; ++lane) row_sum[lane] *= tc_power_of_two(A.exponent[lane]);
    for (int lane = 0; lane < A.num_rows; ++lane) tc_finish_row(row_sum[lane], A.row[lane], y, z, sign);
  }
}

TARGET static void NAME(spmv)(const tc_hybrid *H, const double *x, const double *y, double *z, int sign)
{
  const int32_t *empty = H->row_id + H->num_long + H->num_sliced;

  NAME(long_rows)(H, x, y, z, sign);
  NAME(slices)(H, x, y, z, sign);
  for (int32_t i = 0; i < H->num_empty && y != z; ++i) z[empty[i]] = y ? y[empty[i]] : 0.0;
}

#undef TARGET
#undef NAME
#undef EIGHT
#undef ZERO
#undef LOAD
#undef WIDEN
#undef PICK
#undef LOOK_UP
#undef FMA
#undef STORE
#undef NEAR
#undef MAKE_NEAR
#undef READ_NEAR
#undef ADD_GROUP
#undef ADD_WHOLE_GROUPS
