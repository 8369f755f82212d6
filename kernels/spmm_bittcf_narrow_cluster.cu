#include "bittcf_cluster.cuh"
#include "narrow_rows.cuh"
#include "narrow_tiles.cuh"
#include <algorithm>

constexpr int tc_stage_bytes = 128; // of a row of B

struct tc_narrow_cluster_args {
  const char *rows;      // of B or its copy
  uint32_t    row_bytes; // from one to the next
  uint32_t    size;      // bytes of a buffer
  int32_t     stages;    // buffers, at most one more than chunks
  int32_t     resident;  // blocks that run at the same time: as many clusters later the next one begins
  int32_t     chunks;    // of tc_stage_bytes in a row
};

/* Groups of a window that a warp holds at most, by the warps of a thread block */
template <int warps>
constexpr int tc_narrow_held = warps > 12 ? 40 : 44;
static_assert(TC_BITTCF_NARROW_GROUPS == 2 * tc_warp_size && TC_BITTCF_PLACES % TC_BITTCF_GROUP == 0, "the masks of those that are not held lie with the second 32; their places are named four at a time");

/*
  The tiles of a window: the lane's elements, and where its parts of rows of B are in a buffer, two to a register, in units of 16 bytes. Eight parts of a row are moved
  within its 128 bytes, so that those of four neighbouring rows that eight lanes read at once are in different banks. Groups beyond those held are loaded anew for each 128 bytes.
*/
template <tc_precision precision, int most, bool in_place>
struct tc_held_narrow_window {
  static constexpr int  groups = tc_narrow_kind<precision>::groups, held = (most + 3) / 4 * 4, elements = 16 / tc_narrow_kind<precision>::bytes;
  static constexpr bool others = most > tc_warp_size;
  using held_masks             = tc_held_masks<others ? TC_BITTCF_NARROW_GROUPS : most>;
  uint32_t             value[held], place_first;
  int                  num;
  tc_held_places<most> at;
  held_masks           masks;

  static __device__ __forceinline__ void turn(uint32_t &places, int lane)
  {
    places = 8 * places + (2 * places + 0x10001u * tc_mma_lane(lane).row & 0x70007);
  }

  /* Without an element: the next one, which there is */
  static __device__ __forceinline__ uint32_t load_value(const tc_bittcf &T, uint32_t first, uint32_t mask, const tc_mask_lane &element)
  {
    if constexpr (groups == 4) return __ldcs(static_cast<const uint16_t *>(T.val) + (first + element.before(mask)));
    else return __ldcs(static_cast<const uint32_t *>(T.val) + (first + element.before(mask)));
  }

  /* `loaded`: the masks of the window */
  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_window &W, int num_groups, uint32_t first_place, const held_masks &loaded, int lane)
  {
    const tc_mask_lane element(lane);

    num         = num_groups;
    place_first = first_place;
    masks       = loaded;
    if (num == 0) return;
    at.load(T, num, place_first, lane);
    masks.count(W, lane);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      value[i] = load_value(T, masks.first_of(i), masks.mask_of(i), element);
    }
#pragma unroll
    for (int i = 0; i < (most + 7) / 8 * 4; ++i) {
      if (i % 4 == 0 && 2 * i >= num) break;
      turn(at.place[i], lane);
    }
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      if (!element.is_set(masks.mask_of(i))) value[i] = 0;
    }
  }

  /* The lane's parts of the rows of B of some groups */
  template <int num_parts>
  static __device__ __forceinline__ void load_parts(uint4 (&part)[num_parts], const uint32_t *places, uint32_t staged)
  {
#pragma unroll
    for (int q = 0; q < num_parts; ++q) part[q] = tc_load_shared_16(tc_place_in<16>(places[q / 2], q % 2, staged));
  }

  /* As many groups as an instruction takes at a time */
  template <int num_parts>
  static __device__ __forceinline__ void multiply_parts(const uint32_t *values, const uint4 (&part)[num_parts], tc_mma_single_accumulator (&sums)[elements / 2])
  {
#pragma unroll
    for (int i = 0; i < num_parts; i += groups) {
      tc_narrow_step<precision, elements, 1, in_place> step;

#pragma unroll
      for (int q = 0; q < groups; ++q) {
        step.b[q][0][0] = part[i + q].x;
        step.b[q][0][1] = part[i + q].y;
        step.b[q][0][2] = part[i + q].z;
        step.b[q][0][3] = part[i + q].w;
        step.value[q]   = values[i + q];
      }
      step.multiply(sums);
    }
  }

  __device__ __forceinline__ void multiply_others(const tc_bittcf &T, int lane, uint32_t staged, tc_mma_single_accumulator (&sums)[elements / 2]) const
  {
    constexpr int      batch = 4;
    const tc_mask_lane element(lane);

#pragma unroll 1
    for (int i = held; i < num; i += batch) {
      const uint2 named = __ldg(reinterpret_cast<const uint2 *>(T.place + TC_BITTCF_BLOCK * (size_t)place_first + tc_bittcf_place_of(num, i, tc_mma_lane(lane).k)));
      uint32_t    values[batch], places[batch / 2] = {named.x, named.y};

#pragma unroll
      for (int q = 0; q < batch; ++q) {
        const uint32_t first = __shfl_sync(tc_full_warp, masks.first[1], (i + q) % tc_warp_size), mask = __shfl_sync(tc_full_warp, masks.mask[1], (i + q) % tc_warp_size);

        values[q] = load_value(T, first, mask, element);
        if (!element.is_set(mask)) values[q] = 0;
      }
#pragma unroll
      for (int q = 0; q < batch / 2; ++q) turn(places[q], lane);
      uint4 part[batch];

      load_parts(part, places, staged);
      multiply_parts(values, part, sums);
    }
  }

  /* Adds the product with 128 bytes of the rows in a buffer. `ahead`: parts of rows are on their way while those before are multiplied, for which there have to be registers. */
  template <bool ahead>
  __device__ __forceinline__ void multiply(const tc_bittcf &T, int lane, uint32_t staged, tc_mma_single_accumulator (&sums)[elements / 2]) const
  {
    constexpr int batch = ahead ? 4 : groups;
    uint4         part[2][batch];

    if (ahead && num > 0) load_parts(part[0], at.place, staged);
#pragma unroll
    for (int i = 0; i < held; i += batch) {
      if (i % 4 == 0 && i >= num) break;
      if (!ahead) load_parts(part[i / batch % 2], at.place + i / 2, staged);
      else if (i + batch < held && i + batch < num) load_parts(part[(i / batch + 1) % 2], at.place + (i + batch) / 2, staged);
      multiply_parts(value + i, part[i / batch % 2], sums);
    }
    if constexpr (others) multiply_others(T, lane, staged, sums);
  }
};

/*
  128 bytes of each row of a cluster on their way into a buffer, eight threads to two rows; `from` is the thread's part of row 0, `list` an address in shared memory. What a
  thread's rows have in common is computed once, and by hand: the compiler took 25 instructions for each 16 bytes.
*/
template <int warps>
__device__ __forceinline__ void tc_stage_rows(uint32_t buffer, uint32_t row_bytes, const char *from, uint32_t list, int32_t num)
{
  constexpr int  step = warps * tc_warp_size / 8; // pairs of rows
  const uint32_t piece = threadIdx.x % 8, first = threadIdx.x / 8, turned = piece + 4 * first & 7;
  uint32_t       to = buffer + 2 * tc_stage_bytes * first + 16 * turned, second = to - 16 * turned + tc_stage_bytes + 16 * (turned + 2 & 7);
  int32_t        left = num - 2 * static_cast<int32_t>(first);

  static_assert(step % 2 == 0, "all rows of a thread are turned alike");
  list += 2 * sizeof(int32_t) * first;
  tc_keep(from);
#pragma unroll 1
  for (; left > 0; left -= 4 * step, list += 4 * sizeof(int32_t) * step, to += 4 * tc_stage_bytes * step, second += 4 * tc_stage_bytes * step) {
    uint2 columns[2];

#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i == 0 || left > 2 * step * i) columns[i] = tc_load_shared_8(list + 2 * sizeof(int32_t) * step * i);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (left > 2 * step * i) tc_copy_ahead_16(to + 2 * tc_stage_bytes * step * i, from + static_cast<uint64_t>(columns[i].x) * row_bytes);
      if (left > 2 * step * i + 1) tc_copy_ahead_16(second + 2 * tc_stage_bytes * step * i, from + static_cast<uint64_t>(columns[i].y) * row_bytes);
    }
  }
}

/* What a thread block knows of the lists of its clusters: of this one and the next, and where those of four begin and end */
struct __align__(8) tc_narrow_lists {
  int32_t  list[2][TC_BITTCF_MOST_LISTED];
  uint32_t bounds[4][2];
};

/*
  What a thread block brings into shared memory: the rows of B of one cluster after the other, 128 bytes of each at a time. With the first of a cluster's come the list of the
  next cluster and the bounds of the one after that, which are needed as many buffers later at least.
*/
struct tc_narrow_stream {
  int32_t  cluster, chunk, num; // rows of the cluster
  uint32_t turn;

  /* Bounds and list of the block's first cluster, bounds of the second: there after the next barrier */
  __device__ __forceinline__ void begin(const tc_bittcf &T, tc_narrow_lists &L)
  {
    const uint32_t first = __ldg(T.cluster_first + blockIdx.x), num = __ldg(T.cluster_first + blockIdx.x + 1) - first;

    cluster = blockIdx.x;
    chunk   = 0;
    turn    = 0;
    for (uint32_t i = threadIdx.x; i < num; i += blockDim.x) L.list[0][i] = __ldg(T.cluster_list + first + i);
    if (threadIdx.x < 4 && cluster + threadIdx.x / 2 * gridDim.x < T.num_clusters) L.bounds[threadIdx.x / 2][threadIdx.x % 2] = __ldg(T.cluster_first + cluster + threadIdx.x / 2 * gridDim.x + threadIdx.x % 2);
  }

  /* Once between two barriers: the next rows on their way into a buffer. `from` is the thread's part of row 0. */
  template <int warps>
  __device__ __forceinline__ void stage(const tc_bittcf &T, const tc_narrow_cluster_args &args, tc_narrow_lists &L, const char *from, uint32_t buffer)
  {
    if (chunk == args.chunks) {
      cluster += gridDim.x;
      chunk = 0;
      ++turn;
    }
    if (chunk == 0) num = cluster < T.num_clusters ? static_cast<int32_t>(L.bounds[turn % 4][1] - L.bounds[turn % 4][0]) : 0;
    tc_stage_rows<warps>(buffer, args.row_bytes, from + tc_stage_bytes * chunk, static_cast<uint32_t>(__cvta_generic_to_shared(L.list[turn % 2])), num);
    if (chunk++ == 0) copy_lists(T, L);
    tc_copies_end();
  }

  __device__ __forceinline__ void copy_lists(const tc_bittcf &T, tc_narrow_lists &L) const
  {
    const int32_t next = cluster + gridDim.x, later = next + gridDim.x;

    if (next < T.num_clusters) {
      const uint32_t first = L.bounds[(turn + 1) % 4][0], num = L.bounds[(turn + 1) % 4][1] - first;

      for (uint32_t i = threadIdx.x; i < num; i += blockDim.x) tc_copy_ahead_4(&L.list[(turn + 1) % 2][i], T.cluster_list + first + i);
    }
    if (threadIdx.x < 2 && later < T.num_clusters) tc_copy_ahead_4(&L.bounds[(turn + 2) % 4][threadIdx.x], T.cluster_first + later + threadIdx.x);
  }
};

/* What a warp will read of a window, into the L2 cache: all that it waits for is one latency after the other otherwise */
template <tc_precision precision>
__device__ __forceinline__ void tc_prefetch_cluster_window(const tc_bittcf &T, const tc_cluster_window &later, int lane)
{
  constexpr int line = 128 / (int)sizeof(uint16_t);

  tc_prefetch_narrow_window<precision>(T, later.w, later.W, lane);
  if (line * lane < TC_BITTCF_BLOCK * tc_bittcf_place_blocks(later.W.num_groups())) tc_prefetch(T.place + TC_BITTCF_BLOCK * (size_t)later.place_first + line * lane);
}

/*
  tc_spmm_bittcf_narrow_cluster_kernel - C = A B or C += A B over the clusters of a tc_bittcf in a narrow precision. Each warp holds the tiles of a window in registers for
  all columns of B; the rows of B that the windows of a cluster share come into shared memory, 128 bytes of each at a time and ahead of their use, those of the next cluster
  following those of one. Structural zeros are multiplied, see tc_spmm_bittcf_narrow_kernel.

  Work:   a thread block per cluster, and with `onward` then for the one gridDim.x later; a warp per window
  Lanes:  16 bytes of a row of B when copying; then lane 4 g + k has part g of row k of a group, and element (k, g) of its tile
  Arrays: the view; the copy of B, or B, row-major, aligned to 16 bytes; C; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster; args.stages buffers of shared memory.  Needs: sm_80.  Source: tc_spmm_bittcf_cluster_kernel, in the fragments of
          tc_spmm_bittcf_narrow_kernel
*/
template <tc_precision precision, int most, int warps, bool onward, typename Output>
static __global__ void __launch_bounds__(warps *tc_warp_size, tc_held_blocks<most>) tc_spmm_bittcf_narrow_cluster_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_narrow_cluster_args args, const __grid_constant__ Output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ tc_narrow_lists lists;
  using held_window = tc_held_narrow_window<precision, most, Output::in_place>;
  constexpr int  elements = held_window::elements;
  constexpr bool ahead = warps <= 12 && precision != TC_PRECISION_F32;
  const int      lane = threadIdx.x % tc_warp_size, g = tc_mma_lane(lane).row;
  const uint32_t bottom = static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), top = bottom + args.stages * args.size;
  const char    *from   = args.rows + 16 * (threadIdx.x % 8);
  uint32_t       staged = bottom, unused = top - args.size;
  tc_narrow_stream                 stream;
  held_window                      tiles;
  typename held_window::held_masks masks;

  // the only cluster of a block: the window is on its way while the list is, and rows of B wait for neither it nor its masks; blocks that go on were 1 to 2% slower so
  if (onward) stream.begin(T, lists);
  tc_cluster_window now(T, blockIdx.x);

  if (onward) masks.load(T, now.W, lane);
  else stream.begin(T, lists);
  __syncthreads();
#pragma unroll 1
  for (int32_t s = 0; s < args.stages - 1; ++s) stream.stage<warps>(T, args, lists, from, bottom + s * args.size);
  if (!onward) masks.load(T, now.W, lane);
#pragma unroll 1
  for (int32_t cluster = blockIdx.x; cluster < T.num_clusters; cluster += gridDim.x) {
    const int32_t v = max(now.w, 0);

    tiles.load(T, now.W, now.W.num_groups(), now.place_first, masks, lane);
    const int2              rows   = now.w == v ? tc_rows_of_sums(T, v, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
    const short2            scales = __ldg(reinterpret_cast<const short2 *>(T.exponent + TC_BITTCF_ROWS * (int64_t)v) + tc_mma_lane(lane).k);
    const tc_cluster_window next(T, onward ? cluster + gridDim.x : T.num_clusters);

    if (!onward) tc_prefetch_cluster(T, cluster + args.resident, lane, [&](int32_t later, const tc_window &L) { tc_prefetch_narrow_window<precision>(T, later, L, lane); });
#pragma unroll 1
    for (int32_t chunk = 0; chunk < args.chunks; ++chunk) {
      tc_mma_single_accumulator sums[elements / 2] = {};

      tc_copies_done_but(args.stages - 2);
      __syncthreads();
      stream.stage<warps>(T, args, lists, from, unused);
      if (onward && chunk + 1 == args.chunks) masks.load(T, next.W, lane);
      tiles.template multiply<ahead>(T, lane, staged, sums);
      tc_put_narrow_window<precision, elements, 1>(rows, make_int2(scales.x, scales.y), 8 * elements * chunk, g, out, sums);
      if (onward && chunk == 0 && next.w >= 0) tc_prefetch_cluster_window<precision>(T, next, lane);
      unused = staged;
      staged = staged + args.size == top ? bottom : staged + args.size;
    }
    if (!onward) return;
    now = next;
  }
}

static uint32_t tc_narrow_stage_size(const tc_bittcf *T)
{
  return tc_stage_bytes * T->widest_cluster;
}

/* Shared memory besides the buffers, of which there are two at least */
constexpr int tc_narrow_fixed_bytes = (int)sizeof(tc_narrow_lists);

template <tc_precision precision, int most, int warps, typename Output>
static tc_status tc_launch_narrow_clusters(const char *name, const tc_bittcf *T, const void *rows, uint32_t row_bytes, int32_t chunks, const Output &out, cudaStream_t stream)
{
  constexpr bool    onward = warps > 12 && tc_held_blocks<most> == 1; // what else was measured was slower, docs/performance-narrow.md
  constexpr auto    kernel = tc_spmm_bittcf_narrow_cluster_kernel<precision, most, warps, onward, Output>;
  const uint32_t    size   = tc_narrow_stage_size(T);
  tc_cluster_launch launch;

  TC_CALL(tc_allow_shared<kernel>(name));
  TC_CALL(tc_fit_clusters(name, tc_held_blocks<most>, (int)size, tc_narrow_fixed_bytes, &launch));
  return tc_launch_grid(name, kernel, false, dim3((unsigned)(onward ? std::min(T->num_clusters, launch.resident) : T->num_clusters)), T->cluster_windows * tc_warp_size, launch.bytes, stream, *T, tc_narrow_cluster_args{static_cast<const char *>(rows), row_bytes, size, std::min(launch.stages, chunks + 1), launch.resident, chunks}, out);
}

template <tc_precision precision, typename Output>
static tc_status tc_launch_clusters(const char *name, const tc_bittcf *T, const void *rows, uint32_t row_bytes, int32_t chunks, const Output &out, cudaStream_t on)
{
  if (T->cluster_windows == 12) return tc_launch_narrow_clusters<precision, tc_narrow_held<12>, 12>(name, T, rows, row_bytes, chunks, out, on);
  if (T->widest_window <= 12) return tc_launch_narrow_clusters<precision, 12, 16>(name, T, rows, row_bytes, chunks, out, on);
  if (T->widest_window <= 24) return tc_launch_narrow_clusters<precision, 24, 16>(name, T, rows, row_bytes, chunks, out, on);
  return tc_launch_narrow_clusters<precision, tc_narrow_held<16>, 16>(name, T, rows, row_bytes, chunks, out, on);
}

/* Pieces of tc_stage_bytes in a row of the copy */
static int32_t tc_narrow_chunks(const tc_bittcf *T, int32_t n)
{
  const int32_t columns = tc_stage_bytes / (int32_t)tc_value_bytes(T->precision);

  return (n + columns - 1) / columns;
}

/* The copy of B, the tops of its columns */
extern "C" size_t tc_spmm_bittcf_narrow_cluster_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_bittcf *T = static_cast<const tc_bittcf *>(view);

  return ((size_t)T->num_cols + sizeof(int32_t) / tc_value_bytes(T->precision)) * tc_stage_bytes * tc_narrow_chunks(T, args->n);
}

/* Not where half of a row of the copy would be zeros, nor where a device has too little shared memory for two buffers */
extern "C" int tc_spmm_bittcf_narrow_cluster_suits(const void *view, int32_t n)
{
  const tc_bittcf      *T = static_cast<const tc_bittcf *>(view);
  const tc_device_size *size;

  if (T->num_clusters == 0 || T->precision == TC_PRECISION_F64 || 2 * tc_value_bytes(T->precision) * n <= tc_stage_bytes) return 0;
  return tc_size_of_device("tc_spmm_bittcf_narrow_cluster_suits", &size) == TC_OK && 2 * (int)tc_narrow_stage_size(T) + tc_narrow_fixed_bytes <= size->block_bytes;
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
