/*
  The pattern of an incomplete factor that has more entries than its matrix, or another order, or of ICC of a matrix whose pattern is not symmetric: found by the symbolic factorization of MATSOLVERPETSC, whose levels of fill these are.
*/
#include "solve.h"

#if PetscDefined(HAVE_CUDA)

/*
  Where the rows of U end in the list of columns of PETSc's factors (MATSEQAIJ, the same in 3.24.6 and 3.26.1): the rows of L one after the other, then those of U from the last one to the first, each with its diagonal at its end. What is
  not laid out like that is not taken for one. end [m]: the place of the diagonal
*/
static PetscBool MatTCFindUpperRows(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt64 nnz, PetscInt64 end[])
{
  PetscInt64 at = i[m];

  for (PetscInt row = m - 1; row >= 0; row--) {
    while (at < nnz && j[at] != row) at++;
    if (at == nnz) return PETSC_FALSE;
    end[row] = at++;
  }
  return (PetscBool)(at == nnz);
}

/* Both triangles by rows; end: where those of U end in j */
static PetscBool MatTCMergeTriangles(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscInt64 end[], int32_t row_ptr[], int32_t col[])
{
  int32_t k = 0;

  for (PetscInt row = 0; row < m; row++) {
    const PetscInt64 first = row + 1 < m ? end[row + 1] + 1 : i[m];

    row_ptr[row] = k;
    for (PetscInt e = i[row]; e < i[row + 1]; e++) col[k++] = (int32_t)j[e];
    col[k++] = (int32_t)row;
    for (PetscInt64 e = first; e < end[row]; e++) col[k++] = (int32_t)j[e];
    for (int32_t e = row_ptr[row]; e < k; e++) {
      if (col[e] <= (e > row_ptr[row] ? col[e - 1] : -1) || col[e] >= (int32_t)m) return PETSC_FALSE;
    }
  }
  row_ptr[m] = k;
  return PETSC_TRUE;
}

/* Both triangles out of rows of the upper one, as ICC factors have it (MATSEQSBAIJ): each with its diagonal at its end. next [m] */
static PetscBool MatTCMirrorUpperRows(PetscInt m, const PetscInt i[], const PetscInt j[], int32_t next[], int32_t row_ptr[], int32_t col[])
{
  for (PetscInt row = 0; row < m; row++) next[row] = 0;
  for (PetscInt row = 0; row < m; row++) {
    if (i[row + 1] <= i[row] || j[i[row + 1] - 1] != row) return PETSC_FALSE;
    for (PetscInt e = i[row]; e < i[row + 1] - 1; e++) {
      if (j[e] <= (e > i[row] ? j[e - 1] : row) || j[e] >= m) return PETSC_FALSE;
      next[j[e]]++;
    }
  }
  row_ptr[0] = 0;
  for (PetscInt row = 0; row < m; row++) {
    row_ptr[row + 1] = row_ptr[row] + next[row] + (int32_t)(i[row + 1] - i[row]);
    next[row]        = row_ptr[row];
  }
  for (PetscInt row = 0; row < m; row++) { /* what is before this row's diagonal is there */
    col[next[row]++] = (int32_t)row;
    for (PetscInt e = i[row]; e < i[row + 1] - 1; e++) {
      col[next[row]++]  = (int32_t)j[e];
      col[next[j[e]]++] = (int32_t)row;
    }
  }
  return PETSC_TRUE;
}

/* Which entry of the matrix each one of the pattern, or of its upper triangle, begins as: has each of the former a place? place [m] */
static PetscBool MatTCPlaceEntries(const tc_factors_pattern *P, PetscBool upper, const PetscInt ia[], const PetscInt ja[], const PetscInt rows[], const PetscInt cols_back[], int32_t place[], int32_t from[])
{
  for (int32_t i = 0; i < P->num_rows; i++) place[i] = -1;
  for (int32_t i = 0; i < P->num_rows; i++) {
    const PetscInt row = rows[i];

    for (int32_t k = P->row_ptr[i]; k < P->row_ptr[i + 1]; k++) {
      place[P->col[k]] = k;
      from[k]          = -1;
    }
    for (PetscInt k = ia[row]; k < ia[row + 1]; k++) {
      const int32_t at = place[cols_back[ja[k]]];

      if (upper && cols_back[ja[k]] < i) continue;
      if (at < P->row_ptr[i]) return PETSC_FALSE; /* of a row before */
      from[at] = (int32_t)k;
    }
  }
  return PETSC_TRUE;
}

/* Ids of an order that is not the natural one, NULL else */
static PetscErrorCode MatTCOrderGet(IS order, PetscBool natural, PetscInt m, int32_t **ids)
{
  const PetscInt *indices;

  PetscFunctionBegin;
  *ids = NULL;
  if (natural) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, ids));
  PetscCall(ISGetIndices(order, &indices));
  for (PetscInt i = 0; i < m; i++) (*ids)[i] = (int32_t)indices[i];
  PetscCall(ISRestoreIndices(order, &indices));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc takes the function away from factors whose rows come in nodes; that of the matrix, another MATSEQAIJ, reads the same arrays */
static PetscErrorCode MatTCLetRowsBeRead(Mat F, Mat A)
{
  PetscErrorCodeFn *f;

  PetscFunctionBegin;
  PetscCall(MatGetOperation(F, MATOP_GET_ROW_IJ, &f));
  if (f) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOperation(A, MATOP_GET_ROW_IJ, &f));
  PetscCall(MatSetOperation(F, MATOP_GET_ROW_IJ, f));
  PetscCall(MatGetOperation(A, MATOP_RESTORE_ROW_IJ, &f));
  PetscCall(MatSetOperation(F, MATOP_RESTORE_ROW_IJ, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCFactorPatternRestore(tc_factors_pattern *P)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(P->row_ptr));
  PetscCall(PetscFree(P->col));
  PetscCall(PetscFree(P->from));
  PetscCall(PetscFree(P->rows));
  PetscCall(PetscFree(P->cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  F: a factor of MATSOLVERPETSC of A by these orders, ILU or, if `symmetric`, ICC, factored symbolically. *done: is it laid out as its source says, and small enough for 32 bits? Else there is nothing to restore
*/
PetscErrorCode MatTCFactorPatternGet(Mat F, Mat A, PetscBool symmetric, IS rows, IS cols, tc_factors_pattern *P, PetscBool *done)
{
  const PetscInt *i, *j, *ia, *ja, *r, *c;
  PetscInt        m;
  PetscInt64      nnz, *end;
  int32_t        *row_ptr, *col, *from, *place, *own_rows, *own_cols;
  PetscBool       got_factor, got, natural_rows, natural_cols;
  IS              cols_back;
  MatInfo         info;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatGetInfo(F, MAT_LOCAL, &info));
  if (!symmetric) PetscCall(MatTCLetRowsBeRead(F, A));
  PetscCall(MatGetRowIJ(F, 0, PETSC_FALSE, symmetric, &m, &i, &j, &got_factor)); /* as they are: MATSEQSBAIJ would expand its blocks, MATSEQAIJ put nodes together */
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &got));
  nnz = !got_factor ? 0 : symmetric ? 2 * (PetscInt64)i[m] - m : (PetscInt64)info.nz_used;
  if (got_factor && got && nnz < INT32_MAX) {
    PetscCall(PetscMalloc1(m + 1, &row_ptr));
    PetscCall(PetscMalloc1(nnz, &col));
    PetscCall(PetscMalloc1(nnz, &from));
    PetscCall(PetscMalloc2(m, &end, m, &place));
    PetscCall(ISIdentity(rows, &natural_rows));
    PetscCall(ISIdentity(cols, &natural_cols));
    PetscCall(MatTCOrderGet(rows, (PetscBool)(natural_rows && natural_cols), m, &own_rows));
    PetscCall(MatTCOrderGet(cols, (PetscBool)(natural_rows && natural_cols), m, &own_cols));
    *P = (tc_factors_pattern){.num_rows = (int32_t)m, .row_group = 1, .nnz = nnz, .row_ptr = row_ptr, .col = col, .from = from, .rows = own_rows, .cols = own_cols};
    PetscCall(ISInvertPermutation(cols, PETSC_DECIDE, &cols_back));
    PetscCall(ISGetIndices(rows, &r));
    PetscCall(ISGetIndices(cols_back, &c));
    *done = symmetric ? MatTCMirrorUpperRows(m, i, j, place, row_ptr, col) : (PetscBool)(MatTCFindUpperRows(m, i, j, nnz, end) && MatTCMergeTriangles(m, i, j, end, row_ptr, col));
    if (*done) *done = MatTCPlaceEntries(P, symmetric, ia, ja, r, c, place, from);
    PetscCall(ISRestoreIndices(cols_back, &c));
    PetscCall(ISRestoreIndices(rows, &r));
    PetscCall(ISDestroy(&cols_back));
    PetscCall(PetscFree2(end, place));
    if (!*done) PetscCall(MatTCFactorPatternRestore(P));
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &ia, &ja, &got));
  PetscCall(MatRestoreRowIJ(F, 0, PETSC_FALSE, symmetric, &m, &i, &j, &got_factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
