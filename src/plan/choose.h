/*
  tc_choose - what multiplies a matrix: the format, before it is packed, and the kernel, when its statistics are known.
*/
#pragma once
#include "../../kernels/tc_backend.h"
#include "../format/format.h"

enum {
  TC_MAX_WHY        = 160,
  TC_COLLECT_AFTER  = 64, // products with the same values before all of them are looked at, which takes three to six (docs/performance-spmv.md, step 26)
  TC_TRIAL_PRODUCTS = 32, // products of a pattern, at least, before it is worth timing
  TC_TRIAL_COST_US  = 8000, // and what they must have taken: as much as the first trial of a process, 6.6 to 9 ms, most of which is cuSPARSE being loaded and prepared
  TC_TRIAL_ENTRIES  = 1000000, // from which on sums in place count, too: off-diagonal blocks have no other products, and small ones are over before cuSPARSE would be called
  TC_TRIAL_FIRST    = 2,  // of ours, which tell how many make a group
  TC_TRIAL_ROUNDS   = 3,  // groups of each that count
  TC_TRIAL_PASSES   = 2,  // times that cuSPARSE has to win
  TC_TRIAL_NOISE    = 1   // per cent of our time, the most that counts as noise; the least of three groups varied by 0.3 to 1% from one trial to the next
};

/* The format for a device of that compute capability (0: the host) if none is asked for */
const char *tc_choose_format(int sm, tc_precision precision);

/*
  The row of the backend's kernel table for a packed matrix: `asked`, or for TC_ARITHMETIC_AUTO what the policy of the device says; `why`, of TC_MAX_WHY characters unless it is NULL, gets the reason. The first
  that reads values of that precision, and vectors of that scalar, else of F64; all of a format give the same bits. Errors: TC_ERR_UNSUPPORTED
*/
tc_status tc_choose_kernel(const tc_backend *backend, int sm, const char *format, tc_arithmetic asked, tc_precision precision, tc_scalar scalar, const tc_stats *stats, const tc_kernel **kernel, char *why);

/* Of the hybrid format: would values that take as little as they can ask for another kernel there? */
int tc_choose_depends_on_values(int sm, const tc_stats *stats);

/* The least number of products with the same values after which all of them are worth looking at (tc_converter.collect), 0: never */
int tc_choose_collect_after(const tc_stats *stats);

/* What timing a product in two ways has shown */
typedef struct {
  double ours_ms, theirs_ms; // of one product, in the fastest group
  double noise_ms;           // how far behind the next group was, of those of ours or of theirs, whichever is more
  int    bound;              // theirs was not timed: it cannot be faster than this
  int    theirs;             // the other way is faster by more than noise: it is chosen
  int    settled;            // ours are so much faster that no other group will change that
  double break_even;         // products after which a conversion of that many milliseconds is paid off; 0 if never
} tc_trial;

/* What a product of cuSPARSE's, from CSR in that scalar, takes at least on that device: by its bytes where they come from memory, else by its calls; 0: not known */
double tc_choose_cusparse_floor_ms(int sm, tc_scalar scalar, const tc_stats *stats);

/* Times of one product, and of a conversion with its first values, and after how many products that is paid off; 0 if never */
typedef struct {
  double ours_ms, theirs_ms, conversion_ms, break_even;
} tc_modelled;

/* The same by a model of the device, for matrices that nobody times: of the hybrid format, whose values take so many bytes. Returns whether there is one. */
int tc_choose_by_model(int sm, tc_scalar scalar, const tc_stats *stats, int64_t value_bytes, tc_modelled *model);

/*
  Is it worth timing the other way at all? Columns packed into 2 bytes per entry or less, or into 2.5 with the lists of rows, are regular; of the 79 matrices of
  docs/gpu-report.md cuSPARSE was faster on none of these, and on some of those with more, from id2003_aug on, which has 2.38, and 2.67 with the lists.
*/
int tc_choose_in_doubt(const tc_stats *stats);

/*
  How many products that take so long make a group: 0.2 ms of them, at most 20. Each group has one more before it. A trial begins with TC_TRIAL_FIRST products and a group of ours, and
  ends there if they are at that floor (at most 24 products); else with a group of theirs behind one product, and one product of ours (47 in all) if that settles it; else with three more
  of theirs and, behind one that does not count, three of ours: at most 193 products of 10 us or less, 2 ms, 49 of 0.05 ms, 22 of more than 0.2 ms; and 168, 40 and 16 more where theirs win, which has to
  be seen again. Five of 10 us were too few to see 7%.
*/
int tc_choose_timed_products(double product_ms);

/* What so many groups of each, at least one, have shown. Whatever disturbs a group makes it slower: the fastest counts. */
void tc_choose_by_time(int rounds, const double ours_ms[], const double theirs_ms[], double conversion_ms, tc_trial *trial);
