/*
  What the files share that build the BitTCF format on the host: bittcf.c and bittcf_clusters.c.
*/
#pragma once
#include "bittcf_merge.h"

static inline int32_t tc_bittcf_at_most(int32_t n, int32_t limit)
{
  return n < limit ? n : limit;
}

/* The arrays of clusters, empty where there are none, or none are wanted. Errors: TC_ERR_MEMORY */
tc_status tc_bittcf_make_clusters(tc_bittcf *T, int wanted);
