/*
  The loops of the host products, compiled once for each instruction set: spmm_host.c defines TARGET, NAME, SUMS, ZERO, LOAD, STEP, ADD, MULTIPLY, STORE and, for all, KEEP,
  and includes this file. The order of the additions: tc_spmm.h. Sums of segments are added to +0.0, which leaves no -0.0.

  A panel holds WIDTH columns of a block row by row: panel[stride * k + j] is entry (k, j). What is packed has a stride of WIDTH, a constant where it comes from; the transpose of a block is its own panel.
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

/* Fetches what of `rows` rows side by side comes AHEAD entries behind entry `at` of them all, for the next BLOCK entries of each */
TARGET static inline __attribute__((always_inline)) void NAME(fetch)(const int32_t *col, const double *val, int32_t at, int rows)
{
  for (int i = 0; i < BLOCK * rows; i += 8) TC_FETCH(val + at + AHEAD + i);
  for (int i = 0; i < BLOCK * rows; i += 16) TC_FETCH(col + at + AHEAD + i);
}

/* Entries `from` to `to`, counted from first[r], of each of `rows` rows, a constant where this is called */
TARGET static inline __attribute__((always_inline)) void NAME(panel_steps)(const tc_csr_view *A, int rows, const int32_t first[], int32_t from, int32_t to, const double *panel, int64_t stride, SUMS sum[])
{
  for (int32_t e = from; e < to; ++e) {
    for (int r = 0; r < rows; ++r) sum[r] = STEP(sum[r], A->val[first[r] + e], panel + stride * A->col[first[r] + e]);
  }
}

/* The chains of `num` entries of each; of more than one row what comes later is fetched ahead, see chains() */
TARGET static inline __attribute__((always_inline)) void NAME(panel_chains)(const tc_csr_view *A, int rows, const int32_t first[], int32_t num, const double *panel, int64_t stride, SUMS sum[])
{
  if (rows == 1) NAME(panel_steps)(A, 1, first, 0, num, panel, stride, sum);
  for (int32_t e = 0, end; rows > 1 && e < num; e = end) {
    end = num - e < BLOCK ? num : e + BLOCK;
    NAME(fetch)(A->col + first[0], A->val + first[0], rows * e, rows);
    NAME(panel_steps)(A, rows, first, e, end, panel, stride, sum);
  }
}

/* The sum of a segment to those before; `scales` NULL: none */
TARGET static inline __attribute__((always_inline)) SUMS NAME(add_segment)(SUMS total, SUMS sum, const panel_scales *scales)
{
  if (scales) sum = MULTIPLY(MULTIPLY(sum, LOAD(scales->first)), LOAD(scales->second));
  return ADD(total, sum);
}

TARGET static inline __attribute__((always_inline)) SUMS NAME(panel_row)(const tc_csr_view *A, int32_t row, const double *panel, int64_t stride, const panel_scales *scales)
{
  const int32_t end   = A->row_ptr[row + 1];
  SUMS          total = ZERO();

  for (int32_t e = A->row_ptr[row], num; e < end; e += num) {
    SUMS sum[1] = {ZERO()};

    num = end - e < TC_SPMM_SEGMENT ? end - e : TC_SPMM_SEGMENT;
    NAME(panel_chains)(A, 1, &e, num, panel, stride, sum);
    total = NAME(add_segment)(total, sum[0], scales);
  }
  return total;
}

/* Two rows, side by side as far as the shorter one goes, so that neither waits for its own sums */
TARGET static inline __attribute__((always_inline)) void NAME(panel_pair)(const tc_csr_view *A, int32_t row, const double *panel, int64_t stride, const panel_scales *scales, double *to)
{
  const int32_t *row_ptr = A->row_ptr + row;
  const int32_t  length[2] = {row_ptr[1] - row_ptr[0], row_ptr[2] - row_ptr[1]}, shorter = length[0] < length[1] ? length[0] : length[1];
  SUMS           sum[2] = {ZERO(), ZERO()};

  if (length[0] > TC_SPMM_SEGMENT || length[1] > TC_SPMM_SEGMENT) {
    for (int r = 0; r < 2; ++r) STORE(to + WIDTH * r, NAME(panel_row)(A, row + r, panel, stride, scales));
    return;
  }
  NAME(panel_chains)(A, 2, row_ptr, shorter, panel, stride, sum);
  for (int r = 0; r < 2; ++r) {
    const int32_t rest = row_ptr[r] + shorter;

    NAME(panel_chains)(A, 1, &rest, length[r] - shorter, panel, stride, sum + r);
    STORE(to + WIDTH * r, NAME(add_segment)(ZERO(), sum[r], scales));
  }
}

/* C for n <= WIDTH columns */
TARGET static inline __attribute__((always_inline)) void NAME(panel_rows)(const tc_csr_view *A, int32_t n, const double *panel, int64_t stride, const panel_scales *scales, double *c, int64_t ldc, int add)
{
  const int pairs = A->nnz >= PAIR_MEAN * (int64_t)A->num_rows;

  _Static_assert(TILE_ROWS % 2 == 0, "pairs of rows");
  for (int32_t first = 0; first < A->num_rows; first += TILE_ROWS) {
    const int32_t rows = A->num_rows - first < TILE_ROWS ? A->num_rows - first : TILE_ROWS;
    double        tile[TILE_ROWS * WIDTH];
    int32_t       r = 0;

    if (add && A->row_ptr[first] == A->row_ptr[first + rows]) continue; // the off-diagonal block of a parallel matrix: most rows are empty
    for (; pairs && r + 2 <= rows; r += 2) NAME(panel_pair)(A, first + r, panel, stride, scales, tile + WIDTH * r);
    for (; r < rows; ++r) STORE(tile + WIDTH * r, NAME(panel_row)(A, first + r, panel, stride, scales));
    NAME(unpack)(rows, n, tile, c + first, ldc, add);
  }
}

TARGET static __attribute__((noinline)) void NAME(panel_product)(const tc_csr_view *A, int32_t n, const double *panel, const panel_scales *scales, double *c, int64_t ldc, int add)
{
  NAME(panel_rows)(A, n, panel, WIDTH, scales, c, ldc, add);
}

/* Entries `from` to `to` of each of `rows` rows for n columns of B, or of its transpose, if that is given; rows, n and `turned` are constants where this is called */
TARGET static inline __attribute__((always_inline)) void NAME(steps)(int rows, int n, int turned, const int32_t *const col[], const double *const val[], int32_t from, int32_t to, const double *b, int64_t ldb, double sum[][WIDTH])
{
  for (int32_t e = from; e < to; ++e) {
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < n; ++j) sum[r][j] = fma(val[r][e], b[turned ? ldb * col[r][e] + j : col[r][e] + j * ldb], sum[r][j]);
    }
  }
}

/*
  The chains of `num` entries, from first[r] on, of each of `rows` rows for n columns, TOGETHER and WIDTH at most; rows, n, `ahead` and `turned` are constants where this is called. `ahead`: entries are
  fetched ahead, in the order in which they are in memory; a processor that sees rows side by side does not see that order.
*/
TARGET static inline __attribute__((always_inline)) void NAME(chains)(const tc_csr_view *A, int rows, const int32_t first[], int32_t num, int n, int ahead, int turned, const double *b, int64_t ldb, double sum[][WIDTH])
{
  const int32_t *col[TOGETHER];
  const double  *val[TOGETHER];

  for (int r = 0; r < rows; ++r) {
    col[r] = A->col + first[r];
    val[r] = A->val + first[r];
  }
  if (!ahead) NAME(steps)(rows, n, turned, col, val, 0, num, b, ldb, sum);
  for (int32_t e = 0, end; ahead && e < num; e = end) {
    end = num - e < BLOCK ? num : e + BLOCK;
    NAME(fetch)(col[0], val[0], rows * e, rows);
    NAME(steps)(rows, n, turned, col, val, e, end, b, ldb, sum);
  }
}

TARGET static inline __attribute__((always_inline)) void NAME(put)(int n, const double sum[], const few_columns *F, int32_t row)
{
  for (int j = 0; j < n; ++j) {
    double *c = F->c + row + j * F->ldc;

    *c = F->add ? *c + (sum[j] + 0.0) : sum[j] + 0.0;
  }
}

/* A row of C for n columns, however long the row of A is, two segments side by side */
TARGET static inline __attribute__((always_inline)) void NAME(segments)(const few_columns *F, int32_t row, int n, int turned)
{
  const int32_t end          = F->A->row_ptr[row + 1];
  double        total[WIDTH] = {0};

  for (int32_t e = F->A->row_ptr[row], num; e < end; e += num) {
    const int two           = end - e > TC_SPMM_SEGMENT;
    double    sum[2][WIDTH] = {{0}};

    num = end - e < 2 * TC_SPMM_SEGMENT ? end - e : 2 * TC_SPMM_SEGMENT;
    if (two) {
      const int32_t first[2] = {e, e + TC_SPMM_SEGMENT}, both = num - TC_SPMM_SEGMENT, rest = e + both;

      NAME(chains)(F->A, 2, first, both, n, 1, turned, F->b, F->ldb, sum);
      NAME(chains)(F->A, 1, &rest, TC_SPMM_SEGMENT - both, n, 0, turned, F->b, F->ldb, sum);
    } else NAME(chains)(F->A, 1, &e, num, n, 0, turned, F->b, F->ldb, sum);
    for (int r = 0; r < 1 + two; ++r) {
      for (int j = 0; j < n; ++j) total[j] += sum[r][j];
    }
  }
  NAME(put)(n, total, F, row);
}

/* Apart, so that what is called for every row stays small */
TARGET static __attribute__((noinline)) void NAME(long_row)(const few_columns *F, int32_t row, int n)
{
  if (n == 4) NAME(segments)(F, row, 4, 0);
  else if (n == 3) NAME(segments)(F, row, 3, 0);
  else if (n == 2) NAME(segments)(F, row, 2, 0);
  else NAME(segments)(F, row, 1, 0);
}

TARGET static __attribute__((noinline)) void NAME(long_turned_row)(const few_columns *F, int32_t row, int n)
{
  if (n == 7) NAME(segments)(F, row, 7, 1);
  else if (n == 6) NAME(segments)(F, row, 6, 1);
  else if (n == 5) NAME(segments)(F, row, 5, 1);
  else if (n == 4) NAME(segments)(F, row, 4, 1);
  else if (n == 3) NAME(segments)(F, row, 3, 1);
  else if (n == 2) NAME(segments)(F, row, 2, 1);
  else NAME(segments)(F, row, 1, 1);
}

/*
  C for n columns and all rows from `row` on. The entry runs through, so that nothing but the end of a row decides where it ends: where the lengths of short rows cannot be foretold, that is
  found out up to a fifth sooner than by a row's own first entry and length.
*/
TARGET static inline __attribute__((always_inline)) void NAME(rows_product)(const few_columns *F, int32_t row, int n, int turned)
{
  const int32_t *col = F->A->col, *row_end = F->A->row_ptr + 1, num_rows = F->A->num_rows;
  const double  *val = F->A->val, *column[WIDTH];
  int32_t        e = F->A->row_ptr[row];

  for (int j = 0; !turned && j < n; ++j) {
    column[j] = F->b + j * F->ldb;
    KEEP(column[j]); // a register for each spares additions at every entry
  }
  for (; row < num_rows; ++row) {
    const int32_t end = row_end[row];
    double        sum[WIDTH] = {0};

    if (end - e > TC_SPMM_SEGMENT) {
      (turned ? NAME(long_turned_row) : NAME(long_row))(F, row, n);
      e = end;
      continue;
    }
    for (; e < end; ++e) {
      const double *from = turned ? F->b + F->ldb * col[e] : NULL;

      for (int j = 0; j < n; ++j) sum[j] = fma(val[e], turned ? from[j] : column[j][col[e]], sum[j]);
    }
    NAME(put)(n, sum, F, row);
  }
}

/*
  C for WIDTH columns and all rows, which are short. As for fewer, but what the columns of B are apart is in registers in place of their addresses, for which there are not enough: times 1, 2 and 4
  a processor multiplies it in the address.
*/
TARGET static __attribute__((noinline)) void NAME(direct_wide)(const few_columns *F)
{
  const few_columns others = {F->A, F->b + FEW * F->ldb, F->ldb, F->c + FEW * F->ldc, F->ldc, F->add};
  const int32_t    *col = F->A->col, *row_end = F->A->row_ptr + 1, num_rows = F->A->num_rows;
  const double     *val = F->A->val, *b = F->b;
  const int64_t     bytes = F->ldb * (int64_t)sizeof *b;
  int64_t           three = 3 * bytes, five = 5 * bytes, seven = 7 * bytes;
  int32_t           e = F->A->row_ptr[0];

  _Static_assert(WIDTH == 2 * FEW && WIDTH == 8, "the columns below");
  KEEP(three);
  KEEP(five);
  KEEP(seven);
  for (int32_t row = 0; row < num_rows; ++row) {
    const int32_t end = row_end[row];
    double        sum[WIDTH] = {0};

    if (end - e > TC_SPMM_SEGMENT) {
      NAME(long_row)(F, row, FEW);
      NAME(long_row)(&others, row, FEW);
      e = end;
      continue;
    }
    for (; e < end; ++e) {
      const int64_t offset[WIDTH] = {0, bytes, 2 * bytes, three, 4 * bytes, five, 2 * three, seven};
      const char   *from          = (const char *)(b + col[e]);

      KEEP(from);
      for (int j = 0; j < WIDTH; ++j) sum[j] = fma(val[e], *(const double *)(from + offset[j]), sum[j]);
    }
    NAME(put)(WIDTH, sum, F, row);
  }
}

/* C for n columns: a few rows side by side as far as the shortest of them goes, so that none waits for its own sums */
TARGET static inline __attribute__((always_inline)) void NAME(direct_product)(const few_columns *F, int rows, int n, int ahead, int turned)
{
  const tc_csr_view *A   = F->A;
  int32_t            row = 0;

  for (; rows > 1 && row + rows <= A->num_rows; row += rows) {
    const int32_t *row_ptr              = A->row_ptr + row;
    double         sum[TOGETHER][WIDTH] = {{0}};
    int32_t        shortest = row_ptr[1] - row_ptr[0], longest = shortest;

    for (int r = 1; r < rows; ++r) {
      const int32_t length = row_ptr[r + 1] - row_ptr[r];

      shortest = length < shortest ? length : shortest;
      longest  = length > longest ? length : longest;
    }
    if (longest > TC_SPMM_SEGMENT) {
      for (int r = 0; r < rows; ++r) (turned ? NAME(long_turned_row) : NAME(long_row))(F, row + r, n);
      continue;
    }
    NAME(chains)(A, rows, row_ptr, shortest, n, ahead, turned, F->b, F->ldb, sum);
    for (int r = 0; r < rows; ++r) {
      const int32_t rest = row_ptr[r] + shortest;

      NAME(chains)(A, 1, &rest, row_ptr[r + 1] - rest, n, 0, turned, F->b, F->ldb, sum + r);
      NAME(put)(n, sum[r], F, row + r);
    }
  }
  NAME(rows_product)(F, row, n, turned);
}

/* For each a function of its own, whose loops have the registers to themselves */
#define DIRECT(rows, n, ahead) \
  TARGET static __attribute__((noinline)) void NAME(direct_##rows##_##n##_##ahead)(const few_columns *F) \
  { \
    NAME(direct_product)(F, rows, n, ahead, 0); \
  }
DIRECT(1, 4, 0)
DIRECT(1, 3, 0)
DIRECT(2, 3, 1)
DIRECT(1, 2, 0)
DIRECT(3, 2, 1)
DIRECT(1, 1, 0)
DIRECT(3, 1, 1)
#undef DIRECT

/* C for n <= FEW columns */
TARGET static void NAME(direct)(const few_columns *F, int32_t n)
{
  const int side = F->A->nnz >= SIDE_MEAN * (int64_t)F->A->num_rows;

  if (n == 4) NAME(direct_1_4_0)(F);
  else if (n == 3 && side) NAME(direct_2_3_1)(F);
  else if (n == 3) NAME(direct_1_3_0)(F);
  else if (n == 2 && side) NAME(direct_3_2_1)(F);
  else if (n == 2) NAME(direct_1_2_0)(F);
  else if (side) NAME(direct_3_1_1)(F);
  else NAME(direct_1_1_0)(F);
}

#include "spmm_host_turned_loops.h"

TARGET static void NAME(product)(const tc_csr_view *A, const tc_spmm_args *args)
{
  const int wide = args->n >= WIDTH && panel_columns(A, args->n) == 0 && goes_wide(A);

  if (args->b_transposed && (args->n > 1 || args->ldb > 1)) {
    NAME(turned_product)(A, args);
    return;
  }
  for (int32_t j = 0, n; j < args->n; j += n) {
    const double *b = args->b + j * args->ldb;
    double       *c = args->c + j * args->ldc;

    n = panel_columns(A, args->n - j);
    if (n > 0) {
      NAME(pack)(A->num_cols, n, b, args->ldb, args->scratch);
      NAME(panel_product)(A, n, args->scratch, NULL, c, args->ldc, args->add);
    } else {
      const few_columns few = {A, b, args->ldb, c, args->ldc, args->add};

      n = wide && args->n - j >= WIDTH ? WIDTH : args->n - j < FEW ? args->n - j : FEW;
      if (n == WIDTH) NAME(direct_wide)(&few);
      else NAME(direct)(&few, n);
    }
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

#include "spmm_host_transposed_loops.h"

#undef TARGET
#undef NAME
#undef SUMS
#undef ZERO
#undef LOAD
#undef STEP
#undef ADD
#undef MULTIPLY
#undef STORE
