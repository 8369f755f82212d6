#include "mat_product.h"
#include <math.h>
#include <stdlib.h>

const ProductKind *ProductKinds(void)
{
  static const ProductKind kinds[NUM_PRODUCTS] = {
    {"MatMatMult",          MATPRODUCT_AB,  MatMatMult         },
    {"MatTransposeMatMult", MATPRODUCT_AtB, MatTransposeMatMult},
    {"MatMatTransposeMult", MATPRODUCT_ABt, MatMatTransposeMult},
  };

  return kinds;
}

PetscErrorCode ProductCrashes(Mat A, PetscBool *crashes)
{
  PetscInt    n;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPIU_INT, MPI_MIN, PETSC_COMM_WORLD));
  *crashes = (PetscBool)(PETSC_VERSION_GE(3, 25, 0) && PETSC_VERSION_LT(3, 26, 0) && size > 1 && n == 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductNumbers(PetscInt rows, PetscInt n, uint64_t seed, double **numbers)
{
  PetscFunctionBeginUser;
  *numbers = (double *)malloc(((size_t)rows * (size_t)n + 1) * sizeof(**numbers));
  PetscCheck(*numbers, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for %" PetscInt_FMT " x %" PetscInt_FMT " numbers", rows, n);
  tc_random_normal((int64_t)rows * n, seed, *numbers);
  MatTestRound((int64_t)rows * n, *numbers);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A dense matrix of that type with `gap` unused rows behind the local ones, poisoned with NaN; the local and the global rows are those of a product's B or C */
static PetscErrorCode ProductDense(MatType type, PetscInt m, PetscInt M, PetscInt N, PetscInt gap, Mat *B)
{
  Mat          local;
  PetscInt     ld, n;
  PetscScalar *array;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, B));
  PetscCall(MatSetSizes(*B, m, PETSC_DECIDE, M, N));
  PetscCall(MatSetType(*B, type));
  if (m + gap > 0) PetscCall(MatDenseSetLDA(*B, m + gap));
  PetscCall(MatSetUp(*B));
  PetscCall(MatDenseGetLocalMatrix(*B, &local));
  PetscCall(MatGetLocalSize(local, NULL, &n));
  PetscCall(MatDenseGetLDA(local, &ld));
  PetscCall(MatDenseGetArrayWrite(local, &array));
  for (PetscInt i = 0; i < ld * n; i++) array[i] = NAN;
  PetscCall(MatDenseRestoreArrayWrite(local, &array));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductFill(Mat B, const double *numbers, PetscBool transposed)
{
  Mat          local;
  PetscInt     ld, m, n, M, N, first;
  PetscScalar *array;

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetLocalMatrix(B, &local));
  PetscCall(MatGetSize(B, &M, &N));
  PetscCall(MatGetLocalSize(local, &m, &n));
  PetscCall(MatGetOwnershipRange(B, &first, NULL));
  PetscCall(MatDenseGetLDA(local, &ld));
  PetscCall(MatDenseGetArray(local, &array));
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) array[i + j * ld] = transposed ? numbers[j + (first + i) * N] : numbers[first + i + j * M];
  }
  PetscCall(MatDenseRestoreArray(local, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductOperand(int product, Mat A, MatType type, PetscInt N, PetscInt gap, const double *numbers, Mat *B)
{
  PetscInt m, n, M, K;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &K));
  if (product == PRODUCT_AB) PetscCall(ProductDense(type, n, K, N, gap, B));
  else if (product == PRODUCT_ATB) PetscCall(ProductDense(type, m, M, N, gap, B));
  else PetscCall(ProductDense(type, N, N, K, gap, B));
  PetscCall(ProductFill(*B, numbers, (PetscBool)(product == PRODUCT_ABT)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductTarget(int product, Mat A, MatType type, PetscInt N, PetscInt gap, Mat *C)
{
  PetscInt m, n, M, K;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &K));
  if (product == PRODUCT_ATB) PetscCall(ProductDense(type, n, K, N, gap, C));
  else PetscCall(ProductDense(type, m, M, N, gap, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of the columns from..to-1, or of the others */
static PetscErrorCode ColumnsOf(const tc_matrix *L, PetscInt from, PetscInt to, PetscBool inside, tc_matrix *part)
{
  PetscFunctionBeginUser;
  *part = (tc_matrix){.num_rows = L->num_rows, .num_cols = L->num_cols, .row_ptr = calloc((size_t)L->num_rows + 1, sizeof *part->row_ptr), .col = malloc((size_t)(L->nnz + 1) * sizeof *part->col), .val = malloc((size_t)(L->nnz + 1) * sizeof *part->val)};
  PetscCheck(part->row_ptr && part->col && part->val, PETSC_COMM_SELF, PETSC_ERR_MEM, "part of a matrix");
  for (int32_t i = 0; i < L->num_rows; i++) {
    for (int64_t e = L->row_ptr[i]; e < L->row_ptr[i + 1]; e++) {
      if ((PetscBool)(from <= L->col[e] && L->col[e] < to) != inside) continue;
      part->col[part->nnz]   = L->col[e];
      part->val[part->nnz++] = L->val[e];
    }
    part->row_ptr[i + 1] = part->nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* c = A b for a column of a block; a block of one column is a vector, unless it comes as A B^T */
static void ColumnExact(int product, PetscInt N, const tc_matrix *A, const double *b, double *c)
{
  if (N == 1 && product != PRODUCT_ABT) tc_canonical_spmv(A, b, NULL, c);
  else tc_canonical_spmm(A, 1, b, A->num_cols, 0, c, A->num_rows);
}

/*
  Rows of a product with one of N columns in the bits that are defined: of the columns that belong to this process, and then, for A B, of all others added to that; for A^T B those
  of each other process that has entries, in their order, added up and then added to that.
*/
static PetscErrorCode ProductExact(int product, PetscInt N, const tc_matrix *L, const double *b, double *exact)
{
  const PetscInt  m = L->num_rows;
  PetscLayout     layout;
  const PetscInt *ranges;
  PetscMPIInt     rank, size;
  tc_matrix       part;
  double         *sum, *theirs;
  PetscBool      *any;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscLayoutCreateFromSizes(PETSC_COMM_WORLD, PETSC_DECIDE, L->num_cols, 1, &layout));
  PetscCall(PetscLayoutGetRanges(layout, &ranges));
  PetscCall(PetscCalloc3(m, &sum, m, &theirs, m, &any));
  PetscCall(ColumnsOf(L, ranges[rank], ranges[rank + 1], PETSC_TRUE, &part));
  ColumnExact(product, N, &part, b, exact);
  tc_matrix_free(&part);
  MatTestRound(m, exact);
  if (product == PRODUCT_AB && size > 1) {
    PetscCall(ColumnsOf(L, ranges[rank], ranges[rank + 1], PETSC_FALSE, &part));
    tc_canonical_spmm(&part, 1, b, L->num_cols, 1, exact, m);
    tc_matrix_free(&part);
  }
  for (PetscMPIInt p = 0; p < size && product == PRODUCT_ATB; p++) {
    if (p == rank) continue;
    PetscCall(ColumnsOf(L, ranges[p], ranges[p + 1], PETSC_TRUE, &part));
    ColumnExact(product, N, &part, b, theirs);
    MatTestRound(m, theirs);
    for (PetscInt i = 0; i < m; i++) {
      if (part.row_ptr[i] == part.row_ptr[i + 1]) continue;
      sum[i] = any[i] ? sum[i] + theirs[i] : theirs[i];
      any[i] = PETSC_TRUE;
    }
    MatTestRound(m, sum);
    tc_matrix_free(&part);
  }
  for (PetscInt i = 0; i < m; i++) {
    if (any[i]) exact[i] += sum[i];
  }
  MatTestRound(m, exact);
  PetscCall(PetscFree3(sum, theirs, any));
  PetscCall(PetscLayoutDestroy(&layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductErrorIn(tc_precision precision, int32_t segment, int product, const tc_matrix *R, PetscInt N, const double *numbers, Mat C, double *worst, PetscBool *bits)
{
  PetscMPIInt        size;
  PetscInt           first, end, m, ld, cm, cn;
  tc_matrix          L;
  long double       *ref, *bound;
  double            *exact, *column;
  const PetscScalar *c;
  Mat                local;

  PetscFunctionBeginUser;
  *worst = 0;
  if (bits) *bits = PETSC_TRUE;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetSize(C, &cm, &cn));
  if (cm != R->num_rows || cn != N) *worst = INFINITY;
  PetscCall(MatGetOwnershipRange(C, &first, &end));
  m = end - first;
  L = MatTestLocalRows(R, first, end);
  PetscCall(MatDenseGetLocalMatrix(C, &local));
  PetscCall(MatDenseGetLDA(local, &ld));
  PetscCall(MatDenseGetArrayRead(local, &c));
  PetscCall(PetscMalloc3(m, &ref, m, &bound, m, &exact));
  for (PetscInt j = 0; j < N; j++) {
    const double *b = numbers + j * R->num_cols;

    /* a row lies in two blocks, a column on all processes: that many more roundings at most */
    const int extra = product == PRODUCT_ATB ? size : size > 1;

    if (precision == TC_PRECISION_F64) tc_oracle_spmv(&L, b, NULL, extra, ref, bound);
    else {
      tc_oracle_narrow_spmm(&L, b, precision, segment, ref, bound);
      for (PetscInt i = 0; size > 1 && i < m; i++) bound[i] += 0x1p-53L * (fabsl(ref[i]) + bound[i]);
    }
    MatTestAddRounding(&L, b, NULL, extra, (PetscBool)(precision != TC_PRECISION_F64), bound);
    PetscCall(MatTestWiden(m, PetscSafePointerPlusOffset(c, j * ld), &column));
    *worst = PetscMax(*worst, tc_error_over_bound(m, column, ref, bound));
    if (bits) {
      PetscCall(ProductExact(product, N, &L, b, exact));
      if (tc_first_different(m, column, exact) < m) *bits = PETSC_FALSE;
    }
    PetscCall(PetscFree(column));
  }
  PetscCall(PetscFree3(ref, bound, exact));
  PetscCall(MatDenseRestoreArrayRead(local, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductError(int product, const tc_matrix *R, PetscInt N, const double *numbers, Mat C, double *worst, PetscBool *bits)
{
  PetscFunctionBeginUser;
  PetscCall(ProductErrorIn(TC_PRECISION_F64, 0, product, R, N, numbers, C, worst, bits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductCount(Mat A, PetscInt64 *count)
{
  PetscFunctionBeginUser;
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, count, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductCheck(const char name[], int product, const tc_matrix *R, Mat ours, Mat plain, PetscInt N, PetscInt gap, MatReuse reuse)
{
  const Mat  mats[2] = {ours, plain};
  double    *numbers, worst[2];
  PetscBool  bits, ignored, cuda;
  PetscInt64 before, after;
  PetscInt   n;

  PetscFunctionBeginUser;
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(ProductNumbers(R->num_cols, N, 11, &numbers));
  PetscCall(ProductCount(ours, &before));
  for (int m = 0; m < 2; m++) {
    const MatType type = m == 0 && cuda ? MATDENSECUDA : MATDENSE;
    Mat           B, C;

    PetscCall(ProductOperand(product, mats[m], type, N, gap, numbers, &B));
    if (reuse == MAT_REUSE_MATRIX) PetscCall(ProductTarget(product, mats[m], type, N, gap, &C));
    PetscCall(ProductKinds()[product].multiply(mats[m], B, reuse, PETSC_CURRENT, &C));
    PetscCall(ProductError(product, R, N, numbers, C, &worst[m], m == 0 ? &bits : &ignored));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(ProductCount(ours, &after));
  PetscCall(MatGetSize(ours, &n, NULL));
  PetscCall(MatTestFact((PetscBool)(worst[0] <= 1 && worst[1] <= 1 && bits && after > before), "%s %s, %" PetscInt_FMT " columns%s: error/bound %.3f, MATAIJ %.3f%s, %" PetscInt64_FMT " of ours", name, ProductKinds()[product].name, N,
                        reuse == MAT_REUSE_MATRIX ? ", C given" : "", worst[0], worst[1], bits ? "" : ", OTHER BITS", after - before));
  free(numbers);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductAbsolute(Mat A, Mat *absolute)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, absolute));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    PetscInt           n;
    const PetscInt    *cols;
    const PetscScalar *vals;
    PetscScalar       *size;

    PetscCall(MatGetRow(A, i, &n, &cols, &vals));
    PetscCall(PetscMalloc1(n, &size));
    for (PetscInt k = 0; k < n; k++) size[k] = PetscAbsScalar(vals[k]);
    PetscCall(MatSetValues(*absolute, 1, &i, n, cols, size, INSERT_VALUES));
    PetscCall(PetscFree(size));
    PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
  }
  PetscCall(MatAssemblyBegin(*absolute, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*absolute, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}
