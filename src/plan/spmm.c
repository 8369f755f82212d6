#include "spmm.h"
#include "plan.h"
#include "scalar.h"
#include "spmm_pattern.h"
#include "spmm_reason.h"
#include "survey.h"
#include <stdlib.h>
#include <string.h>

/* Memory that lasts from product to product and only grows */
typedef enum {
  ROOM_KERNEL, // scratch of the kernel
  ROOM_B,      // a far, narrow or transposed block on its way
  ROOM_C,
  ROOM_NARROW, // a far block in single precision
  ROOM_TURNED, // a block that was transposed
  NUM_ROOMS
} room_id;

typedef struct {
  void  *local;
  size_t bytes;
} room;

struct tc_spmm {
  const tc_backend     *backend;
  tc_spmm_options       options;
  int                   sm;
  void                 *begun; // a survey ahead of the first product, for `begun_for`
  tc_key                begun_for;
  tc_spmm_patterns      patterns;
  room                  rooms[NUM_ROOMS];
  const tc_spmm_kernel *last;
  int64_t               count;
  tc_spmm_reason        reason; // of the last choice
  char                  why[200]; // the same in words, when asked for
};

static const char of_tiles[] = "bittcf"; // the format of tiles
static const char of_rows[]  = "csr";    // that of no packing

/* Formats whose kernels multiply the structural zeros of a tile */
static const char *const with_structural_zeros[] = {of_tiles, "bcsr"};

enum { REORDERED_COLUMNS = 32 }; // from so many on rows that were reordered are multiplied in tiles

tc_status tc_spmm_create(const tc_backend *backend, const tc_spmm_options *options, tc_spmm **spmm)
{
  int sm;

  *spmm = NULL;
  TC_CALL(tc_from_backend(backend, backend->probe(&sm)));
  *spmm = calloc(1, sizeof **spmm);
  TC_CHECK(*spmm != NULL, TC_ERR_MEMORY, "no host memory for products with dense blocks");
  (*spmm)->backend = backend;
  (*spmm)->options = *options;
  (*spmm)->sm            = sm;
  (*spmm)->patterns.last = (*spmm)->patterns.pattern;
  return TC_OK;
}

static void forget_pattern(const tc_spmm *S, tc_spmm_pattern *P)
{
  S->backend->release(P->survey.list);
  *P = (tc_spmm_pattern){.longest_column = -1};
}

static void drop_survey(tc_spmm *S)
{
  if (S->begun != NULL) S->backend->survey_end(S->begun, NULL, NULL, NULL);
  S->begun = NULL;
}

void tc_spmm_destroy(tc_spmm **spmm)
{
  if (*spmm == NULL) return;
  for (int i = 0; i < TC_SPMM_PATTERNS; ++i) forget_pattern(*spmm, &(*spmm)->patterns.pattern[i]);
  drop_survey(*spmm);
  for (int r = 0; r < NUM_ROOMS; ++r) (*spmm)->backend->release((*spmm)->rooms[r].local);
  free(*spmm);
  *spmm = NULL;
}

/* At least `bytes` of that room */
static tc_status reserve(tc_spmm *S, room_id id, size_t bytes, void **local)
{
  room *R = &S->rooms[id];

  if (R->bytes < bytes) {
    S->backend->release(R->local);
    *R = (room){NULL, 0};
    TC_CALL(tc_from_backend(S->backend, S->backend->alloc(bytes, &R->local)));
    R->bytes = bytes;
  }
  *local = bytes > 0 ? R->local : NULL;
  return TC_OK;
}

int tc_spmm_has_seen(const tc_spmm *S, const tc_key *key)
{
  return tc_spmm_patterns_find(&S->patterns, key) != NULL;
}

int tc_spmm_recall(tc_spmm *S, const tc_key *key)
{
  tc_spmm_pattern *P = tc_spmm_patterns_find(&S->patterns, key);

  if (P != NULL) S->patterns.last = P;
  return P != NULL;
}

tc_status tc_spmm_look_ahead(tc_spmm *S, const tc_key *key, const tc_csr_view *rows, tc_stream stream)
{
  if (S->sm == 0 || tc_spmm_has_seen(S, key) || (S->begun != NULL && tc_spmm_same_pattern(&S->begun_for, key))) return TC_OK;
  drop_survey(S);
  TC_CALL(tc_from_backend(S->backend, S->backend->survey_begin(rows, &S->begun, stream)));
  S->begun_for = *key;
  return TC_OK;
}

tc_status tc_spmm_look(tc_spmm *S, const tc_key *key, const tc_csr_view *rows, tc_stream stream)
{
  tc_spmm_pattern *P;
  tc_status        status;

  if (tc_spmm_recall(S, key)) return TC_OK;
  S->patterns.last = P = tc_spmm_patterns_place(&S->patterns, key);
  forget_pattern(S, P);
  if (S->sm > 0) { // the host has one kernel, which needs no lists
    TC_CALL(tc_spmm_look_ahead(S, key, rows, stream));
    status   = S->backend->survey_end(S->begun, rows, &P->survey, stream);
    S->begun = NULL;
    if (status != TC_OK) forget_pattern(S, P);
    TC_CALL(tc_from_backend(S->backend, status));
  }
  P->traits = tc_spmm_traits_of(rows, &P->survey);
  P->key    = *key;
  P->seen   = 1;
  return TC_OK;
}

tc_status tc_spmm_longest_column(tc_spmm *S, const tc_csr_view *rows, int32_t *entries)
{
  tc_spmm_pattern *P = S->patterns.last;

  if (P->longest_column < 0) {
    int32_t *count = calloc((size_t)rows->num_cols + 1, sizeof *count);

    TC_CHECK(count != NULL, TC_ERR_MEMORY, "no host memory to count the entries of %d columns", rows->num_cols);
    P->longest_column = 0;
    for (int64_t e = 0; e < rows->nnz; ++e) {
      if (++count[rows->col[e]] > P->longest_column) P->longest_column = count[rows->col[e]];
    }
    free(count);
  }
  *entries = P->longest_column;
  return TC_OK;
}

void tc_spmm_list_rows(const tc_spmm *S, tc_csr_view *view)
{
  tc_survey_put(&S->patterns.last->survey, S->patterns.last->survey.list, view);
}

/* `name` NULL: the first of the format */
static const tc_spmm_kernel *find_kernel(const tc_spmm *S, const char *format, const char *name, tc_precision precision)
{
  int                   num;
  const tc_spmm_kernel *kernels = S->backend->spmm_kernels(&num);

  for (int i = 0; i < num; ++i) {
    if (strcmp(kernels[i].format, format) == 0 && (name == NULL || strcmp(kernels[i].name, name) == 0) && kernels[i].precision == precision && S->sm >= kernels[i].min_sm) return &kernels[i];
  }
  return NULL;
}

const tc_spmm_kernel *tc_spmm_find(const tc_spmm *S, const char *format)
{
  return find_kernel(S, format, NULL, TC_PRECISION_F64);
}

const tc_spmm_kernel *tc_spmm_refine(const tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, int32_t n, int b_transposed)
{
  const int32_t         turned_from = 32; // columns: with less the others, which want B turned, gain less than that costs
  int                   num;
  const tc_spmm_kernel *kernels = S->backend->spmm_kernels(&num);

  if (S->options.kernel != NULL || (b_transposed && n < turned_from)) return kernel;
  for (int i = 0; i < num; ++i) {
    if (strcmp(kernels[i].format, kernel->format) == 0 && kernels[i].precision == kernel->precision && S->sm >= kernels[i].min_sm && kernels[i].suits != NULL && kernels[i].suits(view, n)) return &kernels[i];
  }
  return kernel;
}

static int is_allowed(const tc_spmm *S, const char *format)
{
  for (size_t i = 0; S->options.exact_nonfinite && i < sizeof with_structural_zeros / sizeof with_structural_zeros[0]; ++i) {
    if (strcmp(with_structural_zeros[i], format) == 0) return 0;
  }
  return 1;
}

static const tc_spmm_kernel *find_by_rules(const tc_spmm *S, tc_spmm_rules rules, int32_t n, tc_precision precision)
{
  const tc_spmm_kernel *kernel = NULL;
  const char           *format;

  for (int rule = 0; kernel == NULL && (format = tc_spmm_next_rule(rules, &S->patterns.last->traits, n, &rule)) != NULL;) {
    if (is_allowed(S, format)) kernel = find_kernel(S, format, NULL, precision);
  }
  return kernel;
}

/*
  The kernel that is asked for; without one a choice goes by the rules. That is so, too, where there is none like that: on the host, which has few kernels, one for each format, and
  for the transpose of a block. `must_be`: elsewhere.
*/
static tc_status find_asked_for(const tc_spmm *S, tc_precision precision, int must_be, const tc_spmm_kernel **kernel)
{
  const char *format = S->options.format;

  *kernel = NULL;
  if (format == NULL) return TC_OK;
  if (is_allowed(S, format)) *kernel = find_kernel(S, format, S->sm > 0 ? S->options.kernel : NULL, precision);
  if (!must_be) return TC_OK;
  TC_CHECK(is_allowed(S, format), TC_ERR_UNSUPPORTED, "format %s multiplies structural zeros, which is excluded", format);
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel %s for dense blocks and format %s in %s on backend %s, sm_%d", S->options.kernel ? S->options.kernel : "", format, tc_precision_name(precision), S->backend->name, S->sm);
  return TC_OK;
}

/* A product with the transpose of a block is in F64 */
tc_status tc_spmm_choose(tc_spmm *S, int32_t n, int b_transposed, const tc_spmm_kernel **kernel)
{
  const tc_precision  precision = b_transposed ? TC_PRECISION_F64 : S->options.precision;
  const tc_spmm_rules rules     = b_transposed ? TC_SPMM_RULES_B_TRANSPOSED : precision == TC_PRECISION_F64 ? TC_SPMM_RULES_F64 : TC_SPMM_RULES_NARROW;

  *kernel = NULL;
  TC_CHECK(S->patterns.last->seen, TC_ERR_ARG, "choice of a kernel for a pattern nobody has looked at");
  TC_CALL(find_asked_for(S, precision, S->sm > 0 && !b_transposed, kernel));
  if (*kernel != NULL) {
    S->reason = (tc_spmm_reason){.basis = TC_SPMM_BY_REQUEST, .b_transposed = b_transposed};
    return TC_OK;
  }
  S->reason = (tc_spmm_reason){.basis = S->sm == 0 ? TC_SPMM_BY_HOST : TC_SPMM_BY_TRAITS, .n = n, .traits = S->patterns.last->traits, .b_transposed = b_transposed};
  if (S->options.reordered && n >= REORDERED_COLUMNS && is_allowed(S, of_tiles)) *kernel = find_kernel(S, of_tiles, NULL, precision);
  if (*kernel != NULL) S->reason.reordered = 1;
  else *kernel = find_by_rules(S, rules, n, precision);
  if (*kernel == NULL && precision != TC_PRECISION_F64) {
    S->reason.missing = tc_precision_name(precision);
    S->reason.exact   = S->options.exact_nonfinite;
    *kernel = find_by_rules(S, TC_SPMM_RULES_F64, n, TC_PRECISION_F64);
  }
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel for dense blocks on backend %s, sm_%d", S->backend->name, S->sm);
  return TC_OK;
}

int tc_spmm_pays(tc_spmm *S, const tc_spmm_kernel *kernel, int32_t n, int is_packed)
{
  const int     conversion = S->sm > 0 && S->options.format == NULL && kernel->precision == TC_PRECISION_F64 ? tc_spmm_conversion_find(kernel->format) : -1;
  double        cost;
  tc_spmm_wait *W;

  if (conversion < 0) return 1;
  W    = &S->patterns.last->wait[conversion];
  cost = tc_spmm_conversion_ms(conversion, &S->patterns.last->traits);
  if (!is_packed) W->missed_ms += tc_spmm_gain_ms(conversion, &S->patterns.last->traits, n);
  if (!is_packed && W->missed_ms < cost) {
    ++W->products;
    S->reason.awaited   = kernel->format;
    S->reason.cost_ms   = cost;
    S->reason.missed_ms = W->missed_ms;
    return 0;
  }
  W->missed_ms = 0;
  S->reason.straight = W->products;
  return 1;
}

static int is_among(const tc_spmm *S, const char *format, const char *const formats[], int num)
{
  for (int i = 0; i < num; ++i) {
    if (strcmp(format, formats[i]) == 0) return is_allowed(S, format);
  }
  return 0;
}

tc_status tc_spmm_choose_between(tc_spmm *S, int32_t n, const char *const formats[], int num, const tc_spmm_kernel **kernel)
{
  const char *format = S->options.format;
  const int   asked  = format != NULL && is_among(S, format, formats, num);
  int         rule   = 0;

  TC_CHECK(S->patterns.last->seen, TC_ERR_ARG, "choice of a kernel for a pattern nobody has looked at");
  S->reason = asked ? (tc_spmm_reason){.basis = TC_SPMM_BY_REQUEST} : (tc_spmm_reason){.basis = TC_SPMM_BY_TRAITS, .n = n, .traits = S->patterns.last->traits};
  while (!asked && (format = tc_spmm_next_rule(TC_SPMM_RULES_F64, &S->patterns.last->traits, n, &rule)) != NULL && !is_among(S, format, formats, num)) continue;
  *kernel = find_kernel(S, format != NULL ? format : of_rows, NULL, TC_PRECISION_F64);
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel for dense blocks and format %s on backend %s, sm_%d", format ? format : of_rows, S->backend->name, S->sm);
  return TC_OK;
}

/* Columns of a block from the host, or to it; `local` has no gaps between columns, the end of a column of `far` may be followed by what is not ours */
static tc_status copy_columns(tc_spmm *S, int upload, int64_t rows, int64_t n, void *far, int64_t ld, void *local, tc_stream stream)
{
  const int     whole = ld == rows;
  const int64_t steps = whole ? 1 : n;
  const size_t  size = tc_scalar_bytes(S->options.scalar), bytes = (size_t)rows * (size_t)(whole ? n : 1) * size;

  for (int64_t j = 0; j < steps && bytes > 0; ++j) {
    char *of_far = (char *)far + (size_t)(j * ld) * size, *of_local = (char *)local + (size_t)(j * rows) * size;

    TC_CALL(tc_from_backend(S->backend, upload ? S->backend->upload(of_local, of_far, bytes, stream) : S->backend->download(of_far, of_local, bytes, stream)));
  }
  return TC_OK;
}

/* The same for the transpose of a block, whose columns are short and many: collected here and sent in one piece, in columns of `ld` */
static tc_status upload_transposed(tc_spmm *S, int32_t rows, int32_t n, const void *far, int64_t far_ld, int64_t ld, void *local, tc_stream stream)
{
  const size_t size      = tc_scalar_bytes(S->options.scalar);
  char        *collected = calloc((size_t)rows * (size_t)ld + 1, size);
  tc_status    status;

  TC_CHECK(collected != NULL, TC_ERR_MEMORY, "no host memory for %d rows of a transposed block", rows);
  for (int64_t i = 0; i < rows; ++i) memcpy(collected + (size_t)(i * ld) * size, (const char *)far + (size_t)(i * far_ld) * size, (size_t)n * size);
  status = S->backend->upload(local, collected, (size_t)rows * (size_t)ld * size, stream);
  if (status == TC_OK) status = S->backend->synchronize(stream); // what was collected goes
  free(collected);
  return tc_from_backend(S->backend, status);
}

/* A block out of its transpose, in doubles, for kernels that do not take that */
static tc_status turn_b(tc_spmm *S, int32_t rows, tc_spmm_args *args, tc_stream stream)
{
  const int64_t ld = ((int64_t)rows + TC_TURNED_ROWS - 1) / TC_TURNED_ROWS * TC_TURNED_ROWS;
  void         *turned;

  TC_CALL(reserve(S, ROOM_TURNED, (size_t)ld * (size_t)args->n * sizeof *args->b, &turned));
  TC_CALL(tc_from_backend(S->backend, S->backend->turn(rows, args->n, args->b, args->ldb, turned, ld, stream)));
  args->b            = turned;
  args->ldb          = ld;
  args->b_transposed = 0;
  return TC_OK;
}

/* Columns first .. first + n - 1 of B where the kernel can read them, in doubles unless it takes floats */
static tc_status bring_b(tc_spmm *S, const tc_spmm_kernel *kernel, const tc_spmm_product *P, int32_t first, int32_t n, tc_spmm_args *args, tc_stream stream)
{
  const int     narrow = S->options.scalar == TC_SCALAR_F32, turns = P->b_transposed && !kernel->b_transposed;
  const int64_t rows = P->b_transposed ? n : P->rows_b, columns = P->b_transposed ? P->rows_b : n; // of the block as it is stored
  const int64_t padded = P->b_transposed ? n + n % 2 : rows;                                       // of a copy; columns of even length are read in place
  const int     in_place = narrow && kernel->b_f32 && !turns;                                     // floats stay floats, where nothing else goes until they are multiplied
  const size_t  size   = tc_scalar_bytes(S->options.scalar);
  const void   *from   = (const char *)P->b + size * (size_t)(P->b_transposed ? first : first * P->ldb);
  void         *copy;

  args->b            = from;
  args->ldb          = P->ldb;
  args->b_transposed = P->b_transposed;
  if (P->b_far) {
    TC_CALL(reserve(S, narrow && !in_place ? ROOM_NARROW : ROOM_B, (size_t)padded * (size_t)columns * size, &copy));
    if (P->b_transposed) TC_CALL(upload_transposed(S, P->rows_b, n, from, P->ldb, padded, copy, stream));
    else TC_CALL(copy_columns(S, 1, rows, n, (void *)from, P->ldb, copy, stream));
    TC_CALL(tc_from_backend(S->backend, S->backend->synchronize(stream))); // the host's array may be pinned, and change as soon as we return
    args->b   = copy;
    args->ldb = padded;
  }
  args->b_f32 = in_place;
  if (narrow && !args->b_f32) {
    TC_CALL(reserve(S, ROOM_B, (size_t)padded * (size_t)columns * sizeof *args->b, &copy));
    TC_CALL(tc_from_backend(S->backend, S->backend->widen(rows, columns, (const float *)(const void *)args->b, args->ldb, copy, padded, stream)));
    args->b   = copy;
    args->ldb = padded;
  }
  return turns ? turn_b(S, P->rows_b, args, stream) : TC_OK;
}

static tc_status multiply_columns(tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, const tc_spmm_product *P, int32_t first, int32_t n, tc_stream stream)
{
  const int    narrow = S->options.scalar == TC_SCALAR_F32;
  const size_t size = tc_scalar_bytes(S->options.scalar), elements = (size_t)P->rows_c * (size_t)n;
  void        *to = (char *)P->c + size * (size_t)(first * P->ldc), *local = to, *wide, *scratch;
  int64_t      ld = P->ldc;
  tc_spmm_args args = {.n = n, .add = P->add};

  TC_CALL(bring_b(S, kernel, P, first, n, &args, stream));
  if (P->c_far) {
    ld = P->rows_c;
    TC_CALL(reserve(S, narrow ? ROOM_NARROW : ROOM_C, elements * size, &local));
    if (P->add) TC_CALL(copy_columns(S, 1, P->rows_c, n, to, P->ldc, local, stream));
  }
  args.c   = local;
  args.ldc = ld;
  if (narrow) {
    TC_CALL(reserve(S, ROOM_C, elements * sizeof *args.c, &wide));
    if (P->add) TC_CALL(tc_from_backend(S->backend, S->backend->widen(P->rows_c, n, local, ld, wide, P->rows_c, stream)));
    args.c   = wide;
    args.ldc = P->rows_c;
  }
  TC_CALL(reserve(S, ROOM_KERNEL, kernel->scratch(view, n), &scratch));
  args.scratch = scratch;
  TC_CALL(tc_from_backend(S->backend, kernel->multiply(view, &args, stream)));
  if (narrow) TC_CALL(tc_from_backend(S->backend, S->backend->round(P->rows_c, n, args.c, args.ldc, local, ld, stream)));
  return P->c_far ? copy_columns(S, 0, P->rows_c, n, to, P->ldc, local, stream) : TC_OK;
}

tc_status tc_spmm_multiply(tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, const tc_spmm_product *product, tc_stream stream)
{
  for (int32_t first = 0; first < product->n; first += TC_SPMM_COLUMNS) {
    TC_CALL(multiply_columns(S, kernel, view, product, first, product->n - first < TC_SPMM_COLUMNS ? product->n - first : TC_SPMM_COLUMNS, stream));
  }
  S->last = kernel;
  ++S->count;
  return TC_OK;
}

const tc_spmm_kernel *tc_spmm_last(const tc_spmm *S)
{
  return S->last;
}

const char *tc_spmm_why(tc_spmm *S)
{
  tc_spmm_say(&S->reason, sizeof S->why, S->why);
  return S->why;
}

int64_t tc_spmm_count(const tc_spmm *S)
{
  return S->count;
}

size_t tc_spmm_bytes(const tc_spmm *S)
{
  size_t bytes = 0;

  for (int r = 0; r < NUM_ROOMS; ++r) bytes += S->rooms[r].bytes;
  return bytes;
}

const tc_backend *tc_spmm_backend(const tc_spmm *S)
{
  return S->backend;
}
