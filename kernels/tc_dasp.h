/*
  tc_dasp - the packed arrays of the DASP format, the same on host and device. Pictures and the reasons: docs/formats.md.
  Source of the row classes: Lu and Liu, "DASP: Specific Dense Matrix Multiply-Accumulate Units Accelerated General Sparse Matrix-Vector Multiplication", SC'23.

  Everything but the single-entry rows and the tails is made of tiles of 8 rows by 4 entries, 32 slots, stored entry-major: entry k of tile row g sits at slot
  8 * k + g. A padding slot has column TC_DASP_PAD and value 0: it contributes fma(0, 0, sum), whatever x holds.

  Order of the slots (val, col, map): long | medium | pair13 | four | pair22 | one | tail. Order of row_id: long | medium | pair13 | four | pair22 | one | empty.
    long    rows of at least `long_row` entries, cut into segments of TC_DASP_SEGMENT; the sum of a segment runs in 128 chains, entry e of the segment belongs
            to chain (e / 4) % 128, i.e. to row (e / 4) % 8 of tile e / 32
    medium  rows sorted by length, descending, stable, those of few entries within windows; 8 of them form a block; tile i holds entries 4i .. 4i+3 of each
            row while at least `regular_fill` of its 32 slots are used; what is left of a row is its tail, a piece of CSR
    pair13  one row of 1 entry (k = 0) and one of 3 entries (k = 1, 2, 3) share a tile row;   row_id: all first rows, then all second rows
    four    a row of 4 entries, of 3 that found no partner, or of 2 that found none
    pair22  two rows of 2 entries share a tile row;                                            row_id: all first rows, then all second rows
    one     single-entry rows that found no partner: one slot each, no tile
*/
#pragma once
#include "tc_base.h"

enum {
  TC_DASP_TILE_ROWS  = 8,
  TC_DASP_TILE_SLOTS = 32,
  TC_DASP_SEGMENT    = 2048, // these two are part of the definition of the result's bits: docs/formats.md, "The order of the additions"
  TC_DASP_CHAINS     = 128,
  TC_DASP_PAD_BYTE   = 0x80,
  TC_DASP_PAD        = -0x7f7f7f80 // negative; four bytes of the above
};

/*
  Why not -1: freed device memory is somebody's uninitialised memory next. With -1 the Galerkin product of PETSc's ex56 -ne 24 (cuSPARSE 12.6.3, SpGEMM, kernel
  reduce_by_key), in memory that had held these arrays, never returned on an H200; with this marker, two of which are a small ordinary double, it does.
*/

typedef struct {
  int32_t num_rows, num_cols;
  int64_t num_nonzeros, num_slots;
  int32_t num_long, num_segments;            // long rows and their segments
  int32_t num_medium, num_blocks;            // medium rows and their blocks of 8
  int32_t num_pair13, num_four, num_pair22;  // tile rows of each short section
  int32_t num_one, num_empty;                // rows
  int32_t longest_medium;                    // entries
  float   scattered;                         // share of the entries of medium tiles whose column is far from that of the row above: how well gathers coalesce
  int64_t slot_medium, slot_pair13, slot_four, slot_pair22, slot_one, slot_tail; // where the sections of val, col, map begin
  int32_t row_medium, row_pair13, row_four, row_pair22, row_one, row_empty;      // where the sections of row_id begin
  double  *val;         // [num_slots]
  int32_t *col;         // [num_slots], TC_DASP_PAD in padding
  int32_t *map;         // [num_slots], index of the slot's value in the CSR value array, TC_DASP_PAD in padding
  int32_t *row_id;      // [num_rows], the matrix row of each packed row
  int64_t *segment_ptr; // [num_segments + 1], first slot of each segment
  int32_t *segment_row; // [num_segments], which long row (0 .. num_long - 1) a segment belongs to
  int32_t *long_ptr;    // [num_long + 1], first segment of each long row
  int64_t *block_ptr;   // [num_blocks + 1], first slot of each medium block
  int64_t *tail_ptr;    // [num_blocks + 1], first slot of the tails of each medium block
  uint16_t *tail_end;   // [8 * num_blocks], where the tail of each medium row ends, counted from its block's first tail slot
  double  *partial;     // [num_segments], scratch: sum of each segment
  int32_t *arrived;     // [num_long], scratch, zero between products: segments of the row that have finished
} tc_dasp;
