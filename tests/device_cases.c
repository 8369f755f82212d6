#include "device_cases.h"
#include "device_util.h"

typedef struct {
  const char *name;
  int32_t     size;
} named_case;

/* New ones at the end: the place of a case decides which columns and roads it is tested with, and so which kernels those behind it launch */
static const named_case few_cases[] = {
  {"ragged",        67   },
  {"skewed",        103  },
  {"short",         203  },
  {"mixed",         175  }, // of clusters those with the most groups to a window; here blocks are aligned, and they are not
  {"limits",        35   },
  {"one_row",       1031 },
  {"all_empty",     37   },
  {"no_columns",    5    },
  {"elasticity",    4    }, // clusters with the most groups that 16 warps hold, here as well
  {"stencil7",      6    },
  {"nothing",       0    },
  {"laplace27",     4    },
  {"qcd",           3    },
  {"25d25s",        80   },
  {"lp",            500  }, // a third of the entries in segments, which the last one to arrive adds up; long rows
  {"like_dc2",      1009 }, // the same; short ones
  {"one_row",       13003}, // many segments for each long row, and nothing else
  {"four",          9    }, // rows of at most four entries
  {"webbase",       900  }, // short rows, and heavy ones
  {"like_FullChip", 701  }, // longer rows, a few in segments
  {"laplace27",     4    }, // the same without segments, other columns than above
  {"webbase",       6000 }, // short rows beside segments
  {"lp",            61   }, // clusters of 8 windows
  {"0d100s",        210  }, // the same; here blocks are aligned, too
  {"island",        2011 }, // clusters that have nothing
  {"100d0s",        210  }, // clusters whose values shared memory does not hold beside rows of B
  {"wave",          400  }, // short rows and long ones, whose windows lie together
  {"mixed",         175  }, // with more columns of aligned blocks than above
  {"rmat",          11   }, // rows of a dozen entries beside a few in segments
  {"qcd",           3    }, // with other columns than above
  {"lattice",       5    }, // clusters in natural order, bricks having none
  {"lines",         40   }, // neither has any
  {"ladder",        40   }, // bricks of short lines in a plane, which are better than natural order
  {"apart",         97   }, // more rows of B than entries
};

/*
  More than 8 and at most 12 thread blocks for each multiprocessor, of rows alike, no segments, and an L2 cache that holds them: there the kernel for fragments takes fewer registers; and not quite so, with segments.
  like_dc2 has as many slices that each warp owns and few that four share, whose quarters are dealt out to blocks (spread_quarters()); in small matrices each quarter has a block. The
  others are too large for the L2 cache, four and circuit with values of 16 bits, too, without and with segments; p3 has more blocks of slices that four warps share than of others, which then come first (order_slices()).
*/
static const named_case full_cases[] = {
  {"stencil27",        34     },
  {"stencil27_window", 34     },
  {"like_eu-2005",     32000  },
  {"like_dc2",         116835 },
  {"stokes",           23     }, // fewer registers, too
  {"four",             1450   },
  {"circuit",          1000000},
  {"p3",               17     },
};

static int named(int num, const named_case cases[], int i, device_case *C)
{
  if (i >= num) return 0;
  C->generator = tc_generator_find(cases[i].name);
  C->size      = cases[i].size;
  if (C->generator == NULL) device_die(cases[i].name, "no such generator");
  return 1;
}

int device_case_at(int few, int i, device_case *C)
{
  int                 num;
  const tc_generator *generators = tc_generators(&num);

  if (few) return named((int)(sizeof few_cases / sizeof few_cases[0]), few_cases, i, C);
  if (i >= num) return 0;
  C->generator = &generators[i];
  C->size      = generators[i].tiny;
  return 1;
}

int device_case_full(int i, device_case *C)
{
  return named((int)(sizeof full_cases / sizeof full_cases[0]), full_cases, i, C);
}
