/*
  What is timed side by side: matrices of our type and of the parent type, plans without PETSc, cuSPARSE without PETSc. All over the same host arrays.
*/
#pragma once
#include "../src/plan/transpose.h"
#include "bench_case.h"
#include "cusparse_baseline.h"

/* One of the three, and where its results go */
typedef struct {
  Mat                mat;
  tc_plan           *plan;
  tc_transpose      *transpose; /* whose plan it is; otherwise NULL */
  cusparse_baseline *cusparse;
  BenchTime         *time;
  double            *error_over_bound; /* NULL: not checked */
  PetscBool         *same_bits;        /* NULL: not compared */
} BenchCandidate;

enum { BENCH_MAX_CANDIDATES = 2 * BENCH_MAX_WAYS + BENCH_MAX_BASELINES };

/* A matrix on its way through the benchmark */
typedef struct {
  const tc_matrix     *A;
  const BenchSettings *settings;
  int32_t              block;
  PetscInt            *row_ptr, *col; // as PETSc wants them
  Vec                  in, out;       // on the side of the products
  Vec                  right;         // NULL unless the product is subtracted from it
  tc_csr_local         local;         // CSR where the products are; the same arrays for plans and cuSPARSE
  double              *local_val;
  int                  num;
  BenchCandidate       candidate[BENCH_MAX_CANDIDATES];
} Bench;

/* PETSc's arrays and the backend's, empty vectors; and the end of it all */
PetscErrorCode BenchCreate(const tc_matrix *, const BenchSettings *, int32_t, Bench *);
PetscErrorCode BenchDestroy(Bench *);

/* A matrix of a type over the host arrays; `spmv` and `arithmetic` (or NULL) are the values of our type's options, for it alone */
PetscErrorCode BenchNewMat(const Bench *, MatType, const char[], const char[], const char[], Mat *);

/*
  Adds the candidates to `Bench`: for every way a matrix, which is multiplied with, timing its conversion, and a plan for the kernel that it chose; the baselines.
  Vectors must be in place.
*/
PetscErrorCode BenchAddWays(Bench *, BenchResult *);
PetscErrorCode BenchAddBaselines(Bench *, BenchResult *);

/* The name of a way of products with a vector, by number; NULL: there are no more */
const char *BenchWayName(int);

/* What one product moves at the least: CSR's arrays, and the vectors once each */
double BenchCSRBytes(const tc_matrix *);
double BenchVectorBytes(const tc_matrix *, const BenchMode *);

/* out = A in, out += A in, out = A^T in or out = right - A in, `repeats` times; seconds on the device's clock or the processor's */
PetscErrorCode BenchTimeProducts(const Bench *, const BenchCandidate *, PetscInt, double *);

/*
  Milliseconds that the first product takes, and one after new values, beyond an ordinary one; medians but for the first, which happens once. The parent type's copy on
  the device is made before.
*/
PetscErrorCode BenchTimeSetup(const Bench *, const BenchCandidate *, BenchWay *);

/* The next product packs anew, in memory that is there */
PetscErrorCode BenchForgetPacked(Mat);
