#include "bcsr.h"
#include <math.h>
#include <string.h>

enum { COLUMNS = 8 }; // of B at a time

tc_status tc_bcsr_refill_host(const void *view, const double *csr_val)
{
  const tc_bcsr *T = view;

  for (int32_t i = 0; i < TC_BCSR_ROWS * T->num_windows; ++i) {
    uint64_t largest = 0;

    for (int32_t e = i < T->num_rows ? T->row_ptr[i] : 0; i < T->num_rows && e < T->row_ptr[i + 1]; ++e) {
      if (tc_finite_magnitude(csr_val[e]) > largest) largest = tc_finite_magnitude(csr_val[e]);
    }
    T->row_exponent[i] = (int16_t)tc_bcsr_exponent(largest, T->precision);
  }
  for (int32_t p = 0; p < T->num_pieces; ++p) {
    const tc_bcsr_piece *P        = &T->piece[p];
    const int16_t       *exponent = T->row_exponent + TC_BCSR_ROWS * (int64_t)P->window;

    for (int64_t tile = P->tile; tile < (int64_t)P->tile + P->num_sparse + P->num_dense; ++tile) {
      for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
        for (int32_t k = 0; k < TC_BCSR_SLOTS / TC_BCSR_ROWS; ++k) {
          const int64_t slot = TC_BCSR_SLOTS * tile + tc_bcsr_slot(i, k);

          T->val[slot] = T->map[slot] >= 0 ? tc_bcsr_narrow(csr_val[T->map[slot]], exponent[i], T->precision) : 0;
        }
      }
    }
  }
  return TC_OK;
}

float tc_bcsr_widen(uint16_t narrow, tc_precision precision)
{
  uint32_t bits = (uint32_t)narrow << 16;
  float    value;

  if (precision == TC_PRECISION_F16) {
    const int exponent = narrow >> 10 & 0x1f, fraction = narrow & 0x3ff;

    value = exponent == 0x1f ? (fraction ? NAN : INFINITY) : ldexpf((float)(exponent > 0 ? fraction + 0x400 : fraction), (exponent > 0 ? exponent : 1) - 25);
    return narrow >> 15 ? -value : value;
  }
  memcpy(&value, &bits, sizeof value);
  return value;
}

int32_t tc_bcsr_chosen_place(const uint32_t choice[TC_BCSR_WORDS], int32_t i, int32_t k)
{
  const int32_t q = k / 2;

  return TC_BCSR_GROUP * q + (int32_t)(choice[tc_bcsr_choice_word(i, q)] >> (tc_bcsr_choice_bit(i, q) + 2 * (k % 2)) & 3);
}

/* --- products. Scratch: partial sums [num_slots, 16, n], B [num_cols, n] rounded, floats, the exponents of its columns */

static float *rounded_b(const tc_bcsr *T, const tc_spmm_args *args)
{
  return (float *)(args->scratch + TC_BCSR_ROWS * (size_t)T->num_slots * (size_t)args->n);
}

static int32_t *column_exponents(const tc_bcsr *T, const tc_spmm_args *args)
{
  return (int32_t *)(rounded_b(T, args) + (size_t)T->num_cols * (size_t)args->n);
}

size_t tc_spmm_bcsr_host_scratch(const void *view, int32_t n)
{
  const tc_bcsr *T = view;

  return sizeof(double) * (TC_BCSR_ROWS * (size_t)T->num_slots * (size_t)n) + sizeof(float) * (size_t)T->num_cols * (size_t)n + sizeof(int32_t) * (size_t)n;
}

static void round_b(const tc_bcsr *T, const tc_spmm_args *args)
{
  float   *to       = rounded_b(T, args);
  int32_t *exponent = column_exponents(T, args);

  for (int32_t j = 0; j < args->n; ++j) {
    const double *b       = args->b + j * args->ldb;
    uint64_t      largest = 0;

    for (int32_t i = 0; i < T->num_cols; ++i) {
      if (tc_finite_magnitude(b[i]) > largest) largest = tc_finite_magnitude(b[i]);
    }
    exponent[j] = tc_bcsr_exponent(largest, T->precision);
    for (int32_t i = 0; i < T->num_cols; ++i) to[(int64_t)i * args->n + j] = tc_bcsr_widen(tc_bcsr_narrow(b[i], exponent[j], T->precision), T->precision);
  }
}

/* The sums of a piece for `n` columns of B, [num_cols, ldb] */
static void piece_sums(const tc_bcsr *T, const tc_bcsr_piece *P, int32_t n, const float *b, int32_t ldb, float sum[TC_BCSR_ROWS][COLUMNS])
{
  memset(sum, 0, TC_BCSR_ROWS * sizeof *sum);
  for (int32_t s = 0; s < P->num_sparse + P->num_dense; ++s) {
    const int32_t   is_sparse = s < P->num_sparse, places = is_sparse ? TC_BCSR_SPARSE : TC_BCSR_DENSE;
    const int64_t   tile = (int64_t)P->tile + s, sparse = (int64_t)P->sparse + (is_sparse ? s : P->num_sparse);
    const int32_t  *column = T->column + tc_bcsr_columns_at(tile, sparse);
    const uint16_t *val    = T->val + TC_BCSR_SLOTS * tile;

    for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
      for (int32_t k = 0; k < TC_BCSR_SLOTS / TC_BCSR_ROWS; ++k) {
        const int32_t place = is_sparse ? tc_bcsr_chosen_place(T->choice + TC_BCSR_WORDS * sparse, i, k) : k;
        const float   a = tc_bcsr_widen(val[tc_bcsr_slot(i, k)], T->precision), *row = b + (int64_t)column[tc_bcsr_place(places, place)] * ldb;

        for (int32_t j = 0; j < n; ++j) sum[i][j] = fmaf(a, row[j], sum[i][j]);
      }
    }
  }
}

static void put(double sum, double *c, int add)
{
  sum += 0.0;
  *c = add ? *c + sum : sum;
}

static void add_pieces(const tc_bcsr *T, const tc_spmm_args *args)
{
  for (int32_t s = 0; s < T->num_split; ++s) {
    for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
      const int32_t row = TC_BCSR_ROWS * T->split_window[s] + i;

      for (int32_t j = 0; row < T->num_rows && j < args->n; ++j) {
        double sum = 0;

        for (int64_t p = T->split_first[s]; p < T->split_first[s + 1]; ++p) sum += args->scratch[(TC_BCSR_ROWS * p + i) * args->n + j];
        put(sum, args->c + row + j * args->ldc, args->add);
      }
    }
  }
}

tc_status tc_spmm_bcsr_host(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bcsr *T = view;
  const int32_t *exponent;

  (void)stream;
  round_b(T, args);
  exponent = column_exponents(T, args);
  for (int32_t first = 0; first < args->n; first += COLUMNS) {
    const int32_t n = args->n - first < COLUMNS ? args->n - first : COLUMNS;

    for (int32_t p = 0; p < T->num_pieces; ++p) {
      float sum[TC_BCSR_ROWS][COLUMNS];

      piece_sums(T, &T->piece[p], n, rounded_b(T, args) + first, args->n, sum);
      for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
        const int32_t row = TC_BCSR_ROWS * T->piece[p].window + i;

        for (int32_t j = 0; j < n; ++j) {
          const double scaled = tc_bcsr_scale(sum[i][j], T->row_exponent[row] + exponent[first + j]);

          if (p < T->num_slots) args->scratch[(TC_BCSR_ROWS * (int64_t)p + i) * args->n + first + j] = scaled;
          else if (row < T->num_rows) put(scaled, args->c + row + (first + j) * args->ldc, args->add);
        }
      }
    }
  }
  add_pieces(T, args);
  return TC_OK;
}
