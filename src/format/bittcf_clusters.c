/*
  The clusters of the BitTCF format on the host, out of windows that are packed: kernels/tc_bittcf.h defines their arrays.
*/
#include "bittcf_build.h"
#include "format.h"
#include <stdlib.h>
#include <string.h>

static int32_t column_of(const tc_bittcf *T, int32_t w, int32_t at)
{
  const tc_bittcf_window *W    = &T->window[w];
  const void             *from = (const uint32_t *)((const char *)T->tiles + 16 * (size_t)W->tiles) + W->num_groups;

  return W->wide ? ((const int32_t *)from)[at] : W->base + ((const uint16_t *)from)[at];
}

static int32_t end_of_cluster(const tc_bittcf *T, int32_t cluster)
{
  return tc_bittcf_at_most((int64_t)T->num_windows - (int64_t)cluster * T->cluster_windows < T->cluster_windows ? T->num_windows : (cluster + 1) * T->cluster_windows, T->num_windows);
}

/* The list of a cluster, into `to` unless that is NULL; returns how many. `columns` has room for the columns of all its windows. */
static int32_t merge_cluster(const tc_bittcf *T, int32_t cluster, int32_t *columns, int32_t *to)
{
  const int32_t   first = cluster * T->cluster_windows;
  const int32_t   of    = tc_bittcf_listed(T);
  tc_bittcf_lists L     = {.num = end_of_cluster(T, cluster) - first};
  int32_t         column, num = 0, last = -1;
  uint32_t        holders;

  for (int32_t i = 0; i < L.num; ++i) {
    L.next[i] = columns;
    for (int32_t at = 0; at < TC_BITTCF_GROUP * T->window[first + i].num_groups; ++at) *columns++ = column_of(T, first + i, at);
    L.end[i] = columns;
  }
  while (tc_bittcf_next_column(&L, &column, &holders)) {
    if (column / of == last) continue;
    last = column / of;
    if (to) to[num] = last;
    ++num;
  }
  return num;
}

static int32_t place_in(const int32_t *sorted, int32_t num, int32_t listed)
{
  int32_t low = 0;

  for (int32_t high = num - 1; low < high;) {
    const int32_t middle = (low + high) / 2;

    if (sorted[middle] < listed) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Which columns of its fours a cluster refers to, by the places of its windows */
static void mark_listed(const tc_bittcf *T, int32_t cluster, int32_t *list, int32_t num)
{
  for (int32_t i = 0; i < num; ++i) list[i] <<= TC_BITTCF_GROUP;
  for (int32_t w = cluster * T->cluster_windows; w < end_of_cluster(T, cluster); ++w) {
    const uint16_t *place = T->place + TC_BITTCF_BLOCK * (size_t)T->place_first[w];

    for (int32_t at = 0; at < TC_BITTCF_BLOCK * tc_bittcf_place_blocks(T->window[w].num_groups); ++at) list[place[at] / TC_BITTCF_GROUP] |= 1 << place[at] % TC_BITTCF_GROUP;
  }
}

static void fill_cluster(tc_bittcf *T, int32_t cluster, int32_t *columns)
{
  const int32_t of   = tc_bittcf_listed(T);
  int32_t      *list = T->cluster_list + T->cluster_first[cluster], num = merge_cluster(T, cluster, columns, list);

  for (int32_t w = cluster * T->cluster_windows; w < end_of_cluster(T, cluster); ++w) {
    const int32_t groups = T->window[w].num_groups, side = TC_BITTCF_PLACES * tc_bittcf_place_blocks(groups);
    uint16_t     *place  = T->place + TC_BITTCF_BLOCK * (size_t)T->place_first[w];

    for (int32_t at = 0; at < TC_BITTCF_GROUP * side; ++at) {
      const int32_t column = column_of(T, w, TC_BITTCF_GROUP * tc_bittcf_at_most(at % side, groups - 1) + at / side);

      place[at] = (uint16_t)(of * place_in(list, num, column / of) + column % of);
    }
  }
  if (of > 1) mark_listed(T, cluster, list, num);
}

static tc_status build_clusters(tc_bittcf *T, int32_t *columns, uint32_t *num_listed, int32_t num_clusters)
{
  int64_t total = 0, blocks = 0;
  int32_t widest = 0;

  for (int32_t c = 0; c < num_clusters; ++c) {
    num_listed[c] = (uint32_t)merge_cluster(T, c, columns, NULL);
    total += num_listed[c];
    if ((int32_t)num_listed[c] > widest) widest = (int32_t)num_listed[c];
  }
  if (!tc_bittcf_clusters_pay(T, total, widest)) num_clusters = 0;
  for (int32_t w = 0; w < T->num_windows; ++w) blocks += tc_bittcf_place_blocks(T->window[w].num_groups);
  T->num_clusters   = num_clusters;
  T->num_listed      = num_clusters > 0 ? total : 0;
  T->num_places     = num_clusters > 0 ? TC_BITTCF_BLOCK * blocks : 0;
  T->widest_cluster = num_clusters > 0 ? widest : 0;
  TC_CALL(tc_new_array(&T->place_first, num_clusters > 0 ? T->num_windows : 0, sizeof *T->place_first));
  TC_CALL(tc_new_array(&T->place, T->num_places, sizeof *T->place));
  TC_CALL(tc_new_array(&T->cluster_first, num_clusters > 0 ? (int64_t)num_clusters + 1 : 0, sizeof *T->cluster_first));
  TC_CALL(tc_new_array(&T->cluster_list, T->num_listed, sizeof *T->cluster_list));
  if (num_clusters == 0) return TC_OK;
  T->place_first[0] = 0;
  for (int32_t w = 1; w < T->num_windows; ++w) T->place_first[w] = T->place_first[w - 1] + (uint32_t)tc_bittcf_place_blocks(T->window[w - 1].num_groups);
  T->cluster_first[0] = 0;
  for (int32_t c = 0; c < num_clusters; ++c) T->cluster_first[c + 1] = T->cluster_first[c] + num_listed[c];
  for (int32_t c = 0; c < num_clusters; ++c) fill_cluster(T, c, columns);
  return TC_OK;
}

tc_status tc_bittcf_make_clusters(tc_bittcf *T, int wanted)
{
  T->cluster_windows = tc_bittcf_windows_held(T);

  const int32_t num_clusters = wanted && tc_bittcf_may_cluster(T) ? (T->num_windows + T->cluster_windows - 1) / T->cluster_windows : 0;
  int32_t      *columns      = NULL;
  uint32_t     *num_listed    = NULL;
  tc_status     status       = tc_new_array(&columns, (int64_t)TC_BITTCF_GROUP * T->cluster_windows * T->widest_window, sizeof *columns);

  if (status == TC_OK) status = tc_new_array(&num_listed, num_clusters, sizeof *num_listed);
  if (status == TC_OK) status = build_clusters(T, columns, num_listed, num_clusters);
  free(columns);
  free(num_listed);
  return status;
}
