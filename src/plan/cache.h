/*
  tc_cache - decides whether a packed matrix still mirrors its source. Pure C: no device, no PETSc.
*/
#pragma once
#include "../../kernels/tc_base.h"

/* Everything that can tell two contents of a matrix apart; compared for equality only */
typedef struct {
  int64_t     id;         // of the object that holds the data; changes when data moves between objects
  int64_t     pattern;    // pattern state
  int64_t     state;      // value state
  int64_t     nnz;        // stored entries
  const void *values;     // where the source keeps its values
  int64_t     generation; // raised by whoever knows of a change that the states do not show
  const void *holder;     // what the object is called by; its value states begin anew where data moves to another
} tc_key;

typedef enum { TC_CACHE_HIT, TC_CACHE_REFILL, TC_CACHE_REBUILD } tc_verdict;

typedef struct {
  int    valid_pattern, valid_values;
  tc_key key;
} tc_cache;

typedef struct {
  int64_t hits, refills, rebuilds;
} tc_counters;

/* HIT: use as it is. REFILL: same pattern, gather the values again. REBUILD: everything anew. Changes nothing. */
tc_verdict tc_cache_check(const tc_cache *cache, const tc_key *key);

/* Work begins: what is about to be overwritten is invalid until tc_cache_commit(), so that a failure is never a hit */
void tc_cache_begin(tc_cache *cache, tc_verdict verdict);
void tc_cache_commit(tc_cache *cache, const tc_key *key);
