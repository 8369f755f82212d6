#include "mat_ops.h"
#include <petsc/private/matimpl.h> /* where the newest values are, which no public function tells */
#include <stdlib.h>
#include <string.h>

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetTrials(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

PetscErrorCode CreatePair(const char generator[], PetscInt size, Mat *ours, Mat *plain)
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

/* Bytes per entry of the hybrid format, by the view; 0 < block_size: set */
static PetscErrorCode BytesPerEntry(const char generator[], PetscInt size, PetscInt block_size, double *bytes)
{
  static const char before[] = "slots and ";
  Mat               ours, plain;
  PetscBool         same;
  char             *text;
  const char       *at;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(generator, size, &ours, &plain));
  if (block_size > 0) PetscCall(MatSetBlockSizes(ours, block_size, block_size));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, MAT_AIJTCCUSPARSE_SPMV_HYBRID));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestViewText(ours, PETSC_VIEWER_ASCII_INFO_DETAIL, &text));
  at     = text ? strstr(text, before) : NULL;
  *bytes = same && at ? atof(at + sizeof(before) - 1) : 0;
  free(text);
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nodes whose size nobody has set are found, and make columns as small as if it had been; rows that only look like them in part are none */
static PetscErrorCode CheckNodes(void)
{
  PetscMPIInt comm_size;
  double      unset, set, smaller;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &comm_size));
  if (comm_size > 1) {
    PetscCall(MatTestSkip("nodes: where a process has whole ones"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(BytesPerEntry("elasticity", 8, 0, &unset));
  PetscCall(BytesPerEntry("elasticity", 8, 3, &set));
  PetscCall(BytesPerEntry("elasticity", 8, 2, &smaller));
  PetscCall(MatTestFact((PetscBool)(unset > 0 && unset == set && smaller > set), "nodes of three rows: %g bytes per entry if found, %g if set, %g if taken for nodes of two", unset, set, smaller));
  PetscCall(BytesPerEntry("stencil7", 12, 0, &unset));
  PetscCall(BytesPerEntry("stencil7", 12, 3, &set));
  PetscCall(MatTestFact((PetscBool)(unset > 0 && unset < set), "nodes that there are not: %g bytes per entry, %g if taken for some", unset, set));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  On a GPU the 32nd product of an irregular pattern, or residual, is timed against cuSPARSE's unless a format was asked for, where a trial need not be paid for first, and as a sum in place where most were
  that; whatever wins, products stay right
*/
static PetscErrorCode CheckTrial(const char generator[], PetscInt size, const char what[], PetscErrorCode (*Product)(Mat, Mat, PetscBool *), PetscBool asked, PetscBool irregular)
{
  enum {
    PRODUCTS = 40
  };
  const PetscBool in_place = (PetscBool)(Product == MatTestSameResidual);
  Mat             ours, plain, block;
  PetscBool       cuda, same, all = PETSC_TRUE, early, later, timed, tight, modelled, again;

  PetscFunctionBeginUser;
  PetscCall(CreatePair(generator, size, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, asked ? MAT_AIJTCCUSPARSE_SPMV_HYBRID : MAT_AIJTCCUSPARSE_SPMV_AUTO));
  for (int i = 0; i < PRODUCTS; i++) {
    PetscCall((*Product)(ours, plain, &same));
    if (!same) all = PETSC_FALSE;
  }
  PetscCall(MatTestViewHas(ours, "  timed after ", &early));
  PetscCall(MatTestViewHas(ours, "will be timed against cuSPARSE", &later));
  PetscCall(MatTestFact((PetscBool)(!early && later == (PetscBool)(cuda && !asked && irregular)), "%s, %d %s, which take less than a trial, %s: %s%s", generator, PRODUCTS, what, asked ? "format asked for" : "automatic", early ? "TIMED" : "not timed", later ? ", later it is" : ""));
  PetscCall(MatTestBlock(ours, &block));
  PetscCall(MatAIJTCCUSPARSESetTrials(block, PETSC_FALSE));
  for (int i = 0; i < (in_place ? PRODUCTS : 1); i++) { /* sums in place of so small a matrix have not counted so far */
    PetscCall((*Product)(ours, plain, &same));
    if (!same) all = PETSC_FALSE;
  }
  PetscCall(MatTestViewHas(ours, in_place ? " products, MatMultAdd() in place: " : " products, MatMult(): ", &timed));
  PetscCall(MatTestViewHas(ours, "not timed against cuSPARSE", &tight));
  PetscCall(MatTestViewHas(ours, "by a model of the device, not measured", &modelled));
  PetscCall(MatScale(ours, -2.0));
  PetscCall(MatScale(plain, -2.0));
  PetscCall(MatTestSameProduct(ours, plain, &same));
  PetscCall(MatTestSameResidual(ours, plain, &again));
  PetscCall(MatTestFact((PetscBool)(all && same && again && timed == (PetscBool)(cuda && !asked && irregular) && tight == (PetscBool)(cuda && !asked && !irregular) && modelled == (PetscBool)(cuda && !timed)), "%s, %d %s, %s: %s, then with new values %s; %s, %s", generator, PRODUCTS, what, asked ? "format asked for" : "automatic", all ? "right" : "WRONG",
                        same && again ? "right" : "WRONG", timed ? "timed" : tight ? "not timed, as the view says" : "not timed", modelled ? "times by a model" : "no model"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product, and residuals of both kinds */
static PetscErrorCode SameProductAndResiduals(Mat ours, Mat plain, PetscBool *same)
{
  PetscBool product, residual, apart;

  PetscFunctionBeginUser;
  PetscCall(MatTestSameProduct(ours, plain, &product));
  PetscCall(MatTestSameResidual(ours, plain, &residual));
  PetscCall(MatTestSameResidualApart(ours, plain, &apart));
  *same = (PetscBool)(product && residual && apart);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  As if cuSPARSE had been faster on the first process, and ours on the others: products and residuals of both kinds are right, and nobody waits for another; also with new values, where a call of cuSPARSE
  fails, so that the parent multiplies from then on, and with a new pattern, which is ours again
*/
static PetscErrorCode CheckLostTrial(void)
{
  enum {
    PRODUCTS = 40,
    AFTER    = 3
  };
  Mat         ours, plain, block;
  PetscBool   cuda, same, lost, values, failed, pattern, ours_again, product = PETSC_TRUE, residual = PETSC_TRUE;
  PetscMPIInt rank;
  PetscInt    row, end;
  int         left = 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(CreatePair("rmat", 8, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, MAT_AIJTCCUSPARSE_SPMV_AUTO));
  PetscCall(MatTestSameProduct(ours, plain, &same)); /* blocks are of our type from the first product on */
  PetscCall(MatTestBlock(ours, &block));
  PetscCall(MatAIJTCCUSPARSESetTrials(block, (PetscBool)(rank == 0)));
  for (int i = 0; i < PRODUCTS; i++) {
    PetscCall(MatTestSameProduct(ours, plain, &same));
    if (!same) product = PETSC_FALSE;
  }
  for (int i = 0; i < AFTER; i++) {
    PetscCall(SameProductAndResiduals(ours, plain, &same));
    if (!same) residual = PETSC_FALSE;
  }
  PetscCall(MatTestViewHas(ours, "left to cuSPARSE, which was faster", &lost));
  PetscCall(MatTestFact((PetscBool)(product && residual && lost == cuda), "rmat, %s: products %s, residuals %s", lost ? "a trial that the first process loses" : "no trial", product ? "right" : "WRONG", residual ? "right" : "WRONG"));
  PetscCall(MatScale(ours, -3.0));
  PetscCall(MatScale(plain, -3.0));
  PetscCall(SameProductAndResiduals(ours, plain, &values));
  if (rank == 0) PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 1, &left));
  PetscCall(SameProductAndResiduals(ours, plain, &failed));
  if (rank == 0) PetscCall(MatAIJTCCUSPARSEArmFault(block, TC_FAULT_LAUNCH, 0, &left));
  for (int i = 0; i < AFTER; i++) {
    PetscCall(SameProductAndResiduals(ours, plain, &same));
    if (!same) failed = PETSC_FALSE;
  }
  PetscCall(MatTestFact((PetscBool)(values && failed && left == 0), "rmat, what is left to cuSPARSE: with new values %s, where a product fails %s", values ? "right" : "WRONG", failed && left == 0 ? "right" : "WRONG"));
  for (int m = 0; m < 2; m++) {
    const Mat A = m ? plain : ours;

    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(A, &row, &end));
    for (PetscInt j = row; j < end; j++) PetscCall(MatSetValue(A, row, j, 4.5, ADD_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(SameProductAndResiduals(ours, plain, &pattern));
  PetscCall(MatTestViewHas(ours, "left to cuSPARSE, which was faster", &ours_again));
  PetscCall(MatTestFact((PetscBool)(pattern && !ours_again), "rmat, a new pattern after a trial that was lost: %s, %s", pattern ? "right" : "WRONG", ours_again ? "STILL CUSPARSE'S" : "ours"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is made use of again keeps the settings it has been given since it was made: a submatrix, and the result of a conversion */
static PetscErrorCode CheckSettingsStay(void)
{
  Mat                       ours, plain, part, converted;
  IS                        rows;
  PetscInt                  first, end;
  PetscBool                 fresh;
  MatAIJTCCUSPARSEPrecision precision[3];

  PetscFunctionBeginUser;
  PetscCall(CreatePair("stencil7", 6, &ours, &plain));
  PetscCall(MatAIJTCCUSPARSESetPrecision(ours, MAT_AIJTCCUSPARSE_PRECISION_BF16));
  PetscCall(MatGetOwnershipRange(ours, &first, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - first + 1) / 2, first, 2, &rows));
  PetscCall(MatCreateSubMatrix(ours, rows, rows, MAT_INITIAL_MATRIX, &part));
  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, &converted));
  PetscCall(MatAIJTCCUSPARSEGetPrecision(part, &precision[0]));
  fresh = (PetscBool)(precision[0] == MAT_AIJTCCUSPARSE_PRECISION_BF16);
  PetscCall(MatAIJTCCUSPARSESetPrecision(part, MAT_AIJTCCUSPARSE_PRECISION_FP32));
  PetscCall(MatAIJTCCUSPARSESetPrecision(converted, MAT_AIJTCCUSPARSE_PRECISION_FP32));
  PetscCall(MatCreateSubMatrix(ours, rows, rows, MAT_REUSE_MATRIX, &part));
  PetscCall(MatConvert(plain, MATAIJTCCUSPARSE, MAT_REUSE_MATRIX, &converted));
  PetscCall(MatAIJTCCUSPARSEGetPrecision(ours, &precision[0]));
  PetscCall(MatAIJTCCUSPARSEGetPrecision(part, &precision[1]));
  PetscCall(MatAIJTCCUSPARSEGetPrecision(converted, &precision[2]));
  PetscCall(MatTestFact((PetscBool)(fresh && precision[0] == MAT_AIJTCCUSPARSE_PRECISION_BF16 && precision[1] == MAT_AIJTCCUSPARSE_PRECISION_FP32 && precision[2] == MAT_AIJTCCUSPARSE_PRECISION_FP32),
                        "a submatrix of one in bf16 is in %s, set to fp32 and made use of again in %s, a converted matrix in %s", fresh ? "bf16" : "ANOTHER PRECISION", MatAIJTCCUSPARSEPrecisions[precision[1]], MatAIJTCCUSPARSEPrecisions[precision[2]]));
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&part));
  PetscCall(MatDestroy(&converted));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the newest values of all blocks of the host alone? */
static PetscErrorCode IsHostsAlone(Mat A, PetscBool *alone)
{
  PetscMPIInt size;
  Mat         blocks[2] = {A, NULL};

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  *alone = PETSC_TRUE;
#if PetscDefined(HAVE_DEVICE)
  for (int b = 0; b < 2; b++) {
    if (blocks[b] && blocks[b]->offloadmask != PETSC_OFFLOAD_CPU) *alone = PETSC_FALSE;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A B and A^T B with a B of seven columns, by products with vectors */
static PetscErrorCode SameBlocks(Mat A, PetscBool cuda, PetscBool *same)
{
  const PetscInt N = 7;
  PetscInt       m, n;
  PetscBool      equal[2];
  Mat            B, C;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  for (int transpose = 0; transpose < 2; transpose++) {
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, transpose ? m : n, PETSC_DECIDE, PETSC_DETERMINE, N, NULL, &B));
    if (cuda) PetscCall(MatConvert(B, MATDENSECUDA, MAT_INPLACE_MATRIX, &B));
    PetscCall(MatSetRandom(B, NULL));
    PetscCall((transpose ? MatTransposeMatMult : MatMatMult)(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall((transpose ? MatTransposeMatMultEqual : MatMatMultEqual)(A, B, C, 3, &equal[transpose]));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  *same = (PetscBool)(equal[0] && equal[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameDiagonal(Mat A, Mat B, PetscBool *same)
{
  Vec diagonal[2];

  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(MatCreateVecs(A, NULL, &diagonal[i]));
    PetscCall(MatGetDiagonal(i ? B : A, diagonal[i]));
  }
  PetscCall(VecEqual(diagonal[0], diagonal[1], same));
  for (int i = 0; i < 2; i++) PetscCall(VecDestroy(&diagonal[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_aijtccusparse_keep_csr false: products of all kinds, with new values and a new pattern, without what the parent keeps on the device; where it is there, it is used */
static PetscErrorCode CheckKeepCSR(void)
{
  enum {
    FIRST,
    VALUES,
    PATTERN,
    SCALED, /* by the parent, on the device */
    KEPT,
    NUM_STEPS
  };
  Mat       ours, plain;
  PetscBool cuda, same[5], alone[NUM_STEPS], right = PETSC_TRUE, told = PETSC_TRUE;
  PetscInt  row, end;

  PetscFunctionBeginUser;
  PetscCall(CreatePair("rmat", 8, &ours, &plain));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_keep_csr", "false"));
  PetscCall(MatSetFromOptions(ours));
  PetscCall(MatAIJTCCUSPARSESetSpMV(ours, MAT_AIJTCCUSPARSE_SPMV_AUTO)); /* with another format A^T B is the parent's */
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtccusparse_keep_csr"));
  for (int step = FIRST; step < NUM_STEPS; step++) {
    if (step == KEPT) PetscCall(MatAIJTCCUSPARSESetKeepCSR(ours, PETSC_TRUE));
    for (int m = 0; m < 2; m++) {
      const Mat A = m ? plain : ours;

      if (step == SCALED) PetscCall(MatScale(A, 2.0));
      if (step == FIRST || step == SCALED) continue;
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatGetOwnershipRange(A, &row, &end));
      if (row < end) PetscCall(MatSetValue(A, row, step == PATTERN ? 200 : row, 4.5, ADD_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatTestSameProduct(ours, plain, &same[0]));
    PetscCall(MatTestSameTransposeProduct(ours, plain, &same[1]));
    PetscCall(MatTestSameResidual(ours, plain, &same[2]));
    PetscCall(SameBlocks(ours, cuda, &same[3]));
    PetscCall(SameDiagonal(ours, plain, &same[4]));
    for (int s = 0; s < 5; s++) right = (PetscBool)(right && same[s]);
    PetscCall(IsHostsAlone(ours, &alone[step]));
  }
  if (cuda) told = (PetscBool)(alone[FIRST] && alone[VALUES] && alone[PATTERN] && !alone[SCALED] && !alone[KEPT]);
  PetscCall(MatTestFact((PetscBool)(right && told), "-mat_aijtccusparse_keep_csr false: products %s, the device %s of the parent's arrays until something asks for them", right ? "right" : "WRONG", told ? "has none" : "HAS SOME"));
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
  PetscCall(CheckNodes());
  PetscCall(CheckKeepCSR());
  PetscCall(CheckTrial("rmat", 8, "products", MatTestSameProduct, PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckTrial("rmat", 8, "residuals", MatTestSameResidualApart, PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckTrial("rmat", 8, "residuals in place", MatTestSameResidual, PETSC_FALSE, PETSC_TRUE));
  PetscCall(CheckTrial("rmat", 8, "products", MatTestSameProduct, PETSC_TRUE, PETSC_TRUE));
  PetscCall(CheckTrial("stencil7", 12, "products", MatTestSameProduct, PETSC_FALSE, PETSC_FALSE));
  PetscCall(CheckLostTrial());
  PetscCall(CheckSettingsStay());
  PetscFunctionReturn(PETSC_SUCCESS);
}
