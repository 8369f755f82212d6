/*
  Products with dense blocks of floats, row-major, straight from CSR: nothing is copied or converted but the entries of A.
*/
#pragma once
#include "spmm_csr.cuh"
#include "tc_mma.cuh"
#include <algorithm>

/* A group of lanes reads 16 bytes of a row of B each: its columns */
template <int num_lanes>
struct tc_csr_panel {
  static constexpr int lanes   = num_lanes; // of a group that owns rows; and entries of A that it takes at a time
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
  int32_t       rows;    // of a group, as many as it has lanes at most
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

/* Entries of A in shared memory, for the lanes of a group: those that are multiplied, and the next ones */
template <int lanes>
struct tc_csr_panel_entries {
  tc_csr_numbers<uint32_t, 2 * lanes> place; // of the row of B, in float4
  tc_csr_numbers<float, 2 * lanes>    val;
};

/*
  tc_spmm_csr_row_major_kernel - C = A B straight from CSR, sums in single precision, B and C row-major

  Work:   thread blocks are dealt out to segments of long rows first, then to heavy rows, an item to each group of lanes. Each group of the further ones owns `rows` neighbouring
          rows, whose entries it takes one after the other: rows of B are on their way for 8 entries, wherever rows of A end. All take as many columns as their lanes read at
          once, and leave the others to other blocks
  Lanes:  neighbours read 16 bytes of the same row of B each; of the entries of A one each, for the whole group, and where a row ends; the next ones are on their way
          while rows of B are
  Arrays: the view; B, C row-major, aligned to 16 bytes, as are their rows; partial row-major [num_segments, n]; all device
  Writes: C once for each row that is not long; partial for the others
  Launch: 128 threads per block, static shared memory.  Needs: sm_60.  Source: Yang, Buluc and Owens, Euro-Par'18, as for tc_spmm_csr_kernel
*/
template <class shape>
static __global__ void __launch_bounds__(shape::threads, tc_csr_row_major_resident) tc_spmm_csr_row_major_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_csr_row_major_args args)
{
  constexpr int                    lanes = shape::lanes, groups = shape::groups, ahead = shape::ahead, none = -1;
  __shared__ tc_csr_panel_entries<lanes> all[groups];
  const int      lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const uint32_t whole_group = (tc_full_warp >> (tc_warp_size - lanes)) << threadIdx.x % tc_warp_size / lanes * lanes;
  tc_csr_panel_entries<lanes> &taken = all[group];
  const bool    listed = static_cast<int32_t>(blockIdx.x) < args.listed_blocks * args.panels;
  const int32_t of_kind = listed ? blockIdx.x : blockIdx.x - args.listed_blocks * args.panels;
  const int32_t per = listed ? 1 : args.rows, items = listed ? A.num_segments + A.num_heavy : A.num_rows, blocks = listed ? args.listed_blocks : (A.num_rows + groups * per - 1) / (groups * per);
  const int32_t block = args.panel_by_panel ? of_kind % blocks : of_kind / args.panels, panel = args.panel_by_panel ? of_kind / blocks : of_kind % args.panels;
  const int32_t item = (block * groups + group) * per, num = min(per, items - item), column = panel * shape::columns + 4 * lane;
  const float4 *mine = args.b + column / 4;
  int32_t       begin = 0, end = 0, col = 0, row = 0; // begin and end: of row number `lane` of the group's
  double        val = 0;
  float        *out = args.c + column;
  float4        sum = {}, b[ahead];

  if (listed) {
    if (num > 0) {
      const bool    heavy = item >= A.num_segments;
      const int32_t low   = tc_csr_long_of_segment(A, item, heavy ? 0 : A.num_long - 1), of = heavy ? A.heavy_row[item - A.num_segments] : A.long_row[low];

      begin = A.row_ptr[of] + (heavy ? 0 : TC_SPMM_SEGMENT * (item - A.long_first[low]));
      end   = min(begin + TC_SPMM_SEGMENT, A.row_ptr[of + 1]);
    }
  } else if (lane < num) {
    begin = __ldg(A.row_ptr + item + lane);
    end   = __ldg(A.row_ptr + item + lane + 1);
  }
  uint32_t skipped = (__ballot_sync(tc_full_warp, !listed && lane < num && end - begin >= A.heavy_from) & whole_group) >> threadIdx.x % tc_warp_size / lanes * lanes;

  tc_keep(mine); // one address: the compiler would add up its parts for each row of B
  out += static_cast<int64_t>(item) * args.ldc;
#pragma unroll 1
  while (__any_sync(tc_full_warp, row < num)) { // rows up to one that others have
    const int     stop = skipped ? __ffs(skipped) - 1 : max(num, row);
    const int32_t at = __shfl_sync(tc_full_warp, begin, row % lanes, lanes), left = stop > row ? __shfl_sync(whole_group, end, stop - 1, lanes) - at : 0;
    int32_t       ends = !listed && stop > row ? __shfl_sync(whole_group, end, row, lanes) - at : none;
    const auto fetch = [&](int32_t p) {
      if (p + lane < left) {
        col = __ldcs(A.col + at + p + lane);
        val = __ldcs(A.val + at + p + lane);
      }
    };
    const auto keep = [&](int32_t p) {
      __syncwarp();
      taken.place.of[(p + lane) % (2 * lanes)] = col * args.stride;
      taken.val.of[(p + lane) % (2 * lanes)]   = static_cast<float>(val);
      __syncwarp();
      fetch(p + lanes);
    };
    const auto close = [&](int32_t p) {
#pragma unroll 1
      while (p == ends) {
        __stcs(reinterpret_cast<float4 *>(out), make_float4(sum.x + 0, sum.y + 0, sum.z + 0, sum.w + 0));
        sum = {};
        out += args.ldc;
        ++row;
        ends = row < stop ? __shfl_sync(whole_group, end, row % lanes, lanes) - at : none;
      }
    };
    fetch(0);
    keep(0);
    close(0);
    tc_csr_numbers<uint32_t, ahead> place;
#pragma unroll
    for (int f = 0; f < ahead / 4; ++f) place.four[f] = taken.place.four[f];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (i < left) b[i] = __ldg(mine + place.of[i]);
    }
#pragma unroll 1
    for (int32_t p = 0; __any_sync(tc_full_warp, p < left); p += ahead) {
      tc_csr_numbers<float, ahead> vals;

      if ((p + ahead) % lanes == 0) keep(p + ahead);
#pragma unroll
      for (int f = 0; f < ahead / 4; ++f) {
        vals.four[f]  = taken.val.four[p % (2 * lanes) / 4 + f];
        place.four[f] = taken.place.four[(p + ahead) % (2 * lanes) / 4 + f];
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        if (p + i < left) {
          sum.x = fmaf(vals.of[i], b[i].x, sum.x);
          sum.y = fmaf(vals.of[i], b[i].y, sum.y);
          sum.z = fmaf(vals.of[i], b[i].z, sum.z);
          sum.w = fmaf(vals.of[i], b[i].w, sum.w);
        }
        close(p + i + 1);
        if (i % 2 == 1) {
          if (p + ahead + i - 1 < left) b[i - 1] = __ldg(mine + place.of[i - 1]);
          if (p + ahead + i < left) b[i] = __ldg(mine + place.of[i]);
        }
      }
    }
    if (listed) break;
    skipped &= skipped - 1;
    row = stop + 1;
    out += args.ldc;
  }
  if (!listed || num <= 0) return;
  if (item < A.num_segments) {
    double2 *to = reinterpret_cast<double2 *>(args.partial + (int64_t)item * args.n + column);

    to[0] = make_double2(sum.x, sum.y);
    to[1] = make_double2(sum.z, sum.w);
  } else __stcs(reinterpret_cast<float4 *>(args.c + A.heavy_row[item - A.num_segments] * args.ldc + column), make_float4(sum.x + 0, sum.y + 0, sum.z + 0, sum.w + 0));
}

/* So many rows to a group that it has `entries` of them, by the mean */
template <int lanes>
static tc_status tc_launch_csr_row_major(const char *name, const tc_csr_view *A, const tc_spmm_args *args, bool panel_by_panel, cudaStream_t stream)
{
  using shape = tc_csr_panel<lanes>;
  constexpr int64_t entries = 160, fewest = 4, most = 16;
  static_assert(most <= lanes, "a lane of the group knows where a row ends");
  const int32_t panels = args->n / shape::columns, rows = (int32_t)std::min(most, std::max(fewest, entries * A->num_rows / std::max<int64_t>(A->nnz, 1)));
  const int64_t listed_blocks = ((int64_t)A->num_segments + A->num_heavy + shape::groups - 1) / shape::groups, grid = (listed_blocks + (A->num_rows + shape::groups * rows - 1) / (shape::groups * rows)) * panels;
  float        *c             = reinterpret_cast<float *>(args->c);

  TC_CALL(tc_launch(name, tc_spmm_csr_row_major_kernel<shape>, grid, shape::threads, stream, *A, tc_csr_row_major_args{reinterpret_cast<const float4 *>(args->b), (uint32_t)(args->ldb / 4), args->n, c, args->ldc, args->scratch, rows, panels, (int32_t)listed_blocks, panel_by_panel}));
  return tc_add_segments<float>(name, {A->num_long, 1, A->long_row, A->long_first, args->scratch, args->n, args->n, c, args->ldc, false}, A->num_segments, stream);
}

/*
  With 128 columns at a time. If rows of B are needed by many others, 64 columns of them all may stay in the L2 cache until they are: then all rows are multiplied with these
  before the next 64 (docs/performance-narrow.md).
*/
static tc_status tc_csr_row_major(const char *name, const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int32_t few = 8, widest = tc_csr_panel<tc_warp_size>::columns;

  TC_CHECK(args->n % 64 == 0 && args->ldb % 4 == 0 && args->ldc % 4 == 0 && !args->add && reinterpret_cast<uintptr_t>(args->b) % 16 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0, TC_ERR_UNSUPPORTED, "%s: %d columns of floats, row-major, of rows %lld and %lld apart", name, args->n, (long long)args->ldb, (long long)args->ldc);
  TC_CHECK(A->num_cols * (args->ldb / 4) <= UINT32_MAX, TC_ERR_LIMIT, "%s: %d rows of %lld floats, 64 GiB are all that B may have", name, A->num_cols, (long long)args->ldb);
  if (args->n > widest && A->nnz >= few * (int64_t)A->num_cols && A->nnz >= few * (int64_t)A->num_rows) return tc_launch_csr_row_major<tc_warp_size / 2>(name, A, args, true, stream);
  return args->n % widest == 0 ? tc_launch_csr_row_major<tc_warp_size>(name, A, args, false, stream) : tc_launch_csr_row_major<tc_warp_size / 2>(name, A, args, false, stream);
}
