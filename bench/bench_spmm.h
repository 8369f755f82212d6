/*
  Products with dense blocks in the benchmark: MatMatMult() of MATAIJTCCUSPARSE, each way to do it, against the parent type and cuSPARSE, for several numbers of columns.
*/
#pragma once
#include "bench_case.h"

typedef struct BenchSpmm BenchSpmm;

/* Reads -spmm_mode and -spmm_n; prints the head of the table. Frees with BenchSpmmFinish(). */
PetscErrorCode BenchSpmmCreate(const BenchSettings *, BenchSpmm **);

/* Measures one matrix, prints a line for each number of columns and way; PETSC_FALSE if a product was wrong. Of `given` the name and what is known of the matrix count. */
PetscErrorCode BenchSpmmRun(BenchSpmm *, const BenchResult *given, const tc_matrix *, PetscBool *right);

/* The means, the file for programs (NULL: none) */
PetscErrorCode BenchSpmmFinish(BenchSpmm **, const char json[]);
