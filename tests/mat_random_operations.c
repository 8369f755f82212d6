/*
  The operations of random walks. Each does the same to both sides, and compares what comes out.
*/
#include "mat_random.h"

static PetscErrorCode Vectors(Walk *W)
{
  const Form form = (Form)MatRandomDraw(W, NUM_FORMS);

  PetscFunctionBeginUser;
  PetscCall(MatRandomMultiply(W, W->A, form, (PetscBool)(form != RESIDUAL && MatRandomDraw(W, 2))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of an earlier pattern can be used again by one process only: PETSc's own ones of a parallel matrix keep what they send to whom, on the GPU those of a sequential one its rows */
PetscErrorCode MatRandomForgetProducts(Walk *W, PetscBool same_matrix)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (same_matrix && size == 1 && !W->petsc_multiplies) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDestroy(&W->product));
  PetscCall(MatDestroy(&W->transposed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomCreateDense(Walk *W, Mat like, PetscInt columns, PetscInt most, Mat *B)
{
  const uint64_t seed = MatRandomMix(W->state);
  PetscScalar   *b;
  PetscInt       m, begin, lda;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(like, &m, NULL));
  PetscCall(MatGetOwnershipRange(like, &begin, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, m, PETSC_DECIDE, W->n, columns, NULL, B));
  PetscCall(MatDenseGetLDA(*B, &lda));
  PetscCall(MatDenseGetArrayWrite(*B, &b));
  for (PetscInt j = 0; j < columns; j++) {
    for (PetscInt i = 0; i < m; i++) b[i + j * lda] = (PetscScalar)((PetscInt)(MatRandomMix(seed + (uint64_t)((begin + i) * columns + j)) % (uint64_t)(2 * most + 1)) - most);
  }
  PetscCall(MatDenseRestoreArrayWrite(*B, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A B or A^T B, new or into what is there */
static PetscErrorCode MultiplyBlock(Walk *W, PetscBool turned)
{
  PetscErrorCode (*const multiply)(Mat, Mat, MatReuse, PetscReal, Mat *) = turned ? MatTransposeMatMult : MatMatMult;
  Mat *const kept = turned ? &W->transposed : &W->product;
  Mat        theirs;

  PetscFunctionBeginUser;
  if (!W->product && !W->transposed) {
    PetscCall(MatDestroy(&W->B));
    PetscCall(MatRandomCreateDense(W, W->A[OURS], 1 + MatRandomDraw(W, 20), 8, &W->B));
  }
  PetscCall(multiply(W->A[OURS], W->B, *kept ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, kept));
  PetscCall(multiply(W->A[THEIRS], W->B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &theirs));
  PetscCall(MatRandomCompareDense(W, *kept, theirs));
  PetscCall(MatDestroy(&theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseProduct(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MultiplyBlock(W, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseTransposedProduct(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MultiplyBlock(W, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A A, then again with other values */
static PetscErrorCode SparseProduct(Walk *W)
{
  Mat C[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatMatMult(W->A[s], W->A[s], MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C[s]));
  PetscCall(MatRandomMultiply(W, C, PRODUCT, PETSC_FALSE));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatScale(W->A[s], -1.0));
    PetscCall(MatMatMult(W->A[s], W->A[s], MAT_REUSE_MATRIX, PETSC_DETERMINE, &C[s]));
  }
  PetscCall(MatRandomMultiply(W, C, PRODUCT, PETSC_TRUE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&C[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomAddEntries(Walk *W, const Mat A[], PetscInt rows)
{
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatSetOption(A[s], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt k = 0; k < rows; k++) {
    PetscInt    row = MatRandomDraw(W, W->n), column[5];
    PetscScalar value[5];

    for (int j = 0; j < 5; j++) {
      column[j] = MatRandomDraw(W, 4) ? (row + MatRandomDraw(W, 9) + W->n - PetscMin(4, W->n)) % W->n : MatRandomDraw(W, W->n);
      value[j]  = MatRandomNumber(W);
    }
    for (int s = 0; s < NUM_SIDES && k % size == rank; s++) PetscCall(MatSetValues(A[s], 1, &row, 5, column, value, ADD_VALUES));
  }
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatAssemblyBegin(A[s], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[s], MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On several processes with a whole diagonal: blocks of PETSc's parallel matrices do not let it be put in later */
PetscErrorCode MatRandomCreate(Walk *W, Mat A[])
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A[s]));
    PetscCall(MatSetSizes(A[s], PETSC_DECIDE, PETSC_DECIDE, W->n, W->n));
    PetscCall(MatSetType(A[s], s == OURS ? MATAIJTCCUSPARSE : MATAIJ));
    PetscCall(MatSetUp(A[s]));
  }
  PetscCall(MatRandomAddEntries(W, A, 1 + MatRandomDraw(W, 3 * W->n)));
  for (int s = 0; s < NUM_SIDES && size > 1; s++) PetscCall(MatShift(A[s], 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MoreEntries(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  PetscCall(MatRandomAddEntries(W, W->A, 1 + MatRandomDraw(W, 5)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomNewEntries(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatZeroEntries(W->A[s]));
  PetscCall(MatRandomAddEntries(W, W->A, 2 * W->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Walk *W)
{
  const PetscScalar factor = MatRandomNumber(W);

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatScale(W->A[s], factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shift(Walk *W)
{
  const PetscScalar by = MatRandomNumber(W);

  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatShift(W->A[s], by));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By rows, by columns or both; or a new diagonal, put or added */
static PetscErrorCode Diagonals(Walk *W)
{
  const PetscInt what = MatRandomDraw(W, 5);
  const uint64_t seed = MatRandomMix(W->state);

  PetscFunctionBeginUser;
  if (what > 2) PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  for (int s = 0; s < NUM_SIDES; s++) {
    Vec left, right;

    PetscCall(MatCreateVecs(W->A[s], &right, &left));
    PetscCall(MatRandomFill(left, seed));
    PetscCall(MatRandomFill(right, MatRandomMix(seed)));
    if (what > 2) PetscCall(MatDiagonalSet(W->A[s], left, what == 3 ? INSERT_VALUES : ADD_VALUES));
    else PetscCall(MatDiagonalScale(W->A[s], what == 0 ? NULL : left, what == 1 ? NULL : right));
    PetscCall(VecDestroy(&left));
    PetscCall(VecDestroy(&right));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRows(Walk *W)
{
  const PetscBool columns = (PetscBool)MatRandomDraw(W, 2);
  PetscInt        row = MatRandomDraw(W, W->n), begin, end;

  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(W->A[OURS], &begin, &end));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall((columns ? MatZeroRowsColumns : MatZeroRows)(W->A[s], row >= begin && row < end ? 1 : 0, &row, 3.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A += f X or A = f A + X, X of the same pattern or of another one */
static PetscErrorCode AddMatrix(Walk *W)
{
  const PetscBool   same = (PetscBool)MatRandomDraw(W, 2), other_way = (PetscBool)MatRandomDraw(W, 2);
  const PetscScalar factor = MatRandomNumber(W);
  Mat               X[NUM_SIDES];

  PetscFunctionBeginUser;
  if (!same) {
    PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
    PetscCall(MatRandomCreate(W, X));
  }
  for (int s = 0; s < NUM_SIDES; s++) {
    if (same) PetscCall(MatDuplicate(W->A[s], MAT_COPY_VALUES, &X[s]));
    PetscCall((other_way ? MatAYPX : MatAXPY)(W->A[s], factor, X[s], same ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&X[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Goes on with a copy */
static PetscErrorCode Duplicate(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_FALSE));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatDestroy(&W->earlier[s]));
    W->earlier[s] = W->A[s];
    PetscCall(MatDuplicate(W->earlier[s], MAT_COPY_VALUES, &W->A[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyEarlier(Walk *W)
{
  PetscFunctionBeginUser;
  if (!W->earlier[OURS]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatRandomForgetProducts(W, PETSC_TRUE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatCopy(W->earlier[s], W->A[s], DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_FALSE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatTranspose(W->A[s], MAT_INPLACE_MATRIX, &W->A[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertAndBack(Walk *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatRandomForgetProducts(W, PETSC_FALSE));
  PetscCall(MatConvert(W->A[OURS], MATAIJ, MAT_INPLACE_MATRIX, &W->A[OURS]));
  PetscCall(MatConvert(W->A[OURS], MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &W->A[OURS]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bind(Walk *W)
{
  PetscFunctionBeginUser;
  if (W->petsc_multiplies) PetscCall(MatRandomForgetProducts(W, PETSC_TRUE)); /* which PETSc does not compute again then, and says so */
  PetscCall(MatBindToCPU(W->A[OURS], (PetscBool)MatRandomDraw(W, 2)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was made of the matrix is made once more with other values, bound to the CPU or not */
static PetscErrorCode MakeAgain(Walk *W, IS rows, Mat S[NUM_SIDES])
{
  PetscFunctionBeginUser;
  for (int again = 0; again < 3; again++) {
    if (MatRandomDraw(W, 3) == 0) PetscCall(MatBindToCPU(S[OURS], (PetscBool)MatRandomDraw(W, 2)));
    for (int s = 0; s < NUM_SIDES; s++) {
      PetscCall(MatScale(W->A[s], -1.0));
      PetscCall(rows ? MatCreateSubMatrix(W->A[s], rows, rows, MAT_REUSE_MATRIX, &S[s]) : MatTranspose(W->A[s], MAT_REUSE_MATRIX, &S[s]));
    }
    PetscCall(MatRandomMultiply(W, S, SUM, PETSC_FALSE));
  }
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&S[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every second row and column of each process, then again */
static PetscErrorCode Submatrix(Walk *W)
{
  Mat      S[NUM_SIDES];
  PetscInt begin, end;
  IS       rows;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(W->A[OURS], &begin, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - begin + 1) / 2, begin, 2, &rows));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatCreateSubMatrix(W->A[s], rows, rows, MAT_INITIAL_MATRIX, &S[s]));
  PetscCall(MatRandomMultiply(W, S, PRODUCT, PETSC_FALSE));
  PetscCall(MakeAgain(W, rows, S));
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeApart(Walk *W)
{
  Mat S[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatTranspose(W->A[s], MAT_INITIAL_MATRIX, &S[s]));
  PetscCall(MatRandomMultiply(W, S, PRODUCT, PETSC_FALSE));
  PetscCall(MakeAgain(W, NULL, S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StoreAndRetrieve(Walk *W)
{
  Mat X[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatDuplicate(W->A[s], MAT_COPY_VALUES, &X[s]));
    PetscCall(MatSetOption(X[s], MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatStoreValues(X[s]));
    PetscCall(MatScale(X[s], 2.0));
  }
  PetscCall(MatRandomMultiply(W, X, PRODUCT, PETSC_FALSE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatRetrieveValues(X[s]));
  PetscCall(MatRandomMultiply(W, X, PRODUCT, PETSC_FALSE));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatDestroy(&X[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatRandomOperation operations[] = {
  {"product with a vector", Vectors}, {"A B", DenseProduct}, {"A^T B", DenseTransposedProduct}, {"A A", SparseProduct}, {"entries added", MoreEntries}, {"new entries", MatRandomNewEntries}, {"MatScale", Scale}, {"MatShift", Shift},
  {"diagonals", Diagonals}, {"rows of zeros", ZeroRows}, {"MatAXPY or MatAYPX", AddMatrix}, {"MatDuplicate", Duplicate}, {"MatCopy", CopyEarlier}, {"MatTranspose", Transpose}, {"conversion and back", ConvertAndBack},
  {"MatBindToCPU", Bind}, {"submatrix", Submatrix}, {"transpose apart", TransposeApart}, {"MatStoreValues", StoreAndRetrieve},
};

const MatRandomOperation *MatRandomOperationAt(PetscInt i)
{
  const PetscInt num = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations);

  return i < num ? &operations[i] : MatRandomHostOperationAt(i - num);
}
