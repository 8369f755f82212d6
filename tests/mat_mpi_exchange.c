/*
  What takes elements of vectors, and rows of dense blocks, to other processes: by kernels in the memory of other GPUs, where that can be, all products are the same bit for bit as those of the
  host, whatever changes in between.
  By PetscSF those with the transpose need not be: on a GPU it adds what comes from several processes in any order.
*/
#include "mat_mpi.h"
#include <string.h>

static const MatOperation operations[] = {MATOP_MULT, MATOP_MULT_ADD, MATOP_MULT_TRANSPOSE, MATOP_MULT_TRANSPOSE_ADD, MATOP_RESIDUAL};
static const char *const  names_of[]   = {"MatMult()", "MatMultAdd()", "MatMultTranspose()", "MatMultTransposeAdd()", "MatResidual()"};

/* z of the operation with random vectors, in place if that is asked for, and bound to the CPU likewise */
static PetscErrorCode Multiply(Mat A, MatOperation operation, PetscBool in_place, PetscBool bind, Vec *z)
{
  const PetscBool transpose = (PetscBool)(operation == MATOP_MULT_TRANSPOSE || operation == MATOP_MULT_TRANSPOSE_ADD);
  Vec             right, left, x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &right, &left));
  x = transpose ? left : right;
  y = transpose ? right : left;
  PetscCall(VecDuplicate(y, z));
  if (bind) {
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

/* C = A B or A^T B for random B, which is bound to the CPU if that is asked for */
static PetscErrorCode MultiplyBlock(Mat A, MatProductType type, PetscInt columns, PetscBool bind, Mat *C)
{
  const PetscBool transpose = (PetscBool)(type == MATPRODUCT_AtB);
  Mat             B;
  Vec             right, left, column;
  VecType         vectype;
  PetscInt        n;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &right, &left));
  PetscCall(VecGetLocalSize(transpose ? left : right, &n));
  PetscCall(VecGetType(left, &vectype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vectype, n, PETSC_DECIDE, PETSC_DETERMINE, columns, n, NULL, &B));
  for (PetscInt j = 0; j < columns; j++) {
    PetscCall(MatDenseGetColumnVecWrite(B, j, &column));
    PetscCall(MatTestRandom(column, 7 + (int)j, NULL));
    PetscCall(MatDenseRestoreColumnVecWrite(B, j, &column));
  }
  if (bind) PetscCall(MatBindToCPU(B, PETSC_TRUE));
  if (transpose) PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, C));
  else PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, C));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&right));
  PetscCall(VecDestroy(&left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both products, with these numbers of columns, the last more than one exchange takes, and with the first one again */
static PetscErrorCode CompareBlocks(Mat A, Mat B, PetscBool bind, const char name[], const char what[])
{
  static const PetscInt       columns[] = {5, 1, 130, 5};
  static const MatProductType types[]   = {MATPRODUCT_AB, MATPRODUCT_AtB};
  const char                 *first     = NULL;

  PetscFunctionBeginUser;
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(columns); c++) {
    for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
      PetscBool same = PETSC_TRUE;
      Mat       a, b;

      PetscCall(MultiplyBlock(A, types[t], columns[c], bind, &a));
      PetscCall(MultiplyBlock(B, types[t], columns[c], PETSC_FALSE, &b));
      for (PetscInt j = 0; j < columns[c]; j++) {
        Vec of_a, of_b;

        PetscCall(MatDenseGetColumnVecRead(a, j, &of_a));
        PetscCall(MatDenseGetColumnVecRead(b, j, &of_b));
        PetscCall(AreSame(of_a, of_b, &same));
        PetscCall(MatDenseRestoreColumnVecRead(b, j, &of_b));
        PetscCall(MatDenseRestoreColumnVecRead(a, j, &of_a));
      }
      if (!same && !first) first = MatProductTypes[types[t]];
      PetscCall(MatDestroy(&a));
      PetscCall(MatDestroy(&b));
    }
  }
  PetscCall(MatTestFact((PetscBool)!first, "%s, %s, products with dense blocks: bits are those of the host%s%s", name, what, first ? ", BUT NOT ON THE FIRST PROCESS by " : "", first ? first : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All operations, so many times, with both matrices */
static PetscErrorCode Compare(Mat A, Mat B, PetscInt times, PetscBool bind, const char name[], const char what[])
{
  const char *first = NULL; /* that differs */

  PetscFunctionBeginUser;
  for (PetscInt t = 0; t < times; t++) {
    for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(operations); o++) {
      const PetscBool adds = (PetscBool)(operations[o] != MATOP_MULT && operations[o] != MATOP_MULT_TRANSPOSE);

      for (int in_place = 0; in_place <= adds; in_place++) {
        PetscBool same = PETSC_TRUE;
        Vec       a, b;

        PetscCall(Multiply(A, operations[o], (PetscBool)in_place, bind, &a));
        PetscCall(Multiply(B, operations[o], (PetscBool)in_place, PETSC_FALSE, &b));
        PetscCall(AreSame(a, b, &same));
        if (!same && !first) first = names_of[o];
        PetscCall(VecDestroy(&a));
        PetscCall(VecDestroy(&b));
      }
    }
  }
  PetscCall(MatTestFact((PetscBool)!first, "%s, %s: bits are those of the host%s%s", name, what, first ? ", BUT NOT ON THE FIRST PROCESS by " : "", first ? first : ""));
  PetscCall(CompareBlocks(A, B, bind, name, what));
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

/* What was chosen is told where there are several processes on GPUs */
static PetscErrorCode CheckView(Mat A, Mat B, const char name[])
{
  PetscBool   cuda, told[2], rows[2];
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCall(MatTestViewHas(A, "elements of vectors are exchanged", &told[0]));
  PetscCall(MatTestViewHas(B, "elements of vectors are exchanged", &told[1]));
  PetscCall(MatTestViewHas(A, "rows of dense blocks are exchanged", &rows[0]));
  PetscCall(MatTestViewHas(B, "rows of dense blocks are exchanged", &rows[1]));
  PetscCall(MatTestFact((PetscBool)(told[0] == (cuda && size > 1) && !told[1]), "%s: MatView() tells%s of exchanges, and%s on the host", name, told[0] ? "" : " nothing", told[1] ? "" : " not"));
  PetscCall(MatTestFact((PetscBool)(rows[0] == told[0] && rows[1] == told[1]), "%s: and%s of those of dense blocks", name, rows[0] ? "" : " nothing"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of ours on the host */
static PetscErrorCode CreateOnHost(const tc_matrix *S, Mat *B)
{
  PetscInt first, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, B));
  PetscCall(MatSetOptionsPrefix(*B, "host_"));
  PetscCall(MatSetSizes(*B, PETSC_DECIDE, PETSC_DECIDE, S->num_rows, S->num_cols));
  PetscCall(MatSetType(*B, MATAIJTCCUSPARSE));
  PetscCall(MatSetUp(*B));
  PetscCall(MatGetOwnershipRange(*B, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    for (int64_t e = S->row_ptr[i]; e < S->row_ptr[i + 1]; e++) PetscCall(MatSetValue(*B, i, S->col[e], S->val[e], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other settings give the same product */
static PetscErrorCode CompareExchanges(Mat A, Mat either, const char name[])
{
  static const MatAIJTCCUSPARSEExchange exchanges[] = {MAT_AIJTCCUSPARSE_EXCHANGE_AUTO, MAT_AIJTCCUSPARSE_EXCHANGE_PETSCSF, MAT_AIJTCCUSPARSE_EXCHANGE_PEER};
  PetscBool                             same        = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(AddEntry(either));
  PetscCall(MatCopy(A, either, SAME_NONZERO_PATTERN));
  for (size_t e = 0; e < PETSC_STATIC_ARRAY_LENGTH(exchanges); e++) {
    PetscCall(MatAIJTCCUSPARSESetExchange(either, exchanges[e]));
    for (int t = 0; t < 12; t++) {
      Vec a, b;

      PetscCall(Multiply(A, MATOP_MULT, PETSC_FALSE, PETSC_FALSE, &a));
      PetscCall(Multiply(either, MATOP_MULT, PETSC_FALSE, PETSC_FALSE, &b));
      PetscCall(AreSame(a, b, &same));
      PetscCall(VecDestroy(&a));
      PetscCall(VecDestroy(&b));
    }
  }
  PetscCall(MatTestFact(same, "%s: MatMult() is%s the same by auto, by PetscSF and by peers", name, same ? "" : " NOT"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMatrix(const char name[], PetscInt size)
{
  tc_matrix S;
  Mat       A, B, copy, either;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate(name, size, &S));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &either));
  PetscCall(CreateOnHost(&S, &B));
  tc_matrix_free(&S);
  PetscCall(MatAIJTCCUSPARSESetExchange(A, MAT_AIJTCCUSPARSE_EXCHANGE_PEER));
  PetscCall(Compare(A, B, 3, PETSC_FALSE, name, "from the first product on"));
  PetscCall(CheckView(A, B, name));
  PetscCall(MatScale(A, 1.5));
  PetscCall(MatScale(B, 1.5));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "new values"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &copy));
  PetscCall(Compare(copy, B, 1, PETSC_FALSE, name, "a copy"));
  PetscCall(MatDestroy(&copy));
  PetscCall(Compare(A, B, 2, PETSC_TRUE, name, "vectors that are bound to the CPU"));
  PetscCall(AddEntry(A));
  PetscCall(AddEntry(B));
  PetscCall(Compare(A, B, 2, PETSC_FALSE, name, "another entry"));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "bound to the CPU"));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(Compare(A, B, 1, PETSC_FALSE, name, "not bound any more"));
  PetscCall(CompareExchanges(A, either, name));
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
  PetscCall(PetscOptionsSetValue(NULL, "-host_mat_aijtccusparse_backend", "host"));
  for (size_t n = 0; n < PETSC_STATIC_ARRAY_LENGTH(names); n++) PetscCall(TestMatrix(names[n], tc_generator_find(names[n])->tiny));
  PetscCall(TestMatrix("stencil7", 20));
  PetscCall(PetscOptionsClearValue(NULL, "-host_mat_aijtccusparse_backend"));
  PetscCall(TestOption());
  PetscFunctionReturn(PETSC_SUCCESS);
}
