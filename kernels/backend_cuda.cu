/*
  The CUDA backend: device memory, copies, and the registry of kernels and converters. Compiled into the CUDA library, whose only symbol is tc_backend_cuda().
*/
#include "tc_backend.h"
#include "tc_memory.cuh"
#include <atomic>
#include <memory>
#include <new>

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
  int device, num, major, minor, pools;

  TC_CUDA(cudaGetDeviceCount(&num));
  TC_CHECK(num > 0, TC_ERR_DEVICE, "no CUDA device");
  TC_CUDA(cudaGetDevice(&device));
  TC_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  TC_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  *sm = 10 * major + minor;
  TC_CHECK(*sm >= TC_CUDA_MIN_SM, TC_ERR_UNSUPPORTED, "the device is sm_%d, the kernels were compiled for sm_%d and later", *sm, TC_CUDA_MIN_SM);
  TC_CUDA(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device));
  TC_CHECK(pools, TC_ERR_UNSUPPORTED, "the device, or how this system shares it, has no memory pools");
  return TC_OK;
}

extern "C" {
#define TC_KERNEL(op, format, arithmetic, precision, scalar, min_sm, launcher) tc_status launcher(const void *, const void *, const void *, void *, int, int, tc_stream);
#include "tc_kernels.h"
#undef TC_KERNEL
#define TC_SPMM_KERNEL(format, arithmetic, precision, min_sm, suits, b_transposed, b_f32, scratch, launcher) \
  size_t    scratch(const void *, const tc_spmm_args *); \
  tc_status launcher(const void *, const tc_spmm_args *, void *);
#include "tc_kernels.h"
#undef TC_SPMM_KERNEL
#define TC_CONVERTER(format, build, refill, search, collect) tc_status refill(const void *, const double *, tc_stream);
#include "tc_kernels.h"
#undef TC_CONVERTER
size_t    tc_spmv_csr_scratch_cuda(int32_t, int64_t);
tc_status tc_spmv_csr_cuda(const tc_csr_matrix *, const void *, const void *, void *, int, const tc_spmv_csr_memory *, tc_stream);
tc_status tc_cusparse_prepare(const tc_csr_matrix *, const void *, void *, void **, tc_stream);
tc_status tc_cusparse_multiply(void *, const void *, const void *, void *, int, tc_stream);
void      tc_cusparse_release(void *);
int       tc_spmm_bittcf_cluster_suits(const void *, int32_t);
int       tc_spmm_bittcf_narrow_cluster_suits(const void *, int32_t);
tc_status tc_build_hybrid(const tc_csr_local *, void *, void **, tc_stream);
tc_status tc_build_bittcf(const tc_csr_local *, void *, void **, tc_stream);
tc_status tc_build_bcsr(const tc_csr_local *, void *, void **, tc_stream);
tc_status tc_search_hybrid(const void *, const double *, tc_stream);
tc_status tc_collect_hybrid(const void *, tc_stream);
tc_status tc_survey_begin_cuda(const tc_csr_view *, void **, tc_stream);
tc_status tc_survey_end_cuda(void *, const tc_csr_view *, tc_survey *, tc_stream);
tc_status tc_load_products_begin(tc_scalar, int, int);
tc_status tc_load_products_end(void);
#define TC_WARM_UP(load) tc_status load(tc_scalar);
#include "tc_kernels.h"
#undef TC_WARM_UP
tc_status tc_transpose_cuda(const tc_csr_local *, int32_t *, int32_t *, int32_t *, tc_stream);
tc_status tc_gather_cuda(int64_t, const int32_t *, tc_scalar, const void *, void *, tc_stream);
tc_status tc_widen_cuda(int64_t, int64_t, const float *, int64_t, double *, int64_t, tc_stream);
tc_status tc_round_cuda(int64_t, int64_t, const double *, int64_t, float *, int64_t, tc_stream);
tc_status tc_narrow_cuda(int64_t, const int64_t *, int32_t *, tc_stream);
tc_status tc_turn_cuda(int32_t, int32_t, const double *, int64_t, double *, int64_t, tc_stream);
tc_status tc_pick_rows_cuda(int64_t, const int64_t *, int64_t, tc_scalar, const void *, int64_t, void *, tc_stream);
tc_status tc_add_rows_cuda(int64_t, const int64_t *, const int64_t *, const int64_t *, int64_t, tc_scalar, const void *, void *, int64_t, tc_stream);
tc_status tc_set_diagonal_cuda(const tc_csr_local *, tc_scalar, const void *, double, int, void *, tc_stream);
tc_status tc_sweep_facts_cuda(const tc_csr_local *, int32_t *, tc_sweep_facts *, tc_stream);
tc_status tc_order_rows_cuda(const tc_csr_local *, int, int32_t, int32_t *, int32_t *, tc_stream);
tc_status tc_sweep_pattern_cuda(const tc_csr_local *, const tc_sweep_pattern *, int32_t *, tc_stream);
tc_status tc_find_zero_cuda(int32_t, const int32_t *, tc_scalar, const void *, int32_t *, tc_stream);
tc_status tc_sweep_cuda(const tc_csr_local *, const tc_sweep *, tc_stream);
tc_status tc_sweep_block_cuda(const tc_csr_local *, const tc_sweep_block *, tc_stream);
tc_status tc_put_block_cuda(const tc_block_rows *, const void *, void *, tc_stream);
tc_status tc_take_block_cuda(const tc_block_rows *, void *, const void *, tc_stream);
tc_status tc_factor_cuda(const tc_csr_local *, const tc_factor *, tc_stream);
tc_status tc_get_blocks_cuda(const tc_csr_local *, int32_t, tc_scalar, const void *, void *, tc_stream);
tc_status tc_collapse_cuda(const tc_csr_local *, int32_t, tc_scalar, const void *, void *, int32_t *, tc_stream);
tc_status tc_mirror_cuda(const tc_csr_local *, int32_t, tc_scalar, const void *, void *, int32_t *, tc_stream);
tc_status tc_scale_graph_cuda(const tc_csr_local *, int32_t, tc_scalar, void *, void *, tc_stream);
tc_status tc_demote_cuda(void *, size_t, int, tc_stream);
tc_status tc_window_name_device(tc_window_name *);
tc_status tc_window_alloc(size_t, void **, tc_window_name *);
void      tc_window_release(void *);
tc_status tc_window_open(const tc_window_name *, void **);
tc_status tc_push_cuda(const tc_target *, int32_t, int64_t, uint32_t *, const tc_sent *, const uint32_t *, uint32_t, tc_stream);
tc_status tc_await_cuda(const uint32_t *, int32_t, uint32_t, tc_stream);
tc_status tc_add_elements_cuda(int64_t, const int64_t *, const int64_t *, const int64_t *, tc_scalar, const void *, void *, tc_stream);
}

static tc_status load_kernels(tc_scalar scalar)
{
#define TC_WARM_UP(load) TC_CALL(load(scalar));
#include "tc_kernels.h"
#undef TC_WARM_UP
  return TC_OK;
}

static tc_status cuda_warm_up(tc_scalar scalar)
{
  enum { SCALARS = TC_SCALAR_F32 + 1 };
  static std::atomic<bool> warm[tc_counted_devices][SCALARS];
  int                      device;

  TC_CUDA(cudaGetDevice(&device));
  if (device >= tc_counted_devices || warm[device][scalar].exchange(true)) return TC_OK;
  TC_CALL(tc_memory_warm_up());
  return load_kernels(scalar);
}

static const tc_kernel *cuda_kernels(int *num)
{
  static const tc_kernel kernels[] = {
#define TC_KERNEL(op, format, arithmetic, precision, scalar, min_sm, launcher) {#launcher, TC_OP_##op, format, TC_ARITHMETIC_##arithmetic, TC_PRECISION_##precision, min_sm, launcher, TC_SCALAR_##scalar},
#include "tc_kernels.h"
#undef TC_KERNEL
  };

  *num = static_cast<int>(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static const tc_spmm_kernel *cuda_spmm_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
#define TC_SPMM_KERNEL(format, arithmetic, precision, min_sm, suits, b_transposed, b_f32, scratch, launcher) {#launcher, format, TC_ARITHMETIC_##arithmetic, TC_PRECISION_##precision, min_sm, suits, scratch, launcher, b_transposed, b_f32},
#include "tc_kernels.h"
#undef TC_SPMM_KERNEL
  };

  *num = static_cast<int>(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static const tc_converter *cuda_converters(int *num)
{
  static const tc_converter converters[] = {
#define TC_CONVERTER(format, build, refill, search, collect) {format, build, refill, search, collect},
#include "tc_kernels.h"
#undef TC_CONVERTER
  };

  *num = static_cast<int>(sizeof converters / sizeof converters[0]);
  return converters;
}

static tc_status cuda_take(size_t bytes, void **local, tc_stream stream)
{
  return tc_memory_take(bytes, local, static_cast<cudaStream_t>(stream));
}

static tc_status cuda_give(void *local, tc_stream stream)
{
  return tc_memory_give(local, static_cast<cudaStream_t>(stream));
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

static tc_status cuda_copy(void *local, const void *from, size_t bytes, tc_stream stream)
{
  TC_CUDA(cudaMemcpyAsync(local, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream)));
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

static tc_status cuda_drain(void)
{
  TC_CUDA(cudaDeviceSynchronize());
  return TC_OK;
}

static int cuda_capturing(tc_stream stream)
{
  cudaStreamCaptureStatus status;
  const cudaError_t       error = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);

  if (error != cudaSuccess) cudaGetLastError(); // the default stream while another one is captured
  return error != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

struct tc_stopwatch {
  cudaEvent_t begin = nullptr, end = nullptr;

  ~tc_stopwatch()
  {
    if (begin && cudaEventDestroy(begin) != cudaSuccess) cudaGetLastError();
    if (end && cudaEventDestroy(end) != cudaSuccess) cudaGetLastError();
  }
};

static tc_status cuda_time_begin(tc_stream stream, void **stopwatch)
{
  std::unique_ptr<tc_stopwatch> watch(new (std::nothrow) tc_stopwatch);

  *stopwatch = nullptr;
  TC_CHECK(watch, TC_ERR_MEMORY, "no host memory for a stopwatch");
  TC_CUDA(cudaEventCreate(&watch->begin));
  TC_CUDA(cudaEventCreate(&watch->end));
  TC_CUDA(cudaEventRecord(watch->begin, static_cast<cudaStream_t>(stream)));
  *stopwatch = watch.release();
  return TC_OK;
}

static tc_status cuda_time_end(tc_stream stream, void *stopwatch, double *ms)
{
  const std::unique_ptr<tc_stopwatch> watch(static_cast<tc_stopwatch *>(stopwatch));
  float                               elapsed;

  TC_CUDA(cudaEventRecord(watch->end, static_cast<cudaStream_t>(stream)));
  TC_CUDA(cudaEventSynchronize(watch->end));
  TC_CUDA(cudaEventElapsedTime(&elapsed, watch->begin, watch->end));
  *ms = elapsed;
  return TC_OK;
}

static void cuda_clear_error(void)
{
  cudaGetLastError();
}

extern "C" __attribute__((visibility("default"))) const tc_backend *tc_backend_cuda(void)
{
  static const tc_exchange exchange = {tc_window_name_device, tc_window_alloc, tc_window_release, tc_window_open, tc_push_cuda, tc_await_cuda, tc_add_elements_cuda};
  static const tc_backend  backend  = {sizeof(tc_backend), "cuda", cuda_probe, cuda_warm_up, tc_load_products_begin, tc_load_products_end, cuda_kernels, tc_spmv_csr_scratch_cuda, tc_spmv_csr_cuda, tc_cusparse_prepare, tc_cusparse_multiply, tc_cusparse_release, cuda_spmm_kernels, cuda_converters, tc_memory_alloc, tc_memory_release, cuda_take, cuda_give, tc_memory_share, tc_memory_unshare, tc_memory_pin, tc_memory_unpin, cuda_upload, cuda_download, cuda_zero, cuda_copy, tc_survey_begin_cuda, tc_survey_end_cuda, tc_transpose_cuda, tc_gather_cuda, tc_widen_cuda, tc_round_cuda, tc_narrow_cuda, tc_turn_cuda, tc_pick_rows_cuda, tc_add_rows_cuda, tc_set_diagonal_cuda, tc_sweep_facts_cuda, tc_order_rows_cuda, tc_sweep_pattern_cuda, tc_find_zero_cuda, tc_sweep_cuda, tc_sweep_block_cuda, tc_put_block_cuda, tc_take_block_cuda, tc_factor_cuda, tc_get_blocks_cuda, tc_collapse_cuda, tc_mirror_cuda, tc_scale_graph_cuda, tc_demote_cuda, &exchange, cuda_wait, cuda_synchronize, cuda_drain, cuda_capturing, cuda_time_begin, cuda_time_end, cuda_clear_error, tc_last_error, tc_fault_arm};

  return &backend;
}
