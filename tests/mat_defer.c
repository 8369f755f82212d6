/*
  Products straight from CSR until packing pays: the bits of packed ones in every operation, counted, given up when they have lost as much, and not begun with where the values before had so
  many products that it paid.
*/
#include "mat_defer.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

static char help[] = "Tests products of MATAIJTCCUSPARSE straight from CSR.\n\n";

enum { MOST = 4000 }; /* products, after which whatever is small is packed */

/* Is there such a product in the scalars of this PETSc, where the matrix lives? */
static PetscErrorCode Defers(Mat A, PetscBool *defers)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestIsCUDA(A, defers));
  if (PetscDefined(USE_REAL_DOUBLE)) *defers = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const tc_matrix *S, PetscBool defer, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(S, MATAIJTCCUSPARSE, A));
  PetscCall(MatAIJTCCUSPARSESetDefer(*A, defer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Over all processes */
static PetscErrorCode Total(PetscInt64 *count)
{
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Straight(Mat A, PetscInt64 *products)
{
  PetscFunctionBeginUser;
  PetscCall(MatAIJTCCUSPARSEGetStraightProducts(A, products));
  PetscCall(Total(products));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of what is packed */
static PetscErrorCode Packed(Mat A, PetscInt64 *refills, PetscInt64 *rebuilds)
{
  PetscFunctionBeginUser;
  PetscCall(MatAIJTCCUSPARSEGetCounters(A, NULL, refills, rebuilds));
  PetscCall(Total(refills));
  PetscCall(Total(rebuilds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  PRODUCT,
  SUM,
  SUM_IN_PLACE,
  RESIDUAL,
  RESIDUAL_IN_PLACE,
  NUM_OPERATIONS
} Operation;

static PetscErrorCode Multiply(Mat A, Operation operation, Vec x, Vec y, Vec z)
{
  PetscFunctionBeginUser;
  if (operation == SUM_IN_PLACE || operation == RESIDUAL_IN_PLACE) PetscCall(VecCopy(y, z));
  else PetscCall(MatTestPoison(z));
  if (operation == PRODUCT) PetscCall(MatMult(A, x, z));
  else if (operation == SUM) PetscCall(MatMultAdd(A, x, y, z));
  else if (operation == SUM_IN_PLACE) PetscCall(MatMultAdd(A, x, z, z));
  else PetscCall(MatResidual(A, operation == RESIDUAL ? y : z, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both matrices give the same bits in every operation; every third element of what is added to is -0.0, of which a row without entries leaves what it finds */
static PetscErrorCode SameBits(Mat A, Mat B, PetscBool *same)
{
  Vec          x, y, z[2];
  PetscScalar *array;
  PetscInt     m;

  PetscFunctionBeginUser;
  *same = PETSC_TRUE;
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int s = 0; s < 2; s++) PetscCall(VecDuplicate(y, &z[s]));
  PetscCall(MatTestRandom(x, 3, NULL));
  PetscCall(MatTestRandom(y, 4, NULL));
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArray(y, &array));
  for (PetscInt i = 0; i < m; i += 3) array[i] = -0.0;
  PetscCall(VecRestoreArray(y, &array));
  for (int o = 0; o < NUM_OPERATIONS; o++) {
    PetscBool equal;

    PetscCall(Multiply(A, (Operation)o, x, y, z[0]));
    PetscCall(Multiply(B, (Operation)o, x, y, z[1]));
    PetscCall(VecEqual(z[0], z[1], &equal));
    *same = (PetscBool)(*same && equal);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  for (int s = 0; s < 2; s++) PetscCall(VecDestroy(&z[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the first products on until it is packed, and after that */
static PetscErrorCode TestBits(const char name[], const tc_matrix *S)
{
  Mat        A, B;
  PetscInt64 straight[2], refills, rebuilds;
  PetscBool  defers, same[2];

  PetscFunctionBeginUser;
  PetscCall(Create(S, PETSC_TRUE, &A));
  PetscCall(Create(S, PETSC_FALSE, &B));
  PetscCall(Defers(A, &defers));
  PetscCall(SameBits(A, B, &same[0]));
  PetscCall(Straight(A, &straight[0]));
  for (int product = 0; product < 40; product++) PetscCall(SameBits(A, B, &same[1]));
  PetscCall(Straight(B, &straight[1]));
  PetscCall(Packed(B, &refills, &rebuilds));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && (straight[0] > 0 || !defers || S->nnz == 0) && straight[1] == 0 && rebuilds > 0), "%s: %s bits as packed at once, %s later; %" PetscInt64_FMT " products straight from CSR, and %" PetscInt64_FMT, name, same[0] ? "same" : "OTHER", same[1] ? "same" : "OTHER", straight[0], straight[1]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int num_transposed, num_straight; /* matrices, and those of them whose transpose was multiplied straight from CSR */

/* New values before every product with the transpose; those of matrices on a GPU are added up by PETSc from three processes on, in no order */
static PetscErrorCode TestTransposed(const char name[], const tc_matrix *S)
{
  Mat         A, B;
  Vec         x, y, z[2];
  PetscInt64  straight;
  PetscMPIInt size;
  PetscBool   defers, cuda, same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(Create(S, PETSC_TRUE, &A));
  PetscCall(Create(S, PETSC_FALSE, &B));
  PetscCall(Defers(A, &defers));
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreateVecs(A, &y, &x));
  for (int s = 0; s < 2; s++) PetscCall(VecDuplicate(y, &z[s]));
  PetscCall(MatTestRandom(x, 3, NULL));
  PetscCall(MatTestRandom(y, 4, NULL));
  for (int i = 0; i < 8; i++) {
    PetscBool equal;

    for (int s = 0; s < 2; s++) {
      PetscCall(MatTestPoison(z[s]));
      if (i % 2) PetscCall(MatMultTransposeAdd(s ? B : A, x, y, z[s]));
      else PetscCall(MatMultTranspose(s ? B : A, x, z[s]));
    }
    PetscCall(VecEqual(z[0], z[1], &equal));
    same = (PetscBool)(same && (equal || (cuda && size > 2)));
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(B, 1.5));
  }
  PetscCall(Straight(A, &straight));
  num_transposed++;
  if (straight > 0 || !defers) num_straight++;
  PetscCall(MatTestFact(same, "%s: %s bits as packed at once with the transpose; %" PetscInt64_FMT " products straight from CSR", name, same ? "same" : "OTHER", straight));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  for (int s = 0; s < 2; s++) PetscCall(VecDestroy(&z[s]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* So many entries that the host's clock decides, and once more after the values have changed; where packed products are the slower ones they are passed over */
static PetscErrorCode TestLarge(void)
{
  tc_matrix  S;
  Mat        A, B;
  Vec        x, z[2];
  PetscInt64 straight;
  PetscBool  same = PETSC_TRUE, shown;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 60, &S));
  PetscCall(Create(&S, PETSC_TRUE, &A));
  PetscCall(Create(&S, PETSC_FALSE, &B));
  tc_matrix_free(&S);
  PetscCall(MatCreateVecs(A, &x, &z[0]));
  PetscCall(VecDuplicate(z[0], &z[1]));
  PetscCall(MatTestRandom(x, 3, NULL));
  for (int i = 0; i < 400; i++) {
    PetscBool equal;

    PetscCall(MatTestPoison(z[0]));
    PetscCall(MatMult(A, x, z[0]));
    if (i % 10 && i % 200 > 2) continue;
    PetscCall(MatMult(B, x, z[1]));
    PetscCall(VecEqual(z[0], z[1], &equal));
    same = (PetscBool)(same && equal);
    if (i != 200) continue;
    PetscCall(MatScale(A, 0.7));
    PetscCall(MatScale(B, 0.7));
  }
  PetscCall(Straight(A, &straight));
  PetscCall(MatTestViewHas(A, "faster than packed ones", &shown));
  PetscCall(MatTestFact(same, "400 products with 1 490 400 entries, the last 200 with other values: %s bits as packed at once, %" PetscInt64_FMT " straight from CSR%s", same ? "same" : "OTHER", straight, shown ? ", since they are faster" : ""));
  PetscCall(VecDestroy(&x));
  for (int s = 0; s < 2; s++) PetscCall(VecDestroy(&z[s]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with one vector, until all that multiplies is packed: how many were straight from CSR? */
static PetscErrorCode UntilPacked(Mat A, PetscInt64 *products)
{
  Vec        x, y;
  PetscInt64 before, now, last = -1;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatTestRandom(x, 3, NULL));
  PetscCall(Straight(A, &before));
  now = before;
  for (int i = 0; i < MOST && now != last; i++) {
    last = now;
    PetscCall(MatMult(A, x, y));
    PetscCall(Straight(A, &now));
  }
  *products = now - before;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ChangePattern(Mat A)
{
  PetscInt row, end;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &row, &end));
  for (; row < end; row++) PetscCall(MatSetValue(A, row, (row + 4) % 1000, 0.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestHistory(void)
{
  tc_matrix  S;
  Mat        A, diagonal;
  Vec        x, y;
  PetscInt64 straight[2], refills[2], rebuilds[2], products = 0;
  PetscMPIInt size;
  PetscBool   shown, defers;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 10, &S));
  PetscCall(Create(&S, PETSC_TRUE, &A));
  tc_matrix_free(&S);
  PetscCall(Defers(A, &defers));
  if (!defers) {
    PetscCall(MatTestSkip("what the values before tell: there are no products straight from CSR"));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatTestRandom(x, 3, NULL));
  diagonal = A;
  for (int i = 0; i < 20; i++) {
    PetscCall(MatMult(A, x, y));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(MatTestViewHas(A, "products straight from CSR", &shown));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, NULL, NULL)); /* the other block may be so empty that it pays */
  PetscCall(Straight(diagonal, &straight[0]));
  PetscCall(Packed(diagonal, &refills[0], &rebuilds[0]));
  PetscCall(MatTestFact((PetscBool)(straight[0] == 20 * size && rebuilds[0] == 0 && shown), "20 products with values of their own: %" PetscInt64_FMT " straight from CSR, %" PetscInt64_FMT " patterns packed; MatView() %s", straight[0], rebuilds[0], shown ? "says so" : "SAYS NOTHING"));
  PetscCall(Packed(A, &refills[0], &rebuilds[0]));
  PetscCall(UntilPacked(A, &products));
  PetscCall(Packed(A, &refills[1], &rebuilds[1]));
  PetscCall(MatTestFact((PetscBool)(products > 0 && products < MOST && rebuilds[1] > rebuilds[0]), "many products with the same values: %" PetscInt64_FMT " straight from CSR, then %" PetscInt64_FMT " patterns packed", products, rebuilds[1] - rebuilds[0]));
  for (int i = 0; i < 400; i++) PetscCall(MatMult(A, x, y));
  PetscCall(MatScale(A, 0.5));
  PetscCall(Straight(A, &straight[0]));
  PetscCall(Packed(A, &refills[0], &rebuilds[0]));
  PetscCall(MatMult(A, x, y));
  PetscCall(Straight(A, &straight[1]));
  PetscCall(Packed(A, &refills[1], &rebuilds[1]));
  PetscCall(MatTestFact((PetscBool)(straight[1] == straight[0] && refills[1] > refills[0] && rebuilds[1] == rebuilds[0]), "after 400 products new values are taken over by the first one: %" PetscInt64_FMT " straight from CSR, %" PetscInt64_FMT " refills, %" PetscInt64_FMT " rebuilds",
                         straight[1] - straight[0], refills[1] - refills[0], rebuilds[1] - rebuilds[0]));
  if (size > 1) { /* off-diagonal blocks are so empty that new values pay with the first product, and for a new pattern PETSc makes new blocks */
    PetscCall(MatTestSkip("values with one product each, and a new pattern after many: one process only"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int i = 0; i < 3; i++) { /* the first of them is taken over as those before were, of which nobody knows yet that they were the last */
    PetscCall(MatScale(A, 2.0));
    if (i == 1) PetscCall(Packed(A, &refills[0], &rebuilds[0]));
    PetscCall(MatMult(A, x, y));
  }
  PetscCall(Packed(A, &refills[1], &rebuilds[1]));
  PetscCall(MatTestFact((PetscBool)(refills[1] == refills[0]), "one product with new values after another: %" PetscInt64_FMT " refills", refills[1] - refills[0]));
  for (int i = 0; i < 2000; i++) PetscCall(MatMult(A, x, y));
  PetscCall(ChangePattern(A));
  PetscCall(Straight(A, &straight[0]));
  PetscCall(Packed(A, &refills[0], &rebuilds[0]));
  PetscCall(MatMult(A, x, y));
  PetscCall(Straight(A, &straight[1]));
  PetscCall(Packed(A, &refills[1], &rebuilds[1]));
  PetscCall(MatTestFact((PetscBool)(straight[1] == straight[0] && rebuilds[1] > rebuilds[0]), "after 2000 products a new pattern is packed by the first one: %" PetscInt64_FMT " straight from CSR, %" PetscInt64_FMT " rebuilds", straight[1] - straight[0], rebuilds[1] - rebuilds[0]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product with a block that wants what products with vectors pack gets it, though these are straight from CSR */
static PetscErrorCode TestBlocks(void)
{
  tc_matrix  S;
  Mat        A, B, C;
  Vec        x, y;
  PetscInt   n;
  PetscInt64 straight, refills[2], rebuilds[2];
  PetscBool  cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 10, &S));
  PetscCall(Create(&S, PETSC_TRUE, &A));
  tc_matrix_free(&S);
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMM(A, MAT_AIJTCCUSPARSE_SPMM_SLICE));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatTestRandom(x, 3, NULL));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, PETSC_DETERMINE, 8, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Packed(A, &refills[0], &rebuilds[0]));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(Straight(A, &straight));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Packed(A, &refills[1], &rebuilds[1]));
  if (cuda) PetscCall(MatTestFact((PetscBool)(straight > 0 && rebuilds[0] > 0 && rebuilds[1] == rebuilds[0] && refills[1] > refills[0]), "blocks by slices between %" PetscInt64_FMT " products straight from CSR: %" PetscInt64_FMT " rebuilds, %" PetscInt64_FMT " refills", straight, rebuilds[1], refills[1]));
  else PetscCall(MatTestSkip("blocks by slices: on a GPU only"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A format or a precision that is asked for, or packing itself */
static PetscErrorCode TestAskedFor(void)
{
  tc_matrix  S;
  Mat        A[4];
  Vec        x, y;
  PetscInt64 straight = 0;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  for (int m = 0; m < 4; m++) PetscCall(Create(&S, PETSC_TRUE, &A[m]));
  tc_matrix_free(&S);
  PetscCall(MatAIJTCCUSPARSESetSpMV(A[0], MAT_AIJTCCUSPARSE_SPMV_HYBRID));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A[1], MAT_AIJTCCUSPARSE_PRECISION_FP32));
  PetscCall(MatAIJTCCUSPARSESetEager(A[2], PETSC_TRUE));
  PetscCall(MatAIJTCCUSPARSESetSpMV(A[3], MAT_AIJTCCUSPARSE_SPMV_DASP));
  PetscCall(MatCreateVecs(A[0], &x, &y));
  PetscCall(MatTestRandom(x, 3, NULL));
  for (int m = 0; m < 4; m++) {
    PetscInt64 products = 0;

    PetscCall(MatMult(A[m], x, y));
    PetscCall(Straight(A[m], &products));
    straight += products;
    PetscCall(MatDestroy(&A[m]));
  }
  PetscCall(MatTestFact((PetscBool)(straight == 0), "hybrid, fp32, eager, dasp: %" PetscInt64_FMT " products straight from CSR", straight));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The n-th launch, or allocation, from then on fails: the product is the parent's */
static PetscErrorCode TestFault(tc_fault_point point, int n, const char name[])
{
  tc_matrix S;
  Mat       A, plain;
  PetscBool same[2];
  int       left;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("skewed", 300, &S));
  PetscCall(Create(&S, PETSC_TRUE, &A));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  PetscCall(MatAIJTCCUSPARSEArmFault(A, point, n, &left));
  PetscCall(MatTestSameProduct(A, plain, &same[0]));
  PetscCall(MatAIJTCCUSPARSEArmFault(A, point, 0, &left));
  PetscCall(MatTestSameProduct(A, plain, &same[1]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1]), "%s that fails: the product is %s, the next one %s", name, same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(MatTestEachMatrix(TestBits));
  PetscCall(MatTestEachMatrix(TestTransposed));
  PetscCall(MatTestFact((PetscBool)(2 * num_straight > num_transposed), "the transposes of %d of %d matrices were multiplied straight from CSR; a product with few entries for a column pays for new values by itself", num_straight, num_transposed));
  PetscCall(TestHistory());
  PetscCall(TestLarge());
  PetscCall(MatDeferTestLengths());
  PetscCall(TestBlocks());
  PetscCall(TestAskedFor());
  PetscCall(TestFault(TC_FAULT_LAUNCH, 1, "a launch"));
  PetscCall(TestFault(TC_FAULT_LAUNCH, 2, "the launch behind it, which a GPU has with the first product of a pattern,"));
  PetscCall(TestFault(TC_FAULT_ALLOC, 1, "an allocation"));
  return MatTestEnd();
}
