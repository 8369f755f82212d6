/*
  Keeping the packed matrix current: the key, the decision hit, refill or rebuild, and the way out when our path cannot serve.
*/
#include "aijtccusparseimpl.h"

enum {
  MOST_IDS = INT32_MAX - (1 << 24) /* kernels count some beyond the last one, by thread blocks */
};

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
PetscErrorCode MatTCGetKey(Mat A, const Mat_AIJTCCUSPARSE *tc, tc_key *key)
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
  key->holder     = A; /* MatHeaderReplace() moves id and states of the pattern with what they are of, but not the state of the values */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool MatTCSamePattern(const tc_key *a, const tc_key *b)
{
  return (PetscBool)(a->id == b->id && a->pattern == b->pattern && a->nnz == b->nnz);
}

/* What is not done, in the words of -info, when that side is declined */
static const char *MatTCSideText(const Mat_AIJTCCUSPARSE *tc, const MatTCSide *side)
{
  if (side == &tc->side[MATTC_TRANSPOSE]) return "transposed products to the parent type";
  if (side == &tc->dense.side) return "products with dense blocks to the parent type";
  return side == &tc->dense.packed ? "products with dense blocks to the kernel for CSR" : "products to the parent type";
}

/* Out of our path for this pattern: one line of -info, and the parent's operations until the pattern changes */
static PetscErrorCode MatTCDecline(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_key *key, const char reason[])
{
  PetscFunctionBegin;
  PetscCall(MatTCSideReset(tc, side));
  PetscCall(PetscStrncpy(side->reason, reason, sizeof(side->reason)));
  side->declined     = PETSC_TRUE;
  side->declined_for = *key;
  PetscCall(PetscInfo(A, "aijtccusparse leaves %s until the pattern changes: %s\n", MatTCSideText(tc, side), side->reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for a failure of the core; `where` says what was going on. PetscObjectGetName() would give the matrix a name that views then show. */
PetscErrorCode MatTCFail(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const char where[], const char text[])
{
  const char *name = ((PetscObject)A)->name;
  char        reason[sizeof(side->reason)];
  tc_key      key;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(reason, sizeof(reason), "%s of %s failed: %s", where, name ? name : "the matrix", text));
  PetscCall(MatTCGetKey(A, tc, &key));
  PetscCall(MatTCDecline(A, tc, side, &key, reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Why that side of a matrix with this pattern can never be ours; NULL if it can */
static PetscErrorCode MatTCCheckSupported(Mat A, const Mat_AIJTCCUSPARSE *tc, const MatTCSide *side, const tc_key *key, const char **reason)
{
  const PetscBool dense = (PetscBool)(side == &tc->dense.side || side == &tc->dense.packed);
  PetscInt        m, n;
  PetscInt64      largest = key->nnz;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  largest = PetscMax(largest, PetscMax(m, n));
  if (!dense && (tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_CUSPARSE || tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_PARENT)) *reason = "asked for by -mat_aijtccusparse_spmv";
  else if (dense && tc->settings.spmm == MAT_AIJTCCUSPARSE_SPMM_CUSPARSE) *reason = "asked for by -mat_aijtccusparse_spmm";
  else if (!dense && tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_DASP && tc->settings.precision != MAT_AIJTCCUSPARSE_PRECISION_FP64) *reason = "format dasp keeps values in fp64 only";
  else if (PetscDefined(USE_COMPLEX)) *reason = "complex scalars are not supported";
  else if (!MATTC_SCALAR_IS_OURS) *reason = "only double and single precision are supported";
  else if (MatTCIsStructureOnly(A)) *reason = "the matrix has no values";
  else if (largest > MOST_IDS) *reason = "more than 2^31 - 2^24 local rows, columns or nonzeros, of which 32-bit ids can name no more";
  else *reason = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs the pattern; afterwards `prepared`, or declined */
static PetscErrorCode MatTCRebuild(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const tc_key *key, tc_stream stream)
{
  PetscLogDouble begin, end;
  tc_status      status;

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  PetscCall(MatTCBuild(A, tc, side, backend, stream, &status));
  PetscCall(PetscTime(&end));
  side->conversion_ms = 1000 * (end - begin);
  if (status == TC_OK) {
    side->prepared     = PETSC_TRUE;
    side->prepared_for = *key;
  } else PetscCall(MatTCFail(A, tc, side, "packing", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products with one matrix share memory, where long rows are added up, say, and must not overlap. So the first on another stream than the one before, which may be gone by now, waits for the
  device, unless it is being captured: then nothing may wait, and who captures orders the streams.
*/
static PetscErrorCode MatTCFollowStream(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, tc_stream stream)
{
  PetscFunctionBegin;
  if (tc->has_stream && tc->stream != stream && !backend->capturing(stream) && backend->drain() != TC_OK) PetscCall(MatTCFail(A, tc, side, "waiting for products on another stream", backend->last_error()));
  tc->has_stream = PETSC_TRUE;
  tc->stream     = stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Key and checks that come before values. `usable` is false when the parent has to serve.
*/
PetscErrorCode MatTCBegin(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend **backend, tc_key *key, tc_stream *stream, PetscBool *usable)
{
  const char *reason = NULL;

  PetscFunctionBegin;
  *usable = PETSC_FALSE;
  *stream = NULL;
  PetscCall(MatTCCurrentBackend(A, tc->parent, backend));
  if (side->plan && tc_plan_backend(side->plan) != *backend) PetscCall(MatTCSideReset(tc, side));
  PetscCall(MatTCGetKey(A, tc, key));
  if (side->declined) {
    if (MatTCSamePattern(&side->declined_for, key)) PetscFunctionReturn(PETSC_SUCCESS);
    side->declined = PETSC_FALSE;
  }
  PetscCall(MatTCCheckSupported(A, tc, side, key, &reason));
  if (reason) {
    PetscCall(MatTCDecline(A, tc, side, key, reason));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (*backend != tc_backend_host()) {
    PetscCall(MatTCGetCurrentStream(stream));
    PetscCall(MatTCFollowStream(A, tc, side, *backend, *stream));
  }
  *usable = (PetscBool)!side->declined;
  if (*usable && !MatTCSparesDevice(A, tc)) PetscCall(MatTCSendToDevice(A, tc, *backend));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs the pattern ahead of the first product, without values: those may still change before it */
PetscErrorCode MatTCPrepare(Mat A, Mat_AIJTCCUSPARSE *tc)
{
  MatTCSide        *side = &tc->side[MATTC_FORWARD];
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  PetscBool         usable, lost = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCBegin(A, tc, side, &backend, &key, &stream, &usable));
  if (usable) PetscCall(MatTCTrialLost(A, tc, &lost));
  if (!usable || lost || (side->prepared && MatTCSamePattern(&side->prepared_for, &key))) PetscFunctionReturn(PETSC_SUCCESS);
  if (side->plan && tc_plan_check(side->plan, &key) != TC_CACHE_REBUILD) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCRebuild(A, tc, side, backend, &key, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gathers the values. On the GPU they come from the parent's stream and may be overwritten there afterwards: order our stream behind, and that one behind ours. */
static PetscErrorCode MatTCRefill(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const PetscScalar *values, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  const PetscBool  host   = (PetscBool)(backend == tc_backend_host());
  const tc_stream  source = host ? NULL : MatTCGetParentStream();
  const tc_kernel *kernel = tc_plan_kernel(side->plan);
  tc_status        status = TC_OK;
  PetscLogDouble   begin, end;

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  PetscCall(PetscLogEventBegin(MATTC_Refill, A, 0, 0, 0));
  if (stream != source) status = tc_from_backend(backend, backend->wait(stream, source));
  if (status == TC_OK) {
    if (!host) PetscCall(PetscLogGpuTimeBegin());
    status = side->transpose ? tc_transpose_refill(side->transpose, values, key, verdict, stream) : tc_plan_refill(side->plan, values, key, verdict, stream);
    if (!host) PetscCall(PetscLogGpuTimeEnd());
  }
  if (status == TC_OK && stream != source) status = tc_from_backend(backend, backend->wait(source, stream));
  if (status == TC_OK && verdict == TC_CACHE_REBUILD && MatTCTrialComes(tc, side)) status = tc_from_backend(backend, backend->synchronize(stream)); /* a trial asks how long it took */
  PetscCall(PetscLogEventEnd(MATTC_Refill, A, 0, 0, 0));
  PetscCall(PetscTime(&end));
  if (verdict == TC_CACHE_REBUILD) side->conversion_ms += 1000 * (end - begin);
  else if (tc_straight_wants_times(backend, key->nnz)) tc_straight_timed(&side->straight, TC_STRAIGHT_REFILL, 1000 * (end - begin));
  if (status != TC_OK) PetscCall(MatTCFail(A, tc, side, "gathering the values", tc_last_error()));
  else if (tc_plan_kernel(side->plan) != kernel) PetscCall(PetscInfo(A, "aijtccusparse takes kernel %s in place of %s for these values (%s)\n", tc_plan_kernel(side->plan)->name, kernel->name, tc_plan_why(side->plan)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same with values of the host, for a matrix on the GPU that does without the parent's copy of them */
static PetscErrorCode MatTCRefillFromHost(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const PetscScalar *values, const tc_key *key, tc_verdict verdict, tc_stream stream)
{
  const size_t bytes  = (size_t)key->nnz * sizeof(*values);
  void        *sent   = NULL;
  tc_status    status = tc_from_backend(backend, backend->alloc(bytes, &sent));

  PetscFunctionBegin;
  if (status == TC_OK && bytes > 0) status = tc_from_backend(backend, backend->upload(sent, values, bytes, stream));
  if (status == TC_OK) {
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
    PetscCall(MatTCRefill(A, tc, side, backend, (const PetscScalar *)sent, key, verdict, stream));
  } else PetscCall(MatTCFail(A, tc, side, "sending the values", tc_last_error()));
  backend->release(sent);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes what is packed for that side current. `ready` is false when the parent has to serve, or the product is to be one straight from CSR, as `waits` tells then. */
PetscErrorCode MatTCEnsure(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, tc_stream *stream, PetscBool *ready)
{
  const tc_backend  *backend;
  const PetscScalar *values;
  tc_key             key;
  tc_verdict         verdict;
  PetscBool          host, sent;

  PetscFunctionBegin;
  side->waits = PETSC_FALSE;
  PetscCall(MatTCBegin(A, tc, side, &backend, &key, stream, ready));
  if (!*ready) PetscFunctionReturn(PETSC_SUCCESS);
  sent = (PetscBool)(backend != tc_backend_host() && MatTCSparesDevice(A, tc));
  host = (PetscBool)(sent || backend == tc_backend_host());
  if (host) PetscCall(MatSeqAIJGetArrayRead(A, &values));
  else PetscCall(MatTCGetDeviceValues(A, &values));
  key.values = values;
  verdict    = side->plan ? tc_plan_check(side->plan, &key) : TC_CACHE_REBUILD;
  if (verdict == TC_CACHE_HIT && side->may_wait) PetscCall(MatTCPassesOver(A, tc, side, backend, &key, &side->waits));
  if (verdict == TC_CACHE_HIT && !side->waits) {
    tc_plan_hit(side->plan);
    /* another stream than last time: what it was filled on is ordered before the parent's stream */
    if (*stream != side->stream && backend->wait(*stream, MatTCGetParentStream()) != TC_OK) PetscCall(MatTCFail(A, tc, side, "ordering of streams", backend->last_error()));
  } else if (verdict != TC_CACHE_HIT) {
    if (side->may_wait && !side->prepared) PetscCall(MatTCAwaits(A, tc, side, backend, &key, verdict, *stream, &side->waits));
    if (verdict == TC_CACHE_REBUILD && !side->waits && !(side->prepared && MatTCSamePattern(&side->prepared_for, &key))) PetscCall(MatTCRebuild(A, tc, side, backend, &key, *stream));
    side->prepared = PETSC_FALSE;
    if (!side->declined && !side->waits) PetscCall((sent ? MatTCRefillFromHost : MatTCRefill)(A, tc, side, backend, values, &key, verdict, *stream));
    if (!side->declined && !side->waits && !tc->dense.spmm) PetscCall(MatTCPatternForget(&tc->dense)); /* kept for products straight from CSR alone */
  }
  side->stream = *stream;
  if (host) PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  else PetscCall(MatTCRestoreDeviceValues(A, &values));
  *ready = (PetscBool)(!side->declined && !side->waits);
  PetscFunctionReturn(PETSC_SUCCESS);
}
