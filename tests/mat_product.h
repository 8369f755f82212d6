/*
  What the tests of products with dense matrices share, mat_dense_util.c, and the parts of mat_product.
*/
#pragma once
#include "mat_util.h"

/* A product C = op(A, B) and the matrix whose rows it multiplies with columns: A, or its transpose */
typedef struct {
  const char    *name;
  MatProductType type;
  PetscErrorCode (*multiply)(Mat, Mat, MatReuse, PetscReal, Mat *);
} ProductKind;

enum {
  PRODUCT_AB,
  PRODUCT_ATB,
  PRODUCT_ABT,
  NUM_PRODUCTS
};

/* Indexed by the above; A B^T exists on one process only */
const ProductKind *ProductKinds(void);

/* PETSc 3.25 ends in a segmentation fault, for plain MATAIJ, too, where a process has no row of B but needs those of others: would A B? */
PetscErrorCode ProductCrashes(Mat, PetscBool *);

/* The entries of a dense matrix, known to every process: rows x n, column-major, random normal; free with free() */
PetscErrorCode ProductNumbers(PetscInt, PetscInt, uint64_t, double **);

/* Fills the matrix with its rows of these numbers, or with those of their transpose; the gap stays NaN */
PetscErrorCode ProductFill(Mat, const double *, PetscBool);

/* B for that product with A: filled, of the given type */
PetscErrorCode ProductOperand(int, Mat, MatType, PetscInt, PetscInt, const double *, Mat *);

/* C for that product with A: poisoned, of the given type */
PetscErrorCode ProductTarget(int, Mat, MatType, PetscInt, PetscInt, Mat *);

/*
  The largest error over its bound of the local rows of C = R B, R known to every process, B as by ProductNumbers(); *bits: has C the defined bits, which is asked on
  one process only? The other one: A B in that precision, within its bound, for a format that adds up so many entries of a row in single precision.
*/
PetscErrorCode ProductErrorIn(tc_precision, int32_t, int, const tc_matrix *, PetscInt, const double *, Mat, double *, PetscBool *);
PetscErrorCode ProductError(int, const tc_matrix *, PetscInt, const double *, Mat, double *, PetscBool *);

/* The same matrix multiplied by ours and by a MATAIJ, all of the above for a user's or a new C; one line */
PetscErrorCode ProductCheck(const char[], int, const tc_matrix *, Mat, Mat, PetscInt, PetscInt, MatReuse);

/* The absolute values of the entries, on which bounds are built */
PetscErrorCode ProductAbsolute(Mat, Mat *);

/* The products of our own that the matrix has counted, its blocks' on a parallel matrix */
PetscErrorCode ProductCount(Mat, PetscInt64 *);

/* mat_product_column.c, mat_product_changes.c, mat_product_reorder.c, mat_product_reuse.c, mat_product_solve.c, mat_product_three.c */
PetscErrorCode TestProductColumn(void);
PetscErrorCode TestProductChanges(void);
PetscErrorCode TestProductFailures(void);
PetscErrorCode TestProductReorder(void);
PetscErrorCode TestProductReuse(void);
PetscErrorCode TestProductSolvers(void);
PetscErrorCode TestProductThree(void);
