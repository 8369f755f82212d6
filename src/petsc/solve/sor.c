/*
  MatSOR(), which PCSOR, and with it the smoothers that PCMG takes if nobody says otherwise, consist of. The parent (3.26.1) fetches the values of a matrix on the GPU, and both vectors for each sweep, and goes through the
  rows on the host. Here a sweep goes through them on the GPU, by the same operations in the same order, where that is faster.
*/
#include "solve.h"
#include "../../plan/sweeps.h"

enum {
  MATTC_TRIANGLES = 2, /* lower, for forward sweeps, and upper */
  MATTC_SWEEPS_OF_OURS = SOR_FORWARD_SWEEP | SOR_BACKWARD_SWEEP | SOR_LOCAL_FORWARD_SWEEP | SOR_LOCAL_BACKWARD_SWEEP | SOR_ZERO_INITIAL_GUESS
};

/* What is known of a sequential matrix */
struct _MatTCSweeps {
  const tc_backend *backend;
  tc_key            key;    /* of the pattern */
  const char       *reason; /* why the parent has to do it; NULL: it has not */
  PetscBool         slow;   /* has it more levels than the device is faster with? They are not known then */
  int32_t           most;   /* levels that it may have */
  tc_sweep_orders   orders;
  PetscBool         looked; /* at the values of that state? */
  tc_key            values;
  PetscInt64        count; /* of calls that the device has done */
};

/* The arguments of MatSOR() */
typedef struct {
  Vec        b, x;
  MatSORType flag;
  PetscReal  omega, shift;
  PetscInt   its;
} MatTCSORArgs;

static void MatTCSweepsForget(MatTCSweeps *S)
{
  tc_sweep_orders_forget(&S->orders);
  S->looked = PETSC_FALSE;
}

PetscErrorCode MatTCSweepsDestroy(MatTCSweeps **S)
{
  PetscFunctionBegin;
  if (*S) MatTCSweepsForget(*S);
  PetscCall(PetscFree(*S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the pattern tells, once; the device's part of it is there afterwards if it is faster, or wanted anyway */
static PetscErrorCode MatTCSweepsPrepare(Mat A, Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, const tc_key *key, const tc_csr_local *rows, PetscBool wanted, tc_stream stream)
{
  tc_csr_local grouped = *rows;
  MatTCSweeps *S;
  PetscInt    *nodes = NULL;
  PetscBool    full;
  tc_status    status = TC_OK;

  PetscFunctionBegin;
  if (!tc->sweeps) PetscCall(PetscNew(&tc->sweeps));
  S = tc->sweeps;
  if (S->backend == backend && MatTCSamePattern(&S->key, key) && S->key.generation == key->generation && (S->orders.memory || S->reason || !wanted)) PetscFunctionReturn(PETSC_SUCCESS);
  MatTCSweepsForget(S);
  S->backend = NULL;
  if (backend->capturing(stream)) PetscFunctionReturn(PETSC_SUCCESS); /* then nothing may wait */
  S->backend = backend;
  S->key     = *key;
  S->reason  = NULL;
  PetscCall(MatTCGetRowGroup(A, tc, MATTC_FORWARD, &grouped.row_group));
  S->most = wanted ? INT32_MAX : tc_sweeps_most_levels(grouped.num_rows, grouped.nnz, grouped.row_group);
  PetscCall(MatInodeGetInodeSizes(A, NULL, &nodes, NULL));
  PetscCall(MatTCHasFullDiagonal(A, tc, &full));
  if (nodes) S->reason = "PETSc goes through nodes of several rows";
  else if (!full) S->reason = "an entry on the diagonal is missing";
  else status = tc_sweep_orders_find(&S->orders, backend, &grouped, S->most, NULL, stream);
  if (status != TC_OK) S->reason = "an error of the device";
  S->slow = (PetscBool)(!S->reason && !S->orders.memory);
  if (S->reason) PetscCall(PetscInfo(A, "aijtccusparse leaves MatSOR() to the parent type: %s\n", status == TC_OK ? S->reason : tc_last_error()));
  else if (S->slow) PetscCall(PetscInfo(A, "aijtccusparse leaves MatSOR() to the host, which is taken to be faster from %d levels of rows on\n", (int)S->most + 1));
  else PetscCall(PetscInfo(A, "aijtccusparse finds %d and %d levels of rows for MatSOR()\n", (int)S->orders.levels[0], (int)S->orders.levels[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are there zeros on the diagonal, which the parent has something to say about? Once for each state */
static PetscErrorCode MatTCSweepsLook(Mat A, const Mat_AIJTCCUSPARSE *tc, MatTCSweeps *S, const tc_csr_local *rows, const PetscScalar *values, tc_stream stream, PetscBool *usable, tc_status *status)
{
  int32_t zero = 0;
  void   *told = NULL;
  tc_key  key;

  PetscFunctionBegin;
  PetscCall(MatTCGetKey(A, tc, &key));
  *usable = PETSC_TRUE;
  if (S->looked && S->values.state == key.state && S->values.generation == key.generation && S->values.holder == key.holder) PetscFunctionReturn(PETSC_SUCCESS);
  *usable = PETSC_FALSE;
  if (S->backend->capturing(stream)) PetscFunctionReturn(PETSC_SUCCESS); /* then nothing may wait */
  if (*status == TC_OK) *status = tc_from_backend(S->backend, S->backend->take(sizeof(zero), &told, stream));
  if (*status == TC_OK) *status = tc_from_backend(S->backend, S->backend->zero(told, sizeof(zero), stream));
  if (*status == TC_OK) *status = tc_from_backend(S->backend, S->backend->find_zero(rows->num_rows, S->orders.pattern.diagonal, MATTC_SCALAR, values, (int32_t *)told, stream));
  if (*status == TC_OK) *status = tc_from_backend(S->backend, S->backend->download(&zero, told, sizeof(zero), stream));
  if (told) (void)S->backend->give(told, stream);
  *usable   = (PetscBool)(*status == TC_OK && !zero);
  S->looked = *usable;
  S->values = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Eisenstat's way: both triangles from zero, x in between */
static tc_status MatTCSweepsEisenstat(const MatTCSweeps *S, const tc_csr_local *rows, tc_sweep *sweep, const PetscScalar *b, PetscScalar *x, tc_stream stream)
{
  sweep->b        = b;
  sweep->before   = x;
  sweep->x        = x;
  sweep->kind     = TC_SWEEP_FROM_ZERO;
  sweep->backward = 1;
  TC_CALL(tc_from_backend(S->backend, S->backend->sweep(rows, sweep, stream)));
  sweep->kind     = TC_SWEEP_EISENSTAT;
  sweep->backward = 0;
  return tc_from_backend(S->backend, S->backend->sweep(rows, sweep, stream));
}

/* All sweeps, the last one into x, which stays what it was if an earlier one fails; there are four vectors of scratch */
static tc_status MatTCSweepsRun(const MatTCSweeps *S, const tc_csr_local *rows, const MatTCSORArgs *args, const PetscScalar *values, const PetscScalar *b, PetscScalar *x, PetscScalar *scratch, tc_stream stream)
{
  const PetscBool    goes[MATTC_TRIANGLES] = {(PetscBool)((args->flag & (SOR_FORWARD_SWEEP | SOR_LOCAL_FORWARD_SWEEP)) != 0), (PetscBool)((args->flag & (SOR_BACKWARD_SWEEP | SOR_LOCAL_BACKWARD_SWEEP)) != 0)};
  const PetscBool    both  = (PetscBool)(goes[0] && goes[1]);
  PetscScalar *const saved = scratch + (size_t)rows->num_rows, *const spare = saved + (size_t)rows->num_rows, *const between = spare + (size_t)rows->num_rows;
  tc_sweep           sweep = {.pattern = &S->orders.pattern, .scalar = MATTC_SCALAR, .val = values, .before = x, .scratch = scratch, .spare = spare, .omega = (double)args->omega, .shift = (double)args->shift};

  if (args->flag == SOR_EISENSTAT) return MatTCSweepsEisenstat(S, rows, &sweep, b, x, stream);
  for (PetscInt it = 0; it < args->its; it++) {
    for (int t = 0; t < MATTC_TRIANGLES; t++) {
      const PetscBool second = (PetscBool)(both && t == 1), first = (PetscBool)(it == 0 && args->flag & SOR_ZERO_INITIAL_GUESS), last = (PetscBool)(it == args->its - 1 && (t == 1 || !goes[1]));

      if (!goes[t]) continue;
      sweep.kind      = second ? TC_SWEEP_SECOND : first ? TC_SWEEP_FROM_ZERO : TC_SWEEP_AGAIN;
      sweep.backward  = t;
      sweep.b         = second ? saved : b;
      sweep.saved     = both && t == 0 ? saved : NULL;
      sweep.x         = last ? x : between;
      sweep.in_double = !first;
      TC_CALL(tc_from_backend(S->backend, S->backend->sweep(rows, &sweep, stream)));
      sweep.before = between;
    }
  }
  return TC_OK;
}

/* As the parent counts */
static PetscErrorCode MatTCSweepsLog(const tc_csr_local *rows, const MatTCSORArgs *args)
{
  const PetscBool forward = (PetscBool)((args->flag & (SOR_FORWARD_SWEEP | SOR_LOCAL_FORWARD_SWEEP)) != 0), backward = (PetscBool)((args->flag & (SOR_BACKWARD_SWEEP | SOR_LOCAL_BACKWARD_SWEEP)) != 0);
  const PetscInt  first   = args->flag & SOR_ZERO_INITIAL_GUESS ? 1 : 0;

  PetscFunctionBegin;
  if (args->flag == SOR_EISENSTAT) {
    PetscCall(PetscLogGpuFlops(6.0 * rows->num_rows - 1.0 + 2.0 * (PetscLogDouble)rows->nnz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogGpuFlops((PetscLogDouble)rows->nnz * (first * (forward + backward) + (args->its - first) * (2.0 * forward + (forward ? 1.0 : 2.0) * backward))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has it been found that this pattern is not the device's? */
static PetscErrorCode MatTCSweepsAreParents(Mat A, const Mat_AIJTCCUSPARSE *tc, const tc_backend *backend, PetscBool *parents)
{
  const MatTCSweeps *S = tc->sweeps;
  tc_key             key;

  PetscFunctionBegin;
  *parents = PETSC_FALSE;
  if (!S || S->backend != backend || !(S->reason || (S->slow && tc->settings.sor != MAT_AIJTCCUSPARSE_SOR_DEVICE))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetKey(A, tc, &key));
  *parents = MatTCSamePattern(&S->key, &key);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it a sweep that the device could do, with vectors that it has? The host goes through a matrix that it keeps to itself, and values that would stay the device's alone: see MatTCProductComputesLater() */
static PetscErrorCode MatTCSweepsCan(Mat A, const Mat_AIJTCCUSPARSE *tc, const MatTCSORArgs *args, PetscBool *can)
{
  const int         directions = args->flag & MATTC_SWEEPS_OF_OURS & ~SOR_ZERO_INITIAL_GUESS;
  const tc_backend *backend;
  PetscBool         b_there, x_there, parents;

  PetscFunctionBegin;
  *can = PETSC_FALSE;
  PetscCall(MatTCCurrentBackend(A, tc->parent, &backend));
  if (!backend->sweep || tc->settings.sor == MAT_AIJTCCUSPARSE_SOR_HOST || MatTCSparesDevice(A, tc) || MatTCLeftToParent(tc) || (MatTCIsDevicesAlone(A) && !MatTCIsPropagating())) PetscFunctionReturn(PETSC_SUCCESS);
  if (args->flag != SOR_EISENSTAT && (args->flag & ~MATTC_SWEEPS_OF_OURS || !directions || args->its < 1)) PetscFunctionReturn(PETSC_SUCCESS);
  if (args->b == args->x) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCIsOnDevice(args->b, &b_there));
  PetscCall(MatTCIsOnDevice(args->x, &x_there));
  PetscCall(MatTCSweepsAreParents(A, tc, backend, &parents));
  *can = (PetscBool)(b_there && x_there && !parents);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is prepared is used; x is what it was if that fails */
static PetscErrorCode MatTCSweepsApply(Mat_AIJTCCUSPARSE *tc, const MatTCSORArgs *args, const tc_csr_local *rows, const PetscScalar *values, tc_stream stream, tc_status *status)
{
  const PetscBool   zero    = (PetscBool)((args->flag & (SOR_ZERO_INITIAL_GUESS | SOR_EISENSTAT)) != 0);
  const tc_backend *backend = tc->sweeps->backend;
  void             *scratch = NULL;
  MatTCArray        b, x;

  PetscFunctionBegin;
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_X, args->b, MATTC_READ, stream, &b, status));
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_Z, args->x, zero ? MATTC_WRITE : MATTC_READ_WRITE, stream, &x, status));
  PetscCall(PetscLogGpuTimeBegin());
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->take(4 * (size_t)rows->num_rows * sizeof(*values), &scratch, stream));
  if (*status == TC_OK) *status = MatTCSweepsRun(tc->sweeps, rows, args, values, b.local, x.local, (PetscScalar *)scratch, stream);
  if (*status == TC_OK) *status = tc_from_backend(backend, backend->wait(MatTCGetParentStream(), stream)); /* values may change there */
  if (scratch) (void)backend->give(scratch, stream);
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatTCArrayRestore(backend, stream, &b, status));
  PetscCall(MatTCArrayRestore(backend, stream, &x, status));
  if (*status == TC_OK) PetscCall(MatTCSweepsLog(rows, args));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a sequential matrix; `done` is false when the parent has to do it */
static PetscErrorCode MatTCSweep(Mat A, Mat_AIJTCCUSPARSE *tc, const MatTCSORArgs *args, PetscBool *done)
{
  const tc_backend  *backend;
  const PetscScalar *values;
  MatTCPattern       P;
  tc_key             key;
  tc_stream          stream;
  tc_status          status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCSweepsCan(A, tc, args, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_FORWARD], &backend, &key, &stream, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
  PetscCall(MatTCGetDeviceValues(A, &values));
  if (status == TC_OK) PetscCall(MatTCSweepsPrepare(A, tc, backend, &key, &P.local, (PetscBool)(tc->settings.sor == MAT_AIJTCCUSPARSE_SOR_DEVICE), stream));
  *done = (PetscBool)(status == TC_OK && tc->sweeps->orders.memory && !tc->sweeps->reason);
  if (*done) PetscCall(MatTCSweepsLook(A, tc, tc->sweeps, &P.local, values, stream, done, &status));
  if (*done) PetscCall(MatTCSweepsApply(tc, args, &P.local, values, stream, &status));
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  if (status != TC_OK) {
    *done = PETSC_FALSE;
    if (tc->sweeps) tc->sweeps->reason = "an error of the device";
    PetscCall(PetscInfo(A, "aijtccusparse leaves MatSOR() to the parent type until the pattern changes: %s\n", tc_last_error()));
  }
  if (*done) tc->sweeps->count++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent of a parallel matrix asks its diagonal block */
PetscErrorCode MatSOR_AIJTCCUSPARSE(Mat A, Vec b, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its, PetscInt lits, Vec x)
{
  const MatTCSORArgs args = {b, x, flag, omega, shift, its * lits};
  Mat_AIJTCCUSPARSE *tc;
  PetscErrorCodeFn  *f;
  PetscBool          done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && tc->parent->mpi) PetscCall(MatTCEnsureBlocks(A, tc));
  else if (tc) PetscCall(MatTCSweep(A, tc, &args, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetParentOp(A, MATOP_SOR, &f));
  PetscCall((*(PetscErrorCode (*)(Mat, Vec, PetscReal, MatSORType, PetscReal, PetscInt, PetscInt, Vec))f)(A, b, omega, flag, shift, its, lits, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetSOR - Selects where the sweeps of `MatSOR()` with a matrix of type `MATAIJTCCUSPARSE` on the GPU are done

  Logically Collective; `sor` must contain common value

  Input Parameters:
+ A   - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- sor - `MAT_AIJTCCUSPARSE_SOR_AUTO`, `MAT_AIJTCCUSPARSE_SOR_DEVICE` or `MAT_AIJTCCUSPARSE_SOR_HOST`

  Options Database Key:
. -mat_aijtccusparse_sor (auto|device|host) - default `auto`

  Level: intermediate

  Notes:
  The rows of a level, which do not refer to each other, are done at the same time. The levels of both triangles are counted on the GPU at the first call with a pattern; `auto` stops counting, and leaves `MatSOR()` to the
  host, where there are more than it is estimated to be faster with, its copies of the vectors included. The results are those of the parent type, bit for bit where PETSc is not compiled to fuse multiplications and
  additions, whatever is selected. `PCSOR`, and so the smoothers that `PCMG` takes by default, `KSPRICHARDSON` with it, `PCEISENSTAT`, and the local sweeps of a parallel matrix come here.

  The parent's, on the host, are: `SOR_APPLY_UPPER`, with which `PCEISENSTAT` begins if the guess is not zero; matrices whose diagonal is not stored in full, or has zeros; vectors of the host; matrices that keep no CSR arrays on the GPU, or whose products are left
  to the parent type.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatSOR()`, `PCSOR`, `MatAIJTCCUSPARSESetHostFactors()`
@*/
PetscErrorCode MatAIJTCCUSPARSESetSOR(Mat A, MatAIJTCCUSPARSESOR sor)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, sor, 2);
  PetscCall(MatTCCheckChoice(A, (int)sor, MatAIJTCCUSPARSESORs));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.sor = sor;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where sweeps were done; words and numbers are those of the first process, of a parallel matrix of its diagonal block */
PetscErrorCode MatTCViewSweeps(Mat A, PetscViewer viewer)
{
  Mat                blocks[2];
  Mat_AIJTCCUSPARSE *tc;
  PetscInt           num;

  PetscFunctionBegin;
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  if (num == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCContextGet(blocks[0], &tc));
  if (!tc || !tc->sweeps) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->sweeps->reason) PetscCall(PetscViewerASCIIPrintf(viewer, "  MatSOR() left to %s: %s\n", tc->parent->type, tc->sweeps->reason));
  else if (tc->sweeps->slow) PetscCall(PetscViewerASCIIPrintf(viewer, "  MatSOR() left to the host, which is taken to be faster from %d levels of rows on\n", (int)tc->sweeps->most + 1));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "  MatSOR(): %d levels of rows forward, %d backward; %" PetscInt64_FMT " calls done on the GPU\n", (int)tc->sweeps->orders.levels[0], (int)tc->sweeps->orders.levels[1], tc->sweeps->count));
  PetscFunctionReturn(PETSC_SUCCESS);
}
