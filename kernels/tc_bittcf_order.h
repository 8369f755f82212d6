/*
  Choosing a tc_bittcf_order: candidates are natural order and, where a few rows look as if the matrix came from a grid, bricks of neighbouring lines. Each is tried on a
  sample; the cheapest wins. Rows that come in an order of their own, the pattern's row_order, stay in it. The same on the host and in the kernels of the CUDA builder.
*/
#pragma once
#include "tc_bittcf.h"
#include <string.h>

/* Loops whose code is to be there once in a kernel, where they run once */
#ifdef __CUDA_ARCH__
  #define TC_KEEP_LOOP _Pragma("unroll 1")
#else
  #define TC_KEEP_LOOP
#endif

enum {
  TC_BITTCF_PROBES         = 3,                        // rows that are looked at
  TC_BITTCF_MAX_ORDERS     = 1 + 3 * TC_BITTCF_PROBES,
  TC_BITTCF_NEIGHBOURS     = 4,                        // windows that are sampled together
  TC_BITTCF_SAMPLE         = 512,                      // such neighbourhoods of each candidate, if it has so many
  TC_BITTCF_MANY_MASKS     = 32,                       // of a window in its neighbourhood: more, and 16 warps may not hold windows of the matrix
  TC_BITTCF_SHORTEST_LINE  = 24,                       // rows; shorter lines leave too much of their last window unused
  TC_BITTCF_GAP            = 8,                        // columns further apart than this belong to different lines
  TC_BITTCF_STACK          = 128                       // bricks of a stack at most, if lines are not longer: about as many as a device has multiprocessors
};

/*
  What the neighbourhoods of a sample hold: entries, groups of distinct columns, and those of them that each window has entries in; the most of these in one neighbourhood. A long row
  counts as its first segment.
*/
typedef struct {
  int64_t entries, groups, masks, most_masks;
} tc_bittcf_sample;

/* Windows from one neighbourhood to the next: one in each brick */
TC_BOTH_SIDES int32_t tc_bittcf_neighbourhood_step(const tc_bittcf_order *O)
{
  const int32_t brick = O->brick[0] * O->brick[1] * O->brick[2];

  return brick < TC_BITTCF_NEIGHBOURS ? TC_BITTCF_NEIGHBOURS : brick;
}

TC_BOTH_SIDES int32_t tc_bittcf_neighbourhoods(const tc_bittcf_order *O)
{
  return (tc_bittcf_num_row_windows(O) + tc_bittcf_neighbourhood_step(O) - 1) / tc_bittcf_neighbourhood_step(O);
}

TC_BOTH_SIDES int32_t tc_bittcf_sample_size(const tc_bittcf_order *O)
{
  return tc_bittcf_neighbourhoods(O) < TC_BITTCF_SAMPLE ? tc_bittcf_neighbourhoods(O) : TC_BITTCF_SAMPLE;
}

/*
  The row, or its place in row_order, that is packed row `i` of neighbourhood `s` of the `num` that a sample consists of, -1 if there is none. In bricks that are several lines thick, the windows of
  a neighbourhood are those of 2 x 2 lines; else they follow each other.
*/
TC_BOTH_SIDES int32_t tc_bittcf_sampled_row(const tc_bittcf_order *O, int32_t num_rows, int32_t s, int32_t num, int32_t i)
{
  const int32_t first = tc_bittcf_neighbourhood_step(O) * (int32_t)((int64_t)s * tc_bittcf_neighbourhoods(O) / num), n = i / TC_BITTCF_ROWS;
  const int32_t w = first + (O->brick[2] > 1 ? n % 2 + O->brick[1] * (n / 2) : n);

  return w < tc_bittcf_num_row_windows(O) ? tc_bittcf_row(O, num_rows, w, i % TC_BITTCF_ROWS) : -1;
}

/* The row that probe `p` looks at: rows of a grid that are likely to be inside it */
TC_BOTH_SIDES int32_t tc_bittcf_probed_row(int32_t num_rows, int p)
{
  return (int32_t)((int64_t)num_rows * (p == 0 ? 4142 : p == 1 ? 5436 : 6180) / 10000);
}

/* Lines of n0 rows, n1 of them in a plane of no more than twice as many as there are: all numbers fit into 32 bits, whose divisions take a kernel a fifth of the time */
TC_BOTH_SIDES tc_bittcf_order tc_bittcf_grid(int32_t num_rows, int32_t n0, int32_t n1, int bx, int by, int bz)
{
  tc_bittcf_order O;

  memset(&O, 0, sizeof O);
  O.n[0]     = n0;
  O.n[1]     = n1;
  O.n[2]     = n0 > 0 ? (int32_t)((uint32_t)(num_rows - 1) / ((uint32_t)n0 * (uint32_t)n1) + 1) : 0;
  O.brick[0] = (uint8_t)bx;
  O.brick[1] = (uint8_t)by;
  O.brick[2] = (uint8_t)bz;
  O.stack    = 1;
  O.along    = (int32_t)(((uint32_t)n0 + TC_BITTCF_ROWS - 1) / TC_BITTCF_ROWS);
  return O;
}

/* What a probed row tells: the distances from it to the same place on the next line, and on the next plane; 0 where it does not tell */
typedef struct {
  int32_t line, plane;
} tc_bittcf_strides;

/*
  Columns are cut into runs; the run around the diagonal is the line of the row, the next one is the next line. Runs of the same plane are a line apart, so the middle of the next
  such group is the plane's. Distances are from the middle of the diagonal's run, or, for stencils that lean to one side, from the diagonal. `away` has room for `length`.
*/
TC_BOTH_SIDES tc_bittcf_strides tc_bittcf_find_strides(const int32_t *col, int32_t length, int32_t row, int leaning, int64_t *away)
{
  tc_bittcf_strides S        = {0, 0};
  int64_t           diagonal = 0; // twice where the distances are counted from
  int32_t           num = 0, k = 1; // away: of the middle of each run after the diagonal's
  int               found = 0;

  for (int32_t first = 0, last; first < length; first = last + 1) {
    for (last = first; last + 1 < length && col[last + 1] - col[last] <= TC_BITTCF_GAP; ++last) { }
    const int64_t middle = (int64_t)col[first] + col[last]; // twice that

    if (found && (middle - diagonal) % 2 == 0) away[num++] = (middle - diagonal) / 2;
    if (!found && col[first] <= row && row <= col[last]) {
      diagonal = leaning ? 2 * (int64_t)row : middle;
      found    = 1;
    }
  }
  if (num == 0 || away[0] < TC_BITTCF_SHORTEST_LINE) return S;
  S.line = (int32_t)away[0];
  while (k < num && away[k] == (k + 1) * away[0]) ++k; // lines further away in the same plane
  if (k < num && away[k] % away[0] == 0) {
    int32_t members = 0;

    while (k + members + 1 < num && away[k + members + 1] == away[k] + (members + 1) * away[0]) ++members;
    S.plane = (int32_t)(away[k] + members / 2 * away[0]);
  }
  return S;
}

/* The same for probe `p`, whose row has the columns `col`, `length` of them, 0 if it is too long or not there */
TC_BOTH_SIDES tc_bittcf_strides tc_bittcf_probe(int32_t num_rows, int p, const int32_t *col, int32_t length, int64_t *away)
{
  const tc_bittcf_strides S = tc_bittcf_find_strides(col, length, tc_bittcf_probed_row(num_rows, p), 0, away);

  return S.line > 0 ? S : tc_bittcf_find_strides(col, length, tc_bittcf_probed_row(num_rows, p), 1, away);
}

TC_BOTH_SIDES int tc_bittcf_add_order(tc_bittcf_order *orders, int num, tc_bittcf_order O)
{
  TC_KEEP_LOOP for (int i = 0; i < num; ++i)
  {
    const tc_bittcf_order *P = &orders[i];

    if (P->n[0] == O.n[0] && P->n[1] == O.n[1] && P->brick[0] == O.brick[0] && P->brick[1] == O.brick[1] && P->brick[2] == O.brick[2]) return num; // of so many rows these are all
  }
  orders[num] = O;
  return num + 1;
}

/*
  The candidates by what the probes tell. Returns how many. Bricks are of 16 windows. There have to be four lines, or planes, at least: with fewer most windows of a brick would have no rows, and what is
  told are distances of columns, which in a matrix that is wider than tall may be far more than there are rows.
*/
TC_BOTH_SIDES int tc_bittcf_orders(int32_t num_rows, const tc_bittcf_strides probe[TC_BITTCF_PROBES], tc_bittcf_order orders[TC_BITTCF_MAX_ORDERS])
{
  const int32_t longest = (num_rows - 1) / 3;
  int           num     = tc_bittcf_add_order(orders, 0, tc_bittcf_grid(num_rows, num_rows, 1, 1, 1, 1));

  TC_KEEP_LOOP for (int p = 0; p < TC_BITTCF_PROBES; ++p)
  {
    const int32_t line = probe[p].line, plane = probe[p].plane;

    if (line > 0 && line <= longest) num = tc_bittcf_add_order(orders, num, tc_bittcf_grid(num_rows, line, (num_rows - 1) / line + 1, 2, 8, 1));
    if (plane > 0 && plane <= longest) {
      num = tc_bittcf_add_order(orders, num, tc_bittcf_grid(num_rows, plane, (num_rows - 1) / plane + 1, 2, 8, 1));
      num = tc_bittcf_add_order(orders, num, tc_bittcf_grid(num_rows, line, plane / line, 1, 4, 4));
    }
  }
  return num;
}

/*
  The cheapest order by its sample: the one that has to bring the fewest rows of B. What comes later must be better than natural order by a sixteenth, as bricks do not divide lines, and
  than other bricks by a 32nd. Samples without entries are not considered.
*/
TC_BOTH_SIDES int tc_bittcf_best_order(int num, const tc_bittcf_sample *sample)
{
  int best = 0;

  TC_KEEP_LOOP for (int i = 1; i < num; ++i)
  {
    const int parts = best == 0 ? 16 : 32;

    if (sample[i].entries > 0 && parts * sample[i].groups * sample[best].entries < (parts - 1) * sample[best].groups * sample[i].entries) best = i;
  }
  return best;
}

/* The same lines in bricks of 12 windows, in the shape of which there are the fewest: long ones have more whole sectors of B in common, others may fit the lines better */
static inline tc_bittcf_order tc_bittcf_smaller_bricks(const tc_bittcf *T, const tc_bittcf_order *O)
{
  static const uint8_t shapes[2][2][3] = {{{3, 4, 1}, {2, 6, 1}}, {{3, 2, 2}, {2, 3, 2}}};
  tc_bittcf_order      fewest          = *O;

  for (int i = 0; i < 2; ++i) {
    const uint8_t        *shape = shapes[O->brick[2] > 1][i];
    const tc_bittcf_order other = tc_bittcf_grid(T->num_rows, O->n[0], O->n[1], shape[0], shape[1], shape[2]);

    if (i == 0 || tc_bittcf_num_row_windows(&other) < tc_bittcf_num_row_windows(&fewest)) fewest = other;
  }
  return fewest;
}

/* How many bricks wide and high stacks are: in a plane there is only one way to order bricks */
static inline uint8_t tc_bittcf_stack_of(const tc_bittcf_order *O)
{
  const int32_t along = (O->along + O->brick[0] - 1) / O->brick[0];
  uint8_t       stack = 1;

  while (O->brick[2] > 1 && along * (stack + 1) * (stack + 1) <= TC_BITTCF_STACK) ++stack;
  return stack;
}

/*
  Takes an order into a view whose num_rows, num_long, num_segments and precision are set; the windows of segments come later. Windows of many groups are held by 12 warps of
  a thread block, others by 16: then bricks lose a fourth. What counts is the most of any neighbourhood, since all windows have to fit: the mean is less where lines end within windows and bricks.
  In narrow precisions rows that come in an order of their own (`ordered`) stay in clusters of 128.
*/
static inline void tc_bittcf_set_order(tc_bittcf *T, const tc_bittcf_order *O, const tc_bittcf_sample *sample, int ordered)
{
  T->order           = *O;
  T->cluster_windows = sample->most_masks > TC_BITTCF_MANY_MASKS * TC_BITTCF_NEIGHBOURS && !(ordered && T->precision != TC_PRECISION_F64) ? 12 : 16;
  if (T->cluster_windows == 12 && O->brick[1] > 1) T->order = tc_bittcf_smaller_bricks(T, O);
  T->order.stack     = tc_bittcf_stack_of(&T->order);
  T->num_row_windows = tc_bittcf_num_row_windows(&T->order);
}

/*
  Natural order is tried after bricks that have no clusters though their windows could be held, and after bricks in a plane whose lines are shorter than 12 windows: a sample of four windows does not
  see how long the lists of clusters are. Of qcd:12, lines of 36 rows in four dimensions, bricks bring 8.8 rows of B for a row of C, natural order 6.6; of qcd:15 8.0 and 7.2, of qcd:24 6.7 and 8.0.
*/
static inline int tc_bittcf_tries_natural_order(const tc_bittcf *T)
{
  const int short_lines = T->order.brick[2] == 1 && T->order.n[0] < 12 * TC_BITTCF_ROWS;

  return T->order.brick[1] > 1 && (T->num_clusters == 0 || short_lines) && tc_bittcf_may_cluster(T);
}

/* Is that better than bricks that had so many clusters, which listed so much? */
static inline int tc_bittcf_stays_natural(const tc_bittcf *T, int32_t clusters_of_bricks, int64_t listed_by_bricks)
{
  return T->num_clusters > 0 && (clusters_of_bricks == 0 || T->num_listed < listed_by_bricks);
}

/* In a view without long rows, before its windows are packed */
static inline void tc_bittcf_set_natural_order(tc_bittcf *T)
{
  T->order           = tc_bittcf_grid(T->num_rows, T->num_rows, 1, 1, 1, 1);
  T->cluster_windows = 12;
  T->num_row_windows = tc_bittcf_num_row_windows(&T->order);
  tc_bittcf_add_windows(T, 0);
}
