/*
  Dense blocks that may be anywhere, on the GPU.
*/
#include "solve.h"

#if PetscDefined(HAVE_CUDA)

/* By way of the host: MatCopy() goes by entries where the two are of different types */
static PetscErrorCode MatTCBlockCopy(Mat from, Mat to)
{
  PetscInt     m, n, ld_from, ld_to;
  PetscScalar *x, *y;
  int          far;

  PetscFunctionBegin;
  PetscCall(MatGetSize(from, &m, &n));
  PetscCall(MatTCDenseGet(from, MATTC_READ, PETSC_TRUE, &x, &ld_from, &far));
  PetscCall(MatTCDenseGet(to, MATTC_WRITE, PETSC_TRUE, &y, &ld_to, &far));
  for (PetscInt j = 0; j < n; j++) PetscCall(PetscArraycpy(y + j * ld_to, x + j * ld_from, m));
  PetscCall(MatTCDenseRestore(to, MATTC_WRITE, PETSC_TRUE, &y));
  PetscCall(MatTCDenseRestore(from, MATTC_READ, PETSC_TRUE, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBlockGet(Mat B, MatTCAccess access, MatTCBlock *block)
{
  PetscInt m, n;
  int      far;

  PetscFunctionBegin;
  block->block  = B;
  block->copy   = NULL;
  block->access = access;
  PetscCall(MatTCDenseGet(B, access, PETSC_FALSE, &block->array, &block->ld, &far));
  if (!far) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCDenseRestore(B, access, PETSC_FALSE, &block->array));
  PetscCall(MatGetSize(B, &m, &n));
  PetscCall(MatCreateSeqDenseCUDA(PETSC_COMM_SELF, m, n, NULL, &block->copy));
  if (access != MATTC_WRITE) PetscCall(MatTCBlockCopy(B, block->copy));
  PetscCall(MatTCDenseGet(block->copy, access, PETSC_FALSE, &block->array, &block->ld, &far));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBlockRestore(MatTCBlock *block)
{
  PetscFunctionBegin;
  PetscCall(MatTCDenseRestore(block->copy ? block->copy : block->block, block->access, PETSC_FALSE, &block->array));
  if (block->copy && block->access != MATTC_READ) PetscCall(MatTCBlockCopy(block->copy, block->block));
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
