/*
  Incomplete factors on the device, L U and L D L^T, against a loop over the rows on the host, bit for bit, in both scalars, with guard words: test_factor [-small|-few] libaijtccusparse_cuda.so. -small has three of the sizes,
  -few one, and neither the large one, for sanitizers. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tc_backend *backend;

/* A square matrix of a symmetric pattern: on the diagonal, and at places up to `reach` away, of which about one in `gap` is taken */
typedef struct {
  int32_t n, longest, *row_ptr, *col, *diagonal, *mirror;
  int64_t nnz;
  void   *val;
} matrix;

static int32_t find(const matrix *A, int32_t row, int32_t column)
{
  for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; ++k) {
    if (A->col[k] == column) return k;
  }
  return -1;
}

static void find_mirrors(matrix *A)
{
  for (int32_t i = 0; i < A->n; ++i) {
    for (int32_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) A->mirror[k] = find(A, A->col[k], i);
  }
}

/* Are there rows of a node, so many of them, that do not share their columns? */
static int32_t irregular(const matrix *A, int32_t node)
{
  for (int32_t i = 0; node > 1 && i < A->n; ++i) {
    const int32_t first = A->row_ptr[i], length = A->row_ptr[i + 1] - first;

    if (i % node != 0 && (first - A->row_ptr[i - 1] != length || memcmp(A->col + first, A->col + first - length, (size_t)length * sizeof *A->col) != 0)) return 1;
  }
  return 0;
}

static matrix matrix_new(tc_scalar scalar, int32_t n, int32_t reach, int32_t gap)
{
  const size_t most = (size_t)n * (size_t)(2 * reach + 1);
  matrix       A    = {.n = n, .row_ptr = bytes_new((size_t)(n + 1) * sizeof *A.row_ptr), .col = bytes_new(most * sizeof *A.col), .diagonal = bytes_new((size_t)n * sizeof *A.diagonal)};

  for (int32_t i = 0; i < n; ++i) {
    A.row_ptr[i] = (int32_t)A.nnz;
    for (int32_t j = i > reach ? i - reach : 0; j < n && j <= i + reach; ++j) {
      if (j == i) A.diagonal[i] = (int32_t)A.nnz;
      if (j == i || (int64_t)(i + j) * (int64_t)(i > j ? i - j : j - i) % gap == 0) A.col[A.nnz++] = j;
    }
    if ((int32_t)A.nnz - A.row_ptr[i] > A.longest) A.longest = (int32_t)A.nnz - A.row_ptr[i];
  }
  A.row_ptr[n] = (int32_t)A.nnz;
  A.val        = numbers_new(scalar, A.nnz);
  for (int64_t k = 0; k < A.nnz; ++k) set_number(scalar, A.val, k, k % 11 == 5 ? 0.0 : number_at(scalar, A.val, k) / 150000); // less than one; some entries are zeros
  for (int32_t i = 0; i < n; ++i) set_number(scalar, A.val, A.diagonal[i], 4.0 * (reach + 1) + 0.125 * (i % 9));
  A.mirror = bytes_new((size_t)A.nnz * sizeof *A.mirror);
  find_mirrors(&A);
  return A;
}

static void matrix_free(matrix *A)
{
  free(A->row_ptr);
  free(A->col);
  free(A->diagonal);
  free(A->mirror);
  free(A->val);
}

/* An operation of the scalar */
static double rounded(tc_scalar scalar, double number)
{
  return scalar == TC_SCALAR_F32 ? (double)(float)number : number;
}

/* The pivot, and whether there is something to say about it */
static double pivot_of(const tc_factor *F, double pivot, double others, int *trouble)
{
  const int    relative = F->rule == TC_PIVOT_SHIFTS_ALL || F->rule == TC_PIVOT_SHIFTS_SIGNED;
  const double least = relative ? rounded(F->scalar, rounded(F->scalar, F->zero) * others) : rounded(F->scalar, F->zero);

  if (!((F->rule == TC_PIVOT_SHIFTS_SIGNED ? pivot : fabs(pivot)) <= least)) return pivot;
  if (F->rule == TC_PIVOT_SHIFTS) return rounded(F->scalar, pivot + rounded(F->scalar, F->shift));
  *trouble = 1;
  return pivot;
}

/* L U by rows, as PETSc does it, or L D L^T of the upper triangle by the same rows; factor [nnz] */
static void factor_on_host(const matrix *A, const tc_factor *F, int symmetric, void *factor, int *trouble)
{
  const tc_scalar scalar = F->scalar;
  double         *row    = bytes_new((size_t)A->n * sizeof *row);

  *trouble = 0;
  for (int32_t i = 0; i < A->n; ++i) {
    const int32_t first = A->row_ptr[i], own = A->diagonal[i], last = symmetric ? own + 1 : A->row_ptr[i + 1];
    double        others = 0, pivot;

    for (int32_t j = 0; j < A->n; ++j) row[j] = NAN; // no place in this row
    for (int32_t k = first; k < last; ++k) row[A->col[k]] = number_at(scalar, A->val, symmetric ? A->mirror[k] : k);
    for (int32_t k = first; k < own; ++k) {
      const int32_t r     = A->col[k];
      const double  value = row[r], multiple = value == 0 ? value : rounded(scalar, value * rounded(scalar, 1.0 / number_at(scalar, factor, A->diagonal[r])));

      for (int32_t q = A->diagonal[r] + 1; value != 0 && q < A->row_ptr[r + 1]; ++q) {
        if (!isnan(row[A->col[q]]) && (!symmetric || A->col[q] < i)) row[A->col[q]] = rounded(scalar, row[A->col[q]] - rounded(scalar, (symmetric ? value : multiple) * number_at(scalar, factor, q)));
      }
      if (symmetric) {
        if (value != 0) row[i] = rounded(scalar, row[i] - rounded(scalar, value * multiple));
        others = rounded(scalar, others + fabs(value));
        set_number(scalar, factor, A->mirror[k], multiple);
      }
      row[r] = multiple;
    }
    for (int32_t k = first; !symmetric && k < last; ++k) others += k == own ? 0 : fabs(row[A->col[k]]);
    pivot  = pivot_of(F, row[i], others, trouble);
    row[i] = pivot;
    for (int32_t k = first; k < last; ++k) set_number(scalar, factor, k, row[A->col[k]]);
  }
  free(row);
}

/* What factors need of the device: the matrix there, its orders and facts */
typedef struct {
  device_bytes     row_ptr, col, val, from, order[2], diagonal, place, mirror, facts, trouble, factor;
  tc_csr_local     local;
  tc_sweep_pattern pattern;
} there;

static there there_new(tc_scalar scalar, const matrix *A)
{
  const size_t          ids = (size_t)A->n * sizeof(int32_t), entries = (size_t)A->nnz * sizeof(int32_t);
  const tc_sweep_facts none = {0, 0, 0};
  const int32_t         no   = 0;
  there             D    = {.local = {.num_rows = A->n, .num_cols = A->n, .nnz = A->nnz}};
  device_bytes          scratch = device_bytes_new(2 * ids, NULL);

  D.row_ptr       = device_bytes_new(ids + sizeof(int32_t), A->row_ptr);
  D.col           = device_bytes_new(entries, A->col);
  D.val           = device_bytes_new(bytes_of(scalar, A->nnz), A->val);
  D.diagonal      = device_bytes_new(ids, NULL);
  D.place         = device_bytes_new(entries, NULL);
  D.mirror        = device_bytes_new(entries, NULL);
  D.facts         = device_bytes_new(sizeof none, &none);
  D.trouble       = device_bytes_new(sizeof no, &no);
  D.factor        = device_bytes_new(bytes_of(scalar, A->nnz), NULL);
  D.local.row_ptr = (const int32_t *)(void *)D.row_ptr.local;
  D.local.col     = (const int32_t *)(void *)D.col.local;
  for (int t = 0; t < 2; ++t) {
    int32_t levels;

    D.order[t]         = device_bytes_new(ids, NULL);
    D.pattern.order[t] = (const int32_t *)(void *)D.order[t].local;
    device_check(backend, backend->order_rows(&D.local, t, INT32_MAX, (int32_t *)(void *)D.order[t].local, &levels, NULL), "order_rows");
  }
  D.pattern.node     = 1;
  D.pattern.longest  = A->longest;
  D.pattern.diagonal = (int32_t *)(void *)D.diagonal.local;
  D.pattern.place    = (int32_t *)(void *)D.place.local;
  device_check(backend, backend->sweep_pattern(&D.local, &D.pattern, (int32_t *)(void *)scratch.local, NULL), "sweep_pattern");
  device_bytes_are(&scratch, NULL);
  return D;
}

/* Nothing beside what was written, and what is read stays; frees all but the factor, and what the facts are compared with elsewhere */
static int there_is(there *D, const matrix *A)
{
  int right = device_bytes_are(&D->row_ptr, A->row_ptr);

  right = device_bytes_are(&D->col, A->col) && right;
  right = device_bytes_are(&D->val, A->val) && right;
  right = device_bytes_are(&D->diagonal, A->diagonal) && right;
  for (int t = 0; t < 2; ++t) right = device_bytes_are(&D->order[t], NULL) && right;
  return device_bytes_are(&D->place, NULL) && right;
}

/* The values elsewhere, the last one first, and zeros of which some are nowhere: which one each entry begins as, [nnz] */
static int32_t *put_elsewhere(matrix *A, tc_scalar scalar)
{
  int32_t *from = bytes_new((size_t)A->nnz * sizeof *from);

  for (int64_t k = 0; k < A->nnz; ++k) from[k] = number_at(scalar, A->val, k) == 0 && k % 2 == 0 ? -1 : (int32_t)(A->nnz - 1 - k);
  for (int64_t k = 0; k < A->nnz / 2; ++k) {
    const double first = number_at(scalar, A->val, k), last = number_at(scalar, A->val, A->nnz - 1 - k);

    set_number(scalar, A->val, k, last);
    set_number(scalar, A->val, A->nnz - 1 - k, first);
  }
  for (int64_t k = 0; k < A->nnz; ++k) {
    if (from[k] < 0) set_number(scalar, A->val, A->nnz - 1 - k, 77.0); // nobody's
  }
  return from;
}

/* One factor; `small` makes some pivots small; every other one has its values elsewhere */
static void check(tc_scalar scalar, int32_t n, int32_t reach, int32_t gap, int symmetric, tc_pivot_rule rule, int small)
{
  matrix          A        = matrix_new(scalar, n, reach, gap);
  void           *expected = bytes_new(bytes_of(scalar, A.nnz));
  tc_factor       F        = {.scalar = scalar, .rule = rule, .zero = 0x1p-20, .shift = 0x1p-10};
  tc_sweep_facts  facts    = {A.longest, 0, irregular(&A, 1 + n % 3)};
  int32_t         told, *from;
  int             trouble;
  const int       elsewhere = ((int)rule + small + symmetric) % 2;
  there           D;

  if (small) set_number(scalar, A.val, A.diagonal[n / 2], small == 1 ? 0x1p-30 : -1.0);
  factor_on_host(&A, &F, symmetric, expected, &trouble);
  from      = elsewhere ? put_elsewhere(&A, scalar) : NULL;
  D         = there_new(scalar, &A);
  D.from    = device_bytes_new(elsewhere ? (size_t)A.nnz * sizeof *from : 0, from);
  F.from    = elsewhere ? (const int32_t *)(void *)D.from.local : NULL;
  F.pattern = &D.pattern;
  F.val     = D.val.local;
  F.factor  = D.factor.local;
  F.trouble = (int32_t *)(void *)D.trouble.local;
  F.mirror  = symmetric ? (const int32_t *)(void *)D.mirror.local : NULL;
  D.local.row_group = 1 + n % 3;
  device_check(backend, backend->sweep_facts(&D.local, symmetric ? (int32_t *)(void *)D.mirror.local : NULL, (tc_sweep_facts *)(void *)D.facts.local, NULL), "sweep_facts");
  fact(device_bytes_are(&D.facts, &facts), "sweep_facts", scalar, n, reach, "the longest row, nothing is alone, and do rows share their columns?");
  device_check(backend, backend->factor(&D.local, &F, NULL), "factor");
  told = trouble;
  fact(device_bytes_are(&D.from, from), "factor", scalar, n, reach, "where entries begin stays");
  fact(device_bytes_are(&D.trouble, &told), "factor", scalar, n, reach, trouble ? "small pivots are told" : "no small pivots");
  fact(device_bytes_are(&D.factor, expected), "factor", scalar, n, reach, symmetric ? "L D L^T as the host" : "L U as the host");
  fact(device_bytes_are(&D.mirror, symmetric ? A.mirror : NULL), "sweep_facts", scalar, n, reach, "mirrors");
  fact(there_is(&D, &A), "factor", scalar, n, reach, "what is read stays");
  matrix_free(&A);
  free(expected);
  free(from);
}

/* Entries without others in the other triangle are found; without a mirror nobody looks */
static void check_lone(tc_scalar scalar, int32_t n)
{
  for (int looks = 0; looks < 2; ++looks) {
    matrix         A     = matrix_new(scalar, n, 1, 1);
    tc_sweep_facts facts = {3, looks, 0};
    there          D;

    A.col[A.row_ptr[n / 2 + 1] - 1] = n - 1; // in place of the column beside the diagonal
    find_mirrors(&A);
    D = there_new(scalar, &A);
    device_check(backend, backend->sweep_facts(&D.local, looks ? (int32_t *)(void *)D.mirror.local : NULL, (tc_sweep_facts *)(void *)D.facts.local, NULL), "sweep_facts");
    fact(device_bytes_are(&D.facts, &facts), "sweep_facts", scalar, n, 1, looks ? "some are alone" : "nobody asks");
    fact(device_bytes_are(&D.mirror, looks ? A.mirror : NULL), "sweep_facts", scalar, n, 1, "mirrors");
    fact(there_is(&D, &A), "sweep_facts", scalar, n, 1, "what is read stays");
    device_bytes_are(&D.trouble, NULL);
    device_bytes_are(&D.factor, NULL);
    matrix_free(&A);
  }
}

/* Values that hold the bits of what is not there yet: nobody waits for ever, and rows in front of them are as they have to be */
static void check_nan(tc_scalar scalar, int32_t n, int symmetric)
{
  matrix       A    = matrix_new(scalar, n, 2, 1);
  const size_t size = bytes_of(scalar, 1);
  void        *expected = bytes_new(bytes_of(scalar, A.nnz)), *found = bytes_new(bytes_of(scalar, A.nnz));
  tc_factor    F        = {.scalar = scalar, .rule = TC_PIVOT_STAYS};
  there    D;
  int          trouble, right;
  const int32_t at = A.row_ptr[n / 2];

  factor_on_host(&A, &F, symmetric, expected, &trouble);
  memset((char *)A.val + (size_t)A.diagonal[n / 2] * size, 0xff, size);
  D         = there_new(scalar, &A);
  F.pattern = &D.pattern;
  F.val     = D.val.local;
  F.factor  = D.factor.local;
  F.trouble = (int32_t *)(void *)D.trouble.local;
  F.mirror  = symmetric ? (const int32_t *)(void *)D.mirror.local : NULL;
  device_check(backend, backend->sweep_facts(&D.local, symmetric ? (int32_t *)(void *)D.mirror.local : NULL, (tc_sweep_facts *)(void *)D.facts.local, NULL), "sweep_facts");
  device_check(backend, backend->factor(&D.local, &F, NULL), "factor");
  device_check(backend, backend->download(found, D.factor.local, bytes_of(scalar, A.nnz), NULL), "download");
  right = isnan(number_at(scalar, found, A.diagonal[n / 2])) && isnan(number_at(scalar, found, A.diagonal[n - 1]));
  for (int32_t i = 0; i < n / 2; ++i) { // but for entries that rows behind them mirror
    for (int32_t k = A.row_ptr[i]; k < A.row_ptr[i + 1] && k < at; ++k) right = right && (A.col[k] >= n / 2 || memcmp((char *)found + (size_t)k * size, (char *)expected + (size_t)k * size, size) == 0);
  }
  right = there_is(&D, &A) && right;
  device_bytes_are(&D.mirror, NULL);
  device_bytes_are(&D.facts, NULL);
  device_bytes_are(&D.trouble, NULL);
  device_bytes_are(&D.factor, NULL);
  fact(right, "factor", scalar, n, 2, "not a number, and what depends on it");
  matrix_free(&A);
  free(expected);
  free(found);
}

int main(int argc, char **args)
{
  /* reach and gap: a diagonal alone; chains; several batches of entries; many rows in a level */
  static const int32_t nums[] = {33, 1, 129, 2, 31, 32, 127, 128, 700}, shapes[][2] = {{0, 1}, {1, 1}, {4, 1}, {9, 2}, {40, 10}, {300, 200}};
  size_t               num_sizes = sizeof nums / sizeof *nums;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0) num_sizes = 3;
    if (strcmp(args[i], "-few") == 0) num_sizes = 1;
  }
  backend = device_bytes_open("test_factor", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < num_sizes; ++i) {
      for (size_t j = 0; j < sizeof shapes / sizeof *shapes; ++j) {
        for (tc_pivot_rule rule = TC_PIVOT_STAYS; rule <= TC_PIVOT_SHIFTS_SIGNED; ++rule) {
          for (int small = 0; small < 3; ++small) {
            check(scalar, nums[i], shapes[j][0], shapes[j][1], 0, rule, small);
            if (rule != TC_PIVOT_SHIFTS) check(scalar, nums[i], shapes[j][0], shapes[j][1], 1, rule, small);
          }
        }
      }
      if (nums[i] > 8) check_lone(scalar, nums[i]);
      for (int symmetric = 0; symmetric < 2 && nums[i] > 8; ++symmetric) check_nan(scalar, nums[i], symmetric);
    }
    if (num_sizes < sizeof nums / sizeof *nums) continue;
    for (int symmetric = 0; symmetric < 2; ++symmetric) check(scalar, 12000, 40, 3, symmetric, TC_PIVOT_STAYS, 0); // more than the device has room for at once
  }
  return facts_end();
}
