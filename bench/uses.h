/*
  What usebench times: uses of a matrix.
*/
#pragma once
#include "generators.h"
#include <petscksp.h>

/* Incomplete factors */
enum {
  USE_ILU_0,
  USE_ILU_1,
  USE_ILU_RCM,
  USE_ICC_0,
  USE_NUM_FACTORS
};

/* A matrix, and what its uses need */
typedef struct {
  tc_matrix    S;
  PetscInt    *row, *col; /* of every entry */
  Vec          values;
  const PetscScalar *val; /* its array, where the matrix multiplies */
  Mat          A, same, transpose, P;
  Mat          again[3]; /* transpose, rows and columns of half and of odd, used again */
  Vec          x, y, scale, row_of_p, col_of_p; /* the last of P^T A P */
  Vec          part[2];
  IS           half, odd;
  KSP          ksp;
  Mat          factor[USE_NUM_FACTORS]; /* used again */
  PetscInt     columns;
  Mat          block[2]; /* right-hand sides, so many, and what they give; NULL: not yet */
  PetscInt     on_diagonal; /* entries */
  PetscInt     num_rows, *rows; /* to be zeroed */
} Use;

typedef struct {
  const char *name;
  PetscErrorCode (*use)(Use *, int);
  int       n;        /* products */
  PetscBool diagonal; /* every row has to have an entry on it */
} UseKind;

/* A table of *num rows; the last one changes the pattern for good */
const UseKind *UseKinds(size_t *num);

/* A matrix of a generator, "generator:size", square, of the type that the options name */
PetscErrorCode UseCreate(const char[], Use *);
PetscErrorCode UseDestroy(Use *);

/* uses_factors.c. An incomplete factor, as PETSc makes it for who names no solver, and one solve: with a new one each time, with new numbers, or just solved with */
PetscErrorCode UseNewILU(Use *, int);
PetscErrorCode UseILUAgain(Use *, int);
PetscErrorCode UseILU(Use *, int);
PetscErrorCode UseNewILU1(Use *, int);
PetscErrorCode UseILU1Again(Use *, int);
PetscErrorCode UseILU1(Use *, int);
PetscErrorCode UseRCMAgain(Use *, int);
PetscErrorCode UseRCM(Use *, int);
PetscErrorCode UseICCAgain(Use *, int);
PetscErrorCode UseICC(Use *, int);
PetscErrorCode UseILUBlock(Use *, int); /* solves with a block of right-hand sides, these three */
PetscErrorCode UseILU1Block(Use *, int);
PetscErrorCode UseICCBlock(Use *, int);
