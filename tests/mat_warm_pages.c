/*
  Who asks for huge pages: large memory of PETSc's once there is a matrix of ours, unless the program does not want it; by what the system says about the memory.
*/
#include "mat_warm.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LARGE = 64 << 20 }; /* bytes; the middle of it is no neighbour's */

/* Are huge pages asked for where the pointer leads to? `known` is false where the system does not tell */
static PetscErrorCode IsAsked(const void *pointer, PetscBool *asked, PetscBool *known)
{
  FILE         *maps = fopen("/proc/self/smaps", "r");
  char          line[1024];
  unsigned long begin, end;
  PetscBool     here = PETSC_FALSE;

  PetscFunctionBeginUser;
  *asked = *known = PETSC_FALSE;
  while (maps && fgets(line, sizeof(line), maps)) {
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) here = (PetscBool)(begin <= (uintptr_t)pointer && (uintptr_t)pointer < end);
    if (!here || strncmp(line, "VmFlags:", 8) != 0) continue;
    *known = PETSC_TRUE;
    *asked = (PetscBool)(strstr(line, " hg") != NULL);
  }
  if (maps) fclose(maps);
  maps = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r"); /* without which asking is an error */
  if (maps) fclose(maps);
  else *known = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckHugePages(const char when[], PetscBool expected)
{
  char     *memory, *zeros;
  PetscBool asked[2], known[2], clear = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(LARGE, &memory));
  PetscCall(PetscCalloc1(LARGE, &zeros));
  PetscCall(IsAsked(memory + LARGE / 2, &asked[0], &known[0]));
  PetscCall(IsAsked(zeros + LARGE / 2, &asked[1], &known[1]));
  for (size_t i = 0; i < LARGE; i++) clear = (PetscBool)(clear && zeros[i] == 0);
  PetscCall(PetscFree(memory));
  PetscCall(PetscFree(zeros));
  PetscCall(MatTestFact(clear, "%s: what is to be zeros is zeros", when));
  if (!known[0] || !known[1]) PetscCall(MatTestSkip("%s: this system does not say who has asked for huge pages", when));
  else PetscCall(MatTestFact((PetscBool)(asked[0] == expected && asked[1] == expected), "%s: large memory %s for huge pages", when, expected ? "asks" : "does not ask"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
