#include "mat_defer.h"

/* 40 products with a matrix of this name and size */
static PetscErrorCode Products(const char name[], PetscInt size, PetscInt64 *straight, PetscBool *host)
{
  tc_matrix S;
  Mat       A;
  Vec       x, y;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate(name, size, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatAIJTCCUSPARSESetDefer(A, PETSC_TRUE));
  tc_matrix_free(&S);
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int i = 0; i < 40; i++) PetscCall(MatMult(A, x, y));
  PetscCall(MatAIJTCCUSPARSEGetStraightProducts(A, straight));
  PetscCall(MatTestIsCUDA(A, host));
  *host = (PetscBool)!*host;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDeferTestLengths(void)
{
  PetscInt64  irregular, regular;
  PetscMPIInt size;
  PetscBool   host;

  PetscFunctionBeginUser;
  PetscCall(Products("circuit", 3000, &irregular, &host));
  PetscCall(Products("stencil7", 14, &regular, &host));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1 || !host || !PetscDefined(USE_REAL_DOUBLE)) PetscCall(MatTestSkip("lengths of rows: one block on the host, in double precision"));
  else PetscCall(MatTestFact((PetscBool)(1 < irregular && irregular < 20 && regular == 40), "of 40 products %" PetscInt64_FMT " straight from CSR where lengths of rows do not repeat, %" PetscInt64_FMT " where they do", irregular, regular));
  PetscFunctionReturn(PETSC_SUCCESS);
}
