/*
  tc_transpose - the transpose of a matrix, packed by a plan of its own, and how its values follow those of the matrix: they are gathered through a permutation.
  The order of the additions is that of the packed formats, applied to the rows of A^T, whose entries ascend by row of A.
*/
#pragma once
#include "plan.h"

typedef struct tc_transpose tc_transpose;

/* Nothing is allocated on the device before the first build. Errors: as tc_plan_create() */
tc_status tc_transpose_create(const tc_backend *backend, const tc_plan_options *options, tc_transpose **transpose);
void      tc_transpose_destroy(tc_transpose **transpose);

/*
  The plan of A^T: to check, to multiply with, and for what it tells. Its key is that of A. It is built and refilled only here.
*/
tc_plan *tc_transpose_plan(const tc_transpose *transpose);

/*
  New pattern: transposes the local pattern of A and packs that, where the backend lives if it can. `row_group` is that of the rows of A^T. Old arrays go first. The
  plan is unusable until tc_transpose_refill(). As tc_plan_build_local() it may wait for the device, but not for all that it enqueues. `keep_rows`: tc_transpose_rows() will be
  asked for.
*/
tc_status tc_transpose_build(tc_transpose *transpose, const tc_csr_local *A, int32_t row_group, int keep_rows, tc_stream stream);

/* Takes the values of A (CSR order, local) as tc_plan_refill() does */
tc_status tc_transpose_refill(tc_transpose *transpose, const void *csr_val, const tc_key *key, tc_verdict verdict, tc_stream stream);

/*
  A^T straight from CSR, local, with the values of the last refill, in the scalar of the options: for a product with many columns, which is not always best from the plan's format. The pattern, which is
  not kept otherwise, is made when first asked for, if the build has not kept it, and stays until the next build. May wait for the device then. Errors: TC_ERR_ARG (not built), as the backend's transpose().
*/
tc_status tc_transpose_rows(tc_transpose *transpose, const tc_csr_local *A, tc_csr_view *rows, tc_stream stream);
int       tc_transpose_has_rows(const tc_transpose *transpose); // is it there? Then of A only sizes are read

/* The same pattern, and where in A each entry is, for products with other values than those of the last refill */
tc_status tc_transpose_pattern(tc_transpose *transpose, const tc_csr_local *A, tc_csr_local *pattern, const int32_t **perm, tc_stream stream);

/*
  A^T packed in a second format, always the same one, in F64, with the values of the last refill: for a product with many columns, too. Packed when first asked for, and refilled
  when asked for after a refill; gone with the next build. `view` is the format's struct with local pointers. Waits for the device when it packs. Errors: as
  tc_transpose_rows() and tc_plan_create(); after one it is not there, and asking again before the next build is in vain (tc_transpose_lacks_second()) unless what was in its way has gone.
*/
tc_status tc_transpose_second(tc_transpose *transpose, const tc_csr_local *A, const char *format, tc_stream stream, const void **view);
int       tc_transpose_has_second(const tc_transpose *transpose); // is the pattern packed in it?
int       tc_transpose_lacks_second(const tc_transpose *transpose); // has packing it failed?
