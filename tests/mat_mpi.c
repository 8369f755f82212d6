/*
  Both blocks of a parallel matrix are ours after every way to assemble it, empty processes included, and so are matrices derived from it.
*/
#include "mat_mpi.h"
#include <petscksp.h>

static char help[] = "Tests the blocks of MATMPIAIJTCCUSPARSE.\n\n";

/* Are the matrix and its blocks ours on every process? And is the product right, twice, and then the residual and the product with the transpose? */
static PetscErrorCode CheckOurs(Mat A, Mat plain, const char what[])
{
  Mat       blocks[2] = {NULL, NULL};
  PetscBool ours, mpi, same, again, residual, transpose, all = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatTestSameProduct(A, plain, &same));
  PetscCall(MatTestSameProduct(A, plain, &again));
  PetscCall(MatTestSameResidual(A, plain, &residual));
  PetscCall(MatTestSameTransposeProduct(A, plain, &transpose));
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int b = 0; b < 2 && mpi; b++) {
    PetscBool block_ours;

    PetscCall(MatIsAIJTCCUSPARSE(blocks[b], &block_ours));
    if (!block_ours) all = PETSC_FALSE;
  }
  PetscCall(MatTestFact((PetscBool)(same && again && residual && transpose && ours && all), "%s: product %s, residual %s, with the transpose %s, %s, blocks %s", what, same && again ? "right" : "WRONG",
                        residual ? "right" : "WRONG", transpose ? "right" : "WRONG", ours ? "ours" : "NOT OURS", !mpi ? "none" : all ? "ours" : "NOT OURS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddRows(Mat A, const tc_matrix *S)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    for (int64_t e = S->row_ptr[i]; e < S->row_ptr[i + 1]; e++) PetscCall(MatSetValue(A, i, S->col[e], S->val[e], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewMatrix(const tc_matrix *S, PetscInt local, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, local, S->num_rows == S->num_cols ? local : PETSC_DECIDE, S->num_rows, S->num_cols));
  PetscCall(MatSetType(*A, MATAIJTCCUSPARSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates of the local rows; values set twice */
static PetscErrorCode SetCoordinates(Mat A, const tc_matrix *S, PetscBool preallocate, double factor)
{
  PetscInt     first, end, *rows, *cols;
  PetscCount   num, used = 0;
  PetscScalar *vals;

  PetscFunctionBeginUser;
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  num = (PetscCount)(S->row_ptr[end] - S->row_ptr[first]);
  PetscCall(PetscMalloc3(num, &rows, num, &cols, num, &vals));
  for (PetscInt i = first; i < end; i++) {
    for (int64_t e = S->row_ptr[i]; e < S->row_ptr[i + 1]; e++, used++) {
      rows[used] = i;
      cols[used] = S->col[e];
      vals[used] = factor * S->val[e];
    }
  }
  if (preallocate) PetscCall(MatSetPreallocationCOO(A, num, rows, cols));
  PetscCall(MatSetValuesCOO(A, vals, INSERT_VALUES));
  PetscCall(PetscFree3(rows, cols, vals));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestAssembly(const char name[], const tc_matrix *S, PetscInt local)
{
  Mat           A, B, plain;
  MatTestCounts counts = {0};
  char          what[128];

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &plain));
  PetscCall(MatSetSizes(plain, local, S->num_rows == S->num_cols ? local : PETSC_DECIDE, S->num_rows, S->num_cols));
  PetscCall(MatSetType(plain, MATAIJ));
  PetscCall(AddRows(plain, S));

  PetscCall(NewMatrix(S, local, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, S->num_cols, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, S->num_cols, NULL, S->num_cols, NULL));
  PetscCall(AddRows(A, S));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, preallocated", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, duplicate", name));
  PetscCall(CheckOurs(B, plain, what));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));

  PetscCall(NewMatrix(S, local, &A));
  PetscCall(AddRows(A, S));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, hash assembly", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(AddRows(A, S));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, hash assembly, values set again", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatResetHash(A));
  PetscCall(AddRows(A, S));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, hash assembly, reset", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatDestroy(&A));

  PetscCall(NewMatrix(S, local, &A));
  PetscCall(SetCoordinates(A, S, PETSC_TRUE, 1));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, coordinates", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatTestGetCounts(A, &counts));
  PetscCall(SetCoordinates(A, S, PETSC_FALSE, -2));
  PetscCall(MatScale(plain, -2));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, coordinates, new values", name));
  PetscCall(MatTestProductCounts(A, plain, MATTEST_REFILL, &counts, what));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatDestroy(&A));

  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, &A));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, converted from MATAIJ", name));
  PetscCall(CheckOurs(A, plain, what));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All rows on the last process */
static PetscErrorCode TestEmptyProcesses(const tc_matrix *S)
{
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestAssembly("all rows on the last process", S, rank == size - 1 ? S->num_rows : 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parallel type on one process, and type names given twice before assembly */
static PetscErrorCode TestNames(const tc_matrix *S)
{
  static const char *const names[] = {MATAIJTCCUSPARSE, MATSEQAIJTCCUSPARSE, MATMPIAIJTCCUSPARSE};
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(names); t++) {
    Mat  A, plain;
    char what[64];

    if (t == 1 && size > 1) {
      PetscCall(MatTestSkip("type %s: one process only", names[t]));
      continue;
    }
    PetscCall(MatTestCreate(S, t == 2 ? MATMPIAIJ : MATAIJ, &plain));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, S->num_rows, S->num_cols));
    PetscCall(MatSetType(A, names[t]));
    PetscCall(MatSetType(A, names[t]));
    PetscCall(AddRows(A, S));
    PetscCall(PetscSNPrintf(what, sizeof(what), "type %s, set twice", names[t]));
    PetscCall(CheckOurs(A, plain, what));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&plain));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packing ahead of the first product where PETSc has made the blocks another type, as on the host it can be told to: those are multiplied as they are */
static PetscErrorCode TestOtherBlocks(const tc_matrix *S)
{
  Mat       A, plain;
  PetscBool cuda, same[3];

  PetscFunctionBeginUser;
  PetscCall(MatTestHasCUDA(&cuda));
  if (cuda) {
    PetscCall(MatTestSkip("-mat_seqaij_type: MATMPIAIJCUSPARSE is not made for it"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestCreate(S, MATAIJ, &plain));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", MATSEQAIJPERM));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_eager", NULL));
  PetscCall(MatTestCreate(S, MATMPIAIJTCCUSPARSE, &A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtccusparse_eager"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscCall(MatTestSameProduct(A, plain, &same[0]));
  PetscCall(MatTestSameResidual(A, plain, &same[1]));
  PetscCall(MatTestSameTransposeProduct(A, plain, &same[2]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2]), "eager, -mat_seqaij_type " MATSEQAIJPERM ": product %s, residual %s, with the transpose %s", same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The coarse operators of multigrid are ours where the GPU's types are; on the host they stay MATAIJ */
static PetscErrorCode TestCoarseOperators(void)
{
  tc_matrix S;
  Mat       A, coarse;
  KSP       ksp, level;
  PC        pc;
  PetscInt  levels;
  PetscBool cuda, ours, all = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 16, &S));
  for (int64_t e = 0; e < S.nnz; e++) S.val[e] = -1;
  for (int32_t i = 0; i < S.num_rows; i++) {
    for (int64_t e = S.row_ptr[i]; e < S.row_ptr[i + 1]; e++) {
      if (S.col[e] == i) S.val[e] = 6;
    }
  }
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  tc_matrix_free(&S);
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 0; l < levels; l++) {
    PetscCall(PCMGGetSmoother(pc, l, &level));
    PetscCall(KSPGetOperators(level, &coarse, NULL));
    PetscCall(MatIsAIJTCCUSPARSE(coarse, &ours));
    if (!ours) all = PETSC_FALSE;
  }
  if (cuda) PetscCall(MatTestFact((PetscBool)(all && levels > 1), "GAMG: operators of all %" PetscInt_FMT " levels are ours", levels));
  else PetscCall(MatTestSkip("GAMG: coarse operators are ours on the GPU only"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  static const char *const names[] = {"stencil27", "ragged", "dense_row", "wide", "tall", "all_empty", "one_entry"};
  tc_matrix                S;

  PetscCall(MatTestBegin(&argc, &args, help));
  for (size_t n = 0; n < PETSC_STATIC_ARRAY_LENGTH(names); n++) {
    PetscCall(MatTestGenerate(names[n], tc_generator_find(names[n])->tiny, &S));
    PetscCall(TestAssembly(names[n], &S, PETSC_DECIDE));
    tc_matrix_free(&S);
  }
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(TestEmptyProcesses(&S));
  PetscCall(TestNames(&S));
  PetscCall(TestOtherBlocks(&S));
  tc_matrix_free(&S);
  PetscCall(TestCoarseOperators());
  PetscCall(TestExchange());
  return MatTestEnd();
}
