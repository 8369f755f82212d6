/* The loops of A^T B, for spmm_host_loops.h, which includes this file for each instruction set */

/*
  Sums of A^T B. The entries of a column of A come in the order of the rows: what is summed up is the row of A^T. sum[W * col + j] is the present segment of a row of
  A^T, total[...] the segments before; `counted` says whether there are any, count[col] is the entries of the present one modulo TC_SPMM_SEGMENT. Here W is WIDTH, ...
*/
TARGET static inline __attribute__((always_inline)) void NAME(transposed_panel)(const tc_csr_view *A, int counted, int32_t n, const double *b, int64_t ldb, double *sum, double *total, uint8_t *count)
{
  for (int32_t first = 0; first < A->num_rows; first += TILE_ROWS) {
    const int32_t rows = A->num_rows - first < TILE_ROWS ? A->num_rows - first : TILE_ROWS;
    double        tile[TILE_ROWS * WIDTH];

    NAME(pack)(rows, n, b + first, ldb, tile);
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t e = A->row_ptr[first + r]; e < A->row_ptr[first + r + 1]; ++e) {
        const int64_t at = WIDTH * (int64_t)A->col[e];

        STORE(sum + at, STEP(LOAD(sum + at), A->val[e], tile + WIDTH * r));
        if (counted && ++count[A->col[e]] == 0) {
          STORE(total + at, ADD(LOAD(total + at), LOAD(sum + at)));
          STORE(sum + at, ZERO());
        }
      }
    }
  }
}

/* ... and here n, a constant where this is called */
TARGET static inline __attribute__((always_inline)) void NAME(transposed_few)(const tc_csr_view *A, int counted, int n, const double *b, int64_t ldb, double *sum, double *total, uint8_t *count)
{
  for (int32_t row = 0; row < A->num_rows; ++row) {
    double from[FEW];

    for (int j = 0; j < n; ++j) from[j] = b[row + j * ldb];
    for (int32_t e = A->row_ptr[row]; e < A->row_ptr[row + 1]; ++e) {
      double *to = sum + n * (int64_t)A->col[e];

      for (int j = 0; j < n; ++j) to[j] = fma(A->val[e], from[j], to[j]);
      if (counted && ++count[A->col[e]] == 0) {
        for (int j = 0; j < n; ++j) {
          total[n * (int64_t)A->col[e] + j] += to[j];
          to[j] = 0;
        }
      }
    }
  }
}

TARGET static void NAME(transposed_sums)(const tc_csr_view *A, int counted, int32_t n, const double *b, int64_t ldb, double *sum, double *total, uint8_t *count)
{
  if (n > FEW && counted) NAME(transposed_panel)(A, 1, n, b, ldb, sum, total, count);
  else if (n > FEW) NAME(transposed_panel)(A, 0, n, b, ldb, sum, total, count);
  else if (n == 4 && counted) NAME(transposed_few)(A, 1, 4, b, ldb, sum, total, count);
  else if (n == 4) NAME(transposed_few)(A, 0, 4, b, ldb, sum, total, count);
  else if (n == 3 && counted) NAME(transposed_few)(A, 1, 3, b, ldb, sum, total, count);
  else if (n == 3) NAME(transposed_few)(A, 0, 3, b, ldb, sum, total, count);
  else if (n == 2 && counted) NAME(transposed_few)(A, 1, 2, b, ldb, sum, total, count);
  else if (n == 2) NAME(transposed_few)(A, 0, 2, b, ldb, sum, total, count);
  else if (counted) NAME(transposed_few)(A, 1, 1, b, ldb, sum, total, count);
  else NAME(transposed_few)(A, 0, 1, b, ldb, sum, total, count);
}

/* C for n columns from the sums, `width` to a row, a few rows at a time, which stay in the cache meanwhile */
TARGET static void NAME(finish_transposed)(int32_t rows, int32_t n, int32_t width, const double *sum, const double *total, int counted, double *c, int64_t ldc, int add)
{
  for (int64_t first = 0; first < rows; first += CACHED_ROWS) {
    const int64_t end = rows - first < CACHED_ROWS ? rows : first + CACHED_ROWS;

    for (int32_t j = 0; j < n; ++j) {
      for (int64_t k = first; k < end; ++k) {
        const double result = (counted ? total[width * k + j] : 0.0) + sum[width * k + j];

        c[k + j * ldc] = add ? c[k + j * ldc] + result : result;
      }
    }
  }
}

TARGET static void NAME(transposed_product)(const tc_csr_transposed_view *T, const tc_spmm_args *args)
{
  const tc_csr_view *A       = &T->csr;
  const int          counted = T->longest_column >= TC_SPMM_SEGMENT;

  if (A->num_cols == 0) return; // and there is no memory
  for (int32_t first = 0, n; first < args->n; first += n) {
    double        *c     = args->c + first * args->ldc;
    const int32_t  width = args->n - first > FEW ? WIDTH : args->n - first;
    const size_t   sums  = (size_t)width * (size_t)A->num_cols;
    double        *sum   = args->scratch, *total = sum + sums;
    uint8_t       *count = (uint8_t *)(total + sums);

    n = args->n - first < width ? args->n - first : width;
    memset(sum, 0, sizeof *sum * sums);
    if (counted) memset(total, 0, sizeof *total * sums + (size_t)A->num_cols);
    NAME(transposed_sums)(A, counted, n, args->b + first * args->ldb, args->ldb, sum, total, count);
    NAME(finish_transposed)(A->num_cols, n, width, sum, total, counted, c, args->ldc, args->add);
  }
}
