#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_device.cuh"
#include <cuda/atomic>

constexpr int tc_push_threads = 256, tc_push_elements = 4 /* of a thread, before there are more thread blocks than a few */, tc_push_blocks = 256 /* of a target: 512 KiB at a time */;

using tc_flag = cuda::atomic_ref<uint32_t, cuda::thread_scope_system>;

/* Until the flag is `generation`, or the one behind it */
static __device__ __forceinline__ void wait_for(const uint32_t *flag, uint32_t generation)
{
  while (static_cast<int32_t>(tc_flag(const_cast<uint32_t &>(*flag)).load(cuda::memory_order_acquire) - generation) < 0) { }
}

/*
  tc_push_kernel - half[generation % 2][place + i, j] = from[first + i, j], i < num, j < columns, by rows, of each target, or, of one column, from[row[first + i]], then its flag; then waits for
  what comes from there, if there are flags

  Work:   a row of thread blocks for each target, the last of which waits
  Lanes:  consecutive elements, which lie next to each other in the window and in the order of the list in `from`
  Arrays: targets [gridDim.y] and row on the device; arrived [gridDim.y], which the last thread block of a target sets back; windows and flags of other processes; flags [gridDim.y] or
          NULL, of this device's window, which others write
  Writes: every element of a target once; its flag once, by the last of its thread blocks, behind all of them
  Launch: grid (blocks, targets), tc_push_threads per block; who writes the flags has to run meanwhile.  Needs: sm_70, memory of other devices by CUDA IPC.  Source: the last-block pattern of CUDA's sample threadFenceReduction
*/
template <typename T>
static __global__ void __launch_bounds__(tc_push_threads) tc_push_kernel(const tc_target *__restrict__ targets, uint32_t *arrived, const int64_t *__restrict__ row, int64_t columns, const T *__restrict__ from, const uint32_t *flags, uint32_t generation)
{
  const tc_target target = targets[blockIdx.y];
  const int64_t   first = target.first * columns, num = target.num * columns;
  T              *to = static_cast<T *>(target.half[generation % 2]) + target.place * columns;

  for (int64_t i = (int64_t)blockIdx.x * tc_push_threads + threadIdx.x; i < num; i += (int64_t)gridDim.x * tc_push_threads) to[i] = from[row ? row[first + i] : first + i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(arrived + blockIdx.y, 1) != gridDim.x - 1) return;
  arrived[blockIdx.y] = 0;
  __threadfence_system();
  tc_flag(*target.flag).store(generation, cuda::memory_order_release);
  if (flags) wait_for(flags + blockIdx.y, generation);
}

/*
  tc_await_kernel - ends when all flags are `generation` or the one behind it

  Work:   a thread for each flag, by turns if there are more
  Lanes:  flags of neighbours, in their order
  Arrays: flags [num], of this device's window, which others write
  Launch: one block of tc_push_threads; who writes the flags has to run meanwhile.  Needs: sm_70.  Source: own
*/
static __global__ void __launch_bounds__(tc_push_threads) tc_await_kernel(const uint32_t *flags, int32_t num, uint32_t generation)
{
  for (int32_t k = threadIdx.x; k < num; k += tc_push_threads) wait_for(flags + k, generation);
}

/*
  tc_add_elements_kernel - to[row[i]] = to[row[i]] + from[s] + from[s'] ..., one after the other, s, s', ... = slot[first_slot[i]], ...

  Work:   a thread for each row
  Lanes:  consecutive rows of the list
  Arrays: row [num]; first_slot [num + 1]; slot; from; to; all device
  Writes: the elements of the rows, which differ, once
  Launch: tc_push_threads per block.  Needs: sm_70.  Source: what PetscSF does on the host
*/
template <typename T>
static __global__ void __launch_bounds__(tc_push_threads) tc_add_elements_kernel(int64_t num, const int64_t *__restrict__ row, const int64_t *__restrict__ first_slot, const int64_t *__restrict__ slot, const T *__restrict__ from, T *__restrict__ to)
{
  const int64_t i = (int64_t)blockIdx.x * tc_push_threads + threadIdx.x;

  if (i >= num) return;
  T sum = to[row[i]];

  for (int64_t e = first_slot[i]; e < first_slot[i + 1]; ++e) sum += from[slot[e]];
  to[row[i]] = sum;
}

/* Not by tc_launch(): no test makes these fail. The error is the launch's own */
template <typename... Parameters, typename... Arguments>
static tc_status enqueue(const char *name, void (*kernel)(Parameters...), dim3 grid, tc_stream stream, Arguments... arguments)
{
  if (grid.x == 0 || grid.y == 0) return TC_OK;
  kernel<<<grid, tc_push_threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  return tc_cuda(name, cudaGetLastError());
}

template <typename T>
static tc_status push(dim3 grid, const tc_target *targets, uint32_t *arrived, const tc_sent *sent, const uint32_t *flags, uint32_t generation, tc_stream stream)
{
  return enqueue("tc_push", tc_push_kernel<T>, grid, stream, targets, arrived, sent->row, sent->columns, static_cast<const T *>(sent->from), flags, generation);
}

extern "C" tc_status tc_push_cuda(const tc_target *targets, int32_t num_targets, int64_t most, uint32_t *arrived, const tc_sent *sent, const uint32_t *flags, uint32_t generation, tc_stream stream)
{
  const int64_t share = tc_push_threads * tc_push_elements, wanted = (most * sent->columns + share - 1) / share;
  const dim3    grid(wanted < 1 ? 1 : wanted > tc_push_blocks ? tc_push_blocks : static_cast<unsigned>(wanted), static_cast<unsigned>(num_targets));

  TC_CHECK(!sent->row || sent->columns == 1, TC_ERR_ARG, "tc_push: a list for %lld columns, it is for one", (long long)sent->columns);
  TC_CHECK(num_targets <= UINT16_MAX, TC_ERR_LIMIT, "tc_push: %d targets, a grid holds %d", num_targets, UINT16_MAX);
  return (sent->scalar == TC_SCALAR_F32 ? push<float> : push<double>)(grid, targets, arrived, sent, flags, generation, stream);
}

extern "C" tc_status tc_await_cuda(const uint32_t *flags, int32_t num, uint32_t generation, tc_stream stream)
{
  return enqueue("tc_await", tc_await_kernel, dim3(num > 0), stream, flags, num, generation);
}

template <typename T>
static tc_status add_elements(dim3 grid, int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, const void *from, void *to, tc_stream stream)
{
  return enqueue("tc_add_elements", tc_add_elements_kernel<T>, grid, stream, num, row, first_slot, slot, static_cast<const T *>(from), static_cast<T *>(to));
}

extern "C" tc_status tc_add_elements_cuda(int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, tc_scalar scalar, const void *from, void *to, tc_stream stream)
{
  const int64_t blocks = (num + tc_push_threads - 1) / tc_push_threads;

  TC_CHECK(blocks <= INT32_MAX, TC_ERR_LIMIT, "tc_add_elements: %lld thread blocks, a grid holds %d", (long long)blocks, INT32_MAX);
  return (scalar == TC_SCALAR_F32 ? add_elements<float> : add_elements<double>)(dim3(static_cast<unsigned>(blocks)), num, row, first_slot, slot, from, to, stream);
}
