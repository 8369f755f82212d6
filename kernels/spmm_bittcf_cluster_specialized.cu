#include "bittcf_ring.cuh"

constexpr uint32_t tc_register_file = 65536;

/*
  What a block multiplies: every args.resident-th cluster from `begin` on, to `end`, and which columns. All blocks that run at the same time then have neighbouring clusters, whose rows of B the L2
  cache brings once; blocks that went on to the end of the matrix would drift apart, as some multiprocessors are faster. `divided`: the clusters that are left for less than half of the
  multiprocessors are multiplied by several blocks each, which take some of the columns.
*/
template <bool divided>
struct tc_turns {
  int32_t begin, end, column, columns;

  __device__ __forceinline__ tc_turns(const tc_bittcf &T, const tc_cluster_args &args, int32_t n) : column(0), columns(n)
  {
    const int32_t block = blockIdx.x;

    if (!divided || block < args.whole) {
      const int32_t wave = block / args.resident, size = args.resident * args.turns;

      begin = wave * size + block % args.resident;
      end   = min(divided ? args.divided : T.num_clusters, (wave + 1) * size);
    } else {
      const int32_t parts = (n - 1) / args.part + 1;

      begin   = args.divided + (block - args.whole) / parts;
      end     = begin + 1;
      column  = (block - args.whole) % parts * args.part;
      columns = min(args.part, n - column);
    }
  }
};

/* Elements from `begin` on, to `end`, into the L2 cache, by a warp */
template <typename Element>
__device__ __forceinline__ void tc_prefetch_elements(const Element *array, size_t begin, size_t end, int lane)
{
  constexpr size_t together = 16 / sizeof(Element);

  begin = begin / together * together;
  tc_prefetch_bytes(array + begin, static_cast<uint32_t>(sizeof(Element) * ((end + together - 1) / together * together - begin)), lane);
}

/* What the matrix has for a cluster into the L2 cache, where a refill may still change it: some arrays by each warp of producers, whole, as windows follow each other in them */
__device__ __forceinline__ void tc_prefetch_whole_cluster(const tc_bittcf &T, int32_t cluster, int thread)
{
  const int     lane  = thread % tc_warp_size;
  const int32_t first = cluster * T.cluster_windows, last = min(first + T.cluster_windows, T.num_windows);
  const bool    more  = last < T.num_windows; // is there a window behind it?

  switch (thread / tc_warp_size) {
  case 0:
    tc_prefetch_elements(static_cast<const double *>(T.val), __ldg(&T.window[first].val), more ? __ldg(&T.window[last].val) : static_cast<size_t>(T.num_nonzeros), lane);
    break;
  case 1:
    tc_prefetch_elements(static_cast<const uint4 *>(T.tiles), __ldg(&T.window[first].tiles), more ? __ldg(&T.window[last].tiles) : static_cast<size_t>(T.tile_units), lane);
    break;
  case 2:
    tc_prefetch_elements(T.place, TC_BITTCF_BLOCK * static_cast<size_t>(__ldg(T.place_first + first)), more ? TC_BITTCF_BLOCK * static_cast<size_t>(__ldg(T.place_first + last)) : static_cast<size_t>(T.num_places), lane);
    break;
  default:
    tc_prefetch_elements(T.cluster_list, __ldg(T.cluster_first + cluster), __ldg(T.cluster_first + cluster + 1), lane);
    tc_prefetch_elements(T.row_id, TC_BITTCF_ROWS * static_cast<size_t>(first), TC_BITTCF_ROWS * static_cast<size_t>(last), lane);
  }
}

/* The rows of B of the clusters of a block into the buffers, as these become empty; `thread` of tc_producers */
template <int meeting, bool aligned, bool divided>
__device__ __forceinline__ void tc_produce(const tc_bittcf &T, const tc_cluster_args &args, int32_t n, tc_ring ring, int thread)
{
  const tc_turns<divided> turns(T, args, n);

  ring.bottom += args.begin + 16 * thread;
  tc_prefetch_whole_cluster(T, turns.begin, thread); // whether or not a block before has brought it: with that condition ptxas has one register for all addresses of copies, and spills
#pragma unroll 1
  for (int32_t cluster = turns.begin; cluster < turns.end; cluster += args.resident) {
    const double             *b = args.b + turns.column * args.ldb;
    tc_pieces<tc_most_pieces> pieces;

    pieces.find(T, cluster, thread, tc_producers, aligned);
    pieces.between_kernels(); // for the first cluster
#pragma unroll 1
    for (int32_t left = turns.columns; left > 0; left -= tc_stage_columns, b += tc_stage_columns * args.ldb) {
      tc_named_wait(ring.empty(thread / tc_warp_size), meeting);
#pragma unroll
      for (int r = 0; r < tc_most_pieces; ++r) {
        if (pieces.row[r] >= 0) tc_stage_piece<aligned>(args, pieces.get(T, r), b + pieces.row[r], ring.buffer() + 16 * tc_producers * r, left);
      }
      tc_barrier_arrive_with_copies(ring.full());
      ring.leave();
      // consumers come to it two buffers later, or the next block here does; in one place, for the registers
      const bool last = left <= tc_stage_columns && cluster + args.resident >= turns.end, first = left == turns.columns && cluster != turns.begin;

      if (last ? cluster + args.resident < args.divided : first) tc_prefetch_whole_cluster(T, last ? cluster + args.resident : cluster, thread);
    }
  }
  ring.close<meeting>(thread / tc_warp_size);
}

/* The products with the warp's windows of the clusters of a block, out of the buffers as these become full. `listed` has room for the masks of a window. */
template <int meeting, int most, bool aligned, bool divided>
__device__ __forceinline__ void tc_consume(const tc_bittcf &T, const tc_cluster_args &args, const tc_dense_output &out, tc_ring ring, uint2 *listed, int lane)
{
  const int         own = tc_staged_column<2>(tc_mma_lane(lane).row);
  const tc_turns<divided> turns(T, args, out.n);
  tc_cluster_window now(T, turns.begin);

  ring.bottom += tc_staged_at(args, own);
  ring.open<meeting>();
#pragma unroll 1
  for (int32_t cluster = turns.begin; cluster < turns.end; cluster += args.resident) {
    const int2              rows       = now.w >= 0 ? tc_rows_of_sums(T, now.w, lane) : make_int2(TC_BITTCF_NO_ROW, TC_BITTCF_NO_ROW);
    const int32_t           num_groups = now.W.num_groups();
    tc_held_window<most, 2> tiles;
    tc_held_masks<most>     masks;

    masks.load(T, now.W, lane);
    if (num_groups > 0) tiles.load_places(T, now.W, now.place_first, lane);
    masks.count(now.W, lane);
    masks.put(listed, lane);
    __syncwarp();
    tc_between_kernels(); // for the first cluster
    if (num_groups > 0) tiles.load_values(T, num_groups, static_cast<uint32_t>(__cvta_generic_to_shared(listed)), lane);
    const tc_put_kind       kind = tc_put_kind_of<aligned>(out, rows, lane);
    const tc_cluster_window next(T, cluster + args.resident < turns.end ? cluster + args.resident : T.num_clusters); // not before the rows are there: ptxas would wait for both
    double                 *to = out.c + rows.x + (turns.column + own) * out.ldc;

#pragma unroll 1
    for (int32_t first = turns.column; first < turns.column + turns.columns; first += tc_stage_columns, to += tc_stage_columns * out.ldc) {
      tc_mma_tall_accumulator sums[1] = {};

      tc_barrier_wait(ring.full(), ring.turns);
      if (num_groups > 0) tiles.multiply(num_groups, ring.buffer(), args.pitch, sums[0]);
      ring.arrive<meeting>();
      ring.leave();
      tc_put_stage<aligned, 2>(rows, first, kind, to, out, sums);
    }
    now = next;
  }
}

/*
  tc_spmm_bittcf_cluster_specialized_kernel - the same as tc_spmm_bittcf_cluster_kernel, for clusters of 12 windows or larger ones, by warps of two kinds: four bring rows of B, the others
  multiply, and neither waits for more than a buffer. So warps that load their next tiles do not keep the tensor cores from those of another warp, nor copies from coming.

  Work:   a few clusters, see tc_turns; a warp per window, and four more
  Lanes:  a producer brings pairs of rows of B; lane 4 g + k of a consumer has columns c and c + 2 of B, c by tc_staged_column<2>(g), row k of a group, and element (k, g) of its tile
  Arrays: the view; B, C column-major; all device
  Writes: C once for each row
  Launch: 32 threads per window of a cluster and 128 more, a block per multiprocessor and turn; args.stages buffers of shared memory.  Needs: sm_80; on sm_90a, which all of sm_90 are,
          consumers have the registers of the producers, elsewhere spills.  Source: tc_spmm_bittcf_cluster_kernel; the warp specialization of dense products on sm_90
*/
template <int warps, int most, bool aligned, bool divided>
static __global__ void __launch_bounds__(warps *tc_warp_size + tc_producers, 1) tc_spmm_bittcf_cluster_specialized_kernel(const __grid_constant__ tc_bittcf T, const __grid_constant__ tc_cluster_args args, const __grid_constant__ tc_dense_output out)
{
  extern __shared__ __align__(128) double tc_staged[];
  __shared__ __align__(8) uint64_t     barriers[tc_most_stages];
  __shared__ __align__(16) uint2       listed[warps][tc_listed_groups<most>];
  constexpr int registers = tc_register_file / (warps * tc_warp_size + tc_producers) / 8 * 8; // of each thread when the block begins; ptxas takes all that the launch bounds allow
  constexpr int meeting = (warps + 1) * tc_warp_size; // consumers and a warp of producers
  constexpr int few = aligned ? 32 : 56, many = (registers * (warps + tc_producer_warps) - few * tc_producer_warps) / warps / 8 * 8;
  const int     lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size;
  const tc_ring ring = {static_cast<uint32_t>(__cvta_generic_to_shared(tc_staged)), args.size, static_cast<uint32_t>(__cvta_generic_to_shared(barriers)), static_cast<uint32_t>(args.stages)};

  static_assert(sizeof *barriers == tc_barrier_bytes, "one behind the other");
  if (threadIdx.x < args.stages) tc_barrier_begin(ring.barriers + tc_barrier_bytes * threadIdx.x, tc_producers);
  __syncthreads();
  if (warp < warps) {
    tc_take_registers<many>();
    tc_consume<meeting, most, aligned, divided>(T, args, out, ring, listed[warp], lane);
  } else {
    tc_give_registers<few>();
    tc_produce<meeting, aligned, divided>(T, args, out.n, ring, threadIdx.x - warps * tc_warp_size);
  }
}

template <int warps, int most, bool aligned>
static tc_status tc_launch_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  constexpr auto    whole = tc_spmm_bittcf_cluster_specialized_kernel<warps, most, aligned, false>, divided = tc_spmm_bittcf_cluster_specialized_kernel<warps, most, aligned, true>;
  tc_cluster_args   fitted = tc_cluster_args_of<2>(T, args);
  tc_cluster_launch launch;

  TC_CALL(tc_fit_clusters(name, 1, static_cast<int>(fitted.size), tc_ring_bytes + warps * tc_listed_bytes<most>, &launch));
  if (!aligned) launch.limit(2); // L1 is worth more than a third buffer to copies that divide sectors
  fitted.take(launch);

  const int32_t blocks  = fitted.share(T->num_clusters, T->num_cols, args->n);
  const bool    divides = fitted.divided < T->num_clusters;

  TC_CALL((divides ? tc_allow_shared<divided> : tc_allow_shared<whole>)(name));
  return tc_launch_line(name, divides ? divided : whole, true, blocks, warps * tc_warp_size + tc_producers, launch.bytes, stream, *T, fitted, tc_output_of(T, args, nullptr));
}

template <int warps, int most>
static tc_status tc_launch_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  return (tc_pairs_are_aligned(args) ? tc_launch_specialized<warps, most, true> : tc_launch_specialized<warps, most, false>)(name, T, args, stream);
}

tc_status tc_spmm_bittcf_cluster_specialized(const char *name, const tc_bittcf *T, const tc_spmm_args *args, cudaStream_t stream)
{
  if (T->cluster_windows == TC_BITTCF_FEWEST_WINDOWS) return tc_launch_specialized<TC_BITTCF_FEWEST_WINDOWS, TC_BITTCF_MORE_GROUPS>(name, T, args, stream);
  if (T->cluster_windows == 12) return tc_launch_specialized<12, TC_BITTCF_MOST_GROUPS>(name, T, args, stream);
  if (T->widest_window <= 24) return tc_launch_specialized<16, 24>(name, T, args, stream);
  return tc_launch_specialized<16, TC_BITTCF_FEWER_GROUPS>(name, T, args, stream);
}
