/*
  What takes elements of vectors to other processes: by kernels in the memory of other GPUs, where that can be, or by PetscSF, all products are the same bit for bit, whatever changes in between.
*/
#include "mat_mpi.h"
#include <string.h>

static const MatOperation operations[] = {MATOP_MULT, MATOP_MULT_ADD, MATOP_MULT_TRANSPOSE, MATOP_MULT_TRANSPOSE_ADD, MATOP_RESIDUAL};

/* z of the operation with random vectors, in place if that is asked for; on the first process those of the host, if they are bound */
static PetscErrorCode Multiply(Mat A, MatOperation operation, PetscBool in_place, PetscBool bind, Vec *z)
{
  const PetscBool transpose = (PetscBool)(operation == MATOP_MULT_TRANSPOSE || operation == MATOP_MULT_TRANSPOSE_ADD);
  Vec             right, left, x, y;
  PetscMPIInt     rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatCreateVecs(A, &right, &left));
  x = transpose ? left : right;
  y = transpose ? right : left;
  PetscCall(VecDuplicate(y, z));
  if (bind && rank == 0) {
    PetscCall(VecBindToCPU(x, PETSC_TRUE));
    PetscCall(VecBindToCPU(y, PETSC_TRUE));
    PetscCall(VecBindToCPU(*z, PETSC_TRUE));
  }
  PetscCall(MatTestRandom(x, 5, NULL));
  PetscCall(MatTestRandom(y, 6, NULL));
  PetscCall(MatTestPoison(*z));
  if (in_place) PetscCall(VecCopy(y, *z));
  if (operation == MATOP_MULT) PetscCall(MatMult(A, x, *z));
  else if (operation == MATOP_MULT_TRANSPOSE) PetscCall(MatMultTranspose(A, x, *z));
  else if (operation == MATOP_MULT_ADD) PetscCall(MatMultAdd(A, x, in_place ? *z : y, *z));
  else if (operation == MATOP_MULT_TRANSPOSE_ADD) PetscCall(MatMultTransposeAdd(A, x, in_place ? *z : y, *z));
  else PetscCall(MatResidual(A, in_place ? *z : y, x, *z));
  PetscCall(VecDestroy(&right));
  PetscCall(VecDestroy(&left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AreSame(Vec a, Vec b, PetscBool *same)
{
  const PetscScalar *of_a, *of_b;
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(a, &n));
  PetscCall(VecGetArrayRead(a, &of_a));
  PetscCall(VecGetArrayRead(b, &of_b));
  if (n > 0 && memcmp(of_a, of_b, (size_t)n * sizeof(*of_a)) != 0) *same = PETSC_FALSE;
  PetscCall(VecRestoreArrayRead(a, &of_a));
  PetscCall(VecRestoreArrayRead(b, &of_b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All operations, so many times, with both matrices */
static PetscErrorCode Compare(Mat A, Mat B, PetscInt times, PetscBool bind, const char name[], const char what[])
{
  PetscBool same = PETSC_TRUE;

  PetscFunctionBeginUser;
  for (PetscInt t = 0; t < times; t++) {
    for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(operations); o++) {
      const PetscBool adds = (PetscBool)(operations[o] != MATOP_MULT && operations[o] != MATOP_MULT_TRANSPOSE);

      for (int in_place = 0; in_place <= adds; in_place++) {
        Vec a, b;

        PetscCall(Multiply(A, operations[o], (PetscBool)in_place, bind, &a));
        PetscCall(Multiply(B, operations[o], (PetscBool)in_place, bind, &b));
        PetscCall(AreSame(a, b, &same));
        PetscCall(VecDestroy(&a));
        PetscCall(VecDestroy(&b));
      }
    }
  }
  PetscCall(MatTestFact(same, "%s, %s: products are %s with either exchange", name, what, same ? "the same" : "NOT THE SAME"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another entry, in a corner that is far from the diagonal */
static PetscErrorCode AddEntry(Mat A)
{
  PetscInt    M;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  if (rank == 0) PetscCall(MatSetValue(A, M - 1, 0, 3.0, ADD_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen is told: where there are several processes on GPUs, and products with vectors there, of the one that may choose and of the one that may not */
static PetscErrorCode CheckView(Mat A, Mat B, const char name[])
{
  PetscBool   cuda, told[2];
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(MatTestViewHas(A, "elements of vectors are exchanged", &told[0]));
  PetscCall(MatTestViewHas(B, "elements of vectors are exchanged", &told[1]));
  PetscCall(MatTestFact((PetscBool)(told[0] == (cuda && size > 1) && !told[1]), "%s: MatView() tells%s of exchanges, and%s where PetscSF was asked for", name, told[0] ? "" : " nothing", told[1] ? "" : " not"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMatrix(const char name[], PetscInt size)
{
  tc_matrix S;
  Mat       A, B, copy, either;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate(name, size, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &B));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &either));
  tc_matrix_free(&S);
  PetscCall(MatAIJTCCUSPARSESetExchange(A, MAT_AIJTCCUSPARSE_EXCHANGE_PEER));
  PetscCall(MatAIJTCCUSPARSESetExchange(B, MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF));
  PetscCall(Compare(A, B, 3, PETSC_FALSE, name, "from the first on"));
  PetscCall(CheckView(A, B, name));
  PetscCall(Compare(either, B, 3, PETSC_FALSE, name, "auto"));
  PetscCall(MatScale(A, 1.5));
  PetscCall(MatScale(B, 1.5));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "new values"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &copy));
  PetscCall(Compare(copy, B, 1, PETSC_FALSE, name, "a copy"));
  PetscCall(MatDestroy(&copy));
  PetscCall(Compare(A, B, 2, PETSC_TRUE, name, "vectors of the first process are bound to the CPU"));
  PetscCall(AddEntry(A));
  PetscCall(AddEntry(B));
  PetscCall(Compare(A, B, 2, PETSC_FALSE, name, "another entry"));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatBindToCPU(B, PETSC_TRUE));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "bound to the CPU"));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(MatBindToCPU(B, PETSC_FALSE));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "not bound any more"));
  PetscCall(MatAIJTCCUSPARSESetExchange(A, MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF));
  PetscCall(MatAIJTCCUSPARSESetExchange(B, MAT_AIJTCCUSPARSE_EXCHANGE_PEER));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "the other way round"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&either));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The option, with the prefix of the matrix */
static PetscErrorCode TestOption(void)
{
  static const char option[] = "-tests_mat_aijtccusparse_exchange";
  tc_matrix         S;
  Mat               A, plain;
  PetscBool         used, same, told;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, option, "petscsf"));
  PetscCall(MatTestGenerate("stencil7", 6, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatTestCreate(&S, MATAIJ, &plain));
  tc_matrix_free(&S);
  PetscCall(MatAIJTCCUSPARSESetExchange(A, MAT_AIJTCCUSPARSE_EXCHANGE_PEER));
  PetscCall(MatSetOptionsPrefix(A, "tests_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscOptionsUsed(NULL, option + 1, &used));
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscCall(MatTestSameProduct(A, plain, &same));
  PetscCall(MatTestViewHas(A, "elements of vectors are exchanged", &told));
  PetscCall(MatTestFact((PetscBool)(used && same && !told), "%s petscsf: %s, product %s, %s", option, used ? "read" : "NOT READ", same ? "right" : "WRONG", told ? "NOT HEEDED" : "heeded"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestExchange(void)
{
  static const char *const names[] = {"stencil27", "ragged", "dense_row", "wide", "tall", "one_entry"};

  PetscFunctionBeginUser;
  for (size_t n = 0; n < PETSC_STATIC_ARRAY_LENGTH(names); n++) PetscCall(TestMatrix(names[n], tc_generator_find(names[n])->tiny));
  PetscCall(TestMatrix("stencil7", 20));
  PetscCall(TestOption());
  PetscFunctionReturn(PETSC_SUCCESS);
}
