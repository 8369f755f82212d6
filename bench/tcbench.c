/*
  tcbench: times MatMult() of MATAIJTCCUSPARSE against MATAIJCUSPARSE on the same GPU, or, without one, against MATAIJ on one processor core. Both in the same
  process, over the same entries, in turns; every timed product is checked against the a-priori bound of its rows and for the bits of the host backend.
*/
#define _GNU_SOURCE // dladdr()
#include "bench_case.h"
#include "bench_timer.h"
#include "generators.h"
#include "matrix_market.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static char help[] = "tcbench spmv [options]\n\
  -case <a,b,..>    rows of the table, or generator:size; default: all, unless -file or -folder is given; \"none\"\n\
  -file <a,b,..>    Matrix Market files\n\
  -folder <path>    all Matrix Market files of a folder\n\
  -host             on the host even where there is a GPU\n\
  -groups <n>       groups of repetitions, median of them; default 9\n\
  -group_ms <ms>    least duration of a group; default 4\n\
  -json <file>      results for programs\n\n";

enum { MAX_RESULTS = 256, MAX_NAMES = 64 };

typedef struct {
  BenchSettings settings;
  int           num, wrong;
  BenchResult   result[MAX_RESULTS];
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

static PetscErrorCode RunMatrix(Run *run, const char name[], double target_ms, tc_matrix *A)
{
  BenchResult *result = &run->result[run->num];

  PetscFunctionBeginUser;
  PetscCheck(run->num < MAX_RESULTS, PETSC_COMM_SELF, PETSC_ERR_SUP, "More than %d matrices", MAX_RESULTS);
  PetscCall(PetscMemzero(result, sizeof(*result)));
  PetscCall(PetscStrncpy(result->name, name, sizeof(result->name)));
  result->target_ms = target_ms;
  PetscCall(BenchRun(A, &run->settings, result));
  PetscCall(BenchPrint(&run->settings, result));
  for (int w = 0; w < result->num_ways; w++) {
    if (!(result->way[w].error_over_bound <= 1) || !result->way[w].same_bits) run->wrong++;
  }
  run->num++;
  tc_matrix_free(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunGenerated(Run *run, const char name[], const char generator_name[], int32_t size, double target_ms)
{
  const tc_generator *generator = tc_generator_find(generator_name);
  tc_matrix           A;

  PetscFunctionBeginUser;
  PetscCheck(generator, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No case and no generator is named %s", generator_name);
  PetscCheck(tc_generate(generator, size, 1, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(RunMatrix(run, name, target_ms, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row of the table by name, or generator:size */
static PetscErrorCode RunCase(Run *run, const char name[])
{
  const BenchCase *cases;
  char             generator[64];
  const char      *colon = strchr(name, ':');
  int              num;

  PetscFunctionBeginUser;
  cases = BenchCases(&num);
  for (int i = 0; i < num; i++) {
    if (strcmp(cases[i].name, name) != 0) continue;
    if (run->settings.cuda) PetscCall(RunGenerated(run, name, cases[i].generator, cases[i].size, cases[i].target_ms));
    else {
      PetscCall(PetscSNPrintf(generator, sizeof(generator), "%s:%d", cases[i].generator, (int)cases[i].host_size));
      PetscCall(RunGenerated(run, generator, cases[i].generator, cases[i].host_size, 0));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(colon, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No case is named %s", name);
  PetscCall(PetscStrncpy(generator, name, PetscMin(sizeof(generator), (size_t)(colon - name) + 1)));
  PetscCall(RunGenerated(run, name, generator, atoi(colon + 1), 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunFile(Run *run, const char path[])
{
  const char *slash = strrchr(path, '/');
  char        name[64], *dot;
  tc_matrix   A;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_market_read(path, &A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s", tc_last_error());
  PetscCall(PetscStrncpy(name, slash ? slash + 1 : path, sizeof(name)));
  dot = strstr(name, ".mtx");
  if (dot) *dot = 0;
  PetscCall(RunMatrix(run, name, 0, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int is_matrix_file(const struct dirent *entry)
{
  return strstr(entry->d_name, ".mtx") != NULL;
}

static PetscErrorCode RunFolder(Run *run, const char folder[])
{
  struct dirent **files;
  const int       num = scandir(folder, &files, is_matrix_file, alphasort);

  PetscFunctionBeginUser;
  PetscCheck(num > 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No Matrix Market file in %s", folder);
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
  char            *names[MAX_NAMES], folder[PETSC_MAX_PATH_LEN];
  PetscInt         num_cases = MAX_NAMES, num_files = MAX_NAMES;
  PetscBool        has_cases, has_files, has_folder, none = PETSC_FALSE;
  const BenchCase *cases;
  int              num;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", names, &num_cases, &has_cases));
  if (has_cases) {
    if (num_cases == 1) PetscCall(PetscStrcmp(names[0], "none", &none));
    for (PetscInt i = 0; i < num_cases; i++) {
      if (!none) PetscCall(RunCase(run, names[i]));
      PetscCall(PetscFree(names[i]));
    }
  }
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-file", names, &num_files, &has_files));
  for (PetscInt i = 0; has_files && i < num_files; i++) {
    PetscCall(RunFile(run, names[i]));
    PetscCall(PetscFree(names[i]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-folder", folder, sizeof(folder), &has_folder));
  if (has_folder) PetscCall(RunFolder(run, folder));
  if (has_cases || has_files || has_folder) PetscFunctionReturn(PETSC_SUCCESS);
  cases = BenchCases(&num);
  for (int i = 0; i < num; i++) PetscCall(RunCase(run, cases[i].name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  static Run run;
  char       device[256], json[PETSC_MAX_PATH_LEN];
  PetscBool  host = PETSC_FALSE, has_json;
  int        has_device;

  if (argc < 2 || strcmp(args[1], "spmv") != 0) {
    fputs(help, stderr);
    return 2;
  }
  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  run.settings.groups   = 9;
  run.settings.group_ms = 4;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-host", &host, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-groups", &run.settings.groups, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-group_ms", &run.settings.group_ms, NULL));
  PetscCheck(run.settings.groups >= 1 && run.settings.groups <= 101, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-groups %" PetscInt_FMT ", expected 1 to 101", run.settings.groups);
  has_device            = bench_device(device);
  run.settings.cuda     = (PetscBool)(has_device && !host);
  run.settings.backend  = run.settings.cuda ? OpenCUDA() : tc_backend_host();
  run.settings.copy_gbs = run.settings.cuda ? bench_copy_gbs() : 0;
  PetscCheck(run.settings.backend, PETSC_COMM_SELF, PETSC_ERR_LIB, "There is a GPU, but the CUDA library does not load");
  PetscCall(MatAIJTCCUSPARSESetPropagate(PETSC_FALSE)); /* MATAIJCUSPARSE stays what it is */
  if (!run.settings.cuda) PetscCall(PetscOptionsSetValue(NULL, "-tcbench_mat_aijtccusparse_backend", "host"));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s%s%s; milliseconds, median of %" PetscInt_FMT " groups of at least %g ms", run.settings.cuda ? device : "one processor core",
                        run.settings.cuda ? "" : ", no GPU: ",
                        run.settings.cuda ? ""
                        : has_device      ? "-host"
                                          : device,
                        run.settings.groups, (double)run.settings.group_ms));
  if (run.settings.cuda) PetscCall(PetscPrintf(PETSC_COMM_SELF, "; device copy %.0f GB/s", run.settings.copy_gbs));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscCall(BenchPrint(&run.settings, NULL));
  PetscCall(RunSelected(&run));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-json", json, sizeof(json), &has_json));
  if (has_json) PetscCall(BenchWriteJSON(json, &run.settings, run.num, run.result));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d matrices, %d wrong\n", run.num, run.wrong));
  PetscCall(PetscFinalize());
  return run.wrong > 0;
}
