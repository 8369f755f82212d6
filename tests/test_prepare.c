/*
  What first products wait for can be prepared in a thread, for every scalar and index, with and without products of sparse matrices, again and again, while other threads use the device:
  test_prepare [-small|-few] libaijtccusparse_cuda.so. Exit code 77: no usable device.
*/
#include "device_bytes.h"

static const tc_backend *backend;

static void check(tc_scalar scalar, int products, int wide)
{
  void *local;
  int   fine = 1;

  fact(backend->prepare_begin(scalar, products, wide, 1) == TC_OK, "prepare", scalar, products, wide, "it begins");
  for (int i = 0; i < 20; ++i) {
    fine = fine && backend->alloc(1 << 20, &local) == TC_OK && backend->zero(local, 1 << 20, NULL) == TC_OK && backend->synchronize(NULL) == TC_OK;
    backend->release(local);
  }
  fact(fine, "prepare", scalar, products, wide, "the device serves others meanwhile");
  fact(backend->prepare_wait() == TC_OK && backend->prepare_wait() == TC_OK, "prepare", scalar, products, wide, "the device is ready");
  fact(backend->prepare_end() == TC_OK && backend->prepare_end() == TC_OK && backend->prepare_wait() == TC_OK, "prepare", scalar, products, wide, "all that is needed is there");
}

int main(int argc, char **args)
{
  backend = device_bytes_open("test_prepare", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  fact(backend->prepare_wait() == TC_OK && backend->prepare_end() == TC_OK, "prepare", TC_SCALAR_F64, 0, 0, "nobody waits where nothing has begun");
  fact(backend->prepare_begin(TC_SCALAR_F64, 1, 0, 1 << 20) == TC_ERR_UNSUPPORTED, "prepare", TC_SCALAR_F64, 0, 0, "too few processors are told");
  backend->fault_arm(TC_FAULT_ALLOC, 1);
  fact(backend->prepare_begin(TC_SCALAR_F64, 1, 0, 1) == TC_OK && backend->prepare_wait() == TC_ERR_MEMORY && backend->prepare_end() == TC_ERR_MEMORY, "prepare", TC_SCALAR_F64, 1, 0, "no memory, which is told");
  backend->fault_arm(TC_FAULT_ALLOC, 0);
  for (int again = 0; again < 2; ++again) {
    for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
      check(scalar, 0, 0);
      for (int wide = 0; wide < 2; ++wide) check(scalar, 1, wide);
    }
  }
  return facts_end();
}
