#include "choose.h"
#include "../../kernels/tc_hybrid.h"
#include "scalar.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
  When scalar arithmetic beats tensor-core fragments on a device. A fragment spreads a row over four lanes, a scalar lane owns one: the latter wins on short rows
  and, given enough rows to fill the device, where gathers do not coalesce, but one long row holds its whole warp up.
  Measured with tcbench on an H200, `tcbench spmv -ways hybrid_mma,hybrid_fma,dasp_mma,dasp_fma` (docs/performance-spmv.md, docs/performance-dasp.md); sm_80 follows it unmeasured. Devices that are
  not listed have scalar lanes: no FP64 tensor cores worth using, or nobody has measured.
*/
typedef struct {
  int sm;
  struct {
    int32_t longest_row;    // scalar only if there are rows of tiles and none is longer
    double  mean_row;       // scalar if the mean is at most this
    double  scattered;      // or if at least this share of the entries is scattered
    int64_t scattered_rows; // and there are so many rows of tiles
  } dasp;
  struct {
    double  entry_us;    // a lane needs per entry of its row, latency included
    double  bytes_us;    // bytes that the device moves per microsecond
    double  least_us;    // no product is faster
    double  cusparse_us; // nor one of cuSPARSE's, which takes the host as long; the fastest case of docs/gpu-report.md takes 5.4 where nothing of PETSc is around it
    double  share;       // scalar if the longest sliced row takes one lane at most this share of the product's time,
    double  cached;      // or this one where the matrix stays in the L2 cache and that row
    int32_t short_row;   // has no more entries,
    double  cached_long; // or this one where it has more, but columns
    double  columns;     // no more bytes a slot
    int64_t cache_bytes;
  } hybrid;
} policy;

static const policy policies[] = {
  {80, {40, 8.0, 0.5, 400000}, {0.15, 1.4e6, 3.0, 5.5, 0.4, 1.2, 32, 0.9, 2, 41943040}},
  {90, {40, 8.0, 0.5, 400000}, {0.15, 4.3e6, 3.0, 5.5, 0.4, 1.2, 32, 0.9, 2, 62914560}},
};

static const double largest_cache = 64e6; // bytes, of the devices in the table

static const policy *find_policy(int sm)
{
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; ++i) {
    if (policies[i].sm == sm) return &policies[i];
  }
  return NULL;
}

static int scalar_dasp(const policy *P, const tc_stats *S, char *why)
{
  if (why != NULL) snprintf(why, TC_MAX_WHY, "tile rows: %lld, mean %.1f, longest %d, scattered %.0f%%", (long long)S->num_tile_rows, S->mean_tile_row, S->longest_tile_row, 100 * S->scattered);
  if (S->num_tile_rows == 0 || S->longest_tile_row > P->dasp.longest_row) return 0;
  return S->mean_tile_row <= P->dasp.mean_row || (S->scattered >= P->dasp.scattered && S->num_tile_rows >= P->dasp.scattered_rows);
}

/* Does the matrix stay in the L2 cache with so many bytes a value? */
static int fits(const policy *P, const tc_stats *S, int32_t slot_bytes)
{
  return tc_hybrid_fits_cache(S->product_bytes + (slot_bytes - S->slot_bytes) * S->num_slots, P->hybrid.cache_bytes);
}

/*
  The product takes what its bytes take, about 10 per entry and 20 per row. From the cache a lane waits less for each entry, and fragments are ahead while one wave of thread blocks has
  all slices, or rows are so long that a lane takes longer than two waves. Kernel alone on one H200, us, mma and fma, and the share that a lane of the longest row has. Rows of 27: stencil27:36 3.5, 4.7 (1.35), :38 5.1,
  4.5 (1.15), :40 5.5, 4.9 (0.98), :48 8.6, 6.0 (0.56); restriction:36 3.5, 4.8 (1.32), :40 5.1, 4.9 (0.96), :50 8.7, 6.0 (0.49). Longer ones: qcd:12 6.0, 6.4 (0.99), :13 8.4, 7.6 (0.72); elasticity:27 8.7, 11.7 (1.15),
  :28 9.6, 13.1 (1.03), :29 13.6, 16.4 (0.93); ex56:26 8.4, 10.4 (1.15), :28 10.0, 10.0 (0.92), :30 11.3, 10.9 (0.75), :35 17.7, 12.9 (0.47); elasticity_f32:30 9.8, 8.4 (0.83); p2:26 11.3, 12.1 (0.94); with fp32
  elasticity:32 11.7, 10.2 (0.68), p2:30 13.7, 12.2 (0.62), and with columns of 2 bytes, whose blocks are larger, like_consph 11.8, 14.9 (0.85). Missed: convection:60 5.4, 6.0 (0.25). From memory, by
  docs/gpu-report.json of 2026-11-23, ms: ex56:35 0.0244, 0.0270 (0.47); p2:48 0.0643, 0.0578 (0.29), stokes:40 0.0529, 0.0552 (0.28), elasticity_f32:48 0.0429, 0.0374 (0.20), ex56:49
  0.0463, 0.0339 (0.17), elasticity:64 0.1232, 0.1179 (0.08).
*/
static int scalar_hybrid(const policy *P, const tc_stats *S, char *why)
{
  const double row_us = P->hybrid.entry_us * S->longest_tile_row, bytes_us = (10.0 * (double)S->num_nonzeros + 20.0 * (double)S->num_nonempty_rows) / P->hybrid.bytes_us;
  const double all_us = bytes_us > P->hybrid.least_us ? bytes_us : P->hybrid.least_us;
  const int    cached = fits(P, S, S->slot_bytes), tight = (double)S->column_bytes <= P->hybrid.columns * (double)S->num_slots;
  const double share  = !cached ? P->hybrid.share : S->longest_tile_row <= P->hybrid.short_row ? P->hybrid.cached : tight ? P->hybrid.cached_long : P->hybrid.share;

  if (why != NULL) snprintf(why, TC_MAX_WHY, "longest sliced row %d, %.1f us for one lane; product about %.1f us, %s", S->longest_tile_row, row_us, all_us, !cached ? "not cached" : fits(P, S, 8) ? "cached" : "cached since values are narrow");
  return row_us <= share * all_us;
}

int tc_choose_depends_on_values(int sm, const tc_stats *S)
{
  const policy *P     = find_policy(sm);
  tc_stats      codes = *S;

  codes.slot_bytes = TC_HYBRID_CODE_BYTES;
  codes.product_bytes -= (S->slot_bytes - codes.slot_bytes) * S->num_slots;
  return P != NULL && scalar_hybrid(P, S, NULL) != scalar_hybrid(P, &codes, NULL);
}

double tc_choose_cusparse_floor_ms(int sm, tc_scalar scalar, const tc_stats *S)
{
  const policy *P     = find_policy(sm);
  const double  value = (double)tc_scalar_bytes(scalar), bytes = (value + 4) * (double)S->num_nonzeros + (2 * value + 4) * (double)S->num_nonempty_rows;

  if (P == NULL) return 0;
  return fmax(P->hybrid.cusparse_us, bytes < largest_cache ? 0 : bytes / P->hybrid.bytes_us) / 1000;
}

/*
  On the 75 cases of docs/gpu-report.json that are ours, with vectors from the product before: products of ours are within 18% in the mean of |log|, those of aijcusparse 10%, and the number
  of products after which a conversion is paid off within a factor of 1.6 in the geometric mean. It is far off where x is what takes the time, circuit_3m and like_in-2004 (5 times as many),
  and where the pool of memory has to grow, long_60k (11 times).
*/
int tc_choose_by_model(int sm, tc_scalar scalar, const tc_stats *S, int64_t value_bytes, tc_modelled *model)
{
  const double  launch_us = 3.75, parent_us = 8.5, parents_share = 0.75; // of the device's bandwidth
  const double  once_us = 180, entry_us = 3e-6, row_us = 4e-5;           // a conversion, on an H200
  const policy *P     = find_policy(sm), *measured = find_policy(90);
  const double  value = (double)tc_scalar_bytes(scalar);

  if (P == NULL || S->product_bytes == 0) return 0;
  model->ours_ms       = (launch_us + (double)(S->product_bytes - S->slot_bytes * S->num_slots + value_bytes) / P->hybrid.bytes_us) / 1000;
  model->theirs_ms     = (parent_us + ((value + 4) * (double)S->num_nonzeros + (2 * value + 4) * (double)S->num_nonempty_rows) / (parents_share * P->hybrid.bytes_us)) / 1000;
  model->conversion_ms = (once_us + (entry_us * (double)S->num_nonzeros + row_us * (double)S->num_nonempty_rows) * measured->hybrid.bytes_us / P->hybrid.bytes_us) / 1000;
  model->break_even    = model->ours_ms < model->theirs_ms ? model->conversion_ms / (model->theirs_ms - model->ours_ms) : 0;
  return 1;
}

int tc_choose_collect_after(const tc_stats *S)
{
  return 8 * (double)S->num_slots > largest_cache ? TC_COLLECT_AFTER : 0;
}

int tc_choose_in_doubt(const tc_stats *S)
{
  return S->column_bytes > 2 * S->num_nonzeros && 2 * S->index_bytes > 5 * S->num_nonzeros;
}

static tc_arithmetic by_policy(int sm, const char *format, const tc_stats *S, char *why)
{
  const policy *P = find_policy(sm);

  if (P == NULL) {
    if (why != NULL) snprintf(why, TC_MAX_WHY, "nothing measured on sm_%d", sm);
    return TC_ARITHMETIC_FMA;
  }
  return (strcmp(format, "hybrid") == 0 ? scalar_hybrid : scalar_dasp)(P, S, why) ? TC_ARITHMETIC_FMA : TC_ARITHMETIC_MMA;
}

const char *tc_choose_format(int sm, tc_precision precision)
{
  return sm == 0 && precision == TC_PRECISION_F64 ? "dasp" : "hybrid";
}

static tc_status no_spmv(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  (void)view, (void)x, (void)y, (void)z, (void)sign, (void)early, (void)stream;
  return tc_fail(TC_ERR_UNSUPPORTED, "product of a vector with a format for dense blocks");
}

/* What plans of formats for dense blocks have in place of a kernel */
static const tc_kernel dense_only[] = {
  {"none", TC_OP_SPMV, "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F16, 0, no_spmv, TC_SCALAR_F64},
  {"none", TC_OP_SPMV, "bcsr",   TC_ARITHMETIC_MMA, TC_PRECISION_F16, 0, no_spmv, TC_SCALAR_F64},
};

static const tc_kernel *find_dense_only(const char *format)
{
  for (size_t i = 0; i < sizeof dense_only / sizeof dense_only[0]; ++i) {
    if (strcmp(dense_only[i].format, format) == 0) return &dense_only[i];
  }
  return NULL;
}

tc_status tc_choose_kernel(const tc_backend *backend, int sm, const char *format, tc_arithmetic asked, tc_precision precision, tc_scalar scalar, const tc_stats *stats, const tc_kernel **kernel, char *why)
{
  static const char *const names[] = {[TC_ARITHMETIC_MMA] = "mma", [TC_ARITHMETIC_FMA] = "fma", [TC_ARITHMETIC_HOST] = "host"};
  tc_arithmetic            arithmetic;
  int                      num;
  const tc_kernel         *kernels = backend->kernels(&num);

  *kernel = find_dense_only(format);
  if (*kernel != NULL) {
    if (why != NULL) snprintf(why, TC_MAX_WHY, "for dense blocks");
    return TC_OK;
  }
  if (sm == 0) {
    arithmetic = TC_ARITHMETIC_HOST;
    if (why != NULL) snprintf(why, TC_MAX_WHY, "host backend");
  } else if (asked != TC_ARITHMETIC_AUTO) {
    arithmetic = asked;
    if (why != NULL) snprintf(why, TC_MAX_WHY, "asked for");
  } else arithmetic = by_policy(sm, format, stats, why);
  for (int i = 0; i < num; ++i) {
    const int serves = kernels[i].op == TC_OP_SPMV && strcmp(kernels[i].format, format) == 0 && kernels[i].arithmetic == arithmetic && precision <= kernels[i].precision && sm >= kernels[i].min_sm;

    if (serves && (kernels[i].scalar == scalar || kernels[i].scalar == TC_SCALAR_F64) && (*kernel == NULL || (kernels[i].scalar == scalar && (*kernel)->scalar != scalar))) *kernel = &kernels[i];
  }
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no %s kernel for format %s on backend %s, sm_%d", names[arithmetic], format, backend->name, sm);
  return TC_OK;
}

int tc_choose_timed_products(double product_ms)
{
  const double group_ms = 0.2; // the clock of the device, and gaps between its launches, are a few microseconds
  const int    most     = 20;

  return product_ms * most <= group_ms ? most : product_ms >= group_ms ? 1 : (int)ceil(group_ms / product_ms);
}

/* The fastest of them; `gap` becomes how far behind the next one is, 0 where there is none */
static double least(int num, const double of[], double *gap)
{
  double smallest = of[0], next = of[0];

  for (int i = 1; i < num; ++i) {
    const double slower = fmax(smallest, of[i]);

    next     = i == 1 ? slower : fmin(next, slower);
    smallest = fmin(smallest, of[i]);
  }
  *gap = next - smallest;
  return smallest;
}

void tc_choose_by_time(int rounds, const double ours_ms[], const double theirs_ms[], double conversion_ms, tc_trial *trial)
{
  const double settled = 1.1, most = 0.01 * TC_TRIAL_NOISE;
  double       our_gap, their_gap;

  *trial            = (tc_trial){.ours_ms = least(rounds, ours_ms, &our_gap), .theirs_ms = least(rounds, theirs_ms, &their_gap)};
  trial->noise_ms   = fmin(fmax(our_gap, their_gap), most * trial->ours_ms);
  trial->theirs     = trial->theirs_ms + trial->noise_ms < trial->ours_ms; // within it the bits decide, which are the same everywhere only on our side
  trial->settled    = settled * trial->ours_ms < trial->theirs_ms;
  trial->break_even = trial->ours_ms < trial->theirs_ms ? conversion_ms / (trial->theirs_ms - trial->ours_ms) : 0;
}
