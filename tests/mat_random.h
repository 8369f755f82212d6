/*
  What mat_random.c, the walk, and mat_random_operations.c, mat_random_host.c and mat_random_solves.c, the operations it is made of, share.
*/
#pragma once
#include "mat_util.h"

enum { OURS, THEIRS, NUM_SIDES };

typedef struct {
  uint64_t  state; /* of the random numbers, which all processes draw alike */
  PetscInt  n;
  Mat       A[NUM_SIDES], earlier[NUM_SIDES]; /* earlier: NULL, or what Duplicate() left behind */
  Mat       B, product, transposed;           /* A B and A^T B, kept to be used again, or NULL */
  PetscBool same;
  PetscBool petsc_multiplies; /* products with dense blocks are PETSc's */
} Walk;

/* z = A x, y + A x, y - A x or y += A x */
typedef enum {
  PRODUCT,
  SUM,
  RESIDUAL,
  IN_PLACE,
  NUM_FORMS
} Form;

/* Random numbers: of 64 bits from others; below a bound; an integer that is not 0, so that no side drops what the other one keeps; a vector of integers, a function of the seed */
uint64_t       MatRandomMix(uint64_t);
PetscInt       MatRandomDraw(Walk *, PetscInt);
PetscScalar    MatRandomNumber(Walk *);
PetscErrorCode MatRandomFill(Vec, uint64_t);

/* A product of both matrices, or with `turned` their transposes (no residual), with vectors of integers: compares the results. The same of local parts of dense matrices. */
PetscErrorCode MatRandomMultiply(Walk *, const Mat[], Form, PetscBool turned);
PetscErrorCode MatRandomCompareDense(Walk *, Mat, Mat);
PetscErrorCode MatRandomCompare(Walk *, Vec, Vec);

/* Rows of a number get five entries each, near the diagonal or anywhere, by whatever process, on both sides */
PetscErrorCode MatRandomAddEntries(Walk *, const Mat[], PetscInt);

/* A dense matrix of the host, its rows like those of a matrix: a number of columns, of integers, the last number at most */
PetscErrorCode MatRandomCreateDense(Walk *, Mat, PetscInt, PetscInt, Mat *);

/* Both sides get the same new matrix; new values in the pattern they have and beside it; products that are kept are forgotten */
PetscErrorCode MatRandomCreate(Walk *, Mat[]);
PetscErrorCode MatRandomNewEntries(Walk *);
PetscErrorCode MatRandomForgetProducts(Walk *, PetscBool same_matrix);

typedef struct {
  const char *name;
  PetscErrorCode (*run)(Walk *);
} MatRandomOperation;

/* Operation i, or NULL behind the last one; of mat_random_host.c and what follows, of mat_random_solves.c */
const MatRandomOperation *MatRandomOperationAt(PetscInt);
const MatRandomOperation *MatRandomHostOperationAt(PetscInt);
const MatRandomOperation *MatRandomSolveOperationAt(PetscInt);
