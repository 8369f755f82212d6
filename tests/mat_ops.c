/*
  Every relative of MatMult(), MatResidual() among them, against the a-priori bound of each row and against MATAIJ, over all matrices, with poisoned outputs, with NaN and infinities in x,
  and with vectors on the other side of the bus.
*/
#include "mat_ops.h"
#include <math.h>
#include <stdlib.h>

static char help[] = "Tests MatMult() and its relatives of MATAIJTCCUSPARSE.\n  -only_choices : only what options, trials and block sizes choose\n\n";

typedef enum {
  OP_MULT,
  OP_ADD,
  OP_ADD_IN_PLACE,
  NUM_OPS
} Op;

typedef struct {
  const char *name;
  PetscErrorCode (*mult)(Mat, Vec, Vec); /* NULL: there is none */
  PetscErrorCode (*add)(Mat, Vec, Vec, Vec);
  PetscBool transpose, subtract;
} Family;

/* Its arguments in the order of MatMultAdd(). MATAIJ's own overwrites the right-hand side if that is where the result goes. */
static PetscErrorCode Residual(Mat A, Vec x, Vec b, Vec r)
{
  PetscBool ours;
  Vec       copy;

  PetscFunctionBeginUser;
  PetscCall(MatIsAIJTCCUSPARSE(A, &ours));
  if (ours || b != r) PetscCall(MatResidual(A, b, x, r));
  else {
    PetscCall(VecDuplicate(b, &copy));
    PetscCall(VecCopy(b, copy));
    PetscCall(MatResidual(A, copy, x, r));
    PetscCall(VecDestroy(&copy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Family families[] = {
  {"MatMult",                   MatMult,                   MatMultAdd,                   PETSC_FALSE, PETSC_FALSE},
  {"MatResidual",               NULL,                      Residual,                     PETSC_FALSE, PETSC_TRUE },
  {"MatMultTranspose",          MatMultTranspose,          MatMultTransposeAdd,          PETSC_TRUE,  PETSC_FALSE},
  {"MatMultHermitianTranspose", MatMultHermitianTranspose, MatMultHermitianTransposeAdd, PETSC_TRUE,  PETSC_FALSE},
};

static const char *OpName(const Family *family, Op op)
{
  if (op == OP_MULT) return "";
  if (op == OP_ADD) return family->mult ? "Add" : "";
  return family->mult ? "Add in place" : " in place";
}

static PetscErrorCode Apply(const Family *family, Op op, Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBeginUser;
  if (op == OP_MULT) PetscCall(family->mult(A, x, z));
  else if (op == OP_ADD) PetscCall(family->add(A, x, y, z));
  else {
    PetscCall(VecCopy(y, z));
    PetscCall(family->add(A, x, z, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces a vector by a new one of the given type, the layout stays */
static PetscErrorCode SetVecType(Vec *x, VecType type)
{
  PetscInt n, N;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(*x, &n));
  PetscCall(VecGetSize(*x, &N));
  PetscCall(VecDestroy(x));
  PetscCall(VecCreate(PETSC_COMM_WORLD, x));
  PetscCall(VecSetSizes(*x, n, N));
  PetscCall(VecSetType(*x, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x (+ y) with vectors of the given types (NULL: the matrix's own); z as long as its local part is */
static PetscErrorCode Product(const Family *family, Op op, Mat A, VecType x_type, VecType z_type, uint64_t seed, double poison, double **result)
{
  Vec                x, y, z;
  PetscScalar       *array;
  const PetscScalar *read;
  PetscInt           first, end, n;

  PetscFunctionBeginUser;
  PetscCall(family->transpose ? MatCreateVecs(A, &z, &x) : MatCreateVecs(A, &x, &z));
  if (x_type) PetscCall(SetVecType(&x, x_type));
  if (z_type) PetscCall(SetVecType(&z, z_type));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(MatTestRandom(x, seed, NULL));
  PetscCall(MatTestRandom(y, seed + 1, NULL));
  if (poison != 0) {
    PetscCall(VecGetOwnershipRange(x, &first, &end));
    PetscCall(VecGetSize(x, &n));
    PetscCall(VecGetArray(x, &array));
    for (PetscInt i = first; i < end; i++) {
      if (i == 0 || i == n / 3) array[i - first] = poison;
    }
    PetscCall(VecRestoreArray(x, &array));
  }
  PetscCall(MatTestPoison(z));
  PetscCall(Apply(family, op, A, x, y, z));
  PetscCall(VecGetLocalSize(z, &n));
  PetscCall(VecGetArrayRead(z, &read));
  PetscCall(MatTestWiden(n, read, result));
  PetscCall(VecRestoreArrayRead(z, &read));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local part of a global random vector, as MatTestRandom() fills it */
static PetscErrorCode GlobalRandom(PetscInt n, uint64_t seed, double **x)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n, x));
  tc_random_normal(n, seed, *x);
  MatTestRound(n, *x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Ours and MATAIJ's result within the bound; on one process, where the block is the whole matrix, also the bits that the format defines, on host and GPU alike.
  `R` is the matrix whose rows the results are: A, its negative or its transpose.
*/
static PetscErrorCode CheckProduct(const char name[], const Family *family, Op op, const tc_matrix *R, Mat ours, Mat plain)
{
  PetscMPIInt  size;
  PetscInt     first, end, m;
  int          extra;
  tc_matrix    L;
  double      *x, *y, *bits, *z, *z_plain;
  long double *ref, *bound, *bound_plain;
  double       worst, worst_plain;
  PetscBool    same = PETSC_TRUE, cuda, apart;

  PetscFunctionBeginUser;
  PetscCall(MatTestIsCUDA(ours, &cuda));
  apart = (PetscBool)(op != OP_MULT && family->mult == MatMultHermitianTranspose && !cuda); /* PETSc adds in a second step */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(family->transpose ? MatGetOwnershipRangeColumn(ours, &first, &end) : MatGetOwnershipRange(ours, &first, &end));
  m = end - first;
  L = MatTestLocalRows(R, first, end);
  PetscCall(Product(family, op, ours, NULL, NULL, 11, 0, &z));
  PetscCall(Product(family, op, plain, NULL, NULL, 11, 0, &z_plain));
  PetscCall(GlobalRandom(R->num_cols, 11, &x));
  PetscCall(GlobalRandom(R->num_rows, 12, &y));
  PetscCall(PetscMalloc4(m, &ref, m, &bound, m, &bound_plain, m, &bits));
  /* a row lies in two blocks, a column on all processes: that many more roundings at most */
  extra = (op != OP_MULT) + (family->transpose ? size : size > 1);
  tc_oracle_spmv(&L, x, op == OP_MULT ? NULL : y + first, extra, ref, bound);
  PetscCall(PetscArraycpy(bound_plain, bound, m));
  MatTestAddRounding(&L, x, op == OP_MULT ? NULL : y + first, size > 1 || apart ? extra : 0, PETSC_TRUE, bound);
  MatTestAddRounding(&L, x, op == OP_MULT ? NULL : y + first, extra, PETSC_FALSE, bound_plain);
  worst       = tc_error_over_bound(m, z, ref, bound);
  worst_plain = tc_error_over_bound(m, z_plain, ref, bound_plain);
  if (size == 1) {
    tc_canonical_spmv(&L, x, op == OP_MULT || apart ? NULL : y, bits);
    MatTestRound(m, bits);
    for (PetscInt i = 0; apart && i < m; i++) bits[i] += y[i];
    MatTestRound(m, bits);
    same = (PetscBool)(tc_first_different(m, z, bits) == m);
  }
  PetscCall(MatTestFact((PetscBool)(worst <= 1 && worst_plain <= 1 && same), "%s %s%s: error/bound %.3f, MATAIJ %.3f%s", name, family->name, OpName(family, op), worst, worst_plain,
                        size > 1 ? ""
                        : same   ? ", the defined bits"
                                 : ", OTHER BITS"));
  PetscCall(PetscFree4(ref, bound, bound_plain, bits));
  PetscCall(PetscFree(x));
  PetscCall(PetscFree(y));
  PetscCall(PetscFree(z));
  PetscCall(PetscFree(z_plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of the results: those of the matrix or of its transpose */
static PetscErrorCode LocalResults(const Family *family, Mat A, PetscInt *m)
{
  PetscFunctionBeginUser;
  PetscCall(family->transpose ? MatGetLocalSize(A, NULL, m) : MatGetLocalSize(A, m, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A NaN or an infinity in x: the same rows of ours and of MATAIJ are affected, in the same way */
static PetscErrorCode CheckNonfinite(const char name[], const Family *family, Mat ours, Mat plain)
{
  static const double poisons[] = {NAN, INFINITY, -INFINITY};
  const Op            op        = family->mult ? OP_MULT : OP_ADD;
  PetscBool           same      = PETSC_TRUE;
  PetscInt            m;

  PetscFunctionBeginUser;
  PetscCall(LocalResults(family, ours, &m));
  for (int p = 0; p < 3; p++) {
    double *z, *z_plain;

    PetscCall(Product(family, op, ours, NULL, NULL, 11, poisons[p], &z));
    PetscCall(Product(family, op, plain, NULL, NULL, 11, poisons[p], &z_plain));
    if (tc_first_other_class(m, z, z_plain) < m) same = PETSC_FALSE;
    PetscCall(PetscFree(z));
    PetscCall(PetscFree(z_plain));
  }
  PetscCall(MatTestFact(same, "%s %s with NaN and infinities in x: the rows that refer to them", name, family->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The same bits again, and with every mixture of host and device vectors. Not of transposed products on the GPU and three processes or more: there several processes add
  to one entry, and PETSc's scatter does that with atomics, in any order.
*/
static PetscErrorCode CheckVectorTypes(const char name[], const Family *family, Mat ours, PetscBool cuda)
{
  const VecType types[] = {VECSTANDARD, VECCUDA};
  PetscMPIInt   size;
  double       *first, *z;
  PetscInt      m;
  PetscBool     same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (family->transpose && cuda && size > 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LocalResults(family, ours, &m));
  for (int op = family->mult ? OP_MULT : OP_ADD; op < NUM_OPS; op++) {
    PetscCall(Product(family, (Op)op, ours, NULL, NULL, 11, 0, &first));
    for (int x_type = 0; x_type <= cuda; x_type++) {
      for (int z_type = 0; z_type <= cuda; z_type++) {
        PetscCall(Product(family, (Op)op, ours, types[x_type], types[z_type], 11, 0, &z));
        if (tc_first_different(m, first, z) < m) same = PETSC_FALSE;
        PetscCall(PetscFree(z));
      }
    }
    PetscCall(PetscFree(first));
  }
  PetscCall(MatTestFact(same, "%s %s, also added, with %s: the same bits", name, family->name, cuda ? "host and device vectors, mixed" : "host vectors, repeated"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every product of a family counts once, on its side and not on the other */
static PetscErrorCode CheckCounts(const char name[], Mat ours)
{
  const int     num_products = 5;
  MatTestCounts before[2], after[2];
  Vec           x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(ours, &x, &y));
  PetscCall(MatTestRandom(x, 3, NULL));
  PetscCall(MatTestRandom(y, 4, NULL));
  PetscCall(MatMult(ours, x, y));
  PetscCall(MatMultTranspose(ours, y, x));
  PetscCall(MatTestGetCounts(ours, &before[0]));
  PetscCall(MatTestGetTransposeCounts(ours, &before[1]));
  PetscCall(MatMult(ours, x, y));
  PetscCall(MatMultAdd(ours, x, y, y));
  PetscCall(MatResidual(ours, y, x, y));
  PetscCall(MatMultTranspose(ours, y, x));
  PetscCall(MatMultTransposeAdd(ours, y, x, x));
  PetscCall(MatTestGetCounts(ours, &after[0]));
  PetscCall(MatTestGetTransposeCounts(ours, &after[1]));
  PetscCall(MatTestFact((PetscBool)(after[0].hits - before[0].hits == 3 && after[1].hits - before[1].hits == num_products - 3 && after[0].rebuilds == 1 && after[1].rebuilds == 1 && after[0].refills + after[1].refills == 0),
                        "%s: %d products are %" PetscInt64_FMT " hits and %" PetscInt64_FMT " transposed ones", name, num_products, after[0].hits - before[0].hits, after[1].hits - before[1].hits));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckMatrix(const char name[], const tc_matrix *A)
{
  Mat       ours, plain;
  tc_matrix T, N = *A;
  PetscBool is_ours, cuda;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_transpose(A, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", tc_last_error());
  PetscCall(PetscMalloc1(A->nnz, &N.val));
  for (int64_t e = 0; e < A->nnz; e++) N.val[e] = -A->val[e];
  PetscCall(MatTestCreate(A, MATAIJTCCUSPARSE, &ours));
  PetscCall(MatTestCreate(A, MATAIJ, &plain));
  PetscCall(MatIsAIJTCCUSPARSE(ours, &is_ours));
  PetscCall(MatTestFact(is_ours, "%s is of our type", name));
  PetscCall(MatTestHasCUDA(&cuda));
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(families); f++) {
    const Family    *family = &families[f];
    const tc_matrix *rows   = family->transpose ? &T : family->subtract ? &N : A;

    for (int op = family->mult ? OP_MULT : OP_ADD; op < NUM_OPS; op++) PetscCall(CheckProduct(name, family, (Op)op, rows, ours, plain));
    PetscCall(CheckNonfinite(name, family, ours, plain));
    PetscCall(CheckVectorTypes(name, family, ours, cuda));
  }
  PetscCall(CheckCounts(name, ours));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscCall(PetscFree(N.val));
  tc_matrix_free(&T);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscBool only_choices = PETSC_FALSE;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-only_choices", &only_choices, NULL));
  if (!only_choices) PetscCall(MatTestEachMatrix(CheckMatrix));
  PetscCall(CheckChoices());
  PetscCall(CheckRefused());
  PetscCall(CheckStreams());
  PetscCall(CheckGraphs());
  PetscCall(CheckSparseProducts());
  return MatTestEnd();
}
