/*
  Windows: device memory that other processes of the machine write (CUDA IPC). Pieces of a power of two bytes come out of large allocations, since each of these is opened by itself, and are
  used again; allocations are never given back, as another process may know them.
*/
#include "tc_backend.h"
#include "tc_build.cuh"
#include "tc_device.cuh"
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace {
constexpr size_t CHUNK = size_t(32) << 20, GRAIN = size_t(2) << 20, LEAST = 4096; // bytes; GRAIN is what CUDA maps

struct Name {
  cudaIpcMemHandle_t handle;
  uint64_t           offset;
};
static_assert(sizeof(Name) <= sizeof(tc_window_name) && sizeof(cudaUUID_t) <= sizeof(tc_window_name), "a name has room for what tells where a window is, or which device a process has");

struct Chunk {
  char  *begin;
  size_t bytes, used;
  int    device;
  Name   name;
};

struct Piece {
  size_t chunk, bytes;
};

std::mutex                        mutex;
std::vector<Chunk>                chunks;
std::unordered_map<void *, Piece> pieces; // all there have ever been
std::vector<void *>               unused;
struct Opened {
  cudaIpcMemHandle_t handle;
  int                device;
  char              *begin;
};
std::vector<Opened> opened;

size_t rounded(size_t bytes)
{
  size_t power = LEAST;

  while (power < bytes) power *= 2;
  return power;
}

/* With room for a piece of so many bytes */
tc_status add_chunk(int device, size_t bytes)
{
  Chunk chunk = {};
  void *memory;

  chunk.bytes  = bytes > CHUNK ? (bytes + GRAIN - 1) / GRAIN * GRAIN : CHUNK;
  chunk.device = device;
  TC_CALL(tc_cuda("memory for exchanges", cudaMalloc(&memory, chunk.bytes)));
  chunk.begin           = static_cast<char *>(memory);
  const tc_status named = tc_cuda("name of memory for exchanges", cudaIpcGetMemHandle(&chunk.name.handle, memory));

  if (named != TC_OK) {
    if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
    return named;
  }
  chunks.push_back(chunk);
  return TC_OK;
}

/* A piece that nobody uses; NULL: there is none */
void *take_unused(int device, size_t bytes)
{
  for (size_t i = 0; i < unused.size(); ++i) {
    void       *window = unused[i];
    const Piece piece  = pieces[window];

    if (piece.bytes != bytes || chunks[piece.chunk].device != device) continue;
    unused[i] = unused.back();
    unused.pop_back();
    return window;
  }
  return nullptr;
}

tc_status take_new(int device, size_t bytes, void **window)
{
  size_t c = 0;

  while (c < chunks.size() && (chunks[c].device != device || chunks[c].bytes - chunks[c].used < bytes)) ++c;
  if (c == chunks.size()) TC_CALL(add_chunk(device, bytes));
  unused.reserve(pieces.size() + 1); // so that giving one back does not fail
  void *piece   = chunks[c].begin + chunks[c].used;
  pieces[piece] = {c, bytes};
  chunks[c].used += bytes;
  *window = piece;
  return TC_OK;
}

tc_status allocate(size_t bytes, void **window, tc_window_name *name)
{
  int device;

  TC_CHECK(!tc_fault(TC_FAULT_ALLOC), TC_ERR_MEMORY, "no memory for exchanges of %zu bytes: a fault was asked for", bytes);
  TC_CALL(tc_cuda("current device", cudaGetDevice(&device)));
  const std::lock_guard<std::mutex> lock(mutex);

  *window = take_unused(device, rounded(bytes));
  if (!*window) TC_CALL(take_new(device, rounded(bytes), window));
  const Chunk &chunk = chunks[pieces[*window].chunk];
  Name         full  = chunk.name;

  full.offset = static_cast<uint64_t>(static_cast<char *>(*window) - chunk.begin);
  *name       = {};
  memcpy(name->bytes, &full, sizeof full);
  TC_CALL(tc_cuda("end of earlier exchanges", cudaDeviceSynchronize())); // with what used to be there
  TC_CALL(tc_cuda("zeros for exchanges", cudaMemset(*window, 0, bytes)));
  return tc_cuda("zeros for exchanges", cudaDeviceSynchronize());
}

tc_status open(const Name &name, void **window)
{
  Opened added = {name.handle, 0, nullptr};
  void  *begin;

  TC_CALL(tc_cuda("current device", cudaGetDevice(&added.device)));
  const std::lock_guard<std::mutex> lock(mutex);

  for (const Opened &known : opened) {
    if (known.device != added.device || memcmp(&known.handle, &name.handle, sizeof name.handle) != 0) continue;
    *window = known.begin + name.offset;
    return TC_OK;
  }
  TC_CALL(tc_cuda("memory of another process", cudaIpcOpenMemHandle(&begin, name.handle, cudaIpcMemLazyEnablePeerAccess)));
  added.begin = static_cast<char *>(begin);
  opened.push_back(added);
  *window = added.begin + name.offset;
  return TC_OK;
}
} // namespace

extern "C" tc_status tc_window_name_device(tc_window_name *name)
{
  cudaDeviceProp properties;
  int            device;

  *name = {};
  TC_CALL(tc_cuda("current device", cudaGetDevice(&device)));
  TC_CALL(tc_cuda("name of the device", cudaGetDeviceProperties(&properties, device)));
  memcpy(name->bytes, &properties.uuid, sizeof properties.uuid);
  return TC_OK;
}

extern "C" void tc_window_release(void *window)
{
  const std::lock_guard<std::mutex> lock(mutex);

  if (window) unused.push_back(window);
}

extern "C" tc_status tc_window_alloc(size_t bytes, void **window, tc_window_name *name)
{
  *window = nullptr;
  try {
    const tc_status status = allocate(bytes, window, name);

    if (status != TC_OK) {
      tc_window_release(*window);
      *window = nullptr;
    }
    return status;
  } catch (const std::bad_alloc &) {
    return tc_fail(TC_ERR_MEMORY, "no host memory for what exchanges need");
  }
}

extern "C" tc_status tc_window_open(const tc_window_name *name, void **window)
{
  Name full;

  memcpy(&full, name->bytes, sizeof full);
  try {
    return open(full, window);
  } catch (const std::bad_alloc &) {
    return tc_fail(TC_ERR_MEMORY, "no host memory for what exchanges need");
  }
}
