/*
  Products with rounded entries: the bound of every row on all matrices, on values as they change, and how the precision is asked for; then products with dense matrices.
*/
#include "mat_precision.h"
#include <stdlib.h>

static char help[] = "Tests -mat_aijtccusparse_precision.\n\n";

/* In the order of MatAIJTCCUSPARSEPrecision */
static const tc_precision rounding[] = {TC_PRECISION_F64, TC_PRECISION_F32, TC_PRECISION_TF32, TC_PRECISION_BF16, TC_PRECISION_F16};

enum {
  NUM_PRECISIONS = PETSC_STATIC_ARRAY_LENGTH(rounding)
};

static PetscBool seen[NUM_PRECISIONS]; /* an error beyond what summation can make */

typedef enum {
  MULT,
  ADD,
  RESIDUAL,
  TRANSPOSE,
  TRANSPOSE_ADD,
  NUM_PRODUCTS
} Product;
static const char *const product_names[] = {"MatMult", "MatMultAdd", "MatResidual", "MatMultTranspose", "MatMultTransposeAdd"};

/* z = A x or its relative, of random vectors */
static PetscErrorCode Multiply(Mat A, Product product, Vec x, Vec y, Vec z)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestPoison(z));
  if (product == MULT) PetscCall(MatMult(A, x, z));
  else if (product == ADD) PetscCall(MatMultAdd(A, x, y, z));
  else if (product == RESIDUAL) PetscCall(MatResidual(A, y, x, z));
  else if (product == TRANSPOSE) PetscCall(MatMultTranspose(A, x, z));
  else PetscCall(MatMultTransposeAdd(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `R` is the matrix whose rows the results are: A, its negative or its transpose. *told gets the error over the bound, *beyond the error over that of double precision. */
static PetscErrorCode CheckProduct(Mat A, const tc_matrix *R, Product product, MatAIJTCCUSPARSEPrecision precision, double *over, double *beyond)
{
  const PetscBool    transpose = (PetscBool)(product >= TRANSPOSE), add = (PetscBool)(product != MULT && product != TRANSPOSE);
  Vec                x, y, z;
  double            *global, *rhs;
  long double       *ref, *bound;
  const PetscScalar *array;
  double            *result;
  PetscInt           first, end;
  PetscMPIInt        size;
  tc_matrix          L;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(transpose ? MatCreateVecs(A, &z, &x) : MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(MatTestRandom(x, 11, &global));
  PetscCall(MatTestRandom(y, 12, &rhs));
  PetscCall(Multiply(A, product, x, y, z));
  PetscCall(VecGetOwnershipRange(z, &first, &end));
  L = MatTestLocalRows(R, first, end);
  PetscCall(PetscMalloc2(L.num_rows, &ref, L.num_rows, &bound));
  tc_oracle_spmv(&L, global, add ? rhs + first : NULL, size + 1, ref, bound);
  MatTestAddRounding(&L, global, add ? rhs + first : NULL, size, PETSC_TRUE, bound);
  PetscCall(VecGetArrayRead(z, &array));
  PetscCall(MatTestWiden(L.num_rows, array, &result));
  *beyond = tc_error_over_bound(L.num_rows, result, ref, bound);
  tc_oracle_add_rounding(&L, global, rounding[precision], bound);
  *over = tc_error_over_bound(L.num_rows, result, ref, bound);
  PetscCall(PetscFree(result));
  PetscCall(VecRestoreArrayRead(z, &array));
  PetscCall(PetscFree2(ref, bound));
  free(global);
  free(rhs);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products in that precision */
static PetscErrorCode CheckProducts(const char name[], Mat A, const tc_matrix *const rows[], MatAIJTCCUSPARSEPrecision precision)
{
  PetscBool within = PETSC_TRUE;
  double    worst  = 0;

  PetscFunctionBeginUser;
  for (Product product = MULT; product < NUM_PRODUCTS; product++) {
    double over, beyond;

    PetscCall(CheckProduct(A, rows[product], product, precision, &over, &beyond));
    if (!(over <= 1)) {
      within = PETSC_FALSE;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: error %g of the bound\n", product_names[product], over));
    }
    if (over > worst) worst = over;
    if (beyond > 1) seen[precision] = PETSC_TRUE;
  }
  PetscCall(MatTestFact(within, "%s in %s: error %.2g of the bound on the first process", name, MatAIJTCCUSPARSEPrecisions[precision], worst));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every precision, with new values in between, and fp64 as if nothing had been */
static PetscErrorCode CheckMatrix(const char name[], const tc_matrix *S)
{
  static const MatAIJTCCUSPARSEPrecision order[] = {MAT_AIJTCCUSPARSE_PRECISION_FP64, MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_PRECISION_FP32, MAT_AIJTCCUSPARSE_PRECISION_TF32, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_PRECISION_FP64};
  tc_matrix                              A = *S, N = *S, T;
  const tc_matrix                       *rows[] = {&A, &A, &N, &T, &T};
  Mat                                    M;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(S->nnz, &A.val, S->nnz, &N.val));
  for (int64_t e = 0; e < S->nnz; e++) A.val[e] = S->val[e];
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &M));
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(order); p++) {
    const PetscScalar         factor = p % 2 ? -1.0 / 3 : 3; /* 3 is exact in the entries of some matrices, -1/3 in hardly any */
    MatAIJTCCUSPARSEPrecision precision;

    PetscCall(MatAIJTCCUSPARSESetPrecision(M, order[p]));
    PetscCall(MatAIJTCCUSPARSEGetPrecision(M, &precision));
    PetscCheck(precision == order[p], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Precision %s, expected %s", MatAIJTCCUSPARSEPrecisions[precision], MatAIJTCCUSPARSEPrecisions[order[p]]);
    for (int pass = 0; pass < 2; pass++) { /* packed anew, then refilled */
      for (int64_t e = 0; e < S->nnz; e++) N.val[e] = -A.val[e];
      PetscCheck(tc_matrix_transpose(&A, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
      PetscCall(CheckProducts(name, M, rows, order[p]));
      tc_matrix_free(&T);
      if (pass == 1) continue;
      PetscCall(MatScale(M, factor));
      for (int64_t e = 0; e < S->nnz; e++) A.val[e] = (PetscScalar)((PetscScalar)A.val[e] * factor);
    }
  }
  PetscCall(MatDestroy(&M));
  PetscCall(PetscFree2(A.val, N.val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Within the bound of double precision? */
static PetscErrorCode IsFull(Mat A, const tc_matrix *S, PetscBool *full)
{
  double over, beyond;
  int    everywhere;

  PetscFunctionBeginUser;
  PetscCall(CheckProduct(A, S, MULT, MAT_AIJTCCUSPARSE_PRECISION_FP64, &over, &beyond));
  everywhere = over <= 1;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  *full = everywhere ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The option with the prefix of the matrix, what copies inherit, and what the view says */
static PetscErrorCode CheckOptions(const tc_matrix *S)
{
  Mat                       A, P, Q;
  MatAIJTCCUSPARSEPrecision of_copy;
  PetscBool                 full, rounded, copy_rounded, told, silent;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
  PetscCall(MatSetOptionsPrefix(P, "narrow_"));
  PetscCall(PetscOptionsSetValue(NULL, "-narrow_mat_aijtccusparse_precision", "bf16"));
  PetscCall(MatSetFromOptions(P));
  PetscCall(PetscOptionsClearValue(NULL, "-narrow_mat_aijtccusparse_precision"));
  PetscCall(MatDuplicate(P, MAT_COPY_VALUES, &Q));
  PetscCall(MatAIJTCCUSPARSEGetPrecision(Q, &of_copy));
  PetscCall(IsFull(A, S, &full));
  PetscCall(IsFull(P, S, &rounded));
  PetscCall(IsFull(Q, S, &copy_rounded));
  PetscCall(MatTestViewHas(P, "bf16, hits 0, refills 0, rebuilds", &told));
  PetscCall(MatTestViewHas(A, "bf16", &silent));
  PetscCall(MatTestFact((PetscBool)(full && !rounded && !copy_rounded && of_copy == MAT_AIJTCCUSPARSE_PRECISION_BF16 && told && !silent), "-narrow_mat_aijtccusparse_precision bf16: the matrix %s, its copy %s, another one %s, the view %s",
                        rounded ? "NOT ROUNDED" : "rounded", copy_rounded ? "NOT ROUNDED" : "rounded", full ? "not rounded" : "ROUNDED", told && !silent ? "says so" : "DOES NOT SAY SO"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&Q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that repeat after others that did not: the bits are those of a matrix that never had others, though refills do not always look for values that repeat */
static PetscErrorCode CheckHistory(const tc_matrix *S)
{
  tc_matrix later = *S;
  PetscBool same, all = PETSC_TRUE;
  Mat       A, fresh;
  Vec       x, y, z;
  double   *numbers;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(S->nnz, &later.val));
  for (int p = 0; p < NUM_PRECISIONS; p++) {
    PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &A));
    PetscCall(MatAIJTCCUSPARSESetPrecision(A, (MatAIJTCCUSPARSEPrecision)p));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(MatTestRandom(x, 11, &numbers));
    PetscCall(MatMult(A, x, y));
    for (int refill = 0; refill < 3; refill++) {
      for (int64_t e = 0; e < S->nnz; e++) later.val[e] = (PetscScalar)(refill + (e / 3 % 2 ? 0.1 : 0.3)); /* a sample with any stride has both */
      PetscCall(MatTestCreate(&later, MATAIJTCCUSPARSE, &fresh));
      PetscCall(MatAIJTCCUSPARSESetPrecision(fresh, (MatAIJTCCUSPARSEPrecision)p));
      PetscCall(MatCopy(fresh, A, SAME_NONZERO_PATTERN));
      PetscCall(MatMult(A, x, y));
      PetscCall(MatMult(fresh, x, z));
      PetscCall(VecEqual(y, z, &same));
      if (!same) all = PETSC_FALSE;
      PetscCall(MatDestroy(&fresh));
    }
    free(numbers);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestFact(all, "the values before: products in each precision %s", all ? "do not depend on them" : "DEPEND ON THEM"));
  PetscCall(PetscFree(later.val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A format that does not round leaves products to the parent, and says so; on a GPU rounded products are never timed against the parent's */
static PetscErrorCode CheckChoice(const tc_matrix *S)
{
  enum {
    PRODUCTS = 40
  };
  const MatAIJTCCUSPARSEPrecision precision = PetscDefined(USE_REAL_SINGLE) ? MAT_AIJTCCUSPARSE_PRECISION_BF16 : MAT_AIJTCCUSPARSE_PRECISION_FP32;
  Mat       A;
  PetscBool full, told, rounded, all = PETSC_TRUE, timed;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision));
  PetscCall(MatAIJTCCUSPARSESetSpMV(A, MAT_AIJTCCUSPARSE_SPMV_DASP));
  PetscCall(IsFull(A, S, &full));
  PetscCall(MatTestViewHas(A, "format dasp keeps values in fp64 only", &told));
  PetscCall(MatTestFact((PetscBool)(full && told), "%s with -mat_aijtccusparse_spmv dasp: %s, the view %s", MatAIJTCCUSPARSEPrecisions[precision], full ? "not rounded" : "ROUNDED", told ? "says so" : "DOES NOT SAY SO"));
  PetscCall(MatAIJTCCUSPARSESetSpMV(A, MAT_AIJTCCUSPARSE_SPMV_AUTO));
  for (int i = 0; i < PRODUCTS; i++) {
    PetscCall(IsFull(A, S, &rounded));
    if (rounded) all = PETSC_FALSE;
  }
  PetscCall(MatTestViewHas(A, "timed after", &timed));
  PetscCall(MatTestFact((PetscBool)(all && !timed), "%s, %d products: %s, %s", MatAIJTCCUSPARSEPrecisions[precision], PRODUCTS, all ? "all rounded" : "NOT ALL ROUNDED", timed ? "TIMED" : "not timed"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  tc_matrix S;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(MatTestEachMatrix(CheckMatrix));
  for (int p = 0; p < NUM_PRECISIONS; p++) {
    int anywhere = seen[p] ? 1 : 0;

    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &anywhere, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (PetscDefined(USE_REAL_SINGLE) && (rounding[p] == TC_PRECISION_F32 || rounding[p] == TC_PRECISION_TF32)) continue; /* the entries are that already */
    PetscCall(MatTestFact((PetscBool)(anywhere == (p > 0)), "%s: errors %s what summation makes", MatAIJTCCUSPARSEPrecisions[p], anywhere ? "beyond" : "within"));
  }
  PetscCall(MatTestGenerate("elasticity", 4, &S));
  tc_random_normal(S.nnz, 5, S.val);
  MatTestRound(S.nnz, S.val);
  PetscCall(CheckOptions(&S));
  PetscCall(CheckHistory(&S));
  PetscCall(CheckChoice(&S));
  tc_matrix_free(&S);
  PetscCall(TestPrecisionOfDense());
  return MatTestEnd();
}
