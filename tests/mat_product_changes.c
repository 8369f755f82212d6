#include "mat_product.h"
PetscErrorCode TestProductChanges(void) { return PETSC_SUCCESS; }
PetscErrorCode TestProductFailures(void) { return PETSC_SUCCESS; }
PetscErrorCode TestProductSolvers(void) { return PETSC_SUCCESS; }
