#include "narrow_rows.cuh"
#include "spmm_csr_row_major.cuh"

/*
  The kernel of spmm_csr.cuh with a copy of B in a narrow precision. Products are made and added in double precision: gathering the rows of B is what takes time, so only they
  are rounded, A needs no scales, and the bits are defined (tc_spmm.h).
*/
static int32_t tc_csr_narrow_width(int32_t n)
{
  return n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : 128;
}

/* The pieces of the scratch: the copy of B, the tops of its columns, the sums of segments */
struct tc_csr_scratch {
  size_t top, partial, bytes; // where they begin

  tc_csr_scratch(tc_precision precision, const tc_csr_view *A, int32_t n)
  {
    const size_t width = tc_csr_narrow_width(n);

    top     = tc_value_bytes(precision) * width * A->num_cols;
    partial = top + sizeof(int32_t) * width;
    bytes   = partial + sizeof(double) * width * A->num_segments;
  }
};

template <tc_precision precision, int width>
static tc_status tc_csr_narrow_columns(const char *name, const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  const tc_csr_scratch at(precision, A, width);
  char                *scratch = reinterpret_cast<char *>(args->scratch);
  int32_t             *top     = reinterpret_cast<int32_t *>(scratch + at.top);

  TC_CALL(tc_narrow_rows<precision>(name, A->num_cols, args, width, 0, top, scratch, stream));
  return tc_launch_csr<precision, width>(name, A, args, {scratch, static_cast<uint32_t>(tc_value_bytes(precision) * width), static_cast<int64_t>(tc_value_bytes(precision))}, reinterpret_cast<double *>(scratch + at.partial), top, stream);
}

template <tc_precision precision>
static tc_status tc_csr_narrow(const char *name, const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_csr_view *A  = static_cast<const tc_csr_view *>(view);
  const cudaStream_t on = static_cast<cudaStream_t>(stream);

  switch (tc_csr_narrow_width(args->n)) {
  case 16: return tc_csr_narrow_columns<precision, 16>(name, A, args, on);
  case 32: return tc_csr_narrow_columns<precision, 32>(name, A, args, on);
  case 64: return tc_csr_narrow_columns<precision, 64>(name, A, args, on);
  default: return tc_csr_narrow_columns<precision, 128>(name, A, args, on);
  }
}

extern "C" size_t tc_spmm_csr_f32_scratch(const void *view, const tc_spmm_args *args)
{
  return tc_csr_scratch(TC_PRECISION_F32, static_cast<const tc_csr_view *>(view), args->n).bytes;
}

extern "C" size_t tc_spmm_csr_16bit_scratch(const void *view, const tc_spmm_args *args)
{
  return tc_csr_scratch(TC_PRECISION_BF16, static_cast<const tc_csr_view *>(view), args->n).bytes;
}

extern "C" tc_status tc_spmm_csr_f32(const void *view, const tc_spmm_args *args, void *stream)
{
  if (args->row_major_f32) return tc_csr_row_major("tc_spmm_csr_f32", static_cast<const tc_csr_view *>(view), args, static_cast<cudaStream_t>(stream));
  return tc_csr_narrow<TC_PRECISION_F32>("tc_spmm_csr_f32", view, args, stream);
}

extern "C" tc_status tc_spmm_csr_bf16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_csr_narrow<TC_PRECISION_BF16>("tc_spmm_csr_bf16", view, args, stream);
}

extern "C" tc_status tc_spmm_csr_f16(const void *view, const tc_spmm_args *args, void *stream)
{
  return tc_csr_narrow<TC_PRECISION_F16>("tc_spmm_csr_f16", view, args, stream);
}
