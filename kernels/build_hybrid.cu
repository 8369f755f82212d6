#include "build_hybrid.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cstring>

/* The arrays that are made before the sizes of the others are known */
static void tc_cut_head(tc_cutter &C, tc_hybrid &H)
{
  C.cut(H.slice, H.num_slices);
  C.cut(H.segment, H.num_segments);
  C.cut(H.long_first, (int64_t)H.num_long + 1);
  C.cut(H.row_id, H.num_rows);
  C.cut(H.csr_first, (int64_t)H.num_long + H.num_sliced);
  C.cut(H.length, H.num_sliced);
}

static void tc_cut_tail(tc_cutter &C, tc_hybrid &H)
{
  char *val = nullptr, *index = nullptr;

  C.cut(H.partial, H.num_segments);
  C.cut(H.arrived, H.num_long);
  C.cut(H.dictionary, TC_HYBRID_DICTIONARY);
  C.cut(H.dictionary_size, 1);
  C.cut(H.exponent, H.precision == TC_PRECISION_F16 ? (int64_t)H.num_segments + H.num_sliced : 0);
  C.cut(index, H.index_units, 16);
  C.cut(val, H.num_slots, sizeof(double));
  H.index = index;
  H.val   = val;
}

/* What a build needs for itself, large enough for any matrix with so many rows and nonzeros */
struct tc_build_scratch {
  uint16_t      *order;
  tc_row_counts *rows;
  tc_piece_size *size;
  uint8_t       *tall_key, *sorted_key;
  int32_t       *tall_row;
  char          *head, *cub;
  int64_t        windows, head_bytes;
  size_t         cub_bytes;
};

static tc_status tc_cut_scratch(tc_cutter &C, const tc_csr_local *A, tc_build_scratch &S, cudaStream_t stream)
{
  tc_hybrid most  = {};
  tc_cutter head  = {};
  size_t    other = 0;

  S.windows         = ((int64_t)A->num_rows + TC_HYBRID_WINDOW - 1) / TC_HYBRID_WINDOW;
  most.num_rows     = A->num_rows;
  most.num_sliced   = A->num_rows;
  most.num_slices   = (A->num_rows + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
  most.num_long     = (int32_t)(A->nnz / TC_HYBRID_LONG_ROW);
  most.num_segments = most.num_long; // a long row has at least as many times TC_HYBRID_LONG_ROW entries as it has segments
  tc_cut_head(head, most);
  const int64_t pieces = (int64_t)most.num_segments + most.num_slices, least_tall = tc_hybrid_tall(A->num_rows, A->nnz) + 1;
  const int32_t tall   = (int32_t)(A->nnz / least_tall < A->num_rows ? A->nnz / least_tall : A->num_rows);

  C.cut(S.order, S.windows * TC_HYBRID_WINDOW);
  C.cut(S.rows, S.windows + 1);
  C.cut(S.size, pieces + 1);
  C.cut(S.tall_key, tall);
  C.cut(S.sorted_key, tall);
  C.cut(S.tall_row, tall);
  C.cut(S.head, (int64_t)head.bytes);
  TC_CALL(tc_cuda("tc_build_hybrid: size of scratch", cub::DeviceScan::ExclusiveScan(nullptr, S.cub_bytes, S.rows, tc_together(), tc_row_counts(), S.windows + 1, stream)));
  TC_CALL(tc_cuda("tc_build_hybrid: size of scratch", cub::DeviceScan::ExclusiveScan(nullptr, other, S.size, tc_together(), tc_piece_size(), pieces + 1, stream)));
  if (other > S.cub_bytes) S.cub_bytes = other;
  TC_CALL(tc_cuda("tc_build_hybrid: size of scratch", cub::DeviceRadixSort::SortPairs(nullptr, other, S.tall_key, S.sorted_key, S.tall_row, S.tall_row, tall, 0, 8, stream)));
  if (other > S.cub_bytes) S.cub_bytes = other;
  C.cut(S.cub, (int64_t)S.cub_bytes);
  return TC_OK;
}

/* The sums before each of data [num + 1] in its place, and the last, which is that of all, on the host */
template <typename T>
static tc_status tc_scan(const char *what, T *data, int64_t num, const tc_build_scratch &S, T *sum, cudaStream_t stream)
{
  size_t bytes = S.cub_bytes;

  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "%s: a fault was asked for", what);
  TC_CALL(tc_cuda(what, cub::DeviceScan::ExclusiveScan(S.cub, bytes, data, tc_together(), T(), num + 1, stream)));
  TC_CALL(tc_cuda(what, cudaMemcpyAsync(sum, data + num, sizeof *sum, cudaMemcpyDeviceToHost, stream)));
  return tc_cuda(what, cudaStreamSynchronize(stream));
}

/* Tall rows: row_id by length over the whole matrix, stable since they come window by window and each window's in order */
static tc_status tc_order_tall(const tc_csr_local *A, const tc_build_scratch &S, tc_hybrid &H, cudaStream_t stream)
{
  size_t bytes = S.cub_bytes;

  if (H.num_tall == 0) return TC_OK;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "tc_build_hybrid: sort of the tall rows: a fault was asked for");
  TC_CALL(tc_cuda("tc_build_hybrid: sort of the tall rows", cub::DeviceRadixSort::SortPairs(S.cub, bytes, S.tall_key, S.sorted_key, S.tall_row, H.row_id + H.num_long, H.num_tall, 0, 8, stream)));
  return tc_launch("tc_build_hybrid_tall", tc_build_hybrid_tall_kernel, (H.num_tall + tc_order_threads - 1) / tc_order_threads, tc_order_threads, stream, H, A->row_ptr);
}

/* Both waits for the device are in tc_scan() */
static tc_status tc_build(const tc_csr_local *A, const tc_build_scratch &S, tc_hybrid &H, void **slab, cudaStream_t stream)
{
  constexpr int warps = tc_piece_threads / tc_warp_size;
  tc_cutter     head = {S.head, 0}, counted = {}, whole = {};
  tc_row_counts rows;
  tc_piece_size sizes;

  TC_CALL(tc_launch("tc_build_hybrid_order", tc_build_hybrid_order_kernel, S.windows + 1, tc_order_threads, stream, A->num_rows, tc_hybrid_tall(A->num_rows, A->nnz), A->row_ptr, S.order, S.rows));
  TC_CALL(tc_scan("tc_build_hybrid: scan of the rows", S.rows, S.windows, S, &rows, stream));
  H.num_long           = rows.longs;
  H.num_segments       = rows.segments;
  H.num_sliced         = rows.sliced;
  H.num_slices         = (rows.sliced + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
  H.num_empty          = A->num_rows - rows.longs - rows.sliced;
  H.num_tall           = rows.tall;
  H.longest_sliced     = rows.longest;
  const int64_t pieces = (int64_t)H.num_segments + H.num_slices;

  tc_cut_head(head, H);
  TC_CALL(tc_launch("tc_build_hybrid_place", tc_build_hybrid_place_kernel, S.windows + 1, tc_order_threads, stream, H, A->row_ptr, S.order, S.rows, S.tall_key, S.tall_row));
  TC_CALL(tc_order_tall(A, S, H, stream));
  TC_CALL(tc_launch("tc_build_hybrid_measure", tc_build_hybrid_measure_kernel, pieces / warps + 1, tc_piece_threads, stream, H, A->row_ptr, A->col, S.size));
  TC_CALL(tc_scan("tc_build_hybrid: scan of the pieces", S.size, pieces, S, &sizes, stream));
  TC_CHECK(sizes.index <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of columns, format hybrid names at most %u", (long long)sizes.index, UINT32_MAX);
  H.num_slots   = TC_HYBRID_SLICE_ROWS * sizes.val;
  H.index_units = sizes.index;
  tc_cut_head(counted, H);
  tc_cut_tail(counted, H);
  TC_CALL(tc_memory_alloc(counted.bytes, slab));
  whole.memory = static_cast<char *>(*slab);
  tc_cut_head(whole, H);
  TC_CALL(tc_cuda("tc_build_hybrid: copy of the first arrays", cudaMemcpyAsync(*slab, S.head, whole.bytes, cudaMemcpyDeviceToDevice, stream)));
  tc_cut_tail(whole, H);
  TC_CALL(tc_cuda("tc_build_hybrid: zeroing", cudaMemsetAsync(H.partial, 0, static_cast<char *>(H.index) - reinterpret_cast<char *>(H.partial), stream)));
  return tc_launch("tc_build_hybrid_fill", tc_build_hybrid_fill_kernel, (pieces + warps - 1) / warps, tc_piece_threads, stream, H, A->col, S.size);
}

enum { MAX_OVERHANG = 1 << 24 }; // kernels count rows in 32 bits, rounded up to whole launches

extern "C" tc_status tc_build_hybrid(const tc_csr_local *A, void *view, void **slab, tc_stream stream)
{
  const cudaStream_t on      = static_cast<cudaStream_t>(stream);
  tc_hybrid         &H       = *static_cast<tc_hybrid *>(view);
  tc_build_scratch   S       = {};
  tc_cutter          counted = {}, scratch = {};
  void              *memory;
  tc_status          status;

  *slab = nullptr;
  TC_CHECK(A->num_rows >= 0 && A->num_cols >= 0 && A->nnz >= 0, TC_ERR_ARG, "negative dimension: %d x %d, %lld nonzeros", A->num_rows, A->num_cols, (long long)A->nnz);
  TC_CHECK(A->num_rows <= INT32_MAX - MAX_OVERHANG, TC_ERR_LIMIT, "%d rows, format hybrid holds at most %d", A->num_rows, INT32_MAX - MAX_OVERHANG);
  TC_CHECK(A->nnz <= INT32_MAX, TC_ERR_LIMIT, "%lld nonzeros, the packed formats name at most %d", (long long)A->nnz, INT32_MAX);
  TC_CALL(tc_cut_scratch(counted, A, S, on));
  TC_CALL(tc_memory_take(counted.bytes, &memory, on));
  scratch.memory = static_cast<char *>(memory);
  memset(view, 0, sizeof H);
  H.num_rows     = A->num_rows;
  H.num_cols     = A->num_cols;
  H.num_nonzeros = A->nnz;
  H.row_group    = A->row_group > 1 ? A->row_group : 1;
  H.precision    = A->precision;
  status         = tc_cut_scratch(scratch, A, S, on);
  if (status == TC_OK) status = tc_build(A, S, H, slab, on);
  const tc_status freed = tc_memory_give(memory, on);

  if (status == TC_OK) status = freed;
  if (status != TC_OK) {
    tc_memory_release(*slab);
    *slab = nullptr;
    memset(view, 0, sizeof H);
  }
  return status;
}
