/*
  Products with vectors. All operations serve sequential and parallel matrices: a parallel one makes sure that its blocks are ours and calls its parent, which
  multiplies with them; a sequential one keeps what it has packed current and multiplies with that, or calls its parent.
*/
#include "parallel/ghosts.h"

/*
  z = op(A) x (y == NULL) or z = y + sign op(A) x with what is packed for that side, which is current, or straight from the rows given. `done` is false when that failed: z is
  to be computed anew. The side is out of use then, but not by what cuSPARSE has not done.
*/
PetscErrorCode MatTCMultiply(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, const tc_backend *backend, const MatTCRows *rows, int sign, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  const PetscBool   host     = (PetscBool)(backend == tc_backend_host());
  const PetscBool   in_place = (PetscBool)(y == z);
  MatTCArray        ax, ay, az;
  MatInfo           info;
  tc_status         status = TC_OK;
  PetscBool         timed;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  timed = (PetscBool)tc_straight_wants_times(backend, (int64_t)info.nz_used);
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_X, x, MATTC_READ, stream, &ax, &status));
  if (y && !in_place) PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_Y, y, MATTC_READ, stream, &ay, &status));
  PetscCall(MatTCArrayGet(tc, backend, MATTC_STAGE_Z, z, in_place ? MATTC_READ_WRITE : MATTC_WRITE, stream, &az, &status));
  if (status == TC_OK) {
    if (!host) PetscCall(PetscLogGpuTimeBegin());
    const PetscScalar *to = !y ? NULL : in_place ? az.local : ay.local;
    PetscLogDouble     begin = 0, end = 0;

    if (timed) PetscCall(PetscTime(&begin));
    if (rows) status = (rows->cusparse ? tc_straight_multiply_cusparse : tc_straight_multiply)(&side->straight, backend, &rows->key, &rows->matrix, ax.local, to, az.local, sign, stream);
    else status = tc_plan_spmv(side->plan, ax.local, to, az.local, sign, stream);
    if (!host) PetscCall(PetscLogGpuTimeEnd());
    if (timed) {
      PetscCall(PetscTime(&end));
      tc_straight_timed(&side->straight, rows ? TC_STRAIGHT_PRODUCT : TC_STRAIGHT_PACKED, 1000 * (end - begin));
    }
  }
  PetscCall(MatTCArrayRestore(backend, stream, &ax, &status));
  if (y && !in_place) PetscCall(MatTCArrayRestore(backend, stream, &ay, &status));
  PetscCall(MatTCArrayRestore(backend, stream, &az, &status));
  *done = (PetscBool)(status == TC_OK);
  if (*done) {
    PetscLogDouble flops;

    flops = 2.0 * info.nz_used - (y || (host && side == &tc->side[MATTC_TRANSPOSE]) ? 0.0 : (PetscLogDouble)side->nonempty_rows); /* as the parent's: on the host that of a transpose adds to zeros */
    PetscCall(host ? PetscLogFlops(flops) : PetscLogGpuFlops(flops));
  } else if (!rows || !rows->cusparse) PetscCall(MatTCFail(A, tc, side, "a product", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same with what is packed */
PetscErrorCode MatTCApply(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSide *side, int sign, Vec x, Vec y, Vec z, tc_stream stream, PetscBool *done)
{
  const PetscBool collects = (PetscBool)tc_plan_collects(side->plan, stream);

  PetscFunctionBegin;
  if (collects) {
    PetscCall(PetscInfo(A, "aijtccusparse looks for values that repeat, as these have been multiplied with often enough\n"));
    PetscCall(PetscLogEventBegin(MATTC_Collect, A, x, z, 0));
  }
  PetscCall(MatTCMultiply(A, tc, side, tc_plan_backend(side->plan), NULL, sign, x, y, z, stream, done));
  if (collects) PetscCall(PetscLogEventEnd(MATTC_Collect, A, x, z, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same with a sequential matrix, which need not be current; what is not of its transpose may be cuSPARSE's by choice */
PetscErrorCode MatTCTry(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSideId id, int sign, Vec x, Vec y, Vec z, PetscBool *done)
{
  const PetscBool chosen = (PetscBool)(id == MATTC_FORWARD);
  MatTCSide      *side   = &tc->side[id];
  PetscBool       lost   = PETSC_FALSE;
  tc_stream       stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (chosen) PetscCall(MatTCTrialLost(A, tc, &lost));
  if (lost) {
    PetscCall(MatTCTheirs(A, tc, sign, x, y, z, done));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  side->may_wait = PETSC_TRUE;
  PetscCall(MatTCEnsure(A, tc, side, &stream, done));
  side->may_wait = PETSC_FALSE;
  if (side->waits) {
    PetscCall(MatTCStraight(A, tc, side, PETSC_FALSE, sign, x, y, z, stream, done));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (*done) PetscCall(MatTCApply(A, tc, side, sign, x, y, z, stream, done));
  if (*done && chosen) PetscCall(MatTCTrialCount(A, tc, x, y, z, stream, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By peers, if there are any; y may be NULL, or z. A parallel matrix, whose blocks become ours */
static PetscErrorCode MatTCMultParallel(Mat A, Mat_AIJTCCUSPARSE *tc, MatOperation op, Vec x, Vec y, Vec z)
{
  PetscBool peers;

  PetscFunctionBegin;
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCPeersGetForVecs(A, tc, x, y, z, &peers));
  if (peers) PetscCall(MatTCPeersMult(A, tc, op, x, y, z));
  else PetscCall(MatTCParentMult(A, tc->parent, op, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCMult(Mat A, MatOperation op, Vec x, Vec y, Vec z)
{
  const MatTCSideId  side = op == MATOP_MULT_TRANSPOSE || op == MATOP_MULT_TRANSPOSE_ADD ? MATTC_TRANSPOSE : MATTC_FORWARD;
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscBool          done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  if (!tc) { /* another object took the operations over without the context */
    PetscCall(MatTCParentOf(A, &parent));
    PetscCall(MatTCParentMult(A, parent, op, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tc->parent->mpi) {
    PetscCall(MatTCMultParallel(A, tc, op, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCTry(A, tc, side, tc->subtract ? -1 : 1, x, y, z, &done));
  if (!done && tc->subtract) PetscCall(MatTCParentSubtract(A, tc->parent, x, y, z));
  else if (!done) PetscCall(MatTCParentMult(A, tc->parent, op, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_AIJTCCUSPARSE(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_AIJTCCUSPARSE(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_AIJTCCUSPARSE(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_TRANSPOSE, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_AIJTCCUSPARSE(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatTCMult(A, MATOP_MULT_TRANSPOSE_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  r = b - A x of a parallel matrix is its MatMultAdd() with blocks that subtract: the diagonal block while the ghost values travel, then the other one in
  place. `done` is false if a block is not ours.
*/
static PetscErrorCode MatTCResidualOfBlocks(Mat A, Mat_AIJTCCUSPARSE *tc, Vec b, Vec x, Vec r, PetscBool *done)
{
  Mat                blocks[2];
  Mat_AIJTCCUSPARSE *of_block[2];
  PetscInt           num;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  for (PetscInt i = 0; i < num; i++) {
    PetscCall(MatTCContextGet(blocks[i], &of_block[i]));
    if (!of_block[i]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  *done = PETSC_TRUE;
  for (PetscInt i = 0; i < num; i++) of_block[i]->subtract = PETSC_TRUE;
  ierr = MatTCMultParallel(A, tc, MATOP_MULT_ADD, x, b, r);
  for (PetscInt i = 0; i < num; i++) of_block[i]->subtract = PETSC_FALSE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatResidual() itself looks at nothing: what MatMultAdd() asks of its arguments. */
static PetscErrorCode MatTCResidualCheck(Mat A, Vec b, Vec x, Vec r)
{
  static const char *const names[] = {"x", "b", "r"};
  const Vec                vecs[]  = {x, b, r};
  PetscBool                assembled;
  MatFactorType            factor;
  PetscInt                 global[2], local[2];

  PetscFunctionBegin;
  PetscCall(MatAssembled(A, &assembled));
  PetscCheck(assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "MatResidual(): not for an unassembled matrix");
  PetscCall(MatGetFactorType(A, &factor));
  PetscCheck(factor == MAT_FACTOR_NONE, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "MatResidual(): not for a factored matrix");
  PetscCheck(x != r, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_IDN, "MatResidual(): x and r must be different vectors");
  PetscCall(MatGetSize(A, &global[1], &global[0]));
  PetscCall(MatGetLocalSize(A, &local[1], &local[0]));
  for (int v = 0; v < 3; v++) {
    PetscInt N, n;

    PetscCall(VecGetSize(vecs[v], &N));
    PetscCall(VecGetLocalSize(vecs[v], &n));
    PetscCheck(N == global[v > 0], PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_SIZ, "MatResidual(): %s has %" PetscInt_FMT " elements, expected %" PetscInt_FMT ", the %s of the matrix", names[v], N, global[v > 0], v > 0 ? "rows" : "columns");
    PetscCheck(n == local[v > 0], PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "MatResidual(): %s has %" PetscInt_FMT " local elements, expected %" PetscInt_FMT ", the local %s of the matrix", names[v], n, local[v > 0], v > 0 ? "rows" : "columns");
  }
  PetscCall(VecSetErrorIfLocked(r, 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x in one pass; r may be b */
PetscErrorCode MatResidual_AIJTCCUSPARSE(Mat A, Vec b, Vec x, Vec r)
{
  Mat_AIJTCCUSPARSE *tc;
  Vec                right = b;
  PetscBool          done  = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatTCResidualCheck(A, b, x, r));
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && tc->parent->mpi && !MatTCLeftToParent(tc)) PetscCall(MatTCResidualOfBlocks(A, tc, b, x, r, &done));
  else if (tc && !tc->parent->mpi) PetscCall(MatTCTry(A, tc, MATTC_FORWARD, -1, x, b, r, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (r == b) {
    PetscCall(VecDuplicate(b, &right));
    PetscCall(VecCopy(b, right));
  }
  PetscCall(MatTCMult(A, MATOP_MULT, x, NULL, r));
  PetscCall(VecAYPX(r, -1.0, right));
  if (r == b) PetscCall(VecDestroy(&right));
  PetscFunctionReturn(PETSC_SUCCESS);
}
