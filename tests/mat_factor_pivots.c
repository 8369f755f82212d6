/*
  Pivots that are too small, and rows and columns that were made those of the identity.
*/
#include "mat_factor.h"

/* Pivots that are too small: what PETSc's host code does about them, error or shift, and none where values are good again. The GPU shifts single pivots itself; for all else the host takes over */
PetscErrorCode TestPivots(MatFactorType type, PetscInt levels, MatFactorShiftType shift, PetscReal first)
{
  const Kind     kind      = {"", type, levels, MATORDERINGNATURAL};
  const PetscBool symmetric = (PetscBool)(type == MAT_FACTOR_ICC);
  Mat            matrix[2], block[2], F[2], numbers;
  MatFactorInfo  info;
  PetscReal      difference[2] = {0, 0};
  PetscInt       row, m;
  PetscBool      so = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  info.shifttype   = (PetscReal)shift;
  info.shiftamount = 0.5;
  info.zeropivot   = 1e-6;
  for (int i = 0; i < 2; i++) {
    PetscCall(Generate("stencil7", 6, i ? MATAIJ : MATAIJTCCUSPARSE, &matrix[i], &block[i]));
    PetscCall(Factor(&kind, NULL, block[i], &F[i]));
    PetscCall(MatGetOwnershipRange(matrix[i], &row, NULL));
    PetscCall(MatSetValue(matrix[i], row, row, first, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(matrix[i], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix[i], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatGetSize(block[0], &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(MatSetRandom(numbers, NULL));
  for (int again = 0; again < 2; again++) {
    MatFactorError error[2];

    for (int i = 0; i < 2; i++) {
      if (again) PetscCall(MatShift(matrix[i], 8.0));
      PetscCall(MatFactorClearError(F[i]));
      PetscCall(symmetric ? MatCholeskyFactorNumeric(F[i], block[i], &info) : MatLUFactorNumeric(F[i], block[i], &info));
      PetscCall(MatFactorGetError(F[i], &error[i]));
    }
    if (error[0] != error[1] || (again && error[1])) so = PETSC_FALSE;
    if (!error[0] && !error[1]) PetscCall(Solves(F[0], F[1], numbers, VECSEQ, MATSEQDENSE, PETSC_FALSE, &difference[again]));
  }
  if (symmetric ? difference[0] > 1000 * PETSC_MACHINE_EPSILON || difference[1] > 1000 * PETSC_MACHINE_EPSILON : difference[0] != 0 || difference[1] != 0) so = PETSC_FALSE;
  PetscCall(MatTestFact(so, "%s(%" PetscInt_FMT ") with a pivot of %g, shift %s", MatFactorTypes[type], levels, (double)first, MatFactorShiftTypes[shift]));
  if (!so) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  solutions differ by %g, with good values by %g\n", (double)difference[0], (double)difference[1]));
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDestroy(&F[i]));
    PetscCall(MatDestroy(&matrix[i]));
  }
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Rows, and columns, that were made those of the identity, as on boundaries: what is left of them in the pattern is zeros, and where PETSc takes entries out, the pattern is not symmetric. If rows alone were, values are not
  symmetric, and the upper triangle counts for ICC.
*/
PetscErrorCode TestZeroed(MatFactorType type, PetscInt levels, PetscBool columns, PetscBool keep)
{
  const Kind kind = {"", type, levels, MATORDERINGNATURAL};
  Mat        matrix[2], block[2], F[2], numbers;
  PetscReal  difference;
  PetscInt   rows[3], first, m;

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(Generate("stencil7", 6, i ? MATAIJ : MATAIJTCCUSPARSE, &matrix[i], &block[i]));
    PetscCall(MatGetOwnershipRange(matrix[i], &first, NULL));
    for (PetscInt r = 0; r < 3; r++) rows[r] = first + 2 * r + 1;
    PetscCall(MatSetOption(matrix[i], MAT_KEEP_NONZERO_PATTERN, keep));
    PetscCall(columns ? MatZeroRowsColumns(matrix[i], 3, rows, 2.5, NULL, NULL) : MatZeroRows(matrix[i], 3, rows, 2.5, NULL, NULL));
    PetscCall(Factor(&kind, NULL, block[i], &F[i]));
  }
  PetscCall(MatGetSize(block[0], &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(MatSetRandom(numbers, NULL));
  PetscCall(Solves(F[0], F[1], numbers, VECSEQ, MATSEQDENSE, PETSC_TRUE, &difference));
  PetscCall(MatTestFact(difference <= 1000 * PETSC_MACHINE_EPSILON, "%s(%" PetscInt_FMT ") with rows%s of the identity%s: solutions differ by %g", MatFactorTypes[type], levels, columns ? " and columns" : "", keep ? ", all entries kept" : "", (double)difference));
  for (int i = 0; i < 2; i++) {
    PetscCall(MatDestroy(&F[i]));
    PetscCall(MatDestroy(&matrix[i]));
  }
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}
