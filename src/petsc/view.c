/*
  MatView(): the parent's text, then what we do with the matrix.
*/
#include "aijtccusparseimpl.h"

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
  NUM_SUMS
} Sum;

static PetscErrorCode MatTCAddUp(Mat A, PetscInt64 sum[NUM_SUMS])
{
  Mat_AIJTCCUSPARSE *tc;
  tc_counters        counters;
  tc_stats           stats;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->plan) {
    tc_plan_stats(tc->plan, &stats);
    sum[SUM_NONZEROS] += stats.num_nonzeros;
    sum[SUM_SLOTS] += stats.num_slots;
    sum[SUM_BYTES] += stats.index_bytes + stats.value_bytes;
    if (tc_plan_kernel(tc->plan)) sum[SUM_PACKED]++;
  }
  if (tc->declined) sum[SUM_DECLINED]++;
  MatTCGetCounters(tc, &counters);
  sum[SUM_HITS] += counters.hits;
  sum[SUM_REFILLS] += counters.refills;
  sum[SUM_REBUILDS] += counters.rebuilds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lines of a matrix; in parallel the words are those of the first process, the numbers sums over all blocks of all processes */
static PetscErrorCode MatTCViewText(Mat A, PetscViewer viewer)
{
  Mat                blocks[2];
  PetscInt           num;
  PetscInt64         sum[NUM_SUMS] = {0}, total[NUM_SUMS];
  Mat_AIJTCCUSPARSE *tc, *words = NULL;
  tc_stats           stats;
  const tc_backend  *backend;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = num - 1; i >= 0; i--) {
    Mat_AIJTCCUSPARSE *block;

    PetscCall(MatTCAddUp(blocks[i], sum));
    PetscCall(MatTCContextGet(blocks[i], &block));
    if (block && (block->declined || (block->plan && tc_plan_kernel(block->plan)))) words = block;
  }
  PetscCallMPI(MPI_Allreduce(sum, total, NUM_SUMS, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  PetscCall(PetscViewerASCIIPrintf(viewer, "aijtccusparse: backend %s, hits %" PetscInt64_FMT ", refills %" PetscInt64_FMT ", rebuilds %" PetscInt64_FMT "\n", backend->name, total[SUM_HITS], total[SUM_REFILLS], total[SUM_REBUILDS]));
  if (total[SUM_PACKED] && words && words->plan) {
    tc_plan_stats(words->plan, &stats);
    PetscCall(PetscViewerASCIIPrintf(viewer, "  kernel %s (%s), rows%s: %s\n", tc_plan_kernel(words->plan)->name, tc_plan_why(words->plan), tc->parent->mpi ? " of the first diagonal block" : "", stats.classes));
  }
  if (total[SUM_NONZEROS]) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %.3f slots and %.2f bytes per nonzero\n", (double)total[SUM_SLOTS] / (double)total[SUM_NONZEROS], (double)total[SUM_BYTES] / (double)total[SUM_NONZEROS]));
  }
  if (total[SUM_DECLINED]) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %" PetscInt64_FMT " of the local matrices left to %s%s%s\n", total[SUM_DECLINED], tc->parent->type, words && words->declined ? ": " : "", words && words->declined ? words->reason : ""));
  } else if (!total[SUM_PACKED]) PetscCall(PetscViewerASCIIPrintf(viewer, "  nothing packed yet\n"));
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
  PetscCall(MatTCParentFind(A, &parent));
  PetscCheck(parent, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "Type %s is no parent of %s", ((PetscObject)A)->type_name, MATAIJTCCUSPARSE);
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
