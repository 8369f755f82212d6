#!/usr/bin/env python3
"""Times cuSPARSELt where its shape applies: C = A B with the whole of A in 2:4 form, all fp16 and row-major, sums in fp32.

  bench/cusparselt.py SIZE N [N ...]     A is SIZE x SIZE, B SIZE x N; milliseconds of a product on standard output, a line "SIZE N milliseconds error" each

A tile of a matrix XdYs that has no entries obeys 2:4, too, so for X = 0 this is the product of such a matrix, whatever Y is. The error is that of some entries of C over
|A| |B|. Exit status 77: no library or no GPU. Source: the headers of cuSPARSELt 0.8 and later, CUDA's runtime.
"""
import ctypes
import glob
import os
import statistics
import sys
import sysconfig

import numpy

R_16F, ORDER_ROW, COMPUTE_32F, NON_TRANSPOSE, HALF_ZERO, DEFAULT_ALGORITHM = 2, 2, 2, 0, 0, 0
ALIGNMENT, GROUPS, GROUP_MS = 16, 5, 10.0


def library(*patterns):
    folders = [sysconfig.get_path('purelib'), *os.environ.get('LD_LIBRARY_PATH', '').split(':'), '/usr/local/cuda/lib64', '/usr/lib/x86_64-linux-gnu', '/usr/local/lib']
    for folder in filter(None, folders):
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(folder, pattern)), reverse=True):
                return ctypes.CDLL(path)
    print(f'no {patterns[-1]}')
    sys.exit(77)


def opaque():
    """One of the library's structures of 512 bytes, aligned to 16; room for larger ones"""
    memory = ctypes.create_string_buffer(16384 + 64)
    at = -ctypes.addressof(memory) % 64
    place = (ctypes.c_char * 16384).from_buffer(memory, at)
    place.owner = memory
    return place


def call(function, *args):
    status = function(*args)
    if status:
        sys.exit(f'{function.__name__}: status {status}')


class Device:
    def __init__(self, cuda):
        self.cuda = cuda

    def array(self, host=None, size=0):
        pointer = ctypes.c_void_p()
        call(self.cuda.cudaMalloc, ctypes.byref(pointer), ctypes.c_size_t(max(size, 16) if host is None else host.nbytes))
        if host is not None:
            call(self.cuda.cudaMemcpy, pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(host.nbytes), 1)
        return pointer

    def fetch(self, pointer, host):
        call(self.cuda.cudaMemcpy, host.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(host.nbytes), 2)
        return host

    def milliseconds(self, run):
        """Median of groups, after two products and three more that say how many make a group"""
        begin, end, passed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        call(self.cuda.cudaEventCreate, ctypes.byref(begin))
        call(self.cuda.cudaEventCreate, ctypes.byref(end))

        def group(times):
            call(self.cuda.cudaEventRecord, begin, None)
            for _ in range(times):
                run()
            call(self.cuda.cudaEventRecord, end, None)
            call(self.cuda.cudaEventSynchronize, end)
            call(self.cuda.cudaEventElapsedTime, ctypes.byref(passed), begin, end)
            return passed.value / times

        group(2)
        times = 1 + int(GROUP_MS / group(3))
        return statistics.median(group(times) for _ in range(GROUPS))


def two_of_four(size, random):
    """Two random entries in each four of a row"""
    places = random.permuted(numpy.broadcast_to(numpy.array([True, True, False, False]), (size * size // 4, 4)), axis=1).reshape(size, size)
    return numpy.where(places, random.uniform(0.5, 1.0, (size, size)), 0).astype(numpy.float16)


def time_product(lt, handle, device, a, b):
    (rows, inner), n = a.shape, b.shape[1]
    i64, u32 = ctypes.c_int64, ctypes.c_uint32
    of_a, of_b, of_c, product, algorithm, plan = (opaque() for _ in range(6))
    call(lt.cusparseLtStructuredDescriptorInit, handle, of_a, i64(rows), i64(inner), i64(inner), u32(ALIGNMENT), R_16F, ORDER_ROW, HALF_ZERO)
    call(lt.cusparseLtDenseDescriptorInit, handle, of_b, i64(inner), i64(n), i64(n), u32(ALIGNMENT), R_16F, ORDER_ROW)
    call(lt.cusparseLtDenseDescriptorInit, handle, of_c, i64(rows), i64(n), i64(n), u32(ALIGNMENT), R_16F, ORDER_ROW)
    call(lt.cusparseLtMatmulDescriptorInit, handle, product, NON_TRANSPOSE, NON_TRANSPOSE, of_a, of_b, of_c, of_c, COMPUTE_32F)
    call(lt.cusparseLtMatmulAlgSelectionInit, handle, algorithm, product, DEFAULT_ALGORITHM)
    call(lt.cusparseLtMatmulPlanInit, handle, plan, product, algorithm)
    packed_bytes, buffer_bytes, workspace_bytes = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    call(lt.cusparseLtSpMMACompressedSize, handle, plan, ctypes.byref(packed_bytes), ctypes.byref(buffer_bytes))
    packed = device.array(size=packed_bytes.value)
    call(lt.cusparseLtSpMMACompress, handle, plan, device.array(a), packed, device.array(size=buffer_bytes.value), None)
    local_b, local_c, one, zero = device.array(b), device.array(numpy.zeros((rows, n), numpy.float16)), ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    arguments = (handle, plan, one, packed, local_b, zero, local_c, local_c, None, None, 0)
    call(lt.cusparseLtMatmulSearch, *arguments)  # the fastest of its algorithms
    call(lt.cusparseLtMatmulGetWorkspace, handle, plan, ctypes.byref(workspace_bytes))
    arguments = arguments[:8] + (device.array(size=workspace_bytes.value), None, 0)
    milliseconds = device.milliseconds(lambda: lt.cusparseLtMatmul(*arguments))
    some = slice(0, rows, max(rows // 16, 1))
    exact = a[some].astype(numpy.float64) @ b.astype(numpy.float64)
    error = numpy.max(numpy.abs(device.fetch(local_c, numpy.empty((rows, n), numpy.float16))[some] - exact) / exact)  # all entries are positive
    return milliseconds, error


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    size, widths = int(sys.argv[1]), [int(each) for each in sys.argv[2:]]
    device = Device(library('nvidia/*/lib/libcudart.so*', 'libcudart.so*'))
    lt = library('nvidia/*/lib/libcusparseLt.so*', 'libcusparseLt.so*')
    count = ctypes.c_int()
    if device.cuda.cudaGetDeviceCount(ctypes.byref(count)) or count.value == 0:
        print('no GPU')
        sys.exit(77)
    handle, version = opaque(), ctypes.c_int()
    call(lt.cusparseLtInit, handle)
    call(lt.cusparseLtGetVersion, handle, ctypes.byref(version))
    print(f'# cuSPARSELt {version.value}')
    random = numpy.random.default_rng(1)
    a = two_of_four(size, random)
    for n in widths:
        milliseconds, error = time_product(lt, handle, device, a, random.uniform(0.5, 1.0, (size, n)).astype(numpy.float16))
        print(f'{size} {n} {milliseconds:.4f} {error:.1e}', flush=True)


if __name__ == '__main__':
    main()
