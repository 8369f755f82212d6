/*
  The local product with a dense block: the choice of a kernel, what it reads of the matrix, and its launches. The arrays of the blocks may lie on the other side of the bus.
*/
#include "aijtccusparseimpl.h"
#include "../plan/scalar.h"
#include "../plan/spmm_host.h"

/* The memory of the products; keeps the count */
static PetscErrorCode MatTCDenseFree(MatTCDense *dense)
{
  PetscFunctionBegin;
  if (dense->spmm) dense->retired += tc_spmm_count(dense->spmm);
  tc_spmm_destroy(&dense->spmm);
  PetscCall(MatTCPatternForget(dense));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Forgets what products with dense blocks have built, and that they are left to the parent; keeps the counts */
PetscErrorCode MatTCDenseReset(Mat_AIJTCCUSPARSE *tc)
{
  PetscFunctionBegin;
  PetscCall(MatTCDenseFree(&tc->dense));
  PetscCall(MatTCColumnsDestroy(&tc->dense));
  PetscCall(MatTCSideReset(tc, &tc->dense.side));
  PetscCall(MatTCSideReset(tc, &tc->dense.packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR without values */
static tc_csr_view MatTCRowsOf(const MatTCPattern *P)
{
  return (tc_csr_view){.num_rows = P->local.num_rows, .num_cols = P->local.num_cols, .nnz = P->local.nnz, .row_ptr = P->local.row_ptr, .col = P->local.col};
}

/* What the kernels choose by, and the lists of rows */
static PetscErrorCode MatTCLook(Mat A, MatTCDense *dense, const tc_backend *backend, const tc_key *key, tc_stream stream, tc_status *status)
{
  MatTCPattern P;

  PetscFunctionBegin;
  if (tc_spmm_recall(dense->spmm, key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, status));
  if (*status == TC_OK) {
    const tc_csr_view rows = MatTCRowsOf(&P);

    *status = tc_spmm_look(dense->spmm, key, &rows, stream);
  }
  PetscCall(MatTCPatternRestore(A, backend, &P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a kernel reads of the matrix */
typedef struct {
  const tc_spmm_kernel  *kernel;
  const void            *view;
  tc_csr_transposed_view csr; /* the view of kernels for CSR, borrowed from the matrix, and more that those for the transpose want */
  PetscBool              borrowed;
  MatTCPattern           pattern;
  const PetscScalar     *values;
  void                  *widened; /* a copy of them in double precision, if there has to be one */
} MatTCSource;

static PetscErrorCode MatTCSourceFromCSR(Mat A, MatTCDense *dense, const tc_backend *backend, const tc_key *key, tc_stream stream, MatTCSource *S, tc_status *status)
{
  PetscFunctionBegin;
  S->borrowed = PETSC_TRUE;
  PetscCall(MatTCPatternGetLocal(A, backend, stream, &S->pattern, status));
  if (*status == TC_OK) PetscCall(MatTCPatternKeep(dense, backend, key, &S->pattern));
  if (backend == tc_backend_host()) PetscCall(MatSeqAIJGetArrayRead(A, &S->values));
  else PetscCall(MatTCGetDeviceValues(A, &S->values));
  S->csr.csr = MatTCRowsOf(&S->pattern);
  if (*status == TC_OK && MATTC_SCALAR != TC_SCALAR_F64) *status = tc_from_backend(backend, backend->wait(stream, MatTCGetParentStream())); /* on which the values may still be on their way */
  if (*status == TC_OK) *status = tc_scalar_widen(backend, MATTC_SCALAR, S->csr.csr.nnz, S->values, &S->csr.csr.val, &S->widened, stream);
  tc_spmm_list_rows(dense->spmm, &S->csr.csr);
  S->view = &S->csr.csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTCSourceRestore(Mat A, const tc_backend *backend, tc_stream stream, MatTCSource *S, tc_status *status)
{
  PetscFunctionBegin;
  *status = tc_scalar_give(backend, *status, S->widened, stream);
  if (!S->borrowed) PetscFunctionReturn(PETSC_SUCCESS);
  if (backend == tc_backend_host()) PetscCall(MatSeqAIJRestoreArrayRead(A, &S->values));
  else PetscCall(MatTCRestoreDeviceValues(A, &S->values));
  PetscCall(MatTCPatternRestore(A, backend, &S->pattern));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char packed_format[] = "hybrid"; /* of products with vectors on the GPU, unless another one is asked for */

/* Is what products with vectors pack fit for products with dense blocks in fp64? Not another format, and not rounded values. */
PetscBool MatTCSharesPacked(const Mat_AIJTCCUSPARSE *tc)
{
  return (PetscBool)(tc->settings.spmv != MAT_AIJTCCUSPARSE_SPMV_DASP && tc->settings.precision == MAT_AIJTCCUSPARSE_PRECISION_FP64);
}

/* What keeps that format packed: what products with vectors use if it is that, else one of our own */
static PetscErrorCode MatTCSideOf(Mat_AIJTCCUSPARSE *tc, MatTCSideId id, const char format[], MatTCSide **side)
{
  PetscBool shared = (PetscBool)(!MatTCLeftToParent(tc) && MatTCSharesPacked(tc));

  PetscFunctionBegin;
  if (shared) PetscCall(PetscStrcmp(format, packed_format, &shared));
  *side = shared ? &tc->side[id] : &tc->dense.packed;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is that what a side of our own keeps? */
static PetscBool MatTCKeeps(const MatTCSide *side, const char format[], tc_precision precision)
{
  return (PetscBool)(side->format == format && side->precision == precision);
}

/* Is this pattern packed as that kernel wants it? */
static PetscErrorCode MatTCIsPacked(Mat_AIJTCCUSPARSE *tc, const tc_spmm_kernel *kernel, const tc_key *key, PetscBool *packed)
{
  MatTCSide *side;

  PetscFunctionBegin;
  PetscCall(MatTCSideOf(tc, MATTC_FORWARD, kernel->format, &side));
  *packed = (PetscBool)(side->plan && (side != &tc->dense.packed || MatTCKeeps(side, kernel->format, kernel->precision)) && (tc_plan_check(side->plan, key) != TC_CACHE_REBUILD || (side->prepared && MatTCSamePattern(&side->prepared_for, key))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The packed matrix that the kernel wants, current; none of our own of the transpose. No view if it cannot be had */
static PetscErrorCode MatTCSourceFromSide(Mat A, Mat_AIJTCCUSPARSE *tc, MatTCSideId id, MatTCSource *S)
{
  const char *format = S->kernel->format;
  MatTCSide *side;
  PetscBool  ready;
  tc_stream  stream;

  PetscFunctionBegin;
  PetscCall(MatTCSideOf(tc, id, format, &side));
  if (side == &tc->dense.packed) {
    if (id == MATTC_TRANSPOSE) PetscFunctionReturn(PETSC_SUCCESS);
    if (side->plan && !MatTCKeeps(side, format, S->kernel->precision)) PetscCall(MatTCSideReset(tc, side));
    side->format    = format;
    side->precision = S->kernel->precision;
  }
  PetscCall(MatTCEnsure(A, tc, side, &stream, &ready));
  if (ready) S->view = tc_plan_view(side->plan);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first two of the formats in which A^T is to be had are there after a product; tiles are once packing them pays */
static const char *const of_transpose[] = {packed_format, "csr", "bittcf"};

/* The rows of A^T instead of the packed transpose, or tiles of them, where they are better for n columns. Of A only the sizes are needed once the rows are there. */
static PetscErrorCode MatTCSourceFromTransposedRows(Mat A, Mat_AIJTCCUSPARSE *tc, int32_t n, const tc_backend *backend, const tc_key *key, tc_stream stream, MatTCSource *S, tc_status *status)
{
  tc_spmm              *spmm       = tc->dense.spmm;
  tc_transpose         *transpose  = tc->side[MATTC_TRANSPOSE].transpose;
  const int             tiles      = (int)PETSC_STATIC_ARRAY_LENGTH(of_transpose) - 1;
  const tc_spmm_kernel *kernel     = NULL, *at_hand = NULL;
  tc_key                transposed = *key;
  const void           *tiled      = NULL;
  PetscBool             in_tiles;
  MatTCPattern          P;

  PetscFunctionBegin;
  transposed.id = -key->id; /* of no matrix */
  if (tc_transpose_has_rows(transpose)) PetscCall(MatTCPatternGetSizes(A, &P));
  else PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, status));
  if (*status == TC_OK) *status = tc_transpose_rows(transpose, &P.local, &S->csr.csr, stream);
  if (*status == TC_OK) *status = tc_spmm_look(spmm, &transposed, &S->csr.csr, stream);
  if (*status == TC_OK) *status = tc_spmm_choose_between(spmm, n, of_transpose, tiles, &at_hand);
  if (*status == TC_OK) *status = tc_spmm_choose_between(spmm, n, of_transpose, tiles + 1, &kernel);
  in_tiles = (PetscBool)(*status == TC_OK && strcmp(kernel->format, of_transpose[tiles]) == 0);
  if (in_tiles && (tc_transpose_lacks_second(transpose) || !tc_spmm_pays(spmm, kernel, n, tc_transpose_has_second(transpose)))) in_tiles = PETSC_FALSE;
  else if (in_tiles && tc_transpose_second(transpose, &P.local, of_transpose[tiles], stream, &tiled) != TC_OK) {
    PetscCall(PetscInfo(A, "aijtccusparse multiplies A^T with dense blocks without tiles: %s\n", tc_last_error()));
    in_tiles = PETSC_FALSE;
  }
  if (in_tiles) S->view = tiled;
  else kernel = at_hand;
  PetscCall(MatTCPatternRestore(A, backend, &P));
  if (*status != TC_OK || kernel == S->kernel) PetscFunctionReturn(PETSC_SUCCESS);
  S->kernel = in_tiles ? tc_spmm_refine(spmm, kernel, S->view, n, 0) : kernel;
  if (in_tiles) PetscFunctionReturn(PETSC_SUCCESS);
  *status = tc_scalar_widen(backend, MATTC_SCALAR, S->csr.csr.nnz, S->csr.csr.val, &S->csr.csr.val, &S->widened, stream);
  tc_spmm_list_rows(spmm, &S->csr.csr);
  S->view = &S->csr.csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For A^T B: CSR of A itself where there is a kernel for that, else the packed transpose, its rows or tiles of them; no view if that is left to the parent */
static PetscErrorCode MatTCSourceGetTransposed(Mat A, Mat_AIJTCCUSPARSE *tc, int32_t n, const tc_backend *backend, const tc_key *key, tc_stream stream, MatTCSource *S, tc_status *status)
{
  PetscFunctionBegin;
  S->kernel = tc_spmm_find(tc->dense.spmm, "csr_transposed");
  if (S->kernel) {
    PetscCall(MatTCLook(A, &tc->dense, backend, key, stream, status));
    if (*status == TC_OK) PetscCall(MatTCSourceFromCSR(A, &tc->dense, backend, key, stream, S, status));
    if (*status == TC_OK) *status = tc_spmm_list_ends(tc->dense.spmm, &S->csr);
    S->view = &S->csr;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  S->kernel = tc_spmm_find(tc->dense.spmm, packed_format);
  tc->side[MATTC_TRANSPOSE].rows_wanted = PETSC_TRUE;
  if (S->kernel) PetscCall(MatTCSourceFromSide(A, tc, MATTC_TRANSPOSE, S));
  if (S->view) PetscCall(MatTCSourceFromTransposedRows(A, tc, n, backend, key, stream, S, status));
  else if (!tc->side[MATTC_TRANSPOSE].declined) *status = tc_fail(TC_ERR_UNSUPPORTED, "no kernel for the packed transpose");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool MatTCReadsCSR(const tc_spmm_kernel *kernel)
{
  return (PetscBool)(strcmp(kernel->format, "csr") == 0);
}

/* In place of a choice by rules: the next best, CSR in the end, until packing pays */
static PetscErrorCode MatTCAwaitBreakEven(Mat A, Mat_AIJTCCUSPARSE *tc, int32_t n, const tc_key *key, const tc_spmm_kernel **kernel)
{
  tc_spmm  *spmm = tc->dense.spmm;
  PetscBool packed = PETSC_FALSE;

  PetscFunctionBegin;
  for (; !MatTCReadsCSR(*kernel); *kernel = tc_spmm_instead(spmm)) {
    PetscCall(MatTCIsPacked(tc, *kernel, key, &packed));
    if (!tc_spmm_pays(spmm, *kernel, n, packed)) continue;
    if (!packed) PetscCall(PetscInfo(A, "aijtccusparse packs format %s for products with dense blocks: %s\n", (*kernel)->format, tc_spmm_why(spmm)));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For the others: what is chosen, or CSR if that cannot be packed. Where the parent's pattern is not to be on the device, CSR would have to be copied for every product. */
static PetscErrorCode MatTCSourceGet(Mat A, Mat_AIJTCCUSPARSE *tc, int32_t n, PetscBool b_transposed, const tc_backend *backend, const tc_key *key, tc_stream stream, MatTCSource *S, tc_status *status)
{
  const PetscBool at_hand = (PetscBool)(backend == tc_backend_host() || !MatTCSparesDevice(A, tc));

  PetscFunctionBegin;
  PetscCall(MatTCLook(A, &tc->dense, backend, key, stream, status));
  if (*status == TC_OK) *status = tc_spmm_choose(tc->dense.spmm, n, b_transposed, &S->kernel);
  if (*status != TC_OK) PetscFunctionReturn(PETSC_SUCCESS);
  if (!b_transposed && S->kernel->precision != MatTCPrecision(tc) && S->kernel != tc_spmm_last(tc->dense.spmm)) PetscCall(PetscInfo(A, "aijtccusparse multiplies dense blocks in %s: %s\n", tc_precision_name(S->kernel->precision), tc_spmm_why(tc->dense.spmm)));
  if (!at_hand && MatTCReadsCSR(S->kernel)) S->kernel = tc_spmm_find(tc->dense.spmm, packed_format);
  if (at_hand) PetscCall(MatTCAwaitBreakEven(A, tc, n, key, &S->kernel));
  if (!MatTCReadsCSR(S->kernel)) {
    PetscCall(MatTCSourceFromSide(A, tc, MATTC_FORWARD, S));
    if (S->view) S->kernel = tc_spmm_refine(tc->dense.spmm, S->kernel, S->view, n, b_transposed);
    if (S->view) PetscFunctionReturn(PETSC_SUCCESS);
    S->kernel = tc_spmm_find(tc->dense.spmm, "csr");
  }
  PetscCall(MatTCSourceFromCSR(A, &tc->dense, backend, key, stream, S, status));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The launches. What they read belongs to the parent's stream, and other products share our memory: order our stream behind that one, and that one behind ours.
*/
static PetscErrorCode MatTCLaunch(MatTCDense *dense, const MatTCSource *S, int64_t nnz, const tc_backend *backend, const MatTCDenseArgs *args, tc_spmm_product *P, tc_stream stream, tc_status *status)
{
  const PetscBool host   = (PetscBool)(backend == tc_backend_host());
  const tc_stream source = host ? NULL : MatTCGetParentStream();
  const Mat       B = args->B, C = args->C;
  PetscScalar    *b = (PetscScalar *)args->rows, *c;
  PetscInt        ldb = P->n, ldc;

  PetscFunctionBegin;
  if (B) PetscCall(MatTCDenseGet(B, MATTC_READ, host, &b, &ldb, &P->b_far));
  else P->b_far = !host && !args->rows_on_device;
  PetscCall(MatTCDenseGet(C, P->add ? MATTC_READ_WRITE : MATTC_WRITE, host, &c, &ldc, &P->c_far));
  P->b   = b;
  P->c   = c;
  P->ldb = ldb;
  P->ldc = ldc;
  PetscCall(PetscLogEventBegin(MATTC_Dense, C, 0, 0, 0));
  if (!host) PetscCall(PetscLogGpuTimeBegin());
  if (stream != source) *status = tc_from_backend(backend, backend->wait(stream, source));
  if (*status == TC_OK) *status = tc_spmm_multiply(dense->spmm, S->kernel, S->view, P, stream);
  if (*status == TC_OK && stream != source) *status = tc_from_backend(backend, backend->wait(source, stream));
  if (!host) PetscCall(PetscLogGpuTimeEnd());
  if (*status == TC_OK) PetscCall(host ? PetscLogFlops(2.0 * (PetscLogDouble)nnz * P->n) : PetscLogGpuFlops(2.0 * (PetscLogDouble)nnz * P->n));
  PetscCall(PetscLogEventEnd(MATTC_Dense, C, 0, 0, 0));
  if (P->b_far) PetscCall(PetscLogCpuToGpu((PetscLogDouble)P->rows_b * P->n * (PetscLogDouble)sizeof(PetscScalar)));
  if (P->c_far) PetscCall(PetscLogGpuToCpu((PetscLogDouble)P->rows_c * P->n * (PetscLogDouble)sizeof(PetscScalar)));
  if (B) PetscCall(MatTCDenseRestore(B, MATTC_READ, host, &b));
  PetscCall(MatTCDenseRestore(C, P->add ? MATTC_READ_WRITE : MATTC_WRITE, host, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options of the core for the settings of the matrix, which has as many rows as columns if it is `square` */
static tc_spmm_options MatTCDenseOptions(const Mat_AIJTCCUSPARSE *tc, PetscBool square)
{
  /* in the order of MatAIJTCCUSPARSESpMM */
  static const char *const formats[] = {NULL, "bittcf", "bittcf", "hybrid", "csr", NULL, "bcsr"};
  /* in the order of tc_precision */
  static const char *const windows[] = {"tc_spmm_bittcf_f64", "tc_spmm_bittcf_f32", "tc_spmm_bittcf_tf32", "tc_spmm_bittcf_bf16", "tc_spmm_bittcf_f16"};
  static const char *const clusters[] = {"tc_spmm_bittcf_cluster_f64", "tc_spmm_bittcf_cluster_f32", "tc_spmm_bittcf_cluster_tf32", "tc_spmm_bittcf_cluster_bf16", "tc_spmm_bittcf_cluster_f16"};
  tc_spmm_options          options    = {.format = formats[tc->settings.spmm]};

  options.exact_nonfinite = tc->settings.exact_nonfinite;
  options.precision       = MatTCPrecision(tc);
  options.scalar          = MATTC_SCALAR;
  if (tc->settings.spmm == MAT_AIJTCCUSPARSE_SPMM_BITTCF) options.kernel = windows[options.precision];
  if (tc->settings.spmm == MAT_AIJTCCUSPARSE_SPMM_CLUSTER) options.kernel = clusters[options.precision];
  options.reordered       = square && tc->settings.reorder != MAT_AIJTCCUSPARSE_REORDER_NONE;
  return options;
}

/* May the product be ours? Then there is what it needs but for the matrix, unless `status` says otherwise */
static PetscErrorCode MatTCDenseBegin(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool square, const tc_backend **backend, tc_key *key, tc_stream *stream, PetscBool *usable, tc_status *status)
{
  MatTCDense           *dense   = &tc->dense;
  const tc_spmm_options options = MatTCDenseOptions(tc, square);

  PetscFunctionBegin;
  PetscCall(MatTCBegin(A, tc, &dense->side, backend, key, stream, usable));
  if (!*usable) PetscFunctionReturn(PETSC_SUCCESS);
  if (dense->spmm && tc_spmm_backend(dense->spmm) != *backend) PetscCall(MatTCDenseReset(tc));
  if (!dense->spmm) *status = tc_spmm_create(*backend, &options, &dense->spmm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves products with dense blocks to the parent after a failure */
static PetscErrorCode MatTCDenseFail(Mat A, Mat_AIJTCCUSPARSE *tc)
{
  PetscFunctionBegin;
  PetscCall(MatTCFail(A, tc, &tc->dense.side, "a product with a dense block", tc_last_error()));
  PetscCall(MatTCDenseFree(&tc->dense)); /* it may have been the memory */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before C = A B or A B^T for the first time, `square` says whether there are as many rows as columns: the device looks at the pattern while C is made */
PetscErrorCode MatTCDenseLookAhead(Mat A, Mat_AIJTCCUSPARSE *tc, PetscBool square)
{
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  PetscBool         usable;
  MatTCPattern      P;
  tc_status         status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCDenseBegin(A, tc, square, &backend, &key, &stream, &usable, &status));
  if (!usable || backend == tc_backend_host() || MatTCSparesDevice(A, tc)) PetscFunctionReturn(PETSC_SUCCESS);
  if (status == TC_OK && !tc_spmm_has_seen(tc->dense.spmm, &key)) {
    PetscCall(MatTCPatternGetLocal(A, backend, stream, &P, &status));
    if (status == TC_OK) {
      const tc_csr_view rows = MatTCRowsOf(&P);

      status = tc_spmm_look_ahead(tc->dense.spmm, &key, &rows, stream);
    }
    PetscCall(MatTCPatternRestore(A, backend, &P));
  }
  if (status != TC_OK) PetscCall(MatTCDenseFail(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `done` is false if the parent has to do it */
PetscErrorCode MatTCDenseProduct(Mat A, Mat_AIJTCCUSPARSE *tc, const MatTCDenseArgs *args, PetscBool *done)
{
  const int32_t     n = args->n;
  tc_spmm_product   P = {.rows_b = args->inner, .rows_c = args->m, .n = n, .add = !args->B, .b_transposed = args->type == MATPRODUCT_ABt};
  MatTCSource       S = {.kernel = NULL};
  const tc_backend *backend;
  tc_key            key;
  tc_stream         stream;
  tc_status         status = TC_OK;

  PetscFunctionBegin;
  PetscCall(MatTCDenseBegin(A, tc, (PetscBool)(args->inner == args->m), &backend, &key, &stream, done, &status));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  tc->dense.column = NULL;
  PetscCall(MatTCColumnProduct(A, tc, backend, args, done));
  if (*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (status == TC_OK) PetscCall(args->type == MATPRODUCT_AtB ? MatTCSourceGetTransposed(A, tc, n, backend, &key, stream, &S, &status) : MatTCSourceGet(A, tc, n, (PetscBool)P.b_transposed, backend, &key, stream, &S, &status));
  *done = (PetscBool)(status == TC_OK && S.view);
  if (*done) PetscCall(MatTCLaunch(&tc->dense, &S, key.nnz, backend, args, &P, stream, &status));
  PetscCall(MatTCSourceRestore(A, backend, stream, &S, &status));
  if (status != TC_OK) {
    PetscCall(MatTCDenseFail(A, tc));
    *done = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
