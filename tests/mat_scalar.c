#include "mat_util.h"
#include <math.h>

void MatTestRound(int64_t n, double *numbers)
{
  for (int64_t i = 0; i < n; i++) numbers[i] = PetscRealPart((PetscScalar)numbers[i]);
}

PetscErrorCode MatTestWiden(PetscInt n, const PetscScalar *array, double **wide)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n, wide));
  for (PetscInt i = 0; i < n; i++) (*wide)[i] = PetscRealPart(array[i]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatTestAddRounding(const tc_matrix *A, const double *x, const double *y, int extra, PetscBool finished, long double *bound)
{
  if (PetscDefined(USE_REAL_DOUBLE)) return;
  for (int32_t i = 0; i < A->num_rows; i++) {
    const int64_t     roundings = extra + (finished ? 1 : 2 * (A->row_ptr[i + 1] - A->row_ptr[i])); /* PETSc's own may round products, too */
    const long double unit      = (long double)roundings * (PETSC_MACHINE_EPSILON / 2);
    long double       size      = y ? fabsl((long double)y[i]) : 0;

    for (int64_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; e++) size += fabsl((long double)A->val[e] * x[A->col[e]]);
    bound[i] += unit / (1 - unit) * (size + bound[i]) + (long double)roundings * PETSC_REAL_MIN * PETSC_MACHINE_EPSILON;
  }
}
