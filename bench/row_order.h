/*
  An order of the rows for formats of tiles: rows that share columns next to each other, on all scales.
*/
#pragma once
#include "matrix.h"

/*
  order [A->num_rows] gets the row in each place. A breadth-first search over rows that share columns, from one of the farthest rows, cuts them into halves, each of these is
  cut likewise, down to 128 rows (a multiple of them where there are more); columns of many entries are passed over. Errors: TC_ERR_MEMORY
*/
tc_status tc_row_order_by_halves(const tc_matrix *A, int32_t *order);
