/*
  The table of device kernels. backend_cuda.cu includes it twice: for the prototypes and for the registry. A new kernel is one .cu file and one row here.
  min_sm says where a kernel can run; which one should run is the plan's choice (src/plan/plan.c).
*/
/*        op    format  arithmetic precision min_sm launcher             */
TC_KERNEL(SPMV, "dasp", MMA,       F64,      80,    tc_spmv_dasp_mma_f64)
TC_KERNEL(SPMV, "dasp", FMA,       F64,      60,    tc_spmv_dasp_fma_f64)
