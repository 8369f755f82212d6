/*
  Products of two sparse parallel matrices on the GPU. The parent (3.26.1) computes each process's part there, and then has the host make a pattern out of rows and columns of all entries, one by
  one, which takes longer than multiplying on the host does where rows are short, as those of a tentative prolongator are, which PCGAMG smooths. So the host multiplies, if it has all the values.
*/
#include "../aijtccusparseimpl.h"

enum { PRODUCTS_OF_A_ROW = 64 }; /* of entries, on average, up to which the host multiplies: 7 of them, 10^6 rows for each process, took it 0.3 s and the parent 0.9 (docs/performance-parallel.md, "Set-up"); beyond these nobody has looked */

/* Of one process: entries of either factor, and is there something the host would have to fetch, or nothing that is new? */
enum {
  OF_A,
  OF_B,
  FETCHED,
  NEW,
  NUM_COUNTS
};

static PetscErrorCode MatTCCountBlocks(Mat A, PetscInt entries, PetscInt64 count[])
{
  Mat      blocks[2];
  PetscInt num;
  MatInfo  info;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt b = 0; b < num; b++) {
    PetscCall(MatGetInfo(blocks[b], MAT_LOCAL, &info));
    count[entries] += (PetscInt64)info.nz_used;
    if (MatTCIsDevicesAlone(blocks[b])) count[FETCHED]++;
    if (entries == OF_B && info.nz_used > 0 && MatTCIsHostsAlone(blocks[b])) count[NEW]++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Does the host multiply? B is on the GPU nowhere yet: products that are computed again with the values of the GPU have had both there. Whoever has said where to multiply is heeded. Collective
*/
static PetscErrorCode MatTCHostMultiplies(Mat C, Mat A, Mat B, PetscBool *host)
{
  static const char *const options[] = {"-matmatmult_backend_cpu", "-mat_product_algorithm_backend_cpu"};
  PetscInt64               count[NUM_COUNTS] = {0};
  PetscInt                 rows_of_a, rows_of_b;
  const char              *prefix;
  PetscBool                bound[2], said;

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(options); o++) {
    PetscCall(MatGetOptionsPrefix(C, &prefix));
    PetscCall(PetscOptionsHasName(((PetscObject)C)->options, prefix, options[o], &said));
    if (said) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBoundToCPU(A, &bound[0]));
  PetscCall(MatBoundToCPU(B, &bound[1]));
  if (bound[0] || bound[1]) count[FETCHED]++; /* which the parent sees to */
  PetscCall(MatTCCountBlocks(A, OF_A, count));
  PetscCall(MatTCCountBlocks(B, OF_B, count));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, count, NUM_COUNTS, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)C)));
  PetscCall(MatGetSize(A, &rows_of_a, NULL));
  PetscCall(MatGetSize(B, &rows_of_b, NULL));
  if (count[FETCHED] > 0 || count[NEW] == 0) PetscFunctionReturn(PETSC_SUCCESS);
  *host = (PetscBool)((double)count[OF_A] * (double)count[OF_B] <= (double)PRODUCTS_OF_A_ROW * (double)rows_of_a * (double)rows_of_b);
  if (*host) PetscCall(PetscInfo(C, "aijtccusparse has the host multiply two sparse matrices, whose values it has\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatProductSetFromOptions() finds: the parent's, which leaves to the host what is bound to it */
PetscErrorCode MatProductSetFromOptions_SparseMPI_AIJTCCUSPARSE(Mat C)
{
  const MatTCParent *parent;
  MatProductType     type;
  PetscMPIInt        size;
  Mat                A, B;
  PetscBool          host = PETSC_FALSE, bound;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(MatProductGetMats(C, &A, &B, NULL));
  PetscCall(MatProductGetType(C, &type));
  PetscCall(MatTCParentOf(A, &parent));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)C), &size));
  if (type == MATPRODUCT_AB && size > 1) PetscCall(MatTCHostMultiplies(C, A, B, &host));
  bound = MatTCPretendBound(A, host);
  ierr  = (*(PetscErrorCode (*)(Mat))parent->ops[0][MATOP_PRODUCTSETFROMOPTIONS])(C);
  MatTCRestoreBound(A, bound);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
