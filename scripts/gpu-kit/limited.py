"""limited.py SECONDS COMMAND ... - runs a command, in a session of its own, for so long. When the time is up all its processes say where they are: their threads as the kernel
sees them, what cuda-gdb sees, if there is one, of kernels and stacks, and by SIGUSR1 (stack.c) the stack of the first thread. Then they end, and the status is 124, else it is the command's."""
import os
import shutil
import signal
import subprocess
import sys
import time

TIMED_OUT = 124
DEBUGGER_SECONDS = 30


def read(*path):
    try:
        with open(os.path.join('/proc', *path)) as file:
            return file.read().strip()
    except OSError:
        return '-'


def members(session):
    """Processes of the session: the sixth word of /proc/PID/stat, of which the second may have spaces"""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        words = read(pid, 'stat').rpartition(')')[2].split()
        if len(words) > 3 and words[3] == str(session):
            found.append(int(pid))
    return found


def describe(pid):
    print(f'time is up: process {pid}, {read(str(pid), "cmdline").replace(chr(0), " ")[:200]}', file=sys.stderr)
    try:
        threads = os.listdir(f'/proc/{pid}/task')
    except OSError:
        return
    for thread in threads:
        where = (str(pid), 'task', thread)
        state = read(*where, 'stat').rpartition(')')[2].split()[:1]
        print(f'  thread {thread} {read(*where, "comm")}, state {"".join(state)}, waits in {read(*where, "wchan")}, system call {read(*where, "syscall")}', file=sys.stderr)


def debug(pid):
    """Kernels that run on the device, and the stack of the first thread. cuda-gdb attaches with SIGURG: programs of PETSc need -no_signal_handler"""
    debugger = shutil.which('cuda-gdb')
    if not debugger or 'libcuda.so' not in read(str(pid), 'maps'):
        return
    commands = [word for command in ('info cuda kernels', 'thread apply 1 backtrace 48') for word in ('-ex', command)]
    try:
        subprocess.run([debugger, '--batch', '-p', str(pid), *commands], stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr, timeout=DEBUGGER_SECONDS, start_new_session=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f'cuda-gdb: {error}', file=sys.stderr)


def send(session, number):
    for pid in members(session):
        try:
            os.kill(pid, number)
        except OSError:
            pass


def main():
    child = subprocess.Popen(sys.argv[2:], start_new_session=True)

    def end_all(*_):
        send(child.pid, signal.SIGKILL)
        sys.exit(TIMED_OUT)

    signal.signal(signal.SIGTERM, end_all)
    try:
        status = child.wait(float(sys.argv[1]))
        return status if status >= 0 else 128 - status
    except subprocess.TimeoutExpired:
        pass
    stopped = members(child.pid)
    for pid in stopped:
        describe(pid)
    sys.stderr.flush()
    for pid in stopped:
        debug(pid)
    send(child.pid, signal.SIGUSR1)
    time.sleep(5)
    send(child.pid, signal.SIGKILL)
    child.wait()
    return TIMED_OUT


sys.exit(main())
