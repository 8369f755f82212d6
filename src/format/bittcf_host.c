#include "bittcf_host.h"
#include <math.h>
#include <string.h>

enum { COLUMNS = 8 }; // of B at a time

static const uint32_t *masks_of(const tc_bittcf *T, const tc_bittcf_window *W)
{
  return (const uint32_t *)((const char *)T->tiles + 16 * (size_t)W->tiles);
}

tc_status tc_bittcf_refill_host(const void *view, const double *csr_val)
{
  const tc_bittcf *T = view;

  for (int32_t w = 0; w < T->num_windows; ++w) {
    const tc_bittcf_window *W    = &T->window[w];
    const uint32_t         *mask = masks_of(T, W);
    double                 *val  = T->val + W->val;
    int32_t                 next[TC_BITTCF_ROWS]; // entry of each packed row

    memcpy(next, T->csr_first + TC_BITTCF_ROWS * (int64_t)w, sizeof next);
    for (int32_t i = 0; i < W->num_groups; ++i) {
      for (int bit = 0; bit < TC_BITTCF_ROWS * TC_BITTCF_GROUP; ++bit) {
        if (mask[i] >> bit & 1) *val++ = csr_val[next[bit / TC_BITTCF_GROUP]++];
      }
    }
  }
  return TC_OK;
}

/* The sums of the rows of a window for `n` columns of B */
static void window_sums(const tc_bittcf *T, int32_t w, int32_t n, const double *b, int64_t ldb, double sum[TC_BITTCF_ROWS][COLUMNS])
{
  const tc_bittcf_window *W       = &T->window[w];
  const uint32_t         *mask    = masks_of(T, W);
  const void             *columns = mask + W->num_groups;
  const double           *val     = T->val + W->val;

  memset(sum, 0, TC_BITTCF_ROWS * sizeof *sum);
  for (int32_t i = 0; i < W->num_groups; ++i) {
    for (int bit = 0; bit < TC_BITTCF_ROWS * TC_BITTCF_GROUP; ++bit) {
      const int32_t at = TC_BITTCF_GROUP * i + bit % TC_BITTCF_GROUP, row = bit / TC_BITTCF_GROUP;

      if (!(mask[i] >> bit & 1)) continue;
      const int32_t column = W->wide ? ((const int32_t *)columns)[at] : W->base + ((const uint16_t *)columns)[at];

      for (int32_t j = 0; j < n; ++j) sum[row][j] = fma(*val, b[column + j * ldb], sum[row][j]);
      ++val;
    }
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
  enum { ROWS = TC_BITTCF_ROWS };
  const int64_t ld = tc_bittcf_num_slots(T);

  for (int32_t r = 0; r < T->num_long; ++r) {
    for (int32_t j = 0; j < args->n; ++j) {
      double sum = 0;

      for (int32_t s = 0; s < T->long_segments[r]; ++s) sum += args->scratch[ROWS * (T->long_first[r / ROWS] + s) + r % ROWS + j * ld];
      put(sum, args->c + T->long_row[r] + j * args->ldc, args->add);
    }
  }
}

size_t tc_spmm_bittcf_host_scratch(const void *view, int32_t n)
{
  return sizeof(double) * (size_t)tc_bittcf_num_slots(view) * (size_t)n;
}

tc_status tc_spmm_bittcf_host(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf *T  = view;
  const int64_t    ld = tc_bittcf_num_slots(T);

  (void)stream;
  for (int32_t first = 0; first < args->n; first += COLUMNS) {
    const int32_t n = args->n - first < COLUMNS ? args->n - first : COLUMNS;

    for (int32_t w = 0; w < T->num_windows; ++w) {
      const int32_t *row_id = T->row_id + TC_BITTCF_ROWS * (int64_t)w;
      double         sum[TC_BITTCF_ROWS][COLUMNS];

      window_sums(T, w, n, args->b + first * args->ldb, args->ldb, sum);
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
