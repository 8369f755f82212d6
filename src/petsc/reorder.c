/*
  The order of the rows in what is packed for products with dense blocks: which is asked for, and the order itself, which is one of PETSc's.
*/
#include "aijtccusparseimpl.h"

/*@
  MatAIJTCCUSPARSESetSpMMReorder - Selects in which order the rows of the matrix are packed for products with dense matrices

  Logically Collective; `reorder` must contain common value

  Input Parameters:
+ A       - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- reorder - `MAT_AIJTCCUSPARSE_REORDER_NONE` or `MAT_AIJTCCUSPARSE_REORDER_RCM`

  Options Database Key:
. -mat_aijtccusparse_spmm_reorder (none|rcm) - order of the rows, default `none`

  Level: intermediate

  Notes:
  Takes effect at the next product, which packs the matrix anew.

  For matrices whose numbering tears neighbours apart. The packed BitTCF format takes eight rows together, and a product reads fewer rows of the dense matrix where those
  eight have their columns in common. With `MAT_AIJTCCUSPARSE_REORDER_RCM` rows meet in the order that `MatGetOrdering()` gives for `MATORDERINGRCM`. Only what is
  packed is in that order\: the matrix, both dense matrices, and the bits of the result stay what they are.

  The order is computed on the host, once for each new pattern that is packed, which may take as long as thousands of products. It is for local matrices with as many rows as columns\:
  of a parallel matrix only the diagonal block is reordered. With `MAT_AIJTCCUSPARSE_SPMM_AUTO`, products of 32 columns and more then use BitTCF as soon as packing pays, whatever
  natural order would speak for; the time that the order itself takes is not counted.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEReorder`, `MatAIJTCCUSPARSESetSpMM()`, `MatGetOrdering()`, `MATORDERINGRCM`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSpMMReorder(Mat A, MatAIJTCCUSPARSEReorder reorder)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, reorder, 2);
  PetscCall(MatTCCheckChoice(A, (int)reorder, MatAIJTCCUSPARSEReorders));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.reorder = reorder;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCOrderRows(Mat A, MatOrderingType type, PetscInt m, int32_t **row_order)
{
  IS              rows, cols;
  const PetscInt *row;

  PetscFunctionBegin;
  PetscCall(MatGetOrdering(A, type, &rows, &cols));
  PetscCall(PetscMalloc1(m, row_order));
  PetscCall(ISGetIndices(rows, &row));
  for (PetscInt i = 0; i < m; i++) (*row_order)[i] = (int32_t)row[i];
  PetscCall(ISRestoreIndices(rows, &row));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The row in each place, for what that side is about to pack; NULL for natural order. Free it with PetscFree(). */
PetscErrorCode MatTCGetRowOrder(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSide *side, int32_t **row_order)
{
  /* in the order of MatAIJTCCUSPARSEReorder */
  static const MatOrderingType types[] = {MATORDERINGNATURAL, MATORDERINGRCM};
  PetscBool                    tiles   = PETSC_FALSE;
  PetscInt                     m, n;
  PetscLogDouble               begin, end;

  PetscFunctionBegin;
  *row_order      = NULL;
  side->reordered = MAT_AIJTCCUSPARSE_REORDER_NONE;
  if (tc->settings.reorder == MAT_AIJTCCUSPARSE_REORDER_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  if (side == &tc->dense.packed) PetscCall(PetscStrcmp(side->format, "bittcf", &tiles));
  if (!tiles) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (m != n) {
    PetscCall(PetscInfo(A, "aijtccusparse packs the rows in natural order: there is no order %s for %" PetscInt_FMT " local rows and %" PetscInt_FMT " columns\n", MatAIJTCCUSPARSEReorders[tc->settings.reorder], m, n));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscTime(&begin));
  PetscCall(MatTCOrderRows(A, types[tc->settings.reorder], m, row_order));
  PetscCall(PetscTime(&end));
  side->reordered = tc->settings.reorder;
  PetscCall(PetscInfo(A, "aijtccusparse reordered %" PetscInt_FMT " rows for products with dense blocks (%s) in %.1f ms\n", m, MatAIJTCCUSPARSEReorders[side->reordered], 1000 * (end - begin)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
