/*
  Which rows and elements of other processes a parallel matrix needs, and which of its own they need: a column of the off-diagonal block is a ghost here and a slot where its row belongs. Slots are
  ordered by the process that wants them, ghosts are by the process that has them. That depends on the pattern alone and is kept with the matrix.
*/
#include "ghosts.h"

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
  PetscCall(MatTCGhostRowsDestroy(&G->rows));
  PetscCall(PetscFree2(G->to.rank, G->to.first));
  PetscCall(PetscFree3(G->from.rank, G->from.first, G->there));
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
