/*
  How a generator is written: one row of a table of kinds, and a function for the columns of a row. Only for bench/generators*.c.
*/
#pragma once
#include "generators.h"

/* Columns that a row may have beyond max_row before double ones go; what tc_stratified() is too even for is gathered up to here */
enum { TC_MAX_GATHER = 96 };

/* A pattern that is made row by row */
typedef struct {
  int32_t     size;
  uint64_t    seed;
  int32_t     num_rows, num_cols;
  int64_t     max_row;    // room that row() may need
  const void *parameters; // of the kind
  void       *data;       // what prepare() made, freed with free()
} tc_pattern;

/* One generator */
typedef struct {
  tc_generator generator;
  int32_t (*row)(const tc_pattern *P, int32_t i, int32_t *col); // the columns of row i, ascending, each once; returns how many
  int64_t (*rows)(int64_t size);
  int64_t (*cols)(int64_t size);
  int64_t     max_row;    // entries of the longest row, double ones included; 0: number of columns
  const void *parameters; // for row() and values()
  tc_status (*prepare)(tc_pattern *P);               // NULL: nothing to prepare
  void (*values)(const tc_pattern *P, tc_matrix *A); // NULL: random normal
} tc_kind;

/* The tables, by topic; a row without a name ends each */
extern const tc_kind tc_grid_kinds[], tc_operator_kinds[], tc_graph_kinds[], tc_surrogate_kinds[], tc_block_kinds[], tc_shape_kinds[];

/* --- random numbers: splitmix64, Steele, Lea and Flood 2014 */

static inline uint64_t tc_mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static inline uint64_t tc_next_random(uint64_t *state)
{
  return tc_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 .. n - 1 */
static inline int32_t tc_next_below(uint64_t *state, int64_t n)
{
  return (int32_t)(tc_next_random(state) % (uint64_t)n);
}

/* In (0, 1] */
static inline double tc_to_unit(uint64_t random)
{
  return (double)((random >> 11) + 1) * 0x1p-53;
}

/* The state for row i, or for whatever i numbers */
static inline uint64_t tc_row_state(const tc_pattern *P, int64_t i)
{
  return tc_mix(P->seed + UINT64_C(0x632be59bd9b4e019) * ((uint64_t)i + 1));
}

/* --- columns and sizes */

/* Sorts col[0 .. num) and drops what is double; returns how many stay */
int32_t tc_sort_unique(int32_t num, int32_t *col);

/* `length` ascending columns of num_cols, one from each of `length` equal strata; returns how many, fewer only where there are fewer columns */
int32_t tc_stratified(int32_t length, int32_t num_cols, uint64_t *state, int32_t *col);

/* Neighbours of node i of a grid of size^3, x fastest, at most `reach` of the three coordinates different */
int32_t tc_grid_neighbours(const tc_pattern *P, int32_t i, int reach, int32_t *col);

/* node[0 .. num) to the columns of `dof` unknowns each; returns how many; node and col may not overlap */
int32_t tc_blocks(int32_t dof, int32_t num, const int32_t *node, int32_t *col);

int64_t tc_size1(int64_t n), tc_size2(int64_t n), tc_size3(int64_t n), tc_nodes3(int64_t n);
