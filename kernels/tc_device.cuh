/*
  Small things every kernel uses: streaming loads, the fixed-order warp sum, launches that report their own error.
*/
#pragma once
#include "tc_base.h"
#include <atomic>
#include <cuda_runtime.h>

constexpr unsigned tc_full_warp = 0xffffffffu;
constexpr int      tc_warp_size = 32;

/* Matrix arrays are read once per product: leave the caches to x */
template <typename T>
__device__ __forceinline__ T tc_load_stream(const T *p)
{
  return __ldcs(p);
}

/* An element of a vector that the kernel before may have written: an ordinary load, since __ldg() promises that nobody writes while this kernel runs */
template <typename V>
__device__ __forceinline__ double tc_load_vector(const V *p)
{
  return static_cast<double>(*p);
}

/* x at a packed column; padding (negative) reads nothing and counts as 0 */
template <typename V>
__device__ __forceinline__ double tc_gather(const V *x, int32_t col)
{
  return col >= 0 ? tc_load_vector(x + col) : 0.0;
}

/* Where a product goes: z = A x if y is NULL, else z = y + sign A x, sign 1.0 or -1.0: the product with it is exact. y may be z. Vectors of doubles or floats. */
template <typename V>
struct tc_output {
  const V *y;
  V       *z;
  double   sign;
};

/* Sum over the lanes of a warp, always paired 16, 8, 4, 2, 1 apart; every lane gets it. The host's tc_add_lanes() adds in the same order. */
__device__ __forceinline__ double tc_warp_sum(double v)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v = __dadd_rn(v, __shfl_xor_sync(tc_full_warp, v, half));
  return v;
}

/*
  v, which all lanes of a warp have the same of. The compiler does not know that of what is read from memory, and prepares each shuffle in a loop of so many turns for a warp whose lanes have gone separate ways: code
  that is twice as long, and copies of what has been loaded right behind the loads, each a wait (docs/performance-chains.md, "Loops that all lanes leave together").
*/
__device__ __forceinline__ int tc_uniform(int v)
{
  return __shfl_sync(tc_full_warp, v, 0);
}

/* Largest v of a warp, known to be the same for all its lanes */
__device__ __forceinline__ int tc_warp_max(int v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(tc_full_warp, v);
#else
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v = max(v, __shfl_xor_sync(tc_full_warp, v, half));
  return tc_uniform(v);
#endif
}

/* Their sum */
__device__ __forceinline__ int tc_warp_total(int v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(tc_full_warp, v);
#else
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v += __shfl_xor_sync(tc_full_warp, v, half);
  return tc_uniform(v);
#endif
}

/* The largest of bits of magnitudes */
__device__ __forceinline__ uint64_t tc_warp_largest(uint64_t v)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) {
    const uint64_t other = __shfl_xor_sync(tc_full_warp, static_cast<unsigned long long>(v), half);

    v = v > other ? v : other;
  }
  return v;
}

/* The last step of every row. Adding +0.0 turns -0.0 into +0.0, so that the result does not tell how many padding slots were added up. */
template <typename V>
__device__ __forceinline__ void tc_finish_row(double sum, int32_t row, const tc_output<V> &out)
{
  sum = __dadd_rn(sum, 0.0);
  if (out.y) sum = fma(out.sign, sum, static_cast<double>(out.y[row]));
  __stcs(out.z + row, static_cast<V>(sum));
}

/* The present device, or -1. Where a process sees only one, the runtime is not asked, which takes it 0.04 us of a launch's 3. */
inline int tc_present_device(void)
{
  static const bool only_one = [] {
    int num;

    return cudaGetDeviceCount(&num) == cudaSuccess ? num == 1 : (cudaGetLastError(), false);
  }();
  int device = 0;

  return only_one || cudaGetDevice(&device) == cudaSuccess ? device : (cudaGetLastError(), -1);
}

/* What launchers ask of the present device, which answers once for each thread */
struct tc_device_size {
  int device, num_sms, cache_bytes /* L2 */, block_bytes /* of shared memory that a thread block may have */;
};

/* `name` is that of the launcher */
inline tc_status tc_size_of_device(const char *name, const tc_device_size **size)
{
  static thread_local tc_device_size known = {-1, 0, 0, 0};
  const int                          device = tc_present_device();
  const auto get = [&](cudaDeviceAttr attribute, int *value) { return cudaDeviceGetAttribute(value, attribute, device) == cudaSuccess; };

  TC_CHECK(device >= 0, TC_ERR_DEVICE, "%s: there is no device", name);
  if (device != known.device) {
    tc_device_size present = {device, 0, 0, 0};
    const bool     all     = get(cudaDevAttrMultiProcessorCount, &present.num_sms) && get(cudaDevAttrL2CacheSize, &present.cache_bytes) && get(cudaDevAttrMaxSharedMemoryPerBlockOptin, &present.block_bytes);

    TC_CHECK(all, (cudaGetLastError(), TC_ERR_DEVICE), "%s: the device does not say what it has", name);
    known = present;
  }
  *size = &known;
  return TC_OK;
}

constexpr int tc_counted_devices = 64;

/* What is done once for each device, but every time for those that are not counted; two threads may do it both */
class tc_once {
  std::atomic<bool> done[tc_counted_devices] = {};

public:
  template <typename Do>
  tc_status on_present_device(const Do &first)
  {
    const int  device  = tc_present_device();
    const bool counted = device >= 0 && device < tc_counted_devices;

    if (counted && done[device]) return TC_OK;
    TC_CALL(first());
    if (counted) done[device] = true;
    return TC_OK;
  }
};

/* Thread blocks of a kernel may have all shared memory that there is, besides what it has without being asked; `name` is that of the launcher */
template <auto kernel>
static tc_status tc_allow_shared(const char *name)
{
  static tc_once once;

  return once.on_present_device([&]() -> tc_status {
    const tc_device_size *size;
    cudaFuncAttributes    own;

    TC_CALL(tc_size_of_device(name, &size));
    TC_CHECK(cudaFuncGetAttributes(&own, kernel) == cudaSuccess && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size->block_bytes - static_cast<int>(own.sharedSizeBytes)) == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "%s: no %d bytes of shared memory", name, size->block_bytes);
    return TC_OK;
  });
}

/* A kernel lets the one after it on the stream begin, if that was launched to begin early; it runs beside this one then until it waits */
__device__ __forceinline__ void tc_begin_next_kernel()
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* What the kernel before wrote is there afterwards */
__device__ __forceinline__ void tc_wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/*
  Both, for kernels that follow each other. In this order: a kernel that let the next one begin while it waits itself would share the device with two others, whose blocks
  then come wherever there is room, more to one multiprocessor than to another. Without `early` the next one
  begins when the thread blocks of this one let it, or end.
*/
__device__ __forceinline__ void tc_between_kernels(bool early = true)
{
  tc_wait_for_kernel_before();
  if (early) tc_begin_next_kernel();
}

/* Loads kernels ahead of their first launch, which else does that, and waits for the device */
template <typename... Kernels>
tc_status tc_load(const char *name, Kernels... kernels)
{
  for (const void *kernel : {reinterpret_cast<const void *>(kernels)...}) {
    cudaFuncAttributes attributes;
    const cudaError_t  error = cudaFuncGetAttributes(&attributes, kernel);

    TC_CHECK(error == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "%s: loading a kernel failed: %s", name, cudaGetErrorString(error));
  }
  return TC_OK;
}

template <typename... Parameters, typename... Arguments>
tc_status tc_launch_config(const char *name, void (*kernel)(Parameters...), dim3 grid, int threads, int shared_bytes, cudaStream_t stream, cudaLaunchAttribute *attribute, Arguments... arguments)
{
  cudaLaunchConfig_t config = {};
  cudaError_t        error;

  if (grid.x == 0 || grid.y == 0) return TC_OK;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "%s: a fault was asked for", name);
  config.gridDim          = grid;
  config.blockDim         = dim3((unsigned)threads);
  config.dynamicSmemBytes = (size_t)shared_bytes;
  config.stream           = stream;
  config.attrs            = attribute;
  config.numAttrs         = attribute != nullptr;
  error                   = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return tc_fail(TC_ERR_DEVICE, "%s: launch of %u x %u thread blocks failed: %s", name, grid.x, grid.y, cudaGetErrorString(error));
  }
  return TC_OK;
}

/* Can kernels wait for the one before on the present device? What was compiled for sm_80 cannot. All are compiled for the same devices, so the runtime is asked once for each. */
inline bool tc_kernels_wait(const void *kernel)
{
  enum { ASK, NO, YES };
  static std::atomic<int> known[tc_counted_devices];
  cudaFuncAttributes      compiled;
  const int               device = tc_present_device();

  if (device < 0 || device >= tc_counted_devices) return false;
  if (known[device] == ASK && cudaFuncGetAttributes(&compiled, kernel) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  if (known[device] == ASK) known[device] = compiled.ptxVersion >= 90 ? YES : NO;
  return known[device] == YES;
}

/*
  Enqueues one kernel; the error that comes back is this launch's own. No synchronisation. If `early`, of a kernel that calls tc_wait_for_kernel_before(), it may begin before
  the kernel in front of it on the stream has ended, where kernels can wait.
*/
template <typename... Parameters, typename... Arguments>
tc_status tc_launch_grid(const char *name, void (*kernel)(Parameters...), bool early, dim3 grid, int threads, int shared_bytes, cudaStream_t stream, Arguments... arguments)
{
  cudaLaunchAttribute allowed = {};

  allowed.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  allowed.val.programmaticStreamSerializationAllowed = 1;
  return tc_launch_config(name, kernel, grid, threads, shared_bytes, stream, early && tc_kernels_wait(reinterpret_cast<const void *>(kernel)) ? &allowed : nullptr, arguments...);
}

/* The same for a line of thread blocks */
template <typename... Parameters, typename... Arguments>
tc_status tc_launch_line(const char *name, void (*kernel)(Parameters...), bool early, int64_t num_ctas, int threads, int shared_bytes, cudaStream_t stream, Arguments... arguments)
{
  TC_CHECK(num_ctas <= INT32_MAX, TC_ERR_LIMIT, "%s: %lld thread blocks, a grid holds %d", name, (long long)num_ctas, INT32_MAX);
  return tc_launch_grid(name, kernel, early, dim3((unsigned)num_ctas), threads, shared_bytes, stream, arguments...);
}

template <typename... Parameters, typename... Arguments>
tc_status tc_launch_early(const char *name, void (*kernel)(Parameters...), int64_t num_ctas, int threads, int shared_bytes, cudaStream_t stream, Arguments... arguments)
{
  return tc_launch_line(name, kernel, true, num_ctas, threads, shared_bytes, stream, arguments...);
}

/* Without dynamic shared memory, after the kernel in front of it */
template <typename... Parameters, typename... Arguments>
tc_status tc_launch(const char *name, void (*kernel)(Parameters...), int64_t num_ctas, int threads, cudaStream_t stream, Arguments... arguments)
{
  return tc_launch_line(name, kernel, false, num_ctas, threads, 0, stream, arguments...);
}
