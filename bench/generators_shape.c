/* Generators: shapes for tests - empty, ragged, dense, rectangular, and the lengths at which a row changes its class */
#include "generator_kind.h"

static int32_t ragged_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return tc_stratified(tc_next_below(&state, 301), P->num_cols, &state, col);
}

static int32_t short_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return tc_stratified(tc_next_below(&state, 6), P->num_cols, &state, col);
}

static int32_t mixed_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return tc_stratified(tc_next_below(&state, 61), P->num_cols, &state, col);
}

static int32_t skewed_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return tc_stratified(i % 97 == 5 ? tc_next_below(&state, P->num_cols + 1) : tc_next_below(&state, 4), P->num_cols, &state, col);
}

static int32_t dense_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  if (i == P->num_rows / 3) return tc_stratified(P->num_cols, P->num_cols, &state, col);
  col[0] = i;
  return 1;
}

static int32_t full_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return tc_stratified(P->num_cols, P->num_cols, &state, col);
}

static int32_t empty_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  (void)P;
  (void)i;
  (void)col;
  return 0;
}

static int32_t island_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = tc_row_state(P, i);

  return i / (P->num_rows / 16 + 1) / 2 == 4 ? tc_stratified(P->num_cols / 2, P->num_cols, &state, col) : 0;
}

/* Rows as long as their neighbours, short ones and long ones, half of 800 columns that move along with them */
static int32_t wave_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t      state  = tc_row_state(P, i);
  const int32_t length = tc_stratified(130 + 4 * (i % 200 < 100 ? i % 200 : 200 - i % 200), 800, &state, col);

  for (int32_t k = 0; k < length; ++k) col[k] += i;
  return length;
}

/* 3 unknowns of a site of a periodic lattice, and those of its 8 neighbours */
static int32_t lattice_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t side[4] = {8, 6, 3, P->size};
  int32_t       node[9] = {i / 3}, rest = i / 3, stride = 1;

  for (int d = 0; d < 4; ++d) {
    const int32_t x = rest % side[d];

    node[2 * d + 1] = i / 3 + ((x + 1) % side[d] - x) * stride;
    node[2 * d + 2] = i / 3 + ((x + side[d] - 1) % side[d] - x) * stride;
    rest /= side[d];
    stride *= side[d];
  }
  return tc_blocks(3, tc_sort_unique(9, node), node, col);
}

/* The kind's parameter: how many columns further the third entry is */
static int32_t lines_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  col[0] = i;
  col[1] = i + 32;
  col[2] = i + *(const int32_t *)P->parameters;
  return 3;
}

/* Every length at which a row changes its class, its tiles, its segments or the lanes that add them up, and the neighbours of these */
static int32_t limit_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  static const int32_t length[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16385, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1025, 2047, 2048, 2049, 4097, 65537, 67585, 6, 12, 1023};
  uint64_t             state    = tc_row_state(P, i);

  return tc_stratified(length[i % (int32_t)(sizeof length / sizeof length[0])], P->num_cols, &state, col);
}

/* clang-format off */
static int64_t one(int64_t n) { (void)n; return 1; }
static int64_t none(int64_t n) { (void)n; return 0; }
static int64_t triple(int64_t n) { return 3 * n + 7; }
static int64_t apart_cols(int64_t n) { return 16 * n; }
static int64_t island_cols(int64_t n) { (void)n; return 120; }
static int64_t ragged_cols(int64_t n) { return n + 217; }
static int64_t limit_cols(int64_t n) { return n + 68000; }
static int64_t wave_cols(int64_t n) { return n + 800; }
static int64_t lattice_rows(int64_t n) { return 3 * 8 * 6 * 3 * n; }
static int64_t lines_rows(int64_t n) { return 32 * n; }
static int64_t lines_cols(int64_t n) { return 32 * n + 4001; }

const tc_kind tc_shape_kinds[] = {
  {{"ragged",     331,  1, 1, "size rows of 0 to 300 entries"},                            ragged_row, tc_size1, ragged_cols, 0},
  {{"mixed",      2011, 1, 1, "size rows of 0 to 60 entries"},                             mixed_row,  tc_size1, tc_size1,    0},
  {{"short",      2003, 1, 1, "size rows of 0 to 5 entries"},                              short_row,  tc_size1, tc_size1,    0},
  {{"skewed",     503,  1, 1, "size rows of 0 to 3 entries, every 97th any length"},       skewed_row, tc_size1, triple,      0},
  {{"limits",     65,   1, 1, "size rows of the lengths where classes change"},            limit_row,  tc_size1, limit_cols,  0},
  {{"island",     2011, 1, 1, "size rows, all but an eighth of them empty, these of half of 120 columns"}, island_row, tc_size1, island_cols, 0},
  {{"wave",       400,  1, 1, "size rows of 130 to 530 entries, as many as their neighbours have, in a band"}, wave_row, tc_size1, wave_cols, 0},
  {{"dense_row",  301,  1, 1, "diagonal of size, one full row"},                           dense_row,  tc_size1, tc_size1,    0},
  {{"wide",       97,   1, 1, "size rows, 3 size + 7 columns, 0 to 5 entries per row"},    short_row,  tc_size1, triple,      0},
  {{"apart",      97,   1, 1, "size rows, 16 size columns, 0 to 5 entries per row"},       short_row,  tc_size1, apart_cols,  0},
  {{"tall",       97,   1, 1, "3 size + 7 rows, size columns, 0 to 5 entries per row"},    short_row,  triple,   tc_size1,    0},
  {{"one_row",    1031, 1, 1, "one full row of size"},                                     full_row,   one,      tc_size1,    0},
  {{"one_column", 67,   1, 1, "one full column of size"},                                  full_row,   tc_size1, one,         0},
  {{"one_entry",  1,    1, 1, "1 x 1"},                                                    full_row,   one,      one,         0},
  {{"all_empty",  37,   1, 1, "size x size without entries"},                              empty_row,  tc_size1, tc_size1,    0},
  {{"no_rows",    5,    1, 1, "0 x size"},                                                 empty_row,  none,     tc_size1,    0},
  {{"no_columns", 5,    1, 1, "size x 0"},                                                 empty_row,  tc_size1, none,        0},
  {{"nothing",    0,    1, 1, "0 x 0"},                                                    empty_row,  none,     none,        0},
  {{"lattice",    5,    1, 3, "periodic lattice of 8 x 6 x 3 x size, 3 unknowns per site, 9 sites per row"}, lattice_row, lattice_rows, lattice_rows, 27},
  {{"lines",      40,   1, 1, "size lines of 32 rows: an entry, one a line further and one 4001 columns further"}, lines_row, lines_rows, lines_cols, 3, .parameters = &(const int32_t){4001}},
  {{"ladder",     40,   1, 1, "size lines of 32 rows: an entry, one a line further and one two lines further"}, lines_row, lines_rows, lines_cols, 3, .parameters = &(const int32_t){64}},
  {{NULL}},
};
/* clang-format on */
