/*
  Factors of matrices on the GPU. The parent (PETSc 3.26.1) solves with its factors by cuSPARSE, where rows wait for each other: 50 to 600 us for what the host does in 20 to 150 with small matrices,
  both ways of the vectors included, and a block of right-hand sides column by column. The coarsest grids of multigrid are such, and so are incomplete factors of much larger matrices with long chains
  of rows. So the factors of these are those of MATSOLVERPETSC, computed and solved with on the host, which most of the parent's are computed on anyway. Vectors and blocks may be anywhere.
*/
#include "aijtccusparseimpl.h"

#if PetscDefined(HAVE_CUDA)

/* As measured on an H200 (docs/performance-solves.md, "Factors"), rows and entries: beyond these the GPU comes close where factors have many more entries than the matrix, or nobody has looked */
enum {
  MOST_ROWS               = 5000,
  MOST_ENTRIES            = 50000,
  MOST_ROWS_INCOMPLETE    = 100000,
  MOST_ENTRIES_INCOMPLETE = 1500000
};

typedef PetscErrorCode (*MatTCGetFactorFn)(Mat, MatFactorType, Mat *);
typedef PetscErrorCode (*MatTCSymbolicFn)(Mat, Mat, IS, IS, const MatFactorInfo *);
typedef PetscErrorCode (*MatTCNumericFn)(Mat, Mat, const MatFactorInfo *);
typedef PetscErrorCode (*MatTCMatSolveFn)(Mat, Mat, Mat);

static const MatFactorType factor_types[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

enum {
  NUM_TYPES = PETSC_STATIC_ARRAY_LENGTH(factor_types)
};

static MatTCGetFactorFn parents_get_factor[NUM_TYPES], hosts_get_factor[NUM_TYPES]; /* as registered when ours are */

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

/* How many rows have to come one after the other, at most, when a factor with the pattern of the matrix is solved with? */
static PetscErrorCode MatTCCountLevels(Mat A, PetscInt *levels)
{
  const PetscInt *ia, *ja;
  PetscInt        m, *level;
  PetscBool       done;

  PetscFunctionBegin;
  *levels = 0;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, &level));
  for (PetscInt i = 0; i < m; i++) {
    level[i] = 1;
    for (PetscInt k = ia[i]; k < ia[i + 1]; k++) {
      if (ja[k] < i) level[i] = PetscMax(level[i], level[ja[k]] + 1);
    }
    *levels = PetscMax(*levels, level[i]);
  }
  PetscCall(PetscFree(level));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Does the host solve with incomplete factors of the matrix in less time, a tenth of computing their numbers anew included? Those have about as many entries as the matrix. On the GPU what counts is
  how often rows wait for others; on the host 10 ns for a row, vectors on their way included, an entry 1 ns there and 10 in computing it.
*/
static PetscErrorCode MatTCIncompleteOnHost(Mat A, PetscInt m, PetscLogDouble entries, PetscBool *host)
{
  PetscInt levels;

  PetscFunctionBegin;
  PetscCall(MatTCCountLevels(A, &levels));
  *host = (PetscBool)(17000.0 + 10.0 * (double)m + 2.0 * entries <= 3200.0 * (double)levels);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are factors of the matrix the host's? */
static PetscErrorCode MatTCFactorOnHost(Mat A, MatFactorType type, PetscBool *host)
{
  const PetscBool    incomplete = (PetscBool)(type == MAT_FACTOR_ILU || type == MAT_FACTOR_ICC);
  Mat_AIJTCCUSPARSE *tc;
  PetscBool          bound;
  PetscInt           m;
  MatInfo            info;

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCall(MatBoundToCPU(A, &bound));
  if (!tc || tc->settings.device_factors) PetscFunctionReturn(PETSC_SUCCESS);
  if (bound) { /* the parent's Cholesky factors solve wrongly then (PETSc 3.26.1) */
    *host = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (m > (incomplete ? MOST_ROWS_INCOMPLETE : MOST_ROWS) || info.nz_used > (incomplete ? MOST_ENTRIES_INCOMPLETE : MOST_ENTRIES)) PetscFunctionReturn(PETSC_SUCCESS);
  *host = PETSC_TRUE;
  if (incomplete) PetscCall(MatTCIncompleteOnHost(A, m, info.nz_used, host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls for a factor of a matrix of the parent's type, ours or not, if nobody names a solver */
static PetscErrorCode MatGetFactor_AIJTCCUSPARSE(Mat A, MatFactorType type, Mat *F)
{
  MatTCHostFactor *functions;
  PetscBool        host, bound;
  PetscInt         t = 0;

  PetscFunctionBegin;
  while (factor_types[t] != type) t++; /* registered for these alone */
  PetscCall(MatTCFactorOnHost(A, type, &host));
  *F = NULL;
  if (host) PetscCall((*hosts_get_factor[t])(A, type, F));
  if (!*F) { /* not the host's, or it declines */
    PetscCall((*parents_get_factor[t])(A, type, F));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(PetscInfo(A, "aijtccusparse: %s factors of this matrix are the host's, %s\n", MatFactorTypes[type], bound ? "to which it is bound" : "which solves with such faster than cuSPARSE does"));
  if (type != MAT_FACTOR_LU && type != MAT_FACTOR_ILU) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&functions));
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, host_factor_name, functions, PetscCtxDestroyDefault));
  PetscCall(MatTCHostFactorReplace(*F, MATOP_LUFACTOR_SYMBOLIC, &functions->lu_symbolic, (PetscErrorCodeFn *)MatLUFactorSymbolic_TCHostFactor));
  PetscCall(MatTCHostFactorReplace(*F, MATOP_ILUFACTOR_SYMBOLIC, &functions->ilu_symbolic, (PetscErrorCodeFn *)MatILUFactorSymbolic_TCHostFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Once in a PETSc session. Who asks for no solver gets the first one that is registered for the very type of the matrix, and MATSOLVERPETSC, which is before MATSOLVERCUSPARSE, has none for the
  parent's: ours. Who asks for one by its name gets it, as MATSOLVERPETSC's function for MATSEQAIJ, a name that the parent's begins with, comes before ours.
*/
PetscErrorCode MatTCFactorRegister(void)
{
  PetscFunctionBegin;
  for (int t = 0; t < NUM_TYPES; t++) {
    PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, factor_types[t], NULL, NULL, &parents_get_factor[t]));
    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, factor_types[t], NULL, NULL, &hosts_get_factor[t]));
    if (parents_get_factor[t] && hosts_get_factor[t]) PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJCUSPARSE, factor_types[t], MatGetFactor_AIJTCCUSPARSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

PetscErrorCode MatTCFactorRegister(void)
{
  return PETSC_SUCCESS;
}

#endif

/*@
  MatAIJTCCUSPARSESetHostFactors - Are factors of a matrix of type `MATAIJTCCUSPARSE` on the GPU computed, and solved with, on the host where that is faster?

  Logically Collective; `host` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- host - `PETSC_FALSE` to leave them to the parent type, which solves with them by cuSPARSE

  Options Database Key:
. -mat_aijtccusparse_host_factors (true|false) - default `true`

  Level: intermediate

  Notes:
  It goes for factors that are asked for without the name of a solver, of sequential matrices and blocks. LU and Cholesky factors are the host's with up to 5000 rows and 50000
  entries, the coarsest grids of multigrid for one; ILU and ICC factors with up to 100000 rows and 1500000 entries if many rows wait for others one after the other, as on grids in two dimensions, by
  a formula of what either takes; all of a matrix that is bound to the CPU. With such the host is 1.1 to 20 times as fast, the way of the vectors to it and back included. The factors are then those of `MATSOLVERPETSC`, as views tell.
  Vectors and dense matrices may be on the GPU. Other matrices keep the parent's factors, for which PETSc has `MatCUSPARSESetUseCPUSolve()`.

  It is looked at when a factor is asked for.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatGetFactor()`, `MATSOLVERCUSPARSE`, `MATSOLVERPETSC`, `MatCUSPARSESetUseCPUSolve()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetHostFactors(Mat A, PetscBool host)
{
  Mat_AIJTCCUSPARSE *tc;
  Mat                blocks[2];
  PetscInt           num;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscValidLogicalCollectiveBool(A, host, 2);
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  tc->settings.device_factors = (PetscBool)!host;
  PetscCall(MatTCGetBlocks(A, &num, blocks)); /* factors of which may be asked for before there is a product */
  for (PetscInt i = 0; i < num; i++) {
    PetscCall(MatTCContextGetIfOurs(blocks[i], &tc));
    if (tc) tc->settings.device_factors = (PetscBool)!host;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
