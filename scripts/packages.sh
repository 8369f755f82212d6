#!/usr/bin/env bash
# Installs the distribution's packages that are missing (Debian, Ubuntu). Without root, or with PETSC_DIR set, it names them and stops.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# package, and how to see that what it brings is there already, from this package or from elsewhere
needs=(
  "gcc|command -v gcc" "g++|command -v g++" "make|command -v make" "cmake|command -v cmake" "pkg-config|command -v pkg-config" "diffutils|command -v diff"
  "python3|command -v python3" "libopenmpi-dev|command -v mpicc" "openmpi-bin|command -v mpiexec" "libcmocka-dev|pkg-config --exists cmocka" "zlib1g-dev|pkg-config --exists zlib"
)
if [ -z "${PETSC_DIR:-}" ]; then # to fetch and build PETSc
  needs+=("python3-pip|any_python -m pip --version" "python3-setuptools|any_python -c 'import setuptools'" "python3-wheel|any_python -c 'import wheel'" "ca-certificates|[ -f /etc/ssl/certs/ca-certificates.crt ]"
    "libblas-dev|pkg-config --exists blas" "liblapack-dev|pkg-config --exists lapack")
fi

any_python() { python3 "$@" || /usr/bin/python3 "$@"; }

find_missing() {
  missing=()
  for need in "${needs[@]}"; do
    eval "${need#*|}" >/dev/null 2>&1 || missing+=("${need%%|*}")
  done
}

find_missing
if [ ${#missing[@]} != 0 ]; then
  [ -z "${PETSC_DIR:-}" ] || die "PETSC_DIR is set, so nothing is installed; missing: ${missing[*]}"
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (names of Debian's packages; this machine has no apt-get)"
  sudo=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || die "missing packages: ${missing[*]}
       install them as root, 'apt-get install ${missing[*]}', and start again; nothing was changed"
    sudo=(sudo -n)
  fi
  say "installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
  find_missing
  [ ${#missing[@]} = 0 ] || die "still missing after the installation: ${missing[*]}"
fi
# saves time only, see build.sh: nobody has to have it, and who wants it installs it
if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && ! command -v ccache >/dev/null && command -v apt-get >/dev/null; then
  say "installing ccache"
  timeout 100 sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ccache' >&2 || say "without ccache"
fi
version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
printf '3.24\n%s\n' "$version" | sort -VC || die "cmake $version is too old, 3.24 or newer is needed"
