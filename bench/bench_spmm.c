#include "bench_spmm.h"
#include "../kernels/tc_bcsr.h"
#include "bench_candidate.h"
#include "bench_spmm_expected.h"
#include "bench_spmm_report.h"
#include "bench_timer.h"
#include "cusparse_spmm.h"
#include "generators.h"
#include "oracle.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = SPMM_MAX_WAYS + SPMM_MAX_BASELINES, MAX_GROUPS = 101, WARM_UP_SIZE = 500, NUM_VALUES = MAT_AIJTCCUSPARSE_SPMM_SPARSE24 + 1, STEADY = 200 };

#define SETTLE_SECONDS 0.05

/* What multiplies, and where its results go: a matrix with a C of its own, or cuSPARSE */
typedef struct {
  Mat            mat, C;
  cusparse_spmm *cusparse;
  BenchTime     *time;
  SpmmAccuracy  *accuracy; /* NULL: C is not looked at */
} Candidate;

/* One matrix, one number of columns after the other */
typedef struct {
  const Bench     *bench;
  const BenchSpmm *spmm;
  const tc_matrix *rows; /* whose rows are multiplied */
  Mat              forced[NUM_VALUES]; /* the ways that are asked for, once they are packed */
  SpmmExpected     expected;
  /* of this number of columns */
  PetscInt         n;
  Mat              B, C; /* C for cuSPARSE */
  int              num;
  Candidate        candidate[MAX_CANDIDATES];
} Round;

static const char *const mode_names[SPMM_NUM_MODES] = {[SPMM_AB] = "ab", [SPMM_ATB] = "atb", [SPMM_ABT] = "abt"};

PetscErrorCode BenchSpmmCreate(const BenchSettings *settings, BenchSpmm **spmm)
{
  BenchSpmm    *S;
  PetscInt      mode = SPMM_AB;
  PetscBool     given;
  BenchSettings quick  = *settings;
  BenchResult   unused = {.name = "warm-up", .block = 1};
  tc_matrix     A;

  PetscFunctionBeginUser;
  PetscCall(PetscNew(&S));
  quick.groups   = 1;
  S->settings    = &quick;
  S->num_columns = SPMM_MAX_COLUMNS;
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-spmm_n", S->columns, &S->num_columns, &given));
  for (PetscInt i = 0; given && i < S->num_columns; i++) PetscCheck(S->columns[i] >= 1 && S->num_columns < SPMM_MAX_COLUMNS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-spmm_n %s%" PetscInt_FMT ", expected %d numbers at most, 1 and more", i > 0 ? "..., " : "", S->columns[i], SPMM_MAX_COLUMNS - 1);
  if (!given) {
    static const PetscInt usual[] = {1, 8, 32, 128};

    S->num_columns = PETSC_STATIC_ARRAY_LENGTH(usual);
    PetscCall(PetscArraycpy(S->columns, usual, S->num_columns));
  }
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-spmm_mode", mode_names, SPMM_NUM_MODES, &mode, NULL));
  S->mode = (SpmmMode)mode;
  /* libraries and kernels load at their first use, which is not to be counted as anyone's conversion */
  PetscCheck(tc_generate(tc_generator_find("mixed"), WARM_UP_SIZE, BENCH_SEED, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  S->quiet = PETSC_TRUE;
  PetscCall(BenchSpmmRun(S, &unused, &A, &given));
  S->quiet    = PETSC_FALSE;
  S->num      = 0;
  S->settings = settings;
  tc_matrix_free(&A);
  PetscCall(SpmmPrintHead(S));
  *spmm = S;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateDense(PetscBool cuda, PetscInt m, PetscInt n, Mat *D)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, D));
  PetscCall(MatSetSizes(*D, m, n, m, n));
  PetscCall(MatSetType(*D, cuda ? MATSEQDENSECUDA : MATSEQDENSE));
  PetscCall(MatSetUp(*D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(const Round *R, Candidate *C)
{
  const MatReuse reuse = C->C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

  PetscFunctionBeginUser;
  if (C->cusparse) PetscCheck(cusparse_spmm_multiply(C->cusparse) == 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "cuSPARSE failed");
  else if (R->spmm->mode == SPMM_ABT) PetscCall(MatMatTransposeMult(C->mat, R->B, reuse, PETSC_CURRENT, &C->C));
  else if (R->spmm->mode == SPMM_ATB) PetscCall(MatTransposeMatMult(C->mat, R->B, reuse, PETSC_CURRENT, &C->C));
  else PetscCall(MatMatMult(C->mat, R->B, reuse, PETSC_CURRENT, &C->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeProducts(const Round *R, Candidate *C, PetscInt repeats, double *seconds)
{
  PetscFunctionBeginUser;
  bench_begin(R->bench->settings->cuda);
  for (PetscInt r = 0; r < repeats; r++) PetscCall(Multiply(R, C));
  *seconds = bench_end(R->bench->settings->cuda);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All candidates in turn, group by group */
static PetscErrorCode TimeAll(Round *R)
{
  static double        ms[MAX_CANDIDATES][MAX_GROUPS];
  const BenchSettings *settings = R->bench->settings;
  PetscInt             repeats[MAX_CANDIDATES];
  double               seconds = 0;

  PetscFunctionBeginUser;
  for (int c = 0; c < R->num; c++) {
    PetscCall(TimeProducts(R, &R->candidate[c], 2, &seconds)); /* warm-up */
    PetscCall(TimeProducts(R, &R->candidate[c], 2, &seconds));
    repeats[c] = (PetscInt)fmin(20000, settings->group_ms / 1000 / (seconds / 2) + 1);
  }
  for (PetscInt g = 0; g < settings->groups; g++) {
    for (int c = 0; c < R->num; c++) {
      PetscCall(TimeProducts(R, &R->candidate[c], repeats[c], &seconds));
      ms[c][g] = seconds / (double)repeats[c] * 1000;
    }
  }
  for (int c = 0; c < R->num; c++) R->candidate[c].time->ms = bench_median((int)settings->groups, ms[c], &R->candidate[c].time->spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host seconds of one product, device idle at both ends */
static PetscErrorCode TimeOnce(const Round *R, Candidate *C, double *seconds)
{
  double begin;

  PetscFunctionBeginUser;
  bench_synchronize(R->bench->settings->cuda);
  begin = bench_wall();
  PetscCall(Multiply(R, C));
  bench_synchronize(R->bench->settings->cuda);
  *seconds = bench_wall() - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything that a product needs is on the device but what it makes itself */
static PetscErrorCode BringToDevice(const Round *R, Mat A)
{
  const PetscInt    *i, *j;
  const PetscScalar *b;
  PetscScalar       *a;
  PetscMemType       type;

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetArrayReadAndMemType(R->B, &b, &type));
  PetscCall(MatDenseRestoreArrayReadAndMemType(R->B, &b));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new matrix of ours, or of the parent type for that value of the option */
static PetscErrorCode NewMat(const Round *R, int spmm, Mat *mat)
{
  const PetscBool cuda = R->bench->settings->cuda, parents = (PetscBool)(spmm == MAT_AIJTCCUSPARSE_SPMM_CUSPARSE);

  PetscFunctionBeginUser;
  PetscCall(BenchNewMat(R->bench, !parents ? MATAIJTCCUSPARSE : cuda ? MATAIJCUSPARSE : MATAIJ, cuda || parents ? NULL : "host", NULL, NULL, mat));
  PetscCall(MatAIJTCCUSPARSESetSpMM(*mat, (MatAIJTCCUSPARSESpMM)spmm)); /* ignored by the parent type */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Milliseconds of the first product of all with a new matrix, C and what is packed included. The faster of two matrices: what a library loads for a size or a kind of
  matrix, and keeps, is in neither time.
*/
static PetscErrorCode TimeFirst(const Round *R, int spmm, double *ms)
{
  double seconds = 0, fastest = INFINITY;

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    Candidate C = {.mat = NULL};

    PetscCall(NewMat(R, spmm, &C.mat));
    PetscCall(BringToDevice(R, C.mat));
    PetscCall(TimeOnce(R, &C, &seconds));
    fastest = PetscMin(fastest, seconds);
    PetscCall(MatDestroy(&C.C));
    PetscCall(MatDestroy(&C.mat));
  }
  *ms = fastest * 1000;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Multiplies until what is chosen is packed, STEADY times at least, as another format may follow the first; products straight from CSR before that, and the value of the option that asks for
  what has multiplied last. A single column is a vector, of which a trial may choose. Those that are straight from CSR after so long stay that here. No option tells what multiplies with the transpose: tiles of it are there after so long if they pay.
*/
static PetscErrorCode Settle(const Round *R, Candidate *C, int spmm, PetscInt *straight, int *settled)
{
  static const char *const kernels[] = {"", "tc_spmm_bittcf_f64", "tc_spmm_bittcf_cluster_f64", "tc_spmm_hybrid_f64", "tc_spmm_csr_f64"}; /* in the order of the option's values */
  const double             begin     = bench_wall();
  const char              *kernel    = NULL;
  int                      products  = 0;

  PetscFunctionBeginUser;
  *straight = 0;
  *settled  = spmm;
  do {
    PetscCall(Multiply(R, C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(C->mat, NULL, &kernel));
    for (int k = 0; kernel && R->spmm->mode != SPMM_ATB && k < (int)PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
      if (strcmp(kernel, kernels[k]) == 0) *settled = k;
    }
    *straight += *settled == MAT_AIJTCCUSPARSE_SPMM_TCA;
  } while ((*settled == MAT_AIJTCCUSPARSE_SPMM_TCA || R->spmm->mode == SPMM_ATB || ++products < STEADY) && (spmm == MAT_AIJTCCUSPARSE_SPMM_AUTO || R->n == 1) && bench_wall() < begin + SETTLE_SECONDS);
  if (*settled == MAT_AIJTCCUSPARSE_SPMM_TCA) *straight = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the first product takes, and one after new values, beyond an ordinary one; the parent type's copy on the device is made before, and C */
static PetscErrorCode TimeSetup(const Round *R, Candidate *C, SpmmRow *row)
{
  enum { TIMES = 3 };
  double          first = 0, refilled[TIMES], hit[TIMES], refill, ordinary, spread;

  PetscFunctionBeginUser;
  PetscCall(BringToDevice(R, C->mat));
  PetscCall(CreateDense(R->bench->settings->cuda, R->rows->num_rows, R->n, &C->C));
  PetscCall(MatZeroEntries(C->C));
  PetscCall(TimeOnce(R, C, &first));
  for (int t = 0; t < TIMES; t++) {
    PetscCall(MatAIJTCCUSPARSEInvalidate(C->mat));
    PetscCall(TimeOnce(R, C, &refilled[t]));
    PetscCall(TimeOnce(R, C, &hit[t]));
  }
  refill         = bench_median(TIMES, refilled, &spread);
  ordinary       = bench_median(TIMES, hit, &spread);
  row->build_ms  = PetscMax(0, first - refill) * 1000;
  row->refill_ms = PetscMax(0, refill - ordinary) * 1000;
  PetscCall(MatDestroy(&C->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The checked columns of a product, poisoned before: the largest error over its bound, and the bits. Only these columns come from the device. */
static PetscErrorCode Check(const Round *R, Candidate *C)
{
  const PetscInt     m      = R->rows->num_rows;
  Mat                result = C->cusparse ? R->C : C->C;
  const PetscScalar *c;
  PetscInt           column[SPMM_CHECKED];
  PetscScalar        poison;
  Vec                y;

  PetscFunctionBeginUser;
  SpmmCheckedColumns(R->n, column);
  for (int s = 0; s < SPMM_CHECKED; s++) {
    PetscCall(MatDenseGetColumnVecWrite(result, column[s], &y));
    PetscCall(VecSet(y, NAN));
    PetscCall(VecSum(y, &poison));
    PetscCheck(m == 0 || isnan(poison), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The result is not poisoned");
    PetscCall(MatDenseRestoreColumnVecWrite(result, column[s], &y));
  }
  PetscCall(Multiply(R, C));
  bench_synchronize(R->bench->settings->cuda);
  *C->accuracy = (SpmmAccuracy){.same_bits = PETSC_TRUE};
  for (int s = 0; s < SPMM_CHECKED; s++) {
    PetscCall(MatDenseGetColumnVecRead(result, column[s], &y));
    PetscCall(VecGetArrayRead(y, &c));
    SpmmCompare(&R->expected, R->spmm->mode, R->n, column[s], m, (const double *)(const void *)c, C->accuracy);
    PetscCall(VecRestoreArrayRead(y, &c));
    PetscCall(MatDenseRestoreColumnVecRead(result, column[s], &y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddCuSPARSE(Round *R, int algorithm, PetscBool row_major, const char name[], SpmmRow *row)
{
  const Bench           *bench    = R->bench;
  cusparse_spmm_settings settings = {.algorithm = algorithm, .row_major = row_major, .transpose = R->spmm->mode == SPMM_ATB, .transpose_b = R->spmm->mode == SPMM_ABT, .precision = bench->settings->precision, .val = bench->local_val, .n = (int32_t)R->n};
  const PetscScalar     *b;
  PetscScalar           *c;
  PetscMemType           type;
  char                   why[128];
  Candidate             *C = &R->candidate[R->num];

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetArrayReadAndMemType(R->B, &b, &type));
  PetscCall(MatDenseGetArrayWriteAndMemType(R->C, &c, &type));
  settings.b  = (const double *)(const void *)b;
  settings.c  = (double *)(void *)c;
  C->cusparse = cusparse_spmm_create(&bench->local, &settings, why);
  PetscCall(MatDenseRestoreArrayWriteAndMemType(R->C, &c));
  PetscCall(MatDenseRestoreArrayReadAndMemType(R->B, &b));
  if (!C->cusparse) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: no %s: %s\n", row->name, name, why));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  C->time     = &row->baseline[row->num_baselines].time;
  C->accuracy = row_major || row->precision != TC_PRECISION_F64 ? NULL : &row->baseline[row->num_baselines].accuracy;
  row->baseline[row->num_baselines++].name = name;
  R->num++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the way asked for, if any is? 2:4 tiles always have to be: they take long to pack. */
static PetscBool Wanted(const BenchSettings *settings, int spmm)
{
  for (int w = 0; w < settings->num_ways; w++) {
    if (strcmp(settings->ways[w], MatAIJTCCUSPARSESpMMs[spmm]) == 0) return PETSC_TRUE;
  }
  return (PetscBool)(settings->num_ways == 0 && spmm != MAT_AIJTCCUSPARSE_SPMM_SPARSE24);
}

/* The first way, whose setup is timed, has a new matrix for every number of columns; the others keep what they have packed. Its setup is that of what it comes to in the end. */
static PetscErrorCode PrepareWay(Round *R, int spmm, Candidate *C, SpmmRow *row)
{
  Candidate setup = {.mat = NULL};
  int       settled;

  PetscFunctionBeginUser;
  if (row->num_ways == 0) {
    PetscCall(TimeFirst(R, spmm, &row->first_ms));
    PetscCall(NewMat(R, spmm, &C->mat));
    PetscCall(BringToDevice(R, C->mat));
    PetscCall(Settle(R, C, spmm, &row->straight, &settled));
    PetscCall(NewMat(R, settled, &setup.mat));
    PetscCall(TimeSetup(R, &setup, row));
    PetscCall(MatDestroy(&setup.mat));
  } else {
    if (!R->forced[spmm]) PetscCall(NewMat(R, spmm, &R->forced[spmm]));
    PetscCall(PetscObjectReference((PetscObject)R->forced[spmm]));
    C->mat = R->forced[spmm];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every value of the option but the parent type's, as long as our kernels take it; the host has one kernel, and one for 2:4 tiles. One column in fp64 is a vector whatever the value. */
static PetscErrorCode AddWays(Round *R, SpmmRow *row)
{
  const BenchSettings *settings = R->bench->settings;

  PetscFunctionBeginUser;
  for (int spmm = 0; spmm < NUM_VALUES && (spmm == 0 || R->spmm->mode != SPMM_ATB); spmm++) {
    Candidate  *C   = &R->candidate[R->num];
    SpmmWay    *way = &row->way[row->num_ways];
    PetscInt64  before, ours;
    const char *kernel;

    if (!Wanted(settings, spmm) || spmm == MAT_AIJTCCUSPARSE_SPMM_CUSPARSE || (!settings->cuda && spmm != MAT_AIJTCCUSPARSE_SPMM_AUTO && spmm != MAT_AIJTCCUSPARSE_SPMM_SPARSE24)) continue;
    if (row->num_ways > 0 && R->n == 1 && R->spmm->mode != SPMM_ABT && R->expected.precision == TC_PRECISION_F64) continue;
    *C = (Candidate){.time = &way->time, .accuracy = &way->accuracy};
    PetscCall(PrepareWay(R, spmm, C, row));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(C->mat, &before, &kernel));
    PetscCall(Multiply(R, C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(C->mat, &ours, &kernel));
    if (spmm > 0 && ours == before) { /* there is no such kernel */
      PetscCall(MatDestroy(&C->C));
      PetscCall(MatDestroy(&C->mat));
      continue;
    }
    way->name   = MatAIJTCCUSPARSESpMMs[spmm];
    way->forced = (PetscBool)(spmm > 0);
    PetscCall(PetscStrncpy(way->kernel, ours > before ? kernel : settings->cuda ? MATAIJCUSPARSE : MATAIJ, sizeof(way->kernel)));
    row->num_ways++;
    R->num++;
  }
  PetscCheck(row->num_ways > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-ways names nothing that there is");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddBaselines(Round *R, SpmmRow *row)
{
  const BenchSettings *settings = R->bench->settings;
  Candidate           *C        = &R->candidate[R->num++];

  PetscFunctionBeginUser;
  *C = (Candidate){.time = &row->baseline[0].time, .accuracy = &row->baseline[0].accuracy};
  PetscCall(NewMat(R, MAT_AIJTCCUSPARSE_SPMM_CUSPARSE, &C->mat));
  PetscCall(TimeFirst(R, MAT_AIJTCCUSPARSE_SPMM_CUSPARSE, &row->baseline_first_ms));
  row->baseline[row->num_baselines++].name = settings->cuda ? "aijcusparse" : "aij";
  if (!settings->cuda || R->bench->A->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(AddCuSPARSE(R, 1, PETSC_FALSE, "cusparse_col_alg1", row));
  PetscCall(AddCuSPARSE(R, 2, PETSC_FALSE, "cusparse_col_alg2", row));
  PetscCall(AddCuSPARSE(R, 2, PETSC_TRUE, "cusparse_row_alg2", row));
  PetscCall(AddCuSPARSE(R, 3, PETSC_TRUE, "cusparse_row_alg3", row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunColumns(Round *R, SpmmRow *row)
{
  const PetscBool cuda = R->bench->settings->cuda, turned = (PetscBool)(R->spmm->mode == SPMM_ABT);

  PetscFunctionBeginUser;
  R->n   = row->n;
  R->num = 0;
  memset(R->candidate, 0, sizeof(R->candidate));
  PetscCall(CreateDense(cuda, turned ? R->n : R->rows->num_cols, turned ? R->rows->num_cols : R->n, &R->B));
  PetscCall(SpmmFillB(R->spmm->mode, R->rows->num_cols, R->n, R->B));
  PetscCall(SpmmExpect(&R->expected, R->spmm->mode, R->rows, R->n, R->B));
  if (cuda) PetscCall(CreateDense(PETSC_TRUE, R->rows->num_rows, R->n, &R->C));
  PetscCall(AddWays(R, row));
  PetscCall(AddBaselines(R, row));
  PetscCall(TimeAll(R));
  for (int c = 0; c < R->num; c++) {
    if (R->candidate[c].accuracy) PetscCall(Check(R, &R->candidate[c]));
    PetscCall(MatDestroy(&R->candidate[c].C));
    PetscCall(MatDestroy(&R->candidate[c].mat));
    cusparse_spmm_destroy(&R->candidate[c].cusparse);
  }
  PetscCall(MatDestroy(&R->B));
  PetscCall(MatDestroy(&R->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchSpmmRun(BenchSpmm *S, const BenchResult *given, const tc_matrix *A, PetscBool *right)
{
  tc_matrix T, rows = *A;
  Bench     bench;
  Round     R = {.bench = &bench, .spmm = S, .rows = &rows, .expected = {.precision = S->settings->precision, .segment = Wanted(S->settings, MAT_AIJTCCUSPARSE_SPMM_SPARSE24) ? TC_BCSR_PIECE * TC_BCSR_DENSE : TC_SPMM_SEGMENT}};

  PetscFunctionBeginUser;
  PetscCheck(S->mode == SPMM_AB || S->settings->precision == TC_PRECISION_F64, PETSC_COMM_SELF, PETSC_ERR_SUP, "-spmm_mode %s is in fp64 only", mode_names[S->mode]);
  *right = PETSC_TRUE;
  PetscCall(BenchCreate(A, S->settings, given->block, &bench));
  if (S->mode == SPMM_ATB) {
    PetscCheck(tc_matrix_transpose(A, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
    rows = T;
  }
  for (PetscInt i = 0; i < S->num_columns; i++) {
    SpmmRow *row;

    PetscCheck(S->num < SPMM_MAX_ROWS, PETSC_COMM_SELF, PETSC_ERR_SUP, "More than %d matrices and numbers of columns", SPMM_MAX_ROWS);
    row  = &S->row[S->num++];
    *row = (SpmmRow){.rows = A->num_rows, .cols = A->num_cols, .nnz = A->nnz, .n = S->columns[i], .precision = S->settings->precision, .random_values = given->random_values};
    PetscCall(PetscStrncpy(row->name, given->name, sizeof(row->name)));
    row->bytes    = BenchCSRBytes(A) + 8.0 * (double)row->n * ((double)A->num_rows + A->num_cols);
    row->floor_ms = S->settings->copy_gbs > 0 ? row->bytes / S->settings->copy_gbs / 1000000.0 : 0;
    PetscCall(RunColumns(&R, row));
    if (!SpmmIsRight(row)) *right = PETSC_FALSE;
    if (!S->quiet) PetscCall(SpmmPrintRow(S, row));
  }
  PetscCall(SpmmExpectedDestroy(&R.expected));
  for (int spmm = 0; spmm < NUM_VALUES; spmm++) PetscCall(MatDestroy(&R.forced[spmm]));
  if (S->mode == SPMM_ATB) tc_matrix_free(&T);
  PetscCall(BenchDestroy(&bench));
  PetscFunctionReturn(PETSC_SUCCESS);
}
