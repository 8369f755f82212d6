/*
  Values of a large matrix on their way to the GPU through memory that is pinned meanwhile: once, again when the host has newer ones, and never for a small one; products are right.
*/
#include "mat_warm.h"

/* Every value becomes three times as large, on the host */
static PetscErrorCode Triple(Mat A)
{
  PetscScalar *values;
  MatInfo      info;

  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(A, &values));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) values[k] *= 3;
  PetscCall(MatSeqAIJRestoreArray(A, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameEntries(Vec v[2], PetscBool *same)
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBeginUser;
  *same = PETSC_TRUE;
  PetscCall(VecGetLocalSize(v[0], &n));
  PetscCall(VecGetArrayRead(v[0], &a));
  PetscCall(VecGetArrayRead(v[1], &b));
  for (PetscInt i = 0; i < n; i++) *same = (PetscBool)(*same && a[i] == b[i]);
  PetscCall(VecRestoreArrayRead(v[0], &a));
  PetscCall(VecRestoreArrayRead(v[1], &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On one process. `large`: 2.5 million entries, 20 MB of values in double precision */
PetscErrorCode CheckSending(PetscBool large)
{
  tc_matrix   S;
  Mat         M[2];
  Vec         diagonal[2];
  int         sent[5];
  PetscBool   cuda, same[3], same_diagonal;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  if (!cuda || size > 1) {
    PetscCall(MatTestSkip("values sent, %s matrix: for one process with a GPU", large ? "large" : "small"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestGenerate("stencil27", large ? PetscDefined(USE_REAL_SINGLE) ? 60 : 46 : 8, &S));
  for (int s = 0; s < 2; s++) PetscCall(MatTestCreate(&S, s ? MATAIJ : MATAIJTCCUSPARSE, &M[s]));
  tc_matrix_free(&S);
  PetscCall(MatTestCountEvent("MatTCSend", &sent[0]));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatCreateVecs(M[s], NULL, &diagonal[s]));
    PetscCall(MatGetDiagonal(M[s], diagonal[s]));
  }
  PetscCall(MatTestCountEvent("MatTCSend", &sent[1]));
  PetscCall(MatTestSameProduct(M[0], M[1], &same[0]));
  PetscCall(MatTestCountEvent("MatTCSend", &sent[2]));
  for (int s = 0; s < 2; s++) PetscCall(Triple(M[s]));
  PetscCall(MatTestSameProduct(M[0], M[1], &same[1]));
  PetscCall(MatTestCountEvent("MatTCSend", &sent[3]));
  PetscCall(MatTestSameProduct(M[0], M[1], &same[2]));
  PetscCall(MatTestCountEvent("MatTCSend", &sent[4]));
  PetscCall(SameEntries(diagonal, &same_diagonal));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2] && same_diagonal), "values sent, %s matrix: diagonal, product and that of new values right", large ? "large" : "small"));
  if (large && sent[1] == sent[0]) PetscCall(MatTestSkip("values sent, large matrix: pinning does not pay on this machine"));
  else PetscCall(MatTestFact((PetscBool)(sent[1] - sent[0] == large && sent[2] == sent[1] && sent[3] - sent[2] == large && sent[4] == sent[3]), "values sent, %s matrix: pinned %d times for the diagonal, %d for a product then, %d for new values, %d once more", large ? "large" : "small", sent[1] - sent[0], sent[2] - sent[1], sent[3] - sent[2], sent[4] - sent[3]));
  for (int s = 0; s < 2; s++) {
    PetscCall(VecDestroy(&diagonal[s]));
    PetscCall(MatDestroy(&M[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
