/*
  Products with dense blocks of floats, row-major, straight from CSR: nothing is copied or converted but the entries of A.
*/
#pragma once
#include "spmm_csr.cuh"
#include "tc_mma.cuh"
#include <algorithm>

/* Columns of a thread block whose groups take row by row: `pieces` times 128 bytes of a row of B */
template <int num_pieces>
struct tc_csr_panel {
  static constexpr int pieces  = num_pieces;
  static constexpr int lanes   = 8; // of a group that owns rows: 16 bytes of a piece each; and entries of A that it takes at a time
  static constexpr int columns = 4 * lanes * pieces;
  static constexpr int ahead   = lanes / pieces; // rows of B in flight
  static constexpr int threads = 128, groups = threads / lanes;
};

/* Columns of a thread block whose groups, warps, take the entries of several rows as one list: 16 bytes of a row of B a lane */
struct tc_csr_list {
  static constexpr int lanes   = tc_warp_size; // and entries of A that it takes at a time
  static constexpr int columns = 4 * lanes;
  static constexpr int ahead   = 8; // rows of B in flight
  static constexpr int threads = 128, groups = threads / lanes;
};

constexpr int tc_csr_row_major_resident = 6; // thread blocks of a multiprocessor: 80 registers to a thread

struct tc_csr_row_major_args {
  const float4 *b;
  uint32_t      stride; // of B's rows, in float4
  int32_t       n;
  float        *c;
  int64_t       ldc;
  double       *partial; // row-major [num_segments, n]
  int32_t       rows;    // of a group
  int32_t       panels;  // of columns
  int32_t       listed_blocks;
  bool          panel_by_panel; // all rows for a panel of columns, and not all columns for a block's rows
};

/* Numbers in shared memory, four of which move at once */
template <typename number, int num>
union tc_csr_numbers {
  uint4  four[num / 4];
  number of[num];
};

/* Entries of A in shared memory, for the lanes of a group; apart from those of the warp's other groups, in banks of their own */
struct tc_csr_batch_of_entries {
  tc_csr_numbers<uint32_t, 8> place; // of the row of B, in float4
  tc_csr_numbers<float, 8>    val;
  uint4                  apart;
};

/* The same for a warp that takes a list: those that are multiplied, and the next ones */
struct tc_csr_list_of_entries {
  tc_csr_numbers<uint32_t, 2 * tc_csr_list::lanes> place;
  tc_csr_numbers<float, 2 * tc_csr_list::lanes>    val;
};

/* The entries of a row or segment that are left, end - at of them; end < at: it is not for this block */
struct tc_csr_rest {
  int32_t at, end;
};

/* What a thread block has: items first .. end - 1, listed ones or rows, and columns from `column` on. Blocks are dealt out to segments of long rows first, then to heavy rows, an item to each group */
struct tc_csr_share {
  bool    listed;
  int32_t first, end, column;
};

template <class shape>
__device__ __forceinline__ tc_csr_share tc_csr_share_of(const tc_csr_view &A, const tc_csr_row_major_args &args)
{
  const bool    listed = static_cast<int32_t>(blockIdx.x) < args.listed_blocks * args.panels;
  const int32_t of_kind = listed ? blockIdx.x : blockIdx.x - args.listed_blocks * args.panels;
  const int32_t per = shape::groups * (listed ? 1 : args.rows), items = listed ? A.num_segments + A.num_heavy : A.num_rows, blocks = listed ? args.listed_blocks : (A.num_rows + per - 1) / per;
  const int32_t block = args.panel_by_panel ? of_kind % blocks : of_kind / args.panels, panel = args.panel_by_panel ? of_kind / blocks : of_kind % args.panels;

  return {listed, block * per, min((block + 1) * per, items), panel * shape::columns};
}

/* The entries of a listed item */
__device__ __forceinline__ tc_csr_rest tc_csr_open_listed(const tc_csr_view &A, int32_t i)
{
  const bool    heavy = i >= A.num_segments;
  const int32_t low   = tc_csr_long_of_segment(A, i, heavy ? 0 : A.num_long - 1), row = heavy ? A.heavy_row[i - A.num_segments] : A.long_row[low];
  const int32_t at    = A.row_ptr[row] + (heavy ? 0 : TC_SPMM_SEGMENT * (i - A.long_first[low]));

  return {at, min(at + TC_SPMM_SEGMENT, A.row_ptr[row + 1])};
}

/* The long rows of C, from the sums of their segments */
__host__ __device__ __forceinline__ tc_segment_sums<float> tc_csr_segment_sums(const tc_csr_view &A, const tc_csr_row_major_args &args)
{
  return {A.num_long, 1, A.long_row, A.long_first, args.partial, args.n, args.n, args.c, args.ldc, false};
}

/* Four columns of a row of C */
__device__ __forceinline__ void tc_csr_put_row(float *c, const float4 &sum)
{
  __stcs(reinterpret_cast<float4 *>(c), make_float4(sum.x + 0, sum.y + 0, sum.z + 0, sum.w + 0));
}

/* What has been summed up for four columns from j on of an item */
__device__ __forceinline__ void tc_csr_put(const tc_csr_view &A, const tc_csr_row_major_args &args, bool listed, int32_t item, int32_t j, const float4 &sum)
{
  if (listed && item < A.num_segments) {
    double2 *to = reinterpret_cast<double2 *>(args.partial + (int64_t)item * args.n + j);

    to[0] = make_double2(sum.x, sum.y);
    to[1] = make_double2(sum.z, sum.w);
  } else tc_csr_put_row(args.c + (listed ? A.heavy_row[item - A.num_segments] : item) * args.ldc + j, sum);
}

__device__ __forceinline__ void tc_csr_add(float4 &sum, float val, const float4 &b)
{
  sum.x = fmaf(val, b.x, sum.x);
  sum.y = fmaf(val, b.y, sum.y);
  sum.z = fmaf(val, b.z, sum.z);
  sum.w = fmaf(val, b.w, sum.w);
}

/*
  The sums of the segments of this block are in `partial`: all its threads, a column each, add up those of the rows that have no others left. The counters decide who adds, not
  in which order. `items_end`, `first_column`: of the block's share. All its threads come here together.
*/
template <class shape>
__device__ __forceinline__ void tc_csr_add_complete_rows(const tc_csr_view &A, const tc_csr_row_major_args &args, int32_t items_end, int32_t first_column)
{
  __shared__ uint32_t complete; // bit i: long row low + i
  const int32_t       first = (items_end - 1) / shape::groups * shape::groups, end = min(items_end, A.num_segments);

  static_assert(shape::groups <= tc_warp_size, "a lane for each long row that the segments of a block may be of");
  if (first >= end) return;
  const int32_t low = tc_csr_long_of_segment(A, first, A.num_long - 1);

  __syncthreads();
  if (threadIdx.x < tc_warp_size) {
    const int32_t  r = low + (int32_t)threadIdx.x, own = r < A.num_long ? min(end, A.long_first[r + 1]) - max(first, A.long_first[r]) : 0;
    const uint32_t all = __ballot_sync(tc_full_warp, own > 0 && tc_csr_arrive(A, r, first_column / shape::columns, own));

    if (threadIdx.x == 0) complete = all;
  }
  __syncthreads();
  if (complete == 0) return;
#pragma unroll 1
  for (int e = threadIdx.x; e < shape::groups * shape::columns; e += shape::threads) {
    if (complete >> (e / shape::columns) & 1) tc_add_segments_of(tc_csr_segment_sums(A, args), low + e / shape::columns, first_column + e % shape::columns);
  }
}

/*
  tc_spmm_csr_row_major_kernel - C = A B straight from CSR, sums in single precision, B and C row-major

  Work:   see tc_csr_share. A group of 8 lanes takes a row, or item, after the other: each 16th of the block's. It has as many columns as its pieces of 128 bytes, and leaves
          the others to other blocks
  Lanes:  neighbours read 16 bytes of the same row of B each; of the entries of A one each, for the whole group; the next ones, of the next row, too, are on their way
          while rows of B are
  Arrays: the view; B, C row-major, aligned to 16 bytes, as are their rows; partial row-major [num_segments, n]; all device
  Writes: C once for each row that is not long; partial for the others, and with `adds` these rows of C, too, by the block whose segments are the last of a row to arrive
  Launch: 128 threads per block, static shared memory.  Needs: sm_70.  Source: Yang, Buluc and Owens, Euro-Par'18, as for tc_spmm_csr_kernel
*/
template <class shape, bool adds>
static __global__ void __launch_bounds__(shape::threads, tc_csr_row_major_resident) tc_spmm_csr_row_major_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_csr_row_major_args args)
{
  constexpr int                      lanes = shape::lanes, groups = shape::groups, pieces = shape::pieces, ahead = shape::ahead;
  __shared__ tc_csr_batch_of_entries batch[2][groups];
  const int     lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const tc_csr_share share = tc_csr_share_of<shape>(A, args);
  const bool    listed = share.listed;
  const int32_t end = share.end, column = share.column + 4 * lane;
  const float4 *mine = args.b + column / 4;
  int32_t       item = share.first + group, col = 0;
  double        val = 0;
  float4        sum[pieces] = {};
  const auto open = [&](int32_t i) {
    tc_csr_rest rest = {0, -1};

    if (i < end && listed) rest = tc_csr_open_listed(A, i);
    else if (i < end) rest = {__ldg(A.row_ptr + i), __ldg(A.row_ptr + i + 1)};
    return rest;
  };
  const auto owned = [&](tc_csr_rest rest) {
    if (!listed && rest.end - rest.at >= A.heavy_from) rest.end = -1;
    return rest;
  };
  const auto fetch = [&](const tc_csr_rest &rest) {
    if (rest.at + lane < rest.end) {
      col = __ldcs(A.col + rest.at + lane);
      val = __ldcs(A.val + rest.at + lane);
    }
  };
  tc_csr_rest now = owned(open(item)), next = open(item + groups);

  fetch(now);
  tc_keep(mine); // one address: the compiler would add up its parts for each row of B
#pragma unroll 1
  for (int turn = 0; __any_sync(tc_full_warp, item < end); turn ^= 1) {
    tc_csr_batch_of_entries &taken = batch[turn][group];
    const int                num   = now.end - now.at;
    const bool               last  = num <= lanes;

    taken.place.of[lane] = col * args.stride;
    taken.val.of[lane]   = static_cast<float>(val);
    __syncwarp();
    now = last ? owned(next) : tc_csr_rest{now.at + lanes, now.end};
    fetch(now);
#pragma unroll
    for (int first = 0; first < lanes; first += ahead) {
      tc_csr_numbers<uint32_t, 8> places;
      tc_csr_numbers<float, 8>    vals;
      float4                 b[ahead][pieces];

#pragma unroll
      for (int f = first / 4; f < (first + ahead + 3) / 4; ++f) places.four[f] = taken.place.four[f];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
          if (first + i < num) b[i][p] = __ldg(mine + places.of[first + i] + lanes * p);
        }
      }
      if (first == 0 && last) next = open(item + 2 * groups);
#pragma unroll
      for (int f = first / 4; f < (first + ahead + 3) / 4; ++f) vals.four[f] = taken.val.four[f];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
          if (first + i < num) tc_csr_add(sum[p], vals.of[first + i], b[i][p]);
        }
      }
    }
    if (!last) continue;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (num >= 0) tc_csr_put(A, args, listed, item, column + 4 * lanes * p, sum[p]);
      sum[p] = make_float4(0, 0, 0, 0);
    }
    item += groups;
  }
  if constexpr (adds) {
    if (listed) tc_csr_add_complete_rows<shape>(A, args, end, static_cast<int32_t>(4 * (mine - args.b - lane)));
  }
}

/* `left` entries of A from `at` on, one to a lane, of which the next are on their way while those before are in shared memory. The whole warp. */
struct tc_csr_list_reader {
  const tc_csr_view      &A;
  tc_csr_list_of_entries &taken;
  int32_t                 at, left, lane;
  uint32_t                stride; // of places in B
  int32_t                &col;
  double                 &val;

  __device__ __forceinline__ void fetch(int32_t p)
  {
    if (p + lane >= left) return;
    col = __ldcs(A.col + at + p + lane);
    val = __ldcs(A.val + at + p + lane);
  }

  __device__ __forceinline__ void keep(int32_t p)
  {
    constexpr int lanes = tc_csr_list::lanes;

    __syncwarp();
    taken.place.of[(p + lane) % (2 * lanes)] = col * stride;
    taken.val.of[(p + lane) % (2 * lanes)]   = static_cast<float>(val);
    __syncwarp();
    fetch(p + lanes);
  }
};

/*
  tc_spmm_csr_row_major_list_kernel - the same, for rows of any length beside each other

  Work:   see tc_csr_share. A warp owns `rows` neighbouring rows, and takes their entries one after the other: rows of B are on their way for 8 of them, wherever rows of A
          end. It has 128 columns, and leaves the others to other blocks
  Lanes:  neighbours read 16 bytes of the same row of B each; of the entries of A one each, for the whole warp, and where a row ends; the next ones are on their way while
          rows of B are
  Arrays, Writes, Launch, Needs: as above.  Source: Yang, Buluc and Owens, as above, their merge-based kernel, but for rows that are not shared
*/
template <bool adds>
static __global__ void __launch_bounds__(tc_csr_list::threads, tc_csr_row_major_resident) tc_spmm_csr_row_major_list_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_csr_row_major_args args)
{
  using shape = tc_csr_list;
  constexpr int                     lanes = shape::lanes, ahead = shape::ahead, none = -1;
  __shared__ tc_csr_list_of_entries all[shape::groups];
  const int               lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  tc_csr_list_of_entries &taken = all[group];
  const tc_csr_share      share = tc_csr_share_of<shape>(A, args);
  const int32_t           own = share.listed ? 1 : args.rows, item = share.first + group * own, num = min(own, share.end - item), column = share.column + 4 * lane;
  const float4           *mine = args.b + column / 4;
  tc_csr_rest             of_lane = {0, 0}; // row number `lane` of the warp's
  int32_t                 col = 0, row = 0;
  double                  val = 0;
  float4                  sum = {}, b[ahead];
  float                  *out = args.c + item * args.ldc + column; // of row `row`

  if (!adds && num <= 0) return;
  if (share.listed && num > 0) of_lane = tc_csr_open_listed(A, item);
  else if (lane < num) of_lane = {__ldg(A.row_ptr + item + lane), __ldg(A.row_ptr + item + lane + 1)};
  uint32_t skipped = __ballot_sync(tc_full_warp, !share.listed && of_lane.end - of_lane.at >= A.heavy_from);

  tc_keep(mine); // one address: the compiler would add up its parts for each row of B
#pragma unroll 1
  for (; row < num; ++row) { // rows up to one that others have
    const int     stop = skipped ? __ffs(skipped) - 1 : num;
    const int32_t at = __shfl_sync(tc_full_warp, of_lane.at, row), left = stop > row ? __shfl_sync(tc_full_warp, of_lane.end, stop - 1) - at : 0;
    int32_t       ends = stop > row && !share.listed ? __shfl_sync(tc_full_warp, of_lane.end, row) - at : none;
    tc_csr_list_reader reader = {A, taken, at, left, lane, args.stride, col, val};
    const auto close = [&](int32_t p) {
#pragma unroll 1
      while (p == ends) {
        tc_csr_put_row(out, sum);
        sum = {};
        out += args.ldc;
        ++row;
        ends = row < stop ? __shfl_sync(tc_full_warp, of_lane.end, row) - at : none;
      }
    };
    tc_csr_numbers<uint32_t, ahead> place;

    reader.fetch(0);
    reader.keep(0);
    close(0);
#pragma unroll
    for (int f = 0; f < ahead / 4; ++f) place.four[f] = taken.place.four[f];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (i < left) b[i] = __ldg(mine + place.of[i]);
    }
#pragma unroll 1
    for (int32_t p = 0; p < left; p += ahead) {
      tc_csr_numbers<float, ahead> vals;

      if ((p + ahead) % lanes == 0) reader.keep(p + ahead);
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        if (i % 4 == 0) {
          vals.four[i / 4]  = taken.val.four[(p + i) % (2 * lanes) / 4];
          place.four[i / 4] = taken.place.four[(p + ahead + i) % (2 * lanes) / 4];
        }
        if (p + i < left) tc_csr_add(sum, vals.of[i], b[i]);
        close(p + i + 1);
        if (i % 2 == 1) {
          if (p + ahead + i - 1 < left) b[i - 1] = __ldg(mine + place.of[i - 1]);
          if (p + ahead + i < left) b[i] = __ldg(mine + place.of[i]);
        }
      }
    }
    skipped &= skipped - 1;
    out += args.ldc;
  }
  if (share.listed && num > 0) tc_csr_put(A, args, true, item, column, sum);
  if constexpr (adds) {
    if (share.listed) tc_csr_add_complete_rows<shape>(A, args, share.end, column - 4 * lane);
  }
}

using tc_csr_row_major_kernel = void(tc_csr_view, tc_csr_row_major_args);

template <class shape>
static tc_status tc_launch_csr_row_major(const char *name, tc_csr_row_major_kernel *kernel, tc_csr_row_major_kernel *adding, const tc_csr_view *A, const tc_spmm_args *args, int32_t rows, bool panel_by_panel, cudaStream_t stream)
{
  const int32_t panels        = args->n / shape::columns;
  const int64_t listed_blocks = ((int64_t)A->num_segments + A->num_heavy + shape::groups - 1) / shape::groups, grid = (listed_blocks + (A->num_rows + shape::groups * rows - 1) / (shape::groups * rows)) * panels;
  const bool    adds          = tc_csr_adds_segments(A, 1, 3) && panels <= TC_SPMM_CHUNKS;
  const tc_csr_row_major_args own = {reinterpret_cast<const float4 *>(args->b), (uint32_t)(args->ldb / 4), args->n, reinterpret_cast<float *>(args->c), args->ldc, args->scratch, rows, panels, (int32_t)listed_blocks, panel_by_panel};

  TC_CALL(tc_launch(name, adds ? adding : kernel, grid, shape::threads, stream, *A, own));
  return adds ? TC_OK : tc_add_segments<float>(name, tc_csr_segment_sums(*A, own), A->num_segments, stream);
}

template <int pieces>
static tc_status tc_launch_csr_by_row(const char *name, const tc_csr_view *A, const tc_spmm_args *args, int32_t rows, bool panel_by_panel, cudaStream_t stream)
{
  using shape = tc_csr_panel<pieces>;

  return tc_launch_csr_row_major<shape>(name, tc_spmm_csr_row_major_kernel<shape, false>, tc_spmm_csr_row_major_kernel<shape, true>, A, args, rows / shape::groups, panel_by_panel, stream);
}

/* So many rows to a warp that it has `entries` of them, by the mean */
static tc_status tc_launch_csr_lists(const char *name, const tc_csr_view *A, const tc_spmm_args *args, int64_t entries, bool panel_by_panel, cudaStream_t stream)
{
  constexpr int64_t fewest = 4, most = 16;
  static_assert(most <= tc_csr_list::lanes, "a lane of the warp knows where a row ends");

  return tc_launch_csr_row_major<tc_csr_list>(name, tc_spmm_csr_row_major_list_kernel<false>, tc_spmm_csr_row_major_list_kernel<true>, A, args, (int32_t)std::min(most, std::max(fewest, entries * A->num_rows / std::max<int64_t>(A->nnz, 1))), panel_by_panel, stream);
}

/*
  Warps take lists of entries, but for three cases. Rows that are all short, none being listed, end together: four of them at a time take fewer instructions. With 256 columns and
  more, groups of 8 lanes are faster where segments have 3 of 10 entries, and where rows of B are needed by many others, but 128 columns of them all are far beyond the L2 cache.
  Then rows of few entries are taken with 128 columns at a time, so that their ends do not keep loads back, where there are thread blocks enough for a device. If rows of B are
  needed by many others, a panel of columns of them all may stay in the L2 cache until they are: all rows are multiplied with these before the next (docs/performance-narrow.md).
*/
static tc_status tc_csr_row_major(const char *name, const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int32_t rows = 64, few = 8, widest = tc_csr_list::columns;
  const bool        short_rows  = A->nnz < few * (int64_t)A->num_rows;
  const bool        even        = short_rows && A->num_segments + A->num_heavy == 0;
  const bool        many_long   = args->n > widest && 10 * TC_SPMM_SEGMENT * (int64_t)A->num_segments >= 3 * A->nnz;
  const bool        shared      = args->n > widest && !short_rows && A->nnz >= few * (int64_t)A->num_cols;
  const int64_t     panel       = A->num_cols * (int64_t)sizeof(float) * widest; // bytes
  const int64_t     wide_blocks = ((int64_t)A->num_rows + rows - 1) / rows * (args->n / widest);
  const tc_device_size *size;

  TC_CHECK(args->n % 64 == 0 && args->ldb % 4 == 0 && args->ldc % 4 == 0 && !args->add && reinterpret_cast<uintptr_t>(args->b) % 16 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0, TC_ERR_UNSUPPORTED, "%s: %d columns of floats, row-major, of rows %lld and %lld apart", name, args->n, (long long)args->ldb, (long long)args->ldc);
  TC_CHECK(A->num_cols * (args->ldb / 4) <= UINT32_MAX, TC_ERR_LIMIT, "%s: %d rows of %lld floats, 64 GiB are all that B may have", name, A->num_cols, (long long)args->ldb);
  TC_CALL(tc_size_of_device(name, &size));
  if (args->n % widest == 0 && !even && !many_long && (!shared || panel <= 2 * (int64_t)size->cache_bytes)) return tc_launch_csr_lists(name, A, args, short_rows ? 80 : 160, shared, stream);
  if (short_rows && args->n % widest == 0 && wide_blocks >= 4 * (int64_t)tc_csr_row_major_resident * size->num_sms) return tc_launch_csr_by_row<4>(name, A, args, rows, false, stream);
  return tc_launch_csr_by_row<2>(name, A, args, shared ? 2 * rows : rows, shared, stream);
}
