/*
  Uses of incomplete factors.
*/
#include "uses.h"

static const struct {
  MatFactorType type;
  PetscInt      levels;
  const char   *ordering;
} factors[USE_NUM_FACTORS] = {
  [USE_ILU_0]   = {MAT_FACTOR_ILU, 0, MATORDERINGNATURAL},
  [USE_ILU_1]   = {MAT_FACTOR_ILU, 1, MATORDERINGNATURAL},
  [USE_ILU_RCM] = {MAT_FACTOR_ILU, 0, MATORDERINGRCM    },
  [USE_ICC_0]   = {MAT_FACTOR_ICC, 0, MATORDERINGNATURAL},
};

/* One solve with factor number f, which is made if there is none yet, and gets new numbers if they are wanted */
static PetscErrorCode Factored(Use *U, int f, Mat *F, PetscBool numbers)
{
  const PetscBool symmetric = (PetscBool)(factors[f].type == MAT_FACTOR_ICC);
  MatFactorInfo   info;
  IS              rows, cols;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = (PetscReal)factors[f].levels;
  info.fill   = info.levels > 0 ? 3 : 1;
  if (!*F) {
    PetscCall(MatGetFactor(U->A, NULL, factors[f].type, F));
    PetscCall(MatGetOrdering(U->A, factors[f].ordering, &rows, &cols));
    PetscCall(symmetric ? MatICCFactorSymbolic(*F, U->A, rows, &info) : MatILUFactorSymbolic(*F, U->A, rows, cols, &info));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&cols));
    numbers = PETSC_TRUE;
  }
  if (numbers) PetscCall(symmetric ? MatCholeskyFactorNumeric(*F, U->A, &info) : MatLUFactorNumeric(*F, U->A, &info));
  PetscCall(MatSolve(*F, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(Use *U, int f, int n)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < n; i++) {
    Mat F = NULL;

    PetscCall(Factored(U, f, &F, PETSC_TRUE));
    PetscCall(MatDestroy(&F));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Again(Use *U, int f, int n, PetscBool numbers)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < n; i++) PetscCall(Factored(U, f, &U->factor[f], numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode UseNewILU(Use *U, int n)
{
  return New(U, USE_ILU_0, n);
}

PetscErrorCode UseILUAgain(Use *U, int n)
{
  return Again(U, USE_ILU_0, n, PETSC_TRUE);
}

PetscErrorCode UseILU(Use *U, int n)
{
  return Again(U, USE_ILU_0, n, PETSC_FALSE);
}

PetscErrorCode UseNewILU1(Use *U, int n)
{
  return New(U, USE_ILU_1, n);
}

PetscErrorCode UseILU1Again(Use *U, int n)
{
  return Again(U, USE_ILU_1, n, PETSC_TRUE);
}

PetscErrorCode UseILU1(Use *U, int n)
{
  return Again(U, USE_ILU_1, n, PETSC_FALSE);
}

PetscErrorCode UseRCMAgain(Use *U, int n)
{
  return Again(U, USE_ILU_RCM, n, PETSC_TRUE);
}

PetscErrorCode UseRCM(Use *U, int n)
{
  return Again(U, USE_ILU_RCM, n, PETSC_FALSE);
}

PetscErrorCode UseICCAgain(Use *U, int n)
{
  return Again(U, USE_ICC_0, n, PETSC_TRUE);
}

PetscErrorCode UseICC(Use *U, int n)
{
  return Again(U, USE_ICC_0, n, PETSC_FALSE);
}

static PetscErrorCode Block(Use *U, int f, int n)
{
  PetscFunctionBeginUser;
  if (!U->factor[f]) PetscCall(Factored(U, f, &U->factor[f], PETSC_TRUE));
  for (int i = 0; i < 2 && !U->block[i]; i++) {
    VecType  type;
    PetscInt m;

    PetscCall(VecGetType(U->x, &type));
    PetscCall(VecGetSize(U->x, &m));
    PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, m, U->columns, m, U->columns, m, NULL, &U->block[i]));
    PetscCall(MatSetRandom(U->block[i], NULL));
  }
  for (int i = 0; i < n; i++) PetscCall(MatMatSolve(U->factor[f], U->block[0], U->block[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode UseILUBlock(Use *U, int n)
{
  return Block(U, USE_ILU_0, n);
}

PetscErrorCode UseILU1Block(Use *U, int n)
{
  return Block(U, USE_ILU_1, n);
}

PetscErrorCode UseICCBlock(Use *U, int n)
{
  return Block(U, USE_ICC_0, n);
}
