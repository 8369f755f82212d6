/*
  The pattern of a matrix in the ids of the core, on the host or where a backend lives. The one place where PetscInt narrows; the callers have checked the sizes.
*/
#include "aijtccusparseimpl.h"

enum {
  MAX_ROW_GROUP = 6,
  NODES_SEEN    = 16
};

/* Have all of `size` rows from `row` on the same columns? */
static PetscBool MatTCIsNode(const PetscInt ia[], const PetscInt ja[], PetscInt row, PetscInt size)
{
  const PetscInt length = ia[row + 1] - ia[row];

  for (PetscInt r = row + 1; r < row + size; r++) {
    if (ia[r + 1] - ia[r] != length) return PETSC_FALSE;
    for (PetscInt k = 0; k < length; k++) {
      if (ja[ia[r] + k] != ja[ia[row] + k]) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

/* The most rows of a node that some nodes all over the matrix agree with, for matrices whose block size nobody has set; a wrong answer costs bytes, nothing else. Reads the host's pattern. */
static PetscErrorCode MatTCFindNodes(Mat A, PetscInt *size)
{
  const PetscInt *ia, *ja;
  PetscInt        m, entries;
  PetscBool       done;

  PetscFunctionBegin;
  *size = 1;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  for (PetscInt group = MAX_ROW_GROUP; done && m > 0 && group > 1 && *size == 1; group--) {
    const PetscInt nodes = m / group, seen = PetscMin(nodes, NODES_SEEN);
    PetscInt       i     = 0;

    if (m % group) continue;
    for (entries = 0; i < seen; i++) {
      const PetscInt row = group * (PetscInt)((PetscInt64)nodes * i / seen);

      if (!MatTCIsNode(ia, ja, row, group)) break;
      entries += ia[row + 1] - ia[row];
    }
    if (i == seen && entries > 0) *size = group;
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Rows of a node, for the rows of the matrix or of its transpose: the block size, where it is small and divides them, else what the pattern tells, for columns of a square matrix as
  for its rows
*/
PetscErrorCode MatTCGetRowGroup(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSideId side, int32_t *row_group)
{
  PetscInt size[MATTC_NUM_SIDES], rows[MATTC_NUM_SIDES];

  PetscFunctionBegin;
  PetscCall(MatGetBlockSizes(A, &size[MATTC_FORWARD], &size[MATTC_TRANSPOSE]));
  PetscCall(MatGetLocalSize(A, &rows[MATTC_FORWARD], &rows[MATTC_TRANSPOSE]));
  if (size[side] < 2) size[side] = tc->block_size[side];
  if (size[side] < 2 && (side == MATTC_FORWARD || rows[MATTC_FORWARD] == rows[MATTC_TRANSPOSE])) PetscCall(MatTCFindNodes(A, &size[side]));
  *row_group = size[side] > 1 && size[side] <= MAX_ROW_GROUP && rows[side] % size[side] == 0 ? (int32_t)size[side] : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row offsets and columns on the host, borrowed from the matrix or narrowed */
static PetscErrorCode MatTCGetRows(Mat A, MatTCPattern *P, const int32_t **row_ptr, const int32_t **col)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &P->ia, &P->ja, &done));
  PetscCheck(done, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A matrix of type %s does not give its rows", ((PetscObject)A)->type_name);
  if (sizeof(PetscInt) == sizeof(int32_t)) {
    *row_ptr = (const int32_t *)P->ia;
    *col     = (const int32_t *)P->ja;
  } else {
    const PetscInt nnz = P->ia[m];

    PetscCall(PetscMalloc1(m + 1 + nnz, &P->narrow));
    for (PetscInt i = 0; i <= m; i++) P->narrow[i] = (int32_t)P->ia[i];
    for (PetscInt k = 0; k < nnz; k++) P->narrow[m + 1 + k] = (int32_t)P->ja[k];
    *row_ptr = P->narrow;
    *col     = P->narrow + m + 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Give it back with MatTCPatternRestore() */
PetscErrorCode MatTCPatternGetHost(Mat A, MatTCPattern *P)
{
  const int32_t *row_ptr;
  PetscInt       m, n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatTCGetRows(A, P, &row_ptr, &P->host.col));
  PetscCall(PetscMalloc1(m + 1, &P->wide));
  for (PetscInt i = 0; i <= m; i++) P->wide[i] = row_ptr[i];
  P->host.num_rows = (int32_t)m;
  P->host.num_cols = (int32_t)n;
  P->host.row_ptr  = P->wide;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same from what the parent has on the device, in memory of the stream, offsets first: a kernel that begins early may read them before it waits */
static tc_status MatTCNarrowRows(const tc_backend *backend, tc_stream stream, MatTCPattern *P)
{
  const int64_t rows = (int64_t)P->local.num_rows + 1, entries = P->local.nnz;
  void         *narrow;

  TC_CALL(tc_from_backend(backend, backend->take((size_t)(rows + entries) * sizeof(*P->device_narrow), &narrow, stream)));
  P->stream        = stream;
  P->device_narrow = (int32_t *)narrow;
  TC_CALL(tc_from_backend(backend, backend->narrow(rows, (const int64_t *)(const void *)P->device_row_ptr, P->device_narrow, stream)));
  return tc_from_backend(backend, backend->narrow(entries, (const int64_t *)(const void *)P->device_col, P->device_narrow + rows, stream));
}

/* Moves row offsets and columns from the host into one allocation of the backend */
static tc_status MatTCUploadRows(const tc_backend *backend, const int32_t *row_ptr, const int32_t *col, tc_stream stream, MatTCPattern *P)
{
  const size_t rows = ((size_t)P->local.num_rows + 1) * sizeof(*row_ptr), cols = (size_t)P->local.nnz * sizeof(*col);

  TC_CALL(tc_from_backend(backend, backend->alloc(rows + cols, &P->uploaded)));
  P->local.row_ptr = (const int32_t *)P->uploaded;
  P->local.col     = P->local.row_ptr + P->local.num_rows + 1;
  TC_CALL(tc_from_backend(backend, backend->upload(P->uploaded, row_ptr, rows, stream)));
  return tc_from_backend(backend, backend->upload((char *)P->uploaded + rows, col, cols, stream));
}

/*@
  MatAIJTCCUSPARSESetKeepCSR - Does a matrix of type `MATAIJTCCUSPARSE` on the GPU have its CSR arrays there, as its parent type has, beside what is packed?

  Logically Collective; `keep` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- keep - `PETSC_FALSE` to have them there only where something asks for them

  Options Database Key:
. -mat_aijtccusparse_keep_csr (true|false) - default `true`

  Level: intermediate

  Notes:
  PETSc has no public way to give up what is there, so this goes for matrices whose values are the host's, as `MatSetValues()` leaves them: with `PETSC_FALSE` products with vectors, their
  transposes and most with dense matrices send what they pack from the host, in memory that is given back at once, 12 bytes per entry for a new pattern and 8 for new values. Then the device
  holds the packed arrays alone. Products are not timed against cuSPARSE, which would need the arrays.

  They come to be there by whatever the parent type does on the GPU itself: `MatScale()`, sparse products, `MatMatTransposeMult()`, `MatSetValuesCOO()` and products that
  are left to it; from then on they are used. On the host there is nothing to choose.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetEager()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetKeepCSR(Mat A, PetscBool keep)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscValidLogicalCollectiveBool(A, keep, 2);
  if (tc) tc->settings.drop_csr = (PetscBool)!keep;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do pattern and values of a sequential matrix on the GPU come from the host, so that the parent need not have them on the device? */
PetscBool MatTCSparesDevice(Mat A, const Mat_AIJTCCUSPARSE *tc)
{
  return (PetscBool)(tc && tc->settings.drop_csr && MatTCIsHostsAlone(A));
}

/* The sizes alone; nothing to restore */
PetscErrorCode MatTCPatternGetSizes(Mat A, MatTCPattern *P)
{
  MatInfo  info;
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  P->local.num_rows = (int32_t)m;
  P->local.num_cols = (int32_t)n;
  P->local.nnz      = (int64_t)info.nz_used;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void MatTCSetLocalRows(MatTCPattern *P, const int32_t *rows)
{
  P->local.row_ptr = rows;
  P->local.col     = rows + P->local.num_rows + 1;
}

/*
  The same in the backend's memory, on a GPU what the parent has there already, if it is to have it, or what was kept of its pattern. A failure goes into `status`; the pattern has to
  be restored in any case.
*/
PetscErrorCode MatTCPatternGetLocal(Mat A, const tc_backend *backend, tc_stream stream, MatTCPattern *P, tc_status *status)
{
  const PetscBool    host = (PetscBool)(backend == tc_backend_host());
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCPatternGetSizes(A, P));
  if (tc->dense.narrow.rows && tc->dense.narrow.backend == backend) {
    tc_key key;

    PetscCall(MatTCGetKey(A, tc, &key));
    if (MatTCSamePattern(&tc->dense.narrow.key, &key)) {
      MatTCSetLocalRows(P, tc->dense.narrow.rows);
      if (!host) *status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream())); /* behind the product that made it */
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  if (!host && !MatTCSparesDevice(A, tc)) {
    PetscCall(MatTCGetDevicePattern(A, &P->device_row_ptr, &P->device_col));
    *status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream()));
    if (sizeof(MatTCDeviceId) == sizeof(int32_t)) {
      P->local.row_ptr = (const int32_t *)P->device_row_ptr;
      P->local.col     = (const int32_t *)P->device_col;
    } else if (*status == TC_OK) {
      *status = MatTCNarrowRows(backend, stream, P);
      if (*status == TC_OK) MatTCSetLocalRows(P, P->device_narrow);
    }
  } else {
    const int32_t *row_ptr, *col;

    PetscCall(MatTCGetRows(A, P, &row_ptr, &col));
    P->local.row_ptr = row_ptr;
    P->local.col     = col;
    *status          = host ? TC_OK : MatTCUploadRows(backend, row_ptr, col, stream, P);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has a narrowed pattern stay for the products to come */
PetscErrorCode MatTCPatternKeep(MatTCDense *dense, const tc_backend *backend, const tc_key *key, MatTCPattern *P)
{
  int32_t **rows = backend == tc_backend_host() ? &P->narrow : &P->device_narrow;

  PetscFunctionBegin;
  if (!*rows) PetscFunctionReturn(PETSC_SUCCESS); /* nothing was narrowed now */
  PetscCall(MatTCPatternForget(dense));
  dense->narrow.rows    = *rows;
  dense->narrow.backend = backend;
  dense->narrow.key     = *key;
  *rows                 = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCPatternForget(MatTCDense *dense)
{
  PetscFunctionBegin;
  if (dense->narrow.rows && dense->narrow.backend != tc_backend_host()) {
    dense->narrow.backend->release(dense->narrow.rows);
    dense->narrow.rows = NULL;
  }
  PetscCall(PetscFree(dense->narrow.rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCPatternRestore(Mat A, const tc_backend *backend, MatTCPattern *P)
{
  PetscBool done;

  PetscFunctionBegin;
  if (P->uploaded) backend->release(P->uploaded);
  if (P->uploaded_order) backend->release(P->uploaded_order);
  if (P->device_narrow) (void)backend->give(P->device_narrow, P->stream); /* else it is lost, and the product is not */
  PetscCall(PetscFree(P->narrow));
  PetscCall(PetscFree(P->wide));
  if (P->ia) PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &P->ia, &P->ja, &done));
  if (P->device_row_ptr) PetscCall(MatTCRestoreDevicePattern(A, &P->device_row_ptr, &P->device_col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asked once for each pattern where there is a context */
PetscErrorCode MatTCPatternFactGet(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCPatternFact *fact, PetscErrorCode (*find)(Mat, PetscBool *), PetscBool *is)
{
  tc_key key;

  PetscFunctionBegin;
  PetscCall(MatTCGetKey(A, tc, &key));
  if (!fact->known || !MatTCSamePattern(&fact->key, &key)) {
    PetscCall((*find)(A, &fact->is));
    fact->known = PETSC_TRUE;
    fact->key   = key;
  }
  *is = fact->is;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the parent on the GPU leave out empty rows of a sequential matrix? */
PetscErrorCode MatTCLeavesOutRows(Mat A, PetscBool *leaves)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc) PetscCall(MatTCPatternFactGet(A, tc, &tc->short_rows, MatTCHasShortRows, leaves));
  else PetscCall(MatTCHasShortRows(A, leaves));
  PetscFunctionReturn(PETSC_SUCCESS);
}
