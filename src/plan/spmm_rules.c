#include "spmm_rules.h"
#include <math.h>
#include <string.h>

/* What a rule may ask for */
typedef enum {
  COLUMNS,
  WORK,            // mean row times columns: multiplications per row
  MULTIPLICATIONS, // of all entries
  ROWS,
  MEAN_ROW,
  LONGEST_ROW,
  SCATTERED,  // share of entries whose column is not near one of the row above
  PER_TILE,   // entries in 8 rows and 4 of their distinct columns
  PER_COLUMN, // entries for each row of B
  SPREAD,     // rows for each entry of the longest one: how many lanes share the time that it takes one of them
  ODD,        // 1: columns of B have an odd number of elements, so that every other one begins between two times 16 bytes
  CLUSTERS,   // 0: there are none; 1: there may be
  NUM_QUANTITIES
} quantity;

/*
  The first rule all of whose conditions hold and whose format has a kernel decides. Fitted to all kernels' times on 129 cases, an H200, with 2 to 128 columns: what it takes is
  within 1.3% of the fastest kernel in the geometric mean with any number of them but 2, 1.9% (docs/performance-chains.md, "Two groups of tiles at a time"). Tiles have to be filled, slices want neighbouring rows that touch
  neighbouring columns, or few of them, and rows of which the longest does not take long. Rows in segments go straight from CSR while a device holds all segments at once, up to some 36 million multiplications.
  Tiles of scattered columns want a window for each of the 28 warps that a multiprocessor has of theirs, and so do rows of 64 and more with few columns, whose windows take long; where tiles are fuller, for as long
  as a device takes all rows from CSR in one wave, with up to 8 columns (like_pdb1HYS:15000, 20000: CSR 16.6, 30.5 us, tiles 18.1, 20.4). B is not
  worth turning for tiles where each of its rows is needed by few entries: restriction:40. Clusters are ahead of slices where rows are no shorter than those of convection:60, and tiles alone are not
  (docs/performance-waits.md, "Clusters in place of slices"); with short rows only where all columns of B begin alike. A product with a small matrix takes as long
  as its launches, of which clusters and CSR have one, or as its longest row, which slices give to one lane (docs/performance-waits.md, "Small blocks"); with up to 4 columns slices take least else ("Few columns"). The host has kernels for CSR only.
*/
enum { MAX_CONDITIONS = 7, FEWEST = 8 /* columns that CSR may read where they are; with fewer, packing gains about as much over it */ };

typedef struct {
  quantity quantity;
  double   at_least, below;
} condition;

typedef struct {
  const char *format;
  int         num;
  condition   condition[MAX_CONDITIONS];
} rule_row;

#define AT_LEAST(quantity, bound) {quantity, bound, INFINITY}
#define BELOW(quantity, bound)    {quantity, -INFINITY, bound}

static const rule_row rules[] = {
  {"csr",    2, {AT_LEAST(LONGEST_ROW, 200), BELOW(PER_TILE, 7)}                                              },
  {"csr",    4, {AT_LEAST(LONGEST_ROW, 256), BELOW(ROWS, 12000), BELOW(COLUMNS, 80), BELOW(MULTIPLICATIONS, 3.6e7)}},
  {"hybrid", 6, {BELOW(COLUMNS, 5), AT_LEAST(SPREAD, 1000), AT_LEAST(ROWS, 40000), BELOW(LONGEST_ROW, 100), BELOW(PER_TILE, 14), AT_LEAST(PER_TILE, 5.2)}},
  {"bittcf", 4, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, FEWEST), AT_LEAST(MEAN_ROW, 20), AT_LEAST(PER_COLUMN, 256)}},
  {"bittcf", 6, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, 2), AT_LEAST(MEAN_ROW, 20), BELOW(SCATTERED, 0.3), AT_LEAST(PER_COLUMN, 4), BELOW(ROWS, 70000)}},
  {"bittcf", 7, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, 2), AT_LEAST(MEAN_ROW, 9), BELOW(SCATTERED, 0.3), AT_LEAST(PER_COLUMN, 4), BELOW(ROWS, 70000), BELOW(ODD, 1)}},
  {"bittcf", 7, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, FEWEST), AT_LEAST(MEAN_ROW, 6), BELOW(SCATTERED, 0.1), AT_LEAST(PER_COLUMN, 4), BELOW(ROWS, 40000), BELOW(ODD, 1)}},
  {"csr",    2, {BELOW(PER_TILE, 5.2), BELOW(COLUMNS, 32)}                                                    },
  {"csr",    2, {BELOW(PER_TILE, 5.2), AT_LEAST(LONGEST_ROW, 100)}                                            },
  {"csr",    2, {BELOW(PER_TILE, 5.2), BELOW(MEAN_ROW, 6)}                                                    },
  {"csr",    2, {BELOW(PER_TILE, 5.2), BELOW(ROWS, 8 * 28 * 132)}                                             },
  {"csr",    3, {AT_LEAST(MEAN_ROW, 256), BELOW(COLUMNS, 80), BELOW(MULTIPLICATIONS, 3.6e7)}                  },
  {"csr",    5, {BELOW(COLUMNS, 9), AT_LEAST(MEAN_ROW, 64), BELOW(PER_TILE, 14.6), BELOW(ROWS, 8 * 16 * 132), BELOW(MULTIPLICATIONS, 3.6e7)}},
  {"csr",    5, {BELOW(COLUMNS, 17), AT_LEAST(MEAN_ROW, 64), BELOW(PER_TILE, 12), BELOW(ROWS, 8 * 28 * 132), BELOW(MULTIPLICATIONS, 3.6e7)}},
  {"bittcf", 5, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, 2), AT_LEAST(MEAN_ROW, 20), BELOW(SCATTERED, 0.1), AT_LEAST(PER_COLUMN, 4)}},
  {"bittcf", 5, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, 9), AT_LEAST(MEAN_ROW, 9), BELOW(SCATTERED, 0.1), AT_LEAST(PER_COLUMN, 4)}},
  {"hybrid", 4, {AT_LEAST(COLUMNS, 9), BELOW(LONGEST_ROW, 12), BELOW(SCATTERED, 0.8), BELOW(ROWS, 60000)}     },
  {"hybrid", 4, {AT_LEAST(SPREAD, 700), BELOW(COLUMNS, 5), BELOW(LONGEST_ROW, 100), BELOW(PER_TILE, 14)}      },
  {"hybrid", 5, {AT_LEAST(SPREAD, 1000), BELOW(COLUMNS, 16), BELOW(LONGEST_ROW, 100), BELOW(WORK, 200), BELOW(PER_TILE, 14)}},
  {"hybrid", 5, {AT_LEAST(SPREAD, 3000), BELOW(COLUMNS, 16), BELOW(LONGEST_ROW, 100), BELOW(WORK, 250), BELOW(PER_TILE, 14)}},
  {"hybrid", 5, {AT_LEAST(SPREAD, 1000), AT_LEAST(COLUMNS, 16), BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 100), BELOW(WORK, 450)}},
  {"hybrid", 4, {AT_LEAST(SPREAD, 1000), BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 100), BELOW(MEAN_ROW, 8)}  },
  {"hybrid", 3, {AT_LEAST(SPREAD, 1000), BELOW(PER_COLUMN, 4), BELOW(LONGEST_ROW, 100)}                       },
  {"hybrid", 5, {AT_LEAST(SPREAD, 250), AT_LEAST(COLUMNS, 40), BELOW(PER_COLUMN, 4), BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 100)}},
  {"csr",    2, {BELOW(ROWS, 13000), BELOW(COLUMNS, 17)}                                                      },
  {"bittcf", 0, {{0}}                                                                                         },
  {"hybrid", 3, {AT_LEAST(SPREAD, 250), BELOW(SCATTERED, 0.15), BELOW(LONGEST_ROW, 256)}                      },
  {"hybrid", 3, {AT_LEAST(SPREAD, 250), BELOW(SCATTERED, 0.5), BELOW(LONGEST_ROW, 110)}                       },
  {"csr",    0, {{0}}                                                                                         },
};

/*
  The same for all precisions but F64; a rule whose format has no kernel in the precision is passed over. 2:4 tiles (bcsr) are for those who ask for them. Nobody surveys a
  pattern for the host: it takes csr, which needs no packing.
*/
static const rule_row narrow_rules[] = {
  {"csr",    2, {AT_LEAST(LONGEST_ROW, 256), BELOW(PER_TILE, 7)}},
  {"csr",    1, {BELOW(PER_TILE, 5.2)}                          },
  {"bittcf", 0, {{0}}                                           },
  {"csr",    0, {{0}}                                           },
};

/*
  The same for blocks of floats, row-major, in TF32. Fitted to
    test_spmm_kernels -bench 1 -row-major 128,256,512 -case (the cases of docs/performance-narrow.md, "By rows")
*/
static const rule_row rules_by_rows[] = {
  {"csr",    2, {AT_LEAST(LONGEST_ROW, 256), BELOW(PER_TILE, 7)}},
  {"csr",    1, {BELOW(PER_TILE, 5.2)}                          },
  {"csr",    1, {BELOW(MEAN_ROW, 5)}                            },
  {"csr",    2, {BELOW(COLUMNS, 256), BELOW(PER_TILE, 6)}       },
  {"bittcf", 0, {{0}}                                           },
};

/*
  The same for the transpose of a block, whose columns are rows of B: the kernel for CSR reads these where they are, for tiles they are copied, for slices they are turned. So
  fewer products are worth that: docs/performance-blocks.md, "A B^T".
*/
static const rule_row rules_b_transposed[] = {
  {"csr",    2, {AT_LEAST(LONGEST_ROW, 256), BELOW(PER_TILE, 7)}                                          },
  {"csr",    4, {AT_LEAST(LONGEST_ROW, 256), BELOW(ROWS, 12000), BELOW(COLUMNS, 80), BELOW(MULTIPLICATIONS, 3.6e7)}},
  {"csr",    1, {BELOW(PER_COLUMN, 8)}                                                                    },
  {"hybrid", 6, {BELOW(COLUMNS, 5), AT_LEAST(SPREAD, 700), AT_LEAST(ROWS, 40000), BELOW(LONGEST_ROW, 100), BELOW(PER_TILE, 14), AT_LEAST(PER_TILE, 5.2)}},
  {"csr",    2, {BELOW(MEAN_ROW, 12), BELOW(COLUMNS, 64)}                                                 },
  {"csr",    1, {BELOW(PER_TILE, 5.2)}                                                                    },
  {"csr",    3, {AT_LEAST(MEAN_ROW, 256), BELOW(COLUMNS, 80), BELOW(MULTIPLICATIONS, 3.6e7)}              },
  {"csr",    5, {BELOW(COLUMNS, 17), AT_LEAST(MEAN_ROW, 64), BELOW(PER_TILE, 12), BELOW(ROWS, 8 * 28 * 132), BELOW(MULTIPLICATIONS, 3.6e7)}},
  {"csr",    3, {BELOW(ROWS, 17000), BELOW(COLUMNS, 17), BELOW(MULTIPLICATIONS, 6e6)}                     },
  {"bittcf", 4, {AT_LEAST(CLUSTERS, 1), AT_LEAST(COLUMNS, 2), AT_LEAST(MEAN_ROW, 20), BELOW(SCATTERED, 0.1)}},
  {"hybrid", 5, {AT_LEAST(SPREAD, 1000), BELOW(COLUMNS, 16), BELOW(LONGEST_ROW, 100), BELOW(WORK, 250), BELOW(SCATTERED, 0.8)}},
  {"bittcf", 0, {{0}}                                                                                     },
  {"csr",    0, {{0}}                                                                                     },
};

#undef AT_LEAST
#undef BELOW

/*
  What packing takes, values included, and what a product gains by it over one straight from CSR: milliseconds of an H200 in a process
  that has made others (docs/performance-conversion.md, "Tiles"; docs/performance-blocks.md). Both scale with a device's bandwidth, so that their ratio is about the same elsewhere.
*/
static const struct {
  const char *format, *instead;           // tiles for the sake of their clusters, and what multiplies else: NULL, tiles for their own
  double      once, per_entry, per_row;     // of a conversion
  double      gain_per_entry, gain_per_row; // for one column
  double      poor, gain_if_poor;           // an entry gains less where tiles hold fewer entries
  double      gain_of_launch;               // with more columns than CSR may read where they are
} conversions[TC_SPMM_CONVERSIONS] = {
  {"hybrid", NULL,     0.1,  6.0e-9, 4.0e-8, 2.7e-10, 3.5e-9, 0,   0,       0.002 },
  {"bittcf", NULL,     0.25, 2.5e-8, 2.0e-7, 4.0e-10, 0,      5.2, 1.0e-10, 0     },
  {"bittcf", "csr",    0.25, 2.5e-8, 2.0e-7, 6.0e-10, 0,      0,   0,       0.0035},
  {"bittcf", "hybrid", 0.25, 2.5e-8, 2.0e-7, 1.5e-10, 0,      0,   0,       0.0025},
};

tc_spmm_traits tc_spmm_traits_of(const tc_csr_view *rows, const tc_survey *survey)
{
  return (tc_spmm_traits){
    .entries     = (double)rows->nnz,
    .rows        = rows->num_rows,
    .mean_row    = rows->num_rows > 0 ? (double)rows->nnz / rows->num_rows : 0,
    .longest_row = survey->longest_row,
    .scattered   = survey->sampled > 0 ? (double)survey->far / (double)survey->sampled : 0,
    .per_tile    = survey->columns > 0 ? 4.0 * (double)survey->in_windows / (double)survey->columns : 0,
    .per_column  = rows->num_cols > 0 ? (double)rows->nnz / rows->num_cols : 0,
    .odd         = rows->num_cols % 2,
    .clusters    = 1,
  };
}

int tc_spmm_conversion_find(const char *format, const char *instead)
{
  for (int c = 0; c < TC_SPMM_CONVERSIONS; ++c) {
    if (strcmp(conversions[c].format, format) == 0 && (instead == NULL ? conversions[c].instead == NULL : conversions[c].instead != NULL && strcmp(conversions[c].instead, instead) == 0)) return c;
  }
  return -1;
}

double tc_spmm_conversion_ms(int c, const tc_spmm_traits *T)
{
  return conversions[c].once + conversions[c].per_entry * T->entries + conversions[c].per_row * T->rows;
}

double tc_spmm_gain_ms(int c, const tc_spmm_traits *T, int32_t n)
{
  const int     over_csr  = conversions[c].instead == NULL || strcmp(conversions[c].instead, "csr") == 0;
  const int32_t columns   = over_csr && n < FEWEST ? FEWEST : n;
  const double  per_entry = T->per_tile < conversions[c].poor ? conversions[c].gain_if_poor : conversions[c].gain_per_entry;

  return columns * (per_entry * T->entries + conversions[c].gain_per_row * T->rows) + (n > FEWEST ? conversions[c].gain_of_launch : 0);
}

static const char *next_of(const rule_row *rules_of, int num, const tc_spmm_traits *T, int32_t n, int *rule)
{
  const double of[NUM_QUANTITIES] = {[COLUMNS] = n, [WORK] = n * T->mean_row, [MULTIPLICATIONS] = n * T->entries, [ROWS] = T->rows, [MEAN_ROW] = T->mean_row, [LONGEST_ROW] = T->longest_row, [SCATTERED] = T->scattered, [PER_TILE] = T->per_tile, [PER_COLUMN] = T->per_column, [SPREAD] = T->rows / fmax(T->longest_row, 1), [ODD] = T->odd, [CLUSTERS] = T->clusters};

  while (*rule < num) {
    const rule_row *R     = &rules_of[(*rule)++];
    int             holds = 1;

    for (int c = 0; c < R->num; ++c) {
      const condition *C = &R->condition[c];

      holds = holds && of[C->quantity] >= C->at_least && of[C->quantity] < C->below;
    }
    if (holds) return R->format;
  }
  return NULL;
}

const char *tc_spmm_next_rule(tc_spmm_rules table, const tc_spmm_traits *T, int32_t n, int *rule)
{
#define RULES(table) {table, (int)(sizeof(table) / sizeof((table)[0]))}
  static const struct {
    const rule_row *rules;
    int             num;
  } tables[] = {[TC_SPMM_RULES_F64] = RULES(rules), [TC_SPMM_RULES_NARROW] = RULES(narrow_rules), [TC_SPMM_RULES_B_TRANSPOSED] = RULES(rules_b_transposed), [TC_SPMM_RULES_BY_ROWS] = RULES(rules_by_rows)};
#undef RULES

  return next_of(tables[table].rules, tables[table].num, T, n, rule);
}
