/*
  Device kernels for dense blocks without PETSc: test_spmm_kernels [-small|-few] [-kernel part-of-its-name] [-bench N,N,... [-row-major N,N,... [-reorder]] [-case generator:size,file,...]] libaijtccusparse_cuda.so
  Every kernel of the backend's table on every test matrix, every number of columns, leading dimension and alignment: the bits must be those that kernels/tc_spmm.h
  defines, again and again, with guard words around C; in narrow precisions results must be within the bound, and the same again and again, straight from CSR those of the host. The survey of every test
  matrix must be the host's, byte for byte. -small leaves out what takes a memory checker too long. -bench times the kernels instead. Exit code 77: no usable
  device.
*/
#include "device_cases.h"
#include "narrow_check.h"
#include "narrow_device.h"
#include "spmm_bench.h"
#include "../src/plan/survey.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t widths[]       = {1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 64, 70, 100, 128};
static const int32_t small_widths[] = {1, 9, 32, 33, 128};
enum { NUM_WIDTHS = sizeof widths / sizeof widths[0], NUM_SMALL_WIDTHS = sizeof small_widths / sizeof small_widths[0], MAX_FAILURES = 20, MANY_COLUMNS = 20000 };

static int passed, failed, skipped, unsupported, small_only;

static void fact(int so, const char *kernel, const char *name, int32_t n, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so) printf("FAIL %s on %s, %d columns: %s\n", kernel, name, n, what);
}

static double *room(int64_t n)
{
  double *x = malloc(((size_t)n + 1) * sizeof *x);

  if (x == NULL) device_die("room", "no host memory");
  return x;
}

/* Uniform ones: normal ones took half of the test's time */
static double *numbers(int64_t n, uint64_t seed)
{
  double *x = room(n);

  tc_random_uniform(n, seed, x);
  return x;
}

/* Where the dense blocks of a product lie: leading dimensions and places that are even, odd, aligned or not */
typedef struct {
  int64_t ldb, ldc;
  int     shift_b, shift_c;
} layout;

static layout layout_of(const tc_matrix *A, int variant)
{
  const int64_t even_b = (int64_t)A->num_cols + A->num_cols % 2, even_c = (int64_t)A->num_rows + A->num_rows % 2;
  const layout  layouts[] = {{even_b, even_c, 0, 0}, {even_b + 1, even_c + 1, 0, 0}, {even_b, even_c + 2, 1, 1}, {even_b + 3, even_c, 1, 1}};

  return layouts[variant % 4];
}

/* The layout for the transpose of B: its columns have n numbers and a gap, even or odd */
static layout transposed_layout(const tc_matrix *A, int32_t n, int gap, int variant)
{
  static const int gaps[] = {0, 1, 4, 7};
  layout           L      = layout_of(A, variant);

  L.ldb = n + gaps[gap % 4];
  return L;
}

/* B [ldb, n]: rows that no entry of A refers to may be anything */
static double *dense_input(const tc_matrix *A, int32_t n, int64_t ldb)
{
  double        *b    = numbers(n * ldb, 3);
  unsigned char *used = calloc((size_t)ldb + 1, 1);

  if (used == NULL) device_die("dense_input", "no host memory");
  for (int64_t e = 0; e < A->nnz; ++e) used[A->col[e]] = 1;
  for (int64_t i = 0; i < n * ldb; ++i) {
    if (!used[i % ldb]) b[i] = NAN;
  }
  free(used);
  return b;
}

/* The same numbers the other way round, [ldb, num_cols of A], with NaN in the gaps */
static double *transposed_input(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int64_t ldb_t)
{
  double *b_t = numbers(A->num_cols * ldb_t, 11);

  for (int64_t i = 0; i < A->num_cols * ldb_t; ++i) b_t[i] = i % ldb_t < n ? b[i / ldb_t + i % ldb_t * ldb] : NAN;
  return b_t;
}

/* C [ldc, n] before the product: NaN where nothing may be read from */
static double *dense_output(const tc_matrix *A, int32_t n, int64_t ldc, int add)
{
  double *c = numbers(n * ldc, 5);

  for (int64_t i = 0; i < n * ldc; ++i) {
    if (!add || i % ldc >= A->num_rows) c[i] = NAN;
  }
  return c;
}

static void explain(const layout *L, int add, const double *result, const double *expected, int64_t i)
{
  printf("element (%lld, %lld) is %a, expected %a; add %d, ldb %lld, ldc %lld, shifts %d %d\n", (long long)(i % L->ldc), (long long)(i / L->ldc), result[i], expected[i], add, (long long)L->ldb, (long long)L->ldc, L->shift_b, L->shift_c);
}

/* C = A B or C += A B for one number of columns, `repeats` times, B as it is or transposed. `narrow`: what must come out in a narrow precision, NULL in double precision. */
static void check_product(const device_matrix *M, const tc_spmm_kernel *kernel, const narrow_expected *narrow, const char *name, const tc_matrix *A, int32_t n, int add, int b_transposed, const layout *L, int repeats)
{
  const tc_backend *backend = M->backend;
  const int64_t     ldb     = b_transposed ? A->num_cols : L->ldb; // of b
  double           *b = narrow ? narrow_input(narrow, n, ldb) : dense_input(A, n, ldb), *b_t = b_transposed ? transposed_input(A, n, b, ldb, L->ldb) : NULL, *c = dense_output(A, n, L->ldc, add), *expected = room(n * L->ldc);
  device_array      db = device_new(backend, L->ldb * (b_t ? A->num_cols : n), L->shift_b, b_t ? b_t : b), dc = device_new(backend, n * L->ldc, L->shift_c, c);
  tc_spmm_args      args = {n, db.local, L->ldb, dc.local, L->ldc, add, NULL, b_transposed, 0, 0};
  device_array      scratch = device_scratch(M, kernel, &args);
  double           *result = room(n * L->ldc), *left = room(scratch.n);
  const int         defined = !narrow || strcmp(kernel->format, "csr") == 0; // to the bit
  int               same = 1, whole = 1;

  memcpy(expected, c, (size_t)n * (size_t)L->ldc * sizeof *c);
  if (!narrow) tc_canonical_spmm(A, n, b, ldb, add, expected, L->ldc);
  else if (defined) narrow_defined_product(narrow, n, b, ldb, add, expected, L->ldc);
  for (int r = 0; r < repeats && same && whole; ++r) {
    const tc_status status = kernel->multiply(M->view.bytes, &args, NULL);

    if (status == TC_ERR_UNSUPPORTED) {
      ++unsupported;
      break;
    }
    device_check(backend, status, kernel->name);
    whole = device_get(&dc, result) && device_get(&scratch, left);
    if (narrow && r == 0) same = narrow_is_right(narrow, n, add ? c : NULL, result, L->ldc, 0x1p-53);
    if (!defined && r == 0) memcpy(expected, result, (size_t)n * (size_t)L->ldc * sizeof *result);
    if (tc_first_different(n * L->ldc, result, expected) < n * L->ldc) {
      same = 0;
      explain(L, add, result, expected, tc_first_different(n * L->ldc, result, expected));
    }
    device_set(&dc, c);
  }
  fact(same, kernel->name, name, n, b_transposed ? (add ? "C += A B, B transposed" : "C = A B, B transposed") : add ? "C += A B" : "C = A B");
  fact(whole, kernel->name, name, n, "nothing written outside");
  device_free(&db);
  device_free(&dc);
  device_free(&scratch);
  free(b);
  free(b_t);
  free(c);
  free(expected);
  free(result);
  free(left);
}

/*
  Matrices large enough for what kernels do where there is work for a whole device, up to 150 multiprocessors; with rows of 0 to 60 entries also for few columns, with 0 to
  300 for many. And a row of more segments than are added up at once.
*/
static void check_larger(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  static const struct {
    const char *name;
    int32_t     size, widths[6]; // 0: no more
    const char *small;           // format whose kernels have it in small runs, too, but for the narrow ones of CSR; NULL: none
    int         alone;           // and others do not have it at all
  } larger[] = {
    {"stencil27",  28,    {40, 64, 100, 128, 8, 16}, NULL, 0},
    {"elasticity", 18,    {40, 64, 100, 128, 8, 16}, NULL, 0},
    {"elasticity", 19,    {8, 3, 40, 9, 16, 128},    NULL, 0}, // columns of B do not begin at whole sectors
    {"like_pwtk",  30011, {8, 40, 72, 128, 5, 16},   NULL, 0}, // clusters of 8 windows, three and more for each multiprocessor, with 72 columns two to a block, with 128 one; those of the three above have 16, 12 and 12
    {"stencil7",   48,    {40, 64, 100, 128}, NULL, 0},
    {"four",       190,   {40, 64, 100, 128}, NULL, 0},
    {"webbase",    20011, {40, 64, 100, 128}, NULL, 0},
    {"short",      30011, {40, 64, 100, 128}, NULL, 0},
    {"short",      20011, {32, 33, 64, 80, 128}, "bittcf", 0}, // windows enough for as many columns to a warp as it takes, of few groups
    {"stencil7",   33,    {16, 32, 40, 64},      "bittcf", 0}, // the same of more groups, which are not full
    {"long1153",   97,    {40, 64, 100, 128}, NULL, 0},
    {"wave",       2001,  {40, 64, 100, 128}, NULL, 0}, // long rows whose windows lie together, and short ones
    {"ragged",     5003,  {8, 40, 64, 128},   NULL, 0},
    {"mixed",      40009, {1, 8, 16, 32},     NULL, 0},
    {"one_row",    40009, {3, 16, 64, 100},   NULL, 0},
    {"webbase",    160011, {3, 8, 16, 32, 64}, "csr", 1}, // streams of short rows beside segments
    {"four",       400,   {3, 8, 16, 32, 64}, "csr", 1}, // the same without
    {"rmat",       16,    {3, 8, 16, 32, 64}, "csr", 1}, // more segments and heavy rows than warps sum; streams with heavy rows between
  };

  for (size_t i = 0; i < sizeof larger / sizeof larger[0]; ++i) {
    const int       narrow = kernel->precision != TC_PRECISION_F64;
    const int       named  = larger[i].small && strcmp(kernel->format, larger[i].small) == 0 && !(narrow && strcmp(kernel->format, "csr") == 0);
    tc_matrix       A;
    device_matrix   M;
    narrow_expected N;

    if (!named && (small_only || larger[i].alone)) continue;
    if (tc_generate(tc_generator_find(larger[i].name), larger[i].size, 1, &A) != TC_OK) device_die(larger[i].name, tc_last_error());
    if (narrow) {
      narrow_spread_values(&A);
      N = narrow_expect(&A, kernel->precision, narrow_segment(kernel->format), 128, 7, 0);
    }
    M = device_pack(backend, kernel->format, kernel->precision, &A, 1);
    for (int w = 0; w < 6 && larger[i].widths[w] > 0 && failed < MAX_FAILURES; ++w) {
      const int32_t n = larger[i].widths[w];
      const layout  L = layout_of(&A, w);

      check_product(&M, kernel, narrow ? &N : NULL, larger[i].name, &A, n, w % 2, 0, &L, 2);
      if (kernel->b_transposed) {
        const layout T = transposed_layout(&A, n, (int)i, w);

        check_product(&M, kernel, NULL, larger[i].name, &A, n, w % 2, 1, &T, 2);
      }
    }
    if (narrow) narrow_forget(&N);
    device_unpack(&M);
    tc_matrix_free(&A);
  }
}

/*
  All numbers of columns; of the few two, in turn from matrix to matrix: `turn` is its number. Where a kernel has several ways, all of the few: of segments or short rows one for each width; of clusters
  some multiply parts of the columns, and where blocks are aligned they are others, so that each width has blocks that are and blocks that are not.
*/
static void check_kernel(const tc_backend *backend, const tc_spmm_kernel *kernel, const char *name, const tc_matrix *A, int turn, int repeats)
{
  const int       narrow = kernel->precision != TC_PRECISION_F64;
  device_matrix   M      = device_pack(backend, kernel->format, kernel->precision, A, 0);
  const int       ways   = strcmp(kernel->format, "csr") == 0 && (M.view.csr.num_long > 0 || (!narrow && A->nnz < 8 * (int64_t)A->num_rows));
  const int       parts  = !narrow && strstr(kernel->name, "cluster") != NULL;
  const int       few    = ways || parts ? NUM_SMALL_WIDTHS : 2;
  const int       codes  = strcmp(kernel->format, "hybrid") == 0;
  device_matrix   coded  = codes ? device_pack(backend, kernel->format, kernel->precision, A, 0) : M; // of 16 bits
  narrow_expected N;

  if (narrow) N = narrow_expect(A, kernel->precision, narrow_segment(kernel->format), 128, 1, 0);
  if (codes) device_collect(&coded, kernel->format);
  for (int i = 0; i < (small_only ? few : NUM_WIDTHS) && failed < MAX_FAILURES; ++i) {
    const int32_t n = small_only ? small_widths[(turn + 2 * i) % NUM_SMALL_WIDTHS] : widths[i];

    for (int add = small_only ? i % 2 : 0; add < (small_only ? i % 2 + 1 : 2); ++add) {
      const layout L = layout_of(A, small_only ? turn + i : i + 2 * add);

      check_product(&M, kernel, narrow ? &N : NULL, name, A, n, add, 0, &L, n == 9 || n == 32 ? repeats : 1);
      if (codes) check_product(&coded, kernel, NULL, name, A, n, add, 0, &L, 1);
      if (small_only && parts) {
        const layout other = layout_of(A, (turn + i) % 4 == 0);

        check_product(&M, kernel, NULL, name, A, n, add, 0, &other, 1);
      }
    }
    for (int gap = small_only ? (turn + i) % 4 : 0; kernel->b_transposed && gap < 4; gap += small_only ? 4 : 1) {
      const layout L = transposed_layout(A, n, gap, i + gap);

      check_product(&M, kernel, NULL, name, A, n, (i + gap / 2) % 2, 1, &L, 1);
    }
  }
  if (small_only && !narrow && strcmp(kernel->format, "csr") == 0) { // more than 4 columns: kernels that the few have none for
    const layout L = layout_of(A, turn);

    check_product(&M, kernel, NULL, name, A, 7, turn % 2, 0, &L, 1);
  }
  if (narrow) narrow_forget(&N);
  if (codes) device_unpack(&coded);
  device_unpack(&M);
}

/* A launch that fails is reported, and the next one works */
static void check_faults(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  tc_matrix     A;
  device_matrix M;
  device_array  b, c, scratch;
  tc_spmm_args  args;
  int           failures = 0, supported = 1;

  if (tc_generate(tc_generator_find("limits"), 65, 1, &A) != TC_OK) device_die("tc_generate", tc_last_error());
  M       = device_pack(backend, kernel->format, kernel->precision, &A, 0);
  b       = device_new(backend, 9 * (int64_t)A.num_cols, 0, NULL);
  c       = device_new(backend, 9 * (int64_t)A.num_rows, 0, NULL);
  args    = (tc_spmm_args){.n = 9, .b = b.local, .ldb = A.num_cols, .c = c.local, .ldc = A.num_rows};
  scratch = device_scratch(&M, kernel, &args);
  for (;; ++failures) {
    tc_status status;

    backend->fault_arm(TC_FAULT_LAUNCH, failures + 1);
    status = kernel->multiply(M.view.bytes, &args, NULL);
    backend->fault_arm(TC_FAULT_LAUNCH, 0);
    supported = status != TC_ERR_UNSUPPORTED;
    if (status != TC_ERR_DEVICE || failures == MAX_FAILURES) break;
  }
  device_check(backend, backend->synchronize(NULL), "synchronize");
  if (supported) fact(failures > 0 && failures < MAX_FAILURES, kernel->name, "limits", 9, "every failing launch is reported");
  device_free(&b);
  device_free(&c);
  device_free(&scratch);
  device_unpack(&M);
  tc_matrix_free(&A);
}

/* Bytes of the view's lists, on the host */
static int32_t *lists_of(const device_matrix *M, size_t *bytes)
{
  const tc_csr_view *V    = &M->view.csr;
  int32_t           *list = malloc(*bytes = V->long_row ? tc_survey_list_bytes(V->num_long, V->num_heavy) : 0);

  if (*bytes > 0) device_check(M->backend, M->backend->download(list, V->long_row, *bytes, NULL), "download");
  return list;
}

static int same_counts(const tc_survey *a, const tc_survey *b)
{
  return a->longest_row == b->longest_row && a->num_long == b->num_long && a->num_segments == b->num_segments && a->num_heavy == b->num_heavy && a->heavy_from == b->heavy_from && a->sampled == b->sampled && a->far == b->far &&
         a->in_windows == b->in_windows && a->columns == b->columns;
}

/* The survey of a matrix, with its lists, is what the host finds, byte for byte */
static void check_survey(const tc_backend *backend, const char *name, const tc_matrix *A)
{
  int32_t      *row_ptr = malloc(((size_t)A->num_rows + 1) * sizeof *row_ptr), *list[2];
  device_matrix M[2]    = {device_pack(backend, "csr", TC_PRECISION_F64, A, 0), device_pack(backend, "csr", TC_PRECISION_F64, A, 1)};
  tc_csr_view   rows    = M[0].view.csr;
  tc_survey     here, there;
  size_t        bytes[2];

  for (int32_t i = 0; i <= A->num_rows; ++i) row_ptr[i] = (int32_t)A->row_ptr[i];
  rows.row_ptr = row_ptr;
  rows.col     = A->col;
  if (tc_survey_host(&rows, &here) != TC_OK) device_die("survey", tc_last_error());
  device_check(backend, tc_survey_now(backend, &M[1].view.csr, &there, NULL), "survey");
  for (int m = 0; m < 2; ++m) list[m] = lists_of(&M[m], &bytes[m]);
  fact(bytes[0] == bytes[1] && (bytes[0] == 0 || memcmp(list[0], list[1], bytes[0]) == 0), "survey", name, 0, "the lists of rows");
  backend->release(there.list);
  free(here.list);
  fact(same_counts(&here, &there), "survey", name, 0, "the counts");
  for (int m = 0; m < 2; ++m) {
    free(list[m]);
    device_unpack(&M[m]);
  }
  free(row_ptr);
}

/* A survey that fails leaves nothing behind, and the next one works */
static void check_survey_faults(const tc_backend *backend)
{
  static const tc_fault_point points[] = {TC_FAULT_ALLOC, TC_FAULT_LAUNCH};
  tc_matrix                   A;
  device_matrix               M;

  if (tc_generate(tc_generator_find("limits"), 65, 1, &A) != TC_OK) device_die("tc_generate", tc_last_error());
  M = device_pack(backend, "csr", TC_PRECISION_F64, &A, 0);
  for (int p = 0; p < 2; ++p) {
    int       failures = 0, clean = 1;
    tc_status status;
    tc_survey survey;

    do {
      backend->fault_arm(points[p], failures + 1);
      status = tc_survey_now(backend, &M.view.csr, &survey, NULL);
      backend->fault_arm(points[p], 0);
      clean = clean && (status == TC_OK) == (survey.list != NULL);
    } while (status != TC_OK && ++failures < MAX_FAILURES);
    fact(status == TC_OK && failures > 1 && clean, "survey", "limits", 0, "no survey survives a fault");
    backend->release(survey.list);
  }
  device_unpack(&M);
  tc_matrix_free(&A);
}

static void check_surveys(const tc_backend *backend)
{
  device_case C;

  for (int i = 0; device_case_at(small_only, i, &C); ++i) {
    for (int larger = 0; larger < (small_only ? 1 : 2); ++larger) {
      tc_matrix A;

      if (tc_generate(C.generator, larger ? 3 * C.size : C.size, 1, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
      check_survey(backend, C.generator->name, &A);
      tc_matrix_free(&A);
    }
  }
  check_survey_faults(backend);
  printf("%s survey: %d facts\n", failed > 0 ? "FAIL" : "ok  ", passed);
}

static void check_all(const tc_backend *backend, const tc_spmm_kernel *kernel)
{
  device_case C;

  for (int i = 0; device_case_at(small_only, i, &C); ++i) {
    for (int seed = 1; seed <= (small_only || kernel->precision != TC_PRECISION_F64 ? 1 : 3) && failed < MAX_FAILURES; ++seed) {
      tc_matrix A;

      if (tc_generate(C.generator, C.size, (uint64_t)seed, &A) != TC_OK) device_die(C.generator->name, tc_last_error());
      if (kernel->precision != TC_PRECISION_F64) narrow_spread_values(&A);
      if (!small_only || A.num_cols < MANY_COLUMNS) check_kernel(backend, kernel, C.generator->name, &A, i, seed == 1 && !small_only ? 20 : 1);
      tc_matrix_free(&A);
    }
  }
  if (failed < MAX_FAILURES) check_larger(backend, kernel);
  if (kernel->precision != TC_PRECISION_F64) {
    const narrow_checks checks = {backend, kernel, fact};

    if (kernel->arithmetic == TC_ARITHMETIC_MMA) narrow_check_accumulator(&checks);
    if (kernel->precision == TC_PRECISION_TF32) narrow_check_row_major(&checks, small_only);
  }
  check_faults(backend, kernel);
}

int main(int argc, char **args)
{
  const char           *path = NULL, *only = "", *bench = NULL, *row_major = NULL, *cases = NULL;
  const tc_backend     *backend;
  const tc_spmm_kernel *kernels;
  int                   sm, num, reorder = 0;

  for (int i = 1; i < argc; ++i) {
    if (strcmp(args[i], "-small") == 0 || strcmp(args[i], "-few") == 0) small_only = 1;
    else if (strcmp(args[i], "-reorder") == 0) reorder = 1;
    else if (strcmp(args[i], "-kernel") == 0 && i + 1 < argc) only = args[++i];
    else if (strcmp(args[i], "-bench") == 0 && i + 1 < argc) bench = args[++i];
    else if (strcmp(args[i], "-row-major") == 0 && i + 1 < argc) row_major = args[++i];
    else if (strcmp(args[i], "-case") == 0 && i + 1 < argc) cases = args[++i];
    else path = args[i];
  }
  if (path == NULL) device_die("usage", "test_spmm_kernels [-small|-few] [-kernel part-of-its-name] [-bench N,N,... [-row-major N,N,... [-reorder]] [-case generator:size,file,...]] libaijtccusparse_cuda.so");
  backend = device_open("test_spmm_kernels", path, &sm);
  if (backend == NULL) return DEVICE_SKIPPED;
  if (small_only) device_repeats = 1;
  if (bench) return spmm_bench(backend, sm, only, bench, row_major, reorder, cases);
  if (strstr("survey", only)) check_surveys(backend);
  kernels = backend->spmm_kernels(&num);
  for (int k = 0; k < num; ++k) {
    const int before = passed;

    if (kernels[k].min_sm > sm || strstr(kernels[k].name, only) == NULL) continue;
    if (strcmp(kernels[k].format, "csr") != 0 && tc_format_find(kernels[k].format) == NULL) {
      printf("skip %s: nobody here makes format %s\n", kernels[k].name, kernels[k].format);
      skipped++;
      continue;
    }
    unsupported = 0;
    check_all(backend, &kernels[k]);
    printf("%s %s: %d facts, %d products that it does not support\n", failed > 0 ? "FAIL" : "ok  ", kernels[k].name, passed - before, unsupported);
  }
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (passed + failed + skipped == 0) device_die("-kernel", "no kernel of this device has that in its name");
  return failed > 0;
}
