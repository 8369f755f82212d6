/*
  One matrix on two streams that do not wait for each other, as PETSc's device contexts have them.
*/
#include "mat_ops.h"
#include <petscdevice.h>

enum {
  NUM_STREAMS = 2,
  ROUNDS      = 50,
  ROWS        = 150000,
  LONGER      = 1 << 24 /* entries of vectors that take the device longer than the host needs for two products */
};

/* The product of each stream has the bits that it has alone. Both come to the device behind passes over long vectors, which end at about the same time, so that products are side by side if they may be. */
PetscErrorCode CheckStreams(void)
{
  tc_matrix          S;
  Mat                A;
  Vec                x[NUM_STREAMS], y[NUM_STREAMS], alone[NUM_STREAMS], before[NUM_STREAMS];
  PetscDevice        device;
  PetscDeviceContext root, context[NUM_STREAMS];
  PetscMPIInt        size;
  PetscBool          cuda, equal, same[NUM_STREAMS];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  if (!cuda || size > 1) {
    PetscCall(MatTestSkip("products on two streams: one process with a GPU only"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestGenerate("dense_row", ROWS, &S)); /* whose segments are added up by the last one to arrive */
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  tc_matrix_free(&S);
  PetscCall(PetscDeviceContextGetCurrentContext(&root));
  PetscCall(PetscDeviceContextGetDevice(root, &device));
  for (int i = 0; i < NUM_STREAMS; i++) {
    PetscCall(MatCreateVecs(A, &x[i], &y[i]));
    PetscCall(VecDuplicate(y[i], &alone[i]));
    PetscCall(MatTestRandom(x[i], (uint64_t)(31 + i), NULL));
    PetscCall(MatMult(A, x[i], alone[i]));
    PetscCall(MatMult(A, x[i], y[i])); /* so that all arrays are on the device */
    PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, LONGER, &before[i]));
    PetscCall(VecSet(before[i], 0));
    same[i] = PETSC_TRUE;
    PetscCall(PetscDeviceContextCreate(&context[i]));
    PetscCall(PetscDeviceContextSetDevice(context[i], device));
    PetscCall(PetscDeviceContextSetStreamType(context[i], PETSC_STREAM_NONBLOCKING));
    PetscCall(PetscDeviceContextSetUp(context[i]));
  }
  PetscCall(PetscDeviceContextSynchronize(root));
  for (int r = 0; r < ROUNDS; r++) {
    for (int i = 0; i < 2 * NUM_STREAMS; i++) {
      const int s = i % NUM_STREAMS;

      PetscCall(PetscDeviceContextSetCurrentContext(context[s]));
      if (i < NUM_STREAMS) PetscCall(VecShift(before[s], 1));
      else PetscCall(MatMult(A, x[s], y[s]));
    }
    PetscCall(PetscDeviceContextSetCurrentContext(root));
    for (int i = 0; i < NUM_STREAMS; i++) {
      PetscCall(PetscDeviceContextSynchronize(context[i]));
      PetscCall(VecEqual(y[i], alone[i], &equal));
      if (!equal) same[i] = PETSC_FALSE;
    }
  }
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1]), "%d products on each of two streams: %s, %s", ROUNDS, same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG"));
  for (int i = 0; i < NUM_STREAMS; i++) {
    PetscCall(PetscDeviceContextDestroy(&context[i]));
    PetscCall(VecDestroy(&x[i]));
    PetscCall(VecDestroy(&y[i]));
    PetscCall(VecDestroy(&alone[i]));
    PetscCall(VecDestroy(&before[i]));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
