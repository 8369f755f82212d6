#include "bcsr.h"
#include "narrow_host.h"
#include <math.h>
#include <string.h>

enum { COLUMNS = TC_NARROW_COLUMNS }; // of B at a time

tc_status tc_bcsr_refill_host(const void *view, const double *csr_val)
{
  const tc_bcsr *T = view;

  for (int32_t i = 0; i < TC_BCSR_ROWS * T->num_windows; ++i) {
    uint64_t largest = 0;

    for (int32_t e = i < T->num_rows ? T->row_ptr[i] : 0; i < T->num_rows && e < T->row_ptr[i + 1]; ++e) {
      if (tc_finite_magnitude(csr_val[e]) > largest) largest = tc_finite_magnitude(csr_val[e]);
    }
    T->row_exponent[i] = (int16_t)tc_row_scale(T->precision, largest);
  }
  for (int32_t p = 0; p < T->num_pieces; ++p) {
    const tc_bcsr_piece *P        = &T->piece[p];
    const int16_t       *exponent = T->row_exponent + TC_BCSR_ROWS * (int64_t)P->window;

    for (int64_t tile = P->tile; tile < (int64_t)P->tile + P->num_sparse + P->num_dense; ++tile) {
      for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
        for (int32_t k = 0; k < TC_BCSR_SLOTS / TC_BCSR_ROWS; ++k) {
          const int64_t slot = TC_BCSR_SLOTS * tile + tc_bcsr_slot(i, k);

          T->val[slot] = T->map[slot] >= 0 ? (uint16_t)tc_narrow_bits(T->precision, csr_val[T->map[slot]] * tc_power_of_two(-exponent[i])) : 0;
        }
      }
    }
  }
  return TC_OK;
}

int32_t tc_bcsr_chosen_place(const uint32_t choice[TC_BCSR_WORDS], int32_t i, int32_t k)
{
  const int32_t q = k / 2;

  return TC_BCSR_GROUP * q + (int32_t)(choice[tc_bcsr_choice_word(i, q)] >> (tc_bcsr_choice_bit(i, q) + 2 * (k % 2)) & 3);
}

/* --- products. Scratch: partial sums [num_slots, 16, n], a few columns of B, rounded, as floats */

static float *rounded_b(const tc_bcsr *T, const tc_spmm_args *args)
{
  return (float *)(args->scratch + TC_BCSR_ROWS * (size_t)T->num_slots * (size_t)args->n);
}

size_t tc_spmm_bcsr_host_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_bcsr *T = view;

  return sizeof(double) * (TC_BCSR_ROWS * (size_t)T->num_slots * (size_t)args->n) + COLUMNS * sizeof(float) * (size_t)T->num_cols;
}

/* The sums of a piece for `n` of the rounded columns of B */
static void piece_sums(const tc_bcsr *T, const tc_bcsr_piece *P, int32_t n, const float *b, float sum[TC_BCSR_ROWS][COLUMNS])
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
        const float   a = tc_widen(T->precision, val[tc_bcsr_slot(i, k)]), *row = b + COLUMNS * (int64_t)column[tc_bcsr_place(places, place)];

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
  float         *b = rounded_b(T, args);

  (void)stream;
  for (int32_t first = 0; first < args->n; first += COLUMNS) {
    const int32_t n = args->n - first < COLUMNS ? args->n - first : COLUMNS;
    int           exponent[COLUMNS];

    tc_narrow_columns(T->precision, T->num_cols, n, args->b + first * args->ldb, args->ldb, b, exponent);
    for (int32_t p = 0; p < T->num_pieces; ++p) {
      float sum[TC_BCSR_ROWS][COLUMNS];

      piece_sums(T, &T->piece[p], n, b, sum);
      for (int32_t i = 0; i < TC_BCSR_ROWS; ++i) {
        const int32_t row = TC_BCSR_ROWS * T->piece[p].window + i;

        for (int32_t j = 0; j < n; ++j) {
          const double scaled = tc_unscale(sum[i][j], T->row_exponent[row] + exponent[j]);

          if (p < T->num_slots) args->scratch[(TC_BCSR_ROWS * (int64_t)p + i) * args->n + first + j] = scaled;
          else if (row < T->num_rows) put(scaled, args->c + row + (first + j) * args->ldc, args->add);
        }
      }
    }
  }
  add_pieces(T, args);
  return TC_OK;
}
