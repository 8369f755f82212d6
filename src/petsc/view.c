/*
  MatView(): the parent's text, then what we do with the matrix.
*/
#include "parallel/ghosts.h"
#include <math.h>

/* What adds up over blocks and processes */
typedef enum {
  SUM_NONZEROS,
  SUM_SLOTS,
  SUM_BYTES,
  SUM_HITS,
  SUM_REFILLS,
  SUM_REBUILDS,
  SUM_PACKED,
  SUM_DECLINED,
  SUM_LOST,
  SUM_STRAIGHT,
  SUM_PASSED_OVER,
  NUM_SUMS
} Sum;

/* What the packed arrays say, once they are filled; their stream is ordered before the parent's. Nothing if they cannot be fetched. */
static PetscErrorCode MatTCGetDetail(const MatTCSide *side, tc_detail *detail)
{
  const tc_stream stream = tc_plan_backend(side->plan) == tc_backend_host() ? NULL : MatTCGetParentStream();

  PetscFunctionBegin;
  if (tc_plan_detail(side->plan, detail, stream) != TC_OK) PetscCall(PetscInfo(NULL, "aijtccusparse: %s\n", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCAddUp(const MatTCSide *side, PetscInt64 sum[NUM_SUMS])
{
  tc_counters counters;
  tc_stats    stats;
  tc_detail   detail;

  PetscFunctionBegin;
  if (side->plan) {
    tc_plan_stats(side->plan, &stats);
    PetscCall(MatTCGetDetail(side, &detail));
    sum[SUM_NONZEROS] += stats.num_nonzeros;
    sum[SUM_SLOTS] += stats.num_slots;
    sum[SUM_BYTES] += stats.index_bytes + detail.value_bytes;
    if (tc_plan_kernel(side->plan)) sum[SUM_PACKED]++;
  }
  if (side->declined) sum[SUM_DECLINED]++;
  if (side->trial.result.theirs) sum[SUM_LOST]++;
  sum[SUM_STRAIGHT] += side->straight.count;
  if (side->passed_over) sum[SUM_PASSED_OVER]++;
  MatTCGetCounters(side, &counters);
  sum[SUM_HITS] += counters.hits;
  sum[SUM_REFILLS] += counters.refills;
  sum[SUM_REBUILDS] += counters.rebuilds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a product was measured to take */
static PetscErrorCode MatTCViewTrial(const MatTCSide *side, PetscViewer viewer)
{
  const tc_trial *result    = &side->trial.result;
  char            worth[64] = "is never paid off";

  PetscFunctionBegin;
  if (result->break_even > 0) PetscCall(PetscSNPrintf(worth, sizeof(worth), "is paid off after %.0f products", ceil(result->break_even)));
  if (result->theirs_ms > 0) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  timed after %" PetscInt_FMT " products, %s: %.4g ms, cuSPARSE %s%.4g ms, noise %.2g ms; conversion, %.4g ms, %s\n", side->trial.products, MatTCTimedName(&side->trial), result->ours_ms, result->bound ? "at least " : "", result->theirs_ms, result->noise_ms, side->conversion_ms, worth));
  } else PetscCall(PetscViewerASCIIPrintf(viewer, "  could not be timed after %" PetscInt_FMT " products\n", side->trial.products));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatMult() is taken to take as long as nobody has timed it */
static PetscErrorCode MatTCViewModel(const MatTCSide *side, PetscViewer viewer)
{
  char        worth[64] = "is never paid off";
  tc_detail   detail;
  tc_modelled model;

  PetscFunctionBegin;
  PetscCall(MatTCGetDetail(side, &detail));
  if (!tc_plan_model(side->plan, detail.value_bytes, &model)) PetscFunctionReturn(PETSC_SUCCESS);
  if (model.break_even > 0) PetscCall(PetscSNPrintf(worth, sizeof(worth), "is paid off after %.0f products", ceil(model.break_even)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  by a model of the device, not measured: %.2g ms, cuSPARSE %.2g ms; conversion, %.2g ms, %s\n", model.ours_ms, model.theirs_ms, model.conversion_ms, worth));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen for that side; the words are those of `words`, which may be NULL, the numbers sums over all blocks of all processes */
static PetscErrorCode MatTCViewSide(const Mat_AIJTCCUSPARSE *tc, const char name[], const MatTCSide *words, const PetscInt64 total[NUM_SUMS], PetscViewer viewer)
{
  const PetscBool told = (PetscBool)(words && words->declined);
  tc_stats        stats;
  tc_detail       detail;

  PetscFunctionBegin;
  if (total[SUM_PACKED] && words && words->plan && tc_plan_kernel(words->plan)) {
    tc_plan_stats(words->plan, &stats);
    PetscCall(MatTCGetDetail(words, &detail));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %sformat %s, kernel %s (%s), rows%s: %s\n", name, tc_plan_kernel(words->plan)->format, tc_plan_kernel(words->plan)->name, tc_plan_why(words->plan), tc->parent->mpi ? " of the first diagonal block" : "", stats.classes));
    if (detail.kinds[0]) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s%s\n", name, detail.kinds));
  }
  if (total[SUM_NONZEROS]) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %s%.3f slots and %.2f bytes per nonzero\n", name, (double)total[SUM_SLOTS] / (double)total[SUM_NONZEROS], (double)total[SUM_BYTES] / (double)total[SUM_NONZEROS]));
  }
  if (words && words->plan && words->trial.timed) PetscCall(MatTCViewTrial(words, viewer));
  else if (words && words->plan && !name[0] && tc_plan_kernel(words->plan)) {
    if (MatTCMayTry(tc, words) && !tc_plan_in_doubt(words->plan)) PetscCall(PetscViewerASCIIPrintf(viewer, "  not timed against cuSPARSE, which has never been faster where columns are packed so tightly\n"));
    else if (MatTCMayTry(tc, words)) PetscCall(PetscViewerASCIIPrintf(viewer, "  will be timed against cuSPARSE, when products have taken as long as that does\n"));
    PetscCall(MatTCViewModel(words, viewer));
  }
  if (total[SUM_LOST]) PetscCall(PetscViewerASCIIPrintf(viewer, "  %sMatMult() of %" PetscInt64_FMT " local matrices left to cuSPARSE, which was faster: the bits are cuSPARSE's, and what was packed for it was given back\n", name, total[SUM_LOST]));
  if (total[SUM_DECLINED]) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %s%" PetscInt64_FMT " of the local matrices left to %s%s%s\n", name, total[SUM_DECLINED], tc->parent->type, told ? ": " : "", told ? words->reason : ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lines of a matrix. Words are those of the first process. */
static PetscErrorCode MatTCViewText(Mat A, PetscViewer viewer)
{
  static const char *const names[MATTC_NUM_SIDES] = {"", "transpose: "};
  Mat                      blocks[2];
  PetscInt                 num;
  PetscInt64               sum[MATTC_NUM_SIDES][NUM_SUMS] = {{0}}, total[MATTC_NUM_SIDES][NUM_SUMS], straight, passed_over;
  Mat_AIJTCCUSPARSE       *tc;
  const MatTCSide         *words[MATTC_NUM_SIDES] = {NULL};
  const tc_backend        *backend;
  PetscBool                rounded;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  rounded = (PetscBool)(tc->settings.precision != MAT_AIJTCCUSPARSE_PRECISION_FP64);
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = num - 1; i >= 0; i--) {
    Mat_AIJTCCUSPARSE *block;

    PetscCall(MatTCContextGet(blocks[i], &block));
    for (int s = 0; s < MATTC_NUM_SIDES && block; s++) {
      const MatTCSide *side = &block->side[s];

      PetscCall(MatTCAddUp(side, sum[s]));
      if (side->declined || side->trial.timed || (side->plan && tc_plan_kernel(side->plan))) words[s] = side;
    }
  }
  PetscCallMPI(MPI_Allreduce(sum, total, MATTC_NUM_SIDES * NUM_SUMS, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  straight    = total[MATTC_FORWARD][SUM_STRAIGHT] + total[MATTC_TRANSPOSE][SUM_STRAIGHT];
  passed_over = total[MATTC_FORWARD][SUM_PASSED_OVER] + total[MATTC_TRANSPOSE][SUM_PASSED_OVER];
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  for (int s = 0; s < MATTC_NUM_SIDES; s++) {
    const PetscInt64 *t = total[s];
    char              head[64];

    if (s == MATTC_TRANSPOSE && t[SUM_HITS] + t[SUM_REFILLS] + t[SUM_REBUILDS] + (MatTCLeftToParent(tc) ? 0 : t[SUM_DECLINED]) == 0) continue;
    if (s == MATTC_FORWARD) PetscCall(PetscSNPrintf(head, sizeof(head), "aijtccusparse: backend %s, %s%s", backend->name, rounded ? MatAIJTCCUSPARSEPrecisions[tc->settings.precision] : "", rounded ? ", " : ""));
    else PetscCall(PetscSNPrintf(head, sizeof(head), "  %s", names[s]));
    PetscCall(PetscViewerASCIIPrintf(viewer, "%shits %" PetscInt64_FMT ", refills %" PetscInt64_FMT ", rebuilds %" PetscInt64_FMT "\n", head, t[SUM_HITS], t[SUM_REFILLS], t[SUM_REBUILDS]));
    PetscCall(MatTCViewSide(tc, names[s], words[s], t, viewer));
  }
  if (straight) PetscCall(PetscViewerASCIIPrintf(viewer, "  %" PetscInt64_FMT " products straight from CSR, as long as packing had not paid%s\n", straight, passed_over ? ", and since they are faster than packed ones" : ""));
  if (!total[MATTC_FORWARD][SUM_PACKED] && !total[MATTC_FORWARD][SUM_DECLINED] && !total[MATTC_FORWARD][SUM_LOST]) PetscCall(PetscViewerASCIIPrintf(viewer, "  nothing packed yet\n"));
  PetscCall(MatTCViewSweeps(A, viewer));
  PetscCall(MatTCViewPeers(tc, viewer));
  PetscCall(MatTCViewProducts(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts our function over whatever shows the matrix now */
PetscErrorCode MatTCInstallView(Mat A, Mat_AIJTCCUSPARSE *tc)
{
  PetscErrorCodeFn *f;

  PetscFunctionBegin;
  PetscCall(MatGetOperation(A, MATOP_VIEW, &f));
  if (f == (PetscErrorCodeFn *)MatView_AIJTCCUSPARSE) PetscFunctionReturn(PETSC_SUCCESS);
  tc->view = f == tc->parent->ops[0][MATOP_VIEW] ? NULL : f;
  PetscCall(MatSetOperation(A, MATOP_VIEW, (PetscErrorCodeFn *)MatView_AIJTCCUSPARSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatView_AIJTCCUSPARSE(Mat A, PetscViewer viewer)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscErrorCodeFn  *f;
  PetscViewerFormat  format;
  PetscBool          ascii, ours;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && tc->view) f = tc->view;
  else PetscCall(MatTCParentOp(A, parent, MATOP_VIEW, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscViewer))f)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours)); /* MatDuplicate() hands this function to copies that may not be */
  if (!ours || !ascii || !((format == PETSC_VIEWER_ASCII_INFO && !PetscCIEnabled) || format == PETSC_VIEWER_ASCII_INFO_DETAIL)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCViewText(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
