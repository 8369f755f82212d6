/*
  Times of conversions and refreshes of the hybrid format, without PETSc, in the steady state: kernels are loaded and memory is with the pool. The host's clock, the
  device idle at both ends, as tcbench has it.
*/
#pragma once
#include "device_util.h"

/* `cases`: "elasticity:64,file.petsc.gz". Per case: milliseconds of a product, a build and a refill, and both in products. Returns the exit code. */
int conversion_bench(const tc_backend *backend, const char *cases);
