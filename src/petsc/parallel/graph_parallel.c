/*
  The graph of a parallel matrix: each process adds up what is in the blocks of its rows, of the diagonal block as of what refers to rows of others, and is told what scales those and,
  where the transpose is to be added, what they refer to.
*/
#include "../aijtccusparseimpl.h"
#include <petscsf.h>

/* Blocks of rows of others, and by whom they are told. `sf` has the rows of each process as roots, and the ghosts as leaves. */
typedef struct {
  MPI_Comm    comm;
  PetscLayout rows;
  PetscSF     sf;
  PetscInt    num, *name; /* [num] */
} MatTCGraphGhosts;

/* Of each block that this process refers to the first row, as PETSc has it. Collective */
static PetscErrorCode MatTCGraphGhostsCreate(MPI_Comm comm, PetscInt bs, PetscInt num_rows, PetscInt num, const PetscInt names[], MatTCGraphGhosts *ghosts)
{
  PetscFunctionBegin;
  ghosts->comm = comm;
  ghosts->num  = num;
  PetscCall(PetscMalloc1(num, &ghosts->name));
  for (PetscInt g = 0; g < num; g++) ghosts->name[g] = names[g * bs] / bs;
  PetscCall(PetscLayoutCreateFromSizes(comm, num_rows, PETSC_DETERMINE, 1, &ghosts->rows));
  PetscCall(PetscSFCreate(comm, &ghosts->sf));
  PetscCall(PetscSFSetGraphLayout(ghosts->sf, ghosts->rows, num, NULL, PETSC_COPY_VALUES, ghosts->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCGraphGhostsDestroy(MatTCGraphGhosts *ghosts)
{
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&ghosts->sf));
  PetscCall(PetscLayoutDestroy(&ghosts->rows));
  PetscCall(PetscFree(ghosts->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCGraphTell(PetscSF sf, MPI_Datatype unit, const void *mine, void *theirs)
{
  PetscFunctionBegin;
  PetscCall(PetscSFBcastBegin(sf, unit, mine, theirs, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, unit, mine, theirs, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What refers to rows of others, of the ghosts: their rows as their processes have them, with the names of columns. MatTCGraphPartDestroy() it. Collective */
static PetscErrorCode MatTCGraphGetGhostRows(const MatTCGraphGhosts *ghosts, const MatTCGraphPart *part, MatTCGraphPart *theirs)
{
  const PetscSFNode *owner;
  PetscSFNode       *remote;
  PetscSF            entries;
  PetscInt          *range, *there, *names;

  PetscFunctionBegin;
  theirs->num = ghosts->num;
  PetscCall(PetscMalloc3(2 * part->num, &range, 2 * ghosts->num, &there, part->row[part->num], &names));
  for (PetscInt i = 0; i < part->num; i++) {
    range[2 * i]     = part->row[i];
    range[2 * i + 1] = part->row[i + 1] - part->row[i];
  }
  for (PetscInt k = 0; k < part->row[part->num]; k++) names[k] = ghosts->name[part->col[k]];
  PetscCall(MatTCGraphTell(ghosts->sf, MPIU_2INT, range, there));
  PetscCall(PetscMalloc1(ghosts->num + 1, &theirs->row));
  theirs->row[0] = 0;
  for (PetscInt g = 0; g < ghosts->num; g++) theirs->row[g + 1] = theirs->row[g] + there[2 * g + 1];
  PetscCall(PetscSFGetGraph(ghosts->sf, NULL, NULL, NULL, &owner));
  PetscCall(PetscMalloc1(theirs->row[ghosts->num], &remote));
  for (PetscInt g = 0; g < ghosts->num; g++) {
    for (PetscInt k = 0; k < there[2 * g + 1]; k++) {
      remote[theirs->row[g] + k].rank  = owner[g].rank;
      remote[theirs->row[g] + k].index = there[2 * g] + k;
    }
  }
  PetscCall(PetscSFCreate(ghosts->comm, &entries));
  PetscCall(PetscSFSetGraph(entries, part->row[part->num], theirs->row[ghosts->num], NULL, PETSC_COPY_VALUES, remote, PETSC_OWN_POINTER));
  PetscCall(PetscMalloc1(theirs->row[ghosts->num], &theirs->col));
  PetscCall(PetscMalloc1(theirs->row[ghosts->num], &theirs->sums));
  PetscCall(MatTCGraphTell(entries, MPIU_INT, names, theirs->col));
  PetscCall(MatTCGraphTell(entries, MPIU_SCALAR, part->sums, theirs->sums));
  PetscCall(PetscSFDestroy(&entries));
  PetscCall(PetscFree3(range, there, names));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same as MatTCGraphAddTranspose() for columns of others, whose rows these are; rows of this process begin with `first`. Not collective */
static PetscErrorCode MatTCGraphAddGhostRows(const MatTCGraphPart *part, const MatTCGraphPart *theirs, PetscInt first, PetscScalar **sums, PetscBool *same)
{
  PetscInt *next; /* of each ghost: where its entry for the row at hand is, if it has one */

  PetscFunctionBegin;
  *same = PETSC_TRUE;
  PetscCall(PetscMalloc1(theirs->num, &next));
  PetscCall(PetscMalloc1(part->row[part->num], sums));
  for (PetscInt g = 0; g < theirs->num; g++) {
    next[g] = theirs->row[g];
    while (next[g] < theirs->row[g + 1] && theirs->col[next[g]] < first) next[g]++;
  }
  for (PetscInt i = 0; i < part->num && *same; i++) {
    for (PetscInt k = part->row[i]; k < part->row[i + 1]; k++) {
      const PetscInt of = part->col[k], at = next[of]++;

      if (at >= theirs->row[of + 1] || theirs->col[at] != first + i) {
        *same = PETSC_FALSE;
        break;
      }
      (*sums)[k] = part->sums[k] + theirs->sums[at];
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the transpose to it, if that has the same pattern on all processes; each looks for the counterparts of its entries. Collective */
static PetscErrorCode MatTCGraphAddTransposeParallel(const MatTCGraphGhosts *ghosts, MatTCGraphPart part[2], PetscBool *same)
{
  MatTCGraphPart theirs = {0};
  PetscScalar   *both[2];
  PetscInt       first;
  PetscBool      mine[2];

  PetscFunctionBegin;
  PetscCall(PetscLayoutGetRange(ghosts->rows, &first, NULL));
  PetscCall(MatTCGraphGetGhostRows(ghosts, &part[1], &theirs));
  PetscCall(MatTCGraphAddTranspose(&part[0], &both[0], &mine[0]));
  PetscCall(MatTCGraphAddGhostRows(&part[1], &theirs, first, &both[1], &mine[1]));
  mine[0] = (PetscBool)(mine[0] && mine[1]);
  PetscCallMPI(MPIU_Allreduce(&mine[0], same, 1, MPI_C_BOOL, MPI_LAND, ghosts->comm));
  for (int b = 0; b < 2; b++) PetscCall(MatTCGraphPartTake(&part[b], both[b], *same));
  PetscCall(MatTCGraphPartDestroy(&theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode MatTCGraphScaleParts(const MatTCGraphGhosts *ghosts, MatTCGraphPart part[2])
{
  PetscScalar *mine, *theirs;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(part[0].num, &mine, ghosts->num, &theirs));
  MatTCGraphGetScale(&part[0], mine);
  PetscCall(MatTCGraphTell(ghosts->sf, MPIU_SCALAR, mine, theirs));
  MatTCGraphScale(&part[0], mine, mine);
  MatTCGraphScale(&part[1], mine, theirs);
  PetscCall(PetscFree2(mine, theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type of A over these arrays, which go with its blocks */
static PetscErrorCode MatTCGraphCreateParallel(Mat A, MatTCGraphPart part[2], const MatTCGraphGhosts *ghosts, Mat *G)
{
  const PetscInt n = part[0].num;
  Mat            blocks[2];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < part[1].row[n]; k++) part[1].col[k] = ghosts->name[part[1].col[k]];
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)A), n, n, PETSC_DETERMINE, PETSC_DETERMINE, part[0].row, part[0].col, part[0].sums, part[1].row, part[1].col, part[1].sums, G));
  PetscCall(MatMPIAIJGetSeqAIJ(*G, &blocks[0], &blocks[1], NULL));
  for (int b = 0; b < 2; b++) PetscCall(MatTCGraphPartLeaveTo(&part[b], blocks[b]));
  PetscCall(MatTCGraphConvert(A, G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL if it is the parent's, on all processes then. `left` becomes true if the transpose is still to be added, and then to be scaled. Collective */
PetscErrorCode MatTCCreateGraphParallel(Mat A, const Mat_AIJTCCUSPARSE *tc, PetscInt bs, PetscBool adds, PetscBool scale, Mat *graph, PetscBool *left)
{
  Mat              blocks[2];
  MatTCGraphPart   part[2] = {{0}, {0}};
  MatTCGraphGhosts ghosts;
  const PetscInt  *names;
  PetscInt         num, num_ghosts;
  PetscBool        mine, ours, same = PETSC_TRUE;

  PetscFunctionBegin;
  *graph = NULL;
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  PetscCall(MatHasCongruentLayouts(A, &mine));
  if (num < 2) mine = PETSC_FALSE;
  for (int b = 0; b < 2 && mine; b++) PetscCall(MatTCGraphPartGet(blocks[b], bs, PETSC_FALSE, PETSC_FALSE, &part[b], &mine));
  PetscCallMPI(MPIU_Allreduce(&mine, &ours, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (ours) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, NULL, &names));
    PetscCall(MatGetLocalSize(blocks[1], NULL, &num_ghosts));
    PetscCall(MatTCGraphGhostsCreate(PetscObjectComm((PetscObject)A), bs, part[0].num, num_ghosts / bs, names, &ghosts));
    if (adds) PetscCall(MatTCGraphAddTransposeParallel(&ghosts, part, &same));
    if (scale && same) PetscCall(MatTCGraphScaleParts(&ghosts, part));
    PetscCall(MatTCGraphCreateParallel(A, part, &ghosts, graph));
    PetscCall(MatTCGraphGhostsDestroy(&ghosts));
    *left = (PetscBool)!same;
  }
  for (int b = 0; b < 2; b++) PetscCall(MatTCGraphPartDestroy(&part[b]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
