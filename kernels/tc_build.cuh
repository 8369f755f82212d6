/*
  What converters share: what they check first, errors of the CUDA runtime, sums of scans, cutting an allocation into arrays, moving these.
*/
#pragma once
#include "tc_device.cuh"

/* `what` names the converter and what it did */
static inline tc_status tc_cuda(const char *what, cudaError_t error)
{
  if (error == cudaSuccess) return TC_OK;
  cudaGetLastError();
  return tc_fail(error == cudaErrorMemoryAllocation ? TC_ERR_MEMORY : TC_ERR_DEVICE, "%s: %s", what, cudaGetErrorString(error));
}

/* Is the pattern one that the packed formats can name, and that format can hold? */
static inline tc_status tc_check_local(const tc_csr_local *A, const char *format, int32_t most_rows)
{
  TC_CHECK(A->num_rows >= 0 && A->num_cols >= 0 && A->nnz >= 0, TC_ERR_ARG, "negative dimension: %d x %d, %lld nonzeros", A->num_rows, A->num_cols, (long long)A->nnz);
  TC_CHECK(A->num_rows <= most_rows, TC_ERR_LIMIT, "%d rows, format %s holds at most %d", A->num_rows, format, most_rows);
  TC_CHECK(A->nnz <= INT32_MAX, TC_ERR_LIMIT, "%lld nonzeros, the packed formats name at most %d", (long long)A->nnz, INT32_MAX);
  return TC_OK;
}

/*
  order = the numbers 0 ... num - 1 by ascending keys, 0 <= key < most, equal ones in natural order (transpose.cu). keys, order [num]; sorted, numbers [num] and the bytes at `cub` are scratch, which without `cub` are
  only counted. `name` is for errors
*/
tc_status tc_order_by_keys(const char *name, const int32_t *keys, int64_t num, int32_t most, int32_t *sorted, int32_t *numbers, int32_t *order, void *cub, size_t *bytes, cudaStream_t stream);

/* For scans */
struct tc_plus {
  template <typename T>
  __host__ __device__ T operator()(const T &a, const T &b) const
  {
    return a + b;
  }
};

/* Cuts an allocation into arrays at multiples of 256 bytes; while there is none it only adds up */
struct tc_cutter {
  char  *memory;
  size_t bytes;

  template <typename T>
  void cut(T *&array, int64_t count, size_t item_size = sizeof(T))
  {
    array = memory ? reinterpret_cast<T *>(memory + bytes) : nullptr;
    bytes += (count * item_size + 255) / 256 * 256;
  }
};

/* Arrays that stay what they are and go elsewhere, in units of 16 bytes: tc_cutter leaves room for the last of them at both ends */
template <int num_arrays>
struct tc_build_moves {
  const uint4 *from[num_arrays];
  uint4       *to[num_arrays];
  int64_t      units[num_arrays];
  int          num;

  template <typename T>
  void add(T *to_array, const T *from_array, int64_t count, size_t item_size = sizeof(T))
  {
    from[num]    = reinterpret_cast<const uint4 *>(from_array);
    to[num]      = reinterpret_cast<uint4 *>(to_array);
    units[num++] = (count * static_cast<int64_t>(item_size) + 15) / 16;
  }
};

/* By all threads of a grid, a line of thread blocks */
template <int num_arrays>
__device__ __forceinline__ void tc_move(const tc_build_moves<num_arrays> &moves)
{
  const int64_t begin = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x, step = gridDim.x * static_cast<int64_t>(blockDim.x);

  for (int a = 0; a < moves.num; ++a) {
    for (int64_t i = begin; i < moves.units[a]; i += step) moves.to[a][i] = moves.from[a][i];
  }
}
