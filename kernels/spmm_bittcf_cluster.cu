#include "bittcf.cuh"

/*
  tc_spmm_bittcf_cluster_kernel - C = A B or C += A B over the clusters of a tc_bittcf: the rows of B that the windows of a cluster share are brought into shared memory
  once, straight from column-major B, 8 * vectors * sets columns at a time. Structural zeros are multiplied, see tc_spmm_bittcf_kernel.

  Work:   a thread block per cluster and piece of B; neighbouring blocks share the cluster; a warp per window
  Lanes:  consecutive rows of a column of B when copying; then see tc_window_product
  Arrays: the view; B, C column-major; partial column-major; all device
  Writes: C once for each row that is not long, partial once for each segment
  Launch: 32 threads per window of a cluster, 256 at most; `capacity` doubles of shared memory.  Needs: sm_80, better sm_90.  Source: tc_bittcf.h; the condensed tiles of
          Zhao et al., "Acc-SpMM", PPoPP'25; staging as everybody does for dense products
*/
constexpr int tc_cluster_threads = 256;

/* Registers: a cluster of windows of four panels has four warps */
template <int panels>
constexpr int tc_cluster_block = panels == 4 ? tc_cluster_threads / 2 : tc_cluster_threads;
template <int panels>
constexpr int tc_cluster_blocks = panels == 4 ? 3 : 2;

/* From one column of B to the next in shared memory: four neighbouring rows of eight columns are in different banks */
__host__ __device__ static inline int32_t tc_cluster_pitch(int32_t columns)
{
  return (columns + 11) / 16 * 16 + 4;
}

/* B as the lanes of a fragment find it, by the names of rows in the cluster */
template <int vectors>
struct tc_staged_columns {
  static constexpr int step = 8, set_step = 8 * vectors; // columns from one element of a fragment, and from one set, to the next

  const double *staged; // of column g
  int32_t       pitch, first, g;

  __device__ __forceinline__ void fetch(tc_dense_fragment<vectors> &b, int32_t name, int set) const
  {
#pragma unroll
    for (int v = 0; v < vectors; ++v) b.x[v] = staged[8 * (vectors * set + v) * pitch + name];
  }
  __device__ __forceinline__ int32_t first_column() const { return first + g; }
};

/* The same where a cluster has too many rows for shared memory */
template <int vectors>
struct tc_gathered_columns {
  static constexpr int step = 8, set_step = 8 * vectors;

  const double  *b;
  int64_t        ldb;
  const int32_t *rows; // of B, by their names
  int32_t        n, first, g;

  __device__ __forceinline__ void fetch(tc_dense_fragment<vectors> &to, int32_t name, int set) const
  {
    const int32_t row = __ldg(rows + name);

#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const int32_t column = first_column() + set * set_step + v * step;

      to.x[v] = column < n ? __ldg(b + row + column * ldb) : 0.0;
    }
  }
  __device__ __forceinline__ int32_t first_column() const { return first + g; }
};

template <int panels, int sets, int vectors, typename Dense>
__device__ __forceinline__ void tc_multiply_cluster(const tc_bittcf &T, int32_t cluster, const Dense &dense, const tc_dense_output &out, int lane)
{
  const int32_t begin = cluster * T.cluster_windows, end = min(begin + T.cluster_windows, T.num_windows);

  for (int32_t w = begin + threadIdx.x / tc_warp_size; w < end; w += blockDim.x / tc_warp_size) {
    const tc_window        W = tc_load_window(T, w);
    tc_dense_sums<vectors> sums[panels][sets] = {};

    tc_window_product<panels, sets, vectors>(T, W, tc_cluster_columns{__ldg(T.local_first + w)}, dense, lane, sums);
    tc_put_window<panels, sets, vectors>(T, w, dense, out, lane, sums);
  }
}

/* 8 * vectors * sets columns of B from `first` on, through shared memory */
template <int panels, int sets, int vectors>
__device__ __forceinline__ void tc_stage_and_multiply(const tc_bittcf &T, int32_t cluster, const int32_t *rows, int32_t num, const double *b, int64_t ldb, int32_t first, double *staged, const tc_dense_output &out)
{
  const int     lane  = threadIdx.x % tc_warp_size, g = tc_mma_lane(lane).row;
  const int32_t pitch = tc_cluster_pitch(num);

  for (int32_t i = threadIdx.x; i < num; i += blockDim.x) {
    const double *from = b + __ldg(rows + i) + first * ldb;

#pragma unroll
    for (int c = 0; c < 8 * vectors * sets; ++c) {
      if (first + c < out.n) tc_copy_ahead(staged + c * pitch + i, from + c * ldb);
    }
  }
  tc_copies_done();
  __syncthreads();
  tc_multiply_cluster<panels, sets, vectors>(T, cluster, tc_staged_columns<vectors>{staged + g * pitch, pitch, first, g}, out, lane);
}

template <int panels, int sets, int vectors>
static __global__ void __launch_bounds__(tc_cluster_block<panels>, tc_cluster_blocks<panels>) tc_spmm_bittcf_cluster_kernel(const __grid_constant__ tc_bittcf T, const double *__restrict__ b, int64_t ldb, int32_t pieces, int32_t capacity, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ double tc_staged[];
  constexpr int  columns = 8 * vectors * sets;
  const int32_t  cluster = blockIdx.x / pieces, first = blockIdx.x % pieces * columns;
  const int32_t *rows    = T.cluster_col + T.cluster_first[cluster];
  const int32_t  num     = static_cast<int32_t>(T.cluster_first[cluster + 1] - T.cluster_first[cluster]);

  if ((sets == 1 || out.n - first > 8 * vectors) && columns * tc_cluster_pitch(num) <= capacity) {
    tc_stage_and_multiply<panels, sets, vectors>(T, cluster, rows, num, b, ldb, first, tc_staged, out);
    return;
  }
  for (int32_t part = first; part < first + columns && part < out.n; part += 8 * vectors) {
    if (8 * vectors * tc_cluster_pitch(num) <= capacity) tc_stage_and_multiply<panels, 1, vectors>(T, cluster, rows, num, b, ldb, part, tc_staged, out);
    else tc_multiply_cluster<panels, 1, vectors>(T, cluster, tc_gathered_columns<vectors>{b, ldb, rows, out.n, part, tc_mma_lane(threadIdx.x % tc_warp_size).row}, out, threadIdx.x % tc_warp_size);
    __syncthreads(); // before the next part is staged
  }
}

/* Doubles of shared memory with which two blocks run on an SM */
static tc_status tc_cluster_capacity(int32_t *capacity)
{
  int device, bytes;

  TC_CHECK(cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) == cudaSuccess, TC_ERR_DEVICE, "tc_spmm_bittcf_cluster_f64: the device does not say how much shared memory it has");
  *capacity = (bytes / 2 - 1024) / static_cast<int32_t>(sizeof(double));
  return TC_OK;
}

template <int panels, int sets, int vectors>
static tc_status tc_launch_clusters(const tc_bittcf *T, const tc_spmm_args *args, const tc_dense_output &out, cudaStream_t stream)
{
  constexpr int columns = 8 * vectors * sets;
  const int32_t pieces  = (args->n + columns - 1) / columns;
  const int64_t blocks  = (int64_t)T->num_clusters * pieces;
  int32_t       capacity = 0;

  TC_CHECK(blocks <= INT32_MAX, TC_ERR_LIMIT, "tc_spmm_bittcf_cluster_f64: %lld thread blocks, a grid holds %d", (long long)blocks, INT32_MAX);
  TC_CALL(tc_cluster_capacity(&capacity));
  if (columns * tc_cluster_pitch(T->widest_cluster) < capacity) capacity = columns * tc_cluster_pitch(T->widest_cluster);
  const int bytes = capacity * static_cast<int>(sizeof(double));

  TC_CHECK(cudaFuncSetAttribute(tc_spmm_bittcf_cluster_kernel<panels, sets, vectors>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess, (cudaGetLastError(), TC_ERR_DEVICE), "tc_spmm_bittcf_cluster_f64: no %d bytes of shared memory", bytes);
  return tc_launch_grid("tc_spmm_bittcf_cluster_f64", tc_spmm_bittcf_cluster_kernel<panels, sets, vectors>, dim3((unsigned)blocks), tc_cluster_block<panels>, bytes, stream, *T, args->b, args->ldb, pieces, capacity, out);
}

template <int panels>
static tc_status tc_launch_pieces(const tc_bittcf *T, const tc_spmm_args *args, const tc_dense_output &out, cudaStream_t stream)
{
  if (args->n <= 8) return tc_launch_clusters<panels, 1, 1>(T, args, out, stream);
  if (args->n <= 16) return tc_launch_clusters<panels, 1, 2>(T, args, out, stream);
  return tc_launch_clusters<panels, 2, 2>(T, args, out, stream);
}

extern "C" size_t tc_spmm_bittcf_cluster_scratch(const void *view, int32_t n)
{
  return sizeof(double) * static_cast<size_t>(tc_bittcf_num_slots(static_cast<const tc_bittcf *>(view))) * n;
}

extern "C" tc_status tc_spmm_bittcf_cluster_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_bittcf      *T   = static_cast<const tc_bittcf *>(view);
  const cudaStream_t    on  = static_cast<cudaStream_t>(stream);
  const tc_dense_output out = tc_output_of(T, args, args->scratch);

  TC_CHECK(T->num_clusters > 0 || T->num_windows == 0, TC_ERR_UNSUPPORTED, "tc_spmm_bittcf_cluster_f64: the rows of this matrix share too few columns for clusters");
  if (T->num_windows == 0) return TC_OK;
  switch (T->panels) {
  case 1: TC_CALL(tc_launch_pieces<1>(T, args, out, on)); break;
  case 2: TC_CALL(tc_launch_pieces<2>(T, args, out, on)); break;
  default: TC_CALL(tc_launch_pieces<4>(T, args, out, on));
  }
  return tc_add_long_rows("tc_spmm_bittcf_cluster_f64", T, out, on);
}
