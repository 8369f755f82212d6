/*
  Generators: surrogates of the 21 matrices of DASP's table 2 (Lu and Liu, SC'23), which cannot be had without a network. They have the rows and nonzeros, the shortest
  and longest row as SuiteSparse lists them, and the kind of structure that the original is known for: rows per node, consecutive columns, bandwidth, hubs.
*/
#include "generator_kind.h"
#include <math.h>
#include <stdlib.h>

/* How the lengths of ordinary rows are spread */
typedef enum {
  EVEN, // all the same, up to rounding
  BELL, // a triangle around the mean, `spread` of it wide to each side; one row in a thousand has the shortest, one the longest length
  TAIL  // Pareto's law from `spread` on, cut at `longest`, with the exponent that gives the mean
} law;

typedef struct {
  int32_t block; // rows of a node, which share their columns
  int32_t rows;
  int64_t nnz;
  law     law;
  int32_t shortest, longest; // of ordinary rows
  double  spread, empty;     // see law; share of empty rows
  int32_t num_dense, dense;  // the k-th dense row has dense / 2^k entries; their columns are as full
  int32_t run, patch;        // columns side by side; nodes side by side with the same pattern
  double  band, far;         // half bandwidth as a share of the rows; share of the entries that lie anywhere
  int     hubs;              // these prefer low numbers
} surrogate;

/* What all rows share */
typedef struct {
  double mean, exponent;
} shared;

static double dense_length(const tc_pattern *P, const surrogate *S, int k)
{
  return ldexp((double)S->dense, -k) * P->num_rows / S->rows;
}

static int32_t dense_place(const tc_pattern *P, const surrogate *S, int k)
{
  return (int32_t)((2 * (int64_t)k + 1) * P->num_rows / (2 * S->num_dense));
}

/* Mean of the whole part of lengths that follow Pareto's law */
static double tail_mean(const surrogate *S, double exponent)
{
  double mean = 0;

  for (int32_t k = 1; k <= S->longest; ++k) mean += k <= S->spread ? 1.0 : pow(S->spread / k, exponent);
  return mean;
}

static tc_status prepare_surrogate(tc_pattern *P)
{
  const surrogate *S = P->parameters;
  shared          *H = malloc(sizeof *H);
  double           dense = 0, low = 0.1, high = 20;

  TC_CHECK(H != NULL, TC_ERR_MEMORY, "no host memory for a surrogate");
  for (int k = 0; k < S->num_dense; ++k) dense += ldexp((double)S->dense, -k);
  H->mean = ((double)S->nnz - dense) / (S->rows * (1 - S->empty));
  for (int step = 0; S->law == TAIL && step < 50; ++step) {
    const double middle = (low + high) / 2;

    if (tail_mean(S, middle) > H->mean) low = middle;
    else high = middle;
  }
  H->exponent = low;
  P->data     = H;
  return TC_OK;
}

static int32_t row_length(const tc_pattern *P, int64_t unit, uint64_t *state)
{
  const surrogate *S = P->parameters;
  const shared    *H = P->data;
  double           length;

  if (S->empty > 0 && tc_to_unit(tc_next_random(state)) <= S->empty) return 0;
  if (S->law == TAIL) length = S->spread * pow(tc_to_unit(tc_next_random(state)), -1 / H->exponent);
  else {
    length = H->mean + tc_to_unit(tc_next_random(state)) * 0.999999; // rounded at random
    if (S->law == BELL) length += H->mean * S->spread * (tc_to_unit(tc_next_random(state)) - tc_to_unit(tc_next_random(state)));
    if (S->law == BELL && unit % 1000 == 13) length = S->shortest;
    if (S->law == BELL && unit % 1000 == 14) length = S->longest;
  }
  return length < S->shortest ? S->shortest : length > S->longest ? S->longest : (int32_t)length;
}

/* `length` columns in runs, one run from each stratum of a window around `node`'s rows, which has its own run */
static int32_t near_columns(const tc_pattern *P, const surrogate *S, int32_t length, int32_t node, uint64_t *state, int32_t *col)
{
  const int32_t n = P->num_cols, center = node * S->block, runs = (length + S->run - 1) / S->run;
  int64_t       width = 2 * (int64_t)(S->band * n) / S->run * S->run, first, slots;
  int32_t       num = 0;

  if (width < 2 * (int64_t)runs * S->run) width = 2 * (int64_t)runs * S->run;
  if (width > n) width = n / S->run * S->run;
  slots = width / S->run;
  if (slots < runs) return tc_stratified(length, n, state, col); // hardly wider than the row
  first = center - slots / 2 * S->run;
  if (first < 0) first = 0;
  if (first > n - width) first = n - width;
  for (int32_t k = 0; k < runs; ++k) {
    const int64_t from = k * slots / runs, end = (k + 1) * slots / runs, own = (center - first) / S->run;
    const int64_t slot = from + tc_next_below(state, end - from), column = first + (own >= from && own < end ? own : slot) * S->run;

    for (int32_t r = 0; r < S->run && num < length; ++r) col[num++] = (int32_t)column + r;
  }
  return num;
}

static int32_t surrogate_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const surrogate *S    = P->parameters;
  const int32_t    node = i / S->block, n = P->num_cols;
  const int64_t    unit = node / S->patch;
  uint64_t         state = tc_row_state(P, unit), own = tc_row_state(P, (int64_t)n + i);
  int32_t          length, far, num = 0;

  for (int k = 0; k < S->num_dense; ++k) {
    if (i == dense_place(P, S, k)) return tc_stratified((int32_t)dense_length(P, S, k), n, &own, col);
  }
  length = row_length(P, unit, &state);
  if (length > n) length = n;
  far = (int32_t)(S->far * length + tc_to_unit(tc_next_random(&own)) * 0.999999);
  if (length == 0) return 0;
  for (int k = 0; k < S->num_dense; ++k) {
    if (tc_to_unit(tc_next_random(&own)) * n <= dense_length(P, S, k)) col[num++] = dense_place(P, S, k);
  }
  for (int32_t k = 0; k < far && num < length; ++k) {
    const double u = tc_to_unit(tc_next_random(&own));

    col[num++] = (int32_t)((n - 1) * (S->hubs ? u * u * u : u));
  }
  num = tc_sort_unique(num, col);
  if (num < length) num += near_columns(P, S, length - num, node, &state, col + num);
  return tc_sort_unique(num, col);
}

/* clang-format off */
#define LIKE(name, tiny, block, ...) {{"like_" name, tiny, 1, block, "size rows like " name}, surrogate_row, tc_size1, tc_size1, .parameters = &(const surrogate){block, __VA_ARGS__}, .prepare = prepare_surrogate}

const tc_kind tc_surrogate_kinds[] = {
  /*   name, tiny size, block, rows, nnz, law, shortest, longest, spread, empty, num_dense, dense, run, patch, band, far, hubs */
  LIKE("pwtk",            121, 6, 217918,  11524432, BELL, 12, 180,  0.12, 0,      0,  0,       18, 4,    0.01,    0,    0),
  LIKE("FullChip",        701, 1, 2987012, 26621983, TAIL, 1,  2000, 3,    0,      8,  2312481, 1,  1,    0.001,   0.1,  0),
  LIKE("mip1",            61,  4, 66463,   10352819, TAIL, 4,  2500, 60,   0,      2,  66395,   8,  8,    0.05,    0.05, 0),
  LIKE("mc2depi",         400, 1, 525825,  2100225,  EVEN, 2,  4,    0,    0,      0,  0,       3,  4096, 0.00138, 0,    0),
  LIKE("webbase-1M",      512, 1, 1000005, 3105536,  TAIL, 1,  4700, 1,    0,      0,  0,       1,  1,    0.0002,  0.4,  1),
  LIKE("circuit5M",       600, 1, 5558326, 59524291, TAIL, 1,  1000, 4,    0,      10, 1290501, 2,  1,    0.0005,  0.05, 0),
  LIKE("Si41Ge41H72",     97,  1, 185639,  15011265, TAIL, 13, 662,  30,   0,      0,  0,       3,  16,   0.1,     0,    0),
  LIKE("Ga41As41H72",     97,  1, 268096,  18488476, TAIL, 18, 702,  25,   0,      0,  0,       3,  16,   0.1,     0,    0),
  LIKE("in-2004",         500, 1, 1382908, 16917053, TAIL, 1,  7753, 4,    0.001,  0,  0,       4,  1,    0.0005,  0.1,  1),
  LIKE("eu-2005",         301, 1, 862664,  19235140, TAIL, 1,  6985, 8,    0.001,  0,  0,       4,  1,    0.001,   0.15, 1),
  LIKE("shipsec1",        121, 6, 140874,  7813404,  BELL, 24, 102,  0.35, 0,      0,  0,       12, 2,    0.02,    0,    0),
  LIKE("mac_econ_fwd500", 500, 1, 206500,  1273389,  TAIL, 1,  44,   3,    0,      0,  0,       1,  1,    0.003,   0.1,  0),
  LIKE("scircuit",        500, 1, 170998,  958936,   TAIL, 1,  353,  3,    0,      0,  0,       1,  1,    0.002,   0.15, 0),
  LIKE("pdb1HYS",         61,  3, 36417,   4344765,  BELL, 18, 204,  0.35, 0,      0,  0,       12, 2,    0.05,    0.05, 0),
  LIKE("consph",          91,  3, 83334,   6010480,  BELL, 1,  81,   0.12, 0,      0,  0,       9,  8,    0.05,    0,    0),
  LIKE("cant",            91,  3, 62451,   4007383,  BELL, 1,  78,   0.2,  0,      0,  0,       9,  8,    0.0044,  0,    0),
  LIKE("cop20k_A",        301, 1, 121192,  2624331,  BELL, 1,  81,   0.4,  0.1762, 0,  0,       2,  1,    0.15,    0.2,  0),
  LIKE("dc2",             500, 1, 116835,  766396,   TAIL, 1,  300,  2,    0,      4,  114190,  1,  1,    0.002,   0.15, 0),
  LIKE("rma10",           121, 5, 46835,   2374001,  BELL, 4,  145,  0.5,  0,      0,  0,       5,  4,    0.02,    0,    0),
  LIKE("conf5_4-8x8-10",  151, 3, 49152,   1916928,  EVEN, 39, 39,   0,    0,      0,  0,       3,  8,    0.12,    0,    0),
  LIKE("ASIC_680k",       701, 1, 682862,  3871773,  TAIL, 1,  500,  2,    0,      6,  395259,  1,  1,    0.001,   0.1,  0),
  {{NULL}},
};
/* clang-format on */
