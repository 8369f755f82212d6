static char help[] = "Solves Poisson's equation or linear elasticity in 3-D for many right-hand sides at once, for each of several matrix types, and compares them.\n\
Input parameters:\n\
  -problem <p>         : poisson (7 points, default) or elasticity (27 points, 3 unknowns each)\n\
  -types <t1,t2,...>   : matrix types to compare, default aij,aijtccusparse\n\
  -columns <n1,n2,...> : numbers of right-hand sides, default 1,8,32,128\n\
  -method <m1,m2,...>  : mg (KSPMatSolve() with Richardson and multigrid), ilu (the same, smoothed with incomplete factors), chebyshev (over MatMatMult()), default mg,chebyshev\n\
  -coarse <n>          : points of the coarsest grid in each direction, default 5\n\
  -levels <l>          : grids, each with about twice the points of the one below in each direction, default 3\n\
  -rtol <tolerance>    : of the residual of the whole block, default 1e-8\n\
  -check               : an error if a type takes other iterations than the first one, or its residual is too large\n\n";

/*
  A block of right-hand sides is a dense matrix, and what works on it is MatMatMult() instead of MatMult(): every entry of the sparse matrix is read once for all
  columns. KSPMatSolve() works that way with the solvers that have an own iteration for blocks (Richardson since PETSc 3.26, preonly), preconditioners that apply to
  blocks (multigrid among them), and all parts of those. The Chebyshev iteration below shows how one writes such a method with MatProduct.

  Try:  mpiexec -n 2 ./ex2 -levels 4 -columns 1,32 -types aij,aijtccusparse         on a GPU: -types aijcusparse,aijtccusparse
        ./ex2 -problem elasticity -levels 2 -columns 32                             longer rows: the product is most of the work
*/
#include <petscdmda.h>
#include <petscksp.h>
#include <petscmataijtccusparse.h>

enum {
  MAX_LEVELS  = 10,
  MAX_CHOICES = 16,
  CHECK       = 10, /* steps of Chebyshev's iteration from one look at the residual to the next */
  MOST_STEPS  = 5000
};

/* The discretised problem, as plain MATAIJ: the operator on the finest grid, and the interpolation to each grid from the one below. The solution is zero beyond the grid. */
typedef struct {
  const char *name;
  PetscInt    levels, points;    /* of the finest grid in each direction */
  PetscReal   smallest, largest; /* no eigenvalue of A is outside */
  Mat         A, P[MAX_LEVELS];
} Problem;

static PetscErrorCode AssembleLaplacian(DM grid, Mat A)
{
  const PetscInt neighbours[][3] = {
    {-1, 0,  0 },
    {1,  0,  0 },
    {0,  -1, 0 },
    {0,  1,  0 },
    {0,  0,  -1},
    {0,  0,  1 }
  };
  PetscInt x, y, z, mx, my, mz, n;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(grid, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(grid, &x, &y, &z, &mx, &my, &mz));
  for (PetscInt k = z; k < z + mz; k++) {
    for (PetscInt j = y; j < y + my; j++) {
      for (PetscInt i = x; i < x + mx; i++) {
        const MatStencil row     = {.i = i, .j = j, .k = k};
        MatStencil       cols[7] = {row};
        PetscScalar      vals[7] = {6.0};
        PetscInt         num     = 1;

        for (int s = 0; s < 6; s++) {
          const MatStencil col = {.i = i + neighbours[s][0], .j = j + neighbours[s][1], .k = k + neighbours[s][2]};

          if (col.i < 0 || col.j < 0 || col.k < 0 || col.i >= n || col.j >= n || col.k >= n) continue;
          cols[num]   = col;
          vals[num++] = -1.0;
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, num, cols, vals, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lame's constants for a Poisson ratio of 0.25 */
static const PetscReal lambda = 1.0, mu = 1.0;

/* Of the hat functions u of a point and v of the one `d` away, on a line of points with distance 1: the integrals of u v, u' v', and u' v, which is -u v' */
static PetscReal Mass(PetscInt d)
{
  return d == 0 ? 4.0 / 6.0 : 1.0 / 6.0;
}

static PetscReal Stiffness(PetscInt d)
{
  return d == 0 ? 2.0 : -1.0;
}

static PetscReal Gradient(PetscInt d)
{
  return -0.5 * (PetscReal)d;
}

/* What the displacement of the point `d` away contributes to the force on a point: trilinear elements, isotropic material */
static void ElasticityBlock(const PetscInt d[3], PetscScalar block[3][3])
{
  const PetscReal m[3] = {Mass(d[0]), Mass(d[1]), Mass(d[2])}, g[3] = {Gradient(d[0]), Gradient(d[1]), Gradient(d[2])};
  const PetscReal t[3] = {Stiffness(d[0]) * m[1] * m[2], Stiffness(d[1]) * m[0] * m[2], Stiffness(d[2]) * m[0] * m[1]};

  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) block[i][j] = i == j ? (lambda + mu) * t[i] + mu * (t[0] + t[1] + t[2]) : -(lambda + mu) * g[i] * g[j] * m[3 - i - j];
  }
}

static PetscErrorCode AssembleElasticity(DM grid, Mat A)
{
  PetscScalar blocks[27][3][3];
  PetscInt    x, y, z, mx, my, mz, n;

  PetscFunctionBeginUser;
  for (PetscInt s = 0; s < 27; s++) {
    const PetscInt d[3] = {s % 3 - 1, s / 3 % 3 - 1, s / 9 - 1};

    ElasticityBlock(d, blocks[s]);
  }
  PetscCall(DMDAGetInfo(grid, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(grid, &x, &y, &z, &mx, &my, &mz));
  for (PetscInt k = z; k < z + mz; k++) {
    for (PetscInt j = y; j < y + my; j++) {
      for (PetscInt i = x; i < x + mx; i++) {
        const MatStencil row = {.i = i, .j = j, .k = k};

        for (PetscInt s = 0; s < 27; s++) {
          const MatStencil col = {.i = i + s % 3 - 1, .j = j + s / 3 % 3 - 1, .k = k + s / 9 - 1};

          if (col.i < 0 || col.j < 0 || col.k < 0 || col.i >= n || col.j >= n || col.k >= n) continue;
          PetscCall(MatSetValuesBlockedStencil(A, 1, &row, 1, &col, &blocks[s][0][0], INSERT_VALUES));
        }
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No eigenvalue is larger than the largest sum of the entries of a row, signs aside; the smallest belongs to the longest waves, for elasticity at least that of mu times the Laplacian */
static PetscErrorCode GetSpectrum(Problem *problem, PetscBool elasticity)
{
  const PetscReal step = PETSC_PI / (problem->points + 1), wave = 2.0 - 2.0 * PetscCosReal(step), mass = (4.0 + 2.0 * PetscCosReal(step)) / 6.0;

  PetscFunctionBeginUser;
  problem->smallest = elasticity ? 3.0 * mu * wave * PetscSqr(mass) : 3.0 * wave;
  PetscCall(MatNorm(problem->A, NORM_INFINITY, &problem->largest));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemCreate(MPI_Comm comm, PetscBool elasticity, PetscInt coarse, PetscInt levels, Problem *problem)
{
  const DMDAStencilType stencil = elasticity ? DMDA_STENCIL_BOX : DMDA_STENCIL_STAR;
  DM                    grid, finer;

  PetscFunctionBeginUser;
  problem->name   = elasticity ? "Elasticity" : "Poisson";
  problem->levels = levels;
  problem->points = (coarse - 1) * (1 << (levels - 1)) + 1;
  PetscCall(DMDACreate3d(comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, stencil, coarse, coarse, coarse, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, elasticity ? 3 : 1, 1, NULL, NULL, NULL, &grid));
  PetscCall(DMSetUp(grid));
  for (PetscInt level = 1; level < levels; level++) {
    PetscCall(DMRefine(grid, comm, &finer));
    PetscCall(DMCreateInterpolation(grid, finer, &problem->P[level], NULL));
    if (elasticity) PetscCall(MatConvert(problem->P[level], MATAIJ, MAT_INPLACE_MATRIX, &problem->P[level])); /* PETSc keeps it for one unknown */
    PetscCall(DMDestroy(&grid));
    grid = finer;
  }
  PetscCall(DMCreateMatrix(grid, &problem->A));
  PetscCall(elasticity ? AssembleElasticity(grid, problem->A) : AssembleLaplacian(grid, problem->A));
  PetscCall(GetSpectrum(problem, elasticity));
  PetscCall(DMDestroy(&grid));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(Problem *problem)
{
  PetscFunctionBeginUser;
  for (PetscInt level = 1; level < problem->levels; level++) PetscCall(MatDestroy(&problem->P[level]));
  PetscCall(MatDestroy(&problem->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Richardson with multigrid as preconditioner leaves the whole iteration to it, column by column, unless the convergence test is not the default one itself */
static PetscErrorCode Converged(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *context)
{
  return KSPConvergedDefault(ksp, it, norm, reason, context);
}

/*
  Multigrid all of whose parts work on blocks: on each grid X <- X + s (B - A X) a few times, with a factor s that damps what is rough, or once X <- X + (L U)^-1 (B - A X) with an incomplete factor
  of each process's block. The coarser matrices are P^T A P.
*/
static PetscErrorCode SolverCreate(const Problem *problem, MatType type, Mat A, PetscBool ilu, PetscReal rtol, KSP *ksp)
{
  PC    pc, inner;
  void *context;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPRICHARDSON));
  PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetTolerances(*ksp, rtol, PETSC_CURRENT, PETSC_CURRENT, 500));
  PetscCall(KSPConvergedDefaultCreate(&context));
  PetscCall(KSPSetConvergenceTest(*ksp, Converged, context, KSPConvergedDefaultDestroy));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCMG));
  PetscCall(PCMGSetLevels(pc, problem->levels, NULL));
  PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
  for (PetscInt level = 1; level < problem->levels; level++) {
    Mat P;

    PetscCall(MatConvert(problem->P[level], type, MAT_INITIAL_MATRIX, &P));
    PetscCall(PCMGSetInterpolation(pc, level, P));
    PetscCall(MatDestroy(&P));
  }
  for (PetscInt level = 0; level < problem->levels; level++) {
    KSP smoother;

    PetscCall(PCMGGetSmoother(pc, level, &smoother));
    PetscCall(KSPSetType(smoother, KSPRICHARDSON));
    PetscCall(KSPSetConvergenceTest(smoother, KSPConvergedSkip, NULL, NULL));
    PetscCall(KSPSetNormType(smoother, KSP_NORM_NONE));
    PetscCall(KSPSetTolerances(smoother, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, level == 0 ? 30 : ilu ? 1 : 3));
    PetscCall(KSPGetPC(smoother, &inner));
    PetscCall(PCSetType(inner, ilu ? PCBJACOBI : PCNONE));
  }
  PetscCall(KSPSetUp(*ksp));
  for (PetscInt level = 0; level < problem->levels; level++) {
    KSP       smoother;
    Mat       A_level;
    PetscReal largest;

    PetscCall(PCMGGetSmoother(pc, level, &smoother));
    PetscCall(KSPGetOperators(smoother, &A_level, NULL));
    PetscCall(MatNorm(A_level, NORM_INFINITY, &largest));
    PetscCall(KSPRichardsonSetScale(smoother, ilu ? 1.0 : 1.5 / largest));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  X <- A^-1 B by Chebyshev's iteration. Passes over blocks are what costs time beside the product, so the step is kept as scale * D: then a new one takes one
  MatAXPY(), where MatAYPX() would be two passes; the residual is updated with the product that the step needs; and its norm, another pass and a wait for the GPU, is looked
  at after every CHECK steps only.
*/
static PetscErrorCode Chebyshev(const Problem *problem, Mat A, Mat B, Mat X, PetscReal rtol, PetscInt *its)
{
  const PetscReal center = (problem->largest + problem->smallest) / 2, radius = (problem->largest - problem->smallest) / 2;
  PetscReal       rho = radius / center, scale = 1.0 / center, norm, norm_b;
  Mat             R, D, W; /* residual, step, and A D */

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &R));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
  PetscCall(MatZeroEntries(X));
  PetscCall(MatNorm(B, NORM_FROBENIUS, &norm_b));
  /* set up once, computed again and again */
  PetscCall(MatProductCreate(A, D, NULL, &W));
  PetscCall(MatProductSetType(W, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(W));
  PetscCall(MatProductSymbolic(W));
  for (*its = 1; *its <= MOST_STEPS; (*its)++) {
    const PetscReal next = 1.0 / (2.0 * center / radius - rho);

    PetscCall(MatProductNumeric(W));
    PetscCall(MatAXPY(X, scale, D, SAME_NONZERO_PATTERN));
    PetscCall(MatAXPY(R, -scale, W, SAME_NONZERO_PATTERN));
    if (*its % CHECK == 0) {
      PetscCall(MatNorm(R, NORM_FROBENIUS, &norm));
      if (norm <= rtol * norm_b) break;
    }
    scale *= next * rho; /* at most (sqrt(c) - 1)^2 / (sqrt(c) + 1)^2, c the condition number, so it shrinks about as fast as the residual */
    PetscCall(MatAXPY(D, 2.0 * next / (radius * scale), R, SAME_NONZERO_PATTERN));
    rho = next;
  }
  *its = PetscMin(*its, MOST_STEPS);
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest |b - A x| / |b| of a column; infinity if one is not a number */
static PetscErrorCode WorstResidual(Mat A, Mat B, Mat X, PetscReal *worst)
{
  PetscInt   columns;
  PetscReal *size, *residual;
  Mat        R;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, NULL, &columns));
  PetscCall(PetscMalloc2(columns, &size, columns, &residual));
  PetscCall(MatMatMult(A, X, MAT_INITIAL_MATRIX, PETSC_CURRENT, &R));
  PetscCall(MatAXPY(R, -1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatGetColumnNorms(B, NORM_2, size));
  PetscCall(MatGetColumnNorms(R, NORM_2, residual));
  *worst = 0.0;
  for (PetscInt j = 0; j < columns; j++) {
    const PetscReal ratio = residual[j] / size[j];

    *worst = PetscMax(*worst, PetscIsNanReal(ratio) ? PETSC_INFINITY : ratio);
  }
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFree2(size, residual));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One block, solved twice: the first time what the type packs is packed. `seconds` is that of the second time; prints a line. */
static PetscErrorCode Solve(const Problem *problem, MatType type, const char method[], PetscInt columns, PetscReal rtol, PetscLogDouble baseline, PetscLogDouble *seconds, PetscInt *iterations, PetscReal *residual)
{
  MPI_Comm       comm = PetscObjectComm((PetscObject)problem->A);
  Mat            A, B, X;
  KSP            ksp = NULL;
  VecType        vec_type;
  PetscRandom    random;
  PetscInt       m, M, its = 0;
  PetscInt64     products;
  PetscReal      worst;
  PetscLogDouble start, end, first = 0.0;
  PetscBool      known, mg, ilu, ours;
  const char    *kernel;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmpAny(method, &known, "mg", "ilu", "chebyshev", ""));
  PetscCheck(known, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-method %s, expected mg, ilu or chebyshev", method);
  PetscCall(PetscStrcmpAny(method, &mg, "mg", "ilu", ""));
  PetscCall(PetscStrcmp(method, "ilu", &ilu));
  PetscCall(PetscStrcmpAny(type, &ours, MATAIJTCCUSPARSE, MATSEQAIJTCCUSPARSE, MATMPIAIJTCCUSPARSE, ""));
  PetscCall(MatAIJTCCUSPARSESetPropagate(ours)); /* what is derived from matrices of the other types stays as it is */
  PetscCall(MatConvert(problem->A, type, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatGetVecType(A, &vec_type)); /* dense matrices live where the vectors of the matrix do */
  PetscCall(MatCreateDenseFromVecType(comm, vec_type, m, PETSC_DECIDE, M, columns, -1, NULL, &B));
  PetscCall(PetscRandomCreate(comm, &random));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(MatSetRandom(B, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  if (mg) PetscCall(SolverCreate(problem, type, A, ilu, rtol, &ksp));
  for (int i = 0; i < 2; i++) {
    PetscCall(MatZeroEntries(X));
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&start));
    if (mg) {
      PetscCall(KSPMatSolve(ksp, B, X));
      PetscCall(KSPGetIterationNumber(ksp, &its));
    } else PetscCall(Chebyshev(problem, A, B, X, rtol, &its));
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&end));
    if (i == 0) first = end - start;
  }
  *seconds = end - start;
  PetscCall(WorstResidual(A, B, X, &worst));
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, &products, &kernel));
  PetscCall(PetscPrintf(comm, "%-16s %-9s %7" PetscInt_FMT " %10" PetscInt_FMT " %11.2e %9.4f %9.4f %7.2fx  %s\n", type, method, columns, its, (double)worst, first, *seconds, baseline > 0.0 ? baseline / *seconds : 1.0, kernel ? kernel : "-"));
  *iterations = its;
  *residual   = worst;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The residual of a column is at most that of the block, rtol times the norm of all columns; these are random, and none has a norm of less than half of the others' */
static PetscErrorCode Check(MatType type, PetscInt columns, PetscReal rtol, PetscInt iterations, PetscInt expected, PetscReal residual)
{
  const PetscReal most = 2 * rtol * PetscSqrtReal((PetscReal)columns);

  PetscFunctionBeginUser;
  PetscCheck(iterations == expected, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%s takes %" PetscInt_FMT " iterations, the first type %" PetscInt_FMT, type, iterations, expected);
  PetscCheck(residual <= most, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%s leaves a residual of %g, expected %g at most", type, (double)residual, (double)most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The strings of an option, or these two */
static PetscErrorCode GetStrings(const char option[], const char first[], const char second[], PetscInt *num, char *strings[])
{
  PetscBool given;

  PetscFunctionBeginUser;
  *num = MAX_CHOICES;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, strings, num, &given));
  if (given == PETSC_TRUE) PetscFunctionReturn(PETSC_SUCCESS);
  *num = 2;
  PetscCall(PetscStrallocpy(first, &strings[0]));
  PetscCall(PetscStrallocpy(second, &strings[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Problem        problem;
  PetscInt       coarse = 5, levels = 3, num_types, num_methods, num_columns = MAX_CHOICES, columns[MAX_CHOICES] = {1, 8, 32, 128};
  PetscInt       iterations, expected = 0;
  PetscReal      rtol = 1e-8, residual;
  PetscLogDouble baseline, seconds;
  char          *types[MAX_CHOICES], *methods[MAX_CHOICES];
  PetscBool      given, elasticity, poisson, check = PETSC_FALSE;
  char           name[16] = "poisson";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(GetStrings("-types", MATAIJ, MATAIJTCCUSPARSE, &num_types, types));
  PetscCall(GetStrings("-method", "mg", "chebyshev", &num_methods, methods));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-columns", columns, &num_columns, &given));
  if (given == PETSC_FALSE) num_columns = 4;
  for (PetscInt c = 0; c < num_columns; c++) PetscCheck(columns[c] > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-columns %" PetscInt_FMT ": at least 1", columns[c]);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-coarse", &coarse, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-levels", &levels, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-rtol", &rtol, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-check", &check, NULL));
  PetscCheck(coarse > 1 && levels > 0 && levels <= MAX_LEVELS, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-coarse %" PetscInt_FMT " -levels %" PetscInt_FMT ": at least 2, 1 to %d", coarse, levels, MAX_LEVELS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-problem", name, sizeof(name), NULL));
  PetscCall(PetscStrcmp(name, "elasticity", &elasticity));
  PetscCall(PetscStrcmp(name, "poisson", &poisson));
  PetscCheck(elasticity || poisson, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-problem %s: poisson or elasticity", name);
  PetscCall(ProblemCreate(PETSC_COMM_WORLD, elasticity, coarse, levels, &problem));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s on %" PetscInt_FMT "^3 points, %" PetscInt_FMT " grids\n", problem.name, problem.points, levels));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-16s %-9s %7s %10s %11s %9s %9s %8s  %s\n", "type", "method", "columns", "iterations", "|b-Ax|/|b|", "first [s]", "last [s]", "speedup", "kernel"));
  for (PetscInt k = 0; k < num_methods; k++) {
    for (PetscInt c = 0; c < num_columns; c++) {
      baseline = 0.0;
      for (PetscInt t = 0; t < num_types; t++) {
        PetscCall(Solve(&problem, types[t], methods[k], columns[c], rtol, baseline, &seconds, &iterations, &residual));
        if (t == 0) {
          baseline = seconds;
          expected = iterations;
        }
        if (check == PETSC_TRUE) PetscCall(Check(types[t], columns[c], rtol, iterations, expected, residual));
      }
    }
  }
  for (PetscInt t = 0; t < num_types; t++) PetscCall(PetscFree(types[t]));
  for (PetscInt k = 0; k < num_methods; k++) PetscCall(PetscFree(methods[k]));
  PetscCall(ProblemDestroy(&problem));
  PetscCall(PetscFinalize());
  return 0;
}
