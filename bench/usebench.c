/*
  usebench - what programs do with a matrix between products: new values or a new matrix, followed by one product or a few. The same program with the parent type tells what ours gives, by the clock of
  the host, one process, the device idle at both ends of a group.
*/
static char help[] = "Times uses of a matrix of the type that -mat_type names.\n\
  -case <a,b>    : generator:size, see tcbench list\n\
  -use <a,b>     : only those with these words in their names\n\
  -columns <n>   : right-hand sides of MatMatSolve, 32\n\
  -beside <file> : what another run wrote: how many times as fast is this one?\n\n";

#include "bench_timer.h"
#include "uses.h"
#include <math.h>
#include <petscmataijtccusparse.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST   = 16,
  GROUPS = 9, /* of what is timed, ... */
  FEW    = 3, /* ... where a use is long */
  WARM   = 50 /* short uses, ahead of what is timed: what is chosen by then is what is timed */
};

static const double group_ms = 4, long_ms = 4; /* a group; from which on a use is long */

/* Milliseconds of a use, median of groups */
static PetscErrorCode Time(Use *U, const UseKind *kind, PetscBool device, double *ms)
{
  double group[GROUPS], begin, spread;
  int    repeats, groups;

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) PetscCall((*kind->use)(U, kind->n));
  bench_synchronize(device);
  begin = bench_wall();
  PetscCall((*kind->use)(U, kind->n));
  bench_synchronize(device);
  *ms     = 1e3 * (bench_wall() - begin);
  repeats = (int)fmax(1, fmin(100, group_ms / *ms));
  groups  = *ms < long_ms ? GROUPS : FEW;
  for (int i = 0; i < WARM && *ms < long_ms; i++) PetscCall((*kind->use)(U, kind->n));
  for (int g = 0; g < groups; g++) {
    bench_synchronize(device);
    begin = bench_wall();
    for (int i = 0; i < repeats; i++) PetscCall((*kind->use)(U, kind->n));
    bench_synchronize(device);
    group[g] = 1e3 * (bench_wall() - begin) / repeats;
  }
  *ms = bench_median(groups, group, &spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the other run took for that use of that case; 0: it does not say */
static PetscErrorCode Look(FILE *file, const char name[], const char use[], double *ms)
{
  char line[512], *at[2];

  PetscFunctionBeginUser;
  *ms = 0;
  if (!file) PetscFunctionReturn(PETSC_SUCCESS);
  rewind(file);
  while (*ms == 0 && fgets(line, sizeof(line), file)) {
    at[0] = strchr(line, '\t');
    at[1] = at[0] ? strchr(at[0] + 1, '\t') : NULL;
    if (!at[1]) continue;
    *at[0] = *at[1] = '\0';
    if (strcmp(line, name) == 0 && strcmp(at[0] + 1, use) == 0) *ms = atof(at[1] + 1);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With none of `words` all are wanted */
static PetscBool IsWanted(const char use[], PetscInt num, char *words[])
{
  for (PetscInt i = 0; i < num; i++) {
    if (strstr(use, words[i])) return PETSC_TRUE;
  }
  return (PetscBool)(num == 0);
}

int main(int argc, char **args)
{
  char          *cases[MOST], *words[MOST], device_name[256], path[PETSC_MAX_PATH_LEN];
  PetscInt       num = MOST, num_words = MOST, shown = 0;
  PetscBool      device, set;
  FILE          *beside = NULL;
  size_t         num_kinds;
  const UseKind *kinds = UseKinds(&num_kinds);

  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", cases, &num, &set));
  PetscCheck(set, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case generator:size,... says what to time");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-use", words, &num_words, &set));
  if (!set) num_words = 0;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-beside", path, sizeof(path), &set));
  if (set) {
    beside = fopen(path, "r");
    PetscCheck(beside, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-beside %s cannot be read", path);
  }
  device = (PetscBool)bench_device(device_name);
  for (PetscInt c = 0; c < num; c++) {
    Use U;

    PetscCall(UseCreate(cases[c], &U));
    for (size_t u = 0; u < num_kinds; u++) {
      double ms = 0, other;

      if (!IsWanted(kinds[u].name, num_words, words) || (kinds[u].diagonal && U.on_diagonal < U.S.num_rows)) continue;
      PetscCall(Time(&U, &kinds[u], device, &ms));
      PetscCall(Look(beside, cases[c], kinds[u].name, &other));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%s\t%.4f", cases[c], kinds[u].name, ms));
      PetscCall(other > 0 ? PetscPrintf(PETSC_COMM_SELF, "\t%.2fx\n", other / ms) : PetscPrintf(PETSC_COMM_SELF, "\n"));
      shown++;
    }
    PetscCall(UseDestroy(&U));
    PetscCall(PetscFree(cases[c]));
  }
  PetscCheck(shown > 0, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "Nothing to time: no use of these matrices has a word of -use in its name, %s for one", num_words > 0 ? words[0] : "");
  for (PetscInt i = 0; i < num_words; i++) PetscCall(PetscFree(words[i]));
  if (beside) fclose(beside);
  PetscCall(PetscFinalize());
  return 0;
}
