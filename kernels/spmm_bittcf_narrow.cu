#include "narrow_rows.cuh"
#include "narrow_tiles.cuh"

/*
  tc_spmm_bittcf_narrow_kernel - C = A B or C += A B over the windows of a tc_bittcf in a narrow precision. Structural zeros of a tile are multiplied: what is not finite
  in B may reach the other rows of a window that refers to it.

  Work:   a warp per window and 8 * elements * loads columns of B; the warps of a block own neighbouring windows, neighbouring blocks the same windows and other columns.
          Those of segments of long rows, which take longest, come first
  Lanes:  a row and a column of each tile; `elements` neighbouring columns of a row of B at a time, eight lanes side by side: which columns are the rows of which
          mma.m16n8k8 or m16n8k16 is free, and chosen so that nothing has to change lanes
  Arrays: the view; the copy of B, turned, or B, row-major; C; partial column-major; all device
  Writes: C once for each row that is not long, partial once for each segment
  Launch: 8 warps per block, no shared memory.  Needs: sm_80.  Source: Zhao et al., "Acc-SpMM", PPoPP'25, sections 3 and 4 (BitTCF, swapped operands, prefetching);
          Fan et al., "DTC-SpMM", ASPLOS'24 (which column is which)
*/
/* Warps of a block, and blocks that an SM holds: what registers allow, 64 or 80 to a thread. More warps hide more than loading rows of B ahead of their use would. */
constexpr int tc_narrow_warps = 8;
template <int columns_of_lane>
constexpr int tc_narrow_blocks = columns_of_lane <= 4 ? 4 : 3;

/* A batch of groups; what is beyond the window has no entries, and the last column, so that nothing else is read */
__device__ __forceinline__ void tc_load_batch(tc_group_batch &batch, const tc_bittcf &T, const tc_window &W, int first, int lane)
{
  const uint32_t *masks = batch.load_masks(T, W, first, lane);

  batch.entry = tc_column_entry(W, masks, min(TC_BITTCF_GROUP * first + lane, TC_BITTCF_GROUP * W.num_groups() - 1));
}

/* Adds the product of a window and the lane's columns of B to sums, of the window's rows 2 * k and 2 * k + 1. Masks and columns are loaded a batch ahead, values a step. */
template <tc_precision precision, int elements, int loads, bool in_place>
__device__ __forceinline__ void tc_narrow_window_product(const tc_bittcf &T, const tc_window &W, const tc_narrow_rows_of_lane<elements, loads, in_place> &rows, int lane, tc_mma_single_accumulator (&sums)[loads * elements / 2])
{
  constexpr int                                        groups = tc_narrow_kind<precision>::groups;
  const int                                            num = tc_uniform(W.num_groups()), k = tc_mma_lane(lane).k;
  const int32_t                                        base = W.column_base();
  const tc_mask_lane                                   at(lane);
  uint32_t                                             next = W.val, ahead[groups] = {};
  tc_group_batch                                       batch, next_batch;
  tc_narrow_step<precision, elements, loads, in_place> step;

  if (num == 0) return;
  tc_load_batch(batch, T, W, 0, lane);
  tc_load_batch(next_batch, T, W, tc_batch, lane);
  tc_load_narrow_values(step.value, batch, 0, T.val, next, at);
#pragma unroll 1
  for (int first = 0;; first += tc_batch) {
    const int left = num - first; // of this batch and what follows

#pragma unroll
    for (int i = 0; i < tc_batch; i += groups) {
      step.load_rows(batch, i, base, rows, k);
      if (i + groups == tc_batch) {
        batch = next_batch;
        tc_load_batch(next_batch, T, W, first + 2 * tc_batch, lane);
      }
      if (i + groups < left) tc_load_narrow_values(ahead, batch, (i + groups) % tc_batch, T.val, next, at);
      step.put_in_order(k);
      step.multiply(sums);
      if (i + groups >= left) return;
#pragma unroll
      for (int q = 0; q < groups; ++q) step.value[q] = ahead[q];
    }
  }
}

template <tc_precision precision, int elements, int loads, typename Output>
static __global__ void __launch_bounds__(tc_narrow_warps *tc_warp_size, tc_narrow_blocks<elements * loads>) tc_spmm_bittcf_narrow_kernel(const __grid_constant__ tc_bittcf T, const char *__restrict__ dense, uint32_t row_bytes, uint32_t turn, int32_t chunks, const __grid_constant__ Output out)
{
  const int                 lane = threadIdx.x % tc_warp_size;
  const int32_t             blocks = gridDim.x / chunks, block = (blockIdx.x / chunks + T.num_row_windows / tc_narrow_warps) % blocks;
  const int32_t             w = block * tc_narrow_warps + threadIdx.x / tc_warp_size, first = 8 * elements * loads * (blockIdx.x % chunks);
  tc_mma_single_accumulator sums[loads * elements / 2] = {};

  if (w >= T.num_windows) return;
  const tc_window W = tc_load_window(T, w);

  tc_prefetch_narrow_window<precision>(T, w, W, lane);
  tc_narrow_window_product<precision>(T, W, tc_narrow_rows_of_lane<elements, loads, Output::in_place>(dense, row_bytes, turn, tc_narrow_kind<precision>::bytes, first, lane), lane, sums);
  const short2 scales = __ldg(reinterpret_cast<const short2 *>(T.exponent + TC_BITTCF_ROWS * (int64_t)w) + tc_mma_lane(lane).k);

  tc_put_narrow_window<precision, elements, loads>(tc_rows_of_sums(T, w, lane), make_int2(scales.x, scales.y), first, tc_mma_lane(lane).row, out, sums);
}

/* Fewer warps than this leave a device idle (unmeasured: 16 for each of 128 multiprocessors); then they take fewer columns each */
constexpr int64_t tc_few_narrow_warps = 2048;

/* The pieces of the scratch: the copy of B, the tops of its columns, the sums of segments */
struct tc_narrow_scratch {
  size_t top, partial, bytes; // where they begin

  tc_narrow_scratch(const tc_bittcf *T, int32_t n)
  {
    const size_t width = tc_narrow_width(n);

    top     = tc_value_bytes(T->precision) * T->num_cols * width;
    partial = top + sizeof(int32_t) * width;
    bytes   = partial + sizeof(double) * tc_bittcf_num_slots(T) * n;
  }
};

extern "C" size_t tc_spmm_bittcf_narrow_scratch(const void *view, const tc_spmm_args *args)
{
  return tc_narrow_scratch(static_cast<const tc_bittcf *>(view), args->n).bytes;
}

template <tc_precision precision, int elements, int loads, typename Output>
static tc_status tc_launch_narrow(const char *name, const tc_bittcf *T, const void *dense, int32_t width, uint32_t row_bytes, uint32_t turn, const Output &out, cudaStream_t stream)
{
  const int32_t chunks = width / (8 * elements * loads);
  const int64_t blocks = ((int64_t)T->num_windows + tc_narrow_warps - 1) / tc_narrow_warps * chunks;

  return tc_launch(name, tc_spmm_bittcf_narrow_kernel<precision, elements, loads, Output>, blocks, tc_narrow_warps * tc_warp_size, stream, *T, static_cast<const char *>(dense), row_bytes, turn, chunks, out);
}

template <tc_precision precision>
static tc_status tc_multiply_narrow(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int           bytes     = tc_narrow_kind<precision>::bytes;
  const int32_t           width     = tc_narrow_width(args->n);
  const uint32_t          row_bytes = (uint32_t)(bytes * width), turn = row_bytes % 128 == 0 ? 32 : 0;
  const tc_narrow_scratch at(T, args->n);
  char                   *scratch = reinterpret_cast<char *>(args->scratch);
  int32_t                *top     = reinterpret_cast<int32_t *>(scratch + at.top);
  const tc_scaled_output  out     = {tc_output_of(T, args, reinterpret_cast<double *>(scratch + at.partial)), top};

  TC_CHECK(T->precision == precision, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CALL(tc_narrow_rows<precision>(name, T->num_cols, args, width, turn, top, scratch, stream));
  if (width == 16) TC_CALL((tc_launch_narrow<precision, 2, 1>(name, T, scratch, width, row_bytes, turn, out, stream)));
  else if (width == 32 || T->num_windows * (int64_t)(width / 64) < tc_few_narrow_warps) TC_CALL((tc_launch_narrow<precision, 4, 1>(name, T, scratch, width, row_bytes, turn, out, stream)));
  else TC_CALL((tc_launch_narrow<precision, 16 / bytes, bytes / 2>(name, T, scratch, width, row_bytes, turn, out, stream)));
  return tc_add_long_rows(name, T, out.to, stream);
}

static tc_status tc_multiply_row_major(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  tc_row_major_output out;

  TC_CALL(tc_row_major_output_of(name, T, args, &out));
  TC_CALL((tc_launch_narrow<TC_PRECISION_TF32, 4, 2>(name, T, args->b, args->n, (uint32_t)(sizeof(float) * args->ldb), 0, out, stream)));
  return tc_add_long_rows(name, T, out, stream);
}

/* Three products of parts in TF32 for one of floats */
extern "C" tc_status tc_spmm_bittcf_f32(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_F32>("tc_spmm_bittcf_f32", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_spmm_bittcf_tf32(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf   *T  = static_cast<const tc_bittcf *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  return args->row_major_f32 ? tc_multiply_row_major("tc_spmm_bittcf_tf32", T, args, on) : tc_multiply_narrow<TC_PRECISION_TF32>("tc_spmm_bittcf_tf32", T, args, on);
}

extern "C" tc_status tc_spmm_bittcf_bf16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_BF16>("tc_spmm_bittcf_bf16", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_spmm_bittcf_f16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_narrow<TC_PRECISION_F16>("tc_spmm_bittcf_f16", static_cast<const tc_bittcf *>(view), args, static_cast<cudaStream_t>(stream));
}
