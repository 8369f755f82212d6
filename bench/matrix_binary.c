#include "matrix_binary.h"
#include "matrix_market.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Numbers in the file are big endian. A class id comes first, that of a matrix or a vector here; others are near */
enum { CLASS_MATRIX = 1211216, CLASS_VECTOR = 1211214, CLASS_FIRST = 1211211, CLASS_LAST = 1211311, DENSE = -1, CHUNK = 1 << 14 };

typedef struct {
  const char *path;
  gzFile      file;
  int         wide; // indices of 64 bits
  int64_t     num_rows, num_cols, nnz;
  int64_t    *row_ptr;
  int32_t    *col;
  double     *val;
} reader;

#define READER_CHECK(condition, status, ...) \
  do { \
    if (!(condition)) return reader_fail(R, status, __VA_ARGS__); \
  } while (0)

static tc_status reader_fail(const reader *R, tc_status status, const char *format, ...)
{
  char    what[256];
  va_list values;

  va_start(values, format);
  vsnprintf(what, sizeof what, format, values);
  va_end(values);
  return tc_fail(status, "%s: %s", R->path, what);
}

static uint64_t big_endian(const unsigned char *bytes, int size)
{
  uint64_t number = 0;

  for (int b = 0; b < size; ++b) number = number << 8 | bytes[b];
  return number;
}

/* Up to `size` bytes; *got says how many there were before the end of the file */
static tc_status read_some(const reader *R, unsigned char *bytes, size_t size, size_t *got)
{
  int         code;
  const int   num  = gzread(R->file, bytes, (unsigned)size);
  const char *text = gzerror(R->file, &code);

  READER_CHECK(num >= 0 && (code == Z_OK || code == Z_STREAM_END), TC_ERR_ARG, "%s", code == Z_BUF_ERROR ? "the compressed file is truncated" : code == Z_ERRNO ? strerror(errno) : text);
  *got = (size_t)num;
  return TC_OK;
}

/* The next `num` indices, at most a chunk */
static tc_status read_indices(const reader *R, int64_t num, int64_t *index)
{
  unsigned char bytes[8 * CHUNK];
  const int     size = R->wide ? 8 : 4;
  size_t        got;

  TC_CALL(read_some(R, bytes, (size_t)num * (size_t)size, &got));
  READER_CHECK(got == (size_t)num * (size_t)size, TC_ERR_ARG, "the file is truncated");
  for (int64_t i = 0; i < num; ++i) index[i] = R->wide ? (int64_t)big_endian(bytes + 8 * i, 8) : (int32_t)big_endian(bytes + 4 * i, 4);
  return TC_OK;
}

/* Room for `num` more items behind `used` ones: grown as they arrive, since a false count in the head must not ask for all the memory there is */
static tc_status grow(const reader *R, void *array, int64_t used, int64_t num, size_t item_size, void **grown)
{
  int64_t capacity = 1024;

  while (capacity < used) capacity *= 2; // what it was
  *grown = array;
  if (array && used + num <= capacity) return TC_OK;
  while (capacity < used + num) capacity *= 2;
  *grown = realloc(array, (size_t)capacity * item_size);
  READER_CHECK(*grown != NULL, TC_ERR_MEMORY, "no host memory for the entries");
  return TC_OK;
}

static tc_status read_head(reader *R)
{
  unsigned char bytes[8];
  int64_t       head[3];
  size_t        got;

  TC_CALL(read_some(R, bytes, 4, &got));
  if (got == 4 && big_endian(bytes, 4) == 0) {
    R->wide = 1;
    TC_CALL(read_some(R, bytes, 4, &got));
  }
  READER_CHECK(got == 4 && big_endian(bytes, 4) != CLASS_VECTOR, TC_ERR_ARG, "%s", got == 4 ? "a vector, expected a matrix" : "the file is truncated");
  READER_CHECK(big_endian(bytes, 4) == CLASS_MATRIX, TC_ERR_ARG, "no matrix in PETSc's binary format");
  TC_CALL(read_indices(R, 3, head));
  READER_CHECK(head[2] != DENSE, TC_ERR_UNSUPPORTED, "a dense matrix, expected a sparse one");
  READER_CHECK(head[0] >= 0 && head[1] >= 0 && head[2] >= 0, TC_ERR_ARG, "a negative size: %lld rows, %lld columns, %lld nonzeros", (long long)head[0], (long long)head[1], (long long)head[2]);
  READER_CHECK(head[0] <= INT32_MAX && head[1] <= INT32_MAX && head[2] <= INT64_MAX / 64, TC_ERR_LIMIT, "too large for 32-bit indices: %lld rows, %lld columns, %lld nonzeros", (long long)head[0], (long long)head[1], (long long)head[2]);
  R->num_rows = head[0];
  R->num_cols = head[1];
  R->nnz      = head[2];
  return TC_OK;
}

static tc_status read_rows(reader *R)
{
  int64_t length[CHUNK], sum = 0;
  void   *grown;

  TC_CALL(grow(R, R->row_ptr, 0, 1, sizeof *R->row_ptr, &grown));
  R->row_ptr    = grown;
  R->row_ptr[0] = 0;
  for (int64_t first = 0; first < R->num_rows; first += CHUNK) {
    const int64_t num = R->num_rows - first < CHUNK ? R->num_rows - first : CHUNK;

    TC_CALL(read_indices(R, num, length));
    TC_CALL(grow(R, R->row_ptr, first + 1, num, sizeof *R->row_ptr, &grown));
    R->row_ptr = grown;
    for (int64_t i = 0; i < num; ++i) {
      READER_CHECK(length[i] >= 0 && length[i] <= R->num_cols, TC_ERR_ARG, "a row is longer than there are columns: row %lld, %lld entries, expected 0 to %lld", (long long)(first + i), (long long)length[i], (long long)R->num_cols);
      sum += length[i];
      R->row_ptr[first + i + 1] = sum;
    }
  }
  READER_CHECK(sum == R->nnz, TC_ERR_ARG, "the lengths of the rows do not add up to the number of nonzeros: %lld, expected %lld", (long long)sum, (long long)R->nnz);
  return TC_OK;
}

static tc_status read_columns(reader *R)
{
  int64_t index[CHUNK];
  void   *grown;

  for (int64_t first = 0; first < R->nnz; first += CHUNK) {
    const int64_t num = R->nnz - first < CHUNK ? R->nnz - first : CHUNK;

    TC_CALL(read_indices(R, num, index));
    TC_CALL(grow(R, R->col, first, num, sizeof *R->col, &grown));
    R->col = grown;
    for (int64_t e = 0; e < num; ++e) {
      READER_CHECK(index[e] >= 0 && index[e] < R->num_cols, TC_ERR_ARG, "a column out of range: entry %lld, column %lld, expected 0 to %lld", (long long)(first + e), (long long)index[e], (long long)R->num_cols - 1);
      R->col[first + e] = (int32_t)index[e];
    }
  }
  return TC_OK;
}

/* The values, and a look at what follows: nothing, another object, or as much again, for complex numbers are not marked as such */
static tc_status read_values(reader *R)
{
  unsigned char bytes[8 * CHUNK];
  int64_t       more = 0;
  size_t        got;
  void         *grown;

  for (int64_t first = 0; first < R->nnz; first += CHUNK) {
    const int64_t num = R->nnz - first < CHUNK ? R->nnz - first : CHUNK;

    TC_CALL(read_some(R, bytes, (size_t)num * 8, &got));
    READER_CHECK(got == (size_t)num * 8 || 8 * first + (int64_t)got != 4 * R->nnz, TC_ERR_UNSUPPORTED, "values in single precision, expected double");
    READER_CHECK(got == (size_t)num * 8, TC_ERR_ARG, "the file is truncated");
    TC_CALL(grow(R, R->val, first, num, sizeof *R->val, &grown));
    R->val = grown;
    for (int64_t e = 0; e < num; ++e) {
      const uint64_t bits = big_endian(bytes + 8 * e, 8);

      memcpy(R->val + first + e, &bits, sizeof bits);
    }
  }
  TC_CALL(read_some(R, bytes, 8, &got));
  if (got == 0 || (got >= 4 && big_endian(bytes, 4) >= CLASS_FIRST && big_endian(bytes, 4) <= CLASS_LAST)) return TC_OK;
  if (got == 8 && big_endian(bytes, 8) >= CLASS_FIRST && big_endian(bytes, 8) <= CLASS_LAST) return TC_OK;
  for (more = (int64_t)got; got > 0 && more <= 8 * R->nnz; more += (int64_t)got) TC_CALL(read_some(R, bytes, sizeof bytes, &got));
  READER_CHECK(more != 8 * R->nnz, TC_ERR_UNSUPPORTED, "complex values, expected real ones");
  return reader_fail(R, TC_ERR_ARG, "unexpected data behind the matrix");
}

/* Triplets of what was read: sorts the columns of every row, adds up what is double */
static tc_status assemble(const reader *R, tc_matrix *A)
{
  int32_t  *row = malloc((size_t)(R->nnz > 0 ? R->nnz : 1) * sizeof *row);
  tc_status status;

  READER_CHECK(row != NULL, TC_ERR_MEMORY, "no host memory for the entries");
  for (int64_t i = 0; i < R->num_rows; ++i) {
    for (int64_t e = R->row_ptr[i]; e < R->row_ptr[i + 1]; ++e) row[e] = (int32_t)i;
  }
  status = tc_matrix_from_triplets((int32_t)R->num_rows, (int32_t)R->num_cols, R->nnz, row, R->col, R->val, A);
  free(row);
  return status;
}

static tc_status read_all(reader *R, tc_matrix *A)
{
  R->file = gzopen(R->path, "rb");
  READER_CHECK(R->file != NULL, TC_ERR_ARG, "%s", strerror(errno ? errno : ENOMEM));
  gzbuffer(R->file, 1 << 18);
  TC_CALL(read_head(R));
  TC_CALL(read_rows(R));
  TC_CALL(read_columns(R));
  TC_CALL(read_values(R));
  return assemble(R, A);
}

tc_status tc_matrix_binary_read(const char *path, tc_matrix *A)
{
  reader    R = {.path = path};
  tc_status status;

  memset(A, 0, sizeof *A);
  errno  = 0;
  status = read_all(&R, A);
  if (R.file) gzclose_r(R.file);
  free(R.row_ptr);
  free(R.col);
  free(R.val);
  return status;
}

tc_status tc_matrix_file_read(const char *path, tc_matrix *A)
{
  unsigned char first[4];
  gzFile        file   = gzopen(path, "rb");
  int           binary = 0;

  if (file) {
    const int num = gzread(file, first, sizeof first);

    binary = num > 0 && first[0] == 0; // the class id of an object begins with a zero byte, text does not
    gzclose_r(file);
  }
  return binary ? tc_matrix_binary_read(path, A) : tc_matrix_market_read(path, A);
}
