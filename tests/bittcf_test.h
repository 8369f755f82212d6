/*
  What tests of the BitTCF format on the host share.
*/
#pragma once
#include "test_util.h"
#include "../kernels/tc_bittcf.h"
#include "../src/format/bittcf_host.h"
#include <stdlib.h>

/* Packed, rows in a random order if `shuffled`, with values in F64 only; free with tc_format_destroy() */
static inline void bittcf_pack(const tc_matrix *A, tc_precision precision, int shuffled, tc_bittcf *T)
{
  tc_csr   pattern = tc_matrix_pattern(A);
  int32_t *order   = malloc(((size_t)A->num_rows + 1) * sizeof *order);

  assert_non_null(order);
  tc_random_permutation(A->num_rows, 7, order);
  if (shuffled) pattern.row_order = order;
  pattern.precision = precision;
  ASSERT_OK(tc_format_bittcf.build(&pattern, T));
  free(order);
  if (precision != TC_PRECISION_F64) return;
  T->val = malloc(((size_t)A->nnz + 1) * sizeof(double));
  assert_non_null(T->val);
  ASSERT_OK(tc_bittcf_refill_host(T, A->val));
}

static inline const uint32_t *masks_of(const tc_bittcf *T, int32_t w)
{
  return (const uint32_t *)((const char *)T->tiles + 16 * (size_t)T->window[w].tiles);
}

static inline int32_t column_of(const tc_bittcf *T, int32_t w, int32_t at)
{
  const tc_bittcf_window *W       = &T->window[w];
  const void             *columns = masks_of(T, w) + W->num_groups;

  return W->wide ? ((const int32_t *)columns)[at] : W->base + ((const uint16_t *)columns)[at];
}
