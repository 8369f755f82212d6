/*
  Products of two sparse matrices on the GPU, and what consists of them, P^T A P say. They are the parent's, which computes the values of a result twice, once in its symbolic phase, unless it finds those of
  both factors on both sides. Ours are often the GPU's alone, the coarse operators of multigrid for one, since nothing of ours fetches them (graph.c).
*/
#include "aijtccusparseimpl.h"

/* The parent's symbolic phase of such a product, by one of a fresh matrix with itself that is never computed: A B^T, which no option leaves to the host */
PetscErrorCode MatTCCaptureSparseProduct(Mat fresh, MatTCProductFn *symbolic)
{
  PetscErrorCodeFn *f;
  Mat               C;

  PetscFunctionBegin;
  PetscCall(MatGetOperation(fresh, MATOP_PRODUCTSETFROMOPTIONS, &f));
  PetscCall(MatProductCreate(fresh, fresh, NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_ABt));
  PetscCall((*(PetscErrorCode (*)(Mat))f)(C));
  *symbolic = *MatTCProductSymbolicSlot(C);
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCSendFactor(Mat factor)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(factor, &tc));
  if (tc) PetscCall(MatTCSendToDevice(factor, tc, MatTCGetBackend(PETSC_TRUE)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Sparse_AIJTCCUSPARSE(Mat C)
{
  const MatTCParent *parent;
  Mat                A, B;
  MatTCLoneFactor    lone[2];
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall(MatTCSendFactor(A));
  PetscCall(MatTCSendFactor(B));
  lone[0] = MatTCPretendBothSides(A);
  lone[1] = MatTCPretendBothSides(B);
  ierr    = (*parent->sparse_symbolic)(C);
  for (int i = 1; i >= 0; i--) MatTCRestoreLone(&lone[i]);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatProductSetFromOptions() finds where all factors have it, or by the name below */
static PetscErrorCode MatProductSetFromOptions_Sparse_AIJTCCUSPARSE(Mat C)
{
  const MatTCParent *parent;
  Mat                A;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, NULL, NULL));
  PetscCall(MatTCParentOf(A, &parent));
  PetscCall((*(PetscErrorCode (*)(Mat))parent->ops[0][MATOP_PRODUCTSETFROMOPTIONS])(C));
  if (parent->sparse_symbolic && *MatTCProductSymbolicSlot(C) == parent->sparse_symbolic) *MatTCProductSymbolicSlot(C) = MatProductSymbolic_Sparse_AIJTCCUSPARSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCSparseProductKey(const MatTCParent *parent, char name[], size_t length)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, length, "MatProductSetFromOptions_%s_%s_C", parent->type, parent->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operation, and the function that MatProduct looks for if another factor has another one: the local parts of others' rows, which PETSc makes for parallel products, are not ours */
static PetscErrorCode MatTCSetSparseProducts(Mat A, const MatTCParent *parent, PetscErrorCode (*f)(Mat), PetscErrorCode (*by_name)(Mat))
{
  char name[128];

  PetscFunctionBegin;
  PetscCall(MatSetOperation(A, MATOP_PRODUCTSETFROMOPTIONS, (PetscErrorCodeFn *)f));
  PetscCall(MatTCSparseProductKey(parent, name, sizeof(name)));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, name, by_name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has the parent products of its own on the GPU, which ours stand in front of? */
static PetscBool MatTCHasSparseProducts(const MatTCParent *parent)
{
  return (PetscBool)(parent->mpi ? parent->cuda : parent->sparse_symbolic != NULL);
}

/* While the type does not propagate, factors of either type meet, and values are on both sides */
PetscErrorCode MatTCInstallSparseProducts(Mat A, const MatTCParent *parent)
{
  PetscErrorCode (*f)(Mat) = parent->mpi ? MatProductSetFromOptions_SparseMPI_AIJTCCUSPARSE : MatProductSetFromOptions_Sparse_AIJTCCUSPARSE;
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  if (MatTCHasSparseProducts(parent) && !bound && MatTCIsPropagating()) PetscCall(MatTCSetSparseProducts(A, parent, f, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* When A goes; the parent removes what it has put there itself, which for parallel matrices is nothing */
PetscErrorCode MatTCRemoveSparseProducts(Mat A, const MatTCParent *parent)
{
  char name[128];

  PetscFunctionBegin;
  PetscCall(MatTCSparseProductKey(parent, name, sizeof(name)));
  if (parent->mpi) PetscCall(PetscObjectComposeFunction((PetscObject)A, name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Back to the parent's, which has the same function under the name if it is sequential and not bound to the CPU */
PetscErrorCode MatTCUninstallSparseProducts(Mat A, const MatTCParent *parent)
{
  PetscErrorCodeFn *f;
  PetscBool         bound;

  PetscFunctionBegin;
  if (!MatTCHasSparseProducts(parent)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatTCParentOp(A, parent, MATOP_PRODUCTSETFROMOPTIONS, &f));
  PetscCall(MatTCSetSparseProducts(A, parent, (PetscErrorCode (*)(Mat))f, bound || parent->mpi ? NULL : (PetscErrorCode (*)(Mat))f));
  PetscFunctionReturn(PETSC_SUCCESS);
}
