static char help[] = "Classifies the vertices of a graph by a layer of a graph convolutional network, in several precisions, and compares time, error and what is recognised.\n\
Input parameters:\n\
  -f <file>               : graph, Matrix Market file (.mtx or .mtx.gz)\n\
  -widths <n1,n2,...>     : features of a vertex, default 64,128,256,512\n\
  -precisions <p1,p2,...> : of the products, default fp64,tf32,bf16,fp16\n\
  -baseline <type>        : matrix type to compare with, default aij\n\
  -classes <n>            : number of classes, default 16\n\
  -products <n>           : timed for each precision, default 20\n\
  -noise <s>              : standard deviation of the noise in the features, default 6\n\
  -check                  : an error unless every product is within the documented bound\n\n";

/*
  A graph convolution mixes the features of every vertex with those of its neighbours, Y = D^-1/2 (A + I) D^-1/2 X, and multiplies by trained weights, Y W: first a
  product of a sparse matrix with a dense one, then a small dense product. The sparse one takes the time, and features need few digits: MATAIJTCCUSPARSE computes it on
  tensor cores in the precision that MatAIJTCCUSPARSESetPrecision() or -mat_aijtccusparse_precision asks for.

  The graph is real, the task made up: some vertices found classes, every other vertex belongs to the nearest of them, and features are the mean of the class plus
  noise. The weights are the means, so without convolution a vertex gets the class whose mean is most like its own features.

  Try:  ./ex4 -f graph.mtx.gz                         on a GPU: -baseline aijcusparse
        mpiexec -n 2 ./ex4 -f graph.mtx.gz -precisions fp64,bf16 -widths 64
*/
#include <petscmat.h>
#include <petscmataijtccusparse.h>
#include "matrix_market.h"

enum {
  MAX_CHOICES = 16
};

typedef struct {
  PetscInt  vertices, classes;
  PetscInt *class_of; /* [vertices], the same on every process */
  Mat       A;        /* D^-1/2 (A + I) D^-1/2, as plain MATAIJ */
} Graph;

/* In (0, 1), from three numbers */
static PetscReal Uniform(PetscInt64 stream, PetscInt64 i, PetscInt64 j)
{
  uint64_t bits = (uint64_t)stream * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xbf58476d1ce4e5b9u + (uint64_t)j * 0x94d049bb133111ebu;

  for (int round = 0; round < 2; round++) {
    bits = (bits ^ bits >> 31) * 0xd6e8feb86659fd93u;
    bits ^= bits >> 32;
  }
  return ((PetscReal)(bits >> 12) + 0.5) / 4503599627370496.0;
}

static PetscReal Normal(PetscInt64 stream, PetscInt64 i, PetscInt64 j)
{
  return PetscSqrtReal(-2.0 * PetscLogReal(Uniform(stream, i, 2 * j))) * PetscCosReal(2.0 * PETSC_PI * Uniform(stream, i, 2 * j + 1));
}

/* Feature j of the mean of a class, one of the weights, too */
static PetscReal Mean(PetscInt class, PetscInt j)
{
  return Normal(1, class, j);
}

/* Breadth first from one vertex of each class; vertices out of reach get some class */
static PetscErrorCode Classify(const tc_matrix *M, Graph *graph)
{
  PetscInt *queue, head = 0, tail = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(graph->vertices, &queue));
  for (PetscInt v = 0; v < graph->vertices; v++) graph->class_of[v] = -1;
  for (PetscInt c = 0; c < graph->classes; c++) {
    const PetscInt v = (PetscInt)(Uniform(2, c, 0) * (PetscReal)graph->vertices);

    if (graph->class_of[v] >= 0) continue;
    graph->class_of[v] = c;
    queue[tail++]      = v;
  }
  while (head < tail) {
    const PetscInt v = queue[head++];

    for (int64_t e = M->row_ptr[v]; e < M->row_ptr[v + 1]; e++) {
      if (graph->class_of[M->col[e]] >= 0) continue;
      graph->class_of[M->col[e]] = graph->class_of[v];
      queue[tail++]              = M->col[e];
    }
  }
  for (PetscInt v = 0; v < graph->vertices; v++) {
    if (graph->class_of[v] < 0) graph->class_of[v] = v % graph->classes;
  }
  PetscCall(PetscFree(queue));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every process reads the whole file and keeps the rows it owns. Values and direction of edges do not count. */
static PetscErrorCode GraphLoad(MPI_Comm comm, const char file[], PetscInt classes, Graph *graph)
{
  tc_matrix M, T;
  Vec       degree;
  PetscInt  begin, end;

  PetscFunctionBeginUser;
  PetscCheck(tc_matrix_market_read(file, &M) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s", tc_last_error());
  PetscCheck(M.num_rows == M.num_cols, comm, PETSC_ERR_ARG_SIZ, "%s has %d rows and %d columns, a graph has as many of both", file, (int)M.num_rows, (int)M.num_cols);
  PetscCheck(tc_matrix_transpose(&M, &T) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", tc_last_error());
  PetscCheck(M.num_rows >= classes, comm, PETSC_ERR_ARG_SIZ, "%s has %d vertices, fewer than -classes %" PetscInt_FMT, file, (int)M.num_rows, classes);
  graph->vertices = M.num_rows;
  graph->classes  = classes;
  PetscCall(PetscMalloc1(graph->vertices, &graph->class_of));
  PetscCall(Classify(&M, graph));
  PetscCall(MatCreate(comm, &graph->A));
  PetscCall(MatSetSizes(graph->A, PETSC_DECIDE, PETSC_DECIDE, graph->vertices, graph->vertices));
  PetscCall(MatSetType(graph->A, MATAIJ));
  PetscCall(MatSetUp(graph->A));
  PetscCall(MatGetOwnershipRange(graph->A, &begin, &end));
  for (PetscInt v = begin; v < end; v++) {
    PetscCall(MatSetValue(graph->A, v, v, 1.0, INSERT_VALUES));
    for (int64_t e = M.row_ptr[v]; e < M.row_ptr[v + 1]; e++) PetscCall(MatSetValue(graph->A, v, M.col[e], 1.0, INSERT_VALUES));
    for (int64_t e = T.row_ptr[v]; e < T.row_ptr[v + 1]; e++) PetscCall(MatSetValue(graph->A, v, T.col[e], 1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(graph->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(graph->A, MAT_FINAL_ASSEMBLY));
  tc_matrix_free(&M);
  tc_matrix_free(&T);
  PetscCall(MatCreateVecs(graph->A, NULL, &degree));
  PetscCall(MatGetRowSum(graph->A, degree));
  PetscCall(VecSqrtAbs(degree));
  PetscCall(VecReciprocal(degree));
  PetscCall(MatDiagonalScale(graph->A, degree, degree));
  PetscCall(VecDestroy(&degree));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GraphDestroy(Graph *graph)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&graph->A));
  PetscCall(PetscFree(graph->class_of));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Dense, with a row for each of A, where the vectors of A live; features of the vertices, or their magnitudes */
static PetscErrorCode FeaturesCreate(const Graph *graph, Mat A, PetscInt width, PetscReal noise, PetscBool magnitudes, Mat *X)
{
  VecType      vec_type;
  PetscInt     m, M, begin, ld;
  PetscScalar *x;

  PetscFunctionBeginUser;
  PetscCall(MatGetVecType(A, &vec_type));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatCreateDenseFromVecType(PetscObjectComm((PetscObject)A), vec_type, m, PETSC_DECIDE, M, width, -1, NULL, X));
  PetscCall(MatGetOwnershipRange(*X, &begin, NULL));
  PetscCall(MatDenseGetLDA(*X, &ld));
  PetscCall(MatDenseGetArrayWrite(*X, &x));
  for (PetscInt j = 0; j < width; j++) {
    for (PetscInt i = 0; i < m; i++) {
      const PetscReal feature = Mean(graph->class_of[begin + i], j) + noise * Normal(3, begin + i, j);

      x[i + j * ld] = magnitudes ? PetscAbsReal(feature) : feature;
    }
  }
  PetscCall(MatDenseRestoreArrayWrite(*X, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The class of each local vertex by its features: the largest element of its row of Y W */
static PetscErrorCode Recognise(const Graph *graph, Mat Y, PetscInt found[])
{
  Mat                local, W, scores;
  MatType            type;
  PetscInt           m, width, ld;
  PetscScalar       *w;
  const PetscScalar *s;

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetLocalMatrix(Y, &local));
  PetscCall(MatGetSize(local, &m, &width));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, width, graph->classes, NULL, &W));
  PetscCall(MatDenseGetArrayWrite(W, &w));
  for (PetscInt c = 0; c < graph->classes; c++) {
    for (PetscInt j = 0; j < width; j++) w[j + c * width] = Mean(c, j);
  }
  PetscCall(MatDenseRestoreArrayWrite(W, &w));
  PetscCall(MatGetType(local, &type));
  PetscCall(MatConvert(W, type, MAT_INPLACE_MATRIX, &W));
  PetscCall(MatMatMult(local, W, MAT_INITIAL_MATRIX, PETSC_CURRENT, &scores));
  PetscCall(MatDenseGetLDA(scores, &ld));
  PetscCall(MatDenseGetArrayRead(scores, &s));
  for (PetscInt i = 0; i < m; i++) {
    found[i] = 0;
    for (PetscInt c = 1; c < graph->classes; c++) {
      if (PetscRealPart(s[i + c * ld]) > PetscRealPart(s[i + found[i] * ld])) found[i] = c;
    }
  }
  PetscCall(MatDenseRestoreArrayRead(scores, &s));
  PetscCall(MatDestroy(&scores));
  PetscCall(MatDestroy(&W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of all vertices, those whose class is that of the other array */
static PetscErrorCode Share(Mat A, const PetscInt found[], const PetscInt expected[], PetscReal *share)
{
  PetscInt m, M, same = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  for (PetscInt i = 0; i < m; i++) same += found[i] == expected[i];
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &same, 1, MPIU_INT, MPI_SUM, PetscObjectComm((PetscObject)A)));
  *share = M > 0 ? (PetscReal)same / (PetscReal)M : 1.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest (|y - exact| - ignored) / bound of an element */
static PetscErrorCode LargestError(Mat Y, Mat exact, Mat bound, PetscReal ignored, PetscReal *error)
{
  PetscInt           m, n, ld[3];
  const PetscScalar *y, *e, *b;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(Y, &m, NULL));
  PetscCall(MatGetSize(Y, NULL, &n));
  PetscCall(MatDenseGetLDA(Y, &ld[0]));
  PetscCall(MatDenseGetLDA(exact, &ld[1]));
  PetscCall(MatDenseGetLDA(bound, &ld[2]));
  PetscCall(MatDenseGetArrayRead(Y, &y));
  PetscCall(MatDenseGetArrayRead(exact, &e));
  PetscCall(MatDenseGetArrayRead(bound, &b));
  *error = 0.0;
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) {
      const PetscReal difference = PetscAbsScalar(y[i + j * ld[0]] - e[i + j * ld[1]]) - ignored;

      if (PetscIsInfOrNanReal(difference)) *error = PETSC_INFINITY;
      else if (difference > 0.0) *error = PetscMax(*error, difference / PetscRealPart(b[i + j * ld[2]]));
    }
  }
  PetscCall(MatDenseRestoreArrayRead(Y, &y));
  PetscCall(MatDenseRestoreArrayRead(exact, &e));
  PetscCall(MatDenseRestoreArrayRead(bound, &b));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, error, 1, MPIU_REAL, MPIU_MAX, PetscObjectComm((PetscObject)Y)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y = A X, set up and packed by a first product; `ms` is the mean of those that follow, on the slowest process */
static PetscErrorCode Convolve(Mat A, Mat X, Mat *Y, PetscLogDouble *ms)
{
  PetscLogDouble start, end;
  PetscReal      norm; /* waits for the GPU */
  PetscInt       products = 20;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCheck(products > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-products %" PetscInt_FMT ": at least 1", products);
  PetscCall(MatProductCreate(A, X, NULL, Y));
  PetscCall(MatProductSetType(*Y, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(*Y));
  PetscCall(MatProductSymbolic(*Y));
  PetscCall(MatProductNumeric(*Y));
  PetscCall(MatNorm(*Y, NORM_FROBENIUS, &norm));
  PetscCall(PetscTime(&start));
  for (PetscInt i = 0; i < products; i++) PetscCall(MatProductNumeric(*Y));
  PetscCall(MatNorm(*Y, NORM_FROBENIUS, &norm));
  PetscCall(PetscTime(&end));
  *ms = 1000.0 * (end - start) / products;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, ms, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the products of the baseline give, for one width */
typedef struct {
  PetscInt       width;
  Mat            X, Y, bound; /* bound: |A| |X| */
  PetscInt      *found;       /* [local vertices] */
  PetscLogDouble ms;
} Reference;

static PetscErrorCode PrintLine(const Graph *graph, Mat A, const char name[], const Reference *reference, const PetscInt found[], PetscLogDouble ms, PetscReal error)
{
  PetscInt    begin;
  PetscReal   right, same;
  PetscInt64  products;
  const char *kernel;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &begin, NULL));
  PetscCall(Share(A, found, graph->class_of + begin, &right));
  PetscCall(Share(A, found, reference->found, &same));
  PetscCall(MatAIJTCCUSPARSEGetSpMMCount(A, &products, &kernel));
  PetscCall(PetscPrintf(PetscObjectComm((PetscObject)A), "%-12s %8" PetscInt_FMT " %12.4f %7.2fx %14.2e %9.2f%% %9.2f%%  %s\n", name, reference->width, ms, reference->ms / ms, (double)error, 100.0 * (double)right, 100.0 * (double)same, kernel ? kernel : "-"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReferenceCreate(const Graph *graph, MatType type, PetscInt width, PetscReal noise, Reference *reference)
{
  PetscInt       m, begin, *found;
  PetscReal      right;
  PetscLogDouble ms;
  Mat            A, magnitudes;

  PetscFunctionBeginUser;
  reference->width = width;
  PetscCall(MatConvert(graph->A, type, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &begin, NULL));
  PetscCall(PetscMalloc1(m, &reference->found));
  PetscCall(FeaturesCreate(graph, A, width, noise, PETSC_FALSE, &reference->X));
  PetscCall(Convolve(A, reference->X, &reference->Y, &reference->ms));
  PetscCall(FeaturesCreate(graph, A, width, noise, PETSC_TRUE, &magnitudes));
  PetscCall(Convolve(A, magnitudes, &reference->bound, &ms));
  PetscCall(Recognise(graph, reference->Y, reference->found));
  PetscCall(PetscMalloc1(m, &found));
  PetscCall(Recognise(graph, reference->X, found));
  PetscCall(Share(A, found, graph->class_of + begin, &right));
  PetscCall(PetscFree(found));
  PetscCall(PetscPrintf(PetscObjectComm((PetscObject)A), "width %" PetscInt_FMT ": %.2f%% recognised without convolution\n", width, 100.0 * (double)right));
  PetscCall(PrintLine(graph, A, type, reference, reference->found, reference->ms, 0.0));
  PetscCall(MatDestroy(&magnitudes));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReferenceDestroy(Reference *reference)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(reference->found));
  PetscCall(MatDestroy(&reference->X));
  PetscCall(MatDestroy(&reference->Y));
  PetscCall(MatDestroy(&reference->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LongestRow(Mat A, PetscInt *longest)
{
  PetscInt begin, end, length;

  PetscFunctionBeginUser;
  *longest = 0;
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt i = begin; i < end; i++) {
    PetscCall(MatGetRow(A, i, &length, NULL, NULL));
    *longest = PetscMax(*longest, length);
    PetscCall(MatRestoreRow(A, i, &length, NULL, NULL));
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, longest, 1, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  How far products of rows of so many entries may be off, and the exact ones computed in fp64: docs/formats.md, "Narrow products". `factor` is that of |A| |X|, `small` that
  of the entries in a row times the largest one of A, 1 at most here, and the largest of X.
*/
static void DocumentedBound(MatAIJTCCUSPARSEPrecision precision, PetscInt longest_row, PetscReal *factor, PetscReal *small)
{
  const PetscBool full = (PetscBool)(precision == MAT_AIJTCCUSPARSE_PRECISION_FP64), split = (PetscBool)(precision == MAT_AIJTCCUSPARSE_PRECISION_FP32);
  const PetscReal units[] = {[MAT_AIJTCCUSPARSE_PRECISION_FP64] = 0.0, [MAT_AIJTCCUSPARSE_PRECISION_FP32] = 0x1p-24, [MAT_AIJTCCUSPARSE_PRECISION_TF32] = 0x1p-11, [MAT_AIJTCCUSPARSE_PRECISION_BF16] = 0x1p-8, [MAT_AIJTCCUSPARSE_PRECISION_FP16] = 0x1p-11};
  const PetscReal u       = 2.0 * units[precision] + units[precision] * units[precision] + (split ? 0x3.01p-22 : 0.0);
  const PetscReal chain   = full ? 0.0 : (split ? 9.0 : 3.0) * PetscMin(longest_row, 256) * 0x1p-23, g = chain / (1.0 - chain);

  *factor = u + g * (1.0 + u) + ((PetscReal)longest_row + 2.0) * 0x1p-52;
  *small  = full ? 0.0 : (precision == MAT_AIJTCCUSPARSE_PRECISION_FP16 ? 4.0 * 0x1p-39 : 0x1p-126 + 3.0 * 0x1p-61) * (1.0 + g);
}

static PetscErrorCode CheckError(const Graph *graph, const Reference *reference, Mat Y, MatAIJTCCUSPARSEPrecision precision)
{
  PetscReal factor, small, error, largest = 0.0, *norms;
  PetscInt  longest;

  PetscFunctionBeginUser;
  PetscCall(LongestRow(graph->A, &longest));
  DocumentedBound(precision, longest, &factor, &small);
  PetscCall(PetscMalloc1(reference->width, &norms));
  PetscCall(MatGetColumnNorms(reference->X, NORM_INFINITY, norms));
  for (PetscInt j = 0; j < reference->width; j++) largest = PetscMax(largest, norms[j]);
  PetscCall(PetscFree(norms));
  PetscCall(LargestError(Y, reference->Y, reference->bound, small * (PetscReal)longest * largest, &error));
  PetscCheck(error <= factor, PetscObjectComm((PetscObject)Y), PETSC_ERR_PLIB, "In %s the error is %g of |A| |X|, %g at most was promised", MatAIJTCCUSPARSEPrecisions[precision], (double)error, (double)factor);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Graph *graph, MatAIJTCCUSPARSEPrecision precision, const Reference *reference, PetscBool check)
{
  const char    *name = MatAIJTCCUSPARSEPrecisions[precision];
  PetscInt       m, *found;
  PetscReal      error;
  PetscLogDouble ms;
  Mat            A, Y;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(graph->A, MATAIJTCCUSPARSE, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatAIJTCCUSPARSESetPrecision(A, precision));
  PetscCall(MatSetFromOptions(A));
  PetscCall(Convolve(A, reference->X, &Y, &ms));
  PetscCall(LargestError(Y, reference->Y, reference->bound, 0.0, &error));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(PetscMalloc1(m, &found));
  PetscCall(Recognise(graph, Y, found));
  PetscCall(PrintLine(graph, A, name, reference, found, ms, error));
  if (check) PetscCall(CheckError(graph, reference, Y, precision));
  PetscCall(PetscFree(found));
  PetscCall(MatDestroy(&Y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Graph       graph;
  Reference   reference;
  const char *usual[] = {"fp64", "tf32", "bf16", "fp16"};
  char        file[PETSC_MAX_PATH_LEN], type[64] = MATAIJ, *precisions[MAX_CHOICES];
  PetscInt    num_widths = MAX_CHOICES, widths[MAX_CHOICES] = {64, 128, 256, 512}, num_precisions = MAX_CHOICES, classes = 16;
  PetscEnum   precision[MAX_CHOICES];
  PetscReal   noise = 6.0;
  PetscBool   given, known, check = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(MatAIJTCCUSPARSESetPropagate(PETSC_FALSE)); /* the baseline stays what it is */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), &given));
  PetscCheck(given, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-f <file>: a graph in a Matrix Market file is needed");
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-widths", widths, &num_widths, &given));
  if (!given) num_widths = 4;
  for (PetscInt w = 0; w < num_widths; w++) PetscCheck(widths[w] > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-widths %" PetscInt_FMT ": at least 1", widths[w]);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-precisions", precisions, &num_precisions, &given));
  if (!given) num_precisions = PETSC_STATIC_ARRAY_LENGTH(usual);
  for (PetscInt p = 0; p < num_precisions; p++) {
    if (!given) PetscCall(PetscStrallocpy(usual[p], &precisions[p]));
    PetscCall(PetscEnumFind(MatAIJTCCUSPARSEPrecisions, precisions[p], &precision[p], &known));
    PetscCheck(known, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-precisions %s: some of fp64, fp32, tf32, bf16, fp16", precisions[p]);
    PetscCall(PetscFree(precisions[p]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-baseline", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-classes", &classes, NULL));
  PetscCheck(classes > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-classes %" PetscInt_FMT ": at least 1", classes);
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-noise", &noise, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-check", &check, NULL));
  PetscCall(GraphLoad(PETSC_COMM_WORLD, file, classes, &graph));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %" PetscInt_FMT " vertices, %" PetscInt_FMT " classes\n", file, graph.vertices, classes));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-12s %8s %12s %8s %14s %10s %10s  %s\n", "precision", "features", "product [ms]", "speedup", "error/(|A||X|)", "recognised", "as before", "kernel"));
  for (PetscInt w = 0; w < num_widths; w++) {
    PetscCall(ReferenceCreate(&graph, type, widths[w], noise, &reference));
    for (PetscInt p = 0; p < num_precisions; p++) PetscCall(Compare(&graph, (MatAIJTCCUSPARSEPrecision)precision[p], &reference, check));
    PetscCall(ReferenceDestroy(&reference));
  }
  PetscCall(GraphDestroy(&graph));
  PetscCall(PetscFinalize());
  return 0;
}
