/*
  tc_factor - incomplete factors of a square matrix in a given pattern, its own or one with more entries, straight from CSR. Plain C.

  L U = A where the pattern has entries, L with ones on its diagonal, which are not stored: ILU. Or L D L^T, of the upper triangle of A, where the pattern is symmetric: ICC. The factor is in the places of the
  entries of the pattern: L, what is on the diagonal of U, or D, and U, or L^T.
*/
#pragma once
#include "tc_sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a pivot that is not as large as it has to be; PETSc's MatFactorShiftType */
typedef enum {
  TC_PIVOT_STAYS,        // no larger than `zero`, in absolute terms: it is told
  TC_PIVOT_SHIFTS,       // that, and `shift` is added to it alone
  TC_PIVOT_SHIFTS_ALL,   // no larger than `zero` times the sum of what else is in the row: it is told, since all rows would have to be done again
  TC_PIVOT_SHIFTS_SIGNED // that, or not positive
} tc_pivot_rule;

enum {
  TC_FACTOR_LONGEST_ROW = 1024 // entries, of what can be factored
};

/* What it takes to compute a factor; all arrays local */
typedef struct {
  const tc_sweep_pattern *pattern;
  const int32_t          *mirror;  // [nnz], where the entry is that mirrors each one in the other triangle: L D L^T; NULL: L U
  tc_scalar               scalar;
  const void             *val;     // A
  const int32_t          *from;    // [nnz], which of val each entry begins as, -1: zero; NULL: val [nnz] has them in order
  void                   *factor;  // [nnz]
  int32_t                *trouble; // zero before; not afterwards if a pivot is not as large as it has to be, and was not shifted: the factor is not to be used
  tc_pivot_rule           rule;    // of L D L^T not TC_PIVOT_SHIFTS
  double                  zero, shift;
} tc_factor;

#ifdef __cplusplus
}
#endif
