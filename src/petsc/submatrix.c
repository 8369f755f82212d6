/*
  Matrices that are parts of others, or transposes. Where one is used again, which fieldsplit does at every step of Newton's method, the parent (3.26.1) goes over the patterns once more, on the host: it fetches
  all values of the matrix from the GPU, and what it writes is sent back by the next product. Here places in the matrix are found once, and values are copied from there, on the GPU if they are there.
*/
#include "aijtccusparseimpl.h"

/* Where in the values of another matrix those of this one are */
struct _MatTCValueMap {
  tc_key            from, to;   /* the patterns of both */
  IS                rows, cols; /* of the other one, copies, since who changes indices tells nobody, one if they are the same; NULL: this one is its transpose */
  const tc_backend *backend;
  PetscBool         sought, found; /* have places been looked for, and are they there? */
  int32_t          *place;         /* [nnz], of the backend */
};

PetscErrorCode MatTCValueMapDestroy(MatTCValueMap **map)
{
  PetscFunctionBegin;
  if (!*map) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISDestroy(&(*map)->rows));
  PetscCall(ISDestroy(&(*map)->cols));
  (*map)->backend->release((*map)->place);
  PetscCall(PetscFree(*map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Have these the same indices, on this process? Both or none of them may be NULL */
static PetscErrorCode MatTCSameIndices(IS a, IS b, PetscBool *same)
{
  const PetscInt *i, *j;
  PetscInt        m, n, first[2], step[2];
  PetscBool       stride[2];

  PetscFunctionBegin;
  *same = (PetscBool)(a == b);
  if (!a || !b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetLocalSize(a, &m));
  PetscCall(ISGetLocalSize(b, &n));
  PetscCall(PetscObjectTypeCompare((PetscObject)a, ISSTRIDE, &stride[0]));
  PetscCall(PetscObjectTypeCompare((PetscObject)b, ISSTRIDE, &stride[1]));
  *same = PETSC_FALSE;
  if (m != n) PetscFunctionReturn(PETSC_SUCCESS);
  if (stride[0] && stride[1]) { /* they have no list, and would make one */
    PetscCall(ISStrideGetInfo(a, &first[0], &step[0]));
    PetscCall(ISStrideGetInfo(b, &first[1], &step[1]));
    *same = (PetscBool)(first[0] == first[1] && step[0] == step[1]);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ISGetIndices(a, &i));
  PetscCall(ISGetIndices(b, &j));
  PetscCall(PetscArraycmp(i, j, n, same));
  PetscCall(ISRestoreIndices(b, &j));
  PetscCall(ISRestoreIndices(a, &i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row offsets and columns of a sequential matrix, m x n, on the host */
typedef struct {
  PetscInt        m, n;
  const PetscInt *i, *j;
  PetscBool       done;
} MatTCHostRows;

static PetscErrorCode MatTCHostRowsGet(Mat A, MatTCHostRows *R)
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &R->m, &R->n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &R->i, &R->j, &R->done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCHostRowsRestore(Mat A, MatTCHostRows *R)
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &R->i, &R->j, &R->done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where in the order of A the entries of its transpose, B, are; false if B is not that */
static PetscErrorCode MatTCPlacesInTranspose(const MatTCHostRows *A, const MatTCHostRows *B, int32_t place[], PetscBool *found)
{
  PetscInt *next;

  PetscFunctionBegin;
  *found = (PetscBool)(A->m == B->n && A->n == B->m && A->i[A->m] == B->i[B->m]);
  if (!*found) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(B->m, &next));
  PetscCall(PetscArraycpy(next, B->i, B->m));
  for (PetscInt row = 0; row < A->m && *found; row++) {
    for (PetscInt k = A->i[row]; k < A->i[row + 1] && *found; k++) {
      const PetscInt col = A->j[k], at = next[col]++;

      *found = (PetscBool)(at < B->i[col + 1] && B->j[at] == row);
      if (*found) place[at] = (int32_t)k;
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for B, rows and columns of A */
static PetscErrorCode MatTCPlacesInPart(const MatTCHostRows *A, const PetscInt rows[], const PetscInt cols[], const MatTCHostRows *B, int32_t place[], PetscBool *found)
{
  PetscInt *renumbered, *at; /* a column of A in B, -1 if it is not there; where in B its column was seen last */

  PetscFunctionBegin;
  *found = PETSC_TRUE;
  PetscCall(PetscMalloc2(A->n, &renumbered, B->n, &at));
  for (PetscInt j = 0; j < A->n; j++) renumbered[j] = -1;
  for (PetscInt j = 0; j < B->n; j++) at[j] = -1;
  for (PetscInt j = 0; j < B->n && *found; j++) {
    *found = (PetscBool)(cols[j] >= 0 && cols[j] < A->n);
    if (*found) renumbered[cols[j]] = j;
  }
  for (PetscInt row = 0; row < B->m && *found; row++) {
    const PetscInt first = B->i[row], end = B->i[row + 1], of = rows[row];
    PetscInt       next = first; /* the entry that comes if those of A are in the same order, as they mostly are */
    PetscBool      seen = PETSC_FALSE;

    *found = (PetscBool)(of >= 0 && of < A->m);
    for (PetscInt k = *found ? A->i[of] : 0; *found && k < A->i[of + 1]; k++) {
      const PetscInt col = renumbered[A->j[k]];
      PetscInt       to  = next;

      if (col < 0) continue;
      if (next >= end || B->j[next] != col) {
        for (PetscInt e = first; e < end && !seen; e++) at[B->j[e]] = e;
        seen   = PETSC_TRUE;
        to     = at[col];
        *found = (PetscBool)(to >= first);
      }
      if (*found) place[to] = (int32_t)k;
      next++;
    }
    if (next != end) *found = PETSC_FALSE;
  }
  PetscCall(PetscFree2(renumbered, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B consists of rows and columns of A, or is the transpose if there are none. On the host, [nnz of B]; `found` is false, and `place` undefined, if it has another pattern */
static PetscErrorCode MatTCFindPlaces(Mat A, IS rows, IS cols, Mat B, int32_t place[], PetscBool *found)
{
  MatTCHostRows   a, b;
  const PetscInt *row, *col;
  PetscInt        m, n;

  PetscFunctionBegin;
  PetscCall(MatTCHostRowsGet(A, &a));
  PetscCall(MatTCHostRowsGet(B, &b));
  *found = (PetscBool)(a.done && b.done);
  if (*found && !rows) PetscCall(MatTCPlacesInTranspose(&a, &b, place, found));
  else if (*found) {
    PetscCall(ISGetLocalSize(rows, &m));
    PetscCall(ISGetLocalSize(cols, &n));
    *found = (PetscBool)(m == b.m && n == b.n);
    PetscCall(ISGetIndices(rows, &row));
    PetscCall(ISGetIndices(cols, &col));
    if (*found) PetscCall(MatTCPlacesInPart(&a, row, col, &b, place, found));
    PetscCall(ISRestoreIndices(cols, &col));
    PetscCall(ISRestoreIndices(rows, &row));
  }
  PetscCall(MatTCHostRowsRestore(B, &b));
  PetscCall(MatTCHostRowsRestore(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does it tell, or is it to tell, where the values are? */
static PetscErrorCode MatTCValueMapHolds(const MatTCValueMap *map, const tc_key *from, IS rows, IS cols, const tc_key *to, const tc_backend *backend, PetscBool *holds)
{
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  if (map && map->backend == backend && MatTCSamePattern(&map->from, from) && MatTCSamePattern(&map->to, to)) PetscCall(MatTCSameIndices(map->rows, rows, &same));
  if (same && !(rows == cols && map->rows == map->cols)) PetscCall(MatTCSameIndices(map->cols, cols, &same));
  *holds = same;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCValueMapSeek(Mat A, IS rows, IS cols, Mat B, MatTCValueMap *map, tc_stream stream)
{
  const tc_backend *backend = map->backend;
  const PetscBool   host    = (PetscBool)(backend == tc_backend_host());
  const size_t      bytes   = (size_t)map->to.nnz * sizeof(*map->place);
  int32_t          *place;
  tc_status         status = tc_from_backend(backend, backend->alloc(bytes, (void **)&map->place));

  PetscFunctionBegin;
  map->sought = PETSC_TRUE;
  if (status == TC_OK) {
    if (host) place = map->place;
    else PetscCall(PetscMalloc1(map->to.nnz, &place));
    PetscCall(MatTCFindPlaces(A, rows, cols, B, place, &map->found));
    if (!host && map->found && bytes > 0) status = tc_from_backend(backend, backend->upload(map->place, place, bytes, stream));
    if (!host) PetscCall(PetscFree(place));
  }
  if (status != TC_OK) {
    map->found = PETSC_FALSE;
    PetscCall(PetscInfo(A, "aijtccusparse leaves the values of %s to the parent type: %s\n", rows ? "a submatrix" : "the transpose", tc_last_error()));
  } else if (map->found) {
    if (!host) PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
    PetscCall(PetscInfo(A, "aijtccusparse copies %" PetscInt64_FMT " values of %s from where they are, while the patterns stay\n", (PetscInt64)map->to.nnz, rows ? "a submatrix" : "the transpose"));
  }
  if (!map->found) {
    backend->release(map->place);
    map->place = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The map from A to B, which have these keys, as it was or a new one. On the host places are found when somebody asks a second time, since that may take longer than what the parent does */
static PetscErrorCode MatTCValueMapGet(Mat A, const tc_key *from, IS rows, IS cols, Mat B, const tc_key *to, const tc_backend *backend, tc_stream stream, MatTCValueMap **map)
{
  PetscBool holds = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCValueMapHolds(*map, from, rows, cols, to, backend, &holds));
  if (!holds) {
    PetscCall(MatTCValueMapDestroy(map));
    PetscCall(PetscNew(map));
    (*map)->from    = *from;
    (*map)->to      = *to;
    (*map)->backend = backend;
    if (rows) PetscCall(ISDuplicate(rows, &(*map)->rows));
    if (rows && rows != cols) PetscCall(ISDuplicate(cols, &(*map)->cols));
    else if (rows) PetscCall(PetscObjectReference((PetscObject)((*map)->cols = (*map)->rows)));
  }
  if (!(*map)->sought && (holds || backend != tc_backend_host())) PetscCall(MatTCValueMapSeek(A, rows, cols, B, *map, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From one array to the other of the backend; on the GPU from the parent's stream, and for it */
static tc_status MatTCGatherValues(const MatTCValueMap *map, const PetscScalar *from, PetscScalar *to, tc_stream stream)
{
  const tc_backend *backend = map->backend;
  const tc_stream   parents = backend == tc_backend_host() ? stream : MatTCGetParentStream();

  TC_CALL(tc_from_backend(backend, backend->wait(stream, parents)));
  TC_CALL(tc_from_backend(backend, backend->gather(map->to.nnz, map->place, MATTC_SCALAR, from, to, stream)));
  return tc_from_backend(backend, backend->wait(parents, stream));
}

/* The same with the arrays of A and B */
static PetscErrorCode MatTCCopyValues(Mat A, Mat B, const MatTCValueMap *map, tc_stream stream, PetscBool *done)
{
  const PetscBool    host = (PetscBool)(map->backend == tc_backend_host());
  const PetscScalar *from;
  PetscScalar       *to;
  tc_status          status;

  PetscFunctionBegin;
  if (host) {
    PetscCall(MatSeqAIJGetArrayRead(A, &from));
    PetscCall(MatSeqAIJGetArrayWrite(B, &to));
  } else {
    PetscCall(MatTCGetDeviceValues(A, &from));
    PetscCall(MatTCChangeDeviceValues(B, &to));
  }
  status = MatTCGatherValues(map, from, to, stream);
  if (host) {
    PetscCall(MatSeqAIJRestoreArrayWrite(B, &to));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &from));
  } else {
    PetscCall(MatTCChangedDeviceValues(B, &to));
    PetscCall(MatTCRestoreDeviceValues(A, &from));
  }
  if (status != TC_OK) PetscCall(PetscInfo(A, "aijtccusparse has the parent type copy values: %s\n", tc_last_error()));
  *done = (PetscBool)(status == TC_OK);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the values of a sequential matrix where it is multiplied with, or would its products bring them there anyway? On the GPU the part has them there alone, which the parent's products of plain matrices do not bear */
static PetscErrorCode MatTCHasValuesThere(Mat A, const Mat_AIJTCCUSPARSE *tc, PetscBool *has)
{
  const tc_backend *backend;

  PetscFunctionBegin;
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  *has = (PetscBool)(backend == tc_backend_host() || (backend && MatTCIsPropagating() && !MatTCSparesDevice(A, tc) && (!MatTCIsHostsAlone(A) || tc->has_stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  B, sequential like A, has the rows and columns of A that it had, or is its transpose if there are none, and gets the values that A has now. `done` is false, and the parent has to do it, if one of them is not
  of our type, or on another side than the other; B may have been written to. Not collective.
*/
static PetscErrorCode MatTCTakeValues(Mat A, IS rows, IS cols, Mat B, PetscBool *done)
{
  Mat_AIJTCCUSPARSE *of_A, *of_B;
  const tc_backend  *backend, *backend_of_B;
  tc_key             key_of_A, key_of_B;
  tc_stream          stream;
  PetscBool          assembled, usable;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatTCContextGet(A, &of_A));
  PetscCall(MatTCContextGet(B, &of_B));
  PetscCall(MatAssembled(B, &assembled));
  if (A == B || !of_A || !of_B || of_A->parent->mpi || of_B->parent->mpi || !assembled || !MatTCHostFollowsState() || MatTCIsStructureOnly(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCHasValuesThere(A, of_A, &usable));
  if (usable) PetscCall(MatTCBegin(A, of_A, &of_A->side[MATTC_FORWARD], &backend, &key_of_A, &stream, &usable));
  PetscCall(MatTCCurrentBackend(B, of_B->parent, &backend_of_B));
  if (!usable || backend != backend_of_B || (backend->capturing && backend->capturing(stream))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetKey(B, of_B, &key_of_B));
  PetscCall(MatTCValueMapGet(A, &key_of_A, rows, cols, B, &key_of_B, backend, stream, &of_B->map));
  if (of_B->map->found) PetscCall(MatTCCopyValues(A, B, of_B->map, stream, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A submatrix used again that the parent of parallel matrices makes block by block, which it tells by what it has composed on it; it calls its functions for blocks by name. Collective
*/
static PetscErrorCode MatTCTakeValuesOfBlocks(Mat A, const Mat_AIJTCCUSPARSE *tc, Mat B, PetscBool *done)
{
  static const char *const composed[] = {"iscol_d", "iscol_o"};
  Mat_AIJTCCUSPARSE       *of_B;
  IS                       rows, cols[2];
  Mat                      from[2], to[2];

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatTCContextGet(B, &of_B));
  PetscCall(PetscObjectQuery((PetscObject)B, "isrow_d", (PetscObject *)&rows));
  for (int i = 0; i < 2; i++) PetscCall(PetscObjectQuery((PetscObject)B, composed[i], (PetscObject *)&cols[i]));
  if (!of_B || !rows || !cols[0] || !cols[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCEnsureBlocks(B, of_B));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &from[0], &from[1], NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(B, &to[0], &to[1], NULL));
  for (int i = 0; i < 2; i++) {
    const MatTCParent *parent;
    PetscErrorCodeFn  *f;
    Mat               *part = &to[i];
    PetscInt           n;
    PetscBool          taken;

    PetscCall(ISGetLocalSize(cols[i], &n));
    if (i == 1 && n == 0) continue;
    PetscCall(MatTCTakeValues(from[i], rows, cols[i], to[i], &taken));
    if (taken) continue;
    PetscCall(MatTCParentFind(from[i], &parent));
    if (parent) PetscCall(MatTCParentOp(from[i], parent, MATOP_CREATE_SUBMATRICES, &f));
    else PetscCall(MatGetOperation(from[i], MATOP_CREATE_SUBMATRICES, &f));
    PetscCall((*(PetscErrorCode (*)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]))f)(from[i], 1, &rows, &cols[i], MAT_REUSE_MATRIX, &part));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a parallel matrix; of others PETSc asks for one of several */
PetscErrorCode MatCreateSubMatrix_AIJTCCUSPARSE(Mat A, IS rows, IS cols, MatReuse reuse, Mat *B)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *f;
  PetscBool          done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (reuse == MAT_REUSE_MATRIX && tc) PetscCall(MatTCTakeValuesOfBlocks(A, tc, *B, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_CREATE_SUBMATRIX, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, IS, IS, MatReuse, Mat *))f)(A, rows, cols, reuse, B));
  PetscCall(MatTCInstallLike(A, reuse, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a parallel matrix they belong together and have their own way to be destroyed, and are ours by propagation; the parent (3.26.1) writes values of the host and does not tell the GPU */
PetscErrorCode MatCreateSubMatrices_AIJTCCUSPARSE(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *B[])
{
  const MatTCParent *parent;
  PetscErrorCodeFn  *f;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  done = (PetscBool)(reuse == MAT_REUSE_MATRIX && !parent->mpi);
  for (PetscInt i = 0; i < n && done; i++) PetscCall(MatTCTakeValues(A, rows[i], cols[i], (*B)[i], &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_CREATE_SUBMATRICES, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]))f)(A, n, rows, cols, reuse, B));
  for (PetscInt i = 0; i < n; i++) {
    if (!parent->mpi) PetscCall(MatTCInstallLike(A, reuse, (*B)[i]));
    else if (reuse == MAT_REUSE_MATRIX) PetscCall(MatTCHostIsWritten((*B)[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's result is of the parent's type: of sequential matrices it makes one of MATSEQAIJ and converts that, so that propagation does not come to it */
PetscErrorCode MatTranspose_AIJTCCUSPARSE(Mat A, MatReuse reuse, Mat *B)
{
  Mat_AIJTCCUSPARSE *tc, *own;
  MatTCSettings      settings = {0};
  PetscErrorCodeFn  *f;
  PetscBool          ours, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  PetscCall(MatTCContextGet(A, &tc));
  if (reuse == MAT_REUSE_MATRIX && tc && !tc->parent->mpi) PetscCall(MatTCTakeValues(A, NULL, NULL, *B, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc) settings = tc->settings; /* in place it goes */
  if (tc && tc->parent->mpi) PetscCall(MatTCEnsureBlocks(A, tc)); /* of which the parent transposes the first one so */
  PetscCall(MatTCGetParentOp(A, MATOP_TRANSPOSE, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, MatReuse, Mat *))f)(A, reuse, B));
  if (reuse == MAT_REUSE_MATRIX && tc && !tc->parent->mpi) PetscCall(MatTCHostIsWritten(*B)); /* the parent (3.26.1) does not tell the GPU */
  PetscCall(MatTCContextGet(*B, &own));
  if (ours && tc) PetscCall(MatTCInstall(*B, own && reuse == MAT_REUSE_MATRIX ? NULL : &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}
