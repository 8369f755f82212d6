/*
  Products with a vector by cuSPARSE, whose order of additions is its own, without the parent type: what that does around one is spared, and factors come from the host, not from memory of
  the device (docs/performance-suite.md, "cuSPARSE without the parent type").
*/
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_cusparse.cuh"
#include "tc_memory.cuh"
#include <memory>
#include <new>

constexpr int tc_add_threads = 256, tc_add_together = 4; // elements of a thread that are under way together

/*
  tc_add_vector_kernel - z = y + z

  Work:   a block for each tc_add_threads * tc_add_together elements
  Lanes:  neighbouring elements
  Arrays: y, z [n], of doubles or floats, device, not the same
  Launch: tc_add_threads per block, no shared memory.  Needs: sm_70
*/
template <typename V>
static __global__ void __launch_bounds__(tc_add_threads) tc_add_vector_kernel(int32_t n, const V *__restrict__ y, V *__restrict__ z)
{
  const int64_t first = static_cast<int64_t>(blockIdx.x) * tc_add_threads * tc_add_together + threadIdx.x;
  V             sum[tc_add_together];

#pragma unroll
  for (int i = 0; i < tc_add_together; ++i) {
    const int64_t at = first + i * tc_add_threads;

    sum[i] = at < n ? y[at] + z[at] : V(0);
  }
#pragma unroll
  for (int i = 0; i < tc_add_together; ++i) {
    const int64_t at = first + i * tc_add_threads;

    if (at < n) z[at] = sum[i];
  }
}

template <typename V>
static tc_status add_vector(int32_t n, const void *y, void *z, cudaStream_t stream)
{
  constexpr int of_block = tc_add_threads * tc_add_together;

  return tc_launch("tc_add_vector", tc_add_vector_kernel<V>, (n + static_cast<int64_t>(of_block) - 1) / of_block, tc_add_threads, stream, n, static_cast<const V *>(y), static_cast<V *>(z));
}

namespace
{

/* One matrix, as cuSPARSE knows it, and what it has prepared for that one */
class tc_cusparse_matrix
{
public:
  explicit tc_cusparse_matrix(const tc_csr_matrix *A) :
    rows_(A->rows->num_rows), type_(A->scalar == TC_SCALAR_F64 ? CUDA_R_64F : CUDA_R_32F)
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

  /* Where y is not z it is added afterwards: cuSPARSE takes longer for a z that it adds to, after a copy of y, than that takes */
  tc_status multiply(const void *x, const void *y, void *z, int sign, cudaStream_t stream)
  {
    const factor alpha = factor_of(sign), beta = factor_of(y && y == z ? 1 : 0);

    TC_CALL(tc_cusparse("cusparseSetStream", cusparseSetStream(handle_.handle, stream)));
    TC_CALL(tc_cusparse("cusparseDnVecSetValues", cusparseDnVecSetValues(x_.handle, const_cast<void *>(x))));
    TC_CALL(tc_cusparse("cusparseDnVecSetValues", cusparseDnVecSetValues(z_.handle, z)));
    TC_CALL(tc_cusparse("cusparseSpMV", cusparseSpMV(handle_.handle, plain, &alpha, A_.handle, x_.handle, &beta, z_.handle, type_, algorithm, buffer_)));
    if (!y || y == z) return TC_OK;
    return (type_ == CUDA_R_64F ? add_vector<double> : add_vector<float>)(rows_, y, z, stream);
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

  int32_t                                             rows_;
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
