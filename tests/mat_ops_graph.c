/*
  MatCreateGraph(): the entries are those that MATAIJ gives, bit for bit, whoever adds up the blocks.
*/
#include "mat_ops.h"
#include <petsc/private/matimpl.h> /* where the newest values are, which no public function tells */

PETSC_EXTERN PetscErrorCode MatAIJTCCUSPARSEArmFault(Mat, tc_fault_point, int, int *);

typedef enum {
  WHOLE,
  GAP,  /* a row lacks an entry */
  MOVED /* or has one in another column */
} Flaw;

typedef struct {
  const char *name, *generator;
  PetscErrorCode (*make)(PetscInt, tc_matrix *); /* where there is no generator */
  PetscInt size, bs;
  Flaw     flaw;
  PetscBool blocks, mirrored; /* does it consist of them, and has its transpose the same ones? */
} GraphCase;

/* Every entry of a 7-point stencil as a block of 2 x 2, random values */
static PetscErrorCode BlocksOfTwo(PetscInt size, tc_matrix *S)
{
  tc_matrix G;

  PetscFunctionBeginUser;
  PetscCall(MatTestGenerate("stencil7", size, &G));
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
static PetscErrorCode Circle(PetscInt size, tc_matrix *S)
{
  const int32_t rows = (int32_t)size;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, 2 * (int64_t)rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    const int32_t next = (i + 1) % rows;

    S->row_ptr[i + 1] = 2 * (i + 1);
    S->col[2 * i]     = PetscMin(i, next);
    S->col[2 * i + 1] = PetscMax(i, next);
    S->val[2 * i]     = 1.0 + i;
    S->val[2 * i + 1] = -0.3 * i;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of 2 x 2 on the diagonal, so that no process refers to rows of another */
static PetscErrorCode Diagonal(PetscInt size, tc_matrix *S)
{
  const int32_t rows = 2 * (int32_t)size;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, 2 * (int64_t)rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    S->row_ptr[i + 1] = 2 * (i + 1);
    for (int32_t c = 0; c < 2; c++) {
      S->col[2 * i + c] = i / 2 * 2 + c;
      S->val[2 * i + c] = 1.0 / (3 + i) - 0.1 * c;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of 2 x 2 on the diagonal, and two columns more, of the first block but one and of the last but one: in the off-diagonal blocks of parallel matrices they lie side by side */
static PetscErrorCode Halves(PetscInt size, tc_matrix *S)
{
  const int32_t rows = 2 * (int32_t)size, far[2] = {3, rows - 3};

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, 4 * (int64_t)rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    const int32_t near[2] = {i / 2 * 2, i / 2 * 2 + 1};
    int64_t       to      = S->row_ptr[i];

    for (int32_t column = 0; column < rows; column++) {
      if (column != near[0] && column != near[1] && column != far[0] && column != far[1]) continue;
      S->col[to]   = column;
      S->val[to++] = 1.0 / (3 + i + column);
    }
    S->row_ptr[i + 1] = to;
  }
  S->nnz = S->row_ptr[rows];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every row refers to every other */
static PetscErrorCode Full(PetscInt size, tc_matrix *S)
{
  const int32_t rows = (int32_t)size;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, (int64_t)rows * rows, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    S->row_ptr[i + 1] = (int64_t)(i + 1) * rows;
    for (int32_t column = 0; column < rows; column++) {
      S->col[(int64_t)i * rows + column] = column;
      S->val[(int64_t)i * rows + column] = 1.0 / (1 + 2 * i + column);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A diagonal, and the first two rows and the last two refer to each other, but none to one that refers to it */
static PetscErrorCode Cross(PetscInt size, tc_matrix *S)
{
  const int32_t rows = (int32_t)size, last = rows - 1;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_create(rows, rows, rows + 4, S) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  for (int32_t i = 0; i < rows; i++) {
    const int32_t to[2] = {i >= last - 1 ? (i == last ? 1 : 0) : i, i <= 1 ? last - i : i};
    int64_t       at    = S->row_ptr[i];

    for (int32_t column = 0; column < rows; column++) {
      if (column != i && column != to[0] && column != to[1]) continue;
      S->col[at]   = column;
      S->val[at++] = 2.0 + i - 0.25 * column;
    }
    S->row_ptr[i + 1] = at;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GraphCase cases[] = {
  {"blocks of 3", "elasticity", NULL, 5, 3, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"blocks of 3, one of which has a gap", "elasticity", NULL, 5, 3, GAP, PETSC_FALSE, PETSC_FALSE},
  {"blocks of 3, one of which has an entry elsewhere", "elasticity", NULL, 5, 3, MOVED, PETSC_FALSE, PETSC_FALSE},
  {"blocks of 2", NULL, BlocksOfTwo, 6, 2, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"blocks of 2 on the diagonal", NULL, Diagonal, 20, 2, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"blocks of 2 and columns of others", NULL, Halves, 20, 2, WHOLE, PETSC_FALSE, PETSC_FALSE},
  {"a single block", NULL, Diagonal, 1, 2, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"no blocks", "stencil7", NULL, 6, 1, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"no blocks, an entry has no counterpart", "stencil7", NULL, 6, 1, GAP, PETSC_TRUE, PETSC_FALSE},
  {"no blocks, an entry elsewhere", "stencil7", NULL, 6, 1, MOVED, PETSC_TRUE, PETSC_FALSE},
  {"a circle, with as many entries in each column as in its row", NULL, Circle, 50, 1, WHOLE, PETSC_TRUE, PETSC_FALSE},
  {"all entries", NULL, Full, 21, 1, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"blocks of 2, all there are", NULL, Full, 20, 2, WHOLE, PETSC_TRUE, PETSC_TRUE},
  {"as many entries in each column as in its row, elsewhere", NULL, Cross, 30, 1, WHOLE, PETSC_TRUE, PETSC_FALSE},
  {"rows that are no blocks", "stencil7", NULL, 6, 2, WHOLE, PETSC_FALSE, PETSC_FALSE},
};

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

/* Has the host the values of some block, behind an operation of the GPU? The same on all processes */
static PetscErrorCode HasFetchedValues(Mat A, PetscBool *fetched)
{
  PetscMPIInt size;
  Mat         blocks[2] = {A, NULL};
  PetscBool   mine      = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int b = 0; b < 2; b++) {
    MatInfo info = {0};

    if (blocks[b]) PetscCall(MatGetInfo(blocks[b], MAT_LOCAL, &info));
#if PetscDefined(HAVE_DEVICE)
    if (info.nz_used > 0 && blocks[b]->offloadmask != PETSC_OFFLOAD_GPU) mine = PETSC_TRUE;
#endif
  }
  PetscCallMPI(MPIU_Allreduce(&mine, fetched, 1, MPI_C_BOOL, MPI_LOR, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the arrays of its blocks, if it is parallel, still ours? */
static PetscErrorCode HasOurArrays(Mat G, PetscBool *has)
{
  PetscObject sums;
  Mat         block;

  PetscFunctionBeginUser;
  PetscCall(MatTestBlock(G, &block));
  PetscCall(PetscObjectQuery((PetscObject)block, "MatAIJTCCUSPARSE_graph_sums", &sums));
  *has = (PetscBool)(sums != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckCase(const GraphCase *c, PetscMPIInt size, PetscBool cuda, PetscBool symmetric, PetscBool on_gpu, PetscBool fault)
{
  tc_matrix S;
  Mat       A[2], G[2][2];
  PetscBool same = PETSC_TRUE, right, fetched;
  int       left = 0;

  PetscFunctionBeginUser;
  if (c->generator) PetscCall(MatTestGenerate(c->generator, c->size, &S));
  else PetscCall(c->make(c->size, &S));
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
    PetscCall(MatTestSameProduct(G[0][scale], G[1][scale], &right)); /* the former does not ask who the rows of others are */
    same = (PetscBool)(same && right);
  }
  if (on_gpu && cuda && c->blocks && c->bs > 1 && !fault) {
    PetscCall(HasFetchedValues(A[0], &fetched));
    PetscCall(MatTestFact((PetscBool)!fetched, "graph, %s%s: the values stay on the GPU", c->name, symmetric ? ", known to be symmetric" : ""));
  }
  PetscCall(MatTestFact(same, "graph, %s%s, %s%s: the entries are those of MATAIJ", c->name, symmetric ? ", known to be symmetric" : "", on_gpu ? "values on the GPU" : "values on both sides", fault ? ", a launch fails" : ""));
  if (!fault) {
    PetscCall(HasOurArrays(G[0][1], &right));
    if (size > 1) PetscCall(MatTestFact((PetscBool)(right == (PetscBool)(c->blocks && (symmetric || c->mirrored))), "graph, %s%s, parallel: made by %s", c->name, symmetric ? ", known to be symmetric" : "", right ? "each process" : "PETSc, or changed by it"));
  }
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
    for (int way = 0; way < 4; way++) PetscCall(CheckCase(&cases[c], size, cuda, (PetscBool)(way % 2), (PetscBool)(way / 2), PETSC_FALSE));
  }
  if (cuda && size == 1) PetscCall(CheckCase(&cases[0], size, cuda, PETSC_FALSE, PETSC_TRUE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
