/* The loops of A B where the transpose of B is given, whose rows are what an entry of A is multiplied by, for spmm_host_loops.h, which includes this file for each instruction set */

#define TURNED(rows, n, ahead) \
  TARGET static __attribute__((noinline)) void NAME(turned_##rows##_##n##_##ahead)(const few_columns *F) \
  { \
    NAME(direct_product)(F, rows, n, ahead, 1); \
  }
TURNED(1, 7, 0)
TURNED(2, 7, 1)
TURNED(1, 6, 0)
TURNED(2, 6, 1)
TURNED(1, 5, 0)
TURNED(2, 5, 1)
TURNED(1, 4, 0)
TURNED(2, 4, 1)
TURNED(1, 3, 0)
TURNED(2, 3, 1)
TURNED(1, 2, 0)
TURNED(3, 2, 1)
TURNED(1, 1, 0)
TURNED(3, 1, 1)
#undef TURNED

/* C for fewer columns than a panel has */
TARGET static void NAME(turned_few)(const few_columns *F, int32_t n)
{
  const int side = F->A->nnz >= SIDE_MEAN * (int64_t)F->A->num_rows;

  if (n == 7 && side) NAME(turned_2_7_1)(F);
  else if (n == 7) NAME(turned_1_7_0)(F);
  else if (n == 6 && side) NAME(turned_2_6_1)(F);
  else if (n == 6) NAME(turned_1_6_0)(F);
  else if (n == 5 && side) NAME(turned_2_5_1)(F);
  else if (n == 5) NAME(turned_1_5_0)(F);
  else if (n == 4 && side) NAME(turned_2_4_1)(F);
  else if (n == 4) NAME(turned_1_4_0)(F);
  else if (n == 3 && side) NAME(turned_2_3_1)(F);
  else if (n == 3) NAME(turned_1_3_0)(F);
  else if (n == 2 && side) NAME(turned_3_2_1)(F);
  else if (n == 2) NAME(turned_1_2_0)(F);
  else if (side) NAME(turned_3_1_1)(F);
  else NAME(turned_1_1_0)(F);
}

/* C for n columns, a few panels side by side, a constant where this is called; the last one ends with the columns, and some of its first the one before has, too */
TARGET static inline __attribute__((always_inline)) void NAME(turned_panels)(const few_columns *F, int panels, int32_t n)
{
  const tc_csr_view *A    = F->A;
  const int32_t      last = n - WIDTH, skip = WIDTH * panels - n;

  for (int32_t first = 0; first < A->num_rows; first += TILE_ROWS) {
    const int32_t rows = A->num_rows - first < TILE_ROWS ? A->num_rows - first : TILE_ROWS;
    double        tile[PANELS][TILE_ROWS * WIDTH];

    if (F->add && A->row_ptr[first] == A->row_ptr[first + rows]) continue;
    for (int32_t r = 0; r < rows; ++r) {
      const int32_t row_end = A->row_ptr[first + r + 1];
      SUMS          total[PANELS];

      for (int p = 0; p < panels; ++p) total[p] = ZERO();
      for (int32_t e = A->row_ptr[first + r]; e < row_end;) {
        const int32_t end = row_end - e < TC_SPMM_SEGMENT ? row_end : e + TC_SPMM_SEGMENT;
        SUMS          sum[PANELS];

        for (int p = 0; p < panels; ++p) sum[p] = ZERO();
        for (; e < end; ++e) {
          const double *from = F->b + F->ldb * A->col[e];

          for (int p = 0; p < panels; ++p) sum[p] = STEP(sum[p], A->val[e], from + (p < panels - 1 ? WIDTH * p : last));
        }
        for (int p = 0; p < panels; ++p) total[p] = ADD(total[p], sum[p]);
      }
      for (int p = 0; p < panels; ++p) STORE(tile[p] + WIDTH * r, total[p]);
    }
    for (int p = 0; p < panels; ++p) {
      const int32_t before = p < panels - 1 ? 0 : skip;

      NAME(unpack)(rows, WIDTH - before, tile[p] + before, F->c + first + WIDTH * p * F->ldc, F->ldc, F->add);
    }
  }
}

#define TURNED_PANELS(panels) \
  TARGET static __attribute__((noinline)) void NAME(turned_panels_##panels)(const few_columns *F, int32_t n) \
  { \
    NAME(turned_panels)(F, panels, n); \
  }
TURNED_PANELS(2)
TURNED_PANELS(3)
TURNED_PANELS(4)
#undef TURNED_PANELS

/* A panel is where it is: two rows side by side */
TARGET static __attribute__((noinline)) void NAME(turned_panel)(const few_columns *F)
{
  NAME(panel_rows)(F->A, WIDTH, F->b, F->ldb, NULL, F->c, F->ldc, F->add);
}

TARGET static void NAME(turned_product)(const tc_csr_view *A, const tc_spmm_args *args)
{
  const int32_t parts = (args->n + PANELS * WIDTH - 1) / (PANELS * WIDTH); // of nearly equal size, WIDTH at least unless that is all

  for (int32_t part = 0, j = 0, n; part < parts; ++part, j += n) {
    const few_columns F = {A, args->b + j, args->ldb, args->c + j * args->ldc, args->ldc, args->add};

    n = (args->n - j) / (parts - part);
    if (n < WIDTH) NAME(turned_few)(&F, n);
    else if (n == WIDTH) NAME(turned_panel)(&F);
    else if (n <= 2 * WIDTH) NAME(turned_panels_2)(&F, n);
    else if (n <= 3 * WIDTH) NAME(turned_panels_3)(&F, n);
    else NAME(turned_panels_4)(&F, n);
  }
}
