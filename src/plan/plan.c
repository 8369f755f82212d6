#include "plan.h"
#include "choose.h"
#include "scalar.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct tc_plan {
  const tc_backend   *backend;
  const tc_format    *format;
  const tc_converter *converter; // of the format on the backend
  const tc_kernel    *kernel;
  tc_arithmetic       arithmetic; // as asked for
  tc_precision        precision;
  tc_scalar           scalar;
  int                 sm;
  int32_t             num_rows, num_cols; // of the pattern
  tc_cache            cache;
  tc_counters         counters;
  tc_stats            stats;
  int                 settled;              // what wrote the arrays had ended when the last product on `stream` began
  tc_stream           stream;
  int                 unfilled;             // no values have come since the build
  int                 patience;             // products with the same values that a collection waits for, 0: none comes
  int                 until_collect;        // of these, what is left; 0: no more with these values
  int                 since_collect;        // products since the last one, of these values; -1: there was none
  int                 built;                // host_view holds arrays that wait for the upload
  int                 in_place;             // or that the view has, too, as the host's memory is the backend's
  _Alignas(16) char host_view[TC_MAX_VIEW]; // the format's struct as it was built
  _Alignas(16) char view[TC_MAX_VIEW];      // the same, its pointers local to the backend
  void *local;                              // the one allocation that all arrays of the view share
  void *shared;                             // what refills remember; NULL if the format's remember nothing
  void *wide;                               // x and z in double precision, for kernels that want them so; else NULL
  char  why[TC_MAX_WHY]; // once it has been asked for
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
  if (plan->built || plan->in_place) tc_format_destroy(plan->format, plan->host_view);
  plan->built = plan->in_place = 0;
}

static void release_arrays(tc_plan *plan)
{
  release_host_arrays(plan);
  plan->backend->release(plan->local);
  plan->backend->release(plan->wide);
  plan->backend->unshare(plan->shared); // all refills have ended, as `local` has been released
  plan->local   = NULL;
  plan->wide    = NULL;
  plan->shared  = NULL;
  plan->kernel  = NULL;
  plan->settled = 0;
  memset(plan->view, 0, sizeof plan->view);
  memset(&plan->stats, 0, sizeof plan->stats);
}

static const tc_converter *find_converter(const tc_backend *backend, const char *format)
{
  int                 num;
  const tc_converter *converters = backend->converters(&num);

  for (int i = 0; i < num; ++i) {
    if (strcmp(converters[i].format, format) == 0) return &converters[i];
  }
  return NULL;
}

/* Needs the statistics of the packed matrix */
static tc_status choose_kernel(tc_plan *plan, char *why)
{
  return tc_choose_kernel(plan->backend, plan->sm, plan->format->name, plan->arithmetic, plan->precision, plan->scalar, &plan->stats, &plan->kernel, why);
}

/* What is packed gets its statistics, by these a kernel, and by that an order of the values */
static tc_status arrange(tc_plan *plan, void *view)
{
  tc_format_stats(plan->format, view, &plan->stats);
  TC_CALL(choose_kernel(plan, NULL));
  if (plan->format->arrange != NULL) plan->format->arrange(view, plan->kernel->arithmetic);
  return TC_OK;
}

/* What has just been packed gets that, and a memory for its refills */
static tc_status settle(tc_plan *plan, void *view)
{
  plan->unfilled = 1;
  TC_CALL(arrange(plan, view));
  if (plan->format->remember == NULL) return TC_OK;
  TC_CALL(tc_from_backend(plan->backend, plan->backend->share(&plan->shared)));
  plan->format->remember(view, plan->shared);
  return TC_OK;
}

tc_status tc_plan_create(const tc_backend *backend, const tc_plan_options *options, tc_plan **plan)
{
  const char         *name;
  const tc_format    *format;
  const tc_converter *converter;
  int                 sm;

  *plan = NULL;
  if (backend->probe(&sm) != TC_OK) return tc_fail(TC_ERR_DEVICE, "%s", backend->last_error());
  name   = options->format ? options->format : tc_choose_format(sm, options->precision);
  format = tc_format_find(name);
  TC_CHECK(format != NULL, TC_ERR_ARG, "no format named %s", name);
  TC_CHECK(options->precision <= format->precision, TC_ERR_UNSUPPORTED, "format %s does not keep values in %s", name, tc_precision_name(options->precision));
  converter = find_converter(backend, name);
  TC_CHECK(converter != NULL, TC_ERR_UNSUPPORTED, "backend %s cannot make format %s", backend->name, name);
  *plan = calloc(1, sizeof **plan);
  TC_CHECK(*plan != NULL, TC_ERR_MEMORY, "no host memory for a plan");
  (*plan)->backend    = backend;
  (*plan)->format     = format;
  (*plan)->converter  = converter;
  (*plan)->arithmetic = options->arithmetic;
  (*plan)->precision  = options->precision;
  (*plan)->scalar     = options->scalar;
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

static int is_packed(const tc_array *array)
{
  return array->role == TC_ROLE_INDEX || array->role == TC_ROLE_MAP;
}

/* Moves the arrays of the host view into the backend's memory, unless they are there: one allocation, since on a device each costs as much as a small product */
static tc_status move_arrays(tc_plan *plan, tc_stream stream)
{
  const tc_backend *backend = plan->backend;
  const size_t      align   = 256;
  const int         in_place = backend == tc_backend_host();
  size_t            offset[TC_MAX_ARRAYS + 1];
  tc_array          arrays[TC_MAX_ARRAYS];
  const int         num = plan->format->arrays(plan->host_view, arrays);

  offset[0] = 0;
  for (int i = 0; i < num; ++i) offset[i + 1] = offset[i] + (in_place && is_packed(&arrays[i]) ? 0 : (arrays[i].count * arrays[i].item_size + align - 1) / align * align);
  TC_CALL(tc_from_backend(plan->backend, backend->alloc(offset[num], &plan->local)));
  memcpy(plan->view, plan->host_view, plan->format->view_size);
  for (int i = 0; i < num; ++i) {
    const size_t bytes = arrays[i].count * arrays[i].item_size;
    char        *local = (char *)plan->local + offset[i];

    if (in_place && is_packed(&arrays[i])) continue;
    set_array(plan->view, &arrays[i], local);
    if (bytes == 0) continue;
    if (is_packed(&arrays[i])) TC_CALL(tc_from_backend(plan->backend, backend->upload(local, get_array(plan->host_view, &arrays[i]), bytes, stream)));
    else if (arrays[i].role == TC_ROLE_SCRATCH) TC_CALL(tc_from_backend(plan->backend, backend->zero(local, bytes, stream)));
  }
  plan->in_place = in_place;
  return TC_OK;
}

tc_status tc_plan_build(tc_plan *plan, const tc_csr *pattern)
{
  tc_csr    A = *pattern;
  tc_status status;

  A.precision    = plan->precision;
  plan->num_rows = A.num_rows;
  plan->num_cols = A.num_cols;
  tc_cache_begin(&plan->cache, TC_CACHE_REBUILD);
  release_arrays(plan);
  TC_CALL(plan->format->build(&A, plan->host_view));
  plan->built = 1;
  status = settle(plan, plan->host_view);
  if (status != TC_OK) release_arrays(plan);
  return status;
}

int tc_plan_builds_local(const tc_plan *plan)
{
  return plan->converter->build != NULL;
}

tc_status tc_plan_build_local(tc_plan *plan, const tc_csr_local *pattern, tc_stream stream)
{
  tc_csr_local A = *pattern;
  tc_status    status;

  A.precision    = plan->precision;
  plan->num_rows = A.num_rows;
  plan->num_cols = A.num_cols;
  TC_CHECK(tc_plan_builds_local(plan), TC_ERR_UNSUPPORTED, "backend %s does not pack format %s", plan->backend->name, plan->format->name);
  tc_cache_begin(&plan->cache, TC_CACHE_REBUILD);
  release_arrays(plan);
  TC_CALL(tc_from_backend(plan->backend, plan->converter->build(&A, plan->view, &plan->local, stream)));
  status = settle(plan, plan->view);
  if (status != TC_OK) release_arrays(plan);
  return status;
}

tc_status tc_plan_upload(tc_plan *plan, tc_stream stream)
{
  tc_status status;

  TC_CHECK(plan->built, TC_ERR_ARG, "upload of a plan that was not built");
  status = move_arrays(plan, stream);
  if (plan->in_place) plan->built = 0;
  else release_host_arrays(plan);
  if (status != TC_OK) release_arrays(plan);
  return status;
}

/* Values that repeat or are floats take less, which may be another kernel's case: those of refills before, or, if it is the first one and it may be, these */
static tc_status look_at_values(tc_plan *plan, const double *csr_val, tc_stream stream)
{
  const int first = plan->unfilled;

  plan->unfilled = 0;
  if (plan->format->product_bytes == NULL) return TC_OK;
  if (first && plan->converter->search != NULL && plan->arithmetic == TC_ARITHMETIC_AUTO && tc_choose_depends_on_values(plan->sm, &plan->stats)) TC_CALL(tc_from_backend(plan->backend, plan->converter->search(plan->view, csr_val, stream)));
  return plan->format->product_bytes(plan->view) == plan->stats.product_bytes ? TC_OK : arrange(plan, plan->view);
}

/* New values. Where those before went when they had just been collected, these have to be multiplied with twice as often before they are. */
static void wait_to_collect(tc_plan *plan)
{
  const int least = plan->converter->collect != NULL && plan->scalar == TC_SCALAR_F64 ? tc_choose_collect_after(&plan->stats) : 0, most = 1 << 20;

  if (plan->unfilled || least == 0) plan->patience = least;
  else if (plan->since_collect >= 0 && plan->since_collect < least && plan->patience < most) plan->patience *= 2;
  plan->until_collect = plan->patience;
  plan->since_collect = -1;
}

tc_status tc_plan_refill(tc_plan *plan, const void *csr_val, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  const double *wide;
  void         *taken;
  tc_status     status;

  TC_CHECK(plan->kernel != NULL && !plan->built, TC_ERR_ARG, "refill of a plan that was not built and uploaded");
  tc_cache_begin(&plan->cache, TC_CACHE_REFILL);
  plan->settled = 0;
  wait_to_collect(plan);
  TC_CALL(tc_scalar_widen(plan->backend, plan->scalar, plan->stats.num_nonzeros, csr_val, &wide, &taken, stream));
  status = look_at_values(plan, wide, stream);
  if (status == TC_OK) status = tc_from_backend(plan->backend, plan->converter->refill(plan->view, wide, stream));
  TC_CALL(tc_scalar_give(plan->backend, status, taken, stream));
  tc_cache_commit(&plan->cache, key);
  if (verdict == TC_CACHE_REBUILD) ++plan->counters.rebuilds;
  else ++plan->counters.refills;
  return TC_OK;
}

void tc_plan_hit(tc_plan *plan)
{
  ++plan->counters.hits;
}

tc_status tc_plan_collect(tc_plan *plan, tc_stream stream)
{
  TC_CHECK(plan->kernel != NULL && plan->cache.valid_values, TC_ERR_ARG, "values of a plan that holds no matrix");
  plan->until_collect = 0;
  plan->since_collect = 0;
  if (plan->converter->collect == NULL) return TC_OK;
  plan->settled = 0;
  return tc_from_backend(plan->backend, plan->converter->collect(plan->view, stream));
}

/* What a stream captures would be repeated without the refill in front of it */
int tc_plan_collects(const tc_plan *plan, tc_stream stream)
{
  return plan->until_collect == 1 && (plan->backend->capturing == NULL || !plan->backend->capturing(stream));
}

/* Values that are multiplied with again and again are worth it; where there is no memory for it nothing is lost */
static tc_status collect_in_time(tc_plan *plan, tc_stream stream)
{
  tc_status status = TC_OK;

  if (plan->since_collect >= 0 && plan->since_collect < INT_MAX) ++plan->since_collect;
  if (tc_plan_collects(plan, stream)) status = tc_plan_collect(plan, stream);
  else if (plan->until_collect > 1) --plan->until_collect;
  return status == TC_ERR_MEMORY ? TC_OK : status;
}

/* The first product after a refill reads nothing before the refill has ended, so those after it need not wait before they read the arrays */
static tc_status multiply(tc_plan *plan, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  const int early = plan->settled && plan->stream == stream;

  TC_CALL(tc_from_backend(plan->backend, plan->kernel->spmv(plan->view, x, y, z, sign, early, stream)));
  plan->settled = 1;
  plan->stream  = stream;
  return TC_OK;
}

/* With vectors of floats and a kernel that wants doubles */
static tc_status multiply_widened(tc_plan *plan, const float *x, const float *y, float *z, int sign, tc_stream stream)
{
  const tc_backend *backend = plan->backend;
  const int64_t     rows = plan->num_rows, cols = plan->num_cols;
  double           *wide_z, *wide_x;

  if (plan->wide == NULL) TC_CALL(backend->alloc(sizeof(double) * (size_t)(rows + cols), &plan->wide));
  wide_z = plan->wide;
  wide_x = wide_z + rows;
  TC_CALL(backend->widen(cols, 1, x, cols, wide_x, cols, stream));
  if (y != NULL) TC_CALL(backend->widen(rows, 1, y, rows, wide_z, rows, stream));
  TC_CALL(multiply(plan, wide_x, y != NULL ? wide_z : NULL, wide_z, sign, stream));
  return backend->round(rows, 1, wide_z, rows, z, rows, stream);
}

tc_status tc_plan_spmv(tc_plan *plan, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  TC_CHECK(plan->kernel != NULL && plan->cache.valid_values, TC_ERR_ARG, "product with a plan that holds no matrix");
  TC_CALL(collect_in_time(plan, stream));
  return plan->kernel->scalar == plan->scalar ? multiply(plan, x, y, z, sign, stream) : tc_from_backend(plan->backend, multiply_widened(plan, x, y, z, sign, stream));
}

/* What products read */
static tc_status demote_arrays(const tc_plan *plan, int keep, tc_stream stream)
{
  tc_array  arrays[TC_MAX_ARRAYS];
  const int num = plan->backend->demote != NULL && plan->kernel != NULL && !plan->built ? plan->format->arrays(plan->view, arrays) : 0;

  for (int i = 0; i < num; ++i) {
    if (arrays[i].role != TC_ROLE_MAP) TC_CALL(tc_from_backend(plan->backend, plan->backend->demote(get_array(plan->view, &arrays[i]), arrays[i].count * arrays[i].item_size, keep, stream)));
  }
  return TC_OK;
}

tc_status tc_plan_demote(const tc_plan *plan, tc_stream stream)
{
  return demote_arrays(plan, 1, stream);
}

void tc_plan_unpack(tc_plan *plan, tc_stream stream)
{
  (void)demote_arrays(plan, 0, stream); // they go in any case
  tc_cache_begin(&plan->cache, TC_CACHE_REBUILD);
  release_arrays(plan);
}

void tc_plan_counters(const tc_plan *plan, tc_counters *counters)
{
  *counters = plan->counters;
}

void tc_plan_stats(const tc_plan *plan, tc_stats *stats)
{
  *stats = plan->stats;
}

/* The arrays that the format's detail() reads, on the host */
static tc_status fetch_detail(const tc_plan *plan, const tc_array *arrays, int num, void *view, tc_stream stream)
{
  for (int i = 0; i < num; ++i) {
    const size_t bytes = arrays[i].count * arrays[i].item_size;
    void        *host  = NULL;

    if (arrays[i].in_detail && bytes > 0) {
      host = malloc(bytes);
      TC_CHECK(host != NULL, TC_ERR_MEMORY, "no host memory for %zu bytes", bytes);
    }
    set_array(view, &arrays[i], host);
    if (host) TC_CALL(tc_from_backend(plan->backend, plan->backend->download(host, get_array(plan->view, &arrays[i]), bytes, stream)));
  }
  return TC_OK;
}

tc_status tc_plan_detail(const tc_plan *plan, tc_detail *detail, tc_stream stream)
{
  _Alignas(16) char view[TC_MAX_VIEW];
  tc_array          arrays[TC_MAX_ARRAYS];
  const int         num = plan->format->arrays(plan->view, arrays);
  tc_status         status;

  detail->value_bytes = plan->stats.value_bytes;
  detail->kinds[0]    = '\0';
  if (plan->format->detail == NULL || plan->kernel == NULL || plan->built) return TC_OK;
  memcpy(view, plan->view, sizeof view);
  for (int i = 0; i < num; ++i) set_array(view, &arrays[i], NULL);
  status = fetch_detail(plan, arrays, num, view, stream);
  if (status == TC_OK) plan->format->detail(view, detail);
  tc_format_destroy(plan->format, view);
  return status;
}

const void *tc_plan_view(const tc_plan *plan)
{
  return plan->view;
}

double tc_plan_cusparse_floor_ms(const tc_plan *plan)
{
  return tc_choose_cusparse_floor_ms(plan->sm, plan->scalar, &plan->stats);
}

int tc_plan_model(const tc_plan *plan, int64_t value_bytes, tc_modelled *model)
{
  return tc_choose_by_model(plan->sm, plan->scalar, &plan->stats, value_bytes, model);
}

int tc_plan_in_doubt(const tc_plan *plan)
{
  return tc_choose_in_doubt(&plan->stats);
}

const tc_kernel *tc_plan_kernel(const tc_plan *plan)
{
  return plan->kernel;
}

const char *tc_plan_why(tc_plan *plan)
{
  if (plan->kernel == NULL || choose_kernel(plan, plan->why) != TC_OK) plan->why[0] = '\0';
  return plan->why;
}

const tc_backend *tc_plan_backend(const tc_plan *plan)
{
  return plan->backend;
}
