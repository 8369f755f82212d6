/*
  Matrices of a DM, which puts functions of its own over those of the type: what is shown of the matrix, of copies and parts of it and of what it is converted to, and what
  is loaded into it, is what the same matrix of type MATAIJ gives; and what -help shows. In parallel a DMDA shows and loads matrices in its natural order.
*/
#define _GNU_SOURCE /* mkstemp() */
#include "mat_util.h"
#include <petscdmda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char help[] = "Tests matrices of MATAIJTCCUSPARSE that a DM makes.\n\n";

static PetscErrorCode Grid(MatType type, DM *dm)
{
  PetscFunctionBeginUser;
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_PERIODIC, DMDA_STENCIL_STAR, 7, 6, PETSC_DECIDE, PETSC_DECIDE, 2, 1, NULL, NULL, dm));
  PetscCall(DMSetMatType(*dm, type));
  PetscCall(DMSetUp(*dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small whole numbers, by the place in the grid */
static PetscErrorCode Fill(DM dm, Mat A)
{
  DMDALocalInfo info;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(dm, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      for (PetscInt c = 0; c < info.dof; c++) {
        const MatStencil  row    = {.i = i, .j = j, .c = c};
        const MatStencil  col[3] = {{.i = i, .j = j, .c = c}, {.i = i, .j = j, .c = 1 - c}, {.i = i + 1 < info.mx ? i + 1 : -1, .j = j, .c = c}};
        const PetscScalar val[3] = {100 + 10 * j + i, -1 - c, 2 + j};

        PetscCall(MatSetValuesStencil(A, 1, &row, 3, col, val, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do both show the same rows? The first process has them, behind a line that names the type */
static PetscErrorCode Compare(const char what[], Mat ours, Mat plain)
{
  char       *text[2];
  PetscMPIInt rank;
  PetscBool   same;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (int m = 0; m < 2; m++) PetscCall(MatTestViewText(m ? plain : ours, PETSC_VIEWER_ASCII_COMMON, &text[m]));
  same = (PetscBool)(text[0] && text[1]);
  if (same && rank == 0) {
    const char *rows[2] = {strstr(text[0], "row"), strstr(text[1], "row")};

    same = (PetscBool)(rows[0] && rows[1] && !strcmp(rows[0], rows[1]));
  }
  PetscCall(MatTestFact(same, "%s: %s", what, same ? "shown in rows" : text[0] ? "OTHER ROWS" : "CANNOT BE SHOWN"));
  for (int m = 0; m < 2; m++) free(text[m]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  THE_MATRIX,
  A_COPY,
  A_COPY_OF_THE_PATTERN,
  CONVERTED_TO_AIJ,
  CONVERTED_TO_OURS, /* by MatDuplicate(), as PETSc's converters to derived types do it */
  A_PART,
  NUM_KINDS
} Kind;

static const char *const names[] = {"the matrix", "a copy", "a copy of the pattern", "converted to MATAIJ", "converted to our type", "a part"};

static PetscErrorCode Derive(Mat A, PetscBool ours, Kind kind, Mat *B)
{
  PetscInt first, end;
  IS       rows;

  PetscFunctionBeginUser;
  if (kind == THE_MATRIX) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *B = A;
  } else if (kind == CONVERTED_TO_AIJ) PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B));
  else if (kind == CONVERTED_TO_OURS && ours) PetscCall(MatConvert(A, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, B));
  else if (kind != A_PART) PetscCall(MatDuplicate(A, kind == A_COPY_OF_THE_PATTERN ? MAT_DO_NOT_COPY_VALUES : MAT_COPY_VALUES, B));
  else {
    PetscCall(MatGetOwnershipRange(A, &first, &end));
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - first + 1) / 2, first, 2, &rows));
    PetscCall(MatCreateSubMatrix(A, rows, rows, MAT_INITIAL_MATRIX, B));
    PetscCall(ISDestroy(&rows));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Written by the one, loaded into matrices of both. On several processes PETSc makes a new matrix, by the type name, of what it loads for a DMDA; on the host that is a plain one (docs/design.md). */
static PetscErrorCode TestLoad(const DM dm[2], Mat written)
{
  char        folder[PETSC_MAX_PATH_LEN], name[PETSC_MAX_PATH_LEN], options[PETSC_MAX_PATH_LEN]; // PETSc writes those of the matrix into a file beside it
  int         fd     = 0;
  PetscMPIInt rank;
  PetscViewer viewer;
  Mat         B[2];
  PetscBool   same, cuda, ours;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscGetTmp(PETSC_COMM_WORLD, folder, sizeof(folder)));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/mat_dm.XXXXXX", folder));
  if (rank == 0) fd = mkstemp(name);
  PetscCheck(fd >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No file %s", name);
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(written, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  for (int m = 0; m < 2; m++) {
    PetscCall(DMCreateMatrix(dm[m], &B[m]));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(B[m], viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(Compare("loaded into a matrix of the DM", B[0], B[1]));
  PetscCall(MatTestSameProduct(B[0], B[1], &same));
  PetscCall(MatTestFact(same, "loaded into a matrix of the DM: products %s", same ? "agree" : "DIFFER"));
  PetscCall(MatTestSameProduct(written, B[1], &same)); /* the one that was not loaded is ours anywhere */
  PetscCall(MatTestFact(same, "the matrix of the DM that was written: products %s", same ? "agree" : "DIFFER"));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B[0], &cuda, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(MatIsAIJTCCUSPARSE(B[0], &ours));
  if (cuda) PetscCall(MatTestFact(ours, "loaded into a matrix of the DM: %s", ours ? "ours" : "PLAIN"));
  for (int m = 0; m < 2; m++) PetscCall(MatDestroy(&B[m]));
  if (rank == 0) {
    close(fd);
    unlink(name);
    PetscCall(PetscSNPrintf(options, sizeof(options), "%s.info", name));
    unlink(options);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int shown;

/* In place of PetscHelpPrintf(): how many options of ours does it show? */
static PetscErrorCode CountOptions(MPI_Comm comm, const char format[], ...)
{
  char    text[8 * PETSC_MAX_PATH_LEN];
  size_t  length;
  va_list values;

  PetscFunctionBeginUser;
  (void)comm;
  va_start(values, format);
  PetscCall(PetscVSNPrintf(text, sizeof(text), format, &length, values));
  va_end(values);
  if (strstr(text, " -mat_aijtccusparse_")) shown++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -help has our options, too, where the type is set before MatSetFromOptions(). For the first matrix of the program: PETSc shows the options of a prefix once. */
static PetscErrorCode TestHelp(DM dm)
{
  PetscErrorCode (*const usual)(MPI_Comm, const char[], ...) = PetscHelpPrintf;
  Mat A;

  PetscFunctionBeginUser;
  PetscHelpPrintf = CountOptions;
  PetscCall(PetscOptionsSetValue(NULL, "-help", NULL));
  PetscCall(DMCreateMatrix(dm, &A));
  PetscCall(PetscOptionsClearValue(NULL, "-help"));
  PetscHelpPrintf = usual;
  PetscCall(MatTestFact((PetscBool)(shown == 15), "-help shows %d options of ours, expected 15", shown));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  const MatType types[2] = {MATAIJTCCUSPARSE, MATAIJ};
  DM            dm[2];
  Mat           A[2];

  PetscCall(MatTestBegin(&argc, &args, help));
  for (int m = 0; m < 2; m++) {
    PetscCall(Grid(types[m], &dm[m]));
    if (m == 0) PetscCall(TestHelp(dm[m]));
    PetscCall(DMCreateMatrix(dm[m], &A[m]));
    PetscCall(Fill(dm[m], A[m]));
  }
  for (int kind = 0; kind < NUM_KINDS; kind++) {
    Mat B[2];

    for (int m = 0; m < 2; m++) PetscCall(Derive(A[m], (PetscBool)(m == 0), (Kind)kind, &B[m]));
    PetscCall(Compare(names[kind], B[0], B[1]));
    for (int m = 0; m < 2; m++) PetscCall(MatDestroy(&B[m]));
  }
  PetscCall(TestLoad(dm, A[0]));
  for (int m = 0; m < 2; m++) {
    PetscCall(MatDestroy(&A[m]));
    PetscCall(DMDestroy(&dm[m]));
  }
  return MatTestEnd();
}
