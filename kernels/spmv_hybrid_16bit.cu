/* Products of a tc_hybrid that may have values of 16 bits with a vector of doubles: spmv_hybrid.cuh. Kernels of their own leave the others as fast as they are. */
#include "spmv_hybrid.cuh"

extern "C" tc_status tc_spmv_hybrid_mma_16bit(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<true, true, double>("tc_spmv_hybrid_mma_16bit", view, x, y, z, sign, early, stream);
}

extern "C" tc_status tc_spmv_hybrid_fma_16bit(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream)
{
  return tc_spmv_hybrid_of<false, true, double>("tc_spmv_hybrid_fma_16bit", view, x, y, z, sign, early, stream);
}
