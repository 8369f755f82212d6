/*
  Products with dense blocks straight from CSR: the kernel and how it is launched, for every type of the copy of B. A and all sums are in double precision.
*/
#pragma once
#include "csr_streams.cuh"
#include "long_rows_spmm.cuh"
#include <algorithm>

constexpr int tc_csr_resident = 1024; // threads of a multiprocessor: 64 registers each
constexpr int tc_csr_longer   = 24;   // entries of the mean row from which ...
constexpr int tc_csr_times    = 4;    // ... groups may be so many times what the device holds
constexpr int tc_csr_few      = 16;   // columns up to which ...
constexpr int tc_csr_further  = 12;   // ... twice as many rows of B are in flight if the mean row has so many entries, ...
constexpr int tc_csr_near     = 256 << 10; // ... and which are near if they have no more bytes: an L1 cache holds them

/* Entries of the mean row below which rows are summed as streams, by the columns; 0: no gain (docs/performance-sectors.md) */
template <int width>
constexpr int tc_csr_short = width <= 8 ? 4 : width == 16 ? 6 : width == 32 ? 8 : width == 64 ? 16 : 0;
constexpr int tc_csr_short_far = 6; // ... at least, where rows of B are more than the L2 cache holds

/* Streams of `width` columns: with 4 of them registers are worth more than rows of B in flight, with 16 small blocks more than groups whose entries are nearer to equally many (docs/performance-chains.md, "Ends of rows by bits") */
template <int width, bool adds>
using tc_csr_stream_shape = tc_csr_shape<TC_PRECISION_F64, width, false, adds, width <= 4 ? 4 : 8, width == 16 ? 32 : 64>;

/* Are rows of B, `width` columns, more than the L2 cache holds? */
static inline bool tc_csr_is_far(const tc_csr_view *A, int32_t width, const tc_device_size *size)
{
  return sizeof(double) * width * static_cast<size_t>(A->num_cols) > static_cast<size_t>(size->cache_bytes);
}

/* Streams, several rows to a group, are to fill the device, with more than tc_csr_few columns half of it: else a product waits for the longest of few (docs/performance-chains.md, "Streams of few rows") */
template <int width>
static inline bool tc_csr_in_streams(const tc_csr_view *A, const tc_device_size *size)
{
  using shape           = tc_csr_stream_shape<width, false>;
  constexpr int     few = width <= tc_csr_few ? 1 : 2;
  const int64_t threads = (int64_t)A->num_rows * shape::threads / shape::rows;
  const int     shorter = tc_csr_short<width> < tc_csr_short_far && tc_csr_is_far(A, width, size) ? tc_csr_short_far : tc_csr_short<width>;

  return A->nnz < (int64_t)shorter * A->num_rows && few * threads >= (int64_t)tc_csr_resident * size->num_sms;
}

/* The sum of numbers of column j for that of what they stand for */
template <class shape>
__device__ __forceinline__ double tc_csr_unscale(double sum, const int32_t *top, int32_t j)
{
  if constexpr (shape::scaled) return tc_unscale(sum, tc_column_scale(shape::precision, __ldg(top + j)));
  else return sum;
}

/* Lanes of a group that has more of them than there are columns sum the last one, too, and write nothing */
template <class shape>
__device__ __forceinline__ bool tc_csr_has_column(int32_t j)
{
  return shape::deep_lanes <= shape::width || j < shape::width;
}

template <class shape>
__device__ __forceinline__ int32_t tc_csr_column_of(int32_t j)
{
  return shape::deep_lanes <= shape::width ? j : min(j, shape::width - 1);
}

__device__ __forceinline__ void tc_csr_put(double sum, const tc_spmm_args &args, int32_t row, int32_t j)
{
  tc_finish_element(sum, args.c + row + j * args.ldc, args.add);
}

/* C of the rows of a block from row0 on, of their sums, two columns at a time */
template <class shape>
__device__ __forceinline__ void tc_csr_put_streams(const tc_spmm_args &args, int32_t row0, const tc_csr_streams<shape> &rows, const double *tile)
{
  const int r = threadIdx.x % shape::rows, place = rows.place[r];

  if (place == rows.other || (args.add && place == rows.none)) return;
  for (int j = threadIdx.x / shape::rows * 2; j < args.n; j += shape::threads / shape::rows * 2) {
    const double2 sum = place == rows.none ? make_double2(0.0, 0.0) : *reinterpret_cast<const double2 *>(tile + place * shape::pitch + j);

    tc_csr_put(sum.x, args, row0 + r, j);
    if (j + 1 < args.n) tc_csr_put(sum.y, args, row0 + r, j + 1);
  }
}

/* The long row of segment s: the last of 0 .. high with long_first <= s */
__device__ __forceinline__ int32_t tc_csr_long_of_segment(const tc_csr_view &A, int32_t s, int32_t high)
{
  int32_t low = 0;

  while (low < high) {
    const int32_t middle = (low + high + 1) / 2;

    if (A.long_first[middle] <= s) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* The same, all lanes of a warp together: 32 of them are looked at at a time */
__device__ __forceinline__ int32_t tc_csr_long_of_segment_by_warp(const tc_csr_view &A, int32_t s, int32_t high)
{
  int32_t low = 0;

  while (low < high) {
    const int32_t  part = (high - low) / tc_warp_size + 1, at = low + part * static_cast<int32_t>(threadIdx.x % tc_warp_size);
    const uint32_t before = __ballot_sync(tc_full_warp, at <= high && A.long_first[at] <= s); // of the first ones; that of `low` is

    low += part * (__popc(before) - 1);
    high = min(high, low + part - 1);
  }
  return low;
}

/*
  The caller's warp or thread block, at a barrier before, has written `own` sums of segments of long row r, for part `chunk` of the columns: are those of all segments there, now? Whoever learns that reads
  them past the L1 cache, others after another barrier. Then the counter is zero again.
*/
__device__ __forceinline__ bool tc_csr_arrive(const tc_csr_view &A, int32_t r, int32_t chunk, int32_t own)
{
  int32_t *const arrived = A.arrived + (int64_t)TC_SPMM_CHUNKS * r + chunk;
  const bool     all     = tc_arrive(arrived, own, A.long_first[r + 1] - A.long_first[r]);

  if (all) *arrived = 0;
  return all;
}

/* Of the columns, each a warp's where warps sum segments */
template <class shape>
constexpr int tc_csr_warp_parts = shape::width < shape::warp_lanes ? 1 : shape::width / shape::warp_lanes;

/*
  The sum of `num` sums, `stride` doubles apart, the same for each group of `lanes` of a warp, a column to a lane: each group loads a part of them, 16 of a lane in flight, and
  all of them add up all, in their order. The whole warp comes here together.
*/
template <int lanes>
__device__ __forceinline__ double tc_csr_sum_of_segments(const double *sums, int32_t num, int32_t stride)
{
  constexpr int ahead = 16, groups = tc_warp_size / lanes;
  const int     group = threadIdx.x % tc_warp_size / lanes, lane = threadIdx.x % lanes;
  double        sum   = 0.0;

#pragma unroll 1
  for (int32_t s = 0; s < num; s += groups * ahead) {
    double next[ahead];

#pragma unroll
    for (int i = 0; i < ahead; ++i) next[i] = __ldcg(sums + (int64_t)min(s + groups * i + group, num - 1) * stride);
    __syncwarp(); // all loads before the first sum
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (s + groups * i >= num) break;
#pragma unroll
      for (int q = 0; q < groups; ++q) {
        const double one = groups > 1 ? __shfl_sync(tc_full_warp, next[i], lanes * q + lane) : next[i];

        if (s + groups * i + q < num) sum = __dadd_rn(sum, one);
      }
    }
  }
  return sum;
}

/*
  With `own`, the sum of a segment of long row r is in `partial`: the last one to arrive adds up those of all of them, its group of lanes if they are few, its warp if they are
  many. The counter decides who adds, not in which order. All lanes of a warp come here together.
*/
template <class shape, int lanes = shape::deep_lanes>
__device__ __forceinline__ void tc_csr_add_arrived(const tc_csr_view &A, const tc_spmm_args &args, const double *partial, bool own, int32_t r, int32_t j)
{
  constexpr int few  = 16;
  const int     lane = threadIdx.x % lanes;

  static_assert(shape::width <= TC_SPMM_CHUNKS * lanes, "a counter for each part of the columns");
  if (!__any_sync(tc_full_warp, own)) return;
  __syncwarp();
  const uint32_t leaders = __ballot_sync(tc_full_warp, own && lane == 0 && tc_csr_arrive(A, r, j / lanes, 1));

  if (leaders == 0) return;
  __syncwarp(); // all lanes know what the leaders know: a vote orders no memory
  const bool    last  = leaders >> (threadIdx.x % tc_warp_size - lane) & 1;
  const int32_t first = A.long_first[r], num = A.long_first[r + 1] - first;

  if (last && num <= few) {
    const double sum = tc_add_sums<few>(0.0, partial + (int64_t)first * shape::width + tc_csr_column_of<shape>(j), num, shape::width);

    if (j < args.n) tc_csr_put(sum, args, A.long_row[r], j);
  }
#pragma unroll 1
  for (uint32_t left = __ballot_sync(tc_full_warp, last && num > few && lane == 0); left; left &= left - 1) {
    const int     leader = __ffs(left) - 1;
    const int32_t row = __shfl_sync(tc_full_warp, r, leader), column = __shfl_sync(tc_full_warp, j, leader) + lane, from = __shfl_sync(tc_full_warp, first, leader);
    const double  sum = tc_csr_sum_of_segments<lanes>(partial + (int64_t)from * shape::width + tc_csr_column_of<shape>(column), __shfl_sync(tc_full_warp, num, leader), shape::width);

    if (threadIdx.x % tc_warp_size < lanes && column < args.n) tc_csr_put(sum, args, A.long_row[row], column);
  }
}

/* Item `item` of the segments and the heavy rows, each as many times as there are chunks of columns */
template <class shape>
__device__ __forceinline__ void tc_csr_listed(const tc_csr_view &A, const tc_spmm_args &args, const tc_csr_rows &B, double *partial, const int32_t *top, int64_t item, int lane, tc_csr_entries &entries)
{
  const int32_t s = (int32_t)(item / shape::chunks), j = (int32_t)(item % shape::chunks) * shape::deep_lanes + lane;
  const bool    used = s < A.num_segments + A.num_heavy, heavy = s >= A.num_segments;
  int32_t       low = 0, row = 0, begin = 0, end = 0;

  if (used) {
    low   = tc_csr_long_of_segment(A, s, heavy ? 0 : A.num_long - 1);
    row   = heavy ? A.heavy_row[s - A.num_segments] : A.long_row[low];
    begin = A.row_ptr[row] + (heavy ? 0 : TC_SPMM_SEGMENT * (s - A.long_first[low]));
    end   = min(begin + TC_SPMM_SEGMENT, A.row_ptr[row + 1]);
  }
  tc_wait_for_kernel_before(); // it wrote rows of B
  const double sum = tc_csr_unscale<shape>(tc_csr_sum_deep<shape>(A, begin, end, B, args.n, j, entries), top, j);

  if (used && !heavy && tc_csr_has_column<shape>(j)) partial[(int64_t)s * shape::width + j] = sum;
  if (used && heavy && j < args.n) tc_csr_put(sum, args, row, j);
  if constexpr (shape::adds) tc_csr_add_arrived<shape>(A, args, partial, used && !heavy, low, j);
}

/* Item `item` of those that a warp sums, which are the first ones, each as many times as there are parts of `warp_lanes` columns */
template <class shape>
__device__ __forceinline__ void tc_csr_listed_by_warp(const tc_csr_view &A, const tc_spmm_args &args, const tc_csr_rows &B, double *partial, const int32_t *top, int32_t item, tc_csr_entries &entries)
{
  constexpr int lanes = shape::warp_lanes;
  const int32_t s = item / tc_csr_warp_parts<shape>, lane = threadIdx.x % tc_warp_size, j = item % tc_csr_warp_parts<shape> * lanes + lane % lanes;
  const bool    heavy = s >= A.num_segments, first = lane < lanes;
  const int32_t low = tc_csr_long_of_segment_by_warp(A, s, heavy ? 0 : A.num_long - 1), row = heavy ? A.heavy_row[s - A.num_segments] : A.long_row[low];
  const int32_t begin = A.row_ptr[row] + (heavy ? 0 : TC_SPMM_SEGMENT * (s - A.long_first[low])), end = min(begin + TC_SPMM_SEGMENT, A.row_ptr[row + 1]);

  tc_wait_for_kernel_before(); // it wrote rows of B
  const double sum = tc_csr_unscale<shape>(tc_csr_sum_deep<shape, true>(A, begin, end, B, args.n, j, entries), top, j);

  if (first && !heavy && tc_csr_has_column<shape>(j)) partial[(int64_t)s * shape::width + j] = sum;
  if (first && heavy && j < args.n) tc_csr_put(sum, args, row, j);
  if constexpr (shape::adds) tc_csr_add_arrived<shape, lanes>(A, args, partial, first && !heavy, low, j);
}

/* The columns that a thread block multiplies: all, or of column-major B a part for each blockIdx.y */
template <bool parts, int width>
struct tc_csr_share_of_columns {
  const tc_spmm_args &args;
  const tc_csr_rows  &B;

  __device__ __forceinline__ tc_csr_share_of_columns(const tc_spmm_args &args, const tc_csr_rows &B) : args(args), B(B) { }
};
template <int width>
struct tc_csr_share_of_columns<true, width> {
  tc_spmm_args args;
  tc_csr_rows  B;

  __device__ __forceinline__ tc_csr_share_of_columns(const tc_spmm_args &all, const tc_csr_rows &whole) : args(all), B(whole)
  {
    const int32_t first = width * static_cast<int32_t>(blockIdx.y);

    args.n = min(all.n - first, width);
    args.c += first * all.ldc;
    B.first += first * whole.column;
  }
};

/*
  tc_spmm_csr_kernel - C = A B or C += A B straight from CSR: no conversion, any row lengths

  Work:   thread blocks are dealt out to segments of long rows first, then to heavy rows, then to all others. The first `by_warps` of these segments and heavy rows have a warp for up to
          16 columns, each of the others a group of lanes for up to 32. Of the other rows a group owns one after the other of the block's, ranked by length: with `deep` in the same way, else all columns, 2 * pairs * vectors for
          each lane; with `stream` its rows follow each other and are summed as one stream of entries. With `apart` parts of the columns come one after the other, so that the L2
          cache holds those sectors of B that several entries need an element of
  Lanes:  neighbours read an element or, for other rows without `deep`, two or four each of the same row of B; an entry of A is read by one lane of a group for all,
          with more than 64 columns of doubles by each of them
  Arrays: the view; B row-major, with `deep` also column-major, with `apart` only that, and, where its rows are scaled, the tops of their columns [width]; C column-major; partial row-major [num_segments, width]
  Writes: C once for each row that is not long, but for heavy rows through shared memory, so that stores run along columns; partial for the others, and with `adds` these
          rows of C, too, by the last of their segments to arrive
  Launch: with `apart` grid.y parts of the columns. 64 to 256 threads per block, fewer where groups are small, since a block waits for its longest row; (rows of the block) x (width + 1 or 2) doubles of shared
          memory, 24 bytes for each entry that groups hold.  Needs: sm_70.  Source: the row-split kernel of the literature, e.g. Yang, Buluc and Owens, "Design
          Principles for Sparse Matrix Multiplication on the GPU", Euro-Par'18
*/
template <class shape>
static __global__ void __launch_bounds__(shape::threads, tc_csr_resident / shape::threads) tc_spmm_csr_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_spmm_args all, const __grid_constant__ tc_csr_rows whole, double *partial, int32_t listed_blocks, int32_t by_warps, const int32_t *top)
{
  const tc_csr_share_of_columns<shape::apart, shape::width> part(all, whole);
  const tc_spmm_args                           &args = part.args;
  const tc_csr_rows                            &B    = part.B;
  constexpr int             lanes = shape::lanes, deep_lanes = shape::deep_lanes, pitch = shape::pitch;
  constexpr int             groups = shape::threads / lanes, deep_groups = shape::threads / deep_lanes;
  extern __shared__ double2 sums[]; // [rows][pitch] numbers
  __shared__ tc_csr_entries entries[shape::threads / (shape::warp_sums ? shape::warp_lanes : deep_lanes)];
  double *const             tile       = reinterpret_cast<double *>(sums);
  const int                 deep_group = threadIdx.x / deep_lanes, deep_lane = threadIdx.x % deep_lanes;

  if (static_cast<int32_t>(blockIdx.x) < listed_blocks) {
    constexpr int warps       = shape::threads / tc_warp_size;
    const int32_t warp_blocks = (tc_csr_warp_parts<shape> * by_warps + warps - 1) / warps, item = warps * static_cast<int32_t>(blockIdx.x) + static_cast<int32_t>(threadIdx.x) / tc_warp_size;

    if (!shape::warp_sums || static_cast<int32_t>(blockIdx.x) >= warp_blocks) {
      tc_csr_listed<shape>(A, args, B, partial, top, shape::chunks * by_warps + (int64_t)(static_cast<int32_t>(blockIdx.x) - warp_blocks) * deep_groups + deep_group, deep_lane, entries[deep_group]);
    } else if (item < tc_csr_warp_parts<shape> * by_warps) tc_csr_listed_by_warp<shape>(A, args, B, partial, top, item, entries[threadIdx.x / shape::warp_lanes]);
    return;
  }
  const int32_t row0 = (blockIdx.x - listed_blocks) * shape::rows;

  if constexpr (shape::stream) {
    __shared__ tc_csr_streams<shape> streams;

    tc_csr_sum_streams<shape>(A, B, row0, args.n, streams, tile);
    __syncthreads();
    tc_csr_put_streams<shape>(args, row0, streams, tile);
  } else {
    __shared__ tc_csr_block<shape> block;

    block.rank(A, row0);
    tc_wait_for_kernel_before();
    if constexpr (shape::deep) {
      static_assert(shape::rows * shape::chunks % deep_groups == 0, "all groups of a warp sum equally many times");
#pragma unroll 1
      for (int i = 0; i < shape::rows * shape::chunks / deep_groups; ++i) {
        const int        item = tc_csr_item<deep_groups>(i, deep_group), j = item % shape::chunks * deep_lanes + deep_lane;
        const tc_csr_row row  = block.row[item / shape::chunks];
        const double     sum  = tc_csr_sum_deep<shape>(A, row.begin, row.begin + row.length, B, args.n, j, entries[deep_group]);

        if (tc_csr_has_column<shape>(j)) tile[row.at * pitch + j] = sum;
      }
    } else {
      const int lane = threadIdx.x % lanes;

      static_assert(shape::rows % groups == 0, "all groups sum equally many times");
#pragma unroll 1
      for (int i = 0; i < shape::rows / groups; ++i) {
        const tc_csr_row row = block.row[tc_csr_item<groups>(i, threadIdx.x / lanes)];
        double2          sum[shape::vectors * shape::pairs] = {};

        tc_csr_sum<shape>(A.col + row.begin, A.val + row.begin, row.length, B, args.n, lane, sum);
#pragma unroll
        for (int v = 0; v < shape::vectors * shape::pairs; ++v) {
          double *to = tile + row.at * pitch + 2 * shape::pairs * (lanes * (v / shape::pairs) + lane) + 2 * (v % shape::pairs);

          to[0] = sum[v].x;
          to[1] = sum[v].y;
        }
      }
    }
    __syncthreads();
    const int     r   = threadIdx.x % shape::rows;
    const int32_t row = row0 + r, length = row < A.num_rows ? A.row_ptr[row + 1] - A.row_ptr[row] : A.heavy_from;

    if (length >= A.heavy_from || (args.add && length == 0)) return;
    for (int j = threadIdx.x / shape::rows; j < args.n; j += shape::threads / shape::rows) tc_csr_put(tc_csr_unscale<shape>(tile[r * pitch + j], top, j), args, row, j);
  }
}

/*
  Segments and heavy rows that are summed by warps, the first ones, in `parts` of the columns. Such sums are there in half of the time, which is worth more warps where a product would wait for them: with few rows,
  or where they have much of the entries; none if there are too many segments (docs/performance-chains.md, "Segments by warps").
*/
static inline int32_t tc_csr_num_by_warps(const tc_csr_view *A, int parts, const tc_device_size *size)
{
  const int64_t held = (int64_t)tc_csr_resident * size->num_sms, most = held / tc_warp_size / 2 / parts;

  if (A->num_segments > most || (2 * (int64_t)A->num_rows > held && 4 * (int64_t)TC_SPMM_SEGMENT * A->num_segments < A->nnz)) return 0;
  return static_cast<int32_t>(std::min<int64_t>((int64_t)A->num_segments + A->num_heavy, most));
}

template <class shape>
static tc_status tc_launch_csr_shape(const char *name, const tc_csr_view *A, const tc_spmm_args *args, const tc_csr_rows &B, double *partial, const int32_t *top, bool early, cudaStream_t stream)
{
  constexpr int         shared = sizeof(double) * shape::rows * shape::pitch, groups = shape::threads / shape::deep_lanes, warps = shape::threads / tc_warp_size, parts = tc_csr_warp_parts<shape>;
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  const int32_t by_warps      = shape::warp_sums ? tc_csr_num_by_warps(A, parts, size) : 0;
  const int64_t by_groups     = ((int64_t)A->num_segments + A->num_heavy - by_warps) * shape::chunks;
  const int32_t listed_blocks = (parts * by_warps + warps - 1) / warps + static_cast<int32_t>((by_groups + groups - 1) / groups), blocks = listed_blocks + (A->num_rows + shape::rows - 1) / shape::rows;

  if (early) return tc_launch_early(name, tc_spmm_csr_kernel<shape>, blocks, shape::threads, shared, stream, *A, *args, B, partial, listed_blocks, by_warps, top);
  return tc_launch_grid(name, tc_spmm_csr_kernel<shape>, false, dim3((unsigned)blocks), shape::threads, shared, stream, *A, *args, B, partial, listed_blocks, by_warps, top);
}

/* B column-major, no row long or heavy */
template <class shape>
static tc_status tc_launch_csr_apart(const char *name, const tc_csr_view *A, const tc_spmm_args *args, const tc_csr_rows &B, cudaStream_t stream)
{
  const dim3 grid((unsigned)((A->num_rows + shape::rows - 1) / shape::rows), (unsigned)((args->n + shape::width - 1) / shape::width));

  return tc_launch_grid(name, tc_spmm_csr_kernel<shape>, A->nnz > 0, grid, shape::threads, sizeof(double) * shape::rows * shape::pitch, stream, *A, *args, B, nullptr, 0, 0, nullptr);
}

/*
  Does the last segment of a long row to arrive add up all of them, while other rows are summed? Where there are few others, nothing hides the counters, and a launch is cheaper:
  where more than `part` of `of` entries are in segments.
*/
static inline bool tc_csr_adds_segments(const tc_csr_view *A, int part, int of)
{
  return A->num_long > 0 && of * (int64_t)TC_SPMM_SEGMENT * A->num_segments <= part * A->nnz;
}

/* A product of columns `width` wide whose sums of segments are added by whoever it suits */
template <class shape, class adding>
static tc_status tc_launch_csr_shapes(const char *name, const tc_csr_view *A, const tc_spmm_args *args, const tc_csr_rows &B, double *partial, const int32_t *top, bool early, cudaStream_t stream)
{
  if (tc_csr_adds_segments(A, 3, 4)) return tc_launch_csr_shape<adding>(name, A, args, B, partial, top, early, stream);
  TC_CALL((tc_launch_csr_shape<shape>(name, A, args, B, partial, top, early, stream)));
  return tc_add_segments<double>(name, {A->num_long, 1, A->long_row, A->long_first, partial, shape::width, args->n, args->c, args->ldc, args->add != 0}, A->num_segments, stream);
}

/*
  Are rows long, and are there fewer groups of lanes than the device holds? Then a product takes as long as the loads of a row one after the other, and not as long as all
  instructions: with a column per lane there are four times as many loads in flight, and twice as many instructions. With longer rows and few columns that still pays where
  the device is full a few times. With few columns it does not where rows fill half of the device and the L1 cache holds all rows of B, so that loads do not take long, nor where most is in
  segments, which have a column per lane whatever the others have, in smaller blocks then (docs/performance-waits.md, "Entries of A for a whole group").
*/
template <tc_precision precision, int width>
static inline bool tc_csr_goes_deep(const tc_csr_view *A, const tc_device_size *size)
{
  constexpr bool few     = precision == TC_PRECISION_F64 && width <= tc_csr_few;
  const int64_t  threads = (int64_t)A->num_rows * tc_csr_shape<precision, (width < 8 ? 8 : width), false, false>::lanes, held = (int64_t)tc_csr_resident * size->num_sms;
  const int      times   = width <= tc_warp_size && A->nnz >= (int64_t)tc_csr_longer * A->num_rows ? tc_csr_times : 1;
  const bool     near = 2 * threads >= held && sizeof(double) * width * A->num_cols <= tc_csr_near, segments = A->num_long > 0 && !tc_csr_adds_segments(A, 3, 4);

  return A->nnz >= (int64_t)tc_csr_batch * A->num_rows && threads <= times * held && !(few && (near || segments));
}

/*
  `partial` has room for the sums of segments, `top` says what the columns of B are scaled by, where they are. `early`: as soon as the kernel
  before lets it, which must not write to A then.
*/
template <tc_precision precision, int width>
static tc_status tc_launch_csr(const char *name, const tc_csr_view *A, const tc_spmm_args *args, const tc_csr_rows &B, double *partial, const int32_t *top, cudaStream_t stream, bool early = false)
{
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  if constexpr (precision == TC_PRECISION_F64 && tc_csr_short<width> > 0) {
    if (tc_csr_in_streams<width>(A, size)) return tc_launch_csr_shapes<tc_csr_stream_shape<width, false>, tc_csr_stream_shape<width, true>>(name, A, args, B, partial, top, early, stream);
  }
  if (tc_csr_goes_deep<precision, width>(A, size)) return tc_launch_csr_shapes<tc_csr_shape<precision, width, true, false>, tc_csr_shape<precision, width, true, true>>(name, A, args, B, partial, top, early, stream);
  if constexpr (precision == TC_PRECISION_F64 && width <= tc_csr_few) {
    if (A->nnz >= (int64_t)tc_csr_further * A->num_rows) return tc_launch_csr_shapes<tc_csr_shape<precision, width, false, false, 8>, tc_csr_shape<precision, width, false, true, 8>>(name, A, args, B, partial, top, early, stream);
  }
  return tc_launch_csr_shapes<tc_csr_shape<precision, width, false, false>, tc_csr_shape<precision, width, false, true>>(name, A, args, B, partial, top, early, stream);
}
