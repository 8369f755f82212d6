#include "hybrid_host.h"
#include "../../kernels/tc_narrow.h"
#include "hybrid_unpack.h"
#include <math.h>
#include <string.h>

enum { GROUPS = TC_HYBRID_SLICE_ROWS / 8 }; // of eight rows, which go through the product side by side

/* What the product needs to know of a slice */
typedef struct {
  const double  *slots, *next; // next: the slots of the next slice, if there is one
  const int32_t *index, *row;
  const int16_t *exponent; // F16
  uint32_t       block_ints;
  int32_t        width, places, num_rows;
  uint8_t        index_kind, value_kind;
  int32_t        origin[TC_HYBRID_SLICE_ROWS];   // SHIFT: from that of lane 0
  int32_t        first;                          // SHIFT: that of lane 0
  uint8_t        length[TC_HYBRID_SLICE_ROWS];   // 0: no such row
  int32_t        whole[GROUPS], longest[GROUPS]; // entries of the shortest and the longest row of a group
} slice;

TC_INLINE void open_slice(const tc_hybrid *H, int32_t s, slice *A)
{
  const tc_hybrid_slice *S      = &H->slice[s];
  const uint8_t         *length = H->length + TC_HYBRID_SLICE_ROWS * s;

  A->slots      = (const double *)H->val + TC_HYBRID_SLICE_ROWS * (size_t)S->val;
  A->next       = s + 1 < H->num_slices ? A->slots + TC_HYBRID_SLICE_ROWS * (size_t)S->width : A->slots;
  A->index      = (const int32_t *)H->index + 4 * (size_t)S->index;
  A->row        = H->row_id + H->num_long + TC_HYBRID_SLICE_ROWS * s;
  A->width      = S->width;
  A->places     = tc_hybrid_places(S->width);
  A->num_rows   = S->num_rows;
  A->index_kind = S->index_kind;
  A->value_kind = S->value_kind;
  A->exponent   = S->value_kind == TC_HYBRID_F16 ? H->exponent + H->num_segments + TC_HYBRID_SLICE_ROWS * s : NULL;
  A->block_ints = 4 * tc_hybrid_block_units(S->index_kind, A->places);
  if (S->num_rows == TC_HYBRID_SLICE_ROWS) { // a number of bytes that the compiler knows
    memcpy(A->origin, A->row, sizeof A->origin);
    memcpy(A->length, length, sizeof A->length);
  } else {
    memset(A->origin, 0, sizeof A->origin);
    memset(A->length, 0, sizeof A->length);
    memcpy(A->origin, A->row, S->num_rows * sizeof *A->origin);
    memcpy(A->length, length, S->num_rows);
  }
  if (H->row_group > 1) {
    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) A->origin[lane] -= A->origin[lane] % H->row_group;
  }
  if (S->index_kind == TC_HYBRID_SHIFT) {
    A->first = A->origin[0];
    for (int lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) A->origin[lane] -= A->first;
  }
  for (int q = 0; q < GROUPS; ++q) {
    A->whole[q] = A->longest[q] = A->length[8 * q];
    for (int g = 1; g < 8 && !S->full; ++g) {
      A->whole[q]   = A->length[8 * q + g] < A->whole[q] ? A->length[8 * q + g] : A->whole[q];
      A->longest[q] = A->length[8 * q + g] > A->longest[q] ? A->length[8 * q + g] : A->longest[q];
    }
  }
}

/* Narrow values leave gaps between slices, at which processors stop to fetch ahead on their own: fetches a block of the next slice, k being its first entry */
TC_INLINE void fetch_next(const slice *A, int32_t k)
{
#if defined(__GNUC__)
  const size_t bytes = A->value_kind == TC_HYBRID_F32 ? 4 : A->value_kind == TC_HYBRID_D8 ? 1 : 2;

  for (size_t i = 0; i < TC_HYBRID_BLOCK * bytes; i += 64) TC_FETCH((const char *)A->next + TC_HYBRID_SLICE_ROWS * bytes * (size_t)k + i);
#else
  (void)A;
  (void)k;
#endif
}

/* The NEAR, below, of instruction sets that have no better one: every place follows the one before */
typedef struct {
  int fits;
} neighbours;
TC_INLINE neighbours make_neighbours(const int32_t *place)
{
  neighbours near = {1};

  for (int g = 1; g < 8; ++g) near.fits = near.fits && place[g] == place[0] + g;
  return near;
}

/*
  Eight doubles side by side, of eight rows. Each instruction set supplies the type and these operations; hybrid_host_loops.h does the rest.
    ZERO()                     eight zeros
    LOAD(from)                 eight doubles
    WIDEN(from)                eight floats, as doubles
    PICK(from, place)          from[place[g]] for eight places
    LOOK_UP(from, size, place) the same, places below `size`, `from` an array of at least sixteen
    FMA(a, b, c)               a * b + c, rounded once
    STORE(to, eight)
    MAKE_NEAR(place)           a NEAR: how to read eight ascending places without a gather; its member `fits` says whether that can be
    READ_NEAR(from, near)      from[place[g] - place[0]] with it
*/
#if defined(__x86_64__) && defined(__GNUC__)
  #define TC_HOST_X86 1
  #include <immintrin.h>

  #define TARGET __attribute__((target("avx512f,avx512vl,avx2,fma")))
  #define NAME(f) f##_avx512
typedef __m512d eight_avx512;
  #define EIGHT eight_avx512
TARGET TC_INLINE __m512d look_up_avx512(const double *from, int32_t size, const int32_t *place)
{
  const __m256i index = _mm256_loadu_si256((const __m256i *)place);

  return size <= 16 ? _mm512_permutex2var_pd(_mm512_loadu_pd(from), _mm512_cvtepi32_epi64(index), _mm512_loadu_pd(from + 8)) : _mm512_i32gather_pd(index, from, 8);
}
/* Places within two vectors: those are read as far as the last place, and permuted */
typedef struct {
  __m512i  index;
  __mmask8 low, high;
  int      fits;
} near_avx512;
  #define NEAR near_avx512
TARGET TC_INLINE near_avx512 make_near_avx512(const int32_t *place)
{
  const __m256i  index = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)place), _mm256_set1_epi32(place[0]));
  const uint32_t span = (uint32_t)(place[7] - place[0]), used = span < 16 ? (2u << span) - 1 : 0;

  return (near_avx512){_mm512_cvtepi32_epi64(index), (__mmask8)used, (__mmask8)(used >> 8), span < 16};
}
TARGET TC_INLINE __m512d read_near_avx512(const double *from, near_avx512 near)
{
  return _mm512_permutex2var_pd(_mm512_maskz_loadu_pd(near.low, from), near.index, _mm512_maskz_loadu_pd(near.high, from + 8));
}
  #define ZERO() _mm512_setzero_pd()
  #define LOAD(from) _mm512_loadu_pd(from)
  #define WIDEN(from) _mm512_cvtps_pd(_mm256_loadu_ps(from))
  #define PICK(from, place) _mm512_i32gather_pd(_mm256_loadu_si256((const __m256i *)(place)), from, 8)
  #define LOOK_UP(from, size, place) look_up_avx512(from, size, place)
  #define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
  #define STORE(to, eight) _mm512_storeu_pd(to, eight)
  #define MAKE_NEAR(place) make_near_avx512(place)
  #define READ_NEAR(from, near) read_near_avx512(from, near)
  #include "hybrid_host_loops.h"

  #define TARGET __attribute__((target("avx2,fma")))
  #define NAME(f) f##_avx2
typedef struct {
  __m256d low, high;
} eight_avx2;
  #define EIGHT eight_avx2
  #define ZERO() ((eight_avx2){_mm256_setzero_pd(), _mm256_setzero_pd()})
  #define LOAD(from) ((eight_avx2){_mm256_loadu_pd(from), _mm256_loadu_pd((from) + 4)})
  #define WIDEN(from) ((eight_avx2){_mm256_cvtps_pd(_mm_loadu_ps(from)), _mm256_cvtps_pd(_mm_loadu_ps((from) + 4))})
  #define PICK(from, place) ((eight_avx2){_mm256_i32gather_pd(from, _mm_loadu_si128((const __m128i *)(place)), 8), _mm256_i32gather_pd(from, _mm_loadu_si128((const __m128i *)((place) + 4)), 8)})
  #define LOOK_UP(from, size, place) PICK(from, place)
  #define FMA(a, b, c) ((eight_avx2){_mm256_fmadd_pd((a).low, (b).low, (c).low), _mm256_fmadd_pd((a).high, (b).high, (c).high)})
  #define NEAR neighbours
  #define MAKE_NEAR(place) make_neighbours(place)
  #define READ_NEAR(from, near) LOAD(from)
  #define STORE(to, eight) (_mm256_storeu_pd(to, (eight).low), _mm256_storeu_pd((to) + 4, (eight).high))
  #include "hybrid_host_loops.h"
#else
  #define TC_HOST_X86 0
#endif

#define TARGET
#define NAME(f) f##_portable
typedef struct {
  double of[8];
} eight_portable;
#define EIGHT eight_portable
TC_INLINE eight_portable load_portable(const double *from)
{
  eight_portable eight;

  memcpy(eight.of, from, sizeof eight.of);
  return eight;
}
TC_INLINE eight_portable widen_portable(const float *from)
{
  eight_portable eight;

  for (int g = 0; g < 8; ++g) eight.of[g] = from[g];
  return eight;
}
TC_INLINE eight_portable pick_portable(const double *from, const int32_t *place)
{
  eight_portable eight;

  for (int g = 0; g < 8; ++g) eight.of[g] = from[place[g]];
  return eight;
}
TC_INLINE eight_portable fma_portable(eight_portable a, eight_portable b, eight_portable c)
{
  for (int g = 0; g < 8; ++g) c.of[g] = fma(a.of[g], b.of[g], c.of[g]);
  return c;
}
#define ZERO() ((eight_portable){{0}})
#define LOAD(from) load_portable(from)
#define WIDEN(from) widen_portable(from)
#define PICK(from, place) pick_portable(from, place)
#define LOOK_UP(from, size, place) PICK(from, place)
#define FMA(a, b, c) fma_portable(a, b, c)
#define NEAR neighbours
#define MAKE_NEAR(place) make_neighbours(place)
#define READ_NEAR(from, near) LOAD(from)
#define STORE(to, eight) memcpy(to, (eight).of, sizeof(eight).of)
#include "hybrid_host_loops.h"

tc_status tc_hybrid_spmv_host(const void *view, const double *x, const double *y, double *z, int sign)
{
  TC_CHECK(((const tc_hybrid *)view)->num_by_rows == 0, TC_ERR_UNSUPPORTED, "product of the host with values by rows");
#if TC_HOST_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) spmv_avx512(view, x, y, z, sign);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) spmv_avx2(view, x, y, z, sign);
  else spmv_portable(view, x, y, z, sign);
#else
  spmv_portable(view, x, y, z, sign);
#endif
  return TC_OK;
}
