#include "bench_spmm_report.h"
#include "bench_timer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
  const char *title, *op; /* for people, for programs */
} modes[SPMM_NUM_MODES] = {[SPMM_AB] = {"A B", "spmm"}, [SPMM_ATB] = {"A^T B", "spmm_t"}, [SPMM_ABT] = {"A B^T", "spmm_abt"}};

PetscBool SpmmIsRight(const SpmmRow *row)
{
  for (int w = 0; w < row->num_ways; w++) {
    if (!(row->way[w].accuracy.over_bound <= 1) || (!row->way[w].accuracy.same_bits && strncmp(row->way[w].kernel, "tc_", 3) == 0)) return PETSC_FALSE; /* the parent's bits are its own */
  }
  for (int b = 0; b < row->num_baselines; b++) {
    if (!(row->baseline[b].accuracy.over_bound <= 1)) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* Milliseconds of the best of cuSPARSE; 0 without */
static double best_cusparse(const SpmmRow *row)
{
  double best = 0;

  for (int b = 1; b < row->num_baselines; b++) {
    if (best == 0 || row->baseline[b].time.ms < best) best = row->baseline[b].time.ms;
  }
  return best;
}

PetscErrorCode SpmmPrintHead(const BenchSpmm *S)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %8s %9s %4s %-4s %-7s %-24s %9s %7s | %9s %9s | %6s %6s %6s | %8s %7s %8s %s\n", "case", "rows", "nonzeros", "n", "", "way", "kernel", modes[S->mode].title, "+-", S->settings->cuda ? "aijcusp." : "aij", "best cus.", "/aij", "/best", "/floor",
                        "build", "refill", "error", "/bound"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpmmPrintRow(const BenchSpmm *S, const SpmmRow *row)
{
  const double best = best_cusparse(row);

  PetscFunctionBeginUser;
  (void)S;
  for (int w = 0; w < row->num_ways; w++) {
    const SpmmWay *way = &row->way[w];

    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %8" PRId64 " %9" PRId64 " %4" PetscInt_FMT " %-4s %-7s %-24s %9.4f %7.4f | %9.4f %9.4f | %6.2f %6.2f %6.2f | %8.2f %7.3f %8.1e %.2f%s\n", row->name, row->rows, row->nnz, row->n, MatAIJTCCUSPARSEPrecisions[row->precision], way->name, way->kernel, way->time.ms, way->time.spread,
                          row->baseline[0].time.ms, best, row->baseline[0].time.ms / way->time.ms, best / way->time.ms, row->floor_ms > 0 ? way->time.ms / row->floor_ms : 0.0, w ? 0.0 : row->build_ms, w ? 0.0 : row->refill_ms, way->accuracy.error, way->accuracy.over_bound, way->accuracy.same_bits ? "" : " OTHER BITS"));
  }
  for (int b = 0; b < row->num_baselines; b++) {
    if (!(row->baseline[b].accuracy.over_bound <= 1)) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %s IS WRONG: error/bound %g\n", row->name, row->baseline[b].name, row->baseline[b].accuracy.over_bound));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The means over all matrices for one precision and number of columns: what is chosen against the parent type, or against the best of cuSPARSE */
typedef struct {
  PetscInt     n;
  tc_precision precision;
  const char  *against;
  int          num, losses;
  double       mean, worst;
} Summary;

static Summary summarise(const BenchSpmm *S, tc_precision precision, PetscInt n, PetscBool cusparse)
{
  Summary sum = {.n = n, .precision = precision, .against = cusparse ? "best_cusparse" : S->settings->cuda ? "aijcusparse" : "aij", .worst = INFINITY};
  double  logs = 0;

  for (int r = 0; r < S->num; r++) {
    const SpmmRow *row = &S->row[r];
    const double   x   = (cusparse ? best_cusparse(row) : row->baseline[0].time.ms) / row->way[0].time.ms;

    if (row->precision != precision || row->n != n || x == 0) continue;
    sum.num++;
    sum.losses += x < 1;
    sum.worst = PetscMin(sum.worst, x);
    logs += log(x);
  }
  sum.mean = sum.num > 0 ? exp(logs / sum.num) : 0;
  return sum;
}

/* All that there are, at most SPMM_MAX_SUMMARIES; returns how many */
static int summarise_all(const BenchSpmm *S, Summary all[])
{
  int num = 0;

  for (int precision = 0; precision < SPMM_NUM_PRECISIONS; precision++) {
    for (PetscInt i = 0; i < 2 * S->num_columns; i++) {
      all[num] = summarise(S, (tc_precision)precision, S->columns[i / 2], (PetscBool)(i % 2));
      num += all[num].num > 0;
    }
  }
  return num;
}

static PetscErrorCode PrintSummary(const BenchSpmm *S)
{
  Summary   all[SPMM_MAX_SUMMARIES + 1];
  const int num = summarise_all(S, all);

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%4s %-4s %-14s %5s %14s %6s %6s\n", "n", "", "against", "cases", "geometric mean", "worst", "losses"));
  for (int i = 0; i < num; i++) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%4" PetscInt_FMT " %-4s %-14s %5d %13.3fx %6.2f %6d\n", all[i].n, MatAIJTCCUSPARSEPrecisions[all[i].precision], all[i].against, all[i].num, all[i].mean, all[i].worst, all[i].losses));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void write_row(FILE *file, const BenchSpmm *S, const SpmmRow *row)
{
  for (int w = 0; w < row->num_ways; w++) {
    const SpmmWay *way = &row->way[w];

    fprintf(file, "%s  {\"op\": \"%s\", \"case\": ", w ? ",\n" : "", modes[S->mode].op);
    bench_write_string(file, row->name);
    fprintf(file, ", \"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"nnz\": %" PRId64 ", \"random_values\": %s, \"n\": %d, \"ranks\": 1, \"precision\": \"%s\", \"kernel\": \"%s\", \"device\": %s, ",
            row->rows, row->cols, row->nnz, row->random_values ? "true" : "false", (int)row->n, MatAIJTCCUSPARSEPrecisions[row->precision], way->kernel, S->settings->cuda ? "true" : "false");
    fprintf(file, "\"way\": \"%s\", \"forced\": %s, \"ms\": %.6g, \"ms_spread\": %.3g, \"bytes\": %.10g, \"floor_ms\": %.6g, ", way->name, way->forced ? "true" : "false", way->time.ms, way->time.spread, row->bytes, row->floor_ms);
    if (w == 0) fprintf(file, "\"build_ms\": %.6g, \"refill_ms\": %.6g, \"first_ms\": %.6g, \"baseline_first_ms\": %.6g, \"straight\": %d, ", row->build_ms, row->refill_ms, row->first_ms, row->baseline_first_ms, (int)row->straight);
    fprintf(file, "\"error_over_bound\": %.6g, \"error\": %.3g, ", PetscMin(way->accuracy.over_bound, 1e300), PetscMin(way->accuracy.error, 1e300));
    if (row->precision == TC_PRECISION_F64) fprintf(file, "\"same_bits_as_host\": %s, ", way->accuracy.same_bits ? "true" : "false");
    fprintf(file, "\"baseline_ms\": {");
    for (int b = 0; b < row->num_baselines; b++) fprintf(file, "%s\"%s\": %.6g", b ? ", " : "", row->baseline[b].name, row->baseline[b].time.ms);
    fprintf(file, "}}");
  }
}

static PetscErrorCode WriteJSON(const BenchSpmm *S, const char path[])
{
  char         device[256], cuda[32], cusparse[32], date[32];
  const time_t now  = time(NULL);
  FILE        *file = fopen(path, "w");
  PetscInt     major, minor, subminor;
  Summary      all[SPMM_MAX_SUMMARIES + 1];
  const int    num = summarise_all(S, all);

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written", path);
  (void)bench_device(device);
  bench_versions(cuda, cusparse);
  strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  fprintf(file, "{\"date\": \"%s\", \"device\": \"%s\", \"cuda\": \"%s\", \"cusparse\": \"%s\", \"petsc\": \"%d.%d.%d\", \"copy_gbs\": %.1f, \"seed\": %d,\n \"summary\": [", date, S->settings->cuda ? device : "one processor core", cuda, cusparse, (int)major, (int)minor, (int)subminor,
          S->settings->copy_gbs, BENCH_SEED);
  for (int i = 0; i < num; i++) {
    fprintf(file, "%s{\"op\": \"%s\", \"precision\": \"%s\", \"n\": %d, \"against\": \"%s\", \"set\": \"all\", \"cases\": %d, \"geometric_mean\": %.4g, \"losses\": %d}", i ? ", " : "", modes[S->mode].op, MatAIJTCCUSPARSEPrecisions[all[i].precision], (int)all[i].n, all[i].against,
            all[i].num, all[i].mean, all[i].losses);
  }
  fprintf(file, "],\n \"benchmarks\": [\n");
  for (int r = 0; r < S->num; r++) {
    if (r) fprintf(file, ",\n");
    write_row(file, S, &S->row[r]);
  }
  fprintf(file, "\n ]}\n");
  PetscCheck(fclose(file) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written", path);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchSpmmFinish(BenchSpmm **spmm, const char json[])
{
  PetscFunctionBeginUser;
  PetscCall(PrintSummary(*spmm));
  if (json) PetscCall(WriteJSON(*spmm, json));
  PetscCall(PetscFree(*spmm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
