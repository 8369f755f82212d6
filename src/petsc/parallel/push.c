/*
  An exchange between peers: what this process sends, and what comes. A failure is an error, as neighbours count on it.
*/
#include "peers.h"

/* What comes now does so behind the last exchange; if that was on another stream, which may be gone by now, the device is waited for, as MatTCFollowStream() does */
PetscErrorCode MatTCPeersBegin(MatTCPeers *P, tc_stream stream)
{
  tc_status status = TC_OK;

  PetscFunctionBegin;
  if (P->has_stream && P->stream != stream && !P->backend->capturing(stream)) status = tc_from_backend(P->backend, P->backend->drain());
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "An exchange of elements cannot begin: %s", tc_last_error());
  P->stream     = stream;
  P->has_stream = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of so many columns, one for each ghost or slot, or elements of a vector by a list, set out, and are waited for if that comes first */
PetscErrorCode MatTCPeersPush(Mat_AIJTCCUSPARSE *tc, MatTCPeers *P, MatTCWayId w, const int64_t row[], PetscInt columns, Vec v, tc_stream stream)
{
  const MatTCWay *way  = &P->way[w];
  tc_sent         sent = {.row = row, .columns = columns, .scalar = MATTC_SCALAR};
  MatTCArray      from;
  tc_status       status = TC_OK;

  PetscFunctionBegin;
  P->generation++;
  if (P->num == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCArrayGet(tc, P->backend, MATTC_STAGE_X, v, MATTC_READ, stream, &from, &status));
  if (status == TC_OK) {
    sent.from = from.local;
    PetscCall(PetscLogGpuTimeBegin());
    status = tc_from_backend(P->backend, P->backend->exchange->push(way->targets, P->num, way->most, P->arrived, &sent, P->at_once ? P->flags : NULL, P->generation, stream));
    PetscCall(PetscLogGpuTimeEnd());
  }
  PetscCall(MatTCArrayRestore(P->backend, stream, &from, &status));
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "Elements did not get from a matrix of %s to %d neighbours: %s", tc->parent->type, P->num, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What follows on the stream begins when those of all neighbours are there */
PetscErrorCode MatTCPeersAwait(MatTCPeers *P, tc_stream stream)
{
  tc_status status;

  PetscFunctionBegin;
  if (P->num == 0 || P->at_once) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogGpuTimeBegin());
  status = tc_from_backend(P->backend, P->backend->exchange->await(P->flags, P->num, P->generation, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCheck(status == TC_OK, PETSC_COMM_SELF, PETSC_ERR_GPU, "Elements from %d neighbours cannot be waited for: %s", P->num, tc_last_error());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there; until the next exchange but one */
PetscErrorCode MatTCPeersCame(MatTCPeers *P, Vec *came)
{
  PetscScalar *array;
  PetscMemType type;

  PetscFunctionBegin;
  *came = P->came[P->generation % 2];
  PetscCall(VecGetArrayWriteAndMemType(*came, &array, &type)); /* it has been written */
  PetscCall(VecRestoreArrayWriteAndMemType(*came, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}
