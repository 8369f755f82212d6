/*
  Making an object of a parent type one of ours, and back. Every operation here calls the parent's and then repairs what the parent has undone.
*/
#include "aijtccusparseimpl.h"

/* Installs our operations on an object that the parent has just made or rebuilt, with the settings of the object it comes from, unless it was ours and is made use of again */
PetscErrorCode MatTCInstallLike(Mat A, MatReuse reuse, Mat B)
{
  Mat_AIJTCCUSPARSE *tc, *own;
  PetscBool          ours;

  PetscFunctionBegin;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours)); /* PETSc may have turned A into a plain object in place, leaving some of our operations */
  if (A != B && !ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCContextGet(B, &own));
  PetscCall(MatTCInstall(B, tc && !(own && reuse == MAT_REUSE_MATRIX) ? &tc->settings : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's operation for A; an error if it has none */
PetscErrorCode MatTCGetParentOp(Mat A, MatOperation op, PetscErrorCodeFn **f)
{
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCParentOp(A, parent, op, f));
  PetscCheck(*f, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "Type %s has no operation %d", parent->type, (int)op);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What PETSc (3.26.1) duplicates of a bound vector has the functions of one that is bound and does not know that it is: what parallel matrices do with such ghosts gets lost. They are not
  bound in the meantime, then. Collective.
*/
static PetscErrorCode MatTCUnbind(Mat A, PetscBool *bound)
{
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatBoundToCPU(A, bound));
  if (!parent->mpi || !parent->cuda) *bound = PETSC_FALSE;
  if (*bound) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatDuplicate() hands our function that shows a matrix on to the copy, and with it what else shows A, a DM's function, say. MatConvert() calls us as well and does neither that nor
  gives the copy the DM, so until then the copy shows itself as the parent's do.
*/
static PetscErrorCode MatDuplicate_AIJTCCUSPARSE(Mat A, MatDuplicateOption option, Mat *B)
{
  Mat_AIJTCCUSPARSE *tc, *copy;
  PetscErrorCodeFn  *f;
  PetscBool          bound, propagates;

  PetscFunctionBegin;
  PetscCall(MatTCUnbind(A, &bound));
  PetscCall(MatTCGetParentOp(A, MATOP_DUPLICATE, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, MatDuplicateOption, Mat *))f)(A, option, B));
  if (bound) {
    PetscCall(MatBindToCPU(A, PETSC_TRUE));
    PetscCall(MatGetBindingPropagates(A, &propagates));
    if (propagates) PetscCall(MatBindToCPU(*B, PETSC_TRUE));
  }
  PetscCall(MatTCInstallLike(A, MAT_INITIAL_MATRIX, *B));
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCContextGet(*B, &copy));
  if (tc && tc->view && copy) {
    PetscCall(MatSetOperation(*B, MATOP_VIEW, copy->parent->ops[0][MATOP_VIEW]));
    copy->view = tc->view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* While a matrix is bound, the parent changes the values of the host without telling that those of the GPU are older (PETSc 3.26.1, MatScale() and others) */
static PetscErrorCode MatBindToCPU_AIJTCCUSPARSE(Mat A, PetscBool bind)
{
  PetscErrorCodeFn *f;
  Mat               blocks[2];
  PetscInt          num;

  PetscFunctionBegin;
  PetscCall(MatTCGetParentOp(A, MATOP_BIND_TO_CPU, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscBool))f)(A, bind));
  if (!bind) {
    PetscCall(MatTCGetBlocks(A, &num, blocks));
    for (PetscInt i = 0; i < num; i++) MatTCHostIsNewer(blocks[i]);
  }
  PetscCall(MatTCInstallLike(A, MAT_REUSE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_AIJTCCUSPARSE(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  PetscErrorCodeFn *f;
  PetscBool         bound;

  PetscFunctionBegin;
  PetscCall(MatTCUnbind(A, &bound));
  PetscCall(MatTCGetParentOp(A, MATOP_ZERO_ROWS_COLUMNS, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec))f)(A, n, rows, diagonal, x, b));
  if (bound) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whoever solves with the block, before there is a product, has ours */
static PetscErrorCode MatGetDiagonalBlock_AIJTCCUSPARSE(Mat A, Mat *block)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *f;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc) PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCGetParentOp(A, MATOP_GET_DIAGONAL_BLOCK, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, Mat *))f)(A, block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_AIJTCCUSPARSE(Mat A, MatAssemblyType type)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *f;

  PetscFunctionBegin;
  PetscCall(MatTCGetParentOp(A, MATOP_ASSEMBLY_END, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, MatAssemblyType))f)(A, type));
  PetscCall(MatTCContextGet(A, &tc));
  if (tc) PetscCall(MatTCInstallView(A, tc));
  if (tc) PetscCall(MatTCInstallAXPY(A, tc->parent, (PetscBool)(type == MAT_FINAL_ASSEMBLY))); /* it is assembled when we are back */
  if (tc && tc->parent->mpi && type == MAT_FINAL_ASSEMBLY) PetscCall(MatTCMoveBlocks(A, tc->parent));
  if (!tc || !tc->settings.eager || type != MAT_FINAL_ASSEMBLY) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->parent->mpi) {
    Mat      blocks[2];
    PetscInt num;

    PetscCall(MatTCEnsureBlocks(A, tc));
    PetscCall(MatTCGetBlocks(A, &num, blocks));
    for (PetscInt i = 0; i < num; i++) {
      PetscCall(MatTCContextGet(blocks[i], &tc));
      if (tc) PetscCall(MatTCPrepare(blocks[i], tc)); /* blocks of other types are not ours */
    }
  } else PetscCall(MatTCPrepare(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What we replace, on parallel matrices, too, and even where the parent has no such operation
*/
static const struct {
  MatOperation      op;
  PetscErrorCodeFn *f;
  PetscBool         mpi, always;
} overrides[] = {
  {MATOP_MULT,                  (PetscErrorCodeFn *)MatMult_AIJTCCUSPARSE,                PETSC_TRUE,  PETSC_FALSE},
  {MATOP_MULT_ADD,              (PetscErrorCodeFn *)MatMultAdd_AIJTCCUSPARSE,             PETSC_TRUE,  PETSC_FALSE},
  {MATOP_MULT_TRANSPOSE,        (PetscErrorCodeFn *)MatMultTranspose_AIJTCCUSPARSE,       PETSC_TRUE,  PETSC_FALSE},
  {MATOP_MULT_TRANSPOSE_ADD,    (PetscErrorCodeFn *)MatMultTransposeAdd_AIJTCCUSPARSE,    PETSC_TRUE,  PETSC_FALSE},
  {MATOP_RESIDUAL,              (PetscErrorCodeFn *)MatResidual_AIJTCCUSPARSE,            PETSC_TRUE,  PETSC_TRUE },
  {MATOP_GET_DIAGONAL,          (PetscErrorCodeFn *)MatGetDiagonal_AIJTCCUSPARSE,         PETSC_TRUE,  PETSC_FALSE},
  {MATOP_SHIFT,                 (PetscErrorCodeFn *)MatShift_AIJTCCUSPARSE,               PETSC_TRUE,  PETSC_FALSE},
  {MATOP_DIAGONAL_SET,          (PetscErrorCodeFn *)MatDiagonalSet_AIJTCCUSPARSE,         PETSC_TRUE,  PETSC_FALSE},
  {MATOP_GET_DIAGONAL_BLOCK,    (PetscErrorCodeFn *)MatGetDiagonalBlock_AIJTCCUSPARSE,    PETSC_TRUE,  PETSC_FALSE},
  {MATOP_ASSEMBLY_END,          (PetscErrorCodeFn *)MatAssemblyEnd_AIJTCCUSPARSE,         PETSC_TRUE,  PETSC_FALSE},
  {MATOP_DUPLICATE,             (PetscErrorCodeFn *)MatDuplicate_AIJTCCUSPARSE,           PETSC_TRUE,  PETSC_FALSE},
  {MATOP_CREATE_SUBMATRICES,    (PetscErrorCodeFn *)MatCreateSubMatrices_AIJTCCUSPARSE,   PETSC_TRUE,  PETSC_FALSE},
  {MATOP_CREATE_SUBMATRIX,      (PetscErrorCodeFn *)MatCreateSubMatrix_AIJTCCUSPARSE,     PETSC_TRUE,  PETSC_FALSE},
  {MATOP_TRANSPOSE,             (PetscErrorCodeFn *)MatTranspose_AIJTCCUSPARSE,           PETSC_TRUE,  PETSC_FALSE},
  {MATOP_CONVERT_FROM,          (PetscErrorCodeFn *)MatConvertFrom_AIJTCCUSPARSE,         PETSC_TRUE,  PETSC_TRUE },
  {MATOP_SET_FROM_OPTIONS,      (PetscErrorCodeFn *)MatSetFromOptions_AIJTCCUSPARSE,      PETSC_TRUE,  PETSC_TRUE },
  {MATOP_ZERO_ROWS_COLUMNS,     (PetscErrorCodeFn *)MatZeroRowsColumns_AIJTCCUSPARSE,     PETSC_TRUE,  PETSC_FALSE},
  {MATOP_SOR,                   (PetscErrorCodeFn *)MatSOR_AIJTCCUSPARSE,                 PETSC_TRUE,  PETSC_FALSE},
  {MATOP_LOAD,                  (PetscErrorCodeFn *)MatLoad_AIJTCCUSPARSE,                PETSC_FALSE, PETSC_FALSE},
  {MATOP_ELIMINATE_ZEROS,       (PetscErrorCodeFn *)MatEliminateZeros_AIJTCCUSPARSE,      PETSC_TRUE,  PETSC_FALSE},
  {MATOP_NORM,                  (PetscErrorCodeFn *)MatNorm_AIJTCCUSPARSE,                PETSC_TRUE,  PETSC_FALSE},
  {MATOP_BIND_TO_CPU,           (PetscErrorCodeFn *)MatBindToCPU_AIJTCCUSPARSE,           PETSC_TRUE,  PETSC_FALSE},
  {MATOP_INVERT_BLOCK_DIAGONAL, (PetscErrorCodeFn *)MatInvertBlockDiagonal_AIJTCCUSPARSE, PETSC_TRUE,  PETSC_FALSE},
};

/*
  Installs or repairs. Objects that are not of a parent type, factors, and objects with a way of their own to be destroyed are left alone. New contexts get the
  given settings or, for NULL, those of the options database; existing contexts keep theirs for NULL.
*/
PetscErrorCode MatTCInstall(Mat A, const MatTCSettings *settings)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  MatFactorType      factor;
  PetscErrorCodeFn  *destroy;
  PetscBool          assembled;
  MatTCSettings      from_options;

  PetscFunctionBegin;
  PetscCall(MatTCParentFind(A, &parent));
  if (!parent) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetFactorType(A, &factor));
  PetscCall(MatGetOperation(A, MATOP_DESTROY, &destroy));
  if (factor != MAT_FACTOR_NONE || (destroy != parent->ops[0][MATOP_DESTROY] && destroy != (PetscErrorCodeFn *)parent->destroy)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(A, &tc));
  if (!tc) {
    PetscCall(MatTCContextCreate(A, &tc));
    if (!settings) {
      PetscCall(MatTCSettingsFromDatabase(A, &from_options));
      settings = &from_options;
    }
    tc->settings = *settings;
  } else {
    if (tc->parent != parent) PetscCall(MatTCContextReset(tc));
    if (settings) PetscCall(MatTCSetSettings(tc, settings));
  }
  tc->parent = parent;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(overrides); i++) {
    if ((parent->mpi && !overrides[i].mpi) || (!parent->ops[0][overrides[i].op] && !overrides[i].always)) continue;
    PetscCall(MatSetOperation(A, overrides[i].op, overrides[i].f));
  }
  if (!PetscDefined(USE_COMPLEX) && *MatTCHermitianTransposeAddSlot(A)) *MatTCHermitianTransposeAddSlot(A) = (PetscErrorCodeFn *)MatMultTransposeAdd_AIJTCCUSPARSE;
  *MatTCCreateGraphSlot(A) = MatCreateGraph_AIJTCCUSPARSE;
  if (parent->create_submatrices_mpi) *MatTCCreateSubMatricesMPISlot(A) = MatCreateSubMatricesMPI_AIJTCCUSPARSE;
  PetscCall(MatAssembled(A, &assembled));
  PetscCall(MatTCInstallAXPY(A, parent, assembled));
  PetscCall(MatTCInstallSparseProducts(A, parent));
  PetscCall(MatTCInstallView(A, tc));
  PetscCall(MatSetOperation(A, MATOP_DESTROY, (PetscErrorCodeFn *)parent->destroy));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C", MatStoreValues_AIJTCCUSPARSE));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C", MatRetrieveValues_AIJTCCUSPARSE));
  PetscCall(MatTCComposeCOO(A, parent, MATTC_COMPOSE_OURS));
  PetscCall(MatTCComposeProducts(A, parent, MATTC_COMPOSE_OURS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Back to a plain object of the parent type */
PetscErrorCode MatTCUninstall(Mat A)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscBool          bound;

  PetscFunctionBegin;
  PetscCall(MatTCParentFind(A, &parent));
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCUninstallSparseProducts(A, parent));
  PetscCall(MatSetOperation(A, MATOP_VIEW, tc->view ? tc->view : parent->ops[0][MATOP_VIEW]));
  PetscCall(MatTCContextRemove(A));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(overrides); i++) {
    PetscErrorCodeFn *f;

    if (parent->mpi && !overrides[i].mpi) continue;
    PetscCall(MatTCParentOp(A, parent, overrides[i].op, &f));
    PetscCall(MatSetOperation(A, overrides[i].op, f));
  }
  PetscCall(MatBoundToCPU(A, &bound));
  *MatTCHermitianTransposeAddSlot(A) = parent->hermitian_transpose_add[parent->cuda && bound];
  *MatTCCreateGraphSlot(A)           = parent->create_graph;
  *MatTCCreateSubMatricesMPISlot(A)  = parent->create_submatrices_mpi;
  PetscCall(MatSetOperation(A, MATOP_DESTROY, parent->ops[0][MATOP_DESTROY]));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C", parent->store_values));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C", parent->retrieve_values));
  PetscCall(MatTCComposeCOO(A, parent, MATTC_COMPOSE_PARENT));
  PetscCall(MatTCComposeProducts(A, parent, MATTC_COMPOSE_PARENT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In MatHeaderMerge() the object has neither lists nor type_name when this is called */
PetscErrorCode MatTCDestroy(Mat A, const MatTCParent *parent)
{
  PetscFunctionBegin;
  PetscCall(MatTCContextRemove(A));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C", NULL));
  PetscCall(MatTCComposeProducts(A, parent, MATTC_COMPOSE_NOTHING));
  PetscCall(MatTCRemoveSparseProducts(A, parent));
  PetscCall((*(PetscErrorCode (*)(Mat))parent->ops[0][MATOP_DESTROY])(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has PETSc a function that converts A to the parent on the host, and none for that on the GPU? Then it would multiply with the columns of the identity there, go through entries row by row, or refuse */
static PetscErrorCode MatTCConvertsByHost(Mat A, const MatTCParent *parent, const MatTCParent *host, PetscBool *by_host)
{
  const char *const types[] = {parent->type, host->type, MATAIJ};
  PetscBool         aij, has[PETSC_STATIC_ARRAY_LENGTH(types)];

  PetscFunctionBegin;
  *by_host = PETSC_FALSE;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, host->type, &aij));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(types); i++) {
    char name[256];
    PetscErrorCode (*f)(Mat, MatType, MatReuse, Mat *);

    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s_C", ((PetscObject)A)->type_name, types[i]));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
    has[i] = (PetscBool)(f != NULL);
  }
  *by_host = (PetscBool)(parent->cuda && !aij && !has[0] && (has[1] || has[2]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the parent type, from another one */
static PetscErrorCode MatTCConvertToParent(Mat A, const MatTCParent *parent, MatReuse reuse, Mat *B)
{
  const MatTCParent *host;
  Mat                C;
  PetscBool          by_host;

  PetscFunctionBegin;
  PetscCall(MatTCParentGet(parent->mpi, PETSC_FALSE, &host));
  PetscCall(MatTCConvertsByHost(A, parent, host, &by_host));
  if (!by_host) PetscCall(MatConvert(A, parent->type, reuse, B));
  else if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatConvert(A, host->type, MAT_INITIAL_MATRIX, &C));
    PetscCall(MatConvert(C, parent->type, MAT_INPLACE_MATRIX, &C));
    PetscCall(MatCopy(C, *B, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&C));
  } else {
    PetscCall(MatConvert(A, host->type, reuse, B));
    PetscCall(MatConvert(*B, parent->type, MAT_INPLACE_MATRIX, B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Conversion into our type, found on a fresh matrix of it. The source may be anything that converts to the parent type.
*/
PetscErrorCode MatConvertFrom_AIJTCCUSPARSE(Mat A, MatType newtype, MatReuse reuse, Mat *B)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  MatTCSettings      settings;
  PetscBool          cuda, mpi, seq, same;
  PetscMPIInt        size;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc) settings = tc->settings;
  else PetscCall(MatTCSettingsFromDatabase(A, &settings));
  PetscCall(MatTCChooseBackend(A, &cuda));
  PetscCall(MatTCPropagateFrom(A, cuda));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(PetscStrbeginswith(newtype, "mpi", &mpi));
  PetscCall(PetscStrbeginswith(newtype, "seq", &seq));
  if (!mpi && !seq) PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, "mpi", &mpi)); /* on one process a parallel matrix stays one */
  PetscCall(MatTCParentGet((PetscBool)(mpi || (!seq && size > 1)), cuda, &parent));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, parent->type, &same));
  if (!same) PetscCall(MatTCConvertToParent(A, parent, reuse, B));
  else if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  else if (reuse == MAT_REUSE_MATRIX) PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
  PetscCall(MatTCContextGet(*B, &tc));
  PetscCall(MatTCInstall(*B, tc && reuse == MAT_REUSE_MATRIX ? NULL : &settings));
  PetscCall(MatTCContextGet(*B, &tc));
  PetscCall(MatTCWarmUp(*B, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCCreate(Mat A, PetscBool mpi)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscBool          cuda;

  PetscFunctionBegin;
  PetscCall(MatTCChooseBackend(A, &cuda));
  PetscCall(MatTCParentGet(mpi, cuda, &parent));
  PetscCall(MatTCPropagateFrom(A, cuda));
  PetscCall((*parent->create)(A));
  PetscCall(MatTCInstall(A, NULL));
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCWarmUp(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqAIJTCCUSPARSE(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatTCCreate(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_MPIAIJTCCUSPARSE(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatTCCreate(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
