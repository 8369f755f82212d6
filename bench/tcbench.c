/*
  tcbench: times products of MATAIJTCCUSPARSE with a vector against MATAIJCUSPARSE and cuSPARSE on the same GPU, or, without one, against MATAIJ on one processor core. All
  in the same process, over the same entries, in turns; every timed product is checked against the a-priori bound of its rows and for the bits that are promised.
*/
#define _GNU_SOURCE // dladdr()
#include "bench_case.h"
#include "bench_candidate.h"
#include "bench_spmm.h"
#include "bench_table.h"
#include "bench_timer.h"
#include "matrix_binary.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char help[] = "tcbench spmv [options]\n\
  -spmv_mode <mode> mult (default), add (y += A x), transpose or residual (r = b - A x)\n\
  -case <a,b,..>    rows of the table, or generator:size; \"all\" of the table, \"none\"; default: all, unless -file or -folder is given\n\
  -file <a,b,..>    files, Matrix Market or PETSc's binary format, plain or compressed with gzip\n\
  -folder <path>    all files of a folder that end in .mtx, .petsc, .mtx.gz or .petsc.gz\n\
  -precision <p,..> of the entries in our ways: fp64 (default), fp32, tf32, bf16, fp16, one after the other\n\
  -ways <a,b,..>    which ways to multiply; default: all there are, but sparse24\n\
  -host             on the host even where there is a GPU\n\
  -groups <n>       groups of repetitions, median of them; default 9\n\
  -group_ms <ms>    least duration of a group; default 4\n\
  -json <file>      results for programs\n\
tcbench spmm [options], the same options and\n\
  -spmm_n <a,b,..>  numbers of columns; default 1,8,32,128\n\
  -spmm_mode <mode> ab (default), atb or abt, with a transpose, in fp64 only\n\
tcbench list        the table\n\n";

enum { MAX_NAMES = 257 /* one more than there may be */, MAX_PRECISIONS = 5, WARM_UP_SIZE = 500 };

typedef struct {
  BenchSettings settings;
  BenchSpmm    *spmm; /* NULL: products with a vector */
  PetscInt      num_precisions;
  PetscEnum     precisions[MAX_PRECISIONS];
  int           num, matrices, wrong, unreadable;
  BenchResult  *result; /* [num] */
} Run;

/* The CUDA backend of the library that lies next to the plugin; NULL if it does not load */
static const tc_backend *OpenCUDA(void)
{
  Dl_info            info;
  char               path[PETSC_MAX_PATH_LEN];
  const char        *slash;
  void              *library;
  tc_backend_cuda_fn get = NULL;

  if (!dladdr((void *)MatAIJTCCUSPARSEInitializePackage, &info) || !(slash = strrchr(info.dli_fname, '/'))) return NULL;
  snprintf(path, sizeof(path), "%.*slibaijtccusparse_cuda.so", (int)(slash - info.dli_fname + 1), info.dli_fname);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) *(void **)&get = dlsym(library, "tc_backend_cuda");
  return get ? get() : NULL;
}

/* In one precision after the other */
static PetscErrorCode RunVector(Run *run, const BenchResult *given, const tc_matrix *A, PetscBool *right)
{
  PetscFunctionBeginUser;
  *right = PETSC_TRUE;
  for (PetscInt p = 0; p < run->num_precisions; p++) {
    BenchResult *result;

    PetscCall(PetscRealloc((size_t)(run->num + 1) * sizeof(*run->result), &run->result));
    result                  = &run->result[run->num];
    run->settings.precision = (tc_precision)run->precisions[p]; /* in the same order */
    *result                 = *given;
    result->precision       = run->settings.precision;
    PetscCall(BenchRun(A, &run->settings, result));
    PetscCall(BenchPrint(&run->settings, result));
    if (!BenchIsRight(result)) *right = PETSC_FALSE;
    run->num++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunBlocks(Run *run, const BenchResult *given, const tc_matrix *A, PetscBool *right)
{
  PetscFunctionBeginUser;
  *right = PETSC_TRUE;
  for (PetscInt p = 0; p < run->num_precisions; p++) {
    PetscBool now;

    run->settings.precision = (tc_precision)run->precisions[p];
    PetscCall(BenchSpmmRun(run->spmm, given, A, &now));
    if (!now) *right = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Measures what `given` describes and frees the matrix */
static PetscErrorCode RunMatrix(Run *run, const BenchResult *given, tc_matrix *A)
{
  PetscBool right;

  PetscFunctionBeginUser;
  if (run->spmm) PetscCall(RunBlocks(run, given, A, &right));
  else PetscCall(RunVector(run, given, A, &right));
  if (!right) run->wrong++;
  run->matrices++;
  tc_matrix_free(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunGenerated(Run *run, const char name[], const char generator_name[], int32_t size, double target_ms)
{
  const tc_generator *generator = tc_generator_find(generator_name);
  BenchResult         given     = {.target_ms = target_ms};
  tc_matrix           A;

  PetscFunctionBeginUser;
  PetscCheck(generator, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No case and no generator is named %s", generator_name);
  PetscCheck(tc_generate(generator, size, BENCH_SEED, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(PetscStrncpy(given.name, name, sizeof(given.name)));
  given.random_values = (PetscBool)generator->random_values;
  given.block         = generator->block;
  PetscCall(RunMatrix(run, &given, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunTableRow(Run *run, const tc_bench_case *row)
{
  char name[64];

  PetscFunctionBeginUser;
  if (run->settings.cuda) PetscCall(RunGenerated(run, row->name, row->generator, row->size, row->target_ms));
  else {
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s:%d", row->generator, (int)row->host_size));
    PetscCall(RunGenerated(run, name, row->generator, row->host_size, 0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row of the table by name, all of them, or generator:size */
static PetscErrorCode RunCase(Run *run, const char name[])
{
  const tc_bench_case *cases;
  char                 generator[64], *end;
  const char          *colon = strchr(name, ':');
  long                 size;
  int                  num, found = 0;

  PetscFunctionBeginUser;
  cases = tc_bench_cases(&num);
  for (int i = 0; i < num; i++) {
    if (strcmp(name, "all") != 0 && strcmp(cases[i].name, name) != 0) continue;
    found = 1;
    PetscCall(RunTableRow(run, &cases[i]));
  }
  if (found) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(colon, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No case is named %s", name);
  PetscCall(PetscStrncpy(generator, name, PetscMin(sizeof(generator), (size_t)(colon - name) + 1)));
  size = strtol(colon + 1, &end, 10);
  PetscCheck(end > colon + 1 && *end == 0 && size >= 0 && size <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Case %s: size \"%s\", expected a number from 0 on", name, colon + 1);
  PetscCall(RunGenerated(run, name, generator, (int32_t)size, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A file that cannot be read is told and counted, and the next one has its turn */
static PetscErrorCode RunFile(Run *run, const char path[])
{
  const char *slash = strrchr(path, '/');
  BenchResult given = {.block = 1};
  char       *dot;
  tc_matrix   A;

  PetscFunctionBeginUser;
  if (tc_matrix_file_read(path, &A) != TC_OK) {
    run->unreadable++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "not read: %s\n", tc_last_error()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrncpy(given.name, slash ? slash + 1 : path, sizeof(given.name)));
  for (int i = 0; i < 2; i++) { /* without .gz, then without .mtx, .petsc or whatever it is */
    dot = strrchr(given.name, '.');
    if (dot && dot > given.name && (i > 0 || strcmp(dot, ".gz") == 0)) *dot = 0;
  }
  PetscCall(RunMatrix(run, &given, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int is_matrix_file(const struct dirent *entry)
{
  static const char *const ends[] = {".mtx", ".petsc", ".mtx.gz", ".petsc.gz"};
  const size_t             length = strlen(entry->d_name);

  for (size_t e = 0; e < PETSC_STATIC_ARRAY_LENGTH(ends); e++) {
    if (length > strlen(ends[e]) && strcmp(entry->d_name + length - strlen(ends[e]), ends[e]) == 0) return 1;
  }
  return 0;
}

static PetscErrorCode RunFolder(Run *run, const char folder[])
{
  struct dirent **files;
  const int       num = scandir(folder, &files, is_matrix_file, alphasort);

  PetscFunctionBeginUser;
  PetscCheck(num > 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No file of a matrix in %s", folder);
  for (int i = 0; i < num; i++) {
    char path[PETSC_MAX_PATH_LEN];

    PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name));
    PetscCall(RunFile(run, path));
    free(files[i]);
  }
  free(files);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunSelected(Run *run)
{
  char     *names[MAX_NAMES], folder[PETSC_MAX_PATH_LEN];
  PetscInt  num_cases = MAX_NAMES, num_files = MAX_NAMES;
  PetscBool has_cases, has_files, has_folder, none = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", names, &num_cases, &has_cases));
  PetscCheck(!has_cases || num_cases < MAX_NAMES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-case names more than %d matrices", MAX_NAMES - 1);
  if (has_cases) {
    if (num_cases == 1) PetscCall(PetscStrcmp(names[0], "none", &none));
    for (PetscInt i = 0; i < num_cases; i++) {
      if (!none) PetscCall(RunCase(run, names[i]));
      PetscCall(PetscFree(names[i]));
    }
  }
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-file", names, &num_files, &has_files));
  PetscCheck(!has_files || num_files < MAX_NAMES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-file names more than %d matrices", MAX_NAMES - 1);
  for (PetscInt i = 0; has_files && i < num_files; i++) {
    PetscCall(RunFile(run, names[i]));
    PetscCall(PetscFree(names[i]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-folder", folder, sizeof(folder), &has_folder));
  if (has_folder) PetscCall(RunFolder(run, folder));
  if (!has_cases && !has_files && !has_folder) PetscCall(RunCase(run, "all"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -ways names what there is, for one backend or the other */
static PetscErrorCode CheckWays(const BenchSettings *settings, PetscBool spmm)
{
  PetscFunctionBeginUser;
  for (int w = 0; w < settings->num_ways; w++) {
    const char *known;
    PetscBool   same = PETSC_FALSE;
    char        list[256] = "";

    for (int k = 0; !same && (known = spmm ? (k <= MAT_AIJTCCUSPARSE_SPMM_SPARSE24 ? MatAIJTCCUSPARSESpMMs[k] : NULL) : BenchWayName(k)) != NULL; k++) {
      PetscCall(PetscStrcmp(settings->ways[w], known, &same));
      PetscCall(PetscStrlcat(list, k > 0 ? ", " : "", sizeof(list)));
      PetscCall(PetscStrlcat(list, known, sizeof(list)));
    }
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-ways %s, expected some of %s", settings->ways[w], list);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSettings(Run *run, PetscBool spmm)
{
  BenchSettings *settings = &run->settings;
  char           mode[32] = "mult", device[256];
  PetscBool      host     = PETSC_FALSE, has_ways, has_precisions;
  PetscInt       num_ways = BENCH_MAX_WAYS;
  int            has_device;

  PetscFunctionBeginUser;
  settings->groups   = 9;
  settings->group_ms = 4;
  run->num_precisions = MAX_PRECISIONS;
  PetscCall(PetscOptionsGetEnumArray(NULL, NULL, "-precision", MatAIJTCCUSPARSEPrecisions, run->precisions, &run->num_precisions, &has_precisions));
  if (!has_precisions) run->num_precisions = 1; /* fp64 */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-spmv_mode", mode, sizeof(mode), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-host", &host, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-groups", &settings->groups, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-group_ms", &settings->group_ms, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-ways", settings->ways, &num_ways, &has_ways));
  settings->num_ways = has_ways ? (int)num_ways : 0;
  PetscCall(CheckWays(settings, spmm));
  settings->mode = BenchModeFind(mode);
  PetscCheck(settings->mode, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-spmv_mode %s, expected mult, add, transpose or residual", mode);
  PetscCheck(settings->groups >= 1 && settings->groups <= 101, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-groups %" PetscInt_FMT ", expected 1 to 101", settings->groups);
  PetscCheck(settings->group_ms > 0 && settings->group_ms <= 100000, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-group_ms %g, expected more than 0, 100000 at most", (double)settings->group_ms);
  has_device         = bench_device(device);
  settings->cuda     = (PetscBool)(has_device && !host);
  settings->backend  = settings->cuda ? OpenCUDA() : tc_backend_host();
  settings->copy_gbs = settings->cuda ? bench_copy_gbs() : 0;
  PetscCheck(settings->backend, PETSC_COMM_SELF, PETSC_ERR_LIB, "There is a GPU, but the CUDA library does not load");
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s%s%s; milliseconds, median of %" PetscInt_FMT " groups of at least %g ms", settings->cuda ? device : "one processor core", settings->cuda ? "" : ", no GPU: ", settings->cuda ? "" : has_device ? "-host" : device,
                        settings->groups, (double)settings->group_ms));
  if (settings->cuda) PetscCall(PetscPrintf(PETSC_COMM_SELF, "; device copy %.0f GB/s", settings->copy_gbs));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Libraries and kernels load at their first use, which is not to be counted as anyone's conversion */
static PetscErrorCode WarmUp(const Run *run)
{
  BenchSettings quick = run->settings;
  tc_matrix     A;

  PetscFunctionBeginUser;
  quick.groups = 1;
  PetscCheck(tc_generate(tc_generator_find("mixed"), WARM_UP_SIZE, BENCH_SEED, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  for (PetscInt p = 0; p < run->num_precisions; p++) {
    BenchResult unused = {.name = "warm-up", .block = 1};

    quick.precision = (tc_precision)run->precisions[p];
    PetscCall(BenchRun(&A, &quick, &unused));
  }
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int list_cases(void)
{
  int                  num;
  const tc_bench_case *cases = tc_bench_cases(&num);

  for (int i = 0; i < num; i++) {
    const tc_generator *generator = tc_generator_find(cases[i].generator);

    printf("%-22s %-18s %9d %8d %-13s %s\n", cases[i].name, cases[i].generator, (int)cases[i].size, (int)cases[i].host_size, generator->random_values ? "random values" : "", generator->what);
  }
  return 0;
}

int main(int argc, char **args)
{
  static Run run;
  char       json[PETSC_MAX_PATH_LEN];
  PetscBool  has_json, spmm;

  if (argc == 2 && strcmp(args[1], "list") == 0) return list_cases();
  if (argc < 2 || (strcmp(args[1], "spmv") != 0 && strcmp(args[1], "spmm") != 0)) {
    fputs(help, stderr);
    return 2;
  }
  spmm = (PetscBool)(strcmp(args[1], "spmm") == 0);
  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(MatAIJTCCUSPARSESetPropagate(PETSC_FALSE)); /* MATAIJCUSPARSE stays what it is */
  PetscCall(GetSettings(&run, spmm));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-json", json, sizeof(json), &has_json));
  if (has_json) { /* before anything is measured */
    FILE *const file = fopen(json, "a");

    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-json %s cannot be written: %s", json, strerror(errno));
    fclose(file);
  }
  if (spmm) {
    PetscCall(BenchSpmmCreate(&run.settings, &run.spmm));
    PetscCall(RunSelected(&run));
    PetscCall(BenchSpmmFinish(&run.spmm, has_json ? json : NULL));
  } else {
    PetscCall(WarmUp(&run));
    PetscCall(BenchPrint(&run.settings, NULL));
    PetscCall(RunSelected(&run));
    PetscCall(BenchPrintSummary(&run.settings, run.num, run.result));
    if (has_json) PetscCall(BenchWriteJSON(json, &run.settings, run.num, run.result));
    PetscCall(PetscFree(run.result));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d matrices, %d wrong, %d not read\n", run.matrices, run.wrong, run.unreadable));
  for (int w = 0; w < run.settings.num_ways; w++) PetscCall(PetscFree(run.settings.ways[w]));
  PetscCall(PetscFinalize());
  return run.wrong > 0 || run.unreadable > 0;
}
