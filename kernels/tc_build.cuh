/*
  What converters share on the host side: what they check first, errors of the CUDA runtime, sums of scans, cutting an allocation into arrays.
*/
#pragma once
#include "tc_device.cuh"

/* `what` names the converter and what it did */
static inline tc_status tc_cuda(const char *what, cudaError_t error)
{
  if (error == cudaSuccess) return TC_OK;
  cudaGetLastError();
  return tc_fail(error == cudaErrorMemoryAllocation ? TC_ERR_MEMORY : TC_ERR_DEVICE, "%s: %s", what, cudaGetErrorString(error));
}

/* Is the pattern one that the packed formats can name, and that format can hold? */
static inline tc_status tc_check_local(const tc_csr_local *A, const char *format, int32_t most_rows)
{
  TC_CHECK(A->num_rows >= 0 && A->num_cols >= 0 && A->nnz >= 0, TC_ERR_ARG, "negative dimension: %d x %d, %lld nonzeros", A->num_rows, A->num_cols, (long long)A->nnz);
  TC_CHECK(A->num_rows <= most_rows, TC_ERR_LIMIT, "%d rows, format %s holds at most %d", A->num_rows, format, most_rows);
  TC_CHECK(A->nnz <= INT32_MAX, TC_ERR_LIMIT, "%lld nonzeros, the packed formats name at most %d", (long long)A->nnz, INT32_MAX);
  return TC_OK;
}

/* For scans */
struct tc_plus {
  template <typename T>
  __host__ __device__ T operator()(const T &a, const T &b) const
  {
    return a + b;
  }
};

/* Cuts an allocation into arrays at multiples of 256 bytes; while there is none it only adds up */
struct tc_cutter {
  char  *memory;
  size_t bytes;

  template <typename T>
  void cut(T *&array, int64_t count, size_t item_size = sizeof(T))
  {
    array = memory ? reinterpret_cast<T *>(memory + bytes) : nullptr;
    bytes += (count * item_size + 255) / 256 * 256;
  }
};
