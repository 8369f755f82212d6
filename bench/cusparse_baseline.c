#include "cusparse_baseline.h"
#include <stdio.h>

#if TC_BENCH_CUDA
  #include <cuda_runtime_api.h>
  #include <cusparse.h>
  #include <stdlib.h>

struct cusparse_baseline {
  cusparseHandle_t     handle;
  cusparseSpMatDescr_t A;
  cusparseDnVecDescr_t x, y;
  cusparseOperation_t  operation;
  cusparseSpMVAlg_t    algorithm;
  double               alpha, beta;
  void                *buffer;
};

  #define TRY(call) \
    do { \
      const cusparseStatus_t try_status = (call); \
      if (try_status != CUSPARSE_STATUS_SUCCESS) return try_status; \
    } while (0)

static cusparseStatus_t set_up(cusparse_baseline *B, const tc_csr_local *A, const cusparse_baseline_settings *settings)
{
  const int64_t rows = A->num_rows, cols = A->num_cols;
  size_t        bytes;

  B->operation = settings->transpose ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  B->algorithm = settings->algorithm == 1 ? CUSPARSE_SPMV_CSR_ALG1 : CUSPARSE_SPMV_CSR_ALG2;
  B->alpha     = settings->subtract ? -1 : 1;
  B->beta      = settings->add || settings->subtract ? 1 : 0;
  TRY(cusparseCreate(&B->handle));
  TRY(cusparseCreateCsr(&B->A, rows, cols, A->nnz, (void *)A->row_ptr, (void *)A->col, (void *)settings->val, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  TRY(cusparseCreateDnVec(&B->x, settings->transpose ? rows : cols, (void *)settings->x, CUDA_R_64F));
  TRY(cusparseCreateDnVec(&B->y, settings->transpose ? cols : rows, settings->y, CUDA_R_64F));
  TRY(cusparseSpMV_bufferSize(B->handle, B->operation, &B->alpha, B->A, B->x, &B->beta, B->y, CUDA_R_64F, B->algorithm, &bytes));
  if (cudaMalloc(&B->buffer, bytes > 0 ? bytes : 1) != cudaSuccess) return CUSPARSE_STATUS_ALLOC_FAILED;
  #if CUSPARSE_VERSION >= 12300 // CUDA 12.4
  TRY(cusparseSpMV_preprocess(B->handle, B->operation, &B->alpha, B->A, B->x, &B->beta, B->y, CUDA_R_64F, B->algorithm, B->buffer));
  #endif
  return CUSPARSE_STATUS_SUCCESS;
}

cusparse_baseline *cusparse_baseline_create(const tc_csr_local *A, const cusparse_baseline_settings *settings, char *why)
{
  cusparse_baseline *B      = calloc(1, sizeof *B);
  cusparseStatus_t   status = B ? set_up(B, A, settings) : CUSPARSE_STATUS_ALLOC_FAILED;

  why[0] = 0;
  if (status == CUSPARSE_STATUS_SUCCESS) return B;
  snprintf(why, 128, "%s", cusparseGetErrorString(status));
  cusparse_baseline_destroy(&B);
  return NULL;
}

void cusparse_baseline_destroy(cusparse_baseline **baseline)
{
  cusparse_baseline *B = *baseline;

  *baseline = NULL;
  if (B == NULL) return;
  if (B->y) cusparseDestroyDnVec(B->y);
  if (B->x) cusparseDestroyDnVec(B->x);
  if (B->A) cusparseDestroySpMat(B->A);
  if (B->handle) cusparseDestroy(B->handle);
  cudaFree(B->buffer);
  free(B);
}

int cusparse_baseline_multiply(const cusparse_baseline *B)
{
  return cusparseSpMV(B->handle, B->operation, &B->alpha, B->A, B->x, &B->beta, B->y, CUDA_R_64F, B->algorithm, B->buffer) != CUSPARSE_STATUS_SUCCESS;
}

#else

cusparse_baseline *cusparse_baseline_create(const tc_csr_local *A, const cusparse_baseline_settings *settings, char *why)
{
  (void)A;
  (void)settings;
  snprintf(why, 128, "built without CUDA");
  return NULL;
}

void cusparse_baseline_destroy(cusparse_baseline **baseline)
{
  *baseline = NULL;
}

int cusparse_baseline_multiply(const cusparse_baseline *baseline)
{
  (void)baseline;
  return 1;
}
#endif
