/*
  The 2:4 sparse tensor-core instruction for 16-bit numbers with sums in single precision. A (16 x 32): registers hold the 16 stored columns as those of tc_mma_m16n8k16() do; the
  lanes 4 * row and 4 * row + 1 say which columns they are (tc_bcsr.h, choice). B (32 x 8): two numbers of neighbouring k each, 2 * k and 2 * k + 1, and those 8, 16 and 24 further on.
*/
#pragma once
#include "tc_mma.cuh"

/* Since PTX ISA 8.5 the plain form is deprecated */
#if CUDART_VERSION >= 12050
  #define TC_MMA_SPARSE "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32."
#else
  #define TC_MMA_SPARSE "mma.sp.sync.aligned.m16n8k32.row.col.f32."
#endif

/* C = A B + C; needs sm_80 */
template <tc_precision precision>
__device__ __forceinline__ void tc_mma_sparse_m16n8k32(tc_mma_single_accumulator &acc, const uint4 &a, uint32_t choice, uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3)
{
#if __CUDA_ARCH__ >= 800
  if constexpr (precision == TC_PRECISION_BF16)
    asm(TC_MMA_SPARSE "bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(choice));
  else
    asm(TC_MMA_SPARSE "f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(choice));
#else
  __trap();
#endif
}
