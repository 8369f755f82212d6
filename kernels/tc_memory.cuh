/*
  Device memory from a pool of ours. What is given back stays with the pool up to a part of the device's memory, so that conversions and products that follow each other do
  not wait for the driver to map and unmap; CUDA's own pool gives everything back at the next synchronisation.
*/
#pragma once
#include "tc_device.cuh"

/* Memory that may be used by what is enqueued on the stream from now on, and given back there. bytes == 0 gives NULL. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE */
tc_status tc_memory_take(size_t bytes, void **memory, cudaStream_t stream);
tc_status tc_memory_give(void *memory, cudaStream_t stream);

/* Memory for any stream. Taking does not wait for work that is under way unless that has just given memory back; releasing waits for all work of the device. NULL is fine */
tc_status tc_memory_alloc(size_t bytes, void **memory);
void      tc_memory_release(void *memory);

/* The first memory of the pool of the current device, and the first answer: what the first conversion would else wait for */
tc_status tc_memory_warm_up(void);

/* TC_ANSWER_BYTES of the host's memory that kernels write to, for what the host waits for. Give it back when no kernel will write there any more; NULL is fine. */
enum { TC_ANSWER_BYTES = 256 };
tc_status tc_memory_take_answer(void **memory);
void      tc_memory_give_answer(void *memory);
