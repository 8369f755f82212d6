/* Generators: irregular matrices - circuits, graphs, long rows, linear programs, the off-diagonal blocks of parallel matrices */
#include "generator_kind.h"
#include <math.h>
#include <stdlib.h>

enum { DENSE_ROWS = 20, DENSE_CONSTRAINTS = 8 };

static int32_t circuit_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->num_rows, spacing = n / DENSE_ROWS;
  uint64_t      state = tc_row_state(P, i);
  int32_t       num = 0, near, far;

  if (spacing > 0 && i % spacing == spacing / 2) return tc_stratified(n / 16, n, &state, col);
  near       = tc_next_below(&state, 6);
  far        = tc_next_below(&state, 4) == 0 ? 3 : tc_next_below(&state, 2);
  col[num++] = i;
  while (near-- > 0) col[num++] = (int32_t)(((int64_t)i + n + (tc_next_below(&state, 401) - 200) % n) % n);
  while (far-- > 0) col[num++] = tc_next_below(&state, n);
  return tc_sort_unique(num, col);
}

/* Row lengths follow Pareto's law, cut at 4700; half of the links are near, the others prefer low numbers */
static int32_t webbase_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->num_rows;
  uint64_t      state  = tc_row_state(P, i);
  const double  length = pow(tc_to_unit(tc_next_random(&state)), -1.0 / 1.42);
  int32_t       num    = length < 4700 ? (int32_t)length : 4700;

  if (num > TC_MAX_GATHER) return tc_stratified(num, n, &state, col);
  for (int32_t k = 0; k < num; ++k) {
    const double u = tc_to_unit(tc_next_random(&state));

    if (tc_next_below(&state, 2)) col[k] = (int32_t)(((int64_t)i + n + (tc_next_below(&state, 201) - 100) % n) % n);
    else col[k] = (int32_t)((double)(n - 1) * u * u * u);
  }
  return tc_sort_unique(num, col);
}

/* How many of 16 * 2^size edges begin at vertex i: Poisson's law, or the normal one where that is as good */
static int32_t rmat_edges(const tc_pattern *P, int32_t i, uint64_t *state)
{
  double  mean = ldexp(16, P->size), normal;
  int32_t num  = 0;

  for (int32_t bit = 0; bit < P->size; ++bit) mean *= i >> bit & 1 ? 0.24 : 0.76;
  if (mean > 200) {
    tc_random_normal(1, tc_next_random(state), &normal);
    num = (int32_t)(mean + normal * sqrt(mean));
  } else {
    const double limit = exp(-mean);

    for (double product = tc_to_unit(tc_next_random(state)); product > limit; ++num) product *= tc_to_unit(tc_next_random(state));
  }
  return num < P->max_row ? num : (int32_t)P->max_row;
}

static int compare_columns(const void *a, const void *b)
{
  const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;

  return (i > j) - (i < j);
}

/* The quadrants of Graph500, 0.57, 0.19, 0.19 and 0.05, at every bit: given the row's, the chance that the column's is set */
static int32_t rmat_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const uint32_t chance[2] = {(uint32_t)(65536 * 0.19 / 0.76), (uint32_t)(65536 * 0.05 / 0.24)};
  uint64_t       state = tc_row_state(P, i), random = 0;
  const int32_t  num   = rmat_edges(P, i, &state);

  for (int32_t e = 0; e < num; ++e) {
    int32_t c = 0;

    for (int32_t bit = 0; bit < P->size; ++bit, random >>= 16) {
      if (bit % 4 == 0) random = tc_next_random(&state);
      c |= ((random & 0xffff) < chance[i >> bit & 1]) << bit;
    }
    col[e] = c;
  }
  if (num > 24) qsort(col, (size_t)num, sizeof *col, compare_columns);
  return tc_sort_unique(num, col);
}

static int32_t long_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  uint64_t      state  = tc_row_state(P, i);
  const int32_t mean   = (int32_t)(P->max_row / 2), width = P->num_cols < 4 * mean ? P->num_cols : 4 * mean;
  const int32_t first  = (int32_t)((int64_t)i * (P->num_cols - width) / P->num_rows);
  const int32_t length = tc_stratified(mean * 4 / 5 + tc_next_below(&state, 2 * mean / 5 + 1), width, &state, col);

  for (int32_t k = 0; k < length; ++k) col[k] += first;
  return length;
}

/* The variables of a constraint: half of them its own, half anyone's; a few constraints take an eighth of all */
static int32_t lp_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->num_cols, spacing = P->num_rows / DENSE_CONSTRAINTS, width = n < 400 ? n : 400;
  const int32_t first = (int32_t)((int64_t)i * (n - width) / P->num_rows);
  uint64_t      state = tc_row_state(P, i);
  int32_t       own, all;

  if (spacing > 0 && i % spacing == spacing / 2) return tc_stratified(n / 8, n, &state, col);
  all = 5 + tc_next_below(&state, 21);
  own = tc_stratified(all, width, &state, col);
  for (int32_t k = 0; k < own; ++k) col[k] += first;
  return tc_sort_unique(own + tc_stratified(all, n, &state, col + own), col);
}

/* What the rows of one process take from others: nine in ten have nothing, the others, near each other, 1 to 4 entries of few columns */
static int32_t offdiagonal_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  enum { TOGETHER = 16 };
  uint64_t      patch = tc_row_state(P, i / TOGETHER), state = tc_row_state(P, (int64_t)P->num_rows + i);
  const int32_t width = P->num_cols < 24 ? P->num_cols : 24;
  const int32_t first = (int32_t)((int64_t)i * (P->num_cols - width) / P->num_rows);
  int32_t       num;

  if (tc_next_below(&patch, 10) != 0) return 0;
  num = tc_stratified(1 + tc_next_below(&state, 4), width, &state, col);
  for (int32_t k = 0; k < num; ++k) col[k] += first;
  return num;
}

/* clang-format off */
static int64_t two_to(int64_t n) { return n < 31 ? INT64_C(1) << n : INT64_MAX; }
static int64_t at_least_1400(int64_t n) { return n < 1400 ? 1400 : n; }
static int64_t times10(int64_t n) { return 10 * n; }
static int64_t tenth(int64_t n) { return (n + 9) / 10; }

const tc_kind tc_graph_kinds[] = {
  {{"circuit",     403, 1, 1, "size rows, few entries near and far, 20 rows of size/16 entries"},          circuit_row,     tc_size1, tc_size1,      0},
  {{"webbase",     517, 1, 1, "size rows, power-law lengths"},                                             webbase_row,     tc_size1, tc_size1,      5000},
  {{"rmat",        7,   1, 1, "R-MAT graph of 2^size vertices, 16 edges drawn per vertex on average"},       rmat_row,        two_to,   two_to,        1 << 17},
  {{"long1153",    11,  1, 1, "size rows of 1153 entries on average, in a band"},                          long_row,        tc_size1, at_least_1400, 2306},
  {{"long487",     23,  1, 1, "size rows of 487 entries on average, in a band"},                           long_row,        tc_size1, at_least_1400, 974},
  {{"lp",          61,  1, 1, "constraints of a linear program: size rows, 10 size columns, 8 dense rows"}, lp_row,         tc_size1, times10,       0},
  {{"offdiagonal", 419, 1, 1, "off-diagonal block of a parallel matrix: size rows, nine in ten empty, the others of 1 to 4 entries"},
                                                                                                        offdiagonal_row, tc_size1, tenth,         4},
  {{NULL}},
};
/* clang-format on */
