#!/usr/bin/env bash
# Runs the GPU kit: OUT=<folder for results> run.sh [STAGE ...]
#
#   tests      the project's PETSc-level tests on 1 to 4 processes that share the GPU, the kernels, both with optimised and (some) with debug PETSc
#   gpuaware   the kit's CUDA-aware Open MPI passes device memory on; some mat_* programs with it and -use_gpu_aware_mpi 1
#   suite      PETSc's own test cases
#   sanitize   compute-sanitizer memcheck and racecheck on every kernel
#   solvers    PETSc's tutorials ex45, ex56, ex19 with aijcusparse and aijtccusparse; ours, ex2 with blocks of vectors, ex3 with narrow preconditioners, ex4 with graphs
#   solves     the first of these alone, not our own tutorials
#   twogpus    some of them on two processes, where the machine has two GPUs
#   bench      tcbench on the GPU, in parts: table rest add transpose spmm spmm_precision spmm_t spmm_abt sparse24 by_rows, only if asked for precision; one that does not come to its end keeps what it has
#   hostbench  tcbench on one processor core
#   all        all of these (default)
#
# With 12 cores or more hostbench runs beside tests, gpuaware, suite and sanitize; solvers, twogpus and bench always run alone.
# Needs an Open MPI runtime, BLAS and LAPACK, the libraries of the CUDA toolkit, python3. Results, at most 8 files: environment.txt, results.tsv, tests.log,
# solvers.tsv, events.tsv, bench.txt, bench.json, bench-host.json; scripts/gpu-report.py makes the report of them. A short table comes last.
# Environment: KIT_JOBS (4, with 12 cores 6), programs at the same time in tests, gpuaware, suite and sanitize; KIT_NP (4 3 2 1) and KIT_SOLVER_NP (1 2), numbers of processes in tests and solvers; KIT_IPC=0, no CUDA IPC in gpuaware; KIT_SANITIZERS (racecheck memcheck), tools of sanitize; BENCH_PARTS, some
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

flavour() { # opt or debug: whose libraries are found
  export LD_LIBRARY_PATH=$work/$1/lib:$CUDA_LIBRARIES
  bin=$work/$1/bin plugin=$work/$1/lib/libaijtccusparse.so
}

# --- jobs: several at a time, results in the order of their start

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
  while [ "$(jobs -rp | wc -l)" -ge "$KIT_JOBS" ]; do wait -n; done
  job_number=$((job_number + 1))
  file=$jobs/$(printf '%04d' "$job_number")
  printf '%s\n' "$name" >"$file.name"
  { "$@" >"$file.log" 2>&1 </dev/null; } &
}

end_jobs() { # log file
  local log name
  wait
  for log in "$jobs"/*.log; do
    [ -f "$log" ] || continue
    name=$(cat "${log%.log}.name")
    printf '=== %s\n' "$name" >>"$1"
    cat "$log" >>"$1"
    result "$name" "$(tail -n 1 "$log" | cut -f 1)" "$(tail -n 1 "$log" | cut -s -f 2)"
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
  elif [ "$status" = 0 ] && [[ $line == *" 0 failed"* ]]; then printf 'passed\t%s, %s s\n' "$line" "$((SECONDS - at))"
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

# --- stages

# The kit's programs of a kind, by their file names: "test_*" are the kernels' tests, "mat_*" the PETSc programs
programs() { # pattern
  local program
  for program in "$bin"/$1; do [ ! -x "$program" ] || basename "$program"; done
}

# The kernels for blocks are tested some at a time, by parts of their names: all together take too long
block_kernels=(csr_f64 hybrid_f64 bittcf_f64 cluster_f64 _f32 _tf32 bf16 _f16 survey)

stage_tests() {
  local np name each cuda=(-mat_aijtccusparse_backend cuda)
  new_jobs
  flavour opt
  for name in "${block_kernels[@]}"; do
    job "test_spmm_kernels-$name/cuda" counted 400 "$bin/test_spmm_kernels" -kernel "$name" "$work/opt/lib/libaijtccusparse_cuda.so"
  done
  for name in $(programs 'test_*' | grep -v '^test_spmm_kernels$'); do job "$name/cuda" counted 400 "$bin/$name" "$work/opt/lib/libaijtccusparse_cuda.so"; done
  for np in ${KIT_NP:-4 3 2 1}; do
    for name in $(programs 'mat_*'); do job "$name/aijtccusparse/np$np" counted_mpi 200 "$np" "$bin/$name" -malloc_dump "${cuda[@]}"; done
  done
  for each in mma fma; do job "mat_ops/aijtccusparse-$each/np1" counted_mpi 200 1 "$bin/mat_ops" "${cuda[@]}" -mat_aijtccusparse_arithmetic "$each"; done
  for np in 1 3; do job "mat_ops/aijtccusparse-dasp/np$np" counted_mpi 200 "$np" "$bin/mat_ops" "${cuda[@]}" -mat_aijtccusparse_spmv dasp; done
  job mat_ops/aijtccusparse-host/np1 counted_mpi 200 1 "$bin/mat_ops" -mat_aijtccusparse_backend host
  end_jobs "$out/tests.log"
  [ -d "$work/debug" ] || return 0
  new_jobs
  flavour debug
  for np in 2 1; do
    for name in $(programs 'mat_*' | grep -v '^mat_ops$'); do job "$name/aijtccusparse-debug/np$np" counted_mpi 200 "$np" "$bin/$name" -malloc_dump "${cuda[@]}"; done
  done
  end_jobs "$out/tests.log"
}

# With the kit's own Open MPI, in a subshell, whose end brings the machine's back. CUDA IPC is what processes of one GPU should use; where the machine has none, that
# Open MPI copies through the host, still from and to device pointers, and the result of the check says so.
stage_gpuaware() (
  mpi=$work/cuda-mpi check=$work/gpuaware.log status='' why=''
  flavour opt
  if [ ! -d "$mpi" ]; then
    result gpuaware/check skipped "the kit was packed without a CUDA-aware MPI"
    return
  fi
  export OPAL_PREFIX=$mpi PMIX_INSTALL_PREFIX=$mpi PATH=$mpi/bin:$PATH LD_LIBRARY_PATH=$mpi/lib:$LD_LIBRARY_PATH
  export OMPI_MCA_plm=isolated OMPI_MCA_pml=ob1 OMPI_MCA_btl=smcuda,self OMPI_MCA_btl_smcuda_cuda_ipc_verbose=10
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
  gpu_aware=1
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
  local each suite script
  for each in debug opt; do # the debug PETSc checks more; the optimised one where there is no other
    suite=$work/$each/suite
    [ -d "$suite" ] || continue
    new_jobs
    flavour "$each"
    find "$suite/tests" -name 'runex*.sh' -exec sed -i "s#@SUITE@#$suite#g" {} +
    export PETSCMPIEXEC=mpiexec PETSC_OPTIONS="-dll_prepend $plugin -use_gpu_aware_mpi 0"
    while IFS= read -r script; do
      job "petsc/$(sed -n "s/^label='\(.*\)'/\1/p" "$script")/$each" suite_case "$script"
    done < <(find "$suite/tests" -name 'runex*.sh' | sort)
    end_jobs "$out/tests.log"
    unset PETSC_OPTIONS
    return 0
  done
}

# The tests in a few parts, one a line: name, program, options. More would not end earlier: processes take turns on the device, and each waits for its turn at every step.
sanitized_parts() {
  local name
  for name in csr bittcf hybrid survey; do echo "test_spmm_kernels-$name test_spmm_kernels -kernel $name"; done # csr is bcsr, too
  for name in $(programs 'test_*' | grep -v '^test_spmm_kernels$'); do echo "$name $name"; done
}

sanitize() { # tool, name, program, options of the program
  local tool=$1 name=$2 program=$3 log=$work/sanitize-$1-$2.log status=0 at=$SECONDS size=-small
  [ "$tool" != racecheck ] || size=-few
  shift 3
  LAUNCH_LOG=$jobs/$tool-$name.launches timeout 240 compute-sanitizer --tool "$tool" --preload-library "$work/opt/lib/launch_log.so" --error-exitcode 9 "$bin/$program" "$size" "$@" "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 || status=$?
  head -c 4000000 "$log"
  if [ "$status" = 0 ]; then printf 'passed\t%s %s s\n' "$(grep -E 'SUMMARY|passed' "$log" | tr '\n' ';')" "$((SECONDS - at))"
  elif [ "$status" = 77 ]; then printf 'skipped\tno usable device\n'
  else printf 'failed\tstatus %s; %s\n' "$status" "$(grep -m 2 -E 'SUMMARY|passed' "$log" | tr '\n' ';')"
  fi
}

# Every kernel that the library brings along was launched under that tool, but for those of CUB, which launch_log.so does not see, and but for ways of one kernel that differ in
# registers and in what stays in the cache: under racecheck all that need a device that is full, under memcheck one that no matrix of the tests has come to
sanitized_kernels() { # tool
  local all=$jobs/$1-kernels missing others
  cat "$jobs/$1"-*.launches 2>/dev/null | sort -u | grep -v '3cub' >"$all"
  missing=$(comm -23 <(sed -n 's/^has //p' "$all") <(sed -n 's/^launches //p' "$all") | { c++filt 2>/dev/null || cat; } | sed 's/^void //; s/(tc_[a-z]*)//g' | cut -d '(' -f 1 | tr '\n' ';')
  others=$(tr ';' '\n' <<<"$missing" | grep -vE "$([ "$1" = racecheck ] && echo tc_spmv_hybrid_kernel || echo 'tc_hybrid_mma_crowded(<true, false>|ILb1ELb0E)')" | tr -d '\n')
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

# --- the benchmark: a few cases a process, so that a crash or the end of a part's time costs no more than these

# All results so far as one file; on standard output a line for each operation
merge_json() { # file to write, folder of the files to read
  python3 - "$@" <<'PYTHON'
import glob
import json
import math
import sys

to, folder = sys.argv[1:]
whole, chosen = {}, {}
for path in sorted(glob.glob(folder + '/*.json')):
    with open(path) as file:
        part = json.load(file)
    whole = whole or {key: value for key, value in part.items() if key not in ('summary', 'benchmarks')} | {'benchmarks': []}
    whole['benchmarks'] += part['benchmarks']
for row in whole.get('benchmarks', []):
    if not row.get('forced') and row['baseline_ms'] and row['ms'] > 0:
        parent, ms = next(iter(row['baseline_ms'].items()))
        op = row['op'] if row['precision'] == 'fp64' else f'{row["op"]} {row["precision"]}'
        chosen.setdefault((op, row['n'], parent), []).append((ms / row['ms'], row['case']))
for (op, n, parent), pairs in chosen.items():
    lost = ' '.join(f'{case} ({ratio:.2f}x)' for ratio, case in sorted(pairs) if ratio < 1)
    print(f'{op} n {n}: {len(pairs)} cases, {math.exp(sum(math.log(ratio) for ratio, _ in pairs) / len(pairs)):.3f} times as fast as {parent}; slower: {lost or "none"}')
if whole:
    with open(to, 'w') as file:
        json.dump(whole, file)
PYTHON
}

bench_number=0
new_bench() { # JSON file
  parts=$work/bench/$stage
  bench_json=$1
  rm -rf "$parts" "$bench_json"
  mkdir -p "$parts"
}

# one process, with the options, limit and files of the part; false if it ended before its time without results
bench_run() { # cases and paths of files
  local now=0 cases files json
  bench_number=$((bench_number + 1))
  json=$parts/$(printf '%03d' "$bench_number").json
  cases=$(printf '%s\n' "$@" | grep -v / | paste -sd,)
  files=$(printf '%s\n' "$@" | grep / | paste -sd,)
  [ "$SECONDS" -lt "$end" ] || { status=124; return 0; }
  # shellcheck disable=SC2086
  timeout -k 5 $((end - SECONDS)) "$bin/tcbench" "${options[@]}" -use_gpu_aware_mpi 0 ${cases:+-case "$cases"} ${files:+-file "$files"} -json "$json" ${BENCH_OPTIONS:-} >"$parts/log" 2>&1 </dev/null || now=$?
  tee -a "$text" <"$parts/log" >>"$out/bench.txt"
  merge_json "$bench_json" "$parts" >"$parts/summary"
  [ "$stage" = hostbench ] || ! grep -q '^one processor core' "$parts/log" || now=77
  [ "$now" = 0 ] || status=$now
  [ -s "$json" ] || [ "$now" = 124 ] || [ "$now" = 137 ]
}

bench_part() { # name, seconds, cases and paths of files in one word, how many a process, operation and options of tcbench
  local name=$1 end=$((SECONDS + $2)) list size=$4 options=("${@:5}") text=$parts/$1.txt status=0 at each
  read -r -a list <<<"$3"
  for ((at = 0; at < ${#list[@]}; at += size)); do
    bench_run "${list[@]:at:size}" || [ "$size" = 1 ] || for each in "${list[@]:at:size}"; do bench_run "$each"; done
  done
  result "bench/$name" "$([ "$status" = 0 ] && echo passed || echo failed)" "$(awk -v all="${#list[@]}" -v status="$status" '
    /^[0-9]+ matrices, / { n += $1; wrong += $3; unread += $5 }
    END { printf "%d of %d matrices, %d wrong, %d not read%s", n, all, wrong, unread, status == 124 || status == 137 ? ", the time was up" : status == 77 ? ", no GPU" : status ? ", status " status : "" }' "$text")"
}

# Cases: the fourteen of the first measurements; the rest of tcbench's table; all files of matrices; a few for other operations
table() { echo stencil27_160 elasticity_64 stencil7_220 stencil27_window_128 stencil27_36 elasticity_28 qcd_11 four_724 four_2510 circuit_3m webbase_1m rmat_20 long_60k long_2k; }
rest() { "$bin/tcbench" list | awk '{ print $1 }' | grep -vxF "$(table | tr ' ' '\n')" | tr '\n' ' '; }
files() { find "$work/matrices" -name '*.gz' | if [ "${BENCH_OPERATORS:-1}" = 0 ]; then grep -v '\.petsc\.gz$'; else cat; fi | sort | tr '\n' ' '; }
few() { echo elasticity_28 stencil27_46 interpolation_80 restriction_80 offdiagonal_2m like_cant webbase_1m lp_200k; }
blocks() { # the large ones and those with aims first, since most is lost with them when the time is up
  echo elasticity_64 stencil27:100 stencil7:110 stencil27_window:100 webbase_1m long1153:20000 four_724 rmat:18 elasticity_28 qcd_11 long_2k
  echo p2:32 circuit:400000 laplace27:64 interpolation:40 lp:40000 stokes:24 ex56_24 like_cant like_pdb1HYS like_scircuit
  echo "$work"/matrices/{email-enron,dlmc_transformer_095_symbol,bcsstk17}.mtx.gz like_consph like_shipsec1 like_rma10 like_cop20k_A like_pwtk like_mip1
  echo like_conf5_4-8x8-10 like_dc2 like_mac_econ_fwd500 like_Si41Ge41H72
}

bench_table() { bench_part table 130 "$(table)" 4 spmv -groups 5; }
bench_rest() { bench_part rest 130 "$(rest) $(files)" 10 spmv -groups 5 -ways auto,hybrid_mma,hybrid_fma; }
bench_add() { bench_part add 30 "$(few)" 8 spmv -spmv_mode add -groups 5 -ways auto; }
bench_transpose() { bench_part transpose 30 "$(few)" 8 spmv -spmv_mode transpose -groups 5 -ways auto; }
bench_spmm() {
  bench_part spmm_tall 25 circuit_3m 1 spmm -spmm_n 8,32 -groups 5 -group_ms 2
  bench_part spmm 150 "$(blocks | tr '\n' ' ')" 6 spmm -spmm_n 8,32,128 -groups 5 -group_ms 2
}
bench_spmm_t() { bench_part spmm_t 30 "elasticity_28 stencil27:64 like_cant rmat:18 interpolation:40 restriction:40" 6 spmm -spmm_mode atb -spmm_n 32 -groups 5; }
bench_spmm_abt() { bench_part spmm_abt 20 "elasticity_28 stencil27:64 rmat:18 interpolation:40 restriction:40" 5 spmm -spmm_mode abt -spmm_n 8,32 -groups 5; }
# of the cases of `blocks`, whose times in fp64 these are compared with
bench_spmm_precision() { bench_part spmm_precision 90 "elasticity_28 qcd_11 rmat:18 like_cant like_cop20k_A $work/matrices/email-enron.mtx.gz like_mip1 webbase_1m" 2 spmm -precision tf32,bf16,fp16,fp32 -spmm_n 32,128 -ways auto -groups 3 -group_ms 1; }
# 2:4 tiles and what they are compared with, without PETSc; other rows of the same file
bench_sparse24() {
  local log=$parts/sparse24.txt status=0 rows size
  bench_number=$((bench_number + 1))
  timeout -k 5 60 "$bin/test_spmm_bcsr" -bench 64,128,512,1024 "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 </dev/null || status=$?
  for size in 4096 8192; do timeout -k 5 30 python3 "$work/cusparselt.py" "$size" 64 128 512 1024 >>"$log" 2>&1 </dev/null; done # its own line says what it is; may be absent
  cat "$log" >>"$out/bench.txt"
  awk '
    FNR == NR { if (NF == 4 && $1 ~ /^[0-9]+$/) structured[$1, $2] = $3; next }
    $1 == "#" && $2 == "matrix" { for (i = 3; i <= NF; ++i) name[i - 1] = $i }
    /^[0-9]+d[0-9]+s / && NF == 11 {
      printf "%s  {\"op\": \"sparse24\", \"case\": \"%s\", \"rows\": %d, \"cols\": %d, \"nnz\": %d, \"n\": %d, \"ranks\": 1, \"precision\": \"fp16\", \"kernel\": \"tc_spmm_bcsr_f16\", \"device\": true, \"ms\": %s, \"bf16_ms\": %s, \"baseline_ms\": {", (n++ ? ",\n" : "{\"benchmarks\": [\n"), $1, $2, $2, $3, $4, $5, $7
      for (i = 6; i <= NF; ++i) if (i != 7) printf("%s\"%s\": %s", (i > 6 ? ", " : ""), name[i], ($i == "inf" ? 0 : $i))
      if (/^0d/ && ($2, $4) in structured) printf ", \"cusparselt_fp16\": %s", structured[$2, $4] # all of it is 2:4
      printf "}}"
    }
    END { if (n) print "\n]}" }' "$log" "$log" >"$parts/$(printf '%03d' "$bench_number").json"
  rows=$(grep -cE '^[0-9]+d[0-9]+s ' "$log")
  [ "$rows" -gt 0 ] || rm "$parts/$(printf '%03d' "$bench_number").json"
  merge_json "$bench_json" "$parts" >"$parts/summary"
  result bench/sparse24 "$([ "$status" = 0 ] && echo passed || echo failed)" "$rows rows$([ "$status" = 0 ] || echo ", status $status")"
}
# products of row-major blocks of floats, without PETSc; with rows reordered, too
bench_by_rows() {
  local log=$parts/by_rows.txt json status=0 rows cases
  bench_number=$((bench_number + 1))
  json=$parts/$(printf '%03d' "$bench_number").json
  cases=like_dc2:116835,like_scircuit:170998,like_mac_econ_fwd500:206500,rmat:18,elasticity:28,like_cant:62451,qcd:11,like_cop20k_A:121192,lp:40000,circuit:400000,webbase:1000000
  cases=$cases,four:724,p2:32,stencil7:110,like_mip1:66463,elasticity:64,stencil27_window:100,like_pwtk:217918,like_consph:83334,stokes:24,laplace27:64,stencil27:100
  timeout -k 5 150 "$bin/test_spmm_kernels" -bench 1 -row-major 128,256,512 -kernel f32 -reorder -case "$cases" "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 </dev/null || status=$?
  cat "$log" >>"$out/bench.txt"
  python3 "$work/by_rows.py" "$log" >"$json" || rm -f "$json"
  rows=$(grep -o '"op"' "$json" 2>/dev/null | wc -l)
  merge_json "$bench_json" "$parts" >"$parts/summary"
  result bench/by_rows "$([ "$status" = 0 ] && [ "$rows" -gt 0 ] && echo passed || echo failed)" "$rows rows$([ "$status" = 0 ] || echo ", status $status")"
}
bench_precision() { bench_part precision 120 "elasticity_64 circuit_3m stencil27_window_128 stencil7_220 stencil27_160" 3 spmv -precision fp32,bf16,fp16 -groups 5 -ways auto; }

stage_bench() {
  local part
  flavour opt
  new_bench "$out/bench.json"
  for part in ${BENCH_PARTS:-table rest add transpose spmm spmm_precision spmm_t spmm_abt sparse24 by_rows}; do "bench_$part"; done
  cat "$parts/summary"
}

stage_hostbench() {
  flavour opt
  new_bench "$out/bench-host.json"
  export CUDA_VISIBLE_DEVICES=''
  if [ "$many_cores" = 1 ]; then # others run beside it
    renice -n -10 -p "$BASHPID" >/dev/null 2>&1
    printf 'host_beside\ttests on the others\n' >>"$out/environment.txt"
  fi
  bench_part host 120 "$(table) $(rest) $(files)" 12 spmv -host -groups 5 -ways auto
  cat "$parts/summary"
}

# --- main

one_stage() ( # in a shell of its own, whose jobs are no other stage's
  stage=$1 at=$SECONDS
  "stage_$stage"
  printf '%s: %s s\n' "$stage" "$((SECONDS - at))" | tee -a "$out/environment.txt"
)

[ $# -gt 0 ] || set -- all
[ "$1" != all ] || set -- hostbench tests gpuaware suite sanitize solvers twogpus bench
unpack
source "$work/solvers.sh"
environment
rm -f "$out"/{results.tsv,tests.log,solvers.tsv,events.tsv,bench.txt}
touch "$out/results.tsv"
for each in "$@"; do
  if [ "$many_cores" = 1 ] && [[ $each == hostbench ]]; then
    one_stage "$each" &
    continue
  fi
  [[ ! $each =~ ^(solvers|solves|twogpus|bench)$ ]] || wait
  one_stage "$each"
done
wait
[ ! -s "$out/solvers.tsv" ] || { printf 'case\tnp\ttype\titerations\tresidual\tseconds\tcounters\trows\tnonzeros\tcolumns\tprecision\tfirst\tkernel\n'; cat "$out/solvers.tsv"; }
grep -P '\tfailed\t' "$out/results.tsv" | head -n 40
printf '%s passed, %s failed, %s skipped in %s s\n' "$(grep -cP '\tpassed\t' "$out/results.tsv")" "$(grep -cP '\tfailed\t' "$out/results.tsv")" "$(grep -cP '\tskipped\t' "$out/results.tsv")" "$((SECONDS - begin))"
! grep -qP '\tfailed\t' "$out/results.tsv"
