/*
  Large memory of PETSc's on the host. A new page is a fault, which takes as long as filling it; what the GPU's copies are written to when products of sparse matrices are set up, what a matrix is
  assembled in and what graphs are made of are such pages, 512 faults where a huge page would be one. So PETSc's memory asks for huge pages, where the system gives them if asked.
*/
#include "aijtccusparseimpl.h"

typedef PetscErrorCode (*MatTCMallocFn)(size_t, PetscBool, int, const char[], const char[], void **);

static struct {
  PetscBool     wanted;
  MatTCMallocFn before; /* what allocates; NULL: ours does not */
} huge_pages = {PETSC_TRUE, NULL};

/* Zeros are written once the memory has been asked for */
static PetscErrorCode MatTCMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **memory)
{
  const PetscBool large = (PetscBool)(huge_pages.wanted && bytes >= TC_HUGE_FROM);

  PetscCall((*huge_pages.before)(bytes, large ? PETSC_FALSE : clear, line, function, file, memory));
  if (!large) return PETSC_SUCCESS;
  tc_ask_for_huge_pages(*memory, bytes);
  if (clear) PetscCall(PetscMemzero(*memory, bytes));
  return PETSC_SUCCESS;
}

static void MatTCHugePagesOff(void)
{
  if (huge_pages.before && PetscTrMalloc == MatTCMalloc) {
    PetscTrMalloc     = huge_pages.before;
    huge_pages.before = NULL;
  }
}

/* A matrix is becoming ours: from now on */
PetscErrorCode MatTCHugePagesFrom(Mat A)
{
  PetscOptions options;
  const char  *prefix;

  PetscFunctionBegin;
  if (huge_pages.before && PetscTrMalloc != huge_pages.before) PetscFunctionReturn(PETSC_SUCCESS); /* PetscMallocResetDRAM() may have taken ours away */
  PetscCall(PetscObjectGetOptions((PetscObject)A, &options));
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)A, &prefix));
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_huge_pages", &huge_pages.wanted, NULL));
  if (!huge_pages.wanted) PetscFunctionReturn(PETSC_SUCCESS);
  huge_pages.before = PetscTrMalloc;
  PetscTrMalloc     = MatTCMalloc;
  PetscCall(PetscInfo(A, "aijtccusparse: memory of %d bytes and more asks for huge pages from now on\n", TC_HUGE_FROM));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetHugePages - Does memory that PETSc allocates ask the system for huge pages once there is a matrix of type `MATAIJTCCUSPARSE`?

  Not Collective

  Input Parameter:
. huge - `PETSC_FALSE` to leave it to the system

  Options Database Key:
. -mat_aijtccusparse_huge_pages (true|false) - default `true`

  Level: advanced

  Notes:
  It goes for all of the process, for allocations of 4 MB and more with `PetscMalloc()` and its like, those of other objects included: values and patterns of matrices, vectors of the host. What changes is who
  fills them with zeros, in pieces of 2 MB in place of 4 KB, by `madvise()`; nothing is allocated that would not be. It has an effect where the system's transparent huge pages are `madvise`, as Linux distributions have them. What it gives is
  time where large matrices are made: copies from the GPU into new memory, as in the set-up of `PCGAMG`, take half as long.

  What is allocated by then stays as it is. `PETSC_TRUE` after `PETSC_FALSE` has its effect from the next matrix of the type on.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `PetscMalloc()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetHugePages(PetscBool huge)
{
  PetscFunctionBegin;
  huge_pages.wanted = huge;
  if (!huge) MatTCHugePagesOff();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc is being finalized */
void MatTCHugePagesReset(void)
{
  MatTCHugePagesOff();
  huge_pages.wanted = PETSC_TRUE;
}
