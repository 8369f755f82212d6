/*
  Incomplete factors of sequential matrices on the GPU. They are computed and solved with there (plan/factors.h): ILU(0), PETSc's default preconditioner, and ICC(0) in the pattern of the matrix, those with more levels or
  in other orders in what MATSOLVERPETSC finds (factor_filled.c). If the host is faster, or pivots need what only it does, or rows are too long, this object is a shell around a factor of the host, or of the parent.
*/
#include "solve.h"
#include "../../plan/sweeps.h"

#if PetscDefined(HAVE_CUDA)

static const char device_factor_name[] = "MatAIJTCCUSPARSE_device_factor", host_is_faster[] = "it solves faster, so many rows wait for others";

PetscErrorCode MatTCDeviceFactorGet(Mat F, MatTCDeviceFactor **D)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, device_factor_name, (void *)D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCDeviceFactorReset(MatTCDeviceFactor *D)
{
  PetscFunctionBegin;
  tc_factors_destroy(D->factors);
  D->factors = NULL;
  D->ready   = PETSC_FALSE;
  D->theirs  = PETSC_FALSE;
  PetscCall(VecDestroy(&D->root));
  PetscCall(VecDestroy(&D->half));
  PetscCall(MatDestroy(&D->other));
  PetscCall(ISDestroy(&D->rows));
  PetscCall(ISDestroy(&D->cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCDeviceFactorDestroy(PetscCtxRt context)
{
  MatTCDeviceFactor *D = *(MatTCDeviceFactor **)context;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorReset(D));
  PetscCall(PetscFree(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's factor, or the parent's, as the first one that does not decline */
static PetscErrorCode MatTCDeviceFactorTurnTo(Mat F, MatTCDeviceFactor *D, Mat A, PetscBool host)
{
  MatFactorType type;

  PetscFunctionBegin;
  PetscCall(MatGetFactorType(F, &type));
  PetscCall(MatDestroy(&D->other));
  D->host = host;
  if (host) PetscCall(MatTCHostFactorCreate(A, type, &D->other));
  if (!D->other) PetscCall(MatTCParentFactorCreate(A, type, &D->other));
  PetscCall(D->symmetric ? MatICCFactorSymbolic(D->other, A, D->rows, &D->info) : MatILUFactorSymbolic(D->other, A, D->rows, D->cols, &D->info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of the other one, which may fail as PETSc's do */
static PetscErrorCode MatTCDeviceFactorComputeOther(Mat F, MatTCDeviceFactor *D, Mat A, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatFactorClearError(D->other)); /* of numbers before these */
  PetscCall(D->symmetric ? MatCholeskyFactorNumeric(D->other, A, info) : MatLUFactorNumeric(D->other, A, info));
  D->ready  = PETSC_TRUE;
  D->theirs = PETSC_TRUE;
  MatTCFactorIsDone(F, D->other);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What becomes of small pivots. Of ICC none is shifted alone */
static tc_pivot_rule MatTCPivotRule(const MatFactorInfo *info, PetscBool symmetric)
{
  if (info->shifttype == (PetscReal)MAT_SHIFT_NONZERO) return TC_PIVOT_SHIFTS_ALL;
  if (info->shifttype == (PetscReal)MAT_SHIFT_POSITIVE_DEFINITE) return TC_PIVOT_SHIFTS_SIGNED;
  return info->shifttype == (PetscReal)MAT_SHIFT_INBLOCKS && !symmetric ? TC_PIVOT_SHIFTS : TC_PIVOT_STAYS;
}

/* Numbers on the GPU, or why there are none that can be used */
static PetscErrorCode MatTCDeviceFactorCompute(MatTCDeviceFactor *D, Mat A, const MatFactorInfo *info, const char **why, int *trouble)
{
  const PetscScalar *values;
  tc_status          status;

  PetscFunctionBegin;
  PetscCall(MatTCGetDeviceValues(A, &values));
  PetscCall(PetscLogGpuTimeBegin());
  status = tc_factors_compute(D->factors, values, MatTCPivotRule(info, D->symmetric), (double)info->zeropivot, (double)info->shiftamount, trouble, MatTCGetParentStream());
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  *why = status != TC_OK ? tc_last_error() : *trouble ? "a pivot is too small" : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatLUFactorNumeric() and MatCholeskyFactorNumeric() */
static PetscErrorCode MatFactorNumeric_TCDeviceFactor(Mat F, Mat A, const MatFactorInfo *info)
{
  MatTCDeviceFactor *D;
  Mat_AIJTCCUSPARSE *tc;
  const char        *why     = "the matrix has left the GPU";
  int                trouble = 0;
  MatInfo            entries;
  PetscBool          bound;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, &D));
  if (!D->factors) {
    PetscCheck(D->other, PETSC_COMM_SELF, PETSC_ERR_ORDER, "A factor gets its numbers after its symbolic factorization, of which there was none");
    PetscCall(MatTCDeviceFactorComputeOther(F, D, A, info));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetInfo(A, MAT_LOCAL, &entries));
  PetscCheck((PetscInt64)entries.nz_used == D->entries, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has %.0f entries, its symbolic factorization was of %" PetscInt64_FMT ", expected the same pattern", entries.nz_used, D->entries);
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(VecDestroy(&D->root));
  D->theirs = PETSC_FALSE;
  if (tc && !bound) {
    PetscCall(MatTCSendToDevice(A, tc, D->backend));
    PetscCall(MatTCDeviceFactorCompute(D, A, info, &why, &trouble));
  }
  if (!why) {
    D->ready = PETSC_TRUE;
    MatTCFactorIsDone(F, NULL);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(A, "aijtccusparse leaves these factors to %s: %s\n", MATSOLVERPETSC, why)); /* cuSPARSE does not look at pivots */
  if (!D->other) PetscCall(MatTCDeviceFactorTurnTo(F, D, A, PETSC_TRUE));
  PetscCall(MatTCDeviceFactorComputeOther(F, D, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the GPU factor the matrix so, as far as is known before it is asked? */
static PetscErrorCode MatTCDeviceFactorCan(Mat A, const MatTCDeviceFactor *D, const tc_backend **backend, PetscBool *can)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscInt           m;
  PetscBool          bound;

  PetscFunctionBegin;
  *can = PETSC_FALSE;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  if (!tc || bound || m == 0 || D->info.factoronhost || D->info.solveonhost || MatTCSparesDevice(A, tc) || MatTCLeftToParent(tc)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCCurrentBackend(A, tc->parent, backend));
  if (!(*backend)->factor) PetscFunctionReturn(PETSC_SUCCESS);
  if (D->filled) *can = PETSC_TRUE; /* PETSc looks at the diagonal */
  else PetscCall(MatTCHasFullDiagonal(A, tc, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Levels of rows, in both directions, up to which the GPU is to solve */
static int32_t MatTCDeviceFactorMostLevels(const MatTCDeviceFactor *D, int32_t m, int64_t nnz, int32_t row_group)
{
  const int32_t most = D->wanted ? INT32_MAX : tc_factors_most_levels(m, nnz, row_group);

  return most > INT32_MAX / 2 ? INT32_MAX : 2 * most;
}

/* In the pattern of the matrix. *why: there are none */
static PetscErrorCode MatTCDeviceFactorCreateSame(Mat A, MatTCDeviceFactor *D, const char **why)
{
  const PetscScalar *values;
  Mat_AIJTCCUSPARSE *tc;
  MatTCPattern       P;
  tc_status          status = TC_OK;
  int32_t            most;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCSendToDevice(A, tc, D->backend));
  PetscCall(MatTCGetDeviceValues(A, &values)); /* with them comes the pattern */
  PetscCall(MatTCPatternGetLocal(A, D->backend, MatTCGetParentStream(), &P, &status));
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &P.local.row_group));
  most = MatTCDeviceFactorMostLevels(D, P.local.num_rows, P.local.nnz, P.local.row_group);
  if (status == TC_OK) status = tc_factors_create(D->backend, &P.local, D->symmetric, MATTC_SCALAR, most, &D->factors, MatTCGetParentStream());
  PetscCall(MatTCPatternRestore(A, D->backend, &P));
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  *why = status == TC_OK ? host_is_faster : tc_last_error();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the pattern of the other factor, which is the host's and stays: pivots may need it */
static PetscErrorCode MatTCDeviceFactorCreateFilled(Mat A, MatTCDeviceFactor *D, const char **why)
{
  tc_factors_pattern P;
  Mat_AIJTCCUSPARSE *tc;
  tc_status          status;
  PetscBool          done;

  PetscFunctionBegin;
  *why = "PETSc's own factor has more entries than 32 bits count, or another layout";
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCFactorPatternGet(D->other, A, D->symmetric, D->rows, D->symmetric ? D->rows : D->cols, &P, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &P.row_group));
  status = tc_factors_create_filled(D->backend, &P, D->symmetric, MATTC_SCALAR, MatTCDeviceFactorMostLevels(D, P.num_rows, P.nnz, P.row_group), &D->factors, MatTCGetParentStream());
  *why   = status == TC_OK ? host_is_faster : tc_last_error();
  PetscCall(MatTCFactorPatternRestore(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCDeviceFactorSymbolic(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info)
{
  MatTCDeviceFactor *D;
  MatFactorType      type;
  MatInfo            entries;
  const char        *why = NULL;
  PetscBool          can, natural, same = PETSC_TRUE, host = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, &D));
  PetscCall(PetscObjectReference((PetscObject)rows));
  if (cols) PetscCall(PetscObjectReference((PetscObject)cols));
  PetscCall(MatTCDeviceFactorReset(D));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &entries));
  PetscCall(ISIdentity(rows, &natural));
  if (cols) PetscCall(ISIdentity(cols, &same));
  D->rows    = rows;
  D->cols    = cols;
  D->info    = *info;
  D->entries = (PetscInt64)entries.nz_used;
  D->filled  = (PetscBool)(info->levels > 0 || !natural || !same);
  PetscCall(MatTCDeviceFactorCan(A, D, &D->backend, &can));
  if (can && !D->filled) PetscCall(MatTCDeviceFactorCreateSame(A, D, &why));
  if (can && !D->factors && why != host_is_faster && D->symmetric) D->filled = PETSC_TRUE; /* its pattern may not be symmetric, then the upper triangle counts */
  if (can && !D->factors && D->filled) {
    PetscCall(MatTCDeviceFactorTurnTo(F, D, A, PETSC_TRUE));
    PetscCall(MatTCDeviceFactorCreateFilled(A, D, &why));
  }
  if (D->factors) PetscCall(PetscInfo(A, "aijtccusparse factors on the GPU: %d levels of rows forward, %d backward, %" PetscInt64_FMT " entries\n", (int)tc_factors_levels(D->factors, 0), (int)tc_factors_levels(D->factors, 1), (PetscInt64)tc_factors_nnz(D->factors)));
  if (D->factors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetFactorType(F, &type));
  if (why != host_is_faster) PetscCall(MatTCFactorOnHost(A, type, PETSC_TRUE, &host));
  if (can) PetscCall(PetscInfo(A, "aijtccusparse leaves these factors to %s: %s\n", host ? MATSOLVERPETSC : MATSOLVERCUSPARSE, why));
  if (!D->other || D->host != host) PetscCall(MatTCDeviceFactorTurnTo(F, D, A, host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatICCFactorSymbolic_TCDeviceFactor(Mat F, Mat A, IS rows, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorSymbolic(F, A, rows, NULL, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As the parent tells of its own */
static PetscErrorCode MatGetInfo_TCDeviceFactor(Mat F, MatInfoType flag, MatInfo *info)
{
  MatTCDeviceFactor *D;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, &D));
  PetscCall(PetscMemzero(info, sizeof(*info)));
  if (D->other && (D->theirs || !D->factors)) PetscCall(MatGetInfo(D->other, flag, info));
  else if (D->factors) {
    info->block_size        = 1.0;
    info->nz_allocated      = (PetscLogDouble)tc_factors_nnz(D->factors);
    info->nz_used           = info->nz_allocated;
    info->fill_ratio_given  = D->info.fill;
    info->fill_ratio_needed = info->nz_used / (PetscLogDouble)PetscMax(D->entries, 1);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_TCDeviceFactor(Mat F, PetscViewer viewer)
{
  MatTCDeviceFactor *D;
  PetscViewerFormat  format;
  PetscBool          ascii;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, &D));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (D->other && (D->theirs || !D->factors)) {
    MatSolverType solver;

    PetscCall(MatFactorGetSolverType(D->other, &solver));
    if (!ascii || (format != PETSC_VIEWER_ASCII_INFO && format != PETSC_VIEWER_ASCII_INFO_DETAIL)) PetscCall(MatView(D->other, viewer));
    else if (!PetscCIEnabled || format == PETSC_VIEWER_ASCII_INFO_DETAIL) PetscCall(PetscViewerASCIIPrintf(viewer, "  computed, and solved with, by %s\n", solver));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ascii || !D->factors || (PetscCIEnabled && format != PETSC_VIEWER_ASCII_INFO_DETAIL)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  on the GPU, %s: %d levels of rows forward, %d backward; %" PetscInt64_FMT " solves\n", D->filled ? "in the pattern that " MATSOLVERPETSC " finds" : "in the pattern of the matrix", (int)tc_factors_levels(D->factors, 0), (int)tc_factors_levels(D->factors, 1), D->count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFactorGetSolverType_TCDeviceFactor(Mat F, MatSolverType *solver)
{
  MatTCDeviceFactor *D;

  PetscFunctionBegin;
  PetscCall(MatTCDeviceFactorGet(F, &D));
  *solver = MATSOLVERAIJTCCUSPARSE;
  if (D->other && !D->factors) PetscCall(MatFactorGetSolverType(D->other, solver));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_TCDeviceFactor(Mat F)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatFactorGetSolverType_C", NULL));
  PetscCall(PetscObjectCompose((PetscObject)F, device_factor_name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factor of a sequential matrix that is not bound to the CPU: ILU or ICC; `named`: whoever wants it knows whose it is */
PetscErrorCode MatTCDeviceFactorCreate(Mat A, MatFactorType type, PetscBool named, Mat *F)
{
  MatTCDeviceFactor *D;
  Mat_AIJTCCUSPARSE *tc;
  PetscBool          symmetric;
  PetscInt           m, n;
  VecType            vectors;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), F));
  PetscCall(MatSetSizes(*F, m, n, m, n));
  PetscCall(PetscObjectChangeTypeName((PetscObject)*F, MATSOLVERAIJTCCUSPARSE));
  PetscCall(MatSetUp(*F));
  PetscCall(MatSetBlockSizesFromMats(*F, A, A));
  PetscCall(MatGetVecType(A, &vectors));
  PetscCall(MatSetVecType(*F, vectors));
  PetscCall(MatTCMakeFactor(*F, type));
  PetscCall(PetscNew(&D));
  symmetric    = (PetscBool)(type == MAT_FACTOR_ICC);
  D->symmetric = symmetric;
  D->wanted    = (PetscBool)(named || tc->settings.device_factors);
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, device_factor_name, D, MatTCDeviceFactorDestroy));
  PetscCall(PetscObjectComposeFunction((PetscObject)*F, "MatFactorGetSolverType_C", MatFactorGetSolverType_TCDeviceFactor));
  PetscCall(MatSetOperation(*F, symmetric ? MATOP_ICCFACTOR_SYMBOLIC : MATOP_ILUFACTOR_SYMBOLIC, symmetric ? (PetscErrorCodeFn *)MatICCFactorSymbolic_TCDeviceFactor : (PetscErrorCodeFn *)MatTCDeviceFactorSymbolic));
  PetscCall(MatSetOperation(*F, symmetric ? MATOP_CHOLESKY_FACTOR_NUMERIC : MATOP_LUFACTOR_NUMERIC, (PetscErrorCodeFn *)MatFactorNumeric_TCDeviceFactor));
  PetscCall(MatTCDeviceFactorSetSolves(*F, symmetric));
  PetscCall(MatSetOperation(*F, MATOP_GETINFO, (PetscErrorCodeFn *)MatGetInfo_TCDeviceFactor));
  PetscCall(MatSetOperation(*F, MATOP_VIEW, (PetscErrorCodeFn *)MatView_TCDeviceFactor));
  PetscCall(MatSetOperation(*F, MATOP_DESTROY, (PetscErrorCodeFn *)MatDestroy_TCDeviceFactor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
