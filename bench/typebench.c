/*
  typebench - MatMult() and MatMatMult() of this type, in each precision, beside the parent type, in the scalars of the PETSc at hand. Where PetscScalar is double, tcbench
  tells more.
*/
static char help[] = "Times this type against its parent in any real PetscScalar.\n\
  -case <a,b>      : generator:size, see tcbench list\n\
  -columns <n,m>   : columns of dense matrices, 1 for MatMult(); default 1,32,128\n\
  -precisions <p>  : of this type, default fp64,fp32,tf32\n\
  -host            : on one core\n\n";

#include "bench_timer.h"
#include "generators.h"
#include "oracle.h"
#include <math.h>
#include <petscmataijtccusparse.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST   = 16,
  GROUPS = 9,
  FIRST  = 5, /* products that tell how many make a group */
  WARM   = 40 /* products, beyond those that MatMult() is timed after */
};

static int wrong; /* products */

typedef struct {
  const tc_matrix *A;
  const char      *name;
  PetscBool        device;
} Case;

/* One product and what it needs */
typedef struct {
  Mat      M, B, C;
  Vec      x, y;
  PetscInt n;
} Product;

static PetscErrorCode CreateMatrix(const Case *K, MatType type, Mat *M)
{
  PetscInt    *row_ptr, *col;
  PetscScalar *val;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc3(K->A->num_rows + 1, &row_ptr, K->A->nnz, &col, K->A->nnz, &val));
  for (int32_t i = 0; i <= K->A->num_rows; i++) row_ptr[i] = (PetscInt)K->A->row_ptr[i];
  for (int64_t e = 0; e < K->A->nnz; e++) {
    col[e] = K->A->col[e];
    val[e] = K->A->val[e];
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, M));
  PetscCall(MatSetSizes(*M, K->A->num_rows, K->A->num_cols, K->A->num_rows, K->A->num_cols));
  PetscCall(MatSetType(*M, type));
  PetscCall(MatSeqAIJSetPreallocationCSR(*M, row_ptr, col, val));
  PetscCall(PetscFree3(row_ptr, col, val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of column j of B, or of x */
static double *Column(const Case *K, PetscInt j)
{
  double *b = (double *)malloc(((size_t)K->A->num_cols + 1) * sizeof(*b));

  if (!b) return NULL;
  tc_random_uniform(K->A->num_cols, (uint64_t)j + 3, b);
  for (int32_t i = 0; i < K->A->num_cols; i++) b[i] = (PetscScalar)b[i];
  return b;
}

static PetscErrorCode ProductCreate(const Case *K, MatType type, PetscInt n, Product *P)
{
  PetscScalar *array;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  P->n = n;
  PetscCall(CreateMatrix(K, type, &P->M));
  if (n == 1) {
    PetscCall(MatCreateVecs(P->M, &P->x, &P->y));
    PetscCall(VecGetArrayWrite(P->x, &array));
  } else {
    PetscCall(MatCreateDense(PETSC_COMM_SELF, K->A->num_cols, n, K->A->num_cols, n, NULL, &P->B));
    PetscCall(MatDenseGetArrayWrite(P->B, &array));
  }
  for (PetscInt j = 0; j < n; j++) {
    double *b = Column(K, j);

    PetscCheck(b, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a column");
    for (int32_t i = 0; i < K->A->num_cols; i++) array[i + (int64_t)j * K->A->num_cols] = b[i];
    free(b);
  }
  if (n == 1) PetscCall(VecRestoreArrayWrite(P->x, &array));
  else {
    PetscCall(MatDenseRestoreArrayWrite(P->B, &array));
    if (K->device) PetscCall(MatConvert(P->B, MATDENSECUDA, MAT_INPLACE_MATRIX, &P->B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductDestroy(Product *P)
{
  PetscFunctionBeginUser;
  PetscCall(VecDestroy(&P->x));
  PetscCall(VecDestroy(&P->y));
  PetscCall(MatDestroy(&P->B));
  PetscCall(MatDestroy(&P->C));
  PetscCall(MatDestroy(&P->M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Product *P)
{
  PetscFunctionBeginUser;
  if (P->n == 1) PetscCall(MatMult(P->M, P->x, P->y));
  else PetscCall(MatMatMult(P->M, P->B, P->C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_CURRENT, &P->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Milliseconds of a product, after what choices wait for; median of groups of at least two */
static PetscErrorCode Time(const Case *K, Product *P, double *ms)
{
  double group[GROUPS], spread;
  int    products = 1;

  PetscFunctionBeginUser;
  PetscCall(Multiply(P));
  for (int i = 0; i < (K->device ? WARM : 2); i++) PetscCall(Multiply(P));
  bench_synchronize(K->device);
  bench_begin(K->device); /* apart from the warm products, among which the choice is made */
  for (int i = 0; i < FIRST; i++) PetscCall(Multiply(P));
  *ms      = 1e3 * bench_end(K->device) / FIRST;
  products = (int)fmin(100, fmax(1, 2 / *ms));
  for (int g = 0; g < GROUPS; g++) {
    bench_begin(K->device);
    for (int i = 0; i < products; i++) PetscCall(Multiply(P));
    group[g] = 1e3 * bench_end(K->device) / products;
  }
  *ms = bench_median(GROUPS, group, &spread);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest error of y, or of the last column of C, relative to |A| |x| and in units of the scalar's roundoff */
static PetscErrorCode Error(const Case *K, const Product *P, double *units)
{
  const int32_t      m = K->A->num_rows;
  const PetscScalar *array;
  double            *x = Column(K, P->n - 1);
  long double       *ref = (long double *)malloc(2 * ((size_t)m + 1) * sizeof(*ref)), *bound = ref + m + 1;
  tc_matrix          S = *K->A;

  PetscFunctionBeginUser;
  PetscCheck(x && ref, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a column");
  tc_oracle_spmv(&S, x, NULL, 0, ref, bound);
  *units = 0;
  if (P->n == 1) PetscCall(VecGetArrayRead(P->y, &array));
  else PetscCall(MatDenseGetArrayRead(P->C, &array));
  for (int32_t i = 0; i < m; i++) {
    long double size = 0;

    for (int64_t e = S.row_ptr[i]; e < S.row_ptr[i + 1]; e++) size += fabsl((long double)S.val[e] * x[S.col[e]]);
    const double off = size > 0 ? (double)(fabsl(array[i + (int64_t)(P->n - 1) * m] - ref[i]) / size / (PETSC_MACHINE_EPSILON / 2)) : 0;

    if (!(off <= *units)) *units = isnan(off) ? INFINITY : off;
  }
  if (P->n == 1) PetscCall(VecRestoreArrayRead(P->y, &array));
  else PetscCall(MatDenseRestoreArrayRead(P->C, &array));
  free(x);
  free(ref);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `precision` NULL: the parent, whose time the others are compared with */
static PetscErrorCode Run(const Case *K, PetscInt n, MatType type, const char precision[], double *baseline)
{
  const PetscBool           theirs = (PetscBool)(K->device && n == 1); /* MatMult() may be left to cuSPARSE, which rounds every sum */
  const double              bound  = PetscDefined(USE_REAL_SINGLE) && !theirs ? 1 + 1e-6 : (double)tc_matrix_longest_row(K->A) + 1; /* of ours in fp64: sums of doubles, rounded once */
  MatAIJTCCUSPARSEPrecision p      = MAT_AIJTCCUSPARSE_PRECISION_FP64;
  Product                   P;
  PetscBool                 ours, found;
  double                    ms = 0, units;

  PetscFunctionBeginUser;
  PetscCall(ProductCreate(K, type, n, &P));
  if (!precision) PetscCall(MatAIJTCCUSPARSERestoreParent(P.M)); /* the parent's name makes matrices of ours as soon as there is one */
  PetscCall(MatIsAIJTCCUSPARSE(P.M, &ours));
  PetscCheck(ours == (precision != NULL), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix of %s type where the other is timed", ours ? "this" : "the parent");
  if (precision) {
    PetscCall(PetscEnumFind(MatAIJTCCUSPARSEPrecisions, precision, (PetscEnum *)&p, &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No precision %s", precision);
    PetscCall(MatAIJTCCUSPARSESetPrecision(P.M, p));
  }
  PetscCall(Time(K, &P, &ms));
  PetscCall(Error(K, &P, &units));
  if (!precision) *baseline = ms;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %4" PetscInt_FMT " %-8s %9.4f ms  %5.2fx  error %.3g u\n", K->name, n, precision ? precision : type, ms, *baseline / ms, units));
  if (precision && p == MAT_AIJTCCUSPARSE_PRECISION_FP64 && !(units <= bound)) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "WRONG: more than %g u\n", bound));
    wrong++;
  }
  PetscCall(ProductDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* generator:size, rounded to PetscScalar */
static PetscErrorCode Generate(const char name[], tc_matrix *A)
{
  PetscFunctionBeginUser;
  PetscCheck(tc_generate_named(name, 1, A) == TC_OK, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case %s", tc_last_error());
  for (int64_t e = 0; e < A->nnz; e++) A->val[e] = (PetscScalar)A->val[e];
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  char     *cases[MOST], *precisions[MOST] = {"fp64", "fp32", "tf32"}, device_name[256];
  PetscInt  columns[MOST] = {1, 32, 128}, num_cases = MOST, num_columns = MOST, num_precisions = MOST;
  PetscBool host, set, given;

  PetscCall(PetscInitialize(&argc, &args, NULL, help));
  PetscCall(MatAIJTCCUSPARSEInitializePackage());
  PetscCall(PetscOptionsHasName(NULL, NULL, "-host", &host));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", cases, &num_cases, &set));
  PetscCheck(set, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-case generator:size,... says what to time");
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-columns", columns, &num_columns, &set));
  if (!set) num_columns = 3;
  for (PetscInt i = 0; i < num_columns; i++) PetscCheck(columns[i] >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-columns %" PetscInt_FMT ", expected 1 at least", columns[i]);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-precisions", precisions, &num_precisions, &given));
  if (!given) num_precisions = 3;
  for (PetscInt p = 0; p < num_precisions; p++) {
    PetscEnum value;
    PetscBool known;

    PetscCall(PetscEnumFind(MatAIJTCCUSPARSEPrecisions, precisions[p], &value, &known));
    PetscCheck(known, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-precisions %s: some of fp64, fp32, tf32, bf16, fp16", precisions[p]);
  }
  host = (PetscBool)(host || !bench_device(device_name));
  if (host) PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_backend", "host"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_defer", "false")); /* products with what is packed are timed */
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d-byte PetscScalar, %s\n", (int)sizeof(PetscScalar), host ? "host" : device_name));
  for (PetscInt c = 0; c < num_cases; c++) {
    tc_matrix A;
    Case      K = {&A, cases[c], (PetscBool)!host};
    double    baseline = 0;

    PetscCall(Generate(cases[c], &A));
    for (PetscInt i = 0; i < num_columns; i++) {
      PetscCall(Run(&K, columns[i], host ? MATSEQAIJ : MATSEQAIJCUSPARSE, NULL, &baseline));
      for (PetscInt p = 0; p < num_precisions; p++) PetscCall(Run(&K, columns[i], MATAIJTCCUSPARSE, precisions[p], &baseline));
    }
    tc_matrix_free(&A);
    PetscCall(PetscFree(cases[c]));
  }
  for (PetscInt p = 0; given && p < num_precisions; p++) PetscCall(PetscFree(precisions[p]));
  PetscCall(PetscFinalize());
  return wrong > 0;
}
