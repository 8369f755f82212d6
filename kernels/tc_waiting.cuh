/*
  Rows that wait for each other: what one computes is its own flag, in memory that holds what no operation gives. And the operations of a host that fuses nothing.
*/
#pragma once
#include "tc_device.cuh"
#include <cuda/atomic>

/* What is where nothing has been computed yet: all bits, which cudaMemset() leaves, a NaN that no operation of the device gives */
static __device__ __forceinline__ bool tc_is_missing(double x)
{
  return __double_as_longlong(x) == -1;
}
static __device__ __forceinline__ bool tc_is_missing(float x)
{
  return __float_as_int(x) == -1;
}

/* For others to find, or what others have left so */
template <typename T>
static __device__ __forceinline__ void tc_hand_over(T *to, T x)
{
  cuda::atomic_ref<T, cuda::thread_scope_device>(*to).store(tc_is_missing(x) ? T(NAN) : x, cuda::memory_order_relaxed);
}
template <typename T>
static __device__ __forceinline__ T tc_look_at(T *from)
{
  return cuda::atomic_ref<T, cuda::thread_scope_device>(*from).load(cuda::memory_order_relaxed);
}

static __device__ __forceinline__ double tc_times(double a, double x)
{
  return __dmul_rn(a, x);
}
static __device__ __forceinline__ float tc_times(float a, float x)
{
  return __fmul_rn(a, x);
}
static __device__ __forceinline__ double tc_plus(double a, double b)
{
  return __dadd_rn(a, b);
}
static __device__ __forceinline__ float tc_plus(float a, float b)
{
  return __fadd_rn(a, b);
}
static __device__ __forceinline__ double tc_over(double a, double b)
{
  return __ddiv_rn(a, b);
}
static __device__ __forceinline__ float tc_over(float a, float b)
{
  return __fdiv_rn(a, b);
}
