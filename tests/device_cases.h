/*
  The matrices that the programs for a device go through.
*/
#pragma once
#include "../bench/generators.h"

typedef struct {
  const tc_generator *generator;
  int32_t             size;
} device_case;

/*
  The i-th of them, 0 after the last: every generator in its tiny size; or, `few`, what a memory checker has time for, still every path that a kernel has: rows of all classes, of one
  segment and several, and none; windows shared, split, and of few and many groups; values of every kind; tiles of both kinds; and nothing at all.
*/
int device_case_at(int few, int i, device_case *C);

/* Matrices whose products with vectors fill a device of 104 to 147 multiprocessors, as A100, H100 and H200 are, in each way in which kernels tell that */
int device_case_full(int i, device_case *C);
