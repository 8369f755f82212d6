/*
  Clusters of a tc_bittcf in double precision: what the kernel of small windows and that of all others do in the same way.
*/
#pragma once
#include "bittcf_cluster.cuh"
#include <utility>

constexpr int tc_stage_columns = 16; // of B that are in shared memory together

/* docs/performance-waits.md, "Blocks that drift apart" */
constexpr int tc_turn_chunks = 14; // of 16 columns that a block multiplies before it ends, if one cluster has not more
constexpr int tc_few_turns   = 3;  // that blocks do not drift apart in
constexpr int tc_few_rounds  = 8;  // of all multiprocessors, in which the last one matters when not all have clusters left
constexpr int tc_small_b     = 16 << 20; // bytes, that the L2 cache keeps whatever blocks do

/*
  Where columns of B are in shared memory. Each begins as far behind 32 bytes as in memory, so that sectors are not divided on their way, nor are copies of 16 bytes. So the pitch is that of
  B, modulo 32. Lane 4 g + k has columns tc_staged_column(g) and two later: with g from 0 to 3 or from 4 to 7 every fourth one, which begin alike, in different quarters of the banks. With 8
  columns it has one: every second one with g from 0 to 3, which are in different quarters if B is aligned to 16 bytes.
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
  int32_t       turns;    // clusters of a block, where it has more than one
  int32_t       whole;    // blocks that multiply all columns, the others `part` of them each
  int32_t       divided;  // the first cluster of those others
  int32_t       part;     // a multiple of tc_stage_columns

  void take(const tc_cluster_launch &launch)
  {
    stages   = launch.stages;
    resident = launch.resident;
  }

  /* Shares clusters and columns out, after take(). Returns the number of blocks. */
  int32_t share(int32_t num_clusters, int32_t num_cols, int32_t n)
  {
    const int32_t chunks = (n - 1) / tc_stage_columns + 1, left = num_clusters % resident;
    const int32_t parts = left > 0 && num_clusters < tc_few_rounds * resident ? std::min(chunks, resident / left) : 1, of_part = (chunks - 1) / parts + 1;

    part    = tc_stage_columns * of_part;
    divided = parts > 1 ? num_clusters - left : num_clusters;

    const int32_t rounds  = (divided - 1) / resident + 1;
    const bool    drifts  = rounds > tc_few_turns && sizeof(double) * num_cols * n > tc_small_b;

    turns = drifts ? std::max(1, std::min(rounds, tc_turn_chunks / chunks)) : rounds;

    const int32_t wave = resident * turns;

    whole = divided / wave * resident + std::min(divided % wave, resident);
    return whole + (num_clusters - divided) * ((chunks - 1) / of_part + 1);
  }
};

template <int vectors>
__device__ __forceinline__ int tc_staged_column(int g)
{
  return vectors == 1 ? g % 2 * 4 + g / 2 % 2 * 2 + g / 4 : g % 4 * 4 + g / 4;
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
  __device__ __forceinline__ void load_places(const tc_bittcf &T, const tc_window &W, uint32_t place_first, int lane)
  {
    if (ahead > 0) at = tc_held_places<most>(); // some place, for groups that there are not
    at.load(T, W.num_groups(), place_first, lane);
  }

  /* `listed`: the masks of its groups, by tc_held_masks::put(), an address in shared memory. Eight groups at a time, whose masks are there when those before are dealt with. */
  __device__ __forceinline__ void load_values(const tc_bittcf &T, int num, uint32_t listed, int lane)
  {
    constexpr int      eight = TC_BITTCF_PLACES;
    const double      *val   = static_cast<const double *>(T.val);
    const tc_mask_lane element(lane);
    uint4              two[2][eight / 2]; // masks, and the numbers of their first values, of two groups

    tc_keep(val);
#pragma unroll
    for (int j = 0; j < eight; j += 2) two[0][j / 2] = tc_load_shared_16_in_order(listed + 8 * j);
#pragma unroll
    for (int i = 0; i < most; i += eight) {
      if (i >= num) break;
      const uint4 (&own)[eight / 2] = two[i / eight % 2];
      uint32_t at[eight];

#pragma unroll
      for (int j = 0; j < eight; j += 2) {
        if (i + eight < most) two[(i / eight + 1) % 2][j / 2] = tc_load_shared_16_in_order(listed + 8 * (i + eight + j));
        at[j]     = own[j / 2].y + element.before(own[j / 2].x);
        at[j + 1] = own[j / 2].w + element.before(own[j / 2].z);
      }
#pragma unroll
      for (int j = 0; j < eight; ++j) tc_keep(at[j]); // all of them before the first load, or one waits for the other
#pragma unroll
      for (int j = 0; j < eight; ++j) {
        if (i + j < most) value[i + j] = tc_load_stream_if(element.is_set(j % 2 ? own[j / 2].z : own[j / 2].x), val + at[j]);
      }
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

/* The two neighbouring rows of B, of four that are listed, which a thread brings. Of a column that begins between two times 16 bytes, which is shifted, only what is referred to: */
struct tc_piece {
  bool both; // are both there?
  bool next; // does the second one come together with the row behind it, which is listed behind it?
  bool tail; // does it come alone?
  bool head; // does the first one come alone, and not with the piece before?
};

/* The list of a cluster; beyond the last one it is empty */
struct tc_list_range {
  uint32_t first;
  int32_t  fours;

  __device__ __forceinline__ tc_list_range(const tc_bittcf &T, int32_t cluster) : first(0), fours(0)
  {
    if (cluster >= T.num_clusters) return;
    first = __ldg(T.cluster_first + cluster);
    fours = static_cast<int32_t>(__ldg(T.cluster_first + cluster + 1) - first);
  }
};

/* What the list of a cluster says of every `threads`-th piece, an even number: the entry that it is of, and the one beside that; -1: none */
template <int num>
struct tc_listed_pieces {
  int32_t entry[num], beside[num];

  __device__ __forceinline__ void load(const tc_bittcf &T, const tc_list_range &list, int thread, int threads, bool aligned)
  {
    const int32_t aside = thread % 2 == 0 ? -1 : 1; // where to find those that the first or the second two rows of four may join

#pragma unroll
    for (int r = 0; r < num; ++r) { // all of them on their way
      const int32_t place = (thread + r * threads) / 2, at = place + aside;

      entry[r]  = place < list.fours ? __ldg(T.cluster_list + list.first + place) : -1;
      beside[r] = !aligned && at >= 0 && at < list.fours ? __ldg(T.cluster_list + list.first + at) : -1;
    }
  }
};

/* The same as rows of B; bit r of each word for piece r */
template <int num>
struct tc_pieces {
  int32_t  row[num]; // the first, -1: none
  uint32_t next = 0, tail = 0, head = 0;

  __device__ __forceinline__ void find(const tc_bittcf &T, const tc_listed_pieces<num> &listed, int thread)
  {
    const int half = thread % 2, aside = half == 0 ? -1 : 1;

    next = tail = head = 0;
#pragma unroll
    for (int r = 0; r < num; ++r) {
      const int32_t  four    = tc_bittcf_listed_four(listed.entry[r]), first = TC_BITTCF_GROUP * four + 2 * half;
      const bool     joined  = listed.beside[r] >= 0 && tc_bittcf_listed_four(listed.beside[r]) == four + aside;
      const uint32_t rows    = tc_bittcf_listed_rows(listed.entry[r]) >> 2 * half;
      const bool     follows = half == 0 ? first + 2 < T.num_cols : joined; // is a row listed behind the second one?
      const bool     second = (rows & 2) != 0, behind = (half == 0 ? rows & 4 : joined ? listed.beside[r] & 1 : 0) != 0;

      row[r] = listed.entry[r] >= 0 && first < T.num_cols ? first : -1; // the last four need not be there all
      next |= (follows && (second || behind)) << r;
      tail |= (!follows && second) << r;
      head |= (half == 0 && !joined && (rows & 1) != 0) << r;
    }
  }

  __device__ __forceinline__ void find(const tc_bittcf &T, int32_t cluster, int thread, int threads, bool aligned)
  {
    tc_listed_pieces<num> listed;

    listed.load(T, tc_list_range(T, cluster), thread, threads, aligned);
    find(T, listed, thread);
  }

  /* tc_between_kernels() when the lists have come: under a condition on them, which holds, or ptxas puts the wait in front of their loads */
  __device__ __forceinline__ void between_kernels() const
  {
    int32_t all = 0;

#pragma unroll
    for (int r = 0; r < num; ++r) all |= row[r];
    if (all >= -1) tc_between_kernels();
  }

  __device__ __forceinline__ tc_piece get(const tc_bittcf &T, int r) const { return {row[r] + 1 < T.num_cols, (next >> r & 1) != 0, (tail >> r & 1) != 0, (head >> r & 1) != 0}; }
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
    tc_copy_ahead_8_if(piece.tail, to_shifted + 8, shifted + 1);
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
  else if (args.stages <= 2) tc_stage_every_other<count, true>(args, piece, from, to); // L1 has some room
  else tc_stage_every_other<count, false>(args, piece, from, to);
}

/* A piece of `columns` columns, up to `most`, on its way, from `from`, its first row in column 0, to `to`. `aligned`: all columns begin at 16 bytes. */
template <bool aligned, int most = tc_stage_columns>
__device__ __forceinline__ void tc_stage_piece(const tc_cluster_args &args, const tc_piece &piece, const double *from, uint32_t to, int32_t columns)
{
  columns = min(columns, most);
  const int32_t whole = aligned || args.ldb % 2 != 0 ? columns / 4 * 4 : 0; // columns in copies of 16 bytes

  if (!piece.both) {
#pragma unroll 1
    for (int32_t j = 0; j < columns; ++j, from += args.ldb, to += args.pitch + (j % 4 == 0 ? args.apart : 0)) {
      if (aligned || j >= whole || to % 16 == 0 || piece.head) tc_copy_ahead_8(to, from);
    }
    return;
  }
  if (whole == most) {
    tc_stage_columns_of<most, aligned>(args, piece, from, to);
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

/* 8 * vectors columns of C of a window; `to` is the lane's first element of them, but not for TC_PUT_ROWS */
template <bool aligned, int vectors>
__device__ __forceinline__ void tc_put_stage(int2 rows, int32_t column, tc_put_kind kind, double *to, const tc_dense_output &out, const tc_dense_sums<vectors> (&sums)[1])
{
  const int lane = threadIdx.x % tc_warp_size;

  if (kind == TC_PUT_ROWS || column + 8 * vectors > out.n) {
    tc_put_window<1, vectors>(rows, column + tc_staged_column<vectors>(tc_mma_lane(lane).row), 2, 8 * vectors, out, sums);
    return;
  }
#pragma unroll
  for (int v = 0; v < vectors; ++v, to += 2 * out.ldc) {
    if (aligned || kind == TC_PUT_PAIRS) tc_put_pair(to, sums[0].c[2 * v], sums[0].c[2 * v + 1]);
    else tc_put_eight(to, sums[0].c[2 * v], sums[0].c[2 * v + 1], lane);
  }
}

template <int vectors>
static inline tc_cluster_args tc_cluster_args_of(const tc_bittcf *T, const tc_spmm_args *args)
{
  constexpr uint32_t sector = 32, columns = 8 * vectors;
  const uint32_t     begin = reinterpret_cast<uintptr_t>(args->b) % sector, more = sizeof(double) * (args->ldb % 4), fours = vectors == 1 ? T->widest_cluster | 1 : T->widest_cluster;
  const uint32_t     pitch = sector * fours + more, apart = more == 0 || (vectors == 2 && more == 16) ? sector : 0;

  return {args->b, args->ldb, begin, pitch, apart, (begin + columns * pitch + columns / 4 * apart + sector - 1) / sector * sector};
}

static inline bool tc_pairs_are_aligned(const tc_spmm_args *args)
{
  return args->ldb % 2 == 0 && reinterpret_cast<uintptr_t>(args->b) % 16 == 0;
}

/* The product where a window has more than TC_BITTCF_FEW_GROUPS groups or clusters have 12 windows; spmm_bittcf_cluster_specialized.cu */
tc_status tc_spmm_bittcf_cluster_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream);

/* The same for up to 8 columns; spmm_bittcf_cluster_few.cu */
tc_status tc_spmm_bittcf_cluster_few(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream);
