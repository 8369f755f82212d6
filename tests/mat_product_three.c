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

/*
  |C - D| in the Frobenius norm, over its bound for two results of the same product: each is within gamma_k of the exact one, in units of the product `absolute` of the absolute values,
  with k roundings at most in an element, those of all its sums.
*/
static PetscErrorCode Difference(Mat C, Mat D, Mat absolute, PetscInt k, double *over_bound)
{
  const double unit = PETSC_MACHINE_EPSILON / 2, gamma = k * unit / (1 - k * unit);
  Mat          E, F;
  PetscReal    difference, size;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(C, MATDENSE, MAT_INITIAL_MATRIX, &E));
  PetscCall(MatConvert(D, MATDENSE, MAT_INITIAL_MATRIX, &F));
  PetscCall(MatAXPY(E, -1.0, F, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(E, NORM_FROBENIUS, &difference));
  PetscCall(MatNorm(absolute, NORM_FROBENIUS, &size));
  *over_bound = (double)(difference / size) / (2 * gamma);
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P of ours and a plain one; the dense matrix gets new entries between the products */
static PetscErrorCode TestTriple(int t)
{
  tc_matrix   R;
  Mat         A, P[2], C[2], absolute[3];
  double     *numbers, *others, over_bound[2];
  PetscBool   cuda;
  PetscInt    k;

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
  k = 2 * (R.num_rows + 1); /* two sums of so many products */
  PetscCall(ProductAbsolute(P[1], &absolute[1]));
  for (int step = 0; step < 2; step++) {
    if (step == 1) PetscCall(ProductFill(A, others, PETSC_FALSE));
    for (int m = 0; m < 2; m++) PetscCall((*triples[t].multiply)(A, P[m], step ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &C[m]));
    PetscCall(ProductAbsolute(A, &absolute[0]));
    PetscCall((*triples[t].multiply)(absolute[0], absolute[1], MAT_INITIAL_MATRIX, &absolute[2]));
    PetscCall(Difference(C[0], C[1], absolute[2], k, &over_bound[step]));
    PetscCall(MatDestroy(&absolute[0]));
    PetscCall(MatDestroy(&absolute[2]));
  }
  PetscCall(MatDestroy(&absolute[1]));
  PetscCall(MatTestFact((PetscBool)(over_bound[0] <= 1 && over_bound[1] <= 1), "%s: %.1e of its bound from MATAIJ's, %.1e with other entries", triples[t].name, over_bound[0], over_bound[1]));
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
  Mat       A, B, D, C, E, absolute[3];
  double   *numbers, over_bound;

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
  PetscCall(ProductAbsolute(B, &absolute[0]));
  PetscCall(ProductAbsolute(D, &absolute[1]));
  PetscCall(MatMatMult(absolute[0], absolute[1], MAT_INITIAL_MATRIX, PETSC_CURRENT, &absolute[2]));
  PetscCall(Difference(C, E, absolute[2], R.num_cols + 1, &over_bound));
  PetscCall(MatTestFact((PetscBool)(over_bound <= 1), "a product of dense matrices in a result of ours: %.1e of its bound from that in a new one", over_bound));
  for (int m = 0; m < 3; m++) PetscCall(MatDestroy(&absolute[m]));
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
