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

static inline size_t tc_scalar_bytes(tc_scalar scalar)
{
  return scalar == TC_SCALAR_F32 ? sizeof(float) : sizeof(double);
}
