#!/usr/bin/env bash
# Stages of the kit one after the other on one GPU, within a time: OUT=<folder for results> stages.sh SECONDS STAGE ...
#
# STAGE is one of run.sh, or parts of its benchmark joined by commas: bench:spmm,spmm_t. Whatever SECONDS after the start has not ended is cut off, with what it has, and what comes
# later left out. A whole report is, with the seconds that run.sh took for each on H200s with 16 cores:
#
#   stages.sh 580 bench:spmm,spmm_t,spmm_abt blocks bench:table,rest,add,residual,transpose solves     116 to 151, 39 to 48, 133 to 185, 147 to 183
#   stages.sh 580 tests suite gpuaware                                                                  185 to 191, 64 to 70, 47 to 48; without the multi-process service 340 to 373 and 75 to 81
#   stages.sh 580 sanitize bench:sparse24,by_rows,spmm_precision                                        329 to 373, 171 to 215
#   stages.sh 300 bench:spmm_few                                                                        72 to 85
#
# and twogpus, twoaware on two GPUs (110 to 144 each), hostbench anywhere. Results: $OUT/results.tgz with a folder for each stage, for scripts/gpu-report.py; it is there, with what has ended, from
# the first stage's end on.
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
