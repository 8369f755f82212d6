/*
  A row-major copy of a block in a narrow precision, its columns scaled by powers of two where that is necessary.
*/
#pragma once
#include "tc_build.cuh"
#include "tc_narrow.h"
#include "tc_spmm.h"

/*
  The part of a block that a thread block turns: so many rows and columns that each thread has 8 loads in flight; rows of the copy are written 128 bytes at a time if
  they are as long
*/
template <int columns>
struct tc_narrow_tile {
  static constexpr int rows = 64, pieces = rows / tc_warp_size;
  static constexpr int own = 4, threads = columns / own * tc_warp_size; // neighbouring columns of a warp
  static constexpr int resident = 1536 / threads;                       // blocks of a multiprocessor, 40 registers to a thread
};

constexpr int tc_narrow_few_blocks = 64; // for what is rarely necessary: as many as can look in passing

/*
  Some values of a column, in a narrow precision if there is `store`, divided by 2^scale first without `look`. Returns the upper 12 bits of the largest finite magnitude,
  if there is `look`.
*/
template <tc_precision precision, bool look, bool store, int num>
__device__ __forceinline__ int tc_narrow_values(const double (&x)[num], int scale, uint32_t (&bits)[num])
{
  const auto upper   = [](double value) { return __double2hiint(value) & 0x7fffffff; };
  const auto scaled  = [scale](double value) { return look ? value : __dmul_rn(value, tc_power_of_two(-scale)); };
  int        highest = 0;
  bool       usual   = true;

#pragma unroll
  for (int r = 0; r < num; ++r) {
    if constexpr (look) highest = max(highest, upper(x[r]));
    if constexpr (store) usual = tc_usual_bits(precision, scaled(x[r]), &bits[r]) && usual;
  }
  if (usual && highest < 0x7ff << 20) return highest >> 20;
  highest = 0;
#pragma unroll
  for (int r = 0; r < num; ++r) {
    if (upper(x[r]) < 0x7ff << 20) highest = max(highest, upper(x[r]));
    if constexpr (store) bits[r] = tc_narrow_bits(precision, scaled(x[r]));
  }
  return highest >> 20;
}

/*
  tc_narrow_rows_kernel - copy[row * width + j] = B[row + j * ldb] in a narrow precision, 0 for n <= j < width; and the largest magnitudes of the columns

  look:  columns are taken as they are, and top[j] becomes the upper 12 bits of the largest finite magnitude of column j, if it was no larger before
  store: the copy is written. Without `look` columns are divided by 2^tc_column_scale() of their top first, and a tile's columns of which none has a scale are left alone,
         but in F16.
  turn:  what is in row i of the copy is moved by turn * i bytes, modulo 128; 0 or a multiple of 16, then width is a multiple of 128 bytes

  Work:   a thread block per 64 rows and 32 or 64 columns, one tile after the other if the grid is smaller
  Lanes:  consecutive rows when reading, 16 bytes of a row when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb, doubles or floats; top [width]; copy row-major [rows, width], width a multiple of 16; all device
  Writes: every element of copy once, top
  Launch: 256 or 512 threads per block, 8.3 KB of shared memory.  Needs: sm_80.  Source: the transposition everybody writes
*/
template <tc_precision precision, int columns, bool look, bool store, typename number>
static __global__ void __launch_bounds__(tc_narrow_tile<columns>::threads, tc_narrow_tile<columns>::resident) tc_narrow_rows_kernel(int32_t rows, int32_t n, const number *__restrict__ b, int64_t ldb, int32_t width, uint32_t turn, int32_t *top, char *__restrict__ copy)
{
  using shape = tc_narrow_tile<columns>;
  constexpr int       bytes = precision >= TC_PRECISION_BF16 ? 2 : 4, words = columns * bytes / 4, own_words = shape::own * bytes / 4, parts = words / 4;
  __shared__ uint32_t tile[words][shape::rows + 1];
  const int           lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t       column0 = columns * blockIdx.x, first = column0 + shape::own * warp;
  int                 scale[shape::own] = {}, known = 0;

#pragma unroll
  for (int i = 0; !look && i < shape::own; ++i) scale[i] = first + i < n ? tc_column_scale(precision, __ldg(top + first + i)) : 0;
  if constexpr (!look && precision != TC_PRECISION_F16) {
    bool scaled = false;

#pragma unroll
    for (int i = 0; i < shape::own; ++i) scaled = scaled || scale[i] != 0;
    if (!__syncthreads_or(scaled)) return;
  }
  for (int32_t row0 = shape::rows * blockIdx.y; row0 < rows; row0 += shape::rows * gridDim.y) {
    const number *from = b + row0 + lane + first * ldb;
    double        x[shape::own][shape::pieces];

#pragma unroll
    for (int i = 0; i < shape::own; ++i, from += ldb) {
#pragma unroll
      for (int r = 0; r < shape::pieces; ++r) x[i][r] = row0 + lane + tc_warp_size * r < rows && first + i < n ? __ldcs(from + tc_warp_size * r) : 0.0;
    }
    if (look && lane < shape::own && first + lane < n) known = __ldcg(top + first + lane); // of column `lane` of the warp's
#pragma unroll
    for (int q = 0; q < own_words; ++q) {
      uint32_t word[shape::pieces] = {};

#pragma unroll
      for (int i = q * 4 / bytes; i < (q + 1) * 4 / bytes; ++i) {
        uint32_t bits[shape::pieces];

        const int highest = tc_narrow_values<precision, look, store>(x[i], scale[i], bits);

        if (look && __any_sync(tc_full_warp, highest > __shfl_sync(tc_full_warp, known, i))) { // not often
          const int largest = tc_warp_max(highest);

          if (lane == 0) atomicMax(top + first + i, largest);
        }
#pragma unroll
        for (int r = 0; store && r < shape::pieces; ++r) word[r] |= bits[r] << (bytes * 8 * i & 31);
      }
#pragma unroll
      for (int r = 0; store && r < shape::pieces; ++r) tile[own_words * warp + q][lane + tc_warp_size * r] = word[r];
    }
    if constexpr (!store) continue;
    __syncthreads();
#pragma unroll
    for (uint32_t at = threadIdx.x; at < shape::rows * parts; at += shape::threads) {
      const uint32_t r = at / parts, part = at % parts;
      const uint32_t byte = bytes * column0 + 16 * part, to = turn ? byte & ~127u | byte + turn * (row0 + r) & 127 : byte;

      if (row0 + static_cast<int32_t>(r) < rows && byte < static_cast<uint32_t>(bytes * width)) *reinterpret_cast<uint4 *>(copy + (int64_t)(row0 + r) * (bytes * width) + to) = make_uint4(tile[4 * part][r], tile[4 * part + 1][r], tile[4 * part + 2][r], tile[4 * part + 3][r]);
    }
    __syncthreads();
  }
}

template <tc_precision precision, int columns, typename number>
static tc_status tc_narrow_tiles_from(const char *name, int32_t rows, const number *b, const tc_spmm_args *args, int32_t width, uint32_t turn, int32_t *top, char *copy, cudaStream_t stream)
{
  using shape = tc_narrow_tile<columns>;
  constexpr bool twice = precision == TC_PRECISION_F16;
  const unsigned tiles = (unsigned)((rows + shape::rows - 1) / shape::rows), most = 65535; // a grid's second dimension
  const dim3     all((unsigned)((width + columns - 1) / columns), tiles < most ? tiles : most), few(all.x, all.y < tc_narrow_few_blocks ? all.y : tc_narrow_few_blocks);

  TC_CALL(tc_cuda(name, cudaMemsetAsync(top, 0, sizeof *top * width, stream)));
  TC_CALL(tc_launch_grid(name, tc_narrow_rows_kernel<precision, columns, true, !twice, number>, false, all, shape::threads, 0, stream, rows, args->n, b, args->ldb, width, turn, top, copy));
  return tc_launch_grid(name, tc_narrow_rows_kernel<precision, columns, false, true, number>, false, twice ? all : few, shape::threads, 0, stream, rows, args->n, b, args->ldb, width, turn, top, copy);
}

template <tc_precision precision, int columns>
static tc_status tc_narrow_tiles(const char *name, int32_t rows, const tc_spmm_args *args, int32_t width, uint32_t turn, int32_t *top, char *copy, cudaStream_t stream)
{
  if (args->b_f32) return tc_narrow_tiles_from<precision, columns>(name, rows, tc_floats_of(args), args, width, turn, top, copy, stream);
  return tc_narrow_tiles_from<precision, columns>(name, rows, args->b, args, width, turn, top, copy, stream);
}

/*
  The columns of args.b in a narrow precision; top [width] tells what their scales are. Columns that need one are told from a first look: but for F16, that is taken
  while they are copied as they are.
*/
template <tc_precision precision>
static tc_status tc_narrow_rows(const char *name, int32_t rows, const tc_spmm_args *args, int32_t width, uint32_t turn, int32_t *top, char *copy, cudaStream_t stream)
{
  if constexpr (precision >= TC_PRECISION_BF16) {
    if (width % 64 == 0) return tc_narrow_tiles<precision, 64>(name, rows, args, width, turn, top, copy, stream);
  }
  return tc_narrow_tiles<precision, 32>(name, rows, args, width, turn, top, copy, stream);
}
