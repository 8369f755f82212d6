/*
  Products of a parallel matrix with vectors whose elements go from GPU to GPU, as peers.c has it.
*/
#include "peers.h"

/* z = A x or z = y + A x, as the parent's: the diagonal block while elements are on their way */
static PetscErrorCode MatTCPeersForward(Mat_AIJTCCUSPARSE *tc, Mat diagonal, Mat off_diagonal, const MatTCSlots *slots, Vec x, Vec y, Vec z, tc_stream stream)
{
  MatTCPeers *P = tc->peers;
  Vec         came;

  PetscFunctionBegin;
  PetscCall(MatTCPeersPush(tc, P, MATTC_TO_GHOSTS, slots->slot_row, 1, x, stream));
  if (y) PetscCall(MatMultAdd_AIJTCCUSPARSE(diagonal, x, y, z));
  else PetscCall(MatMult_AIJTCCUSPARSE(diagonal, x, z));
  PetscCall(MatTCPeersAwait(P, stream));
  if (P->ghosts->num_ghosts == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPeersCame(P, &came));
  PetscCall(MatMultAdd_AIJTCCUSPARSE(off_diagonal, came, z, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A^T x or z = y + A^T x */
static PetscErrorCode MatTCPeersReverse(Mat_AIJTCCUSPARSE *tc, Mat diagonal, Mat off_diagonal, const MatTCSlots *slots, Vec x, Vec y, Vec z, tc_stream stream)
{
  MatTCPeers       *P       = tc->peers;
  const PetscInt    num     = P->ghosts->num_ghosts;
  const tc_backend *backend = P->backend;
  MatTCArray        from, to;
  Vec               came;
  tc_status         status = TC_OK;

  PetscFunctionBegin;
  if (!P->at_ghosts) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &P->at_ghosts));
    PetscCall(VecSetSizes(P->at_ghosts, num, num));
    PetscCall(VecSetType(P->at_ghosts, VECSEQCUDA));
  }
  if (num > 0) PetscCall(MatMultTranspose_AIJTCCUSPARSE(off_diagonal, x, P->at_ghosts));
  PetscCall(MatTCPeersPush(tc, P, MATTC_TO_SLOTS, NULL, 1, P->at_ghosts, stream));
  if (y) PetscCall(MatMultTransposeAdd_AIJTCCUSPARSE(diagonal, x, y, z));
  else PetscCall(MatMultTranspose_AIJTCCUSPARSE(diagonal, x, z));
  PetscCall(MatTCPeersAwait(P, stream));
  if (slots->num_rows == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPeersCame(P, &came));
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_X, came, MATTC_READ, stream, &from, &status));
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_Z, z, MATTC_READ_WRITE, stream, &to, &status));
  if (status == TC_OK) {
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_from_backend(backend, backend->exchange->add(slots->num_rows, slots->row, slots->first_slot, slots->row_slot, MATTC_SCALAR, from.local, to.local, stream));
    PetscCall(PetscLogGpuTimeEnd());
  }
  PetscCall(MatTCArrayRestore(backend, stream, &to, &status));
  PetscCall(MatTCArrayRestore(backend, stream, &from, &status));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "Elements of %" PRId64 " rows that have come to a matrix of %s cannot be added: %s", slots->num_rows, tc->parent->type, tc_last_error());
  PetscCall(PetscLogGpuFlops((PetscLogDouble)slots->num_slots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x, or z = y + op(A) x where `op` adds; y may be z. There are peers, and the blocks are ours */
PetscErrorCode MatTCPeersMult(Mat A, Mat_AIJTCCUSPARSE *tc, MatOperation op, Vec x, Vec y, Vec z)
{
  MatTCPeers       *P      = tc->peers;
  const tc_stream   stream = MatTCGetParentStream();
  const MatTCSlots *slots;
  Mat               diagonal, off_diagonal;
  tc_status         status;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, NULL));
  status = MatTCGhostsOnDevice(P->ghosts, P->backend, &slots); /* which they are already */
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "An exchange of elements cannot begin: %s", tc_last_error());
  PetscCall(MatTCPeersBegin(P, stream));
  if (op == MATOP_MULT || op == MATOP_MULT_ADD) PetscCall(MatTCPeersForward(tc, diagonal, off_diagonal, slots, x, y, z, stream));
  else PetscCall(MatTCPeersReverse(tc, diagonal, off_diagonal, slots, x, y, z, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
