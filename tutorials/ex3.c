static char help[] = "Solves a diffusion problem in 3-D with conjugate gradients in double precision, preconditioned by multigrid whose matrices are read in fewer bits.\n\
Input parameters:\n\
  -precisions <p1,p2,...> : of the matrices of the preconditioner, default fp64,fp32,bf16,fp16\n\
  -n <points>             : grid points in each direction, default 40\n\
  -contrast <c>           : largest over smallest diffusion coefficient, default 100\n\
  -check                  : an error unless fp32 and fp16 take as many iterations as fp64, give or take one\n\n";

/*
  A preconditioner need not be exact, and applying one is mostly reading its matrices: MATAIJTCCUSPARSE can keep them rounded, to 4 or 2 bytes per entry, for products
  with vectors. All that the solver itself does, and so the solution, stays as it was. Two things are needed:

  - the preconditioner has a matrix of its own, here a copy, since the solver multiplies with the original. KSPSetOperators() takes both.
  - its precision is set: by -mat_aijtccusparse_precision with the prefix of the matrix, or by MatAIJTCCUSPARSESetPrecision(). The matrices of multigrid's coarser
    levels have no prefix; LevelsSetFromOptions() below gives each that of its smoother.

  Try:  mpiexec -n 2 ./ex3 -n 60                                         on a GPU: also with -n 200
        ./ex3 -precisions fp16 -mg_levels_1_mat_aijtccusparse_precision fp64 -ksp_view      one level apart
*/
#include <petscdmda.h>
#include <petscksp.h>
#include <petscmataijtccusparse.h>

enum {
  MAX_CHOICES = 16,
  PRODUCTS    = 50
};

/* Waves through the unit cube, between 1 / sqrt(contrast) and sqrt(contrast) */
static PetscReal Coefficient(PetscReal contrast, PetscReal x, PetscReal y, PetscReal z)
{
  return PetscPowReal(contrast, PetscSinReal(7 * x) * PetscSinReal(5 * y) * PetscSinReal(6 * z) / 2);
}

/* -div(c grad u) on n^3 cells, u = 0 around them; the coefficient of a face is that of its center */
static PetscErrorCode Assemble(DM grid, PetscInt n, PetscReal contrast, Mat A)
{
  const PetscReal h = 1.0 / (PetscReal)n;
  PetscInt        x, y, z, mx, my, mz;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetCorners(grid, &x, &y, &z, &mx, &my, &mz));
  for (PetscInt k = z; k < z + mz; k++) {
    for (PetscInt j = y; j < y + my; j++) {
      for (PetscInt i = x; i < x + mx; i++) {
        const MatStencil row     = {.i = i, .j = j, .k = k};
        MatStencil       cols[7] = {row};
        PetscScalar      vals[7] = {0.0};
        PetscInt         num     = 1;

        for (int s = 0; s < 6; s++) {
          const PetscInt   di = s / 2 == 0 ? 2 * (s % 2) - 1 : 0, dj = s / 2 == 1 ? 2 * (s % 2) - 1 : 0, dk = s / 2 == 2 ? 2 * (s % 2) - 1 : 0;
          const MatStencil col  = {.i = i + di, .j = j + dj, .k = k + dk};
          const PetscReal  face = Coefficient(contrast, h * (i + 0.5 + 0.5 * di), h * (j + 0.5 + 0.5 * dj), h * (k + 0.5 + 0.5 * dk));

          vals[0] += face;
          if (col.i < 0 || col.j < 0 || col.k < 0 || col.i >= n || col.j >= n || col.k >= n) continue;
          cols[num]   = col;
          vals[num++] = -face;
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, num, cols, vals, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the matrices of all levels but the coarsest MATAIJTCCUSPARSE, if they are not, with options that have the prefix of the smoother: -mg_levels_mat_... */
static PetscErrorCode LevelsSetFromOptions(PC pc)
{
  PetscInt levels;

  PetscFunctionBeginUser;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt level = 1; level < levels; level++) {
    KSP         smoother;
    Mat         A;
    const char *prefix;
    PetscBool   ours;

    PetscCall(PCMGGetSmoother(pc, level, &smoother));
    PetscCall(KSPGetOperators(smoother, NULL, &A));
    PetscCall(KSPGetOptionsPrefix(smoother, &prefix));
    PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
    if (!ours) PetscCall(MatConvert(A, MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &A));
    PetscCall(MatSetOptionsPrefix(A, prefix));
    PetscCall(MatSetFromOptions(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Conjugate gradients with algebraic multigrid built from P, Chebyshev smoothers with Jacobi: all products with the matrices */
static PetscErrorCode SolverCreate(Mat A, Mat P, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, P));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPSetTolerances(*ksp, 1e-10, PETSC_CURRENT, PETSC_CURRENT, 500));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscCall(LevelsSetFromOptions(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Milliseconds of a product with the matrix */
static PetscErrorCode TimeProduct(Mat P, Vec x, Vec y, PetscLogDouble *ms)
{
  PetscLogDouble start, end;
  PetscScalar    dot; /* waits for the GPU */

  PetscFunctionBeginUser;
  PetscCall(MatMult(P, x, y));
  PetscCall(VecDot(x, y, &dot));
  PetscCall(PetscTime(&start));
  for (int i = 0; i < PRODUCTS; i++) PetscCall(MatMult(P, x, y));
  PetscCall(VecDot(x, y, &dot));
  PetscCall(PetscTime(&end));
  *ms = 1000 * (end - start) / PRODUCTS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves twice, so that everything is packed the second time; `seconds` is that of the second time. Prints a line. */
static PetscErrorCode Solve(Mat A, Vec b, const char precision[], PetscLogDouble baseline, PetscLogDouble *seconds, PetscInt *its, KSPConvergedReason *reason)
{
  MPI_Comm       comm = PetscObjectComm((PetscObject)A);
  Mat            P;
  KSP            ksp;
  Vec            x, r;
  PetscReal      norm, norm_b;
  PetscLogDouble start, end, ms;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
  PetscCall(PetscOptionsSetValue(NULL, "-mg_levels_mat_aijtccusparse_precision", precision));
  PetscCall(SolverCreate(A, P, &ksp));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &r));
  for (int i = 0; i < 2; i++) {
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&start));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&end));
  }
  *seconds = end - start;
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(MatResidual(A, b, x, r));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &norm_b));
  PetscCall(TimeProduct(P, x, r, &ms));
  PetscCall(PetscPrintf(comm, "%-9s %10" PetscInt_FMT " %11.2e %9.4f %7.2fx %12.4f\n", precision, *its, (double)(norm / norm_b), *seconds, baseline > 0.0 ? baseline / *seconds : 1.0, ms));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&P));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  DM             grid;
  Mat            A;
  Vec            b;
  PetscInt       n = 40, num = MAX_CHOICES, its, full_its = 0;
  PetscReal      contrast = 100;
  PetscLogDouble seconds, baseline = 0.0;
  PetscBool      given, check = PETSC_FALSE;
  const char    *usual[] = {"fp64", "fp32", "bf16", "fp16"}; /* tf32 is fp32 in products with vectors */
  char          *precisions[MAX_CHOICES];
  const char    *smoother[2][2] = {{"-mg_levels_ksp_type", "chebyshev"}, {"-mg_levels_pc_type", "jacobi"}};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-contrast", &contrast, NULL));
  PetscCheck(n >= 2, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-n %" PetscInt_FMT ": at least 2 points in each direction", n);
  PetscCheck(contrast > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-contrast %g: positive", (double)contrast);
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-check", &check, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-precisions", precisions, &num, &given));
  if (given == PETSC_FALSE) {
    for (num = 0; num < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(usual); num++) PetscCall(PetscStrallocpy(usual[num], &precisions[num]));
  }
  for (int o = 0; o < 2; o++) { /* unless they are asked for */
    PetscCall(PetscOptionsHasName(NULL, NULL, smoother[o][0], &given));
    if (given == PETSC_FALSE) PetscCall(PetscOptionsSetValue(NULL, smoother[o][0], smoother[o][1]));
  }
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &grid));
  PetscCall(DMSetMatType(grid, MATAIJTCCUSPARSE));
  PetscCall(DMSetFromOptions(grid));
  PetscCall(DMSetUp(grid));
  PetscCall(DMCreateMatrix(grid, &A));
  PetscCall(Assemble(grid, n, contrast, A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Diffusion on %" PetscInt_FMT "^3 points, conjugate gradients in fp64\n", n));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-9s %10s %11s %9s %8s %12s\n", "precond.", "iterations", "|b-Ax|/|b|", "solve [s]", "speedup", "product [ms]"));
  for (PetscInt p = 0; p < num; p++) {
    KSPConvergedReason reason;
    PetscBool          bf16;

    PetscCall(Solve(A, b, precisions[p], baseline, &seconds, &its, &reason));
    if (p == 0) {
      baseline = seconds;
      full_its = its;
    }
    PetscCall(PetscStrcmp(precisions[p], "bf16", &bf16));
    PetscCheck(!check || reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%s: %s after %" PetscInt_FMT " iterations", precisions[p], KSPConvergedReasons[reason], its);
    PetscCheck(!check || bf16 || PetscAbsInt(its - full_its) <= 1, PETSC_COMM_WORLD, PETSC_ERR_CONV_FAILED, "%s takes %" PetscInt_FMT " iterations, %s %" PetscInt_FMT, precisions[p], its, precisions[0], full_its);
    PetscCall(PetscFree(precisions[p]));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&grid));
  PetscCall(PetscFinalize());
  return 0;
}
