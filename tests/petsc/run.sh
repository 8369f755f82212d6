#!/usr/bin/env bash
# Runs PETSc's own test cases (cases.txt) for aijtccusparse with PETSc's own harness: expected outputs, leak check, no option left over.
#
#   PETSC_DIR=... PETSC_ARCH=... tests/petsc/run.sh MODE BUILD_FOLDER [PATTERN]
#
#   MODE          host         aijtccusparse on its host backend; what the cases ask of a device is dropped
#                 cuda         aijtccusparse on a GPU
#                 parent-host  aij, edited like host: the cases themselves have to pass
#                 parent       aijcusparse, unedited, on a GPU
#   BUILD_FOLDER  has lib/libaijtccusparse.so; the copied sources and results go to BUILD_FOLDER/petsc-suite/MODE
#   PATTERN       names of cases, 'mat_tests-ex5_*' (default all)
#
# Environment: PETSC_TEST_TIMEOUT (120), seconds per program; JOBS. Last line: petsc suite: N passed, N failed, N skipped. Status 1 on any failure.
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
mode=${1:?mode: host, cuda, parent-host or parent}
build=$(cd "${2:?build folder}" && pwd)
only=${3:-*}
: "${PETSC_DIR:?}"
export PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}
folder=$build/petsc-suite/$mode
suite=$root/tests/petsc/suite.py
[ -d "$PETSC_DIR/src/mat/tests" ] || { echo "petsc suite: PETSC_DIR=$PETSC_DIR has no test sources (an installed PETSc): nothing run"; echo "petsc suite: 0 passed, 0 failed, 1 skipped"; exit 0; }

options=()
case $mode in
  host | cuda)
    [ -f "$build/lib/libaijtccusparse.so" ] || die "$build/lib/libaijtccusparse.so is missing"
    options+=(-dll_prepend "$build/lib/libaijtccusparse.so")
    ;;
  parent | parent-host) ;;
  *) die "mode '$mode': host, cuda, parent-host or parent" ;;
esac
case $mode in
  host | parent-host) export CUDA_VISIBLE_DEVICES= ;;
  *) mpi_gpu_aware || options+=(-use_gpu_aware_mpi 0) ;;
esac
arguments=(--mode "$mode" --to "$folder" --only "$only")
mpi_gpu_aware && arguments+=(--gpu-aware)

mpi_env
python3 "$suite" stage --petsc-dir "$PETSC_DIR" "${arguments[@]}"
status=0
cd "$folder"
PETSC_OPTIONS="${options[*]}" make -j "$(jobs_wanted)" -k -f gmakefile.test PETSC_DIR="$PETSC_DIR" PETSC_ARCH="$PETSC_ARCH" TESTDIR="$folder/tests" \
  TIMEOUT="${PETSC_TEST_TIMEOUT:-120}" gmakesearch=% test >"$folder/harness.log" 2>&1 || status=$?
# details of what failed, then one line per test
sed -n '/^not ok/,/^ok/{/^ok/!p}' "$folder/harness.log" | head -n 200
[ "$status" = 0 ] || { echo "make returned $status, the end of $folder/harness.log:"; tail -n 20 "$folder/harness.log"; }
python3 "$suite" report --testdir "$folder/tests" "${arguments[@]}"
