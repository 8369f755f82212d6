/*
  Where matrices live: the probe for a GPU, the CUDA library opened on demand, and the choice between the two, which is the same on all processes of a matrix.
*/
#ifndef _GNU_SOURCE
  #define _GNU_SOURCE /* dladdr() */
#endif
#include <dlfcn.h>
#include "aijtccusparseimpl.h"

static struct {
  PetscBool         done; /* probed in this PETSc session */
  const tc_backend *cuda; /* NULL: not usable */
  PetscBool         warm; /* or has failed to become so */
  PetscBool         peers; /* exchange elements of vectors or dense blocks */
  PetscBool         loads; /* what products of sparse matrices need, in a thread of its own */
  char              reason[512];
} probe;

/* Opens the CUDA library that lies next to the library with this function; never closed, since kernels registered by it may outlive PETSc */
static PetscErrorCode MatTCOpenCUDA(const tc_backend **cuda)
{
  Dl_info            info;
  char               path[PETSC_MAX_PATH_LEN];
  char              *slash;
  void              *library;
  tc_backend_cuda_fn get;

  PetscFunctionBegin;
  *cuda = NULL;
  if (!dladdr((void *)&probe, &info) || !info.dli_fname) {
    PetscCall(PetscStrncpy(probe.reason, "the path of this library is unknown", sizeof(probe.reason)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrncpy(path, info.dli_fname, sizeof(path)));
  PetscCall(PetscStrrchr(path, '/', &slash)); /* behind the last slash, or the beginning */
  *slash = '\0';
  PetscCall(PetscStrlcat(path, "libaijtccusparse_cuda.so", sizeof(path)));
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    PetscCall(PetscSNPrintf(probe.reason, sizeof(probe.reason), "the CUDA library does not load: %s", dlerror()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *(void **)&get = dlsym(library, "tc_backend_cuda");
  if (get) *cuda = get();
  else PetscCall(PetscSNPrintf(probe.reason, sizeof(probe.reason), "%s has no symbol tc_backend_cuda", path));
  if (*cuda && (*cuda)->size != sizeof(tc_backend)) {
    PetscCall(PetscSNPrintf(probe.reason, sizeof(probe.reason), "%s is of another build than this library", path));
    *cuda = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCProbe(void)
{
  const tc_backend *cuda;
  char              enable[16];
  PetscBool         set, none = PETSC_FALSE;
  int               sm;

  PetscFunctionBegin;
  if (probe.done) PetscFunctionReturn(PETSC_SUCCESS);
  probe.done = PETSC_TRUE;
  probe.cuda = NULL;
  probe.warm = PETSC_FALSE;
  if (!PetscDefined(HAVE_CUDA)) {
    PetscCall(PetscStrncpy(probe.reason, "PETSc is configured without CUDA", sizeof(probe.reason)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt i = 0; i < 2 && !none; i++) {
    PetscCall(PetscOptionsGetString(NULL, NULL, i ? "-device_enable_cuda" : "-device_enable", enable, sizeof(enable), &set));
    if (set) PetscCall(PetscStrcasecmp(enable, "none", &none));
  }
  if (none) {
    PetscCall(PetscStrncpy(probe.reason, "devices are disabled by -device_enable none or -device_enable_cuda none", sizeof(probe.reason)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCOpenCUDA(&cuda));
  if (!cuda) PetscFunctionReturn(PETSC_SUCCESS);
  if (cuda->probe(&sm) == TC_OK) probe.cuda = cuda;
  else PetscCall(PetscStrncpy(probe.reason, cuda->last_error(), sizeof(probe.reason)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the matrix that is being created live on the GPU? Collective. Reads -mat_aijtccusparse_backend with the prefix of the matrix. */
PetscErrorCode MatTCChooseBackend(Mat A, PetscBool *cuda)
{
  MatAIJTCCUSPARSEBackend backend = MAT_AIJTCCUSPARSE_BACKEND_AUTO;
  PetscOptions            options;
  const char             *prefix;
  PetscMPIInt             usable = 0, all_usable;

  PetscFunctionBegin;
  *cuda = PETSC_FALSE;
  PetscCall(PetscObjectGetOptions((PetscObject)A, &options));
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)A, &prefix));
  PetscCall(PetscOptionsGetEnum(options, prefix, "-mat_aijtccusparse_backend", MatAIJTCCUSPARSEBackends, (PetscEnum *)&backend, NULL));
  if (backend == MAT_AIJTCCUSPARSE_BACKEND_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCProbe());
  if (probe.cuda) usable = 1;
  PetscCallMPI(MPI_Allreduce(&usable, &all_usable, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  if (all_usable) *cuda = PETSC_TRUE;
  else {
    const char *reason = usable ? "another process of the matrix has no usable GPU" : probe.reason;

    PetscCheck(backend != MAT_AIJTCCUSPARSE_BACKEND_CUDA, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "-mat_aijtccusparse_backend cuda is not possible: %s", reason);
    PetscCall(PetscInfo(A, "aijtccusparse uses the host backend: %s\n", reason));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const tc_backend *MatTCGetBackend(PetscBool cuda)
{
  return cuda ? probe.cuda : tc_backend_host();
}

/*
  What the first products of a process would wait for, here, where the parent has just made PETSc initialise its device: creating a matrix of the type says that products will come,
  and where the solve begins nobody knows. A failure is that of the first product that needs the same, if any.
*/
PetscErrorCode MatTCWarmUp(Mat A, const Mat_AIJTCCUSPARSE *tc)
{
  PetscMPIInt size;
  tc_status   status;

  PetscFunctionBegin;
  if (!tc || !tc->parent->cuda || !probe.cuda || probe.warm || MatTCLeftToParent(tc)) PetscFunctionReturn(PETSC_SUCCESS);
  probe.warm = PETSC_TRUE;
  PetscCall(PetscLogEventBegin(MATTC_WarmUp, A, 0, 0, 0));
  status = probe.cuda->warm_up(MATTC_SCALAR);
  PetscCall(PetscLogEventEnd(MATTC_WarmUp, A, 0, 0, 0));
  if (status != TC_OK) PetscCall(PetscInfo(A, "aijtccusparse could not prepare the GPU for its first products, which will take longer: %s\n", probe.cuda->last_error()));
  if (!MatTCIsPropagating()) PetscFunctionReturn(PETSC_SUCCESS); /* which ends it, before the first product */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  status = probe.cuda->load_products_begin(MATTC_SCALAR, sizeof(MatTCDeviceId) > sizeof(int32_t), size);
  probe.loads = (PetscBool)(status == TC_OK);
  if (status == TC_OK) PetscCall(PetscInfo(A, "aijtccusparse loads what products of sparse matrices need, in a thread of its own\n"));
  else PetscCall(PetscInfo(A, "aijtccusparse does not load what products of sparse matrices need ahead of them: %s\n", probe.cuda->last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The backend of exchanges, which have to be over before the process ends */
const tc_backend *MatTCGetBackendOfPeers(void)
{
  probe.peers = PETSC_TRUE;
  return probe.cuda;
}

/* Of products of sparse matrices, which has begun with the first matrix of ours: waits for its end, so that cuSPARSE has no two of them at a time */
PetscErrorCode MatTCFinishLoading(void)
{
  PetscFunctionBegin;
  if (probe.cuda && probe.loads && probe.cuda->load_products_end() != TC_OK) PetscCall(PetscInfo(NULL, "aijtccusparse could not load what products of sparse matrices need ahead of them: %s\n", probe.cuda->last_error()));
  probe.loads = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatTCBackendReset(void)
{
  if (probe.cuda && probe.loads) (void)probe.cuda->load_products_end(); /* a program may reset the device once PETSc is finalized */
  if (probe.cuda && probe.peers) (void)probe.cuda->drain(); /* other processes write this one's memory until it has waited for them */
  probe.peers = PETSC_FALSE;
  probe.loads = PETSC_FALSE;
  probe.done = PETSC_FALSE;
}
