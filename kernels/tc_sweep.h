/*
  tc_sweep - one sweep of Gauss-Seidel with relaxation over the rows of a square matrix, straight from CSR. Plain C.

  A sweep goes through the rows forward or backward. What a row reads of the rows that it has passed, its own triangle, is new; of the others it is what was there before. On the device
  all rows are under way at once, in an order in which each comes behind those that it reads new elements of, and wait for these.
*/
#pragma once
#include "tc_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a row subtracts, and what becomes of it; d is the entry on the diagonal, e = omega / (shift + d) or, where omega is 1 and shift not above zero, 1 / d */
typedef enum {
  TC_SWEEP_FROM_ZERO, // x = e (b - triangle x): there was nothing before
  TC_SWEEP_SECOND,    // backward behind a forward sweep, whose b less its triangle is saved: x = (1 - omega) x + e (saved - triangle x)
  TC_SWEEP_AGAIN,     // the whole row: forward x = (1 - omega) x + e (b - A x but for d x), backward the same with b - A x + d x
  TC_SWEEP_EISENSTAT, // forward behind a backward sweep from zero: t = e (b - scale d x - triangle t), x = x + t, with scale = 2 / omega - 1
  TC_SWEEP_UNIT,      // x = b - triangle x, of a triangle with ones on its diagonal, whatever is stored there
  TC_SWEEP_UNIT_OVER  // forward, the same with x times e in the end
} tc_sweep_kind;

/* What can be said of a pattern */
typedef struct {
  int32_t longest;   // entries of the longest row
  int32_t lone;      // does an entry beside the diagonal have none in the other triangle that mirrors it?
  int32_t irregular; // are there rows of a node, tc_csr_local.row_group of them, that do not share their columns?
} tc_sweep_facts;

enum {
  TC_SWEEP_LARGEST_NODE = 6,    // rows
  TC_SWEEP_NODE_ROOM    = 1536, // rows of a node times entries of the longest row, at most
  TC_SWEEP_SINGLE_ROWS  = 16    // entries in a triangle, on average, beyond which single rows go as nodes do
};

/* What is found out once for a pattern, local */
typedef struct {
  int32_t        node;     // rows that share their columns, and come one after the other in the orders, backwards in that of backward sweeps; 1: none
  int32_t        longest;  // entries of the longest row
  const int32_t *order[2]; // [num_rows], of forward and of backward sweeps: the row in each place
  int32_t       *diagonal; // [num_rows], where in `col` the diagonal of each row is
  int32_t       *place;    // [nnz], of entries beside the diagonal: the place of the row that the column is, in the order of the sweep that reads what is new there
} tc_sweep_pattern;

typedef struct {
  tc_sweep_kind           kind;
  int                     backward;
  const tc_sweep_pattern *pattern;
  tc_scalar               scalar;  // of all that follows, local and [num_rows] but val
  const void             *val;     // [nnz]
  const void             *b;       // of the second of two sweeps: what is saved
  const void             *before;  // x before the sweep; not read if that is from zero or has ones on its diagonal, by other rows only if it is TC_SWEEP_AGAIN
  void                   *x;       // after it; may be `before`
  void                   *saved;   // of a forward sweep, for the one that goes backward; NULL: not wanted
  void                   *scratch; // undefined before and after
  void                   *spare;   // likewise, where kind is TC_SWEEP_AGAIN and x is `before`
  double                  omega, shift;
  int                     in_double; // (1 - omega) x and the sum behind it, of floats
} tc_sweep;

/* Does an element become 1 / d times itself, and when? */
typedef enum {
  TC_SWEEP_DIVIDES_NEVER,
  TC_SWEEP_DIVIDES_FIRST, // b, before anything is subtracted
  TC_SWEEP_DIVIDES_LAST   // x
} tc_sweep_division;

/* A sweep from zero with a block of vectors, each column as by tc_sweep: x = b - triangle x */
typedef struct {
  tc_sweep_division       division;
  int                     backward;
  const tc_sweep_pattern *pattern; // no `place` is read
  tc_scalar               scalar;  // of all that follows, local
  int32_t                 n, width; // columns that count, and all of them
  const void             *val;     // [nnz]
  const void             *b;       // [num_rows, width] by rows
  void                   *x;       // likewise, other memory than b; undefined before
} tc_sweep_block;

/* How a block of vectors, column-major [num, n], becomes one by rows, [num, width], and back */
typedef struct {
  tc_scalar      scalar;
  int32_t        num, n, width;
  const int32_t *row; // [num], which row there each one is, all different; NULL: the same
  int64_t        ld;
} tc_block_rows;

#ifdef __cplusplus
}
#endif
