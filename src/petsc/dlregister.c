/*
  Loading: is this the PETSc we were compiled for, registration of types and events, and what -dll_prepend calls.
*/
#include "aijtccusparseimpl.h"

PetscLogEvent MATTC_WarmUp, MATTC_Build, MATTC_Refill, MATTC_Collect, MATTC_Upload, MATTC_Send, MATTC_Trial, MATTC_Dense, MATTC_Peers;

static PetscBool initialized = PETSC_FALSE;

/* PETSc may be finalized and initialized again while this library stays loaded */
static PetscErrorCode MatAIJTCCUSPARSEFinalizePackage(void)
{
  PetscFunctionBegin;
  MatTCParentReset();
  MatTCBackendReset();
  MatTCHugePagesReset();
  initialized = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The running PETSc tells its own sizes; the macros here are those of the PETSc we were compiled for */
static PetscErrorCode MatTCCheckPETSc(void)
{
  PetscInt      major, minor;
  PetscDataType scalar, real;
  size_t        scalar_size, real_size, int_size;
  PetscBool     found;

  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber(&major, &minor, NULL, NULL));
  PetscCheck(major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_SELF, PETSC_ERR_SUP, "libaijtccusparse is compiled for PETSc %d.%d, this program runs PETSc %d.%d",
             PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, (int)major, (int)minor);
  PetscCall(PetscDataTypeFromString("scalar", &scalar, &found));
  PetscCall(PetscDataTypeFromString("real", &real, &found));
  PetscCall(PetscDataTypeGetSize(scalar, &scalar_size));
  PetscCall(PetscDataTypeGetSize(real, &real_size));
  PetscCall(PetscDataTypeGetSize(PETSC_INT, &int_size));
  PetscCheck(real_size == sizeof(PetscReal) && scalar_size == sizeof(PetscScalar) && int_size == sizeof(PetscInt), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "libaijtccusparse is compiled for a PETSc with %s scalars of %d-byte reals and %d-byte indices, this program runs one with %s scalars of %d-byte reals and %d-byte indices",
             PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)sizeof(PetscReal), (int)sizeof(PetscInt), scalar_size > real_size ? "complex" : "real", (int)real_size, (int)int_size);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatAIJTCCUSPARSEInitializePackage - Registers the matrix type `MATAIJTCCUSPARSE` with PETSc

  Collective on `PETSC_COMM_WORLD`

  Level: intermediate

  Notes:
  Programs that load the library with `-dll_prepend` or `-dll_append` need not call it. Programs that are linked with the library call it after
  `PetscInitialize()`. Calling it more than once does no harm.

  Generates an error if the library has been compiled for another minor release, scalar type, precision or index size of PETSc than the program runs with. No
  device is touched.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatRegister()`
@*/
PetscErrorCode MatAIJTCCUSPARSEInitializePackage(void)
{
  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCCheckPETSc());
  PetscCall(MatInitializePackage());
  PetscCall(MatRegister(MATSEQAIJCUSPARSETC, MatCreate_SeqAIJTCCUSPARSE));
  PetscCall(MatRegister(MATMPIAIJCUSPARSETC, MatCreate_MPIAIJTCCUSPARSE));
  PetscCall(MatRegister(MATSEQAIJTCCUSPARSE, MatCreate_SeqAIJTCCUSPARSE));
  PetscCall(MatRegister(MATMPIAIJTCCUSPARSE, MatCreate_MPIAIJTCCUSPARSE));
  PetscCall(MatRegisterRootName(MATAIJTCCUSPARSE, MATSEQAIJCUSPARSETC, MATMPIAIJCUSPARSETC));
  PetscCall(MatTCFactorRegister());
  PetscCall(PetscLogEventRegister("MatTCWarmUp", MAT_CLASSID, &MATTC_WarmUp));
  PetscCall(PetscLogEventRegister("MatTCBuild", MAT_CLASSID, &MATTC_Build));
  PetscCall(PetscLogEventRegister("MatTCRefill", MAT_CLASSID, &MATTC_Refill));
  PetscCall(PetscLogEventRegister("MatTCUpload", MAT_CLASSID, &MATTC_Upload));
  PetscCall(PetscLogEventRegister("MatTCSend", MAT_CLASSID, &MATTC_Send));
  PetscCall(PetscLogEventRegister("MatTCCollect", MAT_CLASSID, &MATTC_Collect));
  PetscCall(PetscLogEventRegister("MatTCTrial", MAT_CLASSID, &MATTC_Trial));
  PetscCall(PetscLogEventRegister("MatTCDense", MAT_CLASSID, &MATTC_Dense));
  PetscCall(PetscLogEventRegister("MatTCPeers", MAT_CLASSID, &MATTC_Peers));
  PetscCall(PetscRegisterFinalize(MatAIJTCCUSPARSEFinalizePackage));
  initialized = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_aijtccusparse(void);

/* Called by PETSc when it has loaded libaijtccusparse.so for -dll_prepend or -dll_append */
PetscErrorCode PetscDLLibraryRegister_aijtccusparse(void)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}
