/*
  Factors: those of small matrices on the GPU, and incomplete ones of others, are the host's and solve whatever vectors and blocks there are, and wherever the values were
  changed last; ILU(0) and ICC(0) of larger ones, of matrices that do not want the host's, and where rows do not wait for each other, are the GPU's, of ours; others, and all on the host, are the parent's.
*/
#include "mat_util.h"

static char help[] = "Tests factors of MATAIJTCCUSPARSE.\n\n";

enum {
  COLUMNS = 5
};

typedef struct {
  const char   *name;
  MatFactorType type;
  PetscInt      levels;
  const char   *ordering;
} Kind;

static const Kind kinds[] = {
  {"LU",         MAT_FACTOR_LU,       0, MATORDERINGND     },
  {"LU, as is",  MAT_FACTOR_LU,       0, MATORDERINGNATURAL},
  {"ILU(0)",     MAT_FACTOR_ILU,      0, MATORDERINGNATURAL},
  {"ILU(1)",     MAT_FACTOR_ILU,      1, MATORDERINGNATURAL},
  {"ILU(0) RCM", MAT_FACTOR_ILU,      0, MATORDERINGRCM    },
  {"Cholesky",   MAT_FACTOR_CHOLESKY, 0, MATORDERINGND     },
  {"ICC(0)",     MAT_FACTOR_ICC,      0, MATORDERINGNATURAL},
  {"ICC(1)",     MAT_FACTOR_ICC,      1, MATORDERINGNATURAL},
};

/* A matrix whose rows have an entry off the diagonal each, in the other half of their process's: one row at most waits for another */
static PetscErrorCode CreatePairs(PetscInt pairs, MatType type, Mat *A)
{
  PetscInt first;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, 2 * pairs, 2 * pairs, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &first, NULL));
  for (PetscInt i = 0; i < 2 * pairs; i++) {
    PetscCall(MatSetValue(*A, first + i, first + i, 3.0 + (PetscReal)(i % pairs % 5), INSERT_VALUES));
    PetscCall(MatSetValue(*A, first + i, first + (i + pairs) % (2 * pairs), -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A symmetric matrix with a large diagonal of the pattern of a generator, "pairs" as above, and its block of this process: the matrix itself where there is one */
static PetscErrorCode Generate(const char name[], PetscInt size, MatType type, Mat *A, Mat *block)
{
  tc_matrix S;
  PetscBool pairs, nodes;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(name, "pairs", &pairs));
  if (pairs) PetscCall(CreatePairs(size, type, A));
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

static PetscErrorCode Numeric(const Kind *kind, Mat A, Mat F)
{
  MatFactorInfo  info;
  const PetscBool symmetric = (PetscBool)(kind->type == MAT_FACTOR_CHOLESKY || kind->type == MAT_FACTOR_ICC);

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(symmetric ? MatCholeskyFactorNumeric(F, A, &info) : MatLUFactorNumeric(F, A, &info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Factor(const Kind *kind, Mat A, Mat *F)
{
  MatFactorInfo info;
  IS            rows, cols;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = (PetscReal)kind->levels;
  info.fill   = 5;
  PetscCall(MatGetOrdering(A, kind->ordering, &rows, &cols));
  PetscCall(MatGetFactor(A, NULL, kind->type, F));
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

/*
  Every way to solve with F against the same with the factor of a MATSEQAIJ, of vectors and blocks of that kind; the largest difference, relative. Solves with the transpose are left out where the
  parent's on the GPU (PETSc 3.26.1) would have the values before.
*/
static PetscErrorCode Solves(Mat F, Mat expected, Mat numbers, VecType vectors, MatType blocks, PetscBool transposes, PetscReal *worst)
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

/* Is it one that the GPU computes, if the host does not? */
static PetscErrorCode HasPatternOfMatrix(const Kind *kind, PetscBool *has)
{
  PetscBool natural;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(kind->ordering, MATORDERINGNATURAL, &natural));
  *has = (PetscBool)(natural && kind->levels == 0 && (kind->type == MAT_FACTOR_ILU || kind->type == MAT_FACTOR_ICC));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whose factors of a matrix are the host's? */
typedef struct {
  PetscBool complete, same_pattern, filled; /* those of ILU(0) and ICC(0), and other incomplete ones */
} HostFactors;

/*
  A matrix whose factors are the host's, or are not: then solving in another order is what they may differ by, but for ILU(0), whose bits are the host's where that has no nodes; `bind`: bound to the CPU. On the GPU the
  former, and ours, give the same numbers wherever vectors are, those of the host included, which the parent's do not take.
*/
static PetscErrorCode TestMatrix(const char name[], PetscInt size, const char what[], HostFactors hosts, PetscBool bind)
{
  const PetscBool slow      = (PetscBool)(PetscDefined(USE_REAL_SINGLE) && strcmp(name, "stencil7") == 0 && size > 16); /* LU as is, half a minute: its fill goes down to denormal numbers; "pairs" have it with many rows */
  const PetscReal tolerance = 1000 * PETSC_MACHINE_EPSILON; /* the condition is below 10, so that two orders may differ by some 30 m of it */
  Mat             ours, plain, block, plain_block, numbers;
  PetscBool       cuda, block_is_ours, nodes;
  PetscInt        m;
  PetscRandom     random;

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(Generate(name, size, MATAIJ, &plain, &plain_block));
  PetscCall(PetscStrcmp(name, "elasticity", &nodes));
  PetscCall(MatIsAIJTCCUSPARSE(block, &block_is_ours));
  PetscCall(MatTestFact(block_is_ours, "%s, %s: the block of a process is ours before there is a product", name, what));
  if (bind) PetscCall(MatBindToCPU(ours, PETSC_TRUE));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatGetSize(block, &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(MatSetRandom(numbers, random));
  PetscCall(PetscRandomDestroy(&random));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kinds); k++) {
    Mat               F, expected;
    PetscErrorCodeFn *solve_block;
    PetscReal         host[2] = {0, 0}, device[2] = {0, 0}, bits = 0;
    const PetscBool   incomplete = (PetscBool)(kinds[k].type == MAT_FACTOR_ILU || kinds[k].type == MAT_FACTOR_ICC);
    PetscBool         so = PETSC_TRUE, right_solver, same_pattern, small, own;
    MatSolverType     solver;

    if (slow && kinds[k].type == MAT_FACTOR_LU && strcmp(kinds[k].ordering, MATORDERINGNATURAL) == 0) continue;
    PetscCall(HasPatternOfMatrix(&kinds[k], &same_pattern));
    small = same_pattern ? hosts.same_pattern : incomplete ? hosts.filled : hosts.complete;
    own   = (PetscBool)(cuda && same_pattern && !small);
    PetscCall(Factor(&kinds[k], block, &F));
    PetscCall(Factor(&kinds[k], plain_block, &expected));
    for (int again = 0; again < 2; again++) { /* the second time with values that were changed where the matrix is */
      if (again) {
        PetscCall(MatScale(ours, 1.5));
        PetscCall(MatScale(plain, 1.5));
        PetscCall(Numeric(&kinds[k], block, F));
        PetscCall(Numeric(&kinds[k], plain_block, expected));
      }
      if (!cuda || small || own) PetscCall(Solves(F, expected, numbers, VECSEQ, MATSEQDENSE, PETSC_TRUE, &host[again]));
      if (cuda) PetscCall(Solves(F, expected, numbers, VECSEQCUDA, MATSEQDENSECUDA, (PetscBool)(small || own || !again), &device[again]));
      if (cuda && (small || own) && device[again] != host[again]) so = PETSC_FALSE;
      if (own && !nodes && kinds[k].type == MAT_FACTOR_ILU) {
        PetscCall(Solves(F, expected, numbers, VECSEQCUDA, MATSEQDENSECUDA, PETSC_FALSE, &bits));
        if (bits != 0) so = PETSC_FALSE;
      }
      if (host[again] > tolerance || device[again] > tolerance) so = PETSC_FALSE;
    }
    PetscCall(MatGetOperation(F, MATOP_MAT_SOLVE, &solve_block));
    if (cuda && kinds[k].type == MAT_FACTOR_LU && (solve_block != NULL) != small) so = PETSC_FALSE;
    PetscCall(MatFactorGetSolverType(F, &solver));
    PetscCall(PetscStrcmp(solver, own ? MATSOLVERAIJTCCUSPARSE : cuda && !small ? MATSOLVERCUSPARSE : MATSOLVERPETSC, &right_solver));
    if (!right_solver) so = PETSC_FALSE;
    PetscCall(MatTestFact(so, "%s, %s: %s", name, what, kinds[k].name));
    if (!so) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  vectors of the host %g, with new values %g, of the GPU %g, %g; to the bits of the host %g; factors of %s\n", (double)host[0], (double)host[1], (double)device[0], (double)device[1], (double)bits, solver));
    PetscCall(MatDestroy(&F));
    PetscCall(MatDestroy(&expected));
  }
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who names a solver gets that one */
static PetscErrorCode TestByName(const char name[], PetscInt size, MatFactorType type, MatSolverType asked)
{
  Mat           ours, block, F;
  PetscBool     cuda, same, host_means;
  MatSolverType solver;

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(PetscStrcmp(asked, MATSOLVERPETSC, &same));
  PetscCall(PetscStrcmp(asked, MATSOLVERAIJTCCUSPARSE, &host_means));
  if (cuda || same || host_means) { /* the host has no other, but knows the name of ours */
    PetscCall(MatGetFactor(block, asked, type, &F));
    PetscCall(MatFactorGetSolverType(F, &solver));
    PetscCall(PetscStrcmp(solver, host_means && !cuda ? MATSOLVERPETSC : asked, &same));
    PetscCall(MatTestFact(same, "%s: factor of %s, asked for by name: of %s", name, asked, solver));
    PetscCall(MatDestroy(&F));
  }
  PetscCall(MatDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Pivots that are too small: what PETSc's host code does about them, error or shift, and none where values are good again. The GPU shifts single pivots itself; for all else the host takes over */
static PetscErrorCode TestPivots(MatFactorType type, MatFactorShiftType shift, PetscReal first)
{
  const Kind     kind      = {"", type, 0, MATORDERINGNATURAL};
  const PetscBool symmetric = (PetscBool)(type == MAT_FACTOR_ICC);
  Mat            matrix[2], block[2], F[2], numbers;
  MatFactorInfo  info;
  PetscReal      difference[2] = {0, 0};
  PetscInt       row, m;
  PetscBool      so = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.shifttype   = (PetscReal)shift;
  info.shiftamount = 0.5;
  info.zeropivot   = 1e-6;
  for (int i = 0; i < 2; i++) {
    PetscCall(Generate("stencil7", 6, i ? MATAIJ : MATAIJTCCUSPARSE, &matrix[i], &block[i]));
    PetscCall(Factor(&kind, block[i], &F[i]));
    PetscCall(MatGetOwnershipRange(matrix[i], &row, NULL));
    PetscCall(MatSetValue(matrix[i], row, row, first, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(matrix[i], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix[i], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatGetSize(block[0], &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(MatSetRandom(numbers, NULL));
  for (int again = 0; again < 2; again++) {
    MatFactorError error[2];

    for (int i = 0; i < 2; i++) {
      if (again) PetscCall(MatShift(matrix[i], 8.0));
      PetscCall(MatFactorClearError(F[i]));
      PetscCall(symmetric ? MatCholeskyFactorNumeric(F[i], block[i], &info) : MatLUFactorNumeric(F[i], block[i], &info));
      PetscCall(MatFactorGetError(F[i], &error[i]));
    }
    if (error[0] != error[1] || (again && error[1])) so = PETSC_FALSE;
    if (!error[0] && !error[1]) PetscCall(Solves(F[0], F[1], numbers, VECSEQ, MATSEQDENSE, PETSC_FALSE, &difference[again]));
  }
  if (symmetric ? difference[0] > 1000 * PETSC_MACHINE_EPSILON || difference[1] > 1000 * PETSC_MACHINE_EPSILON : difference[0] != 0 || difference[1] != 0) so = PETSC_FALSE;
  PetscCall(MatTestFact(so, "%s with a pivot of %g, shift %s", MatFactorTypes[type], (double)first, MatFactorShiftTypes[shift]));
  if (!so) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  solutions differ by %g, with good values by %g\n", (double)difference[0], (double)difference[1]));
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDestroy(&F[i]));
    PetscCall(MatDestroy(&matrix[i]));
  }
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows and columns that were made those of the identity, as on boundaries: what is left of them in the pattern is zeros, and where PETSc takes entries out, the pattern is not symmetric */
static PetscErrorCode TestZeroed(MatFactorType type, PetscBool keep)
{
  const Kind kind = {"", type, 0, MATORDERINGNATURAL};
  Mat        matrix[2], block[2], F[2], numbers;
  PetscReal  difference;
  PetscInt   rows[3], first, m;

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(Generate("stencil7", 6, i ? MATAIJ : MATAIJTCCUSPARSE, &matrix[i], &block[i]));
    PetscCall(MatGetOwnershipRange(matrix[i], &first, NULL));
    for (PetscInt r = 0; r < 3; r++) rows[r] = first + 2 * r + 1;
    PetscCall(MatSetOption(matrix[i], MAT_KEEP_NONZERO_PATTERN, keep));
    PetscCall(MatZeroRowsColumns(matrix[i], 3, rows, 2.5, NULL, NULL));
    PetscCall(Factor(&kind, block[i], &F[i]));
  }
  PetscCall(MatGetSize(block[0], &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(MatSetRandom(numbers, NULL));
  PetscCall(Solves(F[0], F[1], numbers, VECSEQ, MATSEQDENSE, PETSC_TRUE, &difference));
  PetscCall(MatTestFact(difference <= 1000 * PETSC_MACHINE_EPSILON, "%s with rows and columns of the identity%s: solutions differ by %g", MatFactorTypes[type], keep ? ", all entries kept" : "", (double)difference));
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDestroy(&F[i]));
    PetscCall(MatDestroy(&matrix[i]));
  }
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  const HostFactors all = {PETSC_TRUE, PETSC_TRUE, PETSC_TRUE}, none = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE}, complete = {PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}, incomplete = {PETSC_FALSE, PETSC_TRUE, PETSC_TRUE}, filled = {PETSC_FALSE, PETSC_FALSE, PETSC_TRUE};
  PetscMPIInt size;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestMatrix("stencil7", 6, "small", all, PETSC_FALSE));
  PetscCall(TestMatrix("elasticity", 4, "small", all, PETSC_FALSE));
  PetscCall(TestMatrix("pairs", 300, "rows that do not wait", complete, PETSC_FALSE));
  PetscCall(TestMatrix("stencil7", 6, "bound to the CPU", all, PETSC_TRUE));
  if (size == 1) { /* else blocks of the former are small, too */
    PetscCall(TestMatrix("stencil7", 18, "many rows", filled, PETSC_FALSE));
    PetscCall(TestMatrix("elasticity", 8, "many entries", incomplete, PETSC_FALSE));
    PetscCall(TestMatrix("pairs", 2600, "many rows that do not wait", none, PETSC_FALSE));
  }
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_LU, MATSOLVERCUSPARSE));
  PetscCall(TestByName("pairs", 300, MAT_FACTOR_ILU, MATSOLVERPETSC));
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_ILU, MATSOLVERAIJTCCUSPARSE));
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_ICC, MATSOLVERAIJTCCUSPARSE));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_host_factors", "false"));
  PetscCall(TestMatrix("stencil7", 6, "small, but the GPU's", none, PETSC_FALSE));
  PetscCall(TestMatrix("elasticity", 4, "small, but the GPU's", none, PETSC_FALSE));
  for (MatFactorShiftType shift = MAT_SHIFT_NONE; shift <= MAT_SHIFT_INBLOCKS; shift++) {
    PetscCall(TestPivots(MAT_FACTOR_ILU, shift, 0.0));
    PetscCall(TestPivots(MAT_FACTOR_ILU, shift, -3.0));
    PetscCall(TestPivots(MAT_FACTOR_ICC, shift, 0.0));
    PetscCall(TestPivots(MAT_FACTOR_ICC, shift, -3.0));
  }
  for (int keep = 0; keep < 2; keep++) {
    PetscCall(TestZeroed(MAT_FACTOR_ILU, (PetscBool)keep));
    PetscCall(TestZeroed(MAT_FACTOR_ICC, (PetscBool)keep));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtccusparse_host_factors"));
  return MatTestEnd();
}
