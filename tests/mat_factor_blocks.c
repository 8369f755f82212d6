/*
  Blocks of right-hand sides: each column is what it is by itself, however many there are, and also where there is no memory for them together.
*/
#include "mat_factor.h"
#include "../kernels/tc_base.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

/* Y = F^-1 B column by column */
static PetscErrorCode SolveEach(Mat F, PetscBool transposed, Mat B, Mat Y)
{
  PetscInt columns;
  Vec      b, x;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, NULL, &columns));
  PetscCall(MatCreateVecs(B, NULL, &b));
  PetscCall(VecDuplicate(b, &x));
  for (PetscInt j = 0; j < columns; j++) {
    PetscCall(MatGetColumnVector(B, b, j));
    PetscCall((transposed ? MatSolveTranspose : MatSolve)(F, b, x));
    Vec to;

    PetscCall(MatDenseGetColumnVecWrite(Y, j, &to));
    PetscCall(VecCopy(x, to));
    PetscCall(MatDenseRestoreColumnVecWrite(Y, j, &to));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are they, both ways, with and without memory? *left: passes that are left when memory was to fail, 0 if it did */
static PetscErrorCode CompareBlock(Mat ours, Mat block, Mat F, PetscInt columns, PetscBool *same, int *left)
{
  PetscInt  m;
  VecType   type;
  Mat       B, X, Y;
  PetscBool so;

  PetscFunctionBeginUser;
  *same = PETSC_TRUE;
  PetscCall(MatGetLocalSize(block, &m, NULL));
  PetscCall(MatGetVecType(block, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, m, columns, m, columns, -1, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  for (int transposed = 0; transposed < 2; transposed++) {
    for (int fails = 0; fails < 2; fails++) {
      PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
      PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &Y));
      PetscCall(SolveEach(F, (PetscBool)transposed, B, Y));
      if (fails) PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 1, left));
      PetscCall((transposed ? MatMatSolveTranspose : MatMatSolve)(F, B, X));
      if (fails) PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 0, left));
      PetscCall(MatEqual(X, Y, &so));
      if (!so) *same = PETSC_FALSE;
      PetscCall(MatDestroy(&X));
      PetscCall(MatDestroy(&Y));
    }
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestBlocks(MatFactorType type, PetscInt levels, const char ordering[], const char name[], PetscInt size)
{
  static const PetscInt columns[] = {1, 2, 3, 31, 32, 33, 70};
  const Kind            kind      = {"", type, levels, ordering};
  Mat                   ours, block, F;
  PetscBool             cuda, same;
  int                   left;

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  if (!cuda) { /* the host's are PETSc's, whose blocks take other sums than vectors where rows come in nodes */
    PetscCall(MatDestroy(&ours));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Factor(&kind, MATSOLVERAIJTCCUSPARSE, block, &F));
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(columns); c++) {
    PetscCall(CompareBlock(ours, block, F, columns[c], &same, &left));
    PetscCall(MatTestFact((PetscBool)(same && (left == 0) == (columns[c] > 2)), "%s, %s(%" PetscInt_FMT ") %s, %" PetscInt_FMT " columns: each as by itself, %s", name, MatFactorTypes[type], levels, ordering, columns[c],
                          left == 0 ? "without memory, too" : "nothing asked for memory"));
  }
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}
