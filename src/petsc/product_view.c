/*
  Products with dense blocks: the public functions, and the line of MatView().
*/
#include "aijtccusparseimpl.h"

/*@
  MatAIJTCCUSPARSESetSpMM - Selects what multiplies the matrix with dense matrices

  Logically Collective; `spmm` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- spmm - `MAT_AIJTCCUSPARSE_SPMM_AUTO`, `MAT_AIJTCCUSPARSE_SPMM_BITTCF`, `MAT_AIJTCCUSPARSE_SPMM_CLUSTER`, `MAT_AIJTCCUSPARSE_SPMM_SLICE`,
         `MAT_AIJTCCUSPARSE_SPMM_TCA`, `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE`, or `MAT_AIJTCCUSPARSE_SPMM_SPARSE24`

  Options Database Key:
. -mat_aijtccusparse_spmm (auto|bittcf|cluster|slice|tca|cusparse|sparse24) - what multiplies, default `auto`

  Level: intermediate

  Notes:
  Takes effect at the next product, and of a product that was the parent's when `MatProductSetFromOptions()` was called for it, which `MatMatMult()` does, when that is called again. Of a parallel matrix
  `MatTransposeMatMult()` is never the parent's, which would not look at new values. On the host the parent's `MatTransposeMatMult()` and `MatMatTransposeMult()` of a sequential matrix are computed anew
  at each product, since they keep the matrix that they have first. The host backend ignores the choice, but for `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE`, for
  `MAT_AIJTCCUSPARSE_SPMM_BITTCF` and `MAT_AIJTCCUSPARSE_SPMM_CLUSTER` in a precision other than `fp64`, and for `MAT_AIJTCCUSPARSE_SPMM_SPARSE24` in `bf16` and `fp16`. On a GPU `MAT_AIJTCCUSPARSE_SPMM_SLICE` is
  for `fp64` only, and `MAT_AIJTCCUSPARSE_SPMM_SPARSE24` for `bf16` and `fp16`, see `MatAIJTCCUSPARSESetPrecision()`.

  `MAT_AIJTCCUSPARSE_SPMM_SPARSE24` is never chosen by `MAT_AIJTCCUSPARSE_SPMM_AUTO`. Its format is packed where the products are, and again
  after each change of the pattern\: on the host about 0.1 s for 4 million entries. It pays for many products with matrices of dense or 2:4 sparse blocks.

  `MAT_AIJTCCUSPARSE_SPMM_AUTO` multiplies straight from CSR until what a packed format would have saved by then is what packing it takes, at once where a single product
  saves that much or the format is there already. The bits of the result are the same before and after. `-info` tells when it packs, `MatView()` what it waits for.

  Where there is no kernel for what is asked for, products are left to the parent type.

  In `fp64` a dense matrix of one column is multiplied as a vector, by `MatMult()` or `MatMultTranspose()`, whatever the choice but
  `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESpMM`, `MatAIJTCCUSPARSESetSpMMExactNonfinite()`, `MatMatMult()`, `MatProductSetFromOptions()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSpMM(Mat A, MatAIJTCCUSPARSESpMM spmm)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, spmm, 2);
  PetscCall(MatTCCheckChoice(A, (int)spmm, MatAIJTCCUSPARSESpMMs));
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
  spoil any of the eight rows of the result, sixteen with `MAT_AIJTCCUSPARSE_SPMM_SPARSE24`, whose tile has that column. With finite numbers there is no difference.

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
  What is left to the parent type does not count, a dense matrix of one column does, though it is multiplied as a vector. The count is zero for a matrix that is not of type `MATAIJTCCUSPARSE`.

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
    if (tc->dense.column) name = tc->dense.column;
    if (!tc->dense.spmm) continue;
    sum += tc_spmm_count(tc->dense.spmm);
    if (!tc->dense.column && tc_spmm_last(tc->dense.spmm)) name = tc_spmm_last(tc->dense.spmm)->name;
  }
  if (products) *products = sum;
  if (kernel) *kernel = name;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What adds up over blocks and processes */
typedef enum {
  SUM_PRODUCTS,
  SUM_HITS, /* and the two below: of what is packed for such products only */
  SUM_REFILLS,
  SUM_REBUILDS,
  SUM_DECLINED,
  NUM_SUMS
} Sum;

/* Lines if there were such products, or none because they were declined. Numbers are sums over all processes, words those of the first. */
PetscErrorCode MatTCViewProducts(Mat A, PetscViewer viewer)
{
  Mat               blocks[2];
  PetscInt          num;
  PetscInt64        sum[NUM_SUMS] = {0};
  const MatTCDense *words         = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = num - 1; i >= 0; i--) {
    Mat_AIJTCCUSPARSE *tc;
    tc_counters        counters;

    PetscCall(MatTCContextGet(blocks[i], &tc));
    if (!tc) continue;
    MatTCGetCounters(&tc->dense.packed, &counters);
    sum[SUM_HITS] += counters.hits;
    sum[SUM_REFILLS] += counters.refills;
    sum[SUM_REBUILDS] += counters.rebuilds;
    if (tc->dense.side.declined) sum[SUM_DECLINED]++;
    if (tc->dense.side.declined || tc->dense.column || (tc->dense.spmm && tc_spmm_last(tc->dense.spmm))) words = &tc->dense;
  }
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, &sum[SUM_PRODUCTS], NULL));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, NUM_SUMS, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  if (sum[SUM_PRODUCTS] + sum[SUM_DECLINED] == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: %" PetscInt64_FMT " products\n", sum[SUM_PRODUCTS]));
  if (words && words->spmm && tc_spmm_last(words->spmm)) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: format %s in %s, kernel %s (%s), %.1f MB of memory of its own\n", tc_spmm_last(words->spmm)->format, tc_precision_name(tc_spmm_last(words->spmm)->precision), tc_spmm_last(words->spmm)->name, tc_spmm_why(words->spmm), (double)tc_spmm_bytes(words->spmm) / 1000000.0));
  }
  if (words && words->column) PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: the last of a single column, multiplied as a vector, kernel %s\n", words->column));
  if (words && words->packed.plan && words->packed.reordered) PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: rows reordered (%s)\n", MatAIJTCCUSPARSEReorders[words->packed.reordered]));
  if (sum[SUM_HITS] + sum[SUM_REFILLS] + sum[SUM_REBUILDS] > 0) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: hits %" PetscInt64_FMT ", refills %" PetscInt64_FMT ", rebuilds %" PetscInt64_FMT "\n", sum[SUM_HITS], sum[SUM_REFILLS], sum[SUM_REBUILDS]));
  }
  if (sum[SUM_DECLINED]) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  dense blocks: %" PetscInt64_FMT " of the local matrices left to the parent type%s%s\n", sum[SUM_DECLINED], words && words->side.declined ? ": " : "", words && words->side.declined ? words->side.reason : ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
