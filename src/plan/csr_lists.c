#include "csr_lists.h"
#include <stdlib.h>

enum {
  HEAVY      = 32, // entries from which a row may be heavy, ...
  HEAVY_MEAN = 4   // ... if that many times the mean
};

static int32_t length_of(const tc_csr_view *rows, int32_t i)
{
  return rows->row_ptr[i + 1] - rows->row_ptr[i];
}

static int32_t heavy_from(const tc_csr_view *rows)
{
  const int64_t from = rows->num_rows > 0 ? HEAVY_MEAN * rows->nnz / rows->num_rows : 0;

  return from < HEAVY ? HEAVY : from < TC_SPMM_SEGMENT ? (int32_t)from : TC_SPMM_SEGMENT;
}

tc_status tc_csr_lists_make(const tc_csr_view *rows, tc_csr_lists *lists)
{
  int32_t  place[TC_SPMM_SEGMENT] = {0}; // of the next heavy row of so many entries
  int32_t *first, *heavy, r = 0;

  *lists = (tc_csr_lists){.heavy_from = heavy_from(rows)};
  for (int32_t i = 0; i < rows->num_rows; ++i) {
    const int32_t length = length_of(rows, i);

    if (length >= TC_SPMM_SEGMENT) ++lists->num_long;
    else if (length >= lists->heavy_from) ++place[length];
  }
  for (int32_t length = TC_SPMM_SEGMENT - 1; length >= 0; --length) {
    const int32_t num = place[length];

    place[length] = lists->num_heavy;
    lists->num_heavy += num;
  }
  if (lists->num_long + lists->num_heavy == 0) return TC_OK;
  lists->bytes = (2 * (size_t)lists->num_long + 1 + (size_t)lists->num_heavy) * sizeof *lists->list;
  lists->list  = malloc(lists->bytes);
  TC_CHECK(lists->list != NULL, TC_ERR_MEMORY, "no host memory for a list of %d long and %d heavy rows", lists->num_long, lists->num_heavy);
  first    = lists->list + lists->num_long;
  heavy    = first + lists->num_long + 1;
  first[0] = 0;
  for (int32_t i = 0; i < rows->num_rows; ++i) {
    const int32_t length = length_of(rows, i);

    if (length >= TC_SPMM_SEGMENT) {
      lists->list[r] = i;
      first[r + 1]   = first[r] + (length + TC_SPMM_SEGMENT - 1) / TC_SPMM_SEGMENT;
      ++r;
    } else if (length >= lists->heavy_from) heavy[place[length]++] = i;
  }
  lists->num_segments = first[r];
  return TC_OK;
}

void tc_csr_lists_put(const tc_csr_lists *lists, const int32_t *local, tc_csr_view *view)
{
  view->num_long     = lists->num_long;
  view->num_segments = lists->num_segments;
  view->num_heavy    = lists->num_heavy;
  view->heavy_from   = lists->heavy_from;
  view->long_row     = local;
  view->long_first   = local ? local + lists->num_long : NULL;
  view->heavy_row    = local ? local + 2 * (int64_t)lists->num_long + 1 : NULL;
}
