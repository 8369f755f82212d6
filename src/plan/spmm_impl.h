/*
  Inside of a tc_spmm: for spmm.c, which multiplies, and spmm_choice.c, which chooses.
*/
#pragma once
#include "spmm.h"
#include "spmm_pattern.h"
#include "spmm_reason.h"

/* Memory that lasts from product to product and only grows */
typedef enum {
  ROOM_KERNEL, // scratch of the kernel
  ROOM_B,      // a far, narrow or transposed block on its way
  ROOM_C,
  ROOM_NARROW, // a far block in single precision
  ROOM_TURNED, // a block that was transposed
  NUM_ROOMS
} room_id;

typedef struct {
  void  *local;
  size_t bytes;
} room;

struct tc_spmm {
  const tc_backend     *backend;
  tc_spmm_options       options;
  int                   sm;
  void                 *begun; // a survey ahead of the first product, for `begun_for`
  tc_key                begun_for;
  tc_spmm_patterns      patterns;
  room                  rooms[NUM_ROOMS];
  const tc_spmm_kernel *last;
  int64_t               count;
  const tc_spmm_kernel *instead; // of the last choice, which is tiles for the sake of their clusters, if nobody knows of these; NULL: it is another one
  tc_spmm_reason        reason; // of the last choice
  char                  why[200]; // the same in words, when asked for
};
