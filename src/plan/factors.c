#include "factors.h"
#include "scalar.h"
#include "sweeps.h"
#include <stdlib.h>

/* Of blocks of vectors */
enum {
  LANES          = 32,      // of a warp, a column each
  SECTOR         = 8,       // numbers: 32 bytes of floats, 64 of doubles
  FEWEST_COLUMNS = 3,       // that go together
  BLOCK_BYTES    = 256 << 20 // of the columns that go together, if they are more than LANES
};

/* Rows that are solved with: those of the factor, or of its transpose */
typedef struct {
  void           *memory; // of all arrays but those of the orders; NULL: there is nothing
  tc_csr_local    rows;
  tc_sweep_orders orders;
  void           *val;
  int32_t        *perm; // of the transpose: which entry of the factor each one is
  int             current; // are they of the numbers of the factor?
} factor_rows;

/* Orders of rows and columns that are not the matrix's, each from the outside in, and back */
typedef struct {
  int32_t *rows, *cols, *rows_back, *cols_back; // [num_rows]; NULL, all of them: the matrix's
  void    *vector;                              // [num_rows]
} factor_orders;

struct tc_factors {
  const tc_backend *backend;
  tc_scalar         scalar;
  int               symmetric;
  factor_rows       factor, transpose;
  void             *memory; // of all that follows
  void             *between, *scratch; // [num_rows]
  factor_orders     orders;
  int32_t          *mirror, *from, *trouble; // NULL or [nnz], the first two; [1]
};

static void rows_forget(const tc_backend *backend, factor_rows *R)
{
  if (!R->memory) return;
  tc_sweep_orders_forget(&R->orders);
  backend->release(R->memory);
  R->memory = NULL;
}

/* Memory for as many rows and entries as `like` has; all of it is undefined */
static tc_status rows_alloc(const tc_factors *F, const tc_csr_local *like, factor_rows *R, int32_t **row_ptr, int32_t **col)
{
  const size_t n = (size_t)like->num_rows, nnz = (size_t)like->nnz, bytes = nnz * tc_scalar_bytes(F->scalar);

  TC_CALL(tc_from_backend(F->backend, F->backend->alloc(bytes + (n + 1 + 2 * nnz) * sizeof **row_ptr, &R->memory)));
  R->val          = R->memory;
  *row_ptr        = (int32_t *)(void *)((char *)R->memory + bytes);
  *col            = *row_ptr + n + 1;
  R->perm         = *col + nnz;
  R->rows         = *like;
  R->rows.row_ptr = *row_ptr;
  R->rows.col     = *col;
  R->current      = 0;
  return TC_OK;
}

/* Memory of all else: vectors first */
static tc_status rest_alloc(tc_factors *F, int filled, int ordered)
{
  const size_t n = (size_t)F->factor.rows.num_rows, nnz = (size_t)F->factor.rows.nnz, vector = n * tc_scalar_bytes(F->scalar), lists = ordered ? 4 * n : 0;
  int32_t     *ids;

  TC_CALL(tc_from_backend(F->backend, F->backend->alloc((ordered ? 3 : 2) * vector + (1 + (F->symmetric ? nnz : 0) + (filled ? nnz : 0) + lists) * sizeof *ids, &F->memory)));
  F->between = F->memory;
  F->scratch = (char *)F->memory + vector;
  ids        = (int32_t *)(void *)((char *)F->memory + (ordered ? 3 : 2) * vector);
  F->trouble = ids++;
  F->mirror  = F->symmetric ? ids : NULL;
  ids += F->symmetric ? nnz : 0;
  F->from = filled ? ids : NULL;
  ids += filled ? nnz : 0;
  if (ordered) F->orders = (factor_orders){.rows = ids, .cols = ids + n, .rows_back = ids + 2 * n, .cols_back = ids + 3 * n, .vector = (char *)F->scratch + vector};
  return TC_OK;
}

/* There are none if there are too many levels */
static tc_status find_orders(tc_factors *F, int32_t most, tc_stream stream)
{
  const tc_sweep_orders *orders = &F->factor.orders;

  TC_CALL(tc_sweep_orders_find(&F->factor.orders, F->backend, &F->factor.rows, most, F->mirror, stream));
  TC_CHECK(orders->pattern.longest <= TC_FACTOR_LONGEST_ROW, TC_ERR_UNSUPPORTED, "a row has %d entries, more than %d", (int)orders->pattern.longest, (int)TC_FACTOR_LONGEST_ROW);
  TC_CHECK(!F->symmetric || !orders->lone, TC_ERR_UNSUPPORTED, "the pattern is not symmetric");
  return TC_OK;
}

static tc_status create(tc_factors *F, const tc_csr_local *rows, int32_t most, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  int32_t          *row_ptr, *col;

  TC_CALL(rows_alloc(F, rows, &F->factor, &row_ptr, &col));
  TC_CALL(tc_from_backend(backend, backend->copy(row_ptr, rows->row_ptr, ((size_t)rows->num_rows + 1) * sizeof *row_ptr, stream)));
  TC_CALL(tc_from_backend(backend, backend->copy(col, rows->col, (size_t)rows->nnz * sizeof *col, stream)));
  TC_CALL(rest_alloc(F, 0, 0));
  return find_orders(F, most, stream);
}

/* A list of ids to where both it and its inverse are kept */
static tc_status send_order(const tc_factors *F, const int32_t *order, int32_t *local, int32_t *local_back, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  const int32_t     n       = F->factor.rows.num_rows;
  int32_t          *back    = malloc((size_t)n * sizeof *back);
  tc_status         status;

  TC_CHECK(back, TC_ERR_MEMORY, "the order of %d rows: no memory", (int)n);
  for (int32_t i = 0; i < n; i++) back[order[i]] = i;
  status = tc_from_backend(backend, backend->upload(local, order, (size_t)n * sizeof *order, stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->upload(local_back, back, (size_t)n * sizeof *back, stream));
  free(back);
  return status;
}

static tc_status create_filled(tc_factors *F, const tc_factors_pattern *pattern, int32_t most, tc_stream stream)
{
  const tc_backend  *backend = F->backend;
  const tc_csr_local rows    = {.num_rows = pattern->num_rows, .num_cols = pattern->num_rows, .nnz = pattern->nnz, .row_group = pattern->row_group};
  const size_t       entries = (size_t)pattern->nnz * sizeof *pattern->col;
  int32_t           *row_ptr, *col;

  TC_CALL(rows_alloc(F, &rows, &F->factor, &row_ptr, &col));
  TC_CALL(tc_from_backend(backend, backend->upload(row_ptr, pattern->row_ptr, ((size_t)pattern->num_rows + 1) * sizeof *row_ptr, stream)));
  TC_CALL(tc_from_backend(backend, backend->upload(col, pattern->col, entries, stream)));
  TC_CALL(rest_alloc(F, 1, pattern->rows != NULL));
  TC_CALL(tc_from_backend(backend, backend->upload(F->from, pattern->from, entries, stream)));
  if (pattern->rows) TC_CALL(send_order(F, pattern->rows, F->orders.rows, F->orders.rows_back, stream));
  if (pattern->rows) TC_CALL(send_order(F, pattern->cols, F->orders.cols, F->orders.cols_back, stream));
  return find_orders(F, most, stream);
}

static tc_factors *factors_new(const tc_backend *backend, int symmetric, tc_scalar scalar)
{
  tc_factors *F = calloc(1, sizeof *F);

  if (!F) return NULL;
  F->backend   = backend;
  F->scalar    = scalar;
  F->symmetric = symmetric;
  return F;
}

/* What is to become of it */
static tc_status finish(tc_status status, tc_factors *F, tc_factors **factors)
{
  if (status == TC_OK && F->factor.orders.memory) *factors = F;
  else tc_factors_destroy(F);
  return status;
}

tc_status tc_factors_create(const tc_backend *backend, const tc_csr_local *rows, int symmetric, tc_scalar scalar, int32_t most, tc_factors **factors, tc_stream stream)
{
  tc_factors *F = factors_new(backend, symmetric, scalar);

  *factors = NULL;
  TC_CHECK(F, TC_ERR_MEMORY, "a factor: no memory");
  return finish(create(F, rows, most, stream), F, factors);
}

tc_status tc_factors_create_filled(const tc_backend *backend, const tc_factors_pattern *pattern, int symmetric, tc_scalar scalar, int32_t most, tc_factors **factors, tc_stream stream)
{
  tc_factors *F = factors_new(backend, symmetric, scalar);

  *factors = NULL;
  TC_CHECK(F, TC_ERR_MEMORY, "a factor: no memory");
  return finish(create_filled(F, pattern, most, stream), F, factors);
}

void tc_factors_destroy(tc_factors *F)
{
  if (!F) return;
  rows_forget(F->backend, &F->factor);
  rows_forget(F->backend, &F->transpose);
  if (F->memory) F->backend->release(F->memory);
  free(F);
}

tc_status tc_factors_compute(tc_factors *F, const void *val, tc_pivot_rule rule, double zero, double shift, int *trouble, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  const tc_factor   factor  = {.pattern = &F->factor.orders.pattern, .mirror = F->mirror, .scalar = F->scalar, .val = val, .from = F->from, .factor = F->factor.val, .trouble = F->trouble, .rule = rule, .zero = zero, .shift = shift};
  int32_t           told    = 0;

  F->transpose.current = 0;
  TC_CALL(tc_from_backend(backend, backend->zero(F->trouble, sizeof told, stream)));
  TC_CALL(tc_from_backend(backend, backend->factor(&F->factor.rows, &factor, stream)));
  TC_CALL(tc_from_backend(backend, backend->download(&told, F->trouble, sizeof told, stream)));
  *trouble = told;
  return TC_OK;
}

/* The transpose, with the numbers that the factor has now */
static tc_status transpose(tc_factors *F, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  factor_rows      *R       = &F->transpose;
  int32_t          *row_ptr, *col;
  tc_status         status;

  if (!R->memory) {
    TC_CALL(rows_alloc(F, &F->factor.rows, R, &row_ptr, &col));
    status = tc_from_backend(backend, backend->transpose(&F->factor.rows, row_ptr, col, R->perm, stream));
    if (status == TC_OK) status = tc_sweep_orders_find(&R->orders, backend, &R->rows, INT32_MAX, NULL, stream);
    if (status != TC_OK) rows_forget(backend, R);
    TC_CALL(status);
  }
  if (!R->current) TC_CALL(tc_from_backend(backend, backend->gather(R->rows.nnz, R->perm, F->scalar, F->factor.val, R->val, stream)));
  R->current = 1;
  return TC_OK;
}

tc_status tc_factors_solve(tc_factors *F, int transposed, const void *b, void *x, tc_stream stream)
{
  const tc_backend  *backend = F->backend;
  const int          turned = transposed && !F->symmetric;
  const factor_rows *R      = turned ? &F->transpose : &F->factor;
  const int32_t      n      = F->factor.rows.num_rows, *in = turned ? F->orders.cols : F->orders.rows, *out = turned ? F->orders.rows_back : F->orders.cols_back;
  tc_sweep           sweep  = {.pattern = &R->orders.pattern, .scalar = F->scalar, .scratch = F->scratch, .omega = 1};

  if (turned) TC_CALL(transpose(F, stream));
  if (in) TC_CALL(tc_from_backend(backend, backend->gather(n, in, F->scalar, b, F->orders.vector, stream)));
  sweep.val  = R->val;
  sweep.kind = turned ? TC_SWEEP_FROM_ZERO : F->symmetric ? TC_SWEEP_UNIT_OVER : TC_SWEEP_UNIT;
  sweep.b    = in ? F->orders.vector : b;
  sweep.x    = F->between;
  TC_CALL(tc_from_backend(backend, backend->sweep(&R->rows, &sweep, stream)));
  sweep.kind     = turned || F->symmetric ? TC_SWEEP_UNIT : TC_SWEEP_FROM_ZERO;
  sweep.backward = 1;
  sweep.b        = F->between;
  sweep.x        = out ? F->orders.vector : x;
  TC_CALL(tc_from_backend(backend, backend->sweep(&R->rows, &sweep, stream)));
  return out ? tc_from_backend(backend, backend->gather(n, out, F->scalar, F->orders.vector, x, stream)) : TC_OK;
}

tc_status tc_factors_solve_half(tc_factors *F, int backward, const void *b, void *x, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  const int32_t     n = F->factor.rows.num_rows, *in = backward ? NULL : F->orders.rows, *out = backward ? F->orders.rows_back : NULL;
  const tc_sweep    sweep = {.kind = TC_SWEEP_UNIT, .backward = backward, .pattern = &F->factor.orders.pattern, .scalar = F->scalar, .val = F->factor.val, .b = in ? F->orders.vector : b, .x = out ? F->orders.vector : x, .scratch = F->scratch, .omega = 1};

  if (in) TC_CALL(tc_from_backend(backend, backend->gather(n, in, F->scalar, b, F->orders.vector, stream)));
  TC_CALL(tc_from_backend(backend, backend->sweep(&F->factor.rows, &sweep, stream)));
  return out ? tc_from_backend(backend, backend->gather(n, out, F->scalar, F->orders.vector, x, stream)) : TC_OK;
}

tc_status tc_factors_get_pivots(const tc_factors *F, void *pivots, tc_stream stream)
{
  const tc_backend *backend = F->backend;

  return tc_from_backend(backend, backend->gather(F->factor.rows.num_rows, F->factor.orders.pattern.diagonal, F->scalar, F->factor.val, pivots, stream));
}

/* Columns that go together, whole sectors of memory: as many as fit into BLOCK_BYTES twice, but what a warp has lanes for, if there are so many */
static int32_t block_width(const tc_factors *F, int32_t n)
{
  const size_t  row  = (size_t)F->factor.rows.num_rows * tc_scalar_bytes(F->scalar), fit = BLOCK_BYTES / row / LANES * LANES;
  const int32_t most = fit < LANES ? LANES : fit < (size_t)n ? (int32_t)fit : n, rounds = (n + most - 1) / most, each = (n + rounds - 1) / rounds;

  return (each + SECTOR - 1) / SECTOR * SECTOR;
}

/* Both sweeps with n columns, from b in `rows`, where x comes to be, too; `between` is as large */
static tc_status sweep_columns(const tc_factors *F, const factor_rows *R, int turned, int32_t n, int32_t width, void *rows, void *between, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  tc_sweep_block    sweep   = {.division = turned ? TC_SWEEP_DIVIDES_LAST : TC_SWEEP_DIVIDES_NEVER, .pattern = &R->orders.pattern, .scalar = F->scalar, .n = n, .width = width, .val = R->val, .b = rows, .x = between};

  TC_CALL(tc_from_backend(backend, backend->sweep_block(&R->rows, &sweep, stream)));
  sweep.division = turned ? TC_SWEEP_DIVIDES_NEVER : F->symmetric ? TC_SWEEP_DIVIDES_FIRST : TC_SWEEP_DIVIDES_LAST;
  sweep.backward = 1;
  sweep.b        = between;
  sweep.x        = rows;
  return tc_from_backend(backend, backend->sweep_block(&R->rows, &sweep, stream));
}

static tc_status solve_columns(const tc_factors *F, const factor_rows *R, int turned, int32_t n, int32_t width, const void *b, int64_t ldb, void *x, int64_t ldx, void *scratch, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  const int32_t     m       = F->factor.rows.num_rows;
  void             *between = (char *)scratch + (size_t)m * (size_t)width * tc_scalar_bytes(F->scalar);
  tc_block_rows     how     = {.scalar = F->scalar, .num = m, .n = n, .width = width, .row = turned ? F->orders.cols_back : F->orders.rows_back, .ld = ldb};

  TC_CALL(tc_from_backend(backend, backend->put_block(&how, b, scratch, stream)));
  TC_CALL(sweep_columns(F, R, turned, n, width, scratch, between, stream));
  how.row = turned ? F->orders.rows_back : F->orders.cols_back;
  how.ld  = ldx;
  return tc_from_backend(backend, backend->take_block(&how, x, scratch, stream));
}

tc_status tc_factors_solve_block(tc_factors *F, int transposed, int32_t n, const void *b, int64_t ldb, void *x, int64_t ldx, tc_stream stream)
{
  const tc_backend  *backend = F->backend;
  const int          turned  = transposed && !F->symmetric;
  const factor_rows *R       = turned ? &F->transpose : &F->factor;
  const size_t       bytes   = tc_scalar_bytes(F->scalar);
  const int32_t      width   = n > 0 ? block_width(F, n) : 0;
  void              *scratch = NULL;
  tc_status          status  = TC_OK;

  if (turned) TC_CALL(transpose(F, stream));
  if (n >= FEWEST_COLUMNS && backend->take(2 * (size_t)F->factor.rows.num_rows * (size_t)width * bytes, &scratch, stream) != TC_OK) scratch = NULL;
  for (int32_t j = 0, together = scratch ? width : 1; j < n && status == TC_OK; j += together) {
    const void *from = (const char *)b + (size_t)j * (size_t)ldb * bytes;
    void       *to   = (char *)x + (size_t)j * (size_t)ldx * bytes;

    if (scratch) status = solve_columns(F, R, turned, n - j < width ? n - j : width, width, from, ldb, to, ldx, scratch, stream);
    else status = tc_factors_solve(F, transposed, from, to, stream);
  }
  if (scratch) (void)backend->give(scratch, stream);
  return status;
}

int32_t tc_factors_levels(const tc_factors *F, int backward)
{
  return F->factor.orders.levels[backward];
}

int64_t tc_factors_nnz(const tc_factors *F)
{
  return F->factor.rows.nnz;
}
