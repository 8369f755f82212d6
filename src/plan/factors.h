/*
  tc_factors - an incomplete factor of a matrix on a device, in the pattern of the matrix or in one with more entries (tc_factor.h): computed there, and solved with by sweeps over its rows.
*/
#pragma once
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tc_factors tc_factors;

/* A pattern that is not that of the matrix; all arrays are the host's */
typedef struct {
  int32_t        num_rows, row_group; // tc_csr_local
  int64_t        nnz;
  const int32_t *row_ptr, *col; // [num_rows + 1], [nnz]; columns ascend, the diagonal is full
  const int32_t *from;          // [nnz], which entry of the matrix each one begins as, -1: zero; of L D L^T the upper triangle's counts
  const int32_t *rows, *cols;   // [num_rows], which row and column of the matrix each one is; NULL, both: these are the same
} tc_factors_pattern;

/*
  For local rows of a square matrix with a full diagonal and columns that ascend, a copy of whose pattern is kept: L U, or L D L^T if `symmetric`. Waits for the device. *factors = NULL if rows have more levels in both
  directions than `most`, and with errors: TC_ERR_UNSUPPORTED, with words for the user, where a row is too long, and for L D L^T where the pattern is not symmetric; TC_ERR_MEMORY, TC_ERR_DEVICE
*/
tc_status tc_factors_create(const tc_backend *backend, const tc_csr_local *rows, int symmetric, tc_scalar scalar, int32_t most, tc_factors **factors, tc_stream stream);

/* Likewise in another pattern, which is copied */
tc_status tc_factors_create_filled(const tc_backend *backend, const tc_factors_pattern *pattern, int symmetric, tc_scalar scalar, int32_t most, tc_factors **factors, tc_stream stream);
void      tc_factors_destroy(tc_factors *factors); // NULL is fine

/* The numbers, from val, the entries of the matrix, local. *trouble: is there a pivot that is too small? Then the factor is not to be used. Waits for the device */
tc_status tc_factors_compute(tc_factors *factors, const void *val, tc_pivot_rule rule, double zero, double shift, int *trouble, tc_stream stream);

/*
  x = A^-1 b by the factor, or by its transpose; b and x [num_rows], local, which may be the same. Of L U the bits are those of a host that does one row after the other by operations of PETSc in their order. Enqueues, but for the
  first transpose of L U with a pattern, which is made then and waits. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE; x is undefined then
*/
tc_status tc_factors_solve(tc_factors *factors, int transposed, const void *b, void *x, tc_stream stream);

/* The same with n columns, of n vectors with leading dimensions, each the bits of its own solve; they may be the same. Where there is no memory for them together they come one after the other */
tc_status tc_factors_solve_block(tc_factors *factors, int transposed, int32_t n, const void *b, int64_t ldb, void *x, int64_t ldx, tc_stream stream);

/*
  Of L D L^T: x = L^-1 b, which is in the order of the factor, or, `backward`, x = L^-T b of such a b; b and x as above, not the same. And the pivots, D [num_rows], in that order. Both enqueue
*/
tc_status tc_factors_solve_half(tc_factors *factors, int backward, const void *b, void *x, tc_stream stream);
tc_status tc_factors_get_pivots(const tc_factors *factors, void *pivots, tc_stream stream);

int32_t tc_factors_levels(const tc_factors *factors, int backward); // of rows
int64_t tc_factors_nnz(const tc_factors *factors);

#ifdef __cplusplus
}
#endif
