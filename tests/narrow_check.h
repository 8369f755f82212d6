/*
  Products with dense blocks in narrow precisions: inputs of many magnitudes, and whether results are within the bound of docs/formats.md.
*/
#pragma once
#include "../bench/matrix.h"

/* What A B must be for the first `n` columns of a block B. Every `step`-th of them is looked at. */
typedef struct {
  const tc_matrix *A;
  tc_precision     precision;
  int32_t          n, step;
  double          *b;           // [num_cols, n]
  long double     *ref, *bound; // [num_rows, n]
} narrow_expected;

/* Rows of A far apart, entries of a row less so */
void narrow_spread_values(tc_matrix *A);

/* Entries of a row that kernels of that format add in single precision at most */
int32_t narrow_segment(const char *format);

/* `segment`: narrow_segment(). `floats`: all of B are floats of ordinary magnitudes, for kernels that read them in place; else columns are far apart, too */
narrow_expected narrow_expect(const tc_matrix *A, tc_precision precision, int32_t segment, int32_t n, int32_t step, int floats);
void            narrow_forget(narrow_expected *E);

/* C = A B or C += A B straight from CSR in the precision of E, the bits that a device must give, too */
void narrow_defined_product(const narrow_expected *E, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc);

/* The first n columns of B, column-major: NaN where nobody may look */
double *narrow_input(const narrow_expected *E, int32_t n, int64_t ldb);

/* Is c within the bound, c = A B, or before + A B if that is not NULL? `unit`: of the type in which c is, whose sums are rounded. If not, says where not. */
int narrow_is_right(const narrow_expected *E, int32_t n, const double *before, const double *c, int64_t ldc, double unit);
