/*
  MatSetType() for LD_PRELOAD, tests/petsc/everywhere.sh: a program that asks for AIJ or AIJCUSPARSE gets MATAIJTCCUSPARSE, whatever it is written for. Left alone are calls of our
  library, which asks for the parent's types, those of MatConvert(), which asks ours to convert and would find itself again, factors, and matrices that are AIJ already, where PETSc does nothing.

  Environment: EVERYWHERE_LIBRARY, the plugin, loaded by -dll_prepend; EVERYWHERE_TYPE, another type to give instead, without "seq" or "mpi": where it is set the plugin need not be there.
*/
#define _GNU_SOURCE /* RTLD_NEXT, RTLD_NOLOAD, dladdr() */
#include <dlfcn.h>
#include <petscmat.h>
#include <stdlib.h>
#include <string.h>

/* The types are registered once the plugin is there */
static PetscBool IsLoaded(void)
{
  const char *library = getenv("EVERYWHERE_LIBRARY");
  void       *handle  = library ? dlopen(library, RTLD_NOLOAD | RTLD_NOW) : NULL;

  if (handle) dlclose(handle);
  return handle ? PETSC_TRUE : PETSC_FALSE;
}

static PetscBool IsLeftAlone(const void *caller)
{
  const char *library = getenv("EVERYWHERE_LIBRARY");
  Dl_info     info;

  if (!dladdr(caller, &info) || !info.dli_fname) return PETSC_FALSE;
  return (library && !strcmp(info.dli_fname, library)) || (info.dli_sname && !strcmp(info.dli_sname, "MatConvert")) ? PETSC_TRUE : PETSC_FALSE;
}

/* PETSc makes a factor a MATSEQAIJ before it makes it a factor, so that nobody could tell: what is created while one is made is left alone */
static int making_factors = 0;

#define MAKES_FACTOR(name, parameters, arguments) \
  PETSC_EXTERN PetscErrorCode name parameters \
  { \
    static PetscErrorCode (*real) parameters = NULL; \
    PetscErrorCode ierr; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name); \
    making_factors++; \
    ierr = real arguments; \
    making_factors--; \
    return ierr; \
  }

MAKES_FACTOR(MatGetFactor, (Mat A, MatSolverType solver, MatFactorType type, Mat *F), (A, solver, type, F))
MAKES_FACTOR(MatLUFactorSymbolic, (Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info), (F, A, rows, cols, info))
MAKES_FACTOR(MatILUFactorSymbolic, (Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info), (F, A, rows, cols, info))
MAKES_FACTOR(MatCholeskyFactorSymbolic, (Mat F, Mat A, IS rows, const MatFactorInfo *info), (F, A, rows, info))
MAKES_FACTOR(MatICCFactorSymbolic, (Mat F, Mat A, IS rows, const MatFactorInfo *info), (F, A, rows, info))

PETSC_EXTERN PetscErrorCode MatSetType(Mat A, MatType type)
{
  static const char *const prefixes[] = {"", "seq", "mpi"};
  static const char *const replaced[] = {MATAIJ, MATAIJCUSPARSE};
  static PetscErrorCode (*real)(Mat, MatType) = NULL;
  const char *wanted = getenv("EVERYWHERE_TYPE");
  MatType     now;
  char        name[64], ours[64];

  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "MatSetType");
  if (!type || making_factors || IsLeftAlone(__builtin_return_address(0)) || (!wanted && !IsLoaded())) return real(A, type);
  if (MatGetType(A, &now) == PETSC_SUCCESS && now && strstr(now, MATAIJ)) return real(A, type);
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(prefixes); i++) {
    for (size_t j = 0; j < PETSC_STATIC_ARRAY_LENGTH(replaced); j++) {
      snprintf(name, sizeof(name), "%s%s", prefixes[i], replaced[j]);
      snprintf(ours, sizeof(ours), "%s%s", prefixes[i], wanted ? wanted : "aijtccusparse");
      if (!strcmp(type, name)) return real(A, ours);
    }
  }
  return real(A, type);
}
