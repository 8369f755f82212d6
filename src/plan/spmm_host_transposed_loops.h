/*
  The loops of A^T B, for spmm_host_loops.h, which includes this file for each instruction set. The entries of a column of A come in the order of the rows: what is summed up is the row of A^T.
  sum[W * col + j] is its present segment.
*/

/* Rows `first` to `end` of A. Here W is WIDTH, ... */
TARGET static void NAME(transposed_panel)(const tc_csr_view *A, int32_t first, int32_t end, int32_t n, const double *b, int64_t ldb, double *restrict sum)
{
  for (; first < end; first += TILE_ROWS) {
    const int32_t rows = end - first < TILE_ROWS ? end - first : TILE_ROWS;
    double        tile[TILE_ROWS * WIDTH];

    NAME(pack)(rows, n, b + first, ldb, tile);
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t e = A->row_ptr[first + r]; e < A->row_ptr[first + r + 1]; ++e) {
        double *const to = sum + WIDTH * (int64_t)A->col[e];

        STORE(to, STEP(LOAD(to), A->val[e], tile + WIDTH * r));
      }
    }
  }
}

/* ... and here n, a constant where this is called */
TARGET static inline __attribute__((always_inline)) void NAME(transposed_few)(const tc_csr_view *A, int32_t first, int32_t end, int n, const double *b, int64_t ldb, double *restrict sum)
{
  for (int32_t row = first; row < end; ++row) {
    double from[FEW];

    for (int j = 0; j < n; ++j) from[j] = b[row + j * ldb];
    for (int32_t e = A->row_ptr[row]; e < A->row_ptr[row + 1]; ++e) {
      double *const to  = sum + n * (int64_t)A->col[e];
      const double  val = A->val[e]; // once: the compiler does not know that it is not among the sums

      for (int j = 0; j < n; ++j) to[j] = fma(val, from[j], to[j]);
    }
  }
}

TARGET static void NAME(transposed_rows)(const tc_csr_view *A, int32_t first, int32_t end, int32_t n, const double *b, int64_t ldb, double *sum)
{
  if (n > FEW) NAME(transposed_panel)(A, first, end, n, b, ldb, sum);
  else if (n == 4) NAME(transposed_few)(A, first, end, 4, b, ldb, sum);
  else if (n == 3) NAME(transposed_few)(A, first, end, 3, b, ldb, sum);
  else if (n == 2) NAME(transposed_few)(A, first, end, 2, b, ldb, sum);
  else NAME(transposed_few)(A, first, end, 1, b, ldb, sum);
}

/* total[W * l + j] are the segments of a long column before the present one, `width` is W */
TARGET static void NAME(transposed_sums)(const tc_csr_transposed_view *T, int32_t n, int32_t width, const double *b, int64_t ldb, double *sum, double *total)
{
  int32_t row = 0;

  for (int32_t i = 0; i < T->num_ends;) {
    const int32_t first = row;

    row = T->end_row[i] + 1;
    NAME(transposed_rows)(&T->csr, first, row, n, b, ldb, sum);
    for (; i < T->num_ends && T->end_row[i] < row; ++i) {
      double *const to = total + width * (int64_t)T->end_of[i], *const from = sum + width * (int64_t)T->long_column[T->end_of[i]];

      for (int32_t j = 0; j < width; ++j) {
        to[j] += from[j];
        from[j] = 0;
      }
    }
  }
  NAME(transposed_rows)(&T->csr, row, T->csr.num_rows, n, b, ldb, sum);
  for (int32_t l = 0; l < T->num_long; ++l) {
    double *const to = sum + width * (int64_t)T->long_column[l];

    for (int32_t j = 0; j < width; ++j) to[j] = total[width * (int64_t)l + j] + to[j];
  }
}

/* C for n columns from the sums, `width` to a row, a few rows at a time, which stay in the cache meanwhile */
TARGET static void NAME(finish_transposed)(int32_t rows, int32_t n, int32_t width, const double *sum, double *c, int64_t ldc, int add)
{
  for (int64_t first = 0; first < rows; first += CACHED_ROWS) {
    const int64_t end = rows - first < CACHED_ROWS ? rows : first + CACHED_ROWS;

    for (int32_t j = 0; j < n; ++j) {
      for (int64_t k = first; k < end; ++k) {
        const double result = 0.0 + sum[width * k + j];

        c[k + j * ldc] = add ? c[k + j * ldc] + result : result;
      }
    }
  }
}

TARGET static void NAME(transposed_product)(const tc_csr_transposed_view *T, const tc_spmm_args *args)
{
  const tc_csr_view *A = &T->csr;

  if (A->num_cols == 0) return; // and there is no memory
  for (int32_t first = 0, n; first < args->n; first += n) {
    const int32_t width = args->n - first > FEW ? WIDTH : args->n - first;
    double       *sum = args->scratch, *total = sum + (size_t)width * (size_t)A->num_cols;

    n = args->n - first < width ? args->n - first : width;
    memset(sum, 0, sizeof *sum * (size_t)width * ((size_t)A->num_cols + (size_t)T->num_long));
    NAME(transposed_sums)(T, n, width, args->b + first * args->ldb, args->ldb, sum, total);
    NAME(finish_transposed)(A->num_cols, n, width, sum, args->c + first * args->ldc, args->ldc, args->add);
  }
}
