#include "spmm_impl.h"
#include "../format/format.h"
#include <string.h>

static const char of_tiles[] = "bittcf"; // the format of tiles
static const char of_rows[]  = "csr";    // that of no packing

/* Formats whose kernels multiply the structural zeros of a tile */
static const char *const with_structural_zeros[] = {of_tiles, "bcsr"};

enum { REORDERED_COLUMNS = 32 }; // from so many on rows that were reordered are multiplied in tiles

/* `name` NULL: the first of the format */
static const tc_spmm_kernel *find_kernel(const tc_spmm *S, const char *format, const char *name, tc_precision precision)
{
  int                   num;
  const tc_spmm_kernel *kernels = S->backend->spmm_kernels(&num);

  for (int i = 0; i < num; ++i) {
    if (strcmp(kernels[i].format, format) == 0 && (name == NULL || strcmp(kernels[i].name, name) == 0) && kernels[i].precision == precision && S->sm >= kernels[i].min_sm) return &kernels[i];
  }
  return NULL;
}

const tc_spmm_kernel *tc_spmm_find(const tc_spmm *S, const char *format)
{
  return find_kernel(S, format, NULL, TC_PRECISION_F64);
}

const tc_spmm_kernel *tc_spmm_refine(tc_spmm *S, const tc_spmm_kernel *kernel, const void *view, int32_t n, int b_transposed)
{
  const int32_t         turned_columns = 24; // with fewer ones, and ...
  const double          turned_rows    = 30000; // ... fewer rows the others, which want B turned, gain less than that costs
  int                   num;
  const tc_spmm_kernel *kernels = S->backend->spmm_kernels(&num);
  const char           *asked   = S->options.kernel;

  if ((asked != NULL && strcmp(asked, kernel->name) == 0) || (b_transposed && n < turned_columns && S->patterns.last->traits.rows < turned_rows)) return kernel;
  for (int i = 0; i < num; ++i) {
    if (strcmp(kernels[i].format, kernel->format) == 0 && (asked == NULL || strcmp(asked, kernels[i].name) == 0) && kernels[i].precision == kernel->precision && S->sm >= kernels[i].min_sm && kernels[i].suits != NULL && kernels[i].suits(view, n)) return &kernels[i];
  }
  if (S->instead != NULL) { // from the next product on
    S->patterns.last->traits.clusters = 0;
    S->patterns.last->choice.kernel   = NULL;
  }
  return kernel;
}

static int is_allowed(const tc_spmm *S, const char *format)
{
  for (size_t i = 0; S->options.exact_nonfinite && i < sizeof with_structural_zeros / sizeof with_structural_zeros[0]; ++i) {
    if (strcmp(with_structural_zeros[i], format) == 0) return 0;
  }
  return 1;
}

static const tc_spmm_kernel *find_by_rules(const tc_spmm *S, tc_spmm_rules rules, const tc_spmm_traits *traits, int32_t n, tc_precision precision)
{
  const tc_spmm_kernel *kernel = NULL;
  const char           *format;

  for (int rule = 0; kernel == NULL && (format = tc_spmm_next_rule(rules, traits, n, &rule)) != NULL;) {
    if (is_allowed(S, format)) kernel = find_kernel(S, format, NULL, precision);
  }
  return kernel;
}

/* The traits if there were no clusters */
static tc_spmm_traits without_clusters(const tc_spmm *S)
{
  tc_spmm_traits traits = S->patterns.last->traits;

  traits.clusters = 0;
  return traits;
}

/*
  The kernel that is asked for; without one a choice goes by the rules. That is so, too, where there is none like that: on the host, which has few kernels, one for each format, and
  for the transpose of a block. `must_be`: elsewhere.
*/
static tc_status find_asked_for(const tc_spmm *S, tc_precision precision, int must_be, const tc_spmm_kernel **kernel)
{
  const char *format = S->options.format;

  *kernel = NULL;
  if (format == NULL) return TC_OK;
  if (is_allowed(S, format)) *kernel = find_kernel(S, format, S->sm > 0 ? S->options.kernel : NULL, precision);
  if (!must_be) return TC_OK;
  TC_CHECK(is_allowed(S, format), TC_ERR_UNSUPPORTED, "format %s multiplies structural zeros, which is excluded", format);
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel%s%s for dense blocks and format %s in %s on backend %s, sm_%d", S->options.kernel ? " " : "", S->options.kernel ? S->options.kernel : "", format, tc_precision_name(precision), S->backend->name, S->sm);
  return TC_OK;
}

/* A product with the transpose of a block is in F64 */
static tc_status choose(tc_spmm *S, int32_t n, int b_transposed, const tc_spmm_kernel **kernel)
{
  const tc_precision   precision = b_transposed ? TC_PRECISION_F64 : S->options.precision;
  const tc_spmm_rules  rules     = b_transposed ? TC_SPMM_RULES_B_TRANSPOSED : precision == TC_PRECISION_F64 ? TC_SPMM_RULES_F64 : TC_SPMM_RULES_NARROW;
  const tc_spmm_traits alone     = without_clusters(S);

  S->instead = NULL;
  TC_CALL(find_asked_for(S, precision, S->sm > 0 && !b_transposed, kernel));
  if (*kernel != NULL) {
    S->reason = (tc_spmm_reason){.basis = TC_SPMM_BY_REQUEST, .b_transposed = b_transposed};
    return TC_OK;
  }
  S->reason = (tc_spmm_reason){.basis = S->sm == 0 ? TC_SPMM_BY_HOST : TC_SPMM_BY_TRAITS, .n = n, .traits = S->patterns.last->traits, .b_transposed = b_transposed};
  if (S->options.reordered && n >= REORDERED_COLUMNS && is_allowed(S, of_tiles)) *kernel = find_kernel(S, of_tiles, NULL, precision);
  if (*kernel != NULL) S->reason.reordered = 1;
  else *kernel = find_by_rules(S, rules, &S->patterns.last->traits, n, precision);
  if (!S->reason.reordered) S->instead = find_by_rules(S, rules, &alone, n, precision);
  if (S->instead == *kernel) S->instead = NULL;
  if (*kernel == NULL && precision != TC_PRECISION_F64) {
    S->reason.missing = tc_precision_name(precision);
    *kernel = find_by_rules(S, TC_SPMM_RULES_F64, &alone, n, TC_PRECISION_F64);
  }
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel for dense blocks on backend %s, sm_%d", S->backend->name, S->sm);
  return TC_OK;
}

tc_status tc_spmm_choose(tc_spmm *S, int32_t n, int b_transposed, const tc_spmm_kernel **kernel)
{
  tc_spmm_choice *last = &S->patterns.last->choice;

  *kernel = NULL;
  TC_CHECK(S->patterns.last->seen, TC_ERR_ARG, "choice of a kernel for a pattern nobody has looked at");
  if (last->kernel == NULL || last->n != n || last->b_transposed != b_transposed) {
    last->kernel = NULL;
    TC_CALL(choose(S, n, b_transposed, kernel));
    *last = (tc_spmm_choice){.n = n, .b_transposed = b_transposed, .kernel = *kernel, .instead = S->instead, .reason = S->reason};
  }
  *kernel    = last->kernel;
  S->instead = last->instead;
  S->reason  = last->reason;
  return TC_OK;
}

int tc_spmm_pays(tc_spmm *S, const tc_spmm_kernel *kernel, int32_t n, int is_packed)
{
  const int     conversion = S->sm > 0 && S->options.format == NULL && kernel->precision == TC_PRECISION_F64 ? tc_spmm_conversion_find(kernel->format, S->instead != NULL ? S->instead->format : NULL) : -1;
  double        cost;
  tc_spmm_wait *W;

  if (conversion < 0) return 1;
  W    = &S->patterns.last->wait[conversion];
  cost = tc_spmm_conversion_ms(conversion, &S->patterns.last->traits);
  if (!is_packed) W->missed_ms += tc_spmm_gain_ms(conversion, &S->patterns.last->traits, n);
  if (!is_packed && W->missed_ms < cost) {
    ++W->products;
    S->reason.awaited   = kernel->format;
    S->reason.cost_ms   = cost;
    S->reason.missed_ms = W->missed_ms;
    return 0;
  }
  W->missed_ms = 0;
  if (S->instead != NULL) S->reason.otherwise = W->products;
  else S->reason.straight = W->products;
  return 1;
}

const tc_spmm_kernel *tc_spmm_instead(tc_spmm *S)
{
  const tc_spmm_kernel *kernel = S->instead != NULL ? S->instead : tc_spmm_find(S, of_rows);

  S->instead = NULL;
  return kernel;
}

static int is_among(const tc_spmm *S, const char *format, const char *const formats[], int num)
{
  for (int i = 0; i < num; ++i) {
    if (strcmp(format, formats[i]) == 0) return is_allowed(S, format);
  }
  return 0;
}

tc_status tc_spmm_choose_between(tc_spmm *S, int32_t n, const char *const formats[], int num, const tc_spmm_kernel **kernel)
{
  const char          *format = S->options.format;
  const int            asked  = format != NULL && is_among(S, format, formats, num);
  const tc_spmm_traits alone  = without_clusters(S);
  int                  rule   = 0;

  S->instead = NULL;
  TC_CHECK(S->patterns.last->seen, TC_ERR_ARG, "choice of a kernel for a pattern nobody has looked at");
  S->reason = asked ? (tc_spmm_reason){.basis = TC_SPMM_BY_REQUEST} : (tc_spmm_reason){.basis = TC_SPMM_BY_TRAITS, .n = n, .traits = S->patterns.last->traits};
  *kernel = NULL;
  while (!asked && *kernel == NULL && (format = tc_spmm_next_rule(TC_SPMM_RULES_F64, &alone, n, &rule)) != NULL) {
    if (is_among(S, format, formats, num)) *kernel = find_kernel(S, format, NULL, TC_PRECISION_F64);
  }
  if (format == NULL) format = of_rows;
  if (*kernel == NULL) *kernel = find_kernel(S, format, NULL, TC_PRECISION_F64);
  TC_CHECK(*kernel != NULL, TC_ERR_UNSUPPORTED, "no kernel for dense blocks and format %s on backend %s, sm_%d", format, S->backend->name, S->sm);
  return TC_OK;
}
