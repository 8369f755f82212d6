/*
  What belongs to other processes: rows of dense blocks, and elements of vectors, for which a parallel matrix has columns in its off-diagonal block. A column of that block is a ghost here and a
  slot where its row belongs.
*/
#pragma once
#include "../aijtccusparseimpl.h"
#include <petscsf.h>

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

/* Rows of dense blocks on their way, by PetscSF; all but `sent` is made by the first block */
typedef struct {
  PetscSF      sf;           /* from slots to ghosts */
  PetscInt     most_columns; /* of an exchange, the same for all processes */
  Vec          sent, came;   /* by rows, with as many elements as there has been need for */
  PetscMPIInt  columns;      /* of `unit`, a row; 0: there is none */
  MPI_Datatype unit;
} MatTCGhostRows;

struct _MatTCGhosts {
  PetscObjectId     id, off_diagonal; /* of the matrix, and of the block, which preallocation replaces without the matrix having another state for it */
  PetscObjectState  pattern;
  PetscInt          num_ghosts;
  MatTCNeighbours   to, from; /* of slots, of ghosts */
  PetscInt         *there;    /* [from.num] the first slot for these ghosts where their rows belong */
  MatTCSlots        slots, device_slots;
  const tc_backend *device; /* of the latter */
  MatTCGhostRows         rows;
};

/* An exchange of rows of dense blocks: what it belongs to, and what MPI has of it meanwhile */
typedef struct {
  Mat_AIJTCCUSPARSE *tc;
  MatTCGhosts       *ghosts;
  MatTCPeers        *peers; /* NULL: by PetscSF */
  const tc_backend  *backend;
  const PetscScalar *sent;
  PetscScalar       *came;
  PetscMemType       sent_type, came_type;
  PetscBool          through_host;
} MatTCExchange;

/* ghosts.c */
PETSC_INTERN PetscErrorCode MatTCGhostsGet(Mat, Mat_AIJTCCUSPARSE *, MatTCGhosts **);
PETSC_INTERN PetscErrorCode MatTCGhostsDestroy(MatTCGhosts **);
PETSC_INTERN tc_status      MatTCGhostsOnDevice(MatTCGhosts *, const tc_backend *, const MatTCSlots **);

/* ghost_rows.c */
PETSC_INTERN PetscErrorCode MatTCGhostRowsSetUp(Mat, MatTCGhosts *);
PETSC_INTERN PetscErrorCode MatTCGhostRowsDestroy(MatTCGhostRows *);
PETSC_INTERN PetscErrorCode MatTCGhostRowsBegin(MatTCExchange *, Mat, PetscInt, PetscInt);
PETSC_INTERN PetscErrorCode MatTCGhostRowsEnd(MatTCExchange *, Vec *);
PETSC_INTERN PetscErrorCode MatTCGhostRowsAddBegin(MatTCExchange *, Mat, PetscInt, PetscInt);
PETSC_INTERN PetscErrorCode MatTCGhostRowsAddEnd(MatTCExchange *, Mat, PetscInt, PetscInt);

/* peers.c */
PETSC_INTERN PetscErrorCode MatTCPeersGetForVecs(Mat, Mat_AIJTCCUSPARSE *, Vec, Vec, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCPeersGetForBlocks(Mat, Mat_AIJTCCUSPARSE *, Mat, PetscInt, MatTCPeers **);
PETSC_INTERN PetscErrorCode MatTCPeersDestroy(MatTCPeers **);
PETSC_INTERN PetscErrorCode MatTCViewPeers(const Mat_AIJTCCUSPARSE *, PetscViewer);

/* mult_peers.c */
PETSC_INTERN PetscErrorCode MatTCPeersMult(Mat, Mat_AIJTCCUSPARSE *, MatOperation, Vec, Vec, Vec);
