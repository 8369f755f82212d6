/*
  The host backend: plain memory, and the formats' own loops as kernels.
*/
#include "../../kernels/tc_backend.h"
#include "../../kernels/tc_dasp.h"
#include "../format/bcsr.h"
#include "../format/bittcf_host.h"
#include "../format/dasp_host.h"
#include "../format/hybrid_host.h"
#include "../format/hybrid_values.h"
#include "spmm_host.h"
#include "spmv_host.h"
#include "survey.h"
#include <stdlib.h>
#include <string.h>

static tc_status host_probe(int *sm)
{
  *sm = 0;
  return TC_OK;
}

/* The formats' own products with vectors, as kernels in which tests can ask for a fault */
#define HOST_SPMV(kernel, product) \
  static tc_status kernel(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream) \
  { \
    (void)early, (void)stream; \
    TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host kernel: a fault was asked for"); \
    return product(view, x, y, z, sign); \
  }

HOST_SPMV(dasp_spmv, tc_dasp_spmv_host)
HOST_SPMV(hybrid_spmv, tc_hybrid_spmv_host)

static const tc_kernel *host_kernels(int *num)
{
  static const tc_kernel kernels[] = {
    {"tc_dasp_spmv_host", TC_OP_SPMV, "dasp", TC_ARITHMETIC_HOST, TC_PRECISION_F64, 0, dasp_spmv, TC_SCALAR_F64},
    {"tc_hybrid_spmv_host", TC_OP_SPMV, "hybrid", TC_ARITHMETIC_HOST, TC_PRECISION_F16, 0, hybrid_spmv, TC_SCALAR_F64},
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static size_t host_spmv_csr_scratch(int32_t num_rows, int64_t nnz)
{
  (void)num_rows, (void)nnz;
  return 0;
}

static tc_status host_spmv_csr(const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream)
{
  (void)stream;
  *memory->told = tc_told(memory->pattern, 0); // long rows are like others here
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host kernel: a fault was asked for");
  TC_CHECK(A->scalar == TC_SCALAR_F64, TC_ERR_UNSUPPORTED, "the host multiplies floats over packed formats alone");
  tc_spmv_csr_host(A, x, y, z, sign);
  return TC_OK;
}

static tc_status dasp_refill_host(const void *view, const double *csr_val)
{
  const tc_dasp *D = view;

  for (int64_t i = 0; i < D->num_slots; ++i) D->val[i] = D->map[i] >= 0 ? csr_val[D->map[i]] : 0.0;
  return TC_OK;
}

/* The formats' own refills, in the same way */
#define HOST_REFILL(kernel, refill) \
  static tc_status kernel(const void *view, const double *csr_val, tc_stream stream) \
  { \
    (void)stream; \
    TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host refill: a fault was asked for"); \
    return refill(view, csr_val); \
  }

HOST_REFILL(dasp_refill, dasp_refill_host)
HOST_REFILL(hybrid_refill, tc_hybrid_refill_host)
HOST_REFILL(bittcf_refill, tc_bittcf_refill_host)
HOST_REFILL(bcsr_refill, tc_bcsr_refill_host)

static tc_status hybrid_collect(const void *view, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_ALLOC), TC_ERR_MEMORY, "host collection: a fault was asked for");
  return tc_hybrid_collect_host(view);
}

/* The formats' own products with dense blocks, in the same way */
#define HOST_SPMM(kernel, product) \
  static tc_status kernel(const void *view, const tc_spmm_args *args, tc_stream stream) \
  { \
    TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host kernel: a fault was asked for"); \
    return product(view, args, stream); \
  }

HOST_SPMM(csr_spmm, tc_spmm_csr_host)
HOST_SPMM(csr_spmm_f32, tc_spmm_csr_f32_host)
HOST_SPMM(csr_spmm_bf16, tc_spmm_csr_bf16_host)
HOST_SPMM(csr_spmm_f16, tc_spmm_csr_f16_host)
HOST_SPMM(csr_transposed_spmm, tc_spmm_csr_transposed_host)
HOST_SPMM(bittcf_spmm, tc_spmm_bittcf_host)
HOST_SPMM(bcsr_spmm, tc_spmm_bcsr_host)

/* Dense blocks are multiplied straight from CSR, but for narrow precisions, in which the values have to be packed */
static const tc_spmm_kernel *host_spmm_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
    {"tc_spmm_csr_host", "csr", TC_ARITHMETIC_HOST, TC_PRECISION_F64, 0, NULL, tc_spmm_csr_host_scratch, csr_spmm, 1, 0},
    {"tc_spmm_csr_f32_host", "csr", TC_ARITHMETIC_HOST, TC_PRECISION_F32, 0, NULL, tc_spmm_csr_narrow_host_scratch, csr_spmm_f32, 0, 0},
    {"tc_spmm_csr_f32_host", "csr", TC_ARITHMETIC_HOST, TC_PRECISION_TF32, 0, NULL, tc_spmm_csr_narrow_host_scratch, csr_spmm_f32, 0, 0},
    {"tc_spmm_csr_bf16_host", "csr", TC_ARITHMETIC_HOST, TC_PRECISION_BF16, 0, NULL, tc_spmm_csr_narrow_host_scratch, csr_spmm_bf16, 0, 0},
    {"tc_spmm_csr_f16_host", "csr", TC_ARITHMETIC_HOST, TC_PRECISION_F16, 0, NULL, tc_spmm_csr_narrow_host_scratch, csr_spmm_f16, 0, 0},
    {"tc_spmm_csr_transposed_host", "csr_transposed", TC_ARITHMETIC_HOST, TC_PRECISION_F64, 0, NULL, tc_spmm_csr_transposed_host_scratch, csr_transposed_spmm, 0, 0},
    {"tc_spmm_bittcf_host", "bittcf", TC_ARITHMETIC_HOST, TC_PRECISION_F32, 0, NULL, tc_spmm_bittcf_host_scratch, bittcf_spmm, 0, 0},
    {"tc_spmm_bittcf_host", "bittcf", TC_ARITHMETIC_HOST, TC_PRECISION_TF32, 0, NULL, tc_spmm_bittcf_host_scratch, bittcf_spmm, 0, 0},
    {"tc_spmm_bittcf_host", "bittcf", TC_ARITHMETIC_HOST, TC_PRECISION_BF16, 0, NULL, tc_spmm_bittcf_host_scratch, bittcf_spmm, 0, 0},
    {"tc_spmm_bittcf_host", "bittcf", TC_ARITHMETIC_HOST, TC_PRECISION_F16, 0, NULL, tc_spmm_bittcf_host_scratch, bittcf_spmm, 0, 0},
    {"tc_spmm_bcsr_host", "bcsr", TC_ARITHMETIC_HOST, TC_PRECISION_BF16, 0, NULL, tc_spmm_bcsr_host_scratch, bcsr_spmm, 0, 0},
    {"tc_spmm_bcsr_host", "bcsr", TC_ARITHMETIC_HOST, TC_PRECISION_F16, 0, NULL, tc_spmm_bcsr_host_scratch, bcsr_spmm, 0, 0},
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

/* Nothing to build: what the formats build is in place already */

static const tc_converter *host_converters(int *num)
{
  static const tc_converter converters[] = {
    {"dasp",   NULL, dasp_refill,   NULL, NULL          },
    {"hybrid", NULL, hybrid_refill, NULL, hybrid_collect},
    {"bittcf", NULL, bittcf_refill, NULL, NULL          },
    {"bcsr",   NULL, bcsr_refill,   NULL, NULL          },
  };

  *num = (int)(sizeof converters / sizeof converters[0]);
  return converters;
}

static tc_status host_alloc(size_t bytes, void **local)
{
  *local = NULL;
  if (bytes == 0) return TC_OK;
  if (!tc_fault(TC_FAULT_ALLOC)) *local = tc_host_alloc(bytes);
  TC_CHECK(*local != NULL, TC_ERR_MEMORY, "no host memory for %zu bytes", bytes);
  return TC_OK;
}

static tc_status host_take(size_t bytes, void **local, tc_stream stream)
{
  (void)stream;
  return host_alloc(bytes, local);
}

static tc_status host_give(void *local, tc_stream stream)
{
  (void)stream;
  free(local);
  return TC_OK;
}

static tc_status host_share(void **memory)
{
  return host_alloc(TC_SHARED_BYTES, memory);
}

static tc_status host_copy(void *to, const void *from, size_t bytes, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_UPLOAD), TC_ERR_DEVICE, "host copy: a fault was asked for");
  if (bytes > 0) memcpy(to, from, bytes);
  return TC_OK;
}

static tc_status host_zero(void *local, size_t bytes, tc_stream stream)
{
  (void)stream;
  if (bytes > 0) memset(local, 0, bytes);
  return TC_OK;
}

static tc_status host_survey_begin(const tc_csr_view *rows, void **begun, tc_stream stream)
{
  tc_survey *survey = NULL;
  tc_status  status;

  (void)stream;
  *begun = NULL;
  if (!tc_fault(TC_FAULT_ALLOC)) survey = malloc(sizeof *survey);
  TC_CHECK(survey != NULL, TC_ERR_MEMORY, "no host memory for a survey");
  status = tc_survey_host(rows, survey);
  if (status == TC_OK) *begun = survey;
  else free(survey);
  return status;
}

static tc_status host_survey_end(void *begun, const tc_csr_view *rows, tc_survey *survey, tc_stream stream)
{
  (void)stream;
  if (rows) *survey = *(tc_survey *)begun;
  else free(((tc_survey *)begun)->list);
  free(begun);
  return TC_OK;
}

/* A counting sort */
static tc_status host_transpose(const tc_csr_local *A, int32_t *t_row_ptr, int32_t *t_col, int32_t *perm, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host transpose: a fault was asked for");
  memset(t_row_ptr, 0, ((size_t)A->num_cols + 1) * sizeof *t_row_ptr);
  for (int64_t e = 0; e < A->nnz; ++e) ++t_row_ptr[A->col[e] + 1];
  for (int32_t j = 0; j < A->num_cols; ++j) t_row_ptr[j + 1] += t_row_ptr[j];
  for (int32_t i = 0; i < A->num_rows; ++i) {
    for (int32_t e = A->row_ptr[i]; e < A->row_ptr[i + 1]; ++e) {
      const int32_t place = t_row_ptr[A->col[e]]++; // ends where the next row begins

      t_col[place] = i;
      perm[place]  = e;
    }
  }
  memmove(t_row_ptr + 1, t_row_ptr, (size_t)A->num_cols * sizeof *t_row_ptr);
  t_row_ptr[0] = 0;
  return TC_OK;
}

static tc_status host_gather(int64_t n, const int32_t *perm, tc_scalar scalar, const void *from, void *to, tc_stream stream)
{
  const double *from_wide = from;
  const float  *from_narrow = from;
  double       *to_wide = to;
  float        *to_narrow = to;

  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host gather: a fault was asked for");
  for (int64_t i = 0; i < n && scalar == TC_SCALAR_F64; ++i) to_wide[i] = from_wide[perm[i]];
  for (int64_t i = 0; i < n && scalar == TC_SCALAR_F32; ++i) to_narrow[i] = from_narrow[perm[i]];
  return TC_OK;
}

static tc_status host_widen(int64_t rows, int64_t n, const float *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host widening: a fault was asked for");
  for (int64_t j = 0; j < n; ++j, from += ld_from, to += ld_to) {
    for (int64_t i = 0; i < rows; ++i) to[i] = from[i];
  }
  return TC_OK;
}

static tc_status host_round(int64_t rows, int64_t n, const double *from, int64_t ld_from, float *to, int64_t ld_to, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host rounding: a fault was asked for");
  for (int64_t j = 0; j < n; ++j, from += ld_from, to += ld_to) {
    for (int64_t i = 0; i < rows; ++i) to[i] = (float)from[i];
  }
  return TC_OK;
}

static tc_status host_narrow(int64_t n, const int64_t *from, int32_t *to, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host narrowing: a fault was asked for");
  for (int64_t i = 0; i < n; ++i) to[i] = (int32_t)from[i];
  return TC_OK;
}

static tc_status host_turn(int32_t rows, int32_t n, const double *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream)
{
  enum { TILE = 16 };

  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host transposition of a block: a fault was asked for");
  for (int64_t first = 0; first < ld_to; first += TILE) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = first; i < first + TILE; ++i) to[i + j * ld_to] = i < rows ? from[j + i * ld_from] : 0.0;
    }
  }
  return TC_OK;
}

static tc_status host_wait(tc_stream stream, tc_stream other)
{
  (void)stream;
  (void)other;
  return TC_OK;
}

static tc_status host_synchronize(tc_stream stream)
{
  (void)stream;
  return TC_OK;
}

const tc_backend *tc_backend_host(void)
{
  static const tc_backend backend = {sizeof(tc_backend), "host", host_probe, NULL, NULL, NULL, host_kernels, host_spmv_csr_scratch, host_spmv_csr, NULL, NULL, NULL, host_spmm_kernels, host_converters, host_alloc, free, host_take, host_give, host_share, free, NULL, NULL, host_copy, host_copy, host_zero, host_copy, host_survey_begin, host_survey_end, host_transpose, host_gather, host_widen, host_round, host_narrow, host_turn, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, host_wait, host_synchronize, NULL, NULL, NULL, NULL, NULL, tc_last_error, tc_fault_arm};

  return &backend;
}
