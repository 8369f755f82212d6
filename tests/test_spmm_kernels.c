/*
  Device kernels for dense blocks without PETSc: test_spmm_kernels [-small] [-kernel part-of-its-name] [-bench N,N,... [-case generator:size,...]] libaijtccusparse_cuda.so
  Every kernel of the backend's table on every test matrix, every number of columns, leading dimension and alignment: the bits must be those that kernels/tc_spmm.h
  defines, again and again, with guard words around C. -small leaves out what takes a memory checker too long. -bench times the kernels instead. Exit code 77: no usable
  device.
*/
#include "device_util.h"
#include "spmm_bench.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t widths[] = {1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 128};
enum { NUM_WIDTHS = sizeof widths / sizeof widths[0], MAX_FAILURES = 20 };

static int passed, failed, unsupported, small_only;

static void fact(int so, const char *kernel, const char *name, int32_t n, const char *what)
{
  if (so) ++passed;
  else ++failed;
  if (!so) printf("FAIL %s on %s, %d columns: %s\n", kernel, name, n, what);
}

static double *numbers(int64_t n, uint64_t seed)
{
  double *x = malloc(((size_t)n + 1) * sizeof *x);

  if (x == NULL) device_die("numbers", "no host memory");
  tc_random_normal(n, seed, x);
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
  const layout  layouts[] = {{even_b, even_c, 0, 0}, {even_b + 1, even_c + 1, 0, 0}, {even_b, even_c + 2, 1, 1}, {even_b + 3, even_c, 0, 1}};

  return layouts[variant % 4];
}

/* C = A B or C += A B for one number of columns, `repeats` times */
static void check_product(const device_matrix *M, const tc_spmm_kernel *kernel, const char *name, const tc_matrix *A, const unsigned char *used, int32_t n, int add, const layout *L, int repeats)
{
  const tc_backend *backend = M->backend;
  const int64_t     size_b = n * L->ldb + 1, size_c = n * L->ldc + 1;
  double           *b = numbers(size_b, 3), *c = numbers(size_c, 5), *result = numbers(size_c, 7);
  size_t            bytes = kernel->scratch ? kernel->scratch(M->view.bytes, n) : 0;
  device_array      db, dc, scratch;
  int               same = 1, whole = 1;

  for (int64_t i = 0; i < size_b; ++i) { // rows that nobody refers to may be anything
    if (i % L->ldb >= A->num_cols || !used[i % L->ldb]) b[i] = NAN;
  }
  for (int64_t i = 0; i < size_c; ++i) {
    if (!add || i % L->ldc >= A->num_rows) c[i] = NAN;
  }
  db      = device_new(backend, size_b, L->shift_b, b);
  dc      = device_new(backend, size_c, L->shift_c, c);
  scratch = device_new(backend, (int64_t)(bytes / sizeof(double)), 0, NULL);
  for (int r = 0; r < repeats && same && whole; ++r) {
    const tc_spmm_args args   = {n, db.local, L->ldb, dc.local, L->ldc, add, scratch.local};
    tc_status          status;

    if (r > 0) device_set(&dc, c);
    status = kernel->multiply(M->view.bytes, &args, NULL);
    if (status == TC_ERR_UNSUPPORTED) {
      ++unsupported;
      break;
    }
    device_check(backend, status, kernel->name);
    whole = device_get(&dc, result);
    if (r == 0) tc_canonical_spmm(A, n, b, L->ldb, add, c, L->ldc);
    same = tc_first_different(size_c, result, c) == size_c;
    if (!same) {
      const int64_t i = tc_first_different(size_c, result, c);

      printf("element (%lld, %lld) is %a, expected %a, add %d, ldc %lld, shift %d, repeat %d\n", (long long)(i % L->ldc), (long long)(i / L->ldc), result[i], c[i], add, (long long)L->ldc, L->shift_c, r);
    }
    if (repeats > 1) { // c was overwritten with what is expected
      double *again = numbers(size_c, 5);

      for (int64_t i = 0; i < size_c; ++i) {
        if (!add || i % L->ldc >= A->num_rows) again[i] = NAN;
      }
      device_set(&dc, again);
      if (r + 1 < repeats) {
        const tc_status repeated = kernel->multiply(M->view.bytes, &args, NULL);

        device_check(backend, repeated, kernel->name);
        whole = whole && device_get(&dc, result);
        same  = same && tc_first_different(size_c, result, c) == size_c;
      }
      free(again);
    }
  }
  fact(same, kernel->name, name, n, add ? "C += A B" : "C = A B");
  fact(whole && device_get(&scratch, result = realloc(result, (bytes / sizeof(double) + (size_t)size_c + 1) * sizeof *result)), kernel->name, name, n, "nothing written outside");
  device_free(&db);
  device_free(&dc);
  device_free(&scratch);
  free(b);
  free(c);
  free(result);
}
