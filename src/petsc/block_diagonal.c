/*
  Inverted blocks on the diagonal, which PCPBJACOBI asks for. The parent (3.26.1) fetches all values of a matrix for them; where the GPU alone has these, the blocks come, of 27 points with three unknowns one value in 27,
  and the host inverts them as the parent would.
*/
#include "aijtccusparseimpl.h"

enum { MATTC_MOST_BLOCK_ROWS = 16 }; /* larger blocks may be more than the matrix */

/* A matrix of the host that has nothing but these blocks, with zeros: whoever inverts them keeps what comes of it with it, until their number or size changes */
static PetscErrorCode MatTCBlocksCreate(PetscInt m, PetscInt bs, Mat *D)
{
  PetscOptions none;
  PetscInt    *row, *col;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(m + 1, &row, m * bs, &col));
  for (PetscInt i = 0; i <= m; i++) row[i] = i * bs;
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt k = 0; k < bs; k++) col[i * bs + k] = i / bs * bs + k;
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, D));
  PetscCall(PetscOptionsCreate(&none)); /* else -mat_seqaij_type would make it another type */
  PetscCall(PetscObjectSetOptions((PetscObject)*D, none));
  PetscCall(MatSetSizes(*D, m, m, m, m));
  PetscCall(MatSetBlockSize(*D, bs));
  PetscCall(MatSetType(*D, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*D, row, col, NULL));
  PetscCall(PetscObjectSetOptions((PetscObject)*D, NULL));
  PetscCall(PetscOptionsDestroy(&none));
  PetscCall(PetscFree2(row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fetches the blocks of a sequential matrix into D */
static PetscErrorCode MatTCBlocksFetch(Mat A, PetscInt bs, const tc_backend *backend, tc_stream stream, Mat D, tc_status *status)
{
  const PetscScalar *values;
  PetscScalar       *blocks;
  MatTCPattern       P;
  size_t             bytes;
  void              *local = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, status));
  PetscCall(MatTCGetDeviceValues(A, &values));
  PetscCall(MatSeqAIJGetArrayWrite(D, &blocks));
  bytes = (size_t)P.local.num_rows * (size_t)bs * sizeof(*blocks);
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->take(bytes, &local, stream));
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream()));
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->get_blocks(&P.local, (int32_t)bs, MATTC_SCALAR, values, local, stream));
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->download(blocks, local, bytes, stream));
  if (*status == TC_OK) PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  if (local) (void)backend->give(local, stream);
  PetscCall(MatSeqAIJRestoreArrayWrite(D, &blocks));
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY)); /* what tells PETSc before 3.25 that inverses are older */
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a sequential matrix whose values are the GPU's alone; `done` is false when the parent has to do it */
static PetscErrorCode MatTCInvertBlocks(Mat A, Mat_AIJTCCUSPARSE *tc, const PetscScalar **values, PetscBool *done)
{
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  tc_status         status = TC_OK;
  PetscInt          m, n, bs, rows = -1, block = -1;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!tc || !MatTCIsDevicesAlone(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetBlockSize(A, &bs));
  if (m != n || m % bs || m == 0 || bs > MATTC_MOST_BLOCK_ROWS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_FORWARD], &backend, &key, &stream, done));
  if (!*done || !backend->get_blocks) {
    *done = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tc->blocks) {
    PetscCall(MatGetLocalSize(tc->blocks, &rows, NULL));
    PetscCall(MatGetBlockSize(tc->blocks, &block));
  }
  if (rows != m || block != bs) {
    PetscCall(MatDestroy(&tc->blocks));
    PetscCall(MatTCBlocksCreate(m, bs, &tc->blocks));
  }
  PetscCall(MatTCBlocksFetch(A, bs, backend, stream, tc->blocks, &status));
  *done = (PetscBool)(status == TC_OK);
  if (!*done) {
    PetscCall(PetscInfo(A, "aijtccusparse has all values fetched for the blocks on the diagonal: %s\n", tc_last_error()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  MatTCFailAlike(A, tc->blocks);
  PetscCall(MatInvertBlockDiagonal(tc->blocks, values));
  MatTCTakeFailure(A, tc->blocks);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent of a parallel matrix asks its diagonal block, which on the GPU (3.26.1) does not know how large the blocks are and inverts single entries, so that who reads blocks then reads beyond them */
static PetscErrorCode MatTCTellBlockSize(Mat A)
{
  Mat      blocks[2];
  PetscInt num, rows, cols, known;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  PetscCall(MatGetBlockSizes(A, &rows, &cols));
  if (num == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetBlockSize(blocks[0], &known));
  if (known != rows) PetscCall(MatSetBlockSizes(blocks[0], rows, cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatInvertBlockDiagonal_AIJTCCUSPARSE(Mat A, const PetscScalar **values)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *f;
  PetscBool          done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && tc->parent->mpi) {
    PetscCall(MatTCEnsureBlocks(A, tc));
    PetscCall(MatTCTellBlockSize(A));
  } else PetscCall(MatTCInvertBlocks(A, tc, values, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_INVERT_BLOCK_DIAGONAL, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, const PetscScalar **))f)(A, values));
  PetscFunctionReturn(PETSC_SUCCESS);
}
