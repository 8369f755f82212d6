/*
  The PETSc releases we compile against, 3.24 to 3.26: everything that differs between them, and everything we use that their public headers do not declare.
*/
#pragma once

#include <petscmat.h>
#include <petscdevice.h>
#include <petsc/private/matimpl.h> /* structure_only, which no public function tells, what a factor is, and names for messages */

#if PETSC_VERSION_LT(3, 24, 0) || PETSC_VERSION_GE(3, 27, 0)
  #error "aijtccusparse supports the PETSc releases 3.24, 3.25 and 3.26"
#endif

/* What a context's destructor gets: the address of the pointer to the context */
#if PETSC_VERSION_LT(3, 25, 0)
typedef void **PetscCtxRt;
#endif

/* Constructors of the parent types: exported by libpetsc, declared nowhere */
PETSC_EXTERN PetscErrorCode MatCreate_SeqAIJ(Mat);
PETSC_EXTERN PetscErrorCode MatCreate_MPIAIJ(Mat);
#if PetscDefined(HAVE_CUDA)
PETSC_EXTERN PetscErrorCode MatCreate_SeqAIJCUSPARSE(Mat);
PETSC_EXTERN PetscErrorCode MatCreate_MPIAIJCUSPARSE(Mat);

/* The stream of the parent's value updates, a cudaStream_t; declared here because petscdevice_cuda.h needs the CUDA headers */
struct CUstream_st;
PETSC_EXTERN struct CUstream_st *PetscDefaultCudaStream;
#endif

/* Does the matrix hold a pattern without values? */
static inline PetscBool MatTCIsStructureOnly(Mat A)
{
  return A->structure_only;
}

/*
  The slot of MatMultHermitianTransposeAdd(), which MatSetOperation() of 3.26 takes for that of the plain transpose in real builds. aijcusparse asks cuSPARSE for a
  conjugate transpose there, which it refuses for real matrices.
*/
static inline PetscErrorCodeFn **MatTCHermitianTransposeAddSlot(Mat A)
{
  return (PetscErrorCodeFn **)(void *)&A->ops->multhermitiantransposeadd;
}

/* The slot of MatCreateGraph(), which no MatOperation names */
typedef PetscErrorCode (*MatTCCreateGraphFn)(Mat, PetscBool, PetscBool, PetscReal, PetscInt, PetscInt[], Mat *);
static inline MatTCCreateGraphFn *MatTCCreateGraphSlot(Mat A)
{
  return &A->ops->creategraph;
}

/* Likewise of MatCreateSubMatricesMPI() */
typedef PetscErrorCode (*MatTCCreateSubMatricesFn)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
static inline MatTCCreateSubMatricesFn *MatTCCreateSubMatricesMPISlot(Mat A)
{
  return &A->ops->createsubmatricesmpi;
}

/* What makes a matrix a factor of that type, which can be asked to take the natural order; no public function does */
static inline PetscErrorCode MatTCMakeFactor(Mat F, MatFactorType type)
{
  PetscFunctionBegin;
  F->factortype     = type;
  F->canuseordering = PETSC_TRUE;
  PetscCall(PetscStrallocpy(MATORDERINGNATURAL, (char **)&F->preferredordering[type]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* It has its numbers, or what another one has to say of them */
static inline void MatTCFactorIsDone(Mat F, Mat other)
{
  F->assembled       = PETSC_TRUE;
  F->factorerrortype = other ? other->factorerrortype : MAT_FACTOR_NOERROR;
  if (!other) return;
  F->factorerror_zeropivot_value = other->factorerror_zeropivot_value;
  F->factorerror_zeropivot_row   = other->factorerror_zeropivot_row;
}

/* Is it what a product will give? */
static inline PetscBool MatTCIsProduct(Mat A)
{
  return (PetscBool)(A->product != NULL);
}

/*
  The parent on the GPU computes values in the symbolic phase already. It takes them for the result where both factors have their values on both sides, which goes for one that is itself a product whose values are
  yet to come: they are sent from the host, where nobody has written them. So P^T A P was wrong if the values of A were the GPU's alone, and those of P on both sides (3.26.1, docs/performance.md, "Defects of others found on the way").
  With this, called while the result is created, its values are those of the numeric phase then.
*/
static inline void MatTCProductComputesLater(Mat C)
{
  if (!C->product->A->assembled || (C->product->B && !C->product->B->assembled)) C->product->api_user = PETSC_FALSE;
}

/*
  And it does not take them where the values of a factor are the GPU's alone: they are computed twice, and where that is the product of two others, what is in new memory of the host is sent to the GPU for them. Here
  such a factor passes for one whose values are on both sides, until MatTCRestoreLone() is called: what is between must not look at those of the host.
*/
typedef struct {
  Mat       factor;
  PetscBool lone, assembled;
} MatTCLoneFactor;

static inline MatTCLoneFactor MatTCPretendBothSides(Mat factor)
{
  MatTCLoneFactor lone = {.factor = factor, .lone = PETSC_FALSE, .assembled = factor->assembled};

#if PetscDefined(HAVE_DEVICE)
  lone.lone = (PetscBool)(factor->offloadmask == PETSC_OFFLOAD_GPU);
  if (lone.lone) {
    factor->offloadmask = PETSC_OFFLOAD_BOTH;
    factor->assembled   = PETSC_TRUE; /* a product has its values on the GPU before its numeric phase */
  }
#endif
  return lone;
}

static inline void MatTCRestoreLone(const MatTCLoneFactor *lone)
{
  if (!lone->lone) return;
#if PetscDefined(HAVE_DEVICE)
  lone->factor->offloadmask = PETSC_OFFLOAD_GPU;
#endif
  lone->factor->assembled = lone->assembled;
}

/* A product of parallel matrices is the host's where the first one is bound to the CPU. That it is, without anything else being done; was it? */
static inline PetscBool MatTCPretendBound(Mat A, PetscBool pretend)
{
#if PetscDefined(HAVE_DEVICE)
  const PetscBool bound = A->boundtocpu;

  A->boundtocpu = (PetscBool)(bound || pretend);
  return bound;
#else
  (void)A, (void)pretend;
  return PETSC_TRUE;
#endif
}

static inline void MatTCRestoreBound(Mat A, PetscBool bound)
{
#if PetscDefined(HAVE_DEVICE)
  A->boundtocpu = bound;
#else
  (void)A, (void)bound;
#endif
}

/* What the symbolic phase of a product is, or is to be */
typedef PetscErrorCode (*MatTCProductFn)(Mat);
static inline MatTCProductFn *MatTCProductSymbolicSlot(Mat C)
{
  return &C->ops->productsymbolic;
}

/* What destroys the data of a product gets the data, later the address of the pointer to them */
#if PETSC_VERSION_LT(3, 25, 0)
typedef void *MatTCProductData;
  #define MatTCProductDataOf(data) (data)
#else
typedef PetscCtxRt MatTCProductData;
  #define MatTCProductDataOf(data) (*(void **)(data))
#endif

/* Does the parent on the GPU leave out empty rows, of which there are six in ten then, or more? Not collective */
static inline PetscErrorCode MatTCHasShortRows(Mat A, PetscBool *are_short)
{
  const PetscInt *ia, *ja;
  PetscInt        m, full = 0;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  for (PetscInt i = 0; i < m && m - full >= 0.6 * m; i++) full += ia[i] < ia[i + 1];
  *are_short = (PetscBool)(m - full >= 0.6 * m);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGetDiagonal() takes the offsets of the others for those of all rows since 3.26, which may cost the process the device */
#define MATTC_PARENT_DIAGONAL_NEEDS_ROWS PETSC_VERSION_GE(3, 26, 0)

/* Before, products with dense blocks did, and were wrong or failed */
static inline PetscErrorCode MatTCParentProductIsWrong(Mat A, PetscBool *wrong)
{
  PetscFunctionBegin;
  *wrong = PETSC_FALSE;
  if (PETSC_VERSION_LT(3, 26, 0)) PetscCall(MatTCHasShortRows(A, wrong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The stream of PETSc's current device context; NULL, the legacy default stream, if that context is not CUDA's */
static inline PetscErrorCode MatTCGetCurrentStream(void **stream)
{
  PetscDeviceContext context;
  PetscDeviceType    type;
  void              *handle;

  PetscFunctionBegin;
  *stream = NULL;
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextGetDeviceType(context, &type));
  if (type == PETSC_DEVICE_CUDA) {
    PetscCall(PetscDeviceContextGetStreamHandle(context, &handle));
    *stream = *(void **)handle;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The stream on which the parent updates values */
static inline void *MatTCGetParentStream(void)
{
#if PetscDefined(HAVE_CUDA)
  return (void *)PetscDefaultCudaStream;
#else
  return NULL;
#endif
}

/* Does PETSc hand MPI memory of the host only? And that of such a vector on the GPU is to be memory that the device copies to and from at full speed */
static inline PetscBool MatTCMPIWantsHost(void)
{
  return (PetscBool)!use_gpu_aware_mpi;
}

static inline PetscErrorCode MatTCVecSetPinned(Vec v)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  PetscCall(VecSetPinnedMemoryMin(v, 0));
#else
  (void)v;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of the host are the newer ones, if both have some. No public function says so without a new state of the matrix */
static inline void MatTCHostIsNewer(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  if (A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
#else
  (void)A;
#endif
}

/* Takes the functions that are composed on A away, to be put back by the same: incomplete factors of PETSc's take copies of them, which nobody removes from a factor of the host */
static inline void MatTCSwapFunctions(Mat A, PetscFunctionList *functions)
{
  PetscFunctionList own = ((PetscObject)A)->qlist;

  ((PetscObject)A)->qlist = *functions;
  *functions              = own;
}

/* Has the device no values of the matrix, or older ones than the host? No public function tells */
static inline PetscBool MatTCIsHostsAlone(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  return (PetscBool)(A->offloadmask == PETSC_OFFLOAD_CPU);
#else
  (void)A;
  return PETSC_TRUE;
#endif
}

/* Has it values that the host has not, or older ones? */
static inline PetscBool MatTCIsDevicesAlone(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  return (PetscBool)(A->assembled && !A->boundtocpu && A->offloadmask == PETSC_OFFLOAD_GPU);
#else
  (void)A;
  return PETSC_FALSE;
#endif
}

/* B is to do something in place of A: it treats pivots of zero alike, and afterwards A has those that B has found */
static inline void MatTCFailAlike(Mat A, Mat B)
{
  B->erroriffailure  = A->erroriffailure;
  B->factorerrortype = MAT_FACTOR_NOERROR;
}

static inline void MatTCTakeFailure(Mat A, Mat B)
{
  if (B->factorerrortype == MAT_FACTOR_NOERROR) return;
  A->factorerrortype             = B->factorerrortype;
  A->factorerror_zeropivot_value = B->factorerror_zeropivot_value;
  A->factorerror_zeropivot_row   = B->factorerror_zeropivot_row;
}

/* Will the parent send values to the device when they are wanted there next? */
static inline PetscBool MatTCIsToBeSent(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  return (PetscBool)(A->assembled && !A->boundtocpu && (A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED));
#else
  (void)A;
  return PETSC_FALSE;
#endif
}

/* The device pattern of a parent on the GPU, all row offsets; getting brings it up to date. 3.26 keeps it in PetscInt, the releases before in int. */
#if PETSC_VERSION_LT(3, 26, 0)
typedef int MatTCDeviceId;
#else
typedef PetscInt MatTCDeviceId;
#endif
#if PetscDefined(HAVE_CUDA)
  #define MatTCGetDevicePattern(A, row_ptr, col)     MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, row_ptr, col)
  #define MatTCRestoreDevicePattern(A, row_ptr, col) MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, row_ptr, col)
#else
  #define MatTCGetDevicePattern(A, row_ptr, col)     PETSC_ERR_PLIB
  #define MatTCRestoreDevicePattern(A, row_ptr, col) PETSC_ERR_PLIB
#endif

/* Gives an array on the device, from cudaMallocAsync() and its like, to a new dense matrix, which frees it with cudaFreeAsync() */
static inline PetscErrorCode MatTCDenseGiveArray(Mat C, PetscScalar *array)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  PetscCall(MatDenseCUDASetPreallocation(C, array)); /* leading dimension, state; the array would stay ours */
  PetscCall(MatDenseCUDAReplaceArray(C, array));
#else
  (void)array;
  SETERRQ(PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "A dense matrix on the GPU with a PETSc that has no CUDA");
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the host look at the state of a matrix before it uses what it has kept of its diagonal (MatSOR())? Before, a function that is not exported told it about new values */
static inline PetscBool MatTCHostFollowsState(void)
{
  return (PetscBool)PETSC_VERSION_GE(3, 25, 0);
}

/* The device values of a parent on the GPU; getting brings them up to date, for changes to make them the only ones */
#if PetscDefined(HAVE_CUDA)
  #define MatTCGetDeviceValues     MatSeqAIJCUSPARSEGetArrayRead
  #define MatTCRestoreDeviceValues MatSeqAIJCUSPARSERestoreArrayRead
  #define MatTCChangeDeviceValues  MatSeqAIJCUSPARSEGetArray
  #define MatTCChangedDeviceValues MatSeqAIJCUSPARSERestoreArray
#else
static inline PetscErrorCode MatTCNoDeviceValues(Mat A, const PetscScalar **values)
{
  PetscFunctionBegin;
  *values = NULL;
  SETERRQ(PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A matrix on the GPU with a PETSc that has no CUDA");
}
  #define MatTCGetDeviceValues     MatTCNoDeviceValues
  #define MatTCRestoreDeviceValues MatTCNoDeviceValues
  #define MatTCChangeDeviceValues(A, values)  MatTCNoDeviceValues(A, (const PetscScalar **)(values))
  #define MatTCChangedDeviceValues(A, values) MatTCNoDeviceValues(A, (const PetscScalar **)(values))
#endif
