/*
  Who builds on products with dense matrices: solvers for blocks of right-hand sides.
*/
#include "mat_product.h"
#include <petscksp.h>
#include <float.h>
#include <stdlib.h>

enum {
  GRID         = 8,
  COLUMNS      = 17,
  FINE_STEPS   = 2, /* of smoothing */
  COARSE_STEPS = 40
};

/* Every coarse point stands for 2^3 points of the grid */
static PetscErrorCode CreateInterpolation(MatType type, Mat *P)
{
  const int32_t coarse = GRID / 2;
  tc_matrix     S;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(GRID * GRID * GRID, coarse * coarse * coarse, GRID * GRID * GRID, &S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < GRID * GRID * GRID; i++) {
    const int32_t x = i % GRID, y = i / GRID % GRID, z = i / GRID / GRID;

    S.row_ptr[i + 1] = i + 1;
    S.col[i]         = ((z / 2) * coarse + y / 2) * coarse + x / 2;
    S.val[i]         = 1;
  }
  PetscCall(MatTestCreate(&S, type, P));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Richardson leaves the iteration to the preconditioner, column by column, if the convergence test is the default one itself */
static PetscErrorCode Converged(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  return KSPConvergedDefault(ksp, it, norm, reason, ctx);
}

/* Richardson with two levels of multigrid, all of whose parts exist for blocks */
static PetscErrorCode CreateSolver(Mat A, Mat P, KSP *ksp)
{
  PC    pc, inner;
  void *context;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPRICHARDSON));
  PetscCall(KSPSetTolerances(*ksp, PetscDefined(USE_REAL_SINGLE) ? 1e-5 : 1e-8, PETSC_CURRENT, PETSC_CURRENT, 200));
  PetscCall(KSPConvergedDefaultCreate(&context));
  PetscCall(KSPSetConvergenceTest(*ksp, Converged, context, KSPConvergedDefaultDestroy));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCMG));
  PetscCall(PCMGSetLevels(pc, 2, NULL));
  PetscCall(PCMGSetInterpolation(pc, 1, P));
  PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
  for (PetscInt level = 0; level < 2; level++) {
    KSP smoother;

    PetscCall(PCMGGetSmoother(pc, level, &smoother));
    PetscCall(KSPSetType(smoother, KSPRICHARDSON));
    PetscCall(KSPRichardsonSetScale(smoother, 0.7));
    PetscCall(KSPSetConvergenceTest(smoother, KSPConvergedSkip, NULL, NULL));
    PetscCall(KSPSetNormType(smoother, KSP_NORM_NONE));
    PetscCall(KSPSetTolerances(smoother, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, level == 0 ? COARSE_STEPS : FINE_STEPS));
    PetscCall(KSPGetPC(smoother, &inner));
    PetscCall(PCSetType(inner, PCJACOBI));
  }
  PetscCall(KSPSetUp(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest |b - A x| / |b| of a column */
static PetscErrorCode WorstResidual(Mat A, Mat B, Mat X, PetscReal *worst)
{
  PetscReal *size, *residual;
  Mat        R;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(COLUMNS, &size, COLUMNS, &residual));
  PetscCall(MatMatMult(A, X, MAT_INITIAL_MATRIX, PETSC_CURRENT, &R));
  PetscCall(MatAXPY(R, -1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatGetColumnNorms(B, NORM_2, size));
  PetscCall(MatGetColumnNorms(R, NORM_2, residual));
  *worst = 0;
  for (int j = 0; j < COLUMNS; j++) *worst = PetscMax(*worst, PetscIsNanReal(residual[j]) ? PETSC_INFINITY : residual[j] / size[j]);
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFree2(size, residual));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PCMatApply() against PCApply() of each column: the same steps, so the same up to the roundings of a cycle, twice. Damped Jacobi does not amplify them; a step is a product with rows of 7 entries, a
  residual, a division, a scaling and a sum.
*/
static PetscErrorCode CheckApply(PC pc, Mat B, const char type[])
{
  Mat       Y, column;
  PetscReal difference = 0, size, bound = 2 * (COARSE_STEPS + 2 * FINE_STEPS) * (7 + 4) * PETSC_MACHINE_EPSILON;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &Y));
  PetscCall(PCMatApply(pc, B, Y));
  PetscCall(MatDuplicate(Y, MAT_COPY_VALUES, &column));
  for (PetscInt j = 0; j < COLUMNS; j++) {
    Vec b, y;

    PetscCall(MatDenseGetColumnVecRead(B, j, &b));
    PetscCall(MatDenseGetColumnVecWrite(column, j, &y));
    PetscCall(PCApply(pc, b, y));
    PetscCall(MatDenseRestoreColumnVecRead(B, j, &b));
    PetscCall(MatDenseRestoreColumnVecWrite(column, j, &y));
  }
  PetscCall(MatNorm(Y, NORM_FROBENIUS, &size));
  PetscCall(MatAXPY(column, -1.0, Y, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(column, NORM_FROBENIUS, &difference));
  PetscCall(MatTestFact((PetscBool)(size > 0 && difference <= bound * size), "PCMatApply of PCMG, %s: columns one by one differ by %.1e", type, (double)(difference / size)));
  PetscCall(MatDestroy(&Y));
  PetscCall(MatDestroy(&column));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve is asked for 1e-8 (1e-5) of the preconditioned residual; the residual itself may be larger by what multigrid's two levels change norms, for which a factor of 100 is left */
static PetscErrorCode CheckBlockSolve(MatType type, PetscInt *iterations)
{
  tc_matrix          S;
  Mat                A, P, B, X;
  KSP                ksp;
  PC                 pc;
  KSPConvergedReason reason;
  double            *numbers;
  PetscReal          worst;
  PetscInt64         before = 0, after = 0;
  PetscBool          ours, cuda = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("laplace7", GRID, &S));
  PetscCall(MatTestCreate(&S, type, &A));
  PetscCall(CreateInterpolation(type, &P));
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  if (ours) PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(ProductNumbers(S.num_cols, COLUMNS, 41, &numbers));
  PetscCall(ProductOperand(PRODUCT_ATB, A, cuda ? MATDENSECUDA : MATDENSE, COLUMNS, 0, numbers, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatZeroEntries(X));
  PetscCall(CreateSolver(A, P, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(ProductCount(A, &before));
  PetscCall(KSPMatSolve(ksp, B, X));
  PetscCall(ProductCount(A, &after));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, iterations));
  PetscCall(WorstResidual(A, B, X, &worst));
  PetscCall(MatTestFact((PetscBool)(reason > 0 && worst <= (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-6) && (!ours || PETSC_VERSION_LT(3, 26, 0) || after > before)), "KSPMatSolve, %s: %s after %" PetscInt_FMT " iterations, largest residual of a column %.1e, %" PetscInt64_FMT " products of ours", type,
                        KSPConvergedReasons[reason], *iterations, (double)worst, after - before));
  PetscCall(CheckApply(pc, B, type));
  free(numbers);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatMatSolve() with a factor of our matrix. LU of a matrix that is diagonally dominant by rows leaves a residual of gamma_3n (2n - 1) |A| |x| at most, by largest row sums (Higham, Accuracy and Stability of
  Numerical Algorithms, Theorem 9.4 and Lemma 8.8), which is 1.7e-10 |b| or more for n = 512, and says nothing in single precision; what is asked here is less than that in both.
*/
static PetscErrorCode CheckFactor(void)
{
  tc_matrix     S;
  Mat           A, F, B, X;
  IS            rows, cols;
  MatFactorInfo info;
  double       *numbers;
  PetscReal     worst;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("laplace7", GRID, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  PetscCall(ProductNumbers(S.num_cols, COLUMNS, 41, &numbers));
  PetscCall(ProductOperand(PRODUCT_ATB, A, MATDENSE, COLUMNS, 0, numbers, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatGetFactor(A, MATSOLVERPETSC, MAT_FACTOR_LU, &F));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 10;
  PetscCall(MatGetOrdering(A, MATORDERINGND, &rows, &cols));
  PetscCall(MatLUFactorSymbolic(F, A, rows, cols, &info));
  PetscCall(MatLUFactorNumeric(F, A, &info));
  PetscCall(MatMatSolve(F, B, X));
  PetscCall(WorstResidual(A, B, X, &worst));
  PetscCall(MatTestFact((PetscBool)(worst <= (PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-10)), "MatMatSolve with LU of our matrix: largest residual of a column %.1e", (double)worst));
  free(numbers);
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductSolvers(void)
{
  PetscInt    iterations[2];
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(CheckBlockSolve(MATAIJ, &iterations[0]));
  PetscCall(CheckBlockSolve(MATAIJTCCUSPARSE, &iterations[1]));
  PetscCall(MatTestFact((PetscBool)(iterations[0] == iterations[1]), "KSPMatSolve: as many iterations as with MATAIJ"));
  if (size == 1) PetscCall(CheckFactor());
  PetscFunctionReturn(PETSC_SUCCESS);
}
