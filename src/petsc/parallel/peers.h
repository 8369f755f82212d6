/*
  Processes that write elements of vectors, or of dense blocks, into each other's memory: what they have agreed on, for a matrix.
*/
#pragma once
#include "ghosts.h"

/* Ways of an exchange */
typedef enum {
  MATTC_TO_GHOSTS, /* from slots to ghosts: A x */
  MATTC_TO_SLOTS,  /* from ghosts to slots, and added: A^T x */
  MATTC_NUM_WAYS
} MatTCWayId;

/* One way */
typedef struct {
  tc_target *targets; /* one for each neighbour, on the device */
  int64_t    most;    /* rows that one of them gets */
} MatTCWay;

struct _MatTCPeers {
  PetscObjectId     id, off_diagonal; /* as MatTCGhosts */
  PetscObjectState  pattern;
  PetscInt          products; /* with the pattern */
  PetscInt          columns;  /* that an exchange has room for */
  PetscBool         agreed;   /* whether there are peers has been found out for the pattern; all processes have the same answer */
  PetscBool         usable;
  char              reason[256]; /* why not, on this process */
  const tc_backend *backend;
  MatTCGhosts      *ghosts;
  PetscMPIInt       num;             /* neighbours, with slots or ghosts here */
  void             *window, *memory; /* the latter holds targets and `arrived` */
  MatTCWay          way[MATTC_NUM_WAYS];
  uint32_t         *arrived; /* on the device */
  uint32_t         *flags;   /* in the window */
  uint32_t          generation;
  Vec               came[2];   /* either half of the window, by rows: ghosts, or slots */
  Vec               at_ghosts; /* what A^T x gives for them; NULL before the first one */
  PetscBool         at_once;   /* elements are waited for before the diagonal block, whose product takes less than another launch */
  PetscBool         has_stream;
  tc_stream         stream; /* of the last product */
};

/* push.c */
PETSC_INTERN PetscErrorCode MatTCPeersBegin(MatTCPeers *, tc_stream);
PETSC_INTERN PetscErrorCode MatTCPeersPush(Mat_AIJTCCUSPARSE *, MatTCPeers *, MatTCWayId, const int64_t[], PetscInt, Vec, tc_stream);
PETSC_INTERN PetscErrorCode MatTCPeersAwait(MatTCPeers *, tc_stream);
PETSC_INTERN PetscErrorCode MatTCPeersCame(MatTCPeers *, Vec *);
