/*
  Streams of rows, for the kernel of spmm_csr.cuh: where rows are short, a group of lanes sums entries of several, one after the other, whatever rows they belong to.
*/
#pragma once
#include "csr_sums.cuh"
#include <cub/block/block_scan.cuh>

/*
  The rows of a thread block that have entries, without heavy ones, one behind the other, and where their entries end. Each group of lanes has rows that follow each other, with as many entries as
  other groups have, or a row more.
*/
template <class shape>
struct tc_csr_streams {
  static constexpr int threads = shape::threads, rows = shape::rows;
  static constexpr int none = rows, other = rows + 1; // places of rows without entries, and of those that are not summed here
  static constexpr int shift = 8;                     // of entries, above rows, in what is scanned
  using scan                 = cub::BlockScan<int32_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  static_assert(rows <= threads && other <= UINT8_MAX && rows < 1 << shift && TC_SPMM_SEGMENT <= (INT32_MAX >> shift) / rows, "a thread for each row, and no overflow");

  typename scan::TempStorage scanned;
  int32_t                    end[rows + shape::ahead]; // of the entries of a row; beyond the last row no entry's
  int32_t                    before[rows + 1];         // entries of the rows before
  uint8_t                    place[rows];              // of the sums of a row of the block, or `none` or `other`

  /* Lists the rows from row0 on, and returns how many there are. The whole block comes here together. */
  __device__ __forceinline__ int list(const tc_csr_view &A, int32_t row0)
  {
    const int     r     = threadIdx.x;
    const int32_t row   = row0 + r;
    const bool    mine  = r < rows && row < A.num_rows;
    const int32_t stop  = mine ? A.row_ptr[row + 1] : 0, length = mine ? stop - A.row_ptr[row] : 0;
    const bool    light = length < A.heavy_from, summed = length > 0 && light;
    int32_t       at, all;

    scan(scanned).ExclusiveSum(summed ? (length << shift) + 1 : 0, at, all);
    const int c = at & ((1 << shift) - 1), num = all & ((1 << shift) - 1);

    if (r < rows) place[r] = static_cast<uint8_t>(summed ? c : mine && light ? none : other);
    if (summed) {
      end[c]    = stop;
      before[c] = at >> shift;
    }
    if (r < shape::ahead) end[num + r] = INT32_MAX;
    if (r == 0) before[num] = all >> shift;
    __syncthreads();
    return num;
  }

  /* The first of `num` rows that has at least so many entries before it, or `num` */
  __device__ __forceinline__ int find(int num, int32_t entries) const
  {
    int c = 0;

#pragma unroll
    for (int step = rows; step > 0; step /= 2) {
      if (c + step <= num && before[c + step - 1] < entries) c += step;
    }
    return c;
  }

  /* Up to which row, at most `stop`, do the entries of rows from c < stop on follow each other? No heavy row lies between. */
  __device__ __forceinline__ int run(int c, int stop) const
  {
    const int32_t apart = end[c] - before[c + 1];

    if (end[stop - 1] - before[stop] == apart) return stop;
    for (stop = c + 1; end[stop] - before[stop + 1] == apart; ++stop) { }
    return stop;
  }
};

/*
  The sums of rows c .. stop - 1, whose entries follow each other, for the columns of this lane, into their places in `tile`. The columns of the next entries are loaded while the rows of B of the
  present ones are on their way, whatever rows they belong to, so that a short row does not wait for its own. A lane loads an entry or two for its whole group, and finds out for it which of the entries
  are the last ones of rows. Beyond the last entry that one is loaded again and not added. All lanes of a warp come here together, also where there is nothing to sum.
*/
template <class shape>
__device__ __forceinline__ void tc_csr_sum_stream(const tc_csr_view &A, const tc_csr_streams<shape> &rows, int c, int stop, const tc_csr_rows &B, int32_t n, int lane, double *tile)
{
  constexpr int ahead = shape::ahead, loaders = shape::loaders, held = shape::held;
  using part          = tc_csr_columns<shape::precision, shape::pairs>;
  static_assert(shape::vectors == 1 && shape::pairs == 1, "a lane has two columns");
  static_assert(loaders * held == ahead && (loaders & (loaders - 1)) == 0, "each entry is loaded once, and lanes exchange by halves");
  const int         own  = lane % loaders;
  const char *const mine = B.first + sizeof(part) * min(lane, (n - 1) / 2);
  int32_t           left = rows.before[stop] - rows.before[c], e = left > 0 ? rows.end[c] - (rows.before[c + 1] - rows.before[c]) : 0, next[held];
  const int32_t     last = e + left - 1;
  double           *to   = tile + c * shape::pitch + 2 * lane;
  double2           sum  = make_double2(0.0, 0.0);
  double            val[held];

#pragma unroll
  for (int h = 0; h < held; ++h) {
    next[h] = left > 0 ? __ldg(A.col + min(e + loaders * h + own, last)) : 0;
    val[h]  = 0.0;
  }
#pragma unroll 1
  while (__any_sync(tc_full_warp, left > 0)) {
    uint32_t ends = 0; // a bit for each entry: the last one of its row?
    int32_t  col[ahead];
    part     row[ahead];

#pragma unroll
    for (int i = 0; i < ahead; ++i) col[i] = tc_csr_loaded<shape>(next, i);
    if (left > 0) { // all of them on their way together
#pragma unroll
      for (int i = 0; i < ahead; ++i) row[i].load(mine + (uint64_t)(uint32_t)col[i] * B.stride);
#pragma unroll
      for (int h = 0; h < held; ++h) {
        const uint32_t i = static_cast<uint32_t>(rows.end[c + loaders * h + own] - e - 1); // at most one row for each entry ends

        ends |= i < static_cast<uint32_t>(min(left, ahead)) ? 1u << i : 0;
        val[h]  = __ldg(A.val + min(e + loaders * h + own, last));
        next[h] = __ldg(A.col + min(e + ahead + loaders * h + own, last));
      }
    }
#pragma unroll
    for (int apart = loaders / 2; apart > 0; apart /= 2) ends |= __shfl_xor_sync(tc_full_warp, ends, apart);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const double  a = tc_csr_loaded<shape>(val, i);
      const double2 b = row[i].pair(0);

      if (i < left) {
        sum.x = fma(a, b.x, sum.x);
        sum.y = fma(a, b.y, sum.y);
      }
      if (ends >> i & 1) {
        *reinterpret_cast<double2 *>(to) = sum;
        to += shape::pitch;
        sum = make_double2(0.0, 0.0);
      }
    }
    c += __popc(ends);
    if (left > 0) e += ahead;
    left -= ahead;
  }
}

/* The sums of the rows of a block from row0 on, `n` columns, into `tile`. The whole block comes here together. */
template <class shape>
__device__ __forceinline__ void tc_csr_sum_streams(const tc_csr_view &A, const tc_csr_rows &B, int32_t row0, int32_t n, tc_csr_streams<shape> &rows, double *tile)
{
  constexpr int groups  = shape::threads / shape::lanes;
  const int     num     = rows.list(A, row0), group = threadIdx.x / shape::lanes;
  const int32_t entries = rows.before[num];
  const int     stop    = rows.find(num, (group + 1) * entries / groups);

  tc_wait_for_kernel_before(); // it wrote rows of B
#pragma unroll 1
  for (int c = rows.find(num, group * entries / groups), until; __any_sync(tc_full_warp, c < stop); c = until) {
    until = c < stop ? rows.run(c, stop) : c;
    tc_csr_sum_stream<shape>(A, rows, c, until, B, n, threadIdx.x % shape::lanes, tile);
  }
}
