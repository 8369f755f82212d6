/*
  Which format multiplies n columns of a pattern: what is measured of the pattern, on the host, and the table of rules.
*/
#pragma once
#include "../../kernels/tc_spmm.h"

typedef struct {
  double entries, mean_row, longest_row;
  double scattered; // share of entries whose column is not near one of the row above
  double per_tile;  // entries in 8 rows and 4 of their distinct columns
} tc_spmm_traits;

/* Errors: TC_ERR_MEMORY */
tc_status tc_spmm_measure(const tc_csr_view *rows, tc_spmm_traits *traits);

/* The format of the next rule that holds, from rule *rule on, which moves behind it; NULL at the end */
const char *tc_spmm_next_rule(const tc_spmm_traits *traits, int32_t n, int *rule);

/* What a choice was made by, in words */
void tc_spmm_say_traits(const tc_spmm_traits *traits, int32_t n, size_t size, char words[]);
