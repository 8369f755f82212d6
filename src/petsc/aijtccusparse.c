/*
  The public functions, but for those of the precision (precision.c), of products with dense matrices (product_view.c, reorder.c), of exchanges (peers.c), of factors (factor.c) and sweeps (sor.c), and for what a matrix keeps on the GPU (pattern.c).
*/
#include "aijtccusparseimpl.h"

/*MC
   MATAIJTCCUSPARSE - "aijtccusparse" - Sparse matrices in compressed row storage whose products with vectors use packed formats, on NVIDIA GPUs or, with the same
   results bit for bit, on the host

   Options Database Keys:
+  -mat_type aijtccusparse                             - sets the type in `MatSetFromOptions()`
.  -mat_aijtccusparse_backend (auto|cuda|host)         - where products run; read when the type is set
.  -mat_aijtccusparse_spmv (auto|dasp|hybrid|cusparse) - what multiplies, see `MatAIJTCCUSPARSESetSpMV()`
.  -mat_aijtccusparse_arithmetic (auto|mma|fma)        - units of the GPU, see `MatAIJTCCUSPARSESetArithmetic()`
.  -mat_aijtccusparse_precision (fp64|fp32|tf32|bf16|fp16) - of products with vectors and dense matrices, see `MatAIJTCCUSPARSESetPrecision()`
.  -mat_aijtccusparse_eager (true|false)               - pack the pattern at assembly, see `MatAIJTCCUSPARSESetEager()`
.  -mat_aijtccusparse_defer (true|false)               - multiply straight from CSR until packing pays, see `MatAIJTCCUSPARSESetDefer()`
.  -mat_aijtccusparse_keep_csr (true|false)            - have the CSR arrays on the GPU, too, see `MatAIJTCCUSPARSESetKeepCSR()`
.  -mat_aijtccusparse_host_factors (true|false)        - factors of a matrix on the GPU are the host's where that is faster, see `MatAIJTCCUSPARSESetHostFactors()`
.  -mat_aijtccusparse_sor (auto|device|host)           - where sweeps of `MatSOR()` are done, see `MatAIJTCCUSPARSESetSOR()`
.  -mat_aijtccusparse_spmm (auto|bittcf|cluster|slice|tca|cusparse|sparse24) - what multiplies with dense matrices, see `MatAIJTCCUSPARSESetSpMM()`
.  -mat_aijtccusparse_spmm_exact_nonfinite (true|false) - see `MatAIJTCCUSPARSESetSpMMExactNonfinite()`
.  -mat_aijtccusparse_spmm_reorder (none|rcm)          - order of the packed rows in products with dense matrices, see `MatAIJTCCUSPARSESetSpMMReorder()`
.  -mat_aijtccusparse_exchange (auto|peer|petscsf)     - what takes elements of vectors and dense blocks to other processes, see `MatAIJTCCUSPARSESetExchange()`
.  -mat_aijtccusparse_propagate (true|false)           - derived matrices get the type too, see `MatAIJTCCUSPARSESetPropagate()`
-  -mat_aijtccusparse_huge_pages (true|false)          - memory of the process asks for huge pages, see `MatAIJTCCUSPARSESetHugePages()`

   Level: beginner

   Notes:
   The matrix is of type `MATAIJCUSPARSE`, where a GPU serves it, or `MATAIJ`; only some of its operations are replaced, and `MatGetType()` returns the parent's
   name. All other operations, assembly above all, are the parent's.

   The packed storage is built once that pays (`MatAIJTCCUSPARSESetDefer()`) and follows the matrix: new values in the old pattern are gathered again, a new pattern is packed anew. What
   was chosen and how often it was rebuilt is shown by `MatView()` with `PETSC_VIEWER_ASCII_INFO`, and so by `-ksp_view`.

   Whatever the packed format does not support is left to the parent's operations with a line of `-info`.

.seealso: [](ch_matrices), `Mat`, `MATAIJ`, `MATAIJCUSPARSE`, `MatIsAIJTCCUSPARSE()`, `MatAIJTCCUSPARSEGetCounters()`, `MatAIJTCCUSPARSERestoreParent()`
M*/

/*@
  MatIsAIJTCCUSPARSE - Is the matrix of type `MATAIJTCCUSPARSE`?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameter:
. flg - `PETSC_TRUE` if it is

  Level: beginner

  Note:
  `MatGetType()` and `PetscObjectTypeCompare()` cannot tell, they see the parent type.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetBackend()`
@*/
PetscErrorCode MatIsAIJTCCUSPARSE(Mat A, PetscBool *flg)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *mult;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(flg, 2);
  *flg = PETSC_FALSE;
  PetscCall(MatGetOperation(A, MATOP_MULT, &mult));
  if (mult != (PetscErrorCodeFn *)MatMult_AIJTCCUSPARSE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(A, &tc));
  *flg = (PetscBool)(tc != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The context of a matrix of our type, NULL for others */
PetscErrorCode MatTCContextGetIfOurs(Mat A, Mat_AIJTCCUSPARSE **tc)
{
  PetscBool ours;

  PetscFunctionBegin;
  *tc = NULL;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  if (ours) PetscCall(MatTCContextGet(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEGetBackend - Where are the products of the matrix computed?

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTCCUSPARSE`

  Output Parameter:
. backend - `MAT_AIJTCCUSPARSE_BACKEND_CUDA` or `MAT_AIJTCCUSPARSE_BACKEND_HOST`

  Options Database Key:
. -mat_aijtccusparse_backend (auto|cuda|host) - chooses, when the type of the matrix is set

  Level: intermediate

  Note:
  A matrix on the GPU that is bound to the CPU with `MatBindToCPU()` uses the host backend as long as it is. A matrix of another type is an error, `PETSC_ERR_ARG_WRONG`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEBackend`, `MatIsAIJTCCUSPARSE()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetBackend(Mat A, MatAIJTCCUSPARSEBackend *backend)
{
  Mat_AIJTCCUSPARSE *tc;
  const tc_backend  *current;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscAssertPointer(backend, 2);
  PetscCheck(tc, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "The matrix, %s%s, is not of type %s", ((PetscObject)A)->type_name ? "of type " : "without a type", ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "", MATAIJTCCUSPARSE);
  PetscCall(MatTCCurrentBackend(A, tc->parent, &current));
  *backend = current == tc_backend_host() ? MAT_AIJTCCUSPARSE_BACKEND_HOST : MAT_AIJTCCUSPARSE_BACKEND_CUDA;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums over the local blocks that are ours */
static PetscErrorCode MatTCSumCounters(Mat A, MatTCSideId side, PetscInt64 *hits, PetscInt64 *refills, PetscInt64 *rebuilds)
{
  Mat         blocks[2];
  PetscInt    num;
  tc_counters sum = {0, 0, 0};

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    Mat_AIJTCCUSPARSE *tc;
    tc_counters        counters;

    PetscCall(MatTCContextGetIfOurs(blocks[i], &tc));
    if (!tc) continue;
    MatTCGetCounters(&tc->side[side], &counters);
    sum.hits += counters.hits;
    sum.refills += counters.refills;
    sum.rebuilds += counters.rebuilds;
  }
  if (hits) *hits = sum.hits;
  if (refills) *refills = sum.refills;
  if (rebuilds) *rebuilds = sum.rebuilds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEGetCounters - How often was the packed storage used as it was, refilled with new values, and built anew?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameters:
+ hits     - products that found the storage current, pass `NULL` if not needed
. refills  - gatherings of new values into the old pattern, pass `NULL` if not needed
- rebuilds - packings of a new pattern with its values, pass `NULL` if not needed

  Level: intermediate

  Notes:
  For a parallel matrix the sums over the two blocks of this process. `MatView()` shows the sums over all processes.

  All counts are zero for a matrix that is not of type `MATAIJTCCUSPARSE`.

  Products with the transpose have counts of their own, see `MatAIJTCCUSPARSEGetTransposeCounters()`. Products straight from CSR, those before packing pays, are in neither, see `MatAIJTCCUSPARSEGetStraightProducts()`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetStraightProducts()`, `MatAIJTCCUSPARSEInvalidate()`, `MatAIJTCCUSPARSESetEager()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetCounters(Mat A, PetscInt64 *hits, PetscInt64 *refills, PetscInt64 *rebuilds)
{
  PetscFunctionBegin;
  PetscCall(MatTCSumCounters(A, MATTC_FORWARD, hits, refills, rebuilds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEGetTransposeCounters - How often was the packed transpose used as it was, refilled with new values, and built anew?

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameters:
+ hits     - transposed products that found the storage current, pass `NULL` if not needed
. refills  - gatherings of new values into the old pattern, pass `NULL` if not needed
- rebuilds - packings of a new pattern with its values, pass `NULL` if not needed

  Level: intermediate

  Note:
  On a GPU the transpose is packed at the first `MatMultTranspose()` or `MatMultTransposeAdd()`, on the host once that pays. Otherwise as `MatAIJTCCUSPARSEGetCounters()`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetCounters()`
@*/
PetscErrorCode MatAIJTCCUSPARSEGetTransposeCounters(Mat A, PetscInt64 *hits, PetscInt64 *refills, PetscInt64 *rebuilds)
{
  PetscFunctionBegin;
  PetscCall(MatTCSumCounters(A, MATTC_TRANSPOSE, hits, refills, rebuilds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetSpMV - Selects what multiplies the matrix with vectors

  Logically Collective; `spmv` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- spmv - `MAT_AIJTCCUSPARSE_SPMV_AUTO`, `MAT_AIJTCCUSPARSE_SPMV_DASP`, `MAT_AIJTCCUSPARSE_SPMV_HYBRID`, or `MAT_AIJTCCUSPARSE_SPMV_CUSPARSE`, of which `MAT_AIJTCCUSPARSE_SPMV_PARENT` is another name

  Options Database Key:
. -mat_aijtccusparse_spmv (auto|dasp|hybrid|cusparse) - what multiplies, default `auto`; `parent` is another name of `cusparse`

  Level: intermediate

  Notes:
  Takes effect at the next product.

  With `auto` on a GPU `MatMult()`, or `MatMultAdd()` in place where most products were that, with a pattern whose columns take more than 2 bytes per entry, and with its lists of rows more than 2.5, is timed
  against that of cuSPARSE when its products, 32 at least, must have taken that as long as the measurement may, 8 ms, and cuSPARSE does the following ones, `MatMultAdd()` and `MatResidual()` too, if it is faster by more than the noise of the measurement, 1% at most. The bits are then its own, the products are not counted, and `MatView()` says so. All choices but cuSPARSE give the same bits.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESpMV`, `MatAIJTCCUSPARSESetArithmetic()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSpMV(Mat A, MatAIJTCCUSPARSESpMV spmv)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, spmv, 2);
  PetscCall(MatTCCheckChoice(A, (int)spmv, MatAIJTCCUSPARSESpMVs));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.spmv = spmv;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetArithmetic - Selects the units of the GPU that multiply the matrix with vectors

  Logically Collective; `arithmetic` must contain common value

  Input Parameters:
+ A          - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- arithmetic - `MAT_AIJTCCUSPARSE_ARITHMETIC_AUTO`, `MAT_AIJTCCUSPARSE_ARITHMETIC_MMA`, or `MAT_AIJTCCUSPARSE_ARITHMETIC_FMA`

  Options Database Key:
. -mat_aijtccusparse_arithmetic (auto|mma|fma) - units of the GPU, default `auto`

  Level: advanced

  Notes:
  Takes effect at the next product. The results are the same bit for bit; the host backend ignores the choice.

  Where the GPU lacks the units asked for, products are left to the parent type.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEArithmetic`, `MatAIJTCCUSPARSESetSpMV()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetArithmetic(Mat A, MatAIJTCCUSPARSEArithmetic arithmetic)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, arithmetic, 2);
  PetscCall(MatTCCheckChoice(A, (int)arithmetic, MatAIJTCCUSPARSEArithmetics));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.arithmetic = arithmetic;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetEager - Packs the pattern when the matrix is assembled, not at a product

  Logically Collective; `eager` must contain common value

  Input Parameters:
+ A     - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- eager - `PETSC_TRUE` to pack at assembly

  Options Database Key:
. -mat_aijtccusparse_eager (true|false) - pack the pattern at assembly, default `false`

  Level: intermediate

  Note:
  The values, which may still change between assembly and product, are gathered at the product, which counts as the rebuild.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetCounters()`, `MatAssemblyEnd()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetEager(Mat A, PetscBool eager)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscValidLogicalCollectiveBool(A, eager, 2);
  if (tc) tc->settings.eager = eager;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetPropagate - Do matrices that PETSc derives from a matrix of type `MATAIJTCCUSPARSE` on the GPU get its type too?

  Logically Collective on `PETSC_COMM_WORLD`; `propagate` must contain common value

  Input Parameter:
. propagate - `PETSC_FALSE` to leave derived matrices plain `MATAIJCUSPARSE`

  Options Database Key:
. -mat_aijtccusparse_propagate (true|false) - propagate the type, default `true`

  Level: advanced

  Notes:
  Derived matrices are coarse operators of `PCGAMG`, sparse products, and the like, which PETSc creates by the name of the parent type. Once a matrix of type
  `MATAIJTCCUSPARSE` on the GPU has been created on a communicator as large as `PETSC_COMM_WORLD`, the name stands for our type in the whole program, so that
  matrices created as `MATAIJCUSPARSE` become ours as well. `PETSC_FALSE` gives the name back to PETSc at once.

  Without a GPU nothing is propagated: the parent type is then `MATAIJ`.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatRegister()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetPropagate(PetscBool propagate)
{
  PetscFunctionBegin;
  PetscCall(MatTCSetPropagation(propagate));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSEInvalidate - Tells that the values of the matrix have changed in a way that PETSc does not know of

  Not Collective

  Input Parameter:
. A - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`

  Level: advanced

  Notes:
  Needed after writing into arrays that were given to `MatCreateSeqAIJWithArrays()`, kept from a getter after they were restored, or multiplied between `MatSeqAIJGetArrayWrite()`, which
  is when PETSc takes note, and the writing, if neither `MatAssemblyEnd()` nor `PetscObjectStateIncrease()` follows. The next product gathers the values again.

  A matrix that was left to the parent type because of an earlier failure is tried again.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetCounters()`
@*/
PetscErrorCode MatAIJTCCUSPARSEInvalidate(Mat A)
{
  Mat      blocks[2];
  PetscInt num;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    Mat_AIJTCCUSPARSE *tc;

    PetscCall(MatTCContextGetIfOurs(blocks[i], &tc));
    if (!tc) continue;
    tc->generation++;
    for (int s = 0; s < MATTC_NUM_SIDES; s++) tc->side[s].declined = PETSC_FALSE;
    tc->dense.side.declined = tc->dense.packed.declined = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSERestoreParent - Turns a matrix of type `MATAIJTCCUSPARSE` into a plain matrix of its parent type, in place

  Logically Collective

  Input Parameter:
. A - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`

  Level: intermediate

  Notes:
  `MatConvert()` to the parent type does nothing in place, since the type name is the parent's already, and a copy that it makes is of type `MATAIJTCCUSPARSE`, too.

  A matrix that was not preallocated has to be assembled first, also once more after `MatResetHash()`; else it is an error, `PETSC_ERR_ARG_WRONGSTATE`, and the matrix stays as it is.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatConvert()`, `MatAIJTCCUSPARSESetSpMV()`
@*/
PetscErrorCode MatAIJTCCUSPARSERestoreParent(Mat A)
{
  Mat       parts[3];
  PetscInt  num;
  PetscBool is_ours;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatIsAIJTCCUSPARSE(A, &is_ours));
  PetscCheck(!is_ours || !A->hash_active, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "Entries of the matrix, of type %s, wait for their assembly; assemble it before it becomes one of its parent type", MATAIJTCCUSPARSE);
  PetscCall(MatTCGetBlocks(A, &num, parts));
  if (num == 0 || parts[0] != A) parts[num++] = A;
  for (PetscInt i = 0; i < num; i++) {
    PetscBool ours;

    PetscCall(MatIsAIJTCCUSPARSE(parts[i], &ours));
    if (ours) PetscCall(MatTCUninstall(parts[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCCUSPARSESetTrials(Mat A, PetscBool lose)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCheck(tc && !tc->parent->mpi, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The matrix, of type %s, is not sequential and of type %s", ((PetscObject)A)->type_name, MATAIJTCCUSPARSE);
  tc->early_trials = PETSC_TRUE;
  tc->lose_trials  = lose;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat A, tc_fault_point point, int n, int *left)
{
  Mat_AIJTCCUSPARSE *tc;
  const tc_backend  *backend;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCheck(tc, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "The matrix, of type %s, is not of type %s", ((PetscObject)A)->type_name, MATAIJTCCUSPARSE);
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  *left = backend->fault_arm(point, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}
