#!/usr/bin/env bash
# Writes operators of one of PETSc's own solvers to files for `tcbench spmv -folder`: the matrices of all levels and the interpolations that GAMG makes for the
# tutorial ex56 (elasticity) with 9 and 19 elements a side, without the plugin; those of less than 1000 nonzeros are left out. PETSc's binary format, compressed, 4 MB.
#
#   scripts/dump-operators.sh FOLDER
#
# Environment: PETSC_DIR and PETSC_ARCH, otherwise the PETSc that `make check` builds.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# = 1 ] || die "usage: scripts/dump-operators.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
petsc=$("$root/scripts/petsc.sh" opt)
read -r PETSC_DIR PETSC_ARCH <<<"$petsc"
source=$PETSC_DIR/src/ksp/ksp/tutorials/ex56.c
[ -f "$source" ] || source=$PETSC_DIR/share/petsc/examples/src/ksp/ksp/tutorials/ex56.c
[ -f "$source" ] || die "PETSC_DIR=$PETSC_DIR has no tutorial ex56"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpi_env

flags=$(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --cflags --libs PETSc)
# shellcheck disable=SC2086
mpicc -O2 "$source" -o "$work/ex56" $flags -lm "-Wl,-rpath,$PETSC_DIR/$PETSC_ARCH/lib"

for ne in 9 19; do
  say "ex56 -ne $ne"
  (cd "$work" && env -u PETSC_OPTIONS ./ex56 -ne "$ne" -ksp_type cg -pc_type gamg -mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi -pc_mg_dump_binary -viewer_binary_filename "$ne.petsc" -viewer_binary_skip_info) >"$work/log" 2>&1 || { cat "$work/log" >&2; die "ex56 failed"; }
  # one file holds them all: the interpolations from the coarsest up, then the matrices likewise
  python3 - "$work/$ne.petsc" "$folder/ex56_$ne" <<'PYTHON'
import gzip
import struct
import sys

data, at, matrices = open(sys.argv[1], 'rb').read(), 0, []
index = 8 if data[:4] == bytes(4) else 4  # bytes of a PetscInt
while at < len(data):
    kind, rows, cols, nnz = struct.unpack_from('>4' + 'iq'[index == 8], data, at)
    if kind != 1211216:
        sys.exit(f'object of class {kind} where a matrix was expected')
    size = index * (4 + rows + nnz) + 8 * nnz
    matrices.append((rows, cols, nnz, data[at:at + size]))
    at += size
levels = (len(matrices) + 1) // 2
for number, (rows, cols, nnz, content) in enumerate(matrices):
    level = levels - 2 - number if number < levels - 1 else 2 * (levels - 1) - number
    if nnz < 1000:
        continue
    path = f'{sys.argv[2]}_' + ('interpolation' if number < levels - 1 else 'level') + f'{level}.petsc.gz'
    with open(path, 'wb') as file, gzip.GzipFile('', 'wb', 9, file, 0) as packed:
        packed.write(content)
    print(f'{path}: {rows} x {cols}, {nnz} nonzeros')
PYTHON
done
du -cm "$folder"/*.petsc.gz | tail -n 1 | sed 's/\ttotal/ MB/'
