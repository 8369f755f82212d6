#include "tc_base.h"
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[512];
static int                fault_countdown[TC_FAULT_COUNT];

tc_status tc_fail(tc_status status, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  return status;
}

const char *tc_last_error(void)
{
  return last_error;
}

int tc_fault_arm(tc_fault_point point, int n)
{
  const int left = fault_countdown[point];

  fault_countdown[point] = n;
  return left;
}

int tc_fault(tc_fault_point point)
{
  if (fault_countdown[point] == 0) return 0;
  return --fault_countdown[point] == 0;
}
