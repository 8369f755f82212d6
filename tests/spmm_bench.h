/*
  Times every kernel for dense blocks on matrices of full size, without PETSc: for each case and each number of columns milliseconds per product, the median of several
  measurements of 20 ms and more by the host's clock, and what conversion and refresh take. The first and the last column of C must be the same bits for all kernels in double precision; for the others it is said how far off they are.
*/
#pragma once
#include "device_util.h"

/*
  `only`: part of the names of the kernels; `widths`: "32,128"; `row_major`: the same for blocks of floats, row-major, or NULL, with cuSPARSE beside them; `reorder`: those with
  rows packed in an order, too; `cases`: "elasticity:64,rmat:18", NULL for
  a table of ten. Returns the exit code.
*/
int spmm_bench(const tc_backend *backend, int sm, const char *only, const char *widths, const char *row_major, int reorder, const char *cases);
