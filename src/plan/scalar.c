#include "scalar.h"
#include "plan.h"

tc_status tc_scalar_widen(const tc_backend *backend, tc_scalar scalar, int64_t n, const void *from, const double **wide, void **taken, tc_stream stream)
{
  tc_status status;

  *taken = NULL;
  *wide  = from;
  if (scalar == TC_SCALAR_F64) return TC_OK;
  *wide = NULL;
  TC_CALL(tc_from_backend(backend, backend->take((size_t)n * sizeof **wide, taken, stream)));
  *wide  = *taken;
  status = tc_from_backend(backend, backend->widen(n, 1, from, n, *taken, n, stream));
  if (status != TC_OK) {
    backend->give(*taken, stream);
    *taken = NULL;
  }
  return status;
}

tc_status tc_scalar_give(const tc_backend *backend, tc_status status, void *taken, tc_stream stream)
{
  const tc_status given = backend->give(taken, stream);

  return status != TC_OK ? status : tc_from_backend(backend, given);
}
