#!/usr/bin/env bash
# Stages of the kit one after the other on one GPU, within a time: OUT=<folder for results> stages.sh SECONDS STAGE ...
#
# STAGE is one of run.sh, or parts of its benchmark joined by commas: bench:spmm,spmm_t. Whatever SECONDS after the start has not ended is cut off, with what it has, and what comes
# later left out. A whole report is, with the seconds that run.sh took for each on H200s with 16 cores:
#
#   stages.sh 590 tests suite gpuaware bench:sparse24,by_rows,spmm_precision               181 to 211, 64 to 70, 47 to 49, 171 to 215; without the multi-process service 340 to 373 and 75 to 81
#   stages.sh 590 solves bench:table,rest,add,residual,transpose blocks uses bench:spmm_few 147 to 198 (two runs of each on two processes less), 133 to 185, 74, some 40, 72 to 85
#   stages.sh 590 sanitize bench:spmm,spmm_t,spmm_abt                                      329 to 406, 116 to 151
#
# and sweeps (110, and the split by event after that), factors (140 to 200), twogpus, twoaware on two GPUs (110 to 170 each), hostbench anywhere. With two GPUs two copies of the kit may run side by side, each with one of
# them in CUDA_VISIBLE_DEVICES, by its UUID, and the second with KIT_MPS=0: sanitize takes more than 430 then, beside solvers. Results: $OUT/results.tgz with a folder for each stage, for scripts/gpu-report.py; it is there, with what
# there is, every 15 seconds and at each stage's end. Programs of a stage that is cut off from outside may go on: then nothing is to be timed after it.
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$kit/out}
all=$kit/stages
limit=${1:?SECONDS, then stages} # of kept.sh
shift
rm -rf "$all"
mkdir -p "$out" "$all"
# shellcheck source=kept.sh
. "$kit/kept.sh"
for each in "$@"; do
  case $each in
  bench:*) BENCH_PARTS=$(tr ',' ' ' <<<"${each#bench:}") stages "$(tr ':,' '--' <<<"$each")" "$kit" 20 bench ;;
  *) stages "$each" "$kit" 20 "$each" ;;
  esac
done
tell
