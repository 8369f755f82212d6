/*
  Products with dense blocks of floats, row-major, straight from CSR: nothing is copied or converted but the entries of A.
*/
#pragma once
#include "spmm_csr.cuh"
#include "tc_mma.cuh"

/* Columns of a thread block: `pieces` times 128 bytes of a row of B */
template <int num_pieces>
struct tc_csr_panel {
  static constexpr int pieces  = num_pieces;
  static constexpr int lanes   = 8; // of a group that owns rows: 16 bytes of a piece each; and entries of A that it takes at a time
  static constexpr int columns = 4 * lanes * pieces;
  static constexpr int ahead   = lanes / pieces; // rows of B in flight
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
  int32_t       rows;    // of a thread block
  int32_t       panels;  // of columns
  int32_t       listed_blocks;
  bool          panel_by_panel; // all rows for a panel of columns, and not all columns for a block's rows
};

/* Eight numbers in shared memory, four of which move at once */
template <typename number>
union tc_csr_eight {
  uint4  four[2];
  number of[8];
};

/* Entries of A in shared memory, for the lanes of a group; apart from those of the warp's other groups, in banks of their own */
struct tc_csr_batch_of_entries {
  tc_csr_eight<uint32_t> place; // of the row of B, in float4
  tc_csr_eight<float>    val;
  uint4                  apart;
};

/* The entries of a row or segment that are left, end - at of them; end < at: it is not for this block */
struct tc_csr_rest {
  int32_t at, end;
};

/*
  tc_spmm_csr_row_major_kernel - C = A B straight from CSR, sums in single precision, B and C row-major

  Work:   thread blocks are dealt out to segments of long rows first, then to heavy rows, an item to each group of 8 lanes. Each further one owns `rows` neighbouring rows, of
          which a group takes every 16th. All take as many columns as they have pieces of 128 bytes, and leave the others to other blocks
  Lanes:  neighbours read 16 bytes of the same row of B each; of the entries of A one each, for the whole group; the next ones, of the next row, too, are on their way
          while rows of B are
  Arrays: the view; B, C row-major, aligned to 16 bytes, as are their rows; partial row-major [num_segments, n]; all device
  Writes: C once for each row that is not long; partial for the others
  Launch: 128 threads per block, static shared memory.  Needs: sm_60.  Source: Yang, Buluc and Owens, Euro-Par'18, as for tc_spmm_csr_kernel
*/
template <class shape>
static __global__ void __launch_bounds__(shape::threads, tc_csr_row_major_resident) tc_spmm_csr_row_major_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_csr_row_major_args args)
{
  constexpr int                      lanes = shape::lanes, groups = shape::groups, pieces = shape::pieces, ahead = shape::ahead;
  __shared__ tc_csr_batch_of_entries batch[2][groups];
  const int     lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const bool    listed = static_cast<int32_t>(blockIdx.x) < args.listed_blocks * args.panels;
  const int32_t of_kind = listed ? blockIdx.x : blockIdx.x - args.listed_blocks * args.panels;
  const int32_t per = listed ? groups : args.rows, items = listed ? A.num_segments + A.num_heavy : A.num_rows, blocks = listed ? args.listed_blocks : (A.num_rows + per - 1) / per;
  const int32_t block = args.panel_by_panel ? of_kind % blocks : of_kind / args.panels, panel = args.panel_by_panel ? of_kind / blocks : of_kind % args.panels;
  const int32_t end = min((block + 1) * per, items), column = panel * shape::columns + 4 * lane;
  const float4 *mine = args.b + column / 4;
  int32_t       item = block * per + group, col = 0;
  double        val = 0;
  float4        sum[pieces] = {};
  const auto open = [&](int32_t i) {
    tc_csr_rest rest = {0, -1};

    if (i < end && listed) {
      const bool    heavy = i >= A.num_segments;
      const int32_t low   = tc_csr_long_of_segment(A, i, heavy ? 0 : A.num_long - 1), row = heavy ? A.heavy_row[i - A.num_segments] : A.long_row[low];

      rest.at  = A.row_ptr[row] + (heavy ? 0 : TC_SPMM_SEGMENT * (i - A.long_first[low]));
      rest.end = min(rest.at + TC_SPMM_SEGMENT, A.row_ptr[row + 1]);
    } else if (i < end) rest = {__ldg(A.row_ptr + i), __ldg(A.row_ptr + i + 1)};
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
  const auto put = [&]() {
    const bool    segment = listed && item < A.num_segments;
    const int32_t row     = segment ? 0 : listed ? A.heavy_row[item - A.num_segments] : item;

#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int32_t j = column + 4 * lanes * p;

      if (segment) {
        double2 *to = reinterpret_cast<double2 *>(args.partial + (int64_t)item * args.n + j);

        to[0] = make_double2(sum[p].x, sum[p].y);
        to[1] = make_double2(sum[p].z, sum[p].w);
      } else __stcs(reinterpret_cast<float4 *>(args.c + row * args.ldc + j), make_float4(sum[p].x + 0, sum[p].y + 0, sum[p].z + 0, sum[p].w + 0));
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
      tc_csr_eight<uint32_t> places;
      tc_csr_eight<float>    vals;
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
          if (first + i < num) {
            sum[p].x = fmaf(vals.of[first + i], b[i][p].x, sum[p].x);
            sum[p].y = fmaf(vals.of[first + i], b[i][p].y, sum[p].y);
            sum[p].z = fmaf(vals.of[first + i], b[i][p].z, sum[p].z);
            sum[p].w = fmaf(vals.of[first + i], b[i][p].w, sum[p].w);
          }
        }
      }
    }
    if (!last) continue;
    if (num >= 0) put();
#pragma unroll
    for (int p = 0; p < pieces; ++p) sum[p] = make_float4(0, 0, 0, 0);
    item += groups;
  }
}

template <int pieces>
static tc_status tc_launch_csr_row_major(const char *name, const tc_csr_view *A, const tc_spmm_args *args, int32_t rows, bool panel_by_panel, cudaStream_t stream)
{
  using shape                 = tc_csr_panel<pieces>;
  const int32_t panels        = args->n / shape::columns;
  const int64_t listed_blocks = ((int64_t)A->num_segments + A->num_heavy + shape::groups - 1) / shape::groups, grid = (listed_blocks + (A->num_rows + rows - 1) / rows) * panels;
  float        *c             = reinterpret_cast<float *>(args->c);

  TC_CALL(tc_launch(name, tc_spmm_csr_row_major_kernel<shape>, grid, shape::threads, stream, *A, tc_csr_row_major_args{reinterpret_cast<const float4 *>(args->b), (uint32_t)(args->ldb / 4), args->n, c, args->ldc, args->scratch, rows, panels, (int32_t)listed_blocks, panel_by_panel}));
  return tc_add_segments<float>(name, {A->num_long, 1, A->long_row, A->long_first, args->scratch, args->n, args->n, c, args->ldc, false}, A->num_segments, stream);
}

/*
  Rows of few entries are taken with 128 columns at a time, so that their ends do not keep loads back, where there are thread blocks enough for a device. If rows of B are needed
  by many others, 64 columns of them all may stay in the L2 cache until they are: then all rows are multiplied with these before the next 64 (docs/performance-narrow.md).
*/
static tc_status tc_csr_row_major(const char *name, const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int32_t rows = 64, few = 8, widest = tc_csr_panel<4>::columns;
  const int64_t     wide_blocks = ((int64_t)A->num_rows + rows - 1) / rows * (args->n / widest);
  int               processors;

  TC_CHECK(args->n % 64 == 0 && args->ldb % 4 == 0 && args->ldc % 4 == 0 && !args->add && reinterpret_cast<uintptr_t>(args->b) % 16 == 0 && reinterpret_cast<uintptr_t>(args->c) % 16 == 0, TC_ERR_UNSUPPORTED, "%s: %d columns of floats, row-major, of rows %lld and %lld apart", name, args->n, (long long)args->ldb, (long long)args->ldc);
  TC_CHECK(A->num_cols * (args->ldb / 4) <= UINT32_MAX, TC_ERR_LIMIT, "%s: %d rows of %lld floats, 64 GiB are all that B may have", name, A->num_cols, (long long)args->ldb);
  TC_CALL(tc_attribute(name, cudaDevAttrMultiProcessorCount, &processors));
  if (A->nnz < few * (int64_t)A->num_rows) {
    if (args->n % widest == 0 && wide_blocks >= 4 * (int64_t)tc_csr_row_major_resident * processors) return tc_launch_csr_row_major<4>(name, A, args, rows, false, stream);
  } else if (args->n > widest && A->nnz >= few * (int64_t)A->num_cols) return tc_launch_csr_row_major<2>(name, A, args, 2 * rows, true, stream);
  return tc_launch_csr_row_major<2>(name, A, args, rows, false, stream);
}
