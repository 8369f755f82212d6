/*
  The arrays of the hybrid format against what kernels/tc_hybrid.h says of them, worked out anew from CSR: every byte of every array.
*/
#pragma once
#include "test_util.h"
#include "../kernels/tc_hybrid.h"

typedef struct {
  const test_case *C; // in which case: for messages
  const tc_matrix *A;
  const tc_hybrid *H;
  int32_t          row_group;  // as it must be stored
  int              collected;  // tc_hybrid_collect_host() has been called
  int64_t          val, index; // where the next piece must begin
  int64_t          index_kinds[TC_HYBRID_NUM_INDEX_KINDS], value_kinds[TC_HYBRID_NUM_VALUE_KINDS]; // pieces of each kind so far
} hybrid_checker;

/* Checks the view H of A, whose VALUE arrays held TEST_UNWRITTEN before the refill; fails the test if a byte is not as defined */
void hybrid_check_view(hybrid_checker *K);

/* Packs the matrix of the case and checks that, and again when its values have been collected; the result has the numbers of pieces before, of D16 afterwards */
hybrid_checker hybrid_check_packed(const test_case *C, int32_t row_group, tc_precision precision);
