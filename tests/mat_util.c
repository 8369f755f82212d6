#include "mat_util.h"
#include "../bench/matrix_market.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
  int passed, failed, skipped;
} count;

static const char defer[] = "-mat_aijtccusparse_defer";

PetscErrorCode MatTestBegin(int *argc, char ***args, const char help[])
{
  PetscBool given;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(argc, args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsHasName(NULL, NULL, defer, &given));
  if (!given) PetscCall(PetscOptionsSetValue(NULL, defer, "false"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int MatTestEnd(void)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d passed, %d failed, %d skipped\n", count.passed, count.failed, count.skipped));
  PetscCall(PetscFinalize());
  return count.failed > 0;
}

PetscErrorCode MatTestFact(PetscBool so, const char format[], ...)
{
  char    text[512];
  int     everywhere = so ? 1 : 0;
  va_list args;

  PetscFunctionBeginUser;
  va_start(args, format);
  PetscCall(PetscVSNPrintf(text, sizeof(text), format, NULL, args));
  va_end(args);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  if (everywhere) count.passed++;
  else count.failed++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s\n", everywhere ? "ok  " : "FAIL", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestSkip(const char format[], ...)
{
  char    text[512];
  va_list args;

  PetscFunctionBeginUser;
  va_start(args, format);
  PetscCall(PetscVSNPrintf(text, sizeof(text), format, NULL, args));
  va_end(args);
  count.skipped++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skip %s\n", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestCountEvent(const char name[], int *count)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
  *count = info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int is_matrix_file(const struct dirent *entry)
{
  const size_t length = strlen(entry->d_name);

  return (length > 4 && strcmp(entry->d_name + length - 4, ".mtx") == 0) || (length > 7 && strcmp(entry->d_name + length - 7, ".mtx.gz") == 0);
}

PetscErrorCode MatTestEachMatrix(PetscErrorCode (*check)(const char[], const tc_matrix *))
{
  const char          *folder = getenv("AIJTCCUSPARSE_MATRICES");
  const tc_generator  *generators;
  struct dirent      **files = NULL;
  int                  num, num_files = -1;

  PetscFunctionBeginUser;
  generators = tc_generators(&num);
  for (int i = 0; i < num; i++) {
    tc_matrix A;

    PetscCall(MatTestGenerate(generators[i].name, generators[i].tiny, &A));
    PetscCall(check(generators[i].name, &A));
    tc_matrix_free(&A);
  }
  if (folder) num_files = scandir(folder, &files, is_matrix_file, alphasort);
  if (num_files <= 0) PetscCall(MatTestSkip("matrices from files: %s", folder ? "AIJTCCUSPARSE_MATRICES names a folder without any" : "AIJTCCUSPARSE_MATRICES is not set"));
  for (int i = 0; i < num_files; i++) {
    char      path[PETSC_MAX_PATH_LEN];
    tc_matrix A;

    PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name));
    PetscCheck(tc_matrix_market_read(path, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s", tc_last_error());
    MatTestRound(A.nnz, A.val);
    PetscCall(check(files[i]->d_name, &A));
    tc_matrix_free(&A);
    free(files[i]);
  }
  free(files);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestGenerate(const char name[], PetscInt size, tc_matrix *A)
{
  const tc_generator *generator = tc_generator_find(name);

  PetscFunctionBeginUser;
  PetscCheck(generator, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No generator named %s", name);
  PetscCheck(tc_generate(generator, (int32_t)size, 1, A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  MatTestRound(A->nnz, A->val);
  PetscFunctionReturn(PETSC_SUCCESS);
}

tc_matrix MatTestLocalRows(const tc_matrix *A, PetscInt first, PetscInt end)
{
  tc_matrix L = *A;

  L.num_rows = (int32_t)(end - first);
  L.row_ptr  = A->row_ptr + first;
  return L;
}

PetscErrorCode MatTestCreate(const tc_matrix *A, MatType type, Mat *M)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreateBlocked(A, type, 1, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestCreateBlocked(const tc_matrix *A, MatType type, PetscInt bs, Mat *M)
{
  PetscInt    rstart, rend, cstart, cend, *diag, *offdiag, *cols;
  PetscScalar *vals;
  PetscInt64  longest = 0;
  PetscLayout rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, M));
  PetscCall(MatSetSizes(*M, PETSC_DECIDE, PETSC_DECIDE, A->num_rows, A->num_cols));
  PetscCall(MatSetType(*M, type));
  if (bs > 1) PetscCall(MatSetBlockSize(*M, bs));
  PetscCall(MatGetLayouts(*M, &rows, &columns));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutSetUp(columns));
  PetscCall(PetscLayoutGetRange(rows, &rstart, &rend));
  PetscCall(PetscLayoutGetRange(columns, &cstart, &cend));
  PetscCall(PetscCalloc2(rend - rstart, &diag, rend - rstart, &offdiag));
  for (PetscInt i = rstart; i < rend; i++) {
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; e++) {
      if (A->col[e] >= cstart && A->col[e] < cend) diag[i - rstart]++;
      else offdiag[i - rstart]++;
    }
    longest = PetscMax(longest, A->row_ptr[i + 1] - A->row_ptr[i]);
  }
  PetscCall(MatSeqAIJSetPreallocation(*M, 0, diag));
  PetscCall(MatMPIAIJSetPreallocation(*M, 0, diag, 0, offdiag));
  PetscCall(PetscFree2(diag, offdiag));
  PetscCall(PetscMalloc2(longest, &cols, longest, &vals));
  for (PetscInt i = rstart; i < rend; i++) {
    const int64_t first = A->row_ptr[i];
    const PetscInt num  = (PetscInt)(A->row_ptr[i + 1] - first);

    for (PetscInt k = 0; k < num; k++) {
      cols[k] = A->col[first + k];
      vals[k] = A->val[first + k];
    }
    PetscCall(MatSetValues(*M, 1, &i, num, cols, vals, INSERT_VALUES));
  }
  PetscCall(PetscFree2(cols, vals));
  PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestRandom(Vec x, uint64_t seed, double **global)
{
  PetscInt     n, first, end;
  PetscScalar *array;
  double      *all;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(x, &n));
  PetscCall(VecGetOwnershipRange(x, &first, &end));
  all = (double *)malloc(((size_t)n + 1) * sizeof(*all));
  PetscCheck(all, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for %" PetscInt_FMT " numbers", n);
  tc_random_normal(n, seed, all);
  MatTestRound(n, all);
  PetscCall(VecGetArrayWrite(x, &array));
  for (PetscInt i = first; i < end; i++) array[i - first] = all[i];
  PetscCall(VecRestoreArrayWrite(x, &array));
  if (global) *global = all;
  else free(all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestPoison(Vec y)
{
  PetscInt     n;
  PetscScalar *array;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(y, &n));
  PetscCall(VecGetArrayWrite(y, &array));
  for (PetscInt i = 0; i < n; i++) array[i] = NAN;
  PetscCall(VecRestoreArrayWrite(y, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of the local rows, columns global */
static PetscErrorCode LocalRowsOf(Mat B, tc_matrix *L)
{
  PetscInt first, end, n;
  int64_t  nnz = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, NULL, &n));
  PetscCall(MatGetOwnershipRange(B, &first, &end));
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) PetscCheck(tc_matrix_create((int32_t)(end - first), (int32_t)n, nnz, L) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
    for (PetscInt i = first; i < end; i++) {
      PetscInt           num;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(B, i, &num, &cols, &vals));
      if (pass == 0) nnz += num;
      else {
        int64_t at = L->row_ptr[i - first];

        for (PetscInt k = 0; k < num; k++, at++) {
          L->col[at] = (int32_t)cols[k];
          L->val[at] = PetscRealPart(vals[k]);
        }
        L->row_ptr[i - first + 1] = at;
      }
      PetscCall(MatRestoreRow(B, i, &num, &cols, &vals));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of the local columns, as rows of the transpose, columns global: what products with the transpose need of all processes */
static PetscErrorCode LocalColumnsOf(Mat B, tc_matrix *L)
{
  Mat T;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &T));
  PetscCall(LocalRowsOf(T, L));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  PRODUCT,
  RESIDUAL,       /* in place */
  RESIDUAL_APART, /* into another vector, and copied */
  TRANSPOSE_PRODUCT
} ProductKind;

/* y = A x, y = y - A x or y = A^T x, where the vectors hold random numbers x and y */
static PetscErrorCode Multiply(Mat A, ProductKind kind, Vec x, Vec y)
{
  Vec z = y;

  PetscFunctionBeginUser;
  if (kind == RESIDUAL_APART) PetscCall(VecDuplicate(y, &z));
  if (kind != RESIDUAL) PetscCall(MatTestPoison(z));
  if (kind == RESIDUAL || kind == RESIDUAL_APART) PetscCall(MatResidual(A, y, x, z));
  else PetscCall((kind == PRODUCT ? MatMult : MatMultTranspose)(A, x, z));
  if (z != y) PetscCall(VecCopy(z, y));
  if (z != y) PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameProduct(Mat A, Mat B, ProductKind kind, PetscBool *same)
{
  const Mat    mats[2]     = {A, B};
  const int    is_residual = kind == RESIDUAL || kind == RESIDUAL_APART, num = kind == RESIDUAL ? 1 : 2; /* MATAIJ's own overwrites the right-hand side before it subtracts from that */
  PetscMPIInt  size;
  tc_matrix    L;
  double      *global, *rhs;
  long double *ref, *bound;

  PetscFunctionBeginUser;
  *same = PETSC_TRUE;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall((kind == TRANSPOSE_PRODUCT ? LocalColumnsOf : LocalRowsOf)(B, &L));
  PetscCall(PetscMalloc2(L.num_rows, &ref, L.num_rows, &bound));
  for (int64_t e = 0; e < L.nnz && is_residual; e++) L.val[e] = -L.val[e];
  for (int m = 0; m < num; m++) {
    Vec                x, y;
    const int          extra = kind == TRANSPOSE_PRODUCT ? size : is_residual ? 2 : 1; /* a row lies in two blocks, a column on all processes: that many more roundings at most */
    const PetscScalar *array;
    double            *result;
    PetscInt           first;

    PetscCall(kind == TRANSPOSE_PRODUCT ? MatCreateVecs(mats[m], &y, &x) : MatCreateVecs(mats[m], &x, &y));
    PetscCall(MatTestRandom(x, 7, &global));
    PetscCall(MatTestRandom(y, 8, &rhs));
    PetscCall(VecGetOwnershipRange(y, &first, NULL));
    PetscCall(Multiply(mats[m], kind, x, y));
    tc_oracle_spmv(&L, global, is_residual ? rhs + first : NULL, extra, ref, bound);
    MatTestAddRounding(&L, global, is_residual ? rhs + first : NULL, extra, PETSC_FALSE, bound);
    PetscCall(VecGetArrayRead(y, &array));
    PetscCall(MatTestWiden(L.num_rows, array, &result));
    if (!(tc_error_over_bound(L.num_rows, result, ref, bound) <= 1)) *same = PETSC_FALSE;
    PetscCall(PetscFree(result));
    PetscCall(VecRestoreArrayRead(y, &array));
    free(global);
    free(rhs);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscCall(PetscFree2(ref, bound));
  tc_matrix_free(&L);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestSameProduct(Mat A, Mat B, PetscBool *same)
{
  PetscFunctionBeginUser;
  PetscCall(SameProduct(A, B, PRODUCT, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestSameResidual(Mat A, Mat B, PetscBool *same)
{
  PetscFunctionBeginUser;
  PetscCall(SameProduct(A, B, RESIDUAL, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestSameResidualApart(Mat A, Mat B, PetscBool *same)
{
  PetscFunctionBeginUser;
  PetscCall(SameProduct(A, B, RESIDUAL_APART, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestSameTransposeProduct(Mat A, Mat B, PetscBool *same)
{
  PetscFunctionBeginUser;
  PetscCall(SameProduct(A, B, TRANSPOSE_PRODUCT, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestBlock(Mat A, Mat *block)
{
  PetscBool mpi;

  PetscFunctionBeginUser;
  *block = A;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, block, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetCounts(Mat A, PetscBool transpose, MatTestCounts *counts)
{
  PetscBool ours;
  Mat       block;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(counts, sizeof(*counts)));
  PetscCall(MatTestBlock(A, &block));
  PetscCall(PetscObjectGetId((PetscObject)block, &counts->id));
  PetscCall(MatIsAIJTCCUSPARSE(block, &ours));
  if (ours) PetscCall((transpose ? MatAIJTCCUSPARSEGetTransposeCounters : MatAIJTCCUSPARSEGetCounters)(block, &counts->hits, &counts->refills, &counts->rebuilds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestGetCounts(Mat A, MatTestCounts *counts)
{
  PetscFunctionBeginUser;
  PetscCall(GetCounts(A, PETSC_FALSE, counts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestGetTransposeCounts(Mat A, MatTestCounts *counts)
{
  PetscFunctionBeginUser;
  PetscCall(GetCounts(A, PETSC_TRUE, counts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool CountsAre(const MatTestCounts *now, PetscInt64 hits, PetscInt64 refills, PetscInt64 rebuilds, MatTestVerdict verdict)
{
  return (PetscBool)(now->hits - hits == (verdict == MATTEST_HIT) && now->refills - refills == (verdict == MATTEST_REFILL) && now->rebuilds - rebuilds == (verdict == MATTEST_REBUILD));
}

static PetscErrorCode ProductCounts(Mat A, Mat B, PetscBool transpose, MatTestVerdict verdict, MatTestCounts *before, const char what[])
{
  static const char *const names[] = {"hit", "refill", "rebuild", "product"};
  MatTestCounts            now;
  PetscBool                same, counted;

  PetscFunctionBeginUser;
  PetscCall(SameProduct(A, B, transpose ? TRANSPOSE_PRODUCT : PRODUCT, &same));
  PetscCall(GetCounts(A, transpose, &now));
  counted = CountsAre(&now, before->hits, before->refills, before->rebuilds, verdict);
  if (now.id != before->id && CountsAre(&now, 0, 0, 0, verdict)) counted = PETSC_TRUE; /* a new object, which counts from zero */
  PetscCall(MatTestFact((PetscBool)(same && (counted || verdict == MATTEST_ANY)),
                        "%s%s: %s expected, product %s, now %" PetscInt64_FMT " hits %" PetscInt64_FMT " refills %" PetscInt64_FMT " rebuilds, before %" PetscInt64_FMT
                        " %" PetscInt64_FMT " %" PetscInt64_FMT,
                        what, transpose ? ", transpose" : "", names[verdict], same ? "right" : "WRONG", now.hits, now.refills, now.rebuilds, before->hits, before->refills, before->rebuilds));
  *before = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestProductCounts(Mat A, Mat B, MatTestVerdict verdict, MatTestCounts *before, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(ProductCounts(A, B, PETSC_FALSE, verdict, before, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestTransposeCounts(Mat A, Mat B, MatTestVerdict verdict, MatTestCounts *before, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(ProductCounts(A, B, PETSC_TRUE, verdict, before, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}
