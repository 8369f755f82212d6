/*
  Products of sparse matrices, which are the parent's: right wherever the values of the factors are, on the GPU alone, too, and of a matrix that was changed there. What the GPU has computed is not sent to it.
*/
#include "mat_ops.h"

typedef PetscErrorCode (*SparseProduct)(Mat, Mat, MatReuse, Mat *);

static PetscErrorCode AP(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  return MatMatMult(A, P, reuse, PETSC_CURRENT, C);
}

static PetscErrorCode PtA(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  return MatTransposeMatMult(P, A, reuse, PETSC_CURRENT, C);
}

static PetscErrorCode PtAP(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  return MatPtAP(A, P, reuse, PETSC_CURRENT, C);
}

static PetscErrorCode AAP(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  return MatMatMatMult(A, A, P, reuse, PETSC_CURRENT, C);
}

static const struct {
  const char   *name;
  SparseProduct product;
} products[] = {
  {"A P",     AP  },
  {"P^T A",   PtA },
  {"P^T A P", PtAP},
  {"A A P",   AAP },
};

/* Of positive values, so that whatever is added up is as good as each sum */
static PetscErrorCode CreatePositive(const char generator[], PetscInt size, Mat M[2])
{
  tc_matrix S;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate(generator, size, &S));
  for (int64_t e = 0; e < S.nnz; e++) S.val[e] = fabs(S.val[e]) + 0.5;
  for (int s = 0; s < 2; s++) PetscCall(MatTestCreate(&S, s ? MATAIJ : MATAIJTCCUSPARSE, &M[s]));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of positive numbers: of no more than three factors and `terms` terms, twice in a row, in any order; then the norm of the difference is within that part of the norm */
static PetscErrorCode SameMatrix(Mat C, Mat expected, PetscInt terms, PetscBool *same)
{
  Mat       D;
  PetscReal difference, norm;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(C, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatAXPY(D, -1.0, expected, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatNorm(D, NORM_FROBENIUS, &difference));
  PetscCall(MatNorm(expected, NORM_FROBENIUS, &norm));
  *same = (PetscBool)(norm > 0 && difference <= 2 * (2 * (PetscReal)terms + 3) * PETSC_MACHINE_EPSILON * norm);
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes so far, as PETSc counts them */
static PetscLogDouble SentToGPU(void)
{
#if PetscDefined(USE_LOG) && PetscDefined(HAVE_DEVICE)
  return petsc_ctog_sz;
#else
  return 0;
#endif
}

/* Of P^T A P with values of A that are the GPU's alone: has it been sent less than the values of A P, which it has computed? */
static PetscErrorCode CheckSent(Mat A[2], Mat P[2], PetscLogDouble sent)
{
  PetscMPIInt size;
  PetscBool   cuda;
  MatInfo     info;
  Mat         AP;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestIsCUDA(A[0], &cuda));
  if (!cuda || size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMatMult(A[1], P[1], MAT_INITIAL_MATRIX, PETSC_CURRENT, &AP));
  PetscCall(MatGetInfo(AP, MAT_LOCAL, &info));
  PetscCall(MatTestFact((PetscBool)(sent < info.nz_used * sizeof(PetscScalar)), "P^T A P of values that are the GPU's alone: %g bytes sent to it, values of A P %g", sent, info.nz_used * sizeof(PetscScalar)));
  PetscCall(MatDestroy(&AP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is A P of a parallel matrix whose values are on both sides, and of a P that is new, the host's, to which nothing has to be sent, unless an option says otherwise? */
static PetscErrorCode CheckHost(Mat A, PetscLogDouble sent, const char option[])
{
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestIsCUDA(A, &cuda));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  if (cuda && size > 1) PetscCall(MatTestFact((PetscBool)((sent == 0) == !option), "A P of a new P on %d processes%s%s: %g bytes sent to the GPU", size, option ? ", " : "", option ? option : "", sent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What there is before the product: a P that has multiplied, that and a matrix whose values are the GPU's alone since it was changed, if there is one, or a new P, without and with an option */
typedef enum {
  USED,
  CHANGED,
  NEW,
  TOLD,
  NUM_STATES
} ProductState;

static PetscErrorCode CheckProduct(int p, ProductState state)
{
  static const char *const states[] = {"", " of a matrix changed where it multiplies", " of a new P", " of a new P, told to stay on the GPU"};
  static const char        option[] = "-matmatmult_backend_cpu";
  const PetscBool          changed  = (PetscBool)(state == CHANGED);
  Mat                      A[2], P[2], C[2];
  PetscInt                 rows;
  PetscBool                right, same[2];
  PetscLogDouble           sent = 0;

  PetscFunctionBeginUser;
  if (state == TOLD) PetscCall(PetscOptionsSetValue(NULL, option, "false"));
  PetscCall(CreatePositive("stencil7", 6, A));
  PetscCall(CreatePositive("interpolation", 3, P));
  PetscCall(MatGetSize(A[0], &rows, NULL));
  PetscCall(MatTestSameProduct(A[0], A[1], &right)); /* sends the values to the GPU */
  if (state < NEW) PetscCall(MatTestSameProduct(P[0], P[1], &right));
  for (int s = 0; s < 2 && changed; s++) {
    PetscCall(MatScale(A[s], 3.0));
    PetscCall(MatShift(A[s], 0.25));
  }
  for (int again = 0; again < 2; again++) {
    for (int s = 0; s < 2; s++) {
      const PetscLogDouble before = SentToGPU();

      if (again) PetscCall(MatScale(A[s], 1.7));
      PetscCall((*products[p].product)(A[s], P[s], again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &C[s]));
      if (s == 0 && !again) sent = SentToGPU() - before;
    }
    PetscCall(SameMatrix(C[0], C[1], rows, &same[again]));
  }
  PetscCall(MatTestFact((PetscBool)(same[0] && same[1]), "%s%s: %s, with new values %s", products[p].name, states[state], same[0] ? "right" : "WRONG", same[1] ? "right" : "WRONG"));
  if (changed && products[p].product == PtAP) PetscCall(CheckSent(A, P, sent));
  if (state >= NEW && products[p].product == AP) PetscCall(CheckHost(A[0], sent, state == TOLD ? option : NULL));
  if (state == TOLD) PetscCall(PetscOptionsClearValue(NULL, option));
  for (int s = 0; s < 2; s++) {
    PetscCall(MatDestroy(&A[s]));
    PetscCall(MatDestroy(&P[s]));
    PetscCall(MatDestroy(&C[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckSparseProducts(void)
{
  PetscFunctionBeginUser;
  for (int p = 0; p < (int)PETSC_STATIC_ARRAY_LENGTH(products); p++) {
    for (ProductState state = 0; state < NUM_STATES; state++) PetscCall(CheckProduct(p, state));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
