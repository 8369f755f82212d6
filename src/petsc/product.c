/*
  Products of a sequential matrix with dense blocks, C = A B, A^T B and A B^T. MatProduct finds MatProductSetFromOptions_AIJTCCUSPARSE() composed on the matrix under
  the names of its parent and of the dense types; whatever is not ours goes on to the function the parent would have found. A product of ours has no data of its own:
  its symbolic phase, which PETSc repeats at every product of a parallel matrix on the GPU, only gives C its type and sizes, all else is kept with the matrix.
*/
#include "aijtccusparseimpl.h"

/* Is what the parent does with A and a dense matrix known to be wrong? Then PETSc multiplies column by column */
static PetscErrorCode MatTCParentIsWrong(Mat A, const MatTCParent *parent, Mat C, PetscBool *wrong)
{
  PetscBool bound;

  PetscFunctionBegin;
  *wrong = PETSC_FALSE;
  PetscCall(MatBoundToCPU(A, &bound));
  if (parent->cuda && !parent->mpi && !bound) PetscCall(MatTCParentProductIsWrong(A, wrong));
  if (*wrong) PetscCall(PetscInfo(C, "aijtccusparse does without the product of %s, which is wrong for matrices with many empty rows in this release of PETSc\n", parent->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the parent does with this product, if anything; bound to the CPU, where PETSc has A B and A^T B column by column alone, what MATSEQAIJ does */
PetscErrorCode MatTCParentProduct(Mat A, const MatTCParent *parent, Mat C)
{
  Mat       B;
  PetscBool bound, wrong;
  char      name[128];
  PetscErrorCode (*f)(Mat) = NULL;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, NULL, &B, NULL));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatTCParentIsWrong(A, parent, C, &wrong));
  if (wrong) PetscFunctionReturn(PETSC_SUCCESS);
  for (int i = 0; i < MATTC_NUM_DENSE; i++) {
    PetscBool same;

    PetscCall(PetscObjectTypeCompare((PetscObject)B, MatTCDenseType(parent, i), &same));
    if (!same) continue;
    f = parent->product[parent->cuda && bound][i];
    PetscCall(MatTCProductKey(parent, i, name, sizeof(name)));
    if (!f) PetscCall(PetscObjectQueryFunction((PetscObject)B, name, &f));
    if (!f && bound && !parent->mpi) PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_%s_%s_C", MATSEQAIJ, MatTCDenseType(parent, i)));
    if (!f && bound && !parent->mpi) PetscCall(PetscObjectQueryFunction((PetscObject)B, name, &f));
  }
  if (f) PetscCall((*f)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The name under which MatProduct looks for the product with a dense matrix of that type */
PetscErrorCode MatTCProductKey(const MatTCParent *parent, int dense, char name[], size_t length)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, length, "MatProductSetFromOptions_%s_%s_C", parent->type, MatTCDenseType(parent, dense)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes our function under all its names, or what the parent has there, or nothing */
PetscErrorCode MatTCComposeProducts(Mat A, const MatTCParent *parent, MatTCCompose what)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  for (int i = 0; i < MATTC_NUM_DENSE; i++) {
    char name[128];

    PetscCall(MatTCProductKey(parent, i, name, sizeof(name)));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, what == MATTC_COMPOSE_OURS ? MatProductSetFromOptions_AIJTCCUSPARSE : what == MATTC_COMPOSE_PARENT ? parent->product[parent->cuda && bound][i] : NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local rows of B as the product takes it, local rows and columns of C */
PetscErrorCode MatTCProductSizes(MatProductType type, Mat A, Mat B, PetscInt *inner, PetscInt *m, PetscInt *n)
{
  PetscInt am, an, bm, bn;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &am, &an));
  PetscCall(MatGetLocalSize(B, &bm, &bn));
  *inner = type == MATPRODUCT_AtB ? am : an;
  *m     = type == MATPRODUCT_AtB ? an : am;
  *n     = type == MATPRODUCT_ABt ? bm : bn;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Do B and C, which MatProductReplaceMats() and MAT_REUSE_MATRIX may have brought, fit A? Of parallel matrices `B` and `C` are the local blocks, with all their columns.
*/
PetscErrorCode MatTCProductCheckSizes(MatProductType type, Mat A, Mat B, Mat C)
{
  PetscInt inner, m, n, rows, cols, bm, bn;

  PetscFunctionBegin;
  PetscCall(MatTCProductSizes(type, A, B, &inner, &m, &n));
  PetscCall(MatGetLocalSize(B, &bm, &bn));
  PetscCheck((type == MATPRODUCT_ABt ? bn : bm) == inner, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "MatProduct type %s: B has %" PetscInt_FMT " local rows and %" PetscInt_FMT " columns, expected %" PetscInt_FMT " %s, by A", MatProductTypes[type], bm, bn, inner, type == MATPRODUCT_ABt ? "columns" : "local rows");
  PetscCall(MatGetLocalSize(C, &rows, &cols));
  PetscCheck(rows == m && cols == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "MatProduct type %s: C has %" PetscInt_FMT " local rows and %" PetscInt_FMT " columns, expected %" PetscInt_FMT " and %" PetscInt_FMT ", by A and B", MatProductTypes[type], rows, cols, m, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's A^T B and A B^T on the host keep the A that they have first, for whatever A is brought later: are such products left to our numeric phase, which has the parent's computed anew each time, where
  they are not ours?
*/
static PetscErrorCode MatTCParentProductKeepsA(Mat A, const MatTCParent *parent, MatProductType type, PetscInt n, PetscBool *keeps)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  *keeps = (PetscBool)((type == MATPRODUCT_AtB || type == MATPRODUCT_ABt) && n <= INT32_MAX && (!parent->cuda || bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Is the product with n columns ours, that of a sequential matrix? On the GPU A^T B needs a packed transpose that has a kernel, and A B^T the parent's pattern, since that is read until tiles pay.
*/
PetscErrorCode MatTCProductIsOurs(Mat A, Mat_AIJTCCUSPARSE *tc, MatProductType type, PetscInt n, PetscBool *ours)
{
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;

  PetscFunctionBegin;
  *ours = PETSC_FALSE;
  if (!tc || (type != MATPRODUCT_AB && type != MATPRODUCT_AtB && type != MATPRODUCT_ABt)) PetscFunctionReturn(PETSC_SUCCESS);
  if (n > INT32_MAX) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, &tc->dense.side, &backend, &key, &stream, ours));
  if (!*ours || backend == tc_backend_host()) PetscFunctionReturn(PETSC_SUCCESS);
  if (type == MATPRODUCT_ABt) *ours = (PetscBool)!MatTCSparesDevice(A, tc);
  else if (type == MATPRODUCT_AtB) {
    if (!MatTCSharesPacked(tc)) *ours = PETSC_FALSE;
    else PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_TRANSPOSE], &backend, &key, &stream, ours));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_AIJTCCUSPARSE(Mat);

/* C = A B, A^T B or A B^T where PETSc calls a product by its operands, by way of a product of its own; any operands, since C keeps the function when it becomes the result of others. `failed`: ours has, and the parent's is wanted */
PetscErrorCode MatTCProductOfOperands(MatProductType type, Mat A, Mat B, Mat C, PetscBool failed)
{
  const MatTCParent *parent;
  Mat                D;

  PetscFunctionBegin;
  PetscCall(MatProductCreate(A, B, NULL, &D));
  PetscCall(MatProductSetType(D, type));
  PetscCall(MatProductSetFromOptions(D));
  if (failed && D->ops->productsymbolic == MatProductSymbolic_AIJTCCUSPARSE) {
    D->ops->productsymbolic = NULL;
    PetscCall(MatTCParentOf(A, &parent));
    PetscCall(MatTCParentProduct(A, parent, D));
    if (!D->ops->productsymbolic) { /* what PETSc does with any matrix */
      PetscCall(MatTCComposeProducts(A, parent, MATTC_COMPOSE_NOTHING));
      PetscCall(MatProductSetFromOptions(D));
      PetscCall(MatTCComposeProducts(A, parent, MATTC_COMPOSE_OURS));
    }
  }
  PetscCall(MatProductSymbolic(D));
  PetscCheck(!failed || D->ops->productnumeric != MatProductNumeric_AIJTCCUSPARSE, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "A product that failed is ours again");
  PetscCall(MatProductNumeric(D));
  PetscCall(MatCopy(D, C, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductNumeric_AIJTCCUSPARSE(Mat C)
{
  Mat_AIJTCCUSPARSE *tc;
  Mat                A, B;
  MatProductType     type;
  PetscBool          ours, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatProductGetType(C, &type));
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours)); /* MatProductReplaceMats() takes any matrix with the parent's type name */
  if (ours) {
    PetscInt inner, m, n;

    PetscCall(MatTCContextGet(A, &tc));
    PetscCall(MatTCProductCheckSizes(type, A, B, C));
    PetscCall(MatTCProductSizes(type, A, B, &inner, &m, &n));
    const MatTCDenseArgs args = {.type = type, .B = B, .C = C, .inner = (int32_t)inner, .m = (int32_t)m, .n = (int32_t)n};

    PetscCall(MatTCDenseProduct(A, tc, &args, &done));
  }
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCProductOfOperands(type, A, B, C, ours)); /* anew each time: the parent's keep values or descriptors of the A that they have first */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatMultNumeric_AIJTCCUSPARSE(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  PetscCall(MatTCProductOfOperands(MATPRODUCT_AB, A, B, C, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTransposeMatMultNumeric_AIJTCCUSPARSE(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  PetscCall(MatTCProductOfOperands(MATPRODUCT_AtB, A, B, C, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatTransposeMultNumeric_AIJTCCUSPARSE(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  PetscCall(MatTCProductOfOperands(MATPRODUCT_ABt, A, B, C, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The numeric phase of a product of ours. PETSc's products of three matrices that nobody implements as a whole, A B C with a dense B, say, or P^T A P with a dense A, take the symbolic
  phase of their last factor from MatProduct, but its numeric phase from the operation that is named after the operands.
*/
void MatTCSetProductNumeric(Mat C, MatProductType type, PetscErrorCode (*f)(Mat))
{
  C->ops->productnumeric = f;
  if (type == MATPRODUCT_AB) C->ops->matmultnumeric = MatMatMultNumeric_AIJTCCUSPARSE;
  else if (type == MATPRODUCT_AtB) C->ops->transposematmultnumeric = MatTransposeMatMultNumeric_AIJTCCUSPARSE;
  else C->ops->mattransposemultnumeric = MatMatTransposeMultNumeric_AIJTCCUSPARSE;
}

/*
  The array of a new C. On the GPU PETSc would ask the driver for it and fill it with zeros, which takes longer than many a product: it comes from the pool of the backend
  and is PETSc's from then on. Not where there are other processes: libraries that pass device memory on to them want it from the driver. Nor where the host multiplies, though C be one of the GPU.
*/
static PetscErrorCode MatTCProductSetUp(Mat C, const tc_backend *backend, size_t elements)
{
  void       *array = NULL;
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &cuda));
  if (cuda && size == 1 && backend != tc_backend_host() && elements > 0 && backend->alloc(elements * sizeof(PetscScalar), &array) == TC_OK) PetscCall(MatTCDenseGiveArray(C, (PetscScalar *)array));
  PetscCall(MatSetUp(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C is what the parent would make of it: on the GPU a CUDA matrix unless the user gave a host matrix; on the host a host matrix for A B, the type of B for others */
static PetscErrorCode MatProductSymbolic_AIJTCCUSPARSE(Mat C)
{
  Mat                A, B;
  MatProductType     type;
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  const tc_backend  *backend;
  PetscInt           inner, m, n;
  PetscBool          dense, same;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatProductGetType(C, &type));
  PetscCall(MatTCProductSizes(type, A, B, &inner, &m, &n));
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && type != MATPRODUCT_AtB) PetscCall(MatTCDenseLookAhead(A, tc, (PetscBool)(inner == m)));
  PetscCall(MatSetSizes(C, m, n, m, n));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)C, &dense, MATSEQDENSE, MATSEQDENSECUDA, ""));
  if (!dense) {
    PetscCall(MatTCParentFind(A, &parent));
    PetscCall(MatTCCurrentBackend(A, parent, &backend));
    PetscCall(MatSetType(C, backend != tc_backend_host() ? MATSEQDENSECUDA : type == MATPRODUCT_AB ? MATSEQDENSE : ((PetscObject)B)->type_name));
    PetscCall(PetscObjectTypeCompare((PetscObject)B, ((PetscObject)C)->type_name, &same));
    if (same) PetscCall(MatSetVecType(C, B->defaultvectype));
    PetscCall(MatTCProductSetUp(C, backend, (size_t)m * (size_t)n));
  } else PetscCall(MatSetUp(C));
  MatTCSetProductNumeric(C, type, MatProductNumeric_AIJTCCUSPARSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's. Within A B C its result has the function of dense matrices for what comes last (PETSc 3.26.1), which turns a sparse operand, the user's, into a dense one in place.
*/
static PetscErrorCode MatProductSymbolic_LeftToParent(Mat C)
{
  Mat                A;
  MatProductType     type;
  const MatTCParent *parent;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, NULL, NULL));
  PetscCall(MatProductGetType(C, &type));
  PetscCall(MatTCParentOf(A, &parent));
  C->ops->productsymbolic = NULL;
  PetscCall(MatTCParentProduct(A, parent, C));
  PetscCheck(C->ops->productsymbolic, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "The product %s of %s is gone", MatProductTypes[type], parent->type);
  PetscCall((*C->ops->productsymbolic)(C));
  MatTCSetProductNumeric(C, type, C->ops->productnumeric);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatProductSetFromOptions() finds */
PetscErrorCode MatProductSetFromOptions_AIJTCCUSPARSE(Mat C)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  Mat                A, B;
  MatProductType     type;
  PetscInt           inner, m, n;
  PetscBool          ours, bound;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatProductGetType(C, &type));
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours)); /* PETSc copies composed functions to factors and submatrices */
  PetscCall(MatTCContextGet(A, &tc));
  if (ours && parent->mpi) {
    PetscCall(MatProductSetFromOptions_MPIAIJTCCUSPARSE(A, tc, type, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ours) {
    PetscCall(MatTCProductSizes(type, A, B, &inner, &m, &n));
    PetscCall(MatTCProductIsOurs(A, tc, type, n, &ours));
    if (!ours) PetscCall(MatTCParentProductKeepsA(A, parent, type, n, &ours));
  }
  if (ours) C->ops->productsymbolic = MatProductSymbolic_AIJTCCUSPARSE;
  else PetscCall(MatTCParentProduct(A, parent, C));
  if (!ours && parent->cuda && !parent->mpi && !bound && (type == MATPRODUCT_AB || type == MATPRODUCT_AtB || type == MATPRODUCT_ABt) && C->ops->productsymbolic) C->ops->productsymbolic = MatProductSymbolic_LeftToParent;
  PetscFunctionReturn(PETSC_SUCCESS);
}
