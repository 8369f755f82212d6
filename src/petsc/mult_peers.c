/*
  Products of a parallel matrix with vectors whose elements go from GPU to GPU, as peers.c has it.
*/
#include "peers.h"

/* Elements set out, and are waited for if that comes first. A failure is an error: neighbours count on them */
static PetscErrorCode MatTCPeersPush(Mat_AIJTCCUSPARSE *tc, int w, const int64_t row[], Vec v, tc_stream stream)
{
  MatTCPeers *P   = tc->peers;
  MatTCWay   *way = &P->way[w];
  MatTCArray  from;
  tc_status   status = TC_OK;

  PetscFunctionBegin;
  way->generation++;
  if (P->num == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCArrayGet(tc, P->backend, MATTC_STAGE_X, v, MATTC_READ, stream, &from, &status));
  if (status == TC_OK) {
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_from_backend(P->backend, P->backend->exchange->push(way->targets, P->num, way->most, way->arrived, row, MATTC_SCALAR, from.local, P->at_once ? way->flags : NULL, way->generation, stream));
    PetscCall(PetscLogGpuTimeEnd());
  }
  PetscCall(MatTCArrayRestore(P->backend, stream, &from, &status));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "Elements of a vector did not get from a matrix of %s to %d neighbours: %s", tc->parent->type, P->num, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What follows on the stream begins when those of all neighbours are there */
static PetscErrorCode MatTCPeersAwait(MatTCPeers *P, int w, tc_stream stream)
{
  tc_status status;

  PetscFunctionBegin;
  if (P->num == 0 || P->at_once) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogGpuTimeBegin());
  status = tc_from_backend(P->backend, P->backend->exchange->await(P->way[w].flags, P->num, P->way[w].generation, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "Elements of a vector, from %d neighbours, cannot be waited for: %s", P->num, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x or z = y + A x, as the parent's: the diagonal block while elements are on their way */
static PetscErrorCode MatTCPeersForward(Mat_AIJTCCUSPARSE *tc, Mat diagonal, Mat off_diagonal, const MatTCSlots *slots, Vec x, Vec y, Vec z, tc_stream stream)
{
  MatTCPeers  *P = tc->peers;
  PetscScalar *array;
  PetscMemType type;
  Vec          came;

  PetscFunctionBegin;
  PetscCall(MatTCPeersPush(tc, MATTC_TO_GHOSTS, slots->slot_row, x, stream));
  if (y) PetscCall(MatMultAdd_AIJTCCUSPARSE(diagonal, x, y, z));
  else PetscCall(MatMult_AIJTCCUSPARSE(diagonal, x, z));
  PetscCall(MatTCPeersAwait(P, MATTC_TO_GHOSTS, stream));
  if (P->num_ghosts == 0) PetscFunctionReturn(PETSC_SUCCESS);
  came = P->came[P->way[MATTC_TO_GHOSTS].generation % 2];
  PetscCall(VecGetArrayWriteAndMemType(came, &array, &type)); /* it has been written */
  PetscCall(VecRestoreArrayWriteAndMemType(came, &array));
  PetscCall(MatMultAdd_AIJTCCUSPARSE(off_diagonal, came, z, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A^T x or z = y + A^T x */
static PetscErrorCode MatTCPeersReverse(Mat_AIJTCCUSPARSE *tc, Mat diagonal, Mat off_diagonal, const MatTCSlots *slots, Vec x, Vec y, Vec z, tc_stream stream)
{
  MatTCPeers       *P       = tc->peers;
  MatTCWay         *way     = &P->way[MATTC_TO_SLOTS];
  const tc_backend *backend = P->backend;
  MatTCArray        to;
  tc_status         status = TC_OK;

  PetscFunctionBegin;
  if (P->num_ghosts > 0) PetscCall(MatMultTranspose_AIJTCCUSPARSE(off_diagonal, x, P->at_ghosts));
  PetscCall(MatTCPeersPush(tc, MATTC_TO_SLOTS, NULL, P->at_ghosts, stream));
  if (y) PetscCall(MatMultTransposeAdd_AIJTCCUSPARSE(diagonal, x, y, z));
  else PetscCall(MatMultTranspose_AIJTCCUSPARSE(diagonal, x, z));
  PetscCall(MatTCPeersAwait(P, MATTC_TO_SLOTS, stream));
  if (slots->num_rows == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_Z, z, MATTC_READ_WRITE, stream, &to, &status));
  if (status == TC_OK) {
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_from_backend(backend, backend->exchange->add(slots->num_rows, slots->row, slots->first_slot, slots->row_slot, MATTC_SCALAR, way->half[way->generation % 2], to.local, stream));
    PetscCall(PetscLogGpuTimeEnd());
  }
  PetscCall(MatTCArrayRestore(backend, stream, &to, &status));
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
  if (status == TC_OK && P->has_stream && P->stream != stream) status = tc_from_backend(P->backend, P->backend->wait(stream, P->stream));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "An exchange of elements cannot begin: %s", tc_last_error());
  P->stream     = stream;
  P->has_stream = PETSC_TRUE;
  if (op == MATOP_MULT || op == MATOP_MULT_ADD) PetscCall(MatTCPeersForward(tc, diagonal, off_diagonal, slots, x, y, z, stream));
  else PetscCall(MatTCPeersReverse(tc, diagonal, off_diagonal, slots, x, y, z, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
