/*
  Products of a parallel matrix with dense blocks, A B and A^T B, by products of its two local blocks and an exchange of rows (ghost_rows.c). The parent's are not used: PCMG lets it
  set up its exchange anew for every product, on the GPU for milliseconds each; its A B on the host has a loop of its own for the off-diagonal block; its A^T B copies the
  values of A once and does not look again. With the product only an option is kept, all else with the matrix.
*/
#include "ghosts.h"

/* C = A B or A^T B of a local block with local blocks: ours if it can be, else by MatProduct */
static PetscErrorCode MatTCLocalProduct(MatProductType type, Mat A, Mat B, Mat C)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscInt           inner, m, n;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatTCProductSizes(type, A, B, &inner, &m, &n));
  PetscCall(MatTCProductIsOurs(A, tc, type, n, &done));
  if (done) {
    const MatTCDenseArgs args = {.type = type, .B = B, .C = C, .inner = (int32_t)inner, .m = (int32_t)m, .n = (int32_t)n};

    PetscCall(MatTCDenseProduct(A, tc, &args, &done));
  }
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatProductClear(C));
  PetscCall(MatProductCreateWithMat(A, B, NULL, C));
  PetscCall(MatProductSetType(C, type));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(MatProductClear(C)); /* which keeps B */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of a parallel matrix: the parallel matrices, the blocks of A, and the local blocks of the dense ones */
typedef struct {
  Mat                A, B, C, diagonal, off_diagonal, local_b, local_c;
  Mat_AIJTCCUSPARSE *tc; /* NULL: A is not ours */
  MatTCExchange      exchange;
  PetscInt           num_ghosts, n, batch; /* columns, and of an exchange */
} MatTCParallel;

/* The blocks are made ours. Collective if the pattern is new */
static PetscErrorCode MatTCParallelBegin(MatProductType type, Mat C, MatTCParallel *P)
{
  PetscBool ours;

  PetscFunctionBegin;
  P->C = C;
  PetscCall(MatProductGetMats(C, &P->A, &P->B, NULL));
  PetscCall(MatIsAIJTCCUSPARSE(P->A, &ours)); /* MatProductReplaceMats() takes any matrix with the parent's type name */
  P->tc = NULL;
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(P->A, &P->tc));
  PetscCall(MatTCEnsureBlocks(P->A, P->tc));
  P->exchange.tc = P->tc;
  PetscCall(MatTCCurrentBackend(P->A, P->tc->parent, &P->exchange.backend));
  PetscCall(MatMPIAIJGetSeqAIJ(P->A, &P->diagonal, &P->off_diagonal, NULL));
  PetscCall(MatDenseGetLocalMatrix(P->B, &P->local_b));
  PetscCall(MatDenseGetLocalMatrix(C, &P->local_c));
  PetscCall(MatTCProductCheckSizes(type, P->A, P->local_b, P->local_c));
  PetscCall(MatGetSize(P->local_b, NULL, &P->n));
  PetscCall(MatGetSize(P->off_diagonal, NULL, &P->num_ghosts));
  PetscCall(MatTCGhostsGet(P->A, P->tc, &P->exchange.ghosts));
  PetscCall(MatTCGhostRowsSetUp(P->A, P->exchange.ghosts));
  P->batch = PetscMin(P->exchange.ghosts->rows.most_columns, PetscMax(P->n, 1));
  if (C->product->data) P->batch = PetscMin(P->batch, *(PetscInt *)C->product->data);
  PetscCall(MatTCPeersGetForBlocks(P->A, P->tc, P->B, P->batch, &P->exchange.peers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some columns of a local block, which is given itself if it has no others */
static PetscErrorCode MatTCColumnsGet(Mat block, PetscInt first, PetscInt n, Mat *part)
{
  PetscInt all;

  PetscFunctionBegin;
  PetscCall(MatGetSize(block, NULL, &all));
  *part = block;
  if (n < all) PetscCall(MatDenseGetSubMatrix(block, PETSC_DECIDE, PETSC_DECIDE, first, first + n, part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCColumnsRestore(Mat block, Mat *part)
{
  PetscFunctionBegin;
  if (*part != block) PetscCall(MatDenseRestoreSubMatrix(block, part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C += A B for the off-diagonal block by MatProduct; B [num_ghosts, n] by rows */
static PetscErrorCode MatTCAddGhostsByParent(const MatTCParallel *P, Vec rows, PetscInt n, Mat C)
{
  const PetscScalar *array;
  Mat                transposed, B, D;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(rows, &array));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, P->num_ghosts, (PetscScalar *)array, &transposed));
  PetscCall(MatTranspose(transposed, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatDestroy(&transposed));
  PetscCall(VecRestoreArrayRead(rows, &array));
  PetscCall(MatDuplicate(C, MAT_DO_NOT_COPY_VALUES, &D));
  PetscCall(MatTCLocalProduct(MATPRODUCT_AB, P->off_diagonal, B, D));
  PetscCall(MatAXPY(C, 1.0, D, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C += A B for the off-diagonal block and these columns. After a failure they are computed anew, as something may have been added. */
static PetscErrorCode MatTCAddGhosts(const MatTCParallel *P, Vec rows, PetscInt first, PetscInt n)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscInt           m;
  PetscMemType       type = PETSC_MEMTYPE_HOST;
  MatTCDenseArgs     args = {.type = MATPRODUCT_ABt, .inner = (int32_t)P->num_ghosts, .n = (int32_t)n};
  PetscBool          ours, done = PETSC_FALSE;
  Mat                B;

  PetscFunctionBegin;
  if (P->num_ghosts == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(P->off_diagonal, &m, NULL));
  PetscCall(MatTCContextGet(P->off_diagonal, &tc));
  PetscCall(MatTCProductIsOurs(P->off_diagonal, tc, MATPRODUCT_ABt, n, &ours));
  PetscCall(MatTCColumnsGet(P->local_c, first, n, &args.C));
  if (ours) {
    const tc_backend *backend; /* the block's own: it may be bound to the CPU where the parallel matrix is not */
    PetscBool         host;

    PetscCall(MatTCCurrentBackend(P->off_diagonal, tc->parent, &backend));
    host   = (PetscBool)(backend == tc_backend_host());
    args.m = (int32_t)m;
    PetscCall(host ? VecGetArrayRead(rows, &args.rows) : VecGetArrayReadAndMemType(rows, &args.rows, &type));
    args.rows_on_device = (PetscBool)PetscMemTypeDevice(type);
    PetscCall(MatTCDenseProduct(P->off_diagonal, tc, &args, &done));
    PetscCall(host ? VecRestoreArrayRead(rows, &args.rows) : VecRestoreArrayReadAndMemType(rows, &args.rows));
  }
  if (ours && !done) {
    PetscCall(MatTCColumnsGet(P->local_b, first, n, &B));
    PetscCall(MatTCLocalProduct(MATPRODUCT_AB, P->diagonal, B, args.C));
    PetscCall(MatTCColumnsRestore(P->local_b, &B));
  }
  if (!done) PetscCall(MatTCAddGhostsByParent(P, rows, n, args.C));
  PetscCall(MatTCColumnsRestore(P->local_c, &args.C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal block is multiplied while rows are on their way */
static PetscErrorCode MatProductNumeric_MPIAIJTCCUSPARSE_AB(Mat C)
{
  MatTCParallel P;
  Vec           rows;

  PetscFunctionBegin;
  PetscCall(MatTCParallelBegin(MATPRODUCT_AB, C, &P));
  if (!P.tc) {
    PetscCall(MatTCProductOfOperands(MATPRODUCT_AB, P.A, P.B, C, PETSC_FALSE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt first = 0; first < P.n; first += P.batch) {
    const PetscInt n = PetscMin(P.batch, P.n - first);

    PetscCall(MatTCGhostRowsBegin(&P.exchange, P.local_b, first, n));
    if (first == 0) PetscCall(MatTCLocalProduct(MATPRODUCT_AB, P.diagonal, P.local_b, P.local_c));
    PetscCall(MatTCGhostRowsEnd(&P.exchange, &rows));
    PetscCall(MatTCAddGhosts(&P, rows, first, n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What A^T B gives for the ghosts, a matrix of the type of the local block of B */
static PetscErrorCode MatTCReserveAtGhosts(const MatTCParallel *P)
{
  Mat      *W = &P->tc->at_ghosts;
  PetscInt  m = -1, n = -1;
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  if (*W) {
    PetscCall(MatGetSize(*W, &m, &n));
    PetscCall(PetscObjectTypeCompare((PetscObject)*W, ((PetscObject)P->local_b)->type_name, &same));
  }
  if (same && m == P->num_ghosts && n == P->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDestroy(W));
  PetscCall(MatCreate(PETSC_COMM_SELF, W));
  PetscCall(MatSetSizes(*W, P->num_ghosts, P->n, P->num_ghosts, P->n));
  PetscCall(MatSetType(*W, ((PetscObject)P->local_b)->type_name));
  PetscCall(MatSetUp(*W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* First what belongs to others, which is on its way while the diagonal block is multiplied */
static PetscErrorCode MatProductNumeric_MPIAIJTCCUSPARSE_AtB(Mat C)
{
  MatTCParallel P;

  PetscFunctionBegin;
  PetscCall(MatTCParallelBegin(MATPRODUCT_AtB, C, &P));
  if (!P.tc) {
    PetscCall(MatTCProductOfOperands(MATPRODUCT_AtB, P.A, P.B, C, PETSC_FALSE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (P.n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCReserveAtGhosts(&P));
  if (P.num_ghosts > 0) PetscCall(MatTCLocalProduct(MATPRODUCT_AtB, P.off_diagonal, P.local_b, P.tc->at_ghosts));
  for (PetscInt first = 0; first < P.n; first += P.batch) {
    const PetscInt n = PetscMin(P.batch, P.n - first);

    PetscCall(MatTCGhostRowsAddBegin(&P.exchange, P.tc->at_ghosts, first, n));
    if (first == 0) PetscCall(MatTCLocalProduct(MATPRODUCT_AtB, P.diagonal, P.local_b, P.local_c));
    PetscCall(MatTCGhostRowsAddEnd(&P.exchange, P.local_c, first, n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCBatchDestroy(MatTCProductData data)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(MatTCProductDataOf(data)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fewer columns at a time, for less memory: the option of PETSc's own products */
static PetscErrorCode MatTCBatchFromOptions(Mat C)
{
  PetscInt batch = 0;

  PetscFunctionBegin;
  PetscOptionsBegin(PetscObjectComm((PetscObject)C), ((PetscObject)C)->prefix, "Product of a parallel matrix with a dense one", "MatProduct");
  PetscCall(PetscOptionsDeprecated("-matmatmult_Bbn", "-matproduct_batch_size", "3.25", NULL));
  PetscCall(PetscOptionsBoundedInt("-matproduct_batch_size", "Columns of which rows are exchanged at a time, 0: as many as there are", "MatProduct", batch, &batch, NULL, 0));
  PetscOptionsEnd();
  if (batch == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(1, (PetscInt **)&C->product->data));
  *(PetscInt *)C->product->data = batch;
  C->product->destroy           = MatTCBatchDestroy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C is of the type of B, unless it is dense already */
static PetscErrorCode MatProductSymbolic_MPIAIJTCCUSPARSE(Mat C)
{
  MatProductType type;
  Mat            A, B;
  PetscInt       m, M, n, N;
  PetscBool      dense, transposed;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatProductGetType(C, &type));
  transposed = (PetscBool)(type == MATPRODUCT_AtB);
  PetscCall(MatGetLocalSize(A, transposed ? NULL : &m, transposed ? &m : NULL));
  PetscCall(MatGetSize(A, transposed ? NULL : &M, transposed ? &M : NULL));
  PetscCall(MatGetLocalSize(B, NULL, &n));
  PetscCall(MatGetSize(B, NULL, &N));
  PetscCall(MatSetSizes(C, m, n, M, N));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)C, &dense, MATMPIDENSE, MATMPIDENSECUDA, ""));
  if (!dense) {
    PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
    PetscCall(MatSetVecType(C, B->defaultvectype));
  }
  PetscCall(MatSetUp(C));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatTCBatchFromOptions(C));
  MatTCSetProductNumeric(C, type, transposed ? MatProductNumeric_MPIAIJTCCUSPARSE_AtB : MatProductNumeric_MPIAIJTCCUSPARSE_AB);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatProductSetFromOptions() of a parallel matrix of ours comes to. A B needs nothing of us with scalars that are not ours, or where cuSPARSE is asked for; the parent's A^T B would be stale. */
PetscErrorCode MatProductSetFromOptions_MPIAIJTCCUSPARSE(Mat A, const Mat_AIJTCCUSPARSE *tc, MatProductType type, Mat C)
{
  const PetscBool transposed = (PetscBool)(type == MATPRODUCT_AtB);
  Mat             B;
  PetscInt        a_first, b_first, a_end, b_end;

  PetscFunctionBegin;
  if (!transposed && (type != MATPRODUCT_AB || !MATTC_SCALAR_IS_OURS || tc->settings.spmm == MAT_AIJTCCUSPARSE_SPMM_CUSPARSE)) {
    PetscCall(MatTCEnsureBlocks(A, tc)); /* whose products the parent takes, and which are to leave them to their parent, too */
    PetscCall(MatTCParentProduct(A, tc->parent, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatProductGetMats(C, NULL, &B, NULL));
  PetscCall(transposed ? MatGetOwnershipRange(A, &a_first, &a_end) : MatGetOwnershipRangeColumn(A, &a_first, &a_end));
  PetscCall(MatGetOwnershipRange(B, &b_first, &b_end));
  PetscCheck(a_first == b_first && a_end == b_end, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Matrix local dimensions are incompatible, (%" PetscInt_FMT ", %" PetscInt_FMT ") != (%" PetscInt_FMT ",%" PetscInt_FMT ")", a_first, a_end, b_first, b_end);
  C->ops->productsymbolic = MatProductSymbolic_MPIAIJTCCUSPARSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
