/*
  MatCreateGraph(): the entries are those that MATAIJ gives, bit for bit, whoever adds up the blocks.
*/
#include "mat_ops.h"

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

typedef enum {
  WHOLE,
  GAP,  /* a row lacks an entry */
  MOVED /* or has one in another column */
} Flaw;

typedef struct {
  const char *name, *generator; /* NULL: BlocksOfTwo(), or Circle() */
  PetscInt    size, bs;
  Flaw        flaw;
} GraphCase;

static const GraphCase cases[] = {
  {"blocks of 3", "elasticity", 5, 3, WHOLE},
  {"blocks of 3, one of which has a gap", "elasticity", 5, 3, GAP},
  {"blocks of 3, one of which has an entry elsewhere", "elasticity", 5, 3, MOVED},
  {"blocks of 2", NULL, 0, 2, WHOLE},
  {"no blocks", "stencil7", 6, 1, WHOLE},
  {"no blocks, an entry has no counterpart", "stencil7", 6, 1, GAP},
  {"no blocks, an entry elsewhere", "stencil7", 6, 1, MOVED},
  {"a circle, with as many entries in each column as in its row", NULL, 0, 1, WHOLE},
  {"rows that are no blocks", "stencil7", 6, 2, WHOLE},
};

/* Every entry of a 7-point stencil as a block of 2 x 2, random values */
static PetscErrorCode BlocksOfTwo(tc_matrix *S)
{
  tc_matrix G;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", 6, &G));
  PetscCheck(tc_matrix_create(2 * G.num_rows, 2 * G.num_cols, 4 * G.nnz, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < S->num_rows; i++) {
    const int64_t from = G.row_ptr[i / 2], length = G.row_ptr[i / 2 + 1] - from;

    S->row_ptr[i + 1] = S->row_ptr[i] + 2 * length;
    for (int64_t k = 0; k < 2 * length; k++) {
      S->col[S->row_ptr[i] + k] = 2 * G.col[from + k / 2] + (int32_t)(k % 2);
      S->val[S->row_ptr[i] + k] = (G.val[from + k / 2] + (double)k / 3) / (1 + i % 7);
    }
  }
  tc_matrix_free(&G);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row i has entries in columns i and i + 1, the last one in the first column */
static PetscErrorCode Circle(tc_matrix *S)
{
  enum { ROWS = 50 };

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(ROWS, ROWS, 2 * ROWS, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < ROWS; i++) {
    const int32_t next = (i + 1) % ROWS;

    S->row_ptr[i + 1] = 2 * (i + 1);
    S->col[2 * i]     = PetscMin(i, next);
    S->col[2 * i + 1] = PetscMax(i, next);
    S->val[2 * i]     = 1.0 + i;
    S->val[2 * i + 1] = -0.3 * i;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes an entry out of row `row`, not that on the diagonal */
static void TakeOut(tc_matrix *S, int32_t row)
{
  int64_t e = S->row_ptr[row];

  if (S->col[e] == row) e++;
  for (S->nnz--; e < S->nnz; e++) {
    S->col[e] = S->col[e + 1];
    S->val[e] = S->val[e + 1];
  }
  for (int32_t i = row + 1; i <= S->num_rows; i++) S->row_ptr[i]--;
}

static PetscErrorCode CheckCase(const GraphCase *c, PetscBool symmetric, PetscBool on_gpu, PetscBool fault)
{
  tc_matrix S;
  Mat       A[2], G[2][2];
  PetscBool same = PETSC_TRUE, right;
  int       left = 0;

  PetscFunctionBeginUser;
  if (c->generator) PetscCall(MatTestGenerate(c->generator, c->size, &S));
  else PetscCall((c->bs > 1 ? BlocksOfTwo : Circle)(&S));
  if (c->flaw == GAP) TakeOut(&S, S.num_rows / 2);
  if (c->flaw == MOVED) S.col[S.row_ptr[S.num_rows / 2 + 1] - 1] = S.num_cols - 1; /* the last one of a row, whose columns stay in order */
  for (int s = 0; s < 2; s++) {
    PetscCall(MatTestCreateBlocked(&S, s ? MATAIJ : MATAIJTCCUSPARSE, c->bs, &A[s]));
    if (symmetric) PetscCall(MatSetOption(A[s], MAT_SYMMETRIC, PETSC_TRUE));
  }
  PetscCall(MatTestSameProduct(A[0], A[1], &right));
  if (on_gpu) {
    for (int s = 0; s < 2; s++) PetscCall(MatScale(A[s], -0.7));
  }
  for (int scale = 0; scale < 2; scale++) {
    for (int s = 0; s < 2; s++) {
      if (fault && s == 0) PetscCall(MatAIJTCCUSPARSEArmFault(A[s], TC_FAULT_LAUNCH, 1, &left));
      PetscCall(MatCreateGraph(A[s], PETSC_TRUE, (PetscBool)scale, -1, 0, NULL, &G[s][scale]));
      if (fault && s == 0) PetscCall(MatAIJTCCUSPARSEArmFault(A[s], TC_FAULT_LAUNCH, 0, &left));
    }
    if (left) PetscCall(MatTestFact(PETSC_FALSE, "graph, %s: the launch that was to fail has failed", c->name));
    PetscCall(MatEqual(G[0][scale], G[1][scale], &right));
    same = (PetscBool)(same && right);
  }
  PetscCall(MatTestFact(same, "graph, %s%s, %s%s: the entries are those of MATAIJ", c->name, symmetric ? ", known to be symmetric" : "", on_gpu ? "values on the GPU" : "values on both sides", fault ? ", a launch fails" : ""));
  for (int s = 0; s < 2; s++) {
    for (int scale = 0; scale < 2; scale++) PetscCall(MatDestroy(&G[s][scale]));
    PetscCall(MatDestroy(&A[s]));
  }
  tc_matrix_free(&S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckGraphs(void)
{
  PetscMPIInt size;
  PetscBool   cuda;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatTestHasCUDA(&cuda));
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(cases); c++) {
    for (int way = 0; way < 4; way++) PetscCall(CheckCase(&cases[c], (PetscBool)(way % 2), (PetscBool)(way / 2), PETSC_FALSE));
  }
  if (cuda && size == 1) PetscCall(CheckCase(&cases[0], PETSC_FALSE, PETSC_TRUE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
