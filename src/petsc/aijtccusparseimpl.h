/*
  The private side of MATAIJTCCUSPARSE. An object of the type is an object of its parent type with some operations replaced (install.c) and a context composed
  on it (context.c); its type_name stays the parent's.
*/
#pragma once

#include "../../include/petscmataijtccusparse.h"
#include "compat.h"
#include "../plan/plan.h"

/* On an assembled matrix MatSetType() converts only if the new name begins with the present one, else it starts anew: these begin with the names of all parents */
#define MATSEQAIJCUSPARSETC "seqaijcusparsetc"
#define MATMPIAIJCUSPARSETC "mpiaijcusparsetc"

/* All operations we replace have numbers below this; those are the same in all releases */
enum { MATTC_NUM_OPS = 104 };

/* A parent type: its constructor, and its operations captured from a fresh object */
typedef struct {
  MatType   type;
  PetscBool mpi, cuda;
  PetscErrorCode (*create)(Mat);
  PetscErrorCode (*destroy)(Mat); /* ours for this parent: in MatHeaderMerge() the object has no type_name to tell the parent */
  PetscBool         captured;
  PetscErrorCodeFn *ops[2][MATTC_NUM_OPS]; /* [bound to the CPU][operation] */
  PetscErrorCodeFn *hermitian_transpose_add[2];
  PetscErrorCode (*store_values)(Mat);
  PetscErrorCode (*retrieve_values)(Mat);
} MatTCParent;

typedef struct {
  MatAIJTCCUSPARSESpMV       spmv;
  MatAIJTCCUSPARSEArithmetic arithmetic;
  PetscBool                  eager;
} MatTCSettings;

/* Memory of the backend through which a vector of the other side passes */
typedef struct {
  void  *local;
  size_t bytes;
} MatTCStage;

typedef enum {
  MATTC_STAGE_X,
  MATTC_STAGE_Y,
  MATTC_STAGE_Z,
  MATTC_NUM_STAGES
} MatTCStageId;

/* The context. A parallel matrix uses the first three members, the rest belongs to sequential matrices and blocks. */
typedef struct {
  const MatTCParent *parent;
  MatTCSettings      settings;
  PetscErrorCodeFn  *view; /* a MatView() that others, DMDA for one, have put over the parent's; NULL if there is none */
  tc_plan           *plan; /* NULL before the first product, and while declined */
  tc_counters        retired; /* counts of the plans that are gone */
  int64_t            generation;
  int64_t            nonempty_rows;
  PetscBool          prepared, declined; /* pattern built but values never gathered; parent's operations in use */
  tc_key             prepared_for, declined_for;
  char               reason[256]; /* why declined */
  MatTCStage         stage[MATTC_NUM_STAGES];
  const tc_backend  *stage_backend;
  tc_stream          stream; /* of the last product */
  PetscBool          told_transpose;
} Mat_AIJTCCUSPARSE;

extern PetscLogEvent MATTC_Build, MATTC_Refill, MATTC_Upload;

/* backend.c */
PETSC_INTERN PetscErrorCode    MatTCChooseBackend(Mat, PetscBool *);
PETSC_INTERN const tc_backend *MatTCGetBackend(PetscBool);
PETSC_INTERN void              MatTCBackendReset(void);

/* parent.c */
PETSC_INTERN PetscErrorCode MatTCParentGet(PetscBool, PetscBool, const MatTCParent **);
PETSC_INTERN PetscErrorCode MatTCParentFind(Mat, const MatTCParent **);
PETSC_INTERN PetscErrorCode MatTCParentOp(Mat, const MatTCParent *, MatOperation, PetscErrorCodeFn **);
PETSC_INTERN PetscErrorCode MatTCSetPropagation(PetscBool);
PETSC_INTERN PetscErrorCode MatTCPropagateFrom(Mat, PetscBool);
PETSC_INTERN void           MatTCParentReset(void);

/* context.c */
PETSC_INTERN PetscErrorCode MatTCContextGet(Mat, Mat_AIJTCCUSPARSE **);
PETSC_INTERN PetscErrorCode MatTCContextCreate(Mat, Mat_AIJTCCUSPARSE **);
PETSC_INTERN PetscErrorCode MatTCContextRemove(Mat);
PETSC_INTERN void           MatTCGetCounters(const Mat_AIJTCCUSPARSE *, tc_counters *);
PETSC_INTERN PetscErrorCode MatTCContextReset(Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCSetSettings(Mat_AIJTCCUSPARSE *, const MatTCSettings *);
PETSC_INTERN PetscErrorCode MatTCSettingsFromDatabase(Mat, MatTCSettings *);
PETSC_INTERN PetscErrorCode MatSetFromOptions_AIJTCCUSPARSE(Mat, PetscOptionItems);

/* install.c */
PETSC_INTERN PetscErrorCode MatTCInstall(Mat, const MatTCSettings *);
PETSC_INTERN PetscErrorCode MatTCUninstall(Mat);
PETSC_INTERN PetscErrorCode MatTCInstallView(Mat, Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCDestroy(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatConvertFrom_AIJTCCUSPARSE(Mat, MatType, MatReuse, Mat *);

/* mult.c */
PETSC_INTERN PetscErrorCode MatMult_AIJTCCUSPARSE(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_AIJTCCUSPARSE(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_AIJTCCUSPARSE(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_AIJTCCUSPARSE(Mat, Vec, Vec, Vec);

/* ensure.c */
PETSC_INTERN PetscErrorCode MatTCCurrentBackend(Mat, const MatTCParent *, const tc_backend **);
PETSC_INTERN PetscErrorCode MatTCPrepare(Mat, Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCEnsure(Mat, Mat_AIJTCCUSPARSE *, tc_stream *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCFail(Mat, Mat_AIJTCCUSPARSE *, const char[], const char[]);

/* vecstage.c */
typedef enum {
  MATTC_READ,
  MATTC_WRITE,
  MATTC_READ_WRITE
} MatTCAccess;

/* A vector's array on the side of the backend */
typedef struct {
  Vec          vec;
  MatTCAccess  access;
  PetscScalar *array; /* what the vector gave */
  double      *local;
  size_t       bytes;
  PetscBool    plain, staged;
} MatTCArray;

PETSC_INTERN PetscErrorCode MatTCArrayGet(Mat_AIJTCCUSPARSE *, MatTCStageId, Vec, MatTCAccess, tc_stream, MatTCArray *, tc_status *);
PETSC_INTERN PetscErrorCode MatTCArrayRestore(Mat_AIJTCCUSPARSE *, tc_stream, MatTCArray *, tc_status *);
PETSC_INTERN PetscErrorCode MatTCStageRelease(Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCParentMult(Mat, const MatTCParent *, MatOperation, Vec, Vec, Vec);

/* mpiaijtccusparse.c */
PETSC_INTERN PetscErrorCode MatTCGetBlocks(Mat, PetscInt *, Mat[2]);
PETSC_INTERN PetscErrorCode MatTCEnsureBlocks(Mat, const Mat_AIJTCCUSPARSE *);

/* view.c */
PETSC_INTERN PetscErrorCode MatView_AIJTCCUSPARSE(Mat, PetscViewer);

/* Lets tests make an allocation, an upload or a launch of the matrix's backend fail: the n-th next pass of the point fails once, n = 0 disarms */
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int);
