/*
  Clusters of a tc_bittcf in double precision: what the kernel of small windows and that of all others do in the same way.
*/
#pragma once
#include "bittcf_cluster.cuh"
#include <utility>

constexpr int tc_stage_columns = 16; // of B that are in shared memory together

/*
  Where columns of B are in shared memory. Each begins as far behind 32 bytes as in memory, so that sectors are not divided on their way, nor are copies of 16 bytes. So the pitch is that of
  B, modulo 32. Lane 4 g + k has columns tc_staged_column(g) and two later: with g from 0 to 3 or from 4 to 7 every fourth one, which begin alike, in different quarters of the banks.
*/
struct tc_cluster_args {
  const double *b;
  int64_t       ldb;
  uint32_t      begin;    // of column 0, bytes
  uint32_t      pitch;    // bytes from one column of B to the next
  uint32_t      apart;    // and more bytes between fours of columns, for the banks
  uint32_t      size;     // bytes of a buffer, a multiple of 32
  int32_t       stages;   // buffers
  int32_t       resident; // blocks that run at the same time: as many clusters later the next one begins

  void take(const tc_cluster_launch &launch)
  {
    stages   = launch.stages;
    resident = launch.resident;
  }
};

__device__ __forceinline__ int tc_staged_column(int g)
{
  return g % 4 * 4 + g / 4;
}

/* Bytes from the beginning of a buffer to row 0 of a column */
__device__ __forceinline__ uint32_t tc_staged_at(const tc_cluster_args &args, int column)
{
  return args.begin + column * args.pitch + column / 4 * args.apart;
}

/*
  The tiles of a window: the lane's elements, and where its rows of B are in shared memory, in units of 8 bytes. Rows of B for a group are loaded `ahead` groups before it is multiplied, whether
  there is such a group or not.
*/
template <int most, int ahead>
struct tc_held_window {
  double               value[most];
  tc_held_places<most> at;

  /* What a build has left; may come before the wait for the kernel in front, which may be a refill */
  __device__ __forceinline__ void load_pattern(const tc_bittcf &T, const tc_window &W, uint32_t place_first, int lane, tc_held_masks<most> &masks)
  {
    masks.load(T, W, lane);
    if (ahead > 0) at = tc_held_places<most>(); // some place, for groups that there are not
    at.load(T, W.num_groups(), place_first, lane);
    masks.count(W, lane);
  }

  __device__ __forceinline__ void load_values(const tc_bittcf &T, const tc_window &W, const tc_held_masks<most> &masks, int lane)
  {
    const int          num = W.num_groups();
    const tc_mask_lane element(lane);

#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      const uint32_t mask = masks.mask_of(i), next = masks.first_of(i);

      value[i] = __ldcs(static_cast<const double *>(T.val) + (next + element.before(mask))); // without an element: the next one, which there is
    }
#pragma unroll
    for (int i = 0; i < most; ++i) { // not before all of them are on their way
      if (i % TC_BITTCF_PLACES == 0 && i >= num) break;
      if (!element.is_set(masks.mask_of(i))) value[i] = 0.0;
    }
  }

  /* Adds the product of the first `num` groups with 16 columns of B, `num` more than 0; `staged` is where the lane's first column begins */
  __device__ __forceinline__ void multiply(int num, uint32_t staged, uint32_t pitch, tc_mma_tall_accumulator &sums) const
  {
    double b[ahead + 1][2];

    fetch_each(std::make_integer_sequence<int, ahead>(), staged, pitch, b);
    multiply_each(std::make_integer_sequence<int, most>(), num, staged, pitch, b, sums);
  }

private:
  static constexpr int together = 2; // groups that are multiplied before it is asked whether there are more

  template <int i>
  __device__ __forceinline__ void fetch(uint32_t staged, uint32_t pitch, double (&b)[ahead + 1][2]) const
  {
    const uint32_t from = tc_place_in<8>(at.place[i / 2], i % 2, staged);

    b[i % (ahead + 1)][0] = tc_load_shared(from);
    b[i % (ahead + 1)][1] = tc_load_shared(from + 2 * pitch);
  }

  template <int... i>
  __device__ __forceinline__ void fetch_each(std::integer_sequence<int, i...>, uint32_t staged, uint32_t pitch, double (&b)[ahead + 1][2]) const
  {
    (fetch<i>(staged, pitch, b), ...);
  }

  /* Group i, if there is one; elements of one that there is not are 0 */
  template <int i>
  __device__ __forceinline__ bool multiply_one(int num, uint32_t staged, uint32_t pitch, double (&b)[ahead + 1][2], tc_mma_tall_accumulator &sums) const
  {
    if (i > 0 && i % together == 0 && i >= num) return false;
    if constexpr (i + ahead < most) fetch<i + ahead>(staged, pitch, b);
    tc_mma_m16n8k4(sums, b[i % (ahead + 1)][0], b[i % (ahead + 1)][1], value[i]);
    return true;
  }

  template <int... i>
  __device__ __forceinline__ void multiply_each(std::integer_sequence<int, i...>, int num, uint32_t staged, uint32_t pitch, double (&b)[ahead + 1][2], tc_mma_tall_accumulator &sums) const
  {
    (multiply_one<i>(num, staged, pitch, b, sums) && ...);
  }
};

/* The two neighbouring rows of B, of four that are listed, which a thread brings. Of a column that begins between two times 16 bytes, which is shifted: */
struct tc_piece {
  bool both; // are both there?
  bool next; // does the second one come together with the row behind it, which is listed behind it?
  bool head; // does the first one come alone, and not with the piece before?
};

/* Every `threads`-th piece of a cluster, an even number; bit r of each word for piece r */
template <int num>
struct tc_pieces {
  int32_t  row[num]; // the first, -1: none
  uint32_t next = 0, head = 0;

  __device__ __forceinline__ void find(const tc_bittcf &T, int32_t cluster, int thread, int threads, bool aligned)
  {
    const uint32_t first = __ldg(T.cluster_first + cluster);
    const int32_t  fours = static_cast<int32_t>(__ldg(T.cluster_first + cluster + 1) - first);
    const int32_t  half = thread % 2, aside = half == 0 ? -1 : 1; // the first or the second two rows of four; where to find those that a piece may join
    int32_t        four[num], beside[num];

#pragma unroll
    for (int r = 0; r < num; ++r) { // all of them on their way
      const int32_t place = (thread + r * threads) / 2, at = place + aside;

      four[r]   = place < fours ? __ldg(T.cluster_list + first + place) : -1;
      beside[r] = !aligned && at >= 0 && at < fours ? __ldg(T.cluster_list + first + at) : -1;
    }
    next = head = 0;
#pragma unroll
    for (int r = 0; r < num; ++r) {
      const int32_t own    = TC_BITTCF_GROUP * four[r] + 2 * half;
      const bool    joined = beside[r] >= 0 && beside[r] == four[r] + aside;

      row[r] = four[r] >= 0 && own < T.num_cols ? own : -1; // the last four need not be there all
      next |= (half == 0 ? own + 2 < T.num_cols : joined) << r;
      head |= (half == 0 && !joined) << r;
    }
  }

  /* tc_between_kernels() when the lists have come: under a condition on them, which holds, or ptxas puts the wait in front of their loads */
  __device__ __forceinline__ void between_kernels() const
  {
    int32_t all = 0;

#pragma unroll
    for (int r = 0; r < num; ++r) all |= row[r];
    if (all >= -1) tc_between_kernels();
  }

  __device__ __forceinline__ tc_piece get(const tc_bittcf &T, int r) const { return {row[r] + 1 < T.num_cols, (next >> r & 1) != 0, (head >> r & 1) != 0}; }
};

/* `count` columns of a piece that all begin at 16 bytes; `from` and `to` go on to those behind them */
template <int count>
__device__ __forceinline__ void tc_stage_aligned(const tc_cluster_args &args, const double *&from, uint32_t &to)
{
#pragma unroll
  for (int j = 0; j < count; ++j, from += args.ldb, to += args.pitch + (j % 4 == 0 ? args.apart : 0)) tc_copy_ahead_16(to, from);
}

/* The same where every other one is shifted: copies of 8 bytes are in sectors of copies of 16, which they find in L1 if these are `cached` */
template <int count, bool cached>
__device__ __forceinline__ void tc_stage_every_other(const tc_cluster_args &args, const tc_piece &piece, const double *&from, uint32_t &to)
{
  const bool    first   = to % 16 != 0; // is the first column shifted, or the one behind it?
  const double *shifted = from + (first ? 0 : args.ldb), *other = from + (first ? args.ldb : 0);
  uint32_t      to_shifted = to + (first ? 0 : args.pitch), to_other = to + (first ? args.pitch : 0);

#pragma unroll
  for (int j = 0; j < count / 2; ++j, shifted += 2 * args.ldb, other += 2 * args.ldb, to_shifted += 2 * args.pitch, to_other += 2 * args.pitch) {
    tc_copy_ahead_16(to_other, other);
    tc_copy_ahead_16_if<cached>(piece.next, to_shifted + 8, shifted + 1);
    tc_copy_ahead_8_if(!piece.next, to_shifted + 8, shifted + 1);
    tc_copy_ahead_8_if(piece.head, to_shifted, shifted);
  }
  from += count * args.ldb;
  to += count * args.pitch;
}

/* So many columns of a piece in copies of 16 bytes, of both rows */
template <int count, bool aligned>
__device__ __forceinline__ void tc_stage_columns_of(const tc_cluster_args &args, const tc_piece &piece, const double *&from, uint32_t &to)
{
  if (aligned) tc_stage_aligned<count>(args, from, to);
  else if (args.stages == 2) tc_stage_every_other<count, true>(args, piece, from, to); // L1 has some room
  else tc_stage_every_other<count, false>(args, piece, from, to);
}

/* A piece of `columns` columns on its way, from `from`, its first row in column 0, to `to`. `aligned`: all columns begin at 16 bytes. */
template <bool aligned>
__device__ __forceinline__ void tc_stage_piece(const tc_cluster_args &args, const tc_piece &piece, const double *from, uint32_t to, int32_t columns)
{
  columns = min(columns, tc_stage_columns);
  const int32_t whole = aligned || args.ldb % 2 != 0 ? columns / 4 * 4 : 0; // columns in copies of 16 bytes

  if (!piece.both) {
#pragma unroll 1
    for (int32_t j = 0; j < columns; ++j, from += args.ldb, to += args.pitch + (j % 4 == 0 ? args.apart : 0)) {
      if (aligned || j >= whole || to % 16 == 0 || piece.head) tc_copy_ahead_8(to, from);
    }
    return;
  }
  if (whole == tc_stage_columns) {
    tc_stage_columns_of<tc_stage_columns, aligned>(args, piece, from, to);
    return;
  }
#pragma unroll 1
  for (int32_t j = 0; j < whole; j += 4) tc_stage_columns_of<4, aligned>(args, piece, from, to);
#pragma unroll 1
  for (int32_t j = whole; j < columns; ++j, from += args.ldb, to += args.pitch + (j % 4 == 0 ? args.apart : 0)) {
    tc_copy_ahead_8(to, from);
    tc_copy_ahead_8(to + 8, from + 1);
  }
}

/* Which rows of C a warp's sums are of: no matter which; two neighbours a lane, 16 aligned bytes of any column; eight neighbours, those of lane 4 g + k being rows 2 k and 2 k + 1 of them */
enum tc_put_kind { TC_PUT_ROWS, TC_PUT_PAIRS, TC_PUT_EIGHT };

/* `aligned`: B is, and C with it where A is square; TC_PUT_EIGHT is for where they are not */
template <bool aligned>
__device__ __forceinline__ tc_put_kind tc_put_kind_of(const tc_dense_output &out, int2 rows, int lane)
{
  if (__all_sync(tc_full_warp, tc_is_pair(out, rows))) return TC_PUT_PAIRS;
  if (aligned) return TC_PUT_ROWS;
  const int32_t first = __shfl_sync(tc_full_warp, rows.x, 0);
  const bool    eight = !out.add && rows.x >= 0 && rows.y == rows.x + 1 && rows.x == first + 2 * tc_mma_lane(lane).k;

  return __all_sync(tc_full_warp, eight) ? TC_PUT_EIGHT : TC_PUT_ROWS;
}

/* A column of TC_PUT_EIGHT, which may begin between two times 16 bytes: three lanes then write two rows that are 16 aligned bytes, one of them the next lane's, and two lanes write a row */
__device__ __forceinline__ void tc_put_eight(double *to, double first, double second, int lane)
{
  const int    k       = tc_mma_lane(lane).k;
  const bool   between = reinterpret_cast<uintptr_t>(to) % 16 != 0;
  const double next    = __shfl_down_sync(tc_full_warp, first, 1);

  if (!between || k < 3) tc_put_pair(to + between, between ? second : first, between ? next : second);
  if (between && (k == 0 || k == 3)) __stcs(to + (k == 3), __dadd_rn(k == 3 ? second : first, 0.0));
}

/* 16 columns of C of a window; `to` is the lane's first element of them, but not for TC_PUT_ROWS */
template <bool aligned>
__device__ __forceinline__ void tc_put_stage(int2 rows, int32_t column, tc_put_kind kind, double *to, const tc_dense_output &out, const tc_mma_tall_accumulator (&sums)[1])
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int64_t step = 2 * out.ldc;

  if (kind == TC_PUT_ROWS || column + tc_stage_columns > out.n) tc_put_window<1, 2>(rows, column + tc_staged_column(tc_mma_lane(lane).row), 2, tc_stage_columns, out, sums);
  else if (aligned || kind == TC_PUT_PAIRS) {
    tc_put_pair(to, sums[0].c[0], sums[0].c[1]);
    tc_put_pair(to + step, sums[0].c[2], sums[0].c[3]);
  } else {
    tc_put_eight(to, sums[0].c[0], sums[0].c[1], lane);
    tc_put_eight(to + step, sums[0].c[2], sums[0].c[3], lane);
  }
}

static inline tc_cluster_args tc_cluster_args_of(const tc_bittcf *T, const tc_spmm_args *args)
{
  constexpr uint32_t sector = 32;
  const uint32_t     begin = reinterpret_cast<uintptr_t>(args->b) % sector, more = sizeof(double) * (args->ldb % 4), pitch = sector * T->widest_cluster + more, apart = more % 16 == 0 ? sector : 0;

  return {args->b, args->ldb, begin, pitch, apart, (begin + tc_stage_columns * (pitch + apart / 4) + sector - 1) / sector * sector};
}

static inline bool tc_pairs_are_aligned(const tc_spmm_args *args)
{
  return args->ldb % 2 == 0 && reinterpret_cast<uintptr_t>(args->b) % 16 == 0;
}

/* The product where a window has more than TC_BITTCF_FEW_GROUPS groups or clusters have 12 windows; spmm_bittcf_cluster_specialized.cu */
tc_status tc_spmm_bittcf_cluster_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream);
