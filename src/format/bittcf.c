/*
  Building the BitTCF format on the host: kernels/tc_bittcf.h defines every byte of the arrays, docs/formats.md shows them.
*/
#include "../../kernels/tc_bittcf_order.h"
#include "../../kernels/tc_narrow.h"
#include "bittcf_build.h"
#include "format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t row_length(const tc_csr *A, int32_t row)
{
  return (int32_t)(A->row_ptr[row + 1] - A->row_ptr[row]);
}

/* --- which rows meet */

static void sample_neighbourhood(const tc_csr *A, const tc_bittcf_order *O, int32_t s, int32_t num, tc_bittcf_sample *S)
{
  tc_bittcf_lists L = {.num = TC_BITTCF_LISTS};
  int32_t         column, place = 0;
  int64_t         masks = 0;
  uint32_t        holders, group = 0; // windows that hold a column of the present group

  for (int32_t i = 0; i < L.num; ++i) {
    const int32_t row = tc_bittcf_row_at(A->row_order, tc_bittcf_sampled_row(O, A->num_rows, s, num, i)), length = row < 0 ? 0 : tc_bittcf_at_most(row_length(A, row), TC_SPMM_SEGMENT);

    L.next[i] = A->col + (row < 0 ? 0 : A->row_ptr[row]);
    L.end[i]  = L.next[i] + length;
    S->entries += length;
  }
  for (int more = 1; more;) {
    more = tc_bittcf_next_column(&L, &column, &holders);
    if (place > 0 && (place == TC_BITTCF_GROUP || !more)) {
      ++S->groups;
      masks += __builtin_popcount(group);
      place = 0;
      group = 0;
    }
    for (int32_t w = 0; w < TC_BITTCF_NEIGHBOURS; ++w) group |= (uint32_t)((holders >> TC_BITTCF_ROWS * w & 0xff) != 0) << w;
    ++place;
  }
  S->masks += masks;
  if (masks > S->most_masks) S->most_masks = masks;
}

static void choose_order(const tc_csr *A, tc_bittcf *T)
{
  tc_bittcf_strides probe[TC_BITTCF_PROBES];
  tc_bittcf_order   orders[TC_BITTCF_MAX_ORDERS];
  tc_bittcf_sample  sample[TC_BITTCF_MAX_ORDERS] = {{0}};
  int64_t           away[TC_BITTCF_LONG_ROW];
  int               num, best;

  for (int p = 0; p < TC_BITTCF_PROBES; ++p) {
    const int32_t row    = tc_bittcf_probed_row(A->num_rows, p);
    const int32_t length = A->row_order == NULL && row < A->num_rows && row_length(A, row) < TC_BITTCF_LONG_ROW ? row_length(A, row) : 0;

    probe[p] = tc_bittcf_probe(A->num_rows, p, A->col + (length > 0 ? A->row_ptr[row] : 0), length, away);
  }
  num = tc_bittcf_orders(A->num_rows, probe, orders);
  for (int i = 0; i < num; ++i) {
    const int32_t neighbourhoods = tc_bittcf_sample_size(&orders[i]);

    for (int32_t s = 0; s < neighbourhoods; ++s) sample_neighbourhood(A, &orders[i], s, neighbourhoods, &sample[i]);
  }
  best = tc_bittcf_best_order(num, sample);
  tc_bittcf_set_order(T, &orders[best], &sample[best], A->row_order != NULL);
}

/* --- packed rows */

/* long_first; returns how many windows long rows have */
static int32_t place_long_rows(tc_bittcf *T)
{
  const int32_t block   = tc_bittcf_long_rows(T);
  int32_t       windows = 0, longest = 0;

  for (int32_t r = 0; r < T->num_long; ++r) {
    if (r % block == 0) {
      windows += T->long_windows * longest;
      longest                  = 0;
      T->long_first[r / block] = windows;
    }
    if (T->long_segments[r] > longest) longest = T->long_segments[r];
  }
  windows += T->long_windows * longest;
  T->long_first[tc_bittcf_long_blocks(T)] = windows;
  return windows;
}

static tc_status list_long_rows(const tc_csr *A, tc_bittcf *T)
{
  int32_t windows, r = 0;

  for (int32_t i = 0; i < A->num_rows; ++i) T->num_long += row_length(A, i) >= TC_BITTCF_LONG_ROW;
  TC_CALL(tc_new_array(&T->long_row, T->num_long, sizeof *T->long_row));
  TC_CALL(tc_new_array(&T->long_segments, T->num_long, sizeof *T->long_segments));
  TC_CALL(tc_new_array(&T->long_first, (T->num_long + TC_BITTCF_ROWS - 1) / TC_BITTCF_ROWS + 1, sizeof *T->long_first)); // or less
  for (int32_t i = 0; i < A->num_rows; ++i) {
    if (row_length(A, i) < TC_BITTCF_LONG_ROW) continue;
    T->long_row[r]      = i;
    T->long_segments[r] = (row_length(A, i) - 1) / TC_SPMM_SEGMENT + 1;
    T->num_segments += T->long_segments[r++];
  }
  T->long_windows = T->num_long > 0 ? TC_BITTCF_LONG_WINDOWS : 1;
  windows         = place_long_rows(T);
  if (tc_bittcf_is_sparse(T, windows)) {
    T->long_windows = 1;
    windows         = place_long_rows(T);
  }
  tc_bittcf_add_windows(T, windows);
  return TC_OK;
}

/* row_id and csr_first; length [8 * num_windows] gets the entries of each packed row */
static void place_rows(const tc_csr *A, tc_bittcf *T, uint16_t *length)
{
  const int32_t rows = TC_BITTCF_ROWS;

  for (int64_t packed = 0; packed < (int64_t)rows * T->num_windows; ++packed) {
    const int32_t place = packed < (int64_t)rows * T->num_row_windows ? tc_bittcf_row(&T->order, T->num_rows, (int32_t)(packed / rows), (int32_t)(packed % rows)) : -1;
    const int32_t row = tc_bittcf_row_at(A->row_order, place);
    const int     used = row >= 0 && row_length(A, row) < TC_BITTCF_LONG_ROW;

    T->row_id[packed]    = used ? row : TC_BITTCF_NO_ROW;
    length[packed]       = (uint16_t)(used ? row_length(A, row) : 0);
    T->csr_first[packed] = length[packed] > 0 ? (int32_t)A->row_ptr[row] : 0;
  }
  for (int32_t r = 0; r < T->num_long; ++r) {
    for (int32_t s = 0; s < T->long_segments[r]; ++s) {
      const int32_t slot   = tc_bittcf_slot(T, r) + tc_bittcf_long_rows(T) * s;
      const int64_t packed = (int64_t)rows * T->num_row_windows + slot;

      T->row_id[packed]    = ~slot;
      length[packed]       = (uint16_t)tc_bittcf_at_most(row_length(A, T->long_row[r]) - TC_SPMM_SEGMENT * s, TC_SPMM_SEGMENT);
      T->csr_first[packed] = (int32_t)(A->row_ptr[T->long_row[r]] + TC_SPMM_SEGMENT * (int64_t)s);
    }
  }
}

/* --- windows */

static tc_bittcf_lists rows_of_window(const tc_csr *A, const tc_bittcf *T, const uint16_t *length, int32_t w)
{
  tc_bittcf_lists L = {.num = TC_BITTCF_ROWS};

  for (int32_t i = 0; i < L.num; ++i) {
    const int64_t packed = (int64_t)L.num * w + i;

    L.next[i] = A->col + T->csr_first[packed];
    L.end[i]  = L.next[i] + length[packed];
  }
  return L;
}

/* Where each window begins and how large it is */
static tc_status lay_out(const tc_csr *A, tc_bittcf *T, const uint16_t *length)
{
  int64_t val = 0, units = 0;

  for (int32_t w = 0; w < T->num_windows; ++w) {
    tc_bittcf_lists L = rows_of_window(A, T, length, w);
    int32_t         column, columns = 0, smallest = 0, largest = 0, num_groups;
    uint32_t        holders;
    int             wide;

    T->window[w].val = (uint32_t)val;
    for (int32_t i = 0; i < L.num; ++i) val += length[(int64_t)L.num * w + i];
    while (tc_bittcf_next_column(&L, &column, &holders)) {
      if (columns++ == 0) smallest = column;
      largest = column;
    }
    num_groups   = (columns + TC_BITTCF_GROUP - 1) / TC_BITTCF_GROUP;
    wide         = tc_bittcf_is_wide(smallest, largest);
    T->window[w] = (tc_bittcf_window){.val = T->window[w].val, .tiles = (uint32_t)units, .base = smallest, .num_groups = (uint16_t)num_groups, .wide = (uint8_t)wide};
    T->num_groups += num_groups;
    if (num_groups > T->widest_window) T->widest_window = num_groups;
    units += tc_bittcf_units(num_groups, wide);
  }
  T->tile_units = units;
  TC_CHECK(units <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of tiles, format bittcf names at most %u", (long long)units, UINT32_MAX);
  return TC_OK;
}

static void fill_tiles(const tc_csr *A, tc_bittcf *T, const uint16_t *length)
{
  memset(T->tiles, 0, 16 * (size_t)T->tile_units);
  for (int32_t w = 0; w < T->num_windows; ++w) {
    const tc_bittcf_window *W       = &T->window[w];
    uint32_t               *mask    = (uint32_t *)((char *)T->tiles + 16 * (size_t)W->tiles);
    void                   *columns = mask + W->num_groups;
    tc_bittcf_lists         L       = rows_of_window(A, T, length, w);
    int32_t                 column = 0, last = 0;
    uint32_t                holders;

    for (int32_t at = 0; at < TC_BITTCF_GROUP * W->num_groups; ++at) {
      if (!tc_bittcf_next_column(&L, &column, &holders)) column = last;
      last = column;
      if (W->wide) ((int32_t *)columns)[at] = column;
      else ((uint16_t *)columns)[at] = (uint16_t)(column - W->base);
      for (int32_t i = 0; i < L.num; ++i) mask[at / TC_BITTCF_GROUP] |= (holders >> i & 1) << (TC_BITTCF_GROUP * i + at % TC_BITTCF_GROUP);
    }
  }
}

/* Is row_order, where there is one, a permutation? */
static tc_status check_row_order(const tc_csr *A)
{
  unsigned char *seen  = NULL;
  int32_t        place = 0;

  if (A->row_order == NULL) return TC_OK;
  TC_CALL(tc_new_array(&seen, A->num_rows, sizeof *seen));
  memset(seen, 0, (size_t)A->num_rows);
  while (place < A->num_rows && A->row_order[place] >= 0 && A->row_order[place] < A->num_rows && !seen[A->row_order[place]]) seen[A->row_order[place++]] = 1;
  free(seen);
  TC_CHECK(place == A->num_rows, TC_ERR_ARG, "row %d in place %d of an order of %d rows, expected each row once", A->row_order[place], place, A->num_rows);
  return TC_OK;
}

/* What packs windows takes the first column of a row for its smallest, and each for another one */
static tc_status check_columns(const tc_csr *A)
{
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t k = A->row_ptr[i] + 1; k < A->row_ptr[i + 1]; ++k) TC_CHECK(A->col[k - 1] < A->col[k], TC_ERR_UNSUPPORTED, TC_BITTCF_DISORDER);
  }
  return TC_OK;
}

/* All but long rows, in the order that the view has */
static tc_status pack_windows(const tc_csr *A, tc_bittcf *T, int clusters)
{
  const int64_t packed = TC_BITTCF_ROWS * (int64_t)T->num_windows;
  uint16_t     *length = NULL;
  tc_status     status;

  TC_CALL(tc_new_array(&T->window, T->num_windows, sizeof *T->window));
  TC_CALL(tc_new_array(&T->row_id, packed, sizeof *T->row_id));
  TC_CALL(tc_new_array(&T->csr_first, packed, sizeof *T->csr_first));
  TC_CALL(tc_new_array(&length, packed, sizeof *length));
  place_rows(A, T, length);
  status = lay_out(A, T, length);
  if (status == TC_OK) status = tc_new_array(&T->tiles, T->tile_units, 16);
  if (status == TC_OK) fill_tiles(A, T, length);
  free(length);
  return status == TC_OK ? tc_bittcf_make_clusters(T, clusters) : status;
}

/* Back to what the view was before its windows were packed */
static void unpack_windows(tc_bittcf *T, const tc_bittcf *before)
{
  void *const arrays[] = {T->window, T->row_id, T->csr_first, T->tiles, T->place_first, T->place, T->cluster_first, T->cluster_list};

  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
  *T = *before;
}

static tc_status build_arrays(const tc_csr *A, tc_bittcf *T)
{
  tc_bittcf before;
  int32_t   clusters;
  int64_t   listed;

  T->num_rows     = A->num_rows;
  T->num_cols     = A->num_cols;
  T->num_nonzeros = A->row_ptr[A->num_rows];
  T->precision    = A->precision;
  choose_order(A, T);
  TC_CALL(list_long_rows(A, T));
  before = *T;
  TC_CALL(pack_windows(A, T, 1));
  if (!tc_bittcf_tries_natural_order(T)) return TC_OK;
  clusters = T->num_clusters;
  listed   = T->num_listed;
  unpack_windows(T, &before);
  tc_bittcf_set_natural_order(T);
  TC_CALL(pack_windows(A, T, 1));
  if (tc_bittcf_stays_natural(T, clusters, listed)) return TC_OK;
  unpack_windows(T, &before);
  return pack_windows(A, T, clusters > 0);
}

enum { MAX_ROWS = INT32_MAX - (1 << 24) }; // packed rows and thread blocks are counted in 32 bits

static tc_status bittcf_build(const tc_csr *A, void *view)
{
  tc_status status;

  TC_CALL(tc_csr_check(A));
  TC_CALL(check_columns(A));
  TC_CALL(check_row_order(A));
  TC_CHECK(A->num_rows <= MAX_ROWS, TC_ERR_LIMIT, "%d rows, format bittcf holds at most %d", A->num_rows, MAX_ROWS);
  memset(view, 0, sizeof(tc_bittcf));
  status = build_arrays(A, view);
  if (status != TC_OK) tc_format_destroy(&tc_format_bittcf, view);
  return status;
}

static int bittcf_arrays(const void *view, tc_array arrays[TC_MAX_ARRAYS])
{
  const tc_bittcf *T      = view;
  const int64_t    packed = TC_BITTCF_ROWS * (int64_t)T->num_windows;
  int              num    = 0;

#define ARRAY(member, role, count, item_size) arrays[num++] = (tc_array){#member, role, offsetof(tc_bittcf, member), (size_t)(count), item_size, 0}
  ARRAY(val, TC_ROLE_VALUE, T->num_nonzeros + 1, tc_value_bytes(T->precision));
  ARRAY(exponent, TC_ROLE_VALUE, T->precision == TC_PRECISION_F64 ? 0 : packed, sizeof *T->exponent);
  ARRAY(window, TC_ROLE_INDEX, T->num_windows, sizeof *T->window);
  ARRAY(row_id, TC_ROLE_INDEX, packed, sizeof *T->row_id);
  ARRAY(csr_first, TC_ROLE_INDEX, packed, sizeof *T->csr_first);
  ARRAY(long_row, TC_ROLE_INDEX, T->num_long, sizeof *T->long_row);
  ARRAY(long_segments, TC_ROLE_INDEX, T->num_long, sizeof *T->long_segments);
  ARRAY(long_first, TC_ROLE_INDEX, T->long_first ? tc_bittcf_long_blocks(T) + 1 : 0, sizeof *T->long_first);
  ARRAY(tiles, TC_ROLE_INDEX, T->tile_units, 16);
  ARRAY(place_first, TC_ROLE_INDEX, T->num_clusters > 0 ? T->num_windows : 0, sizeof *T->place_first);
  ARRAY(place, TC_ROLE_INDEX, T->num_places, sizeof *T->place);
  ARRAY(cluster_first, TC_ROLE_INDEX, T->num_clusters > 0 ? T->num_clusters + 1 : 0, sizeof *T->cluster_first);
  ARRAY(cluster_list, TC_ROLE_INDEX, T->num_listed, sizeof *T->cluster_list);
#undef ARRAY
  return num;
}

static void bittcf_stats(const void *view, tc_stats *stats)
{
  const tc_bittcf *T = view;

  stats->num_nonzeros     = T->num_nonzeros;
  stats->num_slots        = T->num_nonzeros;
  stats->num_tile_rows    = TC_BITTCF_ROWS * (int64_t)T->num_windows;
  stats->num_nonempty_rows = T->num_rows;
  snprintf(stats->classes, sizeof stats->classes, "%d windows, bricks of %dx%dx%d on %dx%dx%d, %lld groups, %.1f per tile, long %d, clusters %d (%.0f columns)", T->num_windows, T->order.brick[0], T->order.brick[1], T->order.brick[2], T->order.n[0], T->order.n[1],
           T->order.n[2], (long long)T->num_groups, T->num_groups > 0 ? (double)T->num_nonzeros / (double)T->num_groups : 0.0, T->num_long, T->num_clusters, T->num_clusters > 0 ? (double)tc_bittcf_listed(T) * T->num_listed / T->num_clusters : 0.0);
}

const tc_format tc_format_bittcf = {"bittcf", sizeof(tc_bittcf), TC_PRECISION_F16, bittcf_build, bittcf_arrays, bittcf_stats, NULL, NULL, TC_PRECISION_F64, NULL, NULL, NULL};
