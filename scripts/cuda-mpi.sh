#!/usr/bin/env bash
# Provides a CUDA-aware Open MPI and prints its prefix on standard output (progress goes to standard error).
#
#   scripts/cuda-mpi.sh
#
# Distributions build Open MPI without CUDA, and so are the wheels on PyPI. The source package of the distribution's own release, fetched with apt-get into the
# cache folder, is built once with CUDA and with little else: one machine, shared memory, everything in three libraries. Programs built with the distribution's
# mpicc run on it, wherever the prefix lies, with OPAL_PREFIX, PATH and LD_LIBRARY_PATH set. Root is not needed. A build counts only when it is complete.
# Environment: AIJTCCUSPARSE_CACHE, JOBS.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cuda=$(cuda_home)
[ -n "$cuda" ] || die "nvcc was not found: no CUDA-aware Open MPI without CUDA"
release=$(ompi_info --version 2>/dev/null | sed -n 's/^Open MPI v//p')
[[ $release == 4.* ]] || die "a CUDA-aware Open MPI is built for Open MPI 4, this one is '${release:-none}'"
package=$(dpkg-query -W -f '${source:Version}' openmpi-bin 2>/dev/null || true)

without=(btl-uct btl-usnic btl-openib btl-ofi btl-sm mtl crs-self crcp snapc sstore common-monitoring coll-monitoring pml-monitoring osc-monitoring topo-treematch
  vprotocol common-ompio io fs fbtl fcoll sharedfp coll-adapt coll-han coll-spacc coll-hcoll coll-fca coll-ucc op-avx reachable-netlink compress-bzip compress-gzip
  pcompress-zlib pdl-plibltdl)
options=("--with-cuda=$cuda" --enable-mca-static "--enable-mca-no-build=$(IFS=,; printf '%s' "${without[*]}")" --enable-contrib-no-build=libompitrace
  --with-hwloc=internal --with-libevent=internal --with-pmix=internal --without-verbs --without-ofi --without-ucx --without-psm --without-psm2 --without-portals4
  --without-slurm --without-tm --without-sge --without-lsf --without-alps --disable-mpi-fortran --disable-oshmem --disable-io-romio --disable-io-ompio
  --disable-dependency-tracking --disable-wrapper-rpath --disable-wrapper-runpath)
key=$(printf '%s\n' "$release" "$package" "${options[@]}" "$(gcc --version | head -1)" "$(uname -m)" | sha256sum | cut -c1-10)
dir=$cache/cuda-mpi-$release-$key
log=$cache/cuda-mpi-$release-$key.log

# apt's sources with deb-src in place of deb, and all that apt-get writes, in a folder of its own: the machine's settings stay as they are
fetch_source() { # folder
  local file apt
  command -v apt-get >/dev/null || die "the source of Open MPI comes with apt-get, which this machine does not have"
  mkdir -p "$1"/apt/{parts,lists/partial,cache/archives/partial}
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    if grep -qE '/(debian|ubuntu)([^0-9]|$)' "$file" 2>/dev/null; then sed -E 's/^deb([ \t])/deb-src\1/; s/^Types:.*/Types: deb-src/' "$file" >"$1/apt/parts/$(basename "$file")"; fi
  done
  apt=(apt-get -q -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$1/apt/parts" -o "Dir::State::Lists=$1/apt/lists" -o "Dir::Cache=$1/apt/cache" -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update || true # one source of several may be out of reach
  (cd "$1" && { { [ -n "$package" ] && "${apt[@]}" source --download-only "openmpi=$package"; } || "${apt[@]}" source --download-only openmpi; }) || return
  mkdir "$1/source"
  tar -xf "$1"/openmpi_*.orig.tar.* -C "$1/source" --strip-components=1
}

build() { # folder
  fetch_source "$1" || return
  mkdir "$1/build"
  cd "$1/build"
  ../source/configure --prefix="$dir" "${options[@]}" || return
  make -j "$(jobs_wanted)" || return
  make install DESTDIR="$1/root" || return
  find "$1/root$dir" -name '*.la' -delete
  rm -rf "$1/root$dir/share/man"
  find "$1/root$dir/bin" "$1/root$dir/lib" -type f \( -name '*.so*' -o -perm -u+x \) -exec strip --strip-unneeded {} +
  LD_LIBRARY_PATH=$1/root$dir/lib OPAL_PREFIX=$1/root$dir "$1/root$dir/bin/ompi_info" --parsable --all | grep 'built_with_cuda_support:value:true'
}

if [ ! -f "$dir/.complete" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/lock-cuda-mpi"
  flock 9
  if [ ! -f "$dir/.complete" ]; then
    rm -rf "$cache"/fetch-cuda-mpi.*
    tmp=$(mktemp -d "$cache/fetch-cuda-mpi.XXXXXX")
    say "building Open MPI $release with CUDA, some minutes; $log"
    (build "$tmp") >"$log" 2>&1 || { tail -n 30 "$log" >&2; rm -rf "$tmp"; die "no CUDA-aware Open MPI: $log"; }
    rm -rf "$dir"
    touch "$tmp/root$dir/.complete"
    mv "$tmp/root$dir" "$dir"
    rm -rf "$tmp"
    say "Open MPI $release with CUDA is ready"
  fi
fi
printf '%s\n' "$dir"
