# Sourced by the other scripts: where things are, how messages look, how packages are installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${AIJTCCUSPARSE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aijtccusparse}
petsc_release=${PETSC_RELEASE:-3.26.1}

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# nvcc's folder's parent, or nothing where there is no CUDA toolkit; WITH_CUDA=0 pretends there is none
cuda_home() {
  local nvcc
  [ "${WITH_CUDA:-1}" != 0 ] || return 0
  nvcc=$(command -v "${CUDACXX:-nvcc}" || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || true)
  [ -z "$nvcc" ] || dirname "$(dirname "$(readlink -f "$nvcc")")"
}

# the GPU architectures to compile for: CUDA_ARCH, else the GPU of this machine, else 90
cuda_arch() {
  local cap=
  if [ -n "${CUDA_ARCH:-}" ]; then
    printf '%s\n' "$CUDA_ARCH"
  else
    cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ' || true)
    printf '%s\n' "${cap:-90}"
  fi
}
