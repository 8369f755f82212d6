#include "bench_case.h"
#include "bench_candidate.h"
#include "bench_timer.h"
#include "generators.h"
#include "oracle.h"
#include <math.h>
#include <string.h>

enum { MAX_GROUPS = 101, SEED_IN = 5, SEED_OUT = 6 };

const BenchMode *BenchModeFind(const char name[])
{
  static const BenchMode modes[] = {
    {"mult",      "spmv",     PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
    {"add",       "spmv_add", PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
    {"transpose", "spmv_t",   PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE},
    {"residual",  "spmv_r",   PETSC_FALSE, PETSC_FALSE, PETSC_TRUE },
  };

  for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(modes); m++) {
    if (strcmp(modes[m].mode, name) == 0) return &modes[m];
  }
  return NULL;
}

PetscBool BenchIsRight(const BenchResult *R)
{
  for (int w = 0; w < R->num_ways; w++) {
    if (!(R->way[w].error_over_bound <= 1) || (!R->way[w].same_bits && strncmp(R->way[w].kernel, "tc_", 3) == 0)) return PETSC_FALSE; /* the parent's bits are its own */
  }
  for (int b = 0; b < R->num_baselines; b++) {
    if (!(R->baseline[b].error_over_bound <= 1)) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* What a product has to be */
typedef struct {
  PetscInt     n; /* length of the result */
  long double *ref, *bound;
  double      *before; /* that is added to; NULL if nothing is */
  double      *bits;   /* the very bits, by their definition; of rounded entries, those of the host */
} Expected;

/* What the host makes of rounded entries */
static PetscErrorCode ExpectRounded(const tc_matrix *A, const double *x, const double *before, tc_precision precision, double *bits)
{
  const tc_plan_options options = {.precision = precision};
  const tc_csr          pattern = tc_matrix_pattern(A);
  const tc_key          key     = {.nnz = A->nnz};
  tc_plan              *plan;
  tc_status             status  = tc_plan_create(tc_backend_host(), &options, &plan);

  PetscFunctionBeginUser;
  if (status == TC_OK) status = tc_plan_build(plan, &pattern);
  if (status == TC_OK) status = tc_plan_upload(plan, NULL);
  if (status == TC_OK) status = tc_plan_refill(plan, A->val, &key, TC_CACHE_REBUILD, NULL);
  if (status == TC_OK) status = tc_plan_spmv(plan, x, before, bits, 1, NULL);
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  tc_plan_destroy(&plan);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(const Bench *B, Expected *E)
{
  const BenchMode *mode = B->settings->mode;
  const tc_matrix *A    = B->A;
  tc_matrix        transposed, *T = NULL;
  double          *x;
  PetscInt         n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(B->in, &n));
  PetscCall(VecGetLocalSize(B->out, &E->n));
  PetscCall(PetscMalloc3(E->n, &E->ref, E->n, &E->bound, E->n, &E->bits));
  PetscCall(PetscMalloc1(n, &x));
  tc_random_normal(n, SEED_IN, x);
  for (PetscInt k = 0; mode->subtract && k < n; k++) x[k] = -x[k];
  if (mode->add || mode->subtract) {
    PetscCall(PetscMalloc1(E->n, &E->before));
    tc_random_normal(E->n, SEED_OUT, E->before);
  }
  if (mode->transpose) {
    PetscCheck(tc_matrix_transpose(A, &transposed) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
    T = &transposed;
  }
  tc_oracle_spmv(T ? T : A, x, E->before, E->before != NULL, E->ref, E->bound);
  tc_oracle_add_rounding(T ? T : A, x, B->settings->precision, E->bound);
  if (B->settings->precision == TC_PRECISION_F64) tc_canonical_spmv(T ? T : A, x, E->before, E->bits);
  else PetscCall(ExpectRounded(T ? T : A, x, E->before, B->settings->precision, E->bits));
  if (T) tc_matrix_free(T);
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ExpectedDestroy(Expected *E)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree3(E->ref, E->bound, E->bits));
  PetscCall(PetscFree(E->before));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product, into a poisoned vector unless that is what it adds to, as for cuSPARSE always: the largest error over its bound, and the bits */
static PetscErrorCode Check(const Bench *B, const BenchCandidate *C, const Expected *E)
{
  PetscScalar       *out;
  const PetscScalar *result;
  double             seconds;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayWrite(B->out, &out));
  for (PetscInt i = 0; i < E->n; i++) out[i] = B->settings->mode->add || (E->before && C->cusparse) ? E->before[i] : NAN;
  PetscCall(VecRestoreArrayWrite(B->out, &out));
  PetscCall(BenchTimeProducts(B, C, 1, &seconds));
  PetscCall(VecGetArrayRead(B->out, &result));
  *C->error_over_bound = tc_error_over_bound(E->n, (const double *)(const void *)result, E->ref, E->bound);
  if (C->same_bits) *C->same_bits = (PetscBool)(tc_first_different(E->n, (const double *)(const void *)result, E->bits) == E->n);
  PetscCall(VecRestoreArrayRead(B->out, &result));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillVector(Vec v, uint64_t seed)
{
  PetscScalar *array;
  PetscInt     n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayWrite(v, &array));
  tc_random_normal(n, seed, (double *)(void *)array);
  PetscCall(VecRestoreArrayWrite(v, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors on the side of the products, those that are read filled */
static PetscErrorCode CreateVectors(Bench *B)
{
  const PetscBool transpose = B->settings->mode->transpose;
  const PetscInt  n         = transpose ? B->A->num_rows : B->A->num_cols;

  PetscFunctionBeginUser;
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &B->in));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, transpose ? B->A->num_cols : B->A->num_rows, &B->out));
  if (B->settings->cuda) {
    PetscCall(VecSetType(B->in, VECCUDA));
    PetscCall(VecSetType(B->out, VECCUDA));
  }
  PetscCall(VecZeroEntries(B->out));
  PetscCall(FillVector(B->in, SEED_IN));
  if (B->settings->mode->subtract) {
    PetscCall(VecDuplicate(B->out, &B->right));
    PetscCall(FillVector(B->right, SEED_OUT));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All candidates in turn, group by group */
static PetscErrorCode TimeAll(Bench *B)
{
  static double ms[BENCH_MAX_CANDIDATES][MAX_GROUPS];
  PetscInt      repeats[BENCH_MAX_CANDIDATES];
  double        seconds = 0;

  PetscFunctionBeginUser;
  for (int c = 0; c < B->num; c++) {
    PetscCall(BenchTimeProducts(B, &B->candidate[c], 3, &seconds)); /* warm-up */
    PetscCall(BenchTimeProducts(B, &B->candidate[c], 5, &seconds));
    repeats[c] = PetscMax(3, (PetscInt)fmin(20000, B->settings->group_ms / 1000 / (seconds / 5) + 1));
  }
  for (PetscInt g = 0; g < B->settings->groups; g++) {
    for (int c = 0; c < B->num; c++) {
        PetscCall(BenchTimeProducts(B, &B->candidate[c], repeats[c], &seconds));
      ms[c][g] = seconds / (double)repeats[c] * 1000;
    }
  }
  for (int c = 0; c < B->num; c++) B->candidate[c].time->ms = bench_median((int)B->settings->groups, ms[c], &B->candidate[c].time->spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchRun(const tc_matrix *A, const BenchSettings *settings, BenchResult *R)
{
  Expected E = {0};
  Bench    B;

  PetscFunctionBeginUser;
  R->rows     = A->num_rows;
  R->cols     = A->num_cols;
  R->nnz      = A->nnz;
  R->floor_ms = settings->copy_gbs > 0 ? (BenchCSRBytes(A) + BenchVectorBytes(A, settings->mode)) / settings->copy_gbs / 1000000.0 : 0;
  PetscCall(BenchCreate(A, settings, R->block, &B));
  PetscCall(CreateVectors(&B));
  PetscCall(Expect(&B, &E));
  PetscCall(BenchAddWays(&B, R));
  PetscCall(BenchAddBaselines(&B, R));
  PetscCall(TimeAll(&B));
  for (int c = 0; c < B.num; c++) {
    if (B.candidate[c].error_over_bound) PetscCall(Check(&B, &B.candidate[c], &E));
  }
  for (int w = 0; w < R->num_ways; w++) {
    const double gain = R->baseline[0].time.ms - R->way[w].mult.ms;

    R->way[w].break_even = gain > 0 ? (R->way[w].build_ms + R->way[w].refill_ms) / gain : INFINITY;
  }
  PetscCall(ExpectedDestroy(&E));
  PetscCall(BenchDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
