/*
  What belongs to other processes: rows of dense blocks, and elements of vectors, for which a parallel matrix has columns in its off-diagonal block. A column of that block is a ghost here and a
  slot where its row belongs.
*/
#pragma once
#include "aijtccusparseimpl.h"

/* Whose rows the slots are, and the other way round; one allocation, which begins with slot_row */
typedef struct {
  int64_t  num_slots, num_rows;         /* rows that are sent, and different ones among them */
  int64_t *slot_row;                    /* [num_slots] row of the block */
  int64_t *row, *first_slot, *row_slot; /* [num_rows], ascending; [num_rows + 1]; [num_slots], those of a row in the order of processes */
} MatTCSlots;

/* Processes, ascending, and the first of what each has of slots or of ghosts */
typedef struct {
  PetscMPIInt  num, *rank; /* [num] */
  PetscInt    *first;      /* [num + 1] */
} MatTCNeighbours;

/* Rows of a dense block on their way */
typedef struct {
  const PetscScalar *sent;
  PetscScalar       *came;
  PetscMemType       sent_type, came_type;
  PetscBool          through_host;
} MatTCExchange;

/* ghosts.c */
PETSC_INTERN PetscErrorCode         MatTCGhostsGet(Mat, Mat_AIJTCCUSPARSE *, MatTCGhosts **);
PETSC_INTERN PetscErrorCode         MatTCGhostsGetForBlocks(Mat, Mat_AIJTCCUSPARSE *, MatTCGhosts **);
PETSC_INTERN PetscErrorCode         MatTCGhostsDestroy(MatTCGhosts **);
PETSC_INTERN PetscInt               MatTCGhostsMostColumns(const MatTCGhosts *);
PETSC_INTERN const MatTCNeighbours *MatTCGhostsTo(const MatTCGhosts *);
PETSC_INTERN const MatTCNeighbours *MatTCGhostsFrom(const MatTCGhosts *);
PETSC_INTERN tc_status              MatTCGhostsOnDevice(MatTCGhosts *, const tc_backend *, const MatTCSlots **);
PETSC_INTERN PetscErrorCode         MatTCGhostsBegin(MatTCGhosts *, const tc_backend *, Mat, PetscInt, PetscInt, MatTCExchange *);
PETSC_INTERN PetscErrorCode         MatTCGhostsEnd(MatTCGhosts *, MatTCExchange *, Vec *);
PETSC_INTERN PetscErrorCode         MatTCGhostsAddBegin(MatTCGhosts *, const tc_backend *, Mat, PetscInt, PetscInt, MatTCExchange *);
PETSC_INTERN PetscErrorCode         MatTCGhostsAddEnd(MatTCGhosts *, const tc_backend *, Mat, PetscInt, PetscInt, MatTCExchange *);

/* peers.c */
PETSC_INTERN PetscErrorCode MatTCPeersGet(Mat, Mat_AIJTCCUSPARSE *, Vec, Vec, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCPeersDestroy(MatTCPeers **);
PETSC_INTERN PetscErrorCode MatTCViewPeers(const Mat_AIJTCCUSPARSE *, PetscViewer);

/* mult_peers.c */
PETSC_INTERN PetscErrorCode MatTCPeersMult(Mat, Mat_AIJTCCUSPARSE *, MatOperation, Vec, Vec, Vec);
