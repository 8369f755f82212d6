/*
  The survey of a pattern on the host, and its lists in the view of CSR.
*/
#pragma once
#include "../../kernels/tc_survey.h"

/* `rows` is CSR on the host, without values; release the list with free(). Errors: TC_ERR_MEMORY */
tc_status tc_survey_host(const tc_csr_view *rows, tc_survey *survey);

/* Puts the lists into the view; `list` is where that of the survey is now */
void tc_survey_put(const tc_survey *survey, int32_t *list, tc_csr_view *view);
