#include "bench_candidate.h"
#include "bench_timer.h"

/* A plan's arrays are fetched once, so that nothing but launches is between the clock's ends */
static PetscErrorCode TimePlan(const Bench *B, tc_plan *plan, PetscInt repeats, double *seconds)
{
  const PetscScalar *in, *right = NULL;
  PetscScalar       *out;
  PetscMemType       type;
  const double      *x, *b;
  double            *y;
  tc_status          status = TC_OK;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayReadAndMemType(B->in, &in, &type));
  PetscCall(VecGetArrayAndMemType(B->out, &out, &type));
  if (B->right) PetscCall(VecGetArrayReadAndMemType(B->right, &right, &type));
  x = (const double *)(const void *)in;
  y = (double *)(void *)out;
  b = B->settings->mode->add ? y : (const double *)(const void *)right;
  bench_begin(B->settings->cuda);
  for (PetscInt r = 0; r < repeats && status == TC_OK; r++) status = tc_plan_spmv(plan, x, b, y, right ? -1 : 1, NULL);
  *seconds = bench_end(B->settings->cuda);
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  if (B->right) PetscCall(VecRestoreArrayReadAndMemType(B->right, &right));
  PetscCall(VecRestoreArrayAndMemType(B->out, &out));
  PetscCall(VecRestoreArrayReadAndMemType(B->in, &in));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeCuSPARSE(const Bench *B, const cusparse_baseline *cusparse, PetscInt repeats, double *seconds)
{
  PetscScalar *out;
  PetscMemType type;
  int          failed = 0;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayAndMemType(B->out, &out, &type)); /* moves it to the device and marks it as written there */
  bench_begin(B->settings->cuda);
  for (PetscInt r = 0; r < repeats; r++) failed |= cusparse_baseline_multiply(cusparse);
  *seconds = bench_end(B->settings->cuda);
  PetscCall(VecRestoreArrayAndMemType(B->out, &out));
  PetscCheck(!failed, PETSC_COMM_SELF, PETSC_ERR_LIB, "cuSPARSE failed");
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchTimeProducts(const Bench *B, const BenchCandidate *C, PetscInt repeats, double *seconds)
{
  const BenchMode *mode = B->settings->mode;

  PetscFunctionBeginUser;
  if (C->plan) {
    PetscCall(TimePlan(B, C->plan, repeats, seconds));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (C->cusparse) {
    PetscCall(TimeCuSPARSE(B, C->cusparse, repeats, seconds));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  bench_begin(B->settings->cuda);
  for (PetscInt r = 0; r < repeats; r++) {
    if (mode->add) PetscCall(MatMultAdd(C->mat, B->in, B->out, B->out));
    else if (mode->subtract) PetscCall(MatResidual(C->mat, B->right, B->in, B->out));
    else if (mode->transpose) PetscCall(MatMultTranspose(C->mat, B->in, B->out));
    else PetscCall(MatMult(C->mat, B->in, B->out));
  }
  *seconds = bench_end(B->settings->cuda);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host seconds of one product, device idle at both ends */
static PetscErrorCode TimeOnce(const Bench *B, const BenchCandidate *C, double *seconds)
{
  double begin, unused;

  PetscFunctionBeginUser;
  bench_synchronize(B->settings->cuda);
  begin = bench_wall();
  PetscCall(BenchTimeProducts(B, C, 1, &unused));
  bench_synchronize(B->settings->cuda);
  *seconds = bench_wall() - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchForgetPacked(Mat A)
{
  MatAIJTCCUSPARSEPrecision precision;

  PetscFunctionBeginUser;
  PetscCall(MatAIJTCCUSPARSEGetPrecision(A, &precision));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision == MAT_AIJTCCUSPARSE_PRECISION_FP64 ? MAT_AIJTCCUSPARSE_PRECISION_FP32 : MAT_AIJTCCUSPARSE_PRECISION_FP64));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchTimeSetup(const Bench *B, const BenchCandidate *C, BenchWay *way)
{
  enum { TIMES = 5 };
  const double       too_long = 0.02;
  double             first = 0, again[TIMES], refilled[TIMES], hit[TIMES], refill, ordinary, spread;
  const PetscInt    *i, *j;
  const PetscScalar *x;
  PetscScalar       *a;
  PetscMemType       type;

  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJGetCSRAndMemType(C->mat, &i, &j, &a, &type));
  PetscCall(VecGetArrayReadAndMemType(B->in, &x, &type)); /* the first candidate finds the vectors on the device, too */
  PetscCall(VecRestoreArrayReadAndMemType(B->in, &x));
  PetscCall(VecGetArrayWriteAndMemType(B->out, &a, &type));
  PetscCall(VecRestoreArrayWriteAndMemType(B->out, &a));
  PetscCall(TimeOnce(B, C, &first));
  for (int t = 0; t < TIMES; t++) {
    PetscCall(MatAIJTCCUSPARSEInvalidate(C->mat));
    PetscCall(TimeOnce(B, C, &refilled[t]));
    PetscCall(TimeOnce(B, C, &hit[t]));
  }
  for (int t = 0; t < TIMES && first < too_long; t++) {
    PetscCall(BenchForgetPacked(C->mat));
    PetscCall(TimeOnce(B, C, &again[t]));
  }
  refill         = bench_median(TIMES, refilled, &spread);
  ordinary       = bench_median(TIMES, hit, &spread);
  way->build_ms  = PetscMax(0, first - refill) * 1000;
  way->again_ms  = first < too_long ? PetscMax(0, bench_median(TIMES, again, &spread) - refill) * 1000 : 0;
  way->refill_ms = PetscMax(0, refill - ordinary) * 1000;
  PetscFunctionReturn(PETSC_SUCCESS);
}
