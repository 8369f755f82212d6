#include "build_bittcf.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include "tc_narrow.h"
#include <cub/device/device_scan.cuh>
#include <cstring>

/* A build under way. Memory of its own comes piece by piece, as sizes become known; all of it goes back at the end. */
struct tc_build {
  const tc_csr_local *A;
  tc_bittcf           T;
  cudaStream_t        stream;
  void               *memory[3];
  int                 num_memory;
  tc_build_news      *news; // on the device
  tc_build_news       host_news;
  int32_t            *flag, *long_row, *long_segments, *long_first;
  uint16_t           *length;
  tc_window_size     *size;
  uint32_t           *num_listed;
  int32_t            *num_in_piece;
  char               *cub;
  size_t              cub_bytes;
};

static int64_t blocks_of(int64_t n, int64_t per_block)
{
  return (n + per_block - 1) / per_block;
}

template <typename Cut>
static tc_status tc_take_memory(tc_build &B, const Cut &cut)
{
  tc_cutter counted = {}, real = {};
  void     *memory;

  cut(counted);
  TC_CALL(tc_memory_take(counted.bytes, &memory, B.stream));
  B.memory[B.num_memory++] = memory;
  real.memory              = static_cast<char *>(memory);
  cut(real);
  return TC_OK;
}

/* data[i] becomes the sum of what was before it */
template <typename T, typename Op>
static tc_status tc_scan(tc_build &B, T *data, int64_t num, Op op)
{
  size_t bytes = B.cub_bytes;

  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "tc_build_bittcf: scan: a fault was asked for");
  return tc_cuda("tc_build_bittcf: scan", cub::DeviceScan::ExclusiveScan(B.cub, bytes, data, op, T(), num, B.stream));
}

template <typename T, typename Op>
static tc_status tc_scan_bytes(tc_build &B, int64_t num, Op op)
{
  size_t bytes = 0;

  TC_CALL(tc_cuda("tc_build_bittcf: size of scratch", cub::DeviceScan::ExclusiveScan(nullptr, bytes, static_cast<T *>(nullptr), op, T(), num, B.stream)));
  if (bytes > B.cub_bytes) B.cub_bytes = bytes;
  return TC_OK;
}

/* Waits for the device */
static tc_status tc_fetch(tc_build &B, void *to, const void *from, size_t bytes)
{
  TC_CALL(tc_cuda("tc_build_bittcf: download", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, B.stream)));
  return tc_cuda("tc_build_bittcf: download", cudaStreamSynchronize(B.stream));
}

/* Long rows are listed, rows probed */
static tc_status tc_look_at_rows(tc_build &B)
{
  const tc_csr_local *A         = B.A;
  const int64_t       most_long = A->nnz / TC_BITTCF_LONG_ROW;
  const int3          probed    = {tc_bittcf_probed_row(A->num_rows, 0), tc_bittcf_probed_row(A->num_rows, 1), tc_bittcf_probed_row(A->num_rows, 2)};

  TC_CALL(tc_scan_bytes<int32_t>(B, (int64_t)A->num_rows + 1, tc_plus()));
  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) {
    C.cut(B.news, 1);
    C.cut(B.flag, (int64_t)A->num_rows + 1);
    C.cut(B.long_row, most_long);
    C.cut(B.long_segments, most_long);
    C.cut(B.long_first, most_long + 2);
    C.cut(B.cub, (int64_t)B.cub_bytes);
  }));
  TC_CALL(tc_cuda("tc_build_bittcf: zeroing", cudaMemsetAsync(B.news, 0, sizeof *B.news, B.stream)));
  TC_CALL(tc_launch("tc_build_bittcf_rows", tc_build_bittcf_rows_kernel, blocks_of((int64_t)A->num_rows + 1, tc_build_threads), tc_build_threads, B.stream, A->num_rows, A->row_ptr, A->col, probed, B.flag, B.news));
  TC_CALL(tc_scan(B, B.flag, (int64_t)A->num_rows + 1, tc_plus()));
  TC_CALL(tc_cuda("tc_build_bittcf: copy of a count", cudaMemcpyAsync(&B.news->num_long, B.flag + A->num_rows, sizeof(int32_t), cudaMemcpyDeviceToDevice, B.stream)));
  TC_CALL(tc_fetch(B, &B.host_news, B.news, sizeof B.host_news));
  B.T.num_long = B.host_news.num_long;
  if (B.T.num_long == 0) return TC_OK;
  TC_CALL(tc_launch("tc_build_bittcf_long", tc_build_bittcf_long_kernel, blocks_of(A->num_rows, tc_build_threads), tc_build_threads, B.stream, A->num_rows, A->row_ptr, B.flag, B.long_row, B.long_segments, B.news));
  const int32_t blocks = tc_bittcf_long_blocks(&B.T);

  TC_CALL(tc_launch("tc_build_bittcf_blocks", tc_build_bittcf_blocks_kernel, blocks_of(blocks + 1, tc_build_threads), tc_build_threads, B.stream, B.T.num_long, B.long_segments, B.long_first));
  TC_CALL(tc_scan(B, B.long_first, blocks + 1, tc_plus()));
  return tc_cuda("tc_build_bittcf: copy of a count", cudaMemcpyAsync(&B.news->long_windows, B.long_first + blocks, sizeof(int32_t), cudaMemcpyDeviceToDevice, B.stream));
}

static tc_status tc_choose_order(tc_build &B)
{
  const int32_t   *col[TC_BITTCF_PROBES];
  int32_t          length[TC_BITTCF_PROBES];
  tc_build_orders  orders = {};
  tc_bittcf_sample sample[TC_BITTCF_MAX_ORDERS];

  for (int p = 0; p < TC_BITTCF_PROBES; ++p) {
    col[p]    = B.host_news.probe_col[p];
    length[p] = B.A->row_order == nullptr ? B.host_news.probe_length[p] : 0;
  }
  orders.num = tc_bittcf_orders(B.A->num_rows, col, length, orders.of);
  if (B.A->nnz > 0) TC_CALL(tc_launch_grid("tc_build_bittcf_sample", tc_build_bittcf_sample_kernel, false, dim3((unsigned)blocks_of(TC_BITTCF_SAMPLE, tc_build_warps), (unsigned)orders.num), tc_build_threads, 0, B.stream, B.A->num_rows, B.A->row_ptr, B.A->col, B.A->row_order, orders, B.news));
  TC_CALL(tc_fetch(B, &B.host_news, B.news, sizeof B.host_news));
  for (int i = 0; i < orders.num; ++i) sample[i] = {(int64_t)B.host_news.sample[i][0], (int64_t)B.host_news.sample[i][1], (int64_t)B.host_news.sample[i][2]};
  const int best = tc_bittcf_best_order(orders.num, sample);

  tc_bittcf_set_order(&B.T, &orders.of[best], &sample[best], B.A->row_order != nullptr);
  B.T.num_segments = B.host_news.num_segments;
  B.T.num_windows  = B.T.num_row_windows + B.host_news.long_windows;
  return TC_OK;
}

/* The arrays of packed rows and windows, and the tiles: the latter not yet where they will stay, since clusters are still to be counted */
static tc_status tc_make_windows(tc_build &B)
{
  tc_bittcf      &T       = B.T;
  const int64_t   packed  = (int64_t)TC_BITTCF_ROWS * T.num_windows;
  const int32_t   clusters = (T.num_windows + T.cluster_windows - 1) / T.cluster_windows;
  tc_window_size  all;
  char           *tiles;

  T.long_row      = B.long_row;
  T.long_segments = B.long_segments;
  T.long_first    = B.long_first;
  if (T.num_long == 0) TC_CALL(tc_cuda("tc_build_bittcf: zeroing", cudaMemsetAsync(T.long_first, 0, sizeof *T.long_first, B.stream)));
  B.cub_bytes = 0;
  TC_CALL(tc_scan_bytes<tc_window_size>(B, (int64_t)T.num_windows + 1, tc_sizes_together()));
  TC_CALL(tc_scan_bytes<uint32_t>(B, (int64_t)clusters + 1, tc_plus()));
  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) {
    C.cut(T.window, T.num_windows);
    C.cut(T.row_id, packed);
    C.cut(T.csr_first, packed);
    C.cut(B.length, packed);
    C.cut(B.size, (int64_t)T.num_windows + 1);
    C.cut(B.num_listed, (int64_t)clusters + 1);
    C.cut(B.num_in_piece, (int64_t)tc_build_warps * clusters);
    C.cut(B.cub, (int64_t)B.cub_bytes);
  }));
  TC_CALL(tc_launch("tc_build_bittcf_place", tc_build_bittcf_place_kernel, blocks_of(packed, tc_build_threads), tc_build_threads, B.stream, T, B.A->row_ptr, B.A->row_order, B.length));
  TC_CALL(tc_launch("tc_build_bittcf_measure", tc_build_bittcf_measure_kernel, blocks_of((int64_t)T.num_windows + 1, tc_build_warps), tc_build_threads, B.stream, T, B.length, B.A->col, B.size, B.news));
  TC_CALL(tc_scan(B, B.size, (int64_t)T.num_windows + 1, tc_sizes_together()));
  TC_CALL(tc_cuda("tc_build_bittcf: download", cudaMemcpyAsync(&all, B.size + T.num_windows, sizeof all, cudaMemcpyDeviceToHost, B.stream)));
  TC_CALL(tc_fetch(B, &B.host_news, B.news, sizeof B.host_news));
  T.widest_window = B.host_news.widest_window;
  TC_CHECK(all.units <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of tiles, format bittcf names at most %u", (long long)all.units, UINT32_MAX);
  T.num_groups = all.groups;
  T.tile_units = all.units;
  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) { C.cut(tiles, 16 * T.tile_units); }));
  T.tiles = tiles;
  TC_CALL(tc_launch("tc_build_bittcf_fill", tc_build_bittcf_fill_kernel, blocks_of(T.num_windows, tc_build_warps), tc_build_threads, B.stream, T, B.length, B.A->col, B.size));
  if (!tc_bittcf_may_cluster(&T)) return TC_OK;
  uint32_t listed;

  TC_CALL(tc_launch("tc_build_bittcf_clusters", tc_build_bittcf_clusters_kernel, (int64_t)clusters + 1, tc_build_threads, B.stream, T, clusters, B.num_listed, B.num_in_piece, B.news));
  TC_CALL(tc_scan(B, B.num_listed, (int64_t)clusters + 1, tc_plus()));
  TC_CALL(tc_cuda("tc_build_bittcf: download", cudaMemcpyAsync(&listed, B.num_listed + clusters, sizeof listed, cudaMemcpyDeviceToHost, B.stream)));
  TC_CALL(tc_fetch(B, &B.host_news, B.news, sizeof B.host_news));
  if (!tc_bittcf_clusters_pay(&T, listed, B.host_news.widest_cluster)) return TC_OK;
  T.num_clusters   = clusters;
  T.num_listed      = listed;
  T.num_places     = TC_BITTCF_BLOCK * all.place_blocks;
  T.widest_cluster = B.host_news.widest_cluster;
  return TC_OK;
}

static void tc_cut_view(tc_cutter &C, tc_bittcf &T)
{
  const int64_t packed = (int64_t)TC_BITTCF_ROWS * T.num_windows, clustered = T.num_clusters > 0;
  char         *tiles;

  C.cut(T.window, T.num_windows);
  C.cut(T.row_id, packed);
  C.cut(T.csr_first, packed);
  C.cut(T.long_row, T.num_long);
  C.cut(T.long_segments, T.num_long);
  C.cut(T.long_first, (int64_t)tc_bittcf_long_blocks(&T) + 1);
  C.cut(tiles, 16 * T.tile_units);
  C.cut(T.place_first, clustered * T.num_windows);
  C.cut(T.place, T.num_places);
  C.cut(T.cluster_first, clustered * ((int64_t)T.num_clusters + 1));
  C.cut(T.cluster_list, T.num_listed);
  C.cut(T.val, T.num_nonzeros + 1, tc_value_bytes(T.precision));
  C.cut(T.exponent, T.precision == TC_PRECISION_F64 ? 0 : packed);
  T.tiles = tiles;
}

/* Everything to its place in one allocation */
static tc_status tc_settle(tc_build &B, void **slab)
{
  tc_bittcf now     = B.T;
  tc_cutter counted = {}, real = {};

  tc_cut_view(counted, B.T);
  TC_CALL(tc_memory_alloc(counted.bytes, slab));
  real.memory = static_cast<char *>(*slab);
  tc_cut_view(real, B.T);

  auto move = [&](void *to, const void *from, size_t bytes) { return bytes > 0 ? tc_cuda("tc_build_bittcf: move", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, B.stream)) : TC_OK; };
  const tc_bittcf &T      = B.T;
  const size_t     packed = sizeof(int32_t) * TC_BITTCF_ROWS * (size_t)T.num_windows;

  TC_CALL(move(T.window, now.window, sizeof *T.window * (size_t)T.num_windows));
  TC_CALL(move(T.row_id, now.row_id, packed));
  TC_CALL(move(T.csr_first, now.csr_first, packed));
  TC_CALL(move(T.long_row, now.long_row, sizeof *T.long_row * (size_t)T.num_long));
  TC_CALL(move(T.long_segments, now.long_segments, sizeof *T.long_segments * (size_t)T.num_long));
  TC_CALL(move(T.long_first, now.long_first, sizeof *T.long_first * ((size_t)tc_bittcf_long_blocks(&T) + 1)));
  TC_CALL(move(T.tiles, now.tiles, 16 * (size_t)T.tile_units));
  if (T.num_clusters == 0) return TC_OK;
  TC_CALL(move(T.cluster_first, B.num_listed, sizeof *T.cluster_first * ((size_t)T.num_clusters + 1)));
  return tc_launch("tc_build_bittcf_places", tc_build_bittcf_places_kernel, T.num_clusters, tc_build_threads, B.stream, T, B.size, B.num_in_piece);
}

enum { MAX_ROWS = INT32_MAX - (1 << 24) }; // packed rows and thread blocks are counted in 32 bits

extern "C" tc_status tc_build_bittcf(const tc_csr_local *A, void *view, void **slab, tc_stream stream)
{
  tc_build  B = {};
  tc_status status;

  *slab = nullptr;
  TC_CALL(tc_check_local(A, "bittcf", MAX_ROWS));
  B.A              = A;
  B.stream         = static_cast<cudaStream_t>(stream);
  B.T.num_rows     = A->num_rows;
  B.T.num_cols     = A->num_cols;
  B.T.num_nonzeros = A->nnz;
  B.T.precision    = A->precision;
  status           = tc_look_at_rows(B);
  if (status == TC_OK) status = tc_choose_order(B);
  if (status == TC_OK) status = tc_make_windows(B);
  if (status == TC_OK) status = tc_settle(B, slab);
  for (int i = 0; i < B.num_memory; ++i) {
    const tc_status freed = tc_memory_give(B.memory[i], B.stream);

    if (status == TC_OK) status = freed;
  }
  if (status != TC_OK) {
    tc_memory_release(*slab);
    *slab = nullptr;
    memset(view, 0, sizeof B.T);
  } else memcpy(view, &B.T, sizeof B.T);
  return status;
}
