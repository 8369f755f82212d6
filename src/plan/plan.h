/*
  tc_plan - one matrix on one backend: chooses a row of the kernel table, holds the packed arrays, follows the source through its cache, multiplies.
*/
#pragma once
#include "../../kernels/tc_backend.h"
#include "../format/format.h"
#include "cache.h"
#include "choose.h"

/* Errors of a backend carry their text in the backend's library; brings it over */
static inline tc_status tc_from_backend(const tc_backend *backend, tc_status status)
{
  return status != TC_OK && backend->last_error != tc_last_error ? tc_fail(status, "%s", backend->last_error()) : status;
}

typedef struct tc_plan tc_plan;

typedef struct {
  const char   *format;     // name of the format, NULL: choose
  tc_arithmetic arithmetic; // TC_ARITHMETIC_AUTO: choose by device and matrix
  tc_precision  precision;  // of the packed values
  tc_scalar     scalar;     // of the values it is filled with, and of the vectors
} tc_plan_options;

/* Creates an empty plan; nothing is allocated on the device before the first rebuild. Errors: TC_ERR_MEMORY, TC_ERR_ARG, TC_ERR_UNSUPPORTED */
tc_status tc_plan_create(const tc_backend *backend, const tc_plan_options *options, tc_plan **plan);
void      tc_plan_destroy(tc_plan **plan);

/* What has to be done for `key`, without doing it */
tc_verdict tc_plan_check(const tc_plan *plan, const tc_key *key);

/* New pattern: packs it on the host and chooses the kernel. The plan is unusable until tc_plan_upload() and tc_plan_refill() follow. Old arrays go first. */
tc_status tc_plan_build(tc_plan *plan, const tc_csr *pattern);

/*
  The same from a pattern in the backend's memory, packed there, in place of tc_plan_build() and tc_plan_upload(), where tc_plan_builds_local(). May wait for the
  device.
*/
int       tc_plan_builds_local(const tc_plan *plan);
tc_status tc_plan_build_local(tc_plan *plan, const tc_csr_local *pattern, tc_stream stream);

/* Moves what was built into the backend's memory and frees the host's copy, on failure too */
tc_status tc_plan_upload(tc_plan *plan, tc_stream stream);

/*
  Takes the values (CSR order, local to the backend) and commits the key; counts as `verdict` (REFILL or REBUILD). May choose another kernel; the first one behind a build waits for the
  device where these values decide that.
*/
tc_status tc_plan_refill(tc_plan *plan, const void *csr_val, const tc_key *key, tc_verdict verdict, tc_stream stream);

/*
  Writes the values in fewer bytes, if looking at all of them shows how; nothing where the format has no such way. The plan does that itself when a matrix that is large enough has been multiplied with
  often enough since it got its values (tc_choose_collect_after()). Enqueues. Errors: TC_ERR_MEMORY, after which all is as before
*/
tc_status tc_plan_collect(tc_plan *plan, tc_stream stream);

/* Will the next product do that? */
int tc_plan_collects(const tc_plan *plan, tc_stream stream);

/* Counts a hit; called once per product that found the plan current */
void tc_plan_hit(tc_plan *plan);

/*
  z = A x (y == NULL) or z = y + sign A x, sign 1 or -1, y may be z; local pointers; one launch, no allocation, no synchronisation, but for one product that collects (tc_plan_collect()). Where the kernel's
  scalar is not that of the plan there are launches before and after it, and memory for widened vectors is allocated once.
*/
tc_status tc_plan_spmv(tc_plan *plan, const void *x, const void *y, void *z, int sign, tc_stream stream);

/* Makes the arrays what a cache replaces first, until the next product. Enqueues */
tc_status tc_plan_demote(const tc_plan *plan, tc_stream stream);

/* Gives the arrays back, in that stream: no cache holds what they were, and the next product needs a rebuild. Waits for the device; keeps the counts. */
void tc_plan_unpack(tc_plan *plan, tc_stream stream);

/* What only the packed arrays can tell, fetched from the backend's memory: for views; waits for the device. Where nothing is packed the text is empty. */
tc_status tc_plan_detail(const tc_plan *plan, tc_detail *detail, tc_stream stream);

void              tc_plan_counters(const tc_plan *plan, tc_counters *counters);
void              tc_plan_stats(const tc_plan *plan, tc_stats *stats); // zeroes before the first build, and when unpacked
const void       *tc_plan_view(const tc_plan *plan);                   // the format's struct with local pointers, for kernels of other operations
double            tc_plan_cusparse_floor_ms(const tc_plan *plan);        // tc_choose_cusparse_floor_ms() of its matrix and device
int               tc_plan_model(const tc_plan *plan, int64_t value_bytes, tc_modelled *model); // tc_choose_by_model() likewise
int               tc_plan_in_doubt(const tc_plan *plan);               // tc_choose_in_doubt() of its matrix
const tc_kernel  *tc_plan_kernel(const tc_plan *plan);                 // NULL likewise
const char       *tc_plan_why(tc_plan *plan);                          // why this kernel was chosen
const tc_backend *tc_plan_backend(const tc_plan *plan);
