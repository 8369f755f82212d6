#include "mat_state.h"

/* The first row of the process, or -1 */
static PetscErrorCode FirstRow(Mat A, PetscInt *row)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  *row = first < end ? first : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOnDiagonal(Mat A, InsertMode mode)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  PetscCall(FirstRow(A, &row));
  if (row >= 0) PetscCall(MatSetValue(A, row, row, 3.25, mode));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nothing(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)A;
  (void)operands;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AssembleOnly(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InsertValue(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(SetOnDiagonal(A, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddValue(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(SetOnDiagonal(A, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the diagonal block of every process; the pattern is a 7-point stencil, which has no such entry */
static PetscErrorCode NewNonzero(Mat A, const StateOperands *operands)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(FirstRow(A, &row));
  if (row >= 0) PetscCall(MatSetValue(A, row, row + 2, -1.5, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatScale(A, 2.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ScaleByOne(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatScale(A, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Zero(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatZeroEntries(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shift(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatShift(A, 0.75));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalSet(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatDiagonalSet(A, operands->left, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatDiagonalScale(A, operands->left, operands->right));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AxpySame(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatAXPY(A, -1.25, operands->same, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AxpySubset(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatAXPY(A, -1.25, operands->subset, SUBSET_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AxpyDifferent(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatAXPY(A, -1.25, operands->other, DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Aypx(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatAYPX(A, -1.25, operands->same, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKeep(Mat A, const StateOperands *operands)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(FirstRow(A, &row));
  PetscCall(MatZeroRows(A, row >= 0, &row, 2.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRows(Mat A, const StateOperands *operands)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(FirstRow(A, &row));
  PetscCall(MatZeroRows(A, row >= 0, &row, 2.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsColumns(Mat A, const StateOperands *operands)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(FirstRow(A, &row));
  PetscCall(MatZeroRowsColumns(A, row >= 0, &row, 2.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopySame(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatCopy(operands->same, A, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyDifferent(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCopy(operands->other, A, DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeInPlace(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StoreAndRetrieve(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(A));
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatRetrieveValues(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RealPart(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatRealPart(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EliminateZeros(Mat A, const StateOperands *operands)
{
  PetscInt row = -1;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(FirstRow(A, &row));
  if (row >= 0) PetscCall(MatSetValue(A, row, row + 1, 0.0, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscCall(MatEliminateZeros(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResetPreallocation(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatResetPreallocation(A));
  PetscCall(SetOnDiagonal(A, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Preallocation that was not exact any more: the old one comes back */
static PetscErrorCode ResetShrunkPreallocation(Mat A, const StateOperands *operands)
{
  PetscFunctionBeginUser;
  PetscCall(ZeroRows(A, operands));
  PetscCall(ResetPreallocation(A, operands));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HeaderMerge(Mat A, const StateOperands *operands)
{
  Mat C;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(operands->other, MAT_COPY_VALUES, &C));
  PetscCall(MatHeaderMerge(A, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HeaderReplace(Mat A, const StateOperands *operands)
{
  Mat C;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(operands->other, MAT_COPY_VALUES, &C));
  PetscCall(MatHeaderReplace(A, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ArrayOfBlock(Mat A, const StateOperands *operands)
{
  Mat          block;
  PetscScalar *array;
  PetscInt     m;

  PetscFunctionBeginUser;
  (void)operands;
  PetscCall(MatTestBlock(A, &block));
  PetscCall(MatGetLocalSize(block, &m, NULL));
  PetscCall(MatSeqAIJGetArray(block, &array));
  if (m > 0) array[0] = 17;
  PetscCall(MatSeqAIJRestoreArray(block, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const StateChange *StateChanges(int *num)
{
  static const StateChange changes[] = {
    {"nothing",                             Nothing,            MATTEST_HIT    },
    {"assembly of nothing",                 AssembleOnly,       MATTEST_REFILL },
    {"MatSetValues INSERT",                 InsertValue,        MATTEST_REFILL },
    {"MatSetValues ADD",                    AddValue,           MATTEST_REFILL },
    {"MatSetValues, new nonzero",           NewNonzero,         MATTEST_REBUILD},
    {"MatScale",                            Scale,              MATTEST_REFILL },
    {"MatScale by 1",                       ScaleByOne,         MATTEST_HIT    },
    {"MatZeroEntries",                      Zero,               MATTEST_REFILL },
    {"MatShift",                            Shift,              MATTEST_REFILL },
    {"MatDiagonalSet",                      DiagonalSet,        MATTEST_REFILL },
    {"MatDiagonalScale",                    DiagonalScale,      MATTEST_REFILL },
    {"MatAXPY, same pattern",               AxpySame,           MATTEST_REFILL },
    {"MatAXPY, subset pattern",             AxpySubset,         MATTEST_REFILL },
    {"MatAXPY, different pattern",          AxpyDifferent,      MATTEST_REBUILD},
    {"MatAYPX, same pattern",               Aypx,               MATTEST_REFILL },
    {"MatZeroRows, pattern kept",           ZeroRowsKeep,       MATTEST_REFILL },
    {"MatZeroRows, pattern shrinks",        ZeroRows,           MATTEST_REBUILD},
    {"MatZeroRowsColumns, pattern kept",    ZeroRowsColumns,    MATTEST_REFILL },
    {"MatCopy, same pattern",               CopySame,           MATTEST_REFILL },
    {"MatCopy, different pattern",          CopyDifferent,      MATTEST_REBUILD},
    {"MatTranspose in place",               TransposeInPlace,   MATTEST_REBUILD},
    {"MatStoreValues and MatRetrieveValues", StoreAndRetrieve,  MATTEST_REFILL },
    {"MatRealPart",                         RealPart,           MATTEST_REFILL },
    {"MatEliminateZeros",                   EliminateZeros,     MATTEST_REBUILD},
    {"MatResetPreallocation, exact",        ResetPreallocation, MATTEST_REFILL }, /* PETSc only zeroes the values then */
    {"MatResetPreallocation, not exact",    ResetShrunkPreallocation, MATTEST_REBUILD},
    {"MatHeaderMerge",                      HeaderMerge,        MATTEST_REBUILD},
    {"MatHeaderReplace",                    HeaderReplace,      MATTEST_REBUILD},
    {"MatSeqAIJGetArray of the block",      ArrayOfBlock,       MATTEST_REFILL },
  };

  *num = (int)PETSC_STATIC_ARRAY_LENGTH(changes);
  return changes;
}
