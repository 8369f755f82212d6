/*
  Building the BCSR format on the host: kernels/tc_bcsr.h defines every byte of the arrays, docs/formats.md shows them.
*/
#include "bcsr.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
  Columns of a window in groups of four: each goes to the first open group that it fits into, that is, where no row gets a third entry. A group is open as long as it
  has room, and as OPEN newer ones are.
*/
enum { OPEN = 64 };

/* Pieces are not made shorter than that, nor more than about as many of them than that for the sake of parallel work */
enum { SHORT_PIECE = 16, FEW_PIECES = 2048 };

/* Bytes of a tile, in units of 64: values, columns, choice */
enum { COST_DENSE = 8 + 1, COST_SPARSE = 8 + 2 + 1 };

enum { MAX_ROWS = INT32_MAX - TC_BCSR_ROWS };

typedef struct {
  uint16_t once, twice; // rows with an entry, with two
  int32_t  num;
  int32_t  member[TC_BCSR_GROUP]; // columns of the window, ascending
} group;

typedef struct {
  int32_t   num_columns, num_groups;
  int32_t   num_sparse, num_dense; // tiles
  int32_t   in_sparse;             // groups in 2:4 tiles: the first ones in order
  int32_t  *column;                // distinct, ascending
  uint16_t *rows;                  // which rows of the window have an entry
  int32_t  *first;                 // its first entry in `entry`, which has them by row
  int32_t  *entry;                 // in CSR
  group    *groups;
  int32_t  *order;                 // groups, those of most columns first
  uint8_t  *is_dense;              // columns not in a 2:4 tile
  void     *memory;
} window;

static tc_status new_array(void *array, int64_t count, size_t item_size)
{
  void *pointer = malloc(count > 0 ? (size_t)count * item_size : 1);

  TC_CHECK(pointer != NULL && !tc_fault(TC_FAULT_ALLOC), (free(pointer), TC_ERR_MEMORY), "no host memory for %lld entries of a BCSR array", (long long)count);
  memcpy(array, &pointer, sizeof pointer);
  return TC_OK;
}

static int32_t window_end(const tc_csr *A, int32_t w)
{
  return A->num_rows - w * TC_BCSR_ROWS < TC_BCSR_ROWS ? A->num_rows : (w + 1) * TC_BCSR_ROWS;
}

/* Room for the window with the most entries */
static tc_status new_window(const tc_csr *A, int32_t num_windows, window *W)
{
  int64_t most = 0;
  char   *at;

  for (int32_t w = 0; w < num_windows; ++w) {
    const int64_t entries = A->row_ptr[window_end(A, w)] - A->row_ptr[w * TC_BCSR_ROWS];

    if (entries > most) most = entries;
  }
  TC_CALL(new_array(&W->memory, most + 1, sizeof *W->groups + 4 * sizeof *W->column + sizeof *W->rows + sizeof *W->is_dense));
  at          = W->memory;
  W->groups   = (group *)at;
  W->column   = (int32_t *)(W->groups + most + 1);
  W->first    = W->column + most + 1;
  W->entry    = W->first + most + 1;
  W->order    = W->entry + most + 1;
  W->rows     = (uint16_t *)(W->order + most + 1);
  W->is_dense = (uint8_t *)(W->rows + most + 1);
  return TC_OK;
}

/* --- columns, groups, tiles */

static void list_columns(const tc_csr *A, int32_t w, window *W)
{
  const int32_t row0 = w * TC_BCSR_ROWS, num = window_end(A, w) - row0;
  int64_t       next[TC_BCSR_ROWS];
  int32_t       entries = 0;

  for (int32_t i = 0; i < num; ++i) next[i] = A->row_ptr[row0 + i];
  for (W->num_columns = 0;; ++W->num_columns) {
    int32_t column = INT32_MAX;

    for (int32_t i = 0; i < num; ++i) {
      if (next[i] < A->row_ptr[row0 + i + 1] && A->col[next[i]] < column) column = A->col[next[i]];
    }
    if (column == INT32_MAX) break;
    W->column[W->num_columns] = column;
    W->rows[W->num_columns]   = 0;
    W->first[W->num_columns]  = entries;
    for (int32_t i = 0; i < num; ++i) {
      if (next[i] == A->row_ptr[row0 + i + 1] || A->col[next[i]] != column) continue;
      W->rows[W->num_columns] |= (uint16_t)(1 << i);
      W->entry[entries++] = (int32_t)next[i]++;
    }
  }
}

static void group_columns(window *W)
{
  int32_t open[OPEN], num_open = 0;

  W->num_groups = 0;
  for (int32_t c = 0; c < W->num_columns; ++c) {
    const uint16_t rows = W->rows[c];
    group         *G;
    int32_t        o = 0;

    while (o < num_open && (W->groups[open[o]].twice & rows) != 0) ++o;
    if (o == num_open) {
      if (num_open == OPEN) memmove(open, open + 1, (size_t)(o = --num_open) * sizeof *open);
      W->groups[W->num_groups] = (group){.num = 0};
      open[num_open++]         = W->num_groups++;
    }
    G = &W->groups[open[o]];
    G->twice |= G->once & rows;
    G->once |= rows;
    G->member[G->num++] = c;
    if (G->num == TC_BCSR_GROUP || G->twice == 0xffff) memmove(open + o, open + o + 1, (size_t)(--num_open - o) * sizeof *open);
  }
}

static int32_t tiles_of(int32_t things, int32_t per_tile)
{
  return (things + per_tile - 1) / per_tile;
}

/*
  How many groups, those of most columns first, go into 2:4 tiles: as many as make the tiles cheapest. Whatever the packing, a window reads each of its rows of B once,
  and the tensor core takes the same time for a tile of either kind, so that bytes count. What is in no such group is in dense tiles.
*/
static void choose_tiles(tc_bcsr_kinds kinds, window *W)
{
  const int32_t most = kinds == TC_BCSR_BOTH_KINDS ? W->num_groups : 0;
  int64_t       best = INT64_MAX;
  int32_t       num = 0, left = W->num_columns;

  for (int32_t size = TC_BCSR_GROUP; size > 0; --size) {
    for (int32_t i = 0; i < W->num_groups; ++i) {
      if (W->groups[i].num == size) W->order[num++] = i;
    }
  }
  for (int32_t k = 0; k <= most; ++k) {
    const int32_t sparse = tiles_of(k, TC_BCSR_GROUPS), dense = tiles_of(left, TC_BCSR_DENSE);
    const int64_t cost   = COST_SPARSE * (int64_t)sparse + COST_DENSE * (int64_t)dense;

    if (cost < best) {
      best          = cost;
      W->in_sparse  = k;
      W->num_sparse = sparse;
      W->num_dense  = dense;
    }
    if (k < most) left -= W->groups[W->order[k]].num;
  }
  memset(W->is_dense, 1, (size_t)W->num_columns);
  for (int32_t k = 0; k < W->in_sparse; ++k) {
    for (int32_t m = 0; m < W->groups[W->order[k]].num; ++m) W->is_dense[W->groups[W->order[k]].member[m]] = 0;
  }
}

static void plan_window(const tc_csr *A, tc_bcsr_kinds kinds, int32_t w, window *W)
{
  list_columns(A, w, W);
  group_columns(W);
  choose_tiles(kinds, W);
}

/* --- pieces */

/* Pieces of a window, none of more than `most` tiles */
static int32_t pieces_of(int32_t tiles, int32_t most)
{
  return tiles > most ? tiles_of(tiles, most) : 1;
}

/* Tiles of a piece at most: fewer where that makes more warps busy, but not so few that the partial sums become the larger part of the traffic (unmeasured) */
static int32_t longest_piece(const tc_bcsr *T)
{
  const int64_t tiles = T->num_tiles / FEW_PIECES;

  return tiles < SHORT_PIECE ? SHORT_PIECE : tiles < TC_BCSR_PIECE ? (int32_t)tiles : TC_BCSR_PIECE;
}

/* What is known before there are arrays; tiles [num_windows] and sparse get those of each window */
static tc_status count_tiles(const tc_csr *A, tc_bcsr_kinds kinds, window *W, tc_bcsr *T, int32_t *tiles, int32_t *sparse)
{
  for (int32_t w = 0; w < T->num_windows; ++w) {
    plan_window(A, kinds, w, W);
    tiles[w]  = W->num_sparse + W->num_dense;
    sparse[w] = W->num_sparse;
    T->num_tiles += tiles[w];
    T->num_sparse += sparse[w];
    TC_CHECK(T->num_tiles <= UINT32_MAX / 2, TC_ERR_LIMIT, "%lld tiles, format bcsr names at most %u", (long long)T->num_tiles, UINT32_MAX / 2);
  }
  for (int32_t w = 0; w < T->num_windows; ++w) {
    const int32_t pieces = pieces_of(tiles[w], longest_piece(T));

    T->num_pieces += pieces;
    if (pieces > 1) {
      ++T->num_split;
      T->num_slots += pieces;
    }
  }
  return TC_OK;
}

static void list_pieces(tc_bcsr *T, const int32_t *tiles, const int32_t *sparse)
{
  const int32_t most  = longest_piece(T);
  int32_t       split = 0, slot = 0, single = T->num_slots;
  uint32_t      tile = 0, before = 0;

  for (int32_t w = 0; w < T->num_windows; ++w) {
    const int32_t pieces = pieces_of(tiles[w], most), length = tiles_of(tiles[w], pieces);
    int32_t      *at = pieces > 1 ? &slot : &single, left = sparse[w];

    if (at == &slot) {
      T->split_window[split]  = w;
      T->split_first[split++] = slot;
    }
    for (int32_t i = 0; i < pieces; ++i) {
      const int32_t num = i < pieces - 1 ? length : tiles[w] - length * i, num_sparse = left < num ? left : num;

      T->piece[(*at)++] = (tc_bcsr_piece){.tile = tile, .sparse = before, .window = w, .num_sparse = (uint8_t)num_sparse, .num_dense = (uint8_t)(num - num_sparse)};
      tile += (uint32_t)num;
      before += (uint32_t)num_sparse;
      left -= num_sparse;
    }
  }
  T->split_first[split] = slot;
}

/* --- tiles */

/* Entry of row i in column c of the window */
static int32_t entry_of(const window *W, int32_t c, int32_t i)
{
  return W->entry[W->first[c] + __builtin_popcount(W->rows[c] & ((1u << i) - 1))];
}

/* Group q of a 2:4 tile; NULL: there is none */
static void put_group(const window *W, const group *G, int32_t q, int32_t *column, uint32_t *choice, int32_t *map)
{
  for (int32_t p = 0; p < TC_BCSR_GROUP; ++p) {
    const int32_t c = G ? G->member[p < G->num ? p : G->num - 1] : W->num_columns - 1;

    column[tc_bcsr_place(TC_BCSR_SPARSE, TC_BCSR_GROUP * q + p)] = W->column[c];
  }
  for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
    int32_t place[2] = {0, 1}, held[2] = {TC_BCSR_PAD, TC_BCSR_PAD}, num = 0;

    for (int32_t p = 0; G && p < G->num; ++p) {
      if (!(W->rows[G->member[p]] >> i & 1)) continue;
      place[num]  = p;
      held[num++] = entry_of(W, G->member[p], i);
    }
    if (num == 1 && place[0] == TC_BCSR_GROUP - 1) { // the last of the four: the pair is that and the one before
      place[0] = TC_BCSR_GROUP - 2;
      place[1] = TC_BCSR_GROUP - 1;
      held[1]  = held[0];
      held[0]  = TC_BCSR_PAD;
    } else if (num == 1) place[1] = TC_BCSR_GROUP - 1;
    choice[tc_bcsr_choice_word(i, q)] |= (uint32_t)(place[0] | place[1] << 2) << tc_bcsr_choice_bit(i, q);
    for (int32_t h = 0; h < 2; ++h) map[tc_bcsr_slot(i, 2 * q + h)] = held[h];
  }
}

static void put_dense(const window *W, int32_t num, const int32_t *members, int32_t *column, int32_t *map)
{
  for (int32_t k = 0; k < TC_BCSR_DENSE; ++k) {
    const int32_t c = members[k < num ? k : num - 1];

    column[tc_bcsr_place(TC_BCSR_DENSE, k)] = W->column[c];
    for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) map[tc_bcsr_slot(i, k)] = k < num && W->rows[c] >> i & 1 ? entry_of(W, c, i) : TC_BCSR_PAD;
  }
}

/* The tiles of a window, the first of which is `tile`, with `sparse` 2:4 ones before it */
static void put_window(const window *W, int64_t tile, int64_t sparse, tc_bcsr *T)
{
  int32_t members[TC_BCSR_DENSE], num = 0;

  for (int32_t s = 0; s < W->num_sparse; ++s, ++tile, ++sparse) {
    for (int32_t q = 0; q < TC_BCSR_GROUPS; ++q) {
      const int32_t k = TC_BCSR_GROUPS * s + q;

      put_group(W, k < W->in_sparse ? &W->groups[W->order[k]] : NULL, q, T->column + tc_bcsr_columns_at(tile, sparse), T->choice + TC_BCSR_WORDS * sparse, T->map + TC_BCSR_SLOTS * tile);
    }
  }
  for (int32_t c = 0; c < W->num_columns; ++c) {
    if (W->is_dense[c]) members[num++] = c;
    if (num < TC_BCSR_DENSE && (c < W->num_columns - 1 || num == 0)) continue;
    put_dense(W, num, members, T->column + tc_bcsr_columns_at(tile, sparse), T->map + TC_BCSR_SLOTS * tile);
    ++tile;
    num = 0;
  }
}

static tc_status fill(const tc_csr *A, tc_bcsr_kinds kinds, window *W, tc_bcsr *T, const int32_t *tiles, const int32_t *sparse)
{
  int64_t tile = 0, before = 0;

  TC_CALL(new_array(&T->piece, T->num_pieces, sizeof *T->piece));
  TC_CALL(new_array(&T->split_window, T->num_split, sizeof *T->split_window));
  TC_CALL(new_array(&T->split_first, T->num_split + 1, sizeof *T->split_first));
  TC_CALL(new_array(&T->column, tc_bcsr_columns_at(T->num_tiles, T->num_sparse), sizeof *T->column));
  TC_CALL(new_array(&T->choice, TC_BCSR_WORDS * T->num_sparse, sizeof *T->choice));
  TC_CALL(new_array(&T->map, TC_BCSR_SLOTS * T->num_tiles, sizeof *T->map));
  TC_CALL(new_array(&T->row_ptr, (int64_t)T->num_rows + 1, sizeof *T->row_ptr));
  memset(T->choice, 0, TC_BCSR_WORDS * (size_t)T->num_sparse * sizeof *T->choice);
  list_pieces(T, tiles, sparse);
  for (int32_t i = 0; i <= T->num_rows; ++i) T->row_ptr[i] = (int32_t)A->row_ptr[i];
  for (int32_t w = 0; w < T->num_windows; ++w) {
    plan_window(A, kinds, w, W);
    put_window(W, tile, before, T);
    tile += tiles[w];
    before += sparse[w];
  }
  return TC_OK;
}

static tc_status build_arrays(const tc_csr *A, tc_bcsr_kinds kinds, tc_bcsr *T)
{
  window    W     = {.memory = NULL};
  int32_t  *tiles = NULL;
  tc_status status;

  *T     = (tc_bcsr){.num_rows = A->num_rows, .num_cols = A->num_cols, .num_nonzeros = A->row_ptr[A->num_rows], .precision = A->precision, .num_windows = (int32_t)(((int64_t)A->num_rows + TC_BCSR_ROWS - 1) / TC_BCSR_ROWS)};
  status = new_window(A, T->num_windows, &W);
  if (status == TC_OK) status = new_array(&tiles, 2 * (int64_t)T->num_windows, sizeof *tiles);
  if (status == TC_OK) status = count_tiles(A, kinds, &W, T, tiles, tiles + T->num_windows);
  if (status == TC_OK) status = fill(A, kinds, &W, T, tiles, tiles + T->num_windows);
  free(W.memory);
  free(tiles);
  return status;
}

tc_status tc_bcsr_build(const tc_csr *A, tc_bcsr_kinds kinds, void *view)
{
  tc_status status;

  TC_CALL(tc_csr_check(A));
  TC_CHECK(A->precision == TC_PRECISION_BF16 || A->precision == TC_PRECISION_F16, TC_ERR_UNSUPPORTED, "format bcsr keeps values of 16 bits only");
  TC_CHECK(A->num_rows <= MAX_ROWS, TC_ERR_LIMIT, "%d rows, format bcsr holds at most %d", A->num_rows, MAX_ROWS);
  status = build_arrays(A, kinds, view);
  if (status != TC_OK) tc_format_destroy(&tc_format_bcsr, view);
  return status;
}

static tc_status bcsr_build(const tc_csr *A, void *view)
{
  return tc_bcsr_build(A, TC_BCSR_BOTH_KINDS, view);
}

static int bcsr_arrays(const void *view, tc_array arrays[TC_MAX_ARRAYS])
{
  const tc_bcsr *T   = view;
  int            num = 0;

#define ARRAY(member, role, count, item_size) arrays[num++] = (tc_array){#member, role, offsetof(tc_bcsr, member), (size_t)(count), item_size, 0}
  ARRAY(val, TC_ROLE_VALUE, TC_BCSR_SLOTS * T->num_tiles, sizeof *T->val);
  ARRAY(row_exponent, TC_ROLE_VALUE, TC_BCSR_ROWS * (int64_t)T->num_windows, sizeof *T->row_exponent);
  ARRAY(map, TC_ROLE_MAP, TC_BCSR_SLOTS * T->num_tiles, sizeof *T->map);
  ARRAY(row_ptr, TC_ROLE_MAP, T->row_ptr ? (int64_t)T->num_rows + 1 : 0, sizeof *T->row_ptr);
  ARRAY(piece, TC_ROLE_INDEX, T->num_pieces, sizeof *T->piece);
  ARRAY(split_window, TC_ROLE_INDEX, T->num_split, sizeof *T->split_window);
  ARRAY(split_first, TC_ROLE_INDEX, T->split_first ? T->num_split + 1 : 0, sizeof *T->split_first);
  ARRAY(column, TC_ROLE_INDEX, tc_bcsr_columns_at(T->num_tiles, T->num_sparse), sizeof *T->column);
  ARRAY(choice, TC_ROLE_INDEX, TC_BCSR_WORDS * T->num_sparse, sizeof *T->choice);
#undef ARRAY
  return num;
}

static void bcsr_stats(const void *view, tc_stats *stats)
{
  const tc_bcsr *T = view;

  stats->num_nonzeros      = T->num_nonzeros;
  stats->num_slots         = TC_BCSR_SLOTS * T->num_tiles;
  stats->num_tile_rows     = TC_BCSR_ROWS * T->num_tiles;
  stats->num_nonempty_rows = T->num_rows;
  snprintf(stats->classes, sizeof stats->classes, "%d windows, %lld 2:4 tiles, %lld dense tiles, %.0f%% of their places used", T->num_windows, (long long)T->num_sparse, (long long)(T->num_tiles - T->num_sparse), T->num_tiles > 0 ? 100.0 * (double)T->num_nonzeros / (double)stats->num_slots : 0.0);
}

const tc_format tc_format_bcsr = {.name = "bcsr", .view_size = sizeof(tc_bcsr), .precision = TC_PRECISION_F16, .widest = TC_PRECISION_BF16, .build = bcsr_build, .arrays = bcsr_arrays, .stats = bcsr_stats};
