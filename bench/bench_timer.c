#include "bench_timer.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if TC_BENCH_CUDA
  #include <cuda_runtime_api.h>
  #include <cusparse.h>

static cudaEvent_t first, last;

static void cuda_check(cudaError_t error, const char *what)
{
  if (error == cudaSuccess) return;
  fprintf(stderr, "tcbench: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
#endif

static double wall_begin;

double bench_wall(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1000000000.0;
}

int bench_device(char *name)
{
#if TC_BENCH_CUDA
  struct cudaDeviceProp property;
  int                   device;
  cudaError_t           error = cudaGetDevice(&device);

  if (error == cudaSuccess) error = cudaGetDeviceProperties(&property, device);
  snprintf(name, 256, "%s", error == cudaSuccess ? property.name : cudaGetErrorString(error));
  return error == cudaSuccess;
#else
  snprintf(name, 256, "built without CUDA");
  return 0;
#endif
}

void bench_versions(char *cuda, char *cusparse)
{
  cuda[0] = cusparse[0] = 0;
#if TC_BENCH_CUDA
  int version = 0, part[3] = {0};

  cuda_check(cudaRuntimeGetVersion(&version), "version");
  snprintf(cuda, 32, "%d.%d", version / 1000, version % 1000 / 10);
  for (int p = 0; p < 3; ++p) cusparseGetProperty((libraryPropertyType)p, &part[p]);
  snprintf(cusparse, 32, "%d.%d.%d", part[0], part[1], part[2]);
#endif
}

double bench_copy_gbs(void)
{
#if TC_BENCH_CUDA
  const size_t bytes = (size_t)4 << 30;
  double       gbs[7], spread;
  void        *from, *to;

  if (cudaMalloc(&from, bytes) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  if (cudaMalloc(&to, bytes) != cudaSuccess) {
    cudaGetLastError();
    cudaFree(from);
    return 0;
  }
  cuda_check(cudaMemset(from, 0x3f, bytes), "memset"); // numbers other than zero
  for (int i = -2; i < 7; ++i) {
    double seconds;

    bench_begin(1);
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0), "copy");
    seconds = bench_end(1);
    if (i >= 0) gbs[i] = 2 * (double)bytes / seconds / 1000000000.0;
  }
  cuda_check(cudaFree(from), "free");
  cuda_check(cudaFree(to), "free");
  return bench_median(7, gbs, &spread);
#else
  return 0;
#endif
}

void bench_begin(int device)
{
#if TC_BENCH_CUDA
  if (device) {
    if (!first) {
      cuda_check(cudaEventCreate(&first), "event");
      cuda_check(cudaEventCreate(&last), "event");
    }
    cuda_check(cudaDeviceSynchronize(), "synchronize");
    cuda_check(cudaEventRecord(first, 0), "event");
    return;
  }
#else
  (void)device;
#endif
  wall_begin = bench_wall();
}

double bench_end(int device)
{
#if TC_BENCH_CUDA
  if (device) {
    float ms;

    cuda_check(cudaEventRecord(last, 0), "event");
    cuda_check(cudaEventSynchronize(last), "synchronize");
    cuda_check(cudaEventElapsedTime(&ms, first, last), "event");
    return (double)ms / 1000.0;
  }
#else
  (void)device;
#endif
  return bench_wall() - wall_begin;
}

void bench_synchronize(int device)
{
#if TC_BENCH_CUDA
  if (device) cuda_check(cudaDeviceSynchronize(), "synchronize");
#else
  (void)device;
#endif
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

double bench_median(int n, double *numbers, double *spread)
{
  qsort(numbers, (size_t)n, sizeof *numbers, compare);
  *spread = (numbers[n - 1 - n / 4] - numbers[n / 4]) / 2;
  return n % 2 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}
