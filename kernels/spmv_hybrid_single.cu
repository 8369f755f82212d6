/* Products of a tc_hybrid with a vector of floats: spmv_hybrid.cuh */
#include "spmv_hybrid.cuh"

extern "C" tc_status tc_load_spmv_hybrid_single(tc_scalar scalar)
{
  return scalar == TC_SCALAR_F32 ? tc_load_ways<float>() : TC_OK;
}

extern "C" tc_status tc_spmv_hybrid_mma_single(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<true, false, float>("tc_spmv_hybrid_mma_single", view, x, y, z, sign, early, stream);
}

extern "C" tc_status tc_spmv_hybrid_fma_single(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<false, false, float>("tc_spmv_hybrid_fma_single", view, x, y, z, sign, early, stream);
}
