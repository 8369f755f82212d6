/*
  tc_levels - in which order the rows of a triangle can be solved for, many at a time: a row's level is one more than the highest of those that it refers to, the rows of a level refer to none of each other.
*/
#pragma once
#include "../../kernels/tc_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
  The rows of a square matrix by level, in natural order within one: order [num_rows]. Of its lower triangle or, `upper`, of its upper one, diagonals aside. *num_levels is 0 if there are no rows.
  Errors: TC_ERR_MEMORY
*/
tc_status tc_levels_order(const tc_csr *A, int upper, int32_t *order, int32_t *num_levels);

/* What a forward and a backward sweep are taken to need, on a device, of so many levels in both, and on the host, where two vectors of the device go there and one comes back */
double tc_levels_device_ms(int64_t num_rows, int64_t nnz, int64_t levels);
double tc_levels_host_ms(int64_t num_rows, int64_t nnz);

#ifdef __cplusplus
}
#endif
