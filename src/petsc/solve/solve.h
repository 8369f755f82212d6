/*
  Solves with triangles of a matrix: sweeps of MatSOR(), and factors.
*/
#pragma once
#include "../aijtccusparseimpl.h"
#include "../../plan/factors.h"

/* vecstage.c. A vector as operations of the GPU want it: itself, or a CUDA vector over its host array */
typedef struct {
  Vec          vec, cuda;
  MatTCAccess  access;
  PetscScalar *array;
} MatTCWrap;

PETSC_INTERN PetscErrorCode MatTCWrapGet(Vec, MatTCAccess, MatTCWrap *);
PETSC_INTERN PetscErrorCode MatTCWrapRestore(MatTCWrap *);

/* block.c. A dense block as operations of the GPU want it: its array, or that of a copy */
typedef struct {
  Mat          block, copy;
  MatTCAccess  access;
  PetscScalar *array;
  PetscInt     ld;
} MatTCBlock;

PETSC_INTERN PetscErrorCode MatTCBlockGet(Mat, MatTCAccess, MatTCBlock *);
PETSC_INTERN PetscErrorCode MatTCBlockRestore(MatTCBlock *);
PETSC_INTERN PetscErrorCode MatTCBlockSolve(Mat, Mat, Mat, PetscBool);

/* factor_host.c */
PETSC_INTERN PetscErrorCode MatTCHostFactorCreate(Mat, MatFactorType, Mat *);

/* factor_device.c */
PETSC_INTERN PetscErrorCode MatTCDeviceFactorCreate(Mat, MatFactorType, PetscBool, Mat *);

/* factor_filled.c */
PETSC_INTERN PetscErrorCode MatTCFactorPatternGet(Mat, Mat, PetscBool, IS, IS, tc_factors_pattern *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCFactorPatternRestore(tc_factors_pattern *);

/* factor.c */
PETSC_INTERN PetscErrorCode MatTCParentFactorCreate(Mat, MatFactorType, Mat *);
PETSC_INTERN PetscErrorCode MatTCFactorOnHost(Mat, MatFactorType, PetscBool, PetscBool *);
