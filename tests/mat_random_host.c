/*
  Operations of random walks that PETSc does on the host whatever the GPU has, or by which it comes to do something else with a matrix than it seems. Most work on copies.
*/
#include "mat_random.h"
#include <unistd.h>

static PetscErrorCode Copy(const Walk *W, Mat X[])
{
  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDuplicate(W->A[s], MAT_COPY_VALUES, &X[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Mat X[])
{
  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&X[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Both(Walk *W, const Mat X[])
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomMultiply(W, X, PRODUCT, PETSC_FALSE));
  PetscCall(MatRandomMultiply(W, X, SUM, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatLoad() into matrices whose newest values are the GPU's, assembled or preallocated anew */
static PetscErrorCode Load(Walk *W)
{
  char        name[PETSC_MAX_PATH_LEN];
  PetscViewer viewer;
  Mat         X[NUM_SIDES];
  long        id = (long)getpid();

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Bcast(&id, 1, MPI_LONG, 0, PETSC_COMM_WORLD));
  PetscCall(PetscGetTmp(PETSC_COMM_WORLD, name, sizeof(name)));
  PetscCall(PetscSNPrintf(name + strlen(name), sizeof(name) - strlen(name), "/mat_random_%ld", id));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(MatView(W->A[OURS], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  for (int anew = 0; anew < 2; anew++) {
    PetscCall(Copy(W, X));
    PetscCall(Both(W, X));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatScale(X[s], 3.0));
      if (anew) PetscCall(MatXAIJSetPreallocation(X[s], 1, NULL, NULL, NULL, NULL));
      PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
      PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
      PetscCall(MatLoad(X[s], viewer));
      PetscCall(PetscViewerDestroy(&viewer));
    }
    PetscCall(Both(W, X));
    PetscCall(Destroy(X));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  if (PetscGlobalRank == 0) (void)unlink(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every second row and column for each process on its own, then again with other values */
static PetscErrorCode Submatrices(Walk *W)
{
  PetscErrorCode (*const functions[])(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]) = {MatCreateSubMatrices, MatCreateSubMatricesMPI};
  Mat        *S[NUM_SIDES], first[NUM_SIDES];
  IS          rows;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size)); /* sequential matrices have the first function alone */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (W->n + 1) / 2, 0, 2, &rows));
  for (int f = 0; f < (size > 1 ? 2 : 1); f++) {
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(functions[f](W->A[s], 1, &rows, &rows, MAT_INITIAL_MATRIX, &S[s]));
      first[s] = S[s][0];
    }
    PetscCall(Both(W, first));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatScale(W->A[s], -1.0));
      PetscCall(MatScale(first[s], 3.0));
      PetscCall(functions[f](W->A[s], 1, &rows, &rows, MAT_REUSE_MATRIX, &S[s]));
      first[s] = S[s][0];
    }
    PetscCall(Both(W, first));
    for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroySubMatrices(1, &S[s]));
  }
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Random rows become zero, the same ones for the same seed */
static PetscErrorCode ZeroSome(Mat A, uint64_t seed)
{
  Vec          left;
  PetscScalar *factors;
  PetscInt     begin, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, NULL, &left));
  PetscCall(VecGetOwnershipRange(left, &begin, &end));
  PetscCall(VecGetArrayWrite(left, &factors));
  for (PetscInt i = begin; i < end; i++) factors[i - begin] = (PetscScalar)(MatRandomMix(seed + (uint64_t)i) % 2);
  PetscCall(VecRestoreArrayWrite(left, &factors));
  PetscCall(MatDiagonalScale(A, left, NULL));
  PetscCall(VecDestroy(&left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeros leave the pattern, if there are any, then those of rows that became zero */
static PetscErrorCode EliminateZeros(Walk *W)
{
  const uint64_t seed = MatRandomMix(W->state);
  Mat            X[NUM_SIDES];

  PetscFunctionBeginUser;
  PetscCall(Copy(W, X));
  PetscCall(Both(W, X));
  for (int some = 0; some < 2; some++) {
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatScale(X[s], -1.0));
      if (some) PetscCall(ZeroSome(X[s], seed));
      PetscCall(MatEliminateZeros(X[s], PETSC_FALSE));
    }
    PetscCall(Both(W, X));
  }
  PetscCall(Destroy(X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += f X with few rows that have entries, those of X being all or some of those of Y */
static PetscErrorCode AddSubset(Walk *W)
{
  const PetscScalar factor = MatRandomNumber(W);
  const uint64_t    seed   = MatRandomMix(W->state);
  Mat               X[NUM_SIDES], Y[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &Y[s]));
    PetscCall(MatSetSizes(Y[s], PETSC_DECIDE, PETSC_DECIDE, W->n, W->n));
    PetscCall(MatSetType(Y[s], s == OURS ? MATAIJTCCUSPARSE : MATAIJ));
    PetscCall(MatSetUp(Y[s]));
  }
  PetscCall(MatRandomAddEntries(W, Y, 1 + W->n / 8));
  PetscCall(Both(W, Y));
  for (int some = 0; some < 2; some++) {
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatDuplicate(Y[s], MAT_COPY_VALUES, &X[s]));
      if (some) {
        PetscCall(ZeroSome(X[s], seed));
        PetscCall(MatEliminateZeros(X[s], PETSC_FALSE));
      }
      PetscCall(MatAXPY(Y[s], factor, X[s], SUBSET_NONZERO_PATTERN));
    }
    PetscCall(Both(W, Y));
    PetscCall(Destroy(X));
  }
  PetscCall(Destroy(Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries as of a new matrix. On the GPU a parallel matrix stays there. */
static PetscErrorCode ResetHash(Walk *W)
{
  Mat       X[NUM_SIDES], block;
  PetscBool before, after;

  PetscFunctionBeginUser;
  PetscCall(MatRandomCreate(W, X));
  PetscCall(Both(W, X));
  PetscCall(MatTestIsCUDA(X[OURS], &before));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatResetHash(X[s]));
  PetscCall(MatRandomAddEntries(W, X, 2 * W->n));
  PetscCall(Both(W, X));
  PetscCall(MatTestBlock(X[OURS], &block));
  PetscCall(MatTestIsCUDA(block, &after));
  W->same = (PetscBool)(W->same && before == after);
  PetscCall(Destroy(X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of sums that are integers */
static PetscErrorCode Norms(Walk *W)
{
  static const NormType types[] = {NORM_1, NORM_INFINITY};

  PetscFunctionBeginUser;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(types); i++) {
    PetscReal norm[NUM_SIDES];

    for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatNorm(W->A[s], types[i], &norm[s]));
    W->same = (PetscBool)(W->same && norm[OURS] == norm[THEIRS]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A A B, of which PETSc makes two products; afterwards A is still what it was */
static PetscErrorCode Three(Walk *W)
{
  Mat X[NUM_SIDES], C[NUM_SIDES], B;

  PetscFunctionBeginUser;
  PetscCall(MatRandomCreate(W, X));
  PetscCall(MatRandomCreateDense(W, X[OURS], 1 + MatRandomDraw(W, 6), 3, &B));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatMatMatMult(X[s], X[s], B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C[s]));
  PetscCall(MatRandomCompareDense(W, C[OURS], C[THEIRS]));
  PetscCall(Both(W, X));
  PetscCall(Destroy(C));
  PetscCall(Destroy(X));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^T B and A B^T of one process with a B of the GPU if there is one, A bound to the CPU or not */
static PetscErrorCode DenseOfDevice(Walk *W)
{
  PetscErrorCode (*const products[])(Mat, Mat, MatReuse, PetscReal, Mat *) = {MatTransposeMatMult, MatMatTransposeMult};
  Mat         B[NUM_SIDES], C[NUM_SIDES];
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestHasCUDA(&cuda));
  for (int turned = 0; turned < 2; turned++) {
    PetscCall(MatRandomCreateDense(W, W->A[OURS], 1 + MatRandomDraw(W, 6), 3, &B[THEIRS]));
    if (turned) PetscCall(MatTranspose(B[THEIRS], MAT_INPLACE_MATRIX, &B[THEIRS]));
    PetscCall(MatConvert(B[THEIRS], cuda ? MATDENSECUDA : MATDENSE, MAT_INITIAL_MATRIX, &B[OURS]));
    for (int s = 0; s < NUM_SIDES; s++) PetscCall(products[turned](W->A[s], B[s], MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C[s]));
    PetscCall(MatRandomCompareDense(W, C[OURS], C[THEIRS]));
    PetscCall(Destroy(C));
    PetscCall(Destroy(B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries by coordinates, into a matrix that is bound to the CPU when these are given, when values are, or both, then into a copy */
static PetscErrorCode Coordinates(Walk *W)
{
  enum {
    MOST = 40
  };
  const PetscInt num = 1 + MatRandomDraw(W, MOST);

  PetscFunctionBeginUser;
  for (int when = 0; when < 4; when++) {
    Mat         X[NUM_SIDES], Y[NUM_SIDES];
    PetscInt    rows[MOST], cols[MOST];
    PetscScalar values[MOST];

    for (PetscInt k = 0; k < num; k++) {
      rows[k]   = MatRandomDraw(W, W->n);
      cols[k]   = MatRandomDraw(W, W->n);
      values[k] = MatRandomNumber(W);
    }
    PetscCall(MatRandomCreate(W, X));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscInt i[MOST], j[MOST];

      PetscCall(PetscArraycpy(i, rows, num));
      PetscCall(PetscArraycpy(j, cols, num));
      PetscCall(MatBindToCPU(X[s], (PetscBool)(when & 1)));
      PetscCall(MatSetPreallocationCOO(X[s], num, i, j));
      PetscCall(MatBindToCPU(X[s], (PetscBool)(when >> 1)));
      PetscCall(MatSetValuesCOO(X[s], values, INSERT_VALUES));
    }
    PetscCall(Both(W, X));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatDuplicate(X[s], MAT_COPY_VALUES, &Y[s]));
      PetscCall(MatBindToCPU(Y[s], (PetscBool)(when & 1)));
      PetscCall(MatSetValuesCOO(Y[s], values, ADD_VALUES));
    }
    PetscCall(Both(W, Y));
    PetscCall(Destroy(Y));
    PetscCall(Destroy(X));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc has functions for that convert it to MATAIJ, and none for the GPU: from each side's other one to what that side is, then again, in place and into what there is, with other values */
static PetscErrorCode FromOthers(Walk *W, Mat other[], PetscBool reuse)
{
  const char *const types[NUM_SIDES] = {[OURS] = MATAIJTCCUSPARSE, [THEIRS] = MATAIJ};
  Mat               X[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatConvert(other[s], types[s], MAT_INITIAL_MATRIX, &X[s]));
  PetscCall(Both(W, X));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatScale(other[s], -1.0));
    if (reuse) PetscCall(MatConvert(other[s], types[s], MAT_REUSE_MATRIX, &X[s]));
    PetscCall(MatConvert(other[s], types[s], MAT_INPLACE_MATRIX, &other[s]));
  }
  PetscCall(Both(W, other));
  if (reuse) PetscCall(Both(W, X));
  PetscCall(Destroy(X));
  PetscCall(Destroy(other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Conversions(Walk *W)
{
  static const char *const types[] = {MATBAIJ, MATDENSE, MATSBAIJ};
  Mat                      X[NUM_SIDES];

  PetscFunctionBeginUser;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(types); i++) {
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscInt begin, end;

      PetscCall(MatCreate(PETSC_COMM_WORLD, &X[s]));
      PetscCall(MatSetSizes(X[s], PETSC_DECIDE, PETSC_DECIDE, W->n, W->n));
      PetscCall(MatSetType(X[s], types[i]));
      PetscCall(MatSetUp(X[s]));
      PetscCall(MatGetOwnershipRange(X[s], &begin, &end));
      for (PetscInt row = begin; row < end; row++) {
        PetscCall(MatSetValue(X[s], row, row, (PetscScalar)(1 + row % 5), INSERT_VALUES));
        if (row + 2 < W->n) PetscCall(MatSetValue(X[s], row, row + 2, 2.0, INSERT_VALUES));
      }
      PetscCall(MatAssemblyBegin(X[s], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(X[s], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(FromOthers(W, X, (PetscBool)(i == 0)));
  }
  for (int s = 0; s < NUM_SIDES; s++) {
    Mat blocks[] = {W->A[s], NULL, W->A[s], W->A[s]};

    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, blocks, &X[s]));
  }
  PetscCall(FromOthers(W, X, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatRandomOperation operations[] = {
  {"MatLoad", Load}, {"submatrices of each process", Submatrices}, {"MatEliminateZeros", EliminateZeros}, {"MatAXPY of a subset", AddSubset}, {"MatResetHash", ResetHash}, {"norms", Norms}, {"A A B", Three},
  {"A^T B and A B^T, B of the GPU", DenseOfDevice}, {"entries by coordinates, bound or not", Coordinates}, {"conversion from other types", Conversions},
};

const MatRandomOperation *MatRandomHostOperationAt(PetscInt i)
{
  const PetscInt num = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations);

  return i < num ? &operations[i] : MatRandomSolveOperationAt(i - num);
}
