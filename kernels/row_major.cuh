/*
  A row-major copy of a block: what kernels read that want all columns of a row of B at once.
*/
#pragma once
#include "tc_device.cuh"
#include "tc_spmm.h"

/* The part of a block that a thread block turns: its rows are so many that each of 256 threads has 8 loads in flight, 4 of 4 columns */
template <int columns>
struct tc_row_major_tile {
  static constexpr int threads = 256, ahead = columns < 8 ? columns : 8;
  static constexpr int rows  = threads * ahead / columns;
  static constexpr int pitch = rows + (columns == 4 ? 4 : columns == 8 ? 2 : 1); // no bank conflicts when lanes read pairs of columns, but two lanes at a bank for 32 columns
};

/* The pairs of columns of a row one after the other */
struct tc_pairs_in_order {
  static __device__ __forceinline__ int place_of_pair(int32_t, int pair) { return pair; }
};

/*
  tc_row_major_kernel - copy[row * width + j] = B[row + j * ldb] for j < n, 0 for n <= j < width; the columns 2 p and 2 p + 1 of a row where order::place_of_pair(row, p) says, as
  if p was that

  Work:   a thread block per 2048 elements, 1024 of 4 columns, 8 to 256 rows and `columns` columns, those of the same columns one after the other
  Lanes:  consecutive rows when reading, consecutive pairs of columns when writing; shared memory turns the tile
  Arrays: b column-major [rows, n], leading dimension ldb, doubles or floats; copy row-major [rows, width], aligned to 16 bytes; all device
  Writes: every element of copy once
  Launch: 256 threads per block, 8 to 18 KB of shared memory.  Needs: sm_70.  Source: the transposition everybody writes
*/
template <int columns, class order, typename number>
static __global__ void __launch_bounds__(tc_row_major_tile<columns>::threads) tc_row_major_kernel(int32_t rows, int32_t n, const number *b, int64_t ldb, int32_t width, double *copy)
{
  using shape = tc_row_major_tile<columns>;
  constexpr int     pairs = columns / 2;
  __shared__ double tile[columns][shape::pitch];
  const int         r = threadIdx.x % shape::rows, j0 = threadIdx.x / shape::rows;
  const int32_t     tiles = (rows + shape::rows - 1) / shape::rows, row0 = shape::rows * (blockIdx.x % tiles), column0 = columns * (blockIdx.x / tiles);
  double            value[shape::ahead];

  tc_between_kernels(columns < 32); // the kernel behind a turn of 8 columns gains by it, tiles behind one of 32 and 128 lose 2 to 6% (measured on an H200)
#pragma unroll
  for (int i = 0; i < shape::ahead; ++i) {
    const int32_t j = column0 + j0 + shape::threads / shape::rows * i;

    value[i] = row0 + r < rows && j < n ? __ldcs(b + row0 + r + j * ldb) : 0.0;
  }
#pragma unroll
  for (int i = 0; i < shape::ahead; ++i) tile[j0 + shape::threads / shape::rows * i][r] = value[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < shape::ahead / 2; ++i) {
    const int     p = threadIdx.x + shape::threads * i, j = 2 * (p % pairs), to = p / pairs;
    const double2 pair = make_double2(tile[j][to], tile[j + 1][to]);

    if (row0 + to < rows) reinterpret_cast<double2 *>(copy)[((int64_t)(row0 + to) * width + column0) / 2 + order::place_of_pair(row0 + to, p % pairs)] = pair;
  }
}

/* `columns` divides width; no memory is read beyond row `rows` and column n of b */
template <int columns, class order, typename number>
static inline tc_status tc_turn_array(const char *name, int32_t rows, int32_t n, const number *b, int64_t ldb, int32_t width, double *copy, cudaStream_t stream)
{
  using shape = tc_row_major_tile<columns>;
  const int64_t blocks = (rows + (int64_t)shape::rows - 1) / shape::rows * (width / columns);

  return tc_launch_early(name, tc_row_major_kernel<columns, order, number>, blocks, shape::threads, 0, stream, rows, n, b, ldb, width, copy);
}

/* Into args.scratch; `columns` divides width; B in doubles or in floats */
template <int columns, class order>
static inline tc_status tc_turn_block(const char *name, int32_t rows, int32_t width, const tc_spmm_args *args, cudaStream_t stream)
{
  if (args->b_f32) return tc_turn_array<columns, order>(name, rows, args->n, tc_floats_of(args), args->ldb, width, args->scratch, stream);
  return tc_turn_array<columns, order>(name, rows, args->n, args->b, args->ldb, width, args->scratch, stream);
}

/*
  tc_row_copy_kernel - copy[row * width + j] = B^T[j + row * ldb] for j < n, 0 for n <= j < width, in the order of tc_row_major_kernel

  Work:   an element per thread, whole rows per thread block
  Lanes:  consecutive columns
  Arrays: b column-major [n, rows], leading dimension ldb, doubles or floats; copy row-major [rows, width], width at most 256; all device
  Writes: every element of copy once
  Launch: 256 threads per block, no shared memory.  Needs: sm_70.  Source: a copy
*/
template <class order, typename number>
static __global__ void tc_row_copy_kernel(int32_t rows, int32_t n, const number *b, int64_t ldb, int32_t width, double *copy)
{
  const int32_t at_once = blockDim.x / width, j = threadIdx.x % width, r = threadIdx.x / width, row = blockIdx.x * at_once + r;

  tc_between_kernels();
  if (r < at_once && row < rows) copy[(int64_t)row * width + 2 * order::place_of_pair(row, j / 2) + j % 2] = j < n ? __ldcs(b + j + row * ldb) : 0.0;
}

/* Into args.scratch, B^T in doubles or in floats */
template <class order>
static inline tc_status tc_copy_rows(const char *name, int32_t rows, int32_t width, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr int threads = 256;
  const int64_t blocks  = (rows + (int64_t)(threads / width) - 1) / (threads / width);

  if (args->b_f32) return tc_launch_early(name, tc_row_copy_kernel<order, float>, blocks, threads, 0, stream, rows, args->n, tc_floats_of(args), args->ldb, width, args->scratch);
  return tc_launch_early(name, tc_row_copy_kernel<order, double>, blocks, threads, 0, stream, rows, args->n, args->b, args->ldb, width, args->scratch);
}

/* Into args.scratch, for kernels that take the transpose of B, too; B in doubles or in floats */
template <int width>
static inline tc_status tc_row_major(const char *name, int32_t rows, const tc_spmm_args *args, cudaStream_t stream)
{
  if (args->b_transposed) return tc_copy_rows<tc_pairs_in_order>(name, rows, width, args, stream);
  return tc_turn_block<(width < 32 ? width : 32), tc_pairs_in_order>(name, rows, width, args, stream);
}
