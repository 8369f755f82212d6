#include "survey.h"
#include <stdlib.h>
#include <string.h>

static int32_t length_of(const tc_csr_view *rows, int32_t i)
{
  return rows->row_ptr[i + 1] - rows->row_ptr[i];
}

static int by_column(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

  return (x > y) - (x < y);
}

static void sample_rows(const tc_csr_view *rows, tc_survey *S)
{
  for (int32_t s = 0; s < tc_survey_num_sampled(rows->num_rows); ++s) {
    const int32_t i = tc_survey_row(rows->num_rows, s);

    if (i < 1 || i >= rows->num_rows) continue;
    for (int32_t k = 0; k < length_of(rows, i); ++k) S->far += tc_survey_is_far(rows->row_ptr, rows->col, i, k);
    S->sampled += length_of(rows, i);
  }
}

static tc_status sample_windows(const tc_csr_view *rows, tc_survey *S)
{
  int32_t *col = malloc(TC_SURVEY_WINDOW * TC_SPMM_SEGMENT * sizeof *col);

  TC_CHECK(col != NULL, TC_ERR_MEMORY, "no host memory for a sample of %d rows", TC_SURVEY_WINDOW);
  for (int32_t s = 0; s < tc_survey_num_windows(rows->num_rows); ++s) {
    const int32_t first = tc_survey_window(rows->num_rows, s);
    int32_t       n     = 0;

    for (int32_t i = first; i < first + TC_SURVEY_WINDOW; ++i) {
      const int32_t length = length_of(rows, i), taken = length < TC_SPMM_SEGMENT ? length : TC_SPMM_SEGMENT;

      memcpy(col + n, rows->col + rows->row_ptr[i], (size_t)taken * sizeof *col);
      n += taken;
    }
    qsort(col, (size_t)n, sizeof *col, by_column);
    for (int32_t k = 0; k < n; ++k) S->columns += k == 0 || col[k] != col[k - 1];
    S->in_windows += n;
  }
  free(col);
  return TC_OK;
}

/* `place` [TC_SPMM_SEGMENT]: where the next heavy row of so many entries goes */
static void count_rows(const tc_csr_view *rows, int32_t *place, tc_survey *S)
{
  for (int32_t i = 0; i < rows->num_rows; ++i) {
    const int32_t length = length_of(rows, i);

    if (length > S->longest_row) S->longest_row = length;
    if (length >= TC_SPMM_SEGMENT) {
      ++S->num_long;
      S->num_segments += (length + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT;
    } else if (length >= S->heavy_from) ++place[length];
  }
  for (int32_t length = TC_SPMM_SEGMENT - 1; length >= 0; --length) {
    const int32_t num = place[length];

    place[length] = S->num_heavy;
    S->num_heavy += num;
  }
}

/* Long rows in their order; heavy ones by length, the longest first, then in their order */
static tc_status list_rows(const tc_csr_view *rows, int32_t *place, tc_survey *S)
{
  int32_t *first, *heavy, r = 0;

  if (S->num_long + S->num_heavy == 0) return TC_OK;
  S->list = calloc(tc_survey_list_bytes(S->num_long, S->num_heavy), 1);
  TC_CHECK(S->list != NULL, TC_ERR_MEMORY, "no host memory for a list of %d long and %d heavy rows", S->num_long, S->num_heavy);
  first    = S->list + S->num_long;
  heavy    = first + S->num_long + 1;
  first[0] = 0;
  for (int32_t i = 0; i < rows->num_rows; ++i) {
    const int32_t length = length_of(rows, i);

    if (length >= TC_SPMM_SEGMENT) {
      S->list[r]   = i;
      first[r + 1] = first[r] + (length + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT;
      ++r;
    } else if (length >= S->heavy_from) heavy[place[length]++] = i;
  }
  return TC_OK;
}

tc_status tc_survey_host(const tc_csr_view *rows, tc_survey *survey)
{
  int32_t place[TC_SPMM_SEGMENT] = {0};

  *survey = (tc_survey){.heavy_from = tc_survey_heavy_from(rows->num_rows, rows->nnz)};
  sample_rows(rows, survey);
  TC_CALL(sample_windows(rows, survey));
  count_rows(rows, place, survey);
  return list_rows(rows, place, survey);
}

void tc_survey_put(const tc_survey *survey, int32_t *list, tc_csr_view *view)
{
  view->num_long     = survey->num_long;
  view->num_segments = survey->num_segments;
  view->num_heavy    = survey->num_heavy;
  view->heavy_from   = survey->heavy_from;
  view->long_row     = list;
  view->long_first   = list ? list + survey->num_long : NULL;
  view->heavy_row    = list ? list + 2 * (int64_t)survey->num_long + 1 : NULL;
  view->arrived      = list ? list + 2 * (int64_t)survey->num_long + 1 + survey->num_heavy : NULL;
}

double tc_repeated_lengths(const void *row_ptr, int wide, int64_t num_rows)
{
  enum { GROUPS = 16, TOGETHER = 16 }; // neighbours, lest rows at the edges of a grid, which come again at even distances, are all that is looked at
  int64_t rows = 0, repeated = 0;

  for (int g = 0; g < GROUPS; ++g) {
    const int64_t first = g * num_rows / GROUPS, next = (g + 1) * num_rows / GROUPS;

    for (int64_t row = first; row < next && row < first + TOGETHER && row + 3 <= num_rows; ++row, ++rows) {
      int64_t length[3];

      for (int k = 0; k < 3; ++k) length[k] = wide ? ((const int64_t *)row_ptr)[row + k + 1] - ((const int64_t *)row_ptr)[row + k] : ((const int32_t *)row_ptr)[row + k + 1] - ((const int32_t *)row_ptr)[row + k];
      repeated += length[0] == length[1] || length[0] == length[2];
    }
  }
  return rows > 0 ? (double)repeated / (double)rows : 1;
}
