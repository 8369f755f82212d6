#include "long_rows_spmm.cuh"
#include "row_major.cuh"

/*
  tc_spmm_csr_kernel - C = A B or C += A B straight from CSR: no conversion, any row lengths

  Work:   thread blocks are dealt out to segments of long rows first, then to heavy rows, then to all others. A group of `lanes` lanes owns a segment, a heavy row, or
          one row after the other of the block's rows; each lane owns 2 * vectors columns
  Lanes:  neighbours read 16 bytes each of the same row of B; entries of A are read by the whole group at once
  Arrays: the view; the rows of B; C column-major; partial row-major [num_segments, width], width = 2 * vectors * lanes
  Writes: C once for each row that is not long, but for heavy rows through shared memory, so that stores run along columns; partial for the others
  Launch: 64 to 256 threads per block, fewer where groups are small, since a block waits for its longest row; (rows of the block) x (width + 1) doubles of shared
          memory.  Needs: sm_60.  Source: the row-split kernel of the literature, e.g. Yang, Buluc and Owens, "Design Principles for Sparse Matrix Multiplication on the
          GPU", Euro-Par'18
*/
/* Row-major B, its copy in args.scratch or, where that is what the caller has, the block itself */
struct tc_csr_rows {
  const char *first; // aligned to 16 bytes, as is every row
  int32_t     stride; // bytes
};

template <int vectors, int lanes>
struct tc_csr_shape {
  static constexpr int width   = 2 * vectors * lanes;
  static constexpr int threads = lanes <= 8 ? 64 : 8 * lanes;
  static constexpr int groups  = threads / lanes;
  static constexpr int rows    = 32; // of a thread block
  static constexpr int ahead   = 4 / vectors; // entries whose rows of B are in flight together: registers, and so warps, are worth more than further ones (docs/performance.md)
};

/* Entries of A that are summed up together; none where a column is negative */
template <int ahead>
struct tc_csr_batch {
  int32_t col[ahead];
  double  val[ahead];

  __device__ __forceinline__ void load(const tc_csr_view &A, int32_t e, int32_t end)
  {
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const bool used = e + i < end;

      col[i] = used ? __ldg(A.col + e + i) : -1;
      val[i] = used ? __ldg(A.val + e + i) : 0.0;
    }
  }
};

/*
  The sums of entries begin .. end - 1 for the columns of this lane. The next batch of entries is loaded while the rows of B of the present one are on their way. Lanes
  beyond the last column of B read what the last lane with one reads, and so no more than that.
*/
template <int vectors, int lanes>
__device__ __forceinline__ void tc_csr_sum(const tc_csr_view &A, int32_t begin, int32_t end, const tc_csr_rows &B, int32_t n, int lane, double2 (&sum)[vectors])
{
  constexpr int       ahead = tc_csr_shape<vectors, lanes>::ahead;
  const char         *mine[vectors];
  tc_csr_batch<ahead> next;

#pragma unroll
  for (int v = 0; v < vectors; ++v) mine[v] = B.first + sizeof(double2) * min(lanes * v + lane, (n - 1) / 2);
  next.load(A, begin, end);
#pragma unroll 1
  for (int32_t e = begin; e < end; e += ahead) {
    const tc_csr_batch<ahead> now = next;
    double2                   row[ahead][vectors];

#pragma unroll
    for (int i = 0; i < ahead; ++i) {
#pragma unroll
      for (int v = 0; v < vectors; ++v) row[i][v] = now.col[i] >= 0 ? __ldg(reinterpret_cast<const double2 *>(mine[v] + (int64_t)now.col[i] * B.stride)) : make_double2(0.0, 0.0);
    }
    next.load(A, e + ahead, end);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
#pragma unroll
      for (int v = 0; v < vectors; ++v) {
        sum[v].x = fma(now.val[i], row[i][v].x, sum[v].x);
        sum[v].y = fma(now.val[i], row[i][v].y, sum[v].y);
      }
    }
  }
}

template <int vectors, int lanes>
static __global__ void __launch_bounds__(tc_csr_shape<vectors, lanes>::threads) tc_spmm_csr_kernel(const __grid_constant__ tc_csr_view A, const __grid_constant__ tc_spmm_args args, const __grid_constant__ tc_csr_rows B,
                                                                                                            double *partial, int32_t listed_blocks)
{
  using shape = tc_csr_shape<vectors, lanes>;
  extern __shared__ double tile[]; // [rows][width + 1]
  const int                group = threadIdx.x / lanes, lane = threadIdx.x % lanes;

  if (static_cast<int32_t>(blockIdx.x) < listed_blocks) {
    const int32_t s     = blockIdx.x * shape::groups + group;
    const bool    heavy = s >= A.num_segments;

    if (s >= A.num_segments + A.num_heavy) return;
    int32_t low = 0, high = heavy ? 0 : A.num_long - 1; // the long row of segment s: the last with long_first <= s

    while (low < high) {
      const int32_t middle = (low + high + 1) / 2;

      if (A.long_first[middle] <= s) low = middle;
      else high = middle - 1;
    }
    const int32_t row = heavy ? A.heavy_row[s - A.num_segments] : A.long_row[low], begin = A.row_ptr[row] + (heavy ? 0 : TC_SPMM_SEGMENT * (s - A.long_first[low]));
    double2       sum[vectors] = {};

    tc_csr_sum<vectors, lanes>(A, begin, min(begin + TC_SPMM_SEGMENT, A.row_ptr[row + 1]), B, args.n, lane, sum);
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const int32_t j  = 2 * (lanes * v + lane);
      double       *to = args.c + row + j * args.ldc;

      if (!heavy) *reinterpret_cast<double2 *>(partial + (int64_t)s * shape::width + j) = sum[v];
      if (heavy && j < args.n) tc_finish_element(sum[v].x, to, args.add);
      if (heavy && j + 1 < args.n) tc_finish_element(sum[v].y, to + args.ldc, args.add);
    }
    return;
  }
  const int32_t row0 = (blockIdx.x - listed_blocks) * shape::rows;

  for (int r = group; r < shape::rows && row0 + r < A.num_rows; r += shape::groups) {
    const int32_t begin = A.row_ptr[row0 + r], end = A.row_ptr[row0 + r + 1];
    double2       sum[vectors] = {};

    if (end - begin < A.heavy_from) tc_csr_sum<vectors, lanes>(A, begin, end, B, args.n, lane, sum);
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      double *to = tile + r * (shape::width + 1) + 2 * (lanes * v + lane);

      to[0] = sum[v].x;
      to[1] = sum[v].y;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < shape::rows * args.n; i += shape::threads) {
    const int r = i % shape::rows, j = i / shape::rows;

    if (row0 + r < A.num_rows && A.row_ptr[row0 + r + 1] - A.row_ptr[row0 + r] < A.heavy_from) tc_finish_element(tile[r * (shape::width + 1) + j], args.c + row0 + r + j * args.ldc, args.add);
  }
}

static int32_t tc_csr_width(int32_t n)
{
  return n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : 128;
}

extern "C" size_t tc_spmm_csr_scratch(const void *view, int32_t n)
{
  const tc_csr_view *A = static_cast<const tc_csr_view *>(view);

  return sizeof(double) * static_cast<size_t>(tc_csr_width(n)) * (static_cast<size_t>(A->num_cols) + A->num_segments);
}

/* Can the kernel read the transpose of B as it is? */
static bool tc_csr_in_place(const tc_spmm_args *args)
{
  return args->b_transposed && reinterpret_cast<uintptr_t>(args->b) % sizeof(double2) == 0 && args->ldb % 2 == 0 && args->ldb <= INT32_MAX / (int32_t)sizeof(double);
}

template <int vectors, int lanes>
static tc_status tc_spmm_csr(const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  using shape = tc_csr_shape<vectors, lanes>;
  constexpr int shared        = sizeof(double) * shape::rows * (shape::width + 1);
  double       *partial       = args->scratch + static_cast<size_t>(shape::width) * A->num_cols;
  const int32_t listed_blocks = (A->num_segments + A->num_heavy + shape::groups - 1) / shape::groups;
  const int64_t elements      = (int64_t)A->num_long * shape::width;
  tc_csr_rows   B             = {reinterpret_cast<const char *>(args->scratch), sizeof(double) * shape::width};

  if (tc_csr_in_place(args)) B = {reinterpret_cast<const char *>(args->b), static_cast<int32_t>(sizeof(double) * args->ldb)};
  else TC_CALL(tc_row_major("tc_spmm_csr_f64", A->num_cols, args, shape::width, stream));
  TC_CALL(tc_launch_grid("tc_spmm_csr_f64", tc_spmm_csr_kernel<vectors, lanes>, dim3((unsigned)(listed_blocks + (A->num_rows + shape::rows - 1) / shape::rows)), shape::threads, shared, stream, *A, *args, B, partial, listed_blocks));
  return tc_launch("tc_spmm_csr_f64", tc_add_segments_kernel, (elements + 127) / 128, 128, stream, A->num_long, A->long_row, A->long_first, 1, partial, shape::width, args->n, args->c, args->ldc, args->add != 0);
}

extern "C" tc_status tc_spmm_csr_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_csr_view *A = static_cast<const tc_csr_view *>(view);
  const cudaStream_t s = static_cast<cudaStream_t>(stream);

  switch (tc_csr_width(args->n)) {
  case 8: return tc_spmm_csr<1, 4>(A, args, s);
  case 16: return tc_spmm_csr<1, 8>(A, args, s);
  case 32: return tc_spmm_csr<1, 16>(A, args, s);
  case 64: return tc_spmm_csr<1, 32>(A, args, s);
  default: return tc_spmm_csr<2, 32>(A, args, s);
  }
}
