#include "refill_hybrid_pieces.cuh"
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_narrow.h"
#include <cfloat>
#include <type_traits>

constexpr int tc_sample_threads   = 1024, tc_sample_values = TC_HYBRID_SAMPLE / tc_sample_threads;
static_assert(tc_sample_values == TC_HYBRID_FLOAT_EVERY, "the first value of each thread");
constexpr int tc_values_threads   = 128, tc_values_resident = 9; // 56 registers
constexpr int tc_values_blocks    = 4096;                             // at most; a team takes several pieces then, and a block makes its table of the dictionary once for all of them
constexpr int tc_values_team      = tc_values_threads / tc_warp_size; // warps that share a piece where pieces have
constexpr int tc_wide_piece       = 32;                               // places and more in the mean: the block has no other

/* Is it the first time that these bits, not all ones, go into the table? `look`: they are probably there, and lanes that look first need not take turns */
__device__ __forceinline__ bool tc_insert(tc_bits mine, tc_bits (&table)[2 * tc_sample_threads], bool look)
{
  for (unsigned at = tc_slot_of(mine, 2 * tc_sample_threads);; ++at) {
    tc_bits *const slot = &table[at % (2 * tc_sample_threads)];
    tc_bits        found = look ? *static_cast<volatile tc_bits *>(slot) : ~0ull;

    if (found == ~0ull) found = atomicCAS(slot, ~0ull, mine);
    if (found == ~0ull || found == mine) return found == ~0ull;
  }
}

__device__ __forceinline__ void tc_tell(tc_hybrid_repeats *repeats, const int32_t *dictionary_size)
{
  repeats->bytes    = dictionary_size[1];
  repeats->distinct = dictionary_size[0];
}

/*
  tc_refill_hybrid_dictionary_kernel - the distinct values of the sample, ordered by their bits

  Work:   one block; a hash table finds what is distinct, and its end spares most matrices the rest of the sample. The kernel that follows may begin when the one before has ended.
  Lanes:  four values per thread, all on their way together
  Arrays: csr_val [nnz]; dictionary [TC_HYBRID_DICTIONARY]; dictionary_size [2]; all device; repeats [1], of the host, if it waits for that, else NULL
  Writes: the dictionary, zeros after its end, its size and the bytes of a value; the latter two for the host
  Launch: tc_sample_threads, 19 KiB of shared memory.  Needs: sm_70.  Source: tc_hybrid.h
*/
static __global__ void __launch_bounds__(tc_sample_threads) tc_refill_hybrid_dictionary_kernel(int64_t nnz, const double *csr_val, double *__restrict__ dictionary, int32_t *__restrict__ dictionary_size, tc_hybrid_repeats *repeats)
{
  __shared__ tc_bits table[2 * tc_sample_threads], distinct[TC_HYBRID_DICTIONARY];
  __shared__ int     taken, place[TC_HYBRID_DICTIONARY];
  const int          samples = nnz < TC_HYBRID_SAMPLE ? nnz : TC_HYBRID_SAMPLE;
  int                num = 0, ones = 0; // ones: is there a value whose bits are all ones, which mark what is empty in the table?
  tc_bits            mine[tc_sample_values];

  table[threadIdx.x] = table[tc_sample_threads + threadIdx.x] = ~0ull;
  if (threadIdx.x == 0) taken = 0;
  if (threadIdx.x < TC_HYBRID_DICTIONARY) place[threadIdx.x] = 0;
  tc_between_kernels();
#pragma unroll
  for (int j = 0; j < tc_sample_values; ++j) {
    const int i = tc_sample_values * threadIdx.x + j; // the first ones of all threads are from everywhere

    mine[j] = i < samples ? __double_as_longlong(csr_val[tc_hybrid_sampled(nnz, i)]) : ~0ull;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < tc_sample_values; ++j) {
    if (num + ones > TC_HYBRID_DICTIONARY) break;
    num += __syncthreads_count(mine[j] != ~0ull && tc_insert(mine[j], table, j > 0));
    ones = __syncthreads_or(ones || (tc_sample_values * threadIdx.x + j < samples && mine[j] == ~0ull));
  }
  if (num + ones > TC_HYBRID_DICTIONARY) num = ones = 0;
  for (int at = threadIdx.x; num > 0 && at < 2 * tc_sample_threads; at += tc_sample_threads) {
    const unsigned used = __ballot_sync(tc_full_warp, table[at] != ~0ull);
    int            first = 0;

    if (threadIdx.x % tc_warp_size == 0 && used) first = atomicAdd(&taken, __popc(used));
    first = __shfl_sync(tc_full_warp, first, 0);
    if (table[at] != ~0ull) distinct[first + __popc(used & ((1u << threadIdx.x % tc_warp_size) - 1))] = table[at];
  }
  __syncthreads();
  if (threadIdx.x % TC_HYBRID_DICTIONARY < num) {
    const tc_bits me      = distinct[threadIdx.x % TC_HYBRID_DICTIONARY];
    int           smaller = 0;

    for (int i = threadIdx.x / TC_HYBRID_DICTIONARY; i < num; i += tc_sample_threads / TC_HYBRID_DICTIONARY) smaller += distinct[i] < me;
    atomicAdd(&place[threadIdx.x % TC_HYBRID_DICTIONARY], smaller);
  }
  __syncthreads();
  if (threadIdx.x < num) dictionary[place[threadIdx.x]] = __longlong_as_double(distinct[threadIdx.x]);
  else if (threadIdx.x < TC_HYBRID_DICTIONARY) dictionary[threadIdx.x] = ones && threadIdx.x == num ? __longlong_as_double(~0ull) : 0.0;
  const double first  = __longlong_as_double(mine[0]); // a NaN is no float
  const bool   floats = num + ones == 0 && __syncthreads_and(tc_sample_values * threadIdx.x >= samples || static_cast<float>(first) == first);

  if (threadIdx.x > 0) return;
  dictionary_size[0] = num + ones;
  dictionary_size[1] = num + ones > 0 ? TC_HYBRID_CODE_BYTES : floats ? 4 : 8;
  if (repeats) tc_tell(repeats, dictionary_size);
}

/* Can the float stand for the value: exactly, or, if values may be rounded, as a normal number? Never for a NaN. */
template <bool rounded>
__device__ __forceinline__ bool tc_stands_for(float narrow, double value)
{
  return narrow == value || (rounded && fabsf(narrow) >= FLT_MIN && fabsf(narrow) <= FLT_MAX);
}

/* What lies next to each other for one lane of a block */
template <typename stored, int places>
struct alignas(sizeof(stored) * places) tc_together_stored {
  stored of[places];
};

/*
  Writes the values that are staged as this kind, a warp's part of them; false as soon as a block has one that the kind cannot hold. What is written by then lies within
  the bytes of every wider kind. NaNs are neither F32 here nor on the host.
*/
template <tc_hybrid_value_kind kind, typename stored, bool rounded, int places, typename piece>
__device__ __forceinline__ bool tc_put_staged(const piece &P, const tc_look_up &dictionary, double scale, stored *to)
{
  const double padding = kind == TC_HYBRID_D8 ? dictionary.first() : 0.0;

  for (int b = P.warp; places * b < P.staged(); b += piece::team) {
    double                             value[places];
    tc_together_stored<stored, places> packed;
    bool                               fits = true;

    P.values(places * b, padding, value);
    if constexpr (kind == TC_HYBRID_D8) fits = dictionary.find(value, packed.of);
#pragma unroll
    for (int p = 0; p < places; ++p) {
      if constexpr (kind == TC_HYBRID_BF16) fits = tc_to_bf16(value[p], &packed.of[p]) && fits;
      else if constexpr (kind == TC_HYBRID_F16) packed.of[p] = tc_to_f16(value[p] * scale);
      else if constexpr (kind != TC_HYBRID_D8) {
        packed.of[p] = value[p];
        if constexpr (kind == TC_HYBRID_F32) fits = fits && tc_stands_for<rounded>(packed.of[p], value[p]);
      }
    }
    if (!__all_sync(tc_full_warp, fits)) return false;
    if constexpr (sizeof(stored) <= 2) reinterpret_cast<tc_together_stored<stored, places> *>(to)[tc_warp_size * b + P.lane] = packed;
    else {
      const int left = P.staged() - places * b; // F64 by rows is put_by_rows()

      if (P.by_rows && left >= places) reinterpret_cast<tc_together_stored<stored, places> *>(to + tc_warp_size * places * b)[P.lane] = packed;
      else {
#pragma unroll
        for (int p = 0; p < places; ++p) {
          if (p < left) __stcs(to + tc_warp_size * places * b + (P.by_rows ? left * P.lane + p : tc_warp_size * p + P.lane), packed.of[p]);
        }
      }
    }
  }
  return true;
}

/* The whole piece as this kind; false if it does not fit */
template <tc_hybrid_value_kind kind, typename stored, bool rounded, int places, typename piece>
__device__ __forceinline__ bool tc_put_places(piece &P, const tc_look_up &dictionary, double scale, char *val)
{
  for (int from = 0; from < P.width; from += P.most) {
    stored *const to = reinterpret_cast<stored *>(val) + tc_warp_size * from;

    P.fetch(from);
    if constexpr (kind == TC_HYBRID_F64 && !std::is_same_v<piece, tc_short_piece>) {
      if (P.by_rows) {
        P.put_by_rows(to);
        continue;
      }
    }
    const bool fits = tc_put_staged<kind, stored, rounded, places>(P, dictionary, scale, to);

    if (kind != TC_HYBRID_F64 && kind != TC_HYBRID_F16 && !P.all(fits)) return false;
  }
  return true;
}

template <tc_hybrid_value_kind kind, typename stored, bool rounded, typename piece>
__device__ __forceinline__ bool tc_put_values_as(piece &P, const tc_look_up &dictionary, double scale, char *val)
{
  if constexpr (sizeof(stored) <= 2) {
    if (P.places == 1) return tc_put_places<kind, stored, rounded, 1>(P, dictionary, scale, val);
    if (P.places == 2) return tc_put_places<kind, stored, rounded, 2>(P, dictionary, scale, val);
  }
  return tc_put_places<kind, stored, rounded, tc_most_places>(P, dictionary, scale, val);
}

/* Where the exponents of a piece are: that of a segment, or those of the lanes of a slice, `num` of them */
struct tc_exponents {
  int16_t *of;
  int      num;
  bool     shared; // of all lanes
};

/* The exponent of a lane; 0, and false, if one of the piece cannot be */
__device__ __forceinline__ bool tc_scale_lane(tc_staged_piece<1, false> &P, bool shared, int *exponent)
{
  tc_bits largest = 0;

  for (int from = 0; from < P.width; from += P.most) {
    P.fetch(from);
    for (int k = 0; k < P.staged(); ++k) {
      double value[1];

      P.values(k, 0.0, value);
      largest = max(largest, static_cast<tc_bits>(__double_as_longlong(fabs(value[0]))));
    }
  }
  if (shared) largest = tc_warp_largest(largest);
  const bool fits = P.all(tc_f16_scale(largest, exponent));

  if (!fits) *exponent = 0;
  return fits;
}

/* The values of a piece as the first kind that holds them, which is returned */
template <tc_precision precision, typename piece>
__device__ __forceinline__ tc_hybrid_value_kind tc_put_values(piece &P, int dictionary_size, const tc_look_up &dictionary, const tc_exponents &exponents, char *val)
{
  constexpr bool rounded = precision != TC_PRECISION_F64;
  int            exponent = 0;
  const bool     coded = dictionary_size > 0 && tc_put_values_as<TC_HYBRID_D8, uint8_t, rounded>(P, dictionary, 1, val);

  if constexpr (precision == TC_PRECISION_F16) {
    const bool scaled = !coded && tc_scale_lane(P, exponents.shared, &exponent);

    if (P.lane < exponents.num) exponents.of[P.lane] = exponent;
    if (scaled) {
      tc_put_values_as<TC_HYBRID_F16, uint16_t, rounded>(P, dictionary, tc_power_of_two(-exponent), val);
      return TC_HYBRID_F16;
    }
  }
  if (coded) return TC_HYBRID_D8;
  if constexpr (precision == TC_PRECISION_BF16) {
    if (tc_put_values_as<TC_HYBRID_BF16, uint16_t, rounded>(P, dictionary, 1, val)) return TC_HYBRID_BF16;
  }
  if (tc_put_values_as<TC_HYBRID_F32, float, rounded>(P, dictionary, 1, val)) return TC_HYBRID_F32;
  tc_put_values_as<TC_HYBRID_F64, double, rounded>(P, dictionary, 1, val);
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

  Work:   a team of warps per piece and round, segments first, then slices; the first piece is on its way while the dictionary is made
  Lanes:  see tc_staged_piece and tc_short_piece
  Arrays: the view; csr_val [num_nonzeros]; all device
  Writes: val, the bytes of the kind; value_kind; exponent, if there is one; the size of the dictionary, where the host is to know it
  Launch: tc_values_threads per block, 4 KiB of shared memory, and for each team that stages pieces TC_HYBRID_SLICE_ROWS * (most + 1) doubles.  Needs: sm_80; sm_90 to begin before the
          dictionary is there.  Source: tc_hybrid.h
*/
template <tc_precision precision, typename piece_of>
static __global__ void __launch_bounds__(tc_values_threads, tc_values_resident) tc_refill_hybrid_values_kernel(const __grid_constant__ tc_hybrid H, const double *__restrict__ csr_val, int most)
{
  extern __shared__ __align__(16) double stages[];
  __shared__ tc_dictionary dictionary;
  constexpr bool           only_slices = std::is_same_v<piece_of, tc_short_piece>;
  constexpr int            teams       = tc_values_threads / tc_warp_size / piece_of::team;
  const int32_t            num_segments = only_slices ? 0 : H.num_segments, begin = blockIdx.x * teams + threadIdx.x / tc_warp_size / piece_of::team, end = num_segments + H.num_slices, step = gridDim.x * teams;
  piece_of                 P(csr_val, stages, most);
  auto                     rows_of = [&](int32_t piece) {
    if (!only_slices && piece < num_segments) return tc_piece_rows::of_segment(H, piece, P.lane);
    return tc_piece_rows::of_slice(H, piece - num_segments, P.lane);
  };
  auto                     open = [&](const tc_piece_rows &rows) {
    P.open(rows);
    P.fetch(0);
  };

  if (begin < end) open(rows_of(begin));
  tc_between_kernels();
  const int size = *H.dictionary_size;

  if (H.repeats && blockIdx.x == 0 && threadIdx.x == 0) tc_tell(H.repeats, H.dictionary_size);
  if (size > 0) dictionary.make(H, size);
  const tc_look_up look_up(dictionary);

  for (int32_t piece = begin; piece < end; piece += step) {
    const bool    more = piece + step < end;
    tc_piece_rows next;

    if (more) next = rows_of(piece + step); // on their way while this one is written
    const tc_hybrid_value_kind kind = tc_put_values<precision>(P, size, look_up, tc_exponents_of<precision>(H, piece), static_cast<char *>(H.val) + TC_HYBRID_SLICE_ROWS * sizeof(double) * P.val);

    if (P.warp == 0 && P.lane == 0) {
      if (piece < num_segments) H.segment[piece].value_kind = kind;
      else H.slice[piece - num_segments].value_kind = kind;
    }
    if (more) open(next);
  }
}

template <tc_precision precision, typename piece_of>
static tc_status tc_launch_values(const tc_hybrid *H, const double *csr_val, bool early, int most, cudaStream_t stream)
{
  constexpr int teams = tc_values_threads / tc_warp_size / piece_of::team;
  const int64_t ctas  = ((int64_t)H->num_segments + H->num_slices + teams - 1) / teams;

  return tc_launch_line("tc_refill_hybrid_values", tc_refill_hybrid_values_kernel<precision, piece_of>, early, ctas < tc_values_blocks ? ctas : tc_values_blocks, tc_values_threads,
                        most > 0 ? teams * TC_HYBRID_SLICE_ROWS * (most + 1) * static_cast<int>(sizeof(double)) : 0, stream, *H, csr_val, most);
}

/* Places of a stage: those of the widest piece, at most `limit` */
static int most_staged(const tc_hybrid *H, int limit)
{
  const int widest = H->num_segments > 0 && H->longest_sliced < TC_HYBRID_SEGMENT / tc_warp_size ? TC_HYBRID_SEGMENT / tc_warp_size : H->longest_sliced;

  return widest < limit ? (widest + tc_most_places - 1) / tc_most_places * tc_most_places : limit;
}

/* A block takes a piece where pieces are wide, else each warp one */
template <tc_precision precision, bool passes>
static tc_status tc_launch_staged(const tc_hybrid *H, const double *csr_val, bool early, cudaStream_t stream)
{
  const int64_t pieces = (int64_t)H->num_segments + H->num_slices, slots = H->num_slots / TC_HYBRID_SLICE_ROWS;

  if constexpr (precision != TC_PRECISION_F16) {
    if (slots >= tc_wide_piece * pieces) return tc_launch_values<precision, tc_staged_piece<tc_values_team, passes>>(H, csr_val, early, most_staged(H, 128), stream);
  }
  return tc_launch_values<precision, tc_staged_piece<1, passes>>(H, csr_val, early, most_staged(H, 32), stream);
}

/*
  In registers where all pieces are narrow, else staged; what is read passes where the product behind is to find what is written in the L2 cache. `early`: the kernel before makes the dictionary, and waits for
  what wrote the values.
*/
template <tc_precision precision>
static tc_status tc_launch_values(const tc_hybrid *H, const double *csr_val, bool early, cudaStream_t stream)
{
  const tc_device_size *size;

  if constexpr (precision != TC_PRECISION_F16) {
    if (H->num_segments == 0 && H->longest_sliced <= tc_most_places) return tc_launch_values<precision, tc_short_piece>(H, csr_val, early, 0, stream);
  }
  if constexpr (precision == TC_PRECISION_F64) {
    TC_CALL(tc_size_of_device("tc_refill_hybrid", &size));
    if (tc_hybrid_fits_cache(tc_hybrid_product_bytes(H), size->cache_bytes)) return tc_launch_staged<precision, true>(H, csr_val, early, stream);
  }
  return tc_launch_staged<precision, false>(H, csr_val, early, stream);
}

static tc_status make_dictionary(const tc_hybrid *H, const double *csr_val, tc_hybrid_repeats *repeats, cudaStream_t stream)
{
  return tc_launch_early("tc_refill_hybrid_dictionary", tc_refill_hybrid_dictionary_kernel, 1, tc_sample_threads, 0, stream, H->num_nonzeros, csr_val, H->dictionary, H->dictionary_size, repeats);
}

extern "C" tc_status tc_search_hybrid(const void *view, const double *csr_val, tc_stream stream)
{
  const tc_hybrid   *H  = static_cast<const tc_hybrid *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  if (H->repeats == nullptr || H->precision != TC_PRECISION_F64) return TC_OK;
  H->repeats->since = 0;
  TC_CALL(make_dictionary(H, csr_val, H->repeats, on));
  TC_CALL(tc_cuda("tc_search_hybrid: wait for the dictionary", cudaStreamSynchronize(on)));
  H->repeats->ahead = 1;
  return TC_OK;
}

extern "C" tc_status tc_refill_hybrid(const void *view, const double *csr_val, tc_stream stream)
{
  const tc_hybrid   *H  = static_cast<const tc_hybrid *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  static tc_status (*const launch_of[])(const tc_hybrid *, const double *, bool, cudaStream_t) = {tc_launch_values<TC_PRECISION_F64>, tc_launch_values<TC_PRECISION_F32>, tc_launch_values<TC_PRECISION_F32>, tc_launch_values<TC_PRECISION_BF16>,
                                                                                          tc_launch_values<TC_PRECISION_F16>};

  const bool         searches = tc_hybrid_searches(H);

  if (searches) TC_CALL(make_dictionary(H, csr_val, nullptr, on));
  return launch_of[H->precision](H, csr_val, searches, on);
}

extern "C" tc_status tc_load_refill_hybrid(tc_scalar)
{
  return tc_load("tc_refill_hybrid", tc_refill_hybrid_dictionary_kernel, tc_refill_hybrid_values_kernel<TC_PRECISION_F64, tc_short_piece>, tc_refill_hybrid_values_kernel<TC_PRECISION_F64, tc_staged_piece<1, true>>, tc_refill_hybrid_values_kernel<TC_PRECISION_F64, tc_staged_piece<1, false>>,
                 tc_refill_hybrid_values_kernel<TC_PRECISION_F64, tc_staged_piece<tc_values_team, true>>, tc_refill_hybrid_values_kernel<TC_PRECISION_F64, tc_staged_piece<tc_values_team, false>>);
}
