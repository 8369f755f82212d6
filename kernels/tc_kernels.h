/*
  The tables of device kernels and converters. backend_cuda.cu includes this for the prototypes and for the registries. A new kernel is one .cu file and one row.
  min_sm says where a kernel can run; which one should run is the plan's choice (src/plan/choose.c). The precision of a kernel for vectors is the narrowest of the
  values that it reads; it accumulates in double precision; its vectors hold numbers of `scalar`. A kernel for dense blocks reads exactly its precision: tc_spmm.h.
*/
#ifdef TC_KERNEL
/*        op    format    arithmetic precision scalar min_sm launcher             ; a matrix gets the first row for its vectors, or for F64, that reads its precision */
TC_KERNEL(SPMV, "dasp",   MMA,       F64,      F64,   80,    tc_spmv_dasp_mma_f64)
TC_KERNEL(SPMV, "dasp",   FMA,       F64,      F64,   70,    tc_spmv_dasp_fma_f64)
TC_KERNEL(SPMV, "hybrid", MMA,       TF32,     F64,   80,    tc_spmv_hybrid_mma_f64)
TC_KERNEL(SPMV, "hybrid", FMA,       TF32,     F64,   70,    tc_spmv_hybrid_fma_f64)
TC_KERNEL(SPMV, "hybrid", MMA,       F16,      F64,   80,    tc_spmv_hybrid_mma_16bit)
TC_KERNEL(SPMV, "hybrid", FMA,       F16,      F64,   70,    tc_spmv_hybrid_fma_16bit)
TC_KERNEL(SPMV, "hybrid", MMA,       TF32,     F32,   80,    tc_spmv_hybrid_mma_single)
TC_KERNEL(SPMV, "hybrid", FMA,       TF32,     F32,   70,    tc_spmv_hybrid_fma_single)
#endif

#ifdef TC_SPMM_KERNEL
/*             format    arithmetic precision min_sm suits                               A B^T floats scratch                                launcher           */
TC_SPMM_KERNEL("csr",    FMA,       F64,      70,    nullptr,                             1,    1,     tc_spmm_csr_scratch,                   tc_spmm_csr_f64)
TC_SPMM_KERNEL("csr",    FMA,       F32,      70,    nullptr,                             0,    1,     tc_spmm_csr_f32_scratch,               tc_spmm_csr_f32)
TC_SPMM_KERNEL("csr",    FMA,       TF32,     70,    nullptr,                             0,    1,     tc_spmm_csr_f32_scratch,               tc_spmm_csr_f32)
TC_SPMM_KERNEL("csr",    FMA,       BF16,     70,    nullptr,                             0,    1,     tc_spmm_csr_16bit_scratch,             tc_spmm_csr_bf16)
TC_SPMM_KERNEL("csr",    FMA,       F16,      70,    nullptr,                             0,    1,     tc_spmm_csr_16bit_scratch,             tc_spmm_csr_f16)
TC_SPMM_KERNEL("hybrid", FMA,       F64,      70,    nullptr,                             0,    0,     tc_spmm_hybrid_scratch,                tc_spmm_hybrid_f64)
TC_SPMM_KERNEL("bittcf", MMA,       F64,      80,    nullptr,                             1,    1,     tc_spmm_bittcf_scratch,                tc_spmm_bittcf_f64)
TC_SPMM_KERNEL("bittcf", MMA,       F64,      80,    tc_spmm_bittcf_cluster_suits,        0,    0,     tc_spmm_bittcf_cluster_scratch,        tc_spmm_bittcf_cluster_f64)
TC_SPMM_KERNEL("bittcf", MMA,       F32,      80,    nullptr,                             0,    1,     tc_spmm_bittcf_narrow_scratch,         tc_spmm_bittcf_f32)
TC_SPMM_KERNEL("bittcf", MMA,       TF32,     80,    nullptr,                             0,    1,     tc_spmm_bittcf_narrow_scratch,         tc_spmm_bittcf_tf32)
TC_SPMM_KERNEL("bittcf", MMA,       BF16,     80,    nullptr,                             0,    1,     tc_spmm_bittcf_narrow_scratch,         tc_spmm_bittcf_bf16)
TC_SPMM_KERNEL("bittcf", MMA,       F16,      80,    nullptr,                             0,    1,     tc_spmm_bittcf_narrow_scratch,         tc_spmm_bittcf_f16)
TC_SPMM_KERNEL("bittcf", MMA,       F32,      80,    tc_spmm_bittcf_narrow_cluster_suits, 0,    1,     tc_spmm_bittcf_narrow_cluster_scratch, tc_spmm_bittcf_cluster_f32)
TC_SPMM_KERNEL("bittcf", MMA,       TF32,     80,    tc_spmm_bittcf_narrow_cluster_suits, 0,    1,     tc_spmm_bittcf_narrow_cluster_scratch, tc_spmm_bittcf_cluster_tf32)
TC_SPMM_KERNEL("bittcf", MMA,       BF16,     80,    tc_spmm_bittcf_narrow_cluster_suits, 0,    1,     tc_spmm_bittcf_narrow_cluster_scratch, tc_spmm_bittcf_cluster_bf16)
TC_SPMM_KERNEL("bittcf", MMA,       F16,      80,    tc_spmm_bittcf_narrow_cluster_suits, 0,    1,     tc_spmm_bittcf_narrow_cluster_scratch, tc_spmm_bittcf_cluster_f16)
TC_SPMM_KERNEL("bcsr",   MMA,       BF16,     80,    nullptr,                             0,    1,     tc_spmm_bcsr_scratch,                  tc_spmm_bcsr_bf16)
TC_SPMM_KERNEL("bcsr",   MMA,       F16,      80,    nullptr,                             0,    1,     tc_spmm_bcsr_scratch,                  tc_spmm_bcsr_f16)
#endif

#ifdef TC_WARM_UP
/* What loads kernels ahead of their first launch: those of conversions and products with vectors of that scalar, not in 16 bits, the choice of nearly all programs */
TC_WARM_UP(tc_load_build_hybrid)
TC_WARM_UP(tc_load_refill_hybrid)
TC_WARM_UP(tc_load_spmv_hybrid)
TC_WARM_UP(tc_load_spmv_hybrid_single)
TC_WARM_UP(tc_load_transpose)
#endif

#ifdef TC_CONVERTER
/*           format    build            refill            search            collect            ; build nullptr: the host packs */
TC_CONVERTER("dasp",   nullptr,         tc_refill_dasp,   nullptr,          nullptr)
TC_CONVERTER("hybrid", tc_build_hybrid, tc_refill_hybrid, tc_search_hybrid, tc_collect_hybrid)
TC_CONVERTER("bittcf", tc_build_bittcf, tc_refill_bittcf, nullptr,          nullptr)
TC_CONVERTER("bcsr",   tc_build_bcsr,   tc_refill_bcsr,   nullptr,          nullptr)
#endif
