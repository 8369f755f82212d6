#include "row_major.cuh"
#include "spmm_csr.cuh"

constexpr auto    tc_csr_name = "tc_spmm_csr_f64";
constexpr int32_t tc_csr_part = 64; // columns

static int32_t tc_csr_width(int32_t n)
{
  return n <= 4 ? 4 : n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : 128;
}

/*
  Is it better to multiply with tc_csr_part columns and then with the rest? Where rows of B are more than the L2 cache holds, fewer columns find more there of what is read again, and rows shorter than
  128 are not filled up (docs/performance-sectors.md, docs/performance-waits.md).
*/
static tc_status tc_csr_in_parts(const tc_csr_view *A, int32_t n, bool *parts)
{
  const tc_device_size *size;

  TC_CALL(tc_size_of_device(tc_csr_name, &size));
  *parts = n > tc_csr_part && tc_csr_is_far(A, TC_SPMM_COLUMNS, size);
  return TC_OK;
}

/* Can the kernel read the transpose of B as it is? */
static bool tc_csr_in_place(const tc_spmm_args *args)
{
  return args->b_transposed && !args->b_f32 && reinterpret_cast<uintptr_t>(args->b) % sizeof(double2) == 0 && args->ldb % 2 == 0 && args->ldb <= INT32_MAX / (int32_t)sizeof(double);
}

/*
  Is column-major B better read where it is, an element at a time, than turned first? Small products are as long as their launches, so one less is worth more sectors for each entry; up to so many
  multiplications, and elements of C (docs/performance-waits.md, "Small blocks"). Others are where B has many more rows than A has entries, as with the transposes of off-diagonal blocks, so that turning moves
  16 bytes for each of many elements that nobody needs (docs/performance-sectors.md, "More rows of B than entries"). Long and heavy rows take several times as long then.
*/
constexpr int     tc_csr_direct          = 8; // columns at most
constexpr int64_t tc_csr_direct_products = 1 << 20, tc_csr_direct_sums = 1 << 16;
constexpr double  tc_csr_rows_per_entry  = 3.5; // of B

static bool tc_csr_needs_little(const tc_csr_view *A)
{
  return tc_csr_rows_per_entry * static_cast<double>(A->nnz) <= A->num_cols && A->nnz < (int64_t)tc_csr_batch * A->num_rows;
}

static bool tc_csr_reads_columns(const tc_csr_view *A, const tc_spmm_args *args)
{
  const bool is_small = args->n <= tc_csr_direct && args->n * A->nnz <= tc_csr_direct_products && args->n * (int64_t)A->num_rows <= tc_csr_direct_sums;

  return !args->b_transposed && !args->b_f32 && A->num_segments + A->num_heavy == 0 && (is_small || tc_csr_needs_little(A));
}

/* The copy of B, unless it is read where it is, and the sums of segments. Of two parts the first, which is the wider one, needs as much as both. */
extern "C" size_t tc_spmm_csr_scratch(const void *view, const tc_spmm_args *args)
{
  const tc_csr_view *A    = static_cast<const tc_csr_view *>(view);
  tc_spmm_args       part = *args;
  bool               parts;

  if (tc_csr_in_parts(A, args->n, &parts) == TC_OK && parts) part.n = tc_csr_part;
  const bool copies = !tc_csr_in_place(&part) && !tc_csr_reads_columns(A, &part);

  return sizeof(double) * static_cast<size_t>(tc_csr_width(part.n)) * ((copies ? static_cast<size_t>(A->num_cols) : 0) + A->num_segments);
}

/*
  B is read when the kernel before has ended; what is read earlier, where rows begin, was there at the survey, which the host waited for, or has been made anew before the columns were, by a kernel that
  ended before that one did; not so if there are no columns.
*/
static tc_status tc_csr_read_columns(const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  const tc_csr_rows B = {reinterpret_cast<const char *>(args->b), sizeof(double), static_cast<int64_t>(sizeof(double)) * args->ldb};

  if (tc_csr_needs_little(A)) return tc_launch_csr_apart<tc_csr_shape<TC_PRECISION_F64, tc_csr_direct, false, false, 4, 0, true>>(tc_csr_name, A, args, B, stream);
  return tc_launch_csr_shape<tc_csr_shape<TC_PRECISION_F64, tc_csr_direct, true, false>>(tc_csr_name, A, args, B, nullptr, nullptr, A->nnz > 0, stream);
}

/* The product without its first columns */
static tc_spmm_args tc_without_columns(tc_spmm_args args, int32_t columns)
{
  const int64_t apart = args.b_transposed ? columns : columns * args.ldb;

  args.b = args.b_f32 ? reinterpret_cast<const double *>(tc_floats_of(&args) + apart) : args.b + apart;
  args.c += columns * args.ldc;
  args.n -= columns;
  return args;
}

template <int width>
static tc_status tc_spmm_csr_width(const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  const bool  in_place = tc_csr_in_place(args);
  tc_csr_rows B        = {reinterpret_cast<const char *>(args->scratch), sizeof(double) * width, sizeof(double)};

  if (in_place) B = {reinterpret_cast<const char *>(args->b), static_cast<uint32_t>(sizeof(double) * args->ldb), sizeof(double)};
  else TC_CALL(tc_row_major<width>(tc_csr_name, A->num_cols, args, stream));
  return tc_launch_csr<TC_PRECISION_F64, width>(tc_csr_name, A, args, B, in_place ? args->scratch : args->scratch + static_cast<size_t>(width) * A->num_cols, nullptr, stream, !in_place);
}

static tc_status tc_spmm_csr_columns(const tc_csr_view *A, const tc_spmm_args *args, cudaStream_t stream)
{
  if (tc_csr_reads_columns(A, args)) return tc_csr_read_columns(A, args, stream);
  switch (tc_csr_width(args->n)) {
  case 4: return tc_spmm_csr_width<4>(A, args, stream);
  case 8: return tc_spmm_csr_width<8>(A, args, stream);
  case 16: return tc_spmm_csr_width<16>(A, args, stream);
  case 32: return tc_spmm_csr_width<32>(A, args, stream);
  case 64: return tc_spmm_csr_width<64>(A, args, stream);
  default: return tc_spmm_csr_width<128>(A, args, stream);
  }
}

extern "C" tc_status tc_spmm_csr_f64(const void *view, const tc_spmm_args *args, void *stream)
{
  const tc_csr_view *A    = static_cast<const tc_csr_view *>(view);
  const cudaStream_t s    = static_cast<cudaStream_t>(stream);
  tc_spmm_args       part = *args;
  bool               parts;

  TC_CALL(tc_csr_in_parts(A, args->n, &parts));
  if (!parts) return tc_spmm_csr_columns(A, args, s);
  part.n = tc_csr_part;
  TC_CALL(tc_spmm_csr_columns(A, &part, s));
  part = tc_without_columns(*args, tc_csr_part);
  return tc_spmm_csr_columns(A, &part, s);
}
