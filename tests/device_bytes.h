/*
  What tests of small kernels share: random numbers in either scalar, and arrays on the device between guard words, of which every byte is compared. One program, one backend.
*/
#pragma once
#include "device_util.h"
#include <stdint.h>

enum { DEVICE_BYTES_GUARD = 256 };

typedef struct {
  char  *block, *local;
  size_t bytes;
} device_bytes;

extern const tc_backend *device_bytes_backend; // NULL before device_bytes_open()

/* The library among the arguments, those that begin with a dash aside. NULL: no usable device */
const tc_backend *device_bytes_open(const char *program, int argc, char **args);

/* Of that many bytes, from `host` or, for NULL, poisoned */
device_bytes device_bytes_new(size_t bytes, const void *host);

/* Is it what is expected, whatever it is for NULL, with its guard words? Frees it */
int device_bytes_are(device_bytes *D, const void *expected);

int64_t random_below(int64_t n);
void   *bytes_new(size_t bytes); // for free(); ends the program if there are none

/* Arrays of a scalar on the host; random numbers are such whose sums are rounded */
double number_at(tc_scalar scalar, const void *array, int64_t i);
void   set_number(tc_scalar scalar, void *array, int64_t i, double number);
void  *numbers_new(tc_scalar scalar, int64_t n);
size_t bytes_of(tc_scalar scalar, int64_t n);

/* Counts; those that are not so are printed. The last line of a program, and its exit status */
void fact(int so, const char *what, tc_scalar scalar, int64_t num, int64_t n, const char *text);
int  facts_end(void);
