#include "transpose.h"
#include "scalar.h"
#include <stdlib.h>

struct tc_transpose {
  const tc_backend *backend;
  tc_plan          *plan;   // of A^T
  tc_scalar         scalar; // of the values
  void             *values; // [nnz], of A^T in the order of CSR, local, scratch of a refill
  int32_t          *perm;   // [nnz], where they are in A, local; the end of the allocation that begins with `values`
  int64_t           nnz;     // -1: not built
  int32_t          *row_ptr; // of A^T, and its columns behind, local, if its rows have been asked for
  int32_t           row_group;
  tc_key            key;    // of the last refill
  tc_plan          *second; // of A^T, in another format, if that has been asked for
  int               second_failed; // packing this pattern in that format has
};

tc_status tc_transpose_create(const tc_backend *backend, const tc_plan_options *options, tc_transpose **transpose)
{
  tc_plan *plan;

  *transpose = NULL;
  TC_CALL(tc_plan_create(backend, options, &plan));
  *transpose = calloc(1, sizeof **transpose);
  if (*transpose == NULL) tc_plan_destroy(&plan);
  TC_CHECK(*transpose != NULL, TC_ERR_MEMORY, "no host memory for a transpose");
  (*transpose)->backend = backend;
  (*transpose)->plan    = plan;
  (*transpose)->nnz     = -1;
  (*transpose)->scalar  = options->scalar;
  return TC_OK;
}

static void release_arrays(tc_transpose *T)
{
  T->backend->release(T->values);
  T->backend->release(T->row_ptr);
  tc_plan_destroy(&T->second);
  T->values  = NULL;
  T->row_ptr = NULL;
  T->perm    = NULL;
  T->nnz     = -1;

  T->second_failed = 0;
}

void tc_transpose_destroy(tc_transpose **transpose)
{
  if (*transpose == NULL) return;
  tc_plan_destroy(&(*transpose)->plan);
  release_arrays(*transpose);
  free(*transpose);
  *transpose = NULL;
}

tc_plan *tc_transpose_plan(const tc_transpose *transpose)
{
  return transpose->plan;
}

/* A local pattern on the host, for formats that are packed there */
static tc_status download(const tc_transpose *T, const tc_csr_local *local, int64_t *row_ptr, int32_t *col, int32_t *narrow, tc_stream stream)
{
  TC_CALL(tc_from_backend(T->backend, T->backend->download(narrow, local->row_ptr, ((size_t)local->num_rows + 1) * sizeof *narrow, stream)));
  for (int32_t i = 0; i <= local->num_rows; ++i) row_ptr[i] = narrow[i];
  return tc_from_backend(T->backend, T->backend->download(col, local->col, (size_t)local->nnz * sizeof *col, stream));
}

static tc_status pack_on_host(const tc_transpose *T, tc_plan *plan, const tc_csr_local *local, tc_stream stream)
{
  int64_t     *row_ptr = malloc(((size_t)local->num_rows + 1) * sizeof *row_ptr);
  int32_t     *narrow  = malloc(((size_t)local->num_rows + 1) * sizeof *narrow);
  int32_t     *col     = malloc(((size_t)local->nnz + 1) * sizeof *col);
  const tc_csr pattern = {local->num_rows, local->num_cols, row_ptr, col, local->row_group, local->precision, NULL};
  tc_status    status  = row_ptr != NULL && narrow != NULL && col != NULL ? TC_OK : tc_fail(TC_ERR_MEMORY, "no host memory for a pattern of %lld entries", (long long)local->nnz);

  if (status == TC_OK) status = download(T, local, row_ptr, col, narrow, stream);
  if (status == TC_OK) status = tc_plan_build(plan, &pattern);
  free(row_ptr);
  free(narrow);
  free(col);
  TC_CALL(status);
  return tc_plan_upload(plan, stream);
}

static tc_status pack(const tc_transpose *T, tc_plan *plan, const tc_csr_local *pattern, tc_stream stream)
{
  return tc_plan_builds_local(plan) ? tc_plan_build_local(plan, pattern, stream) : pack_on_host(T, plan, pattern, stream);
}

static size_t bytes_of_rows(const tc_csr_local *A)
{
  return ((size_t)A->num_cols + 1 + (size_t)A->nnz) * sizeof(int32_t);
}

/* The pattern of A^T into such memory, and its permutation */
static tc_status transpose_rows(const tc_transpose *T, const tc_csr_local *A, void *memory, tc_csr_local *pattern, tc_stream stream)
{
  int32_t *row_ptr = memory, *col = row_ptr + A->num_cols + 1;

  *pattern = (tc_csr_local){A->num_cols, A->num_rows, A->nnz, row_ptr, col, T->row_group, A->precision, NULL};
  return tc_from_backend(T->backend, T->backend->transpose(A, row_ptr, col, T->perm, stream));
}

tc_status tc_transpose_build(tc_transpose *T, const tc_csr_local *A, int32_t row_group, int keep_rows, tc_stream stream)
{
  const tc_backend *backend = T->backend;
  const size_t      entries = (size_t)A->nnz;
  tc_csr_local      pattern;
  void             *memory;
  tc_status         status, given = TC_OK;

  release_arrays(T);
  TC_CALL(tc_from_backend(backend, backend->alloc(entries * (tc_scalar_bytes(T->scalar) + sizeof *T->perm), &memory)));
  T->values    = memory;
  T->perm      = (int32_t *)(void *)((char *)memory + entries * tc_scalar_bytes(T->scalar));
  T->nnz       = A->nnz;
  T->row_group = row_group;
  TC_CALL(tc_from_backend(backend, keep_rows ? backend->alloc(bytes_of_rows(A), &memory) : backend->take(bytes_of_rows(A), &memory, stream)));
  status = transpose_rows(T, A, memory, &pattern, stream);
  if (status == TC_OK) status = pack(T, T->plan, &pattern, stream);
  if (keep_rows && status == TC_OK) T->row_ptr = memory;
  else if (keep_rows) backend->release(memory);
  else given = tc_from_backend(backend, backend->give(memory, stream));
  return status == TC_OK ? given : status;
}

tc_status tc_transpose_refill(tc_transpose *T, const void *csr_val, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  TC_CALL(tc_from_backend(T->backend, T->backend->gather(T->nnz, T->perm, T->scalar, csr_val, T->values, stream)));
  T->key = *key;
  return tc_plan_refill(T->plan, T->values, key, verdict, stream);
}

tc_status tc_transpose_rows(tc_transpose *T, const tc_csr_local *A, tc_csr_view *rows, tc_stream stream)
{
  TC_CHECK(T->nnz == A->nnz, TC_ERR_ARG, "rows of a transpose that is not built");
  if (T->row_ptr == NULL) {
    tc_csr_local pattern;
    void        *memory;
    tc_status    status;

    TC_CALL(tc_from_backend(T->backend, T->backend->alloc(bytes_of_rows(A), &memory)));
    status = transpose_rows(T, A, memory, &pattern, stream); // the same permutation
    if (status != TC_OK) T->backend->release(memory);
    TC_CALL(status);
    T->row_ptr = memory;
  }
  *rows = (tc_csr_view){.num_rows = A->num_cols, .num_cols = A->num_rows, .nnz = A->nnz, .row_ptr = T->row_ptr, .col = T->row_ptr + A->num_cols + 1, .val = T->values};
  return TC_OK;
}

tc_status tc_transpose_pattern(tc_transpose *T, const tc_csr_local *A, tc_csr_local *pattern, const int32_t **perm, tc_stream stream)
{
  tc_csr_view rows = {.nnz = 0};

  TC_CALL(tc_transpose_rows(T, A, &rows, stream));
  *pattern = (tc_csr_local){.num_rows = rows.num_rows, .num_cols = rows.num_cols, .nnz = rows.nnz, .row_ptr = rows.row_ptr, .col = rows.col};
  *perm    = T->perm;
  return TC_OK;
}

int tc_transpose_has_rows(const tc_transpose *T)
{
  return T->row_ptr != NULL;
}

int tc_transpose_has_second(const tc_transpose *T)
{
  return T->second != NULL && tc_plan_check(T->second, &T->key) != TC_CACHE_REBUILD;
}

int tc_transpose_lacks_second(const tc_transpose *T)
{
  return T->second_failed;
}

static tc_status second(tc_transpose *T, const tc_csr_local *A, const char *format, tc_stream stream, const void **view)
{
  const tc_plan_options options = {format, TC_ARITHMETIC_AUTO, TC_PRECISION_F64, T->scalar};
  tc_csr_view           rows    = {.nnz = 0};
  tc_verdict            verdict;

  TC_CALL(tc_transpose_rows(T, A, &rows, stream));
  if (T->second == NULL) TC_CALL(tc_plan_create(T->backend, &options, &T->second));
  verdict = tc_plan_check(T->second, &T->key);
  if (verdict == TC_CACHE_REBUILD) {
    const tc_csr_local pattern = {rows.num_rows, rows.num_cols, rows.nnz, rows.row_ptr, rows.col, T->row_group, TC_PRECISION_F64, NULL};

    TC_CALL(pack(T, T->second, &pattern, stream));
  }
  if (verdict == TC_CACHE_HIT) tc_plan_hit(T->second);
  else TC_CALL(tc_plan_refill(T->second, T->values, &T->key, verdict, stream));
  *view = tc_plan_view(T->second);
  return TC_OK;
}

tc_status tc_transpose_second(tc_transpose *T, const tc_csr_local *A, const char *format, tc_stream stream, const void **view)
{
  const tc_status status = second(T, A, format, stream, view);

  if (status != TC_OK) tc_plan_destroy(&T->second); // it may have been the memory
  T->second_failed = status != TC_OK;
  return status;
}
