/*
  A row-major copy of a block in 16 bits, each column divided by a power of two: what tensor cores read that want all columns of a row of B at once.
*/
#pragma once
#include "tc_bcsr.h"
#include "tc_device.cuh"

constexpr int tc_narrow_parts   = 32; // pieces of a column whose largest magnitudes are found side by side, one for each lane that reads them
constexpr int tc_narrow_threads = 256;
constexpr int tc_narrow_rows    = 64, tc_narrow_columns = 64; // of a thread block

/*
  tc_column_magnitudes_kernel - largest[j * tc_narrow_parts + part]: bits of the largest finite magnitude of a part of column j of B

  Work:   a thread block per column and part
  Lanes:  consecutive rows
  Arrays: b column-major [rows, n], leading dimension ldb; largest [n, tc_narrow_parts]; all device
  Writes: every element of largest once
  Launch: 256 threads per block, 64 bytes of shared memory.  Needs: sm_60.  Source: tc_bcsr.h
*/
static __global__ void __launch_bounds__(tc_narrow_threads) tc_column_magnitudes_kernel(int32_t rows, const double *__restrict__ b, int64_t ldb, uint64_t *__restrict__ largest)
{
  __shared__ uint64_t of_warp[tc_narrow_threads / tc_warp_size];
  const int           lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int64_t       part = ((int64_t)rows + tc_narrow_parts - 1) / tc_narrow_parts, first = part * blockIdx.x, end = min(first + part, (int64_t)rows);
  const double       *column = b + blockIdx.y * ldb;
  uint64_t            most   = 0;

#pragma unroll 4
  for (int64_t i = first + threadIdx.x; i < end; i += tc_narrow_threads) {
    const uint64_t magnitude = tc_finite_magnitude(__ldg(column + i));

    most = magnitude > most ? magnitude : most;
  }
  most = tc_warp_largest(most);
  if (lane == 0) of_warp[warp] = most;
  __syncthreads();
  if (warp > 0) return;
  most = tc_warp_largest(lane < tc_narrow_threads / tc_warp_size ? of_warp[lane] : 0);
  if (lane == 0) largest[blockIdx.y * tc_narrow_parts + blockIdx.x] = most;
}

/*
  tc_narrow_rows_kernel - copy[row * width + j] = B[row + j * ldb] / 2^exponent[j], rounded, for j < n, 0 for n <= j < width

  Work:   a thread block per 64 rows and 64 columns
  Lanes:  consecutive rows when reading, two consecutive columns each when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb; largest of tc_column_magnitudes_kernel; copy row-major [rows, width], width even; exponent [width]; all device
  Writes: every element of copy once, every exponent once, also without rows
  Launch: 256 threads per block, 8.7 KB of shared memory.  Needs: sm_60.  Source: the transposition everybody writes
*/
template <bool bf16>
static __global__ void __launch_bounds__(tc_narrow_threads) tc_narrow_rows_kernel(int32_t rows, int32_t n, const double *__restrict__ b, int64_t ldb, const uint64_t *__restrict__ largest, int32_t width, uint16_t *__restrict__ copy, int32_t *__restrict__ exponent)
{
  constexpr int          warps = tc_narrow_threads / tc_warp_size;
  constexpr tc_precision precision = bf16 ? TC_PRECISION_BF16 : TC_PRECISION_F16;
  __shared__ uint16_t    tile[tc_narrow_rows][tc_narrow_columns + 2];
  const int              lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t          row0 = tc_narrow_rows * blockIdx.x, column0 = tc_narrow_columns * blockIdx.y;

  for (int c = warp; c < tc_narrow_columns && column0 + c < width; c += warps) {
    const int32_t j    = column0 + c;
    const int32_t mine = j < n ? tc_bcsr_exponent(tc_warp_largest(__ldg(largest + j * tc_narrow_parts + lane)), precision) : 0;

    if (blockIdx.x == 0 && lane == 0) exponent[j] = mine;
#pragma unroll
    for (int r = lane; r < tc_narrow_rows; r += tc_warp_size) tile[r][c] = row0 + r < rows && j < n ? tc_bcsr_narrow(__ldcs(b + row0 + r + j * ldb), mine, precision) : 0;
  }
  __syncthreads();
  if (column0 + 2 * lane >= width) return;
  for (int r = warp; r < tc_narrow_rows && row0 + r < rows; r += warps) *reinterpret_cast<uint32_t *>(copy + (int64_t)(row0 + r) * width + column0 + 2 * lane) = *reinterpret_cast<const uint32_t *>(&tile[r][2 * lane]);
}

/* B of the product in 16 bits: copy [rows, width], and the exponents [width]; `largest` has tc_narrow_parts numbers for each of n columns */
template <bool bf16>
static tc_status tc_narrow_copy(const char *name, int32_t rows, const tc_spmm_args *args, uint64_t *largest, int32_t width, uint16_t *copy, int32_t *exponent, cudaStream_t stream)
{
  const dim3 blocks((unsigned)(rows > 0 ? ((int64_t)rows + tc_narrow_rows - 1) / tc_narrow_rows : 1), (unsigned)((width + tc_narrow_columns - 1) / tc_narrow_columns));

  TC_CALL(tc_launch_grid(name, tc_column_magnitudes_kernel, dim3(tc_narrow_parts, (unsigned)args->n), tc_narrow_threads, 0, stream, rows, args->b, args->ldb, largest));
  return tc_launch_grid(name, tc_narrow_rows_kernel<bf16>, blocks, tc_narrow_threads, 0, stream, rows, args->n, args->b, args->ldb, largest, width, copy, exponent);
}
