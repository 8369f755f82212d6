/*
  tc_backend - what the plan needs from the place where a matrix lives: memory, the conversion into packed formats, and launchers. One table per backend:
  backend_host.c (always there) and backend_cuda.cu (in the CUDA library, opened on demand through tc_backend_cuda()).

  Pointers called "local" belong to the backend's memory space. Nothing but upload(), download(), release(), synchronize() and what says so may wait for the device.
*/
#pragma once
#include "tc_exchange.h"
#include "tc_factor.h"
#include "tc_survey.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TC_TURNED_ROWS  = 256, // what rows of a block that was turned are rounded up to
  TC_SHARED_BYTES = 256
};

/*
  z = A x (y == NULL) or z = y + sign A x, sign 1 or -1; y may be z. x [num_cols], y and z [num_rows], all local and of the kernel's scalar. `view` is the format's struct with
  local pointers. Enqueues one launch and neither allocates nor synchronises. `early`: what is in front of it on the stream writes nothing that belongs to the matrix, nor does what
  is in front of that, unless it ends before. The launch may then begin when the kernel in front does, and wait for it when it comes to x, y and z; else it has to wait before it reads
  anything.
*/
typedef tc_status (*tc_spmv_fn)(const void *view, const void *x, const void *y, void *z, int sign, int early, tc_stream stream);

/* A matrix as products straight from CSR read it, all local */
typedef struct {
  const tc_csr_local *rows;
  tc_scalar           scalar; // of values and vectors
  const void         *val;    // [nnz] of that scalar
  const int32_t      *perm;   // [nnz], where in `val` the value of an entry is; NULL: there
  /* The host's alone */
  const int32_t *node;      // [num_nodes + 1], the first row of each group of rows with the same columns; NULL: not known
  int32_t        num_nodes;
  const uint8_t *kind;      // not NULL: the matrix is the transpose of `rows`. [num_cols], 0 for a column without entries, else 1; none has so many that it is summed by segments
  double        *sums;      // [num_cols] for such a product where z is y
} tc_csr_matrix;

/* What products straight from CSR keep, of a matrix of so many entries */
typedef struct {
  void    *scratch; // local, zeros before the first product, which nobody else uses
  int64_t *told;    // [2], of the host's memory that kernels reach, too: what a product has found out, tc_told() and the number of segments; 0 before
  int32_t  pattern; // a number for the pattern, above zero, another one than those before it
} tc_spmv_csr_memory;

/* Of that pattern so many parts, runs of rows and segments of long ones, have found a place in `scratch` */
static inline int64_t tc_told(int32_t pattern, int32_t parts)
{
  return ((int64_t)pattern << 32) + parts;
}

/* Their number, as far as products have told by now, which nobody waits for; less than zero: not yet */
static inline int32_t tc_parts_told(const tc_spmv_csr_memory *memory)
{
  const int64_t told = __atomic_load_n(memory->told, __ATOMIC_ACQUIRE); // what was written before is read after it

  return told >> 32 == memory->pattern ? (int32_t)told : -1;
}

/* And that of segments, once the number of parts is known */
static inline int32_t tc_segments_told(const tc_spmv_csr_memory *memory)
{
  return tc_parts_told(memory) >= 0 ? (int32_t)((const volatile int64_t *)memory->told)[1] : 0;
}

/* One row of the kernel table */
typedef struct {
  const char   *name; // name of the launcher
  tc_op         op;
  const char   *format;
  tc_arithmetic arithmetic;
  tc_precision  precision;
  int           min_sm; // smallest compute capability it runs on, 10 * major + minor; 0 for the host
  tc_spmv_fn    spmv;
  tc_scalar     scalar; // of the vectors
} tc_kernel;

/* One row of the table of converters: how a format's arrays are made where the matrix lives */
typedef struct {
  const char *format;
  /*
    Packs a local pattern: the view of the format with local pointers, all but the values, byte for byte what the format's host builder makes; *slab is the one
    allocation that holds it, for release(). NULL: the host packs, the plan uploads. May wait for the device. On failure nothing stays allocated.
  */
  tc_status (*build)(const tc_csr_local *A, void *view, void **slab, tc_stream stream);
  /* Takes the values from csr_val [nnz], local, in the order of CSR. Enqueues; neither allocates nor synchronises */
  tc_status (*refill)(const void *view, const double *csr_val, tc_stream stream);
  /* A part of the refill that comes next, ahead of it: the format then knows how many bytes these values take, as far as a sample tells. Waits for the device. NULL: there is no such part */
  tc_status (*search)(const void *view, const double *csr_val, tc_stream stream);
  /*
    Writes the values of the last refill anew, in fewer bytes if that can be, which takes a few products' time. Enqueues. NULL: there is no such way. Errors: TC_ERR_MEMORY, after which all is as before
  */
  tc_status (*collect)(const void *view, tc_stream stream);
} tc_converter;

typedef struct {
  size_t      size; // of this table, for whoever opens a library of another build
  const char *name; // "host" or "cuda"
  /* Is the backend usable? On failure tc_last_error() of this table says why. `sm` gets the compute capability of the current device (0: host) */
  tc_status (*probe)(int *sm);
  /*
    NULL on the host. What the first conversions and products with vectors of that scalar would else wait for is there afterwards: memory in the pool, kernels on the current
    device, which are loaded at their first launch otherwise. Once a process, device and scalar; for that device no more is done later, whether it failed or not. Waits for the device.
  */
  tc_status (*warm_up)(tc_scalar scalar);
  /*
    NULL on the host, these two. Begins to load, in a thread of its own, what products of two sparse matrices of the scalar, with 64-bit indices if `wide`, wait for when they come first, on the
    current device; so many processes share the processors. TC_ERR_UNSUPPORTED: these are too few. The other waits for it, and tells whether all went well.
  */
  tc_status (*load_products_begin)(tc_scalar scalar, int wide, int processes);
  tc_status (*load_products_end)(void);
  /* All kernels of the backend, a table of *num rows */
  const tc_kernel *(*kernels)(int *num);
  /*
    z = A x (y == NULL) or z = y + sign A x straight from CSR, else as tc_spmv_fn, with the same bits. The first: bytes of scratch. The host has it in F64 alone, and needs no memory.
    Enqueues
  */
  size_t (*spmv_csr_scratch)(int32_t num_rows, int64_t nnz);
  tc_status (*spmv_csr)(const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, const tc_spmv_csr_memory *memory, tc_stream stream);
  /*
    NULL on the host, these three. Products by cuSPARSE, whose order of additions is its own, with a matrix whose arrays stay where they are. The first, with the vectors of the first
    product, makes what they need, and may wait for the device. z = A x (y == NULL) or z = y + sign A x: enqueues. The last waits for all of them; NULL is fine
  */
  tc_status (*cusparse_prepare)(const tc_csr_matrix *A, const void *x, void *z, void **kept, tc_stream stream);
  tc_status (*cusparse_multiply)(void *kept, const void *x, const void *y, void *z, int sign, tc_stream stream);
  void (*cusparse_release)(void *kept);
  /* The kernels for dense blocks; those of a format are in the order of preference, which the plan may know better */
  const tc_spmm_kernel *(*spmm_kernels)(int *num);
  /* One row for every format */
  const tc_converter *(*converters)(int *num);
  tc_status (*alloc)(size_t bytes, void **local); // bytes == 0 gives NULL
  void (*release)(void *local);                   // NULL is fine
  /* The same for what is enqueued on one stream, before it is given back there; neither waits */
  tc_status (*take)(size_t bytes, void **local, tc_stream stream);
  tc_status (*give)(void *local, tc_stream stream);
  /* TC_SHARED_BYTES of the host's memory that kernels reach, too. It is given back when none of them will any more; NULL is fine */
  tc_status (*share)(void **memory);
  void (*unshare)(void *memory);
  /*
    NULL on the host, these two. Copies between the device and these bytes of the host's memory, which is anybody's, need not pass through the driver's own until unpin(), which follows every pin() that has succeeded.
    Not worth it below a few megabytes. Errors: TC_ERR_UNSUPPORTED, where it takes longer than it saves, or the system or what else is pinned does not let it be; nothing is told to last_error()
  */
  tc_status (*pin)(const void *host, size_t bytes);
  void (*unpin)(const void *host);
  tc_status (*upload)(void *local, const void *host, size_t bytes, tc_stream stream);
  tc_status (*download)(void *host, const void *local, size_t bytes, tc_stream stream);
  tc_status (*zero)(void *local, size_t bytes, tc_stream stream);
  tc_status (*copy)(void *local, const void *from, size_t bytes, tc_stream stream); // within the local memory
  /*
    The survey of local rows without values, for products with dense blocks, in two steps. The first only enqueues. What it began has to be ended: the second waits for it,
    and no longer, but not if it has no `rows`, then nothing comes of it but that memory is freed. The list, for release(), may be made by what is enqueued. The rows are
    those of the first step, wherever they are now; the stream may be another.
  */
  tc_status (*survey_begin)(const tc_csr_view *rows, void **begun, tc_stream stream);
  tc_status (*survey_end)(void *begun, const tc_csr_view *rows, tc_survey *survey, tc_stream stream);
  /*
    The pattern of A^T, local: t_row_ptr [num_cols + 1], t_col [nnz], and perm [nnz], which entry of A each of its entries is. The entries of a row of A^T ascend by
    row of A. May wait for the device.
  */
  tc_status (*transpose)(const tc_csr_local *A, int32_t *t_row_ptr, int32_t *t_col, int32_t *perm, tc_stream stream);
  /* to[i] = from[perm[i]], i < n, of that scalar, all local. Enqueues */
  tc_status (*gather)(int64_t n, const int32_t *perm, tc_scalar scalar, const void *from, void *to, tc_stream stream);
  /* to[i + j * ld_to] = from[i + j * ld_from], i < rows, j < n, all local; exact, or rounded as tc_scalar says. Enqueue */
  tc_status (*widen)(int64_t rows, int64_t n, const float *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream);
  tc_status (*round)(int64_t rows, int64_t n, const double *from, int64_t ld_from, float *to, int64_t ld_to, tc_stream stream);
  /* to[i] = from[i], i < n, local: ids that fit. Enqueues */
  tc_status (*narrow)(int64_t n, const int64_t *from, int32_t *to, tc_stream stream);
  /*
    to[i + j * ld_to] = from[j + i * ld_from], i < rows, j < n: a dense block out of its transpose, all local; `to` is aligned to 16 bytes, ld_to a multiple of TC_TURNED_ROWS,
    and rows up to there become zeros. Enqueues. Errors: TC_ERR_LIMIT
  */
  tc_status (*turn)(int32_t rows, int32_t n, const double *from, int64_t ld_from, double *to, int64_t ld_to, tc_stream stream);
  /*
    NULL on the host, these two. Rows of a column-major block, one after the other: to[j + i * n] = from[row[i] + j * ld], i < num, j < n, of row i if there is no list. And such
    rows, slots, added: to[row[i] + j * ld] += from[j + s * n] summed over s = slot[e], first_slot[i] <= e < first_slot[i + 1], of which there is one at least; no row comes twice. All
    local, of that scalar. Enqueue
  */
  tc_status (*pick_rows)(int64_t num, const int64_t *row, int64_t n, tc_scalar scalar, const void *from, int64_t ld, void *to, tc_stream stream);
  tc_status (*add_rows)(int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, int64_t n, tc_scalar scalar, const void *from, void *to, int64_t ld, tc_stream stream);
  /*
    NULL on the host. The values on the diagonal of A, which every row has, become diag[i], or `all` if there is no diag, or that is added to them. All local, of that scalar, in which
    `all` is exact. Enqueues
  */
  tc_status (*set_diagonal)(const tc_csr_local *A, tc_scalar scalar, const void *diag, double all, int add, void *val, tc_stream stream);
  /*
    NULL on the host, these five. What can be said of a square A with columns that ascend, in *facts, zeros before; mirror [nnz]: where the entry is that mirrors each one, -1: nowhere; or NULL if that is not wanted, and then
    `lone` says nothing. Enqueues. The rows by level, in natural order within one, a row's being one more than the highest of the rows that it refers to in the lower or the `upper` triangle: order [num_rows], local. If
    A.row_group is more than 1, rows of a node, which share their columns then, stay together, where the first of them in the direction is, the last first if `upper`. If *num_levels is more than `most`, 1 or more, it was
    not counted to the end, and `order` is undefined. Waits for the device.
    Diagonals and places of a pattern whose orders are there, of a square A with a full diagonal; scratch [2 * num_rows]. If one of the values at diagonal [num_rows] is zero, *zero, zero before, is
    not. One sweep over the rows, see tc_sweep.h. All local. These three enqueue
  */
  tc_status (*sweep_facts)(const tc_csr_local *A, int32_t *mirror, tc_sweep_facts *facts, tc_stream stream);
  tc_status (*order_rows)(const tc_csr_local *A, int upper, int32_t most, int32_t *order, int32_t *num_levels, tc_stream stream);
  tc_status (*sweep_pattern)(const tc_csr_local *A, const tc_sweep_pattern *pattern, int32_t *scratch, tc_stream stream);
  tc_status (*find_zero)(int32_t num_rows, const int32_t *diagonal, tc_scalar scalar, const void *val, int32_t *zero, tc_stream stream);
  tc_status (*sweep)(const tc_csr_local *A, const tc_sweep *sweep, tc_stream stream);
  /* NULL on the host, these three: sweeps with blocks of vectors by rows, and what turns blocks, see tc_sweep.h. All local. Enqueue */
  tc_status (*sweep_block)(const tc_csr_local *A, const tc_sweep_block *sweep, tc_stream stream);
  tc_status (*put_block)(const tc_block_rows *how, const void *block, void *rows, tc_stream stream);
  tc_status (*take_block)(const tc_block_rows *how, void *block, const void *rows, tc_stream stream);
  /*
    NULL on the host, see tc_factor.h. An incomplete factor of an A with a full diagonal. All local. Enqueues. Errors: TC_ERR_LIMIT
  */
  tc_status (*factor)(const tc_csr_local *A, const tc_factor *factor, tc_stream stream);
  /*
    NULL on the host. The blocks on the diagonal of a square A of as many rows as a multiple of bs, one after the other, each by rows, [num_rows bs], 0 where there is no entry. All local, of that scalar. Enqueues
  */
  tc_status (*get_blocks)(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *val, void *blocks, tc_stream stream);
  /*
    NULL on the host. Sums of the absolute values of each block of bs x bs, [nnz / bs^2], row by row, if A consists of blocks: the same columns in bs rows, whole blocks; else *irregular,
    zero before, is not, and sums are undefined. As many rows as a multiple of bs, all local, of that scalar. Enqueues
  */
  tc_status (*collapse)(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *val, void *sums, int32_t *irregular, tc_stream stream);
  /*
    NULL on the host, these two, which go on with such sums, entries of a graph. to = what they and those of its transpose add up to; if one of them has no other, *lone, zero before, is not, and
    `to` is undefined there. And sums, in place, of a square A, times what makes ones of the diagonal, row's first, column's then: 1 / d to the power of a half, of zeros zero; factors
    [num_rows / bs] is scratch. All local, of that scalar. Enqueue
  */
  tc_status (*mirror)(const tc_csr_local *A, int32_t bs, tc_scalar scalar, const void *sums, void *to, int32_t *lone, tc_stream stream);
  tc_status (*scale_graph)(const tc_csr_local *A, int32_t bs, tc_scalar scalar, void *sums, void *factors, tc_stream stream);
  /*
    NULL on the host. Whole pieces of these bytes, local, are from now on what the device's cache replaces first: of 16 bytes if they are to be kept, else of 128, undefined
    afterwards. Enqueues
  */
  tc_status (*demote)(void *local, size_t bytes, int keep, tc_stream stream);
  const tc_exchange *exchange; // NULL on the host
  /* Work enqueued on `stream` from now on starts after everything enqueued on `other` so far; no host wait */
  tc_status (*wait)(tc_stream stream, tc_stream other);
  tc_status (*synchronize)(tc_stream stream);
  tc_status (*drain)(void); // NULL on the host. Waits for everything that has been enqueued on the device, on whatever stream
  /* NULL on the host, these three: is the stream being captured, so that nothing may wait? And the time that the device takes between two points of a stream;
     time_end() waits for the second, and frees the stopwatch, on failure too. */
  int (*capturing)(tc_stream stream);
  tc_status (*time_begin)(tc_stream stream, void **stopwatch);
  tc_status (*time_end)(tc_stream stream, void *stopwatch, double *ms);
  void (*clear_error)(void); // NULL on the host. Forgets what the runtime keeps of an error of somebody else, who has not asked for it
  const char *(*last_error)(void);
  int (*fault_arm)(tc_fault_point point, int n); // each library has its own fault table
} tc_backend;

/* A survey at once */
static inline tc_status tc_survey_now(const tc_backend *backend, const tc_csr_view *rows, tc_survey *survey, tc_stream stream)
{
  void           *begun;
  const tc_status status = backend->survey_begin(rows, &begun, stream);

  survey->list = NULL;
  return status == TC_OK ? backend->survey_end(begun, rows, survey, stream) : status;
}

const tc_backend *tc_backend_host(void);

/* The only symbol of the CUDA library */
const tc_backend *tc_backend_cuda(void);
typedef const tc_backend *(*tc_backend_cuda_fn)(void);

#ifdef __cplusplus
}
#endif
