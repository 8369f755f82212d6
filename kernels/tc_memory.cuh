/*
  Device memory from a pool of ours. What is given back stays with the pool up to a part of the device's memory, so that conversions and products that follow each other do
  not wait for the driver to map and unmap; CUDA's own pool gives everything back at the next synchronisation.
*/
#pragma once
#include "tc_backend.h"
#include "tc_device.cuh"

/* Memory that may be used by what is enqueued on the stream from now on, and given back there. bytes == 0 gives NULL. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE */
tc_status tc_memory_take(size_t bytes, void **memory, cudaStream_t stream);
tc_status tc_memory_give(void *memory, cudaStream_t stream);

/* Memory for any stream. Taking does not wait for work that is under way unless that has just given memory back; releasing waits for all work of the device. NULL is fine */
tc_status tc_memory_alloc(size_t bytes, void **memory);
void      tc_memory_release(void *memory);

/* The first memory of the pool of the current device, and the first that is shared: what the first conversion would else wait for */
tc_status tc_memory_warm_up(void);

/* tc_backend.share() and unshare(). Errors: TC_ERR_MEMORY */
tc_status tc_memory_share(void **memory);
void      tc_memory_unshare(void *memory);

/* tc_backend.pin() and unpin() */
tc_status tc_memory_pin(const void *host, size_t bytes);
void      tc_memory_unpin(const void *host);
