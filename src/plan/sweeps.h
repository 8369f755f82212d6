/*
  tc_sweeps - is a device faster than the host with a forward and a backward sweep (tc_sweep.h)?
*/
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most levels of rows, of both sweeps, with which a device is taken to be faster, at most INT32_MAX. On the host two vectors of the device go there and one comes back. */
int32_t tc_sweeps_most_levels(int64_t num_rows, int64_t nnz);

#ifdef __cplusplus
}
#endif
