#include "hybrid.cuh"
#include "long_rows_spmm.cuh"

/*
  tc_spmm_slice_kernel - C = A B or C += A B on the slices of a tc_hybrid, B and C column-major and read and written as they are

  Work:   a warp per slice and shape::columns columns; the blocks of a slice for shape::groups groups of columns are neighbours, so that the slice is read from memory
          once for all of them; what rows further on read of so many columns of B stays in the L2 cache
  Lanes:  a lane owns a row, its sums for all the columns in registers. Where consecutive rows touch consecutive columns the loads of B coalesce by themselves
  Arrays: the device view of the matrix; B, C column-major; all device
  Writes: C once for each row of a slice
  Launch: 128 threads per block, no shared memory.  Needs: sm_70.  Source: sliced ELLPACK with several vectors, e.g. Anzt, Tomov and Dongarra, "Accelerating the LOBPCG
          method on GPUs using a blocked sparse matrix vector product", HPC'15
*/
constexpr int tc_slice_threads = 128;
constexpr int tc_slice_wide    = 32; // columns from which a lane has twice as many, ...
constexpr int tc_slice_short   = 16; // ... where the mean row has fewer entries (docs/performance-waits.md)

template <int columns_of_a_lane>
struct tc_slice_shape {
  static constexpr int columns = columns_of_a_lane;
  static constexpr int groups  = 64 / columns;
  static constexpr int blocks  = columns == 2 ? 8 : columns <= 8 ? 6 : 4; // of a multiprocessor, by registers
};

/* Entries of a row whose rows of B are under way together: few columns are worth more of them than warps (docs/performance-waits.md, "Few columns") */
template <int columns>
constexpr int tc_slice_entries = columns <= 4 ? 4 : 1;

/*
  The columns of B that a lane has sums for: how far behind the first one they are, in elements. Beyond the last one that there is comes that one once more, whose sums nobody wants: loads without
  conditions leave together. In 32 bits, which an address takes two instructions for, while they hold them.
*/
template <int most>
struct tc_slice_columns {
  uint32_t at[most];

  static bool hold(int64_t ldb) { return (most - 1) * ldb <= UINT32_MAX; }

  __device__ __forceinline__ tc_slice_columns(int64_t ldb, int columns)
  {
#pragma unroll
    for (int j = 0; j < most; ++j) at[j] = static_cast<uint32_t>(min(j, columns - 1) * ldb);
  }

  /* An element of a row of B, which tc_keep() has been told of, or the compiler adds the offsets up first, in more instructions */
  __device__ __forceinline__ double load(const double *row, int j) const { return tc_load_line(row + at[j]); }
};

/* One condition costs less than what two columns have of that */
template <>
struct tc_slice_columns<2> {
  int64_t ldb;
  int     columns;

  __device__ __forceinline__ tc_slice_columns(int64_t ldb, int columns) : ldb(ldb), columns(columns) { }
  __device__ __forceinline__ double load(const double *row, int j) const { return j < columns ? tc_load_line(row + j * ldb) : 0.0; }
};

/* Adds `num` entries of the lane's row to the sums of all columns; of those after the first there are only such as are below `left` */
template <int num, int most>
__device__ __forceinline__ void tc_add_entries(const double (&value)[num], const double *const (&row_of_b)[num], int left, const tc_slice_columns<most> &column, double (&sum)[most])
{
  double gathered[num][most];

#pragma unroll
  for (int e = 0; e < num; ++e) {
    const double *row = row_of_b[e];

    if constexpr (most > 2) tc_keep(row);
#pragma unroll
    for (int j = 0; j < most; ++j) gathered[e][j] = e == 0 || e < left ? column.load(row, j) : 0.0;
  }
#pragma unroll
  for (int e = 0; e < num; ++e) {
#pragma unroll
    for (int j = 0; j < most; ++j) {
      if (e == 0 || e < left) sum[j] = fma(value[e], gathered[e][j], sum[j]);
    }
  }
}

template <bool by_rows, int most, tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ void tc_row_sums(const tc_hybrid &H, const tc_hybrid_slice &S, int length, int32_t origin, int lane, const double *b, const tc_slice_columns<most> &columns, double (&sum)[most])
{
  constexpr int num = tc_slice_entries<most>, pair = num < 2 ? num : 2;
  const char   *block = tc_index_block(H, S.index);
  const char   *val   = tc_value_base(H, S.val);

  if constexpr (value_kind == TC_HYBRID_D16) { // four at a time would spill
    const int places = S.width < 3 ? S.width : 4;

#pragma unroll 1
    for (int k = 0; k < length; ++k) {
      const int     place       = S.width < 3 ? k : k % 4;
      const double  of_entry[1] = {tc_value<value_kind>(H, val, k - place, place, lane, places)};
      const double *row_of_b[1] = {b + tc_column<index_kind>(block + k / 4 * tc_block_bytes<index_kind>, lane, place, places, origin)};

      tc_add_entries<1>(of_entry, row_of_b, 1, columns, sum);
    }
    return;
  }
  if (S.width < 3) {
    for (int k = 0; k < length; k += pair) {
      double        of_entry[pair];
      const double *row_of_b[pair];

#pragma unroll
      for (int e = 0; e < pair; ++e) {
        const bool there = e == 0 || k + e < length;

        of_entry[e] = there ? tc_value<value_kind>(H, val, 0, k + e, lane, S.width) : 0.0;
        row_of_b[e] = there ? b + tc_column<index_kind>(block, lane, k + e, S.width, origin) : b;
      }
      tc_add_entries<pair>(of_entry, row_of_b, length - k, columns, sum);
    }
    return;
  }
#pragma unroll 1
  for (int k = 0; k < length; k += 4, block += tc_block_bytes<index_kind>) {
    tc_columns4<index_kind> column;
    tc_values4<value_kind>  value;

    column.load(block, lane);
    if constexpr (by_rows) value.load_by_rows(val, k, S.width, lane);
    else value.load(val, k, length, lane);
#pragma unroll
    for (int p = 0; p < 4; p += num) {
      double        of_entry[num];
      const double *row_of_b[num];

      if (k + p >= length) continue;
#pragma unroll
      for (int e = 0; e < num; ++e) {
        of_entry[e] = value.value(H, p + e);
        row_of_b[e] = b + column.column(p + e, origin);
      }
      tc_add_entries<num>(of_entry, row_of_b, length - k - p, columns, sum);
    }
  }
}

template <class shape>
static __global__ void __launch_bounds__(tc_slice_threads, shape::blocks) tc_spmm_slice_kernel(const __grid_constant__ tc_hybrid H, const __grid_constant__ tc_spmm_args args, int32_t groups, int32_t slice_blocks)
{
  constexpr int most        = shape::columns;
  const int32_t first_group = blockIdx.x / (shape::groups * slice_blocks) * shape::groups, in_pass = blockIdx.x - first_group * slice_blocks, width = min(groups - first_group, shape::groups);
  const int     lane = threadIdx.x % tc_warp_size, group = first_group + in_pass % width, columns = min(args.n - group * most, most);
  const int32_t s = in_pass / width * (tc_slice_threads / tc_warp_size) + threadIdx.x / tc_warp_size;
  const double *b = args.b + group * most * args.ldb;
  double       *c = args.c + group * most * args.ldc;
  double        sum[most] = {};

  tc_between_kernels();
  if (s >= H.num_slices) return;
  const tc_hybrid_slice S = tc_load_descriptor(H.slice + s);

  if (lane >= S.num_rows) return;
  const int32_t row = S.row >= 0 ? S.row + lane : H.row_id[H.num_long + tc_warp_size * s + lane], origin = H.row_group > 1 ? row - row % H.row_group : row;

  const tc_slice_columns<most> of_b(args.ldb, columns);

  if constexpr (most > 8) tc_keep(b); // the others have no registers for it
  tc_with_kinds<tc_more_kinds::CODES>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) {
    constexpr bool may_be_by_rows = decltype(value_kind)::value == TC_HYBRID_F64 || decltype(value_kind)::value == TC_HYBRID_F32;
    const int      length         = H.length[tc_warp_size * s + lane];

    if (may_be_by_rows && tc_hybrid_by_rows(&H, s, S.width)) tc_row_sums<may_be_by_rows, most, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, origin, lane, b, of_b, sum);
    else tc_row_sums<false, most, decltype(index_kind)::value, decltype(value_kind)::value>(H, S, length, origin, lane, b, of_b, sum);
  });
#pragma unroll
  for (int j = 0; j < most; ++j) {
    if (j < columns) tc_finish_element(sum[j], c + row + j * args.ldc, args.add);
  }
}

/*
  tc_spmm_pieces_kernel - the sums of pieces of TC_SPMM_SEGMENT entries of long rows, and C of empty rows

  Work:   a warp per four pieces and tc_piece_columns columns; then a thread per element of an empty row
  Lanes:  lane 8 p + j owns column j of piece p: eight lanes read the same entry
  Arrays: the device view of the matrix; B, C column-major; partial row-major [tc_pieces * num_segments, width]; all device
  Writes: partial, 0 for pieces beyond the end of a row; the empty rows of C
  Launch: 128 threads per block, no shared memory.  Needs: sm_70.  Source: tc_spmm.h, the order of the additions
*/
constexpr int tc_piece_columns = 8;
constexpr int tc_pieces        = TC_HYBRID_SEGMENT / TC_SPMM_SEGMENT; // of a segment

template <tc_hybrid_index_kind index_kind, tc_hybrid_value_kind value_kind>
__device__ __forceinline__ double tc_piece_sum(const tc_hybrid &H, const tc_hybrid_segment &S, int piece, const double *b)
{
  const char *val = tc_value_base(H, S.val);
  const int   end = min(TC_SPMM_SEGMENT * (piece + 1), (int)S.entries);
  double      sum = 0.0;

#pragma unroll 4
  for (int e = TC_SPMM_SEGMENT * piece; e < end; ++e) {
    const char   *block  = tc_index_block(H, S.index) + e / TC_HYBRID_BLOCK * tc_block_bytes<index_kind>;
    const int     place  = e / tc_warp_size % 4;
    const int32_t column = tc_column<index_kind>(block, e % tc_warp_size, place, 4, 0);

    sum = fma(tc_value<value_kind>(H, val, e / TC_HYBRID_BLOCK * 4, place, e % tc_warp_size, 4), tc_load_vector(b + column), sum);
  }
  return sum;
}

static __global__ void __launch_bounds__(tc_slice_threads) tc_spmm_pieces_kernel(const __grid_constant__ tc_hybrid H, const __grid_constant__ tc_spmm_args args, int32_t groups, int32_t piece_blocks)
{
  const int32_t cta = blockIdx.x;

  tc_between_kernels();
  if (cta < piece_blocks) {
    const int     lane  = threadIdx.x % tc_warp_size;
    const int64_t w     = (int64_t)cta * (tc_slice_threads / tc_warp_size) + threadIdx.x / tc_warp_size; // group of columns fastest, then half of a segment
    const int32_t j     = (int32_t)(w % groups) * tc_piece_columns + lane % 8, s = (int32_t)(w / groups / 2);
    const int     piece = (int)(w / groups % 2) * 4 + lane / 8;

    if (s >= H.num_segments || j >= args.n) return;
    const tc_hybrid_segment S = tc_load_descriptor(H.segment + s);
    double                  sum;

    tc_with_kinds<tc_more_kinds::NONE>(S.index_kind, S.value_kind, [&](auto index_kind, auto value_kind) { sum = tc_piece_sum<decltype(index_kind)::value, decltype(value_kind)::value>(H, S, piece, args.b + j * args.ldb); });
    args.scratch[((int64_t)s * tc_pieces + piece) * (groups * tc_piece_columns) + j] = sum;
  } else if (!args.add) {
    const int64_t i = (int64_t)(cta - piece_blocks) * tc_slice_threads + threadIdx.x;

    if (i < (int64_t)H.num_empty * args.n) args.c[H.row_id[H.num_long + H.num_sliced + i % H.num_empty] + i / H.num_empty * args.ldc] = 0.0;
  }
}

template <int columns>
static tc_status tc_launch_slices(const tc_hybrid *H, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int64_t warps  = tc_slice_threads / tc_warp_size;
  const int64_t     blocks = (H->num_slices + warps - 1) / warps;
  const int32_t     groups = (args->n + columns - 1) / columns;

  return tc_launch_early("tc_spmm_hybrid_f64", tc_spmm_slice_kernel<tc_slice_shape<columns>>, blocks * groups, tc_slice_threads, 0, stream, *H, *args, groups, (int32_t)blocks);
}

static int32_t tc_column_groups(int32_t n)
{
  return (n + tc_piece_columns - 1) / tc_piece_columns;
}

extern "C" size_t tc_spmm_hybrid_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_hybrid *H = static_cast<const tc_hybrid *>(view);

  return sizeof(double) * tc_pieces * static_cast<size_t>(H->num_segments) * tc_column_groups(args->n) * tc_piece_columns;
}

extern "C" tc_status tc_spmm_hybrid_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_hybrid    *H      = static_cast<const tc_hybrid *>(view);
  const cudaStream_t  s      = static_cast<cudaStream_t>(stream);
  constexpr int64_t   warps  = tc_slice_threads / tc_warp_size;
  const int32_t       groups = tc_column_groups(args->n), width = groups * tc_piece_columns;
  const int64_t       piece_blocks = (2 * (int64_t)H->num_segments * groups + warps - 1) / warps, empty_blocks = args->add ? 0 : ((int64_t)H->num_empty * args->n + tc_slice_threads - 1) / tc_slice_threads;

  if (args->n >= tc_slice_wide && H->num_nonzeros < tc_slice_short * (int64_t)H->num_rows && tc_slice_columns<16>::hold(args->ldb)) TC_CALL(tc_launch_slices<16>(H, args, s));
  else if (args->n > 4 && tc_slice_columns<8>::hold(args->ldb)) TC_CALL(tc_launch_slices<8>(H, args, s));
  else if (args->n > 2 && tc_slice_columns<4>::hold(args->ldb)) TC_CALL(tc_launch_slices<4>(H, args, s));
  else TC_CALL(tc_launch_slices<2>(H, args, s));
  TC_CALL(tc_launch_early("tc_spmm_hybrid_f64", tc_spmm_pieces_kernel, piece_blocks + empty_blocks, tc_slice_threads, 0, s, *H, *args, groups, (int32_t)piece_blocks));
  return tc_add_segments<double>("tc_spmm_hybrid_f64", {H->num_long, tc_pieces, H->row_id, H->long_first, args->scratch, width, args->n, args->c, args->ldc, args->add != 0}, (int64_t)tc_pieces * H->num_segments, s);
}
