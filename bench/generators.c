#include "generators.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 4096, DENSE_ROWS = 20, MAX_GATHER = 96 };

/* A pattern that is made row by row */
typedef struct pattern pattern;
struct pattern {
  int32_t size;
  uint64_t seed;
  int32_t  num_rows, num_cols;
  int64_t  max_row;            // room that row() may need
  int32_t *perm, *inverse;     // [num_rows] or NULL: a numbering inside windows
  int32_t (*row)(const pattern *P, int32_t i, int32_t *col); // the columns of row i, ascending; returns how many
};

static uint64_t mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9); // splitmix64, Steele, Lea and Flood 2014
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t next_random(uint64_t *state)
{
  return mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 .. n - 1 */
static int32_t next_below(uint64_t *state, int64_t n)
{
  return (int32_t)(next_random(state) % (uint64_t)n);
}

/* In (0, 1] */
static double to_unit(uint64_t random)
{
  return (double)((random >> 11) + 1) * 0x1p-53;
}

static uint64_t row_state(const pattern *P, int32_t i)
{
  return mix(P->seed + UINT64_C(0x632be59bd9b4e019) * ((uint64_t)i + 1));
}

void tc_random_normal(int64_t n, uint64_t seed, double *x)
{
  for (int64_t i = 0; i < n; i += 2) { // Box and Muller
    const double radius = sqrt(-2.0 * log(to_unit(mix(mix(seed) + (uint64_t)i)))), angle = 6.283185307179586 * to_unit(mix(mix(seed) + (uint64_t)i + 1));

    x[i] = radius * cos(angle);
    if (i + 1 < n) x[i + 1] = radius * sin(angle);
  }
}

/* Sorts col[0 .. num) and drops what is double; returns how many stay */
static int32_t sort_unique(int32_t num, int32_t *col)
{
  int32_t used = 0;

  for (int32_t i = 1; i < num; ++i) {
    const int32_t c = col[i];
    int32_t       k = i;

    for (; k > 0 && col[k - 1] > c; --k) col[k] = col[k - 1];
    col[k] = c;
  }
  for (int32_t i = 0; i < num; ++i) {
    if (used == 0 || col[used - 1] != col[i]) col[used++] = col[i];
  }
  return used;
}

/* `length` ascending columns of num_cols, one from each of `length` equal strata */
static int32_t stratified(int32_t length, int32_t num_cols, uint64_t *state, int32_t *col)
{
  if (length > num_cols) length = num_cols;
  for (int32_t k = 0; k < length; ++k) {
    const int64_t first = (int64_t)k * num_cols / length, end = ((int64_t)k + 1) * num_cols / length;

    col[k] = (int32_t)first + next_below(state, end - first);
  }
  return length;
}

/* Neighbours of node i of a size^3 grid, at most `reach` of the three coordinates different */
static int32_t grid_neighbours(const pattern *P, int32_t i, int reach, int32_t *col)
{
  const int32_t n = P->size, x = i % n, y = i / n % n, z = i / n / n;
  int32_t       num = 0;

  for (int dz = z > 0 ? -1 : 0; dz <= (z < n - 1); ++dz) {
    for (int dy = y > 0 ? -1 : 0; dy <= (y < n - 1); ++dy) {
      for (int dx = x > 0 ? -1 : 0; dx <= (x < n - 1); ++dx) {
        if (abs(dz) + abs(dy) + abs(dx) <= reach) col[num++] = i + (dz * n + dy) * n + dx;
      }
    }
  }
  return num;
}

static int32_t stencil27_row(const pattern *P, int32_t i, int32_t *col)
{
  return grid_neighbours(P, i, 3, col);
}

static int32_t stencil7_row(const pattern *P, int32_t i, int32_t *col)
{
  return grid_neighbours(P, i, 1, col);
}

static int32_t blocks_of_3(int32_t num, const int32_t *node, int32_t *col)
{
  for (int32_t k = 0; k < 3 * num; ++k) col[k] = 3 * node[k / 3] + k % 3;
  return 3 * num;
}

static int32_t elasticity_row(const pattern *P, int32_t i, int32_t *col)
{
  int32_t node[27];

  return blocks_of_3(grid_neighbours(P, i / 3, 3, node), node, col);
}

/* A fifth of the couplings is missing, on both sides of the diagonal, and unknowns are renumbered at random inside windows */
static int32_t stencil27_window_row(const pattern *P, int32_t i, int32_t *col)
{
  const int32_t old = P->inverse[i];
  int32_t       node[27], num = 0;
  const int32_t neighbours = grid_neighbours(P, old, 3, node);

  for (int32_t k = 0; k < neighbours; ++k) {
    const uint64_t low = (uint64_t)(node[k] < old ? node[k] : old), high = (uint64_t)(node[k] < old ? old : node[k]);

    if (low == high || to_unit(mix(mix(P->seed + low) + high)) < 0.795) col[num++] = P->perm[node[k]];
  }
  return sort_unique(num, col);
}

/* A periodic lattice size^4 with 3 unknowns per site: the site, its 8 neighbours, and those 2 steps away in two of the directions */
static int32_t qcd_row(const pattern *P, int32_t i, int32_t *col)
{
  static const int step[13][4] = {{0}, {1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}, {0, 0, 0, 1}, {0, 0, 0, -1}, {2}, {-2}, {0, 2}, {0, -2}};
  const int32_t    n = P->size, site = i / 3;
  int32_t          node[13];

  for (int k = 0; k < 13; ++k) {
    int32_t stride = 1, rest = site;

    node[k] = 0;
    for (int d = 0; d < 4; ++d) {
      node[k] += stride * ((rest % n + step[k][d] + 2 * n) % n);
      rest /= n;
      stride *= n;
    }
  }
  return blocks_of_3(sort_unique(13, node), node, col);
}

static int32_t four_row(const pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->size, x = i % n;
  int32_t       num = 0;

  if (i >= n) col[num++] = i - n;
  if (x > 0) col[num++] = i - 1;
  col[num++] = i;
  if (x < n - 1) col[num++] = i + 1;
  return num;
}

static int32_t circuit_row(const pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->num_rows, spacing = n / DENSE_ROWS;
  uint64_t      state = row_state(P, i);
  int32_t       num = 0, near, far;

  if (spacing > 0 && i % spacing == spacing / 2) return stratified(n / 16, n, &state, col);
  near       = next_below(&state, 6);
  far        = next_below(&state, 4) == 0 ? 3 : next_below(&state, 2);
  col[num++] = i;
  while (near-- > 0) col[num++] = (int32_t)(((int64_t)i + n + (next_below(&state, 401) - 200) % n) % n);
  while (far-- > 0) col[num++] = next_below(&state, n);
  return sort_unique(num, col);
}

/* Row lengths follow Pareto's law, cut at 4700; half of the links are near, the others prefer low numbers */
static int32_t webbase_row(const pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->num_rows;
  uint64_t      state  = row_state(P, i);
  const double  length = pow(to_unit(next_random(&state)), -1.0 / 1.42);
  int32_t       num    = length < 4700 ? (int32_t)length : 4700;

  if (num > MAX_GATHER) return stratified(num, n, &state, col);
  for (int32_t k = 0; k < num; ++k) {
    const double u = to_unit(next_random(&state));

    if (next_below(&state, 2)) col[k] = (int32_t)(((int64_t)i + n + (next_below(&state, 201) - 100) % n) % n);
    else col[k] = (int32_t)((double)(n - 1) * u * u * u);
  }
  return sort_unique(num, col);
}

static int32_t long_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t      state  = row_state(P, i);
  const int32_t mean   = (int32_t)(P->max_row / 2), width = P->num_cols < 4 * mean ? P->num_cols : 4 * mean;
  const int32_t first  = (int32_t)((int64_t)i * (P->num_cols - width) / P->num_rows);
  const int32_t length = stratified(mean * 4 / 5 + next_below(&state, 2 * mean / 5 + 1), width, &state, col);

  for (int32_t k = 0; k < length; ++k) col[k] += first;
  return length;
}

static int32_t ragged_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  return stratified(next_below(&state, 301), P->num_cols, &state, col);
}

static int32_t short_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  return stratified(next_below(&state, 6), P->num_cols, &state, col);
}

static int32_t mixed_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  return stratified(next_below(&state, 61), P->num_cols, &state, col);
}

static int32_t skewed_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  return stratified(i % 97 == 5 ? next_below(&state, P->num_cols + 1) : next_below(&state, 4), P->num_cols, &state, col);
}

static int32_t dense_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  if (i == P->num_rows / 3) return stratified(P->num_cols, P->num_cols, &state, col);
  col[0] = i;
  return 1;
}

static int32_t full_row(const pattern *P, int32_t i, int32_t *col)
{
  uint64_t state = row_state(P, i);

  return stratified(P->num_cols, P->num_cols, &state, col);
}

static int32_t empty_row(const pattern *P, int32_t i, int32_t *col)
{
  (void)P;
  (void)i;
  (void)col;
  return 0;
}

/* Every length at which a row changes its class, its tiles, its segments or the lanes that add them up, and the neighbours of these */
static int32_t limit_row(const pattern *P, int32_t i, int32_t *col)
{
  static const int32_t length[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16385, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1025, 2047, 2048, 2049, 4097, 65537, 67585, 6, 12, 1023};
  uint64_t             state    = row_state(P, i);

  return stratified(length[i % (int32_t)(sizeof length / sizeof length[0])], P->num_cols, &state, col);
}

/* num = rows, cols, room as functions of the size; `windows`: renumber */
typedef struct {
  tc_generator generator;
  int32_t (*row)(const pattern *P, int32_t i, int32_t *col);
  int64_t (*rows)(int64_t size);
  int64_t (*cols)(int64_t size);
  int64_t max_row; // 0: number of columns
  int     windows;
} kind;

/* clang-format off */
static int64_t size1(int64_t n) { return n; }
static int64_t size2(int64_t n) { return n * n; }
static int64_t size3(int64_t n) { return n * n * n; }
static int64_t nodes3(int64_t n) { return 3 * n * n * n; }
static int64_t sites4(int64_t n) { return 3 * n * n * n * n; }
static int64_t one(int64_t n) { (void)n; return 1; }
static int64_t none(int64_t n) { (void)n; return 0; }
static int64_t triple(int64_t n) { return 3 * n + 7; }
static int64_t at_least_1400(int64_t n) { return n < 1400 ? 1400 : n; }
static int64_t ragged_cols(int64_t n) { return n + 217; }
static int64_t limit_cols(int64_t n) { return n + 68000; }
static int64_t two_to(int64_t n) { return n < 31 ? INT64_C(1) << n : INT64_MAX; }

static const kind kinds[] = {
  {{"stencil27",        5,    "27-point stencil on a grid of size^3"},                                                        stencil27_row,        size3,  size3,  27, 0},
  {{"stencil27_window", 6,    "27-point stencil on a grid of size^3, a fifth of the couplings left out, renumbered at random in windows of 4096"}, stencil27_window_row, size3, size3, 27, 1},
  {{"elasticity",       4,    "3 unknowns per node of a size^3 hexahedral grid, full 3x3 blocks"},                            elasticity_row,       nodes3, nodes3, 81, 0},
  {{"stencil7",         6,    "7-point stencil on a grid of size^3"},                                                         stencil7_row,         size3,  size3,  27, 0},
  {{"qcd",              3,    "periodic lattice of size^4, 3 unknowns per site, 13 sites per row"},                           qcd_row,              sites4, sites4, 39, 0},
  {{"four",             9,    "grid of size^2, 4 entries per row"},                                                           four_row,             size2,  size2,  4,  0},
  {{"circuit",          403,  "size rows, few entries near and far, 20 rows of size/16 entries"},                             circuit_row,          size1,  size1,  0,  0},
  {{"webbase",          517,  "size rows, power-law lengths"},                                                                webbase_row,          size1,  size1,  5000, 0},
  {{"rmat",             7,    "R-MAT graph of 2^size vertices, 16 edges drawn per vertex"},                                   NULL,                 two_to, two_to, 0,  0},
  {{"long1153",         11,   "size rows of 1153 entries on average, in a band"},                                                        long_row,             size1,  at_least_1400, 2306, 0},
  {{"long487",          23,   "size rows of 487 entries on average, in a band"},                                                         long_row,             size1,  at_least_1400, 974, 0},
  {{"ragged",           331,  "size rows of 0 to 300 entries"},                                                               ragged_row,           size1,  ragged_cols, 0, 0},
  {{"mixed",            2011, "size rows of 0 to 60 entries"},                                                                mixed_row,            size1,  size1,  0,  0},
  {{"short",            2003, "size rows of 0 to 5 entries"},                                                                 short_row,            size1,  size1,  0,  0},
  {{"skewed",           503,  "size rows of 0 to 3 entries, every 97th any length"},                                          skewed_row,           size1,  triple, 0,  0},
  {{"limits",           65,   "size rows of the lengths where classes change"},                                               limit_row,            size1,  limit_cols, 0, 0},
  {{"dense_row",        301,  "diagonal of size, one full row"},                                                              dense_row,            size1,  size1,  0,  0},
  {{"wide",             97,   "size rows, 3 size + 7 columns, 0 to 5 entries per row"},                                       short_row,            size1,  triple, 0,  0},
  {{"tall",             97,   "3 size + 7 rows, size columns, 0 to 5 entries per row"},                                       short_row,            triple, size1,  0,  0},
  {{"one_row",          1031, "one full row of size"},                                                                        full_row,             one,    size1,  0,  0},
  {{"one_column",       67,   "one full column of size"},                                                                     full_row,             size1,  one,    0,  0},
  {{"one_entry",        1,    "1 x 1"},                                                                                       full_row,             one,    one,    0,  0},
  {{"all_empty",        37,   "size x size without entries"},                                                                 empty_row,            size1,  size1,  0,  0},
  {{"no_rows",          5,    "0 x size"},                                                                                    empty_row,            none,   size1,  0,  0},
  {{"no_columns",       5,    "size x 0"},                                                                                    empty_row,            size1,  none,   0,  0},
  {{"nothing",          0,    "0 x 0"},                                                                                       empty_row,            none,   none,   0,  0},
};
/* clang-format on */

enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

const tc_generator *tc_generators(int *num)
{
  static tc_generator table[NUM_KINDS];

  for (int i = 0; i < NUM_KINDS; ++i) table[i] = kinds[i].generator;
  *num = NUM_KINDS;
  return table;
}

const tc_generator *tc_generator_find(const char *name)
{
  for (int i = 0; i < NUM_KINDS; ++i) {
    if (strcmp(kinds[i].generator.name, name) == 0) return &kinds[i].generator;
  }
  return NULL;
}

static tc_status rmat(int32_t scale, uint64_t seed, tc_matrix *A)
{
  const int32_t n   = (int32_t)(INT64_C(1) << scale);
  const size_t  num = (size_t)16 << scale;
  int32_t      *row = malloc(num * sizeof *row), *col = malloc(num * sizeof *col);
  double       *val = calloc(num, sizeof *val);
  tc_status     status;

  if (row && col && val) {
    for (size_t e = 0; e < num; ++e) {
      uint64_t state = mix(seed + UINT64_C(0x632be59bd9b4e019) * (e + 1));

      row[e] = col[e] = 0;
      for (int32_t bit = 0; bit < scale; ++bit) { // quadrants with the probabilities of Graph500
        const double u = to_unit(next_random(&state));

        row[e] = 2 * row[e] + (u > 0.76);
        col[e] = 2 * col[e] + ((u > 0.57 && u <= 0.76) || u > 0.95);
      }
    }
    status = tc_matrix_from_triplets(n, n, (int64_t)num, row, col, val, A);
  } else status = tc_fail(TC_ERR_MEMORY, "no host memory for %zu edges", num);
  free(row);
  free(col);
  free(val);
  return status;
}

/* A random permutation inside each window */
static tc_status renumber(pattern *P)
{
  const size_t bytes = ((size_t)P->num_rows + 1) * sizeof(int32_t);

  P->perm    = malloc(bytes);
  P->inverse = malloc(bytes);
  TC_CHECK(P->perm != NULL && P->inverse != NULL, TC_ERR_MEMORY, "no host memory for a numbering of %d rows", P->num_rows);
  for (int32_t i = 0; i < P->num_rows; ++i) P->inverse[i] = i;
  for (int32_t first = 0; first < P->num_rows; first += WINDOW) {
    uint64_t state = row_state(P, first);

    for (int32_t i = (P->num_rows - first < WINDOW ? P->num_rows - first : WINDOW) - 1; i > 0; --i) {
      const int32_t k = next_below(&state, (int64_t)i + 1), swap = P->inverse[first + i];

      P->inverse[first + i] = P->inverse[first + k];
      P->inverse[first + k] = swap;
    }
  }
  for (int32_t i = 0; i < P->num_rows; ++i) P->perm[P->inverse[i]] = i;
  return TC_OK;
}

/* Twice over the rows: first to count, then to write */
static tc_status fill(const pattern *P, int32_t *scratch, tc_matrix *A)
{
  int64_t nnz = 0;

  for (int32_t i = 0; i < P->num_rows; ++i) nnz += P->row(P, i, scratch);
  TC_CALL(tc_matrix_create(P->num_rows, P->num_cols, nnz, A));
  for (int32_t i = 0; i < P->num_rows; ++i) {
    const int32_t length = P->row(P, i, scratch);

    memcpy(A->col + A->row_ptr[i], scratch, (size_t)length * sizeof *scratch);
    A->row_ptr[i + 1] = A->row_ptr[i] + length;
  }
  return TC_OK;
}

static tc_status generate_rows(const kind *K, int32_t size, uint64_t seed, tc_matrix *A)
{
  const int64_t rows = K->rows(size), cols = K->cols(size);
  pattern       P = {size, mix(seed), (int32_t)rows, (int32_t)cols, K->max_row, NULL, NULL, K->row};
  int32_t      *scratch;
  tc_status     status = TC_OK;

  if (P.max_row == 0) P.max_row = cols;
  scratch = malloc(((size_t)P.max_row + MAX_GATHER) * sizeof *scratch);
  if (scratch == NULL) status = tc_fail(TC_ERR_MEMORY, "no host memory for a row of %lld entries", (long long)P.max_row);
  if (status == TC_OK && K->windows) status = renumber(&P);
  if (status == TC_OK) status = fill(&P, scratch, A);
  free(scratch);
  free(P.perm);
  free(P.inverse);
  return status;
}

tc_status tc_generate(const tc_generator *generator, int32_t size, uint64_t seed, tc_matrix *A)
{
  int i = 0;

  memset(A, 0, sizeof *A);
  while (strcmp(kinds[i].generator.name, generator->name) != 0) ++i;
  TC_CHECK(size >= 0 && kinds[i].rows(size) <= INT32_MAX && kinds[i].cols(size) <= INT32_MAX, TC_ERR_ARG, "%s of size %d: expected 32-bit dimensions", generator->name, size);
  if (kinds[i].row) TC_CALL(generate_rows(&kinds[i], size, seed, A));
  else TC_CALL(rmat(size, seed, A));
  tc_random_normal(A->nnz, seed + 1, A->val);
  return TC_OK;
}
