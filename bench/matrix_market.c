#include "matrix_market.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum { MAX_LINE = 1024 };

typedef enum { GENERAL, SYMMETRIC, SKEW } symmetry;

/* A file while it is read, and what its head said */
typedef struct {
  const char *path;
  gzFile      file;
  long long   line; // number of the line in text
  char        text[MAX_LINE];
  int         is_pattern, is_integer;
  symmetry    symmetry;
  int32_t     num_rows, num_cols;
  int64_t     num_entries;
  int32_t    *row, *col; // [capacity], zero based triplets, those that the symmetry implies included
  double     *val;
  int64_t     num, capacity;
} reader;

#define READER_CHECK(condition, status, ...) \
  do { \
    if (!(condition)) return reader_fail(R, status, __VA_ARGS__); \
  } while (0)

static tc_status reader_fail(const reader *R, tc_status status, const char *what, const char *detail)
{
  return tc_fail(status, "%s:%lld: %s%s%s", R->path, R->line, what, detail ? ": " : "", detail ? detail : "");
}

/* Nothing more comes: is it the end of the file, or an error? */
static tc_status check_end(const reader *R)
{
  int         code;
  const char *text = gzerror(R->file, &code);

  READER_CHECK(code == Z_OK || code == Z_STREAM_END, TC_ERR_ARG, code == Z_BUF_ERROR ? "the compressed file is truncated" : "cannot be read", code == Z_ERRNO ? strerror(errno) : text);
  return TC_OK;
}

/* The next line into R->text, without its end; *end is set at the end of the file. A longer line is cut: only comments may be that long. */
static tc_status next_line(reader *R, int *end)
{
  size_t length;

  *end = gzgets(R->file, R->text, MAX_LINE) == NULL;
  if (*end) return check_end(R);
  ++R->line;
  length = strlen(R->text);
  if (length == 0 || R->text[length - 1] != '\n') {
    int c = gzgetc(R->file);

    if (c < 0) TC_CALL(check_end(R));
    READER_CHECK(c < 0 || c == '\n' || R->text[0] == '%', TC_ERR_ARG, "line too long", NULL);
    while (c >= 0 && c != '\n') c = gzgetc(R->file);
  }
  while (length > 0 && isspace((unsigned char)R->text[length - 1])) R->text[--length] = 0;
  return TC_OK;
}

/* The next line that is neither empty nor a comment */
static tc_status next_data_line(reader *R, int *end)
{
  do {
    TC_CALL(next_line(R, end));
  } while (!*end && (R->text[0] == 0 || R->text[0] == '%'));
  return TC_OK;
}

static tc_status read_banner(reader *R)
{
  char banner[32], object[32], layout[32], field[32], kind[32];
  int  end;

  TC_CALL(next_line(R, &end));
  READER_CHECK(!end && sscanf(R->text, "%31s %31s %31s %31s %31s", banner, object, layout, field, kind) == 5 && strcasecmp(banner, "%%MatrixMarket") == 0, TC_ERR_ARG, "no Matrix Market banner in the first line", NULL);
  READER_CHECK(strcasecmp(object, "matrix") == 0, TC_ERR_UNSUPPORTED, "object not supported, expected matrix", object);
  READER_CHECK(strcasecmp(layout, "coordinate") == 0, TC_ERR_UNSUPPORTED, "layout not supported, expected coordinate", layout);
  R->is_pattern = strcasecmp(field, "pattern") == 0;
  R->is_integer = strcasecmp(field, "integer") == 0;
  READER_CHECK(R->is_pattern || R->is_integer || strcasecmp(field, "real") == 0 || strcasecmp(field, "double") == 0, TC_ERR_UNSUPPORTED, "field not supported, expected real, integer or pattern", field);
  if (strcasecmp(kind, "general") == 0) R->symmetry = GENERAL;
  else if (strcasecmp(kind, "symmetric") == 0 || strcasecmp(kind, "hermitian") == 0) R->symmetry = SYMMETRIC; // the same for real values
  else if (strcasecmp(kind, "skew-symmetric") == 0) R->symmetry = SKEW;
  else return reader_fail(R, TC_ERR_UNSUPPORTED, "symmetry not supported", kind);
  return TC_OK;
}

/* An integer at *text, which moves behind it */
static tc_status parse_integer(reader *R, char **text, long long *value)
{
  char *end;

  errno  = 0;
  *value = strtoll(*text, &end, 10);
  READER_CHECK(end != *text && errno == 0 && (*end == 0 || isspace((unsigned char)*end)), TC_ERR_ARG, "expected an integer", *text);
  *text = end;
  return TC_OK;
}

static tc_status expect_end(reader *R, const char *text)
{
  while (isspace((unsigned char)*text)) ++text;
  READER_CHECK(*text == 0, TC_ERR_ARG, "unexpected text", text);
  return TC_OK;
}

static tc_status read_sizes(reader *R)
{
  char     *text = R->text;
  long long num_rows, num_cols, num_entries;
  int       end;

  TC_CALL(next_data_line(R, &end));
  READER_CHECK(!end, TC_ERR_ARG, "the file ends before the line of sizes", NULL);
  TC_CALL(parse_integer(R, &text, &num_rows));
  TC_CALL(parse_integer(R, &text, &num_cols));
  TC_CALL(parse_integer(R, &text, &num_entries));
  TC_CALL(expect_end(R, text));
  READER_CHECK(num_rows >= 0 && num_cols >= 0 && num_entries >= 0, TC_ERR_ARG, "a negative size", R->text);
  READER_CHECK(num_rows <= INT32_MAX && num_cols <= INT32_MAX && num_entries <= INT64_MAX / 64, TC_ERR_LIMIT, "too large for 32-bit indices", R->text);
  READER_CHECK(R->symmetry == GENERAL || num_rows == num_cols, TC_ERR_ARG, "a symmetric matrix must be square", R->text);
  R->num_rows    = (int32_t)num_rows;
  R->num_cols    = (int32_t)num_cols;
  R->num_entries = num_entries;
  return TC_OK;
}

static tc_status add_triplet(reader *R, int32_t row, int32_t col, double val)
{
  if (R->num == R->capacity) { // grown as lines arrive: a false count in the head must not ask for all the memory there is
    const size_t capacity = R->capacity ? 2 * (size_t)R->capacity : 1024;
    void        *rows = realloc(R->row, capacity * sizeof *R->row), *cols, *vals;

    if (rows) R->row = rows;
    cols = realloc(R->col, capacity * sizeof *R->col);
    if (cols) R->col = cols;
    vals = realloc(R->val, capacity * sizeof *R->val);
    if (vals) R->val = vals;
    READER_CHECK(rows && cols && vals, TC_ERR_MEMORY, "no host memory for the entries", NULL);
    R->capacity = (int64_t)capacity;
  }
  R->row[R->num]   = row;
  R->col[R->num]   = col;
  R->val[R->num++] = val;
  return TC_OK;
}

static tc_status read_entry(reader *R)
{
  char     *text = R->text, *end;
  long long row, col, integer;
  double    val = 1.0;

  TC_CALL(parse_integer(R, &text, &row));
  TC_CALL(parse_integer(R, &text, &col));
  if (row < 1 || row > R->num_rows || col < 1 || col > R->num_cols) {
    char what[96];

    snprintf(what, sizeof what, "an index out of range, expected 1 to %d and 1 to %d", (int)R->num_rows, (int)R->num_cols);
    return reader_fail(R, TC_ERR_ARG, what, R->text);
  }
  if (R->is_integer) {
    TC_CALL(parse_integer(R, &text, &integer));
    val = (double)integer;
  } else if (!R->is_pattern) {
    val = strtod(text, &end);
    READER_CHECK(end != text, TC_ERR_ARG, "expected a value", R->text);
    text = end;
  }
  TC_CALL(expect_end(R, text));
  READER_CHECK(R->symmetry != SKEW || row != col, TC_ERR_ARG, "a diagonal entry in a skew-symmetric matrix", R->text);
  TC_CALL(add_triplet(R, (int32_t)(row - 1), (int32_t)(col - 1), val));
  if (R->symmetry != GENERAL && row != col) TC_CALL(add_triplet(R, (int32_t)(col - 1), (int32_t)(row - 1), R->symmetry == SKEW ? -val : val));
  return TC_OK;
}

static tc_status read_all(reader *R)
{
  int end;

  R->file = gzopen(R->path, "rb");
  READER_CHECK(R->file != NULL, TC_ERR_ARG, "cannot be opened", strerror(errno ? errno : ENOMEM));
  gzbuffer(R->file, 1 << 18);
  TC_CALL(read_banner(R));
  TC_CALL(read_sizes(R));
  for (int64_t i = 0; i < R->num_entries; ++i) {
    TC_CALL(next_data_line(R, &end));
    if (end) return tc_fail(TC_ERR_ARG, "%s:%lld: the file is truncated: %lld of %lld entries", R->path, R->line, (long long)i, (long long)R->num_entries);
    TC_CALL(read_entry(R));
  }
  TC_CALL(next_data_line(R, &end));
  READER_CHECK(end, TC_ERR_ARG, "more entries than the line of sizes says", NULL);
  return TC_OK;
}

tc_status tc_matrix_market_read(const char *path, tc_matrix *A)
{
  reader    R = {.path = path};
  tc_status status;

  memset(A, 0, sizeof *A);
  errno  = 0;
  status = read_all(&R);
  if (status == TC_OK) status = tc_matrix_from_triplets(R.num_rows, R.num_cols, R.num, R.row, R.col, R.val, A);
  if (R.file) gzclose_r(R.file);
  free(R.row);
  free(R.col);
  free(R.val);
  return status;
}
