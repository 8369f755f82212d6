/*
  The end of a long row, the same in every format: four warps own a segment, the last segment to arrive adds the sums of all of them up.
*/
#pragma once
#include "tc_mma.cuh"

constexpr int tc_team = 4; // warps that share a segment: 128 chains, one for each lane

/* What the segments of long rows share */
struct tc_long_rows {
  const int32_t *first;   // [long rows + 1], first segment of each
  const int32_t *row_id;  // [long rows]
  double        *partial; // [segments]
  int32_t       *arrived; // [long rows], zero before and after
};

/*
  `chain` is chain 32 * (warp of the team) + lane of segment `segment` of long row `r`. The threads of a block come here together; teams without a segment pass
  used = false. The atomic counter decides who adds, not in which order.
*/
template <int max_threads, typename V>
__device__ __forceinline__ void tc_finish_segment(double chain, bool used, int32_t segment, int32_t r, const tc_long_rows &L, const tc_output<V> &out)
{
  __shared__ double warp_sum[max_threads / tc_warp_size];
  const int         lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const double      sum32 = tc_warp_sum(chain);

  if (lane == 0) warp_sum[warp] = sum32;
  __syncthreads();
  if (warp % tc_team != 0 || !used) return;
  const int32_t first = L.first[r], num = L.first[r + 1] - first;
  double        sum  = __dadd_rn(__dadd_rn(warp_sum[warp], warp_sum[warp + 1]), __dadd_rn(warp_sum[warp + 2], warp_sum[warp + 3]));
  int           last = 0;

  if (num > 1) {
    if (lane == 0) {
      __stcg(L.partial + segment, sum);
      last = tc_arrive(L.arrived + r, 1, num);
    }
    if (!__shfl_sync(tc_full_warp, last, 0)) return;
    __syncwarp();
    sum = 0.0;
#pragma unroll 4
    for (int32_t i = lane; i < num; i += tc_warp_size) sum = __dadd_rn(sum, __ldcg(L.partial + first + i));
    sum = tc_warp_sum(sum);
  }
  if (lane == 0) {
    if (num > 1) L.arrived[r] = 0;
    tc_finish_row(sum, L.row_id[r], out);
  }
}
