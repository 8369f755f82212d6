/*
  The graph of a parallel matrix: each process adds up what is in the blocks of its rows, of the diagonal block as of what refers to rows of others, and is told what scales those.
*/
#include "aijtccusparseimpl.h"
#include <petscsf.h>

/* The blocks of rows of others that this process refers to: of each block the first, as PETSc has it. PetscFree() them */
static PetscErrorCode MatTCGraphGetGhosts(PetscInt bs, PetscInt num, const PetscInt names[], PetscInt **ghosts)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(num, ghosts));
  for (PetscInt g = 0; g < num; g++) (*ghosts)[g] = names[g * bs] / bs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `part` is of the columns of this process and of those of `ghosts`. Collective */
static PetscErrorCode MatTCGraphScaleParts(MPI_Comm comm, MatTCGraphPart part[2], PetscInt num, const PetscInt ghosts[])
{
  PetscScalar *mine, *theirs;
  PetscLayout  rows;
  PetscSF      sf;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(part[0].num, &mine, num, &theirs));
  MatTCGraphGetScale(&part[0], mine);
  PetscCall(PetscLayoutCreateFromSizes(comm, part[0].num, PETSC_DETERMINE, 1, &rows));
  PetscCall(PetscSFCreate(comm, &sf));
  PetscCall(PetscSFSetGraphLayout(sf, rows, num, NULL, PETSC_COPY_VALUES, ghosts));
  PetscCall(PetscSFBcastBegin(sf, MPIU_SCALAR, mine, theirs, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_SCALAR, mine, theirs, MPI_REPLACE));
  MatTCGraphScale(&part[0], mine, mine);
  MatTCGraphScale(&part[1], mine, theirs);
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(PetscLayoutDestroy(&rows));
  PetscCall(PetscFree2(mine, theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type of A over these arrays, which go with its blocks */
static PetscErrorCode MatTCGraphCreateParallel(Mat A, MatTCGraphPart part[2], const PetscInt ghosts[], Mat *G)
{
  const PetscInt n = part[0].num;
  Mat            blocks[2];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < part[1].row[n]; k++) part[1].col[k] = ghosts[part[1].col[k]];
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)A), n, n, PETSC_DETERMINE, PETSC_DETERMINE, part[0].row, part[0].col, part[0].sums, part[1].row, part[1].col, part[1].sums, G));
  PetscCall(MatMPIAIJGetSeqAIJ(*G, &blocks[0], &blocks[1], NULL));
  for (int b = 0; b < 2; b++) PetscCall(MatTCGraphPartLeaveTo(&part[b], blocks[b]));
  PetscCall(MatTCGraphConvert(A, G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL if it is the parent's, on all processes then. `left` becomes true if the transpose is still to be added, and then to be scaled. Collective */
PetscErrorCode MatTCCreateGraphParallel(Mat A, const Mat_AIJTCCUSPARSE *tc, PetscInt bs, PetscBool adds, PetscBool scale, Mat *graph, PetscBool *left)
{
  Mat             blocks[2];
  MatTCGraphPart  part[2] = {{0}, {0}};
  const PetscInt *names;
  PetscInt        num, num_ghosts = 0, *ghosts = NULL;
  PetscBool       mine, ours;

  PetscFunctionBegin;
  *graph = NULL;
  PetscCall(MatTCEnsureBlocks(A, tc));
  PetscCall(MatTCGetBlocks(A, &num, blocks));
  PetscCall(MatHasCongruentLayouts(A, &mine));
  if (num < 2) mine = PETSC_FALSE;
  if (mine) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, NULL, &names));
    PetscCall(MatGetLocalSize(blocks[1], NULL, &num_ghosts));
    num_ghosts /= bs;
    PetscCall(MatTCGraphGetGhosts(bs, num_ghosts, names, &ghosts));
  }
  for (int b = 0; b < 2 && mine; b++) PetscCall(MatTCGraphPartGet(blocks[b], bs, &part[b], &mine));
  PetscCallMPI(MPIU_Allreduce(&mine, &ours, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (ours) {
    if (scale && !adds) PetscCall(MatTCGraphScaleParts(PetscObjectComm((PetscObject)A), part, num_ghosts, ghosts));
    PetscCall(MatTCGraphCreateParallel(A, part, ghosts, graph));
    *left = adds;
  }
  for (int b = 0; b < 2; b++) PetscCall(MatTCGraphPartDestroy(&part[b]));
  PetscCall(PetscFree(ghosts));
  PetscFunctionReturn(PETSC_SUCCESS);
}
