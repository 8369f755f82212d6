#include "cusparse_bsr.h"
#include "../kernels/tc_narrow.h"
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <stdio.h>
#include <stdlib.h>

struct cusparse_bsr {
  cusparseHandle_t     handle;
  cusparseSpMatDescr_t A;
  cusparseDnMatDescr_t B, C;
  float                alpha, beta;
  void                *memory[6];
  int                  num;
};

#define TRY(call) \
  do { \
    const cusparseStatus_t try_status = (call); \
    if (try_status != CUSPARSE_STATUS_SUCCESS) return try_status; \
  } while (0)

/* Device memory with a copy of `host`, or a pattern of numbers other than zero if that is NULL */
static void *local_copy(cusparse_bsr *S, const void *host, size_t bytes)
{
  void *local = NULL;

  if (cudaMalloc(&local, bytes + 1) != cudaSuccess) return NULL;
  if (host) cudaMemcpy(local, host, bytes, cudaMemcpyHostToDevice);
  else cudaMemset(local, 0x3c, bytes);
  return S->memory[S->num++] = local;
}

/* Row pointers, columns and values in blocks of `size`; returns the number of blocks, -1 without memory. Values of a block are row-major. */
static int64_t make_blocks(const tc_matrix *A, int32_t size, int32_t **row_ptr, int32_t **col, uint16_t **val)
{
  const int32_t rows = (A->num_rows + size - 1) / size, cols = (A->num_cols + size - 1) / size;
  int32_t      *place = malloc(((size_t)cols + 1) * sizeof *place);
  int64_t       num   = 0;

  *row_ptr = calloc((size_t)rows + 1, sizeof **row_ptr);
  *col     = malloc(((size_t)A->nnz + 1) * sizeof **col);
  *val     = calloc((size_t)A->nnz * 3 * (size_t)size + 1, sizeof **val); // blocks of the synthetic matrices have a third of their entries and more
  for (int32_t c = 0; place && c < cols; ++c) place[c] = -1;
  for (int32_t r = 0; place && *row_ptr && *col && *val && r < rows; ++r) {
    const int64_t first = num;

    for (int32_t i = r * size; i < A->num_rows && i < (r + 1) * size; ++i) {
      for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
        const int32_t c = A->col[e] / size;

        if (place[c] < first) (*col)[place[c] = (int32_t)num++] = c;
        (*val)[(int64_t)place[c] * size * size + i % size * size + A->col[e] % size] = tc_to_f16(A->val[e]);
      }
    }
    (*row_ptr)[r + 1] = (int32_t)num;
  }
  num = place && *row_ptr && *col && *val ? num : -1;
  free(place);
  return num;
}

static cusparseStatus_t describe(cusparse_bsr *S, const tc_matrix *A, int32_t size, int64_t num, const int32_t *row_ptr, const int32_t *col, const uint16_t *val)
{
  const int32_t rows      = (A->num_rows + size - 1) / size, cols = (A->num_cols + size - 1) / size;
  void *const   local_ptr = local_copy(S, row_ptr, ((size_t)rows + 1) * sizeof *row_ptr), *const local_col = local_copy(S, col, (size_t)num * sizeof *col), *const local_val = local_copy(S, val, (size_t)num * (size_t)(size * size) * sizeof *val);

  if (local_ptr == NULL || local_col == NULL || local_val == NULL) return CUSPARSE_STATUS_ALLOC_FAILED;
  return cusparseCreateBsr(&S->A, rows, cols, num, size, size, local_ptr, local_col, local_val, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16F, CUSPARSE_ORDER_ROW);
}

static cusparseStatus_t set_up(cusparse_bsr *S, const tc_matrix *A, int32_t size, int32_t n)
{
  const int64_t    rows = (A->num_rows + size - 1) / size * (int64_t)size, cols = (A->num_cols + size - 1) / size * (int64_t)size;
  int32_t         *row_ptr, *col;
  uint16_t        *val;
  void            *b, *c, *buffer;
  size_t           bytes;
  const int64_t    num    = make_blocks(A, size, &row_ptr, &col, &val);
  cusparseStatus_t status = num < 0 ? CUSPARSE_STATUS_ALLOC_FAILED : describe(S, A, size, num, row_ptr, col, val);

  free(row_ptr);
  free(col);
  free(val);
  TRY(status);
  S->alpha = 1;
  b        = local_copy(S, NULL, (size_t)(cols * n) * sizeof(uint16_t));
  c        = local_copy(S, NULL, (size_t)(rows * n) * sizeof(uint16_t));
  if (b == NULL || c == NULL) return CUSPARSE_STATUS_ALLOC_FAILED;
  TRY(cusparseCreate(&S->handle));
  TRY(cusparseCreateDnMat(&S->B, cols, n, n, b, CUDA_R_16F, CUSPARSE_ORDER_ROW));
  TRY(cusparseCreateDnMat(&S->C, rows, n, n, c, CUDA_R_16F, CUSPARSE_ORDER_ROW));
  TRY(cusparseSpMM_bufferSize(S->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &S->alpha, S->A, S->B, &S->beta, S->C, CUDA_R_32F, CUSPARSE_SPMM_BSR_ALG1, &bytes));
  buffer = local_copy(S, NULL, bytes);
  if (buffer == NULL) return CUSPARSE_STATUS_ALLOC_FAILED;
  return cusparseSpMM(S->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &S->alpha, S->A, S->B, &S->beta, S->C, CUDA_R_32F, CUSPARSE_SPMM_BSR_ALG1, buffer);
}

cusparse_bsr *cusparse_bsr_create(const tc_matrix *A, int32_t block, int32_t n, char *why)
{
  cusparse_bsr *S      = calloc(1, sizeof *S);
  cusparseStatus_t status = S ? set_up(S, A, block, n) : CUSPARSE_STATUS_ALLOC_FAILED;

  why[0] = 0;
  if (status == CUSPARSE_STATUS_SUCCESS && cudaDeviceSynchronize() == cudaSuccess) return S;
  cudaGetLastError();
  snprintf(why, 128, "%s", cusparseGetErrorString(status));
  cusparse_bsr_destroy(&S);
  return NULL;
}

void cusparse_bsr_destroy(cusparse_bsr **bsr)
{
  cusparse_bsr *S = *bsr;

  *bsr = NULL;
  if (S == NULL) return;
  if (S->C) cusparseDestroyDnMat(S->C);
  if (S->B) cusparseDestroyDnMat(S->B);
  if (S->A) cusparseDestroySpMat(S->A);
  if (S->handle) cusparseDestroy(S->handle);
  for (int i = 0; i < S->num; ++i) cudaFree(S->memory[i]);
  free(S);
}

int cusparse_bsr_multiply(const cusparse_bsr *S)
{
  return cusparseSpMM(S->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &S->alpha, S->A, S->B, &S->beta, S->C, CUDA_R_32F, CUSPARSE_SPMM_BSR_ALG1, S->memory[5]) != CUSPARSE_STATUS_SUCCESS;
}
