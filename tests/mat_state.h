/*
  The changes that mat_state.c makes to a matrix: each is applied to a matrix of our type and to a MATAIJ with the same content.
*/
#pragma once
#include "mat_util.h"

/* What a change may use: matrices of the type of the one that is changed */
typedef struct {
  Mat same;   /* other values, same pattern */
  Mat subset; /* the diagonal */
  Mat other;  /* another pattern */
  Vec left, right;
} StateOperands;

typedef struct {
  const char *name;
  PetscErrorCode (*change)(Mat, const StateOperands *);
  MatTestVerdict expected; /* of the next product */
} StateChange;

/* The host alone has the newest values then, of a parallel matrix of its diagonal block */
PetscErrorCode StateMoveToHost(Mat);

/* mat_state_diagonal.c: MatShift() and MatDiagonalSet() */
PetscErrorCode CheckDiagonals(void);

/* mat_state_blocks.c: MatInvertBlockDiagonal() */
PetscErrorCode CheckInvertedBlocks(void);

/* mat_state_parts.c: submatrices and transposes used again */
PetscErrorCode CheckParts(void);

/* mat_state_codes.c: values that repeat, in a large matrix */
PetscErrorCode CheckCodes(void);

/* A table of *num rows */
const StateChange *StateChanges(int *num);
