/*
  Clusters of a tc_bittcf in double precision: what the kernel of small windows and that of all others do in the same way.
*/
#pragma once
#include "bittcf_cluster.cuh"
#include <utility>

constexpr int tc_stage_columns = 16; // of B that are in shared memory together

struct tc_cluster_args {
  const double *b;
  int64_t       ldb;
  uint32_t      pitch;    // bytes from one column of B to the next in shared memory: four neighbouring rows of eight columns are in different banks
  int32_t       stages;   // buffers
  int32_t       resident; // blocks that run at the same time: as many clusters later the next one begins
};

/* The tiles of a window: the lane's elements, and where its rows of B are in shared memory, in units of 8 bytes. `ahead`: its rows of B for one group are loaded while another is multiplied. */
template <int most, bool ahead>
struct tc_held_window {
  double               value[most];
  tc_held_places<most> at;

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_window &W, uint32_t place_first, int lane)
  {
    const int           num = W.num_groups();
    const tc_mask_lane  element(lane);
    tc_held_masks<most> masks;

    masks.load(T, W, lane);
    at.load(T, num, place_first, lane);
    masks.count(W, lane);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      const uint32_t mask = masks.mask_of(i), next = masks.first_of(i);

      value[i] = __ldcs(static_cast<const double *>(T.val) + (next + element.before(mask))); // without an element: the next one, which there is
    }
#pragma unroll
    for (int i = 0; i < most; ++i) { // not before all of them are on their way
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      if (!element.is_set(masks.mask_of(i))) value[i] = 0.0;
    }
  }

  /* Adds the product of the first `num` groups with 16 columns of B, `num` more than 0; `staged` is where the lane's first column begins */
  __device__ __forceinline__ void multiply(int num, uint32_t staged, uint32_t pitch, tc_mma_tall_accumulator &sums) const
  {
    double b[2][2];

    if (ahead) fetch<0>(staged, pitch, b);
    multiply_each(std::make_integer_sequence<int, most>(), num, staged, pitch, b, sums);
  }

private:
  template <int i>
  __device__ __forceinline__ void fetch(uint32_t staged, uint32_t pitch, double (&b)[2][2]) const
  {
    const uint32_t from = tc_place_in<8>(at.place[i / 2], i % 2, staged);

    b[i % 2][0] = tc_load_shared(from);
    b[i % 2][1] = tc_load_shared(from + 8 * pitch);
  }

  /* Group i; is there another one? */
  template <int i>
  __device__ __forceinline__ bool multiply_one(int num, uint32_t staged, uint32_t pitch, double (&b)[2][2], tc_mma_tall_accumulator &sums) const
  {
    constexpr int fetched = i + ahead;
    const bool    more    = fetched % TC_BITTCF_GROUP != 0 || fetched < num;

    if (!more && !ahead) return false;
    if constexpr (fetched < most) {
      if (more) fetch<fetched>(staged, pitch, b);
    }
    tc_mma_m16n8k4(sums, b[i % 2][0], b[i % 2][1], value[i]);
    return more;
  }

  template <int... i>
  __device__ __forceinline__ void multiply_each(std::integer_sequence<int, i...>, int num, uint32_t staged, uint32_t pitch, double (&b)[2][2], tc_mma_tall_accumulator &sums) const
  {
    (multiply_one<i>(num, staged, pitch, b, sums) && ...);
  }
};

/* A pair of rows of B, `columns` of its columns on their way into a buffer, from `from` to `to`. `aligned`: pairs are 16 aligned bytes; `single`: B has one row of it only. */
template <bool aligned>
__device__ __forceinline__ void tc_stage_pair(const tc_cluster_args &args, const double *from, uint32_t to, bool single, int32_t columns)
{
  if (aligned && columns >= tc_stage_columns && !single) {
#pragma unroll
    for (int j = 0; j < tc_stage_columns; ++j, from += args.ldb, to += args.pitch) tc_copy_ahead_16(to, from);
  } else {
#pragma unroll 1
    for (int j = 0; j < min(columns, tc_stage_columns); ++j, from += args.ldb, to += args.pitch) {
      tc_copy_ahead_8(to, from);
      if (!single) tc_copy_ahead_8(to + 8, from + 1);
    }
  }
}

/* The pairs that a thread brings, two of each four rows that are listed, every `threads`-th of them; -1: none */
template <int num_pairs>
__device__ __forceinline__ void tc_find_pairs(const tc_bittcf &T, int32_t cluster, int thread, int threads, int32_t (&pairs)[num_pairs])
{
  const uint32_t first = __ldg(T.cluster_first + cluster);
  const int32_t  num   = 2 * static_cast<int32_t>(__ldg(T.cluster_first + cluster + 1) - first);

#pragma unroll
  for (int r = 0; r < num_pairs; ++r) {
    const int32_t i = thread + r * threads, pair = i < num ? 2 * __ldg(T.cluster_list + first + i / 2) + i % 2 : -1;

    pairs[r] = 2 * pair < T.num_cols ? pair : -1; // the last four need not be there all
  }
}

/* 16 columns of C of a window; `to` is the lane's first element if `whole`, which says that all lanes' sums are pairs of rows */
__device__ __forceinline__ void tc_put_stage(int2 rows, int32_t column, bool whole, double *to, const tc_dense_output &out, const tc_mma_tall_accumulator (&sums)[1])
{
  const int g = tc_mma_lane(threadIdx.x % tc_warp_size).row;

  if (whole && column + tc_stage_columns <= out.n) {
    tc_put_pair(to, sums[0].c[0], sums[0].c[1]);
    tc_put_pair(to + 8 * out.ldc, sums[0].c[2], sums[0].c[3]);
  } else tc_put_window<1, 2>(rows, column + g, 8, tc_stage_columns, out, sums);
}

static inline uint32_t tc_cluster_pitch(const tc_bittcf *T)
{
  return sizeof(double) * ((TC_BITTCF_GROUP * T->widest_cluster + 11) / 16 * 16 + 4);
}

static inline bool tc_pairs_are_aligned(const tc_spmm_args *args)
{
  return args->ldb % 2 == 0 && reinterpret_cast<uintptr_t>(args->b) % 16 == 0;
}

/* The product where a window has more than TC_BITTCF_FEW_GROUPS groups or clusters have 12 windows; spmm_bittcf_cluster_specialized.cu */
tc_status tc_spmm_bittcf_cluster_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream);
