/*
  Generated matrices of a given kind and size: the rows of the benchmark's table in tiny and in full size, and shapes for tests.
  The same name, size and seed give the same pattern on every machine.
*/
#pragma once
#include "matrix.h"

typedef struct tc_generator {
  const char *name;
  int32_t     tiny;          // the size that tests use
  int         random_values; // random normal in double precision: nothing about them can be narrowed
  int32_t     block;         // unknowns of a node, which have the same columns, as an application would tell PETSc; 1: none
  const char *what;          // what it is, and what its size means
} tc_generator;

/* The table of generators, and a look-up by name (NULL: no such generator) */
const tc_generator *tc_generators(int *num);
const tc_generator *tc_generator_find(const char *name);

/* Errors: TC_ERR_ARG (size < 0, or too large for 32-bit row numbers), TC_ERR_MEMORY. Free the matrix with tc_matrix_free(). */
tc_status tc_generate(const tc_generator *generator, int32_t size, uint64_t seed, tc_matrix *A);

/* The same for "generator:size". Errors: also TC_ERR_ARG if that is not what `name` is */
tc_status tc_generate_named(const char *name, uint64_t seed, tc_matrix *A);

/* x[i], i < n, random normal, the same for the same seed */
void tc_random_normal(int64_t n, uint64_t seed, double *x);

/* The same between -1 and 1, in a tenth of the time. Fewer numbers are the first ones of more. */
void tc_random_uniform(int64_t n, uint64_t seed, double *x);

/* 0 to n - 1 in a random order, the same for the same seed */
void tc_random_permutation(int32_t n, uint64_t seed, int32_t *p);
