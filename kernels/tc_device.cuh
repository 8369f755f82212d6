/*
  Small things every kernel uses: streaming loads, the fixed-order warp sum, launches that report their own error.
*/
#pragma once
#include "tc_base.h"
#include <cuda_runtime.h>

constexpr unsigned tc_full_warp = 0xffffffffu;
constexpr int      tc_warp_size = 32;

/* Matrix arrays are read once per product: leave the caches to x */
template <typename T>
__device__ __forceinline__ T tc_load_stream(const T *p)
{
  return __ldcs(p);
}

/* x at a packed column; padding (negative) reads nothing and counts as 0 */
__device__ __forceinline__ double tc_gather(const double *x, int32_t col)
{
  return col >= 0 ? __ldg(x + col) : 0.0;
}

/* Sum over the lanes of a warp, always paired 16, 8, 4, 2, 1 apart; every lane gets it. The host's butterfly() adds in the same order. */
__device__ __forceinline__ double tc_warp_sum(double v)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v = __dadd_rn(v, __shfl_xor_sync(tc_full_warp, v, half));
  return v;
}

/* Largest v of a warp, v >= 0 */
__device__ __forceinline__ int tc_warp_max(int v)
{
#pragma unroll
  for (int half = tc_warp_size / 2; half > 0; half /= 2) v = max(v, __shfl_xor_sync(tc_full_warp, v, half));
  return v;
}

/* The last step of every row. Adding +0.0 turns -0.0 into +0.0, so that the result does not tell how many padding slots were added up. y may be z. */
__device__ __forceinline__ void tc_finish_row(double sum, int32_t row, const double *y, double *z)
{
  sum = __dadd_rn(sum, 0.0);
  if (y) sum = __dadd_rn(y[row], sum);
  __stcs(z + row, sum);
}

/* Enqueues one kernel; the error that comes back is this launch's own. No synchronisation. */
template <typename... Parameters, typename... Arguments>
tc_status tc_launch(const char *name, void (*kernel)(Parameters...), int64_t num_ctas, int threads, cudaStream_t stream, Arguments... arguments)
{
  cudaLaunchConfig_t config = {};
  cudaError_t        error;

  if (num_ctas == 0) return TC_OK;
  TC_CHECK(num_ctas <= INT32_MAX, TC_ERR_LIMIT, "%s: %lld thread blocks, a grid holds %d", name, (long long)num_ctas, INT32_MAX);
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "%s: a fault was asked for", name);
  config.gridDim  = dim3((unsigned)num_ctas);
  config.blockDim = dim3((unsigned)threads);
  config.stream   = stream;
  error           = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return tc_fail(TC_ERR_DEVICE, "%s: launch of %lld thread blocks failed: %s", name, (long long)num_ctas, cudaGetErrorString(error));
  }
  return TC_OK;
}
