/*
  What calls of cuSPARSE share: what is given back at the end of a scope, and errors.
*/
#pragma once
#include "tc_base.h"
#include <cusparse.h>

/* Gives back what was made by a function of CUDA's with another one */
template <typename T, auto destroy>
struct tc_owned {
  T handle{};

  tc_owned()                            = default;
  tc_owned(const tc_owned &)            = delete;
  tc_owned &operator=(const tc_owned &) = delete;
  ~tc_owned()
  {
    if (handle) destroy(handle);
  }
};

static inline tc_status tc_cusparse(const char *what, cusparseStatus_t status)
{
  if (status == CUSPARSE_STATUS_SUCCESS) return TC_OK;
  return tc_fail(status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES ? TC_ERR_MEMORY : TC_ERR_DEVICE, "%s: %s", what, cusparseGetErrorString(status));
}
