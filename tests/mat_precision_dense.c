/*
  Products with dense matrices in narrow precisions: A B within the bound of docs/formats.md, "Narrow products", on all matrices and after changes, A^T B and A B^T in
  double precision; what has no such kernel.
*/
#include "mat_precision.h"
#include "mat_product.h"
#include "../kernels/tc_bcsr.h"
#include <stdlib.h>
#include <string.h>

/* In the order of MatAIJTCCUSPARSEPrecision */
static const tc_precision precisions[] = {TC_PRECISION_F64, TC_PRECISION_F32, TC_PRECISION_TF32, TC_PRECISION_BF16, TC_PRECISION_F16};

enum {
  NUM_PRECISIONS = PETSC_STATIC_ARRAY_LENGTH(precisions),
  MANY_NONZEROS  = 20000 /* for which one number of columns has to do */
};

static PetscBool rounds[NUM_PRECISIONS][2]; /* a product A B, the others with 2:4 tiles, was not within the bound of double precision */

/* What became of a product */
typedef struct {
  double    over, over_double; /* error over the bound of the precision, of double precision */
  PetscBool bits;              /* those of double precision, of a product in that */
  PetscBool ours;
} Outcome;

/* Entries of a row that are added in single precision, at most */
static int32_t SegmentOf(MatAIJTCCUSPARSESpMM spmm)
{
  return spmm == MAT_AIJTCCUSPARSE_SPMM_SPARSE24 ? TC_BCSR_PIECE * TC_BCSR_DENSE : TC_SPMM_SEGMENT;
}

/* A product of that kind, C new or given; `rows` as for ProductError() */
static PetscErrorCode Multiply(Mat A, int product, const tc_matrix *rows, PetscInt N, PetscInt gap, PetscBool given, MatAIJTCCUSPARSEPrecision precision, MatAIJTCCUSPARSESpMM spmm, Outcome *outcome)
{
  double    *numbers;
  Mat        B, C;
  PetscBool  cuda;
  PetscInt64 before, after;

  PetscFunctionBeginUser;
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(ProductNumbers(rows->num_cols, N, 11, &numbers));
  PetscCall(ProductOperand(product, A, cuda ? MATDENSECUDA : MATDENSE, N, gap, numbers, &B));
  if (given) PetscCall(ProductTarget(product, A, cuda ? MATDENSECUDA : MATDENSE, N, gap, &C));
  PetscCall(ProductCount(A, &before));
  PetscCall(ProductKinds()[product].multiply(A, B, given ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(ProductCount(A, &after));
  outcome->bits = PETSC_FALSE;
  PetscCall(ProductErrorIn(TC_PRECISION_F64, 0, product, rows, N, numbers, C, &outcome->over_double, precision == MAT_AIJTCCUSPARSE_PRECISION_FP64 ? &outcome->bits : NULL));
  outcome->over = outcome->over_double;
  if (precision != MAT_AIJTCCUSPARSE_PRECISION_FP64) PetscCall(ProductErrorIn(precisions[precision], SegmentOf(spmm), product, rows, N, numbers, C, &outcome->over, NULL));
  outcome->ours = (PetscBool)(after > before);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  free(numbers);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A B for some numbers of columns, leading dimensions, and C new or given; the bits in fp64 */
static PetscErrorCode CheckProducts(const char name[], Mat A, const tc_matrix *rows, PetscInt num, const PetscInt columns[], MatAIJTCCUSPARSEPrecision precision, MatAIJTCCUSPARSESpMM spmm)
{
  PetscBool right = PETSC_TRUE;
  double    worst = 0;

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < num; i++) {
    Outcome outcome;

    PetscCall(Multiply(A, PRODUCT_AB, rows, columns[i], i % 2 ? 3 : 0, (PetscBool)(i % 3 == 0), precision, spmm, &outcome));
    if (!(outcome.over <= 1) || !outcome.ours || (precision == MAT_AIJTCCUSPARSE_PRECISION_FP64 && !outcome.bits)) right = PETSC_FALSE;
    if (!(outcome.over_double <= 1)) rounds[precision][spmm == MAT_AIJTCCUSPARSE_SPMM_SPARSE24] = PETSC_TRUE;
    worst = PetscMax(worst, outcome.over);
  }
  PetscCall(MatTestFact(right, "%s in %s, %s, MatMatMult of up to %" PetscInt_FMT " columns: error %.2g of the bound on the first process", name, MatAIJTCCUSPARSEPrecisions[precision], MatAIJTCCUSPARSESpMMs[spmm], columns[num - 1], worst));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every precision, and format for those that have two, with new values in between, and fp64 as if nothing had been */
static PetscErrorCode CheckMatrix(const char name[], const tc_matrix *S)
{
  static const struct {
    MatAIJTCCUSPARSEPrecision precision;
    MatAIJTCCUSPARSESpMM      spmm;
  } order[] = {
    {MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_SPMM_AUTO    },
    {MAT_AIJTCCUSPARSE_PRECISION_FP32, MAT_AIJTCCUSPARSE_SPMM_AUTO    },
    {MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24},
    {MAT_AIJTCCUSPARSE_PRECISION_TF32, MAT_AIJTCCUSPARSE_SPMM_AUTO    },
    {MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24},
    {MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_AUTO    },
    {MAT_AIJTCCUSPARSE_PRECISION_FP64, MAT_AIJTCCUSPARSE_SPMM_AUTO    },
  };
  static const char *const thorough[] = {"elasticity", "skewed", "lp", "long487", "no_rows", "nothing"};
  static const PetscInt    all[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 128, 130, 256, 1000}, few[] = {9, 1, 33};
  const PetscInt          *columns = few;
  PetscInt                 num     = S->nnz < MANY_NONZEROS ? PETSC_STATIC_ARRAY_LENGTH(few) : 1;
  PetscBool                crashes;
  tc_matrix                A = *S;
  Mat                      M;

  PetscFunctionBeginUser;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(thorough); i++) {
    if (strcmp(name, thorough[i]) != 0) continue;
    columns = all;
    num     = PETSC_STATIC_ARRAY_LENGTH(all);
  }
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &M));
  PetscCall(ProductCrashes(M, &crashes));
  if (crashes) {
    PetscCall(MatTestSkip("%s MatMatMult: PETSc 3.25 crashes where a process has no row of B", name));
    PetscCall(MatDestroy(&M));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1(S->nnz, &A.val));
  for (int64_t e = 0; e < S->nnz; e++) A.val[e] = S->val[e];
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(order); p++) {
    const PetscScalar factor = p % 2 ? -1.0 / 3 : 3; /* 3 is exact in the entries of some matrices, -1/3 in hardly any */

    PetscCall(MatAIJTCCUSPARSESetPrecision(M, order[p].precision));
    PetscCall(MatAIJTCCUSPARSESetSpMM(M, order[p].spmm));
    for (int pass = 0; pass < 2; pass++) { /* packed anew, then refilled */
      PetscCall(CheckProducts(name, M, &A, pass == 0 ? num : 1, pass == 0 ? columns : few, order[p].precision, order[p].spmm));
      if (pass == 1) continue;
      PetscCall(MatScale(M, factor));
      for (int64_t e = 0; e < S->nnz; e++) A.val[e] = (PetscScalar)((PetscScalar)A.val[e] * factor);
    }
  }
  PetscCall(MatDestroy(&M));
  PetscCall(PetscFree(A.val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two products in one object C with the pattern of every other entry of a row and with all of them, between */
static PetscErrorCode CheckPattern(const tc_matrix *S, MatAIJTCCUSPARSEPrecision precision, MatAIJTCCUSPARSESpMM spmm)
{
  const PetscInt N = 17;
  tc_matrix      half;
  Mat            A, B, C;
  double        *numbers, over[2];
  PetscBool      cuda;
  PetscInt       first, end;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(S->num_rows, S->num_cols, S->nnz, &half) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  half.nnz = 0;
  for (int32_t i = 0; i < S->num_rows; i++) {
    for (int64_t e = S->row_ptr[i]; e < S->row_ptr[i + 1]; e += 2, half.nnz++) {
      half.col[half.nnz] = S->col[e];
      half.val[half.nnz] = S->val[e];
    }
    half.row_ptr[i + 1] = half.nnz;
  }
  PetscCall(MatTestCreate(&half, MATAIJTCCUSPARSE, &A));
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision));
  PetscCall(MatAIJTCCUSPARSESetSpMM(A, spmm));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(ProductNumbers(S->num_cols, N, 11, &numbers));
  PetscCall(ProductOperand(PRODUCT_AB, A, cuda ? MATDENSECUDA : MATDENSE, N, 0, numbers, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(ProductErrorIn(precisions[precision], SegmentOf(spmm), PRODUCT_AB, &half, N, numbers, C, &over[0], NULL));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    for (int64_t e = S->row_ptr[i]; e < S->row_ptr[i + 1]; e++) PetscCall(MatSetValue(A, i, S->col[e], S->val[e], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
  PetscCall(ProductErrorIn(precisions[precision], SegmentOf(spmm), PRODUCT_AB, S, N, numbers, C, &over[1], NULL));
  PetscCall(MatTestFact((PetscBool)(over[0] <= 1 && over[1] <= 1), "%s, %s, half of the pattern, then all of it: error %.2g and %.2g of the bound", MatAIJTCCUSPARSEPrecisions[precision], MatAIJTCCUSPARSESpMMs[spmm], over[0], over[1]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  free(numbers);
  tc_matrix_free(&half);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Everywhere(PetscBool *so)
{
  int all = *so ? 1 : 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  *so = all ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A B in that precision with that kernel asked for; is it in double precision, and does the view say why? */
static PetscErrorCode CheckFull(const tc_matrix *S, MatAIJTCCUSPARSEPrecision precision, MatAIJTCCUSPARSESpMM spmm, PetscBool exact, PetscBool full, const char text[])
{
  Mat       A;
  Outcome   outcome;
  PetscBool within, told;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision));
  PetscCall(MatAIJTCCUSPARSESetSpMM(A, spmm));
  PetscCall(MatAIJTCCUSPARSESetSpMMExactNonfinite(A, exact));
  PetscCall(Multiply(A, PRODUCT_AB, S, 9, 0, PETSC_FALSE, precision, spmm, &outcome));
  within = (PetscBool)(outcome.over_double <= 1);
  PetscCall(Everywhere(&within));
  PetscCall(MatTestViewHas(A, text, &told));
  PetscCall(MatTestFact((PetscBool)(outcome.over <= 1 && within == full && told), "%s, -mat_aijtccusparse_spmm %s%s: MatMatMult() %s, the view %s", MatAIJTCCUSPARSEPrecisions[precision], MatAIJTCCUSPARSESpMMs[spmm], exact ? ", exact for what is not finite" : "",
                        within ? "not rounded" : "rounded", told ? "says so" : "DOES NOT SAY SO"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a transpose stay in double precision, before and after those without */
static PetscErrorCode CheckTransposes(const tc_matrix *S)
{
  Mat         A;
  tc_matrix   T;
  PetscBool   right = PETSC_TRUE;
  PetscMPIInt size;
  Outcome     outcome;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(tc_matrix_transpose(S, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, MAT_AIJTCCUSPARSE_PRECISION_FP16));
  for (int pass = 0; pass < 2; pass++) {
    for (int product = PRODUCT_ATB; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
      PetscCall(Multiply(A, product, product == PRODUCT_ATB ? &T : S, 9, 0, PETSC_FALSE, MAT_AIJTCCUSPARSE_PRECISION_FP64, MAT_AIJTCCUSPARSE_SPMM_AUTO, &outcome));
      if (!(outcome.over_double <= 1)) right = PETSC_FALSE;
    }
    PetscCall(Multiply(A, PRODUCT_AB, S, 9, 0, PETSC_FALSE, MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_SPMM_AUTO, &outcome));
    if (!(outcome.over <= 1)) right = PETSC_FALSE;
  }
  PetscCall(MatTestFact(right, "fp16: products with a transpose are in double precision, the others within their bound"));
  PetscCall(MatDestroy(&A));
  tc_matrix_free(&T);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestPrecisionOfDense(void)
{
  tc_matrix S;
  PetscBool cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  PetscCall(MatTestEachMatrix(CheckMatrix));
  for (int p = 0; p < NUM_PRECISIONS; p++) {
    for (int sparse24 = 0; sparse24 <= (p >= MAT_AIJTCCUSPARSE_PRECISION_BF16); sparse24++) {
      int anywhere = rounds[p][sparse24] ? 1 : 0;

      /* floats are that already, and the host serves tf32 by fp32 */
      if (PetscDefined(USE_REAL_SINGLE) && (p == MAT_AIJTCCUSPARSE_PRECISION_FP32 || (p == MAT_AIJTCCUSPARSE_PRECISION_TF32 && !cuda))) continue;
      PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &anywhere, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
      PetscCall(MatTestFact((PetscBool)(anywhere == (p > 0)), "%s%s: errors of MatMatMult() %s what summation makes", MatAIJTCCUSPARSEPrecisions[p], sparse24 ? ", sparse24" : "", anywhere ? "beyond" : "within"));
    }
  }
  PetscCall(MatTestGenerate("elasticity", 4, &S));
  tc_random_normal(S.nnz, 5, S.val);
  MatTestRound(S.nnz, S.val);
  PetscCall(CheckPattern(&S, MAT_AIJTCCUSPARSE_PRECISION_FP32, MAT_AIJTCCUSPARSE_SPMM_AUTO));
  PetscCall(CheckPattern(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_AUTO));
  PetscCall(CheckPattern(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24));
  PetscCall(CheckPattern(&S, MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24));
  PetscCall(CheckTransposes(&S));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_AUTO, PETSC_FALSE, PETSC_FALSE, cuda ? "format bittcf in bf16" : "format csr in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_BITTCF, PETSC_FALSE, PETSC_FALSE, "format bittcf in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_AUTO, PETSC_TRUE, PETSC_FALSE, "format csr in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_TCA, PETSC_FALSE, PETSC_FALSE, "format csr in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24, PETSC_FALSE, PETSC_FALSE, "format bcsr in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_FP16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24, PETSC_FALSE, PETSC_FALSE, "format bcsr in fp16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_SPARSE24, PETSC_TRUE, cuda, cuda ? "format bcsr multiplies structural zeros" : "format csr in bf16"));
  /* where the host has no kernel it does without what is asked for */
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_TF32, MAT_AIJTCCUSPARSE_SPMM_SPARSE24, PETSC_FALSE, (PetscBool)(cuda || PetscDefined(USE_REAL_SINGLE)), cuda ? "format bcsr in tf32" : "format csr in tf32"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_FP64, MAT_AIJTCCUSPARSE_SPMM_SPARSE24, PETSC_FALSE, PETSC_TRUE, cuda ? "format bcsr in fp64" : "format csr in fp64"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_SLICE, PETSC_FALSE, cuda, cuda ? "format hybrid in bf16" : "format csr in bf16"));
  PetscCall(CheckFull(&S, MAT_AIJTCCUSPARSE_PRECISION_BF16, MAT_AIJTCCUSPARSE_SPMM_CUSPARSE, PETSC_FALSE, PETSC_TRUE, "asked for by -mat_aijtccusparse_spmm"));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}
