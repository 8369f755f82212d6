/*
  What only kernels in narrow precisions are asked: how many bits tensor cores keep of a sum, and blocks of floats, row-major, in place.
*/
#pragma once
#include "device_util.h"

typedef struct {
  const tc_backend     *backend;
  const tc_spmm_kernel *kernel;
  void (*fact)(int so, const char *kernel, const char *name, int32_t n, const char *what);
} narrow_checks;

/* Prints what it finds; no sum may be off by more than the bound allows for an addition */
void narrow_check_accumulator(const narrow_checks *K);

/* Kernels that take args.row_major_f32 */
void narrow_check_row_major(const narrow_checks *K, int small);
