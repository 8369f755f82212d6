/*
  Exchanges of elements on the device, without other processes: three neighbours are windows of this one, over and over with other numbers, against the host, bit for bit, in both scalars; and
  elements added in their order: test_exchange [-small|-few] libaijtccusparse_cuda.so. All is on one stream, so that whoever waits has its elements already: that waiting works is for mat_mpi, on
  several processes. Exit code 77: no usable device.
*/
#include "device_bytes.h"
#include <stdlib.h>

enum { NUM = 3 /* neighbours */, GENERATIONS = 5, MOST_SLOTS = 3 };

static const tc_backend *backend;

/* A neighbour: what it sends to each of the others, from a vector of its own; itself gets nothing */
typedef struct {
  int64_t      length, num[NUM], first[NUM];
  int64_t     *row;  /* what goes to the first, the second, ...; of one column */
  void        *window, *x, *came; /* came: what was in the window when the exchange was over */
  size_t       half[2], flags;    /* bytes in the window */
  tc_target    target[NUM];
  int64_t      comes[NUM], num_coming; /* rows: where those of each other one begin there, and all */
  device_bytes rows, vector, targets, arrived;
} neighbour;

static void window_new(tc_scalar scalar, neighbour *N, const int64_t num[NUM], int64_t columns)
{
  tc_window_name name;

  N->num_coming = 0;
  for (int k = 0; k < NUM; ++k) {
    N->comes[k] = N->num_coming;
    N->num_coming += num[k];
  }
  for (int h = 0; h < 2; ++h) N->half[h] = 256 + (size_t)h * bytes_of(scalar, N->num_coming * columns);
  N->flags = 0;
  device_check(backend, backend->exchange->alloc(N->half[1] + bytes_of(scalar, N->num_coming * columns), &N->window, &name), "alloc");
  N->came = bytes_new(bytes_of(scalar, N->num_coming * columns));
}

/* Rows of `scalar` that go from neighbour to neighbour, sizes[i][k] from i to k; those of one column by a list */
static void check_exchange(tc_scalar scalar, const int64_t sizes[NUM][NUM], int64_t columns)
{
  const int list = columns == 1;
  neighbour N[NUM];
  int       same = 1, stays = 1;

  for (int i = 0; i < NUM; ++i) {
    int64_t into[NUM], all = 0;

    for (int k = 0; k < NUM; ++k) {
      into[k]       = sizes[k][i];
      N[i].num[k]   = sizes[i][k];
      N[i].first[k] = all;
      all += sizes[i][k];
    }
    N[i].length = list ? all + 7 : all * columns;
    N[i].row    = bytes_new((size_t)all * sizeof *N[i].row);
    for (int64_t e = 0; e < all; ++e) N[i].row[e] = random_below(N[i].length);
    window_new(scalar, &N[i], into, columns);
    N[i].rows    = device_bytes_new((size_t)all * sizeof *N[i].row, N[i].row);
    N[i].arrived = device_bytes_new(NUM * sizeof(uint32_t), NULL);
    device_check(backend, backend->zero(N[i].arrived.local, NUM * sizeof(uint32_t), NULL), "zero");
  }
  for (int i = 0; i < NUM; ++i) {
    for (int k = 0; k < NUM; ++k) {
      char *there = N[k].window;

      N[i].target[k] = (tc_target){.flag = (uint32_t *)(void *)(there + N[k].flags) + i, .place = N[k].comes[i], .first = N[i].first[k], .num = N[i].num[k]};
      for (int h = 0; h < 2; ++h) N[i].target[k].half[h] = there + N[k].half[h];
    }
    N[i].targets = device_bytes_new(sizeof N[i].target, N[i].target);
  }
  for (uint32_t generation = 1; generation <= GENERATIONS; ++generation) {
    for (int i = 0; i < NUM; ++i) {
      N[i].x      = numbers_new(scalar, N[i].length);
      N[i].vector = device_bytes_new(bytes_of(scalar, N[i].length), N[i].x);
    }
    /* in the second turn all find what they wait for */
    for (int turn = 0; turn < 2; ++turn) {
      for (int i = 0; i < NUM; ++i) {
        const uint32_t *flags = (const uint32_t *)(const void *)((char *)N[i].window + N[i].flags);
        const tc_sent   sent  = {list ? (const int64_t *)(void *)N[i].rows.local : NULL, columns, scalar, N[i].vector.local};
        int64_t         most  = 0;

        for (int k = 0; k < NUM; ++k) most = N[i].num[k] > most ? N[i].num[k] : most;
        device_check(backend, backend->exchange->push((const tc_target *)(void *)N[i].targets.local, NUM, most, (uint32_t *)(void *)N[i].arrived.local, &sent, turn ? flags : NULL, generation, NULL), "push");
      }
      for (int i = 0; i < NUM; ++i) device_check(backend, backend->exchange->await((const uint32_t *)(const void *)((char *)N[i].window + N[i].flags), NUM, generation - (uint32_t)turn, NULL), "await");
    }
    for (int k = 0; k < NUM; ++k) {
      device_check(backend, backend->download(N[k].came, (char *)N[k].window + N[k].half[generation % 2], bytes_of(scalar, N[k].num_coming * columns), NULL), "download");
      for (int i = 0; i < NUM; ++i) {
        for (int64_t e = 0; e < N[i].num[k] * columns; ++e) {
          const int64_t sent = N[i].first[k] * columns + e;

          same = same && number_at(scalar, N[k].came, N[k].comes[i] * columns + e) == number_at(scalar, N[i].x, list ? N[i].row[sent] : sent);
        }
      }
    }
    for (int i = 0; i < NUM; ++i) {
      stays = device_bytes_are(&N[i].vector, N[i].x) && stays;
      free(N[i].x);
    }
  }
  fact(same, "push", scalar, sizes[0][1] * columns, sizes[1][2] * columns, list ? "elements of a vector are where they belong, every time" : "rows are where they belong, every time");
  fact(stays, "push", scalar, sizes[0][1] * columns, sizes[1][2] * columns, "what is read stays");
  for (int i = 0; i < NUM; ++i) {
    static const uint32_t none[NUM] = {0};

    fact(device_bytes_are(&N[i].arrived, none), "push", scalar, i, NUM, "counts of thread blocks are zeros again");
    fact(device_bytes_are(&N[i].targets, N[i].target), "push", scalar, i, NUM, "targets stay");
    fact(device_bytes_are(&N[i].rows, N[i].row), "push", scalar, i, NUM, "the list stays");
    backend->exchange->release(N[i].window);
    free(N[i].row);
    free(N[i].came);
  }
}

/* to + from + from ..., in the order of slots */
static void check_add(tc_scalar scalar, int64_t num)
{
  int64_t     *row = bytes_new((size_t)num * sizeof *row), *first = bytes_new((size_t)(num + 1) * sizeof *first), *slot = bytes_new((size_t)(MOST_SLOTS * num) * sizeof *slot);
  void        *from, *to = numbers_new(scalar, 2 * num);
  device_bytes F, T = device_bytes_new(bytes_of(scalar, 2 * num), to), R, first_slot, of_row;

  first[0] = 0;
  for (int64_t i = 0; i < num; ++i) {
    row[i]       = 2 * i + random_below(2);
    first[i + 1] = first[i] + 1 + random_below(MOST_SLOTS);
  }
  for (int64_t s = 0; s < first[num]; ++s) slot[s] = first[num] - 1 - s;
  from       = numbers_new(scalar, first[num]);
  F          = device_bytes_new(bytes_of(scalar, first[num]), from);
  R          = device_bytes_new((size_t)num * sizeof *row, row);
  first_slot = device_bytes_new((size_t)(num + 1) * sizeof *first, first);
  of_row     = device_bytes_new((size_t)first[num] * sizeof *slot, slot);
  for (int64_t i = 0; i < num; ++i) {
    for (int64_t s = first[i]; s < first[i + 1]; ++s) set_number(scalar, to, row[i], number_at(scalar, to, row[i]) + number_at(scalar, from, slot[s]));
  }
  device_check(backend, backend->exchange->add(num, (const int64_t *)(void *)R.local, (const int64_t *)(void *)first_slot.local, (const int64_t *)(void *)of_row.local, scalar, F.local, T.local, NULL), "add");
  fact(device_bytes_are(&T, to), "add", scalar, num, first[num], "elements are added one after the other, other rows stay");
  fact(device_bytes_are(&F, from) && device_bytes_are(&R, row) && device_bytes_are(&first_slot, first) && device_bytes_are(&of_row, slot), "add", scalar, num, first[num], "what is read stays");
  free(row);
  free(first);
  free(slot);
  free(from);
  free(to);
}

int main(int argc, char **args)
{
  static const int64_t sizes[][NUM][NUM] = {{{0, 1, 0}, {0, 0, 0}, {0, 0, 0}}, {{0, 5, 0}, {5, 0, 255}, {0, 256, 0}}, {{0, 1000, 257}, {0, 0, 1}, {70000, 3, 0}}, {{0, 0, 0}, {0, 0, 300000}, {1, 0, 0}}};
  static const int64_t columns[] = {1, 7}, nums[] = {1, 255, 256, 257, 5000};

  backend = device_bytes_open("test_exchange", argc, args);
  if (backend == NULL) return DEVICE_SKIPPED;
  for (tc_scalar scalar = TC_SCALAR_F64; scalar <= TC_SCALAR_F32; ++scalar) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      for (size_t c = 0; c < sizeof columns / sizeof *columns; ++c) check_exchange(scalar, sizes[i], columns[c]);
    }
    for (size_t i = 0; i < sizeof nums / sizeof *nums; ++i) check_add(scalar, nums[i]);
  }
  return facts_end();
}
