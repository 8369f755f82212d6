#include "generator_kind.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KINDS = 128 };

static const tc_kind *const tables[] = {tc_grid_kinds, tc_operator_kinds, tc_graph_kinds, tc_surrogate_kinds, tc_block_kinds, tc_shape_kinds};

static void random_normal(int64_t n, uint64_t seed, double *x)
{
  const uint64_t first = tc_mix(seed);

  for (int64_t i = 0; i < n; i += 2) { // Box and Muller
    const double radius = sqrt(-2.0 * log(tc_to_unit(tc_mix(first + (uint64_t)i)))), angle = 6.283185307179586 * tc_to_unit(tc_mix(first + (uint64_t)i + 1));

    x[i] = radius * cos(angle);
    if (i + 1 < n) x[i + 1] = radius * sin(angle);
  }
}

/* Tests ask for those of a few seeds again and again: the last ones are kept. Not for several threads at a time */
void tc_random_normal(int64_t n, uint64_t seed, double *x)
{
  enum { NUM_KEPT = 8, MOST_KEPT = 1 << 20 };
  static struct {
    uint64_t seed;
    int64_t  n;
    double  *x;
  } kept[NUM_KEPT];
  static int oldest;
  int        k = 0;

  while (k < NUM_KEPT && !(kept[k].x && kept[k].seed == seed)) ++k;
  if (n <= MOST_KEPT && (k == NUM_KEPT || kept[k].n < n)) {
    const int64_t room = k < NUM_KEPT && 2 * kept[k].n > n ? 2 * kept[k].n : n;
    double       *more;

    if (k == NUM_KEPT) k = oldest++ % NUM_KEPT;
    more = realloc(kept[k].x, (size_t)(room + 1) * sizeof *more);
    if (more) {
      kept[k].seed = seed;
      kept[k].n    = room;
      kept[k].x    = more;
      random_normal(room, seed, more);
    } else k = NUM_KEPT;
  }
  if (k == NUM_KEPT || kept[k].n < n) random_normal(n, seed, x);
  else if (n > 0) memcpy(x, kept[k].x, (size_t)n * sizeof *x);
}

void tc_random_uniform(int64_t n, uint64_t seed, double *x)
{
  const uint64_t first = tc_mix(seed);

  for (int64_t i = 0; i < n; ++i) x[i] = 2 * tc_to_unit(tc_mix(first + (uint64_t)i)) - 1;
}

void tc_random_permutation(int32_t n, uint64_t seed, int32_t *p)
{
  uint64_t state = tc_mix(seed);

  for (int32_t i = 0; i < n; ++i) {
    const int32_t k = tc_next_below(&state, (int64_t)i + 1);

    if (k < i) p[i] = p[k]; // the next number goes to a random place, what was there to the end
    p[k] = i;
  }
}

int32_t tc_sort_unique(int32_t num, int32_t *col)
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

int32_t tc_stratified(int32_t length, int32_t num_cols, uint64_t *state, int32_t *col)
{
  if (length > num_cols) length = num_cols;
  for (int32_t k = 0; k < length; ++k) {
    const int64_t first = (int64_t)k * num_cols / length, end = ((int64_t)k + 1) * num_cols / length;

    col[k] = (int32_t)first + tc_next_below(state, end - first);
  }
  return length;
}

int32_t tc_grid_neighbours(const tc_pattern *P, int32_t i, int reach, int32_t *col)
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

int32_t tc_blocks(int32_t dof, int32_t num, const int32_t *node, int32_t *col)
{
  int32_t used = 0;

  for (int32_t k = 0; k < num; ++k) {
    for (int32_t d = 0; d < dof; ++d) col[used++] = dof * node[k] + d;
  }
  return used;
}

/* What is too many rows is cut off where it can still be multiplied */
/* clang-format off */
int64_t tc_size1(int64_t n) { return n; }
int64_t tc_size2(int64_t n) { return n < 1 << 20 ? n * n : INT64_C(1) << 40; }
int64_t tc_size3(int64_t n) { return n < 1 << 13 ? n * n * n : INT64_C(1) << 40; }
int64_t tc_nodes3(int64_t n) { return 3 * tc_size3(n); }
/* clang-format on */

const tc_generator *tc_generators(int *num)
{
  static tc_generator all[MAX_KINDS];

  *num = 0;
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; ++t) {
    for (const tc_kind *K = tables[t]; K->generator.name && *num < MAX_KINDS; ++K) all[(*num)++] = K->generator;
  }
  return all;
}

static const tc_kind *find_kind(const char *name)
{
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; ++t) {
    for (const tc_kind *K = tables[t]; K->generator.name; ++K) {
      if (strcmp(K->generator.name, name) == 0) return K;
    }
  }
  return NULL;
}

const tc_generator *tc_generator_find(const char *name)
{
  const tc_kind *K = find_kind(name);

  return K ? &K->generator : NULL;
}

static tc_status resize_columns(tc_matrix *A, int64_t num)
{
  int32_t *col = realloc(A->col, (size_t)(num > 0 ? num : 1) * sizeof *col);

  TC_CHECK(col != NULL, TC_ERR_MEMORY, "no host memory for %lld entries", (long long)num);
  A->col = col;
  return TC_OK;
}

/* Row by row; the columns grow as rows come */
static tc_status fill(const tc_kind *K, const tc_pattern *P, tc_matrix *A)
{
  const int64_t room     = P->max_row + TC_MAX_GATHER;
  int64_t       capacity = 0;

  TC_CALL(tc_matrix_create(P->num_rows, P->num_cols, 0, A));
  for (int32_t i = 0; i < P->num_rows; ++i) {
    if (A->nnz + room > capacity) {
      capacity = A->nnz + A->nnz / 2 + 8 * (int64_t)P->num_rows + room;
      TC_CALL(resize_columns(A, capacity));
    }
    A->nnz += K->row(P, i, A->col + A->nnz);
    A->row_ptr[i + 1] = A->nnz;
  }
  TC_CALL(resize_columns(A, A->nnz));
  free(A->val);
  A->val = malloc((size_t)(A->nnz > 0 ? A->nnz : 1) * sizeof *A->val);
  TC_CHECK(A->val != NULL, TC_ERR_MEMORY, "no host memory for %lld values", (long long)A->nnz);
  return TC_OK;
}

static tc_status make_pattern(const tc_kind *K, tc_pattern *P, tc_matrix *A)
{
  if (K->prepare) TC_CALL(K->prepare(P));
  return fill(K, P, A);
}

tc_status tc_generate(const tc_generator *generator, int32_t size, uint64_t seed, tc_matrix *A)
{
  const tc_kind *K = find_kind(generator->name);
  tc_pattern     P = {.size = size, .seed = tc_mix(seed), .parameters = K->parameters};
  tc_status      status;

  memset(A, 0, sizeof *A);
  TC_CHECK(size >= 0 && K->rows(size) <= INT32_MAX && K->cols(size) <= INT32_MAX, TC_ERR_ARG, "%s of size %d: expected 32-bit dimensions", generator->name, size);
  P.num_rows = (int32_t)K->rows(size);
  P.num_cols = (int32_t)K->cols(size);
  P.max_row  = K->max_row > 0 ? K->max_row : P.num_cols;
  status     = make_pattern(K, &P, A);
  if (status != TC_OK) tc_matrix_free(A);
  else if (K->values) K->values(&P, A);
  else tc_random_normal(A->nnz, seed + 1, A->val);
  free(P.data);
  return status;
}

tc_status tc_generate_named(const char *name, uint64_t seed, tc_matrix *A)
{
  const char         *colon = strchr(name, ':');
  char                generator[64], *end;
  long                size;
  const tc_generator *found;

  memset(A, 0, sizeof *A);
  TC_CHECK(colon != NULL && (size_t)(colon - name) < sizeof generator, TC_ERR_ARG, "%s: generator:size expected", name);
  memcpy(generator, name, (size_t)(colon - name));
  generator[colon - name] = '\0';
  found                   = tc_generator_find(generator);
  TC_CHECK(found != NULL, TC_ERR_ARG, "no generator named %s", generator);
  size = strtol(colon + 1, &end, 10);
  TC_CHECK(end != colon + 1 && *end == '\0' && size >= 0 && size <= INT32_MAX, TC_ERR_ARG, "%s: the size is no number from 0 to %d", name, INT32_MAX);
  return tc_generate(found, (int32_t)size, seed, A);
}
