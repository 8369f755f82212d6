#include "plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tc_plan {
  const tc_backend *backend;
  const tc_format  *format;
  const tc_kernel  *kernel;
  tc_arithmetic     arithmetic; // as asked for
  int               sm;
  tc_cache          cache;
  tc_counters       counters;
  tc_stats          stats;
  int               num_arrays;
  tc_array          arrays[TC_MAX_ARRAYS];
  int               built;                  // host_view holds arrays that wait for the upload
  _Alignas(16) char host_view[TC_MAX_VIEW]; // the format's struct as it was built
  _Alignas(16) char view[TC_MAX_VIEW];      // the same, its pointers local to the backend
  void             *local;                  // the one allocation that all arrays of the view share
  char              why[160];
};

/*
  When scalar arithmetic beats tensor-core fragments on a device; both give the same bits. A fragment spreads a row over four lanes, a scalar lane owns one: the
  latter wins on short rows and, given enough rows to fill the device, where gathers do not coalesce, but one long row holds its whole warp up.
  Measured on an H200 with `tcbench spmv -arithmetic mma,fma` (docs/performance.md); sm_80 follows it unmeasured. Devices that are not listed have no FP64 tensor
  cores worth using.
*/
static const struct {
  int     sm;
  int32_t longest_row;    // scalar only if there are rows of tiles and none is longer
  double  mean_row;       // scalar if the mean is at most this
  double  scattered;      // or if at least this share of the entries is scattered
  int64_t scattered_rows; // and there are so many rows of tiles
} policies[] = {
  {80, 40, 8.0, 0.5, 400000},
  {90, 40, 8.0, 0.5, 400000},
};

static void *get_array(const void *view, const tc_array *array)
{
  void *pointer;

  memcpy(&pointer, (const char *)view + array->offset, sizeof pointer);
  return pointer;
}

static void set_array(void *view, const tc_array *array, void *pointer)
{
  memcpy((char *)view + array->offset, &pointer, sizeof pointer);
}

static void release_host_arrays(tc_plan *plan)
{
  if (plan->built) tc_format_destroy(plan->format, plan->host_view);
  plan->built = 0;
}

static void release_arrays(tc_plan *plan)
{
  release_host_arrays(plan);
  plan->backend->release(plan->local);
  plan->local      = NULL;
  plan->num_arrays = 0;
  plan->kernel     = NULL;
  memset(plan->view, 0, sizeof plan->view);
  memset(&plan->stats, 0, sizeof plan->stats);
}

static const tc_kernel *find_kernel(const tc_plan *plan, tc_arithmetic arithmetic)
{
  int              num;
  const tc_kernel *kernels = plan->backend->kernels(&num);

  for (int i = 0; i < num; ++i) {
    if (kernels[i].op == TC_OP_SPMV && strcmp(kernels[i].format, plan->format->name) == 0 && kernels[i].arithmetic == arithmetic && plan->sm >= kernels[i].min_sm) return &kernels[i];
  }
  return NULL;
}

/* Needs the statistics of the packed matrix */
static tc_status choose_kernel(tc_plan *plan)
{
  tc_arithmetic arithmetic = plan->arithmetic;

  if (plan->sm == 0) {
    arithmetic = TC_ARITHMETIC_HOST;
    snprintf(plan->why, sizeof plan->why, "host backend");
  } else if (arithmetic != TC_ARITHMETIC_AUTO) snprintf(plan->why, sizeof plan->why, "asked for");
  else {
    const tc_stats *S = &plan->stats;

    arithmetic = TC_ARITHMETIC_FMA;
    snprintf(plan->why, sizeof plan->why, "no FP64 tensor cores on sm_%d", plan->sm);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; ++i) {
      if (policies[i].sm != plan->sm) continue;
      if (S->num_tile_rows == 0 || S->longest_tile_row > policies[i].longest_row || (S->mean_tile_row > policies[i].mean_row && (S->scattered < policies[i].scattered || S->num_tile_rows < policies[i].scattered_rows))) arithmetic = TC_ARITHMETIC_MMA;
      snprintf(plan->why, sizeof plan->why, "tile rows: %lld, mean %.1f, longest %d, scattered %.0f%%", (long long)S->num_tile_rows, S->mean_tile_row, S->longest_tile_row, 100 * S->scattered);
    }
  }
  plan->kernel = find_kernel(plan, arithmetic);
  TC_CHECK(plan->kernel != NULL, TC_ERR_UNSUPPORTED, "no %s kernel for format %s on backend %s, sm_%d", arithmetic == TC_ARITHMETIC_MMA ? "mma" : arithmetic == TC_ARITHMETIC_FMA ? "fma" : "host", plan->format->name, plan->backend->name, plan->sm);
  return TC_OK;
}

tc_status tc_plan_create(const tc_backend *backend, const tc_plan_options *options, tc_plan **plan)
{
  const char      *name   = options->format ? options->format : "dasp";
  const tc_format *format = tc_format_find(name);
  int              sm;

  *plan = NULL;
  TC_CHECK(format != NULL, TC_ERR_ARG, "no format named %s", name);
  if (backend->probe(&sm) != TC_OK) return tc_fail(TC_ERR_DEVICE, "%s", backend->last_error());
  *plan = calloc(1, sizeof **plan);
  TC_CHECK(*plan != NULL, TC_ERR_MEMORY, "no host memory for a plan");
  (*plan)->backend    = backend;
  (*plan)->format     = format;
  (*plan)->arithmetic = options->arithmetic;
  (*plan)->sm         = sm;
  return TC_OK;
}

void tc_plan_destroy(tc_plan **plan)
{
  if (*plan == NULL) return;
  release_arrays(*plan);
  free(*plan);
  *plan = NULL;
}

tc_verdict tc_plan_check(const tc_plan *plan, const tc_key *key)
{
  return tc_cache_check(&plan->cache, key);
}

/* Errors of the backend carry their text in the backend's library; bring it over */
static tc_status from_backend(const tc_plan *plan, tc_status status)
{
  if (status != TC_OK && plan->backend->last_error != tc_last_error) return tc_fail(status, "%s", plan->backend->last_error());
  return status;
}

/* Moves the arrays of the host view into the backend's memory: one allocation, since on a device each costs as much as a small product */
static tc_status move_arrays(tc_plan *plan, tc_stream stream)
{
  const tc_backend *backend = plan->backend;
  const size_t      align   = 256;
  size_t            offset[TC_MAX_ARRAYS + 1];

  plan->num_arrays = plan->format->arrays(plan->host_view, plan->arrays);
  offset[0]        = 0;
  for (int i = 0; i < plan->num_arrays; ++i) offset[i + 1] = offset[i] + (plan->arrays[i].count * plan->arrays[i].item_size + align - 1) / align * align;
  TC_CALL(from_backend(plan, backend->alloc(offset[plan->num_arrays], &plan->local)));
  memcpy(plan->view, plan->host_view, plan->format->view_size);
  for (int i = 0; i < plan->num_arrays; ++i) {
    const tc_array *array = &plan->arrays[i];
    const size_t    bytes = array->count * array->item_size;
    char           *local = (char *)plan->local + offset[i];

    set_array(plan->view, array, local);
    if (bytes == 0) continue;
    if (array->role == TC_ROLE_INDEX || array->role == TC_ROLE_MAP) TC_CALL(from_backend(plan, backend->upload(local, get_array(plan->host_view, array), bytes, stream)));
    else if (array->role == TC_ROLE_SCRATCH) TC_CALL(from_backend(plan, backend->zero(local, bytes, stream)));
  }
  return TC_OK;
}

tc_status tc_plan_build(tc_plan *plan, const tc_csr *pattern)
{
  tc_status status;

  tc_cache_begin(&plan->cache, TC_CACHE_REBUILD);
  release_arrays(plan);
  TC_CALL(plan->format->build(pattern, plan->host_view));
  plan->built = 1;
  tc_format_stats(plan->format, plan->host_view, &plan->stats);
  status = choose_kernel(plan);
  if (status != TC_OK) release_arrays(plan);
  return status;
}

tc_status tc_plan_upload(tc_plan *plan, tc_stream stream)
{
  tc_status status;

  TC_CHECK(plan->built, TC_ERR_ARG, "upload of a plan that was not built");
  status = move_arrays(plan, stream);
  release_host_arrays(plan);
  if (status != TC_OK) release_arrays(plan);
  return status;
}

tc_status tc_plan_refill(tc_plan *plan, const double *csr_val, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  const int32_t *map = NULL;
  double        *val = NULL;

  TC_CHECK(plan->kernel != NULL && !plan->built, TC_ERR_ARG, "refill of a plan that was not built and uploaded");
  tc_cache_begin(&plan->cache, TC_CACHE_REFILL);
  for (int i = 0; i < plan->num_arrays; ++i) {
    if (plan->arrays[i].role == TC_ROLE_MAP) map = get_array(plan->view, &plan->arrays[i]);
    if (plan->arrays[i].role == TC_ROLE_VALUE) val = get_array(plan->view, &plan->arrays[i]);
  }
  TC_CALL(from_backend(plan, plan->backend->refill(plan->stats.num_slots, map, csr_val, val, stream)));
  tc_cache_commit(&plan->cache, key);
  if (verdict == TC_CACHE_REBUILD) ++plan->counters.rebuilds;
  else ++plan->counters.refills;
  return TC_OK;
}

void tc_plan_hit(tc_plan *plan)
{
  ++plan->counters.hits;
}

tc_status tc_plan_spmv(tc_plan *plan, const double *x, const double *y, double *z, tc_stream stream)
{
  TC_CHECK(plan->kernel != NULL && plan->cache.valid_values, TC_ERR_ARG, "product with a plan that holds no matrix");
  return from_backend(plan, plan->kernel->spmv(plan->view, x, y, z, stream));
}

void tc_plan_counters(const tc_plan *plan, tc_counters *counters)
{
  *counters = plan->counters;
}

void tc_plan_stats(const tc_plan *plan, tc_stats *stats)
{
  *stats = plan->stats;
}

const tc_kernel *tc_plan_kernel(const tc_plan *plan)
{
  return plan->kernel;
}

const char *tc_plan_why(const tc_plan *plan)
{
  return plan->why;
}

const tc_backend *tc_plan_backend(const tc_plan *plan)
{
  return plan->backend;
}
