/*
  What a product must be: the exact value within an a-priori bound for every row, and the very bits of the packed formats.
*/
#pragma once
#include "matrix.h"

/*
  ref[i] = (y + A x)[i], y NULL for A x, summed in long double; bound[i] is what |z[i] - ref[i]| cannot exceed in any order of summation in double precision:
  gamma_k (|y| + |A||x|)[i], gamma_k = k u / (1 - k u), u = 2^-53, k = entries of the row + `extra` (Higham, "Accuracy and Stability of Numerical Algorithms",
  sec. 3.1), plus what the long double sum itself may be off. `extra` counts roundings beyond those of the row: 1 for adding y, 1 for a row held in two parts.
  Both arrays have A->num_rows entries. For the transpose see tc_matrix_transpose().
*/
void tc_oracle_spmv(const tc_matrix *A, const double *x, const double *y, int extra, long double *ref, long double *bound);

/*
  Adds to the bounds of tc_oracle_spmv() what rounding the entries of A to that precision may cost: docs/formats.md, "Rounded values"
*/
void tc_oracle_add_rounding(const tc_matrix *A, const double *x, tc_precision precision, long double *bound);

/*
  The same for a column c = A b of a product with a dense block in a narrow precision, both sides rounded and sums in single precision: docs/formats.md, "Narrow
  products". At most `segment` entries of a row are added in single precision before their sum goes to double precision. ref and bound as above. b is finite, and the largest
  magnitudes of rows of A and of b are 0 or normal numbers, from 2^-1000 to 2^1000.
*/
void tc_oracle_narrow_spmm(const tc_matrix *A, const double *b, tc_precision precision, int32_t segment, long double *ref, long double *bound);

/* The largest |z - ref| / bound; 0 where both are 0, or both the same kind of non-finite, infinite for any other NaN or infinity in z, and for a number where there should be one of these */
double tc_error_over_bound(int64_t n, const double *z, const long double *ref, const long double *bound);

/* z = A x (y NULL) or y + A x straight from the rows, in the order of additions that docs/formats.md defines */
void tc_canonical_spmv(const tc_matrix *A, const double *x, const double *y, double *z);

/* C = A B, or C += A B with `add`, B and C column-major with n columns, in the order of additions that kernels/tc_spmm.h defines */
void tc_canonical_spmm(const tc_matrix *A, int32_t n, const double *b, int64_t ldb, int add, double *c, int64_t ldc);

/* z = A x (y NULL) or y + A x by the loop everybody would write: tells which rows must be infinite or not a number */
void tc_plain_spmv(const tc_matrix *A, const double *x, const double *y, double *z);

/* First i where a and b differ in a bit, two NaNs being the same; n if none */
int64_t tc_first_different(int64_t n, const double *a, const double *b);

/* First i where one is finite and the other not, or the two are different kinds of non-finite; n if none */
int64_t tc_first_other_class(int64_t n, const double *a, const double *b);
