/*
  Clusters of a tc_bittcf in double precision by warps of two kinds: producers fill buffers of shared memory, consumers multiply what is there, and neither waits for more than a buffer.
*/
#pragma once
#include "bittcf_cluster_f64.cuh"

constexpr int      tc_producer_warps = 4, tc_producers = tc_producer_warps * tc_warp_size;
constexpr int      tc_most_pieces = (2 * TC_BITTCF_MOST_FOURS + tc_producers - 1) / tc_producers;
constexpr uint32_t tc_barrier_bytes = 8;
constexpr int      tc_ring_bytes    = 128; // of shared memory in front of buffers, whose alignment this is: for barriers

/*
  Buffers in a ring. A barrier in shared memory for each says that copies have arrived; a named one for each and each warp of producers that consumers are done with it. In place of these one of
  all producers makes them wait for each other, and racecheck does not follow one in shared memory where a lane arrives for a warp.
*/
struct tc_ring {
  uint32_t bottom, size, barriers, stages;
  uint32_t at = 0, turns = 0; // a buffer, and how often it was left, modulo 2

  __device__ __forceinline__ uint32_t buffer() const { return bottom + at * size; }
  __device__ __forceinline__ uint32_t full() const { return barriers + tc_barrier_bytes * at; }
  __device__ __forceinline__ uint32_t empty(int producer_warp) const { return 1 + tc_producer_warps * at + producer_warp; }
  template <int meeting>
  __device__ __forceinline__ void arrive() const // as a consumer, of so many threads that meet
  {
#pragma unroll
    for (int p = 0; p < tc_producer_warps; ++p) tc_named_arrive(empty(p), meeting);
  }
  __device__ __forceinline__ void leave()
  {
    if (++at < stages) return;
    at = 0;
    turns ^= 1;
  }

  /* As a consumer, before the first cluster: all buffers are empty */
  template <int meeting>
  __device__ __forceinline__ void open()
  {
#pragma unroll 1
    for (uint32_t s = 0; s < stages; ++s, leave()) arrive<meeting>();
    turns = 0;
  }

  /* As a producer, behind the last one: no barrier is left half way */
  template <int meeting>
  __device__ __forceinline__ void close(int producer_warp)
  {
#pragma unroll 1
    for (uint32_t s = 0; s < stages; ++s, leave()) tc_named_wait(empty(producer_warp), meeting);
  }
};
