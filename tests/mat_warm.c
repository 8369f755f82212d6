/*
  When the GPU is made ready: with the first matrix that will multiply there, once, and before anything is packed; never for matrices on the host, nor for those whose
  products are the parent's. The library with the kernels is not even opened for the host.
*/
#define _GNU_SOURCE /* dladdr(), RTLD_NOLOAD */
#include "mat_warm.h"
#include <dlfcn.h>
#include <string.h>

static char help[] = "Tests when MATAIJTCCUSPARSE makes the GPU ready.\n\n";

/* How often has the GPU been made ready, and something packed? */
static PetscErrorCode CountBoth(int *warm_ups, int *builds)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCountEvent("MatTCWarmUp", warm_ups));
  PetscCall(MatTestCountEvent("MatTCBuild", builds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the library with the kernels in this process? */
static PetscErrorCode IsOpen(PetscBool *open)
{
  Dl_info ours;
  char    path[PETSC_MAX_PATH_LEN], *slash;
  void   *library;

  PetscFunctionBeginUser;
  PetscCheck(dladdr((void *)MatAIJTCCUSPARSEInitializePackage, &ours), PETSC_COMM_SELF, PETSC_ERR_LIB, "The library does not know its file");
  PetscCall(PetscStrncpy(path, ours.dli_fname, sizeof(path)));
  slash = strrchr(path, '/');
  if (slash) slash[1] = '\0';
  PetscCall(PetscStrlcat(path, "libaijtccusparse_cuda.so", sizeof(path)));
  library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  *open   = library ? PETSC_TRUE : PETSC_FALSE;
  if (library) dlclose(library);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of ours is made, with that option, and multiplies: if it is `wanted`, and there is one, the GPU has been made ready once before the first product, with nothing packed until then */
static PetscErrorCode TestMatrix(const char what[], const char option[], const char value[], PetscBool wanted, PetscBool may_open)
{
  tc_matrix S;
  Mat       ours, plain, copy;
  PetscBool same, same_copy, open, cuda;
  int       before, ready, after, packed, builds, expected;

  PetscFunctionBeginUser;
  if (option) PetscCall(PetscOptionsSetValue(NULL, option, value));
  PetscCall(CountBoth(&ready, &before));
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  PetscCall(CountBoth(&ready, &packed));
  PetscCall(IsOpen(&open));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  expected = wanted && cuda;
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &copy));
  PetscCall(MatTestSameProduct(copy, plain, &same_copy));
  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_INPLACE_MATRIX, &plain));
  PetscCall(CountBoth(&after, &builds));
  PetscCall(MatTestFact((PetscBool)(ready == expected && after == expected && packed == before && (may_open || !open) && same && same_copy), "%s: %d times ready before the first product, %d times after it; %d packed before it; kernels %s; products %s", what,
                        ready, after, packed - before, open ? "opened" : "not opened", same && same_copy ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&copy));
  if (option) PetscCall(PetscOptionsClearValue(NULL, option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscErrorCode (*allocates)(size_t, PetscBool, int, const char[], const char[], void **);

  PetscCall(MatTestBegin(&argc, &args, help));
  allocates = PetscTrMalloc;
  PetscCall(PetscLogDefaultBegin());
  PetscCall(CheckHugePages("before the first matrix", PETSC_FALSE));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_huge_pages", "false"));
  PetscCall(TestMatrix("on the host", "-mat_aijtccusparse_backend", "host", PETSC_FALSE, PETSC_FALSE));
  PetscCall(TestMatrix("products left to the parent", "-mat_aijtccusparse_spmv", "parent", PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckHugePages("after matrices that are not to", PETSC_FALSE));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtccusparse_huge_pages"));
  PetscCall(MatAIJTCCUSPARSESetHugePages(PETSC_TRUE));
  PetscCall(TestMatrix("the first matrix", NULL, NULL, PETSC_TRUE, PETSC_TRUE));
  PetscCall(TestMatrix("the next matrix", NULL, NULL, PETSC_TRUE, PETSC_TRUE));
  PetscCall(CheckHugePages("after a matrix", PETSC_TRUE));
  PetscTrMalloc = allocates; /* as PetscMallocSetDRAM() and PetscMallocResetDRAM() leave it, as a trajectory in memory calls them */
  PetscCall(TestMatrix("a matrix behind PetscMallocResetDRAM()", NULL, NULL, PETSC_TRUE, PETSC_TRUE));
  PetscCall(CheckHugePages("behind PetscMallocResetDRAM() and a matrix", PETSC_TRUE));
  PetscCall(CheckSending(PETSC_FALSE));
  PetscCall(CheckSending(PETSC_TRUE));
  PetscCall(MatAIJTCCUSPARSESetHugePages(PETSC_FALSE));
  PetscCall(CheckHugePages("once that is not wanted", PETSC_FALSE));
  return MatTestEnd();
}
