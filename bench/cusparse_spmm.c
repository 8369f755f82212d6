#include "cusparse_spmm.h"
#include <stdio.h>

#if TC_BENCH_CUDA
  #include "../kernels/tc_narrow.h"
  #include <cuda_runtime_api.h>
  #include <cusparse.h>
  #include <stdlib.h>

struct cusparse_spmm {
  cusparseHandle_t     handle;
  cusparseSpMatDescr_t A;
  cusparseDnMatDescr_t B, C;
  cusparseOperation_t  operation, operation_b;
  cusparseSpMMAlg_t    algorithm;
  cudaDataType         sums;
  union {
    double f64;
    float  f32;
  } alpha, beta;
  void *own_val, *own_b, *own_c;
  void *buffer;
};

  #define TRY(call) \
    do { \
      const cusparseStatus_t try_status = (call); \
      if (try_status != CUSPARSE_STATUS_SUCCESS) return try_status; \
    } while (0)
  #define TRY_CUDA(call) \
    do { \
      if ((call) != cudaSuccess) return CUSPARSE_STATUS_ALLOC_FAILED; \
    } while (0)

/* Numbers other than zero, in any type, in memory of its own */
static cusparseStatus_t fill(int64_t num, size_t size, void **numbers)
{
  TRY_CUDA(cudaMalloc(numbers, (size_t)num * size + 1));
  TRY_CUDA(cudaMemset(*numbers, 0x3f, (size_t)num * size));
  return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_up(cusparse_spmm *S, const tc_csr_local *A, const cusparse_spmm_settings *settings)
{
  static const cudaDataType      types[]      = {[TC_PRECISION_F64] = CUDA_R_64F, [TC_PRECISION_F32] = CUDA_R_32F, [TC_PRECISION_TF32] = CUDA_R_32F, [TC_PRECISION_BF16] = CUDA_R_16BF, [TC_PRECISION_F16] = CUDA_R_16F};
  static const cusparseSpMMAlg_t algorithms[] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
  const cusparseOrder_t          order        = settings->row_major ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
  const int64_t                  rows_b = settings->transpose ? A->num_rows : A->num_cols, rows_c = settings->transpose ? A->num_cols : A->num_rows, n = settings->n;
  const int                      turned = settings->transpose_b && !settings->row_major, narrow = settings->precision != TC_PRECISION_F64, own = settings->row_major || narrow;
  const cudaDataType             type = types[settings->precision];
  const size_t                   size = tc_value_bytes(settings->precision);
  size_t                         bytes;

  S->operation   = settings->transpose ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  S->operation_b = turned ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  S->algorithm   = algorithms[settings->algorithm - 1];
  S->sums        = narrow ? CUDA_R_32F : CUDA_R_64F;
  if (narrow) S->alpha.f32 = 1;
  else S->alpha.f64 = 1;
  if (narrow) TRY(fill(A->nnz, size, &S->own_val));
  if (own) TRY(fill(rows_b * n, size, &S->own_b));
  if (own) TRY(fill(rows_c * n, size, &S->own_c));
  TRY(cusparseCreate(&S->handle));
  TRY(cusparseCreateCsr(&S->A, A->num_rows, A->num_cols, A->nnz, (void *)A->row_ptr, (void *)A->col, narrow ? S->own_val : (void *)settings->val, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
  TRY(cusparseCreateDnMat(&S->B, turned ? n : rows_b, turned ? rows_b : n, settings->row_major || turned ? n : rows_b, own ? S->own_b : (void *)settings->b, type, order));
  TRY(cusparseCreateDnMat(&S->C, rows_c, n, settings->row_major ? n : rows_c, own ? S->own_c : settings->c, type, order));
  TRY(cusparseSpMM_bufferSize(S->handle, S->operation, S->operation_b, &S->alpha, S->A, S->B, &S->beta, S->C, S->sums, S->algorithm, &bytes));
  TRY_CUDA(cudaMalloc(&S->buffer, bytes > 0 ? bytes : 1));
  TRY(cusparseSpMM_preprocess(S->handle, S->operation, S->operation_b, &S->alpha, S->A, S->B, &S->beta, S->C, S->sums, S->algorithm, S->buffer));
  return CUSPARSE_STATUS_SUCCESS;
}

cusparse_spmm *cusparse_spmm_create(const tc_csr_local *A, const cusparse_spmm_settings *settings, char *why)
{
  cusparse_spmm   *S      = calloc(1, sizeof *S);
  cusparseStatus_t status = S ? set_up(S, A, settings) : CUSPARSE_STATUS_ALLOC_FAILED;

  why[0] = 0;
  if (status == CUSPARSE_STATUS_SUCCESS) return S;
  cudaGetLastError();
  snprintf(why, 128, "%s", cusparseGetErrorString(status));
  cusparse_spmm_destroy(&S);
  return NULL;
}

void cusparse_spmm_destroy(cusparse_spmm **spmm)
{
  cusparse_spmm *S = *spmm;

  *spmm = NULL;
  if (S == NULL) return;
  if (S->C) cusparseDestroyDnMat(S->C);
  if (S->B) cusparseDestroyDnMat(S->B);
  if (S->A) cusparseDestroySpMat(S->A);
  if (S->handle) cusparseDestroy(S->handle);
  cudaFree(S->buffer);
  cudaFree(S->own_val);
  cudaFree(S->own_b);
  cudaFree(S->own_c);
  free(S);
}

int cusparse_spmm_multiply(const cusparse_spmm *S)
{
  return cusparseSpMM(S->handle, S->operation, S->operation_b, &S->alpha, S->A, S->B, &S->beta, S->C, S->sums, S->algorithm, S->buffer) != CUSPARSE_STATUS_SUCCESS;
}

#else

cusparse_spmm *cusparse_spmm_create(const tc_csr_local *A, const cusparse_spmm_settings *settings, char *why)
{
  (void)A;
  (void)settings;
  snprintf(why, 128, "built without CUDA");
  return NULL;
}

void cusparse_spmm_destroy(cusparse_spmm **spmm)
{
  *spmm = NULL;
}

int cusparse_spmm_multiply(const cusparse_spmm *spmm)
{
  (void)spmm;
  return 1;
}
#endif
