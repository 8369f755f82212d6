/*
  What converters share on the host side: errors of the CUDA runtime, sums of scans, cutting an allocation into arrays.
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
