/*
  z = A x (y == NULL) or z = y + sign A x, sign 1 or -1, over the packed arrays of a tc_hybrid, on the host; x [num_cols], y and z [num_rows], y may be z. Needs no
  scratch arrays. Errors: TC_ERR_UNSUPPORTED, values by rows, which are for fragments.
  One binary serves every processor: AVX-512 or AVX2 with fused multiply-add where the processor has them, portable C elsewhere. All give the same bits.
*/
#pragma once
#include "../../kernels/tc_base.h"

tc_status tc_hybrid_spmv_host(const void *view, const double *x, const double *y, double *z, int sign);
