#include "dasp_host.h"
#include "../../kernels/tc_dasp.h"
#include "host_rows.h"
#include <math.h>
#include <string.h>

enum {
  AHEAD = 512,    // slots
  FAR   = 1000000 // slots that caches no longer hold
};

/* Is what a product reads of x in the nearest caches? Most of it is where neighbouring rows have neighbouring columns, all of it where x is small. */
static int x_is_near(const tc_dasp *D)
{
  return D->scattered < 0.5F || D->num_cols <= 49152;
}

/* Tile rows of short rows: their first slot, how many, and where row_id names the rows of the matrix */
typedef struct {
  int64_t slot;
  int32_t num, row;
} tc_dasp_section;

/*
  Eight sums side by side, one for each row of a tile. Each instruction set supplies the type and these operations; dasp_host_loops.h does the rest.
    ZERO()               eight zeros
    STEP(sum, val, col)  fma(val[g], x[col[g]], sum[g]) for the eight slots from there on, with x taken as 0 where col[g] is padding
    PADDING(col)         which of those eight are padding, a bit for each; 1 where FULL is no better than STEP
    FULL(sum, val, col)  STEP where none is padding
    LOAD(from)           eight doubles
    STORE(to, sum)
*/
#if defined(__x86_64__) && defined(__GNUC__)
  #define TC_HOST_X86 1
  #include <immintrin.h>

__attribute__((target("avx2"))) static inline int padding_of(const int32_t *col)
{
  return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)col)));
}

/* Two columns by one load: of loads a processor has few at a time */
static inline uint64_t two_columns(const int32_t *col)
{
  uint64_t two;

  memcpy(&two, col, sizeof two);
  return two;
}

/*
  Four elements of x, each by a load of its own. Where they are in the nearest caches that takes 0.6 of the time of a gather instruction (Zen 4; more where microcode guards it);
  where they are not, the gather has more of them under way at a time.
*/
__attribute__((target("avx2"))) static inline __m256d pick4(const double *x, const int32_t *col)
{
  const uint64_t first = two_columns(col), last = two_columns(col + 2);
  const __m128d  low   = _mm_loadh_pd(_mm_load_sd(x + (uint32_t)first), x + (first >> 32));
  const __m128d  high  = _mm_loadh_pd(_mm_load_sd(x + (uint32_t)last), x + (last >> 32));

  return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}

  #define TARGET __attribute__((target("avx512f,avx512vl,avx2,fma")))
  #define NAME(f) f##_avx512
typedef __m512d sums_avx512;
  #define SUMS sums_avx512
  #define ZERO() _mm512_setzero_pd()
TARGET static inline __m512d step_avx512(__m512d sum, const double *val, const int32_t *col, const double *x)
{
  const __m256i index = _mm256_loadu_si256((const __m256i *)col);

  return _mm512_fmadd_pd(_mm512_loadu_pd(val), _mm512_mask_i32gather_pd(_mm512_setzero_pd(), _mm256_cmpge_epi32_mask(index, _mm256_setzero_si256()), index, x, 8), sum);
}
TARGET static inline __m512d full_avx512(__m512d sum, const double *val, const int32_t *col, const double *x)
{
  return _mm512_fmadd_pd(_mm512_loadu_pd(val), _mm512_insertf64x4(_mm512_castpd256_pd512(pick4(x, col)), pick4(x, col + 4), 1), sum);
}
  #define STEP(sum, val, col) step_avx512(sum, val, col, x)
  #define PADDING(col) padding_of(col)
  #define FULL(sum, val, col) full_avx512(sum, val, col, x)
  #define LOAD(from) _mm512_loadu_pd(from)
  #define STORE(to, sum) _mm512_storeu_pd(to, sum)
  #include "dasp_host_loops.h"

  #define TARGET __attribute__((target("avx2,fma")))
  #define NAME(f) f##_avx2
typedef struct {
  __m256d low, high;
} sums_avx2;
  #define SUMS sums_avx2
TARGET static inline sums_avx2 zero_avx2(void)
{
  return (sums_avx2){_mm256_setzero_pd(), _mm256_setzero_pd()};
}
TARGET static inline __m256d step4_avx2(__m256d sum, const double *val, const int32_t *col, const double *x)
{
  const __m128i index = _mm_loadu_si128((const __m128i *)col);
  const __m256d used  = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_cmpgt_epi32(index, _mm_set1_epi32(-1))));

  return _mm256_fmadd_pd(_mm256_loadu_pd(val), _mm256_mask_i32gather_pd(_mm256_setzero_pd(), x, index, used, 8), sum);
}
TARGET static inline sums_avx2 step_avx2(sums_avx2 sum, const double *val, const int32_t *col, const double *x)
{
  return (sums_avx2){step4_avx2(sum.low, val, col, x), step4_avx2(sum.high, val + 4, col + 4, x)};
}
TARGET static inline sums_avx2 full_avx2(sums_avx2 sum, const double *val, const int32_t *col, const double *x)
{
  return (sums_avx2){_mm256_fmadd_pd(_mm256_loadu_pd(val), pick4(x, col), sum.low), _mm256_fmadd_pd(_mm256_loadu_pd(val + 4), pick4(x, col + 4), sum.high)};
}
  #define ZERO() zero_avx2()
  #define STEP(sum, val, col) step_avx2(sum, val, col, x)
  #define PADDING(col) padding_of(col)
  #define FULL(sum, val, col) full_avx2(sum, val, col, x)
  #define LOAD(from) ((sums_avx2){_mm256_loadu_pd(from), _mm256_loadu_pd((from) + 4)})
  #define STORE(to, sum) (_mm256_storeu_pd(to, (sum).low), _mm256_storeu_pd((to) + 4, (sum).high))
  #include "dasp_host_loops.h"
#else
  #define TC_HOST_X86 0
#endif

#define TARGET
#define NAME(f) f##_portable
typedef struct {
  double of[TC_DASP_TILE_ROWS];
} sums_portable;
#define SUMS sums_portable
static inline sums_portable step_portable(sums_portable sum, const double *val, const int32_t *col, const double *x)
{
  for (int g = 0; g < TC_DASP_TILE_ROWS; ++g) sum.of[g] = fma(val[g], col[g] >= 0 ? x[col[g]] : 0.0, sum.of[g]);
  return sum;
}
static inline sums_portable load_portable(const double *from)
{
  sums_portable sums;

  memcpy(sums.of, from, sizeof sums.of);
  return sums;
}
#define ZERO() ((sums_portable){{0}})
#define STEP(sum, val, col) step_portable(sum, val, col, x)
#define PADDING(col) 1
#define FULL(sum, val, col) STEP(sum, val, col)
#define LOAD(from) load_portable(from)
#define STORE(to, sum) memcpy(to, (sum).of, sizeof(sum).of)
#include "dasp_host_loops.h"

tc_status tc_dasp_spmv_host(const void *view, const double *x, const double *y, double *z, int sign)
{
#if TC_HOST_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) spmv_avx512(view, x, y, z, sign);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) spmv_avx2(view, x, y, z, sign);
  else spmv_portable(view, x, y, z, sign);
#else
  spmv_portable(view, x, y, z, sign);
#endif
  return TC_OK;
}
