/*
  tc_survey - what a backend finds out about the rows of a pattern before its first product with a dense block: what the choice of a kernel depends on, and lists of rows
  that kernels for CSR begin with, so that nobody waits for a row that is much longer than those beside it. Which rows a sample consists of, the same on the host and on a
  device.
*/
#pragma once
#include "tc_spmm.h"

#ifdef __CUDACC__
  #define TC_SURVEY_BOTH __host__ __device__ static inline
#else
  #define TC_SURVEY_BOTH static inline
#endif

enum {
  TC_SURVEY_HEAVY      = 32, // entries from which a row may be heavy, ...
  TC_SURVEY_HEAVY_MEAN = 4,  // ... if that many times the mean
  TC_SURVEY_ROWS       = 1024, // rows that are compared with those above them, at most twice as many
  TC_SURVEY_NEAR       = 16,
  TC_SURVEY_WINDOWS    = 256,  // windows whose distinct columns are counted
  TC_SURVEY_WINDOW     = 8     // rows; they count as far as their first segment
};

typedef struct {
  int32_t  longest_row;
  int32_t  num_long, num_segments, num_heavy, heavy_from; // as in tc_csr_view
  int64_t  sampled, far;                                  // entries of a sample of rows, and those of them whose column is not near that of the entry above
  int64_t  in_windows, columns;                           // entries of a sample of windows, and how many distinct columns each has, summed up
  int32_t *list;                                          // [num_long] long rows, [num_long + 1] first segments, [num_heavy] heavy rows, zeros [num_long, TC_SPMM_CHUNKS]; NULL if there are none
} tc_survey;

/* Bytes of `list` */
TC_SURVEY_BOTH size_t tc_survey_list_bytes(int32_t num_long, int32_t num_heavy)
{
  return sizeof(int32_t) * ((2 + TC_SPMM_CHUNKS) * (size_t)num_long + 1 + (size_t)num_heavy);
}

TC_SURVEY_BOTH int32_t tc_survey_heavy_from(int32_t num_rows, int64_t nnz)
{
  const int64_t from = num_rows > 0 ? TC_SURVEY_HEAVY_MEAN * nnz / num_rows : 0;

  return from < TC_SURVEY_HEAVY ? TC_SURVEY_HEAVY : from < TC_SPMM_SEGMENT ? (int32_t)from : TC_SPMM_SEGMENT;
}

TC_SURVEY_BOTH int32_t tc_survey_stride(int32_t num_rows)
{
  return num_rows > TC_SURVEY_ROWS ? num_rows / TC_SURVEY_ROWS : 1;
}

TC_SURVEY_BOTH int32_t tc_survey_num_sampled(int32_t num_rows)
{
  return num_rows > 0 ? (num_rows - 1) / tc_survey_stride(num_rows) + 1 : 0;
}

/* The row of sample s, 0 or num_rows and beyond: none. The lines of a grid must not be in step with the sample. */
TC_SURVEY_BOTH int32_t tc_survey_row(int32_t num_rows, int32_t s)
{
  const int32_t stride = tc_survey_stride(num_rows);

  return s * stride + (int32_t)((uint32_t)s * 2654435761u % (uint32_t)stride);
}

/* Is entry k of row i far from that of the row above? */
TC_SURVEY_BOTH int tc_survey_is_far(const int32_t *row_ptr, const int32_t *col, int32_t i, int32_t k)
{
  const int32_t above = row_ptr[i - 1] + k, here = row_ptr[i] + k;
  const int32_t apart = above < row_ptr[i] ? col[here] - col[above] : 0;

  return above >= row_ptr[i] || apart > TC_SURVEY_NEAR || apart < -TC_SURVEY_NEAR;
}

TC_SURVEY_BOTH int32_t tc_survey_num_windows(int32_t num_rows)
{
  const int32_t windows = num_rows / TC_SURVEY_WINDOW;

  return windows < TC_SURVEY_WINDOWS ? windows : TC_SURVEY_WINDOWS;
}

/* The first row of window s of the sample */
TC_SURVEY_BOTH int32_t tc_survey_window(int32_t num_rows, int32_t s)
{
  return TC_SURVEY_WINDOW * (int32_t)((int64_t)s * (num_rows / TC_SURVEY_WINDOW) / tc_survey_num_windows(num_rows));
}
