#include "build_hybrid_pieces.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cstring>

constexpr int64_t tc_most_blocks = 2048;   // where the host does not know how many tiles there are, or blocks move arrays, too
constexpr int     tc_wide_row    = 24;     // entries of the mean row from which the warps of a block share a piece,
constexpr int32_t tc_few_rows    = 400000; // if there are no more rows: more pieces keep the device busy with a warp each

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
  C.cut(H.dictionary_size, 2);
  C.cut(H.large, tc_hybrid_large(&H));
  C.cut(H.large_size, 1);
  C.cut(H.exponent, H.precision == TC_PRECISION_F16 ? (int64_t)H.num_segments + H.num_sliced : 0);
  C.cut(index, H.index_units, 16);
  C.cut(val, H.num_slots, sizeof(double));
  H.index = index;
  H.val   = val;
}

static_assert(sizeof(tc_build_counts) <= TC_SHARED_BYTES, "the host is told more than there is room for");

/* What a build needs for itself, large enough for any matrix with so many rows and nonzeros; `head` are the arrays of tc_cut_head() */
struct tc_build_scratch {
  uint16_t      *order;
  tc_row_counts *rows;
  int32_t       *tall_rows;
  tc_tile_size  *tile;
  tc_hybrid      head;
  int64_t        windows;
  int32_t        tiles;
  int            team; // warps that share a piece
};

static void tc_cut_scratch(tc_cutter &C, const tc_csr_local *A, tc_build_scratch &S)
{
  S.head              = {};
  S.head.num_rows     = A->num_rows;
  S.head.num_sliced   = A->num_rows;
  S.head.num_slices   = (A->num_rows + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
  S.head.num_long     = (int32_t)(A->nnz / TC_HYBRID_LONG_ROW);
  S.head.num_segments = S.head.num_long; // a long row has at least as many times TC_HYBRID_LONG_ROW entries as it has segments
  S.head.num_cols     = A->num_cols;
  S.head.row_group    = A->row_group > 1 ? A->row_group : 1;
  S.team              = A->num_rows < tc_few_rows && A->nnz >= (int64_t)tc_wide_row * A->num_rows ? tc_piece_warps : 1;
  S.windows           = ((int64_t)A->num_rows + TC_HYBRID_WINDOW - 1) / TC_HYBRID_WINDOW;
  S.tiles             = tc_num_tiles(tc_num_pieces(S.head), S.team);
  C.cut(S.order, S.windows * TC_HYBRID_WINDOW);
  C.cut(S.rows, S.windows + 1);
  C.cut(S.tall_rows, (S.windows + 1) * tc_tall_keys);
  C.cut(S.tile, S.tiles);
  tc_cut_head(C, S.head);
}

/* Rows and pieces up to the sizes of all arrays, without the host, which waits for these */
static tc_status tc_measure(const tc_csr_local *A, const tc_build_scratch &S, tc_build_counts *answer, cudaStream_t stream)
{
  const int32_t        tall    = tc_hybrid_tall(A->num_rows, A->nnz), windows = (int32_t)S.windows;
  const tc_row_counts *all     = S.rows + S.windows;
  const auto           measure = S.team == 1 ? tc_build_hybrid_measure_kernel<1> : tc_build_hybrid_measure_kernel<tc_piece_warps>;

  TC_CALL(tc_launch("tc_build_hybrid_order", tc_build_hybrid_order_kernel, windows + 1, tc_order_threads, stream, A->num_rows, tall, A->row_ptr, S.order, S.rows, S.tall_rows));
  TC_CALL(tc_launch_early("tc_build_hybrid_scan", tc_build_hybrid_scan_kernel, 1 + (TC_KEY_LONG - tall + tc_scan_keys - 1) / tc_scan_keys, tc_scan_threads, 0, stream, windows + 1, S.rows, S.tall_rows));
  TC_CALL(tc_launch_early("tc_build_hybrid_place", tc_build_hybrid_place_kernel, windows + 1, tc_order_threads, 0, stream, S.head, A->row_ptr, S.order, S.rows, S.tall_rows));
  TC_CALL(tc_launch_early("tc_build_hybrid_measure", measure, S.tiles < tc_most_blocks ? S.tiles : tc_most_blocks, tc_piece_threads, 0, stream, S.head, A->row_ptr, A->col, all, S.tile));
  TC_CALL(tc_launch_early("tc_build_hybrid_tiles", tc_build_hybrid_tiles_kernel, 1, tc_scan_threads, 0, stream, S.head, S.team, all, S.tile, answer));
  return tc_cuda("tc_build_hybrid: wait for the sizes", cudaStreamSynchronize(stream));
}

/* Arrays that stay what they are, and those that begin as zeros, from `partial` up to the columns */
static tc_hybrid_moves tc_moves_of(const tc_hybrid &H, const tc_hybrid &head)
{
  tc_hybrid_moves M = {{}, (uint4 *)H.partial, ((char *)H.index - (char *)H.partial + 15) / 16};

  M.arrays.add(H.long_first, head.long_first, (int64_t)H.num_long + 1);
  M.arrays.add(H.row_id, head.row_id, H.num_rows);
  M.arrays.add(H.csr_first, head.csr_first, (int64_t)H.num_long + H.num_sliced);
  M.arrays.add(H.length, head.length, H.num_sliced);
  return M;
}

static tc_status tc_build(const tc_csr_local *A, tc_build_scratch &S, tc_build_counts *answer, tc_hybrid &H, void **slab, cudaStream_t stream)
{
  tc_cutter counted = {}, whole = {};

  TC_CALL(tc_measure(A, S, answer, stream));
  H             = tc_counted(H, answer->rows);
  S.head        = tc_counted(S.head, answer->rows);
  H.num_slots   = TC_HYBRID_SLICE_ROWS * answer->size.val;
  H.index_units = answer->size.index;
  TC_CHECK(H.index_units <= UINT32_MAX, TC_ERR_LIMIT, "%lld units of columns, format hybrid names at most %u", (long long)H.index_units, UINT32_MAX);
  tc_cut_head(counted, H);
  tc_cut_tail(counted, H);
  TC_CALL(tc_memory_take(counted.bytes, slab, stream));
  whole.memory = static_cast<char *>(*slab);
  tc_cut_head(whole, H);
  tc_cut_tail(whole, H);
  const auto    fill  = S.team == 1 ? tc_build_hybrid_fill_kernel<1> : tc_build_hybrid_fill_kernel<tc_piece_warps>;
  const int64_t tiles = tc_num_tiles(tc_num_pieces(H), S.team), moving = H.num_rows / (4 * tc_piece_threads) + 1, blocks = tiles > moving ? tiles : moving;

  return tc_launch("tc_build_hybrid_fill", fill, blocks < 4 * tc_most_blocks ? blocks : 4 * tc_most_blocks, tc_piece_threads, stream, H, S.head, tc_moves_of(H, S.head), A->col, S.tile);
}

extern "C" tc_status tc_load_build_hybrid(tc_scalar)
{
  return tc_load("tc_build_hybrid", tc_build_hybrid_order_kernel, tc_build_hybrid_scan_kernel, tc_build_hybrid_place_kernel, tc_build_hybrid_measure_kernel<1>, tc_build_hybrid_measure_kernel<tc_piece_warps>, tc_build_hybrid_tiles_kernel,
                 tc_build_hybrid_fill_kernel<1>, tc_build_hybrid_fill_kernel<tc_piece_warps>);
}

enum { MAX_OVERHANG = 1 << 24 }; // kernels count rows in 32 bits, rounded up to whole launches

extern "C" tc_status tc_build_hybrid(const tc_csr_local *A, void *view, void **slab, tc_stream stream)
{
  const cudaStream_t on      = static_cast<cudaStream_t>(stream);
  tc_hybrid         &H       = *static_cast<tc_hybrid *>(view);
  tc_build_scratch   S       = {};
  tc_cutter          counted = {}, scratch = {};
  void              *memory, *answer;
  tc_status          status;

  *slab = nullptr;
  TC_CALL(tc_check_local(A, "hybrid", INT32_MAX - MAX_OVERHANG));
  tc_cut_scratch(counted, A, S);
  TC_CALL(tc_memory_share(&answer));
  status = tc_memory_take(counted.bytes, &memory, on);
  memset(view, 0, sizeof H);
  H.num_rows     = A->num_rows;
  H.num_cols     = A->num_cols;
  H.num_nonzeros = A->nnz;
  H.row_group    = A->row_group > 1 ? A->row_group : 1;
  H.precision    = A->precision;
  scratch.memory = static_cast<char *>(memory);
  tc_cut_scratch(scratch, A, S);
  if (status == TC_OK) status = tc_build(A, S, static_cast<tc_build_counts *>(answer), H, slab, on);
  const tc_status freed = tc_memory_give(memory, on);

  tc_memory_unshare(answer);
  if (status == TC_OK) status = freed;
  if (status != TC_OK) {
    tc_memory_release(*slab);
    *slab = nullptr;
    memset(view, 0, sizeof H);
  }
  return status;
}
