#include "bench_case.h"
#include "bench_timer.h"
#include "generators.h"
#include "oracle.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const BenchCase *BenchCases(int *num)
{
  static const BenchCase cases[] = {
    {"stencil27_160",        "stencil27",        160,     50,     0.368 },
    {"elasticity_64",        "elasticity",       64,      24,     0.178 },
    {"stencil7_220",         "stencil7",         220,     80,     0.374 },
    {"stencil27_window_128", "stencil27_window", 128,     50,     0.267 },
    {"stencil27_36",         "stencil27",        36,      36,     0.0054},
    {"elasticity_28",        "elasticity",       28,      16,     0.0176},
    {"qcd_11",               "qcd",              11,      9,      0.0060},
    {"four_724",             "four",             724,     724,    0.0079},
    {"four_2510",            "four",             2510,    1200,   0.0962},
    {"circuit_3m",           "circuit",          3000000, 400000, 0.127 },
    {"webbase_1m",           "webbase",          1000000, 400000, 0.0717},
    {"rmat_20",              "rmat",             20,      16,     0     },
    {"long_60k",             "long1153",         60000,   3000,   0.207 },
    {"long_2k",              "long487",          2000,    2000,   0.0079},
  };

  *num = (int)PETSC_STATIC_ARRAY_LENGTH(cases);
  return cases;
}

/* What can be timed: a Mat, or a plan */
typedef struct {
  Mat       mat;
  tc_plan  *plan;
  BenchTime time;
} Candidate;

enum { MAX_CANDIDATES = 2 * BENCH_MAX_WAYS + BENCH_MAX_BASELINES, MAX_GROUPS = 101 };

typedef struct {
  const tc_matrix     *A;
  const BenchSettings *settings;
  Mat                  base; /* MATSEQAIJ over the arrays of A */
  Vec                  x, y;
  PetscInt            *row_ptr, *col;
  double              *host_bits; /* the product of the host backend */
  int                  num;
  Candidate            candidate[MAX_CANDIDATES];
} Bench;

static PetscErrorCode Product(const Bench *B, const Candidate *C)
{
  const PetscScalar *x;
  PetscScalar       *y;
  PetscMemType       type;

  PetscFunctionBeginUser;
  if (C->mat) {
    PetscCall(MatMult(C->mat, B->x, B->y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayReadAndMemType(B->x, &x, &type));
  PetscCall(VecGetArrayWriteAndMemType(B->y, &y, &type));
  PetscCheck(tc_plan_spmv(C->plan, (const double *)(const void *)x, NULL, (double *)(void *)y, NULL) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(VecRestoreArrayWriteAndMemType(B->y, &y));
  PetscCall(VecRestoreArrayReadAndMemType(B->x, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds for `repeats` products; a plan's arrays are fetched once, so that nothing but launches is between the clock's ends */
static PetscErrorCode TimeGroup(const Bench *B, const Candidate *C, PetscInt repeats, double *seconds)
{
  const PetscScalar *x;
  PetscScalar       *y;
  PetscMemType       type;

  PetscFunctionBeginUser;
  if (C->mat) {
    bench_begin(B->settings->cuda);
    for (PetscInt r = 0; r < repeats; r++) PetscCall(MatMult(C->mat, B->x, B->y));
    *seconds = bench_end(B->settings->cuda);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayReadAndMemType(B->x, &x, &type));
  PetscCall(VecGetArrayWriteAndMemType(B->y, &y, &type));
  bench_begin(B->settings->cuda);
  for (PetscInt r = 0; r < repeats; r++) (void)tc_plan_spmv(C->plan, (const double *)(const void *)x, NULL, (double *)(void *)y, NULL);
  *seconds = bench_end(B->settings->cuda);
  PetscCall(VecRestoreArrayWriteAndMemType(B->y, &y));
  PetscCall(VecRestoreArrayReadAndMemType(B->x, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All candidates in turn, group by group */
static PetscErrorCode TimeAll(Bench *B)
{
  static double ms[MAX_CANDIDATES][MAX_GROUPS];
  PetscInt      repeats[MAX_CANDIDATES];
  double        seconds = 0;

  PetscFunctionBeginUser;
  for (int c = 0; c < B->num; c++) {
    PetscCall(TimeGroup(B, &B->candidate[c], 3, &seconds)); /* warm-up */
    PetscCall(TimeGroup(B, &B->candidate[c], 10, &seconds));
    repeats[c] = PetscMax(3, PetscMin(20000, (PetscInt)(B->settings->group_ms / 1000 / (seconds / 10)) + 1));
  }
  for (PetscInt g = 0; g < B->settings->groups; g++) {
    for (int c = 0; c < B->num; c++) {
      PetscCall(TimeGroup(B, &B->candidate[c], repeats[c], &seconds));
      ms[c][g] = seconds / (double)repeats[c] * 1000;
    }
  }
  for (int c = 0; c < B->num; c++) B->candidate[c].time.ms = bench_median((int)B->settings->groups, ms[c], &B->candidate[c].time.spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product into a poisoned y: the largest error over its bound, and do the bits agree with the host backend's? */
static PetscErrorCode Check(const Bench *B, const Candidate *C, const long double *ref, const long double *bound, BenchWay *way)
{
  PetscScalar       *poison;
  const PetscScalar *y;
  PetscInt           m;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(B->y, &m));
  PetscCall(VecGetArrayWrite(B->y, &poison));
  for (PetscInt i = 0; i < m; i++) poison[i] = NAN;
  PetscCall(VecRestoreArrayWrite(B->y, &poison));
  PetscCall(Product(B, C));
  PetscCall(VecGetArrayRead(B->y, &y));
  way->error_over_bound = tc_error_over_bound(m, (const double *)(const void *)y, ref, bound);
  way->same_bits        = (PetscBool)(!B->host_bits || tc_first_different(m, (const double *)(const void *)y, B->host_bits) == m);
  PetscCall(VecRestoreArrayRead(B->y, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of the base matrix in another type; `option` (or NULL) is set for it alone */
static PetscErrorCode NewMat(Bench *B, MatType type, const char option[], const char value[], Mat *M)
{
  char name[128];

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(B->base, MAT_COPY_VALUES, M));
  PetscCall(MatSetOptionsPrefix(*M, "tcbench_"));
  if (option) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "-tcbench_%s", option));
    PetscCall(PetscOptionsSetValue(NULL, name, value));
  }
  PetscCall(MatConvert(*M, type, MAT_INPLACE_MATRIX, M));
  PetscCall(MatSetFromOptions(*M));
  if (option) PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewPlan(const Bench *B, tc_arithmetic arithmetic, tc_plan **plan)
{
  const tc_plan_options options = {NULL, arithmetic};
  const tc_backend     *backend = B->settings->backend;
  const tc_csr          pattern = tc_matrix_pattern(B->A);
  const tc_key          key     = {.nnz = B->A->nnz};
  const size_t          bytes   = (size_t)B->A->nnz * sizeof(double);
  void                 *val     = NULL;
  tc_status             status;

  PetscFunctionBeginUser;
  status = tc_plan_create(backend, &options, plan);
  if (status == TC_OK) status = tc_plan_build(*plan, &pattern);
  if (status == TC_OK) status = tc_plan_upload(*plan, NULL);
  if (status == TC_OK) status = backend->alloc(bytes, &val);
  if (status == TC_OK && bytes > 0) status = backend->upload(val, B->A->val, bytes, NULL);
  if (status == TC_OK) status = tc_plan_refill(*plan, (const double *)val, &key, TC_CACHE_REBUILD, NULL);
  if (status == TC_OK) status = backend->synchronize(NULL);
  backend->release(val);
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s; %s", tc_last_error(), backend->last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateBase(Bench *B)
{
  const tc_matrix *A = B->A;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(A->num_rows + 1, &B->row_ptr));
  PetscCheck(A->nnz <= PETSC_INT_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "%lld nonzeros do not fit PetscInt", (long long)A->nnz);
  for (int32_t i = 0; i <= A->num_rows; i++) B->row_ptr[i] = (PetscInt)A->row_ptr[i];
  PetscCall(PetscMalloc1(A->nnz, &B->col));
  for (int64_t k = 0; k < A->nnz; k++) B->col[k] = A->col[k];
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, A->num_rows, A->num_cols, B->row_ptr, B->col, A->val, &B->base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors on the side of the products; what the host backend multiplies, if the products are on the other side */
static PetscErrorCode CreateVectors(Bench *B)
{
  PetscScalar       *x;
  const PetscScalar *y;
  PetscInt           m;
  Mat                host;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(B->base, &B->x, &B->y));
  PetscCall(VecGetArrayWrite(B->x, &x));
  tc_random_normal(B->A->num_cols, 5, x);
  PetscCall(VecRestoreArrayWrite(B->x, &x));
  if (!B->settings->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(NewMat(B, MATAIJTCCUSPARSE, "mat_aijtccusparse_backend", "host", &host));
  PetscCall(MatMult(host, B->x, B->y));
  PetscCall(MatDestroy(&host));
  PetscCall(VecGetLocalSize(B->y, &m));
  PetscCall(PetscMalloc1(m, &B->host_bits));
  PetscCall(VecGetArrayRead(B->y, &y));
  PetscCall(PetscArraycpy(B->host_bits, y, m));
  PetscCall(VecRestoreArrayRead(B->y, &y));
  PetscCall(VecSetType(B->x, VECCUDA));
  PetscCall(VecSetType(B->y, VECCUDA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host seconds of one product, device idle at both ends */
static PetscErrorCode TimeOnce(const Bench *B, const Candidate *C, double *seconds)
{
  PetscFunctionBeginUser;
  bench_synchronize(B->settings->cuda);
  bench_begin(0);
  PetscCall(Product(B, C));
  bench_synchronize(B->settings->cuda);
  *seconds = bench_end(0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Milliseconds of the first product, and of one after new values, less those of an ordinary product; medians but for the first, which happens once */
static PetscErrorCode TimeSetup(const Bench *B, const Candidate *C, BenchResult *result)
{
  enum { TIMES = 5 };
  double first = 0, refilled[TIMES], hit[TIMES], refill, ordinary, spread;

  PetscFunctionBeginUser;
  PetscCall(TimeOnce(B, C, &first));
  for (int t = 0; t < TIMES; t++) {
    PetscCall(MatAIJTCCUSPARSEInvalidate(C->mat));
    PetscCall(TimeOnce(B, C, &refilled[t]));
    PetscCall(TimeOnce(B, C, &hit[t]));
  }
  refill            = bench_median(TIMES, refilled, &spread);
  ordinary          = bench_median(TIMES, hit, &spread);
  result->build_ms  = (first - refill) * 1000;
  result->refill_ms = (refill - ordinary) * 1000;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one product of this plan moves: packed arrays, x and y once each */
static void Describe(const tc_matrix *A, const tc_plan *plan, BenchWay *way, char classes[128])
{
  tc_stats stats;

  tc_plan_stats(plan, &stats);
  way->bytes = (double)(stats.index_bytes + stats.value_bytes) + 8.0 * (A->num_cols + (double)A->num_rows);
  snprintf(way->kernel, sizeof way->kernel, "%s", tc_plan_kernel(plan)->name);
  snprintf(classes, 128, "%s", stats.classes);
}

/* The ways to multiply, each as a Mat and as a plan; [0] is the choice, [1] the other arithmetic */
static PetscErrorCode CreateWays(Bench *B, BenchResult *result)
{
  static const char *const names[] = {"auto", "mma", "fma"}; /* in the order of tc_arithmetic */
  tc_arithmetic            chosen;

  PetscFunctionBeginUser;
  result->num_ways = B->settings->cuda ? 2 : 1;
  for (int w = 0; w < result->num_ways; w++) {
    Candidate *mat = &B->candidate[B->num++], *plan = &B->candidate[B->num++];

    PetscCall(NewPlan(B, w == 0 ? TC_ARITHMETIC_AUTO : chosen == TC_ARITHMETIC_MMA ? TC_ARITHMETIC_FMA : TC_ARITHMETIC_MMA, &plan->plan));
    if (w == 0) chosen = tc_plan_kernel(plan->plan)->arithmetic;
    Describe(B->A, plan->plan, &result->way[w], result->classes);
    result->way[w].forced = (PetscBool)(w > 0);
    if (w == 0) PetscCall(NewMat(B, MATAIJTCCUSPARSE, NULL, NULL, &mat->mat));
    else PetscCall(NewMat(B, MATAIJTCCUSPARSE, "mat_aijtccusparse_arithmetic", names[tc_plan_kernel(plan->plan)->arithmetic], &mat->mat));
    if (w == 0) PetscCall(TimeSetup(B, mat, result));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateBaselines(Bench *B, BenchResult *result)
{
  PetscBool ours;

  PetscFunctionBeginUser;
  result->num_baselines    = B->settings->cuda ? 2 : 1;
  result->baseline_name[0] = B->settings->cuda ? "aijcusparse" : "aij";
  result->baseline_name[1] = "cusparse_alg2";
  for (int b = 0; b < result->num_baselines; b++) {
    Mat *mat = &B->candidate[B->num++].mat;

    PetscCall(NewMat(B, B->settings->cuda ? MATAIJCUSPARSE : MATAIJ, b ? "mat_cusparse_spmv_alg" : NULL, "CSRMV_ALG2", mat));
    PetscCall(MatIsAIJTCCUSPARSE(*mat, &ours));
    PetscCheck(!ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The baseline became a matrix of our type");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BenchDestroy(Bench *B)
{
  PetscFunctionBeginUser;
  for (int c = 0; c < B->num; c++) {
    PetscCall(MatDestroy(&B->candidate[c].mat));
    tc_plan_destroy(&B->candidate[c].plan);
  }
  PetscCall(VecDestroy(&B->x));
  PetscCall(VecDestroy(&B->y));
  PetscCall(MatDestroy(&B->base));
  PetscCall(PetscFree(B->row_ptr));
  PetscCall(PetscFree(B->col));
  PetscCall(PetscFree(B->host_bits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchRun(const tc_matrix *A, const BenchSettings *settings, BenchResult *result)
{
  Bench        B = {.A = A, .settings = settings};
  long double *ref, *bound;
  double      *x;

  PetscFunctionBeginUser;
  result->rows     = A->num_rows;
  result->cols     = A->num_cols;
  result->nnz      = A->nnz;
  result->floor_ms = settings->copy_gbs > 0 ? (12.0 * (double)A->nnz + 4.0 * A->num_rows + 8.0 * (A->num_cols + (double)A->num_rows)) / settings->copy_gbs / 1000000.0 : 0;
  PetscCall(CreateBase(&B));
  PetscCall(CreateVectors(&B));
  PetscCall(CreateWays(&B, result));
  PetscCall(CreateBaselines(&B, result));
  PetscCall(PetscMalloc3(A->num_rows, &ref, A->num_rows, &bound, A->num_cols, &x));
  tc_random_normal(A->num_cols, 5, x);
  tc_oracle_spmv(A, x, NULL, 0, ref, bound);
  PetscCall(TimeAll(&B));
  for (int w = 0; w < result->num_ways; w++) {
    PetscCall(Check(&B, &B.candidate[2 * w], ref, bound, &result->way[w]));
    result->way[w].mult   = B.candidate[2 * w].time;
    result->way[w].launch = B.candidate[2 * w + 1].time;
  }
  for (int b = 0; b < result->num_baselines; b++) result->baseline[b] = B.candidate[2 * result->num_ways + b].time;
  PetscCall(PetscFree3(ref, bound, x));
  PetscCall(BenchDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
