#include "long_rows.cuh"
#include "tc_backend.h"
#include "tc_dasp.h"
#include "tc_device.cuh"
#include "tc_mma.cuh"

/*
  tc_spmv_dasp_kernel - z = A x or z = y + A x or z = y - A x, all row classes of a tc_dasp in one launch

  Work:   thread blocks are dealt out to long rows first, then in rounds to medium, pair13, four, pair22, one, empty. A team of four warps owns a segment of a
          long row, a warp 8 (mma) or 32 (fma) medium rows, 32 tile rows of a short section, or 32 single-entry or empty rows
  Lanes:  mma: a tile is the A fragment of m8n8k4, B holds x gathered for the same entries, so row g's sum is C[g][g]; fma: a lane owns a tile row
  Arrays: the device view of the matrix; x [num_cols]; y (may be NULL, may be z), z [num_rows]; all device
  Writes: z once for each row; partial and arrived for long rows. The last segment to arrive adds the partial sums up, always in the order of the segments: the
          atomic counter decides who adds, not in which order. arrived is zero again afterwards. Two products with one matrix must not overlap.
  Launch: 128 (mma), 512 or 1024 (fma) threads per block, a few words of shared memory.  Needs: sm_70, mma sm_80.  Source: Lu and Liu, SC'23, section 3; layout: tc_dasp.h
*/
enum tc_dasp_section { MEDIUM, PAIR13, FOUR, PAIR22, ONE, EMPTY, NUM_SECTIONS };

/* Threads per block, measured on an H200 (docs/performance-dasp.md, 5): where gathers scatter, a large block keeps the x of neighbouring rows in one L1 */
constexpr int   tc_dasp_mma_threads       = 128;
constexpr int   tc_dasp_fma_threads       = 512;
constexpr int   tc_dasp_scattered_threads = 1024;
constexpr float tc_dasp_scattered         = 0.5f;
constexpr int64_t tc_dasp_uneven          = 2;                             // mma fetches ahead if the longest medium row is so many times the mean
constexpr int   tc_dasp_mma_batch         = 4;                             // tiles of a medium block whose loads are in flight together
constexpr int   tc_dasp_fma_batch         = 2;
constexpr int   tc_dasp_tail_batch        = 2;
template <bool mma>
constexpr int tc_dasp_max_threads = mma ? tc_dasp_mma_threads : tc_dasp_scattered_threads;

static_assert(tc_dasp_mma_threads % (tc_team * tc_warp_size) == 0 && tc_dasp_fma_threads % (tc_team * tc_warp_size) == 0, "a thread block holds whole teams");
static_assert(tc_team * tc_warp_size == TC_DASP_CHAINS, "a lane for every chain");

/*
  Thread blocks are dealt out in rounds. A round takes the next share of every section: sections keep the order of the matrix rows, so what one round touches of x
  and y stays in the L2 cache however many sections write to it. Long rows come before the first round.
*/
constexpr int64_t tc_dasp_round_threads = 1 << 18;

struct tc_dasp_grid {
  int32_t long_end;          // thread blocks for long rows
  int32_t end[NUM_SECTIONS]; // thread blocks of a round up to and including each section
};

/* One packed entry on its way into a sum */
struct tc_entry {
  double  val, x;
  int32_t col;

  __device__ __forceinline__ void load(const tc_dasp &D, int64_t slot, bool used)
  {
    val = used ? tc_load_stream(D.val + slot) : 0.0;
    col = used ? tc_load_stream(D.col + slot) : TC_DASP_PAD;
  }
  __device__ __forceinline__ void gather(const double *x_vector) { x = tc_gather(x_vector, col); }
};

/* Where lane `lane` finds its element of a tile that serves as an A fragment */
__device__ __forceinline__ int tc_fragment_slot(tc_mma_lane at)
{
  return TC_DASP_TILE_ROWS * at.k + at.row;
}

/* Warp `warp` of a team adds up its 32 of the 128 chains of a segment: chain 32 * warp + lane in lane `lane` */
template <bool mma>
__device__ __forceinline__ double tc_segment_chain(const tc_dasp &D, int64_t begin, int64_t end, const double *x, int warp, int lane)
{
  constexpr int tiles = TC_DASP_CHAINS / TC_DASP_TILE_ROWS; // of one round through all chains
  double        chain = 0.0;

  begin += tc_warp_size / TC_DASP_TILE_ROWS * TC_DASP_TILE_SLOTS * warp;
  if constexpr (mma) {
    tc_mma_accumulator acc[4] = {};
    const int          offset = tc_fragment_slot(tc_mma_lane(lane));

    for (int64_t s = begin; s < end; s += tiles * TC_DASP_TILE_SLOTS) {
      tc_entry entry[4];

#pragma unroll
      for (int j = 0; j < 4; ++j) entry[j].load(D, s + TC_DASP_TILE_SLOTS * j + offset, s + TC_DASP_TILE_SLOTS * j < end);
#pragma unroll
      for (int j = 0; j < 4; ++j) entry[j].gather(x);
#pragma unroll
      for (int j = 0; j < 4; ++j) tc_mma_m8n8k4(acc[j], entry[j].val, entry[j].x);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const double diagonal = tc_mma_diagonal(acc[j], lane);

      if (lane / TC_DASP_TILE_ROWS == j) chain = diagonal;
    }
  } else {
    for (int64_t s = begin + TC_DASP_TILE_SLOTS * (lane / TC_DASP_TILE_ROWS); s < end; s += tiles * TC_DASP_TILE_SLOTS) {
      tc_entry entry[4];

#pragma unroll
      for (int k = 0; k < 4; ++k) entry[k].load(D, s + TC_DASP_TILE_ROWS * k + lane % TC_DASP_TILE_ROWS, true);
#pragma unroll
      for (int k = 0; k < 4; ++k) entry[k].gather(x);
#pragma unroll
      for (int k = 0; k < 4; ++k) chain = fma(entry[k].val, entry[k].x, chain);
    }
  }
  return chain;
}

/* A segment per team of four warps; the threads of a block come here together */
template <bool mma>
__device__ __forceinline__ void tc_long_section(const tc_dasp &D, int32_t first_segment, const double *x, const tc_output<double> &out)
{
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t segment = first_segment + warp / tc_team;
  const bool    used    = segment < D.num_segments;
  const double  chain   = used ? tc_segment_chain<mma>(D, D.segment_ptr[segment], D.segment_ptr[segment + 1], x, warp % tc_team, lane) : 0.0;

  tc_finish_segment<tc_dasp_max_threads<mma>>(chain, used, segment, used ? D.segment_row[segment] : 0, {D.long_ptr, D.row_id, D.partial, D.arrived}, out);
}

/*
  Adds the tiles of a medium block to acc. With `ahead` the next tiles travel while the present ones wait for their x: a long block is done sooner, at the price of
  registers and so of warps.
*/
template <bool ahead>
__device__ __forceinline__ void tc_block_tiles(const tc_dasp &D, int64_t begin, int64_t end, int offset, const double *x, tc_mma_accumulator &acc)
{
  constexpr int64_t step = tc_dasp_mma_batch * TC_DASP_TILE_SLOTS;
  tc_entry          entry[tc_dasp_mma_batch], next[tc_dasp_mma_batch];

  auto load = [&](tc_entry *to, int64_t s) {
#pragma unroll
    for (int i = 0; i < tc_dasp_mma_batch; ++i) to[i].load(D, s + TC_DASP_TILE_SLOTS * i + offset, s + TC_DASP_TILE_SLOTS * i < end);
  };

  if constexpr (ahead) load(next, begin);
  for (int64_t s = begin; s < end; s += step) {
    if constexpr (!ahead) load(entry, s);
#pragma unroll
    for (int i = 0; i < tc_dasp_mma_batch; ++i) {
      if constexpr (ahead) entry[i] = next[i];
      entry[i].gather(x);
    }
    if constexpr (ahead) load(next, s + step);
#pragma unroll
    for (int i = 0; i < tc_dasp_mma_batch; ++i) {
      if (s + TC_DASP_TILE_SLOTS * i < end) tc_mma_m8n8k4(acc, entry[i].val, entry[i].x);
    }
  }
}

/* 8 medium rows per warp */
template <bool ahead>
__device__ __forceinline__ void tc_medium_section_mma(const tc_dasp &D, int32_t block, int lane, const double *x, const tc_output<double> &out)
{
  if (block >= D.num_blocks) return;
  const tc_mma_lane at(lane);
  const int64_t     begin = D.block_ptr[block], end = D.block_ptr[block + 1];
  const int32_t     slot   = TC_DASP_TILE_ROWS * block + at.row;
  const bool        writes = tc_mma_holds_diagonal(at) && slot < D.num_medium;
  tc_mma_accumulator acc   = {};

  tc_block_tiles<ahead>(D, begin, end, tc_fragment_slot(at), x, acc);

  const int64_t tail = D.tail_ptr[block]; // not loaded before: it would cost registers

  if (D.tail_ptr[block + 1] > tail) {
    const int tail_end = D.tail_end[slot], tail_begin = at.row > 0 ? D.tail_end[slot - 1] : 0;
    const int longest = tc_warp_max(tail_end - tail_begin);

    for (int e = 0; e < longest; e += 4 * tc_dasp_tail_batch) {
      tc_entry entry[tc_dasp_tail_batch];

#pragma unroll
      for (int i = 0; i < tc_dasp_tail_batch; ++i) {
        const int t = tail_begin + e + 4 * i + at.k;

        entry[i].load(D, tail + t, t < tail_end);
      }
#pragma unroll
      for (int i = 0; i < tc_dasp_tail_batch; ++i) entry[i].gather(x);
#pragma unroll
      for (int i = 0; i < tc_dasp_tail_batch; ++i) tc_mma_m8n8k4(acc, entry[i].val, entry[i].x);
    }
  }
  if (writes) tc_finish_row(tc_mma_own_diagonal(acc, at), D.row_id[D.row_medium + slot], out);
}

/* A medium row per lane */
__device__ __forceinline__ void tc_medium_section_fma(const tc_dasp &D, int32_t slot, const double *x, const tc_output<double> &out)
{
  if (slot >= D.num_medium) return;
  const int32_t block = slot / TC_DASP_TILE_ROWS, g = slot % TC_DASP_TILE_ROWS, row = D.row_id[D.row_medium + slot];
  const int64_t end = D.block_ptr[block + 1], tail = D.tail_ptr[block], tail_slots = D.tail_ptr[block + 1] - tail;
  double        sum = 0.0;

  for (int64_t s = D.block_ptr[block]; s < end; s += tc_dasp_fma_batch * TC_DASP_TILE_SLOTS) {
    tc_entry entry[4 * tc_dasp_fma_batch];

#pragma unroll
    for (int e = 0; e < 4 * tc_dasp_fma_batch; ++e) entry[e].load(D, s + TC_DASP_TILE_ROWS * e + g, s + TC_DASP_TILE_SLOTS * (e / 4) < end);
#pragma unroll
    for (int e = 0; e < 4 * tc_dasp_fma_batch; ++e) entry[e].gather(x);
#pragma unroll
    for (int e = 0; e < 4 * tc_dasp_fma_batch; ++e) sum = fma(entry[e].val, entry[e].x, sum);
  }
  if (tail_slots > 0) {
    const int tail_end = D.tail_end[slot];

    for (int t = g > 0 ? D.tail_end[slot - 1] : 0; t < tail_end; t += 4) {
      tc_entry entry[4];

#pragma unroll
      for (int e = 0; e < 4; ++e) entry[e].load(D, tail + t + e, t + e < tail_end);
#pragma unroll
      for (int e = 0; e < 4; ++e) entry[e].gather(x);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum = fma(entry[e].val, entry[e].x, sum);
    }
  }
  tc_finish_row(sum, row, out);
}

/*
  32 tile rows of a short section per warp, one result pair per lane: the first `split` entries of a tile row belong to first_id, the others to second_id.
*/
template <bool mma, int split>
__device__ __forceinline__ void tc_short_section(const tc_dasp &D, int64_t section, int32_t num, const int32_t *first_id, const int32_t *second_id, int32_t tile_row, int lane, const double *x, const tc_output<double> &out)
{
  double first = 0.0, second = 0.0;

  if constexpr (mma) {
    const int32_t     warp_row = tile_row - lane;
    const tc_mma_lane at(lane);
    tc_entry          entry[4];

    if (warp_row >= num) return;
#pragma unroll
    for (int j = 0; j < 4; ++j) entry[j].load(D, section + 4 * (int64_t)warp_row + TC_DASP_TILE_SLOTS * j + tc_fragment_slot(at), warp_row + TC_DASP_TILE_ROWS * j < num);
#pragma unroll
    for (int j = 0; j < 4; ++j) entry[j].gather(x);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      tc_mma_accumulator acc = {};
      double             diagonal;
      const bool         lower = at.k < split;

      tc_mma_m8n8k4(acc, lower ? entry[j].val : 0.0, lower ? entry[j].x : 0.0);
      diagonal = tc_mma_diagonal(acc, lane);
      if (lane / TC_DASP_TILE_ROWS == j) first = diagonal;
      if constexpr (split < 4) {
        acc = {};
        tc_mma_m8n8k4(acc, lower ? 0.0 : entry[j].val, lower ? 0.0 : entry[j].x);
        diagonal = tc_mma_diagonal(acc, lane);
        if (lane / TC_DASP_TILE_ROWS == j) second = diagonal;
      }
    }
    if (tile_row >= num) return;
  } else {
    tc_entry entry[4];

    if (tile_row >= num) return;
#pragma unroll
    for (int k = 0; k < 4; ++k) entry[k].load(D, section + tile_row / TC_DASP_TILE_ROWS * (int64_t)TC_DASP_TILE_SLOTS + TC_DASP_TILE_ROWS * k + tile_row % TC_DASP_TILE_ROWS, true);
#pragma unroll
    for (int k = 0; k < 4; ++k) entry[k].gather(x);
#pragma unroll
    for (int k = 0; k < split; ++k) first = fma(entry[k].val, entry[k].x, first);
#pragma unroll
    for (int k = split; k < 4; ++k) second = fma(entry[k].val, entry[k].x, second);
  }
  tc_finish_row(first, first_id[tile_row], out);
  if constexpr (split < 4) tc_finish_row(second, second_id[tile_row], out);
}

/* Without long rows and without fetching ahead the mma kernel fits in 32 registers: all warps of an SM (0: the compiler's choice) */
template <bool mma, bool ahead, bool long_rows>
constexpr int tc_dasp_min_blocks = mma && !ahead && !long_rows ? 16 : 0;

template <bool mma, bool ahead, bool long_rows>
static __global__ void __launch_bounds__(tc_dasp_max_threads<mma>, tc_dasp_min_blocks<mma, ahead, long_rows>) tc_spmv_dasp_kernel(const __grid_constant__ tc_dasp D, const __grid_constant__ tc_dasp_grid grid, const double *__restrict__ x, const __grid_constant__ tc_output<double> out)
{
  const int      threads = mma ? tc_dasp_mma_threads : blockDim.x, warps = threads / tc_warp_size, lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int      after = (int)blockIdx.x - grid.long_end, per_round = grid.end[EMPTY];
  const int32_t *id = D.row_id;

  if constexpr (long_rows) {
    if (after < 0) {
      tc_long_section<mma>(D, warps / tc_team * blockIdx.x, x, out);
      return;
    }
  }
  const int round = after < per_round ? 0 : after / per_round, cta = after - round * per_round; // most small matrices have one round: no division

  /* The block's place in its section, counted over all rounds */
  auto place = [&](tc_dasp_section section) {
    const int begin = section == MEDIUM ? 0 : grid.end[section - 1];

    return round * (grid.end[section] - begin) + cta - begin;
  };

  if (cta < grid.end[MEDIUM]) {
    if constexpr (mma) tc_medium_section_mma<ahead>(D, warps * place(MEDIUM) + warp, lane, x, out);
    else tc_medium_section_fma(D, threads * place(MEDIUM) + threadIdx.x, x, out);
  } else if (cta < grid.end[PAIR13]) {
    tc_short_section<mma, 1>(D, D.slot_pair13, D.num_pair13, id + D.row_pair13, id + D.row_pair13 + D.num_pair13, threads * place(PAIR13) + threadIdx.x, lane, x, out);
  } else if (cta < grid.end[FOUR]) {
    tc_short_section<mma, 4>(D, D.slot_four, D.num_four, id + D.row_four, nullptr, threads * place(FOUR) + threadIdx.x, lane, x, out);
  } else if (cta < grid.end[PAIR22]) {
    tc_short_section<mma, 2>(D, D.slot_pair22, D.num_pair22, id + D.row_pair22, id + D.row_pair22 + D.num_pair22, threads * place(PAIR22) + threadIdx.x, lane, x, out);
  } else if (cta < grid.end[ONE]) {
    const int32_t i = threads * place(ONE) + threadIdx.x;

    if (i < D.num_one) tc_finish_row(fma(tc_load_stream(D.val + D.slot_one + i), __ldg(x + tc_load_stream(D.col + D.slot_one + i)), 0.0), id[D.row_one + i], out);
  } else {
    const int32_t i = threads * place(EMPTY) + threadIdx.x;

    if (i < D.num_empty) out.z[id[D.row_empty + i]] = out.y ? out.y[id[D.row_empty + i]] : 0.0;
  }
}

static int64_t divide_up(int64_t a, int64_t b)
{
  return (a + b - 1) / b;
}

template <bool mma, bool ahead>
static tc_status tc_spmv_dasp(const char *name, const void *view, const double *x, const tc_output<double> &out, tc_stream stream)
{
  const tc_dasp *D                  = static_cast<const tc_dasp *>(view);
  const int      threads            = mma ? tc_dasp_mma_threads : D->scattered > tc_dasp_scattered ? tc_dasp_scattered_threads : tc_dasp_fma_threads;
  const int      warps              = threads / tc_warp_size;
  const int32_t  work[NUM_SECTIONS] = {mma ? D->num_blocks : D->num_medium, D->num_pair13, D->num_four, D->num_pair22, D->num_one, out.y == out.z ? 0 : D->num_empty};
  int64_t        ctas[NUM_SECTIONS], total = 0, per_round = 0;
  tc_dasp_grid   grid;

  for (int s = 0; s < NUM_SECTIONS; ++s) {
    ctas[s] = divide_up(work[s], mma && s == MEDIUM ? warps : threads);
    total += ctas[s];
  }
  const int64_t rounds = divide_up(total * threads, tc_dasp_round_threads);

  for (int s = 0; s < NUM_SECTIONS; ++s) {
    per_round += rounds > 0 ? divide_up(ctas[s], rounds) : 0;
    grid.end[s] = (int32_t)per_round;
  }
  grid.long_end = (int32_t)divide_up(D->num_segments, warps / tc_team);
  return tc_launch(name, D->num_long > 0 ? tc_spmv_dasp_kernel<mma, ahead, true> : tc_spmv_dasp_kernel<mma, ahead, false>, grid.long_end + rounds * per_round, threads, static_cast<cudaStream_t>(stream), *D, grid, x, out);
}

extern "C" tc_status tc_spmv_dasp_mma_f64(const void *view, const void *x, const void *y, void *z, int sign, int, tc_stream stream)
{
  const tc_dasp *D = static_cast<const tc_dasp *>(view);

  if ((int64_t)D->longest_medium * D->num_medium > tc_dasp_uneven * (D->slot_pair13 - D->slot_medium)) return tc_spmv_dasp<true, true>("tc_spmv_dasp_mma_f64", view, static_cast<const double *>(x), tc_output<double>{static_cast<const double *>(y), static_cast<double *>(z), static_cast<double>(sign)}, stream);
  return tc_spmv_dasp<true, false>("tc_spmv_dasp_mma_f64", view, static_cast<const double *>(x), tc_output<double>{static_cast<const double *>(y), static_cast<double *>(z), static_cast<double>(sign)}, stream);
}

extern "C" tc_status tc_spmv_dasp_fma_f64(const void *view, const void *x, const void *y, void *z, int sign, int, tc_stream stream)
{
  return tc_spmv_dasp<false, false>("tc_spmv_dasp_fma_f64", view, static_cast<const double *>(x), tc_output<double>{static_cast<const double *>(y), static_cast<double *>(z), static_cast<double>(sign)}, stream);
}
