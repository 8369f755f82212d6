/*
  Diagonals. MatShift() and MatDiagonalSet() of the parent (3.26.1) fetch all values of a matrix on the GPU, change them on the host and leave them there, so that the next product sends them back; ours
  change those of the GPU where they are. MatGetDiagonal() of the parent is right but for patterns of one kind.
*/
#include "aijtccusparseimpl.h"

/* On the GPU, where the parent's would read beyond its arrays, by what it does when it is bound to the CPU */
PetscErrorCode MatGetDiagonal_AIJTCCUSPARSE(Mat A, Vec v)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscErrorCodeFn  *f = NULL;
  PetscBool          bound, wrong = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCParentOp(A, parent, MATOP_GET_DIAGONAL, &f));
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatBoundToCPU(A, &bound));
  if (!parent->mpi && parent->cuda && tc) PetscCall(MatTCSendToDevice(A, tc, MatTCGetBackend(PETSC_TRUE))); /* as the parent would */
  if (parent->mpi && tc) PetscCall(MatTCEnsureBlocks(A, tc)); /* the parent asks the diagonal one */
  else if (MATTC_PARENT_DIAGONAL_NEEDS_ROWS && !parent->mpi && parent->cuda && !bound && !MatTCIsHostsAlone(A)) PetscCall(MatTCLeavesOutRows(A, &wrong));
  if (wrong) {
    PetscCall(PetscInfo(A, "aijtccusparse takes the diagonal on the host: %s reads beyond its arrays in this release of PETSc where many rows are empty\n", parent->type));
    f = parent->ops[1][MATOP_GET_DIAGONAL];
  }
  PetscCall((*(PetscErrorCode (*)(Mat, Vec))f)(A, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is a sequential matrix square, and has every row an entry on the diagonal, and its columns in order? */
static PetscErrorCode MatTCDiagonalIsFull(Mat A, PetscBool *full)
{
  const PetscInt *ia, *ja;
  PetscInt        m, n;
  PetscBool       done;

  PetscFunctionBegin;
  *full = PETSC_FALSE;
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (m != n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  *full = done;
  for (PetscInt i = 0; i < m && *full; i++) {
    PetscBool there = PETSC_FALSE;

    for (PetscInt k = ia[i]; k < ia[i + 1]; k++) {
      if (ja[k] == i) there = PETSC_TRUE;
      if (k > ia[i] && ja[k] <= ja[k - 1]) *full = PETSC_FALSE;
    }
    if (!there) *full = PETSC_FALSE;
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same, asked once for each pattern */
PetscErrorCode MatTCHasFullDiagonal(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool *full)
{
  PetscFunctionBegin;
  PetscCall(MatTCPatternFactGet(A, tc, &tc->diagonal_full, MatTCDiagonalIsFull, full));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What changes on the diagonal: by a vector, or by the same number everywhere if there is none */
typedef struct {
  Vec         by;
  PetscScalar all;
  InsertMode  mode;
} MatTCDiagonalChange;

static tc_status MatTCChangeDiagonal(const tc_backend *backend, const tc_csr_local *rows, const MatTCDiagonalChange *change, const PetscScalar *by, PetscScalar *values, tc_stream stream)
{
  const tc_stream parents = MatTCGetParentStream();

  TC_CALL(tc_from_backend(backend, backend->wait(stream, parents)));
  TC_CALL(tc_from_backend(backend, backend->set_diagonal(rows, MATTC_SCALAR, by, (double)PetscRealPart(change->all), change->mode == ADD_VALUES, values, stream)));
  return tc_from_backend(backend, backend->wait(parents, stream));
}

/* Of a sequential matrix whose values the GPU has; `done` is false, and nothing has changed, when the parent has to do it */
static PetscErrorCode MatTCDiagonalOnDevice(Mat A, Mat_AIJTCCUSPARSE *tc, const MatTCDiagonalChange *change, PetscBool *done)
{
  const tc_backend *backend;
  MatTCPattern      P;
  MatTCArray        by = {0};
  PetscScalar      *values;
  tc_key            key;
  tc_stream         stream;
  tc_status         status = TC_OK;
  PetscBool         full = PETSC_FALSE;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!tc || MatTCIsHostsAlone(A) || !MatTCHostFollowsState() || !MatTCIsPropagating() || (change->mode != ADD_VALUES && change->mode != INSERT_VALUES)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_FORWARD], &backend, &key, &stream, done));
  if (*done && backend->set_diagonal) PetscCall(MatTCHasFullDiagonal(A, tc, &full));
  *done = PETSC_FALSE;
  if (!full) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
  if (change->by) PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_X, change->by, MATTC_READ, stream, &by, &status));
  if (status == TC_OK) {
    PetscCall(MatTCChangeDeviceValues(A, &values));
    status = MatTCChangeDiagonal(backend, &P.local, change, by.local, values, stream);
    PetscCall(MatTCChangedDeviceValues(A, &values));
  }
  if (change->by) PetscCall(MatTCArrayRestore(backend, stream, &by, &status));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  *done = (PetscBool)(status == TC_OK);
  if (!*done) PetscCall(PetscInfo(A, "aijtccusparse changes the diagonal on the host: %s\n", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Of a parallel matrix by its diagonal blocks, if all of them have their diagonals: the parent's sets one value after the other and assembles. Collective
*/
static PetscErrorCode MatTCShiftBlocks(Mat A, const Mat_AIJTCCUSPARSE *tc, PetscScalar by, PetscBool *done)
{
  Mat                blocks[2];
  Mat_AIJTCCUSPARSE *block;
  PetscInt           num, m;
  PetscBool          congruent, mine = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  PetscCall(MatHasCongruentLayouts(A, &congruent));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  if (congruent && num > 0) {
    PetscCall(MatTCContextGet(blocks[0], &block));
    if (block) PetscCall(MatTCHasFullDiagonal(blocks[0], block, &mine));
  }
  PetscCallMPI(MPIU_Allreduce(&mine, done, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (*done && m > 0) PetscCall(MatShift(blocks[0], by));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatShift_AIJTCCUSPARSE(Mat A, PetscScalar by)
{
  const MatTCDiagonalChange change = {NULL, by, ADD_VALUES};
  Mat_AIJTCCUSPARSE        *tc;
  PetscErrorCodeFn         *f;
  PetscBool                 done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && tc->parent->mpi) PetscCall(MatTCShiftBlocks(A, tc, by, &done));
  else PetscCall(MatTCDiagonalOnDevice(A, tc, &change, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_SHIFT, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscScalar))f)(A, by));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent of a parallel matrix asks its diagonal block */
PetscErrorCode MatDiagonalSet_AIJTCCUSPARSE(Mat A, Vec by, InsertMode mode)
{
  const MatTCDiagonalChange change = {by, 0.0, mode};
  Mat_AIJTCCUSPARSE        *tc;
  PetscErrorCodeFn         *f;
  PetscBool                 assembled, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatAssembled(A, &assembled));
  if (tc && tc->parent->mpi) PetscCall(MatTCEnsureBlocks(A, tc));
  else if (assembled) PetscCall(MatTCDiagonalOnDevice(A, tc, &change, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_DIAGONAL_SET, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, Vec, InsertMode))f)(A, by, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}
