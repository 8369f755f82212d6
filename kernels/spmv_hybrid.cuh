/*
  Products of a tc_hybrid with a vector: the kernel, its ways, its launch. The .cu files that include this have the kernels of one sort each, as a process reads a whole file's when it
  loads the first of them: of vectors of doubles (spmv_hybrid.cu), of floats (spmv_hybrid_single.cu), and with values of 16 bits (spmv_hybrid_16bit.cu).
*/
#pragma once
#include "hybrid_sums.cuh"
#include "tc_backend.h"

/*
  tc_spmv_hybrid_kernel - z = A x or z = y + A x or z = y - A x, all row classes of a tc_hybrid in one launch

  Work:   thread blocks are dealt out to segments of long rows first, a team of four warps each, then to slices, then to empty rows. Wide slices (mma only) have
          four warps, one for each quarter of 8 rows, mostly in one block; other slices have a warp each
          Each block waits for the kernel before when it has its first columns, or, if that may have written the matrix, at once; when it lets the next one begin, when_next() says
  Lanes:  a lane owns a row; in wide slices entries 4i .. 4i + 3 of 8 rows are the A fragment of m8n8k4, B holds x gathered for the same entries, so row g's sum is
          C[g][g]
  Arrays: the device view of the matrix; x [num_cols]; y (may be NULL, may be z), z [num_rows], of doubles or of floats; all device
  Writes: z once for each row; partial and arrived for long rows (long_rows.cuh). Two products with one matrix must not overlap.
  Launch: 128 (mma), 128, 512 or 1024 (fma) threads per block, a few words of shared memory.  Needs: sm_70, mma sm_80.  Source: tc_hybrid.h, docs/formats.md; diagonal of a tensor-core tile: Lu and
          Liu, SC'23, section 3
*/
constexpr int tc_hybrid_mma_threads = 32 * tc_team; // a slice or a segment per block
constexpr int tc_hybrid_fma_threads = 1024;         // at most
constexpr int tc_local_threads      = 128;
constexpr int tc_scattered_threads  = 512;  // a large block keeps the x of neighbouring rows in one L1 cache,
constexpr int tc_windowed_threads   = 1024; // the more so where that is read again and again

/*
  The kernel's ways: fragments of a slice whose loads are in flight together, none for scalar lanes; whether there may be values of 16 bits, which are kept out of the
  other ways because they cost registers; the threads of a block and the blocks that registers have to leave room for. Registers are warps: 32 for scalar lanes, whose
  blocks may be of any size, 40 with segments of 16 bits, 48 to 64 for fragments, or 40 with fewer of them in flight (one_crowded_wave()). `stays`: the packed matrix is
  to stay in the L2 cache (tc_hybrid_fits_cache()); six fragments in flight then pay, while larger matrices are better off with more warps.
*/
template <bool segments, bool stays_in_cache, bool may_have_16_bits>
struct tc_hybrid_fma {
  static constexpr bool crowds_registers = segments && may_have_16_bits, with_16_bits = may_have_16_bits, stays = stays_in_cache;
  static constexpr int  batch = 0, max_threads = crowds_registers ? tc_scattered_threads : tc_hybrid_fma_threads, min_blocks = crowds_registers ? 3 : 2048 / tc_hybrid_fma_threads;
};

template <bool segments, bool stays_in_cache, bool may_have_16_bits>
struct tc_hybrid_mma {
  static constexpr bool with_16_bits = may_have_16_bits, stays = stays_in_cache;
  static constexpr int  batch = stays_in_cache ? 6 : 4, max_threads = tc_hybrid_mma_threads, min_blocks = stays_in_cache || may_have_16_bits ? 8 : 9;
};

template <bool segments, bool stays_in_cache, bool may_have_16_bits>
struct tc_hybrid_mma_crowded {
  static_assert(stays_in_cache && !segments, "not measured");
  static constexpr bool with_16_bits = may_have_16_bits, stays = true;
  static constexpr int  batch = 3, max_threads = tc_hybrid_mma_threads, min_blocks = 12;
};

/* When a thread block lets the next kernel begin: as soon as the kernel before has ended; when it has its sums; not at all, which is when it ends */
enum class tc_next_kernel { EARLY, AFTER_SUMS, AT_END };

/* Thread blocks: segments, then slices, wide ones before the others or behind (order_slices()), then empty rows */
struct tc_hybrid_grid {
  int32_t segments_end, wide_begin, narrow_begin, slices_end;
  int32_t wide_blocks, num_wide; // slices that have four warps each, always 0 for fma
  int32_t num_apart, num_dealt;  // of these, the first ones, whose quarters are in different blocks (spread_quarters()); one of the two is 0
  bool           settled;        // the kernel before writes nothing of the matrix, nor does one before that which may still run
  tc_next_kernel next;           // when_next()
};

/* Numbers of a program in single precision are floats, which need no codes of 16 bits */
template <typename way, typename V>
constexpr tc_more_kinds tc_kinds_of_slices = way::with_16_bits ? tc_more_kinds::ROUNDED : std::is_same_v<V, double> ? tc_more_kinds::CODES : tc_more_kinds::NONE;

template <typename way, typename V>
__device__ __forceinline__ void tc_wide_slice(const tc_hybrid &H, int32_t s, const tc_hybrid_slice &S, int quarter, int lane, tc_next_kernel next, const V *x, const tc_output<V> &out)
{
  if (8 * quarter >= S.num_rows) return;
  const tc_mma_lane  at(lane);
  const int          r      = 8 * quarter + at.row;
  const bool         used   = r < S.num_rows;
  const int          length = S.full ? S.width : used ? H.length[tc_warp_size * s + r] : 0, longest = S.full ? S.width : tc_warp_max(length);
  const int32_t      row    = S.row >= 0 ? S.row + r : used ? H.row_id[H.num_long + tc_warp_size * s + r] : 0;
  tc_mma_accumulator acc    = {};

  tc_with_kinds<tc_kinds_of_slices<way, V>>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) { tc_quarter_sums<way::batch, way::stays, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, longest, tc_origin(H, row), r, at.k, next == tc_next_kernel::EARLY, x, acc); });
  if (next == tc_next_kernel::AFTER_SUMS) tc_begin_next_kernel();
  if (tc_mma_holds_diagonal(at) && used) {
    double sum = tc_mma_own_diagonal(acc, at);

    if (way::with_16_bits && S.value_kind == TC_HYBRID_F16) sum = tc_unscaled<TC_HYBRID_F16>(H, H.num_segments + tc_warp_size * s + r, sum);
    tc_finish_row(sum, row, out);
  }
}

template <typename way, typename V>
__device__ __forceinline__ void tc_narrow_slice(const tc_hybrid &H, int32_t s, const tc_hybrid_slice &S, int lane, tc_next_kernel next, const V *x, const tc_output<V> &out)
{
  if (lane >= S.num_rows) return;
  const int     length = S.full ? S.width : H.length[tc_warp_size * s + lane];
  const int32_t row    = S.row >= 0 ? S.row + lane : H.row_id[H.num_long + tc_warp_size * s + lane];
  double        sum;

  tc_with_kinds<tc_kinds_of_slices<way, V>>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) {
    constexpr bool codes = decltype(index_kind)::value == TC_HYBRID_SHIFT && decltype(value_kind)::value == TC_HYBRID_D8;

    if (S.width < 3) sum = tc_short_row_sum<way::stays, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, tc_origin(H, row), lane, next == tc_next_kernel::EARLY, x);
    else if constexpr (codes) sum = tc_equal_row_sum<way::stays>(H, S, tc_origin(H, row), lane, next == tc_next_kernel::EARLY, x);
    else sum = tc_row_sum<way::stays, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, tc_origin(H, row), lane, next == tc_next_kernel::EARLY, x);
    sum = tc_unscaled<decltype(value_kind)::value>(H, H.num_segments + tc_warp_size * s + lane, sum);
  });
  if (next == tc_next_kernel::AFTER_SUMS) tc_begin_next_kernel();
  tc_finish_row(sum, row, out);
}

template <typename way, bool segments, typename V>
static __global__ void __launch_bounds__(way::max_threads, way::min_blocks) tc_spmv_hybrid_kernel(const __grid_constant__ tc_hybrid H, const __grid_constant__ tc_hybrid_grid grid, const V *x, const __grid_constant__ tc_output<V> out)
{
  constexpr bool mma = way::batch > 0;
  const int      threads = mma ? tc_hybrid_mma_threads : blockDim.x, warps = threads / tc_warp_size, lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size, cta = blockIdx.x;

  if (!grid.settled) tc_wait_for_kernel_before();
  if constexpr (segments) {
    if (cta < grid.segments_end) {
      const int32_t     s    = cta * (warps / tc_team) + warp / tc_team;
      const bool        used = s < H.num_segments;
      tc_hybrid_segment S    = {};
      double            chain = 0.0;

      if (used) {
        S = tc_load_descriptor(H.segment + s);
        tc_between_kernels(grid.next == tc_next_kernel::EARLY);
        tc_with_kinds<way::with_16_bits ? tc_more_kinds::ROUNDED : tc_more_kinds::NONE>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) {
          chain = tc_unscaled<decltype(value_kind)::value>(H, s, tc_segment_sum<way::stays, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, warp % tc_team, lane, x));
        });
      }
      if (grid.next == tc_next_kernel::AFTER_SUMS) tc_begin_next_kernel();
      tc_finish_segment<way::max_threads>(chain, used, s, S.long_row, {H.long_first, H.row_id, H.partial, H.arrived}, out);
      return;
    }
  }
  if constexpr (mma) {
    const int b = cta - grid.wide_begin;

    if (b >= 0 && b < grid.wide_blocks) {
      const int     quarter_id = b < grid.num_dealt ? warp * grid.num_dealt + b : b;
      const bool    apart = b < tc_team * grid.num_apart, spread = apart || b < grid.num_dealt;
      const int32_t s       = spread ? quarter_id / tc_team : b - (tc_team - 1) * grid.num_apart;
      const int     quarter = spread ? quarter_id % tc_team : warp;

      if (apart && warp > 0) return;
      const tc_hybrid_slice S = tc_load_descriptor(H.slice + s);

      if (S.width > 2) tc_wide_slice<way>(H, s, S, quarter, lane, grid.next, x, out);
      else if (warp == 0) tc_narrow_slice<way>(H, s, S, lane, grid.next, x, out); // no blocks of four places
      return;
    }
  }
  if (cta < grid.slices_end) {
    const int32_t s = grid.num_wide + (cta - grid.narrow_begin) * warps + warp;

    if (s < H.num_slices) tc_narrow_slice<way>(H, s, tc_load_descriptor(H.slice + s), lane, grid.next, x, out);
  } else {
    const int32_t i = (cta - grid.slices_end) * threads + threadIdx.x;

    if (i < H.num_empty) {
      const int32_t row = H.row_id[H.num_long + H.num_sliced + i];

      tc_between_kernels(grid.next == tc_next_kernel::EARLY);
      out.z[row] = out.y ? out.y[row] : V(0);
    }
  }
}

static int32_t blocks_for(int64_t work, int64_t per_block)
{
  return (int32_t)((work + per_block - 1) / per_block);
}

/*
  Threads of a block of scalar lanes, more where columns need 16 bits and more, so that gathers scatter (U8 and SHIFT take at most 1.5 bytes per slot with their bases), and the most
  where they need no more than that, rows are long and the device is full four times: the rows of a block then read much of the same x. Measured on an H200 with 512 and 1024, ms:
  stencil27_window:128 0.1496 and 0.1402; four of every five columns of 32 bits or random ones, circuit:3000000 0.1090 and 0.1117, like_eu-2005 0.126 and 0.142, rmat:20 0.164
  and 0.196.
*/
static int scalar_threads(const tc_hybrid *H, int most, const tc_device_size *size)
{
  const int64_t bytes = 16 * H->index_units, threads = (int64_t)tc_warp_size * H->num_slices;
  const bool    windowed = bytes <= 3 * H->num_slots && H->num_slots >= TC_HYBRID_WIDE_MEAN * (int64_t)H->num_sliced && threads >= 4 * 2048 * (int64_t)size->num_sms;

  if (bytes <= 2 * H->num_slots) return tc_local_threads;
  return windowed && most >= tc_windowed_threads ? tc_windowed_threads : tc_scattered_threads;
}

/* Does the packed matrix stay in the L2 cache from one product to the next? */
static bool is_to_stay(const tc_hybrid *H, const tc_device_size *size)
{
  return tc_hybrid_fits_cache(tc_hybrid_product_bytes(H), size->cache_bytes);
}

/*
  A multiprocessor looks up about one line of x per cycle, so a block with the longest rows can take longer than all others have to do: where a slice of the longest sliced
  row has more than half of a multiprocessor's share of the entries, the quarters of tall slices go to different blocks. Where there is room, a block has one and three of
  its warps nothing; else block b has quarters b, b + tall, b + 2 tall and b + 3 tall, of rows of different lengths. Measured, ms: like_dc2 0.0082 to 0.0080,
  like_scircuit 0.0097 to 0.0092, email-enron with random values 0.0080 to 0.0073.
*/
static void spread_quarters(const tc_hybrid *H, int32_t narrow_blocks, const tc_device_size *size, tc_hybrid_grid *grid)
{
  const int32_t tall = blocks_for(H->num_tall, TC_HYBRID_SLICE_ROWS), more = (tc_team - 1) * tall;

  if (2 * (int64_t)TC_HYBRID_SLICE_ROWS * H->longest_sliced * size->num_sms <= H->num_slots) return;
  if ((int64_t)grid->segments_end + grid->wide_blocks + narrow_blocks + more > (int64_t)tc_hybrid_mma<false, true, false>::min_blocks * size->num_sms) {
    grid->num_dealt = tall;
    return;
  }
  grid->num_apart = tall;
  grid->wide_blocks += more;
}

/*
  What begins last ends last, and a warp that owns a slice takes 0.15 us for each entry of a row, several times as long as four warps that share one. So wide slices, the longest of
  which take longest, come first only where they are fewer thread blocks than the others. Measured (H200) with all slices wide, so that none is left to end last: like_shipsec1
  0.0269 to 0.0197 ms, 2.5% of its slices having been narrow.
*/
static void order_slices(int32_t narrow_blocks, tc_hybrid_grid *grid)
{
  const bool narrow_first = narrow_blocks < grid->wide_blocks;

  grid->wide_begin   = grid->segments_end + (narrow_first ? narrow_blocks : 0);
  grid->narrow_begin = grid->segments_end + (narrow_first ? 0 : grid->wide_blocks);
  grid->slices_end   = grid->segments_end + grid->wide_blocks + narrow_blocks;
}

/*
  Do all rows, in slices with fragments, a thread block each, fit the device at once, but only if blocks take fewer registers, of a matrix that stays in the cache? Then one wave saves more than half of the fragments
  in flight costs, if none takes much longer than the others; else multiprocessors with the longest end last, which a second wave makes up for. Measured on an H200, ms with one wave
  and with two, and the widest slice by the mean one: qcd:11 0.0040, 0.0052 (1.0); elasticity:24 0.0060, 0.0077 (1.1); like_shipsec1:45000 0.0060, 0.0067 (1.8); p2:17 0.0051, 0.0045
  (2.3); like_rma10 0.0074, 0.0068 (2.9); like_cop20k_A:40000 0.0079, 0.0057 (3.6).
*/
template <bool with_16_bits>
static bool one_crowded_wave(const tc_hybrid *H, int64_t num_ctas, const tc_device_size *size)
{
  const int  blocks = tc_hybrid_mma<false, true, with_16_bits>::min_blocks;
  const bool alike  = (int64_t)TC_HYBRID_SLICE_ROWS * H->longest_sliced * H->num_slices <= 2 * H->num_slots;

  return alike && num_ctas > (int64_t)blocks * size->num_sms && num_ctas <= (int64_t)tc_hybrid_mma_crowded<false, true, with_16_bits>::min_blocks * size->num_sms;
}

/*
  The sooner the next kernel begins, the more of its start is hidden. But its thread blocks are then dealt out beside those of this one. If these are less than a wave, and more than
  half of one, some find no place until a multiprocessor is done, and go there together: up to places / blocks times as long, which for fragments pays up to a microsecond, written
  down as bytes. Scalar lanes are slower, too, where all fit; and from the L2 cache, with more than a wave, they are fastest without company. Measured with chains of products
  on an H200 (docs/performance-suite.md, "When the next kernel begins").
*/
template <class shape>
static tc_next_kernel when_next(int64_t num_ctas, int threads, double bytes, bool stays, const tc_device_size *size)
{
  constexpr double bytes_per_microsecond = 5e6;
  const double     places = static_cast<double>(shape::max_threads * shape::min_blocks / threads * size->num_sms), blocks = static_cast<double>(num_ctas);

  if (shape::batch == 0) return blocks < places ? tc_next_kernel::AFTER_SUMS : stays ? tc_next_kernel::AT_END : tc_next_kernel::EARLY;
  return 2 * blocks > places && (places - blocks) * bytes > bytes_per_microsecond * blocks ? tc_next_kernel::AFTER_SUMS : tc_next_kernel::EARLY;
}

template <template <bool, bool, bool> class way, bool segments, bool stays, bool with_16_bits, typename V>
static tc_status tc_launch_hybrid(const char *name, const tc_hybrid *H, tc_hybrid_grid grid, int64_t num_ctas, int threads, const tc_device_size *size, const V *x, const tc_output<V> &out, int early, tc_stream stream)
{
  const auto kernel = tc_spmv_hybrid_kernel<way<segments, stays, with_16_bits>, segments, V>;

  grid.settled = early;
  grid.next    = when_next<way<segments, true, with_16_bits>>(num_ctas, threads, tc_hybrid_product_bytes(H), stays, size);
  if (!early && !stays) return tc_launch(name, kernel, num_ctas, threads, static_cast<cudaStream_t>(stream), *H, grid, x, out); // behind a refill: probably its division of L1 ends with it then (docs/performance-conversion.md)
  return tc_launch_early(name, kernel, num_ctas, threads, 0, static_cast<cudaStream_t>(stream), *H, grid, x, out);
}

template <bool mma, bool with_16_bits, typename V>
static tc_status tc_spmv_hybrid(const char *name, const void *view, const V *x, const tc_output<V> &out, int early, tc_stream stream)
{
  const tc_hybrid      *H    = static_cast<const tc_hybrid *>(view);
  tc_hybrid_grid        grid = {};
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  const bool stays   = is_to_stay(H, size);
  const int  threads = mma ? tc_hybrid_mma_threads : scalar_threads(H, with_16_bits && H->num_segments > 0 ? tc_scattered_threads : tc_hybrid_fma_threads, size), warps = threads / tc_warp_size;

  grid.num_wide     = mma ? tc_hybrid_num_wide(H) : 0;
  TC_CHECK(H->num_by_rows == grid.num_wide, TC_ERR_ARG, "%s: %d slices have their values by rows, expected %d", name, H->num_by_rows, grid.num_wide);
  grid.segments_end = blocks_for(H->num_segments, warps / tc_team);
  grid.wide_blocks  = grid.num_wide;
  const int32_t narrow_blocks = blocks_for(H->num_slices - grid.num_wide, warps);

  if (mma && stays) spread_quarters(H, narrow_blocks, size, &grid);
  order_slices(narrow_blocks, &grid);
  const int64_t num = (int64_t)grid.slices_end + (out.y == out.z ? 0 : blocks_for(H->num_empty, threads));

  auto launch = [&](auto any_segments, auto in_cache) {
    constexpr bool segments = decltype(any_segments)::value, cached = decltype(in_cache)::value;

    if constexpr (!mma) return tc_launch_hybrid<tc_hybrid_fma, segments, cached, with_16_bits, V>(name, H, grid, num, threads, size, x, out, early, stream);
    else if constexpr (segments || !cached) return tc_launch_hybrid<tc_hybrid_mma, segments, cached, with_16_bits, V>(name, H, grid, num, threads, size, x, out, early, stream);
    else return (grid.num_wide == H->num_slices && one_crowded_wave<with_16_bits>(H, num, size) ? tc_launch_hybrid<tc_hybrid_mma_crowded, segments, cached, with_16_bits, V> : tc_launch_hybrid<tc_hybrid_mma, segments, cached, with_16_bits, V>)(name, H, grid, num, threads, size, x, out, early, stream);
  };
  auto launch_either = [&](auto any_segments) { return stays ? launch(any_segments, std::true_type()) : launch(any_segments, std::false_type()); };

  return H->num_segments > 0 ? launch_either(std::true_type()) : launch_either(std::false_type());
}

template <bool mma, bool with_16_bits, typename V>
static tc_status tc_spmv_hybrid_of(const char *name, const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid<mma, with_16_bits>(name, view, static_cast<const V *>(x), tc_output<V>{static_cast<const V *>(y), static_cast<V *>(z), static_cast<double>(sign)}, early, stream);
}

/* Loads the kernels without values of 16 bits */
template <typename V>
static tc_status tc_load_ways(void)
{
  const char *name = "tc_spmv_hybrid";

  TC_CALL(tc_load(name, tc_spmv_hybrid_kernel<tc_hybrid_mma<false, false, false>, false, V>, tc_spmv_hybrid_kernel<tc_hybrid_mma<false, true, false>, false, V>, tc_spmv_hybrid_kernel<tc_hybrid_mma<true, false, false>, true, V>, tc_spmv_hybrid_kernel<tc_hybrid_mma<true, true, false>, true, V>));
  TC_CALL(tc_load(name, tc_spmv_hybrid_kernel<tc_hybrid_mma_crowded<false, true, false>, false, V>));
  return tc_load(name, tc_spmv_hybrid_kernel<tc_hybrid_fma<false, false, false>, false, V>, tc_spmv_hybrid_kernel<tc_hybrid_fma<false, true, false>, false, V>, tc_spmv_hybrid_kernel<tc_hybrid_fma<true, false, false>, true, V>, tc_spmv_hybrid_kernel<tc_hybrid_fma<true, true, false>, true, V>);
}
