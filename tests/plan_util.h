/*
  What tests of plans share: matrices, keys of what a plan holds, and products that are compared with the canonical ones. A failure is cmocka's.
*/
#pragma once
#include "test_util.h"
#include "../src/plan/plan.h"

tc_matrix matrix_of(const char *name, int32_t size);
tc_key    key_of(const tc_matrix *A, int64_t pattern, int64_t state);

/* What the glue does before a product */
tc_status bring_up_to_date(tc_plan *plan, const tc_matrix *A, const tc_key *key);

/* z = A x, and in place z = z - A x */
void expect_product(tc_plan *plan, const tc_matrix *A);
