/*
  With complex scalars every product is the parent's, and the view says so. Only built against such a PETSc. Numbers are small integers, so that results are exact.
*/
#include "mat_util.h"

static char help[] = "Tests MATAIJTCCUSPARSE with complex scalars.\n\n";

/* Three entries in each row */
static PetscErrorCode Fill(MatType type, PetscInt n, Mat *A)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    for (PetscInt d = 0; d < 3; d++) PetscCall(MatSetValue(*A, i, (i + 7 * d) % n, (PetscScalar)(i % 5 + 1) + (PetscScalar)(d - 1) * PETSC_i, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillNumbers(PetscInt num, PetscScalar array[])
{
  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < num; i++) array[i] = (PetscScalar)(i % 4 - 1) + (PetscScalar)(i % 3) * PETSC_i;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckVectors(Mat ours, Mat plain)
{
  static const struct {
    const char *name;
    PetscErrorCode (*multiply)(Mat, Vec, Vec);
  } products[] = {
    {"MatMult",                   MatMult                  },
    {"MatMultTranspose",          MatMultTranspose         },
    {"MatMultHermitianTranspose", MatMultHermitianTranspose},
  };
  Vec          x, y, z;
  PetscScalar *array;
  PetscInt     num;
  PetscBool    equal;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(plain, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecGetLocalSize(x, &num));
  PetscCall(VecGetArrayWrite(x, &array));
  PetscCall(FillNumbers(num, array));
  PetscCall(VecRestoreArrayWrite(x, &array));
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(products); p++) {
    PetscCall((*products[p].multiply)(ours, x, y));
    PetscCall((*products[p].multiply)(plain, x, z));
    PetscCall(VecEqual(y, z, &equal));
    PetscCall(MatTestFact(equal, "%s: %s", products[p].name, equal ? "as of the parent type" : "WRONG"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckBlocks(Mat ours, Mat plain)
{
  Mat          B, C, D;
  PetscScalar *array;
  PetscReal    norm;
  PetscInt     n, num, lda;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(plain, &n, NULL));
  PetscCall(MatGetLocalSize(plain, &num, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, num, PETSC_DECIDE, n, 5, NULL, &B));
  PetscCall(MatDenseGetLDA(B, &lda));
  PetscCall(MatDenseGetArrayWrite(B, &array));
  for (PetscInt j = 0; j < 5; j++) PetscCall(FillNumbers(num, array + j * lda));
  PetscCall(MatDenseRestoreArrayWrite(B, &array));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatMatMult(plain, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
  PetscCall(MatAXPY(C, -1.0, D, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
  PetscCall(MatTestFact((PetscBool)(norm == 0), "MatMatMult: %s", norm == 0 ? "as of the parent type" : "WRONG"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  Mat       ours, plain;
  PetscBool told;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(Fill(MATAIJTCCUSPARSE, 61, &ours));
  PetscCall(Fill(MATAIJ, 61, &plain));
  PetscCall(CheckVectors(ours, plain));
  PetscCall(CheckBlocks(ours, plain));
  PetscCall(MatTestViewHas(ours, "complex scalars are not supported", &told));
  PetscCall(MatTestFact(told, "MatView says that complex scalars are not supported: %s", told ? "yes" : "NO"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  return MatTestEnd();
}
