#include "device_bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tc_backend *device_bytes_backend;

static int                passed, failed;
static unsigned long long random_state = 1;

int64_t random_below(int64_t n)
{
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (int64_t)((random_state >> 33) % (unsigned long long)n);
}

void *bytes_new(size_t bytes)
{
  void *pointer = malloc(bytes + 1);

  if (pointer == NULL) device_die("malloc", "no host memory");
  return pointer;
}

const tc_backend *device_bytes_open(const char *program, int argc, char **args)
{
  int sm;

  for (int i = 1; i < argc; ++i) {
    if (args[i][0] != '-') device_bytes_backend = device_open(program, args[i], &sm);
  }
  return device_bytes_backend;
}

device_bytes device_bytes_new(size_t bytes, const void *host)
{
  device_bytes D     = {NULL, NULL, bytes};
  char        *image = bytes_new(bytes + 2 * DEVICE_BYTES_GUARD);
  void        *local;

  memset(image, 0xa5, bytes + 2 * DEVICE_BYTES_GUARD);
  if (host != NULL && bytes > 0) memcpy(image + DEVICE_BYTES_GUARD, host, bytes);
  device_check(device_bytes_backend, device_bytes_backend->alloc(bytes + 2 * DEVICE_BYTES_GUARD, &local), "alloc");
  device_check(device_bytes_backend, device_bytes_backend->upload(local, image, bytes + 2 * DEVICE_BYTES_GUARD, NULL), "upload");
  D.block = local;
  D.local = D.block + DEVICE_BYTES_GUARD;
  free(image);
  return D;
}

int device_bytes_are(device_bytes *D, const void *expected)
{
  char *image = bytes_new(D->bytes + 2 * DEVICE_BYTES_GUARD);
  int   same;

  device_check(device_bytes_backend, device_bytes_backend->synchronize(NULL), "synchronize");
  device_check(device_bytes_backend, device_bytes_backend->download(image, D->block, D->bytes + 2 * DEVICE_BYTES_GUARD, NULL), "download");
  same = D->bytes == 0 || expected == NULL || memcmp(image + DEVICE_BYTES_GUARD, expected, D->bytes) == 0;
  for (size_t i = 0; i < DEVICE_BYTES_GUARD; ++i) same = same && (unsigned char)image[i] == 0xa5 && (unsigned char)image[DEVICE_BYTES_GUARD + D->bytes + i] == 0xa5;
  free(image);
  device_bytes_backend->release(D->block);
  return same;
}

void fact(int so, const char *what, tc_scalar scalar, int64_t num, int64_t n, const char *text)
{
  if (so) ++passed;
  else {
    ++failed;
    printf("FAIL %s, %lld rows, %lld columns, %s: %s\n", what, (long long)num, (long long)n, scalar == TC_SCALAR_F64 ? "double" : "float", text);
  }
}

double number_at(tc_scalar scalar, const void *array, int64_t i)
{
  return scalar == TC_SCALAR_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

void set_number(tc_scalar scalar, void *array, int64_t i, double number)
{
  if (scalar == TC_SCALAR_F64) ((double *)array)[i] = number;
  else ((float *)array)[i] = (float)number;
}

void *numbers_new(tc_scalar scalar, int64_t n)
{
  void *array = bytes_new((size_t)n * sizeof(double));

  for (int64_t i = 0; i < n; ++i) set_number(scalar, array, i, (double)(random_below(2000001) - 1000000) / 7.0);
  return array;
}

size_t bytes_of(tc_scalar scalar, int64_t n)
{
  return (size_t)n * (scalar == TC_SCALAR_F64 ? sizeof(double) : sizeof(float));
}

int facts_end(void)
{
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}
