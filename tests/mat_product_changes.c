/*
  What happens between products: other values, other patterns, other operands; and products that fail.
*/
#include "mat_product.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

/* Is C what MATAIJ computes of the same operands? Both are within gamma_k |A||B| of the exact product, k roundings at most in an element, and so is the bound. */
static PetscErrorCode SameAsPlain(int product, Mat plain, Mat B, Mat C, PetscBool *same)
{
  const double       unit = PETSC_MACHINE_EPSILON / 2;
  Mat                D, E, absolute, absolute_b, local[3];
  const PetscScalar *c, *d, *e;
  PetscInt           ld[3], m, n;
  PetscMPIInt        size;
  double             k;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(ProductAbsolute(plain, &absolute));
  PetscCall(MatConvert(B, MATDENSE, MAT_INITIAL_MATRIX, &absolute_b));
  PetscCall(ProductKinds()[product].multiply(plain, absolute_b, MAT_INITIAL_MATRIX, PETSC_CURRENT, &D));
  {
    Mat          b;
    PetscScalar *array;

    PetscCall(MatDenseGetLocalMatrix(absolute_b, &b));
    PetscCall(MatGetLocalSize(b, &m, &n));
    PetscCall(MatDenseGetLDA(b, &ld[0]));
    PetscCall(MatDenseGetArray(b, &array));
    for (PetscInt j = 0; j < n; j++) {
      for (PetscInt i = 0; i < m; i++) array[i + j * ld[0]] = PetscAbsScalar(array[i + j * ld[0]]);
    }
    PetscCall(MatDenseRestoreArray(b, &array));
  }
  PetscCall(ProductKinds()[product].multiply(absolute, absolute_b, MAT_INITIAL_MATRIX, PETSC_CURRENT, &E));
  PetscCall(MatGetSize(plain, &m, &n));
  k = (double)PetscMax(m, n) + size;
  PetscCall(MatDenseGetLocalMatrix(C, &local[0]));
  PetscCall(MatDenseGetLocalMatrix(D, &local[1]));
  PetscCall(MatDenseGetLocalMatrix(E, &local[2]));
  for (int i = 0; i < 3; i++) PetscCall(MatDenseGetLDA(local[i], &ld[i]));
  PetscCall(MatGetLocalSize(local[0], &m, &n));
  PetscCall(MatDenseGetArrayRead(local[0], &c));
  PetscCall(MatDenseGetArrayRead(local[1], &d));
  PetscCall(MatDenseGetArrayRead(local[2], &e));
  *same = PETSC_TRUE;
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) {
      const double bound = k * unit / (1 - k * unit) * PetscRealPart(e[i + j * ld[2]]);

      if (!(PetscAbsScalar(c[i + j * ld[0]] - d[i + j * ld[1]]) <= 2 * bound * (1 + bound))) *same = PETSC_FALSE;
    }
  }
  PetscCall(MatDenseRestoreArrayRead(local[0], &c));
  PetscCall(MatDenseRestoreArrayRead(local[1], &d));
  PetscCall(MatDenseRestoreArrayRead(local[2], &e));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&absolute));
  PetscCall(MatDestroy(&absolute_b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ours, a MATAIJ with the same content, and the operands and the result of a product of ours */
typedef struct {
  int      product;
  Mat      ours, plain, B, C;
  PetscInt N;
  double  *numbers;
} Setup;

static PetscErrorCode SetupCreate(int product, const char generator[], PetscInt size, PetscInt N, Setup *s)
{
  tc_matrix A;
  PetscBool cuda;

  PetscFunctionBeginUser;
  s->product = product;
  s->N       = N;
  PetscCall(MatTestGenerate(generator, size, &A));
  PetscCall(MatTestCreate(&A, MATAIJTCCUSPARSE, &s->ours));
  PetscCall(MatTestCreate(&A, MATAIJ, &s->plain));
  PetscCall(MatTestIsCUDA(s->ours, &cuda));
  PetscCall(ProductNumbers(PetscMax(A.num_rows, A.num_cols), 2 * N, 21, &s->numbers));
  PetscCall(ProductOperand(product, s->ours, cuda ? MATDENSECUDA : MATDENSE, N, 0, s->numbers, &s->B));
  s->C = NULL;
  tc_matrix_free(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetupDestroy(Setup *s)
{
  PetscFunctionBeginUser;
  free(s->numbers);
  PetscCall(MatDestroy(&s->ours));
  PetscCall(MatDestroy(&s->plain));
  PetscCall(MatDestroy(&s->B));
  PetscCall(MatDestroy(&s->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes, each to ours and to the MATAIJ; what is already prepared of the product stays */
static PetscErrorCode ChangeNothing(Mat A)
{
  (void)A;
  return PETSC_SUCCESS;
}

static PetscErrorCode ChangeScale(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, -0.75));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ChangeEntry(Mat A, PetscInt distance)
{
  PetscInt row, end, n;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &row, &end));
  PetscCall(MatGetSize(A, NULL, &n));
  if (row < end) PetscCall(MatSetValue(A, row, (row + distance) % n, 4.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ChangeValue(Mat A)
{
  return ChangeEntry(A, 0);
}

static PetscErrorCode ChangePattern(Mat A)
{
  return ChangeEntry(A, 2);
}

/* Another column from another process, too */
static PetscErrorCode ChangeGhosts(Mat A)
{
  PetscInt n;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(ChangeEntry(A, n - 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The data of another object, with another pattern */
static PetscErrorCode ChangeMerge(Mat A)
{
  tc_matrix S;
  Mat       other;
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  PetscCall(MatTestGenerate("stencil27", 6, &S));
  PetscCall(MatTestCreate(&S, ours ? MATAIJTCCUSPARSE : MATAIJ, &other));
  tc_matrix_free(&S);
  PetscCall(MatAXPY(A, 0.5, other, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ChangeBinding(Mat A)
{
  PetscBool bound;

  PetscFunctionBeginUser;
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatBindToCPU(A, (PetscBool)!bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  One product under way, then its numeric phase again after each change. Where A B^T is the parent's it takes new values but no new pattern: it has prepared cuSPARSE for
  the old one. On a GPU tiles multiply where they are asked for, those of the transpose included.
*/
static PetscErrorCode TestNumeric(int product, MatAIJTCCUSPARSESpMM spmm)
{
  static const struct {
    const char *name;
    PetscErrorCode (*change)(Mat);
  } changes[] = {
    {"nothing",                    ChangeNothing},
    {"MatScale",                   ChangeScale  },
    {"a value",                    ChangeValue  },
    {"a new entry",                ChangePattern},
    {"a new entry far away",       ChangeGhosts },
    {"MatAXPY of another pattern", ChangeMerge  },
    {"MatBindToCPU",               ChangeBinding},
    {"MatBindToCPU back",          ChangeBinding},
  };
  Setup       s;
  PetscInt64  before, after;
  PetscBool   same, cuda, tiles;
  PetscMPIInt size;
  const char *kernel;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(SetupCreate(product, "stencil7", 6, 9, &s));
  PetscCall(MatAIJTCCUSPARSESetSpMM(s.ours, spmm));
  PetscCall(MatProductCreate(s.ours, s.B, NULL, &s.C));
  PetscCall(MatProductSetType(s.C, ProductKinds()[product].type));
  PetscCall(MatProductSetFromOptions(s.C));
  PetscCall(MatProductSymbolic(s.C));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(changes); i++) {
    PetscCall((*changes[i].change)(s.ours));
    PetscCall((*changes[i].change)(s.plain));
    PetscCall(ProductCount(s.ours, &before));
    PetscCall(MatProductNumeric(s.C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(s.ours, &after, &kernel));
    PetscCall(SameAsPlain(product, s.plain, s.B, s.C, &same));
    PetscCall(MatTestIsCUDA(s.ours, &cuda)); /* not while it is bound to the CPU */
    tiles = (PetscBool)(spmm != MAT_AIJTCCUSPARSE_SPMM_BITTCF || !cuda || size > 1 || (kernel && strcmp(kernel, "tc_spmm_bittcf_f64") == 0));
    PetscCall(MatTestFact((PetscBool)(same && tiles && after > before), "MatProductNumeric, %s, %s, after %s: %s, %" PetscInt64_FMT " of ours, kernel %s", ProductKinds()[product].name, MatAIJTCCUSPARSESpMMs[spmm], changes[i].name, same ? "right" : "WRONG", after - before, kernel ? kernel : "none"));
  }
  PetscCall(SetupDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other operands of the same type for a product under way; a matrix that is not ours is multiplied by the parent, and one that is after that with its own values */
static PetscErrorCode TestReplace(int product)
{
  Setup      s;
  Mat        other, B;
  PetscBool  same[5];
  PetscInt64 before, after;

  PetscFunctionBeginUser;
  PetscCall(SetupCreate(product, "stencil7", 6, 9, &s));
  PetscCall(ProductKinds()[product].multiply(s.ours, s.B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(MatDuplicate(s.B, MAT_COPY_VALUES, &B));
  PetscCall(MatScale(B, 3.0));
  PetscCall(MatProductReplaceMats(NULL, B, NULL, s.C));
  PetscCall(MatProductNumeric(s.C));
  PetscCall(SameAsPlain(product, s.plain, B, s.C, &same[0]));
  PetscCall(MatDuplicate(s.ours, MAT_COPY_VALUES, &other));
  PetscCall(MatScale(other, 2.0));
  PetscCall(MatScale(s.plain, 2.0));
  PetscCall(MatProductReplaceMats(other, s.B, NULL, s.C));
  PetscCall(MatProductNumeric(s.C));
  PetscCall(SameAsPlain(product, s.plain, s.B, s.C, &same[1]));
  PetscCall(ProductKinds()[product].multiply(s.ours, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(MatScale(s.plain, 0.5));
  PetscCall(SameAsPlain(product, s.plain, B, s.C, &same[2]));
  PetscCall(MatAIJTCCUSPARSERestoreParent(other));
  PetscCall(MatScale(s.plain, 2.0));
  PetscCall(ProductCount(s.ours, &before));
  PetscCall(MatProductReplaceMats(other, B, NULL, s.C));
  PetscCall(MatProductNumeric(s.C));
  PetscCall(ProductCount(s.ours, &after));
  PetscCall(SameAsPlain(product, s.plain, B, s.C, &same[3]));
  PetscCall(MatScale(s.plain, 0.5));
  PetscCall(ProductKinds()[product].multiply(s.ours, B, MAT_REUSE_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(SameAsPlain(product, s.plain, B, s.C, &same[4]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2] && same[3] && same[4] && after == before), "MatProductReplaceMats, %s: other B %s, other A %s, MAT_REUSE_MATRIX %s, A of the parent type %s, of ours again %s", ProductKinds()[product].name,
                        same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG", same[3] ? "right" : "WRONG", same[4] ? "right" : "WRONG"));
  PetscCall(MatDestroy(&other));
  PetscCall(MatDestroy(&B));
  PetscCall(SetupDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One C for one product after the other */
static PetscErrorCode TestOneResult(void)
{
  static const int order[] = {PRODUCT_AB, PRODUCT_ATB, PRODUCT_AB, PRODUCT_ATB, PRODUCT_ATB};
  Setup            s;
  PetscBool        right = PETSC_TRUE, same;

  PetscFunctionBeginUser;
  PetscCall(SetupCreate(PRODUCT_AB, "stencil7", 6, 9, &s));
  PetscCall(ProductTarget(PRODUCT_AB, s.ours, MATDENSE, 9, 2, &s.C));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(order); i++) {
    PetscCall(ProductKinds()[order[i]].multiply(s.ours, s.B, MAT_REUSE_MATRIX, PETSC_CURRENT, &s.C));
    PetscCall(SameAsPlain(order[i], s.plain, s.B, s.C, &same));
    if (!same) right = PETSC_FALSE;
    PetscCall(ChangeScale(s.ours));
    PetscCall(ChangeScale(s.plain));
  }
  PetscCall(MatTestFact(right, "one C given for A B and A^T B in turns"));
  PetscCall(SetupDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is asked for is what multiplies */
static PetscErrorCode TestSettings(void)
{
  Setup       s;
  PetscBool   same, cuda;
  PetscInt64  before, after;
  const char *kernel;

  PetscFunctionBeginUser;
  PetscCall(SetupCreate(PRODUCT_AB, "stencil7", 6, 9, &s));
  PetscCall(MatTestIsCUDA(s.ours, &cuda));
  for (int spmm = 0; spmm <= MAT_AIJTCCUSPARSE_SPMM_CUSPARSE; spmm++) {
    const PetscBool parents = (PetscBool)(spmm == MAT_AIJTCCUSPARSE_SPMM_CUSPARSE), open = (PetscBool)(cuda && spmm == MAT_AIJTCCUSPARSE_SPMM_CLUSTER); /* it may not pay */

    PetscCall(MatAIJTCCUSPARSESetSpMM(s.ours, (MatAIJTCCUSPARSESpMM)spmm));
    PetscCall(ProductCount(s.ours, &before));
    PetscCall(MatMatMult(s.ours, s.B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &s.C));
    PetscCall(MatAIJTCCUSPARSEGetSpMMCount(s.ours, &after, &kernel));
    PetscCall(SameAsPlain(PRODUCT_AB, s.plain, s.B, s.C, &same));
    PetscCall(MatDestroy(&s.C));
    PetscCall(MatTestFact((PetscBool)(same && (open || (after > before) == !parents)), "-mat_aijtccusparse_spmm %s: %s, %" PetscInt64_FMT " of ours, kernel %s", MatAIJTCCUSPARSESpMMs[spmm], same ? "right" : "WRONG", after - before, kernel ? kernel : "none"));
  }
  PetscCall(SetupDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductChanges(void)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int product = 0; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
    PetscCall(TestNumeric(product, MAT_AIJTCCUSPARSE_SPMM_AUTO));
    if (product != PRODUCT_ABT) PetscCall(TestNumeric(product, MAT_AIJTCCUSPARSE_SPMM_BITTCF));
    PetscCall(TestReplace(product));
  }
  PetscCall(TestOneResult());
  PetscCall(TestSettings());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The n-th pass of the point fails during a product: the parent's is right, and is so again; our path comes back when asked to */
static PetscErrorCode TestFault(int product, tc_fault_point point, const char name[], int n, PetscBool *reached)
{
  Setup      s;
  PetscBool  same[3], back;
  PetscInt64 count[3];
  int        left, any;

  PetscFunctionBeginUser;
  PetscCall(SetupCreate(product, "long487", 100, 9, &s)); /* so many rows that the host packs panels */
  PetscCall(MatAIJTCCUSPARSEArmFault(s.ours, point, n, &left));
  PetscCall(ProductKinds()[product].multiply(s.ours, s.B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(MatAIJTCCUSPARSEArmFault(s.ours, point, 0, &left));
  any = left == 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *reached = any ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(SameAsPlain(product, s.plain, s.B, s.C, &same[0]));
  PetscCall(ChangeScale(s.ours));
  PetscCall(ChangeScale(s.plain));
  PetscCall(ProductCount(s.ours, &count[0]));
  PetscCall(ProductKinds()[product].multiply(s.ours, s.B, MAT_REUSE_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(SameAsPlain(product, s.plain, s.B, s.C, &same[1]));
  PetscCall(MatAIJTCCUSPARSEInvalidate(s.ours));
  PetscCall(ProductCount(s.ours, &count[1]));
  PetscCall(MatDestroy(&s.C));
  PetscCall(ProductKinds()[product].multiply(s.ours, s.B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &s.C));
  PetscCall(ProductCount(s.ours, &count[2]));
  PetscCall(SameAsPlain(product, s.plain, s.B, s.C, &same[2]));
  back = (PetscBool)(count[2] > count[1] && (left == 0 || count[1] > count[0]));
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1] && same[2] && back), "%s %d fails in %s: %s, products %s, %s, %s; ours again: %s", name, n, ProductKinds()[product].name, *reached ? "noticed" : "no such pass", same[0] ? "right" : "WRONG",
                        same[1] ? "right" : "WRONG", same[2] ? "right" : "WRONG", back ? "yes" : "NO"));
  PetscCall(SetupDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TestProductFailures(void)
{
  enum {
    MAX_PASSES = 64
  };
  static const char *const names[TC_FAULT_COUNT] = {[TC_FAULT_ALLOC] = "allocation", [TC_FAULT_UPLOAD] = "upload", [TC_FAULT_LAUNCH] = "launch"};
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int product = 0; product < (size > 1 ? PRODUCT_ABT : NUM_PRODUCTS); product++) {
    for (int point = 0; point < TC_FAULT_COUNT; point++) {
      PetscBool reached = PETSC_TRUE;
      int       n       = 1;

      for (; n < MAX_PASSES && reached; n++) PetscCall(TestFault(product, (tc_fault_point)point, names[point], n, &reached));
      PetscCall(MatTestFact((PetscBool)(n < MAX_PASSES && (point == TC_FAULT_UPLOAD || n > 2)), "%s: %d passes in %s", names[point], n - 2, ProductKinds()[product].name));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
