/*
  16-bit tensor-core fragments with sums in single precision, dense and 2:4 sparse. Lane 4 * g + t of a warp.
    A  dense 16 x 16: registers hold the columns 2 t and 2 t + 1 of row g, of row g + 8, and 8 columns further on of both. 2:4 sparse, 16 x 32: the same of the 16 stored
       columns; the lanes with t = 0 and 1 say which they are (tc_bcsr.h, choice)
    B  16 or 32 rows, 8 columns: registers hold the rows 2 t and 2 t + 1 of column g, and those 8, 16, 24 further on
    C  16 x 8: columns 2 t and 2 t + 1 of row g, and of row g + 8
  The tensor core aligns the products of an instruction to the largest and cuts off what is below: no fixed order of additions tells the bits.
*/
#pragma once
#include "tc_device.cuh"

/* Since PTX ISA 8.5 the plain form is deprecated */
#if CUDART_VERSION >= 12050
  #define TC_MMA_SPARSE "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32."
#else
  #define TC_MMA_SPARSE "mma.sp.sync.aligned.m16n8k32.row.col.f32."
#endif

struct tc_mma_narrow_accumulator {
  float c[4];
};

/* C = A B + C of 16 columns of A; needs sm_80 */
template <bool bf16>
__device__ __forceinline__ void tc_mma_m16n8k16(tc_mma_narrow_accumulator &acc, const uint4 &a, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
  if constexpr (bf16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}

/* C = A B + C of 32 columns of A, 2:4 sparse; needs sm_80 */
template <bool bf16>
__device__ __forceinline__ void tc_mma_sparse_m16n8k32(tc_mma_narrow_accumulator &acc, const uint4 &a, uint32_t choice, uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3)
{
#if __CUDA_ARCH__ >= 800
  if constexpr (bf16)
    asm(TC_MMA_SPARSE "bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(choice));
  else
    asm(TC_MMA_SPARSE "f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(choice));
#else
  __trap();
#endif
}
