/*
  Dense blocks that may be anywhere, on the GPU.
*/
#include "solve.h"

#if PetscDefined(HAVE_CUDA)

/* A copy of what is not there; of what is only written, too, for its shape */
PetscErrorCode MatTCBlockGet(Mat B, MatTCAccess access, MatTCBlock *block)
{
  int far;

  PetscFunctionBegin;
  block->block  = B;
  block->copy   = NULL;
  block->access = access;
  PetscCall(MatTCDenseGet(B, access, PETSC_FALSE, &block->array, &block->ld, &far));
  if (!far) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCDenseRestore(B, access, PETSC_FALSE, &block->array));
  PetscCall(MatConvert(B, MATDENSECUDA, MAT_INITIAL_MATRIX, &block->copy));
  PetscCall(MatBindToCPU(block->copy, PETSC_FALSE)); /* B may be bound */
  PetscCall(MatTCDenseGet(block->copy, access, PETSC_FALSE, &block->array, &block->ld, &far));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBlockRestore(MatTCBlock *block)
{
  PetscFunctionBegin;
  PetscCall(MatTCDenseRestore(block->copy ? block->copy : block->block, block->access, PETSC_FALSE, &block->array));
  if (block->copy && block->access != MATTC_READ) PetscCall(MatCopy(block->copy, block->block, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&block->copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a factor that may take one column after the other, and X may be B */
PetscErrorCode MatTCBlockSolve(Mat F, Mat B, Mat X, PetscBool transposed)
{
  Mat from = B;

  PetscFunctionBegin;
  if (B == X) PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &from));
  PetscCall(transposed ? MatMatSolveTranspose(F, from, X) : MatMatSolve(F, from, X));
  if (B == X) PetscCall(MatDestroy(&from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
