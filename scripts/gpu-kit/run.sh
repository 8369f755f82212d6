#!/usr/bin/env bash
# Runs the GPU kit: OUT=<folder for results> run.sh [STAGE ...]
#
#   tests      the project's PETSc-level tests on 1 to 4 processes that share the GPU, the kernels, the former with the optimised PETSc and (some) with the debug one and 64-bit indices
#   gpuaware   the kit's CUDA-aware Open MPI passes device memory on; some mat_* programs with it and -use_gpu_aware_mpi 1
#   suite      PETSc's own test cases
#   sanitize   compute-sanitizer memcheck and racecheck on every kernel
#   solvers    PETSc's tutorials ex45, ex56, ex19 with aijcusparse and aijtccusparse; ours, ex2 with blocks of vectors, ex3 with narrow preconditioners, ex4 with graphs
#   solves     the first of these alone, not our own tutorials
#   sweeps     those with PCSOR alone
#   factors    those with incomplete factors alone
#   blocks     ex2 alone
#   uses       usebench: new values and a product, with both types
#   twogpus    some of them on two processes, where the machine has two GPUs, with the machine's Open MPI, which copies through the host
#   twoaware   the same with the kit's CUDA-aware one
#   bench      tcbench on the GPU, in parts: table rest add residual transpose spmm spmm_few spmm_precision spmm_t spmm_abt sparse24 by_rows, only if asked for precision; one that does not come to its end keeps what it has
#   hostbench  tcbench on one processor core
#   all        all of these (default)
#
# With 12 cores or more hostbench runs beside tests, gpuaware, suite and sanitize; solvers, twogpus, twoaware and bench always run alone.
# Needs an Open MPI runtime, BLAS and LAPACK, the libraries of the CUDA toolkit, python3. Results: environment.txt, results.tsv, tests.log,
# solvers.tsv, processes.tsv, events.tsv, uses.tsv, bench.txt, bench.json, bench-host.json; scripts/gpu-report.py makes the report of them. A short table comes last.
# Where it can be started, CUDA's multi-process service lets the programs of tests and suite share the GPU, so that they do not take turns (environment.txt says so).
# Environment: KIT_JOBS (4, with 12 cores 6, with that service two thirds of the cores if those are more), programs at the same time in tests, gpuaware, suite and sanitize; KIT_MPS=0, no such service; KIT_ONLY, a regular expression, those of them with such names; KIT_NP (4 3 2 1) and KIT_SOLVER_NP (1 2), numbers of processes in tests and solvers; KIT_IPC=0, no CUDA IPC in gpuaware and twoaware; KIT_SANITIZERS (racecheck memcheck), tools of sanitize; BENCH_PARTS, some
# of the benchmark's parts; BENCH_OPTIONS for its tcbench; BENCH_OPERATORS=0 leaves the files of operators out.
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$kit/out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$kit/unpacked
begin=$SECONDS
many_cores=$(($(nproc) >= 12))
: "${KIT_JOBS:=$((many_cores ? 6 : 4))}"

# --- what is needed

unpack() {
  [ "$work/stamp" -nt "$kit/kit.tar.xz" ] && return
  rm -rf "$work"
  mkdir -p "$work"
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$kit/kit.tar.xz" "$work" || exit 1
  find "$work/matrices" -type f -print0 | xargs -0 -P 8 gzip -1 # they travel as they are, in 7 MB instead of 12
  touch "$work/stamp"
}

environment() {
  local cuda
  cuda=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  cuda=$(dirname "$(dirname "$(readlink -f "$cuda")")")
  export PATH=$PATH:$cuda/bin CUDA_LIBRARIES=$cuda/lib64
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  export AIJTCCUSPARSE_MATRICES=$work/matrices
  flavour opt
  {
    printf 'digest\t%s\n' "$(cat "$work/report/digest")"
    printf 'petsc\t%s\n' "$(cat "$work/report/petsc")"
    printf 'device\t%s\n' "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)"
    printf 'driver\t%s\n' "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    printf 'date\t%s\n' "$(date -u +%Y-%m-%d)"
    printf 'cpu\t%s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  } >"$out/environment.txt"
}

flavour() { # opt, debug or int64: whose libraries are found
  export LD_LIBRARY_PATH=$work/$1/lib:$CUDA_LIBRARIES
  bin=$work/$1/bin plugin=$work/$1/lib/libaijtccusparse.so
}

# --- jobs: several at a time; each leaves its result when it ends, so that a run that is cut short keeps those, and its log at the end of the stage, in the order of their start

job_number=0
new_jobs() {
  jobs=$work/jobs/$stage
  rm -rf "$jobs"
  mkdir -p "$jobs"
}

# a job writes its log to standard output, and "status TAB why" as its last line
job() { # name, command with arguments
  local name=$1 file
  shift
  [[ $name =~ ${KIT_ONLY:-} ]] || return 0
  while [ "$(jobs -rp | wc -l)" -ge "$KIT_JOBS" ]; do wait -n; done
  job_number=$((job_number + 1))
  file=$jobs/$(printf '%04d' "$job_number")
  printf '%s\n' "$name" >"$file.name"
  {
    "$@" >"$file.log" 2>&1 </dev/null
    result "$name" "$(tail -n 1 "$file.log" | cut -f 1)" "$(tail -n 1 "$file.log" | cut -s -f 2)"
  } &
}

end_jobs() { # log file
  local log
  wait
  for log in "$jobs"/*.log; do
    [ -f "$log" ] || continue
    printf '=== %s\n' "$(cat "${log%.log}.name")" >>"$1"
    cat "$log" >>"$1"
  done
}

result() { # name, status, why
  case $2 in
    passed | failed | skipped) printf '%s\t%s\t%s\n' "$1" "$2" "$3" ;;
    *) printf '%s\tfailed\tno result\n' "$1" ;;
  esac >>"$out/results.tsv"
}

# A program that has not ended in time says where it is before it is killed, with all that it has started. PETSc would take the signals that this needs.
limited() { # seconds, command
  PETSC_OPTIONS="${PETSC_OPTIONS:-} -no_signal_handler" LD_PRELOAD=$work/libstack.so python3 "$work/limited.py" "$@"
}

# a program whose last line is "N passed, N failed, N skipped"
counted() { # seconds, command
  local seconds=$1 log status=0 line at=$SECONDS
  shift
  log=$(mktemp "$work/log.XXXXXX")
  limited "$seconds" "$@" >"$log" 2>&1 || status=$?
  # of thousands of facts the failed ones, the skipped ones and the last
  grep -v '^ok  ' "$log" | head -n 300
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
  if [ "$status" = 77 ]; then printf 'skipped\t%s\n' "$(head -n 1 "$log")"
  elif grep -qE '^\[ *[0-9]+\] *[0-9]+ bytes' "$log"; then printf 'failed\tmemory not freed; %s\n' "$line"
  elif grep -qE '^\[ *[0-9]+\] function name: ' "$log"; then printf 'failed\tfunctions left composed; %s\n' "$line"
  elif [ "$status" = 0 ] && [[ $line == *" 0 failed"* && $line != "0 passed, "* ]]; then printf 'passed\t%s, %s s\n' "$line" "$((SECONDS - at))"
  elif [ "$status" = 124 ]; then printf 'failed\ttimed out after %s s\n' "$seconds"
  else printf 'failed\tstatus %s, %s\n' "$status" "$line"
  fi
  rm -f "$log"
}

counted_mpi() { # seconds, processes, program, options
  local seconds=$1 np=$2 program=$3
  shift 3
  counted "$seconds" mpiexec -n "$np" "$program" -use_gpu_aware_mpi "${gpu_aware:-0}" "$@"
}

# For the rest of a subshell; not where compute-sanitizer looks on, where memory is passed on to other processes, or where something is timed
share_gpu() {
  local control=nvidia-cuda-mps-control cores=$(($(nproc) * 2 / 3))
  [ "${KIT_MPS:-1}" != 0 ] && command -v "$control" >/dev/null || return 0
  CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  if "$control" -d >/dev/null 2>&1; then
    trap 'echo quit | timeout 10 "'"$control"'" >/dev/null 2>&1' EXIT
    [ "$cores" -le "$KIT_JOBS" ] || KIT_JOBS=$cores
    printf '%s: multi-process service, %s jobs\n' "$stage" "$KIT_JOBS" | tee -a "$out/environment.txt"
  else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  fi
}

# --- stages

# The kit's programs of a kind, by their file names: "test_*" are the kernels' tests, "mat_*" the PETSc programs
programs() { # pattern
  local program
  for program in "$bin"/$1; do [ ! -x "$program" ] || basename "$program"; done
}

# The kernels for blocks are tested some at a time, by parts of their names: all together take too long
block_kernels=(csr_f64 hybrid_f64 bittcf_f64 cluster_f64 _f32 _tf32 bf16 _f16 survey)

stage_tests() {
  local np name each left cuda=(-mat_aijtccusparse_backend cuda)
  share_gpu
  new_jobs
  flavour opt
  for name in "${block_kernels[@]}"; do
    job "test_spmm_kernels-$name/cuda" counted 400 "$bin/test_spmm_kernels" -kernel "$name" "$work/opt/lib/libaijtccusparse_cuda.so"
  done
  for name in $(programs 'test_*' | grep -v '^test_spmm_kernels$'); do job "$name/cuda" counted 400 "$bin/$name" "$work/opt/lib/libaijtccusparse_cuda.so"; done
  for np in ${KIT_NP:-4 3 2 1}; do
    for name in $(programs 'mat_*'); do
      left=() # others have incomplete factors, to which PETSc copies composed functions
      [[ $name != mat_ops && $name != mat_product ]] || left=(-checkfunctionlist)
      job "$name/aijtccusparse/np$np" counted_mpi 200 "$np" "$bin/$name" -malloc_dump "${left[@]}" "${cuda[@]}"
    done
  done
  for each in mma fma; do job "mat_ops/aijtccusparse-$each/np1" counted_mpi 200 1 "$bin/mat_ops" "${cuda[@]}" -mat_aijtccusparse_arithmetic "$each"; done
  for np in 1 3; do job "mat_ops/aijtccusparse-dasp/np$np" counted_mpi 200 "$np" "$bin/mat_ops" "${cuda[@]}" -mat_aijtccusparse_spmv dasp; done
  job mat_ops/aijtccusparse-host/np1 counted_mpi 200 1 "$bin/mat_ops" -mat_aijtccusparse_backend host
  for np in 4 3 2; do # processes that share a GPU, too, which wait for each other in kernels: soon, with the multi-process service
    for name in mpi ops random failure product; do
      [ -x "$bin/mat_$name" ] || continue
      if [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ]; then job "mat_$name/aijtccusparse-peer/np$np" counted_mpi 200 "$np" "$bin/mat_$name" -malloc_dump "${cuda[@]}" -mat_aijtccusparse_exchange peer
      else result "mat_$name/aijtccusparse-peer/np$np" skipped "no multi-process service"
      fi
    done
  done
  for each in debug int64; do
    [ -d "$work/$each" ] || continue
    flavour "$each"
    for np in 2 1; do
      for name in $(programs 'mat_*' | grep -v '^mat_ops$'); do job "$name/aijtccusparse-$each/np$np" counted_mpi 200 "$np" "$bin/$name" -malloc_dump "${cuda[@]}"; done
      job "mat_ops-choices/aijtccusparse-$each/np$np" counted_mpi 200 "$np" "$bin/mat_ops" -only_choices -malloc_dump "${cuda[@]}"
    done
  done
  end_jobs "$out/tests.log"
}

# The kit's own Open MPI, for the rest of a subshell, whose end brings the machine's back; fails where there is none
cuda_aware_mpi() { # test that is skipped without it
  mpi=$work/cuda-mpi
  flavour opt
  if [ ! -d "$mpi" ]; then
    result "$1" skipped "the kit was packed without a CUDA-aware MPI"
    return 1
  fi
  export OPAL_PREFIX=$mpi PMIX_INSTALL_PREFIX=$mpi PATH=$mpi/bin:$PATH LD_LIBRARY_PATH=$mpi/lib:$LD_LIBRARY_PATH
  export OMPI_MCA_plm=isolated OMPI_MCA_pml=ob1 OMPI_MCA_btl=smcuda,self
  gpu_aware=1
}

# CUDA IPC is what processes of one GPU should use; where the machine has none, that Open MPI copies through the host, still from and to device pointers, and the result of the check
# says so.
stage_gpuaware() (
  check=$work/gpuaware.log status='' why=''
  cuda_aware_mpi gpuaware/check || return 0
  export OMPI_MCA_btl_smcuda_cuda_ipc_verbose=10
  for ipc in "${KIT_IPC:-1}" 0; do
    export OMPI_MCA_btl_smcuda_use_cuda_ipc=$ipc
    counted 40 mpiexec -n 2 "$mpi/bin/gpuaware" >"$check" </dev/null
    { printf '=== gpuaware/check, btl_smcuda_use_cuda_ipc=%s, %s\n' "$ipc" "$(command -v mpiexec)"; cat "$check"; } >>"$out/tests.log"
    if ! grep -q 'enabling CUDA IPC' "$check"; then way='copies through the host'
    elif grep -q 'call to cuIpc.* failed' "$check"; then way='CUDA IPC does not work'
    else way='CUDA IPC'
    fi
    status=$(tail -n 1 "$check" | cut -f 1)
    why="${why:+$why; }$way: $(tail -n 1 "$check" | cut -s -f 2)"
    [ "$status" = passed ] || why="$why $({ grep -E '^(FAIL|rank [0-9]+:) ' "$check" || sed '$d' "$check" | grep '^[A-Za-z]'; } | head -n 1)"
    if [ "$status" = passed ] && [ "$way" != 'CUDA IPC does not work' ]; then break; fi
  done
  result gpuaware/check "$status" "$why"
  unset OMPI_MCA_btl_smcuda_cuda_ipc_verbose
  new_jobs
  for np in 2 3; do
    for name in mpi ops solve product; do
      [ -x "$bin/mat_$name" ] || continue
      if [ "$status" = passed ]; then job "mat_$name/aijtccusparse-gpuaware/np$np" counted_mpi 120 "$np" "$bin/mat_$name" -malloc_dump -mat_aijtccusparse_backend cuda
      else result "mat_$name/aijtccusparse-gpuaware/np$np" failed "not run, gpuaware/check failed"
      fi
    done
  done
  end_jobs "$out/tests.log"
)

# one script of PETSc's harness; prints nothing but what the harness says
suite_case() { # script
  local text status=passed
  cd "$(dirname "$1")" || return
  text=$(timeout 150 bash "$1" -t 60 2>&1) || true
  printf '%s\n' "$text" | head -n 60
  if grep -q '^not ok' <<<"$text" || ! grep -q '^ ok' <<<"$text"; then status=failed; fi
  if grep -q ' ok .*# SKIP' <<<"$text" && ! grep -q '^not ok' <<<"$text" && ! grep -v '# SKIP' <<<"$text" | grep -q '^ ok'; then status=skipped; fi
  printf '%s\t%s\n' "$status" "$(grep -m 1 -o '# SKIP.*' <<<"$text")"
}

stage_suite() {
  local each suite script label
  share_gpu
  for each in debug opt; do # the debug PETSc checks more; the optimised one where there is no other
    suite=$work/$each/suite
    [ -d "$suite" ] || continue
    new_jobs
    flavour "$each"
    find "$suite/tests" -name 'run*.sh' -exec sed -i "s#@SUITE@#$suite#g" {} +
    export PETSCMPIEXEC=mpiexec PETSC_OPTIONS="-dll_prepend $plugin -use_gpu_aware_mpi 0"
    : >"$work/labels"
    while IFS= read -r script; do
      label=$(sed -n "s/^label='\(.*\)'/\1/p" "$script")
      echo "$label" >>"$work/labels"
      job "petsc/$label/$each" suite_case "$script"
    done < <(find "$suite/tests" -name 'run*.sh' | sort)
    end_jobs "$out/tests.log"
    while IFS= read -r label; do
      [[ ! petsc/$label/$each =~ ${KIT_ONLY:-} ]] || result "petsc/$label/$each" failed "a case of the table that the kit does not have"
    done < <(python3 "$suite/suite.py" missing --mode cuda --to "$suite" <"$work/labels")
    unset PETSC_OPTIONS
    return 0
  done
}

# The tests in a few parts, one a line: name, program, options. More would not end earlier: processes take turns on the device, and each waits for its turn at every step.
sanitized_parts() {
  local name
  for name in csr bittcf hybrid survey; do echo "test_spmm_kernels-$name test_spmm_kernels -kernel $name"; done # csr is bcsr, too
  for name in 0 1; do echo "test_scalar-$name test_scalar -half $name"; done
  for name in vectors blocks; do echo "test_sweep-$name test_sweep -$name"; done
  for name in $(programs 'test_*' | grep -vE '^(test_spmm_kernels|test_scalar|test_sweep)$'); do echo "$name $name"; done
}

sanitize() { # tool, name, program, options of the program
  local tool=$1 name=$2 program=$3 log=$work/sanitize-$1-$2.log status=0 at=$SECONDS size=-small
  [[ $tool != racecheck && $name != *-blocks ]] || size=-few # blocks of vectors come in six widths
  shift 3
  LAUNCH_LOG=$jobs/$tool-$name.launches timeout 450 compute-sanitizer --tool "$tool" --preload-library "$work/opt/lib/launch_log.so" --error-exitcode 9 "$bin/$program" "$size" "$@" "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 || status=$?
  head -c 4000000 "$log"
  if [ "$status" = 0 ]; then printf 'passed\t%s %s s\n' "$(grep -E 'SUMMARY|passed' "$log" | tr '\n' ';')" "$((SECONDS - at))"
  elif [ "$status" = 77 ]; then printf 'skipped\tno usable device\n'
  else printf 'failed\tstatus %s; %s\n' "$status" "$(grep -m 2 -E 'SUMMARY|passed' "$log" | tr '\n' ';')"
  fi
}

# Every kernel that the library brings along was launched under that tool, but for those of CUB, which launch_log.so does not see, and under racecheck but for ways of two kernels that
# differ in registers and in what stays in the cache: all that need a device that is full; and but for what adds a vector to products of cuSPARSE, which are left out, as racecheck complains of its kernel
sanitized_kernels() { # tool
  local all=$jobs/$1-kernels missing others
  cat "$jobs/$1"-*.launches 2>/dev/null | sort -u | grep -v '3cub' >"$all"
  missing=$(comm -23 <(sed -n 's/^has //p' "$all") <(sed -n 's/^launches //p' "$all") | { c++filt 2>/dev/null || cat; } | sed 's/^void //; s/(tc_[a-z]*)//g' | cut -d '(' -f 1 | tr '\n' ';')
  others=$(tr ';' '\n' <<<"$missing" | { if [ "$1" = racecheck ]; then grep -vE 'tc_(spmv_(hybrid|csr)|add_vector)_kernel'; else cat; fi; } | tr -d '\n')
  if ! grep -q '^launches ' "$all"; then result "sanitizer/$1/kernels" skipped "no usable device"
  else result "sanitizer/$1/kernels" "$([ -z "$others" ] && echo passed || echo failed)" "$(grep -c '^launches ' "$all") of $(grep -c '^has ' "$all") kernels launched${missing:+; not $missing}"
  fi
}

# racecheck takes longest and comes first
stage_sanitize() {
  local tool tools=${KIT_SANITIZERS:-racecheck memcheck} tests KIT_JOBS=$((many_cores ? 8 : KIT_JOBS)) part
  new_jobs
  flavour opt
  mapfile -t tests < <(sanitized_parts)
  for tool in $tools; do
    # shellcheck disable=SC2086
    for part in "${tests[@]}"; do job "sanitizer/$tool/${part%% *}" sanitize "$tool" $part; done
  done
  end_jobs "$out/tests.log"
  for tool in $tools; do sanitized_kernels "$tool"; done
}

# --- main

one_stage() ( # in a shell of its own, whose jobs are no other stage's
  stage=$1 at=$SECONDS
  "stage_$stage"
  printf '%s: %s s\n' "$stage" "$((SECONDS - at))" | tee -a "$out/environment.txt"
)

[ $# -gt 0 ] || set -- all
[ "$1" != all ] || set -- hostbench tests gpuaware suite sanitize solvers uses twogpus twoaware bench
unpack
source "$work/solvers.sh"
source "$work/bench.sh"
environment
rm -f "$out"/{results.tsv,tests.log,solvers.tsv,events.tsv,uses.tsv,bench.txt}
touch "$out/results.tsv"
for each in "$@"; do
  if [ "$many_cores" = 1 ] && [[ $each == hostbench ]]; then
    one_stage "$each" &
    continue
  fi
  [[ ! $each =~ ^(solvers|solves|sweeps|factors|blocks|uses|twogpus|twoaware|bench)$ ]] || wait
  one_stage "$each"
done
wait
[ ! -s "$out/solvers.tsv" ] || { printf 'case\tnp\ttype\titerations\tresidual\tseconds\tcounters\trows\tnonzeros\tcolumns\tprecision\tfirst\tkernel\n'; cat "$out/solvers.tsv"; }
grep -P '\tfailed\t' "$out/results.tsv" | head -n 40
printf '%s passed, %s failed, %s skipped in %s s\n' "$(grep -cP '\tpassed\t' "$out/results.tsv")" "$(grep -cP '\tfailed\t' "$out/results.tsv")" "$(grep -cP '\tskipped\t' "$out/results.tsv")" "$((SECONDS - begin))"
! grep -qP '\tfailed\t' "$out/results.tsv"
