/*
  What tests of factors share: kinds of factors, matrices, and comparisons of solves.
*/
#pragma once
#include "mat_util.h"
#include <petscksp.h>

enum {
  COLUMNS = 5
};

#define HALVES "halves" /* an order of columns alone: the second half comes first */

typedef struct {
  const char   *name;
  MatFactorType type;
  PetscInt      levels;
  const char   *ordering;
} Kind;

/* mat_factor_cases.c. A symmetric matrix with a large diagonal of the pattern of a generator, "pairs" and "chain" as there, and its block of this process: the matrix itself where there is one */
PETSC_INTERN PetscErrorCode Generate(const char name[], PetscInt size, MatType type, Mat *A, Mat *block);
PETSC_INTERN PetscErrorCode Factor(const Kind *, MatSolverType, Mat A, Mat *F);
PETSC_INTERN PetscErrorCode Numeric(const Kind *, Mat A, Mat F);
/*
  Every way to solve with F against the same with the factor of a MATSEQAIJ, of vectors and blocks of that kind; the largest difference, relative. Solves with the transpose are left out where the
  parent's on the GPU (PETSc 3.26.1) would have the values before.
*/
PETSC_INTERN PetscErrorCode Solves(Mat F, Mat expected, Mat numbers, VecType vectors, MatType blocks, PetscBool transposes, PetscReal *worst);

/* Of a matrix that gets its values after a solver of that kind has got its options; `preallocate`: its rows have places before, else none */
PETSC_INTERN PetscErrorCode TestBeforeAssembly(PCType, PetscBool preallocate);

/* mat_factor_pivots.c */
PETSC_INTERN PetscErrorCode TestPivots(MatFactorType, PetscInt levels, MatFactorShiftType, PetscReal first);
PETSC_INTERN PetscErrorCode TestZeroed(MatFactorType, PetscInt levels, PetscBool columns, PetscBool keep);

/* mat_factor_blocks.c. Of a generator's matrix, a factor of ours; the latter ICC */
PETSC_INTERN PetscErrorCode TestBlocks(MatFactorType, PetscInt levels, const char ordering[], const char name[], PetscInt size);
PETSC_INTERN PetscErrorCode TestHalves(PetscInt levels, const char ordering[], const char name[], PetscInt size);
