/*
  Tensor-core fragments, copies into shared memory, arrivals: all inline PTX of the project. A fragment says which matrix element a lane's register holds, so kernels speak of rows and columns.
  FP64 m8n8k4 adds c, then k = 0, 1, 2, 3, each by one fused multiply-add: the bits are those of four fma() (checked on sm_90 by tests/test_kernels.c).
*/
#pragma once
#include "tc_device.cuh"

/* Hides from the compiler where `a` is from: it can neither compute it again nor, in a loop, what follows from it before */
__device__ __forceinline__ void tc_keep(uint32_t &a)
{
  asm volatile("" : "+r"(a));
}
template <typename T>
__device__ __forceinline__ void tc_keep(const T *&a)
{
  asm volatile("" : "+l"(a));
}

/*
  `own` more have arrived: are those `all` of them? The caller, and those whom a barrier before has made it follow, tell the device what they have written; where all have arrived it, and those who follow it by a
  barrier, know what the others have told. One fence less than around atomicAdd(), a weaker one, and the L1 cache is emptied for the last one alone. Needs: sm_70
*/
__device__ __forceinline__ bool tc_arrive(int32_t *counter, int32_t own, int32_t all)
{
  int32_t before;

  asm volatile("atom.add.release.gpu.global.s32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(own) : "memory");
  if (before + own != all) return false;
  asm volatile("fence.acq_rel.gpu;" : : : "memory");
  return true;
}

/*
  16 or 8 bytes on their way from global to shared memory, an address of that; the L2 cache gets the whole line from memory. Copies up to tc_copies_end() are a batch. Before sm_80 they have arrived
  at once.
*/
__device__ __forceinline__ void tc_copy_ahead_16(uint32_t shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" : : "r"(shared), "l"(global) : "memory");
#else
  const double2 two = __ldg(reinterpret_cast<const double2 *>(global));

  asm volatile("st.shared.v2.f64 [%0], {%1, %2};" : : "r"(shared), "d"(two.x), "d"(two.y) : "memory");
#endif
}

__device__ __forceinline__ void tc_copy_ahead_8(uint32_t shared, const double *global)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8;" : : "r"(shared), "l"(global) : "memory");
#else
  asm volatile("st.shared.f64 [%0], %1;" : : "r"(shared), "d"(__ldg(global)) : "memory");
#endif
}

/* The same of what is read once, by the policy tc_first_to_leave() */
__device__ __forceinline__ void tc_copy_through_16(uint32_t shared, const void *global, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" : : "r"(shared), "l"(global), "l"(policy) : "memory");
#else
  tc_copy_ahead_16(shared, global);
#endif
}

__device__ __forceinline__ void tc_copy_through_8(uint32_t shared, const double *global, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global.L2::cache_hint.L2::128B [%0], [%1], 8, %2;" : : "r"(shared), "l"(global), "l"(policy) : "memory");
#else
  tc_copy_ahead_8(shared, global);
#endif
}

/* The same under a condition, without a branch: lanes with and without it go on together. `cached`: in L1, too. Needs sm_80. */
template <bool cached>
__device__ __forceinline__ void tc_copy_ahead_16_if(bool so, uint32_t shared, const double *global)
{
#if __CUDA_ARCH__ >= 800
  if (cached) asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global.L2::128B [%0], [%1], 16; }" : : "r"(shared), "l"(global), "r"((uint32_t)so) : "memory");
  else asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16; }" : : "r"(shared), "l"(global), "r"((uint32_t)so) : "memory");
#else
  __trap();
#endif
}

__device__ __forceinline__ void tc_copy_ahead_8_if(bool so, uint32_t shared, const double *global)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global.L2::128B [%0], [%1], 8; }" : : "r"(shared), "l"(global), "r"((uint32_t)so) : "memory");
#else
  __trap();
#endif
}

/* The same for four bytes, `shared` an address in shared memory */
__device__ __forceinline__ void tc_copy_ahead_4(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "l"(global) : "memory");
#else
  *static_cast<uint32_t *>(shared) = __ldg(static_cast<const uint32_t *>(global));
#endif
}

__device__ __forceinline__ void tc_copies_end()
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/* Waits for this thread's copies, but those of the last `batches` batches, 0 or 1 */
__device__ __forceinline__ void tc_copies_done_but(int batches)
{
#if __CUDA_ARCH__ >= 800
  if (batches == 0) asm volatile("cp.async.wait_group 0;" : : : "memory");
  else asm volatile("cp.async.wait_group 1;" : : : "memory");
#endif
}

/* Barriers of shared memory, 8 bytes each, an address of that: a phase of one ends with its last arrival, and the next one begins. Phases have parities, 0 first. Needs sm_80, as what follows. */
__device__ __forceinline__ void tc_barrier_begin(uint32_t barrier, uint32_t arrivals)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
#else
  __trap();
#endif
}

/* Arrives when this thread's copies so far have */
__device__ __forceinline__ void tc_barrier_arrive_with_copies(uint32_t barrier)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(barrier) : "memory");
#else
  __trap();
#endif
}

/* Waits for the end of the phase of that parity, unless the one after it has begun */
__device__ __forceinline__ void tc_barrier_wait(uint32_t barrier, uint32_t parity)
{
  uint32_t over = 1;

  do {
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
#elif __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
#else
    __trap();
#endif
  } while (!over);
}

/* Barrier `id` of the 16 of a thread block, 0 is that of __syncthreads(): so many threads arrive before those of them that wait go on. Whole warps. */
__device__ __forceinline__ void tc_named_arrive(uint32_t id, uint32_t threads)
{
  asm volatile("bar.arrive %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void tc_named_wait(uint32_t id, uint32_t threads)
{
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

/* Gives registers back, or takes some of those that came back and waits for them: all threads of four warps, from then on they have `registers` each. On sm_90a only. */
template <int registers>
__device__ __forceinline__ void tc_give_registers()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(registers));
#endif
}
template <int registers>
__device__ __forceinline__ void tc_take_registers()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(registers));
#endif
}

/* A streaming load under a condition, 0.0 without, and no branch */
__device__ __forceinline__ double tc_load_stream_if(bool so, const double *global)
{
  double value;

  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.global.cs.f64 %0, [%1]; }" : "=d"(value) : "l"(global), "r"((uint32_t)so));
  return value;
}

/* An element that is only read; the L2 cache gets the whole line from memory */
__device__ __forceinline__ double tc_load_line(const double *global)
{
  double value;

  asm("ld.global.nc.L2::128B.f64 %0, [%1];" : "=d"(value) : "l"(global));
  return value;
}

/* Volatile: other loads ptxas moves behind the branches that they are written in front of, next to where they are needed */
__device__ __forceinline__ double tc_load_shared(uint32_t shared)
{
  double value;

  asm volatile("ld.volatile.shared.f64 %0, [%1];" : "=d"(value) : "r"(shared));
  return value;
}

/* The same under a condition, 0.0 without, and no branch */
__device__ __forceinline__ double tc_load_shared_if(bool so, uint32_t shared)
{
  double value;

  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.volatile.shared.f64 %0, [%1]; }" : "=d"(value) : "r"(shared), "r"((uint32_t)so));
  return value;
}

/* Two doubles, aligned to 16 bytes, also where only one of them is needed */
__device__ __forceinline__ double2 tc_load_shared_pair(uint32_t shared)
{
  double2 pair;

  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(pair.x), "=d"(pair.y) : "r"(shared));
  return pair;
}

/* Volatile for the reason of tc_load_shared() */
__device__ __forceinline__ uint4 tc_load_shared_16_in_order(uint32_t shared)
{
  uint4 four;

  asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "r"(shared));
  return four;
}

__device__ __forceinline__ uint2 tc_load_shared_8(uint32_t shared)
{
  uint2 two;

  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(two.x), "=r"(two.y) : "r"(shared));
  return two;
}

__device__ __forceinline__ uint4 tc_load_shared_16(uint32_t shared)
{
  uint4 four;

  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "r"(shared));
  return four;
}

__device__ __forceinline__ void tc_prefetch(const void *global)
{
  asm volatile("prefetch.global.L2 [%0];" : : "l"(global));
}

/* `bytes` bytes, a multiple of 16 as where they begin, or none, into the L2 cache, by a warp */
__device__ __forceinline__ void tc_prefetch_bytes(const void *global, uint32_t bytes, int lane)
{
#if __CUDA_ARCH__ >= 900
  if (lane == 0 && bytes > 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(global), "r"(bytes) : "memory");
#else
  constexpr uint32_t line = 128;

  for (uint32_t at = line * lane; at < bytes; at += line * tc_warp_size) tc_prefetch(static_cast<const char *>(global) + at);
#endif
}

/* The same into L1 */
__device__ __forceinline__ void tc_prefetch_near(const void *global)
{
  asm volatile("prefetch.global.L1 [%0];" : : "l"(global));
}

/* The policy of the L2 cache by which a line is the first to be replaced; before sm_80 there is none */
__device__ __forceinline__ uint64_t tc_first_to_leave()
{
  uint64_t policy = 0;

#if __CUDA_ARCH__ >= 800
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

/* 16 bytes past the L1 cache */
__device__ __forceinline__ uint4 tc_load_with_policy(const void *global, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
  uint4 four;

  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;" : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "l"(global), "l"(policy));
  return four;
#else
  return __ldcs(static_cast<const uint4 *>(global));
#endif
}

/* What the line of the L2 cache holds need not be written to memory: it is undefined from here on. Nothing before sm_80. */
__device__ __forceinline__ void tc_discard_line(void *global)
{
#if __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128;" : : "l"(global) : "memory");
#endif
}

/* base + unit * half of `two`, the low or the high one. One instruction; the compiler would rather compute it ahead and run out of registers. */
template <int unit>
__device__ __forceinline__ uint32_t tc_place_in(uint32_t two, bool high, uint32_t base)
{
  uint32_t at;

  if (high) asm volatile("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(at) : "r"(two), "n"(unit << 8), "r"(base));
  else asm volatile("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(at) : "r"(two), "n"(unit), "r"(base));
  return at;
}

/* A (8 x 4): lane holds A[row][k]. B (4 x 8): lane holds B[k][row]. C (8 x 8): lane holds C[row][2 * k] and C[row][2 * k + 1]. */
struct tc_mma_lane {
  int row, k;
  __device__ __forceinline__ explicit tc_mma_lane(int lane) : row(lane >> 2), k(lane & 3) { }
};

struct tc_mma_accumulator {
  double c[2];
};

/* C = A B + C; needs sm_80 */
__device__ __forceinline__ void tc_mma_m8n8k4(tc_mma_accumulator &acc, double a, double b)
{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(acc.c[0]), "+d"(acc.c[1]) : "d"(a), "d"(b));
#else
  __trap();
#endif
}

struct tc_mma_tall_accumulator {
  double c[4];
};

/*
  C = A B + C of twice as many rows. A (16 x 4): lane holds A[row][k] and A[row + 8][k]. B as above. C (16 x 8): lane holds C[row][2 * k], C[row][2 * k + 1] and the same of
  row + 8. The bits are those of two m8n8k4, which is what it is made of before sm_90; needs sm_80.
*/
__device__ __forceinline__ void tc_mma_m16n8k4(tc_mma_tall_accumulator &acc, double a0, double a1, double b)
{
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+d"(acc.c[0]), "+d"(acc.c[1]), "+d"(acc.c[2]), "+d"(acc.c[3]) : "d"(a0), "d"(a1), "d"(b));
#elif __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(acc.c[0]), "+d"(acc.c[1]) : "d"(a0), "d"(b));
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(acc.c[2]), "+d"(acc.c[3]) : "d"(a1), "d"(b));
#else
  __trap();
#endif
}

/* C[row][row] sits in one register of one of the four lanes of a row */
__device__ __forceinline__ bool tc_mma_holds_diagonal(tc_mma_lane at)
{
  return at.k == at.row >> 1;
}

/* The diagonal element of this lane's row; meaningful where tc_mma_holds_diagonal() */
__device__ __forceinline__ double tc_mma_own_diagonal(const tc_mma_accumulator &acc, tc_mma_lane at)
{
  return at.row & 1 ? acc.c[1] : acc.c[0];
}

/* Lane l gets C[l % 8][l % 8] */
__device__ __forceinline__ double tc_mma_diagonal(const tc_mma_accumulator &acc, int lane)
{
  const int row = lane & 7;

  return __shfl_sync(tc_full_warp, tc_mma_own_diagonal(acc, tc_mma_lane(lane)), 4 * row + (row >> 1));
}

/* A float rounded to TF32, to the nearest, ties to even: one instruction of sm_90; before, ties go away from zero and it takes two or three. Needs sm_80, as what follows. */
__device__ __forceinline__ uint32_t tc_round_to_tf32(float x)
{
#if __CUDA_ARCH__ >= 900
  uint32_t rounded;

  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
#elif __CUDA_ARCH__ >= 800
  uint32_t rounded;

  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
#else
  __trap();
#endif
}

/* C (16 x 8) in single precision: lane holds C[row][2 * k], C[row][2 * k + 1] and the same of row + 8 */
struct tc_mma_single_accumulator {
  float c[4];
};

/* C = A B + C. A (16 x 8): a[0] and a[1] are A[row][k] and A[row + 8][k], a[2] and a[3] those of k + 4. B (8 x 8): b[0] is B[k][row], b[1] B[k + 4][row]. Floats in TF32. */
__device__ __forceinline__ void tc_mma_m16n8k8_tf32(tc_mma_single_accumulator &acc, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}

/* C = A B + C of 16 products. A (16 x 16): registers as above, two numbers of neighbouring k each, 2 * k and 2 * k + 1, or 8 more. B (16 x 8) likewise. */
template <tc_precision precision>
__device__ __forceinline__ void tc_mma_m16n8k16(tc_mma_single_accumulator &acc, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
  if constexpr (precision == TC_PRECISION_BF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc.c[0]), "+f"(acc.c[1]), "+f"(acc.c[2]), "+f"(acc.c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}
