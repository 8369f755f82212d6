#include "mat_ops.h"

/* r = b - A x, of which PETSc looks at nothing: vectors of other sizes, one that is locked, the same one twice, a matrix that is not assembled; then a residual as before */
static PetscErrorCode CheckResidual(void)
{
  enum {
    OTHER_X,
    OTHER_B,
    OTHER_R,
    LOCKED,
    SAME,
    UNASSEMBLED,
    NUM
  };
  static const PetscErrorCode expected[NUM] = {PETSC_ERR_ARG_SIZ, PETSC_ERR_ARG_SIZ, PETSC_ERR_ARG_SIZ, PETSC_ERR_ARG_WRONGSTATE, PETSC_ERR_ARG_IDN, PETSC_ERR_ARG_WRONGSTATE};
  Mat            ours, plain;
  Vec            x, b, r, other;
  PetscErrorCode ierr[NUM];
  PetscInt       m, row;
  PetscBool      same, right = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(CreatePair("stencil7", 6, &ours, &plain));
  PetscCall(MatCreateVecs(ours, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecGetLocalSize(b, &m));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &other));
  PetscCall(VecSetSizes(other, m + 1, PETSC_DETERMINE));
  PetscCall(VecSetType(other, VECSTANDARD));
  for (int v = 0; v < 4; v++) PetscCall(VecSet(v == 0 ? x : v == 1 ? b : v == 2 ? r : other, 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr[OTHER_X] = MatResidual(ours, b, other, r);
  ierr[OTHER_B] = MatResidual(ours, other, x, r);
  ierr[OTHER_R] = MatResidual(ours, b, x, other);
  PetscCall(VecLockReadPush(r));
  ierr[LOCKED] = MatResidual(ours, b, x, r);
  PetscCall(VecLockReadPop(r));
  ierr[SAME] = MatResidual(ours, b, x, x);
  PetscCall(MatGetOwnershipRange(ours, &row, NULL));
  if (m > 0) PetscCall(MatSetValue(ours, row, row, 2, ADD_VALUES));
  ierr[UNASSEMBLED] = m > 0 ? MatResidual(ours, b, x, r) : expected[UNASSEMBLED];
  PetscCall(PetscPopErrorHandler());
  if (m > 0) PetscCall(MatSetValue(plain, row, row, 2, ADD_VALUES));
  for (int a = 0; a < 2; a++) {
    PetscCall(MatAssemblyBegin(a ? plain : ours, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(a ? plain : ours, MAT_FINAL_ASSEMBLY));
  }
  for (int e = 0; e < NUM; e++) right = (PetscBool)(right && ierr[e] == expected[e]);
  PetscCall(MatTestSameResidual(ours, plain, &same));
  PetscCall(MatTestFact((PetscBool)(right && same), "residual: errors %d, %d, %d for sizes, %d for a locked result, %d for x in its place, %d for a matrix that is not assembled; then %s", (int)ierr[OTHER_X], (int)ierr[OTHER_B], (int)ierr[OTHER_R], (int)ierr[LOCKED], (int)ierr[SAME],
                        (int)ierr[UNASSEMBLED], same ? "right" : "WRONG"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&other));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers that are no values of an enumeration, the first ones beyond each end among them */
static PetscErrorCode CheckSettings(void)
{
  static const int values[] = {-1, 7, 77};
  Mat              ours, plain;
  int              refused = 0;
  PetscBool        same;

  PetscFunctionBeginUser;
  PetscCall(CreatePair("stencil7", 6, &ours, &plain));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (size_t v = 0; v < PETSC_STATIC_ARRAY_LENGTH(values); v++) {
    const PetscErrorCode ierr[] = {MatAIJTCCUSPARSESetSpMV(ours, (MatAIJTCCUSPARSESpMV)values[v]), MatAIJTCCUSPARSESetSpMM(ours, (MatAIJTCCUSPARSESpMM)values[v]), MatAIJTCCUSPARSESetPrecision(ours, (MatAIJTCCUSPARSEPrecision)values[v]),
                                   MatAIJTCCUSPARSESetArithmetic(ours, (MatAIJTCCUSPARSEArithmetic)values[v]), MatAIJTCCUSPARSESetSpMMReorder(ours, (MatAIJTCCUSPARSEReorder)values[v]),
                                   MatAIJTCCUSPARSESetExchange(ours, (MatAIJTCCUSPARSEExchange)values[v]), MatAIJTCCUSPARSESetSOR(ours, (MatAIJTCCUSPARSESOR)values[v])};

    for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(ierr); s++) refused += ierr[s] == PETSC_ERR_ARG_OUTOFRANGE;
  }
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestFact((PetscBool)(refused == 21 && same), "settings that there are not: %d of 21 refused, products %s", refused, same ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operations of products and transposed products as -log_view counts them: those of the parent type */
static PetscErrorCode CheckFlops(void)
{
  Mat            ours, plain;
  Vec            x, y;
  PetscLogDouble flops[2][2], before, after;
  PetscBool      cuda;

  PetscFunctionBeginUser;
  PetscCall(CreatePair("stencil7", 6, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  for (int m = 0; m < 2 && !cuda; m++) {
    const Mat A = m ? plain : ours;

    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1));
    for (int transpose = 0; transpose < 2; transpose++) {
      PetscCall((transpose ? MatMultTranspose : MatMult)(A, x, y));
      PetscCall(PetscGetFlops(&before));
      PetscCall((transpose ? MatMultTranspose : MatMult)(A, x, y));
      PetscCall(PetscGetFlops(&after));
      flops[m][transpose] = after - before;
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  if (cuda) PetscCall(MatTestSkip("operations logged: on the host, where both types multiply there"));
  else PetscCall(MatTestFact((PetscBool)(flops[0][0] == flops[1][0] && flops[0][1] == flops[1][1]), "operations logged: product %g, expected %g, transposed %g, expected %g", flops[0][0], flops[1][0], flops[0][1], flops[1][1]));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckRefused(void)
{
  PetscFunctionBeginUser;
  PetscCall(CheckResidual());
  PetscCall(CheckSettings());
  PetscCall(CheckFlops());
  PetscFunctionReturn(PETSC_SUCCESS);
}
