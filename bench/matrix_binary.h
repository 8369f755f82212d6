/*
  Reading PETSc's binary matrix files (MatView() with a binary viewer, as -mat_view binary:file writes them), plain or compressed with gzip, without PETSc: MatLoad()
  would unpack a .gz file into the working directory, take options from a .info file beside it, and end the program where the file is bad.
*/
#pragma once
#include "matrix.h"

/*
  Reads the first object of the file, a sparse matrix of real numbers in double precision, indices of 32 or 64 bits; columns are sorted, entries at the same place summed.
  On success the caller frees `A` with tc_matrix_free(); on failure `A` is zeroed and tc_last_error() names file and reason.
  Errors: TC_ERR_ARG (cannot be read, not a matrix, truncated, an index out of range), TC_ERR_UNSUPPORTED (complex, single precision, dense), TC_ERR_LIMIT, TC_ERR_MEMORY
*/
tc_status tc_matrix_binary_read(const char *path, tc_matrix *A);

/* A file of either format, told by its first bytes: this one, otherwise Matrix Market (matrix_market.h) */
tc_status tc_matrix_file_read(const char *path, tc_matrix *A);
