#include "tc_backend.h"
#include "tc_bcsr.h"
#include "tc_device.cuh"

constexpr int tc_refill_threads = 256;

/*
  tc_row_exponents_kernel - the exponents that the rows of a tc_bcsr are divided by

  Work:   a warp per row, also those that fill up the last window
  Lanes:  consecutive entries
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: every row exponent once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: tc_bcsr.h
*/
static __global__ void __launch_bounds__(tc_refill_threads) tc_row_exponents_kernel(const __grid_constant__ tc_bcsr T, const double *__restrict__ csr_val)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t row  = blockIdx.x * (tc_refill_threads / tc_warp_size) + threadIdx.x / tc_warp_size;
  uint64_t      largest = 0;

  if (row >= TC_BCSR_ROWS * T.num_windows) return;
  if (row < T.num_rows) {
    for (int64_t e = __ldg(T.row_ptr + row) + lane; e < __ldg(T.row_ptr + row + 1); e += tc_warp_size) largest = max(largest, tc_finite_magnitude(__ldg(csr_val + e)));
  }
  largest = tc_warp_largest(largest);
  if (lane == 0) T.row_exponent[row] = static_cast<int16_t>(tc_row_scale(T.precision, largest));
}

/*
  tc_refill_bcsr_kernel - the values of a tc_bcsr from those of CSR, divided and rounded

  Work:   a warp per piece
  Lanes:  8 consecutive slots each: rows g and g + 8 of a tile
  Arrays: the view with its row exponents; csr_val [num_nonzeros]; all device
  Writes: every value once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: tc_bcsr.h
*/
static __global__ void __launch_bounds__(tc_refill_threads) tc_refill_bcsr_kernel(const __grid_constant__ tc_bcsr T, const double *__restrict__ csr_val)
{
  constexpr int mine = TC_BCSR_SLOTS / tc_warp_size;
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t p    = blockIdx.x * (tc_refill_threads / tc_warp_size) + threadIdx.x / tc_warp_size;

  if (p >= T.num_pieces) return;
  const tc_bcsr_piece P        = T.piece[p];
  const int16_t      *exponent = T.row_exponent + TC_BCSR_ROWS * (int64_t)P.window + lane / 4;
  const double        upper = tc_power_of_two(-exponent[0]), lower = tc_power_of_two(-exponent[TC_BCSR_ROWS / 2]);

  for (int s = 0; s < P.num_sparse + P.num_dense; ++s) {
    const int64_t slot = TC_BCSR_SLOTS * ((int64_t)P.tile + s) + mine * lane;

#pragma unroll
    for (int i = 0; i < mine; ++i) {
      const int32_t entry = tc_load_stream(T.map + slot + i);

      T.val[slot + i] = entry >= 0 ? static_cast<uint16_t>(tc_narrow_bits(T.precision, __dmul_rn(__ldg(csr_val + entry), i / 2 % 2 == 0 ? upper : lower))) : 0;
    }
  }
}

extern "C" tc_status tc_refill_bcsr(const void *view, const double *csr_val, tc_stream stream)
{
  constexpr int      warps = tc_refill_threads / tc_warp_size;
  const tc_bcsr     *T     = static_cast<const tc_bcsr *>(view);
  const cudaStream_t on    = static_cast<cudaStream_t>(stream);

  TC_CALL(tc_launch("tc_refill_bcsr", tc_row_exponents_kernel, (TC_BCSR_ROWS * (int64_t)T->num_windows + warps - 1) / warps, tc_refill_threads, on, *T, csr_val));
  return tc_launch("tc_refill_bcsr", tc_refill_bcsr_kernel, ((int64_t)T->num_pieces + warps - 1) / warps, tc_refill_threads, on, *T, csr_val);
}
