#include "mat_ops.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the detailed view of the matrix contain the text? */
static PetscErrorCode ViewHas(Mat A, const char text[], PetscBool *has)
{
  char        name[PETSC_MAX_PATH_LEN], *all;
  PetscViewer viewer;
  PetscMPIInt rank;
  int         found = 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscGetTmp(PETSC_COMM_WORLD, name, sizeof(name)));
  PetscCall(PetscStrlcat(name, "/aijtccusparse_view_XXXXXX", sizeof(name)));
  if (rank == 0) close(mkstemp(name));
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, name, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (rank == 0) {
    FILE *file = fopen(name, "r");

    PetscCall(PetscCalloc1(1 << 16, &all));
    (void)!fread(all, 1, (1 << 16) - 1, file);
    fclose(file);
    unlink(name);
    found = strstr(all, text) != NULL;
    PetscCall(PetscFree(all));
  }
  PetscCallMPI(MPI_Bcast(&found, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  *has = found ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreatePair(Mat *ours, Mat *plain)
{
  tc_matrix S;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 12, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, ours));
  PetscCall(MatTestCreate(&S, MATAIJ, plain));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every value of the option: the product is right and the view tells what was chosen */
static PetscErrorCode CheckOption(const char value[], const char on_host[], const char on_device[])
{
  Mat       ours, plain;
  PetscBool same, residual, transpose, cuda, told;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatSetOptionsPrefix(ours, "chosen_"));
  PetscCall(PetscOptionsSetValue(NULL, "-chosen_mat_aijtccusparse_spmv", value));
  PetscCall(MatSetFromOptions(ours));
  PetscCall(PetscOptionsClearValue(NULL, "-chosen_mat_aijtccusparse_spmv"));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameResidual(ours, plain, &residual));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &transpose));
  PetscCall(ViewHas(ours, cuda ? on_device : on_host, &told));
  PetscCall(MatTestFact((PetscBool)(same && residual && transpose && told), "-mat_aijtccusparse_spmv %s: product, residual, transpose %s, view %s '%s'", value, same && residual && transpose ? "right" : "WRONG", told ? "says" : "DOES NOT SAY",
                        cuda ? on_device : on_host));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nodes of three rows: columns and bits are the same, told from the block size or not */
static PetscErrorCode CheckBlockSize(void)
{
  Mat       ours, plain;
  PetscBool same, transpose;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain));
  PetscCall(MatSetBlockSizes(ours, 3, 2));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &transpose));
  PetscCall(MatTestFact((PetscBool)(same && transpose), "block sizes 3 and 2: product, transpose %s", same && transpose ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a GPU the 32nd product of a pattern is timed against cuSPARSE's unless a format was asked for; whatever wins, products stay right */
static PetscErrorCode CheckTrial(PetscBool asked)
{
  enum {
    PRODUCTS = 40
  };
  Mat       ours, plain;
  PetscBool cuda, same, all = PETSC_TRUE, timed, again;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(&ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, asked ? MAT_AIJTCCUSPARSE_SPMV_HYBRID : MAT_AIJTCCUSPARSE_SPMV_AUTO));
  for (int i = 0; i < PRODUCTS; i++) {
    PetscCall(MatTestSameProduct(ours, plain, &same));
    if (!same) all = PETSC_FALSE;
  }
  PetscCall(ViewHas(ours, "timed after 32 products", &timed));
  PetscCall(MatScale(ours, -2.0));
  PetscCall(MatScale(plain, -2.0));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameResidual(ours, plain, &again));
  PetscCall(MatTestFact((PetscBool)(all && same && again && timed == (PetscBool)(cuda && !asked)), "%d products, %s: %s, then with new values %s; %s", PRODUCTS, asked ? "format asked for" : "automatic", all ? "right" : "WRONG",
                        same && again ? "right" : "WRONG", timed ? "timed" : "not timed"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckChoices(void)
{
  PetscFunctionBeginUser;
  PetscCall(CheckOption("auto", "format dasp", "format hybrid"));
  PetscCall(CheckOption("dasp", "format dasp", "format dasp"));
  PetscCall(CheckOption("hybrid", "format hybrid", "format hybrid"));
  PetscCall(CheckOption("cusparse", "aij: asked for", "aijcusparse: asked for"));
  PetscCall(CheckOption("parent", "aij: asked for", "aijcusparse: asked for"));
  PetscCall(CheckBlockSize());
  PetscCall(CheckTrial(PETSC_FALSE));
  PetscCall(CheckTrial(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
