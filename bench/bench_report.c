#include "bench_case.h"
#include "bench_timer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* How many times faster than the best of cuSPARSE, both without PETSc where that was measured; 0 without cuSPARSE */
static double BenchOverCuSPARSE(const BenchResult *R, const BenchWay *way)
{
  double best = 0;

  for (int b = 0; b < R->num_baselines; b++) {
    if (strncmp(R->baseline[b].name, "cusparse", 8) == 0 && (best == 0 || R->baseline[b].time.ms < best)) best = R->baseline[b].time.ms;
  }
  return best / (way->launch.ms > 0 ? way->launch.ms : way->mult.ms);
}

static double baseline_ms(const BenchResult *R, const char *name)
{
  for (int b = 0; b < R->num_baselines; b++) {
    if (strcmp(R->baseline[b].name, name) == 0) return R->baseline[b].time.ms;
  }
  return 0;
}

/* A number, or a dash where there is none */
static const char *text(char buffer[32], const char *format, double number)
{
  if (number > 0 && isfinite(number)) snprintf(buffer, 32, format, number);
  else snprintf(buffer, 32, "-");
  return buffer;
}

/* One line for every way; the baselines stand beside each */
PetscErrorCode BenchPrint(const BenchSettings *settings, const BenchResult *R)
{
  PetscFunctionBeginUser;
  if (!R) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %8s %9s %-10s %-19s %8s %7s %8s | %8s %8s %8s | %6s %6s %5s %8s %8s | %8s %7s %7s %6s %s\n", "case", "rows", "nonzeros", "way", "kernel", settings->mode->mode, "+-", "kernel", settings->cuda ? "aijcusp." : "aij", "alg1", "alg2", "/aij",
                          "/best", "GB/s", "floor", "target", "build", "again", "refill", "even", "error/bound"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int w = 0; w < R->num_ways; w++) {
    const BenchWay *way    = &R->way[w];
    const char     *kernel = strncmp(way->kernel, "tc_spmv_", 8) == 0 ? way->kernel + 8 : way->kernel;
    char            t[10][32], name[32];

    PetscCall(PetscSNPrintf(name, sizeof(name), R->precision == TC_PRECISION_F64 ? "%s" : "%s %s", way->name, MatAIJTCCUSPARSEPrecisions[R->precision]));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %8" PRId64 " %9" PRId64 " %-10s %-19s %8.4f %7.4f %8s | %8.4f %8s %8s | %6.2f %6s %5.0f %8s %8s | %8s %7s %7s %6s %.2f%s\n", R->name, R->rows, R->nnz, name, kernel, way->mult.ms, way->mult.spread, text(t[0], "%.4f", way->launch.ms),
                          R->baseline[0].time.ms, text(t[1], "%.4f", baseline_ms(R, "cusparse_alg1")), text(t[2], "%.4f", baseline_ms(R, "cusparse_alg2")), R->baseline[0].time.ms / way->mult.ms, text(t[3], "%.2f", BenchOverCuSPARSE(R, way)),
                          way->bytes / way->mult.ms / 1000000.0, text(t[4], "%.4f", R->floor_ms), text(t[5], "%.4f", R->target_ms), text(t[6], "%.2f", way->build_ms), text(t[9], "%.3f", way->again_ms), text(t[7], "%.3f", way->refill_ms), text(t[8], "%.0f", way->break_even), way->error_over_bound,
                          !way->same_bits ? " OTHER BITS" : ""));
  }
  for (int b = 0; b < R->num_baselines; b++) {
    if (!(R->baseline[b].error_over_bound <= 1)) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %s IS WRONG: error/bound %g\n", R->name, R->baseline[b].name, R->baseline[b].error_over_bound));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The means of a set of cases: what is chosen against the parent type or against the best of cuSPARSE */
typedef struct {
  const char *against, *set;
  PetscBool   cusparse, random_only;
  int         num, losses;
  double      mean;
} Summary;

static double speedup(const BenchResult *R, const Summary *S)
{
  return S->cusparse ? BenchOverCuSPARSE(R, &R->way[0]) : R->baseline[0].time.ms / R->way[0].mult.ms;
}

static void summarise(Summary *S, int num, const BenchResult *results)
{
  double sum = 0;

  for (int r = 0; r < num; r++) {
    const double s = speedup(&results[r], S);

    if (s == 0 || (S->random_only && !results[r].random_values)) continue;
    S->num++;
    S->losses += s < 1;
    sum += log(s);
  }
  S->mean = S->num > 0 ? exp(sum / S->num) : 0;
}

enum { NUM_SUMMARIES = 4 };

static void make_summaries(const BenchSettings *settings, int num, const BenchResult *results, Summary S[NUM_SUMMARIES])
{
  for (int s = 0; s < NUM_SUMMARIES; s++) {
    S[s] = (Summary){.cusparse = (PetscBool)(s >= 2), .random_only = (PetscBool)(s % 2)};
    S[s].against = S[s].cusparse ? "best_cusparse" : settings->cuda ? "aijcusparse" : "aij";
    S[s].set     = S[s].random_only ? "random_values" : "all";
    summarise(&S[s], num, results);
  }
}

PetscErrorCode BenchPrintSummary(const BenchSettings *settings, int num, const BenchResult *results)
{
  Summary S[NUM_SUMMARIES];

  PetscFunctionBeginUser;
  make_summaries(settings, num, results, S);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%-14s %-14s %5s %14s %6s\n", "against", "set", "cases", "geometric mean", "losses"));
  for (int s = 0; s < NUM_SUMMARIES; s++) {
    if (S[s].num > 0) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-14s %-14s %5d %13.3fx %6d\n", S[s].against, S[s].set, S[s].num, S[s].mean, S[s].losses));
  }
  for (int s = 0; s < NUM_SUMMARIES; s += 2) {
    if (S[s].num == 0) continue;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "slower than %s:%s", S[s].against, S[s].losses ? "" : " none"));
    for (int r = 0; r < num; r++) {
      const double x = speedup(&results[r], &S[s]);

      if (x > 0 && x < 1) PetscCall(PetscPrintf(PETSC_COMM_SELF, " %s (%.2fx)", results[r].name, x));
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number, or null where it is not finite: JSON has no infinity */
static void write_number(FILE *file, const char *key, double number)
{
  if (isfinite(number)) fprintf(file, "\"%s\": %.6g, ", key, number);
  else fprintf(file, "\"%s\": null, ", key);
}

void bench_write_string(FILE *file, const char *text)
{
  fputc('"', file);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', file);
    if ((unsigned char)*text < ' ') fprintf(file, "\\u%04x", *text);
    else fputc(*text, file);
  }
  fputc('"', file);
}

static void write_case(FILE *file, const BenchSettings *settings, const BenchResult *R, const char *op, const char *kernel)
{
  fprintf(file, "{\"op\": \"%s\", \"case\": ", op);
  bench_write_string(file, R->name);
  fprintf(file, ", \"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"nnz\": %" PRId64 ", \"random_values\": %s, \"n\": 1, \"ranks\": 1, \"precision\": \"%s\", \"kernel\": \"%s\", \"device\": %s, ", R->rows, R->cols,
          R->nnz, R->random_values ? "true" : "false", MatAIJTCCUSPARSEPrecisions[R->precision], kernel, settings->cuda ? "true" : "false");
}

static void write_way(FILE *file, const BenchSettings *settings, const BenchResult *R, const BenchWay *way)
{
  write_case(file, settings, R, settings->mode->op, way->kernel);
  fprintf(file, "\"way\": \"%s\", \"forced\": %s, \"ms\": %.6g, \"ms_spread\": %.3g, \"kernel_ms\": %.6g, \"bytes\": %.10g, \"floor_ms\": %.6g, \"target_ms\": %.6g, ", way->name, way->forced ? "true" : "false", way->mult.ms, way->mult.spread, way->launch.ms, way->bytes,
          R->floor_ms, R->target_ms);
  fprintf(file, "\"build_ms\": %.6g, \"again_ms\": %.6g, \"refill_ms\": %.6g, ", way->build_ms, way->again_ms, way->refill_ms);
  write_number(file, "break_even", way->break_even);
  write_number(file, "error_over_bound", way->error_over_bound <= 1e300 ? way->error_over_bound : 1e300);
  fprintf(file, "\"same_bits_as_host\": %s, \"classes\": \"%s\", \"kinds\": \"%s\", \"baseline_ms\": {", way->same_bits ? "true" : "false", way->classes, way->kinds);
  for (int b = 0; b < R->num_baselines; b++) fprintf(file, "%s\"%s\": %.6g", b ? ", " : "", R->baseline[b].name, R->baseline[b].time.ms);
  fprintf(file, "}}");
}

static void write_setup(FILE *file, const BenchSettings *settings, const BenchResult *R, const char *op, double ms)
{
  write_case(file, settings, R, op, R->way[0].kernel);
  fprintf(file, "\"ms\": %.6g, \"products\": %.4g, ", ms, ms / R->way[0].mult.ms);
  write_number(file, "break_even", R->way[0].break_even);
  fprintf(file, "\"baseline_ms\": {}}");
}

static void write_result(FILE *file, const BenchSettings *settings, const BenchResult *R)
{
  for (int w = 0; w < R->num_ways; w++) {
    fprintf(file, "%s  ", w ? ",\n" : "");
    write_way(file, settings, R, &R->way[w]);
  }
  fprintf(file, ",\n  ");
  write_setup(file, settings, R, "build", R->way[0].build_ms);
  fprintf(file, ",\n  ");
  write_setup(file, settings, R, "refresh", R->way[0].refill_ms);
}

PetscErrorCode BenchWriteJSON(const char path[], const BenchSettings *settings, int num, const BenchResult *results)
{
  char         device[256], cuda[32], cusparse[32], date[32];
  const time_t now  = time(NULL);
  FILE        *file = fopen(path, "w");
  Summary      S[NUM_SUMMARIES];
  PetscInt     major, minor, subminor;

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written", path);
  (void)bench_device(device);
  bench_versions(cuda, cusparse);
  strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  fprintf(file, "{\"date\": \"%s\", \"device\": \"%s\", \"cuda\": \"%s\", \"cusparse\": \"%s\", \"petsc\": \"%d.%d.%d\", \"copy_gbs\": %.1f, \"seed\": %d,\n \"summary\": [", date, settings->cuda ? device : "one processor core", cuda, cusparse, (int)major, (int)minor,
          (int)subminor, settings->copy_gbs, BENCH_SEED);
  make_summaries(settings, num, results, S);
  for (int s = 0; s < NUM_SUMMARIES; s++) fprintf(file, "%s{\"against\": \"%s\", \"set\": \"%s\", \"cases\": %d, \"geometric_mean\": %.4g, \"losses\": %d}", s ? ", " : "", S[s].against, S[s].set, S[s].num, S[s].mean, S[s].losses);
  fprintf(file, "],\n \"benchmarks\": [\n");
  for (int r = 0; r < num; r++) {
    if (r) fprintf(file, ",\n");
    write_result(file, settings, &results[r]);
  }
  fprintf(file, "\n ]}\n");
  PetscCheck(fclose(file) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written", path);
  PetscFunctionReturn(PETSC_SUCCESS);
}
