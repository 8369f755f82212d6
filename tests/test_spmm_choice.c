/*
  Products with dense blocks on a device as far as that needs none: the choice of a kernel, and surveys of patterns ahead of a product. The lists and counts of a survey are
  in test_survey.c.
*/
#include "spmm_test.h"
#include "../src/plan/spmm_rules.h"
#include <string.h>

static const tc_spmm_options by_default = {NULL};

/* Has the device tiles? */
static int with_tiles;

/* `view` says how many columns it takes */
static int suits_wider(const void *view, int32_t n)
{
  return n >= *(const int32_t *)view;
}

static const tc_spmm_kernel *device_kernels(int *num)
{
  static const tc_spmm_kernel kernels[] = {
    {"hybrid",  "hybrid", TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL,        NULL, NULL, 0, 0},
    {"csr",     "csr",    TC_ARITHMETIC_FMA, TC_PRECISION_F64, 60, NULL,        NULL, NULL, 1, 0},
    {"bittcf",  "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, NULL,        NULL, NULL, 0, 0},
    {"cluster", "bittcf", TC_ARITHMETIC_MMA, TC_PRECISION_F64, 80, suits_wider, NULL, NULL, 0, 0},
  };

  *num = with_tiles ? 4 : 2;
  return kernels;
}

/* `name` of the kernel, NULL: there is none */
static void expect_choice(const char *generator, int32_t size, int32_t n, const tc_spmm_options *options, const char *name)
{
  tc_matrix             A       = matrix_of(generator, size);
  const tc_csr_view     view    = view_of(&A);
  const tc_key          key     = key_of(&A, 1);
  const int32_t         fewest = 48, always = 1;
  tc_backend            backend = *tc_backend_host();
  const tc_spmm_kernel *kernel;
  tc_spmm              *S;

  backend.probe        = device_probe;
  backend.spmm_kernels = device_kernels;
  ASSERT_OK(tc_spmm_create(&backend, options, &S));
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  if (name) {
    ASSERT_OK(tc_spmm_choose(S, n, 0, &kernel));
    assert_string_equal(kernel->name, name);
    /* once the format is there, the other of its kernels where that suits, but not in place of one that was asked for */
    assert_string_equal(tc_spmm_refine(S, kernel, &fewest, n, 0)->name, strcmp(name, "bittcf") == 0 && options->kernel == NULL && n >= fewest ? "cluster" : name);
    /* it wants the transpose of a block turned, which few columns of few rows do not pay for */
    assert_string_equal(tc_spmm_refine(S, kernel, &always, n, 1)->name, strcmp(name, "bittcf") == 0 && options->kernel == NULL && (n >= 24 || view.num_rows >= 30000) ? "cluster" : name);
    print_message("%s, %d columns: %s (%s)\n", generator, n, kernel->name, tc_spmm_why(S));
  } else assert_int_equal(tc_spmm_choose(S, n, 0, &kernel), TC_ERR_UNSUPPORTED);
  tc_spmm_destroy(&S);
  free((void *)view.row_ptr);
  tc_matrix_free(&A);
}

/* Between the first `num` formats that a transpose is to be had in: what is asked for if it is one of them, else what the rules name first */
static void expect_between(const char *generator, int32_t size, tc_spmm_options options, int num, const char *name)
{
  static const char *const formats[] = {"hybrid", "csr", "bittcf"};
  tc_matrix                A         = matrix_of(generator, size);
  const tc_csr_view        view      = view_of(&A);
  const tc_key             key       = key_of(&A, 1);
  tc_backend               backend   = *tc_backend_host();
  const tc_spmm_kernel    *kernel;
  tc_spmm                 *S;

  backend.probe        = device_probe;
  backend.spmm_kernels = device_kernels;
  ASSERT_OK(tc_spmm_create(&backend, &options, &S));
  assert_int_equal(tc_spmm_choose_between(S, 32, formats, num, &kernel), TC_ERR_ARG); // nobody has looked at the pattern
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  ASSERT_OK(tc_spmm_choose_between(S, 32, formats, num, &kernel));
  assert_string_equal(kernel->name, name);
  for (int32_t fewest = 32; options.kernel != NULL && fewest < 34; ++fewest) assert_string_equal(tc_spmm_refine(S, kernel, &fewest, 32, 0)->name, fewest == 32 ? options.kernel : name); // where that suits
  tc_spmm_destroy(&S);
  free((void *)view.row_ptr);
  tc_matrix_free(&A);
}

static void choices_between(void **state)
{
  const tc_spmm_options none = {.format = NULL}, csr = {.format = "csr"}, hybrid = {.format = "hybrid"}, tiles = {.format = "bittcf"}, clusters = {.format = "bittcf", .kernel = "cluster"};
  const tc_spmm_options exact = {.exact_nonfinite = 1}, exact_tiles = {.format = "bittcf", .exact_nonfinite = 1};

  (void)state;
  with_tiles = 1;
  expect_between("elasticity", 6, none, 2, "csr");
  expect_between("elasticity", 20, none, 2, "hybrid");
  expect_between("elasticity", 20, tiles, 2, "hybrid"); // neither of the two
  expect_between("elasticity", 6, csr, 2, "csr");
  expect_between("like_pdb1HYS", 3000, none, 2, "csr");
  expect_between("rmat", 10, none, 2, "csr");
  expect_between("rmat", 10, hybrid, 2, "hybrid");
  expect_between("elasticity", 6, none, 3, "bittcf");
  expect_between("elasticity", 6, csr, 3, "csr");
  expect_between("elasticity", 20, exact, 3, "hybrid");
  expect_between("like_pdb1HYS", 3000, none, 3, "bittcf");
  expect_between("like_pdb1HYS", 3000, exact_tiles, 3, "csr"); // what is asked for is excluded
  expect_between("rmat", 10, none, 3, "csr");
  expect_between("rmat", 10, tiles, 3, "bittcf");
  expect_between("rmat", 10, clusters, 3, "bittcf");
  with_tiles = 0; // rules may name what has no kernel
  expect_between("elasticity", 6, none, 3, "csr");
  expect_between("elasticity", 20, none, 3, "hybrid");
}

/* A device's survey, counted */
static int surveys_begun, surveys_ended, surveys_dropped;

static tc_status counted_begin(const tc_csr_view *rows, void **begun, tc_stream stream)
{
  ++surveys_begun;
  return tc_backend_host()->survey_begin(rows, begun, stream);
}

static tc_status counted_end(void *begun, const tc_csr_view *rows, tc_survey *survey, tc_stream stream)
{
  ++*(rows ? &surveys_ended : &surveys_dropped);
  return tc_backend_host()->survey_end(begun, rows, survey, stream);
}

static void expect_surveys(int begun, int ended, int dropped)
{
  assert_int_equal(surveys_begun, begun);
  assert_int_equal(surveys_ended, ended);
  assert_int_equal(surveys_dropped, dropped);
}

/* A survey that was begun ahead is the one that is waited for, once; patterns of two keys are known at a time, of one id the last */
static void surveys_ahead(void **state)
{
  tc_matrix         A       = matrix_of("long487", 20), other = matrix_of("stencil7", 4);
  const tc_csr_view view    = view_of(&A), short_rows = view_of(&other);
  tc_key            key     = key_of(&A, 1), transposed = key_of(&A, 1), later = key_of(&A, 1);
  tc_backend        backend = *tc_backend_host();
  tc_csr_view       listed  = view;
  tc_spmm          *S;

  (void)state;
  transposed.id        = -key.id;
  later.pattern        = key.pattern + 1;
  backend.probe        = device_probe;
  backend.survey_begin = counted_begin;
  backend.survey_end   = counted_end;
  surveys_begun = surveys_ended = surveys_dropped = 0;
  ASSERT_OK(tc_spmm_create(&backend, &by_default, &S));
  ASSERT_OK(tc_spmm_look_ahead(S, &key, &view, NULL));
  ASSERT_OK(tc_spmm_look_ahead(S, &key, &view, NULL));
  expect_surveys(1, 0, 0);
  assert_false(tc_spmm_has_seen(S, &key));
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  ASSERT_OK(tc_spmm_look_ahead(S, &key, &view, NULL)); // known by now
  expect_surveys(1, 1, 0);
  ASSERT_OK(tc_spmm_look(S, &transposed, &short_rows, NULL));
  assert_true(tc_spmm_has_seen(S, &key) && tc_spmm_has_seen(S, &transposed));
  tc_spmm_list_rows(S, &listed);
  assert_int_equal(listed.num_long, 0);
  assert_true(tc_spmm_recall(S, &key)); // its lists are those that kernels get again
  tc_spmm_list_rows(S, &listed);
  assert_int_equal(listed.num_long, A.num_rows);
  assert_true(tc_spmm_recall(S, &transposed));
  assert_false(tc_spmm_recall(S, &later)); // unknown: nothing changes
  tc_spmm_list_rows(S, &listed);
  assert_int_equal(listed.num_long, 0);
  ASSERT_OK(tc_spmm_look(S, &key, &view, NULL));
  expect_surveys(2, 2, 0);
  ASSERT_OK(tc_spmm_look_ahead(S, &later, &view, NULL));
  ASSERT_OK(tc_spmm_look(S, &later, &view, NULL));
  assert_true(tc_spmm_has_seen(S, &later) && tc_spmm_has_seen(S, &transposed));
  assert_false(tc_spmm_has_seen(S, &key));
  tc_spmm_list_rows(S, &listed);
  assert_int_equal(listed.num_long, A.num_rows);
  expect_surveys(3, 3, 0);
  ASSERT_OK(tc_spmm_look_ahead(S, &key, &view, NULL)); // nobody looks
  tc_fault_arm(TC_FAULT_ALLOC, 1);
  assert_int_not_equal(tc_spmm_look_ahead(S, &(tc_key){.id = 77}, &view, NULL), TC_OK);
  assert_int_equal(tc_fault_arm(TC_FAULT_ALLOC, 0), 0);
  expect_surveys(5, 3, 1);
  ASSERT_OK(tc_spmm_look_ahead(S, &key, &view, NULL)); // nor does anybody now
  tc_spmm_destroy(&S);
  expect_surveys(6, 3, 2);
  free((void *)view.row_ptr);
  free((void *)short_rows.row_ptr);
  tc_matrix_free(&A);
  tc_matrix_free(&other);
}

static void choices(void **state)
{
  static const tc_spmm_options tiles = {.format = "bittcf"}, clusters = {.format = "bittcf", .kernel = "cluster"}, no_clusters = {.format = "bittcf", .kernel = "bittcf"}, exact = {.exact_nonfinite = 1}, exact_tiles = {.format = "bittcf", .exact_nonfinite = 1}, reordered = {.reordered = 1}, exact_reordered = {.exact_nonfinite = 1, .reordered = 1};

  (void)state;
  for (with_tiles = 0; with_tiles < 2; ++with_tiles) {
    expect_choice("stencil27", 44, 1, &by_default, "hybrid");
    expect_choice("stencil27", 44, 4, &by_default, "hybrid"); // a lane has the loads of four entries under way
    expect_choice("stencil27", 44, 5, &by_default, with_tiles ? "bittcf" : "hybrid"); // that there are clusters is known once tiles are packed
    expect_choice("stencil27", 32, 4, &by_default, with_tiles ? "bittcf" : "hybrid");
    expect_choice("stencil27", 44, 16, &by_default, with_tiles ? "bittcf" : "hybrid");
    expect_choice("stencil27", 20, 1, &by_default, "csr"); // few rows, each a lane's in slices
    expect_choice("stencil27", 20, 2, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("stencil27", 20, 16, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("convection", 42, 8, &by_default, "hybrid");
    expect_choice("convection", 42, 9, &by_default, with_tiles ? "bittcf" : "hybrid");
    expect_choice("convection", 24, 2, &by_default, with_tiles ? "bittcf" : "hybrid"); // so few that launches count
    expect_choice("stencil7", 16, 7, &by_default, "csr");
    expect_choice("stencil7", 16, 8, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("stencil7", 16, 16, &by_default, with_tiles ? "bittcf" : "hybrid");
    expect_choice("stencil7", 17, 16, &by_default, "hybrid"); // an odd number of rows
    expect_choice("stencil7", 16, 64, &by_default, with_tiles ? "bittcf" : "hybrid");
    expect_choice("stencil7", 36, 64, &by_default, "hybrid");
    expect_choice("four", 60, 16, &by_default, "hybrid"); // four entries are soon added up
    expect_choice("stencil27", 16, 128, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("elasticity", 8, 1, &by_default, "csr");
    expect_choice("elasticity", 8, 4, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("elasticity", 8, 8, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("elasticity", 20, 8, &exact, "hybrid");
    expect_choice("laplace27", 12, 8, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("laplace27", 12, 128, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("stencil27", 32, 16, &by_default, with_tiles ? "bittcf" : "hybrid"); // every 32nd row, as a sample might have it, begins a line
    expect_choice("p2", 8, 8, &by_default, "csr");
    expect_choice("stencil27_window", 16, 8, &by_default, "csr");
    expect_choice("stencil27_window", 16, 128, &by_default, "csr");
    expect_choice("like_mac_econ_fwd500", 206500, 31, &by_default, "csr");
    expect_choice("like_mac_econ_fwd500", 206500, 32, &by_default, with_tiles ? "bittcf" : "csr"); // scattered, but no long row
    expect_choice("like_pdb1HYS", 3000, 8, &by_default, with_tiles ? "bittcf" : "csr");             // in hope of clusters
    expect_choice("like_pdb1HYS", 36417, 8, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("elasticity", 8, 32, &by_default, with_tiles ? "bittcf" : "csr");
    expect_choice("elasticity", 8, 32, &exact, "csr");
    expect_choice("elasticity", 8, 8, &tiles, with_tiles ? "bittcf" : NULL);
    expect_choice("elasticity", 8, 8, &clusters, with_tiles ? "cluster" : NULL);
    expect_choice("elasticity", 8, 64, &tiles, with_tiles ? "bittcf" : NULL);
    expect_choice("elasticity", 8, 64, &no_clusters, with_tiles ? "bittcf" : NULL);
    expect_choice("elasticity", 8, 32, &exact_tiles, NULL);
    expect_choice("rmat", 10, 32, &by_default, "csr");
    expect_choice("rmat", 10, 31, &reordered, "csr");
    expect_choice("rmat", 10, 32, &reordered, with_tiles ? "bittcf" : "csr");
    expect_choice("rmat", 10, 32, &exact_reordered, "csr");
    expect_choice("long487", 64, 8, &by_default, "csr");
  }
}

/* What the rules say for the cases of docs/gpu-report.md and docs/performance-blocks.md, by what their surveys find, as long as nobody knows of clusters: a change of the rules shows here */
static void rules_of_the_suite(void **state)
{
  static const int32_t columns[] = {8, 32, 128};
  static const struct {
    const char    *name;
    tc_spmm_traits traits; // without the mean row; per_column where the matrix is not square
    const char    *format[3];
  } cases[] = {
    {"bcsstk17",                    {.entries = 428650,   .rows = 10974,   .longest_row = 150,    .scattered = 0.244, .per_tile = 17.51}, {"bittcf", "bittcf", "bittcf"}},
    {"dlmc_transformer_095_symbol", {.entries = 852171,   .rows = 33288,   .longest_row = 82,     .scattered = 0.846, .per_tile = 5.02, .per_column = 1664}, {"bittcf", "bittcf", "bittcf"}},
    {"email-enron",                 {.entries = 367662,   .rows = 36692,   .longest_row = 1383,   .scattered = 0.858, .per_tile = 5.46},  {"csr", "csr", "csr"}},
    {"like_dc2:116835",             {.entries = 776259,   .rows = 116835,  .longest_row = 114190, .scattered = 0.796, .per_tile = 5.47},  {"csr", "csr", "csr"}},
    {"circuit:3000000",             {.entries = 17582419, .rows = 3000000, .longest_row = 187500, .scattered = 0.913, .per_tile = 4.08},  {"csr", "csr", "csr"}},
    {"elasticity:64",               {.entries = 61731000, .rows = 786432,  .longest_row = 81,     .scattered = 0.009, .per_tile = 21.00}, {"bittcf", "bittcf", "bittcf"}},
    {"stencil27:100",               {.entries = 26463592, .rows = 1000000, .longest_row = 27,     .scattered = 0.020, .per_tile = 9.62},  {"bittcf", "bittcf", "bittcf"}},
    {"stencil7:110",                {.entries = 9244400,  .rows = 1331000, .longest_row = 7,      .scattered = 0.007, .per_tile = 5.33},  {"hybrid", "hybrid", "hybrid"}},
    {"stencil27_window:100",        {.entries = 21241374, .rows = 1000000, .longest_row = 27,     .scattered = 0.987, .per_tile = 4.03},  {"csr", "bittcf", "bittcf"}},
    {"webbase:1000000",             {.entries = 2932972,  .rows = 1000000, .longest_row = 4700,   .scattered = 0.990, .per_tile = 4.03},  {"csr", "csr", "csr"}},
    {"long1153:20000",              {.entries = 23058048, .rows = 20000,   .longest_row = 1383,   .scattered = 0.917, .per_tile = 8.35},  {"bittcf", "bittcf", "bittcf"}},
    {"four:724",                    {.entries = 2094532,  .rows = 524176,  .longest_row = 4,      .scattered = 0.000, .per_tile = 7.11},  {"hybrid", "hybrid", "hybrid"}},
    {"rmat:18",                     {.entries = 3935771,  .rows = 262144,  .longest_row = 15856,  .scattered = 0.997, .per_tile = 4.69},  {"csr", "csr", "csr"}},
    {"elasticity:28",               {.entries = 4962312,  .rows = 65856,   .longest_row = 81,     .scattered = 0.020, .per_tile = 17.92}, {"bittcf", "bittcf", "bittcf"}},
    {"qcd:11",                      {.entries = 1712997,  .rows = 43923,   .longest_row = 39,     .scattered = 0.019, .per_tile = 12.15}, {"bittcf", "bittcf", "bittcf"}},
    {"long487:2000",                {.entries = 974272,   .rows = 2000,    .longest_row = 583,    .scattered = 0.831, .per_tile = 8.36},  {"csr", "csr", "bittcf"}},
    {"p2:32",                       {.entries = 7678721,  .rows = 274625,  .longest_row = 65,     .scattered = 0.922, .per_tile = 8.37},  {"hybrid", "bittcf", "bittcf"}},
    {"circuit:400000",              {.entries = 2343912,  .rows = 400000,  .longest_row = 25000,  .scattered = 0.986, .per_tile = 4.09},  {"csr", "csr", "csr"}},
    {"laplace27:64",                {.entries = 6859000,  .rows = 262144,  .longest_row = 27,     .scattered = 0.026, .per_tile = 10.22}, {"bittcf", "bittcf", "bittcf"}},
    {"interpolation:40",            {.entries = 1685159,  .rows = 512000,  .longest_row = 8,      .scattered = 0.692, .per_tile = 9.60, .per_column = 26.3}, {"hybrid", "bittcf", "bittcf"}},
    {"restriction:40",              {.entries = 1685159,  .rows = 64000,   .longest_row = 27,     .scattered = 0.039, .per_tile = 5.67, .per_column = 3.3},  {"hybrid", "hybrid", "hybrid"}},
    {"restriction:20",              {.entries = 205379,   .rows = 8000,    .longest_row = 27,     .scattered = 0.077, .per_tile = 5.60, .per_column = 3.2},  {"csr", "bittcf", "hybrid"}},
    {"stencil7:32",                 {.entries = 223232,   .rows = 32768,   .longest_row = 7,      .scattered = 0.032, .per_tile = 5.40},  {"bittcf", "bittcf", "bittcf"}},
    {"stencil7:33",                 {.entries = 245025,   .rows = 35937,   .longest_row = 7,      .scattered = 0.022, .per_tile = 5.30, .odd = 1}, {"hybrid", "hybrid", "hybrid"}},
    {"convection:33",               {.entries = 346302,   .rows = 35937,   .longest_row = 10,     .scattered = 0.054, .per_tile = 5.40, .odd = 1}, {"hybrid", "bittcf", "bittcf"}},
    {"p2:24",                       {.entries = 3259585,  .rows = 117649,  .longest_row = 65,     .scattered = 0.919, .per_tile = 8.40},  {"bittcf", "bittcf", "bittcf"}},
    {"stokes:18",                   {.entries = 2109120,  .rows = 23328,   .longest_row = 108,    .scattered = 0.041, .per_tile = 15.1},  {"bittcf", "bittcf", "bittcf"}},
    {"like_mip1:10000",             {.entries = 1565004,  .rows = 10000,   .longest_row = 9989,   .scattered = 0.244, .per_tile = 16.3},  {"csr", "bittcf", "bittcf"}},
    {"like_Si41Ge41H72:20000",      {.entries = 1622656,  .rows = 20000,   .longest_row = 662,    .scattered = 0.060, .per_tile = 11.2},  {"bittcf", "bittcf", "bittcf"}},
    {"id2003_aug",                  {.entries = 173670,   .rows = 4967,    .longest_row = 829,    .scattered = 0.820, .per_tile = 9.1, .per_column = 70.7}, {"csr", "csr", "bittcf"}},
    {"lp:40000",                    {.entries = 1601777,  .rows = 40000,   .longest_row = 50000,  .scattered = 0.962, .per_tile = 4.23},  {"csr", "csr", "csr"}},
    {"stokes:24",                   {.entries = 5145000,  .rows = 55296,   .longest_row = 108,    .scattered = 0.022, .per_tile = 17.11}, {"bittcf", "bittcf", "bittcf"}},
    {"ex56:24",                     {.entries = 3501153,  .rows = 46875,   .longest_row = 81,     .scattered = 0.019, .per_tile = 17.83}, {"bittcf", "bittcf", "bittcf"}},
    {"like_cant:62451",             {.entries = 4001022,  .rows = 62451,   .longest_row = 78,     .scattered = 0.031, .per_tile = 17.85}, {"bittcf", "bittcf", "bittcf"}},
    {"like_pdb1HYS:3000",           {.entries = 354335,   .rows = 3000,    .longest_row = 204,    .scattered = 0.179, .per_tile = 15.41}, {"bittcf", "bittcf", "bittcf"}},
    {"like_pdb1HYS:36417",          {.entries = 4336943,  .rows = 36417,   .longest_row = 204,    .scattered = 0.294, .per_tile = 12.54}, {"bittcf", "bittcf", "bittcf"}},
    {"like_scircuit:170998",        {.entries = 955520,   .rows = 170998,  .longest_row = 353,    .scattered = 0.918, .per_tile = 4.06},  {"csr", "csr", "csr"}},
    {"like_consph:83334",           {.entries = 6002916,  .rows = 83334,   .longest_row = 81,     .scattered = 0.033, .per_tile = 18.45}, {"bittcf", "bittcf", "bittcf"}},
    {"like_shipsec1:140874",        {.entries = 7813710,  .rows = 140874,  .longest_row = 102,    .scattered = 0.075, .per_tile = 19.72}, {"bittcf", "bittcf", "bittcf"}},
    {"like_rma10:46835",            {.entries = 2363870,  .rows = 46835,   .longest_row = 145,    .scattered = 0.046, .per_tile = 13.60}, {"bittcf", "bittcf", "bittcf"}},
    {"like_cop20k_A:121192",        {.entries = 2635238,  .rows = 121192,  .longest_row = 81,     .scattered = 0.983, .per_tile = 4.12},  {"csr", "bittcf", "bittcf"}},
    {"like_pwtk:217918",            {.entries = 11540600, .rows = 217918,  .longest_row = 180,    .scattered = 0.031, .per_tile = 23.77}, {"bittcf", "bittcf", "bittcf"}},
    {"like_mip1:66463",             {.entries = 10292709, .rows = 66463,   .longest_row = 66395,  .scattered = 0.315, .per_tile = 15.90}, {"bittcf", "bittcf", "bittcf"}},
    {"like_conf5_4-8x8-10:49152",   {.entries = 1916928,  .rows = 49152,   .longest_row = 39,     .scattered = 0.031, .per_tile = 12.50}, {"bittcf", "bittcf", "bittcf"}},
    {"like_mac_econ_fwd500:206500", {.entries = 1270321,  .rows = 206500,  .longest_row = 44,     .scattered = 0.938, .per_tile = 4.04},  {"csr", "bittcf", "bittcf"}},
    {"like_Si41Ge41H72:185639",     {.entries = 14800055, .rows = 185639,  .longest_row = 662,    .scattered = 0.070, .per_tile = 10.88}, {"bittcf", "bittcf", "bittcf"}},
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    tc_spmm_traits traits = cases[i].traits;

    traits.clusters = 1;
    traits.mean_row = traits.entries / traits.rows;
    if (traits.per_column == 0) traits.per_column = traits.mean_row;
    for (int w = 0; w < 3; ++w) {
      int         rule   = 0;
      const char *format = tc_spmm_next_rule(TC_SPMM_RULES_F64, &traits, columns[w], &rule);

      if (strcmp(format, cases[i].format[w]) != 0) fail_msg("%s, %d columns: %s, expected %s", cases[i].name, columns[w], format, cases[i].format[w]);
    }
  }
}

/* Slices with up to four columns: where there are no clusters, of fewer rows than with more */
static void rules_of_few_columns(void **state)
{
  static const tc_spmm_traits p2 = {.entries = 1386500, .rows = 50653, .mean_row = 27.4, .longest_row = 65, .scattered = 0.92, .per_tile = 8.34, .per_column = 27.4, .clusters = 1};
  static const tc_spmm_traits qcd = {.entries = 1170000, .rows = 30000, .mean_row = 39, .longest_row = 39, .scattered = 0.01, .per_tile = 12.17, .per_column = 39};
  static const tc_spmm_traits elements = {.entries = 4962312, .rows = 65856, .mean_row = 75.4, .longest_row = 81, .scattered = 0.02, .per_tile = 17.92, .per_column = 75.4, .clusters = 1};

  (void)state;
  for (int32_t n = 2; n < 7; ++n) {
    int rule[5] = {0};

    assert_string_equal(tc_spmm_next_rule(TC_SPMM_RULES_F64, &p2, n, &rule[0]), n < 5 ? "hybrid" : "bittcf");
    assert_string_equal(tc_spmm_next_rule(TC_SPMM_RULES_F64, &qcd, n, &rule[1]), n < 5 ? "hybrid" : "bittcf");
    assert_string_equal(tc_spmm_next_rule(TC_SPMM_RULES_F64, &elements, n, &rule[2]), "bittcf");
    assert_string_equal(tc_spmm_next_rule(TC_SPMM_RULES_B_TRANSPOSED, &p2, n, &rule[3]), n < 5 ? "hybrid" : "bittcf");
    assert_string_equal(tc_spmm_next_rule(TC_SPMM_RULES_B_TRANSPOSED, &elements, n, &rule[4]), "bittcf");
  }
}

/* Without clusters: rows of 64 and more in few windows go straight from CSR with few columns, the fewer the fuller tiles are; so do few rows */
static void rules_of_few_windows(void **state)
{
  static const struct {
    tc_spmm_traits traits;
    int32_t        last[2]; // number of columns straight from CSR: A B, A B^T. One column is another matter.
  } cases[] = {
    {{.entries = 2363870, .rows = 46835, .mean_row = 50.5, .longest_row = 145, .scattered = 0.046, .per_tile = 13.6, .per_column = 50.5}, {1, 1}},   // like_rma10
    {{.entries = 1622656, .rows = 20000, .mean_row = 81.1, .longest_row = 662, .scattered = 0.060, .per_tile = 11.2, .per_column = 81.1}, {16, 16}}, // like_Si41Ge41H72:20000
    {{.entries = 1784815, .rows = 15000, .mean_row = 119, .longest_row = 204, .scattered = 0.265, .per_tile = 12.9, .per_column = 119},   {8, 3}},   // like_pdb1HYS:15000
    {{.entries = 2381495, .rows = 20000, .mean_row = 119, .longest_row = 204, .scattered = 0.275, .per_tile = 12.7, .per_column = 119},   {1, 1}},   // like_pdb1HYS:20000
    {{.entries = 2109120, .rows = 23328, .mean_row = 90.4, .longest_row = 108, .scattered = 0.041, .per_tile = 15.1, .per_column = 90.4}, {1, 1}},   // stokes:18
    {{.entries = 468000, .rows = 12000, .mean_row = 39, .longest_row = 39, .scattered = 0.034, .per_tile = 11.3, .per_column = 39},       {16, 12}}, // like_conf5_4-8x8-10:12000
  };
  static const tc_spmm_rules tables[] = {TC_SPMM_RULES_F64, TC_SPMM_RULES_B_TRANSPOSED};

  (void)state;
  for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); ++i) {
    for (int32_t n = 2; n < 40; ++n) {
      int rule = 0;

      assert_string_equal(tc_spmm_next_rule(tables[i % 2], &cases[i / 2].traits, n, &rule), n <= cases[i / 2].last[i % 2] ? "csr" : "bittcf");
    }
  }
}

/* Long rows beside each other go straight from CSR up to 36 million multiplications and 79 columns */
static void rules_of_long_rows(void **state)
{
  static const tc_spmm_traits many = {.entries = 23058048, .rows = 20000, .mean_row = 1153, .longest_row = 1383, .scattered = 0.917, .per_tile = 8.35, .per_column = 1153, .clusters = 1};
  static const tc_spmm_traits some = {.entries = 974272, .rows = 2000, .mean_row = 487, .longest_row = 583, .scattered = 0.831, .per_tile = 8.36, .per_column = 487, .clusters = 1};
  static const tc_spmm_traits few  = {.entries = 173670, .rows = 4967, .mean_row = 35, .longest_row = 829, .scattered = 0.82, .per_tile = 9.1, .per_column = 70.7, .clusters = 1};
  static const tc_spmm_rules  tables[] = {TC_SPMM_RULES_F64, TC_SPMM_RULES_B_TRANSPOSED};

  (void)state;
  for (int t = 0; t < 2; ++t) {
    int rule[5] = {0};

    assert_string_equal(tc_spmm_next_rule(tables[t], &many, 2, &rule[0]), "bittcf");
    assert_string_equal(tc_spmm_next_rule(tables[t], &some, 36, &rule[1]), "csr");
    assert_string_equal(tc_spmm_next_rule(tables[t], &some, 37, &rule[2]), "bittcf");
    assert_string_equal(tc_spmm_next_rule(tables[t], &few, 79, &rule[3]), "csr");
    assert_string_equal(tc_spmm_next_rule(tables[t], &few, 80, &rule[4]), "bittcf");
  }
}

/* Blocks by rows: C costs the same wherever its rows are, so other rules hold */
static void rules_by_rows(void **state)
{
  static const struct {
    const char    *name;
    tc_spmm_traits traits;
    int32_t        n;
    const char    *format;
  } cases[] = {
    {"stencil27:100",   {.entries = 26463592, .rows = 1000000, .mean_row = 26.5, .longest_row = 27,    .scattered = 0.02, .per_tile = 9.62},  128, "bittcf"},
    {"stencil7:110",    {.entries = 9244400,  .rows = 1331000, .mean_row = 6.9,  .longest_row = 7,     .scattered = 0.01, .per_tile = 5.33},  128, "csr"   },
    {"stencil7:110",    {.entries = 9244400,  .rows = 1331000, .mean_row = 6.9,  .longest_row = 7,     .scattered = 0.01, .per_tile = 5.33},  512, "bittcf"},
    {"four:724",        {.entries = 2094532,  .rows = 524176,  .mean_row = 4.0,  .longest_row = 4,     .scattered = 0.00, .per_tile = 7.11},  512, "csr"   },
    {"p2:32",           {.entries = 7678721,  .rows = 274625,  .mean_row = 28.0, .longest_row = 65,    .scattered = 0.92, .per_tile = 8.37},  128, "bittcf"},
    {"like_mip1",       {.entries = 10292709, .rows = 66463,   .mean_row = 154.9, .longest_row = 66395, .scattered = 0.31, .per_tile = 15.9}, 128, "bittcf"},
    {"like_cop20k_A",   {.entries = 2635238,  .rows = 121192,  .mean_row = 21.7, .longest_row = 81,    .scattered = 0.98, .per_tile = 4.12},  512, "csr"   },
    {"webbase:1000000", {.entries = 2932972,  .rows = 1000000, .mean_row = 2.9,  .longest_row = 4700,  .scattered = 0.99, .per_tile = 4.03},  256, "csr"   },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    int         rule   = 0;
    const char *format = tc_spmm_next_rule(TC_SPMM_RULES_BY_ROWS, &cases[i].traits, cases[i].n, &rule);

    if (strcmp(format, cases[i].format) != 0) fail_msg("%s, %d columns: %s, expected %s", cases[i].name, cases[i].n, format, cases[i].format);
  }
}

/* The transpose of a block is there by rows: the fastest of what was measured, docs/performance-sectors.md */
static void rules_of_transposed_blocks(void **state)
{
  static const int32_t columns[] = {8, 32, 128};
  static const struct {
    const char    *name;
    tc_spmm_traits traits;
    const char    *format[3];
  } cases[] = {
    {"elasticity:28",    {.entries = 4962312, .rows = 65856,   .mean_row = 75.4, .longest_row = 81,    .scattered = 0.02, .per_tile = 17.92, .per_column = 75.4}, {"bittcf", "bittcf", "bittcf"}},
    {"stencil27:64",     {.entries = 6859000, .rows = 262144,  .mean_row = 26.2, .longest_row = 27,    .scattered = 0.03, .per_tile = 10.22, .per_column = 26.2}, {"hybrid", "bittcf", "bittcf"}},
    {"rmat:18",          {.entries = 3935771, .rows = 262144,  .mean_row = 15.0, .longest_row = 15856, .scattered = 1.00, .per_tile = 4.69,  .per_column = 15.0}, {"csr", "csr", "csr"}},
    {"interpolation:40", {.entries = 1685159, .rows = 512000,  .mean_row = 3.3,  .longest_row = 8,     .scattered = 0.69, .per_tile = 9.60,  .per_column = 26.3}, {"csr", "csr", "bittcf"}},
    {"restriction:40",   {.entries = 1685159, .rows = 64000,   .mean_row = 26.3, .longest_row = 27,    .scattered = 0.04, .per_tile = 5.67,  .per_column = 3.3},  {"csr", "csr", "csr"}},
    {"stencil7:110",     {.entries = 9244400, .rows = 1331000, .mean_row = 6.9,  .longest_row = 7,     .scattered = 0.01, .per_tile = 5.33,  .per_column = 6.9},  {"csr", "csr", "csr"}},
    {"four:724",         {.entries = 2094532, .rows = 524176,  .mean_row = 4.0,  .longest_row = 4,     .scattered = 0.00, .per_tile = 7.11,  .per_column = 4.0},  {"csr", "csr", "csr"}},
    {"p2:32",            {.entries = 7678721, .rows = 274625,  .mean_row = 28.0, .longest_row = 65,    .scattered = 0.92, .per_tile = 8.37,  .per_column = 28.0}, {"bittcf", "bittcf", "bittcf"}},
    {"qcd:11",           {.entries = 1712997, .rows = 43923,   .mean_row = 39.0, .longest_row = 39,    .scattered = 0.02, .per_tile = 12.15, .per_column = 39.0}, {"bittcf", "bittcf", "bittcf"}},
    {"lp:40000",         {.entries = 1601777, .rows = 40000,   .mean_row = 40.0, .longest_row = 50000, .scattered = 0.96, .per_tile = 4.23,  .per_column = 4.0},  {"csr", "csr", "csr"}},
  };

  (void)state;
  for (size_t i = 0; i < 3 * (sizeof cases / sizeof cases[0]); ++i) {
    int         rule   = 0;
    const char *format = tc_spmm_next_rule(TC_SPMM_RULES_B_TRANSPOSED, &cases[i / 3].traits, columns[i % 3], &rule);

    if (strcmp(format, cases[i / 3].format[i % 3]) != 0) fail_msg("%s, %d columns: %s, expected %s", cases[i / 3].name, columns[i % 3], format, cases[i / 3].format[i % 3]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(choices_between), cmocka_unit_test(surveys_ahead), cmocka_unit_test(rules_of_the_suite), cmocka_unit_test(rules_of_few_columns), cmocka_unit_test(rules_of_few_windows), cmocka_unit_test(rules_of_long_rows), cmocka_unit_test(rules_by_rows), cmocka_unit_test(rules_of_transposed_blocks)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
