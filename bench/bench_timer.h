/*
  Clocks for the benchmark: device events where the work runs on a GPU, the wall clock elsewhere. Compiled with or without CUDA.
*/
#pragma once

/* Is there a GPU that this program can time? `name` [256] gets what it is, or why there is none. */
int bench_device(char *name);

/* Versions of the CUDA runtime and cuSPARSE as text, "" without CUDA; each [32] */
void bench_versions(char *cuda, char *cusparse);

/* GB/s that a device copy of 4 GB moves, bytes read plus bytes written, median of several; 0 without a GPU */
double bench_copy_gbs(void);

/* Seconds between begin and end of the work enqueued on the legacy default stream; `device` chooses the clock. Not nested. */
void   bench_begin(int device);
double bench_end(int device);

/* Seconds on the wall clock, from any moment on */
double bench_wall(void);

/* Waits for the device */
void bench_synchronize(int device);

/* Median of n numbers, which are sorted in place; *spread gets half the range of the middle half */
double bench_median(int n, double *numbers, double *spread);
