#include "build_bcsr.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cub/device/device_scan.cuh>
#include <cstring>

/* A build under way: the view as far as it is known, and memory of its own, which goes back at the end */
struct tc_bcsr_build {
  const tc_csr_local *A;
  tc_bcsr             T;
  cudaStream_t        stream;
  void               *memory;
  tc_bcsr_windows     W;
  tc_two             *tiles, *pieces; // [num_windows + 1], of a window and then of all before it
  char               *cub;
  size_t              cub_bytes;
};

static void tc_cut_build(tc_cutter &C, tc_bcsr_build &B)
{
  const int64_t nnz = B.A->nnz, windows = B.T.num_windows;

  C.cut(B.W.column, nnz);
  C.cut(B.W.rows, nnz);
  C.cut(B.W.first, nnz);
  C.cut(B.W.entry, nnz);
  C.cut(B.W.member, nnz);
  C.cut(B.W.size, nnz);
  C.cut(B.W.order, nnz);
  C.cut(B.W.is_dense, nnz);
  C.cut(B.W.num_columns, windows);
  C.cut(B.W.in_sparse, windows);
  C.cut(B.tiles, windows + 1);
  C.cut(B.pieces, windows + 1);
  C.cut(B.cub, (int64_t)B.cub_bytes);
}

static tc_status tc_make_room(tc_bcsr_build &B)
{
  tc_cutter counted = {}, real = {};

  TC_CALL(tc_cuda("tc_build_bcsr: size of scratch", cub::DeviceScan::ExclusiveScan(nullptr, B.cub_bytes, static_cast<tc_two *>(nullptr), tc_plus(), tc_two(), (int64_t)B.T.num_windows + 1, B.stream)));
  tc_cut_build(counted, B);
  TC_CALL(tc_memory_take(counted.bytes, &B.memory, B.stream));
  real.memory = static_cast<char *>(B.memory);
  tc_cut_build(real, B);
  return TC_OK;
}

/* Counts of windows become those of all windows before; *total is what all have. Waits for the device. */
static tc_status tc_add_up(tc_bcsr_build &B, tc_two *counts, tc_two *total)
{
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "tc_build_bcsr: scan: a fault was asked for");
  TC_CALL(tc_cuda("tc_build_bcsr: scan", cub::DeviceScan::ExclusiveScan(B.cub, B.cub_bytes, counts, tc_plus(), tc_two(), (int64_t)B.T.num_windows + 1, B.stream)));
  TC_CALL(tc_cuda("tc_build_bcsr: download", cudaMemcpyAsync(total, counts + B.T.num_windows, sizeof *total, cudaMemcpyDeviceToHost, B.stream)));
  return tc_cuda("tc_build_bcsr: download", cudaStreamSynchronize(B.stream));
}

static void tc_cut_view(tc_cutter &C, tc_bcsr &T)
{
  C.cut(T.val, TC_BCSR_SLOTS * T.num_tiles);
  C.cut(T.row_exponent, TC_BCSR_ROWS * (int64_t)T.num_windows);
  C.cut(T.map, TC_BCSR_SLOTS * T.num_tiles);
  C.cut(T.row_ptr, (int64_t)T.num_rows + 1);
  C.cut(T.piece, T.num_pieces);
  C.cut(T.split_window, T.num_split);
  C.cut(T.split_first, (int64_t)T.num_split + 1);
  C.cut(T.column, tc_bcsr_columns_at(T.num_tiles, T.num_sparse));
  C.cut(T.choice, TC_BCSR_WORDS * T.num_sparse);
}

static tc_status tc_build_view(tc_bcsr_build &B, void **slab)
{
  constexpr int       threads = tc_bcsr_build_threads;
  const tc_csr_local *A       = B.A;
  tc_bcsr            &T       = B.T;
  const int64_t       by_warp = ((int64_t)T.num_windows + tc_bcsr_build_warps) / tc_bcsr_build_warps, by_thread = ((int64_t)T.num_windows + threads) / threads;
  tc_cutter           counted = {}, real = {};
  tc_two              total;

  TC_CALL(tc_make_room(B));
  TC_CALL(tc_launch("tc_build_bcsr_windows", tc_build_bcsr_windows_kernel, by_warp, threads, B.stream, A->num_rows, T.num_windows, A->row_ptr, A->col, B.W, B.tiles));
  TC_CALL(tc_add_up(B, B.tiles, &total));
  TC_CHECK(total.first <= UINT32_MAX / 2, TC_ERR_LIMIT, "more than %u tiles, all that format bcsr names", UINT32_MAX / 2);
  T.num_tiles        = total.first;
  T.num_sparse       = total.second;
  const int32_t most = tc_bcsr_longest_piece(T.num_tiles);

  TC_CALL(tc_launch("tc_build_bcsr_count", tc_build_bcsr_count_kernel, by_thread, threads, B.stream, T.num_windows, most, B.tiles, B.pieces));
  TC_CALL(tc_add_up(B, B.pieces, &total));
  T.num_slots  = static_cast<int32_t>(total.first);
  T.num_split  = static_cast<int32_t>(total.second);
  T.num_pieces = T.num_slots + T.num_windows - T.num_split;
  tc_cut_view(counted, T);
  TC_CALL(tc_memory_alloc(counted.bytes, slab));
  real.memory = static_cast<char *>(*slab);
  tc_cut_view(real, T);
  TC_CALL(tc_cuda("tc_build_bcsr: copy of rows", cudaMemcpyAsync(T.row_ptr, A->row_ptr, ((size_t)A->num_rows + 1) * sizeof *T.row_ptr, cudaMemcpyDeviceToDevice, B.stream)));
  TC_CALL(tc_launch("tc_build_bcsr_pieces", tc_build_bcsr_pieces_kernel, by_thread, threads, B.stream, T, most, B.tiles, B.pieces));
  return tc_launch("tc_build_bcsr_tiles", tc_build_bcsr_tiles_kernel, by_warp, threads, B.stream, T, A->row_ptr, B.W, B.tiles);
}

extern "C" tc_status tc_build_bcsr(const tc_csr_local *A, void *view, void **slab, tc_stream stream)
{
  tc_bcsr_build B = {};

  *slab = nullptr;
  TC_CALL(tc_check_local(A, "bcsr", INT32_MAX - TC_BCSR_ROWS));
  TC_CHECK(A->precision == TC_PRECISION_BF16 || A->precision == TC_PRECISION_F16, TC_ERR_UNSUPPORTED, "format bcsr keeps values of 16 bits only");
  B.A      = A;
  B.stream = static_cast<cudaStream_t>(stream);
  B.T.num_rows     = A->num_rows;
  B.T.num_cols     = A->num_cols;
  B.T.num_nonzeros = A->nnz;
  B.T.precision    = A->precision;
  B.T.num_windows  = static_cast<int32_t>(((int64_t)A->num_rows + TC_BCSR_ROWS - 1) / TC_BCSR_ROWS);
  tc_status       status = tc_build_view(B, slab);
  const tc_status freed  = tc_memory_give(B.memory, B.stream);

  if (status == TC_OK) status = freed;
  if (status != TC_OK) {
    tc_memory_release(*slab);
    *slab = nullptr;
    memset(view, 0, sizeof B.T);
  } else memcpy(view, &B.T, sizeof B.T);
  return status;
}
