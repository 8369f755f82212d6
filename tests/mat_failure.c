/*
  Whatever fails in our path - an allocation, an upload, a launch - the product is the parent's and right, nothing leaks, the matrix stays usable, and a new
  pattern brings our path back.
*/
#include "mat_util.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

static char help[] = "Tests what MATAIJTCCUSPARSE does when something fails.\n\n";

enum { MAX_PASSES = 64 };

/* A new pattern, which our path has to build anew */
static PetscErrorCode ChangePattern(Mat A)
{
  PetscInt row, end;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &row, &end));
  if (row < end) PetscCall(MatSetValue(A, row, row + 2, 4.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What multiplies while a fault is armed */
typedef struct {
  const char *name;
  PetscErrorCode (*same)(Mat, Mat, PetscBool *);
  PetscErrorCode (*count)(Mat, MatTestCounts *);
} Product;

static const Product products[] = {
  {"product",            MatTestSameProduct,          MatTestGetCounts         },
  {"residual",           MatTestSameResidual,         MatTestGetCounts         },
  {"transposed product", MatTestSameTransposeProduct, MatTestGetTransposeCounts},
};

/* The n-th pass of the point fails during the first product, or during the one after a change of values; *reached: there are as many passes, on some process */
static PetscErrorCode TestFault(const Product *product, tc_fault_point point, const char name[], int n, PetscBool refill, PetscBool *reached)
{
  tc_matrix     S;
  Mat           ours, plain;
  MatTestCounts counts, now;
  PetscBool     same, ours_again, expected, works;
  int           left, any;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  if (refill) {
    PetscCall(product->same(ours, plain, &same));
    PetscCall(MatScale(ours, 2.0));
    PetscCall(MatScale(plain, 2.0));
  }
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, point, n, &left));
  PetscCall(product->same(ours, plain, &same));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, point, 0, &left));
  any = left == 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *reached = any ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(product->same(ours, plain, &works));
  PetscCall(product->count(ours, &counts));
  PetscCall(ChangePattern(ours));
  PetscCall(ChangePattern(plain));
  PetscCall(product->same(ours, plain, &ours_again));
  PetscCall(product->count(ours, &now));
  expected = (PetscBool)(now.rebuilds > 0 && (now.rebuilds > counts.rebuilds || now.id != counts.id));
  PetscCall(MatTestFact((PetscBool)(same && works && ours_again && expected), "%s %d fails during %s %s: %s, products %s, %s; a new pattern brings our path back: %s", name, n, refill ? "a refill for a" : "the first",
                        product->name, *reached ? "noticed" : "no such pass", same ? "right" : "WRONG", works ? "right" : "WRONG", expected ? "yes" : "NO"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block whose transpose cannot be packed leaves transposed products to the parent, which counts nothing, and goes on with the others; other blocks do not mind */
static PetscErrorCode TestOtherSide(void)
{
  tc_matrix   S;
  Mat         ours, plain;
  PetscMPIInt size;
  PetscInt64  hits[2], t_hits, t_refills, t_rebuilds;
  PetscBool   same[4];
  int         left, others;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  others = size > 1;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  PetscCall(MatTestSameProduct(ours, plain, &same[0]));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 1, &left));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &same[1]));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 0, &left));
  PetscCall(MatAIJTCCUSPARSEGetCounters(ours, &hits[0], NULL, NULL));
  PetscCall(MatTestSameProduct(ours, plain, &same[2]));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &same[3]));
  PetscCall(MatAIJTCCUSPARSEGetCounters(ours, &hits[1], NULL, NULL));
  PetscCall(MatAIJTCCUSPARSEGetTransposeCounters(ours, &t_hits, &t_refills, &t_rebuilds));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2] && same[3] && left == 0 && hits[1] - hits[0] == 1 + others && t_hits == others && t_refills == 0 && t_rebuilds == others),
                        "a transpose that cannot be packed is left to the parent, and products go on: %" PetscInt64_FMT " more hits, transposed %" PetscInt64_FMT, hits[1] - hits[0], t_hits));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What fails on the first process alone is not for the others to know: the parent's part of a product makes no call that they would have to make, too */
static PetscErrorCode TestFirstProcess(const Product *product)
{
  tc_matrix   S;
  Mat         ours, plain;
  PetscMPIInt rank;
  PetscBool   same, works;
  int         left;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  if (rank == 0) PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 1, &left));
  PetscCall(product->same(ours, plain, &same));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, TC_FAULT_ALLOC, 0, &left));
  PetscCall(product->same(ours, plain, &works));
  PetscCall(MatTestFact((PetscBool)(same && works), "a failure of the first process: %s %s, then %s", product->name, same ? "right" : "WRONG", works ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Largest sum of a row of C = A^T B with B of ones */
static PetscErrorCode TransposeTimesOnes(Mat A, Mat B, MatReuse reuse, Mat *C, PetscReal *norm)
{
  PetscFunctionBeginUser;
  PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DETERMINE, C));
  PetscCall(MatNorm(*C, NORM_INFINITY, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^T B that fails, then with other values and another matrix: PETSc's own product would keep the values that it had first. All numbers are small integers, so that results are exact. */
static PetscErrorCode TestTransposeWithBlock(void)
{
  const PetscInt N = 3;
  tc_matrix      S;
  Mat            A, other, B, C = NULL;
  PetscScalar   *ones;
  PetscInt       m, ld;
  PetscReal      first, scaled, replaced;
  int            left[3];

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  for (int64_t e = 0; e < S.nnz; e++) S.val[e] = (double)(e % 5 + 1);
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  tc_matrix_free(&S);
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &other));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, m, PETSC_DECIDE, PETSC_DETERMINE, N, NULL, &B));
  PetscCall(MatDenseGetLDA(B, &ld));
  PetscCall(MatDenseGetArrayWrite(B, &ones));
  for (PetscInt i = 0; i < ld * N; i++) ones[i] = 1;
  PetscCall(MatDenseRestoreArrayWrite(B, &ones));
  for (int p = 0; p < 3; p++) PetscCall(MatAIJTCCUSPARSEArmFault(A, (tc_fault_point)p, 1, &left[p]));
  PetscCall(TransposeTimesOnes(A, B, MAT_INITIAL_MATRIX, &C, &first));
  for (int p = 0; p < 3; p++) PetscCall(MatAIJTCCUSPARSEArmFault(A, (tc_fault_point)p, 0, &left[p]));
  PetscCall(MatScale(A, 4));
  PetscCall(TransposeTimesOnes(A, B, MAT_REUSE_MATRIX, &C, &scaled));
  PetscCall(MatScale(other, 8));
  PetscCall(TransposeTimesOnes(other, B, MAT_REUSE_MATRIX, &C, &replaced));
  PetscCall(MatTestFact((PetscBool)(first > 0 && scaled == 4 * first && replaced == 8 * first), "A^T B after a failure: with 4 A it is %g times, with another matrix, 8 A, %g times the first",
                        (double)(scaled / first), (double)(replaced / first)));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&other));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  static const struct {
    tc_fault_point point;
    const char    *name;
  } points[] = {
    {TC_FAULT_ALLOC,  "allocation"},
    {TC_FAULT_UPLOAD, "upload"    },
    {TC_FAULT_LAUNCH, "launch"    },
  };

  PetscCall(MatTestBegin(&argc, &args, help));
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(products); f++) {
    for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(points); p++) {
      for (int refill = 0; refill < 2; refill++) {
        PetscBool reached = PETSC_TRUE;
        int       n       = 1;

        for (; n < MAX_PASSES && reached; n++) PetscCall(TestFault(&products[f], points[p].point, points[p].name, n, (PetscBool)refill, &reached));
        PetscCall(MatTestFact((PetscBool)(n < MAX_PASSES && (refill || points[p].point == TC_FAULT_UPLOAD || n > 2)), "%s: %d passes during %s %s", points[p].name, n - 2, refill ? "a refill for a" : "the first", products[f].name));
      }
    }
  }
  PetscCall(TestOtherSide());
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(products); f++) PetscCall(TestFirstProcess(&products[f]));
  PetscCall(TestTransposeWithBlock());
  return MatTestEnd();
}
