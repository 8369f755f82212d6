/*
  Codes of 16 bits for the slices of a tc_hybrid that a refill has left as F64: three launches, which cost a few products, so that only values that are multiplied with often
  enough get them.
*/
#include "hybrid.cuh"
#include "refill_hybrid_pieces.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_memory.cuh"
#include <cstddef>

constexpr int tc_collect_threads  = 512;
constexpr int tc_collect_warps    = tc_collect_threads / tc_warp_size;
constexpr int tc_collect_resident = 3; // blocks of a multiprocessor, by shared memory: there are not more of them than fit
constexpr int tc_collect_together = 8; // values of a lane under way together, whole blocks of places
constexpr int tc_collected_slots  = 2 * TC_HYBRID_LARGE;
constexpr int tc_order_threads    = 256, tc_order_warps = tc_order_threads / tc_warp_size;
static_assert(tc_collect_together % tc_most_places == 0, "whole blocks");

/* A hash table of all values but +0.0, whose bits mark what is free; zeros before. As soon as `num` is TC_HYBRID_LARGE they are too many, and the table need not be complete. */
struct tc_collected {
  tc_bits  bits[tc_collected_slots];
  int32_t  num;
  uint16_t code[tc_collected_slots];
};

constexpr int tc_collected_words = (offsetof(tc_collected, code) + sizeof(tc_bits) - 1) / sizeof(tc_bits); // that a block needs for its own

__device__ __forceinline__ void tc_collect(tc_collected *table, tc_bits bits)
{
  for (unsigned place = tc_slot_of(bits, tc_collected_slots);; place = (place + 1) % tc_collected_slots) {
    tc_bits found = *static_cast<const volatile tc_bits *>(&table->bits[place]);

    if (found == 0) found = atomicCAS(&table->bits[place], 0ull, bits);
    if (found == 0) atomicAdd(&table->num, 1);
    if (found == 0 || found == bits || *static_cast<const volatile int32_t *>(&table->num) >= TC_HYBRID_LARGE) return;
  }
}

/*
  tc_collect_hybrid_kernel - the distinct values of all slices of F64

  Work:   a warp per slice and round, in whatever order its values lie; padding is +0.0. A block has a table of its own, which is added to that of all when its slices are done
  Lanes:  each 32nd value of the slice
  Arrays: the view; table [1], zeros; all device
  Writes: the table, but for codes
  Launch: tc_collect_threads per block, 64 KiB of shared memory.  Needs: sm_80.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_collect_threads, tc_collect_resident) tc_collect_hybrid_kernel(const __grid_constant__ tc_hybrid H, tc_collected *table)
{
  extern __shared__ tc_bits shared[];
  tc_collected *const       own    = reinterpret_cast<tc_collected *>(shared); // without codes
  const int                 lane   = threadIdx.x % tc_warp_size;
  const volatile int32_t   &so_far = own->num;

  for (int i = threadIdx.x; i < tc_collected_words; i += tc_collect_threads) shared[i] = 0;
  __syncthreads();
  for (int32_t s = blockIdx.x * tc_collect_warps + threadIdx.x / tc_warp_size; s < H.num_slices && so_far < TC_HYBRID_LARGE; s += gridDim.x * tc_collect_warps) {
    const tc_hybrid_slice S   = tc_load_descriptor(H.slice + s);
    const tc_bits        *val = reinterpret_cast<const tc_bits *>(tc_value_base(H, S.val)) + lane;
    const int             end = S.value_kind == TC_HYBRID_F64 ? S.width : 0;

    for (int k = 0; k < end && so_far < TC_HYBRID_LARGE; k += tc_collect_together) {
      tc_bits bits[tc_collect_together];

#pragma unroll
      for (int p = 0; p < tc_collect_together; ++p) bits[p] = k + p < end ? __ldcs(val + TC_HYBRID_SLICE_ROWS * (k + p)) : 0;
#pragma unroll
      for (int p = 0; p < tc_collect_together; ++p) {
        if (bits[p] != 0) tc_collect(own, bits[p]);
      }
    }
  }
  __syncthreads();
  if (so_far >= TC_HYBRID_LARGE) {
    if (threadIdx.x == 0) atomicMax(&table->num, static_cast<int32_t>(TC_HYBRID_LARGE));
    return;
  }
  for (int i = threadIdx.x; i < tc_collected_slots; i += tc_collect_threads) {
    if (own->bits[i] != 0) tc_collect(table, own->bits[i]);
  }
}

/*
  tc_order_values_kernel - the large dictionary of what was collected, and the codes

  Work:   a warp per place of the table. A value's place in the dictionary is the number of smaller ones
  Lanes:  each 32nd place, to compare with
  Arrays: the view; table [1]; all device; repeats [1], of the host, or NULL
  Writes: large, large_size; the codes of the table; what refills know of collections
  Launch: tc_order_threads per block, no shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_order_threads) tc_order_values_kernel(const __grid_constant__ tc_hybrid H, tc_collected *table)
{
  const int     num  = table->num < TC_HYBRID_LARGE ? table->num : 0, size = num > 0 ? num + 1 : 0;
  const int     i    = blockIdx.x * tc_order_threads + threadIdx.x, place = i / tc_warp_size, lane = i % tc_warp_size;
  const tc_bits mine = num > 0 ? table->bits[place] : 0;

  if (i < TC_HYBRID_LARGE && (i == 0 || i >= size)) H.large[i] = 0.0;
  if (mine != 0) {
    int smaller = 0; // free places count, too

#pragma unroll 8
    for (int j = lane; j < tc_collected_slots; j += tc_warp_size) smaller += __ldg(&table->bits[j]) < mine;
    const int code = 1 + tc_warp_total(smaller) - (tc_collected_slots - num);

    if (lane == 0) {
      H.large[code]      = __longlong_as_double(mine);
      table->code[place] = static_cast<uint16_t>(code);
    }
  }
  if (i > 0) return;
  *H.large_size = size;
  if (!H.repeats) return;
  if (size > 0 && H.dictionary_size[1] == sizeof(double)) H.repeats->bytes = TC_HYBRID_CODE_BYTES;
  H.repeats->large = size;
}

/* The codes of values that were collected, or of +0.0, all looked for at the same time */
template <int num>
__device__ __forceinline__ void tc_codes_of(const tc_collected *table, const tc_bits (&bits)[num], uint32_t (&code)[num])
{
  unsigned at[num];
  bool     again;

#pragma unroll
  for (int p = 0; p < num; ++p) at[p] = tc_slot_of(bits[p], tc_collected_slots);
  do {
    tc_bits found[num];

    again = false;
#pragma unroll
    for (int p = 0; p < num; ++p) found[p] = __ldg(&table->bits[at[p]]);
#pragma unroll
    for (int p = 0; p < num; ++p) {
      const bool other = bits[p] != 0 && found[p] != bits[p];

      at[p] = (at[p] + other) % tc_collected_slots;
      again |= other;
    }
  } while (again);
#pragma unroll
  for (int p = 0; p < num; ++p) code[p] = bits[p] != 0 ? __ldg(&table->code[at[p]]) : 0;
}

/*
  tc_encode_slices_kernel - slices of F64 become D16 where they lie, if there is a large dictionary

  Work:   a warp per slice and round, some blocks of places at a time: their codes lie where values before them were, or their own, which all lanes have read by then
  Lanes:  a row each, as in products
  Arrays: the view; table [1]; all device
  Writes: val and value_kind of these slices
  Launch: tc_collect_threads per block, no shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_collect_threads, 2) tc_encode_slices_kernel(const __grid_constant__ tc_hybrid H, const tc_collected *table)
{
  const int lane = threadIdx.x % tc_warp_size;

  if (*H.large_size == 0) return;
  for (int32_t s = blockIdx.x * tc_collect_warps + threadIdx.x / tc_warp_size; s < H.num_slices; s += gridDim.x * tc_collect_warps) {
    const tc_hybrid_slice S       = tc_load_descriptor(H.slice + s);
    const tc_bits        *val     = static_cast<const tc_bits *>(H.val) + TC_HYBRID_SLICE_ROWS * (size_t)S.val;
    uint16_t             *to      = reinterpret_cast<uint16_t *>(static_cast<tc_bits *>(H.val) + TC_HYBRID_SLICE_ROWS * (size_t)S.val);
    const int             places  = tc_hybrid_places(S.width);
    const bool            by_rows = tc_hybrid_by_rows(&H, s, S.width);

    if (S.value_kind != TC_HYBRID_F64) continue;
    for (int k = 0; k < S.width; k += tc_collect_together) {
      tc_bits  bits[tc_collect_together];
      uint32_t code[tc_collect_together];

#pragma unroll
      for (int p = 0; p < tc_collect_together; ++p) {
        const int block = k + p / tc_most_places * tc_most_places, left = min(S.width - block, tc_most_places), in_block = p % tc_most_places;

        bits[p] = k + p < S.width ? val[TC_HYBRID_SLICE_ROWS * (by_rows ? block : k + p) + (by_rows ? left * lane + in_block : lane)] : 0;
      }
      tc_codes_of(table, bits, code);
      __syncwarp();
      if (places == tc_most_places) {
#pragma unroll
        for (int p = 0; p < tc_collect_together; p += tc_most_places) {
          if (k + p < S.width) reinterpret_cast<uint2 *>(to + TC_HYBRID_SLICE_ROWS * (k + p))[lane] = {code[p] | code[p + 1] << 16, code[p + 2] | code[p + 3] << 16};
        }
      } else {
        to[places * lane] = static_cast<uint16_t>(code[0]);
        if (places == 2) to[places * lane + 1] = static_cast<uint16_t>(code[1]);
      }
    }
    if (lane == 0) H.slice[s].value_kind = TC_HYBRID_D16;
  }
}

static tc_status collect(const tc_hybrid *H, tc_collected *table, cudaStream_t stream)
{
  const char           *name = "tc_collect_hybrid";
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(name, &size));
  TC_CALL(tc_allow_shared<tc_collect_hybrid_kernel>(name));
  const int64_t blocks = (H->num_slices + tc_collect_warps - 1) / tc_collect_warps, most = static_cast<int64_t>(tc_collect_resident) * size->num_sms, ctas = blocks < most ? blocks : most;

  TC_CALL(tc_cuda("tc_collect_hybrid: an empty table", cudaMemsetAsync(table, 0, sizeof *table, stream)));
  TC_CALL(tc_launch_line(name, tc_collect_hybrid_kernel, false, ctas, tc_collect_threads, tc_collected_words * static_cast<int>(sizeof(tc_bits)), stream, *H, table));
  TC_CALL(tc_launch(name, tc_order_values_kernel, tc_collected_slots / tc_order_warps, tc_order_threads, stream, *H, table));
  return tc_launch(name, tc_encode_slices_kernel, ctas, tc_collect_threads, stream, *H, table);
}

extern "C" tc_status tc_collect_hybrid(const void *view, tc_stream stream)
{
  const tc_hybrid   *H  = static_cast<const tc_hybrid *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  void              *table;

  if (H->num_slices == 0 || !tc_hybrid_collects(H)) return TC_OK;
  TC_CALL(tc_memory_take(sizeof(tc_collected), &table, on));
  const tc_status status = collect(H, static_cast<tc_collected *>(table), on);

  TC_CALL(tc_memory_give(table, on));
  return status;
}
