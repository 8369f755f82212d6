/*
  Operations of the parent (3.26.1) that change values of the host whether or not the GPU has newer ones, or without telling it, or give cuSPARSE what is not there.
*/
#include "aijtccusparseimpl.h"

/* All values of a sequential matrix have been written on the host: those of the GPU count no longer */
PetscErrorCode MatTCHostIsWritten(Mat A)
{
  PetscScalar *values;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayWrite(A, &values));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same where the host is going to change some of them, or may fail to */
static PetscErrorCode MatTCFetchToChange(Mat A)
{
  PetscScalar *values;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArray(A, &values));
  PetscCall(MatSeqAIJRestoreArray(A, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Into a sequential matrix; before, since the new pattern may be used before the parent is back. One that is not assembled has no values that a failure could lose. */
PetscErrorCode MatLoad_AIJTCCUSPARSE(Mat A, PetscViewer viewer)
{
  PetscErrorCodeFn *f;
  PetscBool         assembled;

  PetscFunctionBegin;
  PetscCall(MatTCGetParentOp(A, MATOP_LOAD, &f));
  PetscCall(MatAssembled(A, &assembled));
  PetscCall(assembled ? MatTCFetchToChange(A) : MatTCHostIsWritten(A));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscViewer))f)(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCreateSubMatricesMPI(): submatrices of one process are written on the host where they are used again, as those of MatCreateSubMatrices() are; others are new or tell */
PetscErrorCode MatCreateSubMatricesMPI_AIJTCCUSPARSE(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *B[])
{
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall((*parent->create_submatrices_mpi)(A, n, rows, cols, reuse, B));
  for (PetscInt i = 0; reuse == MAT_REUSE_MATRIX && i < n; i++) {
    PetscMPIInt size;

    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)(*B)[i]), &size));
    if (size == 1) PetscCall(MatTCHostIsWritten((*B)[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has a sequential matrix an entry that is zero? By the values of the host, which are brought up to date */
static PetscErrorCode MatTCHasZeros(Mat A, PetscBool *has)
{
  const PetscScalar *values;
  MatInfo            info;

  PetscFunctionBegin;
  *has = PETSC_FALSE;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used && !*has; k++) *has = (PetscBool)(values[k] == 0.0);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent takes the values of the host for those of the matrix, and tells nobody that they have moved */
PetscErrorCode MatEliminateZeros_AIJTCCUSPARSE(Mat A, PetscBool keep)
{
  PetscErrorCodeFn *f;
  Mat               blocks[2];
  PetscInt          num;

  PetscFunctionBegin;
  PetscCall(MatTCGetParentOp(A, MATOP_ELIMINATE_ZEROS, &f));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    PetscBool has;

    PetscCall(MatTCHasZeros(blocks[i], &has));
    if (has) PetscCall(MatTCFetchToChange(blocks[i]));
  }
  PetscCall((*(PetscErrorCode (*)(Mat, PetscBool))f)(A, keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Have two sequential matrices the same pattern? */
static PetscErrorCode MatTCEqualPatterns(Mat X, Mat Y, PetscBool *same)
{
  const PetscInt *ix, *jx, *iy, *jy;
  PetscInt        m, n;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(X, 0, PETSC_FALSE, PETSC_FALSE, &m, &ix, &jx, &done));
  PetscCall(MatGetRowIJ(Y, 0, PETSC_FALSE, PETSC_FALSE, &n, &iy, &jy, &done));
  PetscCall(PetscArraycmp(ix, iy, m + 1, same));
  if (*same) PetscCall(PetscArraycmp(jx, jy, ix[m], same));
  PetscCall(MatRestoreRowIJ(Y, 0, PETSC_FALSE, PETSC_FALSE, &n, &iy, &jy, &done));
  PetscCall(MatRestoreRowIJ(X, 0, PETSC_FALSE, PETSC_FALSE, &m, &ix, &jx, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Y + a X where one of the two is a matrix of the GPU many of whose rows are empty. For a subset the parent gives cuSPARSE the offsets of the other rows for those of all rows, which reads and writes beyond its arrays;
  so if the patterns are not the same the host does it. Y or X has this function, or both.
*/
PetscErrorCode MatAXPY_AIJTCCUSPARSE(Mat Y, PetscScalar a, Mat X, MatStructure structure)
{
  const MatTCParent *parent;
  PetscErrorCodeFn  *f, *of_x;
  PetscErrorCode     ierr;
  PetscBool          ours, same;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(Y, &parent));
  PetscCall(MatTCGetParentOp(Y, MATOP_AXPY, &f));
  PetscCall(MatGetOperation(X, MATOP_AXPY, &of_x));
  ours = (PetscBool)(of_x == (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE);
  if (ours) PetscCall(MatTCGetParentOp(X, MATOP_AXPY, &of_x));
  if (structure == SUBSET_NONZERO_PATTERN && of_x == f) {
    PetscCall(MatTCEqualPatterns(X, Y, &same));
    if (same) structure = SAME_NONZERO_PATTERN;
    else f = parent->ops[1][MATOP_AXPY];
  }
  /* the parent compares those of both, and goes to the host where they differ, one of them being bound to it */
  PetscCall(MatSetOperation(Y, MATOP_AXPY, f));
  if (ours) PetscCall(MatSetOperation(X, MATOP_AXPY, of_x));
  ierr = (*(PetscErrorCode (*)(Mat, PetscScalar, Mat, MatStructure))f)(Y, a, X, structure);
  PetscCall(MatTCInstallAXPY(Y, parent, PETSC_TRUE));
  if (ours) PetscCall(MatSetOperation(X, MATOP_AXPY, (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only where it is needed, by the pattern, if there is one: the parent goes to the host where it is one matrix's alone, of our type and one that is not, say */
PetscErrorCode MatTCInstallAXPY(Mat A, const MatTCParent *parent, PetscBool pattern)
{
  PetscErrorCodeFn *f;
  PetscBool         few = PETSC_FALSE;

  PetscFunctionBegin;
  if (!parent->cuda || parent->mpi) PetscFunctionReturn(PETSC_SUCCESS);
  if (pattern) PetscCall(MatTCLeavesOutRows(A, &few));
  PetscCall(MatTCParentOp(A, parent, MATOP_AXPY, &f));
  PetscCall(MatSetOperation(A, MATOP_AXPY, few ? (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE : f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent adds sums of columns of a parallel matrix to a new vector of the GPU as if that were zero; one of the host is */
PetscErrorCode MatNorm_AIJTCCUSPARSE(Mat A, NormType type, PetscReal *norm)
{
  const MatTCParent *parent;
  PetscErrorCodeFn  *f;
  PetscErrorCode     ierr;
  PetscBool          mend;
  Mat                of[2] = {A, NULL};
  char              *kept[2];

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCGetParentOp(A, MATOP_NORM, &f));
  mend = (PetscBool)(parent->mpi && parent->cuda && type == NORM_1);
  if (mend) PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &of[1], NULL));
  for (int i = 0; mend && i < 2; i++) {
    VecType vec_type;

    PetscCall(MatGetVecType(of[i], &vec_type));
    PetscCall(PetscStrallocpy(vec_type, &kept[i]));
    PetscCall(MatSetVecType(of[i], VECSTANDARD));
  }
  ierr = (*(PetscErrorCode (*)(Mat, NormType, PetscReal *))f)(A, type, norm);
  for (int i = 0; mend && i < 2; i++) {
    PetscCall(MatSetVecType(of[i], kept[i]));
    PetscCall(PetscFree(kept[i]));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The functions that the parent finds on the blocks of a parallel matrix are ours */
static PetscErrorCode MatTCParentWithBlocks(Mat A, const MatTCParent **parent)
{
  Mat_AIJTCCUSPARSE *tc = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, parent));
  if ((*parent)->mpi) PetscCall(MatTCContextGet(A, &tc));
  if (tc) PetscCall(MatTCEnsureBlocks(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatStoreValues() and MatRetrieveValues() of the parent copy the host values without looking whether the GPU has newer ones, or telling it afterwards
*/
PetscErrorCode MatStoreValues_AIJTCCUSPARSE(Mat A)
{
  const MatTCParent *parent;
  const PetscScalar *values;

  PetscFunctionBegin;
  PetscCall(MatTCParentWithBlocks(A, &parent));
  if (!parent->mpi) {
    PetscCall(MatSeqAIJGetArrayRead(A, &values));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  }
  PetscCall((*parent->store_values)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRetrieveValues_AIJTCCUSPARSE(Mat A)
{
  const MatTCParent *parent;
  PetscScalar       *values = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCParentWithBlocks(A, &parent));
  if (!parent->mpi) PetscCall(MatSeqAIJGetArrayWrite(A, &values));
  PetscCall((*parent->retrieve_values)(A));
  if (!parent->mpi) PetscCall(MatSeqAIJRestoreArrayWrite(A, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Entries by coordinates into a matrix of the GPU that is bound to the CPU: the parent keeps lists for whichever of the two assembles when they are given, and the other one, if that has to insert values, finds none. So
  it is the GPU in any case, and the matrix is not bound in the meantime. Collective.
*/
static PetscErrorCode MatSetPreallocationCOO_AIJTCCUSPARSE(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  const MatTCParent *parent;
  PetscErrorCode     ierr;
  PetscBool          bound;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatBoundToCPU(A, &bound));
  if (bound) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  ierr = (*parent->set_preallocation_coo)(A, n, i, j);
  if (bound) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_AIJTCCUSPARSE(Mat A, const PetscScalar v[], InsertMode mode)
{
  const MatTCParent *parent;
  PetscErrorCode     ierr;
  PetscBool          bound;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatBoundToCPU(A, &bound));
  if (bound) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  ierr = (*parent->set_values_coo)(A, v, mode);
  if (bound) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the parent's, sequential matrices that are bound have none */
PetscErrorCode MatTCComposeCOO(Mat A, const MatTCParent *parent, MatTCCompose what)
{
  const PetscBool ours = (PetscBool)(what == MATTC_COMPOSE_OURS);
  PetscBool       bound;

  PetscFunctionBegin;
  if (!parent->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBoundToCPU(A, &bound));
  if (parent->mpi) bound = PETSC_FALSE;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", ours ? MatSetPreallocationCOO_AIJTCCUSPARSE : bound ? NULL : parent->set_preallocation_coo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", ours ? MatSetValuesCOO_AIJTCCUSPARSE : bound ? NULL : parent->set_values_coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}
