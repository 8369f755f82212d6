#!/usr/bin/env bash
# Provides a PETSc build and prints two words, PETSC_DIR and PETSC_ARCH, on standard output (progress goes to standard error).
#
#   scripts/petsc.sh opt|debug|single|int64
#
# opt and debug have PetscScalar = double and PetscInt = int, single is opt with PetscScalar = float, int64 opt with 64-bit indices.
# PETSC_DIR set: that PETSc is used as it is. Otherwise the source package of PETSC_RELEASE (default 3.26.1) is fetched with pip, unpacked with its
# test tree, configured and built in the cache folder, once per release and set of options. A build counts only when its last step, a stamp, is done.
# Environment: PETSC_DIR, PETSC_ARCH, PETSC_RELEASE, AIJTCCUSPARSE_CACHE, CUDA_ARCH (80,90), WITH_CUDA=0, PETSC_CONFIGURE_EXTRA.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kind=${1:-opt}
case $kind in opt | debug | single | int64) ;; *) die "scripts/petsc.sh: build kind '$kind', expected opt, debug, single or int64" ;; esac

if [ -n "${PETSC_DIR:-}" ]; then
  [ -f "$PETSC_DIR/include/petsc.h" ] || die "PETSC_DIR=$PETSC_DIR holds no include/petsc.h"
  printf '%s %s\n' "$PETSC_DIR" "${PETSC_ARCH:-}"
  exit 0
fi

cuda=$(cuda_home)
options=(--with-cc=mpicc --with-cxx=mpicxx --with-fc=0 --with-x=0 --with-hwloc=0 --with-shared-libraries=1)
if [ "$kind" = debug ]; then
  options+=(--with-debugging=1 "COPTFLAGS=-g1 -O1" "CXXOPTFLAGS=-g1 -O1")
else
  options+=(--with-debugging=0 COPTFLAGS=-O3 CXXOPTFLAGS=-O3)
fi
[ "$kind" != single ] || options+=(--with-precision=single)
[ "$kind" != int64 ] || options+=(--with-64-bit-indices=1)
if [ -n "$cuda" ]; then
  options+=(--with-cuda=1 "--with-cuda-dir=$cuda" "--with-cuda-arch=$(cuda_arch)")
else
  options+=(--with-cuda=0)
fi
read -r -a extra <<<"${PETSC_CONFIGURE_EXTRA:-}"
options+=("${extra[@]}")
key=$(printf '%s\n' "$petsc_release" "${options[@]}" "$(mpicc --version | head -1)" "$(uname -m)" | sha256sum | cut -c1-10)
dir=$cache/petsc-$petsc_release
arch=arch-$kind-$key
stamp=$dir/$arch/.complete

# pip looks into the package for its name and version. With the setuptools at hand, of this python or the distribution's, that needs no other package
download() {
  local options=(--quiet --no-deps --no-binary :all: -d "$1" "petsc==$petsc_release")
  python3 -m pip download --no-build-isolation "${options[@]}" || /usr/bin/python3 -m pip download --no-build-isolation "${options[@]}" || python3 -m pip download "${options[@]}"
}

fetch_source() {
  [ ! -f "$dir/.unpacked" ] || return 0
  say "fetching the source package of PETSc $petsc_release"
  local tmp
  rm -rf "$cache"/fetch.*
  tmp=$(mktemp -d "$cache/fetch.XXXXXX")
  download "$tmp" 2>"$tmp/log" || { cat "$tmp/log" >&2; rm -rf "$tmp"; die "pip could not download petsc==$petsc_release"; }
  mkdir "$tmp/tree"
  tar -xf "$tmp"/petsc-*.tar.gz -C "$tmp/tree" --strip-components=1
  touch "$tmp/tree/.unpacked"
  rm -rf "$dir"
  mv "$tmp/tree" "$dir"
  rm -rf "$tmp"
}

# keeps the whole output in a log and shows a sign of life
progress() { awk -v log_file="$1" -v every="$2" '{ print > log_file; fflush(log_file) } NR % every == 0 { printf "   %s: %d lines\n", log_file, NR > "/dev/stderr" }'; }

build() {
  cd "$dir"
  rm -rf "${dir:?}/$arch"
  say "configuring PETSc $petsc_release ($arch): ${options[*]}"
  env -u PETSC_DIR -u PETSC_ARCH -u MAKEFLAGS -u MAKELEVEL ./configure PETSC_ARCH="$arch" "${options[@]}" 2>&1 | progress "$cache/$arch.configure.log" 100 || { tail -30 "$cache/$arch.configure.log" >&2; die "configure failed: $cache/$arch.configure.log"; }
  say "building PETSc $petsc_release ($arch), some minutes"
  # MAKE_LOAD: its own limit is the number of cores, at which a machine with anything else to do compiles one file at a time
  make PETSC_DIR="$dir" PETSC_ARCH="$arch" MAKE_NP="$(jobs_wanted)" MAKE_LOAD=1000 all 2>&1 | progress "$cache/$arch.make.log" 200 || { tail -30 "$cache/$arch.make.log" >&2; die "the build failed: $cache/$arch.make.log"; }
  touch "$stamp"
  say "PETSc $petsc_release ($arch) is ready"
}

if [ ! -f "$stamp" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  fetch_source
  [ -f "$stamp" ] || build
fi
printf '%s %s\n' "$dir" "$arch"
