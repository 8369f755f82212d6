/*
  The survey of a pattern on the host, and its lists in the view of CSR.
*/
#pragma once
#include "../../kernels/tc_survey.h"

/* `rows` is CSR on the host, without values; release the list with free(). Errors: TC_ERR_MEMORY */
tc_status tc_survey_host(const tc_csr_view *rows, tc_survey *survey);

/*
  The share of rows that are as long as one of the two behind them, of a sample, between 0 and 1. Where it is small, a processor cannot foretell where a row ends. `row_ptr` [num_rows + 1] has numbers of 64 bits if `wide`,
  else of 32
*/
double tc_repeated_lengths(const void *row_ptr, int wide, int64_t num_rows);

/* Puts the lists into the view; `list` is where that of the survey is now */
void tc_survey_put(const tc_survey *survey, int32_t *list, tc_csr_view *view);
