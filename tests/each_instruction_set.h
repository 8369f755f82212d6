/*
  The tests portable(), avx2() and avx512(): each lets USE(set), a macro of the file that includes this, take the functions of that instruction set, and calls CHECK for
  every case. A set that the processor has not is skipped.
*/
static void portable(void **state)
{
  (void)state;
  USE(portable);
  test_all_cases(CHECK);
}

static void avx2(void **state)
{
  (void)state;
#if TC_HOST_X86
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  USE(avx2);
  test_all_cases(CHECK);
#else
  skip();
#endif
}

static void avx512(void **state)
{
  (void)state;
#if TC_HOST_X86
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("fma")) skip();
  USE(avx512);
  test_all_cases(CHECK);
#else
  skip();
#endif
}
