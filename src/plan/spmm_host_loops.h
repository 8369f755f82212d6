/*
  The loops of the host products, compiled once for each instruction set: spmm_host.c defines TARGET, NAME, SUMS, ZERO, LOAD, STEP, ADD, MULTIPLY, STORE and, for all, KEEP, and
  includes this file. The order of the additions: tc_spmm.h. Sums of segments are added to +0.0, which leaves no -0.0.

  A panel holds WIDTH columns of a block row by row: panel[WIDTH * k + j] is entry (k, j).
*/

/*
  Columns to a panel. The last one also stands for those that there are none of, whose sums nobody reads: with a condition a compiler makes masked loads, and those of columns that are not there
  take hundreds of cycles each where nothing is mapped.
*/
TARGET static inline void NAME(pack)(int32_t rows, int32_t n, const double *b, int64_t ldb, double *restrict panel)
{
  const double *column[WIDTH];

  for (int32_t k = 0; n == WIDTH && k < rows; ++k) {
    for (int32_t j = 0; j < WIDTH; ++j) panel[WIDTH * (int64_t)k + j] = b[k + j * ldb];
  }
  for (int32_t j = 0; j < WIDTH; ++j) column[j] = b + (j < n ? j : n - 1) * ldb;
  for (int32_t k = 0; n < WIDTH && k < rows; ++k) {
    for (int32_t j = 0; j < WIDTH; ++j) panel[WIDTH * (int64_t)k + j] = column[j][k];
  }
}

TARGET static inline void NAME(unpack)(int32_t rows, int32_t n, const double *restrict panel, double *restrict c, int64_t ldc, int add)
{
  for (int32_t j = 0; j < n; ++j) {
    for (int32_t k = 0; k < rows; ++k) c[k + j * ldc] = add ? c[k + j * ldc] + panel[WIDTH * k + j] : panel[WIDTH * k + j];
  }
}

/* The chains of `num` entries, from first[r] on, of each of `rows` rows, a constant where this is called */
TARGET static inline __attribute__((always_inline)) void NAME(panel_chains)(const tc_csr_view *A, int rows, const int32_t first[], int32_t num, const double *panel, SUMS sum[])
{
  for (int32_t e = 0; e < num; ++e) {
    for (int r = 0; r < rows; ++r) sum[r] = STEP(sum[r], A->val[first[r] + e], panel + WIDTH * (int64_t)A->col[first[r] + e]);
  }
}

/* The sum of a segment to those before; `scales` NULL: none */
TARGET static inline __attribute__((always_inline)) SUMS NAME(add_segment)(SUMS total, SUMS sum, const panel_scales *scales)
{
  if (scales) sum = MULTIPLY(MULTIPLY(sum, LOAD(scales->first)), LOAD(scales->second));
  return ADD(total, sum);
}

TARGET static inline SUMS NAME(panel_row)(const tc_csr_view *A, int32_t row, const double *panel, const panel_scales *scales)
{
  const int32_t end   = A->row_ptr[row + 1];
  SUMS          total = ZERO();

  for (int32_t e = A->row_ptr[row], num; e < end; e += num) {
    SUMS sum[1] = {ZERO()};

    num = end - e < TC_SPMM_SEGMENT ? end - e : TC_SPMM_SEGMENT;
    NAME(panel_chains)(A, 1, &e, num, panel, sum);
    total = NAME(add_segment)(total, sum[0], scales);
  }
  return total;
}

/* Two rows, side by side as far as the shorter one goes, so that neither waits for its own sums */
TARGET static inline void NAME(panel_pair)(const tc_csr_view *A, int32_t row, const double *panel, const panel_scales *scales, double *to)
{
  const int32_t *row_ptr = A->row_ptr + row;
  const int32_t  length[2] = {row_ptr[1] - row_ptr[0], row_ptr[2] - row_ptr[1]}, shorter = length[0] < length[1] ? length[0] : length[1];
  SUMS           sum[2] = {ZERO(), ZERO()};

  if (length[0] > TC_SPMM_SEGMENT || length[1] > TC_SPMM_SEGMENT) {
    for (int r = 0; r < 2; ++r) STORE(to + WIDTH * r, NAME(panel_row)(A, row + r, panel, scales));
    return;
  }
  NAME(panel_chains)(A, 2, row_ptr, shorter, panel, sum);
  for (int r = 0; r < 2; ++r) {
    const int32_t rest = row_ptr[r] + shorter;

    NAME(panel_chains)(A, 1, &rest, length[r] - shorter, panel, sum + r);
    STORE(to + WIDTH * r, NAME(add_segment)(ZERO(), sum[r], scales));
  }
}

/* C for n <= WIDTH columns */
TARGET static void NAME(panel_product)(const tc_csr_view *A, int32_t n, const double *panel, const panel_scales *scales, double *c, int64_t ldc, int add)
{
  const int pairs = A->nnz >= PAIR_MEAN * (int64_t)A->num_rows && A->nnz < FAR;

  _Static_assert(TILE_ROWS % 2 == 0, "pairs of rows");
  for (int32_t first = 0; first < A->num_rows; first += TILE_ROWS) {
    const int32_t rows = A->num_rows - first < TILE_ROWS ? A->num_rows - first : TILE_ROWS;
    double        tile[TILE_ROWS * WIDTH];
    int32_t       r = 0;

    for (; pairs && r + 2 <= rows; r += 2) NAME(panel_pair)(A, first + r, panel, scales, tile + WIDTH * r);
    for (; r < rows; ++r) STORE(tile + WIDTH * r, NAME(panel_row)(A, first + r, panel, scales));
    NAME(unpack)(rows, n, tile, c + first, ldc, add);
  }
}

/*
  The chains of `num` entries, from first[r] on, of each of `rows` rows for n columns, TOGETHER and FEW at most; rows, n and `keep` are constants where this is called. `keep`: each
  column has a register, which spares additions at every entry; rows side by side need theirs for entries.
*/
TARGET static inline __attribute__((always_inline)) void NAME(chains)(const tc_csr_view *A, int rows, const int32_t first[], int32_t num, int n, int keep, const double *b, int64_t ldb, double sum[][FEW])
{
  const int32_t *col[TOGETHER];
  const double  *val[TOGETHER], *column[FEW];

  for (int j = 0; j < n; ++j) {
    column[j] = b + j * ldb;
    if (keep) KEEP(column[j]);
  }
  for (int r = 0; r < rows; ++r) {
    col[r] = A->col + first[r];
    val[r] = A->val + first[r];
  }
  for (int32_t e = 0; e < num; ++e) {
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < n; ++j) sum[r][j] = fma(val[r][e], rows == 1 ? column[j][col[r][e]] : b[col[r][e] + j * ldb], sum[r][j]);
    }
  }
}

TARGET static inline __attribute__((always_inline)) void NAME(put)(int n, const double sum[FEW], double *c, int64_t ldc, int add)
{
  for (int j = 0; j < n; ++j) c[j * ldc] = add ? c[j * ldc] + (sum[j] + 0.0) : sum[j] + 0.0;
}

/* The sums of a row of more than one segment for n columns */
TARGET static inline __attribute__((always_inline)) void NAME(segments)(const tc_csr_view *A, int32_t row, int n, const double *b, int64_t ldb, double total[FEW])
{
  const int32_t end = A->row_ptr[row + 1];

  for (int32_t e = A->row_ptr[row], num; e < end; e += num) {
    double sum[1][FEW] = {{0}};

    num = end - e < TC_SPMM_SEGMENT ? end - e : TC_SPMM_SEGMENT;
    NAME(chains)(A, 1, &e, num, n, 0, b, ldb, sum);
    for (int j = 0; j < n; ++j) total[j] += sum[0][j];
  }
}

/* Apart, so that what is called for every row stays small */
TARGET static __attribute__((noinline)) void NAME(long_row)(const tc_csr_view *A, int32_t row, int n, const double *b, int64_t ldb, double total[FEW])
{
  if (n == 4) NAME(segments)(A, row, 4, b, ldb, total);
  else if (n == 3) NAME(segments)(A, row, 3, b, ldb, total);
  else if (n == 2) NAME(segments)(A, row, 2, b, ldb, total);
  else NAME(segments)(A, row, 1, b, ldb, total);
}

/* An element of C for each of n columns of a row */
TARGET static inline __attribute__((always_inline)) void NAME(row_product)(const tc_csr_view *A, int32_t row, int n, const double *b, int64_t ldb, double *c, int64_t ldc, int add)
{
  const int32_t begin = A->row_ptr[row], end = A->row_ptr[row + 1];

  if (end - begin > TC_SPMM_SEGMENT) {
    double total[FEW] = {0};

    NAME(long_row)(A, row, n, b, ldb, total);
    NAME(put)(n, total, c + row, ldc, add);
  } else {
    double sum[1][FEW] = {{0}};

    NAME(chains)(A, 1, &begin, end - begin, n, n < FEW, b, ldb, sum); // there are not enough registers for all four
    NAME(put)(n, sum[0], c + row, ldc, add);
  }
}

/* C for n columns without a panel: a few rows side by side as far as the shortest of them goes, so that none waits for its own sums */
TARGET static inline __attribute__((always_inline)) void NAME(direct_product)(const tc_csr_view *A, int rows, int n, const double *b, int64_t ldb, double *c, int64_t ldc, int add)
{
  int32_t row = 0;

  for (; rows > 1 && row + rows <= A->num_rows; row += rows) {
    const int32_t *row_ptr            = A->row_ptr + row;
    double         sum[TOGETHER][FEW] = {{0}};
    int32_t        shortest = row_ptr[1] - row_ptr[0], longest = shortest;

    for (int r = 1; r < rows; ++r) {
      const int32_t length = row_ptr[r + 1] - row_ptr[r];

      shortest = length < shortest ? length : shortest;
      longest  = length > longest ? length : longest;
    }
    if (longest > TC_SPMM_SEGMENT) {
      for (int r = 0; r < rows; ++r) NAME(row_product)(A, row + r, n, b, ldb, c, ldc, add);
      continue;
    }
    NAME(chains)(A, rows, row_ptr, shortest, n, 0, b, ldb, sum);
    for (int r = 0; r < rows; ++r) {
      const int32_t rest = row_ptr[r] + shortest;

      NAME(chains)(A, 1, &rest, row_ptr[r + 1] - rest, n, 0, b, ldb, sum + r);
      NAME(put)(n, sum[r], c + row + r, ldc, add);
    }
  }
  for (; row < A->num_rows; ++row) NAME(row_product)(A, row, n, b, ldb, c, ldc, add);
}

/* For each a function of its own, whose loops have the registers to themselves */
#define DIRECT(rows, n) \
  TARGET static __attribute__((noinline)) void NAME(direct_##rows##_##n)(const tc_csr_view *A, const double *b, int64_t ldb, double *c, int64_t ldc, int add) \
  { \
    NAME(direct_product)(A, rows, n, b, ldb, c, ldc, add); \
  }
DIRECT(1, 4)
DIRECT(1, 3)
DIRECT(2, 2)
DIRECT(1, 2)
DIRECT(4, 1)
DIRECT(1, 1)
#undef DIRECT

TARGET static void NAME(product)(const tc_csr_view *A, const tc_spmm_args *args)
{
  const int long_rows = A->nnz >= LONG_MEAN * (int64_t)A->num_rows;

  for (int32_t j = 0, n; j < args->n; j += n) {
    const double *b = args->b + j * args->ldb;
    double       *c = args->c + j * args->ldc;

    n = panel_columns(A, args->n - j);
    if (n > 0) {
      NAME(pack)(A->num_cols, n, b, args->ldb, args->scratch);
      NAME(panel_product)(A, n, args->scratch, NULL, c, args->ldc, args->add);
      continue;
    }
    n = args->n - j < FEW ? args->n - j : FEW;
    if (n == 4) NAME(direct_1_4)(A, b, args->ldb, c, args->ldc, args->add);
    else if (n == 3) NAME(direct_1_3)(A, b, args->ldb, c, args->ldc, args->add);
    else if (n == 2 && long_rows) NAME(direct_2_2)(A, b, args->ldb, c, args->ldc, args->add);
    else if (n == 2) NAME(direct_1_2)(A, b, args->ldb, c, args->ldc, args->add);
    else if (long_rows) NAME(direct_4_1)(A, b, args->ldb, c, args->ldc, args->add);
    else NAME(direct_1_1)(A, b, args->ldb, c, args->ldc, args->add);
  }
}

TARGET static void NAME(narrow_product)(const tc_csr_view *A, const tc_spmm_args *args, tc_precision precision)
{
  for (int32_t j = 0; j < args->n; j += WIDTH) {
    const int32_t n = args->n - j < WIDTH ? args->n - j : WIDTH;
    panel_scales  scales;

    pack_narrow(precision, A->num_cols, n, args->b + j * args->ldb, args->ldb, args->scratch, &scales);
    NAME(panel_product)(A, n, args->scratch, &scales, args->c + j * args->ldc, args->ldc, args->add);
  }
}

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

#undef TARGET
#undef NAME
#undef SUMS
#undef ZERO
#undef LOAD
#undef STEP
#undef ADD
#undef MULTIPLY
#undef STORE
