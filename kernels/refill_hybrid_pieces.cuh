/*
  What a refill of the hybrid format has in shared memory: the dictionary, for look-ups, and the values of a piece (segment or slice).
*/
#pragma once
#include "tc_hybrid.h"
#include "tc_mma.cuh"

constexpr int tc_dictionary_slots = 4 * TC_HYBRID_DICTIONARY;
constexpr int tc_most_places      = TC_HYBRID_BLOCK / TC_HYBRID_SLICE_ROWS;
constexpr int tc_run_places       = 2; // a run of rows that follow each other in CSR pays for itself from so many places of a slice on, for each warp that copies
constexpr int tc_bank_rows        = 4; // but where rows are of a multiple of so many entries, the k-th ones of all rows would be in few banks

using tc_bits = unsigned long long;

/* Where to look for these bits first, in a table of a power of two of slots; neither word alone tells small integers or floats apart */
__device__ __forceinline__ unsigned tc_slot_of(tc_bits bits, unsigned slots)
{
  return (static_cast<unsigned>(bits >> 32) + static_cast<unsigned>(bits) * 0x85ebca6bu) * 0x9e3779b9u / (0x80000000u / slots * 2);
}

/* In shared memory, for look-ups: `slot` says where bits may stand */
struct tc_dictionary {
  enum { NONE = TC_HYBRID_DICTIONARY };

  tc_bits        bits[TC_HYBRID_DICTIONARY + 1]; // the last stands for nothing
  unsigned short slot[tc_dictionary_slots];

  /* By all threads of the block */
  __device__ __forceinline__ void make(const tc_hybrid &H, int size)
  {
    for (int i = threadIdx.x; i < tc_dictionary_slots; i += blockDim.x) slot[i] = NONE;
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      unsigned at = tc_slot_of(bits[i] = __double_as_longlong(H.dictionary[i]), tc_dictionary_slots);

      while (atomicCAS(&slot[at % tc_dictionary_slots], static_cast<unsigned short>(NONE), static_cast<unsigned short>(i)) != NONE) ++at;
    }
    __syncthreads();
  }

};

/* What lies at an address of shared memory */
template <typename T>
__device__ __forceinline__ T tc_shared(uint32_t address)
{
  return *static_cast<const T *>(__cvta_shared_to_generic(address));
}

/* A dictionary that has been made, by its addresses in shared memory */
struct tc_look_up {
  uint32_t bits, slot;

  __device__ __forceinline__ explicit tc_look_up(const tc_dictionary &dictionary)
  {
    bits = static_cast<uint32_t>(__cvta_generic_to_shared(dictionary.bits));
    slot = static_cast<uint32_t>(__cvta_generic_to_shared(dictionary.slot));
    tc_keep(bits);
    tc_keep(slot);
  }

  /* The value whose code is 0 */
  __device__ __forceinline__ double first() const { return tc_shared<double>(bits); }

  /* Where values are, all looked for at the same time; false if one is nowhere */
  template <int places>
  __device__ __forceinline__ bool find(const double (&value)[places], uint8_t (&code)[places]) const
  {
    constexpr unsigned size = sizeof(unsigned short), last = size * (tc_dictionary_slots - 1);
    unsigned           at[places], place[places], largest;
    bool               again;

#pragma unroll
    for (int p = 0; p < places; ++p) at[p] = size * tc_slot_of(__double_as_longlong(value[p]), tc_dictionary_slots);
    do {
      largest = 0;
      again   = false;
#pragma unroll
      for (int p = 0; p < places; ++p) place[p] = tc_shared<unsigned short>(slot + at[p]);
#pragma unroll
      for (int p = 0; p < places; ++p) {
        const bool other = tc_shared<tc_bits>(bits + sizeof(tc_bits) * place[p]) != static_cast<tc_bits>(__double_as_longlong(value[p]));

        at[p]   = other ? (at[p] + size) & last : at[p];
        largest = max(largest, place[p]);
        again |= other;
      }
    } while (again & (largest < tc_dictionary::NONE));
#pragma unroll
    for (int p = 0; p < places; ++p) code[p] = place[p];
    return largest < tc_dictionary::NONE;
  }
};

/* The entries of a piece: entry k of this lane is CSR entry first + stride * k, k < count */
struct tc_piece_rows {
  int32_t  first, count;
  int      width, places, stride;
  uint32_t val;     // as in its descriptor
  bool     by_rows; // tc_hybrid_by_rows()

  __device__ __forceinline__ static tc_piece_rows of_segment(const tc_hybrid &H, int32_t segment, int lane)
  {
    const tc_hybrid_segment S       = H.segment[segment];
    const int               entries = S.entries;

    return {H.csr_first[S.long_row] + TC_HYBRID_SEGMENT * (segment - H.long_first[S.long_row]) + lane, (entries - lane + tc_warp_size - 1) / tc_warp_size, (entries + tc_warp_size - 1) / tc_warp_size, tc_most_places, tc_warp_size, S.val, false};
  }

  __device__ __forceinline__ static tc_piece_rows of_slice(const tc_hybrid &H, int32_t slice, int lane)
  {
    const int32_t packed = TC_HYBRID_SLICE_ROWS * slice + lane;
    const bool    used   = packed < H.num_sliced;
    const int     width  = H.slice[slice].width;

    return {used ? H.csr_first[H.num_long + packed] : 0, used ? H.length[packed] : 0, width, tc_hybrid_places(width), 1, H.slice[slice].val, tc_hybrid_by_rows(&H, slice, width) != 0};
  }
};

/*
  A piece as a team of warps packs it: its values are copied to shared memory, up to `most` places of every lane at a time, as they follow each other in CSR, and every
  kind is tried on what lies there. Thread t of a warp is lane t; the warps of a team share the blocks of four places. Copies in the order of CSR read each line of
  memory once, and all of them are under way at the same time. If what is read `passes`, it is the first to leave the L2 cache, so that what is written stays for the product behind.
*/
template <int warps, bool passes>
struct tc_staged_piece : tc_piece_rows {
  static constexpr int team = warps;

  const double *csr_val;
  double       *stage;                 // [TC_HYBRID_SLICE_ROWS * (most + 1)], at 16 bytes
  int           most;                  // a multiple of four
  int           from = -1;             // the first place that is staged
  uint32_t      own;                   // address of what this lane has there
  uint64_t      policy = passes ? tc_first_to_leave() : 0;
  int           lane = threadIdx.x % tc_warp_size, warp = threadIdx.x / tc_warp_size % team;

  __device__ __forceinline__ tc_staged_piece(const double *csr_val, double *stages, int most) : csr_val(csr_val), stage(stages + TC_HYBRID_SLICE_ROWS * (most + 1) * (threadIdx.x / tc_warp_size / team)), most(most) { }

  /* These two wait for the team */
  __device__ __forceinline__ static void synchronize()
  {
    if constexpr (team == 1) __syncwarp();
    else __syncthreads();
  }
  __device__ __forceinline__ static bool all(bool so)
  {
    if constexpr (team > 1) return __syncthreads_and(so);
    const bool all_so = __all_sync(tc_full_warp, so);

    __syncwarp();
    return all_so;
  }

  __device__ __forceinline__ int staged() const { return min(width - from, most); }

  /* Staged values of the lane from place k on */
  template <int num>
  __device__ __forceinline__ void values(int k, double padding, double (&value)[num]) const
  {
    const int      left = count - from - k, step = static_cast<int>(sizeof(double)) * stride;
    const uint32_t at = own + step * k;

#pragma unroll
    for (int p = 0; p < num; ++p) value[p] = p < left ? tc_shared<double>(at + step * p) : padding;
  }

  /* Writes what is staged of a slice by rows, F64: neighbouring threads have neighbouring pairs, of a row and on to the next */
  __device__ __forceinline__ void put_by_rows(double *to) const
  {
    const int pair = 2 * (lane % 2);
    uint32_t  at[2];
    int       left[2]; // of the rows of this thread's pairs

#pragma unroll
    for (int j = 0; j < 2; ++j) {
      at[j]   = __shfl_sync(tc_full_warp, own, (lane + tc_warp_size * j) / 2) + static_cast<int>(sizeof(double)) * pair;
      left[j] = __shfl_sync(tc_full_warp, count, (lane + tc_warp_size * j) / 2) - from - pair;
    }
    for (int k = tc_most_places * warp; k < staged(); k += tc_most_places * team) {
      double *const block = to + tc_warp_size * k;
      const int     rest  = staged() - k;

      if (rest >= tc_most_places) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint32_t own_pair = at[j] + static_cast<int>(sizeof(double)) * k;

          __stcs(reinterpret_cast<double2 *>(block) + lane + tc_warp_size * j, double2{k < left[j] ? tc_shared<double>(own_pair) : 0.0, k + 1 < left[j] ? tc_shared<double>(own_pair + sizeof(double)) : 0.0});
        }
      } else {
        double value[tc_most_places];

        values(k, 0.0, value);
#pragma unroll
        for (int p = 0; p < tc_most_places; ++p) {
          if (p < rest) block[rest * lane + p] = value[p];
        }
      }
    }
  }

  __device__ __forceinline__ void open(const tc_piece_rows &rows)
  {
    static_cast<tc_piece_rows &>(*this) = rows;
    from                                = -1;
  }

  __device__ __forceinline__ uint32_t address(int place) const { return static_cast<uint32_t>(__cvta_generic_to_shared(stage + place)); }

  /* Is that entry of CSR the second half of 16 bytes? What is copied 16 bytes at a time has to be so in both memories. */
  __device__ __forceinline__ int half(int32_t entry) const { return reinterpret_cast<uintptr_t>(csr_val + entry) / sizeof(double) % 2; }

  __device__ __forceinline__ void copy_16(uint32_t to, const double *from) const
  {
    if constexpr (passes) tc_copy_through_16(to, from, policy);
    else tc_copy_ahead_16(to, from);
  }
  __device__ __forceinline__ void copy_8(uint32_t to, const double *from) const
  {
    if constexpr (passes) tc_copy_through_8(to, from, policy);
    else tc_copy_ahead_8(to, from);
  }

  /* Entries of CSR that follow each other, to places that do, of which the first is half of 16 bytes where the first entry is */
  __device__ __forceinline__ void copy_run(int to, int32_t entry, int num) const
  {
    constexpr int step   = team * tc_warp_size;
    const int     thread = threadIdx.x % step, head = half(entry);

    for (int i = head + 2 * thread; i + 1 < num; i += 2 * step) copy_16(address(to + i), csr_val + entry + i);
    if (thread == 0 && head) copy_8(address(to), csr_val + entry);
    if (thread == step - 1 && (num - head) % 2) copy_8(address(to + num - 1), csr_val + entry + num - 1);
  }

  /* All rows of the slice, which are so many runs, of which the first rows are given */
  __device__ __forceinline__ void copy_runs(unsigned starts, int rows)
  {
    int to = 0;

    while (starts) {
      const int begin = __ffs(starts) - 1;

      starts &= starts - 1;
      const int     end   = starts ? __ffs(starts) - 1 : rows;
      const int32_t entry = __shfl_sync(tc_full_warp, first, begin), num = __shfl_sync(tc_full_warp, first + count, end - 1) - entry;

      to += (to ^ half(entry)) & 1;
      if (begin <= lane && lane < end) own = address(to + first - entry);
      copy_run(to, entry, num);
      to += num;
    }
  }

  /* `num` places of all rows: neighbouring threads have neighbouring entries, of a row and on to the next */
  __device__ __forceinline__ void copy_rows(int num)
  {
    constexpr int  step = team * tc_warp_size;
    const unsigned part = (1u << 24) / num + 1; // e / num is e * part / 2^24 for all e < 32 * num

    own = address(lane * (most + 1)); // odd, so that a warp's lanes hit different banks
    for (int e = threadIdx.x % step; e < num * tc_warp_size; e += step) {
      const int of = e * part >> 24, k = e - of * num, entry = __shfl_sync(tc_full_warp, first, of) + from + k;

      if (from + k < __shfl_sync(tc_full_warp, count, of)) copy_8(address(of * (most + 1) + k), csr_val + entry);
    }
  }

  /* Brings the places from `begin` on, unless they are there */
  __device__ __forceinline__ void fetch(int begin)
  {
    if (from == begin) return;
    synchronize(); // all have read what was there
    from = begin;
    if (stride > 1) {
      const int32_t entry = __shfl_sync(tc_full_warp, first, 0) + stride * from, entries = tc_warp_total(count) - stride * from;

      own = address(half(entry) + lane);
      copy_run(half(entry), entry, min(entries, stride * most));
    } else {
      unsigned starts = tc_full_warp;

      if (width <= most && width >= tc_run_places * team && width % tc_bank_rows != 0) {
        const int before = __shfl_up_sync(tc_full_warp, first + count, 1);

        starts = __ballot_sync(tc_full_warp, count > 0 && (lane == 0 || first != before));
      }
      if (__popc(starts) * tc_run_places * team <= width && starts != tc_full_warp) copy_runs(starts, __popc(__ballot_sync(tc_full_warp, count > 0)));
      else copy_rows(staged());
    }
    tc_copies_end();
    tc_copies_done_but(0);
    synchronize();
  }
};

/* A slice of rows of at most tc_most_places entries as a warp packs it: each lane has those of its row in registers, which is a sector of memory or less */
struct tc_short_piece : tc_piece_rows {
  static constexpr int team = 1, most = tc_most_places, warp = 0;

  const double *csr_val;
  double        own[tc_most_places];
  int           lane = threadIdx.x % tc_warp_size;

  __device__ __forceinline__ tc_short_piece(const double *csr_val, double *, int) : csr_val(csr_val) { }
  __device__ __forceinline__ static bool all(bool so) { return __all_sync(tc_full_warp, so); }
  __device__ __forceinline__ int staged() const { return width; }

  /* All of them; k is 0 */
  template <int num>
  __device__ __forceinline__ void values(int, double padding, double (&value)[num]) const
  {
#pragma unroll
    for (int p = 0; p < num; ++p) value[p] = p < count ? own[p] : padding;
  }

  __device__ __forceinline__ void open(const tc_piece_rows &rows)
  {
    static_cast<tc_piece_rows &>(*this) = rows;
#pragma unroll
    for (int p = 0; p < tc_most_places; ++p) own[p] = p < count ? __ldg(csr_val + first + p) : 0.0;
  }

  __device__ __forceinline__ void fetch(int) { }
};
