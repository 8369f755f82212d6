/* Is this MPI aware of the GPU? Processes that share one GPU send each other device memory, in a ring, and reduce it; every number is checked.
   The last line is "N passed, N failed, N skipped". scripts/pack-gpu-kit.sh builds it, gpu-kit/run.sh runs it. */
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 1 << 21 };

static int    rank, passed, failed;
static double *host;

static void check(cudaError_t code, const char *what)
{
  if (code == cudaSuccess) return;
  printf("rank %d: %s: %s\n", rank, what, cudaGetErrorString(code));
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* counts on the first process what holds on all of them */
static void fact(int holds, const char *what, int count)
{
  int all = 0;

  MPI_Allreduce(&holds, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank) return;
  if (all) passed++;
  else failed++;
  printf("%s %s, %d numbers\n", all ? "ok  " : "FAIL", what, count);
}

static double value(int owner, int count, int i)
{
  return owner * 1e7 + count + 0.5 * i;
}

static void fill(double *device, int count)
{
  for (int i = 0; i < count; i++) host[i] = value(rank, count, i);
  check(cudaMemcpy(device, host, (size_t)count * sizeof(double), cudaMemcpyHostToDevice), "copy to the device");
  check(cudaDeviceSynchronize(), "synchronisation");
}

static void wipe(double *device, int count)
{
  check(cudaMemset(device, 0xff, (size_t)count * sizeof(double)), "memset");
  check(cudaDeviceSynchronize(), "synchronisation");
}

static int holds_value(const double *device, int count, int owner)
{
  check(cudaMemcpy(host, device, (size_t)count * sizeof(double), cudaMemcpyDeviceToHost), "copy to the host");
  for (int i = 0; i < count; i++) {
    if (host[i] == value(owner, count, i)) continue;
    printf("rank %d: number %d of %d is %g, not %g\n", rank, i, count, host[i], value(owner, count, i));
    return 0;
  }
  return 1;
}

static int holds_sum(const double *device, int count, int size)
{
  check(cudaMemcpy(host, device, (size_t)count * sizeof(double), cudaMemcpyDeviceToHost), "copy to the host");
  for (int i = 0; i < count; i++) {
    double sum = 0;

    for (int r = 0; r < size; r++) sum += value(r, count, i);
    if (host[i] != sum) return 0;
  }
  return 1;
}

int main(int argc, char **argv)
{
  const int    counts[] = {1, 100, 511, 1000, 20000, 300000, LARGEST};
  double      *from, *to;
  int          size, next, previous, aware;
  MPI_Datatype strided;

  MPI_Init(&argc, &argv); /* before the first call of CUDA, as in PETSc */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next     = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  aware    = MPIX_Query_cuda_support();
  fact(aware, "MPIX_Query_cuda_support()", 0);
  MPI_Allreduce(MPI_IN_PLACE, &aware, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!aware) goto end; /* device pointers would crash it */
  host = malloc(LARGEST * sizeof(double));
  if (!host) MPI_Abort(MPI_COMM_WORLD, 1);
  check(cudaSetDevice(0), "device 0");
  check(cudaMalloc((void **)&from, LARGEST * sizeof(double)), "allocation");
  check(cudaMalloc((void **)&to, LARGEST * sizeof(double)), "allocation");
  for (int round = 0; round < 2; round++) { /* CUDA IPC is agreed on with the first message and used by later ones */
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
      const int   count = counts[c];
      MPI_Request requests[2];

      fill(from, count);
      wipe(to, count);
      MPI_Sendrecv(from, count, MPI_DOUBLE, next, 1, to, count, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      fact(holds_value(to, count, previous), "MPI_Sendrecv, device to device", count);
      wipe(to, count);
      MPI_Irecv(to, count, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(from, count, MPI_DOUBLE, previous, 2, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      fact(holds_value(to, count, next), "MPI_Isend and MPI_Irecv, device to device", count);
      wipe(to, count);
      MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      fact(holds_sum(to, count, size), "MPI_Allreduce on the device", count);
      for (int i = 0; i < count; i++) host[i] = value(rank, count, i);
      wipe(to, count);
      MPI_Sendrecv(host, count, MPI_DOUBLE, next, 3, to, count, MPI_DOUBLE, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      fact(holds_value(to, count, previous), "MPI_Sendrecv, host to device", count);
    }
  }
  /* PETSc's own test */
  fill(from, 1);
  wipe(to, 1);
  MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  fact(holds_value(to, 1, rank), "MPI_Allreduce on the device, MPI_COMM_SELF", 1);
  /* every other number, to the front */
  MPI_Type_vector(1000, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&strided);
  fill(from, 2000);
  wipe(to, 1000);
  MPI_Sendrecv(from, 1, strided, next, 4, to, 1000, MPI_DOUBLE, previous, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(cudaMemcpy(host, to, 1000 * sizeof(double), cudaMemcpyDeviceToHost), "copy to the host");
  for (int i = 0; i < 1000; i++) aware = aware && host[i] == value(previous, 2000, 2 * i);
  fact(aware, "MPI_Sendrecv of a strided type, device to device", 1000);
  MPI_Type_free(&strided);
  check(cudaFree(from), "free");
  check(cudaFree(to), "free");
  free(host);
end:
  if (!rank) printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed > 0;
}
