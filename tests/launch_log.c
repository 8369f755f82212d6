/*
  Which kernels a program launches, for LD_PRELOAD and compute-sanitizer --preload-library: a shared library in front of the CUDA runtime. The file that LAUNCH_LOG names gets a line
  "has NAME" for each kernel that the program or a library in it brings along, and "launches NAME" for each that it launches, both once for a name; several programs may share it.
  Launches with <<<>>> are not seen: those of libraries, ours go through cudaLaunchKernelEx(). For programs that launch from one thread.
*/
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

static struct {
  const void *function;
  const char *name;
  int         launched;
} kernels[MOST];
static int num;

/* One write, so that lines of several programs do not mix */
static void say(const char *verb, const char *name)
{
  const char *path = getenv("LAUNCH_LOG");
  char        line[4096];
  const int   length = snprintf(line, sizeof line, "%s %s\n", verb, name), file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;

  if (file < 0) return;
  if (length >= (int)sizeof line || write(file, line, (size_t)length) != length) fprintf(stderr, "launch_log: %s could not be written\n", name);
  close(file);
}

static void *next_symbol(const char *name)
{
  void *symbol = dlsym(RTLD_NEXT, name);

  if (symbol) return symbol;
  fprintf(stderr, "launch_log: no %s behind this library\n", name);
  abort();
}

static int is_known(const char *name, int launched)
{
  for (int i = 0; i < num; ++i) {
    if (strcmp(kernels[i].name, name) == 0 && (!launched || kernels[i].launched)) return 1;
  }
  return 0;
}

/* What nvcc calls for each kernel when a library is loaded */
__attribute__((visibility("default"))) void __cudaRegisterFunction(void **fatbin, const char *function, char *stub, const char *name, int limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
  void (*next)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

  *(void **)&next = next_symbol("__cudaRegisterFunction");
  if (!is_known(name, 0)) say("has", name);
  if (num < MOST) {
    kernels[num].function = function;
    kernels[num++].name   = name;
  }
  next(fatbin, function, stub, name, limit, tid, bid, block, grid, warp);
}

__attribute__((visibility("default"))) cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
  cudaError_t (*next)(const cudaLaunchConfig_t *, const void *, void **);

  *(void **)&next = next_symbol("cudaLaunchKernelExC");
  for (int i = 0; i < num; ++i) {
    if (kernels[i].function != function || kernels[i].launched) continue;
    if (!is_known(kernels[i].name, 1)) say("launches", kernels[i].name);
    kernels[i].launched = 1;
  }
  return next(config, function, arguments);
}
