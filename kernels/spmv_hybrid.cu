/* Products of a tc_hybrid with a vector of doubles: spmv_hybrid.cuh */
#include "spmv_hybrid.cuh"

extern "C" tc_status tc_load_spmv_hybrid(tc_scalar scalar)
{
  return scalar == TC_SCALAR_F64 ? tc_load_ways<double>() : TC_OK;
}

extern "C" tc_status tc_spmv_hybrid_mma_f64(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<true, false, double>("tc_spmv_hybrid_mma_f64", view, x, y, z, sign, early, stream);
}

extern "C" tc_status tc_spmv_hybrid_fma_f64(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<false, false, double>("tc_spmv_hybrid_fma_f64", view, x, y, z, sign, early, stream);
}
