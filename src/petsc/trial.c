/*
  The choice that is left to measurement: on a GPU, when an irregular pattern has been multiplied often enough, by MatMult(), MatMultAdd() or MatResidual(), for that to have taken as long as
  a trial does, MatMult() and cuSPARSE's are timed once on the spot, or MatMultAdd() in place where most products were that. Only where nobody has asked for a format or a precision, and for local matrices
  each on its own. cuSPARSE, which is called without the parent type, has to be faster by more than the noise, since its bits are not ours. Then what was packed is given back, and all three are cuSPARSE's; a
  product with a dense block packs it again if it wants it.
*/
#include "aijtccusparseimpl.h"

/* Are products with this pattern cuSPARSE's since the trial? */
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
  else {
    tc_straight_release_cusparse(&tc->side[MATTC_FORWARD].straight);
    PetscCall(PetscMemzero(trial, sizeof(*trial)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x (y == NULL) or z = y + sign A x by cuSPARSE. `done` is false when that failed: z is to be computed anew. */
static PetscErrorCode MatTCByCUSPARSE(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, int sign, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  PetscFunctionBegin;
  PetscCall(MatTCStraight(A, tc, &tc->side[MATTC_FORWARD], PETSC_TRUE, sign, x, y, z, stream, done));
  if (!*done) {
    PetscCall(PetscInfo(A, "aijtccusparse could not multiply by cuSPARSE: %s\n", tc_last_error()));
    backend->clear_error(); /* which the next one who asks the runtime would take for its own */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of a matrix that is left to it, whose arrays on the device may be older than the host's; once it has failed, such products are the parent's until the pattern changes */
PetscErrorCode MatTCTheirs(Mat A, Mat_AIJTCCUSPARSE *tc, int sign, Vec x, Vec y, Vec z, PetscBool *done)
{
  MatTCSide        *side = &tc->side[MATTC_FORWARD];
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (side->trial.failed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, side, &backend, &key, &stream, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCByCUSPARSE(A, tc, backend, sign, x, y, z, stream, done));
  side->trial.failed = (PetscBool)!*done;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does nobody ask for a format or a precision, or not to have what the parent needs, and can products be timed where they run? */
PetscBool MatTCMayTry(const Mat_AIJTCCUSPARSE *tc, const MatTCSide *side)
{
  return (PetscBool)(tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_AUTO && !tc->settings.drop_csr && tc->settings.precision == MAT_AIJTCCUSPARSE_PRECISION_FP64 && tc_plan_backend(side->plan)->time_begin);
}

/* Are products with what is packed for that side to be timed some time, so that it matters how long packing took? */
PetscBool MatTCTrialComes(const Mat_AIJTCCUSPARSE *tc, const MatTCSide *side)
{
  return (PetscBool)(side == &tc->side[MATTC_FORWARD] && MatTCMayTry(tc, side) && tc_plan_in_doubt(side->plan));
}

/* What is timed, or was */
const char *MatTCTimedName(const MatTCTrial *trial)
{
  return trial->in_place ? "MatMultAdd() in place" : "MatMult()";
}

/* That many products z = A x, or z = z + A x if sums in place are timed, ours or theirs */
static PetscErrorCode MatTCTimedProducts(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool ours, int products, Vec x, Vec z, tc_stream stream, PetscBool *works)
{
  MatTCSide *side = &tc->side[MATTC_FORWARD];
  const Vec  y    = side->trial.in_place ? z : NULL;

  PetscFunctionBegin;
  *works = PETSC_TRUE;
  for (int i = 0; i < products && *works; i++) {
    if (ours) PetscCall(MatTCApply(A, tc, side, 1, x, y, z, stream, works));
    else PetscCall(MatTCByCUSPARSE(A, tc, tc_plan_backend(side->plan), 1, x, y, z, stream, works));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What each of that many products takes, ours or theirs. One more comes before them, during which the host enqueues the first: what is timed is how fast they follow
  each other, on the device or, where that is slower, from the host. `works` becomes false if they cannot be timed.
*/
static PetscErrorCode MatTCTimeGroup(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool ours, int products, Vec x, Vec z, tc_stream stream, double *ms, PetscBool *works)
{
  const tc_backend *backend = tc_plan_backend(tc->side[MATTC_FORWARD].plan);
  void             *stopwatch;

  PetscFunctionBegin;
  *ms    = 0;
  *works = (PetscBool)(backend->synchronize(stream) == TC_OK);
  if (*works) PetscCall(MatTCTimedProducts(A, tc, ours, 1, x, z, stream, works));
  if (*works && backend->time_begin(stream, &stopwatch) != TC_OK) *works = PETSC_FALSE;
  if (!*works) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCTimedProducts(A, tc, ours, products, x, z, stream, works));
  if (backend->time_end(stream, stopwatch, ms) != TC_OK) *works = PETSC_FALSE;
  *ms /= products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What ours have left in the cache goes first from now on */
static PetscErrorCode MatTCDemote(const MatTCSide *side, tc_stream stream, PetscBool *works)
{
  PetscFunctionBegin;
  *works = (PetscBool)(tc_plan_demote(side->plan, stream) == TC_OK);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Ours come first, a few products that tell how many make a group, and a group: where they are at cuSPARSE's floor already, that has nothing to show, and preparing cuSPARSE
  would cost more than many products. Its first product, which does that, is not timed. A group of theirs says whether the two are close; then each has its groups in a row, behind that
  one or another that does not count, so that the cache holds what they read and the host has been there before. What ours have left in the cache goes first while theirs run, as it
  does when they have won. Ours come last and leave their result in z. cuSPARSE has to win twice: a host that did something else during the groups of ours, a millisecond of a small matrix, would
  else leave the pattern to it for good (seen once in some thirty trials, ours being 1.5 times as fast).
*/
static PetscErrorCode MatTCTime(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream, tc_trial *result, PetscBool *works)
{
  const MatTCSide *side     = &tc->side[MATTC_FORWARD];
  const double     floor_ms = tc_plan_cusparse_floor_ms(side->plan);
  double           ours[TC_TRIAL_ROUNDS], theirs[TC_TRIAL_ROUNDS];
  int              products;

  PetscFunctionBegin;
  PetscCall(MatTCTimeGroup(A, tc, PETSC_TRUE, TC_TRIAL_FIRST, x, z, stream, ours, works));
  products = tc_choose_timed_products(ours[0]);
  if (*works) PetscCall(MatTCTimeGroup(A, tc, PETSC_TRUE, products, x, z, stream, ours, works));
  if (!*works) PetscFunctionReturn(PETSC_SUCCESS);
  if (ours[0] <= floor_ms) {
    theirs[0] = floor_ms;
    tc_choose_by_time(1, ours, theirs, side->conversion_ms, result);
    result->bound = 1;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCDemote(side, stream, works));
  if (*works) PetscCall(MatTCTimedProducts(A, tc, PETSC_FALSE, 1, x, z, stream, works));
  if (*works) PetscCall(MatTCTimeGroup(A, tc, PETSC_FALSE, products, x, z, stream, theirs, works));
  if (!*works) PetscFunctionReturn(PETSC_SUCCESS);
  tc_choose_by_time(1, ours, theirs, side->conversion_ms, result);
  if (result->settled) {
    PetscCall(MatTCTimedProducts(A, tc, PETSC_TRUE, 1, x, z, stream, works));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int pass = 0; pass < TC_TRIAL_PASSES && *works && (pass == 0 || result->theirs); pass++) {
    if (pass > 0) PetscCall(MatTCDemote(side, stream, works));
    if (pass > 0 && *works) PetscCall(MatTCTimeGroup(A, tc, PETSC_FALSE, products, x, z, stream, theirs, works));
    for (int r = 0; r < TC_TRIAL_ROUNDS && *works; r++) PetscCall(MatTCTimeGroup(A, tc, PETSC_FALSE, products, x, z, stream, &theirs[r], works));
    if (*works) PetscCall(MatTCTimeGroup(A, tc, PETSC_TRUE, products, x, z, stream, ours, works));
    for (int r = 0; r < TC_TRIAL_ROUNDS && *works; r++) PetscCall(MatTCTimeGroup(A, tc, PETSC_TRUE, products, x, z, stream, &ours[r], works));
    if (*works) tc_choose_by_time(TC_TRIAL_ROUNDS, ours, theirs, side->conversion_ms, result);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCTrialRun(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream, PetscBool *done)
{
  MatTCSide *side   = &tc->side[MATTC_FORWARD];
  tc_trial   result = {0};
  PetscBool  works;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MATTC_Trial, A, x, z, 0));
  PetscCall(MatTCTime(A, tc, x, z, stream, &result, &works));
  PetscCall(PetscLogEventEnd(MATTC_Trial, A, x, z, 0));
  side->trial.timed = PETSC_TRUE;
  if (works) {
    if (tc->lose_trials) result.theirs = 1;
    side->trial.result = result;
    PetscCall(MatTCGetKey(A, tc, &side->trial.key));
    PetscCall(PetscInfo(A, "aijtccusparse timed %s after %" PetscInt_FMT " products: ours %g ms, cuSPARSE %s%g ms, noise %g ms, conversion %g ms; %s from now on\n", MatTCTimedName(&side->trial), side->trial.products, result.ours_ms, result.bound ? "at least " : "", result.theirs_ms, result.noise_ms, side->conversion_ms,
                        result.theirs ? "cuSPARSE, whose bits are its own," : "ours"));
    if (result.theirs) tc_plan_unpack(side->plan, stream);
  } else {
    PetscCall(PetscInfo(A, "aijtccusparse could not time %s against cuSPARSE\n", MatTCTimedName(&side->trial)));
    if (side->declined) *done = PETSC_FALSE;
    else PetscCall(MatTCApply(A, tc, side, 1, x, NULL, z, stream, done));
  }
  if (!side->trial.result.theirs) tc_straight_release_cusparse(&side->straight);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a product that stays: into a vector of this process alone, as the matrix is, even if z is not. Where there is no memory for one nothing is timed. */
static PetscErrorCode MatTCTrialRunApart(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec z, tc_stream stream)
{
  const tc_backend *backend = tc_plan_backend(tc->side[MATTC_FORWARD].plan);
  void             *memory;
  Vec               apart;
  PetscInt          m;
  PetscBool         ignored;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(z, &m));
  if (backend->alloc((size_t)m * sizeof(PetscScalar), &memory) != TC_OK) {
    PetscCall(PetscInfo(A, "aijtccusparse could not time %s against cuSPARSE: %s\n", MatTCTimedName(&tc->side[MATTC_FORWARD].trial), backend->last_error()));
    tc->side[MATTC_FORWARD].trial.timed = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, m, (PetscScalar *)memory, &apart));
  PetscCall(VecZeroEntries(apart));
  PetscCall(MatTCTrialRun(A, tc, x, apart, stream, &ignored));
  PetscCall(VecDestroy(&apart));
  backend->release(memory);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Counts z = A x, or with y z = y + sign A x, that was ours, and times what most of them were when it is time, z = A x or sums in place; `done` becomes false if z is to be computed anew, which is
  only where it is z = A x that is timed, into z
*/
PetscErrorCode MatTCTrialCount(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  MatTCSide        *side    = &tc->side[MATTC_FORWARD];
  MatTCTrial       *trial   = &side->trial;
  const tc_backend *backend = tc_plan_backend(side->plan);
  tc_counters       counters;
  tc_stats          stats;
  double            floor_ms;
  PetscBool         x_device, z_device;

  PetscFunctionBegin;
  if (!MatTCTrialComes(tc, side)) PetscFunctionReturn(PETSC_SUCCESS);
  tc_plan_stats(side->plan, &stats);
  if (y == z && stats.num_nonzeros < TC_TRIAL_ENTRIES && !tc->early_trials) PetscFunctionReturn(PETSC_SUCCESS);
  MatTCGetCounters(side, &counters);
  if (trial->pattern != counters.rebuilds) {
    PetscCall(PetscMemzero(trial, sizeof(*trial)));
    trial->pattern = counters.rebuilds;
  }
  if (trial->timed) PetscFunctionReturn(PETSC_SUCCESS);
  if (y == z) trial->sums++;
  if (++trial->products < TC_TRIAL_PRODUCTS) PetscFunctionReturn(PETSC_SUCCESS);
  floor_ms = tc->early_trials ? 0 : tc_plan_cusparse_floor_ms(side->plan); /* 0 where nobody knows */
  if (floor_ms > 0 && (double)trial->products * floor_ms < TC_TRIAL_COST_US / 1000.0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCIsOnDevice(x, &x_device));
  PetscCall(MatTCIsOnDevice(z, &z_device));
  if (!x_device || !z_device || backend->capturing(stream) || backend->capturing(MatTCGetParentStream())) PetscFunctionReturn(PETSC_SUCCESS);
  trial->in_place = (PetscBool)(2 * trial->sums > trial->products);
  if (y || trial->in_place) PetscCall(MatTCTrialRunApart(A, tc, x, z, stream));
  else PetscCall(MatTCTrialRun(A, tc, x, z, stream, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
