#!/usr/bin/env bash
# All tests: `make check`, .ci/run. Builds against an optimised and a debug PETSc, one in single precision and one with 64-bit indices, runs the unit tests (also with
# sanitizers), the PETSc-level tests and PETSc's own test cases.
# Last line: N passed, N failed, N skipped. Status 1 on any failure.
#
# Environment: PETSC_DIR and PETSC_ARCH (then that PETSc is the only one), PETSC_RELEASE, CUDA_ARCH, WITH_CUDA=0, JOBS, AIJTCCUSPARSE_MATRICES.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
passed=0 failed=0 skipped=0 times=()
cd "$root"
mpi_env

finish() {
  printf '%s\n' "${times[@]}"
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" = 0 ]
}
# a step that has to work for anything after it did not: a failure
fatal() {
  printf 'error: %s\n' "$*"
  failed=$((failed + 1))
  finish || exit 1
}
count() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); }
clock() { # name, seconds at the start
  times+=("$(printf 'time: %4d s  %s' $((SECONDS - $2)) "$1")")
  printf '%s\n' "${times[-1]}"
}

run_ctest() { # name, build folder, further arguments of ctest
  local name=$1 build=$2 begin=$SECONDS report=$2/ctest.xml status=0 total bad not_run
  shift 2
  say "$name"
  rm -f "$report"
  ctest --test-dir "$build" --parallel "$(jobs_wanted)" --output-on-failure --no-tests=error --output-junit "$report" "$@" </dev/null 2>&1 | sed -u 's/^/  /' || status=$?
  if [ -f "$report" ]; then
    read -r total bad not_run < <(python3 -c '
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
print(suite.get("tests"), suite.get("failures"), int(suite.get("skipped", 0)) + int(suite.get("disabled", 0)))' "$report")
    count $((total - bad - not_run)) "$bad" "$not_run"
    [ "$status" = 0 ] || [ "$bad" != 0 ] || { echo "error: ctest could not run all tests"; count 0 1 0; } # those without a program, say, which it reports as skipped
  else
    echo "error: ctest wrote no report"
    count 0 1 0
  fi
  clock "$name" "$begin"
}

check_variant() { # words, another PETSc, which of the tests of PETSc's level
  local what=$1 begin=$SECONDS variant
  read -r PETSC_DIR PETSC_ARCH <<<"$2"
  shift 2
  [ "$PETSC_DIR $PETSC_ARCH" != "$opt" ] || return 0
  variant=$("$root/scripts/build.sh" release "${options[@]}") || fatal "the build $what failed"
  clock "build $what" "$begin"
  run_ctest "PETSc-level tests $what" "$variant" --label-regex petsc "$@"
}

run_petsc_suite() { # name, build folder
  local name=$1 build=$2 begin=$SECONDS log=$2/petsc-suite.log bad=0 numbers
  say "$name"
  "$root/tests/petsc/run.sh" host "$build" </dev/null 2>&1 | tee "$log" || bad=1
  numbers=$(sed -n 's/^petsc suite: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$log" | tail -n 1)
  [ -n "$numbers" ] || { echo "error: PETSc's test cases did not come to an end"; numbers="0 1 0"; }
  # shellcheck disable=SC2086
  count $numbers
  [ "$bad" = 0 ] || [ "$failed" != 0 ] || count 0 1 0
  clock "$name" "$begin"
}

gpu_report() {
  local stored
  if [ ! -f docs/gpu-report.json ]; then
    echo "note: there is no GPU report (docs/gpu-report.json)"
  elif ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "note: not a git checkout, the age of the GPU report is unknown"
  else
    stored=$(python3 -c 'import json; print(json.load(open("docs/gpu-report.json")).get("digest", ""))')
    if [ "$stored" = "$(scripts/report-digest.sh)" ]; then
      echo "The GPU report belongs to these sources."
    else
      echo "warning: the GPU report is stale: include/, src/ or kernels/ changed since it was made"
    fi
  fi
}

begin=$SECONDS
"$root/scripts/packages.sh" || fatal "packages are missing"
opt=$("$root/scripts/petsc.sh" opt) || fatal "no optimised PETSc"
debug=$("$root/scripts/petsc.sh" debug) || fatal "no debug PETSc"
single=$("$root/scripts/petsc.sh" single) || fatal "no PETSc in single precision"
int64=$("$root/scripts/petsc.sh" int64) || fatal "no PETSc with 64-bit indices"
clock "PETSc" "$begin"

begin=$SECONDS
read -r PETSC_DIR PETSC_ARCH <<<"$opt"
export PETSC_DIR PETSC_ARCH
build=$("$root/scripts/build.sh" release) || fatal "the release build failed"
clock "release build" "$begin"
run_ctest "all tests, optimised PETSc" "$build"

begin=$SECONDS
sanitized=$("$root/scripts/build.sh" sanitize) || fatal "the build with sanitizers failed"
clock "build with sanitizers" "$begin"
# GCC 13.2 misaligns AVX-512 variables on the stack that this checks (GCC bug 110027)
ASAN_OPTIONS=detect_stack_use_after_return=0 run_ctest "unit tests with sanitizers" "$sanitized" --label-regex unit

options=()
has_gpu || options+=(-DAIJTCCUSPARSE_WITH_CUDA=OFF)

check_variant "in single precision" "$single" --exclude-regex "mat_precision_np[34]"
check_variant "with 64-bit indices" "$int64" --tests-regex '^mat_.*_np[12]$' --exclude-regex "mat_precision|mat_solve|hybrid"

if [ "$debug" != "$opt" ]; then
  begin=$SECONDS
  read -r PETSC_DIR PETSC_ARCH <<<"$debug"
  build=$("$root/scripts/build.sh" debug "${options[@]}") || fatal "the debug build failed"
  clock "debug build" "$begin"
  run_ctest "PETSc-level tests, debug PETSc" "$build" --label-regex petsc
fi
run_petsc_suite "PETSc's own test cases on the host backend" "$build"

gpu_report
finish
