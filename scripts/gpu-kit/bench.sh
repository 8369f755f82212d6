# The stages `bench` and `hostbench` of the GPU kit, sourced by run.sh
# shellcheck shell=bash disable=SC2154

# All results so far as one file; on standard output a line for each operation
merge_json() { # file to write, folder of the files to read
  python3 - "$@" <<'PYTHON'
import glob
import json
import math
import os
import sys

to, folder = sys.argv[1:]
whole, chosen = {}, {}
for path in sorted(glob.glob(folder + '/*.json')):
    with open(path) as file:
        part = json.load(file)
    suite = os.path.basename(path)[:-len('.json')].partition('-')[2]
    for row in part['benchmarks'] if suite else []:
        row['suite'] = suite
    whole = whole or {key: value for key, value in part.items() if key not in ('summary', 'benchmarks')} | {'benchmarks': []}
    whole['benchmarks'] += part['benchmarks']
for row in whole.get('benchmarks', []):
    if not row.get('forced') and row['baseline_ms'] and row['ms'] > 0:
        parent, ms = next(iter(row['baseline_ms'].items()))
        op = row['op'] if row['precision'] == 'fp64' else f'{row["op"]} {row["precision"]}'
        op += f' {row["suite"]}' if 'suite' in row else ''
        chosen.setdefault((op, row['n'], parent), []).append((ms / row['ms'], row['case']))
for (op, n, parent), pairs in chosen.items():
    lost = ' '.join(f'{case} ({ratio:.2f}x)' for ratio, case in sorted(pairs) if ratio < 1)
    print(f'{op} n {n}: {len(pairs)} cases, {math.exp(sum(math.log(ratio) for ratio, _ in pairs) / len(pairs)):.3f} times as fast as {parent}; slower: {lost or "none"}')
if whole:
    with open(to, 'w') as file:
        json.dump(whole, file)
PYTHON
}

bench_number=0
bench_suite='' # of cases that the report has in a section of their own
new_bench() { # JSON file
  parts=$work/bench/$stage
  bench_json=$1
  rm -rf "$parts" "$bench_json"
  mkdir -p "$parts"
}

# one process, with the options, limit and files of the part; false if it ended before its time without results
bench_run() { # cases and paths of files
  local now=0 cases files json
  bench_number=$((bench_number + 1))
  json=$parts/$(printf '%03d' "$bench_number")${bench_suite:+-$bench_suite}.json
  cases=$(printf '%s\n' "$@" | grep -v / | paste -sd,)
  files=$(printf '%s\n' "$@" | grep / | paste -sd,)
  [ "$SECONDS" -lt "$end" ] || { status=124; return 0; }
  # shellcheck disable=SC2086
  timeout -k 5 $((end - SECONDS)) "$bin/tcbench" "${options[@]}" -use_gpu_aware_mpi 0 ${cases:+-case "$cases"} ${files:+-file "$files"} -json "$json" ${BENCH_OPTIONS:-} >"$parts/log" 2>&1 </dev/null || now=$?
  tee -a "$text" <"$parts/log" >>"$out/bench.txt"
  merge_json "$bench_json" "$parts" >"$parts/summary"
  [ "$stage" = hostbench ] || ! grep -q '^one processor core' "$parts/log" || now=77
  [ "$now" = 0 ] || status=$now
  [ -s "$json" ] || [ "$now" = 124 ] || [ "$now" = 137 ]
}

bench_part() { # name, seconds, cases and paths of files in one word, how many a process, operation and options of tcbench
  local name=$1 end=$((SECONDS + $2)) list size=$4 options=("${@:5}") text=$parts/$1.txt status=0 at each
  read -r -a list <<<"$3"
  for ((at = 0; at < ${#list[@]}; at += size)); do
    bench_run "${list[@]:at:size}" || [ "$size" = 1 ] || for each in "${list[@]:at:size}"; do bench_run "$each"; done
  done
  result "bench/$name" "$([ "$status" = 0 ] && echo passed || echo failed)" "$(awk -v all="${#list[@]}" -v status="$status" '
    /^[0-9]+ matrices, / { n += $1; wrong += $3; unread += $5 }
    END { printf "%d of %d matrices, %d wrong, %d not read%s", n, all, wrong, unread, status == 124 || status == 137 ? ", the time was up" : status == 77 ? ", no GPU" : status ? ", status " status : "" }' "$text")"
}

# Cases: the fourteen of the first measurements; the rest of tcbench's table; all files of matrices; a few for other operations
table() { echo stencil27_160 elasticity_64 stencil7_220 stencil27_window_128 stencil27_36 elasticity_28 qcd_11 four_724 four_2510 circuit_3m webbase_1m rmat_20 long_60k long_2k; }
rest() { "$bin/tcbench" list | awk '{ print $1 }' | grep -vxF "$(table | tr ' ' '\n')" | tr '\n' ' '; }
files() { find "$work/matrices" -name '*.gz' | if [ "${BENCH_OPERATORS:-1}" = 0 ]; then grep -v '\.petsc\.gz$'; else cat; fi | sort | tr '\n' ' '; }
few() { echo elasticity_28 stencil27_46 interpolation_80 restriction_80 offdiagonal_2m like_cant webbase_1m lp_200k like_FullChip like_eu-2005 like_circuit5M like_in-2004; }
blocks() { # the large ones and those with aims first, since most is lost with them when the time is up; elasticity:27 has an odd number of rows
  echo elasticity_64 stencil27:100 stencil7:110 stencil27_window:100 webbase_1m long1153:20000 four_724 rmat:18 elasticity_28 elasticity:27 qcd_11 long_2k
  echo p2:32 circuit:400000 laplace27:64 interpolation:40 lp:40000 stokes:24 ex56_24 like_cant like_pdb1HYS like_scircuit
  echo "$work"/matrices/{email-enron,dlmc_transformer_095_symbol,bcsstk17}.mtx.gz like_consph like_shipsec1 like_rma10 like_cop20k_A like_pwtk like_mip1
  echo like_conf5_4-8x8-10 like_dc2 like_mac_econ_fwd500 like_Si41Ge41H72
}

small() { # blocks of these are as long as their launches, or as their longest row
  echo stencil27:6 stencil27:14 stencil27:22 stencil27:28 elasticity:4 elasticity:7 elasticity:10 elasticity:15 elasticity:20 stencil7:16 stencil7:32 stencil7:64 four:60 four:250 p2:6 p2:10 p2:18
  echo stencil7:25 stencil7:33 stencil7:65 convection:33 qcd:6 qcd:8 convection:24 convection:40 rmat:9 rmat:13 interpolation:20 restriction:20 stokes:8 stokes:16 like_cant:4000 like_pdb1HYS:4000 circuit:10000 circuit:40000 webbase:50000 long487:500 lp:2000
  files | tr ' ' '\n' | grep -v 'email-enron\|dlmc\|bcsstk17'
}

bench_table() { bench_part table 130 "$(table)" 4 spmv -groups 5; }
bench_rest() { bench_part rest 130 "$(rest) $(files)" 10 spmv -groups 5 -ways auto,hybrid_mma,hybrid_fma; }
bench_add() { bench_part add 60 "$(few)" 6 spmv -spmv_mode add -groups 5 -ways auto; }
bench_residual() { bench_part residual 60 "$(few)" 6 spmv -spmv_mode residual -groups 5 -ways auto; }
bench_transpose() { bench_part transpose 60 "$(few)" 6 spmv -spmv_mode transpose -groups 5 -ways auto; }
bench_spmm() {
  bench_part spmm_tall 25 circuit_3m 1 spmm -spmm_n 8,32 -groups 5 -group_ms 2
  bench_part spmm 150 "$(blocks | tr '\n' ' ')" 6 spmm -spmm_n 8,32,128 -groups 5 -group_ms 2
}
bench_spmm_few() { # few rows, and few columns
  bench_suite=few
  bench_part spmm_small 60 "$(small | tr '\n' ' ')" 100 spmm -spmm_n 1,2,4,8,32 -groups 5 -group_ms 1 -ways auto
  bench_part spmm_few 100 "$(blocks | tr '\n' ' ')" 12 spmm -spmm_n 1,2,4 -groups 5 -group_ms 1 -ways auto
  bench_suite=''
}
bench_spmm_t() { bench_part spmm_t 35 "elasticity_28 stencil27:64 like_cant rmat:18 interpolation:40 restriction:40 offdiagonal:200000" 7 spmm -spmm_mode atb -spmm_n 32 -groups 5; }
bench_spmm_abt() { bench_part spmm_abt 20 "elasticity_28 stencil27:64 rmat:18 interpolation:40 restriction:40" 5 spmm -spmm_mode abt -spmm_n 8,32 -groups 5; }
# of the cases of `blocks`, whose times in fp64 these are compared with
bench_spmm_precision() { bench_part spmm_precision 90 "elasticity_28 qcd_11 rmat:18 like_cant like_cop20k_A $work/matrices/email-enron.mtx.gz like_mip1 webbase_1m" 2 spmm -precision tf32,bf16,fp16,fp32 -spmm_n 32,128 -ways auto -groups 3 -group_ms 1; }
# 2:4 tiles and what they are compared with, without PETSc; other rows of the same file
bench_sparse24() {
  local log=$parts/sparse24.txt status=0 rows size
  bench_number=$((bench_number + 1))
  timeout -k 5 60 "$bin/test_spmm_bcsr" -bench 64,128,512,1024 "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 </dev/null || status=$?
  for size in 4096 8192; do timeout -k 5 30 python3 "$work/cusparselt.py" "$size" 64 128 512 1024 >>"$log" 2>&1 </dev/null; done # its own line says what it is; may be absent
  cat "$log" >>"$out/bench.txt"
  awk '
    FNR == NR { if (NF == 4 && $1 ~ /^[0-9]+$/) structured[$1, $2] = $3; next }
    $1 == "#" && $2 == "matrix" { for (i = 3; i <= NF; ++i) name[i - 1] = $i }
    /^[0-9]+d[0-9]+s / && NF == 11 {
      printf "%s  {\"op\": \"sparse24\", \"case\": \"%s\", \"rows\": %d, \"cols\": %d, \"nnz\": %d, \"n\": %d, \"ranks\": 1, \"precision\": \"fp16\", \"kernel\": \"tc_spmm_bcsr_f16\", \"device\": true, \"ms\": %s, \"bf16_ms\": %s, \"baseline_ms\": {", (n++ ? ",\n" : "{\"benchmarks\": [\n"), $1, $2, $2, $3, $4, $5, $7
      for (i = 6; i <= NF; ++i) if (i != 7) printf("%s\"%s\": %s", (i > 6 ? ", " : ""), name[i], ($i == "inf" ? 0 : $i))
      if (/^0d/ && ($2, $4) in structured) printf ", \"cusparselt_fp16\": %s", structured[$2, $4] # all of it is 2:4
      printf "}}"
    }
    END { if (n) print "\n]}" }' "$log" "$log" >"$parts/$(printf '%03d' "$bench_number").json"
  rows=$(grep -cE '^[0-9]+d[0-9]+s ' "$log")
  [ "$rows" -gt 0 ] || rm "$parts/$(printf '%03d' "$bench_number").json"
  merge_json "$bench_json" "$parts" >"$parts/summary"
  result bench/sparse24 "$([ "$status" = 0 ] && echo passed || echo failed)" "$rows rows$([ "$status" = 0 ] || echo ", status $status")"
}
# products of row-major blocks of floats, without PETSc; with rows reordered, too
bench_by_rows() {
  local log=$parts/by_rows.txt json status=0 rows cases
  bench_number=$((bench_number + 1))
  json=$parts/$(printf '%03d' "$bench_number").json
  cases=like_dc2:116835,like_scircuit:170998,like_mac_econ_fwd500:206500,rmat:18,elasticity:28,like_cant:62451,qcd:11,like_cop20k_A:121192,lp:40000,circuit:400000,webbase:1000000
  cases=$cases,four:724,p2:32,stencil7:110,like_mip1:66463,elasticity:64,stencil27_window:100,like_pwtk:217918,like_consph:83334,stokes:24,laplace27:64,stencil27:100
  timeout -k 5 150 "$bin/test_spmm_kernels" -bench 1 -row-major 128,256,512 -kernel f32 -reorder -case "$cases" "$work/opt/lib/libaijtccusparse_cuda.so" >"$log" 2>&1 </dev/null || status=$?
  cat "$log" >>"$out/bench.txt"
  python3 "$work/by_rows.py" "$log" >"$json" || rm -f "$json"
  rows=$(grep -o '"op"' "$json" 2>/dev/null | wc -l)
  merge_json "$bench_json" "$parts" >"$parts/summary"
  result bench/by_rows "$([ "$status" = 0 ] && [ "$rows" -gt 0 ] && echo passed || echo failed)" "$rows rows$([ "$status" = 0 ] || echo ", status $status")"
}
bench_precision() { bench_part precision 120 "elasticity_64 circuit_3m stencil27_window_128 stencil7_220 stencil27_160" 3 spmv -precision fp32,bf16,fp16 -groups 5 -ways auto; }

stage_bench() {
  local part
  flavour opt
  new_bench "$out/bench.json"
  for part in ${BENCH_PARTS:-table rest add residual transpose spmm spmm_few spmm_precision spmm_t spmm_abt sparse24 by_rows}; do "bench_$part"; done
  cat "$parts/summary"
}

stage_hostbench() {
  flavour opt
  new_bench "$out/bench-host.json"
  export CUDA_VISIBLE_DEVICES=''
  if [ "$many_cores" = 1 ]; then # others run beside it
    renice -n -10 -p "$BASHPID" >/dev/null 2>&1
    printf 'host_beside\ttests on the others\n' >>"$out/environment.txt"
  fi
  bench_part host 120 "$(table) $(rest) $(files)" 12 spmv -host -groups 5 -ways auto
  bench_part host_spmm 150 "$(table) $(rest) $(files)" 12 spmm -host -spmm_n 1,2,3,4,8,32 -groups 5 -group_ms 2 -ways auto
  bench_part host_spmm_t 150 "$(table) $(rest)" 12 spmm -host -spmm_mode atb -spmm_n 1,4,8,32 -groups 3 -group_ms 2 -ways auto
  bench_part host_spmm_abt 150 "$(table) $(rest)" 12 spmm -host -spmm_mode abt -spmm_n 1,4,8,32 -groups 3 -group_ms 2 -ways auto
  cat "$parts/summary"
}
