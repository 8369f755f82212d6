#include "matrix.h"
#include <stdlib.h>
#include <string.h>

tc_status tc_matrix_create(int32_t num_rows, int32_t num_cols, int64_t nnz, tc_matrix *A)
{
  memset(A, 0, sizeof *A);
  TC_CHECK(num_rows >= 0 && num_cols >= 0 && nnz >= 0, TC_ERR_ARG, "a matrix of %d x %d with %lld entries", num_rows, num_cols, (long long)nnz);
  A->num_rows = num_rows;
  A->num_cols = num_cols;
  A->nnz      = nnz;
  A->row_ptr  = calloc((size_t)num_rows + 1, sizeof *A->row_ptr);
  A->col      = malloc((size_t)(nnz > 0 ? nnz : 1) * sizeof *A->col);
  A->val      = malloc((size_t)(nnz > 0 ? nnz : 1) * sizeof *A->val);
  if (A->row_ptr == NULL || A->col == NULL || A->val == NULL) {
    tc_matrix_free(A);
    return tc_fail(TC_ERR_MEMORY, "no host memory for a matrix of %d rows and %lld entries", num_rows, (long long)nnz);
  }
  return TC_OK;
}

void tc_matrix_free(tc_matrix *A)
{
  free(A->row_ptr);
  free(A->col);
  free(A->val);
  memset(A, 0, sizeof *A);
}

/* order[] = the triplets `from` (NULL: 0, 1, ...) sorted stably by key[]; start has num_keys + 1 entries of scratch */
static void counting_sort(int64_t nnz, int32_t num_keys, const int32_t *key, const int64_t *from, int64_t *start, int64_t *order)
{
  memset(start, 0, ((size_t)num_keys + 1) * sizeof *start);
  for (int64_t i = 0; i < nnz; ++i) ++start[key[i] + 1];
  for (int32_t k = 0; k < num_keys; ++k) start[k + 1] += start[k];
  for (int64_t i = 0; i < nnz; ++i) {
    const int64_t triplet = from ? from[i] : i;

    order[start[key[triplet]]++] = triplet;
  }
}

/* Sorted triplets to rows; equal places are added up */
static void compress(int64_t nnz, const int64_t *order, const int32_t *row, const int32_t *col, const double *val, tc_matrix *A)
{
  int32_t last_row = -1, last_col = -1;
  int64_t used = 0;

  for (int64_t i = 0; i < nnz; ++i) {
    const int64_t t = order[i];

    if (row[t] == last_row && col[t] == last_col) A->val[used - 1] += val[t];
    else {
      A->col[used]   = col[t];
      A->val[used++] = val[t];
      ++A->row_ptr[row[t] + 1];
      last_row = row[t];
      last_col = col[t];
    }
  }
  for (int32_t i = 0; i < A->num_rows; ++i) A->row_ptr[i + 1] += A->row_ptr[i];
  A->nnz = used;
}

tc_status tc_matrix_from_triplets(int32_t num_rows, int32_t num_cols, int64_t nnz, const int32_t *row, const int32_t *col, const double *val, tc_matrix *A)
{
  const size_t num_keys = (size_t)(num_rows > num_cols ? num_rows : num_cols), num = (size_t)(nnz > 0 ? nnz : 1);
  int64_t     *start = malloc((num_keys + 1) * sizeof *start), *by_col = malloc(num * sizeof *by_col), *order = malloc(num * sizeof *order);
  tc_status    status = tc_matrix_create(num_rows, num_cols, nnz, A);

  if (status == TC_OK && (start == NULL || by_col == NULL || order == NULL)) {
    tc_matrix_free(A);
    status = tc_fail(TC_ERR_MEMORY, "no host memory to sort %lld entries", (long long)nnz);
  }
  if (status == TC_OK) {
    counting_sort(nnz, num_cols, col, NULL, start, by_col);
    counting_sort(nnz, num_rows, row, by_col, start, order);
    compress(nnz, order, row, col, val, A);
  }
  free(start);
  free(by_col);
  free(order);
  return status;
}

tc_status tc_matrix_transpose(const tc_matrix *A, tc_matrix *T)
{
  TC_CALL(tc_matrix_create(A->num_cols, A->num_rows, A->nnz, T));
  for (int64_t e = 0; e < A->nnz; ++e) ++T->row_ptr[A->col[e]];
  for (int64_t j = 0, start = 0; j <= A->num_cols; ++j) { // row_ptr[j] = where row j of T is written next
    const int64_t length = T->row_ptr[j];

    T->row_ptr[j] = start;
    start += length;
  }
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const int64_t to = T->row_ptr[A->col[e]]++;

      T->col[to] = i;
      T->val[to] = A->val[e];
    }
  }
  memmove(T->row_ptr + 1, T->row_ptr, (size_t)A->num_cols * sizeof *T->row_ptr);
  T->row_ptr[0] = 0;
  return TC_OK;
}

tc_csr tc_matrix_pattern(const tc_matrix *A)
{
  return (tc_csr){A->num_rows, A->num_cols, A->row_ptr, A->col};
}

int64_t tc_matrix_longest_row(const tc_matrix *A)
{
  int64_t longest = 0;

  for (int32_t i = 0; i < A->num_rows; ++i) {
    if (A->row_ptr[i + 1] - A->row_ptr[i] > longest) longest = A->row_ptr[i + 1] - A->row_ptr[i];
  }
  return longest;
}
