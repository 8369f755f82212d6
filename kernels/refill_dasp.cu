#include "tc_backend.h"
#include "tc_dasp.h"
#include "tc_device.cuh"

/*
  tc_refill_dasp_kernel - val[i] = csr_val[map[i]], 0 in padding

  Work:   one slot per thread
  Lanes:  consecutive slots, so map and val coalesce; csr_val is gathered, mostly in runs
  Arrays: map [num_slots]; csr_val [nnz]; val [num_slots]; all device
  Writes: every slot once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: the slot map of docs/formats.md
*/
static __global__ void tc_refill_dasp_kernel(int64_t num_slots, const int32_t *__restrict__ map, const double *__restrict__ csr_val, double *__restrict__ val)
{
  const int64_t slot = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (slot >= num_slots) return;
  val[slot] = tc_gather(csr_val, tc_load_stream(map + slot));
}

extern "C" tc_status tc_refill_dasp(const void *view, const double *csr_val, tc_stream stream)
{
  constexpr int  threads = 256;
  const tc_dasp *D       = static_cast<const tc_dasp *>(view);

  return tc_launch("tc_refill_dasp", tc_refill_dasp_kernel, (D->num_slots + threads - 1) / threads, threads, static_cast<cudaStream_t>(stream), D->num_slots, D->map, csr_val, D->val);
}
