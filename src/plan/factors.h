/*
  tc_factors - an incomplete factor of a matrix on a device, in the pattern of the matrix (tc_factor.h): computed there, and solved with by sweeps over its rows.
*/
#pragma once
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tc_factors tc_factors;

/*
  For local rows of a square matrix with a full diagonal and columns that ascend, a copy of whose pattern is kept: L U, or L D L^T if `symmetric`. Waits for the device. Errors: TC_ERR_UNSUPPORTED, with words for the user,
  where a row is too long; TC_ERR_MEMORY, TC_ERR_DEVICE
*/
tc_status tc_factors_create(const tc_backend *backend, const tc_csr_local *rows, int symmetric, tc_scalar scalar, tc_factors **factors, tc_stream stream);
void      tc_factors_destroy(tc_factors *factors); // NULL is fine

/* The numbers, from val [nnz], local. *trouble: TC_FACTOR_PIVOT and TC_FACTOR_LONE, and if it is not zero the factor is not to be used. Waits for the device */
tc_status tc_factors_compute(tc_factors *factors, const void *val, tc_pivot_rule rule, double zero, double shift, int *trouble, tc_stream stream);

/*
  x = A^-1 b by the factor, or by its transpose; b and x [num_rows], local, not the same. Of L U the bits are those of a host that does one row after the other by operations of PETSc in their order. Enqueues, but for the
  first transpose of L U with a pattern, which is made then and waits. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE; x is undefined then
*/
tc_status tc_factors_solve(tc_factors *factors, int transposed, const void *b, void *x, tc_stream stream);

int32_t tc_factors_levels(const tc_factors *factors, int backward); // of rows
int64_t tc_factors_nnz(const tc_factors *factors);

#ifdef __cplusplus
}
#endif
