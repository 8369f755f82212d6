/*
  Processes that write elements of vectors into each other's memory: what they have agreed on, for a matrix.
*/
#pragma once
#include "ghosts.h"

/* Ways of an exchange */
enum {
  MATTC_TO_GHOSTS, /* from slots to ghosts: A x */
  MATTC_TO_SLOTS,  /* from ghosts to slots, and added: A^T x */
  MATTC_NUM_WAYS
};

/* One way */
typedef struct {
  tc_target *targets; /* one for each neighbour, on the device */
  int64_t    most;    /* elements that one of them gets */
  uint32_t  *arrived; /* on the device */
  uint32_t  *flags;   /* in the window */
  void      *half[2]; /* likewise: what comes */
  uint32_t   generation;
} MatTCWay;

struct _MatTCPeers {
  PetscObjectId     id, off_diagonal; /* as MatTCGhosts */
  PetscObjectState  pattern;
  PetscInt          products; /* with the pattern */
  PetscBool         agreed;   /* whether there are peers has been found out for the pattern; all processes have the same answer */
  PetscBool         usable;
  char              reason[256]; /* why not, on this process */
  const tc_backend *backend;
  MatTCGhosts      *ghosts;
  PetscMPIInt       num; /* neighbours, with slots or ghosts here */
  PetscInt          num_ghosts;
  void             *window, *memory; /* the latter holds targets and `arrived` */
  MatTCWay          way[MATTC_NUM_WAYS];
  Vec               came[2];   /* ghosts, in either half */
  Vec               at_ghosts; /* what A^T x gives for them */
  PetscBool         at_once;   /* elements are waited for before the diagonal block, whose product takes less than another launch */
  PetscBool         has_stream;
  tc_stream         stream; /* of the last product */
};
