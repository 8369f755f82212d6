/*
  What usebench times: uses of a matrix.
*/
#pragma once
#include "generators.h"
#include <petscksp.h>

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
  Mat          factor[2]; /* ILU(0), ICC(0), used again */
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
