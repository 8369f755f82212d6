/*
  The CUDA backend: device memory, copies, the refill, and the registry of kernels. Compiled into the CUDA library, whose only symbol is tc_backend_cuda().
*/
#include "refill.cuh"
#include "tc_backend.h"
#include "tc_device.cuh"

#ifndef TC_CUDA_MIN_SM
  #error "TC_CUDA_MIN_SM must say the smallest architecture compiled for, e.g. 80"
#endif

#define TC_CUDA(call) \
  do { \
    const cudaError_t tc_cuda_error = (call); \
    if (tc_cuda_error != cudaSuccess) { \
      cudaGetLastError(); \
      return tc_fail(tc_cuda_error == cudaErrorMemoryAllocation ? TC_ERR_MEMORY : TC_ERR_DEVICE, "%s: %s", #call, cudaGetErrorString(tc_cuda_error)); \
    } \
  } while (0)

/* Neither call creates a context: which device a process uses is settled by then, or left to PETSc */
static tc_status cuda_probe(int *sm)
{
  int device, num, major, minor;

  TC_CUDA(cudaGetDeviceCount(&num));
  TC_CHECK(num > 0, TC_ERR_DEVICE, "no CUDA device");
  TC_CUDA(cudaGetDevice(&device));
  TC_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  TC_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  *sm = 10 * major + minor;
  TC_CHECK(*sm >= TC_CUDA_MIN_SM, TC_ERR_UNSUPPORTED, "the device is sm_%d, the kernels were compiled for sm_%d and later", *sm, TC_CUDA_MIN_SM);
  return TC_OK;
}

extern "C" {
#define TC_KERNEL(op, format, arithmetic, precision, min_sm, launcher) tc_status launcher(const void *, const double *, const double *, double *, tc_stream);
#include "tc_kernels.h"
#undef TC_KERNEL
}

static const tc_kernel *cuda_kernels(int *num)
{
  static const tc_kernel kernels[] = {
#define TC_KERNEL(op, format, arithmetic, precision, min_sm, launcher) {#launcher, TC_OP_##op, format, TC_ARITHMETIC_##arithmetic, TC_PRECISION_##precision, min_sm, launcher},
#include "tc_kernels.h"
#undef TC_KERNEL
  };

  *num = static_cast<int>(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static tc_status cuda_alloc(size_t bytes, void **local)
{
  *local = nullptr;
  if (bytes == 0) return TC_OK;
  TC_CHECK(!tc_fault(TC_FAULT_ALLOC), TC_ERR_MEMORY, "no device memory for %zu bytes: a fault was asked for", bytes);
  TC_CUDA(cudaMalloc(local, bytes));
  return TC_OK;
}

static void cuda_release(void *local)
{
  cudaFree(local);
}

/* From pageable memory the call returns when the source may be reused */
static tc_status cuda_upload(void *local, const void *host, size_t bytes, tc_stream stream)
{
  TC_CHECK(!tc_fault(TC_FAULT_UPLOAD), TC_ERR_DEVICE, "upload of %zu bytes: a fault was asked for", bytes);
  TC_CUDA(cudaMemcpyAsync(local, host, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream)));
  return TC_OK;
}

static tc_status cuda_download(void *host, const void *local, size_t bytes, tc_stream stream)
{
  TC_CUDA(cudaMemcpyAsync(host, local, bytes, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
  TC_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  return TC_OK;
}

static tc_status cuda_zero(void *local, size_t bytes, tc_stream stream)
{
  TC_CUDA(cudaMemsetAsync(local, 0, bytes, static_cast<cudaStream_t>(stream)));
  return TC_OK;
}

static tc_status cuda_wait(tc_stream stream, tc_stream other)
{
  cudaEvent_t event;

  if (stream == other) return TC_OK;
  TC_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const cudaError_t recorded = cudaEventRecord(event, static_cast<cudaStream_t>(other));
  const cudaError_t waits    = recorded == cudaSuccess ? cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event, 0) : recorded;

  TC_CUDA(cudaEventDestroy(event));
  TC_CUDA(waits);
  return TC_OK;
}

static tc_status cuda_synchronize(tc_stream stream)
{
  TC_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  return TC_OK;
}

extern "C" __attribute__((visibility("default"))) const tc_backend *tc_backend_cuda(void)
{
  static const tc_backend backend = {"cuda", cuda_probe, cuda_kernels, cuda_alloc, cuda_release, cuda_upload, cuda_download, cuda_zero, tc_refill, cuda_wait, cuda_synchronize, tc_last_error, tc_fault_arm};

  return &backend;
}
