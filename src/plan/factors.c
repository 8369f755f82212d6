#include "factors.h"
#include "scalar.h"
#include "sweeps.h"
#include <stdlib.h>

/* Rows that are solved with: those of the factor, or of its transpose */
typedef struct {
  void           *memory; // of all arrays but those of the orders; NULL: there is nothing
  tc_csr_local    rows;
  tc_sweep_orders orders;
  void           *val;
  int32_t        *perm; // of the transpose: which entry of the factor each one is
  int             current; // are they of the numbers of the factor?
} factor_rows;

struct tc_factors {
  const tc_backend *backend;
  tc_scalar         scalar;
  int               symmetric;
  factor_rows       factor, transpose;
  void             *memory; // of all that follows
  void             *between, *scratch; // [num_rows]
  int32_t          *mirror, *trouble;  // NULL, [nnz]; [1]
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

static tc_status create(tc_factors *F, const tc_csr_local *rows, tc_stream stream)
{
  const tc_backend *backend = F->backend;
  const size_t      vector  = (size_t)rows->num_rows * tc_scalar_bytes(F->scalar);
  int32_t          *row_ptr, *col;

  TC_CALL(rows_alloc(F, rows, &F->factor, &row_ptr, &col));
  TC_CALL(tc_from_backend(backend, backend->copy(row_ptr, rows->row_ptr, ((size_t)rows->num_rows + 1) * sizeof *row_ptr, stream)));
  TC_CALL(tc_from_backend(backend, backend->copy(col, rows->col, (size_t)rows->nnz * sizeof *col, stream)));
  TC_CALL(tc_from_backend(backend, backend->alloc(2 * vector + (size_t)(1 + (F->symmetric ? rows->nnz : 0)) * sizeof *F->trouble, &F->memory)));
  F->between = F->memory;
  F->scratch = (char *)F->memory + vector;
  F->trouble = (int32_t *)(void *)((char *)F->scratch + vector);
  F->mirror  = F->symmetric ? F->trouble + 1 : NULL;
  TC_CALL(tc_sweep_orders_find(&F->factor.orders, backend, &F->factor.rows, INT32_MAX, F->mirror, stream));
  TC_CHECK(F->factor.orders.pattern.longest <= TC_FACTOR_LONGEST_ROW, TC_ERR_UNSUPPORTED, "a row has %d entries, more than %d", (int)F->factor.orders.pattern.longest, (int)TC_FACTOR_LONGEST_ROW);
  return TC_OK;
}

tc_status tc_factors_create(const tc_backend *backend, const tc_csr_local *rows, int symmetric, tc_scalar scalar, tc_factors **factors, tc_stream stream)
{
  tc_factors *F = calloc(1, sizeof *F);
  tc_status   status;

  *factors = NULL;
  TC_CHECK(F, TC_ERR_MEMORY, "a factor: no memory");
  F->backend   = backend;
  F->scalar    = scalar;
  F->symmetric = symmetric;
  status       = create(F, rows, stream);
  if (status == TC_OK) *factors = F;
  else tc_factors_destroy(F);
  return status;
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
  const tc_factor   factor  = {.pattern = &F->factor.orders.pattern, .mirror = F->mirror, .scalar = F->scalar, .val = val, .factor = F->factor.val, .trouble = F->trouble, .rule = rule, .zero = zero, .shift = shift};
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
  const int          turned = transposed && !F->symmetric;
  const factor_rows *R      = turned ? &F->transpose : &F->factor;
  tc_sweep           sweep  = {.pattern = &R->orders.pattern, .scalar = F->scalar, .scratch = F->scratch, .omega = 1};

  if (turned) TC_CALL(transpose(F, stream));
  sweep.val  = R->val;
  sweep.kind = turned ? TC_SWEEP_FROM_ZERO : F->symmetric ? TC_SWEEP_UNIT_OVER : TC_SWEEP_UNIT;
  sweep.b    = b;
  sweep.x    = F->between;
  TC_CALL(tc_from_backend(F->backend, F->backend->sweep(&R->rows, &sweep, stream)));
  sweep.kind     = turned || F->symmetric ? TC_SWEEP_UNIT : TC_SWEEP_FROM_ZERO;
  sweep.backward = 1;
  sweep.b        = F->between;
  sweep.x        = x;
  return tc_from_backend(F->backend, F->backend->sweep(&R->rows, &sweep, stream));
}

int32_t tc_factors_levels(const tc_factors *F, int backward)
{
  return F->factor.orders.levels[backward];
}

int64_t tc_factors_nnz(const tc_factors *F)
{
  return F->factor.rows.nnz;
}
