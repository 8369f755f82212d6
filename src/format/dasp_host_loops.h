/*
  The loops of the host product, compiled once for each instruction set: dasp_host.c defines TARGET, NAME, SUMS and its operations, and includes this file.
  The order of the additions is that of the device kernels (kernels/spmv_dasp.cu): docs/formats.md, "The order of the additions".
*/

TARGET static inline void NAME(finish_rows)(SUMS sum, const int32_t *row, int32_t num, const double *y, double *z, int sign)
{
  double row_sum[TC_DASP_TILE_ROWS];

  STORE(row_sum, sum);
  if (num == TC_DASP_TILE_ROWS) {
    for (int g = 0; g < TC_DASP_TILE_ROWS; ++g) tc_finish_row(row_sum[g], row[g], y, z, sign);
  } else {
    for (int g = 0; g < num; ++g) tc_finish_row(row_sum[g], row[g], y, z, sign);
  }
}

/* Eight slots one beneath the other, any of which may be padding */
TARGET static inline SUMS NAME(eight)(SUMS sum, const double *val, const int32_t *col, const double *x, int near)
{
  const int padding = near ? PADDING(col) : 1;

  return padding == 0 ? FULL(sum, val, col) : padding == 0xff ? sum : STEP(sum, val, col);
}

/* A tile of long or medium rows: where one has padding, its fourth entry is padding */
TARGET static inline SUMS NAME(tile)(SUMS sum, const double *val, const int32_t *col, const double *x, int near)
{
  if (near && PADDING(col + TC_DASP_TILE_ROWS * 3) == 0) {
    for (int k = 0; k < 4; ++k) sum = FULL(sum, val + TC_DASP_TILE_ROWS * k, col + TC_DASP_TILE_ROWS * k);
  } else {
    for (int k = 0; k < 4; ++k) sum = NAME(eight)(sum, val + TC_DASP_TILE_ROWS * k, col + TC_DASP_TILE_ROWS * k, x, near);
  }
  return sum;
}

TARGET static double NAME(segment)(const tc_dasp *D, int32_t segment, const double *x, int near)
{
  enum { TILES = TC_DASP_CHAINS / TC_DASP_TILE_ROWS };
  double chain[TC_DASP_CHAINS];
  SUMS   sum[TILES];

  for (int j = 0; j < TILES; ++j) sum[j] = ZERO();
  for (int64_t s = D->segment_ptr[segment]; s < D->segment_ptr[segment + 1]; s += TILES * TC_DASP_TILE_SLOTS) {
    for (int j = 0; j < TILES && s + TC_DASP_TILE_SLOTS * j < D->segment_ptr[segment + 1]; ++j) sum[j] = NAME(tile)(sum[j], D->val + s + TC_DASP_TILE_SLOTS * j, D->col + s + TC_DASP_TILE_SLOTS * j, x, near);
  }
  for (int j = 0; j < TILES; ++j) STORE(chain + TC_DASP_TILE_ROWS * j, sum[j]);
  return (tc_add_lanes(chain) + tc_add_lanes(chain + 32)) + (tc_add_lanes(chain + 64) + tc_add_lanes(chain + 96));
}

TARGET static void NAME(long_rows)(const tc_dasp *D, const double *x, const double *y, double *z, int sign, int near)
{
  for (int32_t r = 0; r < D->num_long; ++r) {
    const int32_t first = D->long_ptr[r], end = D->long_ptr[r + 1];

    if (end - first == 1) tc_finish_row(NAME(segment)(D, first, x, near), D->row_id[r], y, z, sign);
    else {
      double lane[32] = {0};

      for (int32_t s = first; s < end; ++s) lane[(s - first) % 32] += NAME(segment)(D, s, x, near);
      tc_finish_row(tc_add_lanes(lane), D->row_id[r], y, z, sign);
    }
  }
}

/* Adds the tails of a medium block. Its rows are sorted by length, so that most tails are alike; then they have one entry each or two, since more make a tile. */
TARGET static inline SUMS NAME(tails)(const tc_dasp *D, int32_t block, int32_t rows, const double *x, SUMS sum)
{
  const uint16_t *end = D->tail_end + TC_DASP_TILE_ROWS * (size_t)block;
  const double   *val = D->val + D->tail_ptr[block];
  const int32_t  *col = D->col + D->tail_ptr[block];
  double          row_sum[TC_DASP_TILE_ROWS];
  int             alike = 1;

  for (int g = 1; g < TC_DASP_TILE_ROWS; ++g) alike &= end[g] == (g + 1) * end[0];
  if (alike && end[0] == 1) return FULL(sum, val, col);
  STORE(row_sum, sum);
  if (alike && end[0] == 2) {
    for (int g = 0; g < TC_DASP_TILE_ROWS; ++g) row_sum[g] = fma(val[2 * g + 1], x[col[2 * g + 1]], fma(val[2 * g], x[col[2 * g]], row_sum[g]));
  } else {
    for (int32_t g = 0, t = 0; g < rows; ++g) {
      for (; t < end[g]; ++t) row_sum[g] = fma(val[t], x[col[t]], row_sum[g]);
    }
  }
  return LOAD(row_sum);
}

/* `far`: the matrix does not stay in the caches, and what comes AHEAD slots later is fetched; a processor that fetches by itself begins anew with every page */
TARGET TC_INLINE void NAME(medium_rows)(const tc_dasp *D, const double *x, const double *y, double *z, int sign, int near, int far)
{
  for (int32_t b = 0; b < D->num_blocks; ++b) {
    const int32_t slot = TC_DASP_TILE_ROWS * b, rows = D->num_medium - slot < TC_DASP_TILE_ROWS ? D->num_medium - slot : TC_DASP_TILE_ROWS;
    SUMS          sum = ZERO();

    for (int64_t s = D->block_ptr[b]; s < D->block_ptr[b + 1]; s += TC_DASP_TILE_SLOTS) {
      for (int i = 0; far && i < TC_DASP_TILE_SLOTS; i += 8) TC_FETCH(D->val + s + AHEAD + i);
      for (int i = 0; far && i < TC_DASP_TILE_SLOTS; i += 16) TC_FETCH(D->col + s + AHEAD + i);
      sum = NAME(tile)(sum, D->val + s, D->col + s, x, near);
    }
    if (D->tail_end[slot + TC_DASP_TILE_ROWS - 1] > 0) sum = NAME(tails)(D, b, rows, x, sum);
    NAME(finish_rows)(sum, D->row_id + D->row_medium + slot, rows, y, z, sign);
  }
}

/* Short rows: the first `split` entries of a tile row belong to matrix row row_id[row + i], the others to row_id[row + num + i] */
TARGET static inline void NAME(short_rows)(const tc_dasp *D, tc_dasp_section section, int split, const double *x, const double *y, double *z, int sign, int near)
{
  const int32_t num = section.num, *first = D->row_id + section.row, *second = first + num;

  for (int32_t slot = 0; slot < num; slot += TC_DASP_TILE_ROWS) {
    const int32_t rows = num - slot < TC_DASP_TILE_ROWS ? num - slot : TC_DASP_TILE_ROWS;
    const int64_t tile = section.slot + slot / TC_DASP_TILE_ROWS * (int64_t)TC_DASP_TILE_SLOTS;
    SUMS          sum  = ZERO();

    for (int k = 0; k < 4; ++k) {
      if (k == split) {
        NAME(finish_rows)(sum, first + slot, rows, y, z, sign);
        sum = ZERO();
      }
      sum = NAME(eight)(sum, D->val + tile + TC_DASP_TILE_ROWS * k, D->col + tile + TC_DASP_TILE_ROWS * k, x, near);
    }
    NAME(finish_rows)(sum, (split == 4 ? first : second) + slot, rows, y, z, sign);
  }
}

TARGET static void NAME(spmv)(const tc_dasp *D, const double *x, const double *y, double *z, int sign)
{
  const int32_t *id   = D->row_id;
  const int      near = x_is_near(D);

  NAME(long_rows)(D, x, y, z, sign, near);
  if (D->num_slots >= FAR) NAME(medium_rows)(D, x, y, z, sign, near, 1);
  else NAME(medium_rows)(D, x, y, z, sign, near, 0);
  NAME(short_rows)(D, (tc_dasp_section){D->slot_pair13, D->num_pair13, D->row_pair13}, 1, x, y, z, sign, near);
  NAME(short_rows)(D, (tc_dasp_section){D->slot_four, D->num_four, D->row_four}, 4, x, y, z, sign, near);
  NAME(short_rows)(D, (tc_dasp_section){D->slot_pair22, D->num_pair22, D->row_pair22}, 2, x, y, z, sign, near);
  for (int32_t i = 0; i < D->num_one; ++i) tc_finish_row(D->val[D->slot_one + i] * x[D->col[D->slot_one + i]], id[D->row_one + i], y, z, sign);
  if (y != z) {
    for (int32_t i = 0; i < D->num_empty; ++i) z[id[D->row_empty + i]] = y ? y[id[D->row_empty + i]] : 0.0;
  }
}

#undef TARGET
#undef NAME
#undef SUMS
#undef ZERO
#undef STEP
#undef PADDING
#undef FULL
#undef LOAD
#undef STORE
