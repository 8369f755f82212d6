/*
  Whatever fails in our path - an allocation, an upload, a launch - the product is the parent's and right, nothing leaks, the matrix stays usable, and a new
  pattern brings our path back.
*/
#include "mat_util.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int);

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

/* The n-th pass of the point fails during the first product, or during the one after a change of values; *reached: there are as many passes */
static PetscErrorCode TestFault(tc_fault_point point, const char name[], int n, PetscBool refill, PetscBool *reached)
{
  tc_matrix     S;
  Mat           ours, plain;
  MatTestCounts counts, now;
  PetscBool     same, ours_again, expected, works;
  int           any;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  if (refill) {
    PetscCall(MatTestSameProduct(ours, plain, &same));
    PetscCall(MatScale(ours, 2.0));
    PetscCall(MatScale(plain, 2.0));
  }
  PetscCall(MatTestGetCounts(ours, &counts));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, point, n));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatAIJTCCUSPARSEArmFault(ours, point, 0));
  PetscCall(MatTestGetCounts(ours, &now));
  PetscCall(MatTestSameProduct(ours, plain, &works));
  PetscCall(MatTestGetCounts(ours, &counts));
  /* while the parent serves, nothing is counted */
  any = counts.hits == now.hits && counts.refills == now.refills && counts.rebuilds == now.rebuilds;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *reached = any ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(ChangePattern(ours));
  PetscCall(ChangePattern(plain));
  PetscCall(MatTestSameProduct(ours, plain, &ours_again));
  counts = now;
  PetscCall(MatTestGetCounts(ours, &now));
  expected = (PetscBool)(now.rebuilds > 0 && (now.rebuilds > counts.rebuilds || now.id != counts.id));
  PetscCall(MatTestFact((PetscBool)(same && works && ours_again && expected), "%s %d fails during %s: %s, products %s, %s; a new pattern brings our path back: %s", name, n,
                        refill ? "a refill" : "the first product", *reached ? "the parent serves" : "no such pass", same ? "right" : "WRONG", works ? "right" : "WRONG",
                        expected ? "yes" : "NO"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
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
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(points); p++) {
    for (int refill = 0; refill < 2; refill++) {
      PetscBool reached = PETSC_TRUE;
      int       n       = 1;

      for (; n < MAX_PASSES && reached; n++) PetscCall(TestFault(points[p].point, points[p].name, n, (PetscBool)refill, &reached));
      if (!refill) PetscCall(MatTestFact((PetscBool)(n > 2 && n < MAX_PASSES), "%s: %d passes during the first product", points[p].name, n - 2));
    }
  }
  return MatTestEnd();
}
