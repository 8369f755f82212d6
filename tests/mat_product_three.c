/*
  Products of three matrices, one of them dense: PETSc makes two products of each, and the last is one of ours.
*/
#include "mat_product.h"
#include <math.h>
#include <stdlib.h>

static PetscErrorCode RAP(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  Mat R;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &R));
  PetscCall(MatMatMatMult(R, A, P, reuse, PETSC_CURRENT, C));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PtAP(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatPtAP(A, P, reuse, PETSC_CURRENT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PPA(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatMatMatMult(P, P, A, reuse, PETSC_CURRENT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is dense, P ours or plain */
static const struct {
  const char *name, *generator;
  PetscErrorCode (*multiply)(Mat A, Mat P, MatReuse, Mat *);
  PetscBool host; /* PETSc has no product of a dense matrix and one on the GPU */
} triples[] = {
  {"MatMatMatMult with a dense matrix in the middle", "interpolation", RAP,  PETSC_TRUE },
  {"MatPtAP of a dense matrix",                       "interpolation", PtAP, PETSC_TRUE },
  {"MatMatMatMult with a dense matrix at the end",    "elasticity",    PPA,  PETSC_FALSE},
};

/* max |C - D| over max |D| */
static PetscErrorCode Difference(Mat C, Mat D, PetscReal *difference)
{
  Mat       E, F;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(C, MATDENSE, MAT_INITIAL_MATRIX, &E));
  PetscCall(MatConvert(D, MATDENSE, MAT_INITIAL_MATRIX, &F));
  PetscCall(MatNorm(F, NORM_FROBENIUS, &norm));
  PetscCall(MatAXPY(E, -1.0, F, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(E, NORM_FROBENIUS, difference));
  *difference /= norm;
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P of ours and a plain one; the dense matrix gets new entries between the products */
static PetscErrorCode TestTriple(int t)
{
  tc_matrix   R;
  Mat         A, P[2], C[2];
  double     *numbers, *others;
  PetscReal   difference[2];
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  if (cuda && triples[t].host) {
    PetscCall(MatTestSkip("%s: PETSc has no product of a dense matrix and one on the GPU", triples[t].name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestGenerate(triples[t].generator, 4, &R));
  PetscCall(MatTestCreate(&R, MATAIJTCCUSPARSE, &P[0]));
  PetscCall(MatTestCreate(&R, MATAIJ, &P[1]));
  PetscCall(ProductNumbers(R.num_rows, R.num_rows, 31, &numbers));
  PetscCall(ProductNumbers(R.num_rows, R.num_rows, 32, &others));
  PetscCall(ProductOperand(PRODUCT_ATB, P[1], MATDENSE, R.num_rows, 0, numbers, &A));
  for (int m = 0; m < 2; m++) PetscCall((*triples[t].multiply)(A, P[m], MAT_INITIAL_MATRIX, &C[m]));
  PetscCall(Difference(C[0], C[1], &difference[0]));
  PetscCall(ProductFill(A, others, PETSC_FALSE));
  for (int m = 0; m < 2; m++) PetscCall((*triples[t].multiply)(A, P[m], MAT_REUSE_MATRIX, &C[m]));
  PetscCall(Difference(C[0], C[1], &difference[1]));
  /* two products of the same entries: the sums of absolute values are at most some thousand times as large as what they come to */
  PetscCall(MatTestFact((PetscBool)(difference[0] <= 1e4 * PETSC_MACHINE_EPSILON && difference[1] <= 1e4 * PETSC_MACHINE_EPSILON), "%s: %.1e from MATAIJ's, %.1e with other entries", triples[t].name,
                        (double)difference[0], (double)difference[1]));
  free(numbers);
  free(others);
  for (int m = 0; m < 2; m++) {
    PetscCall(MatDestroy(&P[m]));
    PetscCall(MatDestroy(&C[m]));
  }
  PetscCall(MatDestroy(&A));
  tc_matrix_free(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was the result of a product of ours may be that of dense matrices next */
static PetscErrorCode TestOtherProduct(void)
{
  tc_matrix R;
  Mat       A, B, D, C, E;
  double   *numbers;
  PetscReal difference;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 3, &R));
  PetscCall(MatTestCreate(&R, MATAIJTCCUSPARSE, &A));
  PetscCall(ProductNumbers(R.num_cols, R.num_cols, 33, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, A, MATDENSE, R.num_cols, 0, numbers, &B));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatProductClear(C));
  PetscCall(MatProductCreateWithMat(B, D, NULL, C));
  PetscCall(MatProductSetType(C, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(MatMatMult(B, D, MAT_INITIAL_MATRIX, PETSC_CURRENT, &E));
  PetscCall(Difference(C, E, &difference));
  PetscCall(MatTestFact((PetscBool)(difference <= 1e4 * PETSC_MACHINE_EPSILON), "a product of dense matrices in a result of ours: %.1e from that in a new one", (double)difference));
  free(numbers);
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&E));
  tc_matrix_free(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductThree(void)
{
  PetscFunctionBeginUser;
  for (int t = 0; t < (int)PETSC_STATIC_ARRAY_LENGTH(triples); t++) PetscCall(TestTriple(t));
  PetscCall(TestOtherProduct());
  PetscFunctionReturn(PETSC_SUCCESS);
}
