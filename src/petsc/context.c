/*
  The context of a matrix: its life, and its settings.
*/
#include "parallel/ghosts.h"

static const char context_name[] = "MatAIJTCCUSPARSE_context";

const char *const MatAIJTCCUSPARSEBackends[]    = {"auto", "cuda", "host", "MatAIJTCCUSPARSEBackend", "MAT_AIJTCCUSPARSE_BACKEND_", NULL};
const char *const MatAIJTCCUSPARSESpMVs[]       = {"auto", "dasp", "hybrid", "cusparse", "parent", "MatAIJTCCUSPARSESpMV", "MAT_AIJTCCUSPARSE_SPMV_", NULL};
const char *const MatAIJTCCUSPARSESpMMs[]       = {"auto", "bittcf", "cluster", "slice", "tca", "cusparse", "sparse24", "MatAIJTCCUSPARSESpMM", "MAT_AIJTCCUSPARSE_SPMM_", NULL};
const char *const MatAIJTCCUSPARSEReorders[]    = {"none", "rcm", "MatAIJTCCUSPARSEReorder", "MAT_AIJTCCUSPARSE_REORDER_", NULL};
const char *const MatAIJTCCUSPARSEExchanges[]   = {"auto", "peer", "petscsf", "MatAIJTCCUSPARSEExchange", "MAT_AIJTCCUSPARSE_EXCHANGE_", NULL};
const char *const MatAIJTCCUSPARSEPrecisions[]  = {"fp64", "fp32", "tf32", "bf16", "fp16", "MatAIJTCCUSPARSEPrecision", "MAT_AIJTCCUSPARSE_PRECISION_", NULL};
const char *const MatAIJTCCUSPARSESORs[]        = {"auto", "device", "host", "MatAIJTCCUSPARSESOR", "MAT_AIJTCCUSPARSE_SOR_", NULL};
const char *const MatAIJTCCUSPARSEArithmetics[] = {"auto", "mma", "fma", "MatAIJTCCUSPARSEArithmetic", "MAT_AIJTCCUSPARSE_ARITHMETIC_", NULL};

/* The counts of the present plan and of those before it */
void MatTCGetCounters(const MatTCSide *side, tc_counters *counters)
{
  tc_counters now = {0, 0, 0};

  if (side->plan) tc_plan_counters(side->plan, &now);
  counters->hits     = side->retired.hits + now.hits;
  counters->refills  = side->retired.refills + now.refills;
  counters->rebuilds = side->retired.rebuilds + now.rebuilds;
}

/* Forgets what was built for one side; keeps the counts */
PetscErrorCode MatTCSideReset(Mat_AIJTCCUSPARSE *tc, MatTCSide *side)
{
  PetscFunctionBegin;
  MatTCGetCounters(side, &side->retired);
  if (side->transpose) {
    tc_transpose_destroy(&side->transpose);
    side->plan = NULL;
  } else tc_plan_destroy(&side->plan);
  side->prepared    = PETSC_FALSE;
  side->declined    = PETSC_FALSE;
  side->passed_over = PETSC_FALSE;
  PetscCall(PetscMemzero(&side->trial, sizeof(side->trial)));
  tc_straight_reset(&side->straight);
  PetscCall(MatTCStageRelease(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Forgets everything that was built; keeps the counts and the settings */
PetscErrorCode MatTCContextReset(Mat_AIJTCCUSPARSE *tc)
{
  PetscFunctionBegin;
  for (int i = 0; i < MATTC_NUM_SIDES; i++) PetscCall(MatTCSideReset(tc, &tc->side[i]));
  PetscCall(MatTCDenseReset(tc));
  PetscCall(MatTCSweepsDestroy(&tc->sweeps));
  PetscCall(MatTCValueMapDestroy(&tc->map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCContextDestroy(PetscCtxRt context)
{
  Mat_AIJTCCUSPARSE *tc = *(Mat_AIJTCCUSPARSE **)context;

  PetscFunctionBegin;
  PetscCall(MatTCContextReset(tc));
  PetscCall(MatTCPeersDestroy(&tc->peers));
  PetscCall(MatTCPeersDestroy(&tc->block_peers));
  PetscCall(MatTCGhostsDestroy(&tc->ghosts));
  PetscCall(MatDestroy(&tc->at_ghosts));
  PetscCall(MatDestroy(&tc->blocks));
  PetscCall(PetscFree(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL if the matrix has none */
PetscErrorCode MatTCContextGet(Mat A, Mat_AIJTCCUSPARSE **tc)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)A, context_name, (void *)tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCContextCreate(Mat A, Mat_AIJTCCUSPARSE **tc)
{
  PetscFunctionBegin;
  PetscCall(MatTCHugePagesFrom(A));
  PetscCall(PetscNew(tc));
  PetscCall(PetscObjectContainerCompose((PetscObject)A, context_name, *tc, MatTCContextDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCContextRemove(Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectCompose((PetscObject)A, context_name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is that one of the values of an enumeration? `names` as for PetscOptionsEnum() */
PetscErrorCode MatTCCheckChoice(Mat A, int value, const char *const names[])
{
  int num = 0;

  PetscFunctionBegin;
  while (names[num + 2]) num++; /* behind them the type and its prefix */
  PetscCheck(value >= 0 && value < num, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "%s %d, expected 0 to %d", names[num], value, num - 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The settings of a matrix of our type, whose context is NULL for others; a parallel one hands them on to its blocks at the next product */
PetscErrorCode MatTCGetSettings(Mat A, Mat_AIJTCCUSPARSE **tc, MatTCSettings *settings)
{
  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, tc));
  if (*tc) *settings = (*tc)->settings;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Settings that change what is built make the next product build anew */
PetscErrorCode MatTCSetSettings(Mat_AIJTCCUSPARSE *tc, const MatTCSettings *settings)
{
  PetscFunctionBegin;
  if (tc->settings.spmv != settings->spmv || tc->settings.arithmetic != settings->arithmetic || tc->settings.precision != settings->precision) PetscCall(MatTCContextReset(tc));
  if (tc->settings.spmm != settings->spmm || tc->settings.exact_nonfinite != settings->exact_nonfinite || tc->settings.reorder != settings->reorder) PetscCall(MatTCDenseReset(tc));
  if (tc->settings.sor != settings->sor) PetscCall(MatTCSweepsDestroy(&tc->sweeps));
  if (tc->settings.exchange != settings->exchange) {
    PetscCall(MatTCPeersDestroy(&tc->peers));
    PetscCall(MatTCPeersDestroy(&tc->block_peers));
  }
  tc->settings = *settings;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the options database says, with the prefix of the matrix; for matrices on which MatSetFromOptions() may never be called */
PetscErrorCode MatTCSettingsFromDatabase(Mat A, MatTCSettings *settings)
{
  PetscOptions options;
  const char  *prefix;
  PetscBool    keep_csr = PETSC_TRUE, defer = PETSC_TRUE, host_factors = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(settings, sizeof(*settings)));
  PetscCall(PetscObjectGetOptions((PetscObject)A, &options));
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)A, &prefix));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_spmv", MatAIJTCCUSPARSESpMVs, (PetscEnum *)&settings->spmv, NULL));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_arithmetic", MatAIJTCCUSPARSEArithmetics, (PetscEnum *)&settings->arithmetic, NULL));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_precision", MatAIJTCCUSPARSEPrecisions, (PetscEnum *)&settings->precision, NULL));
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_eager", &settings->eager, NULL));
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_defer", &defer, NULL));
  settings->at_once = (PetscBool)!defer;
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_keep_csr", &keep_csr, NULL));
  settings->drop_csr = (PetscBool)!keep_csr;
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_host_factors", &host_factors, NULL));
  settings->device_factors = (PetscBool)!host_factors;
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_sor", MatAIJTCCUSPARSESORs, (PetscEnum *)&settings->sor, NULL));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_spmm", MatAIJTCCUSPARSESpMMs, (PetscEnum *)&settings->spmm, NULL));
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_spmm_exact_nonfinite", &settings->exact_nonfinite, NULL));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_spmm_reorder", MatAIJTCCUSPARSEReorders, (PetscEnum *)&settings->reorder, NULL));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_exchange", MatAIJTCCUSPARSEExchanges, (PetscEnum *)&settings->exchange, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Under a title of their own: -help shows a title once, and that of all matrices comes with the type already where MatSetType() comes before MatSetFromOptions(), as in every DM */
PetscErrorCode MatSetFromOptions_AIJTCCUSPARSE(Mat A, PetscOptionItems items)
{
  Mat_AIJTCCUSPARSE      *tc;
  const MatTCParent      *parent;
  MatTCSettings           settings;
  MatAIJTCCUSPARSEBackend backend;
  PetscErrorCodeFn       *f;
  PetscBool               propagate = PETSC_TRUE, huge = PETSC_TRUE, keep_csr, defer, host_factors, has_backend, has_propagate, has_huge;
  const char             *prefix;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCParentOp(A, parent, MATOP_SET_FROM_OPTIONS, &f));
  if (f) PetscCall((*(PetscErrorCode (*)(Mat, PetscOptionItems))f)(A, items));
  PetscCall(MatTCContextGet(A, &tc));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)A, &prefix));
  backend  = parent->cuda ? MAT_AIJTCCUSPARSE_BACKEND_CUDA : MAT_AIJTCCUSPARSE_BACKEND_HOST;
  settings = tc->settings;
  keep_csr = (PetscBool)!settings.drop_csr;
  defer    = (PetscBool)!settings.at_once;
  host_factors = (PetscBool)!settings.device_factors;
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), prefix, "AIJTCCUSPARSE matrix", "Mat");
  PetscOptionsObject->options = ((PetscObject)A)->options;
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_backend", "Where products run; read when the type is set", "MatAIJTCCUSPARSEGetBackend", MatAIJTCCUSPARSEBackends, (PetscEnum)backend, (PetscEnum *)&backend, &has_backend));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_spmv", "What multiplies with a vector", "MatAIJTCCUSPARSESetSpMV", MatAIJTCCUSPARSESpMVs, (PetscEnum)settings.spmv, (PetscEnum *)&settings.spmv, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_arithmetic", "Units of the GPU that multiply", "MatAIJTCCUSPARSESetArithmetic", MatAIJTCCUSPARSEArithmetics, (PetscEnum)settings.arithmetic, (PetscEnum *)&settings.arithmetic, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_precision", "Of products with vectors and dense matrices", "MatAIJTCCUSPARSESetPrecision", MatAIJTCCUSPARSEPrecisions, (PetscEnum)settings.precision, (PetscEnum *)&settings.precision, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_eager", "Pack the pattern at assembly, not at the first product", "MatAIJTCCUSPARSESetEager", settings.eager, &settings.eager, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_defer", "Multiply straight from CSR until packing pays", "MatAIJTCCUSPARSESetDefer", defer, &defer, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_keep_csr", "Have the CSR arrays on the GPU, too", "MatAIJTCCUSPARSESetKeepCSR", keep_csr, &keep_csr, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_host_factors", "Factors of a matrix on the GPU are the host's where that is faster", "MatAIJTCCUSPARSESetHostFactors", host_factors, &host_factors, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_sor", "Where sweeps of MatSOR() with a matrix on the GPU are done", "MatAIJTCCUSPARSESetSOR", MatAIJTCCUSPARSESORs, (PetscEnum)settings.sor, (PetscEnum *)&settings.sor, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_spmm", "What multiplies with a dense block", "MatAIJTCCUSPARSESetSpMM", MatAIJTCCUSPARSESpMMs, (PetscEnum)settings.spmm, (PetscEnum *)&settings.spmm, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_spmm_exact_nonfinite", "Multiply no structural zeros, which a non-finite entry of the block could reach", "MatAIJTCCUSPARSESetSpMMExactNonfinite", settings.exact_nonfinite, &settings.exact_nonfinite, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_spmm_reorder", "Order of the rows in what is packed for products with a dense block", "MatAIJTCCUSPARSESetSpMMReorder", MatAIJTCCUSPARSEReorders, (PetscEnum)settings.reorder, (PetscEnum *)&settings.reorder, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtccusparse_exchange", "What takes elements of vectors and dense blocks to other processes", "MatAIJTCCUSPARSESetExchange", MatAIJTCCUSPARSEExchanges, (PetscEnum)settings.exchange, (PetscEnum *)&settings.exchange, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_propagate", "Matrices derived from this one get its type too", "MatAIJTCCUSPARSESetPropagate", propagate, &propagate, &has_propagate));
  PetscCall(PetscOptionsBool("-mat_aijtccusparse_huge_pages", "Memory of the process asks for huge pages", "MatAIJTCCUSPARSESetHugePages", huge, &huge, &has_huge));
  PetscOptionsEnd();
  if (has_backend && backend != MAT_AIJTCCUSPARSE_BACKEND_AUTO && (backend == MAT_AIJTCCUSPARSE_BACKEND_CUDA) != parent->cuda) {
    PetscCheck(backend == MAT_AIJTCCUSPARSE_BACKEND_HOST, PetscObjectComm((PetscObject)A), PETSC_ERR_ORDER, "-%smat_aijtccusparse_backend cuda comes too late: the matrix got its type, on the host, before its options prefix", prefix ? prefix : "");
    PetscCall(PetscInfo(A, "-%smat_aijtccusparse_backend host comes too late: the matrix got its type, on the GPU, before its options prefix\n", prefix ? prefix : ""));
  }
  settings.drop_csr = (PetscBool)!keep_csr;
  settings.at_once  = (PetscBool)!defer;
  settings.device_factors = (PetscBool)!host_factors;
  if (has_propagate) PetscCall(MatTCSetPropagationFor(A, propagate));
  if (has_huge) PetscCall(MatAIJTCCUSPARSESetHugePages(huge));
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}
