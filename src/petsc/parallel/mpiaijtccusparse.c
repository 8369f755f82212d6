/*
  Parallel matrices: the parent multiplies with its two local blocks, overlapping the first with the exchange of ghost values, so all that is needed is that both
  blocks are ours. PETSc makes new blocks in many places (preallocation, hash and COO assembly, disassembly, header merges), which is why this is checked at use.
*/
#include "../aijtccusparseimpl.h"

/* The local parts that hold entries: the matrix itself, or the existing blocks of a parallel matrix */
PetscErrorCode MatTCGetBlocks(Mat A, PetscInt *num, Mat blocks[2])
{
  Mat       diagonal, off_diagonal;
  PetscBool mpi;

  PetscFunctionBegin;
  *num = 0;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, NULL));
    if (diagonal) blocks[(*num)++] = diagonal;
    if (off_diagonal) blocks[(*num)++] = off_diagonal;
  } else blocks[(*num)++] = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatResetHash() gives a parallel matrix of the GPU blocks of the host (PETSc 3.26.1), which stay there */
PetscErrorCode MatTCMoveBlocks(Mat A, const MatTCParent *parent)
{
  Mat       blocks[2];
  PetscInt  num = 0;
  PetscBool host, bound;

  PetscFunctionBegin;
  if (parent->cuda) PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)blocks[i], MATSEQAIJ, &host));
    if (!host) continue;
    PetscCall(MatConvert(blocks[i], MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &blocks[i]));
    PetscCall(MatBoundToCPU(A, &bound));
    PetscCall(MatBindToCPU(blocks[i], bound));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the blocks of a parallel matrix ours, with its settings; they may not know its block size */
PetscErrorCode MatTCEnsureBlocks(Mat A, const Mat_AIJTCCUSPARSE *tc)
{
  Mat      blocks[2];
  PetscInt num, rows, cols;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  PetscCall(MatGetBlockSizes(A, &rows, &cols));
  for (PetscInt i = 0; i < num; i++) {
    Mat_AIJTCCUSPARSE *block;
    PetscBool          ours;

    PetscCall(MatIsAIJTCCUSPARSE(blocks[i], &ours));
    if (ours) {
      PetscCall(MatTCContextGet(blocks[i], &block));
      PetscCall(MatTCSetSettings(block, &tc->settings));
    } else {
      PetscCall(MatTCInstall(blocks[i], &tc->settings));
      PetscCall(MatTCContextGet(blocks[i], &block));
    }
    if (!block) continue;
    block->block_size[MATTC_FORWARD]   = rows;
    block->block_size[MATTC_TRANSPOSE] = cols;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
