/*
  MatInvertBlockDiagonal(): the blocks are those of a MATAIJ, bit for bit, and where the GPU alone has the values they stay there.
*/
#include "../src/petsc/compat.h" /* where the newer values are, which no public function tells */
#include "mat_state.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

/* One of each type, whose diagonals dominate; of ours the GPU alone has the values, if there is one */
static PetscErrorCode CreateMatrices(PetscInt bs, Mat A[2])
{
  tc_matrix S;
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil27", 6, &S));
  for (int s = 0; s < 2; s++) PetscCall(MatTestCreateBlocked(&S, s ? MATAIJ : MATAIJTCCUSPARSE, bs, &A[s]));
  tc_matrix_free(&S);
  PetscCall(MatTestSameProduct(A[0], A[1], &same)); /* sends the values */
  for (int s = 0; s < 2; s++) {
    PetscCall(MatShift(A[s], 9.0));
    PetscCall(MatScale(A[s], -0.75));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the inverted blocks the same, and where has the first matrix its values? */
static PetscErrorCode Compare(Mat A[2], PetscInt bs, const PetscScalar **inverted, PetscBool *same, PetscBool *on_gpu)
{
  const PetscScalar *of[2];
  Mat                block;
  PetscInt           m;

  PetscFunctionBeginUser;
  for (int s = 0; s < 2; s++) PetscCall(MatInvertBlockDiagonal(A[s], &of[s]));
  PetscCall(MatGetLocalSize(A[0], &m, NULL));
  *same = PETSC_TRUE;
  for (PetscInt i = 0; i < m * bs; i++) *same = (PetscBool)(*same && of[0][i] == of[1][i]);
  *inverted = of[0];
  PetscCall(MatTestBlock(A[0], &block));
  *on_gpu = MatTCIsDevicesAlone(block);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSize(PetscInt bs)
{
  const PetscScalar *first, *again;
  Mat                A[2], block;
  MatFactorError     error[2];
  PetscBool          cuda, same[2], on_gpu[2], product;

  PetscFunctionBeginUser;
  PetscCall(CreateMatrices(bs, A));
  PetscCall(MatTestIsCUDA(A[0], &cuda));
  PetscCall(Compare(A, bs, &first, &same[0], &on_gpu[0]));
  for (int s = 0; s < 2; s++) PetscCall(MatScale(A[s], 1.7));
  PetscCall(Compare(A, bs, &again, &same[1], &on_gpu[1]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1]), "inverted blocks of %" PetscInt_FMT " rows: %s, with new values %s", bs, same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG"));
  if (PETSC_VERSION_GE(3, 26, 0)) PetscCall(MatTestFact((PetscBool)(first == again), "inverted blocks of %" PetscInt_FMT " rows: new ones are where the others were", bs));
  if (cuda && bs < 18) PetscCall(MatTestFact((PetscBool)(on_gpu[0] && on_gpu[1]), "inverted blocks of %" PetscInt_FMT " rows: the values stay on the GPU", bs));
  PetscCall(MatTestSameProduct(A[0], A[1], &product));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatTestBlock(A[s], &block));
    PetscCall(MatSetErrorIfFailure(block, PETSC_FALSE));
    PetscCall(MatScale(A[s], 0.0));
    PetscCall(MatInvertBlockDiagonal(block, &first));
    PetscCall(MatFactorGetError(block, &error[s]));
  }
  PetscCall(MatTestFact((PetscBool)(product && error[0] == error[1] && error[1] != MAT_FACTOR_NOERROR), "inverted blocks of %" PetscInt_FMT " rows: zeros are the failure that they are of MATAIJ, %d and %d", bs, (int)error[0], (int)error[1]));
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&A[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The launch fails: the host inverts what it fetches */
static PetscErrorCode CheckFault(void)
{
  const PetscScalar *inverted;
  Mat                A[2], block;
  PetscBool          same, on_gpu;
  int                left;

  PetscFunctionBeginUser;
  PetscCall(CreateMatrices(3, A));
  PetscCall(MatTestBlock(A[0], &block));
  PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 1, &left));
  PetscCall(Compare(A, 3, &inverted, &same, &on_gpu));
  PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 0, &left));
  PetscCall(MatTestFact((PetscBool)(same && left == 0 && !on_gpu), "inverted blocks, a launch fails: right, by the host"));
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&A[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckInvertedBlocks(void)
{
  const PetscInt sizes[] = {1, 2, 3, 4, 6, 9, 18};
  PetscBool      cuda;

  PetscFunctionBeginUser;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(sizes); i++) PetscCall(CheckSize(sizes[i]));
  PetscCall(MatTestHasCUDA(&cuda));
  if (cuda) PetscCall(CheckFault());
  PetscFunctionReturn(PETSC_SUCCESS);
}
