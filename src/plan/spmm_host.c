#include "spmm_host.h"
#include "../format/narrow_host.h"
#include "survey.h"
#include <math.h>
#include <string.h>

enum {
  WIDTH       = 8,      // columns of a panel: as many sums side by side
  PANELS      = 4,      // panels at most that go at once where they are not packed
  FEW         = 4,      // columns at most that go without a panel, ...
  TOGETHER    = 3,      // ... for which so many rows at most are summed up side by side, ...
  SIDE_MEAN   = 32,     // ... if the mean row has so many entries
  PAIR_MEAN   = 24,     // entries of the mean row from which two rows go through a panel side by side
  PANEL_MEAN  = 16,     // entries of the mean row from which four columns are worth a panel, ...
  FAR_MEAN    = 24,     // ... or one that does not stay near, ...
  NEAR_ROWS   = 32768,  // ... in 2 MB, as one of so many rows does
  WIDE_ROWS   = 131072, // rows of B at most, 8 MB of 8 columns, for which these go at once without a panel
  BLOCK       = 8,      // entries of each of them for which what comes ...
  AHEAD       = 512,    // ... so many entries later, of all rows together, is fetched at once
  TILE_ROWS   = 8,      // rows whose sums are turned from rows into columns at a time
  CACHED_ROWS = 64
};

/*
  How many of the next n columns go through a panel. Packing one costs what a few entries of every row of A and of B cost: rows of 4 entries lose a fifth by it, those of 7 are
  even, those of 26 gain half and more. Where B has many more rows than A, a panel of 8 columns is worth it from 3 or 4 entries to a row of B on (lp:20000 with 8 columns 5.3 ms instead of 6.4, restriction:30 2.6
  and 2.6), one of which half is empty is not (with 4 columns 4.6 instead of 2.4, and 2.1 instead of 0.9). AMD EPYC with AVX-512, tcbench spmm -host.
*/
static int32_t panel_columns(const tc_csr_view *A, int32_t n)
{
  const int64_t rows = A->num_rows, both = A->num_cols > rows ? A->num_cols : rows;
  const int     few = A->nnz >= (A->num_cols <= NEAR_ROWS ? PANEL_MEAN : FAR_MEAN) * both ? FEW - 1 : FEW;

  if (n <= few || A->nnz < 6 * rows || A->nnz < (n < WIDTH ? 6 : 3) * (int64_t)A->num_cols) return 0;
  return n < WIDTH ? n : WIDTH;
}

/*
  Do 8 columns go at once where none go through a panel? Where lengths cannot be foretold, as few rows are as long as one of the two behind them, a processor finds out where each row ends when it is there,
  once for all columns that are under way, so that 8 are better than twice 4: webbase:100000 with 8 columns 2.1 ms instead of 2.8 (60% of the rows are), like_scircuit:60000 1.25 and 1.65 (41%). Where they can, there are 8 times as many
  places in memory to follow as a row has: four:300 with 32 columns 4.3 to 5.4 ms instead of 3.5 (99%), interpolation:20 2.7 and 2.25 (96%). Where B is long, these places are in as many pages: circuit:400000
  with 8 columns 45 to 50 ms instead of 26, like_ASIC_680k:200000 8.4 and 7.6. Same processor.
*/
static int goes_wide(const tc_csr_view *A)
{
  return A->num_cols <= WIDE_ROWS && tc_repeated_lengths(A->row_ptr, 0, A->num_rows) < 0.75;
}

/* Hides from the compiler how a number or a pointer came about, from which it would make the next one at every use, in place of a register for each */
#ifdef __GNUC__
  #define KEEP(value) __asm__("" : "+r"(value))
#else
  #define KEEP(value) (void)(value)
#endif

/* C = A B or C += A B for columns that go without a panel */
typedef struct {
  const tc_csr_view *A;
  const double      *b;
  int64_t            ldb;
  double            *c;
  int64_t            ldc;
  int                add;
} few_columns;

/* By what the sums of the columns of a panel are multiplied, one after the other */
typedef struct {
  double first[WIDTH], second[WIDTH];
} panel_scales;

/* n <= WIDTH columns of a block, rounded, as a panel (spmm_host_loops.h) */
static void pack_narrow(tc_precision precision, int32_t rows, int32_t n, const double *b, int64_t ldb, double *restrict panel, panel_scales *scales)
{
  for (int32_t j = 0; j < WIDTH; ++j) {
    const int exponent = j < n ? tc_scale_of_column(precision, rows, b + j * ldb) : 0;

    for (int32_t k = 0; k < rows; ++k) panel[WIDTH * (int64_t)k + j] = j < n ? tc_narrow_element(precision, b[k + j * ldb], exponent) : 0.0;
    scales->first[j]  = tc_power_of_two(exponent / 2);
    scales->second[j] = tc_power_of_two(exponent - exponent / 2);
  }
}

/*
  Each instruction set supplies WIDTH sums side by side and their operations; spmm_host_loops.h does the rest.
    ZERO(), LOAD(from)       WIDTH doubles
    STEP(sum, val, from)     fma(val, from[j], sum[j])
    ADD(a, b), MULTIPLY(a, b), STORE(to, a)
*/
#if defined(__x86_64__) && defined(__GNUC__)
  #define TC_HOST_X86 1
  #include <immintrin.h>

  #define TARGET __attribute__((target("avx512f,avx512vl,avx2,fma")))
  #define NAME(f) f##_avx512
  #define SUMS __m512d
  #define ZERO() _mm512_setzero_pd()
  #define LOAD(from) _mm512_loadu_pd(from)
  #define STEP(sum, val, from) _mm512_fmadd_pd(_mm512_set1_pd(val), _mm512_loadu_pd(from), sum)
  #define ADD(a, b) _mm512_add_pd(a, b)
  #define MULTIPLY(a, b) _mm512_mul_pd(a, b)
  #define STORE(to, a) _mm512_storeu_pd(to, a)
  #include "spmm_host_loops.h"

  #define TARGET __attribute__((target("avx2,fma")))
  #define NAME(f) f##_avx2
typedef struct {
  __m256d low, high;
} sums_avx2;
  #define SUMS sums_avx2
TARGET static inline sums_avx2 load_avx2(const double *from)
{
  return (sums_avx2){_mm256_loadu_pd(from), _mm256_loadu_pd(from + 4)};
}
TARGET static inline sums_avx2 step_avx2(sums_avx2 sum, double val, const double *from)
{
  const __m256d factor = _mm256_set1_pd(val);

  return (sums_avx2){_mm256_fmadd_pd(factor, _mm256_loadu_pd(from), sum.low), _mm256_fmadd_pd(factor, _mm256_loadu_pd(from + 4), sum.high)};
}
TARGET static inline sums_avx2 add_avx2(sums_avx2 a, sums_avx2 b)
{
  return (sums_avx2){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}
TARGET static inline sums_avx2 multiply_avx2(sums_avx2 a, sums_avx2 b)
{
  return (sums_avx2){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
}
  #define ZERO() ((sums_avx2){_mm256_setzero_pd(), _mm256_setzero_pd()})
  #define LOAD(from) load_avx2(from)
  #define STEP(sum, val, from) step_avx2(sum, val, from)
  #define ADD(a, b) add_avx2(a, b)
  #define MULTIPLY(a, b) multiply_avx2(a, b)
  #define STORE(to, a) (_mm256_storeu_pd(to, (a).low), _mm256_storeu_pd((to) + 4, (a).high))
  #include "spmm_host_loops.h"
#else
  #define TC_HOST_X86 0
#endif

#define TARGET
#define NAME(f) f##_portable
typedef struct {
  double of[WIDTH];
} sums_portable;
#define SUMS sums_portable
static inline sums_portable load_portable(const double *from)
{
  sums_portable a;

  memcpy(&a, from, sizeof a);
  return a;
}
static inline sums_portable step_portable(sums_portable sum, double val, const double *from)
{
  for (int j = 0; j < WIDTH; ++j) sum.of[j] = fma(val, from[j], sum.of[j]);
  return sum;
}
static inline sums_portable add_portable(sums_portable a, sums_portable b)
{
  for (int j = 0; j < WIDTH; ++j) a.of[j] += b.of[j];
  return a;
}
static inline sums_portable multiply_portable(sums_portable a, sums_portable b)
{
  for (int j = 0; j < WIDTH; ++j) a.of[j] *= b.of[j];
  return a;
}
static inline void store_portable(double *to, sums_portable a)
{
  memcpy(to, &a, sizeof a);
}
#define ZERO() ((sums_portable){{0}})
#define LOAD(from) load_portable(from)
#define STEP(sum, val, from) step_portable(sum, val, from)
#define ADD(a, b) add_portable(a, b)
#define MULTIPLY(a, b) multiply_portable(a, b)
#define STORE(to, a) store_portable(to, a)
#include "spmm_host_loops.h"

/* The loops for this processor */
#if TC_HOST_X86
  #define DISPATCH(f, ...) \
    do { \
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) f##_avx512(__VA_ARGS__); \
      else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) f##_avx2(__VA_ARGS__); \
      else f##_portable(__VA_ARGS__); \
    } while (0)
#else
  #define DISPATCH(f, ...) f##_portable(__VA_ARGS__)
#endif

size_t tc_spmm_csr_host_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_csr_view *A = view;

  return panel_columns(A, args->n) > 0 ? sizeof(double) * WIDTH * (size_t)A->num_cols : 0;
}

tc_status tc_spmm_csr_host(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  DISPATCH(product, view, args);
  return TC_OK;
}

size_t tc_spmm_csr_narrow_host_scratch(const void *view, const tc_spmm_args *args)
{
  (void)args;
  return sizeof(double) * WIDTH * (size_t)((const tc_csr_view *)view)->num_cols;
}

tc_status tc_spmm_csr_f32_host(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  DISPATCH(narrow_product, view, args, TC_PRECISION_F32);
  return TC_OK;
}

tc_status tc_spmm_csr_bf16_host(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  DISPATCH(narrow_product, view, args, TC_PRECISION_BF16);
  return TC_OK;
}

tc_status tc_spmm_csr_f16_host(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  DISPATCH(narrow_product, view, args, TC_PRECISION_F16);
  return TC_OK;
}

size_t tc_spmm_csr_transposed_host_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_csr_transposed_view *T = view;

  return sizeof(double) * (args->n > FEW ? WIDTH : (size_t)args->n) * ((size_t)T->csr.num_cols + (size_t)T->num_long);
}

tc_status tc_spmm_csr_transposed_host(const void *view, const tc_spmm_args *args, void *stream)
{
  (void)stream;
  DISPATCH(transposed_product, view, args);
  return TC_OK;
}
