/*
  The way of a matrix to the GPU. It is the parent's, which copies from memory that the driver has to read through pages of its own, at 7 to 9 GB/s; what is pinned meanwhile comes at 53, and pinning it
  takes less than what that saves (docs/performance-solves.md, "What comes once in a process").
*/
#include "aijtccusparseimpl.h"

enum { MATTC_PIN_FROM = 16 << 20 }; /* bytes of values */

/* If the host has newer values of a large sequential matrix that is not bound to it, or the only ones, they go to the GPU now, where whoever calls this wants them next */
PetscErrorCode MatTCSendToDevice(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend)
{
  const PetscScalar *values, *sent;
  const PetscInt    *ia, *ja;
  PetscInt           m;
  size_t             bytes;
  tc_key             key;
  PetscBool          done, pinned, pinned_columns;

  PetscFunctionBegin;
  if (!backend || !backend->pin || !MatTCIsToBeSent(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetKey(A, tc, &key));
  bytes = (size_t)key.nnz * sizeof(*values);
  if (bytes < MATTC_PIN_FROM) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  pinned         = (PetscBool)(backend->pin(values, bytes) == TC_OK);
  pinned_columns = (PetscBool)(pinned && done && !(tc->sent.known && MatTCSamePattern(&tc->sent.key, &key)) && backend->pin(ja, (size_t)key.nnz * sizeof(*ja)) == TC_OK);
  if (pinned) {
    PetscCall(PetscLogEventBegin(MATTC_Send, A, 0, 0, 0));
    PetscCall(MatTCGetDeviceValues(A, &sent));
    PetscCall(MatTCRestoreDeviceValues(A, &sent));
    PetscCall(PetscLogEventEnd(MATTC_Send, A, 0, 0, 0));
    PetscCall(PetscInfo(A, "aijtccusparse had %zu bytes of values%s pinned on their way to the GPU\n", bytes, pinned_columns ? ", and columns," : ""));
    tc->sent.known = PETSC_TRUE;
    tc->sent.key   = key;
    backend->unpin(values);
  }
  if (pinned_columns) backend->unpin(ja);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
