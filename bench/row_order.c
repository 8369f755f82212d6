#include "row_order.h"
#include <stdlib.h>
#include <string.h>

enum { PART = 128, MANY = 256 }; // rows of the smallest part; entries of columns that say nothing about which rows belong together

typedef struct {
  const tc_matrix *A;
  tc_matrix        columns;       // the transpose
  int32_t         *part, *search; // of each row, the part that it is yet to be found in, or 0; of each column, the last search that came to it
  int32_t         *found;         // rows in the order in which they are
  int32_t          num_parts, num_searches;
} halving;

static void find_neighbours(halving *H, int32_t row, int32_t *num)
{
  for (int64_t e = H->A->row_ptr[row]; e < H->A->row_ptr[row + 1]; ++e) {
    const int32_t column = H->A->col[e];
    const int64_t first = H->columns.row_ptr[column], end = H->columns.row_ptr[column + 1];

    if (H->search[column] == H->num_searches || end - first > MANY) continue;
    H->search[column] = H->num_searches;
    for (int64_t i = first; i < end; ++i) {
      const int32_t other = H->columns.col[i];

      if (H->part[other] != H->num_parts) continue;
      H->part[other]     = 0;
      H->found[(*num)++] = other;
    }
  }
}

/* H->found gets the rows, `start` first, then those that are reached from it; what is not, from the first one that is left */
static void search(halving *H, const int32_t *rows, int32_t num, int32_t start)
{
  int32_t found = 0, next = 0;

  ++H->num_parts;
  ++H->num_searches;
  for (int32_t i = 0; i < num; ++i) H->part[rows[i]] = H->num_parts;
  for (int32_t at = 0; at < num; ++at) {
    if (at == found) {
      while (at > 0 && H->part[rows[next]] != H->num_parts) ++next;
      H->found[found++]      = at > 0 ? rows[next] : start;
      H->part[H->found[at]] = 0;
    }
    find_neighbours(H, H->found[at], &found);
  }
}

static void halve(halving *H, int32_t *rows, int32_t num)
{
  const int32_t half = (num / 2 + PART - 1) / PART * PART;

  if (num <= PART) return;
  search(H, rows, num, rows[0]);
  search(H, rows, num, H->found[num - 1]);
  memcpy(rows, H->found, (size_t)num * sizeof *rows);
  halve(H, rows, half);
  halve(H, rows + half, num - half);
}

tc_status tc_row_order_by_halves(const tc_matrix *A, int32_t *order)
{
  halving   H      = {.A = A};
  tc_status status = tc_matrix_transpose(A, &H.columns);

  if (status == TC_OK) {
    H.part   = calloc((size_t)A->num_rows + 1, sizeof *H.part);
    H.search = calloc((size_t)A->num_cols + 1, sizeof *H.search);
    H.found  = malloc(((size_t)A->num_rows + 1) * sizeof *H.found);
    if (H.part == NULL || H.search == NULL || H.found == NULL) status = tc_fail(TC_ERR_MEMORY, "no host memory to order %d rows", A->num_rows);
  }
  for (int32_t i = 0; i < A->num_rows; ++i) order[i] = i;
  if (status == TC_OK) halve(&H, order, A->num_rows);
  tc_matrix_free(&H.columns);
  free(H.part);
  free(H.search);
  free(H.found);
  return status;
}
