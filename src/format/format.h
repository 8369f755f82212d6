/*
  tc_format - one packed storage scheme: how to build it on the host from a CSR pattern, which arrays it consists of, and how the host multiplies with it.
  The packed values are never built: they are gathered when they are needed, on whichever side (tc_converter.refill).
  A new format is one .c file, its view in kernels/, and one row in format.c.
*/
#pragma once
#include "../../kernels/tc_base.h"

enum { TC_MAX_ARRAYS = 16, TC_MAX_VIEW = 512 };

typedef enum {
  TC_ROLE_INDEX,  // built with the pattern, read by kernels
  TC_ROLE_MAP,    // built with the pattern, read by refills
  TC_ROLE_VALUE,  // filled by refills, read by kernels
  TC_ROLE_SCRATCH // zeroed once, owned by kernels
} tc_role;

/* One array of a format; `offset` is where its pointer sits in the view struct */
typedef struct {
  const char *name;
  tc_role     role;
  size_t      offset, count, item_size;
  int         in_detail; // read by the format's detail()
} tc_array;

/* What a packed matrix looks like, for views and cost models */
typedef struct {
  int64_t num_nonzeros, num_slots; // stored slots, padding included
  int64_t num_nonempty_rows;
  int64_t num_tile_rows; // rows of tiles, the work of scalar lanes
  int32_t longest_tile_row;
  double  mean_tile_row, scattered; // dasp: entries; share of entries whose x is far from that of the row above
  int64_t product_bytes; // hybrid: that a product touches, vectors included, if each slot has a value of slot_bytes
  int32_t slot_bytes;    // by the precision, or by what refills on a device have found
  int64_t column_bytes;  // of index_bytes, those that say which columns the slots have
  int64_t index_bytes, map_bytes, value_bytes, scratch_bytes; // of the packed arrays; a product reads index and value bytes; set by tc_format_stats()
  char    classes[128];                                        // the row classes in words, e.g. "long 2, medium 960, short 38, empty 0"
} tc_stats;

/* What only the arrays can tell, the values included */
typedef struct {
  int64_t value_bytes; // that a product reads
  char    kinds[128];  // e.g. "columns shift 90%, u8 10%, u16 0%, i32 0%; values d8 0%, f32 100%, f64 0%"
} tc_detail;

typedef struct tc_format {
  const char  *name;
  size_t       view_size;
  tc_precision precision; // the narrowest in which it can keep values; builds take tc_csr.precision up to that
  /* Allocates the INDEX and MAP arrays (tc_new_array()) and sets the counts; on failure nothing stays allocated */
  tc_status (*build)(const tc_csr *A, void *view);
  /* Describes the arrays; returns how many */
  int (*arrays)(const void *view, tc_array arrays[TC_MAX_ARRAYS]);
  void (*stats)(const void *view, tc_stats *stats); // all but the byte counts; reads the struct, no arrays
  /* Reads the arrays marked in_detail, in host memory. NULL: stats() says it all */
  void (*detail)(const void *view, tc_detail *detail);
  /* z = A x (y == NULL) or z = y + sign A x, sign 1 or -1, over the packed arrays with the processor's fused multiply-add: the host backend, and the oracle of the device kernels. NULL: for dense blocks only */
  tc_status (*spmv_host)(const void *view, const double *x, const double *y, double *z, int sign);
  tc_precision widest; // in which it can keep values; builds of wider ones fail
  /* Chooses the order of the values of a built view for kernels of that arithmetic; it is the host's until then, and refills follow it. NULL: there is one order */
  void (*arrange)(void *view, tc_arithmetic arithmetic);
  /* Gives a built view memory that the host and the backend share (tc_backend.share()), in which refills keep what they know of those before. NULL: they know nothing */
  void (*remember)(void *view, void *shared);
  /* tc_stats.product_bytes, which refills may change. NULL: they do not */
  int64_t (*product_bytes)(const void *view);
} tc_format;

extern const tc_format tc_format_dasp, tc_format_hybrid, tc_format_bittcf, tc_format_bcsr;

/*
  Memory for free(), which begins with a line of the processor's caches; large ones with a huge page, and of those, where the system gives them if asked (transparent huge pages), since of small pages
  each new one has to be filled with zeros apart, and a processor knows where few of them are. NULL: there is none
*/
void *tc_host_alloc(size_t bytes);

/* The same for memory that is there already and has not been written to; of that many bytes there is a huge page in it wherever it begins */
enum { TC_HUGE_FROM = 1 << 22 };
void tc_ask_for_huge_pages(void *memory, size_t bytes);

/* A new array from there into the pointer at `array`. Errors: TC_ERR_MEMORY */
tc_status tc_new_array(void *array, int64_t count, size_t item_size);

/* As the options of PETSc name it */
const char *tc_precision_name(tc_precision precision);

/* The table of formats, and a look-up by name (NULL: no such format) */
const tc_format *const *tc_formats(int *num);
const tc_format *tc_format_find(const char *name);

/* Frees the host arrays of a view and zeroes it */
void tc_format_destroy(const tc_format *format, void *view);

/* All of the statistics of a view */
void tc_format_stats(const tc_format *format, const void *view, tc_stats *stats);

/* Checks dimensions, monotone row_ptr, column range and the number of nonzeros; O(nnz). Errors: TC_ERR_ARG, TC_ERR_LIMIT */
tc_status tc_csr_check(const tc_csr *A);
