/*
  The graph of a matrix with blocks, which PCGAMG coarsens: an entry for each block. PETSc makes it on the host (3.26.1), for which all values of a coarse operator come from the GPU, into new
  memory; here the GPU adds up what is in a block, and a ninth of them comes if blocks are 3 x 3. What is made of it afterwards is PETSc's.
*/
#include "aijtccusparseimpl.h"

/* Sums of absolute values on the device, then on the host, PetscFree() them; NULL if the matrix does not consist of such blocks, or something has failed */
static PetscErrorCode MatTCSumBlocksLocal(Mat A, PetscInt bs, const tc_backend *backend, tc_stream stream, PetscScalar **sums)
{
  const PetscScalar *values;
  MatTCPattern       P;
  tc_status          status = TC_OK;
  int32_t            irregular = 0;
  size_t             bytes;
  char              *local = NULL;

  PetscFunctionBegin;
  *sums = NULL;
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
  PetscCall(MatTCGetDeviceValues(A, &values));
  bytes = (size_t)(P.local.nnz / ((int64_t)bs * bs)) * sizeof(**sums);
  if (status == TC_OK) status = tc_from_backend(backend, backend->take(bytes + sizeof(PetscScalar), (void **)&local, stream)); /* behind the sums the word */
  if (status == TC_OK) status = tc_from_backend(backend, backend->zero(local + bytes, sizeof(PetscScalar), stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream()));
  if (status == TC_OK) status = tc_from_backend(backend, backend->collapse(&P.local, (int32_t)bs, MATTC_SCALAR, values, local, (int32_t *)(void *)(local + bytes), stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->download(&irregular, local + bytes, sizeof(irregular), stream));
  if (status == TC_OK && !irregular) {
    PetscCall(PetscMalloc1(P.local.nnz / ((int64_t)bs * bs), sums));
    status = tc_from_backend(backend, backend->download(*sums, local, bytes, stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  }
  if (local) (void)backend->give(local, stream);
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  if (status != TC_OK) {
    PetscCall(PetscFree(*sums));
    PetscCall(PetscInfo(A, "aijtccusparse makes the graph on the host: %s\n", tc_last_error()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for a sequential matrix, if there are blocks, and if the device has them or is to have them */
static PetscErrorCode MatTCSumBlocks(Mat A, Mat_AIJTCCUSPARSE *tc, PetscInt *bs, PetscScalar **sums)
{
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  PetscInt          m, n;
  PetscBool         usable;

  PetscFunctionBegin;
  *sums = NULL;
  PetscCall(MatGetBlockSize(A, bs));
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (!tc || *bs < 2 || m != n || m % *bs || MatTCSparesDevice(A, tc)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_FORWARD], &backend, &key, &stream, &usable));
  if (usable && backend->collapse && key.nnz > 0) PetscCall(MatTCSumBlocksLocal(A, *bs, backend, stream, sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of that type with an entry for each block */
static PetscErrorCode MatTCGraphCreate(Mat A, PetscInt bs, const PetscScalar sums[], Mat *graph)
{
  const PetscInt *ia, *ja;
  PetscInt       *row, *col, m, n;
  PetscBool       done;
  MatType         type;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscCheck(done, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A matrix of type %s does not give its rows", ((PetscObject)A)->type_name);
  n = m / bs;
  PetscCall(PetscMalloc1(n + 1, &row));
  PetscCall(PetscMalloc1(ia[m] / bs / bs, &col));
  row[0] = 0;
  for (PetscInt i = 0; i < n; i++) {
    row[i + 1] = ia[(i + 1) * bs] / bs / bs;
    for (PetscInt k = row[i]; k < row[i + 1]; k++) col[k] = ja[ia[i * bs] + (k - row[i]) * bs] / bs;
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscCall(MatGetType(A, &type));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), graph));
  PetscCall(MatSetType(*graph, type));
  PetscCall(MatSetSizes(*graph, n, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSizes(*graph, 1, 1));
  PetscCall(MatSeqAIJSetPreallocationCSR(*graph, row, col, sums));
  PetscCall(MatSetOption(*graph, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(PetscFree(row));
  PetscCall(PetscFree(col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* G + G^T, unless the matrix is known to be symmetric */
static PetscErrorCode MatTCGraphSymmetrize(Mat A, Mat G)
{
  PetscBool set, symmetric, structurally;
  Mat       transpose;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  if (!set || !symmetric) {
    PetscCall(MatIsStructurallySymmetricKnown(G, &set, &structurally));
    PetscCall(MatTranspose(G, MAT_INITIAL_MATRIX, &transpose));
    PetscCall(MatAXPY(G, 1.0, transpose, set && structurally ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&transpose));
  }
  PetscCall(MatSetOption(G, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ones on the diagonal; on the host, where the values are and who coarsens looks at them */
static PetscErrorCode MatTCGraphScale(Mat G)
{
  Vec diagonal;

  PetscFunctionBegin;
  PetscCall(MatBindToCPU(G, PETSC_TRUE));
  PetscCall(MatCreateVecs(G, &diagonal, NULL));
  PetscCall(VecBindToCPU(diagonal, PETSC_TRUE));
  PetscCall(MatGetDiagonal(G, diagonal));
  PetscCall(VecReciprocal(diagonal));
  PetscCall(VecSqrtAbs(diagonal));
  PetscCall(MatDiagonalScale(G, diagonal, diagonal));
  PetscCall(VecDestroy(&diagonal));
  PetscCall(MatBindToCPU(G, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateGraph_AIJTCCUSPARSE(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, PetscInt num, PetscInt index[], Mat *graph)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscScalar       *sums = NULL;
  PetscInt           bs;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (filter < 0 && num == 0) PetscCall(MatTCSumBlocks(A, tc, &bs, &sums));
  if (!sums) {
    PetscCall(MatTCParentOf(A, &parent));
    PetscCall((*parent->create_graph)(A, symmetrize, scale, filter, num, index, graph));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(A, "aijtccusparse has added up blocks of %" PetscInt_FMT " for the graph on the GPU\n", bs));
  PetscCall(MatTCGraphCreate(A, bs, sums, graph));
  PetscCall(PetscFree(sums));
  if (symmetrize) PetscCall(MatTCGraphSymmetrize(A, *graph));
  else PetscCall(MatPropagateSymmetryOptions(A, *graph));
  if (scale) PetscCall(MatTCGraphScale(*graph));
  PetscCall(MatViewFromOptions(*graph, NULL, "-mat_graph_view"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
