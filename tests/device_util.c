#include "device_util.h"
#include "../kernels/tc_bittcf.h"
#include "../src/plan/survey.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64 };

int device_repeats = 4;

static const char *program_name = "device program";

_Noreturn void device_die(const char *what, const char *text)
{
  fprintf(stderr, "%s: %s: %s\n", program_name, what, text);
  exit(1);
}

void device_check(const tc_backend *backend, tc_status status, const char *what)
{
  if (status != TC_OK) device_die(what, backend->last_error());
}

const tc_backend *device_open(const char *program, const char *path, int *sm)
{
  void              *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  tc_backend_cuda_fn get;
  const tc_backend  *backend;

  program_name = program;
  if (library == NULL) device_die("dlopen", dlerror());
  *(void **)&get = dlsym(library, "tc_backend_cuda");
  if (get == NULL) device_die(path, "no symbol tc_backend_cuda");
  backend = get();
  if (backend->probe(sm) == TC_OK) return backend;
  printf("skip no usable device: %s\n0 passed, 0 failed, 1 skipped\n", backend->last_error());
  return NULL;
}

double device_seconds(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *host_bytes(size_t bytes)
{
  void *pointer = calloc(bytes + 1, 1);

  if (pointer == NULL) device_die("calloc", "no host memory");
  return pointer;
}

static void *local_bytes(const tc_backend *backend, size_t bytes, const void *host)
{
  void *local;

  device_check(backend, backend->alloc(bytes, &local), "alloc");
  if (host && bytes > 0) device_check(backend, backend->upload(local, host, bytes, NULL), "upload");
  device_check(backend, backend->synchronize(NULL), "synchronize");
  return local;
}

device_array device_new(const tc_backend *backend, int64_t n, int shift, const double *host)
{
  device_array D     = {backend, NULL, NULL, n, shift};
  const size_t all   = (size_t)n + 2 * GUARD + (size_t)shift;
  double      *image = host_bytes(all * sizeof *image);

  for (size_t i = 0; i < all; ++i) image[i] = NAN;
  if (host) memcpy(image + GUARD + shift, host, (size_t)n * sizeof *host);
  D.block = local_bytes(backend, all * sizeof *image, image);
  D.local = D.block + GUARD + shift;
  free(image);
  return D;
}

void device_set(const device_array *D, const double *host)
{
  if (D->n > 0) device_check(D->backend, D->backend->upload(D->local, host, (size_t)D->n * sizeof *host, NULL), "upload");
}

int device_get(const device_array *D, double *host)
{
  const size_t all   = (size_t)D->n + 2 * GUARD + (size_t)D->shift;
  double      *image = host_bytes(all * sizeof *image);
  int          whole = 1;

  device_check(D->backend, D->backend->download(image, D->block, all * sizeof *image, NULL), "download");
  device_check(D->backend, D->backend->synchronize(NULL), "synchronize");
  for (int i = 0; i < GUARD; ++i) whole = whole && isnan(image[i]) && isnan(image[all - 1 - (size_t)i]);
  memcpy(host, image + GUARD + D->shift, (size_t)D->n * sizeof *host);
  free(image);
  return whole;
}

void device_free(device_array *D)
{
  D->backend->release(D->block);
}

/* --- matrices */

static void *keep(device_matrix *M, void *local)
{
  return M->memory[M->num++] = local;
}

static int32_t *narrow_row_ptr(const tc_matrix *A)
{
  int32_t *row_ptr = host_bytes(((size_t)A->num_rows + 1) * sizeof *row_ptr);

  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  return row_ptr;
}

static tc_csr_local csr_on_device(device_matrix *M, tc_precision precision, const tc_matrix *A, const int32_t *row_order)
{
  int32_t     *row_ptr = narrow_row_ptr(A);
  tc_csr_local local   = {A->num_rows, A->num_cols, A->nnz, NULL, NULL, 1, precision, NULL};

  local.row_ptr = keep(M, local_bytes(M->backend, ((size_t)A->num_rows + 1) * sizeof *row_ptr, row_ptr));
  local.col     = keep(M, local_bytes(M->backend, (size_t)A->nnz * sizeof *A->col, A->col));
  if (row_order) local.row_order = keep(M, local_bytes(M->backend, (size_t)A->num_rows * sizeof *row_order, row_order));
  free(row_ptr);
  return local;
}

static void pack_csr_on_host(device_matrix *M, const tc_matrix *A)
{
  int32_t    *row_ptr = narrow_row_ptr(A), *list;
  tc_csr_view rows    = M->view.csr;
  tc_survey   survey;

  rows.row_ptr = row_ptr;
  rows.col     = A->col;
  if (tc_survey_host(&rows, &survey) != TC_OK) device_die("csr", tc_last_error());
  list = survey.list ? keep(M, local_bytes(M->backend, tc_survey_list_bytes(survey.num_long, survey.num_heavy), survey.list)) : NULL;
  tc_survey_put(&survey, list, &M->view.csr);
  free(survey.list);
  free(row_ptr);
}

static void pack_csr_on_device(device_matrix *M)
{
  tc_survey survey = {.list = NULL};

  M->build_ms = INFINITY;
  for (int repeat = 0; repeat < device_repeats; ++repeat) { // the first one loads kernels
    const double begin = device_seconds();

    M->backend->release(survey.list);
    device_check(M->backend, tc_survey_now(M->backend, &M->view.csr, &survey, NULL), "survey");
    device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
    M->build_ms = fmin(M->build_ms, 1e3 * (device_seconds() - begin));
  }
  if (survey.list) keep(M, survey.list);
  tc_survey_put(&survey, survey.list, &M->view.csr);
}

static void pack_csr(device_matrix *M, const tc_matrix *A, const double *val, int on_device)
{
  const tc_csr_local local = csr_on_device(M, TC_PRECISION_F64, A, NULL);

  M->view.csr = (tc_csr_view){.num_rows = A->num_rows, .num_cols = A->num_cols, .nnz = A->nnz, .row_ptr = local.row_ptr, .col = local.col, .val = val};
  if (on_device) pack_csr_on_device(M);
  else pack_csr_on_host(M, A);
}

/* What the host built goes to the device in one piece */
static void upload_view(device_matrix *M, const tc_format *format, const void *host_view)
{
  tc_array    arrays[TC_MAX_ARRAYS];
  const int   num = format->arrays(host_view, arrays);
  size_t      bytes = 0;
  char       *local;

  for (int i = 0; i < num; ++i) bytes += (arrays[i].count * arrays[i].item_size + 255) / 256 * 256;
  local = keep(M, local_bytes(M->backend, bytes + 256, NULL));
  memcpy(M->view.bytes, host_view, format->view_size);
  for (int i = 0; i < num; ++i) {
    const size_t size = arrays[i].count * arrays[i].item_size;
    void        *from;

    memcpy(&from, (const char *)host_view + arrays[i].offset, sizeof from);
    memcpy(M->view.bytes + arrays[i].offset, &local, sizeof local);
    if (size > 0 && from && (arrays[i].role == TC_ROLE_INDEX || arrays[i].role == TC_ROLE_MAP)) device_check(M->backend, M->backend->upload(local, from, size, NULL), "upload");
    else if (size > 0) device_check(M->backend, M->backend->zero(local, size, NULL), "zero");
    local += (size + 255) / 256 * 256;
  }
  device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
}

static const tc_converter *converter_of(const tc_backend *backend, const char *format)
{
  int                 num;
  const tc_converter *converters = backend->converters(&num);

  for (int i = 0; i < num; ++i) {
    if (strcmp(converters[i].format, format) == 0) return &converters[i];
  }
  device_die(format, "no converter");
}

static double timed_refill(const device_matrix *M, const tc_converter *converter, const double *val)
{
  const double begin = device_seconds();

  device_check(M->backend, converter->refill(M->view.bytes, val, NULL), "refill");
  device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
  return 1e3 * (device_seconds() - begin);
}

static void build_on_device(device_matrix *M, const tc_converter *converter, tc_precision precision, const tc_matrix *A, const int32_t *row_order)
{
  const tc_csr_local local = csr_on_device(M, precision, A, row_order);

  M->build_ms = INFINITY;
  for (int repeat = 0; repeat < device_repeats; ++repeat) { // the first one loads kernels
    void        *slab;
    const double begin = device_seconds();

    device_check(M->backend, converter->build(&local, M->view.bytes, &slab, NULL), "build");
    device_check(M->backend, M->backend->synchronize(NULL), "synchronize");
    M->build_ms = fmin(M->build_ms, 1e3 * (device_seconds() - begin));
    if (repeat < device_repeats - 1) M->backend->release(slab);
    else keep(M, slab);
  }
}

static double *values_on_device(device_matrix *M, const tc_matrix *A)
{
  return keep(M, local_bytes(M->backend, (size_t)A->nnz * sizeof *A->val, A->val));
}

static void refill(device_matrix *M, const tc_converter *converter, const double *val)
{
  M->refill_ms = INFINITY;
  for (int repeat = 0; repeat < device_repeats; ++repeat) M->refill_ms = fmin(M->refill_ms, timed_refill(M, converter, val));
}

device_matrix device_pack_view(const tc_backend *backend, const tc_format *format, const void *view, const tc_matrix *A)
{
  device_matrix M   = {.backend = backend};
  const double *val = values_on_device(&M, A);

  upload_view(&M, format, view);
  refill(&M, converter_of(backend, format->name), val);
  return M;
}

static device_matrix pack_on_host(const tc_backend *backend, const tc_format *format, tc_precision precision, const tc_matrix *A)
{
  tc_csr        pattern = tc_matrix_pattern(A);
  void         *view    = host_bytes(TC_MAX_VIEW);
  device_matrix M;

  pattern.precision = precision;
  if (format->build(&pattern, view) != TC_OK) device_die(format->name, tc_last_error());
  if (format->arrange) format->arrange(view, TC_ARITHMETIC_MMA); // what is built on the device keeps the other order
  M = device_pack_view(backend, format, view, A);
  tc_format_destroy(format, view);
  free(view);
  return M;
}

device_matrix device_pack(const tc_backend *backend, const char *name, tc_precision precision, const tc_matrix *A, int on_device)
{
  const tc_format    *format = tc_format_find(name);
  const tc_converter *converter;
  device_matrix       M = {.backend = backend};

  if (strcmp(name, "csr") == 0) {
    pack_csr(&M, A, values_on_device(&M, A), on_device);
    return M;
  }
  if (format == NULL) device_die(name, "no such format");
  converter = converter_of(backend, name);
  if (!on_device || converter->build == NULL) return pack_on_host(backend, format, precision, A);
  return device_pack_in_order(backend, name, precision, A, NULL);
}

device_matrix device_pack_in_order(const tc_backend *backend, const char *name, tc_precision precision, const tc_matrix *A, const int32_t *row_order)
{
  const tc_converter *converter = converter_of(backend, name);
  device_matrix       M         = {.backend = backend};
  const double       *val       = values_on_device(&M, A);

  build_on_device(&M, converter, precision, A, row_order);
  refill(&M, converter, val);
  return M;
}

device_array device_scratch(const device_matrix *M, const tc_spmm_kernel *kernel, tc_spmm_args *args)
{
  const size_t       bytes   = kernel->scratch ? kernel->scratch(M->view.bytes, args) : 0;
  const device_array scratch = device_new(M->backend, (int64_t)((bytes + sizeof(double) - 1) / sizeof(double)), 0, NULL);

  args->scratch = bytes > 0 ? scratch.local : NULL;
  return scratch;
}

int64_t device_num_slots(const device_matrix *M, const char *format)
{
  return strcmp(format, "csr") == 0 ? M->view.csr.num_segments : tc_bittcf_num_slots((const tc_bittcf *)(const void *)M->view.bytes);
}

void device_collect(const device_matrix *M, const char *format)
{
  const tc_converter *converter = converter_of(M->backend, format);

  if (converter->collect) device_check(M->backend, converter->collect(M->view.bytes, NULL), "collect");
}

void device_unpack(device_matrix *M)
{
  for (int i = 0; i < M->num; ++i) M->backend->release(M->memory[i]);
}
