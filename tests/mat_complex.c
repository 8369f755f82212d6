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

/* C, which goes, is `factor` times D */
static PetscErrorCode CheckBlock(const char *name, const char *of, Mat C, PetscScalar factor, Mat D)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatAXPY(C, -factor, D, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
  PetscCall(MatTestFact((PetscBool)(norm == 0), "%s%s: %s", name, of, norm == 0 ? "as of the parent type" : "WRONG"));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckBlocks(Mat ours, Mat plain)
{
  static const struct {
    const char *name;
    PetscErrorCode (*multiply)(Mat, Mat, MatReuse, PetscReal, Mat *);
    PetscBool turned; /* of B the columns are summed over, which is for one process */
  } products[] = {
    {"MatMatMult",          MatMatMult,          PETSC_FALSE},
    {"MatTransposeMatMult", MatTransposeMatMult, PETSC_FALSE},
    {"MatMatTransposeMult", MatMatTransposeMult, PETSC_TRUE },
  };
  Mat          other, B, C, D;
  PetscScalar *array;
  PetscInt     n, num, lda;
  PetscMPIInt  size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetSize(plain, &n, NULL));
  PetscCall(MatGetLocalSize(plain, &num, NULL));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &other));
  PetscCall(MatScale(other, 4));
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(products); p++) {
    const PetscBool turned = products[p].turned;

    if (turned && size > 1) continue;
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, turned ? 5 : num, PETSC_DECIDE, turned ? 5 : n, turned ? n : 5, NULL, &B));
    PetscCall(MatDenseGetLDA(B, &lda));
    PetscCall(MatDenseGetArrayWrite(B, &array));
    for (PetscInt j = 0; j < (turned ? n : 5); j++) PetscCall(FillNumbers(turned ? 5 : num, array + j * lda));
    PetscCall(MatDenseRestoreArrayWrite(B, &array));
    PetscCall((*products[p].multiply)(plain, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
    PetscCall((*products[p].multiply)(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(CheckBlock(products[p].name, "", C, 1, D));
    PetscCall((*products[p].multiply)(ours, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall((*products[p].multiply)(other, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &C));
    PetscCall(CheckBlock(products[p].name, ", another matrix by MAT_REUSE_MATRIX", C, 4, D));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&D));
  }
  PetscCall(MatDestroy(&other));
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
