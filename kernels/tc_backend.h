/*
  tc_backend - what the plan needs from the place where a matrix lives: memory, the refill of packed values, and launchers. One table per backend:
  backend_host.c (always there) and backend_cuda.cu (in the CUDA library, opened on demand through tc_backend_cuda()).

  Pointers called "local" belong to the backend's memory space. Nothing but upload(), download() and synchronize() may wait for the device.
*/
#pragma once
#include "tc_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *tc_stream; // cudaStream_t by value, NULL is the legacy default stream; ignored by the host

/*
  z = A x (y == NULL) or z = y + A x; y may be z. x [num_cols], y and z [num_rows], all local. `view` is the format's struct with local pointers.
  Enqueues one launch and neither allocates nor synchronises.
*/
typedef tc_status (*tc_spmv_fn)(const void *view, const double *x, const double *y, double *z, tc_stream stream);

/* One row of the kernel table */
typedef struct {
  const char   *name; // name of the launcher
  tc_op         op;
  const char   *format;
  tc_arithmetic arithmetic;
  tc_precision  precision;
  int           min_sm; // smallest compute capability it runs on, 10 * major + minor; 0 for the host
  tc_spmv_fn    spmv;
} tc_kernel;

typedef struct {
  const char *name; // "host" or "cuda"
  /* Is the backend usable? On failure tc_last_error() of this table says why. `sm` gets the compute capability of the current device (0: host) */
  tc_status (*probe)(int *sm);
  /* All kernels of the backend, a table of *num rows */
  const tc_kernel *(*kernels)(int *num);
  tc_status (*alloc)(size_t bytes, void **local); // bytes == 0 gives NULL
  void (*release)(void *local);                   // NULL is fine
  tc_status (*upload)(void *local, const void *host, size_t bytes, tc_stream stream);
  tc_status (*download)(void *host, const void *local, size_t bytes, tc_stream stream);
  tc_status (*zero)(void *local, size_t bytes, tc_stream stream);
  /* slot_val[i] = csr_val[map[i]], or 0 where map[i] is negative; all local */
  tc_status (*refill)(int64_t num_slots, const int32_t *map, const double *csr_val, double *slot_val, tc_stream stream);
  /* Work enqueued on `stream` from now on starts after everything enqueued on `other` so far; no host wait */
  tc_status (*wait)(tc_stream stream, tc_stream other);
  tc_status (*synchronize)(tc_stream stream);
  const char *(*last_error)(void);
  void (*fault_arm)(tc_fault_point point, int n); // each library has its own fault table
} tc_backend;

const tc_backend *tc_backend_host(void);

/* The only symbol of the CUDA library */
const tc_backend *tc_backend_cuda(void);
typedef const tc_backend *(*tc_backend_cuda_fn)(void);

#ifdef __cplusplus
}
#endif
