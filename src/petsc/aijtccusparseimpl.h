/*
  The private side of MATAIJTCCUSPARSE. An object of the type is an object of its parent type with some operations replaced (install.c) and a context composed
  on it (context.c); its type_name stays the parent's.
*/
#pragma once

#include "../../include/petscmataijtccusparse.h"
#include "compat.h"
#include "../plan/choose.h"
#include "../plan/spmm.h"
#include "../plan/straight.h"
#include "../plan/survey.h"
#include "../plan/transpose.h"

/* On an assembled matrix MatSetType() converts only if the new name begins with the present one, else it starts anew: these begin with the names of all parents */
#define MATSEQAIJCUSPARSETC "seqaijcusparsetc"
#define MATMPIAIJCUSPARSETC "mpiaijcusparsetc"

/* We replace operations with numbers below this; those of MatResidual() and MatEliminateZeros(), the last of them, differ by release */
enum { MATTC_NUM_OPS = MATOP_ELIMINATE_ZEROS + 1 };

/* The scalars we pack and multiply, by what the core calls them */
#define MATTC_SCALAR_IS_OURS (!PetscDefined(USE_COMPLEX) && (PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_REAL_SINGLE)))
#define MATTC_SCALAR         (PetscDefined(USE_REAL_SINGLE) ? TC_SCALAR_F32 : TC_SCALAR_F64)

/* Types of dense matrices that MatProduct tells apart: on the host, on the GPU */
enum { MATTC_NUM_DENSE = 2 };

/* A parent type: its constructor, and its operations captured from a fresh object */
typedef struct {
  MatType   type;
  PetscBool mpi, cuda;
  PetscErrorCode (*create)(Mat);
  PetscErrorCode (*destroy)(Mat); /* ours for this parent: in MatHeaderMerge() the object has no type_name to tell the parent */
  PetscBool         captured;
  PetscErrorCodeFn *ops[2][MATTC_NUM_OPS]; /* [bound to the CPU][operation] */
  PetscErrorCodeFn *hermitian_transpose_add[2];
  MatTCCreateGraphFn       create_graph;
  MatTCCreateSubMatricesFn create_submatrices_mpi; /* NULL: it has none */
  PetscErrorCode (*store_values)(Mat);
  PetscErrorCode (*retrieve_values)(Mat);
  PetscErrorCode (*set_preallocation_coo)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*set_values_coo)(Mat, const PetscScalar[], InsertMode);
  PetscErrorCode (*product[2][MATTC_NUM_DENSE])(Mat); /* [bound to the CPU][dense type], what MatProduct finds; NULL: with the dense matrix, or nowhere */
  MatTCProductFn sparse_symbolic;                     /* of two sparse matrices on the GPU */
} MatTCParent;

typedef struct {
  MatAIJTCCUSPARSESpMV       spmv;
  MatAIJTCCUSPARSEArithmetic arithmetic;
  MatAIJTCCUSPARSEPrecision  precision; /* of the packed values */
  PetscBool                  eager, at_once, drop_csr; /* at_once: packing does not wait until it pays */
  PetscBool                  device_factors; /* the GPU's, even where the host would be faster */
  MatAIJTCCUSPARSESOR        sor;
  MatAIJTCCUSPARSESpMM       spmm;
  PetscBool                  exact_nonfinite; /* in products with dense blocks */
  MatAIJTCCUSPARSEReorder    reorder;         /* of the rows, likewise */
  MatAIJTCCUSPARSEExchange   exchange;        /* of elements of vectors and dense blocks; parallel matrices' alone */
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

/* MatMult(), or MatMultAdd() in place, against cuSPARSE's: timed once, when a pattern has been used enough to pay for it */
typedef struct {
  int64_t   pattern;  /* counted as rebuilds */
  PetscInt  products; /* with it so far */
  PetscInt  sums;     /* of them in place */
  PetscBool in_place; /* that is what is timed */
  PetscBool timed;
  tc_trial  result;
  tc_key    key;    /* of the pattern that is left to cuSPARSE */
  PetscBool failed; /* cuSPARSE, called by us: products with that pattern are the parent's */
} MatTCTrial;

/* What is packed for products with the matrix, or with its transpose, and what became of it */
typedef struct {
  const char             *format;    /* NULL: what the settings say, as to the precision, too */
  tc_precision            precision; /* of that format */
  tc_plan                *plan;      /* NULL before the first product, and while declined */
  tc_transpose           *transpose; /* that owns the plan; NULL for the matrix itself */
  PetscBool               rows_wanted; /* of the transpose, since products with dense blocks look at them */
  tc_counters             retired;   /* counts of the plans that are gone */
  int64_t                 nonempty_rows;
  MatAIJTCCUSPARSEReorder reordered;          /* how the rows of what is packed were regrouped */
  PetscBool               prepared, declined; /* pattern built but values never gathered; parent's operations in use */
  tc_key                  prepared_for, declined_for;
  char                    reason[256];   /* why declined */
  tc_stream               stream;        /* of the last product */
  double                  conversion_ms; /* of the last rebuild, without waiting for its end where there is no trial */
  MatTCTrial              trial;         /* of the matrix itself, not of its transpose */
  tc_straight             straight;      /* products straight from CSR, likewise */
  PetscBool               may_wait, waits; /* may packing wait, and does it? Then the product at hand is such a one */
  PetscBool               passed_over; /* what is packed was current, and slower than such a product */
} MatTCSide;

typedef enum {
  MATTC_FORWARD,
  MATTC_TRANSPOSE,
  MATTC_NUM_SIDES
} MatTCSideId;

/* Products with dense blocks */
typedef struct {
  tc_spmm    *spmm;    /* NULL before the first */
  int64_t     retired; /* count of those of earlier objects, and of single columns */
  const char *column;  /* the kernel of the last product if that had a single column, which is a vector, else NULL */
  Vec         column_of_b, column_of_c; /* of such a product: vectors without arrays of their own */
  MatTCSide   side;    /* nothing is packed here: are the products left to the parent, and why? */
  MatTCSide   packed;  /* in a format that products with vectors do not use */
  struct {
    int32_t          *rows; /* NULL if there are none */
    const tc_backend *backend;
    tc_key            key;
  } narrow; /* row offsets and columns in the ids of the core, for kernels that read CSR, where those of the parent are wider */
} MatTCDense;

typedef struct _MatTCGhosts   MatTCGhosts;
typedef struct _MatTCValueMap MatTCValueMap;
typedef struct _MatTCPeers    MatTCPeers;
typedef struct _MatTCSweeps   MatTCSweeps;

/* Something that looking at the rows of a pattern tells, once */
typedef struct {
  PetscBool known, is;
  tc_key    key;
} MatTCPatternFact;

/* The context. A parallel matrix uses the first six members, the rest belongs to sequential matrices and blocks. */
typedef struct {
  const MatTCParent *parent;
  MatTCSettings      settings;
  PetscErrorCodeFn  *view; /* a MatView() that others, DMDA for one, have put over the parent's; NULL if there is none */
  MatTCGhosts       *ghosts; /* what other processes have and want; NULL before the first product with a dense block, or before there are peers */
  MatTCPeers        *peers, *block_peers; /* how elements of vectors are exchanged, and rows of dense blocks; NULL before the first product with either */
  Mat                at_ghosts; /* what a product A^T B gives for the ghosts */
  MatTCSide          side[MATTC_NUM_SIDES];
  MatTCDense         dense;
  int64_t            generation;
  PetscInt           block_size[MATTC_NUM_SIDES]; /* of the rows and columns of the parallel matrix, for a block */
  PetscBool          early_trials, lose_trials; /* for tests: soon, and cuSPARSE wins */
  MatTCPatternFact   short_rows;     /* does the parent on the GPU leave out empty rows? */
  MatTCPatternFact   diagonal_full;  /* has every row an entry on the diagonal? */
  Mat                blocks;        /* those on the diagonal, inverted by the host; NULL before anybody has asked for them */
  MatTCSweeps       *sweeps;        /* of MatSOR(); NULL before the first */
  MatTCValueMap     *map;           /* where in another matrix the values of this one are; NULL if it has not been made of that one again */
  MatTCPatternFact   sent;          /* the pattern that the GPU had when values were last sent by MatTCSendToDevice() */
  PetscBool          subtract; /* MatMultAdd() subtracts: the parallel matrix computes a residual */
  PetscBool          has_stream;
  tc_stream          stream; /* of the last product on the GPU, if there was one */
  MatTCStage         stage[MATTC_NUM_STAGES];
  const tc_backend  *stage_backend;
} Mat_AIJTCCUSPARSE;

/* Nothing is ever packed for such a matrix */
static inline PetscBool MatTCLeftToParent(const Mat_AIJTCCUSPARSE *tc)
{
  return (PetscBool)(!MATTC_SCALAR_IS_OURS || tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_CUSPARSE || tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_PARENT);
}

extern PetscLogEvent MATTC_WarmUp, MATTC_Build, MATTC_Refill, MATTC_Collect, MATTC_Upload, MATTC_Send, MATTC_Trial, MATTC_Dense, MATTC_Peers;

/* backend.c */
PETSC_INTERN PetscErrorCode    MatTCChooseBackend(Mat, PetscBool *);
PETSC_INTERN const tc_backend *MatTCGetBackend(PetscBool);
PETSC_INTERN PetscErrorCode    MatTCWarmUp(Mat, const Mat_AIJTCCUSPARSE *);
PETSC_INTERN const tc_backend *MatTCGetBackendOfPeers(void);
PETSC_INTERN PetscErrorCode    MatTCFinishLoading(void);
PETSC_INTERN void              MatTCBackendReset(void);

/* send.c */
PETSC_INTERN PetscErrorCode MatTCSendToDevice(Mat, Mat_AIJTCCUSPARSE *, const tc_backend *);

/* parent.c */
PETSC_INTERN PetscErrorCode MatTCParentGet(PetscBool, PetscBool, const MatTCParent **);
PETSC_INTERN PetscErrorCode MatTCParentFind(Mat, const MatTCParent **);
PETSC_INTERN PetscErrorCode MatTCParentOf(Mat, const MatTCParent **);
PETSC_INTERN PetscErrorCode MatTCParentOp(Mat, const MatTCParent *, MatOperation, PetscErrorCodeFn **);
PETSC_INTERN PetscErrorCode MatTCSetPropagation(PetscBool);
PETSC_INTERN PetscErrorCode MatTCSetPropagationFor(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatTCPropagateFrom(Mat, PetscBool);
PETSC_INTERN PetscBool      MatTCIsPropagating(void);
PETSC_INTERN void           MatTCParentReset(void);

/* context.c */
PETSC_INTERN PetscErrorCode MatTCContextGet(Mat, Mat_AIJTCCUSPARSE **);
PETSC_INTERN PetscErrorCode MatTCContextCreate(Mat, Mat_AIJTCCUSPARSE **);
PETSC_INTERN PetscErrorCode MatTCContextRemove(Mat);
PETSC_INTERN void           MatTCGetCounters(const MatTCSide *, tc_counters *);
PETSC_INTERN PetscErrorCode MatTCSideReset(Mat_AIJTCCUSPARSE *, MatTCSide *);
PETSC_INTERN PetscErrorCode MatTCContextReset(Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCCheckChoice(Mat, int, const char *const[]);
PETSC_INTERN PetscErrorCode MatTCGetSettings(Mat, Mat_AIJTCCUSPARSE **, MatTCSettings *);
PETSC_INTERN PetscErrorCode MatTCSetSettings(Mat_AIJTCCUSPARSE *, const MatTCSettings *);
PETSC_INTERN PetscErrorCode MatTCSettingsFromDatabase(Mat, MatTCSettings *);
PETSC_INTERN PetscErrorCode MatSetFromOptions_AIJTCCUSPARSE(Mat, PetscOptionItems);

/* aijtccusparse.c */
PETSC_INTERN PetscErrorCode MatTCContextGetIfOurs(Mat, Mat_AIJTCCUSPARSE **);

/* install.c */
PETSC_INTERN PetscErrorCode MatTCInstallLike(Mat, MatReuse, Mat);
PETSC_INTERN PetscErrorCode MatTCInstall(Mat, const MatTCSettings *);
PETSC_INTERN PetscErrorCode MatTCUninstall(Mat);
PETSC_INTERN PetscErrorCode MatTCDestroy(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatTCGetParentOp(Mat, MatOperation, PetscErrorCodeFn **);
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatConvertFrom_AIJTCCUSPARSE(Mat, MatType, MatReuse, Mat *);

/* What is composed under the names that PETSc looks for */
typedef enum {
  MATTC_COMPOSE_NOTHING,
  MATTC_COMPOSE_OURS,
  MATTC_COMPOSE_PARENT
} MatTCCompose;

/* mend.c */
PETSC_INTERN PetscErrorCode MatTCHostIsWritten(Mat);
PETSC_INTERN PetscErrorCode MatLoad_AIJTCCUSPARSE(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode MatEliminateZeros_AIJTCCUSPARSE(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatCreateSubMatricesMPI_AIJTCCUSPARSE(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
PETSC_INTERN PetscErrorCode MatAXPY_AIJTCCUSPARSE(Mat, PetscScalar, Mat, MatStructure);
PETSC_INTERN PetscErrorCode MatTCComposeCOO(Mat, const MatTCParent *, MatTCCompose);
PETSC_INTERN PetscErrorCode MatTCInstallAXPY(Mat, const MatTCParent *, PetscBool);
PETSC_INTERN PetscErrorCode MatNorm_AIJTCCUSPARSE(Mat, NormType, PetscReal *);
PETSC_INTERN PetscErrorCode MatStoreValues_AIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatRetrieveValues_AIJTCCUSPARSE(Mat);

/* submatrix.c */
PETSC_INTERN PetscErrorCode MatTCValueMapDestroy(MatTCValueMap **);
PETSC_INTERN PetscErrorCode MatCreateSubMatrix_AIJTCCUSPARSE(Mat, IS, IS, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatCreateSubMatrices_AIJTCCUSPARSE(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
PETSC_INTERN PetscErrorCode MatTranspose_AIJTCCUSPARSE(Mat, MatReuse, Mat *);

/* diagonal.c */
PETSC_INTERN PetscErrorCode MatGetDiagonal_AIJTCCUSPARSE(Mat, Vec);
PETSC_INTERN PetscErrorCode MatInvertBlockDiagonal_AIJTCCUSPARSE(Mat, const PetscScalar **);
PETSC_INTERN PetscErrorCode MatTCHasFullDiagonal(Mat, Mat_AIJTCCUSPARSE *, PetscBool *);
PETSC_INTERN PetscErrorCode MatShift_AIJTCCUSPARSE(Mat, PetscScalar);
PETSC_INTERN PetscErrorCode MatDiagonalSet_AIJTCCUSPARSE(Mat, Vec, InsertMode);

/* solve/sor.c */
PETSC_INTERN PetscErrorCode MatTCSweepsDestroy(MatTCSweeps **);
PETSC_INTERN PetscErrorCode MatTCViewSweeps(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode MatSOR_AIJTCCUSPARSE(Mat, Vec, PetscReal, MatSORType, PetscReal, PetscInt, PetscInt, Vec);

/* mult.c */
PETSC_INTERN PetscErrorCode MatMult_AIJTCCUSPARSE(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_AIJTCCUSPARSE(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_AIJTCCUSPARSE(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_AIJTCCUSPARSE(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_AIJTCCUSPARSE(Mat, Vec, Vec, Vec);

/* What a product straight from CSR reads: rows of the matrix, or of its transpose, and values of the matrix */
typedef struct {
  tc_key             key;
  tc_csr_local       rows;
  const PetscScalar *values;
  tc_csr_matrix      matrix;
  PetscBool          cusparse; /* whose the product is to be */
} MatTCRows;

PETSC_INTERN PetscErrorCode MatTCMultiply(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, const tc_backend *, const MatTCRows *, int, Vec, Vec, Vec, tc_stream, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCApply(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, int, Vec, Vec, Vec, tc_stream, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCTry(Mat, Mat_AIJTCCUSPARSE *, MatTCSideId, int, Vec, Vec, Vec, PetscBool *);

/* straight.c */
PETSC_INTERN PetscErrorCode MatTCAwaits(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, const tc_backend *, const tc_key *, tc_verdict, tc_stream, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCPassesOver(Mat, const Mat_AIJTCCUSPARSE *, MatTCSide *, const tc_backend *, const tc_key *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCStraight(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, PetscBool, int, Vec, Vec, Vec, tc_stream, PetscBool *);

/* Rows of a graph, of a sequential matrix or of a block of a parallel one: an entry for each block */
typedef struct {
  PetscInt     num;
  PetscInt    *row, *col; /* [num + 1], [row[num]] */
  PetscScalar *sums;      /* of absolute values, [row[num]] */
  PetscBool    mirrored, lone, scaled; /* has the transpose been added, or was that found to have other entries, and is the diagonal one of ones? */
} MatTCGraphPart;

/* graph.c */
PETSC_INTERN PetscErrorCode MatTCGraphPartGet(Mat, PetscInt, PetscBool, PetscBool, MatTCGraphPart *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCGraphPartDestroy(MatTCGraphPart *);
PETSC_INTERN PetscErrorCode MatTCGraphPartLeaveTo(MatTCGraphPart *, Mat);
PETSC_INTERN PetscErrorCode MatTCGraphPartTake(MatTCGraphPart *, PetscScalar *, PetscBool);
PETSC_INTERN PetscErrorCode MatTCGraphAddTranspose(const MatTCGraphPart *, PetscScalar **, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCGraphConvert(Mat, Mat *);
PETSC_INTERN void           MatTCGraphGetScale(const MatTCGraphPart *, PetscScalar[]);
PETSC_INTERN void           MatTCGraphScale(MatTCGraphPart *, const PetscScalar[], const PetscScalar[]);
PETSC_INTERN PetscErrorCode MatCreateGraph_AIJTCCUSPARSE(Mat, PetscBool, PetscBool, PetscReal, PetscInt, PetscInt[], Mat *);

/* graph_parallel.c */
PETSC_INTERN PetscErrorCode MatTCCreateGraphParallel(Mat, const Mat_AIJTCCUSPARSE *, PetscInt, PetscBool, PetscBool, Mat *, PetscBool *);

/* hugepages.c */
PETSC_INTERN PetscErrorCode MatTCHugePagesFrom(Mat);
PETSC_INTERN void           MatTCHugePagesReset(void);

/* solve/factor.c */
PETSC_INTERN PetscErrorCode MatTCFactorRegister(void);

/* trial.c */
PETSC_INTERN PetscErrorCode MatTCTrialLost(Mat, Mat_AIJTCCUSPARSE *, PetscBool *);
PETSC_INTERN const char    *MatTCTimedName(const MatTCTrial *);
PETSC_INTERN PetscErrorCode MatTCTheirs(Mat, Mat_AIJTCCUSPARSE *, int, Vec, Vec, Vec, PetscBool *);
PETSC_INTERN PetscBool      MatTCMayTry(const Mat_AIJTCCUSPARSE *, const MatTCSide *);
PETSC_INTERN PetscBool      MatTCTrialComes(const Mat_AIJTCCUSPARSE *, const MatTCSide *);
PETSC_INTERN PetscErrorCode MatTCTrialCount(Mat, Mat_AIJTCCUSPARSE *, Vec, Vec, Vec, tc_stream, PetscBool *);

/* ensure.c */
PETSC_INTERN PetscErrorCode MatTCGetKey(Mat, const Mat_AIJTCCUSPARSE *, tc_key *);
PETSC_INTERN PetscBool      MatTCSamePattern(const tc_key *, const tc_key *);
PETSC_INTERN PetscErrorCode MatTCCurrentBackend(Mat, const MatTCParent *, const tc_backend **);
PETSC_INTERN PetscErrorCode MatTCBegin(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, const tc_backend **, tc_key *, tc_stream *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCPrepare(Mat, Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCEnsure(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, tc_stream *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCFail(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, const char[], const char[]);

/* build.c */
PETSC_INTERN tc_precision   MatTCPrecision(const Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCBuild(Mat, Mat_AIJTCCUSPARSE *, MatTCSide *, const tc_backend *, tc_stream, tc_status *);

/* pattern.c */
typedef struct {
  tc_csr          host;
  tc_csr_local    local;
  const PetscInt      *ia, *ja; /* what the matrix gave, on the host or on the device; else NULL */
  const MatTCDeviceId *device_row_ptr, *device_col;
  int32_t             *narrow, *device_narrow; /* copies, for the ids of the core and on the device; else NULL */
  int64_t             *wide;
  void                *uploaded, *uploaded_order;
  tc_stream            stream; /* on which the device's copy was made */
} MatTCPattern;

PETSC_INTERN PetscErrorCode MatTCPatternFactGet(Mat, const Mat_AIJTCCUSPARSE *, MatTCPatternFact *, PetscErrorCode (*)(Mat, PetscBool *), PetscBool *);
PETSC_INTERN PetscErrorCode MatTCLeavesOutRows(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCGetRowGroup(Mat, const Mat_AIJTCCUSPARSE *, MatTCSideId, int32_t *);
PETSC_INTERN PetscErrorCode MatTCPatternGetHost(Mat, MatTCPattern *);
PETSC_INTERN PetscErrorCode MatTCPatternGetSizes(Mat, MatTCPattern *);
PETSC_INTERN PetscBool      MatTCSparesDevice(Mat, const Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCPatternGetLocal(Mat, const tc_backend *, tc_stream, MatTCPattern *, tc_status *);
PETSC_INTERN PetscErrorCode MatTCPatternKeep(MatTCDense *, const tc_backend *, const tc_key *, MatTCPattern *);
PETSC_INTERN PetscErrorCode MatTCPatternForget(MatTCDense *);
PETSC_INTERN PetscErrorCode MatTCPatternRestore(Mat, const tc_backend *, MatTCPattern *);

/* reorder.c */
PETSC_INTERN PetscErrorCode MatTCGetRowOrder(Mat, const Mat_AIJTCCUSPARSE *, MatTCSide *, int32_t **);

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
  PetscScalar *local;
  size_t       bytes;
  PetscBool    plain, staged;
} MatTCArray;

PETSC_INTERN PetscErrorCode MatTCArrayGet(Mat_AIJTCCUSPARSE *, const tc_backend *, MatTCStageId, Vec, MatTCAccess, tc_stream, MatTCArray *, tc_status *);
PETSC_INTERN PetscErrorCode MatTCArrayRestore(const tc_backend *, tc_stream, MatTCArray *, tc_status *);
PETSC_INTERN PetscErrorCode MatTCIsOnDevice(Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCStageRelease(Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCParentMult(Mat, const MatTCParent *, MatOperation, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatTCParentSubtract(Mat, const MatTCParent *, Vec, Vec, Vec);

/* mpiaijtccusparse.c */
PETSC_INTERN PetscErrorCode MatTCGetBlocks(Mat, PetscInt *, Mat[2]);
PETSC_INTERN PetscErrorCode MatTCMoveBlocks(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatTCEnsureBlocks(Mat, const Mat_AIJTCCUSPARSE *);

/* product.c */
static inline MatType MatTCDenseType(const MatTCParent *parent, int dense)
{
  return dense ? parent->mpi ? MATMPIDENSECUDA : MATSEQDENSECUDA : parent->mpi ? MATMPIDENSE : MATSEQDENSE;
}

PETSC_INTERN PetscErrorCode MatTCCaptureSparseProduct(Mat, MatTCProductFn *);
PETSC_INTERN PetscErrorCode MatTCInstallSparseProducts(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatTCUninstallSparseProducts(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatTCRemoveSparseProducts(Mat, const MatTCParent *);
PETSC_INTERN PetscErrorCode MatTCProductKey(const MatTCParent *, int, char[], size_t);
PETSC_INTERN PetscErrorCode MatTCComposeProducts(Mat, const MatTCParent *, MatTCCompose);
PETSC_INTERN PetscErrorCode MatTCParentProduct(Mat, const MatTCParent *, Mat);
PETSC_INTERN PetscErrorCode MatTCProductIsOurs(Mat, Mat_AIJTCCUSPARSE *, MatProductType, PetscInt, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCProductSizes(MatProductType, Mat, Mat, PetscInt *, PetscInt *, PetscInt *);
PETSC_INTERN PetscErrorCode MatTCProductCheckSizes(MatProductType, Mat, Mat, Mat);
PETSC_INTERN PetscErrorCode MatTCProductOfOperands(MatProductType, Mat, Mat, Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_AIJTCCUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatProductNumeric_AIJTCCUSPARSE(Mat);
PETSC_INTERN void              MatTCSetProductNumeric(Mat, MatProductType, PetscErrorCode (*)(Mat));

/* product_local.c */
/* What a local product reads and writes: C = A B, A^T B or A B^T; local rows and columns of C, and what is summed over */
typedef struct {
  MatProductType     type;
  Mat                B, C;
  const PetscScalar *rows; /* if there is no B, with A B^T: C += A B, all rows of B one after the other */
  PetscBool          rows_on_device;
  int32_t            inner, m, n;
} MatTCDenseArgs;

PETSC_INTERN PetscBool      MatTCSharesPacked(const Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCDenseReset(Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatTCDenseLookAhead(Mat, Mat_AIJTCCUSPARSE *, PetscBool);
PETSC_INTERN PetscErrorCode MatTCDenseProduct(Mat, Mat_AIJTCCUSPARSE *, const MatTCDenseArgs *, PetscBool *);

/* product_column.c */
PETSC_INTERN PetscErrorCode MatTCDenseGet(Mat, MatTCAccess, PetscBool, PetscScalar **, PetscInt *, int *);
PETSC_INTERN PetscErrorCode MatTCDenseRestore(Mat, MatTCAccess, PetscBool, PetscScalar **);
PETSC_INTERN PetscErrorCode MatTCColumnsDestroy(MatTCDense *);
PETSC_INTERN PetscErrorCode MatTCColumnProduct(Mat, Mat_AIJTCCUSPARSE *, const tc_backend *, const MatTCDenseArgs *, PetscBool *);

/* product_mpi.c */
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_MPIAIJTCCUSPARSE(Mat, const Mat_AIJTCCUSPARSE *, MatProductType, Mat);

/* parallel/product_sparse_mpi.c */
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_SparseMPI_AIJTCCUSPARSE(Mat);

/* product_view.c */
PETSC_INTERN PetscErrorCode MatTCViewProducts(Mat, PetscViewer);

/* view.c */
PETSC_INTERN PetscErrorCode MatTCInstallView(Mat, Mat_AIJTCCUSPARSE *);
PETSC_INTERN PetscErrorCode MatView_AIJTCCUSPARSE(Mat, PetscViewer);

/* Lets tests make an allocation, an upload or a launch of the matrix's backend fail: the n-th next pass of the point fails once, n = 0 disarms; see tc_fault_arm() */
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

/* Lets tests have the trial of a sequential matrix of ours after 32 products, whatever these take, and cuSPARSE win it, whatever is measured; not collective */
PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSESetTrials(Mat, PetscBool);
