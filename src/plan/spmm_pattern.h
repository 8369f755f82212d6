/*
  What products with dense blocks know of the patterns they have looked at.
*/
#pragma once
#include "../../kernels/tc_spmm.h"
#include "../../kernels/tc_survey.h"
#include "cache.h"
#include "spmm_reason.h"

/* Until a conversion pays: what products straight from CSR have taken longer than they would have with the format, since it was last packed, and how many they were */
typedef struct {
  double  missed_ms;
  int64_t products;
} tc_spmm_wait;

/* The last choice of a kernel: a matrix is often multiplied by as many columns as before, and rules take longer than a look at this */
typedef struct {
  int32_t               n;
  int                   b_transposed;
  const tc_spmm_kernel *kernel, *instead; // no kernel: nothing was chosen yet; nothing instead: there is no other one
  tc_spmm_reason        reason;
} tc_spmm_choice;

typedef struct {
  int            seen; // what follows is valid
  tc_key         key;
  tc_spmm_traits traits;
  tc_survey      survey;
  int32_t        num_long, num_ends; // of tc_csr_transposed_view; -1: not counted yet
  int32_t       *ends;               // [num_long + 2 num_ends] its lists, one behind the other
  tc_spmm_wait   wait[TC_SPMM_CONVERSIONS];
  tc_spmm_choice choice;
} tc_spmm_pattern;

enum { TC_SPMM_PATTERNS = 2 }; // that of the matrix and that of its transpose

typedef struct {
  tc_spmm_pattern pattern[TC_SPMM_PATTERNS], *last; // the one last looked at
} tc_spmm_patterns;

static inline int tc_spmm_same_pattern(const tc_key *a, const tc_key *b)
{
  return a->id == b->id && a->pattern == b->pattern && a->nnz == b->nnz;
}

/* NULL: nobody has looked at it */
static inline tc_spmm_pattern *tc_spmm_patterns_find(const tc_spmm_patterns *P, const tc_key *key)
{
  for (int i = 0; i < TC_SPMM_PATTERNS; ++i) {
    if (P->pattern[i].seen && tc_spmm_same_pattern(&P->pattern[i].key, key)) return (tc_spmm_pattern *)&P->pattern[i];
  }
  return NULL;
}

/* Where a new pattern goes: it takes the place of the one with the same id, or else not that of the one last looked at */
static inline tc_spmm_pattern *tc_spmm_patterns_place(tc_spmm_patterns *P, const tc_key *key)
{
  tc_spmm_pattern *place = P->last->seen ? P->pattern + (P->last == P->pattern) : P->last;

  for (int i = 0; i < TC_SPMM_PATTERNS; ++i) {
    if (P->pattern[i].seen && P->pattern[i].key.id == key->id) place = &P->pattern[i];
  }
  return place;
}
