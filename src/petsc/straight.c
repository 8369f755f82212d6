/*
  Products with a vector straight from the CSR that the parent has, with the bits of packed ones, until packing pays: with `auto` and in double precision, where that is to be had
  anyway. Patterns that are packed ahead of their first product do not wait.
*/
#include "aijtccusparseimpl.h"

/*@
  MatAIJTCCUSPARSESetDefer - Does a matrix of type `MATAIJTCCUSPARSE` multiply straight from CSR until packing pays?

  Logically Collective; `defer` must contain common value

  Input Parameters:
+ A     - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- defer - `PETSC_FALSE` to pack a new pattern, and take new values over, at the first product with a vector

  Options Database Key:
. -mat_aijtccusparse_defer (true|false) - default `true`

  Level: intermediate

  Notes:
  Packing takes as long as many products, and taking new values over as long as some. So the first products, `MatMult()`, `MatMultAdd()` and `MatResidual()`, read the CSR arrays that the parent
  type has; what each of them loses is added up, by a table of prices (on the host, with half a million entries and more, by the times measured once all are known), and once that is as much as new values take, for a new pattern as much as packing, on a GPU half of that, they are packed. Where the values
  before were multiplied with so often that it paid, new ones are taken over at once, as in Newton's method; where ten products with each of many values would have paid for the pattern, it is packed,
  too. The bits are the same either way. On the host a matrix with half a million entries or more, whose packed products turn out to be slower than those straight from CSR, is multiplied straight from CSR
  again.

  On a GPU a new pattern of the transpose is packed at its first product, and new values of it wait once two before them had few products. On the host both wait as those of the matrix, and products with
  the transpose go over the rows of the matrix, unless a column has 256 entries or more.

  It goes for `-mat_aijtccusparse_spmv auto` and `-mat_aijtccusparse_precision fp64`, and neither with `MatAIJTCCUSPARSESetEager()`, which asks for packing in any case, nor with `MatAIJTCCUSPARSESetKeepCSR()` and
  `PETSC_FALSE`, nor, on the host, for PETSc in single precision. What is captured into a CUDA graph stays
  as it was captured: use `PETSC_FALSE`, or pack with `MatAIJTCCUSPARSESetEager()`, before.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetEager()`, `MatAIJTCCUSPARSEGetStraightProducts()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetDefer(Mat A, PetscBool defer)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscValidLogicalCollectiveBool(A, defer, 2);
  if (tc) tc->settings.at_once = (PetscBool)!defer;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEGetStraightProducts - How many products with vectors, those with the transpose included, were straight from CSR, since packing would not have paid?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameter:
. products - their number, for a parallel matrix that of the two blocks of this process; zero for a matrix that is not of type `MATAIJTCCUSPARSE`

  Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetDefer()`, `MatAIJTCCUSPARSEGetCounters()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetStraightProducts(Mat A, PetscInt64 *products)
{
  Mat      blocks[2];
  PetscInt num;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(products, 2);
  *products = 0;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGetIfOurs(blocks[i], &tc));
    for (int s = 0; tc && s < MATTC_NUM_SIDES; s++) *products += tc->side[s].straight.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool MatTCMayWait(const Mat_AIJTCCUSPARSE *tc, const tc_backend *backend)
{
  return (PetscBool)(tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_AUTO && tc->settings.precision == MAT_AIJTCCUSPARSE_PRECISION_FP64 && !tc->settings.eager && !tc->settings.at_once && !tc->settings.drop_csr && tc_straight_serves(backend, MATTC_SCALAR));
}

/* Rows that share their columns, as PETSc found them when it assembled the matrix, and whether lengths of rows repeat, for this pattern */
static PetscErrorCode MatTCNodesGet(Mat A, tc_straight *S, const tc_key *key, tc_status *status)
{
  const PetscInt *ia, *ja;
  PetscInt        m, num = 0, *first = NULL;
  double          repeated = 1;
  PetscBool       known;
  int32_t        *kept;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatInodeGetInodeSizes(A, &num, &first, NULL));
  if (!first || first[num] != m) num = 0;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &known));
  if (known) repeated = tc_repeated_lengths(ia, sizeof(PetscInt) == sizeof(int64_t), m);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &ia, &ja, &known));
  *status = tc_straight_keep_nodes(S, key, (int32_t)m, repeated, (int32_t)num, &kept);
  for (PetscInt i = 0; *status == TC_OK && kept && i <= num; i++) kept[i] = (int32_t)first[i];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which way products straight from CSR with that side go; on the host the first one of a pattern asks for rows that share their columns, that of its transpose looks at its columns */
static PetscErrorCode MatTCWay(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const tc_key *key, tc_stream stream, tc_straight_way *way)
{
  tc_status    status = TC_OK;
  MatTCPattern P;

  PetscFunctionBegin;
  *way = side == &tc->side[MATTC_TRANSPOSE] ? TC_STRAIGHT_PERMUTED : TC_STRAIGHT_FORWARD;
  if (backend != tc_backend_host()) PetscFunctionReturn(PETSC_SUCCESS);
  if (*way == TC_STRAIGHT_FORWARD) {
    *way = tc_straight_multiplies(&side->straight, key);
    if (*way == TC_STRAIGHT_UNKNOWN) PetscCall(MatTCNodesGet(A, &side->straight, key, &status));
    if (*way == TC_STRAIGHT_UNKNOWN) *way = status == TC_OK ? tc_straight_multiplies(&side->straight, key) : TC_STRAIGHT_FORWARD;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *way = tc_straight_transposes(&side->straight, key);
  if (*way != TC_STRAIGHT_UNKNOWN) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
  if (status == TC_OK) status = tc_straight_look(&side->straight, key, &P.local);
  PetscCall(MatTCPatternRestore(A, backend, &P));
  *way = status == TC_OK ? tc_straight_transposes(&side->straight, key) : TC_STRAIGHT_PERMUTED;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is not packed with these values is to be: not now? */
PetscErrorCode MatTCAwaits(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const tc_key *key, tc_verdict verdict, tc_stream stream, PetscBool *waits)
{
  const PetscBool transpose = (PetscBool)(side == &tc->side[MATTC_TRANSPOSE]);
  const char     *later     = verdict == TC_CACHE_REBUILD ? "packing" : "new values";
  tc_straight    *S         = &side->straight;
  tc_straight_way way;
  tc_counters     counters;
  PetscInt        m;

  PetscFunctionBegin;
  if (!MatTCMayWait(tc, backend)) PetscFunctionReturn(PETSC_SUCCESS);
  if (backend->capturing && backend->capturing(stream)) { /* nothing can be packed */
    *waits = (PetscBool)tc_straight_is_ready(S, backend, key);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetLocalSize(A, transpose ? NULL : &m, transpose ? &m : NULL));
  PetscCall(MatTCWay(A, tc, side, backend, key, stream, &way));
  MatTCGetCounters(side, &counters);
  *waits = (PetscBool)!tc_straight_pays(S, backend, key, verdict, counters.hits, (int32_t)m, way);
  if (!*waits && S->products > 0) PetscCall(PetscInfo(A, "aijtccusparse: %s, which takes %.2g ms by what is reckoned, after %" PetscInt64_FMT " products straight from CSR\n", later, S->cost_ms, (PetscInt64)S->products));
  else if (*waits && S->products == 1) PetscCall(PetscInfo(A, "aijtccusparse multiplies straight from CSR: %s takes %.2g ms by what is reckoned, of which a product loses %.2g\n", later, S->cost_ms, S->missed_ms));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is packed has these values: are products straight from CSR the faster ones? */
PetscErrorCode MatTCPassesOver(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const tc_key *key, PetscBool *waits)
{
  const tc_straight *S = &side->straight;

  PetscFunctionBegin;
  *waits = (PetscBool)(MatTCMayWait(tc, backend) && tc_straight_is_faster(S, backend, key));
  if (*waits && !side->passed_over) PetscCall(PetscInfo(A, "aijtccusparse multiplies straight from CSR again, %.3g ms at best: a packed product takes %.3g ms\n", S->timed[TC_STRAIGHT_PRODUCT].least_ms, S->timed[TC_STRAIGHT_PACKED].least_ms));
  side->passed_over = *waits;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of the matrix, or of its transpose, which are kept for the products to come */
static PetscErrorCode MatTCRowsGet(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, tc_stream stream, MatTCPattern *P, MatTCRows *rows, tc_status *status)
{
  tc_straight_way way;

  PetscFunctionBegin;
  PetscCall(MatTCGetKey(A, tc, &rows->key));
  PetscCall(MatTCWay(A, tc, side, backend, &rows->key, stream, &way));
  if (way == TC_STRAIGHT_PERMUTED && tc_transpose_has_rows(side->transpose)) PetscCall(MatTCPatternGetSizes(A, P));
  else PetscCall(MatTCPatternGetLocal(A, backend, stream, P, status));
  rows->rows   = P->local;
  rows->matrix = (tc_csr_matrix){.rows = &rows->rows, .scalar = MATTC_SCALAR};
  if (way == TC_STRAIGHT_COLUMNS) {
    rows->matrix.kind = side->straight.columns.kind;
    rows->matrix.sums = side->straight.columns.sums;
  } else if (way == TC_STRAIGHT_NODES) {
    rows->matrix.node      = side->straight.nodes.first;
    rows->matrix.num_nodes = side->straight.nodes.num;
  }
  if (*status == TC_OK && way == TC_STRAIGHT_PERMUTED) *status = tc_transpose_pattern(side->transpose, &P->local, &rows->rows, &rows->matrix.perm, stream);
  else if (*status == TC_OK) PetscCall(MatTCPatternKeep(&tc->dense, backend, &rows->key, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with entries, for a count of operations: on a GPU as many as there may be */
static void MatTCCountRows(MatTCSide *side, PetscBool host, const tc_csr_local *rows)
{
  if (!host) side->nonempty_rows = PetscMin(rows->num_rows, rows->nnz);
  if (!host || side->straight.products > 1) return;
  side->nonempty_rows = 0;
  for (int32_t i = 0; i < rows->num_rows; i++) side->nonempty_rows += rows->row_ptr[i + 1] > rows->row_ptr[i];
}

/* By a kernel of ours, or by cuSPARSE. `done` is false when that failed, of which the core tells why: z is to be computed anew. */
PetscErrorCode MatTCStraight(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, PetscBool cusparse, int sign, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  const tc_backend *backend;
  tc_status         status = TC_OK;
  PetscBool         host;
  MatTCPattern      P;
  MatTCRows         rows;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  host = (PetscBool)(backend == tc_backend_host());
  PetscCall(MatTCRowsGet(A, tc, side, backend, stream, &P, &rows, &status));
  if (host) PetscCall(MatSeqAIJGetArrayRead(A, &rows.values));
  else PetscCall(MatTCGetDeviceValues(A, &rows.values));
  rows.matrix.val = rows.values;
  rows.cusparse   = cusparse;
  if (status == TC_OK && !host) status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream())); /* on which the values may still be on their way */
  if (status == TC_OK && !cusparse && (!side->plan || tc_plan_check(side->plan, &rows.key) == TC_CACHE_REBUILD)) MatTCCountRows(side, host, &rows.rows);
  if (status == TC_OK) PetscCall(MatTCMultiply(A, tc, side, backend, &rows, sign, x, y, z, stream, done));
  if (*done && !host) status = tc_from_backend(backend, backend->wait(MatTCGetParentStream(), stream)); /* which may overwrite them afterwards */
  if (status != TC_OK) *done = PETSC_FALSE;
  if (status != TC_OK && !cusparse) PetscCall(MatTCFail(A, tc, side, "a product straight from CSR", tc_last_error()));
  if (host) PetscCall(MatSeqAIJRestoreArrayRead(A, &rows.values));
  else PetscCall(MatTCRestoreDeviceValues(A, &rows.values));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  PetscFunctionReturn(PETSC_SUCCESS);
}
