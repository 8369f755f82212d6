/*
  The cache inside solvers: a Krylov solve packs once and never refills, Newton's method and implicit time steps refill once for each new Jacobian; iteration
  counts are those of the parent type.
*/
#include "mat_util.h"
#include <petscdmda.h>
#include <petscts.h>

static char help[] = "Tests solvers with MATAIJTCCUSPARSE.\n\n";

/* The 7-point Laplacian on a grid of size^3, with blocks of so many rows */
static PetscErrorCode BlockedLaplacian(PetscInt size, PetscInt bs, MatType type, Mat *A)
{
  tc_matrix S;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", size, &S));
  for (int32_t i = 0; i < S.num_rows; i++) {
    for (int64_t e = S.row_ptr[i]; e < S.row_ptr[i + 1]; e++) S.val[e] = S.col[e] == i ? 6 : -1;
  }
  PetscCall(MatTestCreateBlocked(&S, type, bs, A));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Laplacian(PetscInt size, MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(BlockedLaplacian(size, 1, type, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type that our products are compared with */
static PetscErrorCode ParentType(MatType *type)
{
  PetscBool cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  *type = cuda ? MATAIJCUSPARSE : MATAIJ;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves A x = b, b random, with options that follow `prefix`; returns the solver */
static PetscErrorCode Solve(Mat A, const char prefix[], KSP *ksp)
{
  Vec x, b;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatTestRandom(b, 5, NULL));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSolve(*ksp, b, x));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same solve with our type and with another: iterations agree, with the host's but for roundings; ours counts 1 rebuild and no refill */
static PetscErrorCode TestKrylov(const char prefix[], const char what[], PetscInt bs, MatType other, PetscInt apart)
{
  Mat                A;
  KSP                ksp;
  PetscInt           its[2];
  KSPConvergedReason reason[2];
  MatTestCounts      counts = {0};

  PetscFunctionBeginUser;
  for (int m = 0; m < 2; m++) {
    PetscCall(BlockedLaplacian(12, bs, m ? other : MATAIJTCCUSPARSE, &A));
    PetscCall(Solve(A, prefix, &ksp));
    PetscCall(KSPGetIterationNumber(ksp, &its[m]));
    PetscCall(KSPGetConvergedReason(ksp, &reason[m]));
    if (m == 0) PetscCall(MatTestGetCounts(A, &counts));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestFact((PetscBool)(PetscAbsInt(its[0] - its[1]) <= apart && reason[0] == reason[1] && reason[0] > 0), "%s: %" PetscInt_FMT " iterations, %s %" PetscInt_FMT, what, its[0], other, its[1]));
  PetscCall(MatTestFact((PetscBool)(counts.rebuilds == 1 && counts.refills == 0 && counts.hits + 1 >= its[0]),
                        "%s: %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills, %" PetscInt64_FMT " hits", what, counts.rebuilds, counts.refills, counts.hits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solvers that multiply with the transpose as well: it is packed once, and iterations agree but for roundings */
static PetscErrorCode TestTransposed(const char prefix[], const char what[])
{
  MatType            parent;
  Mat                A;
  KSP                ksp;
  PetscInt           its[2];
  KSPConvergedReason reason[2];
  MatTestCounts      counts = {0};

  PetscFunctionBeginUser;
  PetscCall(ParentType(&parent));
  for (int m = 0; m < 2; m++) {
    PetscCall(Laplacian(8, m ? parent : MATAIJTCCUSPARSE, &A));
    PetscCall(Solve(A, prefix, &ksp));
    PetscCall(KSPGetIterationNumber(ksp, &its[m]));
    PetscCall(KSPGetConvergedReason(ksp, &reason[m]));
    if (m == 0) PetscCall(MatTestGetTransposeCounts(A, &counts));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestFact((PetscBool)(PetscAbsInt(its[0] - its[1]) <= 2 && reason[0] > 0 && reason[1] > 0), "%s: %" PetscInt_FMT " iterations, %s %" PetscInt_FMT, what, its[0], parent, its[1]));
  PetscCall(MatTestFact((PetscBool)(counts.rebuilds == 1 && counts.refills == 0 && counts.hits + 1 >= its[0]), "%s, transposed: %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills, %" PetscInt64_FMT " hits", what,
                        counts.rebuilds, counts.refills, counts.hits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves with the same matrix, then with new values */
static PetscErrorCode TestSolveAgain(void)
{
  Mat           A;
  KSP           ksp;
  Vec           x, b;
  MatTestCounts counts;

  PetscFunctionBeginUser;
  PetscCall(Laplacian(8, MATAIJTCCUSPARSE, &A));
  PetscCall(Solve(A, "cg_", &ksp));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatTestRandom(b, 6, NULL));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatTestGetCounts(A, &counts));
  PetscCall(MatTestFact((PetscBool)(counts.rebuilds == 1 && counts.refills == 0), "second solve: %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills", counts.rebuilds, counts.refills));
  PetscCall(MatScale(A, 2.0));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatTestGetCounts(A, &counts));
  PetscCall(MatTestFact((PetscBool)(counts.rebuilds == 1 && counts.refills == 1), "solve with new values: %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills", counts.rebuilds, counts.refills));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* F_i = shift u_i' + 2 u_i - u_{i-1} - u_{i+1} + u_i^3 - 1 on a line; also without u' */
static PetscErrorCode Residual(DM dm, Vec u, Vec udot, Vec f)
{
  Vec                 local;
  PetscInt            first, num, total;
  const PetscScalar  *v, *vdot = NULL;
  PetscScalar        *r;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetCorners(dm, &first, NULL, NULL, &num, NULL, NULL));
  PetscCall(DMDAGetInfo(dm, NULL, &total, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMGetLocalVector(dm, &local));
  PetscCall(DMGlobalToLocal(dm, u, INSERT_VALUES, local));
  PetscCall(DMDAVecGetArrayRead(dm, local, (void *)&v));
  if (udot) PetscCall(DMDAVecGetArrayRead(dm, udot, (void *)&vdot));
  PetscCall(DMDAVecGetArrayWrite(dm, f, &r));
  for (PetscInt i = first; i < first + num; i++) r[i] = (vdot ? vdot[i] : 0) + 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i < total - 1 ? v[i + 1] : 0) + v[i] * v[i] * v[i] - 1;
  PetscCall(DMDAVecRestoreArrayWrite(dm, f, &r));
  if (udot) PetscCall(DMDAVecRestoreArrayRead(dm, udot, (void *)&vdot));
  PetscCall(DMDAVecRestoreArrayRead(dm, local, (void *)&v));
  PetscCall(DMRestoreLocalVector(dm, &local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Jacobian(DM dm, Vec u, PetscReal shift, Mat J)
{
  PetscInt           first, num, total;
  const PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetCorners(dm, &first, NULL, NULL, &num, NULL, NULL));
  PetscCall(DMDAGetInfo(dm, NULL, &total, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAVecGetArrayRead(dm, u, (void *)&v));
  for (PetscInt i = first; i < first + num; i++) {
    const PetscInt    cols[3] = {i - 1, i, i + 1 < total ? i + 1 : -1};
    const PetscScalar vals[3] = {-1, shift + 2 + 3 * v[i] * v[i], -1};

    PetscCall(MatSetValues(J, 1, &i, 3, cols, vals, INSERT_VALUES));
  }
  PetscCall(DMDAVecRestoreArrayRead(dm, u, (void *)&v));
  PetscCall(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SNESResidual(SNES snes, Vec u, Vec f, void *dm)
{
  PetscFunctionBeginUser;
  (void)snes;
  PetscCall(Residual((DM)dm, u, NULL, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt jacobians; /* evaluated so far */

static PetscErrorCode SNESJacobian(SNES snes, Vec u, Mat J, Mat P, void *dm)
{
  PetscFunctionBeginUser;
  (void)snes;
  (void)P;
  jacobians++;
  PetscCall(Jacobian((DM)dm, u, 0, J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TSResidual(TS ts, PetscReal t, Vec u, Vec udot, Vec f, void *dm)
{
  PetscFunctionBeginUser;
  (void)ts;
  (void)t;
  PetscCall(Residual((DM)dm, u, udot, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TSJacobian(TS ts, PetscReal t, Vec u, Vec udot, PetscReal shift, Mat J, Mat P, void *dm)
{
  PetscFunctionBeginUser;
  (void)ts;
  (void)t;
  (void)udot;
  (void)P;
  jacobians++;
  PetscCall(Jacobian((DM)dm, u, shift, J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* So many points that Newton's method gets somewhere in that precision */
static PetscErrorCode Line(MatType type, DM *dm)
{
  PetscFunctionBeginUser;
  PetscCall(DMDACreate1d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, PetscDefined(USE_REAL_SINGLE) ? 25 : 97, 1, 1, NULL, dm));
  PetscCall(DMSetMatType(*dm, type));
  PetscCall(DMSetUp(*dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 1 rebuild, and a refill for every Jacobian after the first */
static PetscErrorCode CheckJacobianCounts(Mat J, const char what[])
{
  MatTestCounts counts;

  PetscFunctionBeginUser;
  PetscCall(MatTestGetCounts(J, &counts));
  PetscCall(MatTestFact((PetscBool)(jacobians > 1 && counts.rebuilds == 1 && counts.refills == jacobians - 1 && counts.hits > 0),
                        "%s: %" PetscInt_FMT " Jacobians, %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills, %" PetscInt64_FMT " hits", what, jacobians, counts.rebuilds,
                        counts.refills, counts.hits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNewton(void)
{
  MatType  parent;
  PetscInt its[2];

  PetscFunctionBeginUser;
  PetscCall(ParentType(&parent));
  for (int m = 0; m < 2; m++) {
    DM   dm;
    SNES snes;
    Vec  u;
    Mat  J;

    jacobians = 0;
    PetscCall(Line(m ? parent : MATAIJTCCUSPARSE, &dm));
    PetscCall(DMCreateGlobalVector(dm, &u));
    PetscCall(DMCreateMatrix(dm, &J));
    PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
    PetscCall(SNESSetOptionsPrefix(snes, "newton_"));
    PetscCall(SNESSetFunction(snes, NULL, SNESResidual, dm));
    PetscCall(SNESSetJacobian(snes, J, J, SNESJacobian, dm));
    PetscCall(SNESSetFromOptions(snes));
    PetscCall(SNESSolve(snes, NULL, u));
    PetscCall(SNESGetLinearSolveIterations(snes, &its[m]));
    if (m == 0) PetscCall(CheckJacobianCounts(J, "Newton"));
    PetscCall(SNESDestroy(&snes));
    PetscCall(MatDestroy(&J));
    PetscCall(VecDestroy(&u));
    PetscCall(DMDestroy(&dm));
  }
  PetscCall(MatTestFact((PetscBool)(PetscAbsInt(its[0] - its[1]) <= (PetscDefined(USE_REAL_SINGLE) ? its[1] / 10 : 0)), "Newton: %" PetscInt_FMT " linear iterations, %s %" PetscInt_FMT, its[0], parent, its[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestTimeSteps(void)
{
  MatType  parent;
  PetscInt its[2];

  PetscFunctionBeginUser;
  PetscCall(ParentType(&parent));
  for (int m = 0; m < 2; m++) {
    DM  dm;
    TS  ts;
    Vec u;
    Mat J;

    jacobians = 0;
    PetscCall(Line(m ? parent : MATAIJTCCUSPARSE, &dm));
    PetscCall(DMCreateGlobalVector(dm, &u));
    PetscCall(DMCreateMatrix(dm, &J));
    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetOptionsPrefix(ts, "steps_"));
    PetscCall(TSSetType(ts, TSBEULER));
    PetscCall(TSSetIFunction(ts, NULL, TSResidual, dm));
    PetscCall(TSSetIJacobian(ts, J, J, TSJacobian, dm));
    PetscCall(TSSetTimeStep(ts, 0.125));
    PetscCall(TSSetMaxSteps(ts, 5));
    PetscCall(TSSetMaxTime(ts, 100));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(TSSetFromOptions(ts));
    PetscCall(TSSolve(ts, u));
    PetscCall(TSGetKSPIterations(ts, &its[m]));
    if (m == 0) PetscCall(CheckJacobianCounts(J, "time steps"));
    PetscCall(TSDestroy(&ts));
    PetscCall(MatDestroy(&J));
    PetscCall(VecDestroy(&u));
    PetscCall(DMDestroy(&dm));
  }
  PetscCall(MatTestFact((PetscBool)(its[0] == its[1]), "time steps: %" PetscInt_FMT " linear iterations, %s %" PetscInt_FMT, its[0], parent, its[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fields of every second unknown: their blocks are matrices of our type too */
static PetscErrorCode TestFieldSplit(void)
{
  MatType   parent;
  PetscInt  its[2], num;
  PetscBool ours = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(ParentType(&parent));
  for (int m = 0; m < 2; m++) {
    Mat  A;
    KSP  ksp, *sub;
    PC   pc;

    PetscCall(Laplacian(12, m ? parent : MATAIJTCCUSPARSE, &A));
    PetscCall(Solve(A, "fields_", &ksp));
    PetscCall(KSPGetIterationNumber(ksp, &its[m]));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCFieldSplitGetSubKSP(pc, &num, &sub));
    for (PetscInt i = 0; i < num && m == 0; i++) {
      Mat       block;
      PetscBool is_ours;

      PetscCall(KSPGetOperators(sub[i], &block, NULL));
      PetscCall(MatIsAIJTCCUSPARSE(block, &is_ours));
      if (!is_ours) ours = PETSC_FALSE;
    }
    PetscCall(PetscFree(sub));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestFact((PetscBool)(its[0] == its[1]), "fieldsplit: %" PetscInt_FMT " iterations, %s %" PetscInt_FMT, its[0], parent, its[1]));
  PetscCall(MatTestFact(ours, "fieldsplit: the blocks of the fields are %s", ours ? "ours" : "NOT OURS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscBool cuda;
  MatType   parent;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(MatTestHasCUDA(&cuda));
  if (cuda) PetscCall(PetscOptionsInsertString(NULL, "-mat_aijtccusparse_spmv hybrid")); /* counts are exact where nothing is chosen by time */
  PetscCall(PetscOptionsInsertString(NULL, "-cg_ksp_type cg -cg_pc_type jacobi -gmres_ksp_type gmres -gmres_pc_type none -gamg_ksp_type cg -gamg_pc_type gamg -plain_ksp_type cg -plain_pc_type gamg -plain_pc_gamg_agg_nsmooths 0 -blocks_ksp_type cg -blocks_pc_type pbjacobi"));
  PetscCall(PetscOptionsInsertString(NULL, "-bicg_ksp_type bicg -bicg_pc_type jacobi -lsqr_ksp_type lsqr -lsqr_pc_type none -lsqr_ksp_max_it 1000 -newton_ksp_type gmres -newton_pc_type jacobi -steps_ksp_type gmres -steps_pc_type jacobi"));
  PetscCall(PetscOptionsInsertString(NULL, "-fields_ksp_type fgmres -fields_pc_type fieldsplit -fields_pc_fieldsplit_block_size 2 -fields_fieldsplit_pc_type jacobi"));
  PetscCall(ParentType(&parent));
  PetscCall(TestKrylov("cg_", "CG and Jacobi", 1, parent, 0));
  PetscCall(TestKrylov("gmres_", "GMRES", 1, parent, 0));
  PetscCall(TestKrylov("gamg_", "CG and GAMG", 1, MATAIJ, 1)); /* what PETSc calls the parent is ours by now in set-ups, too */
  PetscCall(TestKrylov("plain_", "CG and GAMG without smoothing steps", 1, MATAIJ, 1));
  PetscCall(TestKrylov("blocks_", "CG and point block Jacobi", 4, MATAIJ, 1)); /* the parent's, parallel, reads beyond its blocks */
  PetscCall(TestTransposed("bicg_", "BiCG"));
  PetscCall(TestTransposed("lsqr_", "LSQR"));
  PetscCall(TestSolveAgain());
  PetscCall(TestNewton());
  PetscCall(TestTimeSteps());
  PetscCall(TestFieldSplit());
  return MatTestEnd();
}
