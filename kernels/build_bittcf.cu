#include "build_bittcf.cuh"
#include "tc_backend.h"
#include "tc_memory.cuh"
#include "tc_narrow.h"
#include <cub/device/device_scan.cuh>
#include <algorithm>
#include <cstring>

/* A build under way. Memory of its own comes piece by piece, as sizes become known; all of it goes back at the end. */
struct tc_build {
  const tc_csr_local *A;
  tc_bittcf           T;
  cudaStream_t        stream;
  void               *memory[4];
  int                 num_memory;
  tc_build_news      *news; // on the device
  tc_build_answer    *answer;
  int32_t            *flag, *long_row, *long_segments, *long_first;
  uint16_t           *length;
  tc_window_size     *size;
  tc_list_size       *list_size;
  int32_t            *list;
  char               *cub;
  size_t              cub_bytes;
};

static_assert(sizeof(tc_build_answer) <= TC_SHARED_BYTES, "the host is told more than there is room for");

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

/* All but the first so many pieces of memory go back */
static tc_status tc_give_memory(tc_build &B, int kept)
{
  tc_status status = TC_OK;

  while (B.num_memory > kept) {
    const tc_status freed = tc_memory_give(B.memory[--B.num_memory], B.stream);

    if (status == TC_OK) status = freed;
  }
  return status;
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

/* On its way to the host, which has it after tc_wait() */
template <typename T>
static tc_status tc_tell(tc_build &B, T *part_of_answer, const T *from)
{
  return tc_cuda("tc_build_bittcf: download", cudaMemcpyAsync(part_of_answer, from, sizeof *from, cudaMemcpyDeviceToHost, B.stream));
}

static tc_status tc_wait(const tc_build &B)
{
  return tc_cuda("tc_build_bittcf: wait for the device", cudaStreamSynchronize(B.stream));
}

/* In which order rows meet, and how many are long. Errors: TC_ERR_UNSUPPORTED where columns do not ascend within a row */
static tc_status tc_choose_order(tc_build &B)
{
  enum { MOST_BLOCKS = 1024, ENTRIES = 16 }; // of a thread
  const tc_csr_local *A      = B.A;
  const int64_t       blocks = blocks_of(A->nnz, ENTRIES * tc_build_threads), all = blocks_of((int64_t)A->num_rows + 1, tc_build_threads);

  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) { C.cut(B.news, 1); }));
  TC_CALL(tc_cuda("tc_build_bittcf: zeroing", cudaMemsetAsync(B.news, 0, sizeof *B.news, B.stream)));
  TC_CALL(tc_launch("tc_build_bittcf_rows", tc_build_bittcf_rows_kernel, std::max(all, std::min(blocks, (int64_t)MOST_BLOCKS)), tc_build_threads, B.stream, A->num_rows, static_cast<int32_t>(A->nnz), A->row_ptr, A->col, A->row_order != nullptr, B.news));
  TC_CALL(tc_launch_grid("tc_build_bittcf_sample", tc_build_bittcf_sample_kernel, true, dim3((unsigned)blocks_of(TC_BITTCF_SAMPLE, tc_sample_warps), TC_BITTCF_MAX_ORDERS), tc_sample_threads, 0, B.stream, A->num_rows, A->row_ptr, A->col, A->row_order, B.news, B.answer));
  TC_CALL(tc_wait(B));
  TC_CHECK(B.answer->disorder == 0, TC_ERR_UNSUPPORTED, TC_BITTCF_DISORDER);
  tc_bittcf_set_order(&B.T, &B.answer->order, &B.answer->sample, A->row_order != nullptr);
  B.T.num_long    = B.answer->num_long;
  B.T.num_windows = B.T.num_row_windows;
  return TC_OK;
}

/* The windows of long rows: where those of each block begin, and how many there are */
static tc_status tc_place_long_rows(tc_build &B)
{
  const int64_t num = (int64_t)tc_bittcf_long_blocks(&B.T) + 1;

  TC_CALL(tc_launch("tc_build_bittcf_blocks", tc_build_bittcf_blocks_kernel, blocks_of(num, tc_build_threads), tc_build_threads, B.stream, B.T, B.long_first));
  TC_CALL(tc_scan(B, B.long_first, num, tc_plus()));
  TC_CALL(tc_tell(B, &B.answer->num_segments, &B.news->num_segments));
  TC_CALL(tc_tell(B, &B.answer->long_windows, B.long_first + num - 1));
  TC_CALL(tc_wait(B));
  B.T.num_segments = B.answer->num_segments;
  return TC_OK;
}

/* Long rows, if there are any: the list of them, and the windows that they add */
static tc_status tc_list_long_rows(tc_build &B)
{
  const tc_csr_local *A = B.A;

  B.T.long_windows = 1;
  if (B.T.num_long == 0) return TC_OK;
  TC_CALL(tc_scan_bytes<int32_t>(B, (int64_t)A->num_rows + 1, tc_plus()));
  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) {
    C.cut(B.flag, (int64_t)A->num_rows + 1);
    C.cut(B.long_row, B.T.num_long);
    C.cut(B.long_segments, B.T.num_long);
    C.cut(B.long_first, blocks_of(B.T.num_long, TC_BITTCF_ROWS) + 1); // or less
    C.cut(B.cub, (int64_t)B.cub_bytes);
  }));
  TC_CALL(tc_launch("tc_build_bittcf_flags", tc_build_bittcf_flags_kernel, blocks_of((int64_t)A->num_rows + 1, tc_build_threads), tc_build_threads, B.stream, A->num_rows, A->row_ptr, B.flag));
  TC_CALL(tc_scan(B, B.flag, (int64_t)A->num_rows + 1, tc_plus()));
  TC_CALL(tc_launch("tc_build_bittcf_long", tc_build_bittcf_long_kernel, blocks_of(A->num_rows, tc_build_threads), tc_build_threads, B.stream, A->num_rows, A->row_ptr, B.flag, B.long_row, B.long_segments, B.news));
  B.T.long_row      = B.long_row;
  B.T.long_segments = B.long_segments;
  B.T.long_windows  = TC_BITTCF_LONG_WINDOWS;
  TC_CALL(tc_place_long_rows(B));
  if (tc_bittcf_is_sparse(&B.T, B.answer->long_windows)) {
    B.T.long_windows = 1;
    TC_CALL(tc_place_long_rows(B));
  }
  tc_bittcf_add_windows(&B.T, B.answer->long_windows);
  return TC_OK;
}

static int32_t clusters_of(const tc_bittcf &T, int32_t windows)
{
  return (T.num_windows + windows - 1) / windows;
}

/* Packed rows, and windows but for where they begin */
static tc_status tc_measure_windows(tc_build &B)
{
  tc_bittcf      &T        = B.T;
  const int64_t   packed   = (int64_t)TC_BITTCF_ROWS * T.num_windows;
  const int32_t   clusters = clusters_of(T, TC_BITTCF_FEWEST_WINDOWS); // or less

  B.cub_bytes = 0;
  TC_CALL(tc_scan_bytes<tc_window_size>(B, (int64_t)T.num_windows + 1, tc_windows_together()));
  TC_CALL(tc_scan_bytes<tc_list_size>(B, (int64_t)clusters + 1, tc_lists_together()));
  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) {
    if (T.num_long == 0) C.cut(B.long_first, 1);
    C.cut(T.window, T.num_windows);
    C.cut(T.row_id, packed);
    C.cut(T.csr_first, packed);
    C.cut(B.length, packed);
    C.cut(B.size, (int64_t)T.num_windows + 1);
    C.cut(B.list_size, (int64_t)clusters + 1);
    C.cut(B.cub, (int64_t)B.cub_bytes);
  }));
  T.long_first = B.long_first;
  TC_CALL(tc_launch("tc_build_bittcf_measure", tc_build_bittcf_measure_kernel, blocks_of((int64_t)T.num_windows + 1, tc_window_warps), tc_window_threads, B.stream, T, B.A->row_ptr, B.A->col, B.A->row_order, B.length, B.size));
  TC_CALL(tc_scan(B, B.size, (int64_t)T.num_windows + 1, tc_windows_together()));
  TC_CALL(tc_tell(B, &B.answer->windows, B.size + T.num_windows));
  TC_CALL(tc_wait(B));
  TC_CHECK(B.answer->windows.units <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of tiles, format bittcf names at most %u", (long long)B.answer->windows.units, UINT32_MAX);
  T.widest_window = B.answer->windows.most_groups;
  T.num_groups    = B.answer->windows.groups;
  T.tile_units    = B.answer->windows.units;
  return TC_OK;
}

static tc_status tc_fill(tc_build &B)
{
  const tc_window_room room(B.answer->windows);

  return tc_launch_line("tc_build_bittcf_fill", tc_build_bittcf_fill_kernel, false, blocks_of(B.T.num_windows, tc_window_warps), tc_window_threads, tc_window_warps * room.bytes(), B.stream, B.T, room, B.length, B.A->col, B.size);
}

/* Do clusters pay? Their lists are merged from tiles, which are filled where they will not stay: how much memory the view takes is not known yet. */
static tc_status tc_try_clusters(tc_build &B)
{
  tc_bittcf    &T        = B.T;
  const int32_t clusters = clusters_of(T, T.cluster_windows);
  char         *tiles;

  TC_CALL(tc_take_memory(B, [&](tc_cutter &C) {
    C.cut(tiles, 16 * T.tile_units);
    C.cut(B.list, (int64_t)tc_bittcf_most_listed(&T) * clusters);
  }));
  T.tiles = tiles;
  TC_CALL(tc_fill(B));
  TC_CALL(tc_launch_line("tc_build_bittcf_clusters", tc_build_bittcf_clusters_kernel, false, (int64_t)clusters + 1, tc_build_threads, tc_build_warps * tc_bittcf_most_listed(&T) * static_cast<int>(sizeof *B.list), B.stream, T, B.list_size, B.list));
  TC_CALL(tc_scan(B, B.list_size, (int64_t)clusters + 1, tc_lists_together()));
  TC_CALL(tc_tell(B, &B.answer->lists, B.list_size + clusters));
  TC_CALL(tc_wait(B));
  if (!tc_bittcf_clusters_pay(&T, B.answer->lists.entries, B.answer->lists.most)) return TC_OK;
  T.num_clusters   = clusters;
  T.num_listed     = B.answer->lists.entries;
  T.num_places     = (int64_t)TC_BITTCF_BLOCK * B.answer->windows.place_blocks;
  T.widest_cluster = B.answer->lists.most;
  return TC_OK;
}

/* Packed rows, windows and clusters in the order that the view has */
static tc_status tc_pack_windows(tc_build &B, bool clusters)
{
  TC_CALL(tc_measure_windows(B));
  B.T.cluster_windows = tc_bittcf_windows_held(&B.T);
  return clusters && tc_bittcf_may_cluster(&B.T) ? tc_try_clusters(B) : TC_OK;
}

/* The same in natural order if its clusters are better, or bricks have none */
static tc_status tc_pack_in_best_order(tc_build &B)
{
  const tc_bittcf before = B.T;
  const int       kept   = B.num_memory;

  TC_CALL(tc_pack_windows(B, true));
  if (!tc_bittcf_tries_natural_order(&B.T)) return TC_OK;
  const int32_t clusters = B.T.num_clusters;
  const int64_t listed   = B.T.num_listed;

  TC_CALL(tc_give_memory(B, kept));
  B.T = before;
  tc_bittcf_set_natural_order(&B.T);
  TC_CALL(tc_pack_windows(B, true));
  if (tc_bittcf_stays_natural(&B.T, clusters, listed)) return TC_OK;
  TC_CALL(tc_give_memory(B, kept));
  B.T = before;
  return tc_pack_windows(B, clusters > 0);
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

/* Everything to its place in one allocation. Tiles that were not filled yet are filled there. */
static tc_status tc_settle(tc_build &B, void **slab)
{
  enum { MOST_BLOCKS = 2048, UNITS = 4 }; // of a thread
  const tc_bittcf &T = B.T, now = B.T;
  const int64_t    packed = (int64_t)TC_BITTCF_ROWS * T.num_windows;
  tc_cutter        counted = {}, real = {};
  tc_bittcf_moves  moves = {};

  tc_cut_view(counted, B.T);
  TC_CALL(tc_memory_take(counted.bytes, slab, B.stream));
  real.memory = static_cast<char *>(*slab);
  tc_cut_view(real, B.T);
  moves.add(T.window, now.window, T.num_windows);
  moves.add(T.row_id, now.row_id, packed);
  moves.add(T.csr_first, now.csr_first, packed);
  moves.add(T.long_row, now.long_row, T.num_long);
  moves.add(T.long_segments, now.long_segments, T.num_long);
  moves.add(T.long_first, now.long_first, (int64_t)tc_bittcf_long_blocks(&T) + 1);
  if (now.tiles != nullptr) moves.add(static_cast<char *>(T.tiles), static_cast<const char *>(now.tiles), 16 * T.tile_units);
  const int64_t blocks = blocks_of(packed + T.tile_units, UNITS * tc_build_threads) + 1;

  TC_CALL(tc_launch("tc_build_bittcf_move", tc_build_bittcf_move_kernel, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, tc_build_threads, B.stream, moves));
  if (now.tiles == nullptr) return tc_fill(B);
  return tc_launch("tc_build_bittcf_places", tc_build_bittcf_places_kernel, T.num_clusters, tc_build_threads, B.stream, T, B.size, B.list_size, B.list);
}

enum { MAX_ROWS = INT32_MAX - (1 << 24) }; // packed rows and thread blocks are counted in 32 bits

extern "C" tc_status tc_build_bittcf(const tc_csr_local *A, void *view, void **slab, tc_stream stream)
{
  tc_build  B = {};
  void     *answer;
  tc_status status;

  *slab = nullptr;
  TC_CALL(tc_check_local(A, "bittcf", MAX_ROWS));
  TC_CALL(tc_memory_share(&answer));
  B.A              = A;
  B.stream         = static_cast<cudaStream_t>(stream);
  B.answer         = static_cast<tc_build_answer *>(answer);
  B.T.num_rows     = A->num_rows;
  B.T.num_cols     = A->num_cols;
  B.T.num_nonzeros = A->nnz;
  B.T.precision    = A->precision;
  status           = tc_choose_order(B);
  if (status == TC_OK) status = tc_list_long_rows(B);
  if (status == TC_OK) status = tc_pack_in_best_order(B);
  if (status == TC_OK) status = tc_settle(B, slab);
  const tc_status freed = tc_give_memory(B, 0);
  if (status == TC_OK) status = freed;
  tc_memory_unshare(answer);
  if (status != TC_OK) {
    tc_memory_release(*slab);
    *slab = nullptr;
    memset(view, 0, sizeof B.T);
  } else memcpy(view, &B.T, sizeof B.T);
  return status;
}
