/*
  One matrix of the benchmark: what is multiplied, what is measured.
*/
#pragma once
#include "../src/plan/plan.h"
#include "matrix.h"
#include <petscmataijtccusparse.h>

/* A row of the table: a generated matrix in its full size, and in the size for one processor core */
typedef struct {
  const char *name, *generator;
  int32_t     size, host_size;
  double      target_ms; // on an H200: the faster of the first packed kernel ("8x4 chunks") and DASP's own code; 0: none
} BenchCase;

const BenchCase *BenchCases(int *num);

typedef struct {
  double ms, spread;
} BenchTime;

/* One way to multiply */
typedef struct {
  char      kernel[64];       // name of the launcher, or of the type
  PetscBool forced;           // asked for, not chosen
  BenchTime mult;             // MatMult()
  BenchTime launch;           // the kernel alone, through its plan; 0 if not measured
  double    error_over_bound; // of the checked product
  PetscBool same_bits;        // as the host backend
  double    bytes;            // moved by one product
} BenchWay;

enum { BENCH_MAX_WAYS = 2, BENCH_MAX_BASELINES = 2 };

typedef struct {
  char        name[64];
  int64_t     rows, cols, nnz;
  double      target_ms, floor_ms; // CSR's bytes at the speed of a device copy
  int         num_ways, num_baselines;
  BenchWay    way[BENCH_MAX_WAYS]; // [0] is what is chosen
  const char *baseline_name[BENCH_MAX_BASELINES];
  BenchTime   baseline[BENCH_MAX_BASELINES];
  double      build_ms, refill_ms;
  char        classes[128];
} BenchResult;

typedef struct {
  PetscBool         cuda;
  PetscInt          groups;
  PetscReal         group_ms; // a group repeats the product for at least this long
  double            copy_gbs;
  const tc_backend *backend; // for the kernel alone; NULL: not measured
} BenchSettings;

/* Measures one matrix. `result` is overwritten but for its name and target. */
PetscErrorCode BenchRun(const tc_matrix *, const BenchSettings *, BenchResult *);

/* Output: one line of the table (NULL: its head), the whole as JSON */
PetscErrorCode BenchPrint(const BenchSettings *, const BenchResult *);
PetscErrorCode BenchWriteJSON(const char[], const BenchSettings *, int, const BenchResult *);
