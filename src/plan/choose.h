/*
  tc_choose - what multiplies a matrix: the format, before it is packed, and the kernel, when its statistics are known.
*/
#pragma once
#include "../../kernels/tc_backend.h"
#include "../format/format.h"

enum {
  TC_MAX_WHY        = 160,
  TC_TRIAL_PRODUCTS = 32, // products of a pattern before it is worth timing
  TC_TRIAL_REPEATS  = 3
};

/* The format for a device of that compute capability (0: the host) if none is asked for */
const char *tc_choose_format(int sm, tc_precision precision);

/*
  The row of the backend's kernel table for a packed matrix: `asked`, or for TC_ARITHMETIC_AUTO what the policy of the device says; `why` gets the reason. The first
  that reads values of that precision; all of a format give the same bits. Errors: TC_ERR_UNSUPPORTED
*/
tc_status tc_choose_kernel(const tc_backend *backend, int sm, const char *format, tc_arithmetic asked, tc_precision precision, const tc_stats *stats, const tc_kernel **kernel, char why[TC_MAX_WHY]);

/* What timing a product in two ways has shown */
typedef struct {
  double ours_ms, theirs_ms; // medians
  int    bound;              // theirs was not timed: it cannot be faster than this
  int    theirs;             // the other way is faster by so much that it is chosen
  double break_even;         // products after which a conversion of that many milliseconds is paid off; 0 if never
} tc_trial;

/* What a product from CSR takes at least on that device, where it comes from memory and not from the cache; 0: not known */
double tc_choose_csr_floor_ms(int sm, const tc_stats *stats);

void tc_choose_by_time(const double ours_ms[TC_TRIAL_REPEATS], const double theirs_ms[TC_TRIAL_REPEATS], double conversion_ms, tc_trial *trial);
