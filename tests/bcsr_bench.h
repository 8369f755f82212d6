/*
  Times of the 16-bit kernel of the BCSR format on the synthetic matrices XdYs, with 2:4 tiles and without, against the library's kernels in double precision and
  cuSPARSE in fp16.
*/
#pragma once
#include "device_util.h"

/* `widths`: numbers of columns, e.g. "64,128"; `only`: part of the names of matrices; these of size x size, or half of that where they are half full. Returns the exit code */
int bcsr_bench(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *widths, const char *only, int32_t size);
