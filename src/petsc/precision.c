/*
  The precision of the packed entries, for programs: set, and asked for.
*/
#include "aijtccusparseimpl.h"

/*@
  MatAIJTCCUSPARSESetPrecision - Selects the precision of products of the matrix with vectors and with dense matrices

  Logically Collective; `precision` must contain common value

  Input Parameters:
+ A         - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- precision - `MAT_AIJTCCUSPARSE_PRECISION_FP64`, `MAT_AIJTCCUSPARSE_PRECISION_FP32`, `MAT_AIJTCCUSPARSE_PRECISION_TF32`, `MAT_AIJTCCUSPARSE_PRECISION_BF16`, or `MAT_AIJTCCUSPARSE_PRECISION_FP16`

  Options Database Key:
. -mat_aijtccusparse_precision (fp64|fp32|tf32|bf16|fp16) - precision of products, default `fp64`

  Level: intermediate

  Notes:
  Takes effect at the next product, which packs the matrix anew.

  The entries are rounded to nearest in what is packed for `MatMult()`, `MatMultAdd()`, `MatResidual()` and their transposes, which goes on following the values of
  the matrix. These stay as they are, as do vectors, sums and everything else that is done with the matrix\: products with sparse matrices, factorizations,
  diagonals. What rounding costs is at most $u |A| |x|$, row by row, with $u = 2^{-24}$ for `fp32` and `tf32`, $2^{-8}$ for `bf16`, and
  $2^{-11}$ for `fp16`, where entries smaller than $2^{-28}$ times the largest of their row may each be off by $2^{-39}$ times that.

  `MatMatMult()` with a dense matrix B rounds both, and adds in single precision; A and B stay what they are, the result is in double precision. In `tf32`, `bf16` and
  `fp16` tensor cores multiply, in `fp32` they take three products for one. With n entries in a row, m = min(n, 256), with `MAT_AIJTCCUSPARSE_SPMM_SPARSE24` min(n, 1024), an element is off by
  $2 u + 3 m 2^{-23}$ times $|A| |B|$, to first order, with $u = 2^{-11}$ for `tf32` and `fp16`, $2^{-8}$ for `bf16`, and by $2^{-20} + 9 m 2^{-23}$ for `fp32`; what is
  much smaller than the largest of its row of A or column of B is rounded to fewer digits. The bound in full is in docs/formats.md. GPU and host keep
  it both, with different bits. The kernels straight from CSR, `MAT_AIJTCCUSPARSE_SPMM_TCA`, round B alone and add in double precision, with the same bits on both; they are what
  `MatAIJTCCUSPARSESetSpMMExactNonfinite()` leaves. Where `MatAIJTCCUSPARSESetSpMM()` asks for a kernel that there is in `fp64` only, products are left to the parent type.
  `MatTransposeMatMult()` and `MatMatTransposeMult()` are in `fp64` always.

  Rounding makes a product cheaper, not a solution accurate\: it is meant for the matrix that a preconditioner is built from, which may be a copy, see
  `KSPSetOperators()`. Copies and submatrices have the precision of the matrix they come from; other matrices that PETSc derives have not.

  Products with vectors need the packed format `hybrid`\: with `-mat_aijtccusparse_spmv` `dasp` or `cusparse`, they are left to the parent type. They are never timed against it.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEPrecision`, `MatAIJTCCUSPARSEGetPrecision()`, `MatAIJTCCUSPARSESetSpMV()`, `MatAIJTCCUSPARSESetSpMM()`, `MatMatMult()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetPrecision(Mat A, MatAIJTCCUSPARSEPrecision precision)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, precision, 2);
  PetscCall(MatTCCheckChoice(A, (int)precision, MatAIJTCCUSPARSEPrecisions));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.precision = precision;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEGetPrecision - In which precision are products of the matrix with vectors and dense matrices?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameter:
. precision - what was asked for; `MAT_AIJTCCUSPARSE_PRECISION_FP64` for a matrix that is not of type `MATAIJTCCUSPARSE`

  Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEPrecision`, `MatAIJTCCUSPARSESetPrecision()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetPrecision(Mat A, MatAIJTCCUSPARSEPrecision *precision)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscAssertPointer(precision, 2);
  *precision = tc ? tc->settings.precision : MAT_AIJTCCUSPARSE_PRECISION_FP64;
  PetscFunctionReturn(PETSC_SUCCESS);
}
