/*
  The operations of random walks that solve with triangles: sweeps of MatSOR(), and incomplete factors. They work on a copy with a large diagonal, whose rows PETSc takes one by one on both sides: then the bits are the same,
  wherever it is done.
*/
#include "mat_random.h"

/* PETSc asks the option where a factor is made, the matrix elsewhere; a parallel one does not tell its blocks */
static PetscErrorCode TakeRowsByThemselves(const Mat X[])
{
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_no_inode", "true"));
  for (int s = 0; s < NUM_SIDES; s++) {
    Mat D;

    PetscCall(MatGetDiagonalBlock(X[s], &D));
    PetscCall(MatSetOption(D, MAT_USE_INODES, PETSC_FALSE));
    PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY)); /* forgets what was found */
    PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopiesDestroy(Mat X[])
{
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsClearValue(NULL, "-mat_no_inode"));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&X[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyWithDiagonal(Walk *W, Mat X[])
{
  const PetscReal diagonal = PetscDefined(USE_REAL_SINGLE) ? 1.0e3 : 1.0e6;

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatDuplicate(W->A[s], MAT_COPY_VALUES, &X[s]));
    PetscCall(MatSetOption(X[s], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatShift(X[s], diagonal));
  }
  PetscCall(TakeRowsByThemselves(X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of -1 and 2: no zeros, and what is a sum of integers stays exact, whatever the order and the precision */
static PetscErrorCode FillWithSigns(Vec v, uint64_t seed)
{
  PetscScalar *array;
  PetscInt     m;

  PetscFunctionBeginUser;
  PetscCall(MatRandomFill(v, seed));
  PetscCall(VecGetLocalSize(v, &m));
  PetscCall(VecGetArray(v, &array));
  for (PetscInt i = 0; i < m; i++) array[i] = PetscRealPart(array[i]) < 0 ? -1.0 : 2.0;
  PetscCall(VecRestoreArray(v, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other values, or binding ours to the CPU, or not any more; with `patterns` also new entries */
static PetscErrorCode Change(Walk *W, Mat X[], PetscBool patterns)
{
  const PetscInt  what   = MatRandomDraw(W, patterns ? 5 : 4);
  const PetscBool bind   = (PetscBool)MatRandomDraw(W, 2);
  const uint64_t  seed   = MatRandomMix(W->state);

  PetscFunctionBeginUser;
  if (what == 0) PetscCall(MatBindToCPU(X[OURS], bind));
  else if (what == 4) PetscCall(MatRandomAddEntries(W, X, 1 + MatRandomDraw(W, 3)));
  for (int s = 0; s < NUM_SIDES; s++) {
    Vec left;

    if (what == 1) PetscCall(MatScale(X[s], -2.0));
    if (what == 2) PetscCall(MatShift(X[s], 3.0));
    if (what != 3) continue;
    PetscCall(MatCreateVecs(X[s], NULL, &left));
    PetscCall(FillWithSigns(left, seed));
    PetscCall(MatDiagonalScale(X[s], left, NULL));
    PetscCall(VecDestroy(&left));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sweeps(Walk *W)
{
  static const MatSORType types[][3] = {
    {SOR_FORWARD_SWEEP,       SOR_BACKWARD_SWEEP,       SOR_SYMMETRIC_SWEEP      },
    {SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP}
  };
  static const PetscReal omegas[] = {1.0, 1.25, 0.75};
  PetscMPIInt            size;
  Mat                    X[NUM_SIDES];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(CopyWithDiagonal(W, X));
  for (int step = 0; step < 4; step++) {
    const MatSORType type  = types[size > 1][MatRandomDraw(W, 3)] | (MatRandomDraw(W, 2) ? SOR_ZERO_INITIAL_GUESS : 0);
    const PetscReal  omega = omegas[MatRandomDraw(W, 3)];
    const PetscInt   its = size > 1 ? 1 : 1 + MatRandomDraw(W, 2), local_its = 1 + MatRandomDraw(W, 2); /* products of a second one, with numbers that are not integers, have sums of other bits */
    const uint64_t   seed = MatRandomMix(W->state);
    Vec              b[NUM_SIDES], x[NUM_SIDES];

    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatCreateVecs(X[s], &x[s], &b[s]));
      PetscCall(MatRandomFill(b[s], seed));
      PetscCall(MatRandomFill(x[s], MatRandomMix(seed)));
      PetscCall(MatSOR(X[s], b[s], omega, type, 0.0, its, local_its, x[s]));
    }
    PetscCall(MatRandomCompare(W, x[OURS], x[THEIRS]));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(VecDestroy(&b[s]));
      PetscCall(VecDestroy(&x[s]));
    }
    PetscCall(Change(W, X, PETSC_TRUE));
    PetscCall(TakeRowsByThemselves(X)); /* new entries may have made new blocks */
  }
  PetscCall(CopiesDestroy(X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve, both ways, and one with a block of the host or of the matrix's vectors, which has the bits of solves by themselves */
static PetscErrorCode CompareSolves(Walk *W, const Mat D[], const Mat F[])
{
  const PetscInt  columns = 1 + MatRandomDraw(W, 40);
  const PetscBool turned = (PetscBool)MatRandomDraw(W, 2), device = (PetscBool)MatRandomDraw(W, 2);
  const uint64_t  seed = MatRandomMix(W->state);
  PetscInt        m;
  VecType         type;
  Vec             b[NUM_SIDES], x[NUM_SIDES];
  Mat             B, Y, Z;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(D[OURS], &m, NULL));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatCreateVecs(D[s], &x[s], &b[s]));
    PetscCall(MatRandomFill(b[s], seed));
    PetscCall(MatSolve(F[s], b[s], x[s]));
  }
  PetscCall(MatRandomCompare(W, x[OURS], x[THEIRS]));
  PetscCall(MatGetVecType(D[OURS], &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, device ? type : VECSEQ, m, columns, m, columns, -1, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &Y));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &Z));
  PetscCall((turned ? MatMatSolveTranspose : MatMatSolve)(F[OURS], B, Y));
  for (PetscInt j = 0; j < columns; j++) {
    Vec from, to;

    PetscCall(MatDenseGetColumnVecRead(B, j, &from));
    PetscCall(VecCopy(from, b[OURS]));
    PetscCall(MatDenseRestoreColumnVecRead(B, j, &from));
    PetscCall((turned ? MatSolveTranspose : MatSolve)(F[OURS], b[OURS], x[OURS]));
    PetscCall(MatDenseGetColumnVecWrite(Z, j, &to));
    PetscCall(VecCopy(x[OURS], to));
    PetscCall(MatDenseRestoreColumnVecWrite(Z, j, &to));
  }
  PetscCall(MatRandomCompareDense(W, Y, Z));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(VecDestroy(&b[s]));
    PetscCall(VecDestroy(&x[s]));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&Y));
  PetscCall(MatDestroy(&Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the blocks of the processes, by whoever PETSc gives them to, or by ours for sure; numbers anew in between */
static PetscErrorCode Factors(Walk *W)
{
  static const MatOrderingType orderings[] = {MATORDERINGNATURAL, MATORDERINGNATURAL, MATORDERINGRCM, MATORDERINGND, MATORDERINGQMD};
  const MatOrderingType        ordering    = orderings[MatRandomDraw(W, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(orderings))];
  const PetscBool              named       = (PetscBool)MatRandomDraw(W, 2);
  MatFactorInfo                info;
  Mat                          X[NUM_SIDES], D[NUM_SIDES], F[NUM_SIDES];

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = (PetscReal)MatRandomDraw(W, 3);
  info.fill   = 3;
  PetscCall(CopyWithDiagonal(W, X));
  for (int s = 0; s < NUM_SIDES; s++) {
    IS rows, cols;

    PetscCall(MatGetDiagonalBlock(X[s], &D[s]));
    PetscCall(MatGetOrdering(D[s], ordering, &rows, &cols));
    PetscCall(MatGetFactor(D[s], s == THEIRS ? MATSOLVERPETSC : named ? MATSOLVERAIJTCCUSPARSE : NULL, MAT_FACTOR_ILU, &F[s]));
    PetscCall(MatILUFactorSymbolic(F[s], D[s], rows, cols, &info));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&cols));
  }
  for (int step = 0; step < 3; step++) {
    for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatLUFactorNumeric(F[s], D[s], &info));
    PetscCall(CompareSolves(W, D, F));
    PetscCall(Change(W, X, PETSC_FALSE));
    for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatGetDiagonalBlock(X[s], &D[s]));
  }
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&F[s]));
  PetscCall(CopiesDestroy(X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatRandomOperation operations[] = {
  {"MatSOR", Sweeps}, {"incomplete factors", Factors},
};

const MatRandomOperation *MatRandomSolveOperationAt(PetscInt i)
{
  return i < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations) ? &operations[i] : NULL;
}
