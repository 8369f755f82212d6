/*
  One matrix of the benchmark: what is multiplied, what is measured.
*/
#pragma once
#include "../src/plan/plan.h"
#include "matrix.h"
#include <petscmataijtccusparse.h>
#include <stdio.h>

/* A row of the table of operations */
typedef struct {
  const char *mode, *op; // for -spmv_mode, for the JSON
  PetscBool   transpose;
  PetscBool   add, subtract; // the product in place to a vector, or from another one
} BenchMode;

const BenchMode *BenchModeFind(const char[]); /* NULL: no such mode */

typedef struct {
  double ms, spread;
} BenchTime;

/* One way to multiply */
typedef struct {
  const char *name;
  PetscBool   forced;              // asked for, not chosen
  char        kernel[64];          // name of the launcher, or of the parent type if the product was left to it
  BenchTime   mult;                // MatMult(), MatMultAdd() in place, MatMultTranspose() or MatResidual()
  BenchTime   launch;              // the same kernel alone, through a plan; 0 if it is the parent type's
  double      build_ms, refill_ms; // beyond an ordinary product, at the first one and after new values
  double      again_ms;            // as build_ms, of the same pattern once more: host and device know the way, the memory is there; 0 where once has taken too long
  double      break_even;          // products after which the two are paid for, against baseline [0]; infinite if never
  double      error_over_bound;    // of the checked product
  PetscBool   same_bits;           // as docs/formats.md defines, and so as the host backend's
  double      bytes;               // moved by one product
  char        classes[128], kinds[128];
} BenchWay;

enum { BENCH_MAX_WAYS = 8, BENCH_MAX_BASELINES = 4, BENCH_SEED = 1 };

typedef struct {
  /* given */
  char         name[64];
  PetscBool    random_values; // nothing about the values can be narrowed
  int32_t      block;         // unknowns per node, as an application would tell PETSc; 1: not known
  double       target_ms;
  tc_precision precision; // that of the settings
  /* measured */
  int64_t   rows, cols, nnz;
  double    floor_ms; // CSR's bytes at the speed of a device copy
  int       num_ways, num_baselines;
  BenchWay  way[BENCH_MAX_WAYS]; // [0] is what is chosen unless only forced ones were asked for
  struct {
    const char *name;
    BenchTime   time;
    double      error_over_bound;
  } baseline[BENCH_MAX_BASELINES]; // [0] is the parent type, those named cusparse* are without PETSc
} BenchResult;

typedef struct {
  PetscBool         cuda;
  const BenchMode  *mode;
  tc_precision      precision; // of the entries, in our ways; its name is that of the option
  PetscInt          groups;
  PetscReal         group_ms; // a group repeats the product for at least this long
  double            copy_gbs;
  const tc_backend *backend;
  int               num_ways; // 0: all that there are
  char             *ways[BENCH_MAX_WAYS];
} BenchSettings;

/* Measures one matrix, on top of what is given in `result` */
PetscErrorCode BenchRun(const tc_matrix *, const BenchSettings *, BenchResult *);

/* Is every product within its bound, with the right bits? */
PetscBool BenchIsRight(const BenchResult *);

/* Output: one matrix in the table (NULL: its head), the means and losses below it, the whole as JSON */
PetscErrorCode BenchPrint(const BenchSettings *, const BenchResult *);
PetscErrorCode BenchPrintSummary(const BenchSettings *, int, const BenchResult *);
void           bench_write_string(FILE *, const char[]); // as JSON has it
PetscErrorCode BenchWriteJSON(const char[], const BenchSettings *, int, const BenchResult *);
