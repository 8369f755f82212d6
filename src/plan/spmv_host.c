#include "spmv_host.h"
#include "../format/host_rows.h"
#include <math.h>
#include <stdlib.h>

enum {
  LONG       = 256,  // entries from which on a row is summed by segments: docs/formats.md, "The order of the additions"
  SEGMENT    = 2048,
  GROUPS     = 4,    // of TC_LANES chains
  ENTRIES    = 4,    // in a row of one chain
  TOGETHER   = 3,    // rows that are summed up side by side, so that none waits for its own sums, ...
  MEAN       = 32,   // ... if the mean row has so many entries: as for dense blocks (spmm_host.c)
  MOST_ROWS  = 5,    // of a node
  MOST_NODES = 2,    // side by side
  BLOCK      = 8,    // entries of each row for which what comes ...
  AHEAD      = 512,  // ... so many entries later is fetched
  FAR        = 1000000, // entries that caches no longer hold, from which on rows one after the other fetch, too ...
  LINE       = 8,    // ... by lines of so many values, ...
  LINES      = 4,    // ... so many with each row ...
  SHORT      = 12,   // ... of so many entries in the mean, one with shorter ones
  FEW        = 2,    // rows for each entry from which on, in place and with the transpose, empty rows are passed over ...
  SKIPPED    = 16    // ... so many at a time
};

#ifdef __GNUC__
  #define APART __attribute__((noinline))
#else
  #define APART
#endif

typedef struct {
  const tc_csr_local *A;
  const double       *val;
  const int32_t      *perm, *node;
  int32_t             num_nodes;
  const uint8_t      *kind;
  double             *sums;
  const double       *x, *y;
  double             *z;
  int                 sign, far; // are there FAR entries?
} product;

#if defined(__x86_64__) && defined(__GNUC__)
  #define TARGET __attribute__((target("avx2,fma")))
  #define NAME(f) f##_fma
  #include "spmv_host_loops.h"
#endif
#define TARGET
#define NAME(f) f##_portable
#include "spmv_host_loops.h"

void tc_spmv_csr_host(const tc_csr_matrix *A, const double *x, const double *y, double *z, int sign)
{
  const product P = {A->rows, A->val, A->perm, A->node, A->num_nodes, A->kind, A->sums, x, y, z, sign, A->rows->nnz >= FAR};

#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    multiply_fma(&P);
    return;
  }
#endif
  multiply_portable(&P);
}

tc_status tc_spmv_csr_columns(const tc_csr_local *rows, uint8_t *kind, int *serves)
{
  int32_t *length = calloc((size_t)rows->num_cols + 1, sizeof *length);

  TC_CHECK(length != NULL, TC_ERR_MEMORY, "no host memory to count the entries of %d columns", rows->num_cols);
  *serves = 1;
  for (int64_t e = 0; e < rows->nnz; ++e) ++length[rows->col[e]];
  for (int32_t j = 0; j < rows->num_cols; ++j) {
    kind[j] = length[j] > 0;
    *serves = *serves && length[j] < LONG;
  }
  free(length);
  return TC_OK;
}
