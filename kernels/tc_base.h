/*
  The vocabulary of every layer: status codes, errors, host CSR patterns, fault points for tests. Plain C, knows neither PETSc nor CUDA.
*/
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
  #define TC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
  #define TC_PRINTF(fmt, args)
#endif

typedef enum {
  TC_OK = 0,
  TC_ERR_ARG,         // an argument breaks its contract
  TC_ERR_MEMORY,      // no memory left on the host or the device
  TC_ERR_LIMIT,       // more rows or nonzeros than the 32-bit ids of the formats can name
  TC_ERR_UNSUPPORTED, // no kernel for this operation, precision or device
  TC_ERR_DEVICE       // the device runtime or a launch reported an error
} tc_status;

/* Writes the text that tc_last_error() returns (one per thread) and returns `status` */
tc_status   tc_fail(tc_status status, const char *format, ...) TC_PRINTF(2, 3);
const char *tc_last_error(void);

#define TC_CHECK(condition, status, ...) \
  do { \
    if (!(condition)) return tc_fail(status, __VA_ARGS__); \
  } while (0)

#define TC_CALL(call) \
  do { \
    const tc_status tc_call_status = (call); \
    if (tc_call_status != TC_OK) return tc_call_status; \
  } while (0)

/*
  Fault points let a test make an allocation, an upload or a launch fail at will. tc_fault_arm(point, n) makes the n-th next pass (n >= 1) of that point fail
  once, n = 0 disarms it, and returns how many passes were left before that: 0 if the last fault has come. tc_fault() is true when the fault is due. One
  process-wide table per library.
*/
typedef enum { TC_FAULT_ALLOC, TC_FAULT_UPLOAD, TC_FAULT_LAUNCH, TC_FAULT_COUNT } tc_fault_point;
int tc_fault_arm(tc_fault_point point, int n);
int tc_fault(tc_fault_point point);

/*
  In which precision the values of a matrix are kept. Products with vectors are accumulated in double precision always, and take TF32 for F32; a kernel for them reads
  its precision and those before it. Products with dense blocks: tc_spmm.h.
*/
typedef enum { TC_PRECISION_F64, TC_PRECISION_F32, TC_PRECISION_TF32, TC_PRECISION_BF16, TC_PRECISION_F16 } tc_precision;

/*
  What the arrays of a program hold: the values of its matrix, vectors, dense blocks. F32 is widened, which is exact; all else is as for F64, and only the finished result is
  rounded, to the nearest, ties to even.
*/
typedef enum { TC_SCALAR_F64, TC_SCALAR_F32 } tc_scalar;

/* The pattern of a sparse matrix in compressed sparse row form, host side, columns ascending within a row */
typedef struct {
  int32_t        num_rows, num_cols;
  const int64_t *row_ptr; // [num_rows + 1]
  const int32_t *col;     // [row_ptr[num_rows]]
  int32_t        row_group; // rows of a node that are likely to share their columns, as PETSc's block size; 0 or 1: none
  tc_precision   precision; // in which a format is to keep the values
  const int32_t *row_order; // [num_rows] the row in each place, a permutation, for formats that may regroup rows; NULL: natural order, or what the format finds
} tc_csr;

/* The same where a backend keeps it */
typedef struct {
  int32_t        num_rows, num_cols;
  int64_t        nnz;
  const int32_t *row_ptr, *col; // [num_rows + 1], [nnz], local
  int32_t        row_group;
  tc_precision   precision;
  const int32_t *row_order; // local
} tc_csr_local;

typedef enum { TC_OP_SPMV } tc_op;

typedef void *tc_stream; // cudaStream_t by value, NULL is the legacy default stream; ignored by the host

/* How a kernel multiplies: tensor-core fragments, scalar fused multiply-add, or the host loop over the same packed arrays. All three give the same bits. */
typedef enum { TC_ARITHMETIC_AUTO, TC_ARITHMETIC_MMA, TC_ARITHMETIC_FMA, TC_ARITHMETIC_HOST } tc_arithmetic;

#ifdef __cplusplus
}
#endif
