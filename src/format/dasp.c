/*
  Building the DASP format on the host: kernels/tc_dasp.h says what the arrays hold, docs/formats.md shows them.
*/
#include "../../kernels/tc_dasp.h"
#include "dasp_host.h"
#include "format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thresholds of the format. Paper: Lu and Liu, SC'23, section 3. Changing long_row changes the bits of results, the others only the layout. */
static const struct {
  int32_t long_row;     // rows of at least this many entries are long (paper: 256)
  int32_t regular_fill; // used slots, of 32, that keep a tile of a medium block regular (paper: 75%)
  int32_t min_pair13;   // fewer pairs of 1 and 3 entries than this are not worth a section (paper: 128)
  int32_t window_row;   // medium rows of at most this many entries are sorted, rows of 1 and 3 paired within windows, so that x and y stay local (paper: none)
  int32_t window;       // matrix rows in a window
} dasp = {256, 24, 128, 40, 512};

typedef struct {
  int32_t next_long, next_pair1, next_pair3, next_four, next_two, next_one, next_empty;
  int32_t two_rows_paired; // rows of 2 entries that go to pair22; the odd one out goes to four
  int32_t ones_to_pair, threes_to_pair; // rows of 1 and of 3 entries of the current window that still go to pair13
  int32_t next_medium, medium_next[256]; // the first free medium slot, and that of each length within the current window
} cursor;

static int64_t tile_slots(int64_t tile_rows)
{
  return (tile_rows + TC_DASP_TILE_ROWS - 1) / TC_DASP_TILE_ROWS * TC_DASP_TILE_SLOTS;
}

static int32_t row_length(const tc_csr *A, int32_t row)
{
  return (int32_t)(A->row_ptr[row + 1] - A->row_ptr[row]);
}

/* Hands the next medium slots out to the lengths from `longest` down to `shortest`, count[length] to each */
static void hand_out(cursor *at, const int32_t count[256], int32_t longest, int32_t shortest)
{
  for (int32_t length = longest; length >= shortest; --length) {
    at->medium_next[length] = at->next_medium;
    at->next_medium += count[length];
  }
}

/* Adds the lengths of the rows of the window that begins at `row` to `count`, long rows counting as length 0; returns how many pairs of 1 and 3 it holds */
static int32_t count_window(const tc_csr *A, int32_t row, int32_t count[256])
{
  const int32_t end = A->num_rows - row > dasp.window ? row + dasp.window : A->num_rows, ones = count[1], threes = count[3];

  for (int32_t i = row; i < end; ++i) {
    const int32_t length = row_length(A, i);

    ++count[length < dasp.long_row ? length : 0];
  }
  return count[1] - ones < count[3] - threes ? count[1] - ones : count[3] - threes;
}

/* Row classes: how many rows of each, where their row_id sections begin, and where each class starts writing */
static void classify(const tc_csr *A, tc_dasp *D, cursor *at)
{
  int32_t count[256] = {0};

  for (int64_t row = 0; row < A->num_rows; row += dasp.window) D->num_pair13 += count_window(A, (int32_t)row, count);
  if (D->num_pair13 < dasp.min_pair13) D->num_pair13 = 0;
  for (int32_t i = 0; i < A->num_rows; ++i) {
    if (row_length(A, i) < dasp.long_row) continue;
    ++D->num_long;
    D->num_segments += (row_length(A, i) + TC_DASP_SEGMENT - 1) / TC_DASP_SEGMENT;
  }
  for (int32_t length = 5; length < dasp.long_row; ++length) {
    D->num_medium += count[length];
    if (count[length] > 0) D->longest_medium = length;
  }
  D->num_blocks = (D->num_medium + TC_DASP_TILE_ROWS - 1) / TC_DASP_TILE_ROWS;
  D->num_pair22 = count[2] / 2;
  D->num_four   = count[4] + count[3] - D->num_pair13 + count[2] % 2;
  D->num_one    = count[1] - D->num_pair13;
  D->num_empty  = count[0] - D->num_long;
  D->row_medium = D->num_long;
  D->row_pair13 = D->row_medium + D->num_medium;
  D->row_four   = D->row_pair13 + 2 * D->num_pair13;
  D->row_pair22 = D->row_four + D->num_four;
  D->row_one    = D->row_pair22 + 2 * D->num_pair22;
  D->row_empty  = D->row_one + D->num_one;

  at->next_medium     = D->row_medium;
  at->next_pair1      = D->row_pair13;
  at->next_pair3      = D->row_pair13 + D->num_pair13;
  at->next_four       = D->row_four;
  at->next_one        = D->row_one;
  at->next_empty      = D->row_empty;
  at->two_rows_paired = 2 * D->num_pair22;
  hand_out(at, count, dasp.long_row - 1, dasp.window_row + 1);
}

static void open_window(const tc_csr *A, const tc_dasp *D, cursor *at, int32_t row)
{
  int32_t       count[256] = {0};
  const int32_t pairs      = count_window(A, row, count);

  at->ones_to_pair = at->threes_to_pair = D->num_pair13 > 0 ? pairs : 0;
  hand_out(at, count, dasp.window_row, 5);
}

/* row_id: every class keeps the matrix order of its rows, medium rows up to the sort, so that neighbours stay neighbours */
static void order_rows(const tc_csr *A, tc_dasp *D, cursor *at)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    const int32_t length = row_length(A, i);
    int32_t       slot;

    if (i % dasp.window == 0) open_window(A, D, at, i);
    if (length >= dasp.long_row) slot = at->next_long++;
    else if (length > 4) slot = at->medium_next[length]++;
    else if (length == 1 && at->ones_to_pair-- > 0) slot = at->next_pair1++;
    else if (length == 3 && at->threes_to_pair-- > 0) slot = at->next_pair3++;
    else if (length == 2 && at->next_two < at->two_rows_paired) {
      slot = D->row_pair22 + at->next_two / 2 + (at->next_two % 2) * D->num_pair22;
      ++at->next_two;
    } else if (length >= 2) slot = at->next_four++;
    else if (length == 1) slot = at->next_one++;
    else slot = at->next_empty++;
    D->row_id[slot] = i;
  }
}

/* Regular tiles of medium block `block`; adds the entries that do not fit to *tail */
static int32_t regular_tiles(const tc_csr *A, const tc_dasp *D, int32_t block, int32_t tail_length[TC_DASP_TILE_ROWS])
{
  int32_t length[TC_DASP_TILE_ROWS] = {0}, tiles = 0, used;

  for (int32_t g = 0; g < TC_DASP_TILE_ROWS && TC_DASP_TILE_ROWS * block + g < D->num_medium; ++g) length[g] = row_length(A, D->row_id[D->row_medium + TC_DASP_TILE_ROWS * block + g]);
  for (;; ++tiles) {
    used = 0;
    for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) {
      const int32_t left = length[g] - 4 * tiles;

      used += left >= 4 ? 4 : left > 0 ? left : 0;
    }
    if (used < dasp.regular_fill) break;
  }
  for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) tail_length[g] = length[g] > 4 * tiles ? length[g] - 4 * tiles : 0;
  return tiles;
}

/* Pointer arrays and the slot where each section begins */
static void lay_out(const tc_csr *A, tc_dasp *D)
{
  int64_t slot = 0, tail = 0;
  int32_t segment = 0;

  for (int32_t r = 0; r < D->num_long; ++r) {
    const int32_t length = row_length(A, D->row_id[r]);

    D->long_ptr[r] = segment;
    for (int32_t first = 0; first < length; first += TC_DASP_SEGMENT, ++segment) {
      const int32_t entries = length - first < TC_DASP_SEGMENT ? length - first : TC_DASP_SEGMENT;

      D->segment_ptr[segment] = slot;
      D->segment_row[segment] = r;
      slot += (entries + TC_DASP_TILE_SLOTS - 1) / TC_DASP_TILE_SLOTS * TC_DASP_TILE_SLOTS;
    }
  }
  D->long_ptr[D->num_long] = segment;
  D->segment_ptr[segment]  = slot;
  D->slot_medium           = slot;
  for (int32_t b = 0; b < D->num_blocks; ++b) {
    int32_t tail_length[TC_DASP_TILE_ROWS];

    D->block_ptr[b] = slot;
    D->tail_ptr[b]  = tail; // completed below, when the start of the section is known
    slot += (int64_t)TC_DASP_TILE_SLOTS * regular_tiles(A, D, b, tail_length);
    for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) {
      tail += tail_length[g];
      D->tail_end[TC_DASP_TILE_ROWS * (int64_t)b + g] = (uint16_t)(tail - D->tail_ptr[b]);
    }
  }
  D->block_ptr[D->num_blocks] = slot;
  D->tail_ptr[D->num_blocks]  = tail;
  D->slot_pair13              = slot;
  D->slot_four                = D->slot_pair13 + tile_slots(D->num_pair13);
  D->slot_pair22              = D->slot_four + tile_slots(D->num_four);
  D->slot_one                 = D->slot_pair22 + tile_slots(D->num_pair22);
  D->slot_tail                = D->slot_one + D->num_one;
  D->num_slots                = D->slot_tail + tail;
  for (int32_t b = 0; b <= D->num_blocks; ++b) D->tail_ptr[b] += D->slot_tail;
}

/* Slots `from` to `to`, until entries come */
static void pad(tc_dasp *D, int64_t from, int64_t to)
{
  memset(D->col + from, TC_DASP_PAD_BYTE, (size_t)(to - from) * sizeof *D->col);
  memset(D->map + from, TC_DASP_PAD_BYTE, (size_t)(to - from) * sizeof *D->map);
}

static void put(const tc_csr *A, tc_dasp *D, int64_t slot, int64_t entry)
{
  D->col[slot] = A->col[entry];
  D->map[slot] = (int32_t)entry;
}

/* Entries of matrix row `row` go to tile row `tile_row` of the section that begins at `section`, from entry position k on */
static void put_short(const tc_csr *A, tc_dasp *D, int64_t section, int32_t tile_row, int32_t k, int32_t row)
{
  const int64_t tile = section + (int64_t)(tile_row / TC_DASP_TILE_ROWS) * TC_DASP_TILE_SLOTS + tile_row % TC_DASP_TILE_ROWS;

  for (int64_t e = A->row_ptr[row]; e < A->row_ptr[row + 1]; ++e, ++k) put(A, D, tile + TC_DASP_TILE_ROWS * k, e);
}

static void fill_long(const tc_csr *A, tc_dasp *D)
{
  for (int32_t r = 0; r < D->num_long; ++r) {
    const int32_t row = D->row_id[r], length = row_length(A, row);

    for (int32_t e = 0; e < length; ++e) {
      const int64_t tile = D->segment_ptr[D->long_ptr[r] + e / TC_DASP_SEGMENT] + e % TC_DASP_SEGMENT / TC_DASP_TILE_SLOTS * TC_DASP_TILE_SLOTS;

      put(A, D, tile + TC_DASP_TILE_ROWS * (e % 4) + e % TC_DASP_TILE_SLOTS / 4, A->row_ptr[row] + e);
    }
  }
}

/* The first `num` entries of all rows of a block, which have so many, one of each row after the other */
static void fill_tiles(const tc_csr *A, const int64_t first[TC_DASP_TILE_ROWS], int32_t num, int32_t *col, int32_t *map)
{
  for (int32_t e = 0; e < num; ++e) {
    for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) {
      col[TC_DASP_TILE_ROWS * (int64_t)e + g] = A->col[first[g] + e];
      map[TC_DASP_TILE_ROWS * (int64_t)e + g] = (int32_t)(first[g] + e);
    }
  }
}

static void fill_block(const tc_csr *A, tc_dasp *D, int32_t block)
{
  const int32_t first_row = TC_DASP_TILE_ROWS * block, rows = D->num_medium - first_row < TC_DASP_TILE_ROWS ? D->num_medium - first_row : TC_DASP_TILE_ROWS;
  const int32_t regular   = (int32_t)((D->block_ptr[block + 1] - D->block_ptr[block]) / TC_DASP_TILE_ROWS);
  int64_t       first[TC_DASP_TILE_ROWS] = {0}, tail = D->tail_ptr[block];
  int32_t       length[TC_DASP_TILE_ROWS] = {0}, shortest = regular;

  for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) {
    if (g < rows) {
      const int32_t row = D->row_id[D->row_medium + first_row + g];

      first[g]  = A->row_ptr[row];
      length[g] = row_length(A, row);
    }
    shortest = length[g] < shortest ? length[g] : shortest;
  }
  fill_tiles(A, first, shortest, D->col + D->block_ptr[block], D->map + D->block_ptr[block]);
  for (int32_t g = 0; g < TC_DASP_TILE_ROWS; ++g) {
    for (int32_t e = shortest; e < regular; ++e) {
      const int64_t slot = D->block_ptr[block] + TC_DASP_TILE_ROWS * (int64_t)e + g;

      if (e < length[g]) put(A, D, slot, first[g] + e);
      else D->col[slot] = D->map[slot] = TC_DASP_PAD;
    }
    for (int32_t e = regular; e < length[g]; ++e, ++tail) put(A, D, tail, first[g] + e);
  }
}

static void fill_short(const tc_csr *A, tc_dasp *D)
{
  for (int32_t i = 0; i < D->num_pair13; ++i) {
    put_short(A, D, D->slot_pair13, i, 0, D->row_id[D->row_pair13 + i]);
    put_short(A, D, D->slot_pair13, i, 1, D->row_id[D->row_pair13 + D->num_pair13 + i]);
  }
  for (int32_t i = 0; i < D->num_four; ++i) put_short(A, D, D->slot_four, i, 0, D->row_id[D->row_four + i]);
  for (int32_t i = 0; i < D->num_pair22; ++i) {
    put_short(A, D, D->slot_pair22, i, 0, D->row_id[D->row_pair22 + i]);
    put_short(A, D, D->slot_pair22, i, 2, D->row_id[D->row_pair22 + D->num_pair22 + i]);
  }
  for (int32_t i = 0; i < D->num_one; ++i) put(A, D, D->slot_one + i, A->row_ptr[D->row_id[D->row_one + i]]);
}

/* Looks at every 16th block: a column further than a cache line from that of the row above costs a gather of its own */
static void measure_scatter(tc_dasp *D)
{
  enum { SAMPLE = 16, LINE = 16 };
  int64_t seen = 0, far = 0;

  for (int32_t b = 0; b < D->num_blocks; b += SAMPLE) {
    for (int64_t s = D->block_ptr[b]; s < D->block_ptr[b + 1]; ++s) {
      if (s % TC_DASP_TILE_ROWS == 0 || D->col[s] == TC_DASP_PAD || D->col[s - 1] == TC_DASP_PAD) continue;
      ++seen;
      far += D->col[s] - D->col[s - 1] > LINE || D->col[s - 1] - D->col[s] > LINE;
    }
  }
  D->scattered = seen > 0 ? (float)far / (float)seen : 0;
}

static tc_status build_arrays(const tc_csr *A, tc_dasp *D)
{
  cursor at = {0};

  D->num_rows     = A->num_rows;
  D->num_cols     = A->num_cols;
  D->num_nonzeros = A->row_ptr[A->num_rows];
  classify(A, D, &at);
  TC_CALL(tc_new_array(&D->row_id, D->num_rows, sizeof *D->row_id));
  TC_CALL(tc_new_array(&D->segment_ptr, (int64_t)D->num_segments + 1, sizeof *D->segment_ptr));
  TC_CALL(tc_new_array(&D->segment_row, D->num_segments, sizeof *D->segment_row));
  TC_CALL(tc_new_array(&D->long_ptr, (int64_t)D->num_long + 1, sizeof *D->long_ptr));
  TC_CALL(tc_new_array(&D->block_ptr, (int64_t)D->num_blocks + 1, sizeof *D->block_ptr));
  TC_CALL(tc_new_array(&D->tail_ptr, (int64_t)D->num_blocks + 1, sizeof *D->tail_ptr));
  TC_CALL(tc_new_array(&D->tail_end, TC_DASP_TILE_ROWS * (int64_t)D->num_blocks, sizeof *D->tail_end));
  order_rows(A, D, &at);
  lay_out(A, D);
  TC_CALL(tc_new_array(&D->col, D->num_slots, sizeof *D->col));
  TC_CALL(tc_new_array(&D->map, D->num_slots, sizeof *D->map));
  pad(D, 0, D->slot_medium);
  fill_long(A, D);
  for (int32_t block = 0; block < D->num_blocks; ++block) fill_block(A, D, block);
  pad(D, D->slot_pair13, D->slot_one);
  fill_short(A, D);
  measure_scatter(D);
  return TC_OK;
}

enum { MAX_OVERHANG = 1 << 24 }; // kernels count rows in 32 bits, rounded up to whole launches

static tc_status dasp_build(const tc_csr *A, void *view)
{
  tc_status status;

  TC_CALL(tc_csr_check(A));
  TC_CHECK(A->num_rows <= INT32_MAX - MAX_OVERHANG, TC_ERR_LIMIT, "%d rows, format dasp holds at most %d", A->num_rows, INT32_MAX - MAX_OVERHANG);
  memset(view, 0, sizeof(tc_dasp));
  status = build_arrays(A, view);
  if (status != TC_OK) tc_format_destroy(&tc_format_dasp, view);
  return status;
}

static int dasp_arrays(const void *view, tc_array arrays[TC_MAX_ARRAYS])
{
  const tc_dasp *D  = view;
  int            num = 0;

#define ARRAY(member, role, count) arrays[num++] = (tc_array){#member, role, offsetof(tc_dasp, member), (size_t)(count), sizeof *D->member, 0}
  ARRAY(val, TC_ROLE_VALUE, D->num_slots);
  ARRAY(map, TC_ROLE_MAP, D->num_slots);
  ARRAY(col, TC_ROLE_INDEX, D->num_slots);
  ARRAY(row_id, TC_ROLE_INDEX, D->num_rows);
  ARRAY(segment_ptr, TC_ROLE_INDEX, (int64_t)D->num_segments + 1);
  ARRAY(segment_row, TC_ROLE_INDEX, D->num_segments);
  ARRAY(long_ptr, TC_ROLE_INDEX, (int64_t)D->num_long + 1);
  ARRAY(block_ptr, TC_ROLE_INDEX, (int64_t)D->num_blocks + 1);
  ARRAY(tail_ptr, TC_ROLE_INDEX, (int64_t)D->num_blocks + 1);
  ARRAY(tail_end, TC_ROLE_INDEX, TC_DASP_TILE_ROWS * (int64_t)D->num_blocks);
  ARRAY(partial, TC_ROLE_SCRATCH, D->num_segments);
  ARRAY(arrived, TC_ROLE_SCRATCH, D->num_long);
#undef ARRAY
  return num;
}

static void dasp_stats(const void *view, tc_stats *stats)
{
  const tc_dasp *D = view;

  stats->num_nonzeros      = D->num_nonzeros;
  stats->num_slots         = D->num_slots;
  stats->num_nonempty_rows = D->num_rows - D->num_empty;
  stats->column_bytes      = (int64_t)sizeof *D->col * D->num_slots;
  stats->num_tile_rows     = (int64_t)D->num_medium + D->num_pair13 + D->num_four + D->num_pair22;
  stats->mean_tile_row     = stats->num_tile_rows > 0 ? (double)(D->num_slots - D->slot_medium - D->num_one) / (double)stats->num_tile_rows : 0;
  stats->longest_tile_row  = D->longest_medium > 4 ? D->longest_medium : 4;
  stats->scattered         = D->scattered;
  snprintf(stats->classes, sizeof stats->classes, "long %d, medium %d, 1&3 %d, 3-4 %d, 2&2 %d, single %d, empty %d", D->num_long, D->num_medium, 2 * D->num_pair13, D->num_four, 2 * D->num_pair22, D->num_one, D->num_empty);
}

const tc_format tc_format_dasp = {"dasp", sizeof(tc_dasp), TC_PRECISION_F64, dasp_build, dasp_arrays, dasp_stats, NULL, tc_dasp_spmv_host, TC_PRECISION_F64, NULL, NULL, NULL};
