/*
  Submatrices and transposes used again: the entries are those of a MATAIJ, bit for bit, and where the GPU has the values of the matrix it writes those of the part.
*/
#include "../src/petsc/compat.h" /* where the newer values are, which no public function tells */
#include "mat_state.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

typedef enum {
  TRANSPOSE,
  LOWER,    /* the first half of the rows of each process, and such columns */
  FIELD,    /* every second one */
  REVERSED, /* the last one first, but for the first row */
  SEVERAL,  /* by MatCreateSubMatrices(): the lower half, every second one */
  NUM_PARTS
} Part;

typedef enum {
  GPU,   /* has the values alone */
  HOST,  /* has them alone, and the matrix has been multiplied with */
  BOUND, /* to the CPU */
  NUM_PLACES
} Place;

static const char *const part_names[NUM_PARTS]   = {"transpose", "lower half", "every second row", "reversed", "MatCreateSubMatrices()"};
static const char *const place_names[NUM_PLACES] = {"values on the GPU", "values on the host", "bound to the CPU"};

static PetscErrorCode CreateIndices(Mat A, Part part, IS *is)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt       first, end, num;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  num = end - first;
  if (part == LOWER) PetscCall(ISCreateStride(comm, num / 2, first, 1, is));
  else if (part == FIELD) PetscCall(ISCreateStride(comm, (num + 1) / 2, first, 2, is));
  else {
    PetscInt *index;

    num = PetscMax(num - 1, 0);
    PetscCall(PetscMalloc1(num, &index));
    for (PetscInt i = 0; i < num; i++) index[i] = end - 1 - i;
    PetscCall(ISCreateGeneral(comm, num, index, PETSC_OWN_POINTER, is));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is made of A, anew or again */
typedef struct {
  Part part;
  int  num;
  IS   is[2];
  Mat  B[2];
} Made;

static PetscErrorCode MadeCreate(Mat A, Part part, Made *M)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(M, sizeof(*M)));
  M->part = part;
  M->num  = part == SEVERAL ? 2 : 1;
  for (int i = 0; i < M->num && part != TRANSPOSE; i++) PetscCall(CreateIndices(A, part == SEVERAL ? (i ? FIELD : LOWER) : part, &M->is[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MadeDestroy(Made *M)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(ISDestroy(&M->is[i]));
    PetscCall(MatDestroy(&M->B[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(Mat A, MatReuse reuse, Made *M)
{
  PetscFunctionBeginUser;
  if (M->part == TRANSPOSE) PetscCall(MatTranspose(A, reuse, &M->B[0]));
  else if (M->part == SEVERAL) {
    Mat *B = M->B;

    PetscCall(MatCreateSubMatrices(A, M->num, M->is, M->is, reuse, &B));
    for (int i = 0; i < M->num && reuse == MAT_INITIAL_MATRIX; i++) M->B[i] = B[i];
    if (reuse == MAT_INITIAL_MATRIX) PetscCall(PetscFree(B));
  } else PetscCall(MatCreateSubMatrix(A, M->is[0], M->is[0], reuse, &M->B[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the GPU the only one to have the values of what was made, or of its diagonal block? */
static PetscErrorCode IsDevicesAlone(const Made *M, PetscBool *alone)
{
  Mat block;

  PetscFunctionBeginUser;
  *alone = PETSC_TRUE;
  for (int i = 0; i < M->num; i++) {
    PetscCall(MatTestBlock(M->B[i], &block));
    if (!MatTCIsDevicesAlone(block)) *alone = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IsSame(Made M[2], PetscBool *same)
{
  PetscFunctionBeginUser;
  *same = PETSC_TRUE;
  for (int i = 0; i < M[0].num; i++) {
    PetscBool equal, product;

    PetscCall(MatTestSameProduct(M[0].B[i], M[1].B[i], &product));
    PetscCall(MatEqual(M[0].B[i], M[1].B[i], &equal));
    if (!equal || !product) *same = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other values of A, which then are where they are to be */
static PetscErrorCode ChangeValues(Mat A, Place place, PetscScalar by)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, by));
  PetscCall(MatShift(A, 0.5)); /* else a factor could pass for another one */
  if (place == BOUND) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  if (place == HOST) PetscCall(StateMoveToHost(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An entry more in the first row, which moves all others, but is in no part: rows of a process are an even number, and no new column of an off-diagonal block moves those that the parent knows */
static PetscErrorCode AddEntry(Mat A)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  if (first == 0 && end > 0) PetscCall(MatSetValue(A, 0, end - 1, 4.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckPart(Part part, Place place, int fault)
{
  static const char *const faults[] = {"", ", an allocation fails", ", an upload fails", ", a launch fails"};
  static const tc_fault_point points[] = {TC_FAULT_ALLOC, TC_FAULT_ALLOC, TC_FAULT_UPLOAD, TC_FAULT_LAUNCH};
  tc_matrix                S;
  Mat                      A[2], block;
  Made                     M[2];
  PetscBool                cuda, same, alone;
  int                      left = 0;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatTestCreate(&S, s ? MATAIJ : MATAIJTCCUSPARSE, &A[s]));
    PetscCall(MatSetOption(A[s], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MadeCreate(A[s], part, &M[s]));
    PetscCall(Make(A[s], MAT_INITIAL_MATRIX, &M[s]));
  }
  tc_matrix_free(&S);
  PetscCall(MatTestIsCUDA(A[0], &cuda));
  PetscCall(MatTestSameProduct(A[0], A[1], &same));
  PetscCall(IsSame(M, &same));
  for (int step = 0; step < 4; step++) {
    const PetscBool fails = (PetscBool)(fault && step == 1);

    for (int s = 0; s < 2; s++) {
      if (s == 0 && fails) {
        PetscCall(MadeDestroy(&M[s])); /* so that places are looked for */
        PetscCall(MadeCreate(A[s], part, &M[s]));
        PetscCall(Make(A[s], MAT_INITIAL_MATRIX, &M[s]));
      }
      PetscCall(ChangeValues(A[s], place, 0.75 + step));
      if (step == 3 && part != TRANSPOSE) PetscCall(AddEntry(A[s]));
      PetscCall(MatTestBlock(A[s], &block));
      if (s == 0 && fails) PetscCall(MatAIJTCCUSPARSEArmFault(block, points[fault], 1, &left));
      PetscCall(Make(A[s], MAT_REUSE_MATRIX, &M[s]));
      if (s == 0 && fails) PetscCall(MatAIJTCCUSPARSEArmFault(block, points[fault], 0, &left));
    }
    if (fails) PetscCall(MatTestFact((PetscBool)(left == 0), "%s, %s%s: what was to fail has failed", part_names[part], place_names[place], faults[fault]));
    PetscCall(IsDevicesAlone(&M[0], &alone));
    if (cuda && place != BOUND && step < (fault ? 2 : 3)) PetscCall(MatTestFact((PetscBool)(alone != fails), "%s, %s%s, time %d: written by the %s", part_names[part], place_names[place], fails ? faults[fault] : "", step, fails ? "host" : "GPU"));
    PetscCall(IsSame(M, &same));
    PetscCall(MatTestFact(same, "%s, %s%s, time %d: the entries are those of MATAIJ", part_names[part], place_names[place], fails ? faults[fault] : "", step));
  }
  for (int s = 0; s < 2; s++) {
    PetscCall(MadeDestroy(&M[s]));
    PetscCall(MatDestroy(&A[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other rows and columns with the same pattern, by other indices and by the same ones with another content; sequential, since the parallel parent goes by the first ones */
static PetscErrorCode CheckOtherIndices(void)
{
  PetscInt  index[2][108];
  tc_matrix S;
  Mat       A[2];
  Made      M[2];
  IS        other;
  PetscBool same[3];

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < 108; i++) {
    index[0][i] = i;
    index[1][i] = 108 + i; /* planes of 36 */
  }
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatTestCreate(&S, s ? MATAIJ : MATAIJTCCUSPARSE, &A[s]));
    PetscCall(MadeCreate(A[s], LOWER, &M[s]));
    PetscCall(ISDestroy(&M[s].is[0]));
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 108, index[0], PETSC_COPY_VALUES, &M[s].is[0]));
    PetscCall(Make(A[s], MAT_INITIAL_MATRIX, &M[s]));
  }
  tc_matrix_free(&S);
  PetscCall(MatTestSameProduct(A[0], A[1], &same[0]));
  for (int time = 0; time < 3; time++) {
    for (int s = 0; s < 2; s++) {
      PetscCall(ChangeValues(A[s], GPU, 1.25));
      if (time == 0) PetscCall(Make(A[s], MAT_REUSE_MATRIX, &M[s])); /* on the host places are looked for the second time */
      if (time == 1) {
        PetscCall(ISDuplicate(M[s].is[0], &other));
        PetscCall(ISGeneralSetIndices(other, 108, index[1], PETSC_COPY_VALUES));
        PetscCall(ISDestroy(&M[s].is[0]));
        M[s].is[0] = other;
      }
      if (time == 2) PetscCall(ISGeneralSetIndices(M[s].is[0], 108, index[0], PETSC_COPY_VALUES));
      PetscCall(Make(A[s], MAT_REUSE_MATRIX, &M[s]));
    }
    PetscCall(IsSame(M, &same[time]));
  }
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2]), "the same indices: %s, others: %s, those with another content: %s", same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG"));
  for (int s = 0; s < 2; s++) {
    PetscCall(MadeDestroy(&M[s]));
    PetscCall(MatDestroy(&A[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckParts(void)
{
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  for (Part part = TRANSPOSE; part < NUM_PARTS; part++) {
    if (size > 1 && (part == TRANSPOSE || part == SEVERAL)) continue; /* the parent's */
    for (Place place = GPU; place < NUM_PLACES; place++) PetscCall(CheckPart(part, place, 0));
    for (int fault = 1; fault < 4 && cuda; fault++) PetscCall(CheckPart(part, GPU, fault));
  }
  if (size == 1) PetscCall(CheckOtherIndices());
  PetscFunctionReturn(PETSC_SUCCESS);
}
