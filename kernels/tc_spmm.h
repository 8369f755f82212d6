/*
  tc_spmm - products of a sparse matrix with a dense block, C = A B: what plan, backends and kernels share. The formats are those of tc_hybrid.h, tc_bittcf.h and tc_bcsr.h, and
  plain CSR, which needs no conversion.

  The order of the additions, the same for every kernel, every N and both backends: an element of C is summed as a row of a matrix-vector product if the row has
  fewer than 256 entries. A longer row is cut into segments of TC_SPMM_SEGMENT entries; each is summed by fma from 0 in the order of CSR, and the sums of the
  segments are added in ascending order, from 0. Last, +0.0 is added; with `add` the finished sum is added to what C held,
  but for rows without entries, where nothing need be added: C is to hold no -0.0.
  Kernels that multiply structural zeros of a tile say so: there a non-finite entry of B may reach other rows of its tile.

  Narrow precisions: rows (segments) of A and columns of B are divided by powers of two and rounded (tc_narrow.h), their products are added in single precision, and
  what comes out is scaled back, added to the other segments' and put into C in double precision. F32 takes three products of numbers in TF32 for one. There only a bound
  is defined, docs/formats.md: tensor cores add several products at once and cut off what is below the last bit, a host rounds each sum.

  Straight from CSR only B is rounded, in the same way. A is read as it is, products are added in double precision in the order above, and the sum of a segment is scaled
  back before it is added to the others: so the bits are defined, for every kernel and both backends. TF32 is served by F32 there.
*/
#pragma once
#include "tc_base.h"

enum {
  TC_SPMM_SEGMENT = 256, // part of the definition of the result's bits
  TC_SPMM_COLUMNS = 128, // columns of B that one launch handles at most: bounds the row-major scratch
  TC_SPMM_CHUNKS  = 8    // parts of a block's columns for which the segments of a long row are counted apart, at most
};

/*
  CSR where a backend keeps it. Long rows, of TC_SPMM_SEGMENT entries and more, and heavy ones, shorter but much longer than others, are listed for device kernels; the
  host product does without the lists.
*/
typedef struct {
  int32_t        num_rows, num_cols;
  int64_t        nnz;
  const int32_t *row_ptr, *col;          // [num_rows + 1], [nnz]
  const double  *val;                    // [nnz]
  int32_t        num_long, num_segments; // long rows, and their segments of TC_SPMM_SEGMENT entries
  const int32_t *long_row, *long_first;  // [num_long] row; [num_long + 1] first segment
  int32_t        num_heavy, heavy_from;  // heavy rows, and how many entries they have at least
  const int32_t *heavy_row;              // [num_heavy] row, longest first
  int32_t       *arrived;                // [num_long, TC_SPMM_CHUNKS] segments that a product has summed up: zeros before and after
} tc_csr_view;

/* The dense side, local, column-major: B [num_cols of A, n] or its transpose, C [num_rows of A, n], n <= TC_SPMM_COLUMNS per launch */
typedef struct {
  int32_t       n;
  const double *b;
  int64_t       ldb;
  double       *c;
  int64_t       ldc;
  int           add;     // C += A B
  double       *scratch; // tc_spmm_kernel.scratch() bytes, or NULL where that is 0
  int           b_transposed; // b is [n, num_cols of A], ldb >= n: only for kernels that take it
  /*
    b and c are arrays of floats, row-major, ldb and ldc their row strides, aligned to 16 bytes, n a multiple of 64 and as large as it likes, `add` 0, scratch only what
    the sums of segments take: TF32 alone takes it, to be compared with programs that have their blocks like that. B is not scaled; it is rounded to the nearest
    (tc_round_to_tf32()), but straight from CSR it is taken as it is, and A is rounded to single precision without a scale, too: an element of C is the chain of fused
    multiply-adds in single precision over a row, or segment, from 0 in the order of CSR, and the segments' sums are added in double precision before they are rounded.
  */
  int row_major_f32;
  int b_f32; // b is an array of floats, ldb its stride, all else is as it was: only for kernels that take it
} tc_spmm_args;

/* B where it is an array of floats */
static inline const float *tc_floats_of(const tc_spmm_args *args)
{
  return (const float *)(const void *)args->b;
}

/* One row of the table of kernels for dense blocks */
typedef struct {
  const char   *name; // name of the launcher
  const char   *format; // "csr": the view is a tc_csr_view
  tc_arithmetic arithmetic;
  tc_precision  precision;
  int           min_sm;
  /* NULL: it is there for what no other kernel of its format takes. Else: is it to be preferred for n columns? */
  int (*suits)(const void *view, int32_t n);
  size_t (*scratch)(const void *view, const tc_spmm_args *args); // bytes for that product, of whose arguments `scratch` itself, and whether C begins as it is, may come later
  /* Enqueues its launches and neither allocates nor synchronises */
  tc_status (*multiply)(const void *view, const tc_spmm_args *args, void *stream);
  int b_transposed; // takes the transpose of B
  int b_f32;        // takes B in single precision; what it multiplies is the same
} tc_spmm_kernel;
