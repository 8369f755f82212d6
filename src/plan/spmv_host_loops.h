/*
  The loops of the product with a vector, compiled once for each instruction set: spmv_host.c defines TARGET and NAME, and includes this file. `add`, `permuted` and `rows` are constants where functions
  are called.
*/

/* Entries first .. first + num - 1, a segment of a long row */
TARGET static double NAME(segment)(const product *P, int32_t first, int32_t num)
{
  const int32_t *col = P->A->col + first, *perm = P->perm ? P->perm + first : NULL;
  const double  *val = P->val + (perm ? 0 : first);
  double         chain[GROUPS][TC_LANES] = {{0}};

  for (int32_t e = 0; e < num; e += ENTRIES) {
    double *sum = &chain[e / ENTRIES / TC_LANES % GROUPS][e / ENTRIES % TC_LANES];

    for (int32_t k = e; k < e + ENTRIES && k < num; ++k) *sum = fma(val[perm ? perm[k] : k], P->x[col[k]], *sum);
  }
  return (tc_add_lanes(chain[0]) + tc_add_lanes(chain[1])) + (tc_add_lanes(chain[2]) + tc_add_lanes(chain[3]));
}

/* Apart, so that what is called for every row stays small */
TARGET static APART void NAME(long_row)(const product *P, int32_t row)
{
  const int32_t first = P->A->row_ptr[row], length = P->A->row_ptr[row + 1] - first;
  double        lane[TC_LANES] = {0};

  if (length <= SEGMENT) {
    tc_finish_row(NAME(segment)(P, first, length), row, P->y, P->z, P->sign);
    return;
  }
  for (int32_t k = 0, s = 0; k < length; k += SEGMENT, ++s) lane[s % TC_LANES] += NAME(segment)(P, first + k, length - k < SEGMENT ? length - k : SEGMENT);
  tc_finish_row(tc_add_lanes(lane), row, P->y, P->z, P->sign);
}

/*
  All rows from `row` on, one after the other. The entry runs through, so that nothing but the end of a row decides where it ends. With each row so many lines of
  what comes AHEAD entries later are fetched; a processor that fetches by itself begins anew with every page.
*/
TARGET TC_INLINE void NAME(rows)(const product *P, int32_t row, int add, int permuted, int lines)
{
  const int32_t *col = P->A->col, *perm = P->perm, *row_end = P->A->row_ptr + 1, num_rows = P->A->num_rows;
  const double  *val = P->val, *x = P->x, *y = P->y;
  double        *z = P->z;
  const int      sign = P->sign;
  int32_t        e    = P->A->row_ptr[row];

  for (; row < num_rows; ++row) {
    const int32_t begin = e, end = row_end[row];
    double        sum = 0;

    if (end - e >= LONG) {
      NAME(long_row)(P, row);
      e = end;
      continue;
    }
    for (int i = 0; i < lines; ++i) {
      TC_FETCH(val + e + AHEAD + LINE * i);
      TC_FETCH(col + e + AHEAD + LINE * i);
    }
    for (; e < end; ++e) sum = fma(val[permuted ? perm[e] : e], x[col[e]], sum);
    if (!add) z[row] = sum + 0.0;
    else if (begin < end) tc_finish_row(sum, row, y, z, sign);
    else z[row] = y[row];
  }
}

/* z += sign A x where most rows are empty: those are passed over, SKIPPED at a time where the last of so many ends where the first begins */
TARGET static APART void NAME(few_rows_add)(const product *P)
{
  const int32_t *col = P->A->col, *row_end = P->A->row_ptr + 1, num_rows = P->A->num_rows;
  const double  *val = P->val, *x = P->x;

  for (int32_t row = 0, e = P->A->row_ptr[0]; row < num_rows;) {
    const int32_t end = row_end[row];
    double        sum = 0;

    if (row + SKIPPED <= num_rows && row_end[row + SKIPPED - 1] == e) {
      row += SKIPPED;
      continue;
    }
    if (end - e >= LONG) NAME(long_row)(P, row);
    else if (e < end) {
      for (int32_t k = e; k < end; ++k) sum = fma(val[k], x[col[k]], sum);
      tc_finish_row(sum, row, P->y, P->z, P->sign);
    }
    e = end;
    ++row;
  }
}

/* Entries `from` to `to` of each of some rows, which begin at first[] */
TARGET TC_INLINE void NAME(steps)(const product *P, int num, const int32_t *first, int32_t from, int32_t to, double sum[])
{
  for (int32_t e = from; e < to; ++e) {
    for (int r = 0; r < num; ++r) sum[r] = fma(P->val[first[r] + e], P->x[P->A->col[first[r] + e]], sum[r]);
  }
}

/* TOGETHER rows side by side as far as the shortest of them goes; then what is left */
TARGET TC_INLINE void NAME(rows_together)(const product *P, int add)
{
  const int32_t *row_ptr = P->A->row_ptr;
  int32_t        row     = 0;

  for (; row + TOGETHER <= P->A->num_rows; row += TOGETHER) {
    const int32_t *first         = row_ptr + row;
    int32_t        shortest      = first[1] - first[0], longest = shortest;
    double         sum[TOGETHER] = {0};

    for (int r = 1; r < TOGETHER; ++r) {
      const int32_t length = first[r + 1] - first[r];

      shortest = length < shortest ? length : shortest;
      longest  = length > longest ? length : longest;
    }
    for (int32_t e = 0, end; longest < LONG && e < shortest; e = end) {
      end = shortest - e < BLOCK ? shortest : e + BLOCK;
      for (int i = 0; i < BLOCK * TOGETHER; i += 8) TC_FETCH(P->val + first[0] + TOGETHER * e + AHEAD + i);
      for (int i = 0; i < BLOCK * TOGETHER; i += 16) TC_FETCH(P->A->col + first[0] + TOGETHER * e + AHEAD + i);
      NAME(steps)(P, TOGETHER, first, e, end, sum);
    }
    for (int r = 0; r < TOGETHER; ++r) {
      const int32_t length = first[r + 1] - first[r];

      if (length >= LONG) NAME(long_row)(P, row + r);
      else if (longest >= LONG) {
        double alone = 0;

        NAME(steps)(P, 1, first + r, 0, length, &alone);
        sum[r] = alone;
      } else NAME(steps)(P, 1, first + r, shortest, length, sum + r);
      if (length >= LONG) continue;
      if (!add) P->z[row + r] = sum[r] + 0.0;
      else if (length > 0) tc_finish_row(sum[r], row + r, P->y, P->z, P->sign);
      else P->z[row + r] = P->y[row + r];
    }
  }
  NAME(rows)(P, row, add, 0, 0);
}

/* Entries `from` to `to` of each row of some nodes of `size` rows, which begin at first[] and have length[] */
TARGET TC_INLINE void NAME(node_steps)(const product *P, int num, int size, const int32_t *first, const int32_t *length, int32_t from, int32_t to, double sum[])
{
  for (int32_t e = from; e < to; ++e) {
    for (int n = 0; n < num; ++n) {
      const double  element = P->x[P->A->col[first[n] + e]];
      const double *val     = P->val + first[n] + e;

      for (int r = 0; r < size; ++r) sum[n * size + r] = fma(val[r * (ptrdiff_t)length[n]], element, sum[n * size + r]);
    }
  }
}

/* `num` nodes of `size` rows from row `row` on, none of them long, side by side as far as the shortest of them goes; then what is left */
TARGET TC_INLINE void NAME(nodes_together)(const product *P, int num, int size, int32_t row, int add)
{
  int32_t first[MOST_NODES], length[MOST_NODES], shortest = INT32_MAX;
  double  sum[MOST_NODES * MOST_ROWS] = {0};

  for (int n = 0; n < num; ++n) {
    first[n]  = P->A->row_ptr[row + n * size];
    length[n] = P->A->row_ptr[row + n * size + 1] - first[n];
    shortest  = length[n] < shortest ? length[n] : shortest;
  }
  for (int32_t e = 0, end; e < shortest; e = end) {
    end = shortest - e < BLOCK ? shortest : e + BLOCK;
    for (int i = 0; i < BLOCK * num * size; i += 8) TC_FETCH(P->val + first[0] + num * size * e + AHEAD + i);
    for (int n = 0; n < num; ++n) TC_FETCH(P->A->col + first[n] + num * size * (ptrdiff_t)length[n] + e); /* of the nodes to come, beyond columns that nobody reads */
    NAME(node_steps)(P, num, size, first, length, e, end, sum);
  }
  for (int n = 0; n < num; ++n) NAME(node_steps)(P, 1, size, first + n, length + n, shortest, length[n], sum + n * size);
  for (int r = 0; r < num * size; ++r) {
    if (!add) P->z[row + r] = sum[r] + 0.0;
    else if (length[r / size] > 0) tc_finish_row(sum[r], row + r, P->y, P->z, P->sign);
    else P->z[row + r] = P->y[row + r];
  }
}

/* Two nodes of two or three rows, so that no sum waits for its own, or one that is larger, or what has no such neighbour row by row */
TARGET TC_INLINE void NAME(nodes)(const product *P, int add)
{
  const int32_t *node = P->node, *row_ptr = P->A->row_ptr;

  for (int32_t i = 0, num; i < P->num_nodes; i += num) {
    const int32_t row = node[i], size = node[i + 1] - row, length = row_ptr[row + 1] - row_ptr[row];

    num = i + 1 < P->num_nodes && (size == 2 || size == 3) && node[i + 2] - node[i + 1] == size && row_ptr[node[i + 1] + 1] - row_ptr[node[i + 1]] < LONG ? 2 : 1;
    if (length >= LONG) {
      for (int r = 0; r < size; ++r) NAME(long_row)(P, row + r);
      num = 1;
    } else if (num == 2 && size == 2) NAME(nodes_together)(P, 2, 2, row, add);
    else if (num == 2) NAME(nodes_together)(P, 2, 3, row, add);
    else if (size == 4) NAME(nodes_together)(P, 1, 4, row, add);
    else if (size == 5) NAME(nodes_together)(P, 1, 5, row, add);
    else {
      for (int r = 0; r < size; ++r) NAME(nodes_together)(P, 1, 1, row + r, add);
    }
  }
}

/*
  z = A^T x or z = y + sign A^T x from the rows of A: each adds to sums of columns, which so get their entries in the order of the rows, as rows of A^T have them. `few`: most rows are empty, as in
  few_rows_add()
*/
TARGET TC_INLINE void NAME(columns)(const product *P, int add, int few)
{
  const int32_t *row_ptr = P->A->row_ptr, num_rows = P->A->num_rows, num_cols = P->A->num_cols;
  double        *sum = add && P->y == P->z ? P->sums : P->z;

  for (int32_t j = 0; j < num_cols; ++j) sum[j] = 0;
  for (int32_t row = 0; row < num_rows; ++row) {
    const double element = P->x[row];

    if (few && row + SKIPPED <= num_rows && row_ptr[row + SKIPPED] == row_ptr[row]) {
      row += SKIPPED - 1;
      continue;
    }
    for (int32_t e = row_ptr[row]; e < row_ptr[row + 1]; ++e) sum[P->A->col[e]] = fma(P->val[e], element, sum[P->A->col[e]]);
  }
  for (int32_t j = 0; j < num_cols; ++j) {
    if (!add) P->z[j] = sum[j] + 0.0;
    else if (P->kind[j]) tc_finish_row(sum[j], j, P->y, P->z, P->sign);
    else P->z[j] = P->y[j];
  }
}

/* For each a function of its own, whose loops have the registers to themselves */
TARGET static APART void NAME(plain)(const product *P) { NAME(rows)(P, 0, 0, 0, 0); }
TARGET static APART void NAME(plain_add)(const product *P) { NAME(rows)(P, 0, 1, 0, 0); }
TARGET static APART void NAME(plain_far)(const product *P) { NAME(rows)(P, 0, 0, 0, 1); }
TARGET static APART void NAME(plain_far_add)(const product *P) { NAME(rows)(P, 0, 1, 0, 1); }
TARGET static APART void NAME(plain_far_lines)(const product *P) { NAME(rows)(P, 0, 0, 0, LINES); }
TARGET static APART void NAME(plain_far_lines_add)(const product *P) { NAME(rows)(P, 0, 1, 0, LINES); }
TARGET static APART void NAME(permuted)(const product *P) { NAME(rows)(P, 0, 0, 1, 0); }
TARGET static APART void NAME(permuted_add)(const product *P) { NAME(rows)(P, 0, 1, 1, 0); }
TARGET static APART void NAME(together)(const product *P) { NAME(rows_together)(P, 0); }
TARGET static APART void NAME(together_add)(const product *P) { NAME(rows_together)(P, 1); }

TARGET static APART void NAME(of_nodes)(const product *P) { NAME(nodes)(P, 0); }
TARGET static APART void NAME(of_nodes_add)(const product *P) { NAME(nodes)(P, 1); }

TARGET static APART void NAME(transposed)(const product *P) { NAME(columns)(P, 0, 0); }
TARGET static APART void NAME(transposed_add)(const product *P) { NAME(columns)(P, 1, 0); }
TARGET static APART void NAME(transposed_few)(const product *P) { NAME(columns)(P, 0, 1); }
TARGET static APART void NAME(transposed_few_add)(const product *P) { NAME(columns)(P, 1, 1); }

TARGET static void NAME(multiply)(const product *P)
{
  const int side = P->A->nnz >= MEAN * (int64_t)P->A->num_rows, few = P->A->nnz <= P->A->num_rows / FEW, add = P->y != NULL;

  if (P->kind && few) (add ? NAME(transposed_few_add) : NAME(transposed_few))(P);
  else if (P->kind) (add ? NAME(transposed_add) : NAME(transposed))(P);
  else if (P->perm) (add ? NAME(permuted_add) : NAME(permuted))(P);
  else if (few && add && P->y == P->z) NAME(few_rows_add)(P);
  else if (P->node) (add ? NAME(of_nodes_add) : NAME(of_nodes))(P);
  else if (side) (add ? NAME(together_add) : NAME(together))(P);
  else if (P->far && P->A->nnz >= SHORT * (int64_t)P->A->num_rows) (add ? NAME(plain_far_lines_add) : NAME(plain_far_lines))(P);
  else if (P->far) (add ? NAME(plain_far_add) : NAME(plain_far))(P);
  else (add ? NAME(plain_add) : NAME(plain))(P);
}

#undef TARGET
#undef NAME
