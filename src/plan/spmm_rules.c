#include "spmm_rules.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rule may ask for */
typedef enum {
  COLUMNS,
  WORK, // mean row times columns: multiplications per row
  ENTRIES,
  MEAN_ROW,
  LONGEST_ROW,
  SCATTERED, // share of entries whose column is not near one of the row above
  PER_TILE,  // entries in 8 rows and 4 of their distinct columns
  NUM_QUANTITIES
} quantity;

/*
  The first rule all of whose conditions hold and whose format has a kernel decides. Fitted to all kernels' times on the 35 cases of docs/gpu-report.md, H200: what it takes is
  within 3% of the fastest kernel in the geometric mean. Tiles have to be filled, slices want neighbouring rows that touch neighbouring columns, or few of them, and rows
  of which the longest does not take long; rows in segments need many of them to fill a device with tiles. The host has kernels for CSR only.
*/
enum { MAX_CONDITIONS = 3 };

typedef struct {
  quantity quantity;
  double   at_least, below;
} condition;

#define AT_LEAST(quantity, bound) {quantity, bound, INFINITY}
#define BELOW(quantity, bound)    {quantity, -INFINITY, bound}

static const struct {
  const char *format;
  int         num;
  condition   condition[MAX_CONDITIONS];
} rules[] = {
  {"csr",    2, {AT_LEAST(LONGEST_ROW, 256), BELOW(PER_TILE, 7)}                    },
  {"csr",    2, {BELOW(PER_TILE, 5.2), BELOW(COLUMNS, 64)}                          },
  {"csr",    2, {AT_LEAST(MEAN_ROW, 256), BELOW(COLUMNS, 32)}                       },
  {"csr",    2, {AT_LEAST(MEAN_ROW, 256), BELOW(ENTRIES, 4e6)}                      },
  {"hybrid", 3, {AT_LEAST(PER_TILE, 5.2), BELOW(LONGEST_ROW, 100), BELOW(WORK, 250)}},
  {"hybrid", 3, {BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 100), BELOW(WORK, 450)}  },
  {"hybrid", 3, {BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 100), BELOW(MEAN_ROW, 8)}},
  {"bittcf", 0, {{0}}                                                               },
  {"hybrid", 2, {BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 256)}                    },
  {"csr",    0, {{0}}                                                               },
};

#undef AT_LEAST
#undef BELOW

/* Share of entries whose column is not near that of the entry above; of rows in a sample */
static double scattered_share(const tc_csr_view *rows)
{
  enum { SAMPLE = 1024, NEAR = 16 };
  const int32_t stride = rows->num_rows > SAMPLE ? rows->num_rows / SAMPLE : 1;
  int64_t       entries = 0, far = 0;

  for (int32_t s = 0; s * (int64_t)stride < rows->num_rows; ++s) {
    const int32_t i = s * stride + (int32_t)((uint32_t)s * 2654435761u % (uint32_t)stride); // the lines of a grid must not be in step with the sample
    if (i < 1 || i >= rows->num_rows) continue;
    const int32_t above = rows->row_ptr[i - 1], first = rows->row_ptr[i], length = rows->row_ptr[i + 1] - first;

    for (int32_t k = 0; k < length; ++k) far += above + k >= first || abs(rows->col[first + k] - rows->col[above + k]) > NEAR;
    entries += length;
  }
  return entries > 0 ? (double)far / (double)entries : 0;
}

static int by_column(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

  return (x > y) - (x < y);
}

/* Entries per tile of 8 rows and 4 of their distinct columns, of a sample; rows count as far as their first segment */
static tc_status entries_per_tile(const tc_csr_view *rows, double *per_tile)
{
  enum { SAMPLE = 256, ROWS = 8 };
  const int32_t windows = rows->num_rows / ROWS, num = windows < SAMPLE ? windows : SAMPLE;
  int64_t       entries = 0, columns = 0;
  int32_t      *col     = malloc(ROWS * TC_SPMM_SEGMENT * sizeof *col);

  TC_CHECK(col != NULL, TC_ERR_MEMORY, "no host memory for a sample of %d rows", ROWS);
  for (int32_t s = 0; s < num; ++s) {
    const int32_t first = ROWS * (int32_t)((int64_t)s * windows / num);
    int32_t       n     = 0;

    for (int32_t i = first; i < first + ROWS; ++i) {
      const int32_t length = rows->row_ptr[i + 1] - rows->row_ptr[i], taken = length < TC_SPMM_SEGMENT ? length : TC_SPMM_SEGMENT;

      memcpy(col + n, rows->col + rows->row_ptr[i], (size_t)taken * sizeof *col);
      n += taken;
    }
    qsort(col, (size_t)n, sizeof *col, by_column);
    for (int32_t k = 0; k < n; ++k) columns += k == 0 || col[k] != col[k - 1];
    entries += n;
  }
  free(col);
  *per_tile = columns > 0 ? 4.0 * (double)entries / (double)columns : 0;
  return TC_OK;
}

tc_status tc_spmm_measure(const tc_csr_view *rows, tc_spmm_traits *traits)
{
  int32_t longest = 0;

  for (int32_t i = 0; i < rows->num_rows; ++i) {
    const int32_t length = rows->row_ptr[i + 1] - rows->row_ptr[i];

    if (length > longest) longest = length;
  }
  traits->entries     = (double)rows->nnz;
  traits->mean_row    = rows->num_rows > 0 ? (double)rows->nnz / rows->num_rows : 0;
  traits->longest_row = longest;
  traits->scattered   = scattered_share(rows);
  return entries_per_tile(rows, &traits->per_tile);
}

const char *tc_spmm_next_rule(const tc_spmm_traits *T, int32_t n, int *rule)
{
  const double of[NUM_QUANTITIES] = {[COLUMNS] = n, [WORK] = n * T->mean_row, [ENTRIES] = T->entries, [MEAN_ROW] = T->mean_row, [LONGEST_ROW] = T->longest_row, [SCATTERED] = T->scattered, [PER_TILE] = T->per_tile};

  while (*rule < (int)(sizeof rules / sizeof rules[0])) {
    const int r     = (*rule)++;
    int       holds = 1;

    for (int c = 0; c < rules[r].num; ++c) {
      const condition *C = &rules[r].condition[c];

      holds = holds && of[C->quantity] >= C->at_least && of[C->quantity] < C->below;
    }
    if (holds) return rules[r].format;
  }
  return NULL;
}

void tc_spmm_say_traits(const tc_spmm_traits *T, int32_t n, size_t size, char words[])
{
  snprintf(words, size, "%d columns; rows: mean %.1f, longest %.0f, scattered %.0f%%; %.1f entries per tile", n, T->mean_row, T->longest_row, 100 * T->scattered, T->per_tile);
}
