/*
  Products with dense blocks: the public functions, and the line of MatView().
*/
#include "aijtccusparseimpl.h"

/* Applies changed settings to a matrix of our type; a parallel one hands them on to its blocks at the next product */
static PetscErrorCode MatTCGetSettings(Mat A, Mat_AIJTCCUSPARSE **tc, MatTCSettings *settings)
{
  PetscBool ours;

  PetscFunctionBegin;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  *tc = NULL;
  if (ours) PetscCall(MatTCContextGet(A, tc));
  if (*tc) *settings = (*tc)->settings;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetSpMM - Selects what multiplies the matrix with dense matrices

  Logically Collective; `spmm` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- spmm - `MAT_AIJTCCUSPARSE_SPMM_AUTO`, `MAT_AIJTCCUSPARSE_SPMM_BITTCF`, `MAT_AIJTCCUSPARSE_SPMM_CSR`, `MAT_AIJTCCUSPARSE_SPMM_SLICE`, or
         `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE`

  Options Database Key:
. -mat_aijtccusparse_spmm (auto|bittcf|csr|slice|cusparse) - what multiplies, default `auto`

  Level: intermediate

  Notes:
  Takes effect at the next `MatProductSetFromOptions()`, which `MatMatMult()` calls. The host backend has one kernel and ignores the choice, but for
  `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE`.

  Where there is no kernel for what is asked for, products are left to the parent type.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESpMM`, `MatAIJTCCUSPARSESetSpMMExactNonfinite()`, `MatMatMult()`, `MatProductSetFromOptions()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSpMM(Mat A, MatAIJTCCUSPARSESpMM spmm)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, spmm, 2);
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.spmm = spmm;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetSpMMExactNonfinite - Excludes kernels in which a non-finite entry of the dense matrix may reach rows that do not refer to it

  Logically Collective; `exact` must contain common value

  Input Parameters:
+ A     - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- exact - `PETSC_TRUE` to exclude them

  Options Database Key:
. -mat_aijtccusparse_spmm_exact_nonfinite (true|false) - exclude them, default `false`

  Level: advanced

  Note:
  Kernels for tiles of tensor cores multiply the zeros of a tile, too, and zero times infinity is not a number: an infinity or a NaN in a row of the dense matrix may
  spoil any of the eight rows of the result whose tile has that column. With finite numbers there is no difference.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetSpMM()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSpMMExactNonfinite(Mat A, PetscBool exact)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveBool(A, exact, 2);
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.exact_nonfinite = exact;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatAIJTCCUSPARSEGetSpMMCount - How many products with dense matrices did our kernels compute, and which was the last?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameters:
+ products - products of this process, those of both blocks of a parallel matrix, pass `NULL` if not needed
- kernel   - name of the last kernel, `NULL` if there is none, pass `NULL` if not needed; valid until the matrix changes

  Level: intermediate

  Note:
  What is left to the parent type does not count. The count is zero for a matrix that is not of type `MATAIJTCCUSPARSE`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetCounters()`, `MatAIJTCCUSPARSESetSpMM()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetSpMMCount(Mat A, PetscInt64 *products, const char *kernel[])
{
  Mat         blocks[2];
  PetscInt    num;
  PetscInt64  sum  = 0;
  const char *name = NULL;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = num - 1; i >= 0; i--) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGet(blocks[i], &tc));
    if (!tc) continue;
    sum += tc->dense.retired;
    if (!tc->dense.spmm) continue;
    sum += tc_spmm_count(tc->dense.spmm);
    if (tc_spmm_last(tc->dense.spmm)) name = tc_spmm_last(tc->dense.spmm)->name;
  }
  if (products) *products = sum;
  if (kernel) *kernel = name;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One line if there were such products, or none because they were declined. Numbers are sums over all processes, words those of the first. */
PetscErrorCode MatTCViewProducts(Mat A, PetscViewer viewer)
{
  Mat               blocks[2];
  PetscInt          num;
  PetscInt64        sum[2] = {0, 0}; /* products, declined */
  const MatTCDense *words  = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = num - 1; i >= 0; i--) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGet(blocks[i], &tc));
    if (!tc) continue;
    if (tc->dense.side.declined) sum[1]++;
    if (tc->dense.side.declined || (tc->dense.spmm && tc_spmm_last(tc->dense.spmm))) words = &tc->dense;
  }
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, &sum[0], NULL));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  if (sum[0] + sum[1] == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: %" PetscInt64_FMT " products", sum[0]));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  if (words && words->spmm && tc_spmm_last(words->spmm)) {
    PetscCall(PetscViewerASCIIPrintf(viewer, ", format %s, kernel %s (%s)", tc_spmm_last(words->spmm)->format, tc_spmm_last(words->spmm)->name, tc_spmm_why(words->spmm)));
  }
  if (sum[1]) PetscCall(PetscViewerASCIIPrintf(viewer, "; %" PetscInt64_FMT " of the local matrices left to the parent type%s%s", sum[1], words && words->side.declined ? ": " : "", words && words->side.declined ? words->side.reason : ""));
  PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
