# Sourced by the other scripts: where things are, how messages look, what is built for whom.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${AIJTCCUSPARSE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aijtccusparse}
if [[ $cache != /* ]]; then # of the folder that we are in now; scripts that we start may be in another
  cache=$PWD/$cache
  export AIJTCCUSPARSE_CACHE=$cache
fi
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that started us
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

jobs_wanted() { printf '%s\n' "${JOBS:-$(nproc)}"; }

# Open MPI 4 and 5: more ranks than cores, also as root, and no pinning, since several programs run at the same time
mpi_env() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
  export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
  # Open MPI 4: programs that begin and end at the same time make and remove the same folder, and one may fail because another has just made it ("mkdir: File exists"). While there is a folder in it, it stays.
  mkdir -p "${TMPDIR:-/tmp}/ompi.$(uname -n | cut -d. -f1).$(id -u)/kept" || true
}

# does MPI itself say that it takes device pointers? PETSc's configure believes the distribution's Open MPI, wrongly
mpi_gpu_aware() { ompi_info --parsable --all 2>/dev/null | grep -q 'mpi_built_with_cuda_support:value:true'; }

has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
