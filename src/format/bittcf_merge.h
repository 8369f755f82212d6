/*
  Up to 32 ascending lists of columns merged: each distinct column once, ascending, with the lists that hold it.
*/
#pragma once
#include "../../kernels/tc_bittcf_order.h"

enum { TC_BITTCF_LISTS = TC_BITTCF_NEIGHBOURS * TC_BITTCF_ROWS };

typedef struct {
  const int32_t *next[TC_BITTCF_LISTS], *end[TC_BITTCF_LISTS];
  int32_t        num;
} tc_bittcf_lists;

/* 0 at the end; bit l of *holders: list l holds *column */
static inline int tc_bittcf_next_column(tc_bittcf_lists *L, int32_t *column, uint32_t *holders)
{
  int32_t  smallest = INT32_MAX;
  uint32_t held     = 0;

  for (int32_t l = 0; l < L->num; ++l) {
    if (L->next[l] < L->end[l] && *L->next[l] < smallest) smallest = *L->next[l];
  }
  for (int32_t l = 0; l < L->num; ++l) {
    if (L->next[l] < L->end[l] && *L->next[l] == smallest) {
      held |= UINT32_C(1) << l;
      ++L->next[l];
    }
  }
  *column  = smallest;
  *holders = held;
  return held != 0;
}
