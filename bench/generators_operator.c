/* Generators: discretised operators - finite elements of degree 1 to 3, convection, Stokes, PETSc's ex45 and ex56, transfers between grids */
#include "generator_kind.h"
#include <math.h>
#include <stdlib.h>

/* --- tetrahedral elements of degree 2 and 3 on cubes that are cut into 6 tetrahedra each, all alike: the nodes are the points of a lattice of degree * size + 1
       points a side, and which others a node meets depends on its place modulo the degree */

enum { MAX_DEGREE = 3, MAX_CLASSES = MAX_DEGREE * MAX_DEGREE * MAX_DEGREE, MAX_MET = 256 };

typedef struct {
  int32_t num[MAX_CLASSES];
  int8_t  step[MAX_CLASSES][MAX_MET][3]; // x, y, z, in ascending order of the column
} element_table;

/* Is point (x, y, z) of a cube of degree^3 steps in the tetrahedron where the coordinate first[0] is the largest and first[2] the smallest? */
static int in_tetrahedron(const int at[3], const int order[3])
{
  return at[order[0]] >= at[order[1]] && at[order[1]] >= at[order[2]];
}

/* Do the points at and at + step share a tetrahedron? */
static int points_meet(int degree, const int at[3], const int step[3])
{
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

  for (int cube = 0; cube < 8; ++cube) { // the cube above, or the one below, in every direction
    int here[3], there[3], inside = 1;

    for (int d = 0; d < 3; ++d) {
      here[d]  = at[d] + (cube >> d & 1 ? degree : 0);
      there[d] = here[d] + step[d];
      if (here[d] > degree || there[d] < 0 || there[d] > degree) inside = 0;
    }
    for (int o = 0; inside && o < 6; ++o) {
      if (in_tetrahedron(here, orders[o]) && in_tetrahedron(there, orders[o])) return 1;
    }
  }
  return 0;
}

static tc_status prepare_element(tc_pattern *P)
{
  const int      degree = *(const int *)P->parameters;
  element_table *T      = calloc(1, sizeof *T);

  TC_CHECK(T != NULL, TC_ERR_MEMORY, "no host memory for the table of an element");
  P->data = T;
  for (int c = 0; c < degree * degree * degree; ++c) {
    const int at[3] = {c % degree, c / degree % degree, c / degree / degree};

    for (int z = -degree; z <= degree; ++z) {
      for (int y = -degree; y <= degree; ++y) {
        for (int x = -degree; x <= degree; ++x) {
          int8_t *step = T->step[c][T->num[c]];

          if (!points_meet(degree, at, (int[3]){x, y, z})) continue;
          step[0] = (int8_t)x;
          step[1] = (int8_t)y;
          step[2] = (int8_t)z;
          ++T->num[c];
        }
      }
    }
  }
  return TC_OK;
}

static int32_t element_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const element_table *T      = P->data;
  const int32_t        degree = *(const int *)P->parameters, n = degree * P->size + 1, at[3] = {i % n, i / n % n, i / n / n};
  const int32_t        c   = at[0] % degree + degree * (at[1] % degree + degree * (at[2] % degree));
  int32_t              num = 0;

  for (int32_t k = 0; k < T->num[c]; ++k) {
    const int8_t *step = T->step[c][k];
    int           inside = 1;

    for (int d = 0; d < 3; ++d) inside &= at[d] + step[d] >= 0 && at[d] + step[d] < n;
    if (inside) col[num++] = i + step[0] + n * (step[1] + n * step[2]);
  }
  return num;
}

/* --- like PETSc's ex56: trilinear elements of linear elasticity, E = 1, Poisson's ratio 1/4, thousandfold softer in a sphere, the plane z = 0 clamped */

/* Entry (a, c), (b, d) of the stiffness of a unit cube, corners a and b, a bit per direction, components c and d */
static double stiffness(int a, int b, int c, int d)
{
  const double   lame  = 0.4; // both of Lame's constants
  const uint64_t first = 3 * (uint64_t)a + (uint64_t)c, second = 3 * (uint64_t)b + (uint64_t)d;
  double         sum   = 0;

  for (int p = 0; p < 3; ++p) {
    for (int q = 0; q < 3; ++q) { // the integral of the derivative of a in direction p times that of b in direction q
      const double factor = lame * ((p == c && q == d) + (p == d && q == c) + (c == d && p == q));
      double       product = 1;

      for (int e = 0; e < 3; ++e) {
        const int here = a >> e & 1, there = b >> e & 1;

        if (e == p && e == q) product *= here == there ? 1.0 : -1.0;
        else if (e == p) product *= here ? 0.5 : -0.5;
        else if (e == q) product *= there ? 0.5 : -0.5;
        else product *= here == there ? 1.0 / 3 : 1.0 / 6;
      }
      sum += factor * product;
    }
  }
  // as in PETSc's table, what is the same in exact arithmetic differs by a few roundings: assembled, there are about 400 different numbers
  return sum * (1 + ((double)(tc_mix(first < second ? 24 * first + second : 24 * second + first) % 9) - 4) * 0x1p-52);
}

static int32_t ex56_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const tc_pattern nodes = {.size = P->size + 1};
  int32_t          node[27];

  return tc_blocks(3, tc_grid_neighbours(&nodes, i / 3, 3, node), node, col);
}

/* The sum over the cubes around node `at` that node at + step belongs to, for components c and d */
static double ex56_entry(int32_t n, const double K[8][8][3][3], const int32_t at[3], const int32_t step[3], int c, int d)
{
  double sum = 0;

  for (int a = 0; a < 8; ++a) { // the node is corner a of a cube
    int    b = 0, inside = 1;
    double radius = 0, weight;

    for (int e = 0; e < 3; ++e) {
      const int32_t cube = at[e] - (a >> e & 1), corner = (a >> e & 1) + step[e];
      const double  middle = (cube + 0.5) / n - 0.5;

      if (cube < 0 || cube >= n || corner < 0 || corner > 1) inside = 0;
      else b |= corner << e;
      radius += middle * middle;
    }
    if (!inside) continue;
    weight = radius < 0.0625 ? 1e-3 : 1.0;
    if (at[2] - (a >> 2 & 1) == 0 && (a < 4 || b < 4)) sum += a == b && c == d ? weight * 0.1 * K[a][a][c][c] : 0.0;
    else sum += weight * K[a][b][c][d];
  }
  return sum;
}

static void ex56_values(const tc_pattern *P, tc_matrix *A)
{
  const int32_t n = P->size + 1;
  double        K[8][8][3][3];

  for (int k = 0; k < 8 * 8 * 9; ++k) K[k / 72][k / 9 % 8][k / 3 % 3][k % 3] = stiffness(k / 72, k / 9 % 8, k / 3 % 3, k % 3);
  for (int32_t i = 0; i < A->num_rows; ++i) {
    const int32_t node = i / 3, at[3] = {node % n, node / n % n, node / n / n};

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const int32_t other = A->col[e] / 3, step[3] = {other % n - at[0], other / n % n - at[1], other / n / n - at[2]};

      A->val[e] = ex56_entry(P->size, (const double(*)[8][3][3])K, at, step, i % 3, A->col[e] % 3);
    }
  }
}

/* --- like PETSc's ex45: 7-point Laplacian on size^3 points, its boundary rows a multiple of the identity's */

static int32_t ex45_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->size, at[3] = {i % n, i / n % n, i / n / n};

  for (int d = 0; d < 3; ++d) {
    if (at[d] > 0 && at[d] < n - 1) continue;
    col[0] = i;
    return 1;
  }
  return tc_grid_neighbours(P, i, 1, col);
}

static void ex45_values(const tc_pattern *P, tc_matrix *A)
{
  const double h = 1.0 / (P->size - 1);

  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) A->val[e] = A->col[e] == i ? 6 * h : -h;
  }
}

/* --- convection and diffusion, second-order upwind differences in a turning wind */

enum { MAX_CONVECTION = 10 };

static int32_t convection_entries(const tc_pattern *P, int32_t i, int32_t *col, double *val)
{
  const int32_t n = P->size, at[3] = {i % n, i / n % n, i / n / n};
  const double  h = 1.0 / (n + 1), wind[3] = {0.5 - h * (at[1] + 1), h * (at[0] + 1) - 0.5, 0.25 + 0.5 * h * (at[2] + 1)}, diffusion = 1e-3 / (h * h);
  int32_t       num = 1, stride = 1;

  col[0] = i;
  val[0] = 0;
  for (int d = 0; d < 3; ++d) {
    const int32_t up      = wind[d] >= 0 ? -1 : 1;
    const double  speed   = fabs(wind[d]) / h;
    const int32_t step[3] = {2 * up, up, -up};
    const double  part[3] = {0.5 * speed, -2 * speed - diffusion, -diffusion};

    for (int32_t k = 0; k < num; ++k) {
      if (col[k] == i) val[k] += 1.5 * speed + 2 * diffusion;
    }
    for (int s = 0; s < 3; ++s) {
      int32_t k = num;

      if (at[d] + step[s] < 0 || at[d] + step[s] >= n) continue;
      for (; k > 0 && col[k - 1] > i + step[s] * stride; --k) {
        col[k] = col[k - 1];
        val[k] = val[k - 1];
      }
      col[k] = i + step[s] * stride;
      val[k] = part[s];
      ++num;
    }
    stride *= n;
  }
  return num;
}

static int32_t convection_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  double val[MAX_CONVECTION];

  return convection_entries(P, i, col, val);
}

static void convection_values(const tc_pattern *P, tc_matrix *A)
{
  int32_t col[MAX_CONVECTION];

  for (int32_t i = 0; i < A->num_rows; ++i) (void)convection_entries(P, i, col, A->val + A->row_ptr[i]);
}

/* --- Stokes: 3 velocities per node, then the pressures, which do not couple among themselves */

static int32_t stokes_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t velocities = P->num_rows / 4 * 3;
  int32_t       node[27], num, used;

  num  = tc_grid_neighbours(P, i < velocities ? i / 3 : i - velocities, 3, node);
  used = tc_blocks(3, num, node, col);
  for (int32_t k = 0; i < velocities && k < num; ++k) col[used++] = velocities + node[k];
  return used;
}

/* --- trilinear interpolation from size^3 points to twice as many in every direction, and its transpose */

static int32_t interpolation_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->size, fine = 2 * n, at[3] = {i % fine, i / fine % fine, i / fine / fine};
  int32_t       num = 0;

  for (int32_t z = at[2] / 2; z <= (at[2] + 1) / 2 && z < n; ++z) {
    for (int32_t y = at[1] / 2; y <= (at[1] + 1) / 2 && y < n; ++y) {
      for (int32_t x = at[0] / 2; x <= (at[0] + 1) / 2 && x < n; ++x) col[num++] = x + n * (y + n * z);
    }
  }
  return num;
}

static int32_t restriction_row(const tc_pattern *P, int32_t i, int32_t *col)
{
  const int32_t n = P->size, fine = 2 * n, at[3] = {2 * (i % n), 2 * (i / n % n), 2 * (i / n / n)};
  int32_t       num = 0;

  for (int32_t z = at[2] > 0 ? at[2] - 1 : 0; z <= at[2] + 1; ++z) {
    for (int32_t y = at[1] > 0 ? at[1] - 1 : 0; y <= at[1] + 1; ++y) {
      for (int32_t x = at[0] > 0 ? at[0] - 1 : 0; x <= at[0] + 1; ++x) col[num++] = x + fine * (y + fine * z);
    }
  }
  return num;
}

/* A half for every direction in which the fine point lies between two coarse ones */
static void transfer_values(const tc_pattern *P, tc_matrix *A)
{
  const int32_t fine = 2 * P->size;

  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const int32_t point = A->num_rows > A->num_cols ? i : A->col[e];

      A->val[e] = 1.0 / (1 << (point % fine % 2 + point / fine % fine % 2 + point / fine / fine % 2));
    }
  }
}

/* clang-format off */
static int64_t p2_nodes(int64_t n) { return tc_size3(2 * n + 1); }
static int64_t p3_nodes(int64_t n) { return tc_size3(3 * n + 1); }
static int64_t ex56_unknowns(int64_t n) { return tc_nodes3(n + 1); }
static int64_t stokes_unknowns(int64_t n) { return 4 * tc_size3(n); }
static int64_t fine_points(int64_t n) { return 8 * tc_size3(n); }

const tc_kind tc_operator_kinds[] = {
  {{"p2",            3, 1, 1, "quadratic elements on size^3 cubes of 6 tetrahedra"},                              element_row,       p2_nodes,        p2_nodes,        MAX_MET, .parameters = &(const int){2}, .prepare = prepare_element},
  {{"p3",            2, 1, 1, "cubic elements on size^3 cubes of 6 tetrahedra"},                                  element_row,       p3_nodes,        p3_nodes,        MAX_MET, .parameters = &(const int){3}, .prepare = prepare_element},
  {{"ex45",          6, 0, 1, "like PETSc's ex45: Laplacian on a grid of size^3, boundary rows of one entry"},         ex45_row,          tc_size3,        tc_size3,        7,   .values = ex45_values},
  {{"ex56",          3, 0, 3, "like PETSc's ex56: elasticity on size^3 hexahedra of two materials, one side clamped"}, ex56_row,          ex56_unknowns,   ex56_unknowns,   81,  .values = ex56_values},
  {{"convection",    6, 0, 1, "convection and diffusion on a grid of size^3, second-order upwind"},               convection_row,    tc_size3,        tc_size3,        MAX_CONVECTION, .values = convection_values},
  {{"stokes",        3, 1, 1, "Stokes on a grid of size^3: 3 velocities and a pressure per node, no pressure block"}, stokes_row,    stokes_unknowns, stokes_unknowns, 108},
  {{"interpolation", 3, 0, 1, "trilinear interpolation from size^3 points to 8 times as many"},                   interpolation_row, fine_points,     tc_size3,        8,   .values = transfer_values},
  {{"restriction",   3, 0, 1, "transpose of interpolation"},                                                      restriction_row,   tc_size3,        fine_points,     27,  .values = transfer_values},
  {{NULL}},
};
/* clang-format on */
