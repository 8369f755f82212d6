#include "bench_spmm_expected.h"
#include "generators.h"
#include "oracle.h"
#include <math.h>

enum { SEED_B = 5 };

void SpmmCheckedColumns(PetscInt n, PetscInt column[SPMM_CHECKED])
{
  column[0] = 0;
  column[1] = n / 2;
  column[2] = n - 1;
}

/* Where entry i of column j of B [k, n] is; with A B^T the block holds its transpose */
static size_t PlaceInB(SpmmMode mode, PetscInt k, PetscInt n, PetscInt i, PetscInt j)
{
  return mode == SPMM_ABT ? (size_t)j + (size_t)i * (size_t)n : (size_t)i + (size_t)j * (size_t)k;
}

PetscErrorCode SpmmFillB(SpmmMode mode, PetscInt k, PetscInt n, Mat B)
{
  const size_t num = (size_t)k * (size_t)n;
  PetscScalar *b;
  double      *x;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(num, &x));
  tc_random_uniform((int64_t)num, SEED_B, x);
  PetscCall(MatDenseGetArrayWrite(B, &b));
  if (mode != SPMM_ABT) PetscCall(PetscArraycpy((double *)(void *)b, x, num));
  else {
    for (PetscInt i = 0; i < k; i++) {
      for (PetscInt j = 0; j < n; j++) b[PlaceInB(mode, k, n, i, j)] = x[(size_t)i + (size_t)j * (size_t)k];
    }
  }
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const SpmmColumn *FindColumn(const SpmmExpected *X, PetscInt column)
{
  for (int e = 0; e < X->num; e++) {
    if (X->column[e].column == column) return &X->column[e];
  }
  return NULL;
}

/* |A| |x| */
static void FindSizes(const tc_matrix *A, const double *x, long double *size)
{
  for (int32_t i = 0; i < A->num_rows; i++) {
    size[i] = 0;
    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; e++) size[i] += fabsl((long double)A->val[e] * x[A->col[e]]);
  }
}

PetscErrorCode SpmmExpect(SpmmExpected *X, SpmmMode mode, const tc_matrix *rows, PetscInt n, Mat B)
{
  const PetscInt     m = rows->num_rows, k = rows->num_cols;
  const PetscScalar *b;
  PetscInt           column[SPMM_CHECKED];
  double            *x;

  PetscFunctionBeginUser;
  SpmmCheckedColumns(n, column);
  PetscCall(PetscMalloc1(k, &x));
  PetscCall(MatDenseGetArrayRead(B, &b));
  for (int s = 0; s < SPMM_CHECKED; s++) {
    SpmmColumn *E = &X->column[X->num];

    if (FindColumn(X, column[s])) continue;
    for (PetscInt i = 0; i < k; i++) x[i] = (double)PetscRealPart(b[PlaceInB(mode, k, n, i, column[s])]);
    E->column = column[s];
    PetscCall(PetscMalloc3(m, &E->ref, m, &E->bound, m, &E->size));
    FindSizes(rows, x, E->size);
    if (X->precision == TC_PRECISION_F64) {
      PetscCall(PetscMalloc2(m, &E->bits, m, &E->alone));
      tc_oracle_spmv(rows, x, NULL, 0, E->ref, E->bound);
      tc_canonical_spmm(rows, 1, x, k, 0, E->bits, m);
      tc_canonical_spmv(rows, x, NULL, E->alone);
    } else tc_oracle_narrow_spmm(rows, x, X->precision, X->segment, E->ref, E->bound);
    X->num++;
  }
  PetscCall(MatDenseRestoreArrayRead(B, &b));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpmmExpectedDestroy(SpmmExpected *X)
{
  PetscFunctionBeginUser;
  for (int e = 0; e < X->num; e++) {
    PetscCall(PetscFree3(X->column[e].ref, X->column[e].bound, X->column[e].size));
    PetscCall(PetscFree2(X->column[e].bits, X->column[e].alone));
  }
  X->num = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpmmCompare(const SpmmExpected *X, SpmmMode mode, PetscInt n, PetscInt column, PetscInt m, const double *c, SpmmAccuracy *accuracy)
{
  const SpmmColumn *E    = FindColumn(X, column);
  const double     *bits = n == 1 && mode != SPMM_ABT ? E->alone : E->bits;

  accuracy->over_bound = PetscMax(accuracy->over_bound, tc_error_over_bound(m, c, E->ref, E->bound));
  accuracy->error      = PetscMax(accuracy->error, tc_error_over_bound(m, c, E->ref, E->size));
  if (bits && tc_first_different(m, c, bits) < m) accuracy->same_bits = PETSC_FALSE;
}
