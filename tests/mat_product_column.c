/*
  Products with a dense matrix of one column, which is a vector: what multiplies, and that nobody else's use of that column is in the way.
*/
#include "mat_product.h"
#include <stdlib.h>

/* A block of one column is multiplied with what MatMult() has packed, whatever is asked for, and MatView() says so until a block of more columns comes */
static PetscErrorCode TestColumn(void)
{
  const PetscInt columns[] = {1, 9};
  tc_matrix      A;
  Mat            ours, B[2], C[2];
  Vec            x, y;
  double        *numbers;
  const char    *kernel;
  MatTestCounts  packed, used;
  PetscInt64     products[2];
  PetscBool      vector = PETSC_FALSE, said[2];

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatAIJTCCUSPARSESetSpMM(ours, MAT_AIJTCCUSPARSE_SPMM_TCA));
  PetscCall(ProductNumbers(A.num_cols, 9, 11, &numbers));
  PetscCall(MatCreateVecs(ours, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(ours, x, y));
  PetscCall(MatTestGetCounts(ours, &packed));
  for (int i = 0; i < 2; i++) {
    PetscCall(ProductOperand(PRODUCT_AB, ours, MATDENSE, columns[i], 0, numbers, &B[i]));
    PetscCall(MatMatMult(ours, B[i], MAT_INITIAL_MATRIX, PETSC_CURRENT, &C[i]));
    if (i == 0) PetscCall(MatTestGetCounts(ours, &used));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(ours, &products[i], &kernel));
    if (i == 0 && kernel) PetscCall(PetscStrstr(kernel, "_spmv_", (char **)&kernel));
    if (i == 0) vector = (PetscBool)(kernel != NULL);
    PetscCall(MatTestViewHas(ours, "a single column, multiplied as a vector", &said[i]));
  }
  PetscCall(MatTestFact((PetscBool)(vector && said[0] && !said[1] && products[0] > 0 && products[1] > products[0] && used.hits > packed.hits && used.rebuilds == packed.rebuilds),
                        "one column: by %s, with what MatMult() has packed: %" PetscInt64_FMT " hits more, %" PetscInt64_FMT " rebuilds; MatView says so: %s, of 9 columns: %s", vector ? "a kernel for vectors" : "ANOTHER KERNEL", used.hits - packed.hits, used.rebuilds - packed.rebuilds, said[0] ? "yes" : "NO",
                        said[1] ? "YES" : "no"));
  free(numbers);
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDestroy(&B[i]));
    PetscCall(MatDestroy(&C[i]));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&ours));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Somebody holds the columns of B and C, as the parent types let them: C is what it is without them, and after they are given back */
static PetscErrorCode TestHeld(int product, MatType type, const tc_matrix *A, Mat ours)
{
  Mat        B, C;
  Vec        b, c, column[3];
  double    *numbers;
  PetscReal  norm;
  PetscInt64 before, after;
  PetscBool  held, later;

  PetscFunctionBeginUser;
  PetscCall(ProductNumbers(product == PRODUCT_ATB ? A->num_rows : A->num_cols, 1, 11, &numbers));
  PetscCall(ProductOperand(product, ours, type, 1, 3, numbers, &B));
  PetscCall(ProductTarget(product, ours, type, 1, 3, &C));
  PetscCall(ProductCount(ours, &before));
  for (int i = 0; i < 3; i++) {
    PetscCall(MatZeroEntries(C));
    if (i == 1) PetscCall(MatDenseGetColumnVecRead(B, 0, &b));
    if (i == 1) PetscCall(MatDenseGetColumnVecRead(C, 0, &c));
    PetscCall(ProductKinds()[product].multiply(ours, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
    if (i == 1) PetscCall(MatDenseRestoreColumnVecRead(C, 0, &c));
    if (i == 1) PetscCall(MatDenseRestoreColumnVecRead(B, 0, &b));
    PetscCall(MatCreateVecs(C, NULL, &column[i]));
    PetscCall(MatGetColumnVector(C, column[i], 0));
  }
  PetscCall(ProductCount(ours, &after));
  PetscCall(VecNorm(column[0], NORM_2, &norm));
  PetscCall(VecEqual(column[0], column[1], &held));
  PetscCall(VecEqual(column[0], column[2], &later));
  PetscCall(MatTestFact((PetscBool)(held && later && norm > 0 && after - before >= 3), "%s of one column, %s: while others hold those of B and C %s, afterwards %s; norm %g, %" PetscInt64_FMT " products of ours", ProductKinds()[product].name, type, held ? "the same bits" : "OTHER BITS", later ? "the same" : "OTHERS", (double)norm, after - before));
  free(numbers);
  for (int i = 0; i < 3; i++) PetscCall(VecDestroy(&column[i]));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductColumn(void)
{
  const MatType types[] = {MATDENSE, MATDENSECUDA};
  tc_matrix     A;
  Mat           ours;
  PetscBool     cuda;

  PetscFunctionBeginUser;
  PetscCall(TestColumn());
  PetscCall(MatTestHasCUDA(&cuda));
  PetscCall(MatTestGenerate("mixed", 700, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  for (int type = 0; type < (cuda ? 2 : 1); type++) {
    for (int product = PRODUCT_AB; product <= PRODUCT_ATB; product++) PetscCall(TestHeld(product, types[type], &A, ours));
  }
  PetscCall(MatDestroy(&ours));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}
