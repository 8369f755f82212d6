/*
  tc_bittcf - the packed arrays of the BitTCF format for products with dense blocks, the same on host and device: windows of 8 rows, their columns condensed, bit masks in
  place of padding. Pictures and the reasons: docs/formats.md.

  Packed rows: the rows of the matrix with fewer than TC_BITTCF_LONG_ROW entries, and the segments of TC_SPMM_SEGMENT entries of longer rows, each of which is summed
  up by itself. Eight packed rows are a window. row_id says what a packed row is: a row of the matrix, or ~slot, slot the place of a segment's sum among the partial
  sums, or TC_BITTCF_NO_ROW. csr_first: its first entry in CSR, 0 if it has none. Windows of rows come before those of segments.

  Windows of rows: tc_bittcf_order says which rows meet, or the pattern's row_order does, and tc_bittcf_order, natural order then, which places in that. Windows of segments: long rows in blocks of
  8 * long_windows; the windows of a block, from window long_first[block] after those of rows on, hold the first segment of each row of the block, long_windows windows, then the second, and so on.
  tc_bittcf_slot() says which slot, and packed row counted from the first window of segments, a segment has. long_windows is 1, or TC_BITTCF_LONG_WINDOWS where long rows are about as long as
  their neighbours: then windows that read the same columns lie side by side, and num_row_windows is a multiple of it.

  A window: its distinct columns, ascending, in groups of four; the last group repeats the last column. In `tiles`, from 16-byte unit window.tiles on:
    uint32_t mask[num_groups]   bit 4 * r + k of mask[i]: row r has an entry in column k of group i
    uint16_t or int32_t (wide) column[4 * num_groups], the former relative to window.base, the smallest column; wide only where the distances need it
  and zeros up to the end of the last unit. Values without padding, from window.val on: group by group, bit by bit. That is the order of CSR for the entries of a row,
  so the place of a value in CSR follows from csr_first and the masks before it: there is no map.

  Clusters: cluster_windows windows in a row share a list of the columns that any of them refers to, ascending: cluster_list, from cluster_first on. In precision F64 it
  lists 16 c + m for the columns 4 c to 4 c + 3, whose rows of B are a sector of 32 bytes where B is aligned; bit k of m: column 4 c + k is referred to. place, from TC_BITTCF_BLOCK * place_first of a window on, names the columns of
  its groups by where they are in that list, in F64 4 * (place of the four) + column % 4: those of column 0 of 8 groups, of 16, as many as it takes, then those of column 1, and
  so on; what is beyond the last group repeats it.
  num_clusters 0: not worth it, or too large for a thread block; there are none of these arrays.

  Values: doubles in precision F64. Else floats (F32; TF32: rounded to 10 bits of fraction) or 16-bit numbers, of packed rows that are divided by 2^exponent, which
  brings the largest magnitude of a row into [1, 2), for F16 into [2^14, 2^15), and rounded as tc_narrow.h says.
*/
#pragma once
#include "tc_spmm.h"

enum {
  TC_BITTCF_ROWS         = 8, // of a window
  TC_BITTCF_GROUP        = 4,
  TC_BITTCF_LONG_ROW     = TC_SPMM_SEGMENT,
  TC_BITTCF_LONG_WINDOWS = 4, // as many as a thread block has
  TC_BITTCF_NO_ROW       = -0x7fffffff - 1,
  TC_BITTCF_PLACES       = 8, // groups whose columns of one number are named side by side, in 16 bytes
  TC_BITTCF_BLOCK        = TC_BITTCF_PLACES * TC_BITTCF_GROUP,
  TC_BITTCF_FEWEST_WINDOWS = 8, // of a cluster
  TC_BITTCF_MOST_GROUPS  = 42, // of a window in a cluster: what fits into the registers of 12 warps
  TC_BITTCF_MORE_GROUPS  = 64, // the same for 8 warps
  TC_BITTCF_FEWER_GROUPS = 36, // the same for 16 warps
  TC_BITTCF_FEW_GROUPS   = 12, // the same for 16 warps of two thread blocks each
  TC_BITTCF_NARROW_GROUPS = 64, // the same in narrow precisions, whose kernels need not hold all
  TC_BITTCF_MOST_COLUMNS = 1 << 29, // of a matrix with clusters
  TC_BITTCF_MOST_FOURS   = 220, // of a cluster: 16 columns of B of them twice, and what lies beside them, are 227 KB
  TC_BITTCF_MOST_LISTED  = 880 // columns of a cluster in narrow precisions: 128 bytes of B of them twice, and two lists
};

/* What its builders say where they cannot serve */
#define TC_BITTCF_DISORDER "columns that do not ascend within a row, or are in it twice, which format bittcf cannot hold"

/* 16 bytes, read in one piece */
typedef struct {
  uint32_t val;   // its first value
  uint32_t tiles; // where its masks and columns begin, in units of 16 bytes
  int32_t  base;  // its smallest column, 0 if it has none
  uint16_t num_groups;
  uint8_t  wide; // columns of 32 bits
  uint8_t  unused;
} tc_bittcf_window;

/*
  Which rows meet in a window, and which windows in a cluster. Row (z * n[1] + y) * n[0] + x is point (x, y, z) of a grid; natural order is a grid of one line. A window
  is 8 points along a line, `along` of them to a line. brick[1] x brick[2] lines are a bundle, fewer at the end of a plane and on the last planes; its windows are in the order y, z, x. So
  brick[0] x brick[1] x brick[2] of them in a row are a brick, and where bundles are thinner as many, further along the lines; the last brick of a bundle is empty in part. Bundles come in
  stacks, `stack` x `stack`, less at both ends, in the order y, z, as stacks do. So what a device multiplies at the same time is as thick as it is wide.
*/
typedef struct {
  int32_t n[3]; // points
  int32_t along;
  uint8_t brick[3], stack;
} tc_bittcf_order;

typedef struct {
  int32_t           num_rows, num_cols;
  int64_t           num_nonzeros;
  tc_bittcf_order   order;
  int32_t           num_row_windows, num_windows;  // windows of rows, all
  int32_t           num_long, num_segments;        // rows, their segments
  int32_t           long_windows;                  // of a block of long rows that hold the same segment of each
  int32_t           widest_window;                 // groups
  int32_t           cluster_windows, num_clusters; // windows of a cluster, less in the last
  int32_t           widest_cluster;                // entries of its list
  tc_precision      precision;
  int64_t           num_groups, tile_units, num_listed, num_places;
  tc_bittcf_window *window;        // [num_windows]
  int32_t          *row_id;        // [8 * num_windows]
  int32_t          *csr_first;     // [8 * num_windows]
  int32_t          *long_row;      // [num_long], the matrix row of each long row
  int32_t          *long_segments; // [num_long]
  int32_t          *long_first;    // [blocks of long rows + 1]
  void             *tiles;         // [16 * tile_units] bytes
  void             *val;           // [num_nonzeros + 1]; the last is read where no value is needed, and not used
  int16_t          *exponent;      // [8 * num_windows], of packed rows; none in precision F64
  uint32_t         *place_first;   // [num_windows], in TC_BITTCF_BLOCK
  uint16_t         *place;         // [num_places]
  uint32_t         *cluster_first; // [num_clusters + 1]
  int32_t          *cluster_list;  // [num_listed]
} tc_bittcf;

#ifdef __CUDACC__
  #define TC_BOTH_SIDES __host__ __device__ static inline
#else
  #define TC_BOTH_SIDES static inline
#endif

/* 16-byte units that the tiles of a window take */
TC_BOTH_SIDES uint32_t tc_bittcf_units(int32_t num_groups, int wide)
{
  return (uint32_t)(((uint32_t)num_groups * (wide ? 20 : 12) + 15) / 16);
}

/* Blocks of places of a window */
TC_BOTH_SIDES int32_t tc_bittcf_place_blocks(int32_t num_groups)
{
  return (num_groups + TC_BITTCF_PLACES - 1) / TC_BITTCF_PLACES;
}

/* Where column k of group i is named, from the window's first place on */
TC_BOTH_SIDES int32_t tc_bittcf_place_of(int32_t num_groups, int32_t i, int32_t k)
{
  return TC_BITTCF_PLACES * tc_bittcf_place_blocks(num_groups) * k + i;
}

/* Are columns of that range held in 32 bits? */
TC_BOTH_SIDES int tc_bittcf_is_wide(int32_t smallest, int32_t largest)
{
  return largest - smallest > 0xffff;
}

TC_BOTH_SIDES int32_t tc_bittcf_lesser(int32_t a, int32_t b)
{
  return a < b ? a : b;
}

/* Lines of a stack in that direction, if it is whole */
TC_BOTH_SIDES int32_t tc_bittcf_stack_lines(const tc_bittcf_order *O, int direction)
{
  const int32_t lines = tc_bittcf_lesser(O->stack * O->brick[direction], O->n[direction]);

  return lines > 0 ? lines : 1;
}

/* Windows of a bundle of so many lines */
TC_BOTH_SIDES int32_t tc_bittcf_of_bundle(const tc_bittcf_order *O, int32_t lines)
{
  const int32_t brick = O->brick[0] * O->brick[1] * O->brick[2];

  return (O->along * lines + brick - 1) / brick * brick;
}

/* Of bundles side by side, so many lines wide and high */
TC_BOTH_SIDES int32_t tc_bittcf_of_layer(const tc_bittcf_order *O, int32_t wide, int32_t high)
{
  return wide / O->brick[1] * tc_bittcf_of_bundle(O, O->brick[1] * high) + tc_bittcf_of_bundle(O, wide % O->brick[1] * high);
}

TC_BOTH_SIDES int32_t tc_bittcf_of_stack(const tc_bittcf_order *O, int32_t wide, int32_t high)
{
  return high / O->brick[2] * tc_bittcf_of_layer(O, wide, O->brick[2]) + tc_bittcf_of_layer(O, wide, high % O->brick[2]);
}

/* Of stacks side by side, so many lines high */
TC_BOTH_SIDES int32_t tc_bittcf_of_slab(const tc_bittcf_order *O, int32_t high)
{
  const int32_t wide = tc_bittcf_stack_lines(O, 1);

  return O->n[1] / wide * tc_bittcf_of_stack(O, wide, high) + tc_bittcf_of_stack(O, O->n[1] % wide, high);
}

/* Windows of rows in an order */
TC_BOTH_SIDES int32_t tc_bittcf_num_row_windows(const tc_bittcf_order *O)
{
  const int32_t high = tc_bittcf_stack_lines(O, 2);

  return O->n[2] / high * tc_bittcf_of_slab(O, high) + tc_bittcf_of_slab(O, O->n[2] % high);
}

/* What window `at` is in, of parts of `step` lines with `size` windows each, and one of what is left of `total` lines */
typedef struct {
  int32_t first, lines, at; // its first line, how many it has, and where in it the window is
} tc_bittcf_part;

TC_BOTH_SIDES tc_bittcf_part tc_bittcf_find_part(int32_t at, int32_t size, int32_t step, int32_t total)
{
  const int32_t        i    = tc_bittcf_lesser(at / size, total / step);
  const tc_bittcf_part part = {i * step, tc_bittcf_lesser(step, total - i * step), at - i * size};

  return part;
}

/* The matrix row, or its place in row_order, that is packed row `i` of window `w`, -1 if there is none; no row is packed twice */
TC_BOTH_SIDES int32_t tc_bittcf_row(const tc_bittcf_order *O, int32_t num_rows, int32_t w, int32_t i)
{
  const int32_t wide = tc_bittcf_stack_lines(O, 1), high = tc_bittcf_stack_lines(O, 2);

  if (w >= tc_bittcf_num_row_windows(O)) return -1;
  const tc_bittcf_part slab   = tc_bittcf_find_part(w, tc_bittcf_of_slab(O, high), high, O->n[2]);
  const tc_bittcf_part stack  = tc_bittcf_find_part(slab.at, tc_bittcf_of_stack(O, wide, slab.lines), wide, O->n[1]);
  const tc_bittcf_part layer  = tc_bittcf_find_part(stack.at, tc_bittcf_of_layer(O, stack.lines, O->brick[2]), O->brick[2], slab.lines);
  const tc_bittcf_part bundle = tc_bittcf_find_part(layer.at, tc_bittcf_of_bundle(O, O->brick[1] * layer.lines), O->brick[1], stack.lines);
  const int32_t        lines  = bundle.lines * layer.lines;
  const int64_t        x      = (int64_t)TC_BITTCF_ROWS * (bundle.at / lines) + i;
  const int64_t        y      = (int64_t)stack.first + bundle.first + bundle.at % lines % bundle.lines;
  const int64_t        z      = (int64_t)slab.first + layer.first + bundle.at % lines / bundle.lines;
  const int64_t        row    = (z * O->n[1] + y) * O->n[0] + x;

  return x < O->n[0] && row < num_rows ? (int32_t)row : -1;
}

/* The matrix row in a place that tc_bittcf_row() gives */
TC_BOTH_SIDES int32_t tc_bittcf_row_at(const int32_t *row_order, int32_t place)
{
  return place < 0 || row_order == NULL ? place : row_order[place];
}

/* Long rows of a block, and blocks */
TC_BOTH_SIDES int32_t tc_bittcf_long_rows(const tc_bittcf *T)
{
  return TC_BITTCF_ROWS * T->long_windows;
}

TC_BOTH_SIDES int32_t tc_bittcf_long_blocks(const tc_bittcf *T)
{
  return (T->num_long + tc_bittcf_long_rows(T) - 1) / tc_bittcf_long_rows(T);
}

/* The slot of the first segment of long row r; from one segment of a row to the next it is tc_bittcf_long_rows() further */
TC_BOTH_SIDES int32_t tc_bittcf_slot(const tc_bittcf *T, int32_t r)
{
  return TC_BITTCF_ROWS * T->long_first[r / tc_bittcf_long_rows(T)] + r % tc_bittcf_long_rows(T);
}

/* Is more than a third of the slots empty, if long rows have so many windows? Then there is to be one for each segment of 8 rows */
TC_BOTH_SIDES int tc_bittcf_is_sparse(const tc_bittcf *T, int64_t windows)
{
  return T->long_windows > 1 && 2 * TC_BITTCF_ROWS * windows > 3 * (int64_t)T->num_segments;
}

/* All windows, with so many of long rows */
TC_BOTH_SIDES void tc_bittcf_add_windows(tc_bittcf *T, int32_t windows)
{
  T->num_row_windows = T->num_long == T->num_rows ? 0 : (T->num_row_windows + T->long_windows - 1) / T->long_windows * T->long_windows;
  T->num_windows     = T->num_row_windows + windows;
}

/* Partial sums of a column of C: one for each packed row of the windows of segments */
TC_BOTH_SIDES int32_t tc_bittcf_num_slots(const tc_bittcf *T)
{
  return TC_BITTCF_ROWS * (T->num_windows - T->num_row_windows);
}

/* Windows of a cluster when these are packed. Where rows come in natural order any number will do: those that a thread block can hold in registers. */
TC_BOTH_SIDES int32_t tc_bittcf_windows_held(const tc_bittcf *T)
{
  if (T->precision != TC_PRECISION_F64 || T->order.brick[0] * T->order.brick[1] * T->order.brick[2] > 1) return T->cluster_windows;
  return T->widest_window <= TC_BITTCF_FEWER_GROUPS && T->cluster_windows > 12 ? T->cluster_windows : T->widest_window <= TC_BITTCF_MOST_GROUPS ? 12 : TC_BITTCF_FEWEST_WINDOWS;
}

/* Can a thread block hold any cluster's windows in registers, and its list name their columns? */
TC_BOTH_SIDES int tc_bittcf_may_cluster(const tc_bittcf *T)
{
  const int32_t of_few = T->cluster_windows > TC_BITTCF_FEWEST_WINDOWS ? TC_BITTCF_MOST_GROUPS : TC_BITTCF_MORE_GROUPS;
  const int32_t most   = T->precision != TC_PRECISION_F64 ? TC_BITTCF_NARROW_GROUPS : T->cluster_windows > 12 ? TC_BITTCF_FEWER_GROUPS : of_few;

  return T->num_groups > 0 && T->num_long == 0 && T->widest_window <= most && (T->precision != TC_PRECISION_F64 || T->num_cols <= TC_BITTCF_MOST_COLUMNS);
}

/* The columns of an entry of the list of a cluster, in F64: which four, and which of them are referred to, a bit each */
TC_BOTH_SIDES int32_t tc_bittcf_listed_four(int32_t entry)
{
  return entry >> TC_BITTCF_GROUP;
}

TC_BOTH_SIDES uint32_t tc_bittcf_listed_rows(int32_t entry)
{
  return (uint32_t)entry & ((1u << TC_BITTCF_GROUP) - 1);
}

/* Columns that an entry of the list of a cluster stands for */
TC_BOTH_SIDES int32_t tc_bittcf_listed(const tc_bittcf *T)
{
  return T->precision == TC_PRECISION_F64 ? 4 : 1;
}

/* The most entries that the list of a cluster may have */
TC_BOTH_SIDES int32_t tc_bittcf_most_listed(const tc_bittcf *T)
{
  return tc_bittcf_listed(T) > 1 ? TC_BITTCF_MOST_FOURS : TC_BITTCF_MOST_LISTED;
}

/* Is it worth having clusters: do two columns of theirs stand for three of the windows' at least, and do those of the widest fit into shared memory? */
TC_BOTH_SIDES int tc_bittcf_clusters_pay(const tc_bittcf *T, int64_t num_listed, int32_t widest_cluster)
{
  return 3 * tc_bittcf_listed(T) * num_listed <= 2 * TC_BITTCF_GROUP * T->num_groups && widest_cluster <= tc_bittcf_most_listed(T);
}
