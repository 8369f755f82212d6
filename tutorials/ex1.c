static char help[] = "Reads a matrix, then solves a linear system with it once for each of several matrix types, and compares them.\n\
Input parameters:\n\
  -f <file>          : Matrix Market file (.mtx or .mtx.gz) or PETSc binary file\n\
  -types <t1,t2,...> : matrix types to compare, default aij,aijtccusparse\n\
  -solves <n>        : how often each system is solved, default 2; the first solve sets up the type's storage, the others find it in place\n\n";

/*
  Two ways to make the type aijtccusparse known to a program:

    ex1 links with the library and calls MatAIJTCCUSPARSEInitializePackage(), because it asks for backend and counters below;
    a program that only wants the type needs neither: ./program -dll_prepend /absolute/path/libaijtccusparse.so -mat_type aijtccusparse

  Try:  mpiexec -n 2 ./ex1 -f matrix.mtx.gz -ksp_type cg -pc_type jacobi -types aij,aijtccusparse
*/
#include <petscksp.h>
#include <petscmataijtccusparse.h>
#include "matrix_market.h"

/* Every process reads the whole file and keeps the rows it owns */
static PetscErrorCode LoadMatrixMarket(MPI_Comm comm, const char file[], Mat *A)
{
  tc_matrix    M;
  PetscInt     begin, end, *row_ptr, *col;
  PetscScalar *val;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_market_read(file, &M) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s", tc_last_error());
  PetscCheck(M.num_rows == M.num_cols, comm, PETSC_ERR_ARG_SIZ, "%s has %d rows and %d columns, a square matrix is needed", file, (int)M.num_rows, (int)M.num_cols);
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, M.num_rows, M.num_cols));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  PetscCall(PetscMalloc3(end - begin + 1, &row_ptr, M.row_ptr[end] - M.row_ptr[begin], &col, M.row_ptr[end] - M.row_ptr[begin], &val));
  for (PetscInt i = begin; i <= end; i++) row_ptr[i - begin] = (PetscInt)(M.row_ptr[i] - M.row_ptr[begin]);
  for (PetscInt k = 0; k < row_ptr[end - begin]; k++) {
    col[k] = M.col[M.row_ptr[begin] + k];
    val[k] = M.val[M.row_ptr[begin] + k];
  }
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, row_ptr, col, val));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, row_ptr, col, val));
  PetscCall(PetscFree3(row_ptr, col, val));
  tc_matrix_free(&M);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadPETScBinary(MPI_Comm comm, const char file[], Mat *A)
{
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(PetscViewerBinaryOpen(comm, file, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* "cuda" or "host": where the matrix is multiplied */
static PetscErrorCode GetBackend(Mat A, const char *name[])
{
  PetscBool               ours, device;
  MatAIJTCCUSPARSEBackend backend;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  *name = device == PETSC_TRUE ? "cuda" : "host";
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  if (ours == PETSC_TRUE) {
    PetscCall(MatAIJTCCUSPARSEGetBackend(A, &backend));
    *name = MatAIJTCCUSPARSEBackends[backend];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves with `A` converted to `type` and prints a line of the table */
static PetscErrorCode Solve(Mat A, Vec b, MatType type, PetscInt num_solves)
{
  MPI_Comm           comm = PetscObjectComm((PetscObject)A);
  Mat                B;
  Vec                x, rhs, r;
  KSP                ksp;
  KSPConvergedReason reason;
  PetscInt           its;
  PetscInt64         hits = 0, refills = 0, rebuilds = 0;
  PetscReal          norm_r, norm_b;
  PetscLogDouble     start, end, first = 0.0, last = 0.0;
  PetscBool          ours;
  const char        *backend;
  char               counters[128] = "-";

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatSetFromOptions(B));
  PetscCall(MatCreateVecs(B, &x, &rhs));
  PetscCall(VecDuplicate(rhs, &r));
  PetscCall(VecCopy(b, rhs));
  PetscCall(KSPCreate(comm, &ksp));
  PetscCall(KSPSetOperators(ksp, B, B));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  for (PetscInt i = 0; i < num_solves; i++) {
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&start));
    PetscCall(KSPSolve(ksp, rhs, x));
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&end));
    last = end - start;
    if (i == 0) first = last;
  }
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(MatMult(B, x, r));
  PetscCall(VecAXPY(r, -1.0, rhs));
  PetscCall(VecNorm(r, NORM_2, &norm_r));
  PetscCall(VecNorm(rhs, NORM_2, &norm_b));
  PetscCall(GetBackend(B, &backend));
  PetscCall(MatIsAIJTCCUSPARSE(B, &ours));
  if (ours == PETSC_TRUE) {
    PetscCall(MatAIJTCCUSPARSEGetCounters(B, &hits, &refills, &rebuilds));
    PetscCall(PetscSNPrintf(counters, sizeof(counters), "%" PetscInt64_FMT "/%" PetscInt64_FMT "/%" PetscInt64_FMT, hits, refills, rebuilds));
  }
  PetscCall(PetscPrintf(comm, "%-16s %-8s %10" PetscInt_FMT " %11.2e %9.4f %9.4f  %-20s %s\n", type, backend, its, (double)(norm_r / norm_b), first, last, counters, KSPConvergedReasons[reason]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&rhs));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  Vec         u, b;
  PetscInt    m, n, num_types = 8, num_solves = 2;
  char        file[PETSC_MAX_PATH_LEN], *types[8];
  PetscBool   found, given;
  const char *mtx;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), &found));
  PetscCheck(found == PETSC_TRUE, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-f <file>: a Matrix Market or PETSc binary file is needed");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-solves", &num_solves, NULL));
  PetscCheck(num_solves > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-solves %" PetscInt_FMT ": at least 1 is needed", num_solves);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &num_types, &given));
  if (given == PETSC_FALSE) {
    num_types = 2;
    PetscCall(PetscStrallocpy(MATAIJ, &types[0]));
    PetscCall(PetscStrallocpy(MATAIJTCCUSPARSE, &types[1]));
  }

  PetscCall(PetscStrstr(file, ".mtx", (char **)&mtx));
  if (mtx) PetscCall(LoadMatrixMarket(PETSC_COMM_WORLD, file, &A));
  else PetscCall(LoadPETScBinary(PETSC_COMM_WORLD, file, &A));

  /* the right-hand side belongs to the solution 1, 1, ..., and is the same for every type */
  PetscCall(MatCreateVecs(A, &u, &b));
  PetscCall(VecSet(u, 1.0));
  PetscCall(MatMult(A, u, b));

  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %" PetscInt_FMT " x %" PetscInt_FMT "\n", file, m, n));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-16s %-8s %10s %11s %9s %9s  %-20s %s\n", "type", "backend", "iterations", "|b-Ax|/|b|", "first [s]", "last [s]", "hits/refills/rebuilds", "reason"));
  for (PetscInt t = 0; t < num_types; t++) {
    PetscCall(Solve(A, b, types[t], num_solves));
    PetscCall(PetscFree(types[t]));
  }

  PetscCall(VecDestroy(&u));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
