/*
  Products with a vector by cuSPARSE, whose order of additions is its own, without the parent type: what that does around one is spared, its factors 1 and 0 come from the host, not from
  memory of the device, and z = y - A x is one pass (docs/performance-suite.md, "cuSPARSE without the parent type").
*/
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_cusparse.cuh"
#include "tc_memory.cuh"
#include <memory>
#include <new>

namespace
{

/* One matrix, as cuSPARSE knows it, and what it has prepared for that one */
class tc_cusparse_matrix
{
public:
  explicit tc_cusparse_matrix(const tc_csr_matrix *A) :
    rows_(A->rows->num_rows), size_(A->scalar == TC_SCALAR_F64 ? sizeof(double) : sizeof(float)), type_(A->scalar == TC_SCALAR_F64 ? CUDA_R_64F : CUDA_R_32F)
  {
  }
  tc_cusparse_matrix(const tc_cusparse_matrix &)            = delete;
  tc_cusparse_matrix &operator=(const tc_cusparse_matrix &) = delete;
  ~tc_cusparse_matrix() { tc_memory_release(buffer_); } // waits, as products may be under way

  tc_status prepare(const tc_csr_matrix *A, const void *x, void *z, cudaStream_t stream)
  {
    const tc_csr_local *rows  = A->rows;
    const factor        one   = factor_of(1), none = factor_of(0);
    size_t              bytes = 0;

    TC_CALL(tc_cusparse("cusparseCreate", cusparseCreate(&handle_.handle)));
    TC_CALL(tc_cusparse("cusparseSetStream", cusparseSetStream(handle_.handle, stream)));
    TC_CALL(tc_cusparse("cusparseCreateCsr", cusparseCreateCsr(&A_.handle, rows->num_rows, rows->num_cols, rows->nnz, const_cast<int32_t *>(rows->row_ptr), const_cast<int32_t *>(rows->col), const_cast<void *>(A->val), CUSPARSE_INDEX_32I,
                                                               CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_)));
    TC_CALL(tc_cusparse("cusparseCreateDnVec", cusparseCreateDnVec(&x_.handle, rows->num_cols, const_cast<void *>(x), type_)));
    TC_CALL(tc_cusparse("cusparseCreateDnVec", cusparseCreateDnVec(&z_.handle, rows->num_rows, z, type_)));
    TC_CALL(tc_cusparse("cusparseSpMV_bufferSize", cusparseSpMV_bufferSize(handle_.handle, plain, &one, A_.handle, x_.handle, &none, z_.handle, type_, algorithm, &bytes)));
    TC_CALL(tc_memory_alloc(bytes > 0 ? bytes : 1, &buffer_));
#if CUSPARSE_VERSION >= 12300 // CUDA 12.4
    TC_CALL(tc_cusparse("cusparseSpMV_preprocess", cusparseSpMV_preprocess(handle_.handle, plain, &one, A_.handle, x_.handle, &none, z_.handle, type_, algorithm, buffer_)));
#endif
    return TC_OK;
  }

  tc_status multiply(const void *x, const void *y, void *z, int sign, cudaStream_t stream)
  {
    const factor alpha = factor_of(sign), beta = factor_of(y ? 1 : 0);

    if (y && y != z) TC_CALL(tc_cuda("a copy of a vector", cudaMemcpyAsync(z, y, rows_ * size_, cudaMemcpyDeviceToDevice, stream)));
    TC_CALL(tc_cusparse("cusparseSetStream", cusparseSetStream(handle_.handle, stream)));
    TC_CALL(tc_cusparse("cusparseDnVecSetValues", cusparseDnVecSetValues(x_.handle, const_cast<void *>(x))));
    TC_CALL(tc_cusparse("cusparseDnVecSetValues", cusparseDnVecSetValues(z_.handle, z)));
    return tc_cusparse("cusparseSpMV", cusparseSpMV(handle_.handle, plain, &alpha, A_.handle, x_.handle, &beta, z_.handle, type_, algorithm, buffer_));
  }

private:
  static constexpr auto plain     = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr auto algorithm = CUSPARSE_SPMV_CSR_ALG1;

  /* Of the type of the vectors */
  union factor {
    double f64;
    float  f32;
  };
  factor factor_of(int value) const
  {
    factor f{};

    if (type_ == CUDA_R_64F) f.f64 = value;
    else f.f32 = static_cast<float>(value);
    return f;
  }

  size_t                                              rows_, size_;
  cudaDataType                                        type_;
  tc_owned<cusparseHandle_t, cusparseDestroy>         handle_;
  tc_owned<cusparseSpMatDescr_t, cusparseDestroySpMat> A_;
  tc_owned<cusparseDnVecDescr_t, cusparseDestroyDnVec> x_, z_;
  void                                               *buffer_ = nullptr;
};

} // namespace

extern "C" tc_status tc_cusparse_prepare(const tc_csr_matrix *A, const void *x, void *z, void **kept, tc_stream stream)
{
  std::unique_ptr<tc_cusparse_matrix> matrix(new (std::nothrow) tc_cusparse_matrix(A));

  *kept = nullptr;
  TC_CHECK(matrix, TC_ERR_MEMORY, "no host memory for a matrix of cuSPARSE");
  TC_CALL(matrix->prepare(A, x, z, static_cast<cudaStream_t>(stream)));
  *kept = matrix.release();
  return TC_OK;
}

extern "C" tc_status tc_cusparse_multiply(void *kept, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "a product of cuSPARSE: a fault was asked for");
  return static_cast<tc_cusparse_matrix *>(kept)->multiply(x, y, z, sign, static_cast<cudaStream_t>(stream));
}

extern "C" void tc_cusparse_release(void *kept)
{
  delete static_cast<tc_cusparse_matrix *>(kept);
}
