/*
  Packing a pattern: where the backend lives if it can, else on the host.
*/
#include "aijtccusparseimpl.h"

/* Of the core, for the settings of the matrix */
tc_precision MatTCPrecision(const Mat_AIJTCCUSPARSE *tc)
{
  static const tc_precision precisions[] = {TC_PRECISION_F64, TC_PRECISION_F32, TC_PRECISION_TF32, TC_PRECISION_BF16, TC_PRECISION_F16}; /* in the order of MatAIJTCCUSPARSEPrecision */

  return precisions[tc->settings.precision];
}

static void MatTCGetPlanOptions(const Mat_AIJTCCUSPARSE *tc, const MatTCSide *side, tc_plan_options *options)
{
  /* in the order of MatAIJTCCUSPARSESpMV and MatAIJTCCUSPARSEArithmetic */
  static const char *const   formats[]     = {NULL, "dasp", "hybrid"};
  static const tc_arithmetic arithmetics[] = {TC_ARITHMETIC_AUTO, TC_ARITHMETIC_MMA, TC_ARITHMETIC_FMA};

  options->format     = side->format ? side->format : formats[tc->settings.spmv];
  options->arithmetic = arithmetics[tc->settings.arithmetic];
  options->precision  = side->format ? side->precision : MatTCPrecision(tc);
  options->scalar     = MATTC_SCALAR;
}

/* The order of the rows, if there is one, to where the pattern is */
static tc_status MatTCUploadOrder(const tc_backend *backend, const int32_t *row_order, tc_stream stream, MatTCPattern *P)
{
  const size_t bytes = (size_t)P->local.num_rows * sizeof(*row_order);

  if (row_order == NULL) return TC_OK;
  TC_CALL(tc_from_backend(backend, backend->alloc(bytes, &P->uploaded_order)));
  P->local.row_order = (const int32_t *)P->uploaded_order;
  return tc_from_backend(backend, backend->upload(P->uploaded_order, row_order, bytes, stream));
}

/* From the pattern that the parent has on the device */
static PetscErrorCode MatTCBuildLocal(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const int32_t *row_order, const tc_backend *backend, tc_stream stream, tc_status *status)
{
  MatTCPattern pattern;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Build, A, 0, 0, 0));
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &pattern, status));
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &pattern.local.row_group));
  if (*status == TC_OK) *status = MatTCUploadOrder(backend, row_order, stream, &pattern);
  if (*status == TC_OK) *status = tc_plan_build_local(side->plan, &pattern.local, stream);
  PetscCall(MatTCPatternRestore(A, backend, &pattern));
  PetscCall(PetscLogEventEnd(MATTC_Build, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCBuildOnHost(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const int32_t *row_order, const tc_backend *backend, tc_stream stream, tc_status *status)
{
  MatTCPattern pattern;
  tc_stats     stats;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Build, A, 0, 0, 0));
  PetscCall(MatTCPatternGetHost(A, &pattern));
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &pattern.host.row_group));
  pattern.host.row_order = row_order;
  *status                = tc_plan_build(side->plan, &pattern.host);
  PetscCall(MatTCPatternRestore(A, backend, &pattern));
  PetscCall(PetscLogEventEnd(MATTC_Build, A, 0, 0, 0));
  if (*status != TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MATTC_Upload, A, 0, 0, 0));
  *status = tc_plan_upload(side->plan, stream);
  PetscCall(PetscLogEventEnd(MATTC_Upload, A, 0, 0, 0));
  if (backend == tc_backend_host()) PetscFunctionReturn(PETSC_SUCCESS);
  tc_plan_stats(side->plan, &stats);
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)(stats.index_bytes + stats.map_bytes)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCBuildForward(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_plan_options *options, const tc_backend *backend, tc_stream stream, tc_status *status)
{
  int32_t  *row_order;
  PetscBool packed = PETSC_FALSE;

  PetscFunctionBegin;
  if (!side->plan) *status = tc_plan_create(backend, options, &side->plan);
  if (*status != TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetRowOrder(A, tc, side, &row_order));
  if (tc_plan_builds_local(side->plan)) {
    PetscCall(MatTCBuildLocal(A, tc, side, row_order, backend, stream, status));
    packed = (PetscBool)(*status == TC_OK);
    if (!packed) PetscCall(PetscInfo(A, "aijtccusparse packs on the host, since packing on the GPU failed: %s\n", tc_last_error()));
  }
  if (!packed) PetscCall(MatTCBuildOnHost(A, tc, side, row_order, backend, stream, status));
  PetscCall(PetscFree(row_order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCBuildTranspose(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_plan_options *options, const tc_backend *backend, tc_stream stream, tc_status *status)
{
  MatTCPattern pattern;
  int32_t      row_group;

  PetscFunctionBegin;
  if (!side->transpose) *status = tc_transpose_create(backend, options, &side->transpose);
  if (*status != TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  side->plan = tc_transpose_plan(side->transpose);
  PetscCall(PetscLogEventBegin(MATTC_Build, A, 0, 0, 0));
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_TRANSPOSE, &row_group));
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &pattern, status));
  if (*status == TC_OK) *status = tc_transpose_build(side->transpose, &pattern.local, row_group, side->rows_wanted, stream);
  PetscCall(MatTCPatternRestore(A, backend, &pattern));
  PetscCall(PetscLogEventEnd(MATTC_Build, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs the pattern for that side, without values */
PetscErrorCode MatTCBuild(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, tc_stream stream, tc_status *status)
{
  const PetscBool transpose = (PetscBool)(side == &tc->side[MATTC_TRANSPOSE]);
  tc_plan_options options;
  tc_stats        stats;
  PetscBool       told;

  PetscFunctionBegin;
  *status = TC_OK;
  if (backend->clear_error) backend->clear_error(); /* CUB would take it for its own */
  MatTCGetPlanOptions(tc, side, &options);
  PetscCall((transpose ? MatTCBuildTranspose : MatTCBuildForward)(A, tc, side, &options, backend, stream, status));
  if (*status != TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  tc_plan_stats(side->plan, &stats);
  side->nonempty_rows = stats.num_nonempty_rows;
  PetscCall(PetscInfoEnabled(MAT_CLASSID, &told)); /* else nobody has to wait for the words */
  if (!told) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscInfo(A, "aijtccusparse packed %" PetscInt64_FMT " nonzeros%s into %" PetscInt64_FMT " slots for the %s backend, format %s, kernel %s (%s); %s\n", stats.num_nonzeros,
                      transpose ? " of the transpose" : "", stats.num_slots, backend->name, tc_plan_kernel(side->plan)->format, tc_plan_kernel(side->plan)->name, tc_plan_why(side->plan), stats.classes));
  PetscFunctionReturn(PETSC_SUCCESS);
}
