/*
  usebench - what programs do with a matrix between products: new values or a new matrix, followed by one product or a few. The same program with the parent type tells what ours gives, by the clock of
  the host, one process, the device idle at both ends of a group.
*/
static char help[] = "Times uses of a matrix of the type that -mat_type names.\n\
  -case <a,b>    : generator:size, see tcbench list\n\
  -use <a,b>     : only those with these words in their names\n\
  -beside <file> : what another run wrote: how many times as fast is this one?\n\n";

#include "bench_timer.h"
#include "generators.h"
#include <math.h>
#include <petscksp.h>
#include <petscmataijtccusparse.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST   = 16,
  GROUPS = 9, /* of what is timed, ... */
  FEW    = 3, /* ... where a use is long */
  WARM   = 50 /* short uses, ahead of what is timed: what is chosen by then is what is timed */
};

static const double group_ms = 4, long_ms = 4; /* a group; from which on a use is long */

/* A matrix, and what its uses need */
typedef struct {
  tc_matrix    S;
  PetscInt    *row, *col; /* of every entry */
  Vec          values;
  const PetscScalar *val; /* its array, where the matrix multiplies */
  Mat          A, same, transpose, P;
  Vec          x, y, scale, row_of_p, col_of_p; /* the last of P^T A P */
  IS           half;
  KSP          ksp;
  PetscInt     on_diagonal; /* entries */
  PetscInt     num_rows, *rows; /* to be zeroed */
} Use;

/* A new matrix, as from MatSetPreallocationCOO() */
static PetscErrorCode NewMatrix(Use *U, Mat *A)
{
  PetscInt *row, *col;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(U->S.nnz, &row, U->S.nnz, &col)); /* PETSc overwrites them */
  PetscCall(PetscArraycpy(row, U->row, U->S.nnz));
  PetscCall(PetscArraycpy(col, U->col, U->S.nnz));
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, U->S.num_rows, U->S.num_cols, U->S.num_rows, U->S.num_cols));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetPreallocationCOO(*A, (PetscCount)U->S.nnz, row, col));
  PetscCall(MatSetValuesCOO(*A, U->val, INSERT_VALUES));
  PetscCall(PetscFree2(row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Use *U, Mat A, int products)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < products; i++) PetscCall(MatMult(A, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a matrix that goes */
static PetscErrorCode MultiplyOnce(Use *U, Mat *A, int products)
{
  PetscFunctionBeginUser;
  PetscCall(Multiply(U, *A, products));
  PetscCall(MatDestroy(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Use *U, int n)
{
  PetscFunctionBeginUser;
  for (int i = 0; i < n; i++) PetscCall(MatMultTranspose(U->A, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ScaleTransposed(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(Transposed(U, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What TS does with the Jacobian of a right-hand side */
static PetscErrorCode Shift(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(U->A, 1.0000001));
  PetscCall(MatShift(U->A, 1e-9));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatDiagonalScale(U->A, U->scale, U->scale));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatAXPY(U->A, 1e-9, U->same, SAME_NONZERO_PATTERN));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValues(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetValuesCOO(U->A, U->val, INSERT_VALUES));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatCopy(U->same, U->A, SAME_NONZERO_PATTERN));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Duplicate(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(U->same, MAT_COPY_VALUES, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(NewMatrix(U, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(U->same, MAT_INITIAL_MATRIX, &A));
  PetscCall(MultiplyOnce(U, &A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeKept(Use *U, int n)
{
  PetscFunctionBeginUser;
  if (!U->transpose) PetscCall(MatTranspose(U->same, MAT_INITIAL_MATRIX, &U->transpose));
  PetscCall(Multiply(U, U->transpose, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Use *U, int n)
{
  Mat A;
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSubMatrix(U->same, U->half, U->half, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int i = 0; i < n; i++) PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P adds up four neighbours */
static PetscErrorCode PtAP(Use *U, int n)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatPtAP(U->same, U->P, MAT_INITIAL_MATRIX, PETSC_CURRENT, &A));
  if (!U->row_of_p) PetscCall(MatCreateVecs(A, &U->col_of_p, &U->row_of_p));
  for (int i = 0; i < n; i++) PetscCall(MatMult(A, U->col_of_p, U->row_of_p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of Richardson's method, with Jacobi's preconditioner */
static PetscErrorCode Solve(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetValuesCOO(U->A, U->val, INSERT_VALUES));
  PetscCall(KSPSetOperators(U->ksp, U->A, U->A));
  PetscCall(KSPSetTolerances(U->ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, n));
  PetscCall(KSPSolve(U->ksp, U->x, U->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No diagonal, which not every matrix has room for: where new entries are allowed, PETSc (3.26.1, MATAIJ, too) ends in a segmentation fault when it adds one to a matrix made by MatSetPreallocationCOO() */
static PetscErrorCode ZeroRows(Use *U, int n)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroRows(U->A, U->num_rows, U->rows, 0.0, NULL, NULL));
  PetscCall(Multiply(U, U->A, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last one changes the pattern for good */
static const struct {
  const char *name;
  PetscErrorCode (*use)(Use *, int);
  int       n;        /* products */
  PetscBool diagonal; /* every row has to have an entry on it */
} uses[] = {
  {"MatMult",                                Product,         1,  PETSC_FALSE},
  {"MatMultTranspose",                       Transposed,      1,  PETSC_FALSE},
  {"MatScale, MatMult",                      Scale,           1,  PETSC_FALSE},
  {"MatScale, 10 MatMult",                   Scale,           10, PETSC_FALSE},
  {"MatScale, MatMultTranspose",             ScaleTransposed, 1,  PETSC_FALSE},
  {"MatScale, MatShift, MatMult",            Shift,           1,  PETSC_TRUE },
  {"MatDiagonalScale, MatMult",              DiagonalScale,   1,  PETSC_FALSE},
  {"MatAXPY, MatMult",                       AXPY,            1,  PETSC_FALSE},
  {"MatSetValuesCOO, MatMult",               SetValues,       1,  PETSC_FALSE},
  {"MatSetValuesCOO, 30 iterations",         Solve,           30, PETSC_FALSE},
  {"MatCopy, MatMult",                       Copy,            1,  PETSC_FALSE},
  {"MatDuplicate, MatMult",                  Duplicate,       1,  PETSC_FALSE},
  {"MatDuplicate, 10 MatMult",               Duplicate,       10, PETSC_FALSE},
  {"new matrix, MatMult",                    New,             1,  PETSC_FALSE},
  {"new matrix, 20 MatMult",                 New,             20, PETSC_FALSE},
  {"MatTranspose, MatMult",                  Transpose,       1,  PETSC_FALSE},
  {"MatMult with what MatTranspose() gave",  TransposeKept,   1,  PETSC_FALSE},
  {"MatCreateSubMatrix, MatMult",            SubMatrix,       1,  PETSC_FALSE},
  {"MatPtAP, MatMult",                       PtAP,            1,  PETSC_FALSE},
  {"MatZeroRows, MatMult",                   ZeroRows,        1,  PETSC_FALSE},
};

/* Values, where the matrix multiplies, and rows and columns of every entry */
static PetscErrorCode UseCreateEntries(Use *U)
{
  const PetscInt nnz = (PetscInt)U->S.nnz;
  PetscScalar   *host;
  PetscMemType   type;
  VecType        vec_type;
  Mat            A;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(nnz, &U->row, nnz, &U->col));
  for (int32_t i = 0; i < U->S.num_rows; i++) {
    for (int64_t e = U->S.row_ptr[i]; e < U->S.row_ptr[i + 1]; e++) {
      U->row[e] = i;
      U->col[e] = U->S.col[e];
      if (U->col[e] == i) U->on_diagonal++;
    }
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGetVecType(A, &vec_type));
  PetscCall(VecCreate(PETSC_COMM_SELF, &U->values));
  PetscCall(VecSetSizes(U->values, nnz, nnz));
  PetscCall(VecSetType(U->values, vec_type));
  PetscCall(VecGetArrayWrite(U->values, &host));
  for (PetscInt e = 0; e < nnz; e++) host[e] = (PetscScalar)U->S.val[e];
  PetscCall(VecRestoreArrayWrite(U->values, &host));
  PetscCall(VecGetArrayReadAndMemType(U->values, &U->val, &type));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UseCreate(const char name[], Use *U)
{
  PetscInt m;
  PC       pc;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(U, sizeof(*U)));
  PetscCheck(tc_generate_named(name, 1, &U->S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case %s", tc_last_error());
  PetscCheck(U->S.num_rows == U->S.num_cols, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "-case %s: as many rows as columns expected", name);
  PetscCall(UseCreateEntries(U));
  PetscCall(NewMatrix(U, &U->A));
  PetscCall(NewMatrix(U, &U->same));
  PetscCall(MatGetSize(U->A, &m, NULL));
  PetscCall(MatCreateVecs(U->A, &U->x, &U->y));
  PetscCall(VecDuplicate(U->x, &U->scale));
  PetscCall(VecSet(U->x, 1.5));
  PetscCall(VecSet(U->scale, 1.0000001));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m / 2, 0, 1, &U->half));
  U->num_rows = m / 50;
  PetscCall(PetscMalloc1(U->num_rows, &U->rows));
  for (PetscInt i = 0; i < U->num_rows; i++) U->rows[i] = 50 * i;
  PetscCall(MatCreate(PETSC_COMM_SELF, &U->P));
  PetscCall(MatSetSizes(U->P, m, m / 4 + 1, m, m / 4 + 1));
  PetscCall(MatSetFromOptions(U->P));
  PetscCall(MatSeqAIJSetPreallocation(U->P, 1, NULL));
  for (PetscInt i = 0; i < m; i++) PetscCall(MatSetValue(U->P, i, i / 4, 1, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(U->P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(U->P, MAT_FINAL_ASSEMBLY));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &U->ksp));
  PetscCall(KSPSetType(U->ksp, KSPRICHARDSON)); /* no values end it early, */
  PetscCall(KSPRichardsonSetScale(U->ksp, 1e-3)); /* and none overflow */
  PetscCall(KSPSetNormType(U->ksp, KSP_NORM_NONE));
  PetscCall(KSPSetConvergenceTest(U->ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPGetPC(U->ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UseDestroy(Use *U)
{
  PetscFunctionBeginUser;
  PetscCall(VecRestoreArrayReadAndMemType(U->values, &U->val));
  PetscCall(VecDestroy(&U->values));
  PetscCall(MatDestroy(&U->A));
  PetscCall(MatDestroy(&U->same));
  PetscCall(MatDestroy(&U->transpose));
  PetscCall(MatDestroy(&U->P));
  PetscCall(VecDestroy(&U->x));
  PetscCall(VecDestroy(&U->y));
  PetscCall(VecDestroy(&U->scale));
  PetscCall(VecDestroy(&U->row_of_p));
  PetscCall(VecDestroy(&U->col_of_p));
  PetscCall(ISDestroy(&U->half));
  PetscCall(KSPDestroy(&U->ksp));
  PetscCall(PetscFree(U->rows));
  PetscCall(PetscFree2(U->row, U->col));
  tc_matrix_free(&U->S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Milliseconds of a use, median of groups */
static PetscErrorCode Time(Use *U, size_t u, PetscBool device, double *ms)
{
  double group[GROUPS], begin, spread;
  int    repeats, groups;

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) PetscCall((*uses[u].use)(U, uses[u].n));
  bench_synchronize(device);
  begin = bench_wall();
  PetscCall((*uses[u].use)(U, uses[u].n));
  bench_synchronize(device);
  *ms     = 1e3 * (bench_wall() - begin);
  repeats = (int)fmax(1, fmin(100, group_ms / *ms));
  groups  = *ms < long_ms ? GROUPS : FEW;
  for (int i = 0; i < WARM && *ms < long_ms; i++) PetscCall((*uses[u].use)(U, uses[u].n));
  for (int g = 0; g < groups; g++) {
    bench_synchronize(device);
    begin = bench_wall();
    for (int i = 0; i < repeats; i++) PetscCall((*uses[u].use)(U, uses[u].n));
    bench_synchronize(device);
    group[g] = 1e3 * (bench_wall() - begin) / repeats;
  }
  *ms = bench_median(groups, group, &spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the other run took for that use of that case; 0: it does not say */
static PetscErrorCode Look(FILE *file, const char name[], const char use[], double *ms)
{
  char line[512], *at[2];

  PetscFunctionBeginUser;
  *ms = 0;
  if (!file) PetscFunctionReturn(PETSC_SUCCESS);
  rewind(file);
  while (*ms == 0 && fgets(line, sizeof(line), file)) {
    at[0] = strchr(line, '\t');
    at[1] = at[0] ? strchr(at[0] + 1, '\t') : NULL;
    if (!at[1]) continue;
    *at[0] = *at[1] = '\0';
    if (strcmp(line, name) == 0 && strcmp(at[0] + 1, use) == 0) *ms = atof(at[1] + 1);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With none of `words` all are wanted */
static PetscBool IsWanted(const char use[], PetscInt num, char *words[])
{
  for (PetscInt i = 0; i < num; i++) {
    if (strstr(use, words[i])) return PETSC_TRUE;
  }
  return (PetscBool)(num == 0);
}

int main(int argc, char **args)
{
  char     *cases[MOST], *words[MOST], device_name[256], path[PETSC_MAX_PATH_LEN];
  PetscInt  num = MOST, num_words = MOST, shown = 0;
  PetscBool device, set;
  FILE     *beside = NULL;

  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", cases, &num, &set));
  PetscCheck(set, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case generator:size,... says what to time");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-use", words, &num_words, &set));
  if (!set) num_words = 0;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-beside", path, sizeof(path), &set));
  if (set) {
    beside = fopen(path, "r");
    PetscCheck(beside, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-beside %s cannot be read", path);
  }
  device = (PetscBool)bench_device(device_name);
  for (PetscInt c = 0; c < num; c++) {
    Use U;

    PetscCall(UseCreate(cases[c], &U));
    for (size_t u = 0; u < PETSC_STATIC_ARRAY_LENGTH(uses); u++) {
      double ms = 0, other;

      if (!IsWanted(uses[u].name, num_words, words) || (uses[u].diagonal && U.on_diagonal < U.S.num_rows)) continue;
      PetscCall(Time(&U, u, device, &ms));
      PetscCall(Look(beside, cases[c], uses[u].name, &other));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%s\t%.4f", cases[c], uses[u].name, ms));
      PetscCall(other > 0 ? PetscPrintf(PETSC_COMM_SELF, "\t%.2fx\n", other / ms) : PetscPrintf(PETSC_COMM_SELF, "\n"));
      shown++;
    }
    PetscCall(UseDestroy(&U));
    PetscCall(PetscFree(cases[c]));
  }
  PetscCheck(shown > 0, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "Nothing to time: no use of these matrices has a word of -use in its name, %s for one", num_words > 0 ? words[0] : "");
  for (PetscInt i = 0; i < num_words; i++) PetscCall(PetscFree(words[i]));
  if (beside) fclose(beside);
  PetscCall(PetscFinalize());
  return 0;
}
