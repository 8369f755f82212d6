#include "bittcf.cuh"
#include "tc_backend.h"
#include "tc_narrow.h"

constexpr int tc_refill_threads = 256;

/* Calls entry(place of the value, place in CSR) for the elements of a window that are the lane's: lane 4 * r + k has row r and column k of each tile */
template <typename Entry>
__device__ __forceinline__ void tc_walk_window(const tc_bittcf &T, int32_t w, int lane, const Entry &entry)
{
  const tc_window    W     = tc_load_window(T, w);
  const tc_mma_lane  at(lane);
  const tc_mask_lane bits(lane);
  const int          first = TC_BITTCF_GROUP * at.row; // the bits of the lane's row
  uint32_t           next  = W.val;
  int32_t            in_csr = __ldg(T.csr_first + TC_BITTCF_ROWS * (int64_t)w + at.row);
  tc_group_batch     batch;

  for (int begin = 0; begin < W.num_groups(); begin += tc_batch) {
    batch.load_masks(T, W, begin, lane);
#pragma unroll
    for (int i = 0; i < tc_batch; ++i) {
      const uint32_t mask = batch.mask_of(i), row = mask >> first & 0xf;

      if (bits.is_set(mask)) entry(next + bits.before(mask), in_csr + __popc(row & ((1u << at.k) - 1)));
      in_csr += __popc(row);
      next += __popc(mask);
    }
  }
}

/*
  tc_refill_bittcf_kernel - the values of a tc_bittcf from those of CSR

  Work:   a warp per window
  Lanes:  see tc_walk_window; a lane counts the entries of its row, so the place in CSR follows from the masks
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: every value once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: tc_bittcf.h
*/
static __global__ void __launch_bounds__(tc_refill_threads) tc_refill_bittcf_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ csr_val)
{
  const int32_t w = blockIdx.x * (tc_refill_threads / tc_warp_size) + threadIdx.x / tc_warp_size;

  if (w >= T.num_windows) return;
  tc_walk_window(T, w, threadIdx.x % tc_warp_size, [&](uint32_t place, int32_t in_csr) { __stcs(static_cast<double *>(T.val) + place, __ldg(csr_val + in_csr)); });
}

/*
  tc_refill_bittcf_narrow_kernel - the same in a narrow precision, and the scales of the packed rows

  Work:   a warp per window, twice: the largest magnitudes of the rows come first
  Lanes:  as above
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: every value and every exponent once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: tc_bittcf.h, tc_narrow.h
*/
template <tc_precision precision>
static __global__ void __launch_bounds__(tc_refill_threads) tc_refill_bittcf_narrow_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ csr_val)
{
  const int          lane    = threadIdx.x % tc_warp_size;
  const int32_t      w       = blockIdx.x * (tc_refill_threads / tc_warp_size) + threadIdx.x / tc_warp_size;
  unsigned long long largest = 0;

  if (w >= T.num_windows) return;
  tc_walk_window(T, w, lane, [&](uint32_t, int32_t in_csr) { largest = max(largest, static_cast<unsigned long long>(tc_finite_magnitude(__ldg(csr_val + in_csr)))); });
#pragma unroll
  for (int apart = 1; apart < TC_BITTCF_GROUP; apart *= 2) largest = max(largest, __shfl_xor_sync(tc_full_warp, largest, apart));
  const int    exponent = tc_row_scale(precision, largest);
  const double scale    = tc_power_of_two(-exponent);

  if (tc_mma_lane(lane).k == 0) T.exponent[TC_BITTCF_ROWS * (int64_t)w + tc_mma_lane(lane).row] = static_cast<int16_t>(exponent);
  tc_walk_window(T, w, lane, [&](uint32_t place, int32_t in_csr) {
    const uint32_t bits = tc_narrow_bits(precision, __dmul_rn(__ldg(csr_val + in_csr), scale));

    if constexpr (precision >= TC_PRECISION_BF16) __stcs(static_cast<uint16_t *>(T.val) + place, static_cast<uint16_t>(bits));
    else __stcs(static_cast<uint32_t *>(T.val) + place, bits);
  });
}

extern "C" tc_status tc_refill_bittcf(const void *view, const double *csr_val, tc_stream stream)
{
  static void (*const kernel_of[])(tc_bittcf, const double *) = {tc_refill_bittcf_kernel, tc_refill_bittcf_narrow_kernel<TC_PRECISION_F32>, tc_refill_bittcf_narrow_kernel<TC_PRECISION_TF32>, tc_refill_bittcf_narrow_kernel<TC_PRECISION_BF16>, tc_refill_bittcf_narrow_kernel<TC_PRECISION_F16>};
  constexpr int    warps = tc_refill_threads / tc_warp_size;
  const tc_bittcf *T     = static_cast<const tc_bittcf *>(view);

  return tc_launch("tc_refill_bittcf", kernel_of[T->precision], ((int64_t)T->num_windows + warps - 1) / warps, tc_refill_threads, static_cast<cudaStream_t>(stream), *T, csr_val);
}
