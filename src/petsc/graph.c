/*
  The graph of a matrix, which PCGAMG coarsens: an entry for each block, or for each entry where there are none. PETSc makes it on the host (3.26.1), by a copy, a transpose and sums of matrices or by
  inserting one row at a time; for it all values of a coarse operator come from the GPU, into new memory, and what is made of it goes there and back. Here whoever has the values adds up what is in a
  block, adds the transpose and scales, in PETSc's order; of the GPU's a ninth comes if blocks are 3 x 3. Of parallel matrices the host does all but the sums.
*/
#include "aijtccusparseimpl.h"

/* What the device makes of the values of a matrix: sums of blocks, and those with the transpose's; words that say whether there are none */
typedef struct {
  size_t   bytes; /* of each */
  char    *memory, *sums, *both, *factors;
  int32_t *words; /* [WORDS] */
} MatTCLocalSums;

enum {
  IRREGULAR, /* there are no such blocks */
  LONE,      /* the transpose has other ones */
  WORDS
};

static tc_status MatTCLocalSumsTake(const tc_backend *backend, PetscInt bs, const tc_csr_local *A, PetscBool adds, PetscBool scale, tc_stream stream, MatTCLocalSums *S)
{
  const size_t entries = (size_t)(A->nnz / ((int64_t)bs * bs)), rows = (size_t)(A->num_rows / bs), words = WORDS * sizeof(PetscScalar);

  S->bytes = entries * sizeof(PetscScalar);
  TC_CALL(tc_from_backend(backend, backend->take(words + (adds ? 2 : 1) * S->bytes + (scale ? rows * sizeof(PetscScalar) : 0), (void **)&S->memory, stream)));
  S->words   = (int32_t *)(void *)S->memory;
  S->sums    = S->memory + words;
  S->both    = adds ? S->sums + S->bytes : S->sums;
  S->factors = S->both + S->bytes;
  return tc_from_backend(backend, backend->zero(S->words, words, stream));
}

/* Sums of absolute values, with the transpose's and scaled if that is asked for and can be, on the device, then on the host; no sums if the matrix does not consist of such blocks, or something has failed */
static PetscErrorCode MatTCSumBlocksLocal(Mat A, PetscInt bs, PetscBool adds, PetscBool scale, const tc_backend *backend, tc_stream stream, MatTCGraphPart *part)
{
  const PetscScalar *values;
  MatTCPattern       P;
  MatTCLocalSums     S           = {.memory = NULL};
  tc_status          status      = TC_OK;
  int32_t            word[WORDS] = {0};

  PetscFunctionBegin;
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
  PetscCall(MatTCGetDeviceValues(A, &values));
  if (status == TC_OK) status = MatTCLocalSumsTake(backend, bs, &P.local, adds, scale, stream, &S);
  if (status == TC_OK) status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream()));
  if (status == TC_OK) status = tc_from_backend(backend, backend->collapse(&P.local, (int32_t)bs, MATTC_SCALAR, values, S.sums, S.words + IRREGULAR, stream));
  if (status == TC_OK) status = tc_from_backend(backend, backend->download(word, S.words, sizeof(*word), stream));
  if (status == TC_OK && !word[IRREGULAR]) {
    if (adds) status = tc_from_backend(backend, backend->mirror(&P.local, (int32_t)bs, MATTC_SCALAR, S.sums, S.both, S.words + LONE, stream));
    if (status == TC_OK && scale) status = tc_from_backend(backend, backend->scale_graph(&P.local, (int32_t)bs, MATTC_SCALAR, S.both, S.factors, stream));
    if (status == TC_OK) status = tc_from_backend(backend, backend->download(word, S.words, sizeof(word), stream));
    part->lone     = (PetscBool)(word[LONE] != 0);
    part->mirrored = (PetscBool)(adds && !part->lone);
    part->scaled   = (PetscBool)(scale && !part->lone);
    PetscCall(PetscMalloc1(S.bytes / sizeof(*part->sums), &part->sums));
    if (status == TC_OK) status = tc_from_backend(backend, backend->download(part->sums, part->lone ? S.sums : S.both, S.bytes, stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)S.bytes));
  }
  if (S.memory) (void)backend->give(S.memory, stream);
  PetscCall(MatTCRestoreDeviceValues(A, &values));
  PetscCall(MatTCPatternRestore(A, backend, &P));
  if (status != TC_OK) {
    PetscCall(PetscFree(part->sums));
    PetscCall(PetscInfo(A, "aijtccusparse makes the graph on the host: %s\n", tc_last_error()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does a matrix of the host consist of such blocks in the rows from `row` on? Their sums, too */
static PetscBool MatTCSumBlockRow(PetscInt row, PetscInt bs, const PetscInt ia[], const PetscInt ja[], const PetscScalar values[], PetscScalar sums[])
{
  const PetscInt first = ia[row], length = ia[row + 1] - first;

  if (length % bs) return PETSC_FALSE;
  for (PetscInt r = 1; r < bs; r++) {
    if (ia[row + r + 1] - ia[row + r] != length) return PETSC_FALSE;
  }
  for (PetscInt b = 0; b < length; b += bs) {
    const PetscInt column = ja[first + b];
    PetscScalar    sum    = 0;

    if (column % bs) return PETSC_FALSE;
    for (PetscInt r = 0; r < bs; r++) {
      for (PetscInt c = 0, from = first + r * length + b; c < bs; c++) {
        if (ja[from + c] != column + c) return PETSC_FALSE;
        sum += PetscAbsScalar(values[from + c]);
      }
    }
    sums[b / bs] = sum;
  }
  return PETSC_TRUE;
}

static PetscErrorCode MatTCSumBlocksOnHost(Mat A, PetscInt bs, PetscScalar **sums)
{
  const PetscInt    *ia, *ja;
  const PetscScalar *values;
  PetscInt           m;
  PetscBool          regular;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &regular));
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  if (regular) PetscCall(PetscMalloc1(ia[m] / bs / bs, sums));
  for (PetscInt row = 0; row < m && regular; row += bs) regular = MatTCSumBlockRow(row, bs, ia, ja, values, *sums + ia[row] / bs / bs);
  if (!regular) PetscCall(PetscFree(*sums));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &regular));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows and columns, one for each block */
static PetscErrorCode MatTCGraphGetPattern(Mat A, PetscInt bs, MatTCGraphPart *part)
{
  const PetscInt *ia, *ja;
  PetscInt        m;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscCheck(done, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A matrix of type %s does not give its rows", ((PetscObject)A)->type_name);
  part->num = m / bs;
  PetscCall(PetscMalloc1(part->num + 1, &part->row));
  PetscCall(PetscMalloc1(ia[m] / bs / bs, &part->col));
  part->row[0] = 0;
  for (PetscInt i = 0; i < part->num; i++) {
    part->row[i + 1] = ia[(i + 1) * bs] / bs / bs;
    for (PetscInt k = part->row[i]; k < part->row[i + 1]; k++) part->col[k] = ja[ia[i * bs] + (k - part->row[i]) * bs] / bs;
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The graph of a sequential matrix, where that multiplies, or of a block of a parallel one; give it back with MatTCGraphPartDestroy(). `regular` is false if there is none, as the matrix does not consist of blocks of that
  size, or something has failed. The transpose is added, and the diagonal made one of ones, if that is asked for and the device can; the part tells. Not collective
*/
PetscErrorCode MatTCGraphPartGet(Mat A, PetscInt bs, PetscBool adds, PetscBool scale, MatTCGraphPart *part, PetscBool *regular)
{
  Mat_AIJTCCUSPARSE *tc;
  const tc_backend  *backend;
  tc_key             key;
  tc_stream          stream;
  PetscInt           m, n;
  PetscBool          usable;

  PetscFunctionBegin;
  *regular = PETSC_FALSE;
  PetscCall(PetscMemzero(part, sizeof(*part)));
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (!tc || m % bs || n % bs || MatTCSparesDevice(A, tc)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGetKey(A, tc, &key));
  if (key.nnz > 0) {
    PetscCall(MatTCBegin(A, tc, &tc->side[MATTC_FORWARD], &backend, &key, &stream, &usable));
    if (!usable || (PetscInt64)bs * bs > key.nnz || (backend->collapse && !MatTCIsPropagating())) PetscFunctionReturn(PETSC_SUCCESS);
    if (backend->collapse) PetscCall(MatTCSumBlocksLocal(A, bs, adds, scale, backend, stream, part));
    else PetscCall(MatTCSumBlocksOnHost(A, bs, &part->sums));
    if (!part->sums) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscInfo(A, "aijtccusparse has added up blocks of %" PetscInt_FMT " for the graph\n", bs));
  }
  PetscCall(MatTCGraphGetPattern(A, bs, part));
  *regular = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCGraphPartDestroy(MatTCGraphPart *part)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(part->row));
  PetscCall(PetscFree(part->col));
  PetscCall(PetscFree(part->sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has the arrays go with a matrix that was made of them */
PetscErrorCode MatTCGraphPartLeaveTo(MatTCGraphPart *part, Mat G)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerCompose((PetscObject)G, "MatAIJTCCUSPARSE_graph_row", part->row, PetscCtxDestroyDefault));
  PetscCall(PetscObjectContainerCompose((PetscObject)G, "MatAIJTCCUSPARSE_graph_col", part->col, PetscCtxDestroyDefault));
  PetscCall(PetscObjectContainerCompose((PetscObject)G, "MatAIJTCCUSPARSE_graph_sums", part->sums, PetscCtxDestroyDefault));
  PetscCall(PetscMemzero(part, sizeof(*part)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its sums and those of its transpose, if that has the same pattern; PetscFree() them in any case. Not collective */
PetscErrorCode MatTCGraphAddTranspose(const MatTCGraphPart *part, PetscScalar **sums, PetscBool *same)
{
  const PetscInt n = part->num, *row = part->row, *col = part->col;
  PetscInt      *next; /* of each column, read as a row: where its entry for the row at hand is, if it has one */
  PetscScalar   *both;

  PetscFunctionBegin;
  *same = PETSC_TRUE;
  PetscCall(PetscMalloc1(n, &next));
  PetscCall(PetscArraycpy(next, row, n));
  PetscCall(PetscMalloc1(row[n], &both));
  for (PetscInt i = 0; i < n && *same; i++) {
    for (PetscInt k = row[i]; k < row[i + 1]; k++) {
      const PetscInt of = col[k], at = next[of]++;

      if (at == row[of + 1] || col[at] != i) {
        *same = PETSC_FALSE;
        break;
      }
      both[k] = part->sums[k] + part->sums[at];
    }
  }
  PetscCall(PetscFree(next));
  *sums = both;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes other sums, or lets them go */
PetscErrorCode MatTCGraphPartTake(MatTCGraphPart *part, PetscScalar *sums, PetscBool taken)
{
  PetscFunctionBegin;
  if (taken) {
    PetscCall(PetscFree(part->sums));
    part->sums = sums;
  } else PetscCall(PetscFree(sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What makes ones of the diagonal, times itself; zeros for what has none. `scale` [num] */
void MatTCGraphGetScale(const MatTCGraphPart *part, PetscScalar scale[])
{
  for (PetscInt i = 0; i < part->num; i++) {
    scale[i] = 0;
    for (PetscInt k = part->row[i]; k < part->row[i + 1]; k++) {
      if (part->col[k] == i && part->sums[k] != 0.0) scale[i] = PetscSqrtScalar(PetscAbsScalar(1.0 / part->sums[k]));
    }
  }
}

/* In PETSc's order: by rows, then by columns */
void MatTCGraphScale(MatTCGraphPart *part, const PetscScalar rows[], const PetscScalar cols[])
{
  for (PetscInt i = 0; i < part->num; i++) {
    for (PetscInt k = part->row[i]; k < part->row[i + 1]; k++) part->sums[k] = part->sums[k] * rows[i] * cols[part->col[k]];
  }
}

/* Makes it of the type of A, and ours if what that name creates is: what PETSc adds to it is, and MatHeaderMerge() makes one of both */
PetscErrorCode MatTCGraphConvert(Mat A, Mat *G)
{
  MatType type;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(MatConvert(*G, type, MAT_INPLACE_MATRIX, G));
  if (MatTCIsPropagating()) PetscCall(MatTCInstall(*G, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type of A over these arrays, which go with it */
static PetscErrorCode MatTCGraphCreate(Mat A, MatTCGraphPart *part, Mat *G)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJWithArrays(PetscObjectComm((PetscObject)A), part->num, part->num, part->row, part->col, part->sums, G));
  PetscCall(MatTCGraphPartLeaveTo(part, *G));
  PetscCall(MatTCGraphConvert(A, G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph of a sequential matrix; NULL if it is the parent's. `left` becomes true if the transpose is still to be added, and then to be scaled. */
static PetscErrorCode MatTCCreateGraphLocal(Mat A, PetscInt bs, PetscBool adds, PetscBool scale, Mat *graph, PetscBool *left)
{
  MatTCGraphPart part;
  PetscScalar   *both;
  PetscInt       m, n;
  PetscBool      ours, same;

  PetscFunctionBegin;
  *graph = NULL;
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (m != n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCGraphPartGet(A, bs, adds, scale, &part, &ours));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  same = (PetscBool)!part.lone;
  if (adds && same && !part.mirrored) {
    PetscCall(MatTCGraphAddTranspose(&part, &both, &same));
    PetscCall(MatTCGraphPartTake(&part, both, same));
  }
  if (scale && same && !part.scaled) {
    PetscScalar *by;

    PetscCall(PetscMalloc1(m / bs, &by));
    MatTCGraphGetScale(&part, by);
    MatTCGraphScale(&part, by, by);
    PetscCall(PetscFree(by));
  }
  PetscCall(MatTCGraphCreate(A, &part, graph));
  *left = (PetscBool)!same;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* G + G^T, of different patterns */
static PetscErrorCode MatTCGraphSymmetrize(Mat G)
{
  Mat transpose;

  PetscFunctionBegin;
  PetscCall(MatTranspose(G, MAT_INITIAL_MATRIX, &transpose));
  PetscCall(MatAXPY(G, 1.0, transpose, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCGraphScaleByDiagonal(Mat G)
{
  Vec diagonal;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(G, &diagonal, NULL));
  PetscCall(MatGetDiagonal(G, diagonal));
  PetscCall(VecReciprocal(diagonal));
  PetscCall(VecSqrtAbs(diagonal));
  PetscCall(MatDiagonalScale(G, diagonal, diagonal));
  PetscCall(VecDestroy(&diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateGraph_AIJTCCUSPARSE(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, PetscInt num, PetscInt index[], Mat *graph)
{
  Mat_AIJTCCUSPARSE *tc;
  const MatTCParent *parent;
  PetscInt           bs;
  PetscBool          set, symmetric, adds, left;

  PetscFunctionBegin;
  PetscCall(MatTCContextGet(A, &tc));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  adds   = (PetscBool)(symmetrize && !(set && symmetric));
  *graph = NULL;
  if (tc && filter < 0 && num == 0 && (bs > 1 || scale)) {
    if (tc->parent->mpi) PetscCall(MatTCCreateGraphParallel(A, tc, bs, adds, scale, graph, &left));
    else PetscCall(MatTCCreateGraphLocal(A, bs, adds, scale, graph, &left));
  }
  if (!*graph) {
    PetscCall(MatTCParentOf(A, &parent));
    PetscCall((*parent->create_graph)(A, symmetrize, scale, filter, num, index, graph));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSetOption(*graph, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(*graph, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_TRUE));
  if (left) PetscCall(MatTCGraphSymmetrize(*graph));
  if (symmetrize) PetscCall(MatSetOption(*graph, MAT_SYMMETRIC, PETSC_TRUE));
  else PetscCall(MatPropagateSymmetryOptions(A, *graph));
  if (scale && left) PetscCall(MatTCGraphScaleByDiagonal(*graph));
  PetscCall(MatViewFromOptions(*graph, NULL, "-mat_graph_view"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
