/*
  Elements that belong to other processes, without the host: where all neighbours of all processes of a matrix are on the same machine and have GPUs of their own, kernels write them into the
  neighbours' memory (tc_exchange.h), in the place of PetscSF, which waits for the GPU and for MPI. The bits are those of that exchange on the host. Vectors have a window, dense blocks another.
*/
#include "peers.h"

enum { PRODUCTS_BEFORE = 4 }; /* with a pattern by the parent's exchange: agreeing takes some ten times what a product saves */

enum { ENTRIES_AT_ONCE = 500000 }; /* of a diagonal block whose product, some 3 us, hides nothing that a launch of 2.5 would not cost */

static const size_t MOST_BYTES = (size_t)1 << 30; /* of a window, which the process keeps: 32 columns of two million rows */

/* What one neighbour tells another: places in its window that are the other's, in bytes, but for the first row of either way */
typedef struct {
  tc_window_name name;
  int64_t        half[2], flag, place[MATTC_NUM_WAYS];
  int64_t        usable;
} MatTCCard;

/* Where things are in the window, bytes */
typedef struct {
  size_t half[2], flags, bytes;
} MatTCWindowPlan;

static size_t MatTCReserve(size_t bytes, MatTCWindowPlan *plan)
{
  const size_t begin = plan->bytes;

  plan->bytes += (bytes + TC_WINDOW_ALIGNMENT - 1) / TC_WINDOW_ALIGNMENT * TC_WINDOW_ALIGNMENT;
  return begin;
}

/* Both ways take turns in both halves */
static MatTCWindowPlan MatTCPlanWindow(PetscMPIInt num, size_t elements)
{
  MatTCWindowPlan plan = {.bytes = 0};

  plan.flags = MatTCReserve((size_t)num * sizeof(uint32_t), &plan);
  for (int h = 0; h < 2; h++) plan.half[h] = MatTCReserve(elements * sizeof(PetscScalar), &plan);
  return plan;
}

static PetscErrorCode MatTCPeersForget(MatTCPeers *P)
{
  PetscFunctionBegin;
  for (int h = 0; h < 2; h++) PetscCall(VecDestroy(&P->came[h]));
  PetscCall(VecDestroy(&P->at_ghosts));
  if (P->memory) P->backend->release(P->memory);
  if (P->window) P->backend->exchange->release(P->window);
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCPeersDestroy(MatTCPeers **peers)
{
  PetscFunctionBegin;
  if (*peers) PetscCall(MatTCPeersForget(*peers));
  PetscCall(PetscFree(*peers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This process and those neighbours cannot */
static PetscErrorCode MatTCPeersRefuse(MatTCPeers *P, const char reason[])
{
  PetscFunctionBegin;
  if (P->usable) PetscCall(PetscStrncpy(P->reason, reason, sizeof(P->reason)));
  P->usable = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The neighbours, ascending: both lists are, and where each has its slots and ghosts, -1: none */
static PetscErrorCode MatTCPeersMerge(const MatTCNeighbours *to, const MatTCNeighbours *from, PetscMPIInt *num, PetscMPIInt rank[], PetscMPIInt place[][MATTC_NUM_WAYS])
{
  PetscMPIInt t = 0, f = 0;

  PetscFunctionBegin;
  for (*num = 0; t < to->num || f < from->num; ++*num) {
    const PetscBool take_to   = (PetscBool)(t < to->num && (f == from->num || to->rank[t] <= from->rank[f]));
    const PetscBool take_from = (PetscBool)(f < from->num && (t == to->num || from->rank[f] <= to->rank[t]));

    rank[*num]           = take_to ? to->rank[t] : from->rank[f];
    place[*num][MATTC_TO_GHOSTS] = take_to ? t++ : -1;
    place[*num][MATTC_TO_SLOTS] = take_from ? f++ : -1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the neighbours on the same machine? */
static PetscErrorCode MatTCPeersAreNear(Mat A, MatTCPeers *P, const PetscMPIInt rank[])
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_MPI_PROCESS_SHARED_MEMORY)
  PetscShmComm near;

  PetscCall(PetscShmCommGet(PetscObjectComm((PetscObject)A), &near));
  for (PetscMPIInt k = 0; k < P->num; k++) {
    PetscMPIInt local;

    PetscCall(PetscShmCommGlobalToLocal(near, rank[k], &local));
    if (local == MPI_PROC_NULL) PetscCall(MatTCPeersRefuse(P, "two processes are on different machines"));
  }
#else
  (void)A, (void)rank;
  PetscCall(MatTCPeersRefuse(P, "PETSc was configured without shared memory of MPI"));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Cards go to and come from all neighbours */
static PetscErrorCode MatTCPeersMeet(Mat A, PetscMPIInt num, const PetscMPIInt rank[], const MatTCCard mine[], MatTCCard theirs[])
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt    tag;
  MPI_Request   *request;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &tag));
  PetscCall(PetscMalloc1(2 * num, &request));
  for (PetscMPIInt k = 0; k < num; k++) PetscCallMPI(MPI_Irecv(theirs + k, (PetscMPIInt)sizeof(MatTCCard), MPI_BYTE, rank[k], tag, comm, request + k));
  for (PetscMPIInt k = 0; k < num; k++) PetscCallMPI(MPI_Isend(mine + k, (PetscMPIInt)sizeof(MatTCCard), MPI_BYTE, rank[k], tag, comm, request + num + k));
  PetscCallMPI(MPI_Waitall(2 * num, request, MPI_STATUSES_IGNORE));
  PetscCall(PetscFree(request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where what goes to each neighbour is to be, by their cards; on the device afterwards */
static tc_status MatTCPeersAim(MatTCPeers *P, const PetscMPIInt place[][MATTC_NUM_WAYS], const MatTCCard theirs[], tc_target targets[])
{
  const MatTCNeighbours *lists[MATTC_NUM_WAYS] = {&P->ghosts->to, &P->ghosts->from};
  const size_t           all     = MATTC_NUM_WAYS * (size_t)P->num, bytes = all * sizeof(tc_target) + (size_t)P->num * sizeof(uint32_t);
  const tc_backend      *backend = P->backend;
  void                  *begin;

  for (PetscMPIInt k = 0; k < P->num; k++) {
    TC_CHECK(theirs[k].usable, TC_ERR_UNSUPPORTED, "a neighbour cannot");
    TC_CALL(tc_from_backend(backend, backend->exchange->open(&theirs[k].name, &begin)));
    for (int w = 0; w < MATTC_NUM_WAYS; w++) {
      const PetscMPIInt i = place[k][w];

      targets[w * P->num + k] = (tc_target){
        .half  = {(char *)begin + theirs[k].half[0], (char *)begin + theirs[k].half[1]},
        .flag  = (uint32_t *)((char *)begin + theirs[k].flag),
        .place = theirs[k].place[w],
        .first = i < 0 ? 0 : lists[w]->first[i],
        .num   = i < 0 ? 0 : lists[w]->first[i + 1] - lists[w]->first[i]
      };
      P->way[w].most = PetscMax(P->way[w].most, targets[w * P->num + k].num);
    }
  }
  TC_CALL(tc_from_backend(backend, backend->alloc(bytes, &P->memory)));
  TC_CALL(tc_from_backend(backend, backend->zero(P->memory, bytes, MatTCGetParentStream())));
  TC_CALL(tc_from_backend(backend, backend->upload(P->memory, targets, all * sizeof(tc_target), MatTCGetParentStream())));
  for (int w = 0; w < MATTC_NUM_WAYS; w++) P->way[w].targets = (tc_target *)P->memory + w * P->num;
  P->arrived = (uint32_t *)((tc_target *)P->memory + all);
  return tc_from_backend(backend, backend->synchronize(MatTCGetParentStream()));
}

/* A window with a place for each neighbour, and what tells the neighbours */
static tc_status MatTCPeersOpenWindow(MatTCPeers *P, const MatTCWindowPlan *plan, tc_window_name *name)
{
  const MatTCSlots *slots;

  TC_CHECK(plan->bytes <= MOST_BYTES, TC_ERR_LIMIT, "an exchange would take %zu bytes of the GPU for good, at most %zu are taken", plan->bytes, MOST_BYTES);
  TC_CALL(MatTCGhostsOnDevice(P->ghosts, P->backend, &slots));
  TC_CALL(tc_from_backend(P->backend, P->backend->exchange->alloc(plan->bytes, &P->window, name)));
  P->flags = (uint32_t *)((char *)P->window + plan->flags);
  return TC_OK;
}

/* What comes, as vectors, and when it is waited for */
static PetscErrorCode MatTCPeersCreateVecs(Mat A, MatTCPeers *P, const MatTCWindowPlan *plan, PetscInt elements)
{
  Mat     diagonal;
  MatInfo info;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, NULL, NULL));
  PetscCall(MatGetInfo(diagonal, MAT_LOCAL, &info));
  P->at_once = (PetscBool)(P->columns == 1 && info.nz_used < ENTRIES_AT_ONCE);
  for (int h = 0; h < 2; h++) PetscCall(VecCreateSeqCUDAWithArrays(PETSC_COMM_SELF, 1, elements, NULL, (PetscScalar *)((char *)P->window + plan->half[h]), &P->came[h]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything that an exchange needs, on all processes or on none; collective */
static PetscErrorCode MatTCPeersSetUp(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCPeers *P)
{
  const MatTCNeighbours *to, *from;
  MatTCWindowPlan        plan;
  MatTCCard             *mine, *theirs;
  tc_window_name         name = {{0}};
  tc_target             *targets;
  tc_status              status;
  PetscBool              bound;
  PetscMPIInt           *rank, most, usable, all_usable;
  PetscInt               elements;
  PetscMPIInt(*place)[MATTC_NUM_WAYS];

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  if (bound) PetscCall(MatTCPeersRefuse(P, "the matrix is bound to the CPU"));
  P->backend = MatTCGetBackendOfPeers();
  PetscCall(MatTCGhostsGet(A, tc, &P->ghosts));
  to       = &P->ghosts->to;
  from     = &P->ghosts->from;
  most     = to->num + from->num;
  elements = PetscMax(P->ghosts->num_ghosts, (PetscInt)P->ghosts->slots.num_slots) * P->columns;
  PetscCall(PetscMalloc5(most, &rank, most, &place, most, &mine, most, &theirs, MATTC_NUM_WAYS * most, &targets));
  PetscCall(MatTCPeersMerge(to, from, &P->num, rank, place));
  PetscCall(MatTCPeersAreNear(A, P, rank));
  plan   = MatTCPlanWindow(P->num, (size_t)elements);
  status = MatTCPeersOpenWindow(P, &plan, &name);
  if (status != TC_OK) PetscCall(MatTCPeersRefuse(P, tc_last_error()));
  for (PetscMPIInt k = 0; k < P->num; k++) {
    const PetscMPIInt slots = place[k][MATTC_TO_GHOSTS], ghosts = place[k][MATTC_TO_SLOTS];

    mine[k] = (MatTCCard){
      .name   = name,
      .usable = P->usable,
      .flag   = (int64_t)(plan.flags + (size_t)k * sizeof(uint32_t)),
      .half   = {(int64_t)plan.half[0], (int64_t)plan.half[1]},
      .place  = {ghosts < 0 ? 0 : from->first[ghosts], slots < 0 ? 0 : to->first[slots]}
    };
  }
  PetscCall(MatTCPeersMeet(A, P->num, rank, mine, theirs));
  if (P->usable) {
    status = MatTCPeersAim(P, (const PetscMPIInt(*)[MATTC_NUM_WAYS])place, theirs, targets);
    if (status != TC_OK) PetscCall(MatTCPeersRefuse(P, tc_last_error()));
  }
  if (P->usable) PetscCall(MatTCPeersCreateVecs(A, P, &plan, elements));
  PetscCall(PetscFree5(rank, place, mine, theirs, targets));
  usable = P->usable;
  PetscCallMPI(MPI_Allreduce(&usable, &all_usable, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  if (!all_usable) PetscCall(MatTCPeersRefuse(P, "another process cannot"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do processes of the matrix share a GPU? Found out once for a communicator; collective */
static PetscErrorCode MatTCPeersShareDevices(Mat A, PetscBool *share)
{
  static PetscMPIInt key = MPI_KEYVAL_INVALID;
  static char        known[2]; /* their addresses are the attribute */
  const MPI_Comm     comm = PetscObjectComm((PetscObject)A);
  tc_window_name     mine, *all;
  PetscMPIInt        size, found, same = 0, all_same;
  void              *value;

  PetscFunctionBegin;
  if (key == MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
  PetscCallMPI(MPI_Comm_get_attr(comm, key, &value, &found));
  if (!found) {
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(PetscMalloc1(size, &all));
    if (MatTCGetBackend(PETSC_TRUE)->exchange->name_device(&mine) != TC_OK) same = 2; /* nobody knows */
    PetscCallMPI(MPI_Allgather(&mine, (PetscMPIInt)sizeof(mine), MPI_BYTE, all, (PetscMPIInt)sizeof(mine), MPI_BYTE, comm));
    for (PetscMPIInt r = 0; r < size; r++) same += memcmp(all + r, &mine, sizeof(mine)) == 0;
    PetscCall(PetscFree(all));
    PetscCallMPI(MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MAX, comm));
    value = known + (all_same > 1);
    PetscCallMPI(MPI_Comm_set_attr(comm, key, value));
  }
  *share = (PetscBool)(value == known + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All processes agree; collective */
static PetscErrorCode MatTCPeersDecide(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCPeers *P)
{
  PetscBool share = PETSC_FALSE;

  PetscFunctionBegin;
  P->agreed = P->usable = PETSC_TRUE;
  if (tc->settings.exchange == MAT_AIJTCCUSPARSE_EXCHANGE_AUTO) PetscCall(MatTCPeersShareDevices(A, &share));
  if (share) PetscCall(MatTCPeersRefuse(P, "processes share a GPU"));
  else PetscCall(MatTCPeersSetUp(A, tc, P));
  if (P->usable) PetscCall(PetscInfo(A, "aijtccusparse exchanges elements, of up to %" PetscInt_FMT " columns, with %d neighbours in their memory\n", P->columns, P->num));
  else PetscCall(PetscInfo(A, "aijtccusparse exchanges elements by PetscSF: %s\n", P->reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Forgets what belongs to another pattern, or has no room for so many columns; collective, as PETSc replaces blocks in collective operations only */
static PetscErrorCode MatTCPeersFollow(Mat A, MatTCPeers **peers, PetscInt columns)
{
  MatTCPeers      *P = *peers;
  PetscObjectId    id, block;
  PetscObjectState pattern;
  Mat              off_diagonal;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, &id));
  PetscCall(MatGetNonzeroState(A, &pattern));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &off_diagonal, NULL));
  PetscCall(PetscObjectGetId((PetscObject)off_diagonal, &block));
  if (P && P->id == id && P->pattern == pattern && P->off_diagonal == block && (P->columns >= columns || (P->agreed && !P->usable))) PetscFunctionReturn(PETSC_SUCCESS);
  if (P) PetscCall(MatTCPeersForget(P));
  else PetscCall(PetscNew(peers));
  P               = *peers;
  P->id           = id;
  P->pattern      = pattern;
  P->off_diagonal = block;
  P->columns      = columns;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do processes exchange elements of so many columns as peers? Collective */
static PetscErrorCode MatTCPeersGet(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCPeers **peers, PetscInt columns, PetscBool *usable)
{
  const MatAIJTCCUSPARSEExchange exchange = tc->settings.exchange;
  MatTCPeers                    *P;
  PetscMPIInt                    size;

  PetscFunctionBegin;
  *usable = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size == 1 || !tc->parent->cuda || !MATTC_SCALAR_IS_OURS || exchange == MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPeersFollow(A, peers, columns));
  P = *peers;
  P->products++;
  if (!P->agreed) {
    if (exchange == MAT_AIJTCCUSPARSE_EXCHANGE_AUTO && P->products <= PRODUCTS_BEFORE) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscLogEventBegin(MATTC_Peers, A, 0, 0, 0));
    PetscCall(MatTCPeersDecide(A, tc, P));
    PetscCall(PetscLogEventEnd(MATTC_Peers, A, 0, 0, 0));
  }
  *usable = P->usable;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Do peers exchange for a product of the parallel matrix with these vectors, y may be NULL, or does the parent? Collective, and the same on all processes: all that decides is the same on them, which
  what is bound to the CPU need not be, or has been agreed on.
*/
PetscErrorCode MatTCPeersGetForVecs(Mat A, Mat_AIJTCCUSPARSE *tc, Vec x, Vec y, Vec z, PetscBool *peers)
{
  const Vec vecs[] = {x, y, z};
  PetscBool cuda;

  PetscFunctionBegin;
  *peers = PETSC_FALSE;
  if (tc->settings.spmv == MAT_AIJTCCUSPARSE_SPMV_PARENT) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(vecs); i++) {
    if (!vecs[i]) continue;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)vecs[i], &cuda, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
    if (!cuda) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCPeersGet(A, tc, &tc->peers, 1, peers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for a product with a parallel block, and so many columns at a time; NULL: PetscSF exchanges */
PetscErrorCode MatTCPeersGetForBlocks(Mat A, Mat_AIJTCCUSPARSE *tc, Mat B, PetscInt columns, MatTCPeers **peers)
{
  PetscBool cuda, usable = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &cuda, MATSEQDENSECUDA, MATMPIDENSECUDA, ""));
  if (cuda) PetscCall(MatTCPeersGet(A, tc, &tc->block_peers, columns, &usable));
  *peers = usable ? tc->block_peers : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCCUSPARSESetExchange - Selects what takes elements of vectors, and rows of dense blocks, to other processes in products of the matrix

  Logically Collective; `exchange` must contain common value

  Input Parameters:
+ A        - the matrix; the call is ignored unless it is of type `MATAIJTCCUSPARSE`
- exchange - `MAT_AIJTCCUSPARSE_EXCHANGE_AUTO`, `MAT_AIJTCCUSPARSE_EXCHANGE_PEER` or `MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF`

  Options Database Key:
. -mat_aijtccusparse_exchange (auto|peer|petscsf) - what exchanges elements, default `auto`

  Level: intermediate

  Notes:
  Takes effect at the next product of a parallel matrix, `MatMult()`, its relatives or `MatResidual()` with vectors on GPUs, `MatMatMult()` or `MatTransposeMatMult()` with a `MATDENSECUDA` block. What was
  chosen, for vectors and for blocks, is shown by `-info`, and by `MatView()` with `PETSC_VIEWER_ASCII_INFO`.

  `PetscSF` waits for the GPU, for MPI, and in most installations for copies to the host and back. If all processes that exchange are on one machine, kernels can write elements straight into the
  memory of the other GPU, by CUDA IPC, and nobody waits. That is what `MAT_AIJTCCUSPARSE_EXCHANGE_PEER` does from the first product on, and `MAT_AIJTCCUSPARSE_EXCHANGE_AUTO` after four
  with a pattern and vectors, and with blocks, provided that no two processes of the matrix share a GPU. Where they do, a kernel that waits for another process keeps its GPU from that process for some milliseconds, and
  with the multi-process service of CUDA, if what is enqueued behind fills the GPU, for good\: `MAT_AIJTCCUSPARSE_EXCHANGE_PEER` is for small matrices there, and for tests. Each process keeps
  32 MB of its GPU for it, or what it takes, twice what comes from others at a time, to the next power of two\; if that were more than 1 GB, which blocks alone come to, it is `PetscSF`.

  All processes agree on it, once for a pattern, and for blocks of more columns than before. Where one cannot, all have `PetscSF`; so too with vectors and blocks on the host, and where the matrix is
  bound to the CPU then.

  `PetscSF` adds on a GPU what comes from several processes for one row in any order, so that products of a vector with the transpose of a matrix on three processes or more need not have the
  same bits twice. Kernels add in the order of processes, as the host does.

.seealso: [](ch_matrices), `Mat`, `MATAIJTCCUSPARSE`, `MatAIJTCCUSPARSEExchange`, `MatMult()`, `PetscSF`
@*/
PetscErrorCode MatAIJTCCUSPARSESetExchange(Mat A, MatAIJTCCUSPARSEExchange exchange)
{
  Mat_AIJTCCUSPARSE *tc;
  MatTCSettings      settings;

  PetscFunctionBegin;
  PetscCall(MatTCGetSettings(A, &tc, &settings));
  PetscValidLogicalCollectiveEnum(A, exchange, 2);
  PetscCall(MatTCCheckChoice(A, (int)exchange, MatAIJTCCUSPARSEExchanges));
  if (!tc) PetscFunctionReturn(PETSC_SUCCESS);
  settings.exchange = exchange;
  PetscCall(MatTCSetSettings(tc, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How elements are exchanged; words are those of the first process */
PetscErrorCode MatTCViewPeers(const Mat_AIJTCCUSPARSE *tc, PetscViewer viewer)
{
  const MatTCPeers *const peers[] = {tc->peers, tc->block_peers};
  const char *const       what[]  = {"elements of vectors", "rows of dense blocks"};

  PetscFunctionBegin;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(peers); i++) {
    const MatTCPeers *P = peers[i];

    if (!P || !P->agreed) continue;
    if (P->usable) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s are exchanged in the memory of %d neighbours, the first process's\n", what[i], P->num));
    else PetscCall(PetscViewerASCIIPrintf(viewer, "  %s are exchanged by PetscSF: %s\n", what[i], P->reason));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
