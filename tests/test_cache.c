/*
  The cache's verdict for every field of its key, and after failed work.
*/
#include "test_util.h"
#include "../src/plan/cache.h"

static const tc_key first_key = {.id = 7, .pattern = 3, .state = 40, .nnz = 1000, .values = &first_key, .generation = 2};

static tc_cache cache_of(const tc_key *key)
{
  tc_cache cache = {0};

  tc_cache_begin(&cache, TC_CACHE_REBUILD);
  tc_cache_commit(&cache, key);
  return cache;
}

static void empty_cache_rebuilds(void **state)
{
  const tc_cache cache    = {0};
  const tc_key   zero_key = {0};

  (void)state;
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_REBUILD);
  assert_int_equal(tc_cache_check(&cache, &zero_key), TC_CACHE_REBUILD); // equal to the zeroed key that an empty cache holds
}

static void same_key_hits(void **state)
{
  const tc_cache cache = cache_of(&first_key);

  (void)state;
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_HIT);
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_HIT);
}

/* What tells patterns apart rebuilds, what tells values apart refills; a smaller number is as new as a larger one */
static void every_field_counts(void **state)
{
  const tc_cache cache = cache_of(&first_key);

  (void)state;
  for (int change = -1; change <= 1; change += 2) {
    tc_key key = first_key;

    key.id += change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REBUILD);
    key = first_key;
    key.pattern += change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REBUILD);
    key = first_key;
    key.nnz += change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REBUILD);
    key = first_key;
    key.state += change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REFILL);
    key = first_key;
    key.values = (const char *)key.values + change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REFILL);
    key = first_key;
    key.generation += change;
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REFILL);
    key.pattern += change; // both
    assert_int_equal(tc_cache_check(&cache, &key), TC_CACHE_REBUILD);
  }
}

static void failed_rebuild_is_no_hit(void **state)
{
  tc_cache cache = cache_of(&first_key);

  (void)state;
  tc_cache_begin(&cache, TC_CACHE_REBUILD); // and no commit
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_REBUILD);
}

static void failed_refill_is_no_hit(void **state)
{
  tc_cache cache = cache_of(&first_key);

  (void)state;
  tc_cache_begin(&cache, TC_CACHE_REFILL);
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_REFILL);
  tc_cache_commit(&cache, &first_key);
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_HIT);
}

static void commit_takes_the_new_key(void **state)
{
  tc_cache cache   = cache_of(&first_key);
  tc_key   changed = first_key;

  (void)state;
  changed.state = 41;
  tc_cache_begin(&cache, TC_CACHE_REFILL);
  tc_cache_commit(&cache, &changed);
  assert_int_equal(tc_cache_check(&cache, &changed), TC_CACHE_HIT);
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_REFILL);
}

static void check_changes_nothing(void **state)
{
  tc_cache cache = cache_of(&first_key);
  tc_key   other = first_key;

  (void)state;
  other.id = 8;
  assert_int_equal(tc_cache_check(&cache, &other), TC_CACHE_REBUILD);
  assert_int_equal(tc_cache_check(&cache, &first_key), TC_CACHE_HIT);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(empty_cache_rebuilds),    cmocka_unit_test(same_key_hits),            cmocka_unit_test(every_field_counts),    cmocka_unit_test(failed_rebuild_is_no_hit),
    cmocka_unit_test(failed_refill_is_no_hit), cmocka_unit_test(commit_takes_the_new_key), cmocka_unit_test(check_changes_nothing),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
