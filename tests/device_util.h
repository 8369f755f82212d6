/*
  What the programs that run device kernels without PETSc share: the backend of a CUDA library, arrays between guard words, matrices in the form that a kernel for dense
  blocks wants. Any error ends the program with a text.
*/
#pragma once
#include "../bench/generators.h"
#include "../bench/oracle.h"
#include "../src/plan/plan.h"

enum { DEVICE_SKIPPED = 77 };

/* Prints the program's name, `what` and `text`, and ends it */
_Noreturn void device_die(const char *what, const char *text);
void           device_check(const tc_backend *backend, tc_status status, const char *what);

/* The backend of that library; NULL, with a line on standard output, where there is no device for it. *sm gets the compute capability. */
const tc_backend *device_open(const char *program, const char *library, int *sm);

/* n numbers on the device between guard words, `shift` of them more before the first: local is not aligned to 16 bytes if that is odd */
typedef struct {
  const tc_backend *backend;
  double           *block, *local;
  int64_t           n;
  int               shift;
} device_array;

/* `host` NULL: all NaN */
device_array device_new(const tc_backend *backend, int64_t n, int shift, const double *host);

/* Copies the numbers back; are the guard words still what they were? */
int  device_get(const device_array *D, double *host);
void device_set(const device_array *D, const double *host);
void device_free(device_array *D);

/* How often device_pack() builds and refills, the fastest counts; 4 unless a program says otherwise */
extern int device_repeats;

/* A matrix as the kernels of a format want it */
typedef struct {
  const tc_backend *backend;
  union {
    max_align_t align;
    tc_csr_view csr;
    char        bytes[TC_MAX_VIEW];
  } view;
  void *memory[8];
  int   num;
  double build_ms, refill_ms; // on the device, 0 where the host did it; of several the fastest
} device_matrix;

/* `format` and `precision` are those of a tc_spmm_kernel; for csr the survey is what is made. On the device if `on_device` and the backend can, else on the host. */
device_matrix device_pack(const tc_backend *backend, const char *format, tc_precision precision, const tc_matrix *A, int on_device);
/* A packed format on the device, from rows in an order, or NULL */
device_matrix device_pack_in_order(const tc_backend *backend, const char *format, tc_precision precision, const tc_matrix *A, const int32_t *row_order);
/* The same from the host arrays of a view that somebody has built */
device_matrix device_pack_view(const tc_backend *backend, const tc_format *format, const void *view, const tc_matrix *A);
/* Its values are collected, where the format has that */
void device_collect(const device_matrix *M, const char *format);
void device_unpack(device_matrix *M);

/* The scratch that a kernel wants for a product, all NaN, as whole numbers, which `args` gets, too: NULL where it wants none */
device_array device_scratch(const device_matrix *M, const tc_spmm_kernel *kernel, tc_spmm_args *args);

/* How many sums of segments of rows a product has for each column */
int64_t device_num_slots(const device_matrix *M, const char *format);

double device_seconds(void);
