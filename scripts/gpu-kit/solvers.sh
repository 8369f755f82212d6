# The stage `solvers` of the GPU kit, sourced by run.sh
# shellcheck shell=bash disable=SC2154

# One run of a solver: iterations, residual, seconds of the longest solve event, counters (hits/refills/rebuilds), rows, nonzeros; and a line of processes.log: case, processes, type, seconds of the
# stage that ex56 calls Setup, and of the process from PetscInitialize() on
solve_once() { # case, processes, type, program, options
  local name=$1 np=$2 type=$3 program=$4 log=$work/solve.log status=0
  shift 4
  limited 100 mpiexec -n "$np" "$bin/$program" -use_gpu_aware_mpi "${gpu_aware:-0}" -dll_prepend "$plugin" "$@" -log_view >"$log" 2>&1 </dev/null || status=$?
  { printf '=== %s np%s %s\n' "$name" "$np" "$type"; grep -vE '^[A-Za-z]+ +[0-9]+ [0-9.]+ ' "$log" | head -n 150; grep -E '^(KSPSolve|SNESSolve|MatMult|MatTC[A-Z][a-z]+|PCSetUp) ' "$log"; } >>"$out/tests.log"
  if [ "$status" != 0 ]; then printf 'failed\t-\t0\t-\t0\t0\n'
  else
    awk -v OFS='\t' -v name="$name" -v np="$np" -v type="$type" '
    /^ *[0-9]+: +Setup: / { setup = $3 }
    /^Time \(sec\): / { whole = $3 }
    END { print name, np, type, setup == "" ? "-" : setup, whole }' "$log" >>"$work/processes.log"
    awk '
    /solve converged due to/ { n += $NF } /did not converge/ { bad = 1 }
    /KSP final norm of residual/ { residual = $NF }
    /^ *aijtccusparse: backend/ { gsub(",", ""); counters = $5 "/" $7 "/" $9 }
    match($0, /rows=[0-9]+/) { rows = substr($0, RSTART + 5, RLENGTH - 5) }
    match($0, /total: nonzeros=[0-9]+/) { nnz = substr($0, RSTART + 16, RLENGTH - 16) }
    /^(KSPSolve|SNESSolve) / { event[$1] += $4; if (event[$1] > seconds) seconds = event[$1] } # of all stages
    END { printf "%s\t%s\t%.4f\t%s\t%d\t%d\n", bad ? "none" : n, residual == "" ? "-" : residual, seconds, counters == "" ? "-" : counters, rows, nnz }' "$log"
  fi
}

# Of lines that solve_once printed, that of the fastest run, or of one that failed
fastest() {
  awk -F '\t' 'NF == 6 { seconds = $1 ~ /^[0-9]/ ? $3 : -1; if (best == "" || seconds < least) { best = $0; least = seconds } } END { print best }'
}

# Both types on the same problem: the iterations must agree. Lines of solvers.tsv: case, processes, type and what solve_once prints of the fastest run. The types take turns: a solve of
# 80 ms is mostly the host's, and one of a type varies by 30% between processes. Three runs of each, seven on
# one process if the fastest of three is below 0.2 s. Lines of processes.tsv: case, processes, type, and the least seconds of set-up and process.
compare() { # case, processes, program, type option, options
  local name=$1 np=$2 program=$3 option=$4 runs=3 type run
  local -A lines=() best=()
  shift 4
  : >"$work/processes.log"
  for ((run = 0; run < runs; run++)); do
    for type in "$parent_type" aijtccusparse; do
      lines[$type]+=$(solve_once "$name" "$np" "$type" "$program" "$option" "$type" "$@")$'\n'
    done
    if [ "$run" = 2 ] && [ "$np" = 1 ] && fastest <<<"${lines[aijtccusparse]}" | awk '{ exit !($3 < 0.2) }'; then runs=7; fi
  done
  for type in "$parent_type" aijtccusparse; do
    best[$type]=$(fastest <<<"${lines[$type]}")
    printf '%s\t%s\t%s\t%s\n' "$name" "$np" "$type" "${best[$type]}" >>"$out/solvers.tsv"
    awk -F '\t' -v OFS='\t' -v type="$type" '
      $3 == type { if (!n++ || $4 < setup) setup = $4; if (n == 1 || $5 < whole) whole = $5; name = $1; np = $2 }
      END { if (n) print name, np, type, setup, whole }' "$work/processes.log" >>"$out/processes.tsv"
  done
  local expected=${best[$parent_type]%%$'\t'*} iterations=${best[aijtccusparse]%%$'\t'*}
  if [ "$iterations" = "$expected" ] && [ "$expected" -gt 0 ] 2>/dev/null; then result "solve/$name/np$np" passed "$iterations iterations"
  else result "solve/$name/np$np" failed "$iterations iterations, $parent_type $expected"
  fi
}

# Where the time of a solve goes, with either type: lines of events.tsv, case, type, event, calls, seconds; the device is waited for at the end of each event, so they take
# longer than without. Events nest; those of vectors are one line, and so are those of the program's stages.
split_by_event() { # case, program, type option, options
  local name=$1 program=$2 option=$3 type log=$work/events.log
  shift 3
  for type in "$parent_type" aijtccusparse; do
    limited 60 mpiexec -n 1 "$bin/$program" -use_gpu_aware_mpi 0 -dll_prepend "$plugin" "$option" "$type" "$@" -log_view -log_view_gpu_time >"$log" 2>&1 </dev/null || continue
    awk -v OFS='\t' -v name="$name" -v type="$type" '
      $2 !~ /^[0-9]+$/ || $4 !~ /^[0-9.]+e[-+][0-9]+$/ { next }
      /^Vec/ { $1 = "Vec*" }
      $1 ~ /^(Vec\*|KSPSolve|SNESSolve|PCSetUp|PCApply|MatSOR|MatMult[A-Za-z]*|MatResidual|MatTC[A-Z][a-z]+)$/ { calls[$1] += $2; seconds[$1] += $4 } # of all stages
      END { for (event in calls) print name, type, event, calls[event], seconds[event] }' "$log" >>"$out/events.tsv"
  done
  if [ "$(grep -cP "^$name\t.*\tKSPSolve\t" "$out/events.tsv")" = 2 ]; then result "solve/$name/events" passed "both types"
  else result "solve/$name/events" failed "no KSPSolve in the log of one of the types"
  fi
}

# Our own tutorials print a line for every solve; each solves twice, seconds are those of the second time
tutorial() { # processes, program, options; the log is $work/tutorial.log, with the status of the program as its last line
  local np=$1 program=$2 status=0 at=$SECONDS
  shift 2
  limited 60 mpiexec -n "$np" "$bin/$program" -use_gpu_aware_mpi "${gpu_aware:-0}" "$@" >"$work/tutorial.log" 2>&1 </dev/null || status=$?
  printf 'status %s after %s s\n' "$status" "$((SECONDS - at))" >>"$work/tutorial.log"
  { printf '=== %s %s\n' "$program" "$*"; head -n 150 "$work/tutorial.log"; } >>"$out/tests.log"
}

# Lines of solvers.tsv, with columns of the block, precision, seconds of the first time and kernel behind the usual ones; and for each solve of our type whether it
# took as many iterations as the parent's. A process for each type: in one that has ours, what PETSc derives from the parent's matrices may be ours, too.
blocks_of() { # name for a failure, processes, options of ex2
  local name=$1 np=$2 type log=$work/blocks.log
  shift 2
  : >"$log"
  for type in "$parent_type" aijtccusparse; do
    tutorial "$np" ex2 -types "$type" "$@"
    cat "$work/tutorial.log" >>"$log"
  done
  awk -v OFS='\t' -v parent="$parent_type" -v table="$out/solvers.tsv" -v name="$name" -v np="$np" -v where="${where_suffix:-}" '
    /^(Poisson|Elasticity) on/ { points = $3 + 0; elasticity = $1 == "Elasticity"; rows = (elasticity ? 3 : 1) * points^3; nnz = elasticity ? 9 * (3 * points - 2)^3 : 7 * points^3 - 6 * points^2 }
    $1 == parent || $1 == "aijtccusparse" { print "ex2_" $2 (elasticity ? "_elasticity_" : "_") points where, np, $1, $4, $5, $7, "-", rows, nnz, $3, "fp64", $6, $9 >>table; n++ }
    $1 == parent { expected[$2, $3] = $4 }
    $1 == "aijtccusparse" {
      right = $4 == expected[$2, $3] && $4 > 0
      print "solve/ex2_" $2 (elasticity ? "_elasticity_" : "_") points where "_n" $3 "/np" np, (right ? "passed" : "failed"), $4 " iterations" (right ? "" : ", " parent " " expected[$2, $3])
    }
    /^status/ && $2 { bad = bad " " $0 }
    END { if (bad || !n) print "solve/" name where "/np" np, "failed", "ended with" bad }' "$log" >>"$out/results.tsv"
}

# Conjugate gradients whose preconditioner has rounded matrices. The program fails if fp32 or fp16 take more than one iteration more or less than fp64. Sparse products
# of the set-up, which is not timed, are the host's: cuSPARSE's do not always end, with either type, when multigrid is set up again (docs/performance.md, defects of others).
narrow_preconditioner() { # points
  tutorial 1 ex3 -n "$1" -check -matmatmult_backend_cpu -matptap_backend_cpu -mattransposematmult_backend_cpu -mat_product_algorithm_backend_cpu
  awk -v OFS='\t' -v points="$1" -v table="$out/solvers.tsv" '
    $1 ~ /^(fp|bf)[0-9]+$/ { print "ex3_" points, 1, "aijtccusparse", $2, $3, $4, "-", points^3, 7 * points^3 - 6 * points^2, 1, $1, "-", "-" >>table; taken = taken " " $1 " " $2; n++ }
    /^status/ { status = $2 }
    END { print "solve/ex3_" points "/np1", (status == 0 && n == 4 ? "passed" : "failed"), "iterations:" taken (status ? ", status " status : "") }' "$work/tutorial.log" >>"$out/results.tsv"
}

# A graph convolution in several precisions: lines of solvers.tsv with the seconds of a product, its error in the place of the residual, and what is recognised in that of
# the counters. The program fails if an error is beyond its bound.
graph_convolution() { # file of a graph
  local name
  name=ex4_$(basename "$1" .mtx.gz)
  tutorial 1 ex4 -f "$1" -widths 64,128,256,512 -precisions fp64,fp32,tf32,bf16,fp16 -baseline "$parent_type" -check
  awk -v OFS='\t' -v name="$name" -v parent="$parent_type" -v table="$out/solvers.tsv" '
    / vertices, / { rows = $2 }
    $1 == parent || $1 ~ /^(fp|tf|bf)[0-9]+$/ { print name, 1, ($1 == parent ? parent : "aijtccusparse"), "-", $5, $3 / 1000, $6, rows, 0, $2, ($1 == parent ? "fp64" : $1), "-", $8 >>table; n++ }
    /^status/ { status = $2 }
    END { print "solve/" name "/np1", (status == 0 && n == 24 ? "passed" : "failed"), n + 0 " lines" (status ? ", status " status : "") }' "$work/tutorial.log" >>"$out/results.tsv"
}

parent_type=aijcusparse
common=(-ksp_converged_reason -ksp_view_final_residual -ksp_view)
jacobi=(-mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi)
grid_100=(-da_grid_x 100 -da_grid_y 100 -da_grid_z 100)
cube_100=("${grid_100[@]}" -pc_type jacobi)
grid_129=(-da_grid_x 129 -da_grid_y 129 -da_grid_z 129)
cube_129=("${grid_129[@]}" -pc_type mg -pc_mg_levels 5 "${jacobi[@]}")
on_grid=(-dm_mat_type -dm_vec_type cuda -ksp_type cg -ksp_rtol 1e-8) # the first one is the option of the type
gamg=(-mat_type -vec_type cuda -ksp_type cg -pc_type gamg -ksp_rtol 1e-8 -log_stages "${jacobi[@]}")

elements_24=(-mat_type -vec_type cuda -ksp_rtol 1e-8 -log_stages -ne 24)

# Both types, PETSc's tutorials
stage_solves() {
  local np
  flavour opt
  for np in ${KIT_SOLVER_NP:-1 2}; do
    compare ex45_jacobi_100 "$np" ex45 "${on_grid[@]}" "${cube_100[@]}" "${common[@]}"
    compare ex45_mg_129 "$np" ex45 "${on_grid[@]}" "${cube_129[@]}" "${common[@]}"
    compare ex56_gamg_24 "$np" ex56 "${gamg[@]}" -ne $((np == 1 ? 24 : 23)) "${common[@]}"
    compare ex19_newton "$np" ex19 -dm_mat_type -dm_vec_type cuda -da_refine 4 -pc_type mg "${jacobi[@]}" -snes_converged_reason "${common[@]}"
  done
  compare ex56_gamg_49 1 ex56 "${gamg[@]}" -ne 49 "${common[@]}"
}

# Sweeps: as a preconditioner, and as the smoothers that PCMG has if nothing else is asked for
stage_sweeps() {
  local np
  flavour opt
  compare ex45_sor_100 1 ex45 "${on_grid[@]}" "${cube_100[@]}" -pc_type sor "${common[@]}"
  for np in ${KIT_SOLVER_NP:-1 2}; do compare ex45_mg_sor_129 "$np" ex45 "${on_grid[@]}" "${grid_129[@]}" -pc_type mg -pc_mg_levels 5 "${common[@]}"; done
  compare ex56_gamg_sor_24 1 ex56 "${gamg[@]}" -mg_levels_pc_type sor -ne 24 "${common[@]}"
  split_by_event ex45_mg_sor_129 ex45 "${on_grid[@]}" "${grid_129[@]}" -pc_type mg -pc_mg_levels 5
}

# Incomplete factors: PETSc's default, GMRES with ILU(0), of a block for each process, with nothing else asked for; with more levels and another order; and ICC(0), and elements
stage_factors() {
  local np
  flavour opt
  for np in ${KIT_SOLVER_NP:-1 2}; do compare ex45_ilu_100 "$np" ex45 "${on_grid[@]}" "${grid_100[@]}" -ksp_type gmres "${common[@]}"; done
  compare ex45_ilu1_100 1 ex45 "${on_grid[@]}" "${grid_100[@]}" -ksp_type gmres -pc_type ilu -pc_factor_levels 1 "${common[@]}"
  compare ex45_ilu_rcm_100 1 ex45 "${on_grid[@]}" "${grid_100[@]}" -ksp_type gmres -pc_type ilu -pc_factor_mat_ordering_type rcm "${common[@]}"
  compare ex56_ilu_24 1 ex56 "${elements_24[@]}" -ksp_type gmres -pc_type ilu "${common[@]}"
  compare ex56_icc_24 1 ex56 "${elements_24[@]}" -ksp_type cg -pc_type icc "${common[@]}"
}

# Blocks of right-hand sides
stage_blocks() {
  flavour opt
  blocks_of ex2_65 1 -coarse 5 -levels 5 -columns 8,32 -method mg,ilu,chebyshev
  blocks_of ex2_129 1 -coarse 5 -levels 6 -columns 32 -method mg,ilu
  blocks_of ex2_elasticity_65 1 -problem elasticity -coarse 5 -levels 5 -columns 32 -method mg,ilu,chebyshev
}

# Lines of uses.tsv: case, use, type, milliseconds
uses_of() { # round, type, words of uses, cases
  local log=$work/uses.log
  if ! limited 100 "$bin/usebench" -use_gpu_aware_mpi 0 -mat_type "$2" -use "$3" -case "$4" >"$log" 2>&1 </dev/null; then
    result "uses/$2/$1" failed "$(tail -n 1 "$log")"
  fi
  cat "$log" >>"$out/tests.log"
  awk -F '\t' -v OFS='\t' -v type="$2" 'NF == 3 { print $1, $2, type, $3 }' "$log" >>"$out/uses.tsv"
}

# Two of each type
stage_uses() {
  local round type
  flavour opt
  for round in 1 2; do
    for type in "$parent_type" aijtccusparse; do
      uses_of "$round" "$type" MatScale,MatDiagonalScale,MatAXPY,MatSetValuesCOO,gave elasticity:10,stencil7:30,elasticity:28,stencil7:100,circuit:300000,webbase:300000,rmat:14,rmat:18,like_mip1:60000
      uses_of "$round" "$type" 'ILU(1),RCM' ex45:100,ex45:50,ex56:24,p2:20,p3:12,stencil27:50,convection:64,four:400
      uses_of "$round" "$type" 'new ILU(0),ILU(0) again,MatSolve with ILU(0),ICC(0)' ex45:100,ex45:50,ex45:25,laplace7:100,laplace7:50,laplace27:50,stencil27_window:50,ex56:10,ex56:24,convection:64,p2:20,p3:12,qcd:8,four:100,four:400
    done
  done
}

stage_solvers() {
  local graph points
  stage_solves
  split_by_event ex45_mg_129 ex45 "${on_grid[@]}" "${cube_129[@]}"
  split_by_event ex45_gamg_129 ex45 "${on_grid[@]}" "${grid_129[@]}" -pc_type gamg "${jacobi[@]}"
  stage_sweeps
  stage_factors
  for points in 24 49; do split_by_event "ex56_gamg_$points" ex56 "${gamg[@]}" -ne "$points"; done
  stage_blocks
  narrow_preconditioner 100
  for graph in email-enron p2p-gnutella31; do
    [ ! -f "$AIJTCCUSPARSE_MATRICES/$graph.mtx.gz" ] || graph_convolution "$AIJTCCUSPARSE_MATRICES/$graph.mtx.gz"
  done
}

# Two processes, each with a GPU of its own: PETSc gives processes of a host its GPUs in turn
on_two_gpus() { # suffix of the cases
  local where_suffix=$1
  if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
    result "solve/${where_suffix#_}" skipped "the machine has one GPU"
    return
  fi
  compare "ex45_mg_129$where_suffix" 2 ex45 "${on_grid[@]}" "${cube_129[@]}" "${common[@]}"
  compare "ex45_gamg_129$where_suffix" 2 ex45 "${on_grid[@]}" "${grid_129[@]}" -pc_type gamg "${jacobi[@]}" "${common[@]}"
  compare "ex56_gamg_49$where_suffix" 2 ex56 "${gamg[@]}" -ne 49 "${common[@]}"
  blocks_of ex2_129 2 -coarse 5 -levels 6 -columns 32 -method mg
  blocks_of ex2_elasticity_65 2 -problem elasticity -coarse 5 -levels 5 -columns 32 -method mg,chebyshev
}

stage_twogpus() {
  flavour opt
  on_two_gpus _two_gpus
}

stage_twoaware() (
  cuda_aware_mpi solve/two_gpus_aware || return 0
  export OMPI_MCA_btl_smcuda_use_cuda_ipc=${KIT_IPC:-1}
  on_two_gpus _two_gpus_aware
)
