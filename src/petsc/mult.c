/*
  Products with vectors. All four operations serve sequential and parallel matrices: a parallel one makes sure that its blocks are ours and calls its parent, which
  multiplies with them; a sequential one keeps its packed matrix current and multiplies with that, or calls its parent.
*/
#include "aijtccusparseimpl.h"

/* z = A x (y == NULL) or z = y + A x with the packed matrix, which is current. `done` is false when that failed; z is then to be computed by the parent. */
static PetscErrorCode MatTCApply(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  const PetscBool host     = (PetscBool)(tc_plan_backend(tc->plan) == tc_backend_host());
  const PetscBool in_place = (PetscBool)(y == z);
  const char     *text     = NULL;
  MatTCArray      ax, ay, az;
  MatInfo         info;
  tc_status       status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCArrayGet(tc, MATTC_STAGE_X, x, MATTC_READ, stream, &ax, &status));
  if (y && !in_place) PetscCall(MatTCArrayGet(tc, MATTC_STAGE_Y, y, MATTC_READ, stream, &ay, &status));
  PetscCall(MatTCArrayGet(tc, MATTC_STAGE_Z, z, in_place ? MATTC_READ_WRITE : MATTC_WRITE, stream, &az, &status));
  if (status == TC_OK) {
    if (!host) PetscCall(PetscLogGpuTimeBegin());
    status = tc_plan_spmv(tc->plan, ax.local, !y ? NULL : in_place ? az.local : ay.local, az.local, stream);
    if (!host) PetscCall(PetscLogGpuTimeEnd());
    if (status != TC_OK) text = tc_last_error();
  }
  PetscCall(MatTCArrayRestore(tc, stream, &ax, &status));
  if (y && !in_place) PetscCall(MatTCArrayRestore(tc, stream, &ay, &status));
  PetscCall(MatTCArrayRestore(tc, stream, &az, &status));
  *done = (PetscBool)(status == TC_OK);
  if (*done) {
    PetscLogDouble flops;

    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    flops = 2.0 * info.nz_used - (y ? 0.0 : (PetscLogDouble)tc->nonempty_rows);
    PetscCall(host ? PetscLogFlops(flops) : PetscLogGpuFlops(flops));
  } else PetscCall(MatTCFail(A, tc, "a product", text ? text : tc_plan_backend(tc->plan)->last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCMult(Mat A, MatOperation op, Vec x, Vec y, Vec z)
{
  const PetscBool    transpose = (PetscBool)(op == MATOP_MULT_TRANSPOSE || op == MATOP_MULT_TRANSPOSE_ADD);
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscBool          done = PETSC_FALSE;
  tc_stream          stream;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (!tc) { /* another object took the operations over without the context */
    PetscCall(MatTCParentFind(A, &parent));
    PetscCall(MatTCParentMult(A, parent, op, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tc->parent->mpi) PetscCall(MatTCEnsureBlocks(A, tc));
  else if (!transpose) {
    PetscCall(MatTCEnsure(A, tc, &stream, &done));
    if (done) PetscCall(MatTCApply(A, tc, x, y, z, stream, &done));
  } else if (!tc->told_transpose) {
    tc->told_transpose = PETSC_TRUE;
    PetscCall(PetscInfo(A, "aijtccusparse leaves transposed products to the parent type\n"));
  }
  if (!done) PetscCall(MatTCParentMult(A, tc->parent, op, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_AIJTCCUSPARSE(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_AIJTCCUSPARSE(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_AIJTCCUSPARSE(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_TRANSPOSE, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_AIJTCCUSPARSE(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_TRANSPOSE_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
