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

/* factor_device.c. An incomplete factor on the GPU, composed on it */
typedef struct {
  const tc_backend *backend; /* of `factors` */
  tc_factors       *factors; /* NULL: another one's after the symbolic factorization */
  PetscBool         ready;   /* has it numbers? */
  PetscBool         theirs;  /* are they those of `other`? */
  Mat               other;   /* NULL: none so far */
  PetscBool         host;    /* was it to be the host's? */
  PetscBool         symmetric; /* ICC */
  PetscBool         wanted;    /* of the GPU, even if the host is faster */
  PetscBool         filled;    /* has it more entries than the matrix, or other orders? */
  PetscInt64        entries;   /* of the matrix */
  IS                rows, cols; /* as factored symbolically, cols NULL with ICC */
  MatFactorInfo     info;
  PetscInt64        count; /* of solves on the GPU */
  Vec               root, half; /* D^-1/2 of ICC, and what half a solve has multiplied with it; NULL: not yet, or of numbers before */
} MatTCDeviceFactor;

PETSC_INTERN PetscErrorCode MatTCDeviceFactorCreate(Mat, MatFactorType, PetscBool, Mat *);
PETSC_INTERN PetscErrorCode MatTCDeviceFactorGet(Mat, MatTCDeviceFactor **);

/* factor_solves.c */
PETSC_INTERN PetscErrorCode MatTCDeviceFactorSetSolves(Mat, PetscBool);

/* factor_filled.c */
PETSC_INTERN PetscErrorCode MatTCFactorPatternGet(Mat, Mat, PetscBool, IS, IS, tc_factors_pattern *, PetscBool *);
PETSC_INTERN PetscErrorCode MatTCFactorPatternRestore(tc_factors_pattern *);

/* factor.c */
PETSC_INTERN PetscErrorCode MatTCParentFactorCreate(Mat, MatFactorType, Mat *);
PETSC_INTERN PetscErrorCode MatTCFactorOnHost(Mat, MatFactorType, PetscBool, PetscBool *);
