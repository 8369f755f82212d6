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
mkdir -p "$out" "$all"
for each in 1 2; do # each unpacks for itself
  mkdir -p "$kit/$each"
  cp "$kit/run.sh" "$kit/$each"
  ln -sf "$kit/kit.tar.xz" "$kit/$each/kit.tar.xz"
done

# shellcheck source=kept.sh
. "$kit/kept.sh"

(
  export CUDA_VISIBLE_DEVICES=0
  KIT_SOLVER_NP=1 BENCH_PARTS="table rest add residual transpose" stages first "$kit/1" 60 solvers bench
) &
(
  export CUDA_VISIBLE_DEVICES=1
  BENCH_PARTS="spmm spmm_few by_rows spmm_t spmm_abt sparse24 spmm_precision" stages second "$kit/2" 60 bench
  stages suite "$kit/2" 90 suite
) &
wait
stages both "$kit/2" 60 twogpus
tell
