/*
  Building the BCSR format on the host: kernels/tc_bcsr.h defines every byte of the arrays, docs/formats.md shows them.
*/
#include "bcsr.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The array longer or shorter; on failure it is as it was */
static tc_status resize(void *array, int64_t count, size_t item_size)
{
  void *pointer, *moved;

  memcpy(&pointer, array, sizeof pointer);
  moved = tc_fault(TC_FAULT_ALLOC) ? NULL : realloc(pointer, count > 0 ? (size_t)count * item_size : 1);
  TC_CHECK(moved != NULL, TC_ERR_MEMORY, "no host memory for %lld entries of a BCSR array", (long long)count);
  memcpy(array, &moved, sizeof moved);
  return TC_OK;
}

/* Half as much again, if that is enough */
static int64_t grown(int64_t room, int64_t needed)
{
  return room + room / 2 > needed ? room + room / 2 : needed;
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
  TC_CALL(tc_new_array(&W->memory, most + 1, sizeof *W->groups + 4 * sizeof *W->column + sizeof *W->rows + sizeof *W->is_dense));
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

/* Merges the rows: what is done for each column is done for all 16 of them, without a branch */
static void list_columns(const tc_csr *A, int32_t w, window *W)
{
  const int32_t row0 = w * TC_BCSR_ROWS, num = window_end(A, w) - row0;
  int64_t       next[TC_BCSR_ROWS];
  int32_t       head[TC_BCSR_ROWS], entries = 0; // the columns that are next, INT32_MAX after the last

  for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
    next[i] = A->row_ptr[row0 + (i < num ? i : num)];
    head[i] = i < num && next[i] < A->row_ptr[row0 + i + 1] ? A->col[next[i]] : INT32_MAX;
  }
  for (W->num_columns = 0;; ++W->num_columns) {
    int32_t  column = INT32_MAX;
    uint32_t rows   = 0;

    for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) column = head[i] < column ? head[i] : column;
    if (column == INT32_MAX) break;
#pragma GCC unroll 1 // unrolled first, the loop would not become vector instructions
    for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) rows |= head[i] == column ? 1u << i : 0;
    W->column[W->num_columns] = column;
    W->rows[W->num_columns]   = (uint16_t)rows;
    W->first[W->num_columns]  = entries;
    for (; rows; rows &= rows - 1) {
      const int32_t i = __builtin_ctz(rows);

      W->entry[entries++] = (int32_t)next[i]++;
      head[i]             = next[i] < A->row_ptr[row0 + i + 1] ? A->col[next[i]] : INT32_MAX;
    }
  }
}

/*
  Columns of a window in groups of four: each goes to the first open group that it fits into, that is, where no row gets a third entry. A group is open as long as it
  has room, and as TC_BCSR_OPEN newer ones are.
*/
static void group_columns(window *W)
{
  int32_t open[TC_BCSR_OPEN], num_open = 0;

  W->num_groups = 0;
  for (int32_t c = 0; c < W->num_columns; ++c) {
    const uint16_t rows = W->rows[c];
    group         *G;
    int32_t        o = 0;

    while (o < num_open && (W->groups[open[o]].twice & rows) != 0) ++o;
    if (o == num_open) {
      if (num_open == TC_BCSR_OPEN) memmove(open, open + 1, (size_t)(o = --num_open) * sizeof *open);
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
    const int64_t cost = tc_bcsr_cost(k, left);

    if (cost < best) {
      best          = cost;
      W->in_sparse  = k;
      W->num_sparse = (int32_t)tc_bcsr_tiles_of(k, TC_BCSR_GROUPS);
      W->num_dense  = (int32_t)tc_bcsr_tiles_of(left, TC_BCSR_DENSE);
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

/* All pieces; tiles [num_windows] and sparse are those of each window */
static tc_status list_pieces(tc_bcsr *T, const int32_t *tiles, const int32_t *sparse)
{
  const int32_t most  = tc_bcsr_longest_piece(T->num_tiles);
  int32_t       split = 0, slot = 0, single;
  uint32_t      tile = 0, before = 0;

  for (int32_t w = 0; w < T->num_windows; ++w) {
    const int32_t pieces = (int32_t)tc_bcsr_pieces_of(tiles[w], most);

    T->num_pieces += pieces;
    if (pieces > 1) {
      ++T->num_split;
      T->num_slots += pieces;
    }
  }
  single = T->num_slots;
  TC_CALL(tc_new_array(&T->piece, T->num_pieces, sizeof *T->piece));
  TC_CALL(tc_new_array(&T->split_window, T->num_split, sizeof *T->split_window));
  TC_CALL(tc_new_array(&T->split_first, T->num_split + 1, sizeof *T->split_first));
  for (int32_t w = 0; w < T->num_windows; ++w) {
    const int32_t pieces = (int32_t)tc_bcsr_pieces_of(tiles[w], most), length = (int32_t)tc_bcsr_tiles_of(tiles[w], pieces);
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
  return TC_OK;
}

/* --- tiles */

/* Group q of a 2:4 tile whose choice is zero and whose map is all padding; NULL: there is none. Masks are of rows. */
static void put_group(const window *W, const group *G, int32_t q, int32_t *column, uint32_t *choice, int32_t *map)
{
  enum { LAST = TC_BCSR_GROUP - 1 };
  uint32_t met = 0, first[TC_BCSR_GROUP], second[TC_BCSR_GROUP]; // rows with an entry so far; whose first, or second, is at a place

  for (int32_t p = 0; p < TC_BCSR_GROUP; ++p) {
    const int32_t  c     = G ? G->member[p < G->num ? p : G->num - 1] : W->num_columns - 1;
    const uint32_t rows  = G && p < G->num ? W->rows[c] : 0;
    const int32_t *entry = W->entry + W->first[c];

    first[p]  = rows & ~met;
    second[p] = rows & met;
    met |= rows;
    column[tc_bcsr_place(TC_BCSR_SPARSE, TC_BCSR_GROUP * q + p)] = W->column[c];
    for (uint32_t left = rows, upper = p == LAST ? rows : second[p]; left; left &= left - 1) {
      const int32_t i = __builtin_ctz(left);

      map[tc_bcsr_slot(i, 2 * q + (int32_t)(upper >> i & 1))] = *entry++;
    }
  }
  /* A row without entries chooses places 0 and 1; one with one entry that place and the last, or, if it is the last, the one before and that */
  const uint32_t several = second[1] | second[2] | second[LAST], one = met & ~several;
  const uint32_t bits[4] = {first[1], first[2] | first[LAST], second[1] | second[LAST] | one | ~met, second[2] | second[LAST] | one};

  for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) choice[tc_bcsr_choice_word(i, q)] |= ((bits[0] >> i & 1) | (bits[1] >> i & 1) << 1 | (bits[2] >> i & 1) << 2 | (bits[3] >> i & 1) << 3) << tc_bcsr_choice_bit(i, q);
}

/* A dense tile whose map is all padding */
static void put_dense(const window *W, int32_t num, const int32_t *members, int32_t *column, int32_t *map)
{
  for (int32_t k = 0; k < TC_BCSR_DENSE; ++k) {
    const int32_t  c     = members[k < num ? k : num - 1];
    const int32_t *entry = W->entry + W->first[c];

    column[tc_bcsr_place(TC_BCSR_DENSE, k)] = W->column[c];
    for (uint32_t rows = k < num ? W->rows[c] : 0; rows; rows &= rows - 1) map[tc_bcsr_slot(__builtin_ctz(rows), k)] = *entry++;
  }
}

/* The tiles of a window, the first of which is `tile`, with `sparse` 2:4 ones before it */
static void put_window(const window *W, int64_t tile, int64_t sparse, tc_bcsr *T)
{
  int32_t members[TC_BCSR_DENSE], num = 0;

  memset(T->choice + TC_BCSR_WORDS * sparse, 0, TC_BCSR_WORDS * (size_t)W->num_sparse * sizeof *T->choice);
  memset(T->map + TC_BCSR_SLOTS * tile, TC_BCSR_PAD & 0xff, TC_BCSR_SLOTS * (size_t)(W->num_sparse + W->num_dense) * sizeof *T->map);
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

/* The arrays of tiles for so many; what is in them stays */
static tc_status make_room(tc_bcsr *T, int64_t tiles, int64_t sparse)
{
  TC_CALL(resize(&T->column, tc_bcsr_columns_at(tiles, sparse), sizeof *T->column));
  TC_CALL(resize(&T->choice, TC_BCSR_WORDS * sparse, sizeof *T->choice));
  return resize(&T->map, TC_BCSR_SLOTS * tiles, sizeof *T->map);
}

/* Window after window, each looked at once: how many tiles there will be is not known before, so the arrays grow, and are cut to size last */
static tc_status put_windows(const tc_csr *A, tc_bcsr_kinds kinds, window *W, tc_bcsr *T, int32_t *tiles, int32_t *sparse)
{
  int64_t room = T->num_windows + T->num_nonzeros / (TC_BCSR_SLOTS / 8), room_sparse = kinds == TC_BCSR_BOTH_KINDS ? room / 2 : 0;

  TC_CALL(make_room(T, room, room_sparse));
  for (int32_t w = 0; w < T->num_windows; ++w) {
    plan_window(A, kinds, w, W);
    tiles[w]  = W->num_sparse + W->num_dense;
    sparse[w] = W->num_sparse;
    TC_CHECK(T->num_tiles + tiles[w] <= UINT32_MAX / 2, TC_ERR_LIMIT, "more than %u tiles, all that format bcsr names", UINT32_MAX / 2);
    if (T->num_tiles + tiles[w] > room || T->num_sparse + sparse[w] > room_sparse) {
      room        = grown(room, T->num_tiles + tiles[w]);
      room_sparse = grown(room_sparse, T->num_sparse + sparse[w]);
      TC_CALL(make_room(T, room, room_sparse));
    }
    put_window(W, T->num_tiles, T->num_sparse, T);
    T->num_tiles += tiles[w];
    T->num_sparse += sparse[w];
  }
  return make_room(T, T->num_tiles, T->num_sparse);
}

static tc_status build_arrays(const tc_csr *A, tc_bcsr_kinds kinds, tc_bcsr *T)
{
  window    W     = {.memory = NULL};
  int32_t  *tiles = NULL;
  tc_status status;

  *T     = (tc_bcsr){.num_rows = A->num_rows, .num_cols = A->num_cols, .num_nonzeros = A->row_ptr[A->num_rows], .precision = A->precision, .num_windows = (int32_t)(((int64_t)A->num_rows + TC_BCSR_ROWS - 1) / TC_BCSR_ROWS)};
  status = new_window(A, T->num_windows, &W);
  if (status == TC_OK) status = tc_new_array(&tiles, 2 * (int64_t)T->num_windows, sizeof *tiles);
  if (status == TC_OK) status = put_windows(A, kinds, &W, T, tiles, tiles + T->num_windows);
  if (status == TC_OK) status = list_pieces(T, tiles, tiles + T->num_windows);
  if (status == TC_OK) status = tc_new_array(&T->row_ptr, (int64_t)T->num_rows + 1, sizeof *T->row_ptr);
  for (int32_t i = 0; status == TC_OK && i <= T->num_rows; ++i) T->row_ptr[i] = (int32_t)A->row_ptr[i];
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
