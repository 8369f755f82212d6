/*
  What the tests without PETSc share: cases, guarded arrays, a packed matrix on the host. Include after cmocka.h's usual headers.
*/
#pragma once
#include "../bench/generators.h"
#include "../bench/oracle.h"
#include "../src/format/format.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { TEST_SEEDS = 3 };

#define ASSERT_OK(call) \
  do { \
    if ((call) != TC_OK) fail_msg("%s: %s", #call, tc_last_error()); \
  } while (0)

/* Fails with a text that says in which case */
#define ASSERT_CASE(condition, A_case, ...) \
  do { \
    if (!(condition)) { \
      print_error("in %s, seed %d: ", (A_case)->name, (A_case)->seed); \
      fail_msg(__VA_ARGS__); \
    } \
  } while (0)

/* One generated matrix in its tiny size */
typedef struct {
  const char *name;
  int         seed;
  tc_matrix   A;
} test_case;

/* Calls `check` for every generator and seed */
void test_all_cases(void (*check)(const test_case *C));

/* n doubles filled with NaN, between guard words; check with test_guards_hold() before test_guarded_free() */
double *test_guarded(int64_t n);
int     test_guards_hold(const double *array, int64_t n);
void    test_guarded_free(double *array);

/* n random normal values, guarded */
double *test_random(int64_t n, uint64_t seed);

/*
  The packed matrix with its values, on the host; free with tc_format_destroy(). Fails the test on any error. Bytes of values that nothing has written are
  TEST_UNWRITTEN.
*/
enum { TEST_UNWRITTEN = 0xa5 };
void test_pack_pattern(const tc_format *format, const tc_csr *pattern, const double *csr_val, void *view);
void test_pack(const tc_format *format, const tc_matrix *A, void *view);

/* The values that a packed tc_hybrid holds, rounded as they may be, in the order of CSR: val [num_nonzeros] */
void test_stored_values(const void *hybrid, double *val);

/* n values of one of the kinds that packed formats tell apart */
typedef enum { TEST_NORMAL, TEST_FLOATS, TEST_INTEGERS, TEST_NUM_VALUES } test_values_kind;
void test_values(test_values_kind kind, int64_t n, uint64_t seed, double *val);

/* The first array of that role, NULL if there is none; *count gets its length */
void *test_array(const tc_format *format, void *view, tc_role role, size_t *count);

/* x in a narrow precision: to the nearest, ties to even, by the floating-point unit; what is too small for a normal number (F16: for a subnormal one) is zero */
double test_rounded(tc_precision precision, double x);
