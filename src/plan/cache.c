#include "cache.h"

tc_verdict tc_cache_check(const tc_cache *cache, const tc_key *key)
{
  const tc_key *have = &cache->key;

  if (!cache->valid_pattern || have->id != key->id || have->pattern != key->pattern || have->nnz != key->nnz) return TC_CACHE_REBUILD;
  if (!cache->valid_values || have->state != key->state || have->values != key->values || have->generation != key->generation || have->holder != key->holder) return TC_CACHE_REFILL;
  return TC_CACHE_HIT;
}

void tc_cache_begin(tc_cache *cache, tc_verdict verdict)
{
  if (verdict != TC_CACHE_HIT) cache->valid_values = 0;
  if (verdict == TC_CACHE_REBUILD) cache->valid_pattern = 0;
}

void tc_cache_commit(tc_cache *cache, const tc_key *key)
{
  cache->key           = *key;
  cache->valid_pattern = 1;
  cache->valid_values  = 1;
}
