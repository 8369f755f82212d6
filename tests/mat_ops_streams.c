/*
  One matrix on two streams that do not wait for each other, as PETSc's device contexts have them; and a parallel one, whose ghost values travel by another stream than its products.
*/
#include "mat_ops.h"
#include <petscdevice.h>

enum {
  NUM_STREAMS = 2,
  ROUNDS      = 50,
  ROWS        = 150000,
  LONGER      = 1 << 24, /* entries of vectors that take the device longer than the host needs for two products */
  NUM_VALUES  = 2,
  COLUMNS     = 3
};

static PetscErrorCode CreateContext(PetscDevice device, PetscDeviceContext *context)
{
  PetscFunctionBeginUser;
  PetscCall(PetscDeviceContextCreate(context));
  PetscCall(PetscDeviceContextSetDevice(*context, device));
  PetscCall(PetscDeviceContextSetStreamType(*context, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(*context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  VECTOR,
  VECTOR_TRANSPOSE,
  BLOCK,
  BLOCK_TRANSPOSE,
  NUM_KINDS
} Kind;

/* The product of that kind with `source`, which is copied into the vector or every column of the block first, all in the current context */
static PetscErrorCode Multiply(Mat A, Kind kind, Vec source, Vec x, Vec y, Mat B, Mat *C)
{
  const MatReuse reuse = *C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

  PetscFunctionBeginUser;
  if (kind == VECTOR || kind == VECTOR_TRANSPOSE) {
    PetscCall(VecCopy(source, x));
    PetscCall((kind == VECTOR ? MatMult : MatMultTranspose)(A, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt j = 0; j < COLUMNS; j++) {
    Vec column;

    PetscCall(MatDenseGetColumnVecWrite(B, j, &column));
    PetscCall(VecCopy(source, column));
    PetscCall(MatDenseRestoreColumnVecWrite(B, j, &column));
  }
  PetscCall((kind == BLOCK ? MatMatMult : MatTransposeMatMult)(A, B, reuse, PETSC_CURRENT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the result, in y or in all columns of C, that? */
static PetscErrorCode IsResult(Vec y, Mat C, Vec expected, PetscBool *same)
{
  PetscFunctionBeginUser;
  if (!C) PetscCall(VecEqual(y, expected, same));
  else *same = PETSC_TRUE;
  for (PetscInt j = 0; C && j < COLUMNS; j++) {
    Vec       column;
    PetscBool equal;

    PetscCall(MatDenseGetColumnVecRead(C, j, &column));
    PetscCall(VecEqual(column, expected, &equal));
    PetscCall(MatDenseRestoreColumnVecRead(C, j, &column));
    if (!equal) *same = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products of a parallel matrix in a context of its own have the bits that they have in the root context, whose stream PETSc exchanges ghost values by: what is multiplied comes behind a pass over a
  long vector, with other values each time, so that whoever does not wait for it sees the values before.
*/
static PetscErrorCode CheckParallel(void)
{
  static const char *const names[] = {"A x", "A^T x", "A B", "A^T B"};
  tc_matrix                S;
  Mat                      A, B, C[NUM_KINDS] = {NULL};
  Vec                      x, y, before, source[NUM_VALUES], expected[NUM_KINDS][NUM_VALUES];
  PetscDevice              device;
  PetscDeviceContext       root, context;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil27", 24, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  tc_matrix_free(&S);
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, LONGER, &before));
  PetscCall(VecSet(before, 0));
  {
    PetscInt m, M;
    VecType  type;

    PetscCall(VecGetLocalSize(x, &m));
    PetscCall(VecGetSize(x, &M));
    PetscCall(VecGetType(x, &type));
    PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, type, m, PETSC_DECIDE, M, COLUMNS, -1, NULL, &B));
  }
  for (int v = 0; v < NUM_VALUES; v++) {
    PetscCall(VecDuplicate(x, &source[v]));
    PetscCall(MatTestRandom(source[v], (uint64_t)(51 + v), NULL));
  }
  for (int k = 0; k < NUM_KINDS; k++) {
    for (int v = 0; v < NUM_VALUES; v++) {
      PetscCall(VecDuplicate(y, &expected[k][v]));
      PetscCall(Multiply(A, (Kind)k, source[v], x, y, B, &C[k]));
      if (k == BLOCK || k == BLOCK_TRANSPOSE) {
        Vec column;

        PetscCall(MatDenseGetColumnVecRead(C[k], 0, &column));
        PetscCall(VecCopy(column, expected[k][v]));
        PetscCall(MatDenseRestoreColumnVecRead(C[k], 0, &column));
      } else PetscCall(VecCopy(y, expected[k][v]));
    }
  }
  PetscCall(PetscDeviceContextGetCurrentContext(&root));
  PetscCall(PetscDeviceContextGetDevice(root, &device));
  PetscCall(CreateContext(device, &context));
  PetscCall(PetscDeviceContextSynchronize(root));
  for (int k = 0; k < NUM_KINDS; k++) {
    PetscBool right = PETSC_TRUE, same;

    for (int r = 0; r < ROUNDS; r++) {
      PetscCall(PetscDeviceContextSetCurrentContext(context));
      PetscCall(VecShift(before, 1));
      PetscCall(Multiply(A, (Kind)k, source[r % NUM_VALUES], x, y, B, &C[k]));
      PetscCall(PetscDeviceContextSetCurrentContext(root));
      PetscCall(PetscDeviceContextSynchronize(context));
      PetscCall(IsResult(y, C[k], expected[k][r % NUM_VALUES], &same));
      if (!same) right = PETSC_FALSE;
    }
    PetscCall(MatTestFact(right, "%d products %s in a context of their own: %s", ROUNDS, names[k], right ? "right" : "WRONG"));
    PetscCall(MatDestroy(&C[k]));
    for (int v = 0; v < NUM_VALUES; v++) PetscCall(VecDestroy(&expected[k][v]));
  }
  PetscCall(PetscDeviceContextDestroy(&context));
  for (int v = 0; v < NUM_VALUES; v++) PetscCall(VecDestroy(&source[v]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&before));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  if (!cuda) {
    PetscCall(MatTestSkip("products on several streams: on a GPU only"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(CheckParallel());
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
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
    PetscCall(CreateContext(device, &context[i]));
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
