/*
  What programs do with a matrix between products.
*/
#include "uses.h"

/* A new matrix, as from MatSetPreallocationCOO() */
static PetscErrorCode NewMatrix(Use *U, Mat *A)
{
  PetscInt *row, *col;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(U->S.nnz, &row, U->S.nnz, &col)); /* PETSc overwrites them */
  PetscCall(PetscArraycpy(row, U->row, U->S.nnz));
  PetscCall(PetscArraycpy(col, U->col, U->S.nnz));
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, U->S.num_rows, U->S.num_cols, U->S.num_rows, U->S.num_cols));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetPreallocationCOO(*A, (PetscCount)U->S.nnz, row, col));
  PetscCall(MatSetValuesCOO(*A, U->val, INSERT_VALUES));
  PetscCall(PetscFree2(row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Use *U, Mat A, int products)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < products; i++) PetscCall(MatMult(A, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a matrix that goes */
static PetscErrorCode MultiplyOnce(Use *U, Mat *A, int products)
{
  PetscFunctionBeginUser;
  PetscCall(Multiply(U, *A, products));
  PetscCall(MatDestroy(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Use *U, int n)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < n; i++) PetscCall(MatMultTranspose(U->A, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ScaleTransposed(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(Transposed(U, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What TS does with the Jacobian of a right-hand side */
static PetscErrorCode Shift(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(MatShift(U->A, 1e-9));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatDiagonalScale(U->A, U->scale, U->scale));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatAXPY(U->A, 1e-9, U->same, SAME_NONZERO_PATTERN));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValues(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetValuesCOO(U->A, U->val, INSERT_VALUES));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatCopy(U->same, U->A, SAME_NONZERO_PATTERN));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Duplicate(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(U->same, MAT_COPY_VALUES, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(NewMatrix(U, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(U->same, MAT_INITIAL_MATRIX, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeKept(Use *U, int n)
{
  PetscFunctionBeginUser;
  if (!U->transpose) PetscCall(MatTranspose(U->same, MAT_INITIAL_MATRIX, &U->transpose));
  PetscCall(Multiply(U, U->transpose, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Use *U, int n)
{
  Mat A;
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSubMatrix(U->same, U->half, U->half, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int i = 0; i < n; i++) PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeAgain(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(MatTranspose(U->A, U->again[0] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &U->again[0]));
  PetscCall(Multiply(U, U->again[0], n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What fieldsplit does with new values, for a field whose unknowns lie together, ... */
static PetscErrorCode PartAgain(Use *U, IS is, Mat *part, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(MatCreateSubMatrix(U->A, is, is, *part ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, part));
  if (!U->part[0]) PetscCall(MatCreateVecs(*part, &U->part[0], &U->part[1]));
  for (int i = 0; i < n; i++) PetscCall(MatMult(*part, U->part[0], U->part[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HalfAgain(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(PartAgain(U, U->half, &U->again[1], n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ... and for one of two that alternate */
static PetscErrorCode FieldAgain(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(PartAgain(U, U->odd, &U->again[2], n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P adds up four neighbours */
static PetscErrorCode PtAP(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatPtAP(U->same, U->P, MAT_INITIAL_MATRIX, PETSC_CURRENT, &A));
  if (!U->row_of_p) PetscCall(MatCreateVecs(A, &U->col_of_p, &U->row_of_p));
  for (int i = 0; i < n; i++) PetscCall(MatMult(A, U->col_of_p, U->row_of_p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of Richardson's method, with Jacobi's preconditioner */
static PetscErrorCode Solve(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetValuesCOO(U->A, U->val, INSERT_VALUES));
  PetscCall(KSPSetOperators(U->ksp, U->A, U->A));
  PetscCall(KSPSetTolerances(U->ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, n));
  PetscCall(KSPSolve(U->ksp, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No diagonal, which not every matrix has room for: where new entries are allowed, PETSc (3.26.1, MATAIJ, too) ends in a segmentation fault when it adds one to a matrix made by MatSetPreallocationCOO() */
static PetscErrorCode ZeroRows(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroRows(U->A, U->num_rows, U->rows, 0.0, NULL, NULL));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const UseKind *UseKinds(size_t *num)
{
  static const UseKind kinds[] = {
    {"MatMult",                                Product,         1,  PETSC_FALSE},
    {"MatMultTranspose",                       Transposed,      1,  PETSC_FALSE},
    {"MatScale, MatMult",                      Scale,           1,  PETSC_FALSE},
    {"MatScale, 10 MatMult",                   Scale,           10, PETSC_FALSE},
    {"MatScale, MatMultTranspose",             ScaleTransposed, 1,  PETSC_FALSE},
    {"MatScale, MatShift, MatMult",            Shift,           1,  PETSC_TRUE },
    {"MatDiagonalScale, MatMult",              DiagonalScale,   1,  PETSC_FALSE},
    {"MatAXPY, MatMult",                       AXPY,            1,  PETSC_FALSE},
    {"MatSetValuesCOO, MatMult",               SetValues,       1,  PETSC_FALSE},
    {"MatSetValuesCOO, 30 iterations",         Solve,           30, PETSC_FALSE},
    {"MatCopy, MatMult",                       Copy,            1,  PETSC_FALSE},
    {"MatDuplicate, MatMult",                  Duplicate,       1,  PETSC_FALSE},
    {"MatDuplicate, 10 MatMult",               Duplicate,       10, PETSC_FALSE},
    {"new matrix, MatMult",                    New,             1,  PETSC_FALSE},
    {"new matrix, 20 MatMult",                 New,             20, PETSC_FALSE},
    {"MatTranspose, MatMult",                  Transpose,       1,  PETSC_FALSE},
    {"MatMult with what MatTranspose() gave",  TransposeKept,   1,  PETSC_FALSE},
    {"MatCreateSubMatrix, MatMult",            SubMatrix,       1,  PETSC_FALSE},
    {"MatScale, MatTranspose again, MatMult",  TransposeAgain,  1,  PETSC_FALSE},
    {"MatScale, half of it again, MatMult",    HalfAgain,       1,  PETSC_FALSE},
    {"MatScale, a field again, MatMult",       FieldAgain,      1,  PETSC_FALSE},
    {"new ILU(0), MatSolve",                   UseNewILU,       1,  PETSC_TRUE },
    {"ILU(0) again, MatSolve",                 UseILUAgain,     1,  PETSC_TRUE },
    {"MatSolve with ILU(0)",                   UseILU,          1,  PETSC_TRUE },
    {"new ILU(1), MatSolve",                   UseNewILU1,      1,  PETSC_TRUE },
    {"ILU(1) again, MatSolve",                 UseILU1Again,    1,  PETSC_TRUE },
    {"MatSolve with ILU(1)",                   UseILU1,         1,  PETSC_TRUE },
    {"ILU(0) by RCM again, MatSolve",          UseRCMAgain,     1,  PETSC_TRUE },
    {"MatSolve with ILU(0) by RCM",            UseRCM,          1,  PETSC_TRUE },
    {"ICC(0) again, MatSolve",                 UseICCAgain,     1,  PETSC_TRUE },
    {"MatSolve with ICC(0)",                   UseICC,          1,  PETSC_TRUE },
    {"MatMatSolve with ILU(0)",                UseILUBlock,     1,  PETSC_TRUE },
    {"MatMatSolve with ILU(1)",                UseILU1Block,    1,  PETSC_TRUE },
    {"MatMatSolve with ICC(0)",                UseICCBlock,     1,  PETSC_TRUE },
    {"MatPtAP, MatMult",                       PtAP,            1,  PETSC_FALSE},
    {"MatZeroRows, MatMult",                   ZeroRows,        1,  PETSC_FALSE},
  };

  *num = sizeof(kinds) / sizeof(kinds[0]);
  return kinds;
}

/* Values, where the matrix multiplies, and rows and columns of every entry */
static PetscErrorCode UseCreateEntries(Use *U)
{
  const PetscInt nnz = (PetscInt)U->S.nnz;
  PetscScalar   *host;
  PetscMemType   type;
  VecType        vec_type;
  Mat            A;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(nnz, &U->row, nnz, &U->col));
  for (int32_t i = 0; i < U->S.num_rows; i++) {
    for (int64_t e = U->S.row_ptr[i]; e < U->S.row_ptr[i + 1]; e++) {
      U->row[e] = i;
      U->col[e] = U->S.col[e];
      if (U->col[e] == i) U->on_diagonal++;
    }
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGetVecType(A, &vec_type));
  PetscCall(VecCreate(PETSC_COMM_SELF, &U->values));
  PetscCall(VecSetSizes(U->values, nnz, nnz));
  PetscCall(VecSetType(U->values, vec_type));
  PetscCall(VecGetArrayWrite(U->values, &host));
  for (PetscInt e = 0; e < nnz; e++) host[e] = (PetscScalar)U->S.val[e];
  PetscCall(VecRestoreArrayWrite(U->values, &host));
  PetscCall(VecGetArrayReadAndMemType(U->values, &U->val, &type));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode UseCreate(const char name[], Use *U)
{
  PetscInt m;
  PC       pc;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(U, sizeof(*U)));
  PetscCheck(tc_generate_named(name, 1, &U->S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case %s", tc_last_error());
  PetscCheck(U->S.num_rows == U->S.num_cols, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "-case %s: as many rows as columns expected", name);
  U->columns = 32;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &U->columns, NULL));
  PetscCall(UseCreateEntries(U));
  PetscCall(NewMatrix(U, &U->A));
  PetscCall(NewMatrix(U, &U->same));
  PetscCall(MatGetSize(U->A, &m, NULL));
  PetscCall(MatCreateVecs(U->A, &U->x, &U->y));
  PetscCall(VecDuplicate(U->x, &U->scale));
  PetscCall(VecSet(U->x, 1.5));
  PetscCall(VecSet(U->scale, 1.0000001));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m / 2, 0, 1, &U->half));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m / 2, 1, 2, &U->odd));
  U->num_rows = m / 50;
  PetscCall(PetscMalloc1(U->num_rows, &U->rows));
  for (PetscInt i = 0; i < U->num_rows; i++) U->rows[i] = 50 * i;
  PetscCall(MatCreate(PETSC_COMM_SELF, &U->P));
  PetscCall(MatSetSizes(U->P, m, m / 4 + 1, m, m / 4 + 1));
  PetscCall(MatSetFromOptions(U->P));
  PetscCall(MatSeqAIJSetPreallocation(U->P, 1, NULL));
  for (PetscInt i = 0; i < m; i++) PetscCall(MatSetValue(U->P, i, i / 4, 1, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(U->P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(U->P, MAT_FINAL_ASSEMBLY));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &U->ksp));
  PetscCall(KSPSetType(U->ksp, KSPRICHARDSON)); /* no values end it early, */
  PetscCall(KSPRichardsonSetScale(U->ksp, 1e-3)); /* and none overflow */
  PetscCall(KSPSetNormType(U->ksp, KSP_NORM_NONE));
  PetscCall(KSPSetConvergenceTest(U->ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPGetPC(U->ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode UseDestroy(Use *U)
{
  PetscFunctionBeginUser;
  PetscCall(VecRestoreArrayReadAndMemType(U->values, &U->val));
  PetscCall(VecDestroy(&U->values));
  PetscCall(MatDestroy(&U->A));
  PetscCall(MatDestroy(&U->same));
  PetscCall(MatDestroy(&U->transpose));
  for (int i = 0; i < 3; i++) PetscCall(MatDestroy(&U->again[i]));
  for (int i = 0; i < USE_NUM_FACTORS; i++) PetscCall(MatDestroy(&U->factor[i]));
  for (int i = 0; i < 2; i++) {
    PetscCall(VecDestroy(&U->part[i]));
    PetscCall(MatDestroy(&U->block[i]));
  }
  PetscCall(MatDestroy(&U->P));
  PetscCall(VecDestroy(&U->x));
  PetscCall(VecDestroy(&U->y));
  PetscCall(VecDestroy(&U->scale));
  PetscCall(VecDestroy(&U->row_of_p));
  PetscCall(VecDestroy(&U->col_of_p));
  PetscCall(ISDestroy(&U->half));
  PetscCall(ISDestroy(&U->odd));
  PetscCall(KSPDestroy(&U->ksp));
  PetscCall(PetscFree(U->rows));
  PetscCall(PetscFree2(U->row, U->col));
  tc_matrix_free(&U->S);
  PetscFunctionReturn(PETSC_SUCCESS);
}
