#include "hybrid.cuh"
#include "long_rows.cuh"
#include "tc_backend.h"

/*
  tc_spmv_hybrid_kernel - z = A x or z = y + A x or z = y - A x, all row classes of a tc_hybrid in one launch

  Work:   thread blocks are dealt out to segments of long rows first, a team of four warps each, then to slices, then to empty rows. Wide slices (mma only) have a
          block each, a warp owns 8 of the 32 rows; other slices have a warp each
  Lanes:  a lane owns a row; in wide slices entries 4i .. 4i + 3 of 8 rows are the A fragment of m8n8k4, B holds x gathered for the same entries, so row g's sum is
          C[g][g]
  Arrays: the device view of the matrix; x [num_cols]; y (may be NULL, may be z), z [num_rows]; all device
  Writes: z once for each row; partial and arrived for long rows (long_rows.cuh). Two products with one matrix must not overlap.
  Launch: 128 (mma), 128 or 512 (fma) threads per block, a few words of shared memory.  Needs: sm_60, mma sm_80.  Source: tc_hybrid.h, docs/formats.md; diagonal of a tensor-core tile: Lu and
          Liu, SC'23, section 3
*/
constexpr int tc_hybrid_mma_threads = 32 * tc_team; // a slice or a segment per block
constexpr int tc_hybrid_fma_threads = 1024;         // at most
constexpr int tc_local_threads      = 128;
constexpr int tc_scattered_threads  = 512; // a large block keeps the x of neighbouring rows in one L1 cache

/* Measured on an H200 (docs/performance.md) */
constexpr int32_t tc_few_slices = 4096;
constexpr int64_t tc_wide_mean  = 16; // slots per row

/*
  The kernel's ways: fragments of a slice whose loads are in flight together, none for scalar lanes; whether there may be values of 16 bits, which are kept out of the
  other ways because they cost registers; the threads of a block and the blocks that registers have to leave room for. Registers are warps: 32 for scalar lanes, whose
  blocks may be of any size, 40 with segments of 16 bits, 64 for fragments, or 40 with half of them in flight (one_crowded_wave()).
*/
template <bool segments>
struct tc_hybrid_fma {
  static constexpr int  batch = 0, max_threads = tc_hybrid_fma_threads, min_blocks = 2048 / tc_hybrid_fma_threads;
  static constexpr bool with_16_bits = false;
};

template <bool segments>
struct tc_hybrid_fma_16bit {
  static constexpr int  batch = 0, max_threads = segments ? tc_scattered_threads : tc_hybrid_fma_threads, min_blocks = segments ? 3 : 2048 / tc_hybrid_fma_threads;
  static constexpr bool with_16_bits = true;
};

template <bool segments>
struct tc_hybrid_mma {
  static constexpr int  batch = 4, max_threads = tc_hybrid_mma_threads, min_blocks = 8;
  static constexpr bool with_16_bits = false;
};

template <bool segments>
struct tc_hybrid_mma_16bit : tc_hybrid_mma<segments> {
  static constexpr bool with_16_bits = true;
};

template <bool segments>
struct tc_hybrid_mma_crowded {
  static constexpr int  batch = 2, max_threads = tc_hybrid_mma_threads, min_blocks = 12;
  static constexpr bool with_16_bits = false;
};

struct tc_hybrid_grid {
  int32_t segments_end, wide_end, slices_end; // thread blocks up to and including
  int32_t num_wide;                           // slices that have a block each, always 0 for fma
};

/* The columns of a lane's row are relative to this */
__device__ __forceinline__ int32_t tc_origin(const tc_hybrid &H, int32_t row)
{
  return H.row_group > 1 ? row - row % H.row_group : row;
}

/* The sum of the row that this lane owns, places being 4 */
template <tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ double tc_row_sum(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int32_t origin, int lane, const double *x)
{
  const char *block = tc_index_block(H, S.index);
  const char *val   = tc_value_base(H, S.val);
  double      sum   = 0.0;

#pragma unroll 1
  for (int k = 0; k < length; k += 4, block += tc_block_bytes<index_kind>) {
    tc_columns4<index_kind> columns;
    tc_values4<value_kind>  values;
    double                  gathered[4];

    columns.load(block, lane);
    values.load(val, k, length, lane);
#pragma unroll
    for (int p = 0; p < 4; ++p) gathered[p] = k + p < length ? __ldg(x + columns.column(p, origin)) : 0.0;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (k + p < length) sum = fma(values.value(H, p), gathered[p], sum);
    }
  }
  return sum;
}

/* The same for slices of one or two entries */
template <tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ double tc_short_row_sum(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int32_t origin, int lane, const double *x)
{
  const char *block = tc_index_block(H, S.index);
  const char *val   = tc_value_base(H, S.val);
  double      sum   = 0.0;

#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (k < length) sum = fma(tc_value<value_kind>(H, val, 0, k, lane, S.width), __ldg(x + tc_column<index_kind>(block, lane, k, S.width, origin)), sum);
  }
  return sum;
}

/*
  Rows 8 * quarter .. 8 * quarter + 7 of a wide slice, by one warp; the lane's row `row` of the slice has `length` entries, the longest of the eight `longest`. The next
  columns travel together with the present values and their x: one latency for 4 * batch entries of a row instead of two.
*/
template <int batch, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ void tc_quarter_sums(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int longest, int32_t origin, int row, int place, const double *x, tc_mma_accumulator &acc)
{
  const char *block = tc_index_block(H, S.index);
  const char *val   = tc_value_base(H, S.val);
  int32_t     column[batch];

  auto load_columns = [&](int k) {
#pragma unroll
    for (int i = 0; i < batch; ++i) column[i] = k + 4 * i + place < length ? tc_column<index_kind>(block + i * tc_block_bytes<index_kind>, row, place, 4, origin) : TC_HYBRID_PAD;
    block += batch * tc_block_bytes<index_kind>;
  };

  load_columns(0);
#pragma unroll 1
  for (int k = 0; k < longest; k += 4 * batch) {
    double value[batch], gathered[batch];

#pragma unroll
    for (int i = 0; i < batch; ++i) gathered[i] = tc_gather(x, column[i]);
#pragma unroll
    for (int i = 0; i < batch; ++i) value[i] = k + 4 * i + place < length ? tc_value<value_kind>(H, val, k + 4 * i, place, row, 4) : 0.0;
    load_columns(k + 4 * batch);
#pragma unroll
    for (int i = 0; i < batch; ++i) tc_mma_m8n8k4(acc, value[i], gathered[i]);
  }
}

/*
  A warp of a team adds up its 32 of the 128 chains of a segment: chain 32 * warp + lane in lane `lane`. Scalar in both kernels: with fragments, four accumulators and
  their registers made long rows slower (0.232 against 0.196 ms on 60000 rows of 1153, H200).
*/
template <tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ double tc_segment_sum(const tc_hybrid &H, const tc_hybrid_segment &S, int warp, int lane, const double *x)
{
  const char *block = tc_index_block(H, S.index) + warp * tc_block_bytes<index_kind>;
  const char *val   = tc_value_base(H, S.val);
  const int   place = lane / 8, first = 4 * (lane % 8); // entries 4 * lane .. 4 * lane + 3 of a block are this place of lanes first .. first + 3
  double      chain = 0.0;

#pragma unroll 1
  for (int e = TC_HYBRID_BLOCK * warp; e < S.entries; e += TC_HYBRID_BLOCK * tc_team, block += tc_team * tc_block_bytes<index_kind>) {
#pragma unroll
    for (int q = 0; q < 4; q += 2) { // two at a time: 32 registers
      double value[2], gathered[2];

#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const bool used = e + 4 * lane + q + p < S.entries;

        value[p]    = used ? tc_value<value_kind>(H, val, e / tc_warp_size, place, first + q + p, 4) : 0.0;
        gathered[p] = used ? __ldg(x + tc_column<index_kind>(block, first + q + p, place, 4, 0)) : 0.0;
      }
#pragma unroll
      for (int p = 0; p < 2; ++p) chain = fma(value[p], gathered[p], chain);
    }
  }
  return chain;
}

template <typename way>
__device__ __forceinline__ void tc_wide_slice(const tc_hybrid &H, int32_t s, const tc_hybrid_slice &S, int quarter, int lane, const double *x, const tc_output &out)
{
  if (8 * quarter >= S.num_rows) return;
  const tc_mma_lane  at(lane);
  const int          r      = 8 * quarter + at.row;
  const bool         used   = r < S.num_rows;
  const int          length = S.full ? S.width : used ? H.length[tc_warp_size * s + r] : 0, longest = S.full ? S.width : tc_warp_max(length);
  const int32_t      row    = S.row >= 0 ? S.row + r : used ? H.row_id[H.num_long + tc_warp_size * s + r] : 0;
  tc_mma_accumulator acc    = {};

  tc_with_kinds<way::with_16_bits>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) { tc_quarter_sums<way::batch, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, longest, tc_origin(H, row), r, at.k, x, acc); });
  if (tc_mma_holds_diagonal(at) && used) {
    double sum = tc_mma_own_diagonal(acc, at);

    if (way::with_16_bits && S.value_kind == TC_HYBRID_F16) sum = tc_unscaled<TC_HYBRID_F16>(H, H.num_segments + tc_warp_size * s + r, sum);
    tc_finish_row(sum, row, out);
  }
}

template <bool with_16_bits>
__device__ __forceinline__ void tc_narrow_slice(const tc_hybrid &H, int32_t s, const tc_hybrid_slice &S, int lane, const double *x, const tc_output &out)
{
  if (lane >= S.num_rows) return;
  const int     length = S.full ? S.width : H.length[tc_warp_size * s + lane];
  const int32_t row    = S.row >= 0 ? S.row + lane : H.row_id[H.num_long + tc_warp_size * s + lane];
  double        sum;

  tc_with_kinds<with_16_bits>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) {
    if (S.width < 3) sum = tc_short_row_sum<decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, tc_origin(H, row), lane, x);
    else sum = tc_row_sum<decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, tc_origin(H, row), lane, x);
    sum = tc_unscaled<decltype(value_kind)::value>(H, H.num_segments + tc_warp_size * s + lane, sum);
  });
  tc_finish_row(sum, row, out);
}

template <typename way, bool segments>
static __global__ void __launch_bounds__(way::max_threads, way::min_blocks) tc_spmv_hybrid_kernel(const __grid_constant__ tc_hybrid H, const __grid_constant__ tc_hybrid_grid grid, const double *__restrict__ x, const __grid_constant__ tc_output out)
{
  constexpr bool mma = way::batch > 0;
  const int      threads = mma ? tc_hybrid_mma_threads : blockDim.x, warps = threads / tc_warp_size, lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size, cta = blockIdx.x;

  if constexpr (segments) {
    if (cta < grid.segments_end) {
      const int32_t     s    = cta * (warps / tc_team) + warp / tc_team;
      const bool        used = s < H.num_segments;
      tc_hybrid_segment S    = {};
      double            chain = 0.0;

      if (used) {
        S = tc_load_descriptor(H.segment + s);
        tc_with_kinds<way::with_16_bits>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) {
          chain = tc_unscaled<decltype(value_kind)::value>(H, s, tc_segment_sum<decltype(index_kind)::value, decltype(value_kind)::value>(H, S, warp % tc_team, lane, x));
        });
      }
      tc_finish_segment<way::max_threads>(chain, used, s, S.long_row, {H.long_first, H.row_id, H.partial, H.arrived}, out);
      return;
    }
  }
  if constexpr (mma) {
    if (cta < grid.wide_end) {
      const int32_t         s = cta - grid.segments_end;
      const tc_hybrid_slice S = tc_load_descriptor(H.slice + s);

      if (S.width > 2) tc_wide_slice<way>(H, s, S, warp, lane, x, out);
      else if (warp == 0) tc_narrow_slice<way::with_16_bits>(H, s, S, lane, x, out); // no blocks of four places
      return;
    }
  }
  if (cta < grid.slices_end) {
    const int32_t s = grid.num_wide + (cta - grid.wide_end) * warps + warp;

    if (s < H.num_slices) tc_narrow_slice<way::with_16_bits>(H, s, tc_load_descriptor(H.slice + s), lane, x, out);
  } else {
    const int32_t i = (cta - grid.slices_end) * threads + threadIdx.x;

    if (i < H.num_empty) {
      const int32_t row = H.row_id[H.num_long + H.num_sliced + i];

      out.z[row] = out.y ? out.y[row] : 0.0;
    }
  }
}

static int32_t blocks_for(int64_t work, int64_t per_block)
{
  return (int32_t)((work + per_block - 1) / per_block);
}

/*
  Slices that have a thread block each. A warp that owns a slice takes as long as the slice is wide: tall rows, which come first, are shared, and where there are so
  few slices that most of the device would idle, all.
*/
static int32_t num_wide(const tc_hybrid *H)
{
  const bool few = H->num_slices < tc_few_slices && H->num_slots >= tc_wide_mean * (int64_t)H->num_sliced;

  return few ? H->num_slices : blocks_for(H->num_tall, TC_HYBRID_SLICE_ROWS);
}

/* Do columns need 16 bits and more, so that gathers scatter? U8 and SHIFT take at most 1.5 bytes per slot with their bases */
static bool scattered(const tc_hybrid *H)
{
  return 16 * H->index_units > 2 * H->num_slots;
}

/*
  Do so many thread blocks, all with fragments, fit the device at once, but only if each takes fewer registers? Then one wave saves more than half of the fragments in
  flight costs. Measured on an H200, 132 SMs: qcd:11, 1373 blocks, 0.0063 instead of 0.0079 ms; elasticity:28, 2058 blocks and two waves either way, 0.0158 instead of
  0.0144.
*/
static tc_status one_crowded_wave(int64_t num_ctas, bool *crowded)
{
  int sms;

  TC_CALL(tc_attribute("tc_spmv_hybrid_mma_f64", cudaDevAttrMultiProcessorCount, &sms));
  *crowded = num_ctas > (int64_t)tc_hybrid_mma<false>::min_blocks * sms && num_ctas <= (int64_t)tc_hybrid_mma_crowded<false>::min_blocks * sms;
  return TC_OK;
}

template <template <bool> class way>
static tc_status tc_launch_hybrid(const char *name, const tc_hybrid *H, const tc_hybrid_grid &grid, int64_t num_ctas, int threads, const double *x, const tc_output &out, tc_stream stream)
{
  return tc_launch(name, H->num_segments > 0 ? tc_spmv_hybrid_kernel<way<true>, true> : tc_spmv_hybrid_kernel<way<false>, false>, num_ctas, threads, static_cast<cudaStream_t>(stream), *H, grid, x, out);
}

template <bool mma, bool with_16_bits>
static tc_status tc_spmv_hybrid(const char *name, const void *view, const double *x, const tc_output &out, tc_stream stream)
{
  const tc_hybrid *H       = static_cast<const tc_hybrid *>(view);
  const int        threads = mma ? tc_hybrid_mma_threads : scattered(H) ? tc_scattered_threads : tc_local_threads, warps = threads / tc_warp_size;
  tc_hybrid_grid   grid;
  bool             crowded = false;

  grid.num_wide     = mma ? num_wide(H) : 0;
  grid.segments_end = blocks_for(H->num_segments, warps / tc_team);
  grid.wide_end     = grid.segments_end + grid.num_wide;
  grid.slices_end   = grid.wide_end + blocks_for(H->num_slices - grid.num_wide, warps);
  const int64_t num = (int64_t)grid.slices_end + (out.y == out.z ? 0 : blocks_for(H->num_empty, threads));

  if (with_16_bits) return (mma ? tc_launch_hybrid<tc_hybrid_mma_16bit> : tc_launch_hybrid<tc_hybrid_fma_16bit>)(name, H, grid, num, threads, x, out, stream);
  if (!mma) return tc_launch_hybrid<tc_hybrid_fma>(name, H, grid, num, threads, x, out, stream);
  if (grid.num_wide == H->num_slices) TC_CALL(one_crowded_wave(num, &crowded));
  return (crowded ? tc_launch_hybrid<tc_hybrid_mma_crowded> : tc_launch_hybrid<tc_hybrid_mma>)(name, H, grid, num, threads, x, out, stream);
}

extern "C" tc_status tc_spmv_hybrid_mma_f64(const void *view, const double *x, const double *y, double *z, int sign, tc_stream stream)
{
  return tc_spmv_hybrid<true, false>("tc_spmv_hybrid_mma_f64", view, x, tc_output{y, z, static_cast<double>(sign)}, stream);
}

extern "C" tc_status tc_spmv_hybrid_fma_f64(const void *view, const double *x, const double *y, double *z, int sign, tc_stream stream)
{
  return tc_spmv_hybrid<false, false>("tc_spmv_hybrid_fma_f64", view, x, tc_output{y, z, static_cast<double>(sign)}, stream);
}

/* The same for matrices that may have values of 16 bits: kernels of their own, which leaves the others as fast as they are */
extern "C" tc_status tc_spmv_hybrid_mma_16bit(const void *view, const double *x, const double *y, double *z, int sign, tc_stream stream)
{
  return tc_spmv_hybrid<true, true>("tc_spmv_hybrid_mma_16bit", view, x, tc_output{y, z, static_cast<double>(sign)}, stream);
}

extern "C" tc_status tc_spmv_hybrid_fma_16bit(const void *view, const double *x, const double *y, double *z, int sign, tc_stream stream)
{
  return tc_spmv_hybrid<false, true>("tc_spmv_hybrid_fma_16bit", view, x, tc_output{y, z, static_cast<double>(sign)}, stream);
}
