/*
  Keeping the packed matrix current: the key, the decision hit, refill or rebuild, and the way out when our path cannot serve.
*/
#include "aijtccusparseimpl.h"

/* The backend of the matrix as it is now */
PetscErrorCode MatTCCurrentBackend(Mat A, const MatTCParent *parent, const tc_backend **backend)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  *backend = MatTCGetBackend((PetscBool)(parent->cuda && !bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern part of the key and the state; the values are not touched */
static PetscErrorCode MatTCGetKey(Mat A, const Mat_AIJTCCUSPARSE *tc, tc_key *key)
{
  PetscObjectId    id;
  PetscObjectState state, pattern;
  MatInfo          info;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, &id));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(MatGetNonzeroState(A, &pattern));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  key->id         = (int64_t)id;
  key->state      = (int64_t)state;
  key->pattern    = (int64_t)pattern;
  key->nnz        = (int64_t)info.nz_used;
  key->values     = NULL;
  key->generation = tc->generation;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool MatTCSamePattern(const tc_key *a, const tc_key *b)
{
  return (PetscBool)(a->id == b->id && a->pattern == b->pattern && a->nnz == b->nnz);
}

/* Out of our path for this pattern: one line of -info, and the parent's operations until the pattern changes */
static PetscErrorCode MatTCDecline(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_key *key, const char reason[])
{
  PetscFunctionBegin;
  PetscCall(MatTCContextReset(tc));
  PetscCall(PetscStrncpy(tc->reason, reason, sizeof(tc->reason)));
  tc->declined     = PETSC_TRUE;
  tc->declined_for = *key;
  PetscCall(PetscInfo(A, "aijtccusparse leaves products to the parent type until the pattern changes: %s\n", tc->reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for a failure of the core; `where` says what was going on. PetscObjectGetName() would give the matrix a name that views then show. */
PetscErrorCode MatTCFail(Mat A, Mat_AIJTCCUSPARSE *tc, const char where[], const char text[])
{
  const char *name = ((PetscObject)A)->name;
  char        reason[sizeof(tc->reason)];
  tc_key      key;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(reason, sizeof(reason), "%s of %s failed: %s", where, name ? name : "the matrix", text));
  PetscCall(MatTCGetKey(A, tc, &key));
  PetscCall(MatTCDecline(A, tc, &key, reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Why a matrix with this pattern can never be ours; NULL if it can */
static PetscErrorCode MatTCCheckSupported(Mat A, const Mat_AIJTCCUSPARSE *tc, const tc_key *key, const char **reason)
{
  PetscInt   m, n;
  PetscInt64 largest = key->nnz;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  largest = PetscMax(largest, PetscMax(m, n));
  if (tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_PARENT) *reason = "asked for by -mat_aijtccusparse_spmv parent";
  else if (PetscDefined(USE_COMPLEX)) *reason = "complex scalars are not supported";
  else if (!PetscDefined(USE_REAL_DOUBLE)) *reason = "only double precision is supported";
  else if (MatTCIsStructureOnly(A)) *reason = "the matrix has no values";
  else if (largest > INT32_MAX) *reason = "more local rows, columns or nonzeros than 32-bit ids can name";
  else *reason = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The one place where PetscInt narrows to the core's ids; the caller has checked sizes. What is not borrowed from the matrix is allocated. */
static PetscErrorCode MatTCGetPattern(Mat A, tc_csr *csr, const PetscInt **ia, const PetscInt **ja)
{
  PetscInt  m, n;
  PetscBool done;
  int64_t  *row_ptr;
  int32_t  *col;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, ia, ja, &done));
  PetscCheck(done, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A matrix of type %s does not give its rows", ((PetscObject)A)->type_name);
  PetscCall(PetscMalloc1(m + 1, &row_ptr));
  row_ptr[0] = 0;
  for (PetscInt i = 0; i < m; i++) row_ptr[i + 1] = (int64_t)(*ia)[i + 1];
  csr->num_rows = (int32_t)m;
  csr->num_cols = (int32_t)n;
  csr->row_ptr  = row_ptr;
  if (sizeof(PetscInt) == sizeof(int32_t)) csr->col = (const int32_t *)*ja;
  else {
    PetscCall(PetscMalloc1(row_ptr[m], &col));
    for (int64_t k = 0; k < row_ptr[m]; k++) col[k] = (int32_t)(*ja)[k];
    csr->col = col;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCRestorePattern(Mat A, tc_csr *csr, const PetscInt **ia, const PetscInt **ja)
{
  PetscBool done;

  PetscFunctionBegin;
  if (sizeof(PetscInt) != sizeof(int32_t)) PetscCall(PetscFree(csr->col));
  PetscCall(PetscFree(csr->row_ptr));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, ia, ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs the pattern on the host and moves it to the backend; afterwards `prepared`, or declined */
static PetscErrorCode MatTCBuild(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, const tc_key *key, tc_stream stream)
{
  /* in the order of MatAIJTCCUSPARSEArithmetic */
  static const tc_arithmetic arithmetics[] = {TC_ARITHMETIC_AUTO, TC_ARITHMETIC_MMA, TC_ARITHMETIC_FMA};
  const tc_plan_options      options       = {tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_DASP ? "dasp" : NULL, arithmetics[tc->settings.arithmetic]};
  const PetscInt            *ia, *ja;
  tc_csr                     csr;
  tc_stats                   stats;
  tc_status                  status = TC_OK;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Build, A, 0, 0, 0));
  if (!tc->plan) status = tc_plan_create(backend, &options, &tc->plan);
  if (status == TC_OK) {
    PetscCall(MatTCGetPattern(A, &csr, &ia, &ja));
    status = tc_plan_build(tc->plan, &csr);
    PetscCall(MatTCRestorePattern(A, &csr, &ia, &ja));
  }
  PetscCall(PetscLogEventEnd(MATTC_Build, A, 0, 0, 0));
  if (status == TC_OK) {
    PetscCall(PetscLogEventBegin(MATTC_Upload, A, 0, 0, 0));
    status = tc_plan_upload(tc->plan, stream);
    PetscCall(PetscLogEventEnd(MATTC_Upload, A, 0, 0, 0));
  }
  if (status != TC_OK) {
    PetscCall(MatTCFail(A, tc, "packing", tc_last_error()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  tc_plan_stats(tc->plan, &stats);
  tc->nonempty_rows = stats.num_nonempty_rows;
  tc->prepared      = PETSC_TRUE;
  tc->prepared_for  = *key;
  if (backend != tc_backend_host()) PetscCall(PetscLogCpuToGpu((PetscLogDouble)(stats.index_bytes + stats.map_bytes)));
  PetscCall(PetscInfo(A, "aijtccusparse packed %" PetscInt64_FMT " nonzeros into %" PetscInt64_FMT " slots for the %s backend, kernel %s (%s); %s\n",
                      stats.num_nonzeros, stats.num_slots, backend->name, tc_plan_kernel(tc->plan)->name, tc_plan_why(tc->plan), stats.classes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Key and checks that come before values. `usable` is false when the parent has to serve.
*/
static PetscErrorCode MatTCBegin(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend **backend, tc_key *key, tc_stream *stream, PetscBool *usable)
{
  const char *reason = NULL;

  PetscFunctionBegin;
  *usable = PETSC_FALSE;
  *stream = NULL;
  PetscCall(MatTCCurrentBackend(A, tc->parent, backend));
  if (tc->plan && tc_plan_backend(tc->plan) != *backend) PetscCall(MatTCContextReset(tc));
  PetscCall(MatTCGetKey(A, tc, key));
  if (tc->declined) {
    if (MatTCSamePattern(&tc->declined_for, key)) PetscFunctionReturn(PETSC_SUCCESS);
    tc->declined = PETSC_FALSE;
  }
  PetscCall(MatTCCheckSupported(A, tc, key, &reason));
  if (reason) {
    PetscCall(MatTCDecline(A, tc, key, reason));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (*backend != tc_backend_host()) PetscCall(MatTCGetCurrentStream(stream));
  *usable = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs the pattern ahead of the first product, without values: those may still change before it */
PetscErrorCode MatTCPrepare(Mat A, Mat_AIJTCCUSPARSE *tc)
{
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  PetscBool         usable;

  PetscFunctionBegin;
  PetscCall(MatTCBegin(A, tc, &backend, &key, &stream, &usable));
  if (!usable || (tc->prepared && MatTCSamePattern(&tc->prepared_for, &key))) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->plan && tc_plan_check(tc->plan, &key) != TC_CACHE_REBUILD) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBuild(A, tc, backend, &key, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gathers the values. On the GPU they come from the parent's stream and may be overwritten there afterwards: order our stream behind, and that one behind ours. */
static PetscErrorCode MatTCRefill(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, const PetscScalar *values, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  const PetscBool host   = (PetscBool)(backend == tc_backend_host());
  const tc_stream source = host ? NULL : MatTCGetParentStream();
  const char     *text   = NULL;
  tc_status       status = TC_OK;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Refill, A, 0, 0, 0));
  if (stream != source) {
    status = backend->wait(stream, source);
    text   = backend->last_error();
  }
  if (status == TC_OK) {
    if (!host) PetscCall(PetscLogGpuTimeBegin());
    status = tc_plan_refill(tc->plan, (const double *)(const void *)values, key, verdict, stream);
    if (!host) PetscCall(PetscLogGpuTimeEnd());
    text = tc_last_error();
  }
  if (status == TC_OK && stream != source) {
    status = backend->wait(source, stream);
    text   = backend->last_error();
  }
  PetscCall(PetscLogEventEnd(MATTC_Refill, A, 0, 0, 0));
  if (status != TC_OK) PetscCall(MatTCFail(A, tc, "gathering the values", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the packed matrix current. `ready` is false when the parent has to serve. */
PetscErrorCode MatTCEnsure(Mat A, Mat_AIJTCCUSPARSE *tc, tc_stream *stream, PetscBool *ready)
{
  const tc_backend  *backend;
  const PetscScalar *values;
  tc_key             key;
  tc_verdict         verdict;
  PetscBool          host;

  PetscFunctionBegin;
  PetscCall(MatTCBegin(A, tc, &backend, &key, stream, ready));
  if (!*ready) PetscFunctionReturn(PETSC_SUCCESS);
  host = (PetscBool)(backend == tc_backend_host());
  if (host) PetscCall(MatSeqAIJGetArrayRead(A, &values));
  else PetscCall(MatTCGetDeviceValues(A, &values));
  key.values = values;
  verdict    = tc->plan ? tc_plan_check(tc->plan, &key) : TC_CACHE_REBUILD;
  if (verdict == TC_CACHE_HIT) {
    tc_plan_hit(tc->plan);
    /* another stream than last time: what it was filled on is ordered before the parent's stream */
    if (*stream != tc->stream && backend->wait(*stream, MatTCGetParentStream()) != TC_OK) PetscCall(MatTCFail(A, tc, "ordering of streams", backend->last_error()));
  } else {
    if (verdict == TC_CACHE_REBUILD && !(tc->prepared && MatTCSamePattern(&tc->prepared_for, &key))) PetscCall(MatTCBuild(A, tc, backend, &key, *stream));
    tc->prepared = PETSC_FALSE;
    if (!tc->declined) PetscCall(MatTCRefill(A, tc, backend, values, &key, verdict, *stream));
  }
  tc->stream = *stream;
  if (host) PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  else PetscCall(MatTCRestoreDeviceValues(A, &values));
  *ready = (PetscBool)!tc->declined;
  PetscFunctionReturn(PETSC_SUCCESS);
}
