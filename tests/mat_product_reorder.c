/*
  Rows reordered in what is packed: the bits of a product are those of one without, whatever changes in between; what is reordered, and that the option arrives.
*/
#include "mat_product.h"
#include <stdlib.h>
#include <string.h>

static PetscErrorCode SameBits(Mat C, Mat D, PetscBool *same)
{
  Mat                local[2];
  const PetscScalar *c, *d;
  PetscInt           m, n, ld[2];

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetLocalMatrix(C, &local[0]));
  PetscCall(MatDenseGetLocalMatrix(D, &local[1]));
  PetscCall(MatGetLocalSize(local[0], &m, &n));
  for (int i = 0; i < 2; i++) PetscCall(MatDenseGetLDA(local[i], &ld[i]));
  PetscCall(MatDenseGetArrayRead(local[0], &c));
  PetscCall(MatDenseGetArrayRead(local[1], &d));
  *same = PETSC_TRUE;
  for (PetscInt j = 0; j < n; j++) {
    if (m > 0 && memcmp(c + j * ld[0], d + j * ld[1], (size_t)m * sizeof(*c)) != 0) *same = PETSC_FALSE;
  }
  PetscCall(MatDenseRestoreArrayRead(local[0], &c));
  PetscCall(MatDenseRestoreArrayRead(local[1], &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewEntry(Mat A)
{
  PetscInt row, end, n;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &row, &end));
  PetscCall(MatGetSize(A, NULL, &n));
  if (row < end) PetscCall(MatSetValue(A, row, n - 1 - row, 4.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  NOTHING,
  VALUES,
  PATTERN,
  OFF,
  ON,
  NUM_CHANGES
} Change;

static PetscErrorCode MakeChange(Change change, Mat A, PetscBool reordered)
{
  PetscFunctionBeginUser;
  if (change == VALUES) PetscCall(MatScale(A, -0.75));
  if (change == PATTERN) PetscCall(NewEntry(A));
  if (change == OFF && reordered) PetscCall(MatAIJTCCUSPARSESetSpMMReorder(A, MAT_AIJTCCUSPARSE_REORDER_NONE));
  if (change == ON && reordered) PetscCall(MatAIJTCCUSPARSESetSpMMReorder(A, MAT_AIJTCCUSPARSE_REORDER_RCM));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One matrix, multiplied with and without, by the format of tiles; on the host, where nothing is packed, the option must not matter. `square`: are there orders for it? */
static PetscErrorCode TestMatrix(const char generator[], PetscInt size, PetscInt N, PetscBool square)
{
  static const char *const texts[] = {"at first", "after MatScale", "after a new entry", "switched off", "switched on again"};
  tc_matrix                A;
  Mat                      mats[2], B, C[2] = {NULL, NULL};
  double                  *numbers;
  PetscMPIInt              processes;
  PetscBool                cuda;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &processes));
  PetscCall(MatTestGenerate(generator, size, &A));
  for (int m = 0; m < 2; m++) {
    PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &mats[m]));
    PetscCall(MatAIJTCCUSPARSESetSpMM(mats[m], MAT_AIJTCCUSPARSE_SPMM_BITTCF));
  }
  PetscCall(MatAIJTCCUSPARSESetSpMMReorder(mats[1], MAT_AIJTCCUSPARSE_REORDER_RCM));
  PetscCall(MatTestIsCUDA(mats[1], &cuda));
  PetscCall(ProductNumbers(A.num_cols, N, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, mats[0], cuda ? MATDENSECUDA : MATDENSE, N, 0, numbers, &B));
  for (int change = 0; change < NUM_CHANGES; change++) {
    PetscBool same = PETSC_FALSE, told, right;

    for (int m = 0; m < 2; m++) {
      PetscCall(MakeChange((Change)change, mats[m], (PetscBool)(m == 1)));
      PetscCall(MatDestroy(&C[m]));
      PetscCall(MatMatMult(mats[m], B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C[m]));
    }
    PetscCall(SameBits(C[0], C[1], &same));
    PetscCall(MatTestViewHas(mats[1], "rows reordered (rcm)", &told));
    right = (PetscBool)(told == (cuda && square && change != OFF) || (processes > 1 && !square)); /* a local part of it may have as many rows as columns */
    PetscCall(MatTestFact((PetscBool)(same && right), "%s, %" PetscInt_FMT " columns, %s: rows are%s reordered, bits are %s", generator, N, texts[change], told ? "" : " not", same ? "the same" : "OTHERS"));
  }
  if (processes == 1) {
    PetscBool counted = PETSC_TRUE;

    if (cuda) PetscCall(MatTestViewHas(mats[1], "dense blocks: hits 0, refills 1, rebuilds 4", &counted));
    PetscCall(MatTestFact(counted, "%s: packed once for each pattern and each setting", generator));
  }
  free(numbers);
  for (int m = 0; m < 2; m++) {
    PetscCall(MatDestroy(&mats[m]));
    PetscCall(MatDestroy(&C[m]));
  }
  PetscCall(MatDestroy(&B));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The option, with the prefix of the matrix, and through a copy */
static PetscErrorCode TestOption(void)
{
  static const char option[] = "-tests_mat_aijtccusparse_spmm_reorder";
  tc_matrix         A;
  Mat               ours, copy, B, C;
  double           *numbers;
  PetscBool         cuda, used, told;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, option, "rcm"));
  PetscCall(MatTestGenerate("stencil27_window", 6, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatSetOptionsPrefix(ours, "tests_"));
  PetscCall(MatSetFromOptions(ours));
  PetscCall(PetscOptionsUsed(NULL, option + 1, &used));
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscCall(MatAIJTCCUSPARSESetSpMM(ours, MAT_AIJTCCUSPARSE_SPMM_BITTCF));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &copy));
  PetscCall(MatTestIsCUDA(copy, &cuda));
  PetscCall(ProductNumbers(A.num_cols, 8, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, copy, MATDENSE, 8, 0, numbers, &B));
  PetscCall(MatMatMult(copy, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatTestViewHas(copy, "rows reordered (rcm)", &told));
  PetscCall(MatTestFact((PetscBool)(used && told == cuda), "%s rcm: %s, rows of a copy are%s reordered", option, used ? "read" : "NOT READ", told ? "" : " not"));
  free(numbers);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&copy));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductReorder(void)
{
  PetscFunctionBeginUser;
  PetscCall(TestMatrix("stencil27_window", 12, 33, PETSC_TRUE));
  PetscCall(TestMatrix("rmat", 9, 9, PETSC_TRUE));
  PetscCall(TestMatrix("dense_row", 700, 40, PETSC_TRUE));
  PetscCall(TestMatrix("lp", 61, 8, PETSC_FALSE));
  PetscCall(TestOption());
  PetscFunctionReturn(PETSC_SUCCESS);
}
