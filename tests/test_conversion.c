/*
  Conversion on the device without PETSc: test_conversion [-small|-few] [-format name] [-bench generator:size,file,...] libaijtccusparse_cuda.so
  What the converters of the backend's table pack and refill, on every test matrix, must be byte for byte what the host makes of it: arrays, kinds, values in either order, also when values change from kind
  to kind, and after every failure. -small leaves out what takes a memory checker too long. -bench takes times instead. Exit code 77: no usable device.
*/
#include "../kernels/tc_hybrid.h"
#include "conversion_bench.h"
#include "device_cases.h"
#include "value_kinds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAILURES = 100 };

static int          passed, failed, small_only, pattern_only;
static tc_precision precision; // of what is packed

static void die(const char *what, const char *text)
{
  fprintf(stderr, "test_conversion: %s: %s\n", what, text);
  exit(1);
}

static const char *const precision_names[] = {[TC_PRECISION_F64] = "fp64", [TC_PRECISION_F32] = "fp32", [TC_PRECISION_TF32] = "tf32", [TC_PRECISION_BF16] = "bf16", [TC_PRECISION_F16] = "fp16"};

static void fact(int so, const char *format, const char *name, int32_t row_group, const char *what, const char *detail)
{
  if (so) ++passed;
  else ++failed;
  if (!so || !small_only) printf("%s %s of %s, row group %d, %s: %s%s%s\n", so ? "ok  " : "FAIL", format, name, row_group, precision_names[precision], what, *detail ? ": " : "", detail);
}

static void *new_bytes(size_t bytes)
{
  void *pointer = calloc(bytes + 1, 1);

  if (pointer == NULL) die("calloc", "no host memory");
  return pointer;
}

/* --- a matrix in the backend's memory */

typedef struct {
  const tc_backend *backend;
  tc_csr_local      pattern;
  void             *row_ptr, *col, *val, *row_order;
} local_matrix;

static void check(const tc_backend *backend, tc_status status, const char *what)
{
  if (status != TC_OK) die(what, backend->last_error());
}

static void *local_copy(const tc_backend *backend, const void *host, size_t bytes)
{
  void *local;

  check(backend, backend->alloc(bytes, &local), "alloc");
  if (bytes > 0) check(backend, backend->upload(local, host, bytes, NULL), "upload");
  check(backend, backend->synchronize(NULL), "synchronize");
  return local;
}

/* Where rows come in groups they also come in a random order: each format takes what it knows of. Else NULL. */
static int32_t *new_order(const tc_matrix *A, int32_t row_group)
{
  int32_t *order = row_group > 1 ? new_bytes((size_t)A->num_rows * sizeof *order) : NULL;

  if (order) tc_random_permutation(A->num_rows, 7, order);
  return order;
}

static local_matrix local_new(const tc_backend *backend, const tc_matrix *A, int32_t row_group)
{
  local_matrix L       = {.backend = backend};
  int32_t     *row_ptr = new_bytes(((size_t)A->num_rows + 1) * sizeof *row_ptr), *order = new_order(A, row_group);

  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  L.row_ptr = local_copy(backend, row_ptr, ((size_t)A->num_rows + 1) * sizeof *row_ptr);
  L.col     = local_copy(backend, A->col, (size_t)A->nnz * sizeof *A->col);
  L.val     = local_copy(backend, A->val, (size_t)A->nnz * sizeof *A->val);
  if (order) L.row_order = local_copy(backend, order, (size_t)A->num_rows * sizeof *order);
  L.pattern = (tc_csr_local){A->num_rows, A->num_cols, A->nnz, L.row_ptr, L.col, row_group, precision, L.row_order};
  free(row_ptr);
  free(order);
  return L;
}

static void local_free(local_matrix *L)
{
  L->backend->release(L->row_ptr);
  L->backend->release(L->col);
  L->backend->release(L->val);
  L->backend->release(L->row_order);
}

/* --- views */

typedef union {
  max_align_t align;
  char        bytes[TC_MAX_VIEW];
} any_view;

static void *get_array(const any_view *view, const tc_array *array)
{
  void *pointer;

  memcpy(&pointer, view->bytes + array->offset, sizeof pointer);
  return pointer;
}

static void set_array(any_view *view, const tc_array *array, void *pointer)
{
  memcpy(view->bytes + array->offset, &pointer, sizeof pointer);
}

/* The host's view of A: what its builder leaves to others is zero */
static void host_view(const tc_format *format, const tc_matrix *A, int32_t row_group, any_view *view)
{
  tc_csr   pattern = tc_matrix_pattern(A);
  int32_t *order   = new_order(A, row_group);
  tc_array arrays[TC_MAX_ARRAYS];
  int      num;

  pattern.row_group = row_group;
  pattern.precision = precision;
  pattern.row_order = order;
  if (format->build(&pattern, view) != TC_OK) die("host build", tc_last_error());
  free(order);
  num = format->arrays(view, arrays);
  for (int i = 0; i < num; ++i) {
    if (arrays[i].role == TC_ROLE_VALUE || arrays[i].role == TC_ROLE_SCRATCH) set_array(view, &arrays[i], new_bytes(arrays[i].count * arrays[i].item_size));
  }
}

/* The first array of one of these roles that is not the same in both views, "" if there is none */
static const char *first_different(const tc_backend *backend, const tc_format *format, const any_view *host, const any_view *local, unsigned roles)
{
  static char name[64];
  any_view    a = *host, b = *local;
  tc_array    ours[TC_MAX_ARRAYS], theirs[TC_MAX_ARRAYS];
  const int   num = format->arrays(host, ours);

  if (format->arrays(local, theirs) != num) return "number of arrays";
  for (int i = 0; i < num; ++i) {
    const size_t bytes = ours[i].count * ours[i].item_size;
    char        *fetched, *expected = get_array(host, &ours[i]);
    size_t       at = 0;

    set_array(&a, &ours[i], NULL);
    set_array(&b, &ours[i], NULL);
    if (theirs[i].count != ours[i].count) return snprintf(name, sizeof name, "%s: %zu items, expected %zu", ours[i].name, theirs[i].count, ours[i].count), name;
    if (bytes == 0 || !(roles >> ours[i].role & 1)) continue;
    fetched = new_bytes(bytes);
    check(backend, backend->download(fetched, get_array(local, &theirs[i]), bytes, NULL), "download");
    check(backend, backend->synchronize(NULL), "synchronize");
    while (at < bytes && fetched[at] == expected[at]) ++at;
    free(fetched);
    if (at < bytes) return snprintf(name, sizeof name, "%s: byte %zu of %zu", ours[i].name, at, bytes), name;
  }
  return memcmp(&a, &b, format->view_size) == 0 ? "" : "counts";
}

static void zero_values(const tc_backend *backend, const tc_format *format, const any_view *local)
{
  tc_array  arrays[TC_MAX_ARRAYS];
  const int num = format->arrays(local, arrays);

  for (int i = 0; i < num; ++i) {
    if (arrays[i].role == TC_ROLE_VALUE && arrays[i].count > 0) check(backend, backend->zero(get_array(local, &arrays[i]), arrays[i].count * arrays[i].item_size, NULL), "zero");
  }
}

enum { INDEX = 1 << TC_ROLE_INDEX | 1 << TC_ROLE_MAP, VALUE = 1 << TC_ROLE_VALUE, SCRATCH = 1 << TC_ROLE_SCRATCH };

static const tc_converter *host_converter(const char *format)
{
  int                 num;
  const tc_converter *converters = tc_backend_host()->converters(&num);

  for (int i = 0; i < num; ++i) {
    if (strcmp(converters[i].format, format) == 0) return &converters[i];
  }
  die(format, "the host has no converter");
  return NULL;
}

/*
  From kind to kind and back, and from codes to the same or other codes; what a narrow kind does not use must stay as it was. `remember`: refills know of those before, on the host as on the device, so that some of
  them do not search for values that repeat.
*/
static void check_refills(const tc_converter *converter, const tc_format *format, const char *name, const tc_matrix *A, local_matrix *L, any_view host, any_view local, int remember)
{
  static const int    whole[] = {NORMAL, INTEGERS, TRIPLES, SIGNED_ZEROS, INTEGERS, FLOATS, FEW_OTHERS, WIDE, EXACTLY_FULL, HALF_OF_THEM, ONE_TOO_MANY, EXTREME, SPECIAL, INTEGERS, NORMAL}, brief[] = {INTEGERS, FLOATS, WIDE, NORMAL};
  const int          *sequence = small_only || remember ? brief : whole;
  const size_t        steps    = !small_only && !remember ? sizeof whole / sizeof whole[0] : small_only && remember ? 3 : sizeof brief / sizeof brief[0];
  const tc_backend   *backends[] = {tc_backend_host(), L->backend};
  const tc_converter *reference  = host_converter(format->name);
  double             *val        = new_bytes((size_t)A->nnz * sizeof *val);
  any_view            seen[2]    = {host, local}, large = local; // with the same memory
  void               *shared[2]  = {NULL, NULL};
  const char         *different;

  if (strcmp(format->name, "hybrid") == 0) ((tc_hybrid *)(void *)&large)->index_units = INT32_MAX; // as if products moved more than the L2 cache holds, which decides how values are read
  for (int i = 0; i < 2 && remember; ++i) {
    check(backends[i], backends[i]->share(&shared[i]), "shared memory");
    format->remember(i ? &local : &host, shared[i]);
  }
  for (size_t s = 0; s < steps; ++s) {
    for (int64_t i = 0; i < A->nnz; ++i) val[i] = value_of(sequence[s], i, A->val[i]);
    if (A->nnz > 0) check(L->backend, L->backend->upload(L->val, val, (size_t)A->nnz * sizeof *val, NULL), "upload");
    if (reference->refill(&host, val, NULL) != TC_OK) die("host refill", tc_last_error());
    if (remember && s == 0 && converter->search) check(L->backend, converter->search(&local, L->val, NULL), "search");
    check(L->backend, converter->refill(s % 2 == 0 && !remember ? &large : &local, L->val, NULL), "refill");
    for (int collected = 0; collected <= (converter->collect != NULL); ++collected) {
      if (collected && reference->collect(&host, NULL) != TC_OK) die("host collection", tc_last_error());
      if (collected) check(L->backend, converter->collect(&local, NULL), "collect");
      different = first_different(L->backend, format, &seen[0], &seen[1], small_only ? VALUE : INDEX | VALUE | SCRATCH);
      fact(*different == 0, format->name, name, L->pattern.row_group, values_names[sequence[s]], *different || !collected ? different : "collected");
    }
    if (remember && A->nnz > 0) fact(memcmp(shared[0], shared[1], sizeof(tc_hybrid_repeats)) == 0, format->name, name, L->pattern.row_group, values_names[sequence[s]], "what is remembered");
  }
  check(L->backend, L->backend->synchronize(NULL), "synchronize");
  for (int i = 0; i < 2; ++i) backends[i]->unshare(shared[i]);
  free(val);
}

static void check_conversion(const tc_backend *backend, const tc_converter *converter, const char *name, const tc_matrix *A, int32_t row_group)
{
  const tc_format *format = tc_format_find(converter->format);
  local_matrix     L      = local_new(backend, A, row_group);
  any_view         host, local;
  void            *slab;
  const char      *different;

  host_view(format, A, row_group, &host);
  check(backend, converter->build(&L.pattern, &local, &slab, NULL), name);
  different = first_different(backend, format, &host, &local, INDEX | SCRATCH);
  fact(*different == 0, format->name, name, row_group, "packed as on the host", different);
  zero_values(backend, format, &local);
  for (int i = 0; format->arrange && row_group > 1 && i < 2; ++i) format->arrange(i ? &local : &host, TC_ARITHMETIC_MMA);
  for (int remember = 0; *different == 0 && !pattern_only && remember <= (format->remember != NULL && (!small_only || precision == format->widest)); ++remember) check_refills(converter, format, name, A, &L, host, local, remember);
  backend->release(slab);
  tc_format_destroy(format, &host);
  local_free(&L);
}

/* z = A x by the host */
static void host_product(const tc_plan_options *options, const tc_matrix *A, const double *x, double *z)
{
  const tc_csr pattern = tc_matrix_pattern(A);
  const tc_key key     = {.id = 1, .pattern = 1, .state = 1, .nnz = A->nnz};
  tc_plan     *plan;

  if (tc_plan_create(tc_backend_host(), options, &plan) != TC_OK || tc_plan_build(plan, &pattern) != TC_OK || tc_plan_upload(plan, NULL) != TC_OK || tc_plan_refill(plan, A->val, &key, TC_CACHE_REBUILD, NULL) != TC_OK ||
      tc_plan_spmv(plan, x, NULL, z, 1, NULL) != TC_OK)
    die("host product", tc_last_error());
  tc_plan_destroy(&plan);
}

/* A product with what was packed there */
static void check_plan(const tc_backend *backend, const tc_converter *converter, const char *name, const tc_matrix *A)
{
  const tc_plan_options options = {converter->format, TC_ARITHMETIC_AUTO, precision, TC_SCALAR_F64};
  const tc_key          key     = {.id = 1, .pattern = 1, .state = 1, .nnz = A->nnz};
  const size_t          m = (size_t)A->num_rows, n = (size_t)A->num_cols;
  local_matrix          L = local_new(backend, A, 1);
  double               *x = new_bytes(n * sizeof *x), *z = new_bytes(m * sizeof *z), *expected = new_bytes(m * sizeof *z);
  void                 *local_x, *local_z = local_copy(backend, z, m * sizeof *z);
  tc_plan              *plan;
  int                   good;

  tc_random_normal(A->num_cols, 3, x);
  local_x = local_copy(backend, x, n * sizeof *x);
  if (precision == TC_PRECISION_F64) tc_canonical_spmv(A, x, NULL, expected);
  else host_product(&options, A, x, expected);
  if (tc_plan_create(backend, &options, &plan) != TC_OK) die("tc_plan_create", tc_last_error());
  good = tc_plan_build_local(plan, &L.pattern, NULL) == TC_OK && tc_plan_refill(plan, L.val, &key, TC_CACHE_REBUILD, NULL) == TC_OK;
  good = good && tc_plan_demote(plan, NULL) == TC_OK && tc_plan_spmv(plan, local_x, NULL, local_z, 1, NULL) == TC_OK; // demoted, the arrays are what they were
  if (good && m > 0) check(backend, backend->download(z, local_z, m * sizeof *z, NULL), "download");
  check(backend, backend->synchronize(NULL), "synchronize");
  fact(good && tc_first_different(A->num_rows, z, expected) == A->num_rows, converter->format, name, 1, "z = Ax", good ? "" : tc_last_error());
  tc_plan_unpack(plan, NULL);
  tc_plan_destroy(&plan);
  backend->release(local_x);
  backend->release(local_z);
  local_free(&L);
  free(x);
  free(z);
  free(expected);
}

/* Every allocation and launch fails once: nothing is left behind by a build, the next one is as good as any; a refill that failed can be repeated */
static void check_faults(const tc_backend *backend, const tc_converter *converter)
{
  static const tc_fault_point points[] = {TC_FAULT_ALLOC, TC_FAULT_LAUNCH};
  const tc_format            *format   = tc_format_find(converter->format);
  tc_matrix                   A;

  if (tc_generate(tc_generator_find("limits"), 65, 1, &A) != TC_OK) die("tc_generate", tc_last_error());
  for (int p = 0; p < 2; ++p) {
    local_matrix L = local_new(backend, &A, 1);
    int          failures = 0, clean = 1;
    tc_status    status;
    any_view     host, local;
    void        *slab;
    const char  *different;

    host_view(format, &A, 1, &host);
    do {
      backend->fault_arm(points[p], ++failures);
      status = converter->build(&L.pattern, &local, &slab, NULL);
      backend->fault_arm(points[p], 0);
      clean = clean && (status == TC_OK) == (slab != NULL);
    } while (status != TC_OK && failures < MAX_FAILURES);
    fact(status == TC_OK && failures > 1 && clean, format->name, "limits", 1, "no build survives a fault", "");
    zero_values(backend, format, &local);
    failures = 0;
    do {
      backend->fault_arm(points[p], ++failures);
      status = converter->refill(&local, L.val, NULL);
      backend->fault_arm(points[p], 0);
    } while (status != TC_OK && failures < MAX_FAILURES);
    fact(status == TC_OK && (failures > 1) == (points[p] == TC_FAULT_LAUNCH), format->name, "limits", 1, "a refill launches and does not allocate", "");
    host_converter(format->name)->refill(&host, A.val, NULL);
    different = first_different(backend, format, &host, &local, INDEX | VALUE | SCRATCH);
    fact(*different == 0, format->name, "limits", 1, "all as it must be after failures", different);
    backend->release(slab);
    tc_format_destroy(format, &host);
    local_free(&L);
  }
  tc_matrix_free(&A);
}

/* The same through a plan */
static void check_plan_faults(const tc_backend *backend, const tc_converter *converter)
{
  static const tc_fault_point points[] = {TC_FAULT_ALLOC, TC_FAULT_LAUNCH};
  const tc_plan_options       options  = {converter->format, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, TC_SCALAR_F64};
  tc_matrix                   A;

  if (tc_generate(tc_generator_find("limits"), 65, 1, &A) != TC_OK) die("tc_generate", tc_last_error());
  for (int p = 0; p < 2; ++p) {
    const tc_key key      = {.id = 1, .pattern = 1, .state = 1, .nnz = A.nnz};
    local_matrix L        = local_new(backend, &A, 1);
    int          failures = 0;
    tc_status    status;
    tc_plan     *plan;

    if (tc_plan_create(backend, &options, &plan) != TC_OK) die("tc_plan_create", tc_last_error());
    do {
      backend->fault_arm(points[p], ++failures);
      status = tc_plan_build_local(plan, &L.pattern, NULL);
      if (status == TC_OK) status = tc_plan_refill(plan, L.val, &key, TC_CACHE_REBUILD, NULL);
      backend->fault_arm(points[p], 0);
    } while (status != TC_OK && failures < MAX_FAILURES);
    fact(status == TC_OK && failures > 1 && tc_plan_check(plan, &key) == TC_CACHE_HIT, converter->format, "limits", 1, "a plan is usable after every failure", "");
    tc_plan_destroy(&plan);
    local_free(&L);
  }
  tc_matrix_free(&A);
}

/* Columns that need 32 bits, in slices and in segments; and in clusters, whose columns lie too far apart for a set of bits */
static void check_far_columns(const tc_backend *backend, const tc_converter *converter, int bands)
{
  enum { MOST_ROWS = 301, APART = 7000003, BAND = 10, BANDS_APART = 300007 };
  static const int lengths[] = {300, 3, 255, 1, 2, 31};
  const int        rows      = bands ? MOST_ROWS : 67;
  int              length[MOST_ROWS];
  tc_matrix        A;
  int64_t          nnz = 0;

  for (int i = 0; i < rows; ++i) nnz += length[i] = bands ? 2 * BAND : lengths[i % 6];
  if (tc_matrix_create(rows, INT32_MAX, nnz, &A) != TC_OK) die("tc_matrix_create", tc_last_error());
  for (int i = 0; i < rows; ++i) {
    A.row_ptr[i + 1] = A.row_ptr[i] + length[i];
    for (int k = 0; k < length[i]; ++k) A.col[A.row_ptr[i] + k] = bands ? i + k % BAND + k / BAND * BANDS_APART : k * APART + (int32_t)((int64_t)i * i * 99991 % APART);
  }
  tc_random_normal(nnz, 17, A.val);
  check_conversion(backend, converter, bands ? "two bands far apart" : "columns far apart", &A, 1);
  tc_matrix_free(&A);
}

static void check_matrix(const tc_backend *backend, const tc_converter *converter, const char *name, int32_t size, int seed)
{
  const tc_format *format = tc_format_find(converter->format);
  tc_matrix        A;

  if (tc_generate(tc_generator_find(name), size, (uint64_t)seed, &A) != TC_OK) die(name, tc_last_error());
  tc_random_normal(A.nnz, 17, A.val);
  for (precision = format->widest; precision <= (pattern_only ? format->widest : format->precision); ++precision) {
    check_conversion(backend, converter, name, &A, 1);
    if (precision == format->widest && !small_only) check_conversion(backend, converter, name, &A, 3);
    if (format->spmv_host && (precision == format->widest || !small_only)) check_plan(backend, converter, name, &A);
  }
  precision = format->widest;
  tc_matrix_free(&A);
}

static void check_converter(const tc_backend *backend, const tc_converter *converter)
{
  /* several windows, a sample that leaves values out, columns far apart, all in numbers that a test can wait for */
  static const struct {
    const char *name;
    int32_t     size;
  } larger[] = {{"stencil27", 18}, {"elasticity", 9}, {"stencil27_window", 20}, {"circuit", 30011}, {"webbase", 20011}, {"rmat", 14}, {"long1153", 97},
                {"ragged", 5003}, {"skewed", 5003}, {"short", 50021}, {"limits", 301}, {"dense_row", 200003}, {"one_row", 100003}, {"all_empty", 3000}},
    many[] = {{"short", 1100003}, {"short", 700001}, {"stencil27", 52}}; // windows, and narrow and wide pieces, more than a block scans at a time
  device_case C;

  precision = tc_format_find(converter->format)->widest;
  for (int i = 0; device_case_at(small_only, i, &C); ++i) {
    for (int seed = 1; seed <= (small_only ? 1 : 3); ++seed) check_matrix(backend, converter, C.generator->name, C.size, seed);
  }
  for (size_t i = 0; !small_only && i < sizeof larger / sizeof larger[0]; ++i) check_matrix(backend, converter, larger[i].name, larger[i].size, 1);
  pattern_only = 1;
  for (size_t i = 0; !small_only && i < sizeof many / sizeof many[0]; ++i) check_matrix(backend, converter, many[i].name, many[i].size, 1);
  pattern_only = 0;
  for (int bands = 0; bands < 2; ++bands) check_far_columns(backend, converter, bands);
  check_faults(backend, converter);
  if (tc_format_find(converter->format)->spmv_host) check_plan_faults(backend, converter);
}

int main(int argc, char **args)
{
  const char         *path = NULL, *bench = NULL, *only = NULL;
  const tc_backend   *backend;
  const tc_converter *converters;
  int                 sm, num;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0 || strcmp(args[i], "-few") == 0) small_only = 1;
    else if (strcmp(args[i], "-format") == 0 && i + 1 < argc) only = args[++i];
    else if (strcmp(args[i], "-bench") == 0 && i + 1 < argc) bench = args[++i];
    else path = args[i];
  }
  if (path == NULL) die("usage", "test_conversion [-small|-few] [-format name] [-bench generator:size,file,...] libaijtccusparse_cuda.so");
  backend = device_open("test_conversion", path, &sm);
  if (backend == NULL) return DEVICE_SKIPPED;
  if (bench) return conversion_bench(backend, bench);
  converters = backend->converters(&num);
  for (int c = 0; c < num; ++c) {
    if (converters[c].build && (only == NULL || strcmp(converters[c].format, only) == 0)) check_converter(backend, &converters[c]);
  }
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  if (passed + failed == 0) die("-format", "nothing is packed on this device by that name");
  return failed > 0;
}
