/*
  What is packed as one piece: a segment or a slice, seen as 32 lanes of up to `width` entries. Entry k of a lane is CSR entry first + stride * k, value slot
  32 * (val + k) + lane unless they are by rows, and place k % places of index block k / places. Pieces are numbered in the order of their slots: segments, then slices.
*/
#pragma once
#include "../../kernels/tc_hybrid.h"
#include "host_rows.h"

typedef struct {
  int32_t   first[TC_HYBRID_SLICE_ROWS], count[TC_HYBRID_SLICE_ROWS];
  int32_t   stride, width, places;
  uint32_t *val, *index; // these are the members of the segment or slice
  uint8_t  *index_kind, *value_kind;
  int       by_rows;  // tc_hybrid_by_rows()
  int16_t  *exponent; // [num_exponents], of the segment or of each lane; NULL if there are none
  int32_t   num_exponents;
} tc_hybrid_lanes;

static inline void tc_hybrid_lanes_of_segment(const tc_hybrid *H, int32_t segment, tc_hybrid_lanes *L)
{
  tc_hybrid_segment *S     = &H->segment[segment];
  const int32_t      first = H->csr_first[S->long_row] + TC_HYBRID_SEGMENT * (segment - H->long_first[S->long_row]);

  L->stride     = TC_HYBRID_SLICE_ROWS;
  L->width      = (S->entries + TC_HYBRID_SLICE_ROWS - 1) / TC_HYBRID_SLICE_ROWS;
  L->places     = TC_HYBRID_BLOCK / TC_HYBRID_SLICE_ROWS;
  L->val        = &S->val;
  L->index      = &S->index;
  L->index_kind = &S->index_kind;
  L->value_kind = &S->value_kind;
  L->by_rows    = 0;

  L->exponent      = H->precision == TC_PRECISION_F16 ? H->exponent + segment : NULL;
  L->num_exponents = 1;
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    L->first[lane] = first + lane;
    L->count[lane] = (S->entries + TC_HYBRID_SLICE_ROWS - 1 - lane) / TC_HYBRID_SLICE_ROWS;
  }
}

static inline void tc_hybrid_lanes_of_slice(const tc_hybrid *H, int32_t slice, tc_hybrid_lanes *L)
{
  tc_hybrid_slice *S   = &H->slice[slice];
  const int32_t    row = TC_HYBRID_SLICE_ROWS * slice;

  L->stride     = 1;
  L->width      = S->width;
  L->places     = tc_hybrid_places(S->width);
  L->val        = &S->val;
  L->index      = &S->index;
  L->index_kind = &S->index_kind;
  L->value_kind = &S->value_kind;
  L->by_rows    = tc_hybrid_by_rows(H, slice, S->width);

  L->exponent      = H->precision == TC_PRECISION_F16 ? H->exponent + H->num_segments + row : NULL;
  L->num_exponents = S->num_rows;
  for (int32_t lane = 0; lane < TC_HYBRID_SLICE_ROWS; ++lane) {
    const int used = lane < S->num_rows;

    L->first[lane] = used ? H->csr_first[H->num_long + row + lane] : 0;
    L->count[lane] = used ? H->length[row + lane] : 0;
  }
}

static inline void tc_hybrid_lanes_of(const tc_hybrid *H, int64_t piece, tc_hybrid_lanes *L)
{
  if (piece < H->num_segments) tc_hybrid_lanes_of_segment(H, (int32_t)piece, L);
  else tc_hybrid_lanes_of_slice(H, (int32_t)(piece - H->num_segments), L);
}
