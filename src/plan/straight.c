#include "straight.h"
#include "spmv_host.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Milliseconds: once, per entry, per entry beyond the first NEAR, per row */
typedef struct {
  double once, entry, far, row;
} price;

/*
  What packing takes, new values included, and these where a pattern is packed, and what a packed product gains over one straight from CSR: docs/performance-uses.md. On the host, where the parent's products
  take as long as those straight from CSR, a packed one gains a twentieth where rows are short, since all it spares is to find out where they end, which is more than solves show, hence the threefold share, and half where that cannot be foretold, some 40% where they are not short, a tenth where
  they share their columns; beyond the caches memory is new or far, and only rows that share their columns gain, and short ones whose ends cannot be foretold.
*/
static const struct {
  double share; // of packing that may be lost before a new pattern is packed: on a device most matrices are made for a solver
  price  conversion, refill, gain;
} prices[][TC_STRAIGHT_UNKNOWN] = {
  /* A device: one H200 */
  {[TC_STRAIGHT_FORWARD]  = {0.5, {0.07, 4.0e-9, 4.0e-9, 3.0e-8}, {0.008, 4.2e-9, 4.2e-9, 0}, {0.001, 2.3e-9, 2.3e-9, 0}},
   [TC_STRAIGHT_PERMUTED] = {0.5, {0.07, 4.0e-9, 4.0e-9, 3.0e-8}, {0.012, 9.0e-9, 9.0e-9, 0}, {0.001, 5.5e-9, 5.5e-9, 0}}},
  /* The host: one core, Zen 4 */
  {[TC_STRAIGHT_FORWARD]     = {3, {0, 6.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.02e-6, 0.02e-6, 0.15e-6}},
   [TC_STRAIGHT_MIXED]       = {1, {0, 6.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.1e-6, 0.05e-6, 0.5e-6}},
   [TC_STRAIGHT_IRREGULAR]   = {1, {0, 6.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.02e-6, 0.02e-6, 4.0e-6}},
   [TC_STRAIGHT_PERMUTED]    = {1, {0, 2.2e-6, 6.0e-6, 8.0e-6}, {0, 1.0e-6, 5.0e-6, 0}, {0, 0.3e-6, 0.3e-6, 0.5e-6}},
   [TC_STRAIGHT_COLUMNS]     = {1, {0, 12e-6, 8.0e-6, 8.0e-6}, {0, 2.0e-6, 5.0e-6, 0}, {0, 0.25e-6, 0.25e-6, -0.5e-6}},
   [TC_STRAIGHT_NODES]       = {1, {0, 2.2e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.03e-6, 0.3e-6, 0}}},
  /* And where rows are not short, which gain alike */
  {[TC_STRAIGHT_FORWARD]     = {1, {0, 3.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.16e-6, 0.05e-6, 0}},
   [TC_STRAIGHT_MIXED]       = {1, {0, 3.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.16e-6, 0.05e-6, 0}},
   [TC_STRAIGHT_IRREGULAR]   = {1, {0, 3.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.16e-6, 0.05e-6, 0}},
   [TC_STRAIGHT_PERMUTED]    = {0.5, {0, 2.2e-6, 6.0e-6, 8.0e-6}, {0, 1.0e-6, 5.0e-6, 0}, {0, 0.3e-6, 0.3e-6, 0}},
   [TC_STRAIGHT_COLUMNS]     = {1, {0, 12e-6, 8.0e-6, 8.0e-6}, {0, 2.0e-6, 5.0e-6, 0}, {0, 0.2e-6, 0.2e-6, 0}},
   [TC_STRAIGHT_NODES]       = {1, {0, 3.0e-6, 6.0e-6, 8.0e-6}, {0, 0.6e-6, 2.5e-6, 0}, {0, 0.03e-6, 0.3e-6, 0}}},
};
enum {
  NOT_SHORT = 12,      // entries of the mean row
  NEAR      = 1000000, // entries of which a cache of the host keeps values while they are put where they belong
  TIMED     = 500000,  // entries from which on times decide
  SEEN      = 16,      // packed products whose least time is believed
  NODE      = 2,       // rows of the mean group that shares its columns, from which on they are multiplied together, ...
  OF_NODE   = 8,       // ... if the mean row has so many entries: rows without any share them, too; ...
  OF_NODES  = 3000000  // ... and all not more than so many: columns are skipped then, which memory likes less than reading them
};

static const double irregular = 0.5, mixed = 0.75; // shares of rows as long as one of the next two, up to which their ends cannot be foretold, or not always

static const double uneven = 0.002; // what a packed product gains more on a device where rows are uneven

static double price_of(const price *p, int64_t nnz, int32_t num_rows)
{
  const int64_t near = nnz < NEAR ? nnz : NEAR;

  return p->once + p->entry * (double)near + p->far * (double)(nnz - near) + p->row * num_rows;
}

static int same_pattern(const tc_key *a, const tc_key *b)
{
  return a->id == b->id && a->pattern == b->pattern && a->nnz == b->nnz;
}

static int same_values(const tc_key *a, const tc_key *b)
{
  return same_pattern(a, b) && a->state == b->state && a->values == b->values && a->generation == b->generation && a->holder == b->holder;
}

int tc_straight_serves(const tc_backend *backend, tc_scalar scalar)
{
  return scalar == TC_SCALAR_F64 || backend != tc_backend_host();
}

int tc_straight_is_ready(const tc_straight *S, const tc_backend *backend, const tc_key *key)
{
  return S->backend == backend && same_pattern(&S->laid_out, key);
}

int tc_straight_is_uneven(const tc_straight *S, const tc_backend *backend, const tc_key *key)
{
  return tc_straight_is_ready(S, backend, key) && tc_segments_told(&S->memory) > 0;
}

/* Of a transpose by a permutation new values alone wait, and only once two before had few products, since for that its pattern has to be there, too */
static int must_be_packed(const tc_straight *S, tc_verdict verdict, tc_straight_way way)
{
  return way == TC_STRAIGHT_PERMUTED && (verdict == TC_CACHE_REBUILD || S->seldom < 2);
}

tc_straight_way tc_straight_transposes(const tc_straight *S, const tc_key *key)
{
  return S->columns.known && same_pattern(&S->columns.key, key) ? S->columns.serve ? TC_STRAIGHT_COLUMNS : TC_STRAIGHT_PERMUTED : TC_STRAIGHT_UNKNOWN;
}

int tc_straight_wants_times(const tc_backend *backend, int64_t nnz)
{
  return backend == tc_backend_host() && nnz >= TIMED;
}

void tc_straight_timed(tc_straight *S, tc_straight_work work, double ms)
{
  if (S->timed[work].times++ == 0 || ms < S->timed[work].least_ms) S->timed[work].least_ms = ms;
}

int tc_straight_is_faster(const tc_straight *S, const tc_backend *backend, const tc_key *key)
{
  if (!tc_straight_wants_times(backend, key->nnz) || !same_pattern(&S->key, key)) return 0;
  return S->timed[TC_STRAIGHT_PACKED].times >= SEEN && S->timed[TC_STRAIGHT_PRODUCT].times > 0 && S->timed[TC_STRAIGHT_PRODUCT].least_ms < S->timed[TC_STRAIGHT_PACKED].least_ms;
}

static void forget_nodes(tc_straight *S)
{
  free(S->nodes.first);
  memset(&S->nodes, 0, sizeof S->nodes);
}

tc_straight_way tc_straight_multiplies(const tc_straight *S, const tc_key *key)
{
  if (!S->nodes.known || !same_pattern(&S->nodes.key, key)) return TC_STRAIGHT_UNKNOWN;
  if (S->nodes.first) return TC_STRAIGHT_NODES;
  return S->nodes.repeated <= irregular ? TC_STRAIGHT_IRREGULAR : S->nodes.repeated <= mixed ? TC_STRAIGHT_MIXED : TC_STRAIGHT_FORWARD;
}

tc_status tc_straight_keep_nodes(tc_straight *S, const tc_key *key, int32_t num_rows, double repeated, int32_t num, int32_t **first)
{
  forget_nodes(S);
  if (num > 0 && num <= num_rows / NODE && key->nnz >= OF_NODE * (int64_t)num_rows && key->nnz <= OF_NODES) {
    S->nodes.first = malloc(((size_t)num + 1) * sizeof *S->nodes.first);
    TC_CHECK(S->nodes.first != NULL, TC_ERR_MEMORY, "no host memory for %d groups of rows", num);
    S->nodes.num = num;
  }
  S->nodes.key      = *key;
  S->nodes.known    = 1;
  S->nodes.repeated = repeated;
  *first            = S->nodes.first;
  return TC_OK;
}

static void forget_columns(tc_straight *S)
{
  free(S->columns.sums);
  memset(&S->columns, 0, sizeof S->columns);
}

tc_status tc_straight_look(tc_straight *S, const tc_key *key, const tc_csr_local *rows)
{
  forget_columns(S);
  S->columns.sums = malloc(((size_t)rows->num_cols + 1) * (sizeof *S->columns.sums + sizeof *S->columns.kind)); // one array behind the other
  TC_CHECK(S->columns.sums != NULL, TC_ERR_MEMORY, "no host memory for sums of %d columns", rows->num_cols);
  S->columns.kind = (uint8_t *)(S->columns.sums + rows->num_cols + 1);
  TC_CALL(tc_spmv_csr_columns(rows, S->columns.kind, &S->columns.serve));
  S->columns.key   = *key;
  S->columns.known = 1;
  return TC_OK;
}

int tc_straight_pays(tc_straight *S, const tc_backend *backend, const tc_key *key, tc_verdict verdict, int64_t hits, int32_t num_rows, tc_straight_way way)
{
  const int    where   = backend != tc_backend_host() ? 0 : key->nnz < NOT_SHORT * (int64_t)num_rows ? 1 : 2;
  double       refill = price_of(&prices[where][way].refill, key->nnz, num_rows), gain = fmax(0, price_of(&prices[where][way].gain, key->nnz, num_rows));

  if (tc_straight_is_uneven(S, backend, key)) gain += uneven;
  if (!same_pattern(&S->key, key)) memset(S->timed, 0, sizeof S->timed);
  if (tc_straight_wants_times(backend, key->nnz) && S->timed[TC_STRAIGHT_PRODUCT].times > 0 && S->timed[TC_STRAIGHT_PACKED].times > 0 && S->timed[TC_STRAIGHT_REFILL].times > 0) {
    gain   = fmax(0, S->timed[TC_STRAIGHT_PRODUCT].least_ms - S->timed[TC_STRAIGHT_PACKED].least_ms);
    refill = S->timed[TC_STRAIGHT_REFILL].least_ms;
  }
  if (!S->asked || !same_values(&S->key, key)) {
    S->followed   = S->asked;
    S->asked      = 1;
    S->before_ms  = gain * (double)(S->products + hits - S->hits);
    S->seldom     = S->followed && S->before_ms < refill ? S->seldom + 1 : 0;
    S->pattern_ms = !same_pattern(&S->key, key) ? 0 : S->pattern_ms + fmax(0, S->missed_ms - refill);
    S->key        = *key;
    S->products   = 0;
    S->hits       = hits;
    S->missed_ms  = 0;
  }
  S->cost_ms = refill;
  if (verdict == TC_CACHE_REBUILD) S->cost_ms += fmax(0, prices[where][way].share * price_of(&prices[where][way].conversion, key->nnz, num_rows) - S->pattern_ms);
  S->missed_ms += gain;
  if (must_be_packed(S, verdict, way) || (S->followed && S->before_ms >= S->cost_ms) || S->missed_ms >= S->cost_ms) {
    S->hits       = hits - 1; // this one is packed, too
    S->pattern_ms = 0;
    S->missed_ms  = 0;
    return 1;
  }
  ++S->products;
  return 0;
}

static void release(tc_straight *S)
{
  if (S->backend == NULL) return;
  S->backend->release(S->memory.scratch);
  S->backend->unshare(S->memory.told); // all products have ended, as `scratch` has been released
  S->memory.scratch = NULL;
  S->memory.told    = NULL;
  S->backend        = NULL;
}

/* The memory of the products, empty, for another number of rows and entries; a number for another pattern */
static tc_status prepare(tc_straight *S, const tc_backend *backend, const tc_key *key, int32_t num_rows, tc_stream stream)
{
  const size_t bytes = backend->spmv_csr_scratch(num_rows, key->nnz);
  void        *told;

  if (S->backend != backend || S->num_rows != num_rows || S->laid_out.nnz != key->nnz) {
    release(S);
    TC_CALL(tc_from_backend(backend, backend->alloc(bytes, &S->memory.scratch)));
    S->backend  = backend; // for release()
    S->num_rows = num_rows;
    TC_CALL(tc_from_backend(backend, backend->share(&told)));
    S->memory.told  = told;
    S->memory.told[0] = S->memory.told[1] = 0;
    S->laid_out.id  = -1;
    if (bytes > 0) TC_CALL(tc_from_backend(backend, backend->zero(S->memory.scratch, bytes, stream)));
  }
  if (!same_pattern(&S->laid_out, key)) ++S->memory.pattern;
  S->laid_out = *key;
  return TC_OK;
}

tc_status tc_straight_multiply(tc_straight *S, const tc_backend *backend, const tc_key *key, const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  tc_status status = prepare(S, backend, key, A->rows->num_rows, stream);

  if (status == TC_OK) status = tc_from_backend(backend, backend->spmv_csr(A, x, y, z, sign, &S->memory, stream));
  if (status != TC_OK) release(S); // which may not be as the next product needs it
  else ++S->count;
  return status;
}

void tc_straight_release_cusparse(tc_straight *S)
{
  if (S->cusparse.kept) S->cusparse.backend->cusparse_release(S->cusparse.kept);
  memset(&S->cusparse, 0, sizeof S->cusparse);
}

/* For this pattern, where these arrays are? */
static int cusparse_is_ready(const tc_straight *S, const tc_backend *backend, const tc_key *key, const tc_csr_matrix *A)
{
  return S->cusparse.kept && S->cusparse.backend == backend && same_pattern(&S->cusparse.key, key) && S->cusparse.row_ptr == A->rows->row_ptr && S->cusparse.col == A->rows->col && S->cusparse.val == A->val;
}

tc_status tc_straight_multiply_cusparse(tc_straight *S, const tc_backend *backend, const tc_key *key, const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, tc_stream stream)
{
  TC_CHECK(backend->cusparse_prepare != NULL, TC_ERR_UNSUPPORTED, "backend %s has no cuSPARSE", backend->name);
  if (!cusparse_is_ready(S, backend, key, A)) {
    TC_CHECK(!backend->capturing(stream), TC_ERR_UNSUPPORTED, "cuSPARSE cannot be prepared for a matrix while a stream is captured");
    tc_straight_release_cusparse(S);
    TC_CALL(tc_from_backend(backend, backend->cusparse_prepare(A, x, z, &S->cusparse.kept, stream)));
    S->cusparse.backend = backend;
    S->cusparse.row_ptr = A->rows->row_ptr;
    S->cusparse.col     = A->rows->col;
    S->cusparse.val     = A->val;
    S->cusparse.key     = *key;
  }
  return tc_from_backend(backend, backend->cusparse_multiply(S->cusparse.kept, x, y, z, sign, stream));
}

void tc_straight_reset(tc_straight *S)
{
  const int64_t count = S->count;

  release(S);
  tc_straight_release_cusparse(S);
  forget_columns(S);
  forget_nodes(S);
  memset(S, 0, sizeof *S);
  S->count = count;
}
