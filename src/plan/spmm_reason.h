/*
  Why a kernel multiplies: kept as it is found out and put into words when somebody asks, since printing a number takes longer than launching a kernel.
*/
#pragma once
#include "spmm_rules.h"

typedef enum {
  TC_SPMM_BY_NOTHING, // nothing was chosen yet
  TC_SPMM_BY_REQUEST,
  TC_SPMM_BY_HOST, // which has one kernel
  TC_SPMM_BY_TRAITS
} tc_spmm_basis;

typedef struct {
  tc_spmm_basis  basis;
  int32_t        n;
  tc_spmm_traits traits;
  int            b_transposed;
  int            reordered; // rows in an order of their own
  const char    *missing;   // a precision without a kernel, NULL: none
  const char    *awaited;   // a format that does not pay yet, NULL: none
  double         cost_ms, missed_ms;
  int64_t        straight, otherwise; // products straight from CSR, or in whatever was instead, before the format paid
} tc_spmm_reason;

/* In words, cut off at the end of `words` */
void tc_spmm_say(const tc_spmm_reason *reason, size_t size, char words[]);
