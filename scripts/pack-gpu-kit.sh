#!/usr/bin/env bash
# Packs everything that a machine with a GPU needs to test and time this tree into gpu-kit/: run.sh and kit.tar.xz, less than 50 MB. Nothing else has to be
# there but an Open MPI runtime, BLAS and LAPACK, the CUDA toolkit's libraries, bash and python3. On that machine:
#
#   OUT=<folder for results> gpu-kit/run.sh all
#
# Environment: as for `make check`; KIT_DEBUG=0 leaves the debug PETSc out, KIT_INT64=0 that with 64-bit indices, KIT_SUITE=0 PETSc's own test cases, KIT_GPUAWARE=0 the CUDA-aware MPI.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kit=$root/gpu-kit
stage=$kit/stage
cd "$root"
[ -n "$(cuda_home)" ] || die "nvcc was not found: a kit without CUDA has nothing to show"
unknown=$(git ls-files --others --exclude-standard -- include src kernels | head -n 1)
[ -z "$unknown" ] || die "$unknown is not known to git, so the digest would leave it out: git add it first"
rm -rf "$stage" "$kit/kit.tar.xz"
mkdir -p "$stage/matrices" "$stage/report"

# the unit tests that need a device, by their label
device_tests() { # build folder
  ctest --test-dir "$1" --show-only --label-regex '^device$' | sed -n 's/^ *Test *#[0-9]*: //p'
}

# one flavour: libraries, programs of the project, PETSc's own test cases; of int64 the tests of PETSc's level alone
pack_flavour() { # opt|debug|int64, release|debug, PETSC_DIR and PETSC_ARCH
  local kind=$2 build to=$stage/$1 library program source flags more
  read -r PETSC_DIR PETSC_ARCH <<<"$3"
  export PETSC_DIR PETSC_ARCH
  grep -q 'define PETSC_HAVE_CUDA 1' "$PETSC_DIR/$PETSC_ARCH/include/petscconf.h" || die "PETSC_ARCH=$PETSC_ARCH has no CUDA"
  build=$("$root/scripts/build.sh" "$kind")
  mkdir -p "$to/lib" "$to/bin"
  strip -o "$to/lib/$(readelf -d "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so"
  for library in libaijtccusparse libaijtccusparse_cuda launch_log; do strip -g -o "$to/lib/$library.so" "$build/lib/$library.so"; done
  more=
  [ "$1" = int64 ] || more="tcbench usebench ex2 ex3 ex4 $(device_tests "$build")"
  for program in $more $(cd "$build/bin" && ls -d mat_*); do strip -o "$to/bin/$program" "$build/bin/$program"; done
  [ "$1" != int64 ] || return 0
  flags=$(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --cflags --libs PETSc)
  for source in ksp/ksp/tutorials/ex45.c ksp/ksp/tutorials/ex56.c snes/tutorials/ex19.c; do
    program=$(basename "$source" .c)
    # shellcheck disable=SC2086
    mpicc -O2 -s "$PETSC_DIR/src/$source" -o "$to/bin/$program" $flags -lm
  done
  [ "${KIT_SUITE:-1}" = 0 ] || pack_suite "$build" "$to"
}

# The harness's scripts and programs, made by running it here with programs that do nothing; the paths in the scripts become names that run.sh replaces
pack_suite() { # build folder, target
  local from=$1/petsc-suite/cuda to=$2/suite
  rm -rf "$from"
  PETSCMPIEXEC=false "$root/tests/petsc/run.sh" cuda "$1" >/dev/null 2>&1 || true
  [ -d "$from/tests" ] || die "PETSc's test cases were not generated, see $from/harness.log"
  mkdir -p "$to/petsc/config" "$to/petsc/lib/petsc/bin"
  cp "$PETSC_DIR/config/petsc_harness.sh" "$to/petsc/config"
  cp "$PETSC_DIR/lib/petsc/bin/petscdiff" "$to/petsc/lib/petsc/bin"
  mkdir -p "$to/petsc/share/petsc/datafiles"
  cp -r "$PETSC_DIR/share/petsc/datafiles/matrices" "$to/petsc/share/petsc/datafiles"
  cp -r "$from/src" "$from/absent.txt" "$to"
  find "$to/src" -name '*.c' -delete
  (cd "$from" && find tests \( -name 'run*.sh' -o \( -type f -perm -u+x ! -name '*.sh' ! -name '*.o' \) \) -print0 | tar --null -T - -cf -) | tar -xf - -C "$to"
  find "$to/tests" -name 'run*.sh' -exec sed -i -e "s#$from#@SUITE@#g" -e "s#$PETSC_DIR#@SUITE@/petsc#g" {} +
  find "$to/tests" -type f ! -name '*.sh' -exec strip {} +
  cp "$root/tests/petsc/suite.py" "$root/tests/petsc/cases.txt" "$to"
}

# The CUDA-aware Open MPI without what compiles programs: three libraries, mpiexec, the texts of its messages; and the program that checks it
pack_cuda_mpi() {
  local from to=$stage/cuda-mpi cuda library
  from=$("$root/scripts/cuda-mpi.sh")
  cuda=$(cuda_home)
  mkdir -p "$to/bin" "$to/lib" "$to/share/openmpi"
  for library in mpi open-rte open-pal; do cp -L "$from/lib/lib$library.so.40" "$to/lib"; done
  cp -L "$from"/bin/{mpiexec,orted,ompi_info} "$to/bin"
  cp -r "$from/etc" "$to"
  cp "$from"/share/openmpi/help-*.txt "$to/share/openmpi"
  cp -r "$from/share/pmix" "$to/share"
  mpicc -O2 -s "$root/scripts/gpu-kit/gpuaware.c" -o "$to/bin/gpuaware" -I"$cuda/include" -L"$cuda/lib64" -lcudart
}

# The operators that tcbench reads beside the Matrix Market files; kept in the cache folder for every PETSc
operators() { # PETSC_DIR and PETSC_ARCH; prints the folder
  local key folder
  read -r PETSC_DIR PETSC_ARCH <<<"$1"
  key=$( (printf '%s\n' "$1" && stat -L -c %Y "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so" && cat "$root/scripts/dump-operators.sh") | sha256sum | cut -c1-10)
  folder=$cache/operators-$key
  if [ ! -d "$folder" ]; then
    rm -rf "$folder.part"
    PETSC_DIR=$PETSC_DIR PETSC_ARCH=$PETSC_ARCH "$root/scripts/dump-operators.sh" "$folder.part" >&2 || die "no operators, see scripts/dump-operators.sh"
    mv "$folder.part" "$folder"
  fi
  printf '%s\n' "$folder"
}

opt=$("$root/scripts/petsc.sh" opt)
debug=$opt int64=$opt
[ "${KIT_DEBUG:-1}" = 0 ] || debug=$("$root/scripts/petsc.sh" debug)
[ "${KIT_INT64:-1}" = 0 ] || int64=$("$root/scripts/petsc.sh" int64)
pack_flavour opt release "$opt"
[ "$debug" = "$opt" ] || pack_flavour debug debug "$debug"
[ "$int64" = "$opt" ] || pack_flavour int64 release "$int64"
[ "${KIT_GPUAWARE:-1}" = 0 ] || pack_cuda_mpi
matrices=${AIJTCCUSPARSE_MATRICES:-$root/../shared/matrices}
if [ -d "$matrices" ]; then cp "$matrices"/*.mtx* "$stage/matrices"; else say "no folder of matrices ($matrices): the kit goes without"; fi
operators=$(operators "$opt")
cp "$operators"/*.petsc.gz "$stage/matrices"
gunzip "$stage"/matrices/*.gz
cp "$root/scripts/gpu-kit/solvers.sh" "$root/scripts/gpu-kit/bench.sh" "$root/scripts/gpu-kit/limited.py" "$root/scripts/gpu-kit/by_rows.py" "$root/bench/cusparselt.py" "$stage"
mpicc -O2 -s -shared -fPIC "$root/scripts/gpu-kit/stack.c" -o "$stage/libstack.so"
"$root/scripts/report-digest.sh" >"$stage/report/digest"
printf '%s\n' "$petsc_release" >"$stage/report/petsc"

# files of a name beside each other: much of the second flavour's libraries is a repetition of the first's
say "compressing"
(cd "$stage" && find . ! -type d -printf '%f\t%p\n' | LC_ALL=C sort | cut -f 2 | tar -cf - -T - | xz -T0 --x86 --lzma2=preset=6,dict=128MiB) >"$kit/kit.tar.xz"
rm -rf "$stage"
cp "$root"/scripts/gpu-kit/{run,pair,stages,kept}.sh "$kit"
size=$(du -cb "$kit/kit.tar.xz" "$kit/run.sh" | awk 'END { printf "%.1f", $1 / 1048576 }')
[ "${size%.*}" -lt 50 ] || die "the kit has $size MB, more than 50"
say "gpu-kit/: $size MB"
