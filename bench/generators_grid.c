/* Generators: regular grids - stencils, dof-block elements, lattices; values random, of a handful of numbers, or exact in single precision */
#include "generator_kind.h"
#include <stdlib.h>

enum { WINDOW = 4096 };

static int32_t stencil27_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  return tc_grid_neighbours(P, i, 3, col);
}

static int32_t stencil7_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  return tc_grid_neighbours(P, i, 1, col);
}

static int32_t elasticity_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  int32_t node[27];

  return tc_blocks(3, tc_grid_neighbours(P, i / 3, 3, node), node, col);
}

/* The numbering that renumber() makes */
static const int32_t *old_number(const tc_pattern *P)
{
  return P->data;
}

static const int32_t *new_number(const tc_pattern *P)
{
  return old_number(P) + P->num_rows;
}

/* A random permutation inside each window */
static tc_status renumber(tc_pattern *P)
{
  int32_t *old = malloc((2 * (size_t)P->num_rows + 1) * sizeof *old);

  TC_CHECK(old != NULL, TC_ERR_MEMORY, "no host memory for a numbering of %d rows", P->num_rows);
  for (int32_t i = 0; i < P->num_rows; ++i) old[i] = i;
  for (int32_t first = 0; first < P->num_rows; first += WINDOW) {
    uint64_t state = tc_row_state(P, first);

    for (int32_t i = (P->num_rows - first < WINDOW ? P->num_rows - first : WINDOW) - 1; i > 0; --i) {
      const int32_t k = tc_next_below(&state, (int64_t)i + 1), swap = old[first + i];

      old[first + i] = old[first + k];
      old[first + k] = swap;
    }
  }
  for (int32_t i = 0; i < P->num_rows; ++i) old[P->num_rows + old[i]] = i;
  P->data = old;
  return TC_OK;
}

/* A fifth of the couplings is missing, on both sides of the diagonal, and unknowns are renumbered at random inside windows */
static int32_t stencil27_window_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t old = old_number(P)[i];
  int32_t       node[27], num = 0;
  const int32_t neighbours = tc_grid_neighbours(P, old, 3, node);

  for (int32_t k = 0; k < neighbours; ++k) {
    const uint64_t low = (uint64_t)(node[k] < old ? node[k] : old), high = (uint64_t)(node[k] < old ? old : node[k]);

    if (low == high || tc_to_unit(tc_mix(tc_mix(P->seed + low) + high)) < 0.795) col[num++] = new_number(P)[node[k]];
  }
  return tc_sort_unique(num, col);
}

/* A periodic lattice size^4 with 3 unknowns per site: the site, its 8 neighbours, and those 2 steps away in two of the directions */
static int32_t qcd_row(const tc_pattern *P, int32_t i, int32_t *col)
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
  return tc_blocks(3, tc_sort_unique(13, node), node, col);
}

static int32_t four_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->size, x = i % n;
  int32_t       num = 0;

  if (i >= n) col[num++] = i - n;
  if (x > 0) col[num++] = i - 1;
  col[num++] = i;
  if (x < n - 1) col[num++] = i + 1;
  return num;
}

/* -1, and the kind's parameter on the diagonal */
static void laplace_values(const tc_pattern *P, tc_matrix *A)
{
  const double diagonal = *(const double *)P->parameters;

  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) A->val[e] = A->col[e] == i ? diagonal : -1.0;
  }
}

static void single_precision_values(const tc_pattern *P, tc_matrix *A)
{
  tc_random_normal(A->nnz, P->seed, A->val);
  for (int64_t e = 0; e < A->nnz; ++e) A->val[e] = (double)(float)A->val[e];
}

static int64_t sites4(int64_t n)
{
  return n < 1 << 10 ? 3 * n * n * n * n : INT64_C(1) << 40;
}

/* clang-format off */
const tc_kind tc_grid_kinds[] = {
  {{"stencil27",        5, 1, 1, "27-point stencil on a grid of size^3"},                                   stencil27_row,  tc_size3,  tc_size3,  27},
  {{"stencil27_window", 6, 1, 1, "27-point stencil on a grid of size^3, a fifth of the couplings left out, renumbered at random in windows of 4096"},
                                                                                                         stencil27_window_row, tc_size3, tc_size3, 27, .prepare = renumber},
  {{"elasticity",       4, 1, 3, "3 unknowns per node of a size^3 hexahedral grid, full 3x3 blocks"},       elasticity_row, tc_nodes3, tc_nodes3, 81},
  {{"stencil7",         6, 1, 1, "7-point stencil on a grid of size^3"},                                    stencil7_row,   tc_size3,  tc_size3,  7},
  {{"qcd",              3, 1, 3, "periodic lattice of size^4, 3 unknowns per site, 13 sites per row"},      qcd_row,        sites4,    sites4,    39},
  {{"four",             9, 1, 1, "grid of size^2, 4 entries per row"},                                      four_row,       tc_size2,  tc_size2,  4},
  {{"laplace7",         5, 0, 1, "7-point Laplacian on a grid of size^3: values 6 and -1"},                 stencil7_row,   tc_size3,  tc_size3,  7,  .parameters = &(const double){6}, .values = laplace_values},
  {{"laplace27",        4, 0, 1, "27-point Laplacian on a grid of size^3: values 26 and -1"},               stencil27_row,  tc_size3,  tc_size3,  27, .parameters = &(const double){26}, .values = laplace_values},
  {{"elasticity_f32",   3, 0, 3, "as elasticity, the values random normal in single precision"},            elasticity_row, tc_nodes3, tc_nodes3, 81, .values = single_precision_values},
  {{NULL}},
};
/* clang-format on */
