#!/usr/bin/env bash
# Most of the kit in one call on a machine with two GPUs, a GPU each at the same time: OUT=<folder for results> pair.sh [SECONDS]
#
#   first GPU    solvers, tcbench for vectors
#   second GPU   tcbench for blocks, then PETSc's own test cases
#   both         twogpus, when these are done
#
# What is missing for a report are the stages tests, sanitize and gpuaware, which need one GPU, and hostbench. Whatever SECONDS (default 580) after the start has not ended
# is cut off. Results: $OUT/results.tgz with the folders first, second, suite and both, for scripts/gpu-report.py; it is there, with what has ended, from the first stage's end on.
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$kit/out}
all=$kit/pair
limit=${1:-580}
rm -rf "$all"
mkdir -p "$out" "$all"/{first,second,suite,both}
for each in 1 2; do # each unpacks for itself
  mkdir -p "$kit/$each"
  cp "$kit/run.sh" "$kit/$each"
  ln -sf "$kit/kit.tar.xz" "$kit/$each/kit.tar.xz"
done

# the stages that run.sh is given, into a folder of that name; those that come to their turn too late are left out
stages() { # name, kit, seconds that it takes at least, stages
  local name=$1 number=$2 least=$3
  shift 3
  [ $((limit - SECONDS)) -gt "$least" ] || { printf '%s: left out after %s s\n' "$name" "$SECONDS"; return; }
  OUT=$all/$name timeout -k 5 $((limit - SECONDS)) "$kit/$number/run.sh" "$@" >"$all/$name.log" 2>&1
  printf '%s: until %s s; %s\n' "$name" "$SECONDS" "$(tail -n 1 "$all/$name.log")"
  keep
}

# what there is so far, should the machine go before the end; tar's status is 1 where the other GPU's stage writes at the same time
keep() (
  flock 9
  { tar -czf "$kit/pair.tgz" -C "$all" . || [ $? = 1 ]; } && mv "$kit/pair.tgz" "$out/results.tgz"
) 9>"$kit/pair.lock"

(
  export CUDA_VISIBLE_DEVICES=0
  KIT_SOLVER_NP=1 BENCH_PARTS="table rest add residual transpose" stages first 1 60 solvers bench
) &
(
  export CUDA_VISIBLE_DEVICES=1
  BENCH_PARTS="spmm by_rows spmm_t spmm_abt sparse24 spmm_precision" stages second 2 60 bench
  stages suite 2 90 suite
) &
wait
stages both 2 60 twogpus
grep -hP '\tfailed\t' "$all"/*/results.tsv | head -n 40
grep -h ' times as fast as ' "$all"/*.log
! grep -qhP '\tfailed\t' "$all"/*/results.tsv
