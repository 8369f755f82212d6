/*
  How products straight from CSR deal rows out: parts are some rows that follow each other and have together what a thread block brings into shared memory at once, or a segment of a row of 256 entries and more. The
  list of parts is made with the first products of a pattern, and kept.
*/
#pragma once
#include "tc_device.cuh"

constexpr int     tc_straight_long         = 256; // entries of a row from which on it is summed by segments
constexpr int     tc_straight_segment      = 2048;
constexpr int     tc_straight_row_load     = 2;   // what a row takes beside its entries, in entries
constexpr int     tc_straight_pieces       = 4;   // of a window that has more entries than a tile
constexpr int     tc_straight_waves        = 2;   // parts that each multiprocessor should have at least
constexpr int     tc_straight_sms          = 512; // multiprocessors that no device has more of
constexpr int     tc_straight_makers       = 1024; // threads that make parts, ...
constexpr int     tc_straight_own          = 4;    // ... rows of each, ...
constexpr int     tc_straight_chunk        = tc_straight_own * tc_straight_makers; // ... and of all, which parts do not reach across
constexpr int32_t tc_straight_least_load   = 32, tc_straight_most_load = 1024; // of a window
constexpr int     tc_straight_least_tile   = 512; // entries that a tile has room for, and ...
constexpr int     tc_straight_least_window = 480; // ... that a window has in the mean, where there are enough of those

static_assert(tc_straight_most_load / tc_straight_pieces + tc_straight_long <= tc_straight_least_tile, "a piece of a window and the end of its last row fit into a tile");

/* `num` rows from `row` on, whose `length` entries, from `begin` on, are all in one tile; or a segment of that row, which has so many, and whose first segment is number `num` */
struct alignas(16) tc_straight_part {
  int32_t row, num, begin, length;
};

/* Parts, in any order but for the segments of a row, which lie behind each other. Segments take longest, so that they come first where parts are numbered */
struct tc_straight_list {
  int32_t          *counts;  // [3]: segments, runs of rows, thread blocks that are done with both; zero before and after
  tc_straight_part *segment; // [segments]
  tc_straight_part *run;     // [runs]
  double           *partial; // [segments]
  int32_t          *arrived; // [segments], used at the first of a row; zero before and after
};

/* The most segments that there can be */
static int64_t tc_straight_most_segments(int64_t nnz)
{
  return nnz / tc_straight_long;
}

/*
  The most runs of rows: windows of so many entries, each chunk of rows with a smaller one, at least two for each multiprocessor, those whose entries are more than a tile once more in pieces, and what follows a long
  row
*/
static int64_t tc_straight_most_runs(int64_t num_rows, int64_t nnz)
{
  const int64_t chunks = num_rows / tc_straight_chunk + 1;

  return (nnz + tc_straight_row_load * num_rows) / tc_straight_least_window + chunks + tc_straight_waves * tc_straight_sms + tc_straight_pieces * (nnz / tc_straight_least_tile) + nnz / tc_straight_long;
}

static tc_straight_list tc_straight_list_of(void *scratch, int64_t segments, int64_t runs)
{
  tc_straight_part *part    = static_cast<tc_straight_part *>(scratch);
  double           *partial = reinterpret_cast<double *>(part + segments + runs);
  int32_t          *arrived = reinterpret_cast<int32_t *>(partial + segments);

  return {arrived + segments, part, part + segments, partial, arrived};
}

/* The first row from `row` on, of `here` ones, whose bit is set */
static __device__ __forceinline__ int tc_straight_next(const unsigned *bits, int row, int here)
{
  for (int w = row / tc_warp_size; w * tc_warp_size < here; ++w) {
    const unsigned next = bits[w] & (w == row / tc_warp_size ? tc_full_warp << row % tc_warp_size : tc_full_warp);

    if (next != 0) return w * tc_warp_size + __ffs(static_cast<int>(next)) - 1;
  }
  return here;
}

/* The segments of a long row, entries from .. to - 1, into the list; the threads of a warp come here together */
static __device__ __forceinline__ void tc_straight_put(int32_t row, int32_t from, int32_t to, int lane, const tc_straight_list &L)
{
  const int32_t num   = (to - from - 1) / tc_straight_segment + 1;
  int32_t       first = 0;

  if (lane == 0) first = atomicAdd(L.counts, num);
  first = __shfl_sync(tc_full_warp, first, 0);
  for (int32_t i = lane; i < num; i += tc_warp_size) L.segment[first + i] = {row, first, from, to - from};
}

/* What the threads that make parts share: a bit for each row */
struct tc_straight_bits {
  unsigned begins[tc_straight_chunk / tc_warp_size]; // does a part begin, or is the row long?
  unsigned pieces[tc_straight_chunk / tc_warp_size]; // or a piece of a window?
  unsigned runs[tc_straight_chunk / tc_warp_size];   // does a run of rows begin?
  int32_t  place[tc_straight_chunk / tc_warp_size];  // of a word's first run in the list
};

/* Places for the runs of a chunk, which lie behind each other in the list. One warp */
static __device__ __forceinline__ void tc_straight_places(tc_straight_bits *B, int32_t *num_runs)
{
  constexpr int words = tc_straight_chunk / tc_warp_size / tc_warp_size; // of a lane
  const int     lane  = threadIdx.x;
  int32_t       own   = 0, upto;

  for (int k = 0; k < words; ++k) own += __popc(static_cast<int>(B->runs[words * lane + k]));
  upto = own;
  for (int apart = 1; apart < tc_warp_size; apart *= 2) {
    const int32_t before = __shfl_up_sync(tc_full_warp, upto, apart);

    if (lane >= apart) upto += before;
  }
  int32_t place = lane == tc_warp_size - 1 ? atomicAdd(num_runs, upto) : 0;

  place = __shfl_sync(tc_full_warp, place, tc_warp_size - 1) + upto - own;
  for (int k = 0; k < words; ++k) {
    B->place[words * lane + k] = place;
    place += __popc(static_cast<int>(B->runs[words * lane + k]));
  }
}

/*
  tc_spmv_csr_parts_kernel - the list of parts

  Work:   a thread block per 4096 rows in a row. Windows of the same load, entries and two for each row, none above `window`, and long rows divide them into parts; a window with more entries than a tile, into pieces
  Lanes:  four rows for each thread, neighbours together. Who has the first row of a run writes it, a warp the segments of its long rows
  Arrays: row_ptr [num_rows + 1]; the list; all device
  Writes: the list
  Launch: 1024 threads per block.  Needs: sm_70.  Source: ours
*/
static __global__ void __launch_bounds__(tc_straight_makers) tc_spmv_csr_parts_kernel(int32_t num_rows, int32_t window, int32_t tile, const int32_t *row_ptr, const __grid_constant__ tc_straight_list L)
{
  __shared__ tc_straight_bits B;
  const int     t = threadIdx.x, lane = t % tc_warp_size;
  const int32_t first = blockIdx.x * tc_straight_chunk, here = min(tc_straight_chunk, num_rows - first), origin = row_ptr[first];
  const int64_t load = static_cast<int64_t>(row_ptr[first + here]) - origin + tc_straight_row_load * here, num = (load + window - 1) / window;
  int32_t       from[tc_straight_own], to[tc_straight_own];
  /* Which piece of a window a row begins in */
  const auto piece_of = [&](int row, int32_t begin) { return static_cast<int32_t>((static_cast<int64_t>(begin) - origin + tc_straight_row_load * row) * (num * tc_straight_pieces) / load); };

#pragma unroll
  for (int i = 0; i < tc_straight_own; ++i) {
    const int  row = i * tc_straight_makers + t, own = min(row, here - 1), last = max(own - 1, 0);
    const bool any = row < here;

    from[i] = row_ptr[first + own];
    to[i]   = row_ptr[first + own + 1];
    const int32_t  before = row_ptr[first + last], piece = piece_of(own, from[i]), piece_before = piece_of(last, before);
    const bool     is_long = any && to[i] - from[i] >= tc_straight_long, follows = any && (row == 0 || from[i] - before >= tc_straight_long), new_piece = any && piece != piece_before;
    const unsigned of_begins = __ballot_sync(tc_full_warp, is_long || follows || (new_piece && piece / tc_straight_pieces != piece_before / tc_straight_pieces));
    const unsigned of_pieces = __ballot_sync(tc_full_warp, is_long || follows || new_piece), of_long = __ballot_sync(tc_full_warp, is_long);

    if (lane == 0) {
      B.begins[row / tc_warp_size] = of_begins;
      B.pieces[row / tc_warp_size] = of_pieces;
      B.runs[row / tc_warp_size]   = of_begins & ~of_long;
    }
  }
  __syncthreads();
  if (t < tc_warp_size) tc_straight_places(&B, L.counts + 1);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < tc_straight_own; ++i) {
    const int row = i * tc_straight_makers + t, word = row / tc_warp_size;
    int32_t   at  = B.place[word] + __popc(static_cast<int>(B.runs[word] & ((1u << lane) - 1)));

    for (unsigned rows = B.begins[word] & ~B.runs[word]; rows != 0; rows &= rows - 1) {
      const int own = __ffs(static_cast<int>(rows)) - 1;

      tc_straight_put(first + word * tc_warp_size + own, __shfl_sync(tc_full_warp, from[i], own), __shfl_sync(tc_full_warp, to[i], own), lane, L);
    }
    if ((B.runs[word] >> lane & 1) == 0) continue;
    const int  end   = tc_straight_next(B.begins, row + 1, here);
    const bool whole = row_ptr[first + end] - from[i] <= tile;

    for (int piece = row; piece < end;) {
      const int     next  = whole ? end : min(tc_straight_next(B.pieces, piece + 1, here), end);
      const int32_t begin = row_ptr[first + piece];

      L.run[at] = {first + piece, next - piece, begin, row_ptr[first + next] - begin};
      piece     = next;
      if (piece < end) at = atomicAdd(L.counts + 1, 1);
    }
  }
}

/* So much load for a part that there are enough of those, too, and that a piece of it and a row fit into a tile */
static int32_t tc_straight_window(int64_t num_rows, int64_t nnz, int entries, const tc_device_size *size)
{
  const int64_t load = nnz + tc_straight_row_load * num_rows, few = load / (tc_straight_waves * static_cast<int64_t>(size->num_sms)), by_entries = nnz > 0 ? load * entries / nnz : tc_straight_most_load, most = by_entries < tc_straight_most_load ? by_entries : tc_straight_most_load;

  return static_cast<int32_t>(few > most ? most : few > tc_straight_least_load ? few : tc_straight_least_load);
}
