/*
  Building the hybrid format on the host: kernels/tc_hybrid.h defines every byte of the arrays, docs/formats.md shows them.
*/
#include "../../kernels/tc_hybrid.h"
#include "format.h"
#include "hybrid_host.h"
#include "hybrid_lanes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The distances of the columns of place k from their origins */
typedef struct {
  int32_t lowest[TC_HYBRID_LONG_ROW], highest[TC_HYBRID_LONG_ROW];
} distances;

static int32_t row_length(const tc_csr *A, int32_t row)
{
  return (int32_t)(A->row_ptr[row + 1] - A->row_ptr[row]);
}

static void count_rows(const tc_csr *A, tc_hybrid *H)
{
  const int32_t tall = tc_hybrid_tall(H->num_rows, H->num_nonzeros);

  for (int32_t i = 0; i < A->num_rows; ++i) {
    const int32_t length = row_length(A, i);

    if (length == 0) ++H->num_empty;
    else if (length < TC_HYBRID_LONG_ROW) {
      ++H->num_sliced;
      H->num_tall += length > tall;
      if (length > H->longest_sliced) H->longest_sliced = length;
    } else {
      ++H->num_long;
      H->num_segments += (int32_t)(((int64_t)length + TC_HYBRID_SEGMENT - 1) / TC_HYBRID_SEGMENT);
    }
  }
  H->num_slices = (int32_t)(((int64_t)H->num_sliced + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS);
}

/* Adds up the rows of each sliced length above `above` and up to `most` */
static void count_lengths(const tc_csr *A, int32_t first, int32_t end, int32_t above, int32_t most, int32_t rows[TC_HYBRID_LONG_ROW])
{
  memset(rows, 0, TC_HYBRID_LONG_ROW * sizeof *rows);
  for (int32_t i = first; i < end; ++i) {
    const int32_t length = row_length(A, i);

    if (length > above && length <= most) ++rows[length];
  }
}

/* Turns the numbers of rows into the places of the first of them, the longest at *place, which moves on */
static void hand_out(int32_t rows[TC_HYBRID_LONG_ROW], int32_t *place)
{
  for (int32_t length = TC_HYBRID_LONG_ROW - 1; length > 0; --length) {
    const int32_t first = *place;

    *place += rows[length];
    rows[length] = first;
  }
}

/* row_id, csr_first and length: counting sorts, of the tall rows and in each window */
static void order_rows(const tc_csr *A, tc_hybrid *H)
{
  const int32_t tall      = tc_hybrid_tall(H->num_rows, H->num_nonzeros);
  int32_t       next_long = 0, next_sliced = H->num_long, next_empty = H->num_long + H->num_sliced, next_tall[TC_HYBRID_LONG_ROW];

  count_lengths(A, 0, A->num_rows, tall, TC_HYBRID_LONG_ROW - 1, next_tall);
  hand_out(next_tall, &next_sliced);
  for (int32_t first = 0, end; first < A->num_rows; first = end) {
    int32_t next[TC_HYBRID_LONG_ROW];

    end = A->num_rows - first > TC_HYBRID_WINDOW ? first + TC_HYBRID_WINDOW : A->num_rows;
    count_lengths(A, first, end, 0, tall, next);
    hand_out(next, &next_sliced);
    for (int32_t i = first; i < end; ++i) {
      const int32_t length = row_length(A, i);
      int32_t       place;

      if (length == 0) place = next_empty++;
      else if (length >= TC_HYBRID_LONG_ROW) place = next_long++;
      else place = length > tall ? next_tall[length]++ : next[length]++;
      H->row_id[place] = i;
      if (length == 0) continue;
      H->csr_first[place] = (int32_t)A->row_ptr[i];
      if (length < TC_HYBRID_LONG_ROW) H->length[place - H->num_long] = (uint8_t)length;
    }
  }
}

static void make_segments(const tc_csr *A, tc_hybrid *H)
{
  int32_t segment = 0;

  for (int32_t r = 0; r < H->num_long; ++r) {
    H->long_first[r] = segment;
    for (int32_t left = row_length(A, H->row_id[r]); left > 0; left -= TC_HYBRID_SEGMENT) {
      H->segment[segment++] = (tc_hybrid_segment){.long_row = r, .entries = (uint16_t)(left < TC_HYBRID_SEGMENT ? left : TC_HYBRID_SEGMENT), .value_kind = TC_HYBRID_F64};
    }
  }
  H->long_first[H->num_long] = segment;
}

static void make_slices(tc_hybrid *H)
{
  for (int32_t s = 0; s < H->num_slices; ++s) {
    const int32_t  first = TC_HYBRID_SLICE_ROWS * s, rows = H->num_sliced - first < TC_HYBRID_SLICE_ROWS ? H->num_sliced - first : TC_HYBRID_SLICE_ROWS;
    const int32_t *row      = H->row_id + H->num_long + first;
    const uint8_t *length   = H->length + first;
    int            in_a_row = rows == TC_HYBRID_SLICE_ROWS, full = in_a_row;
    uint8_t        width = length[0];

    for (int32_t lane = 1; lane < rows; ++lane) {
      in_a_row = in_a_row && row[lane] == row[0] + lane;
      full     = full && length[lane] == length[0];
      if (length[lane] > width) width = length[lane];
    }
    H->slice[s] = (tc_hybrid_slice){.row = in_a_row ? row[0] : -1, .width = width, .value_kind = TC_HYBRID_F64, .num_rows = (uint8_t)rows, .full = (uint8_t)full};
  }
}

/* What the columns of each lane are counted from */
static void find_origins(const tc_hybrid *H, int64_t piece, int32_t origin[TC_HYBRID_SLICE_ROWS])
{
  memset(origin, 0, TC_HYBRID_SLICE_ROWS * sizeof *origin);
  if (piece >= H->num_segments) {
    const int32_t  slice = (int32_t)(piece - H->num_segments);
    const int32_t *row   = H->row_id + H->num_long + TC_HYBRID_SLICE_ROWS * slice;

    for (int32_t lane = 0; lane < H->slice[slice].num_rows; ++lane) origin[lane] = H->row_group == 1 ? row[lane] : row[lane] / H->row_group * H->row_group;
  }
}

TC_INLINE void measure_lanes(const tc_csr *A, const tc_hybrid_lanes *L, const int32_t *origin, int32_t stride, distances *D)
{
  for (int32_t k = 0; k < L->width; ++k) {
    D->lowest[k]  = INT32_MAX;
    D->highest[k] = INT32_MIN;
  }
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const int32_t *col = A->col + L->first[lane];

    for (int32_t k = 0; k < L->count[lane]; ++k) {
      const int32_t distance = col[stride * k] - origin[lane];

      D->lowest[k]  = distance < D->lowest[k] ? distance : D->lowest[k];
      D->highest[k] = distance > D->highest[k] ? distance : D->highest[k];
    }
  }
}

static void measure(const tc_csr *A, const tc_hybrid_lanes *L, const int32_t *origin, distances *D)
{
  if (L->stride == 1) measure_lanes(A, L, origin, 1, D);
  else measure_lanes(A, L, origin, TC_HYBRID_SLICE_ROWS, D);
}

/* The first kind that fits; SHIFT only in a full slice */
static tc_hybrid_index_kind choose_kind(const distances *D, int32_t width, int full)
{
  uint32_t widest = 0;

  for (int32_t k = 0; k < width; ++k) {
    const uint32_t span = (uint32_t)D->highest[k] - (uint32_t)D->lowest[k];

    if (span > widest) widest = span;
  }
  if (widest == 0 && full) return TC_HYBRID_SHIFT;
  return widest <= 0xfe ? TC_HYBRID_U8 : widest <= 0xfffe ? TC_HYBRID_U16 : TC_HYBRID_I32;
}

static int64_t index_units(const tc_hybrid_lanes *L)
{
  return (int64_t)((L->width + L->places - 1) / L->places) * tc_hybrid_block_units(*L->index_kind, L->places);
}

/* The kinds of all index blocks, and where the values and columns of each piece begin */
static tc_status lay_out(const tc_csr *A, tc_hybrid *H)
{
  int64_t val = 0, index = 0;

  for (int64_t piece = 0; piece < (int64_t)H->num_segments + H->num_slices; ++piece) {
    int32_t         origin[TC_HYBRID_SLICE_ROWS];
    tc_hybrid_lanes L;
    distances       D;

    find_origins(H, piece, origin);
    tc_hybrid_lanes_of(H, piece, &L);
    measure(A, &L, origin, &D);
    *L.val        = (uint32_t)val;
    *L.index      = (uint32_t)index;
    *L.index_kind = (uint8_t)choose_kind(&D, L.width, piece >= H->num_segments && H->slice[piece - H->num_segments].full);
    val += L.width;
    index += index_units(&L);
  }
  H->num_slots   = TC_HYBRID_SLICE_ROWS * val;
  H->index_units = index;
  TC_CHECK(index <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of columns, format hybrid names at most %u", (long long)index, UINT32_MAX);
  return TC_OK;
}

static void put_bases(const tc_hybrid_lanes *L, const distances *D, char *blocks)
{
  const size_t block_bytes = 16 * (size_t)tc_hybrid_block_units(*L->index_kind, L->places);

  for (int32_t k = 0; k < L->width; k += L->places) {
    int32_t *base = (int32_t *)(blocks + block_bytes * (size_t)(k / L->places));

    for (int32_t p = 0; p < 4; ++p) base[p] = p < L->places && k + p < L->width ? D->lowest[k + p] : 0;
  }
}

/* The columns of one lane, `block` being the first index block and `base` what is to be subtracted from column k */
#define PUT_LANE(type, first_entry, base) \
  do { \
    for (int32_t k = 0; k < count; block += block_bytes) { \
      type *entry = (type *)(block + (first_entry)) + places * lane; \
\
      for (int32_t p = 0; p < places && k < count; ++p, ++k) entry[p] = (type)(col[stride * k] - (base)); \
    } \
  } while (0)

TC_INLINE void put_lane(const int32_t *col, int32_t count, int32_t origin, const distances *D, int32_t lane, int32_t stride, int32_t places, tc_hybrid_index_kind kind, char *block)
{
  const size_t block_bytes = 16 * (size_t)tc_hybrid_block_units(kind, places);

  if (kind == TC_HYBRID_U8) PUT_LANE(uint8_t, 16, origin + D->lowest[k]);
  else if (kind == TC_HYBRID_U16) PUT_LANE(uint16_t, 16, origin + D->lowest[k]);
  else if (kind == TC_HYBRID_I32) PUT_LANE(int32_t, 0, 0);
}

static void make_columns(const tc_csr *A, tc_hybrid *H)
{
  static const int pad_byte[TC_HYBRID_NUM_INDEX_KINDS] = {[TC_HYBRID_U8] = 0xff, [TC_HYBRID_U16] = 0xff, [TC_HYBRID_I32] = TC_HYBRID_PAD & 0xff};

  for (int64_t piece = 0; piece < (int64_t)H->num_segments + H->num_slices; ++piece) {
    int32_t         origin[TC_HYBRID_SLICE_ROWS];
    tc_hybrid_lanes L;
    distances       D;
    char           *blocks;

    find_origins(H, piece, origin);
    tc_hybrid_lanes_of(H, piece, &L);
    measure(A, &L, origin, &D);
    blocks = (char *)H->index + 16 * (size_t)*L.index;
    memset(blocks, pad_byte[*L.index_kind], 16 * (size_t)index_units(&L));
    if (*L.index_kind != TC_HYBRID_I32) put_bases(&L, &D, blocks);
    for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
      const int32_t *col = A->col + L.first[lane];

      if (L.stride == 1 && L.places == 4) put_lane(col, L.count[lane], origin[lane], &D, lane, 1, 4, *L.index_kind, blocks);
      else put_lane(col, L.count[lane], origin[lane], &D, lane, L.stride, L.places, *L.index_kind, blocks);
    }
  }
}

static tc_status build_arrays(const tc_csr *A, tc_hybrid *H)
{
  H->num_rows     = A->num_rows;
  H->num_cols     = A->num_cols;
  H->num_nonzeros = A->row_ptr[A->num_rows];
  H->row_group    = A->row_group > 1 ? A->row_group : 1;
  H->precision    = A->precision;
  count_rows(A, H);
  TC_CALL(tc_new_array(&H->slice, H->num_slices, sizeof *H->slice));
  TC_CALL(tc_new_array(&H->segment, H->num_segments, sizeof *H->segment));
  TC_CALL(tc_new_array(&H->long_first, (int64_t)H->num_long + 1, sizeof *H->long_first));
  TC_CALL(tc_new_array(&H->row_id, H->num_rows, sizeof *H->row_id));
  TC_CALL(tc_new_array(&H->csr_first, (int64_t)H->num_long + H->num_sliced, sizeof *H->csr_first));
  TC_CALL(tc_new_array(&H->length, H->num_sliced, sizeof *H->length));
  order_rows(A, H);
  make_segments(A, H);
  make_slices(H);
  TC_CALL(lay_out(A, H));
  TC_CALL(tc_new_array(&H->index, H->index_units, 16));
  make_columns(A, H);
  return TC_OK;
}

enum { MAX_OVERHANG = 1 << 24 }; // kernels count rows in 32 bits, rounded up to whole launches

static tc_status hybrid_build(const tc_csr *A, void *view)
{
  tc_status status;

  TC_CALL(tc_csr_check(A));
  TC_CHECK(A->num_rows <= INT32_MAX - MAX_OVERHANG, TC_ERR_LIMIT, "%d rows, format hybrid holds at most %d", A->num_rows, INT32_MAX - MAX_OVERHANG);
  memset(view, 0, sizeof(tc_hybrid));
  status = build_arrays(A, view);
  if (status != TC_OK) tc_format_destroy(&tc_format_hybrid, view);
  return status;
}

static int hybrid_arrays(const void *view, tc_array arrays[TC_MAX_ARRAYS])
{
  const tc_hybrid *H   = view;
  int              num = 0;

#define ARRAY(member, role, in_detail, count, item_size) arrays[num++] = (tc_array){#member, role, offsetof(tc_hybrid, member), (size_t)(count), item_size, in_detail}
  ARRAY(val, TC_ROLE_VALUE, 0, H->num_slots, sizeof(double));
  ARRAY(dictionary, TC_ROLE_VALUE, 0, TC_HYBRID_DICTIONARY, sizeof *H->dictionary);
  ARRAY(dictionary_size, TC_ROLE_VALUE, 0, 2, sizeof *H->dictionary_size);
  ARRAY(large, TC_ROLE_VALUE, 0, tc_hybrid_large(H), sizeof *H->large);
  ARRAY(large_size, TC_ROLE_VALUE, 0, 1, sizeof *H->large_size);
  ARRAY(exponent, TC_ROLE_VALUE, 0, H->precision == TC_PRECISION_F16 ? (int64_t)H->num_segments + H->num_sliced : 0, sizeof *H->exponent);
  ARRAY(slice, TC_ROLE_INDEX, 1, H->num_slices, sizeof *H->slice);
  ARRAY(segment, TC_ROLE_INDEX, 1, H->num_segments, sizeof *H->segment);
  ARRAY(long_first, TC_ROLE_INDEX, 0, (int64_t)H->num_long + 1, sizeof *H->long_first);
  ARRAY(row_id, TC_ROLE_INDEX, 0, H->num_rows, sizeof *H->row_id);
  ARRAY(csr_first, TC_ROLE_INDEX, 0, (int64_t)H->num_long + H->num_sliced, sizeof *H->csr_first);
  ARRAY(length, TC_ROLE_INDEX, 1, H->num_sliced, sizeof *H->length);
  ARRAY(index, TC_ROLE_INDEX, 0, H->index_units, 16);
  ARRAY(partial, TC_ROLE_SCRATCH, 0, H->num_segments, sizeof *H->partial);
  ARRAY(arrived, TC_ROLE_SCRATCH, 0, H->num_long, sizeof *H->arrived);
#undef ARRAY
  return num;
}

static void hybrid_stats(const void *view, tc_stats *stats)
{
  const tc_hybrid *H = view;

  stats->num_nonzeros      = H->num_nonzeros;
  stats->num_slots         = H->num_slots;
  stats->num_nonempty_rows = H->num_rows - H->num_empty;
  stats->num_tile_rows     = H->num_sliced;
  stats->longest_tile_row  = H->longest_sliced;
  stats->product_bytes     = tc_hybrid_product_bytes(H);
  stats->slot_bytes        = tc_hybrid_value_bytes(H);
  stats->column_bytes      = 16 * H->index_units;
  snprintf(stats->classes, sizeof stats->classes, "long %d (%d segments), sliced %d in %d slices, empty %d", H->num_long, H->num_segments, H->num_sliced, H->num_slices, H->num_empty);
}

/* Fragments want by rows what they multiply */
static void hybrid_arrange(void *view, tc_arithmetic arithmetic)
{
  tc_hybrid *H = view;

  H->num_by_rows = arithmetic == TC_ARITHMETIC_MMA ? tc_hybrid_num_wide(H) : 0;
}

static void hybrid_remember(void *view, void *shared)
{
  tc_hybrid *H = view;

  H->repeats  = shared;
  *H->repeats = (tc_hybrid_repeats){.distinct = -1, .large = -1};
}

static int64_t hybrid_product_bytes(const void *view)
{
  return tc_hybrid_product_bytes(view);
}

/* Bytes of the values of a piece */
static int64_t value_bytes(tc_hybrid_value_kind kind, int32_t width, int32_t places)
{
  static const int bytes[TC_HYBRID_NUM_VALUE_KINDS] = {[TC_HYBRID_D8] = 1, [TC_HYBRID_D16] = 2, [TC_HYBRID_BF16] = 2, [TC_HYBRID_F16] = 2, [TC_HYBRID_F32] = 4, [TC_HYBRID_F64] = 8};

  return (int64_t)TC_HYBRID_SLICE_ROWS * bytes[kind] * (bytes[kind] <= 2 ? (width + places - 1) / places * places : width);
}

static void hybrid_detail(const void *view, tc_detail *detail)
{
  const tc_hybrid *H = view;
  int64_t          indexed[TC_HYBRID_NUM_INDEX_KINDS] = {0}, valued[TC_HYBRID_NUM_VALUE_KINDS] = {0};
  const double     percent = H->num_nonzeros > 0 ? 100.0 / (double)H->num_nonzeros : 0;
  char             sixteen[32] = "";

  detail->value_bytes = (int64_t)sizeof(double) * TC_HYBRID_DICTIONARY;
  for (int32_t s = 0; s < H->num_segments; ++s) {
    const tc_hybrid_segment *S = &H->segment[s];

    indexed[S->index_kind] += S->entries;
    valued[S->value_kind] += S->entries;
    detail->value_bytes += value_bytes(S->value_kind, (S->entries + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS, TC_HYBRID_BLOCK / TC_HYBRID_SLICE_ROWS);
  }
  for (int32_t s = 0; s < H->num_slices; ++s) {
    const tc_hybrid_slice *S       = &H->slice[s];
    int64_t                entries = 0;

    for (int32_t lane = 0; lane < S->num_rows; ++lane) entries += H->length[TC_HYBRID_SLICE_ROWS * s + lane];
    indexed[S->index_kind] += entries;
    valued[S->value_kind] += entries;
    detail->value_bytes += value_bytes(S->value_kind, S->width, tc_hybrid_places(S->width));
  }
  if (H->precision == TC_PRECISION_F16) detail->value_bytes += ((int64_t)H->num_segments + H->num_sliced) * (int64_t)sizeof *H->exponent;
  if (H->precision >= TC_PRECISION_BF16) {
    const int f16 = H->precision == TC_PRECISION_F16;

    snprintf(sixteen, sizeof sixteen, ", %s %.0f%%", f16 ? "fp16" : "bf16", percent * (double)valued[f16 ? TC_HYBRID_F16 : TC_HYBRID_BF16]);
  } else if (valued[TC_HYBRID_D16] > 0) {
    detail->value_bytes += (int64_t)sizeof(double) * TC_HYBRID_LARGE;
    snprintf(sixteen, sizeof sixteen, ", d16 %.0f%%", percent * (double)valued[TC_HYBRID_D16]);
  }
  snprintf(detail->kinds, sizeof detail->kinds, "columns shift %.0f%%, u8 %.0f%%, u16 %.0f%%, i32 %.0f%%; values d8 %.0f%%%s, f32 %.0f%%, f64 %.0f%%", percent * (double)indexed[TC_HYBRID_SHIFT], percent * (double)indexed[TC_HYBRID_U8],
           percent * (double)indexed[TC_HYBRID_U16], percent * (double)indexed[TC_HYBRID_I32], percent * (double)valued[TC_HYBRID_D8], sixteen, percent * (double)valued[TC_HYBRID_F32], percent * (double)valued[TC_HYBRID_F64]);
}

const tc_format tc_format_hybrid = {"hybrid", sizeof(tc_hybrid), TC_PRECISION_F16, hybrid_build, hybrid_arrays, hybrid_stats, hybrid_detail, tc_hybrid_spmv_host, TC_PRECISION_F64, hybrid_arrange, hybrid_remember, hybrid_product_bytes};
