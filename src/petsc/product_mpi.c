/*
  Products of a parallel matrix with dense blocks. A B is the parent's: it multiplies its two local blocks, or on the host only the diagonal one, through MatProduct
  and so with what product.c installs on them; we see to it that the blocks are ours whenever a product begins, and that a new pattern is noticed. A^T B is computed
  here: the parent's copies the values of A once and does not look again, and goes through the host.
*/
#include "aijtccusparseimpl.h"
#include <petscsf.h>

/* What a parallel product A B of the parent needs to be watched, composed on C */
typedef struct {
  PetscErrorCode (*symbolic)(Mat);
  PetscErrorCode (*numeric)(Mat);
  PetscObjectId    id; /* of A and its pattern when the symbolic phase ran */
  PetscObjectState pattern;
} MatTCWatch;

static const char watch_name[] = "MatAIJTCCUSPARSE_product";

static PetscErrorCode MatTCWatchDestroy(PetscCtxRt watch)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(*(MatTCWatch **)watch));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix and its blocks, which are made ours */
static PetscErrorCode MatTCProductBegin(Mat C, Mat *A, Mat *B)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscBool          ours;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, A, B, NULL));
  PetscCall(MatIsAIJTCCUSPARSE(*A, &ours)); /* MatProductReplaceMats() takes any matrix with the parent's type name */
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(*A, &tc));
  PetscCall(MatTCEnsureBlocks(*A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCGetPatternState(Mat A, PetscObjectId *id, PetscObjectState *pattern)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, id));
  PetscCall(MatGetNonzeroState(A, pattern));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPIAIJTCCUSPARSE_AB(Mat);

static PetscErrorCode MatProductSymbolic_MPIAIJTCCUSPARSE_AB(Mat C)
{
  MatTCWatch *watch;
  Mat         A, B;

  PetscFunctionBegin;
  PetscCall(MatTCProductBegin(C, &A, &B));
  PetscCall(PetscObjectContainerQuery((PetscObject)C, watch_name, (void *)&watch));
  PetscCall((*watch->symbolic)(C));
  watch->numeric = C->ops->productnumeric;
  PetscCall(MatTCGetPatternState(A, &watch->id, &watch->pattern));
  C->ops->productnumeric = MatProductNumeric_MPIAIJTCCUSPARSE_AB;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's data belong to one pattern; another one would go unnoticed */
static PetscErrorCode MatProductNumeric_MPIAIJTCCUSPARSE_AB(Mat C)
{
  MatTCWatch      *watch;
  Mat              A, B;
  PetscObjectId    id;
  PetscObjectState pattern;

  PetscFunctionBegin;
  PetscCall(MatTCProductBegin(C, &A, &B));
  PetscCall(PetscObjectContainerQuery((PetscObject)C, watch_name, (void *)&watch));
  PetscCall(MatTCGetPatternState(A, &id, &pattern));
  if (id != watch->id || pattern != watch->pattern) {
    PetscCall(MatProductSetType(C, MATPRODUCT_UNSPECIFIED)); /* drops the parent's data */
    PetscCall(MatProductSetType(C, MATPRODUCT_AB));
    PetscCall(MatProductSetFromOptions(C));
    PetscCall(MatProductSymbolic(C));
  }
  PetscCall((*watch->numeric)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a product A^T B keeps: how entries of C that belong to others are sent to them, and where they are computed */
typedef struct {
  PetscSF          sf;
  Mat              W; /* off-diagonal block of A, transposed, times B: a row for every ghost column */
  PetscObjectId    id;
  PetscObjectState pattern;
} MatTCTransposed;

static PetscErrorCode MatTCTransposedReset(MatTCTransposed *T)
{
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&T->sf));
  PetscCall(MatDestroy(&T->W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCTransposedDestroy(MatTCProductData data)
{
  MatTCTransposed *T = (MatTCTransposed *)MatTCProductDataOf(data);

  PetscFunctionBegin;
  PetscCall(MatTCTransposedReset(T));
  PetscCall(PetscFree(T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCTransposedSetUp(MatTCTransposed *T, Mat A, Mat local_b)
{
  Mat             off_diagonal;
  const PetscInt *ghosts;
  PetscInt        num_ghosts, n;
  PetscLayout     columns;

  PetscFunctionBegin;
  PetscCall(MatTCTransposedReset(T));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &off_diagonal, &ghosts));
  PetscCall(MatGetLocalSize(off_diagonal, NULL, &num_ghosts));
  PetscCall(MatGetLocalSize(local_b, NULL, &n));
  PetscCall(MatGetLayouts(A, NULL, &columns));
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &T->sf));
  PetscCall(PetscSFSetGraphLayout(T->sf, columns, num_ghosts, NULL, PETSC_COPY_VALUES, ghosts));
  PetscCall(PetscSFSetUp(T->sf));
  PetscCall(MatCreate(PETSC_COMM_SELF, &T->W));
  PetscCall(MatSetSizes(T->W, num_ghosts, n, num_ghosts, n));
  PetscCall(MatSetType(T->W, ((PetscObject)local_b)->type_name));
  PetscCall(MatSetUp(T->W));
  PetscCall(MatTCGetPatternState(A, &T->id, &T->pattern));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the rows of W to the rows of C that they belong to, a column like a vector, some of them on their way at the same time */
static PetscErrorCode MatTCTransposedReduce(MatTCTransposed *T, Mat local_c)
{
  enum {
    BATCH = 32
  };
  const PetscScalar *w;
  PetscScalar       *c;
  PetscMemType       w_type, c_type;
  PetscInt           ldw, ldc, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(local_c, NULL, &n));
  PetscCall(MatDenseGetLDA(T->W, &ldw));
  PetscCall(MatDenseGetLDA(local_c, &ldc));
  PetscCall(MatDenseGetArrayReadAndMemType(T->W, &w, &w_type));
  PetscCall(MatDenseGetArrayAndMemType(local_c, &c, &c_type));
  for (PetscInt first = 0; first < n; first += BATCH) {
    const PetscInt end = PetscMin(n, first + BATCH);

    for (PetscInt j = first; j < end; j++) PetscCall(PetscSFReduceWithMemTypeBegin(T->sf, MPIU_SCALAR, w_type, PetscSafePointerPlusOffset(w, j * ldw), c_type, PetscSafePointerPlusOffset(c, j * ldc), MPIU_SUM));
    for (PetscInt j = first; j < end; j++) PetscCall(PetscSFReduceEnd(T->sf, MPIU_SCALAR, PetscSafePointerPlusOffset(w, j * ldw), PetscSafePointerPlusOffset(c, j * ldc), MPIU_SUM));
  }
  PetscCall(MatDenseRestoreArrayAndMemType(local_c, &c));
  PetscCall(MatDenseRestoreArrayReadAndMemType(T->W, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPIAIJTCCUSPARSE_AtB(Mat C)
{
  MatTCTransposed *T = (MatTCTransposed *)C->product->data;
  Mat              A, B, diagonal, off_diagonal, local_b, local_c;
  PetscObjectId    id;
  PetscObjectState pattern;
  PetscInt         n;

  PetscFunctionBegin;
  PetscCall(MatTCProductBegin(C, &A, &B));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, NULL));
  PetscCall(MatDenseGetLocalMatrix(B, &local_b));
  PetscCall(MatDenseGetLocalMatrix(C, &local_c));
  PetscCall(MatTCGetPatternState(A, &id, &pattern));
  if (!T->sf || id != T->id || pattern != T->pattern) PetscCall(MatTCTransposedSetUp(T, A, local_b));
  PetscCall(MatGetSize(local_c, NULL, &n));
  if (n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTransposeMatMult(off_diagonal, local_b, MAT_REUSE_MATRIX, PETSC_CURRENT, &T->W));
  PetscCall(MatTransposeMatMult(diagonal, local_b, MAT_REUSE_MATRIX, PETSC_CURRENT, &local_c));
  PetscCall(MatTCTransposedReduce(T, local_c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_MPIAIJTCCUSPARSE_AtB(Mat C)
{
  MatTCTransposed *T;
  Mat              A, B;
  PetscInt         m, M, n, N;
  PetscBool        dense;

  PetscFunctionBegin;
  PetscCall(MatTCProductBegin(C, &A, &B));
  PetscCall(MatGetLocalSize(A, NULL, &m));
  PetscCall(MatGetSize(A, NULL, &M));
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
  PetscCall(PetscNew(&T));
  C->product->data       = T;
  C->product->destroy    = MatTCTransposedDestroy;
  C->ops->productnumeric = MatProductNumeric_MPIAIJTCCUSPARSE_AtB;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatProductSetFromOptions() of a parallel matrix of ours comes to */
PetscErrorCode MatProductSetFromOptions_MPIAIJTCCUSPARSE(Mat A, const Mat_AIJTCCUSPARSE *tc, MatProductType type, Mat C)
{
  MatTCWatch *watch;
  Mat         B;

  PetscFunctionBegin;
  if (type == MATPRODUCT_AtB) {
    PetscInt a_first, b_first, a_end, b_end;

    PetscCall(MatProductGetMats(C, NULL, &B, NULL));
    PetscCall(MatGetOwnershipRange(A, &a_first, &a_end));
    PetscCall(MatGetOwnershipRange(B, &b_first, &b_end));
    PetscCheck(a_first == b_first && a_end == b_end, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Matrix local dimensions are incompatible, (%" PetscInt_FMT ", %" PetscInt_FMT ") != (%" PetscInt_FMT ",%" PetscInt_FMT ")", a_first, a_end, b_first, b_end);
    C->ops->productsymbolic = MatProductSymbolic_MPIAIJTCCUSPARSE_AtB;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCParentProduct(A, tc->parent, C));
  if (type != MATPRODUCT_AB || !C->ops->productsymbolic) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectContainerQuery((PetscObject)C, watch_name, (void *)&watch));
  if (!watch) {
    PetscCall(PetscNew(&watch));
    PetscCall(PetscObjectContainerCompose((PetscObject)C, watch_name, watch, MatTCWatchDestroy));
  }
  watch->symbolic         = C->ops->productsymbolic;
  C->ops->productsymbolic = MatProductSymbolic_MPIAIJTCCUSPARSE_AB;
  PetscFunctionReturn(PETSC_SUCCESS);
}
