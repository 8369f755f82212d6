#!/usr/bin/env bash
# `make demo`: PETSc's unmodified tutorials ex45 (Poisson) and ex56 (elasticity) loaded with the plugin on 1 and 2 processes, then tutorials/ex1 on files.
# Prints for every run the backend, iterations, true residual and time of aijtccusparse beside the types it competes with. Fails where the iterations
# differ from those of the parent type, aijcusparse on a GPU and aij elsewhere. Environment: as for `make check`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
"$root/scripts/packages.sh"
petsc=$("$root/scripts/petsc.sh" opt)
read -r PETSC_DIR PETSC_ARCH <<<"$petsc"
export PETSC_DIR PETSC_ARCH
build=$("$root/scripts/build.sh" release)
plugin=$build/lib/libaijtccusparse.so
work=$build/demo
mkdir -p "$work"
cd "$work"
mpi_env
types=(aij aijtccusparse) parent=aij gpu_options=()
if has_gpu && grep -q 'define PETSC_HAVE_CUDA 1' "$PETSC_DIR/$PETSC_ARCH/include/petscconf.h"; then
  types=(aij aijcusparse aijtccusparse) parent=aijcusparse
  mpi_gpu_aware || gpu_options=(-use_gpu_aware_mpi 0)
fi
status=0

compile() { # name: a tutorial of PETSc, as it is
  local source=$PETSC_DIR/src/ksp/ksp/tutorials/$1.c
  [ -f "$source" ] || source=$PETSC_DIR/share/petsc/examples/src/ksp/ksp/tutorials/$1.c
  [ -f "$source" ] || { say "PETSC_DIR=$PETSC_DIR has no tutorial $1, left out"; return 1; }
  [ "$1" -nt "$source" ] && [ "$1" -nt "$PETSC_DIR/$PETSC_ARCH/lib/libpetsc.so" ] && return 0
  local flags
  flags=$(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --cflags --libs PETSc)
  # shellcheck disable=SC2086
  mpicc -O2 "$source" -o "$1" $flags -lm "-Wl,-rpath,$PETSC_DIR/$PETSC_ARCH/lib"
}

# one run of a PETSc tutorial: prints backend, iterations, residual, time and counters
run() { # processes, program, type option, type, options
  local np=$1 program=$2 option=$3 type=$4 log=$2-$4-np$1.log
  shift 4
  local options=("$option" "$type" -ksp_converged_reason -ksp_view -ksp_view_final_residual -log_view "${gpu_options[@]}" "$@")
  [ "$type" != aijtccusparse ] || options=(-dll_prepend "$plugin" "${options[@]}")
  [ "$option" != -dm_mat_type ] || [ ${#gpu_options[@]} = 0 ] || [ "$type" = aij ] || options+=(-dm_vec_type cuda)
  if ! mpiexec -n "$np" "./$program" "${options[@]}" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    die "$program with $type on $np processes failed"
  fi
  awk -v device="$([ "$type" = aijcusparse ] && echo cuda || echo host)" '
    /solve converged due to|solve did not converge/ { iterations = $NF; if (/did not converge/) iterations = "none" }
    /KSP final norm of residual/ { residual = $NF }
    /^ *aijtccusparse: backend/ { device = $3; sub(",", "", device); gsub(",", ""); counters = $5 "/" $7 "/" $9 }
    /^KSPSolve / { seconds += $4 }
    END { printf "%s %s %s %.3f %s\n", device, iterations, residual, seconds, counters == "" ? "-" : counters }' "$log"
}

row() { printf '%-22s %2s  %-14s %-7s %10s  %-12s %9s  %s\n' "$@"; }

compare() { # title, program, type option, options
  local title=$1 program=$2 option=$3 np type result expected
  shift 3
  for np in 1 2; do
    expected=
    for type in "${types[@]}"; do
      result=$(run "$np" "$program" "$option" "$type" "$@")
      # shellcheck disable=SC2086
      row "$title" "$np" "$type" $result
      [ "$type" != "$parent" ] || expected=$(cut -d' ' -f2 <<<"$result")
      if [ "$type" = aijtccusparse ] && [ "$(cut -d' ' -f2 <<<"$result")" != "$expected" ]; then
        echo "error: the iterations differ from those of $parent"
        status=1
      fi
    done
  done
}

from_file() { # title, processes, options of ex1
  local title=$1 np=$2
  shift 2
  printf '\n%s, %d process(es):\n' "$title" "$np"
  mpiexec -n "$np" "$build/bin/ex1" -types "$(IFS=,; echo "${types[*]}")" "${gpu_options[@]}" "$@" </dev/null | tee ex1.log || { status=1; return; }
  awk -v parent="$parent" '$1 == parent { expected = $3 } $1 == "aijtccusparse" { got = $3 } END { exit got == "" || got != expected }' ex1.log || { echo "error: the iterations differ from those of $parent"; status=1; }
}

begin=$SECONDS
echo
row case np type backend iterations 'residual' 'solve [s]' 'hits/refills/rebuilds'
if compile ex45; then
  compare "ex45 Poisson, CG" ex45 -dm_mat_type -da_grid_x 65 -da_grid_y 65 -da_grid_z 65 -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8
  compare "ex45 Poisson, MG" ex45 -dm_mat_type -da_grid_x 65 -da_grid_y 65 -da_grid_z 65 -ksp_type cg -pc_type mg -pc_mg_levels 4 -mg_levels_pc_type jacobi -ksp_rtol 1e-8
fi
if compile ex56; then
  compare "ex56 elasticity, GAMG" ex56 -mat_type -ne 19 -alpha 1.e-3 -ksp_type cg -pc_type gamg -mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi -use_mat_nearnullspace -ksp_rtol 1e-8
  mpiexec -n 1 ./ex56 -ne 15 -mat_type aij -ksp_type cg -pc_type jacobi -ksp_max_it 1 -ksp_view_mat binary:elasticity.bin >/dev/null 2>&1 </dev/null
  from_file "tutorials/ex1, PETSc binary file" 2 -f elasticity.bin -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8
fi
matrices=$(realpath -m "${AIJTCCUSPARSE_MATRICES:-$root/../shared/matrices}")
if [ -f "$matrices/bcsstk16.mtx.gz" ]; then
  from_file "tutorials/ex1, Matrix Market file" 1 -f "$matrices/bcsstk16.mtx.gz" -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8 -ksp_max_it 2000
elif [ -f "$PETSC_DIR/share/petsc/datafiles/matrices/LFAT5.mtx" ]; then
  from_file "tutorials/ex1, Matrix Market file" 1 -f "$PETSC_DIR/share/petsc/datafiles/matrices/LFAT5.mtx"
fi
printf '\nThe runs took %d s; their logs are in %s\n' $((SECONDS - begin)) "build/$(basename "$build")/demo"
exit $status
