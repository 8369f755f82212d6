/*
  Factors of matrices on the GPU. The parent (PETSc 3.26.1) solves with its factors by cuSPARSE, where rows wait for each other: 50 to 600 us for what the host does in 20 to 150 with small matrices,
  both ways of the vectors included, and a block of right-hand sides column by column, as many times as long. The coarsest grids of multigrid are such, and so are incomplete factors with few rows or long chains of them. So the factors of these
  are the host's (factor_host.c), which most of the parent's are computed on anyway. Of others the incomplete ones are computed and solved with by us (factor_device.c), complete ones are the parent's.
*/
#include "solve.h"
#include "../../plan/sweeps.h"

#if PetscDefined(HAVE_CUDA)

/* As measured on an H200 (docs/performance-solves.md, "Factors"), rows and entries: beyond these the GPU comes close where factors have many more entries than the matrix, or nobody has looked */
enum {
  MOST_ROWS               = 5000,
  MOST_ENTRIES            = 50000,
  MOST_ROWS_INCOMPLETE    = 100000,
  MOST_ENTRIES_INCOMPLETE = 1500000
};

typedef PetscErrorCode (*MatTCGetFactorFn)(Mat, MatFactorType, Mat *);

static const MatFactorType factor_types[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

enum {
  NUM_TYPES = PETSC_STATIC_ARRAY_LENGTH(factor_types)
};

static MatTCGetFactorFn parents_get_factor[NUM_TYPES]; /* as registered when ours are */

static PetscBool MatTCIsIncomplete(MatFactorType type)
{
  return (PetscBool)(type == MAT_FACTOR_ILU || type == MAT_FACTOR_ICC);
}

PetscErrorCode MatTCParentFactorCreate(Mat A, MatFactorType type, Mat *F)
{
  PetscInt t = 0;

  PetscFunctionBegin;
  while (factor_types[t] != type) t++; /* ours are registered for these alone */
  PetscCall((*parents_get_factor[t])(A, type, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many rows have to come one after the other, at most, when a factor with the pattern of the matrix is solved with? */
static PetscErrorCode MatTCCountLevels(Mat A, PetscInt *levels)
{
  const PetscInt *ia, *ja;
  PetscInt        m, *level;
  PetscBool       done;

  PetscFunctionBegin;
  *levels = 0;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, &level));
  for (PetscInt i = 0; i < m; i++) {
    level[i] = 1;
    for (PetscInt k = ia[i]; k < ia[i + 1]; k++) {
      if (ja[k] < i) level[i] = PetscMax(level[i], level[ja[k]] + 1);
    }
    *levels = PetscMax(*levels, level[i]);
  }
  PetscCall(PetscFree(level));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Are factors of the matrix the host's? Of incomplete ones what the GPU, or cuSPARSE there, takes with the pattern of the matrix counts: the less time the fewer rows wait for others. A matrix that is not assembled yet, whose
  solver has got its options before, has no pattern: its incomplete factors are ours, which look at it when they are computed.
*/
PetscErrorCode MatTCFactorOnHost(Mat A, MatFactorType type, PetscBool cusparse, PetscBool *host)
{
  const PetscBool incomplete = MatTCIsIncomplete(type);
  Mat_AIJTCCUSPARSE *tc;
  PetscBool          assembled;
  PetscInt           m, levels;
  int32_t            row_group;
  MatInfo            info;

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  if (!tc || tc->settings.device_factors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (m > (incomplete ? MOST_ROWS_INCOMPLETE : MOST_ROWS) || info.nz_used > (incomplete ? MOST_ENTRIES_INCOMPLETE : MOST_ENTRIES)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAssembled(A, &assembled));
  *host = (PetscBool)!incomplete;
  if (!incomplete || !assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCCountLevels(A, &levels));
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &row_group));
  *host = (PetscBool)(levels > (PetscInt)(cusparse ? tc_factors_most_levels_cusparse(m, (int64_t)info.nz_used) : tc_factors_most_levels(m, (int64_t)info.nz_used, row_group)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls for a factor of a matrix of the parent's type, ours or not, if nobody names a solver; `named`: if somebody names ours */
static PetscErrorCode MatTCGetFactor(Mat A, MatFactorType type, PetscBool named, Mat *F)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscBool          bound, host;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscCall(MatBoundToCPU(A, &bound));
  host = (PetscBool)(tc && bound && !tc->settings.device_factors); /* the parent's Cholesky factors solve wrongly then (PETSc 3.26.1) */
  if (tc && !bound && !named) PetscCall(MatTCFactorOnHost(A, type, (PetscBool)!MatTCIsIncomplete(type), &host));
  if (host) PetscCall(MatTCHostFactorCreate(A, type, F));
  if (*F) PetscCall(PetscInfo(A, "aijtccusparse: %s factors of this matrix are the host's, %s\n", MatFactorTypes[type], bound ? "to which it is bound" : "which solves with such faster than the GPU does"));
  else if (tc && !bound && MatTCIsIncomplete(type)) PetscCall(MatTCDeviceFactorCreate(A, type, named, F));
  else PetscCall(MatTCParentFactorCreate(A, type, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_AIJTCCUSPARSE(Mat A, MatFactorType type, Mat *F)
{
  PetscFunctionBegin;
  PetscCall(MatTCGetFactor(A, type, PETSC_FALSE, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_AIJTCCUSPARSE_Named(Mat A, MatFactorType type, Mat *F)
{
  PetscFunctionBegin;
  PetscCall(MatTCGetFactor(A, type, PETSC_TRUE, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Who asks for no solver gets the first one that is registered for the very type of the matrix, and MATSOLVERPETSC, which is before MATSOLVERCUSPARSE, has none for the parent's: ours. Who asks for one by its name gets it, as
  MATSOLVERPETSC's function for MATSEQAIJ, a name that the parent's begins with, comes before ours.
*/
static PetscErrorCode MatTCFactorRegisterDevice(void)
{
  PetscFunctionBegin;
  for (int t = 0; t < NUM_TYPES; t++) {
    MatTCGetFactorFn host;

    PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, factor_types[t], NULL, NULL, &parents_get_factor[t]));
    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, factor_types[t], NULL, NULL, &host));
    if (!parents_get_factor[t] || !host) continue;
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJCUSPARSE, factor_types[t], MatGetFactor_AIJTCCUSPARSE));
    if (MatTCIsIncomplete(factor_types[t])) PetscCall(MatSolverTypeRegister(MATSOLVERAIJTCCUSPARSE, MATSEQAIJCUSPARSE, factor_types[t], MatGetFactor_AIJTCCUSPARSE_Named));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

static PetscErrorCode MatTCFactorRegisterDevice(void)
{
  return PETSC_SUCCESS;
}

#endif

/* Once in a PETSc session. The name of ours is known where there is no GPU, too, and means the host's there: the same options go everywhere */
PetscErrorCode MatTCFactorRegister(void)
{
  static const MatFactorType incomplete[] = {MAT_FACTOR_ILU, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  PetscCall(MatTCFactorRegisterDevice());
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(incomplete); t++) {
    PetscErrorCode (*host)(Mat, MatFactorType, Mat *);

    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, incomplete[t], NULL, NULL, &host));
    if (host) PetscCall(MatSolverTypeRegister(MATSOLVERAIJTCCUSPARSE, MATSEQAIJ, incomplete[t], host));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetHostFactors - Are factors of a matrix of type `MATAIJTCCUSPARSE` on the GPU computed, and solved with, on the host where that is faster?

  Logically Collective; `host` must contain common value

  Input Parameters:
+ A    - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- host - `PETSC_FALSE` to leave them to the GPU: `MATSOLVERAIJTCCUSPARSE` for ILU and ICC, for LU and Cholesky the parent type, which solves with them by cuSPARSE

  Options Database Key:
. -mat_aijtccusparse_host_factors (true|false) - default `true`

  Level: intermediate

  Notes:
  It goes for factors that are asked for without the name of a solver, of sequential matrices and blocks. LU and Cholesky factors are the host's with up to 5000 rows and 50000
  entries, the coarsest grids of multigrid for one; ILU and ICC factors if many rows wait for others one after the other, as on small grids in two dimensions and in bands, by a formula of what either takes; all of a matrix that is bound to the CPU. With such the host is 1.1 to 20 times as fast as cuSPARSE, the way of the vectors to it and back included. The factors are then those of
  `MATSOLVERPETSC`, as views tell. Vectors and dense matrices may be on the GPU. For the parent's factors PETSc has `MatCUSPARSESetUseCPUSolve()`.

  It is looked at when a factor is asked for.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatGetFactor()`, `MATSOLVERAIJTCCUSPARSE`, `MATSOLVERCUSPARSE`, `MATSOLVERPETSC`, `MatCUSPARSESetUseCPUSolve()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetHostFactors(Mat A, PetscBool host)
{
  Mat_AIJTCCUSPARSE *tc;
  Mat                blocks[2];
  PetscInt           num;

  PetscFunctionBegin;
  PetscCall(MatTCContextGetIfOurs(A, &tc));
  PetscValidLogicalCollectiveBool(A, host, 2);
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  tc->settings.device_factors = (PetscBool)!host;
  PetscCall(MatTCGetBlocks(A, &num, blocks)); /* factors of which may be asked for before there is a product */
  for (PetscInt i = 0; i < num; i++) {
    PetscCall(MatTCContextGetIfOurs(blocks[i], &tc));
    if (tc) tc->settings.device_factors = (PetscBool)!host;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
