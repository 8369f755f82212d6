/*
  Rows of parallel dense blocks that belong to other processes. A column of the off-diagonal block is a ghost here and a slot where its row belongs: slots are ordered by
  the process that wants them, ghosts are by the process that has them, and both are kept by rows, so that MPI takes them from and puts them to where they are, on the
  device too. One exchange carries all columns, up to TC_SPMM_COLUMNS. What is needed for that depends on the pattern alone and is kept with the matrix.
*/
#include "ghosts.h"
#include <petscsf.h>

struct _MatTCGhosts {
  PetscObjectId     id, off_diagonal; /* of the matrix, and of the block, which preallocation replaces without the matrix having another state for it */
  PetscObjectState  pattern;
  PetscSF           sf; /* from slots to ghosts; NULL before the first block */
  PetscInt          num_ghosts;
  MatTCNeighbours   to, from; /* of slots, of ghosts */
  PetscInt         *there;    /* [from.num] the first slot for these ghosts where their rows belong */
  PetscInt          most_columns; /* of an exchange, the same for all processes */
  MatTCSlots        slots, device_slots;
  const tc_backend *device;              /* of the latter */
  Vec               at_slots, at_ghosts; /* [num_slots, n] and [num_ghosts, n] by rows, n up to most_columns */
  PetscMPIInt       columns;             /* of `unit`, a row; 0: there is none */
  MPI_Datatype      unit;
};

static size_t MatTCSlotsPlace(int64_t num_slots, int64_t num_rows, int64_t *memory, MatTCSlots *S)
{
  if (memory) *S = (MatTCSlots){num_slots, num_rows, memory, memory + num_slots, memory + num_slots + num_rows, memory + num_slots + 2 * num_rows + 1};
  return (size_t)(2 * (num_slots + num_rows) + 1);
}

PetscErrorCode MatTCGhostsDestroy(MatTCGhosts **ghosts)
{
  MatTCGhosts *G = *ghosts;

  PetscFunctionBegin;
  if (!G) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSFDestroy(&G->sf));
  PetscCall(PetscFree2(G->to.rank, G->to.first));
  PetscCall(PetscFree3(G->from.rank, G->from.first, G->there));
  PetscCall(VecDestroy(&G->at_slots));
  PetscCall(VecDestroy(&G->at_ghosts));
  if (G->columns) PetscCallMPI(MPI_Type_free(&G->unit));
  if (G->device) G->device->release(G->device_slots.slot_row);
  PetscCall(PetscFree(G->slots.slot_row));
  PetscCall(PetscFree(G));
  *ghosts = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lists, by a counting sort of the slots by row */
static PetscErrorCode MatTCGhostsListSlots(MatTCGhosts *G, PetscInt num_local, PetscInt num_slots, const PetscInt slot_row[])
{
  MatTCSlots *S = &G->slots;
  PetscInt   *place, num_rows = 0, next = 0;
  int64_t    *memory;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(num_local + 1, &place));
  for (PetscInt s = 0; s < num_slots; s++) num_rows += place[slot_row[s]]++ == 0;
  PetscCall(PetscMalloc1(MatTCSlotsPlace(num_slots, num_rows, NULL, S), &memory));
  MatTCSlotsPlace(num_slots, num_rows, memory, S);
  num_rows = 0;
  for (PetscInt r = 0; r < num_local; r++) {
    const PetscInt num = place[r];

    place[r] = next;
    if (num == 0) continue;
    S->row[num_rows]          = r;
    S->first_slot[num_rows++] = next;
    next += num;
  }
  S->first_slot[num_rows] = next;
  for (PetscInt s = 0; s < num_slots; s++) {
    S->slot_row[s]                    = slot_row[s];
    S->row_slot[place[slot_row[s]]++] = s;
  }
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  From what belongs where by rows, whose leaves are the ghosts, by process since their names ascend: the rows that each process wants, in the order of processes, become slots, and the
  processes are told where theirs begin
*/
static PetscErrorCode MatTCGhostsMeet(MatTCGhosts *G, PetscSF by_rows, PetscInt num_local)
{
  MPI_Comm           comm;
  PetscMPIInt        num_to, num_from, tag, *order;
  const PetscMPIInt *to, *from;
  const PetscInt    *to_offset, *to_row, *from_offset, *ghost;
  PetscInt          *slot_row, num_slots = 0;
  MPI_Request       *request;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetComm((PetscObject)by_rows, &comm));
  PetscCall(PetscObjectGetNewTag((PetscObject)by_rows, &tag));
  PetscCall(PetscSFGetLeafRanks(by_rows, &num_to, &to, &to_offset, &to_row));
  PetscCall(PetscSFGetRootRanks(by_rows, &num_from, &from, &from_offset, &ghost, NULL));
  for (PetscInt e = 0; e < G->num_ghosts; e++) PetscCheck(ghost[e] == e, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Ghost %" PetscInt_FMT " comes where %" PetscInt_FMT " should: columns of an off-diagonal block are not in the order of processes", ghost[e], e);
  PetscCall(PetscMalloc2(num_to, &G->to.rank, num_to + 1, &G->to.first));
  PetscCall(PetscMalloc3(num_from, &G->from.rank, num_from + 1, &G->from.first, num_from, &G->there));
  G->to.num   = num_to;
  G->from.num = num_from;
  PetscCall(PetscArraycpy(G->from.rank, from, num_from));
  PetscCall(PetscArraycpy(G->from.first, from_offset, num_from + 1));
  PetscCall(PetscMalloc3(num_to, &order, num_to + num_from, &request, num_to > 0 ? to_offset[num_to] : 0, &slot_row));
  for (PetscMPIInt i = 0; i < num_to; i++) {
    G->to.rank[i] = to[i];
    order[i]      = i;
  }
  PetscCall(PetscSortMPIIntWithArray(num_to, G->to.rank, order));
  for (PetscMPIInt i = 0; i < num_from; i++) PetscCallMPI(MPIU_Irecv(G->there + i, 1, MPIU_INT, from[i], tag, comm, request + i));
  for (PetscMPIInt i = 0; i < num_to; i++) {
    G->to.first[i] = num_slots;
    for (PetscInt e = to_offset[order[i]]; e < to_offset[order[i] + 1]; e++) slot_row[num_slots++] = to_row[e];
    PetscCallMPI(MPIU_Isend(G->to.first + i, 1, MPIU_INT, G->to.rank[i], tag, comm, request + num_from + i));
  }
  G->to.first[num_to] = num_slots;
  PetscCallMPI(MPI_Waitall(num_to + num_from, request, MPI_STATUSES_IGNORE));
  PetscCall(MatTCGhostsListSlots(G, num_local, num_slots, slot_row));
  PetscCall(PetscFree3(order, request, slot_row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the matrix keeps, made anew for a new pattern; collective. PETSc replaces blocks, too, in collective operations only */
PetscErrorCode MatTCGhostsGet(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCGhosts **ghosts)
{
  MatTCGhosts     *G = tc->ghosts;
  PetscObjectId    id, block;
  PetscObjectState pattern;
  Mat              off_diagonal;
  const PetscInt  *names;
  PetscInt         num_local;
  PetscLayout      columns;
  PetscSF          by_rows;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, &id));
  PetscCall(MatGetNonzeroState(A, &pattern));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &off_diagonal, &names));
  PetscCall(PetscObjectGetId((PetscObject)off_diagonal, &block));
  *ghosts = G;
  if (G && G->id == id && G->pattern == pattern && G->off_diagonal == block) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGhostsDestroy(&tc->ghosts));
  PetscCall(PetscNew(&tc->ghosts));
  *ghosts = G = tc->ghosts;
  PetscCall(MatGetLocalSize(off_diagonal, NULL, &G->num_ghosts));
  PetscCall(MatGetLocalSize(A, NULL, &num_local));
  PetscCall(MatGetLayouts(A, NULL, &columns));
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &by_rows));
  PetscCall(PetscSFSetGraphLayout(by_rows, columns, G->num_ghosts, NULL, PETSC_COPY_VALUES, names));
  PetscCall(PetscSFSetUp(by_rows));
  PetscCall(MatTCGhostsMeet(G, by_rows, num_local));
  PetscCall(PetscSFDestroy(&by_rows));
  G->id           = id;
  G->pattern      = pattern;
  G->off_diagonal = block;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same, and what rows of dense blocks need beyond that: from slots to ghosts */
PetscErrorCode MatTCGhostsGetForBlocks(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCGhosts **ghosts)
{
  MPI_Comm     comm = PetscObjectComm((PetscObject)A);
  MatTCGhosts *G;
  PetscSFNode *slot;

  PetscFunctionBegin;
  PetscCall(MatTCGhostsGet(A, tc, &G));
  *ghosts = G;
  if (G->sf) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(G->num_ghosts, &slot));
  for (PetscMPIInt i = 0; i < G->from.num; i++) {
    for (PetscInt g = G->from.first[i]; g < G->from.first[i + 1]; g++) slot[g] = (PetscSFNode){.rank = G->from.rank[i], .index = G->there[i] + g - G->from.first[i]};
  }
  PetscCall(PetscSFCreate(comm, &G->sf));
  PetscCall(PetscSFSetGraph(G->sf, (PetscInt)G->slots.num_slots, G->num_ghosts, NULL, PETSC_COPY_VALUES, slot, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(G->sf));
  G->most_columns = (PetscInt)PetscMax(1, PetscMin(TC_SPMM_COLUMNS, PETSC_INT_MAX / PetscMax(1, PetscMax(G->slots.num_slots, G->num_ghosts))));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &G->most_columns, 1, MPIU_INT, MPI_MIN, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const MatTCNeighbours *MatTCGhostsTo(const MatTCGhosts *G)
{
  return &G->to;
}

const MatTCNeighbours *MatTCGhostsFrom(const MatTCGhosts *G)
{
  return &G->from;
}

PetscInt MatTCGhostsMostColumns(const MatTCGhosts *G)
{
  return G->most_columns;
}

/* The lists on the device, too */
tc_status MatTCGhostsOnDevice(MatTCGhosts *G, const tc_backend *device, const MatTCSlots **slots)
{
  const size_t bytes = MatTCSlotsPlace(G->slots.num_slots, G->slots.num_rows, NULL, NULL) * sizeof(int64_t);
  void        *memory;
  tc_status    status;

  if (slots) *slots = &G->device_slots;
  if (G->device) return TC_OK;
  TC_CALL(tc_from_backend(device, device->alloc(bytes, &memory)));
  status = tc_from_backend(device, device->upload(memory, G->slots.slot_row, bytes, MatTCGetParentStream()));
  if (status == TC_OK) {
    MatTCSlotsPlace(G->slots.num_slots, G->slots.num_rows, (int64_t *)memory, &G->device_slots);
    G->device = device;
  } else device->release(memory);
  return status;
}

/* Rows and lists for blocks of `columns` columns; the lists on the device if the exchange is to be there */
static PetscErrorCode MatTCGhostsReserve(MatTCGhosts *G, PetscBool cuda, PetscInt columns, const tc_backend *device, tc_status *status)
{
  const PetscInt num[2]  = {(PetscInt)G->slots.num_slots, G->num_ghosts};
  Vec *const     rows[2] = {&G->at_slots, &G->at_ghosts};

  PetscFunctionBegin;
  *status = TC_OK;
  for (int i = 0; i < 2; i++) {
    PetscInt  size = -1;
    PetscBool same = PETSC_FALSE;

    if (*rows[i]) {
      PetscCall(VecGetSize(*rows[i], &size));
      PetscCall(PetscObjectTypeCompare((PetscObject)*rows[i], cuda ? VECSEQCUDA : VECSEQ, &same));
    }
    if (same && size >= num[i] * columns) continue;
    PetscCall(VecDestroy(rows[i]));
    PetscCall(VecCreate(PETSC_COMM_SELF, rows[i]));
    PetscCall(VecSetSizes(*rows[i], num[i] * columns, num[i] * columns));
    PetscCall(VecSetType(*rows[i], cuda ? VECSEQCUDA : VECSEQ));
    if (cuda) PetscCall(MatTCVecSetPinned(*rows[i])); /* for an MPI that gets them by way of the host */
  }
  if (columns != G->columns) {
    if (G->columns) PetscCallMPI(MPI_Type_free(&G->unit));
    PetscCall(PetscMPIIntCast(columns, &G->columns));
    PetscCallMPI(MPI_Type_contiguous(G->columns, MPIU_SCALAR, &G->unit));
    PetscCallMPI(MPI_Type_commit(&G->unit));
  }
  if (device) *status = MatTCGhostsOnDevice(G, device, NULL);
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
static PetscErrorCode MatTCGhostsOnHost(Mat block, PetscBool cuda)
{
  PetscFunctionBegin;
  if (cuda) PetscCall(PetscInfo(block, "aijtccusparse exchanges rows of a dense block through the host: %s\n", tc_last_error()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns first to first + n - 1 of rows of the block, of its first ones if there is no list, to `rows`: by the device, if there is one, or by the host, each with a list of its own */
static PetscErrorCode MatTCGhostsPick(int64_t num, const int64_t host_row[], const int64_t device_row[], const tc_backend *device, Mat block, PetscInt first, PetscInt n, Vec rows)
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
  PetscCall(MatTCGhostsOnHost(block, (PetscBool)(device != NULL)));
  PetscCall(MatDenseGetArrayRead(block, &from));
  PetscCall(VecGetArrayWrite(rows, &to));
  MatTCPickRows(num, host_row, n, from + (size_t)first * (size_t)ld, ld, to);
  PetscCall(VecRestoreArrayWrite(rows, &to));
  PetscCall(MatDenseRestoreArrayRead(block, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The backend that moves rows of that block, if its array is there; NULL: the host does */
static PetscErrorCode MatTCGhostsDevice(Mat block, const tc_backend *backend, const tc_backend **device)
{
  PetscBool cuda;

  PetscFunctionBegin;
  *device = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)block, MATSEQDENSECUDA, &cuda));
  if (cuda && MATTC_SCALAR_IS_OURS && backend != tc_backend_host()) *device = backend;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MPI reads and writes: on the device, where it can */
static PetscErrorCode MatTCExchangeGet(MatTCExchange *X, Vec sent, Vec came)
{
  PetscFunctionBegin;
  *X = (MatTCExchange){.through_host = MatTCMPIWantsHost(), .sent_type = PETSC_MEMTYPE_HOST, .came_type = PETSC_MEMTYPE_HOST};
  PetscCall(X->through_host ? VecGetArrayRead(sent, &X->sent) : VecGetArrayReadAndMemType(sent, &X->sent, &X->sent_type));
  PetscCall(X->through_host ? VecGetArrayWrite(came, &X->came) : VecGetArrayWriteAndMemType(came, &X->came, &X->came_type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCExchangeRestore(MatTCExchange *X, Vec sent, Vec came)
{
  PetscFunctionBegin;
  PetscCall(X->through_host ? VecRestoreArrayWrite(came, &X->came) : VecRestoreArrayWriteAndMemType(came, &X->came));
  PetscCall(X->through_host ? VecRestoreArrayRead(sent, &X->sent) : VecRestoreArrayReadAndMemType(sent, &X->sent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of the local block that others want set out, columns first to first + n - 1; neighbour-wise collective. Not another exchange before the end of this one */
PetscErrorCode MatTCGhostsBegin(MatTCGhosts *G, const tc_backend *backend, Mat block, PetscInt first, PetscInt n, MatTCExchange *X)
{
  const tc_backend *device;
  tc_status         status;

  PetscFunctionBegin;
  PetscCall(MatTCGhostsDevice(block, backend, &device));
  PetscCall(MatTCGhostsReserve(G, (PetscBool)(device != NULL), n, device, &status));
  PetscCall(MatTCGhostsPick(G->slots.num_slots, G->slots.slot_row, G->device_slots.slot_row, status == TC_OK ? device : NULL, block, first, n, G->at_slots));
  PetscCall(MatTCExchangeGet(X, G->at_slots, G->at_ghosts));
  PetscCall(PetscSFBcastWithMemTypeBegin(G->sf, G->unit, X->sent_type, X->sent, X->came_type, X->came, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there: [num_ghosts, n] by rows, until the next exchange begins */
PetscErrorCode MatTCGhostsEnd(MatTCGhosts *G, MatTCExchange *X, Vec *rows)
{
  PetscFunctionBegin;
  PetscCall(PetscSFBcastEnd(G->sf, G->unit, X->sent, X->came, MPI_REPLACE));
  PetscCall(MatTCExchangeRestore(X, G->at_slots, G->at_ghosts));
  *rows = G->at_ghosts;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other way: columns first to first + n - 1 of the rows of W, one for each ghost, set out for where they belong; neighbour-wise collective */
PetscErrorCode MatTCGhostsAddBegin(MatTCGhosts *G, const tc_backend *backend, Mat W, PetscInt first, PetscInt n, MatTCExchange *X)
{
  const tc_backend *device;
  tc_status         status;

  PetscFunctionBegin;
  PetscCall(MatTCGhostsDevice(W, backend, &device));
  PetscCall(MatTCGhostsReserve(G, (PetscBool)(device != NULL), n, device, &status));
  PetscCall(MatTCGhostsPick(G->num_ghosts, NULL, NULL, device, W, first, n, G->at_ghosts));
  PetscCall(MatTCExchangeGet(X, G->at_ghosts, G->at_slots));
  PetscCall(PetscSFReduceWithMemTypeBegin(G->sf, G->unit, X->sent_type, X->sent, X->came_type, X->came, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They are there, and added to these columns of the block */
PetscErrorCode MatTCGhostsAddEnd(MatTCGhosts *G, const tc_backend *backend, Mat block, PetscInt first, PetscInt n, MatTCExchange *X)
{
  const MatTCSlots  *S = &G->device_slots;
  const tc_backend  *device;
  const PetscScalar *from;
  PetscScalar       *to;
  PetscMemType       type;
  PetscInt           ld;
  tc_status          status = TC_ERR_UNSUPPORTED;

  PetscFunctionBegin;
  PetscCall(PetscSFReduceEnd(G->sf, G->unit, X->sent, X->came, MPI_REPLACE));
  PetscCall(MatTCExchangeRestore(X, G->at_ghosts, G->at_slots));
  if (G->slots.num_rows == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDenseGetLDA(block, &ld));
  PetscCall(MatTCGhostsDevice(block, backend, &device));
  PetscCall(VecGetArrayReadAndMemType(G->at_slots, &from, &type));
  if (!G->device || PetscMemTypeHost(type)) device = NULL; /* W may be on the host */
  if (device) {
    PetscCall(MatDenseGetArrayAndMemType(block, &to, &type));
    if (PetscMemTypeHost(type)) device = NULL; /* bound to the CPU */
    else status = tc_from_backend(device, device->add_rows(S->num_rows, S->row, S->first_slot, S->row_slot, n, MATTC_SCALAR, from, to + (size_t)first * (size_t)ld, ld, MatTCGetParentStream()));
    PetscCall(MatDenseRestoreArrayAndMemType(block, &to));
  }
  PetscCall(VecRestoreArrayReadAndMemType(G->at_slots, &from));
  if (status == TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGhostsOnHost(block, (PetscBool)(device != NULL)));
  PetscCall(VecGetArrayRead(G->at_slots, &from));
  PetscCall(MatDenseGetArray(block, &to));
  MatTCAddRows(&G->slots, n, from, to + (size_t)first * (size_t)ld, ld);
  PetscCall(MatDenseRestoreArray(block, &to));
  PetscCall(VecRestoreArrayRead(G->at_slots, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}
