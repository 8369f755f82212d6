/*
  Products whose numbers of entries, or of elements of dense matrices, are close to or beyond what 32 bits count, if asked for; small ones else. All numbers are integers small enough that
  every sum is exact in whatever order, so that results are compared with ==. Each process has matrices of its own.

  On a GPU with 140 GB by hand: docs/testing.md
*/
#include "mat_util.h"

static char help[] = "Tests MATAIJTCCUSPARSE with large matrices, if asked for.\n\n";

enum { ROWS, COLUMNS, NUM_SIDES }; /* of the matrix */

/* A x and A^T x for x[i] = i % REST, and for x of ones: what columns of blocks x + j come to is a multiple of these more */
enum { REST = 61 };

typedef struct {
  PetscInt     m, row, n; /* rows, entries of a row at most, columns of dense matrices */
  PetscInt    *i, *j;
  PetscScalar *a;
  PetscScalar *product[NUM_SIDES], *ones[NUM_SIDES];
} Large;

static uint64_t mixed(uint64_t x)
{
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 32;
  return x * 0xd6e8feb86659fd93u;
}

/* Entry k of row r: in a band, where columns need no more than a byte, or anywhere, where they need 32 bits. Returns whether there is one. */
static PetscBool Entry(const Large *L, PetscBool scattered, PetscInt r, PetscInt k, PetscInt *column, PetscScalar *value)
{
  const int      bits  = PetscDefined(USE_REAL_SINGLE) ? 10 : 40; /* more than a float holds, where there may be */
  const uint64_t x     = mixed((uint64_t)r * (uint64_t)L->row + (uint64_t)k);
  const PetscInt width = PetscMax(L->m / L->row, 1);

  *column = scattered ? width * k + (PetscInt)((x & 0xffffffffu) * (uint64_t)width >> 32) : r + 3 * (k - L->row / 2);
  *value  = (PetscScalar)(1 + (x >> (64 - bits)));
  return (PetscBool)(*column >= 0 && *column < L->m);
}

static PetscErrorCode Generate(Large *L, PetscBool scattered)
{
  PetscInt nnz = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc3(L->m + 1, &L->i, L->m * L->row, &L->j, L->m * L->row, &L->a));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(PetscCalloc2(L->m, &L->product[s], L->m, &L->ones[s]));
  L->i[0] = 0;
  for (PetscInt r = 0; r < L->m; r++) {
    for (PetscInt k = 0; k < L->row; k++) {
      PetscInt    c;
      PetscScalar v;

      if (!Entry(L, scattered, r, k, &c, &v)) continue;
      L->j[nnz]   = c;
      L->a[nnz++] = v;
      L->product[ROWS][r] += v * (PetscScalar)(c % REST);
      L->ones[ROWS][r] += v;
      L->product[COLUMNS][c] += v * (PetscScalar)(r % REST);
      L->ones[COLUMNS][c] += v;
    }
    L->i[r + 1] = nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(Large *L)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree3(L->i, L->j, L->a));
  for (int s = 0; s < NUM_SIDES; s++) PetscCall(PetscFree2(L->product[s], L->ones[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const Large *L, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, L->m, L->m, L->i, L->j, L->a, A));
  PetscCall(MatConvert(*A, MATSEQAIJTCCUSPARSE, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of the type of the matrix with these numbers; NULL: x */
static PetscErrorCode Filled(Mat A, const PetscScalar *numbers, Vec *v)
{
  PetscScalar *array;
  PetscInt     m;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, NULL, v));
  PetscCall(VecGetLocalSize(*v, &m));
  PetscCall(VecGetArrayWrite(*v, &array));
  for (PetscInt r = 0; r < m; r++) array[r] = numbers ? numbers[r] : (PetscScalar)(r % REST);
  PetscCall(VecRestoreArrayWrite(*v, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is `result` product + j * ones? `work` is overwritten. The sum of magnitudes, since the largest one of a GPU's vector may be that of numbers alone where others are NaN. */
static PetscErrorCode Equal(Vec result, Vec product, Vec ones, PetscInt j, Vec work, PetscBool *same)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(work, (PetscScalar)j, ones, product));
  PetscCall(VecAXPY(work, -1.0, result));
  PetscCall(VecNorm(work, NORM_1, &norm));
  if (norm != 0) *same = PETSC_FALSE; /* NaN, too */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A x in every arithmetic of the hybrid format, which is the GPU's, and A^T x */
static PetscErrorCode TestVectors(const Large *L, const char where[])
{
  Mat        A;
  Vec        x, y, product, ones, work;
  PetscInt64 products, rebuilds;
  PetscBool  same;

  PetscFunctionBeginUser;
  PetscCall(Create(L, &A));
  PetscCall(MatAIJTCCUSPARSESetSpMV(A, MAT_AIJTCCUSPARSE_SPMV_HYBRID));
  PetscCall(Filled(A, NULL, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &work));
  for (int side = 0; side < NUM_SIDES; side++) {
    const PetscBool turned = (PetscBool)(side == COLUMNS);

    PetscCall(Filled(A, L->product[side], &product));
    PetscCall(Filled(A, L->ones[side], &ones));
    for (int each = 0; each < (turned ? 1 : 3); each++) {
      same = PETSC_TRUE;
      PetscCall(MatAIJTCCUSPARSESetArithmetic(A, (MatAIJTCCUSPARSEArithmetic)each));
      PetscCall(MatTestPoison(y));
      PetscCall((turned ? MatMultTranspose : MatMult)(A, x, y));
      PetscCall(Equal(y, product, ones, 0, work, &same));
      PetscCall((turned ? MatAIJTCCUSPARSEGetTransposeCounters : MatAIJTCCUSPARSEGetCounters)(A, &products, NULL, &rebuilds));
      PetscCall(MatTestFact((PetscBool)(same && rebuilds > 0), "%s, %" PetscInt_FMT " entries, %s, %s: %s", where, L->i[L->m], turned ? "A^T x" : "A x", MatAIJTCCUSPARSEArithmetics[each], !same ? "WRONG" : rebuilds > 0 ? "right" : "NOT OURS"));
    }
    PetscCall(VecDestroy(&product));
    PetscCall(VecDestroy(&ones));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&work));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, whose column j is x + j, or its transpose, which is filled on the host, since its columns are many and short */
static PetscErrorCode CreateBlock(const Large *L, Mat A, PetscBool cuda, PetscBool turned, Mat *B)
{
  Vec x, column;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, B));
  PetscCall(MatSetSizes(*B, turned ? L->n : L->m, turned ? L->m : L->n, turned ? L->n : L->m, turned ? L->m : L->n));
  PetscCall(MatSetType(*B, cuda ? "seqdensecuda" : MATSEQDENSE));
  PetscCall(MatSetUp(*B));
  if (turned) {
    PetscScalar *b;

    PetscCall(MatDenseGetArrayWrite(*B, &b));
    for (PetscInt r = 0; r < L->m; r++) {
      for (PetscInt j = 0; j < L->n; j++) b[j + (size_t)L->n * (size_t)r] = (PetscScalar)(r % REST + j);
    }
    PetscCall(MatDenseRestoreArrayWrite(*B, &b));
  } else {
    PetscCall(Filled(A, NULL, &x));
    for (PetscInt j = 0; j < L->n; j++) {
      PetscCall(MatDenseGetColumnVecWrite(*B, j, &column));
      PetscCall(VecCopy(x, column));
      PetscCall(VecShift(column, (PetscScalar)j));
      PetscCall(MatDenseRestoreColumnVecWrite(*B, j, &column));
    }
    PetscCall(VecDestroy(&x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C, as each of three products, by that way; clusters where columns are anywhere may be the parent's, since rows share too little */
static PetscErrorCode TestBlocks(const Large *L, PetscBool scattered, const char where[], MatAIJTCCUSPARSESpMM way)
{
  static const char *const names[] = {"A B", "A^T B", "A B^T"};
  Mat                      A, B, C = NULL;
  Vec                      column, product, ones, work;
  const char              *kernel;
  PetscInt64               products;
  const PetscBool          may_be_theirs = (PetscBool)(scattered && way == MAT_AIJTCCUSPARSE_SPMM_CLUSTER);
  PetscBool                cuda;

  PetscFunctionBeginUser;
  for (int p = 0; p < (int)PETSC_STATIC_ARRAY_LENGTH(names); p++) {
    const int side = p == 1 ? COLUMNS : ROWS;
    PetscBool same = PETSC_TRUE;

    PetscCall(Create(L, &A));
    PetscCall(MatAIJTCCUSPARSESetSpMM(A, way));
    PetscCall(MatTestIsCUDA(A, &cuda));
    PetscCall(CreateBlock(L, A, cuda, (PetscBool)(p == 2), &B));
    PetscCall((p == 0 ? MatMatMult : p == 1 ? MatTransposeMatMult : MatMatTransposeMult)(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, &products, &kernel));
    PetscCall(Filled(A, L->product[side], &product));
    PetscCall(Filled(A, L->ones[side], &ones));
    PetscCall(VecDuplicate(product, &work));
    for (PetscInt j = 0; j < L->n; j++) {
      PetscCall(MatDenseGetColumnVecRead(C, j, &column));
      PetscCall(Equal(column, product, ones, j, work, &same));
      PetscCall(MatDenseRestoreColumnVecRead(C, j, &column));
    }
    PetscCall(MatTestFact((PetscBool)(same && (products > 0 || may_be_theirs)), "%s, %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %s, %s, by %s: %s", where, L->m, L->n, names[p], MatAIJTCCUSPARSESpMMs[way], kernel ? kernel : "the parent", !same ? "WRONG" : products > 0 || may_be_theirs ? "right" : "NOT OURS"));
    PetscCall(VecDestroy(&product));
    PetscCall(VecDestroy(&ones));
    PetscCall(VecDestroy(&work));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  Large     L         = {.m = 3000, .row = 27, .n = 9};
  PetscInt  patterns  = 2;
  PetscBool has_cuda;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-large_rows", &L.m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-large_row", &L.row, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-large_columns", &L.n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-large_patterns", &patterns, NULL)); /* 1: the band alone */
  PetscCheck(L.m > 0 && L.row > 0 && L.row <= PETSC_INT_MAX / L.m, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-large_rows %" PetscInt_FMT " -large_row %" PetscInt_FMT ", expected numbers from 1 on whose product is %" PetscInt_FMT " at most", L.m, L.row, PETSC_INT_MAX);
  PetscCheck(L.n >= 0 && L.n <= 128 && L.row <= 27, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-large_columns %" PetscInt_FMT " -large_row %" PetscInt_FMT ", expected 0 to 128 and 1 to 27, else sums are not exact", L.n, L.row);
  PetscCall(MatTestHasCUDA(&has_cuda));
  for (PetscInt scattered = 0; scattered < patterns; scattered++) {
    const char *where = scattered ? "anywhere" : "in a band";

    PetscCall(Generate(&L, (PetscBool)scattered));
    PetscCall(TestVectors(&L, where));
    for (int way = MAT_AIJTCCUSPARSE_SPMM_AUTO; L.n > 1 && way <= (has_cuda ? MAT_AIJTCCUSPARSE_SPMM_TCA : MAT_AIJTCCUSPARSE_SPMM_AUTO); way++) PetscCall(TestBlocks(&L, (PetscBool)scattered, where, (MatAIJTCCUSPARSESpMM)way));
    PetscCall(Free(&L));
  }
  return MatTestEnd();
}
