/*
  Vectors on the wrong side: a host vector with a matrix on the GPU passes through memory of the context for our kernels, and through a temporary CUDA vector for
  the parent's operations, which accept no other. The host backend reads every vector through VecGetArray().
*/
#include "solve/solve.h"

/* The memory of the stage, at least `bytes` of it */
static tc_status MatTCStageReserve(const tc_backend *backend, MatTCStage *stage, size_t bytes)
{
  if (stage->bytes >= bytes) return TC_OK;
  backend->release(stage->local);
  stage->local = NULL;
  stage->bytes = 0;
  TC_CALL(backend->alloc(bytes, &stage->local));
  stage->bytes = bytes;
  return TC_OK;
}

PetscErrorCode MatTCStageRelease(Mat_AIJTCCUSPARSE *tc)
{
  PetscFunctionBegin;
  for (int i = 0; i < MATTC_NUM_STAGES; i++) {
    if (tc->stage[i].local) tc->stage_backend->release(tc->stage[i].local);
    tc->stage[i].local = NULL;
    tc->stage[i].bytes = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCVecGetArray(Vec v, MatTCAccess access, PetscBool plain, PetscScalar **array, PetscMemType *type)
{
  PetscFunctionBegin;
  *type = PETSC_MEMTYPE_HOST;
  if (access == MATTC_READ) PetscCall(plain ? VecGetArrayRead(v, (const PetscScalar **)array) : VecGetArrayReadAndMemType(v, (const PetscScalar **)array, type));
  else if (access == MATTC_WRITE) PetscCall(plain ? VecGetArrayWrite(v, array) : VecGetArrayWriteAndMemType(v, array, type));
  else PetscCall(plain ? VecGetArray(v, array) : VecGetArrayAndMemType(v, array, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCVecRestoreArray(Vec v, MatTCAccess access, PetscBool plain, PetscScalar **array)
{
  PetscFunctionBegin;
  if (access == MATTC_READ) PetscCall(plain ? VecRestoreArrayRead(v, (const PetscScalar **)array) : VecRestoreArrayReadAndMemType(v, (const PetscScalar **)array));
  else if (access == MATTC_WRITE) PetscCall(plain ? VecRestoreArrayWrite(v, array) : VecRestoreArrayWriteAndMemType(v, array));
  else PetscCall(plain ? VecRestoreArray(v, array) : VecRestoreArrayAndMemType(v, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gets the array of a vector on the side of the backend. A failure to do so goes into `status`; the array has to be restored in any case. */
PetscErrorCode MatTCArrayGet(Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, MatTCStageId id, Vec v, MatTCAccess access, tc_stream stream, MatTCArray *a, tc_status *status)
{
  MatTCStage  *stage = &tc->stage[id];
  PetscMemType type;
  PetscInt     n;

  PetscFunctionBegin;
  a->vec    = v;
  a->access = access;
  a->plain  = (PetscBool)(backend == tc_backend_host());
  PetscCall(MatTCVecGetArray(v, access, a->plain, &a->array, &type));
  a->local  = a->array;
  a->staged = (PetscBool)(!a->plain && !PetscMemTypeDevice(type));
  if (!a->staged) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(v, &n));
  a->bytes          = (size_t)n * sizeof(PetscScalar);
  tc->stage_backend = backend;
  if (*status == TC_OK) *status = tc_from_backend(backend, MatTCStageReserve(backend, stage, a->bytes));
  if (*status == TC_OK && access != MATTC_WRITE && n > 0) {
    PetscCall(PetscLogEventBegin(MATTC_Upload, v, 0, 0, 0));
    *status = tc_from_backend(backend, backend->upload(stage->local, a->array, a->bytes, stream));
    if (*status == TC_OK) *status = tc_from_backend(backend, backend->synchronize(stream)); /* the array may be pinned, and change as soon as the product returns */
    PetscCall(PetscLogEventEnd(MATTC_Upload, v, 0, 0, 0));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)a->bytes));
  }
  a->local = (PetscScalar *)stage->local;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives the array back; what was written on the other side is fetched first, if all went well so far */
PetscErrorCode MatTCArrayRestore(const tc_backend *backend, tc_stream stream, MatTCArray *a, tc_status *status)
{
  PetscFunctionBegin;
  if (a->staged && a->access != MATTC_READ && *status == TC_OK && a->bytes > 0) {
    *status = tc_from_backend(backend, backend->download(a->array, a->local, a->bytes, stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)a->bytes));
  }
  PetscCall(MatTCVecRestoreArray(a->vec, a->access, a->plain, &a->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A CUDA vector that is not bound to the CPU? The parent writes the device array of one that is, too, which nobody reads then. */
PetscErrorCode MatTCIsOnDevice(Vec v, PetscBool *device)
{
  PetscBool bound = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, device, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
  if (*device) PetscCall(VecBoundToCPU(v, &bound));
  if (bound) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCWrapGet(Vec v, MatTCAccess access, MatTCWrap *w)
{
  PetscBool    device;
  PetscMemType type;
  PetscInt     n;

  PetscFunctionBegin;
  w->vec    = v;
  w->cuda   = v;
  w->access = access;
  if (v) PetscCall(MatTCIsOnDevice(v, &device));
  if (!v || device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCVecGetArray(v, access, PETSC_TRUE, &w->array, &type));
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecCreateSeqCUDAWithArrays(PETSC_COMM_SELF, 1, n, w->array, NULL, &w->cuda));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCWrapRestore(MatTCWrap *w)
{
  const PetscScalar *host;

  PetscFunctionBegin;
  if (w->cuda == w->vec) PetscFunctionReturn(PETSC_SUCCESS);
  if (w->access != MATTC_READ) { /* brings the host array up to date */
    PetscCall(VecGetArrayRead(w->cuda, &host));
    PetscCall(VecRestoreArrayRead(w->cuda, &host));
  }
  PetscCall(VecDestroy(&w->cuda));
  PetscCall(MatTCVecRestoreArray(w->vec, w->access, PETSC_TRUE, &w->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  z = A^T x by MATSEQAIJ, which begins with VecSet(): of a vector of several processes, of which A may be a block, a PETSc made for debugging asks all of them in there, and others, whose
  blocks are ours, would not answer
*/
static PetscErrorCode MatTCParentMultTransposeOnHost(Mat A, PetscErrorCodeFn *f, Vec x, Vec z)
{
  Vec local;

  PetscFunctionBegin;
  PetscCall(VecCreateLocalVector(z, &local));
  PetscCall(VecGetLocalVector(z, local));
  PetscCall((*(PetscErrorCode (*)(Mat, Vec, Vec))f)(A, x, local));
  PetscCall(VecRestoreLocalVector(z, local));
  PetscCall(VecDestroy(&local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x, or z = y + op(A) x where `op` adds, by the parent of a sequential matrix on the GPU, with vectors from anywhere; y may be z */
static PetscErrorCode MatTCParentMultOnDevice(Mat A, PetscErrorCodeFn *f, MatOperation op, Vec x, Vec y, Vec z)
{
  MatTCWrap wx, wy, wz;
  Vec       add;

  PetscFunctionBegin;
  PetscCall(MatTCWrapGet(x, MATTC_READ, &wx));
  if (y != z) PetscCall(MatTCWrapGet(y, MATTC_READ, &wy));
  PetscCall(MatTCWrapGet(z, y == z ? MATTC_READ_WRITE : MATTC_WRITE, &wz));
  add = y == z ? wz.cuda : wy.cuda;
  if (y && y != z && op == MATOP_MULT_TRANSPOSE_ADD) { /* out of place, aijcusparse adds A^T x and y to what z held before */
    PetscCall(VecCopy(add, wz.cuda));
    add = wz.cuda;
  }
  if (y) PetscCall((*(PetscErrorCode (*)(Mat, Vec, Vec, Vec))f)(A, wx.cuda, add, wz.cuda));
  else PetscCall((*(PetscErrorCode (*)(Mat, Vec, Vec))f)(A, wx.cuda, wz.cuda));
  PetscCall(MatTCWrapRestore(&wx));
  if (y != z) PetscCall(MatTCWrapRestore(&wy));
  PetscCall(MatTCWrapRestore(&wz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's product: z = op(A) x, or z = y + op(A) x where `op` adds; y may be z */
PetscErrorCode MatTCParentMult(Mat A, const MatTCParent *parent, MatOperation op, Vec x, Vec y, Vec z)
{
  PetscErrorCodeFn *f;
  PetscBool         bound;

  PetscFunctionBegin;
  PetscCall(MatTCParentOp(A, parent, op, &f));
  PetscCall(MatBoundToCPU(A, &bound));
  if (parent->cuda && !parent->mpi && !bound) PetscCall(MatTCParentMultOnDevice(A, f, op, x, y, z));
  else if (y) PetscCall((*(PetscErrorCode (*)(Mat, Vec, Vec, Vec))f)(A, x, y, z));
  else if (op == MATOP_MULT_TRANSPOSE && !parent->mpi) PetscCall(MatTCParentMultTransposeOnHost(A, f, x, z));
  else PetscCall((*(PetscErrorCode (*)(Mat, Vec, Vec))f)(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = y - A x by the parent's operations, y may be z; of a block, and without any call that its other processes would have to make, too */
PetscErrorCode MatTCParentSubtract(Mat A, const MatTCParent *parent, Vec x, Vec y, Vec z)
{
  Vec local, negative;

  PetscFunctionBegin;
  PetscCall(VecCreateLocalVector(x, &local));
  PetscCall(VecGetLocalVectorRead(x, local));
  PetscCall(VecDuplicate(local, &negative));
  PetscCall(VecCopy(local, negative));
  PetscCall(VecRestoreLocalVectorRead(x, local));
  PetscCall(VecScale(negative, -1.0));
  PetscCall(MatTCParentMult(A, parent, MATOP_MULT_ADD, negative, y, z));
  PetscCall(VecDestroy(&negative));
  PetscCall(VecDestroy(&local));
  PetscFunctionReturn(PETSC_SUCCESS);
}
