/*
  What products of sparse matrices need can be loaded in a thread, for every scalar and index, again and again, while other threads use the device:
  test_load_products [-small|-few] libaijtccusparse_cuda.so. Exit code 77: no usable device.
*/
#include "device_bytes.h"

int main(int argc, char **args)
{
  const tc_backend *backend = device_bytes_open("test_load_products", argc, args);

  if (backend == NULL) return DEVICE_SKIPPED;
  fact(backend->load_products_begin(TC_SCALAR_F64, 0, 1 << 20) == TC_ERR_UNSUPPORTED, "load_products", TC_SCALAR_F64, 0, 0, "too few processors are told");
  for (int again = 0; again < 2; ++again) {
    for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
      for (int wide = 0; wide < 2; ++wide) {
        void *local;
        int   fine = 1;

        fact(backend->load_products_begin(scalar, wide, 1) == TC_OK, "load_products", scalar, 0, wide, "it begins");
        for (int i = 0; i < 20; ++i) {
          fine = fine && backend->alloc(1 << 20, &local) == TC_OK && backend->zero(local, 1 << 20, NULL) == TC_OK && backend->synchronize(NULL) == TC_OK;
          backend->release(local);
        }
        fact(fine, "load_products", scalar, 0, wide, "the device serves others meanwhile");
        fact(backend->load_products_end() == TC_OK && backend->load_products_end() == TC_OK, "load_products", scalar, 0, wide, "all that is needed is loaded");
      }
    }
  }
  return facts_end();
}
