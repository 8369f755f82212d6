#include "format.h"
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
  #include <sys/mman.h>
#endif

static const tc_format *const formats[] = {&tc_format_dasp, &tc_format_hybrid, &tc_format_bittcf, &tc_format_bcsr};

const char *tc_precision_name(tc_precision precision)
{
  static const char *const names[] = {[TC_PRECISION_F64] = "fp64", [TC_PRECISION_F32] = "fp32", [TC_PRECISION_TF32] = "tf32", [TC_PRECISION_BF16] = "bf16", [TC_PRECISION_F16] = "fp16"};

  return names[precision];
}

const tc_format *const *tc_formats(int *num)
{
  *num = (int)(sizeof formats / sizeof formats[0]);
  return formats;
}

const tc_format *tc_format_find(const char *name)
{
  int num;

  tc_formats(&num);
  for (int i = 0; i < num; ++i) {
    if (strcmp(formats[i]->name, name) == 0) return formats[i];
  }
  return NULL;
}

enum { HUGE_PAGE = TC_HUGE_FROM / 2 };

void tc_ask_for_huge_pages(void *memory, size_t bytes)
{
  const size_t skip = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;

#ifdef MADV_HUGEPAGE
  if (memory != NULL && bytes >= skip + HUGE_PAGE) (void)madvise((char *)memory + skip, (bytes - skip) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); // a system that does not do so gives what it gives
#else
  (void)skip;
#endif
}

void *tc_host_alloc(size_t bytes)
{
  enum { LINE = 64 };
  const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
  void        *array = aligned_alloc(align, (bytes + align - 1) / align * align);

  if (align == HUGE_PAGE) tc_ask_for_huge_pages(array, bytes);
  return array;
}

tc_status tc_new_array(void *array, int64_t count, size_t item_size)
{
  void *pointer = tc_host_alloc(count > 0 ? (size_t)count * item_size : 1);

  TC_CHECK(pointer != NULL && !tc_fault(TC_FAULT_ALLOC), (free(pointer), TC_ERR_MEMORY), "no host memory for %lld entries of a packed array", (long long)count);
  memcpy(array, &pointer, sizeof pointer);
  return TC_OK;
}

void tc_format_destroy(const tc_format *format, void *view)
{
  tc_array  arrays[TC_MAX_ARRAYS];
  const int num = format->arrays(view, arrays);

  for (int i = 0; i < num; ++i) {
    void *pointer;

    memcpy(&pointer, (char *)view + arrays[i].offset, sizeof pointer);
    free(pointer);
  }
  memset(view, 0, format->view_size);
}

void tc_format_stats(const tc_format *format, const void *view, tc_stats *stats)
{
  int64_t *const bytes_of[] = {[TC_ROLE_INDEX] = &stats->index_bytes, [TC_ROLE_MAP] = &stats->map_bytes, [TC_ROLE_VALUE] = &stats->value_bytes, [TC_ROLE_SCRATCH] = &stats->scratch_bytes};
  tc_array       arrays[TC_MAX_ARRAYS];
  const int      num = format->arrays(view, arrays);

  memset(stats, 0, sizeof *stats);
  format->stats(view, stats);
  for (int i = 0; i < num; ++i) *bytes_of[arrays[i].role] += (int64_t)(arrays[i].count * arrays[i].item_size);
}

/* Is a column none of the matrix's? In one pass without a branch, that a processor makes by vectors: a sign says so */
static int has_column_outside(const tc_csr *A)
{
  const int64_t nnz = A->row_ptr[A->num_rows];
  uint32_t      sign = 0;

  for (int64_t k = 0; k < nnz; ++k) sign |= (uint32_t)A->col[k] | ((uint32_t)A->num_cols - 1 - (uint32_t)A->col[k]);
  return sign >> 31;
}

tc_status tc_csr_check(const tc_csr *A)
{
  TC_CHECK(A->num_rows >= 0 && A->num_cols >= 0, TC_ERR_ARG, "negative dimension: %d x %d", A->num_rows, A->num_cols);
  TC_CHECK(A->row_ptr[0] == 0, TC_ERR_ARG, "row_ptr starts at %lld, expected 0", (long long)A->row_ptr[0]);
  for (int32_t i = 0; i < A->num_rows; ++i) TC_CHECK(A->row_ptr[i] <= A->row_ptr[i + 1], TC_ERR_ARG, "row_ptr decreases at row %d: %lld > %lld", i, (long long)A->row_ptr[i], (long long)A->row_ptr[i + 1]);
  TC_CHECK(A->row_ptr[A->num_rows] <= INT32_MAX, TC_ERR_LIMIT, "%lld nonzeros, the packed formats name at most %d", (long long)A->row_ptr[A->num_rows], INT32_MAX);
  for (int32_t i = has_column_outside(A) ? 0 : A->num_rows; i < A->num_rows; ++i) {
    for (int64_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; ++k) TC_CHECK(A->col[k] >= 0 && A->col[k] < A->num_cols, TC_ERR_ARG, "column %d in row %d, expected 0 to %d", A->col[k], i, A->num_cols - 1);
  }
  return TC_OK;
}
