#!/usr/bin/env bash
# Runs what everywhere_kit.sh has packed: PETSc's own tests with every AIJ matrix made ours and vectors on the device, what fails once more with fewer beside it, since processes that share a GPU
# are refused when there are too many, and what still fails with aijcusparse in our place.
#
#   OUT=<folder for results> everywhere_gpu.sh SECONDS ['PATTERN' ...]
#
#   SECONDS   none is started after as many for the first part; what fails is run again in the time that is left and as much again at most, both ways
#   PATTERN   of the tests' paths, 'ksp/*' (default: all)
#
# Environment: EVERYWHERE_OPTIONS, instead of "-vec_type cuda -dm_vec_type cuda"; EVERYWHERE_JOBS (12); EVERYWHERE_LIMIT (60), seconds per program; EVERYWHERE_MPS=0, no multi-process service.
# Results: everywhere.tsv (test, ours, control) and everywhere.tar.xz with what failing ones have printed. The last lines list what fails with us only.
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${1:?seconds}
shift
[ $# -gt 0 ] || set -- '*'
mkdir -p "${OUT:?}"
out=$(cd "$OUT" && pwd)
work=$kit/everywhere
if [ ! -d "$work" ]; then
  mkdir -p "$work"
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$kit/everywhere.tar.xz" "$work" || exit 1
  find "$work/tests" -name 'run*.sh' -exec sed -i "s#@EVERYWHERE@#$work#g" {} +
  printf '#!/usr/bin/env bash\nexec env LD_PRELOAD=%q mpiexec "$@" </dev/null\n' "$work/lib/everywhere.so" >"$work/mpiexec"
  chmod +x "$work/mpiexec"
fi
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")
export LD_LIBRARY_PATH=$work/lib:$cuda/lib64 PATH=$PATH:$cuda/bin
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export PETSCMPIEXEC=$work/mpiexec PETSCDIFF=$work/everywhere_diff.sh EVERYWHERE_PETSCDIFF=$work/petsc/lib/petsc/bin/petscdiff EVERYWHERE_LIMIT=${EVERYWHERE_LIMIT:-60}
common="-options_left no -use_gpu_aware_mpi 0 ${EVERYWHERE_OPTIONS--vec_type cuda -dm_vec_type cuda}"
if [ "${EVERYWHERE_MPS:-1}" != 0 ] && command -v nvidia-cuda-mps-control >/dev/null; then
  CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  if nvidia-cuda-mps-control -d >/dev/null 2>&1; then trap 'echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1' EXIT; else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
fi

# one script of the harness; its lines go to a file of its own, beside what its programs have printed
one() { # script, folder for results, time when none is started any more
  [ "$(date +%s)" -lt "$3" ] || return 0
  local name=${1#./}
  name=${name//\//_}
  timeout $((EVERYWHERE_LIMIT * 4)) bash "$1" -t "$EVERYWHERE_LIMIT" >"$2/$name.log" 2>&1 </dev/null || [ $? != 124 ] || echo "not ok $name # not done in time" >>"$2/$name.log"
}
export -f one

run() { # folder for results, end, jobs; scripts on standard input
  mkdir -p "$1"
  (cd "$work/tests" && xargs -P "$3" -I {} bash -c 'one "$@"' one {} "$1" "$2")
}

failing() { # scripts that have failed
  grep -l '^not ok' "$work"/ours/*.log | sed 's#.*/##; s#\.log$##' >"$work/failing.names"
  while read -r script; do
    name=${script#./}
    if grep -qxF "${name//\//_}" "$work/failing.names"; then echo "$script"; fi
  done <"$work/scripts"
}

tests() { # status, folder: names
  cat "$2"/*.log 2>/dev/null | sed -n "s/^ *$1 \(diff-\)\?\([^ ]*\).*/\2/p" | sort -u
}

begin=$(date +%s)
patterns=()
for pattern in "$@"; do patterns+=(-o -path "./$pattern"); done
rm -rf "$work/ours" "$work/control"
(cd "$work/tests" && find . -name 'run*.sh' -path './*/run*.sh' ! -path '*/run*/*' \( "${patterns[@]:1}" \) | LC_ALL=C sort) >"$work/scripts"
jobs=${EVERYWHERE_JOBS:-12} end=$((begin + seconds * 2))
export EVERYWHERE_LIBRARY=$work/lib/libaijtccusparse.so
PETSC_OPTIONS="-dll_prepend $EVERYWHERE_LIBRARY $common" run "$work/ours" $((begin + seconds)) "$jobs" <"$work/scripts"
echo "$(ls "$work/ours" | wc -l) of $(wc -l <"$work/scripts") scripts in $(($(date +%s) - begin)) s, $(failing | wc -l) with failures"
failing >"$work/again"
PETSC_OPTIONS="-dll_prepend $EVERYWHERE_LIBRARY $common" run "$work/ours" "$end" $(((jobs + 1) / 2)) <"$work/again"
failing >"$work/again"
echo "$(wc -l <"$work/again") fail again after $(($(date +%s) - begin)) s"
tests 'not ok' "$work/ours" >"$work/failed"
unset EVERYWHERE_LIBRARY
EVERYWHERE_TYPE=aijcusparse PETSC_OPTIONS=$common run "$work/control" "$end" $(((jobs + 1) / 2)) <"$work/again"
tests 'not ok' "$work/control" >"$work/control.failed"
tests ok "$work/control" >"$work/control.ok"
{
  tests ok "$work/ours" | comm -23 - "$work/failed" | sed 's/$/\tpassed\t/'
  while read -r name; do
    if grep -qxF "$name" "$work/control.failed"; then control=failed; elif grep -qxF "$name" "$work/control.ok"; then control=passed; else control='not run'; fi
    printf '%s\tfailed\t%s\n' "$name" "$control"
  done <"$work/failed"
} >"$out/everywhere.tsv"
(cd "$work" && while read -r name; do printf '%s\n' "ours/$name.log" "control/$name.log"; done <failing.names | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | tar -cJf "$out/everywhere.tar.xz" -T -)
awk -F '\t' '$2 == "failed" && $3 != "failed" { print "with us only (control: " $3 "): " $1 }' "$out/everywhere.tsv"
awk -F '\t' '{ n[$2 " " $3]++ } END { printf "everywhere: %d passed, %d failed with us only, %d failed with aijcusparse, too, %d failed without control, %s s\n", n["passed "], n["failed passed"], n["failed failed"], n["failed not run"], s }' s=$(($(date +%s) - begin)) "$out/everywhere.tsv"
