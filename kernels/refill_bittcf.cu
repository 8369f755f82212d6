#include "bittcf.cuh"
#include "tc_backend.h"

/*
  tc_refill_bittcf_kernel - the values of a tc_bittcf from those of CSR

  Work:   a warp per window
  Lanes:  lane 4 * r + k takes the element of row r and column k of a tile; it counts the entries of its row, so the place in CSR follows from the masks
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: every value once
  Launch: 256 threads per block, no shared memory.  Needs: sm_60.  Source: tc_bittcf.h
*/
constexpr int tc_refill_threads = 256;

static __global__ void __launch_bounds__(tc_refill_threads) tc_refill_bittcf_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ csr_val)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t w    = blockIdx.x * (tc_refill_threads / tc_warp_size) + threadIdx.x / tc_warp_size;

  if (w >= T.num_windows) return;
  const tc_window    W     = tc_load_window(T, w);
  const tc_mma_lane  at(lane);
  const tc_mask_lane bits(lane);
  const int          first = TC_BITTCF_GROUP * at.row; // the bits of the lane's row
  uint32_t           next  = W.val;
  int32_t            entry = __ldg(T.csr_first + TC_BITTCF_ROWS * (int64_t)w + at.row);
  tc_group_batch     batch;

  for (int begin = 0; begin < W.num_groups(); begin += tc_batch) {
    batch.load_masks(T, W, begin, lane);
#pragma unroll
    for (int i = 0; i < tc_batch; ++i) {
      const uint32_t mask = batch.mask_of(i), row = mask >> first & 0xf;

      if (bits.is_set(mask)) __stcs(T.val + (next + bits.before(mask)), __ldg(csr_val + entry + __popc(row & ((1u << at.k) - 1))));
      entry += __popc(row);
      next += __popc(mask);
    }
  }
}

extern "C" tc_status tc_refill_bittcf(const void *view, const double *csr_val, tc_stream stream)
{
  constexpr int    warps = tc_refill_threads / tc_warp_size;
  const tc_bittcf *T     = static_cast<const tc_bittcf *>(view);

  return tc_launch("tc_refill_bittcf", tc_refill_bittcf_kernel, ((int64_t)T->num_windows + warps - 1) / warps, tc_refill_threads, static_cast<cudaStream_t>(stream), *T, csr_val);
}
