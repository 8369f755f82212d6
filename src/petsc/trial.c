/*
  The choice that is left to measurement: on a GPU, when a pattern has been multiplied often enough, MatMult() and the parent's, which is cuSPARSE's, are timed once on
  the spot. Only where nobody has asked for a format or a precision, and for local matrices each on its own. The parent has to be clearly faster, since its bits are not ours.
*/
#include "aijtccusparseimpl.h"

/* Is MatMult() of this pattern the parent's since the trial? */
PetscErrorCode MatTCTrialLost(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool *lost)
{
  MatTCTrial *trial = &tc->side[MATTC_FORWARD].trial;
  tc_key      key;
  PetscBool   bound;

  PetscFunctionBegin;
  *lost = PETSC_FALSE;
  if (!trial->timed || !trial->result.theirs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatTCGetKey(A, tc, &key));
  if (!bound && MatTCSamePattern(&trial->key, &key)) *lost = PETSC_TRUE;
  else PetscCall(PetscMemzero(trial, sizeof(*trial)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCIsOnDevice(Vec v, PetscBool *device)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, device, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
  if (*device) PetscCall(VecBoundToCPU(v, device));
  else PetscFunctionReturn(PETSC_SUCCESS);
  *device = (PetscBool)!*device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's product must not fail the program that asked for ours */
static PetscErrorCode MatTCTheirs(Mat A, const Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, PetscBool *works)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatTCParentMult(A, tc->parent, MATOP_MULT, x, NULL, z);
  PetscCall(PetscPopErrorHandler());
  *works = ierr == PETSC_SUCCESS ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product, ours or theirs, from an idle device on; `works` becomes false if it cannot be timed */
static PetscErrorCode MatTCTimeOnce(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool ours, Vec x, Vec z, tc_stream stream, double *ms, PetscBool *works)
{
  MatTCSide        *side    = &tc->side[MATTC_FORWARD];
  const tc_backend *backend = tc_plan_backend(side->plan);
  const tc_stream   on      = ours ? stream : MatTCGetParentStream();
  void             *stopwatch;

  PetscFunctionBegin;
  *works = (PetscBool)(backend->synchronize(stream) == TC_OK && backend->synchronize(on) == TC_OK && backend->time_begin(on, &stopwatch) == TC_OK);
  if (!*works) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ours ? MatTCApply(A, tc, side, 1, x, NULL, z, stream, works) : MatTCTheirs(A, tc, x, z, works));
  if (backend->time_end(on, stopwatch, ms) != TC_OK) *works = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Ours come first: where they are at the floor of CSR already, the parent has nothing to show, and preparing cuSPARSE would cost more than many products. Its first
  product, which does that, is not timed. Ours come last again and leave their result in z.
*/
static PetscErrorCode MatTCTime(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream, double ours[], double theirs[], PetscBool *works, PetscBool *bound)
{
  const double floor_ms = tc_plan_csr_floor_ms(tc->side[MATTC_FORWARD].plan);

  PetscFunctionBegin;
  *works = *bound = PETSC_TRUE;
  for (int r = 0; r < TC_TRIAL_REPEATS && *works; r++) {
    PetscCall(MatTCTimeOnce(A, tc, PETSC_TRUE, x, z, stream, &ours[r], works));
    if (*works && ours[r] > floor_ms) *bound = PETSC_FALSE;
    theirs[r] = floor_ms;
  }
  if (!*works || *bound) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCTheirs(A, tc, x, z, works));
  for (int r = 0; r < TC_TRIAL_REPEATS && *works; r++) PetscCall(MatTCTimeOnce(A, tc, PETSC_FALSE, x, z, stream, &theirs[r], works));
  for (int r = 0; r < TC_TRIAL_REPEATS && *works; r++) PetscCall(MatTCTimeOnce(A, tc, PETSC_TRUE, x, z, stream, &ours[r], works));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCTrialRun(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream, PetscBool *done)
{
  MatTCSide *side = &tc->side[MATTC_FORWARD];
  double     ours[TC_TRIAL_REPEATS], theirs[TC_TRIAL_REPEATS];
  PetscBool  works, bound;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Trial, A, x, z, 0));
  PetscCall(MatTCTime(A, tc, x, z, stream, ours, theirs, &works, &bound));
  PetscCall(PetscLogEventEnd(MATTC_Trial, A, x, z, 0));
  side->trial.timed = PETSC_TRUE;
  if (works) {
    tc_choose_by_time(ours, theirs, side->conversion_ms, &side->trial.result);
    side->trial.result.bound = bound;
    PetscCall(MatTCGetKey(A, tc, &side->trial.key));
    PetscCall(PetscInfo(A, "aijtccusparse timed MatMult() after %d products: ours %g ms, cuSPARSE %s%g ms, conversion %g ms; %s from now on\n", TC_TRIAL_PRODUCTS, side->trial.result.ours_ms, bound ? "at least " : "", side->trial.result.theirs_ms,
                        side->conversion_ms, side->trial.result.theirs ? "cuSPARSE, whose bits are its own," : "ours"));
  } else {
    PetscCall(PetscInfo(A, "aijtccusparse could not time MatMult() against cuSPARSE\n"));
    if (side->declined) *done = PETSC_FALSE;
    else PetscCall(MatTCApply(A, tc, side, 1, x, NULL, z, stream, done));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts a MatMult() that was ours, and times it when it is time; `done` becomes false if z is to be computed anew */
PetscErrorCode MatTCTrialCount(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream, PetscBool *done)
{
  MatTCSide        *side    = &tc->side[MATTC_FORWARD];
  MatTCTrial       *trial   = &side->trial;
  const tc_backend *backend = tc_plan_backend(side->plan);
  tc_counters       counters;
  PetscBool         x_device, z_device;

  PetscFunctionBegin;
  if (tc->settings.spmv != MAT_AIJTCCUSPARSE_SPMV_AUTO || tc->settings.precision != MAT_AIJTCCUSPARSE_PRECISION_FP64 || !backend->time_begin) PetscFunctionReturn(PETSC_SUCCESS);
  MatTCGetCounters(side, &counters);
  if (trial->pattern != counters.rebuilds) {
    PetscCall(PetscMemzero(trial, sizeof(*trial)));
    trial->pattern = counters.rebuilds;
  }
  if (trial->timed || ++trial->products < TC_TRIAL_PRODUCTS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCIsOnDevice(x, &x_device));
  PetscCall(MatTCIsOnDevice(z, &z_device));
  if (!x_device || !z_device || backend->capturing(stream) || backend->capturing(MatTCGetParentStream())) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCTrialRun(A, tc, x, z, stream, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
