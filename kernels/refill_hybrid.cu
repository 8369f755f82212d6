#include "hybrid_walk.cuh"
#include "tc_backend.h"
#include "tc_narrow.h"
#include <cfloat>

constexpr int tc_sample_threads = 1024, tc_sample_values = TC_HYBRID_SAMPLE / tc_sample_threads;
constexpr int tc_values_threads = 256;
constexpr int tc_values_blocks  = 4096; // at most; a warp takes several pieces then, and a block reads the dictionary once for all of its own

using tc_bits = unsigned long long;

/* Is it the first time that these bits, not all ones, go into the table? */
__device__ __forceinline__ bool tc_insert(tc_bits mine, tc_bits (&table)[2 * tc_sample_threads])
{
  for (unsigned at = static_cast<unsigned>((mine * 0x9e3779b97f4a7c15ull) >> 32);; ++at) {
    const tc_bits found = atomicCAS(&table[at % (2 * tc_sample_threads)], ~0ull, mine);

    if (found == ~0ull || found == mine) return found == ~0ull;
  }
}

/*
  tc_refill_hybrid_dictionary_kernel - the distinct values of the sample, ordered by their bits

  Work:   one block; a hash table finds what is distinct, and its end spares most matrices the rest of the sample
  Lanes:  four values per thread, one after the other
  Arrays: csr_val [nnz]; dictionary [TC_HYBRID_DICTIONARY]; dictionary_size [1]; all device
  Writes: the dictionary, zeros after its end, and its size
  Launch: tc_sample_threads, 18 KiB of shared memory.  Needs: sm_60.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_sample_threads) tc_refill_hybrid_dictionary_kernel(int64_t nnz, const double *__restrict__ csr_val, double *__restrict__ dictionary, int32_t *__restrict__ dictionary_size)
{
  __shared__ tc_bits table[2 * tc_sample_threads], distinct[TC_HYBRID_DICTIONARY];
  __shared__ int     taken;
  const int64_t      stride = nnz > TC_HYBRID_SAMPLE ? nnz / TC_HYBRID_SAMPLE : 1;
  int                num = 0, ones = 0; // ones: is there a value whose bits are all ones, which mark what is empty in the table?

  table[threadIdx.x] = table[tc_sample_threads + threadIdx.x] = ~0ull;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  for (int j = 0; j < tc_sample_values && num + ones <= TC_HYBRID_DICTIONARY; ++j) {
    const int64_t i    = tc_sample_threads * j + threadIdx.x;
    const tc_bits mine = i < nnz ? __double_as_longlong(csr_val[i * stride]) : ~0ull;

    num += __syncthreads_count(mine != ~0ull && tc_insert(mine, table));
    ones = __syncthreads_or(ones || (i < nnz && mine == ~0ull));
  }
  if (num + ones > TC_HYBRID_DICTIONARY) num = ones = 0;
  if (num > 0) {
    for (int at = threadIdx.x; at < 2 * tc_sample_threads; at += tc_sample_threads) {
      if (table[at] != ~0ull) distinct[atomicAdd(&taken, 1)] = table[at];
    }
  }
  __syncthreads();
  if (threadIdx.x < num) {
    const tc_bits mine  = distinct[threadIdx.x];
    int           place = 0;

    for (int i = 0; i < num; ++i) place += distinct[i] < mine;
    dictionary[place] = __longlong_as_double(mine);
  } else if (threadIdx.x < TC_HYBRID_DICTIONARY) dictionary[threadIdx.x] = ones && threadIdx.x == num ? __longlong_as_double(~0ull) : 0.0;
  if (threadIdx.x == 0) *dictionary_size = num + ones;
}

struct tc_dictionary {
  const tc_bits *bits; // ascending
  int            size, half; // half: the largest power of two below size, 0 if there is none

  /* Where these bits are; if they are nowhere, some other place */
  __device__ __forceinline__ int find(tc_bits wanted) const
  {
    int place = 0;

    for (int step = half; step > 0; step /= 2) {
      if (place + step < size && bits[place + step] <= wanted) place += step;
    }
    return place;
  }
};

/* Can the float stand for the value: exactly, or, if values may be rounded, as a normal number? Never for a NaN. */
template <bool rounded>
__device__ __forceinline__ bool tc_stands_for(float narrow, double value)
{
  return narrow == value || (rounded && fabsf(narrow) >= FLT_MIN && fabsf(narrow) <= FLT_MAX);
}

/*
  Writes the values of a piece as this kind; false as soon as a block has one that the kind cannot hold. What is written by then lies within the bytes of every wider
  kind. NaNs are neither F32 here nor on the host.
*/
template <tc_hybrid_value_kind kind, typename stored, bool rounded, int places>
__device__ __forceinline__ bool tc_put_values_as(const tc_hybrid_walk<places> &W, const tc_dictionary &dictionary, const double *csr_val, char *val, int thread)
{
  stored *to = reinterpret_cast<stored *>(val);
  double  next[places]; // on their way while the values of the present block are looked at

#pragma unroll
  for (int i = 0; i < places; ++i) next[i] = W.load(csr_val, 0, i, 0.0);
  for (int b = 0; b < W.num_blocks(); ++b, to += tc_warp_size * places) {
    const bool in_use = places * b + W.place(thread) < W.width; // else there are no slots for this place
    double     value[places];
    stored     packed[places];
    bool       fits = true;

#pragma unroll
    for (int i = 0; i < places; ++i) {
      value[i] = next[i];
      next[i]  = W.load(csr_val, b + 1, i, 0.0);
    }
#pragma unroll
    for (int i = 0; i < places; ++i) {
      if constexpr (kind == TC_HYBRID_D8) {
        const tc_bits bits  = __double_as_longlong(value[i]);
        const int     found = W.has(b, i) ? dictionary.find(bits) : 0;

        fits      = fits && (!W.has(b, i) || dictionary.bits[found] == bits);
        packed[i] = found;
      } else if constexpr (kind == TC_HYBRID_BF16) {
        fits = tc_to_bf16(value[i], &packed[i]) && fits;
      } else {
        packed[i] = value[i];
        if constexpr (kind == TC_HYBRID_F32) fits = fits && tc_stands_for<rounded>(packed[i], value[i]);
      }
    }
    if (kind != TC_HYBRID_F64 && !__all_sync(tc_full_warp, fits)) return false;
#pragma unroll
    for (int i = 0; i < places; ++i) {
      if constexpr (kind == TC_HYBRID_D8 || kind == TC_HYBRID_BF16) __stcs(to + tc_warp_size * i + thread, packed[i]);
      else if (in_use) __stcs(to + tc_warp_size * W.place(thread) + W.lane(i, thread), packed[i]);
    }
  }
  return true;
}

/* Where the exponents of a piece are: that of a segment, or those of the lanes of a slice, `num` of them */
struct tc_exponents {
  int16_t *of;
  int      num;
  bool     shared; // of all lanes
};

/* The exponents of a thread's elements, all 0 if one of the piece cannot be */
template <int places>
struct tc_scaling {
  int  exponent[places];
  bool fits = true;

  __device__ __forceinline__ tc_scaling(const tc_hybrid_walk<places> &W, bool shared, const double *csr_val)
  {
    tc_bits largest[places] = {};

    for (int b = 0; b < W.num_blocks(); ++b) {
#pragma unroll
      for (int i = 0; i < places; ++i) largest[i] = max(largest[i], static_cast<tc_bits>(__double_as_longlong(fabs(W.load(csr_val, b, i, 0.0)))));
    }
    if (shared) {
#pragma unroll
      for (int i = 1; i < places; ++i) largest[0] = max(largest[0], largest[i]);
    }
#pragma unroll
    for (int i = 0; i < places; ++i) {
      if (shared && i > 0) largest[i] = largest[0];
      else {
        for (int apart = 1; apart < (shared ? tc_warp_size : places); apart *= 2) largest[i] = max(largest[i], __shfl_xor_sync(tc_full_warp, largest[i], apart));
      }
      fits = tc_f16_scale(largest[i], &exponent[i]) && fits;
    }
    fits = __all_sync(tc_full_warp, fits);
#pragma unroll
    for (int i = 0; i < places; ++i) exponent[i] = fits ? exponent[i] : 0;
  }
};

/* Writes the values of a piece as F16, and their exponents; false if it cannot be: then the exponents are 0 */
template <int places>
__device__ __forceinline__ bool tc_put_f16(const tc_hybrid_walk<places> &W, const tc_exponents &exponents, const double *csr_val, char *val, int thread)
{
  const tc_scaling<places> scaling(W, exponents.shared, csr_val);
  uint16_t                *to = reinterpret_cast<uint16_t *>(val);

#pragma unroll
  for (int i = 0; i < places; ++i) {
    const int lane = exponents.shared ? thread + i : W.lane(i, thread);

    if (W.place(thread) == 0 && lane < exponents.num) exponents.of[lane] = scaling.exponent[i];
  }
  if (!scaling.fits) return false;
  for (int b = 0; b < W.num_blocks(); ++b, to += tc_warp_size * places) {
#pragma unroll
    for (int i = 0; i < places; ++i) __stcs(to + tc_warp_size * i + thread, tc_to_f16(W.load(csr_val, b, i, 0.0) * tc_power_of_two(-scaling.exponent[i])));
  }
  return true;
}

/* The values of a piece as the first kind that holds them, which is returned */
template <tc_precision precision, int places>
__device__ __forceinline__ tc_hybrid_value_kind tc_put_values(const tc_hybrid_walk<places> &W, const tc_dictionary &dictionary, const tc_exponents &exponents, const double *csr_val, char *val, int thread)
{
  constexpr bool rounded = precision != TC_PRECISION_F64;

  if (dictionary.size > 0 && tc_put_values_as<TC_HYBRID_D8, uint8_t, rounded>(W, dictionary, csr_val, val, thread)) {
    for (int i = thread; precision == TC_PRECISION_F16 && i < exponents.num; i += tc_warp_size) exponents.of[i] = 0;
    return TC_HYBRID_D8;
  }
  __syncwarp(); // from here on other threads write the same bytes again
  if constexpr (precision == TC_PRECISION_BF16) {
    if (tc_put_values_as<TC_HYBRID_BF16, uint16_t, rounded>(W, dictionary, csr_val, val, thread)) return TC_HYBRID_BF16;
    __syncwarp();
  }
  if constexpr (precision == TC_PRECISION_F16) {
    if (tc_put_f16(W, exponents, csr_val, val, thread)) return TC_HYBRID_F16;
    __syncwarp();
  }
  if (tc_put_values_as<TC_HYBRID_F32, float, rounded>(W, dictionary, csr_val, val, thread)) return TC_HYBRID_F32;
  __syncwarp();
  tc_put_values_as<TC_HYBRID_F64, double, rounded>(W, dictionary, csr_val, val, thread);
  return TC_HYBRID_F64;
}

template <tc_precision precision>
__device__ __forceinline__ tc_exponents tc_exponents_of(const tc_hybrid &H, int32_t piece)
{
  if constexpr (precision != TC_PRECISION_F16) return {};
  else if (piece < H.num_segments) return {H.exponent + piece, 1, true};
  else {
    const int32_t packed = TC_HYBRID_SLICE_ROWS * (piece - H.num_segments);

    return {H.exponent + H.num_segments + packed, min(H.num_sliced - packed, static_cast<int32_t>(TC_HYBRID_SLICE_ROWS)), false};
  }
}

/*
  tc_refill_hybrid_values_kernel - the values and their kinds, a piece (segment or slice) at a time: the first kind that holds them all

  Work:   one warp per piece and round, segments first, then slices
  Lanes:  see tc_hybrid_walk
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: val, the bytes of the kind; value_kind; exponent, if there is one
  Launch: tc_values_threads per block, 2 KiB of shared memory.  Needs: sm_60.  Source: tc_hybrid.h
*/
template <tc_precision precision>
static __global__ void __launch_bounds__(tc_values_threads, 4) tc_refill_hybrid_values_kernel(const __grid_constant__ tc_hybrid H, const double *__restrict__ csr_val)
{
  __shared__ tc_bits  bits[TC_HYBRID_DICTIONARY];
  const int           thread = threadIdx.x % tc_warp_size, size = *H.dictionary_size;
  const tc_dictionary dictionary = {bits, size, size > 1 ? 1 << (31 - __clz(size - 1)) : 0};
  const int32_t       step       = gridDim.x * (tc_values_threads / tc_warp_size);

  for (int i = threadIdx.x; i < size; i += tc_values_threads) bits[i] = __double_as_longlong(H.dictionary[i]);
  __syncthreads();
  for (int32_t piece = blockIdx.x * (tc_values_threads / tc_warp_size) + threadIdx.x / tc_warp_size; piece < H.num_segments + H.num_slices; piece += step) {
    const int32_t slice = piece - H.num_segments;
    auto          put   = [&](const auto &W, auto &S) {
      const tc_exponents         exponents = tc_exponents_of<precision>(H, piece);
      const tc_hybrid_value_kind kind = tc_put_values<precision>(W, dictionary, exponents, csr_val, static_cast<char *>(H.val) + TC_HYBRID_SLICE_ROWS * sizeof(double) * S.val, thread);

      if (thread == 0) S.value_kind = kind;
    };

    if (slice < 0) put(tc_walk_segment(H, piece, H.segment[piece].long_row, H.segment[piece].entries, thread), H.segment[piece]);
    else tc_walk_slice(H, slice, H.slice[slice].width, thread, [&](const auto &W) { put(W, H.slice[slice]); });
  }
}

extern "C" tc_status tc_refill_hybrid(const void *view, const double *csr_val, tc_stream stream)
{
  const tc_hybrid   *H     = static_cast<const tc_hybrid *>(view);
  const cudaStream_t on    = static_cast<cudaStream_t>(stream);
  static void (*const kernel_of[])(tc_hybrid, const double *) = {tc_refill_hybrid_values_kernel<TC_PRECISION_F64>, tc_refill_hybrid_values_kernel<TC_PRECISION_F32>, tc_refill_hybrid_values_kernel<TC_PRECISION_F32>, tc_refill_hybrid_values_kernel<TC_PRECISION_BF16>,
                                                                 tc_refill_hybrid_values_kernel<TC_PRECISION_F16>};
  constexpr int      warps = tc_values_threads / tc_warp_size;
  const int64_t      ctas  = ((int64_t)H->num_segments + H->num_slices + warps - 1) / warps;

  TC_CALL(tc_launch("tc_refill_hybrid_dictionary", tc_refill_hybrid_dictionary_kernel, 1, tc_sample_threads, on, H->num_nonzeros, csr_val, H->dictionary, H->dictionary_size));
  return tc_launch("tc_refill_hybrid_values", kernel_of[H->precision], ctas < tc_values_blocks ? ctas : tc_values_blocks, tc_values_threads, on, *H, csr_val);
}
