#include "tc_backend.h"
#include "tc_device.cuh"
#include "tc_mma.cuh"

constexpr int tc_demote_threads = 256;
constexpr int tc_demote_ctas    = 528; // enough for all of an H200's bandwidth
constexpr int tc_demote_line    = 128; // bytes that are discarded at a time
constexpr int tc_demote_load    = 16;  // bytes that are read at a time

__device__ unsigned tc_demote_read; // says nothing: a load whose result is not used would be left out

/*
  tc_demote_kernel - makes the L2 cache replace an array before what was read in the ordinary way: reads it once with the priority evict_first, or discards its lines, which
  are undefined then and not written back

  Work:   a thread per line or load; one after the other if the grid has fewer
  Lanes:  consecutive lines or loads
  Arrays: bytes [num * step], aligned to the step; device
  Writes: none of them if they are to be kept, else undefined bytes
  Launch: tc_demote_threads per block, no shared memory.  Needs: sm_80.  Source: PTX ISA, cache eviction priority hints and discard.L2
*/
template <bool keep>
static __global__ void __launch_bounds__(tc_demote_threads) tc_demote_kernel(char *bytes, int64_t num)
{
  constexpr int step   = keep ? tc_demote_load : tc_demote_line;
  unsigned      all    = 0;
  const auto    policy = tc_first_to_leave();

  for (int64_t i = blockIdx.x * (int64_t)tc_demote_threads + threadIdx.x; i < num; i += gridDim.x * (int64_t)tc_demote_threads) {
    if constexpr (keep) {
      const uint4 u = tc_load_with_policy(bytes + i * step, policy);

      all ^= u.x ^ u.y ^ u.z ^ u.w;
    } else tc_discard_line(bytes + i * step);
  }
  if (keep && all == 0x9e3779b9u) tc_demote_read = all;
}

template <bool keep>
static tc_status demote(char *local, size_t bytes, tc_stream stream)
{
  constexpr size_t step = keep ? tc_demote_load : tc_demote_line;
  const size_t     skip = (step - reinterpret_cast<uintptr_t>(local) % step) % step;
  const int64_t    num = bytes < skip ? 0 : (int64_t)((bytes - skip) / step);
  const int64_t    ctas = (num + tc_demote_threads - 1) / tc_demote_threads;

  if (num == 0) return TC_OK;
  return tc_launch("tc_demote", tc_demote_kernel<keep>, ctas < tc_demote_ctas ? ctas : tc_demote_ctas, tc_demote_threads, static_cast<cudaStream_t>(stream), local + skip, num);
}

extern "C" tc_status tc_demote_cuda(void *local, size_t bytes, int keep, tc_stream stream)
{
  char *first = static_cast<char *>(local);

  return keep ? demote<true>(first, bytes, stream) : demote<false>(first, bytes, stream);
}
