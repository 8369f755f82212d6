#!/usr/bin/env bash
# Packs what everywhere.sh has built into gpu-kit/, for a machine with a GPU that has an Open MPI runtime, BLAS and LAPACK, the CUDA toolkit's libraries, bash and python3: there
#
#   OUT=<folder for results> gpu-kit/everywhere_gpu.sh SECONDS ['PATTERN' ...]
#
#   PETSC_DIR=... PETSC_ARCH=... tests/petsc/everywhere_kit.sh BUILD_FOLDER
#
# Every program of ksp, snes, ts, tao and mat/tests that is there is taken, its tests, their files and what PETSc expects of them. Paths in the tests become names which everywhere_gpu.sh replaces.
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
build=$(cd "${1:?build folder}" && pwd)
: "${PETSC_DIR:?}" "${PETSC_ARCH:?}"
from=$build/petsc-suite/everywhere kit=$root/gpu-kit
to=$kit/stage
[ -d "$from/tests" ] || die "$from has nothing: run tests/petsc/everywhere.sh first"
rm -rf "$kit"
mkdir -p "$to/lib" "$to/petsc/config" "$to/petsc/lib/petsc/bin" "$to/petsc/share/petsc"

strip -o "$to/lib/$(readelf -d "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so"
for library in libaijtccusparse libaijtccusparse_cuda; do strip -g -o "$to/lib/$library.so" "$build/lib/$library.so"; done
# shellcheck disable=SC2046
mpicc -O1 -s -shared -fPIC "$root/tests/petsc/everywhere.c" -o "$to/lib/everywhere.so" $(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --cflags PETSc) -ldl
cp "$root/tests/petsc/everywhere_diff.sh" "$to"
cp "$PETSC_DIR/config/petsc_harness.sh" "$to/petsc/config"
cp "$PETSC_DIR/lib/petsc/bin/petscdiff" "$to/petsc/lib/petsc/bin"
cp -r "$PETSC_DIR/share/petsc/datafiles" "$to/petsc/share/petsc"
(cd "$PETSC_DIR" && find src/{ksp,snes,ts,tao,mat} -path '*/output/*' -print0 | tar --null -T - -cf -) | tar -xf - -C "$to/petsc"
# tests of programs that could not be built are left out with them
(cd "$from" && find tests/{ksp,snes,ts,tao,mat/tests} \( -name 'run*.sh' -o \( -type f -perm -u+x ! -name '*.sh' ! -name '*.o' ! -path '*/run*/*' \) \) -print0 | tar --null -T - -cf -) | tar -xf - -C "$to"
find "$to/tests" -type f ! -name '*.sh' -exec strip {} + 2>/dev/null
# files that tests copy are named from the folder that they run in
find "$to/tests" -name 'run*.sh' -exec grep -l "^runfiles='..*'" {} + | while read -r script; do
  folder=${script%/*}
  for file in $(sed -n "s/^runfiles='\(.*\)'/\1/p" "$script"); do
    [ -e "$from/${folder#"$to/"}/$file" ] || continue
    mkdir -p "$(dirname "$folder/$file")"
    cp -r "$from/${folder#"$to/"}/$file" "$(dirname "$folder/$file")"
  done
done
find "$to/tests" -name 'run*.sh' -exec sed -i -e "s#$from#@EVERYWHERE@#g" -e "s#$PETSC_DIR#@EVERYWHERE@/petsc#g" {} +
say "compressing"
(cd "$to" && find . ! -type d -printf '%f\t%p\n' | LC_ALL=C sort | cut -f 2 | tar -cf - -T - | xz -T0 --x86 --lzma2=preset=6,dict=128MiB) >"$kit/everywhere.tar.xz"
rm -rf "$to"
cp "$root/tests/petsc/everywhere_gpu.sh" "$kit"
say "gpu-kit/: $(du -cb "$kit"/* | awk 'END { printf "%.1f", $1 / 1048576 }') MB"
