/*
  The host backend: plain memory, and the formats' own loops as kernels.
*/
#include "../../kernels/tc_backend.h"
#include "../format/dasp_host.h"
#include <stdlib.h>
#include <string.h>

static tc_status host_probe(int *sm)
{
  *sm = 0;
  return TC_OK;
}

static tc_status dasp_spmv(const void *view, const double *x, const double *y, double *z, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host kernel: a fault was asked for");
  return tc_dasp_spmv_host(view, x, y, z);
}

static const tc_kernel *host_kernels(int *num)
{
  static const tc_kernel kernels[] = {
    {"tc_dasp_spmv_host", TC_OP_SPMV, "dasp", TC_ARITHMETIC_HOST, TC_PRECISION_F64, 0, dasp_spmv},
  };

  *num = (int)(sizeof kernels / sizeof kernels[0]);
  return kernels;
}

static tc_status host_alloc(size_t bytes, void **local)
{
  *local = NULL;
  if (bytes == 0) return TC_OK;
  if (!tc_fault(TC_FAULT_ALLOC)) *local = malloc(bytes);
  TC_CHECK(*local != NULL, TC_ERR_MEMORY, "no host memory for %zu bytes", bytes);
  return TC_OK;
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

static tc_status host_refill(int64_t num_slots, const int32_t *map, const double *csr_val, double *slot_val, tc_stream stream)
{
  (void)stream;
  TC_CHECK(!tc_fault(TC_FAULT_LAUNCH), TC_ERR_DEVICE, "host refill: a fault was asked for");
  for (int64_t i = 0; i < num_slots; ++i) slot_val[i] = map[i] >= 0 ? csr_val[map[i]] : 0.0;
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
  static const tc_backend backend = {"host", host_probe, host_kernels, host_alloc, free, host_copy, host_copy, host_zero, host_refill, host_wait, host_synchronize, tc_last_error, tc_fault_arm};

  return &backend;
}
