/*
  The cache follows the matrix: after every operation that changes it the next product, and the next one with the transpose, is right and is counted as what it has
  to be - a hit, a refill of the values or a rebuild of the pattern. The counts are those of the matrix, or of its diagonal block on several processes.
*/
#include <petsc/private/petscimpl.h> /* states, which no public function sets */
#include "mat_state.h"

static char help[] = "Tests the cache of MATAIJTCCUSPARSE.\n\n";

/* Patterns: 7-point stencil, its diagonal, 27-point stencil; the type of all is that of the matrix under test */
static PetscErrorCode OperandsCreate(MatType type, Mat A, StateOperands *operands)
{
  tc_matrix S;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &operands->same));
  PetscCall(MatScale(operands->same, -0.5));
  PetscCall(MatTestGenerate("stencil27", 6, &S));
  PetscCall(MatTestCreate(&S, type, &operands->other));
  tc_matrix_free(&S);
  PetscCheck(tc_matrix_create(216, 216, 216, &S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < 216; i++) {
    S.row_ptr[i + 1] = i + 1;
    S.col[i]         = i;
    S.val[i]         = 1.0 + i;
  }
  PetscCall(MatTestCreate(&S, type, &operands->subset));
  tc_matrix_free(&S);
  PetscCall(MatCreateVecs(A, &operands->right, &operands->left));
  PetscCall(MatTestRandom(operands->left, 31, NULL));
  PetscCall(MatTestRandom(operands->right, 32, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperandsDestroy(StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&operands->same));
  PetscCall(MatDestroy(&operands->subset));
  PetscCall(MatDestroy(&operands->other));
  PetscCall(VecDestroy(&operands->left));
  PetscCall(VecDestroy(&operands->right));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of products, and of products with the transpose */
typedef struct {
  MatTestCounts forward, transpose;
} Counts;

/* Ours and a MATAIJ with the same content; one product of ours has been done, and one with the transpose */
static PetscErrorCode CreatePair(Mat *ours, Mat *plain, Counts *counts)
{
  tc_matrix S;
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, ours));
  PetscCall(MatTestCreate(&S, MATAIJ, plain));
  tc_matrix_free(&S);
  PetscCall(MatTestSameProduct(*ours, *plain, &same));
  PetscCall(MatTestSameTransposeProduct(*ours, *plain, &same));
  PetscCall(MatTestGetCounts(*ours, &counts->forward));
  PetscCall(MatTestGetTransposeCounts(*ours, &counts->transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductCounts(Mat A, Mat B, MatTestVerdict verdict, Counts *counts, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(MatTestProductCounts(A, B, verdict, &counts->forward, what));
  PetscCall(MatTestTransposeCounts(A, B, verdict, &counts->transpose, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestChange(const StateChange *change)
{
  Mat           ours, plain;
  StateOperands operands, plain_operands;
  Counts        counts;
  char          again[128];

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  for (int t = 0; t < 2; t++) {
    const MatTestCounts *c = t ? &counts.transpose : &counts.forward;

    if (c->rebuilds != 1 || c->hits != 0 || c->refills != 0) PetscCall(MatTestFact(PETSC_FALSE, "%s: before it, 1 rebuild was expected", change->name));
  }
  PetscCall(OperandsCreate(MATAIJTCCUSPARSE, ours, &operands));
  PetscCall(OperandsCreate(MATAIJ, plain, &plain_operands));
  PetscCall(change->change(ours, &operands));
  PetscCall(change->change(plain, &plain_operands));
  PetscCall(ProductCounts(ours, plain, change->expected, &counts, change->name));
  PetscCall(PetscSNPrintf(again, sizeof(again), "%s, again", change->name));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, again));
  PetscCall(OperandsDestroy(&operands));
  PetscCall(OperandsDestroy(&plain_operands));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDuplicate(void)
{
  static const Counts none = {0};
  Mat                 ours, plain, copy;
  Counts              counts, copy_counts = none;
  PetscBool           is_ours;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &copy));
  PetscCall(MatIsAIJTCCUSPARSE(copy, &is_ours));
  PetscCall(MatTestFact(is_ours, "MatDuplicate: the copy is of our type"));
  PetscCall(ProductCounts(copy, plain, MATTEST_REBUILD, &copy_counts, "MatDuplicate, the copy"));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "MatDuplicate, the source"));
  PetscCall(MatScale(copy, 2.0));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "MatDuplicate, the source after a change of the copy"));
  PetscCall(MatScale(plain, 2.0));
  PetscCall(ProductCounts(copy, plain, MATTEST_REFILL, &copy_counts, "MatDuplicate, the copy after its change"));
  PetscCall(MatDestroy(&copy));
  PetscCall(MatDuplicate(ours, MAT_DO_NOT_COPY_VALUES, &copy));
  PetscCall(MatZeroEntries(plain));
  copy_counts = none;
  PetscCall(ProductCounts(copy, plain, MATTEST_REBUILD, &copy_counts, "MatDuplicate without values"));
  PetscCall(MatDestroy(&copy));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestBindToCPU(void)
{
  Mat       ours, plain;
  Counts    counts;
  PetscBool cuda, bound;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatBindToCPU(ours, PETSC_TRUE)); /* a matrix on the GPU now needs its packed arrays on the host */
  PetscCall(ProductCounts(ours, plain, cuda ? MATTEST_REBUILD : MATTEST_HIT, &counts, "MatBindToCPU true"));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "MatBindToCPU true, again"));
  PetscCall(MatScale(ours, 3.0)); /* which the parent's values on the GPU do not learn */
  PetscCall(MatScale(plain, 3.0));
  PetscCall(ProductCounts(ours, plain, MATTEST_REFILL, &counts, "MatBindToCPU true, after MatScale"));
  for (int s = 0; s < 2; s++) { /* columns of other processes' blocks */
    PetscInt first;

    PetscCall(MatGetOwnershipRange(s ? plain : ours, &first, NULL));
    PetscCall(MatSetOption(s ? plain : ours, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    PetscCall(MatZeroRowsColumns(s ? plain : ours, 1, &first, 2.0, NULL, NULL));
  }
  PetscCall(MatBoundToCPU(ours, &bound));
  PetscCall(MatTestFact(bound, "MatZeroRowsColumns of a bound matrix leaves it bound"));
  PetscCall(ProductCounts(ours, plain, MATTEST_REFILL, &counts, "MatBindToCPU true, after MatZeroRowsColumns"));
  PetscCall(MatBindToCPU(ours, PETSC_FALSE));
  PetscCall(ProductCounts(ours, plain, cuda ? MATTEST_REBUILD : MATTEST_HIT, &counts, "MatBindToCPU false"));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "MatBindToCPU false, again"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestConvert(void)
{
  static const Counts none = {0};
  Mat                 ours, plain, B;
  Counts              counts, B_counts = none;
  MatTestVerdict      raised;
  PetscMPIInt         size;
  PetscBool           is_ours;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  raised = size > 1 ? MATTEST_HIT : MATTEST_REFILL; /* MatConvert() raises the state of the matrix, not that of its blocks */
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatConvert(ours, MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &ours));
  PetscCall(ProductCounts(ours, plain, raised, &counts, "MatConvert in place to the type it has"));
  PetscCall(MatSetType(ours, MATAIJTCCUSPARSE));
  PetscCall(ProductCounts(ours, plain, raised, &counts, "MatSetType of an assembled matrix to the type it has"));
  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatIsAIJTCCUSPARSE(B, &is_ours));
  PetscCall(MatTestFact(is_ours, "MatConvert from MATAIJ gives our type"));
  PetscCall(ProductCounts(B, plain, MATTEST_REBUILD, &B_counts, "MatConvert from MATAIJ"));
  PetscCall(MatScale(plain, 3.0));
  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_REUSE_MATRIX, &B));
  PetscCall(ProductCounts(B, plain, MATTEST_ANY, &B_counts, "MatConvert from MATAIJ, reused"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDuplicate(plain, MAT_COPY_VALUES, &B));
  PetscCall(MatConvert(B, MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &B));
  B_counts = none;
  PetscCall(ProductCounts(B, plain, MATTEST_REBUILD, &B_counts, "MatConvert from MATAIJ in place"));
  PetscCall(MatAIJTCCUSPARSERestoreParent(B));
  PetscCall(MatIsAIJTCCUSPARSE(B, &is_ours));
  PetscCall(MatTestFact((PetscBool)!is_ours, "MatAIJTCCUSPARSERestoreParent: no longer ours"));
  PetscCall(MatTestGetCounts(B, &B_counts.forward));
  PetscCall(MatTestGetTransposeCounts(B, &B_counts.transpose));
  PetscCall(ProductCounts(B, plain, MATTEST_ANY, &B_counts, "MatAIJTCCUSPARSERestoreParent"));
  PetscCall(MatConvert(B, MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &B));
  B_counts = none;
  PetscCall(ProductCounts(B, plain, MATTEST_REBUILD, &B_counts, "MatConvert back"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatScale(ours, 3.0));
  PetscCall(MatConvert(ours, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTestGetCounts(B, &B_counts.forward));
  PetscCall(MatTestGetTransposeCounts(B, &B_counts.transpose));
  PetscCall(ProductCounts(B, plain, MATTEST_ANY, &B_counts, "MatConvert to MATAIJ"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix without preallocation keeps its entries in a hash table until it is assembled, by operations of its own: it cannot become its parent's type before */
static PetscErrorCode TestUnassembled(void)
{
  Mat            A[2];
  PetscErrorCode refused;
  PetscBool      before, after, same;

  PetscFunctionBeginUser;
  for (int s = 0; s < 2; s++) {
    PetscInt begin, end;

    PetscCall(MatCreate(PETSC_COMM_WORLD, &A[s]));
    PetscCall(MatSetSizes(A[s], 3, 3, PETSC_DETERMINE, PETSC_DETERMINE));
    PetscCall(MatSetType(A[s], s ? MATAIJ : MATAIJTCCUSPARSE));
    PetscCall(MatSetUp(A[s]));
    PetscCall(MatGetOwnershipRange(A[s], &begin, &end));
    for (PetscInt i = begin; i < end; i++) {
      PetscCall(MatSetValue(A[s], i, i, 2.0 + i, ADD_VALUES));
      PetscCall(MatSetValue(A[s], i, 0, 1.0, ADD_VALUES));
    }
  }
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  refused = MatAIJTCCUSPARSERestoreParent(A[0]);
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatIsAIJTCCUSPARSE(A[0], &before));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatAssemblyBegin(A[s], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[s], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatTestSameProduct(A[0], A[1], &same));
  PetscCall(MatAIJTCCUSPARSERestoreParent(A[0]));
  PetscCall(MatIsAIJTCCUSPARSE(A[0], &after));
  PetscCall(MatTestFact((PetscBool)(refused == PETSC_ERR_ARG_WRONGSTATE && before && same && !after), "MatAIJTCCUSPARSERestoreParent before a first assembly without preallocation: %s, product %s; behind it: %s", refused == PETSC_ERR_ARG_WRONGSTATE ? "refused" : "NOT REFUSED", same ? "right" : "WRONG", after ? "STILL OURS" : "no longer ours"));
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&A[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatTranspose() makes is of our type, with the settings of the matrix, and is used again */
static PetscErrorCode TestTranspose(void)
{
  static const char *const names[] = {"new", "used again", "in place"};
  static const MatReuse    reuse[] = {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX, MAT_INPLACE_MATRIX};
  Mat                      ours, plain, T[2] = {NULL, NULL};
  Counts                   counts;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatAIJTCCUSPARSESetPrecision(ours, MAT_AIJTCCUSPARSE_PRECISION_FP32));
  for (int i = 0; i < 3; i++) {
    MatAIJTCCUSPARSEPrecision precision = MAT_AIJTCCUSPARSE_PRECISION_FP64;
    PetscBool                 is_ours, same;

    PetscCall(MatTranspose(ours, reuse[i], i == 2 ? &ours : &T[0]));
    PetscCall(MatTranspose(plain, reuse[i], i == 2 ? &plain : &T[1]));
    PetscCall(MatIsAIJTCCUSPARSE(i == 2 ? ours : T[0], &is_ours));
    if (is_ours) PetscCall(MatAIJTCCUSPARSEGetPrecision(i == 2 ? ours : T[0], &precision));
    PetscCall(MatAIJTCCUSPARSESetPrecision(i == 2 ? ours : T[0], MAT_AIJTCCUSPARSE_PRECISION_FP64));
    PetscCall(MatTestSameProduct(i == 2 ? ours : T[0], i == 2 ? plain : T[1], &same));
    PetscCall(MatTestFact((PetscBool)(is_ours && same && (i == 1 || precision == MAT_AIJTCCUSPARSE_PRECISION_FP32)), "MatTranspose, %s: %s type, precision %s, product %s", names[i], is_ours ? "our" : "NOT OUR", MatAIJTCCUSPARSEPrecisions[precision], same ? "right" : "WRONG"));
    for (int s = 0; s < 2 && i < 2; s++) PetscCall(MatScale(s ? plain : ours, 3.0));
  }
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&T[s]));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc makes matrices of derived types in place, of blocks, too, and keeps what it does not replace: operations of ours go on doing what the parent's do. On the host, where there are such types */
static PetscErrorCode TestDerived(MatType type, PetscBool transpose)
{
  Mat       ours, plain, copy, part[2];
  Counts    counts;
  PetscBool cuda, same[5], shown, copy_shown;
  PetscInt  first, end;
  IS        rows;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  if (cuda) PetscCall(MatTestSkip("MatConvert in place to %s: not on the GPU", type));
  else {
    PetscCall(MatConvert(ours, type, MAT_INPLACE_MATRIX, &ours));
    PetscCall(MatSetFromOptions(ours));
    for (int m = 0; m < 2; m++) PetscCall(MatScale(m ? plain : ours, 3.0));
    PetscCall(MatTestSameProduct(ours, plain, &same[0]));
    same[1] = PETSC_TRUE;
    if (transpose) PetscCall(MatTestSameTransposeProduct(ours, plain, &same[1]));
    PetscCall(MatTestSameResidual(ours, plain, &same[2]));
    PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &copy));
    PetscCall(MatTestSameProduct(copy, plain, &same[3]));
    PetscCall(MatTestViewHas(ours, "type: ", &shown));
    PetscCall(MatTestViewHas(copy, "type: ", &copy_shown));
    PetscCall(MatSetOption(copy, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatStoreValues(copy));
    PetscCall(MatZeroEntries(copy));
    PetscCall(MatRetrieveValues(copy));
    if (same[3]) PetscCall(MatTestSameProduct(copy, plain, &same[3]));
    PetscCall(MatGetOwnershipRange(ours, &first, &end));
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - first + 1) / 2, first, 2, &rows));
    for (int m = 0; m < 2; m++) PetscCall(MatCreateSubMatrix(m ? plain : ours, rows, rows, MAT_INITIAL_MATRIX, &part[m]));
    PetscCall(MatTestSameProduct(part[0], part[1], &same[4]));
    PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2] && same[3] && same[4] && shown && copy_shown), "MatConvert in place to %s: product %s, transpose %s, residual %s, copy %s, part %s", type, same[0] ? "right" : "WRONG",
                          !transpose ? "not asked for" : same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG", same[3] ? "right" : "WRONG", same[4] ? "right" : "WRONG"));
    PetscCall(ISDestroy(&rows));
    PetscCall(MatDestroy(&copy));
    for (int m = 0; m < 2; m++) PetscCall(MatDestroy(&part[m]));
  }
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatHeaderReplace() gives A the data of B, but a state of the values that may be the one at which B was packed */
static PetscErrorCode TestHeaderReplace(void)
{
  Mat              ours, plain, B;
  Counts           counts;
  PetscObjectState state;
  PetscBool        same[3];

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &B));
  PetscCall(PetscObjectStateGet((PetscObject)ours, &state));
  PetscCall(PetscObjectStateSet((PetscObject)B, state + 1));
  PetscCall(MatTestSameProduct(B, plain, &same[0]));
  PetscCall(MatTestSameTransposeProduct(B, plain, &same[1]));
  PetscCall(MatScale(B, 3.0));
  PetscCall(MatScale(plain, 3.0));
  PetscCall(MatHeaderReplace(ours, &B));
  PetscCall(MatTestSameProduct(ours, plain, &same[0]));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &same[1]));
  PetscCall(MatTestSameResidual(ours, plain, &same[2]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2]), "MatHeaderReplace by a matrix that was packed in the state to come: product %s, transpose %s, residual %s", same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestInvalidate(void)
{
  Mat    ours, plain;
  Counts counts;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatAIJTCCUSPARSEInvalidate(ours));
  PetscCall(ProductCounts(ours, plain, MATTEST_REFILL, &counts, "MatAIJTCCUSPARSEInvalidate"));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "MatAIJTCCUSPARSEInvalidate, again"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packing at assembly is no second rebuild at the first product */
static PetscErrorCode TestEager(void)
{
  Mat      ours, plain;
  Counts   counts;
  PetscInt row, end;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain, &counts));
  PetscCall(MatAIJTCCUSPARSESetEager(ours, PETSC_TRUE));
  for (int m = 0; m < 2; m++) {
    const Mat A = m ? plain : ours;

    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(A, &row, &end));
    if (row < end) PetscCall(MatSetValue(A, row, row + 2, 4.5, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(ProductCounts(ours, plain, MATTEST_REBUILD, &counts, "eager, new nonzero"));
  PetscCall(ProductCounts(ours, plain, MATTEST_HIT, &counts, "eager, new nonzero, again"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  const StateChange *changes;
  int                num;

  PetscCall(MatTestBegin(&argc, &args, help));
  changes = StateChanges(&num);
  for (int i = 0; i < num; i++) PetscCall(TestChange(&changes[i]));
  PetscCall(TestDuplicate());
  PetscCall(TestBindToCPU());
  PetscCall(TestConvert());
  PetscCall(TestDerived(MATAIJPERM, PETSC_TRUE));
  PetscCall(TestDerived(MATAIJSELL, PETSC_FALSE)); /* whose product with the transpose is wrong on one process, made of a plain matrix, too (PETSc 3.26.1) */
  PetscCall(TestHeaderReplace());
  PetscCall(TestInvalidate());
  PetscCall(TestEager());
  PetscCall(TestUnassembled());
  PetscCall(TestTranspose());
  PetscCall(CheckDiagonals());
  PetscCall(CheckInvertedBlocks());
  PetscCall(CheckParts());
  PetscCall(CheckCodes());
  return MatTestEnd();
}
