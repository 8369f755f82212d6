/*
  The end of long rows in products with dense blocks: the sums of their segments, added in ascending order.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_spmm.h"

/* The last step of an element of C. Adding +0.0 turns -0.0 into +0.0, so that the result does not tell how many structural zeros were multiplied. */
__device__ __forceinline__ void tc_finish_element(double sum, double *c, bool add)
{
  sum = __dadd_rn(sum, 0.0);
  *c  = add ? __dadd_rn(*c, sum) : sum;
}

/*
  tc_add_segments_kernel - C[long_row[r], j] from partial[s * width + j] of the segments s = per * long_first[r] .. per * long_first[r + 1] - 1

  Work:   an element of C per thread
  Lanes:  consecutive columns, so partial coalesces
  Arrays: long_row [num_long], long_first [num_long + 1], partial row-major [segments, width], c column-major with leading dimension ldc; all device
  Writes: the long rows of C
  Launch: 128 threads per block, no shared memory.  Needs: sm_60.  Source: tc_spmm.h, the order of the additions
*/
static __global__ void __launch_bounds__(128, 8) tc_add_segments_kernel(int32_t num_long, const int32_t *__restrict__ long_row, const int32_t *__restrict__ long_first, int32_t per, const double *__restrict__ partial, int32_t width, int32_t n, double *c, int64_t ldc, bool add)
{
  constexpr int ahead   = 16; // sums in flight: a row of 100000 entries has 391
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int32_t r = (int32_t)(element / width), j = (int32_t)(element % width);
  double        sum = 0.0;

  if (r >= num_long || j >= n) return;
  const int32_t       num  = per * (long_first[r + 1] - long_first[r]);
  const double *const mine = partial + (int64_t)per * long_first[r] * width + j;

#pragma unroll 1
  for (int32_t s = 0; s < num; s += ahead) {
    double next[ahead];

#pragma unroll
    for (int i = 0; i < ahead; ++i) next[i] = mine[(int64_t)min(s + i, num - 1) * width];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const double further = __dadd_rn(sum, next[i]);

      sum = s + i < num ? further : sum;
    }
  }
  tc_finish_element(sum, c + long_row[r] + j * ldc, add);
}
