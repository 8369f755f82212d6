/*
  Solves with incomplete factors on the GPU: of vectors, of blocks, and halves of them with ICC.
*/
#include "solve.h"

#if PetscDefined(HAVE_CUDA)

static PetscErrorCode MatTCDeviceFactorGetReady(Mat F, MatTCDeviceFactor **D)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, D));
  PetscCheck((*D)->ready, PETSC_COMM_SELF, PETSC_ERR_ORDER, "A factor solves after it got its numbers, of which it has none");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors may be anywhere */
static PetscErrorCode MatTCDeviceFactorSolve(Mat F, Vec b, Vec x, PetscBool transposed)
{
  const PetscScalar *from;
  PetscScalar       *to;
  MatTCDeviceFactor *D;
  MatTCWrap          wb, wx;
  PetscInt           m;
  tc_status          status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGetReady(F, &D));
  PetscCall(MatGetLocalSize(F, &m, NULL));
  PetscCall(MatTCWrapGet(b, MATTC_READ, &wb));
  PetscCall(MatTCWrapGet(x, MATTC_WRITE, &wx));
  if (D->theirs) PetscCall(transposed ? MatSolveTranspose(D->other, wb.cuda, wx.cuda) : MatSolve(D->other, wb.cuda, wx.cuda));
  else {
    PetscCall(VecGetArrayReadAndMemType(wb.cuda, &from, NULL));
    PetscCall(VecGetArrayWriteAndMemType(wx.cuda, &to, NULL));
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_factors_solve(D->factors, transposed, from, to, MatTCGetParentStream());
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(VecRestoreArrayWriteAndMemType(wx.cuda, &to));
    PetscCall(VecRestoreArrayReadAndMemType(wb.cuda, &from));
    PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)tc_factors_nnz(D->factors) - (PetscLogDouble)m));
    D->count++;
  }
  PetscCall(MatTCWrapRestore(&wb));
  PetscCall(MatTCWrapRestore(&wx));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "aijtccusparse cannot solve with a factor of %" PetscInt_FMT " rows: %s", m, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_TCDeviceFactor(Mat F, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolve(F, b, x, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolveTranspose_TCDeviceFactor(Mat F, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolve(F, b, x, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks may be anywhere, and be the same */
static PetscErrorCode MatTCDeviceFactorSolveBlock(Mat F, Mat B, Mat X, PetscBool transposed)
{
  MatTCDeviceFactor *D;
  MatTCBlock         b, x;
  PetscInt           m, n;
  tc_status          status;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGetReady(F, &D));
  if (D->theirs) PetscCall(MatTCBlockSolve(D->other, B, X, transposed));
  if (D->theirs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(B, &m, &n));
  PetscCall(MatTCBlockGet(X, B == X ? MATTC_READ_WRITE : MATTC_WRITE, &x));
  b = x;
  if (B != X) PetscCall(MatTCBlockGet(B, MATTC_READ, &b));
  PetscCall(PetscLogGpuTimeBegin());
  status = tc_factors_solve_block(D->factors, transposed, (int32_t)n, b.array, b.ld, x.array, x.ld, MatTCGetParentStream());
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops((PetscLogDouble)n * (2.0 * (PetscLogDouble)tc_factors_nnz(D->factors) - (PetscLogDouble)m)));
  D->count += n;
  if (B != X) PetscCall(MatTCBlockRestore(&b));
  PetscCall(MatTCBlockRestore(&x));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "aijtccusparse cannot solve with a factor of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns: %s", m, n, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolve_TCDeviceFactor(Mat F, Mat B, Mat X)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolveBlock(F, B, X, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolveTranspose_TCDeviceFactor(Mat F, Mat B, Mat X)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolveBlock(F, B, X, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D^-1/2 in the order of the factor, which halves of a solve want, of numbers that have none yet; `like`: a vector of the GPU */
static PetscErrorCode MatTCDeviceFactorFindRoot(MatTCDeviceFactor *D, Vec like)
{
  PetscScalar *to;
  PetscReal    least;
  tc_status    status;

  PetscFunctionBegin;
  if (D->root) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDuplicate(like, &D->root));
  PetscCall(VecGetArrayWriteAndMemType(D->root, &to, NULL));
  status = tc_factors_get_pivots(D->factors, to, MatTCGetParentStream());
  PetscCall(VecRestoreArrayWriteAndMemType(D->root, &to));
  PetscCall(VecMin(D->root, NULL, &least));
  if (status != TC_OK || least <= 0) PetscCall(VecDestroy(&D->root));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "aijtccusparse cannot read the pivots of a factor: %s", tc_last_error());
  PetscCheck(least > 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "A half of a solve with ICC takes roots of pivots, of which the least is %g, expected a positive one", (double)least);
  PetscCall(VecReciprocal(D->root));
  PetscCall(VecSqrtAbs(D->root));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = D^-1/2 L^-1 P b, or, `backward`, P^T L^-T D^-1/2 b, which one after the other are a solve; as MATSOLVERPETSC's, what lies between them is in the order of the factor */
static PetscErrorCode MatTCDeviceFactorSolveHalf(Mat F, Vec b, Vec x, PetscBool backward)
{
  const PetscScalar *from;
  PetscScalar       *to;
  MatTCDeviceFactor *D;
  MatTCWrap          wb, wx;
  tc_status          status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGetReady(F, &D));
  PetscCall(MatTCWrapGet(b, MATTC_READ, &wb));
  PetscCall(MatTCWrapGet(x, MATTC_WRITE, &wx));
  if (D->theirs) PetscCall((backward ? MatBackwardSolve : MatForwardSolve)(D->other, wb.cuda, wx.cuda));
  else {
    Vec scaled = wb.cuda;

    PetscCall(MatTCDeviceFactorFindRoot(D, wx.cuda));
    if (backward) {
      if (!D->half) PetscCall(VecDuplicate(wx.cuda, &D->half));
      scaled = D->half;
      PetscCall(VecPointwiseMult(scaled, wb.cuda, D->root));
    }
    PetscCall(VecGetArrayReadAndMemType(scaled, &from, NULL));
    PetscCall(VecGetArrayWriteAndMemType(wx.cuda, &to, NULL));
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_factors_solve_half(D->factors, backward, from, to, MatTCGetParentStream());
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(VecRestoreArrayWriteAndMemType(wx.cuda, &to));
    PetscCall(VecRestoreArrayReadAndMemType(scaled, &from));
    PetscCall(PetscLogGpuFlops((PetscLogDouble)tc_factors_nnz(D->factors)));
    if (!backward) PetscCall(VecPointwiseMult(wx.cuda, wx.cuda, D->root));
  }
  PetscCall(MatTCWrapRestore(&wb));
  PetscCall(MatTCWrapRestore(&wx));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "aijtccusparse cannot solve with half of a factor: %s", tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatForwardSolve_TCDeviceFactor(Mat F, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolveHalf(F, b, x, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBackwardSolve_TCDeviceFactor(Mat F, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSolveHalf(F, b, x, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCDeviceFactorSetSolves(Mat F, PetscBool symmetric)
{
  PetscFunctionBegin;
  PetscCall(MatSetOperation(F, MATOP_SOLVE, (PetscErrorCodeFn *)MatSolve_TCDeviceFactor));
  PetscCall(MatSetOperation(F, MATOP_SOLVE_TRANSPOSE, (PetscErrorCodeFn *)MatSolveTranspose_TCDeviceFactor));
  PetscCall(MatSetOperation(F, MATOP_MAT_SOLVE, (PetscErrorCodeFn *)MatMatSolve_TCDeviceFactor));
  PetscCall(MatSetOperation(F, MATOP_MAT_SOLVE_TRANSPOSE, (PetscErrorCodeFn *)MatMatSolveTranspose_TCDeviceFactor));
  if (!symmetric) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOperation(F, MATOP_FORWARD_SOLVE, (PetscErrorCodeFn *)MatForwardSolve_TCDeviceFactor));
  PetscCall(MatSetOperation(F, MATOP_BACKWARD_SOLVE, (PetscErrorCodeFn *)MatBackwardSolve_TCDeviceFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
