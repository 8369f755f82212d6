/*
  The library refuses to work with a PETSc that differs from the one it is compiled for, and the message names both. This program has PETSc's functions that tell
  its version and its sizes once more: the library finds these first, and so sees another PETSc in place of the real one.
*/
#define _GNU_SOURCE /* dladdr(), RTLD_NEXT */
#include "mat_util.h"
#include <dlfcn.h>
#include <string.h>

static char help[] = "Tests that MATAIJTCCUSPARSE refuses another PETSc when it is loaded.\n\n";

typedef struct {
  int       major, minor;
  PetscBool is_complex;
  size_t    real_size, int_size;
} PETScKind;

static const PETScKind compiled = {PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PetscDefined(USE_COMPLEX) ? PETSC_TRUE : PETSC_FALSE, sizeof(PetscReal), sizeof(PetscInt)};
static PETScKind       running; /* what the library sees; PETSc itself sees it, too, but does not ask while a library is loaded */

PETSC_EXTERN PetscErrorCode PetscGetVersionNumber(PetscInt *major, PetscInt *minor, PetscInt *subminor, PetscInt *release)
{
  PetscFunctionBeginUser;
  if (major) *major = running.major;
  if (minor) *minor = running.minor;
  if (subminor) *subminor = PETSC_VERSION_SUBMINOR;
  if (release) *release = PETSC_VERSION_RELEASE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_EXTERN PetscErrorCode PetscDataTypeFromString(const char name[], PetscDataType *type, PetscBool *found)
{
  PetscBool scalar;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(name, "scalar", &scalar));
  *type  = scalar && running.is_complex ? PETSC_COMPLEX : PETSC_REAL;
  *found = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_EXTERN PetscErrorCode PetscDataTypeGetSize(PetscDataType type, size_t *size)
{
  static PetscErrorCode (*real)(PetscDataType, size_t *) = NULL;

  PetscFunctionBeginUser;
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "PetscDataTypeGetSize");
  if (type == PETSC_INT) *size = running.int_size;
  else if (type == PETSC_REAL) *size = running.real_size;
  else if (type == PETSC_COMPLEX) *size = 2 * running.real_size;
  else PetscCall(real(type, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the first message in place of printing it */
static PetscErrorCode KeepMessage(MPI_Comm comm, int line, const char function[], const char file[], PetscErrorCode code, PetscErrorType type, const char message[], void *kept)
{
  (void)comm, (void)line, (void)function, (void)file;
  if (type == PETSC_ERROR_INITIAL) strncpy(kept, message, 511);
  return code;
}

/* Loads the library as -dll_prepend does */
static PetscErrorCode Load(PetscErrorCode *code, char message[512])
{
  PetscDLLibrary library;
  Dl_info        ours;

  PetscFunctionBeginUser;
  PetscCheck(dladdr((void *)MatAIJTCCUSPARSEInitializePackage, &ours), PETSC_COMM_SELF, PETSC_ERR_LIB, "The library does not know its file");
  memset(message, 0, 512);
  PetscCall(PetscPushErrorHandler(KeepMessage, message));
  *code = PetscDLLibraryOpen(PETSC_COMM_WORLD, ours.dli_fname, &library);
  PetscCall(PetscPopErrorHandler());
  if (*code == PETSC_SUCCESS) PetscCall(PetscDLLibraryClose(library));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestRefused(const char what[], PETScKind other, const char format[], ...)
{
  char           message[512], expected[512];
  PetscErrorCode code;
  PetscBool      named;
  va_list        args;

  PetscFunctionBeginUser;
  va_start(args, format);
  PetscCall(PetscVSNPrintf(expected, sizeof(expected), format, NULL, args));
  va_end(args);
  running = other;
  PetscCall(Load(&code, message));
  running = compiled;
  named   = strstr(message, expected) ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(MatTestFact((PetscBool)(code == PETSC_ERR_SUP && named), "%s: status %d, %s", what, (int)code, message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestRefusals(void)
{
  const PETScKind us     = compiled;
  const char     *scalar = us.is_complex ? "complex" : "real", *other_scalar = us.is_complex ? "real" : "complex";
  const char      sizes[] = "for a PETSc with %s scalars of %d-byte reals and %d-byte indices, this program runs one with %s scalars of %d-byte reals and %d-byte indices";
  const int       real = (int)us.real_size, other_real = 12 - real, integer = (int)us.int_size, other_integer = 12 - integer;
  PETScKind       other;

  PetscFunctionBeginUser;
  for (int step = -1; step <= 1; step += 2) {
    other       = us;
    other.minor = us.minor + step;
    PetscCall(TestRefused("another minor version", other, "compiled for PETSc %d.%d, this program runs PETSc %d.%d", us.major, us.minor, other.major, other.minor));
  }
  other       = us;
  other.major = us.major + 1;
  PetscCall(TestRefused("another major version", other, "compiled for PETSc %d.%d, this program runs PETSc %d.%d", us.major, us.minor, other.major, other.minor));
  other            = us;
  other.is_complex = (PetscBool)!us.is_complex;
  PetscCall(TestRefused("other scalars", other, sizes, scalar, real, integer, other_scalar, real, integer));
  other           = us;
  other.real_size = (size_t)other_real;
  PetscCall(TestRefused("another precision", other, sizes, scalar, real, integer, scalar, other_real, integer));
  other          = us;
  other.int_size = (size_t)other_integer;
  PetscCall(TestRefused("indices of another size", other, sizes, scalar, real, integer, scalar, real, other_integer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was refused is registered nowhere; the right PETSc is welcome afterwards */
static PetscErrorCode TestAccepted(void)
{
  char           message[512];
  PetscErrorCode code;
  Mat            A;
  PetscBool      before, is_ours;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 4, 4, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(PetscPushErrorHandler(KeepMessage, message));
  before = (PetscBool)(MatSetType(A, MATAIJTCCUSPARSE) == PETSC_SUCCESS);
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatTestFact((PetscBool)!before, "a library that is refused registers %s", before ? "ITS TYPE" : "nothing"));
  PetscCall(Load(&code, message));
  PetscCall(MatTestFact((PetscBool)(code == PETSC_SUCCESS), "the PETSc it is compiled for: status %d %s", (int)code, message));
  PetscCall(MatSetType(A, MATAIJTCCUSPARSE));
  PetscCall(MatIsAIJTCCUSPARSE(A, &is_ours));
  PetscCall(MatTestFact(is_ours, "the type is %s", is_ours ? "there" : "NOT THERE"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  running = compiled;
  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(TestRefusals());
  PetscCall(TestAccepted());
  return MatTestEnd();
}
