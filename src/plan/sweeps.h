/*
  tc_sweeps - what sweeps over the rows of a matrix on a device (tc_sweep.h) need, and whether that is faster there than on the host.
*/
#pragma once
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Orders, diagonals and places of a pattern */
typedef struct {
  const tc_backend *backend;
  void             *memory; // of the device, of all that follows; NULL: there is nothing
  tc_sweep_pattern  pattern;
  int32_t           levels[2]; // of rows, forward and backward
  int32_t           lone;      // tc_sweep_facts, if there is a mirror
} tc_sweep_orders;

/*
  Those of local rows of a square matrix with a full diagonal and columns that ascend, unless they have more levels in both directions than `most`: then nothing is there afterwards. rows.row_group of them are likely to
  share their columns, and go together if all do. mirror [nnz], local, may be NULL: see tc_backend.sweep_facts(). Waits for the device. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE, and nothing is there
*/
tc_status tc_sweep_orders_find(tc_sweep_orders *orders, const tc_backend *backend, const tc_csr_local *rows, int32_t most, int32_t *mirror, tc_stream stream);
void      tc_sweep_orders_forget(tc_sweep_orders *orders);

/* The most levels of rows, of both sweeps, with which a device is taken to be faster, at most INT32_MAX. On the host two vectors of the device go there and one comes back. row_group: tc_csr_local */
int32_t tc_sweeps_most_levels(int64_t num_rows, int64_t nnz, int32_t row_group);

/* Likewise of the sweep forward alone, of solves with an incomplete factor that has the pattern of the matrix; every tenth comes behind new numbers of the factor */
int32_t tc_factors_most_levels(int64_t num_rows, int64_t nnz, int32_t row_group);

/* Likewise of solves by cuSPARSE */
int32_t tc_factors_most_levels_cusparse(int64_t num_rows, int64_t nnz);

#ifdef __cplusplus
}
#endif
