/*
  The arrays of dense blocks, and products with a block of one column, which is a vector.
*/
#include "aijtccusparseimpl.h"

/* The array of a dense matrix: on the host for the host backend, else where it is current */
PetscErrorCode MatTCDenseGet(Mat B, MatTCAccess access, PetscBool host, PetscScalar **array, PetscInt *ld, int *far)
{
  PetscMemType type = PETSC_MEMTYPE_HOST;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLDA(B, ld));
  if (access == MATTC_READ) PetscCall(host ? MatDenseGetArrayRead(B, (const PetscScalar **)array) : MatDenseGetArrayReadAndMemType(B, (const PetscScalar **)array, &type));
  else if (access == MATTC_WRITE) PetscCall(host ? MatDenseGetArrayWrite(B, array) : MatDenseGetArrayWriteAndMemType(B, array, &type));
  else PetscCall(host ? MatDenseGetArray(B, array) : MatDenseGetArrayAndMemType(B, array, &type));
  *far = !host && !PetscMemTypeDevice(type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCDenseRestore(Mat B, MatTCAccess access, PetscBool host, PetscScalar **array)
{
  PetscFunctionBegin;
  if (access == MATTC_READ) PetscCall(host ? MatDenseRestoreArrayRead(B, (const PetscScalar **)array) : MatDenseRestoreArrayReadAndMemType(B, (const PetscScalar **)array));
  else if (access == MATTC_WRITE) PetscCall(host ? MatDenseRestoreArrayWrite(B, array) : MatDenseRestoreArrayWriteAndMemType(B, array));
  else PetscCall(host ? MatDenseRestoreArray(B, array) : MatDenseRestoreArrayAndMemType(B, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The column of a dense matrix as a vector */
typedef struct {
  Mat          dense;
  MatTCAccess  access;
  PetscBool    host;
  PetscScalar *array;
  PetscBool    device; /* where the array lies */
  Vec          vec;
} MatTCColumn;

/*
  A vector over the only column of a dense matrix, kept in `*kept` for the next product. It is our own, since the one of MatDenseGetColumnVec() may be in use, as may a submatrix, when the parent types
  multiply.
*/
static PetscErrorCode MatTCColumnGet(Mat B, MatTCAccess access, PetscBool host, Vec *kept, MatTCColumn *column)
{
  PetscInt  ld, rows, n;
  int       far;
  PetscBool fits = PETSC_FALSE;

  PetscFunctionBegin;
  column->dense  = B;
  column->access = access;
  column->host   = host;
  PetscCall(MatTCDenseGet(B, access, host, &column->array, &ld, &far));
  column->device = (PetscBool)(!host && !far);
  PetscCall(MatGetLocalSize(B, &rows, NULL));
  if (*kept) {
    PetscCall(PetscObjectTypeCompare((PetscObject)*kept, column->device ? VECSEQCUDA : VECSEQ, &fits));
    PetscCall(VecGetLocalSize(*kept, &n));
    if (n != rows) fits = PETSC_FALSE;
  }
  if (!fits) {
    PetscCall(VecDestroy(kept));
    PetscCall(column->device ? VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, rows, NULL, kept) : VecCreateSeqWithArray(PETSC_COMM_SELF, 1, rows, NULL, kept));
  }
  PetscCall(column->device ? VecCUDAPlaceArray(*kept, column->array) : VecPlaceArray(*kept, column->array));
  column->vec = *kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCColumnRestore(MatTCColumn *column)
{
  PetscFunctionBegin;
  PetscCall(column->device ? VecCUDAResetArray(column->vec) : VecResetArray(column->vec));
  PetscCall(MatTCDenseRestore(column->dense, column->access, column->host, &column->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCColumnsDestroy(MatTCDense *dense)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&dense->column_of_b));
  PetscCall(VecDestroy(&dense->column_of_c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  C = A B or A^T B of a single column, which is what MatMult() and MatMultTranspose() do, by the parent if they leave it to that: as a block it would be filled up, and have the sums of long rows in
  another order. `done` is false if it has to be a block after all.
*/
PetscErrorCode MatTCColumnProduct(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, const MatTCDenseArgs *args, PetscBool *done)
{
  const PetscBool transpose = (PetscBool)(args->type == MATPRODUCT_AtB), host = (PetscBool)(backend == tc_backend_host());
  MatTCSide      *side      = &tc->side[transpose ? MATTC_TRANSPOSE : MATTC_FORWARD];
  PetscBool       ours;
  PetscErrorCode  ierr;
  MatTCColumn     b, c;

  PetscFunctionBegin;
  *done = (PetscBool)(args->n == 1 && args->B && args->type != MATPRODUCT_ABt && MatTCPrecision(tc) == TC_PRECISION_F64);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MATTC_Dense, args->C, 0, 0, 0));
  PetscCall(MatTCColumnGet(args->B, MATTC_READ, host, &tc->dense.column_of_b, &b));
  PetscCall(MatTCColumnGet(args->C, MATTC_WRITE, host, &tc->dense.column_of_c, &c));
  ierr = MatTCTry(A, tc, transpose ? MATTC_TRANSPOSE : MATTC_FORWARD, 1, b.vec, NULL, c.vec, &ours);
  if (ierr == PETSC_SUCCESS && !ours) ierr = MatTCParentMult(A, tc->parent, transpose ? MATOP_MULT_TRANSPOSE : MATOP_MULT, b.vec, NULL, c.vec);
  PetscCall(MatTCColumnRestore(&c));
  PetscCall(MatTCColumnRestore(&b));
  PetscCall(ierr); /* B and C are theirs again who own them */
  PetscCall(PetscLogEventEnd(MATTC_Dense, args->C, 0, 0, 0));
  if (ours) ++tc->dense.retired;
  if (ours && side->waits) tc->dense.column = "tc_spmv_csr";
  else if (ours && side->plan && tc_plan_kernel(side->plan)) tc->dense.column = tc_plan_kernel(side->plan)->name; /* a trial may have ended with the parent */
  PetscFunctionReturn(PETSC_SUCCESS);
}
