/*
  Rows of parallel dense blocks that belong to other processes. Both slots and ghosts are kept by rows, so that MPI takes them from and puts them to where they are, on the device too, or so do
  kernels (peers.h). One exchange carries all columns, up to TC_SPMM_COLUMNS.
*/
#include "peers.h"

/* What PetscSF needs, once for a pattern; collective */
PetscErrorCode MatTCGhostRowsSetUp(Mat A, MatTCGhosts *G)
{
  MatTCGhostRows *R    = &G->rows;
  MPI_Comm        comm = PetscObjectComm((PetscObject)A);
  PetscSFNode    *slot;

  PetscFunctionBegin;
  if (R->sf) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(G->num_ghosts, &slot));
  for (PetscMPIInt i = 0; i < G->from.num; i++) {
    for (PetscInt g = G->from.first[i]; g < G->from.first[i + 1]; g++) slot[g] = (PetscSFNode){.rank = G->from.rank[i], .index = G->there[i] + g - G->from.first[i]};
  }
  PetscCall(PetscSFCreate(comm, &R->sf));
  PetscCall(PetscSFSetGraph(R->sf, (PetscInt)G->slots.num_slots, G->num_ghosts, NULL, PETSC_COPY_VALUES, slot, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(R->sf));
  R->most_columns = (PetscInt)PetscMax(1, PetscMin(TC_SPMM_COLUMNS, PETSC_INT_MAX / PetscMax(1, PetscMax(G->slots.num_slots, G->num_ghosts))));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &R->most_columns, 1, MPIU_INT, MPI_MIN, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCGhostRowsDestroy(MatTCGhostRows *R)
{
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&R->sf));
  PetscCall(VecDestroy(&R->sent));
  PetscCall(VecDestroy(&R->came));
  if (R->columns) PetscCallMPI(MPI_Type_free(&R->unit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for so many elements */
static PetscErrorCode MatTCGhostRowsReserve(Vec *rows, PetscInt num, PetscBool cuda)
{
  PetscInt  size = -1;
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  if (*rows) {
    PetscCall(VecGetSize(*rows, &size));
    PetscCall(PetscObjectTypeCompare((PetscObject)*rows, cuda ? VECSEQCUDA : VECSEQ, &same));
  }
  if (same && size >= num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDestroy(rows));
  PetscCall(VecCreate(PETSC_COMM_SELF, rows));
  PetscCall(VecSetSizes(*rows, num, num));
  PetscCall(VecSetType(*rows, cuda ? VECSEQCUDA : VECSEQ));
  if (cuda) PetscCall(MatTCVecSetPinned(*rows)); /* for an MPI that gets them by way of the host */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCGhostRowsSetUnit(MatTCGhostRows *R, PetscInt columns)
{
  PetscFunctionBegin;
  if (columns == R->columns) PetscFunctionReturn(PETSC_SUCCESS);
  if (R->columns) PetscCallMPI(MPI_Type_free(&R->unit));
  PetscCall(PetscMPIIntCast(columns, &R->columns));
  PetscCallMPI(MPI_Type_contiguous(R->columns, MPIU_SCALAR, &R->unit));
  PetscCallMPI(MPI_Type_commit(&R->unit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to[j + i * n] = from[row[i] + j * ld], of row i without a list; on the host */
static void MatTCPickRows(int64_t num, const int64_t row[], PetscInt n, const PetscScalar from[], PetscInt ld, PetscScalar to[])
{
  for (PetscInt j = 0; j < n; j++) {
    const PetscScalar *column = from + (size_t)j * (size_t)ld;

    for (int64_t i = 0; i < num; i++) to[j + i * n] = column[row ? row[i] : i];
  }
}

/* The sum of the slots of a row is added to it; on the host */
static void MatTCAddRows(const MatTCSlots *S, PetscInt n, const PetscScalar from[], PetscScalar to[], PetscInt ld)
{
  for (PetscInt j = 0; j < n; j++) {
    PetscScalar *column = to + (size_t)j * (size_t)ld;

    for (int64_t i = 0; i < S->num_rows; i++) {
      PetscScalar sum = from[j + S->row_slot[S->first_slot[i]] * n];

      for (int64_t s = S->first_slot[i] + 1; s < S->first_slot[i + 1]; s++) sum += from[j + S->row_slot[s] * n];
      column[S->row[i]] += sum;
    }
  }
}

/* Says why the host does what the device was to do */
static PetscErrorCode MatTCGhostRowsOnHost(Mat block, PetscBool cuda)
{
  PetscFunctionBegin;
  if (cuda) PetscCall(PetscInfo(block, "aijtccusparse exchanges rows of a dense block through the host: %s\n", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns first to first + n - 1 of rows of the block, of its first ones if there is no list, to `rows`: by the device, if there is one, or by the host, each with a list of its own */
static PetscErrorCode MatTCGhostRowsPick(int64_t num, const int64_t host_row[], const int64_t device_row[], const tc_backend *device, Mat block, PetscInt first, PetscInt n, Vec rows)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscMemType       from_type, to_type;
  PetscInt           ld;
  tc_status          status = TC_ERR_UNSUPPORTED;

  PetscFunctionBegin;
  if (num == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDenseGetLDA(block, &ld));
  if (device) {
    PetscCall(MatDenseGetArrayReadAndMemType(block, &from, &from_type));
    PetscCall(VecGetArrayWriteAndMemType(rows, &to, &to_type));
    if (PetscMemTypeHost(from_type) || PetscMemTypeHost(to_type)) device = NULL; /* bound to the CPU */
    else status = tc_from_backend(device, device->pick_rows(num, device_row, n, MATTC_SCALAR, from + (size_t)first * (size_t)ld, ld, to, MatTCGetParentStream()));
    PetscCall(VecRestoreArrayWriteAndMemType(rows, &to));
    PetscCall(MatDenseRestoreArrayReadAndMemType(block, &from));
    if (status == TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCGhostRowsOnHost(block, (PetscBool)(device != NULL)));
  PetscCall(MatDenseGetArrayRead(block, &from));
  PetscCall(VecGetArrayWrite(rows, &to));
  MatTCPickRows(num, host_row, n, from + (size_t)first * (size_t)ld, ld, to);
  PetscCall(VecRestoreArrayWrite(rows, &to));
  PetscCall(MatDenseRestoreArrayRead(block, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The backend that moves rows of that block, if its array is there; NULL: the host does */
static PetscErrorCode MatTCGhostRowsDevice(Mat block, const tc_backend *backend, const tc_backend **device)
{
  PetscBool cuda;

  PetscFunctionBegin;
  *device = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)block, MATSEQDENSECUDA, &cuda));
  if (cuda && MATTC_SCALAR_IS_OURS && backend != tc_backend_host()) *device = backend;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MPI reads and writes: on the device, where it can */
static PetscErrorCode MatTCExchangeGet(MatTCExchange *X, MatTCGhostRows *R)
{
  PetscFunctionBegin;
  X->through_host = MatTCMPIWantsHost();
  X->sent_type = X->came_type = PETSC_MEMTYPE_HOST;
  PetscCall(X->through_host ? VecGetArrayRead(R->sent, &X->sent) : VecGetArrayReadAndMemType(R->sent, &X->sent, &X->sent_type));
  PetscCall(X->through_host ? VecGetArrayWrite(R->came, &X->came) : VecGetArrayWriteAndMemType(R->came, &X->came, &X->came_type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCExchangeRestore(MatTCExchange *X, MatTCGhostRows *R)
{
  PetscFunctionBegin;
  PetscCall(X->through_host ? VecRestoreArrayWrite(R->came, &X->came) : VecRestoreArrayWriteAndMemType(R->came, &X->came));
  PetscCall(X->through_host ? VecRestoreArrayRead(R->sent, &X->sent) : VecRestoreArrayReadAndMemType(R->sent, &X->sent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns first to first + n - 1 of rows of a block, of all its rows without lists, set out, and there will be room for those that come; neighbour-wise collective */
static PetscErrorCode MatTCGhostRowsSend(MatTCExchange *X, MatTCWayId way, Mat block, PetscInt first, PetscInt n)
{
  MatTCGhosts      *G      = X->ghosts;
  MatTCGhostRows        *R      = &G->rows;
  const PetscBool   wanted = (PetscBool)(way == MATTC_TO_GHOSTS);
  const PetscInt    num[2] = {(PetscInt)G->slots.num_slots, G->num_ghosts};
  const tc_stream   stream = MatTCGetParentStream();
  const tc_backend *device;
  PetscBool         cuda;

  PetscFunctionBegin;
  PetscCall(MatTCGhostRowsDevice(block, X->backend, &device));
  if (X->peers) PetscCall(MatTCPeersBegin(X->peers, stream));
  cuda = (PetscBool)(device || X->peers);
  PetscCall(MatTCGhostRowsReserve(&R->sent, num[!wanted] * n, cuda));
  if (device && MatTCGhostsOnDevice(G, device, NULL) != TC_OK) device = NULL;
  PetscCall(MatTCGhostRowsPick(num[!wanted], wanted ? G->slots.slot_row : NULL, wanted ? G->device_slots.slot_row : NULL, device, block, first, n, R->sent));
  if (X->peers) {
    PetscCall(MatTCPeersPush(X->tc, X->peers, way, NULL, n, R->sent, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCGhostRowsReserve(&R->came, num[wanted] * n, cuda));
  PetscCall(MatTCGhostRowsSetUnit(R, n));
  PetscCall(MatTCExchangeGet(X, R));
  if (wanted) PetscCall(PetscSFBcastWithMemTypeBegin(R->sf, R->unit, X->sent_type, X->sent, X->came_type, X->came, MPI_REPLACE));
  else PetscCall(PetscSFReduceWithMemTypeBegin(R->sf, R->unit, X->sent_type, X->sent, X->came_type, X->came, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there, by rows, until the next exchange */
static PetscErrorCode MatTCGhostRowsArrive(MatTCExchange *X, MatTCWayId way, Vec *came)
{
  MatTCGhostRows *R = &X->ghosts->rows;

  PetscFunctionBegin;
  if (X->peers) {
    PetscCall(MatTCPeersAwait(X->peers, MatTCGetParentStream()));
    PetscCall(MatTCPeersCame(X->peers, came));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (way == MATTC_TO_GHOSTS) PetscCall(PetscSFBcastEnd(R->sf, R->unit, X->sent, X->came, MPI_REPLACE));
  else PetscCall(PetscSFReduceEnd(R->sf, R->unit, X->sent, X->came, MPI_REPLACE));
  PetscCall(MatTCExchangeRestore(X, R));
  *came = R->came;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of the local block that others want set out, columns first to first + n - 1; neighbour-wise collective. Not another exchange before the end of this one */
PetscErrorCode MatTCGhostRowsBegin(MatTCExchange *X, Mat block, PetscInt first, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(MatTCGhostRowsSend(X, MATTC_TO_GHOSTS, block, first, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there: [num_ghosts, n] by rows, until the next exchange begins */
PetscErrorCode MatTCGhostRowsEnd(MatTCExchange *X, Vec *rows)
{
  PetscFunctionBegin;
  PetscCall(MatTCGhostRowsArrive(X, MATTC_TO_GHOSTS, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other way: columns first to first + n - 1 of the rows of W, one for each ghost, set out for where they belong; neighbour-wise collective */
PetscErrorCode MatTCGhostRowsAddBegin(MatTCExchange *X, Mat W, PetscInt first, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(MatTCGhostRowsSend(X, MATTC_TO_SLOTS, W, first, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there, and added to these columns of the block */
PetscErrorCode MatTCGhostRowsAddEnd(MatTCExchange *X, Mat block, PetscInt first, PetscInt n)
{
  const MatTCGhosts *G = X->ghosts;
  const MatTCSlots  *S = &G->device_slots;
  const tc_backend  *device;
  const PetscScalar *from;
  PetscScalar       *to;
  PetscMemType       type;
  PetscInt           ld;
  Vec                came;
  tc_status          status = TC_ERR_UNSUPPORTED;

  PetscFunctionBegin;
  PetscCall(MatTCGhostRowsArrive(X, MATTC_TO_SLOTS, &came));
  if (G->slots.num_rows == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDenseGetLDA(block, &ld));
  PetscCall(MatTCGhostRowsDevice(block, X->backend, &device));
  PetscCall(VecGetArrayReadAndMemType(came, &from, &type));
  if (!G->device || PetscMemTypeHost(type)) device = NULL; /* W may be on the host */
  if (device) {
    PetscCall(MatDenseGetArrayAndMemType(block, &to, &type));
    if (PetscMemTypeHost(type)) device = NULL; /* bound to the CPU */
    else status = tc_from_backend(device, device->add_rows(S->num_rows, S->row, S->first_slot, S->row_slot, n, MATTC_SCALAR, from, to + (size_t)first * (size_t)ld, ld, MatTCGetParentStream()));
    PetscCall(MatDenseRestoreArrayAndMemType(block, &to));
  }
  PetscCall(VecRestoreArrayReadAndMemType(came, &from));
  if (status == TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGhostRowsOnHost(block, (PetscBool)(device != NULL)));
  PetscCall(VecGetArrayRead(came, &from));
  PetscCall(MatDenseGetArray(block, &to));
  MatTCAddRows(&G->slots, n, from, to + (size_t)first * (size_t)ld, ld);
  PetscCall(MatDenseRestoreArray(block, &to));
  PetscCall(VecRestoreArrayRead(came, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}
