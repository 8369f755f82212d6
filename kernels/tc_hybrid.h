/*
  tc_hybrid - the packed arrays of the hybrid format, the same on host and device: every row class in its best shape, with narrow columns and values where that
  loses nothing. Pictures and the reasons: docs/formats.md.

  Rows of 1 to 255 entries live in slices of 32 rows: first the tall ones, of more than tc_hybrid_tall() entries, sorted by length, descending, stable, over the whole
  matrix, then the others, sorted likewise within windows of TC_HYBRID_WINDOW matrix rows. Rows of 256 entries and more are cut into segments. Rows without entries
  are only listed. Order of row_id: long | rows of slices | empty.

  Slice (sliced ELLPACK): entry k of the row in lane r is value slot 32 * (slice.val + k) + r. Its columns are index blocks, one for every four k, at 16-byte unit
  slice.index. The entries of a row keep the order of CSR. The first num_by_rows slices, but for those of width 1 and 2, have their F64 and F32 values by rows: in
  blocks of four k, the last one of what is left, lane by lane (tc_hybrid_slot()), so that the 8 x 4 of a fragment lie next to each other.
  Segment: up to TC_HYBRID_SEGMENT entries of a long row in the order of CSR; entry e is value slot 32 * segment.val + e. Its columns are index blocks too, one for
  every 128 entries: entry e is lane e % 32, place e / 32 % 4 of block e / 128.

  Index block: four int32 bases (none if TC_HYBRID_I32), then `places` entries for each of 32 lanes, lane by lane, each of 0 (SHIFT), 1, 2 or 4 bytes.
  places = tc_hybrid_places(): 4, but 1 and 2 in slices of that width. The column of place p in a lane is
    SHIFT, U8, U16: origin + base[p] + entry, origin the lane's row / row_group * row_group in a slice, 0 in a segment;     I32: entry
  Padding has entry 0xff, 0xffff or TC_HYBRID_PAD, and value 0 in whatever kind; SHIFT has none. Bases of places beyond the width are 0.
  A slice takes the first kind that fits: SHIFT if it has 32 rows of the same length and each column distance from the origin is the same in all rows; U8, U16 if the
  distances of a place span at most 0xfe, 0xfffe, base the smallest. Segments: U8, U16, I32.

  Value kinds: F64; F32, where every value is exactly a float and none is a NaN; D8, where every value's bits are in the dictionary (values of places beyond the row: +0.0, D8: 0).
  A narrow kind uses the first bytes of the slots of its slice or segment: F32 like F64 with 4 bytes per slot; D8, D16, BF16 and F16 in blocks of `places` x 32 entries of 1
  or 2 bytes, like the index.
  The kinds of values are set, tested again and widened by every refill; the first that fits of D8, F32, F64.
  With another precision than F64 values may be rounded to nearest, ties to even, and the first kind that fits is taken of
    F32: D8, F32, F64    BF16: D8, BF16, F32, F64    F16: D8, F16, F32, F64
  F32 then fits where every value is exactly a float or is rounded to a normal one; BF16 where every value is zero or is rounded to a normal number; F16 where every row
  of a slice, or the segment, can be scaled (tc_f16_scale()): its values are divided by 2^exponent before they are rounded, and may become subnormal or zero.
  The dictionary: the distinct values, ordered by their bits as unsigned integers, of the sample csr_val[tc_hybrid_sampled(nnz, i)], i < min(nnz, TC_HYBRID_SAMPLE); none
  (size 0) if they are more than TC_HYBRID_DICTIONARY. Zeros follow. Its size, and the bytes of a value by this sample: TC_HYBRID_CODE_BYTES if there is a dictionary, 4 if
  values 0, TC_HYBRID_FLOAT_EVERY, ... of the sample are floats, else 8. In precision F64 refills that know of each other (tc_hybrid_repeats) leave an empty dictionary as it is,
  but for every TC_HYBRID_LOOK_EVERYth.
  D16: in precision F64 slices that a refill has left as F64 become codes of 16 bits by a step of its own (tc_converter.collect), all of them or none. The large dictionary: +0.0, then the other
  values of these slices, distinct and ordered as above, then zeros; none (size 0) where these are none or TC_HYBRID_LARGE and more. The next refill begins anew. Where F64 was what a
  value takes, TC_HYBRID_CODE_BYTES is then.
*/
#pragma once
#include "tc_base.h"

enum {
  TC_HYBRID_SLICE_ROWS  = 32,
  TC_HYBRID_WINDOW      = 1024,
  TC_HYBRID_TALL        = 40,
  TC_HYBRID_TALL_SPARSE = 16,
  TC_HYBRID_LONG_ROW    = 256,  // these two are part of the definition of the result's bits: docs/formats.md, "The order of the additions"
  TC_HYBRID_SEGMENT     = 2048,
  TC_HYBRID_BLOCK       = 128, // entries of an index block of four places
  TC_HYBRID_FEW_SLICES  = 4096,
  TC_HYBRID_WIDE_MEAN   = 16, // slots per row
  TC_HYBRID_DICTIONARY  = 256,
  TC_HYBRID_LARGE       = 4096,
  TC_HYBRID_SAMPLE      = 4096,
  TC_HYBRID_LOOK_EVERY  = 8,
  TC_HYBRID_FLOAT_EVERY = 4, // values of the sample
  TC_HYBRID_CODE_BYTES  = 2, // what a value takes where some are not in the dictionary, to choose by: 1 to 2.7 were found
  TC_HYBRID_PAD         = -0x7f7f7f80 // negative; not -1, see TC_DASP_PAD
};

typedef enum { TC_HYBRID_SHIFT, TC_HYBRID_U8, TC_HYBRID_U16, TC_HYBRID_I32, TC_HYBRID_NUM_INDEX_KINDS } tc_hybrid_index_kind;
typedef enum { TC_HYBRID_D8, TC_HYBRID_F32, TC_HYBRID_F64, TC_HYBRID_BF16, TC_HYBRID_F16, TC_HYBRID_D16, TC_HYBRID_NUM_VALUE_KINDS } tc_hybrid_value_kind;

/* 16 bytes, read in one piece */
typedef struct {
  uint32_t val;   // first value, in units of 32 slots
  uint32_t index; // first index block, in units of 16 bytes
  int32_t  row;   // matrix row of lane 0 if the 32 rows follow each other, else -1: see row_id
  uint8_t  width; // entries of its longest row
  uint8_t  index_kind, value_kind;
  uint8_t  num_rows : 7; // 32, less in the last slice
  uint8_t  full : 1;     // 32 rows of `width` entries each
} tc_hybrid_slice;

typedef struct {
  uint32_t val, index; // as above
  int32_t  long_row;   // 0 .. num_long - 1
  uint16_t entries;    // 1 .. TC_HYBRID_SEGMENT
  uint8_t  index_kind, value_kind;
} tc_hybrid_segment;

/* What refills of a matrix know of those before, in memory of the host that kernels reach */
typedef struct {
  volatile int32_t distinct; // size of the dictionary that the last search made; -1: not known yet
  volatile int32_t bytes;    // of a value, as that search found; 0: none has ended
  int32_t          since;    // refills that did not search since then
  int32_t          ahead;    // the next refill finds its dictionary made (tc_converter.search)
  volatile int32_t large;    // size of the large dictionary that the last collection made; -1: not known yet
  int32_t          skipped;  // collections since then that were not made
} tc_hybrid_repeats;

typedef struct {
  int32_t            num_rows, num_cols;
  int64_t            num_nonzeros, num_slots; // value slots, a multiple of 32
  int64_t            index_units;             // of 16 bytes
  int32_t            row_group;               // >= 1: rows of a node, whose columns are taken relative to the node's first row
  int32_t            num_long, num_segments, num_sliced, num_slices, num_empty; // rows, their segments, rows, their slices, rows
  int32_t            num_tall;                                                  // sliced rows of more than tc_hybrid_tall() entries
  int32_t            longest_sliced;                                            // entries
  int32_t            num_by_rows;                                               // slices; set after a build for the kernel that multiplies (tc_format.arrange())
  tc_hybrid_slice   *slice;      // [num_slices]
  tc_hybrid_segment *segment;    // [num_segments], in the order of the long rows
  int32_t           *long_first; // [num_long + 1], first segment of each long row
  int32_t           *row_id;     // [num_rows], the matrix row of each packed row
  int32_t           *csr_first;  // [num_long + num_sliced], where each packed row begins in CSR
  uint8_t           *length;     // [num_sliced], entries of each sliced row
  void              *index;      // [16 * index_units] bytes
  void              *val;        // [8 * num_slots] bytes
  double            *dictionary; // [TC_HYBRID_DICTIONARY]
  int32_t           *dictionary_size; // [2] and the bytes of a value
  double            *large;           // [TC_HYBRID_LARGE] in precision F64, else [0]
  int32_t           *large_size;      // [1]
  double            *partial;    // [num_segments], scratch: sum of each segment
  int32_t           *arrived;    // [num_long], scratch, zero between products: segments of the row that have finished
  int16_t           *exponent;   // [num_segments + num_sliced] with precision F16, else [0]: of each segment, then of each sliced row; 0 where the kind is another
  tc_precision       precision;
  tc_hybrid_repeats *repeats; // [1]; NULL: every refill searches
} tc_hybrid;

/*
  The entry of CSR that is value i of the sample: one of the i-th of TC_HYBRID_SAMPLE equal parts, by a hash. Equal steps meet the same places of rows that are alike: of ex56 -ne 35, 81 entries a
  row, a step of 2616 finds 92 of 469 values, and 98% of its slices have others (docs/performance-spmv.md, step 22).
*/
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int64_t tc_hybrid_sampled(int64_t nnz, int32_t i)
{
  const uint32_t part = nnz > TC_HYBRID_SAMPLE ? (uint32_t)(nnz / TC_HYBRID_SAMPLE) : 1;
  uint32_t       hash = (uint32_t)i * 0x9e3779b1u;

  hash ^= hash >> 15;
  hash *= 0x85ebca77u;
  hash ^= hash >> 13;
  return (int64_t)i * part + (int64_t)((uint64_t)hash * part >> 32);
}

/*
  Does the next refill search for values that repeat? On the device a search is a launch of its own, whose end the other waits for: 4 to 6 us, a third to a half of the refill of a small
  matrix (docs/performance-conversion.md). What is not known yet, because the device has not come so far, may be what the search before found; any answer loses nothing. With another
  precision than F64 it would: a value that is in the dictionary is not rounded, so there every refill searches.
*/
static inline int tc_hybrid_searches(const tc_hybrid *H)
{
  tc_hybrid_repeats *repeats = H->repeats;

  if (repeats == NULL || H->precision != TC_PRECISION_F64) return 1;
  if (repeats->ahead) return repeats->ahead = 0;
  if (repeats->distinct == 0 && ++repeats->since < TC_HYBRID_LOOK_EVERY) return 0;
  repeats->distinct = -1;
  repeats->since    = 0;
  return 1;
}

/* The same for collections: where the last one came to nothing, refills leave out some */
static inline int tc_hybrid_collects(const tc_hybrid *H)
{
  tc_hybrid_repeats *repeats = H->repeats;

  if (H->precision != TC_PRECISION_F64) return 0;
  if (repeats == NULL) return 1;
  if (repeats->large == 0 && ++repeats->skipped < TC_HYBRID_LOOK_EVERY) return 0;
  repeats->large   = -1;
  repeats->skipped = 0;
  return 1;
}

static inline int32_t tc_hybrid_large(const tc_hybrid *H)
{
  return H->precision == TC_PRECISION_F64 ? TC_HYBRID_LARGE : 0;
}

/*
  Rows of more entries are tall. Where rows have few in the mean, one of 17 to 40 holds up a warp of short ones; where they have more, sorting those over the whole
  matrix takes them away from the x of their neighbours. Measured on an H200 with 16 instead of 40, ms: webbase:1000000 (2.9 in the mean) 0.0335 to 0.0295,
  like_ASIC_680k (5.7) 0.0298 to 0.0266, like_mac_econ_fwd500 (6.2) 0.0128 to 0.0109, circuit:3000000 (5.9) no change; like_FullChip (8.9) 0.178 to 0.190,
  like_circuit5M (10.7) 0.383 to 0.452, like_eu-2005 (22) 0.098 to 0.101.
*/
static inline int32_t tc_hybrid_tall(int32_t num_rows, int64_t num_nonzeros)
{
  return 2 * num_nonzeros <= 15 * (int64_t)num_rows ? TC_HYBRID_TALL_SPARSE : TC_HYBRID_TALL;
}

/* What a value takes at most by its precision, or by what refills have found, if that is less */
static inline int32_t tc_hybrid_value_bytes(const tc_hybrid *H)
{
  const int32_t most  = H->precision == TC_PRECISION_F64 ? 8 : H->precision == TC_PRECISION_F32 || H->precision == TC_PRECISION_TF32 ? 4 : 2;
  const int32_t found = H->repeats != NULL ? H->repeats->bytes : 0;

  return found > 0 && found < most ? found : most;
}

/* What a product touches, if all values take that, vectors of doubles included */
static inline int64_t tc_hybrid_product_bytes(const tc_hybrid *H)
{
  return tc_hybrid_value_bytes(H) * H->num_slots + 8 * ((int64_t)H->num_rows + H->num_cols) + 16 * H->index_units;
}

/*
  Does that fit an L2 cache of so many bytes, so that the next product finds it there? Else loads say that they are the last ones (ld.global.cs), which are the first to be replaced. Measured on an
  H200, 60 MB, product after product, us, with such loads and with ordinary ones, and MB: stencil27_window:56 16.0, 12.8 (42.6); stencil27:57 12.8, 10.3 (44.6); like_pdb1HYS 13.4, 10.8 (45.0); p2:27 14.5, 13.2
  (46.4); like_cop20k_A:160000 24.3, 21.8 (46.9); elasticity:29 13.3, 13.7 (47.2); stokes:24 13.6, 13.3 (48.6); like_ASIC_680k:500000 18.4, 19.0 (49.3); stencil27:59 14.4, 12.8 (49.5);
  like_consph:66000 12.8, 13.9 (50.0); p2:28 16.4, 18.0 (51.7); four:1010 11.3, 14.8 (59.3).
*/
static inline int tc_hybrid_fits_cache(int64_t product_bytes, int64_t cache_bytes)
{
  return 4 * product_bytes <= 3 * cache_bytes;
}

/*
  Slices that four warps with fragments share. A warp that owns a slice takes as long as the slice is wide: tall rows, which come first, are shared, and where there
  are so few slices that most of the device would idle, all. Measured on an H200 (docs/performance-spmv.md).
*/
static inline int32_t tc_hybrid_num_wide(const tc_hybrid *H)
{
  const int few = H->num_slices < TC_HYBRID_FEW_SLICES && H->num_slots >= TC_HYBRID_WIDE_MEAN * (int64_t)H->num_sliced;

  return few ? H->num_slices : (H->num_tall + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
}

/* Are the F64 and F32 values of that slice, so wide, by rows? */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int tc_hybrid_by_rows(const tc_hybrid *H, int32_t slice, int32_t width)
{
  return slice < H->num_by_rows && width > 2;
}

/* Where the F64 or F32 value of entry k of a lane is, counted from the first slot of a slice of that width */
static inline int32_t tc_hybrid_slot(int by_rows, int32_t width, int32_t lane, int32_t k)
{
  const int32_t begin = k / 4 * 4, places = width - begin < 4 ? width - begin : 4;

  return TC_HYBRID_SLICE_ROWS * (by_rows ? begin : k) + (by_rows ? places * lane + k - begin : lane);
}

/* Entries that each lane has in an index block of a slice */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int32_t tc_hybrid_places(int32_t width)
{
  return width < 3 ? width : 4;
}

/* 16-byte units of one index block with `places` entries for each lane */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline uint32_t tc_hybrid_block_units(tc_hybrid_index_kind kind, int32_t places)
{
  const uint32_t p = (uint32_t)places;

  return kind == TC_HYBRID_SHIFT ? 1 : kind == TC_HYBRID_U8 ? 1 + 2 * p : kind == TC_HYBRID_U16 ? 1 + 4 * p : 8 * p;
}
