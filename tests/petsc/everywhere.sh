#!/usr/bin/env bash
# Runs PETSc's own tests, all or those of a pattern, with every AIJ matrix of theirs made one of ours (everywhere.c), on the host, and what fails once more without us.
# For days with time: all of mat, ksp, snes, ts and tao are some thousand programs, an hour or two on two cores. Not part of `make check`, which runs cases.txt.
#
#   PETSC_DIR=... PETSC_ARCH=... tests/petsc/everywhere.sh BUILD_FOLDER ['PATTERN' ...]
#
#   BUILD_FOLDER  has lib/libaijtccusparse.so for that PETSc, best a debug one; results go to BUILD_FOLDER/petsc-suite/everywhere
#   PATTERN       as for gmakesearch of PETSc's gmakefile.test, 'ksp_ksp_tutorials-ex2_%' (default: mat_tests%, ksp_%, snes_%, ts_%, tao_%)
#
# Environment: PETSC_TEST_TIMEOUT (60), seconds per program; JOBS. Tests that need a device fail both times. Last line: everywhere: N passed, N failed with us only, N failed
# without us, too. Status 1 if any failed with us only.
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
build=$(cd "${1:?build folder}" && pwd)
shift
[ $# -gt 0 ] || set -- 'mat_tests%' 'ksp_%' 'snes_%' 'ts_%' 'tao_%'
: "${PETSC_DIR:?}"
export PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}
folder=$build/petsc-suite/everywhere
mkdir -p "$folder"
export EVERYWHERE_LIBRARY=$build/lib/libaijtccusparse.so EVERYWHERE_PETSCDIFF=$PETSC_DIR/lib/petsc/bin/petscdiff
[ -f "$EVERYWHERE_LIBRARY" ] || die "$EVERYWHERE_LIBRARY is missing"
# shellcheck disable=SC2046
mpicc -O1 -shared -fPIC "$root/tests/petsc/everywhere.c" -o "$folder/everywhere.so" $(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --cflags PETSc) -ldl
# the launcher gets the library, compilers do not
printf '#!/usr/bin/env bash\nexec env LD_PRELOAD=%q mpiexec "$@"\n' "$folder/everywhere.so" >"$folder/mpiexec"
chmod +x "$folder/mpiexec"
export CUDA_VISIBLE_DEVICES=
mpi_env

harness() { # log, target and variables for make
  local log=$1
  shift
  (cd "$PETSC_DIR" && make -j "$(jobs_wanted)" -k -f gmakefile.test PETSC_DIR="$PETSC_DIR" PETSC_ARCH="$PETSC_ARCH" TESTDIR="$folder/tests" TIMEOUT="${PETSC_TEST_TIMEOUT:-60}" "$@" test) >"$log" 2>&1 || true
}

tests() { # status, log: names without what a loop has added
  sed -n "s/^ *$1 \(diff-\)\?\([^ +]*\).*/\2/p" "$2" | sort -u
}

passed=0 ours=0 both=0
for pattern in "$@"; do
  log=$folder/$(tr -cd 'a-zA-Z0-9_-' <<<"$pattern")
  PETSC_OPTIONS="-dll_prepend $EVERYWHERE_LIBRARY -options_left no" PETSCMPIEXEC=$folder/mpiexec PETSCDIFF=$root/tests/petsc/everywhere_diff.sh harness "$log.log" gmakesearch="$pattern"
  tests 'not ok' "$log.log" >"$log.failed"
  : >"$log.plain.failed"
  if [ -s "$log.failed" ]; then
    PETSC_OPTIONS='-options_left no' harness "$log.plain.log" gmakesearch="$(tr '\n' ' ' <"$log.failed")"
    tests 'not ok' "$log.plain.log" >"$log.plain.failed"
  fi
  comm -23 "$log.failed" "$log.plain.failed" | sed 's/^/fails with us only: /'
  passed=$((passed + $(tests ok "$log.log" | comm -23 - "$log.failed" | wc -l)))
  ours=$((ours + $(comm -23 "$log.failed" "$log.plain.failed" | wc -l)))
  both=$((both + $(comm -12 "$log.failed" "$log.plain.failed" | wc -l)))
done
echo "everywhere: $passed passed, $ours failed with us only, $both failed without us, too"
[ "$ours" = 0 ]
