#include "hybrid_checker.h"
#include "../src/format/hybrid_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, MAX_WIDTH = 255 };

/* A slice or a segment: the CSR entry at each place, -1 where there is none; the first of its exponents, and how many there are */
typedef struct {
  int32_t width, places, exponent, num_exponents, origin[LANES], by_rows, is_slice;
  int64_t entry[MAX_WIDTH + 1][LANES];
} piece;

static int32_t length_of(const tc_matrix *A, int32_t row)
{
  return (int32_t)(A->row_ptr[row + 1] - A->row_ptr[row]);
}

static const tc_matrix *sorted_matrix;

/* Long rows, tall rows, others, empty rows; tall are rows of more than 16 entries where the mean of all is at most 7.5, else of more than 40 */
static int row_class(int32_t row)
{
  const int32_t length = length_of(sorted_matrix, row), tall = (double)sorted_matrix->nnz / sorted_matrix->num_rows <= 7.5 ? 16 : 40;

  return length >= 256 ? 0 : length > tall ? 1 : length > 0 ? 2 : 3;
}

static int compare_rows(const void *a, const void *b)
{
  const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;

  if (row_class(i) != row_class(j)) return row_class(i) - row_class(j);
  if (row_class(i) == 2 && i / 1024 != j / 1024) return i / 1024 - j / 1024;
  if ((row_class(i) == 1 || row_class(i) == 2) && length_of(sorted_matrix, i) != length_of(sorted_matrix, j)) return length_of(sorted_matrix, j) - length_of(sorted_matrix, i);
  return i - j;
}

static void check_rows(const hybrid_checker *K)
{
  const tc_hybrid *H      = K->H;
  int32_t         *row_id = malloc(((size_t)H->num_rows + 1) * sizeof *row_id), longest = 0, num[4] = {0};

  for (int32_t i = 0; i < H->num_rows; ++i) row_id[i] = i;
  sorted_matrix = K->A;
  qsort(row_id, (size_t)H->num_rows, sizeof *row_id, compare_rows);
  for (int32_t i = 0; i < H->num_rows; ++i) {
    const int32_t length = length_of(K->A, row_id[i]), class = row_class(row_id[i]);

    ++num[class];
    ASSERT_CASE(H->row_id[i] == row_id[i], K->C, "row_id[%d] is %d, expected %d", i, H->row_id[i], row_id[i]);
    if (class == 3) continue;
    ASSERT_CASE(H->csr_first[i] == K->A->row_ptr[row_id[i]], K->C, "csr_first[%d] is %d", i, H->csr_first[i]);
    if (class == 0) continue;
    ASSERT_CASE(H->length[i - num[0]] == length, K->C, "length[%d] is %d, expected %d", i - num[0], H->length[i - num[0]], length);
    if (length > longest) longest = length;
  }
  ASSERT_CASE(H->num_long == num[0] && H->num_tall == num[1] && H->num_sliced == num[1] + num[2] && H->num_empty == num[3] && H->longest_sliced == longest, K->C, "wrong numbers of rows");
  ASSERT_CASE(H->num_slices == (H->num_sliced + LANES - 1) / LANES && H->row_group == K->row_group, K->C, "%d slices, groups of %d", H->num_slices, H->row_group);
  free(row_id);
}

/* The smallest and largest distance of the columns at place k from their origins */
static void find_span(const hybrid_checker *K, const piece *P, int32_t k, int64_t *lowest, int64_t *highest)
{
  *lowest  = INT64_MAX;
  *highest = INT64_MIN;
  for (int lane = 0; lane < LANES; ++lane) {
    const int64_t distance = P->entry[k][lane] >= 0 ? (int64_t)K->A->col[P->entry[k][lane]] - P->origin[lane] : 0;

    if (P->entry[k][lane] < 0) continue;
    if (distance < *lowest) *lowest = distance;
    if (distance > *highest) *highest = distance;
  }
}

static tc_hybrid_index_kind first_index_kind(const hybrid_checker *K, const piece *P, int may_shift)
{
  int shift = may_shift, u8 = 1, u16 = 1;

  for (int32_t k = 0; k < P->width; ++k) {
    int64_t lowest, highest;

    find_span(K, P, k, &lowest, &highest);
    for (int lane = 0; lane < LANES; ++lane) shift = shift && P->entry[k][lane] >= 0;
    shift = shift && lowest == highest;
    u8    = u8 && highest - lowest <= 0xfe;
    u16   = u16 && highest - lowest <= 0xfffe;
  }
  return shift ? TC_HYBRID_SHIFT : u8 ? TC_HYBRID_U8 : u16 ? TC_HYBRID_U16 : TC_HYBRID_I32;
}

/* Every byte of the index blocks of a piece */
static void check_columns(hybrid_checker *K, const piece *P, uint32_t index, tc_hybrid_index_kind kind, int may_shift)
{
  static const int64_t entry_bytes[] = {[TC_HYBRID_SHIFT] = 0, [TC_HYBRID_U8] = 1, [TC_HYBRID_U16] = 2, [TC_HYBRID_I32] = 4};
  static const int64_t pad[]         = {[TC_HYBRID_U8] = 0xff, [TC_HYBRID_U16] = 0xffff, [TC_HYBRID_I32] = TC_HYBRID_PAD};
  const unsigned char *byte          = (const unsigned char *)K->H->index + 16 * K->index;

  ASSERT_CASE(index == K->index, K->C, "index blocks begin at %u, expected %lld", index, (long long)K->index);
  ASSERT_CASE(kind == first_index_kind(K, P, may_shift), K->C, "index kind %d, expected %d", kind, first_index_kind(K, P, may_shift));
  for (int32_t k = 0; k < P->width; k += P->places) {
    int64_t base[4] = {0};

    for (int p = 0; p < 4 && kind != TC_HYBRID_I32; ++p, byte += 4) {
      int32_t stored;
      int64_t highest;

      memcpy(&stored, byte, sizeof stored);
      if (p < P->places && k + p < P->width) find_span(K, P, k + p, &base[p], &highest);
      ASSERT_CASE(stored == base[p], K->C, "base of place %d is %d, expected %lld", k + p, stored, (long long)base[p]);
    }
    for (int i = 0; i < P->places * LANES && kind != TC_HYBRID_SHIFT; ++i, byte += entry_bytes[kind]) {
      const int     lane = i / P->places, p = i % P->places;
      const int64_t entry    = k + p < P->width ? P->entry[k + p][lane] : -1;
      const int64_t expected = entry < 0 ? pad[kind] : kind == TC_HYBRID_I32 ? K->A->col[entry] : K->A->col[entry] - P->origin[lane] - base[p];
      int32_t       word     = 0;
      uint16_t      half     = 0;

      memcpy(&word, byte, kind == TC_HYBRID_I32 ? sizeof word : 0);
      memcpy(&half, byte, kind == TC_HYBRID_U16 ? sizeof half : 0);
      ASSERT_CASE((kind == TC_HYBRID_U8 ? *byte : kind == TC_HYBRID_U16 ? half : word) == expected, K->C, "kind %d, lane %d, place %d: not %lld", kind, lane, k + p, (long long)expected);
    }
  }
  K->index = (byte - (const unsigned char *)K->H->index) / 16;
  ++K->index_kinds[kind];
}

static int64_t find_among(const double *dictionary, int32_t size, double value)
{
  for (int64_t i = 0; i < size; ++i) {
    if (memcmp(&dictionary[i], &value, sizeof value) == 0) return i;
  }
  return -1;
}

static int64_t find_in_dictionary(const tc_hybrid *H, double value)
{
  return find_among(H->dictionary, *H->dictionary_size, value);
}

/* The nearest number with so many bits, of those that are a multiple of 2^lowest; the even one of two */
static double rounded(double value, int bits, int lowest)
{
  int exponent;

  if (value == 0 || !isfinite(value)) return value;
  frexp(value, &exponent);
  exponent = exponent - bits > lowest ? exponent - bits : lowest;
  return ldexp(rint(ldexp(value, -exponent)), exponent);
}

static int is_float(double value, tc_precision precision)
{
  const double there_and_back = (double)(float)value, nearest = fabs(rounded(value, 24, -2000));

  if (precision != TC_PRECISION_F64 && nearest >= 0x1p-126 && nearest <= 0x1.fffffep127) return 1;
  return !isnan(value) && memcmp(&there_and_back, &value, sizeof value) == 0;
}

static int is_bf16(double value)
{
  const double nearest = fabs(rounded(value, 8, -2000));

  return value == 0 || (nearest >= 0x1p-126 && nearest <= 0x1.fep127);
}

enum { MISFIT = 10000 };

/* The exponent of the row of a lane, or of the segment; MISFIT if it has none */
static int exponent_of(const hybrid_checker *K, const piece *P, int lane)
{
  double largest = 0;

  for (int32_t i = 0; i < P->width * LANES; ++i) {
    const int64_t entry = P->num_exponents == 1 || i % LANES == lane ? P->entry[i / LANES][i % LANES] : -1;

    if (entry >= 0 && !isfinite(K->A->val[entry])) return MISFIT;
    if (entry >= 0 && fabs(K->A->val[entry]) > largest) largest = fabs(K->A->val[entry]);
  }
  if (largest == 0) return 0;
  return ilogb(largest) < -986 || ilogb(largest) > 1014 ? MISFIT : ilogb(largest) - 14;
}

/* The first kind that fits, without collections */
static tc_hybrid_value_kind first_value_kind(const hybrid_checker *K, const piece *P, const int scale[LANES])
{
  const tc_precision precision = K->H->precision;
  int                d8 = *K->H->dictionary_size > 0, f32 = 1, bf16 = precision == TC_PRECISION_BF16, f16 = precision == TC_PRECISION_F16;

  for (int32_t i = 0; i < P->width * LANES; ++i) {
    const int64_t entry = P->entry[i / LANES][i % LANES];

    if (entry < 0) continue;
    d8   = d8 && find_in_dictionary(K->H, K->A->val[entry]) >= 0;
    f32  = f32 && is_float(K->A->val[entry], precision);
    bf16 = bf16 && is_bf16(K->A->val[entry]);
  }
  for (int lane = 0; lane < P->num_exponents && f16; ++lane) f16 = scale[lane] != MISFIT;
  return d8 ? TC_HYBRID_D8 : bf16 ? TC_HYBRID_BF16 : f16 ? TC_HYBRID_F16 : f32 ? TC_HYBRID_F32 : TC_HYBRID_F64;
}

static tc_hybrid_value_kind expected_kind(const hybrid_checker *K, const piece *P, const int scale[LANES])
{
  const tc_hybrid_value_kind kind = first_value_kind(K, P, scale);

  return K->collected && P->is_slice && kind == TC_HYBRID_F64 && K->H->precision == TC_PRECISION_F64 && *K->H->large_size > 0 ? TC_HYBRID_D16 : kind;
}

static void check_exponents(const hybrid_checker *K, const piece *P, tc_hybrid_value_kind kind, const int scale[LANES])
{
  for (int i = 0; i < P->num_exponents && K->H->precision == TC_PRECISION_F16; ++i) {
    const int expected = kind == TC_HYBRID_F16 ? scale[i] : 0;

    ASSERT_CASE(K->H->exponent[P->exponent + i] == expected, K->C, "exponent %d is %d, expected %d", P->exponent + i, K->H->exponent[P->exponent + i], expected);
  }
}

/* What two bytes of BF16 or F16 say */
static double number16(uint16_t bits, tc_hybrid_value_kind kind)
{
  const int    fraction_bits = kind == TC_HYBRID_F16 ? 10 : 7, bias = kind == TC_HYBRID_F16 ? 15 : 127, exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const double magnitude = ldexp(exponent > 0 ? fraction + (1 << fraction_bits) : fraction, (exponent > 0 ? exponent : 1) - bias - fraction_bits);

  return bits >> 15 ? -magnitude : magnitude;
}

static void check_number16(const hybrid_checker *K, const unsigned char *byte, tc_hybrid_value_kind kind, int scale, double value)
{
  uint16_t bits;
  double   expected, stored;

  memcpy(&bits, byte, sizeof bits);
  expected = kind == TC_HYBRID_F16 ? rounded(ldexp(value, -scale), 11, -24) : rounded(value, 8, -2000);
  stored   = number16(bits, kind);
  ASSERT_CASE(stored == expected && !signbit(stored) == !signbit(expected), K->C, "kind %d: %a is stored as %a 2^%d, expected %a", kind, value, stored, scale, expected);
  ASSERT_CASE(fabs(stored) < (kind == TC_HYBRID_F16 ? 65520 : INFINITY), K->C, "kind %d: not finite", kind);
}

/* Every byte of the values of a piece */
static void check_values(hybrid_checker *K, const piece *P, uint32_t val, tc_hybrid_value_kind kind)
{
  static const size_t  bytes_of[] = {[TC_HYBRID_D8] = 1, [TC_HYBRID_D16] = 2, [TC_HYBRID_BF16] = 2, [TC_HYBRID_F16] = 2, [TC_HYBRID_F32] = 4, [TC_HYBRID_F64] = 8};
  const size_t         bytes      = bytes_of[kind];
  const int            in_blocks  = bytes <= 2, by_rows = P->by_rows && !in_blocks; // the others have slots, or blocks that end with the last entry
  const unsigned char *byte = (const unsigned char *)K->H->val + 8 * LANES * K->val, *end = byte + 8 * LANES * P->width;
  int                  scale[LANES] = {0};

  ASSERT_CASE(val == K->val, K->C, "values begin at %u, expected %lld", val, (long long)K->val);
  for (int lane = 0; lane < LANES && K->H->precision == TC_PRECISION_F16; ++lane) scale[lane] = lane == 0 || P->num_exponents > 1 ? exponent_of(K, P, lane) : scale[0];
  ASSERT_CASE(kind == expected_kind(K, P, scale), K->C, "value kind %d, expected %d", kind, expected_kind(K, P, scale));
  check_exponents(K, P, kind, scale);
  for (int32_t i = 0; i < (in_blocks ? (P->width + P->places - 1) / P->places * P->places : P->width) * LANES; ++i) {
    const int32_t block = i / (P->places * LANES), in_block = i % (P->places * LANES), places = by_rows && block == P->width / 4 ? P->width % 4 : P->places;
    const int32_t k = in_blocks || by_rows ? block * P->places + in_block % places : i / LANES, lane = in_blocks || by_rows ? in_block / places : i % LANES;
    const int64_t entry  = k < P->width ? P->entry[k][lane] : -1;
    const double  value  = entry >= 0 ? K->A->val[entry] : 0.0;
    const float   narrow = (float)value;
    const uint8_t code   = entry >= 0 && kind == TC_HYBRID_D8 ? (uint8_t)find_in_dictionary(K->H, value) : 0;
    const uint16_t large = kind == TC_HYBRID_D16 ? (uint16_t)find_among(K->H->large, *K->H->large_size, value) : 0; // of padding, too

    if (kind == TC_HYBRID_D16) ASSERT_CASE(memcmp(byte, &large, bytes) == 0, K->C, "lane %d, entry %d: not code %d of %g", lane, k, large, value);
    else if (bytes == 2) check_number16(K, byte, kind, scale[lane], value);
    else ASSERT_CASE(memcmp(byte, kind == TC_HYBRID_D8 ? (const void *)&code : kind == TC_HYBRID_F32 ? (const void *)&narrow : &value, bytes) == 0, K->C, "kind %d, lane %d, entry %d: not %g", kind, lane, k, value);
    byte += bytes;
  }
  for (; byte < end && kind != TC_HYBRID_D16; ++byte) ASSERT_CASE(*byte == TEST_UNWRITTEN, K->C, "%lld bytes before the end of a piece of kind %d: written", (long long)(end - byte), kind);
  K->val += P->width;
  ++K->value_kinds[kind];
}

static int compare_bits(const void *a, const void *b)
{
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

  return (left > right) - (left < right);
}

static void check_dictionary(const hybrid_checker *K)
{
  const int64_t nnz = K->A->nnz, num = nnz < 4096 ? nnz : 4096;
  uint64_t      sample[4096], expected[256] = {0};
  int           distinct = 0, floats = 1;

  for (int32_t i = 0; i < num; i += 4) floats = floats && (double)(float)K->A->val[tc_hybrid_sampled(nnz, i)] == K->A->val[tc_hybrid_sampled(nnz, i)];
  for (int32_t i = 0; i < num; ++i) memcpy(&sample[i], &K->A->val[tc_hybrid_sampled(nnz, i)], sizeof *sample);
  qsort(sample, (size_t)num, sizeof *sample, compare_bits);
  for (int64_t i = 0; i < num; ++i) {
    if (i > 0 && sample[i] == sample[i - 1]) continue;
    if (distinct < 256) expected[distinct] = sample[i];
    ++distinct;
  }
  if (distinct > 256) memset(expected, distinct = 0, sizeof expected);
  ASSERT_CASE(*K->H->dictionary_size == distinct, K->C, "%d values in the dictionary, expected %d", *K->H->dictionary_size, distinct);
  ASSERT_CASE(K->H->dictionary_size[1] == (distinct > 0 ? 2 : floats ? 4 : 8), K->C, "%d bytes of a value", K->H->dictionary_size[1]);
  assert_memory_equal(K->H->dictionary, expected, sizeof expected);
}

static void check_segments(hybrid_checker *K, piece *P, unsigned char *seen)
{
  int32_t segment = 0;

  for (int32_t r = 0; r < K->H->num_long; ++r) {
    const int64_t first = K->A->row_ptr[K->H->row_id[r]], length = K->A->row_ptr[K->H->row_id[r] + 1] - first;

    ASSERT_CASE(K->H->long_first[r] == segment, K->C, "long row %d begins with segment %d, expected %d", r, K->H->long_first[r], segment);
    for (int64_t begin = 0; begin < length; begin += 2048, ++segment) {
      const tc_hybrid_segment *S       = &K->H->segment[segment];
      const int32_t            entries = length - begin < 2048 ? (int32_t)(length - begin) : 2048;

      ASSERT_CASE(S->long_row == r && S->entries == entries, K->C, "segment %d: %d entries of long row %d, expected %d of %d", segment, S->entries, S->long_row, entries, r);
      memset(P, 0, sizeof *P);
      P->width         = (entries + LANES - 1) / LANES;
      P->places        = 4;
      P->exponent      = segment;
      P->num_exponents = 1;
      for (int32_t e = 0; e < P->width * LANES; ++e) P->entry[e / LANES][e % LANES] = e < entries ? first + begin + e : -1;
      for (int32_t e = 0; e < entries; ++e) ++seen[first + begin + e];
      check_columns(K, P, S->index, S->index_kind, 0);
      check_values(K, P, S->val, S->value_kind);
    }
  }
  ASSERT_CASE(K->H->num_segments == segment && K->H->long_first[K->H->num_long] == segment, K->C, "%d segments, expected %d", K->H->num_segments, segment);
}

static void check_slices(hybrid_checker *K, piece *P, unsigned char *seen)
{
  for (int32_t s = 0; s < K->H->num_slices; ++s) {
    const tc_hybrid_slice *S   = &K->H->slice[s];
    const int32_t         *row = K->H->row_id + K->H->num_long + LANES * s, num = K->H->num_sliced - LANES * s < LANES ? K->H->num_sliced - LANES * s : LANES;
    int                    in_a_row = num == LANES, full = num == LANES;

    memset(P, 0, sizeof *P);
    for (int lane = 0; lane < num; ++lane) {
      P->width        = length_of(K->A, row[lane]) > P->width ? length_of(K->A, row[lane]) : P->width;
      P->origin[lane] = row[lane] / K->row_group * K->row_group;
      in_a_row        = in_a_row && row[lane] == row[0] + lane;
    }
    P->is_slice      = 1;
    P->by_rows       = s < K->H->num_by_rows && P->width > 2;
    P->places        = P->width == 1 ? 1 : P->width == 2 ? 2 : 4;
    P->exponent      = K->H->num_segments + LANES * s;
    P->num_exponents = num;
    for (int lane = 0; lane < LANES; ++lane) {
      const int32_t length = lane < num ? length_of(K->A, row[lane]) : 0;

      full = full && length == P->width;
      for (int32_t k = 0; k < P->width; ++k) {
        P->entry[k][lane] = k < length ? K->A->row_ptr[row[lane]] + k : -1;
        if (k < length) ++seen[P->entry[k][lane]];
      }
    }
    ASSERT_CASE(S->width == P->width && S->num_rows == num && S->full == full && S->row == (in_a_row ? row[0] : -1), K->C, "slice %d: width %d, rows %d, full %d, row %d", s, S->width, S->num_rows, S->full, S->row);
    check_columns(K, P, S->index, S->index_kind, 1);
    check_values(K, P, S->val, S->value_kind);
  }
}

void hybrid_check_view(hybrid_checker *K)
{
  unsigned char *seen = calloc((size_t)K->A->nnz + 1, 1);
  piece         *P    = malloc(sizeof *P);
  tc_stats       stats;

  K->val = K->index = 0;
  assert_true(seen && P && K->H->num_rows == K->A->num_rows && K->H->num_cols == K->A->num_cols && K->H->num_nonzeros == K->A->nnz);
  check_rows(K);
  check_dictionary(K);
  check_segments(K, P, seen);
  check_slices(K, P, seen);
  for (int64_t e = 0; e < K->A->nnz; ++e) ASSERT_CASE(seen[e] == 1, K->C, "entry %lld is stored %d times", (long long)e, seen[e]);
  ASSERT_CASE(K->H->num_slots == LANES * K->val && K->H->index_units == K->index, K->C, "%lld slots, %lld units", (long long)K->H->num_slots, (long long)K->H->index_units);
  tc_format_stats(&tc_format_hybrid, K->H, &stats);
  ASSERT_CASE(stats.column_bytes == 16 * K->index && stats.column_bytes < stats.index_bytes, K->C, "columns of %lld bytes, %lld in all", (long long)stats.column_bytes, (long long)stats.index_bytes);
  free(seen);
  free(P);
}

/* All values of slices of F64, as bits, those of +0.0 left out; each once */
static int64_t values_of_f64(const hybrid_checker *K, uint64_t *bits)
{
  int64_t num = 0, distinct = 0;

  for (int32_t i = 0; i < K->H->num_sliced; ++i) {
    const int32_t row = K->H->row_id[K->H->num_long + i];

    for (int64_t e = K->A->row_ptr[row]; e < K->A->row_ptr[row + 1] && K->H->slice[i / LANES].value_kind == TC_HYBRID_F64; ++e) memcpy(&bits[num++], &K->A->val[e], sizeof *bits);
  }
  qsort(bits, (size_t)num, sizeof *bits, compare_bits);
  for (int64_t i = 0; i < num; ++i) {
    if (bits[i] != 0 && (distinct == 0 || bits[i] != bits[distinct - 1])) bits[distinct++] = bits[i];
  }
  return distinct;
}

/* Collects the values of what has been checked: fewer than 4096 are the large dictionary, behind +0.0, and all slices of F64 codes; more change nothing */
static int64_t check_collected(const hybrid_checker *K, const tc_hybrid *H)
{
  hybrid_checker after = {.C = K->C, .A = K->A, .H = H, .row_group = K->row_group, .collected = 1};
  uint64_t      *bits  = malloc(((size_t)K->A->nnz + 1) * sizeof *bits), expected[4096] = {0};
  const int64_t  num   = values_of_f64(K, bits);
  const int      any   = num > 0 && num < 4096;

  if (any) memcpy(expected + 1, bits, (size_t)num * sizeof *bits);
  ASSERT_OK(tc_hybrid_collect_host(H));
  if (H->num_slices > 0 && H->precision == TC_PRECISION_F64) {
    ASSERT_CASE(*H->large_size == (any ? num + 1 : 0), K->C, "%d values collected, expected %lld", *H->large_size, (long long)num);
    assert_memory_equal(H->large, expected, sizeof expected);
    hybrid_check_view(&after);
  }
  free(bits);
  return after.value_kinds[TC_HYBRID_D16];
}

/* The same for the order that fragments want: tall slices by rows, or, where slices are few and not narrow, all */
static void check_arranged(const hybrid_checker *K, tc_hybrid *H, int64_t d16)
{
  const int      few    = H->num_slices < 4096 && H->num_slots >= 16 * (int64_t)H->num_sliced;
  hybrid_checker by_row = {.C = K->C, .A = K->A, .H = H, .row_group = K->row_group};

  tc_format_hybrid.arrange(H, TC_ARITHMETIC_FMA);
  ASSERT_CASE(H->num_by_rows == 0, K->C, "%d slices by rows for scalar arithmetic", H->num_by_rows);
  tc_format_hybrid.arrange(H, TC_ARITHMETIC_MMA);
  ASSERT_CASE(H->num_by_rows == (few ? H->num_slices : (H->num_tall + LANES - 1) / LANES), K->C, "%d slices by rows", H->num_by_rows);
  memset(H->val, TEST_UNWRITTEN, (size_t)H->num_slots * sizeof(double));
  ASSERT_OK(tc_hybrid_refill_host(H, K->A->val));
  hybrid_check_view(&by_row);
  for (int kind = 0; kind < TC_HYBRID_NUM_VALUE_KINDS; ++kind) ASSERT_CASE(by_row.value_kinds[kind] == K->value_kinds[kind], K->C, "%lld pieces of kind %d", (long long)by_row.value_kinds[kind], kind);
  ASSERT_CASE(check_collected(&by_row, H) == d16, K->C, "not %lld slices of codes of 16 bits", (long long)d16);
}

hybrid_checker hybrid_check_packed(const test_case *C, int32_t row_group, tc_precision precision)
{
  tc_csr         pattern = tc_matrix_pattern(&C->A);
  tc_hybrid      H;
  hybrid_checker K = {.C = C, .A = &C->A, .H = &H, .row_group = row_group > 1 ? row_group : 1};
  int64_t        d16;

  pattern.row_group = row_group;
  pattern.precision = precision;
  test_pack_pattern(&tc_format_hybrid, &pattern, C->A.val, &H);
  hybrid_check_view(&K);
  d16 = check_collected(&K, &H);
  check_arranged(&K, &H, d16);
  K.value_kinds[TC_HYBRID_D16] = d16;
  tc_format_destroy(&tc_format_hybrid, &H);
  return K;
}
