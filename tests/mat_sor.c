/*
  MatSOR(): where the GPU sweeps, the result is that of the parent's host code, bit for bit; what it does not do is the parent's. On the host all is the parent's.
*/
#include "mat_util.h"
#include "../kernels/tc_base.h"
#include <petscksp.h>

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

typedef struct {
  const char *name, *generator;
  PetscErrorCode (*make)(PetscInt, tc_matrix *); /* where there is no generator */
  PetscInt size, bs;
} SORCase;

/* Three diagonals: each row waits for the one before, as many levels as rows */
static PetscErrorCode Chain(PetscInt size, tc_matrix *S)
{
  const int32_t rows = (int32_t)size;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, 3 * (int64_t)rows - 2, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    int64_t at = S->row_ptr[i];

    for (int32_t j = PetscMax(i - 1, 0); j <= PetscMin(i + 1, rows - 1); j++, at++) {
      S->col[at] = j;
      S->val[at] = j == i ? 2.1 + 1.0 / (1 + i % 5) : -1.0 - 0.1 / (1 + i % 3);
    }
    S->row_ptr[i + 1] = at;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nothing but a diagonal: one level */
static PetscErrorCode Diagonal(PetscInt size, tc_matrix *S)
{
  const int32_t rows = (int32_t)size;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    S->row_ptr[i + 1] = i + 1;
    S->col[i]         = i;
    S->val[i]         = 3.0 + 1.0 / (1 + i);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of 1 to 40 entries at random places, other ones above and below the diagonal, which is the largest */
static PetscErrorCode Scattered(PetscInt size, tc_matrix *S)
{
  const int32_t rows  = (int32_t)size;
  uint64_t      state = 12345;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, 42 * (int64_t)rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  S->nnz = 0;
  for (int32_t i = 0; i < rows; i++) {
    const int32_t step = 1 + (int32_t)((i * 7919u) % 97u);
    int32_t       num  = 0;

    for (int32_t j = i % step; j < rows && num < 40; j += step) {
      if (i - j > 20 * step) continue;
      state          = state * 6364136223846793005u + 1442695040888963407u;
      S->col[S->nnz] = j; /* column i is among them */
      S->val[S->nnz] = j == i ? 50.0 + 0.25 * (double)(i % 11) : (double)(int64_t)(state >> 11) / 9007199254740992.0 - 0.5;
      S->nnz++, num++;
    }
    S->row_ptr[i + 1] = S->nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of generators are random: diagonals that the sweeps converge with */
static void MakeDominant(tc_matrix *S)
{
  for (int32_t i = 0; i < S->num_rows; i++) {
    double sum = 0;

    for (int64_t k = S->row_ptr[i]; k < S->row_ptr[i + 1]; k++) sum += S->col[k] == i ? 0 : fabs(S->val[k]);
    for (int64_t k = S->row_ptr[i]; k < S->row_ptr[i + 1]; k++) {
      if (S->col[k] == i) S->val[k] = 1.1 * sum + 0.3 + 0.01 * (i % 7);
    }
  }
}

static const SORCase cases[] = {
  {"stencil of 7 points", "stencil7", NULL, 12, 1},
  {"27 points", "stencil27", NULL, 9, 1},
  {"nodes of three rows", "elasticity", NULL, 5, 3},
  {"convection", "convection", NULL, 9, 1},
  {"three diagonals", NULL, Chain, 2000, 1},
  {"a diagonal", NULL, Diagonal, 333, 1},
  {"scattered", NULL, Scattered, 1500, 1},
  {"one row for each process or none", NULL, Diagonal, 2, 1},
};

static const struct {
  const char *name;
  int         flag;
} sweeps[] = {
  {"forward", SOR_LOCAL_FORWARD_SWEEP},
  {"backward", SOR_LOCAL_BACKWARD_SWEEP},
  {"symmetric", SOR_LOCAL_SYMMETRIC_SWEEP},
  {"Eisenstat's", SOR_EISENSTAT},
};

/* How many calls has the GPU done, by what MatView() says on the first process? */
static PetscErrorCode CallsOnDevice(Mat A, long *calls)
{
  char *text, *at;

  PetscFunctionBeginUser;
  *calls = 0;
  PetscCall(MatTestViewText(A, PETSC_VIEWER_ASCII_INFO_DETAIL, &text));
  at = text ? strstr(text, " calls done on the GPU") : NULL;
  if (at) {
    while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
    *calls = strtol(at, NULL, 10);
  }
  free(text);
  PetscCallMPI(MPI_Bcast(calls, 1, MPI_LONG, 0, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of the matrix's, its content that of a random one with that seed */
static PetscErrorCode NewVec(Mat A, uint64_t seed, Vec *v)
{
  double *all;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, v, NULL));
  PetscCall(MatTestRandom(*v, seed, &all));
  free(all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  int       flag;
  PetscReal omega, shift;
  PetscInt  its, lits;
} Sweep;

/* MatSOR() with A and with B, by numbers that are alike: the same bits? */
static PetscErrorCode SameBits(Mat A, Mat B, const Sweep *s, PetscBool *same)
{
  Mat                M[2] = {A, B};
  Vec                b[2], x[2];
  const PetscScalar *array[2];
  PetscInt           n;
  PetscBool          mine;

  PetscFunctionBeginUser;
  for (int m = 0; m < 2; m++) {
    PetscCall(NewVec(M[m], 1, &b[m]));
    PetscCall(NewVec(M[m], 2, &x[m]));
    if (s->flag & SOR_ZERO_INITIAL_GUESS) PetscCall(MatTestPoison(x[m]));
    PetscCall(MatSOR(M[m], b[m], s->omega, (MatSORType)s->flag, s->shift, s->its, s->lits, x[m]));
  }
  PetscCall(VecGetLocalSize(x[0], &n));
  for (int m = 0; m < 2; m++) PetscCall(VecGetArrayRead(x[m], &array[m]));
  mine = PETSC_TRUE;
  for (PetscInt i = 0; i < n && mine; i++) mine = (PetscBool)(memcmp(&array[0][i], &array[1][i], sizeof(PetscScalar)) == 0 && !PetscIsInfOrNanScalar(array[0][i]));
  for (int m = 0; m < 2; m++) {
    PetscCall(VecRestoreArrayRead(x[m], &array[m]));
    PetscCall(VecDestroy(&b[m]));
    PetscCall(VecDestroy(&x[m]));
  }
  PetscCallMPI(MPIU_Allreduce(&mine, same, 1, MPI_C_BOOL, MPI_LAND, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every sweep by A, which the GPU does, and by B */
static PetscErrorCode CheckSweeps(const char name[], const char who[], Mat A, Mat B, PetscBool from_zero_alone)
{
  static const PetscReal omegas[] = {1.0, 1.0, 1.25, 0.8}, shifts[] = {0.0, -1.0, 0.0, 0.5};

  PetscFunctionBeginUser;
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(sweeps); w++) {
    PetscBool   all = PETSC_TRUE, same;
    PetscMPIInt size;

    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    if (sweeps[w].flag == SOR_EISENSTAT && size > 1) continue; /* MATMPIAIJ (3.26.1) asks its diagonal block for MatMultDiagonalBlock(), which has none without nodes */
    for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(omegas); o++) {
      for (PetscInt its = 1; its <= 3; its++) {
        for (int zero = 0; zero < (sweeps[w].flag == SOR_EISENSTAT ? 1 : 2); zero++) {
          const Sweep s = {sweeps[w].flag | (zero ? SOR_ZERO_INITIAL_GUESS : 0), omegas[o], shifts[o], its, its == 2 ? 2 : 1};

          if (from_zero_alone && (!zero || its > 1)) continue;
          if (sweeps[w].flag == SOR_EISENSTAT && its > 1) continue;
          PetscCall(SameBits(A, B, &s, &same));
          all = (PetscBool)(all && same);
        }
      }
    }
    PetscCall(MatTestFact(all, "SOR, %s, %s: the bits are those of %s", name, sweeps[w].name, who));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckCase(const SORCase *c, PetscMPIInt size, PetscBool cuda)
{
  tc_matrix S;
  Mat       A, parents, plain;
  long      calls;
  PetscBool same;
  Sweep     s = {SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS, 1.0, 0.0, 1, 1};

  PetscFunctionBeginUser;
  if (c->generator) PetscCall(MatTestGenerate(c->generator, c->size, &S));
  else PetscCall(c->make(c->size, &S));
  MakeDominant(&S);
  PetscCall(MatTestCreateBlocked(&S, MATAIJTCCUSPARSE, c->bs, &A));
  PetscCall(MatTestCreateBlocked(&S, MATAIJTCCUSPARSE, c->bs, &parents));
  PetscCall(MatTestCreateBlocked(&S, MATAIJ, c->bs, &plain));
  PetscCall(MatAIJTCCUSPARSESetSOR(A, MAT_AIJTCCUSPARSE_SOR_DEVICE));
  PetscCall(MatAIJTCCUSPARSESetSOR(parents, MAT_AIJTCCUSPARSE_SOR_HOST));
  if (cuda) { /* on a GPU the parent has no nodes */
    PetscCall(MatSetOption(plain, MAT_USE_INODES, PETSC_FALSE));
    if (size > 1) {
      Mat block;

      PetscCall(MatGetDiagonalBlock(plain, &block));
      PetscCall(MatSetOption(block, MAT_USE_INODES, PETSC_FALSE));
    }
  }
  PetscCall(CheckSweeps(c->name, "the parent type", A, parents, PETSC_FALSE));
  PetscCall(CheckSweeps(c->name, "MATAIJ", A, plain, (PetscBool)(size > 1))); /* else they multiply with off-diagonal blocks, too */
  PetscCall(CallsOnDevice(A, &calls));
  PetscCall(MatTestFact((PetscBool)((calls > 0) == cuda), "SOR, %s: done by %s", c->name, cuda ? "the GPU" : "the host"));
  PetscCall(CallsOnDevice(parents, &calls));
  PetscCall(MatTestFact((PetscBool)(calls == 0), "SOR, %s, asked for on the host: not done by the GPU", c->name));
  PetscCall(MatScale(A, -1.7));
  PetscCall(MatScale(parents, -1.7));
  PetscCall(SameBits(A, parents, &s, &same));
  PetscCall(MatTestFact(same, "SOR, %s, new values: the bits are those of the parent type", c->name));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&parents));
  PetscCall(MatDestroy(&plain));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `auto` has the host do what would wait for as many rows as there are, one after the other */
static PetscErrorCode CheckChoice(PetscBool cuda)
{
  static const struct {
    const char *name, *generator;
    PetscErrorCode (*make)(PetscInt, tc_matrix *);
    PetscInt  size;
    PetscBool device;
  } choices[] = {
    {"as many levels as rows", NULL,       Chain, 5000, PETSC_FALSE},
    {"a mesh",                 "stencil7", NULL,  40,   PETSC_TRUE }
  };
  const Sweep s = {SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS, 1.0, 0.0, 1, 1};

  PetscFunctionBeginUser;
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(choices); c++) {
    tc_matrix S;
    Mat       A, parents;
    long      calls;
    PetscBool same;

    if (choices[c].generator) PetscCall(MatTestGenerate(choices[c].generator, choices[c].size, &S));
    else PetscCall(choices[c].make(choices[c].size, &S));
    MakeDominant(&S);
    PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
    PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &parents));
    PetscCall(MatAIJTCCUSPARSESetSOR(parents, MAT_AIJTCCUSPARSE_SOR_HOST));
    PetscCall(SameBits(A, parents, &s, &same));
    PetscCall(CallsOnDevice(A, &calls));
    PetscCall(MatTestFact((PetscBool)(same && (calls > 0) == (cuda && choices[c].device)), "SOR, %s, nothing asked for: the same bits, by %s", choices[c].name, cuda && choices[c].device ? "the GPU" : "the host"));
    for (int turn = 0; turn < 2; turn++) {
      PetscCall(MatAIJTCCUSPARSESetSOR(A, turn ? MAT_AIJTCCUSPARSE_SOR_AUTO : MAT_AIJTCCUSPARSE_SOR_DEVICE));
      PetscCall(SameBits(A, parents, &s, &same));
      PetscCall(CallsOnDevice(A, &calls));
      PetscCall(MatTestFact((PetscBool)(same && (calls > 0) == (cuda && (!turn || choices[c].device))), "SOR, %s, then %s: the same bits, by %s", choices[c].name, turn ? "no more" : "the GPU asked for", calls > 0 ? "the GPU" : "the host"));
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&parents));
    tc_matrix_free(&S);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What the parent refuses is refused, and the matrix multiplies afterwards; then there is nothing to refuse any more, with a new pattern or new values. Releases before 3.26 need not refuse a missing entry, and what
  they read in its place is anybody's.
*/
static PetscErrorCode CheckRefused(PetscBool missing)
{
  const Sweep    s = {SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS, 1.0, 0.0, 1, 1};
  Mat            A[2];
  Vec            b, x;
  PetscBool      same, refused[2] = {PETSC_FALSE, PETSC_FALSE};
  const PetscInt n = 50;

  PetscFunctionBeginUser;
  for (int m = 0; m < 2; m++) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &A[m]));
    PetscCall(MatSetSizes(A[m], n, n, n, n));
    PetscCall(MatSetType(A[m], m ? MATSEQAIJ : MATSEQAIJTCCUSPARSE));
    PetscCall(MatSeqAIJSetPreallocation(A[m], 3, NULL));
    PetscCall(MatSetOption(A[m], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    for (PetscInt i = 0; i < n; i++) {
      if (i > 0) PetscCall(MatSetValue(A[m], i, i - 1, -1.0, INSERT_VALUES));
      if (i != n / 2 || !missing) PetscCall(MatSetValue(A[m], i, i, i == n / 2 ? 0.0 : 3.0 + 0.1 * (PetscReal)i, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A[m], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[m], MAT_FINAL_ASSEMBLY));
    if (m == 0) PetscCall(MatAIJTCCUSPARSESetSOR(A[m], MAT_AIJTCCUSPARSE_SOR_DEVICE));
    PetscCall(NewVec(A[m], 1, &b));
    PetscCall(NewVec(A[m], 2, &x));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    refused[m] = (PetscBool)(MatSOR(A[m], b, 1.0, (MatSORType)s.flag, 0.0, 1, 1, x) != PETSC_SUCCESS);
    PetscCall(PetscPopErrorHandler());
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
  }
  PetscCall(MatTestSameProduct(A[0], A[1], &same));
  PetscCall(MatTestFact((PetscBool)(refused[0] == refused[1] && (refused[0] || (missing && PETSC_VERSION_LT(3, 26, 0))) && same), "SOR, %s on the diagonal: %s by both types, products go on", missing ? "nothing" : "a zero", refused[0] ? "refused" : "not refused"));
  for (int m = 0; m < 2; m++) {
    PetscCall(MatSetValue(A[m], n / 2, n / 2, 2.5, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A[m], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[m], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(SameBits(A[0], A[1], &s, &same));
  PetscCall(MatTestFact(same, "SOR, %s there: the bits are those of MATAIJ", missing ? "then something is" : "then another number is"));
  for (int m = 0; m < 2; m++) PetscCall(MatDestroy(&A[m]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whatever of the device fails, the parent sweeps */
static PetscErrorCode CheckFaults(void)
{
  const Sweep s = {SOR_LOCAL_SYMMETRIC_SWEEP, 1.0, 0.0, 2, 1};
  tc_matrix   S;
  Mat         parents;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 8, &S));
  MakeDominant(&S);
  PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &parents));
  PetscCall(MatAIJTCCUSPARSESetSOR(parents, MAT_AIJTCCUSPARSE_SOR_HOST));
  for (int point = 0; point < TC_FAULT_COUNT; point++) {
    for (int nth = 1; nth <= 2; nth++) {
      Mat       A;
      PetscBool same;
      int       left;

      PetscCall(MatTestCreate(&S, MATAIJTCCUSPARSE, &A));
      PetscCall(MatAIJTCCUSPARSESetSOR(A, MAT_AIJTCCUSPARSE_SOR_DEVICE));
      PetscCall(MatTestSameProduct(A, parents, &same)); /* what products need is there */
      PetscCall(MatAIJTCCUSPARSEArmFault(A, (tc_fault_point)point, nth, &left));
      PetscCall(SameBits(A, parents, &s, &same));
      PetscCall(MatAIJTCCUSPARSEArmFault(A, (tc_fault_point)point, 0, &left));
      PetscCall(MatTestFact(same, "SOR, fault %d at point %d%s: the bits are those of the parent type", nth, point, left ? ", not reached" : ""));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscCall(MatDestroy(&parents));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many iterations as with MATAIJ, of a matrix without nodes, and each has the GPU sweep */
static PetscErrorCode CheckSolve(PetscMPIInt size, PetscBool cuda)
{
  tc_matrix S;
  Mat       A[2];
  PetscInt  its[2];
  long      calls = 0;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 12, &S));
  MakeDominant(&S);
  for (int m = 0; m < 2; m++) {
    KSP ksp;
    PC  pc;
    Vec b, x;

    PetscCall(MatTestCreate(&S, m ? MATAIJ : MATAIJTCCUSPARSE, &A[m]));
    if (m == 0) PetscCall(MatAIJTCCUSPARSESetSOR(A[m], MAT_AIJTCCUSPARSE_SOR_DEVICE));
    PetscCall(NewVec(A[m], 3, &b));
    PetscCall(VecDuplicate(b, &x));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A[m], A[m]));
    PetscCall(KSPSetType(ksp, KSPGMRES));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCSOR));
    PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 500));
    PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_TRUE));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &its[m]));
    if (m == 0) PetscCall(CallsOnDevice(A[m], &calls));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A[m]));
  }
  PetscCall(MatTestFact((PetscBool)(its[0] == its[1] && (!cuda || calls > its[0])), "SOR in GMRES, %d processes: %" PetscInt_FMT " iterations, with MATAIJ %" PetscInt_FMT, size, its[0], its[1]));
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCall(MatTestBegin(&argc, &args, "MatSOR() with a matrix of type aijtccusparse.\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(cases); c++) PetscCall(CheckCase(&cases[c], size, cuda));
  PetscCall(CheckSolve(size, cuda));
  if (size == 1) {
    PetscCall(CheckChoice(cuda));
    PetscCall(CheckRefused(PETSC_TRUE));
    PetscCall(CheckRefused(PETSC_FALSE));
    PetscCall(CheckFaults());
  }
  return MatTestEnd();
}
