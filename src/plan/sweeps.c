#include "sweeps.h"

/*
  Measured on an H200: a level of 7-, 27-point stencils and of elements takes 0.7 to 0.8, 1.1 and 2.0 us there, and the host 2.3 to 3 ns an entry (docs/performance-solves.md, "Sweeps")
*/
int32_t tc_sweeps_most_levels(int64_t num_rows, int64_t nnz)
{
  const double in_triangle = num_rows > 0 ? (double)(nnz - num_rows) / 2 / (double)num_rows : 0;
  const double host_us     = 40 + 4e-3 * (double)num_rows + 2.2e-3 * (double)nnz;
  const double level_us    = 0.65 + 0.035 * in_triangle;
  const double levels      = (host_us - 10 - 1.8e-5 * (double)nnz) / level_us;

  return levels < INT32_MAX ? (int32_t)levels : INT32_MAX;
}
