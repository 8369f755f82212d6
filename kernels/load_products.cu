/*
  What a process waits for in its first product of two sparse matrices, ahead of it: cuSPARSE loads the kernels of cusparseSpGEMM at their first launch, 40 to 80 ms on an H200, in a thread of its own here,
  while the program assembles. All of them come with one product of small matrices. The calls of other threads meanwhile do not wait (docs/performance-solves.md, "Set-up").
*/
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_cusparse.cuh"
#include <cstdio>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

namespace
{

/*
  Memory of the device for as long as the product takes, of CUDA's own pool: faults that tests ask for are not for here. It is zeros before and afterwards, as new memory is: to what cuSPARSE does with
  the products of a program it matters what memory held before (docs/performance.md, "Defects of others found on the way").
*/
class tc_arena
{
public:
  explicit tc_arena(cudaStream_t stream) : stream_(stream) { }
  ~tc_arena()
  {
    for (const block &taken : taken_) {
      if (cudaMemsetAsync(taken.memory, 0, taken.bytes, stream_) != cudaSuccess || cudaFreeAsync(taken.memory, stream_) != cudaSuccess) cudaGetLastError();
    }
  }
  tc_status take(size_t bytes, void **memory)
  {
    const size_t some = bytes > 0 ? bytes : 1;

    TC_CALL(tc_cuda("device memory", cudaMallocAsync(memory, some, stream_)));
    taken_.push_back({*memory, some});
    return tc_cuda("device memory", cudaMemsetAsync(*memory, 0, some, stream_));
  }
  template <typename T>
  tc_status copy(const std::vector<T> &from, void **memory)
  {
    TC_CALL(take(from.size() * sizeof(T), memory));
    return tc_cuda("a copy", cudaMemcpyAsync(*memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream_));
  }

private:
  struct block {
    void  *memory;
    size_t bytes;
  };
  cudaStream_t       stream_;
  std::vector<block> taken_;
};

/* A square band of 27 entries in a row, times a matrix that adds up 27 rows */
template <typename Id, typename Scalar>
class tc_small_product
{
  static constexpr int  rows = 216, half = 13, together = 27;
  static constexpr auto ids       = sizeof(Id) == 4 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
  static constexpr auto type      = sizeof(Scalar) == 4 ? CUDA_R_32F : CUDA_R_64F;
  static constexpr auto plain     = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr auto algorithm = CUSPARSE_SPGEMM_DEFAULT;

  using matrix = tc_owned<cusparseSpMatDescr_t, cusparseDestroySpMat>;

  static tc_status matrix_new(tc_arena &arena, const std::vector<Id> &row_ptr, const std::vector<Id> &col, int num_cols, matrix &A)
  {
    const std::vector<Scalar> ones(col.size(), 1);
    void                     *i, *j, *a;

    TC_CALL(arena.copy(row_ptr, &i));
    TC_CALL(arena.copy(col, &j));
    TC_CALL(arena.copy(ones, &a));
    return tc_cusparse("cusparseCreateCsr", cusparseCreateCsr(&A.handle, rows, num_cols, (int64_t)col.size(), i, j, a, ids, ids, CUSPARSE_INDEX_BASE_ZERO, type));
  }

public:
  static tc_status run(cusparseHandle_t handle, cudaStream_t stream)
  {
    tc_arena                                                     arena(stream);
    matrix                                                       A, P, C;
    tc_owned<cusparseSpGEMMDescr_t, cusparseSpGEMM_destroyDescr> product;
    std::vector<Id>                                              a_row{0}, a_col, p_row{0}, p_col;
    const std::vector<Scalar>                                    numbers{1, 0};
    void                                                        *alpha, *c_row, *c_col, *c_val, *first = nullptr, *second = nullptr;
    size_t                                                       first_bytes = 0, second_bytes = 0;
    int64_t                                                      m, n, nnz;

    for (int i = 0; i < rows; ++i) {
      for (int j = i > half ? i - half : 0; j <= i + half && j < rows; ++j) a_col.push_back(j);
      a_row.push_back((Id)a_col.size());
      p_col.push_back(i / together);
      p_row.push_back(i + 1);
    }
    TC_CALL(matrix_new(arena, a_row, a_col, rows, A));
    TC_CALL(matrix_new(arena, p_row, p_col, rows / together, P));
    TC_CALL(arena.copy(numbers, &alpha));
    void *const beta = static_cast<Scalar *>(alpha) + 1;

    TC_CALL(arena.take((rows + 1) * sizeof(Id), &c_row));
    TC_CALL(tc_cusparse("cusparseCreateCsr", cusparseCreateCsr(&C.handle, rows, rows / together, 0, c_row, nullptr, nullptr, ids, ids, CUSPARSE_INDEX_BASE_ZERO, type)));
    TC_CALL(tc_cusparse("cusparseSpGEMM_createDescr", cusparseSpGEMM_createDescr(&product.handle)));
    for (int with_memory = 0; with_memory < 2; ++with_memory) {
      if (with_memory) TC_CALL(arena.take(first_bytes, &first));
      TC_CALL(tc_cusparse("cusparseSpGEMM_workEstimation", cusparseSpGEMM_workEstimation(handle, plain, plain, alpha, A.handle, P.handle, beta, C.handle, type, algorithm, product.handle, &first_bytes, first)));
    }
    for (int with_memory = 0; with_memory < 2; ++with_memory) {
      if (with_memory) TC_CALL(arena.take(second_bytes, &second));
      TC_CALL(tc_cusparse("cusparseSpGEMM_compute", cusparseSpGEMM_compute(handle, plain, plain, alpha, A.handle, P.handle, beta, C.handle, type, algorithm, product.handle, &second_bytes, second)));
    }
    TC_CALL(tc_cusparse("cusparseSpMatGetSize", cusparseSpMatGetSize(C.handle, &m, &n, &nnz)));
    TC_CALL(arena.take((size_t)nnz * sizeof(Id), &c_col));
    TC_CALL(arena.take((size_t)nnz * sizeof(Scalar), &c_val));
    TC_CALL(tc_cusparse("cusparseCsrSetPointers", cusparseCsrSetPointers(C.handle, c_row, c_col, c_val)));
    TC_CALL(tc_cusparse("cusparseSpGEMM_copy", cusparseSpGEMM_copy(handle, plain, plain, alpha, A.handle, P.handle, beta, C.handle, type, algorithm, product.handle)));
    return tc_cuda("a product of small matrices", cudaStreamSynchronize(stream));
  }
};

/* On a stream that waits for no other; while another thread captures one, nothing of this is an error */
tc_status load(int device, tc_scalar scalar, bool wide)
{
  cudaStreamCaptureMode                       mode = cudaStreamCaptureModeRelaxed;
  tc_owned<cudaStream_t, cudaStreamDestroy>   stream;
  tc_owned<cusparseHandle_t, cusparseDestroy> handle;

  TC_CALL(tc_cuda("the device", cudaSetDevice(device)));
  TC_CALL(tc_cuda("capturing", cudaThreadExchangeStreamCaptureMode(&mode)));
  TC_CALL(tc_cuda("a stream", cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking)));
  TC_CALL(tc_cusparse("cusparseCreate", cusparseCreate(&handle.handle)));
  TC_CALL(tc_cusparse("cusparseSetStream", cusparseSetStream(handle.handle, stream.handle)));
  TC_CALL(tc_cusparse("cusparseSetPointerMode", cusparseSetPointerMode(handle.handle, CUSPARSE_POINTER_MODE_DEVICE)));
  if (scalar == TC_SCALAR_F32) return wide ? tc_small_product<int64_t, float>::run(handle.handle, stream.handle) : tc_small_product<int32_t, float>::run(handle.handle, stream.handle);
  return wide ? tc_small_product<int64_t, double>::run(handle.handle, stream.handle) : tc_small_product<int32_t, double>::run(handle.handle, stream.handle);
}

/* Whoever ends the process waits for it */
struct tc_loader {
  std::thread thread;
  tc_status   status = TC_OK;
  char        text[256] = ""; // why it is not TC_OK: errors are told by thread

  void run(int device, tc_scalar scalar, bool wide)
  {
    status = load(device, scalar, wide);
    if (status != TC_OK) snprintf(text, sizeof text, "%s", tc_last_error());
  }
  tc_status end()
  {
    if (thread.joinable()) thread.join();
    return status == TC_OK ? TC_OK : tc_fail(status, "%s", text);
  }
  ~tc_loader()
  {
    if (thread.joinable()) thread.join();
  }
};

tc_loader loader;

} // namespace

extern "C" tc_status tc_load_products_begin(tc_scalar scalar, int wide, int processes)
{
  cpu_set_t processors;
  int       device;

  CPU_ZERO(&processors);
  TC_CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) >= 2 * processes, TC_ERR_UNSUPPORTED, "fewer than two processors for each process");
  TC_CALL(tc_cuda("the device", cudaGetDevice(&device)));
  (void)loader.end(); // another one's failure is not ours
  try {
    loader.thread = std::thread([device, scalar, wide] { loader.run(device, scalar, wide != 0); });
  } catch (const std::system_error &error) {
    return tc_fail(TC_ERR_MEMORY, "no thread: %s", error.what());
  }
  return TC_OK;
}

extern "C" tc_status tc_load_products_end(void)
{
  return loader.end();
}
