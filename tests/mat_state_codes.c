/*
  Values of a large matrix that repeat: when it has been multiplied with often enough they become codes of 16 bits, which changes no bit of a product. New values are seen at once, and get theirs.
*/
#include "mat_state.h"

enum { MANY = 140 }; /* products: more than a plan waits for, and then as many that the next values need not wait longer */

static PetscErrorCode MultiplyOften(Mat A, Vec x, Vec z)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < MANY; i++) PetscCall(MatMult(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On one process. Trilinear elements of two materials: 469 different values, 9 million entries */
PetscErrorCode CheckCodes(void)
{
  tc_matrix   S;
  Mat         M[2];
  Vec         x, first, later;
  PetscBool   cuda, coded[4], same[3];
  PetscMPIInt size;
  int         collections[3];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  if (!cuda || size > 1 || PetscDefined(USE_REAL_SINGLE)) {
    PetscCall(MatTestSkip("codes of 16 bits: for one process with a GPU, in double precision"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestGenerate("ex56", 33, &S));
  for (int s = 0; s < 2; s++) PetscCall(MatTestCreate(&S, s ? MATAIJ : MATAIJTCCUSPARSE, &M[s]));
  tc_matrix_free(&S);
  PetscCall(MatCreateVecs(M[0], &x, &first));
  PetscCall(VecDuplicate(first, &later));
  PetscCall(MatTestRandom(x, 7, NULL));
  PetscCall(MatMult(M[0], x, first));
  PetscCall(MatTestViewHas(M[0], "d16 ", &coded[0]));
  PetscCall(MatTestCountEvent("MatTCCollect", &collections[0]));
  PetscCall(MultiplyOften(M[0], x, later));
  PetscCall(MatTestViewHas(M[0], "d16 ", &coded[1]));
  PetscCall(MatTestCountEvent("MatTCCollect", &collections[1]));
  PetscCall(VecEqual(first, later, &same[0]));
  for (int s = 0; s < 2; s++) PetscCall(MatScale(M[s], 3.0));
  PetscCall(MatTestSameProduct(M[0], M[1], &same[1]));
  PetscCall(MatTestViewHas(M[0], "d16 ", &coded[2]));
  PetscCall(MultiplyOften(M[0], x, later));
  PetscCall(MatTestViewHas(M[0], "d16 ", &coded[3]));
  PetscCall(MatTestCountEvent("MatTCCollect", &collections[2]));
  PetscCall(MatTestSameProduct(M[0], M[1], &same[2]));
  PetscCall(MatTestFact((PetscBool)(!coded[0] && coded[1]), "codes of 16 bits: %s at first, %s after many products", coded[0] ? "there" : "none", coded[1] ? "there" : "NONE"));
  PetscCall(MatTestFact(same[0], "codes of 16 bits: the same bits as without"));
  PetscCall(MatTestFact((PetscBool)(same[1] && !coded[2]), "codes of 16 bits: new values are seen"));
  PetscCall(MatTestFact((PetscBool)(same[2] && coded[3]), "codes of 16 bits: of new values, %s after many products", coded[3] ? "there" : "NONE"));
  PetscCall(MatTestFact((PetscBool)(collections[0] == 0 && collections[1] == 1 && collections[2] == 2), "codes of 16 bits: the log has %d, %d and %d events", collections[0], collections[1], collections[2]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&first));
  PetscCall(VecDestroy(&later));
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&M[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
