#pragma once
#include "tc_backend.h"
#include "tc_device.cuh"

/* slot_val[i] = csr_val[map[i]], or 0 where map[i] is negative; device pointers, [num_slots] but for csr_val */
tc_status tc_refill(int64_t num_slots, const int32_t *map, const double *csr_val, double *slot_val, tc_stream stream);
