#include "levels.h"
#include <stdlib.h>
#include <string.h>

/* The level of each row, from 1 on, and the highest; only entries of the triangle are looked at */
static int32_t number(const tc_csr *A, int upper, int32_t *level)
{
  const int32_t n    = A->num_rows;
  int32_t       most = 0;

  for (int32_t step = 0; step < n; ++step) {
    const int32_t i    = upper ? n - 1 - step : step;
    int32_t       last = 0; // of those that it refers to

    if (upper) {
      for (int64_t k = A->row_ptr[i + 1] - 1; k >= A->row_ptr[i] && A->col[k] > i; --k) last = level[A->col[k]] > last ? level[A->col[k]] : last;
    } else {
      for (int64_t k = A->row_ptr[i]; k < A->row_ptr[i + 1] && A->col[k] < i; ++k) last = level[A->col[k]] > last ? level[A->col[k]] : last;
    }
    level[i] = last + 1;
    if (last + 1 > most) most = last + 1;
  }
  return most;
}

tc_status tc_levels_order(const tc_csr *A, int upper, int32_t *order, int32_t *num_levels)
{
  const size_t n     = (size_t)A->num_rows;
  int32_t     *level = malloc((2 * n + 2) * sizeof *level), *next;

  TC_CHECK(level != NULL, TC_ERR_MEMORY, "no host memory for the levels of %d rows", A->num_rows);
  next        = level + n; // of each level, where its next row goes
  *num_levels = number(A, upper, level);
  memset(next, 0, (n + 2) * sizeof *next);
  for (size_t i = 0; i < n; ++i) ++next[level[i] + 1];
  for (int32_t l = 1; l <= *num_levels; ++l) next[l + 1] += next[l];
  for (size_t i = 0; i < n; ++i) order[next[level[i]]++] = (int32_t)i;
  free(level);
  return TC_OK;
}

/* Measured on an H200: a level of 7-, 27-point stencils and of elements takes 0.7 to 0.8, 1.1 and 2.0 us (docs/performance-solves.md, "Sweeps") */
double tc_levels_device_ms(int64_t num_rows, int64_t nnz, int64_t levels)
{
  const double in_triangle = num_rows > 0 ? (double)(nnz - num_rows) / 2 / (double)num_rows : 0;

  return 0.01 + 1e-3 * (0.65 + 0.035 * in_triangle) * (double)levels + 1.8e-8 * (double)nnz;
}

double tc_levels_host_ms(int64_t num_rows, int64_t nnz)
{
  return 0.04 + 4e-6 * (double)num_rows + 2.2e-6 * (double)nnz;
}
