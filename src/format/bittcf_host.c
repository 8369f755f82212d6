#include "bittcf_host.h"
#include "narrow_host.h"
#include <math.h>
#include <string.h>

enum { COLUMNS = TC_NARROW_COLUMNS }; // of B at a time

/* Goes through the entries of a window in the order of their values */
typedef struct {
  const tc_bittcf_window *W;
  const uint32_t         *mask;
  const void             *columns;
  int32_t                 group, at; // at: the column's place in the window
  uint32_t                left;      // bits of the group's mask
  int32_t                 row;       // of the window
  int64_t                 val;
} window_walk;

static window_walk walk_window(const tc_bittcf *T, int32_t w)
{
  const tc_bittcf_window *W    = &T->window[w];
  const uint32_t         *mask = (const uint32_t *)((const char *)T->tiles + 16 * (size_t)W->tiles);

  return (window_walk){.W = W, .mask = mask, .columns = mask + W->num_groups, .group = -1, .val = (int64_t)W->val - 1};
}

static int next_entry(window_walk *E)
{
  int bit;

  while (E->left == 0) {
    if (++E->group == E->W->num_groups) return 0;
    E->left = E->mask[E->group];
  }
  bit = __builtin_ctz(E->left);
  E->left &= E->left - 1;
  E->row = bit / TC_BITTCF_GROUP;
  E->at  = TC_BITTCF_GROUP * E->group + bit % TC_BITTCF_GROUP;
  ++E->val;
  return 1;
}

static int32_t column_of(const window_walk *E)
{
  return E->W->wide ? ((const int32_t *)E->columns)[E->at] : E->W->base + ((const uint16_t *)E->columns)[E->at];
}

/* --- values */

/* The scales of the packed rows of a window; `next` is the first entry of each in CSR */
static void set_exponents(const tc_bittcf *T, int32_t w, const int32_t next[TC_BITTCF_ROWS], const double *csr_val)
{
  uint64_t    largest[TC_BITTCF_ROWS] = {0};
  int32_t     taken[TC_BITTCF_ROWS]   = {0};
  window_walk E                       = walk_window(T, w);

  while (next_entry(&E)) {
    const uint64_t magnitude = tc_finite_magnitude(csr_val[next[E.row] + taken[E.row]++]);

    if (magnitude > largest[E.row]) largest[E.row] = magnitude;
  }
  for (int i = 0; i < TC_BITTCF_ROWS; ++i) T->exponent[TC_BITTCF_ROWS * (int64_t)w + i] = (int16_t)tc_row_scale(T->precision, largest[i]);
}

static void put_value(const tc_bittcf *T, int64_t packed, int64_t place, double value)
{
  if (T->precision == TC_PRECISION_F64) {
    ((double *)T->val)[place] = value;
    return;
  }
  const uint32_t bits = tc_narrow_bits(T->precision, value * tc_power_of_two(-T->exponent[packed]));

  if (tc_value_bytes(T->precision) == 2) ((uint16_t *)T->val)[place] = (uint16_t)bits;
  else ((uint32_t *)T->val)[place] = bits;
}

tc_status tc_bittcf_refill_host(const void *view, const double *csr_val)
{
  const tc_bittcf *T = view;

  for (int32_t w = 0; w < T->num_windows; ++w) {
    const int64_t first = TC_BITTCF_ROWS * (int64_t)w;
    int32_t       next[TC_BITTCF_ROWS]; // entry of each packed row
    window_walk   E = walk_window(T, w);

    memcpy(next, T->csr_first + first, sizeof next);
    if (T->precision != TC_PRECISION_F64) set_exponents(T, w, next, csr_val);
    while (next_entry(&E)) put_value(T, first + E.row, E.val, csr_val[next[E.row]++]);
  }
  return TC_OK;
}

static float narrow_value(const tc_bittcf *T, int64_t place)
{
  return tc_widen(T->precision, tc_value_bytes(T->precision) == 2 ? ((const uint16_t *)T->val)[place] : ((const uint32_t *)T->val)[place]);
}

/* --- products */

/* The sums of the rows of a window for `n` columns of B */
static void window_sums(const tc_bittcf *T, int32_t w, int32_t n, const double *b, int64_t ldb, double sum[TC_BITTCF_ROWS][COLUMNS])
{
  window_walk E = walk_window(T, w);

  memset(sum, 0, TC_BITTCF_ROWS * sizeof *sum);
  while (next_entry(&E)) {
    const double value = ((const double *)T->val)[E.val];

    for (int32_t j = 0; j < n; ++j) sum[E.row][j] = fma(value, b[column_of(&E) + j * ldb], sum[E.row][j]);
  }
}

/* The same sums in single precision, scaled back */
static void narrow_window_sums(const tc_bittcf *T, int32_t w, int32_t n, const float *b, const int exponent[COLUMNS], double sum[TC_BITTCF_ROWS][COLUMNS])
{
  float       single[TC_BITTCF_ROWS][COLUMNS] = {{0}};
  window_walk E                               = walk_window(T, w);

  while (next_entry(&E)) {
    const float  value = narrow_value(T, E.val);
    const float *row   = b + COLUMNS * (int64_t)column_of(&E);

    for (int32_t j = 0; j < n; ++j) single[E.row][j] = fmaf(value, row[j], single[E.row][j]);
  }
  for (int i = 0; i < TC_BITTCF_ROWS; ++i) {
    for (int32_t j = 0; j < n; ++j) sum[i][j] = tc_unscale(single[i][j], T->exponent[TC_BITTCF_ROWS * (int64_t)w + i] + exponent[j]);
  }
}

static void put(double sum, double *c, int add)
{
  sum += 0.0;
  *c = add ? *c + sum : sum;
}

/* C from the sums of segments, column-major in `partial` */
static void add_segments(const tc_bittcf *T, const tc_spmm_args *args)
{
  const int64_t ld = tc_bittcf_num_slots(T);

  for (int32_t r = 0; r < T->num_long; ++r) {
    for (int32_t j = 0; j < args->n; ++j) {
      double sum = 0;

      for (int32_t s = 0; s < T->long_segments[r]; ++s) sum += args->scratch[tc_bittcf_slot(T, r) + tc_bittcf_long_rows(T) * s + j * ld];
      put(sum, args->c + T->long_row[r] + j * args->ldc, args->add);
    }
  }
}

size_t tc_spmm_bittcf_host_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_bittcf *T = view;

  return sizeof(double) * (size_t)tc_bittcf_num_slots(T) * (size_t)args->n + (T->precision == TC_PRECISION_F64 ? 0 : COLUMNS * sizeof(float) * (size_t)T->num_cols);
}

tc_status tc_spmm_bittcf_host(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf *T      = view;
  const int64_t    ld     = tc_bittcf_num_slots(T);
  float           *narrow = (float *)(args->scratch + ld * args->n);

  (void)stream;
  for (int32_t first = 0; first < args->n; first += COLUMNS) {
    const int32_t n = args->n - first < COLUMNS ? args->n - first : COLUMNS;
    const double *b = args->b + first * args->ldb;
    int           exponent[COLUMNS];

    if (T->precision != TC_PRECISION_F64) tc_narrow_columns(T->precision, T->num_cols, n, b, args->ldb, narrow, exponent);
    for (int32_t w = 0; w < T->num_windows; ++w) {
      const int32_t *row_id = T->row_id + TC_BITTCF_ROWS * (int64_t)w;
      double         sum[TC_BITTCF_ROWS][COLUMNS];

      if (T->precision == TC_PRECISION_F64) window_sums(T, w, n, b, args->ldb, sum);
      else narrow_window_sums(T, w, n, narrow, exponent, sum);
      for (int32_t i = 0; i < TC_BITTCF_ROWS; ++i) {
        for (int32_t j = 0; j < n; ++j) {
          if (row_id[i] >= 0) put(sum[i][j], args->c + row_id[i] + (first + j) * args->ldc, args->add);
          else if (row_id[i] != TC_BITTCF_NO_ROW) args->scratch[~row_id[i] + (first + j) * ld] = sum[i][j];
        }
      }
    }
  }
  add_segments(T, args);
  return TC_OK;
}
