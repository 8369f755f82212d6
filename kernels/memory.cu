#include "tc_memory.cuh"
#include "tc_build.cuh"
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <vector>

enum { KEPT_SHARE = 64, WARM_SHARE = 256 }; // of the device's memory one part in so many may stay with the pool, and one is there from the beginning

constexpr size_t PIN_FIRST     = 1 << 20, PIN_SAMPLE = 8 << 20; // bytes
constexpr double PIN_SAMPLE_MS = 1.2;                           // 0.6 to 0.9 with the hosts of H200s, where a copy of them takes 1.0, or 0.18 once they are pinned, of 40 MB 5.0, or 2.9 with pinning

/* One for each device that this process uses; never destroyed */
struct tc_pool {
  cudaMemPool_t pool;
  cudaStream_t  stream; // nothing but allocations is enqueued here
};

static tc_status create_pool(int device, tc_pool *pool)
{
  cudaMemPoolProps properties = {};
  size_t           unused, total;
  uint64_t         kept;

  properties.allocType     = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id   = device;
  TC_CALL(tc_cuda("size of the device's memory", cudaMemGetInfo(&unused, &total)));
  kept = total / KEPT_SHARE;
  if (!pool->stream) TC_CALL(tc_cuda("stream of the memory pool", cudaStreamCreateWithFlags(&pool->stream, cudaStreamNonBlocking)));
  TC_CALL(tc_cuda("memory pool", cudaMemPoolCreate(&pool->pool, &properties)));
  return tc_cuda("memory pool", cudaMemPoolSetAttribute(pool->pool, cudaMemPoolAttrReleaseThreshold, &kept));
}

/* That of the current device */
static tc_status get_pool(tc_pool **pool)
{
  static std::mutex mutex;
  static tc_pool    pools[tc_counted_devices];
  int               device;

  TC_CALL(tc_cuda("current device", cudaGetDevice(&device)));
  TC_CHECK(device < tc_counted_devices, TC_ERR_UNSUPPORTED, "device %d, memory pools exist for the first %d", device, tc_counted_devices);
  const std::lock_guard<std::mutex> lock(mutex);

  *pool = &pools[device];
  return (*pool)->pool ? TC_OK : create_pool(device, *pool);
}

static tc_status take(const tc_pool *pool, size_t bytes, void **memory, cudaStream_t stream)
{
  TC_CHECK(!tc_fault(TC_FAULT_ALLOC), TC_ERR_MEMORY, "no device memory for %zu bytes: a fault was asked for", bytes);
  return tc_cuda("device memory", cudaMallocFromPoolAsync(memory, bytes, pool->pool, stream));
}

tc_status tc_memory_take(size_t bytes, void **memory, cudaStream_t stream)
{
  tc_pool *pool;

  *memory = nullptr;
  if (bytes == 0) return TC_OK;
  TC_CALL(get_pool(&pool));
  return take(pool, bytes, memory, stream);
}

tc_status tc_memory_give(void *memory, cudaStream_t stream)
{
  return memory ? tc_cuda("release of device memory", cudaFreeAsync(memory, stream)) : TC_OK;
}

tc_status tc_memory_alloc(size_t bytes, void **memory)
{
  tc_pool *pool;

  *memory = nullptr;
  if (bytes == 0) return TC_OK;
  TC_CALL(get_pool(&pool));
  TC_CALL(take(pool, bytes, memory, pool->stream));

  const tc_status status = tc_cuda("device memory", cudaStreamSynchronize(pool->stream));

  if (status != TC_OK) {
    tc_memory_release(*memory);
    *memory = nullptr;
  }
  return status;
}

/* cudaFree() waits for nobody when the memory comes from a pool. An error, while a stream is captured for one, is nobody's that calls the runtime next. */
void tc_memory_release(void *memory)
{
  if (memory == nullptr) return;
  if (cudaDeviceSynchronize() != cudaSuccess) cudaGetLastError();
  if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

/* Pages are never given back to the system */
static std::mutex          shared_mutex;
static std::vector<void *> shared_free;

tc_status tc_memory_warm_up(void)
{
  size_t   unused, total, first;
  tc_pool *pool;
  void    *memory, *shared;

  TC_CALL(get_pool(&pool));
  TC_CALL(tc_cuda("size of the device's memory", cudaMemGetInfo(&unused, &total)));
  first = total / WARM_SHARE < unused / KEPT_SHARE ? total / WARM_SHARE : unused / KEPT_SHARE; // many processes may share the device
  TC_CALL(take(pool, first, &memory, pool->stream));
  TC_CALL(tc_memory_give(memory, pool->stream));
  TC_CALL(tc_cuda("device memory", cudaStreamSynchronize(pool->stream)));
  TC_CALL(tc_memory_share(&shared));
  tc_memory_unshare(shared);
  return TC_OK;
}

/* A page in pieces, since the system takes as long for one piece */
static tc_status share_page()
{
  enum { PIECES = 64 };
  static size_t pieces = 0; // there is room for all of them, so that giving one back does not fail
  void         *page;

  try {
    shared_free.reserve(pieces + PIECES);
  } catch (const std::bad_alloc &) {
    return tc_fail(TC_ERR_MEMORY, "no host memory for %zu addresses", pieces + PIECES);
  }
  TC_CALL(tc_cuda("pinned memory", cudaHostAlloc(&page, PIECES * TC_SHARED_BYTES, cudaHostAllocPortable | cudaHostAllocMapped)));
  pieces += PIECES;
  for (int i = PIECES - 1; i >= 0; --i) shared_free.push_back(static_cast<char *>(page) + TC_SHARED_BYTES * i);
  return TC_OK;
}

tc_status tc_memory_share(void **memory)
{
  *memory = nullptr;
  TC_CHECK(!tc_fault(TC_FAULT_ALLOC), TC_ERR_MEMORY, "no pinned memory: a fault was asked for");
  const std::lock_guard<std::mutex> lock(shared_mutex);

  if (shared_free.empty()) TC_CALL(share_page());
  *memory = shared_free.back();
  shared_free.pop_back();
  return TC_OK;
}

void tc_memory_unshare(void *memory)
{
  const std::lock_guard<std::mutex> lock(shared_mutex);

  if (memory) shared_free.push_back(memory);
}

enum class tc_pinning { unknown, pays, does_not };

/* The system locks the pages and tells where they are. What a copy then saves is 0.1 ms a megabyte at least, the driver's way through pages of its own */
static bool pin(void *host, size_t bytes)
{
  const bool pinned = cudaHostRegister(host, bytes, cudaHostRegisterDefault) == cudaSuccess;

  if (!pinned) cudaGetLastError();
  return pinned;
}

/* Does that take less time on this machine, as far as this memory, behind a piece that lets the driver get ready, tells? `known` stays as it is if that cannot be pinned, being so already, say */
static void ask_whether_pinning_pays(char *host, std::atomic<tc_pinning> &known)
{
  if (!pin(host, PIN_FIRST)) return;
  tc_memory_unpin(host);

  const auto begin = std::chrono::steady_clock::now();

  if (!pin(host + PIN_FIRST, PIN_SAMPLE)) return;
  tc_memory_unpin(host + PIN_FIRST);
  known = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() < PIN_SAMPLE_MS ? tc_pinning::pays : tc_pinning::does_not;
}

tc_status tc_memory_pin(const void *host, size_t bytes)
{
  static std::atomic<tc_pinning> known(tc_pinning::unknown);
  char                          *memory = static_cast<char *>(const_cast<void *>(host));

  if (known == tc_pinning::unknown && bytes >= PIN_FIRST + PIN_SAMPLE) ask_whether_pinning_pays(memory, known);
  return known == tc_pinning::pays && pin(memory, bytes) ? TC_OK : TC_ERR_UNSUPPORTED;
}

void tc_memory_unpin(const void *host)
{
  if (cudaHostUnregister(const_cast<void *>(host)) != cudaSuccess) cudaGetLastError();
}
