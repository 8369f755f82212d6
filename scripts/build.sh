#!/usr/bin/env bash
# Configures and builds against a PETSc and prints the build folder on standard output (progress goes to standard error).
#
#   PETSC_DIR=... PETSC_ARCH=... scripts/build.sh release|debug [CMake options]
#   scripts/build.sh host|sanitize                                             without PETSc: the core and its tests
#
# sanitize: like host, with sanitizers. One folder below build/ for each kind, PETSc and set of options. Environment: CUDA_ARCH, WITH_CUDA=0, JOBS, AIJTCCUSPARSE_MATRICES.
# Where there is ccache, what a build has compiled before, in this folder or in another clone, comes from the cache beside PETSc; CCACHE_DISABLE=1 compiles everything.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kind=${1:?kind: release, debug, sanitize or host}
shift
options=("$@")
[ "$kind" = host ] || [ "$kind" = sanitize ] || options+=("-DPETSC_DIR=${PETSC_DIR:?}" "-DPETSC_ARCH=${PETSC_ARCH:-}")
[ "${WITH_CUDA:-1}" != 0 ] || options+=(-DAIJTCCUSPARSE_WITH_CUDA=OFF)
[ -z "${CUDA_ARCH:-}" ] || options+=("-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCH//,/;}")
[ -z "${AIJTCCUSPARSE_MATRICES:-}" ] || options+=("-DAIJTCCUSPARSE_MATRICES=$AIJTCCUSPARSE_MATRICES")
build=$root/build/$kind-$(printf '%s\n' "${options[@]}" "${CC:-}" | sha256sum | cut -c1-8)
cd "$root"
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
fi
say "building $kind in build/$(basename "$build")"
mkdir -p build
cmake --preset "$kind" -B "$build" "${options[@]}" >"$build.log" 2>&1 || { cat "$build.log" >&2; die "CMake failed"; }
cmake --build "$build" --parallel "$(jobs_wanted)" >&2
printf '%s\n' "$build"
