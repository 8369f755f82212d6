#pragma once

#include <petscmat.h>

/* MANSEC = Mat */

/*
  Matrix types for MatSetType(), MatConvert() and -mat_type. The object keeps the type name of its parent, MATAIJCUSPARSE where a GPU serves it and MATAIJ
  elsewhere, so MatGetType() returns the parent's name; MatIsAIJTCCUSPARSE() tells the difference.
*/
#define MATAIJTCCUSPARSE    "aijtccusparse"
#define MATSEQAIJTCCUSPARSE "seqaijtccusparse"
#define MATMPIAIJTCCUSPARSE "mpiaijtccusparse"

/*MC
  MATSOLVERAIJTCCUSPARSE - "aijtccusparse": incomplete factors, ILU and ICC, of matrices of type `MATAIJTCCUSPARSE` that are computed, and solved with, on the GPU

  Options Database Key:
. -pc_factor_mat_solver_type aijtccusparse - asks for them by name, whether the host would be faster or not

  Level: beginner

  Notes:
  Who names no solver gets them where the host is not faster, see `MatAIJTCCUSPARSESetHostFactors()`. With levels of fill (`PCFactorSetLevels()`), in other orders than the natural one (`PCFactorSetMatOrderingType()`), and for
  ICC where the pattern is not symmetric, the pattern of the factor is found on the host, once for a pattern of the matrix, by `MATSOLVERPETSC`. A matrix without a full diagonal, a factor one of whose rows has more than 1024
  entries, a matrix that keeps no CSR arrays on the GPU or whose products are left to the parent type, is the parent's, `MATSOLVERCUSPARSE`, or the host's where that is faster; `PetscInfo()` and views of the factor say so. On
  the host the name means `MATSOLVERPETSC`.

  `MatSolve()` with ILU gives the bits of `MATSOLVERPETSC` without I-nodes, where PETSc is not compiled to fuse multiplications and additions. `MatSolveTranspose()`, and ICC, which takes the upper triangle of the matrix,
  add in another order; repeated, they give the same bits. Pivots are checked as `MatFactorInfo` says, `MAT_SHIFT_INBLOCKS`, which `PCILU` takes by default, included; if all of the diagonal has to be shifted, or a pivot is
  reported, the numbers are computed, and solved with, on the host, by `MATSOLVERPETSC`, until new values need that no more.

  Right-hand sides of a block, `MatMatSolve()` and `MatMatSolveTranspose()`, and so `PCMatApply()` and `KSPMatSolve()`, are solved for together, from three columns on, if there is memory for them twice, or for 32 of them;
  each column has the bits of a solve by itself. The blocks may be the same in `MatMatSolve()`. ICC has both halves of a solve, `MatForwardSolve()` and `MatBackwardSolve()`, which `KSPQCG` and other solvers with
  `PC_SYMMETRIC` ask for, if its pivots are positive.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatGetFactor()`, `MatMatSolve()`, `MATSOLVERPETSC`, `MATSOLVERCUSPARSE`, `PCFactorSetMatSolverType()`, `PCILU`, `PCICC`
M*/
#define MATSOLVERAIJTCCUSPARSE "aijtccusparse"

/*E
   MatAIJTCCUSPARSEBackend - Where the matrices of type `MATAIJTCCUSPARSE` are multiplied

   Values:
+  `MAT_AIJTCCUSPARSE_BACKEND_AUTO` - on the GPU if there is one, otherwise on the host
.  `MAT_AIJTCCUSPARSE_BACKEND_CUDA` - on the GPU; an error if that is not possible
-  `MAT_AIJTCCUSPARSE_BACKEND_HOST` - on the host, where our kernels in double precision give the same results bit for bit

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEGetBackend()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_BACKEND_AUTO,
  MAT_AIJTCCUSPARSE_BACKEND_CUDA,
  MAT_AIJTCCUSPARSE_BACKEND_HOST
} MatAIJTCCUSPARSEBackend;
PETSC_EXTERN const char *const MatAIJTCCUSPARSEBackends[];

/*E
   MatAIJTCCUSPARSESpMV - What multiplies a matrix of type `MATAIJTCCUSPARSE` with a vector

   Values:
+  `MAT_AIJTCCUSPARSE_SPMV_AUTO`     - chosen per matrix, on the GPU by measurement
.  `MAT_AIJTCCUSPARSE_SPMV_DASP`     - the packed DASP format
.  `MAT_AIJTCCUSPARSE_SPMV_HYBRID`   - the packed hybrid format
.  `MAT_AIJTCCUSPARSE_SPMV_CUSPARSE` - the operations of the parent type, which on the GPU are those of cuSPARSE
-  `MAT_AIJTCCUSPARSE_SPMV_PARENT`   - the same

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetSpMV()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_SPMV_AUTO,
  MAT_AIJTCCUSPARSE_SPMV_DASP,
  MAT_AIJTCCUSPARSE_SPMV_HYBRID,
  MAT_AIJTCCUSPARSE_SPMV_CUSPARSE,
  MAT_AIJTCCUSPARSE_SPMV_PARENT
} MatAIJTCCUSPARSESpMV;
PETSC_EXTERN const char *const MatAIJTCCUSPARSESpMVs[];

/*E
   MatAIJTCCUSPARSESpMM - What multiplies a matrix of type `MATAIJTCCUSPARSE` with a dense matrix

   Values:
+  `MAT_AIJTCCUSPARSE_SPMM_AUTO`     - chosen per matrix and number of columns
.  `MAT_AIJTCCUSPARSE_SPMM_BITTCF`   - the packed BitTCF format, tiles for tensor cores
.  `MAT_AIJTCCUSPARSE_SPMM_CLUSTER`  - the same, by groups of rows that share the rows of the dense matrix they need, where there are enough of those
.  `MAT_AIJTCCUSPARSE_SPMM_SLICE`    - the packed hybrid format of products with vectors
.  `MAT_AIJTCCUSPARSE_SPMM_TCA`      - straight from CSR, nothing is packed
.  `MAT_AIJTCCUSPARSE_SPMM_CUSPARSE` - the operations of the parent type, which on the GPU are those of cuSPARSE
-  `MAT_AIJTCCUSPARSE_SPMM_SPARSE24` - the packed BCSR format, tiles for tensor cores with 2:4 sparsity and without, in the precisions `bf16` and `fp16`

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetSpMM()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_SPMM_AUTO,
  MAT_AIJTCCUSPARSE_SPMM_BITTCF,
  MAT_AIJTCCUSPARSE_SPMM_CLUSTER,
  MAT_AIJTCCUSPARSE_SPMM_SLICE,
  MAT_AIJTCCUSPARSE_SPMM_TCA,
  MAT_AIJTCCUSPARSE_SPMM_CUSPARSE,
  MAT_AIJTCCUSPARSE_SPMM_SPARSE24
} MatAIJTCCUSPARSESpMM;
PETSC_EXTERN const char *const MatAIJTCCUSPARSESpMMs[];

/*E
   MatAIJTCCUSPARSEReorder - In which order the rows of a matrix of type `MATAIJTCCUSPARSE` are packed for products with a dense matrix; the results are the same bit for bit

   Values:
+  `MAT_AIJTCCUSPARSE_REORDER_NONE` - in natural order, or as the points of a grid are recognised to lie
-  `MAT_AIJTCCUSPARSE_REORDER_RCM`  - reverse Cuthill-McKee, by `MatGetOrdering()`

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetSpMMReorder()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_REORDER_NONE,
  MAT_AIJTCCUSPARSE_REORDER_RCM
} MatAIJTCCUSPARSEReorder;
PETSC_EXTERN const char *const MatAIJTCCUSPARSEReorders[];

/*E
   MatAIJTCCUSPARSEExchange - What takes elements of vectors, and rows of dense blocks, to the processes that multiply with them, in products of a parallel matrix of type `MATAIJTCCUSPARSE` on
   GPUs; the results are the same bit for bit, but for products of a vector with the transpose where three processes or more meet, which `PetscSF` adds on a GPU in any order

   Values:
+  `MAT_AIJTCCUSPARSE_EXCHANGE_AUTO`    - kernels, as with `MAT_AIJTCCUSPARSE_EXCHANGE_PEER`, after some products with a pattern, if no two processes of the matrix share a GPU
.  `MAT_AIJTCCUSPARSE_EXCHANGE_PEER`    - kernels that write into the memory of the other GPU, if all processes that exchange are on one machine and this can be; else `PetscSF`
-  `MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF` - `PetscSF`, as for `MATAIJCUSPARSE`

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetExchange()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_EXCHANGE_AUTO,
  MAT_AIJTCCUSPARSE_EXCHANGE_PEER,
  MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF
} MatAIJTCCUSPARSEExchange;
PETSC_EXTERN const char *const MatAIJTCCUSPARSEExchanges[];

/*E
   MatAIJTCCUSPARSESOR - Where the sweeps of `MatSOR()` with a matrix of type `MATAIJTCCUSPARSE` on the GPU are done

   Values:
+  `MAT_AIJTCCUSPARSE_SOR_AUTO`   - on the GPU where that is estimated to be faster
.  `MAT_AIJTCCUSPARSE_SOR_DEVICE` - on the GPU
-  `MAT_AIJTCCUSPARSE_SOR_HOST`   - on the host, by the parent type

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetSOR()`, `MatSOR()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_SOR_AUTO,
  MAT_AIJTCCUSPARSE_SOR_DEVICE,
  MAT_AIJTCCUSPARSE_SOR_HOST
} MatAIJTCCUSPARSESOR;
PETSC_EXTERN const char *const MatAIJTCCUSPARSESORs[];

/*E
   MatAIJTCCUSPARSEArithmetic - Which units of the GPU multiply a matrix of type `MATAIJTCCUSPARSE`; the results are the same bit for bit

   Values:
+  `MAT_AIJTCCUSPARSE_ARITHMETIC_AUTO` - chosen by device and matrix
.  `MAT_AIJTCCUSPARSE_ARITHMETIC_MMA`  - tensor cores
-  `MAT_AIJTCCUSPARSE_ARITHMETIC_FMA`  - scalar fused multiply-add

   Level: advanced

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetArithmetic()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_ARITHMETIC_AUTO,
  MAT_AIJTCCUSPARSE_ARITHMETIC_MMA,
  MAT_AIJTCCUSPARSE_ARITHMETIC_FMA
} MatAIJTCCUSPARSEArithmetic;
PETSC_EXTERN const char *const MatAIJTCCUSPARSEArithmetics[];

/*E
   MatAIJTCCUSPARSEPrecision - In which precision products of a matrix of type `MATAIJTCCUSPARSE` read its entries, and `MatMatMult()` those of the dense matrix

   Values:
+  `MAT_AIJTCCUSPARSE_PRECISION_FP64` - as they are
.  `MAT_AIJTCCUSPARSE_PRECISION_FP32` - rounded to 24 bits, in 4 bytes
.  `MAT_AIJTCCUSPARSE_PRECISION_TF32` - with vectors as `MAT_AIJTCCUSPARSE_PRECISION_FP32`, with dense matrices rounded to 11 bits
.  `MAT_AIJTCCUSPARSE_PRECISION_BF16` - rounded to 8 bits, in 2 bytes
-  `MAT_AIJTCCUSPARSE_PRECISION_FP16` - rounded to 11 bits, in 2 bytes; entries much smaller than the largest of their row to fewer

   Sums are in double precision with vectors and, with dense matrices, with `MAT_AIJTCCUSPARSE_PRECISION_FP64` and in products straight from CSR; tensor cores add what is rounded in single precision.

   Level: intermediate

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSESetPrecision()`
E*/
typedef enum {
  MAT_AIJTCCUSPARSE_PRECISION_FP64,
  MAT_AIJTCCUSPARSE_PRECISION_FP32,
  MAT_AIJTCCUSPARSE_PRECISION_TF32,
  MAT_AIJTCCUSPARSE_PRECISION_BF16,
  MAT_AIJTCCUSPARSE_PRECISION_FP16
} MatAIJTCCUSPARSEPrecision;
PETSC_EXTERN const char *const MatAIJTCCUSPARSEPrecisions[];

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEInitializePackage(void);
PETSC_EXTERN PetscErrorCode MatIsAIJTCCUSPARSE(Mat, PetscBool *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetBackend(Mat, MatAIJTCCUSPARSEBackend *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetCounters(Mat, PetscInt64 *, PetscInt64 *, PetscInt64 *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetStraightProducts(Mat, PetscInt64 *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetTransposeCounters(Mat, PetscInt64 *, PetscInt64 *, PetscInt64 *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetSpMV(Mat, MatAIJTCCUSPARSESpMV);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetArithmetic(Mat, MatAIJTCCUSPARSEArithmetic);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetPrecision(Mat, MatAIJTCCUSPARSEPrecision);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetPrecision(Mat, MatAIJTCCUSPARSEPrecision *);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetEager(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetDefer(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetKeepCSR(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetHostFactors(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetSOR(Mat, MatAIJTCCUSPARSESOR);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetSpMM(Mat, MatAIJTCCUSPARSESpMM);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetSpMMExactNonfinite(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetSpMMReorder(Mat, MatAIJTCCUSPARSEReorder);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetExchange(Mat, MatAIJTCCUSPARSEExchange);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEGetSpMMCount(Mat, PetscInt64 *, const char *[]);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetPropagate(PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetHugePages(PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEInvalidate(Mat);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSERestoreParent(Mat);
