/*
  Products with dense matrices, C = A B, A^T B and A B^T, against the a-priori bound of each element and against MATAIJ: all matrices, all numbers of columns, leading
  dimensions, C given or made, dense matrices on either side of the bus; then what changes between products, what fails, and who builds on them.
*/
#include "mat_product.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char help[] = "Tests products of MATAIJTCCUSPARSE with dense matrices.\n\n";

/* Matrices for which all numbers of columns are tried */
static const char *const thorough[] = {"elasticity", "skewed", "offdiagonal", "lp", "one_row", "no_rows", "no_columns", "nothing"};

static PetscErrorCode CheckMatrix(const char name[], const tc_matrix *A)
{
  static const PetscInt all[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 128, 256, 1000}, few[] = {1, 4, 9};
  const PetscInt       *columns = few;
  size_t                num     = PETSC_STATIC_ARRAY_LENGTH(few);
  Mat                   ours, plain;
  tc_matrix             T;
  PetscMPIInt           size;
  PetscBool             crashes = PETSC_FALSE;

  PetscFunctionBeginUser;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(thorough); i++) {
    if (strcmp(name, thorough[i]) != 0) continue;
    columns = all;
    num     = PETSC_STATIC_ARRAY_LENGTH(all);
  }
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(tc_matrix_transpose(A, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(MatTestCreate(A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(A, MATAIJ, &plain));
  PetscCall(ProductCrashes(plain, &crashes));
  if (crashes) PetscCall(MatTestSkip("%s MatMatMult: PETSc 3.25 crashes where a process has no row of B", name));
  for (int product = crashes ? PRODUCT_ATB : PRODUCT_AB; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
    for (size_t i = 0; i < num; i++) PetscCall(ProductCheck(name, product, product == PRODUCT_ATB ? &T : A, ours, plain, columns[i], i % 2 ? 3 : 0, i % 3 ? MAT_INITIAL_MATRIX : MAT_REUSE_MATRIX));
  }
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  tc_matrix_free(&T);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host and device dense matrices, mixed: the same numbers, C where the parent would leave it */
static PetscErrorCode TestMemory(void)
{
  static const PetscInt N       = 33;
  const MatType         types[] = {MATDENSE, MATDENSECUDA, NULL};
  tc_matrix             A, T;
  Mat                   ours, plain;
  double               *numbers[NUM_PRODUCTS];
  PetscBool             cuda;
  PetscMPIInt           size;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  if (!cuda) {
    PetscCall(MatTestSkip("dense matrices on the device: no GPU"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestGenerate("mixed", 700, &A));
  PetscCheck(tc_matrix_transpose(&A, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&A, MATAIJCUSPARSE, &plain));
  PetscCall(MatAIJTCCUSPARSERestoreParent(plain));
  PetscCall(ProductNumbers(A.num_cols, N, 11, &numbers[PRODUCT_AB]));
  PetscCall(ProductNumbers(A.num_rows, N, 11, &numbers[PRODUCT_ATB]));
  PetscCall(ProductNumbers(A.num_cols, N, 11, &numbers[PRODUCT_ABT]));
  for (int product = 0; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
    for (int b = 0; b < 2; b++) {
      for (int c = 0; c < 3; c++) {
        for (PetscInt gap = 0; gap < 2; gap++) {
          const Mat mats[2] = {ours, plain};
          MatType   type;
          char      result_type[2][64];
          double    worst[2];
          PetscBool bits, same;

          for (int m = 0; m < 2; m++) {
            Mat B, C;

            PetscCall(ProductOperand(product, mats[m], types[b], N, gap, numbers[product], &B));
            if (types[c]) PetscCall(ProductTarget(product, mats[m], types[c], N, gap, &C));
            PetscCall(ProductKinds()[product].multiply(mats[m], B, types[c] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
            PetscCall(MatGetType(C, &type));
            PetscCall(PetscStrncpy(result_type[m], type, sizeof(result_type[m])));
            PetscCall(ProductError(product, product == PRODUCT_ATB ? &T : &A, N, numbers[product], C, &worst[m], &bits));
            PetscCall(MatDestroy(&B));
            PetscCall(MatDestroy(&C));
          }
          PetscCall(PetscStrcmp(result_type[0], result_type[1], &same));
          PetscCall(MatTestFact((PetscBool)(same && worst[0] <= 1 && worst[1] <= 1), "%s, B %s, C %s, gap %" PetscInt_FMT ": C is %s, the parent's %s; error/bound %.3f, %.3f", ProductKinds()[product].name, types[b],
                                types[c] ? types[c] : "made", gap, result_type[0], result_type[1], worst[0], worst[1]));
        }
      }
    }
  }
  for (int product = 0; product < NUM_PRODUCTS; product++) free(numbers[product]);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  tc_matrix_free(&A);
  tc_matrix_free(&T);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A C that the product made is the user's: it outlives A, can be copied, changed, and taken to the host in place; on one GPU its array comes from our pool */
static PetscErrorCode TestResult(void)
{
  static const PetscInt N = 9;
  tc_matrix             A;
  double               *numbers;
  PetscBool             cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  PetscCall(MatTestGenerate("mixed", 700, &A));
  PetscCall(ProductNumbers(PetscMax(A.num_rows, A.num_cols), N, 11, &numbers));
  for (int product = 0; product < PRODUCT_ABT; product++) {
    Mat       ours, B, C, copy, there;
    PetscReal norm, apart;

    PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
    PetscCall(ProductOperand(product, ours, cuda ? MATDENSECUDA : MATDENSE, N, 0, numbers, &B));
    PetscCall(ProductKinds()[product].multiply(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatDestroy(&ours));
    PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &copy));
    PetscCall(MatScale(C, 2));
    PetscCall(MatConvert(copy, MATDENSE, MAT_INITIAL_MATRIX, &there));
    PetscCall(MatDestroy(&copy));
    PetscCall(MatConvert(C, MATDENSE, MAT_INPLACE_MATRIX, &C));
    PetscCall(MatNorm(there, NORM_FROBENIUS, &norm));
    PetscCall(MatAXPY(C, -2, there, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(C, NORM_FROBENIUS, &apart));
    PetscCall(MatTestFact((PetscBool)(norm > 0 && apart == 0), "%s: C outlives A and goes to the host; twice C less its copy twice: %g of %g", ProductKinds()[product].name, (double)apart, (double)norm));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&there));
  }
  free(numbers);
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A NaN or an infinity in B reaches the elements of C that it reaches with MATAIJ, and no others, if structural zeros are not multiplied */
static PetscErrorCode TestNonfinite(void)
{
  static const double   poisons[] = {NAN, INFINITY, -INFINITY};
  static const PetscInt N         = 9;
  tc_matrix             A;
  Mat                   mats[2];
  double               *numbers;
  PetscBool             same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("mixed", 700, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &mats[0]));
  PetscCall(MatTestCreate(&A, MATAIJ, &mats[1]));
  PetscCall(MatAIJTCCUSPARSESetSpMMExactNonfinite(mats[0], PETSC_TRUE));
  PetscCall(ProductNumbers(A.num_cols, N, 11, &numbers));
  for (int p = 0; p < 3; p++) {
    const PetscScalar *c[2];
    double            *wide[2];
    Mat                C[2], local[2];
    PetscInt           m, n;

    for (int k = 0; k < 3; k++) numbers[(k * A.num_cols) * N / 3 + k] = poisons[p];
    for (int i = 0; i < 2; i++) {
      Mat B;

      PetscCall(ProductOperand(PRODUCT_AB, mats[i], MATDENSE, N, 0, numbers, &B));
      PetscCall(MatMatMult(mats[i], B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C[i]));
      PetscCall(MatDestroy(&B));
      PetscCall(MatDenseGetLocalMatrix(C[i], &local[i]));
      PetscCall(MatDenseGetArrayRead(local[i], &c[i]));
    }
    PetscCall(MatGetLocalSize(local[0], &m, &n));
    for (int i = 0; i < 2; i++) PetscCall(MatTestWiden(m * n, c[i], &wide[i]));
    if (tc_first_other_class((int64_t)m * n, wide[0], wide[1]) < (int64_t)m * n) same = PETSC_FALSE;
    for (int i = 0; i < 2; i++) {
      PetscCall(PetscFree(wide[i]));
      PetscCall(MatDenseRestoreArrayRead(local[i], &c[i]));
      PetscCall(MatDestroy(&C[i]));
    }
  }
  PetscCall(MatTestFact(same, "NaN and infinities in B reach what they reach with MATAIJ"));
  free(numbers);
  PetscCall(MatDestroy(&mats[0]));
  PetscCall(MatDestroy(&mats[1]));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packed formats are built once and follow the values; on the host nothing is packed for such products */
static PetscErrorCode TestCounters(void)
{
  static const MatTestVerdict verdicts[] = {MATTEST_HIT, MATTEST_REFILL, MATTEST_HIT}; /* of the products after the first */
  tc_matrix                   A;
  Mat                         ours, B, C = NULL;
  double                     *numbers;
  MatTestCounts               before, now;
  PetscBool                   cuda, right = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMM(ours, MAT_AIJTCCUSPARSE_SPMM_SLICE));
  PetscCall(ProductNumbers(A.num_cols, 9, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, ours, cuda ? MATDENSECUDA : MATDENSE, 9, 0, numbers, &B));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C)); /* blocks become ours now at the latest */
  PetscCall(MatTestGetCounts(ours, &before));
  if (before.rebuilds != (cuda ? 1 : 0)) right = PETSC_FALSE;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(verdicts); i++) {
    if (verdicts[i] == MATTEST_REFILL) PetscCall(MatScale(ours, 2.0));
    PetscCall(MatMatMult(ours, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatTestGetCounts(ours, &now));
    if (now.hits - before.hits != (cuda && verdicts[i] == MATTEST_HIT) || now.refills - before.refills != (cuda && verdicts[i] == MATTEST_REFILL) || now.rebuilds != before.rebuilds) right = PETSC_FALSE;
    before = now;
  }
  PetscCall(MatTestFact(right, "MatMatMult %s: %" PetscInt64_FMT " hits %" PetscInt64_FMT " refills %" PetscInt64_FMT " rebuilds", cuda ? "again, after MatScale, again" : "packs nothing on the host", before.hits, before.refills, before.rebuilds));
  free(numbers);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a GPU products are straight from CSR until packing pays, then they are packed once, with the same bits; a format that is there already is used at once */
static PetscErrorCode TestBreakEven(void)
{
  enum { COLUMNS = 1000, MOST = 5000 };
  tc_matrix     A;
  Mat           ours, plain, B, C = NULL;
  Vec           x, y;
  double       *numbers, worst[2];
  const char   *kernel;
  MatTestCounts counts;
  PetscInt      products = 1;
  PetscBool     cuda, straight, bits[2], waits, paid, at_once = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(ProductNumbers(A.num_cols, COLUMNS, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, ours, cuda ? MATDENSECUDA : MATDENSE, COLUMNS, 0, numbers, &B));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(ProductError(PRODUCT_AB, &A, COLUMNS, numbers, C, &worst[0], &bits[0]));
  PetscCall(MatTestViewHas(ours, "made up for", &waits));
  do {
    PetscCall(MatMatMult(ours, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(ours, NULL, &kernel));
    PetscCall(PetscStrcmp(kernel, "tc_spmm_csr_f64", &straight));
  } while (straight && ++products < MOST);
  PetscCall(ProductError(PRODUCT_AB, &A, COLUMNS, numbers, C, &worst[1], &bits[1]));
  PetscCall(MatTestViewHas(ours, "before that paid", &paid));
  PetscCall(MatTestGetCounts(ours, &counts));
  if (cuda) { /* with the format packed by MatMult() */
    PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &plain));
    PetscCall(MatCreateVecs(plain, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(plain, x, y));
    PetscCall(MatDestroy(&C));
    PetscCall(MatMatMult(plain, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(plain, NULL, &kernel));
    PetscCall(PetscStrcmp(kernel, "tc_spmm_hybrid_f64", &at_once));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&plain));
  }
  PetscCall(MatTestFact((PetscBool)(bits[0] && bits[1] && worst[0] <= 1 && worst[1] <= 1 && waits == cuda && paid == cuda && (cuda ? products > 1 && products < MOST && counts.rebuilds == 1 && at_once : counts.rebuilds == 0)),
                        "MatMatMult: %" PetscInt_FMT " products before one is packed, %" PetscInt64_FMT " rebuilds; bits %s and %s; what MatMult() has packed is %s", products, counts.rebuilds, bits[0] ? "right" : "WRONG", bits[1] ? "right" : "WRONG", at_once ? "used" : "NOT USED"));
  free(numbers);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatView() tells how many products there were and with what, or why there were none */
static PetscErrorCode TestView(void)
{
  tc_matrix   A;
  Mat         ours, B, C;
  double     *numbers;
  const char *kernel;
  PetscBool   before, after, reason;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &ours));
  PetscCall(ProductNumbers(A.num_cols, 9, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, ours, MATDENSE, 9, 0, numbers, &B));
  PetscCall(MatTestViewHas(ours, "dense blocks", &before));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(ours, NULL, &kernel));
  PetscCall(MatTestViewHas(ours, kernel ? kernel : "no kernel", &after));
  PetscCall(MatDestroy(&C));
  PetscCall(MatAIJTCCUSPARSESetSpMM(ours, MAT_AIJTCCUSPARSE_SPMM_CUSPARSE));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatTestViewHas(ours, "-mat_aijtccusparse_spmm", &reason));
  PetscCall(MatTestFact((PetscBool)(!before && after && reason), "MatView: nothing about dense blocks before the first product: %s; the kernel %s after it: %s; why they are left to the parent: %s", before ? "NO" : "yes", kernel ? kernel : "", after ? "yes" : "NO",
                        reason ? "yes" : "NO"));
  free(numbers);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscMPIInt size;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(TestMemory());
  PetscCall(TestResult());
  PetscCall(TestNonfinite());
  PetscCall(TestCounters());
  PetscCall(TestView());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscCall(TestBreakEven());
  PetscCall(TestProductColumn());
  PetscCall(TestProductChanges());
  PetscCall(TestProductFailures());
  PetscCall(TestProductReorder());
  PetscCall(TestProductReuse());
  PetscCall(TestProductSolvers());
  PetscCall(TestProductThree());
  PetscCall(MatTestEachMatrix(CheckMatrix));
  return MatTestEnd();
}
