/*
  tc_bittcf - the packed arrays of the BitTCF format for products with dense blocks, the same on host and device: windows of rows, their columns condensed, bit masks in
  place of padding. Pictures and the reasons: docs/formats.md.

  Packed rows: the rows of the matrix with fewer than TC_BITTCF_LONG_ROW entries, and the segments of TC_SPMM_SEGMENT entries of longer rows, each of which is summed
  up by itself. Eight packed rows are a panel, `panels` panels (1, 2 or 4) a window. row_id says what a packed row is: a row of the matrix, or ~slot, slot the place
  of a segment's sum among the partial sums, or TC_BITTCF_NO_ROW. csr_first: its first entry in CSR, 0 if it has none. Windows of rows come before those of segments.

  Windows of rows: tc_bittcf_order says which rows meet. Windows of segments: long rows in blocks of 8 * panels; the windows of a block, from window long_first[block]
  after those of rows on, hold the first segment of each row of the block, then the second, and so on: segment s of long row r is packed row, and slot,
  8 * panels * (long_first[r / (8 * panels)] + s) + r % (8 * panels), counted from the first window of segments.

  A window: its distinct columns, ascending, in groups of four; the last group repeats the last column. In `tiles`, from 16-byte unit window.tiles on:
    uint32_t mask[num_groups * panels]   bit 4 * r + k of mask[panels * i + p]: row r of panel p has an entry in column k of group i
    uint16_t or int32_t (wide) column[4 * num_groups], the former relative to window.base, the smallest column; wide only where the distances need it
  and zeros up to the end of the last unit. Values without padding, from window.val on: group by group, panel by panel, bit by bit. That is the order of CSR for the
  entries of a row, so the place of a value in CSR follows from csr_first and the masks before it: there is no map.

  Clusters: cluster_windows windows in a row share a list of the distinct columns of them all, ascending: cluster_col from cluster_first on. local, from
  4 * local_first of a window on, names the columns of its groups by their place in that list. num_clusters 0: not worth it, there are none of these arrays.
*/
#pragma once
#include "tc_spmm.h"

enum {
  TC_BITTCF_PANEL       = 8,
  TC_BITTCF_GROUP       = 4,
  TC_BITTCF_MAX_PANELS  = 4,
  TC_BITTCF_MAX_ROWS    = TC_BITTCF_PANEL * TC_BITTCF_MAX_PANELS, // of a window: a lane each
  TC_BITTCF_LONG_ROW    = TC_SPMM_SEGMENT,
  TC_BITTCF_NO_ROW      = -0x7fffffff - 1,
  TC_BITTCF_CLUSTER     = 128, // packed rows of a cluster
  TC_BITTCF_MOST_COMMON = 768 // columns of a cluster, on average, if clusters are to pay: 16 columns of B of so many rows take 96 KB
};

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
  Which rows meet in a window. Row (z * n[1] + y) * n[0] + x is point (x, y, z) of a grid; natural order is a grid of one line. A panel is 8 points along a line, a
  window panels[0] x panels[1] x panels[2] panels, a brick brick[0] x brick[1] x brick[2] windows, all in the order x, y, z but windows in a brick in the order y, z, x.
*/
typedef struct {
  int32_t n[3];       // points
  int32_t windows[3]; // multiples of the brick
  uint8_t panels[3], brick[3], unused[2];
} tc_bittcf_order;

typedef struct {
  int32_t           num_rows, num_cols;
  int64_t           num_nonzeros;
  tc_bittcf_order   order;
  int32_t           panels;                                // of a window
  int32_t           num_row_windows, num_windows;          // windows of rows, all
  int32_t           num_long, num_segments;                // rows, their segments
  int32_t           cluster_windows, num_clusters;         // windows of a cluster, less in the last
  int32_t           widest_cluster;                        // columns
  int64_t           num_groups, num_masks;                 // groups; masks that are not zero
  int64_t           tile_units, num_cluster_columns;
  tc_bittcf_window *window;        // [num_windows]
  int32_t          *row_id;        // [8 * panels * num_windows]
  int32_t          *csr_first;     // [8 * panels * num_windows]
  int32_t          *long_row;      // [num_long], the matrix row of each long row
  int32_t          *long_segments; // [num_long]
  int32_t          *long_first;    // [blocks of long rows + 1]
  void             *tiles;         // [16 * tile_units] bytes
  double           *val;           // [num_nonzeros + 1]; the last is read where no value is needed, and not used
  uint32_t         *local_first;   // [num_windows], in groups
  uint16_t         *local;         // [4 * num_groups]
  uint32_t         *cluster_first; // [num_clusters + 1]
  int32_t          *cluster_col;   // [num_cluster_columns]
} tc_bittcf;

#ifdef __CUDACC__
  #define TC_BOTH_SIDES __host__ __device__ static inline
#else
  #define TC_BOTH_SIDES static inline
#endif

/* 16-byte units that the tiles of a window take */
TC_BOTH_SIDES uint32_t tc_bittcf_units(int32_t num_groups, int32_t panels, int wide)
{
  return (uint32_t)(((uint32_t)num_groups * (4 * (uint32_t)panels + (wide ? 16 : 8)) + 15) / 16);
}

/* Are columns of that range held in 32 bits? */
TC_BOTH_SIDES int tc_bittcf_is_wide(int32_t smallest, int32_t largest)
{
  return largest - smallest > 0xffff;
}

TC_BOTH_SIDES int32_t tc_bittcf_window_rows(int32_t panels)
{
  return TC_BITTCF_PANEL * panels;
}

/* The matrix row that is packed row `i` of window `w`, -1 if there is none; no row is packed twice */
TC_BOTH_SIDES int32_t tc_bittcf_row(const tc_bittcf_order *O, int32_t num_rows, int32_t w, int32_t i)
{
  const int32_t brick = w / (O->brick[0] * O->brick[1] * O->brick[2]), rest = w % (O->brick[0] * O->brick[1] * O->brick[2]);
  const int32_t bricks_x = O->windows[0] / O->brick[0], bricks_y = O->windows[1] / O->brick[1], panel = i / TC_BITTCF_PANEL;
  const int64_t x = (int64_t)TC_BITTCF_PANEL * ((brick % bricks_x * O->brick[0] + rest / (O->brick[1] * O->brick[2])) * O->panels[0] + panel % O->panels[0]) + i % TC_BITTCF_PANEL;
  const int64_t y = (brick / bricks_x % bricks_y * O->brick[1] + rest % O->brick[1]) * O->panels[1] + panel / O->panels[0] % O->panels[1];
  const int64_t z = (brick / bricks_x / bricks_y * O->brick[2] + rest / O->brick[1] % O->brick[2]) * O->panels[2] + panel / (O->panels[0] * O->panels[1]);
  const int64_t row = (z * O->n[1] + y) * O->n[0] + x;

  return x < O->n[0] && y < O->n[1] && z < O->n[2] && row < num_rows ? (int32_t)row : -1;
}

/* Windows of rows in that order */
TC_BOTH_SIDES int32_t tc_bittcf_num_row_windows(const tc_bittcf_order *O)
{
  return O->windows[0] * O->windows[1] * O->windows[2];
}

/* Blocks of long rows whose segments meet in windows */
TC_BOTH_SIDES int32_t tc_bittcf_long_blocks(const tc_bittcf *T)
{
  return (T->num_long + tc_bittcf_window_rows(T->panels) - 1) / tc_bittcf_window_rows(T->panels);
}

/* Partial sums of a column of C: one for each packed row of the windows of segments */
TC_BOTH_SIDES int32_t tc_bittcf_num_slots(const tc_bittcf *T)
{
  return tc_bittcf_window_rows(T->panels) * (T->num_windows - T->num_row_windows);
}

/* Is it worth having clusters: does a column of theirs stand for five quarters of the windows', and do so many of them fit into shared memory? */
TC_BOTH_SIDES int tc_bittcf_clusters_pay(int64_t num_groups, int64_t cluster_columns, int32_t num_clusters)
{
  return num_groups > 0 && 5 * cluster_columns <= 4 * TC_BITTCF_GROUP * num_groups && cluster_columns <= TC_BITTCF_MOST_COMMON * (int64_t)num_clusters;
}
