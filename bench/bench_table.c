#include "bench_table.h"

/* clang-format off */
static const tc_bench_case cases[] = {
  /* the table of the design's performance page */
  {"stencil27_160",        "stencil27",        160,     50,     0.368 },
  {"elasticity_64",        "elasticity",       64,      24,     0.178 },
  {"stencil7_220",         "stencil7",         220,     80,     0.374 },
  {"stencil27_window_128", "stencil27_window", 128,     50,     0.267 },
  {"stencil27_36",         "stencil27",        36,      36,     0.0054},
  {"elasticity_28",        "elasticity",       28,      16,     0.0176},
  {"qcd_11",               "qcd",              11,      9,      0.0060},
  {"four_724",             "four",             724,     724,    0.0079},
  {"four_2510",            "four",             2510,    1200,   0.0962},
  {"circuit_3m",           "circuit",          3000000, 400000, 0.127 },
  {"webbase_1m",           "webbase",          1000000, 400000, 0.0717},
  {"rmat_20",              "rmat",             20,      16,     0     },
  {"long_60k",             "long1153",         60000,   3000,   0.207 },
  {"long_2k",              "long487",          2000,    2000,   0.0079},
  /* operators */
  {"p2_48",                "p2",               48,      16,     0     },
  {"p3_24",                "p3",               24,      9,      0     },
  {"ex45_129",             "ex45",             129,     60,     0     },
  {"ex56_24",              "ex56",             24,      12,     0     },
  {"ex56_35",              "ex56",             35,      16,     0     },
  {"ex56_49",              "ex56",             49,      20,     0     },
  {"convection_140",       "convection",       140,     50,     0     },
  {"stokes_40",            "stokes",           40,      14,     0     },
  {"laplace7_160",         "laplace7",         160,     60,     0     },
  {"laplace27_100",        "laplace27",        100,     36,     0     },
  {"elasticity_f32_48",    "elasticity_f32",   48,      18,     0     },
  {"interpolation_80",     "interpolation",    80,      30,     0     },
  {"restriction_80",       "restriction",      80,      30,     0     },
  {"lp_200k",              "lp",               200000,  20000,  0     },
  {"offdiagonal_2m",       "offdiagonal",      2000000, 400000, 0     },
  /* small */
  {"stencil27_10",         "stencil27",        10,      10,     0     },
  {"stencil27_22",         "stencil27",        22,      22,     0     },
  {"stencil27_46",         "stencil27",        46,      46,     0     },
  {"elasticity_7",         "elasticity",       7,       7,      0     },
  {"elasticity_15",        "elasticity",       15,      15,     0     },
  {"elasticity_32",        "elasticity",       32,      20,     0     },
  /* surrogates of DASP's representative matrices, in their order */
  {"like_pwtk",            "like_pwtk",            217918,  30000,  0 },
  {"like_FullChip",        "like_FullChip",        2987012, 200000, 0 },
  {"like_mip1",            "like_mip1",            66463,   10000,  0 },
  {"like_mc2depi",         "like_mc2depi",         525825,  300000, 0 },
  {"like_webbase-1M",      "like_webbase-1M",      1000005, 300000, 0 },
  {"like_circuit5M",       "like_circuit5M",       5558326, 150000, 0 },
  {"like_Si41Ge41H72",     "like_Si41Ge41H72",     185639,  20000,  0 },
  {"like_Ga41As41H72",     "like_Ga41As41H72",     268096,  20000,  0 },
  {"like_in-2004",         "like_in-2004",         1382908, 100000, 0 },
  {"like_eu-2005",         "like_eu-2005",         862664,  80000,  0 },
  {"like_shipsec1",        "like_shipsec1",        140874,  30000,  0 },
  {"like_mac_econ_fwd500", "like_mac_econ_fwd500", 206500,  206500, 0 },
  {"like_scircuit",        "like_scircuit",        170998,  170998, 0 },
  {"like_pdb1HYS",         "like_pdb1HYS",         36417,   15000,  0 },
  {"like_consph",          "like_consph",          83334,   20000,  0 },
  {"like_cant",            "like_cant",            62451,   20000,  0 },
  {"like_cop20k_A",        "like_cop20k_A",        121192,  60000,  0 },
  {"like_dc2",             "like_dc2",             116835,  116835, 0 },
  {"like_rma10",           "like_rma10",           46835,   30000,  0 },
  {"like_conf5_4-8x8-10",  "like_conf5_4-8x8-10",  49152,   49152,  0 },
  {"like_ASIC_680k",       "like_ASIC_680k",       682862,  200000, 0 },
};
/* clang-format on */

const tc_bench_case *tc_bench_cases(int *num)
{
  *num = (int)(sizeof cases / sizeof cases[0]);
  return cases;
}
