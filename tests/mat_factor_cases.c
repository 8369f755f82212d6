/*
  Matrices, their factors, and what these solve.
*/
#include "mat_factor.h"

/* A matrix whose rows have an entry off the diagonal each: in the other half of their process's, so that one row at most waits for another, or that of the row before */
static PetscErrorCode CreatePairs(PetscInt pairs, PetscBool chain, MatType type, Mat *A)
{
  const PetscInt m = 2 * pairs, away = chain ? m - 1 : pairs;
  PetscInt first;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, m, m, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &first, NULL));
  for (PetscInt i = 0; i < m; i++) {
    PetscCall(MatSetValue(*A, first + i, first + i, 3.0 + (PetscReal)(i % pairs % 5), INSERT_VALUES));
    PetscCall(MatSetValue(*A, first + i, first + (i + away) % m, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Generate(const char name[], PetscInt size, MatType type, Mat *A, Mat *block)
{
  tc_matrix S;
  PetscBool pairs, chain, nodes;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(name, "pairs", &pairs));
  PetscCall(PetscStrcmp(name, "chain", &chain));
  if (pairs || chain) PetscCall(CreatePairs(size, chain, type, A));
  else {
    PetscCall(MatTestGenerate(name, size, &S));
    for (int64_t i = 0; i < S.num_rows; i++) {
      for (int64_t k = S.row_ptr[i]; k < S.row_ptr[i + 1]; k++) S.val[k] = S.col[k] == i ? 2.0 + (double)(S.row_ptr[i + 1] - S.row_ptr[i]) : -1.0 / (1.0 + (double)((i + S.col[k]) % 7));
    }
    PetscCall(PetscStrcmp(name, "elasticity", &nodes));
    PetscCall(MatTestCreate(&S, nodes ? MATAIJ : type, A));
    tc_matrix_free(&S);
    if (nodes) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A)); /* so that PETSc goes on knowing which rows share their columns */
  }
  PetscCall(MatGetDiagonalBlock(*A, block));
  PetscCall(MatSetOption(*block, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Numeric(const Kind *kind, Mat A, Mat F)
{
  MatFactorInfo  info;
  const PetscBool symmetric = (PetscBool)(kind->type == MAT_FACTOR_CHOLESKY || kind->type == MAT_FACTOR_ICC);

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(symmetric ? MatCholeskyFactorNumeric(F, A, &info) : MatLUFactorNumeric(F, A, &info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SwapHalves(IS *cols)
{
  PetscInt m, *ids;

  PetscFunctionBeginUser;
  PetscCall(ISGetLocalSize(*cols, &m));
  PetscCall(PetscMalloc1(m, &ids));
  for (PetscInt i = 0; i < m; i++) ids[i] = (i + m / 2) % m;
  PetscCall(ISDestroy(cols));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, m, ids, PETSC_OWN_POINTER, cols));
  PetscCall(ISSetPermutation(*cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Factor(const Kind *kind, MatSolverType solver, Mat A, Mat *F)
{
  MatFactorInfo info;
  IS            rows, cols;
  PetscBool     halves;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = (PetscReal)kind->levels;
  info.fill   = 5;
  PetscCall(PetscStrcmp(kind->ordering, HALVES, &halves));
  PetscCall(MatGetOrdering(A, halves ? MATORDERINGNATURAL : kind->ordering, &rows, &cols));
  if (halves) PetscCall(SwapHalves(&cols));
  PetscCall(MatGetFactor(A, solver, kind->type, F));
  if (kind->type == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(*F, A, rows, cols, &info));
  else if (kind->type == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(*F, A, rows, cols, &info));
  else if (kind->type == MAT_FACTOR_CHOLESKY) PetscCall(MatCholeskyFactorSymbolic(*F, A, rows, &info));
  else PetscCall(MatICCFactorSymbolic(*F, A, rows, &info));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(Numeric(kind, A, *F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far are two blocks apart, relative to the larger number of the second? Both on the host */
static PetscErrorCode Difference(Mat X, Mat Y, PetscReal *difference)
{
  const PetscScalar *x, *y;
  PetscInt           m, n, ldx, ldy;
  PetscReal          largest = 0;

  PetscFunctionBeginUser;
  *difference = 0;
  PetscCall(MatGetSize(X, &m, &n));
  PetscCall(MatDenseGetLDA(X, &ldx));
  PetscCall(MatDenseGetLDA(Y, &ldy));
  PetscCall(MatDenseGetArrayRead(X, &x));
  PetscCall(MatDenseGetArrayRead(Y, &y));
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) {
      largest     = PetscMax(largest, PetscAbsScalar(y[j * ldy + i]));
      *difference = PetscMax(*difference, PetscAbsScalar(x[j * ldx + i] - y[j * ldy + i]));
      if (PetscIsNanScalar(x[j * ldx + i])) *difference = PETSC_INFINITY;
    }
  }
  PetscCall(MatDenseRestoreArrayRead(X, &x));
  PetscCall(MatDenseRestoreArrayRead(Y, &y));
  *difference = largest > 0 ? *difference / largest : PETSC_INFINITY;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A dense matrix of that type, its columns further apart than they are long, poisoned or with the numbers of the other one */
static PetscErrorCode Block(MatType type, PetscInt m, Mat numbers, Mat *B)
{
  PetscScalar       *b;
  const PetscScalar *from = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, B));
  PetscCall(MatSetSizes(*B, m, COLUMNS, m, COLUMNS));
  PetscCall(MatSetType(*B, type));
  PetscCall(MatDenseSetLDA(*B, m + 3));
  PetscCall(MatSetUp(*B));
  if (numbers) PetscCall(MatDenseGetArrayRead(numbers, &from));
  PetscCall(MatDenseGetArrayWrite(*B, &b));
  for (PetscInt k = 0; k < (m + 3) * COLUMNS; k++) b[k] = from && k % (m + 3) < m ? from[k / (m + 3) * m + k % (m + 3)] : (PetscScalar)NAN;
  PetscCall(MatDenseRestoreArrayWrite(*B, &b));
  if (numbers) PetscCall(MatDenseRestoreArrayRead(numbers, &from));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Solves(Mat F, Mat expected, Mat numbers, VecType vectors, MatType blocks, PetscBool transposes, PetscReal *worst)
{
  PetscErrorCodeFn *solve_block;
  PetscReal         difference;
  PetscInt          m;

  PetscFunctionBeginUser;
  *worst = 0;
  PetscCall(MatGetSize(numbers, &m, NULL));
  for (int transposed = 0; transposed <= (int)transposes; transposed++) {
    Mat B, X, Y;
    Vec b, x;

    PetscCall(MatDuplicate(numbers, MAT_DO_NOT_COPY_VALUES, &Y));
    for (PetscInt j = 0; j < COLUMNS; j++) { /* vector by vector, for both */
      Vec from, to;

      PetscCall(MatDenseGetColumnVecRead(numbers, j, &from));
      PetscCall(MatDenseGetColumnVecWrite(Y, j, &to));
      PetscCall(transposed ? MatSolveTranspose(expected, from, to) : MatSolve(expected, from, to));
      PetscCall(MatDenseRestoreColumnVecWrite(Y, j, &to));
      PetscCall(MatDenseRestoreColumnVecRead(numbers, j, &from));
    }
    PetscCall(MatDuplicate(Y, MAT_DO_NOT_COPY_VALUES, &X));
    PetscCall(VecCreate(PETSC_COMM_SELF, &b));
    PetscCall(VecSetSizes(b, m, m));
    PetscCall(VecSetType(b, vectors));
    PetscCall(VecDuplicate(b, &x));
    for (PetscInt j = 0; j < COLUMNS; j++) {
      Vec column;

      PetscCall(MatDenseGetColumnVecRead(numbers, j, &column));
      PetscCall(VecCopy(column, b));
      PetscCall(MatDenseRestoreColumnVecRead(numbers, j, &column));
      PetscCall(VecSet(x, (PetscScalar)NAN));
      PetscCall(transposed ? MatSolveTranspose(F, b, x) : MatSolve(F, b, x));
      PetscCall(MatDenseGetColumnVecWrite(X, j, &column));
      PetscCall(VecCopy(x, column));
      PetscCall(MatDenseRestoreColumnVecWrite(X, j, &column));
    }
    PetscCall(Difference(X, Y, &difference));
    *worst = PetscMax(*worst, difference);
    PetscCall(MatDestroy(&X));
    PetscCall(Block(blocks, m, numbers, &B));
    PetscCall(Block(blocks, m, NULL, &X));
    PetscCall(transposed ? MatMatSolveTranspose(F, B, X) : MatMatSolve(F, B, X));
    PetscCall(Difference(X, Y, &difference));
    *worst = PetscMax(*worst, difference);
    PetscCall(MatGetOperation(F, MATOP_MAT_SOLVE, &solve_block));
    if (solve_block && !transposed) { /* in place, which takes a function of its own */
      PetscCall(MatMatSolve(F, B, B));
      PetscCall(Difference(B, Y, &difference));
      *worst = PetscMax(*worst, difference);
    }
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&Y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveAssembledLate(PCType solver, PetscBool preallocate, MatType type, Vec *x)
{
  enum {
    ROWS = 400,
    NEAR = 7
  };
  Mat A;
  Vec b;
  KSP ksp;
  PC  pc;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, ROWS, ROWS, ROWS, ROWS));
  PetscCall(MatSetType(A, type));
  if (preallocate) PetscCall(MatSeqAIJSetPreallocation(A, 2 * NEAR, NULL));
  else PetscCall(MatSetUp(A));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, solver));
  PetscCall(KSPSetFromOptions(ksp)); /* makes a factor, to ask it for its order */
  PetscCall(PCFactorSetUpMatSolverType(pc)); /* makes one that stays */
  for (PetscInt i = 0; i < ROWS; i++) {
    PetscCall(MatSetValue(A, i, i, 6.0, INSERT_VALUES));
    for (PetscInt away = 1; away <= NEAR; away += NEAR - 1) {
      if (i >= away) PetscCall(MatSetValue(A, i, i - away, -1.0, INSERT_VALUES));
      if (i + away < ROWS) PetscCall(MatSetValue(A, i, i + away, -1.0, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, *x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestBeforeAssembly(PCType solver, PetscBool preallocate)
{
  const PetscReal    tolerance = 100 * PETSC_MACHINE_EPSILON; /* the condition is at most 5 */
  const PetscScalar *array, *expected_array;
  Vec                x, expected;
  PetscInt           m;
  PetscReal          difference = 0, scale = 0;

  PetscFunctionBeginUser;
  PetscCall(SolveAssembledLate(solver, preallocate, MATAIJTCCUSPARSE, &x));
  PetscCall(SolveAssembledLate(solver, preallocate, MATAIJ, &expected));
  PetscCall(VecGetSize(x, &m));
  PetscCall(VecGetArrayRead(x, &array));
  PetscCall(VecGetArrayRead(expected, &expected_array));
  for (PetscInt i = 0; i < m; i++) {
    difference = PetscMax(difference, PetscAbsScalar(array[i] - expected_array[i]));
    scale      = PetscMax(scale, PetscAbsScalar(expected_array[i]));
  }
  PetscCall(VecRestoreArrayRead(x, &array));
  PetscCall(VecRestoreArrayRead(expected, &expected_array));
  PetscCall(MatTestFact((PetscBool)(scale > 0 && difference <= tolerance * scale), "a matrix that is assembled after %s has got its options, %s: solutions differ by %g of %g", solver, preallocate ? "preallocated" : "not preallocated", (double)difference, (double)scale));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}
