#include "bittcf_cluster.cuh"
#include "narrow_rows.cuh"
#include "narrow_tiles.cuh"

constexpr int tc_stage_bytes = 128; // of a row of B

struct tc_narrow_cluster_args {
  const char *rows;      // of B or its copy
  uint32_t    row_bytes; // from one to the next
  uint32_t    size;      // bytes of a buffer
  int32_t     stages;    // buffers
  int32_t     resident;  // blocks that run at the same time: as many clusters later the next one begins
  int32_t     chunks;    // of tc_stage_bytes in a row
};

/*
  The tiles of a window: the lane's elements, and where its parts of rows of B are in a buffer, two to a register, in units of 16 bytes. Eight parts of a row are moved
  within its 128 bytes, so that those of four neighbouring rows that eight lanes read at once are in different banks.
*/
template <tc_precision precision, int most, bool in_place>
struct tc_held_narrow_window {
  static constexpr int groups = tc_narrow_kind<precision>::groups, held = (most + 3) / 4 * 4;
  uint32_t             value[held];
  tc_held_places<most> at;

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_window &W, uint32_t place_first, int lane)
  {
    const int           num  = W.num_groups();
    const uint32_t      turn = 0x10001u * tc_mma_lane(lane).row;
    const tc_mask_lane  element(lane);
    tc_held_masks<most> masks;

    masks.load(T, W, lane);
    at.load(T, num, place_first, lane);
    masks.count(W, lane);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      const uint32_t mask = masks.mask_of(i), next = masks.first_of(i) + element.before(mask);

      if constexpr (groups == 4) value[i] = __ldcs(static_cast<const uint16_t *>(T.val) + next); // without an element: the next one, which there is
      else value[i] = __ldcs(static_cast<const uint32_t *>(T.val) + next);
    }
#pragma unroll
    for (int i = 0; i < (most + 7) / 8 * 4; ++i) {
      if (i % 4 == 0 && 2 * i >= num) break;
      at.place[i] = 8 * at.place[i] + (2 * at.place[i] + turn & 0x70007);
    }
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      if (!element.is_set(masks.mask_of(i))) value[i] = 0;
    }
  }

  /* Adds the product with 128 bytes of the rows in a buffer */
  __device__ __forceinline__ void multiply(int num, uint32_t staged, tc_mma_single_accumulator (&sums)[8 / tc_narrow_kind<precision>::bytes]) const
  {
    tc_narrow_step<precision, 16 / tc_narrow_kind<precision>::bytes, 1, in_place> step;

#pragma unroll
    for (int i = 0; i < held; i += groups) {
      if (i % 4 == 0 && i >= num) break;
#pragma unroll
      for (int q = 0; q < groups; ++q) {
        const uint4 four = tc_load_shared_16(tc_place_in<16>(at.place[(i + q) / 2], (i + q) % 2, staged));

        step.b[q][0][0] = four.x;
        step.b[q][0][1] = four.y;
        step.b[q][0][2] = four.z;
        step.b[q][0][3] = four.w;
        step.value[q]   = value[i + q];
      }
      step.multiply(sums);
    }
  }
};

/* 128 bytes of each row of a cluster on their way into a buffer, eight threads to a pair of rows; `from` is the thread's part of row 0 */
__device__ __forceinline__ void tc_stage_rows(uint32_t buffer, const tc_narrow_cluster_args &args, const char *from, const int32_t *list, int32_t num, int32_t num_cols)
{
  const uint32_t piece = threadIdx.x % 8;

#pragma unroll 2
  for (int32_t p = threadIdx.x / 8; p < num; p += blockDim.x / 8) {
    const uint32_t column = 2 * list[p], to = buffer + 256 * p;
    const char    *row    = from + static_cast<uint64_t>(column) * args.row_bytes;

    tc_copy_ahead_16(to + 16 * (piece + 4 * p & 7), row);
    if (column + 1 < num_cols) tc_copy_ahead_16(to + 128 + 16 * (piece + 4 * p + 2 & 7), row + args.row_bytes);
  }
}

/*
  tc_spmm_bittcf_narrow_cluster_kernel - C = A B or C += A B over the clusters of a tc_bittcf in a narrow precision. Each warp holds the tiles of a window in registers for
  all columns of B; the rows of B that the windows of a cluster share come into shared memory, 128 bytes of each at a time and ahead of their use. Structural zeros are
  multiplied, see tc_spmm_bittcf_narrow_kernel.

  Work:   a thread block per cluster, a warp per window
  Lanes:  16 bytes of two rows of B when copying; then lane 4 g + k has part g of row k of a group, and element (k, g) of its tile
  Arrays: the view; the copy of B, or B, row-major, aligned to 16 bytes; C; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster; args.stages buffers of shared memory.  Needs: sm_80.  Source: tc_spmm_bittcf_cluster_kernel, in the fragments of
          tc_spmm_bittcf_narrow_kernel
*/
template <tc_precision precision, int most, typename Output>
static __global__ void __launch_bounds__((tc_held_warps<most> * tc_warp_size), tc_held_blocks<most>) tc_spmm_bittcf_narrow_cluster_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_narrow_cluster_args args, const __grid_constant__ Output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ int32_t list[TC_BITTCF_MOST_PAIRS];
  constexpr int   elements = 16 / tc_narrow_kind<precision>::bytes;
  const int       lane = threadIdx.x % tc_warp_size, g = tc_mma_lane(lane).row;
  const int32_t   cluster = blockIdx.x, w = cluster * T.cluster_windows + threadIdx.x / tc_warp_size, v = min(w, T.num_windows - 1);
  const tc_window W           = tc_load_window(T, v);
  const uint32_t  place_first = __ldg(T.place_first + v), first_pair = __ldg(T.cluster_first + cluster);
  const int2      rows   = w == v ? tc_rows_of_sums(T, v, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
  const short2    scales = __ldg(reinterpret_cast<const short2 *>(T.exponent + TC_BITTCF_ROWS * (int64_t)v) + tc_mma_lane(lane).k);
  const int32_t   num = static_cast<int32_t>(__ldg(T.cluster_first + cluster + 1) - first_pair), num_groups = w == v ? W.num_groups() : 0;
  const uint32_t  bottom = static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), top = bottom + args.stages * args.size;
  const char     *from   = args.rows + 16 * (threadIdx.x % 8);
  uint32_t        staged = bottom, unused = top - args.size;
  tc_held_narrow_window<precision, most, Output::in_place> tiles;

  for (int32_t i = threadIdx.x; i < num; i += blockDim.x) list[i] = __ldg(T.cluster_pair + first_pair + i);
  __syncthreads();
#pragma unroll 1
  for (int32_t s = 0; s < args.stages - 1; ++s, from += tc_stage_bytes) {
    if (s < args.chunks) tc_stage_rows(bottom + s * args.size, args, from, list, num, T.num_cols);
    tc_copies_end();
  }
  if (num_groups > 0) tiles.load(T, W, place_first, lane);
  tc_prefetch_cluster(T, cluster + args.resident, lane, [&](int32_t later, const tc_window &L) { tc_prefetch_narrow_window<precision>(T, later, L, lane); });
#pragma unroll 1
  for (int32_t chunk = 0; chunk < args.chunks; ++chunk, from += tc_stage_bytes) {
    tc_mma_single_accumulator sums[elements / 2] = {};

    tc_copies_done_but(args.stages - 2);
    __syncthreads();
    if (chunk + args.stages - 1 < args.chunks) tc_stage_rows(unused, args, from, list, num, T.num_cols);
    tc_copies_end();
    tiles.multiply(num_groups, staged, sums);
    tc_put_narrow_window<precision, elements, 1>(rows, make_int2(scales.x, scales.y), 8 * elements * chunk, g, out, sums);
    unused = staged;
    staged = staged + args.size == top ? bottom : staged + args.size;
  }
}

static uint32_t tc_narrow_stage_size(const tc_bittcf *T)
{
  return 2u * tc_stage_bytes * T->widest_cluster;
}

/* Shared memory besides the buffers, of which there are two at least */
constexpr int tc_narrow_fixed_bytes = (int)sizeof(int32_t) * TC_BITTCF_MOST_PAIRS;

template <tc_precision precision, int most, typename Output>
static tc_status tc_launch_narrow_clusters(const char *name, const tc_bittcf *T, const void *rows, uint32_t row_bytes, int32_t chunks, const Output &out, cudaStream_t stream)
{
  const auto        kernel = tc_spmm_bittcf_narrow_cluster_kernel<precision, most, Output>;
  const uint32_t    size   = tc_narrow_stage_size(T);
  tc_cluster_launch launch;

  TC_CALL(tc_fit_clusters(name, kernel, tc_held_blocks<most>, (int)size, tc_narrow_fixed_bytes, &launch));
  return tc_launch_grid(name, kernel, dim3((unsigned)T->num_clusters), T->cluster_windows * tc_warp_size, launch.bytes, stream, *T, tc_narrow_cluster_args{static_cast<const char *>(rows), row_bytes, size, launch.stages, launch.resident, chunks}, out);
}

template <tc_precision precision, typename Output>
static tc_status tc_launch_clusters(const char *name, const tc_bittcf *T, const void *rows, uint32_t row_bytes, int32_t chunks, const Output &out, cudaStream_t on)
{
  return tc_by_held_groups(T, [&](auto most) { return tc_launch_narrow_clusters<precision, most>(name, T, rows, row_bytes, chunks, out, on); });
}

/* Pieces of tc_stage_bytes in a row of the copy */
static int32_t tc_narrow_chunks(const tc_bittcf *T, int32_t n)
{
  const int32_t columns = tc_stage_bytes / (int32_t)tc_value_bytes(T->precision);

  return (n + columns - 1) / columns;
}

/* The copy of B, the tops of its columns */
extern "C" size_t tc_spmm_bittcf_narrow_cluster_scratch(const void *view, int32_t n)
{
  const tc_bittcf *T = static_cast<const tc_bittcf *>(view);

  return ((size_t)T->num_cols + sizeof(int32_t) / tc_value_bytes(T->precision)) * tc_stage_bytes * tc_narrow_chunks(T, n);
}

/* Not where half of a row of the copy would be zeros, nor where a device has too little shared memory for two buffers */
extern "C" int tc_spmm_bittcf_narrow_cluster_suits(const void *view, int32_t n)
{
  const tc_bittcf *T = static_cast<const tc_bittcf *>(view);
  int              room;

  if (T->num_clusters == 0 || T->precision == TC_PRECISION_F64 || 2 * tc_value_bytes(T->precision) * n <= tc_stage_bytes) return 0;
  return tc_attribute("tc_spmm_bittcf_narrow_cluster_suits", cudaDevAttrMaxSharedMemoryPerBlockOptin, &room) == TC_OK && 2 * (int)tc_narrow_stage_size(T) + tc_narrow_fixed_bytes <= room;
}

template <tc_precision precision>
static tc_status tc_multiply_clusters(const char *name, const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf   *T       = static_cast<const tc_bittcf *>(view);
  const cudaStream_t on      = static_cast<cudaStream_t>(stream);
  const int32_t      chunks  = tc_narrow_chunks(T, args->n), width = chunks * tc_stage_bytes / tc_narrow_kind<precision>::bytes;
  char              *copy    = reinterpret_cast<char *>(args->scratch);

  if (T->num_windows == 0) return TC_OK;
  TC_CHECK(T->precision == precision, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CALL(tc_check_clusters(name, T));
  if (precision == TC_PRECISION_TF32 && args->row_major_f32) {
    tc_row_major_output out;

    TC_CALL(tc_row_major_output_of(name, T, args, &out));
    return tc_launch_clusters<TC_PRECISION_TF32>(name, T, args->b, (uint32_t)(sizeof(float) * args->ldb), chunks, out, on);
  }
  int32_t *top = reinterpret_cast<int32_t *>(copy + (size_t)tc_stage_bytes * chunks * T->num_cols);

  TC_CALL(tc_narrow_rows<precision>(name, T->num_cols, args, width, 0, top, copy, on));
  return tc_launch_clusters<precision>(name, T, copy, (uint32_t)(tc_stage_bytes * chunks), chunks, tc_scaled_output{tc_output_of(T, args, nullptr), top}, on);
}

/* Three products of parts in TF32 for one of floats */
extern "C" tc_status tc_spmm_bittcf_cluster_f32(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_clusters<TC_PRECISION_F32>("tc_spmm_bittcf_cluster_f32", view, args, stream);
}

extern "C" tc_status tc_spmm_bittcf_cluster_tf32(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_clusters<TC_PRECISION_TF32>("tc_spmm_bittcf_cluster_tf32", view, args, stream);
}

extern "C" tc_status tc_spmm_bittcf_cluster_bf16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_clusters<TC_PRECISION_BF16>("tc_spmm_bittcf_cluster_bf16", view, args, stream);
}

extern "C" tc_status tc_spmm_bittcf_cluster_f16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_clusters<TC_PRECISION_F16>("tc_spmm_bittcf_cluster_f16", view, args, stream);
}
