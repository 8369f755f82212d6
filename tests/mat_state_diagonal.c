/*
  MatShift() and MatDiagonalSet(): the entries are those of a MATAIJ, bit for bit, and where the GPU has the values they stay there.
*/
#include "../src/petsc/compat.h" /* where the newer values are, which no public function tells */
#include "mat_state.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

typedef enum {
  FULL,    /* 7-point stencil */
  MISSING, /* the same, whose first row has no entry on the diagonal */
  WIDE,    /* more columns than rows */
  NUM_PATTERNS
} Pattern;

typedef enum {
  BOTH,  /* host and GPU have the values */
  GPU,   /* it alone */
  HOST,  /* it alone */
  BOUND, /* to the CPU */
  NUM_PLACES
} Place;

static const char *const pattern_names[NUM_PATTERNS] = {"full diagonal", "diagonal with a gap", "wide matrix"};
static const char *const place_names[NUM_PLACES]     = {"values on both sides", "values on the GPU", "values on the host", "bound to the CPU"};

static PetscErrorCode CreateMatrix(Pattern pattern, MatType type, Mat *A)
{
  enum { ROWS = 40, APART = 20 };

  tc_matrix S;

  PetscFunctionBeginUser;
  if (pattern == WIDE) {
    PetscCheck(tc_matrix_create(ROWS, ROWS + APART, 2 * ROWS, &S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
    for (int32_t i = 0; i < ROWS; i++) {
      S.row_ptr[i + 1] = 2 * (i + 1);
      S.col[2 * i]     = i;
      S.col[2 * i + 1] = i + APART;
      S.val[2 * i]     = 1.0 + i;
      S.val[2 * i + 1] = 0.5 * i;
    }
  } else PetscCall(MatTestGenerate("stencil7", 6, &S));
  for (int64_t e = 0; pattern == MISSING && e < S.row_ptr[1]; e++) S.col[e] = (int32_t)(S.num_rows - S.row_ptr[1] + e);
  PetscCall(MatTestCreate(&S, type, A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode StateMoveToHost(Mat A)
{
  Mat          block;
  PetscScalar *values;

  PetscFunctionBeginUser;
  PetscCall(MatTestBlock(A, &block));
  PetscCall(MatSeqAIJGetArray(block, &values));
  PetscCall(MatSeqAIJRestoreArray(block, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the values of A, which have been multiplied with, to where they are to be */
static PetscErrorCode MoveValues(Mat A, Place place)
{
  PetscFunctionBeginUser;
  if (place == GPU) PetscCall(MatScale(A, -0.75)); /* of every type, as for the other matrix */
  if (place == BOUND) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  if (place == HOST) PetscCall(StateMoveToHost(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatShift(), or MatDiagonalSet() with a vector of the matrix's kind or one of the host */
static PetscErrorCode Change(Mat A, int how)
{
  Vec left, on_host = NULL;

  PetscFunctionBeginUser;
  if (how == 0) PetscCall(MatShift(A, 0.3));
  if (how == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(A, NULL, &left));
  PetscCall(MatTestRandom(left, 41, NULL));
  if (how == 3) {
    PetscInt m;

    PetscCall(VecGetLocalSize(left, &m));
    PetscCall(VecCreate(PetscObjectComm((PetscObject)A), &on_host));
    PetscCall(VecSetSizes(on_host, m, PETSC_DECIDE));
    PetscCall(VecSetType(on_host, VECSTANDARD));
    PetscCall(VecCopy(left, on_host));
  }
  PetscCall(MatDiagonalSet(A, on_host ? on_host : left, how == 1 ? INSERT_VALUES : ADD_VALUES));
  PetscCall(VecDestroy(&left));
  PetscCall(VecDestroy(&on_host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckChange(Pattern pattern, Place place, int how, PetscBool fault)
{
  static const char *const names[] = {"MatShift", "MatDiagonalSet INSERT", "MatDiagonalSet ADD", "MatDiagonalSet ADD, vector of the host"};
  Mat                      A[2], block;
  PetscBool                cuda, same, product, on_gpu;
  int                      left = 0;

  PetscFunctionBeginUser;
  for (int s = 0; s < 2; s++) PetscCall(CreateMatrix(pattern, s ? MATAIJ : MATAIJTCCUSPARSE, &A[s]));
  PetscCall(MatTestIsCUDA(A[0], &cuda));
  PetscCall(MatTestSameProduct(A[0], A[1], &same));
  for (int s = 0; s < 2; s++) {
    PetscCall(MoveValues(A[s], place));
    PetscCall(MatTestBlock(A[s], &block));
    if (s == 0 && fault) PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 1, &left));
    PetscCall(Change(A[s], how));
    if (s == 0 && fault) PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 0, &left));
  }
  if (fault) PetscCall(MatTestFact((PetscBool)(left == 0), "%s, %s, %s: the launch that was to fail has failed", names[how], pattern_names[pattern], place_names[place]));
  PetscCall(MatTestBlock(A[0], &block));
  on_gpu = (PetscBool)!MatTCIsHostsAlone(block);
  if (cuda && pattern == FULL && (place == GPU || place == BOTH)) {
    PetscCall(MatTestFact((PetscBool)(on_gpu != fault), "%s, %s, %s%s: the values are on the %s", names[how], pattern_names[pattern], place_names[place], fault ? ", a launch fails" : "", fault ? "host" : "GPU"));
  }
  PetscCall(MatTestSameProduct(A[0], A[1], &product));
  PetscCall(MatEqual(A[0], A[1], &same));
  PetscCall(MatTestFact((PetscBool)(same && product), "%s, %s, %s%s: the entries are those of MATAIJ%s", names[how], pattern_names[pattern], place_names[place], fault ? ", a launch fails" : "", product ? "" : ", the product is WRONG"));
  for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&A[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckDiagonals(void)
{
  PetscBool cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  for (Pattern pattern = FULL; pattern < NUM_PATTERNS; pattern++) {
    for (Place place = BOTH; place < NUM_PLACES; place++) {
      for (int how = 0; how < 4; how++) PetscCall(CheckChange(pattern, place, how, PETSC_FALSE));
    }
  }
  if (cuda) {
    for (int how = 0; how < 4; how++) PetscCall(CheckChange(FULL, GPU, how, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
