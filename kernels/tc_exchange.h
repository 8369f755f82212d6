/*
  tc_exchange - elements of vectors, or rows of dense blocks, that go to other processes of the machine: kernels write them into those processes' memory and wait for what comes, so that the
  host neither waits nor copies. Memory that others write is a window; what is exchanged first and third is in one half of it, what is second and fourth in the other, so that nobody overwrites
  what is still read: exchange g + 2 begins, wherever it does, behind g + 1, which waits for all neighbours, whose part in g + 1 comes behind what they do with g.
*/
#pragma once
#include "tc_base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TC_WINDOW_ALIGNMENT = 256 };

/* What tells another process where a window is, or which device a process has */
typedef struct {
  char bytes[128];
} tc_window_name;

/* What goes to one neighbour; every neighbour gets a flag, if nothing else */
typedef struct {
  void     *half[2];    // of the neighbour's window
  uint32_t *flag;       // there, too: exchange g has come once it is g
  int64_t   place;      // rows of a half before those from here
  int64_t   first, num; // rows that are sent
} tc_target;

/* What is sent: rows of a block, by rows, or elements of a vector; all local */
typedef struct {
  const int64_t *row;     // of elements: where in `from` each is; NULL: one after the other
  int64_t        columns; // 1 if there is a list
  tc_scalar      scalar;
  const void    *from;
} tc_sent;

typedef struct {
  /* The present device, the same for whoever has it; takes a millisecond. Errors: TC_ERR_DEVICE */
  tc_status (*name_device)(tc_window_name *name);
  /* Zeros, of the present device, aligned to TC_WINDOW_ALIGNMENT. Waits for the device. release(): NULL is fine; whoever knows the window may no longer write. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE */
  tc_status (*alloc)(size_t bytes, void **window, tc_window_name *name);
  void (*release)(void *window);
  /* A window of another process of the machine, for the present device, until the process ends. Errors: TC_ERR_DEVICE, one that this device cannot reach */
  tc_status (*open)(const tc_window_name *name, void **window);
  /*
    Exchange `generation`, 1 for the first: each target gets rows first, ..., first + num - 1 of what is sent, or from[row[first]], ... if there is a list, one after the other, then its
    flag. targets [num_targets] and arrived [num_targets], zeros before and after, local; `most`: rows that a target gets. Then, if there are flags [num_targets], of the window, as await()
    does. Enqueues. No test makes these three fail, as there is no other way for what neighbours count on
  */
  tc_status (*push)(const tc_target *targets, int32_t num_targets, int64_t most, uint32_t *arrived, const tc_sent *sent, const uint32_t *flags, uint32_t generation, tc_stream stream);
  /* What is enqueued from now on begins when all flags [num], local, are `generation` or the one behind it */
  tc_status (*await)(const uint32_t *flags, int32_t num, uint32_t generation, tc_stream stream);
  /* to[row[i]] = to[row[i]] + from[s] + from[s'] ..., i < num, s, s', ... = slot[first_slot[i]], ..., slot[first_slot[i + 1] - 1]; no row comes twice. All local. Enqueues */
  tc_status (*add)(int64_t num, const int64_t *row, const int64_t *first_slot, const int64_t *slot, tc_scalar scalar, const void *from, void *to, tc_stream stream);
} tc_exchange;

#ifdef __cplusplus
}
#endif
