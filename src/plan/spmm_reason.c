#include "spmm_reason.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Puts more behind what there is */
static void append(size_t size, char words[], const char *format, ...)
{
  const size_t used = strlen(words);
  va_list      arguments;

  va_start(arguments, format);
  vsnprintf(words + used, size - used, format, arguments);
  va_end(arguments);
}

void tc_spmm_say(const tc_spmm_reason *R, size_t size, char words[])
{
  const tc_spmm_traits *T = &R->traits;

  words[0] = '\0';
  if (R->basis == TC_SPMM_BY_REQUEST) append(size, words, "asked for");
  if (R->basis == TC_SPMM_BY_HOST) append(size, words, "host backend");
  if (R->basis == TC_SPMM_BY_TRAITS) append(size, words, "%d columns; rows: mean %.1f, longest %.0f, scattered %.0f%%; %.1f entries per tile", R->n, T->mean_row, T->longest_row, 100 * T->scattered, T->per_tile);
  if (R->b_transposed) append(size, words, "; B transposed");
  if (R->reordered) append(size, words, "; rows reordered");
  if (R->missing) append(size, words, "; no kernel in %s", R->missing);
  if (R->awaited) append(size, words, "; %s when %.3f ms are made up for, %.3f by now", R->awaited, R->cost_ms, R->missed_ms);
  if (R->straight > 0) append(size, words, "; straight from CSR %lld times before that paid", (long long)R->straight);
  if (R->otherwise > 0) append(size, words, "; in another format %lld times before that paid", (long long)R->otherwise);
}
