/*
  What the PETSc-level tests share. Each program runs on any number of processes, prints one line per fact and a last line "N passed, N failed, N skipped".
*/
#pragma once
#include "../bench/generators.h"
#include "../bench/oracle.h"
#include <petscmataijtccusparse.h>

typedef enum {
  MATTEST_HIT,
  MATTEST_REFILL,
  MATTEST_REBUILD,
  MATTEST_ANY
} MatTestVerdict;

typedef struct {
  PetscInt64    hits, refills, rebuilds;
  PetscObjectId id; /* of the object that counts */
} MatTestCounts;

/* PetscInitialize(), and our types registered; unless the command line says else, matrices without a prefix are packed at their first product. The other prints the summary, finalizes and returns what main() has to */
PetscErrorCode MatTestBegin(int *, char ***, const char[]);
int            MatTestEnd(void);

/* One line: is it so on every process? Collective. */
PetscErrorCode MatTestFact(PetscBool, const char[], ...) PETSC_ATTRIBUTE_FORMAT(2, 3);
PetscErrorCode MatTestSkip(const char[], ...) PETSC_ATTRIBUTE_FORMAT(1, 2);

/* How often has an event of that name come on this process, in a program that has begun to log? */
PetscErrorCode MatTestCountEvent(const char[], int *);

/* Calls the function for every generated matrix in its tiny size and for every file of the folder named by AIJTCCUSPARSE_MATRICES */
PetscErrorCode MatTestEachMatrix(PetscErrorCode (*)(const char[], const tc_matrix *));

/* The generator of that name in the given size; free with tc_matrix_free() */
PetscErrorCode MatTestGenerate(const char[], PetscInt, tc_matrix *);

/*
  mat_scalar.c, for PETSc in single precision; in double precision nothing of this does anything but what its name says. Numbers as PetscScalar holds them; an array in double precision, free it
  with PetscFree(); and what is added to a bound of tc_oracle_spmv(), of as many additional roundings, if every sum is rounded to a PetscScalar, or the finished one only.
*/
void           MatTestRound(int64_t, double *);
PetscErrorCode MatTestWiden(PetscInt, const PetscScalar *, double **);
void           MatTestAddRounding(const tc_matrix *, const double *, const double *, int, PetscBool, long double *);

/* Every process knows the whole matrix and contributes its rows, with a block size whole blocks; preallocated, assembled */
PetscErrorCode MatTestCreate(const tc_matrix *, MatType, Mat *);
PetscErrorCode MatTestCreateBlocked(const tc_matrix *, MatType, PetscInt, Mat *);

/* The local rows, borrowing the arrays; the columns stay global */
tc_matrix MatTestLocalRows(const tc_matrix *, PetscInt, PetscInt);

/* Fills with the process's part of a random vector that `global` (may be NULL, else freed by the caller with free()) gets whole; with NaN */
PetscErrorCode MatTestRandom(Vec, uint64_t, double **);
PetscErrorCode MatTestPoison(Vec);

/*
  Do the products of both matrices with a random vector stay within the a-priori bound of every row? The second one tells what the entries are. The same for
  MatResidual(), in place of the right-hand side, and for products with the transpose.
*/
PetscErrorCode MatTestSameProduct(Mat, Mat, PetscBool *);
PetscErrorCode MatTestSameResidual(Mat, Mat, PetscBool *);      /* in place */
PetscErrorCode MatTestSameResidualApart(Mat, Mat, PetscBool *); /* into another vector */
PetscErrorCode MatTestSameTransposeProduct(Mat, Mat, PetscBool *);

/* The object that counts: the matrix, or its diagonal block */
PetscErrorCode MatTestBlock(Mat, Mat *);
PetscErrorCode MatTestGetCounts(Mat, MatTestCounts *);
PetscErrorCode MatTestGetTransposeCounts(Mat, MatTestCounts *);

/*
  One product of the matrix must count as `verdict` since `before` and give what the other matrix gives; one line for both. `before` becomes now. The same for a
  product with the transpose.
*/
PetscErrorCode MatTestProductCounts(Mat, Mat, MatTestVerdict, MatTestCounts *, const char[]);
PetscErrorCode MatTestTransposeCounts(Mat, Mat, MatTestVerdict, MatTestCounts *, const char[]);

/* What MatView() writes in that format, on the first process; free with free(). NULL if it fails. Collective. */
PetscErrorCode MatTestViewText(Mat, PetscViewerFormat, char **);

/* Does the detailed view of the matrix contain the text? Collective. */
PetscErrorCode MatTestViewHas(Mat, const char[], PetscBool *);

/* Does the matrix multiply on a GPU? Is there one at all, as far as our type is concerned? */
PetscErrorCode MatTestIsCUDA(Mat, PetscBool *);
PetscErrorCode MatTestHasCUDA(PetscBool *);
