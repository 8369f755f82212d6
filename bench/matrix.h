/*
  tc_matrix - a sparse matrix with values in compressed sparse row form, in malloc'ed host memory. For the tests, the benchmark and the tutorials; no PETSc.
*/
#pragma once
#include "../kernels/tc_base.h"

typedef struct {
  int32_t  num_rows, num_cols;
  int64_t  nnz;
  int64_t *row_ptr; // [num_rows + 1]
  int32_t *col;     // [nnz], ascending within a row, no column twice
  double  *val;     // [nnz]
} tc_matrix;

/* Arrays of a matrix with room for `nnz` entries, row_ptr zeroed. Errors: TC_ERR_ARG, TC_ERR_MEMORY; nothing stays allocated then */
tc_status tc_matrix_create(int32_t num_rows, int32_t num_cols, int64_t nnz, tc_matrix *A);

/* Frees the arrays and zeroes the struct; a zeroed struct is fine */
void tc_matrix_free(tc_matrix *A);

/* The matrix of `nnz` triplets in any order, row and col zero based and in range (not checked); triplets at the same place are summed in the order given */
tc_status tc_matrix_from_triplets(int32_t num_rows, int32_t num_cols, int64_t nnz, const int32_t *row, const int32_t *col, const double *val, tc_matrix *A);

/* T = A^T. Errors: TC_ERR_MEMORY */
tc_status tc_matrix_transpose(const tc_matrix *A, tc_matrix *T);

/* The pattern, borrowing the arrays of `A` */
tc_csr tc_matrix_pattern(const tc_matrix *A);

/* Entries of the longest row */
int64_t tc_matrix_longest_row(const tc_matrix *A);
