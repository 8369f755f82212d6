/*
  Reading Matrix Market files, plain (.mtx) or compressed with gzip (.mtx.gz). Format: https://math.nist.gov/MatrixMarket/formats.html
*/
#pragma once
#include "matrix.h"

/*
  Reads a sparse ("coordinate") matrix of field real, integer or pattern (all values 1) and any symmetry; what symmetry implies is filled in, entries at the
  same place are summed. On success the caller frees `A` with tc_matrix_free(); on failure `A` is zeroed and tc_last_error() names file, line and reason.
  Errors: TC_ERR_ARG (cannot be read, not Matrix Market, truncated, an index out of range), TC_ERR_UNSUPPORTED (complex, dense), TC_ERR_LIMIT, TC_ERR_MEMORY
*/
tc_status tc_matrix_market_read(const char *path, tc_matrix *A);
