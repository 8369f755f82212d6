/*
  Times of the kernels of the BCSR format on the synthetic matrices XdYs, with 2:4 tiles and without, against narrow BitTCF, the product from CSR in double precision and
  cuSPARSE in fp16.
*/
#pragma once
#include "device_util.h"

/* `widths`: numbers of columns, e.g. "64,128"; `only`: part of the names of matrices; these of size x size, or half of that where they are half full. Returns the exit code */
int bcsr_bench(const tc_backend *backend, int sm, const char *widths, const char *only, int32_t size);
