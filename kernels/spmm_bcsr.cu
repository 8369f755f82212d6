#include "long_rows_spmm.cuh"
#include "narrow_rows.cuh"
#include "tc_bcsr.h"
#include "tc_mma_sparse.cuh"

/*
  tc_spmm_bcsr_kernel - C = A B or C += A B over the pieces of a tc_bcsr, 2:4 tiles first, dense tiles then. Structural zeros of a tile are multiplied: what is not finite
  in B may reach the other rows of a window that refers to it.

  Work:   a warp per piece and 8 * vectors columns of B; the warps of a block own neighbouring pieces, neighbouring blocks the same pieces and other columns
  Lanes:  lane 4 * g + t reads `vectors` adjacent columns, from vectors * g on, of the rows of B that places 2 * t, 2 * t + 1, ... of a tile name; instruction i of a tile
          takes column i of each, so a lane ends up with 2 * vectors adjacent columns of rows g and g + 8
  Arrays: the view; copy [num_cols, width], top [width] of narrow_rows.cuh; C column-major; partial [num_slots, 16, width]; all device
  Writes: C once for each row of a window with one piece, partial once for each of the other pieces
  Launch: 8 warps per block, no shared memory.  Needs: sm_80.  Source: "SpTC-SMaT", ETH Zurich 2025 (2:4 tiles apart from dense ones, two stages), with condensed columns,
          sums in single precision, and registers in place of shared memory
*/
constexpr int tc_piece_warps = 8;

struct tc_narrow_output {
  double        *c, *partial;
  int64_t        ldc;
  const int32_t *top; // of the columns of B
  int32_t        n, width;
  bool           add;
};

/* What a lane reads of a row of B: `vectors` columns */
template <int vectors>
struct tc_narrow_row {
  uint32_t two[vectors / 2];

  __device__ __forceinline__ void load(const char *from)
  {
    if constexpr (vectors == 8) {
      const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));

      two[0] = v.x, two[1] = v.y, two[2] = v.z, two[3] = v.w;
    } else if constexpr (vectors == 4) {
      const uint2 v = __ldg(reinterpret_cast<const uint2 *>(from));

      two[0] = v.x, two[1] = v.y;
    } else two[0] = __ldg(reinterpret_cast<const uint32_t *>(from));
  }
};

/* Column i of two rows, the first in the lower half */
template <int vectors>
static __device__ __forceinline__ uint32_t tc_pair_rows(const tc_narrow_row<vectors> &first, const tc_narrow_row<vectors> &second, int i)
{
  return __byte_perm(first.two[i / 2], second.two[i / 2], i % 2 == 0 ? 0x5410 : 0x7632);
}

/* The kinds of tiles: places that a lane reads, and units of 16 places in column */
struct tc_sparse_tile {
  static constexpr int places = TC_BCSR_SPARSE / 4;
  static constexpr int units  = 2;
};

struct tc_dense_tile {
  static constexpr int places = TC_BCSR_DENSE / 4;
  static constexpr int units  = 1;
};

/* The tiles of one kind of a piece, as a lane sees them */
template <class kind>
struct tc_tiles {
  int             num;
  const uint4    *val;
  const int4     *column;
  const uint32_t *choice;
};

template <class kind>
struct tc_tile_columns {
  int32_t column[kind::places];

  __device__ __forceinline__ void load(const tc_tiles<kind> &tiles, int s)
  {
#pragma unroll
    for (int i = 0; i < kind::places / 4; ++i) {
      const int4 four = __ldg(tiles.column + s * (TC_BCSR_DENSE * kind::units / 4) + i);

      column[4 * i] = four.x, column[4 * i + 1] = four.y, column[4 * i + 2] = four.z, column[4 * i + 3] = four.w;
    }
  }
};

/* A tile on its way: its values and its rows of B */
template <class kind, int vectors>
struct tc_tile_stage {
  uint4                  a;
  uint32_t               choice;
  tc_narrow_row<vectors> row[kind::places];

  __device__ __forceinline__ void load(const tc_tiles<kind> &tiles, int s, const tc_tile_columns<kind> &columns, const char *b, uint32_t row_bytes)
  {
    a = __ldcs(tiles.val + s * (int)(TC_BCSR_SLOTS * sizeof(uint16_t) / sizeof(uint4)));
    if constexpr (kind::units == 2) choice = __ldcs(tiles.choice + s * TC_BCSR_WORDS);
#pragma unroll
    for (int i = 0; i < kind::places; ++i) row[i].load(b + (uint64_t)static_cast<uint32_t>(columns.column[i]) * row_bytes);
  }
};

template <tc_precision precision, int vectors>
static __device__ __forceinline__ void tc_multiply_tile(const tc_tile_stage<tc_sparse_tile, vectors> &S, tc_mma_single_accumulator (&sums)[vectors])
{
#pragma unroll
  for (int i = 0; i < vectors; ++i) tc_mma_sparse_m16n8k32<precision>(sums[i], S.a, S.choice, tc_pair_rows(S.row[0], S.row[1], i), tc_pair_rows(S.row[2], S.row[3], i), tc_pair_rows(S.row[4], S.row[5], i), tc_pair_rows(S.row[6], S.row[7], i));
}

template <tc_precision precision, int vectors>
static __device__ __forceinline__ void tc_multiply_tile(const tc_tile_stage<tc_dense_tile, vectors> &S, tc_mma_single_accumulator (&sums)[vectors])
{
#pragma unroll
  for (int i = 0; i < vectors; ++i) tc_mma_m16n8k16<precision>(sums[i], S.a.x, S.a.y, S.a.z, S.a.w, tc_pair_rows(S.row[0], S.row[1], i), tc_pair_rows(S.row[2], S.row[3], i));
}

/* Two stages: while a tile is multiplied, the next one and its rows of B are on their way, and the columns of the one after that */
template <tc_precision precision, int vectors, class kind>
static __device__ __forceinline__ void tc_multiply_tiles(const tc_tiles<kind> &tiles, const char *b, uint32_t row_bytes, tc_mma_single_accumulator (&sums)[vectors])
{
  tc_tile_columns<kind>        columns;
  tc_tile_stage<kind, vectors> stage[2];

  if (tiles.num == 0) return;
  columns.load(tiles, 0);
  stage[0].load(tiles, 0, columns, b, row_bytes);
  columns.load(tiles, min(1, tiles.num - 1));
  for (int s = 0; s < tiles.num; s += 2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (s + half + 1 < tiles.num) stage[1 - half].load(tiles, s + half + 1, columns, b, row_bytes);
      if (s + half + 2 < tiles.num) columns.load(tiles, s + half + 2);
      if (s + half < tiles.num) tc_multiply_tile<precision>(stage[half], sums);
    }
  }
}

template <tc_precision precision, int vectors>
static __device__ __forceinline__ void tc_put_piece(const tc_bcsr &T, int32_t p, int32_t window, int32_t first, int lane, const tc_narrow_output &out, const tc_mma_single_accumulator (&sums)[vectors])
{
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t i = lane / 4 + TC_BCSR_ROWS / 2 * half, row = TC_BCSR_ROWS * window + i, exponent = T.row_exponent[row];

#pragma unroll
    for (int k = 0; k < 2 * vectors; ++k) {
      const int32_t j = first + 2 * vectors * (lane % 4) + k;

      if (j >= out.n || row >= T.num_rows) continue;
      const double sum = tc_unscale(sums[k % vectors].c[2 * half + k / vectors], exponent + tc_column_scale(precision, __ldg(out.top + j)));

      if (p < T.num_slots) out.partial[(TC_BCSR_ROWS * (int64_t)p + i) * out.width + j] = sum;
      else tc_finish_element(sum, out.c + row + j * out.ldc, out.add);
    }
  }
}

template <tc_precision precision, int vectors>
static __global__ void __launch_bounds__(tc_piece_warps *tc_warp_size, 2) tc_spmm_bcsr_kernel(const __grid_constant__ tc_bcsr T, const char *__restrict__ copy, int32_t chunks, const __grid_constant__ tc_narrow_output out)
{
  const int     lane = threadIdx.x % tc_warp_size;
  const int32_t p = blockIdx.x / chunks * tc_piece_warps + threadIdx.x / tc_warp_size, first = 8 * vectors * (blockIdx.x % chunks);

  if (p >= T.num_pieces) return;
  const int4                     bits   = __ldg(reinterpret_cast<const int4 *>(T.piece + p));
  const uint32_t                 tile   = bits.x, sparse = bits.y;
  const int                      num_sparse = bits.w & 0xff, num_dense = bits.w >> 8 & 0xff;
  const uint4                   *val    = reinterpret_cast<const uint4 *>(T.val + TC_BCSR_SLOTS * (int64_t)tile) + lane;
  const int32_t                 *column = T.column + tc_bcsr_columns_at(tile, sparse);
  const char                    *b      = copy + sizeof(uint16_t) * (first + vectors * (lane / 4));
  const uint32_t                 row_bytes = sizeof(uint16_t) * out.width;
  const tc_tiles<tc_sparse_tile> sparse_tiles = {num_sparse, val, reinterpret_cast<const int4 *>(column + tc_sparse_tile::places * (lane % 4)), T.choice + TC_BCSR_WORDS * (int64_t)sparse + 2 * (lane / 4) + lane % 2};
  const tc_tiles<tc_dense_tile>  dense_tiles = {num_dense, val + num_sparse * tc_warp_size, reinterpret_cast<const int4 *>(column + num_sparse * TC_BCSR_SPARSE + tc_dense_tile::places * (lane % 4)), nullptr};
  tc_mma_single_accumulator      sums[vectors] = {};

  tc_multiply_tiles<precision>(sparse_tiles, b, row_bytes, sums);
  tc_multiply_tiles<precision>(dense_tiles, b, row_bytes, sums);
  tc_put_piece<precision>(T, p, bits.z, first, lane, out, sums);
}

/*
  tc_add_pieces_kernel - the rows of the windows that have several pieces: their sums, added in ascending order from 0

  Work:   an element of C per thread
  Lanes:  consecutive columns, so partial coalesces
  Arrays: split_window and split_first of the view; partial [num_slots, 16, width]; C column-major; all device
  Writes: the rows of those windows
  Launch: 128 threads per block, no shared memory.  Needs: sm_70.  Source: tc_bcsr.h
*/
static __global__ void tc_add_pieces_kernel(const __grid_constant__ tc_bcsr T, const __grid_constant__ tc_narrow_output out)
{
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int32_t j = (int32_t)(i % out.width), r = (int32_t)(i / out.width % TC_BCSR_ROWS);
  const int64_t split = i / out.width / TC_BCSR_ROWS;
  double        sum = 0.0;

  if (split >= T.num_split || j >= out.n) return;
  const int32_t row = TC_BCSR_ROWS * T.split_window[split] + r;

  if (row >= T.num_rows) return;
#pragma unroll 4
  for (int64_t p = T.split_first[split]; p < T.split_first[split + 1]; ++p) sum = __dadd_rn(sum, out.partial[(TC_BCSR_ROWS * p + r) * out.width + j]);
  tc_finish_element(sum, out.c + row + j * out.ldc, out.add);
}

/* Scratch, all parts at multiples of 16 bytes: partial sums, the tops of the columns of B, the copy of B */
struct tc_bcsr_scratch {
  size_t partial, top, copy; // bytes

  tc_bcsr_scratch(const tc_bcsr *T, int32_t n)
    : partial(sizeof(double) * TC_BCSR_ROWS * T->num_slots * tc_narrow_width(n)), top(sizeof(int32_t) * tc_narrow_width(n)), copy(sizeof(uint16_t) * T->num_cols * tc_narrow_width(n))
  {
  }
};

extern "C" size_t tc_spmm_bcsr_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_bcsr_scratch S(static_cast<const tc_bcsr *>(view), args->n);

  return S.partial + S.top + S.copy;
}

template <tc_precision precision, int vectors>
static tc_status tc_launch_pieces(const char *name, const tc_bcsr *T, const char *copy, const tc_narrow_output &out, cudaStream_t stream)
{
  const int32_t chunks = out.width / (8 * vectors);

  return tc_launch(name, tc_spmm_bcsr_kernel<precision, vectors>, ((int64_t)T->num_pieces + tc_piece_warps - 1) / tc_piece_warps * chunks, tc_piece_warps * tc_warp_size, stream, *T, copy, chunks, out);
}

template <tc_precision precision>
static tc_status tc_multiply_pieces(const char *name, const tc_bcsr *T, const tc_spmm_args *args, cudaStream_t stream)
{
  const tc_bcsr_scratch  S(T, args->n);
  char                  *at      = reinterpret_cast<char *>(args->scratch), *copy = at + S.partial + S.top;
  int32_t               *top     = reinterpret_cast<int32_t *>(at + S.partial);
  const tc_narrow_output out     = {args->c, args->scratch, args->ldc, top, args->n, tc_narrow_width(args->n), args->add != 0};
  constexpr int          threads = 128;

  TC_CHECK(T->precision == precision, TC_ERR_ARG, "%s: the values are in precision %d", name, T->precision);
  TC_CALL(tc_narrow_rows<precision>(name, T->num_cols, args, out.width, 0, top, copy, stream));
  switch (out.width) {
  case 16: TC_CALL((tc_launch_pieces<precision, 2>(name, T, copy, out, stream))); break;
  case 32: TC_CALL((tc_launch_pieces<precision, 4>(name, T, copy, out, stream))); break;
  default: TC_CALL((tc_launch_pieces<precision, 8>(name, T, copy, out, stream)));
  }
  return tc_launch(name, tc_add_pieces_kernel, ((int64_t)TC_BCSR_ROWS * T->num_split * out.width + threads - 1) / threads, threads, stream, *T, out);
}

extern "C" tc_status tc_spmm_bcsr_bf16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_pieces<TC_PRECISION_BF16>("tc_spmm_bcsr_bf16", static_cast<const tc_bcsr *>(view), args, static_cast<cudaStream_t>(stream));
}

extern "C" tc_status tc_spmm_bcsr_f16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_multiply_pieces<TC_PRECISION_F16>("tc_spmm_bcsr_f16", static_cast<const tc_bcsr *>(view), args, static_cast<cudaStream_t>(stream));
}
