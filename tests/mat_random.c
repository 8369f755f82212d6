/*
  Random walks: the same operations, one after the other, on a matrix of our type and on one of MATAIJ, which have to stay equal. All numbers are integers, small enough that every sum and every
  product is exact in whatever order, so that results are compared with ==. Options: -random_walks, -random_steps.
*/
#include "mat_random.h"

static char help[] = "Tests MATAIJTCCUSPARSE by random sequences of operations.\n\n";

uint64_t MatRandomMix(uint64_t x)
{
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

PetscInt MatRandomDraw(Walk *W, PetscInt below)
{
  W->state += 0x9e3779b97f4a7c15u;
  return (PetscInt)(MatRandomMix(W->state) % (uint64_t)below);
}

/* Never 0, so that no side drops what the other one keeps */
PetscScalar MatRandomNumber(Walk *W)
{
  const PetscInt number = MatRandomDraw(W, 16) - 8;

  return (PetscScalar)(number < 0 ? number : number + 1);
}

/* A vector of integers like the rows of the matrix */
PetscErrorCode MatRandomFill(Vec v, uint64_t seed)
{
  PetscScalar *array;
  PetscInt     begin, end;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(v, &begin, &end));
  PetscCall(VecGetArrayWrite(v, &array));
  for (PetscInt i = begin; i < end; i++) array[i - begin] = (PetscScalar)((PetscInt)(MatRandomMix(seed + (uint64_t)i) % 17) - 8);
  PetscCall(VecRestoreArrayWrite(v, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomCompare(Walk *W, Vec ours, Vec theirs)
{
  const PetscScalar *a, *b;
  PetscInt           m;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(ours, &m));
  PetscCall(VecGetArrayRead(ours, &a));
  PetscCall(VecGetArrayRead(theirs, &b));
  for (PetscInt i = 0; i < m; i++) W->same = (PetscBool)(W->same && a[i] == b[i]);
  PetscCall(VecRestoreArrayRead(theirs, &b));
  PetscCall(VecRestoreArrayRead(ours, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomCompareDense(Walk *W, Mat ours, Mat theirs)
{
  const PetscScalar *a, *b;
  PetscInt           m, n, lda, ldb;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(ours, &m, NULL));
  PetscCall(MatGetSize(ours, NULL, &n));
  PetscCall(MatDenseGetLDA(ours, &lda));
  PetscCall(MatDenseGetLDA(theirs, &ldb));
  PetscCall(MatDenseGetArrayRead(ours, &a));
  PetscCall(MatDenseGetArrayRead(theirs, &b));
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) W->same = (PetscBool)(W->same && a[i + j * lda] == b[i + j * ldb]);
  }
  PetscCall(MatDenseRestoreArrayRead(theirs, &b));
  PetscCall(MatDenseRestoreArrayRead(ours, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRandomMultiply(Walk *W, const Mat A[], Form form, PetscBool turned)
{
  const uint64_t seed = MatRandomMix(W->state);
  Vec            x[NUM_SIDES], y[NUM_SIDES], z[NUM_SIDES];

  PetscFunctionBeginUser;
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatCreateVecs(A[s], turned ? &y[s] : &x[s], turned ? &x[s] : &y[s]));
    PetscCall(VecDuplicate(y[s], &z[s]));
    PetscCall(MatRandomFill(x[s], seed));
    PetscCall(MatRandomFill(y[s], MatRandomMix(seed)));
    PetscCall(MatTestPoison(z[s]));
    if (form == PRODUCT) PetscCall((turned ? MatMultTranspose : MatMult)(A[s], x[s], z[s]));
    else if (form == SUM) PetscCall((turned ? MatMultTransposeAdd : MatMultAdd)(A[s], x[s], y[s], z[s]));
    else if (form == RESIDUAL) PetscCall(MatResidual(A[s], y[s], x[s], z[s]));
    else PetscCall((turned ? MatMultTransposeAdd : MatMultAdd)(A[s], x[s], y[s], y[s]));
  }
  PetscCall(MatRandomCompare(W, form == IN_PLACE ? y[OURS] : z[OURS], form == IN_PLACE ? y[THEIRS] : z[THEIRS]));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(VecDestroy(&x[s]));
    PetscCall(VecDestroy(&y[s]));
    PetscCall(VecDestroy(&z[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begins anew where entries become so large that a sum of products of two might not be exact */
static PetscErrorCode KeepSmall(Walk *W)
{
  const PetscReal most = PetscDefined(USE_REAL_SINGLE) ? 1.0e2 : 1.0e5;
  PetscReal       norm;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(W->A[THEIRS], NORM_FROBENIUS, &norm));
  if (norm > most) PetscCall(MatRandomNewEntries(W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestWalk(PetscInt seed, PetscInt n, PetscInt steps)
{
  Walk        W    = {.state = MatRandomMix((uint64_t)seed), .n = n, .same = PETSC_TRUE, .petsc_multiplies = (PetscBool)(seed % 5 == 3)};
  const char *last = "creation";
  PetscBool   ours = PETSC_TRUE;
  PetscInt    step = 0, so = 1, num = 0;

  PetscFunctionBeginUser;
  while (MatRandomOperationAt(num)) num++;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_defer", seed % 2 ? "true" : "false"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_eager", seed % 5 == 2 ? "true" : "false"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_spmm", W.petsc_multiplies ? "cusparse" : "auto"));
  PetscCall(PetscOptionsSetValue(NULL, "-matproduct_batch_size", W.petsc_multiplies ? "100" : "0")); // columns at a time: in parts PETSc's product of three is wrong on GPUs (docs/performance.md)
  PetscCall(MatRandomCreate(&W, W.A));
  for (; step < steps && so; step++) {
    const MatRandomOperation *const operation = MatRandomOperationAt(MatRandomDraw(&W, num));

    last = operation->name;
    for (int s = 0; s < NUM_SIDES; s++) PetscCall(MatSetOption(W.A[s], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); // what the operation before has put in its place does not know of it
    PetscCall(operation->run(&W));
    PetscCall(KeepSmall(&W));
    PetscCall(MatRandomMultiply(&W, W.A, PRODUCT, PETSC_FALSE));
    if (step % 3 == 0) PetscCall(MatRandomMultiply(&W, W.A, PRODUCT, PETSC_TRUE));
    PetscCall(MatIsAIJTCCUSPARSE(W.A[OURS], &ours));
    so = W.same && ours;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &so, 1, MPIU_INT, MPI_MIN, PETSC_COMM_WORLD));
  }
  PetscCall(MatTestFact((PetscBool)so, "walk %" PetscInt_FMT ", %" PetscInt_FMT " rows: %" PetscInt_FMT " operations, the last %s%s", seed, n, step, last, so ? "" : ours ? ": DIFFERENT" : ": NOT OUR TYPE ANY MORE"));
  PetscCall(PetscOptionsClearValue(NULL, "-matproduct_batch_size")); // nobody reads it on one process
  PetscCall(MatRandomForgetProducts(&W, PETSC_FALSE));
  PetscCall(MatDestroy(&W.B));
  for (int s = 0; s < NUM_SIDES; s++) {
    PetscCall(MatDestroy(&W.A[s]));
    PetscCall(MatDestroy(&W.earlier[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  static const PetscInt rows[] = {60, 7, 200};
  PetscInt              walks = 30, steps = 80;

  PetscFunctionBeginUser;
  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-random_walks", &walks, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-random_steps", &steps, NULL));
  for (PetscInt seed = 1; seed <= walks; seed++) PetscCall(TestWalk(seed, rows[seed % 3], steps));
  return MatTestEnd();
}
