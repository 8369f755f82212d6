/* Generators: 16 x 32 tiles at random places, dense ones and such with two entries in each four places of a row: XdYs, X% of all tiles are dense, Y% are 2:4, the rest empty */
#include "generator_kind.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 32, GROUP = 4 };

typedef struct {
  int dense, sparse; // percent
} tile_shares;

/* Dense tiles have three quarters of their entries */
static int32_t dense_part(uint64_t *state, int32_t first, int32_t num_cols, int32_t *col)
{
  int32_t num = 0;

  for (int32_t k = 0; k < TILE_COLUMNS; ++k) {
    if (tc_next_below(state, 4) > 0 && first + k < num_cols) col[num++] = first + k;
  }
  return num;
}

static int32_t sparse_part(uint64_t *state, int32_t first, int32_t num_cols, int32_t *col)
{
  static const int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  int32_t          num = 0;

  for (int32_t q = 0; q < TILE_COLUMNS / GROUP; ++q) {
    const int *pair = pairs[tc_next_below(state, 6)];

    for (int h = 0; h < 2; ++h) {
      if (first + GROUP * q + pair[h] < num_cols) col[num++] = first + GROUP * q + pair[h];
    }
  }
  return num;
}

static int32_t tiles_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const tile_shares *share = P->parameters;
  const int32_t      tiles = (int32_t)(((int64_t)P->num_cols + TILE_COLUMNS - 1) / TILE_COLUMNS);
  uint64_t           state = tc_row_state(P, i);
  int32_t            num   = 0;

  for (int32_t k = 0; k < tiles; ++k) {
    uint64_t  of_tile = tc_row_state(P, -1 - (k + (int64_t)tiles * (i / TILE_ROWS)));
    const int drawn   = tc_next_below(&of_tile, 100);

    if (drawn < share->dense) num += dense_part(&state, TILE_COLUMNS * k, P->num_cols, col + num);
    else if (drawn < share->dense + share->sparse) num += sparse_part(&state, TILE_COLUMNS * k, P->num_cols, col + num);
  }
  return num;
}

/* clang-format off */
const tc_kind tc_block_kinds[] = {
  {{"10d0s",  210, 1, 1, "size x size in 16 x 32 tiles, 10% of them dense"},              tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){10, 0}},
  {{"0d10s",  210, 1, 1, "size x size in 16 x 32 tiles, 10% of them 2:4"},                tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){0, 10}},
  {{"5d5s",   210, 1, 1, "size x size in 16 x 32 tiles, 5% of them dense, 5% 2:4"},       tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){5, 5}},
  {{"50d0s",  210, 1, 1, "size x size in 16 x 32 tiles, half of them dense"},             tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){50, 0}},
  {{"0d50s",  210, 1, 1, "size x size in 16 x 32 tiles, half of them 2:4"},               tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){0, 50}},
  {{"25d25s", 210, 1, 1, "size x size in 16 x 32 tiles, a quarter dense, a quarter 2:4"}, tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){25, 25}},
  {{"0d100s", 210, 1, 1, "size x size in 16 x 32 tiles, all of them 2:4"},                tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){0, 100}},
  {{"100d0s", 210, 1, 1, "size x size in 16 x 32 tiles, all of them dense"},              tiles_row, tc_size1, tc_size1, 0, &(const tile_shares){100, 0}},
  {{NULL}},
};
/* clang-format on */
