#include "spmm_impl.h"
#include "plan.h"
#include "scalar.h"
#include "survey.h"
#include <stdlib.h>
#include <string.h>

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
  free(P->ends);
  *P = (tc_spmm_pattern){.num_long = -1};
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

/* Counts of entries by column, to lists of the columns that have a segment and more; count[] becomes which of them a column is, or -1 */
static tc_status list_ends(tc_spmm_pattern *P, const tc_csr_view *A, int32_t count[])
{
  int32_t num_long = 0, num_ends = 0, *seen, *end_row, *end_of;

  for (int32_t c = 0; c < A->num_cols; ++c) {
    num_long += count[c] >= TC_SPMM_SEGMENT;
    num_ends += count[c] / TC_SPMM_SEGMENT;
  }
  P->ends = calloc((size_t)num_long + 2 * (size_t)num_ends + 1, sizeof *P->ends);
  seen    = calloc((size_t)num_long + 1, sizeof *seen);
  if (P->ends == NULL || seen == NULL) {
    free(P->ends);
    free(seen);
    P->ends = NULL;
    return tc_fail(TC_ERR_MEMORY, "no host memory to list %d ends of segments", num_ends);
  }
  end_row     = P->ends + num_long;
  end_of      = end_row + num_ends;
  P->num_ends = num_ends;
  num_long    = num_ends = 0;
  for (int32_t c = 0; c < A->num_cols; ++c) {
    const int is_long = count[c] >= TC_SPMM_SEGMENT;

    if (is_long) P->ends[num_long] = c;
    count[c] = is_long ? num_long++ : -1;
  }
  for (int32_t row = 0; row < A->num_rows && num_ends < P->num_ends; ++row) {
    for (int32_t e = A->row_ptr[row]; e < A->row_ptr[row + 1]; ++e) {
      const int32_t of = count[A->col[e]];

      if (of < 0 || ++seen[of] % TC_SPMM_SEGMENT != 0) continue;
      end_row[num_ends]  = row;
      end_of[num_ends++] = of;
    }
  }
  free(seen);
  P->num_long = num_long;
  return TC_OK;
}

tc_status tc_spmm_list_ends(tc_spmm *S, tc_csr_transposed_view *view)
{
  const tc_csr_view *A = &view->csr;
  tc_spmm_pattern   *P = S->patterns.last;

  if (P->num_long < 0) {
    int32_t  *count = calloc((size_t)A->num_cols + 1, sizeof *count);
    tc_status status;

    TC_CHECK(count != NULL, TC_ERR_MEMORY, "no host memory to count the entries of %d columns", A->num_cols);
    for (int64_t e = 0; e < A->nnz; ++e) ++count[A->col[e]];
    status = list_ends(P, A, count);
    free(count);
    TC_CALL(status);
  }
  view->num_long    = P->num_long;
  view->num_ends    = P->num_ends;
  view->long_column = P->ends;
  view->end_row     = P->ends + P->num_long;
  view->end_of      = view->end_row + P->num_ends;
  return TC_OK;
}

void tc_spmm_list_rows(const tc_spmm *S, tc_csr_view *view)
{
  tc_survey_put(&S->patterns.last->survey, S->patterns.last->survey.list, view);
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
  TC_CALL(reserve(S, ROOM_KERNEL, kernel->scratch(view, &args), &scratch));
  args.scratch = scratch;
  TC_CALL(tc_from_backend(S->backend, kernel->multiply(view, &args, stream)));
  if (narrow) TC_CALL(tc_from_backend(S->backend, S->backend->round(P->rows_c, n, args.c, args.ldc, local, ld, stream)));
  return P->c_far ? copy_columns(S, 0, P->rows_c, n, to, P->ldc, local, stream) : TC_OK;
}

tc_status tc_spmm_multiply(tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, const tc_spmm_product *product, tc_stream stream)
{
  for (int64_t first = 0; first < product->n; first += TC_SPMM_COLUMNS) {
    TC_CALL(multiply_columns(S, kernel, view, product, (int32_t)first, product->n - first < TC_SPMM_COLUMNS ? (int32_t)(product->n - first) : TC_SPMM_COLUMNS, stream));
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
