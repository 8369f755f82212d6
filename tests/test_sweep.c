/*
  Sweeps on the device against a loop over the rows on the host, bit for bit, in both scalars, with guard words: test_sweep [-small|-few] [-vectors|-blocks] libaijtccusparse_cuda.so. -small has three of the sizes, -few one and
  some of the ways, and neither the large ones, for sanitizers; so are vectors by themselves, or blocks of them. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tc_backend *backend;

/* A square matrix of nodes of so many rows, which share their columns: a node refers to itself, and at random to those up to `reach` away, of which one in `gap` is taken */
typedef struct {
  int32_t n, node, longest, *row_ptr, *col, *diagonal;
  int64_t nnz;
  void   *val;
} matrix;

static matrix matrix_new(tc_scalar scalar, int32_t nodes, int32_t reach, int32_t gap, int32_t node)
{
  const int32_t n    = nodes * node;
  const size_t  most = (size_t)n * (size_t)(2 * reach + 1) * (size_t)node;
  matrix        A    = {.n = n, .node = node, .row_ptr = bytes_new((size_t)(n + 1) * sizeof *A.row_ptr), .col = bytes_new(most * sizeof *A.col), .diagonal = bytes_new((size_t)n * sizeof *A.diagonal)};

  for (int32_t i = 0; i < n; ++i) {
    A.row_ptr[i] = (int32_t)A.nnz;
    for (int32_t J = i / node > reach ? i / node - reach : 0; i % node == 0 && J < nodes && J <= i / node + reach; ++J) {
      if (J != i / node && random_below(gap) != 0) continue;
      for (int32_t c = 0; c < node; ++c) A.col[A.nnz++] = J * node + c;
    }
    for (int32_t k = i > 0 ? A.row_ptr[i - 1] : 0; i % node != 0 && k < A.row_ptr[i]; ++k) A.col[A.nnz++] = A.col[k];
    for (int32_t k = A.row_ptr[i]; k < (int32_t)A.nnz; ++k) {
      if (A.col[k] == i) A.diagonal[i] = k;
    }
    if ((int32_t)A.nnz - A.row_ptr[i] > A.longest) A.longest = (int32_t)A.nnz - A.row_ptr[i];
  }
  A.row_ptr[n] = (int32_t)A.nnz;
  A.val = numbers_new(scalar, A.nnz);
  for (int64_t k = 0; k < A.nnz; ++k) set_number(scalar, A.val, k, number_at(scalar, A.val, k) / 150000 / (4.0 * node * (reach + 1))); // those of a row add up to less than one, so that nothing becomes infinite
  for (int32_t i = 0; i < n; ++i) set_number(scalar, A.val, A.diagonal[i], 1.0 + 0.125 * (i % 9));
  return A;
}

static void matrix_free(matrix *A)
{
  free(A->row_ptr);
  free(A->col);
  free(A->diagonal);
  free(A->val);
}

/* An operation of the scalar */
static double rounded(tc_scalar scalar, double number)
{
  return scalar == TC_SCALAR_F32 ? (double)(float)number : number;
}

/* What PETSc's host code does in a sweep: x from `before`, and what a backward sweep starts with into `saved` */
static void sweep_on_host(const matrix *A, const tc_sweep *s, const void *b, const void *before, void *x, void *saved)
{
  const tc_scalar scalar = s->scalar;
  void           *apart  = bytes_new(bytes_of(scalar, A->n)), *steps = s->kind == TC_SWEEP_EISENSTAT || s->kind == TC_SWEEP_UNIT_OVER ? apart : x; // what other rows read

  for (int32_t step = 0; step < A->n; ++step) {
    const int32_t i = s->backward ? A->n - 1 - step : step, at = A->diagonal[i];
    const double  d = number_at(scalar, A->val, at), old = number_at(scalar, before, i);
    const double  e   = s->omega == 1.0 && s->shift <= 0.0 ? rounded(scalar, 1.0 / d) : rounded(scalar, rounded(scalar, s->omega) / rounded(scalar, s->shift + d));
    double        sum = number_at(scalar, b, i), step_by;

    if (s->kind == TC_SWEEP_EISENSTAT) sum = rounded(scalar, sum - rounded(scalar, rounded(scalar, rounded(scalar, 2.0 / s->omega - 1.0) * d) * old));
    for (int32_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) {
      const int32_t j   = A->col[k];
      const int     own = s->backward ? j > i : j < i;

      if (!s->backward && j == i && saved) set_number(scalar, saved, i, sum);
      if (!own && (s->kind != TC_SWEEP_AGAIN || (j == i && !s->backward))) continue;
      sum = rounded(scalar, sum - rounded(scalar, number_at(scalar, A->val, k) * number_at(scalar, own ? steps : before, j)));
    }
    if (s->kind == TC_SWEEP_AGAIN && s->backward) sum = rounded(scalar, sum + rounded(scalar, d * old));
    step_by = s->kind == TC_SWEEP_UNIT || s->kind == TC_SWEEP_UNIT_OVER ? sum : rounded(scalar, sum * e);
    if (s->kind == TC_SWEEP_UNIT_OVER) {
      set_number(scalar, steps, i, step_by);
      set_number(scalar, x, i, rounded(scalar, step_by * e));
    } else if (s->kind == TC_SWEEP_EISENSTAT) {
      set_number(scalar, steps, i, step_by);
      set_number(scalar, x, i, old + step_by);
    } else if (s->kind == TC_SWEEP_FROM_ZERO || s->kind == TC_SWEEP_UNIT) set_number(scalar, x, i, step_by);
    else if (s->in_double) set_number(scalar, x, i, (1.0 - s->omega) * old + step_by);
    else set_number(scalar, x, i, rounded(scalar, rounded(scalar, 1.0 - rounded(scalar, s->omega)) * old) + step_by);
  }
  free(apart);
}

/* The rows by level, in natural order within one, nodes where the first of their rows is in the direction, and backward its last row first; how many levels are there? */
static int32_t order_on_host(const matrix *A, int upper, int32_t *order)
{
  int32_t *level = bytes_new((size_t)A->n * sizeof *level), *next = bytes_new(((size_t)A->n + 2) * sizeof *next), most = 0;

  for (int32_t step = 0; step < A->n; ++step) {
    const int32_t i = upper ? A->n - 1 - step : step;

    level[i] = 1;
    for (int32_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) {
      const int32_t j = A->col[k];

      if ((upper ? j > i : j < i) && level[j] >= level[i]) level[i] = level[j] + 1;
    }
    if (level[i] > most) most = level[i];
  }
  for (int32_t i = 0; i < A->n; ++i) {
    const int32_t lead = i - i % A->node + (upper ? A->node - 1 : 0);

    if (i != lead) level[i] = level[lead];
  }
  for (int32_t l = 0; l <= most + 1; ++l) next[l] = 0;
  for (int32_t i = 0; i < A->n; ++i) ++next[level[i] + 1];
  for (int32_t l = 1; l <= most + 1; ++l) next[l] += next[l - 1];
  for (int32_t i = 0; i < A->n; ++i) order[next[level[i]]++] = upper ? i - i % A->node + A->node - 1 - i % A->node : i;
  free(level);
  free(next);
  return most;
}

/* The pattern as the device has it, from orders of its own, which have to be the host's; and what place has to be */
typedef struct {
  device_bytes     order[2], diagonal, place, scratch;
  int32_t         *host_order[2], *host_place, levels[2];
  int              counted; // as many levels as there are, and one too many is noticed
  tc_sweep_pattern P;
} pattern;

static pattern pattern_new(const matrix *A, const tc_csr_local *local)
{
  const size_t ids = (size_t)A->n * sizeof(int32_t), entries = (size_t)A->nnz * sizeof(int32_t);
  int32_t     *at = bytes_new(ids), *poison = bytes_new(entries);
  pattern      p  = {.host_place = bytes_new(entries)};

  for (int64_t k = 0; k < A->nnz; ++k) p.host_place[k] = poison[k] = -7; // that of the diagonal stays
  for (int t = 0; t < 2; ++t) {
    int32_t num = 0, stopped = 0;

    p.host_order[t] = bytes_new(ids);
    p.order[t]      = device_bytes_new(ids, NULL);
    p.P.order[t]    = (const int32_t *)(void *)p.order[t].local;
    p.levels[t]     = order_on_host(A, t, p.host_order[t]);
    if (p.levels[t] > 1) device_check(backend, backend->order_rows(local, t, p.levels[t] - 1, (int32_t *)(void *)p.order[t].local, &stopped, NULL), "order_rows");
    device_check(backend, backend->order_rows(local, t, p.levels[t], (int32_t *)(void *)p.order[t].local, &num, NULL), "order_rows");
    p.counted = (t == 0 || p.counted) && num == p.levels[t] && (p.levels[t] == 1 || stopped == p.levels[t]);
    for (int32_t i = 0; i < A->n; ++i) at[p.host_order[t][i]] = i;
    for (int32_t i = 0; i < A->n; ++i) {
      for (int32_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) {
        if (t ? A->col[k] > i : A->col[k] < i) p.host_place[k] = at[A->col[k]];
      }
    }
  }
  p.diagonal   = device_bytes_new(ids, NULL);
  p.place      = device_bytes_new(entries, poison);
  p.scratch    = device_bytes_new(2 * ids, NULL);
  p.P.node     = A->node;
  p.P.longest  = A->longest;
  p.P.diagonal = (int32_t *)(void *)p.diagonal.local;
  p.P.place    = (int32_t *)(void *)p.place.local;
  device_check(backend, backend->sweep_pattern(local, &p.P, (int32_t *)(void *)p.scratch.local, NULL), "sweep_pattern");
  free(at);
  free(poison);
  return p;
}

/* Is it what it has to be? Frees it */
static int pattern_is(pattern *p, const matrix *A)
{
  int right = device_bytes_are(&p->diagonal, A->diagonal) && p->counted;

  right = device_bytes_are(&p->place, p->host_place) && right;
  for (int t = 0; t < 2; ++t) {
    right = device_bytes_are(&p->order[t], p->host_order[t]) && right;
    free(p->host_order[t]);
  }
  right = device_bytes_are(&p->scratch, NULL) && right;
  free(p->host_place);
  return right;
}

/* One sweep; x in place of what was before or apart from it, with what it saves or without */
static void check(tc_scalar scalar, int32_t nodes, int32_t reach, int32_t gap, int32_t node, tc_sweep_kind kind, int backward, int way)
{
  static const double omegas[] = {1.0, 1.0, 1.25, 0.75}, shifts[] = {0.0, -1.0, 0.0, 0.5}; // exact in both scalars
  matrix              A        = matrix_new(scalar, nodes, reach, gap, node);
  const int32_t       n        = A.n;
  const size_t        vector   = bytes_of(scalar, n);
  const int           saves = !backward && way % 2, in_place = way / 2 % 2;
  void               *b = numbers_new(scalar, n), *before = numbers_new(scalar, n), *x = bytes_new(vector), *saved = numbers_new(scalar, n);
  tc_sweep            s     = {.kind = kind, .backward = backward, .scalar = scalar, .omega = omegas[way % 4], .shift = shifts[way % 4], .in_double = way / 4};
  tc_csr_local        local = {.num_rows = n, .num_cols = n, .nnz = A.nnz, .row_group = node};
  pattern             p;
  device_bytes        R = device_bytes_new((size_t)(n + 1) * sizeof(int32_t), A.row_ptr), C = device_bytes_new((size_t)A.nnz * sizeof(int32_t), A.col), V = device_bytes_new(bytes_of(scalar, A.nnz), A.val), B = device_bytes_new(vector, b),
                      P = device_bytes_new(vector, before), X = device_bytes_new(vector, NULL), S = device_bytes_new(vector, saved), T[2] = {device_bytes_new(vector, NULL), device_bytes_new(vector, NULL)};

  local.row_ptr = (const int32_t *)(void *)R.local;
  local.col     = (const int32_t *)(void *)C.local;
  p             = pattern_new(&A, &local);
  s.pattern     = &p.P;
  s.val         = V.local;
  s.b           = B.local;
  s.before      = P.local;
  s.x           = in_place ? P.local : X.local;
  s.saved       = saves ? S.local : NULL;
  s.scratch     = T[0].local;
  s.spare       = T[1].local;
  device_check(backend, backend->sweep(&local, &s, NULL), "sweep");
  sweep_on_host(&A, &s, b, before, x, saves ? saved : NULL);
  fact(device_bytes_are(in_place ? &P : &X, x), "sweep", scalar, n, reach, "as the host");
  fact(device_bytes_are(in_place ? &X : &P, in_place ? NULL : before), "sweep", scalar, n, reach, in_place ? "nothing beside it" : "what was before stays");
  fact(device_bytes_are(&S, saved), "sweep", scalar, n, reach, saves ? "what is saved" : "nothing is saved");
  fact(pattern_is(&p, &A), "sweep_pattern", scalar, n, reach, "levels, orders, diagonals and places");
  fact(device_bytes_are(&R, A.row_ptr) && device_bytes_are(&C, A.col) && device_bytes_are(&V, A.val) && device_bytes_are(&B, b), "sweep", scalar, n, reach, "what is read stays");
  for (int t = 0; t < 2; ++t) fact(device_bytes_are(&T[t], NULL), "sweep", scalar, n, reach, "nothing beside scratch");
  matrix_free(&A);
  free(b);
  free(before);
  free(x);
  free(saved);
}

/* A sweep with a block of vectors: each column as a sweep of its own, after its elements have been divided if that comes first; what lies beside the columns stays */
static void sweep_block_on_host(const matrix *A, const tc_sweep_block *s, const void *b, void *x)
{
  const tc_sweep each = {.kind = s->division == TC_SWEEP_DIVIDES_LAST ? TC_SWEEP_FROM_ZERO : TC_SWEEP_UNIT, .backward = s->backward, .scalar = s->scalar, .omega = 1.0};
  void          *from = bytes_new(bytes_of(s->scalar, A->n)), *to = bytes_new(bytes_of(s->scalar, A->n));

  memset(x, 0xff, bytes_of(s->scalar, (int64_t)A->n * s->width)); // what nobody has computed
  for (int32_t j = 0; j < s->n; ++j) {
    for (int32_t i = 0; i < A->n; ++i) {
      const double number = number_at(s->scalar, b, (int64_t)i * s->width + j), e = rounded(s->scalar, 1.0 / number_at(s->scalar, A->val, A->diagonal[i]));

      set_number(s->scalar, from, i, s->division == TC_SWEEP_DIVIDES_FIRST ? rounded(s->scalar, number * e) : number);
    }
    sweep_on_host(A, &each, from, from, to, NULL);
    for (int32_t i = 0; i < A->n; ++i) set_number(s->scalar, x, (int64_t)i * s->width + j, number_at(s->scalar, to, i));
  }
  free(from);
  free(to);
}

static void check_block(tc_scalar scalar, int32_t nodes, int32_t reach, int32_t gap, int32_t node, tc_sweep_division division, int backward, int32_t columns, int32_t width)
{
  matrix         A     = matrix_new(scalar, nodes, reach, gap, node);
  const int64_t  size  = (int64_t)A.n * width;
  void          *b     = numbers_new(scalar, size), *x = bytes_new(bytes_of(scalar, size));
  tc_sweep_block s     = {.division = division, .backward = backward, .scalar = scalar, .n = columns, .width = width};
  tc_csr_local   local = {.num_rows = A.n, .num_cols = A.n, .nnz = A.nnz, .row_group = node};
  pattern        p;
  device_bytes   R = device_bytes_new((size_t)(A.n + 1) * sizeof(int32_t), A.row_ptr), C = device_bytes_new((size_t)A.nnz * sizeof(int32_t), A.col), V = device_bytes_new(bytes_of(scalar, A.nnz), A.val), B = device_bytes_new(bytes_of(scalar, size), b),
                 X = device_bytes_new(bytes_of(scalar, size), NULL);

  local.row_ptr = (const int32_t *)(void *)R.local;
  local.col     = (const int32_t *)(void *)C.local;
  p             = pattern_new(&A, &local);
  s.pattern     = &p.P;
  s.val         = V.local;
  s.b           = B.local;
  s.x           = X.local;
  device_check(backend, backend->sweep_block(&local, &s, NULL), "sweep_block");
  sweep_block_on_host(&A, &s, b, x);
  fact(device_bytes_are(&X, x), "sweep_block", scalar, A.n, columns, "each column as the host");
  fact(device_bytes_are(&R, A.row_ptr) && device_bytes_are(&C, A.col) && device_bytes_are(&V, A.val) && device_bytes_are(&B, b) && pattern_is(&p, &A), "sweep_block", scalar, A.n, columns, "what is read stays");
  matrix_free(&A);
  free(b);
  free(x);
}

/* A block by rows in another order, and back out of it in another one yet */
static void check_turns(tc_scalar scalar, int32_t n, int32_t columns, int32_t width, int64_t ld, int ordered)
{
  const int64_t size = bytes_of(scalar, 1);
  void         *block = numbers_new(scalar, ld * columns), *rows = numbers_new(scalar, (int64_t)n * width), *back = numbers_new(scalar, ld * columns);
  int32_t      *order = bytes_new((size_t)n * sizeof *order);
  tc_block_rows how   = {.scalar = scalar, .num = n, .n = columns, .width = width, .ld = ld};
  device_bytes  O, B = device_bytes_new((size_t)(ld * columns * size), block), W = device_bytes_new((size_t)((int64_t)n * width * size), rows), X = device_bytes_new((size_t)(ld * columns * size), back);

  for (int32_t i = 0; i < n; ++i) order[i] = ordered ? (n - 1 - i + n / 3) % n : i;
  O       = device_bytes_new((size_t)n * sizeof *order, order);
  how.row = ordered ? (const int32_t *)(void *)O.local : NULL;
  device_check(backend, backend->put_block(&how, B.local, W.local, NULL), "put_block");
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < columns; ++j) set_number(scalar, rows, (int64_t)order[i] * width + j, number_at(scalar, block, i + j * ld));
  }
  how.row = NULL;
  device_check(backend, backend->take_block(&how, X.local, W.local, NULL), "take_block");
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < columns; ++j) set_number(scalar, back, i + j * ld, number_at(scalar, rows, (int64_t)i * width + j));
  }
  fact(device_bytes_are(&X, back), "take_block", scalar, n, columns, "rows as they are");
  how.row = ordered ? (const int32_t *)(void *)O.local : NULL;
  X       = device_bytes_new((size_t)(ld * columns * size), back);
  device_check(backend, backend->take_block(&how, X.local, W.local, NULL), "take_block");
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < columns; ++j) set_number(scalar, back, i + j * ld, number_at(scalar, block, i + j * ld));
  }
  fact(device_bytes_are(&W, rows), "put_block", scalar, n, columns, "rows in their places");
  fact(device_bytes_are(&X, back), "take_block", scalar, n, columns, "and back");
  fact(device_bytes_are(&B, block) && device_bytes_are(&O, order), "put_block", scalar, n, columns, "what is read stays");
  free(block);
  free(rows);
  free(back);
  free(order);
}

/* Widths and divisions for all shapes of a size */
static void check_blocks(tc_scalar scalar, int32_t size, int32_t reach, int32_t gap, int32_t node, int few)
{
  static const int32_t columns[][2] = {{33, 40}, {1, 1}, {2, 8}, {31, 32}, {32, 32}, {70, 72}};

  for (size_t c = 0; c < (few ? 1 : sizeof columns / sizeof *columns); ++c) {
    for (tc_sweep_division division = TC_SWEEP_DIVIDES_NEVER; division <= TC_SWEEP_DIVIDES_LAST; ++division) {
      for (int backward = 0; backward < 2; ++backward) check_block(scalar, size, reach, gap, node, division, backward, columns[c][0], columns[c][1]);
    }
    for (int ordered = 0; ordered < 2; ++ordered) check_turns(scalar, size, columns[c][0], columns[c][1], size + 3 * (int64_t)c, ordered);
  }
}

/* A zero somewhere on the diagonal is found, and none where there is none */
static void check_zero(tc_scalar scalar, int32_t n, int there)
{
  matrix        A     = matrix_new(scalar, n, 3, 2, 1);
  const int32_t found = there;
  int32_t       none  = 0;
  device_bytes  V, D, Z;

  if (there) set_number(scalar, A.val, A.diagonal[random_below(n)], 0.0);
  V = device_bytes_new(bytes_of(scalar, A.nnz), A.val);
  D = device_bytes_new((size_t)n * sizeof(int32_t), A.diagonal);
  Z = device_bytes_new(sizeof none, &none);
  device_check(backend, backend->find_zero(n, (const int32_t *)(void *)D.local, scalar, V.local, (int32_t *)(void *)Z.local, NULL), "find_zero");
  fact(device_bytes_are(&Z, &found), "find_zero", scalar, n, there, "is there one?");
  fact(device_bytes_are(&V, A.val) && device_bytes_are(&D, A.diagonal), "find_zero", scalar, n, there, "what is read stays");
  matrix_free(&A);
}

/* A right-hand side that holds the bits of what is not there yet: nobody waits for ever, and it is not a number that comes of it; rows in front of it are as they have to be */
static void check_nan(tc_scalar scalar, int32_t nodes, int32_t node)
{
  matrix       A     = matrix_new(scalar, nodes, 2, 1, node);
  const int32_t n    = A.n;
  const size_t vector = bytes_of(scalar, n), size = bytes_of(scalar, 1);
  void        *b = numbers_new(scalar, n), *x = bytes_new(vector), *found = bytes_new(vector);
  tc_csr_local local = {.num_rows = n, .num_cols = n, .nnz = A.nnz, .row_group = node};
  tc_sweep     s     = {.kind = TC_SWEEP_FROM_ZERO, .scalar = scalar, .omega = 1.0};
  pattern      p;
  device_bytes R = device_bytes_new((size_t)(n + 1) * sizeof(int32_t), A.row_ptr), C = device_bytes_new((size_t)A.nnz * sizeof(int32_t), A.col), V = device_bytes_new(bytes_of(scalar, A.nnz), A.val), B, X = device_bytes_new(vector, NULL), T = device_bytes_new(vector, NULL);

  sweep_on_host(&A, &s, b, b, x, NULL);
  memset((char *)b + (size_t)(n / 2) * size, 0xff, size);
  B             = device_bytes_new(vector, b);
  local.row_ptr = (const int32_t *)(void *)R.local;
  local.col     = (const int32_t *)(void *)C.local;
  p             = pattern_new(&A, &local);
  s.pattern     = &p.P;
  s.val         = V.local;
  s.b           = B.local;
  s.x           = X.local;
  s.scratch     = T.local;
  device_check(backend, backend->sweep(&local, &s, NULL), "sweep");
  device_check(backend, backend->download(found, X.local, vector, NULL), "download");
  fact(memcmp(found, x, (size_t)(n / 2) * size) == 0 && isnan(number_at(scalar, found, n / 2)) && isnan(number_at(scalar, found, n - 1)), "sweep", scalar, n, 2, "not a number, and what depends on it");
  fact(device_bytes_are(&R, A.row_ptr) && device_bytes_are(&C, A.col) && device_bytes_are(&V, A.val) && device_bytes_are(&B, b) && device_bytes_are(&X, NULL) && device_bytes_are(&T, NULL) && pattern_is(&p, &A), "sweep", scalar, n, 2, "nothing else");
  matrix_free(&A);
  free(b);
  free(x);
  free(found);
}

int main(int argc, char **args)
{
  /* reach and gap: a diagonal alone; chains; several batches of entries; many rows in a level; long rows */
  static const int32_t nums[] = {33, 1, 129, 2, 31, 32, 127, 128, 1000}, shapes[][2] = {{0, 1}, {1, 1}, {4, 1}, {9, 2}, {40, 10}, {300, 200}, {50, 1}}, nodes[] = {1, 3, 2, 6};
  static const struct {
    tc_sweep_kind kind;
    int           backward;
  } ways[] = {{TC_SWEEP_FROM_ZERO, 0}, {TC_SWEEP_FROM_ZERO, 1}, {TC_SWEEP_SECOND, 1}, {TC_SWEEP_AGAIN, 0}, {TC_SWEEP_AGAIN, 1}, {TC_SWEEP_EISENSTAT, 0}, {TC_SWEEP_UNIT, 0}, {TC_SWEEP_UNIT, 1}, {TC_SWEEP_UNIT_OVER, 0}};

  size_t num_sizes = sizeof nums / sizeof *nums;
  int    vectors = 1, blocks = 1;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) num_sizes = 3;
    if (strcmp(args[i], "-few") == 0) num_sizes = 1;
    if (strcmp(args[i], "-vectors") == 0) blocks = 0;
    if (strcmp(args[i], "-blocks") == 0) vectors = 0;
  }
  backend = device_bytes_open("test_sweep", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < num_sizes; ++i) {
      for (size_t m = 0; m < sizeof nodes / sizeof *nodes; ++m) {
        if (nodes[m] > 1 && i > 2) continue;
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; ++j) {
          if ((nodes[m] > 1 && shapes[j][0] > 40) || nodes[m] * nodes[m] * (2 * shapes[j][0] / shapes[j][1] + 1) > TC_SWEEP_NODE_ROOM) continue;
          if (blocks) check_blocks(scalar, nums[i], shapes[j][0], shapes[j][1], nodes[m], num_sizes == 1);
          for (size_t w = 0; vectors && w < sizeof ways / sizeof *ways; ++w) {
            for (int way = 0; way < 8; way += num_sizes == 1 ? 3 : 1) check(scalar, nums[i], shapes[j][0], shapes[j][1], nodes[m], ways[w].kind, ways[w].backward, way);
          }
        }
        if (vectors && nums[i] > 1) check_nan(scalar, nums[i], nodes[m]);
      }
      for (int there = 0; vectors && there < 2; ++there) check_zero(scalar, nums[i], there);
    }
    if (num_sizes < sizeof nums / sizeof *nums) continue;
    check(scalar, 60000, 300, 100, 1, TC_SWEEP_AGAIN, 0, 3); // more than the device has room for at once
    check(scalar, 400000, 3, 2, 1, TC_SWEEP_FROM_ZERO, 1, 2);
    check(scalar, 60000, 4, 2, 3, TC_SWEEP_FROM_ZERO, 0, 3);
    check(scalar, 60000, 4, 2, 3, TC_SWEEP_SECOND, 1, 2);
    check_block(scalar, 60000, 300, 100, 1, TC_SWEEP_DIVIDES_LAST, 1, 40, 40);
    check_block(scalar, 60000, 4, 2, 3, TC_SWEEP_DIVIDES_NEVER, 0, 64, 64);
  }
  return facts_end();
}
