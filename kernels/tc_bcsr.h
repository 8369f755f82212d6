/*
  tc_bcsr - the packed arrays of the BCSR format for products with dense blocks in 16-bit arithmetic, the same on host and device: windows of 16 rows, their columns
  condensed, in tiles of two kinds. Pictures and the reasons: docs/formats.md.

  A tile is the 16-row operand of one tensor-core instruction and stores 16 x 16 values, zeros included.
    dense  16 columns
    2:4    32 places in 8 groups of four; a row has values at 2 places of a group at most. The 16 values of a row are those of its pairs of places, group by group;
           `choice` says which two places of a group they are: 4 bits, the lower place in bits 0 and 1, the upper one in bits 2 and 3
  Columns are distinct within a window; places beyond them repeat a column of the group, or of the tile, and hold zeros.

  All arrays are in the order in which the lanes of a warp read them; lane 4 * g + t, g = 0 .. 7, t = 0 .. 3.
    val     8 values of a lane side by side: rows g, g + 8, g, g + 8, of the columns 2 * t and 2 * t + 1, twice, and 8 more, twice (tc_bcsr_slot())
    column  what a lane of number t reads side by side: the columns of places 2 * t, 2 * t + 1, and those 8, 16 and 24 further on (tc_bcsr_place())
    choice  of 2:4 tiles: word 2 * g + h holds groups 4 * h .. 4 * h + 3 of row g in its lower half, of row g + 8 in its upper half

  Pieces: the tiles of a window, 2:4 ones first, are cut into pieces of TC_BCSR_PIECE tiles at most, each summed up by itself. The pieces of windows that have more than one come
  first: piece p, p < num_slots, puts its sums at place p among the partial sums; windows with one piece follow, also those without tiles.
  In column, tiles of a piece begin at 16 * (tile + sparse), a 2:4 tile being two units of 16 columns.

  Values are BF16 or F16 (tc_narrow.h), each row divided by the power of two that brings its largest finite magnitude into [1, 2), for F16 [2^14, 2^15): row_exponent.
*/
#pragma once
#include "tc_narrow.h"
#include "tc_spmm.h"

enum {
  TC_BCSR_ROWS   = 16, // of a window
  TC_BCSR_DENSE  = 16, // columns of a dense tile
  TC_BCSR_SPARSE = 32, // places of a 2:4 tile
  TC_BCSR_GROUP  = 4,
  TC_BCSR_GROUPS = TC_BCSR_SPARSE / TC_BCSR_GROUP,
  TC_BCSR_SLOTS  = 256, // values of a tile
  TC_BCSR_WORDS  = 16,  // of choice, of a 2:4 tile
  TC_BCSR_PIECE  = 64,
  TC_BCSR_OPEN   = 64, // groups of a window that builders keep open
  TC_BCSR_PAD    = -0x7f7f7f80 // in the map, where a slot holds no entry; why this number: tc_dasp.h
};

/* 16 bytes, read in one piece */
typedef struct {
  uint32_t tile;   // its first tile
  uint32_t sparse; // 2:4 tiles before it
  int32_t  window;
  uint8_t  num_sparse, num_dense; // tiles
  uint16_t unused;
} tc_bcsr_piece;

typedef struct {
  int32_t        num_rows, num_cols;
  int64_t        num_nonzeros;
  tc_precision   precision; // BF16 or F16
  int32_t        num_windows;
  int64_t        num_tiles, num_sparse; // all, 2:4
  int32_t        num_pieces, num_slots; // all, those of windows with several
  int32_t        num_split;             // such windows
  tc_bcsr_piece *piece;        // [num_pieces]
  int32_t       *split_window; // [num_split]
  int32_t       *split_first;  // [num_split + 1], first piece of each
  int32_t       *column;       // [16 * (num_tiles + num_sparse)]
  uint32_t      *choice;       // [TC_BCSR_WORDS * num_sparse]
  int32_t       *map;          // [TC_BCSR_SLOTS * num_tiles], index of the slot's value in the CSR value array
  int32_t       *row_ptr;      // [num_rows + 1], of CSR
  uint16_t      *val;          // [TC_BCSR_SLOTS * num_tiles]
  int16_t       *row_exponent; // [16 * num_windows]
} tc_bcsr;

/* Slot of row i and stored column k of a tile, k < 16 */
TC_BOTH int32_t tc_bcsr_slot(int32_t i, int32_t k)
{
  return 8 * (4 * (i % 8) + k % 8 / 2) + 4 * (k / 8) + 2 * (i / 8) + k % 2;
}

/* Where a tile of `places` places names the column of place k */
TC_BOTH int32_t tc_bcsr_place(int32_t places, int32_t k)
{
  return places / 4 * (k % 8 / 2) + 2 * (k / 8) + k % 2;
}

/* Where choice has the 4 bits of row i and group q: the word, and the bit in it */
TC_BOTH int32_t tc_bcsr_choice_word(int32_t i, int32_t q)
{
  return 2 * (i % 8) + q / 4;
}

TC_BOTH int32_t tc_bcsr_choice_bit(int32_t i, int32_t q)
{
  return 16 * (i / 8) + 4 * (q % 4);
}

/* Tiles for so many columns, or groups */
TC_BOTH int64_t tc_bcsr_tiles_of(int64_t things, int64_t per_tile)
{
  return (things + per_tile - 1) / per_tile;
}

/* Bytes of the tiles of a window with so many groups in 2:4 ones and so many columns in others, in units of 64: values, columns, choice */
TC_BOTH int64_t tc_bcsr_cost(int64_t groups, int64_t columns)
{
  return (8 + 2 + 1) * tc_bcsr_tiles_of(groups, TC_BCSR_GROUPS) + (8 + 1) * tc_bcsr_tiles_of(columns, TC_BCSR_DENSE);
}

/*
  Tiles of a piece at most: fewer where that makes more warps busy, but not so few that the partial sums become the larger part of the traffic (unmeasured). Pieces are not
  made shorter than 16, nor more than about 2048 of them for the sake of parallel work.
*/
TC_BOTH int32_t tc_bcsr_longest_piece(int64_t num_tiles)
{
  const int64_t tiles = num_tiles / 2048;

  return tiles < 16 ? 16 : tiles < TC_BCSR_PIECE ? (int32_t)tiles : TC_BCSR_PIECE;
}

/* Pieces of a window, none of more than `most` tiles */
TC_BOTH int64_t tc_bcsr_pieces_of(int64_t tiles, int32_t most)
{
  return tiles > most ? tc_bcsr_tiles_of(tiles, most) : 1;
}

/* Tiles of a piece begin there in column */
TC_BOTH int64_t tc_bcsr_columns_at(int64_t tile, int64_t sparse)
{
  return TC_BCSR_DENSE * (tile + sparse);
}
