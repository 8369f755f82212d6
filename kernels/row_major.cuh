/*
  A row-major copy of a block: what kernels read that want all columns of a row of B at once.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_spmm.h"

/*
  tc_row_major_kernel - copy[row * width + j] = B[row + j * ldb] for j < n, 0 for n <= j < width

  Work:   a thread block per 32 rows and 32 columns
  Lanes:  consecutive rows when reading, consecutive columns when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb; copy row-major [rows, width]; all device
  Writes: every element of copy once
  Launch: 256 threads per block, 8.3 KB of shared memory.  Needs: sm_60.  Source: the transposition everybody writes
*/
static __global__ void tc_row_major_kernel(int32_t rows, int32_t n, const double *__restrict__ b, int64_t ldb, int32_t width, double *__restrict__ copy)
{
  __shared__ double tile[32][33];
  const int         lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const int32_t     row0 = 32 * blockIdx.x, column0 = 32 * blockIdx.y;

  for (int j = warp; j < 32; j += 8) tile[j][lane] = row0 + lane < rows && column0 + j < n ? __ldcs(b + row0 + lane + (column0 + j) * ldb) : 0.0;
  __syncthreads();
  for (int r = warp; r < 32; r += 8) {
    if (row0 + r < rows && column0 + lane < width) copy[(int64_t)(row0 + r) * width + column0 + lane] = tile[lane][r];
  }
}

/*
  tc_row_copy_kernel - copy[row * width + j] = B^T[j + row * ldb] for j < n, 0 for n <= j < width

  Work:   an element per thread, 256 / width rows per thread block
  Lanes:  consecutive columns
  Arrays: b column-major [n, rows], leading dimension ldb; copy row-major [rows, width], width divides 256; all device
  Writes: every element of copy once
  Launch: 256 threads per block, no shared memory.  Needs: sm_60.  Source: a copy
*/
static __global__ void tc_row_copy_kernel(int32_t rows, int32_t n, const double *__restrict__ b, int64_t ldb, int32_t width, double *__restrict__ copy)
{
  const int32_t j = threadIdx.x % width, row = blockIdx.x * (blockDim.x / width) + threadIdx.x / width;

  if (row < rows) copy[(int64_t)row * width + j] = j < n ? __ldcs(b + j + row * ldb) : 0.0;
}

/* Into args.scratch, for kernels that take the transpose of B, too */
static inline tc_status tc_row_major(const char *name, int32_t rows, const tc_spmm_args *args, int32_t width, cudaStream_t stream)
{
  if (args->b_transposed) return tc_launch(name, tc_row_copy_kernel, ((int64_t)rows * width + 255) / 256, 256, stream, rows, args->n, args->b, args->ldb, width, args->scratch);
  return tc_launch_grid(name, tc_row_major_kernel, dim3((unsigned)((rows + 31) / 32), (unsigned)((width + 31) / 32)), 256, 0, stream, rows, args->n, args->b, args->ldb, width, args->scratch);
}
