/*
  Lists of rows that device kernels for CSR begin with, so that nobody waits for a row that is much longer than those beside it. Made on the host.
*/
#pragma once
#include "../../kernels/tc_spmm.h"

typedef struct {
  int32_t  num_long, num_segments; // as in tc_csr_view
  int32_t  num_heavy, heavy_from;
  size_t   bytes;
  int32_t *list; // [num_long] long rows, [num_long + 1] first segments, [num_heavy] heavy rows; NULL if there are none. Release with free().
} tc_csr_lists;

/* `rows` is CSR on the host, without values. Errors: TC_ERR_MEMORY */
tc_status tc_csr_lists_make(const tc_csr_view *rows, tc_csr_lists *lists);

/* Puts them into the view; `local` is where the list was copied to */
void tc_csr_lists_put(const tc_csr_lists *lists, const int32_t *local, tc_csr_view *view);
