/*
  A row-major copy of a block in a narrow precision, its columns scaled by powers of two where that is necessary.
*/
#pragma once
#include "tc_build.cuh"
#include "tc_narrow.h"
#include "tc_spmm.h"

constexpr int tc_narrow_threads = 256;
constexpr int tc_narrow_tile_rows = 64, tc_narrow_tile_columns = 32;
constexpr int tc_narrow_few_blocks = 64; // for what is rarely necessary: as many as can look in passing

/* The upper 12 bits of |value|, 0 if that is not finite */
__device__ __forceinline__ int tc_top_of(double value)
{
  const int top = __double2hiint(value) >> 20 & 0x7ff;

  return top < 0x7ff ? top : 0;
}

/*
  tc_narrow_rows_kernel - copy[row * width + j] = B[row + j * ldb] in a narrow precision, 0 for n <= j < width; and the largest magnitudes of the columns

  look:  columns are taken as they are, and top[j] becomes the largest tc_top_of() of column j, if it was no larger before
  store: the copy is written. Without `look` columns are divided by 2^tc_column_scale() of their top first, and 32 columns of which none has a scale are left alone, but
         in F16.

  Work:   a thread block per 64 rows and 32 columns, one tile after the other if the grid is smaller
  Lanes:  consecutive rows when reading, 16 bytes of a row when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb; top [width]; copy row-major [rows, width], width a multiple of 16; all device
  Writes: every element of copy once, top
  Launch: 256 threads per block, 8.3 KB of shared memory.  Needs: sm_60.  Source: the transposition everybody writes
*/
template <tc_precision precision, bool look, bool store>
static __global__ void __launch_bounds__(tc_narrow_threads) tc_narrow_rows_kernel(int32_t rows, int32_t n, const double *__restrict__ b, int64_t ldb, int32_t width, int32_t *top, char *__restrict__ copy)
{
  constexpr int       warps = tc_narrow_threads / tc_warp_size, own = tc_narrow_tile_columns / warps, pieces = tc_narrow_tile_rows / tc_warp_size;
  constexpr int       bytes = precision >= TC_PRECISION_BF16 ? 2 : 4, part = 16 / bytes, parts = tc_narrow_tile_columns / part;
  __shared__ uint32_t tile[tc_narrow_tile_columns][tc_narrow_tile_rows + 1];
  const int           lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t       column0 = tc_narrow_tile_columns * blockIdx.y;
  int                 scale[own], highest[own];

#pragma unroll
  for (int i = 0; i < own; ++i) {
    const int32_t j = column0 + warp + warps * i;

    scale[i]   = !look && j < n ? tc_column_scale(precision, __ldg(top + j)) : 0;
    highest[i] = 0;
  }
  if constexpr (!look && precision != TC_PRECISION_F16) {
    bool scaled = false;

#pragma unroll
    for (int i = 0; i < own; ++i) scaled = scaled || scale[i] != 0;
    if (!__syncthreads_or(scaled)) return;
  }
  for (int32_t row0 = tc_narrow_tile_rows * blockIdx.x; row0 < rows; row0 += tc_narrow_tile_rows * gridDim.x) {
    double x[own][pieces];

#pragma unroll
    for (int i = 0; i < own; ++i) {
#pragma unroll
      for (int r = 0; r < pieces; ++r) {
        const int32_t row = row0 + lane + tc_warp_size * r, j = column0 + warp + warps * i;

        x[i][r] = row < rows && j < n ? __ldcs(b + row + j * ldb) : 0.0;
      }
    }
#pragma unroll
    for (int i = 0; i < own; ++i) {
#pragma unroll
      for (int r = 0; r < pieces; ++r) {
        if constexpr (look) highest[i] = max(highest[i], tc_top_of(x[i][r]));
        if constexpr (store) tile[warp + warps * i][lane + tc_warp_size * r] = tc_narrow_bits(precision, look ? x[i][r] : __dmul_rn(x[i][r], tc_power_of_two(-scale[i])));
      }
    }
    if constexpr (!store) continue;
    __syncthreads();
#pragma unroll
    for (int at = threadIdx.x; at < tc_narrow_tile_rows * parts; at += tc_narrow_threads) {
      const int r = at / parts, c = part * (at % parts);
      uint32_t  word[4];

#pragma unroll
      for (int q = 0; q < 4; ++q) word[q] = bytes == 4 ? tile[c + q][r] : tile[c + 2 * q][r] | tile[c + 2 * q + 1][r] << 16;
      if (row0 + r < rows && column0 + c < width) *reinterpret_cast<uint4 *>(copy + bytes * ((int64_t)(row0 + r) * width + column0 + c)) = make_uint4(word[0], word[1], word[2], word[3]);
    }
    __syncthreads();
  }
  if constexpr (look) {
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int32_t j       = column0 + warp + warps * i;
      const int     largest = tc_warp_max(highest[i]);

      if (lane == 0 && j < n && largest > __ldcg(top + j)) atomicMax(top + j, largest); // most find that there is nothing to do
    }
  }
}

/*
  The columns of args.b in a narrow precision; top [width] tells what their scales are. Columns that need one are told from a first look: but for F16, that is taken
  while they are copied as they are.
*/
template <tc_precision precision>
static tc_status tc_narrow_rows(const char *name, int32_t rows, const tc_spmm_args *args, int32_t width, int32_t *top, char *copy, cudaStream_t stream)
{
  constexpr bool twice = precision == TC_PRECISION_F16;
  const dim3     all((unsigned)((rows + tc_narrow_tile_rows - 1) / tc_narrow_tile_rows), (unsigned)((width + tc_narrow_tile_columns - 1) / tc_narrow_tile_columns));
  const dim3     few(all.x < tc_narrow_few_blocks ? all.x : tc_narrow_few_blocks, all.y);

  TC_CALL(tc_cuda(name, cudaMemsetAsync(top, 0, sizeof *top * width, stream)));
  TC_CALL(tc_launch_grid(name, tc_narrow_rows_kernel<precision, true, !twice>, all, tc_narrow_threads, 0, stream, rows, args->n, args->b, args->ldb, width, top, copy));
  return tc_launch_grid(name, tc_narrow_rows_kernel<precision, false, true>, twice ? all : few, tc_narrow_threads, 0, stream, rows, args->n, args->b, args->ldb, width, top, copy);
}
