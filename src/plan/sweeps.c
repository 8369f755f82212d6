#include "sweeps.h"

enum { TRIANGLES = 2 };

/* What can be said of the pattern, and do rows go together? */
static tc_status find_facts(tc_sweep_orders *orders, const tc_csr_local *rows, int32_t *mirror, tc_stream stream)
{
  const tc_backend *backend = orders->backend;
  tc_sweep_facts    facts;
  void             *told;
  tc_status         status;

  TC_CALL(tc_from_backend(backend, backend->take(sizeof facts, &told, stream)));
  status = tc_from_backend(backend, backend->zero(told, sizeof facts, stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->sweep_facts(rows, mirror, (tc_sweep_facts *)told, stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->download(&facts, told, sizeof facts, stream));
  (void)backend->give(told, stream);
  TC_CALL(status);
  orders->lone            = facts.lone;
  orders->pattern.longest = facts.longest;
  orders->pattern.node    = rows->row_group > 1 && rows->row_group <= TC_SWEEP_LARGEST_NODE && rows->row_group * facts.longest <= TC_SWEEP_NODE_ROOM && rows->num_rows % rows->row_group == 0 && !facts.irregular ? rows->row_group : 1;
  return TC_OK;
}

static tc_status find(tc_sweep_orders *orders, const tc_csr_local *rows, int32_t most, int32_t *mirror, tc_stream stream)
{
  const tc_backend *backend  = orders->backend;
  const size_t      n        = (size_t)rows->num_rows;
  tc_csr_local      together = *rows;
  int32_t           left     = most, *memory;
  void             *scratch;
  tc_status         status;

  TC_CALL(find_facts(orders, rows, mirror, stream));
  together.row_group = orders->pattern.node;
  TC_CALL(tc_from_backend(backend, backend->alloc(((TRIANGLES + 1) * n + (size_t)rows->nnz) * sizeof(*memory), &orders->memory)));
  memory                   = (int32_t *)orders->memory;
  orders->pattern.diagonal = memory + TRIANGLES * n;
  orders->pattern.place    = orders->pattern.diagonal + n;
  for (int t = 0; t < TRIANGLES; t++) {
    orders->pattern.order[t] = memory + (size_t)t * n;
    TC_CALL(tc_from_backend(backend, backend->order_rows(&together, t, left > 1 ? left : 1, memory + (size_t)t * n, &orders->levels[t], stream)));
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

tc_status tc_sweep_orders_find(tc_sweep_orders *orders, const tc_backend *backend, const tc_csr_local *rows, int32_t most, int32_t *mirror, tc_stream stream)
{
  tc_status status;

  orders->backend = backend;
  orders->memory  = NULL;
  status          = find(orders, rows, most, mirror, stream);
  if (status != TC_OK) tc_sweep_orders_forget(orders);
  return status;
}

void tc_sweep_orders_forget(tc_sweep_orders *orders)
{
  if (orders->memory) orders->backend->release(orders->memory);
  orders->memory = NULL;
}

/*
  Measured on an H200: a level of 7- and 27-point stencils takes 0.7 to 0.8 and 1.1 us there, of single rows with 22 to 95 entries in a triangle 1.2 to 1.7, of rows that go together in nodes 0.6 to 0.9 (docs/performance-solves.md,
  "Sweeps")
*/
static double level_us(int64_t num_rows, int64_t nnz, int32_t row_group)
{
  const double in_triangle = num_rows > 0 ? (double)(nnz - num_rows) / 2 / (double)num_rows : 0;

  if (row_group > 1 && row_group <= TC_SWEEP_LARGEST_NODE) return 0.55 + 0.004 * in_triangle;
  return in_triangle > TC_SWEEP_SINGLE_ROWS ? 1.0 + 0.0075 * in_triangle : 0.65 + 0.035 * in_triangle;
}

static int32_t bounded(double levels)
{
  return levels < INT32_MAX ? (int32_t)levels : INT32_MAX;
}

/* The host takes 2.3 to 3 ns an entry */
int32_t tc_sweeps_most_levels(int64_t num_rows, int64_t nnz, int32_t row_group)
{
  const double host_us = 40 + 4e-3 * (double)num_rows + 2.2e-3 * (double)nnz;

  return bounded((host_us - 10 - 1.8e-5 * (double)nnz) / level_us(num_rows, nnz, row_group));
}

/* The host takes 17 us and 10 ns a row, vectors on their way included, 1 ns an entry and 10 in computing it; a device 2 to 6 us for a level of numbers (there, "Factors") */
static double factors_on_host_us(int64_t num_rows, int64_t nnz)
{
  return 17 + 1e-2 * (double)num_rows + 2e-3 * (double)nnz;
}

int32_t tc_factors_most_levels(int64_t num_rows, int64_t nnz, int32_t row_group)
{
  return bounded((factors_on_host_us(num_rows, nnz) - 10 - 1.8e-5 * (double)nnz) / (2.4 * level_us(num_rows, nnz, row_group)));
}

int32_t tc_factors_most_levels_cusparse(int64_t num_rows, int64_t nnz)
{
  return bounded(factors_on_host_us(num_rows, nnz) / 3.2);
}
