/*
  Factors of matrices on the GPU that the host computes and solves with: those of MATSOLVERPETSC, with two things around them. Vectors and blocks may be anywhere.
*/
#include "solve.h"

#if PetscDefined(HAVE_CUDA)

typedef PetscErrorCode (*MatTCSymbolicFn)(Mat, Mat, IS, IS, const MatFactorInfo *);
typedef PetscErrorCode (*MatTCNumericFn)(Mat, Mat, const MatFactorInfo *);
typedef PetscErrorCode (*MatTCMatSolveFn)(Mat, Mat, Mat);

/* Operations of an LU or ILU factor of the host in whose places are ours, composed on it */
typedef struct {
  PetscErrorCodeFn *lu_symbolic, *ilu_symbolic, *numeric, *solve_block, *solve_block_transposed;
} MatTCHostFactor;

static const char host_factor_name[] = "MatAIJTCCUSPARSE_host_factor";

static PetscErrorCode MatTCHostFactorGet(Mat F, MatTCHostFactor **functions)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, host_factor_name, (void *)functions));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the host has left in the place of an operation is kept, and ours takes its place */
static PetscErrorCode MatTCHostFactorReplace(Mat F, MatOperation op, PetscErrorCodeFn **kept, PetscErrorCodeFn *ours)
{
  PetscErrorCodeFn *f;

  PetscFunctionBegin;
  PetscCall(MatGetOperation(F, op, &f));
  if (!f || f == ours) PetscFunctionReturn(PETSC_SUCCESS);
  *kept = f;
  PetscCall(MatSetOperation(F, op, ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A dense matrix of the host over the array of B, which may be on the GPU */
static PetscErrorCode MatTCHostBlockGet(Mat B, MatTCAccess access, PetscScalar **array, Mat *host)
{
  PetscInt m, n, lda;
  int      far;

  PetscFunctionBegin;
  PetscCall(MatTCDenseGet(B, access, PETSC_TRUE, array, &lda, &far));
  PetscCall(MatGetSize(B, &m, &n));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, n, *array, host));
  PetscCall(MatDenseSetLDA(*host, lda));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCHostBlockRestore(Mat B, MatTCAccess access, PetscScalar **array, Mat *host)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(host));
  PetscCall(MatTCDenseRestore(B, access, PETSC_TRUE, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's functions take blocks of the host only */
static PetscErrorCode MatTCFactorSolveBlock(Mat F, PetscErrorCodeFn *f, Mat B, Mat X)
{
  const MatTCAccess access = B == X ? MATTC_READ_WRITE : MATTC_WRITE;
  PetscScalar      *b = NULL, *x;
  Mat               host_b = NULL, host_x;

  PetscFunctionBegin;
  if (B != X) PetscCall(MatTCHostBlockGet(B, MATTC_READ, &b, &host_b));
  PetscCall(MatTCHostBlockGet(X, access, &x, &host_x));
  PetscCall((*(MatTCMatSolveFn)f)(F, B == X ? host_x : host_b, host_x));
  PetscCall(MatTCHostBlockRestore(X, access, &x, &host_x));
  if (B != X) PetscCall(MatTCHostBlockRestore(B, MATTC_READ, &b, &host_b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolve_TCHostFactor(Mat F, Mat B, Mat X)
{
  MatTCHostFactor *functions;

  PetscFunctionBegin;
  PetscCall(MatTCHostFactorGet(F, &functions));
  PetscCall(MatTCFactorSolveBlock(F, functions->solve_block, B, X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolveTranspose_TCHostFactor(Mat F, Mat B, Mat X)
{
  MatTCHostFactor *functions;

  PetscFunctionBegin;
  PetscCall(MatTCHostFactorGet(F, &functions));
  PetscCall(MatTCFactorSolveBlock(F, functions->solve_block_transposed, B, X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's function for rows that share their columns reads the values of the host as they are, whether those of the GPU are newer or not */
static PetscErrorCode MatLUFactorNumeric_TCHostFactor(Mat F, Mat A, const MatFactorInfo *info)
{
  MatTCHostFactor   *functions;
  const PetscScalar *values;

  PetscFunctionBegin;
  PetscCall(MatTCHostFactorGet(F, &functions));
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  PetscCall((*(MatTCNumericFn)functions->numeric)(F, A, info));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscCall(MatTCHostFactorReplace(F, MATOP_MAT_SOLVE, &functions->solve_block, (PetscErrorCodeFn *)MatMatSolve_TCHostFactor));
  PetscCall(MatTCHostFactorReplace(F, MATOP_MAT_SOLVE_TRANSPOSE, &functions->solve_block_transposed, (PetscErrorCodeFn *)MatMatSolveTranspose_TCHostFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic factorizations say which function computes the numbers */
static PetscErrorCode MatTCFactorSymbolic(Mat F, MatTCHostFactor *functions, PetscErrorCodeFn *f, Mat A, IS rows, IS cols, const MatFactorInfo *info)
{
  PetscFunctionList none = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  MatTCSwapFunctions(A, &none);
  ierr = (*(MatTCSymbolicFn)f)(F, A, rows, cols, info);
  MatTCSwapFunctions(A, &none);
  PetscCall(ierr);
  PetscCall(MatTCHostFactorReplace(F, MATOP_LUFACTOR_NUMERIC, &functions->numeric, (PetscErrorCodeFn *)MatLUFactorNumeric_TCHostFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorSymbolic_TCHostFactor(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info)
{
  MatTCHostFactor *functions;

  PetscFunctionBegin;
  PetscCall(MatTCHostFactorGet(F, &functions));
  PetscCall(MatTCFactorSymbolic(F, functions, functions->lu_symbolic, A, rows, cols, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactorSymbolic_TCHostFactor(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info)
{
  MatTCHostFactor *functions;

  PetscFunctionBegin;
  PetscCall(MatTCHostFactorGet(F, &functions));
  PetscCall(MatTCFactorSymbolic(F, functions, functions->ilu_symbolic, A, rows, cols, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *F = NULL if the host declines */
PetscErrorCode MatTCHostFactorCreate(Mat A, MatFactorType type, Mat *F)
{
  MatTCHostFactor *functions;
  PetscErrorCode (*get)(Mat, MatFactorType, Mat *);

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, type, NULL, NULL, &get));
  if (get) PetscCall((*get)(A, type, F));
  if (!*F || (type != MAT_FACTOR_LU && type != MAT_FACTOR_ILU)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&functions));
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, host_factor_name, functions, PetscCtxDestroyDefault));
  PetscCall(MatTCHostFactorReplace(*F, MATOP_LUFACTOR_SYMBOLIC, &functions->lu_symbolic, (PetscErrorCodeFn *)MatLUFactorSymbolic_TCHostFactor));
  PetscCall(MatTCHostFactorReplace(*F, MATOP_ILUFACTOR_SYMBOLIC, &functions->ilu_symbolic, (PetscErrorCodeFn *)MatILUFactorSymbolic_TCHostFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
