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

/* Into a sequential matrix that is assembled; before, since the new pattern may be used before the parent is back */
PetscErrorCode MatLoad_AIJTCCUSPARSE(Mat A, PetscViewer viewer)
{
  PetscErrorCodeFn *f;
  PetscBool         assembled;

  PetscFunctionBegin;
  PetscCall(MatTCGetParentOp(A, MATOP_LOAD, &f));
  PetscCall(MatAssembled(A, &assembled));
  if (assembled) PetscCall(MatTCFetchToChange(A));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscViewer))f)(A, viewer));
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
  for (PetscInt i = 0; i < num; i++) PetscCall(MatTCFetchToChange(blocks[i]));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscBool))f)(A, keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Y + a X where X has some entries of Y. Of a matrix many of whose rows are empty the GPU has the offsets of the other rows, which cuSPARSE is given for those of all rows, and reads and writes
  beyond its arrays; the host does it then.
*/
PetscErrorCode MatAXPY_AIJTCCUSPARSE(Mat Y, PetscScalar a, Mat X, MatStructure structure)
{
  const MatTCParent *parent;
  PetscErrorCodeFn  *of_y, *of_x;
  PetscBool          few = PETSC_FALSE, ours;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(Y, &parent));
  PetscCall(MatTCGetParentOp(Y, MATOP_AXPY, &of_y));
  PetscCall(MatGetOperation(X, MATOP_AXPY, &of_x));
  ours = (PetscBool)(of_x == (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE);
  if (ours) PetscCall(MatTCGetParentOp(X, MATOP_AXPY, &of_x));
  if (parent->cuda && structure == SUBSET_NONZERO_PATTERN && of_x == of_y) {
    PetscCall(MatTCHasShortRows(Y, &few));
    if (!few) PetscCall(MatTCHasShortRows(X, &few));
    if (few) of_y = parent->ops[1][MATOP_AXPY];
  }
  /* the parent looks at both, and goes to the host where they differ, one of them being bound to it */
  PetscCall(MatSetOperation(Y, MATOP_AXPY, of_y));
  if (ours) PetscCall(MatSetOperation(X, MATOP_AXPY, of_x));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscScalar, Mat, MatStructure))of_y)(Y, a, X, structure));
  PetscCall(MatSetOperation(Y, MATOP_AXPY, (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE));
  if (ours) PetscCall(MatSetOperation(X, MATOP_AXPY, (PetscErrorCodeFn *)MatAXPY_AIJTCCUSPARSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent adds sums of columns of a parallel matrix to a new vector of the GPU as if that were zero; one of the host is */
PetscErrorCode MatNorm_AIJTCCUSPARSE(Mat A, NormType type, PetscReal *norm)
{
  const MatTCParent *parent;
  PetscErrorCodeFn  *f;
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
  PetscCall((*(PetscErrorCode (*)(Mat, NormType, PetscReal *))f)(A, type, norm));
  for (int i = 0; mend && i < 2; i++) {
    PetscCall(MatSetVecType(of[i], kept[i]));
    PetscCall(PetscFree(kept[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatStoreValues() and MatRetrieveValues() of the parent copy the host values without looking whether the GPU has newer ones, or telling it afterwards
*/
PetscErrorCode MatStoreValues_AIJTCCUSPARSE(Mat A)
{
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  if (parent->mpi) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGet(A, &tc));
    if (tc) PetscCall(MatTCEnsureBlocks(A, tc));
  } else {
    const PetscScalar *values;

    PetscCall(MatSeqAIJGetArrayRead(A, &values));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  }
  PetscCall((*parent->store_values)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRetrieveValues_AIJTCCUSPARSE(Mat A)
{
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  if (parent->mpi) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGet(A, &tc));
    if (tc) PetscCall(MatTCEnsureBlocks(A, tc));
    PetscCall((*parent->retrieve_values)(A));
  } else {
    PetscScalar *values;

    PetscCall(MatSeqAIJGetArrayWrite(A, &values));
    PetscCall((*parent->retrieve_values)(A));
    PetscCall(MatSeqAIJRestoreArrayWrite(A, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
