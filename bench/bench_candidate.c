#define _GNU_SOURCE // open_memstream()
#include "bench_candidate.h"
#include "../src/plan/choose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
  The ways to multiply. A new kernel is one row. Skipped are rows whose format or kernel the backend or the option does not know; [0] is the choice.
*/
typedef struct {
  const char   *name, *format, *arithmetic; // values of the options, NULL: not set
  tc_arithmetic kernel;                     // of the row in the kernel table, AUTO: any
} WayKind;

static const WayKind ways[] = {
  {"auto",       NULL,     NULL,  TC_ARITHMETIC_AUTO},
  {"hybrid_mma", "hybrid", "mma", TC_ARITHMETIC_MMA },
  {"hybrid_fma", "hybrid", "fma", TC_ARITHMETIC_FMA },
  {"dasp_mma",   "dasp",   "mma", TC_ARITHMETIC_MMA },
  {"dasp_fma",   "dasp",   "fma", TC_ARITHMETIC_FMA },
  {"hybrid",     "hybrid", NULL,  TC_ARITHMETIC_HOST},
  {"dasp",       "dasp",   NULL,  TC_ARITHMETIC_HOST},
};

const char *BenchWayName(int w)
{
  return w < (int)PETSC_STATIC_ARRAY_LENGTH(ways) ? ways[w].name : NULL;
}

double BenchCSRBytes(const tc_matrix *A)
{
  return 12.0 * (double)A->nnz + 4.0 * A->num_rows;
}

double BenchVectorBytes(const tc_matrix *A, const BenchMode *mode)
{
  return 8.0 * (A->num_cols + (mode->add || mode->subtract ? 2.0 : 1.0) * A->num_rows);
}

static PetscErrorCode CopyToBackend(const tc_backend *backend, const void *host, size_t bytes, void **local)
{
  tc_status status = backend->alloc(bytes, local);

  PetscFunctionBeginUser;
  if (status == TC_OK && bytes > 0) status = backend->upload(*local, host, bytes, NULL);
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", backend->last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchCreate(const tc_matrix *A, const BenchSettings *settings, int32_t block, Bench *B)
{
  const size_t rows = (size_t)A->num_rows, nnz = (size_t)A->nnz;
  int32_t     *row_ptr;
  void        *local;

  PetscFunctionBeginUser;
  *B = (Bench){.A = A, .settings = settings, .block = block, .local = {.num_rows = A->num_rows, .num_cols = A->num_cols, .nnz = A->nnz, .row_group = block}};
  PetscCheck(A->nnz <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "%lld nonzeros do not fit 32 bits", (long long)A->nnz);
  PetscCall(PetscMalloc2(rows + 1, &B->row_ptr, nnz, &B->col));
  for (size_t i = 0; i <= rows; i++) B->row_ptr[i] = (PetscInt)A->row_ptr[i];
  for (size_t e = 0; e < nnz; e++) B->col[e] = A->col[e];
  PetscCall(PetscMalloc1(rows + 1, &row_ptr));
  for (size_t i = 0; i <= rows; i++) row_ptr[i] = (int32_t)A->row_ptr[i];
  PetscCall(CopyToBackend(settings->backend, row_ptr, (rows + 1) * sizeof *row_ptr, &local));
  B->local.row_ptr = local;
  PetscCall(PetscFree(row_ptr));
  PetscCall(CopyToBackend(settings->backend, A->col, nnz * sizeof *A->col, &local));
  B->local.col = local;
  PetscCall(CopyToBackend(settings->backend, A->val, nnz * sizeof *A->val, &local));
  B->local_val = local;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchDestroy(Bench *B)
{
  PetscFunctionBeginUser;
  for (int c = 0; c < B->num; c++) {
    PetscCall(MatDestroy(&B->candidate[c].mat));
    if (B->candidate[c].transpose) tc_transpose_destroy(&B->candidate[c].transpose);
    else tc_plan_destroy(&B->candidate[c].plan);
    cusparse_baseline_destroy(&B->candidate[c].cusparse);
  }
  PetscCall(VecDestroy(&B->in));
  PetscCall(VecDestroy(&B->out));
  PetscCall(VecDestroy(&B->right));
  B->settings->backend->release((void *)B->local.row_ptr);
  B->settings->backend->release((void *)B->local.col);
  B->settings->backend->release(B->local_val);
  PetscCall(PetscFree2(B->row_ptr, B->col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOption(const char option[], const char value[])
{
  char name[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-tcbench_mat_aijtccusparse_%s", option));
  if (value) PetscCall(PetscOptionsSetValue(NULL, name, value));
  else PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchNewMat(const Bench *B, MatType type, const char backend[], const char spmv[], const char arithmetic[], Mat *M)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, B->A->num_rows, B->A->num_cols, B->row_ptr, B->col, B->A->val, M));
  if (B->block > 1 && B->A->num_rows % B->block == 0 && B->A->num_cols % B->block == 0) PetscCall(MatSetBlockSize(*M, B->block));
  PetscCall(MatSetOptionsPrefix(*M, "tcbench_"));
  PetscCall(SetOption("backend", backend));
  PetscCall(SetOption("spmv", spmv));
  PetscCall(SetOption("arithmetic", arithmetic));
  PetscCall(SetOption("precision", MatAIJTCCUSPARSEPrecisions[B->settings->precision]));
  PetscCall(MatConvert(*M, type, MAT_INPLACE_MATRIX, M));
  PetscCall(MatSetFromOptions(*M));
  PetscCall(SetOption("backend", NULL));
  PetscCall(SetOption("spmv", NULL));
  PetscCall(SetOption("arithmetic", NULL));
  PetscCall(SetOption("precision", NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static tc_status PackPlan(const Bench *B, const tc_plan_options *options, tc_plan **plan)
{
  tc_csr pattern = tc_matrix_pattern(B->A);

  pattern.row_group = B->block;
  TC_CALL(tc_plan_create(B->settings->backend, options, plan));
  if (tc_plan_builds_local(*plan)) return tc_plan_build_local(*plan, &B->local, NULL);
  TC_CALL(tc_plan_build(*plan, &pattern));
  return tc_plan_upload(*plan, NULL);
}

static tc_status PackTranspose(const Bench *B, const tc_plan_options *options, BenchCandidate *C)
{
  TC_CALL(tc_transpose_create(B->settings->backend, options, &C->transpose));
  C->plan = tc_transpose_plan(C->transpose);
  return tc_transpose_build(C->transpose, &B->local, B->block, 0, NULL);
}

/* A plan that multiplies with that kernel, as it is after many products */
static PetscErrorCode NewPlan(const Bench *B, const tc_kernel *kernel, BenchCandidate *C)
{
  const tc_plan_options options = {.format = kernel->format, .arithmetic = kernel->arithmetic == TC_ARITHMETIC_HOST ? TC_ARITHMETIC_AUTO : kernel->arithmetic, .precision = B->settings->precision};
  const tc_key          key     = {.nnz = B->A->nnz};
  tc_status             status;

  PetscFunctionBeginUser;
  if (B->settings->mode->transpose) {
    status = PackTranspose(B, &options, C);
    if (status == TC_OK) status = tc_transpose_refill(C->transpose, B->local_val, &key, TC_CACHE_REBUILD, NULL);
  } else {
    status = PackPlan(B, &options, &C->plan);
    if (status == TC_OK) status = tc_plan_refill(C->plan, B->local_val, &key, TC_CACHE_REBUILD, NULL);
  }
  if (status == TC_OK) {
    tc_stats stats;

    tc_plan_stats(C->plan, &stats);
    if (tc_choose_collect_after(&stats) > 0) status = tc_plan_collect(C->plan, NULL);
  }
  if (status == TC_OK) status = B->settings->backend->synchronize(NULL);
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IsAvailable(const Bench *B, const WayKind *kind, PetscBool *available)
{
  const tc_backend *backend = B->settings->backend;
  const tc_kernel  *kernels;
  int               num, sm;

  PetscFunctionBeginUser;
  *available = PETSC_FALSE;
  for (int w = 0; w < B->settings->num_ways; w++) {
    PetscCall(PetscStrcmp(B->settings->ways[w], kind->name, available));
    if (*available) break;
  }
  if (B->settings->num_ways > 0 && !*available) PetscFunctionReturn(PETSC_SUCCESS);
  *available = (PetscBool)!kind->format;
  if (*available) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(backend->probe(&sm) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", backend->last_error());
  kernels = backend->kernels(&num);
  for (int k = 0; k < num; k++) {
    if (kernels[k].op == TC_OP_SPMV && strcmp(kernels[k].format, kind->format) == 0 && kernels[k].arithmetic == kind->kernel && B->settings->precision <= kernels[k].precision && kernels[k].min_sm <= sm) *available = PETSC_TRUE;
  }
  if (*available) { /* three strings end the list: the name of the type, a prefix, NULL */
    PetscBool known = PETSC_FALSE;

    for (const char *const *value = MatAIJTCCUSPARSESpMVs; value[2] && !known; value++) PetscCall(PetscStrcmp(*value, kind->format, &known));
    *available = known;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one product moves: packed arrays, and the vectors once each */
static PetscErrorCode Describe(const Bench *B, const tc_plan *plan, BenchWay *way)
{
  tc_stats  stats;
  tc_detail detail;

  PetscFunctionBeginUser;
  tc_plan_stats(plan, &stats);
  PetscCheck(tc_plan_detail(plan, &detail, NULL) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  way->bytes = (double)(stats.index_bytes + detail.value_bytes) + BenchVectorBytes(B->A, B->settings->mode);
  PetscCall(PetscStrncpy(way->kernel, tc_plan_kernel(plan)->name, sizeof(way->kernel)));
  PetscCall(PetscStrncpy(way->classes, stats.classes, sizeof(way->classes)));
  PetscCall(PetscStrncpy(way->kinds, detail.kinds, sizeof(way->kinds)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The row of the kernel table that a matrix says it multiplies with, in what MatView() prints; NULL if it leaves that to its parent type, or since its trial to cuSPARSE */
static PetscErrorCode KernelOf(const Bench *B, Mat M, const tc_kernel **kernel)
{
  const tc_kernel *kernels;
  int              num;
  char            *text = NULL, *name;
  size_t           size;
  FILE            *file = open_memstream(&text, &size);
  PetscViewer      viewer;

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a text");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_SELF, file, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(M, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(file);
  name    = strstr(text, "left to cuSPARSE") ? NULL : strstr(text, ", kernel ");
  kernels = B->settings->backend->kernels(&num);
  *kernel = NULL;
  for (int k = 0; name && k < num; k++) {
    const size_t length = strlen(kernels[k].name);

    if (strncmp(name + 9, kernels[k].name, length) == 0 && strchr(" ,", name[9 + length])) *kernel = &kernels[k];
  }
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products until what `auto` chooses by the clock is chosen: against cuSPARSE; on the host, where packing waits, between what is packed and products straight from CSR */
static PetscErrorCode Settle(const Bench *B, const BenchCandidate *C, PetscBool *straight)
{
  enum { SETTLED = 128 };
  const double trial = 8e-6 * TC_TRIAL_COST_US; // seconds, which are the least that the parent can take eight times
  PetscInt64   before, after;
  double       seconds, spent = 0;

  PetscFunctionBeginUser;
  if (!B->settings->cuda) {
    PetscCall(MatAIJTCCUSPARSESetDefer(C->mat, PETSC_TRUE));
    PetscCall(BenchForgetPacked(C->mat));
  }
  do {
    PetscCall(BenchTimeProducts(B, C, B->settings->cuda ? TC_TRIAL_PRODUCTS : SETTLED, &seconds));
    spent += seconds;
  } while (B->settings->cuda && spent < trial);
  PetscCall(MatAIJTCCUSPARSEGetStraightProducts(C->mat, &before));
  PetscCall(BenchTimeProducts(B, C, 1, &seconds));
  PetscCall(MatAIJTCCUSPARSEGetStraightProducts(C->mat, &after));
  *straight = (PetscBool)(after > before);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchAddWays(Bench *B, BenchResult *result)
{
  PetscBool available;

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ways); k++) {
    BenchCandidate   mat = {0}, plan = {0};
    const tc_kernel *kernel = NULL;
    BenchWay        *way;
    PetscBool        straight = PETSC_FALSE;

    PetscCall(IsAvailable(B, &ways[k], &available));
    if (!available) continue;
    PetscCheck(result->num_ways < BENCH_MAX_WAYS, PETSC_COMM_SELF, PETSC_ERR_SUP, "More than %d ways", BENCH_MAX_WAYS);
    way         = &result->way[result->num_ways++];
    way->name   = ways[k].name;
    way->forced = (PetscBool)(ways[k].format != NULL);
    mat         = (BenchCandidate){.time = &way->mult, .error_over_bound = &way->error_over_bound, .same_bits = &way->same_bits};
    plan.time   = &way->launch;
    PetscCall(BenchNewMat(B, MATAIJTCCUSPARSE, B->settings->cuda ? NULL : "host", ways[k].format, ways[k].arithmetic, &mat.mat));
    PetscCall(MatAIJTCCUSPARSESetDefer(mat.mat, PETSC_FALSE)); /* what packing takes is timed, and products with what is packed */
    PetscCall(BenchTimeSetup(B, &mat, way));
    B->candidate[B->num++] = mat;
    if (!way->forced) PetscCall(Settle(B, &mat, &straight));
    PetscCall(KernelOf(B, mat.mat, &kernel));
    if (!kernel || straight) {
      way->bytes = BenchCSRBytes(B->A) + BenchVectorBytes(B->A, B->settings->mode);
      PetscCall(PetscStrncpy(way->kernel, straight ? "tc_spmv_csr" : B->settings->cuda ? MATAIJCUSPARSE : MATAIJ, sizeof(way->kernel)));
      continue;
    }
    PetscCall(NewPlan(B, kernel, &plan));
    PetscCall(Describe(B, plan.plan, way));
    B->candidate[B->num++] = plan;
  }
  PetscCheck(result->num_ways > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-ways names nothing that there is");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddCuSPARSE(Bench *B, int algorithm, const char name[], BenchResult *result)
{
  cusparse_baseline_settings settings = {.algorithm = algorithm, .transpose = B->settings->mode->transpose, .add = B->settings->mode->add, .subtract = B->settings->mode->subtract, .val = B->local_val};
  const PetscScalar         *x;
  PetscScalar               *y;
  PetscMemType               type;
  char                       why[128];
  cusparse_baseline         *cusparse;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayReadAndMemType(B->in, &x, &type));
  PetscCall(VecGetArrayAndMemType(B->out, &y, &type));
  settings.x = (const double *)(const void *)x;
  settings.y = (double *)(void *)y;
  cusparse   = cusparse_baseline_create(&B->local, &settings, why);
  PetscCall(VecRestoreArrayAndMemType(B->out, &y));
  PetscCall(VecRestoreArrayReadAndMemType(B->in, &x));
  if (!cusparse) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: no %s: %s\n", result->name, name, why));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(result->num_baselines < BENCH_MAX_BASELINES, PETSC_COMM_SELF, PETSC_ERR_SUP, "More than %d baselines", BENCH_MAX_BASELINES);
  B->candidate[B->num++] = (BenchCandidate){.cusparse = cusparse, .time = &result->baseline[result->num_baselines].time, .error_over_bound = &result->baseline[result->num_baselines].error_over_bound};
  result->baseline[result->num_baselines++].name = name;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchAddBaselines(Bench *B, BenchResult *result)
{
  BenchCandidate parent = {.time = &result->baseline[0].time, .error_over_bound = &result->baseline[0].error_over_bound};
  PetscBool      ours;

  PetscFunctionBeginUser;
  PetscCall(BenchNewMat(B, B->settings->cuda ? MATAIJCUSPARSE : MATAIJ, NULL, NULL, NULL, &parent.mat));
  PetscCheck(result->num_baselines == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s has baselines of another run", result->name);
  B->candidate[B->num++]                         = parent;
  result->baseline[result->num_baselines++].name = B->settings->cuda ? "aijcusparse" : "aij";
  PetscCall(MatIsAIJTCCUSPARSE(parent.mat, &ours));
  PetscCheck(!ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The baseline became a matrix of our type");
  if (B->settings->cuda && B->A->nnz > 0) {
    PetscCall(AddCuSPARSE(B, 1, "cusparse_alg1", result));
    PetscCall(AddCuSPARSE(B, 2, "cusparse_alg2", result));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
