/*
  What the benchmark of products with dense blocks has measured, and its output.
*/
#pragma once
#include "bench_spmm.h"

/* What is multiplied: A B, A^T B or A B^T */
typedef enum { SPMM_AB, SPMM_ATB, SPMM_ABT, SPMM_NUM_MODES } SpmmMode;

enum { SPMM_MAX_WAYS = 6, SPMM_MAX_BASELINES = 5, SPMM_MAX_COLUMNS = 17 /* one more than there may be */, SPMM_MAX_ROWS = 2048, SPMM_NUM_PRECISIONS = TC_PRECISION_F16 + 1, SPMM_MAX_SUMMARIES = 2 * SPMM_MAX_COLUMNS * SPMM_NUM_PRECISIONS };

/* Of the checked columns of a product, in the worst of their elements */
typedef struct {
  double    over_bound; // error over the bound of its precision
  double    error;      // |C - A B| / (|A| |B|)
  PetscBool same_bits;  // as kernels/tc_spmm.h defines; not compared but in fp64
} SpmmAccuracy;

/* One way to multiply */
typedef struct {
  const char  *name;
  PetscBool    forced;     // asked for, not chosen
  char         kernel[64]; // name of the launcher, or of the parent type if the product was left to it
  BenchTime    time;       // MatMatMult() or another of the modes with MAT_REUSE_MATRIX
  SpmmAccuracy accuracy;
} SpmmWay;

/* One matrix, one precision and one number of columns */
typedef struct {
  char         name[64];
  tc_precision precision; // of our ways, and of cuSPARSE's
  PetscBool    random_values;
  int64_t      rows, cols, nnz;
  PetscInt     n;
  double       bytes, floor_ms;     // CSR, B and C once each, at the speed of a device copy
  double       build_ms, refill_ms; // of what way [0] comes to, beyond an ordinary product, at the first one and after new values
  PetscInt     straight;            // products of way [0] straight from CSR before it packed; 0 where it does not or needs none
  double       first_ms, baseline_first_ms; // the first product of a new matrix, all included but CSR's way to the device: of way [0], of baseline [0]
  int          num_ways, num_baselines;
  SpmmWay      way[SPMM_MAX_WAYS]; // [0] is what is chosen unless only forced ones were asked for
  struct {
    const char  *name;
    BenchTime    time;
    SpmmAccuracy accuracy;
  } baseline[SPMM_MAX_BASELINES]; // [0] is the parent type, in fp64, the others are cuSPARSE without PETSc
} SpmmRow;

struct BenchSpmm {
  const BenchSettings *settings;
  SpmmMode             mode;
  PetscBool            quiet;
  PetscInt             num_columns, columns[SPMM_MAX_COLUMNS];
  int                  num;
  SpmmRow              row[SPMM_MAX_ROWS];
};

/* Is every product within its bound, with the right bits in fp64? */
PetscBool SpmmIsRight(const SpmmRow *);

PetscErrorCode SpmmPrintHead(const BenchSpmm *);
PetscErrorCode SpmmPrintRow(const BenchSpmm *, const SpmmRow *);
