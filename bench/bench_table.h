/*
  The table of the benchmark: which generated matrices, and how large. No PETSc.
*/
#pragma once
#include "generators.h"

/* A generated matrix in its full size, and in the size for one processor core */
typedef struct {
  const char *name, *generator;
  int32_t     size, host_size;
  double      target_ms; // on an H200: the faster of the first packed kernel ("8x4 chunks") and DASP's own code; 0: none
} tc_bench_case;

const tc_bench_case *tc_bench_cases(int *num);
