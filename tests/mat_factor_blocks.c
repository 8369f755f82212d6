/*
  Blocks of right-hand sides: each column is what it is by itself, however many there are, and also where there is no memory for them together. And halves of solves, of which PETSc makes symmetric preconditioners.
*/
#include "mat_factor.h"
#include <petscksp.h>
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

/* Are they, both ways, with and without memory, and of blocks that are bound to the CPU? *left: passes that are left when memory was to fail, 0 if it did */
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
    for (int way = 0; way < 3; way++) {
      const PetscBool fails = (PetscBool)(way == 1);

      PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
      PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &Y));
      PetscCall(SolveEach(F, (PetscBool)transposed, B, Y));
      if (way == 2) {
        PetscCall(MatBindToCPU(B, PETSC_TRUE));
        PetscCall(MatBindToCPU(X, PETSC_TRUE));
      }
      if (fails) PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 1, left));
      PetscCall((transposed ? MatMatSolveTranspose : MatMatSolve)(F, B, X));
      if (fails) PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 0, left));
      PetscCall(MatBindToCPU(B, PETSC_FALSE));
      PetscCall(MatBindToCPU(X, PETSC_FALSE));
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

/* Forward, backward, and one after the other, against the same with the factor of a MATSEQAIJ, of vectors that are the host's or not */
static PetscErrorCode CompareHalves(Mat block, Mat F, Mat plain, Mat expected, PetscReal *worst)
{
  Vec       b[2], half[2], x[2], whole, on_host;
  PetscReal difference, norm;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(block, &x[0], &b[0]));
  PetscCall(MatCreateVecs(plain, &x[1], &b[1]));
  PetscCall(VecSetRandom(b[1], NULL));
  PetscCall(VecCopy(b[1], b[0]));
  for (int s = 0; s < 2; s++) {
    PetscCall(VecDuplicate(b[s], &half[s]));
    PetscCall(MatForwardSolve(s ? expected : F, b[s], half[s]));
    PetscCall(MatBackwardSolve(s ? expected : F, half[s], x[s]));
  }
  PetscCall(VecDuplicate(b[0], &whole));
  PetscCall(MatSolve(F, b[0], whole));
  PetscCall(VecNorm(whole, NORM_INFINITY, &norm));
  PetscCall(VecAXPY(whole, -1.0, x[0]));
  PetscCall(VecNorm(whole, NORM_INFINITY, worst));
  *worst /= norm;
  PetscCall(VecDuplicate(b[1], &on_host));
  for (int back = 0; back < 2; back++) { /* from the same halves */
    PetscCall(VecCopy(back ? x[0] : half[0], on_host));
    PetscCall(VecNorm(back ? x[1] : half[1], NORM_INFINITY, &norm));
    PetscCall(VecAXPY(on_host, -1.0, back ? x[1] : half[1]));
    PetscCall(VecNorm(on_host, NORM_INFINITY, &difference));
    *worst = PetscMax(*worst, difference / norm);
    PetscCall((back ? MatBackwardSolve : MatForwardSolve)(F, b[1], on_host)); /* a vector of the host */
    PetscCall((back ? MatBackwardSolve : MatForwardSolve)(expected, b[1], x[1]));
    PetscCall(VecNorm(x[1], NORM_INFINITY, &norm));
    PetscCall(VecAXPY(on_host, -1.0, x[1]));
    PetscCall(VecNorm(on_host, NORM_INFINITY, &difference));
    *worst = PetscMax(*worst, difference / norm);
    PetscCall(MatBackwardSolve(expected, half[1], x[1])); /* what it was */
  }
  for (int s = 0; s < 2; s++) {
    PetscCall(VecDestroy(&b[s]));
    PetscCall(VecDestroy(&half[s]));
    PetscCall(VecDestroy(&x[s]));
  }
  PetscCall(VecDestroy(&whole));
  PetscCall(VecDestroy(&on_host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations of GMRES between the halves */
static PetscErrorCode SymmetricIterations(Mat A, PetscInt *its)
{
  KSP ksp;
  PC  pc;
  Vec b, x;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPSetPCSide(ksp, PC_SYMMETRIC));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCICC));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestHalves(PetscInt levels, const char ordering[], const char name[], PetscInt size)
{
  const PetscReal tolerance = PetscDefined(USE_REAL_SINGLE) ? 1e-5 : 1e-13; /* gamma of some 100 operations for each element, of factor and solves, times rows of |L^-1| |L| that add up to less than 4 */
  const Kind      kind      = {"", MAT_FACTOR_ICC, levels, ordering};
  Mat             ours, block, plain, plain_block, F, expected;
  PetscReal       worst[2];
  PetscInt        its[2];

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(Generate(name, size, MATAIJ, &plain, &plain_block));
  PetscCall(Factor(&kind, MATSOLVERAIJTCCUSPARSE, block, &F));
  PetscCall(Factor(&kind, NULL, plain_block, &expected));
  PetscCall(CompareHalves(block, F, plain_block, expected, &worst[0]));
  PetscCall(MatScale(ours, 4.0)); /* other roots */
  PetscCall(MatScale(plain, 4.0));
  PetscCall(Numeric(&kind, block, F));
  PetscCall(Numeric(&kind, plain_block, expected));
  PetscCall(CompareHalves(block, F, plain_block, expected, &worst[1]));
  PetscCall(SymmetricIterations(block, &its[0]));
  PetscCall(SymmetricIterations(plain_block, &its[1]));
  PetscCall(MatTestFact((PetscBool)(worst[0] <= tolerance && worst[1] <= tolerance && its[0] == its[1]), "%s, ICC(%" PetscInt_FMT ") %s: halves of solves differ by %g, with new values %g; GMRES between them takes %" PetscInt_FMT " iterations, with MATAIJ %" PetscInt_FMT, name,
                        levels, ordering, (double)worst[0], (double)worst[1], its[0], its[1]));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&expected));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}
