/*
  What tests of products with dense blocks share: matrices by name, their views and keys, a backend that says it is a device.
*/
#pragma once
#include "../src/plan/spmm.h"
#include "test_util.h"
#include <stdlib.h>

/* The CSR view of a matrix; free row_ptr */
static inline tc_csr_view view_of(const tc_matrix *A)
{
  int32_t *row_ptr = malloc(((size_t)A->num_rows + 1) * sizeof *row_ptr);

  assert_non_null(row_ptr);
  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  return (tc_csr_view){.num_rows = A->num_rows, .num_cols = A->num_cols, .nnz = A->nnz, .row_ptr = row_ptr, .col = A->col, .val = A->val};
}

static inline tc_key key_of(const tc_matrix *A, int64_t pattern)
{
  return (tc_key){.id = 1, .pattern = pattern, .nnz = A->nnz};
}

static inline tc_matrix matrix_of(const char *name, int32_t size)
{
  tc_matrix A;

  ASSERT_OK(tc_generate(tc_generator_find(name), size, 1, &A));
  return A;
}

static inline tc_status device_probe(int *sm)
{
  *sm = 90;
  return TC_OK;
}
