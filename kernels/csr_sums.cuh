/*
  What the kernel of spmm_csr.cuh sums: entries of a row of CSR times rows of B.
*/
#pragma once
#include "tc_mma.cuh"
#include "tc_narrow.h"
#include "tc_spmm.h"
#include <cuda_fp16.h>

/* Row-major B, a copy or, where that is what the caller has, the block itself; or column-major, which is read an element at a time */
struct tc_csr_rows {
  const char *first;  // row-major aligned to 16 bytes, as is every row
  uint32_t    stride; // bytes from row to row
  int64_t     column; // ... and from column to column
};

/*
  `in_flight`: rows of B that a group which owns whole rows has on their way. Registers, and so warps, are worth more than further ones but for longer rows with few columns (docs/performance-waits.md).
  `stream_rows`: rows of a thread block that sums them as streams (csr_streams.cuh), or 0. `by_columns`: B is column-major.
*/
template <tc_precision precision_of_b, int columns, bool is_deep, bool adds_segments, int in_flight = 4, int stream_rows = 0, bool by_columns = false>
struct tc_csr_shape {
  static constexpr auto precision  = precision_of_b;
  static constexpr bool scaled     = precision != TC_PRECISION_F64;
  static constexpr int  width      = columns;
  static constexpr bool deep       = is_deep;
  static constexpr bool adds       = adds_segments;
  static constexpr bool stream     = stream_rows > 0;
  static constexpr bool apart      = by_columns; // ... where the elements of a row of B are
  static constexpr int  rows       = stream ? stream_rows : 32; // of a thread block
  static constexpr int  pitch      = width + (stream ? 2 : 1);  // of a row of sums: even, as streams store two at once
  static constexpr int  pairs      = precision != TC_PRECISION_F64 && width > 64 ? 2 : 1; // of columns that a lane loads at once: 4 to 16 bytes
  static constexpr int  vectors    = width > 64 ? 2 / pairs : 1;
  static constexpr int  lanes      = width / (2 * pairs * vectors);               // of a group that owns whole rows
  static constexpr int  ahead      = in_flight / vectors;
  static constexpr int  loaders    = vectors > 1 ? 1 : lanes < ahead ? lanes : ahead; // lanes of it that load an entry of A, or some, for all; 1: each loads all of them
  static constexpr int  held       = ahead / loaders;
  static constexpr int  deep_lanes = width < 8 ? 8 : width < tc_warp_size ? width : tc_warp_size; // of a group that owns a column per lane; fewer would load too few entries
  static constexpr int  chunks     = width < 8 ? 1 : width / deep_lanes;                          // of columns, each a group's
  static constexpr bool warp_sums  = width <= tc_warp_size;             // may warps sum segments, so that a product does not wait for them?
  static constexpr int  warp_lanes = deep_lanes < 16 ? deep_lanes : 16; // of a group of such a warp, with a column per lane
  static constexpr int  threads    = deep ? 256 : lanes <= 8 ? 64 : 8 * lanes;
};

constexpr int tc_csr_batch = 16; // rows of B that a group with a column per lane has in flight

/* An element of B in memory */
template <tc_precision precision>
struct tc_csr_element {
  using type = uint16_t;
};
template <>
struct tc_csr_element<TC_PRECISION_F64> {
  using type = double;
};
template <>
struct tc_csr_element<TC_PRECISION_F32> {
  using type = float;
};

/* Exact */
template <tc_precision precision>
__device__ __forceinline__ double tc_csr_widen(typename tc_csr_element<precision>::type x)
{
  if constexpr (precision == TC_PRECISION_BF16) return __uint_as_float(static_cast<uint32_t>(x) << 16);
  else if constexpr (precision == TC_PRECISION_F16) return __half2float(__ushort_as_half(x));
  else return x;
}

/* Neighbouring columns of a row of B as they are in memory, aligned to their size */
template <tc_precision precision, int pairs>
struct tc_csr_columns {
  static constexpr int words = pairs * static_cast<int>(sizeof(typename tc_csr_element<precision>::type)) / 2;
  uint32_t             word[words];

  __device__ __forceinline__ void load(const char *from)
  {
    if constexpr (words == 4) {
      const uint4 four = __ldg(reinterpret_cast<const uint4 *>(from));

      word[0] = four.x;
      word[1] = four.y;
      word[2] = four.z;
      word[3] = four.w;
    } else if constexpr (words == 2) {
      const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from));

      word[0] = two.x;
      word[1] = two.y;
    } else word[0] = __ldg(reinterpret_cast<const uint32_t *>(from));
  }

  __device__ __forceinline__ double2 pair(int p) const
  {
    if constexpr (precision == TC_PRECISION_F32) return make_double2(__uint_as_float(word[2 * p]), __uint_as_float(word[2 * p + 1]));
    else return make_double2(tc_csr_widen<precision>(static_cast<uint16_t>(word[p])), tc_csr_widen<precision>(static_cast<uint16_t>(word[p] >> 16)));
  }
};
template <>
struct tc_csr_columns<TC_PRECISION_F64, 1> {
  double2 value;

  __device__ __forceinline__ void load(const char *from)
  {
    value = __ldg(reinterpret_cast<const double2 *>(from));
  }

  __device__ __forceinline__ double2 pair(int) const
  {
    return value;
  }
};

__device__ __forceinline__ double tc_csr_element_at(const char *from)
{
  return __ldg(reinterpret_cast<const double *>(from));
}

/* Entries of A in shared memory, for the lanes of a group */
struct alignas(16) tc_csr_entries {
  double  val[tc_csr_batch];
  int32_t col[tc_csr_batch];
};

/*
  `sum` and the products of the first `left` entries of a batch with what a lane has of their rows of B. An addition that is left out is predicated and adds nothing to the chain. Groups smaller than a warp load values
  two at a time, needed or not: by itself the compiler leaves a load out with its addition, one for each. A group that is a warp is faster so (docs/performance-waits.md, "Chains").
*/
template <class shape, typename element>
__device__ __forceinline__ double tc_csr_add_batch(double sum, const tc_csr_entries &entries, const element (&row)[tc_csr_batch], int32_t left)
{
  if constexpr (shape::deep_lanes < tc_warp_size) {
    const uint32_t vals = static_cast<uint32_t>(__cvta_generic_to_shared(entries.val));

#pragma unroll
    for (int i = 0; i < tc_csr_batch; i += 2) {
      const double2 a = tc_load_shared_pair(vals + static_cast<uint32_t>(sizeof(double)) * i);

      if (i < left) sum = fma(a.x, tc_csr_widen<shape::precision>(row[i]), sum);
      if (i + 1 < left) sum = fma(a.y, tc_csr_widen<shape::precision>(row[i + 1]), sum);
    }
  } else {
#pragma unroll
    for (int i = 0; i < tc_csr_batch; ++i) {
      if (i < left) sum = fma(entries.val[i], tc_csr_widen<shape::precision>(row[i]), sum);
    }
  }
  return sum;
}

/*
  The same for all entries of a batch, or the first `left` of them, by a group that has its turn. Barriers keep loads of six values ahead of the additions, which take 8 cycles each then: the compiler
  would load two, add them, and wait for the next two. `apart` is 0, which the compiler does not know: else it loads all values before the first turn, and has no registers for them.
*/
template <class shape, bool all, typename element>
__device__ __forceinline__ double tc_csr_add_in_turn(double sum, const tc_csr_entries &entries, const element (&row)[tc_csr_batch], int32_t left, uint32_t apart)
{
  constexpr int  ahead = 3;
  const uint32_t vals  = static_cast<uint32_t>(__cvta_generic_to_shared(entries.val)) + apart;
  double2        a[ahead];

#pragma unroll
  for (int i = 0; i < ahead; ++i) a[i] = tc_load_shared_pair(vals + static_cast<uint32_t>(sizeof(double2)) * i);
#pragma unroll
  for (int i = 0; i < tc_csr_batch / 2; ++i) {
    const double2 now = a[i % ahead];

    __syncwarp();
    if (all || 2 * i < left) sum = fma(now.x, tc_csr_widen<shape::precision>(row[2 * i]), sum);
    if (all || 2 * i + 1 < left) sum = fma(now.y, tc_csr_widen<shape::precision>(row[2 * i + 1]), sum);
    if (i + ahead < tc_csr_batch / 2) a[i % ahead] = tc_load_shared_pair(vals + static_cast<uint32_t>(sizeof(double2)) * (i + ahead));
  }
  return sum;
}

/* What the lanes of a group have loaded of the next entries: that of entry i, for all of them. All lanes of a warp come here together. */
template <class shape, typename number>
__device__ __forceinline__ number tc_csr_loaded(const number (&loaded)[shape::held], int i)
{
  if constexpr (shape::loaders == 1) return loaded[i];
  else return __shfl_sync(tc_full_warp, loaded[i / shape::loaders], i % shape::loaders, shape::lanes);
}

/*
  The sums of `length` entries for the columns of this lane. A lane loads an entry or two for its whole group, the columns of the next ones while the rows of B of the present ones are on their way.
  Beyond the last entry that one is loaded again and not added, since loads without conditions leave together. Lanes beyond the last column of B read what the last lane
  with one reads, and so no more than that. All lanes of a warp come here together, also where there is nothing to sum.
*/
template <class shape>
__device__ __forceinline__ void tc_csr_sum(const int32_t *cols, const double *vals, int32_t length, const tc_csr_rows &B, int32_t n, int lane, double2 (&sum)[shape::vectors * shape::pairs])
{
  constexpr int  ahead = shape::ahead, vectors = shape::vectors, pairs = shape::pairs, lanes = shape::lanes, loaders = shape::loaders, held = shape::held;
  constexpr bool alone = lanes == tc_warp_size; // the group in its warp
  using part           = tc_csr_columns<shape::precision, pairs>;
  const int     own = lane % loaders, last = length - 1;
  const char   *mine[vectors];
  int64_t       second[shape::apart ? vectors : 1]; // of two columns, if there is one
  int32_t       next[held] = {};
  double        val[held]  = {};

#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    const int at = min(lanes * v + lane, (n - 1) / (2 * pairs));

    mine[v] = B.first + (shape::apart ? 2 * B.column * at : static_cast<int64_t>(sizeof(part)) * at);
    if constexpr (shape::apart) second[v] = 2 * at + 1 < n ? B.column : 0;
  }
#pragma unroll
  for (int h = 0; h < held; ++h) {
    if (length > 0) next[h] = __ldg(cols + min(loaders * h + own, last));
  }
#pragma unroll 1
  for (int32_t done = 0; alone ? done < length : __any_sync(tc_full_warp, done < length); done += ahead) {
    int32_t col[ahead];
    part    row[ahead][vectors];

#pragma unroll
    for (int i = 0; i < ahead; ++i) col[i] = tc_csr_loaded<shape>(next, i);
    if (alone || done < length) { // all of them on their way together
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
          const char *const from = mine[v] + (uint64_t)(uint32_t)col[i] * B.stride;

          if constexpr (shape::apart) row[i][v].value = {tc_csr_element_at(from), tc_csr_element_at(from + second[v])};
          else row[i][v].load(from);
        }
      }
#pragma unroll
      for (int h = 0; h < held; ++h) {
        val[h]  = __ldg(vals + min(done + loaders * h + own, last));
        next[h] = __ldg(cols + min(done + ahead + loaders * h + own, last));
      }
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const double a = tc_csr_loaded<shape>(val, i);

#pragma unroll
      for (int v = 0; v < vectors * pairs; ++v) {
        const double2 b = row[i][v / pairs].pair(v % pairs);

        if (done + i < length) {
          sum[v].x = fma(a, b.x, sum[v].x);
          sum[v].y = fma(a, b.y, sum[v].y);
        }
      }
    }
  }
}

/* A row of a block, `at` is its place there */
struct tc_csr_row {
  int32_t begin, length;
  int     at;
};

/* The rows of a block, longest first */
template <class shape>
struct tc_csr_block {
  alignas(16) int32_t key[shape::rows];
  tc_csr_row          row[shape::rows];

  /*
    Groups of a warp wait for each other, so they are to sum rows that are alike. Rows that are not summed here, which are heavy or long, have no entries, nor do those beyond the last row
    of the matrix. The whole block comes here together.
  */
  __device__ __forceinline__ void rank(const tc_csr_view &A, int32_t row0)
  {
    const int r     = threadIdx.x;
    int32_t   begin = 0, length = 0, own = 0;
    int       longer = 0;

    static_assert(shape::rows <= shape::threads && TC_SPMM_SEGMENT <= INT32_MAX / shape::rows, "a thread for each row, and no overflow");
    if (r < shape::rows) {
      begin  = A.row_ptr[min(row0 + r, A.num_rows)];
      length = A.row_ptr[min(row0 + r + 1, A.num_rows)] - begin;
      length = length < A.heavy_from ? length : 0;
      own = key[r] = shape::rows * length + r; // no two are equal
    }
    __syncthreads();
    if (r < shape::rows) {
#pragma unroll
      for (int i = 0; i < shape::rows; ++i) longer += key[i] > own;
      row[longer] = {begin, length, r};
    }
    __syncthreads();
  }
};

/* What group `group` of `groups` takes in round `round` of a list, longest first: whoever has had the longest gets the shortest one next */
template <int groups>
__device__ __forceinline__ int tc_csr_item(int round, int group)
{
  return groups * round + (round % 2 == 0 ? group : groups - 1 - group);
}

/*
  The sum of entries begin .. end - 1 for column `column` alone, with tc_csr_batch rows of B in flight: a lane loads an entry or two for its whole group. All lanes of a
  warp come here together, also where there is nothing to sum. With `whole_warp` they have the same entries, and each group a batch of its own, so that a warp's rows of B are in flight for one sum, which
  goes from group to group: each adds its batch in its turn (docs/performance-chains.md, "Segments by warps").
*/
template <class shape, bool whole_warp = false>
__device__ __forceinline__ double tc_csr_sum_deep(const tc_csr_view &A, int32_t begin, int32_t end, const tc_csr_rows &B, int32_t n, int32_t column, tc_csr_entries &entries)
{
  using element = typename tc_csr_element<shape::precision>::type;
  constexpr int     lanes = whole_warp ? shape::warp_lanes : shape::deep_lanes, loaders = lanes < tc_csr_batch ? lanes : tc_csr_batch, held = tc_csr_batch / loaders;
  constexpr int     turns = whole_warp ? tc_warp_size / lanes : 1, step = turns * tc_csr_batch;
  const int         lane = threadIdx.x % tc_warp_size, place = lane % loaders, loader = place + (whole_warp ? lane / lanes * tc_csr_batch : 0);
  const int32_t     length = whole_warp ? tc_uniform(end - begin) : end - begin, longest = whole_warp ? length : tc_warp_max(length), first = length > 0 ? begin : 0, last = max(length - 1, 0);
  const char *const mine = B.first + B.column * min(column, n - 1);
  double            sum  = 0.0, val[held];
  int32_t           col[held];

  if (longest == 0) return sum;
#pragma unroll
  for (int h = 0; h < held; ++h) {
    col[h] = __ldg(A.col + first + min(loaders * h + loader, last));
    val[h] = __ldg(A.val + first + min(loaders * h + loader, last));
  }
#pragma unroll 1
  for (int32_t done = 0; done < longest; done += step) {
    element row[tc_csr_batch];

    __syncwarp();
#pragma unroll
    for (int h = 0; h < held; ++h) {
      entries.col[loaders * h + place] = col[h];
      entries.val[loaders * h + place] = val[h];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < tc_csr_batch; ++i) row[i] = __ldg(reinterpret_cast<const element *>(mine + (uint64_t)(uint32_t)entries.col[i] * B.stride));
#pragma unroll
    for (int h = 0; h < held; ++h) {
      const int32_t e = first + min(done + step + loaders * h + loader, last);

      col[h] = __ldg(A.col + e);
      val[h] = __ldg(A.val + e);
    }
    __syncwarp(); // all loads before the first sum: the compiler would take two or three at a time to save registers
    if constexpr (whole_warp) {
      const uint32_t zero   = static_cast<uint32_t>(n) >> 31;
      const int      before = (lane + tc_warp_size - lanes) % tc_warp_size;

      if (done + step <= length) {
#pragma unroll 1
        for (int turn = 0; turn < turns; ++turn) sum = tc_csr_add_in_turn<shape, true>(__shfl_sync(tc_full_warp, sum, before), entries, row, tc_csr_batch, zero * turn);
      } else {
#pragma unroll 1
        for (int32_t left = length - done; left > 0; left -= tc_csr_batch) sum = tc_csr_add_in_turn<shape, false>(__shfl_sync(tc_full_warp, sum, before), entries, row, left, zero * left);
      }
    } else sum = tc_csr_add_batch<shape>(sum, entries, row, length - done);
  }
  return whole_warp ? __shfl_sync(tc_full_warp, sum, (length - 1) % step / tc_csr_batch * lanes + lane % lanes) : sum; // that of the group which was last
}
