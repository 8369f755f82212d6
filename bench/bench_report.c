#include "bench_case.h"
#include "bench_timer.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

PetscErrorCode BenchPrint(const BenchSettings *settings, const BenchResult *R)
{
  PetscFunctionBeginUser;
  if (!R) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %9s %10s %-21s %9s %8s %9s %9s %7s %9s %6s %9s %9s %8s %7s %s\n", "case", "rows", "nnz", "kernel", "MatMult", "+-", "kernel",
                          settings->cuda ? "aijcusp." : "aij", "speedup", settings->cuda ? "alg2" : "-", "GB/s", "floor", "target", "build", "refill", "error/bound, bits"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int w = 0; w < R->num_ways; w++) {
    const BenchWay *way = &R->way[w];

    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %9" PRId64 " %10" PRId64 " %-21s %9.4f %8.4f %9.4f %9.4f %6.2fx %9.4f %6.0f %9.4f %9.4f %8.1f %7.3f %.3f%s\n", R->name, R->rows,
                          R->nnz, way->kernel, way->mult.ms, way->mult.spread, way->launch.ms, R->baseline[0].ms, R->baseline[0].ms / way->mult.ms,
                          R->num_baselines > 1 ? R->baseline[1].ms : 0.0, way->bytes / way->mult.ms / 1000000.0, R->floor_ms, R->target_ms, R->build_ms, R->refill_ms,
                          way->error_over_bound,
                          !way->same_bits  ? " OTHER BITS"
                          : settings->cuda ? " same bits"
                                           : ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void write_way(FILE *file, const BenchSettings *settings, const BenchResult *R, const BenchWay *way)
{
  fprintf(file,
          "{\"op\": \"spmv\", \"case\": \"%s\", \"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"nnz\": %" PRId64
          ", \"n\": 1, \"ranks\": 1, \"precision\": \"fp64\", \"kernel\": \"%s\", \"forced\": %s, ",
          R->name, R->rows, R->cols, R->nnz, way->kernel, way->forced ? "true" : "false");
  fprintf(file, "\"device\": %s, \"ms\": %.6g, \"ms_spread\": %.3g, \"kernel_ms\": %.6g, \"bytes\": %.10g, \"floor_ms\": %.6g, \"target_ms\": %.6g, ",
          settings->cuda ? "true" : "false", way->mult.ms, way->mult.spread, way->launch.ms, way->bytes, R->floor_ms, R->target_ms);
  fprintf(file, "\"error_over_bound\": %.4g, \"same_bits_as_host\": %s, \"classes\": \"%s\", \"baseline_ms\": {", way->error_over_bound <= 1e300 ? way->error_over_bound : 1e300, way->same_bits ? "true" : "false", R->classes);
  for (int b = 0; b < R->num_baselines; b++) fprintf(file, "%s\"%s\": %.6g", b ? ", " : "", R->baseline_name[b], R->baseline[b].ms);
  fprintf(file, "}}");
}

static void write_setup(FILE *file, const BenchSettings *settings, const BenchResult *R, const char *op, double ms)
{
  fprintf(file,
          "{\"op\": \"%s\", \"case\": \"%s\", \"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"nnz\": %" PRId64
          ", \"n\": 1, \"ranks\": 1, \"precision\": \"fp64\", \"kernel\": \"dasp\", \"device\": %s, \"ms\": %.6g, \"products\": %.4g, \"baseline_ms\": {}}",
          op, R->name, R->rows, R->cols, R->nnz, settings->cuda ? "true" : "false", ms, ms / R->way[0].mult.ms);
}

PetscErrorCode BenchWriteJSON(const char path[], const BenchSettings *settings, int num, const BenchResult *results)
{
  char         device[256], cuda[32], cusparse[32], date[32], petsc[64];
  const time_t now  = time(NULL);
  FILE        *file = fopen(path, "w");
  PetscInt     major, minor, subminor;

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written", path);
  (void)bench_device(device);
  bench_versions(cuda, cusparse);
  strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  PetscCall(PetscSNPrintf(petsc, sizeof(petsc), "%" PetscInt_FMT ".%" PetscInt_FMT ".%" PetscInt_FMT, major, minor, subminor));
  fprintf(file, "{\"date\": \"%s\", \"device\": \"%s\", \"cuda\": \"%s\", \"cusparse\": \"%s\", \"petsc\": \"%s\", \"copy_gbs\": %.1f,\n \"benchmarks\": [\n", date,
          settings->cuda ? device : "one processor core", cuda, cusparse, petsc, settings->copy_gbs);
  for (int r = 0; r < num; r++) {
    for (int w = 0; w < results[r].num_ways; w++) {
      fprintf(file, "  ");
      write_way(file, settings, &results[r], &results[r].way[w]);
      fprintf(file, ",\n");
    }
    fprintf(file, "  ");
    write_setup(file, settings, &results[r], "build", results[r].build_ms);
    fprintf(file, ",\n  ");
    write_setup(file, settings, &results[r], "refresh", results[r].refill_ms);
    fprintf(file, "%s\n", r < num - 1 ? "," : "");
  }
  fprintf(file, " ]}\n");
  PetscCheck(fclose(file) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written", path);
  PetscFunctionReturn(PETSC_SUCCESS);
}
