/* Loaded before a program (LD_PRELOAD), prints where its first thread is when the program is told that its time is up, by SIGUSR1, and ends it.
   scripts/pack-gpu-kit.sh builds it, gpu-kit/run.sh uses it. */
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

enum {
  MAX_FRAMES = 64,
  TIMED_OUT  = 124
};

static void print_stack(int signal)
{
  static const char heading[] = "\ntime is up, stack of the first thread:\n";
  void             *frames[MAX_FRAMES];

  (void)signal;
  if (write(STDERR_FILENO, heading, sizeof heading - 1) > 0) backtrace_symbols_fd(frames, backtrace(frames, MAX_FRAMES), STDERR_FILENO);
  _exit(TIMED_OUT);
}

/* The first call of backtrace() loads a library, which a signal's handler must not */
__attribute__((constructor)) static void install(void)
{
  void *frames[1];

  (void)backtrace(frames, 1);
  (void)signal(SIGUSR1, print_stack);
}
