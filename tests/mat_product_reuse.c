/*
  What a matrix and a result that have been in use before are given: another pattern of the same number of entries, and blocks of other sizes; and rows that no kernel for tiles can read. All numbers are small integers, so that results
  are exact.
*/
#include "mat_product.h"
#include <stdlib.h>

/* Has C the numbers of D? */
static PetscErrorCode Equal(Mat C, Mat D, PetscBool *equal)
{
  Mat                local[2];
  const PetscScalar *array[2];
  PetscInt           ld[2], rows[2], cols[2];

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDenseGetLocalMatrix(i ? D : C, &local[i]));
    PetscCall(MatGetLocalSize(local[i], &rows[i], &cols[i]));
    PetscCall(MatDenseGetLDA(local[i], &ld[i]));
    PetscCall(MatDenseGetArrayRead(local[i], &array[i]));
  }
  *equal = (PetscBool)(rows[0] == rows[1] && cols[0] == cols[1]);
  for (PetscInt j = 0; *equal && j < cols[0]; j++) {
    for (PetscInt i = 0; i < rows[0]; i++) {
      if (!(array[0][i + j * ld[0]] == array[1][i + j * ld[1]])) *equal = PETSC_FALSE;
    }
  }
  for (int i = 0; i < 2; i++) PetscCall(MatDenseRestoreArrayRead(local[i], &array[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMat(MatType type, PetscInt n, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B for that product with A, its numbers integers */
static PetscErrorCode CreateBlock(int product, Mat A, PetscInt N, Mat *B)
{
  PetscInt  m, n;
  PetscBool cuda;
  double   *numbers;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
  n = product == PRODUCT_ATB ? m : n;
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(ProductNumbers(n, N, 21, &numbers));
  for (PetscInt i = 0; i < n * N; i++) numbers[i] = (double)(i % 7 - 3);
  PetscCall(ProductOperand(product, A, cuda ? MATDENSECUDA : MATDENSE, N, 0, numbers, B));
  free(numbers);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two entries in each row, one of them `shift` columns away, preallocated anew */
static PetscErrorCode FillRing(Mat A, PetscBool coo, PetscInt shift)
{
  PetscInt     n, first, end, *row, *col;
  PetscScalar *val;
  PetscCount   num = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  PetscCall(PetscMalloc3(2 * (end - first), &row, 2 * (end - first), &col, 2 * (end - first), &val));
  for (PetscInt i = first; i < end; i++) {
    row[num]   = i;
    col[num]   = i;
    val[num++] = 2;
    row[num]   = i;
    col[num]   = (i + shift) % n;
    val[num++] = (PetscScalar)(i % 5 + 1);
  }
  if (coo) {
    PetscCall(MatSetPreallocationCOO(A, num, row, col));
    PetscCall(MatSetValuesCOO(A, val, INSERT_VALUES));
  } else {
    PetscCall(MatSeqAIJSetPreallocation(A, 2, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 2, NULL, 2, NULL));
    for (PetscCount e = 0; e < num; e++) PetscCall(MatSetValue(A, row[e], col[e], val[e], INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(PetscFree3(row, col, val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has the same state for each of these patterns of a parallel matrix, whose blocks are others each time */
static PetscErrorCode TestPreallocatedAgain(PetscBool coo)
{
  static const PetscInt shifts[] = {7, 29, 31, 13};
  const PetscInt        n = 61, N = 5;
  PetscBool             right[NUM_PRODUCTS] = {PETSC_TRUE, PETSC_TRUE, PETSC_TRUE};
  Mat                   ours, plain, B, C, D;

  PetscFunctionBeginUser;
  PetscCall(CreateMat(MATAIJTCCUSPARSE, n, &ours));
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shifts); s++) {
    PetscCall(CreateMat(MATAIJ, n, &plain));
    PetscCall(FillRing(ours, coo, shifts[s]));
    PetscCall(FillRing(plain, coo, shifts[s]));
    for (int product = 0; product <= PRODUCT_ATB; product++) {
      PetscBool equal;

      PetscCall(CreateBlock(product, ours, N, &B));
      PetscCall(ProductKinds()[product].multiply(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
      PetscCall(MatConvert(B, MATDENSE, MAT_INPLACE_MATRIX, &B));
      PetscCall(ProductKinds()[product].multiply(plain, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
      PetscCall(Equal(C, D, &equal));
      if (!equal) right[product] = PETSC_FALSE;
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
      PetscCall(MatDestroy(&D));
    }
    PetscCall(MatDestroy(&plain));
  }
  PetscCall(MatTestFact((PetscBool)(right[PRODUCT_AB] && right[PRODUCT_ATB]), "preallocated again%s with other patterns of as many entries: A B %s, A^T B %s", coo ? ", COO," : "", right[PRODUCT_AB] ? "right" : "WRONG", right[PRODUCT_ATB] ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MAT_REUSE_MATRIX with a block of more columns than C, and of a matrix with more rows: an error, and the product as before afterwards */
static PetscErrorCode TestOtherSizes(int product)
{
  const PetscInt n = 61, N = 5;
  Mat            A[2], B, wrong[2], C, D;
  PetscErrorCode ierr[2];
  PetscBool      equal;

  PetscFunctionBeginUser;
  for (int a = 0; a < 2; a++) {
    PetscCall(CreateMat(MATAIJTCCUSPARSE, n + 13 * a, &A[a]));
    PetscCall(FillRing(A[a], PETSC_FALSE, 7));
    PetscCall(CreateBlock(product, A[a], a ? N : 40, &wrong[a]));
  }
  PetscCall(CreateBlock(product, A[0], N, &B));
  PetscCall(ProductKinds()[product].multiply(A[0], B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &D));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int a = 0; a < 2; a++) ierr[a] = ProductKinds()[product].multiply(A[0], wrong[a], MAT_REUSE_MATRIX, PETSC_CURRENT, &C);
  PetscCall(PetscPopErrorHandler());
  PetscCall(ProductKinds()[product].multiply(A[0], B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
  PetscCall(Equal(C, D, &equal));
  PetscCall(MatTestFact((PetscBool)(ierr[0] == PETSC_ERR_ARG_SIZ && ierr[1] == PETSC_ERR_ARG_SIZ && equal), "%s, MAT_REUSE_MATRIX with a B of 40 columns in place of 5: error %d, of more rows: error %d; then that of before: %s", ProductKinds()[product].name, (int)ierr[0], (int)ierr[1],
                        equal ? "right" : "WRONG"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&B));
  for (int a = 0; a < 2; a++) {
    PetscCall(MatDestroy(&A[a]));
    PetscCall(MatDestroy(&wrong[a]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products that are the parent's by choice, then with another matrix by MAT_REUSE_MATRIX: of host matrices only, since on a GPU the parent's then end in an error of cuSPARSE */
static PetscErrorCode TestOtherMatrix(int product)
{
  const PetscInt n = 61, N = 5;
  Mat            A[2], B, C, D;
  PetscBool      cuda, equal;

  PetscFunctionBeginUser;
  PetscCall(CreateMat(MATAIJTCCUSPARSE, n, &A[0]));
  PetscCall(FillRing(A[0], PETSC_FALSE, 7));
  PetscCall(MatTestIsCUDA(A[0], &cuda));
  if (cuda) PetscCall(MatTestSkip("another matrix in a product of the parent's: on the host only"));
  else {
    PetscCall(MatAIJTCCUSPARSESetSpMM(A[0], MAT_AIJTCCUSPARSE_SPMM_CUSPARSE));
    PetscCall(CreateBlock(product, A[0], N, &B));
    PetscCall(ProductKinds()[product].multiply(A[0], B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &D));
    PetscCall(MatScale(D, 16));
    PetscCall(MatDuplicate(A[0], MAT_COPY_VALUES, &A[1]));
    PetscCall(MatScale(A[1], 16));
    PetscCall(ProductKinds()[product].multiply(A[1], B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
    PetscCall(Equal(C, D, &equal));
    PetscCall(MatTestFact(equal, "%s, the parent's by choice, MAT_REUSE_MATRIX with another matrix: %s", ProductKinds()[product].name, equal ? "right" : "WRONG"));
    PetscCall(MatDestroy(&A[1]));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&D));
  }
  PetscCall(MatDestroy(&A[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -matproduct_batch_size, how many columns are exchanged at a time: the same numbers, 0 is without it */
static PetscErrorCode TestBatches(int product)
{
  static const char *const sizes[] = {"0", "1", "2", "9"};
  const PetscInt           n = 61, N = 5;
  PetscBool                right   = PETSC_TRUE, equal;
  Mat                      A, B, C, D;

  PetscFunctionBeginUser;
  PetscCall(CreateMat(MATAIJTCCUSPARSE, n, &A));
  PetscCall(FillRing(A, PETSC_FALSE, 29));
  PetscCall(CreateBlock(product, A, N, &B));
  PetscCall(ProductKinds()[product].multiply(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) {
    PetscCall(PetscOptionsSetValue(NULL, "-matproduct_batch_size", sizes[s]));
    PetscCall(ProductKinds()[product].multiply(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
    PetscCall(Equal(D, C, &equal));
    if (!equal) right = PETSC_FALSE;
    PetscCall(MatDestroy(&D));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-matproduct_batch_size"));
  PetscCall(MatTestFact(right, "%s, -matproduct_batch_size 0, 1, 2 and 9: %s", ProductKinds()[product].name, right ? "right" : "WRONG"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns out of order, near and far, and one twice in a row, which PETSc takes unless it is made for debugging: tiles cannot be packed, so others multiply */
static PetscErrorCode TestDisorder(MatAIJTCCUSPARSEPrecision precision)
{
  static const PetscInt columns[][4] = {{300, 100, 200, 0}, {300, 1000000, 200, 999000}, {5, 5, 9, 300}};
  const PetscInt        n = 64, m = 1100000, N = 12;
  PetscBool             right = PETSC_TRUE, equal;

  PetscFunctionBeginUser;
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(columns); c++) {
    PetscInt   *i, *j;
    PetscScalar *val;
    Mat          plain, ours, B, C, D;

    PetscCall(PetscMalloc3(n + 1, &i, 4 * n, &j, 4 * n, &val));
    for (PetscInt r = 0; r <= n; r++) i[r] = 4 * r;
    for (PetscInt e = 0; e < 4 * n; e++) {
      j[e]   = columns[c][e % 4] + e / 4;
      val[e] = (PetscScalar)(e % 5 + 1);
    }
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, m, i, j, val, &plain));
    PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, &ours));
    PetscCall(MatAIJTCCUSPARSESetPrecision(ours, precision));
    PetscCall(MatAIJTCCUSPARSESetSpMM(ours, MAT_AIJTCCUSPARSE_SPMM_BITTCF));
    for (int product = 0; product <= PRODUCT_ATB; product++) {
      PetscCall(CreateBlock(product, ours, N, &B));
      PetscCall(ProductKinds()[product].multiply(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
      PetscCall(MatConvert(B, MATDENSE, MAT_INPLACE_MATRIX, &B));
      PetscCall(ProductKinds()[product].multiply(plain, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
      PetscCall(Equal(C, D, &equal));
      if (!equal) right = PETSC_FALSE;
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
      PetscCall(MatDestroy(&D));
    }
    PetscCall(MatDestroy(&plain));
    PetscCall(MatDestroy(&ours));
    PetscCall(PetscFree3(i, j, val));
  }
  PetscCall(MatTestFact(right, "columns that do not ascend, tiles asked for in %s: %s", MatAIJTCCUSPARSEPrecisions[precision], right ? "right" : "WRONG"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductReuse(void)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestPreallocatedAgain(PETSC_FALSE));
  PetscCall(TestPreallocatedAgain(PETSC_TRUE));
  for (int product = 0; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
    PetscCall(TestOtherSizes(product));
    PetscCall(TestOtherMatrix(product));
  }
  if (PetscDefined(USE_DEBUG) || size > 1) PetscCall(MatTestSkip("columns that do not ascend: one process only, and not where PETSc is made for debugging, which refuses them"));
  else {
    PetscCall(TestDisorder(MAT_AIJTCCUSPARSE_PRECISION_FP64));
    PetscCall(TestDisorder(MAT_AIJTCCUSPARSE_PRECISION_BF16));
  }
  for (int product = 0; product <= PRODUCT_ATB; product++) {
    if (size > 1) PetscCall(TestBatches(product));
    else PetscCall(MatTestSkip("-matproduct_batch_size: several processes only"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
