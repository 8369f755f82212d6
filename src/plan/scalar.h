/*
  Arrays of a program in single precision beside kernels that read and write doubles: copies of them, widened, and results, rounded.
*/
#pragma once
#include "../../kernels/tc_backend.h"

/*
  `n` doubles in place of what `from` holds, local: the array itself, or a copy, whose memory is *taken, else NULL: give it back with tc_scalar_give() when what reads it has been
  enqueued. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE
*/
tc_status tc_scalar_widen(const tc_backend *backend, tc_scalar scalar, int64_t n, const void *from, const double **wide, void **taken, tc_stream stream);

/* Gives memory back; returns `status`, or what goes wrong here */
tc_status tc_scalar_give(const tc_backend *backend, tc_status status, void *taken, tc_stream stream);

/* to[i + j * rows] = from[j + i * ld], i < rows, j < n: a block of the transpose of a dense block, widened, on the host */
void tc_scalar_transpose(tc_scalar scalar, int32_t rows, int32_t n, const void *from, int64_t ld, double *to);

static inline size_t tc_scalar_bytes(tc_scalar scalar)
{
  return scalar == TC_SCALAR_F32 ? sizeof(float) : sizeof(double);
}
