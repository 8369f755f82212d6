#include "refill.cuh"

/*
  tc_refill_kernel - slot_val[i] = csr_val[map[i]], 0 in padding

  Work:   one slot per thread
  Lanes:  consecutive slots, so map and slot_val coalesce; csr_val is gathered, mostly in runs
  Arrays: map [num_slots]; csr_val [nnz]; slot_val [num_slots]; all device
  Writes: every slot once
  Launch: 256 threads per block, no shared memory.  Needs: sm_60.  Source: the slot map of docs/formats.md
*/
static __global__ void tc_refill_kernel(int64_t num_slots, const int32_t *__restrict__ map, const double *__restrict__ csr_val, double *__restrict__ slot_val)
{
  const int64_t slot = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (slot >= num_slots) return;
  slot_val[slot] = tc_gather(csr_val, tc_load_stream(map + slot));
}

tc_status tc_refill(int64_t num_slots, const int32_t *map, const double *csr_val, double *slot_val, tc_stream stream)
{
  constexpr int threads = 256;

  return tc_launch("tc_refill", tc_refill_kernel, (num_slots + threads - 1) / threads, threads, static_cast<cudaStream_t>(stream), num_slots, map, csr_val, slot_val);
}
