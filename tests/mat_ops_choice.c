#include "mat_ops.h"

static PetscErrorCode CreatePair(const char generator[], PetscInt size, Mat *ours, Mat *plain)
{
  tc_matrix S;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate(generator, (int32_t)size, &S));
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
  PetscCall(CreatePair("stencil7", 12, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatSetOptionsPrefix(ours, "chosen_"));
  PetscCall(PetscOptionsSetValue(NULL, "-chosen_mat_aijtccusparse_spmv", value));
  PetscCall(MatSetFromOptions(ours));
  PetscCall(PetscOptionsClearValue(NULL, "-chosen_mat_aijtccusparse_spmv"));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameResidual(ours, plain, &residual));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &transpose));
  PetscCall(MatTestViewHas(ours, cuda ? on_device : on_host, &told));
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
  PetscCall(CreatePair("stencil7", 12, &ours, &plain));
  PetscCall(MatSetBlockSizes(ours, 3, 2));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameTransposeProduct(ours, plain, &transpose));
  PetscCall(MatTestFact((PetscBool)(same && transpose), "block sizes 3 and 2: product, transpose %s", same && transpose ? "right" : "WRONG"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a GPU the 32nd product of an irregular pattern, or residual, is timed against cuSPARSE's unless a format was asked for; whatever wins, products stay right */
static PetscErrorCode CheckTrial(const char generator[], PetscInt size, const char what[], PetscErrorCode (*Product)(Mat, Mat, PetscBool *), PetscBool asked, PetscBool irregular)
{
  enum {
    PRODUCTS = 40
  };
  Mat       ours, plain;
  PetscBool cuda, same, all = PETSC_TRUE, timed, tight, again;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(generator, size, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, asked ? MAT_AIJTCCUSPARSE_SPMV_HYBRID : MAT_AIJTCCUSPARSE_SPMV_AUTO));
  for (int i = 0; i < PRODUCTS; i++) {
    PetscCall((*Product)(ours, plain, &same));
    if (!same) all = PETSC_FALSE;
  }
  PetscCall(MatTestViewHas(ours, "timed after 32 products", &timed));
  PetscCall(MatTestViewHas(ours, "not timed against cuSPARSE", &tight));
  PetscCall(MatScale(ours, -2.0));
  PetscCall(MatScale(plain, -2.0));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameResidual(ours, plain, &again));
  PetscCall(MatTestFact((PetscBool)(all && same && again && timed == (PetscBool)(cuda && !asked && irregular) && tight == (PetscBool)(cuda && !asked && !irregular)), "%s, %d %s, %s: %s, then with new values %s; %s", generator, PRODUCTS, what, asked ? "format asked for" : "automatic", all ? "right" : "WRONG",
                        same && again ? "right" : "WRONG", timed ? "timed" : tight ? "not timed, as the view says" : "not timed"));
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
  PetscCall(CheckTrial("rmat", 8, "products", MatTestSameProduct, PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckTrial("rmat", 8, "residuals", MatTestSameResidualApart, PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckTrial("rmat", 8, "products", MatTestSameProduct, PETSC_TRUE, PETSC_TRUE));
  PetscCall(CheckTrial("stencil7", 12, "products", MatTestSameProduct, PETSC_FALSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
