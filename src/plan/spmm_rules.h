/*
  Which format multiplies n columns of a pattern, from what a survey found: the table of rules; and whether packing it pays: the table of conversions.
*/
#pragma once
#include "../../kernels/tc_survey.h"

enum { TC_SPMM_CONVERSIONS = 4 };

typedef struct {
  double entries, rows, mean_row, longest_row;
  double scattered;  // share of entries whose column is not near one of the row above
  double per_tile;   // entries in 8 rows and 4 of their distinct columns
  double per_column; // entries of A for each row of B
  double odd;        // 1: the matrix has an odd number of columns
  double clusters;   // 1: tiles may have clusters that suit, nobody knows until they are packed, or they have; 0: they have none
} tc_spmm_traits;

tc_spmm_traits tc_spmm_traits_of(const tc_csr_view *rows, const tc_survey *survey);

/* Tables of rules */
typedef enum {
  TC_SPMM_RULES_F64,
  TC_SPMM_RULES_NARROW,       // every other precision
  TC_SPMM_RULES_B_TRANSPOSED, // F64, the block is given by its transpose
  TC_SPMM_RULES_BY_ROWS       // blocks of floats, row-major, in TF32
} tc_spmm_rules;

/* The format of the next rule of a table that holds, from rule *rule on, which moves behind it; NULL at the end */
const char *tc_spmm_next_rule(tc_spmm_rules rules, const tc_spmm_traits *traits, int32_t n, int *rule);

/* The conversion into a format, -1 if it needs none, and what it takes; what a product of n columns gains over one straight from CSR, or over the format that multiplies `instead`, where clusters are hoped for */
int    tc_spmm_conversion_find(const char *format, const char *instead);
double tc_spmm_conversion_ms(int conversion, const tc_spmm_traits *traits);
double tc_spmm_gain_ms(int conversion, const tc_spmm_traits *traits, int32_t n);
