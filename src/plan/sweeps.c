#include "sweeps.h"

enum { TRIANGLES = 2 };

static tc_status find(tc_sweep_orders *orders, const tc_csr_local *rows, int32_t most, tc_stream stream)
{
  const tc_backend *backend = orders->backend;
  const size_t      n       = (size_t)rows->num_rows;
  int32_t           left    = most, *memory;
  void             *scratch;
  tc_status         status;

  TC_CALL(tc_from_backend(backend, backend->alloc(((TRIANGLES + 1) * n + (size_t)rows->nnz) * sizeof(*memory), &orders->memory)));
  memory                   = (int32_t *)orders->memory;
  orders->pattern.diagonal = memory + TRIANGLES * n;
  orders->pattern.place    = orders->pattern.diagonal + n;
  for (int t = 0; t < TRIANGLES; t++) {
    orders->pattern.order[t] = memory + (size_t)t * n;
    TC_CALL(tc_from_backend(backend, backend->order_rows(rows, t, left > 1 ? left : 1, memory + (size_t)t * n, &orders->levels[t], stream)));
    left -= orders->levels[t];
    if (left < 0) {
      tc_sweep_orders_forget(orders);
      return TC_OK;
    }
  }
  TC_CALL(tc_from_backend(backend, backend->take(TRIANGLES * n * sizeof(*memory), &scratch, stream)));
  status = tc_from_backend(backend, backend->sweep_pattern(rows, &orders->pattern, (int32_t *)scratch, stream));
  (void)backend->give(scratch, stream);
  return status;
}

tc_status tc_sweep_orders_find(tc_sweep_orders *orders, const tc_backend *backend, const tc_csr_local *rows, int32_t most, tc_stream stream)
{
  tc_status status;

  orders->backend = backend;
  orders->memory  = NULL;
  status          = find(orders, rows, most, stream);
  if (status != TC_OK) tc_sweep_orders_forget(orders);
  return status;
}

void tc_sweep_orders_forget(tc_sweep_orders *orders)
{
  if (orders->memory) orders->backend->release(orders->memory);
  orders->memory = NULL;
}

/* Measured on an H200: a level of 7-, 27-point stencils and of elements takes 0.7 to 0.8, 1.1 and 2.0 us there (docs/performance-solves.md, "Sweeps") */
static double level_us(int64_t num_rows, int64_t nnz)
{
  return 0.65 + 0.035 * (num_rows > 0 ? (double)(nnz - num_rows) / 2 / (double)num_rows : 0);
}

static int32_t bounded(double levels)
{
  return levels < INT32_MAX ? (int32_t)levels : INT32_MAX;
}

/* The host takes 2.3 to 3 ns an entry */
int32_t tc_sweeps_most_levels(int64_t num_rows, int64_t nnz)
{
  const double host_us = 40 + 4e-3 * (double)num_rows + 2.2e-3 * (double)nnz;

  return bounded((host_us - 10 - 1.8e-5 * (double)nnz) / level_us(num_rows, nnz));
}

/* The host takes 17 us and 10 ns a row, vectors on their way included, 1 ns an entry and 10 in computing it; a device half as long again for a level of numbers as for one of both solves (there, "Factors") */
static double factors_on_host_us(int64_t num_rows, int64_t nnz)
{
  return 17 + 1e-2 * (double)num_rows + 2e-3 * (double)nnz;
}

int32_t tc_factors_most_levels(int64_t num_rows, int64_t nnz)
{
  return bounded((factors_on_host_us(num_rows, nnz) - 10 - 1.8e-5 * (double)nnz) / (2.3 * level_us(num_rows, nnz)));
}

int32_t tc_factors_most_levels_cusparse(int64_t num_rows, int64_t nnz)
{
  return bounded(factors_on_host_us(num_rows, nnz) / 3.2);
}
